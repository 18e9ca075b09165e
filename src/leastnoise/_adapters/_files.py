"""Several files read as one source; only names decide which these are, never what files hold."""

import glob
import os
from functools import partial
from pathlib import Path

from leastnoise._adapters._arrow import in_chunks, strange_types, to_column
from leastnoise._adapters._column import CHUNK, Chunks, Column, Encoders, FileKind, Source, by_columns
from leastnoise._adapters._csv import CSV_FILES, open_csv
from leastnoise._adapters._places import CSV, NO_CSV_LAYOUT, NO_PARQUET, NOT_WHOLE, ONE_FILE_TWICE, OTHER_COLUMNS, PARQUET_FILE, files
from leastnoise._check import InputError, InternalError, message
from leastnoise._check.arrays import IntArray


def open_parquet(path: Path) -> Source:
    """Open a Parquet file; only its schema and number of rows are read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    what = message(PARQUET_FILE, path=str(path))
    try:
        # the time stamps of old files, which 64 bits of nanoseconds do not hold
        opened = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    except (pa.ArrowException, OSError):
        raise InputError(message(NO_PARQUET, what=what)) from None
    schema = opened.schema_arrow

    def chunks(columns: list[str]) -> Chunks[Column]:
        try:
            yield from in_chunks(opened.iter_batches(batch_size=CHUNK, columns=columns), [(name, to_column) for name in columns])
        except (pa.ArrowException, OSError):
            # their own text may quote the file
            raise InputError(message(NOT_WHOLE, what=what)) from None

    return Source(
        what=what, names=tuple(schema.names), total=opened.metadata.num_rows, encoded=by_columns(chunks), strange=strange_types(schema)
    )


PARQUET_FILES = FileKind(name="Parquet", endings=(".parquet",), open=open_parquet)


KINDS = (
    CSV_FILES,
    PARQUET_FILES,
)


def open_files(path: str | os.PathLike[str] | CSV) -> Source:
    """Open the files that a path means, one after the other as one source.

    Raises:
        InputError: as for `files`; or a file is there twice, the files do not have the same columns, or a layout is given of files that
            are no CSV.
        InternalError: a file is neither the path's own nor below it, or below what a pattern begins with; or is not of the kind that its
            name says.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv"):
    ...         _ = Path(folder, name).write_text("age,sex")
    ...     open_files(folder).names
    ('age', 'sex')
    """
    layout = path if isinstance(path, CSV) else None
    path = path.path if isinstance(path, CSV) else path
    matched = files(path, KINDS)
    kind = matched[0][1]  # of all
    root = Path(os.fsdecode(path))
    # itself, or what its pattern begins with, as they are without ".."
    below = os.path.abspath(root if root.exists() else next(up for up in (root, *root.parents) if not glob.has_magic(str(up))))  # noqa: PTH100
    others = [file for file, _ in matched if not Path(os.path.abspath(file)).is_relative_to(below)]  # noqa: PTH100
    if others or kind not in KINDS or not all(file.name.lower().endswith(kind.endings) for file, _ in matched):
        raise InternalError("the files of a source must be below its path and of the kind that their names say; please report this.")
    # of whom a row twice would be two
    if len({(entry.st_dev, entry.st_ino) for entry in (file.stat() for file, _ in matched)}) < len(matched):
        raise InputError(message(ONE_FILE_TWICE, path=os.fsdecode(path)))
    if layout is not None and kind is not CSV_FILES:
        raise InputError(message(NO_CSV_LAYOUT, path=os.fsdecode(path)))
    open_one = kind.open if layout is None else partial(open_csv, layout=layout)
    if len(matched) == 1:
        return open_one(matched[0][0])
    # of all files only these facts are kept, not the files themselves: there may be more than a process may hold open
    first: Source | None = None
    strange: dict[str, str] = {}
    total: int | None = 0
    for file, _ in matched:
        opened = open_one(file)
        first = opened if first is None else first
        if sorted(opened.names) != sorted(first.names):
            raise InputError(message(OTHER_COLUMNS, what=opened.what, first=first.what))
        strange |= opened.strange
        total = None if total is None or opened.total is None else total + opened.total

    def encoded(wanted: Encoders) -> Chunks[IntArray]:
        for file, _ in matched:
            yield from open_one(file).encoded(wanted)

    what = f"the source of {len(matched)} files {os.fsdecode(path)!r}"
    return Source(what=what, names=first.names if first else (), total=total, encoded=encoded, strange=strange)
