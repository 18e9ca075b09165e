"""Feather files: Arrow's own format, version 2.

Relies on E2 and E4 of PROOFS-reading.md: PyArrow returns the stored values of each row, and the
refusal of a file that cannot be read quotes none of its text.
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
from leastnoise._trusted.reading.helpers._locations import NOT_WHOLE


def open_feather(path: Path) -> Source:
    """Open a Feather file; only its schema is read.

    Args:
        path: the file.

    Raises:
        InputError: the file is not a Feather file.
    """
    import pyarrow as pa

    description = f"the Feather file {str(path)!r}"
    schema = _open(path, description).schema

    def chunks(columns: list[str]) -> Chunks[Column]:
        """Yield the named columns, batch by batch."""
        try:
            reader = _open(path, description)
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
            yield from chunk_batches(batches, [(name, to_column) for name in columns])
        except (pa.ArrowException, OSError):
            # Messages of PyArrow may quote the file.
            raise InputError(message(NOT_WHOLE, what=description)) from None

    return Source(
        description=description, fields=arrow_fields(schema), total=None, encoded=by_columns(chunks)
    )


def _open(path: Path, description: str) -> Any:
    """Return the reader of a file, and refuse a file of another format."""
    import pyarrow as pa

    try:
        return pa.ipc.open_file(pa.memory_map(str(path)))
    except (pa.ArrowException, OSError):
        raise InputError(
            f"{description} cannot be read as Feather. Check that the file is whole and is a "
            "Feather file of version 2."
        ) from None


FEATHER_FILES = FileKind(name="Feather", endings=(".feather", ".arrow"), open=open_feather)
