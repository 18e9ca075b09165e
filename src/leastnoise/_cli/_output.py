"""What commands share: options, reading the spec, writing numbers for people, tables and JSON on standard output, and new files."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from leastnoise._environment import CACHE
from leastnoise._error import memory_limit
from leastnoise._frames import escape_controls
from leastnoise._plan import Plan
from leastnoise._progress import Progress
from leastnoise._release import FoundCategories
from leastnoise._session import estimate_planning_seconds, plan_spec
from leastnoise._spec import Spec, read_spec
from leastnoise._trusted.accounting import Budget, Charge, parameters, whole_budget
from leastnoise._trusted.check import InputError, readable

_WIDE = 160  # columns where there is no terminal
FILE = click.Path(path_type=Path)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of tables."
)


def options(*rows: tuple[str, Any, str]) -> Callable[[Any], Any]:
    """Return a decorator that gives a command several options, each with a name, a type and a help text."""

    def decorated(command: Any) -> Any:
        for name, kind, text in reversed(rows):
            command = click.option(name, type=kind, help=text)(command)
        return command

    return decorated


# For commands that plan; the same as LEASTNOISE_CACHE=off in the environment.
without_cache = click.option(
    "--no-cache",
    is_flag=True,
    expose_value=False,
    callback=lambda _, __, wanted: os.environ.update({CACHE: "off"} if wanted else {}),
    help="Plan anew, and keep no plan in the cache folder.",
)
of_spec = click.option(
    "--spec",
    "beside",
    type=FILE,
    expose_value=False,
    callback=lambda context, _, path: context.meta.update(spec=path),
    help="The spec, where SPEC is a file of SQL statements (.sql), which are asked in place of "
    "its [[workload]].",
)


def read_command_spec(path: Path, categories: Mapping[str, FoundCategories] | None = None) -> Spec:
    """Read the spec of a command; where its argument is a file of SQL, read the spec that --spec names, which asks these statements."""
    beside = click.get_current_context().meta.get("spec")
    if (path.suffix == ".sql") != (beside is not None):
        raise InputError(
            f"{path} has SQL statements: say --spec people.toml too, for the domain and the budget."
            if beside is None
            else f"--spec is for a file of SQL statements whose name ends in .sql; got {path}."
        )
    return (
        read_spec(path, categories or {})
        if beside is None
        else read_spec(beside, categories or {}, path)
    )


def plan_with_progress(spec: Spec) -> tuple[Plan, float]:
    """Plan what a spec asks for, with a line of progress; return the plan and the seconds that it took."""
    with memory_limit(), Progress("planning", about=estimate_planning_seconds(spec)) as progress:
        return plan_spec(spec, progress.trying), progress.seconds


def number(value: float) -> str:
    """Write a number for people, with four significant digits."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:#.4g}"


def noise(mechanism: str) -> str:
    """Write the name of a kind of noise for people: "discrete Laplace"."""
    kind, name = mechanism.split("_")
    return f"{kind} {name.capitalize()}"


def amount(value: Fraction, *, up: bool) -> str:
    """Write an epsilon, delta or rho for people: exactly where that is short, else with six digits, rounded up or down."""
    text = readable(value)
    if not text.startswith("about"):
        return text
    scale = max(6, 5 - floor(log10(value)) if up else 0)
    digits = value * 10**scale
    return readable(Fraction(ceil(digits) if up else floor(digits), 10**scale))


def amounts(budget: Budget, charge: Charge | None = None, *, up: bool) -> str:
    """Write a charge (without one, the whole budget) for people, with the parameters of the budget's definition."""
    charge = charge or whole_budget(budget)
    return " and ".join(
        f"{name} = {amount(getattr(charge, name), up=up)}" for name in parameters(budget)
    )


def show_table(
    title: str,
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[str | tuple[str, ...]]],
    bold: int | None = None,
) -> None:
    """Print a table and an empty line.

    Args:
        title: a line above it, or an empty text.
        columns: of each its heading, and "left", "right" or "fold" (left, and broken into lines
            where the screen is narrow).
        rows: their cells; a cell of several lines is a tuple of them.
        bold: the number of a row in bold letters.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")

    def text(lines: str | tuple[str, ...]) -> Text:
        return Text("\n".join(map(escape_controls, (lines,) if isinstance(lines, str) else lines)))

    for (
        heading,
        side,
        # a heading has ends of lines only where we wrote them: names of tables and attributes have none
    ) in columns:
        justify: Any = "right" if side == "right" else "left"
        table.add_column(
            text(tuple(heading.split("\n"))),
            justify=justify,
            no_wrap=side != "fold",
            overflow="fold",
        )
    for number_of_row, row in enumerate(rows):
        table.add_row(*map(text, row), style="bold" if number_of_row == bold else None)
    if title:
        _print(Text(escape_controls(title), style="bold"))
    _print(table)
    click.echo()


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print a line for each name and its value."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(Text(escape_controls(name)), Text(escape_controls(value)))
    _print(table)


def _print(what: RenderableType) -> None:
    """Print with colours on a terminal unless NO_COLOR is set; elsewhere without them and without spaces at the ends of lines."""
    screen = Console(highlight=False, soft_wrap=False)
    if not (screen.is_terminal or os.environ.get("COLUMNS")):
        screen = Console(highlight=False, width=_WIDE)
    with screen.capture() as captured:
        screen.print(what)
    text = captured.get()
    click.echo(
        text if screen.is_terminal else "\n".join(line.rstrip() for line in text.split("\n")),
        nl=False,
        color=screen.is_terminal,
    )


def show_json(value: Mapping[str, Any]) -> None:
    """Print exactly one JSON object."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def warn(sentences: Iterable[str]) -> None:
    """Print warnings on the standard error stream."""
    for sentence in sentences:
        click.echo(f"Warning: {sentence}", err=True)


def display_path(path: Path) -> str:
    """Return a path relative to the current directory where it is below it, else the absolute path."""
    whole_path = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links, and show another name than was typed
    return (
        str(whole_path.relative_to(Path.cwd()))
        if whole_path.is_relative_to(Path.cwd())
        else str(whole_path)
    )


def check_new(path: Path, advice: str) -> None:
    """Refuse a file that exists already."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InputError(
            f"{display_path(path)} cannot be written: {(error.strerror or 'no such place').lower()}. "
            f"{advice}"
        ) from None
    raise InputError(f"{display_path(path)} exists already and is not overwritten. {advice}")


@contextmanager
def new_file(path: Path, advice: str) -> Iterator[Path]:
    """Give the path to write a new file at; the file gets its name when all is written, and nothing is left after an error."""
    check_new(path, advice)
    part = path.with_name(f".{os.getpid()}.part.{path.name}")
    try:
        yield part
        part.rename(path)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(
            f"{display_path(path)} cannot be written: {reason}. Choose a folder that exists and that you "
            "may write to."
        ) from None
    except UnicodeEncodeError:
        raise InputError(
            f"{display_path(path)} cannot be written, because a name in it is not valid text. Rename "
            "that file or column."
        ) from None
    finally:
        with suppress(OSError):
            part.unlink()


def write_new(path: Path, text: str, advice: str) -> None:
    """Write a new text file, whole or not at all."""
    with new_file(path, advice) as part:
        part.write_text(text, encoding="utf-8")
