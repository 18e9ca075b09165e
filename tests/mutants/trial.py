"""A mutant on disk against its tests, in new processes."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mutants.generate import mutated
from waiting import HANGS

FIRST = 60  # tests that run before the files of further tests are imported
# The most CPU seconds of tests that are run on a mutant, as measured on the unchanged code.
MOST = 60.0
# CPU seconds that tests may take beyond three times their recorded seconds. In the record, some
# tests used values that earlier tests had cached.
PATIENCE = 90.0
# The first words of an outcome if no test failed, because a change broke a conftest or the run
# itself.
ENDED = "ended with"
# The program runs pytest within limits of CPU seconds and memory.
PROGRAM = """
import resource, sys, pytest
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30, 12 * 2**30))
sys.exit(pytest.main(sys.argv[2:]))
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one mutant.

    Attributes:
        state: ``killed``, ``time`` (killed by a limit of time) or ``survived``.
        tests: how many it was to meet.
        by: the test that failed, or the reason.
    """

    state: str
    tests: int
    by: str


def run(tree, cover, mutant, tests):
    """Run one mutant until a test fails; None stands for the code as it is.

    Args:
        tree: the copy of the project.
        cover: how long the tests take.
        mutant: what to change.
        tests: in order; those beyond `MOST` are left out.

    Raises:
        RuntimeError: no test failed, and pytest ended early without the change too, so that nothing
            is known about it.
    """
    chosen = cover.within(tests, MOST)
    with changed(tree / "src" / "leastnoise", mutant):
        for tests_of_process in filter(None, (chosen[:FIRST], chosen[FIRST:])):
            state, by = run_tests(
                tree, tests_of_process, PATIENCE + 3 * cover.seconds(tests_of_process)
            )
            if state != "survived":
                break
        else:
            return Outcome("survived", len(chosen), "")
    if (
        mutant
        and by.startswith(ENDED)
        and (outcome := run(tree, cover, None, tests_of_process)).state != "survived"
    ):
        raise RuntimeError(
            f"The tests of {mutant.name} do not run on the code as it is either: {outcome.by}"
        )
    return Outcome(state, len(chosen), by)


@contextmanager
def changed(source, mutant):
    """Replace the source by the change, without bytecode, and restore it at the end."""
    for leftover in source.rglob("*.kept"):
        leftover.replace(leftover.with_suffix(".py"))
    if mutant is None:
        yield
        return
    path = source / mutant.file
    text = mutated(source, mutant)
    for old in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        old.unlink()
    original = path.replace(path.with_suffix(".kept"))
    path.write_text(text, "utf-8")
    try:
        yield
    finally:
        original.replace(path)


def run_tests(tree, tests, limit):
    """Run tests until one fails or the CPU seconds are used; return state and reason."""
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "told").open("w+") as report:
        (Path(folder) / "tests").write_text("\n".join(tests), "utf-8")
        options = [
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--rootdir",
            str(tree),
            f"@{folder}/tests",
        ]
        command = [sys.executable, "-c", PROGRAM, str(int(limit) + 1), *options]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            command, cwd=tree, env=environment, stdout=report, stderr=report, start_new_session=True
        ) as process:
            try:
                code = process.wait(HANGS + limit)
            except subprocess.TimeoutExpired:  # a mutant that waits for ever uses no CPU time
                code = -signal.SIGKILL
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it, or whatever it started
        report.seek(0)
        failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", report.read(), flags=re.MULTILINE)
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        return "time", "limit of time"
    if not code:
        return "survived", ""
    return "killed", failed[1] if failed else f"{ENDED} {code}"
