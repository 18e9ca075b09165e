"""Sources that count in an engine, against counts of the same rows read locally."""

import datetime as dt
import hashlib
import itertools
import math
import re
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

import leastnoise as ln
from behind_the_wall import CountRequest, amount_encoder, exact_marginals, to_column
from behind_the_wall import value_as_text as text_of
from leastnoise._cli import main
from leastnoise._domain import UnitCount, UnitTotal, ValueCount, rule_of
from leastnoise._spec import parse_spec
from leastnoise._trusted.check import InputError
from leastnoise._trusted.reading import ReadRequest, _postgres, _read, read, read_keys
from leastnoise._trusted.reading._rules_sql import Value, amount_of, cell_of, prepare_value
from leastnoise._trusted.table import Counted, open_content
from trusted.reading.encoders import cell_encoder, columns_of_chunks, refused, units_of
from trusted.reading.engine_cases import BERLIN, HOWE, KINDS, MEASURES, PRODUCTS, SQUARES, WEIGHTED
from trusted.reading.engine_rows import ARROW, COLUMNS, ROWS, counted, counts, literal
from trusted.reading.postgres import fill, table

# --- encoding and counting ------------------------------------------------------------------------


VALUE_COLUMNS = ("n", "x", "t", "b", "d", "s", "z")


def encoded_in_engine(source, expressions, prepared):
    """Return the expressions' values for every row, computed by the engine, in order of i."""
    opened = _read.open_source(source)
    aliases = [exp.alias_(expression, name) for name, expression in prepared.items()]
    raw = exp.select("*", *aliases).from_(opened.engine.relation.copy())
    columns = [
        exp.alias_(expression, f"k{place}", copy=False)
        for place, expression in enumerate(expressions)
    ]
    query = exp.select(exp.column("i"), *columns, copy=False).from_(
        raw.subquery("raw", copy=False), copy=False
    )
    with opened.engine.session(opened.description) as run:
        answer = run(query).read_all().sort_by("i")
    return [answer.column(f"k{place}").to_pylist() for place in range(len(expressions))]


def assert_rows_equal(label, name, computed, expected):
    """Name the first rows of a column whose engine values differ from the values of reading."""
    differences = [
        (text, engine_value, value)
        for text, engine_value, value in zip(COLUMNS[name], computed, expected, strict=True)
        if engine_value != value
    ]
    assert computed == expected, f"{label!r} of {name}: {differences[:9]}"


def test_engine_cells_match_reading(engine):
    """PostgreSQL has all kinds; Spark, which plans slowly, every second one."""
    values = _read.open_source(engine).engine.values
    kinds = KINDS if isinstance(engine, ln.DatabaseTable) else KINDS[1::2]
    prepared = {}
    requests = []
    for kind, name in itertools.product(kinds, VALUE_COLUMNS):
        ready = prepare_value(rule_of(kind), values[name])
        cell = None
        if ready is not None:
            alias = f"p{len(prepared)}"
            prepared[alias] = ready.expression
            cell = cell_of(rule_of(kind), Value(ready.content, exp.column(alias)))
        assert (cell is not None) == has_sql(kind, name), (kind, name)
        if cell is not None:
            requests.append((kind, name, cell))

    computed = encoded_in_engine(engine, [cell for _, _, cell in requests], prepared)
    for (kind, name, _), codes in zip(requests, computed, strict=True):
        expected = cell_encoder(kind)(to_column(ARROW.column(name).combine_chunks())).tolist()
        assert_rows_equal(kind, name, codes, expected)


def test_engine_amounts_match_reading(engine):
    values = _read.open_source(engine).engine.values
    amounts = [amount_of(measure, values[measure.column]) for measure in MEASURES]
    computed = encoded_in_engine(engine, amounts, {})
    for measure, numbers in zip(MEASURES, computed, strict=True):
        column = to_column(ARROW.column(measure.column).combine_chunks())
        expected = amount_encoder(measure)(column).tolist()
        assert_rows_equal(measure, measure.column, numbers, expected)


UNIT_COUNTS = {"by b": UnitCount(["b"]), "by b x n": UnitCount(["n", "b"]), "all": UnitCount()}
UNIT_DOMAIN = ln.Domain(
    n=ln.Coded(4, outside="other"),
    b=ln.Categories(["true", "false"]),
    measures={**UNIT_COUNTS, "x": ln.Measure("x", 0, 10)},
)
UNIT_TABLES = {
    None: [("n", "b")],
    "x": [("b",)],
    "by b": [("b",), ()],
    "by b x n": [("n", "b")],
    "all": [("n", "b"), ("b",)],
}


def cells_of_units():
    """Return the cells (n, b) in which each unit has rows, by a plain loop."""
    cells = {}
    for unit, n, b in zip(*(COLUMNS[name] for name in ("u", "n", "b")), strict=True):
        if None not in (unit, n, b):
            cell = (4 if n not in range(4) else n, 0 if b else 1)
            cells.setdefault(unit, set()).add(cell)
    return cells


def units_in_cells_of_b():
    """Return in how many units each value of b has rows."""
    units = Counter(b for cells in cells_of_units().values() for b in {b for _, b in cells})
    return [units[0], units[1]]


@pytest.fixture(params=["engine", "rows"])
def unit_source(request, engine):
    """Return the engine, or the same rows without one."""
    return engine if request.param == "engine" else ARROW


def test_units_are_counted_where_the_rows_are(engine, unit_source):
    numbers, is_counted_there = counts(
        unit_source, UNIT_DOMAIN, UNIT_TABLES, unit_column="u", max_rows=ROWS
    )
    cells = cells_of_units()
    units_by_cell = Counter(cell for unit_cells in cells.values() for cell in unit_cells)
    units_by_b = units_in_cells_of_b()
    expected_by_cell = [units_by_cell[n, b] for n in range(5) for b in range(2)]

    assert is_counted_there is (unit_source is engine)
    assert numbers["by b", ("b",)] == units_by_b
    assert sum(numbers["by b", ()]) == sum(units_by_b)
    assert numbers["by b x n", ("n", "b")] == expected_by_cell
    assert sum(numbers["all", ("n", "b")]) == sum(numbers["all", ("b",)]) == len(cells)


