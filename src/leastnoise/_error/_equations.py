"""The queries that the blocks of a plan measure, and their noise.

Each equation is on the counts, or on the sums of a measure.

Some blocks measure both ends of a measure's values: a = sum of (v - low) + x and b = sum of (high -
v) + y with noise x and y. These measurements are split into counts, (a + b) / (high - low), and
*centred sums* of v minus the middle, (a - b) / 2. The noise of counts is uncorrelated with the
noise of centred sums. So counts and centred sums are estimated as if they had been measured
separately (docs/mathematics.md, section 8). The counts are counts of values if the domain has them
(`Domain.count_of`), otherwise counts of rows.

A group of blocks with K-norm noise is split into its total and the contrasts of every block. The
noise of these parts is uncorrelated (``_k_norm_law``).

`Covariance` is the interface of every form of the covariance of least squares. A `Structure` also
computes the estimate.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from leastnoise._domain import Domain, Measure
from leastnoise._error._k_norm_law import k_norm_variances
from leastnoise._error._noise_intervals import noise_variance
from leastnoise._families import excludes_total, group_contrasts
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import (
    Contrasts,
    Identity,
    Operator,
    SignedArray,
    Total,
    apply,
    dense,
)
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._workload import Product

Names = tuple[str, ...]
Quantity = str | None
"""None for counts of rows, or a measure for its sums. The sums are centred if distances from both
ends are measured."""
MOST_COVARIANCES = 2**24  # largest number of entries of a covariance matrix; 128 MiB of floats
_WHOLE = (1.0,)
_LEAST_VARIANCE = 1e-250  # smaller variances of noise are refused, because they protect nobody
# Integer noise of a smaller variance is 0 in practice. If weights differ by more digits than
# doubles have, least squares would lose the answers of the other tables.
_LEAST_WEIGHED_VARIANCE = 1e-9


def subsets(names: Names) -> Iterator[Names]:
    """Yield all subsets of some attribute names, smallest first."""
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def is_nontrivial(factor: Factor) -> bool:
    """Return whether a factor measures more than a total."""
    return not (factor.operator == Total(factor.operator.size) and factor.row_weights is None)


def measured_along(block: Block, leveled_attribute: str | None) -> tuple[Names, Names]:
    """Return a block's attributes, and those along which it omits the total.

    An attribute with levels is in both results, because every residual space tau contains it.
    """
    along = [(factor.attributes[0], factor) for factor in block.factors]
    names = tuple(
        name for name, factor in along if name == leveled_attribute or is_nontrivial(factor)
    )
    return names, tuple(
        name
        for name, factor in along
        if name == leveled_attribute or excludes_total(factor.operator)
    )


def explained_subsets(names: Names, required: Names) -> Iterator[Names]:
    """Yield all subsets of ``names`` that contain ``required``.

    The results are the sets tau whose residual spaces the block measures.
    """
    if not required:
        return subsets(names)
    free = tuple(name for name in names if name not in required)
    return _subsets_with(names, required, free)


def _subsets_with(names: Names, required: Names, optional: Names) -> Iterator[Names]:
    """Yield ``required`` joined with each subset of ``optional``."""
    for subset in subsets(optional):
        yield tuple(name for name in names if name in required or name in subset)


def block_variance(plan: Measurements, block: Block) -> float:
    """Return the noise variance of a query of weight 1 in a block.

    For a row of weight w, divide this variance by w^2. The result is at least 1e-9, which exceeds
    the true variance if the noise is almost always 0.
    """
    # The variance is exact if all rows have the same weight. Otherwise, for Laplace noise it is 2
    # b^2. This exceeds the exact variance by a relative amount below 1 / (12 b^2). Along contrasts
    # it is sigma^2, which the variance of the discrete Gaussian does not exceed.
    scale = float(block.scale)
    if block.k_norm_group is not None:
        group = plan.k_norm_groups()[block.k_norm_group]
        sizes = tuple(sorted(plan.blocks[index].rows for index in group))
        return _positive_variance(k_norm_variances(sizes, block.scale).cells[block.rows])
    variance = _positive_variance(noise_variance(plan.noise, scale, plan.grid))
    if any(factor.largest_square > 1 for factor in block.factors):
        return scale**2
    if plan.noise.norm == 1 and not all(factor.even for factor in block.factors):
        return 2 * scale**2
    return variance


def check_noise(plan: Measurements) -> None:
    """Raise if the noise of a block vanishes. Call this before the payment.

    Raises:
        InputError: the noise of a block is 0 in practice, because the budget is too large.
    """
    for group in plan.similar_blocks:
        block = group[0]
        scale = float(block.scale)
        if block.k_norm_group is None:
            name = f"the noise of {' x '.join(block.attributes) or 'the total'}"
            variance = noise_variance(plan.noise, scale, plan.grid)
        else:
            name = "K-norm noise"
            group_blocks = plan.k_norm_groups()[block.k_norm_group]
            sizes = tuple(sorted(plan.blocks[index].rows for index in group_blocks))
            variance = k_norm_variances(sizes, block.scale).total
        if not variance > _LEAST_VARIANCE:
            raise InputError(
                f"The budget is so large that {name} vanishes (a scale of {scale:.2g} rows), which "
                "protects nobody. Choose a smaller budget."
            )


def _positive_variance(variance: float) -> float:
    """Return a noise variance, or 1e-9 if it is smaller.

    Smaller variances would make least squares inaccurate.
    """
    return max(variance, _LEAST_WEIGHED_VARIANCE)


def block_rows(domain: Domain, names: Names, block: Block) -> FloatArray:
    """Return the weighted queries of a block as a dense matrix on joint cells.

    The result has shape (block.rows, cells).
    """
    rows: FloatArray = np.ones((1, 1))
    for factor in block.factors:
        rows = np.asarray(
            np.kron(rows, dense(factor.operator).astype(float) * factor.scaling[:, None]),
            dtype=np.float64,
        )
    order = [*block.attributes, *(name for name in names if name not in block.attributes)]
    sizes = [domain.kind(name).size for name in order]
    cube = np.broadcast_to(
        rows[..., None], (*rows.shape, math.prod(sizes) // rows.shape[1])
    ).reshape(len(rows), *sizes)
    return np.moveaxis(
        cube, [1 + order.index(name) for name in names], range(1, len(names) + 1)
    ).reshape(len(rows), -1)


@dataclass(frozen=True, slots=True, eq=False)
class Equations:
    """The observation equations of a block, for one quantity.

    ``block`` has the queries, and ``variance`` is the noise variance of a query of weight 1. The
    values of the equations are computed from the block's noisy answers in one of two ways: the
    answers are split into equal parts that are added with the weights ``end_shares``, or the
    operator ``combination`` is applied to the answers.
    """

    index: int
    block: Block
    variance: float
    end_shares: tuple[float, ...] = _WHOLE
    combination: Operator | None = None

    def values(self, noisy_answers: Any) -> FloatArray:
        """Return the values of the equations, from the block's noisy answers."""
        if self.combination is not None:
            return np.asarray(apply(self.combination, np.asarray(noisy_answers, dtype=np.float64)))
        if self.end_shares == _WHOLE:
            return np.asarray(noisy_answers)
        parts = zip(
            self.end_shares,
            np.split(np.asarray(noisy_answers, dtype=np.float64), len(self.end_shares)),
            strict=True,
        )
        return np.asarray(sum(share * part for share, part in parts))


