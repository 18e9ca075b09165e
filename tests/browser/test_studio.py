"""The studio in real browsers: a clean console, keyboard use, accessibility, and widths.

Needs what test_browser.py needs; without it these tests are skipped.
"""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from browser.conftest import BROWSERS, WHOLE, is_sound
from leastnoise._spec import read_spec
from studio.conftest import SERIES, SPEC, serving

MEANS = (
    '[[workload]]\nmeans = { of = "pay", by = ["sex"] }\n[measures.pay]\ncolumn = "pay"\n'
    "clip = [0, 100]\n"
)


def used(found_by, kind, folder, mode, name=None, text=""):
    """Use a studio in a browser, with a release or spec of this name and text."""
    if text:
        (folder / name).write_text(text)
    with serving(name and folder / name) as client:
        address = f"http://{client.host}{client.first}"
        findings = found_by(kind, "studio.mjs", address, mode, *[folder] * WHOLE)
    page = address.partition("?")[0]
    assert is_sound(findings, page)
    assert findings["address"] == page
    assert all(findings.get("reached", []))
    return findings


# One browser uses the page that begins, its fields and its keys, and the other all further pages;
# `make browsers` sends both to every page.
@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["firefox"])
def test_studio_saves_spec_by_keyboard_on_a_phone(found_by, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {
        "customer_id": [1, 2],
        "sex": ["F", "M"],
        "age": [30, 40],
        "pay": [1.5, 2.5],
        "tags": [[1], [2]],
        "weight": [1.5, 2],
    }
    pd.DataFrame(columns).to_parquet("people.parquet")
    findings = used(found_by, kind, tmp_path, "begin")
    assert (findings["english"], findings["german"]) == (
        "Choose your data",
        "Eine Spezifikation f\u00fcr people.parquet",
    )
    assert findings["axe_begin"] == []
    assert all(over <= 0 for over in findings["narrow"])
    assert findings["dragged"] == [
        "15",
        "16",
        "17",
        "18",
        "18",
        "0, 18, 65",
    ]  # every edge on the way is read
    assert findings["groups"] == "Gruppen: 0-18 | 19-64 | 65+"
    assert findings["open"] == ["age"]
    assert findings["undone"] == ["5", "0 \u2013 99; [0, 19, 65]; Jahrfünft"]
    assert findings["refused"] == (
        "die Höchstzahl der Zeilen ist ungültig (angegeben: ''); "
        "erlaubt ist eine ganze Zahl, mindestens 1."
    )
    assert (findings["focus"], findings["rows"][0], findings["again"]) == (
        "result",
        "Zeilen nach sex und group",
        "people.toml planen",
    )
    assert findings["invented"].startswith("ERFUNDEN")
    assert "leastnoise release people.toml --out people-release" in findings["commands"]
    saved = read_spec(tmp_path / "people.toml")
    assert (saved.privacy.unit_column, saved.privacy.max_rows) == ("customer_id", 20)
    assert [statistic.name for statistic in saved.workload.statistics] == [
        "mean of pay weighted by weight by sex"
    ]
    assert saved.domain.measure("weight").unit * 4 == 1


@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["chrome"])
def test_planning_works_in_a_browser(found_by, kind, tmp_path):
    findings = used(found_by, kind, tmp_path, "plan", "people.toml", SPEC)
    assert (findings["again"], findings["saved"], findings["shown"]) == (
        "Plan people.toml",
        "Saved: people.toml",
        4,
    )
    assert findings["before"] == findings["first"]
    assert findings["size"] == "1.26"  # ten steps of a hundredth of a decade
    assert all(
        float(margin_after) < float(margin_before)
        for margin_before, margin_after in zip(findings["first"], findings["second"], strict=True)
    )
    saved = read_spec(tmp_path / "people.toml")
    assert saved.privacy.budget == ln.PureDP("1.26")
    assert len(saved.workload.products) == 7
    assert saved.workload.products[1].weight == 4


@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["chrome"])
def test_studio_pages_of_one_spec_share_saved_state(found_by, kind, tmp_path):
    findings = used(
        found_by, kind, tmp_path, "tabs", "people.toml", SPEC.replace('margin = "60"\n', MEANS)
    )
    assert (findings["shown"], findings["unsaved"], findings["error"]) == ("1", "", "")
    assert "changed on another page" in findings["refused"]
    assert [read_spec(tmp_path / name).privacy.budget for name in ("people.toml", "two.toml")] == [
        ln.PureDP(3),
        ln.PureDP(2),
    ]
    assert not (tmp_path / "none.toml").exists()
    assert findings["told"]
    assert findings["visible"] == [True] * 13
    assert "the margin of a mean must be given with a size" in findings["bulk"]
    assert "No table has a target" in findings["vain"]


def test_studio_horizon_moves_by_keyboard_on_a_phone(found_by, tmp_path):
    findings = used(
        found_by,
        "chrome",
        tmp_path,
        "horizon",
        "people.toml",
        f'{SERIES}[output]\nlanguage = "de"\n',
    )
    assert findings["narrow"] <= 0
    facts_of_views = [
        dict(zip(view[::2], view[1::2], strict=True))
        for view in (findings["first"], findings["longer"], findings["shortest"])
    ]
    margins_of_views = [
        {name: text for name, text in facts.items() if name.startswith("Fehlerspannen, ")}
        for facts in facts_of_views
    ]
    assert [facts["Perioden"] for facts in facts_of_views] == [
        "4, 2024-04-30",
        "7, 2024-07-31",
        "2, 2024-02-29",
    ]
    months = [["01", "02", "04"], ["01", "04", "07"], ["01", "02"]]
    assert [list(margins) for margins in margins_of_views] == [
        [f"Fehlerspannen, 2024-{month}" for month in months_shown] for months_shown in months
    ]
    texts = [text for margins in margins_of_views for text in margins.values()]
    assert all("month (bis zu jedem Wert) \u00b1 " in text for text in texts), texts
    assert not any("month:prefix" in text for text in texts)
    errors = [facts["Typischer Fehler aller Ergebnisse"] for facts in facts_of_views]
    usual, longer, shortest = (float(error.split(";")[0].replace(",", ".")) for error in errors)
    assert shortest < usual < longer
    assert all("die untere Schranke ist" in error for error in errors)
    assert findings["spoken"] == facts_of_views[2]["Perioden"]
    assert read_spec(tmp_path / "people.toml").domain.kind("month").size == 2


@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["chrome"])
def test_exploring_works_in_a_browser(found_by, kind, tmp_path):
    domain = ln.Domain(
        sex=["F", "M"], zone=["north", "<script>alert(1)</script>"], kids=ln.Integers(0, 5)
    )
    random = np.random.default_rng(0)
    people = pd.DataFrame(
        {"sex": random.choice(["F", "M"], 300), "zone": "north", "kids": random.integers(0, 6, 300)}
    )
    workload = ln.queries(domain, sex="identity", zone="identity") + ln.queries(
        domain, sex="identity", zone="identity", kids="identity"
    )
    ln.release(
        ln.plan(workload, ln.PureDP(1), strategy="identity"),
        people,
        seed=1,
        out=tmp_path / "release",
    )
    findings = used(found_by, kind, tmp_path, "explore", "release")
    assert findings["again"] == "Explore release"
    assert findings["drawn"] > 5
    assert len(findings["cells"]) == 4
    assert "<script>alert(1)</script>" in findings["cells"][1]
    assert findings["sum"].startswith("one cell: ")
    assert (findings["wider"], findings["lines"]) == (24, 12)
