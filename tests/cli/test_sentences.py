"""Tests that reports state a sentence if and only if it holds, in a grid of releases.

A new sentence of the catalogue needs its condition here, or an entry as a label or as text of
other pages.
"""

import html
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._pages import collect_contents, render_report
from leastnoise._publication._writing import _make_entry
from leastnoise._texts import list_sentences, load_catalogue

PURE = 'epsilon = "6"'
APPROXIMATE = 'epsilon = "6"\ndelta = "1e-9"'
CONCENTRATED = 'rho = "4"'
GAUSSIAN = f'{APPROXIMATE}\nshare = "1/2"'
GRID = [
    {"budget": PURE},
    {"budget": PURE, "language": "de", "round": "5", "guard": "1/10"},
    {"budget": CONCENTRATED, "below": "30", "unit": 1, "sum": True},
    {
        "budget": CONCENTRATED,
        "language": "de",
        "unit": 3,
        "per_cell": 1,
        "guard": "1/10",
        "contact": "a@example.org",
        "source": "Register",
    },
    {"budget": PURE, "unit": 3, "per_cell": 2, "round": "1/2", "below": "20", "objective": "worst"},
    {"budget": APPROXIMATE, "language": "de", "unit": 3, "per_cell": 1, "outside": "clip"},
    {
        "budget": APPROXIMATE,
        "unit": 24,
        "per_cell": 2,
        "outside": "clip",
        "columns": ["non_negative", "integer"],
        "sum": True,
    },
    {
        "budget": CONCENTRATED,
        "neighbours": "replace",
        "few": 2,
        "guard": "1/10",
        "round": "10",
        "columns": ["nnls"],
        "objective": "worst",
    },
    {
        "budget": PURE,
        "language": "de",
        "few": 2,
        "guard": "1/10",
        "unit": 3,
        "outside": "other",
        "columns": ["local_non_negative", "top_down"],
    },
    {
        "budget": 'epsilon = "least"',
        "target": True,
        "round": "5",
        "sum": True,
        "neighbours": "replace",
        "unit": 1,
    },
    {
        "budget": 'epsilon = "least"',
        "language": "de",
        "target": True,
        "below": "30",
        "unit": 3,
        "guard": "1/5",
    },
    {"budget": CONCENTRATED, "strategy": "dawa", "round": "5", "unit": 1},
    {"budget": PURE, "language": "de", "strategy": "dawa", "unit": 3, "covariances": False},
    {"budget": CONCENTRATED, "unit": 3, "people": "month"},
    {"budget": CONCENTRATED, "few": 3, "guard": "1/10", "sum": True},
    {"budget": PURE, "language": "de", "unit": 3, "people": "size", "guard": "1/10"},
    {"budget": GAUSSIAN, "unit": 3, "sum": True},
]


def spec_workload(case):
    """Return the tables [[workload]] of a case."""
    if not is_linear(case):
        return ['queries = { month = "prefix" }']
    target = "\nmargin = 40" if case.get("target") else ""
    workload = [
        f"marginals = {{ ways = 1 }}{target}",
        f'queries = {{ month = "identity", size = "identity" }}{target}',
    ]
    if case.get("sum"):
        workload.append('queries = { month = "identity" }\nsum = "pay"')
    if "people" in case:
        workload.append(f'queries = {{ {case["people"]} = "identity" }}\ncount = "units"')
    return workload


def spec_unit(case):
    """Return the line of the protected unit of a case, which may be empty."""
    if "unit" not in case:
        return ""
    limits = f"max_rows = {case['unit']}"
    if "per_cell" in case:
        limits += f', max_per_cell = {case["per_cell"]}, cell = "month"'
    if case.get("people") == "size":
        limits += ', of_unit = ["size"]'
    return f'unit = {{ column = "id", {limits} }}'


