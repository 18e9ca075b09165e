"""Derive the names and locations of data, which determine its ledger.

The module also checks that a joined table has the privacy unit that it needs. The module reads no
data.
"""

import glob
from pathlib import Path
from typing import Any

from leastnoise._trusted.check import InputError, message
from leastnoise._trusted.domain import READ_AS_IT_IS, Reading
from leastnoise._trusted.reading.helpers._locations import (
    CSV,
    NOT_OF_THE_UNIT,
    READ_OTHERWISE,
    DatabaseTable,
    Joined,
    list_joins,
    private_tables,
)


def source_location(source: Any) -> Any:
    """Return a source's absolute path and CSV layout as JSON values, or None.

    The result is None for a source that is not a file or several files.

    >>> source_location("/data/people.csv"), source_location({"age": [1]})
    ('/data/people.csv', None)
    """
    if isinstance(source, CSV):
        return source.located()
    if isinstance(source, Joined):
        both = [source_location(source.data), source_location(source.second)]
        if None in both:
            return None
        return {"joined": both, **source.terms()}
    if isinstance(source, (str, Path)):
        return str(Path(source).expanduser().absolute())
    return None


def dataset_name(source: Any) -> str | None:
    """Return a data set's default name in ledgers; None for a data frame.

    The result is None for data without a name.

    The default is the name of a table, file or folder. For a pattern, it is the name of the last
    folder before the first wildcard.

    >>> (
    ...     dataset_name("/data/people.csv.gz"),
    ...     dataset_name("/data/visits/*.csv"),
    ...     dataset_name({"age": [1]}),
    ... )
    ('people', 'visits', None)
    """
    source = private_tables(source)[0]
    if isinstance(source, DatabaseTable):
        return source.parts[-1]
    source = source.path if isinstance(source, CSV) else source
    if not isinstance(source, (str, Path)):
        return None
    folder = _folder_of_pattern(Path(source))
    return (folder or Path(source)).name.split(".")[0] or "data"


def ledger_beside(source: Any) -> Path:
    """Return the default path of the ledger of a source.

    The ledger of a file or folder is next to it. The ledger of a pattern is in the last folder
    before the first wildcard, and the ledger of a database table is in the working folder.

    >>> ledger_beside("/data/people.csv").as_posix(), ledger_beside("/data/visits/*.csv").as_posix()
    ('/data/people.ledger', '/data/visits/visits.ledger')
    """
    name = f"{dataset_name(source)}.ledger"
    if isinstance(source, DatabaseTable):
        return Path(name)
    folder = _folder_of_pattern(Path(source))
    if folder is None:
        return Path(source).with_name(name)
    return folder / name


def join_facts(source: Any) -> list[dict[str, Any]]:
    """Return the facts that a release publishes about each join of its source.

    >>> join_facts(ln.Joined("visits.csv", "patients.csv", on="patient_id"))
    [{'table': 'patients', 'on': 'patient_id', 'key': 'patient_id', 'public': False}]
    """
    return [
        {
            "table": dataset_name(join.second) or "",
            "on": join.first_key,
            "key": join.second_key,
            "public": join.public,
        }
        for join in list_joins(source)
    ]


def _folder_of_pattern(path: Path) -> Path | None:
    """Return the folder above a pattern's first wildcard; None if there is none."""
    if not glob.has_magic(str(path)) or path.exists():
        return None
    first = next(
        folder for folder in reversed([path, *path.parents]) if glob.has_magic(folder.name)
    )
    return first.parent.absolute()


def check_unit(
    joined: Joined, unit_column: str | None, unit_reading: Reading = READ_AS_IT_IS
) -> None:
    """Raise unless each joined table is public or joined on the unit column.

    If the first table itself consists of joins, these joins are checked as well. A public table
    needs no unit.

    >>> check_unit(ln.Joined("visits.csv", "patients.csv", on="patient_id"), None)
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: a joined table must have rows of the
    unit, or be public. ...
    """
    if isinstance(joined.data, Joined):
        check_unit(joined.data, unit_column, unit_reading)
    if joined.public is True:
        return
    if unit_column == joined.first_key:
        if unit_reading == joined.reading:
            return
        raise InputError(message(READ_OTHERWISE, own=joined.first_key))
    if unit_column is None:
        received = "every row is a unit"
    else:
        received = f"the unit is {unit_column!r}"
    raise InputError(message(NOT_OF_THE_UNIT, own=joined.first_key, got=received))
