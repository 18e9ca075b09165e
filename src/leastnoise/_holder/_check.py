"""Count exactly how rows fit a domain, for the data holder only.

No release depends on this module. This module imports private files of `_trusted.reading`, because
it counts rows exactly as reading encodes them. The contract "only the session reads rows" in
`pyproject.toml` allows these imports.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastnoise._domain import (
    DROP,
    READ_AS_IT_IS,
    Bins,
    Domain,
    Kind,
    Measure,
    PerCellBound,
    Reading,
    UnitTotal,
    Unknown,
    kind_from_json,
    kind_to_json,
    rule_of,
)
from leastnoise._plan import Plan
from leastnoise._planning import workload_to_plan
from leastnoise._spec import Spec, columns_to_read
from leastnoise._trusted.check import InputError, whole
from leastnoise._trusted.check.arrays import BoolArray, IntArray
from leastnoise._trusted.reading._column import Column, Encoder
from leastnoise._trusted.reading._data_names import dataset_name
from leastnoise._trusted.reading._encode import cell_encoder, unreadable_encoder
from leastnoise._trusted.reading._read import check_source, open_columns, open_source
from leastnoise._trusted.reading._units import Units
from leastnoise._trusted.reading._value_rules import value_as_text
from leastnoise._trusted.reading.helpers._locations import CSV, Joined, list_joins, private_tables
from leastnoise._workload import Workload, with_hidden_cells

_LONGEST_SHOWN = 60  # in characters of a listed value; a choice of layout
_MOST_FAULTS = 5  # kinds of faults that are listed; a choice of layout
_MOST_TABLES = 20  # tables that are listed; a choice of layout
_NOT_TEXT = (
    "bytes that are not text in this encoding: state another encoding, such as [source] "
    'encoding = "cp1252"'
)
_MARK = "PRIVATE"
# Each text is one line of the page.
_ADVICE = (
    (
        "These are exact counts of the data. Show them only to people who may see the data, and "
        "publish none of them."
    ),
    (
        "A category or a bound that you copy from this page is a release without payment. "
        "Take them from a code list, a questionnaire,"
    ),
    (
        'a law or an earlier publication. Or state outside = "other"; then the release estimates, '
        "with noise, how many rows have other values."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFit:
    """Private counts of one column's values that fit the domain or do not.

    Attributes:
        name: the name of the attribute or measure.
        matched: the number of rows with a value in the domain.
        null: the number of rows with a null.
        outside: the number of rows with any other value.
        dropped: the number of rows that are left out because of a null or a value outside.
        clipped: the number of rows whose null or outside value counts in the nearest cell; for a
            measure, such a value counts as the nearest bound.
        other: the number of rows whose null or outside value counts in the cell ``other``; for a
            measure, such a value counts as zero.
        values: the most frequent values outside the domain, as text, with their numbers of rows.
        in_other_tables: whether dropped rows still count in tables without the attribute.
    """

    name: str
    matched: int
    null: int
    outside: int
    dropped: int
    clipped: int
    other: int
    values: tuple[tuple[str, int], ...] = ()
    in_other_tables: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinFit:
    """Private counts of rows with and without partners in a joined table.

    Attributes:
        table: the name of the joined table; empty for a data frame.
        matched: the number of rows with exactly one partner.
        several: the number of rows without a partner because their key occurs in several rows of
            the joined table.
        keys: the number of distinct keys of the joined table.
        doubled: the number of keys that occur more than once in the joined table.
    """

    table: str
    matched: int
    several: int
    keys: int
    doubled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainFit:
    """Private counts of how the rows of a source fit a domain.

    Attributes:
        lines: the number of lines of CSV files, without headers; None for other sources.
        rows: the number of rows; lines that are not records do not count.
        without_unit: the number of rows whose unit is null.
        cut: the number of rows beyond ``max_rows`` of their unit, or beyond ``max_per_cell`` in a
            cell.
        used: the number of rows that a release would count in at least one table.
        unreadable: the number of used rows with a measure that is neither a null nor a number. A
            guard counts these rows as unused.
        attributes: the counts for the column of each attribute.
        measures: the counts for the column of each measure.
        joins: the counts for each joined table.
        faults: the most frequent reasons why lines are not records, with their numbers of lines.
        left_out: for the attributes of each table that may leave out rows, the number of used rows
            that the table leaves out because a value is missing or outside.
    """

    lines: int | None
    rows: int
    without_unit: int
    cut: int
    used: int
    attributes: tuple[ColumnFit, ...]
    measures: tuple[ColumnFit, ...]
    joins: tuple[JoinFit, ...] = ()
    faults: tuple[tuple[str, int], ...] = ()
    left_out: tuple[tuple[tuple[str, ...], int], ...] = ()
    unreadable: int = 0


def count_fit(
    source: Any,
    domain: Domain,
    *,
    attributes: Sequence[str],
    measures: Sequence[str],
    unit_column: str | None = None,
    max_rows: int = 1,
    max_per_cell: PerCellBound | None = None,
    unit_reading: Reading = READ_AS_IT_IS,
    values: int = 0,
    tables: Sequence[tuple[str, ...]] = (),
) -> DomainFit:
    """Read all rows of a source, and count how they fit a domain.

    ``tables`` states the attributes of each published table; by default, one table has all
    attributes. ``values`` is the number of values outside the domain to list for each column.
    """
    kinds = {name: domain.kind(name) for name in attributes}
    sums = _summed_columns(domain, measures)
    opened, source_columns = open_columns(
        source, domain, attributes, list(sums), unit_column, unit_reading
    )
    counts = _RowCounter(kinds, sums, values, tables)
    encoders = counts.encoders(source_columns)
    units = None
    if unit_column is not None:
        units = Units(max_per_cell, {name: domain.cells(name) for name in attributes}, unit_reading)
        encoders.append((source_columns[-1], units.number))
    without_unit, malformed_lines = _count_rows(opened.encoded(encoders), counts, units)
    # Zeros replace random keys, because only the number of kept rows is shown.
    if units is None:
        is_kept = np.ones(counts.rows, dtype=np.bool_)
    else:
        is_kept = units.keep(max_rows, bytes)
    used = is_kept & counts.is_in_some_table()
    lines = None
    if opened.delimiter is not None:
        lines = counts.rows + malformed_lines
    return DomainFit(
        lines=lines,
        faults=_most_common_faults(source) if malformed_lines else (),
        rows=counts.rows,
        without_unit=without_unit,
        cut=counts.rows - without_unit - int(np.count_nonzero(is_kept)),
        used=int(np.count_nonzero(used)),
        unreadable=int(np.count_nonzero(used & ~counts.is_readable())),
        attributes=tuple(counter.column_fit() for counter in counts.attributes),
        measures=tuple(counter.column_fit(of_measure=True) for counter in counts.measures),
        joins=tuple(map(_count_join_fit, list_joins(source))),
        left_out=tuple(counts.omitted_rows(used)),
    )


def _summed_columns(domain: Domain, measures: Sequence[str]) -> dict[str, Measure]:
    """Return the measure of each column that is summed, by the name of the sum."""
    sums = {}
    for name in measures:
        measure = domain.measure(name)
        if isinstance(measure, UnitTotal):
            sums[name] = measure.row_amount
        elif type(measure) is Measure:
            sums[name] = measure
    return sums


def _most_common_faults(source: Any) -> tuple[tuple[str, int], ...]:
    """Return the most common faults of CSV lines, with the number of lines."""
    faults = _count_line_faults(private_tables(source)[0])
    return tuple(faults.most_common(_MOST_FAULTS))


class _RowCounter:
    """Counts the rows of a source that fit a domain, chunk by chunk.

    Attributes:
        rows: the number of rows read.
        attributes: the counters for the values of each attribute.
        measures: the counters for the values of each measure.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        sums: Mapping[str, Measure],
        values: int,
        tables: Sequence[tuple[str, ...]],
    ) -> None:
        self.rows = 0
        self.attributes = [_ColumnCounter(name, kind, values) for name, kind in kinds.items()]
        self.measures = []
        for name, measure in sums.items():
            bins = Bins(measure.low, measure.high, 1, outside="clip", reading=measure.reading)
            self.measures.append(_ColumnCounter(name, bins, values))
        self._kinds = kinds
        self._sums = sums
        self._tables = tables
        self._inside_chunks = [np.zeros(0, dtype=np.bool_)]
        self._readable_chunks = [np.zeros(0, dtype=np.bool_)]
        self._filled_chunks: list[list[BoolArray]] = [[np.zeros(0, dtype=np.bool_)] for _ in tables]

    def encoders(self, source_columns: Sequence[str]) -> list[tuple[str, Encoder]]:
        """Return the encoders to apply to a chunk, each with its source column."""
        encoders: list[tuple[str, Encoder]] = []
        counters = [*self.attributes, *self.measures]
        for name, counter in zip(source_columns, counters, strict=False):
            encoders += [(name, encode) for encode in counter.encoders]
        for measure in self._sums.values():
            encoders.append((measure.column, unreadable_encoder(measure.reading)))
        return encoders

    def add(self, columns: Sequence[IntArray], rows: int) -> list[IntArray]:
        """Count the rows of an encoded chunk; return the codes of each attribute.

        Args:
            columns: the encoded columns, in the order of `encoders`.
            rows: the number of rows.
        """
        first = 0
        cells_of_counters = []
        for counter in (*self.attributes, *self.measures):
            end = first + len(counter.encoders)
            cells_of_counters.append(counter.add(*columns[first:end]))
            first = end
        codes = cells_of_counters[: len(self.attributes)]
        unreadable = columns[first : first + len(self._sums)]
        self._inside_chunks.append(
            _all_conditions_hold([column_codes != DROP for column_codes in codes], rows)
        )
        self._readable_chunks.append(
            _all_conditions_hold([is_unreadable == 0 for is_unreadable in unreadable], rows)
        )
        cells = dict(zip(self._kinds, codes, strict=True))
        for table_chunks, names in zip(self._filled_chunks, self._tables, strict=True):
            is_published = [cells[name] < self._kinds[name].published for name in names]
            table_chunks.append(_all_conditions_hold(is_published, rows))
        self.rows += rows
        return codes

    def is_in_some_table(self) -> BoolArray:
        """Return, for each row, whether at least one table counts it."""
        is_inside = np.concatenate(self._inside_chunks)
        if not self._tables:
            return is_inside
        is_filled: BoolArray = np.logical_or.reduce(self._masks_by_table())
        return is_inside & is_filled

    def is_readable(self) -> BoolArray:
        """Return, for each row, whether all of its measures are nulls or numbers."""
        return np.concatenate(self._readable_chunks)

    def omitted_rows(self, is_used: BoolArray) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield, for each table, its attributes and the used rows that it omits."""
        for names, in_table in zip(self._tables, self._masks_by_table(), strict=True):
            if any(self._kinds[name].hidden for name in names):
                yield names, int(np.count_nonzero(is_used & ~in_table))

    def _masks_by_table(self) -> list[BoolArray]:
        """Return, for each table, a mask of the rows that have a cell in it."""
        return [np.concatenate(chunks) for chunks in self._filled_chunks]


def _count_rows(
    chunks: Iterable[tuple[int, Sequence[Any], int]], counts: _RowCounter, units: Units | None
) -> tuple[int, int]:
    """Count all rows; return the rows without a unit, and the malformed lines.

    The last column of a chunk has the numbers of the units if ``units`` is not None.
    """
    without_unit = 0
    malformed_lines = 0
    for rows, columns, malformed in chunks:
        malformed_lines += malformed
        codes = counts.add(columns, rows)
        if units is not None:
            unit_numbers = columns[-1]
            without_unit += int(np.count_nonzero(unit_numbers < 0))
            units.add(unit_numbers, codes)
    return without_unit, malformed_lines


def _all_conditions_hold(conditions: Sequence[BoolArray], rows: int) -> BoolArray:
    """Return a mask of the rows that satisfy all conditions."""
    every: BoolArray = np.logical_and.reduce([np.ones(rows, dtype=np.bool_), *conditions])
    return every


def _count_line_faults(path: str | os.PathLike[str] | CSV) -> Counter[str]:
    """Return the number of malformed lines of CSV files for each kind of fault."""
    from leastnoise._trusted.reading._files import KINDS, line_fault, open_csv
    from leastnoise._trusted.reading._lines import open_binary, whole_lines
    from leastnoise._trusted.reading.helpers._locations import find_files

    if isinstance(path, CSV):
        layout = path
    else:
        layout = CSV(path)
    faults: Counter[str] = Counter()
    for file, _ in find_files(layout.path, KINDS):
        source = open_csv(file, layout)
        delimiter = str(source.delimiter).encode()
        width = len(source.names)
        with open_binary(file) as opened:
            if isinstance(layout.header, bool):
                opened.readline()
            for block in whole_lines(opened.read):
                for line in block.split(b"\n")[:-1]:
                    # Most lines are recognised as records without being split.
                    if b'"' in line or line.count(delimiter) != width - 1:
                        fault = line_fault(line, delimiter, width)
                        if fault is not None:
                            faults[fault] += 1
    return faults


def _count_join_fit(source: Joined) -> JoinFit:
    """Count the rows of a joined source with and without partners."""
    from leastnoise._trusted.reading._read import SEVERAL, PartnerRows

    partners = PartnerRows(open_source(source.second), source.second_key, [], source.reading)
    counts = Counter({"matched": 0, "several": 0})
    for _, (partner,), _ in open_source(source.data).encoded(
        [(source.first_key, partners.find_partners)]
    ):
        counts["matched"] += int(np.count_nonzero(partner >= 0))
        counts["several"] += int(np.count_nonzero(partner == SEVERAL))
    return JoinFit(
        table=dataset_name(source.second) or "",
        keys=len(partners.times),
        doubled=int(np.count_nonzero(partners.times > 1)),
        **counts,
    )


class _ColumnCounter:
    """Counts, chunk by chunk, the values of one column that fit its kind."""

    def __init__(self, name: str, kind: Kind, values: int) -> None:
        self._name = name
        self._values = values
        self._kind = kind
        plain_kind: Mapping[str, Any] = {
            key: value
            for key, value in kind_to_json(kind).items()
            if key not in {"null", "outside", "hidden"}
        }
        bare = kind_from_json({"name": name, **plain_kind})[1]
        self._null = bare.size
        self._outside = bare.size + 1
        self._marked = cell_encoder(rule_of(bare, (self._null, self._outside)))
        self._counts: Counter[str] = Counter()
        self._forms: dict[str, int] = {}
        self._seen: Counter[int] = Counter()
        self.encoders = [self._marked, cell_encoder(rule_of(kind))]
        if values:
            self.encoders.append(self._number_values_outside)

    def add(
        self, fitting_cells: IntArray, release_cells: IntArray, *outside_numbers: IntArray
    ) -> IntArray:
        """Count the rows of a chunk; return the cells in which a release counts them."""
        is_unmatched = (fitting_cells == self._null) | (fitting_cells == self._outside)
        is_dropped = (release_cells == DROP) | (release_cells >= self._kind.published)
        is_other = ~is_dropped & (release_cells >= self._kind.regular)
        masks = {
            "null": fitting_cells == self._null,
            "outside": fitting_cells == self._outside,
            "matched": ~is_unmatched,
            "dropped": is_unmatched & is_dropped,
            "other": is_unmatched & is_other,
            "clipped": is_unmatched & ~is_dropped & ~is_other,
        }
        self._counts.update({key: int(np.count_nonzero(mask)) for key, mask in masks.items()})
        for numbers in outside_numbers:
            distinct, row_counts = np.unique(numbers[numbers >= 0], return_counts=True)
            self._seen.update(dict(zip(distinct.tolist(), row_counts.tolist(), strict=True)))
        return release_cells

    def _number_values_outside(self, column: Column) -> IntArray:
        """Return, for each row, the number of its value if that is outside.

        The number is -1 for all other rows.
        """
        rows = np.flatnonzero(self._marked(column) == self._outside)
        if column.index is None:
            size = len(column.data)
            positions = rows
        else:
            size = len(column.index)
            positions = column.index[rows]
        distinct, where = np.unique(positions, return_inverse=True)
        numbers = np.full(size, -1, dtype=np.int64)
        numbers[rows] = np.array(
            [self._number_of_text(column.data[at]) for at in distinct.tolist()], dtype=np.int64
        )[where.reshape(-1)]
        return numbers

    def _number_of_text(self, value: object) -> int:
        """Return the number assigned to the text of a value."""
        value_text = value_as_text(value)
        if value_text is not None:
            description = repr(value_text[:_LONGEST_SHOWN])
        elif isinstance(value, bytes):
            description = _NOT_TEXT
        else:
            description = f"a value of type {type(value).__name__}"
        return self._forms.setdefault(description, len(self._forms))

    def column_fit(self, *, of_measure: bool = False) -> ColumnFit:
        """Return the counts of the column's values, as a `ColumnFit`.

        A measure does not drop rows, and a value that is not a number counts as zero.
        """
        counts = {
            key: self._counts[key]
            for key in ("matched", "null", "outside", "dropped", "clipped", "other")
        }
        if of_measure:
            counts |= {"dropped": 0, "other": counts["dropped"]}
        value_texts = list(self._forms)
        most_frequent = self._seen.most_common(self._values)
        return ColumnFit(
            name=self._name,
            values=tuple((value_texts[number], rows) for number, rows in most_frequent),
            in_other_tables=bool(getattr(self._kind, "hidden", False)),
            **counts,
        )


@dataclass(frozen=True, slots=True)
class DataCheck:
    """Exact, private counts of how the rows of a source fit a domain.

    Attributes:
        fit: the counts.
        values: how many of the most frequent values outside are listed for each column.
        unknown: the attributes whose categories were not searched yet; their values are not
            checked.

    Edge cases: every line of the text begins with the word PRIVATE; nothing is written to a file.
    """

    fit: DomainFit
    values: int = 0
    unknown: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the lines of the page for the data holder."""
        for line in _page_lines(self.fit, self.values, self.unknown):
            yield f"{_MARK}  {line}".rstrip()

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def check(
    request: "Spec | Plan | Workload",
    source: Any = None,
    *,
    unit_column: str | None = None,
    max_rows: int = 1,
    max_per_cell: PerCellBound | None = None,
    values: int = 0,
) -> DataCheck:
    """Read the data and count how their rows fit the domain.

    Only the data holder may see the result.

    Args:
        request: a spec, a plan or a workload. The attributes and measures of the request are read
            as in a release.
        source: the data; defaults to the data that the spec names.
        unit_column: for a workload, the column whose values are the privacy units.
        max_rows: for a workload, the largest number of rows of a unit that count.
        max_per_cell: for a workload, the largest number of these rows in one cell.
        values: how many of the most frequent values outside the domain to list for each column.
            These are private values of rows.

    Returns:
        Exact counts, marked as private. Nothing is paid, written or published.

    Raises:
        InputError: an argument cannot be used, a column is missing, or no value of its type fits
            the domain.

    Guarantees: the result is not private. Copying a part of it into a spec is an unpaid release.

    >>> domain = ln.Domain(sex=["F", "M"])
    >>> result = ln.check(
    ...     ln.marginals(domain, ways=1), pd.DataFrame({"sex": ["F", "m", None, "M"]}), values=1
    ... )
    >>> result.fit.attributes[0].outside, result.fit.attributes[0].values
    (1, (("'m'", 1),))
    """
    read_attributes, measures = columns_to_read(request)
    workload = _workload_as_counted(request)
    unit_reading = READ_AS_IT_IS
    if isinstance(request, (Spec, Plan)):
        unit_reading = request.privacy.unit_reading
        unit_column = request.privacy.unit_column
        max_rows = request.privacy.max_rows
        max_per_cell = request.privacy.max_per_cell
    attributes = tuple(
        name for name in read_attributes if not isinstance(workload.domain.kind(name), Unknown)
    )
    if source is None:
        if not isinstance(request, Spec) or request.source is None:
            raise InputError(
                "A check must have data; name them as source, or in the spec with [source] path."
            )
        source = request.data(request.source)
    tables: dict[tuple[str, ...], None] = {}
    for product in workload:
        tables[tuple(name for name in product.attributes if name in attributes)] = None
    # Every source that a release refuses is refused here as well, with the same sentence.
    check_source(source, workload.domain, attributes, measures, unit_column, unit_reading)
    counts = count_fit(
        source,
        workload.domain,
        attributes=attributes,
        measures=measures,
        unit_column=unit_column,
        max_rows=max_rows,
        max_per_cell=max_per_cell,
        unit_reading=unit_reading,
        values=whole("values", values, 0, 1000),
        tables=tuple(tables),
    )
    return DataCheck(
        counts, values, tuple(name for name in read_attributes if name not in attributes)
    )


