"""``leastnoise experiments``: a paper's figures and tables, where the source checkout is present."""

import importlib
import inspect
import sys
from pathlib import Path

import click

from leastnoise._check import InputError, one_of
from leastnoise._cli._output import shown

_ROOT = Path(__file__).resolve().parents[3]


def available(root: Path) -> dict[str, str]:
    """The experiments of a checkout: what one types, and the module."""
    files = sorted((root / "experiments").glob("*.py"))
    return {file.stem.replace("_", "-"): file.stem for file in files if "\ndef run(" in file.read_text(encoding="utf-8")}


@click.command()
@click.argument("name", required=False)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder with the real data sets.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for tables and figures; default build/NAME.")
@click.option("--quick", is_flag=True, help="A small version, in about half a minute.")
def experiments(name: str | None, data: Path | None, out: Path | None, quick: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """A paper's figures and tables from our own runs; without NAME, which there are.

    Works in a source checkout; the installed package has no experiments. Noise comes from a seed, so nothing here is private.
    """
    known = available(_ROOT)
    if not known:
        raise InputError("Experiments come with the source checkout, and the installed package has none. Run this command in a checkout.")
    if name is None:
        click.echo("\n".join(known))
        return
    one_of("NAME", name, known)
    if data is not None and not data.is_dir():
        raise InputError(f"--data must be a folder that exists; got {shown(data)}.")
    if str(_ROOT) not in sys.path:
        sys.path.insert(0, str(_ROOT))
    # By name, so that the library depends on nothing outside itself.
    run = importlib.import_module(f"experiments.{known[name]}").run
    if data is None and inspect.signature(run).parameters["data"].annotation is Path:
        raise InputError(f"The experiment {name} needs real data; got no folder. Say where it is: --data DIR.")
    run(data, out or Path("build") / name, quick=quick, report=click.echo)
