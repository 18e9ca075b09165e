"""SQL of BI tools is answered as by DuckDB where the noise is near 0."""

import datetime as dt
import math
import re
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from differential.exact import ExactNumbers
from leastnoise._release import answer_statement
from leastnoise._workload import SqlSettings, over_common_domain, read_statements
from workload.sql.answer_rows import (
    assert_rows_equal,
    is_row_close,
    normalize,
    normalized_rows,
)

TODAY = "2024-12-31"
CITIES = ["Bern", "Lyon", "Oslo", "Rome", "Ulm"]  # Ulm has no rows
GROUPS = {"apple": "fruit", "pear": "fruit", "kale": "greens"}
DOMAIN = ln.Domain(
    city=CITIES,
    day=ln.Dates("2024-01-01", "2024-12-31", by="month"),
    product=ln.Categories(list(GROUPS), levels={"family": GROUPS}),
    channel=ln.Categories(["web", "app", "store"], null="other"),
    refund=ln.Categories([True, False]),
    trial=["A", "B"],
    basket=ln.Edges([0, 25, 50, 75, 100], outside="clip", reading={"column": "amount"}),
    measures={"amount": ln.Measure("amount", -100, 100)},
)
UNIT = {"unit": "customer"}


@pytest.fixture(scope="module")
def rows():
    """Return random orders of customers."""
    rng = np.random.default_rng(5)
    count = 600
    frame = pd.DataFrame(
        {
            "city": rng.choice(CITIES[:4], count, p=[0.4, 0.3, 0.2, 0.1]),
            "day": [
                dt.date(2024, 1, 1) + dt.timedelta(int(day)) for day in rng.integers(0, 366, count)
            ],
            "product": rng.choice(list(GROUPS), count),
            "channel": rng.choice(["web", "app", "store", None], count, p=[0.4, 0.3, 0.2, 0.1]),
            "refund": rng.random(count) < 0.2,
            "trial": rng.choice(["A", "B"], count),
            "amount": rng.integers(0, 101, count),
            "customer": rng.integers(0, 200, count),
        }
    )
    frame["family"] = frame["product"].map(GROUPS)
    return frame


def named_statements(path):
    """Return the statements of a file by their names, in a comment before each."""
    pattern = r"^-- ([^\n]+)\n([^\n-][^;]+);"
    statements = re.findall(pattern, path.read_text("utf-8"), re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in statements}


TOP = "SELECT city FROM orders GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2"
STATEMENTS = named_statements(Path(__file__).with_name("bi_statements.sql"))


def exact_frame(text, rows, domain=DOMAIN):
    """Return the answer to a statement without noise."""
    statements = read_statements(domain, [text], SqlSettings(unit="customer", today=TODAY))
    (statement,) = over_common_domain(statements)
    frame = pd.DataFrame(answer_statement(statement, ExactNumbers(prepared(rows), "customer")))
    return frame[[name for name in frame if not name.endswith(("_low", "_high"))]]


def prepared(rows):
    """Return the rows with a column for each attribute, measure and unit."""
    return rows.assign(basket=rows["amount"]).drop(columns="family")


def reference(text, rows):
    """Return the answer of DuckDB to the statement in its dialect."""
    text = re.sub(r"CURRENT_DATE|NOW\(\)", f"DATE '{TODAY}'", text)
    text = text.replace("TO_TIMESTAMP(", "strptime(").replace("TO_DATE(", "strptime(")
    text = text.replace("'YYYY-MM-DD HH24:MI:SS'", "'%Y-%m-%d %H:%M:%S'")
    text = text.replace("'YYYY-MM-DD'", "'%Y-%m-%d'").replace(
        "TO_CHAR(day, 'YYYY-MM')", "strftime(day, '%Y-%m')"
    )
    text = text.replace(
        "WIDTH_BUCKET(amount, 0, 50, 2)", "CAST(LEAST(1 + floor(amount / 25), 3) AS INT)"
    )
    text = text.replace("basket", "amount").replace("`", '"')
    if " TOP 2 " in text:
        text = text.replace(" TOP 2 ", " ") + " LIMIT 2"
    text = text.replace("APPROX_COUNT_DISTINCT(customer)", "COUNT(DISTINCT customer)")
    text = text.replace(
        "WITH orders AS (SELECT * FROM orders", "WITH orders AS (SELECT * FROM main.orders"
    )
    with duckdb.connect(":memory:") as database:
        database.execute("CREATE SCHEMA public")
        for schema in ("main", "public"):
            database.register("frame", rows)
            database.execute(
                f"CREATE TABLE {schema}.orders AS SELECT * REPLACE (CAST(day AS DATE) AS day) "
                "FROM frame"
            )
        return [tuple(map(normalize, row)) for row in database.execute(text).fetchall()]


@pytest.mark.parametrize("text", STATEMENTS.values(), ids=STATEMENTS)
def test_sql_is_answered_as_duckdb_does_without_noise(rows, text):
    frame = exact_frame(text, rows)
    answer = normalized_rows(frame)
    is_ordered = re.search(r"ORDER BY[^()]*$", text) is not None
    assert_rows_equal(answer, reference(text, rows), is_ordered=is_ordered)


