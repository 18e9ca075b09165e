"""Read the schemas of sources, for drafts and pages.

No release depends on this file, and no value is read. The file imports private files of
`_trusted.reading`, because the schema has the types that reading uses. The contract "only the
session reads rows" in `pyproject.toml` allows these imports.
"""

import os
from itertools import chain
from pathlib import Path
from typing import Any

from leastnoise._trusted.reading._column import SchemaField
from leastnoise._trusted.reading._read import open_source
from leastnoise._trusted.reading.helpers._locations import CSV


def schema(source: Any) -> tuple[SchemaField, ...]:
    """Return the columns of a source with their types, without reading rows.

    Args:
        source: anything that `leastnoise._trusted.reading.read` takes.

    Returns:
        One entry for each column, with its name, its Arrow type (None in files of text), its time
        zone, whether its values can be read, and whether they must not be null.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_text("sex,age")
    ...     [field.name for field in schema(file)]
    ['sex', 'age']
    """
    return open_source(source).fields


def file_endings() -> tuple[str, ...]:
    """Return the endings of all supported files.

    >>> ".parquet" in file_endings()
    True
    """
    from leastnoise._trusted.reading._files import KINDS

    return tuple(chain.from_iterable(kind.endings for kind in KINDS))


def has_text_rows(source: Any) -> bool:
    """Return whether each row of a source is a line of text in a file.

    The result depends only on the names of the files.

    >>> [has_text_rows(name) for name in ("a.csv", "b/*.tsv.gz", "c.parquet")]
    [True, True, False]
    """
    from leastnoise._trusted.reading._files import KINDS

    if isinstance(source, CSV):
        path = source.path
    else:
        path = source
    if not isinstance(path, (str, os.PathLike)):
        return False
    name = Path(path).name.lower()
    return any(kind.rows_are_lines and name.endswith(kind.endings) for kind in KINDS)