def test_limit_on_rows_limits_cells_in_counts_of_units(unit_source):
    limited, _ = counts(unit_source, UNIT_DOMAIN, UNIT_TABLES, unit_column="u", max_rows=2)
    cells = cells_of_units()
    rows = zip(*(COLUMNS[name] for name in ("u", "n", "b")), strict=True)
    complete_rows = [row for row in rows if None not in row]
    expected = sum(min(2, len(unit_cells)) for unit_cells in cells.values())

    assert sum(limited["by b x n", ("n", "b")]) == expected
    # A unit has rows in at most two cells of b, and one cell in the counts of all units.
    assert limited["by b", ("b",)] == units_in_cells_of_b()
    assert sum(limited["all", ("n", "b")]) == len(cells)
    assert sum(limited[None, ("n", "b")]) < len(complete_rows)


def test_limit_on_each_cell_limits_counts_of_units(unit_source):
    bounds = {"max_rows": 3, "max_per_cell": ln.PerCellBound(1, "b")}
    limited, _ = counts(unit_source, UNIT_DOMAIN, UNIT_TABLES, unit_column="u", **bounds)
    units_by_b = units_in_cells_of_b()

    assert sum(limited["by b x n", ("n", "b")]) == sum(units_by_b)
    assert limited["by b", ("b",)] == units_by_b
    assert sum(limited["all", ("b",)]) == len(cells_of_units())


def has_sql(kind, name):
    """Return whether SQL encodes the kind; some texts, lists and times are read locally."""
    if isinstance(kind, ln.Dates):
        if name == "z":
            return kind.zone == "UTC" or kind.start.year > 1900
        is_number = name == "n" or (name == "x" and kind.outside != "clip")
        return name in {"d", "s"} or (kind.counted_in is not None and is_number)
    if kind.size > 4096 or "" in getattr(kind, "lookup", ()):
        return False
    if name == "t" and (kind.reading.trim or kind.reading.ignore_case):
        return False
    return name in {"n", "b"} or name == ("t" if isinstance(kind, ln.Categories) else "x")


@pytest.mark.parametrize("stored_as", ["stamp", "instant"])
def test_least_integer_is_not_a_time(stored_as):
    kind = ln.Dates("2024-01-01", "2024-01-05", null="other", outside="clip")
    cell = cell_of(rule_of(kind), prepare_value(rule_of(kind), Value(stored_as, exp.column("a"))))
    rows = f"(VALUES (CAST('{-(2**63)}' AS BIGINT)), ({1 - 2**63}), (NULL)) AS t(a)"
    assert duckdb.sql(f"SELECT {cell.sql('duckdb')} FROM {rows}").fetchall() == [(5,), (0,), (5,)]


TIMES_AS_NUMBERS = [
    float(day) + fraction
    for day in (43465, 43466, 43480, 43555, 43830, 43831)
    for fraction in (0, 0.25, 0.583333333, 0.999999, 0.99999999)
]


@pytest.mark.parametrize("zone", ["UTC", BERLIN, HOWE])
@pytest.mark.parametrize(("counted_in", "factor"), [
    ("excel", None), ("epoch_s", 1), ("epoch_ms", 1e3), ("epoch_us", 1e6)
])  # fmt: skip
@pytest.mark.parametrize("stored_as", ["integer", "double"])
def test_sql_reads_numeric_times_like_rows(stored_as, counted_in, factor, zone):
    """Cover integers and doubles at and before midnight, and beyond all days."""
    kind = ln.Dates(
        "2019-01-01", "2019-12-31", "hour_of_day", zone=zone, format=counted_in, null="other",
        outside="other",
    )  # fmt: skip
    numbers = np.array(TIMES_AS_NUMBERS)
    if factor is not None:
        # Excel counts days; day 25569 is the first of January 1970.
        numbers = np.floor((numbers - 25569) * 86400) * factor
    numbers = np.append(numbers, [0.0, -1e15, 9e18])
    if stored_as == "integer":
        numbers = numbers.astype(np.int64)
    cell = cell_of(rule_of(kind), prepare_value(rule_of(kind), Value(stored_as, exp.column("a"))))
    rows = pa.table({"a": numbers})
    answer = duckdb.from_arrow(rows).project(f"{cell.sql('duckdb')} AS c").fetchall()
    expected = cell_encoder(kind)(to_column(pa.array(numbers)))
    assert [code for (code,) in answer] == expected.tolist()
    assert len({*expected.tolist()}) > 1
    texts = [repr(number) for number in numbers.tolist()]
    assert cell_encoder(kind)(to_column(pa.array(texts))).tolist() == expected.tolist()


def test_engine_tables_and_sums_have_equal_counts(engine):
    measures = [*MEASURES, *WEIGHTED, *SQUARES, *PRODUCTS]
    domain = ln.Domain(
        {"n": KINDS[2], "x": KINDS[7], "t": KINDS[8], "b": KINDS[4]},
        measures={f"m{place}": measure for place, measure in enumerate(measures)},
    )
    pairs = [*itertools.combinations(domain.names, 2), ("t", "n"), ()]
    tables = {None: pairs, **{name: [("t",), (), ("b", "x")] for name in domain.measures}}
    expected, _ = counts(ARROW, domain, tables)

    assert counts(engine, domain, tables) == (expected, True)


def test_engine_counts_tables_of_a_large_domain_in_several_sets(engine):
    """The joint table has more than 2^17 cells, so that the rows are grouped by several sets."""
    large = {"n": ln.Integers(0, 599), "x": ln.Integers(0, 399)}
    small = {"b": KINDS[4], "t": KINDS[8]}
    domain = ln.Domain(large | small, measures={"pay": MEASURES[0]})
    names = [("n", "b"), ("x", "t"), ("x",), ("b",), ("t",)]
    tables = {None: [*names, ()], "pay": names[:2]}
    expected, _ = counts(ARROW, domain, tables)

    module = sys.modules["leastnoise._trusted.reading._engine"]
    with mock.patch.object(
        module, "_marginals_query", wraps=module._marginals_query
    ) as marginals_query:
        assert counts(engine, domain, tables) == (expected, True)
    sets_by_query = [len(call.args[1]) for call in marginals_query.call_args_list]
    # In Spark, a query has one set.
    assert sets_by_query == ([2] if isinstance(engine, ln.DatabaseTable) else [1, 1])