@pytest.mark.parametrize(
    ("text", "in_duckdb"),
    [
        ("DATE_FORMAT(day, '%Y-%m')", "strftime(day, '%Y-%m')"),
        ("DATE_FORMAT(day, 'yyyy-MM')", "strftime(day, '%Y-%m')"),
        ("FORMAT(day, 'yyyy-MM')", "strftime(day, '%Y-%m')"),
        ("TO_CHAR(day, 'YYYY-\"Q\"Q')", "year(day) || '-Q' || quarter(day)"),
        (
            "TO_CHAR(day, 'Mon FMMM, MONTH')",
            "strftime(day, '%b %-m, ') || rpad(upper(strftime(day, '%B')), 9, ' ')",
        ),
        (
            "TO_CHAR(DATE_TRUNC('quarter', day), 'DDD')",
            "strftime(date_trunc('quarter', day), '%j')",
        ),
        (
            "TO_CHAR(DATE_TRUNC('month', day), 'DD am, TMMM')",
            "lower(strftime(date_trunc('month', day), '%d %p, %m'))",
        ),
        ("TO_VARCHAR(day, 'mon YY')", "lower(strftime(day, '%b')) || strftime(day, ' %y')"),
        ("FORMAT_TIMESTAMP('%Y-%m', TIMESTAMP_TRUNC(day, MONTH))", "strftime(day, '%Y-%m')"),
        ("DATE_TRUNC(orders.day, QUARTER)", "date_trunc('quarter', day)"),
        ("DATEADD(MONTH, DATEDIFF(MONTH, 0, day), 0)", "date_trunc('month', day)"),
        ("DATEADD(MONTH, DATEDIFF(MONTH, '19000101', day), 0)", "date_trunc('month', day)"),
        ("NVL2(channel, 'known')", "CASE WHEN channel IS NOT NULL THEN 'known' END"),
        ("DATEPART(quarter, day)", "quarter(day)"),
        ("ADD_MONTHS(DATE_TRUNC('month', day), 1)", "date_trunc('month', day) + INTERVAL 1 MONTH"),
        ("TRUNC(day, 'MM')", "date_trunc('month', day)"),
        ("TO_DATE(DATE_TRUNC('month', day))", "date_trunc('month', day)::DATE"),
        ("LPAD(MONTH(day), 2, '0')", "lpad(month(day)::VARCHAR, 2, '0')"),
        (
            "TIMESTAMP(day) >= (SELECT DATE '2024-03-01' + (2 || ' month')::INTERVAL)",
            "day >= DATE '2024-05-01'",
        ),
        (
            "NVL2(channel, N'known', 'none')",
            "CASE WHEN channel IS NULL THEN 'none' ELSE 'known' END",
        ),
        ("DECODE(channel, 'web', 'W', 'S')", "CASE WHEN channel = 'web' THEN 'W' ELSE 'S' END"),
        ("city = ANY(ARRAY['Bern', 'Oslo'])", "city IN ('Bern', 'Oslo')"),
        ("FORMAT_DATE('%b %Y', day)", "strftime(day, '%b %Y')"),
        ("day >= DATEADD(day, -30, CURRENT_DATE)", "day >= DATE '2024-12-01'"),
        ("day >= DATE_SUB(GETDATE(), INTERVAL 30 DAY)", "day >= DATE '2024-12-01'"),
        ("day < DATE_ADD(DATE '2024-01-01', INTERVAL 60 DAY)", "day < DATE '2024-03-01'"),
        ("IFF(channel = 'web', 1, 0)", "IF(channel = 'web', 1, 0)"),
        ("ISNULL(channel, 'none')", "COALESCE(channel, 'none')"),
    ],
)
def test_functions_of_other_databases_are_translated(rows, text, in_duckdb):
    frames = [
        exact_frame(f"SELECT {part} AS g, COUNT(*) AS n FROM orders GROUP BY 1", rows)
        for part in (text, in_duckdb)
    ]
    pd.testing.assert_frame_equal(*frames)


@pytest.mark.parametrize(
    ("text", "in_duckdb"),
    [
        ("SUM(amount) / SUM(SUM(amount)) OVER ()", "RATIO_TO_REPORT(SUM(amount)) OVER ()"),
        ("IF(COUNT(DISTINCT customer) <> 0, SUM(amount) / COUNT(DISTINCT customer), NULL)",
         "SAFE_DIVIDE(SUM(amount), COUNT(DISTINCT customer))"),
        ("GROUPING(city, product)", "GROUPING_ID(city, product)"),
    ],
)  # fmt: skip
def test_functions_of_aggregates_are_translated(rows, text, in_duckdb):
    frames = [
        exact_frame(f"SELECT city, product, {part} AS x FROM orders GROUP BY {groups}", rows)
        for part, groups in ((text, "ROLLUP (city, product)"), (in_duckdb, "1, 2 WITH ROLLUP"))
    ]
    pd.testing.assert_frame_equal(*frames)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT FLOOR(basket / 25) AS b FROM orders GROUP BY 1", "a last edge above its end"),
        ("SELECT FLOOR(basket * 50) AS b FROM orders GROUP BY 1", "at most 1000"),
        ("SELECT SOUNDEX(city) AS b FROM orders GROUP BY 1", "SOUNDEX in SELECT cannot"),
        ("SELECT customer, COUNT(*) FROM orders GROUP BY 1",
         "Rows of one unit are never published"),
        ("SELECT AVG(s) FROM (SELECT customer, SUM(amount) AS s FROM orders GROUP BY 1) t",
         "the mean of its totals"),
        ("SELECT COUNT(*) AS n FROM orders WHERE n > 5",
         r"WHERE with COUNT\(\*\) cannot .* in HAVING"),
        ("SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM orders p WHERE refund)",
         "A subquery in WHERE"),
        (("SELECT city, (SELECT COUNT(*) FROM orders p WHERE p.city = o.city) AS n FROM orders "
            "o GROUP BY 1"),
         "o.city, whose table FROM does not have"),
        (("SELECT COUNT(*) FROM orders WHERE day > (SELECT MAX(q) FROM (SELECT day AS q FROM "
            "orders GROUP BY 1) t)"),
         "constant within a cell of day"),
        (("SELECT SUM(a) FROM (SELECT amount AS a FROM orders WHERE refund UNION ALL SELECT "
            "amount FROM orders) u"),
         "UNION of rows in FROM .* joins the conditions by OR"),
        (("SELECT city, MAX(t.n) FROM orders JOIN (SELECT city, COUNT(*) AS n FROM orders GROUP "
            "BY 1) t USING (city)"),
         "Aggregate the rows first, in a subquery"),
        (f"SELECT COUNT(*) FROM orders o JOIN ({TOP}) t ON o.city = t.city AND o.trial = o.city",
         "uses no column except the keys"),
        (f"SELECT COUNT(*) FROM orders o JOIN ({TOP}) t ON o.city = t.city AND o.trial = t.city",
         "uses no column except the keys"),
        (f"SELECT COUNT(*) FROM orders ANTI JOIN ({TOP}) t USING (city)",
         "Aggregate the rows first"),
        ("WITH p AS (SELECT 9 AS x) SELECT COUNT(*) FROM p P JOIN orders ON basket > P.x",
         "JOIN of the rows"),
        ("SELECT SUM(DISTINCT amount) FROM orders", "Leave DISTINCT out"),
        ("SELECT COUNT(DISTINCT city) FROM orders", "count groups"),
        ("SELECT MODE(city) FROM orders", "Take the largest group"),
        ("SELECT city, BOOL_OR(refund) FROM orders GROUP BY 1", "Count the rows, with COUNT_IF"),
        ("SELECT PERCENTILE_CONT([0.1, 0.9]) WITHIN GROUP (ORDER BY basket) FROM orders",
         "a column for each"),
        ("SELECT APPROX_PERCENTILE(basket) FROM orders",
         r"Write APPROX_PERCENTILE\(column, share\)"),
        ("SELECT * REPLACE (0 AS n) FROM (SELECT city, COUNT(*) AS n FROM orders GROUP BY 1)",
         "Name the columns"),
        ("SELECT city, COUNT(*) FROM orders o (channel, city) GROUP BY 1",
         "FROM with more than the name of a table"),
        ("SELECT RATIO_TO_REPORT(COUNT(*), 2) OVER () FROM orders",
         r"Write RATIO_TO_REPORT\(x\) OVER"),
        ("SELECT MIN() FROM orders", r"MIN\(\) cannot be answered"),
        ("SELECT DATE_FORMAT() AS d, DATEPART(month) AS m, COUNT(*) FROM orders GROUP BY ALL",
         "SELECT names month"),
        ("SELECT TO_CHAR(COUNT(*), 'FM999,999') FROM orders",
         "format the number where it is shown"),
        ("SELECT TO_CHAR(day, 'yes') AS y FROM orders GROUP BY 1",
         "Write other text in double quotes"),
        ("SELECT COUNT(*) FROM orders WHERE (city, trial) IN (('Bern', 'A'), ('Lyon'))",
         "as many values in each tuple"),
        ("SELECT COUNT(*) FROM orders WHERE city = :city",
         "The parameter .city cannot be answered. Write its value"),
        ("SELECT COUNT(*) FROM {{ ref('orders') }}",
         r"line 1 has the template \{\{ ref\('orders'\) \}\}"),
        ("SELECT COUNT(*) FROM orders GROUP GROUP", "Change it so that DuckDB accepts it"),
        ("SELECT v.x FROM (VALUES (1, now())) v(x)", "State the day that it means"),
    ],
)  # fmt: skip
def test_fault_says_what_to_write_instead(text, reason):
    with pytest.raises(ln.InputError, match=reason):
        ln.sql(DOMAIN, text, **UNIT)


