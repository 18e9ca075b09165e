"""Totals of units: every source, heavy tails and refusals, from the spec to the report."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import leastnoise as ln
from leastnoise._session import enter_release, optional_attributes
from leastnoise._spec import parse_spec
from leastnoise._trusted.measurements import cost
from leastnoise._trusted.table import Counted, open_content
from session.releasing import report
from simulated import read_table, releases

SPEC = """
[privacy]
epsilon = "1000000"
unit = { column = "customer", max_rows = 16 }
[domain.month]
integers = [1, 4]
levels.half = { edges = [1, 3, 5] }
[domain.region]
categories = ["N", "S", "W"]
null = "cell"
[measures.revenue]
column = "amount"
unit = "0.01"
unit_total = { clip = [-50, "70.5"], by = ["month", "region"] }
"""
BY_BOTH = """
[[workload]]
queries = { month = "identity", region = "identity" }
sum = "revenue"
"""
TOTALS = """
SELECT {groups}, SUM(t) AS revenue FROM (
    SELECT month, region, LEAST(70.5, GREATEST(-50, SUM(amount))) AS t
    FROM orders WHERE customer IS NOT NULL AND {months}
    GROUP BY customer, month, region HAVING COUNT(amount) > 0)
{where} GROUP BY ALL ORDER BY ALL
"""


def orders(rows=3000, seed=1):
    """Return orders in cents and refunds, with nulls in every column."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "customer": rng.integers(0, 150, rows).astype(str),
            "month": rng.integers(1, 6, rows),
            "region": np.array(["N", "S", "W", None], dtype=object)[rng.integers(0, 4, rows)],
            "amount": np.round(rng.normal(5, 20, rows), 2),
        }
    )
    frame.loc[rng.random(rows) < 0.1, "amount"] = np.nan
    frame.loc[rng.random(rows) < 0.05, "customer"] = None
    return frame


ORDERS = orders()


def spec(workload=BY_BOTH, *changes):
    """Return the spec with a workload, and each old text replaced by its new one."""
    text = SPEC + workload
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_spec(text, Path())


def release(parsed_spec, data=ORDERS, **options):
    return ln.release(ln.plan(parsed_spec.workload, parsed_spec.privacy), data, seed=1, **options)


def by_duckdb(groups, where="", orders=ORDERS, months="month BETWEEN 1 AND 4"):
    """Return the clipped totals by DuckDB over the same rows."""
    answer = duckdb.sql(TOTALS.format(groups=groups, where=where, months=months)).df()
    return answer["revenue"].round(2).tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars", "csv", "parquet", "relation"])
def test_totals_match_duckdb(kind, tmp_path):
    parsed_spec = spec()
    shuffled = ORDERS.sample(frac=1, random_state=3)
    if kind == "pandas":
        data = shuffled
    elif kind == "polars":
        data = pl.from_pandas(shuffled)
    elif kind == "relation":
        data = duckdb.from_df(shuffled)
    elif kind == "csv":
        data = tmp_path / "orders.csv"
        shuffled.to_csv(data, index=False)
    else:
        data = tmp_path / "orders.parquet"
        shuffled.to_parquet(data)
    (table,) = release(parsed_spec, data).tables
    assert np.round(table.answer, 2).reshape(-1).tolist() == by_duckdb("month, region")


def test_guard_says_what_an_empty_attribute_does_to_totals():
    parsed_spec = spec(
        '[[workload]]\nqueries = {}\nsum = "revenue"\n[plan]\nguard = "1/10"',
        ('null = "cell"\n', ""),
    )
    plan = ln.plan(parsed_spec.workload, parsed_spec.planned_privacy)
    rows = ORDERS.assign(region="unknown")
    message = "would be clipped over all rows without a value together, and not by 'region'"
    with pytest.raises(ln.GuardError, match=message) as stop:
        ln.release(plan, rows, seed=1, options=parsed_spec.options)
    assert "tables by" not in str(stop.value)


@pytest.mark.parametrize("kind", ["pandas", "relation"])
def test_missing_cells_count_in_tables_without_them(kind):
    """Months beyond the domain count too, and no table needs all attributes of the cells."""
    parsed_spec = spec(
        """
[[workload]]
queries = { month = "identity" }
sum = "revenue"
[[workload]]
queries = {}
sum = "revenue"
""",
        ('null = "cell"\n', ""),
        ("max_rows = 16", "max_rows = 20"),
    )
    data = duckdb.from_df(ORDERS) if kind == "relation" else ORDERS
    by_month, total = release(parsed_spec, data).tables
    assert np.round(by_month.answer, 2).tolist() == by_duckdb("month")
    assert np.round(total.answer, 2).reshape(-1).tolist() == by_duckdb("1", months="TRUE")


