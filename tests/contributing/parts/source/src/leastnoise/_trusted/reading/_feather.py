"""Feather files: Arrow's own format, version 2.

Keeps E2 and E4 of PROOFS-reading.md: PyArrow gives each row its values as they are stored, and a
file that cannot be read is refused without its text.
"""

from pathlib import Path
from typing import Any

from leastnoise._trusted.check import InputError, message
from leastnoise._trusted.reading._column import (
    Chunks,
    Column,
    FileKind,
    Source,
    arrow_fields,
    by_columns,
    chunk_batches,
    to_column,
)
from leastnoise._trusted.reading._locations import NOT_WHOLE


def open_feather(path: Path) -> Source:
    """Open a Feather file; only its schema is read.

    Args:
        path: the file.

    Raises:
        InputError: the file is not a Feather file.
    """
    import pyarrow as pa

    what = f"the Feather file {str(path)!r}"
    schema = _opened(path, what).schema

    def chunks(columns: list[str]) -> Chunks[Column]:
        try:
            opened = _opened(path, what)
            batches = (opened.get_batch(place) for place in range(opened.num_record_batches))
            yield from chunk_batches(batches, [(name, to_column) for name in columns])
        except (pa.ArrowException, OSError):
            # their own text may quote the file
            raise InputError(message(NOT_WHOLE, what=what)) from None

    return Source(
        description=what, fields=arrow_fields(schema), total=None, encoded=by_columns(chunks)
    )


def _opened(path: Path, what: str) -> Any:
    import pyarrow as pa

    try:
        return pa.ipc.open_file(pa.memory_map(str(path)))
    except (pa.ArrowException, OSError):
        raise InputError(
            f"{what} cannot be read as Feather. Check that the file is whole and is a Feather "
            "file of version 2."
        ) from None


FEATHER_FILES = FileKind(name="Feather", endings=(".feather", ".arrow"), open=open_feather)
