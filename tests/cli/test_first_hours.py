"""Common problems of new users: each is reported once, before planning, in a sentence."""

import json
import sys
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

import leastnoise as ln
from cli.conftest import SPEC, assert_contains, files
from leastnoise._spec import parse_spec

HEAD = """
[privacy]
epsilon = "1"
[domain.sex]
categories = ["F", "M"]
[domain.age]
integers = [0, 9]
"""
ONE_WAY = "[[workload]]\nmarginals = { ways = 1 }\n"


@pytest.fixture
def _unplanned(monkeypatch):
    """Fail if a plan is made."""

    def fail(*_, **__):
        raise AssertionError("a plan was made")

    monkeypatch.setattr("leastnoise._spec._spec.plan_workload", fail)


def write(folder, text):
    (folder / "s.toml").write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("_unplanned")
def test_plan_is_not_made_for_an_unwritable_path(folder, run):
    (folder / "plan.json").write_text("{}")
    run.is_refused(
        "plan.json exists already and is not overwritten",
        "plan",
        "people.toml",
        "--out",
        "plan.json",
    )
    assert (folder / "plan.json").read_text() == "{}"


@pytest.mark.usefixtures("_unplanned")
@pytest.mark.parametrize("arguments", [(), ("--seed", "1")], ids=["paid", "seeded"])
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("people.csv", "poeple.csv", "there is no file 'poeple.csv'. Did you mean 'people.csv'?"),
        (
            "[domain.age]",
            "[domain.aeg]\n",
            "has no column 'aeg'; it has 'sex', 'age', 'income'. Did you mean 'age'?",
        ),
        ('column = "income"', 'column = "incom"', "has no column 'incom'"),
        (
            'epsilon = "1"',
            'epsilon = "1"\nunit = { column = "id", max_rows = 2 }',
            "has no column 'id'",
        ),
        ("[plan]", '[output]\nformats = ["xlsx"]\n[plan]', "pip install 'leastnoise[excel]'"),
    ],
    ids=["file", "attribute", "measure", "unit", "extra"],
)
def test_unreadable_data_and_missing_extras_fail_before_planning(
    folder, run, monkeypatch, old, new, message, arguments
):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    (folder / "people.csv").write_text("sex,age,income\nF,secret-value,1\n")
    text = SPEC.replace('"age"', '"aeg"') if "aeg" in new else SPEC
    (folder / "people.toml").write_text(
        text.replace(old, new) + '\n[[workload]]\nqueries = {}\nsum = "pay"\n'
    )
    assert (
        "secret-value"
        not in run.is_refused(message, "release", "people.toml", "--out", "out", *arguments).err
    )
    assert not list(folder.glob("*.ledger"))
    if "excel" in message:
        run.is_refused(message, "plan", "people.toml")


def test_ambiguous_table_name_is_refused_with_ids(folder, run):
    two_ranges = "".join(
        f"[[workload]]\nqueries = {{ age = {{ ranges = [[0, {high}]] }} }}\n" for high in (3, 5)
    )
    write(folder, HEAD + two_ranges + '[output]\ncovariances = ["age:ranges"]\n')
    run.is_refused(
        "Several tables are named 'age:ranges'; take one by its id: q1, q2.", "plan", "s.toml"
    )


def test_repeated_table_sums_its_weights():
    spec = parse_spec(
        HEAD + ONE_WAY + '[[workload]]\nqueries = { age = "identity" }\nweight = "1/2"\n', Path()
    )
    assert [(product.name, str(product.weight)) for product in spec.workload] == [
        ("sex", "1"),
        ("age", "3/2"),
    ]


@pytest.mark.parametrize("name", ["weight", "sum", "domain", "self", "asked"])
def test_attribute_of_any_name_can_be_queried(name):
    spec_text = (
        f"[domain.{name}]\nsize = 3\n[[workload]]\n"
        f"queries = {{ {name} = 'prefix', age = 'total' }}\nweight = 2\n"
    )
    spec = parse_spec(HEAD + spec_text, Path())
    assert [product.name for product in spec.workload] == [f"{name}:prefix"]
    assert ln.queries(spec.domain, {name: "prefix"}, weight=2) == spec.workload
    with pytest.raises(ln.InputError, match="given once"):
        ln.queries(spec.domain, {"age": "prefix"}, age="identity")


