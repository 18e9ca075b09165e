"""Generalised least squares from noisy integers.

The estimates are unbiased, have the least variance, and are consistent across all tables.

Every estimator returns an `Answer` to a product of queries, with values and the two parts of their
error. An `Outcome` contains everything that determines the answers of a release: the measurements,
and the choices of the mechanism.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from leastnoise._domain import Domain
from leastnoise._error import (
    Cells,
    Covariance,
    NoisyBlock,
    Structure,
    centred_quantities,
    combine_structures,
    equations,
    exact_variance,
    quantity_structure,
)
from leastnoise._estimation._public_facts import (
    PublicCounts,
    public_counts_of_plan,
    shift_to_public_sums,
)
from leastnoise._families import apply_along_axes
from leastnoise._plan import LinearPlan, Plan
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Operator, as_int32_if_exact
from leastnoise._trusted.measurements import Measurements, Observation
from leastnoise._workload import Product, Statistic, Workload, table_of_all_cells


@dataclass(frozen=True, slots=True, eq=False)
class OneSidedBounds:
    """Estimated lower and upper bounds of the true answers, with errors.

    The bounds are valid whatever amount the answers leave out. All arrays have the product's shape.
    """

    lower: FloatArray
    lower_std: FloatArray
    upper: FloatArray
    upper_std: FloatArray


# Largest floating-point error of a whole number: absolute in rows, and relative to the largest
# value.
_WHOLE_NUMBER_TOLERANCE = 2.0**-20
_RELATIVE_ROUNDING = 2.0**-44  # relative error of a sum of floats


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Estimated answers to one product of queries, with their errors.

    All arrays have the product's shape, in rows or units of its measure.

    A value that differs from a whole number only by floating-point rounding becomes that number. If
    ``centre`` is not None, intervals are centred at ``centre``, and their width covers the noise.
    If ``true_bounds`` is not None, intervals extend to these bounds.
    """

    values: FloatArray
    noise_std: FloatArray
    approximation_std: FloatArray | None = None
    true_bounds: OneSidedBounds | None = None
    centre: FloatArray | None = None

    def __post_init__(self) -> None:
        rounded = np.rint(self.values)
        is_near_integer = np.abs(self.values - rounded) <= max(
            _WHOLE_NUMBER_TOLERANCE, _RELATIVE_ROUNDING * np.abs(self.values).max(initial=0.0)
        )
        object.__setattr__(self, "values", np.where(is_near_integer, rounded + 0.0, self.values))

    @property
    def std(self) -> FloatArray:
        """Standard errors: from noise and, if its size is known, approximation."""
        if self.approximation_std is None:
            return self.noise_std
        return np.hypot(self.noise_std, np.nan_to_num(self.approximation_std))

    def interval_distances(
        self, two_sided_multiplier: float, one_sided_multiplier: float, half_noise_step: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the distances from the values to the lower and upper interval ends.

        The multipliers are the half widths of intervals in standard errors. ``half_noise_step`` is
        half a step of the noise.
        """
        half = np.where(self.std > 0, half_noise_step, 0.0)
        if self.centre is not None:
            plain = two_sided_multiplier * self.noise_std + half
            moved = self.values - self.centre
            return np.maximum(plain + moved, 0.0), np.maximum(plain - moved, 0.0)
        margin = two_sided_multiplier * self.std + half
        if self.true_bounds is None:
            return margin, margin
        below = (
            self.values
            - self.true_bounds.lower
            + one_sided_multiplier * self.true_bounds.lower_std
            + half_noise_step
        )
        above = (
            self.true_bounds.upper
            - self.values
            + one_sided_multiplier * self.true_bounds.upper_std
            + half_noise_step
        )
        return np.maximum(margin, below), np.maximum(margin, above)


class Estimator(Protocol):
    """An object that estimates the answers to products of queries."""

    def estimate(self, product: Product) -> Answer:
        """Return the estimated answers to a product, with standard errors."""


Names = tuple[str, ...]
# An answer is public if its variance is at most this multiple of the tiny variance of public
# counts.
_PUBLIC_VARIANCE_RATIO = 2.0**10


@dataclass(frozen=True, eq=False)
class Estimate:
    """Least-squares estimates from the observation of a plan."""

    # Source: Cormode et al. (arXiv 1207.6096), generalised least squares.

    observation: Observation
    public: tuple[PublicCounts, ...] = ()
    library: str | None = None  # of data frames; not known here
    earlier_receipts: tuple[str, ...] = ()  # payments for measurements of earlier releases
    _cells: dict[str | None, Cells] = field(default_factory=dict, repr=False)
    _structures: dict[str | None, Structure] = field(default_factory=dict, repr=False)
    _linear: dict[Product, FloatArray] = field(default_factory=dict, repr=False)

    @property
    def receipts(self) -> tuple[str, ...]:
        """The receipts of all payments; an empty tuple if the noise was seeded."""
        receipt = self.observation.receipt
        return (receipt, *self.earlier_receipts) if receipt else ()

    def least_squares(self) -> "Estimate":
        """Return this estimate itself, as `HasLeastSquares` requires."""
        return self

    def for_observation(self, observation: Observation) -> "Estimate":
        """Return the estimate from another observation of the same plan.

        The other observation can be simulated. Parts that depend only on the plan are shared.
        """
        return Estimate(
            observation, self.public, _structures=self._structures, _linear=self._linear
        )

    def errors_for(self, noise: Sequence[IntArray]) -> "Estimate":
        """Return an estimate whose answers are the errors due to some noise.

        The noise consists of whole steps of the grid.
        """
        zeros = (
            replace(table, sums=replace(table.sums, counts=np.zeros_like(table.sums.counts)))
            for table in self.public
        )
        observation = Observation(self.observation.measurements, tuple(noise), "", private=False)
        return Estimate(observation, tuple(zeros), _structures=self._structures)

    def covariance_of(self, measure: str | None) -> Covariance:
        """Return the error covariance of counts (None) or of sums of a measure.

        The covariance object also decides which queries can be answered.
        """
        plan = self.observation.measurements
        return combine_structures(
            plan,
            measure,
            {quantity: self._structure(quantity) for quantity in centred_quantities(plan, measure)},
        )

    def _structure(self, quantity: str | None) -> Structure:
        """Return the cached covariance structure of counts or of a measure."""
        if quantity not in self._structures:
            exact = [table.block for table in self.public]
            self._structures[quantity] = quantity_structure(
                self.observation.measurements, quantity, exact
            )
        return self._structures[quantity]

    def solved_cells(self, quantity: str | None) -> Cells:
        """Return the least-squares cells of counts, a sum or a centred sum."""
        if quantity not in self._cells:
            measurements = self.observation.measurements
            values = self.observation.values
            parts = equations(measurements, quantity)
            measured = [
                NoisyBlock(
                    part.block, part.values(values[part.index]), measurements.grid, part.variance
                )
                for part in parts
            ]
            if quantity is None and self.public:
                variance = exact_variance(measurements)
                measured += [
                    NoisyBlock(table.block, table.sums.counts.reshape(-1), 1, variance)
                    for table in self.public
                ]
            self._cells[quantity] = self._structure(quantity).cells(measured)
        return self._cells[quantity]

    def marginal(self, names: Names, measure: str | None = None) -> FloatArray:
        """Return the estimated cells of a marginal, including hidden cells."""
        domain = self.observation.measurements.domain
        return self.values(table_of_all_cells(domain, names, measure))

    def cells(self, names: Names, measure: str | None = None) -> FloatArray:
        """Return the least-squares cells of a marginal of counts or a measure.

        Sums of these cells are correct only for queries that the measurements determine.
        """
        cells = np.asarray(0.0)
        for quantity, factor in centred_quantities(self.observation.measurements, measure).items():
            cells_of_quantity = self.solved_cells(quantity)
            cube = cells_of_quantity.marginal(
                tuple(name for name in names if name in cells_of_quantity.names)
            )
            for axis, name in enumerate(names):
                # No table has this attribute, so divide the counts evenly among its cells.
                if name not in cells_of_quantity.names:
                    size = self.observation.measurements.domain.kind(name).size
                    cube = np.repeat(np.expand_dims(cube / size, axis), size, axis)
            cells = np.asarray(cells + factor * cube)
        if measure is None:
            return shift_to_public_sums(cells, names, self.public)
        return cells

    def estimate(self, product: Product) -> Answer:
        """Return the least-squares answers to one product.

        The errors of the answers are the expected errors that the plan states.
        """
        return self.answers([product])[0]

    def std(self, measure: str | None, variances: FloatArray) -> FloatArray:
        """Return standard errors from variances; 0 if the answers are public."""
        if measure is None and self.public:
            variances = np.where(
                variances < _PUBLIC_VARIANCE_RATIO * exact_variance(self.observation.measurements),
                0.0,
                variances,
            )
        return np.sqrt(np.maximum(variances, 0.0))

    def values(self, product: Product) -> FloatArray:
        """Return the estimated answers without errors, shape ``product.shape``."""
        self.covariance_of(product.measure).require(product)
        return apply_along_axes(product.operators, self.cells(product.attributes, product.measure))

    def answers(self, products: Sequence[Product]) -> list[Answer]:
        """Return the answers to several products, in their order.

        Products with equal queries along their attributes are computed in one batch.
        """
        variances: dict[int, FloatArray] = {}
        values: dict[int, FloatArray] = {}
        # Many products use few distinct operators, so each operator object is hashed once.
        objects: dict[int, Operator] = {}
        for product in products:
            objects |= {id(operator): operator for operator in product.operators}
        equal: dict[Operator, int] = {}
        kinds = {key: equal.setdefault(operator, len(equal)) for key, operator in objects.items()}
        indices_by_shape: dict[tuple[object, ...], list[int]] = {}
        measures: dict[str | None, list[int]] = {}
        for index, product in enumerate(products):
            measures.setdefault(product.measure, []).append(index)
            indices_by_shape.setdefault(
                (product.measure, *[kinds[id(operator)] for operator in product.operators]), []
            ).append(index)
        for measure, indices in measures.items():
            all_variances = self.covariance_of(measure).variances_of(
                [products[index] for index in indices]
            )
            variances.update(zip(indices, all_variances, strict=True))
        for indices in indices_by_shape.values():
            stack = self._stacked(
                [products[index].attributes for index in indices], products[indices[0]].measure
            )
            values.update(
                zip(
                    indices,
                    apply_along_axes(products[indices[0]].operators, stack, first_axis=1),
                    strict=True,
                )
            )
        return [
            Answer(values[index], self.std(products[index].measure, variances[index]))
            for index in range(len(products))
        ]

    def _stacked(self, tables: Sequence[Names], measure: str | None) -> FloatArray:
        """Return the cells of tables of equal shape, stacked along a first axis."""
        if len(centred_quantities(self.observation.measurements, measure)) == 1 and not (
            measure is None and self.public
        ):
            cells_of_measure = self.solved_cells(measure)
            if {*chain.from_iterable(tables)} <= {*cells_of_measure.names}:
                return cells_of_measure.marginals(tables)
        return np.stack([self.cells(names, measure) for names in tables])

    def block_indices(self, measure: str | None) -> list[int]:
        """Return the indices of the blocks on counts (None) or on a measure."""
        measurements = self.observation.measurements
        indices: set[int] = set()
        for quantity in centred_quantities(measurements, measure):
            indices.update(entry.index for entry in equations(measurements, quantity))
        return sorted(indices)

    def answer_matrix(self, product: Product) -> FloatArray:
        """Return the matrix that maps noisy numbers to answers of a product.

        The matrix has one column for each noisy number of the blocks in ``block_indices``. The
        answers count rows or units, or are sums in the unit of the measure. Public counts add a
        constant to these answers. The matrix is shared with all estimates of `for_observation`.
        """
        return self.answer_matrices([product])[0]

    def answer_matrices(self, products: Sequence[Product]) -> list[FloatArray]:
        """Return the matrix of each product, as `answer_matrix` does for one."""
        missing = [product for product in products if product not in self._linear]
        blocks_of = {product: self.block_indices(product.measure) for product in missing}
        columns: dict[Product, list[FloatArray]] = {product: [] for product in missing}
        measurements = self.observation.measurements
        for index in sorted(set(chain.from_iterable(blocks_of.values()))):
            for row in range(measurements.blocks[index].rows):
                values = [np.zeros(block.rows, dtype=np.int64) for block in measurements.blocks]
                values[index][row] = measurements.grid
                errors = self.errors_for(values)
                for product, blocks in blocks_of.items():
                    if index in blocks:
                        columns[product].append(errors.values(product).reshape(-1))
        for product, columns_of_product in columns.items():
            self._linear[product] = np.stack(columns_of_product, axis=1)
        return [self._linear[product] for product in products]


def estimate_products(estimator: Estimator, products: Sequence[Product]) -> Iterable[Answer]:
    """Return the answers to several products, in their order.

    The answers are computed in one batch if that is faster.
    """
    if isinstance(estimator, Estimate):
        return estimator.answers(products)
    return map(estimator.estimate, products)


CatalogueText: TypeAlias = tuple[str, Mapping[str, object]]
"""A sentence of the catalogue of texts: its name and its placeholder values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The data-dependent choices of a mechanism, and the resulting estimator.

    The default has no choices and uses least squares.

    Attributes:
        linear: whether answers are unbiased least-squares estimates from queries that the plan
            fixed.
        answers_new_questions: whether least squares can answer queries outside the workload and
            state their errors. This holds if no measured query was chosen based on the noise of
            another.
        interval: the name of the text in the catalogue that says how ``low`` and ``high`` are
            computed.
        reading: the name of the text in the catalogue that explains the two errors.
    """

    linear: ClassVar[bool] = True
    answers_new_questions: ClassVar[bool] = True
    interval: ClassVar[str] = "interval"
    reading: ClassVar[str] = "reading"

    @property
    def executed_steps(self) -> CatalogueText:
        """The catalogue key of the text about the executed steps, with its values."""
        return "", {}

    def uncovered_errors(self, domain: Domain) -> list[CatalogueText]:  # noqa: ARG002 - no texts
        """Return the catalogue texts about errors that intervals do not cover."""
        return []

    def facts(self) -> dict[str, Any]:
        """Return the choices as a JSON object."""
        return {}

    # Least squares makes no choices for any workload.
    def quantile_choices(self, workload: Workload) -> dict[Statistic, IntArray]:  # noqa: ARG002
        """Return the cells chosen as quantiles, by statistic; by default none."""
        return {}

    def estimator(self, observation: Observation) -> Estimator:
        """Return the estimator that follows from the choices."""
        return Estimate(observation)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A plan with its noisy observation and the mechanism's finding."""

    plan: Plan
    observation: Observation
    finding: Finding = Finding()

    @cached_property
    def _least_squares(self) -> Estimate:
        """The least-squares estimate from the observation and public counts."""
        earlier = self.plan.earlier if isinstance(self.plan, LinearPlan) else ()
        receipts = tuple(chain.from_iterable(release.receipts for release in earlier))
        public = public_counts_of_plan(self.plan)
        return Estimate(self.observation, public, earlier_receipts=receipts)

    def least_squares(self) -> Estimate:
        """Return the cached least-squares estimate.

        All calls return the same object, whose covariance is computed once.
        """
        return self._least_squares

    @cached_property
    def _estimator(self) -> Estimator:
        """The estimator of the finding; least squares for linear mechanisms."""
        if self.finding.linear:
            return self.least_squares()
        return self.finding.estimator(self.observation)

    def estimator(self) -> Estimator:
        """Return the cached estimator of the answers.

        All calls return the same object, which fits its model once.
        """
        return self._estimator


def join_observations(observations: Sequence[Observation], privacy: Privacy) -> Observation:
    """Return the observations of several steps as one observation."""
    measurements = join_measurements(
        [observation.measurements for observation in observations], privacy
    )
    values: list[IntArray] = []
    for observation in observations:
        factor = measurements.grid // observation.measurements.grid
        values += [
            as_int32_if_exact(value.astype(np.int64) * factor) for value in observation.values
        ]
    return Observation(
        measurements, tuple(values), observations[0].receipt, private=observations[0].private
    )


def join_measurements(steps: Sequence[Measurements], privacy: Privacy) -> Measurements:
    """Return the measurements of several steps as one value.

    Call this function before the payment to check whether the steps can be joined.
    """
    grid = max(step.grid for step in steps)  # grids are powers of two
    return replace(
        steps[0],
        privacy=privacy,
        blocks=tuple(chain.from_iterable(step.blocks for step in steps)),
        grid=grid,
    )
