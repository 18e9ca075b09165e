"""Releases in forked processes with one fault each, and what must hold afterwards.

A parent that has everything imported forks a child for every trial; `faults.c` is loaded into all
of them and fails, kills or interrupts at the n-th call that writes, syncs, renames, links or
removes anything below the trial's folder, whatever library makes it.
"""

import ctypes
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODES = {
    "killed before": 1,
    "killed after": 2,
    "EIO once": 3,
    "EIO from then on": 4,
    "ENOSPC once": 5,
    "ENOSPC from then on": 6,
    "half written and killed": 7,
    "one interruption": 8,
    "two interruptions": 9,
}
# What messages say of a release in each state.
CLAIMS = {
    "nothing": "Nothing was spent",
    "whole": "and is whole in",
    "resumable": "can be finished",
    "absent": "and is absent",
    "unknown": "cannot be told",
}
SPEC = """\
[source]
path = "people.csv"
[privacy]
epsilon = "1"
[domain.sex]
categories = ["F", "M"]
[domain.age]
integers = [0, 15]
[[workload]]
queries = { sex = "identity", age = "identity" }
[plan]
strategy = "identity"
"""
ROWS = "sex,age\n" + "".join(f"{'FM'[place % 2]},{place % 16}\n" for place in range(40))


def with_faults(build):
    """Restart this program with the compiled library unless it is loaded."""
    if "faults.so" not in os.environ.get("LD_PRELOAD", ""):
        build.mkdir(parents=True, exist_ok=True)
        part = build / f"{os.getpid()}.so"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", str(part), str(HERE / "faults.c"), "-ldl"],
            check=True,
        )
        library = part.replace(build / "faults.so")  # another run may use the old one
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        quiet = {"LEASTNOISE_PROGRESS": "off", "LD_PRELOAD": str(library.resolve())}
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **threads, **quiet})  # noqa: S606


@dataclass(frozen=True)
class Scenario:
    """A folder to start from, and the work in it."""

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[], None]
    known: int = 0  # entries of the ledger before
    pays: bool = (
        True  # a run that finishes what was paid before may truly say that it spent nothing
    )
    share: tuple[str, ...] = ()  # options of a further release
    enters: bool = False  # what the data holder enters into a ledger, instead of a release


@dataclass(frozen=True)
class End:
    """How a child ended."""

    killed: bool
    code: int
    output: str  # what it wrote to standard error
    calls: int


