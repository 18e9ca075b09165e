"""Names and types of the columns of a source, for drafts and pages: no release depends on it, and no value is looked at."""

import os
from dataclasses import replace

from leastnoise._adapters._places import CSV, DatabaseTable
from leastnoise._adapters._read import open_source

# What a server's column holds, in the words of DuckDB.
_HELD = {
    "integer": "BIGINT",
    "double": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "day": "DATE",
    "stamp": "TIMESTAMP",
}
_HELD["instant"] = "TIMESTAMP"


def columns(path: str | os.PathLike[str] | CSV | DatabaseTable) -> list[tuple[str, str]]:
    """List the columns of a file, or of the first of several, or of a table, from its header or schema alone.

    Types are in DuckDB's words such as ``VARCHAR``, ``BIGINT``, ``DOUBLE``; those of a CSV file,
    and where a table's are not known, are ``"unknown"``. No value of the data is read.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_text("sex,age")
    ...     columns(file)
    [('sex', 'unknown'), ('age', 'unknown')]
    """
    # the libraries that read are imported when something is read
    from leastnoise._adapters._files import KINDS
    from leastnoise._adapters._places import files

    if isinstance(path, DatabaseTable):
        table = open_source(path)
        values = getattr(table.engine, "values", {})
        return [
            (name, _HELD.get(str(values[name].held), "unknown") if name in values else "unknown")
            for name in table.names
        ]
    file, kind = files(path.path if isinstance(path, CSV) else path, KINDS)[0]
    opened = kind.open(file) if not isinstance(path, CSV) else open_source(replace(path, path=file))
    if kind.name == "CSV":
        return [(name, "unknown") for name in opened.names]
    import duckdb

    literal = "".join(
        f"[{character}]" if character in "*?[" else character for character in str(file)
    )
    with duckdb.connect(":memory:") as connection:
        return [
            (str(row[0]), str(row[1]))
            for row in connection.execute(
                "DESCRIBE SELECT * FROM read_parquet(?)", [literal]
            ).fetchall()
        ]
