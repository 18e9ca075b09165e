"""Stored releases, and the programs on the page about the format of measurements."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from example_releases import observation, release  # noqa: F401 - fixtures of tests here

ROOT = Path(__file__).parents[2]
STORED = sorted((ROOT / "tests" / "data" / "releases").glob("1-*"))


@pytest.fixture(scope="session")
def page():
    """Return the functions that the programs of docs/measurements.md define."""
    text = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        # The code comes from a page of this project.
        exec(compile(block, "docs/measurements.md", "exec"), names)  # noqa: S102
    return SimpleNamespace(**names)


@pytest.fixture(params=STORED, ids=lambda path: path.name)
def stored(request):
    """Return the directory of a stored release."""
    return request.param


@pytest.fixture
def laplace():
    return ROOT / "tests" / "data" / "releases" / "1-laplace"
