"""What names and types of columns suggest for a spec: the likely kind of each column, and the column that names the person."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from leastnoise._spec._source import IDENTIFIER, PERSON

UNTYPED = "unknown"  # the type of a column of a CSV file, whose kind is guessed from its name alone
_WHOLE_NAME = re.compile(
    r"(^|[_\-. ])(age|alter|year|jahr|anzahl|hours|days|weeks|children|rooms|persons|number|num|count)([_\-. ]|$)", flags=re.ASCII
)
_NUMBER_NAME = re.compile(
    r"income|salary|wage|(^|_)pay($|_)|price|amount|cost|rent|height|weight|balance|loss$|gain$|rate$|umsatz|betrag|preis|gehalt|einkommen",
    flags=re.ASCII,
)
_DATE_NAME = re.compile(
    r"(^|[_\-. ])(date|day|datum|time|timestamp|zeit|born|bought|ordered|created|updated)([_\-. ]|$)|_(at|on)$|datum$", flags=re.ASCII
)


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the data: ``kind`` is text, whole, number, date or truth, or empty where ``unusable`` says why it cannot be published."""

    name: str
    attribute: str
    typed: bool
    kind: str
    unusable: str = ""
    names_person: bool = False


def source_columns(columns: Iterable[tuple[str, str]]) -> tuple[SourceColumn, ...]:
    """What names and types suggest of each column."""
    listed = list(columns)
    names = [name for name, _ in listed]
    found = [_column(name, written, names) for name, written in listed]
    readable = [column.name for column in found if names.count(column.name) == 1 and column.name.isprintable()]
    naming = [name for name in readable if PERSON.search(name)] or [name for name in readable if IDENTIFIER.search(name)][:1]
    return tuple(
        SourceColumn(column.name, column.attribute, column.typed, column.kind, column.unusable, column.name in naming) for column in found
    )


def _column(name: str, written: str, names: list[str]) -> SourceColumn:
    bare = name.strip()  # tables are called by the name without blanks around it, if no other column has that
    attribute = name if bare in {"", *names} else bare
    kind, unusable = _kind(name, written), ""
    if names.count(name) > 1:
        unusable = "several columns are called so; give them names of their own"
    elif not name or not name.isprintable():
        unusable = "its name is empty or has control characters; rename it"
    elif not kind:
        unusable = f"of type {written}, which cannot be published"
    return SourceColumn(name, attribute, written != UNTYPED, "" if unusable else kind, unusable)


def _kind(column: str, written: str) -> str:
    """What a type of DuckDB is for us, or what a name suggests where there is no type."""
    if written == UNTYPED:
        if _DATE_NAME.search(column.lower()):
            return "date"
        return "whole" if _WHOLE_NAME.search(column.lower()) else "number" if _NUMBER_NAME.search(column.lower()) else "text"
    name = written.upper().split("(")[0].strip()
    if written.endswith("]"):
        return ""
    if name in {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}:
        return "whole"
    if name in {"FLOAT", "REAL", "DOUBLE", "DECIMAL", "NUMERIC"}:
        return "number"
    if name in {"VARCHAR", "ENUM", "TEXT", "CHAR", "STRING"}:
        return "text"
    return {"BOOLEAN": "truth", "DATE": "date"}.get(name, "date" if name.startswith("TIMESTAMP") else "")
