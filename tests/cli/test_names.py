"""Display names and surveys from the command line: `show`, `answer` and series pages."""

import json
from pathlib import Path

import pytest

SPEC = """
[source]
path = "visits.csv"
[privacy]
rho = "1/2"
[domain.month]
dates = { column = "day", from = "2024-01-01", to = "2024-02-29", by = "month" }
[domain.shop]
categories = ["A", "B"]
labels = { A = { en = "Kiel", de = "Kiel" }, B = "Mainz" }
[[workload]]
queries = { month = "identity", shop = "identity" }
[[workload]]
queries = { month = "prefix" }
[names]
rows = { en = "visits", de = "Besuche" }
attributes.month = { en = "month", de = "Monat" }
attributes.shop = { en = "branch", de = "Filiale" }
tables.q2 = { en = "Visits so far", de = "Besuche bisher" }
[survey]
cv = "1/10"
"""


def write_visits():
    days = ["2024-01-15,A", "2024-01-16,B", "2024-02-01,A", "2024-02-02,B"] * 50
    Path("visits.csv").write_text("day,shop\n" + "\n".join(days) + "\n", encoding="utf-8")


def test_show_and_answer_use_names_and_survey(run, folder):
    write_visits()
    Path("spec.toml").write_text(SPEC, encoding="utf-8")
    run.succeeds("release", "spec.toml", "--out", "out", "--seed", 1)
    overview = run.succeeds("show", "out").out
    assert "Visits by month and branch" in overview
    assert "Visits so far" in overview
    table = run.succeeds("show", "out", "q1").out
    assert "Branch=Kiel" in table
    answers = run.succeeds("answer", "out", "--cells", "shop").out
    assert "include only the noise, not the sampling error" in " ".join(answers.split())


@pytest.mark.slow
def test_plan_prints_titles_and_units(run, folder):
    write_visits()
    measure = """
[measures.pay]
clip = [0, 9]
[names.measures.pay]
name = { en = "fee", de = "Gebühr" }
unit = { en = "EUR", de = "Euro" }
[[workload]]
means = { of = "pay", by = ["shop"] }
[survey]"""
    Path("spec.toml").write_text(SPEC.replace("[survey]", measure), encoding="utf-8")
    printed = run.succeeds("plan", "spec.toml").out
    assert "Visits by month and branch" in printed
    assert "Visits so far" in printed
    assert "Mean of fee by branch, EUR" in printed
    rows = [line.split() for line in printed.splitlines() if line.startswith("Sum of fee by")]
    assert "EUR" in rows[0]
    facts = json.loads(run.succeeds("plan", "spec.toml", "--json").out)
    assert facts["tables"][0]["name"] == "month x shop"  # names for programs stay


def test_review_and_registry_have_titles(run, folder):
    write_visits()
    text = (
        SPEC + '[output]\ntitle = { en = "Visits 2024", de = "Besuche 2024" }\nagency = "Clinic"\n'
    )
    Path("spec.toml").write_text(text, encoding="utf-8")
    run.succeeds("release", "spec.toml", "--out", "out", "--seed", 1)
    run.succeeds("export", "out", "--as", "registry", "--out", "entry.yml")
    run.succeeds("export", "out", "--as", "review", "--out", "review.md")
    entry = Path("entry.yml").read_text(encoding="utf-8")
    assert 'name: "Visits 2024"' in entry
    assert '"data_curator_name": "Clinic"' in entry
    assert "Visits by month and branch" in entry
    assert "- Visits so far: " in Path("review.md").read_text(encoding="utf-8")


