"""The commands ``leastnoise init`` and ``leastnoise check``.

``init`` drafts a spec; ``check`` shows the data holder how the rows fit the spec.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from leastnoise._cli._draft_text import draft_from_columns, draft_from_description
from leastnoise._cli._output import (
    FILE,
    add_options,
    display_path,
    print_table,
    spec_argument,
    write_new_file,
)
from leastnoise._descriptions import read_description
from leastnoise._frames import escape_controls
from leastnoise._holder import check as check_rows
from leastnoise._progress import Progress
from leastnoise._session import (
    CSV,
    ColumnCheck,
    DatabaseTable,
    estimate_reading_seconds,
    read_spec,
    schema,
)
from leastnoise._spec import BLANK, path_for_spec, source_columns
from leastnoise._trusted.check import InputError

_URL_VARIABLE = "DATABASE_URL"


@click.command()
@click.argument("file_or_url", metavar="[FILE|URL]", required=False)
@add_options(
    (
        "--from description_path",
        FILE,
        "Draft from this description by another tool, not from data.",
    ),
    ("--out", FILE, "The spec file to write.  [default: FILE with the ending .toml]"),
    (
        "--delimiter",
        str,
        "The character between the fields of a CSV file.  [default: guessed from its header]",
    ),
    ("--encoding", str, "The encoding of a CSV file, such as latin-1.  [default: utf-8]"),
    (
        "--header",
        str,
        "The names of the columns, separated by commas, if a CSV file has no header line.",
    ),
    ("--table", str, "The table of a database, such as public.visits; FILE is its URL then."),
    (
        "--connection",
        str,
        f"The variable that has the URL, for the spec.  [default: env:{_URL_VARIABLE}]",
    ),
)
def init(
    file_or_url: str | None,
    out: Path | None,
    delimiter: str | None,
    encoding: str | None,
    header: str | None,
    description_path: Path | None,
    table: str | None,
    connection: str | None,
) -> None:
    """Draft a spec file from column names and types.

    The draft contains no value of the data: you state the values of each column from public
    knowledge. With --from, the draft follows a description: CSVW-EO, SmartNoise metadata,
    domain.json of mbi, or a domain that OpenDP serialized. FILE need not exist then.

    For a table of a database, give its URL and --table; or --table and --connection, if the
    environment variable has the URL already. The spec never contains the URL.
    """
    is_url = file_or_url is not None and "://" in file_or_url
    if file_or_url is None or is_url:
        data_path = None
    else:
        data_path = Path(file_or_url)
    layout: dict[str, Any] = {
        key: value
        for key, value in (("delimiter", delimiter), ("encoding", encoding))
        if value is not None
    }
    if header is not None:
        layout["header"] = [name.strip() for name in header.split(",")]
    is_in_database = is_url or table is not None or connection is not None
    if description_path is not None:
        draft = _draft_from_description(description_path, data_path, out, layout)
    elif is_in_database and (layout or data_path is not None):
        raise InputError(
            "A data file, --delimiter, --encoding and --header cannot be combined with a table "
            "of a database. Leave them out, or leave out --table and --connection."
        )
    elif is_in_database:
        draft = _draft_from_table(file_or_url, table, connection, out)
    elif data_path is not None:
        draft = _draft_from_file(data_path, out, layout)
    else:
        raise InputError(
            "init needs a data file, as in `leastnoise init people.csv`, a table of a database, as "
            "in `leastnoise init postgresql://user@host/name --table public.visits`, or a "
            "description: --from FILE."
        )
    write_new_file(draft.path, draft.text, "Edit that file, or choose another with --out.")
    if draft.text.count(f'"{BLANK}"') > 1:
        blanks = f"Replace every {BLANK!r} in it, then run"
    else:
        blanks = "Run"
    shown_path = display_path(draft.path)
    click.echo(
        f"The draft is in {shown_path}.{draft.advice} {blanks}: leastnoise plan {shown_path}"
    )


class _Draft(NamedTuple):
    """The text of a drafted spec, its path, and advice on the next steps."""

    text: str
    path: Path
    advice: str = ""


def _draft_from_description(
    description_path: Path, data_path: Path | None, out: Path | None, layout: Mapping[str, Any]
) -> _Draft:
    """Draft a spec from another tool's description."""
    if layout:
        raise InputError(
            "--from reads no data; --delimiter, --encoding and --header are for a CSV file. "
            "Leave them out, or write them to the spec."
        )
    spec_path = out or (data_path or description_path).with_suffix(".toml")
    description = read_description(description_path)
    text = draft_from_description(description, description_path, spec_path, data_path)
    return _Draft(text, spec_path)


