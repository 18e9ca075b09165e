"""Run the program with one changed step, such as a step that kills its process."""

import json
import signal

from cli.conftest import ended
from waiting import HANGS

# The program with one changed step: from one of its calls on it does something before or after it,
# such as killing its own process.
CHANGED_PROGRAM = """
import os, signal, sys, time
from pathlib import Path

# A process started in the background may have been told to ignore interruptions.
signal.signal(signal.SIGINT, signal.default_int_handler)

def change(owner, name, before=None, after=None, call=1):
    step = getattr(owner, name)
    calls = []
    def changed(*arguments, **options):
        calls.append(name)
        is_reached = len(calls) >= call
        if before and is_reached: before()
        result = step(*arguments, **options)
        if after and is_reached: after()
        return result
    setattr(owner, name, changed)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def pause():
    Path("paused").touch()
    time.sleep({hangs})

def interrupt():
    signal.raise_signal(signal.SIGINT)

def interrupt_twice():
    try:
        interrupt()
    finally:
        interrupt()

def interrupt_as_duckdb_says():
    try:
        interrupt()
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted")

def fail():
    raise RuntimeError("a value of a row: secret-value")

def full():
    raise OSError(28, "No space left on device")

from leastnoise._trusted.kernel import _measurement as kernel, _ledger as book, _series as series
from leastnoise._publication import _directory as directory
from leastnoise._session import _release_job as finish, _session as session
from leastnoise._cli import _release as release_command
from leastnoise._trusted.kernel import Series
Ledger = book.Ledger
{change}
from leastnoise._cli import main
main()
"""


def run_until_stopped(start, change, *arguments, code=-signal.SIGKILL, **environment):
    """Return the error output of a run with a changed step, and check its exit code."""
    result = ended(start(*arguments, program=changed_program(change), **environment))
    assert result.code == code, result.err
    return result.err


def changed_program(change):
    """Return the text of the program with a change, which calls `change` of that text."""
    return CHANGED_PROGRAM.replace("{change}", change).replace("{hangs}", str(HANGS))


def published_values(out):
    """Return the noisy values of a published release, step by step."""
    return json.loads((out / "measurements/observation.json").read_text(encoding="utf-8"))["values"]


def drawn_values(ledger):
    """Return the recorded noisy values of releases that can be resumed, step by step."""
    values = []
    for entry in ledger.entries():
        if entry.resumable:
            values += [json.loads(step.outcome)["values"] for step in ledger.pending(entry).steps]
    return values