def forked(work, folder):
    """Run work in a forked child; return its status, error output and JSON result."""
    error_file = folder.with_suffix(".err")
    result = folder.with_suffix(".json")
    for file in (error_file, result):
        file.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.chdir(folder)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            handle = os.open(error_file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(handle, 2)
            value = work()
            result.write_text(json.dumps(value))
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:  # noqa: BLE001 - told to the parent
            with suppress(BaseException):
                os.write(2, traceback.format_exc().encode())
        finally:
            with suppress(BaseException):
                sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    text = error_file.read_text(encoding="utf-8", errors="replace") if error_file.exists() else ""
    return (
        status,
        text,
        json.loads(result.read_text()) if result.exists() and result.stat().st_size else None,
    )


def faulted(scenario, folder, place, mode):
    """Run a scenario with a fault in call ``place``, or without one after the last call."""
    faults = ctypes.CDLL(None)
    counted = folder.with_suffix(".seen")
    counted.unlink(missing_ok=True)

    def work():
        arm = faults.fault_arm
        arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
        arm(os.fsencode(folder), place, mode)
        try:
            scenario.run()
        finally:
            calls_seen = faults.fault_seen()
            arm(b"", -1, 0)
            counted.write_text(str(calls_seen))

    status, output, _ = forked(work, folder)
    calls = int(counted.read_text()) if counted.exists() and counted.stat().st_size else -1
    killed = os.WIFSIGNALED(status)
    return End(killed, -1 if killed else os.WEXITSTATUS(status), output, calls)


def command(*arguments):
    """Return a function that runs the program with these arguments."""

    def run():
        from leastnoise._cli import main

        sys.argv = ["leastnoise", *arguments]
        main()

    return run


def fresh(folder):
    """Write data and spec to an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "people.csv").write_text(ROWS)
    (folder / "people.toml").write_text(SPEC)


def with_ledger(folder):
    """Write data, spec, and a ledger for three releases."""
    from leastnoise._session import Ledger
    from leastnoise._trusted.accounting import Privacy, PureDP

    fresh(folder)
    Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(3)))


# --- what must hold -------------------------------------------------------------------------------


def truth(folder, entries_before):
    """Return the state of the release from its files, in a child without faults."""
    from leastnoise._session import Ledger, is_published

    state: dict[str, Any] = {
        "entries": 0,
        "state": "nothing",
        "out": (folder / "out").exists(),
        "drawn": None,
    }
    if not (folder / "people.ledger").exists():
        return state
    book = Ledger.open(folder / "people.ledger")
    entries = book.entries()
    state["entries"] = len(entries)
    if len(entries) > entries_before + 1:
        return state | {"state": "paid twice"}
    for entry in entries[entries_before:]:
        if is_published(entry):
            state["state"] = "whole"
        elif not entry.resumable:
            state["state"] = "absent"
        else:
            state["state"] = "resumable"
            state["drawn"] = [step.outcome for step in book.pending(entry).steps]
    return state


def is_whole(out):
    """Whether every file of a release is the one that its manifest describes."""
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return all(
        hashlib.sha256((out / file["path"]).read_bytes()).hexdigest() == file["sha256"]
        for file in manifest["files"]
    )


def complaints(end, mode, state_found, *, pays=True):
    """Yield the false messages and the wrong remains of a run."""
    state = state_found["state"]
    output = end.output
    if state == "paid twice" or state_found["out"] != (state == "whole"):
        yield f"out and unpaid, or paid twice: {state_found}"
    if "Traceback" in output:
        yield "a traceback"
    if end.killed:
        if mode not in {1, 2, 7}:
            yield "killed by something else"
        return
    if not pays and state == "resumable" and end.code in {0, 2, 130}:
        if end.code == 0 and "which will finish it" not in output:
            yield "code 0 and resumable"
        return
    if end.code == 0:
        if state != "whole":
            yield f"code 0 and {state}"
        return
    claims = [name for name, sentence in CLAIMS.items() if sentence in output]
    if claims not in ([state], ["unknown"]) and not (
        not claims and state == "nothing" and end.code == 2
    ):
        yield f"said {claims}, is {state}: {output!r}"
    expected_codes = {
        "nothing": {2, 70, 130},
        "whole": {4, 130, 3},
        "resumable": {3, 130},
        "absent": {3, 130},
    }[state]
    if end.code not in expected_codes and claims != ["unknown"]:
        yield f"code {end.code} and {state}: {output!r}"
    if mode in {8, 9} and end.code != 130:
        yield f"interrupted, and code {end.code}: {output!r}"
    if mode < 8 and "fault of the program" in output:
        yield f"called a fault of the program: {output!r}"
    if len([line for line in output.splitlines() if line.startswith("leastnoise: ")]) != 1:
        yield f"not one sentence: {output!r}"


def next_runs(folder, state_found, scenario, *, further):
    """Check that the next run reports the fault, finishes the work once, and pays once."""
    from leastnoise._session import Ledger

    failed_checks = []
    ledger = folder / "people.ledger"
    if ledger.exists() and run_command("resume", "people.ledger") != 0:
        failed_checks.append("resume fails")
    failed_checks += check_output(folder / "out", state_found)
    budget_left = Ledger.open(ledger).left().epsilon if ledger.exists() else 1
    if further and budget_left >= 1:
        code = run_command("release", "people.toml", "--out", "further", *scenario.share)
        if code != 0 or not is_whole(folder / "further"):
            failed_checks.append("the next release fails")
        state_found["entries"] += 1
    if ledger.exists():
        states = [entry.state for entry in Ledger.open(ledger).entries()]
        failed_checks += check_entries(states, state_found, scenario)
        run_files = [
            path.name for path in folder.iterdir() if re.match(r"\.people\.ledger\.run-", path.name)
        ]
        if run_files:
            failed_checks.append(f"left behind: {run_files}")
    return failed_checks


def run_command(*arguments):
    """Run the program in this process, and return its exit code."""
    from leastnoise._cli import main

    sys.argv = ["leastnoise", *arguments]
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def check_output(out, state_found):
    """Yield the errors found in the release after it was resumed."""
    if state_found["state"] not in {"resumable", "whole"}:
        if out.exists():
            yield "out and absent or unpaid"
    elif not out.exists() or not is_whole(out):
        yield "not finished, or not whole"
    elif state_found["drawn"]:
        observation = (out / "measurements/observation.json").read_text(encoding="utf-8")
        values = json.loads(observation)["values"]
        recorded_values = json.loads(state_found["drawn"][0])["values"]
        if recorded_values != values[: len(recorded_values)]:
            yield "drawn again"


def check_entries(states, state_found, scenario):
    """Yield the errors found in the states of the ledger's entries after all runs."""
    new_states = states[scenario.known :]
    is_settled = set(new_states) <= {"sealed", "absent"}
    if len(states) != state_found["entries"] or not is_settled:
        yield f"{state_found['entries']} entries became {states}"
    if (state_found["state"] == "absent") != ("absent" in new_states):
        yield f"{state_found['state']} became {states}"


# --- what the data holder enters ------------------------------------------------------------------


def entering(name, prepare, *arguments):
    """Return a scenario that changes a ledger: whole or not at all, and reported."""
    return Scenario(name, prepare, command(*arguments), enters=True)


def content(folder):
    """Return the whole content of a ledger, or None without one, in a child."""
    from leastnoise._session import Ledger

    if not (folder / "people.ledger").exists():
        return None
    book = Ledger.open(folder / "people.ledger")
    entries = [
        [
            entry.kind,
            entry.share,
            entry.period,
            str(entry.charge),
            str(entry.declared),
            entry.description,
        ]
        for entry in book.entries()
    ]
    return [[book.dataset, str(book.privacy.budget), str(book.left())], *entries]


def before_and_after(scenario, folder):
    """Return the content of the ledger before and after a change without a fault."""
    scenario.prepare(folder)
    (_, _, content_before), (status, output, _), (_, _, content_after) = (
        forked(work, folder)
        for work in (lambda: content(folder), scenario.run, lambda: content(folder))
    )
    if status or content_after is None or content_before == content_after:
        raise SystemExit(f"{scenario.name}: fails without a fault: {output}")
    return content_before, content_after


def entered(scenario, folder, place, mode, sides):
    """Return the complaints, the end and the state of a ledger change with one fault."""
    scenario.prepare(folder)
    end = faulted(scenario, folder, place, mode)
    _, output, result = forked(lambda: {"content": content(folder)}, folder)
    if result is None:
        return [f"the ledger cannot be read afterwards: {output[-500:]}"], end, "unreadable"
    state = {str(sides[0]): "as it was", str(sides[1]): "entered"}.get(
        str(result["content"]), "half"
    )
    failed_checks = [f"a change made by halves: {result}"] if state == "half" else []
    failed_checks += (
        [] if end.killed and mode in {1, 2, 7} else check_entry_messages(end, mode, state, sides[0])
    )
    if state == "as it was":
        forked(scenario.run, folder)
        _, output, result = forked(lambda: {"content": content(folder)}, folder)
        failed_checks += (
            []
            if result == {"content": sides[1]}
            else [f"the next run does not make the change: {result} {output[-300:]}"]
        )
    return failed_checks, end, state


def check_entry_messages(end, mode, state, content_before):
    """Yield the false messages about a change."""
    claims = "It was entered" in end.output
    if (
        end.killed
        or "Traceback" in end.output
        or (mode < 8 and "fault of the program" in end.output)
    ):
        yield f"killed, or a fault of the program: {end.output!r}"
    if end.code == 0:
        if state != "entered":
            yield "code 0 and not entered"
    elif content_before is None and end.code == 130:
        pass  # a new ledger has nothing in it; whether it is there can be seen
    elif "cannot be told" not in end.output and claims != (state == "entered"):
        yield f"{state}, and says: {end.output!r}"
    elif end.code not in ({4, 130} if claims else {2, 130, 3}):
        yield f"code {end.code} and {state}: {end.output!r}"
    if mode in {8, 9} and end.code != 130:
        yield f"interrupted, and code {end.code}: {end.output!r}"


def trial(scenario, folder, place, mode, *, further):
    """Return the complaints, the end and the state of a release with one fault."""
    scenario.prepare(folder)
    end = faulted(scenario, folder, place, mode)
    status, output, result = forked(lambda: truth(folder, scenario.known), folder)
    if result is None:
        return [f"the ledger cannot be read afterwards: {output[-500:]}"], end, "unreadable"
    failed_checks = list(complaints(end, mode, result, pays=scenario.pays))
    status, output, later = forked(
        lambda: next_runs(folder, dict(result), scenario, further=further), folder
    )
    if later is None:
        later = [f"the next run broke ({status}): {output[-800:]}"]
    return (
        [
            *failed_checks,
            *(
                f"{complaint}: {output[-300:]}" if "fails" in complaint else complaint
                for complaint in later
            ),
        ],
        end,
        result["state"],
    )
