"""The integer queries of a plan and their noise.

Measurements are frozen public values. The kernel receives no other part of a plan.

The labels (M5 ...) refer to PROOFS-cost.md, (J1) to PROOFS-shared-total.md, in this folder.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain

import numpy as np

from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.check import InputError, exact_positive, plain, refuse, whole
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.domain import (
    DeviationProduct,
    Domain,
    Measure,
    PerUnit,
    SquaredDeviation,
)
from leastnoise._trusted.linop import (
    Contrasts,
    Operator,
    is_partition,
    operator_classes,
    sealed_copy,
)
from leastnoise._trusted.measurements.helpers._headroom import check_headroom

_MOST_BOUND = 2**53 - 1  # the largest bound of a measure, in units
# Cells of a group with K-norm noise, and of one of its tables. The points of its balls are counted
# in whole numbers. The time grows with cells^2 times the largest table: 5 CPU seconds for 4 tables
# of 256 cells, 133 for 2 of 1000.
MOST_K_NORM_CELLS = 2**10
MOST_K_NORM_TABLE = 2**8


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Upper limits on the amounts that rows add to a sum.

    A value above its limit counts as the limit.

    A row's limit is the limit of its cell. So a query filters its rows first and then clips their
    values. Rows that the query does not contain never change its answer. The kernel enforces the
    limits, and the cost of a plan depends on them.

    Args:
        values: whole numbers of at least 0, at least one of them above 0, in units of the measure.
            There is one number for each cell of the attribute, or a single number. After
            construction this is a read-only int64 array.
        attribute: the attribute to whose cells the limits belong; it need not be among the
            attributes of a block. None means one limit for all rows.

    Raises:
        InputError: the values have another type, or there are several values and no attribute.

    >>> Limits([100, 250, 250], "age").values.tolist(), Limits([250]).attribute
    ([100, 250, 250], None)
    """

    values: IntArray
    attribute: str | None = None

    def __post_init__(self) -> None:
        values = np.array(self.values)
        if values.dtype.kind not in "iu" or values.ndim != 1 or not values.size:
            raise refuse(
                "limits",
                f"{values.dtype} array of shape {values.shape}",
                "a flat array of whole numbers",
            )
        low = int(values.min())
        high = int(values.max())
        if not (low >= 0 and 1 <= high <= _MOST_BOUND):
            raise refuse(
                "limits", f"{low} to {high}", "from 0 to 2^53 - 1 units, one of them at least 1"
            )
        if self.attribute is None and values.size != 1:
            raise refuse(
                "limits without an attribute",
                f"{values.size} values",
                "one value",
                "Name the attribute whose cells they are for.",
            )
        object.__setattr__(self, "attribute", plain(self.attribute))
        object.__setattr__(self, "values", sealed_copy(values.astype(np.int64)))

    def key(self) -> tuple[str | None, bytes]:
        """Return a hashable key; equal limits have equal keys."""
        return self.attribute, self.values.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Limits) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())


