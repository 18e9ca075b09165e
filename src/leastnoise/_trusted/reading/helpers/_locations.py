"""Define how users state the location of data.

The module covers the files of a path, layouts of CSV files, tables of databases, joins, and
messages about them.

The content of files is not read. This file is not trusted. The code that uses a layout, a join or a
name checks the conditions that a private release requires. This code also checks that every file is
below the source's path, has a name with an ending of its kind, and is listed once.
"""

import codecs
import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leastnoise._trusted.check import InputError, did_you_mean, message, refuse
from leastnoise._trusted.domain import READ_AS_IT_IS, Reading, attribute_name

if TYPE_CHECKING:
    from leastnoise._trusted.reading._column import FileKind

_VARIABLE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NO_URL = (
    "The environment variable {name} must hold the URL of the database, such as "
    "postgresql://user@host/name "
    "or duckdb:///data/visits.duckdb; it is not set."
)
# Messages about sources, with the user's names for them; no text of a row is in them.
CSV_FILE = "the CSV file {path!r}"
PARQUET_FILE = "the Parquet file {path!r}"
STORED = "the table {table!r} of {engine}"
EMPTY_HEADER = (
    "{what} must begin with a line of column names; its first line is empty, or the whole file is. "
    "Leave out an empty file; remove the lines before the names; or state the names: header = "
    "[...] under [source], --header of `init`."
)
BROKEN_HEADER = (
    "{what} must begin with one line of column names; its first line ends within a quoted name, as "
    "one with a line break in it does. "
    "Write the names on one line, or give them yourself: header = [...] under [source], --header "
    "of `init`."
)
MISQUOTED_HEADER = (
    "{what} must begin with a line of column names; a name in its first line continues "
    "after its closing quote. State another delimiter if there is one, or give the names "
    "yourself: header = [...] under [source], --header of `init`."
)
NO_TEXT_HEADER = (
    "{what} must begin with a line of column names; its first line has control characters, as no "
    "text has them. "
    "Check that the file is text whose lines end with LF or CRLF, and save it as UTF-8."
)
LONG_HEADER = (
    "{what} must begin with a line of column names of at most {most} bytes; "
    "its first line is longer."
)
NO_CSV = (
    "{what} cannot be read. Check that it is a file that you may read. If its name ends in .gz, "
    "check that gzip compressed it."
)
OTHER_ENCODING = (
    "{what} must be text in {encoding}; its first line is not. "
    'Say its encoding, for example [source] encoding = "latin-1" (of `init`: --encoding latin-1), '
    "or save it as UTF-8 or Parquet."
)
NOT_WHOLE = "{what} cannot be read to its end. Check that it is whole and is not being written."
NO_PARQUET = "{what} cannot be read as Parquet. Check that the file is whole and is a Parquet file."
ONE_FILE_TWICE = (
    "the files of a source must be different ones; {path!r} means one twice, by a link. "
    "Leave the link out."
)
SAME_FILE_IN_TWO_FORMS = (
    "the files of a source must hold each row once; {first!r} and {second!r} differ only in their "
    "endings. So they seem to contain the same rows in two forms. Name the files of one form, such "
    "as '*.csv', or move one of the two away."
)
_FOREIGN_FILE = (
    "the files of a source must end in {endings}. {what} also has {path!r}: name the files that "
    "belong together, as in '*.csv', or move the others away."
)
_OTHER_ENDING = (
    "files without a line of names must have one ending, because only the ending shows that they "
    "belong together; {path!r} has {first!r} and {second!r}. Name the files of one ending, as in "
    "'*.csv', or move the others away."
)
NO_CSV_LAYOUT = "delimiter, encoding and header are about CSV files; got {path!r}. Leave them out."
OTHER_COLUMNS = (
    "the files of a source must have the same columns; {what} differs from {first}: only "
    "one of them has {names}. Name the files that belong together, or give them the same "
    "columns."
)
OTHER_FORMAT = (
    "{what} must be text in {encoding}; it begins as {form} does. Give it the ending of its "
    "format, or save it as CSV in UTF-8."
)
NAMES_TWICE = (
    "the data frame must have column names that differ from each other. "
    "Rename or drop one of those that occur twice."
)
NO_FRAME = "{what} cannot be computed. Collect it first, to see its own error."
NO_SPARK = (
    "{what} cannot be computed. Run an action on it first, such as count(), to see the error of "
    "the frame."
)
NO_DUCKDB = (
    "{what} cannot be read. Check that {connection} holds the path of a DuckDB database that no "
    "other program has open "
    "for writing, and that the table is there."
)
NO_POSTGRES = (
    "{what} cannot be read. Check that {connection} is the URL of a server that runs and lets you "
    "in, "
    "and that you may read the table there."
)
NO_CONNECTION = "{what} cannot be read. No connection with {connection}: {cause}"
FORBIDDEN_TABLE = (
    "{what} cannot be read. The role of {connection} may not read it: GRANT SELECT on it to that "
    "role, or use another role."
)
NO_SOURCE = (
    "the source must be a path to {endings} files, a pandas, Polars, PyArrow, Spark or Ibis "
    "table, a DuckDB relation or a "
    "DatabaseTable; got an object of type {kind!r}."
)
STRANGE_COLUMN = (
    "the column {name!r} of {what} must hold numbers, text or dates; its type is {kind}. "
    "Convert it to one of these."
)
NO_ZONE = (
    "the column {name!r} of {what} holds instants{zone}, and [domain.{attribute}] does not state "
    "the time zone of its days. Write for example zone = {advised} next to by in dates."
)
NO_MATCH = "{name!r} can match no value of the column {column!r} of {what}, which holds {holds}"
NOT_OF_THE_UNIT = (
    "a joined table must have rows of the unit, or be public. Otherwise one of its rows would "
    "belong to several units. It is joined on {own!r}, and {got}. Make {own!r} the unit, or set "
    "public = true if everyone may know the content of that table."
)
READ_OTHERWISE = (
    "the keys of a joined table must be read like the unit; the keys of {own!r} are read "
    "differently. Give the privacy unit and the join the same reading."
)
_OTHER_KIND = (
    "the source must be a file that ends in {endings}; got {path!r}. "
    "Convert it, or read it into a data frame."
)
_NO_FILE = "the source must be a file that exists; there is no file {path!r}."


