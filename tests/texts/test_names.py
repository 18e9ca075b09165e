"""Display names in titles, in reports of each language, and in files."""

import csv
import datetime as dt
import re
import textwrap
from html.parser import HTMLParser

import numpy as np
import openpyxl
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._pages import describe_guessing_chance, name_protected_unit
from leastnoise._publication import PublicationTable
from leastnoise._texts import (
    Catalogue,
    Names,
    NumberFormat,
    key_headings,
    load_catalogue,
    name_unit,
    name_with_row_limit,
    statistic_title,
    table_title,
)
from leastnoise._trusted.check import InputError

SPEC = """
[source]
path = "people.csv"
[privacy]
rho = "8"
unit = { column = "person", max_rows = 1 }
[domain.nuts3]
categories = ["11a", "11b", "21a"]
levels.nuts2 = { digits = 2 }
labels = { "11" = { en = "Vienna", de = "Wien" }, "21" = "Graz" }
[domain.age]
integers = [0, 9]
outside = "clip"
[domain.sex]
categories = ["1", "2"]
null = "cell"
labels = { "1" = { en = "men", de = "Männer" }, "2" = { en = "women", de = "Frauen" } }
[measures.income]
clip = [0, 1000]
[measures.poor]
clip = [0, 1]
[measures.w]
clip = [0, 10]
[[workload]]
means = { of = "income", by = [{ nuts3 = { level = "nuts2" } }, "sex"] }
weighted_by = "w"
[[workload]]
means = { of = "poor", by = ["sex"] }
[[workload]]
queries = { nuts3 = { level = "nuts2" }, age = "prefix" }
[[workload]]
queries = {}
weighted_by = "w"
[[workload]]
queries = { nuts3 = "identity" }
count = "units"
[[workload]]
quantiles = { of = "age", at = ["0.5"], by = ["sex"] }
[[workload]]
cdf = { of = "age", by = [] }
[[workload]]
sql = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
[plan]
strategy = "identity"
guard = "1/10"
[output]
formats = ["csv", "xlsx", "sdmx"]
title = { en = "Incomes 2025", de = "Einkommen 2025" }
agency = "Office"
"""
NAMES = """
[names]
rows = { en = "persons", de = "Personen" }
units = { en = "households", de = "Haushalte" }
[names.attributes]
nuts3 = { en = "district", de = "Kreis" }
age = { name = { en = "age", de = "Alter" }, unit = { en = "years", de = "Jahre" } }
sex = { en = "sex", de = "Geschlecht" }
[names.levels]
nuts2 = { en = "region", de = "Region" }
[names.measures.income]
name = { en = "net income", de = "Nettoeinkommen" }
mean = { en = "mean net income", de = "mittleres Nettoeinkommen" }
unit = { en = "EUR per year", de = "EUR je Jahr" }
decimals = 0
[names.measures.poor]
name = { en = "risk of poverty", de = "Armutsgefährdung" }
mean = { en = "poverty rate", de = "Armutsquote" }
percent = true
decimals = 1
[names.measures.w]
name = { en = "weight", de = "Gewicht" }
sum = { en = "population", de = "Bevölkerung" }
unit = { en = "inhabitants", de = "Einwohner" }
[names.tables]
q9 = { en = "Households, where they live", de = "Haushalte nach Wohnort" }
"""


def read_spec_text(folder, text):
    """Write a spec, and read it."""
    path = folder / "spec.toml"
    path.write_text(text, encoding="utf-8")
    return ln.read_spec(path)


def publish(folder, text, out="out"):
    """Publish a release of 600 random rows with a spec."""
    rng = np.random.default_rng(5)
    size = 600
    rows = pd.DataFrame(
        {
            "person": np.arange(size),
            "nuts3": rng.choice(["11a", "11b", "21a"], size),
            "age": rng.integers(0, 10, size),
            "sex": rng.choice(["1", "2", None], size, p=[0.5, 0.48, 0.02]),
            "income": rng.integers(0, 1000, size),
            "poor": rng.integers(0, 2, size),
            "w": rng.integers(1, 10, size),
        }
    )
    spec = read_spec_text(folder, text)
    plan = ln.plan(spec.workload, spec.planned_privacy, strategy="identity")
    return ln.release(plan, rows, seed=3, out=folder / out, options=spec.options)


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    return folder / "out", publish(folder, SPEC + NAMES)


