"""Compare the columns that a spec needs with its source; no row is read."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from leastnoise._domain import column_measures
from leastnoise._planning import smallest_privacy
from leastnoise._sources import schema
from leastnoise._spec import Spec, columns_to_read
from leastnoise._trusted import reading
from leastnoise._trusted.check import InputError


class ColumnCheck(NamedTuple):
    """Whether a column of the source fits its use in a spec, and if not, why.

    Attributes:
        column: the name of the column.
        use: the attribute, measure or unit that uses the column.
        type: its type in the source, "text" for text files; None if the column is missing.
        fault: the reason why it does not fit; empty if it fits.
    """

    column: str
    use: str
    type: str | None
    fault: str


class _NeededColumns(NamedTuple):
    """The columns of one attribute, one measure or the unit."""

    use: str
    columns: tuple[str, ...]
    attributes: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()


def check_schema(spec: Spec, data: Any) -> tuple[ColumnCheck, ...]:
    """Check the columns that a release reads against the schema of the source.

    Args:
        spec: the spec.
        data: the data of the spec, from `Spec.data`.

    Raises:
        InputError: the source cannot be opened.
    """
    types = {}
    for field in schema(data):
        types[field.name] = "text"
        if field.type is not None:
            types[field.name] = str(field.type)
    privacy = smallest_privacy(spec.privacy)
    unit_column = privacy.unit_column
    checks: list[ColumnCheck] = []
    if unit_column is not None:
        fault = _find_fault(spec, data, unit_column)
        checks.append(ColumnCheck(unit_column, "unit", types.get(unit_column), fault))
        if fault:  # reported once, not with every column
            unit_column = None
    needed = [*_needed_columns(spec)]
    fault_of_all = _find_fault(spec, data, unit_column, needed)
    for columns in needed:
        fault = ""
        if fault_of_all:
            fault = _find_fault(spec, data, unit_column, [columns])
        checks += [
            ColumnCheck(name, columns.use, types.get(name), fault) for name in columns.columns
        ]
    return tuple(checks)


def _needed_columns(spec: Spec) -> Iterable[_NeededColumns]:
    """Yield the columns of unit, attributes and measures that a release reads."""
    attributes, measures = columns_to_read(spec)
    for name in attributes:
        column = spec.domain.kind(name).reading.column or name
        yield _NeededColumns(f"attribute {name}", (column,), attributes=(name,))
    for name in measures:
        factors = column_measures(spec.domain.measure(name))
        columns = tuple(factor.column for factor in factors)
        yield _NeededColumns(f"measure {name}", columns, measures=(name,))


def _find_fault(
    spec: Spec, data: Any, unit_column: str | None, needed: Iterable[_NeededColumns] = ()
) -> str:
    """Return the reason why columns cannot be used, or "" if they can."""
    columns = list(needed)
    attributes = list(chain.from_iterable(part.attributes for part in columns))
    measures = list(chain.from_iterable(part.measures for part in columns))
    unit_reading = smallest_privacy(spec.privacy).unit_reading
    try:
        reading.check_source(data, spec.domain, attributes, measures, unit_column, unit_reading)
    except InputError as error:
        return str(error)
    return ""
