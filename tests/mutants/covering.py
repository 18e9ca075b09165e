"""The lines of the trusted packages that each test runs, and the time of each test.

python -m mutants.covering TREE FILE      runs all tests on the code as it is, in the tree,
                                          and writes down what each covers
"""

import json
import sys
import time
from pathlib import Path

import coverage
import pytest

from contracts.trusted import TRUSTED

TESTS = Path(__file__).parents[1]
# The test of the names that the packages export.
NAMES = "tests/test_project.py::test_exported_names_are_public_and_importable"
# These tests run the trusted packages too. Only the command `check` tells how rows fit.
BESIDE = ("tests/domain", "tests/plan", "tests/session", "tests/cli/test_check.py")
# These tests read the code, and fail for changes that have no effect on results.
READ_THE_CODE = (
    "tests/trusted/kernel/test_noise_arguments.py::test_no_floating_point_in_the_source",
)
# Fixtures, and parameters of tests, that start a server, and its CPU seconds, which are not those
# of a test: once for all that use it.
SERVERS = {"": 0.0, "spark": 15.0, "postgres": 3.0, "url": 3.0}
# CPU seconds of a test while coverage is recorded; it takes about half of these without coverage.
# Longer tests are not run on mutants.
LONGEST = 8.0


def targets():
    """Return the tests of the trusted packages' behaviour."""
    return [
        *(f"src/leastnoise/{name}" for name in TRUSTED),
        *(f"tests/{name[1:]}" for name in TRUSTED if (TESTS / name[1:]).is_dir()),
        NAMES,
        *BESIDE,
    ]


class Recorder:
    """A pytest plugin that records the lines, CPU seconds and server of each test."""

    def __init__(self, cover):
        self.cover = cover
        self.tests: dict[str, tuple[float, str]] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.cover.switch_context(item.nodeid)
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.tests[item.nodeid] = time.process_time() - start, server_of(item)
            self.cover.switch_context("")

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.add(report.nodeid)


def server_of(item):
    """Return the server that a test starts or uses, or an empty text."""
    names = [item.name.partition("[")[2], *getattr(item, "fixturenames", ())]
    return next(
        (server for server in SERVERS if server and any(server in name for name in names)), ""
    )


def record(tree, file):
    """Write what `Cover` reads, of the tests that pass and are not slow."""
    source = tree / "src" / "leastnoise"
    cover = coverage.Coverage(data_file=None, source=[str(source / name) for name in TRUSTED])
    recorder = Recorder(cover)
    left_out = [argument for test in READ_THE_CODE for argument in ("--deselect", test)]
    cover.start()
    pytest.main(
        [
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--rootdir",
            str(tree),
            *left_out,
            *targets(),
        ],
        [recorder],
    )
    cover.stop()
    data = cover.get_data()
    lines = {
        str(Path(path).relative_to(source)): {
            line: sorted(tests) for line, tests in data.contexts_by_lineno(path).items()
        }
        for path in data.measured_files()
    }
    tests = {
        test: measured
        for test, measured in recorder.tests.items()
        if test not in recorder.failed and measured[0] <= LONGEST
    }
    file.write_text(json.dumps({"tests": tests, "lines": lines}), "utf-8")


class Cover:
    """The recorded coverage."""

    def __init__(self, folder):
        recorded = json.loads((folder / "lines.json").read_text("utf-8"))
        self._tests: dict[str, tuple[float, str]] = recorded["tests"]
        self._lines: dict[str, dict[str, list[str]]] = recorded["lines"]

    def tests(self, mutant):
        """Return the tests that may notice a mutant, in order.

        First those that run its lines, or else its statement. Then all that run any line of its
        file: values may have been kept from an earlier test. Of a file that only runs at import,
            those of the names that packages offer, and its own package's.
        """
        package = mutant.file.rpartition("/")[0]
        lines = self._lines.get(mutant.file, {})
        of_file = set().union(*lines.values()) or {
            test for test in self._tests if test.startswith((f"tests/{package[1:]}/", NAMES))
        }
        if mutant.file.endswith("/__init__.py"):
            of_file.add(f"{NAMES}[{package}]")
        near: set[str] = set()
        for first_line in (mutant.first, mutant.statement):
            near = near or set().union(
                *(lines.get(str(line), []) for line in range(first_line, mutant.last + 1))
            )
        own_tests = (f"tests/{package[1:]}/", f"src/leastnoise/{package}/", f"{NAMES}[{package}]")

        def order(test):
            """Put the package's tests first, quick ones early, servers last."""
            seconds, server = self._tests[test]
            return test not in near, not test.startswith(own_tests), SERVERS[server], seconds, test

        return sorted((near | of_file) & self._tests.keys(), key=order)

    def seconds(self, tests):
        """Return the CPU seconds of tests without the time of servers."""
        return sum(self._tests[test][0] for test in tests)

    def within(self, tests, most):
        """Return the first tests that take at most ``most`` CPU seconds, with their servers."""
        total = 0.0
        chosen = list[str]()
        started = {""}
        for test in tests:
            seconds, server = self._tests[test]
            total += seconds + (0.0 if server in started else SERVERS[server])
            started.add(server)
            if total > most:
                break
            chosen.append(test)
        return chosen


if __name__ == "__main__":
    record(*map(Path, sys.argv[1:]))
