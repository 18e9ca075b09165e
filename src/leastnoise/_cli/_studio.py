"""The command ``studio``, which opens a page in the browser."""

from pathlib import Path

import click

from leastnoise._cli._output import FILE
from leastnoise._trusted.check import InputError


@click.command()
@click.argument("path", metavar="[FILE|SPEC|RELEASE]", type=FILE, required=False)
def studio(path: Path | None) -> None:
    """Draft a spec, plan, or explore a release in the browser.

    With a data file or without an argument, the page has forms to draft a spec from the names and
    types of columns.
    With a spec, the page shows how budget, targets, weights and tables change every margin. With
    the directory of a release, the page shows tables of any attributes and their charts. It also
    shows the exact error of any sum of their cells.

    Prints the address of a page on this computer, which one browser can open once. Ctrl-C ends it,
    or closing the terminal. The studio never reads a value of the data.
    """
    try:
        from leastnoise._studio import Studio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"starlette", "tomlkit", "uvicorn"}:
            raise
        raise InputError(
            "The studio needs further packages. Install them: pip install 'leastnoise[studio]'."
        ) from None
    server = Studio(path)
    click.echo(f"The studio is at {server.address}\nOne browser can open it, once. Ctrl-C ends it.")
    server.run()
