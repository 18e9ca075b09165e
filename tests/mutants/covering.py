"""Which tests run which lines of the trusted packages, and how long each takes."""

import json
import signal
import time
from collections.abc import Generator, Iterable
from pathlib import Path

import coverage
import pytest
from contracts.trusted import TRUSTED

from mutants.generate import Mutant

# What the packages offer by name.
NAMES = "tests/test_project.py::test_names_that_are_handed_on_are_public_and_importable"
# They run the trusted packages too; how rows fit is told by the command alone.
BESIDE = ("tests/plan", "tests/session", "tests/cli/test_check.py")
# They read the code, and fail for changes that compute nothing else.
READ_THE_CODE = ("tests/kernel/test_noise_arguments.py::test_no_floating_point_in_the_source",)


# They make databases and frames at import, whose threads a fork does not have.
THREADED = tuple(
    f"tests/adapters/{name}.py" for name in ("test_read", "test_neighbours", "test_types", "test_units", "neighbours", "pools", "sources")
)
# Fixtures, and parameters of tests, that start a server, and its CPU seconds, which are not those of a test: once for all that use it.
SERVERS = {"spark": 15.0, "postgres": 3.0, "url": 3.0}
LONGEST = 8.0  # CPU seconds of one test while it is recorded; about half of that without coverage


def targets() -> list[str]:
    """Tests of what the trusted packages do."""
    return [*(path for name in TRUSTED for path in (f"src/leastnoise/{name}", f"tests/{name[1:]}")), NAMES, *BESIDE]


def pytest_arguments(tree: Path, targets: Iterable[str]) -> list[str]:
    """For a run of all tests that may notice a mutant, without those that read the code."""
    left_out = [part for test in READ_THE_CODE for part in ("--deselect", test)]
    return ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(tree), *left_out, *targets]


class _TooSlow(BaseException):
    """A test that takes long would seldom be asked about a mutant."""


class Recorder:
    """A pytest plugin: one coverage context and one CPU time a test; slow tests are stopped, and fail.

    What a test was found to take is written when its lines are, so that a recording that was stopped goes on where it was.
    """

    def __init__(self, cover: coverage.Coverage, path: Path) -> None:
        self.cover, self.path, self.failed = cover, path, False

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        done = {test for test, *_ in _known(self.path)}
        items[:] = [item for item in items if item.nodeid not in done]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.cover.switch_context(item.nodeid)
        self.failed = False
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = round(time.process_time() - start, 4)
            self.cover.switch_context("")  # writes the lines
            with self.path.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps([item.nodeid, seconds, self.failed, server_of(item)]) + "\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed


def server_of(item: pytest.Item) -> str:
    """Which server a test starts or finds running, empty for none."""
    names = [item.name.partition("[")[2], *getattr(item, "fixturenames", ())]
    return next((server for server in SERVERS if any(server in name for name in names)), "")


def _known(path: Path) -> list[tuple[str, float, bool, str]]:
    """The tests that were recorded: their names, CPU seconds, whether they failed, and what server they need."""
    return [tuple(json.loads(line)) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def _stop(_number: int, _frame: object) -> None:
    raise _TooSlow


def record(tree: Path, target: Path) -> None:
    """Run all tests on the code as it is, in the tree, and write down in the target what each covers; those that fail are left out."""
    signal.signal(signal.SIGPROF, _stop)
    trusted = [str(tree / "src" / "leastnoise" / name) for name in TRUSTED]
    cover = coverage.Coverage(data_file=str(target / "coverage"), source=trusted)
    cover.load()
    cover.start()
    pytest.main(pytest_arguments(tree, targets()), plugins=[Recorder(cover, target / "tests.jsonl")])
    cover.stop()
    cover.save()
    gather(tree, target)


def gather(tree: Path, target: Path) -> None:
    """Write down for ``Cover`` what was recorded so far."""
    data = coverage.CoverageData(str(target / "coverage"))
    data.read()
    found = {
        str(Path(path).relative_to(tree / "src" / "leastnoise")): {
            line: sorted(filter(None, tests)) for line, tests in data.contexts_by_lineno(path).items()
        }
        for path in data.measured_files()
    }
    known = _known(target / "tests.jsonl")
    own = {
        "seconds": {test: used for test, used, _, _ in known},
        "failed": sorted({test for test, _, bad, _ in known if bad}),
        "servers": {test: server for test, _, _, server in known if server},
    }
    (target / "lines.json").write_text(json.dumps({**own, "lines": found}), "utf-8")


class Cover:
    """What was recorded."""

    def __init__(self, folder: Path) -> None:
        known = json.loads((folder / "lines.json").read_text("utf-8"))
        self.seconds: dict[str, float] = known["seconds"]
        self.failed: list[str] = known["failed"]
        self.servers: dict[str, str] = known["servers"]
        self._lines: dict[str, dict[str, list[str]]] = known["lines"]

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that run a mutant's lines, in order; of a line that only runs at import, all that run its file."""
        lines = self._lines.get(mutant.file, {})
        for first, last in ((mutant.first, mutant.last), (mutant.statement, mutant.last)):
            found = set().union(*(lines.get(str(line), []) for line in range(first, last + 1)))
            if found:
                break
        return self.in_order(found, mutant) if found else self.of_file(mutant)

    def of_file(self, mutant: Mutant) -> list[str]:
        """All tests that run any line of a mutant's file, in order: values may have been kept from an earlier test.

        Of a file that only runs at import, those of the names that packages offer, and its own package's; of `__init__` always the first.
        """
        package = mutant.file.partition("/")[0]
        own = {test for test in self.seconds if test.startswith((f"tests/{package[1:]}/", NAMES))}
        names = {test for test in own if test == f"{NAMES}[{package}]" and mutant.file.endswith("/__init__.py")}
        return self.in_order((set().union(*self._lines.get(mutant.file, {}).values()) or own) | names, mutant)

    def in_order(self, tests: set[str], mutant: Mutant) -> list[str]:
        """Those of the mutant's package first, quick ones before slow ones and these before those that start a server.

        Without those that fail on the code as it is, or read it.
        """
        package = mutant.file.partition("/")[0]
        own = (f"tests/{package[1:]}/", f"src/leastnoise/{package}/", f"{NAMES}[{package}]")
        fit = {test for test in tests - set(self.failed) if not test.startswith(READ_THE_CODE)}
        return sorted(fit, key=lambda test: (not test.startswith(own), self._start(test), self.seconds.get(test, 0.0), test))

    def within(self, tests: list[str], most: float) -> list[str]:
        """The first of them that take no more than ``most`` CPU seconds together, with the servers that they start."""
        total, kept, started = 0.0, list[str](), {""}
        for test in tests:
            server = self.servers.get(test, "")
            total += self.seconds.get(test, 0.0) + (0.0 if server in started else self._start(test))
            started.add(server)
            if total > most:
                break
            kept.append(test)
        return kept

    def _start(self, test: str) -> float:
        return SERVERS.get(self.servers.get(test, ""), 0.0)