class Texts(HTMLParser):
    """The texts that a reader of a page sees or hears, without code and statements of SQL."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.texts = []
        self.hidden = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("style", "script", "code", "pre")
        spoken = ("aria-label", "data-filter", "data-csv", "data-shown", "data-find")
        self.texts += [value for name, value in attrs if name in spoken and value]

    def handle_endtag(self, tag):
        self.hidden -= tag in ("style", "script", "code", "pre")

    def handle_data(self, data):
        if not self.hidden and data.strip():
            self.texts.append(" ".join(data.split()))


def sentences_of(path):
    return Texts(path.read_text(encoding="utf-8")).texts


ENGLISH_WORDS = re.compile(
    r"\b(the|of|and|is|are|with|row|rows|by|not|from|each|were|weighted|unit|count)\b"
)
GERMAN_WORDS = re.compile(r"\b(der|die|das|und|ist|sind|mit|Zeilen?|nach|nicht|von|je)\b")
# The names of columns in files, of definitions and of relations between neighbours.
TECHNICAL = re.compile(r"'[^']*'|„[^“]*“|\w+_\w+|answers/\S+|SELECT .*")


def untranslated(path, foreign_words):
    texts = [TECHNICAL.sub("", text) for text in sentences_of(path)]
    return [text for text in texts if foreign_words.search(text)]


def test_titles_read_as_an_office_writes_them(named):
    _, release = named
    titles = {}
    for language in ("en", "de"):
        catalogue = release.options.catalogue(language)
        titles[language] = [
            *(table_title(table.product, catalogue) for table in release.tables),
            *(
                statistic_title(table.statistic, release.plan.domain, catalogue)
                for table in release.statistics
            ),
        ]
    assert {
        "Mean net income by region and sex, EUR per year",
        "Poverty rate by sex",
        "Persons by region and age (up to each value)",
        "Population, inhabitants",
        "Population with a value of net income by region and sex, inhabitants",
        "Quantiles of age by sex, years",
        "Distribution of age",
    } <= set(titles["en"])
    assert {
        "Mittleres Nettoeinkommen nach Region und Geschlecht, EUR je Jahr",
        "Armutsquote nach Geschlecht",
        "Personen nach Region und Alter (bis zu jedem Wert)",
        "Bevölkerung, Einwohner",
        "Bevölkerung mit Angabe zu Nettoeinkommen nach Region und Geschlecht, Einwohner",
    } <= set(titles["de"])
    for title in (*titles["en"], *titles["de"]):
        assert not re.search(r"nuts|\w:\w|weighted|gewichtet| x ", title), title


def test_weights_of_values_have_the_unit_of_the_weight(named):
    out, release = named
    shown = " ".join(sentences_of(out / "report.html"))
    population = shown[shown.index("Population with a value of net income") :]
    assert population.index("inhabitants") < population.index("EUR per year")
    assert not re.search(r"Population with[^.;]*around a typical \S+ EUR", shown)
    table = next(table for table in release.tables if "of rows with income" in table.name)
    sheet = openpyxl.load_workbook(out / "publication.de.xlsx")[table.id]
    assert sheet["A2"].value.startswith("Einwohner")


def weighted_quantile_titles(weight_names, other_weight=False):
    """Return the English and German titles of quantiles of age weighted by ``w``."""
    domain = ln.Domain(
        {"age": ln.Integers(0, 9)},
        measures={"w": ln.Measure("w", 0, 10), "hours": ln.Measure("hours", 0, 60)},
    )
    workload = ln.quantile_queries(domain, of="age", at=["1/2"]).weighted_by("w")
    if other_weight:
        workload += ln.mean_queries(domain, of="w").weighted_by("hours")
    names = {
        "attributes": {"age": {"name": {"en": "age", "de": "Alter"}}},
        "measures": {"w": {"name": {"en": "weight", "de": "Gewicht"}, **weight_names}},
    }
    options = ln.Options(names=names, languages=["en", "de"])
    statistic = workload.statistics[0]
    return [
        statistic_title(statistic, workload.domain, options.catalogue(language))
        for language in ("en", "de")
    ]


def test_titles_leave_the_only_survey_weight_unnamed():
    population = {"sum": {"en": "population", "de": "Bevölkerung"}}
    named_weight = [
        "Quantiles of age weighted by weight",
        "Quantile von Alter (gewichtet nach Gewicht)",
    ]
    unnamed_weight = ["Quantiles of age (weighted)", "Quantile von Alter (gewichtet)"]
    assert weighted_quantile_titles(population) == unnamed_weight
    assert weighted_quantile_titles({}) == named_weight
    assert weighted_quantile_titles(population, other_weight=True) == named_weight


def test_titles_name_the_weights_of_several_quantiles():
    """The domain does not state the weights of quantiles, so both have to be named."""
    weights = {"w": ln.Measure("w", 0, 10), "v": ln.Measure("v", 0, 10)}
    domain = ln.Domain({"age": ln.Integers(0, 9)}, measures=weights)
    quantiles = ln.quantile_queries(domain, of="age", at=["1/2"])
    workload = quantiles.weighted_by("w") + quantiles.weighted_by("v")
    names = {
        "attributes": {"age": {"name": {"en": "age", "de": "Alter"}}},
        "measures": {
            "w": {"name": {"en": "weight", "de": "Gewicht"}, "sum": "population"},
            "v": {
                "name": {"en": "household weight", "de": "Haushaltsgewicht"},
                "sum": "households",
            },
        },
    }
    options = ln.Options(names=names, languages=["en", "de"])
    titles = {
        language: [
            statistic_title(statistic, workload.domain, options.catalogue(language))
            for statistic in workload.statistics
        ]
        for language in ("en", "de")
    }
    assert titles["en"] == [
        "Quantiles of age weighted by weight",
        "Quantiles of age weighted by household weight",
    ]
    assert titles["de"] == [
        "Quantile von Alter (gewichtet nach Gewicht)",
        "Quantile von Alter (gewichtet nach Haushaltsgewicht)",
    ]


def test_rows_with_a_name_are_protected_one_by_one(tmp_path):
    """Sentences on neighbours have no code words, and name the rows as the release does."""
    domain = ln.Domain(sex=["F", "M"])
    names = {"rows": {"en": "persons interviewed", "de": "befragte Personen"}}
    options = ln.Options(names=names, languages=["en", "de"])
    plan = ln.plan(ln.queries(domain, sex="identity"), ln.PureDP(1))
    people = pd.DataFrame({"sex": ["F"] * 120 + ["M"] * 90})
    ln.release(plan, people, seed=1, out=tmp_path / "out", options=options)
    english = " ".join(sentences_of(tmp_path / "out" / "report.html"))
    german = " ".join(sentences_of(tmp_path / "out" / "report.de.html"))
    assert "The persons interviewed are protected one by one: each row of the table" in english
    assert "Die befragten Personen sind einzeln geschützt: jede Zeile der Tabelle" in german
    assert "protects one row (added or removed)" in english
    assert "geschützt: eine Zeile (hinzugefügt oder entfernt)" in german
    assert "add_remove" not in english + german


def test_german_sentences_decline_the_noun_of_rows():
    options = ln.Options(names={"rows": "befragte Haushalte"}, language="de")
    german = options.catalogue("de")
    assert "fehlen die befragten Haushalte, deren" in german.say("left_out_of_some", names="Alter")
    assert german.say("dropped", names="Alter").startswith("Befragte Haushalte, deren")
    assert german.say("unit_rows_of_name") == "mit allen befragten Haushalten"
    unit = german.say("unit_rows_of_column", column="ort")
    assert unit == "alle befragten Haushalte mit demselben Wert von ort"


def test_biased_columns_have_headings_in_words(tmp_path):
    domain = ln.Domain(sex=["F", "M"])
    options = ln.Options(top_down=True, integer=True, languages=["en", "de"])
    plan = ln.plan(ln.queries(domain, sex="identity"), ln.PureDP(1))
    people = pd.DataFrame({"sex": ["F"] * 1200 + ["M"] * 900})
    ln.release(plan, people, seed=1, out=tmp_path / "out", options=options)
    page = (tmp_path / "out" / "report.de.html").read_text(encoding="utf-8")
    headings = re.findall("<th[^>]*>([^<]*)", page)
    assert {"ganzzahlig", "ganzzahlig, summentreu"} <= {*headings}
    assert not [heading for heading in headings if "_" in heading]
    assert re.search(r"<td[^>]*>1\.2\d\d<", page)
    assert not re.search(r"<td[^>]*>[\d.]+,00<", page)


def test_sentences_call_rows_by_their_name(named):
    _, release = named
    english = release.options.catalogue("en").say("fit_unused", percent="9%", low="8%", high="10%")
    assert english.startswith("About 9% of the persons (8% to 10%) are in none of the numbers")
    german = release.options.catalogue("de").say("dropped", names="Alter")
    assert german.startswith("Personen, deren Wert von Alter fehlt")
    assert load_catalogue().say("dropped", names="age").startswith("Rows with a missing")


@pytest.mark.parametrize(
    ("language", "written"), [("en", "Written on 3 May 2026"), ("de", "Erstellt am 3. Mai 2026")]
)
def test_pages_write_days_as_their_language_does(language, written):
    catalogue = load_catalogue(language)
    day = catalogue.format_date(dt.date(2026, 5, 3))
    assert catalogue.say("written_on", date=day) == f"{written} (UTC)."


def test_pages_show_no_code_that_has_a_name(named):
    out, _ = named
    for name in ("report.html", "report.de.html"):
        for text in sentences_of(out / name):
            shown = TECHNICAL.sub("", text)
            assert not re.search(r"nuts[23]|\w:\w|\bw\b|\bpoor\b", shown), text


def test_report_has_a_page_for_each_language(named):
    out, _ = named
    english = (out / "report.html").read_text(encoding="utf-8")
    german = (out / "report.de.html").read_text(encoding="utf-8")
    assert '<html lang="en">' in english
    assert '<html lang="de">' in german
    assert 'href="report.de.html"' in english
    assert 'href="report.html"' in german
    assert "Incomes 2025" in english
    assert "Einkommen 2025" in german
    assert "Graz" in german


@pytest.mark.slow
@pytest.mark.parametrize("names", [NAMES, ""])
@pytest.mark.parametrize("survey", ["", '[survey]\ncv = "0.05"\nsuppress = true\n'])
def test_no_page_is_half_translated(tmp_path, names, survey):
    publish(tmp_path, SPEC + names + survey)
    german = tmp_path / "out" / "report.de.html"
    english = tmp_path / "out" / "report.html"
    assert untranslated(german, ENGLISH_WORDS) == []
    assert untranslated(english, GERMAN_WORDS) == []
    # A sentence that is equal in both languages was not translated.
    shared = {TECHNICAL.sub("", text) for text in sentences_of(german)} & {
        TECHNICAL.sub("", text) for text in sentences_of(english)
    }
    assert [text for text in shared if len(re.findall(r"[a-zäöü]{3,}", text)) > 3] == []


def test_untranslated_sentence_is_noticed(named, tmp_path):
    out, _ = named
    page = (out / "report.de.html").read_text(encoding="utf-8")
    sentence = load_catalogue("en").say("reading_exact")
    broken = tmp_path / "broken.html"
    broken.write_text(page.replace(load_catalogue("de").say("reading_exact"), sentence), "utf-8")
    (noticed,) = untranslated(broken, ENGLISH_WORDS)
    assert sentence in noticed


def test_numbers_have_the_stated_format(named):
    out, release = named
    german = (out / "report.de.html").read_text(encoding="utf-8")
    rate = next(table for table in release.statistics if table.statistic.of == "poor")
    shown = f"{100 * rate.values[0]:.1f}".replace(".", ",")
    assert f"<td>{shown}\u00a0%<td>" in german
    assert " Prozentpunkte" in german
    income = next(table for table in release.statistics if "income" in table.statistic.of)
    assert f"<td>{income.values[0, 0]:.0f}<td>" in german


def test_files_keep_codes_and_names_of_columns(named):
    out, release = named
    path = next((out / "answers").glob("q*nuts3-nuts2*prefix*.csv"))
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head[:4] == ["query", "nuts3:nuts2", "age", "answer"]
    assert {row[1] for row in rows} == {"11", "21"}
    assert "mean of poor by sex" in {table.name for table in release.statistics}


def test_workbook_has_labels_beside_codes(named):
    out, release = named
    book = openpyxl.load_workbook(out / "answers.xlsx")
    titles = [row[1] for row in book["tables"].iter_rows(min_row=2, values_only=True)]
    catalogue = release.options.catalogue()
    assert titles == [table_title(table.product, catalogue) for table in release.tables]
    sheet = next(sheet for sheet in book if sheet["A1"].value.startswith("Mean net income"))
    head, first = list(sheet.iter_rows(min_row=5, max_row=6, values_only=True))
    assert head[:5] == ("query", "nuts3:nuts2", "Region (label)", "sex", "Sex (label)")
    assert first[:5] == ("s1", "11", "Vienna", "1", "men")
    assert sheet["F6"].number_format == "#,##0"
    rates = next(sheet for sheet in book if sheet["A1"].value == "Poverty rate by sex")
    assert rates["D6"].number_format == "#,##0.0%"
    assert sheet.column_dimensions["B"].width >= len("nuts3:nuts2")


PUBLICATIONS = pytest.mark.parametrize(
    ("file", "first_sheet", "title"),
    [
        ("publication.xlsx", "Contents", "Mean net income by region and sex, EUR per year"),
        (
            "publication.de.xlsx",
            "Inhalt",
            "Mittleres Nettoeinkommen nach Region und Geschlecht, EUR je Jahr",
        ),
    ],
)


@PUBLICATIONS
def test_publication_workbook_has_linked_sheets(named, file, first_sheet, title):
    out, release = named
    book = openpyxl.load_workbook(out / file)
    assert book.sheetnames[0] == first_sheet
    tables = (*release.tables, *release.statistics)
    assert book.sheetnames[1:-1] == [table.id for table in tables]
    links = {
        cell.value: cell.hyperlink.location for cell in book.worksheets[0]["B"] if cell.hyperlink
    }
    assert links[title] == "'s1'!A1"
    assert book["s1"]["A1"].value == title
    assert book["s1"]["A3"].hyperlink.location == f"'{first_sheet}'!A1"
    texts = [cell.value for sheet in book for row in sheet.iter_rows() for cell in row]
    assert not [text for text in texts if isinstance(text, str) and "nuts3:nuts2" in text]


@pytest.mark.parametrize(
    ("file", "head", "labels"),
    [
        ("publication.xlsx", ["Region", "Mean"], ["men", "women", "Null"]),
        ("publication.de.xlsx", ["Region", "Mittelwert"], ["Männer", "Frauen", "Null"]),
    ],
)
def test_publication_workbook_cross_tabulates(named, file, head, labels):
    out, release = named
    book = openpyxl.load_workbook(out / file)
    sheet = book["s1"]
    assert [sheet["A6"].value, sheet["B6"].value] == head  # a line for NOT PRIVATE is above
    shown_labels = [cell.value for cell in sheet[7]][1:4]
    assert shown_labels[:2] == labels[:2]
    assert len(set(shown_labels)) == 3
    means = release.statistics[0].values[0]
    assert [cell.value for cell in sheet[8]][1:4] == pytest.approx(means.tolist())
    assert sheet["A8"].value in {"Vienna", "Wien"}
    assert sheet["B8"].number_format == "#,##0"
    assert book["s2"]["B7"].number_format == "#,##0.0%"


def test_publication_table_has_few_labels_across():
    def keys(*sizes, times=(), blocks=0):
        labels = tuple(tuple(map(str, range(size))) for size in sizes)
        is_time = tuple(key in times for key in range(len(sizes)))
        table = PublicationTable(
            id="q1",
            title="",
            unit="",
            headings=(),
            labels=labels,
            blocks=(None,) * blocks,
            flags=None,
            half_width=1.0,
            number_format=NumberFormat(),
            is_time=is_time,
        )
        return table.column_key, table.row_keys

    assert keys() == (None, [])
    assert keys(3) == (None, [0])
    assert keys(9, 2, 3) == (2, [0, 1])
    assert keys(2, 75) == (0, [1])
    assert keys(30, 40) == (None, [0, 1])
    assert keys(5, 9, times=(0,)) == (0, [1])  # few years are columns
    assert keys(24, 9, times=(0,)) == (1, [0])
    assert keys(2, 5, blocks=2) == (1, [0])
    assert keys(2, 6, blocks=3) == (0, [1])  # 18 columns would be unreadable in print


def test_wrapped_headings_fit_their_row(named):
    out, _ = named
    for name in ("publication.xlsx", "publication.de.xlsx"):
        book = openpyxl.load_workbook(out / name)
        for sheet in book.worksheets[1:-1]:
            merged = {str(area).split(":")[0] for area in sheet.merged_cells.ranges}
            for cell in (cell for row in sheet.iter_rows(5, 8) for cell in row):
                if not cell.font.bold or not cell.value or cell.coordinate in merged:
                    continue
                width = int(sheet.column_dimensions[cell.column_letter].width)
                lines = len(textwrap.wrap(cell.value, width))
                height = sheet.row_dimensions[cell.row].height or 13.5
                assert height >= 13 * lines, (sheet.title, cell.value)


def test_sdmx_has_ids_of_codes_and_names_in_each_language(named):
    out, _ = named
    structure = (out / "structure.sdmx.xml").read_text(encoding="utf-8")
    assert '<com:Name xml:lang="en">Region</com:Name>' in structure
    assert '<com:Name xml:lang="de">Geschlecht</com:Name>' in structure
    assert '<com:Name xml:lang="de">Wien</com:Name>' in structure
    assert 'id="NUTS3_NUTS2"' in structure
    message = next((out / "answers").glob("s1*.sdmx.csv")).read_text(encoding="utf-8")
    assert "NUTS3_NUTS2: Region" in message
    assert "11: Vienna" in message
    assert "INCOME: EUR per year" in message


def test_names_survive_the_manifest(named):
    out, release = named
    stored_release = ln.read_release(out)
    assert stored_release.options.names == release.options.names
    assert stored_release.options.languages == ("en", "de")


@pytest.mark.slow
def test_headings_without_names_are_columns(tmp_path):
    release = publish(tmp_path, SPEC.replace("title = {", "# {"))
    table = release.tables["q5"]
    assert key_headings(table.product.along, load_catalogue("de")) == table.product.keys


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ('rows = { en = "persons" }', "names rows has en only. Add de"),
        ('rows = { fr = "personnes" }', "a language of names rows must be"),
        ('rows = ""', "names rows must be a text of one line"),
        ("rows = 3", "names rows must be a text of one line"),
        ('attributes.region = "region"', "a key of names attributes must be"),
        ('levels.nuts4 = "x"', "a key of names levels must be"),
        ('measures.pay = "pay"', "a key of names measures must be"),
        ('tables.q99 = "x"', "a key of names tables must be"),
        ('people = "x"', "a key of names must be"),
        ("measures.poor.decimals = -1", "decimals must be"),
        ('measures.poor.percent = "yes"', "percent must be true or false"),
        ('measures.poor.colour = "red"', "a key of names measures poor must be"),
    ],
)
def test_wrong_names_are_refused(tmp_path, names, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_spec_text(tmp_path, f"{SPEC}\n[names]\n{names}\n")


def test_codes_may_be_spelled_as_languages(tmp_path):
    options = ln.Options(labels={"country": {"de": "Germany", "en": "England"}})
    assert options.languages == ("en",)


def test_language_of_a_spec_chooses_the_main_page(tmp_path):
    spec = read_spec_text(tmp_path, SPEC.replace("[output]", '[output]\nlanguage = "de"'))
    assert spec.options.languages == ("de", "en")
    only = read_spec_text(tmp_path, SPEC.replace("[output]", '[output]\nlanguages = ["de"]'))
    assert only.options.languages == ("de",)


def test_plots_have_display_names(named):
    _, release = named
    chart = str(release.tables["nuts3:nuts2 x age:prefix"].plot().to_dict())
    assert "Region" in chart
    assert "Vienna" in chart
    assert "nuts3" not in chart


def test_levels_of_dates_have_names(tmp_path):
    text = """