def test_sql_is_answered_as_duckdb_does_from_a_release(rows):
    names = ("rollup", "share", "net amount", "running total", "or of attributes", "rank")
    texts = [STATEMENTS[name] for name in names]
    texts.append(
        "SELECT city, MEDIAN(basket) AS m, COUNT(*) AS n FROM orders WHERE city <> 'Ulm' GROUP BY "
        "city"
    )
    workload = ln.sql(DOMAIN, *texts, **UNIT)
    privacy = ln.Privacy(ln.PureDP(20_000), unit_column="customer", max_rows=30)
    plan = ln.plan(workload, privacy, strategy="marginals")
    release = ln.release(plan, rows.drop(columns="family"), seed=3)
    for text in texts[:-1]:
        frame = release.sql(text, "pandas")
        columns = [name for name in frame if not name.endswith(("_low", "_high"))]
        answer = normalized_rows(frame[columns])
        expected = reference(text, rows)
        assert len(answer) >= len(expected)
        for expected_row in expected:
            is_there = any(is_row_close(row, expected_row, 0.05) for row in answer)
            assert is_there, (text, expected_row, answer)
    medians = release.sql(texts[-1], "pandas")
    assert ((medians["m"] >= 25) & (medians["m"] <= 75)).all()


def small_release(*texts, **options):
    """Return a release of a few rows with visible noise."""
    domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("pay", -9, 9)})
    frame = pd.DataFrame({"sex": ["F"] * 30 + ["M"] * 20, "pay": [5, -5] * 25})
    plan = ln.plan(ln.sql(domain, *texts, **options), ln.PureDP(2))
    return ln.release(plan, frame, seed=3)


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        ("n", lambda low, _: low, lambda _, high: high),
        ("-n", lambda _, high: -high, lambda low, _: -low),
        ("ROUND(n / 7.0 + 1, 1)", lambda low, _: low / 7 + 1, lambda _, high: high / 7 + 1),
        ("100 - 3 * CAST(n AS INT)", lambda _, high: 100 - 3 * high, lambda low, _: 100 - 3 * low),
        ("COALESCE(n, 0)::DOUBLE", lambda low, _: low, lambda _, high: high),
    ],
)
def test_interval_of_a_monotone_function_matches_its_answer(column, low, high):
    text = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    release = small_release(text)
    plain_frame = release.sql(text, "pandas")
    frame = release.sql(f"SELECT sex, {column} AS x FROM ({text}) q", "pandas")
    ends = list(zip(plain_frame["n_low"], plain_frame["n_high"], strict=True))
    assert frame["x_low"].tolist() == pytest.approx([low(*pair) for pair in ends], abs=1.6)
    assert frame["x_high"].tolist() == pytest.approx([high(*pair) for pair in ends], abs=1.6)
    assert (frame["x_low"] <= frame["x_high"]).all()


@pytest.mark.parametrize(
    "column", ["n * m", "ABS(n)", "n * n", "MAX(n) OVER ()", "AVG(n) OVER (ORDER BY sex)", "LN(n)"]
)
def test_interval_is_left_out_where_it_is_unknown(column):
    text = "SELECT sex, COUNT(*) AS n, SUM(pay) AS m FROM people GROUP BY sex"
    release = small_release(text)
    frame = release.sql(f"SELECT sex, {column} AS x, n FROM ({text}) q", "pandas")
    assert [*frame] == ["sex", "x", "n", "n_low", "n_high"]
    statement = release.read_statement(f"SELECT {column} AS x FROM ({text}) q")
    assert statement.without_interval == ("x",)


COMBINATIONS = {
    "share": "AVG(CASE WHEN card THEN 1.0 ELSE 0.0 END)",
    "part": "100.0 * COUNT(*) FILTER (WHERE card) / NULLIF(COUNT(*), 0)",
    "guarded": "CASE WHEN COUNT(*) = 0 THEN NULL "
    "ELSE 100.0 * COUNT(*) FILTER (WHERE card) / COUNT(*) END",
    "difference": "SUM(pay) FILTER (WHERE card) - SUM(CASE WHEN NOT card THEN pay ELSE 0 END)",
    "means": "AVG(pay) FILTER (WHERE card) - AVG(pay) FILTER (WHERE NOT card)",
    "either": "COUNT(*) FILTER (WHERE card OR shop = 's1')",
    "share_of_total": "SUM(pay)::numeric / SUM(SUM(pay)) OVER () - 1",
}


@pytest.fixture(scope="module")
def sold():
    """A release of counts and sums by shop and card, and its rows."""
    rng = np.random.default_rng(3)
    count = 4000
    shops = [f"s{number}" for number in range(12)]
    domain = ln.Domain(
        shop=shops,
        card=ln.Categories([True, False], complete=True),
        measures={"pay": ln.Measure("pay", 0, 9)},
    )
    frame = pd.DataFrame(
        {
            "shop": rng.choice(shops, count),
            "card": rng.random(count) < 0.3,
            "pay": rng.integers(0, 10, count),
        }
    )
    workload = ln.marginals(domain, ways=2) + ln.mean_queries(domain, "pay", by=["shop", "card"])
    workload += ln.mean_queries(domain, "pay", by=["shop"])
    workload += ln.sql(
        domain, f"SELECT shop, {COMBINATIONS['means']} AS x FROM sales GROUP BY shop"
    )
    return ln.release(ln.plan(workload, ln.ZCDP("1/8")), frame, seed=1), frame