@pytest.mark.slow
def test_levels_ranges_and_sql_are_sums_of_the_same_totals():
    parsed_spec = spec(
        """
[[workload]]
queries = { month = { level = "half" } }
sum = "revenue"
[[workload]]
sql = "SELECT region, SUM(amount) AS revenue, SUM(amount) FILTER (WHERE month > 2) AS late \
FROM orders WHERE region <> 'W' GROUP BY region"
""",
        ("max_rows = 16", "max_rows = 20"),
    )
    result = release(parsed_spec)
    halves = [by_duckdb("1", f"WHERE month BETWEEN {low} AND {low + 1}")[0] for low in (1, 3)]
    assert np.round(result.tables[0].answer, 2).tolist() == halves
    answer = result.sql(
        "SELECT region, SUM(amount) AS revenue, SUM(amount) FILTER (WHERE month > 2) AS late "
        "FROM orders WHERE region <> 'W' GROUP BY region",
        "pandas",
    )
    north_and_south = "WHERE region IN ('N', 'S')"
    revenue = by_duckdb("region", north_and_south, months="TRUE")
    assert answer["revenue"].round(2).tolist() == revenue
    late = by_duckdb("region", f"{north_and_south} AND month > 2")
    assert answer["late"].round(2).tolist() == late


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget", ['rho = "1/2"', 'epsilon = "1"', 'epsilon = "1"\ndelta = "1e-7"']
)
def test_errors_are_those_promised(budget):
    parsed_spec = spec(
        BY_BOTH + 'weight = 2\n[[workload]]\nqueries.month = "prefix"\nsum = "revenue"',
        ('epsilon = "1000000"', budget),
    )
    plan = ln.plan(parsed_spec.workload, parsed_spec.privacy)
    expected_error = plan.expected_error()
    assert expected_error.lower_bound <= expected_error.total_squared_error
    runs = [*releases(plan, ORDERS.iloc[:0], range(60))]
    for number, table in enumerate(expected_error.tables):
        squares = np.mean([run.tables[number].answer ** 2 for run in runs])
        assert np.sqrt(squares) == pytest.approx(table.rmse * 0.01, rel=0.3)


def test_noise_hides_the_largest_total_in_every_cell():
    """Sixteen cells of 70.50 need the root of 16 times the noise of one, as separate rows do."""
    parsed_spec = spec(BY_BOTH, ('epsilon = "1000000"', 'rho = "1/2"'))
    plan = ln.plan(parsed_spec.workload, parsed_spec.privacy)
    assert plan.expected_error().tables[0].rmse == pytest.approx(7050 * 16**0.5, rel=1e-6)
    reread = ln.Plan.from_json(plan.to_json())
    assert reread == plan
    assert cost(reread.measured()) == cost(plan.measured())


def test_limit_of_cells_bounds_the_cells_of_a_unit():
    rows = pd.DataFrame(
        {"customer": "a", "month": [1, 1, 2, 3, 4] * 30, "region": "N", "amount": 1.0}
    )
    parsed_spec = spec(BY_BOTH, ("max_rows = 16", "max_rows = 2"))
    (table,) = release(parsed_spec, rows).tables
    answers = np.round(table.answer, 2)
    assert np.count_nonzero(answers) == 2
    assert set(answers[answers != 0].tolist()) <= {30.0, 60.0}
    nulls = rows.assign(amount=[1.0, 2.0, None, None, None] * 30)
    (table,) = release(spec(BY_BOTH, ("max_rows = 16", "max_rows = 1")), nulls).tables
    assert np.round(table.answer[0, 0], 2) == 70.5  # cells without a value take no cell's place


def heavy_tails(customers, seed=5):
    """Draw orders of customers, up to 5,000 each, in a few months and regions of their own."""
    rng = np.random.default_rng(seed)
    number = np.minimum(np.ceil((rng.pareto(1.1, customers) + 1) * 5), 5000).astype(int)
    customer = np.repeat(np.arange(customers), number)
    rows = len(customer)
    amount = np.minimum(np.round(rng.lognormal(1.7, 0.9, rows), 2), 100)
    region = np.array(["N", "S", "W"])[(customer + (rng.random(rows) < 0.1)) % 3]
    return pd.DataFrame(
        {
            "customer": customer,
            "month": rng.integers(1, 5, rows),
            "region": region,
            "amount": amount,
        }
    )


HEAVY = """
[privacy]
rho = "1/2"
unit = { column = "customer", max_rows = %s }
[domain.month]
integers = [1, 4]
[domain.region]
categories = ["N", "S", "W"]
[measures.revenue]
column = "amount"
%s
"""


