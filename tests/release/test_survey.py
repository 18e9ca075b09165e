"""Sampling errors of surveys: their rules, coverage, flags and suppression."""

import csv
import math
import re
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._texts import load_catalogue
from leastnoise._trusted.check import InputError
from page_parser import Page

SPEC = """
[source]
path = "people.csv"
[privacy]
rho = "8"
[domain.region]
categories = ["N", "S", "W"]
complete = true
[measures.pay]
clip = [0, 100]
[measures.poor]
clip = [0, 1]
[measures.w]
clip = [0, 20]
[[workload]]
means = { of = "pay", by = ["region"] }
weighted_by = "w"
[[workload]]
means = { of = "poor", by = ["region"] }
weighted_by = "w"
[[workload]]
queries = { region = "identity" }
weighted_by = "w"
[[workload]]
queries = { region = "identity" }
[plan]
strategy = "identity"
[output]
formats = ["csv", "xlsx", "sdmx"]
"""
DESIGN = """
[survey]
design_effect = "2"
sample = 900
population = 9000
"""
# W has few persons, so its numbers have large errors.
ROWS = pd.DataFrame(
    {
        "region": ["N"] * 500 + ["S"] * 385 + ["W"] * 15,
        "pay": [50] * 900,
        "poor": [0, 1, 0] * 300,
        "w": [10] * 900,
    }
)


def publish(folder, text, seed=3, out="out"):
    """Publish a release with a spec."""
    path = folder / "spec.toml"
    path.write_text(text, encoding="utf-8")
    spec = ln.read_spec(path)
    plan = ln.plan(spec.workload, spec.planned_privacy, strategy="identity")
    return ln.release(plan, ROWS, seed=seed, out=folder / out, options=spec.options)


def table_named(release, name):
    return next(table for table in (*release.statistics, *release.tables) if table.name == name)


def report_text(folder):
    """Return the text of the whole report."""
    return Page((folder / "out/report.html").read_text(encoding="utf-8")).text


def first_screen(folder):
    text = Page((folder / "out" / "report.html").read_text(encoding="utf-8")).text
    return text[: text.index("The tables")]


def test_design_effect_gives_errors_of_counts_and_shares(tmp_path):
    release = publish(tmp_path, SPEC + DESIGN)
    counts = table_named(release, "sum of w by region")
    share = counts.answer / 9000
    expected = 9000 * np.sqrt(2 * (1 - 0.1) * share * (1 - share) / 900)
    assert counts.sampling.std == pytest.approx(expected)
    persons = table_named(release, "region")
    share = persons.answer / 900
    assert persons.sampling.std == pytest.approx(900 * np.sqrt(2 * 0.9 * share * (1 - share) / 900))
    rates = table_named(release, "mean of poor weighted by w by region")
    people = 900 * rates.extra_columns["sum_of_weights"] / 9000
    assert rates.sampling.std == pytest.approx(
        np.sqrt(2 * 0.9 * rates.values * (1 - rates.values) / people)
    )
    pay = table_named(release, "mean of pay weighted by w by region")
    assert pay.sampling is None  # its deviation is not stated


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ('cv = "0.05"', lambda x: 0.05 * x),
        ("standard_error = 7", lambda x: np.full(x.shape, 7.0)),
        ("standard_error = [7, 8, 9]", lambda x: np.array([7.0, 8.0, 9.0])),
        ('variance_model = { a = "0.001", b = "2.5" }', lambda x: x * np.sqrt(0.001 + 2.5 / x)),
        ('design_effect = "2"\ndeviation = 30', None),
    ],
)
def test_rules_of_a_mean_give_its_sampling_error(tmp_path, rule, expected):
    sizes = "sample = 900\npopulation = 9000\n" if "design" in rule else ""
    release = publish(tmp_path, f"{SPEC}\n[survey]\n{sizes}[survey.tables.s1]\n{rule}\n")
    pay = release.statistics["s1"]
    if expected is None:
        people = 900 * pay.extra_columns["sum_of_weights"] / 9000
        errors = np.sqrt(2 * 0.9 * 30**2 / people)
    else:
        errors = expected(pay.values)
    assert pay.sampling.std == pytest.approx(errors)
    assert release.statistics["s2"].sampling is None


def test_standard_errors_of_a_file_are_found_by_labels(tmp_path):
    (tmp_path / "errors.csv").write_text("region,se\nW,9\nN,7.5\nS,8\n", encoding="utf-8")
    rule = '[survey.tables.s1]\nstandard_error = { file = "errors.csv", column = "se" }\n'
    release = publish(tmp_path, f"{SPEC}\n{rule}")
    assert release.statistics["s1"].sampling.std.tolist() == [7.5, 8.0, 9.0]