def card_shares(release):
    """Return the intervals of the shares of rows with a card, by shop."""
    shares = ln.shares(release, ["card"], by=["shop"]).frame("pandas")
    return shares[shares["card"] == "true"][["low", "high"]].to_numpy()


def card_difference(release, **measure):
    """Return the intervals of the difference between rows with and without a card, by shop."""
    comparison = ln.compare_groups(release, "card", "true", "false", **measure, by=["shop"])
    return comparison.frame("pandas")[["difference_low", "difference_high"]].to_numpy()


def counts_of_card_or_shop(release):
    """Return the intervals of rows with a card or of shop s1, by shop."""
    domain = release.workload.domain
    cards = ln.predicates([["true"]])
    (table,) = release.answer(ln.queries(domain, shop="identity", card=cards))
    (single,) = release.answer(ln.queries(domain, shop=ln.predicates([["s1"]])))
    intervals = np.stack([table.low, table.high], axis=-1).reshape(-1, 2)
    intervals[1] = single.low[0], single.high[0]
    return intervals


def shop_shares(release):
    """Return the intervals of the shares of shops in all pay."""
    shares = ln.shares(release, ["shop"], sum="pay").frame("pandas")
    return shares[["low", "high"]].to_numpy()


EXPECTED_INTERVALS = {
    "share": card_shares,
    "part": lambda release: 100 * card_shares(release),
    "guarded": lambda release: 100 * card_shares(release),
    "difference": lambda release: card_difference(release, sum="pay"),
    "means": lambda release: card_difference(release, mean="pay"),
    "either": counts_of_card_or_shop,
    "share_of_total": lambda release: shop_shares(release) - 1,
}


@pytest.mark.parametrize("name", COMBINATIONS)
def test_interval_of_a_combination_matches_comparisons(sold, name):
    release, _ = sold
    text = f"SELECT shop, {COMBINATIONS[name]} AS x FROM sales GROUP BY shop"
    frame = release.sql(text, "pandas")
    expected = EXPECTED_INTERVALS[name](release)
    assert frame[["x_low", "x_high"]].to_numpy() == pytest.approx(expected, rel=1e-6, abs=0.01)
    assert (frame["x_low"] <= frame["x"]).all()
    assert (frame["x"] <= frame["x_high"]).all()


def test_interval_of_a_share_within_a_group_matches_shares(sold):
    release, _ = sold
    text = """SELECT shop, card, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY shop) AS x
        FROM sales WHERE card OR NOT card GROUP BY shop, card ORDER BY shop, card DESC"""
    frame = release.sql(text, "pandas")
    shares = ln.shares(release, ["card"], by=["shop"]).frame("pandas")
    shares = shares.sort_values(["shop", "card"], ascending=[True, False])
    for end in ("low", "high"):
        assert frame[f"x_{end}"].tolist() == pytest.approx(shares[end].tolist(), abs=0.01)


def test_ratio_of_a_sum_and_people_has_an_interval():
    domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 9)})
    text = "SELECT sex, SUM(pay) / NULLIF(COUNT(DISTINCT person), 0) AS x FROM people GROUP BY sex"
    people = ln.Privacy(ln.ZCDP(1), unit_column="person", max_rows=3)
    frame = pd.DataFrame({"sex": ["F", "F", "M"] * 200, "pay": 5, "person": range(600)})
    plan = ln.plan(ln.sql(domain, text, unit="person"), people)
    answers = ln.release(plan, frame, seed=2).sql(text, "pandas")
    assert (answers["x_low"] < 5).all()
    assert (answers["x_high"] > 5).all()


@pytest.mark.slow
def test_intervals_of_combinations_cover_the_truth(sold):
    release, frame = sold
    columns = ", ".join(f"{column} AS {name}" for name, column in COMBINATIONS.items())
    text = f"SELECT shop, {columns} FROM sales GROUP BY shop ORDER BY shop"
    with duckdb.connect(":memory:") as database:
        database.register("sales", frame)
        truth = database.execute(text).df()
    covered = []
    for seed in range(6):
        answers = ln.release(release.plan, frame, seed=seed).sql(text, "pandas")
        for name in COMBINATIONS:
            ends = answers[f"{name}_low"], answers[f"{name}_high"]
            covered += [*((ends[0] <= truth[name]) & (truth[name] <= ends[1]))]
    assert 0.9 <= np.mean(covered) <= 0.995


CARD = "AVG(pay) FILTER (WHERE card)"
OTHER = "AVG(pay) FILTER (WHERE NOT card)"
SUMS_OF_MEANS = {
    "middle": f"({CARD} + {OTHER}) / 2 - AVG(pay)",
    "gap": f"{CARD} - {OTHER} - 2 * AVG(pay) + 0.25",
    "relative": f"({CARD} - {OTHER}) / NULLIF(AVG(pay), 0)",
    "percent": f"100.0 * (AVG(pay) - {OTHER}) / ({CARD} + {OTHER} + AVG(pay))",
    "mixed": f"{CARD} - COUNT(*) / 100.0 + AVG(CASE WHEN card THEN 1.0 ELSE 0.0 END)",
}


@pytest.mark.slow
def test_intervals_of_sums_of_means_cover_the_truth(sold):
    release, frame = sold
    columns = ", ".join(f"{column} AS {name}" for name, column in SUMS_OF_MEANS.items())
    text = f"SELECT shop, {columns} FROM sales GROUP BY shop ORDER BY shop"
    with duckdb.connect(":memory:") as database:
        database.register("sales", frame)
        truth = database.execute(text).df()
    covered = []
    for seed in range(8):
        answers = ln.release(release.plan, frame, seed=seed).sql(text, "pandas")
        for name in SUMS_OF_MEANS:
            low = answers[f"{name}_low"]
            high = answers[f"{name}_high"]
            assert (low < answers[name]).all()
            assert (answers[name] < high).all()
            covered += [*((low <= truth[name]) & (truth[name] <= high))]
    assert 0.9 <= np.mean(covered) <= 0.995


