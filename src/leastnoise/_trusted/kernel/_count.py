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
    group_attribute_sets,
    open_content,
)

# Rows combined at a time: the combined codes (8 bytes each) and a table of counts together stay in
# a few MiB of cache.
_BLOCK = 2**17
# Marginals are counted in batches of this many cells: 128 MiB of counts.
WINDOW_CELLS = 2**24
_OTHER_PLAN = (
    "The table was counted for the tables of another plan. Read the source again for this plan."
)


def exact_marginals(
    table: Table,
    attribute_sets: Iterable[tuple[str, ...]],
    measure: str | None = None,
    limits: tuple[str | None, Values] | None = None,
) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Yield the exact marginal (counts or sums) of each attribute set.

    Args:
        table: the private rows.
        attribute_sets: the attributes of each marginal, in the order of its axes; no attribute
            occurs twice in a marginal. This iterable may be a generator of any length. The caller
            has checked by `Table.require` that the table has these attributes and the measure.
        measure: the name of a measure to be summed; None counts rows.
        limits: None for sums without limits. Otherwise a pair in one of two forms: an attribute and
            an int64 array with one limit of at least 0 for each of its cells; or None and an array
            with a single limit for all rows. A value above the limit of its row's cell counts as
            the limit.

    Returns:
        An iterator, in the order of the request, of the attributes and the int64 array of their
        marginal: flat, in row-major order of the attributes; its length is the product of their
        sizes. The numbers are rows, or units of the measure.

    Raises:
        InputError: the database counted the rows for the tables of another plan, or the limits do
            not fit the attribute. The values of rows never cause this error.

    Guarantees: the numbers follow from int64 addition. The addition is exact while (number of rows)
        x (largest amount of a row) < 2^63; the caller has checked this from public bounds. Each
        marginal depends only on its attributes and the rows, not on the other requested marginals.
        With limits, every row adds at most the limit of its cell.

    Edge cases: for the empty set, the marginal is the total, a single number. For a table without
        rows, all numbers are zero. Memory is bounded by the largest single marginal and
        `WINDOW_CELLS`, for any number of marginals.

    >>> people = Table(
    ...     Domain(sex=["F", "M"], zone=[1, 2, 3]), {"sex": [0, 1, 1], "zone": [2, 0, 2]}
    ... )
    >>> [
    ...     (attributes, counts.tolist())
    ...     for attributes, counts in exact_marginals(people, [("sex",), ("zone", "sex"), ()])
    ... ]
    [(('sex',), [1, 2]), (('zone', 'sex'), [0, 1, 0, 0, 1, 1]), ((), [3])]
    """
    opened = open_content(table, Columns, Counted)
    if isinstance(opened, Counted):
        if limits is not None:
            raise InputError(_OTHER_PLAN)
        return _marginals_of_counted_tables(table.domain, opened, attribute_sets, measure)
    # (A1): There are no values if every row counts as a row.
    if measure is None:
        values = opened.values.get(None)
    else:
        values = opened.values[measure]
    # (A2): Amounts stay within the measure's largest amount, because no limit is below 0.
    if limits is not None and measure is not None and values is not None:
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
    return _marginals_of_rows(table.domain, opened, attribute_sets, values)


def _marginals_of_counted_tables(
    domain: Domain, counted: Counted, attribute_sets: Iterable[tuple[str, ...]], measure: str | None
) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Yield marginals by summing tables that a database has counted (A5)."""
    for attributes in attribute_sets:
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


