"""The public face: lazy, complete, and the only module without an underscore."""

import importlib
import os
import pkgutil
import subprocess
import sys
import types

import leastnoise as ln


def test_every_public_name_is_there() -> None:
    assert all(getattr(ln, name) is not None for name in ln.__all__)
    assert {name for name in dir(ln) if not name.startswith("__")} == set(ln.__all__)


def test_no_public_name_is_a_module_and_every_package_is_internal() -> None:
    packages = [found.name for found in pkgutil.iter_modules(ln.__path__)]
    for name in packages:
        importlib.import_module(f"leastnoise.{name}")
    assert [name for name in packages if not name.startswith("_")] == []
    assert [name for name in ln.__all__ if isinstance(getattr(ln, name), types.ModuleType)] == []


def test_importing_the_package_and_two_of_its_rooms_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "def heavy(): return [name for name in ('numpy', 'scipy', 'pandas', 'polars', 'pyarrow', 'duckdb', 'narwhals', 'rich')"
        " if name in sys.modules]\n"
        "import leastnoise; print(heavy())\n"
        "import leastnoise._domain; print(heavy())\n"
        "import leastnoise._adapters; print(heavy())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[]", "['numpy']"]


def test_a_plan_along_one_attribute_loads_what_plans_alone() -> None:
    """Not said of scipy: which strategies the automatic choice has time for depends on the machine, and some of them load it."""
    code = (
        "import sys, leastnoise as ln\n"
        "ln.plan(ln.queries(ln.Domain(a=ln.Integers(0, 299)), a='all_ranges'), ln.PureDP(1), seconds=1)\n"
        "rest = ('pandas', 'leastnoise._kernel', 'leastnoise._adapters', 'leastnoise._estimate', 'leastnoise._release')\n"
        "print([name for name in rest if name in sys.modules])"
    )
    own = os.environ | {"LEASTNOISE_CACHE": "off", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=own)
    assert done.stdout.strip() == "[]"
