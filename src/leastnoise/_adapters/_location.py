"""Where data are, for whoever names them or finishes a release later. Nothing of them is read."""

import glob
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leastnoise._adapters._layout import CSV
from leastnoise._check import InputError, refuse

_VARIABLE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def location(source: Any) -> Any:
    """The absolute path of a source that is files, with their layout where one was given, as plain values; None of any other.

    Args:
        source: the data.

    >>> location("/data/people.csv"), location({"age": [1]})
    ('/data/people.csv', None)
    """
    if isinstance(source, CSV):
        return source.located()
    return str(Path(source).expanduser().absolute()) if isinstance(source, (str, Path)) else None


def located(place: Any, moved: Any = None) -> Any:
    """The source that `location` wrote down.

    Args:
        place: what it wrote.
        moved: where the data are by now, if not there; a path has the same layout.

    >>> located("/data/people.csv"), located(location(ln.CSV("/data/people.csv", ";"))).delimiter
    ('/data/people.csv', ';')
    """
    if isinstance(place, dict) and (moved is None or isinstance(moved, (str, Path))):
        return CSV(**{**place, "path": moved or place["path"]})
    return place if moved is None else moved


def dataset_name(source: Any) -> str | None:
    """What the data set of a source is called in its ledger, unless its user says so: the name of a file, of a folder, or of the folder
    where a pattern begins; None of data that have no name.

    Args:
        source: the data.

    >>> dataset_name("/data/people.csv.gz"), dataset_name("/data/visits/*.csv"), dataset_name({"age": [1]})
    ('people', 'visits', None)
    """  # noqa: D205 - one sentence
    if isinstance(source, DatabaseTable):
        return source.parts[-1]
    source = source.path if isinstance(source, CSV) else source
    if not isinstance(source, (str, Path)):
        return None
    folder = _folder_of_pattern(Path(source))
    return (folder or Path(source)).name.split(".")[0] or "data"


def ledger_beside(source: Any) -> Path:
    """The ledger's file, unless its user says so: beside a file or folder, and in the folder where a pattern begins.

    Args:
        source: the path of the data, or a table, whose ledger is in the working folder.

    >>> ledger_beside("/data/people.csv").as_posix(), ledger_beside("/data/visits/*.csv").as_posix()
    ('/data/people.ledger', '/data/visits/visits.ledger')
    """
    name = f"{dataset_name(source)}.ledger"
    if isinstance(source, DatabaseTable):
        return Path(name)
    folder = _folder_of_pattern(Path(source))
    return Path(source).with_name(name) if folder is None else folder / name


def _folder_of_pattern(place: Path) -> Path | None:
    if not glob.has_magic(str(place)) or place.exists():
        return None
    first = next(folder for folder in reversed([place, *place.parents]) if glob.has_magic(folder.name))
    return first.parent.absolute()


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or view of a database, and where the way to it is found.

    Args:
        table: its name as it is stored, ``"visits"`` or ``"public.visits"``.
        connection: ``"env:NAME"``: the environment variable that holds the URL of the database, ``postgresql://...``, or
            ``duckdb://`` and the path of a database file. The URL itself, which may hold a password, is in no spec, plan, log or release.

    Raises:
        InputError: a name of another form, or a connection that is not an environment variable's name.

    >>> ln.DatabaseTable("public.visits", "env:VISITS_URL").parts
    ('public', 'visits')
    """

    table: str
    connection: str

    def __post_init__(self) -> None:
        if not isinstance(self.table, str) or not 1 <= len(self.parts) <= 2 or not all(self.parts):
            raise refuse("table", self.table, "a name such as 'visits' or 'public.visits'")
        if not isinstance(self.connection, str) or not _VARIABLE.fullmatch(self.connection):
            # what was given may be a URL with a password, so it is not shown
            raise InputError(
                "connection must be 'env:' and the name of an environment variable that holds the URL, as in 'env:VISITS_URL'."
            )

    @property
    def parts(self) -> tuple[str, ...]:
        """Schema, if it is named, and table."""
        return tuple(self.table.split("."))

    def url(self) -> str:
        """The URL of the database; for the adapter alone.

        Raises:
            InputError: the environment does not have the variable.
        """
        name = self.connection.removeprefix("env:")
        found = os.environ.get(name)
        if not found:
            raise InputError(
                f"The environment variable {name} must hold the URL of the database, such as postgresql://user@host/name "
                "or duckdb:///data/visits.duckdb; it is not set."
            )
        return found
