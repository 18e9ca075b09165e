"""SQL with nulls, Booleans and values outside the domain, against DuckDB on the same rows."""

import duckdb
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._workload import read_statements

ROWS = pd.DataFrame(
    {
        "chan": ["web"] * 60 + ["app"] * 30 + [None] * 10 + ["fax"] * 5,
        "refund": ([True, False, None] * 35),
        "age": [None if row % 7 == 0 else row % 20 for row in range(105)],
        "pay": [None if row % 5 == 0 else row % 9 for row in range(105)],
    }
)
POLICIES = [
    ("drop", "drop"),
    ("other", "drop"),
    ("drop", "other"),
    ("other", "other"),
    ("cell", "cell"),
]


def channels(null="drop", outside="drop", **options):
    """Return a domain of a text, a Boolean and a number, and a measure."""
    return ln.Domain(
        chan=ln.Categories(["web", "app"], null=null, outside=outside, **options),
        refund=[True, False],
        age=ln.Integers(0, 19, null=null),
        measures={"pay": ln.Measure("pay", 0, 9)},
    )


def answers(domain, *texts):
    """Return the rows of statements that are planned together, nearly without noise."""
    release = ln.release(ln.plan(ln.sql(domain, *texts), ln.PureDP(300)), ROWS, seed=1)
    answers_of_statements = []
    for text in texts:
        frame = release.sql(text, "pandas")
        frame = frame[[name for name in frame if not name.endswith(("_low", "_high"))]]
        rows = frame.itertuples(index=False, name=None)
        answers_of_statements.append(sorted(tuple(map(_normal, row)) for row in rows))
    return answers_of_statements


def true_answers(text):
    """Return the rows of a statement by DuckDB."""
    sales = ROWS  # noqa: F841 - DuckDB finds it by its name
    return sorted(tuple(map(_normal, row)) for row in duckdb.query(text).fetchall())


def _normal(value):
    """Return a value in a form that both programs share."""
    if pd.isna(value):
        return None
    return str(value).lower() if isinstance(value, (bool, str)) else round(value)


COUNTED = [
    (
        "SELECT CASE WHEN chan = 'web' THEN 'web' ELSE 'rest' END AS k, COUNT(*) AS n FROM sales "
        "GROUP BY k"
    ),
    (
        "SELECT CASE chan WHEN 'web' THEN 'web' ELSE 'rest' END AS k, COUNT(*) AS n FROM sales "
        "GROUP BY k"
    ),
    "SELECT SUM(CASE WHEN chan = 'web' THEN 0 ELSE 1 END) AS n FROM sales",
    "SELECT SUM(CASE WHEN chan = 'web' THEN 0 WHEN chan = 'app' THEN 1 ELSE 1 END) AS n FROM sales",
    "SELECT SUM(CASE WHEN chan = 'web' THEN 0 ELSE pay END) AS n FROM sales",
    "SELECT COUNT(CASE WHEN chan = 'web' THEN 0 END) AS n FROM sales",
    "SELECT COUNT(CASE WHEN chan = 'web' THEN 1 ELSE 0 END) AS n FROM sales",
    "SELECT COUNT(*) AS n FROM sales WHERE chan <> 'web'",
    "SELECT COUNT(*) AS n FROM sales WHERE NOT (chan = 'web')",
    "SELECT COUNT(*) AS n FROM sales WHERE chan NOT IN ('web', 'app')",
    "SELECT COUNT(*) AS n FROM sales WHERE chan IS NULL",
    "SELECT COUNT(*) AS n FROM sales WHERE chan IS NOT NULL",
    "SELECT COUNT(*) AS n FROM sales WHERE chan IS DISTINCT FROM 'web'",
    "SELECT COUNT(*) AS n FROM sales WHERE (chan = 'web') IS NOT TRUE",
    "SELECT COUNT(*) AS n FROM sales WHERE COALESCE(chan = 'web', TRUE)",
    "SELECT COUNT(*) AS n FROM sales WHERE NULLIF(chan, 'web') IS NULL",
    "SELECT COUNT(*) AS n FROM sales WHERE NOT (chan = 'web' OR refund)",
    "SELECT COUNT(*) FILTER (WHERE chan <> 'web') AS n, COUNT(*) AS m FROM sales",
    "SELECT COUNT(chan) AS n, COUNT(pay) AS m, COUNT(*) AS rows FROM sales",
    "SELECT chan IS NULL AS k, COUNT(*) AS n, SUM(pay) AS s FROM sales GROUP BY k",
    "SELECT COUNT(*) AS n FROM sales WHERE refund",
    "SELECT COUNT(*) AS n FROM sales WHERE NOT refund",
    "SELECT COUNT(*) AS n FROM sales WHERE refund = FALSE",
    "SELECT COUNT(*) AS n FROM sales WHERE refund IS NOT TRUE AND chan = 'web'",
    "SELECT COUNT_IF(refund) AS n, SUM(CASE WHEN refund THEN 1 ELSE 0 END) AS m FROM sales",
    "SELECT SUM(refund::int) AS n, SUM(CAST(chan = 'web' AS INT)) AS m FROM sales",
    "SELECT COALESCE(refund, FALSE) AS k, COUNT(*) AS n FROM sales GROUP BY k",
    "SELECT COUNT(*) AS n FROM sales WHERE age <> 5",
]


