"""The studio in real browsers: no complaint on the console, nothing from elsewhere, keys alone suffice, axe finds nothing, pages fit.

Needs what test_browser.py needs; without it these tests are skipped.
"""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from browser.browsers import BROWSERS, WHOLE
from leastnoise._spec import read_spec
from studio.conftest import SERIES, SPEC, serving

MEANS = """
[[workload]]
means = { of = "pay", by = ["sex"] }
[measures.pay]
column = "pay"
clip = [0, 100]
"""


def used(found_by, kind, address, folder, mode):
    """What a browser found."""
    found = found_by(kind, "studio.mjs", address, mode, *[folder] * WHOLE)
    here = address.partition("?")[0]
    assert found["said"] == []
    assert found["address"] == here
    assert all(one.startswith((here, "data:")) for one in found["loaded"])
    assert found["axe"] == []
    assert all(over <= 0 for over in found["overflow"].values())
    assert all(found.get("reached", []))
    return found


# One browser uses the page that begins, its fields and its keys, and the other all further pages; `make browsers` sends both to every page.
@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["firefox"])
def test_from_no_file_to_a_saved_spec_by_keys_on_a_phone(found_by, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = {"customer_id": [1, 2], "sex": ["F", "M"], "age": [30, 40], "pay": [1.5, 2.5], "tags": [[1], [2]], "weight": [1.5, 2]}
    pd.DataFrame(made).to_parquet("people.parquet")
    with serving(None) as client:
        found = used(found_by, kind, f"http://{client.host}{client.first}", tmp_path, "begin")
    assert (found["english"], found["german"]) == ("Begin with your data", "Eine Spezifikation f\u00fcr people.parquet")
    assert found["axe_begin"] == []
    assert all(over <= 0 for over in found["narrow"])
    assert found["dragged"] == ["15", "16", "17", "18", "18", "0, 18, 65"]  # every edge on the way is read
    assert found["groups"] == "Gruppen: 0-18 | 19-64 | 65+"
    number = "die Zahl der Zeilen, die höchstens zählen, muss dies sein: eine ganze Zahl, mindestens 1"
    assert found["refused"] == f"{number}; angegeben ist ''."
    assert found["focus"] == "result"
    assert found["rows"][0] == "sex x age:group"
    assert found["invented"].startswith("ERFUNDEN")
    assert "leastnoise release people.toml --out people-release" in found["commands"]
    assert found["again"] == "people.toml planen"
    saved = read_spec(tmp_path / "people.toml")
    assert (saved.privacy.unit_column, saved.privacy.max_rows) == ("customer_id", 20)
    assert [statistic.name for statistic in saved.workload.statistics] == ["mean of pay (EUR) weighted by weight by sex"]
    assert saved.domain.measure("weight").unit * 4 == 1


@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["chrome"])
def test_planning_works_in_a_browser(found_by, kind, tmp_path):
    spec = tmp_path / "people.toml"
    spec.write_text(SPEC)
    with serving(spec) as client:
        found = used(found_by, kind, f"http://{client.host}{client.first}", tmp_path, "plan")
    assert found["again"] == "Plan people.toml"
    assert found["before"] == found["first"]
    assert found["size"] == "1.26"  # ten steps of a hundredth of a decade
    assert all(float(after) < float(before) for before, after in zip(found["first"], found["second"], strict=True))
    assert found["shown"] == 4
    assert found["saved"] == "Saved: people.toml"
    saved = read_spec(spec)
    assert saved.privacy.budget == ln.PureDP("1.26")
    assert len(saved.workload.products) == 7
    assert saved.workload.products[1].weight == 4


@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["chrome"])
def test_two_pages_of_one_spec_show_what_is_saved_and_what_is_refused(found_by, kind, tmp_path):
    spec = tmp_path / "people.toml"
    spec.write_text(SPEC.replace('margin = "60"\n', MEANS))
    with serving(spec) as client:
        found = used(found_by, kind, f"http://{client.host}{client.first}", tmp_path, "tabs")
    assert found["shown"] == "1"
    assert "changed on another page" in found["refused"]
    assert (found["unsaved"], found["error"]) == ("", "")
    assert read_spec(spec).privacy.budget == ln.PureDP(3)
    assert read_spec(tmp_path / "two.toml").privacy.budget == ln.PureDP(2)
    assert not (tmp_path / "none.toml").exists()
    assert found["told"]
    assert found["visible"] == [True] * 13
    assert "the margin of a mean must be given with a size" in found["bulk"]
    assert "No table has a target" in found["vain"]


def test_the_horizon_of_a_series_is_moved_by_keys_on_a_phone(found_by, tmp_path):
    spec = tmp_path / "people.toml"
    spec.write_text(f'{SERIES}[output]\nlanguage = "de"\n')
    with serving(spec) as client:
        found = used(found_by, "chrome", f"http://{client.host}{client.first}", tmp_path, "horizon")
    assert found["narrow"] <= 0
    facts = [dict(zip(each[::2], each[1::2], strict=True)) for each in (found["first"], found["longer"], found["shortest"])]
    periods, margins, every, least = "Perioden", "Spannen, ", "Typischer Fehler aller Ergebnisse", "mindestens m\u00f6glich ist"
    assert [each[periods] for each in facts] == ["4, 2024-04-30", "7, 2024-07-31", "2, 2024-02-29"]
    assert [[name for name in each if name.startswith(margins)] for each in facts] == [
        [f"{margins}{end}" for end in ends]
        for ends in (("2024-01", "2024-02", "2024-04"), ("2024-01", "2024-04", "2024-07"), ("2024-01", "2024-02"))
    ]
    assert all("month:prefix \u00b1 " in text for each in facts for name, text in each.items() if name.startswith(margins))
    totals = [float(each[every].split(";")[0].replace(",", ".")) for each in facts]
    assert totals[2] < totals[0] < totals[1]
    assert all(least in each[every] for each in facts)
    assert found["spoken"] == facts[2][periods]
    assert read_spec(spec).domain.kind("month").size == 2


@pytest.mark.parametrize("kind", BROWSERS if WHOLE else ["chrome"])
def test_exploring_works_in_a_browser(found_by, kind, tmp_path):
    domain = ln.Domain(sex=["F", "M"], zone=["north", "<script>alert(1)</script>"], kids=ln.Integers(0, 5))
    random = np.random.default_rng(0)
    people = pd.DataFrame({"sex": random.choice(["F", "M"], 300), "zone": "north", "kids": random.integers(0, 6, 300)})
    plan = ln.plan(ln.queries(domain, sex="identity", zone="identity", kids="identity"), ln.PureDP(1), strategy="identity")
    plan = ln.plan(ln.queries(domain, sex="identity", zone="identity") + plan.workload, ln.PureDP(1), strategy="identity")
    ln.release(plan, people, seed=1, out=tmp_path / "release")
    with serving(tmp_path / "release") as client:
        found = used(found_by, kind, f"http://{client.host}{client.first}", tmp_path, "explore")
    assert found["again"] == "Explore release"
    assert found["drawn"] > 5
    assert len(found["cells"]) == 4
    assert "<script>alert(1)</script>" in found["cells"][1]
    assert found["sum"].startswith("one cell: ")
    assert (found["wider"], found["lines"]) == (24, 12)
