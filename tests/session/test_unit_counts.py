"""Counts of units with rows and sums, from the spec to the report: costs and refusals."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._spec import parse_spec, plan_warnings, spec_warnings
from leastnoise._trusted.measurements import cost, split_by_quantity
from session.releasing import manifest, report
from simulated import releases

RNG = np.random.default_rng(5)
CUSTOMERS = RNG.integers(0, 600, 4000)
REGIONS = np.array(["N", "S", "W"])[CUSTOMERS % 3]
MONTHS = RNG.integers(0, 4, 4000)
REVENUES = RNG.integers(0, 100, 4000)
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


def spec(*changes):
    """Return the spec with each old text replaced by its new one."""
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_spec(text, Path("/nowhere"))


@pytest.fixture(scope="module")
def plan():
    """Return the plan of the spec, which causes no warning."""
    assert spec_warnings(spec()) == ()
    return ln.plan(spec().workload, spec().privacy)


@pytest.mark.parametrize("rows", [5, 40])
def test_units_count_once_per_cell_and_in_total(rows):
    parsed_spec = spec(
        ("max_rows = 5", f"max_rows = {rows}"), ('epsilon = "1"', 'epsilon = "5000"')
    )
    release = ln.release(ln.plan(parsed_spec.workload, parsed_spec.privacy), SHOP, seed=1)
    counts = {table.name: table.answer.round().astype(int).tolist() for table in release.tables}
    truth = SHOP.groupby("region")["customer"].nunique().tolist()
    assert counts["units by region"] == truth
    assert counts["units by region:coast"] == [truth[0] + truth[2], truth[1]]
    by_month = SHOP.groupby("month")["customer"].nunique().tolist()
    assert counts["units by month"] == by_month  # nobody is in more than four
    revenue = SHOP.groupby("region")["revenue"].sum().tolist()
    if rows == 40:  # nobody has more
        assert counts["sum of revenue by region"] == pytest.approx(revenue, abs=60)
    else:
        assert sum(counts["sum of revenue by region"]) < 0.9 * sum(revenue)


def test_rows_and_units_share_the_budget(plan):
    costs = {
        view.blocks[0].measure: cost(view).epsilon for view in split_by_quantity(plan.measured())
    }
    assert float(sum(costs.values())) == pytest.approx(1)
    assert plan.cost().epsilon == sum(costs.values())
    expected_error = plan.expected_error()
    assert expected_error.lower_bound <= expected_error.total_squared_error
    errors = {table.name: table.rmse for table in expected_error.tables}
    # The error is a multiple of the noise for one row at the measure's share of the budget. A
    # person has one row in the table by region, and one row in each of the four months.
    for name, measure, rows in (
        ("units by region", "units", 1),
        ("units by month", "units by month", 4),
    ):
        assert errors[name] * float(costs[measure]) / 2**0.5 == pytest.approx(rows, rel=0.05)
    reread = ln.Plan.from_json(plan.to_json())
    assert (reread, reread.domain) == (plan, plan.domain)


@pytest.mark.parametrize(
    "budget", ['epsilon = "1"', 'rho = "1/2"', 'epsilon = "1"\ndelta = "1e-7"']
)
def test_errors_are_those_promised(budget):
    parsed_spec = spec(('epsilon = "1"', budget))
    plan = ln.plan(parsed_spec.workload, parsed_spec.privacy)
    runs = [*releases(plan, SHOP.iloc[:0], range(60))]
    for number, table in enumerate(plan.expected_error().tables):
        squares = np.mean([run.tables[number].answer ** 2 for run in runs])
        assert np.sqrt(squares) == pytest.approx(table.rmse, rel=0.35)
    assert plan.expected_error().lower_bound <= plan.expected_error().total_squared_error


def test_files_and_report_describe_the_unit(plan, tmp_path):
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
    for sentence in (
        "Einheiten nach region",
        "Anzahl der Einheiten",
        "Als Einheit gilt: Wert der Spalte",
        "In Tabellen nach month zählt eine Einheit einmal in jeder Zelle",
    ):
        assert sentence in page
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
            'sum = "revenue"',
            'sum = "revenue"\ncount = "units"',
            'number 1: count must be left out or "rows", because a measure is summed',
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
def test_uncountable_units_are_refused(old, new, message):
    with pytest.raises(ln.InputError, match=message):
        spec((old, new))


def test_other_mechanisms_refuse_counts_of_units(plan):
    domain = ln.Domain(month=ln.Integers(0, 3))
    workload = ln.marginals(domain, ways=1, count="units")
    privacy = ln.Privacy(ln.PureDP(1), unit_column="customer", max_rows=5)
    for strategy, message in (
        ("truncated_sums", "this workload has counts of units"),
        ("dawa", "dawa"),
    ):
        with pytest.raises(ln.InputError, match=message):
            ln.plan(workload, privacy, strategy=strategy)
    with pytest.raises(
        ln.InputError, match="A plan that counts or adds up units cannot be audited yet"
    ):
        ln.audit(plan, trials=200)
    with pytest.raises(
        ln.InputError, match="A mean of units by month needs measurements of its sums"
    ):
        ln.means(ln.release(plan, SHOP, seed=1), "units by month", by=["month"])
    with pytest.raises(ln.InputError, match="got 'one of rows'"):
        ln.plan(workload, ln.PureDP(1))


def test_workloads_of_rows_and_units_add():
    domain = ln.Domain(region=["N", "S"], month=ln.Coded(2))
    rows = ln.marginals(domain, ways=1)
    units = ln.marginals(domain, upto=1, count="units", of_unit=["region"])
    assert [table.name for table in rows + units] == [
        "region",
        "month",
        "units",
        "units by region",
        "units by month",
    ]
    assert (rows + units).domain == (units + rows).domain == units.domain
    privacy = ln.Privacy(ln.ZCDP(1), unit_column="id", max_rows=9)
    for workload in (rows + units, units):
        plan = ln.plan(workload, privacy)
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
ROWS_TOO = (
    "[[workload]]\nqueries = { month = 'identity' }\n[[workload]]\nqueries.month = 'identity'\n"
    "sum = 'amount'"
)


def visits(cell="", tables=""):
    return parse_spec(VISIT_SPEC.format(cell=cell, more=tables), Path())


def answers(parsed_spec, source=VISITS):
    """Return the plan of a spec, and the rounded answers of a release by table."""
    plan = ln.plan(parsed_spec.workload, parsed_spec.privacy)
    release = ln.release(plan, source, seed=1)
    return plan, {table.name: table.answer.round().tolist() for table in release.tables}


@pytest.mark.parametrize("cell", ["", PER_CELL])
@pytest.mark.parametrize("tables", ["", ROWS_TOO])
@pytest.mark.parametrize("source", ["frame", "file", "relation"])
def test_units_with_many_rows_count_in_other_cells(cell, tables, source, tmp_path):
    data = VISITS
    if source == "file":
        VISITS.to_csv(data := tmp_path / "visits.csv", index=False)
    if source == "relation":
        data = duckdb.from_df(VISITS)
    _, counts = answers(visits(cell, tables), data)
    assert counts["units by month"] == [300, 100, 100]
    if tables:
        rows_in_cell = 3 if not cell else 1
        assert counts["month"] == counts["sum of amount by month"]
        assert 300 <= counts["month"][0] <= 200 + 100 * rows_in_cell
        assert sum(counts["month"]) == pytest.approx(500, abs=1)


def test_cell_limit_advice_applies_to_rows_only():
    for tables, warned in (("", False), (ROWS_TOO, True)):
        parsed_spec = visits(PER_CELL, tables)
        plan = ln.plan(parsed_spec.workload, parsed_spec.privacy)
        texts = " ".join(plan_warnings(parsed_spec, plan))
        assert ("max_per_cell makes nothing cheaper" in texts) is warned
    with_cell, without = (
        ln.plan(visits(cell).workload, visits(cell).privacy) for cell in (PER_CELL, "")
    )
    assert with_cell.expected_error().tables[0].rmse == without.expected_error().tables[0].rmse


def test_statements_for_people_in_some_cells_are_planned_with_others():
    """Another statement may add a cell to the attribute that the first leaves out."""
    domain = ln.Domain(flag=ln.Integers(0, 1, null="other"), pay=ln.Integers(0, 9))
    people = "SELECT flag, COUNT(DISTINCT id) AS n FROM rows WHERE flag IN (0, 1) GROUP BY flag"
    of_one = "SELECT COUNT(DISTINCT id) AS n FROM rows WHERE flag = 1"
    other_statement = "SELECT COALESCE(flag, 7) AS flag, COUNT(*) AS n FROM rows GROUP BY 1"
    workload = ln.sql(domain, people, of_one, other_statement, unit="id")
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
    either = ln.queries(domain, flag=ln.predicates([[0, 1]]), count="units")
    (table,) = ln.release(ln.plan(either, privacy), rows, seed=1).tables
    assert table.answer.round().tolist() == [3]


DAYS = pd.date_range("2024-01-01", "2024-02-29")
ACTIVE = pd.DataFrame(
    {
        "id": np.array([*range(60), None], dtype=object)[RNG.integers(0, 61, 900)],
        "day": DAYS.to_numpy()[RNG.integers(0, 60, 900)],
        "shop": np.array(["a", "b", "c", None], dtype=object)[RNG.integers(0, 4, 900)],
        "age": pd.array(RNG.integers(0, 100, 900), dtype="Int64"),
    }
)
ACTIVE.loc[RNG.random(900) < 0.05, "day"] = pd.NaT
ACTIVE.loc[RNG.random(900) < 0.05, "age"] = pd.NA
PEOPLE = """
[privacy]
{budget}
unit = {{ column = "id", max_rows = {rows} }}
[domain.day]
dates = {{ from = "2024-01-01", to = "2024-02-29", by = "day" }}
[domain.shop]
categories = ["a", "b", "c"]
levels.kind = {{ groups = {{ large = ["a", "b"], small = ["c"] }} }}
[domain.age]
integers = [0, 99]
"""


def people(workload, budget='epsilon = "100000"', rows=60):
    return parse_spec(PEOPLE.format(budget=budget, rows=rows) + workload, Path())


def distinct(where):
    """Return the distinct people by DuckDB over the same rows."""
    ((count,),) = duckdb.sql(f"SELECT COUNT(DISTINCT id) FROM ACTIVE WHERE {where}").fetchall()
    return count


GROUPS = {
    'shop = { level = "kind" }': ["shop IN ('a', 'b')", "shop = 'c'"],
    "age = { ranges = [[0, 17], [10, 30], [0, 99]] }": [
        "age <= 17",
        "age BETWEEN 10 AND 30",
        "age >= 0",
    ],
    "age = { predicates = [[1, 2, 50], [1, 2, 50, 51]] }": [
        "age IN (1, 2, 50)",
        "age IN (1, 2, 50, 51)",
    ],
    'day = { level = "month" }, shop = "identity"': [
        f"month(day) = {month} AND shop = '{shop}'" for month in (1, 2) for shop in "abc"
    ],
    "day = { rolling = 28 }": [
        f"day BETWEEN DATE '2024-01-01' + {start} AND DATE '2024-01-28' + {start}"
        for start in range(33)
    ],
    'day = "prefix"': [f"day <= DATE '2024-01-01' + {last}" for last in range(60)],
}


@pytest.mark.parametrize("source", ["frame", "relation", "file"])
@pytest.mark.parametrize(
    "queries", GROUPS, ids=["level", "ranges", "predicates", "joint", "rolling", "prefix"]
)
def test_people_in_groups_match_duckdb(queries, source, tmp_path):
    parsed_spec = people(f"[[workload]]\nqueries = {{ {queries} }}\ncount = 'units'")
    data = ACTIVE
    if source == "relation":
        data = duckdb.from_df(ACTIVE)
    if source == "file":
        ACTIVE.to_parquet(data := tmp_path / "active.parquet")
    plan = ln.plan(parsed_spec.workload, parsed_spec.privacy)
    assert ln.Plan.from_json(plan.to_json()) == plan
    (table,) = ln.release(plan, data, seed=1).tables
    counts = np.round(table.answer).astype(int).reshape(-1).tolist()
    assert counts == [distinct(where) for where in GROUPS[queries]]


STATEMENTS = {
    "months": (
        "SELECT date_trunc('month', day) AS m, COUNT(DISTINCT id) AS n FROM ACTIVE "
        "WHERE day IS NOT NULL GROUP BY 1"
    ),
    "filtered counts": (
        "SELECT shop, COUNT(DISTINCT id) AS n, COUNT(DISTINCT id) FILTER (WHERE age >= 18) AS "
        "adults FROM ACTIVE WHERE shop IS NOT NULL AND day >= DATE '2024-01-15' GROUP BY shop"
    ),
    "groups by CASE": (
        "SELECT CASE WHEN age < 18 THEN 'child' ELSE 'adult' END AS stage, COUNT(DISTINCT id) AS n "
        "FROM ACTIVE WHERE age IS NOT NULL GROUP BY 1"
    ),
    "counts of CASE": (
        "SELECT COUNT(DISTINCT CASE WHEN shop <> 'a' THEN id END) AS n FROM ACTIVE "
        "WHERE age BETWEEN 18 AND 64"
    ),
}


@pytest.mark.parametrize("text", STATEMENTS.values(), ids=STATEMENTS)
def test_statements_of_people_have_the_answers_of_duckdb(text):
    parsed_spec = people("[[workload]]\nqueries.age = 'identity'")
    workload = ln.sql(parsed_spec.domain, text, unit="id")
    release = ln.release(ln.plan(workload, parsed_spec.privacy), ACTIVE, seed=1)
    answer = release.sql(text, "pandas")
    expected = duckdb.sql(text).df()
    for name in ("n", "adults"):
        if name in expected:
            assert sorted(answer[name].round()) == sorted(expected[name])


@pytest.mark.slow
@pytest.mark.parametrize("budget", ['rho = "1/2"', 'epsilon = "1"'])
def test_people_in_groups_have_the_errors_promised(budget):
    """A unit with days in both months counts twice, as does the noise."""
    parsed_spec = people(
        "[[workload]]\nqueries = { day = { level = 'month' } }\ncount = 'units'\n"
        "[[workload]]\nqueries = { age = { ranges = [[0, 50], [20, 99]] } }\ncount = 'units'",
        budget,
    )
    plan = ln.plan(parsed_spec.workload, parsed_spec.privacy)
    expected_error = plan.expected_error()
    assert expected_error.lower_bound <= expected_error.total_squared_error
    runs = [*releases(plan, ACTIVE.iloc[:0], range(80))]
    for number, table in enumerate(expected_error.tables):
        squares = np.mean([run.tables[number].answer ** 2 for run in runs])
        assert np.sqrt(squares) == pytest.approx(table.rmse, rel=0.35)
    if "rho" in budget:
        months_only = people(
            "[[workload]]\nqueries = { day = { level = 'month' } }\ncount = 'units'", budget
        )
        cells = ln.plan(months_only.workload, months_only.privacy, strategy="identity")
        # A person is in two months, whatever `max_rows` is.
        assert cells.expected_error().tables[0].rmse == pytest.approx(2**0.5)


def test_max_rows_bounds_the_groups_of_a_person():
    rows = pd.DataFrame({"id": 1, "day": DAYS, "shop": "a", "age": 5})
    for max_rows, expected in ((1, 1), (2, 2), (60, 2)):
        parsed_spec = people(
            "[[workload]]\nqueries = { day = { level = 'month' } }\ncount = 'units'", rows=max_rows
        )
        (table,) = ln.release(
            ln.plan(parsed_spec.workload, parsed_spec.privacy), rows, seed=1
        ).tables
        assert table.answer.round().sum() == expected


def test_uncountable_groups_of_people_are_refused():
    for queries, message in (
        ("age = 'all_ranges'", "too many groups"),
        ("age = { matrix = [[" + ", ".join(["2"] * 100) + "]] }", "must be cells, levels, ranges"),
        ("day = { change = 1 }", "must be cells, levels, ranges"),
    ):
        with pytest.raises(ln.InputError, match=message):
            people(f"[[workload]]\nqueries = {{ {queries} }}\ncount = 'units'")
    parsed_spec = people("[[workload]]\nqueries = { shop = { level = 'kind' } }\ncount = 'units'")
    (measure,) = parsed_spec.workload.measures
    with pytest.raises(ln.InputError, match="must be groups of shop that it counts"):
        ln.queries(parsed_spec.workload.domain, shop="identity", sum=measure)


INCOMPLETE = ln.Domain(
    region=ln.Categories(["N", "S", "W"], levels={"coast": {"N": "yes", "S": "no", "W": "yes"}}),
    month=ln.Coded(4),
)
PUBLISHED_OPTIONS: list[dict[str, object]] = [
    {"non_negative": True},
    {"integer": True},
    {"nnls": True},
    {"round": 5, "below": 20},
    {"formats": ["csv", "xlsx", "sdmx"]},
]
REFUSED_OPTIONS: list[dict[str, object]] = [
    {"local_non_negative": True},
    {"top_down": True},
    {"round": 5, "rounding": "controlled"},
]


@pytest.mark.parametrize(
    ("option", "is_refused"),
    [
        *((option, False) for option in PUBLISHED_OPTIONS),
        *((option, True) for option in REFUSED_OPTIONS),
    ],
    ids=str,
)
@pytest.mark.parametrize("counted", [{"month": "identity"}, {"region": ln.level("coast")}], ids=str)
def test_every_option_publishes_people_or_is_refused_unpaid(option, is_refused, counted, tmp_path):
    """The attributes have hidden cells, because each is in one of the tables only."""
    workload = ln.marginals(INCOMPLETE, ways=1) + ln.queries(INCOMPLETE, counted, count="units")
    privacy = ln.Privacy(ln.ZCDP(2), unit_column="customer", max_rows=2)
    plan = ln.plan(workload, privacy, strategy="marginals")
    options = ln.Options(**{"formats": ["csv"], **option})
    ledger = tmp_path / "shop.ledger"
    if is_refused:
        with pytest.raises(ln.InputError):
            ln.release(plan, SHOP, ledger=ledger, out=tmp_path / "out", options=options)
        assert not ledger.exists()
        return
    release = ln.release(plan, SHOP, ledger=ledger, out=tmp_path / "out", options=options)
    assert ln.read_release(tmp_path / "out").tables[0].name == release.tables[0].name
