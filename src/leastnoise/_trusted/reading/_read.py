"""Read a source into a table of encoded rows, of keys, or of unit sizes.

Each row is encoded separately (E4, E5 of PROOFS-reading.md). The module also counts keys that
cannot be listed beforehand (E9), and the rows of each unit (E15).

If a source is joined, its rows also have the columns of their partner, a row of a second table
(E10).
"""

import fnmatch
import glob
import os
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import chain
from os import urandom
from pathlib import PurePosixPath
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from leastnoise._trusted.check import (
    InputError,
    InternalError,
    LeastNoiseError,
    message,
    refuse,
    today,
    whole,
)
from leastnoise._trusted.check.arrays import Array, BoolArray, IntArray
from leastnoise._trusted.check.progress import RowProgress, row_progress
from leastnoise._trusted.domain import (
    DROP,
    READ_AS_IT_IS,
    Domain,
    KeyTable,
    Kind,
    Measure,
    PerCellBound,
    PerUnit,
    Reading,
    Rule,
    UnitCount,
    UnitTotal,
    ValueCount,
    column_measures,
    type_fault,
)
from leastnoise._trusted.reading._column import (
    Chunk,
    Chunks,
    Column,
    CountRequest,
    Encoder,
    Encoders,
    Source,
    SourceFile,
)
from leastnoise._trusted.reading._data_names import check_unit
from leastnoise._trusted.reading._encode import (
    amount_encoder,
    cell_encoder,
    combined_amounts,
    unreadable_encoder,
)
from leastnoise._trusted.reading._unit_keys import (
    key_number_encoder,
    key_reader,
    key_text,
    null_keys,
)
from leastnoise._trusted.reading._units import (
    MOST_CUT,
    RowUsage,
    Units,
    cut_limit,
    lacking_rows,
    usage_table,
)
from leastnoise._trusted.reading._value_rules import is_null, value_as_text
from leastnoise._trusted.reading.helpers._locations import (
    CSV,
    NO_MATCH,
    NO_SOURCE,
    NO_ZONE,
    STRANGE_COLUMN,
    DatabaseTable,
    Joined,
    missing_column_message,
)
from leastnoise._trusted.table import RowAllowance, Table, set_reading_day

