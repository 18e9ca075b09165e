"""Where data are, for whoever names them or finishes a release later. Nothing of them is read."""

import glob
from pathlib import Path
from typing import Any

from leastnoise._adapters._layout import CSV


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
    source = source.path if isinstance(source, CSV) else source
    if not isinstance(source, (str, Path)):
        return None
    folder = _folder_of_pattern(Path(source))
    return (folder or Path(source)).name.split(".")[0] or "data"


def ledger_beside(source: str | Path) -> Path:
    """The ledger's file, unless its user says so: beside a file or folder, and in the folder where a pattern begins.

    Args:
        source: the data.

    >>> ledger_beside("/data/people.csv").as_posix(), ledger_beside("/data/visits/*.csv").as_posix()
    ('/data/people.ledger', '/data/visits/visits.ledger')
    """
    folder, name = _folder_of_pattern(Path(source)), f"{dataset_name(source)}.ledger"
    return Path(source).with_name(name) if folder is None else folder / name


def _folder_of_pattern(place: Path) -> Path | None:
    if not glob.has_magic(str(place)) or place.exists():
        return None
    first = next(folder for folder in reversed([place, *place.parents]) if glob.has_magic(folder.name))
    return first.parent.absolute()
