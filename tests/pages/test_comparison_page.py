"""The page of a comparison: texts in each language, numbers, files and refusals."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._charts import choose_chart
from leastnoise._estimation import Estimate
from leastnoise._pages import ComparisonView, shorten_titles, without_suppressed
from leastnoise._trusted.check import InputError
from page_parser import Page

REGIONS = ["AT1", "AT2", "AT3"]
NAMES = {
    "rows": {"en": "persons", "de": "befragte Personen"},
    "attributes": {
        "region": {"en": "region", "de": "Bundesland"},
        "sex": {"en": "sex", "de": "Geschlecht"},
    },
    "measures": {
        "income": {
            "name": {"en": "net income", "de": "Nettoeinkommen"},
            "mean": {"en": "mean net income", "de": "mittleres Nettoeinkommen"},
            "unit": {"en": "EUR per year", "de": "EUR je Jahr"},
        },
        "poor": {
            "name": {"en": "poverty", "de": "Armut"},
            "mean": {"en": "poverty rate", "de": "Armutsquote"},
            "percent": True,
            "decimals": 1,
        },
    },
}
LABELS = {
    "region": {"AT1": {"en": "Vienna", "de": "Wien"}, "AT2": "Tirol", "AT3": "Salzburg"},
    "sex": {"f": {"en": "women", "de": "Frauen"}, "m": {"en": "men", "de": "Männer"}},
}
DOMAIN = ln.Domain(
    region=REGIONS,
    sex=["f", "m"],
    measures={"income": ln.Measure("income", 0, 50_000, "100"), "poor": ln.Measure("poor", 0, 1)},
)
WORKLOAD = (
    ln.mean_queries(DOMAIN, "income", by=["region", "sex"])
    + ln.mean_queries(DOMAIN, "poor", by=["region"])
    + ln.marginals(DOMAIN, upto=2)
)


def people(year):
    """Return persons whose incomes grow by 2,000 from 2024 to 2025, except in AT3."""
    rows = []
    for number in range(1800):
        region = REGIONS[number % 3]
        grown = 2000 * (year - 2024) * (region != "AT3")
        poor = int(number % 10 < 2 + (year - 2024) * (region == "AT1"))
        rows.append((region, "fm"[number % 2], 20_000 + number % 7 * 1000 + grown, poor))
    return pd.DataFrame(rows, columns=["region", "sex", "income", "poor"])


def publish(year, **options):
    """Return a release of a year, with names and titles in English and German."""
    title = {"en": f"Survey of incomes {year}", "de": f"Erhebung der Einkommen {year}"}
    texts = {"title": title, "names": NAMES, "labels": LABELS, "languages": ["en", "de"]}
    plan = ln.plan(WORKLOAD, ln.PureDP(4), strategy="identity")
    return ln.release(plan, people(year), seed=year, options=ln.Options(**{**texts, **options}))


@pytest.fixture(scope="module")
def years():
    """Return the releases of 2025 and of 2024."""
    return publish(2025), publish(2024)


@pytest.fixture(scope="module")
def incomes(years):
    return ln.compare_releases(*years, mean="income", by=["region", "sex"])


@pytest.fixture(scope="module")
def income_page(incomes, tmp_path_factory):
    """Return the folder of the page of mean incomes, with pictures."""
    folder = tmp_path_factory.mktemp("pages") / "incomes"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEASTNOISE_CHARTS", raising=False)
        ln.write_comparison(incomes, folder)
    return folder


def read_page(path):
    return path.read_text(encoding="utf-8")


def view_in(comparison, language):
    catalogue = comparison.subject.sources[0].options.catalogue(language)
    return ComparisonView(comparison=comparison, catalogue=catalogue)


def test_page_is_written_in_each_language(income_page):
    english = read_page(income_page / "comparison.html")
    german = read_page(income_page / "comparison.de.html")
    title = "Mean net income by region and sex, EUR per year: 2025 compared with 2024"
    assert f"<h1>{title}</h1>" in english
    title = (
        "Mittleres Nettoeinkommen nach Bundesland und Geschlecht, EUR je Jahr: "
        "2025 und 2024 im Vergleich"
    )
    assert f"<h1>{title}</h1>" in german
    assert 'href="comparison.de.html"' in english
    assert 'href="comparison.html"' in german
    assert "Frauen" in german
    assert "women" not in german
    assert "not certain" not in german
    for page in (english, german):
        assert Page(page).text.count("epsilon = 4") == 2


def test_no_sentence_is_equal_in_both_languages(income_page):
    texts = []
    for name in ("comparison.html", "comparison.de.html"):
        shown = re.sub("<style>.*?</style>", "", read_page(income_page / name), flags=re.DOTALL)
        texts.append({text for text in re.findall(">([^<>]+)<", shown) if " " in text.strip()})
    shared = texts[0] & texts[1]
    assert [text for text in shared if len(re.findall(r"[a-zäöü]{3,}", text)) > 3] == []


def test_page_has_chart_with_description(income_page):
    page = read_page(income_page / "comparison.de.html")
    assert "Differenz, EUR je Jahr" in page
    description = re.search(r"<desc[^>]*>([^<]*)</desc>", page)[1]
    assert description.startswith("Mittleres Nettoeinkommen")
    assert "6 Differenzen" in description
    assert "Die gestrichelte Linie markiert die 0" in page
    Page(page)


def test_files_have_the_numbers_of_the_comparison(income_page, incomes):
    with (income_page / "comparison.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = incomes.columns()
    assert list(rows[0]) == list(columns)
    assert [row["region"] for row in rows] == columns["region"].tolist()
    for name in ("value", "against", "difference", "difference_low", "lift_high"):
        assert [float(row[name]) for row in rows] == columns[name].tolist()
    facts = json.loads(read_page(income_page / "comparison.json"))
    assert [row["difference"] for row in facts["rows"]] == columns["difference"].tolist()
    assert facts["names"] == {"first": ["2025"], "against": "2024"}
    assert [release["budget"] for release in facts["releases"]] == [{"epsilon": "4"}] * 2
    assert facts["title"].endswith("2025 compared with 2024")


def test_table_shows_intervals_in_local_notation(incomes):
    view = view_in(incomes, "de")
    assert view.key_headings == ["Bundesland", "Geschlecht"]
    assert view.number_headings[:4] == ["2025", "2024", "Differenz", "95-%-Intervall"]
    numbers = incomes.numbers
    for row, low, high in zip(
        view.rows(),
        numbers["difference_low"].reshape(-1),
        numbers["difference_high"].reshape(-1),
        strict=True,
    ):
        interval = row[5].replace("\u2212", "-").replace(".", "").replace(",", ".")
        ends = [float(end) for end in interval.split(" bis ")]
        assert np.abs(np.subtract(ends, [low, high])).max() < 0.1 * (high - low)
        expected = "nicht sicher"
        if low > 0:
            expected = "höher"
        elif high < 0:
            expected = "niedriger"
        assert row[-1] == expected
    directions = [row[-1] for row in view.rows()]
    assert view.counts.above == directions.count("höher") >= 3
    assert f"Bei {view.counts.above} von 6 Differenzen" in view.lead


@pytest.mark.parametrize(
    ("key", "lead"),
    [
        ("value", "For all 6 differences, the whole interval is above 0."),
        ("unclear", "All 6 intervals contain 0, so no direction is certain."),
        ("suppressed", "The difference is not published."),
        ("unknown", "All 6 intervals contain 0, so no direction is certain."),
    ],
)
def test_lead_counts_directions(incomes, key, lead):
    ones = np.ones(incomes.numbers["difference"].shape)
    ends = {"value": (ones, 2 * ones), "unclear": (-ones, ones), "suppressed": (np.nan, np.nan)}
    ends["unknown"] = ends["value"]
    low, high = ends[key]
    numbers = {**incomes.numbers, "difference_low": low * ones, "difference_high": high * ones}
    if key == "unknown":
        numbers |= {"difference_both_low": np.nan * ones, "difference_both_high": np.nan * ones}
    view = view_in(replace(incomes, numbers=numbers), "en")
    assert view.lead == lead
    if key == "unknown":
        assert "sampling error of this group is unknown" in view.table_notes[-1]
        assert view.rows()[0][5] == "\u2013"
        assert view.rows()[0][-1] == "not certain"
        assert view.dots() is None
    if key == "value":
        swapped = {**numbers, "difference_low": -2 * ones, "difference_high": -ones}
        lead = view_in(replace(incomes, numbers=swapped), "de").lead
        assert lead == "Bei allen 6 Differenzen liegt das ganze Intervall unter 0."


def test_rates_differ_by_percentage_points(years):
    view = view_in(ln.compare_releases(*years, mean="poor", by=["region"]), "en")
    assert view.quantity_title == "Poverty rate by region"
    assert view.axis_title == "Difference, percentage points"
    assert "Difference in percent" not in view.number_headings
    vienna = view.rows()[0]
    assert re.fullmatch(r"\d\d\.\d%", vienna[1])
    assert re.fullmatch(r"\+\d+\.\d\xa0pp", vienna[3])
    assert re.fullmatch(r"\u2212?\d+\.\d to \d+\.\d\xa0pp", vienna[4])


def test_titles_name_counts_shares_and_selected_rows(years):
    counts = view_in(ln.compare_releases(*years, by=["sex"], where={"region": "AT1"}), "de")
    assert counts.title == ("Befragte Personen nach Geschlecht: 2025 und 2024 im Vergleich")
    assert counts.explanations[-1] == (
        "Verglichen werden nur befragte Personen mit Bundesland = Wien."
    )
    shares = view_in(ln.compare_releases(*years, share={"sex": ["f"]}, by=["region"]), "de")
    assert shares.quantity_title == (
        "Anteil der befragten Personen mit Geschlecht = Frauen nach Bundesland"
    )
    assert shares.is_percent


def test_sums_have_their_scale(years):
    scaled = {**NAMES, "measures": {**NAMES["measures"]}}
    scaled["measures"]["income"] = {**scaled["measures"]["income"], "scale": 1000}
    releases = [
        replace(release, options=replace(release.options, names=scaled)) for release in years
    ]
    sums = ln.compare_releases(*releases, sum="income", by=["region"])
    catalogue = releases[0].options.catalogue("en", scaled=True)
    view = ComparisonView(comparison=sums, catalogue=catalogue)
    difference = sums.numbers["difference"][0] / 1000
    shown = float(view.rows()[0][3].replace(",", ""))
    assert shown == pytest.approx(difference, rel=0.01)
    assert view.dots().rows[0][2] == pytest.approx(difference)
    assert "thousand" in view.axis_title.lower()


def test_groups_of_one_release_have_their_labels(years):
    groups = ln.compare_groups(years[0], "sex", "f", "m", mean="income", by=["region"])
    view = view_in(groups, "de")
    assert view.title.endswith(": Frauen und Männer im Vergleich")
    assert view.number_headings[:2] == ["Frauen", "Männer"]
    each = ln.compare_groups(years[0], "region", ["AT1", "AT2"], "AT3", each=True)
    view = view_in(each, "en")
    assert view.title == "Persons in total: Vienna and Tirol, each compared with Salzburg"
    assert [row[0] for row in view.rows()] == ["Vienna", "Tirol"]
    assert "hold together" in view.coverage_notes[1]


def test_ab_test_page_states_both_errors(years, tmp_path):
    test = ln.ab_test(years[0], "sex", "f", "m", mean="income", std=2000, by=["region"])
    ln.write_comparison(test, tmp_path / "test", language="de")
    page = read_page(tmp_path / "test" / "comparison.html")
    assert "Standardfehler der Stichprobe" in page
    assert "Stichprobenfehler. Die wahre Differenz ist die Wirkung in der Grundgesamtheit" in page
    assert "2025" in page
    with pytest.raises(InputError, match="labels"):
        ln.write_comparison(test, tmp_path / "other", labels=["a", "b"])


def test_surveys_without_sampling_error_have_a_warning(years, tmp_path):
    surveys = [
        replace(release, options=replace(release.options, survey={"cv": "1/20"}))
        for release in years
    ]
    warning = '<p class="notice">The intervals do not include the sampling error'
    # Shares of rows are no table of the release, so no sampling error is stated for them.
    shares = ln.compare_releases(*surveys, share={"sex": "f"}, by=["region"])
    ln.write_comparison(shares, tmp_path / "shares")
    assert warning in read_page(tmp_path / "shares" / "comparison.html")
    ln.write_comparison(ln.compare_releases(*years, by=["sex"]), tmp_path / "rows")
    assert warning not in read_page(tmp_path / "rows" / "comparison.html")


def test_suppressed_numbers_are_left_out(tmp_path):
    releases = [publish(year, below=500) for year in (2025, 2024)]
    few = releases[0].tables["region x sex"]
    assert np.isnan(few.answer).all()
    counts = ln.compare_releases(*releases, by=["region", "sex"])
    assert np.isfinite(counts.numbers["difference"]).all()
    assert np.isnan(without_suppressed(counts).numbers["difference"]).all()
    ln.write_comparison(counts, tmp_path / "few")
    row = json.loads(read_page(tmp_path / "few" / "comparison.json"))["rows"][0]
    assert row["value"] is None
    assert row["difference_low"] is None
    page = read_page(tmp_path / "few" / "comparison.html")
    assert "does not publish one of the two numbers" in page
    by_sex = without_suppressed(ln.compare_groups(releases[0], "sex", "f", "m", by=["region"]))
    assert np.isnan(by_sex.numbers["difference"]).all()
    large = without_suppressed(ln.compare_groups(releases[0], "sex", "f", "m"))
    assert np.isfinite(large.numbers["difference"]).all()


def test_page_of_many_periods_has_lines(tmp_path):
    domain = ln.Domain(day=ln.Dates("2024-01-01", "2025-12-31", by="month"), arm=["A", "B"])
    plan = ln.plan(ln.marginals(domain, ways=2), ln.PureDP(1), strategy="identity")
    days = pd.date_range("2024-01-01", "2025-12-31", freq="D")
    visits = pd.DataFrame(
        {"day": days.repeat(2).strftime("%Y-%m-%d"), "arm": ["A", "B"] * len(days)}
    )
    release = ln.release(plan, visits, seed=1)
    change = ln.compare_groups(release, "arm", "B", "A", by=["day"])
    ln.write_comparison(change, tmp_path / "lines", language="de")
    page = read_page(tmp_path / "lines" / "comparison.html")
    assert '<html lang="de">' in page
    assert choose_chart(view_in(change, "de").lines()).name == "lines"
    assert "Januar 2024 bis Dezember 2025" in page
    assert page.count("<tr>") == 25


def test_chart_of_many_groups_has_the_largest_differences():
    domain = ln.Domain(place=[f"p{number}" for number in range(90)], sex=["f", "m"])
    plan = ln.plan(ln.marginals(domain, ways=2), ln.PureDP(1), strategy="identity")
    rows = [(f"p{number}", "f") for number in range(90) for _ in range(number)]
    release = ln.release(plan, pd.DataFrame(rows, columns=["place", "sex"]), seed=1)
    view = view_in(ln.compare_groups(release, "sex", "f", "m", by=["place"]), "en")
    plot = view.dots()
    assert view.shown_dots == len(plot.rows) == 40
    assert {row[0] for row in plot.rows} > {f"p{number}" for number in range(70, 90)}
    assert min(abs(row[2]) for row in plot.rows) > 40


@pytest.mark.parametrize(
    ("titles", "names"),
    [
        (("Census 2025: people", "Census 2024: people"), ("2025", "2024")),
        (("Micro-census", "Census"), ("Micro-census", "Census")),
        (("Census", "Census of 2024"), ("Census", "Census of 2024")),
        (("A b c d e f", "A v w x y z f"), ("A b c d e f", "A v w x y z f")),
        (("Census", "Census"), None),
        (("Census", ""), None),
    ],
)
def test_titles_are_shortened_to_their_difference(titles, names):
    assert shorten_titles(*titles) == names


def test_wrong_arguments_are_refused(incomes, years, tmp_path):
    for labels in (["2025"], ["a", "a"], "ab", ["a", ""]):
        with pytest.raises(InputError, match="two different texts"):
            ln.write_comparison(incomes, tmp_path / "out", labels=labels)
    with pytest.raises(InputError, match="language"):
        ln.write_comparison(incomes, tmp_path / "out", language="xx")
    with pytest.raises(InputError, match="must not exist yet"):
        ln.write_comparison(incomes, tmp_path)
    estimate = Estimate(years[0].observation)
    of_estimate = ln.compare_groups(estimate, "sex", "f", "m")
    with pytest.raises(InputError, match="needs finished releases"):
        ln.write_comparison(of_estimate, tmp_path / "out")
    assert not (tmp_path / "out").exists()