@dataclass(frozen=True, slots=True)
class CSV:
    """CSV files with a stated format.

    Args:
        path: the path of a file, of a folder, or a pattern.
        delimiter: the ASCII character between fields; None for the most frequent of comma,
            semicolon, tab and bar in the header.
        encoding: ``"utf-8"``, or an encoding with one byte for each character, such as
            ``"latin-1"`` or ``"cp1252"``.
        header: True if the first line has the names of the columns. Otherwise a list of the names;
            every line is then a row.

    Raises:
        InputError: an argument cannot be used.

    >>> ln.CSV("umsatz.csv", delimiter=";", encoding="latin-1").delimiter
    ';'
    """

    path: str | os.PathLike[str]
    delimiter: str | None = None
    encoding: str = "utf-8"
    header: bool | tuple[str, ...] = True

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)):
            raise InputError(
                "the path of CSV files must be a path; got an object of type "
                f"{type(self.path).__name__!r}."
            )
        mark = self.delimiter
        if mark is not None and not (
            isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in '"\r\n\0'
        ):
            raise refuse(
                "delimiter",
                mark,
                "one ASCII character other than a quote or a line break, such as ';'",
            )
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.header is False:
            raise InputError(
                "header must be true, or the list of the column names if the file has no "
                "header line; got false. "
                'Write for example header = ["id", "age", "sex"]: the number of columns is not '
                "inferred from a row."
            )
        if self.header is not True:
            if (
                isinstance(self.header, str)
                or not isinstance(self.header, (list, tuple))
                or not self.header
            ):
                raise refuse("header", self.header, "true or a list of names")
            object.__setattr__(
                self,
                "header",
                tuple(attribute_name("a name in header", name) for name in self.header),
            )

    @property
    def characters(self) -> str | None:
        """The character of each byte, U+FFFE if it has none; None for UTF-8.

        None if the encoding is UTF-8.
        """
        if self.encoding == "utf-8":
            return None
        return _characters(self.encoding)

    def located(self) -> dict[str, object]:
        """Return the arguments for `CSV` as JSON values; the path is absolute."""
        full = str(Path(self.path).expanduser().absolute())
        header = self.header if isinstance(self.header, bool) else list(self.header)
        return {
            "path": full,
            "delimiter": self.delimiter,
            "encoding": self.encoding,
            "header": header,
        }


