"""Files, folders and globs: which files a path means, and several files read as one source. Only names decide, never what files hold."""

import glob
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from leastnoise._adapters._arrow import in_chunks, strange_types, to_column
from leastnoise._adapters._column import CHUNK, Column, FileKind, Source, not_whole
from leastnoise._adapters._csv import CSV_FILES, open_csv
from leastnoise._adapters._location import CSV
from leastnoise._check import InputError, did_you_mean


def open_parquet(path: Path) -> Source:
    """Open a Parquet file; only its schema and number of rows are read."""
    import pyarrow as pa

    what = f"the Parquet file {str(path)!r}"
    opened = _opened(path, what)
    schema = opened.schema_arrow

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        try:
            yield from in_chunks(
                opened.iter_batches(batch_size=CHUNK, columns=list(dict.fromkeys(columns))), [(name, to_column) for name in columns]
            )
        except (pa.ArrowException, OSError):
            # their own text may quote the file
            raise InputError(not_whole(what)) from None

    return Source(what=what, names=tuple(schema.names), total=opened.metadata.num_rows, chunks=chunks, strange=strange_types(schema))


def _opened(path: Path, what: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # the time stamps of old files, which 64 bits of nanoseconds do not hold
        return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    except (pa.ArrowException, OSError):
        raise InputError(f"{what} cannot be read as Parquet. Check that the file is whole and is a Parquet file.") from None


PARQUET_FILES = FileKind(name="Parquet", endings=(".parquet",), open=open_parquet)


KINDS = (
    CSV_FILES,
    PARQUET_FILES,
)
_NAMES = [ending for kind in KINDS for ending in kind.endings]
ENDINGS = f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}"


def files(path: str | os.PathLike[str]) -> list[tuple[Path, FileKind]]:
    """The files that a path means: a file; all below a folder; or those that match a pattern of ``*``, ``?``, ``[...]`` and ``**``.

    Args:
        path: of a file, a folder, or a pattern.

    Returns:
        Each file and its kind, sorted by name. Of a folder and of ``**`` those whose own name, or a folder's on the way, begins with a
        point or an underscore are left out, as engines write marks of their own under such names.

    Raises:
        InputError: there is no such file, or one is of a kind that is not supported, or they are of several.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv", "_SUCCESS"):
    ...         _ = Path(folder, name).write_text("x")
    ...     [file.name for file, _ in files(folder)], [kind.name for _, kind in files(f"{folder}/a*")]
    (['a.csv', 'b.csv'], ['CSV'])
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"the source must be a path to {ENDINGS} files; got an object of type {type(path).__name__!r}.")
    place = Path(os.fsdecode(path))
    if place.is_dir():
        found = [file for file in sorted(place.rglob("*")) if file.is_file() and not _hidden(file.relative_to(place))]
        what = f"The folder {str(place)!r}"
    elif glob.has_magic(str(place)) and not place.is_file():
        matches = (Path(name) for name in sorted(glob.glob(str(place), recursive=True)))  # noqa: PTH207 - the pattern may be absolute
        found = [file for file in matches if file.is_file() and not ("**" in place.parts and _hidden(file))]
        what = f"The pattern {str(place)!r}"
    else:
        return [(place, _kind(place))]
    if not found:
        raise InputError(f"the source must be files that exist. {what} has none.")
    pairs = [(file, _kind(file)) for file in found]
    kinds = [kind.name for kind in KINDS if any(kind is other for _, other in pairs)]
    if len(kinds) > 1:
        both = " and ".join(kinds)
        raise InputError(f"the files of a source must be of one kind. {what} has both {both} files: name one kind, as in '*.csv'.")
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
    kind = found[0][1]  # of all
    if layout is not None and kind is not CSV_FILES:
        raise InputError(f"delimiter, encoding and header are about CSV files; got {os.fsdecode(path)!r}. Leave them out.")
    open_one = kind.open if layout is None else partial(open_csv, layout=layout)
    if len(found) == 1:
        return open_one(found[0][0])
    # of all files only these facts are kept, not the files themselves: there may be more than a process may hold open
    first: Source | None = None
    strange: dict[str, str] = {}
    total: int | None = 0
    for file, _ in found:
        opened = open_one(file)
        first = opened if first is None else first
        if sorted(opened.names) != sorted(first.names):
            raise InputError(
                f"the files of a source must have the same columns; {opened.what} has others than {first.what}. "
                "Name the files that belong together, or make one file of them."
            )
        strange |= opened.strange
        total = None if total is None or opened.total is None else total + opened.total

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        for file, _ in found:
            yield from open_one(file).chunks(columns)

    what = f"the source of {len(found)} files {os.fsdecode(path)!r}"
    return Source(what=what, names=first.names if first else (), total=total, chunks=chunks, strange=strange)


def _hidden(file: Path) -> bool:
    return any(part.startswith((".", "_")) and part not in {".", ".."} for part in file.parts)


def _kind(file: Path) -> FileKind:
    kind = next((known for known in KINDS if file.name.lower().endswith(known.endings)), None)
    if kind is None:
        raise InputError(f"the source must be a file that ends in {ENDINGS}; got {str(file)!r}. Convert it, or read it into a data frame.")
    if not file.is_file():
        near = did_you_mean(file.name, [entry.name for entry in file.parent.iterdir()]) if file.parent.is_dir() else ""
        raise InputError(f"the source must be a file that exists; there is no file {str(file)!r}." + (f" {near}" if near else ""))
    return kind
