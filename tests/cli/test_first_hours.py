"""What somebody meets in the first hours: told before planning, once, and in a sentence."""

import json
import sys
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

import leastnoise as ln
from cli.conftest import Run
from leastnoise._spec import parse_spec

HEAD = """
[privacy]
epsilon = "1"
[domain.sex]
categories = ["F", "M"]
[domain.age]
integers = [0, 9]
"""


@pytest.fixture
def _unplanned(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a plan was made")

    monkeypatch.setattr("leastnoise._spec._spec.planned", fail)


def write(folder: Path, text: str) -> None:
    (folder / "s.toml").write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("_unplanned")
def test_a_plan_that_cannot_be_written_is_not_made(folder: Path, run: Run) -> None:
    (folder / "plan.json").write_text("{}", encoding="utf-8")
    result = run("plan", "people.toml", "--out", "plan.json")
    assert (result.code, "plan.json exists already and is not overwritten" in result.err) == (2, True)
    assert (folder / "plan.json").read_text(encoding="utf-8") == "{}"


@pytest.mark.usefixtures("_unplanned")
@pytest.mark.parametrize("more", [(), ("--seed", "1")], ids=["paid", "seeded"])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("people.csv", "poeple.csv", "there is no file 'poeple.csv'. Did you mean 'people.csv'?"),
        ("[domain.age]", "[domain.aeg]\n", "has no column 'aeg'; it has 'sex', 'age', 'income'. Did you mean 'age'?"),
        ('column = "income"', 'column = "incom"', "has no column 'incom'"),
        ('epsilon = "1"', 'epsilon = "1"\nunit = { column = "id", max_rows = 2 }', "has no column 'id'"),
        ("[plan]", '[output]\nformats = ["xlsx"]\n[plan]', "pip install 'leastnoise[excel]'"),
    ],
    ids=["file", "attribute", "measure", "unit", "extra"],
)
def test_data_that_cannot_be_read_and_extras_that_are_missing_are_told_before_planning(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, old: str, new: str, said: str, more: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    (folder / "people.csv").write_text("sex,age,income\nF,secret-value,1\n", encoding="utf-8")
    text = (folder / "people.toml").read_text(encoding="utf-8").replace('"age"', '"aeg"' if "aeg" in new else '"age"')
    (folder / "people.toml").write_text(text.replace(old, new) + '\n[[workload]]\nqueries = {}\nsum = "pay"\n', encoding="utf-8")
    result = run("release", "people.toml", "--out", "out", *more)
    assert (result.code, said in result.err, "secret-value" in result.err) == (2, True, False), result.err
    assert not list(folder.glob("*.ledger"))
    if "extra" in said or "excel" in said:
        assert said in run("plan", "people.toml").err


def test_a_name_that_several_tables_have_is_refused_with_their_ids(folder: Path, run: Run) -> None:
    twice = "".join(f"[[workload]]\nqueries = {{ age = {{ ranges = [[0, {high}]] }} }}\n" for high in (3, 5))
    write(folder, HEAD + twice + '[output]\ncovariances = ["age:ranges"]\n')
    result = run("plan", "s.toml")
    assert result.code == 2
    assert "Several tables are named 'age:ranges'; take one by its id: q1, q2." in result.err


def test_a_table_asked_for_again_is_one_table_with_the_sum_of_the_weights() -> None:
    spec = parse_spec(
        HEAD + '[[workload]]\nmarginals = { ways = 1 }\n[[workload]]\nqueries = { age = "identity" }\nweight = "1/2"\n', Path()
    )
    assert [(product.name, str(product.weight)) for product in spec.workload] == [("sex", "1"), ("age", "3/2")]


@pytest.mark.parametrize("name", ["weight", "sum", "domain", "self", "asked"])
def test_an_attribute_of_any_name_can_be_asked_about(name: str) -> None:
    spec = parse_spec(
        HEAD + f"[domain.{name}]\nsize = 3\n[[workload]]\nqueries = {{ {name} = 'prefix', age = 'total' }}\nweight = 2\n", Path()
    )
    assert [product.name for product in spec.workload] == [f"{name}:prefix"]
    assert ln.queries(spec.domain, {name: "prefix"}, weight=2) == spec.workload
    with pytest.raises(ln.InputError, match="given once"):
        ln.queries(spec.domain, {"age": "prefix"}, age="identity")


def test_budgets_that_protect_hardly_anybody_are_warned_about_once_each(folder: Path, run: Run) -> None:
    text = HEAD.replace('epsilon = "1"', 'epsilon = "50"\ndelta = "0.5"\nrows = 1000') + "[[workload]]\nmarginals = { ways = 1 }\n"
    write(folder, text)
    result = run("plan", "s.toml", "--json")
    assert result.code == 0
    warnings = json.loads(result.out)["warnings"]
    assert ["epsilon = 50" in warnings[0], "delta = 0.5 is above 1 / 1000" in warnings[1], len(warnings)] == [True, True, 2]
    assert [result.err.count(f"Warning: {sentence}") for sentence in warnings] == [1, 1]


@pytest.mark.parametrize(
    ("epsilon", "asked", "told"),
    [
        ('"1/1000"\nrows = 100', "marginals = { ways = 1 }", ["sex (± 7", "around 50)", "age (± 4", "around 10)"]),
        ('"1/10"\nrows = 500', 'queries = { sex = "identity", age = "identity" }', ["sex x age (± 30", "around 25)"]),
        ('"1/10"\nrows = 1000', 'queries = { sex = "identity", age = "identity" }\nsize = 20', ["sex x age (± 30", "around 20)"]),
        ('"1/10"\nrows = 1000', 'queries = { sex = "identity", age = "identity" }\nsize = 40', []),
        ('"1/10"\nrows = 1000', 'queries = { sex = "identity", age = "prefix" }', []),
        ('"1/10"\nrows = 1000', 'queries = { sex = "identity", age = "identity" }\nsum = "pay"', []),
        ('"1"\nrows = 20', 'means = { of = "pay", by = ["sex", "age"] }', ["sex x age (± 3", "around 1)", "sum of pay by sex x age (± 3"]),
        ('"1"\nrows = 20', 'means = { of = "pay", by = ["sex", "age"] }\nsize = 9', ["sum of pay"]),
    ],
)
def test_answers_that_are_smaller_than_their_margins_are_warned_about(
    folder: Path, run: Run, epsilon: str, asked: str, told: list[str]
) -> None:
    pay = "[measures.pay]\ncolumn = 'age'\nclip = [0, 10]\n"
    write(folder, HEAD.replace('"1"', epsilon) + pay + f"[[workload]]\n{asked}\n")
    warned = json.loads(run("plan", "s.toml", "--json").out)["warnings"]
    assert len(warned) == bool(told)
    assert all("margins are larger than the answers" in one for one in warned)
    assert [text for text in told if text not in "".join(warned)] == []


def test_a_least_budget_above_2_is_warned_about_and_one_that_was_chosen_above_20(folder: Path, run: Run) -> None:
    for of, margin, told in (("epsilon", 2, True), ("epsilon", 6, False), ("rho", 1, True)):
        write(folder, HEAD.replace('epsilon = "1"', f'{of} = "least"') + f"[[workload]]\nmarginals = {{ ways = 1 }}\nmargin = {margin}\n")
        warned = json.loads(run("plan", "s.toml", "--json").out)["warnings"]
        assert ["give them wider margins" in one for one in warned] == [True] * told, of
    write(folder, HEAD.replace('"1"', '"3"') + "[[workload]]\nmarginals = { ways = 1 }\nmargin = 2\n")
    assert json.loads(run("plan", "s.toml", "--json").out)["warnings"] == []


def test_what_is_found_without_case_is_said_to_be_in_small_letters(folder: Path, run: Run) -> None:
    head = HEAD.replace('epsilon = "1"', 'epsilon = "1"\ndelta = "1e-6"')
    for more, told in (("ignore_case = true\n", True), ("", False)):
        write(folder, head + f"[domain.city]\nunknown = {{ most = 9 }}\n{more}[[workload]]\nmarginals = {{ ways = 1 }}\n")
        assert ("published in small letters" in run("plan", "s.toml").err) == told


@pytest.mark.parametrize(
    ("header", "unit", "left"),
    [
        ("Kundennummer;Ort", "Kundennummer", ["Kundennummer"]),
        ("store_id,person_id,Patienten-Nr.", "person_id", ["person_id", "Patienten-Nr."]),
        ("order_id,age", "order_id", ["order_id"]),
        ("age,customerNo", "customerNo", ["customerNo"]),
        ("customer_paid,Kundengruppe,users,Hausnummer,account", None, []),
    ],
)
def test_columns_that_name_a_person_are_the_unit_and_no_attribute(
    folder: Path, run: Run, header: str, unit: str | None, left: list[str]
) -> None:
    (folder / "some.csv").write_text(header + "\n", encoding="utf-8")
    assert run("init", "some.csv").code == 0
    said = (folder / "some.toml").read_text(encoding="utf-8")
    assert (f'unit = {{ column = "{unit}"' in said) == (unit is not None)
    assert [name for name in header.replace(";", ",").split(",") if f'The column "{name}" was left out' in said] == left


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"1"', '"1e9"', "epsilon must be at most 1048576; got"),
        ('"1"', '"1"\nunit = { column = "id", max_rows = 1000000000000000000000000000000 }', "max_rows must be at most 4294967296; got"),
    ],
    ids=["epsilon", "max_rows"],
)
def test_a_number_that_no_strategy_can_use_is_refused_once(folder: Path, run: Run, old: str, new: str, said: str) -> None:
    write(folder, HEAD.replace(old, new) + "[[workload]]\nmarginals = { ways = 1 }\n")
    result = run("plan", "s.toml")
    assert result.code == 2
    assert result.err.count(said) == 1
    assert "strategy" not in result.err


