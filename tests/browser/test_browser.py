"""The report in real browsers: a clean console, keyboard use, accessibility, and widths.

Needs npm, which fetches what drives browsers, and Debian's chromium or firefox-esr; without them
these tests are skipped.
"""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from browser.conftest import BROWSERS, WHOLE, is_sound

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return a report with a number, bars, small multiples, a large table and a hostile label."""
    random = np.random.default_rng(0)
    zones = ["north", "south", "east", "<script>alert(1)</script>"]
    domain = ln.Domain(
        sex=["F", "M"], zone=zones, age=ln.Integers(17, 32), shop=["a", "b", "c", "d"]
    )
    workload = ln.queries(domain)
    workload += ln.queries(domain, zone="identity")
    workload += ln.queries(domain, sex="identity", age="identity")
    workload += ln.queries(domain, sex="identity", shop="identity", age="identity")
    workload += ln.queries(domain, sex="identity", age="prefix")
    people = {
        "sex": random.choice(["F", "M"], 5000),
        "zone": random.choice(zones, 5000),
        "age": random.integers(17, 33, 5000),
        "shop": "a",
    }
    plan = ln.plan(workload, ln.PureDP(1), strategy="identity")
    out = tmp_path_factory.mktemp("page") / "release"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEASTNOISE_CHARTS")
        ln.release(plan, pd.DataFrame(people), seed=1, out=out, options=ln.Options(formats=["csv"]))
    return out / "report.html"


@pytest.fixture(scope="module", params=BROWSERS)
def kind(request):
    """Return the kind of browser."""
    return request.param


@pytest.fixture(scope="module")
def findings(page, kind, tmp_path_factory, run_in_browser):
    """Return what a browser found in the report: its tables, charts and downloads."""
    pictures = [tmp_path_factory.mktemp("pictures")] * WHOLE
    return run_in_browser(kind, "check.mjs", page, *pictures)


def test_report_is_sound_in_a_browser(page, kind, findings):
    assert is_sound(findings, page.as_uri())
    # Only Chrome examines the page with axe, unless `make browsers` runs.
    assert (findings["read"] > 20) == (kind == "chrome" or WHOLE)
    assert not any(findings["cut"].values()), "every column of every table is on a phone"
    # Zones, sexes by ages twice, and sexes by shops and ages.
    assert findings["rows"] == 4 + 32 + 32 + 128
    assert findings["opened"] is True
    assert findings["reached"] > 20


def test_report_finds_a_table_by_name(findings):
    # The search for zone leaves one table in the list, and one below it.
    assert findings["tables"] == [1, 1]
    assert findings["filtered"] == ["north"]


def test_report_sorts_rows_by_number(findings):
    answers = [int(text.replace(",", "")) for text in findings["before"]]
    rising = [int(text.replace(",", "")) for text in findings["rising"]]
    assert rising == sorted(answers)
    assert findings["falling"] == findings["rising"][::-1]
    assert findings["back"] == findings["before"]


def test_report_downloads_a_table(findings):
    header, *rows = (line.split(",") for line in findings["csv"].split("\r\n"))
    assert header == ["zone", "answer", "margin_95", "low", "high"]
    assert [row[1] for row in rows[:4]] == [text.replace(",", "") for text in findings["before"]]
    _, answer, margin, _, high = rows[0]
    assert float(high) == pytest.approx(float(answer) + float(margin))


def test_report_opens_charts_to_print(kind, findings):
    before, during, after = findings["prints"]
    assert before == after < during == 4
    if kind == "chrome":
        # A page without scripts also has all rows.
        assert findings["plain"] == findings["rows"]
        assert findings["pdf"] > 30_000