def test_terms_that_cancel_do_not_widen_an_interval(sold):
    release, _ = sold
    ends = []
    for column in (f"{CARD} - {OTHER}", f"{CARD} + AVG(pay) - {OTHER} - AVG(pay)"):
        text = f"SELECT shop, {column} AS x FROM sales GROUP BY shop"
        ends.append(release.sql(text, "pandas")[["x_low", "x_high"]].to_numpy())
    assert ends[0] == pytest.approx(ends[1])


@pytest.mark.slow
def test_intervals_of_changes_with_lag_cover_the_truth():
    domain = ln.Domain(
        shop=["a", "b"], month=ln.Integers(1, 6), measures={"pay": ln.Measure("pay", 0, 9)}
    )
    texts = [
        """WITH m AS (SELECT month, COUNT(*) AS n, SUM(pay) AS s, AVG(pay) AS a FROM t GROUP BY 1)
        SELECT month, LAG(n) OVER (ORDER BY month) AS x, n - LAG(n) OVER (ORDER BY month) AS y,
        s / NULLIF(LAG(s, 2) OVER (ORDER BY month), 0) - 1 AS z,
        a - LAG(a) OVER (ORDER BY month) AS w, s / n - LAG(s / n) OVER (ORDER BY month) AS v,
        SUM(n) OVER (ORDER BY month DESC) AS t, SUM(s) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING
        AND CURRENT ROW) / SUM(s) OVER () AS u FROM m ORDER BY month""",
        """SELECT shop, month, COUNT(*) - LEAD(COUNT(*)) OVER (PARTITION BY shop ORDER BY month
        DESC) AS y FROM t GROUP BY shop, month ORDER BY shop, month""",
    ]
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(
        {
            "shop": rng.choice(["a", "b"], 3000),
            "month": rng.integers(1, 7, 3000),
            "pay": rng.integers(0, 10, 3000),
        }
    )
    with duckdb.connect(":memory:") as database:
        database.register("t", frame)
        truths = [database.execute(text).df() for text in texts]
    plan = ln.plan(ln.sql(domain, *texts), ln.PureDP(1))
    covered = []
    for seed in range(4):
        release = ln.release(plan, frame, seed=seed)
        for text, truth in zip(texts, truths, strict=True):
            answers = release.sql(text, "pandas")
            for name in sorted({*"tuvwxyz"} & {*truth}):
                expected = truth[name].astype(float)
                is_known = expected.notna()
                ends = answers[f"{name}_low"], answers[f"{name}_high"]
                is_covered = (ends[0] <= expected) & (expected <= ends[1])
                assert ends[0].notna().tolist() == is_known.tolist()
                covered += [*is_covered[is_known]]
    assert 0.91 <= np.mean(covered) <= 0.99


def test_interval_of_a_combination_passes_through_subqueries_and_unions(sold):
    release, _ = sold
    text = """WITH q AS (SELECT shop, SUM(pay) / COUNT(*) AS x FROM sales GROUP BY shop)
        SELECT shop, ROUND(100 * x, 1) AS y FROM q
        UNION ALL SELECT 'all', 100 * SUM(pay) / COUNT(*) FROM sales"""
    frame = release.sql(text, "pandas")
    assert len(frame) == 13
    assert (frame["y_low"] < frame["y"]).all()
    assert (frame["y"] < frame["y_high"]).all()


@pytest.mark.parametrize(
    "column",
    [
        "COUNT(*) * SUM(pay)",
        "AVG(COUNT(*)) OVER (ORDER BY shop)",
        "COUNT(*) / MAX(COUNT(*)) OVER ()",
        "AVG(pay) * COUNT(*)",
        "GREATEST(COUNT(*), SUM(pay))",
    ],
)
def test_interval_of_other_functions_of_several_answers_is_left_out(sold, column):
    release, _ = sold
    text = f"SELECT shop, {column} AS x FROM sales GROUP BY shop"
    assert release.read_statement(text).without_interval == ("x",)


def test_functions_that_fail_give_null():
    text = """SELECT sex, LN(SUM(pay) - 1000) AS a, SQRT(-COUNT(*)) AS b, (COUNT(*) * 10)::TINYINT
        AS c FROM people GROUP BY sex"""
    frame = small_release(text).sql(text, "pandas")
    assert frame[["a", "b", "c"]].isna().all().all()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (SELECT SUM(pay) FROM secret) AS x, n FROM ({released}) q",
        "SELECT q.n, s.pay FROM ({released}) q, secret s",
        "SELECT n, read_text('/etc/passwd') AS x FROM ({released}) q",
        "SELECT n FROM ({released}) q JOIN read_csv('rows.csv') r ON true",
    ],
    ids=["subquery on a variable", "variable", "function that reads a text", "CSV file"],
)
def test_queries_see_only_released_numbers(query):
    secret = pd.DataFrame({"pay": [1, 2, 3]})  # a variable around the call, as DuckDB reads them
    text = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    release = small_release(text)
    with pytest.raises(ln.InputError):
        release.sql(query.format(released=text))
    assert len(secret) == 3


def test_faults_of_all_statements_are_listed_with_their_positions():
    text = """SELECT city, MEDIAN(city) AS m, COUNT(*) AS n
FROM orders
WHERE town = 'x' AND basket > 33 GROUP BY city;
SELECT city, COUNT(*) FROM orders GROUP BY city;
SELECT product FROM orders ORDER BY colour
"""
    with pytest.raises(ln.InputError) as caught:
        ln.sql(DOMAIN, text, **UNIT)
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "Statement 1 (line 1, column 14)",
        "Statement 1 (line 3, column 7)",
        "Statement 1 (line 3, column 22)",
        "Statement 3 (line 5, column 8)",
        "Statement 3 (line 5, column 37)",
    ]


@pytest.mark.parametrize(
    ("join", "reason"),
    [
        ("LEFT JOIN people p USING (customer)", ""),
        ("LEFT JOIN people AS p ON o.customer = p.customer", ""),
        ("JOIN people p USING (customer)", ""),
        ("LEFT JOIN people p USING (city)", "The source is joined on customer = customer"),
        ("LEFT JOIN people p ON o.customer < p.customer", "Join on one key"),
        ("JOIN people p USING (customer) LEFT JOIN people q USING (customer)", ""),
        (
            "JOIN people p USING (customer) JOIN cards c USING (customer)",
            "The source has 1 of these joins",
        ),
        ("JOIN orders p USING (customer)", "A table is not joined with itself"),
        ("RIGHT JOIN people p USING (customer)", "Write LEFT JOIN or JOIN"),
    ],
)
def test_join_of_the_source_may_be_written(join, reason):
    text = f"SELECT p.city, COUNT(*) AS n FROM orders o {join} GROUP BY p.city"
    if reason:
        with pytest.raises(ln.InputError, match=reason):
            ln.sql(DOMAIN, text, joined_on="customer")
    else:
        assert [table.name for table in ln.sql(DOMAIN, text, joined_on="customer")] == ["city"]
    with pytest.raises(ln.InputError, match=r"JOIN .* cannot be answered"):
        ln.sql(DOMAIN, text)


