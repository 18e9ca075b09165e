"""Refusals take one sentence and exit code 2, before anything is spent or written."""

import pytest

from cli.conftest import SPEC, edit, files
from leastnoise._session import Ledger
from leastnoise._trusted.accounting import Privacy, PureDP

SUMS = 'clip = [0, 9007199254740991]\n[[workload]]\nqueries = {}\nsum = "pay"'
# Each case has the fault, the replaced part of the spec, its replacement, and words of the message.
SPECS = [
    (
        "epsilon is zero",
        'epsilon = "1"',
        "epsilon = 0",
        ["epsilon must be a number above 0; got 0"],
    ),
    (
        "delta alone",
        'epsilon = "1"',
        'delta = "1e-9"',
        ["[privacy] must have epsilon", "got delta"],
    ),
    (
        "epsilon and rho",
        'epsilon = "1"',
        'epsilon = "1"\nrho = 1',
        ["[privacy] must have epsilon", "got epsilon, rho"],
    ),
    ("no budget", 'epsilon = "1"', "", ["[privacy] must have epsilon", "got none of them"]),
    (
        "other neighbours",
        'epsilon = "1"',
        'epsilon = "1"\nneighbours = "swap"',
        ["neighbours must be one of", "got 'swap'"],
    ),
    (
        "a unit of a word",
        'epsilon = "1"',
        'epsilon = "1"\nunit = "person"',
        ["[privacy] unit must be 'row' or a table", "got 'person'"],
    ),
    (
        "a unit without max_rows",
        'epsilon = "1"',
        'epsilon = "1"\nunit = { column = "id" }',
        ["unit must have column and max_rows"],
    ),
    (
        "max_rows is 0",
        'epsilon = "1"',
        'epsilon = "1"\nunit = { column = "id", max_rows = 0 }',
        ["max_rows must be", "at least 1; got 0"],
    ),
    (
        "an unknown part",
        "[privacy]",
        "[pirvacy]",
        ["has no key 'pirvacy'", "Did you mean 'privacy'?"],
    ),
    (
        "an unknown key",
        'epsilon = "1"',
        'epsilom = "1"',
        ["[privacy] has no key 'epsilom'", "Did you mean 'epsilon'?"],
    ),
    (
        "an unknown kind",
        "integers = [17, 90]",
        "integer = [17, 90]",
        ["[domain.age] has no key 'integer'", "Did you mean 'integers'?"],
    ),
    (
        "two kinds",
        "integers = [17, 90]",
        "integers = [17, 90]\nsize = 3",
        ["[domain.age] must have exactly one", "'integers' and 'size'"],
    ),
    (
        "bounds in the wrong order",
        "[17, 90]",
        "[90, 17]",
        ["[domain.age]", "low must be below high; got low 90 and high 17"],
    ),
    (
        "integers of another type",
        "[17, 90]",
        "17",
        ["[domain.age]", "integers must be a list of two numbers", "got 17"],
    ),
    (
        "an attribute twice",
        "[domain.age]",
        "[domain.sex]",
        ["is not valid TOML", "twice", "line 8"],
    ),
    (
        "an unknown attribute",
        'of = ["sex", "age"]',
        'of = ["sex", "aeg"]',
        ["[[workload]] number 1", "got 'aeg'", "age"],
    ),
    (
        "an unknown attribute of a query",
        "{ income =",
        "{ incom =",
        ["[[workload]] number 2", "got 'incom'", "income"],
    ),
    (
        "an unknown query set",
        '"prefix"',
        '"prefixes"',
        ["[[workload]] number 2", "got 'prefixes'", "prefix"],
    ),
    ("a query set of the wrong type", '"prefix"', "3", ["[[workload]] number 2", "got 3"]),
    (
        "an unknown measure",
        "weight = 2.0",
        'sum = "wage"',
        ["sum must be a measure of the domain (pay)", "got 'wage'"],
    ),
    (
        "a clip bound beyond exact sums",
        "clip = [0, 1000]",
        SUMS,
        [
            "[measures.pay]: high must be between -1073741823 and 1073741823 units of 1",
            "larger unit, such as 10000000.",
        ],
    ),
    (
        "an unknown strategy",
        'strategy = "marginals"',
        'strategy = "best"',
        ["strategy must be one of 'auto', ", "got 'best'"],
    ),
    (
        "a strategy misspelt",
        'strategy = "marginals"',
        'strategy = "marginal"',
        ["got 'marginal'", "Did you mean 'marginals'?"],
    ),
    (
        "an objective misspelt",
        "[plan]",
        '[plan]\nobjective = "wurst"',
        ["got 'wurst'", "Did you mean 'worst'?"],
    ),
    (
        "level is 1",
        "[privacy]",
        "[output]\nlevel = 1\n[privacy]",
        ["level must be a number above 0 and below 1", "got 1"],
    ),
    (
        "an unknown format",
        "[privacy]",
        '[output]\nformats = ["pdf"]\n[privacy]',
        ["formats must be", "got ['pdf']"],
    ),
    ("not TOML", "[privacy]", "[privacy", ["is not valid TOML", "line 3"]),
    (
        "a blank",
        'epsilon = "1"',
        'epsilon = "FILL IN"',
        ["still has 1 place to fill in: privacy.epsilon"],
    ),
    ("no workload", "[[workload]]", "[[ledger]]", ["must have a part [workload]", "docs/spec.md"]),
    (
        "an entry of nothing",
        "marginals = {",
        "# marginals = {",
        ["[[workload]] number 1 must have exactly one of", "got none of them"],
    ),
]