def kept_and_error(data, limit, measure):
    """Return the share of the revenue that a release keeps, and its planned error."""
    parsed_spec = parse_spec(HEAVY % (limit, measure) + BY_BOTH, Path())
    plan = ln.plan(parsed_spec.workload, parsed_spec.privacy)
    (table,) = ln.release(plan, data, seed=3).tables
    error = plan.expected_error().tables[0].rmse
    return float(table.answer.sum()) / data["amount"].sum(), error


def test_totals_keep_more_of_heavy_tails_than_row_limits():
    data = heavy_tails(20_000)
    kept_by_rows, error_of_rows = kept_and_error(data, 40, "clip = [0, 100]")
    total = 'unit_total = { clip = [0, 1150], by = ["month", "region"] }'
    kept_share, error = kept_and_error(data, 12, total)
    assert error <= error_of_rows
    assert kept_by_rows < 0.6
    assert kept_share > 0.8


@pytest.mark.parametrize(
    ("workload", "changes", "message"),
    [
        (
            BY_BOTH,
            [("unit_total = {", "clip = [0, 1]\nunit_total = {")],
            "must have either 'clip', the public bounds of a value, or 'unit_total'",
        ),
        (BY_BOTH, [('clip = [-50, "70.5"], ', "")], "unit_total must have 'clip'"),
        (BY_BOTH, [('by = ["month", "region"]', 'by = ["moth"]')], "attributes of the domain"),
        (
            BY_BOTH,
            [('by = ["month", "region"]', 'by = "month"')],
            "by must be a list of attributes",
        ),
        (
            BY_BOTH,
            [('by = ["month", "region"]', 'by = ["month"]')],
            (
                r"month x region.*The values of a unit are added up in each cell of by: add "
                r"region to by"
            ),
        ),
        (BY_BOTH, [('{ column = "customer", max_rows = 16 }', '"row"')], "every row is a unit"),
        ('[[workload]]\nmeans = { of = "revenue" }', [], "A total of units has no mean of rows"),
        ("[[workload]]\nsql = 'SELECT AVG(amount) FROM orders'", [], r"AVG\(amount\)"),
        (BY_BOTH + 'weighted_by = "revenue"', [], "weight"),
    ],
)
def test_other_uses_of_totals_are_refused(workload, changes, message):
    with pytest.raises(ln.InputError, match=message):
        plan_of_spec(workload, *changes)


def plan_of_spec(workload, *changes):
    parsed_spec = spec(workload, *changes)
    return ln.plan(parsed_spec.workload, parsed_spec.privacy)


@pytest.mark.parametrize("strategy", ["truncated_sums", "dawa", "model"])
def test_data_dependent_mechanisms_refuse_totals(strategy):
    parsed_spec = spec('[[workload]]\nqueries.month = "identity"\nsum = "revenue"')
    with pytest.raises(ln.InputError):
        ln.plan(parsed_spec.workload, parsed_spec.privacy, strategy=strategy)


def test_report_describes_totals(tmp_path):
    parsed_spec = spec(BY_BOTH, ('epsilon = "1000000"', 'rho = "1/2"'))
    plan = ln.plan(parsed_spec.workload, parsed_spec.privacy)
    for language, sentence in (
        (
            "en",
            (
                "In sums of revenue the values of each unit are added up in each cell of month "
                "and region"
            ),
        ),
        (
            "de",
            (
                "In Summen von revenue werden die Werte jeder Einheit in jeder Zelle von month "
                "und region"
            ),
        ),
    ):
        out = tmp_path / language
        options = ln.Options(language=language)
        ledger = tmp_path / f"{language}.ledger"
        ln.release(plan, ORDERS, out=out, options=options, ledger=ledger, dataset=language)
        assert sentence in report(out)
        assert "1073741823" not in report(out).replace(",", "").replace(".", "")


@pytest.mark.parametrize("counts_rows", [False, True])
def test_only_tables_of_rows_state_the_row_limit(tmp_path, counts_rows):
    people = """
[[workload]]
queries = { month = "identity", region = "identity" }
count = "units"
[plan]
guard = "1/10"
[names]
rows = "orders"
unit = "customer"
[names.measures.revenue]
name = "turnover"
"""
    tables = BY_BOTH + people
    if counts_rows:
        tables = '[[workload]]\nqueries = { month = "identity" }\n' + tables
    parsed_spec = spec(
        tables, ("max_rows = 16", "max_rows = 2"), ('epsilon = "1000000"', 'epsilon = "40"')
    )
    plan = ln.plan(parsed_spec.workload, parsed_spec.planned_privacy)
    out = tmp_path / "out"
    options = {"options": parsed_spec.options, "dataset": "orders", "out": out}
    ln.release(plan, ORDERS, ledger=tmp_path / "orders.ledger", **options)
    page = report(out)
    row_limit = "at most 2 rows of every customer: intervals cover the noise"
    assert (row_limit in page) == counts_rows
    assert ("(at most 2 rows of each customer)" in page) == counts_rows
    assert ("rows of each customer are protected together" in page) != counts_rows
    assert "In sums of turnover each customer counts in at most 2 cells" in page
    first_screen = page.partition("<h2")[0]
    assert "each customer is counted in at most 2 of the cells that contain its" in first_screen