def test_comparison_of_surveys_adds_both_samples(tmp_path):
    last, this = (
        publish(tmp_path, f"{SPEC}[survey]\ncv = '{cv}'\n", seed=seed, out=f"out{seed}")
        for seed, cv in ((3, "0.03"), (4, "0.04"))
    )
    compared = ln.compare_releases(this, last, mean="pay weighted by w", by=["region"])
    row = {name: values[0] for name, values in compared.numbers.items()}
    sampling_std = math.hypot(0.04 * row["value"], 0.03 * row["against"])
    assert row["difference_sampling_std"] == pytest.approx(sampling_std, rel=1e-6)
    noise = row["difference_high"] - row["difference"]
    half_width = math.hypot(noise, 1.959964 * sampling_std)
    assert row["difference_both_high"] - row["difference"] == pytest.approx(half_width, rel=1e-6)
    assert row["lift_both_low"] < row["lift_low"] < row["lift_high"] < row["lift_both_high"]
    assert row["lift_both_high"] == row["ratio_both_high"] - 1
    counts = ln.compare_releases(this, last, by=["region"])
    assert "difference_both_low" in counts.numbers
    total = ln.compare_releases(this, last)  # no table of the releases has this number
    assert not [name for name in total.numbers if "both" in name]


@pytest.mark.parametrize(
    ("budget", "sizes"), [(ln.PureDP(1), (600, 500)), (ln.ZCDP("1/8"), (60, 90))]
)
def test_lifts_between_surveys_cover_the_populations(budget, sizes):
    """Repeated samples of two populations, each with noise; the lift is of their means."""
    rng = np.random.default_rng(21)
    domain = ln.Domain(region=["N", "S"], measures={"pay": ln.Measure("pay", 0, 100)}).as_complete()
    populations = [np.clip(rng.normal(mean, 20, (2, 20_000)), 0, 100) for mean in (40, 55)]
    truth = populations[1].mean(axis=1) / populations[0].mean(axis=1) - 1
    plan = ln.plan(ln.mean_queries(domain, "pay", by=["region"]), budget, strategy="identity")
    covered = []
    for seed in range(20):
        releases = []
        for number, (population, size) in enumerate(zip(populations, sizes, strict=True)):
            values = np.stack([rng.choice(region, size) for region in population])
            rows = pd.DataFrame({"region": np.repeat(["N", "S"], size), "pay": values.reshape(-1)})
            survey = {"tables": {"s1": {"standard_error": str(round(20 / size**0.5, 6))}}}
            options = ln.Options(survey=survey)
            releases.append(ln.release(plan, rows, seed=2 * seed + number, options=options))
        numbers = ln.compare_releases(releases[1], releases[0], mean="pay", by=["region"]).numbers
        for kind in ("lift", "lift_both"):
            assert (numbers[f"{kind}_low"] < numbers["lift"]).all()
        covered.append(
            [
                (numbers[f"{kind}_low"] <= truth) & (truth <= numbers[f"{kind}_high"])
                for kind in ("lift", "lift_both")
            ]
        )
    noise_only, both = np.mean(covered, axis=(0, 2))
    assert both >= 0.85  # of 40 lifts; the standard error is 0.035
    assert noise_only < both


def test_intervals_are_added_in_quadrature(tmp_path):
    release = publish(tmp_path, f'{SPEC}\n[survey]\ncv = "0.05"\n')
    table = table_named(release, "sum of w by region")
    sampling = table.sampling
    reach = 1.959964 * sampling.std
    assert sampling.low == pytest.approx(table.answer - reach, rel=1e-6)
    assert sampling.both_high == pytest.approx(
        table.answer + np.hypot(table.high - table.answer, reach), rel=1e-6
    )
    both_std = np.hypot(table.noise_std, sampling.std)
    assert sampling.cv == pytest.approx(both_std / np.abs(table.answer))
    assert table.margins_with_sampling == pytest.approx(sampling.both_high - table.answer)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [ln.PureDP("1/2"), ln.ZCDP("1/50")])
def test_both_intervals_cover_the_population(budget):
    """Repeated samples of one population: intervals of the noise cover only the sample."""
    rng = np.random.default_rng(20)
    size = 400
    people = 4000
    population = np.array(["N"] * 2400 + ["S"] * 1600)
    domain = ln.Domain(region=["N", "S"]).as_complete()
    plan = ln.plan(ln.marginals(domain, ways=1), budget, strategy="identity")
    survey = {"design_effect": 1, "sample": size, "population": people}
    options = ln.Options(survey=survey)
    truth = size * np.array([0.6, 0.4])
    covered = []
    for seed in range(300):
        sample = rng.choice(population, size, replace=False)
        release = ln.release(plan, pd.DataFrame({"region": sample}), seed=seed, options=options)
        (table,) = release.tables
        by_noise = (table.low <= truth) & (truth <= table.high)
        by_both = (table.sampling.both_low <= truth) & (truth <= table.sampling.both_high)
        covered.append((by_noise.mean(), by_both.mean()))
    noise_coverage, both_coverage = np.mean(covered, axis=0)
    # 300 releases of two dependent numbers: the standard error of the coverage is about 0.012.
    assert both_coverage >= 0.95 - 3 * 0.0126
    assert noise_coverage < both_coverage - 0.02