def equations(
    plan: Measurements, quantity: Quantity, *, are_sums_centred: bool = True
) -> list[Equations]:
    """Return the equations of all blocks on a quantity, in plan order.

    If ``are_sums_centred`` is True, values minus the midpoint are summed.
    """

    def derived_quantity(block: Block) -> Quantity:
        """Return the count that the two sums of a block add up to, or its measure."""
        if block.ends:
            return plan.domain.count_of(str(block.measure))
        return block.measure

    groups = [
        group
        for group in plan.similar_blocks
        if quantity in (group[0].measure, derived_quantity(group[0]))
    ]
    if len({group[0].limits for group in groups if group[0].measure == quantity}) > 1:
        raise InputError(
            f"Sums of {quantity} under different limits have different biases and cannot be "
            "estimated together. Make a plan for each limit."
        )
    if len({group[0].ends for group in groups if group[0].measure == quantity}) > 1:
        raise InputError(
            f"Separate sums of {quantity} and distances from both ends of its values cannot be "
            "estimated together. Measure all of them in one of the two ways."
        )
    variances: dict[int, float] = {}
    for group in groups:
        if group[0].k_norm_group is None:
            variances.update(dict.fromkeys(map(id, group), block_variance(plan, group[0])))
    entries = [
        Equations(at, block, variances[id(block)])
        for at, block in enumerate(plan.blocks)
        if id(block) in variances
    ]
    if quantity is None:
        entries += _k_norm_equations(plan)
    return [
        _equations_of_distances(plan, quantity, entry, are_sums_centred=are_sums_centred)
        if entry.block.ends
        else entry
        for entry in entries
    ]


