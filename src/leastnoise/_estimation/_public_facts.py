"""Public facts about cells: impossible combinations and public counts.

The spec states these facts, which are public and not protected.

Least squares treats public counts as observations without noise. Non-negative tables are scaled to
the public sums by iterative proportional fitting (Deming and Stephan 1940), which keeps zeros.
Tables of whole numbers are the nearest tables that have these sums.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations
from typing import Any, TypeAlias

import numpy as np

from leastnoise._domain import Domain
from leastnoise._families import partition_groups
from leastnoise._plan import Plan, parse_or_refuse
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import Array, BoolArray, FloatArray, IntArray
from leastnoise._trusted.measurements import Block, Factor
from leastnoise._workload import Product, from_json

Names: TypeAlias = tuple[str, ...]
# For each attribute, the codes that cannot occur together with the codes of the others.
Combination: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
_MOST_SHOWN = 5  # maximum number of counts in a message
_MOST_FITTING_ROUNDS = 1000  # maximum number of rounds of proportional fitting
_SUM_TOLERANCE = 1e-10  # the relative error at which a sum counts as met
# The least size of a cell that can be scaled up, relative to the mean cell.
_LEAST_SCALABLE_SHARE = 1e-6


def read_combinations(
    domain: Domain, facts: Iterable[Mapping[str, Sequence[int]]]
) -> tuple[Combination, ...]:
    """Read and check the impossible combinations in a plan's details.

    The plan may come from a file.
    """
    checked_combinations = tuple(
        tuple((name, tuple(codes)) for name, codes in fact.items()) for fact in facts
    )
    for name, codes in chain.from_iterable(checked_combinations):
        if (
            name not in domain.names
            or not codes
            or not set(codes) <= set(range(domain.kind(name).size))
        ):
            raise InputError(
                f"The plan names impossible values of {name} that the domain does not have. Make "
                "the plan again."
            )
    return checked_combinations


@dataclass(frozen=True, slots=True, eq=False)
class KnownSums:
    """Known sums over groups of the cells of a table.

    ``groups`` has, for each attribute, the number of every cell's group, and ``counts`` has the sum
    in each combination of groups.
    """

    names: Names
    groups: tuple[IntArray, ...]
    counts: FloatArray

    def marginal(self, names: Names) -> "KnownSums":
        """Return the known sums of a marginal of the table."""
        summed = tuple(axis for axis, name in enumerate(self.names) if name not in names)
        return KnownSums(
            names,
            tuple(self.groups[self.names.index(name)] for name in names),
            self.counts.sum(axis=summed),
        )

    def sum_cells(self, cells: FloatArray) -> FloatArray:
        """Return the sum of the cells in each combination of groups."""
        sums = np.zeros(self.counts.shape)
        np.add.at(sums, np.ix_(*self.groups), cells)
        return sums

    def repeat_for_cells(self, values: Array) -> Array:
        """Return an array of cells; each cell has the value of its group."""
        return values[np.ix_(*self.groups)]

    @property
    def has_single_cells(self) -> bool:
        """Whether every group is a single cell."""
        return all(int(groups.max()) + 1 == len(groups) for groups in self.groups)


@dataclass(frozen=True, slots=True, eq=False)
class PublicCounts:
    """A table with public counts: its queries, and the known answers.

    The queries partition the cells of each attribute.
    """

    product: Product
    sums: KnownSums

    @property
    def block(self) -> Block:
        """The queries of the public counts as a block of a plan."""
        return Block(
            tuple(
                Factor((name,), query)
                for name, query in zip(self.product.attributes, self.product.operators, strict=True)
            ),
            Fraction(1),
        )

    def determines(self, product: Product) -> bool:
        """Return whether the public counts determine every answer of a product.

        The result is True in two cases: the count of every cell of the product's attributes is
        public, or the product counts the same groups as the public counts.
        """
        sets = dict(zip(self.product.attributes, self.product.query_sets, strict=True))
        if not set(product.attributes) <= set(sets):
            return False
        public_sets = tuple(sets[name] for name in product.attributes)
        has_public_cells = self.sums.marginal(product.attributes).has_single_cells
        return has_public_cells or product.query_sets == public_sets

    @property
    def rows(self) -> int:
        """The total number of rows."""
        return int(self.sums.counts.sum())


def replace_groups(sums: KnownSums, groups: Mapping[str, IntArray]) -> KnownSums | None:
    """Convert known sums to other groups of cells; None if groups overlap.

    The result is None if a group only partly overlaps the cells of a sum.

    Args:
        sums: known sums of cells.
        groups: the group of every cell, by attribute.
    """
    names = tuple(name for name in sums.names if name in groups)
    part = sums.marginal(names)
    maps = []
    counts = part.counts
    for axis, (name, known) in enumerate(zip(part.names, part.groups, strict=True)):
        _, first = np.unique(groups[name], return_index=True)
        known_groups = known[first]
        if np.array_equal(known_groups[groups[name]], known):
            maps.append(known_groups)
            continue
        _, first_known = np.unique(known, return_index=True)
        coarser = groups[name][first_known]
        if not np.array_equal(coarser[known], groups[name]):
            return None
        summed = np.zeros((len(first), *np.delete(counts.shape, axis)))
        np.add.at(summed, coarser, np.moveaxis(counts, axis, 0))
        counts = np.moveaxis(summed, 0, axis)
        maps.append(np.arange(len(first)))
    return KnownSums(names, tuple(maps), counts)


def _unusable_counts(product: Product, values: Any) -> InputError:
    """Return the error for public counts that are not an integer per cell."""
    if product.rows == 1:
        allowed = "one whole number of at least 0"
    else:
        allowed = f"{product.rows} whole numbers of at least 0, in the order of its cells"
    if values.size == product.rows:
        received = ", ".join(map(str, values.reshape(-1)[:_MOST_SHOWN].tolist()))
    else:
        received = f"{values.size} of them"
    return InputError(f"Public counts of {product.name} must be {allowed}; got {received}.")


def public_counts(product: Product, counts: Any) -> PublicCounts:
    """Return the public counts of a table, checked against its domain.

    The counts must be whole numbers of at least 0, for groups that partition each attribute.
    """
    groups = []
    for name, operator in zip(product.attributes, product.operators, strict=True):
        if (divided := partition_groups(operator)) is None:
            raise InputError(
                f"Public counts must be for the cells of {name}, or for groups in which each cell "
                "occurs exactly once, such as the groups of a level."
            )
        groups.append(divided)
    values = np.asarray(counts)
    if values.size != product.rows or values.dtype.kind not in "iu" or (values < 0).any():
        raise _unusable_counts(product, values)
    return PublicCounts(
        product,
        KnownSums(
            product.attributes, tuple(groups), values.reshape(product.shape).astype(np.float64)
        ),
    )


def read_public(domain: Domain, facts: Iterable[Mapping[str, Any]]) -> tuple[PublicCounts, ...]:
    """Read and check the public counts in a plan's details.

    Public counts that follow from other public counts are dropped. All counts must be consistent.
    The plan may come from a file.
    """
    tables = [
        public_counts(from_json(domain, [entry["table"]]).products[0], entry["counts"])
        for entry in facts
    ]
    follow = set[int]()
    for (first, table), (second, other) in combinations(enumerate(tables), 2):
        listed = f"{table.product.name} and {other.product.name}"
        sums = [
            (index, _coarsen_counts(fine.sums, coarse.sums), coarse)
            for fine, index, coarse in ((table, second, other), (other, first, table))
        ]
        public_tables = [
            (index, counts, coarse.sums.counts)
            for index, counts, coarse in sums
            if counts is not None
        ]
        if table.rows != other.rows or (
            public_tables and not np.array_equal(public_tables[0][1], public_tables[0][2])
        ):
            raise InputError(
                f"Public counts must agree; the public counts of {listed} do not. Correct them."
            )
        follow.update(index for index, *_ in public_tables[:1])
        if not public_tables and set(table.sums.names) & set(other.sums.names):
            raise InputError(
                "Tables of public counts must share no attribute, or one of them must follow from "
                f"the other; got {listed}. Leave one of them out."
            )
    return tuple(table for index, table in enumerate(tables) if index not in follow)


def public_counts_of_plan(plan: Plan) -> tuple[PublicCounts, ...]:
    """Return the public counts that were stated for a plan."""
    return parse_or_refuse(
        lambda: read_public(plan.domain, plan.details.public),
        "list of public counts",
        "Make the plan again.",
    )


def _coarsen_counts(fine: KnownSums, coarse: KnownSums) -> FloatArray | None:
    """Sum counts of fine groups to coarse groups; None if groups overlap."""
    if not set(coarse.names) <= set(fine.names):
        return None
    finer = fine.marginal(coarse.names)
    maps = []
    for groups, wide in zip(finer.groups, coarse.groups, strict=True):
        to = np.zeros(int(groups.max()) + 1, dtype=np.int64)
        to[groups] = wide
        if not np.array_equal(to[groups], wide):
            return None
        maps.append(to)
    return KnownSums(coarse.names, tuple(maps), coarse.counts).sum_cells(finer.counts)


def possible_cells(
    impossible: Sequence[Combination], names: Sequence[str], shape: Sequence[int]
) -> BoolArray:
    """Return whether each cell of a table may contain rows.

    The possible cells are all cells except impossible combinations of values of the table's
    attributes.
    """
    possible = np.ones(shape, dtype=bool)
    for combination in impossible:
        codes = dict(combination)
        if set(codes) <= set(names):
            possible[
                np.ix_(
                    *(codes.get(name, range(size)) for name, size in zip(names, shape, strict=True))
                )
            ] = False
    return possible


def apply_public_facts(
    cells_of_table: Callable[[Names], FloatArray],
    names: Names,
    impossible: Sequence[Combination],
    public: Sequence[PublicCounts] = (),
) -> FloatArray:
    """Set impossible cells of a table to 0, and scale it to the public sums.

    If the table is summed along an attribute, the sums equal the cells of the table without this
    attribute.
    """
    known_sums = [
        counts.sums.marginal(names) for counts in public if set(names) <= set(counts.sums.names)
    ]
    for sums in known_sums:
        if sums.has_single_cells:
            return sums.repeat_for_cells(sums.counts)
    cells = cells_of_table(names)
    possible = possible_cells(impossible, names, cells.shape)
    if possible.all() and not any(set(names) & set(counts.sums.names) for counts in public):
        return cells
    smaller = [
        apply_public_facts(cells_of_table, names[:axis] + names[axis + 1 :], impossible, public)
        for axis in range(len(names))
    ]
    cells = np.where(
        possible,
        np.maximum(cells, _LEAST_SCALABLE_SHARE * float(smaller[0].sum()) / cells.size),
        0.0,
    )
    for axis, counts in enumerate(smaller):
        groups = tuple(
            np.zeros(size, dtype=np.int64) if at == axis else np.arange(size)
            for at, size in enumerate(cells.shape)
        )
        known_sums.insert(axis, KnownSums(names, groups, np.expand_dims(counts, axis)))
    return _with_sums(cells, known_sums)


def _with_sums(cells: FloatArray, known_sums: Sequence[KnownSums]) -> FloatArray:
    """Scale cells by proportional fitting until they have the known sums."""
    total = float(known_sums[0].counts.sum())
    for _ in range(_MOST_FITTING_ROUNDS):
        off = 0.0
        for target in known_sums:
            sums = target.sum_cells(cells)
            off = max(off, float(np.abs(sums - target.counts).max()))
            cells = cells * target.repeat_for_cells(
                np.where(sums > 0, target.counts / np.where(sums > 0, sums, 1.0), 0.0)
            )
        if off <= _SUM_TOLERANCE * total:
            break
    return cells


def public_sums_within(
    names: Names, shape: Sequence[int], public: Sequence[PublicCounts]
) -> list[KnownSums]:
    """Return the public sums that constrain the cells of a table.

    The table may have further attributes.
    """
    within = []
    for table in public:
        part = table.sums.marginal(tuple(name for name in names if name in table.sums.names))
        groups_of = dict(zip(part.names, part.groups, strict=True))
        if len(part.names) or len(public) == 1:
            groups = tuple(
                groups_of.get(name, np.zeros(size, dtype=np.int64))
                for name, size in zip(names, shape, strict=True)
            )
            counts = part.counts.reshape(
                [
                    part.counts.shape[part.names.index(name)] if name in groups_of else 1
                    for name in names
                ]
            )
            within.append(KnownSums(names, groups, counts))
    return within


def shift_to_public_sums(
    cells: FloatArray, names: Names, public: Sequence[PublicCounts]
) -> FloatArray:
    """Shift cells within groups such that they have the public sums exactly.

    Before the shift, the sums may be off by at most a millionth of the noise.
    """
    known_sums = public_sums_within(names, cells.shape, public)
    # The tables have no attribute in common, so correcting one changes only the total of the
    # others.
    for _ in range(len(known_sums)):
        for target in known_sums:
            cells_per_group = target.sum_cells(np.ones(cells.shape))
            cells = cells + target.repeat_for_cells(
                (target.counts - target.sum_cells(cells)) / cells_per_group
            )
    return cells


def scale_to_public_sums(
    cells: FloatArray, product: Product, public: Sequence[PublicCounts]
) -> FloatArray:
    """Return non-negative cells scaled to the public sums."""
    known_sums = public_sums_within(product.attributes, cells.shape, public)
    floor = _LEAST_SCALABLE_SHARE * public[0].rows / cells.size
    if known_sums:
        return _with_sums(np.maximum(cells, floor), known_sums)
    return cells


def round_to_public_sums(
    cells: FloatArray, product: Product, public: Sequence[PublicCounts]
) -> IntArray:
    """Round cells to integers that have the public sums.

    Where no sums are public, the rounded cells add up to the rounded total.
    """
    everything = tuple(np.zeros(size, dtype=np.int64) for size in cells.shape)
    total = KnownSums(
        product.attributes, everything, np.rint(cells.sum()).reshape((1,) * cells.ndim)
    )
    known_sums = public_sums_within(product.attributes, cells.shape, public) or [total]
    floors = np.array(np.floor(cells + _SUM_TOLERANCE), order="C")
    up = (cells - floors).reshape(-1)
    positions = np.arange(cells.size)
    rows = [
        np.asarray(
            target.repeat_for_cells(np.arange(target.counts.size).reshape(target.counts.shape))
        ).reshape(-1)
        for target in known_sums
    ]
    if len(known_sums) == 1:  # round up the cells with the largest remainders in every group
        order = np.lexsort((-up, rows[0]))
        lacking = np.rint(known_sums[0].counts - known_sums[0].sum_cells(floors)).reshape(-1)
        begins = np.searchsorted(rows[0][order], np.arange(len(lacking)))
        raised = positions - begins[rows[0][order]] < lacking[rows[0][order]]
        floors.reshape(-1)[order[raised]] += 1
        return floors.astype(np.int64)
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import csr_array

    bounds = []
    for row, target in zip(rows, known_sums, strict=True):
        shape = (target.counts.size, cells.size)
        sums = csr_array((np.ones(cells.size), (row, positions)), shape)
        missing = (target.counts - target.sum_cells(floors)).reshape(-1)
        bounds.append(LinearConstraint(sums, missing, missing))
    solution = milp(-up, integrality=np.ones(cells.size), bounds=(0, 1), constraints=bounds)
    return np.asarray(np.rint(floors.reshape(-1) + solution.x), dtype=np.int64).reshape(cells.shape)
