"""Messages about sources, with places for what the user called them; nothing is decided by it, and nothing of a row gets here."""

from collections.abc import Sequence

from leastnoise._check import did_you_mean

CSV_FILE = "the CSV file {path!r}"
PARQUET_FILE = "the Parquet file {path!r}"
STORED = "the table {table!r} of {engine}"
NO_HEADER = (
    "{what} must begin with a line of column names; its first line is not one. "
    "Check that the file is a CSV file whose lines end with LF or CRLF."
)
LONG_HEADER = "{what} must begin with a line of column names of at most {most} bytes; its first line is longer."
NO_CSV = "{what} cannot be read. Check that it is a file you may read and, if it ends in .gz, that it is compressed by gzip."
OTHER_ENCODING = (
    "{what} must be text in {encoding}; its first line is not. "
    'Say its encoding, for example [source] encoding = "latin-1" (of `init`: --encoding latin-1), or save it as UTF-8 or Parquet.'
)
NOT_WHOLE = "{what} cannot be read to its end. Check that it is whole and is not being written."
NO_PARQUET = "{what} cannot be read as Parquet. Check that the file is whole and is a Parquet file."
ONE_FILE_TWICE = "the files of a source must be different ones; {path!r} means one twice, by a link. Leave the link out."
NO_CSV_LAYOUT = "delimiter, encoding and header are about CSV files; got {path!r}. Leave them out."
OTHER_COLUMNS = (
    "the files of a source must have the same columns; {what} has others than {first}. "
    "Name the files that belong together, or make one file of them."
)
NAMES_TWICE = "the data frame must have column names that differ from each other. Rename or drop one of those that occur twice."
NO_FRAME = "{what} cannot be computed. Collect it first, to see its own error."
NO_SPARK = "{what} cannot be computed. Run an action on it by itself first, such as count(), to see its own error."
NO_DUCKDB = (
    "{what} cannot be read. Check that {connection} holds the path of a DuckDB database that no other program has open "
    "for writing, and that the table is there."
)
NO_POSTGRES = (
    "{what} cannot be read. Check that {connection} is the URL of a server that runs and lets you in, "
    "and that you may read the table there."
)
NO_SOURCE = (
    "the source must be a path to {endings} files, a pandas, Polars, PyArrow, Spark or Ibis table, a DuckDB relation or a "
    "DatabaseTable; got an object of type {kind!r}."
)
STRANGE_COLUMN = "the column {name!r} of {what} must hold numbers, text or dates; its type is {kind}. Convert it to one of these."
NOT_OF_THE_UNIT = (
    "a table that is joined must be of the unit's own rows, or public: a row of it would be in the rows of several units. It is "
    "joined on {own!r}, and {got}. Make {own!r} the unit, or say public = true if everyone may know what that table holds."
)


def no_column(what: str, names: Sequence[str], name: str) -> str:
    """The message about a column that is not there, or is there more than once."""
    if (times := names.count(name)) > 1:
        return f"{what} must have one column {name!r}; it has {times} of that name. Rename the others."
    listed = ", ".join(repr(known) for known in names[:20]) + (", ..." if len(names) > 20 else "")
    near = did_you_mean(name, names)
    if len(names) == 1 and name in names[0]:
        mark = max(",;|\t", key=names[0].count).replace("\t", "\\t")
        near = f'Is another character between its fields? Say which, for example [source] delimiter = "{mark}".'
    return f"{what} has no column {name!r}; it has {listed}." + (f" {near}" if near else "")