def kept_rows(unit, most, key, domain, bound=None):
    """Return the rows that count, with their cells and amounts, by a plain loop."""
    columns = [
        cell_encoder(domain.kind(name))(to_column(ARROW.column(name).combine_chunks()))
        for name in domain.names
    ]
    columns += [
        amount_encoder(measure)(to_column(ARROW.column(measure.column).combine_chunks()))
        for measure in domain.measures.values()
    ]

    def cell_and_limit(row):
        if bound is None:
            return None, ROWS
        return tuple(row[domain.names.index(name)] for name in bound.attributes), bound.rows

    encoded_rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return reference_kept_rows(unit, most, key, encoded_rows, cell_and_limit)


def reference_kept_rows(unit, most, key, encoded_rows, cell_and_limit):
    """Keep each unit's rows with the least keyed hashes, up to a limit in each cell."""
    if unit is None:
        yield from encoded_rows
        return
    rows_of = {}
    for name, row in zip(COLUMNS[unit], encoded_rows, strict=True):
        if name not in (None, "") and None not in row:
            rows_of.setdefault(str(name), []).append(row)
    for name, rows in rows_of.items():
        hashes = [
            hashlib.sha256(f"{key}:{name}:{place}".encode()).digest()
            for place in range(1, len(rows) + 1)
        ]
        kept = []
        rows_in = Counter()
        for _, row in sorted(zip(hashes, sorted(rows), strict=True)):
            cell, limit = cell_and_limit(row)
            rows_in[cell] += 1
            if rows_in[cell] <= limit:
                kept.append(row)
        yield from kept[:most]


@pytest.mark.parametrize(
    ("engine", "unit", "most", "bound"),
    [
        ("postgres", None, 1, None),
        ("postgres", "u", 2, None),
        ("postgres", "u", 3, ln.PerCellBound(1, "t")),
        ("spark", "w", 2, ln.PerCellBound(1, ["t", "b"])),
        ("spark", "w", 3, None),
    ],
    indirect=["engine"],
    ids=str,
)
def test_unit_rows_are_chosen_by_key_only(engine, unit, most, bound, monkeypatch):
    """The domain drops most rows, by one of its attributes, before the choice."""
    monkeypatch.setattr(_read, "urandom", lambda size: b"k" * size)
    domain = ln.Domain(
        {"t": ln.Categories(["F", "M", "17"], null="other"), "b": ln.Coded(1)},
        measures={"m": MEASURES[1]},
    )
    tables = {None: [("t", "b"), ()], "m": [()]}

    def usage(source):
        options = {"unit_column": unit, "max_rows": most, "max_per_cell": bound}
        table = read(source, domain, read_request=ReadRequest(tables=tables, usage=True), **options)
        ((_, cells),) = exact_marginals(table.usage, [("rows",)])
        ((_, cut),) = exact_marginals(table.usage, [()], "cut")
        assert (table.usage.unit_column, table.usage.max_rows) == (unit, most)
        return table, cells.tolist(), cut.tolist()

    encoded_rows = list(kept_rows(unit, most, (b"k" * 16).hex(), domain, bound))
    rows = [row for row in encoded_rows if min(row[:2]) >= 0]
    cells = np.zeros((4, 1), dtype=int)
    np.add.at(cells, tuple(np.array([row[:2] for row in rows]).T), 1)
    expected = {
        (None, ("t", "b")): cells.reshape(-1).tolist(),
        (None, ()): [len(rows)],
        ("m", ()): [sum(row[2] for row in rows)],
    }
    table, used, cut = usage(engine)
    assert counted(table, tables) == (expected, True)
    # A row with an infinite amount counts in its cell, and is not used.
    assert sum(used) == len(encoded_rows)
    assert 0 < used[0] <= len(rows) < used[1]

    _, used_of_rows, cut_of_rows = usage(ARROW)
    # The number of cut rows does not depend on the choice; `test_units` counts them by hand.
    assert cut == cut_of_rows
    assert (cut == [0]) == (unit is None)
    # Of a unit's rows, reading chooses others.
    assert unit is not None or used == used_of_rows


def drawn_attribute(cells, place, attributes):
    """Return the attribute that an engine draws for a row, by definition."""
    content = ":".join([(b"k" * 16).hex(), *map(str, cells), "0", str(place)])
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:2], "big") % attributes


def usage_by_attribute(source, domain, **options):
    """Count the used rows, and for each attribute its hidden cell less the others."""
    request = ReadRequest(
        tables={None: [domain.names]}, usage=True, published=[(name,) for name in domain.names]
    )
    table = read(source, domain, read_request=request, **options)
    ((_, (used, _)),) = exact_marginals(table.usage, [("rows",)])
    ((_, hidden_less_others),) = exact_marginals(table.usage, [("attribute",)], "lacking")
    return int(used), hidden_less_others.tolist()


@pytest.mark.parametrize("attributes", [1, 2])
def test_columns_of_some_tables_are_counted_in_engines(engine, attributes, monkeypatch):
    """A row's drawn attribute depends on its cells, its place and the key."""
    monkeypatch.setattr(_read, "urandom", lambda size: b"k" * size)
    other_kind = ln.Coded(1) if attributes == 2 else ln.Coded(1, null="other", outside="other")
    kinds = [
        ln.Categories(["F", "M", "17"]).with_hidden(True),
        other_kind.with_hidden(attributes == 2),
    ]
    domain = ln.Domain(dict(zip("tb", kinds, strict=True)))
    places = Counter()
    used = 0
    expected = [0] * attributes
    codes = open_content(read(ARROW, domain)).codes
    for cells in zip(codes["t"].tolist(), codes["b"].tolist(), strict=True):
        places[cells] += 1
        is_hidden = [cell == kind.published for cell, kind in zip(cells, kinds, strict=True)]
        if all(is_hidden[:attributes]) and attributes == 2:
            continue  # in no table
        used += 1
        attribute = drawn_attribute(cells, places[cells], attributes)
        expected[attribute] += 1 if is_hidden[attribute] else -1
    assert usage_by_attribute(engine, domain) == (used, expected)

    # Of units, other rows are chosen; each used row is drawn for one attribute.
    used, hidden_less_others = usage_by_attribute(engine, domain, unit_column="w", max_rows=2)
    assert sum(map(abs, hidden_less_others)) <= used
    assert (sum(hidden_less_others) - used) % 2 == 0
    assert used > 0


