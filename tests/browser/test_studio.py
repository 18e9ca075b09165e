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

pytestmark = pytest.mark.slow

MEANS = (
    '[[workload]]\nmeans = { of = "pay", by = ["sex"] }\n[measures.pay]\ncolumn = "pay"\n'
    "clip = [0, 100]\n"
)


def use_studio(run_in_browser, kind, folder, mode, name=None, text=""):
    """Return what a browser found in a studio of a release or spec with this name and text."""
    if text:
        (folder / name).write_text(text)
    with serving(name and folder / name) as client:
        address = f"http://{client.host}{client.first_path}"
        findings = run_in_browser(kind, "studio.mjs", address, mode, *[folder] * WHOLE)
    page = address.partition("?")[0]
    assert is_sound(findings, page)
    assert findings["address"] == page
    assert all(findings.get("reached", []))
    return findings


# One browser uses the page that begins, its fields and its keys, and the other all further pages;
# `make browsers` sends both to every page.
@pytest.fixture(scope="module", params=BROWSERS if WHOLE else ["firefox"])
def first_spec(request, run_in_browser, tmp_path_factory):
    """Return what a browser found on the page that begins, and the spec that it saved."""
    folder = tmp_path_factory.mktemp("begin")
    columns = {
        "customer_id": [1, 2],
        "sex": ["F", "M"],
        "age": [30, 40],
        "pay": [1.5, 2.5],
        "tags": [[1], [2]],
        "weight": [1.5, 2],
    }
    pd.DataFrame(columns).to_parquet(folder / "people.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        findings = use_studio(run_in_browser, request.param, folder, "begin")
    return findings, read_spec(folder / "people.toml")


def test_studio_saves_spec_by_keyboard_on_a_phone(first_spec):
    findings, spec = first_spec
    assert (findings["focus"], findings["again"]) == ("result", "people.toml planen")
    assert findings["rows"][0] == "Zeilen nach sex und group"
    assert "leastnoise release people.toml --out people-release" in findings["commands"]
    assert (spec.privacy.unit_column, spec.privacy.max_rows) == ("customer_id", 20)
    names = [statistic.name for statistic in spec.workload.statistics]
    assert names == ["mean of pay weighted by weight by sex"]
    assert findings["total"] == "50000"
    assert [entry["counts"] for entry in spec.public] == [[50000]]
    assert spec.options.sdmx == {"agency": "AT1"}
    assert spec.domain.measure("weight").unit * 4 == 1


def test_first_page_of_the_studio_is_accessible_on_a_phone(first_spec):
    findings, _ = first_spec
    assert findings["english"] == "Choose your data"
    assert findings["german"] == "Eine Spezifikation f\u00fcr people.parquet"
    assert findings["axe_begin"] == []
    assert all(over <= 0 for over in findings["narrow"])
    assert findings["invented"].startswith("ERFUNDEN")


def test_edges_of_groups_move_by_keyboard(first_spec):
    findings, _ = first_spec
    # The browser reads out every edge on the way.
    assert findings["dragged"] == ["15", "16", "17", "18", "18", "0, 18, 65"]
    assert findings["groups"] == "Gruppen: 0-18 | 19-64 | 65+"
    assert findings["open"] == ["age"]
    assert findings["undone"] == ["5", "0 \u2013 99; [0, 19, 65]; Jahrfünft"]


def test_first_page_of_the_studio_names_the_invalid_number(first_spec):
    findings, _ = first_spec
    assert findings["refused"] == (
        "die Höchstzahl der Zeilen ist ungültig (angegeben: ''); "
        "erlaubt ist eine ganze Zahl, mindestens 1."
    )


@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["chrome"])
def test_planning_works_in_a_browser(run_in_browser, kind, tmp_path):
    findings = use_studio(run_in_browser, kind, tmp_path, "plan", "people.toml", SPEC)
    assert findings["again"] == "Plan people.toml"
    assert findings["saved"] == "Saved: people.toml"
    assert findings["shown"] == 4
    assert findings["before"] == findings["first"]
    # Ten steps of a hundredth of a decade: 10^0.1.
    assert findings["size"] == "1.26"
    for margin_before, margin_after in zip(findings["first"], findings["second"], strict=True):
        assert float(margin_after) < float(margin_before)
    saved = read_spec(tmp_path / "people.toml")
    assert saved.privacy.budget == ln.PureDP("1.26")
    assert len(saved.workload.products) == 7
    assert saved.workload.products[1].weight == 4


