"""Generalised least squares from the noisy integers: unbiased, of least variance, and consistent across all tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from leastnoise._accuracy import (
    Cells,
    Known,
    Measured,
    Structure,
    combined,
    exact_variance,
    middles,
    quantity_structure,
    told,
)
from leastnoise._check.arrays import FloatArray
from leastnoise._estimate._answer import Answer, estimates
from leastnoise._estimate._stated import PublicCounts, with_exact_sums
from leastnoise._linop import Operator, along, apply
from leastnoise._measurements import Observation
from leastnoise._workload import Product, marginals

Names = tuple[str, ...]
_NONE = 2.0**10  # times the variance that stands for none: sums of very many public counts have it


@dataclass(frozen=True, eq=False)
class Estimate:
    """Least squares estimates of everything that an observation determines."""

    # Source: Cormode et al. (arXiv 1207.6096), generalised least squares.

    observation: Observation
    public: tuple[PublicCounts, ...] = ()
    _cells: dict[str | None, Cells] = field(default_factory=dict, repr=False)
    _structures: dict[str | None, Structure] = field(default_factory=dict, repr=False)
    _linear: dict[Product, FloatArray] = field(default_factory=dict, repr=False)

    @property
    def library(self) -> None:
        """Of data frames: an estimate is of measurements, whatever the data came as."""

    def least_squares(self) -> "Estimate":
        """Itself: see `HasLeastSquares`."""
        return self

    def like(self, observation: Observation) -> "Estimate":
        """The estimate of another observation of the same plan, such as a simulated one; what only the plan decides is kept."""
        return Estimate(observation, self.public, _structures=self._structures, _linear=self._linear)

    def needs_solver(self, measure: str | None) -> bool:
        """Whether every estimate has to be solved for, which takes long."""
        return bool(self._structure(measure).solver_cells)

    def _structure(self, measure: str | None) -> Known:
        plan = self.observation.measurements
        return combined(plan, measure, {quantity: self._alone(quantity) for quantity in middles(plan, measure)})

    def _alone(self, quantity: str | None) -> Structure:
        if quantity not in self._structures:
            exact = [one.block for one in self.public]
            self._structures[quantity] = quantity_structure(self.observation.measurements, quantity, exact)
        return self._structures[quantity]

    def _solved(self, quantity: str | None) -> Cells:
        if quantity not in self._cells:
            made, values = self.observation.measurements, self.observation.values
            measured = [Measured(one.block, one.values(values[one.place]), made.grid, one.variance) for one in told(made, quantity)]
            if quantity is None and self.public:
                variance = exact_variance(made)
                measured += [Measured(one.block, one.sums.counts.reshape(-1), 1, variance) for one in self.public]
            self._cells[quantity] = self._alone(quantity).cells(measured)
        return self._cells[quantity]

    def marginal(self, names: Names, measure: str | None = None) -> FloatArray:
        """The estimated cells of a marginal."""
        cells = marginals(self.observation.measurements.domain, ways=len(names), of=names, sum=measure).products[0]
        self._structure(measure).require(cells)
        return self.cells(names, measure)

    def cells(self, names: Names, measure: str | None = None) -> FloatArray:
        """Cells that explain the measurements: right for queries that these determine, and only for them."""
        parts = middles(self.observation.measurements, measure)
        if measure is None:
            return with_exact_sums(self._spread(names, None), names, self.public)
        if len(parts) == 1:
            return self._spread(names, measure)
        return np.asarray(sum(often * self._spread(names, quantity) for quantity, often in parts.items()))

    def _spread(self, names: Names, quantity: str | None) -> FloatArray:
        known = self._solved(quantity)
        cube = known.marginal(tuple(name for name in names if name in known.names))
        for axis, name in enumerate(names):
            if name not in known.names:  # all tables sum over it: spread evenly
                size = self.observation.measurements.domain.kind(name).size
                cube = np.repeat(np.expand_dims(cube / size, axis), size, axis)
        return np.asarray(cube)

    def estimate(self, product: Product) -> Answer:
        """The least squares answers to one product, with the errors that the plan promised."""
        return Answer(self.values(product), self.std(product.measure, self._structure(product.measure).variances(product)))

    def std(self, measure: str | None, variances: FloatArray) -> FloatArray:
        """Standard errors; of what is public none."""
        if measure is None and self.public:
            variances = np.where(variances < _NONE * exact_variance(self.observation.measurements), 0.0, variances)
        return np.sqrt(np.maximum(variances, 0.0))

    def values(self, product: Product) -> FloatArray:
        """The values of ``estimate`` alone, for whoever simulates; shape ``product.shape``."""
        self._structure(product.measure).require(product)
        cube = self.cells(product.attributes, product.measure)
        for axis, operator in enumerate(product.operators):
            cube = along(apply, operator, cube, axis)
        return cube

    def answers(self, products: Sequence[Product]) -> list[Answer]:
        """``estimate`` of several products: those that ask the same along their attributes at once."""
        variances: dict[int, FloatArray] = {}
        values: dict[int, FloatArray] = {}
        # An operator is looked at once an object, as very many products share few.
        objects = {id(operator): operator for product in products for operator in product.operators}
        equal: dict[Operator, int] = {}
        kinds = {key: equal.setdefault(operator, len(equal)) for key, operator in objects.items()}
        alike: dict[tuple[object, ...], list[int]] = {}
        measures: dict[str | None, list[int]] = {}
        for place, product in enumerate(products):
            measures.setdefault(product.measure, []).append(place)
            alike.setdefault((product.measure, *[kinds[id(operator)] for operator in product.operators]), []).append(place)
        for measure, places in measures.items():
            known = self._structure(measure).variances_of([products[place] for place in places])
            variances.update(zip(places, known, strict=True))
        for places in alike.values():
            stack = self._stacked([products[place].attributes for place in places], products[places[0]].measure)
            for axis, operator in enumerate(products[places[0]].operators, 1):
                stack = along(apply, operator, stack, axis)
            values.update(zip(places, stack, strict=True))
        return [Answer(values[place], self.std(products[place].measure, variances[place])) for place in range(len(products))]

    def _stacked(self, tables: Sequence[Names], measure: str | None) -> FloatArray:
        """``cells`` of tables of one shape, the tables along the first axis."""
        parts = middles(self.observation.measurements, measure)
        if len(parts) == 1 and not (measure is None and self.public):
            known = self._solved(measure)
            if {*chain.from_iterable(tables)} <= {*known.names}:
                return known.marginals(tables)
        return np.stack([self.cells(names, measure) for names in tables])

    def places(self, measure: str | None) -> list[int]:
        """The blocks that tell something of counts, or of the sums of a measure."""
        made = self.observation.measurements
        return sorted({one.place for quantity in middles(made, measure) for one in told(made, quantity)})

    def linear(self, product: Product) -> FloatArray:
        """``values`` as a matrix: a row for every answer, a column for every number of the blocks in ``places``, in their order."""
        # Times these numbers, in rows or units, it is the answers. It is kept for all estimates ``like`` this one.
        if product not in self._linear:
            made = self.observation.measurements
            zeros = [np.zeros(block.rows, dtype=np.int64) for block in made.blocks]
            columns = []
            for place in self.places(product.measure):
                for row in range(made.blocks[place].rows):
                    values = [*zeros]
                    values[place] = zeros[place].copy()
                    values[place][row] = made.grid
                    columns.append(self.like(Observation(made, tuple(values), "", private=False)).values(product).reshape(-1))
            self._linear[product] = np.stack(columns, axis=1)
        return self._linear[product]


@estimates.register
def _(estimator: Estimate, products: Sequence[Product]) -> list[Answer]:
    return estimator.answers(products)
