"""Tables of Ibis beyond the contract of engines: what BigQuery and Snowflake are sent, translated and carried out by DuckDB; refusals."""

import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import duckdb
import pytest
import sqlglot

import leastnoise as ln
from adapters.engine_rows import ARROW, COLUMNS, counts
from adapters.test_engines import KEYS, KINDS, MEASURES, TIMES, keys_of
from leastnoise import Categories, Domain, InputError, Reading
from leastnoise._adapters import Wanted, _engine, _ibis, _read
from leastnoise._adapters._engine import Wish
from leastnoise._kernel._count import count
from leastnoise._table import Table

ibis = pytest.importorskip("ibis", reason="Ibis is not installed; pip install 'leastnoise[ibis]'")

SCHEMA = {"n": "int64", "x": "float64", "t": "string", "b": "boolean", "u": "int64", "w": "string", "d": "date"}
SCHEMA |= {"s": "timestamp(6)", "z": "timestamp('UTC', 6)"}
FORMS = Categories(["f", "17", "é"], reading=Reading(trim=True, ignore_case=True, nulls=["X"]), null="other")
DOMAIN = Domain({"x": KINDS[7], "n": KINDS[2], "t": FORMS, "d": TIMES[1], "s": TIMES[3], "z": TIMES[2]}, measures={"m": MEASURES[1]})
TABLES = {None: [("x",), ("n", "t"), ("d",), ("s",), ("z",), ()], "m": [("t",)]}


def engine(name, said):
    """An engine whose queries are translated for DuckDB."""
    table = ibis.table(SCHEMA, name="visits")
    connection = duckdb.connect()
    connection.register("visits", ARROW)

    @contextmanager
    def session():
        def run(ours):
            text = _ibis.words(name, ours, {"leastnoise_source": str(ibis.to_sql(table, dialect=name))})
            said.append(text)
            # DuckDB has no name for this collation, which is its own
            (translated,) = sqlglot.transpile(text.replace(", 'utf8')", ", '')"), read=name, write="duckdb")
            return connection.sql(translated).to_arrow_table().to_reader()

        yield run

    return _ibis.engine_of(_ibis.DIALECTS[name], dict(table.schema().items()), "leastnoise_source", session)


@pytest.mark.parametrize("name", ["bigquery", "snowflake"])
def test_what_is_sent_elsewhere_counts_the_same_once_translated(name):
    said = []
    wish = Wish(
        kinds={one: DOMAIN.kind(one) for one in DOMAIN.names}, sums=dict(DOMAIN.measures), tables=TABLES, unit_column=None, max_rows=1
    )
    table = Table.counted(DOMAIN, list(wish.kinds), list(wish.sums), _engine.counted(engine(name, said), wish, bytes))
    found = {(measure, names): cells.tolist() for measure in TABLES for names, cells in count(table, TABLES[measure], measure)}
    assert found == counts(ARROW, DOMAIN, TABLES)[0]
    assert len(said) == 1
    text = said[0]
    tree = sqlglot.parse_one(text, read=name)
    assert len(list(tree.find_all(sqlglot.exp.GroupingSets))) == 1
    assert tree.find(sqlglot.exp.Offset) is None  # which BigQuery takes beside a LIMIT alone
    # older servers refuse a query within another that has no name
    assert all(one.alias for one in tree.find_all(sqlglot.exp.Subquery))
    assert {"leastnoise_source", "visits"} == {table.name for table in tree.find_all(sqlglot.exp.Table)}
    # whatever is told apart by case is quoted
    assert all(one.quoted for one in tree.find_all(sqlglot.exp.Identifier))


@pytest.mark.parametrize("name", ["bigquery", "snowflake"])
def test_units_are_bounded_elsewhere(name):
    said = []
    kinds = {"t": DOMAIN.kind("t")}
    wish = Wish(kinds=kinds, sums={}, tables={None: [()]}, unit_column="u", max_rows=2)
    found = _engine.counted(engine(name, said), wish, bytes)
    often = {}
    for unit, cell in zip(COLUMNS["u"], _read.cell_encoder(kinds["t"])(_column("t")).tolist(), strict=True):
        if unit is not None:
            often.setdefault(unit, []).append(cell)
    most = sum(min(2, len(rows)) for rows in often.values())
    assert 0 < found[None, ()].sum() <= most
    assert said[0].count("ROW_NUMBER() OVER") == 2


@pytest.mark.parametrize("name", ["bigquery", "snowflake"])
def test_keys_are_counted_elsewhere(name):
    said = []
    for column, kind in KEYS[:4]:
        found = _engine.counted_keys(engine(name, said), column, kind, None, 1, bytes)
        assert found == Counter(key for key in keys_of(column, kind) if key is not None)
    assert len(said) == 4