def _draft_from_table(
    url: str | None, table: str | None, connection: str | None, out: Path | None
) -> _Draft:
    """Draft a spec from the column names and types of a database table."""
    database_table = _find_table(url, table, connection)
    spec_path = out or Path(f"{database_table.parts[-1]}.toml")
    columns = source_columns(schema(database_table))
    source = {"table": database_table.table, "connection": database_table.connection}
    text = draft_from_columns(columns, source, database_table.table, spec_path)
    advice = ""
    if url is not None:
        variable = database_table.connection.removeprefix("env:")
        advice = f" Set the environment variable {variable} to that URL."
    return _Draft(text, spec_path, advice)


def _find_table(url: str | None, table: str | None, connection: str | None) -> DatabaseTable:
    """Return the database table that the arguments of ``init`` name.

    A URL is stored in the environment of this process, from which the reader takes it.
    """
    if table is None:
        raise InputError(
            "A draft from a database must name the table: add for example --table public.visits."
        )
    if url is None and connection is None:
        raise InputError(
            "--table names a table of a database. Give the URL of the database, as in `leastnoise "
            "init postgresql://user@host/name --table public.visits`, or --connection env:NAME."
        )
    database_table = DatabaseTable(table, connection or f"env:{_URL_VARIABLE}")
    if url is not None:
        os.environ[database_table.connection.removeprefix("env:")] = url
    return database_table


def _draft_from_file(path: Path, out: Path | None, layout: Mapping[str, Any]) -> _Draft:
    """Draft a spec from the column names and types of a file."""
    spec_path = out or path.with_name(path.name.split(".")[0] + ".toml")
    columns = source_columns(schema(CSV(path, **layout) if layout else path))
    source = {"path": path_for_spec(path, spec_path), **layout}
    return _Draft(draft_from_columns(columns, source, path.name, spec_path), spec_path)


def _print_schema_check(checks: Sequence[ColumnCheck]) -> None:
    """Print how the columns fit the spec; raise InputError if some do not."""
    rows = []
    for check in checks:
        result = "fits"
        if check.fault:
            result = "does not fit"
        rows.append([check.column, check.use, check.type or "missing", result])
    headings = [("column", "fold"), ("used for", "fold"), ("type", "left"), ("", "left")]
    print_table("", headings, rows)
    faults = dict.fromkeys(check.fault for check in checks if check.fault)
    if faults:
        raise InputError(" ".join(faults))
    click.echo("Every column that the spec needs is in the source, with a type that fits.")


@click.command()
@spec_argument
@click.option("--source", type=FILE, help="The data, if the spec file does not name it.")
@click.option(
    "--values",
    is_flag=True,
    help="Also show the most frequent values that match no cell: values of rows.",
)
@click.option(
    "--schema",
    "only_schema",
    is_flag=True,
    help="Only compare the names and types of columns; read no row. The output is not private.",
)
# Click passes flags by name.
def check_command(path: Path, source: Path | None, values: bool, only_schema: bool) -> None:  # noqa: FBT001
    """Show exact facts on how rows fit the spec, only for the data holder.

    PRIVATE: every number it prints comes from the data. You must not publish its output, so it
    spends no budget. It writes no file. With --schema it reads no row, and only compares the names
    and types of columns.
    """
    spec = read_spec(path)
    if only_schema:
        if values:
            raise InputError("--schema reads no row, so it has no --values. Leave out one of them.")
        _print_schema_check(spec.check_schema(source))
        return
    data = None
    data_path = source or spec.source
    if data_path is not None:
        data = spec.data(data_path)
    name = spec.data_name
    if source is not None:
        name = source.name
    most_values = 0
    if values:
        most_values = 10
    with Progress(f"reading {name}", about=estimate_reading_seconds(data)):
        counts = check_rows(spec, data, values=most_values)
    for line in counts.lines():
        click.echo(escape_controls(line))