STORES = {"s1": ("north", "big"), "s2": ("south", "small"), "s3": ("south", "big")}
STAR = ln.Domain(
    store=ln.Categories(
        list(STORES),
        levels={
            "region": {store: region for store, (region, _) in STORES.items()},
            "size": {store: size for store, (_, size) in STORES.items()},
        },
        reading={"column": "store_id"},
    ),
    product=ln.Categories(
        list(GROUPS), levels={"family": GROUPS, "region": dict.fromkeys(GROUPS, "EU")}
    ),
    segment=["private", "firm"],
    tier=["gold", "blue"],
    measures={"amount": ln.Measure("amount", 0, 100)},
)


@pytest.fixture(scope="module")
def star():
    """A table of facts, in which some keys have no partner, and four tables around it."""
    rng = np.random.default_rng(8)
    count = 400
    return {
        "sales": pd.DataFrame(
            {
                "store_id": rng.choice(["s1", "s2", "s3", "s9", None], count),
                "product": rng.choice([*GROUPS, None], count),
                "customer": rng.integers(0, 60, count),
                "amount": rng.integers(0, 101, count),
            }
        ),
        "customers": pd.DataFrame(
            {"id": range(40), "segment": rng.choice(["private", "firm"], 40)}
        ),
        "cards": pd.DataFrame(
            {"customer": range(20, 60), "tier": rng.choice(["gold", "blue"], 40)}
        ),
        "stores": pd.DataFrame([(name, *facts) for name, facts in STORES.items()]).set_axis(
            ["id", "region", "size"], axis="columns"
        ),
        "products": pd.DataFrame(
            {"product": [*GROUPS], "family": [*GROUPS.values()], "region": "EU"}
        ),
    }


@pytest.mark.parametrize(
    "text",
    [
        (
            "SELECT s.region, COUNT(*) AS n FROM sales o JOIN stores s ON o.store_id = s.id GROUP "
            "BY s.region"
        ),
        """SELECT s.size, p.family, c.segment, SUM(o.amount) AS rev, COUNT(DISTINCT o.customer) AS n
        FROM sales o JOIN stores s ON s.id = o.store_id JOIN products p ON o.product = p.product
        LEFT JOIN customers c ON c.id = o.customer WHERE c.segment IS NOT NULL GROUP BY 1, 2, 3""",
        """SELECT s.region, p.region AS origin, COUNT(*) AS n FROM sales o, stores s, products p
        WHERE o.store_id = s.id AND o.product = p.product AND s.size <> 'small' GROUP BY ALL""",
        """SELECT family, AVG(amount) AS m, COUNT(*) AS n FROM sales JOIN products USING (product)
        GROUP BY family HAVING COUNT(*) > 0 ORDER BY family""",
        """SELECT p.family, COUNT(*) AS n FROM sales o JOIN products p ON o.product = p.product
        JOIN customers c ON c.id = o.customer AND c.segment = 'firm' GROUP BY p.family""",
        """SELECT product, COUNT(*) AS n FROM sales WHERE product IS NOT NULL AND customer IN
        (SELECT id FROM customers WHERE segment = 'private') AND store_id IN (SELECT id FROM stores
        WHERE region = 'south') GROUP BY product""",
        """WITH base AS (SELECT o.*, s.size AS store_size, s.region FROM sales o JOIN stores s ON
        o.store_id = s.id) SELECT store_size, region, SUM(amount) AS rev FROM base GROUP BY 1, 2""",
        """SELECT s.size, COUNT(*) AS n FROM sales o LEFT JOIN stores s ON o.store_id = s.id
        WHERE s.region = 'south' OR o.product = 'pear' GROUP BY s.size HAVING s.size IS NOT NULL""",
        (
            "SELECT c.segment, COUNT(*) AS n FROM sales o JOIN customers c ON o.customer = c.id "
            "GROUP BY 1"
        ),
        """SELECT s.region, SUM(amount) AS rev FROM stores s, products p, sales o WHERE s.id =
        o.store_id AND o.product = p.product AND p.family = 'fruit' GROUP BY s.region ORDER BY
        rev""",
        """SELECT size, COUNT(*) AS n FROM sales, stores, customers WHERE (store_id = stores.id AND
        customers.segment = 'firm' AND sales.customer = customers.id) GROUP BY size""",
        """SELECT o.product, COUNT(*) AS n FROM stores s JOIN sales o ON o.store_id = s.id
        WHERE product IS NOT NULL GROUP BY 1""",
        """WITH facts AS (SELECT * FROM sales), shops AS (SELECT * FROM stores), joined AS (SELECT
        f.amount, f.product, s.region FROM facts f JOIN shops s ON f.store_id = s.id) SELECT region,
        SUM(amount) AS rev FROM joined WHERE product <> 'pear' GROUP BY 1""",
        """SELECT s.size, COUNT(*) AS n FROM stores s, sales o WHERE (s.id = o.store_id AND s.region
        = 'south') OR (s.id = o.store_id AND o.product = 'pear') GROUP BY s.size""",
        """SELECT c.segment, k.tier, COUNT(*) AS n, COUNT(DISTINCT o.customer) AS customers FROM
        sales o JOIN customers c ON o.customer = c.id JOIN cards k ON k.customer = o.customer GROUP
        BY 1, 2""",
        """SELECT s.region, SUM(o.amount) FILTER (WHERE k.tier = 'gold') AS gold FROM sales o
        JOIN stores s ON o.store_id = s.id LEFT JOIN cards k USING (customer)
        JOIN customers c ON o.customer = c.id WHERE c.segment = 'firm' GROUP BY s.region""",
        """SELECT c.segment, COUNT(*) AS n FROM sales o, customers c, cards k
        WHERE o.customer = c.id AND o.customer = k.customer AND k.tier = 'blue' GROUP BY
        c.segment""",
        """SELECT product, COUNT(*) AS n FROM sales WHERE customer IN (SELECT id FROM customers
        WHERE segment = 'firm') AND customer IN (SELECT customer FROM cards WHERE tier = 'gold') AND
        product IS NOT NULL GROUP BY product""",
        """SELECT 100.0 * SUM(CASE WHEN size LIKE 'b%' THEN amount ELSE 0 END) / SUM(amount) AS big
        FROM sales, stores WHERE store_id = id AND product = 'pear'""",
    ],
)
def test_star_schema_is_answered_as_duckdb_does(star, text):
    facts = star["sales"].rename(columns={"store_id": "store"})
    joined = facts.merge(star["customers"], how="left", left_on="customer", right_on="id")
    joined = joined.merge(star["cards"], how="left", on="customer")
    settings = SqlSettings(unit="customer", joins=(("customer", "id"), ("customer", "customer")))
    (statement,) = over_common_domain(read_statements(STAR, [text], settings))
    frame = pd.DataFrame(answer_statement(statement, ExactNumbers(joined, "customer")))
    frame = frame[[name for name in frame if not name.endswith(("_low", "_high"))]]
    answer = normalized_rows(frame)
    with duckdb.connect(":memory:") as database:
        for name, table in star.items():
            database.register(name, table)
        expected = [tuple(map(normalize, row)) for row in database.execute(text).fetchall()]
    assert_rows_equal(answer, expected, is_ordered="ORDER BY" in text)