@pytest.mark.parametrize("name", sorted(_ibis.DIALECTS))
def test_which_types_are_counted_and_as_what(name):
    """The others are read, so that no value is rounded, and no query fails for one."""
    whole = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
    held = dict.fromkeys(whole, "integer") | dict.fromkeys(["float64", "decimal(15, 2)"], "double") | {"boolean": "boolean"}
    held |= {"string": "text", "date": "day", "timestamp": "stamp", "timestamp(6)": "stamp", "timestamp('UTC', 6)": "instant"}
    other = ["uint64", "float32", "float16", "decimal(16, 2)", "decimal", "timestamp(9)", "timestamp('UTC', 3)", "time", "array<int64>"]
    types = ibis.schema({kind: kind for kind in (*held, *other, "binary", "uuid", "json", "interval('s')")})
    values = _ibis.engine_of(_ibis.DIALECTS[name], dict(types.items()), "visits", None).values
    assert {kind: value.held for kind, value in values.items()} == held


def test_doubles_that_bigquery_would_take_for_new_groups_are_nulls():
    """NaN is not equal to itself there; a decimal is never one."""
    types = ibis.schema({"x": "float64", "e": "decimal(15, 2)"})
    values = _ibis.engine_of(_ibis.DIALECTS["bigquery"], dict(types.items()), "visits", None).values
    assert values["x"].it.sql("bigquery") == "CASE WHEN IS_NAN(`x`) THEN NULL ELSE `x` END"
    assert values["e"].it.sql("bigquery") == "CAST(`e` AS FLOAT64)"


def _column(name):
    from leastnoise._adapters._arrow import to_column

    return to_column(ARROW.column(name).combine_chunks())


def test_types_of_duckdb_that_ibis_takes_for_others():
    """Enumerations are text there, and times may be infinite, or further away than microseconds reach: a query must not fail."""
    types = {"e": "ENUM('F', 'M')", "d": "DATE", "s": "TIMESTAMP", "k": "DECIMAL(4, 2)", "o": "TIMESTAMP_S"}
    far = "make_timestamp(9000000000000000000)"
    rows = ["('F', '2024-01-01', '2024-01-01 01:00', 1.5, '2024-01-01')", "('M', '-infinity', 'infinity', -1.25, '290000-01-01')"]
    rows += [f"(NULL, 'infinity', {far}, NULL, NULL)", "(NULL, NULL, NULL, 17, 'infinity')", "('M', NULL, '-infinity', NULL, NULL)"]
    backend = ibis.duckdb.connect()
    listed = ", ".join(f"{name} {kind}" for name, kind in types.items())
    backend.con.execute(f"CREATE TABLE visits ({listed}); INSERT INTO visits VALUES {', '.join(rows)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        table = backend.table("visits")
    kinds = {"e": Categories(["F", "x"], null="other"), "d": TIMES[1], "s": TIMES[2], "k": KINDS[7], "o": TIMES[1]}
    clipped = [("d", replace(TIMES[1], outside="clip")), ("s", replace(TIMES[2], outside="clip"))]
    for name, kind in [*kinds.items(), *clipped]:
        tables = {None: [(name,)]}
        found, here = counts(table, Domain({name: kind}), tables)
        assert here == (name != "o")
        assert found == counts(backend.con.table("visits"), Domain({name: kind}), tables)[0]


def test_a_table_without_a_connection_is_refused():
    with pytest.raises(InputError, match=r"must belong to one connection\. Make it from one"):
        ln.release(ln.plan(ln.marginals(Domain(b=["true"]), ways=1), ln.PureDP(1)), ibis.table({"b": "boolean"}, name="visits"), seed=1)


def test_a_backend_without_a_dialect_is_read(monkeypatch):
    monkeypatch.delitem(_ibis.DIALECTS, "duckdb")
    table = ibis.memtable({"b": [True, False, None, True]})
    found, here = counts(table, Domain(b=KINDS[4]), {None: [("b",)]})
    assert not here
    assert found[None, ("b",)][:2] == [1, 2]


def test_how_many_rows_are_used_is_counted_where_it_is_wanted_alone(ibis_duckdb):
    for usage in (False, True):
        table = _read.read(ibis_duckdb, Domain(t=FORMS), wanted=Wanted(tables={None: [("t",)]}, usage=usage))
        assert (table.usage is not None) is usage


def test_a_failing_table_says_nothing_of_a_row():
    table = ibis.memtable(ARROW.select(["t"]).slice(0, 1).set_column(0, "t", [["MARK"]]))
    table = table.select(n=table.t.cast("int64"), b=table.t == "F")
    for domain in (Domain(n=KINDS[0]), Domain(n=Categories(["1"]))):
        with pytest.raises(InputError, match=r"the ibis data frame cannot be computed|the Ibis table cannot be computed") as error:
            counts(table, domain, {None: [("n",)]})
        assert "MARK" not in str(error.value)
