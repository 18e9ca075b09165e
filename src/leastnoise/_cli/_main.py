"""The program ``leastnoise``: its commands, and its messages and exit codes.

Modules of commands are imported on first use, which keeps ``leastnoise --help`` fast.
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
from leastnoise._interruption import describe_error, noted_runs
from leastnoise._threads import THREAD_VARIABLES
from leastnoise._trusted.check import (
    GuardError,
    InputError,
    InternalError,
    LeastNoiseError,
    PaidError,
)

BAD_INPUT = 2  # as click and POSIX utilities use it
UNFINISHED = 3  # paid, and not published
AFTERWARDS = 4  # paid and published, or entered, and something failed then
MISSED_TARGET = 5  # an error is above its target, or a planned table determines a cell
FAULT = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # as a shell reports a program that SIGINT ended
BROKEN_PIPE = 141  # as a shell reports a program that SIGPIPE ended
_WORST_FIRST = ("unknown", "resumable", "absent", "whole", "entered", "guard")  # states of payments
_interrupted: list[int] = []


def install_interrupt_handler() -> None:
    """Make the first SIGINT raise KeyboardInterrupt, and ignore later ones.

    Later interruptions could cut off the last message. If the process was started with SIGINT
    ignored, as in the background, SIGINT stays ignored.
    """
    _interrupted.clear()

    def stop(number: int, _frame: Any) -> None:
        """Raise KeyboardInterrupt, and ignore all later interruptions."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _interrupted.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, stop)


def describe_payments(first_payment: int) -> tuple[str, str]:
    """Return the worst state of this run's payments, and a sentence about it.

    Args:
        first_payment: the number of payments that were recorded before this run.

    Returns:
        The worst state of any payment, and a sentence about all payments.
    """
    if len(noted_runs()) == first_payment:
        return "nothing", "Nothing was spent."
    try:
        from leastnoise._session import read_payment_state

        accounts = [read_payment_state(ledger, run) for ledger, run in noted_runs()[first_payment:]]
    except Exception:  # noqa: BLE001 - the first error must not be hidden by a second one
        return (
            "unknown",
            "It is unknown now whether something was paid; see `leastnoise ledger show`.",
        )
    payments = [payment for payment in accounts if payment.state != "nothing"]
    if not payments:
        return "nothing", "Nothing was spent."
    worst_state = min((payment.state for payment in payments), key=_WORST_FIRST.index)
    return worst_state, " ".join(payment.sentences for payment in payments)


_COMMANDS = {
    "init": ("_init", "init", "Draft a spec file from column names and types."),
    "profile": (
        "_profile",
        "profile",
        "Take a first look at data without a dictionary, and draft a spec.",
    ),
    "check": (
        "_init",
        "check_command",
        "Show exact facts on how rows fit the spec, only for the data holder.",
    ),
    "plan": (
        "_plan",
        "plan_command",
        "Show the expected error of every table; this spends nothing.",
    ),
    "compare": ("_compare", "compare", "Compare every strategy, least expected error first."),
    "categories": (
        "_release",
        "categories_command",
        "Find unknown categories and bounds privately, for a share of the budget.",
    ),
    "release": (
        "_release",
        "release_command",
        "Measure, estimate, and write answers, manifest and report.",
    ),
    "resume": (
        "_release",
        "resume",
        "Finish releases that were paid but not published, at no cost.",
    ),
    "show": ("_finished", "show", "Show a finished release: its accuracy and its tables."),
    "answer": (
        "_finished",
        "answer_command",
        "Give further answers from a finished release, at no cost.",
    ),
    "difference": (
        "_comparison_commands",
        "difference",
        "Compare two groups, periods or releases: difference, ratio and lift.",
    ),
    "ab-test": (
        "_comparison_commands",
        "ab_test_command",
        "Estimate the effect of a treatment from a release with means by arm.",
    ),
    "power": (
        "_comparison_commands",
        "power",
        "Compute which effect an A/B test can detect; this needs no data.",
    ),
    "export": ("_finished", "export", "Write a finished release in the format of another tool."),
    "round": ("_finished", "rounding", "Round a finished release, and leave out small answers."),
    "coarsen": (
        "_coarsen",
        "coarsen",
        "Find hidden cells that readers can compute from rounded tables.",
    ),
    "synthesize": ("_finished", "synthesize", "Draw synthetic records from a finished release."),
    "studio": ("_studio", "studio", "Draft a spec, plan, or explore a release in the browser."),
    "ledger": ("_ledger", "ledger_group", "Set the budget of a data set and show its spending."),
    "audit": ("_audit", "audit", "Compute a lower bound on the program's privacy loss."),
    "demo": ("_demo", "demo", "Plan and release a generated survey of 200,000 people."),
    "experiments": (
        "_demo",
        "experiments",
        "Repeat a paper's figures and tables; without NAME, list them.",
    ),
}
"""The module, function and first help line of each command, in order of use."""