[privacy]
rho = 1
[domain.month]
dates = { from = "2024-01-01", to = "2024-12-31", by = "month" }
[[workload]]
queries = { month = { level = "quarter" } }
[[workload]]
queries = { month = { ranges = [["2024-01", "2024-03"]] } }
[[workload]]
queries = { month = { rolling = 3 } }
[names]
attributes.month = "Monat"
levels.quarter = "Quartal"
rows = "Fälle"
[output]
language = "de"
"""
    spec = read_spec_text(tmp_path, text)
    catalogue = spec.options.catalogue()
    titles = [table_title(product, catalogue) for product in spec.workload.products]
    assert titles == [
        "Fälle nach Quartal",
        "Fälle nach Monat (Bereiche)",
        "Fälle nach Monat (je 3 Perioden zusammen)",
    ]


@pytest.mark.parametrize(
    ("language", "label", "written"),
    [
        ("en", "2024-03", "March 2024"),
        ("de", "2024-03", "März 2024"),
        ("en", "2024-Q3", "Q3 2024"),
        ("de", "2024-Q3", "3. Quartal 2024"),
        ("de", "2024-03-05", "2024-03-05"),
        ("de", "2024-13", "2024-13"),
        ("de", "2024", "2024"),
    ],
)
def test_pages_write_months_and_quarters_in_words(language, label, written):
    assert load_catalogue(language).format_period(label) == written


@pytest.mark.parametrize("unit", ["household", ""])
def test_pages_name_units_by_their_name(tmp_path, unit):
    """Without a display name of units, sentences name their column."""
    domain = ln.Domain(income=ln.Bins(0, 40, 4, outside="clip")).as_complete()
    workload = ln.queries(domain, income="identity") + ln.cdf_queries(domain, "income")
    privacy = ln.Privacy(ln.PureDP(1), unit_column="db030", max_rows=3)
    names = {"rows": "persons", "units": "households", **({"unit": unit} if unit else {})}
    rows = pd.DataFrame({"db030": range(4000), "income": [row % 40 for row in range(4000)]})
    ln.release(
        ln.plan(workload, privacy),
        rows,
        seed=1,
        out=tmp_path / "out",
        options=ln.Options(names=names, languages=("en", "de"), guard="1/10"),
    )
    for file in ("report.html", "report.de.html"):
        page = (tmp_path / "out" / file).read_text(encoding="utf-8")
        text = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
        assert ("db030" in text) == (not unit)
        assert re.search(r"\d\s?%", text)  # shares of the distribution function


@pytest.mark.parametrize("unit", ["Person", ""])
def test_phrases_about_a_unit_call_its_rows_rows(unit):
    """A person does not have employees because the rows of a panel are named employees."""
    names = Names(rows="Beschäftigte", units="Personen", unit=unit)
    catalogue = Catalogue("de", names=names)
    privacy = ln.Privacy(ln.ZCDP(1), unit_column="id", max_rows=7)
    phrases = [
        name_protected_unit(privacy, catalogue),
        describe_guessing_chance(privacy, catalogue),
        name_with_row_limit("Jahr", privacy, catalogue),
    ]
    numbers = dict.fromkeys(("kept", "used", "kept_margin", "used_margin"), "9")
    phrases += [
        catalogue.say_count(key, 7, **name_unit(privacy, catalogue), **numbers)
        for key in ("about_unit", "cut", "of", "guard_kept", "limit_unit")
    ]
    for phrase in phrases:
        assert "Beschäftigte" not in phrase
    assert any("Zeilen" in phrase for phrase in phrases)


def test_ranges_of_numbers_are_not_windows_of_years():
    catalogue = load_catalogue("en")
    domain = ln.Domain(
        {"income": ln.Integers(1000, 1010), "year": ln.Dates("2015-01-01", "2019-12-31", by="year")}
    )
    incomes = ln.queries(domain, income=ln.ranges([(1000, 1004), (1001, 1005)]))
    years = ln.queries(domain, year=ln.ranges([("2015", "2017"), ("2016", "2018")]))
    assert "windows" not in table_title(next(iter(incomes)), catalogue)
    assert "windows of 3 periods" in table_title(next(iter(years)), catalogue)
