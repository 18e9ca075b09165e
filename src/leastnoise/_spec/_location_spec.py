"""Read the location of the data, the layout of files, and joined tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leastnoise._domain import checked_keys
from leastnoise._spec._checks import check_text, prefix_errors
from leastnoise._trusted.check import InputError
from leastnoise._trusted.reading import CSV, DatabaseTable, Joined

LOCATION_KEYS = ("path", "table", "connection")
LAYOUT_KEYS = ("delimiter", "encoding", "header")
_JOIN_KEYS = ("on", "columns", "public")


def read_location(
    folder: Path, table: Mapping[str, Any], location_name: str
) -> tuple[Path | None, DatabaseTable | None]:
    """Return the path or the database table that a table of the spec names.

    Both are None if the table names neither.
    """
    if "path" in table:
        path = folder / check_text(f"{location_name} path", table["path"])
    else:
        path = None
    database_keys = [key for key in ("table", "connection") if key in table]
    if database_keys and (database_keys != ["table", "connection"] or path is not None):
        raise InputError(
            f'{location_name} must have path, or table and connection. A connection is "env:" and '
            "the name of an environment variable."
        )
    return path, DatabaseTable(table["table"], table["connection"]) if database_keys else None


def read_layout(table: Mapping[str, Any], location_name: str) -> dict[str, Any]:
    """Read and check the CSV layout (delimiter, encoding, header) in a spec table."""
    layout = {key: table[key] for key in LAYOUT_KEYS if key in table}
    with prefix_errors(f"{location_name}: "):
        CSV("data.csv", **layout)
    return layout


def read_joins(
    folder: Path, source_table: Mapping[str, Any], first_path: Path | None
) -> tuple[dict[str, Any], ...]:
    """Return the arguments of `Joined` for each [source.join] table, in order.

    ``first_path`` is the path of the first table.
    """
    if "join" not in source_table:
        return ()
    parts = source_table["join"]
    if not isinstance(parts, list):
        parts = [parts]
    joins: list[dict[str, Any]] = []
    source: Any = first_path
    for number, part in enumerate(parts, 1):
        where = name_join(number, len(parts))
        join = _read_join(folder, source_table, part, where)
        with prefix_errors(f"{where}: "):
            source = Joined(source, **join)
        joins.append(join)
    return tuple(joins)


def name_join(number: int, join_count: int) -> str:
    """Return the name of a [source.join] table in messages."""
    if join_count == 1:
        return "[source.join]"
    return f"[[source.join]] number {number}"


def _read_join(
    folder: Path, source_table: Mapping[str, Any], join_table: object, location: str
) -> dict[str, Any]:
    """Return the arguments of `Joined` for one [source.join] table."""
    table = checked_keys(location, join_table, [*LOCATION_KEYS, *LAYOUT_KEYS, *_JOIN_KEYS])
    if "table" in table and "connection" in source_table:
        table.setdefault("connection", source_table["connection"])
    path, database_table = read_location(folder, table, location)
    if (path is None and database_table is None) or "on" not in table:
        raise InputError(
            f"{location} must name a table and the columns that both tables have, such as "
            'path = "patients.csv" and on = "patient_id".'
        )
    layout = read_layout(table, location)
    second: Any = CSV(path, **layout) if layout and path is not None else database_table or path
    return {"second": second, **{key: table[key] for key in _JOIN_KEYS if key in table}}
