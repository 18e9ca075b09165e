"""SQL of well-known benchmarks: answered as by DuckDB, or refused by clause."""

import datetime as dt
import math

import duckdb
import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._workload import read_statements

NATIONS = {"DE": "EUROPE", "FR": "EUROPE", "JP": "ASIA", "IN": "ASIA", "US": "AMERICA"}
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW"]
DOMAIN = ln.Domain(
    flag=["A", "N", "R"],
    status=["F", "O"],
    mode=["AIR", "MAIL", "SHIP", "PROMO RAIL"],
    priority=PRIORITIES,
    nation=ln.Categories(list(NATIONS), levels={"region": NATIONS}),
    quantity=ln.Integers(1, 50),
    discount=ln.Decimals(0, "0.1", "0.01"),
    shipped=ln.Dates("1995-07-01", "1996-06-30", by="day"),
    weight=ln.Bins(0, 100, 20),
    measures={"price": ln.Measure("price", 0, 100), "qty": ln.Measure("quantity", 0, 50)},
)


@pytest.fixture(scope="module")
def sales():
    """Return random sales."""
    rng = np.random.default_rng(7)
    rows = 1000
    texts = ("flag", "status", "mode", "priority", "nation")
    frame = pd.DataFrame(
        {
            name: rng.choice([str(label) for label in DOMAIN.kind(name).labels], rows)
            for name in texts
        }
    )
    frame["quantity"] = rng.integers(1, 51, rows)
    frame["discount"] = rng.integers(0, 11, rows) / 100
    frame["shipped"] = [
        dt.date(1995, 7, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 366, rows)
    ]
    frame["weight"] = rng.integers(0, 1000, rows) / 10
    frame["price"] = rng.integers(0, 101, rows)
    frame["customer"] = rng.integers(0, 400, rows)
    frame["region"] = frame["nation"].map(NATIONS)
    return frame


def rows_of_answer(text, rows):
    """Return the rows of a statement; the budget is so huge that there is nearly no noise."""
    unit = {"unit": "customer"} if "DISTINCT" in text else {}
    workload = ln.sql(DOMAIN, text, **unit)
    strategy = "workload" if workload.rows == 1 else "identity"
    budget = (
        ln.Privacy(ln.PureDP(500), unit_column="customer", max_rows=20) if unit else ln.PureDP(500)
    )
    release = ln.release(ln.plan(workload, budget, strategy=strategy), rows, seed=3)
    frame = release.sql(text, "pandas")
    shown = [name for name in frame if not name.endswith(("_low", "_high"))]
    return list(frame[shown].itertuples(index=False, name=None))