@pytest.mark.slow
@pytest.mark.parametrize(("null", "outside"), POLICIES)
def test_statements_count_nulls_as_duckdb_does(null, outside):
    for text in COUNTED:
        (rows,) = answers(channels(null, outside), text)
        assert rows == true_answers(text), text


def test_coalesce_names_the_group_of_nulls():
    text = "SELECT COALESCE(chan, 'none') AS k, COUNT(*) AS n FROM sales GROUP BY k"
    (rows,) = answers(channels(null="other"), text)
    assert rows == [("app", 30), ("none", 10), ("web", 60)]
    (rows,) = answers(channels(null="other", outside="other"), text)
    assert rows == [("app", 30), ("none", 10), ("other", 5), ("web", 60)]


@pytest.mark.parametrize(
    ("null", "outside", "further"),
    [
        ("drop", "drop", {}),
        ("other", "drop", {None: 10}),
        ("cell", "drop", {None: 10}),
        ("drop", "other", {"other": 5}),
        ("other", "other", {"other": 15}),
        ("cell", "other", {None: 10, "other": 5}),
        ("cell", "cell", {None: 10, "(outside)": 5}),
    ],
)
def test_groups_of_a_column_follow_the_domain(null, outside, further):
    text = "SELECT chan, COUNT(*) AS n FROM sales GROUP BY chan"
    plan = ln.plan(ln.sql(channels(null, outside), text), ln.PureDP(300))
    release = ln.release(plan, ROWS, seed=1)
    frame = release.sql(text, "pandas")
    counts = {
        None if pd.isna(name) else name: round(count)
        for name, count in zip(frame["chan"], frame["n"], strict=True)
    }
    assert counts == {"web": 60, "app": 30, **further}


def test_cells_are_added_only_if_counted():
    def added(text, **options):
        return ln.sql(channels(**options), text).domain.kind("chan").further_labels

    assert added("SELECT chan, COUNT(*) FROM sales GROUP BY chan") == ()
    assert added("SELECT COUNT(*) FROM sales WHERE chan = 'web'") == ()
    assert added("SELECT COUNT(*) FROM sales WHERE chan IS NULL") == ("(null)",)
    assert added("SELECT COUNT(*) FROM sales WHERE chan <> 'web'") == ("(outside)",)
    with_else = "SELECT SUM(CASE WHEN chan = 'web' THEN 0 ELSE 1 END) FROM sales"
    assert added(with_else) == ("(null)", "(outside)")
    assert added(with_else, complete=True) == ()


def test_category_called_other_is_allowed():
    domain = ln.Domain(chan=["web", "other"])
    text = "SELECT chan = 'web' AS k, COUNT(*) AS n FROM sales WHERE chan IS NOT NULL GROUP BY k"
    rows = pd.DataFrame({"chan": ["web", "other", "fax", None] * 5})
    release = ln.release(ln.plan(ln.sql(domain, text), ln.PureDP(300)), rows, seed=1)
    assert release.sql(text, "pandas")["n"].round().tolist() == [5, 10]


def test_statements_name_omitted_values():
    def left_out(text, **policies):
        (statement,) = read_statements(channels(**policies), [text])
        return statement.left_out

    assert left_out("SELECT COUNT(*) FROM sales WHERE age >= 18") == ("age",)
    assert left_out("SELECT COUNT(*) FROM sales WHERE chan LIKE 'w%'") == ("chan",)
    assert left_out("SELECT COUNT(*) FROM sales WHERE chan = 'fax' OR chan = 'web'") == ("chan",)
    assert left_out("SELECT COUNT(*) FROM sales WHERE age NOT IN (3, 5)") == ()
    assert left_out("SELECT chan, COUNT(*) FROM sales GROUP BY chan") == ("chan",)
    assert left_out("SELECT chan, COUNT(*) FROM sales GROUP BY chan", outside="cell") == ()


def test_release_without_cells_refuses_statements():
    domain = channels()
    release = ln.release(ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1)), ROWS, seed=1)
    with pytest.raises(ln.InputError, match=r"needs a cell for nulls of chan, .*null = 'cell'"):
        release.sql("SELECT COUNT(*) AS n FROM sales WHERE chan IS NULL")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT COUNT(*) FROM sales WHERE chan",
            "WHERE chan, which is neither true nor false, cannot be answered",
        ),
        (
            "SELECT COUNT(*) FROM sales;\n\nSELECT COUNT(*) FROM sales\nWHERE chann = 'web'",
            r"Statement 2 \(line 4, column 7\): WHERE names chann, which is not an attribute",
        ),
        (
            "SELECT COUNT(*) FROM sales WHERE age > CURRENT_DATE",
            "CURRENT_DATE cannot be answered. State the day that it means",
        ),
    ],
)
def test_refusals_name_the_clause_and_the_line(text, message):
    with pytest.raises(ln.InputError, match=message):
        ln.sql(channels(), text)


def test_to_char_is_read_as_a_format_of_dates():
    domain = ln.Domain(day=ln.Dates("2024-01-01", "2024-03-31", "month"))
    texts = ["SELECT TO_CHAR(day, 'YYYY-MM') AS ym, COUNT(*) AS n FROM sales GROUP BY 1"] * 2
    workload = ln.sql(domain, ";".join(texts))
    assert workload.products[0].labels == (("2024-01", "2024-02", "2024-03"),)
