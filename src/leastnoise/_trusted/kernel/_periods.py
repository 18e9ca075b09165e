"""Draw measurements period by period.

A private file keeps the exact counts of the closed periods and the noise of the last closed period.
If the rows of a unit in all periods together are bounded, it also keeps the rows that each unit has
used.

The labels (P1 ...) refer to PROOFS-periods.md.
"""

import base64
import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from leastnoise._trusted.check import InputError, InternalError, LedgerError, one_of
from leastnoise._trusted.check.arrays import BoolArray, IntArray
from leastnoise._trusted.domain import PerUnit, UnitCount
from leastnoise._trusted.kernel._count import exact_marginals
from leastnoise._trusted.kernel._entropy import Entropy
from leastnoise._trusted.kernel._ledger_file import flush_folder
from leastnoise._trusted.kernel._measurement import SAMPLERS, exact_answers
from leastnoise._trusted.linop import SignedArray, as_int32_if_exact, last_cells
from leastnoise._trusted.measurements import Block, Measurements, row_scales
from leastnoise._trusted.table import (
    DIGEST_BYTES,
    Columns,
    Counted,
    Table,
    TableKey,
    UsedRows,
    open_content,
)

# Part of the file format: files of earlier versions must have the same first line.
PRIVATE = (
    "PRIVATE: exact counts of rows, for the data's holder alone. Never publish or share this file. "
    "leastnoise needs it, unchanged."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedPeriods:
    """Exact counts and noise of the closed periods of a series; all are private.

    Attributes:
        number: the number of closed periods.
        tables: two flat, row-major int64 tables over all periods. The key of a table consists of
            the measure that is summed (None for rows) and the attributes. The first table has the
            frozen counts or sums, with 0 in periods that are not closed. The second table has, for
            each cell, the largest number of rows that it had when a period was closed. The second
            table is 0 unless late rows count on arrival.
        noise: the noise of the queries of the last closed period: an int64 array for each block.
        used: the rows that each unit has used in the closed periods; None if `has_total_bound` is
            false, or if no period is closed.

    >>> ClosedPeriods().number
    0
    """

    number: int = 0
    tables: Mapping[TableKey, IntArray] = field(default_factory=dict)
    noise: tuple[IntArray, ...] = ()
    used: UsedRows | None = None


def has_total_bound(measurements: Measurements, period_attribute: str) -> bool:
    """Return whether there is a separate bound on a unit's rows in all periods.

    In this case, the rows that a unit has used in earlier periods must be known when a period is
    closed (P2).

    Args:
        measurements: the measurements of all periods together.
        period_attribute: the attribute whose cells are the periods.

    >>> domain = ln.Domain(month=[1, 2])
    >>> privacy = ln.Privacy(
    ...     ln.ZCDP(1), unit_column="id", max_rows=3, max_per_cell=ln.PerCellBound(2, "month")
    ... )
    >>> has_total_bound(ln.plan(ln.marginals(domain, ways=1), privacy).measured(), "month")
    True
    """
    privacy = measurements.privacy
    bound = privacy.max_per_cell
    if privacy.unit_column is None:
        return False
    return (
        bound is None or bound.rows * measurements.domain.cells(period_attribute) > privacy.max_rows
    )


def check_drawable_by_period(
    measurements: Measurements, period_attribute: str, late_rows: str
) -> None:
    """Raise if measurements cannot be drawn period by period.

    Args:
        measurements: the measurements of all periods together.
        period_attribute: the attribute whose cells are the periods.
        late_rows: how rows count that arrive after their period was closed: "drop" (they do not
            count), or "arrival" (they count in the period in which they arrive).

    Raises:
        InputError: a block has no factor on only that attribute; or it is a sum with limits, a sum
            while late rows count on arrival, or a count of units in all periods together; or there
            is a unit column, and rows count on arrival or are bounded in cells that are not the
            periods; or units are counted in groups of cells, and their rows are bounded in all
            periods together.

    >>> domain = ln.Domain(month=[1, 2])
    >>> made = ln.plan(ln.marginals(domain, ways=1), ln.ZCDP(1)).measured()
    >>> check_drawable_by_period(made, "month", "drop")
    >>> check_drawable_by_period(made, "month", "later")
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: late must be one of 'drop',
    'arrival'; got 'later'.
    """
    one_of("late", late_rows, ("drop", "arrival"))
    domain = measurements.domain
    privacy = measurements.privacy
    bound = privacy.max_per_cell
    bounds_other_cells = bound is not None and bound.attributes != (period_attribute,)
    if privacy.unit_column is not None and (late_rows == "arrival" or bounds_other_cells):
        raise InputError(
            'A series whose units are named by a column must drop late rows (late = "drop"), and '
            "bound a unit's rows in all periods together (max_rows), in each of the periods of "
            f"{period_attribute!r} (max_per_cell), or both, and in no other cells. To count late "
            "rows on arrival, let each row be a unit."
        )
    # (P2)
    if has_total_bound(measurements, period_attribute) and any(
        isinstance(measure, UnitCount) and measure.has_groups
        for measure in domain.measures.values()
    ):
        raise InputError(
            "A series that counts units in groups of cells (levels, ranges or windows) must bound "
            f"a unit's rows in each period of {period_attribute!r} (max_per_cell). Its bound in "
            "all periods together (max_rows) must be at least the sum of these bounds."
        )
    refused_measures = {
        name
        for name, measure in domain.measures.items()
        if late_rows != "drop"
        or (isinstance(measure, PerUnit) and period_attribute not in measure.attributes)
    }
    for block in measurements.blocks:
        if (
            (period_attribute,) not in [factor.attributes for factor in block.factors]
            or block.limits is not None
            or block.measure in refused_measures
            or block.k_norm_group is not None  # drawn for all periods together
        ):
            raise InputError(
                "Every measured table of a series must include the periods of "
                f"{period_attribute!r} and count rows. If late rows are dropped, it may also count "
                "the units of each period, or sum a measure without limits. Make the plan again."
            )


def close_period(
    measurements: Measurements,
    period_attribute: str,
    late_rows: str,
    table: Table,
    closed_before: ClosedPeriods,
    entropy: Entropy,
) -> ClosedPeriods:
    """Close the next period: freeze its counts, and draw noise for its queries.

    (P2) defines the counts; the noise depends on no count (P3).

    Args:
        measurements: the measurements of all periods together; `check_drawable_by_period` has
            accepted them.
        period_attribute: the attribute whose cells are the periods.
        late_rows: "drop" or "arrival".
        table: the present rows, over the domain of the measurements.
        closed_before: the closed periods so far.
        entropy: the source of the noise.

    Returns:
        The closed periods; they now include this period and are private.

    Raises:
        InputError: the rows of units are bounded in all periods, and the table was read with a
            wrong record of used rows: it differs from the record in the closed periods.

    >>> domain = ln.Domain(month=[1, 2])
    >>> made = ln.plan(ln.marginals(domain, ways=1), ln.ZCDP(1)).measured()
    >>> close_period(
    ...     made,
    ...     "month",
    ...     "drop",
    ...     Table(domain, {"month": [0, 0, 1]}),
    ...     ClosedPeriods(),
    ...     SeededEntropy(1),
    ... ).tables
    {(None, ('month',)): array([[2, 0],
           [0, 0]])}
    """
    period = closed_before.number
    used = None
    if has_total_bound(measurements, period_attribute):
        used = _rows_used_after_closing(table, closed_before)
    tables: dict[TableKey, IntArray] = {}
    keys: list[TableKey]
    if late_rows == "arrival":
        # One table of all attributes, so that a row arrives in the same period for all queries.
        keys = [(None, measurements.columns()[0])]
    else:
        keys = required_table_keys(measurements)
    for key in keys:
        measure, names = key
        ((attributes, counts),) = exact_marginals(table, [names], measure)
        shape = [measurements.domain.cells(name) for name in attributes]
        axis = attributes.index(period_attribute)
        if period:
            tables[key] = closed_before.tables[key].copy()
        else:
            tables[key] = np.zeros((2, counts.size), dtype=np.int64)
        # These are views with the period as first axis. Writing to the last two changes ``tables``.
        current, frozen, highest = (
            np.moveaxis(counted.reshape(shape), axis, 0) for counted in (counts, *tables[key])
        )
        frozen[period] = current[period]
        if late_rows == "arrival":
            frozen[period] += np.maximum(current[:period] - highest[:period], 0).sum(axis=0)
            np.maximum(highest[: period + 1], current[: period + 1], out=highest[: period + 1])
    noise = []
    for block in measurements.blocks:
        rows = queries_due(block, period_attribute, period)
        numerators, denominators = (
            scales.reshape(rows.shape)[rows] for scales in row_scales(block, measurements.grid)
        )
        # (K4)
        noise.append(
            SAMPLERS[measurements.noise](numerators, denominators, len(numerators), entropy)
        )
    return ClosedPeriods(number=period + 1, tables=tables, noise=tuple(noise), used=used)


def _rows_used_after_closing(table: Table, closed_before: ClosedPeriods) -> UsedRows:
    """Return the record of used rows after the next period is closed (P2).

    Raises:
        InputError: the table was read with another record of the rows used before.
    """
    opened = open_content(table, Columns, Counted)
    if isinstance(opened, Columns):
        use = opened.period_use
    else:
        use = None
    if use is not None and use.before.periods <= closed_before.number:
        used_before = use.used_after(closed_before.number)
        if closed_before.used is None:
            recorded = UsedRows.none(used_before.salt)
        else:
            recorded = closed_before.used
        if used_before.equals(recorded):
            return use.used_after(closed_before.number + 1)
    raise InputError(
        "The rows of this series were read without the record of used rows in the closed periods. "
        "This record bounds the rows of a unit in all periods. Run the series again; nothing was "
        "drawn."
    )


def answers_of_last_period(
    measurements: Measurements, period_attribute: str, closed: ClosedPeriods
) -> tuple[SignedArray, ...]:
    """Return the noisy answers of the last closed period.

    The answers are a function of ``closed``, so every call returns the same answers (P3).

    Args:
        measurements: the measurements of all periods together.
        period_attribute: the attribute whose cells are the periods.
        closed: private.

    Returns:
        For every block, the answers to its queries of that period, in order and in multiples of 1 /
        grid.

    >>> domain = ln.Domain(month=[1, 2])
    >>> made = ln.plan(ln.marginals(domain, ways=1), ln.ZCDP(1)).measured()
    >>> closed = close_period(
    ...     made,
    ...     "month",
    ...     "drop",
    ...     Table(domain, {"month": [0, 0, 1]}),
    ...     ClosedPeriods(),
    ...     SeededEntropy(1),
    ... )
    >>> [len(values) for values in answers_of_last_period(made, "month", closed)]
    [1]
    """
    frozen = Table.counted(
        measurements.domain,
        *measurements.columns(),
        {key: counts for key, (counts, _) in closed.tables.items()},
    )
    exact = dict(exact_answers(measurements, frozen))  # later periods are 0 there (P1)
    rows = [
        queries_due(block, period_attribute, closed.number - 1) for block in measurements.blocks
    ]
    # Otherwise one draw would be added to several answers.
    if [int(due.sum()) for due in rows] != [*map(len, closed.noise)]:
        raise InternalError(
            "The noise of a period does not belong to its rows; nothing was published. Please "
            "report this."
        )
    return tuple(
        as_int32_if_exact(exact[index].reshape(due.shape)[due] + closed.noise[index])
        for index, due in enumerate(rows)
    )


def fingerprint_measurements(
    measurements: Measurements, period_attribute: str, late_rows: str
) -> str:
    """Return a fingerprint that identifies measurements by their answers (P4).

    The fingerprint covers the answers to fixed test counts, and the noise scales.

    Args:
        measurements: the measurements of all periods together.
        period_attribute: the attribute whose cells are the periods.
        late_rows: "drop" or "arrival".

    Returns:
        SHA-256 in hexadecimal.

    >>> domain = ln.Domain(month=[1, 2])
    >>> first, second = (
    ...     ln.plan(ln.queries(domain, month=asked), ln.ZCDP(1)).measured()
    ...     for asked in ("identity", "total")
    ... )
    >>> fingerprint = fingerprint_measurements(first, "month", "drop")
    >>> fingerprint == fingerprint_measurements(second, "month", "drop")
    False
    """
    domain = measurements.domain
    columns = measurements.columns()
    trial = {
        key: np.arange(1, math.prod(map(domain.cells, key[1])) + 1) * 7919 % 65521
        for key in required_table_keys(measurements)
    }
    exact = dict(exact_answers(measurements, Table.counted(domain, *columns, trial)))
    digest = hashlib.sha256(
        repr(
            (
                measurements.noise.value,
                measurements.grid,
                columns,
                domain.shape,
                period_attribute,
                late_rows,
            )
        ).encode()
    )
    for index, block in enumerate(measurements.blocks):
        digest.update(
            repr(
                (
                    block.measure,
                    measurements.largest_values(block).tolist(),
                    block.attributes,
                    len(exact[index]),
                )
            ).encode()
        )
        for numbers in (exact[index], *row_scales(block, measurements.grid)):
            digest.update(np.asarray(numbers).astype("<i8").tobytes())
    return digest.hexdigest()


def required_table_keys(measurements: Measurements) -> list[TableKey]:
    """Return the keys of the tables from which measurements are computed.

    A key consists of the measure that is summed, or None if rows are counted, and the attributes.
    No key occurs twice.

    Args:
        measurements: the measurements of all periods together. If a block sums the distances from
            both ends of a measure, the tables of counts of its values, or of rows, are needed too.

    >>> required_table_keys(
    ...     ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.ZCDP(1)).measured()
    ... )
    [(None, ('sex',))]
    """
    tables = [(block.measure, block.attributes) for block in measurements.blocks]
    tables += [
        (measurements.domain.count_of(str(block.measure)), block.attributes)
        for block in measurements.blocks
        if block.ends
    ]
    return list(dict.fromkeys(tables))


def queries_due(block: Block, period_attribute: str, period: int) -> BoolArray:
    """Return which queries of a block are drawn when a period is closed (P1).

    Each query is drawn in the last period for which it has a coefficient.

    Args:
        block: a block that has a factor on only this attribute.
        period_attribute: the attribute whose cells are the periods.
        period: the number of the period, counted from 0.

    Returns:
        Booleans of shape (copies of the block, rows of each factor in turn).

    >>> domain = ln.Domain(month=[1, 2, 3])
    >>> (block,) = ln.plan(ln.queries(domain, month="identity"), ln.ZCDP(1)).measured().blocks
    >>> queries_due(block, "month", 1).tolist()
    [[False, True, False]]
    """
    shape = [block.copies, *(factor.operator.rows for factor in block.factors)]
    axis = [factor.attributes for factor in block.factors].index((period_attribute,)) + 1
    last = last_cells(block.factors[axis - 1].operator)
    return np.broadcast_to(
        (last == period).reshape([-1 if position == axis else 1 for position in range(len(shape))]),
        shape,
    )


def write_closed(file: Path, owner: str, closed: ClosedPeriods) -> None:
    """Write the closed periods to the disk, atomically.

    Only the data holder may read the file.

    Args:
        file: next to the ledger.
        owner: the payment and the fingerprint to which the file belongs.
        closed: private.

    Raises:
        OSError: the file cannot be written; the old file is unchanged.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_closed(Path(folder, "state"), "ab12", ClosedPeriods())
    ...     read_closed(Path(folder, "state"), "ab12", 0).number
    0
    """
    tables = [[*key, *map(_array_to_text, counts)] for key, counts in closed.tables.items()]
    noise = [*map(_array_to_text, closed.noise)]
    body = json.dumps([owner, closed.number, tables, noise, _used_rows_to_json(closed.used)])
    draft = file.with_name(f".{file.name}.draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(
        os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii"
    ) as opened:
        opened.write("\n".join([PRIVATE, body, hashlib.sha256(body.encode()).hexdigest(), ""]))
        opened.flush()
        os.fsync(opened.fileno())
    draft.replace(file)
    flush_folder(file.parent)


def read_closed(file: Path, owner: str, recorded_periods: int) -> ClosedPeriods:
    """Return the closed periods that `write_closed` wrote.

    Args:
        file: next to the ledger.
        owner: the payment and the fingerprint to which the file must belong.
        recorded_periods: the number of periods that the ledger has recorded. The file has the same
            number of periods, or one more period, which the ledger has not recorded.

    Raises:
        LedgerError: the file is missing or damaged; it belongs to another payment or other
            measurements; or it is older or newer than the ledger.

    >>> read_closed(Path("/nowhere"), "ab12", 0)
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.LedgerError: The private file /nowhere is missing, ...
    """
    try:
        heading, body, digest, *_ = file.read_text(encoding="ascii").split("\n")
        if [heading, digest] != [PRIVATE, hashlib.sha256(body.encode()).hexdigest()]:
            raise ValueError
        written_for, number, tables, noise, used = json.loads(body)
        if written_for != owner or number - recorded_periods not in (0, 1):
            raise ValueError
        table_counts = {
            (summed, tuple(names)): np.array([*map(_array_from_text, counts)])
            for summed, names, *counts in tables
        }
        noise_of_blocks = tuple(map(_array_from_text, noise))
        used_rows = _used_rows_from_json(used, number)
    except (OSError, ValueError, TypeError):
        raise LedgerError(
            f"The private file {file} is missing, is damaged, or does not match the ledger's "
            "entry of this series. Later periods need its counts of the closed periods. These "
            "cannot be computed again if the rows have changed since then. Restore the file. "
            "Without it no later period can be drawn; `leastnoise resume` can still publish the "
            "periods that were drawn."
        ) from None
    return ClosedPeriods(number=number, tables=table_counts, noise=noise_of_blocks, used=used_rows)


def _used_rows_to_json(used: UsedRows | None) -> list[object] | None:
    """Return the record of used rows as a JSON value; None for None."""
    if used is None:
        return None
    counts = [[name, _array_to_text(numbers)] for name, numbers in used.counts.items()]
    return [_base64(used.salt), _base64(b"".join(used.units)), counts]


def _used_rows_from_json(value: object, periods: int) -> UsedRows | None:
    """Return the record of used rows from its JSON value; None for None.

    Raises:
        ValueError, TypeError: the value has another form.
    """
    if value is None:
        return None
    if not isinstance(value, list):
        raise TypeError
    salt, units, counts = value
    digests = base64.b64decode(units, validate=True)
    by_name = {name: _array_from_text(numbers) for name, numbers in counts}
    positions = range(0, len(digests), DIGEST_BYTES)
    if any(len(numbers) != len(positions) for numbers in by_name.values()):
        raise ValueError
    return UsedRows(
        salt=base64.b64decode(salt, validate=True),
        periods=periods,
        units=tuple(digests[start : start + DIGEST_BYTES] for start in positions),
        counts=by_name,
    )


def _array_to_text(array: IntArray) -> str:
    """Encode an int64 array as base64 text, with 8 bytes for each number.

    The length of the text depends only on the public number of entries.
    """
    return _base64(array.astype("<i8").tobytes())


def _base64(content: bytes) -> str:
    """Encode bytes as base64 text."""
    return base64.b64encode(content).decode()


def _array_from_text(text: str) -> IntArray:
    """Decode the int64 array that `_array_to_text` encoded."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<i8").astype(np.int64)