def _k_norm_equations(plan: Measurements) -> list[Equations]:
    """Return uncorrelated equations for all groups of K-norm noise.

    Each group has one equation for its total, from the first block of the group, and each block has
    equations for its contrasts.
    """
    parts: list[Equations] = []
    contrasts: dict[tuple[Names, Operator], _Contrasts] = {}
    for group in plan.k_norm_groups().values():
        first = plan.blocks[group[0]]
        sizes = tuple(sorted(plan.blocks[index].rows for index in group))
        variances = k_norm_variances(sizes, first.scale)
        total = Block((), first.scale)
        total_variance = _positive_variance(variances.total)
        parts.append(Equations(group[0], total, total_variance, combination=Total(first.rows)))
        for index in group:
            names = plan.blocks[index].attributes
            operator = plan.blocks[index].factors[0].operator
            size = operator.rows
            if size == 1:  # a single cell is the total
                continue
            if (names, operator) not in contrasts:
                contrasts[names, operator] = _contrasts(names, operator)
            part = contrasts[names, operator]
            parts.append(
                Equations(
                    index,
                    Block((part.factor,), first.scale),
                    _positive_variance(variances.contrast(size)) * part.relative_variance,
                    combination=part.of_rows,
                )
            )
    return parts


class _Contrasts(NamedTuple):
    """The contrasts between the rows of a block.

    Attributes:
        factor: the contrasts as queries on the attribute's cells.
        of_rows: the contrasts as queries on the rows of the block.
        relative_variance: the noise variance of a row, divided by the variance of a contrast of
            norm 1.
    """

    factor: Factor
    of_rows: Operator
    relative_variance: float


def _contrasts(names: Names, operator: Operator) -> _Contrasts:
    """Return the contrasts between the cells or groups of a block."""
    if type(operator) is Identity:
        each = Contrasts(operator.size)
        return _Contrasts(Factor(names, each), each, 1.0)
    groups = group_contrasts(operator)
    return _Contrasts(Factor(names, groups), groups.of_groups, float(operator.rows) ** 2)


def _equations_of_distances(
    plan: Measurements, quantity: Quantity, entry: Equations, *, are_sums_centred: bool
) -> Equations:
    """Return equations of a sum or a count, from distances from both bounds.

    The block sums the distances of a measure's values from both bounds.
    """
    block = entry.block
    shares: tuple[float, ...] = (0.5, -0.5)
    if block.measure != quantity:
        shares = (1 / float(plan.largest_values(block)[0]),) * 2
    elif not are_sums_centred:
        bounds = plan.domain.measure(str(quantity))
        shares = tuple(
            end / (bounds.high_units - bounds.low_units)
            for end in (bounds.high_units, bounds.low_units)
        )
    return Equations(
        entry.index,
        replace(block, ends=False),
        entry.variance * sum(share**2 for share in shares),
        shares,
    )


def centred_quantities(plan: Measurements, measure: Quantity) -> Mapping[Quantity, float]:
    """Return the quantities whose weighted sum is the sum of a measure.

    The result maps each quantity to its weight.
    """
    centred = centring_midpoint(plan, measure)
    if centred is None:
        return {measure: 1.0}
    return {measure: 1.0, plan.domain.count_of(str(measure)): centred}


def centring_midpoint(plan: Measurements, measure: Quantity) -> float | None:
    """Return the midpoint that is subtracted before summation, or None.

    The midpoint is in units of the measure. The result is None if the sums are not centred.
    """
    if measure is None or not any(block.ends and block.measure == measure for block in plan.blocks):
        return None
    return midpoint(plan.domain.measure(measure))


def midpoint(measure: Measure) -> float:
    """Return the middle of the bounds of a measure, in units."""
    return (measure.low_units + measure.high_units) / 2


