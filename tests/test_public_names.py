"""The public face: lazy, complete, and functions where packages have the same name."""

import subprocess
import sys

import leastnoise as ln


def test_every_public_name_is_there() -> None:
    assert all(getattr(ln, name) is not None for name in ln.__all__)
    assert set(ln.__all__) <= set(dir(ln))


def test_plan_and_release_are_functions_whatever_was_imported_before() -> None:
    code = (
        "import leastnoise.plan, leastnoise.release, leastnoise.session\n"
        "from leastnoise.plan import Plan\nfrom leastnoise.release import Release\nimport leastnoise as ln\n"
        "print(ln.plan.__name__, ln.release.__name__, ln.Plan is Plan, ln.Release is Release)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["plan", "release", "True", "True"]


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, leastnoise; print([name for name in ('numpy', 'scipy', 'duckdb', 'narwhals', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