def _encoding(name: object) -> str:
    """Return the standard name of an encoding; raise if it is not supported.

    Raises:
        InputError: the encoding is not supported.
    """
    allowed = (
        "'utf-8', or an encoding with one character for every byte, such as 'latin-1', "
        "'iso8859-15' or 'cp1252'"
    )
    try:
        # The byte order mark of UTF-8 is skipped in any case.
        known = codecs.lookup(name).name.removesuffix("-sig") if isinstance(name, str) else ""
    except (LookupError, ValueError):
        known = ""
    if known != "utf-8" and not _characters(known):
        raise refuse("encoding", name, allowed, "Save the file as UTF-8, or as Parquet.")
    return known


@cache
def _characters(encoding: str) -> str:
    """Return the character of each byte in an encoding; U+FFFE if it has none.

    The result is empty for encodings that have several bytes for a character, or that differ from
    ASCII below 128.
    """
    try:
        alone = [bytes([byte]).decode(encoding, "replace") for byte in range(256)]
        # Lines and fields are split as bytes, before decoding.
        if "".join(alone[:128]) == bytes(range(128)).decode("ascii"):
            pairs = bytes(chain.from_iterable(product(range(256), repeat=2))).decode(
                encoding, "replace"
            )
            if pairs == "".join(chain.from_iterable(product(alone, repeat=2))):
                return "".join(alone).replace("\ufffd", "\ufffe")
    except (LookupError, ValueError):
        pass
    return ""


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A database table or view, and the environment variable with its URL.

    Args:
        table: the name in the form that the database stores, such as ``"visits"`` or
            ``"public.visits"``.
        connection: ``"env:NAME"``, where the environment variable NAME contains the URL of the
            database. The URL is ``postgresql://...``, or ``duckdb://`` and the path of a database
            file. No spec, plan, log or release contains the URL, because it may contain a password.

    Raises:
        InputError: the name of the table is not in this form, or the connection does not name an
            environment variable.

    >>> ln.DatabaseTable("public.visits", "env:VISITS_URL").parts
    ('public', 'visits')
    """

    table: str
    connection: str

    def __post_init__(self) -> None:
        if not isinstance(self.table, str) or not 1 <= len(self.parts) <= 2 or not all(self.parts):
            raise refuse("table", self.table, "a name such as 'visits' or 'public.visits'")
        if not isinstance(self.connection, str) or not _VARIABLE.fullmatch(self.connection):
            # The argument may be a URL with a password, so the message does not quote it.
            raise InputError(
                "connection must be 'env:' and the name of an environment variable that holds the "
                "URL, as in 'env:VISITS_URL'."
            )

    @property
    def parts(self) -> tuple[str, ...]:
        """The schema, if the name has one, and the table name."""
        return tuple(self.table.split("."))

    def url(self) -> str:
        """Return the database URL from the environment variable.

        Raises `InputError` if the environment does not have the variable.
        """
        name = self.connection.removeprefix("env:")
        address = os.environ.get(name)
        if not address:
            raise InputError(message(_NO_URL, name=name))
        return address


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Joined:
    """A table with columns of a second table, such as visits with patients.

    Each row of the first table gets the columns of its partner. A row's partner is the only row of
    the second table with the same key. If no row or several rows have this key, those columns are
    null, and the attributes' policies for nulls apply. Keys are compared by their string forms, as
    units are: 17.0 is equal to 17. A null is not a key.

    Args:
        data: the first table, whose rows are counted. Any source that `leastnoise.release` accepts
            is allowed. If it is a `Joined`, its rows get the columns of one more table, and the key
            may be any column of these rows.
        second: the other table; the same kinds of source are allowed, except `Joined`.
        on: the column that both tables have; or ``{"patient": "id"}`` if it is ``patient`` in the
            first table and ``id`` in the second.
        columns: the requested columns of the second table; None for all columns but its key.
        public: whether the content of the second table may be known to everyone. Otherwise the
            privacy unit must be the join column of the first table. In this case, a row of the
            second table belongs to the same unit as the rows with which it is joined.
        reading: which spellings of a key are nulls, and whether blanks and capital letters
            distinguish keys. If the second table is not public, this reading must equal the reading
            of the unit (``Privacy.unit_reading``).

    Attributes:
        first_key: the join column of the first table.
        second_key: the join column of the second table.

    Raises:
        InputError: an argument cannot be used.

    Guarantees: if the second table is not public, the rows of a unit in it are protected together
        with its rows in the first table. A change of a unit's rows in both tables changes no row of
        another unit, and at most ``max_rows`` rows of this unit. A public table is the same for all
        neighbours.

    >>> ln.Joined("visits.csv", "patients.csv", on="patient_id")
    Joined(on='patient_id', columns=None, public=False)
    """

    data: Any
    second: Any
    on: str | Mapping[str, str]
    columns: tuple[str, ...] | None = None
    public: bool = False
    reading: Reading = READ_AS_IT_IS
    first_key: str = field(init=False)
    second_key: str = field(init=False)

    def __post_init__(self) -> None:
        if isinstance(self.second, Joined):
            raise InputError(
                "The second table of Joined must be one table; got a Joined source. Join one table "
                "after the other to the first: Joined(Joined(visits, patients, ...), regions, ...)."
            )
        self._read_keys()
        self._read_columns()
        if isinstance(self.reading, Mapping):
            object.__setattr__(self, "reading", Reading(**self.reading))
        if type(self.reading) is not Reading or self.reading.column is not None:
            raise refuse("reading", self.reading, "a Reading without a column")
        self._check_public()

    def _read_keys(self) -> None:
        """Check ``on``, and set the keys of both tables."""
        pairs = [*self.on.items()] if isinstance(self.on, Mapping) else [(self.on, self.on)]
        if len(pairs) != 1:
            raise refuse(
                "on", self.on, "one column of each table, as in { visit_patient = 'patient_id' }"
            )
        for field_name, name in zip(("first_key", "second_key"), pairs[0], strict=True):
            key = attribute_name("the column that tables are joined on", name)
            object.__setattr__(self, field_name, key)

    def _read_columns(self) -> None:
        """Check the names of the joined columns, and store them as a tuple."""
        if self.columns is None:
            return
        is_list = isinstance(self.columns, (list, tuple))
        if not is_list or not self.columns:
            raise refuse("columns", self.columns, "a list of columns of the second table")
        names = [attribute_name("a column of the second table", name) for name in self.columns]
        object.__setattr__(self, "columns", tuple(names))

    def _check_public(self) -> None:
        """Check ``public``; a table must be public in all joins or in none."""
        if not isinstance(self.public, bool):
            raise refuse("public", self.public, "true or false")
        private = [table for table in private_tables(self.data) if table is not None]
        if self.public and any(_are_same_table(table, self.second) for table in private):
            raise InputError(
                "The second table is the data themselves, so it is not public. Leave public out."
            )
        public_tables = [join.second for join in list_joins(self.data) if join.public]
        if not self.public and any(_are_same_table(table, self.second) for table in public_tables):
            raise InputError(
                "The second table is public in an earlier join, but not in this join. Give both "
                "joins of this table the same `public`."
            )

    def __repr__(self) -> str:
        # The repr of a frame would show rows.
        return f"Joined(on={self.on!r}, columns={self.columns!r}, public={self.public!r})"

    def terms(self) -> dict[str, Any]:
        """Return the arguments except the two tables, as JSON values."""
        if self.columns is None:
            columns = None
        else:
            columns = list(self.columns)
        if self.reading == READ_AS_IT_IS:
            reading = {}
        else:
            reading = {"reading": self.reading.to_json()}
        return {
            "on": {self.first_key: self.second_key},
            "columns": columns,
            "public": self.public,
            **reading,
        }


def list_joins(source: Any) -> tuple[Joined, ...]:
    """Return the joins that a source consists of, in the order of joining.

    >>> visits = Joined("visits.csv", "patients.csv", on="patient_id")
    >>> [
    ...     join.second_key
    ...     for join in list_joins(Joined(visits, "regions.csv", on={"home": "id"}, public=True))
    ... ]
    ['patient_id', 'id']
    >>> list_joins("visits.csv")
    ()
    """
    joins = []
    while isinstance(source, Joined):
        joins.append(source)
        source = source.data
    return tuple(reversed(joins))


def private_tables(source: Any) -> tuple[Any, ...]:
    """Return the tables of a source that are not public, in order.

    >>> visits = Joined("visits.csv", "patients.csv", on="patient_id")
    >>> private_tables(Joined(visits, "regions.csv", on="home", public=True))
    ('visits.csv', 'patients.csv')
    """
    joins = list_joins(source)
    first = source
    if joins:
        first = joins[0].data
    return (first, *(join.second for join in joins if join.public is not True))


def source_from_location(record: Any, present_location: Any = None) -> Any:
    """Recreate the source that `source_location` described.

    Args:
        record: the JSON values that `source_location` returned.
        present_location: the present location of the data, if it has moved. If this is a path, the
            data there have the same layout and the same joined tables.

    >>> (
    ...     source_from_location("/data/people.csv"),
    ...     source_from_location(source_location(ln.CSV("/data/people.csv", ";"))).delimiter,
    ... )
    ('/data/people.csv', ';')
    """
    if isinstance(record, dict) and "joined" in record and not isinstance(present_location, Joined):
        first, second = record["joined"]
        terms = {key: value for key, value in record.items() if key != "joined"}
        return Joined(
            source_from_location(first, present_location), source_from_location(second), **terms
        )
    if isinstance(record, dict) and (
        present_location is None or isinstance(present_location, (str, Path))
    ):
        return CSV(**{**record, "path": present_location or record["path"]})
    return record if present_location is None else present_location


def _are_same_table(first: Any, second: Any) -> bool:
    """Return whether two tables are the same file, object or database table.

    Paths are compared after resolving them.
    """
    paths = [table.path if isinstance(table, CSV) else table for table in (first, second)]
    if all(isinstance(path, (str, Path)) for path in paths):
        first, second = (Path(path).expanduser().resolve() for path in paths)
    return first is second or (
        type(first) is type(second) and isinstance(first, (Path, DatabaseTable)) and first == second
    )


def file_endings(kinds: "Sequence[FileKind]") -> str:
    """Return the supported file endings, as a list in a sentence."""
    names = list(chain.from_iterable(kind.endings for kind in kinds))
    return f"{', '.join(names[:-1])} or {names[-1]}"


def find_files(
    path: str | os.PathLike[str], file_kinds: "Sequence[FileKind]"
) -> "list[tuple[Path, FileKind]]":
    """Return the files of a path or pattern with their kinds, sorted by name.

    The path names one file, a folder with all files below it, or a pattern with ``*``, ``?``,
    ``[...]`` and ``**``.

    In a folder and with ``**``, files and folders whose names begin with a point or an underscore
    are left out. Database engines give such names to files that are not data.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(
            f"the source must be a path to {file_endings(file_kinds)} files; got an object of type "
            f"{type(path).__name__!r}."
        )
    root = Path(os.fsdecode(path))
    if root.is_dir():
        matched = [
            file
            for file in sorted(root.rglob("*"))
            if file.is_file() and not _is_hidden_path(file.relative_to(root))
        ]
        description = message("The folder {path!r}", path=str(root))
    elif glob.has_magic(str(root)) and not root.is_file():
        # The pattern may be absolute.
        matches = (Path(name) for name in sorted(glob.glob(str(root), recursive=True)))  # noqa: PTH207
        matched = [
            file
            for file in matches
            if file.is_file() and not ("**" in root.parts and _is_hidden_path(file))
        ]
        description = message("The pattern {path!r}", path=str(root))
    else:
        return [(root, _kind_of_file(root, file_kinds))]
    if not matched:
        raise InputError(
            message("the source must be files that exist. {what} has no files.", what=description)
        )
    endings = tuple(chain.from_iterable(kind.endings for kind in file_kinds))
    for file in matched:
        if not file.name.lower().endswith(endings):
            listed = file_endings(file_kinds)
            raise InputError(
                message(_FOREIGN_FILE, endings=listed, what=description, path=str(file))
            )
    pairs = [(file, _kind_of_file(file, file_kinds)) for file in matched]
    names = [kind.name for kind in file_kinds if any(kind is other for _, other in pairs)]
    if len(names) > 1:
        both = " and ".join(names)
        raise InputError(
            f"the files of a source must be of one kind. {description} has both {both} files: name "
            "one kind, as in '*.csv'."
        )
    return pairs


