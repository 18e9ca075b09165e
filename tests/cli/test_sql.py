"""Tests of SQL files with a spec: plans, releases, and refusals before payment."""

import json
from pathlib import Path

import pytest

import leastnoise as ln
from cli.conftest import assert_contains

SPEC = """
[source]
path = "people.csv"
[privacy]
epsilon = 60
unit = { column = "id", max_rows = 2, of_unit = ["sex"] }
[domain.sex]
categories = ["F", "M"]
labels = { F = "women", M = "men" }
[domain.age]
integers = [0, 99]
[measures.pay]
clip = [0, 9]
[[workload]]
sql = '''SELECT sex, COUNT(*) AS n FROM people GROUP BY sex'''
margin = 40
[plan]
strategy = "identity"
[output]
formats = ["csv", "parquet", "sdmx"]
"""
QUERIES = """
-- of whom, and how much
SELECT sex, age >= 18 AS adult, COUNT(*) AS n, AVG(pay) AS mean \
FROM people GROUP BY ROLLUP (sex, adult) ORDER BY n DESC;
SELECT sex, COUNT(DISTINCT id) AS people FROM people WHERE sex = 'F' GROUP BY sex;
SELECT age >= 18 AS adult, COUNT(*) AS n FROM people GROUP BY adult;
SELECT DISTINCT sex FROM people;
SELECT sex, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS percent, SUM(pay) * 2 AS twice
FROM people WHERE sex = 'F' OR age < 30 GROUP BY sex HAVING COUNT(*) > 10 ORDER BY sex
"""


@pytest.fixture
def sql_folder(folder):
    """Return a directory with a table of persons, a spec and two files of statements."""
    rows = ""
    for number in range(400):
        person = number // 2
        rows += f"{person},{'FM'[person % 2]},{number % 40},{number % 10}\n"
    (folder / "people.csv").write_text("id,sex,age,pay\n" + rows)
    (folder / "people.toml").write_text(SPEC)
    (folder / "queries.sql").write_text(QUERIES)
    (folder / "bad.sql").write_text(
        "SELECT sex, MIN(pay), COUNT(DISTINCT sex) FROM people GROUP BY sex"
    )
    return folder


@pytest.fixture
def release(sql_folder, run, prepare_once):
    """Return a German release of the statements from the directory `out`."""
    Path("people.toml").write_text(SPEC + 'language = "de"\n')
    arguments = ("queries.sql", "--spec", "people.toml", "--out", "out", "--seed", "1")
    prepare_once("release", lambda: run.succeeds("release", *arguments, "--no-cache"))
    return ln.read_release("out")


def statement_lines(number):
    """Return the lines of the answers to a statement."""
    return Path(f"out/answers/statement-{number}.csv").read_text("utf-8").splitlines()


def test_plan_of_a_sql_file_lists_its_tables(sql_folder, run):
    shown = run.succeeds("plan", "queries.sql", "--spec", "people.toml", "--no-cache").out
    assert_contains(shown, "sex x age:adult", "units")


def test_sql_file_answers_each_statement_as_a_table(release):
    assert len(release.options.statements) == 5
    header, *rows = statement_lines(1)
    assert header == "sex,adult,n,n_low,n_high,mean,mean_low,mean_high"
    # The statement sorts by the count: the total, then each sex.
    assert rows[0].startswith(",,")
    assert len(rows) == 7
    for row, count in zip(rows[:3], (400, 200, 200), strict=True):
        assert abs(float(row.split(",")[2]) - count) < 3

    assert statement_lines(2)[1].startswith("F,")
    persons = release.sql(release.options.statements[1], "pandas")["people"]
    assert abs(persons[0] - 100) < 3
    assert Path("out/answers/statement-3.parquet").exists()
    assert statement_lines(4) == ["sex", "F", "M"]


def test_statement_of_percentages_has_no_interval_for_them(release):
    header, *rows = statement_lines(5)
    assert header == "sex,percent,twice,twice_low,twice_high"
    percentages = [float(row.split(",")[1]) for row in rows]
    assert percentages == pytest.approx([57, 43], abs=2)
    assert "Für percent wird kein Intervall berechnet" in Path("out/report.html").read_text("utf-8")
    manifest = json.loads(Path("out/manifest.json").read_text("utf-8"))
    statements = manifest["answers"].get("statements", manifest.get("statements"))
    assert statements[-1]["without_interval"] == ["percent"]


def test_report_shows_the_statements(release):
    page = Path("out/report.html").read_text("utf-8")
    assert_contains(
        page, "Ergebnisse der SQL-Abfragen", "Abfrage 3", "SELECT age &gt;= 18 AS adult"
    )
    section = page.split('id="statements"')[1].split("</section>")[0]
    assert section.count("<td>women<td>True<td>") == 1


def test_spec_statement_takes_a_target(sql_folder, run):
    run.succeeds("plan", "people.toml", "--no-cache")
    assert ln.read_spec("people.toml").workload.products[0].target.most == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("plan", "queries.sql"),
            "queries.sql has SQL statements: add --spec people.toml for the domain and the budget",
        ),
        (
            ("plan", "people.toml", "--spec", "people.toml"),
            "a file of SQL statements whose name ends in .sql; got people.toml",
        ),
        (("plan", "none.sql", "--spec", "people.toml"), "There is no spec file at none.sql"),
        (("release", "queries.sql", "--out", "out"), "queries.sql has SQL statements"),
        (
            ("compare", "bad.sql", "--spec", "people.toml"),
            "bad.sql: Statement 1 (line 1, column 17): MIN(pay) cannot be answered",
        ),
        (
            ("compare", "bad.sql", "--spec", "people.toml"),
            "bad.sql: Statement 1 (line 1, column 23): COUNT(DISTINCT sex) cannot be answered",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused(sql_folder, run, arguments, message):
    run.is_refused(message, *arguments)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("sum = 'pay'", "a key of [[workload]] number 1, which has sql, must be left out"),
        ("sql = 7", "SQL must be a text; got int"),
        (
            "sql = 'SELECT AVG(pay) FROM people'\nrmse = 3",
            "Targets of sql apply only to counts and sums. Request means in a separate",
        ),
        (
            "sql = 'SELECT COUNT(DISTINCT age) FROM people'",
            "by the column of [privacy] unit; that is id",
        ),
        ("sql = 'SELECT COUNT(*) FROM people'\nqueries = { sex = 'identity' }", "exactly one of"),
    ],
)
def test_parts_of_a_spec_that_do_not_fit_are_refused(sql_folder, run, change, message):
    statement = "sql = '''SELECT sex, COUNT(*) AS n FROM people GROUP BY sex'''\nmargin = 40"
    replacement = change if change.startswith("sql") else f"{statement}\n{change}"
    Path("people.toml").write_text(SPEC.replace(statement, replacement))
    run.is_refused(message, "plan", "people.toml")
