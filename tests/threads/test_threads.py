"""The package limits linear algebra to one thread, and restores the setting afterwards."""

import os
import subprocess
import sys

import pandas as pd
import pytest
import scipy.linalg  # noqa: F401 - its library is the second one
from threadpoolctl import threadpool_info, threadpool_limits

import leastnoise as ln
from leastnoise._progress import RowProgress
from leastnoise._studio import handle_request
from leastnoise._threads import THREAD_VARIABLES
from waiting import HANGS

DOMAIN = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 7))
WORKLOAD = ln.marginals(DOMAIN, ways=1)
ROWS = pd.DataFrame({"sex": ["F", "M", "M"], "age": [1, 2, 2]})


def threads():
    """Return the number of threads of each library for linear algebra."""
    return sorted(
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    )


@pytest.fixture
def two_threads(monkeypatch):
    """Remove all thread settings, so that the libraries would use two threads."""
    for name in THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(limits=2, user_api="blas"):
        threads_before = threads()
        assert len(threads_before) >= 2
        assert set(threads_before) == {2}
        yield threads_before
        assert threads() == threads_before


def make_plan(record):
    return ln.plan(WORKLOAD, ln.PureDP(1), progress=lambda _: record())


def make_release(record):
    plan = make_plan(lambda: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowProgress, "show", lambda *_: record())
        return ln.release(plan, ROWS, seed=1, progress=True)


STUDIO = {
    "text": "[privacy]\nepsilon = 1\n[domain]\na.size = 2\n[[workload]]\nmarginals = { ways = 1 }",
    "folder": ".",
}


@pytest.mark.parametrize(
    "compute",
    [
        make_plan,
        make_release,
        lambda record: ln.compare(WORKLOAD, ln.PureDP(1), progress=lambda _: record()),
        lambda record: handle_request(STUDIO, lambda _: record()),
    ],
    ids=["plan", "release", "compare", "studio"],
)
def test_linear_algebra_uses_one_thread_then_restores(two_threads, compute):
    counts = []
    compute(lambda: counts.append(threads()))
    assert {number for numbers in counts for number in numbers} == {1}


@pytest.mark.slow
@pytest.mark.parametrize(
    "compute",
    [
        lambda release: release.answers,
        lambda release: release.answer(WORKLOAD),
        lambda release: release.covariance("sex"),
        lambda release: release.with_nnls(),
        lambda release: ln.cdf(release, "age"),
        lambda release: ln.quantiles(release, "age", [0.5]),
    ],
)
def test_release_answers_on_one_thread(two_threads, compute):
    release = make_release(lambda: None)
    counts = []

    def watch(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        # The property `answers` only calls a function that computes, and `_threads` sets the limit.
        if (
            event == "call"
            and module.startswith("leastnoise.")
            and "_threads" not in module
            and frame.f_code.co_name != "answers"
        ):
            counts.append(threads())
            if len(counts) == 10:
                sys.setprofile(None)

    sys.setprofile(watch)
    try:
        compute(release)
    finally:
        sys.setprofile(None)
    assert {number for numbers in counts for number in numbers} == {1}


@pytest.mark.parametrize("name", THREAD_VARIABLES)
def test_explicit_thread_limit_is_respected(two_threads, name, monkeypatch):
    monkeypatch.setenv(name, "2")
    counts = []
    make_plan(lambda: counts.append(threads()))
    assert counts == [two_threads] * len(counts) != []


def test_error_takes_the_limit_back(two_threads):
    with pytest.raises(ln.InputError):
        ln.plan(WORKLOAD, ln.PureDP(1), strategy="no such")


LATER = """
import sys
from threadpoolctl import threadpool_info, threadpool_limits
import numpy
from leastnoise._threads import one_thread
threadpool_limits(limits=2, user_api="blas")
def threads():
    return sorted(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
with one_thread():
    print(threads(), "scipy" in sys.modules)
print(threads())
with one_thread():
    with one_thread():
        import scipy.linalg
    print(threads())
print(threads())
"""


def test_library_loaded_later_gets_the_thread_limit():
    environment = {
        name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES
    }
    run = subprocess.run(
        [sys.executable, "-c", LATER],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS,
        env=environment,
    )
    assert run.stdout.splitlines() == ["[1] False", "[2]", "[1, 1]", "[2, 2]"]
