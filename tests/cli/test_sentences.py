"""Every sentence of a report holds for its release, in a grid of releases.

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
from leastnoise._release import collect_contents, list_sentences, load_catalogue, render_report
from leastnoise._release._writing import _make_entry

PURE, APPROXIMATE, CONCENTRATED = 'epsilon = "6"', 'epsilon = "6"\ndelta = "1e-9"', 'rho = "4"'
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


def spec(case: dict) -> str:
    """Return the spec of a case: two attributes, the second with values beyond its cells."""
    per_cell = f', max_per_cell = {case["per_cell"]}, cell = "month"' if "per_cell" in case else ""
    of_unit = ', of_unit = ["size"]' if case.get("people") == "size" else ""
    unit = (
        ""
        if "unit" not in case
        else f'unit = {{ column = "id", max_rows = {case["unit"]}{per_cell}{of_unit} }}'
    )
    output = {
        name: case[name]
        for name in ("round", "below", "language", "contact", "source")
        if name in case
    }
    output |= dict.fromkeys(case.get("columns", []), True)
    target = "\nmargin = 40" if case.get("target") else ""
    workload = [
        f"marginals = {{ ways = 1 }}{target}",
        f'queries = {{ month = "identity", size = "identity" }}{target}',
    ]
    workload += ['queries = { month = "identity" }\nsum = "pay"'] if case.get("sum") else []
    workload += (
        [f'queries = {{ {case["people"]} = "identity" }}\ncount = "units"']
        if "people" in case
        else []
    )
    if not linear(case):
        workload = ['queries = { month = "prefix" }']
    plan = {"strategy": "marginals"} | {
        name: case[name] for name in ("objective", "guard", "strategy") if name in case
    }
    lines = [
        "[source]",
        'path = "rows.csv"',
        "[privacy]",
        case["budget"],
        f'neighbours = "{case.get("neighbours", "add_remove")}"',
        unit,
    ]
    lines += [
        "[domain.month]",
        "integers = [1, 12]",
        "complete = true",
        "[domain.size]",
        f"integers = [1, {case.get('few', 4)}]",
        "complete = true",
    ]
    lines += [f'outside = "{case.get("outside", "drop")}"', "[measures.pay]", "clip = [0, 10]"]
    lines += [f"[[workload]]\n{part}" for part in workload]
    for part, keys in (("plan", plan), ("output", output)):
        lines += [f"[{part}]", *(f"{name} = {json.dumps(value)}" for name, value in keys.items())]
    return "\n".join(lines)


def said_when(condition, keys: str):
    """Return the keys of sentences with their common condition."""
    return dict.fromkeys(keys.split(), condition)


def sized(keys: str, fact):
    """Return pairs of singular and plural sentences, by a number that may be missing."""
    singular = said_when(
        lambda case: fact(case) == 1, " ".join(f"{key}[0]" for key in keys.split())
    )
    return singular | said_when(
        lambda case: (fact(case) or 0) > 1, " ".join(f"{key}[1]" for key in keys.split())
    )


def kind(case):
    """Return the definition of privacy of the requested budget."""
    return (
        "concentrated"
        if "rho" in case["budget"]
        else "gaussian"
        if "share" in case["budget"]
        else "approximate"
        if "delta" in case["budget"]
        else "pure"
    )


def changed(who, how):
    """Return the condition for a clause on this unit and this change of neighbours."""
    return lambda case: (
        (("unit" if "unit" in case else "row"), case.get("neighbours", "add_remove")) == (who, how)
    )


def apart(case):
    return "round" in case or "below" in case


def linear(case):
    return "strategy" not in case


# Facts of no case here: of values in means (tests/session/test_means_of_values.py), of paid
# releases, of missing values (tests/session/test_missing.py), of series
# (tests/session/test_series.py), of selected quantiles
# (tests/session/test_selected_quantiles.py), and of other spec files.
NEVER = (
    "clipped_means measure_values measure_weighted counts_values row_adds not_dropped "
    "kicker_private f_covariances joined "
)
NEVER += (
    "joined_public large truncated bucketed grouped left_out_of_some missing_rows missing_rows_of "
)
NEVER += "cut_series interval_selected measure_squares "
# one kind of dropped values (tests/session/test_missing.py), and shares that the noise hides
# (tests/release/test_report.py)
NEVER += "left_out_of_some_missing missing_rows_missing missing_rows_outside "
NEVER += "dropped_outside left_out_of_some_outside "
NEVER += "cut_share_hidden of_share_hidden fit_unused_hidden guard_few_hidden "
# correlations and regressions (tests/session/test_moments.py)
NEVER += "unbounded complete_rows distance_from_middle measure_complete measure_deviations "
NEVER += "measure_products "
# series and charts (tests/session/test_series.py, tests/charts), rounding by quantity and
# controlled rounding (tests/release/test_whole_rounding.py)
NEVER += "rounded_of left_out_of rounded_controlled interval_rounded_each interval_controlled "
NEVER += "axes_own axes_shared axis_cut "
# totals of units, which tests/session/test_unit_totals.py asks for
NEVER += "measure_total measure_total_of clipped_totals clipped_totals_of unit_adds amount_cut "
NEVER += "amount_hidden amount_unpublished amount_cells[0] amount_cells[1]"
FACTS = {
    **{f"change_row_{how}": changed("row", how) for how in ("add_remove", "replace")},
    **{
        f"guess_{who}_{how}": changed(who, how)
        for who in ("row", "unit")
        for how in ("add_remove", "replace")
    },
    **{
        f"change_unit_{how}[{form}]": lambda case, how=how, form=form: (
            changed("unit", how)(case) and (case["unit"] == 1) == (form == 0)
        )
        for how in ("add_remove", "replace")
        for form in (0, 1)
    },
    **{
        f"promise_{budget_kind}": lambda case, name=budget_kind: kind(case) == name
        for budget_kind in ("pure", "approximate", "concentrated", "gaussian")
    },
    **{
        noise_name: lambda case, name=noise_name: case["noise"] == name
        for noise_name in ("discrete_laplace", "discrete_gaussian", "rounded_gaussian")
    },
    # No case has one-way tables alone under a pure budget.
    **said_when(lambda case: False, "k_norm laplace_and_k_norm quantile_k_norm"),
    "cut_cell_saves": lambda case: "per_cell" in case and case["noise"] != "discrete_laplace",
    "guard_reduced": lambda case: False,  # no guard stopped an earlier release
    # All attributes are complete, and no case has a statement.
    **said_when(
        lambda case: False, "statement_left_out statement_without_interval reading_agree_but"
    ),
    "quantile_laplace": lambda case: case["noise"] == "discrete_laplace",
    "quantile_normal": lambda case: case["noise"] != "discrete_laplace",
    # Every case has rows outside the months, which are dropped.
    **said_when(lambda case: True, "dropped not_covered_dropped not_private kicker_seeded"),
    **sized("cut about_unit", lambda case: case.get("unit")),
    **sized("cut_cell", lambda case: case.get("per_cell")),
    **sized("limit_unit", lambda case: None if "per_cell" in case else case.get("unit")),
    **sized(
        "guard_kept", lambda case: case["unit"] if "guard" in case and "unit" in case else None
    ),
    **sized("biased", lambda case: len(case.get("columns", []))),
    **said_when(lambda case: "unit" not in case, "about_row"),
    **said_when(lambda case: "unit" in case, "beyond"),
    **said_when(lambda case: "per_cell" in case, "limit_unit_cell"),
    **said_when(lambda case: "people" in case, "counts_units"),
    **said_when(lambda case: case.get("people") == "month", "units_each measure_units_of"),
    **said_when(lambda case: case.get("people") == "size", "units_once measure_units"),
    **said_when(lambda case: "round" in case, "rounded interval_rounded"),
    **said_when(lambda case: "below" in case, "left_out"),
    **said_when(lambda case: linear(case) and "round" not in case, "reading_exact limit_noise"),
    **said_when(lambda case: linear(case) and "round" in case, "limit_noise_rounded"),
    # No case has a survey; tests/release tests the sentences of surveys.
    **said_when(lambda case: False, "limit_noise_survey"),
    **said_when(lambda case: linear(case) and "below" not in case, "reading_negative"),
    **said_when(lambda case: linear(case) and not apart(case), "reading_sum"),
    **said_when(lambda case: not apart(case), "reading_agree"),
    **said_when(apart, "reading_apart"),
    **said_when(lambda case: not linear(case), "limit_aware aware_errors"),
    **said_when(lambda case: bool(case.get("sum")), "limit_sums clipped_sums"),
    **said_when(lambda case: case.get("outside") == "clip", "clipped clipped_between"),
    **said_when(lambda case: case.get("outside") in {"clip", "other"}, "dropped_missing"),
    **said_when(lambda case: "guard" not in case, "dropped_unmeasured"),
    **said_when(lambda case: "guard" in case and "unit" not in case, "guard"),
    **said_when(lambda case: "unit" in case and "guard" not in case, "cut_unpublished"),
    **said_when(
        lambda case: "unit" in case and "guard" in case and not case.get("target"), "cut_share"
    ),
    # The least budget that meets a target is small: the noise hides the share.
    **said_when(
        lambda case: "unit" in case and "guard" in case and bool(case.get("target")), "cut_hidden"
    ),
    **said_when(
        lambda case: "guard" in case and bool(case.get("few")) and case.get("outside") != "other",
        "guard_few",
    ),
    **said_when(lambda case: "integer" in case.get("columns", []), "biased_disagree"),
    **said_when(lambda case: "nnls" in case.get("columns", []), "biased_nnls"),
    **said_when(lambda case: "local_non_negative" in case.get("columns", []), "biased_local"),
    **said_when(lambda case: "top_down" in case.get("columns", []), "biased_top_down"),
    **said_when(lambda case: "contact" not in case, "ask_whom"),
    **said_when(lambda case: "source" in case, "source_line"),
    **{
        f"chosen_{objective}": lambda case, name=objective: (
            linear(case)
            and name == ("least" if case.get("target") else case.get("objective", "total"))
        )
        for objective in ("total", "worst", "relative", "least")
    },
    **said_when(lambda case: False, NEVER),
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
# Clauses, labels, charts and other pages; names, surveys and squares, which tests/release sees;
# profiles, which tests/profile sees; numbers of rows left out or clipped, which tests/session and
# tests/release see;
# and what data-aware strategies say, or specs state, which
# tests/mechanisms, session and spec see.
ELSEWHERE = re.compile(
    r"null_cell|outside_cell|sdmx_total|(be|pf|fit|further|sd|series|st|js|col|h|s|book|f|by|kind|"
    r"fate|how|name|meta|title|unit|aware|stated|regime|largest|exact|error_ratio|fact)_\w+|"
    r"(in_)?tables|answers|further|done|of(_share)?|pure|approximate|concentrated|"
    r"gaussian(_cost)?|over_10_300|rule|measure|interval(_aware|_smoothed)?|alt(_left_out)?|"
    r"more_attributes|mark_seeded|written_on|what(_nothing|_made)?|counts|sums_of|protects(_\w+)?|"
    r"size|find|index_(alone|cut)|leaves_out_none|share_of_rows|meta|show_table|rows_\w+|"
    r"not_drawn|up_to|without|searched|computed(_aware)?|no_receipt|cite_(row|unit)|points|"
    r"this_language|authority_code|quoted_name|in_total|quoted|survey(_\w+)?|flags?(_\w+)?|(rule|"
    r"index|limit|exact_intro)_(survey|standard_error|cv|variance_model|design_effect)|"
    r"statement_noise_only|profile_\w+|utility_\w+|bounds_found|after(_bound|_units)?|alike|other|"
    r"vague|squared|cite(_text)?|recompute|ask|contact|all_rows|from_to|or_(less|more)|"
    r"statistics_intro(_cdf)?|quarter_of_year|statements_intro|dropped_suppressed|values_(beyond|"
    r"from|up_to)(_\w+)?"
)


def test_catalogue_sentences_state_their_condition():
    keys = set(list_sentences("en"))
    unknown_keys = {
        key for key in keys - set(FACTS) - ALWAYS if not ELSEWHERE.fullmatch(key.partition("[")[0])
    }
    assert unknown_keys == set(), (
        "say in FACTS when they are said, or in ELSEWHERE that they are labels or of other pages"
    )
    assert set(FACTS) | ALWAYS <= keys


def found_in(page: str, sentence: str) -> bool:
    """Return whether a page has a sentence, with any values in its places."""
    parts = [part.replace("%%", "%") for part in re.split(r"%\(\w+\)s", sentence)]
    if not all(part in page for part in parts):
        return False
    place = ".{1,400}?"  # at either end of a sentence it is there anyway
    return (
        re.search(place.join(map(re.escape, parts)).removeprefix(place).removesuffix(place), page)
        is not None
    )


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


@pytest.mark.parametrize("place", range(len(GRID)))
def test_report_states_only_true_sentences(run, place):
    case = GRID[place]
    Path("case.toml").write_text(spec(case), encoding="utf-8")
    run.succeeds("release", "case.toml", "--out", "out", "--seed", place, "--no-cache")
    facts = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
    case = {**case, "noise": facts["plan"]["mechanism"]}
    spec_language = case.get("language", "en")
    release = ln.read_release("out")
    for language in ("en", "de"):
        catalogue = load_catalogue(language)
        sentences = list_sentences(language)
        translated = replace(release, options=replace(release.options, language=language))
        table_entries = (
            (table, _make_entry(translated, table, table.id)) for table in translated.tables
        )
        text = (
            Path("out/report.html").read_text(encoding="utf-8")
            if language == spec_language
            else render_report(translated, collect_contents(translated, table_entries)[0])
        )
        page = re.sub(
            r"\s+",
            " ",
            html.unescape(
                re.sub(r"<(script|style|svg).*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)
            ),
        )
        wrong_keys = [
            key
            for key, condition in FACTS.items()
            if found_in(page, sentences[key]) != condition(case)
        ]
        assert wrong_keys == [], {key: FACTS[key](case) for key in wrong_keys}
        assert [key for key in ALWAYS if not found_in(page, sentences[key])] == []
        if "round" in case:
            assert (
                catalogue.say(
                    "interval_rounded", half=catalogue.format_value(Fraction(case["round"]) / 2)
                )
                in page
            )
    # the numbers in them
    step = float(Fraction(case.get("round", "0")))
    assert facts["intervals"]["half_width_added"] == pytest.approx(
        0.5 / facts["measurements"]["grid"] + step / 2
    )
    assert ("is not rounded" in facts["post_processing"]["note"]) == (
        not step and not case.get("columns")
    )
    assert ("it may be negative" in facts["post_processing"]["note"]) == (
        linear(case) and "below" not in case and not case.get("columns")
    )


def test_plan_warning_and_release_sentence_use_one_noise(run):
    """Plan and release agree, for all kinds of budgets, on whether a cell limit saves noise."""
    idle = []
    budgets = (
        (PURE, 3),
        (APPROXIMATE, 3),
        (APPROXIMATE.replace("6", "1").replace("-9", "-5"), 12),
        (CONCENTRATED, 3),
    )
    for place, (budget, max_rows) in enumerate(budgets):
        Path("case.toml").write_text(
            spec({"budget": budget, "unit": max_rows, "per_cell": 1}), encoding="utf-8"
        )
        result = run.succeeds(
            "release", "case.toml", "--out", f"out-{place}", "--seed", 1, "--no-cache"
        )
        idle.append("makes nothing cheaper" in result.err)
        assert idle[-1] == ("need less noise" not in result.out + result.err), budget
        assert ("state a budget for Gaussian noise" in result.err) == (budget == PURE), budget
    assert idle == [True, True, False, False]
