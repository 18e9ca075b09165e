"""The commands ``leastnoise init`` and ``leastnoise check``.

``init`` drafts a spec; ``check`` shows the data holder how the rows fit the spec.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from leastnoise._cli._draft import draft_from_columns, draft_from_description, path_for_spec
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
from leastnoise._session import CSV, ColumnCheck, estimate_reading_seconds, read_spec, schema
from leastnoise._spec import BLANK, source_columns
from leastnoise._trusted.check import InputError


@click.command()
@click.argument("data_path", metavar="[FILE]", type=FILE, required=False)
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
)
def init(
    data_path: Path | None,
    out: Path | None,
    delimiter: str | None,
    encoding: str | None,
    header: str | None,
    description_path: Path | None,
) -> None:
    """Draft a spec file from column names and types.

    The draft holds no value of the data: you state the values of each column from public knowledge.
    With --from, the draft follows a description: CSVW-EO, SmartNoise metadata, domain.json of mbi,
    or a domain that OpenDP serialized. FILE need not exist then.
    """
    layout: dict[str, Any] = {
        key: value
        for key, value in (("delimiter", delimiter), ("encoding", encoding))
        if value is not None
    }
    if header is not None:
        layout["header"] = [name.strip() for name in header.split(",")]
    if description_path is not None:
        if layout:
            raise InputError(
                "--from reads no data; --delimiter, --encoding and --header are for a CSV file. "
                "Leave them out, or write them to the spec."
            )
        spec_path = out or (data_path or description_path).with_suffix(".toml")
        description = read_description(description_path)
        draft = draft_from_description(description, description_path, spec_path, data_path)
    elif data_path is None:
        raise InputError(
            "init needs a data file, as in `leastnoise init people.csv`, or a description: --from "
            "FILE."
        )
    else:
        spec_path = out or data_path.with_name(data_path.name.split(".")[0] + ".toml")
        draft = _draft_from_file(data_path, spec_path, layout)
    write_new_file(spec_path, draft, "Edit that file, or choose another with --out.")
    if draft.count(f'"{BLANK}"') > 1:
        blanks = f"Replace every {BLANK!r} in it, then run"
    else:
        blanks = "Run"
    click.echo(
        f"The draft is in {display_path(spec_path)}. {blanks}: leastnoise plan {display_path(spec_path)}"
    )


def _draft_from_file(path: Path, spec_path: Path, layout: Mapping[str, Any]) -> str:
    """Return the text of a spec from the names and types of columns of a file."""
    columns = source_columns(schema(CSV(path, **layout) if layout else path))
    source = {"path": path_for_spec(path, spec_path), **layout}
    return draft_from_columns(columns, source, path.name, spec_path)


def _print_schema_check(checks: Sequence[ColumnCheck]) -> None:
    """Print how the columns fit the spec; raise an error if some do not."""
    rows = [
        [check.column, check.use, check.type or "missing", "does not fit" if check.fault else "fits"]
        for check in checks
    ]
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
def check(path: Path, source: Path | None, values: bool, only_schema: bool) -> None:  # noqa: FBT001 - flags of the command line
    """Show the data holder, exactly, how rows fit the spec.

    PRIVATE: every number it prints comes from the data. You must not publish its output, so it
    spends nothing. It writes no file. With --schema it reads no row, and only compares the names
    and types of columns.
    """
    spec = read_spec(path)
    if only_schema:
        if values:
            raise InputError("--schema reads no row, so it has no --values. Leave out one of them.")
        _print_schema_check(spec.check_schema(source))
        return
    data_path = source or spec.source
    data = None if data_path is None else spec.data(data_path)
    with Progress(
        f"reading {spec.data_name if source is None else source.name}",
        about=estimate_reading_seconds(data),
    ):
        counts = check_rows(spec, data, values=10 if values else 0)
    for line in counts.lines():
        click.echo(escape_controls(line))
