"""The program ``leastnoise``: the list of its commands, and what it prints and returns after an error.

The module of a command is loaded when the command is used, so that ``leastnoise --help`` is quick.
"""

import io
import os
import re
import signal
import sys
import tomllib
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from leastnoise._environment import DEBUG, check_environment, is_on
from leastnoise._interruption import cause, runs
from leastnoise._threads import SAID_BY
from leastnoise._trusted.check import (
    GuardError,
    InputError,
    InternalError,
    LeastNoiseError,
    PaidError,
)

BAD_INPUT = 2
UNFINISHED = 3  # paid, and not published
AFTERWARDS = 4  # paid and published, or entered, and something failed then
FAULT = 70
INTERRUPTED = 130
BROKEN_PIPE = 141  # as a shell reports a program that SIGPIPE ended
_interrupted: list[int] = []


def install_interrupt_handler() -> None:
    """Turn the first interruption into KeyboardInterrupt, and ignore later ones, so that the last message is printed whole.

    A run that was started with interruptions ignored, as in the background, keeps ignoring them.
    """
    _interrupted.clear()

    def stop(number: int, _frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _interrupted.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, stop)


def what_was_paid(since: int) -> tuple[str, str]:
    """Ask the ledgers about the payments of this run; return the worst state of one, and a sentence about all of them."""
    if len(runs()) == since:
        return "nothing", "Nothing was spent."
    try:
        from leastnoise._session import read_payment_state

        asked = [read_payment_state(ledger, run) for ledger, run in runs()[since:]]
    except Exception:  # noqa: BLE001 - the first error must not be hidden by a second one
        return (
            "unknown",
            "Whether something was paid cannot be told now; see `leastnoise ledger show`.",
        )
    payments = [payment for payment in asked if payment.state != "nothing"]
    worst_first = ("unknown", "resumable", "absent", "whole", "entered", "guard")
    if not payments:
        return "nothing", "Nothing was spent."
    return min((payment.state for payment in payments), key=worst_first.index), " ".join(
        payment.words for payment in payments
    )


_COMMANDS = {
    "init": ("_init", "init", "Draft a spec file from column names and types."),
    "check": ("_init", "check", "Show how rows fit the spec: exact, for the data holder alone."),
    "plan": ("_plan", "plan", "Show the expected error of every table; this spends nothing."),
    "compare": ("_plan", "compare", "Compare every strategy, least expected error first."),
    "categories": (
        "_release",
        "categories",
        "Find categories that nobody can list, privately, for a price.",
    ),
    "release": (
        "_release",
        "release",
        "Measure, estimate, and write answers, manifest and report.",
    ),
    "resume": ("_release", "resume", "Finish releases that were paid and not written, at no cost."),
    "show": ("_finished", "show", "Show a finished release: how exact it is, and its tables."),
    "answer": ("_finished", "answer", "Give further answers from a finished release, at no cost."),
    "export": ("_finished", "export", "Write a finished release in another form."),
    "round": ("_finished", "rounding", "Round a finished release, and leave out small answers."),
    "synthesize": ("_finished", "synthesize", "Write records that agree with a finished release."),
    "studio": ("_plan", "studio", "Make a spec, plan, or explore a release in the browser."),
    "ledger": ("_ledger", "ledger", "Set the budget of a data set, and see what has been spent."),
    "audit": ("_plan", "audit", "Bound the privacy loss from below: try the installed program."),
    "demo": ("_demo", "demo", "Plan and release a generated survey of 200,000 people."),
    "experiments": (
        "_demo",
        "experiments",
        "Repeat a paper's figures and tables; without NAME, list them.",
    ),
}
"""The module, the function and the first line of the help of each command, in the order in which one needs them."""


