"""Carry out one measurement: check its declared cost, then add the noise.

Noise is added to exact answers only here.

PROOFS-kernel.md has the proof. The comments in this file, and in ``_series.py``, which charges the
ledger, refer to its labels: (K1) the measured queries and the distance of neighbours, (K2) the
table, (K3) payment before anything is drawn, (K4) noise of exactly the scales that ``cost`` used,
and why an overflow makes an answer wrong but reveals nothing.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from leastnoise._trusted.accounting import Cost, Noise, Privacy, covers
from leastnoise._trusted.check import InputError, InternalError, refuse
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.domain import Domain
from leastnoise._trusted.kernel._count import exact_marginals
from leastnoise._trusted.kernel._entropy import Entropy
from leastnoise._trusted.kernel._k_norm_sampler import k_norm_noise
from leastnoise._trusted.kernel._noise import discrete_gaussian, discrete_laplace, rounded_gaussian
from leastnoise._trusted.linop import SignedArray, apply, apply_along_axis, as_int32_if_exact
from leastnoise._trusted.measurements import Limits, Measurements, cost, row_scales
from leastnoise._trusted.table import Table

SAMPLERS = {
    Noise.DISCRETE_LAPLACE: discrete_laplace,
    Noise.DISCRETE_GAUSSIAN: discrete_gaussian,
    Noise.ROUNDED_GAUSSIAN: rounded_gaussian,
}
_BATCH_ROWS = 2**18  # queries measured in one batch: a few MiB of answers and noise


def check_table(domain: Domain, privacy: Privacy, table: Table) -> None:
    """Raise unless a table was read with a plan's domain and privacy unit (K2).

    Args:
        domain: the domain of the plan.
        privacy: the unit of the plan and the bounds on its rows.
        table: the private rows.

    Raises:
        InputError: the table was encoded over another domain, or its rows were bounded for another
            unit.
    """
    if table.domain != domain:
        raise InputError(
            "The table was read with another domain than the domain of the plan. Read the source "
            "again with the domain of the plan."
        )
    if (table.unit_column, table.max_rows, table.max_per_cell) != (
        privacy.unit_column,
        privacy.max_rows,
        privacy.max_per_cell,
    ):
        raise InputError(
            "The table was read for another privacy unit than the unit of the plan. Read the "
            "source again with the unit of the plan."
        )


def verified_cost(measurements: Measurements, table: Table | None) -> Cost:
    """Return the exact cost; raise unless the declared budget covers it (K1).

    Args:
        measurements: the queries, their noise and their declared budget.
        table: the private rows; the table must belong to the measurements (K2); None if only
            recorded steps are read.

    Raises:
        InputError: an argument has another class; the table does not belong to the measurements; or
            the budget does not cover the cost. Nothing was drawn.
    """
    if type(measurements) is not Measurements:
        raise refuse("measurements", type(measurements).__name__, "Measurements")
    if table is not None:  # a resumed series can read its recorded steps without the rows
        check_table(measurements.domain, measurements.privacy, table)
        table.require(*measurements.columns())
    spent = cost(measurements)
    if not covers(measurements.privacy.budget, spent):
        raise InputError(
            f"The queries cost more than their declared budget, {measurements.privacy.budget!r}. "
            "Make the plan again; nothing was spent."
        )
    return spent


def draw_answers(
    measurements: Measurements, table: Table, entropy: Entropy
) -> tuple[SignedArray, ...]:
    """Return the noisy answers to the queries of every block.

    Args:
        measurements: the measured queries; the caller has checked their cost and paid for them.
        table: the private rows.
        entropy: the source of the noise.

    Returns:
        For every block an array of shape (rows,), in multiples of 1 / grid: A x + noise (K4).
    """
    noisy_answers: list[SignedArray | None] = [None] * len(measurements.blocks)
    pending: list[tuple[int, IntArray]] = []
    tables: dict[int, IntArray] = {}  # whose noise is drawn together
    operator_groups = _operator_groups(measurements)
    rows = 0
    for index, exact in exact_answers(measurements, table):
        if measurements.blocks[index].k_norm_group is not None:
            tables[index] = exact
            continue
        # A large table is drawn separately, mostly with one scale.
        if rows + len(exact) > _BATCH_ROWS:
            _add_noise(measurements, pending, operator_groups, noisy_answers, entropy)
            pending = []
            rows = 0
        pending.append((index, exact))
        rows += len(exact)
    _add_noise(measurements, pending, operator_groups, noisy_answers, entropy)
    for group in measurements.k_norm_groups().values():
        scale = measurements.blocks[group[0]].scale
        if len({int(tables[index].sum()) for index in group}) > 1:
            raise InternalError(
                "Tables that share K-norm noise count different rows. Did the source change while "
                "it was read? Nothing was published."
            )
        noise = k_norm_noise([tables[index].size for index in group], scale, entropy)  # (K4)
        for index, row_noise in zip(group, noise, strict=True):
            noisy_answers[index] = as_int32_if_exact(tables[index] + row_noise)
    return tuple(value for value in noisy_answers if value is not None)


def _operator_groups(measurements: Measurements) -> list[int]:
    """Number the blocks; blocks with equal operators and scales get one number."""
    numbers = {
        id(block): number
        for number, group in enumerate(measurements.similar_blocks)
        for block in group
    }
    return [numbers[id(block)] for block in measurements.blocks]


def exact_answers(measurements: Measurements, table: Table) -> Iterator[tuple[int, IntArray]]:
    """Yield the exact answers A x of each block, in multiples of 1 / grid.

    Exact answers never leave the kernel without noise.

    Args:
        measurements: the measured queries.
        table: the private rows, which belong to the measurements.

    Returns:
        Pairs in any order. Each has the index of a block and the block's answers, an int64 array of
        shape (rows,).

    >>> made = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.ZCDP(1)).measured()
    >>> [
    ...     (place, exact.tolist())
    ...     for place, exact in exact_answers(made, Table(made.domain, {"sex": [0, 1, 1]}))
    ... ]
    [(0, [1, 2])]
    """
    groups: dict[tuple[str | None, Limits | None, bool], dict[tuple[str, ...], list[int]]] = {}
    for index, block in enumerate(measurements.blocks):
        groups.setdefault((block.measure, block.limits, block.ends), {}).setdefault(
            block.attributes, []
        ).append(index)
    operator_groups = _operator_groups(measurements)
    pending: list[tuple[int, IntArray]] = []
    size = 0
    for (summed, limits, ends), blocks_of in groups.items():
        marginals = exact_marginals(
            table, blocks_of, summed, None if limits is None else (limits.attribute, limits.values)
        )
        for names, cells in (
            _sums_of_end_distances(table, marginals, blocks_of, summed)
            if ends and summed is not None
            else marginals
        ):
            for index in blocks_of[names]:
                pending.append((index, cells))
                # A block may have many more queries than cells.
                size += max(cells.size, measurements.blocks[index].rows)
                if size >= _BATCH_ROWS:
                    yield from _apply_blocks(measurements, pending, operator_groups)
                    pending = []
                    size = 0
    yield from _apply_blocks(measurements, pending, operator_groups)


def _sums_of_end_distances(
    table: Table,
    sums: Iterator[tuple[tuple[str, ...], IntArray]],
    attribute_sets: Iterable[tuple[str, ...]],
    measure: str,
) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Yield the sums of v - low and of high - v, from the sums of v.

    Here v is the value of a row, and ``low`` and ``high`` are the bounds of the measure. For this
    purpose, the values or the rows in each cell are counted too. Each array has the sums of v - low
    of all cells, and then the sums of high - v.
    """
    bounds = table.domain.measure(measure)
    for (names, summed), (_, values) in zip(
        sums, exact_marginals(table, attribute_sets, table.domain.count_of(measure)), strict=True
    ):
        yield (
            names,
            np.concatenate(
                [summed - bounds.low_units * values, bounds.high_units * values - summed]
            ),
        )


