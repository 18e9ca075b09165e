"""One mutant after the other against its tests, each in a process forked from one that has loaded what it needs.

*In place*: all tests are collected once; a child gives the changed function its new code and runs the tests that cover it, in order, until
one fails. *Afresh*, for what is no function's code, and to confirm every survivor: the changed file is on the disk, and a child imports
package and tests anew, so that neither values computed at import nor other processes see the old code.
"""

import gc
import importlib
import inspect
import os
import resource
import select
import signal
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import pytest

from mutants.covering import THREADED, Cover, pytest_arguments, targets
from mutants.generate import Mutant, mutated

# Loaded before any fork: not the package, which is imported anew, nor what starts threads at import.
LIBRARIES = ("numpy", "scipy.stats", "scipy.optimize", "scipy.sparse.linalg", "mpmath", "narwhals", "duckdb", "click", "rich.console")
# No more than imported: they start threads where something is made with them.
LIBRARIES += ("pandas", "polars", "pyarrow.parquet", "sqlglot", "ibis.backends.duckdb", "pyspark.sql", "adbc_driver_postgresql.dbapi")
# CPU seconds beyond three times what the tests took when they were recorded, where later ones found values kept by earlier ones.
_PATIENCE, _LONG_PATIENCE = 15.0, 90.0
_MEMORY = 12 * 2**30
_LOOK = 0.5  # seconds from one look at a child to the next
_PASSED, _KILLED, _NOT_A_FUNCTION = 10, 11, 12


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of a mutant.

    Attributes:
        state: ``killed``, ``time`` (killed by the limit of CPU time), ``survived``; in place also ``undecided`` (no more patience) and
            ``no function``.
        tests: how many tests it was to meet.
        by: the test that failed, or the reason.
        seconds: CPU time.
    """

    state: str
    tests: int
    by: str
    seconds: float


Tell = Callable[[Mutant | None, Outcome], None]


def forked(work: Callable[[], tuple[int, str]], limit: float) -> tuple[int, str, float]:
    """Run in a child and return its code, its message and its CPU time; the code is that of a signal, negative, if one ended it.

    Args:
        work: what the child does.
        limit: CPU seconds; or eight times as many, and 60, in which nothing of the child wants to run.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code, text = _KILLED, "ended by itself"
        with suppress(BaseException):
            os.setpgid(0, 0)
            os.close(reading)
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silence, stream)
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 5))
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            code, text = work()
        os.write(writing, text.encode()[:4000])
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        idle = 0.0  # a mutant that waits for ever uses no CPU time
        while not select.select([told], [], [], _LOOK)[0]:
            idle += 0 if wants_to_run(child) else _LOOK
            if idle > 8 * limit + 60:
                os.killpg(child, signal.SIGKILL)
        text = told.read().decode()
    _, status, used = os.wait4(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # whatever it started
    return os.waitstatus_to_exitcode(status), text, used.ru_utime + used.ru_stime


def wants_to_run(group: int) -> bool:
    """Whether any process of a group computes, or waits for a processor or a disk: a busy machine makes none idle.

    Where the system does not tell (outside Linux), all are.
    """
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, own = path.read_text("utf-8", "replace").rpartition(")")[2].split()[:3]
            if int(own) == group and state in "RD":
                return True
    return False


def outcome(code: int, text: str, seconds: float, tests: int) -> Outcome:
    """Read what a child said."""
    if code in {_PASSED, _NOT_A_FUNCTION}:
        return Outcome("survived" if code == _PASSED else "no function", tests, text, seconds)
    if code in {-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL}:
        return Outcome("time", tests, "limit of time", seconds)
    return Outcome("killed", tests, text if code == _KILLED else f"ended with {code}", seconds)


def load_libraries() -> None:
    """Import what takes long and does not change."""
    for name in LIBRARIES:
        importlib.import_module(name)


class _Verdict:
    """A pytest plugin: remembers the first failure."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = f"import of {report.nodeid}"


# --- in place --------------------------------------------------------------------------------------------------------------------


def functions_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code objects of a module's functions and methods, not those nested in them."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_flags & inspect.CO_NEWLOCALS and not constant.co_name.endswith("comp>") and constant.co_name != "<genexpr>":
                yield constant
            else:  # the body of a class, or a comprehension that runs at import
                yield from functions_of(constant)


def replace_code(path: Path, text: str) -> bool:
    """Give the one function whose code differs its new code, in every place that holds it; False if the change is elsewhere."""
    old, new = (compile(one, str(path), "exec", dont_inherit=True) for one in (path.read_text("utf-8"), text))
    before, after = list(functions_of(old)), list(functions_of(new))
    if len(before) != len(after) or _skeleton(old, before) != _skeleton(new, after):
        return False
    changed = [(one, other) for one, other in zip(before, after, strict=True) if not _same(one, other)]
    if len(changed) != 1:
        return False
    (one, other) = changed[0]
    gc.unfreeze()  # what is frozen is in no list, and tests freeze what they have collected
    found = [
        made
        for made in gc.get_objects()
        if isinstance(made, types.FunctionType)
        and made.__code__.co_filename == str(path)
        and (made.__code__.co_qualname, made.__code__.co_firstlineno) == (one.co_qualname, one.co_firstlineno)
    ]
    if not found or any(made.__code__.co_freevars != other.co_freevars for made in found):
        return False
    for made in found:
        made.__code__ = other
    return True


def _same(one: types.CodeType, other: types.CodeType) -> bool:
    return _shape(one) == _shape(other)


def _shape(code: types.CodeType) -> tuple[object, ...]:
    constants = tuple(_shape(one) if isinstance(one, types.CodeType) else (type(one), repr(one)) for one in code.co_consts)
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)


def _skeleton(module: types.CodeType, functions: list[types.CodeType]) -> object:
    """What runs at import: the code of the module and of its classes, and not that of its functions."""
    own = {id(one) for one in functions}

    def of(code: types.CodeType) -> object:
        constants = tuple(
            code.co_qualname if id(one) in own else of(one) if isinstance(one, types.CodeType) else (type(one), repr(one))
            for code in (code,)
            for one in code.co_consts
        )
        return (code.co_code, constants, code.co_names)

    return of(module)


def until_one_fails(session: pytest.Session, tests: Sequence[pytest.Item], verdict: _Verdict) -> tuple[int, str]:
    """Run tests in order; what says the verdict, and the first that failed. Without tests nothing can."""
    for test, after in zip_longest(tests, tests[1:]):
        session.config.hook.pytest_runtest_protocol(item=test, nextitem=after)
        if verdict.failed:
            session._setupstate.teardown_exact(None)  # servers that it has started
            return _KILLED, verdict.failed
    return _PASSED, ""


class InPlace:
    """A pytest plugin that runs mutants instead of tests, each in a fork of the process that has collected them.

    None stands for the code as it is, which must survive.
    """

    def __init__(self, tree: Path, cover: Cover, mutants: Sequence[Mutant | None], most: float, tell: Tell) -> None:
        self.source = tree / "src" / "leastnoise"
        self.cover, self.mutants, self.most, self.tell = cover, mutants, most, tell

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        known = {item.nodeid: item for item in session.items}
        verdict = _Verdict()
        session.config.pluginmanager.register(verdict)
        texts = mutated(self.source, [mutant for mutant in self.mutants if mutant])
        for mutant in self.mutants:
            chosen = self.cover.tests(mutant) if mutant else [test for test in known if test not in self.cover.failed]
            tests = [known[test] for test in self.cover.within([test for test in chosen if test in known], self.most)]
            text = texts[mutant.key] if mutant else ""

            def work(tests: list[pytest.Item] = tests, text: str = text, mutant: Mutant | None = mutant) -> tuple[int, str]:
                if mutant and not replace_code(self.source / mutant.file, text):
                    return _NOT_A_FUNCTION, ""
                return until_one_fails(session, tests, verdict)

            limit = _PATIENCE + 3 * sum(self.cover.seconds.get(test.nodeid, 0.0) for test in tests)
            found = outcome(*forked(work, limit), len(tests))
            self.tell(mutant, replace(found, state="undecided") if found.state == "time" else found)
        return True


def in_place(tree: Path, cover: Cover, mutants: Sequence[Mutant | None], most: float, tell: Tell) -> None:
    """Run mutants of functions; the working directory is the tree.

    Args:
        tree: the copy of the project.
        cover: which tests cover what.
        mutants: what to run; None stands for the code as it is.
        most: CPU seconds of tests, by what they took on the code as it is; the others are left out.
        tell: is given each outcome.
    """
    load_libraries()
    recorded = [one for one in targets() if any(test.startswith(one) for test in cover.seconds)]
    threaded = [f"--ignore={tree / one}" for one in THREADED]
    pytest.main([*threaded, *pytest_arguments(tree, recorded)], plugins=[InPlace(tree, cover, mutants, most, tell)])


# --- afresh ----------------------------------------------------------------------------------------------------------------------


def afresh(tree: Path, cover: Cover, mutant: Mutant | None, tests: list[str], most: float) -> Outcome:
    """Run one mutant with everything imported anew; this process must not have imported the package.

    Args:
        tree: the copy of the project, the working directory.
        cover: which tests cover what.
        mutant: what to change; None for the code as it is.
        tests: in order.
        most: CPU seconds of tests, by what they took on the code as it is; the others are left out.
    """
    if any(name.partition(".")[0] == "leastnoise" for name in sys.modules):
        raise RuntimeError("this process has imported the package")
    chosen = cover.within(tests, most)
    path = tree / "src" / "leastnoise" / mutant.file if mutant else None
    original = path.read_text("utf-8") if path else ""
    if path and mutant:
        for old in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            old.unlink()
        path.write_text(mutated(tree / "src" / "leastnoise", [mutant])[mutant.key], "utf-8")

    def work() -> tuple[int, str]:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        verdict = _Verdict()
        arguments = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(tree)]
        code = pytest.main([*arguments, *chosen], plugins=[verdict])
        return (_PASSED, "") if code == 0 else (_KILLED, verdict.failed or f"pytest ended with {code}")

    try:
        return outcome(*forked(work, _LONG_PATIENCE + 3 * most), len(chosen))
    finally:
        if path:
            path.write_text(original, "utf-8")
