"""Profiles: seeded first looks at synthetic data, their findings, pages and drafts."""

import tomllib
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._profile import number_edges, round_down

ROWS = 6000
SEED = 11


def people(rows=ROWS):
    """A table of numbers, whole numbers, dates, truth values and texts, each with a known law."""
    random = np.random.default_rng(SEED)
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(random.integers(0, 900, rows), unit="D")
    table = pd.DataFrame(
        {
            "wage": np.exp(random.normal(7.5, 0.6, rows)),
            "age": random.integers(18, 90, rows),
            "female": random.integers(0, 2, rows).astype(float),
            "weight": random.normal(70, 10, rows),
            "region": random.choice(["north", "south", "east"], rows, p=[0.6, 0.3, 0.1]),
            "smokes": random.choice([True, False], rows),
            "day": days,
        }
    )
    table.loc[: rows // 10 - 1, "wage"] = np.nan
    return table


@pytest.fixture(scope="module")
def pure(tmp_path_factory):
    """A profile under pure differential privacy."""
    folder = tmp_path_factory.mktemp("pure")
    return ln.profile(people(), epsilon=1, out=folder / "profile", seed=SEED)


def drafted(profile):
    """Return the attributes of a drafted spec."""
    domain: dict[str, Any] = tomllib.loads(profile.draft.read_text(encoding="utf-8"))["domain"]
    return domain


def test_findings_hold_the_true_values(pure):
    columns = pure.findings.by_column()
    table = people()
    assert pure.findings.rows.low <= ROWS <= pure.findings.rows.high
    assert columns["wage"].missing_share.low <= 0.1 <= columns["wage"].missing_share.high
    for name in ("wage", "age", "weight"):
        true_quartiles = table[name].quantile([0.25, 0.5, 0.75])
        for quartile, truth in zip(columns[name].quartiles, true_quartiles, strict=True):
            assert quartile.low <= truth <= quartile.high


def test_draft_bounds_hold_nearly_all_rows(pure):
    domain = drafted(pure)
    low, high = domain["age"]["integers"]
    assert low <= 18
    assert high >= 89
    assert domain["female"]["integers"] == [0, 1]
    wages = people()["wage"].dropna()
    inside = wages.between(domain["wage"]["bins"]["low"], domain["wage"]["bins"]["high"])
    assert inside.mean() > 0.98
    assert domain["wage"]["null"] == "cell"
    assert domain["day"]["dates"] == {"from": "2019-01-01", "to": "2021-12-31", "by": "month"}
    assert domain["smokes"] == {"categories": [True, False]}
    assert "region" not in domain
    assert "# from the profile" in pure.draft.read_text(encoding="utf-8")


@pytest.mark.parametrize(("language", "sentence"), [("en", "All columns"), ("de", "Alle Spalten")])
def test_page_lists_every_column(pure, language, sentence):
    name = "profile.html" if language == "en" else f"profile.{language}.html"
    page = (pure.out / name).read_text(encoding="utf-8")
    assert f'<html lang="{language}">' in page
    assert sentence in page
    assert all(f">{column}</a>" in page for column in people())
    assert "<script" not in page


def test_hidden_cells_are_empty_in_small_data(tmp_path):
    small = ln.profile(people(20), epsilon="1/10", out=tmp_path / "profile", seed=SEED)
    assert all(not column.describes_values for column in small.findings.columns)
    assert "domain" not in tomllib.loads(small.draft.read_text(encoding="utf-8"))
    assert "Too noisy" in small.page.read_text(encoding="utf-8")


def test_profile_reports_lines_that_are_not_rows(pure, tmp_path):
    (tmp_path / "x.csv").write_text("age,sex\n" + "3,F,\n" * 5000, encoding="utf-8")
    empty = ln.profile(tmp_path / "x.csv", epsilon=1, out=tmp_path / "profile", seed=SEED)
    sentence = "In a CSV file, lines with more or fewer fields than the header are not rows."
    assert sentence in empty.page.read_text(encoding="utf-8")
    assert sentence not in pure.page.read_text(encoding="utf-8")


def test_whole_column_named_like_an_argument_is_profiled(pure):
    assert pure.findings.by_column()["weight"].describes_values


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "may name persons"),
        ({"unit": "row", "max_rows": 2}, "max_rows needs a unit with a column"),
        ({"unit": "person_id", "max_rows": 0}, "max_rows must be"),
        ({"unit": "nobody", "max_rows": 2}, "column of the data"),
    ],
)
def test_unit_must_be_stated(tmp_path, arguments, message):
    table = pd.DataFrame({"person_id": [1, 2], "age": [20, 30]})
    with pytest.raises(ln.InputError, match=message):
        ln.profile(table, epsilon=1, out=tmp_path / "profile", seed=SEED, **arguments)
    assert not list(tmp_path.iterdir())