def test_weak_budgets_are_warned_about_once(folder, run):
    write(
        folder,
        HEAD.replace('epsilon = "1"', 'epsilon = "50"\ndelta = "0.5"\nrows = 1000') + ONE_WAY,
    )
    result = run.succeeds("plan", "s.toml", "--json")
    first_warning, second_warning = json.loads(result.out)["warnings"]
    assert "epsilon = 50" in first_warning
    assert "delta = 0.5 is above 1 / 1000" in second_warning
    for warning in (first_warning, second_warning):
        assert result.err.count(f"Warning: {warning}") == 1


@pytest.mark.parametrize(
    ("epsilon", "workload", "warnings"),
    [
        (
            '"1/1000"\nrows = 100',
            "marginals = { ways = 1 }",
            ["sex (± 8", "around 50)", "age (± 3", "around 10)"],
        ),
        (
            '"1/10"\nrows = 500',
            'queries = { sex = "identity", age = "identity" }',
            ["sex x age (± 30", "around 25)"],
        ),
        (
            '"1/10"\nrows = 1000',
            'queries = { sex = "identity", age = "identity" }\nsize = 20',
            ["sex x age (± 30", "around 20)"],
        ),
        ('"1/10"\nrows = 1000', 'queries = { sex = "identity", age = "identity" }\nsize = 40', []),
        ('"1/10"\nrows = 1000', 'queries = { sex = "identity", age = "prefix" }', []),
        (
            '"1/10"\nrows = 1000',
            'queries = { sex = "identity", age = "identity" }\nsum = "pay"',
            [],
        ),
        (
            '"1"\nrows = 20',
            'means = { of = "pay", by = ["sex", "age"] }',
            ["sex x age (± 3", "around 1)", "sum of pay by sex x age (± 3"],
        ),
        ('"1"\nrows = 20', 'means = { of = "pay", by = ["sex", "age"] }\nsize = 9', ["sum of pay"]),
    ],
)
def test_answers_smaller_than_margins_are_warned_about(folder, run, epsilon, workload, warnings):
    write(
        folder,
        HEAD.replace('"1"', epsilon)
        + f"[measures.pay]\ncolumn = 'age'\nclip = [0, 10]\n[[workload]]\n{workload}\n",
    )
    warned = run.json("plan", "s.toml")["warnings"]
    assert len(warned) == bool(warnings)
    assert all("these margins are larger than their answers" in warning for warning in warned)
    assert_contains("".join(warned), *warnings)


def test_large_least_budgets_are_warned_about(folder, run):
    for budget, margin, count in (
        ('epsilon = "least"', 2, 1),
        ('epsilon = "least"', 6, 0),
        ('rho = "least"', 1, 1),
        ('epsilon = "3"', 2, 0),
    ):
        write(folder, HEAD.replace('epsilon = "1"', budget) + f"{ONE_WAY}margin = {margin}\n")
        shown = run("plan", "s.toml", "--json")
        assert shown.code == (5 if "3" in budget else 0)  # whose target is missed
        warnings = json.loads(shown.out)["warnings"]
        assert ["widen their margins" in warning for warning in warnings] == [True] * count, budget


def test_case_insensitive_search_reports_lower_case(folder, run):
    for setting, is_reported in (("ignore_case = true\n", True), ("", False)):
        budget = HEAD.replace('epsilon = "1"', 'epsilon = "1"\ndelta = "1e-6"')
        write(folder, f"{budget}[domain.city]\nunknown = {{ most = 9 }}\n{setting}{ONE_WAY}")
        assert ("published in lower case" in run("plan", "s.toml").err) == is_reported


