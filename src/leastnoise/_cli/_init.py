"""``leastnoise init`` drafts a spec file, and ``leastnoise check`` shows the data holder alone how rows fit it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from leastnoise._cli._draft import draft_from_columns, draft_from_description, path_from_spec
from leastnoise._cli._output import FILE, display_path, options, write_new
from leastnoise._descriptions import read_description
from leastnoise._frames import escape_controls
from leastnoise._holder import check as checked
from leastnoise._progress import Progress
from leastnoise._session import CSV, estimate_reading_seconds, schema
from leastnoise._spec import BLANK, read_spec, source_columns
from leastnoise._trusted.check import InputError


@click.command()
@click.argument("file", type=FILE, required=False)
@options(
    ("--from", FILE, "A description by another tool; then no data is read."),
    ("--out", FILE, "The spec file to write.  [default: FILE with the ending .toml]"),
    (
        "--delimiter",
        str,
        "The mark between the fields of a CSV file.  [default: guessed from its header]",
    ),
    ("--encoding", str, "The encoding of a CSV file, such as latin-1.  [default: utf-8]"),
    (
        "--header",
        str,
        "The names of the columns, with commas between them, where a CSV file has no line of names.",
    ),
)
def init(
    file: Path | None,
    out: Path | None,
    delimiter: str | None,
    encoding: str | None,
    header: str | None,
    **described_in: Path | None,
) -> None:
    """Draft a spec file from column names and types.

    No value of the data is written into it: what a column may hold is for you to say, from public
    knowledge. With --from it is what a description says: CSVW-EO, SmartNoise metadata, domain.json
    of mbi, or a domain that OpenDP serialized; FILE need not exist then.
    """
    description = described_in["from"]
    layout: dict[str, Any] = {
        key: mark
        for key, mark in (("delimiter", delimiter), ("encoding", encoding))
        if mark is not None
    }
    if header is not None:
        layout["header"] = [name.strip() for name in header.split(",")]
    if description is not None:
        if layout:
            raise InputError(
                "--from reads no data; --delimiter, --encoding and --header are for a CSV file. "
                "Leave them out, or write them to the spec."
            )
        spec = out or (file or description).with_suffix(".toml")
        draft = draft_from_description(read_description(description), description, spec, file)
    elif file is None:
        raise InputError(
            "Say which data the spec is for, as in `leastnoise init people.csv`, or give a "
            "description with --from."
        )
    else:
        spec = out or file.with_name(file.name.split(".")[0] + ".toml")
        draft = _draft_from_file(file, spec, layout)
    write_new(spec, draft, "Edit that file, or choose another with --out.")
    blanks = f"Replace every {BLANK!r} in it, then run" if draft.count(f'"{BLANK}"') > 1 else "Run"
    click.echo(
        f"The draft is in {display_path(spec)}. {blanks}: leastnoise plan {display_path(spec)}"
    )


def _draft_from_file(file: Path, spec: Path, layout: Mapping[str, Any]) -> str:
    """Return the text of a spec from names and types of the columns of files."""
    columns = source_columns(schema(CSV(file, **layout) if layout else file))
    source = {"path": path_from_spec(file, spec), **layout}
    return draft_from_columns(columns, source, file.name, spec)


@click.command()
@click.argument("spec", type=FILE)
@click.option("--source", type=FILE, help="The data, if the spec file does not name it.")
@click.option(
    "--values",
    is_flag=True,
    help="Also show the most frequent values that match nothing: values of rows.",
)
def check(spec: Path, source: Path | None, values: bool) -> None:  # noqa: FBT001 - a flag of the command line
    """Show how rows fit the spec: exact, for the data holder alone.

    PRIVATE: every number it prints is one of the data. It spends nothing, because nothing of it may
        be published, and it writes no file.
    """
    what = read_spec(spec)
    path = source or what.source
    data = None if path is None else what.data(path)
    with Progress(
        f"reading {what.data_name if source is None else source.name}",
        about=estimate_reading_seconds(data),
    ):
        counts = checked(what, data, values=10 if values else 0)
    for line in counts.lines():
        click.echo(escape_controls(line))
