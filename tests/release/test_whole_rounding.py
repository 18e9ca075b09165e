"""Rounding to whole numbers and by quantity, and controlled rounding."""

import json
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._estimation import round_controlled
from leastnoise._release import check_options

DOMAIN = ln.Domain(
    g=["a", "b"],
    measures={
        "cents": ln.Measure("v", 0, 10, unit="0.01"),
        "dozens": ln.Measure("v", 0, 24, unit="12"),
    },
)
ROWS = pd.DataFrame({"g": ["a"] * 7 + ["b"] * 9, "v": [1.23] * 16})


def rounded_release(workload, step):
    plan = ln.plan(workload, ln.PureDP(1))
    return ln.release(plan, ROWS, seed=1, options=ln.Options(integer=True, round=step))


@pytest.mark.parametrize(
    ("measure", "step", "allowed"),
    [
        (None, "2.5", "a whole multiple of 1 with integer"),
        (None, "1.5", "a whole multiple of 1 with integer"),
        ("cents", "0.025", "a whole multiple of 0.01 with integer"),
        ("dozens", "10", "a whole multiple of 12 with integer"),
    ],
)
def test_rounding_that_breaks_whole_answers_is_refused(measure, step, allowed):
    with pytest.raises(ln.InputError, match=allowed):
        rounded_release(ln.queries(DOMAIN, g="identity", sum=measure), step)


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
    table = rounded_release(ln.queries(DOMAIN, g="identity", sum=measure), step).tables[0]
    whole = np.asarray(table.integer, dtype=float) / unit
    assert np.allclose(whole, np.rint(whole), atol=1e-6)


BY_QUANTITY = ln.Options(
    round={"rows": 5, "cents": "10"}, below={"cents": "15"}, names={"rows": "visits"}
)


@pytest.fixture(scope="module")
def by_quantity(tmp_path_factory):
    """Return a release whose counts and sums are rounded to different steps."""
    domain = ln.Domain(
        g=["a", "b", "c"], measures={"cents": ln.Measure("v", 0, 10, unit="0.01")}
    ).as_complete()
    workload = ln.queries(domain, g="identity") + ln.queries(domain)
    workload += ln.mean_queries(domain, "cents", by=["g"])
    rows = pd.DataFrame({"g": ["a"] * 77 + ["b"] * 99 + ["c"] * 2, "v": [1.23] * 178})
    plan = ln.plan(workload, ln.PureDP(500))
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
    ("options", "message"),
    [
        ({"round": {}}, "round must be a number, or a mapping such as"),
        ({"round": {"g": 5}}, "a key of round must be one of 'rows', 'units'"),
        ({"below": {"rows": -1}}, "below rows must be a number above 0"),
        ({"round": {"cents": "0.025"}, "integer": True}, "a whole multiple of 0.01 with integer"),
    ],
)
def test_wrong_rounding_by_quantity_is_refused(options, message):
    plan = ln.plan(ln.queries(DOMAIN, g="identity", sum="cents"), ln.PureDP(1))
    with pytest.raises(ln.InputError, match=message):
        ln.release(plan, ROWS, seed=1, options=ln.Options(**options))


# --- controlled rounding: totals are the sums of their parts --------------------------------------

PLACES = ln.Domain(
    place=ln.Categories(
        ["a", "b", "c", "d"], levels={"land": dict(zip("abcd", "NNSS", strict=True))}
    ),
    sex=["f", "m"],
    age=["young", "old"],
    measures={"pay": ln.Measure("pay", 0, 100)},
).as_complete()
LAND = {"place": ln.level("land")}


def list_errors(rounded, cells):
    """Return the largest absolute error of the cells, and of each kind of their sums."""
    differences = (rounded - cells).reshape(2, 2, 2, 2)
    axes = [axis for size in range(5) for axis in combinations(range(4), size)]
    # Lands are sums of places.
    nested = [axis for axis in axes if not (0 in axis and 1 not in axis)]
    return [abs(differences.sum(axis=axis)).max() for axis in nested]


def test_controlled_rounding_stays_within_one_step():
    products = (
        ln.queries(PLACES, place="identity", sex="identity", age="identity")
        + ln.marginals(PLACES, upto=2)
        + ln.queries(PLACES, **LAND, sex="identity", age="identity")
        + ln.queries(PLACES, **LAND, sex="identity")
        + ln.queries(PLACES, **LAND, age="identity")
        + ln.queries(PLACES, **LAND)
        + ln.queries(PLACES)
    ).products
    random = np.random.default_rng(3)
    for _ in range(20):
        cells = random.uniform(-2, 9, (4, 2, 2))
        rounded = round_controlled(cells, products[0], products)
        assert max(list_errors(rounded, cells)) < 1
    whole = random.integers(0, 9, (4, 2, 2)).astype(float)
    assert np.array_equal(round_controlled(whole, products[0], products), whole)