MEMBERS = ln.Domain(
    store=ln.Categories(list(STORES)),
    segment=ln.Categories(["private", "firm"]),
    tier=ln.Categories(["gold", "blue"], null="cell"),
    measures={"amount": ln.Measure("amount", 0, 100)},
)


@pytest.mark.parametrize(
    "text",
    [
        (
            "SELECT COUNT(*) AS n FROM sales o JOIN members m ON o.customer = m.id WHERE m.tier = "
            "'gold' OR m.segment = 'firm'"
        ),
        (
            "SELECT COUNT(*) FILTER (WHERE m.tier IS NULL) AS no_tier, COUNT(m.segment) AS n, "
            "SUM(o.amount) AS rev FROM sales o JOIN members m ON o.customer = m.id"
        ),
        (
            "SELECT store, AVG(amount) FILTER (WHERE m.segment = 'firm') AS mean, COUNT(m.tier) "
            "AS n FROM sales o JOIN members m ON o.customer = m.id WHERE store IS NOT NULL "
            "GROUP BY store"
        ),
        (
            "SELECT m.segment, COUNT(m.tier) AS tiers, COUNT(DISTINCT o.customer) AS members FROM "
            "sales o JOIN members m ON o.customer = m.id GROUP BY 1 HAVING m.segment IS NOT NULL"
        ),
        (
            "SELECT COUNT(*) AS n FROM sales WHERE customer IN (SELECT id FROM members WHERE "
            "segment = 'private' OR tier = 'blue')"
        ),
    ],
)
def test_join_keeps_rows_whose_partner_has_a_null(star, text):
    rng = np.random.default_rng(4)
    members = pd.DataFrame(
        {
            "id": range(50),
            "segment": rng.choice(["private", "firm", None], 50),
            "tier": rng.choice(["gold", "blue", None], 50),
        }
    )
    members = members.dropna(subset=["segment", "tier"], how="all")
    facts = star["sales"].rename(columns={"store_id": "store"})
    facts["store"] = facts["store"].where(facts["store"].isin(list(STORES)))
    joined = facts.merge(members, how="left", left_on="customer", right_on="id")
    settings = SqlSettings(unit="customer", joins=(("customer", "id"),))
    (statement,) = over_common_domain(read_statements(MEMBERS, [text], settings))
    frame = pd.DataFrame(answer_statement(statement, ExactNumbers(joined, "customer")))
    frame = frame[[name for name in frame if not name.endswith(("_low", "_high"))]]
    answer = normalized_rows(frame)
    with duckdb.connect(":memory:") as database:
        database.register("sales", facts)
        database.register("members", members)
        expected = [tuple(map(normalize, row)) for row in database.execute(text).fetchall()]
    assert_rows_equal(answer, expected, is_ordered=False)


PARTNERS = """sales o {join} members m ON o.customer = m.id"""
SEVERAL = PARTNERS + " {join} cards k ON k.customer = o.customer"


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        (f"SELECT COUNT(*) AS n, COUNT(m.segment) AS s FROM {PARTNERS}", "m.segment IS NOT NULL"),
        (
            f"SELECT SUM(o.amount) AS rev, COUNT(m.segment) AS s, COUNT(m.tier) FROM {PARTNERS}",
            "COALESCE(m.segment, m.tier) IS NOT NULL",
        ),
        (f"SELECT m.tier, COUNT(*) AS n FROM {PARTNERS} GROUP BY 1", "m.tier IS NOT NULL"),
        (
            f"SELECT COUNT(*) AS n, COUNT(m.tier) AS t, COUNT(k.rank) AS r FROM {SEVERAL}",
            "m.tier IS NOT NULL AND k.rank IS NOT NULL",
        ),
        (
            f"SELECT m.tier, k.rank, COUNT(*) AS n FROM {SEVERAL} GROUP BY 1, 2",
            "m.tier IS NOT NULL AND k.rank IS NOT NULL",
        ),
    ],
)
@pytest.mark.parametrize("join", ["LEFT JOIN", "JOIN"])
def test_join_needs_a_filled_column_of_each_partner(text, filled, join):
    """LEFT JOIN is as in SQL; JOIN also leaves out partners whose named columns are all null."""
    rng = np.random.default_rng(4)
    members = pd.DataFrame(
        {
            "id": range(50),
            "segment": rng.choice(["private", "firm", None], 50),
            "tier": rng.choice(["gold", "blue", None], 50),
        }
    )
    cards = pd.DataFrame({"customer": range(20, 60), "rank": rng.choice(["a", "b", None], 40)})
    sales = pd.DataFrame({"customer": rng.integers(0, 60, 600), "amount": range(600)})
    joined = sales.merge(members, how="left", left_on="customer", right_on="id")
    joined = joined.merge(cards, how="left", on="customer")
    settings = SqlSettings(unit="customer", joins=(("customer", "id"), ("customer", "customer")))
    domain = ln.Domain(
        segment=ln.Categories(["private", "firm"]),
        tier=ln.Categories(["gold", "blue"], null="cell"),
        rank=ln.Categories(["a", "b"], null="cell"),
        measures={"amount": ln.Measure("amount", 0, 600)},
    )
    (statement,) = over_common_domain(read_statements(domain, [text.format(join=join)], settings))
    frame = pd.DataFrame(answer_statement(statement, ExactNumbers(joined, "customer")))
    answer = normalized_rows(frame[[n for n in frame if not n.endswith(("_low", "_high"))]])
    if join == "JOIN":
        before, group_by, after = text.partition(" GROUP BY")
        text = f"{before} WHERE {filled}{group_by}{after}"
    with duckdb.connect(":memory:") as database:
        for name, table in (("sales", sales), ("members", members), ("cards", cards)):
            database.register(name, table)
        rows = database.execute(text.format(join=join)).fetchall()
    assert_rows_equal(answer, [tuple(map(normalize, row)) for row in rows], is_ordered=False)