def check_files_without_names(
    path: str | os.PathLike[str], files: Sequence[Path], layout: CSV | None
) -> None:
    """Raise if files without a header line have different endings.

    If files have header lines, the column names show that a file of notes, for example, does not
    belong to the data. For a gzip file, the ending is the one before ``.gz``.

    Args:
        path: the path or pattern that denotes these files.
        files: the files, in order.
        layout: the stated format of CSV files; None if none is stated.

    >>> check_files_without_names(
    ...     "data", [Path("a.csv"), Path("b.csv.gz")], CSV("data", header=["n"])
    ... )
    """
    if layout is None or layout.header is True:
        return
    first = files[0]
    for file in files:
        if _ending(file) != _ending(first):
            named = message(
                _OTHER_ENDING, path=os.fsdecode(path), first=first.name, second=file.name
            )
            raise InputError(named)


def _ending(file: Path) -> str:
    """Return a file name's ending in lower case, without ``.gz``."""
    return Path(file.name.lower().removesuffix(".gz")).suffix


def _is_hidden_path(file: Path) -> bool:
    """Return whether a part of the path begins with a dot or an underscore."""
    return any(part.startswith((".", "_")) and part not in {".", ".."} for part in file.parts)


def _kind_of_file(file: Path, kinds: "Sequence[FileKind]") -> "FileKind":
    """Return the `FileKind` with a file's ending; raise if there is none."""
    kind = next((known for known in kinds if file.name.lower().endswith(known.endings)), None)
    if kind is None:
        raise InputError(message(_OTHER_KIND, endings=file_endings(kinds), path=str(file)))
    if not file.is_file():
        if file.parent.is_dir():
            near = did_you_mean(file.name, [entry.name for entry in file.parent.iterdir()])
        else:
            near = ""
        raise InputError(
            message(_NO_FILE + (" {advice}" if near else ""), path=str(file), advice=near)
        )
    return kind