def test_data_without_a_countable_column_are_refused(tmp_path):
    with pytest.raises(ln.InputError, match="A profile needs a column"):
        ln.profile(pd.DataFrame({"comments": ["a"]}), epsilon=1, out=tmp_path / "p", seed=SEED)


@pytest.mark.parametrize("kind", ["whole", "number"])
def test_edges_ascend_within_exact_numbers(kind):
    edges = number_edges(kind, has_years=True)
    assert all(low < high for low, high in pairwise(edges))
    assert max(map(abs, edges)) == 10**15
    assert {Fraction(0), Fraction(1980), Fraction(-1)} <= set(edges)


@pytest.mark.parametrize(("value", "text"), [("1/3", "0.3333"), ("2", "2"), ("12345.6", "12340")])
def test_budget_is_rounded_down(value, text):
    assert round_down(Fraction(value)) == text


def test_seeded_profile_is_marked_and_kept_apart(pure):
    for name in ("spec.toml", "profile.toml", "request.toml"):
        text = (pure.out / name).read_text(encoding="utf-8")
        assert "NOT PRIVATE" in text
        assert "you may publish this file" not in text
    for seed in (None, SEED + 1):
        with pytest.raises(ln.InputError, match="has another profile"):
            ln.profile(
                people(), epsilon=1, out=pure.out, seed=seed, ledger=pure.out.parent / "a.ledger"
            )
    assert not (pure.out.parent / "a.ledger").exists()


@pytest.mark.parametrize("out", ["profile", "elsewhere/profile"])
def test_lost_ledger_of_a_stopped_profile_is_noticed(tmp_path, monkeypatch, out):
    """Its categories were paid, and lie two folders deep; a new ledger would not know that."""
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    source = tmp_path / "data" / "people.csv"
    people(600)[["region", "age"]].to_csv(source, index=False)

    def run(name):
        folder = tmp_path if name.startswith("elsewhere") else source.parent
        return ln.profile(source, epsilon=1, delta="1e-6", out=folder / name, unit="row")

    with monkeypatch.context() as patch:
        patch.setattr("leastnoise._profile._run.run_spec", None)
        with pytest.raises(TypeError):
            run(out)
    ledger = source.with_name("people.ledger")
    assert ln.Ledger.open(ledger).entries()
    ledger.unlink()
    for name in (out, f"{out}-2"):
        with pytest.raises(ln.LedgerError, match=r"There is no ledger .*categories/1"):
            run(name)
    assert not ledger.exists()


def test_profile_that_the_ledger_cannot_pay_spends_nothing(tmp_path):
    people(100).to_csv(tmp_path / "people.csv", index=False)
    budget = ln.Privacy(ln.ApproxDP("7/10", "1e-6"))
    ledger = ln.Ledger.create(tmp_path / "people.ledger", "people", budget)
    arguments = {"delta": "1e-6", "unit": "row", "out": tmp_path / "profile"}
    with pytest.raises(ln.BudgetError):
        ln.profile(tmp_path / "people.csv", epsilon=1, **arguments)
    with pytest.raises(ln.InputError, match="A total is only for a new ledger"):
        ln.profile(tmp_path / "people.csv", epsilon="1/2", total=3, **arguments)
    assert ledger.entries() == ()
    assert not (tmp_path / "profile").exists()


def test_tables_do_not_depend_on_the_values_of_python_objects(tmp_path):
    answers = [["yes", "no"] * 200, [5, *["yes", "no"] * 200]]
    specs = []
    for number, values in enumerate(answers):
        frame = pd.DataFrame({"answer": pd.Series(values, dtype=object)})
        profile = ln.profile(frame, epsilon=1, out=tmp_path / str(number), unit="row", seed=SEED)
        specs.append((profile.out / "profile.toml").read_text(encoding="utf-8"))
    assert specs[0] == specs[1]
