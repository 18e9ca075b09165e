"""The product form of the covariance, and its estimate.

The estimate is unbiased, has the least variance, and is consistent across all tables.

Along every attribute, a block either uses the attribute's common strategy or sums over the
attribute. Along one attribute, the blocks may use nested levels instead. Without levels, the
information matrix of all measurements is diagonal in the residual basis of the families
(docs/mathematics.md, section 1). Let tau be a set of attributes, p_B one over the noise variance of
block B, and S_B the attributes of B. Then

    lambda(tau) = sum over blocks B with S_B containing tau of p_B * prod over i in S_B but not in
    tau of 1 / kappa_i
    Var(q)      = sum over tau within T of 1 / lambda(tau)
                  * prod_{i in tau} q_i R_i q_i * prod_{i in T but not tau} (q_i mean_i)^2
    u(tau)      = 1 / lambda(tau) * sum over blocks B containing tau of
                  p_B * (R on tau, mean^T on S_B without tau) F_B^T diag(w^2) z_B

for a query q that is a product of q_i over the attributes T. The estimate of a marginal is the sum
of the components u(tau) whose attributes tau it contains, each spread over the other attributes by
the means. Each component is computed once, so the tables are consistent.

If an attribute has levels, every tau contains this attribute with all its cells, and lambda(tau) is
a matrix over these cells:

    X(tau) = sum over blocks B with S_B containing the rest of tau of p_B * prod of 1 / kappa_i as
    above * P_B^T diag(w^2) P_B

with P_B the groups of the block's level, which may have any sizes, and w the weights of the rows of
the block.

Source: ResidualPlanner (arXiv 2305.08175); Cormode et al. (arXiv 1207.6096), GReM (arXiv
    2410.01091).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, combinations, repeat
from itertools import product as product_of
from typing import Any, NamedTuple

import numpy as np

from leastnoise._error._equations import (
    Cells,
    Errors,
    Names,
    NoisyBlock,
    Structure,
    explained_subsets,
    is_nontrivial,
    measured_along,
    subsets,
)
from leastnoise._error._undetermined import are_multiples_of_total, undetermined_error
from leastnoise._families import (
    MOST_LISTED,
    CellsInverse,
    GramInverse,
    LevelInverse,
    Levels,
    UndeterminedQuery,
    excludes_total,
)
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._trusted.linop import AllRanges, Operator, Total, apply, apply_transpose, dense
from leastnoise._trusted.measurements import Block, Factor
from leastnoise._workload import AttributeQueries, Product, index_queries

Positions = tuple[int, ...]
"""Positions of some of the attributes of a block or a table."""
MOST_EXPLAINED = 10
"""The most attributes of a block whose subsets are listed."""
# Components that occur in more than this number of blocks are summed in one pass.
_MOST_SEPARATE_BLOCKS = 4
_MOST_TOGETHER = 2**20  # maximum number of array entries of blocks in one batch
_MOST_SORTED = 2**20  # maximum number of queries along all attributes whose rows are sorted
# A query's component along the total is treated as 0 below this fraction of its norm.
_ZERO_PART = 1e-7
_LEAST_BATCHED_PRODUCTS = 16  # from this number of products on, computing with arrays is faster


def _weighted_answers(factor: Factor, answers: FloatArray) -> FloatArray:
    """Return answers times squared row weights; the first axis has the rows."""
    cube = answers.reshape(factor.operator.rows, -1)
    if factor.even:
        return cube
    return cube * (factor.scaling**2)[:, None]


class ProductCells(Cells):
    """Residual components u(tau) of the estimate, computed when first needed.

    Components of many similar tables are computed in one batch.

    Only components that are small compared with the tables are stored: see ``_stacked_marginals``.
    """

    def __init__(self, structure: "ProductStructure", measured: Sequence[NoisyBlock]) -> None:
        self.structure = structure
        self.measured = measured
        self.names = tuple(structure.bases)
        self.sizes = {name: basis.size for name, basis in structure.bases.items()}
        self.components: dict[Names, FloatArray] = {}
        self._latest: tuple[tuple[Names, ...], FloatArray] | None = None
        # With levels, all components are computed in one sum.
        self._few = _MOST_SEPARATE_BLOCKS if structure.leveled_attribute is None else 0
        self._along = [
            measured_along(table.block, structure.leveled_attribute) for table in measured
        ]
        # Blocks of the same kind differ only in their attributes.
        equal: dict[object, int] = {}
        factors: dict[int, Factor] = {}
        for table in measured:
            factors |= {id(factor): factor for factor in table.block.factors}
        kind_of = {
            key: equal.setdefault(
                (factor.key(), id(structure.bases[factor.attributes[0]])), len(equal)
            )
            for key, factor in factors.items()
        }
        numbers: dict[object, int] = {}
        self._kinds = []
        for table in measured:
            factor_kinds = [kind_of[id(factor)] for factor in table.block.factors]
            table_kind = (table.grid, table.variance, *factor_kinds)
            self._kinds.append(numbers.setdefault(table_kind, len(numbers)))
        # First the blocks whose subsets are not listed. Then, for every tau, the other blocks that
        # contain tau.
        self._wide = [
            at
            for at, (names, across) in enumerate(self._along)
            if len(names) - len(across) > MOST_EXPLAINED
        ]
        self._containing: dict[Names, list[int]] = {}
        for at, attributes in enumerate(self._along):
            for tau in explained_subsets(*attributes) if at not in self._wide else ():
                self._containing.setdefault(tau, []).append(at)

    @cached_property
    def _shared(self) -> dict[Names, FloatArray]:
        """The residual components of attribute sets that many blocks contain.

        One pass over the blocks computes all of these components.
        """
        frequent = {tau for tau, numbers in self._containing.items() if len(numbers) > self._few}
        sums = {tau: np.zeros([self.sizes[name] for name in tau]) for tau in frequent}
        numbers_by_kind: dict[tuple[int, frozenset[Positions]], list[int]] = {}
        for number, (names, across) in enumerate(self._along):
            if number not in self._wide and (names != across or names in frequent):
                explained_taus = frozenset(
                    _positions(names, tau)
                    for tau in explained_subsets(names, across)
                    if tau in frequent
                )
                numbers_by_kind.setdefault((self._kinds[number], explained_taus), []).append(number)
        for (_, attributes), numbers in numbers_by_kind.items():
            for some in self._equal_batches(numbers):
                for axes, stack in self._parts(some, attributes).items():
                    for number, part in zip(some, stack, strict=True) if axes in attributes else ():
                        sums[_named(self._along[number][0], axes)] += (
                            part / self.measured[number].variance
                        )
        return sums

    def _equal_batches(self, block_indices: Sequence[int]) -> Iterator[Sequence[int]]:
        """Yield batches of blocks of equal shape that fit into the cache."""
        step = max(1, _MOST_TOGETHER // max(1, self.measured[block_indices[0]].block.rows))
        for start in range(0, len(block_indices), step):
            yield block_indices[start : start + step]

    def _components(self, taus: Sequence[Names], *, store: bool) -> FloatArray:
        """Return the residual component u(tau) of each attribute set, stacked.

        The attributes of all sets have the same bases.
        """
        new = [tau for tau in dict.fromkeys(taus) if tau not in self.components]
        if len(new) == len(taus) and not store:
            return self._compute_components(new)
        if new:
            computed = dict(zip(new, self._compute_components(new), strict=True))
        else:
            computed = {}
        if store:
            self.components.update(computed)
        parts = [computed[tau] if tau in computed else self.components[tau] for tau in taus]
        if parts[0].ndim == 0:
            return np.array(parts)
        return np.concatenate(parts).reshape(len(parts), *parts[0].shape)

    def _compute_components(self, taus: Sequence[Names]) -> FloatArray:
        """Return residual components of attribute sets from noisy blocks."""
        summed = np.zeros([len(taus), *(self.sizes[name] for name in taus[0])])
        groups: dict[tuple[int, int, Positions], tuple[list[int], list[int]]] = {}
        for row, tau in enumerate(taus):
            numbers = self._containing.get(tau, [])
            if len(numbers) > self._few:
                summed[row] = self._shared[tau]
                numbers = []
            within = [
                number
                for number in self._wide
                if set(self._along[number][1]) <= set(tau) <= set(self._along[number][0])
            ]
            for turn, number in enumerate(numbers + within):  # no tau occurs twice within a group
                rows, blocks = groups.setdefault(
                    (turn, self._kinds[number], _positions(self._along[number][0], tau)), ([], [])
                )
                rows.append(row)
                blocks.append(number)
        for (_, _, axes), (rows, blocks) in groups.items():
            blocks_done = 0
            for some in self._equal_batches(blocks):
                summed[rows[blocks_done : blocks_done + len(some)]] += (
                    self._parts(some, {axes})[axes] / self.measured[some[0]].variance
                )
                blocks_done += len(some)
        if self.structure.leveled_attribute is None:
            strengths = np.array([self.structure.precision_of(tau) for tau in taus])
            strengths[~(strengths > 0)] = 1.0
            return summed / strengths.reshape(-1, *[1] * (summed.ndim - 1))
        axis = taus[0].index(self.structure.leveled_attribute)
        for tau, part in zip(taus, summed, strict=True):
            inverse = self.structure.inverse(tau[:axis] + tau[axis + 1 :])
            if inverse is not None:
                part[:] = np.moveaxis(inverse.solve(np.moveaxis(part, axis, 0)), 0, axis)
        return summed

    def _parts(
        self, block_indices: Sequence[int], requested: AbstractSet[Positions]
    ) -> dict[Positions, FloatArray]:
        """Return the sums that blocks of equal shape add to residual components.

        The result has all requested attribute sets tau, and possibly others.
        """
        block = self.measured[block_indices[0]].block
        if len(requested) == 1:
            only = next(iter(requested))
        else:
            only = None
        every = tuple(range(len(self._along[block_indices[0]][0])))
        is_requested = every in requested
        # Every factor removes the first axis and appends its result as the last axis. In the end
        # the blocks are on the first axis, followed by their other axes in order.
        parts: dict[Positions, FloatArray] = {
            (): np.stack([self.measured[number].values for number in block_indices], axis=1)
        }
        shapes: dict[Positions, list[int]] = {(): [len(block_indices)]}
        at = 0
        for factor in block.factors:
            name = factor.attributes[0]
            is_leveled = name == self.structure.leveled_attribute
            if not (is_leveled or is_nontrivial(factor)):
                parts = {
                    tau: _weighted_answers(factor, flat).sum(axis=0) for tau, flat in parts.items()
                }
                continue
            basis = self.structure.bases[name]
            has_total = not (is_leveled or excludes_total(factor.operator))
            split: dict[Positions, FloatArray] = {}
            for tau, flat in parts.items():
                spread_cube = apply_transpose(factor.operator, _weighted_answers(factor, flat))
                if only is None:
                    needs_mean = True
                    needs_residual = is_requested or (*tau, at) != every
                else:
                    needs_mean = at not in only
                    needs_residual = at in only
                if has_total and needs_mean:
                    split[tau] = basis.mean @ spread_cube
                if needs_residual:
                    residual = spread_cube
                    if not is_leveled:
                        residual = basis.residual(spread_cube)
                    split[*tau, at] = residual.T
                    shapes[*tau, at] = [*shapes[tau], self.sizes[name]]
            parts = split
            at += 1
        return {tau: part.reshape(shapes[tau]) for tau, part in parts.items()}

    def marginals(self, tables: Sequence[Names]) -> FloatArray:
        """Return marginals of equal shape, stacked along a first axis.

        Tables whose attributes have the same bases in the same order are computed in one batch.
        """
        if self._latest is not None and self._latest[0] == (*tables,):
            return self._latest[1]
        tables_by_bases: dict[tuple[int, ...], list[int]] = {}
        for number, names in enumerate(tables):
            tables_by_bases.setdefault(
                tuple([id(self.structure.bases[name]) for name in self._with_leveled(names)]), []
            ).append(number)
        if len(tables_by_bases) > 1:
            answer = np.empty([len(tables), *(self.sizes[name] for name in tables[0])])
        else:
            answer = self._stacked_marginals(tables)
        for numbers in tables_by_bases.values() if len(tables_by_bases) > 1 else ():
            answer[numbers] = self._stacked_marginals([tables[number] for number in numbers])
        # The next call is often for another level of the same tables.
        if self.structure.leveled_attribute is not None:
            self._latest = (*tables,), answer
        return answer

    def _with_leveled(self, names: Names) -> Names:
        """Add the attribute with levels to some attribute names."""
        level = self.structure.leveled_attribute
        if level is None or level in names:
            return names
        return tuple(name for name in self.sizes if name == level or name in names)

    def _stacked_marginals(self, tables: Sequence[Names]) -> FloatArray:
        """Return stacked marginals of tables whose attributes have equal bases."""
        # Components of proper subsets are stored, because other tables also need them. The
        # component of a table's full set is about as large as the table, and a release of many
        # tables would store them all.
        level = self.structure.leveled_attribute
        with_levels = [*map(self._with_leveled, tables)]
        width = len(with_levels[0])
        sizes = [self.sizes[name] for name in with_levels[0]]
        if level is None:
            fixed = None
        else:
            fixed = with_levels[0].index(level)
        parts: dict[Positions, FloatArray] = {}
        for subset in _subsets(width):
            if fixed is None or fixed in subset:
                taus = [_named(names, subset) for names in with_levels]
                parts[subset] = self._components(
                    taus, store=len(subset) < width or width <= 1 or fixed is not None
                )
                if fixed is not None and level not in tables[0]:
                    parts[subset] = parts[subset].sum(axis=1 + subset.index(fixed), keepdims=True)
                    sizes[fixed] = 1
        for axis in range(width - 1, -1, -1):  # from the last to the first attribute
            mean = self.structure.bases[with_levels[0][axis]].mean
            later_sizes = sizes[axis + 1 :]
            for subset in _subsets(axis):
                if (*subset, axis) not in parts:
                    continue
                component = parts.pop((*subset, axis))
                if axis == fixed:
                    parts[subset] = component
                    continue
                part = parts[subset]
                before = part.shape[: len(subset) + 1]
                mean_part = part.reshape(*before, 1, *later_sizes) * mean.reshape(
                    -1, *[1] * len(later_sizes)
                )
                parts[subset] = np.add(mean_part, component, out=mean_part)
        # Return a copy, because the cached array must not be changed.
        answer = parts[()] if width else np.array(parts[()])
        return answer.reshape(len(tables), *(self.sizes[name] for name in tables[0]))


@cache
def _subsets(width: int) -> tuple[Positions, ...]:
    """Return all subsets of ``range(width)`` as tuples."""
    return tuple(chain.from_iterable(combinations(range(width), size) for size in range(width + 1)))


def _named(names: Names, positions: Positions) -> Names:
    """Return the attribute names at some positions."""
    return tuple([names[axis] for axis in positions])


def _positions(names: Names, tau: Names) -> Positions:
    """Return the position in ``names`` of each attribute of tau."""
    return tuple([names.index(name) for name in tau])


class ScaledInverse(NamedTuple):
    """The inverse 1 / lambda(tau) for tables without levels.

    The class has some of the methods of `LevelInverse`.
    """

    precision: float

    def variances(self, _: Operator) -> FloatArray:
        """Return the variance of the total, as an array of shape (1,)."""
        return np.array([1 / self.precision])

    def total_variance(self, _: Operator) -> float:
        """Return the variance of the total."""
        return 1 / self.precision

    def solve(self, v: FloatArray) -> FloatArray:
        """Return a vector divided by lambda(tau)."""
        return v / self.precision


@dataclass(frozen=True, eq=False)
class _QueryTerms:
    """The total and residual parts of the variances of queries q.

    The queries are along one attribute. The parts are (q mean)^2 and q R q.
    """

    squared_means: FloatArray
    residual_variances: FloatArray

    @cached_property
    def are_all_equal(self) -> bool:
        """Whether all queries have equal values."""
        return bool(
            (self.squared_means == self.squared_means[0]).all()
            and (self.residual_variances == self.residual_variances[0]).all()
        )

    @cached_property
    def largest_rows(self) -> FloatArray:
        """The pairs of values that no other pair exceeds in both values, (rows, 2).

        One of these rows has the largest variance.
        """
        order = np.argsort(-self.squared_means, kind="stable")
        above = np.maximum.accumulate(np.append(-1.0, self.residual_variances[order][:-1]))
        undominated = order[self.residual_variances[order] > above]
        return np.column_stack(
            (self.squared_means[undominated], self.residual_variances[undominated])
        )


@dataclass(frozen=True, slots=True, eq=False)
class ProductStructure(Structure):
    """Least squares for blocks with one strategy along each attribute.

    Attributes:
        bases: for each attribute, the inverse Gram matrix of the measured queries along it.
        precisions: for each tau, lambda or, with levels, the precision of each level or of each
            group of a level.
        wide_blocks: the blocks with many residual spaces, which are not in ``precisions``. Each is
            a tuple of its attributes, the attributes along which it excludes the total, and its
            precision.
        attributes_without_total: the attributes along which some table excludes the total.
        leveled_attribute: the attribute that has levels; None if no attribute has levels.
        levels: the levels of that attribute; None if no attribute has levels.
    """

    bases: Mapping[str, GramInverse]
    precisions: Mapping[Names, Any]
    wide_blocks: tuple[tuple[Names, Names, float], ...]
    attributes_without_total: frozenset[str]
    leveled_attribute: str | None = None
    levels: Levels | None = None
    _inverses: dict[Names, LevelInverse] = field(default_factory=dict, repr=False)
    _rows: dict[tuple[str, Operator], _QueryTerms] = field(default_factory=dict, repr=False)
    _sums: dict[tuple[str, Operator], tuple[float, float]] = field(default_factory=dict, repr=False)
    _needed: dict[tuple[str, Operator], tuple[bool, bool] | None] = field(
        default_factory=dict, repr=False
    )

    def require(self, product: Product) -> None:
        """Raise unless the measurements determine every query of a product."""
        queries, names, operators = self._split_queries(product)
        needed = [
            self._needs(name, operator) for name, operator in zip(names, operators, strict=True)
        ]
        for tau in subsets(names):
            # Some query has a component in tau if the following holds along every attribute: some
            # row has a component in the part that belongs to tau.
            is_determined = all(
                needs is None or needs[name in tau]
                for name, needs in zip(names, needed, strict=True)
            )
            if is_determined and (None in needed or not self._is_measured(tau, queries)):
                raise undetermined_error(product)

    def _needs(self, name: str, operator: Operator) -> tuple[bool, bool] | None:
        """Return whether queries need the total and the contrasts, or None.

        The queries are along one attribute.

        The result is None if the strategy does not determine a query.
        """
        key = (name, operator)
        if key not in self._needed:
            basis = self.bases[name]
            try:
                basis.determined(operator)
            except UndeterminedQuery:
                self._needed[key] = None
                return None
            # The total can be missing only along attributes whose total some block omits. The set
            # of all ranges includes single cells, some of which need the total.
            total = True
            if name in self.attributes_without_total and operator != AllRanges(basis.size):
                squares = CellsInverse.of_identity(basis.size).variances(operator) * (
                    basis.mean @ basis.mean
                )
                total = bool(
                    (self.rows(name, operator).squared_means > _ZERO_PART**2 * squares).any()
                )
            self._needed[key] = total, not are_multiples_of_total(operator)
        return self._needed[key]

    def _is_measured(self, tau: Names, queries: Operator) -> bool:
        """Return whether some block measures the space tau for some queries.

        Along the attribute with levels, the queries must be sums of its groups.
        """
        inverse = self.inverse(tau)
        return inverse is not None and (
            isinstance(inverse, ScaledInverse) or inverse.determines(queries)
        )

    def precision_of(self, tau: Names) -> float:
        """Return the precision lambda(tau) of a residual space; 0 if unmeasured."""
        total_strength = self.precisions.get(tau, 0.0)
        for names, across, precision in self.wide_blocks:
            if set(across) <= set(tau) <= set(names):
                total_strength += precision * math.prod(
                    1 / self.bases[name].kappa for name in names if name not in tau
                )
        return float(total_strength)

    def inverse(self, tau: Names) -> LevelInverse | ScaledInverse | None:
        """Return the inverse precision of a residual space; None if unmeasured.

        ``tau`` must not contain the attribute with levels. The result is None if no measured table
        contains tau.
        """
        if self.levels is None:
            strength = self.precision_of(tau)
            if strength > 0:
                return ScaledInverse(strength)
            return None
        if tau not in self._inverses and tau in self.precisions:
            self._inverses[tau] = LevelInverse(self.levels, tuple(self.precisions[tau]))
        return self._inverses.get(tau)

    def _split_queries(self, product: Product) -> tuple[Operator, Names, list[Operator]]:
        """Split a product's queries into queries on levels and other queries.

        The result has the level queries, and the names and the queries of the other attributes. If
        no attribute has levels, the level queries are only the total.
        """
        along = dict(zip(product.attributes, product.operators, strict=True))
        if self.leveled_attribute is None:
            queries = None
        else:
            queries = along.pop(self.leveled_attribute, None)
        return (
            queries or Total(1 if self.levels is None else self.levels.size),
            tuple(along),
            [*along.values()],
        )

    def rows(self, name: str, operator: Operator) -> _QueryTerms:
        """Return (q mean)^2 and q R q for each query q along an attribute."""
        key = (name, operator)
        if key not in self._rows:
            basis = self.bases[name]
            squares = apply(operator, basis.mean) ** 2
            self._rows[key] = _QueryTerms(
                squares, np.maximum(basis.variances(operator) - basis.kappa * squares, 0.0)
            )
        return self._rows[key]

    def sums(self, name: str, operator: Operator) -> tuple[float, float]:
        """Return the sums of (q mean)^2 and of q R q over all queries q."""
        key = (name, operator)
        if key not in self._sums:
            self._sums[key] = self.bases[name].split_sums(operator)
        return self._sums[key]

    def variances(self, product: Product) -> FloatArray:
        """Return the variance of each answer, shape ``product.shape``."""
        self.require(product)
        if (
            len(product.attributes) > 1
            and sum(product.shape) <= _MOST_SORTED
            and self._has_equal_variances(product)
        ):
            return np.full(product.shape, self.total(product) / product.rows)
        queries, names, operators = self._split_queries(product)
        each = [self.rows(name, operator) for name, operator in zip(names, operators, strict=True)]
        listed = self._answer_variances(
            queries,
            names,
            [np.column_stack((rows.squared_means, rows.residual_variances)) for rows in each],
        )
        if self.leveled_attribute in product.attributes:
            return np.moveaxis(listed, 0, product.attributes.index(self.leveled_attribute))
        return listed[0]

    def _answer_variances(
        self, level_queries: Operator, names: Names, row_parts: Sequence[FloatArray]
    ) -> FloatArray:
        """Return the variance of each answer from the terms of its queries.

        Args:
            level_queries: the queries along the attribute with levels, or a total.
            names: the other attributes.
            row_parts: for each of these attributes, two values of each row q: (q mean)^2 and q R q,
                shape (rows, 2).

        Returns:
            Variances of shape (queries, rows of the first attribute, ...).
        """
        total = np.zeros([level_queries.rows, *map(len, row_parts)])
        for tau in subsets(names):
            inverse = self.inverse(tau)
            if inverse is not None:  # otherwise no query has a component in this space
                term = inverse.variances(level_queries)
                for name, parts in zip(names, row_parts, strict=True):
                    term = np.multiply.outer(term, parts[:, 1 if name in tau else 0])
                total += term
        return total

    def errors(self, product: Product) -> Errors:
        """Return the sum and the maximum of the variances of the answers."""
        summed = self.total(product)
        queries, names, operators = self._split_queries(product)
        # Faster than searching for equal rows.
        if len(names) == 1 and self.levels is None and product.rows <= MOST_LISTED:
            # All variances are q G^-1 q over one precision.
            basis = self.bases[names[0]]
            precision = self.precision_of(names)
            is_single_block = precision > 0 and math.isclose(
                self.precision_of(()) * basis.kappa, precision, rel_tol=1e-12
            )
            if is_single_block:
                largest = basis.largest_closed_form(operators[0])
            else:
                largest = None
            return Errors(
                summed,
                float(self.variances(product).max()) if largest is None else largest / precision,
            )
        if sum(product.shape) > _MOST_SORTED and self.levels is None:
            return Errors(summed, self._variance_bound(product), is_exact=False)
        if self._has_equal_variances(product):
            return Errors(summed, summed / product.rows)
        row_parts = [
            self.rows(name, operator).largest_rows
            for name, operator in zip(names, operators, strict=True)
        ]
        exact = queries.rows * math.prod(map(len, row_parts)) <= MOST_LISTED
        if not exact and self.levels is None:
            return Errors(summed, self._variance_bound(product), is_exact=False)
        if not exact:  # a bound: the variance if every term had its largest value
            row_parts = [kind.max(axis=0, keepdims=True) for kind in row_parts]
        return Errors(summed, float(self._answer_variances(queries, names, row_parts).max()), exact)

    def variances_of(self, products: Sequence[Product]) -> list[FloatArray]:
        """Return the variances of each product, computed once for equal products."""
        pairs = zip(products, self._equal_errors(products), strict=True)
        return [
            self.variances(product)
            if equal_errors is None
            else np.full(product.shape, equal_errors.largest)
            for product, equal_errors in pairs
        ]

    def errors_of(self, products: Sequence[Product]) -> list[Errors]:
        """Return the errors of each product, computed once for equal products."""
        return [
            self.errors(product) if equal_errors is None else equal_errors
            for product, equal_errors in zip(products, self._equal_errors(products), strict=True)
        ]

    def _equal_errors(self, products: Sequence[Product]) -> Sequence[Errors | None]:
        """Return the errors of products with equal variances; None for others.

        Many products are computed in one batch.
        """
        if self.wide_blocks or self.levels is not None or len(products) < _LEAST_BATCHED_PRODUCTS:
            return [None] * len(products)
        query_index = index_queries(products)
        has_equal_rows = np.array(
            [self._has_equal_rows(each) for each in query_index.along], dtype=bool
        )
        errors: list[Errors | None] = [None] * len(products)
        parts = self._residual_sums(query_index.along, has_equal_rows)
        rows_along = np.array([each.operator.rows for each in query_index.along], dtype=np.int64)
        for numbers, sets in query_index.widths:
            is_equal = has_equal_rows[sets].all(axis=1)
            equal_numbers = numbers[is_equal].tolist()
            equal_sets = sets[is_equal]
            if not equal_numbers:
                continue
            totals, is_unmeasured = self._total_variances(query_index.along, equal_sets, parts)
            for at in np.flatnonzero(is_unmeasured).tolist():
                # An unmeasured component may not be needed.
                self.require(products[equal_numbers[at]])
            means = totals / rows_along[equal_sets].prod(axis=1, dtype=np.float64)
            for at, number in enumerate(equal_numbers):
                errors[number] = Errors(float(totals[at]), float(means[at]))
        return errors

    def _has_equal_rows(self, along: AttributeQueries) -> bool:
        """Return whether all queries along an attribute have equal variances."""
        return (
            along.operator.rows <= _MOST_SORTED
            and self._needs(along.name, along.operator) is not None
            and self.rows(along.name, along.operator).are_all_equal
        )

    def _residual_sums(
        self, query_list: Sequence[AttributeQueries], has_equal_rows: BoolArray
    ) -> FloatArray:
        """Return the sums of q_i R_i q_i and (q_i mean_i)^2 along attributes.

        Returns:
            The sums, shape (attribute queries, 2): [:, 1] for an attribute in tau, [:, 0] for
            another. They are 0 where ``has_equal_rows`` is False.
        """
        sums = np.zeros((len(query_list), 2))
        for index in np.flatnonzero(has_equal_rows).tolist():
            sums[index] = self.sums(query_list[index].name, query_list[index].operator)
        return sums

    def _total_variances(
        self, query_list: Sequence[AttributeQueries], sets: IntArray, parts: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """Return the sum of the variances of products of equally many attributes.

        Args:
            query_list: the queries along one attribute each.
            sets: positions in ``query_list``, shape (products, attributes of each).
            parts: the result of `_residual_sums`.

        Returns:
            The sums without the unmeasured components, and whether each product has such a
            component; both of shape (products,).
        """
        totals = np.zeros(len(sets))
        is_unmeasured = np.zeros(len(sets), dtype=bool)
        for tau in product_of((0, 1), repeat=sets.shape[1]):
            inside = [column for column, bit in enumerate(tau) if bit]
            strengths = self._precisions_of(query_list, sets[:, inside])
            term = np.ones(len(sets))
            for column, bit in enumerate(tau):
                term = term * parts[sets[:, column], bit]
            is_measured = strengths > 0
            is_unmeasured |= ~is_measured
            totals += np.divide(term, strengths, out=np.zeros(len(sets)), where=is_measured)
        return totals, is_unmeasured

    def _precisions_of(self, query_list: Sequence[AttributeQueries], rows: IntArray) -> FloatArray:
        """Return the precision lambda(tau) of each attribute set in ``rows``.

        A row represents an attribute set by positions in ``query_list``.
        """
        distinct = rows
        distinct_index = np.arange(len(rows))
        if rows.shape[1] <= 2:  # there are few distinct sets, which repeat
            codes = (rows * len(query_list) ** np.arange(rows.shape[1])).sum(axis=1, dtype=np.int64)
            _, first, distinct_index = np.unique(codes, return_index=True, return_inverse=True)
            distinct = rows[first]
        names = np.array([attribute_queries.name for attribute_queries in query_list], dtype=object)
        taus = map(tuple, names[distinct].tolist())
        precisions = np.fromiter(
            map(self.precisions.get, taus, repeat(0.0)), np.float64, len(distinct)
        )
        return precisions[distinct_index]

    def _variance_bound(self, product: Product) -> float:
        """Return an upper bound on the variances of a product's answers.

        The bound is derived in docs/mathematics.md, section 2.
        """
        strengths = {tau: self.precision_of(tau) for tau in subsets(product.attributes)}
        variances = []
        for tau, tau_strength in strengths.items():
            if tau_strength > 0:
                others = [name for name in product.attributes if name not in tau]
                kappa = math.prod(self.bases[name].kappa for name in others)
                variances.append(1 / (tau_strength * kappa))
        worst = max(variances)
        each = zip(product.attributes, product.operators, strict=True)
        return worst * math.prod(
            self.bases[name].largest_variance(operator) for name, operator in each
        )

    def _has_equal_variances(self, product: Product) -> bool:
        """Return whether all answers of a product have the same variance."""
        each = zip(product.attributes, product.operators, strict=True)
        return all(
            name != self.leveled_attribute and self.rows(name, operator).are_all_equal
            for name, operator in each
        )

    def total(self, product: Product) -> float:
        """Return the sum of the variances of a product's answers.

        The answers are not computed one by one.
        """
        self.require(product)
        queries, names, operators = self._split_queries(product)
        sums = [self.sums(name, operator) for name, operator in zip(names, operators, strict=True)]
        answer = 0.0
        for tau in subsets(names):
            inverse = self.inverse(tau)
            if inverse is not None:
                term = math.prod(
                    residual if name in tau else mean
                    for name, (mean, residual) in zip(names, sums, strict=True)
                )
                answer += term * inverse.total_variance(queries)
        return answer

    def covariance(self, product: Product, other: Product) -> FloatArray:
        """Return the covariance matrix between the answers of two products.

        Source: docs/mathematics.md, (3). If an attribute of tau belongs to only one of the tables,
            it contributes 1^T R = 0 to q M^+ q'^T.
        """
        self.require(product)
        self.require(other)
        operators: list[dict[str, Operator]] = [
            dict(zip(p.attributes, p.operators, strict=True)) for p in (product, other)
        ]
        names = [
            name
            for name in product.domain.names
            if name in operators[0] or name in operators[1] or name == self.leveled_attribute
        ]
        shared = tuple(
            name
            for name in names
            if name in operators[0] and name in operators[1] and name != self.leveled_attribute
        )
        rows = {}
        means = {}
        for name in names:
            base = self.bases[name]
            first, second = (
                dense(along.get(name, Total(base.size))).astype(float) for along in operators
            )
            rows[name] = [first, second]
            if name != self.leveled_attribute:
                means[name] = np.outer(first @ base.mean, second @ base.mean)
        spread_errors = {
            name: rows[name][0] @ self.bases[name].residual(rows[name][1].T) for name in shared
        }
        answer = np.zeros((product.rows, other.rows))
        for tau in subsets(shared):
            inverse = self.inverse(tau)
            if inverse is None:
                continue
            parts = {
                name: spread_errors[name] if name in tau else part for name, part in means.items()
            }
            if self.leveled_attribute is not None:
                parts[self.leveled_attribute] = rows[self.leveled_attribute][0] @ inverse.solve(
                    rows[self.leveled_attribute][1].T
                )
            if self.leveled_attribute is None:
                term = inverse.solve(np.ones((1, 1)))
            else:
                term = np.ones((1, 1))
            for name in names:
                term = np.asarray(np.kron(term, parts[name]), dtype=np.float64)
            answer += term
        return answer

    def cells(self, noisy_blocks: Sequence[NoisyBlock]) -> ProductCells:
        """Return the least-squares cells from noisy blocks."""
        if self.leveled_attribute is None:
            return ProductCells(self, noisy_blocks)
        # A block that sums over the attribute with levels gets a total along this attribute.
        total = {
            self.leveled_attribute: Factor(
                (self.leveled_attribute,), Total(self.bases[self.leveled_attribute].size)
            )
        }
        tables = []
        for table in noisy_blocks:
            factors = total | {factor.attributes[0]: factor for factor in table.block.factors}
            block = Block(
                tuple(factors[name] for name in self.bases if name in factors), table.block.scale
            )
            tables.append(NoisyBlock(block, table.grid_answers, table.grid, table.variance))
        return ProductCells(self, tables)
