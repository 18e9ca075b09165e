"""Whole answers and rounding: no rounded answer is a part of a row."""

import json

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln

DOMAIN = ln.Domain(
    g=["a", "b"],
    measures={
        "cents": ln.Measure("v", 0, 10, unit="0.01"),
        "dozens": ln.Measure("v", 0, 24, unit="12"),
    },
)
ROWS = pd.DataFrame({"g": ["a"] * 7 + ["b"] * 9, "v": [1.23] * 16})


def released(asked, step):
    plan = ln.plan(asked, ln.PureDP(1))
    return ln.release(plan, ROWS, seed=1, options=ln.Options(integer=True, round=step))


@pytest.mark.parametrize(
    ("measure", "step", "allowed"),
    [
        (None, "2.5", "a whole multiple of 1 beside integer"),
        (None, "1.5", "a whole multiple of 1 beside integer"),
        ("cents", "0.025", "a whole multiple of 0.01 beside integer"),
        ("dozens", "10", "a whole multiple of 12 beside integer"),
    ],
)
def test_rounding_that_breaks_whole_answers_is_refused(measure, step, allowed):
    with pytest.raises(ln.InputError, match=allowed):
        released(ln.queries(DOMAIN, g="identity", sum=measure), step)


@pytest.mark.parametrize(
    ("measure", "step", "unit"),
    [
        (None, "5", 1),
        (None, "0.25", 1),
        ("cents", "0.05", 0.01),
        ("dozens", "36", 12),
        ("dozens", "3", 12),
    ],
)
def test_whole_answers_stay_whole_when_rounded(measure, step, unit):
    table = released(ln.queries(DOMAIN, g="identity", sum=measure), step).tables[0]
    whole = np.asarray(table.integer, dtype=float) / unit
    assert np.allclose(whole, np.rint(whole), atol=1e-6)


BY_QUANTITY = ln.Options(
    round={"rows": 5, "cents": "10"}, below={"cents": "15"}, names={"rows": "visits"}
)


@pytest.fixture(scope="module")
def by_quantity(tmp_path_factory):
    domain = ln.Domain(
        g=["a", "b", "c"], measures={"cents": ln.Measure("v", 0, 10, unit="0.01")}
    ).as_complete()
    asked = ln.queries(domain, g="identity") + ln.queries(domain)
    asked += ln.mean_queries(domain, "cents", by=["g"])
    rows = pd.DataFrame({"g": ["a"] * 77 + ["b"] * 99 + ["c"] * 2, "v": [1.23] * 178})
    plan = ln.plan(asked, ln.PureDP(500))
    out = tmp_path_factory.mktemp("rounded") / "out"
    return out, ln.release(plan, rows, seed=1, out=out, options=BY_QUANTITY)


def test_quantities_have_own_rounding_and_bounds(by_quantity):
    _, release = by_quantity
    counts, total, values, sums = release.tables
    for table in (counts, total, values):
        assert np.array_equal(np.mod(table.answer, 5), np.zeros(table.answer.shape))
    assert counts.answer.tolist() == [75, 100, 0]  # below has no bound for rows
    assert sums.answer.tolist()[:2] == [90, 120]
    assert np.isnan(sums.answer[2])  # 2.46 is below 15
    assert sums.high[2] < 20
    means = release.statistics[0]
    assert np.isnan(means.values[2])  # else the sum would follow
    assert means.extra_columns["count"].tolist()[:2] == [75, 100]
    assert means.extra_columns["sum"].tolist()[:2] == [90, 120]


def test_rounding_by_quantity_is_described(by_quantity):
    out, release = by_quantity
    assert ln.read_release(out).options == release.options == BY_QUANTITY
    manifest = json.loads((out / "manifest.json").read_text())
    facts = manifest["post_processing"]["rounding"]["by_quantity"]
    assert facts["rows"]["multiples_of"] == "5"
    assert facts["cents"]["left_out_below"] == "15"
    assert release.tables[0].margins.max() == pytest.approx(
        2.5 + release.tables[0].margins.min() - 2.5
    )
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "half a step of the rounding further" in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"round": {}}, "round must be a number, or a mapping such as"),
        ({"round": {"g": 5}}, "a key of round must be one of 'rows', 'units'"),
        ({"below": {"rows": -1}}, "below rows must be a number above 0"),
        ({"round": {"cents": "0.025"}, "integer": True}, "a whole multiple of 0.01 beside integer"),
    ],
)
def test_wrong_rounding_by_quantity_is_refused(options, words):
    plan = ln.plan(ln.queries(DOMAIN, g="identity", sum="cents"), ln.PureDP(1))
    with pytest.raises(ln.InputError, match=words):
        ln.release(plan, ROWS, seed=1, options=ln.Options(**options))
