"""Error bars of least squares that has no closed form: one solve a query, or a stated simulation of the noise.

Exact: Var(q) = q M^-1 q, one solve a query, for products of at most 2048 queries. Simulated: R draws of Gaussian noise with the variances
of the plan go through the same estimator. It is linear, so the error of an answer in one draw is exactly normal with the variance that is
sought, whatever the plan's own noise; the mean of its squares over R draws is that variance times chi^2_R / R. What is reported is the mean
divided by the 0.1% quantile of chi^2_R / R: too small with a probability of 1 in 1000, for every answer.

The draws come from a fixed public seed, so a release prints the error bars that its plan promised.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from leastnoise._accuracy._determined import Span, UnsupportedQuery, require, split, undetermined
from leastnoise._accuracy._form import JointCells, Measured, Structure
from leastnoise._accuracy._joint import Joint
from leastnoise._accuracy._memory import require_memory
from leastnoise._check.arrays import FloatArray
from leastnoise._families import Errors
from leastnoise._linop import Operator, Total, along, apply
from leastnoise._workload import Product

MOST_EXACT = 2048
_MOST_EXACT_NUMBERS = 2**28
_MOST_SIMULATED = 2**26
_MOST_COLUMNS = 2**20  # numbers in a batch of columns: what stays near the processor
_DRAWS = (16, 256)
_DRAWN_NUMBERS = 2**27
_DOUBT = 1e-3
_TOLERANCE = 1e-6  # a variance is wrong by the square of the solution's error
_SEED = 20240229


def repetitions(cells: int) -> int:
    """How many draws of the noise are simulated for a joint table."""
    return int(min(max(_DRAWN_NUMBERS // cells, _DRAWS[0]), _DRAWS[1]))


def confidence_factor(draws: int) -> float:
    """What a variance simulated with so many draws is multiplied with, to be too small with a probability of 1 in 1000."""
    from scipy.special import gammaincinv

    return float(draws / (2 * gammaincinv(draws / 2, _DOUBT)))


@dataclass(frozen=True, slots=True, eq=False)
class IterativeStructure(Structure):
    """Covariance of least squares by conjugate gradients, for blocks without a product form on more than 4096 joint cells."""

    joint: Joint
    span: Span | None = None
    _known: dict[Product, FloatArray] = field(default_factory=dict, repr=False)
    _draws: list[FloatArray] = field(default_factory=list, repr=False)

    def exact(self, product: Product) -> bool:
        """Whether the variances of a product are exact, not simulated."""
        return product.rows <= MOST_EXACT and product.rows * self.joint.cells <= _MOST_EXACT_NUMBERS

    def require(self, product: Product) -> None:
        """Refuse a product that the measurements do not determine."""
        if not require(self.span, product):
            inner, _, _ = split(product, self.joint.names)
            if inner not in self._known:
                self._mixed(inner, self.operators(inner))

    def variances(self, product: Product) -> FloatArray:
        """Variance of every answer of a product, shape ``product.shape``; conservative where it is simulated."""
        require(self.span, product)
        inner, shape, times = split(product, self.joint.names)
        if inner is not product:
            return self.variances(inner).reshape(shape) * times**2
        if product not in self._known:
            if not product.rows <= _MOST_SIMULATED:
                raise UnsupportedQuery(
                    f"The error bars of {product.name} would have to be simulated for each of its {product.rows} answers; at most "
                    f"{_MOST_SIMULATED} are allowed. Choose another strategy, or ask for fewer queries."
                )
            needed = 64 * max(product.rows, self.joint.cells)
            require_memory(needed, f"The error bars of {product.name} from a linear solver", "Choose another strategy.")
            operators = self.operators(product)
            found = self._exact(product, operators) if self.exact(product) else self._simulated(product, operators)
            self._known[product] = found.reshape(product.shape)
        return self._known[product]

    def errors(self, product: Product) -> Errors:
        """The sum and the largest of the variances of a product's answers."""
        found = self.variances(product)
        return Errors(float(found.sum()), float(found.max()))

    def total(self, product: Product) -> float:
        """Sum of the variances of a product's answers."""
        return float(self.variances(product).sum())

    @property
    def solver_cells(self) -> int:
        """The joint cells."""
        return self.joint.cells

    def covariance(self, one: Product, other: Product) -> FloatArray:
        """Not known."""
        raise UnsupportedQuery(
            f"Covariances of {one.name} and {other.name} are not known where estimates need a linear solver. Choose a strategy with a "
            "product form."
        )

    def cells(self, measured: Sequence[Measured]) -> JointCells:
        """By conjugate gradients."""
        gathered = self.joint.gather([one.values[:, None] for one in measured])
        return JointCells(self.joint.names, self.joint.solve(gathered, "the estimate")[:, 0].reshape(self.joint.shape))

    def operators(self, product: Product) -> list[Operator]:
        """One operator a joint attribute."""
        asked = dict(zip(product.attributes, product.operators, strict=True))
        if any(name not in self.joint.names for name in asked):
            raise undetermined(product)
        return [asked.get(name, Total(size)) for name, size in zip(self.joint.names, self.joint.shape, strict=True)]

    def _exact(self, product: Product, operators: list[Operator]) -> FloatArray:
        answer = np.empty(product.rows)
        shape = [operator.rows for operator in operators]
        step = max(1, _MOST_COLUMNS // self.joint.cells)
        for start in range(0, product.rows, step):
            places = np.arange(start, min(product.rows, start + step))
            unit = np.zeros((product.rows, len(places)))
            unit[places, np.arange(len(places))] = 1.0
            rows = self.joint.queries(operators, unit.reshape(*shape, -1))
            answer[places] = (rows * self.joint.solve(rows, product.name, _TOLERANCE)).sum(axis=0)
        return answer

    def _simulated(self, product: Product, operators: list[Operator]) -> FloatArray:
        self._mixed(product, operators)
        squares, count = np.zeros(product.rows), 0
        for drawn in self._errors():
            for column in drawn.T:
                cube = column.astype(float).reshape(self.joint.shape)
                for axis, operator in enumerate(operators):
                    cube = along(apply, operator, cube, axis)
                squares += cube.reshape(-1) ** 2
                count += 1
        return squares / count * confidence_factor(count)

    def _mixed(self, product: Product, operators: list[Operator]) -> None:
        """Refuse queries outside the span of the measurements, which would come out with too small a variance.

        A random combination of all queries lies in the span, with probability 1, only if every one of them does.
        """
        generator = np.random.default_rng(_SEED)
        mixed = self.joint.queries(operators, generator.standard_normal((*(operator.rows for operator in operators), 1)))
        self.joint.solve(mixed, product.name, _TOLERANCE)

    def _errors(self) -> list[FloatArray]:
        """Simulated errors of the joint cells, in batches of shape (cells, draws), float32 to save memory."""
        if not self._draws:
            generator = np.random.default_rng(_SEED)
            draws = repetitions(self.joint.cells)
            step = max(1, min(draws, _MOST_COLUMNS // max(self.joint.cells, *(block.rows for block, _ in self.joint.blocks))))
            for start in range(0, draws, step):
                columns = min(step, draws - start)
                values = []
                for block, variance in self.joint.blocks:
                    deviations = math.sqrt(variance) / block.scaling()
                    values.append(generator.standard_normal((block.rows, columns)) * deviations[:, None])
                self._draws.append(self.joint.solve(self.joint.gather(values), "its error bars", _TOLERANCE).astype(np.float32))
        return self._draws
