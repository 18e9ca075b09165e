"""Switches and folders that environment variables set."""

import subprocess
import sys

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise import _environment as environment
from leastnoise._environment import CACHE, CACHE_FOLDER, CHARTS, DEBUG, PROGRESS
from leastnoise._planning import plan_folder

SWITCHES = (CACHE, CHARTS, DEBUG, PROGRESS)
WORKLOAD = ln.queries(ln.Domain(age=ln.Integers(0, 7)), age="identity")
PEOPLE = pd.DataFrame({"age": [1, 2, 2]})


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("on", True),
        ("ON", True),
        ("1", True),
        ("true", True),
        ("Yes", True),
        ("off", False),
        ("Off", False),
        ("0", False),
        ("FALSE", False),
        ("no", False),
    ],
)
def test_switch_reads_its_values(monkeypatch, switch, value, expected):
    monkeypatch.setenv(switch, value)
    assert environment.is_on(switch) is expected


@pytest.mark.parametrize("switch", SWITCHES)
def test_switch_has_its_default_without_a_value(monkeypatch, switch):
    is_on_by_default = switch != DEBUG
    monkeypatch.delenv(switch, raising=False)
    assert environment.is_on(switch) is is_on_by_default
    monkeypatch.setenv(switch, "")
    assert environment.is_on(switch) is is_on_by_default


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("value", ["never", "always", "2", "30", "y", "plans", "/srv/plans", " on"])
def test_switch_refuses_other_values(monkeypatch, switch, value):
    monkeypatch.setenv(switch, value)
    message = f"{switch} must be on, off, 1, 0, true, false, yes or no; got '{value}'"
    with pytest.raises(ln.InputError, match=message):
        environment.is_on(switch)


def test_absolute_cache_folder_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE, "on")
    monkeypatch.setenv(CACHE_FOLDER, str(tmp_path))
    assert plan_folder() == tmp_path


@pytest.mark.parametrize("value", ["on", "plans", "./plans", "../plans", "~/plans"])
def test_cache_folder_must_be_absolute(monkeypatch, value):
    monkeypatch.setenv(CACHE, "on")
    monkeypatch.setenv(CACHE_FOLDER, value)
    with pytest.raises(ln.InputError, match=f"{CACHE_FOLDER} must be an absolute folder"):
        plan_folder()


@pytest.mark.parametrize(
    ("name", "value"),
    [(CACHE, "plans"), (CACHE_FOLDER, "plans"), (CHARTS, "never"), (PROGRESS, "30"), (DEBUG, "x")],
)
def test_release_is_refused_before_anything_is_written(monkeypatch, tmp_path, name, value):
    plan = ln.plan(WORKLOAD, ln.PureDP(1), strategy="identity")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)
    with pytest.raises(ln.InputError, match=name):
        ln.release(plan, PEOPLE, ledger=tmp_path / "people.ledger", out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_switches_make_no_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    for value in ("on", "1", "true", "yes", "off", "0", "false", "no"):
        monkeypatch.setenv(CACHE, value)
        ln.plan(WORKLOAD, ln.PureDP(1), strategy="identity")
    assert [path.name for path in tmp_path.iterdir()] == ["user"]


WITHOUT_POSIX = """
import pkgutil, sys
from importlib import import_module

for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None  # as on Windows
import leastnoise

for module in pkgutil.walk_packages(leastnoise.__path__, "leastnoise."):
    import_module(module.name)
domain = leastnoise.Domain(sex=["F", "M"])
with import_module("leastnoise._error").memory_limit():
    leastnoise.plan(leastnoise.marginals(domain, ways=1), leastnoise.PureDP(1))
"""


def test_modules_of_posix_are_not_needed_to_import_and_plan():
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX], check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