@pytest.mark.parametrize("most", [1, 1000, 1100, 2**31])
def test_every_bound_on_a_unit_is_kept(url, postgres, most):
    """Units of 1,200 and 1,050 rows, under small and large bounds on rows, cells and keys."""
    rows = (
        "SELECT u, i % 2 AS v, 'key ' || i AS k "
        "FROM (VALUES ('a', 1200), ('b', 1050)) AS n (u, n), generate_series(0, n - 1) AS i"
    )
    fill(url, ["DROP TABLE IF EXISTS many", f"CREATE TABLE many AS {rows}"])
    large_units = ln.DatabaseTable("many", postgres.connection)
    domain = ln.Domain(v=ln.Coded(2))
    options = {"unit_column": "u", "max_rows": most}
    assert counts(large_units, domain, {None: [()]}, **options) == (
        {(None, ()): [min(1200, most) + min(1050, most)]},
        True,
    )

    if most > 2:
        numbers, _ = counts(
            large_units,
            domain,
            {None: [()]},
            max_per_cell=ln.PerCellBound(most // 2, "v"),
            **options,
        )
        assert numbers[None, ()] == [2 * min(600, most // 2) + 2 * min(525, most // 2)]
    keys = keys_found(large_units, "k", ln.Unknown(9999), **options)
    assert sum(keys.values()) == min(1200, most) + min(1050, most)
    assert set(keys.values()) <= {1, 2}


KEYS = [
    ("t", ln.Unknown(99, longest=6, reading=ln.Reading(nulls=["x", "17"]))),
    ("t", ln.Unknown(99, reading=ln.Reading(nulls=["x"]))),
    ("n", ln.Unknown(99, longest=5, reading=ln.Reading(nulls=["16", "x"]))),
    ("b", ln.Unknown(9, reading=ln.Reading(nulls=["false"]))),
    ("o", ln.Unknown(99, longest=5)),
]


def keys_of(name, kind):
    """Return the key of each row, or None; 17.0 and 17 are one key."""

    def key_of(text):
        form = kind.reading.form(text)
        integer_text = re.fullmatch(r"(-?[0-9]+)\.0+", form, re.ASCII)
        if integer_text is None or len(form) > 400:
            return form
        return "0" if integer_text[1] == "-0" else integer_text[1]

    nulls = {"", *map(key_of, kind.reading.nulls)}
    keys = []
    for value in COLUMNS[name]:
        key = None if value is None else key_of(text_of(value))
        is_null = key is None or key in nulls
        keys.append(None if is_null or not rule_of(kind).table.allows(key) else key)
    return keys


def keys_found(source, name, kind, **options):
    """Return the keys found in the engine, with their units, without fetching rows."""
    opened = _read.open_source(source)
    if opened.engine:
        opened = replace(opened, encoded=lambda columns: pytest.fail("rows were fetched"))
    with mock.patch.object(_read, "open_source", return_value=opened):
        return units_of(read_keys(source, ln.Domain({name: kind}), name, **options))


@pytest.mark.parametrize(
    ("engine", "name", "kind", "unit", "most"),
    [
        *(
            ("postgres", *key, *unit)
            for key, unit in zip(KEYS, itertools.cycle([("u", 2), ("w", 1), ("u", ROWS)]))
        ),
        *(("spark", *KEYS[place], "w", 1) for place in (1, 3)),
    ],
    indirect=["engine"],
    ids=str,
)
def test_keys_have_the_same_numbers_of_units(engine, name, kind, unit, most, monkeypatch):
    """Count all rows, or the keys of each unit's rows with the least keyed hashes."""
    monkeypatch.setattr(_read, "urandom", lambda size: b"k" * size)
    keys = keys_of(name, kind)
    expected = Counter(key for key in keys if key is not None)
    assert len(expected) > (0 if name == "b" else 2)
    assert len(expected) < len(keys) - expected.total()
    assert keys_found(engine, name, kind) == expected
    assert keys_found(ARROW, name, kind) == expected

    rows_of_keys = [[key] for key in keys]
    kept = reference_kept_rows(unit, most, (b"k" * 16).hex(), rows_of_keys, lambda row: (row[0], 1))
    expected = Counter(key for (key,) in kept)
    assert keys_found(engine, name, kind, unit_column=unit, max_rows=most) == expected
    if most == ROWS:  # all rows are kept, so that reading chooses the same
        assert keys_found(ARROW, name, kind, unit_column=unit, max_rows=most) == expected


@pytest.mark.parametrize(
    "reading",
    [ln.Reading(ignore_case=True), ln.Reading(trim=True), ln.Reading(nulls=["a\\b"])],
    ids=str,
)
def test_keys_that_have_no_sql_are_read(postgres, reading):
    kind = ln.Unknown(99, reading=reading)
    assert units_of(read_keys(postgres, ln.Domain(t=kind), "t")) == Counter(
        key for key in keys_of("t", kind) if key is not None
    )
    request = CountRequest(
        rules={"t": rule_of(kind)}, sums={}, tables={}, unit_column=None, max_rows=1
    )
    assert _read.open_source(postgres).engine.keys(request, bytes) is None


def test_counted_table_serves_its_plan_only(postgres):
    domain = ln.Domain({"t": KINDS[8], "b": KINDS[4]}, measures={"m": MEASURES[1]})
    table = read(postgres, domain, read_request=ReadRequest(tables={None: [("t",)]}))
    for names, measure in ((("b",), None), (("t",), "m")):
        with pytest.raises(ln.InputError, match="counted for the tables of another plan"):
            list(exact_marginals(table, [names], measure))
    request = ReadRequest(attributes=["t"], tables={None: [("t",)]})
    table = read(postgres, domain, read_request=request)
    with pytest.raises(ln.InputError, match="read without the attribute 'b'"):
        table.require(["b"])


def test_a_release_is_the_same_from_every_source(engine):
    domain = ln.Domain({"t": KINDS[8], "x": KINDS[7]}, measures={"m": MEASURES[1]})
    plan = ln.plan(
        ln.marginals(domain, ways=2) + ln.queries(domain, x="prefix", sum="m"),
        ln.Privacy(ln.PureDP(1), unit_column="u", max_rows=ROWS),
    )
    release_of_rows = ln.release(plan, ARROW, seed=5)
    release_of_engine = ln.release(plan, engine, seed=5)
    assert release_of_rows.long("pandas").equals(release_of_engine.long("pandas"))


# --- Spark and Postgres ---------------------------------------------------------------------------


ODD_BYTES = [
    "6162", "206162", "6162C2", "6162E2", "6162E280", "80AF7878", "A06162", "C2A06162", "6361E9",
    "4341", "C2", "", "ED A0 80", "6100",
]  # fmt: skip


def test_spark_bytes_that_are_not_text_have_no_value(spark_session, monkeypatch):
    lines = ", ".join(
        f"({place}, CAST(X'{hex_bytes.replace(' ', '')}' AS STRING))"
        for place, hex_bytes in enumerate(ODD_BYTES)
    )
    frame = spark_session.sql(f"SELECT * FROM VALUES {lines} AS t(id, a)")
    domain = ln.Domain(
        a=ln.Categories(["ab", "ca\ufffd", "CA", "xx"], null="other", outside="other")
    )
    open_source = _read.open_source

    def open_without_engine(*arguments, **options):
        return replace(open_source(*arguments, **options), engine=None)

    for has_engine in (True, False):
        if not has_engine:
            monkeypatch.setattr(_read, "open_source", open_without_engine)
        numbers, is_counted_there = counts(frame, domain, {None: [("a",)]})
        keys = units_of(read_keys(frame, ln.Domain(a=ln.Unknown(9)), "a"))
        assert is_counted_there is has_engine
        assert numbers[None, ("a",)] == [1, 0, 1, 0, 12]
        assert keys == {"ab": 1, " ab": 1, "\u00a0ab": 1, "CA": 1}


def test_uncountable_in_spark_is_collected(spark_session):
    lines = ", ".join(
        f"(TIMESTAMP {text}, TIMESTAMP_NTZ {text}, DATE {text}, ARRAY(1), CAST(1.50 AS "
        f"DECIMAL(20, 2)), {text} COLLATE UTF8_LCASE)"
        for text in ("'2024-05-01 13:45:00'", "'2024-05-01 00:00:00'")
    )
    frame = spark_session.sql(
        f"SELECT * FROM VALUES {lines}, (NULL, NULL, NULL, NULL, NULL, NULL) AS t(a, b, c, d, e, f)"
    )
    # The session's time zone is nine hours ahead.
    kind = ln.Categories(
        ["2024-05-01", "2024-05-01 13:45:00", "2024-05-01 04:45:00", "1.5"],
        null="other",
        outside="other",
    )
    domain = ln.Domain(dict.fromkeys("abcdef", kind))
    numbers, is_counted_there = counts(frame, domain, {None: [(name,) for name in domain.names]})

    assert not is_counted_there
    assert list(numbers.values()) == [
        [0, 0, 1, 0, 2],
        [1, 1, 0, 0, 1],
        [2, 0, 0, 0, 1],
        [0, 0, 0, 0, 3],
        [0, 0, 0, 2, 1],
        [0, 1, 0, 0, 2],
    ]


@pytest.mark.parametrize(
    "python", [True, False], ids=["a partition at a time", "executors without Python"]
)
def test_spark_collects_a_partition_at_a_time(spark, monkeypatch, python):
    collected_frames = []
    to_arrow = type(spark).toArrow
    monkeypatch.setattr(
        type(spark), "toArrow", lambda self: collected_frames.append(self) or to_arrow(self)
    )
    if not python:
        monkeypatch.setattr(type(spark), "mapInArrow", lambda *_: 1 / 0)
    chunks = list(columns_of_chunks(_read.open_source(spark), ["i", "t"]))
    assert len(collected_frames) == (not python)
    assert max(rows for rows, _ in chunks) <= 100 < sum(rows for rows, _ in chunks) == ROWS

    order = np.concatenate([columns[0].data for _, columns in chunks]).tolist()
    texts = [
        None if place < 0 else columns[1].data[place].decode()
        for _, columns in chunks
        for place in columns[1].index
    ]
    assert sorted(order) == COLUMNS["i"]
    assert texts == [COLUMNS["t"][row] for row in order]
    assert next(columns_of_chunks(_read.open_source(spark.where("i < 0")), ["i"]), None) is None


def test_spark_columns_without_rule_fail_before_reading(spark_session):
    frame = spark_session.sql(
        "SELECT array(1) AS a, 1 AS n, INTERVAL '1' DAY AS i, 'x' AS t, timestamp'2024-05-01 "
        "00:00:00' AS z"
    )
    opened = _read.open_source(frame)
    assert {*opened.unreadable_columns} == {"a", "i"}

    (_, (z,)), *_ = columns_of_chunks(opened, ["z"])
    assert z.zoned
    assert np.asarray(z.data).astype("M8[us]").tolist() == [
        dt.datetime.fromisoformat("2024-04-30T15:00")
    ]


def test_a_failing_frame_says_nothing_of_a_row(spark_session):
    frame = spark_session.sql("SELECT CAST('MARK' || id AS INT) AS n, id = 1 AS b FROM range(3)")
    for tables in (None, {None: [("n",)]}):
        with refused("the Spark data frame cannot be computed"):
            read(frame, ln.Domain(n=ln.Integers(0, 3)), read_request=ReadRequest(tables=tables))
    assert spark_session.catalog.listTables() == []


@pytest.mark.parametrize("setting", ["escapedStringLiterals", "quotedRegexColumnNames"])
def test_ambiguous_query_texts_are_not_sent(spark_session, spark, setting):
    spark_session.conf.set(f"spark.sql.parser.{setting}", "true")
    try:
        assert _read.open_source(spark).engine is None
    finally:
        spark_session.conf.unset(f"spark.sql.parser.{setting}")
    assert _read.open_source(spark).engine is not None


def test_decimals_of_any_length_are_numbers(postgres):
    nearest = np.array([np.nan if text is None else float(Decimal(text)) for text in COLUMNS["e"]])
    # A number beyond the range of doubles is still a number.
    finite = np.clip(nearest, -sys.float_info.max, sys.float_info.max)
    exact = pa.table({"e": pa.array(finite)})
    bins = ln.Bins(0, 1, 4, null="other", outside="other")
    edges = ln.Edges([-1, 0, 17], closed="right", null="other")
    measure = ln.Measure("e", 1, 20, unit="0.1")
    for kind in (ln.Integers(0, 17, outside="clip"), bins, edges):
        domain = ln.Domain({"e": kind}, measures={"m": measure, "count": ValueCount(measure)})
        tables = {None: [("e",)], "m": [()], "count": [()]}
        assert counts(postgres, domain, tables) == (counts(exact, domain, tables)[0], True)


def test_engine_sums_amounts_up_to_the_largest_bound(postgres):
    domain = ln.Domain({"t": KINDS[8]}, measures={"m": ln.Measure("n", 0, 2**30 - 1)})
    expected, _ = counts(ARROW, domain, {"m": [("t",)]})
    assert counts(postgres, domain, {"m": [("t",)]}) == (expected, True)


def test_rows_that_have_no_sql_are_read(postgres):
    cells = {"0.1": 0, "17": 1, "17.00": 1, "1.50": 2}
    domain = ln.Domain({"e": ln.Categories(["0.1", "17", "1.5"], outside="other")})
    expected = [cells.get(text, 3) for text in COLUMNS["e"] if text is not None and text != "NaN"]
    assert counts(postgres, domain, {None: [("e",)]}) == (
        {(None, ("e",)): np.bincount(expected, minlength=4).tolist()},
        False,
    )


def test_names_of_columns_are_taken_to_the_letter(url, postgres):
    named = table(
        url, "named", {'"order"': "integer", '"Sex"': "text"}, [("1", "'F'"), ("2", "'M'")]
    )
    domain = ln.Domain({"order": ln.Integers(1, 2), "Sex": ln.Categories(["F", "M"])})
    assert counts(named, domain, {None: [("order", "Sex")]}) == (
        {(None, ("order", "Sex")): [1, 0, 0, 1]},
        True,
    )


def test_columns_of_every_type_are_read(url, postgres):
    """Each column has a value and a null."""
    value_of_type = {
        "smallint": "17",
        "integer": "17",
        "bigint": "17",
        "double precision": "0.1",
        "real": "0.1",
        "numeric": "0.1",
        "text": "a",
        "varchar": "a",
        "char(1)": "a",
        "uuid": "11111111-1111-1111-1111-111111111111",
        "boolean": "true",
        "date": "2024-05-01",
        "timestamp": "2024-05-01 13:45:00",
        "timestamptz": "2024-05-01 13:45:00",
    }
    type_of_column = {f"c{place}": type_ for place, type_ in enumerate(value_of_type)}
    values = [literal(value, type_) for type_, value in value_of_type.items()]
    nulls = ["NULL"] * len(value_of_type)
    source = table(url, "types", type_of_column, [values, nulls])
    domain = ln.Domain(
        {
            name: ln.Categories([value_of_type[type_]], null="other", outside="other")
            for name, type_ in type_of_column.items()
        }
    )

    codes = open_content(read(source, domain)).codes
    for name in type_of_column:
        assert sorted(codes[name].tolist()) == [0, 1]


def test_times_are_read_in_utc_and_no_row_fails(url, postgres):
    """The server has another time zone."""
    stamps = [
        "2024-05-01 13:45:00",
        "2024-05-01",
        "infinity",
        "-infinity",
        "294276-12-31",
        "0044-03-15 BC",
        None,
    ]
    times = {"a": "timestamp", "b": "timestamptz", "c": "date"}
    lines = [
        [*(literal(stamp, kind) for kind in times.values()), "'[1]'::json"] for stamp in stamps
    ]
    source = table(url, "times", times | {"j": "json"}, lines)
    days = ln.Categories(["2024-05-01", "2024-05-01 13:45:00"], null="other", outside="other")
    domain = ln.Domain(
        a=days, b=days, c=days, j=ln.Categories(["1"], null="other", outside="other")
    )
    numbers, is_counted_there = counts(source, domain, {None: [(name,) for name in domain.names]})
    assert not is_counted_there
    assert list(numbers.values()) == [[1, 1, 5], [1, 1, 5], [2, 0, 5], [0, 7]]

    months = ln.Dates("2024-01-01", "2024-12-31", "month", zone="UTC", outside="clip")
    numbers, is_counted_there = counts(
        source, ln.Domain(a=months, b=months, c=months), {None: [("a",), ("b",), ("c",)]}
    )
    assert is_counted_there
    # Times before all months count in the first month, not in the last.
    assert list(numbers.values()) == [[2, *[0] * 3, 2, *[0] * 6, 2]] * 3

    hours = ln.Domain(
        b=ln.Dates("2024-01-01", "2024-12-31", "hour_of_day", zone="Asia/Tokyo", outside="drop"),
        j=domain.kind("j"),
    )
    numbers, is_counted_there = counts(source, hours, {None: [("b",)]})
    assert not is_counted_there
    assert [hour for hour, rows in enumerate(numbers[None, ("b",)]) if rows] == [9, 22]


@pytest.fixture(scope="session")
def stranger(url):
    """Yield the URL of a user who may read only one view."""
    fill(
        url,
        [
            "CREATE TABLE forbidden (b boolean)",
            "CREATE VIEW failing AS SELECT 1 / (1 - u) > 0 AS b FROM visits",
        ],
    )
    fill(url, ["CREATE ROLE stranger LOGIN", "GRANT SELECT ON failing TO stranger"])
    return url.replace("tester:", "stranger:")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("nowhere", "the table 'nowhere' of PostgreSQL does not exist, or has no columns."),
        ('public.vis"its', "does not exist, or has no columns."),
        (
            "forbidden",
            (
                "the table 'forbidden' of PostgreSQL cannot be read. The role of env:VISITS_URL "
                "may not"
            ),
        ),
        ("failing", "the table 'failing' of PostgreSQL cannot be read."),
    ],
)
def test_message_of_a_failing_server_is_not_shown(stranger, monkeypatch, table, message):
    monkeypatch.setenv("VISITS_URL", stranger)
    for tables in (None, {None: [("b",)]}):
        with refused(message):
            read(
                ln.DatabaseTable(table, "env:VISITS_URL"),
                ln.Domain(b=["true"]),
                read_request=ReadRequest(tables=tables),
            )


def test_a_server_that_cannot_be_reached(monkeypatch):
    monkeypatch.setenv("VISITS_URL", "postgresql://tester:PASSWORDMARK@/postgres?host=/nowhere")
    with refused(
        "cannot be read. No connection with env:VISITS_URL: the host '/nowhere' of its URL"
    ):
        read(ln.DatabaseTable("visits", "env:VISITS_URL"), ln.Domain(b=["true"]))
    monkeypatch.delenv("VISITS_URL")
    with refused("The environment variable VISITS_URL must hold the URL of the database"):
        read(ln.DatabaseTable("visits", "env:VISITS_URL"), ln.Domain(b=["true"]))


@pytest.fixture(scope="session")
def roles(url):
    """Yield the socket folder of a server with restricted roles."""
    fill(url, ["CREATE ROLE outsider LOGIN", "CREATE ROLE group_only NOLOGIN"])
    fill(url, ["CREATE DATABASE closed"])
    fill(url, ["REVOKE CONNECT ON DATABASE closed FROM PUBLIC"])
    return url.partition("?host=")[2]


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("postgresql://nobody:PASSWORDMARK@/postgres?host={folder}", "the role 'nobody' of its"),
        ("postgresql://group_only:PASSWORDMARK@/postgres?host={folder}", "the role 'group_only'"),
        ("postgresql://tester:PASSWORDMARK@/nothing?host={folder}", "the database 'nothing' of"),
        ("postgresql://outsider:PASSWORDMARK@/closed?host={folder}", "the database 'closed' of"),
        ("postgresql://tester:PASSWORDMARK@/postgres?host={folder}&port=59", "the port '59' of"),
        ("postgresql://tester:PASSWORDMARK@/postgres?host=/nowhere", "the host '/nowhere' of"),
        ("postgresql://tester:PASSWORDMARK@no.invalid/postgres", "the host 'no.invalid' of its"),
        ("postgresql://tester:PASSWORDMARK@127.0.0.1:1/postgres", "the port '1' of its URL"),
        ("postgresql://tester:PASSWORDMARK@127.0.0.1:one/postgres", "the port of its URL"),
        ("postgresql://tester:PASSWORD/MARK@127.0.0.1:1/postgres", "of its URL"),
        ("postgresql://tester:1/PASSWORDMARK@127.0.0.1:1/postgres", "of its URL"),
        ("postgresql://tester:1?PASSWORDMARK@127.0.0.1:1/postgres", "cannot be read"),
        ("postgresql://tester:1#PASSWORDMARK@127.0.0.1:1/postgres", "cannot be read"),
        ("postgresql://tester@/postgres?host={folder}&passwort=PASSWORDMARK", "the query of its"),
        ("mysql://tester:PASSWORDMARK@127.0.0.1/postgres", "its scheme is 'mysql'"),
        ("postgresql+psycopg2://tester:PASSWORDMARK@h/d", "its scheme is 'postgresql+psycopg2'"),
        ("tester:PASSWORDMARK@127.0.0.1/postgres", "its scheme is missing"),
    ],
)
def test_connection_error_names_the_wrong_part(roles, monkeypatch, address, reason):
    monkeypatch.setenv("VISITS_URL", address.replace("{folder}", roles))
    with pytest.raises(InputError) as error:
        ln.check(
            ln.marginals(ln.Domain(b=["true"]), ways=1),
            ln.DatabaseTable("visits", "env:VISITS_URL"),
        )
    assert reason in str(error.value)
    assert [secret for secret in ("PASSWORD", "MARK") if secret in str(error.value)] == []