@pytest.mark.parametrize("condition", ["WHERE m.tier IS NULL", "AND m.tier IS NULL"])
def test_join_of_nulls_only_is_refused(condition):
    text = f"SELECT COUNT(*) AS n FROM {PARTNERS.format(join='JOIN')} {condition}"
    settings = {"unit": "customer", "joined_on": {"customer": "id"}}
    message = r"JOIN m with m\.tier IS NULL cannot be answered\. Such rows .*write LEFT JOIN"
    with pytest.raises(ln.InputError, match=message):
        ln.sql(MEMBERS, text, **settings)
    by_segment = text + " AND m.segment = 'firm'"
    assert len(ln.sql(MEMBERS, by_segment, **settings).products) == 1


def test_people_of_a_join_are_counted_in_published_groups():
    settings = {"unit": "customer", "joined_on": {"customer": "id"}}
    text = (
        "SELECT {} COUNT(DISTINCT o.customer) AS n FROM sales o JOIN members m ON o.customer = m.id"
    )
    by_both = text.format("m.segment, m.tier,") + " GROUP BY 1, 2"
    assert len(ln.sql(MEMBERS, by_both, **settings).products) == 1
    with pytest.raises(ln.InputError, match="with OR across attributes"):
        ln.sql(
            MEMBERS, text.format("") + " WHERE m.segment = 'firm' OR m.tier = 'gold'", **settings
        )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT s.colour FROM sales o JOIN stores s ON o.store_id = s.id GROUP BY 1",
         "colour is not a level of store"),
        ("SELECT segment FROM sales JOIN customers c ON customer = id GROUP BY 1",
         "no attribute is used"),
        ("SELECT region, COUNT(*) FROM sales GROUP BY 1",
         'can mean "store:region" or "product:region"'),
        ("SELECT s.size FROM sales o JOIN stores s USING (town) GROUP BY 1",
         r"Declare the table in \[source.join\]"),
        (("SELECT s.size FROM sales o JOIN stores s USING (store_id) JOIN products s USING "
            "(product) GROUP BY 1"), "its own alias"),
        (("SELECT s.size FROM sales o LEFT JOIN stores s ON o.store_id = s.id AND s.size = "
            "'big' GROUP BY 1"), "in WHERE"),
        ("SELECT s.size FROM sales o NATURAL JOIN stores s GROUP BY 1", "with ON or USING"),
        ("SELECT s.size FROM sales o ANTI JOIN stores s USING (store_id) GROUP BY 1",
         "with ON or USING"),
        ("SELECT s.size FROM sales o LEFT ANTI JOIN stores s USING (store_id) GROUP BY 1",
         "with ON or USING"),
        (("SELECT s.size FROM sales o JOIN (SELECT * REPLACE ('big' AS size) FROM stores) s "
            "USING (store_id) GROUP BY 1"),
         "JOIN of the rows with s"),
        (("SELECT s.size FROM sales o JOIN (SELECT * FROM stores TABLESAMPLE 10%) s USING "
            "(store_id) GROUP BY 1"),
         "JOIN of the rows with s"),
        ("SELECT product FROM sales WHERE store_id IN (SELECT store_id FROM sales) GROUP BY 1",
         "without GROUP BY"),
        (("SELECT product FROM sales WHERE store_id NOT IN (SELECT id FROM stores WHERE size = "
            "'big') GROUP BY 1"), "A subquery from stores"),
    ],
)  # fmt: skip
def test_join_that_is_not_declared_is_refused(text, reason):
    with pytest.raises(ln.InputError, match=reason):
        ln.sql(STAR, text, joined_on={"customer": "id"})


def test_two_tables_on_one_key_need_two_joins():
    text = """SELECT c.segment, k.tier, COUNT(*) AS n FROM sales o JOIN customers c USING (customer)
        JOIN cards k USING (customer) GROUP BY 1, 2"""
    with pytest.raises(ln.InputError, match="JOIN of cards and customers on customer = customer"):
        ln.sql(STAR, text, joined_on="customer")
    (table,) = ln.sql(STAR, text, joined_on=["customer", "customer"])
    assert table.name == "segment x tier"


def test_current_date_is_the_stated_day():
    text = "SELECT COUNT(*) AS n FROM orders WHERE day >= CURRENT_DATE - INTERVAL '30 days'"
    with pytest.raises(ln.InputError, match=r"CURRENT_DATE cannot be answered. State the day"):
        ln.sql(DOMAIN, text)
    with pytest.raises(ln.InputError, match="today must be a day such as"):
        ln.sql(DOMAIN, text, today="yesterday")
    by_name = ln.sql(DOMAIN, text.replace("CURRENT_DATE", "DATE '2024-12-31'"))
    assert [table.name for table in ln.sql(DOMAIN, text, today=TODAY)] == [
        table.name for table in by_name
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(DISTINCT city) AS n FROM (SELECT DISTINCT customer FROM orders) q",
        "SELECT city, COUNT(*) AS n FROM (SELECT * REPLACE (city AS city) FROM orders) GROUP BY 1",
        "SELECT city, COUNT(*) AS n FROM (SELECT city FROM orders LIMIT 5) q GROUP BY city",
        "SELECT SUM(n) AS n FROM (SELECT COUNT(*) OVER () AS n FROM orders) q",
        "SELECT MAX(n) AS n FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY 1) q",
        (
            "SELECT n, COUNT(*) AS m FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY 1) "
            "GROUP BY n"
        ),
        (
            "SELECT AVG(n) AS m FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY 1) q "
            "WHERE n > 1"
        ),
        (
            "SELECT AVG(n) AS m FROM (SELECT customer, city, COUNT(*) AS n FROM orders GROUP BY "
            "1, 2) q"
        ),
    ],
)
def test_subqueries_of_rows_that_do_more_are_refused(text):
    with pytest.raises(ln.InputError, match=r"Statement 1 \(line 1, column"):
        ln.sql(DOMAIN, text, **UNIT)


def test_interval_is_missing_where_an_end_has_no_value():
    text = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    release = small_release(text)
    column = "CAST(n * 4.3 AS TINYINT)"  # one end may be above 127
    frame = release.sql(f"SELECT {column} AS x FROM ({text}) q WHERE sex = 'F'", "pandas")
    is_large = release.sql(text, "pandas")["n_high"][0] * 4.3 > 127.5
    assert is_large == math.isnan(frame["x_low"][0])