def test_controlled_rounding_rounds_few_cells_the_wrong_way():
    """No rounding of six cells whose sums stay within one step has a smaller error."""
    domain = ln.Domain(a=["x", "y"], b=["p", "q", "r"]).as_complete()
    workload = ln.queries(domain, a="identity", b="identity") + ln.marginals(domain, upto=1)
    products = (workload + ln.queries(domain)).products
    random = np.random.default_rng(5)
    for _ in range(10):
        cells = random.uniform(0, 9, (2, 3))
        errors_of_allowed = []
        for up in product([0, 1], repeat=6):
            errors = np.floor(cells) + np.reshape(up, (2, 3)) - cells
            # The cells, the sums by a and by b, and the total.
            axes = ((), (0,), (1,), (0, 1))
            if all(abs(errors.sum(axis=axis)).max() < 1 for axis in axes):
                errors_of_allowed.append(abs(errors).sum())
        rounded = round_controlled(cells, products[0], products)
        assert abs(rounded - cells).sum() == pytest.approx(min(errors_of_allowed))


@pytest.fixture(scope="module")
def controlled(tmp_path_factory):
    """Return a release with controlled rounding."""
    workload = ln.queries(PLACES, place="identity", sex="identity")
    workload += ln.queries(PLACES, place="identity") + ln.queries(PLACES, sex="identity")
    workload += ln.queries(PLACES, **LAND) + ln.queries(PLACES)
    workload += ln.queries(PLACES, place="identity", sum="pay") + ln.queries(PLACES, sum="pay")
    random = np.random.default_rng(2)
    rows = pd.DataFrame(
        {
            "place": random.choice(list("abcd"), 700),
            "sex": random.choice(["f", "m"], 700),
            "age": "old",
            "pay": random.integers(0, 100, 700),
        }
    )
    options = ln.Options(round={"rows": 10, "pay": 500}, rounding="controlled")
    plan = ln.plan(workload, ln.PureDP(2))
    out = tmp_path_factory.mktemp("controlled") / "out"
    exact = ln.release(plan, rows, seed=4)
    return out, ln.release(plan, rows, seed=4, out=out, options=options), exact


def test_controlled_tables_add_up_within_a_step(controlled):
    _, release, exact = controlled
    cells, places, sexes, lands, total, pay, all_pay = (table.answer for table in release.tables)
    assert np.array_equal(cells.sum(axis=1), places)
    assert np.array_equal(cells.sum(axis=0), sexes)
    assert np.array_equal(places.reshape(2, 2).sum(axis=1), lands)
    assert cells.sum() == total
    assert pay.sum() == all_pay
    for table, estimate in zip(release.tables, exact.tables, strict=True):
        step = 500 if table.product.measure == "pay" else 10
        assert np.allclose(np.mod(table.answer, step), 0)
        assert abs(table.answer - estimate.answer).max() < step
        assert np.allclose(table.answer - table.low, estimate.answer - estimate.low + step)
        assert (table.low <= estimate.low).all()
        assert (table.high >= estimate.high).all()


def test_controlled_rounding_is_written_and_read(controlled):
    out, release, _ = controlled
    assert ln.read_release(out).tables[0].answer.tolist() == release.tables[0].answer.tolist()
    facts = json.loads((out / "manifest.json").read_text())["post_processing"]["rounding"]
    assert facts["by_quantity"]["rows"]["added_to_half_widths"] == 10
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "need not agree" not in page


@pytest.mark.parametrize(
    ("workload", "options", "message"),
    [
        (ln.queries(DOMAIN, g="identity"), {}, "needs a step: set round"),
        (
            ln.queries(DOMAIN, g="identity"),
            {"round": 5, "below": 5},
            "could be computed from the others",
        ),
        (
            ln.queries(PLACES, sex="identity") + ln.queries(PLACES, age="identity"),
            {"round": 5},
            "one table",
        ),
        (
            ln.queries(ln.Domain(x=ln.Coded(20_001)).as_complete(), x="identity"),
            {"round": 5},
            "of at most 20000 cells",
        ),
    ],
    ids=["no step", "suppression", "no finest table", "too large"],
)
def test_impossible_controlled_rounding_is_refused(workload, options, message):
    plan = ln.plan(workload, ln.PureDP(1), strategy="identity")
    with pytest.raises(ln.InputError, match=message):
        check_options(plan, ln.Options(rounding="controlled", **options))
