"""The command `profile`: its first output, its payment, and the release of its draft."""

import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

import leastnoise as ln
from cli.conftest import PROGRAM
from waiting import HANGS

ROWS = 3000
SEED = 5


@pytest.fixture
def data(folder, monkeypatch):
    """Write a CSV file with a number and a text to an otherwise empty current folder."""
    data_folder = folder / "data"
    data_folder.mkdir()
    monkeypatch.chdir(data_folder)
    random = np.random.default_rng(SEED)
    lines = zip(
        random.normal(50, 9, ROWS).round(1), random.choice(["a", "other"], ROWS), strict=True
    )
    text = "size,colour\n" + "".join(f"{size},{colour}\n" for size, colour in lines)
    path = data_folder / "people.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_profile_is_paid_once_and_its_draft_releases(data, run):
    first_result = run("profile", "people.csv", "--epsilon", "1", "--total", "3")
    assert first_result.code == 0, first_result.err
    assert first_result.out.startswith("costs     epsilon = 1")
    repeated = run("profile", "people.csv", "--epsilon", "1", "--total", "3")
    assert repeated.code == 0, repeated.err
    ledger = ln.Ledger.open(data.with_suffix(".ledger"))
    assert [float(entry.charge.epsilon) for entry in ledger.entries()] == [1.0]
    released = run("release", "people-profile/spec.toml", "--out", "released")
    assert released.code == 0, released.err
    assert float(ledger.left().epsilon) == 0.0


def test_search_precedes_the_tables(data, run):
    arguments = ["profile", "people.csv", "--epsilon", "2", "--delta", "1e-6", "--total", "4"]
    assert run(*arguments).code == 0
    draft = Path("people-profile/spec.toml")
    domain = tomllib.loads(draft.read_text(encoding="utf-8"))["domain"]
    assert sorted(domain["colour"]["categories"]) == ["a", "other"]
    assert domain["colour"]["outside"] == "cell"
    assert "bins" in domain["size"]
    draft.write_text("edited", encoding="utf-8")
    charges = ln.Ledger.open(data.with_suffix(".ledger")).entries()
    assert [bool(entry.charge.delta) for entry in charges] == [True, True, False]
    assert run(*arguments).code == 0
    assert len(ln.Ledger.open(data.with_suffix(".ledger")).entries()) == len(charges)
    assert draft.read_text(encoding="utf-8") == "edited"
    draft.unlink()
    assert run(*arguments).code == 0
    assert run("plan", str(draft)).code == 0
    released = run("release", "people-profile/profile.toml", "--out", "people-profile/release")
    assert "Already released" in released.out


def test_dry_run_pays_and_writes_nothing(data, run):
    result = run("profile", "people.csv", "--epsilon", "1", "--dry-run")
    assert result.code == 0
    assert "size as number" in result.out
    assert sorted(data.parent.iterdir()) == [data]


def test_profile_without_a_budget_is_refused(data, run):
    result = run("profile", "people.csv")
    assert result.code == 2
    assert "--epsilon" in result.err
    assert sorted(data.parent.iterdir()) == [data]


def test_another_profile_in_the_folder_is_refused(data, run):
    seeded = ["--seed", "1", "--out", "p"]
    assert run("profile", "people.csv", "--epsilon", "1", *seeded).code == 0
    other_result = run("profile", "people.csv", "--epsilon", "2", *seeded)
    assert other_result.code == 2
    assert "has another profile" in other_result.err
    assert not data.with_suffix(".ledger").exists()


def test_total_below_the_profile_is_refused(data, run):
    result = run("profile", "people.csv", "--epsilon", "1", "--total", "1/2")
    assert result.code == 2
    assert "total must be at least" in result.err
    assert not data.with_suffix(".ledger").exists()


def test_killed_profile_is_finished_without_paying_again(data, run, fork_server):
    """The process dies after the payment, as it writes the page."""
    arguments = ["profile", "people.csv", "--epsilon", "1"]
    dying = (
        "import os, leastnoise._profile._run as r\n"
        "r.render_page = lambda *_: os._exit(9)\n" + PROGRAM
    )
    killed = fork_server.start(dying, arguments, dict(os.environ))
    assert killed.wait(HANGS) == 9
    assert not Path("people-profile/spec.toml").exists()
    assert run(*arguments).code == 0
    assert Path("people-profile/spec.toml").exists()
    assert len(ln.Ledger.open(data.with_suffix(".ledger")).entries()) == 1
