"""Where a spec says the data are, how they are laid out, and which second table is joined to them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leastnoise._adapters import CSV, DatabaseTable, Joined, check_unit
from leastnoise._check import InputError, refuse
from leastnoise._domain import known_keys

PERSON = re.compile(
    r"(^|[\W_])(person|patient|customer|client|user|member|employee|respondent|subject|student|household|account|kunde?|kundin|mitglied|nutzer"
    r"|mitarbeiter|versichert|teilnehmer|proband|haushalt|konto)(e?n|s)?[\W_]*(id|nr|nummer|number|no|num|code|key|uuid|guid)\.?\s*$"
    r"|^\s*(person|patient|customer|respondent|kunde|kundin)\s*$",
    flags=re.IGNORECASE,
)
"""Names of columns that say which person a row is of."""
IDENTIFIER = re.compile(rf"(?i:{PERSON.pattern}|(^|[\W_])(id|uuid|guid|key)\s*$)|[a-z]I[Dd]\s*$")
"""Names of columns that say which person, thing or row it is."""
PLACE = ("path", "table", "connection")
LAYOUT = ("delimiter", "encoding", "header")
_JOIN = ("on", "columns", "public")
_WHERE = "[source.join]"


def text_of(name: str, value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise refuse(name, value, "a text that is not empty")
    return value


def file_of(folder: Path, value: object, name: str) -> Path | None:
    """The file that a spec names; None if it names none."""
    return None if value is None else folder / text_of(name, value)


def place_of(folder: Path, said: Mapping[str, Any], where: str) -> tuple[Path | None, DatabaseTable | None]:
    """The files or the table of a database that are named; neither if nothing is."""
    data = file_of(folder, said.get("path"), f"{where} path")
    given = [key for key in ("table", "connection") if key in said]
    if given and (given != ["table", "connection"] or "path" in said):
        raise InputError(
            f'{where} must have path, or table and connection. A connection is "env:" and the name of an environment variable.'
        )
    return data, DatabaseTable(said["table"], said["connection"]) if given else None


def layout_of(said: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What is said of CSV files, checked."""
    layout = {key: said[key] for key in LAYOUT if key in said}
    with within(f"{where}: "):
        CSV("data.csv", **layout)
    return layout


def joined_with(folder: Path, first: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a second table, checked, as the arguments of `Joined`; empty if there is none."""
    if "join" not in first:
        return {}
    said = known_keys(_WHERE, first["join"], [*PLACE, *LAYOUT, *_JOIN])
    if "table" in said and "connection" in first:
        said.setdefault("connection", first["connection"])
    data, stored = place_of(folder, said, _WHERE)
    if (data is None and stored is None) or "on" not in said:
        raise InputError(f'{_WHERE} must name a table and what both have, such as path = "patients.csv" and on = "patient_id".')
    layout = layout_of(said, _WHERE)
    second: Any = CSV(data, **layout) if layout and data is not None else stored or data
    join = {"second": second, **{key: said[key] for key in _JOIN if key in said}}
    with within(f"{_WHERE}: "):
        Joined(file_of(folder, first.get("path"), "[source] path"), **join)
    return join


def path_of(data: object) -> Path | None:
    """The path of files, or None."""
    data = data.path if isinstance(data, CSV) else data
    return Path(data) if isinstance(data, (str, Path)) else None


def check_join(join: Mapping[str, Any], unit_column: str | None) -> None:
    """Refuse, before any data are there, a unit that rows of the second table need not belong to."""
    if join:
        with within(f"{_WHERE}: "):
            check_unit(Joined(None, **join), unit_column)


@contextmanager
def within(part: str) -> Iterator[None]:
    """Messages begin with the part of the spec that they are about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{part}{error}") from None
