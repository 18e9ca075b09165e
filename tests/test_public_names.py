"""The public module is lazy and complete, and the only one without an underscore."""

import importlib
import os
import pkgutil
import subprocess
import sys
import types

import pytest

import leastnoise as ln


def test_every_public_name_is_there():
    assert all(getattr(ln, name) is not None for name in ln.__all__)
    assert {name for name in dir(ln) if not name.startswith("__")} == set(ln.__all__)


def test_public_names_are_not_modules():
    packages = [module.name for module in pkgutil.iter_modules(ln.__path__)]
    for name in packages:
        importlib.import_module(f"leastnoise.{name}")
    assert [name for name in packages if not name.startswith("_")] == []
    assert [name for name in ln.__all__ if isinstance(getattr(ln, name), types.ModuleType)] == []


HEAVY = [
    "numpy",
    "scipy",
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "narwhals",
    "matplotlib",
    "rich",
]
HELP = """
from leastnoise._cli import main
sys.argv = ["leastnoise", "--help"]
try:
    main()
except SystemExit as stop:
    if stop.code:
        raise
"""
PLAN = (
    "import leastnoise as ln; ln.plan(ln.queries(ln.Domain(a=ln.Integers(0, 299)), "
    "a='all_ranges'), ln.PureDP(1), seconds=1)"
)
# Not scipy: which strategies the automatic choice has time for depends on the machine, and some of
# them load it.
BESIDE_PLANS = [
    "pandas",
    "leastnoise._trusted.kernel",
    "leastnoise._trusted.reading",
    "leastnoise._estimation",
    "leastnoise._texts",
    "leastnoise._release",
    "leastnoise._pages",
    "leastnoise._publication",
]


@pytest.mark.parametrize(
    ("code", "names", "loaded"),
    [
        ("import leastnoise", HEAVY, []),
        ("import leastnoise._domain", HEAVY, []),
        ("import leastnoise._trusted.reading", HEAVY, ["numpy"]),
        (HELP, sorted({*HEAVY} - {"rich"}), []),
        (PLAN, BESIDE_PLANS, []),
    ],
    ids=["the package", "domains", "adapters", "help", "a plan along one attribute"],
)
def test_imports_load_only_what_is_needed(code, names, loaded):
    environment = os.environ | {"LEASTNOISE_CACHE": "off", "OMP_NUM_THREADS": "1"}
    program = f"import sys\n{code}\nprint([name for name in {names} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == str(loaded)