def _print_help_with_glossary(
    context: click.Context,
    _option: click.Parameter,
    is_requested: bool,  # noqa: FBT001 - the signature is click's
) -> None:
    """Print the help of a command, and explain the technical terms in it."""
    if not is_requested or context.resilient_parsing:
        return
    text = context.get_help()
    formatter = context.make_formatter()
    glossary = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
    explanations = [
        (word, sentence)
        for word, sentence in glossary.items()
        if re.search(rf"\b{word}s?\b", text, re.IGNORECASE)
    ]
    if explanations:
        with formatter.section("In plain words"):
            formatter.write_dl(explanations)
    click.echo(f"{text}\n\n{formatter.getvalue()}".rstrip())
    context.exit()


_help = click.help_option("-h", "--help", callback=_print_help_with_glossary)


class _Commands(click.Group):
    """The commands of the program; each module is imported on first use.

    Until then, a command has only its name and the first line of its help.
    """

    # Click calls this method with its context.
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands in the order of definition."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the requested command; return its name, the command and its arguments."""
        name, command, arguments = super().resolve_command(ctx, args)
        return name, command and load_command(str(command.name)), arguments


def load_command(name: str) -> click.Command:
    """Import a command from its module, and add its --help option."""
    module, function, _ = _COMMANDS[name]
    command: click.Command = getattr(import_module(f"leastnoise._cli.{module}"), function)
    for subcommand in (command, *getattr(command, "commands", {}).values()):
        if not any("--help" in parameter.opts for parameter in subcommand.params):
            _help(subcommand)
    return command


@click.group(
    cls=_Commands,
    commands=[click.Command(name, help=line) for name, (*_, line) in _COMMANDS.items()],
    context_settings={"max_content_width": 100},
    epilog="A spec (TOML) states the values of columns, who is protected and which tables are "
    "published. A ledger records the privacy budget of a data set (epsilon: smaller protects more) "
    "and its spending. Start with `leastnoise demo` or `leastnoise studio people.csv`.",
)
@click.version_option(sys.modules["leastnoise"].__version__, message="leastnoise %(version)s")
@_help
def program() -> None:
    """Publish tables from private data with the least noise.

    Answers a batch of linear queries (marginals, ranges, CDFs, sums) over a sensitive table under
    differential privacy. It shows the expected error before any budget is spent.
    """


def main() -> None:
    """Run the program on the arguments of the process, and exit.

    The exit codes are on the page docs/errors.md. An error is one sentence on the standard error
    stream, never a traceback, and never with a value of a row. A second sentence states whether the
    ledger recorded a payment.
    """
    install_interrupt_handler()
    first_payment = len(noted_runs())
    try:
        _open_streams()
        for name in THREAD_VARIABLES:
            os.environ.setdefault(name, "1")  # before NumPy reads it
        check_environment()
        code = program.main(prog_name="leastnoise", standalone_mode=False) or 0
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001
        # The last frame of the program: every error becomes one sentence.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = _report_error(error, first_payment)
    # A failure to write was reported above; Python would report it again at exit.
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _open_streams() -> None:
    """Replace closed standard streams by the null device.

    Otherwise the next file that is opened, such as the ledger, would get the file descriptor of a
    closed stream.
    """
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
            stream.reconfigure(errors="replace")  # a terminal may lack a character of a name


