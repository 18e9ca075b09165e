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
    asked = (
        ln.queries(domain)
        + ln.queries(domain, zone="identity")
        + ln.queries(domain, sex="identity", age="identity")
    )
    asked += ln.queries(domain, sex="identity", shop="identity", age="identity") + ln.queries(
        domain, sex="identity", age="prefix"
    )
    people = {
        "sex": random.choice(["F", "M"], 5000),
        "zone": random.choice(zones, 5000),
        "age": random.integers(17, 33, 5000),
        "shop": "a",
    }
    plan, out = (
        ln.plan(asked, ln.PureDP(1), strategy="identity"),
        tmp_path_factory.mktemp("page") / "release",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEASTNOISE_CHARTS")
        ln.release(plan, pd.DataFrame(people), seed=1, out=out, options=ln.Options(formats=["csv"]))
    return out / "report.html"


@pytest.mark.parametrize("kind", BROWSERS)
def test_report_works_in_a_browser(page, kind, tmp_path, found_by):
    found = found_by(kind, "check.mjs", page, *[tmp_path] * WHOLE)
    assert is_sound(found, page.as_uri())
    assert (found["read"] > 20) == (kind == "chrome" or WHOLE), "axe has read the page"
    assert not any(found["cut"].values()), "every column of every table is on a phone"
    assert found["rows"] == 4 + 32 + 32 + 128
    assert found["tables"] == [
        1,
        1,
    ]  # the search for zone leaves one table in the list, and one below it
    as_numbers, rising = (
        [int(text.replace(",", "")) for text in found[name]] for name in ("before", "rising")
    )
    assert rising == sorted(as_numbers)
    assert (found["falling"], found["back"]) == (found["rising"][::-1], found["before"])
    assert found["filtered"] == ["north"]
    head, first, *others = (line.split(",") for line in found["csv"].split("\r\n"))
    assert head == ["zone", "answer", "margin_95", "low", "high"]
    assert [row[1] for row in (first, *others[:3])] == [str(number) for number in as_numbers]
    assert float(first[4]) == pytest.approx(float(first[1]) + float(first[2]))
    assert found["opened"] is True
    assert found["reached"] > 20
    closed, opened, after = found["prints"]
    assert closed == after < opened == 4
    if kind == "chrome":
        assert found["plain"] == found["rows"]  # without scripts
        assert found["pdf"] > 30_000
