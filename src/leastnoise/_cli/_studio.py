"""``leastnoise studio``: plan in the browser, without data, or explore a finished release."""

from pathlib import Path

import click

from leastnoise._check import InputError


@click.command()
@click.argument("place", metavar="SPEC|RELEASE", type=click.Path(path_type=Path))
def studio(place: Path) -> None:
    """Plan in the browser, without data; or explore a finished release.

    With a spec: budget, targets, weights and tables, and what becomes of every margin. With the directory that `leastnoise release` wrote:
    tables of any attributes, their charts, and the exact error of any sum of their cells.

    Prints the address of a page on this computer, which one browser can open once; ends with the terminal or with Ctrl-C. Never reads
    the data.
    """
    try:
        from leastnoise._studio import opened
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"starlette", "tomlkit", "uvicorn"}:
            raise
        raise InputError("The studio needs some more packages: pip install 'leastnoise[studio]'.") from None
    found = opened(place)
    click.echo(f"The studio is at {found.address}\nOne browser can open it, once. Ctrl-C ends it.")
    found.run()
