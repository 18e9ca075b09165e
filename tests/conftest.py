"""Settings of all tests: no pictures, no kept plans, fixed seeds of Hypothesis."""

import atexit
import gc
import os

import hypothesis
import pytest

from forked import ForkServer

# A picture takes a second, and more where the machine is busy. Tests of pictures switch them on.
os.environ["LEASTNOISE_CHARTS"] = "off"
# Tests make their own plans, unless they use the fixture `kept_plans`.
os.environ["LEASTNOISE_CACHE"] = "off"

# Example contributions, which are tested in a copy of the project.
collect_ignore_glob = ["contributing/parts/*"]

hypothesis.settings.register_profile(
    "project", max_examples=40, deadline=None, derandomize=True, database=None, print_blob=True
)
hypothesis.settings.load_profile("project")


@pytest.fixture
def kept_plans(tmp_path_factory, monkeypatch):
    """Keep plans for the whole run of the tests, so that the same question is planned once."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    monkeypatch.setenv("LEASTNOISE_CACHE", "on")
    monkeypatch.setenv("LEASTNOISE_CACHE_DIR", str(shared / "plans"))


@pytest.fixture(scope="session")
def fork_server():
    """Start a server that forks processes which have imported the package."""
    server = ForkServer()
    yield server
    server.close()


def pytest_collection_modifyitems(items):
    """Mark the tests of Spark as slow: a session takes many seconds to start."""
    for item in items:
        if "[spark" in item.name or "spark_session" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep what is collected out of the garbage collector, which would search it many times."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        atexit.register(gc.unfreeze)  # so that libraries clean up at the end as usual