@pytest.mark.parametrize("tables", ["", '[[workload]]\nqueries = { month = "identity" }\n'])
def test_guard_estimates_the_share_that_was_cut(tmp_path, tables):
    """The guard also counts a column that only some tables use.

    Of twelve thousand customers with 100, one in ten has 300, of which 100 count: 1/7 is cut.
    """
    rows = pd.DataFrame(
        {
            "customer": np.repeat(np.arange(12_000), 2),
            "month": 1,
            "region": "N",
            "amount": np.repeat(np.where(np.arange(12_000) % 10 == 0, 150.0, 50.0), 2),
        }
    )
    parsed_spec = spec(
        BY_BOTH + tables + '[plan]\nguard = "1/10"',
        ('epsilon = "1000000"', 'epsilon = "40"'),
        ('null = "cell"\n', ""),
        ('[-50, "70.5"]', "[0, 100]"),
        ("max_rows = 16", "max_rows = 1"),
    )
    plan = ln.plan(parsed_spec.workload, parsed_spec.planned_privacy)
    assert optional_attributes(plan) == (("region",) if tables else ())
    out = tmp_path / "out"
    options = {"options": parsed_spec.options, "dataset": "orders", "out": out}
    ln.release(plan, rows, ledger=tmp_path / "orders.ledger", **options)
    release = ln.read_release(out)
    (amounts,) = release.receipt.guard.amounts
    assert amounts.kept == pytest.approx(1_200_000, abs=5 * amounts.kept_std)
    assert amounts.cut == pytest.approx(240_000, abs=5 * amounts.cut_std)
    assert amounts.cut_std < 1000
    sentence = "At least about 17% of the amount of revenue was cut by these bounds"
    assert sentence in report(out)
    privacy = ln.Privacy(ln.PureDP(100), unit_column="customer")
    other_ledger = ln.Ledger.create(tmp_path / "second.ledger", "copy", privacy)
    enter_release(other_ledger, out)
    assert str(other_ledger.left()) == "epsilon = 60"
    assert len(other_ledger.entries()) == 2


def test_guard_admits_totals_of_which_no_table_has_all_attributes(tmp_path):
    parsed_spec = spec(
        '[[workload]]\nqueries = { month = "identity" }\nsum = "revenue"\n[plan]\nguard = "1/10"',
        ('null = "cell"\n', ""),
    )
    plan = ln.plan(parsed_spec.workload, parsed_spec.planned_privacy)
    payment = {
        "ledger": tmp_path / "orders.ledger",
        "dataset": "orders",
        "options": parsed_spec.options,
    }
    (table,) = ln.release(plan, ORDERS, **payment).tables
    assert np.allclose(table.answer, by_duckdb("month"), atol=0.1)


@pytest.mark.parametrize("kind", ["pandas", "relation"])
def test_amounts_cut_match_every_unit(kind):
    """Three cells of 500, 20 and -400 under bounds of -50 and 70.50, with two of them counted."""
    rows = pd.DataFrame(
        {
            "customer": "a",
            "month": [1, 1, 2, 3, 3],
            "region": "N",
            "amount": [450.0, 50.0, 20.0, -100.0, -300.0],
        }
    )
    parsed_spec = spec(BY_BOTH, ("max_rows = 16", "max_rows = 2"))
    cut_amounts = set()
    for _ in range(20):
        data = duckdb.from_df(rows) if kind == "relation" else rows
        table = read_table(
            ln.plan(parsed_spec.workload, parsed_spec.privacy), data, with_usage=True
        )
        numbers = open_content(table.usage, Counted).tables
        cut_amounts.add(
            (int(numbers["kept of revenue", ()][0]), int(numbers["cut of revenue", ()][0]))
        )
    largest = 2 * 3 * 7050
    assert cut_amounts <= {
        (7050 + 2000, min(42950 + 40000, largest)),
        (7050 + 5000, min(42950 + 35000 + 2000, largest)),
        (5000 + 2000, min(50000 + 35000, largest)),
    }
    assert len(cut_amounts) > 1
