"""Units counted beside rows and sums, from the spec to the report: what is counted, what it costs, and what is refused."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._spec import parse_spec, plan_warnings, spec_warnings
from leastnoise._trusted.measurements import cost, views
from session.releasing import manifest, report
from simulated import releases

RNG = np.random.default_rng(5)
CUSTOMERS = RNG.integers(0, 600, 4000)
REGIONS = np.array(["N", "S", "W"])[CUSTOMERS % 3]
MONTHS, REVENUES = RNG.integers(0, 4, 4000), RNG.integers(0, 100, 4000)
SHOP = pd.DataFrame(
    {"customer": CUSTOMERS, "region": REGIONS, "month": MONTHS, "revenue": REVENUES}
)
SPEC = """\
[source]
path = "shop.csv"
[privacy]
epsilon = "1"
unit = { column = "customer", max_rows = 5, of_unit = ["region"] }
[domain.region]
categories = ["N", "S", "W"]
complete = true
levels.coast = { groups = { coast = ["N", "W"], inland = ["S"] } }
[domain.month]
size = 4
complete = true
[measures.revenue]
clip = [0, 100]
[[workload]]
queries = { region = "identity" }
sum = "revenue"
[[workload]]
marginals = { ways = 1, of = ["region", "month"] }
count = "units"
[[workload]]
queries = { region = { level = "coast" } }
count = "units"
"""


def spec(*changes: tuple[str, str]):
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_spec(text, Path("/nowhere"))


@pytest.fixture(scope="module")
def plan() -> ln.Plan:
    assert spec_warnings(spec()) == ()
    return ln.plan(spec().workload, spec().privacy)


@pytest.mark.parametrize("rows", [5, 40])
def test_units_count_once_per_cell_and_in_total(rows: int) -> None:
    asked = spec(("max_rows = 5", f"max_rows = {rows}"), ('epsilon = "1"', 'epsilon = "5000"'))
    release = ln.release(ln.plan(asked.workload, asked.privacy), SHOP, seed=1)
    found = {table.name: table.answer.round().astype(int).tolist() for table in release.tables}
    truth = SHOP.groupby("region")["customer"].nunique().tolist()
    assert found["units by region"] == truth
    assert found["units by region:coast"] == [truth[0] + truth[2], truth[1]]
    by_month = SHOP.groupby("month")["customer"].nunique().tolist()
    assert found["units by month"] == by_month  # nobody is in more than four
    revenue = SHOP.groupby("region")["revenue"].sum().tolist()
    if rows == 40:  # nobody has more
        assert found["sum of revenue by region"] == pytest.approx(revenue, abs=60)
    else:
        assert sum(found["sum of revenue by region"]) < 0.9 * sum(revenue)


def test_rows_and_units_share_the_budget(
    plan: ln.Plan,
) -> None:
    paid = {view.blocks[0].measure: cost(view).epsilon for view in views(plan.measured())}
    assert float(sum(paid.values())) == pytest.approx(1)
    assert plan.cost().epsilon == sum(paid.values())
    promise = plan.expected_error()
    assert promise.lower_bound <= promise.total_squared_error
    own = {table.name: table.rmse for table in promise.tables}
    # of the noise that one row would have within the share: one row by region, and one in each of
    # the four months
    for name, measure, rows in (
        ("units by region", "units", 1),
        ("units by month", "units by month", 4),
    ):
        assert own[name] * float(paid[measure]) / 2**0.5 == pytest.approx(rows, rel=0.05)
    again = ln.Plan.from_json(plan.to_json())
    assert (again, again.domain) == (plan, plan.domain)


@pytest.mark.parametrize(
    "budget", ['epsilon = "1"', 'rho = "1/2"', 'epsilon = "1"\ndelta = "1e-7"']
)
def test_errors_are_those_promised(budget: str) -> None:
    asked = spec(('epsilon = "1"', budget))
    plan = ln.plan(asked.workload, asked.privacy)
    runs = [*releases(plan, SHOP.iloc[:0], range(60))]
    for place, table in enumerate(plan.expected_error().tables):
        squares = np.mean([run.tables[place].answer ** 2 for run in runs])
        assert np.sqrt(squares) == pytest.approx(table.rmse, rel=0.35)
    assert plan.expected_error().lower_bound <= plan.expected_error().total_squared_error


def test_files_and_report_describe_the_unit(plan: ln.Plan, tmp_path) -> None:
    ln.release(
        plan,
        SHOP,
        ledger=tmp_path / "shop.ledger",
        dataset="shop",
        out=tmp_path / "out",
        options=ln.Options(language="de"),
    )
    release = ln.read_release(tmp_path / "out")
    assert [table.name for table in release.tables][1:] == [
        "units by region",
        "units by month",
        "units by region:coast",
    ]
    assert [table["unit"] for table in manifest(tmp_path / "out")["answers"]["tables"]] == [
        "1",
        "unit",
        "unit",
        "unit",
    ]
    page = report(tmp_path / "out")
    for words in (
        "Einheiten nach region",
        "Zahl der Einheiten",
        "Eine Einheit ist ein Wert der Spalte",
        "In Tabellen nach month zählt eine Einheit einmal in jeder Zelle",
    ):
        assert words in page
    assert "Summe von units" not in page
    (further,) = release.answer(ln.queries(release.plan.domain, region=ln.total(), sum="units"))
    assert float(further.answer) == pytest.approx(float(release.tables[1].answer.sum()), abs=3)
    with pytest.raises(
        ln.InputError,
        match=r"units by month must be the cells of month; got '.*'. A unit may be in several",
    ):
        ln.queries(release.plan.domain, month="prefix", sum="units by month")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '{ column = "customer", max_rows = 5, of_unit = ["region"] }',
            '"row"',
            r"number 2: count must be \"rows\" where every row is a unit",
        ),
        (
            'of_unit = ["region"]',
            'of_unit = ["regoin"]',
            r"\[privacy\] unit of_unit must be a list of attributes \(region, month\)",
        ),
        (
            ', of_unit = ["region"]',
            "",
            (
                "number 3: the queries of units by region must be the cells of region; got "
                "'region:coast'"
            ),
        ),
        (
            'sum = "revenue"',
            'sum = "revenue"\ncount = "units"',
            'number 1: count must be left out, or "rows", where a measure is summed',
        ),
        ('count = "units"', 'count = "people"', "number 2: count must be one of .rows., .units."),
        (
            "[measures.revenue]",
            '[measures."units by month"]\nclip = [0, 2]\n[measures.revenue]',
            "the name of a measure must be",
        ),
        (
            '[[workload]]\nqueries = { region = "identity" }\nsum',
            '[[workload]]\nmeans = { of = "revenue" }\ncount',
            "a key of",
        ),
    ],
)
def test_uncountable_units_are_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ln.InputError, match=message):
        spec((old, new))


def test_other_mechanisms_refuse_counts_of_units(plan: ln.Plan) -> None:
    domain = ln.Domain(month=ln.Integers(0, 3))
    asked, privacy = (
        ln.marginals(domain, ways=1, count="units"),
        ln.Privacy(ln.PureDP(1), unit_column="customer", max_rows=5),
    )
    for strategy, message in (
        ("truncated_sums", "this workload asks for counts of units"),
        ("dawa", "dawa"),
    ):
        with pytest.raises(ln.InputError, match=message):
            ln.plan(asked, privacy, strategy=strategy)
    with pytest.raises(ln.InputError, match="A plan that counts units cannot be audited yet"):
        ln.audit(plan, trials=200)
    with pytest.raises(ln.InputError, match="A mean of units by month needs its sums"):
        ln.means(ln.release(plan, SHOP, seed=1), "units by month", by=["month"])
    with pytest.raises(ln.InputError, match="got 'one of rows'"):
        ln.plan(asked, ln.PureDP(1))


def test_workloads_of_rows_and_units_add() -> None:
    domain = ln.Domain(region=["N", "S"], month=ln.Coded(2))
    rows, units = (
        ln.marginals(domain, ways=1),
        ln.marginals(domain, upto=1, count="units", of_unit=["region"]),
    )
    assert [table.name for table in rows + units] == [
        "region",
        "month",
        "units",
        "units by region",
        "units by month",
    ]
    assert (rows + units).domain == (units + rows).domain == units.domain
    privacy = ln.Privacy(ln.ZCDP(1), unit_column="id", max_rows=9)
    for asked in (rows + units, units):
        plan = ln.plan(asked, privacy)
        assert plan.expected_error().lower_bound <= plan.expected_error().total_squared_error


VISITS = pd.DataFrame(
    [(f"u{unit}", "01", 1) for unit in range(300) for _ in range(40 if unit % 3 == 0 else 1)]
    + [(f"u{unit}", month, 1) for unit in range(0, 300, 3) for month in ("02", "03")]
    + [(None, "01", 1)] * 7,
    columns=["id", "month", "amount"],
).sample(frac=1, random_state=1)
VISIT_SPEC = """
[privacy]
epsilon = "200"
unit = {{ column = "id", max_rows = 3{cell} }}
[domain.month]
categories = ["01", "02", "03"]
[measures.amount]
clip = [0, 1]
[[workload]]
queries = {{ month = "identity" }}
count = "units"
{more}
"""
PER_CELL = ", max_per_cell = 1, cell = ['month']"
ROWS_TOO = "[[workload]]\nqueries = { month = 'identity' }\n[[workload]]\nqueries.month = 'identity'\nsum = 'amount'"


def visits(cell="", more=""):
    return parse_spec(VISIT_SPEC.format(cell=cell, more=more), Path())


def answers(asked, source=VISITS):
    plan = ln.plan(asked.workload, asked.privacy)
    release = ln.release(plan, source, seed=1)
    return plan, {table.name: table.answer.round().tolist() for table in release.tables}


@pytest.mark.parametrize("cell", ["", PER_CELL])
@pytest.mark.parametrize("more", ["", ROWS_TOO])
@pytest.mark.parametrize("source", ["frame", "file", "relation"])
def test_units_with_many_rows_count_in_other_cells(cell, more, source, tmp_path):
    data = VISITS
    if source == "file":
        VISITS.to_csv(data := tmp_path / "visits.csv", index=False)
    if source == "relation":
        data = duckdb.from_df(VISITS)
    _, found = answers(visits(cell, more), data)
    assert found["units by month"] == [300, 100, 100]
    if more:
        most = 3 if not cell else 1
        assert found["month"] == found["sum of amount by month"]
        assert 300 <= found["month"][0] <= 200 + 100 * most
        assert sum(found["month"]) == pytest.approx(500, abs=1)


def test_cell_limit_advice_applies_to_rows_only():
    for more, warned in (("", False), (ROWS_TOO, True)):
        asked = visits(PER_CELL, more)
        plan = ln.plan(asked.workload, asked.privacy)
        texts = " ".join(plan_warnings(asked, plan))
        assert ("max_per_cell makes nothing cheaper" in texts) is warned
    with_cell, without = (
        ln.plan(visits(cell).workload, visits(cell).privacy) for cell in (PER_CELL, "")
    )
    assert with_cell.expected_error().tables[0].rmse == without.expected_error().tables[0].rmse


def test_statements_for_people_in_some_cells_are_planned_with_others() -> None:
    """Another statement may give the attribute a cell more, which the first leaves out."""
    domain = ln.Domain(flag=ln.Integers(0, 1, null="other"), pay=ln.Integers(0, 9))
    people = "SELECT flag, COUNT(DISTINCT id) AS n FROM rows WHERE flag IN (0, 1) GROUP BY flag"
    of_one = "SELECT COUNT(DISTINCT id) AS n FROM rows WHERE flag = 1"
    other = "SELECT COALESCE(flag, 7) AS flag, COUNT(*) AS n FROM rows GROUP BY 1"
    workload = ln.sql(domain, people, of_one, other, unit="id")
    privacy = ln.Privacy(ln.PureDP(4000), unit_column="id", max_rows=20)
    rows = pd.DataFrame(
        {
            "id": [1, 1, 1, 2, 3, 3, 4, 5],
            "flag": pd.array([0, 0, 1, 1, None, 1, 5, None], dtype="Int64"),
            "pay": 1,
        }
    )
    release = ln.release(ln.plan(workload, privacy, strategy="workload"), rows, seed=1)
    assert release.sql(people, "pandas")["n"].round().tolist() == [1, 3]
    assert release.sql(of_one, "pandas")["n"].round().tolist() == [3]
    with pytest.raises(ln.InputError, match="must be the cells of flag"):
        ln.queries(domain, flag=ln.predicates([[0, 1]]), count="units")