@pytest.mark.parametrize(
    ("table", "connection", "message"),
    [
        *(
            (
                "visits",
                connection,
                "connection must be 'env:' and the name of an environment variable",
            )
            for connection in ("postgresql://tester:PASSWORDMARK@/postgres", "env:", "env:A B", 5)
        ),
        *(
            (table, "env:VISITS_URL", "table must be a name such as")
            for table in ("", "a.b.c", ".visits", "visits.", 5)
        ),
    ],
)
def test_table_and_connection_variable_are_named(table, connection, message):
    with refused(message):
        ln.DatabaseTable(table, connection)


SPEC = """
[source]
table = "public.visits"
connection = "env:VISITS_URL"
[privacy]
epsilon = "1"
[domain.t]
categories = ["F", "M"]
[[workload]]
marginals = { ways = 1 }
"""


def test_spec_names_table_and_hides_password(postgres, tmp_path, monkeypatch, capfd):
    spec = tmp_path / "visits.toml"
    spec.write_text(SPEC, encoding="utf-8")
    monkeypatch.setattr(
        sys, "argv", ["leastnoise", "release", str(spec), "--out", str(tmp_path / "out")]
    )

    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert (tmp_path / "visits.ledger").exists()
    for file in [spec, *(path for path in tmp_path.rglob("*") if path.is_file())]:
        assert b"PASSWORDMARK" not in file.read_bytes()
    assert "PASSWORDMARK" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "source_lines",
    [
        'table = "visits"',
        'connection = "env:A"',
        'table = "visits"\nconnection = "env:A"\npath = "a.csv"',
    ],
)
def test_a_source_is_files_or_a_table(source_lines, tmp_path):
    spec = SPEC.replace('table = "public.visits"\nconnection = "env:VISITS_URL"', source_lines)
    with pytest.raises(ln.InputError, match=r"\[source\] must have path, or table and connection"):
        parse_spec(spec, tmp_path)


