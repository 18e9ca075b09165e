"""Settings of a spec for SQL: the current day, and the join of the source."""

import pytest

import leastnoise as ln

SPEC = """
[source]
path = "visits.csv"
today = {today}
[source.join]
path = "people.csv"
on = {{ person = "id" }}
[privacy]
epsilon = 400
unit = {{ column = "person", max_rows = 5 }}
[domain.town]
categories = ["Bern", "Lyon"]
[domain.day]
dates = {{ from = "2026-01-01", to = "2026-01-31", by = "day" }}
[[workload]]
sql = '''{sql}'''
[plan]
strategy = "identity"
"""
SQL = """SELECT p.town, COUNT(*) AS n FROM visits v LEFT JOIN people p ON v.person = p.id
WHERE v.day > CURRENT_DATE - 3 GROUP BY p.town"""


def spec_file(folder, sql=SQL, today='"2026-01-20"'):
    """Write a spec with a statement and the current day."""
    path = folder / "visits.toml"
    path.write_text(SPEC.format(sql=sql, today=today))
    return path


@pytest.mark.parametrize("today", ['"2026-01-20"', "2026-01-20"])
def test_sql_uses_the_day_and_the_join_of_the_spec(tmp_path, today):
    visits = [f"{number % 9},2026-01-{number % 20 + 1:02}" for number in range(200)]
    (tmp_path / "visits.csv").write_text("person,day\n" + "\n".join(visits) + "\n")
    people = [f"{number},{'Bern' if number < 6 else 'Lyon'}" for number in range(9)]
    (tmp_path / "people.csv").write_text("id,town\n" + "\n".join(people) + "\n")
    spec = ln.read_spec(spec_file(tmp_path, today=today))
    assert (spec.options.today, spec.options.joined_on) == ("2026-01-20", ("person", "id"))
    joined = ln.Joined(tmp_path / "visits.csv", tmp_path / "people.csv", on={"person": "id"})
    unlimited = ln.Privacy(ln.PureDP(4000), unit_column="person", max_rows=40)
    plan = ln.plan(spec.workload, unlimited, strategy="identity")
    release = ln.release(plan, joined, seed=1, options=spec.options)
    frame = release.sql(spec.options.statements[0], "pandas")
    assert frame["town"].tolist() == ["Bern", "Lyon"]
    last_days = [line.split(",") for line in visits if line[-2:] in ("18", "19", "20")]
    in_bern = sum(int(person) < 6 for person, _ in last_days)
    assert frame["n"].tolist() == pytest.approx([in_bern, len(last_days) - in_bern], abs=0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"today": '"soon"'}, r"\[source\] today must be a day such as '2026-01-31'; got 'soon'"),
        ({"today": "7"}, r"\[source\] today must be a day"),
        ({"sql": SQL.replace("p.id", "p.person")}, "The source is joined on person = id"),
        ({"sql": SQL.replace("LEFT JOIN", "RIGHT JOIN")}, "Write LEFT JOIN or JOIN"),
    ],
)
def test_sql_settings_that_cannot_be_used_are_refused(tmp_path, change, message):
    with pytest.raises(ln.InputError, match=message):
        ln.read_spec(spec_file(tmp_path, **change))


def test_faults_of_all_parts_are_listed(tmp_path):
    file = spec_file(tmp_path, "SELECT MAX(day) FROM visits")
    file.write_text(file.read_text() + "[[workload]]\nsql = 'SELECT MIN(day) FROM visits'\n")
    with pytest.raises(ln.InputError) as caught:
        ln.read_spec(file)
    lines = str(caught.value).splitlines()
    assert [line.split(" cannot")[0] for line in lines] == [
        "[[workload]] number 1: Statement 1 (line 1, column 12): MAX(day)",
        "[[workload]] number 2: Statement 1 (line 1, column 12): MIN(day)",
    ]


def test_sql_may_be_in_a_file_beside_the_spec(tmp_path):
    (tmp_path / "report.sql").write_text(SQL, encoding="utf-8")
    path = spec_file(tmp_path)
    inline = ln.read_spec(path)
    text = path.read_text().replace(f"'''{SQL}'''", '{ file = "report.sql" }')
    path.write_text(text)
    assert ln.read_spec(path).workload == inline.workload
    assert ln.read_spec(path).options.statements == inline.options.statements


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ('"report.sql"',
         'got the name of a file, .report.sql.*Write sql = { file = "report.sql" }'),
        ('{ file = "none.sql" }', "number 1 sql must be a file of SQL statements in UTF-8"),
        ("{ file = 3 }", "number 1 sql file must be the path of a file"),
        ('{ path = "report.sql" }', "number 1 sql has no key .path."),
        ('{ file = "report.sql" }',
         r"report\.sql: Statement 1 \(line 1, column 8\): SELECT names x"),
    ],
)  # fmt: skip
def test_sql_file_that_cannot_be_read_is_named(tmp_path, sql, message):
    (tmp_path / "report.sql").write_text("SELECT x, COUNT(*) FROM visits GROUP BY x", "utf-8")
    path = spec_file(tmp_path)
    path.write_text(path.read_text().replace(f"'''{SQL}'''", sql))
    with pytest.raises(ln.InputError, match=message):
        ln.read_spec(path)