_NAMES_MAY_FOLLOW = (
    "If there are lines before the names, remove these lines, or give the names yourself: "
    "header = [...] under [source]."
)


def missing_column_message(
    description: str, names: Sequence[str], name: str, *, in_header: bool = False
) -> str:
    """Return the error message for a column that is missing or occurs twice.

    Args:
        description: the name of the source in messages.
        names: the columns of the source.
        name: the column that is needed.
        in_header: whether the names were read from the first line of a text file.
    """
    if (times := names.count(name)) > 1:
        return (
            f"{description} must have one column {name!r}; it has {times} of that name. "
            "Rename the others."
        )
    if not names:
        return (
            f"{description} has no column {name!r}, and none whose name is a text. Give the "
            "columns names, each its own text."
        )
    listing = ", ".join(repr(known) for known in names[:20]) + (", ..." if len(names) > 20 else "")
    near = did_you_mean(name, names)
    if len(names) == 1 and name in names[0]:
        mark = max(",;|\t", key=names[0].count).replace("\t", "\\t")
        near = (
            "Is another character between its fields? Say which, "
            f'for example [source] delimiter = "{mark}".'
        )
    elif in_header and (len(names) == 1 or "" in names):
        near = _NAMES_MAY_FOLLOW
    return f"{description} has no column {name!r}; it has {listing}." + (f" {near}" if near else "")