@contextmanager
def inserted_row(url):
    """Insert a row that no other row equals, and delete it at the end."""
    fill(url, ["INSERT INTO visits (t, b) VALUES ('F', true)"])
    try:
        yield
    finally:
        is_inserted = (
            "u IS NULL AND n IS NULL AND x IS NULL AND w IS NULL AND t = 'F' AND b AND e IS NULL"
        )
        fill(url, [f"DELETE FROM visits WHERE {is_inserted}"])


def test_all_queries_see_one_snapshot(url, postgres):
    domain = ln.Domain(
        {"t": ln.Categories(["F", "M"], null="other", outside="other"), "b": KINDS[4]}
    )
    tables = {None: [("t",), ("b",), ("t", "b")]}
    expected, _ = counts(postgres, domain, tables)
    opened = _postgres.open_postgres(postgres)
    request = CountRequest(
        rules={name: domain.rule(name) for name in domain.names},
        sums={},
        tables=tables,
        unit_column=None,
        max_rows=1,
    )
    with opened.engine.session(opened.description) as run:
        run("SELECT count(*) FROM visits").read_all()

        @contextmanager
        def same_session(_description):
            yield run

        # There is one query for each set of attributes, and the new row comes before them.
        engine = replace(opened.engine, session=same_session, most_sets=1)
        with inserted_row(url):
            numbers, _ = engine.counts(request, bytes)

    assert numbers[None, ("t", "b")].tolist() == expected[None, ("t", "b")]