def untouched(folder):
    """Whether the directory is as the fixture made it, with nothing spent."""
    return (
        set(files(folder)) <= {"people.csv", "people.toml", "people.ledger", "home"}
        and Ledger.open(folder / "people.ledger").entries() == ()
    )


@pytest.fixture
def ledger(folder):
    return Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(1)))


@pytest.mark.parametrize(
    ("old", "new", "parts"), [row[1:] for row in SPECS], ids=[row[0] for row in SPECS]
)
def test_bad_spec_is_refused_by_every_command(folder, ledger, run, old, new, parts):
    edit(folder, *[(old, new)] * SPEC.count(old))
    for arguments in (["plan"], ["compare", "--json"], ["release", "--out", "out"]):
        # `compare` tries all strategies, whichever the spec names.
        if not parts[0].startswith("strategy") or arguments[0] != "compare":
            run.is_refused(parts, *arguments, "people.toml")
    assert untouched(folder)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["must have a part [privacy]", "it has nothing"]),
        ("workload = []", ["must have a part [privacy]"]),
        (
            'workload = []\n[privacy]\nepsilon = 1\n[domain.sex]\ncategories = ["F"]',
            ["The workload is empty", "marginals = { ways = 1 }"],
        ),
        (
            'workload = "all"\n[privacy]\nepsilon = 1\n[domain.sex]\ncategories = ["F"]',
            ["The workload is empty"],
        ),
        (
            "privacy = 1\nworkload = []\n[domain.sex]\nsize = 2",
            ["[privacy] must be a table", "got 1"],
        ),
        (
            "domain = 1\nworkload = []\n[privacy]\nepsilon = 1",
            ["[domain] must be a table", "got 1"],
        ),
        (
            "[domain]\n[privacy]\nepsilon = 1\n[[workload]]\nmarginals = { ways = 0 }",
            ["at least one attribute"],
        ),
    ],
    ids=[
        "nothing",
        "a workload alone",
        "an empty list",
        "a word",
        "privacy is a number",
        "domain is a number",
        "no attributes",
    ],
)
def test_spec_that_lacks_something_is_refused(folder, ledger, run, text, parts):
    (folder / "people.toml").write_text(text, encoding="utf-8")
    run.is_refused(parts, "plan", "people.toml")
    run.is_refused(parts, "release", "people.toml", "--out", "out")
    assert untouched(folder)