# These replace the position of a partner: NONE means that there is no partner or no key. SEVERAL
# means that the key occurs more than once in the second table.
NONE = -1
SEVERAL = -2
_P = ParamSpec("_P")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """The attributes, measures and tables that a read must produce.

    Attributes:
        attributes: the attributes to read; None for all attributes of the domain. No other
            attributes are read, and no row is dropped because of them.
        measures: the measures to read; None for all measures of the domain.
        tables: the attributes of every marginal that will be requested from the table, for each
            measure that is summed and for rows (None); None if they are not known. If they are
            known, a database engine that can count encodes, bounds and counts the rows.
        usage: whether the result also has a second table, ``usage``, with the numbers of used and
            unused rows.
        published: the attributes of every published table. A row is used if it has a value in all
            columns of at least one of these tables. If it is None, a row is used if no attribute
            drops it.
    """

    attributes: Sequence[str] | None = None
    measures: Sequence[str] | None = None
    tables: Mapping[str | None, Sequence[tuple[str, ...]]] | None = None
    usage: bool = False
    published: Sequence[tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodFiles:
    """The names of the files that can have rows of the periods to be read (E16).

    Attributes:
        along: the attribute whose cells are the periods.
        first: the first period that is read.
        end: the period after the last period that is read.
        patterns: for each period, a pattern of the names of its files, such as
            ``year=2024/month=03/*``. Without patterns, only folders named after the column of the
            attribute state the period of a file. A file is read if its name states no period.
    """

    along: str
    first: int
    end: int
    patterns: Sequence[str] = ()


def _with_reading_day(reader: Callable[_P, Table]) -> Callable[_P, Table]:
    """Decorate a reader so that its tables record the day on which it started."""

    @wraps(reader)
    def read_with_day(*args: _P.args, **kwargs: _P.kwargs) -> Table:
        """Read a table, and record the day on which reading started."""
        day = today()
        return set_reading_day(reader(*args, **kwargs), day)

    return read_with_day


@_with_reading_day
def read(
    source: Any,
    domain: Domain,
    *,
    read_request: ReadRequest | None = None,
    unit_column: str | None = None,
    max_rows: int = 1,
    max_per_cell: PerCellBound | None = None,
    unit_reading: Reading = READ_AS_IT_IS,
    allowance: RowAllowance | None = None,
    period_files: PeriodFiles | None = None,
    progress: RowProgress | None = None,
) -> Table:
    """Read a source into a table of encoded rows, or of counts by its engine.

    If the source has an engine that can count, the engine encodes and counts the rows.

    Args:
        source: a path to a ``.csv``, ``.tsv``, ``.txt`` (also with ``.gz``) or ``.parquet`` file,
            or to a folder or pattern (``visits/*.csv``) of such files; a pandas, Polars (also
            lazy), PyArrow, Spark or Ibis table; a DuckDB relation; a `DatabaseTable`; or several of
            these sources, `Joined`.
        domain: the public domain. Its attributes are columns of the source, and each measure names
            its column.
        read_request: the requested tables; None for all attributes and measures of the domain.
        unit_column: the column whose values are the privacy units; None: each row is a unit.
        max_rows: the largest number of rows of a unit that are kept; these rows are chosen at
            random. The number is 1 if each row is a unit.
        max_per_cell: the largest number of these rows in one cell of attributes that are read;
            None: all.
        unit_reading: how the values of the unit's column are read.
        allowance: the rows that each unit may still use in a series; ``max_rows`` is then the bound
            in all periods (E14), and the rows of an engine are read, not counted.
        period_files: the files that need to be read, if the source has several; None for all files.
        progress: the object that shows the progress after each chunk. No other object receives the
            numbers of rows, which are private (E13).

    Returns:
        The encoded table. The table does not contain rows that the policies of the domain drop.

    Raises:
        InputError: the source is missing, has an unsupported type or kind, or lacks a required
            column. No row causes this error, and its message never contains a value of a row.

    Guarantees: whether a row is dropped, and how it is encoded, depends only on this row. If each
        row is a unit, adding or removing a row of the source changes at most one row of the table.
        With ``unit_column``, adding or removing all rows of one unit changes a limited number of
        rows of the table that count as rows: at most ``max_rows`` in all cells together, and at
        most the number that ``max_per_cell`` allows in one cell. Rows that are dropped because they
        are outside the domain are included in these numbers. The proof is at `Units.keep`.
        Moreover, in at most ``max_rows`` cells, the unit changes each count of units by 1, and each
        total of units by an amount within its bounds. Within one cell of the bound
        ``max_per_cell``, at most ``max_per_cell`` of these cells change. Each line of a CSV file is
        one row, whatever the line contains (see `leastnoise._trusted.reading._files`).

    Edge cases: rows whose unit is null are dropped. For a source without rows, the table is empty.
        Malformed lines of a CSV file are dropped.

    >>> import duckdb
    >>> read(duckdb.sql("SELECT 'F' AS sex"), Domain(sex=["F", "M"]))
    <Table of private rows over Domain(sex=Categories(['F', 'M']))>
    """
    if not isinstance(domain, Domain):
        raise refuse("domain", domain, "a Domain")
    shown = row_progress(progress)
    most = whole("max_rows", max_rows, 1)
    _check_bounds(unit_column, most, max_per_cell)
    if allowance is not None and (unit_column is None or allowance.most != most):
        raise refuse("max_rows", most, f"the bound of the series, {allowance.most}, with units")
    read_request = read_request or ReadRequest()
    attributes: Iterable[str] = domain.names
    if read_request.attributes is not None:
        attributes = read_request.attributes
    measures: Iterable[str] = domain.measures
    if read_request.measures is not None:
        measures = read_request.measures
    sizes = {name: domain.cells(name) for name in attributes}
    sums = {name: domain.measure(name) for name in measures}
    if unit_column is None:
        units = None
    else:
        units = Units(max_per_cell, sizes, unit_reading, allowance)
    _check_amounts_of_units(_measures_of_units(sums), sizes, units)
    opened, names = open_columns(source, domain, list(sizes), list(sums), unit_column, unit_reading)
    if period_files is not None and opened.restrict_files is not None:
        opened = opened.restrict_files(_file_selector(period_files, domain))
    request = CountRequest(
        rules={name: domain.rule(name) for name in sizes},
        sums=sums,
        tables=read_request.tables or {},
        usage=read_request.usage,
        unit_column=unit_column,
        unit_reading=unit_reading,
        max_rows=most,
        max_per_cell=max_per_cell,
        filled=_filled_tables(domain, read_request),
        hidden=_hidden_cells(domain, [*sizes]),
    )
    # An engine cannot know which rows units have used before (E14).
    if opened.engine is not None and read_request.tables is not None and allowance is None:
        engine_counts = _counted_in_engine(opened.engine, domain, request)
        if engine_counts is not None:
            return engine_counts
    return _read_rows(opened, names, domain, request, units, shown)


def _file_selector(periods: PeriodFiles, domain: Domain) -> Callable[[SourceFile], bool]:
    """Return a function that selects the files with rows of some periods (E16)."""
    column = domain.kind(periods.along).reading.column or periods.along
    encode = cell_encoder(domain.rule(periods.along))
    patterns = _PathPatterns(periods.patterns)

    def is_read(file: SourceFile) -> bool:
        """Return whether a file may have rows of the periods."""
        if column in file.values:
            (cell,) = encode(Column([file.values[column]])).tolist()
            return periods.first <= cell < periods.end
        of_file = patterns.matches(file.name)
        return not of_file or any(periods.first <= period < periods.end for period in of_file)

    return is_read


_Parts = tuple[str, ...]


class _PatternForm(NamedTuple):
    """The number of parts of a path pattern, and its parts without a wildcard."""

    length: int
    literal: tuple[int, ...]

    def literals_of(self, parts: _Parts) -> _Parts:
        """Return the parts of a path at positions where a pattern has no wildcard."""
        return tuple(parts[position] for position in self.literal)


class _PathPatterns:
    """Compiled path patterns, which match a path like `PurePosixPath.match`.

    The patterns are indexed by their parts without wildcards. If several patterns have the parts
    without wildcards at the same positions, as most patterns do, one lookup finds all of them.

    >>> patterns = _PathPatterns(["year=2024/month=0?/*", "*-2024.csv"])
    >>> patterns.matches("data/year=2024/month=03/a.csv"), patterns.matches("x/y-2024.csv")
    ([0], [1])
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        # For each form of pattern, a mapping from literal parts to two things: the indices of the
        # patterns, and the compiled expressions of their parts.
        self._forms: dict[_PatternForm, dict[_Parts, list[tuple[int, list[re.Pattern[str]]]]]] = {}
        for number, pattern in enumerate(patterns):
            parts = PurePosixPath(pattern).parts
            literal = tuple(
                position for position, part in enumerate(parts) if not glob.has_magic(part)
            )
            form = _PatternForm(len(parts), literal)
            key = tuple(parts[position] for position in literal)
            expressions = [re.compile(fnmatch.translate(part)) for part in parts]
            self._forms.setdefault(form, {}).setdefault(key, []).append((number, expressions))

    def matches(self, name: str) -> list[int]:
        """Return the indices of the patterns that match the end of a path."""
        parts = PurePosixPath(name).parts
        numbers = []
        for form, by_literals in self._forms.items():
            last = parts[len(parts) - form.length :]
            if len(last) < form.length or not form.length:
                continue
            for number, expressions in by_literals.get(form.literals_of(last), []):
                if all(map(re.Pattern.match, expressions, last)):
                    numbers.append(number)
        return sorted(numbers)


def _read_rows(
    opened: Source,
    names: Sequence[str],
    domain: Domain,
    request: CountRequest,
    units: Units | None,
    shown: RowProgress | None,
) -> Table:
    """Read and encode a source chunk by chunk, and bound the rows of units (E4).

    Args:
        opened: the source.
        names: the columns of the attributes, of the factors of the measures, and of the unit.
        domain: the public domain.
        request: the columns and measures of each row.
        units: the object that numbers the units of the rows; None if every row is a unit.
        shown: the object that shows the progress; None for no display.
    """
    per_unit_measures = _measures_of_units(request.sums)
    totals = _unit_totals(request.sums)
    encoded = _encode_rows(opened, names, request, units, shown)
    if units is None:
        keep = np.ones(encoded.source_rows, dtype=np.bool_)
    else:
        keep = units.keep(request.max_rows, urandom)
    counting = keep[encoded.inside]
    unit_rows = UnitRows(units, encoded.inside, encoded.cells, request.hidden, request.max_rows)
    rows_of_groups = {
        name: unit_rows.group_rows(measure)
        for name, measure in per_unit_measures.items()
        if isinstance(measure, UnitCount) and measure.has_groups
    }
    rows_of_measures = {
        name: unit_rows.counts(name, measure)
        for name, measure in per_unit_measures.items()
        if isinstance(measure, UnitCount) and name not in rows_of_groups
    }
    values = {name: rows.astype(np.int64) for name, rows in rows_of_measures.items()}
    amounts_kept_and_cut: dict[str, tuple[int, int]] = {}
    for name, measure in totals.items():
        rows_of_measures[name], values[name], cut = unit_rows.totals(
            name, measure, encoded.amounts[name], encoded.has_value[name]
        )
        amounts_kept_and_cut[name] = int(np.abs(values[name]).sum()), cut
    usage = _count_usage(request, encoded, keep, units, amounts_kept_and_cut)
    unit_use = None
    if units is not None:
        unit_use = units.count_period_use(_counted_rows(keep, encoded.inside, rows_of_measures))
    has_effect = np.logical_or.reduce([counting, *(amounts != 0 for amounts in values.values())])
    for name, amounts in encoded.amounts.items():
        if name not in per_unit_measures:
            # A row that only represents a unit adds nothing to sums (T6).
            values[name] = amounts * counting if per_unit_measures else amounts
    rows_counting: IntArray = counting[has_effect].astype(np.int64)
    cells = _chosen_rows(encoded.cells, has_effect)
    values = _chosen_rows(values, has_effect)
    cells, values, rows_counting = _append_group_rows(cells, values, rows_counting, rows_of_groups)
    return Table(
        domain,
        cells,
        values,
        unit_column=request.unit_column,
        max_rows=request.max_rows,
        max_per_cell=request.max_per_cell,
        rows=len(rows_counting),
        counting=rows_counting if per_unit_measures else None,
        usage=_usage_table(usage, request, totals),
        period_use=unit_use,
    )


def _count_usage(
    request: CountRequest,
    encoded: "EncodedRows",
    keep: BoolArray,
    units: Units | None,
    amounts_kept_and_cut: Mapping[str, tuple[int, int]],
) -> RowUsage | None:
    """Count the rows that are used, not used and cut; None if not requested.

    Args:
        request: the request. The request determines whether these numbers are counted, and which
            tables are published.
        encoded: all rows of the source.
        keep: a mask of the rows of the source that count for their unit.
        units: the units of the rows; None if every row is a unit.
        amounts_kept_and_cut: for each total of units, two numbers: the sum of the kept amounts, and
            the cut amount.
    """
    if not request.usage:
        return None
    filled_rows = _is_filled(encoded.cells, request.filled)
    used = keep & encoded.readable & _in_tables(encoded.inside, filled_rows)
    hidden_cells = _in_hidden_cells(encoded.cells, request.hidden, used[encoded.inside])
    usage = _row_usage(used, keep, units, encoded.malformed_lines, hidden_cells)
    return replace(usage, amounts=amounts_kept_and_cut)


def _append_group_rows(
    cells: dict[str, Array],
    values: dict[str, IntArray],
    rows_counting: IntArray,
    group_rows_by_measure: Mapping[str, Mapping[str, Array]],
) -> tuple[dict[str, Array], dict[str, IntArray], IntArray]:
    """Append to a table the rows that represent units in groups of cells.

    A row that represents a unit has the amount 1 in the measure that counts units, and 0 in other
    measures. Such a row does not count as a row of the source.

    Args:
        cells: the cells of the rows, by attribute.
        values: the amounts of the rows, by measure.
        rows_counting: 1 for each row that counts as a row, and 0 for the other rows.
        group_rows_by_measure: for each count of units in groups, the cells of the rows to be
            appended, by attribute.

    Returns:
        The arguments ``cells``, ``values`` and ``rows_counting``, with the additional rows
        appended.
    """
    for name, group_rows in group_rows_by_measure.items():
        number = len(next(iter(group_rows.values())))
        cells = {other: np.append(column, group_rows[other]) for other, column in cells.items()}
        values = {other: _with_zeros(column, number) for other, column in values.items()}
        values[name] = np.append(np.zeros_like(rows_counting), np.ones(number, dtype=np.int64))
        rows_counting = _with_zeros(rows_counting, number)
    return cells, values, rows_counting


def _usage_table(
    usage: RowUsage | None, request: CountRequest, totals: Mapping[str, UnitTotal]
) -> Table | None:
    """Return the usage as a `Table`; None if it was not requested."""
    if usage is None:
        return None
    return usage_table(usage, request.unit_column, request.max_rows, totals)


def _measures_of_units(sums: Mapping[str, Measure]) -> dict[str, PerUnit]:
    """Select the measures that are counts or totals of units."""
    return {name: measure for name, measure in sums.items() if isinstance(measure, PerUnit)}


def _unit_totals(sums: Mapping[str, Measure]) -> dict[str, UnitTotal]:
    """Select the measures that are totals of units."""
    return {name: measure for name, measure in sums.items() if isinstance(measure, UnitTotal)}


def _with_zeros(column: IntArray, count: int) -> IntArray:
    """Return a column with ``count`` zeros appended."""
    return np.append(column, np.zeros(count, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """All rows of a source, encoded but not yet bounded for each unit.

    Attributes:
        inside: which rows of the source are inside the domain.
        readable: which rows of the source have a number or a null in every measure.
        malformed_lines: the number of lines that are not records.
        cells: for each attribute the cells of the rows inside the domain, in a small type.
        amounts: for each measure of rows, and for each total of units, the amounts of these rows.
        has_value: for each total of units, a mask of the rows that have a value.
    """

    inside: BoolArray
    readable: BoolArray
    malformed_lines: int
    cells: dict[str, Array]
    amounts: dict[str, IntArray]
    has_value: dict[str, BoolArray]

    @property
    def source_rows(self) -> int:
        """The number of rows of the source, including dropped rows."""
        return len(self.inside)


def _encode_rows(
    opened: Source,
    names: Sequence[str],
    request: CountRequest,
    units: Units | None,
    shown: RowProgress | None,
) -> EncodedRows:
    """Encode all rows of a source, and number their units.

    Args:
        opened: the source.
        names: the columns of the attributes, of the measures and of the unit.
        request: the columns and measures of each row.
        units: the object that receives the units of the rows; None if every row is a unit.
        shown: the object that shows the progress; None for no display.
    """
    rules = request.rules
    sums = request.sums
    factors = {
        name: column_measures(measure) for name, measure in sums.items() if column_measures(measure)
    }
    totals = {name: sums[name] for name in factors if isinstance(sums[name], UnitTotal)}
    # Several measures may use the same column. It is encoded only once.
    parts = [*dict.fromkeys(chain.from_iterable(factors.values()))]
    encoders = _row_encoders(names, request, parts, units)
    encoders += [
        (measure.column, amount_encoder(ValueCount(measure))) for measure in totals.values()
    ]
    if request.usage:
        encoders += _unreadable([*factors.values()])
    # The codes of the rows inside the domain so far, and for all source rows whether they are
    # inside.
    types = [np.min_scalar_type(rule.size - 1) for rule in rules.values()]
    types += [np.dtype(np.int64)] * len(factors) + [np.dtype(np.bool_)] * len(totals)
    columns: list[list[Array]] = [[np.zeros(0, dtype=kind)] for kind in types]
    inside = [np.zeros(0, dtype=np.bool_)]
    readable = [np.zeros(0, dtype=np.bool_)]
    malformed_lines = 0
    for rows, encoded, malformed in opened.encoded(encoders):
        codes = encoded[: len(rules)]
        numbers = iter(encoded[len(rules) :])
        malformed_lines += malformed
        part_amounts = {part: next(numbers) for part in parts}
        amounts = [
            combined_amounts(sums[name], [part_amounts[part] for part in parts_of])
            for name, parts_of in factors.items()
        ]
        is_inside = np.ones(rows, dtype=np.bool_)
        for column in codes:
            is_inside &= column != DROP  # E4
        inside.append(is_inside)
        if units is not None:
            units.add(next(numbers), codes)
        values = [next(numbers) for _ in totals]
        _append_rows(columns, [*codes, *amounts, *values], types, is_inside)
        readable.append(sum(numbers, np.zeros(rows, dtype=np.int64)) == 0)
        if shown is not None:
            shown.show(sum(map(len, inside)), opened.total)
    whole_columns = map(_whole_column, columns)
    return EncodedRows(
        inside=np.concatenate(inside),
        readable=np.concatenate(readable),
        malformed_lines=malformed_lines,
        cells={name: next(whole_columns) for name in rules},
        amounts={name: next(whole_columns) for name in factors},
        has_value={name: next(whole_columns) for name in totals},
    )


def _append_rows(
    columns: Sequence[list[Array]],
    encoded: Sequence[Array],
    types: Sequence[np.dtype[Any]],
    is_inside: BoolArray,
) -> None:
    """Append a chunk's rows that are inside the domain to lists of arrays."""
    all_inside = bool(is_inside.all())
    for chunks, column, kind in zip(columns, encoded, types, strict=True):
        rows_inside = column if all_inside else column[is_inside]
        chunks.append(rows_inside.astype(kind))


def _row_encoders(
    names: Sequence[str], request: CountRequest, parts: Sequence[Measure], units: Units | None
) -> list[tuple[str, Encoder]]:
    """Return the encoders of the cells, of the amounts and of the unit.

    Args:
        names: the columns of the attributes, of the measures and of the unit.
        request: the rules of the attributes.
        parts: the measures from which amounts are computed.
        units: the object that receives the units of the rows; None if every row is a unit.
    """
    cell_encoders = map(cell_encoder, request.rules.values())
    encoders = list(zip(names[: len(request.rules)], cell_encoders, strict=True))
    encoders += [(part.column, amount_encoder(part)) for part in parts]
    if units is not None:
        encoders.append((names[-1], units.number))
    return encoders


def _counted_rows(
    keep: BoolArray, is_inside: BoolArray, rows_of_measures: Mapping[str, BoolArray]
) -> dict[str | None, BoolArray]:
    """Return the masks of the rows that count, for rows and each unit measure.

    Args:
        keep: which rows of the source count as rows.
        is_inside: which rows of the source are inside the domain.
        rows_of_measures: for each count or total of units, a mask: the rows inside the domain that
            have the amounts of their units.
    """
    masks: dict[str | None, BoolArray] = {None: keep}
    for name, rows in rows_of_measures.items():
        masks[name] = np.zeros(len(is_inside), dtype=np.bool_)
        masks[name][is_inside] = rows
    return masks


def _filled_tables(domain: Domain, request: ReadRequest) -> tuple[dict[str, int], ...]:
    """Return the hidden cells that each published table excludes.

    Each entry maps attributes to the numbers of their hidden cells. The result is empty if every
    row is in at least one table.
    """
    tables = []
    for names in request.published or ():
        kinds = {name: domain.kind(name) for name in names}
        tables.append({name: kind.published for name, kind in kinds.items() if kind.hidden})
    if {} in tables:
        return ()
    return tuple(tables)


def _check_amounts_of_units(
    per_unit_measures: Mapping[str, PerUnit], sizes: Mapping[str, int], units: Units | None
) -> None:
    """Raise if counts or totals of units lack the unit or their attributes."""
    attributes = chain.from_iterable(measure.attributes for measure in per_unit_measures.values())
    if per_unit_measures and not (units and {*attributes} <= {*sizes}):
        raise refuse(
            "a count or total of units",
            ", ".join(per_unit_measures),
            "in a table whose rows have units, and of attributes that are read",
        )


def _hidden_cells(domain: Domain, names: Sequence[str]) -> dict[str, int]:
    """Return the number of each hidden cell, by attribute."""
    return {name: domain.kind(name).published for name in names if domain.kind(name).hidden}


def _is_filled(cells: Mapping[str, Array], tables: Sequence[Mapping[str, int]]) -> BoolArray | None:
    """Return a mask of the rows in a published table; None if all rows are."""
    if not tables:
        return None
    in_table = []
    for table in tables:
        is_published = [cells[name] < hidden for name, hidden in table.items()]
        in_table.append(np.logical_and.reduce(is_published))
    filled: BoolArray = np.logical_or.reduce(in_table)
    return filled


def _in_hidden_cells(
    cells: Mapping[str, Array], hidden: Mapping[str, int], used: BoolArray
) -> list[BoolArray]:
    """Return, for each hidden cell, a mask of the used rows that are in it.

    Args:
        cells: the cells of the rows inside the domain, by attribute.
        hidden: the number of the hidden cell of each attribute that has one.
        used: a mask of the used rows.
    """
    return [cells[name][used] == cell for name, cell in hidden.items()]


def _in_tables(is_inside: BoolArray, is_published: BoolArray | None) -> BoolArray:
    """Return a mask of the source's rows that are in a published table."""
    in_tables = is_inside.copy()
    if is_published is not None:
        in_tables[is_inside] = is_published
    return in_tables


def _counted_in_engine(engine: Any, domain: Domain, request: CountRequest) -> Table | None:
    """Count the requested tables in the engine; None if it cannot."""
    counted = engine.counts(request, urandom)
    if counted is None:
        return None
    tables, usage = counted
    totals = _unit_totals(request.sums)
    return Table.counted(
        domain,
        list(request.rules),
        list(request.sums),
        tables,
        unit_column=request.unit_column,
        max_rows=request.max_rows,
        max_per_cell=request.max_per_cell,
        usage=_usage_table(usage, request, totals),
    )


def _unreadable(factors_of_measures: Sequence[Sequence[Measure]]) -> Encoders:
    """Return encoders that mark the values of measures that are no numbers.

    The marks are needed to count the used rows.
    """
    summed = {part.column: part.reading for factor in factors_of_measures for part in factor}
    return [(name, unreadable_encoder(reading)) for name, reading in summed.items()]


def _row_usage(
    used: BoolArray,
    counting: BoolArray,
    units: Units | None,
    malformed_lines: int,
    hidden_cells: Sequence[BoolArray],
) -> RowUsage:
    """Count the rows that are used, not used and cut, from masks of rows (E8).

    Args:
        used: which rows the domain keeps, with a number or a null in every measure.
        counting: a mask of the rows that count for their unit.
        units: the units of the rows; None if every row is a unit. In that case a line that is not a
            record counts as an unused row.
        malformed_lines: the number of lines that are not records.
        hidden_cells: for each attribute that only some tables use, a mask of the used rows in its
            hidden cell.
    """
    used_rows = int(np.count_nonzero(used))
    unused_rows = int(np.count_nonzero(counting)) - used_rows
    if units is None:
        unused_rows += malformed_lines
        cut_rows = 0
    else:
        cut_rows = units.count_cut_rows(counting, MOST_CUT)
    return RowUsage(
        used=used_rows,
        unused=unused_rows,
        cut=cut_rows,
        lacking=lacking_rows(hidden_cells, urandom),
    )


def _check_bounds(
    unit_column: str | None, max_rows: int, max_per_cell: PerCellBound | None
) -> None:
    """Raise if rows per unit are bounded although every row is a unit."""
    advice = "Name the unit_column whose rows are to be bounded."
    if unit_column is None and max_rows != 1:
        raise refuse("max_rows", max_rows, "1 if every row is a unit", advice)
    if unit_column is None and max_per_cell is not None:
        raise refuse("max_per_cell", max_per_cell, "None if every row is a unit", advice)


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Chooses the rows that represent units in counts and totals of units (E12).

    Attributes:
        units: the units of all rows of the source.
        inside: which rows of the source are inside the domain.
        cells: the cells of these rows, by attribute.
        hidden: the number of the hidden cell of each attribute that has one.
        most: the largest number of cells in which a unit has an amount.
    """

    units: Units | None
    inside: BoolArray
    cells: Mapping[str, Array]
    hidden: Mapping[str, int]
    most: int

    def counts(self, name: str, unit_count: UnitCount) -> BoolArray:
        """Choose one row of each unit in each of its cells; return a mask.

        Args:
            name: the name of the count; a unit may have an allowance of cells for it (E14).
            unit_count: the count of units.
        """
        is_eligible, missing = self._eligible(unit_count)
        return self._chosen(name, unit_count, is_eligible, missing)

    def totals(
        self, name: str, measure: UnitTotal, row_amounts: IntArray, has_value: BoolArray
    ) -> tuple[BoolArray, IntArray, int]:
        """Choose rows for the clipped totals of units.

        In each cell of a unit, one row has the clipped total of the unit in that cell. The method
        returns three things: a mask of these rows, the amount of every row, and the total amount
        that was cut.

        Args:
            name: the name of the totals; a unit may have an allowance of cells for them (E14).
            measure: the totals.
            row_amounts: the amount of each row.
            has_value: whether each row has a value.
        """
        # Hidden cells also have totals, because tables without the attribute include them.
        _, missing = self._eligible(measure)
        is_eligible = has_value.astype(np.bool_)
        is_chosen = self._chosen(name, measure, is_eligible, missing)
        cells = [self.cells[name] for name in measure.attributes]
        units = self._units_of_rows()
        totals = units.totals(self.inside, cells, row_amounts)
        clipped = np.clip(totals, measure.low_units, measure.high_units)
        amounts: IntArray = np.where(is_chosen, clipped, 0)
        cut = units.cut_amount(
            self.inside,
            cells,
            totals,
            amounts,
            is_chosen=is_chosen,
            is_selectable=is_eligible,
            most_per_cell=cut_limit(measure.largest),
        )
        return is_chosen, amounts, cut

    def _chosen(
        self, name: str, measure: PerUnit, is_eligible: BoolArray, missing: IntArray
    ) -> BoolArray:
        """Return a mask of the rows that have the amounts of their units."""
        represents_unit = self._units_of_rows().choose_representatives(
            self.inside,
            [self.cells[attribute] for attribute in measure.attributes],
            self.most if measure.attributes else 1,
            urandom,
            name=name,
            hidden_cell_counts=missing,
            is_selectable=is_eligible,
        )
        return represents_unit == 1

    def group_rows(self, unit_count: UnitCount) -> dict[str, Array]:
        """Choose one row for each unit and group; return their cells by attribute.

        A unit has rows only for the groups that it is in.
        """
        is_eligible, missing = self._eligible(unit_count)
        return self._units_of_rows().group_rows(
            self.inside,
            self.cells,
            unit_count,
            self.most,
            urandom,
            hidden_cell_counts=missing,
            is_selectable=is_eligible,
        )

    def _eligible(self, measure: PerUnit) -> tuple[BoolArray, IntArray]:
        """Return a mask of selectable rows, and each row's number of hidden cells."""
        rows = int(np.count_nonzero(self.inside))
        is_eligible = np.ones(rows, dtype=np.bool_)
        missing = np.zeros(rows, dtype=np.int64)
        for name, hidden_cell in self.hidden.items():
            is_hidden = self.cells[name] == hidden_cell
            missing += is_hidden
            if name in measure.attributes:
                is_eligible &= ~is_hidden
        return is_eligible, missing

    def _units_of_rows(self) -> Units:
        """Return the numbering of units; raise if every row is a unit."""
        if self.units is None:
            raise InternalError("Rows without units have no amounts of units; please report this.")
        return self.units


def _whole_column(parts: list[Array]) -> Array:
    """Concatenate the chunks of a column, and clear the list to free memory."""
    column: Array = np.concatenate(parts)
    parts.clear()  # free the chunks, so that a large table is not in memory twice
    return column


def _chosen_rows(columns: dict[str, Array], is_selected: BoolArray) -> dict[str, Array]:
    """Select rows of each column, and remove the columns from the mapping."""
    # Taking positions is faster than applying the mask to every column.
    positions = np.flatnonzero(is_selected)
    return {name: columns.pop(name).take(positions) for name in [*columns]}


def check_source(
    source: Any,
    domain: Domain,
    attributes: Sequence[str],
    measures: Sequence[str],
    unit_column: str | None,
    unit_reading: Reading = READ_AS_IT_IS,
) -> None:
    """Raise an error, before anything is paid, if a source cannot be read.

    The function refuses every source that `read` would refuse before it reads a row. The function
    also refuses columns whose type no rule reads. The function returns nothing about the source.

    >>> check_source("/nowhere.csv", Domain(sex=["F", "M"]), ["sex"], [], None)
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: the source must be a file that
    exists; there is no file '/nowhere.csv'.
    """
    opened, names = open_columns(source, domain, attributes, measures, unit_column, unit_reading)
    for name in names:
        if name in opened.unreadable_columns:
            raise InputError(
                message(
                    STRANGE_COLUMN,
                    name=name,
                    what=opened.description,
                    kind=opened.unreadable_columns[name],
                )
            )
    pairs: list[tuple[str, str, Kind | Measure]] = []
    for name in attributes:
        kind = domain.kind(name)
        pairs.append((name, kind.reading.column or name, kind))
    for name in measures:
        pairs += [(name, part.column, part) for part in column_measures(domain.measure(name))]
    for name, column, column_name in pairs:
        holds = opened.holds.get(column)
        # Polars, Arrow and pandas infer the type of nulls from the values. A refusal would show
        # that no row has a value.
        if holds is None or holds == "nulls":
            continue
        fault = type_fault(column_name, holds)
        if fault is not None:
            pair = message(NO_MATCH, name=name, column=column, what=opened.description, holds=holds)
            raise InputError(f"{pair}: {fault}.")


def open_columns(
    source: Any,
    domain: Domain,
    attributes: Sequence[str],
    measures: Sequence[str],
    unit_column: str | None,
    unit_reading: Reading = READ_AS_IT_IS,
) -> tuple[Source, list[str]]:
    """Open a source; return it with the names of the columns to be read.

    The names include the columns of attributes and of measures, and the column of the unit if there
    is one.

    Raises an `InputError` for the same reasons as `read`, and also if a joined table is neither
    public nor joined on the column of the unit.
    """
    if isinstance(source, Joined):
        check_unit(source, unit_column, unit_reading)
    columns = [domain.kind(name).reading.column or name for name in attributes]
    for name in measures:
        columns += [part.column for part in column_measures(domain.measure(name))]
    if unit_column is not None:
        columns.append(unit_column)
    opened = open_source(source, columns)
    for name in columns:
        if opened.names.count(name) != 1:
            untyped = all(field.type is None and field.readable for field in opened.fields)
            raise InputError(
                missing_column_message(opened.description, opened.names, name, in_header=untyped)
            )
    for attribute, name in zip(attributes, columns, strict=False):
        _check_zone(opened, domain, attribute, name)
    # Otherwise units could not be distinguished.
    if unit_column is not None and unit_column in opened.unreadable_columns:
        raise InputError(
            message(
                STRANGE_COLUMN,
                name=unit_column,
                what=opened.description,
                kind=opened.unreadable_columns[unit_column],
            )
        )
    return opened, columns


def _check_zone(opened: Source, domain: Domain, attribute: str, name: str) -> None:
    """Raise if a day attribute without a time zone reads a column of instants."""
    (field,) = (field for field in opened.fields if field.name == name)
    if field.zone is None or getattr(domain.kind(attribute), "zone", "UTC") is not None:
        return
    if field.zone:
        of_schema = f" of the time zone {field.zone}"
    else:
        of_schema = ""
    if "/" in field.zone:
        advised = f'"{field.zone}"'
    else:
        advised = '"UTC"'
    raise InputError(
        message(
            NO_ZONE,
            name=name,
            what=opened.description,
            zone=of_schema,
            attribute=attribute,
            advised=advised,
        )
    )


def open_source(source: Any, columns: Sequence[str] | None = None) -> Source:
    """Open a source of any supported type, without reading rows.

    If an engine joins tables, it joins only ``columns``; if ``columns`` is None, it joins all
    columns.
    """
    # Import these libraries only when a source is opened, so that the command line starts quickly.
    if isinstance(source, (str, os.PathLike, CSV)):
        from leastnoise._trusted.reading._files import open_files

        return open_files(source)
    if isinstance(source, DatabaseTable):
        if (url := source.url()).startswith("duckdb://"):
            from leastnoise._trusted.reading._frame_sources import open_database

            return open_database(source, url.removeprefix("duckdb://"))
        from leastnoise._trusted.reading._postgres import open_postgres

        return open_postgres(source)
    if isinstance(source, Joined):
        columns_before = None
        if columns is not None:
            columns_before = [*columns, source.first_key]
        first = open_source(source.data, columns_before)
        return joined_source(source, first, open_source(source.second), columns)
    if type(source).__name__ == "DataFrame" and type(source).__module__.startswith("pyspark."):
        from leastnoise._trusted.reading._spark import open_spark

        return open_spark(source)
    if type(source).__name__ == "DuckDBPyRelation":
        from leastnoise._trusted.reading._frame_sources import open_relation

        return open_relation(source)
    from leastnoise._trusted.reading._frame_sources import open_frame

    opened = open_frame(source)
    if opened is None:
        from leastnoise._trusted.reading._files import KINDS
        from leastnoise._trusted.reading.helpers._locations import file_endings

        # The repr of a source may show rows.
        raise InputError(
            message(NO_SOURCE, endings=file_endings(KINDS), kind=type(source).__name__)
        )
    return opened


def csv_delimiter(source: Any) -> str | None:
    """Return the delimiter of CSV files; None for other sources.

    >>> csv_delimiter(pd.DataFrame({"age": [17]})) is None
    True
    """
    try:
        return open_source(source).delimiter
    except LeastNoiseError:  # the reader will report this error
        return None


@_with_reading_day
def read_keys(
    source: Any,
    domain: Domain,
    attribute: str,
    *,
    unit_column: str | None = None,
    max_rows: int = 1,
    unit_reading: Reading = READ_AS_IT_IS,
    progress: RowProgress | None = None,
) -> Table:
    """Count the units that have each key of a column, and return a table.

    An engine counts the keys if it can; otherwise they are read chunk by chunk.

    The attribute is `Unknown` in the domain. A unit counts for at most ``max_rows`` keys, once for
    each; the choice of these keys depends on no value. As for `leastnoise._trusted.reading.read`,
    no row causes an error, and no error contains a value of a row.

    Guarantees: adding or removing all rows of a unit changes the numbers of at most ``max_rows``
        keys, each by 1.

    Edge cases: rows without a key and rows whose unit is null are dropped before the keys of a unit
        are chosen.

    >>> frame = pd.DataFrame({"agent": ["curl", " curl", None, "wget"]})
    >>> read_keys(frame, ln.Domain(agent=ln.Unknown(9, reading=ln.Reading(trim=True))), "agent")
    <Table of private rows over Domain(agent=Unknown(9, reading=Reading(trim=True)))>
    """
    rule = domain.keys(attribute)
    shown = row_progress(progress)
    opened, names = open_columns(source, domain, [attribute], [], unit_column, unit_reading)
    table = partial(Table.keyed, domain, attribute, unit_column=unit_column, max_rows=max_rows)
    bound = None if unit_column is None else PerCellBound(1, attribute)
    if opened.engine is not None:
        request = CountRequest(
            rules={attribute: rule},
            sums={},
            tables={},
            unit_column=unit_column,
            max_rows=max_rows,
            max_per_cell=bound,
            unit_reading=unit_reading,
        )
        there = opened.engine.keys(request, urandom)
        if there is not None:
            return table(list(there), np.array(list(there.values()), dtype=np.int64))
    units = None if bound is None else Units(bound, {attribute: rule.size}, unit_reading)
    numbers: dict[Hashable, int] = {}
    encoders = [key_number_encoder(numbers, _key_of(rule))]
    if units is not None:
        encoders.append(units.number)
    parts = [np.zeros(0, dtype=np.int64)]
    rows_read = 0
    counts = np.zeros(0, dtype=np.int64)
    for rows, (keys, *unit), _ in opened.encoded([*zip(names, encoders, strict=True)]):
        if units is None:
            counts = np.append(counts, np.zeros(len(numbers) - len(counts), dtype=np.int64))
            counts += np.bincount(keys[keys != NONE], minlength=len(numbers))
        else:
            units.add(unit[0], [keys])
            parts.append(keys)
        rows_read += rows
        if shown is not None:
            shown.show(rows_read, opened.total)
    if units is not None:
        every = np.concatenate(parts)
        counts = np.bincount(
            every[units.keep(max_rows, urandom, every != NONE)], minlength=len(numbers)
        )
    # Keys that only the second table has may have larger numbers than the counted ones.
    return table(
        [str(key) for key, units_of in zip(numbers, counts.tolist(), strict=False) if units_of],
        counts[counts > 0].astype(np.int64),
    )


@_with_reading_day
def read_unit_sizes(
    source: Any,
    domain: Domain,
    attribute: str,
    *,
    unit_column: str,
    unit_reading: Reading = READ_AS_IT_IS,
    progress: RowProgress | None = None,
) -> Table:
    """Return a table with one row per unit: its number of rows (E15).

    Only the column of the unit is read. The row of a unit has the cell that the attribute's rule
    assigns to the unit's number of rows in the source. The values of the unit's rows in other
    columns do not matter.

    Args:
        source: the source, as for `read`.
        domain: the domain of the attribute.
        attribute: the attribute of the number of rows of a unit; its kind must have ordered
            numbers.
        unit_column: the column whose values are the privacy units.
        unit_reading: how the values of the unit's column are read.
        progress: the object that shows the progress of reading.

    Returns:
        The table. The ``max_rows`` of the table is 1, because a unit has one row in it.

    Raises:
        InputError: as for `read`.

    Guarantees: adding or removing all rows of a unit adds or removes one row of the table, whatever
        the number of rows of the unit. Changing these rows changes one row of the table.

    Edge cases: rows whose unit is null belong to no unit, and are left out.

    >>> domain = ln.Domain(rows=ln.Integers(1, 3, outside="clip"))
    >>> frame = pd.DataFrame({"id": ["a", "b", "a", None]})
    >>> read_unit_sizes(frame, domain, "rows", unit_column="id")
    <Table of private rows over Domain(rows=Integers(1, 3, outside='clip'))>
    """
    shown = row_progress(progress)
    opened, (name,) = open_columns(source, domain, [], [], unit_column, unit_reading)
    numbers: dict[Hashable, int] = {}
    encoder = key_number_encoder(numbers, key_reader(unit_reading))
    sizes = np.zeros(0, dtype=np.int64)
    rows_read = 0
    for rows, (units,), _ in opened.encoded([(name, encoder)]):
        sizes = np.append(sizes, np.zeros(len(numbers) - len(sizes), dtype=np.int64))
        sizes += np.bincount(units[units != NONE], minlength=len(numbers))
        rows_read += rows
        if shown is not None:
            shown.show(rows_read, opened.total)
    # The count of a key that only the second table has is 0.
    cells = cell_encoder(domain.rule(attribute))(Column(sizes[sizes > 0]))
    return Table(domain, {attribute: cells[cells != NONE]}, unit_column=unit_column, max_rows=1)


def _key_of(rule: Rule) -> Callable[[object], str | None]:
    """Return the function that maps a value to its key, or to None."""
    nulls = null_keys(rule.reading)

    def key(value: object) -> str | None:
        """Return the normalised text of a value if it may be a key, else None."""
        form = None
        if not is_null(value):
            form = value_as_text(value)
        if form is None:
            return None
        form = key_text(form, rule.reading)
        if form in nulls:
            return None
        if isinstance(rule.table, KeyTable) and rule.table.allows(form):
            return form
        return None

    return key


def joined_source(
    joined: Joined, first: Source, second: Source, columns: Sequence[str] | None = None
) -> Source:
    """Join two open sources on a key, as one `Source`.

    The result has the rows of the first table, with the columns of both tables. The first table may
    itself be a joined source.

    If an engine joins the tables, it joins only ``columns``; if ``columns`` is None, it joins all
    columns. Raises an `InputError` if a column of the keys is missing, or has values that cannot be
    compared.

    Guarantees: in the columns of the second table, a row has the values of the only row of that
        table with the same key. If there is no such row, or more than one, it has nulls.
    """
    _check_join_key(first, joined.first_key)
    _check_join_key(second, joined.second_key)
    joined_names = _joined_columns(joined, second)

    def encoded(encoders: Encoders) -> Chunks[IntArray]:
        """Yield the chunks of the first table with the codes of each row's partner."""
        second_encoders = [pair for pair in encoders if pair[0] not in first.names]
        if not second_encoders:
            yield from first.encoded(encoders)
            return
        partners = PartnerRows(second, joined.second_key, second_encoders, joined.reading)
        mine = [pair for pair in encoders if pair[0] in first.names]
        keys = (joined.first_key, partners.find_partners)
        for rows, (*cells, partner), malformed in first.encoded([*mine, keys]):
            ours = iter(cells)
            theirs = iter(partners.codes_of_partners(partner))
            columns = [next(ours if name in first.names else theirs) for name, _ in encoders]
            yield Chunk(rows, columns, malformed)

    if columns is None:
        names = (*first.names, *joined_names)
    else:
        names = tuple(dict.fromkeys(columns))
    second_names = [name for name in names if name in joined_names and name not in first.names]
    engine = None
    if not second_names:
        engine = first.engine
    elif first.engine is not None and second.engine is not None:
        mine = [name for name in names if name in first.names]
        engine = first.engine.joined(
            second.engine, (joined.first_key, joined.second_key), mine, second_names, joined.reading
        )
    of_second = {field.name: field for field in second.fields}
    # A row without a partner has nulls there.
    partners_fields = [replace(of_second[name], required=False) for name in joined_names]
    return Source(
        description=f"{first.description} joined with {second.description}",
        fields=(*first.fields, *partners_fields),
        total=first.total,
        encoded=encoded,
        engine=engine,
        delimiter=first.delimiter,
        holds={
            **{name: second.holds[name] for name in joined_names if name in second.holds},
            **first.holds,
        },
    )


def _check_join_key(opened: Source, name: str) -> None:
    """Raise unless a join key is a single column of comparable values."""
    times = opened.names.count(name)
    if times != 1:
        raise InputError(
            f"{opened.description} must have one column {name!r} for the join; it has {times} "
            "of that name."
        )
    if name in opened.unreadable_columns:
        raise InputError(
            f"the column {name!r} of {opened.description} must hold numbers, text or dates; its "
            f"type is {opened.unreadable_columns[name]}."
        )


def _joined_columns(joined: Joined, second: Source) -> list[str]:
    """Return the columns that a join adds; raise for unknown columns."""
    if joined.columns is None:
        return [name for name in second.names if name != joined.second_key]
    for name in joined.columns:
        if name not in second.names:
            raise InputError(
                f"{second.description} has no column {name!r}, which the join names. "
                "Correct its columns."
            )
    return list(joined.columns)


class PartnerRows:
    """Finds, for each row of the first table, its partner in the second table.

    Args:
        second: the table.
        key: the column with the keys of the second table.
        encoders: the requested columns of the second table, with the encoder of each.
        reading: how keys are read.
    """

    def __init__(
        self, second: Source, key: str, encoders: Encoders, reading: Reading = READ_AS_IT_IS
    ) -> None:
        numbers: dict[Hashable, int] = {}
        key_of = key_reader(reading)
        every = [*encoders, (key, key_number_encoder(numbers, key_of))]
        chunks = [
            [np.zeros(0, dtype=np.int64)] * len(every),
            *(chunk.columns for chunk in second.encoded(every)),
        ]
        *columns, keys = [np.concatenate(parts) for parts in zip(*chunks, strict=True)]
        # The code of a null is one more entry, which position -1 selects.
        self._columns = [
            np.append(column, encode(Column([None])))
            for column, (_, encode) in zip(columns, encoders, strict=True)
        ]
        self._find = key_number_encoder(numbers, key_of, allow_new=False)
        self.times = np.bincount(keys[keys >= 0], minlength=len(numbers))
        # The last entry is for a missing key.
        self._row = np.full(len(numbers) + 1, NONE, dtype=np.int64)
        self._row[keys[keys >= 0]] = np.flatnonzero(keys >= 0)
        self._row[:-1][self.times > 1] = SEVERAL

    def find_partners(self, key_column: Column) -> IntArray:
        """Return the position of each row's partner, or `NONE` or `SEVERAL`."""
        return self._row[self._find(key_column)]

    def codes_of_partners(self, partners: IntArray) -> list[IntArray]:
        """Return the second table's codes for rows with these partners, or nulls."""
        return [column[np.maximum(partners, -1)] for column in self._columns]