def test_session_of_reading_cannot_write(postgres):
    opened = _postgres.open_postgres(postgres)
    with (
        pytest.raises(ln.InputError, match="cannot be read"),
        opened.engine.session(opened.description) as run,
    ):
        run("CREATE TABLE written AS SELECT 1")


def test_totals_of_units_match_read_rows(engine):
    """Include doubles beyond all bounds, nulls, infinities and hidden cells, under each limit."""
    totals = {
        "in all": UnitTotal("x", -5, 9, "0.5"),
        "by b": UnitTotal("x", -5, 9, by=["b"]),
        "by b x n": UnitTotal("n", 2, 30, by=["n", "b"]),
    }
    kinds = {
        "n": ln.Coded(4, outside="other"),
        "b": ln.Categories(["true", "false"]).with_hidden(True),
    }
    domain = ln.Domain(kinds, measures={**totals, "units": UnitCount(["b"])})
    tables = {"in all": [()], "by b": [("b",)], "by b x n": [("n", "b")], "units": [("b",)]}
    for unit in ("u", "w"):
        bounds = {"unit_column": unit, "max_rows": ROWS}
        totals_of_rows, _ = counts(ARROW, domain, tables, **bounds)
        totals_of_engine, is_counted_there = counts(engine, domain, tables, **bounds)
        assert is_counted_there
        assert totals_of_rows == totals_of_engine
        assert totals_of_engine["by b", ("b",)] == totals_by_b(unit)
    bound = ln.PerCellBound(1, "b")
    for source in (ARROW, engine):
        numbers, _ = counts(source, domain, tables, unit_column="u", max_rows=1, max_per_cell=bound)
        sum_of_sizes = np.abs(numbers["by b x n", ("n", "b")]).sum()
        assert 2 <= sum_of_sizes <= 30 * len({*COLUMNS["u"]})


