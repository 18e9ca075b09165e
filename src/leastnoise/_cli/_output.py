"""Options, specs, printed output and new files, shared by the commands."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from leastnoise._session import SpecFile, estimate_planning_seconds, plan_spec, read_spec
from leastnoise._spec import Spec
from leastnoise._trusted.check import InputError

_WIDTH_WITHOUT_TERMINAL = 160  # columns where there is no terminal
FILE = click.Path(path_type=Path)
spec_argument = click.argument("path", metavar="SPEC", type=FILE)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of tables."
)


def add_options(*options: tuple[str, Any, str]) -> Callable[[Any], Any]:
    """Return a decorator that adds options to a command.

    Args:
        options: for each option its name, its type and its help text. If the parameter has another
            name, write this name after the option's name and a space.
    """

    def decorate(command: Any) -> Any:
        """Add the options to a command, and return the command."""
        for names, value_type, help_text in reversed(options):
            command = click.option(*names.split(), type=value_type, help=help_text)(command)
        return command

    return decorate


# For the commands that plan. The option has the same effect as LEASTNOISE_CACHE=off in the
# environment.
cache_option = click.option(
    "--no-cache",
    is_flag=True,
    expose_value=False,
    callback=lambda _, __, is_off: os.environ.update({CACHE: "off"} if is_off else {}),
    help="Plan again, and store no plan in the cache folder.",
)
spec_option = click.option(
    "--spec",
    "spec_path",
    type=FILE,
    expose_value=False,
    callback=lambda context, _, path: context.meta.update(spec=path),
    help="The spec, if SPEC is a file of SQL statements (.sql). They replace its [[workload]].",
)


def read_command_spec(path: Path) -> SpecFile:
    """Read the spec in a TOML file, or the spec of ``--spec`` with SQL queries.

    If ``path`` is a file of SQL statements, the option --spec names the spec, and the statements
    replace its workload.
    """
    spec_path = click.get_current_context().meta.get("spec")
    if (path.suffix == ".sql") != (spec_path is not None):
        fault = f"--spec is for a file of SQL statements whose name ends in .sql; got {path}."
        if spec_path is None:
            fault = (
                f"{path} has SQL statements: add --spec people.toml for the domain and the budget."
            )
        raise InputError(fault)
    if spec_path is None:
        return read_spec(path)
    return read_spec(spec_path, statements=path)


@contextmanager
def plan_progress(spec: Spec) -> Iterator[Progress]:
    """Show a progress line during planning, and limit the memory of planning."""
    with memory_limit(), Progress("planning", about=estimate_planning_seconds(spec)) as progress:
        yield progress


def plan_with_progress(spec: Spec) -> tuple[Plan, float]:
    """Plan a spec with a progress line; return the plan and the seconds taken.

    Returns:
        The plan, and the duration of planning in seconds.
    """
    with plan_progress(spec) as progress:
        return plan_spec(spec, progress.trying), progress.seconds


def format_number(value: float) -> str:
    """Format a number with four significant digits."""
    if 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:#.4g}"


def format_noise(noise_name: str) -> str:
    """Return the display name of a kind of noise, such as "discrete Laplace"."""
    if noise_name == "k_norm":
        return "K-norm"
    if noise_name == "laplace_and_k_norm":
        return "K-norm and discrete Laplace"
    kind, name = noise_name.split("_")
    return f"{kind} {name.capitalize()}"


def print_table(
    title: str,
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[str | tuple[str, ...]]],
    bold_row: int | None = None,
) -> None:
    """Print a table, followed by an empty line.

    Args:
        title: a line above the table, or an empty text for no line.
        columns: the heading of each column and its alignment: "left", "right" or "fold" (left, and
            wrapped on a narrow screen).
        rows: the cells of each row; a cell with several lines is a tuple.
        bold_row: the index of a row to print in bold; None for no bold row.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")

    def render_cell(lines: str | tuple[str, ...]) -> Text:
        """Return the line or lines of a cell as one text for the table."""
        if isinstance(lines, str):
            lines = (lines,)
        return Text("\n".join(map(escape_controls, lines)))

    for heading, alignment in columns:
        justify: Any = "right" if alignment == "right" else "left"
        # Only headings of this program have line breaks; names of tables and attributes have none.
        table.add_column(
            render_cell(tuple(heading.split("\n"))),
            justify=justify,
            no_wrap=alignment != "fold",
            overflow="fold",
        )
    for row_number, row in enumerate(rows):
        table.add_row(*map(render_cell, row), style="bold" if row_number == bold_row else None)
    if title:
        _print(Text(escape_controls(title), style="bold"))
    _print(table)
    click.echo()


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print labels and texts, one pair on each line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(Text(escape_controls(name)), Text(escape_controls(value)))
    _print(table)


def _print(renderable: RenderableType) -> None:
    """Print a table or text of the library rich.

    Colours are used on a terminal, unless NO_COLOR is set. Other output has no colours and no
    trailing spaces.
    """
    console = Console(highlight=False, soft_wrap=False)
    if not (console.is_terminal or os.environ.get("COLUMNS")):
        console = Console(highlight=False, width=_WIDTH_WITHOUT_TERMINAL)
    with console.capture() as captured:
        console.print(renderable)
    text = captured.get()
    if not console.is_terminal:
        text = "\n".join(line.rstrip() for line in text.split("\n"))
    click.echo(text, nl=False, color=console.is_terminal)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on the standard output."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings on the standard error stream."""
    for sentence in warnings:
        click.echo(f"Warning: {sentence}", err=True)


def display_path(path: Path) -> str:
    """Return a path as text, relative if it is below the current directory."""
    # resolve() follows links, and would show another name than the user typed.
    whole_path = Path(os.path.abspath(path))  # noqa: PTH100
    if whole_path.is_relative_to(Path.cwd()):
        return str(whole_path.relative_to(Path.cwd()))
    return str(whole_path)


def check_new_file(path: Path, advice: str) -> None:
    """Raise InputError if a file exists or its folder cannot be used."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InputError(
            f"{display_path(path)} cannot be written: "
            f"{(error.strerror or 'no such folder').lower()}. {advice}"
        ) from None
    raise InputError(f"{display_path(path)} exists already and is not overwritten. {advice}")


@contextmanager
def open_new_file(path: Path, advice: str) -> Iterator[Path]:
    """Write a new file under a temporary name, and rename it when complete.

    Yields:
        The temporary path to write to. The file under this path is removed after an error.
    """
    check_new_file(path, advice)
    temporary = path.with_name(f".{os.getpid()}.part.{path.name}")
    try:
        yield temporary
        temporary.rename(path)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(
            f"{display_path(path)} cannot be written: {reason}. Choose a folder that exists and in "
            "which you may write."
        ) from None
    except UnicodeEncodeError:
        raise InputError(
            f"{display_path(path)} cannot be written, because a name in it is not valid text. "
            "Rename that file or column."
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_new_file(path: Path, text: str, advice: str) -> None:
    """Write a new text file; remove it again after an error."""
    with open_new_file(path, advice) as temporary:
        temporary.write_text(text, encoding="utf-8")
