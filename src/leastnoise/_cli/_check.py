"""``leastnoise check``: how rows fit the spec, for the data's holder alone."""

from pathlib import Path

import click


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--source", type=click.Path(path_type=Path), help="The data, if the spec file does not name it.")
@click.option("--values", is_flag=True, help="Also show the most frequent values that match nothing: values of rows.")
def check(spec: Path, source: Path | None, values: bool) -> None:  # noqa: FBT001 - a flag of the command line
    """See how rows fit the domain, exactly: for the data's holder alone.

    PRIVATE: every number it prints is one of the data. It spends nothing, because nothing of it may be published, and it writes no file.
    """
    from leastnoise._session import read_spec
    from leastnoise._session._fit import check as checked

    what = read_spec(spec)
    for line in checked(what, None if source is None else what.data(source), values=10 if values else 0).lines():
        click.echo(line)