def _explain(context: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - the signature is click's
    """Show the help and, below it, an explanation of each of its words that is in the glossary."""
    if not wanted or context.resilient_parsing:
        return
    text, formatter = context.get_help(), context.make_formatter()
    glossary = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
    words = [
        (word, sentence)
        for word, sentence in glossary.items()
        if re.search(rf"\b{word}s?\b", text, re.IGNORECASE)
    ]
    if words:
        with formatter.section("In plain words"):
            formatter.write_dl(words)
    click.echo(f"{text}\n\n{formatter.getvalue()}".rstrip())
    context.exit()


_help = click.help_option("-h", "--help", callback=_explain)


class _Commands(click.Group):
    """The commands, of which each has only its name and the first line of its help until it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return the names in the order of definition."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Load the module of the command that is used."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(str(command.name)), rest


def load_command(name: str) -> click.Command:
    """Return a command from its module, with its option for help."""
    module, function, _ = _COMMANDS[name]
    command: click.Command = getattr(import_module(f"leastnoise._cli.{module}"), function)
    for each in (command, *getattr(command, "commands", {}).values()):
        if not any("--help" in parameter.opts for parameter in each.params):
            _help(each)
    return command


@click.group(
    cls=_Commands,
    commands=[click.Command(name, help=line) for name, (*_, line) in _COMMANDS.items()],
    context_settings={"max_content_width": 100},
    epilog="A spec (TOML) says what columns may hold, who is protected and what is published; a "
    "ledger holds how much may be learnt about "
    "a person (epsilon: smaller protects more) and how much was. Start with `leastnoise demo`, or "
    "with `leastnoise studio people.csv`.",
)
@click.version_option(sys.modules["leastnoise"].__version__, message="leastnoise %(version)s")
@_help
def program() -> None:
    """Publish tables from private data with the least noise.

    Answers a batch of linear queries (marginals, ranges, CDFs, sums) over a sensitive table under
    differential privacy, and says how large the error will be before any budget is spent.
    """


def main() -> None:
    """Run the program on the arguments of the process, and end the process.

    The exit codes are on the page docs/errors.md. An error is one sentence on the standard error
    stream, never a traceback, and never with a value of a row; after it stands what was paid, as
    the ledger has it at that moment.
    """
    install_interrupt_handler()
    paid_before = len(runs())
    try:
        _open_streams()
        for name in SAID_BY:
            os.environ.setdefault(name, "1")  # before NumPy reads it
        check_environment()
        code = (
            program.main(prog_name="leastnoise", standalone_mode=False) or 0
        )  # a command's own exit code
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the last frame of the program: whatever it was becomes one sentence
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = _report(error, paid_before)
    for stream in (
        sys.stdout,
        sys.stderr,
    ):  # a failure to write was reported by now; Python would report it again when it ends
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _open_streams() -> None:
    """Replace closed standard streams by empty ones; else the next file that is opened, such as the ledger, would take their number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a name that a narrow terminal cannot show is no reason to fail


def _report(error: BaseException, paid_before: int) -> int:
    """Print what happened in one sentence and what was paid in another, and return the exit code."""
    if isinstance(error, (SystemExit, BrokenPipeError)) and not _interrupted:
        return BROKEN_PIPE  # stdout was closed; click turns that, and only that, into SystemExit
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    state, paid = what_was_paid(paid_before)
    if (
        isinstance(error, (KeyboardInterrupt, click.Abort)) or _interrupted
    ):  # libraries may turn an interruption into errors of their own
        _say(f"interrupted. {paid}")
        return INTERRUPTED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        alone = (
            error.ctx.parent is None
            # `leastnoise` alone asks for the list of commands; a command without arguments is a mistake
        )
        click.echo(error.ctx.get_help(), err=not alone)
        return 0 if alone else BAD_INPUT
    if isinstance(error, click.ClickException):
        text, context = (
            error.format_message().strip().rstrip(".?").replace("\n", " "),
            getattr(error, "ctx", None),
        )
        _say(
            f"{text[:1].lower()}{text[1:]}. See "
            f"`{context.command_path if context else 'leastnoise'} --help`."
        )
        return BAD_INPUT
    fault, sentence = False, str(error)
    if isinstance(error, PaidError):  # its message says what was paid, and so does that of a guard
        fault = error.cause is not None and cause(error.cause)[1]
    elif not isinstance(error, GuardError) and (
        state != "nothing"
        or not isinstance(error, LeastNoiseError)
        or isinstance(error, InternalError)
    ):
        words, fault = cause(error)
        sentence = f"{words} {paid}"
    if not isinstance(error, LeastNoiseError) or fault:
        sentence = sentence[:1].lower() + sentence[1:]
    debugging = _is_debugging()
    _say(
        sentence
        + (" LEASTNOISE_DEBUG=1 shows where it happened." if fault and not debugging else "")
    )
    if fault and debugging:
        error = error.cause if isinstance(error, PaidError) and error.cause is not None else error
        # Frames only. The text of a foreign exception may quote a value of a row, and so may local
        # variables; neither is ever shown.
        with suppress(OSError):
            click.echo(
                "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__, err=True
            )
    if state not in {"nothing", "guard"}:
        return AFTERWARDS if state in {"whole", "entered"} else UNFINISHED
    return FAULT if fault else BAD_INPUT


def _is_debugging() -> bool:
    """Tell whether faults show where they happened; a wrong switch is reported by now."""
    try:
        return is_on(DEBUG)
    except InputError:
        return False


def _say(text: str) -> None:
    from leastnoise._frames import escape_controls

    with suppress(OSError):
        click.echo("leastnoise: " + "\n".join(map(escape_controls, text.split("\n"))), err=True)