@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["chrome"])
def test_studio_pages_of_one_spec_share_saved_state(run_in_browser, kind, tmp_path):
    spec = SPEC.replace('margin = "60"\n', MEANS)
    findings = use_studio(run_in_browser, kind, tmp_path, "tabs", "people.toml", spec)
    assert (findings["shown"], findings["unsaved"], findings["error"]) == ("1", "", "")
    assert "changed on another page" in findings["refused"]
    assert read_spec(tmp_path / "people.toml").privacy.budget == ln.PureDP(3)
    assert read_spec(tmp_path / "two.toml").privacy.budget == ln.PureDP(2)
    assert not (tmp_path / "none.toml").exists()
    assert findings["told"]
    assert findings["visible"] == [True] * 13
    assert "the margin of a mean must be given with a size" in findings["bulk"]
    assert "No table has a target" in findings["vain"]


def facts_of(view):
    """Return the facts of one view, a list of names and texts in turn."""
    return dict(zip(view[::2], view[1::2], strict=True))


def months_with_margins(facts):
    """Return the months of the margins of error in a view, and check the text of each."""
    prefix = "Fehlerspannen, 2024-"
    margins = {name: text for name, text in facts.items() if name.startswith(prefix)}
    for text in margins.values():
        assert "month (bis zu jedem Wert) \u00b1 " in text
        assert "month:prefix" not in text
    return [name.removeprefix(prefix) for name in margins]


def error_of(facts):
    """Return the typical error of a view."""
    text = facts["Typischer Fehler aller Ergebnisse"]
    assert "die untere Schranke ist" in text
    return float(text.split(";")[0].replace(",", "."))


def test_studio_horizon_moves_by_keyboard_on_a_phone(run_in_browser, tmp_path):
    spec = f'{SERIES}[output]\nlanguage = "de"\n'
    findings = use_studio(run_in_browser, "chrome", tmp_path, "horizon", "people.toml", spec)
    assert findings["narrow"] <= 0
    first, longer, shortest = (facts_of(findings[name]) for name in ("first", "longer", "shortest"))
    assert first["Perioden"] == "4, 2024-04-30"
    assert longer["Perioden"] == "7, 2024-07-31"
    assert shortest["Perioden"] == "2, 2024-02-29"
    assert months_with_margins(first) == ["01", "02", "04"]
    assert months_with_margins(longer) == ["01", "04", "07"]
    assert months_with_margins(shortest) == ["01", "02"]
    assert error_of(shortest) < error_of(first) < error_of(longer)
    assert findings["spoken"] == shortest["Perioden"]
    assert read_spec(tmp_path / "people.toml").domain.kind("month").size == 2


@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["chrome"])
def test_exploring_works_in_a_browser(run_in_browser, kind, tmp_path):
    domain = ln.Domain(
        sex=["F", "M"], zone=["north", "<script>alert(1)</script>"], kids=ln.Integers(0, 5)
    )
    random = np.random.default_rng(0)
    people = pd.DataFrame(
        {"sex": random.choice(["F", "M"], 300), "zone": "north", "kids": random.integers(0, 6, 300)}
    )
    pairs = ln.queries(domain, sex="identity", zone="identity")
    cells = ln.queries(domain, sex="identity", zone="identity", kids="identity")
    plan = ln.plan(pairs + cells, ln.PureDP(1), strategy="identity")
    ln.release(plan, people, seed=1, out=tmp_path / "release")
    findings = use_studio(run_in_browser, kind, tmp_path, "explore", "release")
    assert findings["again"] == "Explore release"
    assert findings["drawn"] > 5
    assert len(findings["cells"]) == 4
    assert "<script>alert(1)</script>" in findings["cells"][1]
    assert findings["sum"].startswith("one cell: ")
    assert (findings["wider"], findings["lines"]) == (24, 12)
