"""Whole, non-negative tables that add up, computed from the total downwards.

One table has the cells; all other tables are sums of these cells. The table with the cells is
refined attribute by attribute and level by level. A step splits the groups of one attribute (for
example the counties of a state). Each parent's cells are divided among its children in two stages.

1. Non-negative least squares. With x the children's cells and u their unbiased estimates,

       minimise    1/2 sum over components c of w(c) |P(c) (x - u)|^2
       subject to  x >= 0, the children add up to the parent's cells, public counts hold,
                   impossible cells are 0

   The components are the sums over all other attributes, and the differences along each set of
   these attributes (level by level, where they have levels). P(c) is the projection on a component,
   and 1/w(c) its variance given the parent. The method is the alternating direction method of
   multipliers (ADMM). The steps use a basis of the components, in which all equations hold exactly;
   clipping makes the inequalities hold.

2. Controlled rounding (Cox 1987). Each cell is rounded down or up such that the children add up to
   the parent's whole cells and the public counts hold. If the tables are nested, the sums of a
   child's cells that other tables need are also rounded down or up. The objective of the linear
   program favours the nearest whole number for each cell. The sums over children are a nested
   family of sets, and so are the sums over cells. So the matrix of the program is totally
   unimodular, and its vertices have integer coordinates.

Such a division always exists. If an impossible combination does not name the attribute of a step,
its cells are already 0 in the parent. If an impossible combination names the attribute of a step
and this attribute also has public counts, an error is raised.

Source: the order of steps and the two stages are from TopDown (Abowd et al., arXiv 2204.08986);
    ADMM: Boyd et al. 2011. The weights of the components come from this project. With these
    weights, each table counts in a step according to its precision.
"""

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np

from leastnoise._domain import UnitCount
from leastnoise._estimation._least_squares import Estimator
from leastnoise._estimation._non_negative import (
    ConsistentCells,
    finest_table,
    public_sums_on,
)
from leastnoise._estimation._public_facts import (
    Combination,
    PublicCounts,
)
from leastnoise._estimation._top_down_facts import list_possible_cells, list_public_sums
from leastnoise._estimation._top_down_nearest import Components, LeastSquaresProblem
from leastnoise._estimation._top_down_rounding import SumConstraints, round_children, scale_to_sums
from leastnoise._estimation._top_down_steps import SplitStep, list_steps
from leastnoise._families import partition_groups
from leastnoise._trusted.check import InputError, message, refuse
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._workload import Product

MOST_TOP_DOWN_CELLS = 2**23
"""The most cells of the finest table; all other tables are sums of it."""
MOST_CELLS_ALONG = 2048
"""The most cells along every attribute but the largest, because each has a dense basis."""
MOST_CELLS_OF_SMALLER = 2**16
"""The most cells of all attributes but the largest together; a linear program has twice as many
variables."""
_NO_FINEST_TABLE = (
    "top_down = true needs one table from whose cells all tables of {quantity} can be added up. "
    "Also request this table, or leave top_down out."
)
_MOST_PUBLIC_TABLES = 2  # whole cells may not exist for three tables that cross


def make_top_down(
    estimator: Estimator,
    products: Sequence[Product],
    finest: Product,
    public: Sequence[PublicCounts] = (),
    impossible: Sequence[Combination] = (),
) -> ConsistentCells:
    """Return whole non-negative cells of the finest table, from the total down.

    Args:
        estimator: unbiased estimates with standard errors.
        products: the tables of one quantity.
        finest: the finest table; all these tables are sums of it.
        public: public counts of rows, which are met exactly.
        impossible: combinations of values whose cells are 0.

    Returns:
        Cells of the finest table, at least 0 and whole. Public counts hold and impossible cells are
        0. If the total is not public, it is the rounded unbiased total (at least 0).
    """
    cells = np.zeros((), dtype=np.int64)
    for step in list_steps(products, finest, public):
        if step.name is None:
            cells = np.zeros((1, *step.shape), dtype=np.int64)
        elif step.is_first_of_attribute:
            cells = np.expand_dims(cells, step.position)
        parents = np.moveaxis(cells, step.position, 0)
        children = _divide(estimator, step, parents, public, impossible)
        cells = np.moveaxis(children, 0, step.position)
        if step.name is None:
            cells = cells[0]
    return ConsistentCells(finest, np.ascontiguousarray(cells))