MOST_SCALE_TERM = 2**56  # of scales times coefficients: integers of samplers stay within 64 bits


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Integer queries over the row-major cells of some attributes.

    Args:
        attributes: names in the order of the domain.
        operator: the queries, over the product of the attributes' cells.
        row_weights: None, or whole numbers from 1 to 2^20, one for each row. The noise scale of a
            row of the operator is divided by the row's weight. Contrasts have no row weights: the
            noise scales of their rows are multiplied by their norms.
    """

    attributes: tuple[str, ...]
    operator: Operator
    row_weights: IntArray | None = None
    # Computed once, because plans with many blocks use them for every block.
    heaviest: int = field(default=1, init=False, repr=False)
    largest_square: int = field(default=1, init=False, repr=False)
    _hash: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(map(plain, self.attributes)))
        if self.row_weights is not None:
            if isinstance(self.operator, Contrasts):
                raise refuse(
                    "row_weights of contrasts",
                    "an array",
                    "None; the noise of a contrast is proportional to its norm",
                )
            weights = np.array(self.row_weights)
            if weights.dtype.kind not in "iu":
                raise refuse("row_weights", str(weights.dtype), "whole numbers")
            weights = weights.astype(np.int64)
            if weights.shape != (self.operator.rows,) or not (
                weights.min() >= 1 and weights.max() <= 2**20
            ):
                received = f"{weights.shape} from {weights.min()} to {weights.max()}"
                raise refuse(
                    "row_weights", received, f"{self.operator.rows} whole numbers from 1 to 2^20"
                )
            object.__setattr__(self, "row_weights", sealed_copy(weights))
            object.__setattr__(self, "heaviest", int(self.weights.max()))
        # All other operators have a square of 1 for each row, which is not stored here.
        if isinstance(self.operator, Contrasts):
            object.__setattr__(self, "largest_square", int(self.squares.max()))
        object.__setattr__(self, "_hash", hash((self.attributes, self.key())))

    @property
    def weights(self) -> IntArray:
        """The row weights; an array of ones if there are none."""
        if self.row_weights is None:
            return np.ones(self.operator.rows, dtype=np.int64)
        return self.row_weights

    @property
    def squares(self) -> IntArray:
        """The factors that multiply the noise variance of each query, int64, (rows,).

        The factors are the squared norms of contrasts, and ones for other operators.
        """
        if isinstance(self.operator, Contrasts):
            return self.operator.squared_norms
        return np.ones(self.operator.rows, dtype=np.int64)

    @property
    def even(self) -> bool:
        """Whether all queries of the factor have the same noise scale."""
        return self.row_weights is None and not isinstance(self.operator, Contrasts)

    @property
    def scaling(self) -> FloatArray:
        """The block's noise scale divided by the noise scale of each query.

        The quotient is the weight of the query divided by its norm; a float array of shape (rows,).
        """
        return np.asarray(self.weights / np.sqrt(self.squares), dtype=np.float64)

    def key(self) -> tuple[Operator, bytes]:
        """Return a hashable key; equal queries and weights have equal keys."""
        return self.operator, b"" if self.row_weights is None else self.row_weights.tobytes()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Factor)
            and self.attributes == other.attributes
            and self.key() == other.key()
        )

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Block:
    """The product of some factors, measured with one noise scale.

    The block sums over all attributes that are in no factor.

    Args:
        factors: factors on disjoint attributes. All attributes together are in the order of the
            domain. An empty tuple measures the total.
        scale: the exact noise scale of a query of weight 1, in rows (or in units of the measure).
        measure: the measure that is summed; None for counts.
        limits: None, or limits on the amount that a row may add to the sum, within the bounds of
            the measure.
        ends: whether to sum the distances of the values v from both bounds of the measure, instead
            of v. In this case, every query is measured twice: first on the sums of v - low, then on
            the sums of high - v. Whatever v is, a row adds high - low to the two sums together. If
            the domain counts the values of the measure, a row without a value adds nothing.
            Otherwise such a row counts as v = 0.
        k_norm_group: None if the noise of every query is independent. Otherwise the number of the
            group of blocks that draw their noise together, as K-norm noise (J1). Each block of such
            a group counts the rows in every cell of one attribute, or in every group of a partition
            of its cells. So all blocks have the same total, and the noise of their totals is the
            same. The probability of noise z is proportional to exp(-|z| / scale). Here |z| is the
            largest block norm: the sum of absolute values of one block.
    """

    factors: tuple[Factor, ...]
    scale: Fraction
    measure: str | None = None
    limits: Limits | None = None
    ends: bool = False
    k_norm_group: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(self.factors))
        # Exact and of Python's integers: cost and noise are computed from the same number, and
        # nothing wraps around.
        object.__setattr__(self, "scale", exact_positive("scale", self.scale))
        if self.k_norm_group is not None:
            number = whole("k_norm_group", self.k_norm_group, 0)
            object.__setattr__(self, "k_norm_group", number)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of all factors."""
        return tuple(chain.from_iterable(factor.attributes for factor in self.factors))

    @property
    def copies(self) -> int:
        """The number of times that each query is measured.

        The number is 2 if the block measures distances from both ends, and 1 otherwise.
        """
        return 2 if self.ends else 1

    @property
    def rows(self) -> int:
        """Number of measured queries."""
        return math.prod((factor.operator.rows for factor in self.factors), start=self.copies)

    def row_weights(self) -> IntArray:
        """Return the product of the factors' row weights, shape (rows,)."""
        return _repeated_outer_product([factor.weights for factor in self.factors], self.copies)

    def scaling(self) -> FloatArray:
        """Return the block's noise scale divided by the noise scale of each query.

        The result is a float array of shape (rows,).
        """
        return np.asarray(self.row_weights() / np.sqrt(self.row_squares()), dtype=np.float64)

    def row_squares(self) -> IntArray:
        """Return the product of the factors' squared norms, shape (rows,)."""
        return _repeated_outer_product([factor.squares for factor in self.factors], self.copies)


