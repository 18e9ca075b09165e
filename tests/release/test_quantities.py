"""Every column of a file, every sheet and every axis names its quantity and its unit."""

import json
import re

import numpy as np
import openpyxl
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._texts import load_catalogue

SPEC = """
[source]
path = "people.csv"
[privacy]
rho = "8"
unit = { column = "person", max_rows = 2 }
[domain.month]
dates = { from = "2024-01-01", to = "2025-02-28", by = "month" }
complete = true
[domain.sex]
categories = ["F", "M"]
[domain.age]
integers = [0, 9]
outside = "clip"
[measures.pay]
clip = [0, 1000]
[measures.tax]
clip = [0, 1000]
[measures.w]
clip = [0, 10]
[[workload]]
queries = { month = "identity" }
[[workload]]
queries = { month = { change = 1 } }
[[workload]]
queries = { month = { change = 12 } }
[[workload]]
queries = { month = { change = 12 } }
sum = "pay"
[[workload]]
queries = { month = { rolling = 3 } }
[[workload]]
queries = { sex = { matrix = [[1, -1]] } }
[[workload]]
queries = { sex = { matrix = [[1, 1]] } }
[[workload]]
queries = { sex = "identity" }
sum = "pay"
[[workload]]
queries = { sex = "identity" }
count = "units"
[[workload]]
queries = { sex = "identity" }
weighted_by = "w"
[[workload]]
means = { of = "pay", by = ["month"] }
[[workload]]
means = { of = "pay", by = ["sex"] }
weighted_by = "w"
[[workload]]
variances = { of = "pay", by = ["sex"] }
[[workload]]
correlations = { of = ["pay", "tax"], by = ["sex"] }
[[workload]]
regression = { of = "pay", on = ["tax"], by = ["sex"] }
[[workload]]
r_squared = { of = "pay", on = ["tax"], by = ["sex"] }
[[workload]]
quantiles = { of = "age", at = ["0.5"], by = ["sex"] }
[[workload]]
cdf = { of = "age", by = ["sex"] }
[plan]
strategy = "identity"
[output]
formats = ["csv", "xlsx"]
"""
NAMES = """
[names]
rows = { en = "persons", de = "Personen" }
units = { en = "households", de = "Haushalte" }
[names.attributes]
month = { en = "month", de = "Monat" }
sex = { en = "sex", de = "Geschlecht" }
age = { name = { en = "age", de = "Alter" }, unit = { en = "years", de = "Jahre" } }
[names.measures.pay]
name = { en = "wages", de = "Lohn" }
mean = { en = "mean wage", de = "mittlerer Lohn" }
unit = { en = "EUR per year", de = "EUR je Jahr" }
[names.measures.w]
name = { en = "weight", de = "Gewicht" }
sum = { en = "population", de = "Bevölkerung" }
unit = { en = "inhabitants", de = "Einwohner" }
[names.measures.tax]
name = { en = "tax", de = "Steuer" }
unit = { en = "EUR per year", de = "EUR je Jahr" }
"""
KINDS = ("plain", "en", "de")
# The quantity of results on axes: without display names, and with names in each language.
QUANTITIES = {
    "month": ("rows", "persons", "Personen"),
    "month:change 1": (
        "rows, change over one period",
        "persons, change over one period",
        "Personen, Änderung über eine Periode",
    ),
    "month:change 12": (
        "rows, change over 12 periods",
        "persons, change over 12 periods",
        "Personen, Änderung über 12 Perioden",
    ),
    "sum of pay by month:change 12": (
        "sum of pay, change over 12 periods",
        "sum of wages, change over 12 periods, EUR per year",
        "Summe von Lohn, Änderung über 12 Perioden, EUR je Jahr",
    ),
    "month:ranges": ("rows", "persons", "Personen"),
    "sum of pay by sex": (
        "sum of pay",
        "sum of wages, EUR per year",
        "Summe von Lohn, EUR je Jahr",
    ),
    "units by sex": ("units", "households", "Haushalte"),
    "sum of w by sex": ("sum of w", "population, inhabitants", "Bevölkerung, Einwohner"),
    "mean of pay by month": (
        "mean of pay",
        "mean wage, EUR per year",
        "mittlerer Lohn, EUR je Jahr",
    ),
    "standard deviation of pay by sex": (
        "standard deviation of pay",
        "standard deviation of wages, EUR per year",
        "Standardabweichung von Lohn, EUR je Jahr",
    ),
    "correlations of pay and tax by sex": (
        "correlations of pay and tax",
        "correlations of wages and tax",
        "Korrelationen von Lohn und Steuer",
    ),
    "R^2 of pay on tax by sex": (
        "R^2 of pay on tax",
        "R^2 of wages on tax",
        "R^2 von Lohn auf Steuer",
    ),
    "quantiles of age by sex": (
        "quantiles of age",
        "quantiles of age, years",
        "Quantile von Alter, Jahre",
    ),
    "distribution of age by sex": ("share (rows), %", "share (persons), %", "Anteil (Personen), %"),
}
ENGLISH_UNITS = (
    r"in (rows|persons|units|privacy units|households|inhabitants|years|EUR per year|"
    r"the unit of )|number of |share|from (0|-1) to 1|1 where"
)
GERMAN_UNITS = (
    r"in (Zeilen|Personen|Einheiten|Haushalte|Einwohner|Jahre|EUR je Jahr|der Einheit der )|"
    r"Anzahl |Anteil|von (0|-1) bis 1|1, wo"
)