def normalize(value):
    """Return a value in a form that both programs share."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (dt.datetime, dt.date, pd.Timestamp)):
        return str(value)[:10]
    return value.item() if isinstance(value, np.generic) else value


def is_close(value, other):
    if (
        isinstance(value, (int, float))
        and isinstance(other, (int, float))
        and not isinstance(value, bool)
    ):
        return value == pytest.approx(other, rel=5e-3, abs=0.6)
    return value == other


ANSWERED = {
    "pricing summary": """SELECT flag, status, SUM(quantity) AS sum_qty, SUM(price) AS sum_price,
        AVG(quantity) AS avg_qty, AVG(price) AS avg_price, COUNT(*) AS orders FROM sales
        WHERE shipped <= DATE '1996-06-01' - INTERVAL 90 DAY GROUP BY flag, status ORDER BY flag,
        status""",
    "revenue forecast": """SELECT SUM(price) AS revenue FROM sales
        WHERE shipped >= '1995-01-01' AND shipped < '1996-01-01' AND discount BETWEEN 0.05 AND 0.07
        AND quantity < 24""",
    "ship modes": """SELECT mode, SUM(CASE WHEN priority = '1-URGENT' OR priority = '2-HIGH' THEN 1
        ELSE 0 END) AS high, SUM(CASE WHEN priority <> '1-URGENT' AND priority <> '2-HIGH' THEN 1
        ELSE 0 END) AS low FROM sales WHERE mode IN ('MAIL', 'SHIP') GROUP BY mode ORDER BY mode""",
    "codes of countries": "SELECT substring(nation, 1, 1) AS code, COUNT(*) AS n, SUM(price) AS "
    "total FROM sales GROUP BY code",
    "volume of nations": "SELECT nation, SUM(price) AS revenue FROM sales WHERE region = 'ASIA' "
    "GROUP BY nation ORDER BY revenue DESC",
    "largest first": "SELECT nation, mode, SUM(price) AS revenue FROM sales GROUP BY nation, mode "
    "ORDER BY revenue DESC, nation LIMIT 5",
    "by year": "SELECT nation, EXTRACT(year FROM shipped) AS year, SUM(price) AS volume FROM "
    "sales GROUP BY nation, year ORDER BY 1, 2",
    "year as function": "SELECT year(shipped) AS y, flag, COUNT(*) AS n FROM sales GROUP BY ALL",
    "promotions": "SELECT COUNT(*) AS n FROM sales WHERE mode LIKE 'PROMO%' AND NOT flag = 'R'",
    "averages rolled up": "SELECT nation, mode, AVG(quantity) AS q, AVG(price) AS p FROM sales "
    "GROUP BY ROLLUP (nation, mode)",
    "hierarchy rolled up": "SELECT region, nation, COUNT(*) AS n FROM sales GROUP BY ROLLUP "
    "(region, nation)",
    "cube": "SELECT flag, status, priority, COUNT(*) AS n FROM sales GROUP BY CUBE (flag, status, "
    "priority)",
    "grouping sets": "SELECT flag, mode, SUM(price) AS p FROM sales GROUP BY GROUPING SETS "
    "((flag, mode), (mode), ())",
    "sets beside a column": "SELECT status, flag, mode, COUNT(*) AS n FROM sales GROUP BY status, "
    "ROLLUP (flag), CUBE (mode)",
    "sums of weekdays": """SELECT flag, SUM(CASE WHEN EXTRACT(dow FROM shipped) = 0 THEN price ELSE
        0 END) AS sunday, SUM(CASE WHEN EXTRACT(dow FROM shipped) = 1 THEN price END) AS monday FROM
        sales GROUP BY flag""",
    "counts of some": """SELECT COUNT(*) FILTER (WHERE quantity BETWEEN 1 AND 20) AS small, COUNT(*)
        FILTER (WHERE quantity > 20) AS large, COUNT_IF(status = 'O') AS open FROM sales""",
    "buckets": """SELECT CASE WHEN quantity BETWEEN 1 AND 20 THEN 'small' WHEN quantity <= 40 THEN
        'middle' ELSE 'large' END AS size, COUNT(*) AS n, AVG(price) AS p FROM sales GROUP BY
        size""",
    "weekly model": "SELECT date_trunc('week', shipped) AS week, COUNT(*) AS orders FROM sales "
    "WHERE shipped < '1996-01-01' GROUP BY 1",
    "customers": "SELECT flag, COUNT(DISTINCT customer) AS customers FROM sales GROUP BY flag",
    "median": "SELECT status, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY quantity) AS median "
    "FROM sales GROUP BY status",
    "quartiles": "SELECT quantile_disc(quantity, 0.25) AS lower, quantile_disc(quantity, 0.75) AS "
    "upper FROM sales WHERE flag = 'A'",
    "histogram": "SELECT floor(quantity / 10) * 10 AS decade, COUNT(*) AS n FROM sales GROUP BY "
    "decade ORDER BY decade",
    "cleaned": "SELECT lower(mode) AS mode_, COALESCE(flag, 'none') AS flag_, COUNT(*) AS n FROM "
    "sales GROUP BY 1, 2",
    "edges of bins": "SELECT CASE WHEN weight < 25 THEN 'light' ELSE 'heavy' END AS class, "
    "COUNT(*) AS n FROM sales GROUP BY class",
    "a group twice": "SELECT flag, flag = 'R' AS returned, COUNT(*) AS n FROM sales WHERE flag <> "
    "'A' GROUP BY flag, returned",
    "of another alias": "SELECT s.flag, COUNT(*) AS n, COUNT(s.price) AS priced FROM sales AS s "
    "WHERE s.status = 'F' GROUP BY s.flag",
    "weighted": "SELECT flag, SUM(quantity) AS weights, SUM(quantity * price) AS paid FROM sales "
    "GROUP BY flag",
    "weighted in part": "SELECT SUM(CASE WHEN mode = 'AIR' THEN price * quantity ELSE 0 END) AS "
    "air, SUM(quantity) AS n FROM sales",
}


@pytest.mark.parametrize("text", ANSWERED.values(), ids=ANSWERED)
def test_statements_match_duckdb(sales, text):
    answer = [tuple(map(normalize, row)) for row in rows_of_answer(text, sales)]
    expected = [tuple(map(normalize, row)) for row in duckdb.query(text).fetchall()]
    further = list(answer)
    for expected_row in expected:
        match = next((row for row in further if all(map(is_close, row, expected_row))), None)
        assert match is not None, (expected_row, further[:20])
        further.remove(match)
    # Groups without rows are included.
    for row in further:
        numbers = [value for value in row if not isinstance(value, str)]
        assert all(number is None or abs(number) < 0.5 for number in numbers), further
    if "ORDER BY" in text and "WITHIN" not in text and not further:
        for row, expected_row in zip(answer, expected, strict=True):
            assert len(row) == len(expected_row)
            assert all(map(is_close, row, expected_row))


REFUSED = [
    (
        "SELECT flag, COUNT(DISTINCT nation) FROM sales GROUP BY flag",
        r"COUNT\(DISTINCT nation\) cannot be answered. Only units are counted",
    ),
    (
        "SELECT flag, COUNT(flag || mode) FROM sales GROUP BY flag",
        "COUNT of an expression cannot be answered",
    ),
    (
        "SELECT flag, MIN(shipped), COUNT(*) FROM sales GROUP BY flag",
        r"MIN\(shipped\) cannot be answered",
    ),
    (
        "SELECT flag, COUNT(*) FROM sales GROUP BY flag QUALIFY COUNT(*) > 1",
        "at least one window function must appear in the SELECT column or QUALIFY",
    ),
    (
        "SELECT COUNT(*) FROM sales JOIN other USING (customer)",
        r"JOIN other USING \(customer\) cannot be answered. Declare the table in \[source.join\]",
    ),
    (
        "SELECT COUNT(*) FROM sales, other",
        r"FROM with a second table \(other\) cannot be answered. Join on one key",
    ),
    ("SELECT COUNT(*) FROM sales TABLESAMPLE 10%", "FROM with more than the name"),
    ("SELECT COUNT(*)", "A SELECT without a table"),
    (
        "SELECT COUNT(*) FROM sales WHERE EXISTS (SELECT COUNT(*) FROM sales)",
        "A subquery in WHERE cannot be answered",
    ),
    (
        "SELECT COUNT(*) FROM sales WHERE weight < 23",
        r"WHERE that cuts through the cell \[20, 25\) of weight cannot be answered",
    ),
    (
        "SELECT COUNT(*) FROM sales WHERE weight = 25",
        r"WHERE that cuts through the cell \[25, 30\) of weight",
    ),
    (
        "SELECT round(weight / 50), COUNT(*) FROM sales GROUP BY 1",
        "ROUND in SELECT cannot be answered. Bins of weight are compared",
    ),
    (
        "SELECT COUNT(*) FROM sales WHERE soundex(flag) = 'A'",
        "SOUNDEX in WHERE cannot be answered. Make a level",
    ),
    (
        "SELECT COUNT(*) FROM sales WHERE flag = 'Z'",
        (
            "WHERE keeps no value that flag may have. Compare with values of "
            r"\[domain.flag\]"
        ),
    ),
    (
        "SELECT COUNT(*) FILTER (WHERE flag = 'A') AS a FROM sales WHERE flag <> 'A'",
        "WHERE with FILTER keeps no value that flag may have",
    ),
    (
        ("SELECT SUM(CASE WHEN flag = 'A' THEN 1 ELSE 0 END) FILTER (WHERE flag = 'R') FROM sales"),
        (
            r"SUM\(CASE WHEN flag = 'A' THEN 1 ELSE 0 END\) keeps no value that flag may "
            "have"
        ),
    ),
    (
        "SELECT COUNT(*) FROM sales WHERE shipped > 'spring'",
        "WHERE cannot be computed over the values of shipped",
    ),
    (
        "SELECT COUNT(*) FROM sales WHERE colour = 'red'",
        "WHERE names colour, which is not an attribute of the domain",
    ),
    ("SELECT * FROM sales", r"SELECT \* cannot be answered. Rows are never published"),
    ("SELECT flag, COUNT(*) FROM sales", "SELECT flag without GROUP BY cannot be answered"),
    (
        "SELECT flag, COUNT(*) FROM sales GROUP BY mode",
        "SELECT flag, which GROUP BY does not name, cannot be answered",
    ),
    ("SELECT flag, COUNT(*) FROM sales GROUP BY 2", "GROUP BY 2 cannot be answered"),
    (
        "SELECT 1 AS one, COUNT(*) FROM sales GROUP BY one",
        "GROUP BY one, which is 1, cannot be answered",
    ),
    ("SELECT COUNT(*), COUNT(*) FROM sales", "SELECT must give every column its own name"),
    (
        "SELECT flag, COUNT(*) FROM sales GROUP BY flag ORDER BY mode",
        "ORDER BY mode cannot be answered",
    ),
    (
        "SELECT flag, COUNT(*) FROM sales GROUP BY flag LIMIT flag",
        "cannot be computed from its groups and aggregates: Binder Error",
    ),
    (
        "SELECT SUM(price + quantity) FROM sales",
        "SUM of an expression cannot be answered. Declare a measure",
    ),
    (
        "SELECT SUM(discount) FROM sales",
        r"SUM\(discount\) cannot be answered. It needs one measure of that column",
    ),
    ("SELECT COUNT(discount + 1) FROM sales", "COUNT of an expression cannot be answered"),
    ("SELECT MEDIAN(region) FROM sales", "A quantile of the level region cannot be answered"),
    (
        "SELECT MEDIAN(quantity + 1) FROM sales",
        r"A quantile of quantity \+ 1 cannot be answered. Name one column",
    ),
    (
        "SELECT quantity, MEDIAN(quantity) FROM sales GROUP BY quantity",
        "quantity cannot be both of and in by",
    ),
    ("SELECT CUBE FROM", "The SQL cannot be read"),
    ("DELETE FROM sales", "DELETE cannot be answered. Write a SELECT"),
    ("", "SQL must have 1 to 200 statements; got 0"),
    (
        "SELECT flag, SUM(price) OVER (PARTITION BY flag) FROM sales",
        r"A window function \(OVER\) over rows cannot be answered",
    ),
    (
        "SELECT flag, MAX(price), MIN(price) FROM sales GROUP BY flag",
        (
            r"column 18\): MAX\(price\) cannot be answered. Take a quantile(.|\n)*column "
            r"30\): MIN\(price\)"
        ),
    ),
    (
        "SELECT COUNT(DISTINCT CASE WHEN flag = 'A' THEN nation END) FROM sales",
        r"COUNT\(DISTINCT nation\) cannot be answered",
    ),
    (
        "SELECT MEDIAN(quantity) FROM sales WHERE flag = 'A' OR mode = 'AIR'",
        r"MEDIAN\(quantity\) with OR across attributes cannot be answered",
    ),
    (
        ("SELECT flag, COUNT(*) / (SELECT COUNT(*) FROM customers) FROM sales GROUP BY flag"),
        "A subquery from customers cannot be answered",
    ),
    (
        (
            "SELECT o.flag, q.n FROM sales o JOIN (SELECT flag, COUNT(*) AS n FROM sales "
            "GROUP BY flag) q ON q.flag = o.flag"
        ),
        "JOIN",
    ),
    (
        ("WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM q) SELECT n FROM q"),
        "WITH RECURSIVE cannot be answered",
    ),
    (
        ("SELECT flag, COUNT(*) AS n FROM (SELECT flag FROM sales LIMIT 10) q GROUP BY flag"),
        "SELECT flag without GROUP BY cannot be answered",
    ),
    (
        ("SELECT WIDTH_BUCKET(weight, 0, 100, quantity) AS b, COUNT(*) FROM sales GROUP BY b"),
        "Write WIDTH_BUCKET",
    ),
    (
        "SELECT COUNT(*) FROM sales WHERE shipped >= CURRENT_DATE - 30",
        r"column 45\)?|CURRENT_DATE cannot be answered. State the day",
    ),
    ("SELECT 1", "A SELECT without a table"),
    ("SELECT (SELECT 1) AS one", "cannot be answered"),
    (
        "SELECT flag, LIST(mode), COUNT(*) FROM sales GROUP BY flag",
        "Name the column in GROUP BY, which lists its values",
    ),
    (
        "SELECT UNKNOWN_FUNCTION(COUNT(*)) FROM sales",
        "Catalog Error: Scalar Function with name unknown_function does not exist",
    ),
    (
        "SELECT WIDTH_BUCKET(weight, 0, 70, 4) AS b, COUNT(*) FROM sales GROUP BY b",
        r"cuts through the cell \[15, 20\) of weight",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_statements_are_refused_by_clause(text, message):
    with pytest.raises(ln.InputError, match=message):
        ln.sql(DOMAIN, text)


def test_unnamed_quantile_is_named_like_in_duckdb(sales):
    text = (
        "SELECT flag, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY quantity), COUNT(*) AS n FROM "
        "sales GROUP BY flag"
    )
    (statement,) = read_statements(DOMAIN, [text])
    assert [column.name for column in statement.columns] == [
        column[0] for column in duckdb.sql(text).description
    ]


def test_names_that_two_attributes_have_are_refused():
    domain = ln.Domain(
        day=ln.Dates("2024-01-01", "2024-01-31", reading={"column": "at"}),
        hour=ln.Dates("2024-01-01", "2024-01-31", by="hour_of_day", reading={"column": "at"}),
    )
    with pytest.raises(
        ln.InputError, match="GROUP BY names at, which can mean day or hour; name one of these"
    ):
        ln.sql(domain, "SELECT at, COUNT(*) FROM visits GROUP BY at")


def test_names_match_in_any_case_exact_first():
    domain = ln.Domain(day=["a"], Day=["b"], sex=["F"])
    texts = [
        f"SELECT {name}, COUNT(*) FROM visits GROUP BY {name}" for name in ("Day", "day", "SEX")
    ]
    assert [statement.groups[0].attribute for statement in read_statements(domain, texts)] == [
        "Day",
        "day",
        "sex",
    ]
    with pytest.raises(
        ln.InputError, match="GROUP BY names DAY, which can mean day or Day; name one of these"
    ):
        read_statements(domain, [texts[0].replace("Day", "DAY")])


def test_many_values_are_refused():
    domain = ln.Domain(at=ln.Integers(0, 3_000_000))
    with pytest.raises(
        ln.InputError, match="WHERE of at, which has 3000001 values, cannot be answered"
    ):
        ln.sql(domain, "SELECT COUNT(*) FROM visits WHERE at > 7")


def test_groups_become_shared_levels():
    text = (
        "SELECT age >= 65 AS retired, COUNT(*) AS n FROM people GROUP BY retired; SELECT COUNT(*) "
        "FROM people"
    )
    domain = ln.Domain(age=ln.Integers(0, 99, outside="other"))
    workload = ln.sql(domain, text, weight=3)
    assert workload.domain.kind("age").level("retired").labels == ("false", "true", "other")
    assert [(table.name, table.weight) for table in workload] == [("age:retired", 3), ("total", 3)]
    both = workload + ln.queries(workload.domain, age={"level": "retired"})
    assert both.products[0].weight == 4
    second_workload = ln.sql(workload.domain, text)
    assert second_workload.domain == workload.domain


def test_grouping_like_a_level_is_that_level():
    case = (
        "CASE WHEN nation IN ('DE', 'FR') THEN 'E' WHEN nation = 'US' THEN 'W' WHEN nation IN "
        "('JP', 'IN') THEN 'A' END"
    )
    workload = ln.sql(
        DOMAIN,
        f"SELECT {case} AS part, COUNT(*) AS n FROM sales GROUP BY part",
        "SELECT region, COUNT(*) AS n FROM sales GROUP BY 1",
    )
    assert [table.name for table in workload] == ["nation:region"]
    assert workload.domain == DOMAIN


def test_answers_have_intervals_and_a_row_for_others():
    domain = ln.Domain(age=ln.Integers(0, 9, outside="other"))
    rows = pd.DataFrame({"age": [1, 8, 8, 50]})
    release = ln.release(ln.plan(ln.marginals(domain, ways=1), ln.PureDP(50)), rows, seed=3)
    frame = release.sql("SELECT age > 5 AS old, COUNT(*) AS n FROM people GROUP BY old", "pandas")
    assert frame["old"].tolist() == ["false", "true", "other"]
    assert frame["n"].round().tolist() == [1, 2, 1]
    assert (frame["n_low"] < frame["n"]).all()
    assert (frame["n_high"] > frame["n"]).all()
    assert release.sql("SELECT COUNT(*) AS n FROM people WHERE age > 5", "pandas")[
        "n"
    ].round().tolist() == [2]
    with pytest.raises(
        ln.InputError, match="The quantiles of age was not requested before this release"
    ):
        release.sql("SELECT MEDIAN(age) FROM people")
    with pytest.raises(ln.InputError, match="must be one statement; got '2 statements'"):
        release.sql("SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people")


def test_filter_without_rows_of_a_group_is_zero():
    domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 9)})
    text = (
        "SELECT sex, COUNT(*) FILTER (WHERE sex = 'F') AS n, AVG(pay) FILTER (WHERE sex = 'F') AS "
        "mean FROM people GROUP BY sex"
    )
    rows = pd.DataFrame({"sex": ["F", "M"] * 50, "pay": [5] * 100})
    frame = ln.release(ln.plan(ln.sql(domain, text), ln.PureDP(50)), rows, seed=3).sql(
        text, "pandas"
    )
    assert frame["n"].round().tolist() == [50, 0]
    assert frame["n_high"].tolist()[1] == 0
    assert math.isnan(frame["mean"][1])


def test_very_many_groups_are_refused():
    domain = ln.Domain(a=ln.Integers(0, 999), b=ln.Integers(0, 999))
    with pytest.raises(
        ln.InputError,
        match=r"GROUP BY with 1001000 groups cannot be answered. A statement has at most 200000",
    ):
        ln.sql(domain, "SELECT a, b, COUNT(*) FROM visits GROUP BY GROUPING SETS ((a, b), (a))")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sex, AVG(pay) FROM p GROUP BY sex",
        "SELECT SUM(pay) FROM p",
        "SELECT COUNT(DISTINCT id) FROM p",
    ],
)
def test_unplanned_statements_are_refused_unpaid(tmp_path, text):
    domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 9)})
    plan = ln.plan(
        ln.marginals(domain, ways=1), ln.Privacy(ln.PureDP(1), unit_column="id", max_rows=2)
    )
    rows = pd.DataFrame({"sex": ["F"], "pay": [1], "id": [1]})
    with pytest.raises(
        ln.InputError,
        match=r"needs .*, which the plan does not have. Ask for it with leastnoise.sql",
    ):
        ln.release(
            plan,
            rows,
            options=ln.Options(statements=[text]),
            ledger=tmp_path / "a.ledger",
            out=tmp_path / "out",
        )
    assert not list(tmp_path.iterdir())


def test_nothing_of_a_statement_reaches_files():
    (statement,) = read_statements(DOMAIN, ["SELECT flag, COUNT(*) FROM 'rows.csv' GROUP BY flag"])
    assert statement.groups[0].attribute == "flag"  # the name of the table is not looked at
    with pytest.raises(ln.InputError, match="cannot be answered"):
        ln.sql(DOMAIN, "SELECT COUNT(*) FROM sales WHERE flag = read_text('rows.csv')")
