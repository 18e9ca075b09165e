"""How rows fit a domain, for the data's holder alone: the one place that may ask for exact counts, and none that a release runs through."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leastnoise._check import InputError, whole
from leastnoise._domain import PerCell, Unknown
from leastnoise._holder._rows_fit import ColumnFit, Fit, JoinFit, rows_fit
from leastnoise._plan import Plan
from leastnoise._session._asked import asked_about
from leastnoise._session._spec import Spec
from leastnoise._workload import Workload

_MARK = "PRIVATE"
_ADVICE = (
    "These are exact counts of the data: show them to nobody who may not see the data, and publish none of them.",
    "A category or a bound that is taken from this page is a release that nobody paid for. Take them from a code list, a questionnaire,",
    'a law or an earlier publication; or say outside = "other", and the release itself tells, with noise, how many rows are elsewhere.',
)


@dataclass(frozen=True, slots=True)
class Checked:
    """How rows fit, exactly and without noise; every number is private.

    Attributes:
        fit: the numbers.
        values: how many of the most frequent values outside are named.
        unknown: attributes whose categories are not found yet; none of their values is outside.

    Edge cases: as text every line begins with the word PRIVATE; nothing is written to a file.
    """

    fit: Fit
    values: int = 0
    unknown: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """The page, line by line."""
        for line in _page(self.fit, self.values, self.unknown):
            yield f"{_MARK}  {line}".rstrip()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return str(self)


def check(
    what: "Spec | Plan | Workload",
    source: Any = None,
    *,
    unit_column: str | None = None,
    max_rows: int = 1,
    max_per_cell: PerCell | None = None,
    values: int = 0,
) -> Checked:
    """Read the data and say how their rows fit the domain: for the eyes of whoever holds them alone.

    Args:
        what: a spec, a plan, or a workload; its attributes and measures are looked at, as a release would.
        source: the data; None: those that the spec names.
        unit_column: with a workload: the column whose values are the privacy units.
        max_rows: with a workload: at most this many rows of a unit count.
        max_per_cell: with a workload: how many of them in one cell.
        values: how many of the most frequent values outside to name of each column; these are values of rows.

    Returns:
        Exact numbers, marked as private. Nothing is paid, written or published.

    Raises:
        InputError: something of the above cannot be used, or a column is missing.

    Guarantees: none of privacy. What is taken from the result into a spec is a release that nobody paid for.

    >>> domain = ln.Domain(sex=["F", "M"])
    >>> made = ln.check(ln.marginals(domain, ways=1), pd.DataFrame({"sex": ["F", "m", None, "M"]}), values=1)
    >>> made.fit.attributes[0].outside, made.fit.attributes[0].values
    (1, (("'m'", 1),))
    """
    workload = what.workload if isinstance(what, Spec) else what
    if isinstance(what, (Spec, Plan)):
        unit_column, max_rows, max_per_cell = what.privacy.unit_column, what.privacy.max_rows, what.privacy.max_per_cell
    every, measures = asked_about(what)
    attributes = tuple(name for name in every if not isinstance(workload.domain.kind(name), Unknown))
    found = rows_fit(
        _given(source, what),
        workload.domain,
        attributes=attributes,
        measures=measures,
        unit_column=unit_column,
        max_rows=max_rows,
        max_per_cell=max_per_cell,
        values=whole("values", values, 0, 1000),
    )
    return Checked(found, values, tuple(name for name in every if name not in attributes))


def _given(data: Any, what: object) -> Any:
    """The data that were given, or else those that a spec names."""
    if data is not None:
        return data
    if not isinstance(what, Spec) or what.source is None:
        raise InputError("A check must have data; name them as source, or in the spec with [source] path.")
    return what.data(what.source)


def _page(fit: Fit, values: int, unknown: Sequence[str]) -> Iterator[str]:
    yield "how the rows fit the spec, for the data's holder alone"
    if fit.lines is not None:
        yield f"lines          {fit.lines:,}, of which {_part(fit.lines - fit.rows, fit.lines)} are no record"
    yield f"rows read      {fit.rows:,}"
    if fit.without_unit:
        yield f"without unit   {_part(fit.without_unit, fit.rows)}; they are left out"
    if fit.cut:
        yield f"cut            {_part(fit.cut, fit.rows)}, beyond max_rows of their unit or max_per_cell"
    if fit.join is not None:
        yield from _join(fit.join, fit.rows)
    yield f"rows used      {_part(fit.used, fit.rows)}"
    for column in fit.attributes:
        yield from _column(column.name, column, fit.rows, values, ("dropped", "taken to the nearest cell", "counted as other"))
    for column in fit.measures:
        yield from _column(f"{column.name}, to be summed", column, fit.rows, values, ("dropped", "clipped", "counted as zero"))
    for name in unknown:
        yield ""
        yield f"{name}: its categories are not found yet, and it is not looked at here"
    yield ""
    yield from _ADVICE


def _join(join: JoinFit, rows: int) -> Iterator[str]:
    yield f"with partner   {_part(join.matched, rows)}; the others have nulls for the second table's columns"
    if join.doubled:
        yield f"doubled keys   {_part(join.doubled, join.keys)} of the second table: {_part(join.several, rows)} rows have none for it"
        yield "    keep one row of each key there, and they have one"


def _column(title: str, column: ColumnFit, rows: int, values: int, fates: tuple[str, str, str]) -> Iterator[str]:
    yield ""
    yield f"{title}: {_part(column.matched, rows)} matched, {_part(column.null, rows)} null, {_part(column.outside, rows)} outside"
    counts = (column.dropped, column.clipped, column.other)
    said = [f"{_part(count, rows)} {fate}" for count, fate in zip(counts, fates, strict=True) if count]
    if said:
        yield f"    of those not matched: {', '.join(said)}"
    for value, count in column.values:
        yield f"    {_part(count, rows)}  {value}"
    if column.outside and not values:
        yield "    the most frequent of them: leastnoise check SPEC --values"


def _part(count: int, whole_count: int) -> str:
    return f"{count:,}" + (f" ({count / whole_count:.1%})" if whole_count else "")