def test_weighted_release_without_survey_gives_no_yes(tmp_path):
    publish(tmp_path, SPEC)
    screen = first_screen(tmp_path)
    assert "The sampling error is not included in any margin" in screen
    assert "yes" not in screen.lower()
    assert "the sampling error where it is stated" not in report_text(tmp_path)


def test_survey_gives_no_yes_if_only_the_noise_is_small(tmp_path):
    release = publish(tmp_path, SPEC + DESIGN)
    screen = first_screen(tmp_path)
    assert "the sampling error where it is stated" in report_text(tmp_path)
    assert re.search(r"The sampling error is not stated, and so in no margin, for .*pay", screen)
    # The sampling error of the covered tables is too large for a yes.
    assert "Yes, for" not in screen
    assert "Only the noise is small for sum of pay weighted by w by region" in screen
    flags = [
        table.sampling.flag_counts
        for table in (*release.statistics, *release.tables)
        if table.sampling is not None
    ]
    total = np.sum(flags, axis=0)
    assert f"{total[0]} are reliable" in screen
    assert f"{total[2]} are not reliable" in screen


def test_flags_follow_the_cv_of_both_errors(tmp_path):
    release = publish(tmp_path, f'{SPEC}{DESIGN}caution = "0.1"\nunreliable = "0.2"\n')
    sampling = table_named(release, "sum of w by region").sampling
    expected = 1 + (sampling.cv > 0.1) + (sampling.cv > 0.2)
    assert sampling.reliability.tolist() == expected.tolist()
    assert sampling.reliability.tolist()[0] == 1
    assert sampling.reliability.tolist()[2] == 3


def test_suppressed_answers_are_in_no_file(tmp_path):
    text = f'{SPEC}{DESIGN}caution = "0.1"\nunreliable = "0.2"\nsuppress = true\n'
    open_release = publish(tmp_path, text.replace("suppress = true", ""))
    value = table_named(open_release, "sum of w by region").answer[2]
    (tmp_path / "closed").mkdir()
    release = publish(tmp_path / "closed", text)
    table = table_named(release, "sum of w by region")
    assert math.isnan(table.answer[2])
    assert math.isnan(table.sampling.cv[2])
    out = tmp_path / "closed" / "out"
    path = next((out / "answers").glob("*sum-of-w-by-region.csv"))
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    row = dict(zip(head, rows[2], strict=True))
    assert {name for name, text in row.items() if text} == {
        "query",
        "region",
        "noise_std",
        "reliability",
    }
    assert row["reliability"] == "3"
    assert "not published" in (out / "report.html").read_text(encoding="utf-8")
    shown = f"{value:,.0f}"
    for file in out.rglob("*"):
        if file.is_file() and "measurements" not in file.parts and file.suffix != ".xlsx":
            text = file.read_text(encoding="utf-8")
            assert f">{shown}<" not in text
            assert f",{value!r}," not in text
    book = openpyxl.load_workbook(out / "answers.xlsx")
    sheet = next(sheet for sheet in book if sheet["A1"].value == "sum of w by region")
    head, *_, last = list(sheet.iter_rows(min_row=5, values_only=True))
    line = dict(zip(head, last, strict=True))
    assert line["answer"] is None
    assert line["reliability"] == "not published"
    published = openpyxl.load_workbook(out / "publication.xlsx")
    sheet = next(sheet for sheet in published if sheet["A1"].value == "sum of w by region")
    shown = [cell.value for cell in sheet["B"] if cell.value is not None]
    assert "\u2013" in shown
    assert value not in shown


def test_suppression_links_a_mean_with_its_sum_and_count(tmp_path):
    """A suppressed mean must not follow from a published sum and count, nor the other way."""
    rules = {
        "s1": "mean of pay weighted by w by region",
        "q2": "sum of pay weighted by w by region",
        "q1": "sum of w of rows with pay by region",
    }
    for key, name in rules.items():
        folder = tmp_path / key
        folder.mkdir()
        rule = f"[survey]\nsuppress = true\n[survey.tables.{key}]\nstandard_error = [0, 0, 1e9]\n"
        release = publish(folder, f"{SPEC}\n{rule}")
        assert release.tables["q2"].name == rules["q2"]
        assert release.tables["q1"].name == rules["q1"]
        hidden = {
            table.name: np.isnan(getattr(table, "answer", getattr(table, "values", None))).tolist()
            for table in (release.statistics["s1"], release.tables["q1"], release.tables["q2"])
        }
        assert hidden[name] == [False, False, True]
        assert hidden[rules["s1"]] == [False, False, True]
        published = [name for name in rules.values() if not hidden[name][2]]
        assert len(published) <= 1  # one of three numbers never gives another
        extra = release.statistics["s1"].extra_columns
        assert np.isnan(extra["sum"]).tolist() == [False, False, True]
        assert np.isnan(extra["sum_of_weights"]).tolist() == [False, False, True]


