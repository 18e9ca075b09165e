"""Files, folders and globs: which files a path means, and several files read as one source. Only names decide, never what files hold."""

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from leastnoise._adapters._column import Column, Source
from leastnoise._adapters._csv import count_lines, open_csv
from leastnoise._adapters._layout import CSV
from leastnoise._adapters._parquet import open_parquet
from leastnoise._check import InputError
from leastnoise._domain import did_you_mean

# What reads a file, by the end of its name.
OPENERS: dict[str, Callable[[Path], Source]] = {".csv": open_csv, ".csv.gz": open_csv, ".parquet": open_parquet}
_ENDINGS = ".csv, .csv.gz or .parquet"


def files(path: str | os.PathLike[str]) -> list[tuple[Path, str]]:
    """The files that a path means: a file; all below a folder; or those that match a pattern of ``*``, ``?``, ``[...]`` and ``**``.

    Args:
        path: of a file, a folder, or a pattern.

    Returns:
        Each file and its ending, sorted by name. Of a folder and of ``**`` those whose own name, or a folder's on the way, begins with a
        point or an underscore are left out, as engines write marks of their own under such names.

    Raises:
        InputError: there is no such file, or one is of a kind that is not supported, or they are of several.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv", "_SUCCESS"):
    ...         _ = Path(folder, name).write_text("x")
    ...     [file.name for file, _ in files(folder)], [ending for _, ending in files(f"{folder}/a*")]
    (['a.csv', 'b.csv'], ['.csv'])
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"the source must be a path to {_ENDINGS} files; got an object of type {type(path).__name__!r}.")
    place = Path(os.fsdecode(path))
    if place.is_dir():
        found = [file for file in sorted(place.rglob("*")) if file.is_file() and not _hidden(file.relative_to(place))]
        what = f"The folder {str(place)!r}"
    elif glob.has_magic(str(place)) and not place.is_file():
        matches = (Path(name) for name in sorted(glob.glob(str(place), recursive=True)))  # noqa: PTH207 - the pattern may be absolute
        found = [file for file in matches if file.is_file() and not ("**" in place.parts and _hidden(file))]
        what = f"The pattern {str(place)!r}"
    else:
        return [(place, _ending(place))]
    if not found:
        raise InputError(f"the source must be files that exist. {what} has none.")
    pairs = [(file, _ending(file)) for file in found]
    kinds = {OPENERS[ending] for _, ending in pairs}
    if len(kinds) > 1:
        raise InputError(f"the files of a source must be of one kind. {what} has both CSV and Parquet files: name one kind, as in '*.csv'.")
    return pairs


def open_files(path: str | os.PathLike[str] | CSV) -> Source:
    """Open the files that a path means, one after the other as one source.

    Args:
        path: as for `files`; or CSV files with their layout.

    Raises:
        InputError: as for `files`; or the files do not have the same columns, or a layout is given of files that are no CSV.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv"):
    ...         _ = Path(folder, name).write_text("age,sex")
    ...     open_files(folder).names
    ('age', 'sex')
    """
    layout = path if isinstance(path, CSV) else None
    path = path.path if isinstance(path, CSV) else path
    found = files(path)
    if layout is not None and any(OPENERS[ending] is not open_csv for _, ending in found):
        raise InputError(f"delimiter, encoding and header are about CSV files; got {os.fsdecode(path)!r}. Leave them out.")
    openers = OPENERS if layout is None else dict.fromkeys(OPENERS, partial(open_csv, layout=layout))
    if len(found) == 1:
        file, ending = found[0]
        return openers[ending](file)
    # of all files only these facts are kept, not the files themselves: there may be more than a process may hold open
    first: Source | None = None
    strange: dict[str, str] = {}
    total: int | None = 0
    for file, ending in found:
        opened = openers[ending](file)
        first = opened if first is None else first
        if sorted(opened.names) != sorted(first.names):
            raise InputError(
                f"the files of a source must have the same columns; {opened.what} has others than {first.what}. "
                "Name the files that belong together, or make one file of them."
            )
        strange |= opened.strange
        total = None if total is None or opened.total is None else total + opened.total

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        for file, ending in found:
            yield from openers[ending](file).chunks(columns)

    what = f"the source of {len(found)} files {os.fsdecode(path)!r}"
    return Source(what=what, names=first.names if first else (), total=total, chunks=chunks, strange=strange)


def count_lines_of(path: str | os.PathLike[str] | CSV) -> int | None:
    """The lines of CSV files without their headers, records or not; None of other files. Private."""
    layout = path if isinstance(path, CSV) else None
    found = files(path.path if isinstance(path, CSV) else path)
    return sum(count_lines(file, layout) for file, _ in found) if all(OPENERS[ending] is open_csv for _, ending in found) else None


def _hidden(file: Path) -> bool:
    return any(part.startswith((".", "_")) and part not in {".", ".."} for part in file.parts)


def _ending(file: Path) -> str:
    ending = next((known for known in OPENERS if file.name.lower().endswith(known)), None)
    if ending is None:
        raise InputError(f"the source must be a file that ends in {_ENDINGS}; got {str(file)!r}. Convert it, or read it into a data frame.")
    if not file.is_file():
        near = did_you_mean(file.name, [entry.name for entry in file.parent.iterdir()]) if file.parent.is_dir() else ""
        raise InputError(f"the source must be a file that exists; there is no file {str(file)!r}." + (f" {near}" if near else ""))
    return ending
