"""The public face: lazy, complete, and the only module without an underscore."""

import os
import subprocess
import sys

import leastnoise as ln


def test_every_public_name_is_there() -> None:
    assert all(getattr(ln, name) is not None for name in ln.__all__)
    assert set(ln.__all__) <= set(dir(ln))


def test_no_public_name_is_a_module_and_every_package_is_internal() -> None:
    code = (
        "import importlib, pkgutil, types\nimport leastnoise as ln\n"
        "packages = [found.name for found in pkgutil.iter_modules(ln.__path__)]\n"
        "for name in packages: importlib.import_module(f'leastnoise.{name}')\n"
        "print([name for name in packages if not name.startswith('_')])\n"
        "print([name for name in ln.__all__ if isinstance(getattr(ln, name), types.ModuleType)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[]"]


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, leastnoise; print([name for name in ('numpy', 'scipy', 'duckdb', 'narwhals', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


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