@pytest.mark.parametrize("bound", [None, ln.PerCellBound(1, "b")])
def test_every_window_groups_by_unit_first(postgres, bound):
    """A server then sorts all rows once; a sort for each measure took most of the time."""
    opened = _postgres.open_postgres(postgres)
    totals = {"by b x n": UnitTotal("n", 2, 30, by=["n", "b"]), "units": UnitCount(["b"])}
    domain = ln.Domain(
        {"n": ln.Coded(4, outside="other"), "b": ln.Categories(["true", "false"])}, measures=totals
    )
    request = CountRequest(
        rules={name: domain.rule(name) for name in domain.names},
        sums={name: domain.measure(name) for name in totals},
        tables={"by b x n": [("n", "b")], "units": [("b",)]},
        unit_column="u",
        max_rows=2,
        max_per_cell=bound,
        usage=True,
    )
    queries = []

    @contextmanager
    def noted_session(description):
        with opened.engine.session(description) as run:

            def note_and_run(query):
                queries.append(query)
                return run(query)

            yield note_and_run

    replace(opened.engine, session=noted_session).counts(request, bytes)
    windows = [window for query in queries for window in query.find_all(exp.Window)]
    assert len(windows) > 10
    for window in windows:
        assert window.args["partition_by"][0].name == "u0"


def totals_by_b(unit):
    """Return the units' clipped totals of x by b, with the hidden cell last.

    A value beyond 2^30 - 1 counts as 2^30 - 1.
    """
    most = 2**30 - 1
    total_of = {}
    for key, n, b, x in zip(*(COLUMNS[name] for name in (unit, "n", "b", "x")), strict=True):
        if key in (None, "") or None in (n, x) or not math.isfinite(x):
            continue
        amount = round(min(max(x, -most), most))
        total_of[key, b] = total_of.get((key, b), 0) + amount
    clipped = {key: min(max(total, -5), 9) for key, total in total_of.items()}
    return [
        sum(total for (_, b), total in clipped.items() if b is flag) for flag in (True, False, None)
    ]


def test_amounts_kept_and_clipped_match_read_rows(engine):
    """If all cells count, no choice is random; a limit of one cell cuts within its bounds."""
    total = UnitTotal("x", -5, 9, by=["b"])
    domain = ln.Domain(n=ln.Coded(4, outside="other"), b=[True, False], measures={"paid": total})
    request = ReadRequest(tables={"paid": [("b",)]}, usage=True)

    def amounts(source, most):
        table = read(source, domain, read_request=request, unit_column="u", max_rows=most)
        numbers = open_content(table.usage, Counted).tables
        return [int(numbers[f"{outcome} of paid", ()][0]) for outcome in ("kept", "cut")]

    kept, cut = amounts(engine, ROWS)
    assert [kept, cut] == amounts(ARROW, ROWS)
    assert 0 < cut <= 27 * 2 * len({*COLUMNS["u"]})

    kept_of_one_cell, cut_of_one_cell = amounts(engine, 1)
    assert kept_of_one_cell < kept
    assert 0 < cut_of_one_cell <= 27 * len({*COLUMNS["u"]})