@pytest.mark.parametrize(
    ("header", "unit", "left_out"),
    [
        ("Kundennummer;Ort", "Kundennummer", ["Kundennummer"]),
        ("store_id,person_id,Kundengruppe", "person_id", ["person_id"]),
        ("store_id,person_id,Patienten-Nr.", "FILL IN", ["person_id", "Patienten-Nr."]),
        *((f"{name},age", "FILL IN", [name]) for name in ("order_id", " id ")),
        ("customer_id,Mitarbeiter-Nr", "customer_id", ["customer_id", "Mitarbeiter-Nr"]),
        *(
            (f"{name},age", name, [name])
            for name in ("customerNo", "Patient ID", "PATIENT_ID", "Kunden-Id", "Kunde")
        ),
        ("customer_paid,Kundengruppe,users,Hausnummer,account,paid", None, []),
    ],
)
def test_person_columns_of_any_spelling_become_the_unit(folder, run, header, unit, left_out):
    draft = drafted(folder, run, header)
    assert (f'unit = {{ column = "{unit}", max_rows = "FILL IN" }}' in draft) == (unit is not None)
    assert [
        name
        for name in header.replace(";", ",").split(",")
        if f'The column "{name}" was left out' in draft
    ] == left_out


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ('"1e9"', "epsilon must be at most 1048576; got"),
        (
            f'"1"\nunit = {{ column = "id", max_rows = {10**30} }}',
            "max_rows must be at most 4294967296; got",
        ),
    ],
    ids=["epsilon", "max_rows"],
)
def test_unusable_number_is_refused_once(folder, run, new, message):
    write(folder, HEAD.replace('"1"', new) + ONE_WAY)
    refused = run.is_refused(message, "plan", "s.toml")
    assert refused.err.count(message) == 1
    assert "strategy" not in refused.err


FIELDS = [
    ("details", 2),
    ("details", "age"),
    ("strategy", 7),
    ("promise.lower_bound", "age"),
    ("promise.lower_bound", 1e99),
]
FIELDS += [
    ("promise.total_squared_error", True),
    ("promise.tables.0.0", 7),
    ("promise.tables.0.3", "age"),
    ("promise.tables.0.4", None),
]
FIELDS += [
    ("promise.tables.0.4", 0.0),
    ("promise.tables.0", []),
    ("promise.tables", []),
    ("questions.0", 7),
]
FIELDS += [
    ("questions", [{}]),
    ("promise.total_squared_error", 1e-9),
    ("blocks.0.factors", []),
    ("blocks", []),
]


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_plan_with_wrong_field_type_is_refused_unpaid(tmp_path, field, value):
    plan_json = json.loads(
        ln.plan(
            ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1), strategy="identity"
        ).to_json()
    )
    *steps, last = [int(step) if step.isdecimal() else step for step in field.split(".")]
    reduce(getitem, steps, plan_json)[last] = value
    (tmp_path / "people.csv").write_text("sex\nF\nM\n")
    with pytest.raises(ln.InputError):
        ln.release(
            ln.Plan.from_json(json.dumps(plan_json)),
            tmp_path / "people.csv",
            ledger=tmp_path / "people.ledger",
            out=tmp_path / "out",
        )
    assert files(tmp_path) == ["people.csv"]


def drafted(folder, run, header):
    """Return the draft for a file with these columns."""
    (folder / "odd.csv").write_text(f"{header}\n", encoding="utf-8")
    run.succeeds("init", "odd.csv", "--out", "s.toml")
    return (folder / "s.toml").read_text(encoding="utf-8")


def test_draft_comments_tables_without_missing_cells(folder, run):
    text = drafted(folder, run, "Sex ,Visit date , b,b")
    assert_contains(
        text, '[domain.Sex]\ncolumn = "Sex "', '[domain."Visit date"]\ncolumn = "Visit date "'
    )
    assert_contains(text, '[domain." b"]\ncategories', "[domain.b]\ncat")
    Path("s.toml").unlink()
    write(
        folder,
        drafted(folder, run, "Sex \nF\nM").replace(
            '\ncategories = ["FILL IN"]', '\ncategories = ["F", "M"]'
        ),
    )
    assert "Sex: 2 (100.0%) matched" in run("check", "s.toml").out


def test_draft_skips_columns_a_release_would_refuse(folder, run):
    text = drafted(folder, run, "a,a,,id,id,b\n1,2,3,4,5,6")
    assert [line for line in text.splitlines() if line.startswith("[domain")] == ["[domain.b]"]
    assert_contains(
        text,
        'The column "a" was left out: several columns have this name',
        'The column "" was left out: its name is empty',
    )
