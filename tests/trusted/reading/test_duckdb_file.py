"""Tables of a DuckDB database file."""

import duckdb
import pytest

import leastnoise as ln
from leastnoise import DatabaseTable, Domain
from leastnoise._trusted.reading import read
from trusted.reading.encoders import refused

DOMAIN = Domain({"sex": ["F", "M"], 'a"b': ln.Integers(0, 9)})
PLAN = ln.plan(ln.marginals(DOMAIN, ways=2), ln.Privacy(ln.PureDP(1), unit_column="id", max_rows=3))


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return a DuckDB file with tables and a view that fails."""
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(path) as connection:
        sex = "CASE WHEN i % 7 = 0 THEN NULL WHEN i % 3 = 0 THEN 'F' ELSE 'M' END AS sex"
        rows = f'SELECT i % 40 AS id, {sex}, (i % 12)::HUGEINT AS "a""b" FROM range(100) AS t(i)'
        connection.execute(f"CREATE TABLE visits AS {rows}; CREATE SCHEMA s")
        connection.execute(
            'CREATE TABLE s."vis""its" AS FROM visits; CREATE VIEW failing AS SELECT (\'MARK\' || '
            "id)::INTEGER AS sex FROM visits"
        )
    monkeypatch.setenv("VISITS_DB", f"duckdb://{path}")
    return path


@pytest.mark.parametrize("table", ["visits", 's.vis"its', "main.visits"])
def test_file_table_equals_its_relation(file, table):
    release_from_file = ln.release(PLAN, DatabaseTable(table, "env:VISITS_DB"), seed=3)
    with duckdb.connect(file, read_only=True) as connection:
        release_from_relation = ln.release(PLAN, connection.table("visits"), seed=3)
    assert (
        release_from_file.answers["answer"].tolist()
        == release_from_relation.answers["answer"].tolist()
    )


@pytest.mark.parametrize("table", ["nowhere", "visits; DROP TABLE visits"])
def test_missing_table_is_refused(file, table):
    with refused("of DuckDB cannot be read. Check that env:VISITS_DB holds the path"):
        read(DatabaseTable(table, "env:VISITS_DB"), DOMAIN)


def test_missing_database_file_is_not_created(file, monkeypatch):
    monkeypatch.setenv("VISITS_DB", f"duckdb://{file.parent / 'other.duckdb'}")
    with refused("the table 'visits' of DuckDB cannot be read"):
        read(DatabaseTable("visits", "env:VISITS_DB"), DOMAIN)
    assert not (file.parent / "other.duckdb").exists()


def test_a_view_that_fails_says_nothing_of_a_row(file):
    with refused("the table 'failing' of DuckDB cannot be computed"):
        read(DatabaseTable("failing", "env:VISITS_DB"), Domain(sex=["F", "M"]))