def _report_error(error: BaseException, first_payment: int) -> int:
    """Print an error and the state of payments; return the exit code.

    Args:
        error: the error.
        first_payment: the number of payments that were recorded before this run.
    """
    if isinstance(error, (SystemExit, BrokenPipeError)) and not _interrupted:
        return BROKEN_PIPE  # stdout was closed; click turns only this error into SystemExit
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    state, payment_sentence = describe_payments(first_payment)
    # Libraries may turn an interruption into errors of their own.
    if isinstance(error, (KeyboardInterrupt, click.Abort)) or _interrupted:
        _print_error(f"interrupted. {payment_sentence}")
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        return _report_usage_error(error)
    sentence, is_fault = _describe_error(error, state, payment_sentence)
    is_debugging = _is_debugging()
    if is_fault and not is_debugging:
        sentence += " LEASTNOISE_DEBUG=1 shows where it happened."
    _print_error(sentence)
    if is_fault and is_debugging:
        _print_frames(error)
    if state not in {"nothing", "guard"}:
        if state in {"whole", "entered"}:
            return AFTERWARDS
        return UNFINISHED
    if is_fault:
        return FAULT
    return BAD_INPUT


def _report_usage_error(error: click.ClickException) -> int:
    """Print an error in the arguments; return the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        # `leastnoise` lists its commands. A command without its required arguments is an error.
        is_program = error.ctx.parent is None
        click.echo(error.ctx.get_help(), err=not is_program)
        if is_program:
            return 0
        return BAD_INPUT
    description = error.format_message().strip().rstrip(".?").replace("\n", " ")
    context = getattr(error, "ctx", None)
    if context is None:
        command = "leastnoise"
    else:
        command = context.command_path
    _print_error(f"{description[:1].lower()}{description[1:]}. See `{command} --help`.")
    return BAD_INPUT


def _describe_error(error: BaseException, state: str, payment_sentence: str) -> tuple[str, bool]:
    """Return a message on an error and the payment, and whether it is a bug."""
    sentence = str(error)
    is_fault = False
    if isinstance(error, PaidError):  # its message describes the payment
        is_fault = error.cause is not None and describe_error(error.cause)[1]
    elif not isinstance(error, GuardError):  # its message describes the payment, too
        is_plain = isinstance(error, LeastNoiseError) and not isinstance(error, InternalError)
        if state != "nothing" or not is_plain:
            description, is_fault = describe_error(error)
            sentence = f"{description} {payment_sentence}"
    if not isinstance(error, LeastNoiseError) or is_fault:
        sentence = sentence[:1].lower() + sentence[1:]
    return sentence, is_fault


def _print_frames(error: BaseException) -> None:
    """Print the stack frames and the type of an error.

    The message and local variables of the error are not printed, because they may contain a value
    of a row.
    """
    if isinstance(error, PaidError) and error.cause is not None:
        error = error.cause
    frames = "".join(traceback.format_tb(error.__traceback__))
    with suppress(OSError):
        click.echo(frames + type(error).__name__, err=True)


def _is_debugging() -> bool:
    """Return whether LEASTNOISE_DEBUG is on; False if its value is invalid.

    An invalid value was reported before.
    """
    try:
        return is_on(DEBUG)
    except InputError:
        return False


def _print_error(message: str) -> None:
    """Print a message on the standard error stream, after the program's name."""
    from leastnoise._frames import escape_controls

    lines = [escape_controls(line) for line in message.split("\n")]
    with suppress(OSError):
        click.echo("leastnoise: " + "\n".join(lines), err=True)
