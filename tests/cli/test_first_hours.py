"""What somebody meets in the first hours: told before planning, once, and in a sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import leastnoise as ln
from leastnoise._session import parse_spec

Run = Callable[..., Any]

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

    monkeypatch.setattr("leastnoise._session.planned", fail)


def write(folder: Path, text: str) -> None:
    (folder / "s.toml").write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("_unplanned")
def test_what_cannot_be_written_or_paid_is_said_before_planning(folder: Path, run: Run) -> None:
    (folder / "there").mkdir()
    result = run("release", "people.toml", "--out", "there")
    assert (result.code, "must not exist yet" in result.err) == (2, True)
    result = run("release", "people.toml", "--out", "people.csv/out")
    assert result.code == 2
    assert "Traceback" not in result.err
    (folder / "plan.json").write_text("{}", encoding="utf-8")
    result = run("plan", "people.toml", "--out", "plan.json")
    assert (result.code, "exists already" in result.err) == (2, True)
    ln.Ledger.create(folder / "small.ledger", "people", ln.Privacy(ln.PureDP("1/2")))
    result = run("release", "people.toml", "--out", "new", "--ledger", "small.ledger")
    assert (result.code, "of epsilon = 0.5" in result.err) == (2, True)


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
    write(folder, HEAD.replace('epsilon = "1"', 'epsilon = "1/1000"\nrows = 100') + "[[workload]]\nmarginals = { ways = 1 }\n")
    (only,) = json.loads(run("plan", "s.toml", "--json").out)["warnings"]
    assert only.startswith("In 2 tables the expected error of an answer is above the 100 rows")


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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("details", 2),
        ("details", "age"),
        ("strategy", 7),
        ("promise.lower_bound", "age"),
        ("promise.lower_bound", 1e99),
        ("promise.total_squared_error", True),
        ("promise.tables.0.0", 7),
        ("promise.tables.0.3", "age"),
        ("promise.tables.0.4", None),
        ("promise.tables.0.4", 0.0),
        ("promise.tables.0", []),
        ("promise.tables", []),
        ("questions.0", 7),
    ],
)
def test_a_plan_with_a_field_of_another_kind_is_refused_before_it_is_paid(tmp_path: Path, field: str, value: object) -> None:
    text = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1)).to_json()
    whole = json.loads(text)
    *way, last = field.split(".")
    place = whole
    for step in way:
        place = place[int(step) if step.isdecimal() else step]
    place[int(last) if last.isdecimal() else last] = value
    source = tmp_path / "people.csv"
    source.write_text("sex\nF\nM\n", encoding="utf-8")
    with pytest.raises(ln.InputError):
        ln.release(ln.Plan.from_json(json.dumps(whole)), source, ledger=tmp_path / "people.ledger", out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_draft_knows_persons_by_any_spelling_and_calls_tables_without_the_blanks_of_their_columns(folder: Path, run: Run) -> None:
    for name, known in (
        ("Patient ID", True),
        ("PATIENT_ID", True),
        (" id ", True),
        ("Kunden-Id", True),
        ("Customer", True),
        ("Kunde", True),
        ("paid", False),
    ):
        (folder / "odd.csv").write_text(f"{name},Sex ,Visit date , b,b\n", encoding="utf-8")
        assert run("init", "odd.csv", "--out", f"{name}.toml").code == 0
        text = (folder / f"{name}.toml").read_text(encoding="utf-8")
        assert (f'unit = {{ column = "{name}", max_rows = "FILL IN" }}' in text) == known
    for part in (
        '[domain.Sex]\ncolumn = "Sex "',
        '[domain."Visit date"]\ncolumn = "Visit date "',
        '[domain." b"]\ncategories',
        "[domain.b]\ncat",
    ):
        assert part in text
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