def test_series_has_pages_in_each_language(run, folder):
    write_visits()
    Path("spec.toml").write_text(SPEC + '[series]\nalong = "month"\n', encoding="utf-8")
    run.succeeds("ledger", "set", "visits.ledger", "--rho", 1)
    run.succeeds("release", "spec.toml", "--out", "out")
    english = Path("out/index.html").read_text(encoding="utf-8")
    german = Path("out/index.de.html").read_text(encoding="utf-8")
    assert "Visits by month and branch" in english
    assert 'href="index.de.html"' in english
    assert "Besuche nach Monat und Filiale" in german
    assert 'href="2024-01/report.de.html"' in german
    report = Path("out/2024-01/report.de.html").read_text(encoding="utf-8")
    assert "Besuche bisher" in report


YEARS = """
[source]
path = "wages.csv"
[privacy]
rho = 8
[domain.year]
dates = { column = "year", from = "2021-01-01", to = "2024-12-31", by = "year", format = "%Y" }
[domain.sex]
categories = ["F", "M"]
[measures.wage]
clip = [0, 100]
[[workload]]
queries = { year = "identity", sex = "identity" }
[[workload]]
means = { of = "wage", by = ["year"] }
[series]
along = "year"
[names]
rows = "employees"
measures.wage = { name = "wage", mean = "mean wage" }
"""


def publish_years(run, text):
    """Publish a yearly series, and return the text of its page."""
    rows = [
        f"{year},{sex},{wage}"
        for year in (2021, 2022, 2023, 2024)
        for sex in "FM"
        for wage in (40, 60) * 50
    ]
    Path("wages.csv").write_text("\n".join(["year,sex,wage", *rows]) + "\n", encoding="utf-8")
    Path("spec.toml").write_text(text, encoding="utf-8")
    run.succeeds("ledger", "set", "wages.ledger", "--rho", 9)
    run.succeeds("release", "spec.toml", "--out", "out")
    return Path("out/index.html").read_text(encoding="utf-8")


def test_yearly_series_of_a_survey_has_lines_and_warnings(run, folder, monkeypatch):
    """Years were drawn as names, and margins without a sampling error had no warning."""
    monkeypatch.delenv("LEASTNOISE_CHARTS", raising=False)
    page = publish_years(run, YEARS + '[survey.tables.q1]\ncv = "1/10"\n')
    assert page.count("<svg") == 2
    assert "for “Mean wage by year”." in page
    assert "The margins of changes do not include the sampling error." in page


def test_series_without_a_survey_has_no_warning(run, folder):
    assert "sampling error" not in publish_years(run, YEARS)


def test_series_refuses_a_list_of_sampling_errors(run, folder):
    write_visits()
    text = SPEC.replace('cv = "1/10"', "tables.q2.cv = [0.1, 0.2]")
    Path("spec.toml").write_text(text + '[series]\nalong = "month"\n', encoding="utf-8")
    run.is_refused("a list of sampling errors", "plan", "spec.toml")


def test_labels_have_the_language_of_the_names(folder, run):
    """The main language is German; names and labels of the terminal are English."""
    spec = """
[source]
path = "people.csv"
[privacy]
epsilon = "1"
[domain.sex]
categories = ["F", "M"]
labels = { F = { en = "female", de = "weiblich" }, M = { en = "male", de = "männlich" } }
[measures.income]
clip = [0, 100]
[[workload]]
queries = { sex = "identity" }
[[workload]]
means = { of = "income", by = ["sex"] }
[names.attributes]
sex = { en = "sex", de = "Geschlecht" }
[output]
language = "de"
"""
    (folder / "named.toml").write_text(spec, encoding="utf-8")
    for out, seed in (("one", 1), ("two", 2)):
        run.succeeds("release", "named.toml", "--out", out, "--seed", seed)
    commands = (
        ("show", "one", "q1"),
        ("show", "one", "s1"),
        ("difference", "one", "--other", "two", "--cells", "sex"),
        ("difference", "one", "--other", "two", "--mean", "income", "--cells", "sex"),
    )
    for command in commands:
        output = run.succeeds(*command).out
        assert "female" in output, command
        assert "weiblich" not in output, command
        assert "ab-test" not in output, command
