"""Tables of database servers: drafts, schema checks and a release by commands."""

import pytest

import leastnoise as ln
from cli.conftest import assert_contains, edit
from trusted.reading.postgres import fill, server

COLUMNS = "person_id integer NOT NULL, sex text, age integer, bought date, amount numeric(10, 2)"


@pytest.fixture(scope="module")
def url():
    """Yield the address of a server with a table of 300 visits."""
    with server() as address:
        fill(address, [f"CREATE TABLE visits ({COLUMNS})"])
        rows = ", ".join(f"({i}, '{'FM'[i % 2]}', {20 + i % 50}, NULL, 1.5)" for i in range(300))
        fill(address, [f"INSERT INTO visits VALUES {rows}"])
        fill(address, ["CREATE ROLE guest LOGIN"])
        yield address


@pytest.fixture
def shop(url, folder, monkeypatch):
    """Put the address of the server into the variable SHOP."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("SHOP", url)
    return url


def test_init_drafts_from_a_table_of_a_server(shop, folder, run):
    shown = run.succeeds("init", shop, "--table", "public.visits")
    draft = (folder / "visits.toml").read_text(encoding="utf-8")
    parts = (
        'table = "public.visits"\nconnection = "env:DATABASE_URL"\n',
        'column = "person_id"',
        "[domain.sex]",
        "[domain.bought]",
    )
    assert_contains(draft, *parts)
    assert "Set the environment variable DATABASE_URL to that URL." in shown.out
    assert "PASSWORDMARK" not in draft + shown.out + shown.err


def test_init_drafts_from_a_named_connection(shop, folder, run):
    shown = run.succeeds("init", "--table", "visits", "--connection", "env:SHOP", "--out", "a.toml")
    assert 'connection = "env:SHOP"' in (folder / "a.toml").read_text(encoding="utf-8")
    assert "Set the environment variable" not in shown.out


def test_init_of_a_database_refuses_wrong_arguments(shop, run):
    run.is_refused("must name the table", "init", shop)
    run.is_refused("--table names a table of a database", "init", "--table", "visits")
    run.is_refused("cannot be combined with a table", "init", "people.csv", "--table", "visits")
    run.is_refused(
        "--delimiter, --encoding and --header",
        "init",
        shop,
        "--table",
        "visits",
        "--delimiter",
        ";",
    )
    run.is_refused("its scheme is 'mysql'", "init", "mysql://u@h/d", "--table", "visits")
    run.is_refused("does not exist", "init", shop, "--table", "nothing")
    wrong_url = shop.replace("/postgres?", "/nothing?")
    message = run.is_refused(
        "the database 'nothing' of its URL", "init", wrong_url, "--table", "visits"
    )
    assert "PASSWORDMARK" not in message.err


def test_schema_check_reads_no_row_of_a_server(shop, folder, run):
    guest = shop.replace("tester:", "guest:")  # who may select nothing
    edit(folder, ('path = "people.csv"', 'table = "visits"\nconnection = "env:SHOP"'))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP", guest)
        shown = run("check", "people.toml", "--schema")
    assert shown.code == 2
    assert "has no column 'income'" in shown.err
    assert_contains(shown.out, "attribute sex", "attribute income", "missing", "fits")
    assert "PRIVATE" not in shown.out
    edit(folder, ("[domain.income]", '[domain.income]\ncolumn = "amount"'))
    edit(folder, ('column = "income"', 'column = "amount"'))
    output = run.succeeds("check", "people.toml", "--schema")
    assert "Every column that the spec needs is in the source" in output.out


def test_schema_check_lists_every_column_that_does_not_fit(folder, run):
    edit(folder, ("[domain.age]", '[domain.age]\ncolumn = "years"'))
    edit(folder, ("[domain.sex]", '[domain.sex]\ncolumn = "gender"'))
    shown = run("check", "people.toml", "--schema")
    assert shown.code == 2
    assert_contains(shown.err, "no column 'years'", "no column 'gender'")
    checks = ln.read_spec("people.toml").check_schema()
    assert {check.column: bool(check.fault) for check in checks} == {
        "gender": True,
        "years": True,
        "income": False,
    }
    run.is_refused("--schema reads no row", "check", "people.toml", "--schema", "--values")


TYPES = {
    "mood": ["'sad'", "'glad'", "'glad'"],
    "positive": ["1", "2", "2"],
    "code": ["'a'", "'b'", "'b'"],
    "name": ["'a'", "'b'", "'b'"],
    '"char"': ["'a'", "'b'", "'b'"],
    "char(4)": ["'a'", "'b'", "'b'"],
    "uuid": [f"'{digit * 8}-0000-0000-0000-000000000000'" for digit in "122"],
    "numeric(8, 3)": ["1.50", "2.50", "2.5"],
    "real": ["0.1", "0.2", "0.2"],
    "date": ["'2024-01-05'", "'2024-01-06'", "'2024-01-06'"],
    "integer[]": [],
    "citext": [],
    "money": [],
    "jsonb": [],
    "interval": [],
    "time": [],
    "bytea": [],
    "inet": [],
}


@pytest.fixture(scope="module")
def typed(url):
    """Create a table with a column of each type."""
    fill(
        url,
        [
            "CREATE TYPE mood AS ENUM ('sad', 'glad')",
            "CREATE DOMAIN positive AS integer CHECK (value > 0)",
            "CREATE DOMAIN code AS varchar(3)",
            "CREATE EXTENSION IF NOT EXISTS citext",
        ],
    )
    return url


@pytest.mark.parametrize("kind", TYPES)
def test_every_command_reads_the_same_types(typed, folder, run, monkeypatch, kind):
    monkeypatch.setenv("SHOP", typed)
    values = TYPES[kind]
    rows = ", ".join(f"({value})" for value in values or ["NULL"])
    fill(typed, ["DROP TABLE IF EXISTS kinds", f"CREATE TABLE kinds (x {kind})"])
    fill(typed, [f"INSERT INTO kinds VALUES {rows}"])
    run("init", "--table", "kinds", "--connection", "env:SHOP", "--out", "draft.toml")
    draft = (folder / "draft.toml").read_text(encoding="utf-8")
    labels = [
        value.strip("'").rstrip("0") if "." in value else value.strip("'") for value in values
    ]
    spec = f"""
        [source]
        table = "kinds"
        connection = "env:SHOP"
        [privacy]
        epsilon = "20"
        [domain.x]
        categories = {list(dict.fromkeys(labels)) or ["a"]}
        [[workload]]
        queries = {{ x = "identity" }}
        [output]
        formats = ["csv"]
    """
    (folder / "kinds.toml").write_text(spec, encoding="utf-8")
    commands = (("check", "--schema"), ("check",), ("release", "--out", "out"))
    runs = [run(command, "kinds.toml", *options) for command, *options in commands]
    if values:
        assert [result.code for result in runs] == [0, 0, 0]
        assert "[domain.x]" in draft
        (table,) = ln.read_release("out").tables
        assert table.answer.round().tolist() == [1, 2]
    else:
        assert [result.code for result in runs] == [2, 2, 2]
        assert "[domain.x]" not in draft
        refused = [result.err.partition("leastnoise: ")[2].splitlines()[0] for result in runs]
        assert "must hold numbers, text or dates; its type is" in refused[0]
        assert len(set(refused)) == 1