def test_the_program_alone_prints_its_help_as_help(run: Run) -> None:
    result = run()
    assert (result.code, result.err) == (0, "")
    assert result.out.count("\n") > 10
    assert "Publish tables from private data" in result.out


FIELDS = [("details", 2), ("details", "age"), ("strategy", 7), ("promise.lower_bound", "age"), ("promise.lower_bound", 1e99)]
FIELDS += [("promise.total_squared_error", True), ("promise.tables.0.0", 7), ("promise.tables.0.3", "age"), ("promise.tables.0.4", None)]
FIELDS += [("promise.tables.0.4", 0.0), ("promise.tables.0", []), ("promise.tables", []), ("questions.0", 7)]
FIELDS += [("questions", [{}]), ("promise.total_squared_error", 1e-9), ("blocks.0.factors", []), ("blocks", [])]


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_a_plan_with_a_field_of_another_kind_is_refused_before_it_is_paid(tmp_path: Path, field: str, value: object) -> None:
    whole = json.loads(ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1), strategy="identity").to_json())
    *way, last = [int(step) if step.isdecimal() else step for step in field.split(".")]
    reduce(getitem, way, whole)[last] = value
    source = tmp_path / "people.csv"
    source.write_text("sex\nF\nM\n", encoding="utf-8")
    with pytest.raises(ln.InputError):
        ln.release(ln.Plan.from_json(json.dumps(whole)), source, ledger=tmp_path / "people.ledger", out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_draft_knows_persons_by_any_spelling_and_calls_tables_without_the_blanks_of_their_columns(folder: Path, run: Run) -> None:
    for name in ("Patient ID", "PATIENT_ID", " id ", "Kunden-Id", "Customer", "Kunde", "paid"):
        (folder / "odd.csv").write_text(f"{name},Sex ,Visit date , b,b\n", encoding="utf-8")
        assert run("init", "odd.csv", "--out", f"{name}.toml").code == 0
        text = (folder / f"{name}.toml").read_text(encoding="utf-8")
        assert (f'unit = {{ column = "{name}", max_rows = "FILL IN" }}' in text) == (name != "paid")
    parts = [
        '[domain.Sex]\ncolumn = "Sex "',
        '[domain."Visit date"]\ncolumn = "Visit date "',
        '[domain." b"]\ncategories',
        "[domain.b]\ncat",
    ]
    assert [part for part in parts if part not in text] == []
    (folder / "few.csv").write_text("Sex \nF\nM\n", encoding="utf-8")
    assert run("init", "few.csv").code == 0
    spec = (folder / "few.toml").read_text(encoding="utf-8").replace('\ncategories = ["FILL IN"]', '\ncategories = ["F", "M"]')
    (folder / "few.toml").write_text(spec, encoding="utf-8")
    assert "Sex: 2 (100.0%) matched" in run("check", "few.toml").out


def test_a_draft_leaves_out_the_columns_that_a_release_would_refuse(folder: Path, run: Run) -> None:
    (folder / "odd.csv").write_text("a,a,,id,id,b\n1,2,3,4,5,6\n", encoding="utf-8")
    assert run("init", "odd.csv").code == 0
    text = (folder / "odd.toml").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("[domain")] == ["[domain.b]"]
    assert 'The column "a" was left out: several columns are called so' in text
    assert 'The column "" was left out: its name is empty' in text
