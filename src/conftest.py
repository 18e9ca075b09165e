"""What examples in docstrings name without an import: numpy, pandas, the public module, and every name of the package with one meaning."""

import io
import os
import pathlib
import pkgutil
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # noqa: TID253 - examples ask for it
import pytest

import leastnoise as ln

# Examples plan for themselves, and leave nothing in the folder of whoever runs them.
os.environ["LEASTNOISE_CACHE"] = "off"
TOOLS = {
    "np": np,
    "ln": ln,
    "pd": pd,
    "pa": pa,
    "io": io,
    "os": os,
    "pathlib": pathlib,
    "tempfile": tempfile,
    "Fraction": Fraction,
}


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(ln.__path__, "leastnoise."):
        if not found.name.endswith("__main__"):
            yield import_module(found.name)


def _one_meaning(names: list[tuple[str, Any]]) -> dict[str, Any]:
    meanings: dict[str, list[Any]] = {}
    for name, value in names:
        if not any(value is other for other in meanings.setdefault(name, [])):
            meanings[name].append(value)
    return {name: values[0] for name, values in meanings.items() if len(values) == 1}


def _handed_on(module: Any) -> dict[str, Any]:
    """What a package hands on: what its ``__init__`` imports, or keeps for when it is asked for."""
    if not hasattr(module, "__path__"):
        return {}
    names = [*getattr(module, "__all__", vars(module)), *getattr(module, "_HOME_OF", ())]
    found = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {name: value for name, value in found.items() if not isinstance(value, ModuleType)}


@cache
def _names() -> dict[str, Any]:
    modules = list(_modules())
    public = [(name, getattr(ln, name)) for name in ln.__all__]
    of_packages = [
        (name, value) for module in modules for name, value in _handed_on(module).items()
    ]
    defined = [
        (name, value)
        for module in modules
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return _one_meaning(defined) | _one_meaning(of_packages) | dict(public) | TOOLS


@pytest.fixture
def doctest_namespace(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What an example sees beside its own module: the public names, those with one meaning, and of the others what its package exports."""
    own = request.node.dtest.globs
    package = import_module(own["__name__"].rpartition(".")[0] or "leastnoise")
    names = _handed_on(package) | _names()
    return {name: value for name, value in names.items() if name not in own}