def _apply_blocks(
    measurements: Measurements,
    pending: Sequence[tuple[int, IntArray]],
    operator_groups: Sequence[int],
) -> Iterator[tuple[int, IntArray]]:
    """Yield the index and the exact answers, times the grid, of pending blocks.

    Blocks of one operator group are computed in one batch. The answers are flat, in row-major
    order.
    """
    answers: dict[int, IntArray] = {}
    equal_parts: dict[int, list[tuple[int, IntArray]]] = {}
    for index, cells in pending:
        equal_parts.setdefault(operator_groups[index], []).append((index, cells))
    for group in equal_parts.values():
        # One table may be very large.
        cube = np.stack([cells for _, cells in group]) if len(group) > 1 else group[0][1]
        factors = measurements.blocks[group[0][0]].factors
        cube = cube.reshape([-1, *(factor.operator.size for factor in factors)])
        for axis, factor in enumerate(factors, 1):
            cube = apply_along_axis(apply, factor.operator, cube, axis)
        answers.update(
            zip(
                (index for index, _ in group),
                cube.reshape(len(group), -1) * measurements.grid,
                strict=True,
            )
        )
    yield from ((index, answers[index]) for index, _ in pending)


def _add_noise(
    measurements: Measurements,
    pending: Sequence[tuple[int, IntArray]],
    operator_groups: Sequence[int],
    noisy_answers: list[SignedArray | None],
    entropy: Entropy,
) -> None:
    """Add noise to the exact answers of pending blocks (K4).

    The sums are stored in ``noisy_answers``, by the index of the block. Each query gets one draw of
    its exact scale. Answers and noise are in multiples of 1 / grid.
    """
    if not pending:
        return
    block_of = {operator_groups[index]: measurements.blocks[index] for index, _ in pending}
    scales = {kind: row_scales(block, measurements.grid) for kind, block in block_of.items()}
    numerators, denominators = (
        _scalar_if_equal(
            np.concatenate([scales[operator_groups[index]][side] for index, _ in pending])
        )
        for side in (0, 1)
    )
    noise = SAMPLERS[measurements.noise](
        numerators, denominators, sum(len(exact) for _, exact in pending), entropy
    )
    start = 0
    for index, exact in pending:
        noisy = noise[start : start + len(exact)]
        noisy += exact
        noisy_answers[index] = as_int32_if_exact(noisy)  # a function of only the noisy numbers
        start += len(exact)


def _scalar_if_equal(terms: IntArray) -> int | IntArray:
    """Return an array unchanged, or one number if all its entries are equal.

    The samplers are faster if they get a single number for all draws.
    """
    if (terms == terms[0]).all():
        return int(terms[0])
    return terms
