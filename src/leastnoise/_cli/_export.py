"""``leastnoise export``: a finished release in a form for other people or programs; reads no data and costs nothing."""

from pathlib import Path

import click

from leastnoise._cli._output import check_new, shown, write_new

_ADVICE = "Choose another file with --out."


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--as", "form", required=True, metavar="FORM", help="review, registry, mbi, quarto or notebook.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file to write; it must not exist yet.")
def export(release: Path, form: str, out: Path) -> None:
    """Write a finished release in another form.

    RELEASE is the directory that `leastnoise release` wrote. Forms: review (for reviewers, after NIST SP 800-226; what only people can
    answer is marked), registry (YAML for the registry of deployments), mbi (measurements for private-pgm), quarto, notebook.
    """
    from leastnoise._session import FILL_IN
    from leastnoise._session import export as exported

    check_new(out, _ADVICE)
    text = exported(release, form)
    write_new(out, text, _ADVICE)
    left = text.count(FILL_IN)
    click.echo(f"{shown(out)} is written." + (f" Replace every {FILL_IN!r} in it." if left else ""))
