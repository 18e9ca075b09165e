"""``leastnoise check``: how rows fit the spec, for the data holder alone."""

from pathlib import Path

import click

from leastnoise._cli._output import FILE
from leastnoise._frames import visible
from leastnoise._holder import check as checked
from leastnoise._progress import Progress
from leastnoise._session import reading_seconds
from leastnoise._spec import read_spec


@click.command()
@click.argument("spec", type=FILE)
@click.option("--source", type=FILE, help="The data, if the spec file does not name it.")
@click.option("--values", is_flag=True, help="Also show the most frequent values that match nothing: values of rows.")
def check(spec: Path, source: Path | None, values: bool) -> None:  # noqa: FBT001 - a flag of the command line
    """Show how rows fit the spec: exact, for the data holder alone.

    PRIVATE: every number it prints is one of the data. It spends nothing, because nothing of it may be published, and it writes no file.
    """
    what = read_spec(spec)
    path = source or what.source
    data = None if path is None else what.data(path)
    with Progress(f"reading {what.data_name if source is None else source.name}", about=reading_seconds(data)):
        counts = checked(what, data, values=10 if values else 0)
    for line in counts.lines():
        click.echo(visible(line))