def _workload_as_counted(request: "Spec | Plan | Workload") -> Workload:
    """Return the workload of a request, over the domain that a release uses."""
    if isinstance(request, Spec):
        return workload_to_plan(request.workload, request.search())
    if isinstance(request, Plan):
        return request.workload
    return with_hidden_cells(request)


def _page_lines(fit: DomainFit, listed_values: int, unknown: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the page on how rows fit a spec."""
    yield "how the rows fit the spec, only for the data holder"
    if fit.lines is not None:
        yield (
            f"lines          {fit.lines:,}, of which "
            f"{_format_share(fit.lines - fit.rows, fit.lines)} are not records"
        )
    for fault, count in fit.faults:
        yield f"    {_format_share(count, fit.lines or 0)}: {fault}"
    yield f"rows read      {fit.rows:,}"
    if fit.without_unit:
        yield f"without unit   {_format_share(fit.without_unit, fit.rows)}; they are left out"
    if fit.cut:
        yield (
            f"cut            {_format_share(fit.cut, fit.rows)}, beyond max_rows of their unit or "
            "max_per_cell"
        )
    for join in fit.joins:
        if len(fit.joins) > 1:
            yield f"joined table   {join.table or 'a data frame'}"
        yield (
            f"with partner   {_format_share(join.matched, fit.rows)}; the others have nulls for "
            "the second table's columns"
        )
        if join.doubled:
            several = _format_share(join.several, fit.rows)
            duplicates = _format_share(join.doubled, join.keys)
            yield (
                f"duplicate keys {duplicates} of the second table: {several} rows have no partner "
                "for this reason"
            )
            yield "    keep one row of each key in the second table, and these rows have a partner"
    yield from _used_rows_lines(fit)
    for column in fit.attributes:
        if column.in_other_tables:
            dropped = "left out of tables with this attribute"
        else:
            dropped = "dropped from every table"
        effects = (dropped, "counted in the nearest cell", "counted in a separate cell")
        yield from _column_lines(column.name, column, fit.rows, listed_values, effects)
    for column in fit.measures:
        yield from _column_lines(
            f"{column.name}, to be summed",
            column,
            fit.rows,
            listed_values,
            ("dropped", "clipped", "without a value"),
        )
    for name in unknown:
        yield ""
        yield f"{name}: its categories have not been found yet, so it is not checked here"
    yield ""
    yield from _ADVICE


def _used_rows_lines(fit: DomainFit) -> Iterator[str]:
    """Yield lines on the rows that tables use or leave out."""
    yield f"rows used      {_format_share(fit.used, fit.rows)}"
    if fit.unreadable:
        yield (
            f"    {_format_share(fit.unreadable, fit.used)} of them have no number where a number "
            "is to be summed: a guard counts these rows as not used"
        )
    shown = [(names, count) for names, count in fit.left_out if count]
    for names, count in shown[:_MOST_TABLES]:
        yield (
            f"    the table by {' x '.join(names)} leaves out {_format_share(count, fit.used)} of "
            "them"
        )
    if len(shown) > _MOST_TABLES:
        yield f"    {len(shown) - _MOST_TABLES} more tables leave out some of them"


def _column_lines(
    title: str, column: ColumnFit, rows: int, listed_values: int, effects: tuple[str, str, str]
) -> Iterator[str]:
    """Yield lines on how the values of one column fit."""
    yield ""
    matched = _format_share(column.matched, rows)
    null = _format_share(column.null, rows)
    outside = _format_share(column.outside, rows)
    yield f"{title}: {matched} matched, {null} null, {outside} outside"
    counts = (column.dropped, column.clipped, column.other)
    descriptions = [
        f"{_format_share(count, rows)} {effect}"
        for count, effect in zip(counts, effects, strict=True)
        if count
    ]
    if descriptions:
        yield f"    of those not matched: {', '.join(descriptions)}"
    for value, count in column.values:
        yield f"    {_format_share(count, rows)}  {value}"
    if column.outside and not listed_values:
        yield "    the most frequent of them: leastnoise check SPEC --values"


def _format_share(count: int, whole_count: int) -> str:
    """Return a count as text, with its percentage of ``whole_count``."""
    if not whole_count:
        return f"{count:,}"
    return f"{count:,} ({count / whole_count:.1%})"
