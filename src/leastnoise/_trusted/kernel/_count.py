"""Compute exact marginals of a table: counts, or sums of a measure.

The labels (A1 ...) refer to PROOFS-kernel.md.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check import InputError, InternalError, refuse
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.domain import Domain
from leastnoise._trusted.table import (
    Codes,
    Columns,
    Counted,
    Table,
    Values,
    code_dtype,
    columns_of,
    groups,
)

# Rows combined at a time: the combined codes (8 bytes each) and a table of counts together stay in
# a few MiB of cache.
_BLOCK = 2**17
# Marginals are counted in windows, each of which is returned in the order asked: 128 MiB of counts.
WINDOW_CELLS = 2**24
_OTHER_PLAN = (
    "The table was counted for the tables of another plan. Read the source again for this plan."
)


def count(
    table: Table,
    attribute_sets: Iterable[tuple[str, ...]],
    measure: str | None = None,
    limits: tuple[str | None, Values] | None = None,
) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Yield the exact table of counts, or of sums, of each attribute set.

    Args:
        table: the private rows.
        attribute_sets: the attributes of each marginal, each once, in the order of its axes; may be
            a generator of any length. The caller has checked by `Table.require` that the table has
            these attributes and the measure.
        measure: the name of a measure to be summed; None counts rows.
        limits: None for sums without limits. Otherwise a pair: an attribute and one int64 limit of
            at least 0 for each of its cells, or None and a single limit for all rows. A value above
            the limit of its row's cell counts as the limit.

    Returns:
        An iterator, in the order of the request, of the attributes and the int64 array of their
        marginal: flat, row-major in the order of the attributes, of length the product of their
        sizes, in rows or in units of the measure.

    Raises:
        InputError: the database counted the rows for the tables of another plan, or the limits do
            not fit. The values of rows never raise it.

    Guarantees: the numbers follow from int64 addition, exact while (number of rows) x (largest
        amount of a row) < 2^63, which the caller has checked from public bounds. Each marginal
        depends only on its attributes and the rows, not on the other requested marginals. With
        limits, every row adds at most the limit of its cell.

    Edge cases: the empty set gives the total, one number. A table without rows gives zeros. Memory
        is bounded by the largest single marginal and `WINDOW_CELLS`, whatever the number of
        marginals.

    >>> people = Table(Domain(sex=["F", "M"], zone=[1, 2, 3]), {"sex": [0, 1, 1], "zone": [2, 0, 2]})
    >>> [(attributes, counts.tolist()) for attributes, counts in count(people, [("sex",), ("zone", "sex"), ()])]
    [(('sex',), [1, 2]), (('zone', 'sex'), [0, 1, 0, 0, 1, 1]), ((), [3])]
    """
    opened = columns_of(table, Columns, Counted)
    if isinstance(opened, Counted):
        if limits is not None:
            raise InputError(_OTHER_PLAN)
        return _sum_out_counted(table.domain, opened, attribute_sets, measure)
    # (A1): None where every row counts as a row
    if measure is None:
        values = opened.values.get(None)
    else:
        values = opened.values[measure]
    if (
        limits is not None and measure is not None and values is not None
    ):  # (A2): of at most the measure's largest amount still, as no limit is below 0
        attribute, highest = limits
        if attribute is None:
            cells = 1
        else:
            cells = table.domain.cells(attribute)
        if highest.dtype != np.int64 or highest.shape != (cells,) or int(highest.min()) < 0:
            raise refuse(
                "limits",
                f"{highest.dtype} array of shape {highest.shape}",
                f"an int64 array of shape ({cells},), none below 0",
            )
        values = np.minimum(
            values, highest if attribute is None else highest[opened.codes[attribute]]
        )
    return _count(table.domain, opened, attribute_sets, values)


