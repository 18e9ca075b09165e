"""The program ``leastnoise``: its commands, and what an error becomes.

Everything heavy is imported inside the commands, so that ``leastnoise --help`` is quick.
"""

import io
import os
import signal
import sys
import traceback
from pathlib import Path

import click

from leastnoise._check import InternalError, LeastNoiseError
from leastnoise.cli._answer import answer
from leastnoise.cli._audit import audit
from leastnoise.cli._demo import demo
from leastnoise.cli._experiments import experiments
from leastnoise.cli._init import init
from leastnoise.cli._ledger import ledger
from leastnoise.cli._plan import compare, plan
from leastnoise.cli._release import release
from leastnoise.cli._stop import Stopped

BAD_INPUT = 2
FAULT = 70
INTERRUPTED = 130
BROKEN_PIPE = 141  # as a shell reports a program that SIGPIPE ended


class _InOrder(click.Group):
    """The commands in the order in which one needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Give the names in the order of definition."""
        return list(self.commands)


@click.group(
    cls=_InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `leastnoise demo`, or with `leastnoise init people.csv`.",
)
@click.version_option(sys.modules["leastnoise"].__version__, message="leastnoise %(version)s")
def program() -> None:
    """Publish tables from private data with the least noise.

    Answers a batch of linear queries (marginals, ranges, CDFs, sums) over a sensitive table under differential privacy, and says how large
    the error will be before any budget is spent.
    """


for _command in (init, plan, compare, release, answer, ledger, audit, demo, experiments):
    program.add_command(_command)


def main() -> None:
    """Run the program on the arguments of the process, and end the process.

    The exit code is 0, 2 (bad input, too little budget, an unusable ledger), 70 (a fault of the program) or 130 (interrupted). An error is
    one sentence on the standard error stream, never a traceback, and never with a value of a row.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        # Planning is many small matrix products: threads that wait for each other cost up to eight times the time on a busy machine.
        os.environ.setdefault(name, "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name that a narrow terminal cannot show is no reason to fail
    try:
        code = program.main(prog_name="leastnoise", standalone_mode=False) or 0  # a command's own exit code
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the last frame of the program: whatever it was becomes one sentence
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = _report(error)
    sys.exit(code)


def _report(error: BaseException) -> int:
    """Say what happened in one sentence, and choose the exit code."""
    paid = ""
    if isinstance(error, Stopped):
        paid, error = error.paid, error.cause
    if isinstance(error, SystemExit):
        return BROKEN_PIPE  # click ends so, and only so, when the reader of a pipe has seen enough
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        # the reader of a pipe has seen enough; without this Python complains again when it closes the stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        _say(f"interrupted. {paid or 'Nothing was spent.'}")
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        _say(_usage(error))
        return BAD_INPUT
    if isinstance(error, LeastNoiseError) and not isinstance(error, InternalError):
        _say(f"{error}{' ' + paid if paid else ''}")
        return BAD_INPUT
    if isinstance(error, OSError) and error.strerror:
        where = f" {error.filename}" if isinstance(error.filename, str) else ""
        _say(f"the file system refused{where}: {error.strerror.lower()}. {paid or 'Nothing was spent.'}")
        return BAD_INPUT
    _say(
        f"a fault of the program, not of yours ({_place(error)}); please report this line and the version. {paid or 'Nothing was spent.'}"
        + ("" if _debugging() else " LEASTNOISE_DEBUG=1 shows the way to it.")
    )
    if _debugging():
        # Frames only. The text of a foreign exception may quote a value of a row, and so may local variables; neither is ever shown.
        click.echo("".join(traceback.format_tb(error.__traceback__)) + type(error).__name__, err=True)
    return FAULT


def _usage(error: click.ClickException) -> str:
    text = error.format_message().strip().rstrip(".?").replace("\n", " ")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "leastnoise"
    return f"{text[:1].lower()}{text[1:]}. See `{command} --help`."


def _place(error: BaseException) -> str:
    """The kind and the place of a fault, without its text."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "leastnoise" in Path(frame.filename).parts] or list(frames)
    return f"{type(error).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else type(error).__name__


def _debugging() -> bool:
    return os.environ.get("LEASTNOISE_DEBUG", "") not in {"", "0"}


def _say(text: str) -> None:
    click.echo(f"leastnoise: {text}", err=True)
