"""What holds for every test: fixed seeds, and a floor under the number of tests of a full run."""

import atexit
import gc
import os
from collections.abc import Generator

import hypothesis
import pytest

# Pictures take a second a release, and more where the machine is busy; the tests of charts and of
# the report ask for them.
os.environ["LEASTNOISE_CHARTS"] = "off"
# Every test plans for itself, but for those that ask for `kept_plans`, as all of the command line
# do.
os.environ["LEASTNOISE_CACHE"] = "off"

# Raise it when tests are added; a full run that collects fewer fails, so tests cannot get lost in
# silence.
LEAST_NUMBER_OF_TESTS = 8000

# Example contributions, which are tested in a copy of the project.
collect_ignore_glob = ["contributing/parts/*"]

hypothesis.settings.register_profile(
    "project", max_examples=40, deadline=None, derandomize=True, database=None, print_blob=True
)
hypothesis.settings.load_profile("project")


@pytest.fixture
def kept_plans(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep plans for the whole run of the tests, so that the same question is planned once."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    monkeypatch.setenv("LEASTNOISE_CACHE", "on")
    monkeypatch.setenv("LEASTNOISE_CACHE_DIR", str(shared / "plans"))


def is_full_run(config: pytest.Config) -> bool:
    """Tell whether pytest was started on the whole project, with nothing deselected."""
    narrowed = [
        config.option.keyword,
        config.option.markexpr,
        config.option.deselect,
        config.option.ignore,
        config.option.ignore_glob,
    ]
    narrowed += [config.getoption("lf", default=False), config.getoption("stepwise", default=False)]
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not any(narrowed)


def too_few(config: pytest.Config, collected: int) -> str | None:
    """Return the complaint about a full run that collected too few tests, or None."""
    if not is_full_run(config) or collected >= LEAST_NUMBER_OF_TESTS:
        return None
    return (
        f"only {collected} tests were collected; at least {LEAST_NUMBER_OF_TESTS} are expected. "
        f"Find the missing ones, or lower LEAST_NUMBER_OF_TESTS in tests/conftest.py with a reason."
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end, so that no search for garbage goes through it, then or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        atexit.register(gc.unfreeze)  # what libraries made is taken apart as ever


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a full run that lost tests; with xdist only the controller judges."""
    if "PYTEST_XDIST_WORKER" in os.environ or session.exitstatus != pytest.ExitCode.OK:
        return
    if too_few(session.config, session.testscollected):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say why a full run failed for want of tests."""
    complaint = too_few(
        config, terminalreporter._session.testscollected
    )  # the reporter has no public way to the session
    if complaint:
        terminalreporter.write_sep("=", "TOO FEW TESTS", red=True)
        terminalreporter.write_line(complaint)