def test_plan_refuses_domain_too_large_for_strategy(folder, ledger, run):
    text = (
        '[source]\npath = "people.csv"\n[privacy]\nepsilon = 1\n[[workload]]\n'
        'marginals = { ways = %d }\n[plan]\nstrategy = "%s"\n'
    )
    text += "".join(
        f'[domain.a{number}]\nsize = 1000\ncomplete = true\ncolumn = "age"\n' for number in range(4)
    )
    (folder / "people.toml").write_text(text % (1, "identity"))
    run.is_refused(f"{1000**4}", "plan", "people.toml")
    (folder / "people.toml").write_text(text % (4, "auto"))
    run.is_refused(
        ["No strategy can be used", "identity", f"{1000**4}", "workload:"], "plan", "people.toml"
    )
    run.is_refused("No strategy can be used", "release", "people.toml", "--out", "out")
    assert untouched(folder)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["plan"], ["missing argument", "--help"]),
        (["plan", "nowhere.toml"], ["There is no spec file at nowhere.toml", "leastnoise init"]),
        (["plan", "."], ["cannot be read", "text file"]),
        (["plan", "people.csv"], ["is not valid TOML"]),
        (["plan", "people.toml", "--jsno"], ["--jsno", "--json"]),
        (["pan", "people.toml"], ["no such command", "'pan'"]),
        (["release", "people.toml"], ["missing option", "--out"]),
        (
            ["release", "people.toml", "--out", "out", "--seed", "x"],
            ["--seed", "'x' is not a valid integer"],
        ),
        (
            ["release", "people.toml", "--out", "out", "--seed", "-1"],
            ["--seed", "-1 is not in the range x>=0"],
        ),
        (["release", "people.toml", "--out", "out", "--source", "nowhere.csv"], ["nowhere.csv"]),
        (["release", "people.toml", "--out", "out", "--source", "people.toml"], ["people.toml"]),
        (["release", "people.toml", "--out", "out", "--ledger", "people.csv"], ["is not a ledger"]),
        (
            ["ledger", "show", "nowhere.ledger"],
            ["There is no ledger at nowhere.ledger", "leastnoise ledger set"],
        ),
        (["ledger", "show", "people.csv"], ["is not a ledger"]),
        (["ledger", "set", "new.ledger"], ["A budget must be --epsilon", "got none of them"]),
        (
            ["ledger", "set", "new.ledger", "--epsilon", "1", "--rho", "1"],
            ["got --epsilon and --rho"],
        ),
        (["ledger", "set", "new.ledger", "--delta", "1e-9"], ["got --delta"]),
        (
            ["ledger", "set", "new.ledger", "--epsilon", "0"],
            ["epsilon must be a number above 0; got '0'"],
        ),
        (
            ["ledger", "set", "new.ledger", "--epsilon", "1", "--delta", "1"],
            ["delta must be a number above 0 and below 1"],
        ),
        (
            ["ledger", "set", "new.ledger", "--epsilon", "1", "--unit-column", ""],
            ["unit_column must be the name of a column"],
        ),
        (
            ["ledger", "set", "new.ledger", "--epsilon", "1", "--neighbours", "both"],
            ["--neighbours", "'both'", "'replace'"],
        ),
        (
            ["ledger", "set", "people.ledger", "--epsilon", "1"],
            ["exists already", "never replaced", "`leastnoise ledger change`"],
        ),
        (
            ["ledger", "set", "no/folder/new.ledger", "--epsilon", "1"],
            ["cannot be made", "Choose a folder that exists"],
        ),
        (["init", "nowhere.csv"], ["nowhere.csv"]),
        (["init", "people.csv"], ["people.toml exists already and is not overwritten"]),
        (
            ["init", "people.csv", "--out", "no/folder/new.toml"],
            ["cannot be written", "Choose a folder that exists"],
        ),
        (["demo", "--out", "."], ["exists already and is not overwritten"]),
        (["demo", "--out", "people.csv/demo"], ["cannot be made"]),
    ],
    ids=lambda value: (
        " ".join(value)
        if isinstance(value, list) and value and value[0].islower() and " " not in value[0]
        else ""
    ),
)
def test_bad_arguments_are_refused(folder, ledger, run, arguments, parts):
    run.is_refused(parts, *arguments)
    assert untouched(folder)


def test_no_source_is_refused(folder, ledger, run):
    edit(folder, ('[source]\npath = "people.csv"', ""))
    run.succeeds("plan", "people.toml")
    run.is_refused(
        ["A release must have data", "--source"], "release", "people.toml", "--out", "out"
    )
    assert untouched(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASTNOISE_CACHE", "plans"),
        ("LEASTNOISE_CACHE_DIR", "plans"),
        ("LEASTNOISE_CHARTS", "never"),
        ("LEASTNOISE_DEBUG", "2"),
        ("LEASTNOISE_PROGRESS", "never"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "release"])
def test_wrong_environment_is_refused_by_commands(folder, run, monkeypatch, command, name, value):
    files_before = files(folder)
    monkeypatch.setenv(name, value)
    result = run(command, "people.toml", *(["--out", "out"] if command == "release" else []))
    assert result.code == 2
    assert result.err.startswith(f"leastnoise: {name} must be ")
    assert files(folder) == files_before
