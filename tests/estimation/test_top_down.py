"""Whole non-negative tables from the total down: sums, errors and refusals."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from hierarchies import PLACES, domain_spec, draw_places
from leastnoise._plan import Plan
from leastnoise._release import check_options
from leastnoise._session import plan_spec
from leastnoise._spec import parse_spec
from simulated import releases

MODULE = "leastnoise._estimation._top_down"
ROUNDING = f"{MODULE}_rounding"
SPEC = f"""
[privacy]
rho = "1/10"
{domain_spec(6, "old", 3)}"""
SPEC += """
[[workload]]
queries = { place = "identity", sex = "identity", age = "identity" }
[[workload]]
queries = { place = { level = "state" }, sex = "identity" }
[[workload]]
queries = { place = { level = "county" }, age = { level = "old" } }
[[workload]]
queries = { place = "identity" }
[[workload]]
marginals = { ways = 0 }
[plan]
strategy = "marginals"
FACTS
[output]
top_down = true
"""


def people(seed=3, rows=400):
    """Return random rows of people by place, sex and age."""
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 6, rows)
    is_male = (generator.random(rows) < 0.5) | (age == 0)
    place = draw_places(generator, rows)
    return pd.DataFrame({"place": place, "sex": np.where(is_male, "m", "f"), "age": age})


ROWS = people()
TRUTH = np.zeros((24, 2, 6), dtype=int)
CODES = (ROWS["place"].map(PLACES.index), (ROWS["sex"] == "m").astype(int), ROWS["age"])
np.add.at(TRUTH, CODES, 1)


def all_tables(cells):
    """Return the tables of the spec, computed from its cells."""
    state = cells.reshape(2, 12, 2, 6).sum(axis=(1, 3))
    county = cells.reshape(6, 4, 2, 2, 3).sum(axis=(1, 2, 4))
    return [cells, state, county, cells.sum(axis=(1, 2)), cells.sum()]


def public_counts(queries, counts):
    listed = counts.reshape(-1).tolist()
    return f"[[public]]\nqueries = {{ {queries} }}\ncounts = {listed}\n"


def sum_counties(cells):
    return cells.reshape(6, 4, 2, 6).sum(axis=(1, 3))


def sum_states(cells):
    return cells.reshape(2, -1).sum(axis=1)


BABIES = '[[impossible]]\nsex = ["f"]\nage = [0, 0]\n'
PLACE = public_counts('place = "identity"', TRUTH.sum(axis=(1, 2)))
SEX = public_counts('sex = "identity"', TRUTH.sum(axis=(0, 2)))
AGE = public_counts('age = "identity"', TRUTH.sum(axis=(0, 1)))
WITHOUT_OLD = "# the levels of age are not asked for\n"
COUNTY_AND_SEX = public_counts(
    'place = { level = "county" }, sex = "identity"', sum_counties(TRUTH)
)
STATE_AND_SEX = public_counts('place = { level = "state" }', sum_states(TRUTH)) + SEX


def spec_of(facts):
    text = SPEC.replace("FACTS", facts)
    if WITHOUT_OLD in facts:
        text = text.replace('age = { level = "old" }', 'age = "identity"')
    return parse_spec(text, Path())


@cache
def plan_of(facts):
    return Plan.from_json(plan_spec(spec_of(facts)).to_json())


def release_of(facts, seeds):
    options = ln.Options(top_down=True)
    plan = plan_of(facts)
    check_options(plan, options)
    return [*releases(plan, ROWS, seeds, options)]


@pytest.mark.parametrize(
    ("facts", "public_sums"),
    [
        ("", []),
        (PLACE + BABIES, [lambda cells: cells.sum(axis=(1, 2))]),
        (COUNTY_AND_SEX, [sum_counties]),
        (STATE_AND_SEX, [sum_states, lambda cells: cells.sum(axis=(0, 2))]),
        ('[[impossible]]\nplace = ["110", "111", "112", "113"]\n', []),
    ],
    ids=["none", "places", "county and sex", "two tables", "places without rows"],
)
@pytest.mark.parametrize("rounding", ["to the next", "farther", "in groups"])
def test_tables_add_up_and_keep_public_facts(monkeypatch, facts, public_sums, rounding):
    if rounding == "farther":  # as where no rounding down or up has the sums
        monkeypatch.setattr(f"{ROUNDING}._round_adjacent", lambda *_: None)
    if rounding == "in groups":  # as if a parent had very many cells
        monkeypatch.setattr(f"{ROUNDING}._LEAST_CELLS", 1)
        monkeypatch.setattr(f"{ROUNDING}._MOST_CELLS", 13)
    (release,) = release_of(facts, [5])
    cells = release.tables[0].top_down
    assert cells.dtype.kind == "i"
    assert cells.min() >= 0
    for table, expected in zip(release.tables, all_tables(cells), strict=True):
        np.testing.assert_array_equal(table.top_down, expected)
    for sums in public_sums:
        np.testing.assert_array_equal(sums(cells), sums(TRUTH))
    if BABIES in facts:
        assert not cells[:, 0, 0].any()
    if "place = [" in facts:
        assert not cells[:4].any()
        assert cells[4:].any()


def test_errors_are_below_separate_rounding():
    errors = np.zeros((5, 3))
    for release in release_of("", [*range(8)]):
        separate = np.rint(np.maximum(release.tables[0].answer, 0.0))
        pairs = zip(release.tables, all_tables(TRUTH), all_tables(separate), strict=True)
        for row, (table, truth, of_separate) in enumerate(pairs):
            for column, answers in enumerate((table.top_down, table.answer, of_separate)):
                errors[row, column] += np.mean((answers - truth) ** 2)
    down, unbiased, separate = np.sqrt(errors / 8).T
    # The error of the cells is 1.64; unbiased cells have 2.50, and separately rounded cells 1.77.
    assert down[0] < 0.7 * unbiased[0]
    assert (down < 0.95 * separate).all()
    assert (down[1:] < 0.6 * separate[1:]).all()  # clipped cells have sums that are too large
    assert (down[1:] < 1.35 * unbiased[1:]).all()


def test_measure_has_whole_units_that_add_up():
    domain = ln.Domain(
        place=ln.Categories(PLACES, levels={"state": {each: each[0] for each in PLACES}}),
        measures={
            "pay": ln.Measure("pay", 0, 100, unit="0.5"),
            "debt": ln.Measure("debt", -50, 50),
        },
    ).as_complete()
    workload = ln.queries(domain, place="identity", sum="pay") + ln.queries(
        domain, place=ln.level("state"), sum="pay"
    )
    workload += ln.queries(domain, place="identity", sum="debt")
    frame = people().assign(pay=30.5, debt=-1)
    options = ln.Options(top_down=True)
    release = ln.release(ln.plan(workload, ln.ZCDP(1)), frame, seed=4, options=options)
    pay, pay_by_state, debt = release.tables
    np.testing.assert_array_equal(2 * pay.top_down, np.rint(2 * pay.top_down))
    np.testing.assert_allclose(pay.top_down.reshape(2, 12).sum(axis=1), pay_by_state.top_down)
    assert pay.top_down.min() >= 0
    assert debt.top_down is None
    assert "answer_top_down" in release.long("pandas").columns


def check_top_down(facts):
    """Check whether a plan with these public facts allows top-down answers."""
    check_options(plan_of(facts), ln.Options(top_down=True))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (PLACE + '[[impossible]]\nplace = ["110"]\n', "both impossible cells and public counts"),
        (
            public_counts('sex = "identity"', np.array([7, 393])) + '[[impossible]]\nsex = ["f"]\n',
            "agree",
        ),
        ('[[impossible]]\nsex = ["f", "m"]\n', "must leave at least one cell possible"),
        (SEX + AGE + BABIES, "public counts of age, because possibly no table"),
        (SEX + AGE + BABIES + WITHOUT_OLD, "got two"),
    ],
)
def test_contradictory_public_facts_are_refused(facts, message):
    with pytest.raises(ln.InputError, match=message):
        check_top_down(facts)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([{"sex": "identity"}, {"age": "identity"}], "from whose cells all tables of rows"),
        ([{"age": "prefix"}], "from whose cells all tables of rows"),
    ],
)
def test_tables_without_a_finest_one_are_refused(tables, message):
    domain = ln.Domain(sex=["f", "m"], age=ln.Integers(0, 5)).as_complete()
    workload = sum(
        [ln.queries(domain, table) for table in tables[1:]], ln.queries(domain, tables[0])
    )
    plan = ln.plan(workload, ln.PureDP(1), strategy="workload")
    with pytest.raises(ln.InputError, match=message):
        check_options(plan, ln.Options(top_down=True))


def test_large_tables_are_refused_before_payment(monkeypatch):
    monkeypatch.setattr(f"{MODULE}.MOST_TOP_DOWN_CELLS", 287)
    with pytest.raises(ln.InputError, match="288 cells"):
        check_top_down("")
    monkeypatch.undo()
    monkeypatch.setattr(f"{MODULE}.MOST_CELLS_ALONG", 5)
    with pytest.raises(ln.InputError, match="every attribute but the largest"):
        check_top_down("")