def top_down_measures(products: Sequence[Product]) -> list[str | None]:
    """Return the measures (None: counts) that get integer non-negative tables.

    The result excludes counts of units, because they are not additive, and measures that may be
    negative.
    """
    measures: list[str | None] = []
    for measure in dict.fromkeys(product.measure for product in products):
        if measure is None:
            measures.append(measure)
            continue
        declared = products[0].domain.measure(measure)
        if not isinstance(declared, UnitCount) and declared.low_units >= 0:
            measures.append(measure)
    return measures


def check_top_down(
    products: Sequence[Product],
    quantity: str,
    public: Sequence[PublicCounts] = (),
    impossible: Sequence[Combination] = (),
) -> Product:
    """Return the finest table of a quantity; raise if there is none.

    Raises:
        InputError: there is no such table; it is too large; or public facts do not fit the table or
            contradict each other. If no error is raised, the tables can be computed for any data.
    """
    finest = finest_table(products, only_levels=False)
    if finest is None:
        raise InputError(message(_NO_FINEST_TABLE, quantity=quantity))
    *smaller, _ = sorted([*finest.shape, 1])
    limits = (
        ("the table", finest.rows, MOST_TOP_DOWN_CELLS),
        (
            "every attribute but the largest of",
            max(smaller, default=1),
            MOST_CELLS_ALONG,
        ),
        (
            "the product of all attributes but the largest of",
            math.prod(smaller),
            MOST_CELLS_OF_SMALLER,
        ),
    )
    for subject, cells, most in limits:
        if not cells <= most:
            raise refuse(
                f"{subject} {finest.name!r} under top_down",
                f"{cells} cells",
                f"of at most {most} cells",
                "Leave top_down out, or ask for coarser tables.",
            )
    _check_facts(products, finest, public, impossible)
    return finest


def _check_facts(
    products: Sequence[Product],
    finest: Product,
    public: Sequence[PublicCounts],
    impossible: Sequence[Combination],
) -> None:
    """Raise if integer tables might not be able to meet the public facts."""
    if public_sums_on(finest, public) is None:
        raise InputError(
            f"top_down = true needs public counts that are sums of the cells of {finest.name}. "
            "Ask for a finer table, or leave top_down out."
        )
    first, *further = list_steps(products, finest, public)
    if len(public) > _MOST_PUBLIC_TABLES:
        raise refuse(
            "top_down",
            True,
            f"left out with more than {_MOST_PUBLIC_TABLES} tables of public counts",
        )
    possible = list_possible_cells(first, impossible)
    if possible is None:
        return
    names_with_counts = set(chain.from_iterable(table.product.attributes for table in public))
    names_of_steps = {step.name for step in further}
    for combination in impossible:
        for name, _ in combination:
            if name in names_of_steps & names_with_counts:
                raise InputError(
                    "top_down = true cannot keep both impossible cells and public counts of "
                    f"{name}, because possibly no table of integers satisfies both. Leave one of "
                    "them out."
                )
    sums = list_public_sums(first, public, np.zeros(1, dtype=np.int64))
    if len(sums) > 1:
        raise InputError(
            "With [[impossible]], top_down = true can satisfy only one table of public counts; "
            "got two. Leave one of them out."
        )
    cells_with_rows = possible.reshape(1, -1)
    for each in sums:
        holds_rows = np.bincount(each.labels[cells_with_rows], minlength=len(each.targets)) > 0
        if (each.targets[~holds_rows] > 0).any():
            raise InputError(
                "Public counts and impossible cells must agree; some impossible cells have "
                "public counts above 0. Correct them."
            )
    if not possible.any():
        raise InputError("[[impossible]] must leave at least one cell possible. Correct it.")