def _repeated_outer_product(parts: Sequence[IntArray], copies: int) -> IntArray:
    """Flatten the outer product of arrays, and repeat it ``copies`` times."""
    whole_product = np.ones(copies, dtype=np.int64)
    for part in parts:
        whole_product = np.multiply.outer(whole_product, part).reshape(-1)
    return whole_product


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The queries that a plan measures, their noise and their budget.

    The kernel receives no other part of a plan.

    Args:
        domain: the public domain.
        privacy: the budget that the queries may cost, the neighbours and the privacy unit.
        noise: the kind of noise of every row.
        blocks: the queries.
        grid: a power of two; noisy answers are multiples of 1 / grid.

    Attributes:
        factors: the distinct factors of all blocks.
        similar_blocks: the blocks, in groups that differ only in their attributes. The blocks of a
            group have the same scale, measure, limits and ends, and their factors at each position
            have the same operator and weights.

    Raises:
        InputError: a query is outside the domain; a scale cannot be drawn exactly; or public bounds
            are too large for exact arithmetic.
    """

    domain: Domain
    privacy: Privacy
    noise: Noise
    blocks: tuple[Block, ...]
    grid: int = 1
    # Even very many blocks form few groups; checks and costs are computed once for each group.
    factors: tuple[Factor, ...] = field(default=(), init=False, repr=False, compare=False)
    similar_blocks: tuple[tuple[Block, ...], ...] = field(
        default=(), init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        grid = whole("grid", self.grid, 1, 2**20)
        if grid & (grid - 1):
            raise refuse("grid", grid, "a power of two")
        # M6: These are copies in Python's immutable types, so that checked values cannot change
        # before they are measured.
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "blocks", tuple(self.blocks))
        if not self.blocks:
            raise InputError("At least one query must be measured; got no blocks.")
        self._check_types()
        object.__setattr__(self, "factors", tuple(dict.fromkeys(self._factor_objects().values())))
        for factor in self.factors:
            self._check_factor(factor)
        object.__setattr__(self, "similar_blocks", self._group_blocks())
        for block, *_ in self.similar_blocks:
            self._check_block(block)
        self.check_k_norm_groups()

    def _factor_objects(self) -> dict[int, Factor]:
        """Return the distinct factor objects of the blocks, by their `id`."""
        return {id(factor): factor for block in self.blocks for factor in block.factors}

    def _check_factor(self, factor: Factor) -> None:
        """Raise unless a factor fits attributes of the domain and their cells."""
        if not all(name in self.domain.names for name in factor.attributes):
            raise self._attributes_error(factor.attributes)
        cells = math.prod(map(self.domain.cells, factor.attributes))
        if not factor.attributes or factor.operator.size != cells:
            description = f"the {cells} cells of {', '.join(factor.attributes) or 'no attribute'}"
            raise refuse("the size of an operator", factor.operator.size, description)

    def _attributes_error(self, attributes: Sequence[str]) -> InputError:
        """Return the error for attributes that are unknown or in the wrong order."""
        return refuse(
            "the attributes of a block",
            list(attributes),
            "attributes of the domain, each once, in its order",
        )

    def _group_blocks(self) -> tuple[tuple[Block, ...], ...]:
        """Return the blocks in groups that differ only in their attributes.

        An InputError is raised for a block that repeats an attribute, or whose attributes are not
        in the order of the domain.
        """
        positions = {name: index for index, name in enumerate(self.domain.names)}
        objects = self._factor_objects()
        keys = {factor.key() for factor in self.factors}
        numbers = {key: number for number, key in enumerate(keys)}
        kinds = {index: numbers[factor.key()] for index, factor in objects.items()}
        positions_of = {
            index: [positions[name] for name in factor.attributes]
            for index, factor in objects.items()
        }
        blocks_by_form: dict[tuple[object, ...], list[Block]] = {}
        for block in self.blocks:
            order = list(chain.from_iterable(positions_of[id(factor)] for factor in block.factors))
            if order != sorted(set(order)):
                raise self._attributes_error(block.attributes)
            kind = (
                block.scale.as_integer_ratio(),
                block.measure,
                block.limits,
                block.ends,
                block.k_norm_group,
                *[kinds[id(factor)] for factor in block.factors],
            )
            blocks_by_form.setdefault(kind, []).append(block)
        return tuple(map(tuple, blocks_by_form.values()))

    def k_norm_groups(self) -> dict[int, list[int]]:
        """Return the indices of the blocks of every group of K-norm noise (J1)."""
        groups: dict[int, list[int]] = {}
        for index, block in enumerate(self.blocks):
            if block.k_norm_group is not None:
                groups.setdefault(block.k_norm_group, []).append(index)
        return groups

    def check_k_norm_groups(self) -> None:
        """Raise unless every group of K-norm noise satisfies J1.

        `cost` calls this method again, because it computes the cost of a group without looking at
        the queries of its blocks.

        Raises:
            InputError: a block does not count the rows in every cell of one attribute, or in every
                group of a partition of its cells; or the blocks have several scales, another kind
                of noise, or too many cells.
        """
        for group in self.k_norm_groups().values():
            self._check_k_norm_group(group)

    # J1
    def _check_k_norm_group(self, group: Sequence[int]) -> None:
        """Raise unless a group of blocks may share one draw of K-norm noise."""
        blocks = [self.blocks[index] for index in group]
        if self.noise is not Noise.DISCRETE_LAPLACE or self.grid != 1:
            raise refuse(
                "the noise of blocks with a k_norm_group",
                f"{self.noise.value} on a grid of {self.grid}",
                f"{Noise.DISCRETE_LAPLACE.value} on a grid of 1",
            )
        for block in blocks:
            if not (
                len(block.factors) == 1
                and len(block.attributes) == 1
                and is_partition(block.factors[0].operator)
                and block.factors[0].row_weights is None
                and (block.measure, block.limits, block.ends) == (None, None, False)
            ):
                raise refuse(
                    "a block with a k_norm_group",
                    f"one of {block.measure or 'counts'} by "
                    f"{' x '.join(block.attributes) or 'none'}",
                    "the counts of rows in every cell of one attribute, or in groups that contain "
                    "each cell exactly once, without row weights",
                )
        if len({block.scale for block in blocks}) > 1:
            raise refuse("the scales of a k_norm_group", "several", "one for all its blocks")
        largest_table = max(block.rows for block in blocks)
        if not largest_table <= MOST_K_NORM_TABLE:
            raise refuse(
                "the cells of a table with a k_norm_group",
                largest_table,
                f"at most {MOST_K_NORM_TABLE}",
                "Measure it without a group.",
            )
        cells = sum(block.rows for block in blocks)
        if not cells <= MOST_K_NORM_CELLS:
            raise refuse(
                "the cells of a k_norm_group",
                cells,
                f"at most {MOST_K_NORM_CELLS}",
                "Measure its tables in several groups.",
            )

    def _check_types(self) -> None:
        """Raise unless every part is exactly of its expected class (M6).

        The answers of an object of another class could change between the check and the
        measurement.
        """
        factors = [
            *chain.from_iterable(block.factors for block in self.blocks if type(block) is Block)
        ]
        for description, values, kinds in (
            ("the domain of measurements", [self.domain], (Domain,)),
            ("the noise of measurements", [self.noise], (Noise,)),
            ("the privacy of measurements", [self.privacy], (Privacy,)),
            ("the blocks of measurements", self.blocks, (Block,)),
            ("the factors of a block", factors, (Factor,)),
            (
                "the limits of a block",
                [block.limits for block in self.blocks if type(block) is Block],
                (Limits, type(None)),
            ),
            (
                "the measure of a block",
                [block.measure for block in self.blocks if type(block) is Block],
                (str, type(None)),
            ),
            (
                "the ends of a block",
                [block.ends for block in self.blocks if type(block) is Block],
                (bool,),
            ),
            (
                "the operator of a factor",
                [factor.operator for factor in factors if type(factor) is Factor],
                operator_classes(),
            ),
        ):
            if unexpected_types := {*map(type, values)} - {*kinds}:
                raise refuse(
                    description,
                    ", ".join(sorted(kind.__name__ for kind in unexpected_types)),
                    " or ".join(kind.__name__ for kind in kinds),
                )

    # M7
    def _check_block(self, block: Block) -> None:
        """Raise if a block does not fit the domain or the unit."""
        self._check_measure(block)
        if block.limits is not None:
            self._check_limits(block, block.limits)
        check_headroom(
            block,
            self.domain.largest_value(block.measure),
            int(self.largest_values(block).max()),
            self.grid,
        )
        self._check_scale(block, self._checked_square(block))

    def _check_measure(self, block: Block) -> None:
        """Raise if a block cannot sum its measure or the distances from its bounds."""
        if block.measure is None:
            summed = None
        elif block.measure in self.domain.measures:
            summed = self.domain.measure(block.measure)
        else:
            raise refuse("the measure of a block", block.measure, "a measure of the domain")
        if block.ends:
            self._check_both_ends(block, summed)
        if isinstance(summed, PerUnit):
            self._check_unit_amounts(block)

    def _check_both_ends(self, block: Block, summed: Measure | None) -> None:
        """Raise unless a block may sum the distances from both bounds of its measure."""
        is_of_values = type(summed) in (DeviationProduct, Measure, SquaredDeviation)
        has_ends = is_of_values and block.limits is None
        if summed is None or not has_ends:
            raise refuse(
                "the quantity of a block with ends",
                "counts or limited sums",
                "a measure without limits",
                "Name only the measure.",
            )
        has_counts = self.domain.count_of(str(block.measure)) is not None
        if not has_counts and not summed.low_units <= 0 <= summed.high_units:
            raise refuse(
                "the measure of a block with ends",
                repr(summed),
                "a measure whose values are counted, or may be 0",
            )

    def _check_unit_amounts(self, block: Block) -> None:
        """Raise if a sum of units' amounts has limits, or if every row is a unit."""
        if self.privacy.unit_column is None:
            excluded = "rows"
        elif block.limits is not None:
            excluded = "limits"
        else:
            return
        raise refuse(
            "a sum of amounts of units",
            f"one of {excluded}",
            "a plain sum, where a column names the units",
            "Count rows instead.",
        )

    def _checked_square(self, block: Block) -> int:
        """Return the largest squared norm of a block's contrasts, or 1 without any.

        An InputError is raised if the noise of contrasts cannot be drawn.
        """
        square = math.prod(factor.largest_square for factor in block.factors)
        if square > 1 and self.noise.norm == 1:
            raise InputError(
                "Contrasts need Gaussian noise: a budget for Laplace noise is not spent evenly on "
                "them. Measure cells instead."
            )
        if not square < 2**52:
            raise refuse(
                "the largest squared norm of a product of contrasts",
                square,
                "below 2^52",
                "Measure fewer or shorter attributes.",
            )
        return square

    def _check_scale(self, block: Block, square: int) -> None:
        """Raise unless a block's noise can be drawn exactly at its scale."""
        heaviest = math.prod(factor.heaviest for factor in block.factors)
        fine = block.scale * self.grid
        # Roots of squared norms have at most 26 bits after the binary point, and are below 2^27
        # then (``row_scales``).
        if square == 1:
            root, below = 1, 1
        else:
            root, below = 2**27, 2**26
        if not (
            fine.numerator * root < MOST_SCALE_TERM
            and fine.denominator * below * heaviest < MOST_SCALE_TERM
        ):
            raise refuse(
                "scale",
                str(block.scale),
                "a fraction whose terms, with grid and row weights, stay below 2^56",
            )

    def _check_limits(self, block: Block, limits: Limits) -> None:
        """Raise if a block's limits do not fit its measure and attribute."""
        if block.measure is None:
            raise refuse(
                "the limits of a block of counts",
                "limits",
                "None",
                "Name the measure whose sums are limited.",
            )
        name = limits.attribute
        values = limits.values
        if name is not None and len(values) != self.domain.cells(name):
            allowed = f"one for each of the {self.domain.cells(name)} cells of {name}"
            raise refuse("the limits of a block", f"{len(values)} values", allowed)
        most = self.domain.measure(block.measure).high_units
        if not int(values.max()) <= most:
            raise refuse(
                "the limits of a block",
                int(values.max()),
                f"at most the upper bound of {block.measure}, {most} units",
            )

    def largest_values(self, block: Block) -> IntArray:
        """Return the largest change of a block's sums by one row, as int64.

        The result has one number for each limit, or a single number without limits.

        A limit clips amounts from above and is at least 0. It leaves a lower bound below 0
        unchanged. For distances from both ends, the change is the sum of the two distances.
        """
        if block.ends and block.measure is not None:
            measure = self.domain.measure(block.measure)
            return np.array([measure.high_units - measure.low_units], dtype=np.int64)
        if block.measure is None or block.limits is None:
            return np.array([self.domain.largest_value(block.measure)], dtype=np.int64)
        return np.maximum(
            block.limits.values, -min(self.domain.measure(block.measure).low_units, 0)
        )

    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the attributes and measures that must be read for the queries.

        Both are in the order of the domain.
        """
        limited = {
            group[0].limits.attribute
            for group in self.similar_blocks
            if group[0].limits is not None
        }
        attributes = limited.union(*(factor.attributes for factor in self.factors))
        measures = {group[0].measure for group in self.similar_blocks}
        measures |= {
            self.domain.count_of(group[0].measure)
            for group in self.similar_blocks
            if group[0].ends and group[0].measure
        }
        return tuple(name for name in self.domain.names if name in attributes), tuple(
            name for name in self.domain.measures if name in measures
        )


def row_scales(block: Block, grid: int) -> tuple[IntArray, IntArray]:
    """Return each query's noise scale in grid steps: numerators, denominators.

    The scales are in multiples of 1 / grid.

    Args:
        block: a block that a plan has accepted, so that all terms are below 2^56.
        grid: the plan's grid.

    Returns:
        The numerators and the denominators, two int64 arrays of shape (block.rows,).

    Guarantees: the scales are exact if the block has no contrasts. Along contrasts a scale is at
        least the exact value, and exceeds it by a relative 2^-24 at most.

    >>> top, bottom = row_scales(Block((Factor(("a",), Contrasts(3)),), Fraction(1)), 1)
    >>> (top / bottom).round(6).tolist()
    [1.414214, 2.44949]
    """
    fine = block.scale * grid
    # If all rows are equal, one of them is computed.
    weights, squares = (
        scales[:1] if (scales == scales[0]).all() else scales
        for scales in (block.row_weights(), block.row_squares())
    )
    # Their bits are exact: squares are below 2^52.
    shifts = np.where(
        squares == 1, 0, (54 - np.frexp(squares.astype(np.float64))[1].astype(np.int64)) // 2
    )
    tops = fine.numerator * _integer_root_up(squares << (2 * shifts))
    bottoms = (fine.denominator << shifts) * weights
    return np.broadcast_to(tops, block.rows), np.broadcast_to(bottoms, block.rows)


def _integer_root_up(values: IntArray) -> IntArray:
    """Return the smallest integers whose squares are at least the values.

    All values are below 2^54.
    """
    # The float is within one of the root; the decision is made in integers.
    root = np.sqrt(values.astype(np.float64)).astype(np.int64)
    root = root - (root * root > values)
    root = root + ((root + 1) * (root + 1) <= values)
    return np.asarray(root + (root * root < values), dtype=np.int64)
