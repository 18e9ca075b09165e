"""The names that examples in docstrings use without an import.

They are numpy, pandas, the public module, and every name of the package that has one meaning.
"""

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

# Examples make their own plans and leave nothing in the user's cache folder.
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
    for module in pkgutil.walk_packages(ln.__path__, "leastnoise."):
        if not module.name.endswith("__main__"):
            yield import_module(module.name)


def _one_meaning(names: list[tuple[str, Any]]) -> dict[str, Any]:
    meanings: dict[str, list[Any]] = {}
    for name, value in names:
        if not any(value is other for other in meanings.setdefault(name, [])):
            meanings[name].append(value)
    return {name: values[0] for name, values in meanings.items() if len(values) == 1}


def _exported(module: Any) -> dict[str, Any]:
    """Return the names that a package's ``__init__`` imports, now or lazily."""
    if not hasattr(module, "__path__"):
        return {}
    names = [*getattr(module, "__all__", vars(module)), *getattr(module, "_HOME_OF", ())]
    exports = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {name: value for name, value in exports.items() if not isinstance(value, ModuleType)}


@cache
def _names() -> dict[str, Any]:
    modules = list(_modules())
    public = [(name, getattr(ln, name)) for name in ln.__all__]
    of_packages = [(name, value) for module in modules for name, value in _exported(module).items()]
    defined = [
        (name, value)
        for module in modules
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return _one_meaning(defined) | _one_meaning(of_packages) | dict(public) | TOOLS


@pytest.fixture
def doctest_namespace(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the names that an example sees besides its module's names.

    These are public names, names with one meaning, and all that the package of the module exports.
    """
    module_names = request.node.dtest.globs
    package = import_module(module_names["__name__"].rpartition(".")[0] or "leastnoise")
    names = _exported(package) | _names()
    return {name: value for name, value in names.items() if name not in module_names}