def spec(case):
    """Return the spec of a case: two attributes, the second with values beyond its cells."""
    lines = [
        "[source]",
        'path = "rows.csv"',
        "[privacy]",
        case["budget"],
        f'neighbours = "{case.get("neighbours", "add_remove")}"',
        spec_unit(case),
        "[domain.month]",
        "integers = [1, 12]",
        "complete = true",
        "[domain.size]",
        f"integers = [1, {case.get('few', 4)}]",
        "complete = true",
        f'outside = "{case.get("outside", "drop")}"',
        "[measures.pay]",
        "clip = [0, 10]",
    ]
    lines += [f"[[workload]]\n{table}" for table in spec_workload(case)]

    plan = {"strategy": "marginals"}
    plan |= {name: case[name] for name in ("objective", "guard", "strategy") if name in case}
    output = {
        name: case[name]
        for name in ("round", "below", "language", "contact", "source")
        if name in case
    }
    output |= dict.fromkeys(case.get("columns", []), True)
    for table, settings in (("plan", plan), ("output", output)):
        lines.append(f"[{table}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    return "\n".join(lines)


def stated_if(condition, keys):
    """Return the keys of sentences with their common condition."""
    return dict.fromkeys(keys.split(), condition)


def stated_by_number(keys, number):
    """Return the conditions of singular and plural sentences, by a number that may be missing."""
    singular_keys = " ".join(f"{key}[0]" for key in keys.split())
    plural_keys = " ".join(f"{key}[1]" for key in keys.split())
    conditions = stated_if(lambda case: number(case) == 1, singular_keys)
    return conditions | stated_if(lambda case: (number(case) or 0) > 1, plural_keys)


def budget_kind(case):
    """Return the definition of privacy of the requested budget."""
    if "rho" in case["budget"]:
        return "concentrated"
    if "share" in case["budget"]:
        return "gaussian"
    return "approximate" if "delta" in case["budget"] else "pure"


def protects(unit, neighbours):
    """Return the condition of a sentence on this unit and this relation of neighbours."""

    def condition(case):
        unit_of_case = "unit" if "unit" in case else "row"
        neighbours_of_case = case.get("neighbours", "add_remove")
        return (unit_of_case, neighbours_of_case) == (unit, neighbours)

    return condition


def protects_units_of_rows(neighbours, *, one_row):
    """Return the condition of a sentence on units of one row, or of several rows."""
    protects_units = protects("unit", neighbours)
    return lambda case: protects_units(case) and (case["unit"] == 1) == one_row


def has_budget(name):
    return lambda case: budget_kind(case) == name


def has_noise(name):
    return lambda case: case["noise"] == name


def has_objective(name):
    """Return the condition of a sentence on the objective of a plan of tables."""

    def condition(case):
        objective = "least" if case.get("target") else case.get("objective", "total")
        return is_linear(case) and objective == name

    return condition


def tables_disagree(case):
    return "round" in case or "below" in case


def says_unused(case):
    """Return whether the guard counts rows that no table uses."""
    return "guard" in case and bool(case.get("few")) and case.get("outside") != "other"


def is_linear(case):
    return "strategy" not in case


# Sentences that no case here states, by the tests that see them.
NEVER = (
    # Values in means (tests/session/test_means_of_values.py), paid releases, missing values
    # (test_missing.py), series (test_series.py), selected quantiles
    # (test_selected_quantiles.py), and other spec files.
    "clipped_means measure_values measure_weighted counts_values row_adds not_dropped",
    "kicker_private f_covariances joined joined_public large truncated bucketed grouped",
    "left_out_of_some missing_rows missing_rows_of cut_series interval_selected",
    "measure_squares",
    # One kind of dropped values (tests/session/test_missing.py), and shares that the noise
    # hides (tests/pages/test_report.py).
    "left_out_of_some_missing missing_rows_missing missing_rows_outside",
    "dropped_outside left_out_of_some_outside",
    "cut_share_hidden of_share_hidden fit_unused_hidden guard_few_hidden",
    "fit_unused_sums_hidden guard_few_sums_hidden",
    # Correlations and regressions (tests/session/test_moments.py).
    "unbounded complete_rows distance_from_middle measure_complete measure_deviations",
    "measure_products",
    # Series and charts (tests/session/test_series.py, tests/charts), rounding by quantity and
    # controlled rounding (tests/release/test_whole_rounding.py).
    "rounded_of left_out_of rounded_controlled interval_rounded_each interval_controlled",
    "axes_own axes_shared axis_cut",
    # Totals of units (tests/session/test_unit_totals.py).
    "measure_total measure_total_of clipped_totals clipped_totals_of unit_adds amount_cut",
    "about_unit_with_all_rows",
    "amount_hidden amount_unpublished amount_cells[0] amount_cells[1]",
)
FACTS = {
    "change_row_add_remove": protects("row", "add_remove"),
    "change_row_replace": protects("row", "replace"),
    "guess_row_add_remove": protects("row", "add_remove"),
    "guess_row_replace": protects("row", "replace"),
    "guess_unit_add_remove": protects("unit", "add_remove"),
    "guess_unit_replace": protects("unit", "replace"),
    "change_unit_add_remove[0]": protects_units_of_rows("add_remove", one_row=True),
    "change_unit_add_remove[1]": protects_units_of_rows("add_remove", one_row=False),
    "change_unit_replace[0]": protects_units_of_rows("replace", one_row=True),
    "change_unit_replace[1]": protects_units_of_rows("replace", one_row=False),
    "promise_pure": has_budget("pure"),
    "promise_approximate": has_budget("approximate"),
    "promise_concentrated": has_budget("concentrated"),
    "promise_gaussian": has_budget("gaussian"),
    "discrete_laplace": has_noise("discrete_laplace"),
    "discrete_gaussian": has_noise("discrete_gaussian"),
    "rounded_gaussian": has_noise("rounded_gaussian"),
    # No case has one-way tables alone under a pure budget.
    **stated_if(lambda case: False, "k_norm laplace_and_k_norm quantile_k_norm"),
    "cut_cell_saves": lambda case: "per_cell" in case and case["noise"] != "discrete_laplace",
    "guard_reduced": lambda case: False,  # no guard stopped an earlier release
    # All attributes are complete, and no case has a statement.
    **stated_if(
        lambda case: False, "statement_left_out statement_without_interval reading_agree_but"
    ),
    "quantile_laplace": lambda case: case["noise"] == "discrete_laplace",
    "quantile_normal": lambda case: case["noise"] != "discrete_laplace",
    # Every case has rows outside the months, which are dropped.
    **stated_if(lambda case: True, "dropped not_covered_dropped not_private kicker_seeded"),
    **stated_by_number("cut about_unit", lambda case: case.get("unit")),
    **stated_by_number("cut_cell", lambda case: case.get("per_cell")),
    **stated_by_number("limit_unit", lambda case: None if "per_cell" in case else case.get("unit")),
    **stated_by_number(
        "guard_kept", lambda case: case["unit"] if "guard" in case and "unit" in case else None
    ),
    **stated_by_number("biased", lambda case: len(case.get("columns", []))),
    **stated_if(lambda case: "unit" not in case, "about_row"),
    **stated_if(lambda case: "unit" in case, "beyond"),
    **stated_if(lambda case: "per_cell" in case, "limit_unit_cell"),
    **stated_if(lambda case: "people" in case, "counts_units beyond_rows"),
    **stated_by_number(
        "units_limited", lambda case: case["unit"] if case.get("people") == "month" else None
    ),
    **stated_if(lambda case: case.get("people") == "month", "units_each measure_units_of"),
    **stated_if(lambda case: case.get("people") == "size", "units_once measure_units"),
    **stated_if(lambda case: "round" in case, "rounded interval_rounded"),
    **stated_if(lambda case: "below" in case, "left_out"),
    **stated_if(lambda case: is_linear(case) and "round" not in case, "reading_exact limit_noise"),
    **stated_if(lambda case: is_linear(case) and "round" in case, "limit_noise_rounded"),
    # No case has a survey; tests/release tests the sentences of surveys.
    **stated_if(lambda case: False, "limit_noise_survey"),
    **stated_if(lambda case: is_linear(case) and "below" not in case, "reading_negative"),
    **stated_if(lambda case: is_linear(case) and not tables_disagree(case), "reading_sum"),
    **stated_if(lambda case: not tables_disagree(case), "reading_agree"),
    **stated_if(tables_disagree, "reading_apart"),
    **stated_if(lambda case: not is_linear(case), "limit_aware aware_errors"),
    **stated_if(lambda case: bool(case.get("sum")), "limit_sums clipped_sums"),
    **stated_if(lambda case: case.get("outside") == "clip", "clipped clipped_between"),
    **stated_if(lambda case: case.get("outside") in {"clip", "other"}, "dropped_missing"),
    **stated_if(lambda case: "guard" not in case, "dropped_unmeasured"),
    **stated_if(lambda case: "guard" in case and "unit" not in case, "guard"),
    **stated_if(lambda case: "unit" in case and "guard" not in case, "cut_unpublished"),
    **stated_if(
        lambda case: "unit" in case and "guard" in case and not case.get("target"), "cut_share"
    ),
    # The least budget that meets a target is small: the noise hides the share.
    **stated_if(
        lambda case: "unit" in case and "guard" in case and bool(case.get("target")), "cut_hidden"
    ),
    **stated_if(lambda case: says_unused(case) and not case.get("sum"), "guard_few"),
    **stated_if(lambda case: says_unused(case) and bool(case.get("sum")), "guard_few_sums"),
    **stated_if(lambda case: "integer" in case.get("columns", []), "biased_disagree"),
    **stated_if(lambda case: "nnls" in case.get("columns", []), "biased_nnls"),
    **stated_if(lambda case: "local_non_negative" in case.get("columns", []), "biased_local"),
    **stated_if(lambda case: "top_down" in case.get("columns", []), "biased_top_down"),
    **stated_if(lambda case: "contact" not in case, "ask_whom"),
    **stated_if(lambda case: "source" in case, "source_line"),
    "chosen_total": has_objective("total"),
    "chosen_worst": has_objective("worst"),
    "chosen_relative": has_objective("relative"),
    "chosen_least": has_objective("least"),
    **stated_if(lambda case: False, " ".join(NEVER)),
}
ALWAYS = {
    "lead",
    "exact_intro",
    "tables_intro",
    "promise_holds",
    "recompute_text",
    "ask_text",
    "limit_sample",
    "limit_each",
    "index_note",
}
# Clauses, labels, charts, and texts of other pages. tests/release sees names, surveys and squares,
# tests/profile the profiles, tests/pages the comparisons, tests/session and tests/release the
# numbers of rows that are left out or clipped, and tests/mechanisms, session and spec the texts of
# data-dependent strategies and of specs.
ELSEWHERE = re.compile(
    r"null_cell|outside_cell|measure_weights|"
    r"(sdmx|scale|be|cmp|pf|fit|further|sd|series|st|js|col|h|s|book|f|by|kind|"
    r"column|quantity|fate|how|name|meta|title|unit|aware|stated|regime|largest|exact|"
    r"error_ratio|fact)_\w+|"
    r"(in_)?tables|answers|further|done|of(_share)?|pure|approximate|concentrated|"
    r"gaussian(_cost)?|over_10_300|rule|measure|interval(_aware|_smoothed)?|alt(_left_out)?|"
    r"more_attributes|mark_seeded|written_on|what(_nothing|_made)?|counts(_changes)?|sums_of|"
    r"protects(_\w+)?|about_named_rows|"
    r"size|find|index_(alone|cut)|leaves_out_none|share_of_rows|meta|show_table|rows_\w+|"
    r"not_drawn|up_to|without|searched|computed(_aware)?|no_receipt|points|"
    r"cite_(row|unit|change_\w+)|strategy_\w+|plan_(step|case)_\w+|ledger_unit|"
    r"this_language|authority_code|quoted_name|in_total|quoted|survey(_\w+)?|flags?(_\w+)?|(rule|"
    r"index|limit|exact_intro)_(survey|standard_error|cv|variance_model|design_effect)|"
    r"statement_noise_only|profile_\w+|utility_\w+|bounds_found|after(_bound|_units)?|alike|other|"
    r"vague|squared|cite(_text)?|recompute|ask|contact|all_rows|"
    r"from_to(_under)?|over_to|(under|up_to)_value|or_(less|more)|"
    r"statistics_intro(_cdf)?|quarter_of_year|statements_intro|dropped_suppressed|"
    r"values_(beyond|above|below|without|from|up_to)(_\w+)?"
)


def test_catalogue_sentences_state_their_condition():
    """A new sentence needs a condition in FACTS, or a place in ELSEWHERE."""
    keys = set(list_sentences("en"))
    assert set(FACTS) | ALWAYS <= keys
    for key in keys - set(FACTS) - ALWAYS:
        assert ELSEWHERE.fullmatch(key.partition("[")[0]), key


def has_sentence(page, sentence):
    """Tell whether a page has a sentence, with any values in its places."""
    parts = [part.replace("%%", "%") for part in re.split(r"%\(\w+\)s", sentence)]
    if not all(part in page for part in parts):
        return False
    # A value at either end of the sentence is always there.
    value = ".{1,400}?"
    pattern = value.join(map(re.escape, parts)).removeprefix(value).removesuffix(value)
    return re.search(pattern, page) is not None


@pytest.fixture(autouse=True)
def _rows(folder):
    """Write 900 rows of 150 people; a fifth of the sizes is beyond 2, none beyond 4."""
    rng = np.random.default_rng(5)
    sizes = rng.choice([1, 2, 3, 4], 900, p=[0.4, 0.4, 0.1, 0.1])
    columns = {
        "id": rng.integers(0, 150, 900),
        "month": rng.integers(1, 13, 900),
        "size": sizes,
        "pay": rng.integers(0, 15, 900),
    }
    pd.DataFrame(columns).to_csv(folder / "rows.csv", index=False)


def visible_text(page):
    """Return the text of a page on one line, without tags, scripts and pictures."""
    text = re.sub(r"<(script|style|svg).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(text))


def report_in(language, release):
    """Return the report of a release in a language."""
    release = replace(release, options=replace(release.options, language=language))
    entries = ((table, _make_entry(release, table, table.id)) for table in release.tables)
    return render_report(release, collect_contents(release, entries)[0])


@pytest.mark.parametrize("number", range(len(GRID)))
def test_report_states_only_true_sentences(run, number):
    case = GRID[number]
    Path("case.toml").write_text(spec(case), encoding="utf-8")
    run.succeeds("release", "case.toml", "--out", "out", "--seed", number, "--no-cache")
    manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
    case = {**case, "noise": manifest["plan"]["mechanism"]}
    release = ln.read_release("out")
    for language in ("en", "de"):
        if language == case.get("language", "en"):
            report = Path("out/report.html").read_text(encoding="utf-8")
        else:
            report = report_in(language, release)
        page = visible_text(report)
        sentences = list_sentences(language)
        for key, condition in FACTS.items():
            assert has_sentence(page, sentences[key]) == condition(case), key
        for key in ALWAYS:
            assert has_sentence(page, sentences[key]), key
        if "round" in case:
            catalogue = load_catalogue(language)
            half = catalogue.format_value(Fraction(case["round"]) / 2)
            assert catalogue.say("interval_rounded", half=half) in page
    check_manifest(case, manifest)


def check_manifest(case, manifest):
    """Check the numbers and the note of the manifest of a case."""
    step = float(Fraction(case.get("round", "0")))
    half_width = 0.5 / manifest["measurements"]["grid"] + step / 2
    assert manifest["intervals"]["half_width_added"] == pytest.approx(half_width)
    note = manifest["post_processing"]["note"]
    is_rounded = bool(step or case.get("columns"))
    assert ("is not rounded" in note) == (not is_rounded)
    may_be_negative = is_linear(case) and "below" not in case and not case.get("columns")
    assert ("it may be negative" in note) == may_be_negative


@pytest.mark.parametrize(
    ("budget", "max_rows", "saves_noise"),
    [
        (PURE, 3, False),
        (APPROXIMATE, 3, False),
        ('epsilon = "1"\ndelta = "1e-5"', 12, True),
        (CONCENTRATED, 3, True),
    ],
)
def test_plan_warning_and_release_sentence_use_one_noise(run, budget, max_rows, saves_noise):
    """Plan and release agree, for all kinds of budgets, on whether a cell limit saves noise."""
    case = {"budget": budget, "unit": max_rows, "per_cell": 1}
    Path("case.toml").write_text(spec(case), encoding="utf-8")
    result = run.succeeds("release", "case.toml", "--out", "out", "--seed", 1, "--no-cache")
    assert ("makes nothing cheaper" in result.err) == (not saves_noise)
    assert ("need less noise" in result.out + result.err) == saves_noise
    assert ("state a budget for Gaussian noise" in result.err) == (budget == PURE)