def _sum_out_counted(
    domain: Domain, counted: Counted, sets: Iterable[tuple[str, ...]], measure: str | None
) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Yield marginals summed out of tables that a database counted (A5)."""
    for attributes in sets:
        sufficient = [
            names
            for summed, names in counted.tables
            if summed == measure and set(attributes) <= set(names)
        ]
        if not sufficient:
            raise InputError(_OTHER_PLAN)
        axes = min(sufficient, key=lambda names: math.prod(map(domain.cells, names)))
        counts = counted.tables[measure, axes].reshape([*map(domain.cells, axes)])
        yield tuple(attributes), _sum_out(counts, axes, tuple(attributes))


def _count(
    domain: Domain, opened: Columns, sets: Iterable[tuple[str, ...]], values: Values | None
) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Yield marginals of rows, several in one pass where that is cheaper (A3).

    Args:
        domain: the domain of the rows.
        opened: the private rows.
        sets: the attributes of each marginal.
        values: the amount of every row, int64 of shape (rows,); None where every row counts 1.

    Returns:
        As `count`.
    """
    positions = {name: index for index, name in enumerate(domain.names)}
    rows = opened.rows
    sizes = domain.shape
    position_sets = (tuple(positions[name] for name in attributes) for attributes in sets)
    for window in _windows(position_sets, sizes):
        marginals: dict[int, IntArray] = {}
        for group in groups(
            window, sizes, 1 << rows.bit_length()
        ):  # an untrusted proposal, which every member checks (A3)
            shape = tuple(sizes[position] for position in group.attributes)
            columns = [opened.codes[domain.names[position]] for position in group.attributes]
            counts = _histogram(columns, shape, rows, values).reshape(shape)
            for member in group.members:
                marginals[member] = _sum_out(counts, group.attributes, window[member])
        for index, attributes in enumerate(window):
            yield tuple(domain.names[position] for position in attributes), marginals.pop(index)


def _windows(
    attribute_sets: Iterable[tuple[int, ...]], sizes: Sequence[int]
) -> Iterator[list[tuple[int, ...]]]:
    """Yield lists of attribute sets with a limited total size.

    A list has at most `WINDOW_CELLS` cells in total, or is one larger set.
    """
    window: list[tuple[int, ...]] = []
    cells = 0
    for attributes in attribute_sets:
        added_cells = math.prod(sizes[index] for index in attributes)
        if window and cells + added_cells > WINDOW_CELLS:
            yield window
            window = []
            cells = 0
        window.append(attributes)
        cells += added_cells
    if window:
        yield window


def _sum_out(counts: IntArray, axes: Sequence[Hashable], order: Sequence[Hashable]) -> IntArray:
    """Return counts summed over the axes that are not requested (A3).

    Raises:
        InternalError: a requested axis is missing.
    """
    if not {*order} <= {*axes}:
        raise InternalError(
            "A marginal cannot be summed out of a table without its attributes; please report this."
        )
    summed_axes = tuple(axis for axis, name in enumerate(axes) if name not in order)
    remaining = [name for name in axes if name in order]
    if summed_axes:
        marginal = counts.sum(axis=summed_axes)
    else:
        marginal = counts
    # always a copy: a caller may add noise in place
    return np.array(
        np.transpose(marginal, [remaining.index(name) for name in order]), dtype=np.int64, order="C"
    ).reshape(-1)


def _histogram(
    columns: list[Codes], shape: tuple[int, ...], rows: int, values: Values | None
) -> IntArray:
    """Return the number of rows, or the sum of their values, in each joint cell.

    One pass over the rows, in int64 throughout (A4).
    """
    cells = math.prod(shape)
    total = np.zeros(cells, dtype=np.int64)
    if not columns:
        total[0] = rows if values is None else int(values.sum())
        return total
    # adding up the blocks' tables must stay cheap compared with counting the blocks
    block = max(_BLOCK, 2 * cells)
    for start in range(0, rows, block):
        codes = _row_cells([column[start : start + block] for column in columns], shape)
        if values is None:
            total += np.bincount(codes, minlength=cells)
        else:
            np.add.at(total, codes, values[start : start + block])
    return total


def _row_cells(columns: list[Codes], shape: tuple[int, ...]) -> npt.NDArray[np.intp]:
    """Return the row-major cell of each row (A1).

    The smallest integer type that holds the cell numbers makes this fast.
    """
    codes = columns[0]
    cells = shape[0]
    for column, size in zip(columns[1:], shape[1:], strict=True):
        cells *= size
        dtype = code_dtype(
            cells + 1
        )  # it must hold ``size`` too, which is ``cells`` where all sizes before are 1
        codes = np.multiply(codes, dtype.type(size), dtype=dtype, casting="unsafe")
        np.add(codes, column, out=codes, casting="unsafe")
    return codes.astype(np.intp)
