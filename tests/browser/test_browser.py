"""The report in real browsers: a clean console, keyboard use, accessibility, and widths.

Needs npm, which fetches what drives browsers, and Debian's chromium or firefox-esr; without them
these tests are skipped.
"""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from browser.conftest import BROWSERS, WHOLE, is_sound


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Write a report with a number, bars, small multiples, a large table, lines, bad labels."""
    random = np.random.default_rng(0)
    zones = ["north", "south", "east", "<script>alert(1)</script>"]
    domain = ln.Domain(
        sex=["F", "M"], zone=zones, age=ln.Integers(17, 32), shop=["a", "b", "c", "d"]
    )
    workload = (
        ln.queries(domain)
        + ln.queries(domain, zone="identity")
        + ln.queries(domain, sex="identity", age="identity")
    )
    workload += ln.queries(domain, sex="identity", shop="identity", age="identity") + ln.queries(
        domain, sex="identity", age="prefix"
    )
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


@pytest.mark.parametrize("kind", BROWSERS)
def test_report_works_in_a_browser(page, kind, tmp_path, found_by):
    findings = found_by(kind, "check.mjs", page, *[tmp_path] * WHOLE)
    assert is_sound(findings, page.as_uri())
    assert (findings["read"] > 20) == (kind == "chrome" or WHOLE), "axe has read the page"
    assert not any(findings["cut"].values()), "every column of every table is on a phone"
    assert findings["rows"] == 4 + 32 + 32 + 128
    assert findings["tables"] == [
        1,
        1,
    ]  # the search for zone leaves one table in the list, and one below it
    as_numbers, rising = (
        [int(text.replace(",", "")) for text in findings[name]] for name in ("before", "rising")
    )
    assert rising == sorted(as_numbers)
    assert (findings["falling"], findings["back"]) == (findings["rising"][::-1], findings["before"])
    assert findings["filtered"] == ["north"]
    head, first_row, *other_rows = (line.split(",") for line in findings["csv"].split("\r\n"))
    assert head == ["zone", "answer", "margin_95", "low", "high"]
    assert [row[1] for row in (first_row, *other_rows[:3])] == [
        str(number) for number in as_numbers
    ]
    assert float(first_row[4]) == pytest.approx(float(first_row[1]) + float(first_row[2]))
    assert findings["opened"] is True
    assert findings["reached"] > 20
    closed, opened, closed_again = findings["prints"]
    assert closed == closed_again < opened == 4
    if kind == "chrome":
        assert findings["plain"] == findings["rows"]  # without scripts
        assert findings["pdf"] > 30_000