def publish(folder, text):
    """Write a release of a spec to a folder."""
    rng = np.random.default_rng(5)
    size = 400
    months = pd.period_range("2024-01", "2025-02", freq="M").astype(str)
    rows = pd.DataFrame(
        {
            "person": np.arange(size),
            "month": [f"{month}-01" for month in rng.choice(months, size)],
            "sex": rng.choice(["F", "M"], size),
            "age": rng.integers(0, 10, size),
            "pay": rng.integers(0, 1000, size),
            "tax": rng.integers(0, 1000, size),
            "w": rng.integers(1, 10, size),
        }
    )
    path = folder / "spec.toml"
    path.write_text(text, encoding="utf-8")
    spec = ln.read_spec(path)
    plan = ln.plan(spec.workload, spec.planned_privacy, strategy="identity")
    return ln.release(plan, rows, seed=3, out=folder / "out", options=spec.options)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A release with tables of all kinds, whose first language is German, and its folder."""
    folder = tmp_path_factory.mktemp("kinds")
    release = publish(folder, f'{SPEC}languages = ["de", "en"]\n{NAMES}')
    return folder / "out", release


def results_of(release):
    return [*release.tables, *release.statistics]


def axis_titles(chart):
    """Return all titles of axes and legends in a chart in Vega-Lite."""
    titles = set()
    if isinstance(chart, dict):
        title = chart.get("title")
        if isinstance(title, dict):
            title = title.get("text")
        if isinstance(title, str):
            titles.add(title)
    parts = chart.values() if isinstance(chart, dict) else chart
    for part in parts if isinstance(chart, (dict, list)) else ():
        titles |= axis_titles(part)
    return titles


@pytest.mark.parametrize("kind", KINDS)
def test_axes_name_quantity_and_unit(published, kind):
    _, release = published
    catalogue = load_catalogue() if kind == "plain" else release.options.catalogue(kind)
    drawn = 0
    for result in results_of(release):
        chart = result.chart_spec(catalogue)
        if result.name not in QUANTITIES or chart is None:
            continue
        drawn += 1
        quantity = QUANTITIES[result.name][KINDS.index(kind)]
        titles = axis_titles(chart)
        # The limit on the rows of a unit may follow in brackets.
        pattern = re.compile(rf"{re.escape(quantity)}( \(.*)?", re.IGNORECASE)
        assert any(map(pattern.fullmatch, titles)), (result.name, titles)
    assert drawn >= 10


def test_workbook_names_quantity_and_unit_of_columns(published):
    out, release = published
    sheets = openpyxl.load_workbook(out / "answers.xlsx")
    meanings = {
        (sheet, column): meaning
        for sheet, column, meaning in sheets["Spalten"].iter_rows(min_row=2, values_only=True)
    }
    number_columns = 0
    for result in results_of(release):
        (sheet,) = (each for each in sheets if each.title.split(" ")[0] == result.id)
        for name in (cell.value for cell in sheet[5]):
            if name not in result.numbers() and name != "margin":
                continue
            number_columns += 1
            assert re.search(GERMAN_UNITS, meanings[sheet.title, name]), (sheet.title, name)
        meaning = meanings[sheet.title, result.value_name]
        if "change" in result.name:
            assert "Änderung über" in meaning
        assert ("Summen und Differenzen" in meaning) == (result.id == "q6")
    assert number_columns > 80


def test_described_columns_name_quantity_and_unit(published):
    out, release = published
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert [table["quantity"] for table in manifest["answers"]["tables"]][:7] == [
        "number of rows",
        "number of rows, change over one period",
        "number of rows, change over 12 periods",
        "sum of pay, change over 12 periods, in the unit of the column 'pay'",
        "number of rows",
        "number of rows, sums and differences of cells",
        "number of rows",
    ]
    csvw = json.loads(ln.export(out, "csvw"))
    for result, table in zip(results_of(release), csvw["tables"], strict=True):
        texts = {column["titles"]: column for column in table["tableSchema"]["columns"]}
        for name in result.numbers():
            text = texts[name]["dc:description"]["@value"]
            assert re.search(ENGLISH_UNITS, text), (result.name, name, text)


@pytest.mark.parametrize(("kind", "page"), [("en", "report.en.html"), ("de", "report.html")])
def test_report_names_the_quantity_of_each_table(published, kind, page):
    out, release = published
    text = (out / page).read_text(encoding="utf-8")
    for table in release.tables:
        if table.name in QUANTITIES:
            start = text.index(f'id="{table.id}"')
            article = text[start : start + 3000].lower()
            assert QUANTITIES[table.name][KINDS.index(kind)].lower() in article, table.name