class NoisyBlock(NamedTuple):
    """The noisy answers of a block, as multiples of 1 / grid."""

    block: Block
    grid_answers: SignedArray | FloatArray
    grid: int
    variance: float

    @property
    def values(self) -> FloatArray:
        """The noisy answers in rows, or in units of the measure."""
        return self.grid_answers / self.grid


class Errors(NamedTuple):
    """The sum and the maximum of the variances of answers.

    If ``is_exact`` is False, ``largest`` is an upper bound on the largest variance.
    """

    total: float
    largest: float
    is_exact: bool = True


class Cells(ABC):
    """Least-squares estimates of cells.

    Single cells may be arbitrary: only answers to queries that the measurements determine are
    meaningful.
    """

    __slots__ = ()

    names: Names  # along all other attributes, all cells have equal values

    @abstractmethod
    def marginals(self, tables: Sequence[Names]) -> FloatArray:
        """Return marginals of equal shape, stacked along a first axis.

        Each marginal is on some of ``names``. Do not write to the array.
        """

    def marginal(self, names: Names) -> FloatArray:
        """Return the cells of one marginal as a read-only array."""
        return np.asarray(self.marginals([names])[0])


@dataclass(frozen=True, slots=True, eq=False)
class JointCells(Cells):
    """Estimated cells, stored as one joint table."""

    names: Names
    table: FloatArray

    def marginals(self, tables: Sequence[Names]) -> FloatArray:
        """Return the marginals of the tables, stacked along a new first axis."""
        without = [self._summed_axes(names) for names in tables]
        if len(without) > 1:
            return np.stack([self.table.sum(axis=axes) for axes in without])
        return self.table.sum(axis=without[0])[None]

    def _summed_axes(self, names: Names) -> tuple[int, ...]:
        """Return the axes to sum over for a marginal."""
        return tuple(axis for axis, name in enumerate(self.names) if name not in names)


class Covariance(ABC):
    """The covariance of least-squares answers about one quantity.

    Every method raises an error for a product that the measurements do not determine.
    """

    __slots__ = ()

    @property
    def solver_cells(self) -> int:
        """The number of joint cells that the linear solver for errors needs, or 0.

        The number is 0 if no solver is needed.

        The number is 0 if no linear solver is needed.
        """
        return 0

    @abstractmethod
    def require(self, product: Product) -> None:
        """Raise unless the measurements determine every query of a product."""

    @abstractmethod
    def variances(self, product: Product) -> FloatArray:
        """Return the variance of each answer, shape ``product.shape``."""

    def variances_of(self, products: Sequence[Product]) -> list[FloatArray]:
        """Return the variances of the answers to each product."""
        return [self.variances(product) for product in products]

    @abstractmethod
    def errors(self, product: Product) -> Errors:
        """Return the sum and the maximum of the variances of a product's answers."""

    def errors_of(self, products: Sequence[Product]) -> list[Errors]:
        """Return the sum and the maximum of the variances for each product."""
        return [self.errors(product) for product in products]

    @abstractmethod
    def total(self, product: Product) -> float:
        """Return the sum of the variances of a product's answers."""

    @abstractmethod
    def covariance(self, product: Product, other: Product) -> FloatArray:
        """Return the covariance matrix between the answers of two products.

        The result has shape (product.rows, other.rows).
        """


class Structure(Covariance):
    """A covariance that can also compute the least-squares estimate."""

    __slots__ = ()

    @abstractmethod
    def cells(self, noisy_blocks: Sequence[NoisyBlock]) -> Cells:
        """Return the least-squares cells from noisy blocks.

        The blocks are in the order of the plan.
        """


def covariances(
    structure: Covariance, product: Product, other: Product | None = None
) -> FloatArray:
    """Return the covariance matrix of the answers of one or two tables."""
    if other is None:
        second = product
    else:
        second = other
    if product.measure != second.measure:
        raise InputError(
            "Covariances can be computed only between tables of the same measure; got "
            f"{product.name} and {second.name}. Request them one by one."
        )
    if product.rows * second.rows > MOST_COVARIANCES:
        raise InputError(
            f"At most {MOST_COVARIANCES} covariances can be listed together; got {product.rows} x "
            f"{second.rows}. Ask for smaller tables."
        )
    return structure.covariance(product, second)