def test_suppression_needs_only_what_is_released(tmp_path):
    """The flags follow from the noisy measurements alone: no data are read for them."""
    text = f"{SPEC}{DESIGN}suppress = true\n"
    release = publish(tmp_path, text)
    stored_release = ln.read_release(tmp_path / "out")
    for table, same in zip(
        (*release.statistics, *release.tables),
        (*stored_release.statistics, *stored_release.tables),
        strict=True,
    ):
        for name, values in table.numbers().items():
            assert np.array_equal(values, same.numbers()[name], equal_nan=True)


def test_sdmx_marks_numbers_of_low_reliability(tmp_path):
    publish(tmp_path, f'{SPEC}\n[survey]\ncv = "0.2"\n')
    path = next((tmp_path / "out" / "answers").glob("*sum-of-w-by-region.sdmx.csv"))
    text = path.read_text(encoding="utf-8")
    assert "U: Low reliability" in text
    assert "SAMPLING_STD: Standard error of the sample" in text


@pytest.mark.parametrize(
    ("survey", "message"),
    [
        ("cv = 0", "survey cv must be a number above 0"),
        ("cv = -1", "survey cv must be"),
        ('cv = "0.1"\nstandard_error = 3', "one with a single rule"),
        ("design_effect = 2", "must have sample and population"),
        ("design_effect = 2\nsample = 9\npopulation = 3", "survey sample must be at most"),
        ("caution = 1", "State how large the sampling error is"),
        ('cv = "0.1"\ncaution = "0.5"', "survey caution must be"),
        ('cv = "0.1"\nsuppress = "yes"', "survey suppress must be true or false"),
        ('cv = "0.1"\nbias = 3', "a key of survey must be"),
        ("variance_model = { a = 1 }", "a table { a = ..., b = ... }"),
        ("cv = [1, 2, 3]", "Give lists to single tables"),
        ("tables.q99.cv = 1", "a key of survey tables must be"),
        ("tables.s1.cv = [1, 2]", "one number, or one for each of the 3 answers"),
        ("tables.s1.suppress = true", "survey tables s1 must be a table with one of"),
        ("sample = 9\npopulation = 90\ntables.s1.design_effect = 2", "must have deviation"),
        ("sample = 9\npopulation = 90\ntables.q2.design_effect = 2", "sums of amounts"),
        ('tables.s1.cv = { file = "no.csv", column = "cv" }', "does not exist"),
    ],
)
def test_wrong_surveys_are_refused(tmp_path, survey, message):
    path: Path = tmp_path / "spec.toml"
    path.write_text(f"{SPEC}\n[survey]\n{survey}\n", encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)):
        ln.read_spec(path)


def test_chart_leaves_out_suppressed_means(tmp_path):
    rule = "[survey]\nsuppress = true\n[survey.tables.s1]\nstandard_error = [0, 0, 1e9]\n"
    release = publish(tmp_path, f"{SPEC}\n{rule}")
    values = release.statistics["s1"].chart_spec(load_catalogue())["data"]["values"]
    assert [row["k0"] for row in values] == ["N", "S"]
    (tmp_path / "none").mkdir()
    hidden = publish(tmp_path / "none", SPEC + rule.replace("[0, 0, 1e9]", "1e9"))
    assert np.isnan(hidden.statistics["s1"].values).all()
    assert "not published" in (tmp_path / "none" / "out" / "report.html").read_text("utf-8")


def test_quantiles_with_sampling_error_have_no_spare_digits(tmp_path):
    text = f"""{SPEC}
[domain.income]
bins = {{ low = 0, high = 30000, count = 60 }}
[[workload]]
quantiles = {{ of = "income", at = ["0.5"], by = ["region"] }}
[survey]
cv = "0.0123"
[names]
rows = "persons"
"""
    path = tmp_path / "spec.toml"
    path.write_text(text, encoding="utf-8")
    spec = ln.read_spec(path)
    plan = ln.plan(spec.workload, spec.planned_privacy, strategy="identity")
    rows = ROWS.assign(income=np.linspace(100, 29900, len(ROWS)))
    release = ln.release(plan, rows, seed=3, options=spec.options)
    for _, share, value, interval in release.statistics[-1].format_rows(load_catalogue(), 3):
        assert share == "0.5"
        assert not re.search(r"\.\d", f"{value} {interval}")