def _divide(
    estimator: Estimator,
    step: SplitStep,
    parents: IntArray,
    public: Sequence[PublicCounts],
    impossible: Sequence[Combination],
) -> IntArray:
    """Return the integer cells of a step's children, (children, *others).

    Args:
        estimator: the estimator of all tables.
        step: the split.
        parents: the parents' whole cells, shape (parents, *others).
        public: public counts, which are met exactly.
        impossible: combinations of values whose cells are 0.
    """
    width = math.prod(step.shape)
    # The children of one parent are adjacent.
    order = np.argsort(step.parents, kind="stable")
    values, _ = step.estimate(estimator, step.query_set, step.finest_positions)
    estimates = values.reshape(-1, width)[order]
    possible = list_possible_cells(step, impossible)
    if possible is not None:
        possible = possible.reshape(-1, width)[order]
    child_sums = list_public_sums(step, public, order)
    if step.name is None and not child_sums:
        child_sums = [_total_constraint(estimates, step)]
    sums = child_sums
    parent_cells = None
    if step.name is not None:
        labels = step.parents[order][:, None] * width + np.arange(width)
        sums = [SumConstraints(labels, parents.reshape(-1).astype(np.float64), ()), *child_sums]
        parent_cells = parents.reshape(-1, width)
    problem = LeastSquaresProblem(
        Components.of(estimator, step), step.parents[order], parent_cells, child_sums
    )
    nearest = problem.solve(estimates, possible)
    rounded = round_children(
        scale_to_sums(nearest, sums),
        step.parents[order],
        sums,
        _list_nested_groups(step, child_sums),
        possible,
    )
    result = np.empty_like(rounded)
    result[order] = rounded
    return result.reshape(-1, *step.shape)


def _total_constraint(estimates: FloatArray, step: SplitStep) -> SumConstraints:
    """Return the constraint that cells sum to the total, as a whole number >= 0."""
    total = np.maximum(np.rint(estimates.sum()), 0.0).reshape(1)
    labels = np.zeros(estimates.shape, dtype=np.int64)
    return SumConstraints(labels, total, (0,) * len(step.others))


def _list_nested_groups(step: SplitStep, child_sums: Sequence[SumConstraints]) -> list[IntArray]:
    """Return nested groups of a child's cells whose sums are also rounded.

    These groups nest with the groups of public counts, but no group contains a group of public
    counts.
    """
    public_positions = [family.positions for family in child_sums]
    if len(public_positions) > 1:
        return []
    candidates = {(0,) * len(step.others)}
    for table in step.tables:
        positions = _find_positions(step, table)
        if positions is not None:
            candidates.add(positions)
    merged_positions = list(public_positions)
    groups = []
    for positions in sorted(candidates, key=lambda each: (sum(each), each)):
        is_new = positions not in (*merged_positions, step.finest_positions)
        if is_new and all(_is_nested(positions, other) for other in merged_positions):
            merged_positions.append(positions)
            groups.append(step.label_groups(positions))
    return groups


def _is_nested(positions: tuple[int, ...], other_positions: tuple[int, ...]) -> bool:
    """Return whether one grouping is a coarsening of the other."""
    pairs = list(zip(positions, other_positions, strict=True))
    return all(a <= b for a, b in pairs) or all(a >= b for a, b in pairs)


def _find_positions(step: SplitStep, table: Product) -> tuple[int, ...] | None:
    """Return a table's positions in the chains of groups; None if it has none."""
    operators = dict(zip(table.attributes, table.operators, strict=True))
    positions = []
    for axis in step.others:
        position: int | None = 0
        if axis.name in operators:
            groups = partition_groups(operators[axis.name])
            _, first = np.unique(axis.groups, return_index=True)
            position = None if groups is None else axis.find(groups[first])
        if position is None:
            return None
        positions.append(position)
    return tuple(positions)