def _marginals_of_rows(
    domain: Domain,
    private_rows: Columns,
    attribute_sets: Iterable[tuple[str, ...]],
    values: Values | None,
) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Count marginals; count several in one pass over rows if cheaper (A3).

    Args:
        domain: the domain of the rows.
        private_rows: the private rows.
        attribute_sets: the attributes of each marginal.
        values: the amount of every row, int64 of shape (rows,); None where every row counts 1.

    Returns:
        As `exact_marginals`.
    """
    positions = {name: index for index, name in enumerate(domain.names)}
    rows = private_rows.rows
    sizes = domain.shape
    position_sets = (tuple(positions[name] for name in attributes) for attributes in attribute_sets)
    for window in _attribute_set_batches(position_sets, sizes):
        marginals: dict[int, IntArray] = {}
        # An untrusted proposal, which every member checks (A3).
        for group in group_attribute_sets(window, sizes, 1 << rows.bit_length()):
            shape = tuple(sizes[position] for position in group.attributes)
            columns = [private_rows.codes[domain.names[position]] for position in group.attributes]
            counts = _histogram(columns, shape, rows, values).reshape(shape)
            for member in group.members:
                marginals[member] = _sum_out(counts, group.attributes, window[member])
        for index, attributes in enumerate(window):
            yield tuple(domain.names[position] for position in attributes), marginals.pop(index)


def _attribute_set_batches(
    attribute_sets: Iterable[tuple[int, ...]], sizes: Sequence[int]
) -> Iterator[list[tuple[int, ...]]]:
    """Yield the attribute sets in batches with a limited number of cells.

    The marginals of a batch have at most `WINDOW_CELLS` cells together, or the batch is a single
    larger set.
    """
    batch: list[tuple[int, ...]] = []
    cells = 0
    for attributes in attribute_sets:
        added_cells = math.prod(sizes[index] for index in attributes)
        if batch and cells + added_cells > WINDOW_CELLS:
            yield batch
            batch = []
            cells = 0
        batch.append(attributes)
        cells += added_cells
    if batch:
        yield batch


def _sum_out(
    counts: IntArray, axes: Sequence[Hashable], requested_axes: Sequence[Hashable]
) -> IntArray:
    """Sum a table of counts over all axes that are not requested (A3).

    The result is a flat array, in row-major order of ``requested_axes``.

    Raises:
        InternalError: the table does not have a requested axis.
    """
    if not {*requested_axes} <= {*axes}:
        raise InternalError(
            "A marginal cannot be summed out of a table without its attributes; please report this."
        )
    summed_axes = tuple(axis for axis, name in enumerate(axes) if name not in requested_axes)
    remaining = [name for name in axes if name in requested_axes]
    if summed_axes:
        marginal = counts.sum(axis=summed_axes)
    else:
        marginal = counts
    # Always a copy: a caller may add noise in place.
    return np.array(
        np.transpose(marginal, [remaining.index(name) for name in requested_axes]),
        dtype=np.int64,
        order="C",
    ).reshape(-1)


def _histogram(
    columns: list[Codes], shape: tuple[int, ...], row_count: int, values: Values | None
) -> IntArray:
    """Return the number of rows, or the sum of their values, in each joint cell.

    One pass over the rows, in int64 throughout (A4).
    """
    cells = math.prod(shape)
    total = np.zeros(cells, dtype=np.int64)
    if not columns:
        total[0] = row_count if values is None else int(values.sum())
        return total
    # Adding up the blocks' tables must stay cheap compared with counting the blocks.
    block = max(_BLOCK, 2 * cells)
    for start in range(0, row_count, block):
        codes = _row_cells([column[start : start + block] for column in columns], shape)
        if values is None:
            total += np.bincount(codes, minlength=cells)
        else:
            np.add.at(total, codes, values[start : start + block])
    return total


def _row_cells(columns: list[Codes], shape: tuple[int, ...]) -> npt.NDArray[np.intp]:
    """Return the number of each row's joint cell, in row-major order (A1).

    To be fast, the function uses the smallest integer type that holds the cell numbers.
    """
    codes = columns[0]
    cells = shape[0]
    for column, size in zip(columns[1:], shape[1:], strict=True):
        cells *= size
        # It must also hold ``size``, which equals ``cells`` if all earlier sizes are 1.
        dtype = code_dtype(cells + 1)
        codes = np.multiply(codes, dtype.type(size), dtype=dtype, casting="unsafe")
        np.add(codes, column, out=codes, casting="unsafe")
    return codes.astype(np.intp)
