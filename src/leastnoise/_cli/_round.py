"""``leastnoise round``: a finished release rounded, small answers left out, as publication rules ask; reads no data and costs nothing."""

from pathlib import Path

import click

from leastnoise._cli._opened import opened
from leastnoise._cli._output import shown
from leastnoise._progress import Progress

_SECONDS_A_TABLE = 0.01  # of one core of 2026


@click.command("round")
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--to", required=True, metavar="STEP", help="Answers become multiples of this, such as 5; sums in their own unit.")
@click.option("--below", metavar="LEAST", help="Answers below this are left out.  [default: none]")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The directory to write; it must not exist yet.")
def rounding(release: Path, to: str, below: str | None, out: Path) -> None:
    """Round a finished release, and leave out small answers.

    RELEASE is the directory that `leastnoise release` wrote. Every table is written as CSV, with margins that hold what rounding and
    leaving out add. It protects nobody further, and costs nothing.
    """
    from leastnoise._release import check_target, draft, write_rounded

    target = check_target(out)
    found = opened(release)
    with draft(target) as place, Progress("rounding", about=_SECONDS_A_TABLE * len(found.tables)):
        write_rounded(found, place.path, to, below)
        place.publish()
    click.echo(f"{len(found.tables)} rounded tables are in {shown(out)}; README.md there says what rounding does to their error bars.")
