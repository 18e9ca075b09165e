"""Tests of the HTML report: well formed and self-contained, with true sentences."""

import base64
import hashlib
import html
import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from example_releases import example_plan, example_release, write
from leastnoise._charts import choose_chart
from leastnoise._domain import Bins, Domain, Integers, Measure
from leastnoise._pages import (
    _report,
    describe_attribute,
    describe_cut_rows,
    describe_definition,
    describe_guard_counts,
    describe_measure,
    describe_promise,
    describe_row_limit,
    error_over_bound,
    estimate_cut_share,
    format_budget,
    list_clipped_values,
    list_file_notices,
)
from leastnoise._publication import _writing
from leastnoise._release import (
    GuardCounts,
    Options,
    Payment,
    ReceiptFacts,
    build_release,
    display_texts,
)
from leastnoise._texts import ENGLISH, list_sentences, load_catalogue
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP
from page_parser import Page


@pytest.fixture(scope="module")
def page(observation, tmp_path_factory):
    """The report of the example as it is on the disk, with its pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEASTNOISE_CHARTS")
        payment = Payment(
            dataset="people",
            ledger="a & <b>",
            ledger_id="l1",
            charge="epsilon = 1",
            number=1,
            head="h1",
            steps=1,
        )
        release = build_release(
            observation, Options(non_negative=True), receipt=ReceiptFacts(id="", payment=payment)
        )
        target = write(release, tmp_path_factory.mktemp("page") / "out", "csv")
    return (target / "report.html").read_text(encoding="utf-8")


def test_report_is_well_formed_and_self_contained(page):
    parsed = Page(page)
    assert {link[0] for link in parsed.links} == {"#"}
    assert {link[1:] for link in parsed.links} <= set(parsed.ids)
    # This address is a name space, not a link.
    assert set(re.findall(r"https?://[^\"'\s<]*", page)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in page
    assert len(parsed.ids) == len(set(parsed.ids))
    assert set(parsed.references) <= set(parsed.ids)
    assert parsed.tags.count("h1") == 1
    assert parsed.tags.count("script") == 1


def test_report_runs_only_its_own_script(page):
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1))
    script = re.search(r"<script>(.*)</script>", page, flags=re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}'" in policy


def test_report_has_all_tables_and_titled_charts(page):
    table_ids = [key for key in Page(page).ids if re.fullmatch(r"q\d+", key)]
    assert table_ids == [f"q{number}" for number in range(1, 10)]
    charts = re.findall(r"<svg[^>]* role=\"img\".*?</svg>", page, flags=re.DOTALL)
    assert len(charts) == 8  # nine tables, one of them a single number
    for chart in charts:
        assert "-title" in chart
        assert "<desc id=" in chart
        assert "The largest is" in chart


def test_report_shows_answers_and_margins(page, release):
    for table in release.tables[1:4]:
        article = page[page.index(f'<article id="{table.id}"') :]
        article = article[: article.index("</article>")]
        texts = re.findall(r"<td>([^<]*)", article)
        rows = np.array(texts).reshape(table.cells, -1)
        first_number = len(table.labels)
        shown = [tuple(row[first_number : first_number + 2]) for row in rows]
        expected = [
            (ENGLISH.format_number(answer, 1.0), ENGLISH.format_error(high - answer))
            for answer, high in zip(table.answer.flat, table.high.flat, strict=True)
        ]
        assert shown == expected


@pytest.mark.parametrize(
    ("kinds", "chart", "axis"),
    [
        ({"age": Integers(0, 60, null="other")}, "steps", "age, without other"),
        (
            {"day": ln.Dates("2024-01-01", "2024-03-01", outside="other")},
            None,
            "day, without other",
        ),
        (
            {"age": Integers(0, 150, null="other"), "zone": ["N", "S"]},
            "multiples",
            "age, without other",
        ),
        ({"age": Integers(0, 20, null="other")}, "bars", "age"),  # all of them can be drawn
        (
            {"day": ln.Dates("2024-01-01", "2024-06-30", by="month", outside="other")},
            None,
            "day, without other",
        ),
        ({"day": ln.Dates("2024-01-01", "2024-01-02", outside="other")}, "bars", "day"),
        (
            {"shop": ln.Categories([f"shop {number}" for number in range(60)], outside="other")},
            "largest",
            "shop",
        ),
    ],
)
def test_ordered_cells_are_drawn_in_order_beside_other(kinds, chart, axis):
    plan = ln.plan(
        ln.queries(Domain(kinds), dict.fromkeys(kinds, "identity")),
        ln.PureDP(1),
        strategy="identity",
    )
    release = ln.release(plan, pd.DataFrame({name: [None] for name in kinds}), seed=1)
    (table,) = release.tables
    drawn = table.picture(ENGLISH)
    assert drawn.axes[0].name == axis
    assert chart in (None, choose_chart(drawn).name)  # a chart of dates may be added
    assert np.array_equal(drawn.answer, table.answer[: -1 if "without" in axis else None])
    assert drawn.answer.shape == drawn.low.shape == drawn.high.shape
    assert axis in json.dumps(release.plot(table.id).to_dict()) or chart == "largest"


def test_report_states_promise_and_exclusions(page, observation):
    text = Page(page).text
    expected_error = observation.plan.data_independent_error
    # The ratio is of errors, not of their squares.
    ratio = math.sqrt(expected_error.total_squared_error / expected_error.lower_bound)
    assert error_over_bound(observation.plan) == pytest.approx(ratio)
    for phrase in (
        f"{ratio:.3f}",
        "no result of this release becomes more than exp(epsilon) = 1.28 times as likely",
        "Somebody who suspects with 50% that one row is in the table can become at most 57% sure",
        "What they do not cover",
        "sampling error",
        "The column answer_non_negative is biased",
        "95%",
        "whole numbers from 17 to 21",
        "In sums of pay a value below",
        "To cite",
    ):
        assert phrase in text


def contents_of(release, language=None):
    """Return the contents of the report of a release."""
    entries = (
        (table, _writing._make_entry(release, table, f"answers/{table.id}"))
        for table in release.tables
    )
    if language:
        release = replace(release, options=replace(release.options, language=language))
    return _report.collect_contents(release, entries)[0]


def page_of(release):
    return _report.render_report(release, contents_of(release))


def text_of(release):
    return Page(page_of(release)).text


def test_seeded_release_is_marked_not_private(release, observation):
    assert page_of(release).count("NOT PRIVATE") >= 3  # the tab, the banner, the footer
    private = replace(observation.observation, private=True, receipt="2026-1")
    private_page = page_of(build_release(replace(observation, observation=private)))
    assert "NOT PRIVATE" not in private_page
    assert "<code>2026-1</code>" in private_page


def test_long_lists_are_cut_and_say_so(release, monkeypatch):
    monkeypatch.setattr(_report, "MOST_INDEX_ROWS", 2)
    monkeypatch.setattr(_report, "MOST_RULES", 2)
    monkeypatch.setattr(_report, "MOST_TABLE_ROWS", 3)
    monkeypatch.setattr(_report, "MOST_SHORTENED_ROWS", 2)
    text = text_of(release)
    assert "The first 2 of 9 tables are listed" in text
    assert "The first 2 of 4 rules" in text
    assert "The 2 largest of 5 answers; all are in answers/q4" in text
    assert 'release.plot("q4") in Python draws it' in text


def test_report_builds_each_table_once(release, monkeypatch):
    built_tables = []
    tables_class = type(release.tables)
    build_table = tables_class._build_table

    def record_and_build(tables, number, answer):
        built_tables.append(number)
        return build_table(tables, number, answer)

    monkeypatch.setattr(tables_class, "_build_table", record_and_build)
    monkeypatch.setattr(_report, "MOST_INDEX_ROWS", 2)
    monkeypatch.setattr(_report, "MOST_PAGE_ROWS", 1)
    contents = contents_of(release)
    assert len(_report._make_table_list(release, contents, ENGLISH)["rows"]) == 2
    assert len(contents.views) == 2
    assert built_tables == [*range(len(release.tables))]


def test_large_table_shows_its_largest_cells(monkeypatch):
    monkeypatch.delenv("LEASTNOISE_CHARTS")
    domain = Domain(a=Integers(0, 9), b=Integers(0, 9), c=["x", "y"])
    plan = example_plan(ln.marginals(domain, ways=3), Privacy(PureDP(1)))
    cells = np.zeros(200)
    equal_cells = example_release(plan, {None: cells})
    sentence = _report._describe_certain_largest(equal_cells, equal_cells.tables[0], ENGLISH)
    assert "none of them is for certain the largest of all 200" in sentence

    cells[:5] = 5000
    text = text_of(example_release(plan, {None: cells}))
    assert (
        "The first 5 are the largest of all for certain (with 95% confidence for all 200 cells "
        "together)" in text
    )


def test_sure_order_is_right_at_its_stated_rate():
    workload = ln.marginals(Domain(a=Integers(0, 29), b=["x", "y"]), ways=2)
    plan = example_plan(workload, Privacy(PureDP("1/4")))
    random = np.random.default_rng(5)
    truth = np.sort(random.geometric(0.0005, size=60))[::-1].astype(float)
    releases = 300
    wrong_claims = claims = 0
    for _ in range(releases):
        release = example_release(plan, {None: truth}, random)
        (table,) = release.tables
        sentence = _report._describe_certain_largest(release, table, ENGLISH)
        claim = re.search(r"first ([\d,]+)", sentence)
        if claim is None:
            continue
        claims += 1
        largest = np.argsort(-table.answer.reshape(-1), kind="stable")[: int(claim.group(1))]
        others = np.delete(truth, largest)
        # Cells with the same count may stand in any order.
        wrong_claims += truth[largest].min() < others.max(initial=0)
    assert claims > 100
    assert wrong_claims <= 0.05 * releases


def test_german_report_is_wholly_german(observation):
    release = build_release(observation, Options(language="de", contact="statistik@example.org"))
    page = page_of(release)
    german = load_catalogue("de")
    text = Page(page).text
    assert '<html lang="de">' in page
    for phrase in (
        "Wie stark der Schutz ist",
        "kann sich nach dem Lesen dieser ganzen Veröffentlichung höchstens zu",
        "95\u00a0%",
        "Typische Fehlerspanne",
        "beantwortet statistik@example.org",
    ):
        assert phrase in text
    assert f"<td>{german.format_error(release.tables['q2'].margins[0])}" in page
    for sentence in list_sentences("en").values():
        start = sentence.split("%(")[0]
        assert len(start) < 30 or start not in text


TABLES_DOMAIN = Domain(sex=["F", "M"], age=Integers(0, 9), measures={"pay": Measure("pay", 0, 9)})
TOTAL = ln.marginals(TABLES_DOMAIN, ways=0)
PEOPLE = pd.DataFrame({"sex": ["F", "M"] * 500, "age": [1, 2, 3, 4, 5] * 200, "pay": [5] * 1000})
GERMAN_OPTIONS = Options(language="de")


@pytest.fixture(scope="module")
def german_release():
    """Return a release in German with counts, a mean, a distribution and quantiles."""
    workload = TOTAL + ln.mean_queries(TABLES_DOMAIN, "pay", by=["sex"])
    workload += ln.cdf_queries(TABLES_DOMAIN, "age")
    workload += ln.quantile_queries(TABLES_DOMAIN, "age", [0.25, 0.5], by=["sex"])
    return ln.release(ln.plan(workload, ln.PureDP(9)), PEOPLE, seed=1, options=GERMAN_OPTIONS)


def test_report_names_tables_in_its_language(german_release):
    page = page_of(german_release)
    for phrase in (
        "insgesamt",
        "Summe von pay nach sex",
        "Mittelwert von pay nach sex",
        "Verteilung von age",
        "Quantile von age nach sex",
    ):
        assert phrase in page
    assert re.search(r"Ergebnisse in \d Tabellen: ", page)
    assert '<th scope="col">Anteil</th><th scope="col">Quantil</th>' in page
    assert not re.search(r">total|sum of|mean of|quantiles of|distribution of|>share", page)

    only_total = ln.release(ln.plan(TOTAL, ln.PureDP(9)), PEOPLE, seed=1, options=GERMAN_OPTIONS)
    assert "ein Ergebnis in einer Tabelle" in page_of(only_total)


def test_report_formats_numbers_in_its_language(german_release):
    # A quantile that is a whole number is written as one.
    assert "<td>0,5<td>3<td>" in page_of(german_release)
    picture = german_release.statistics["distribution of age"].picture(load_catalogue("de"))
    assert "," in picture.format_answer(0.25, 0.01)


def test_views_are_named_in_each_language(german_release):
    tables = (*german_release.statistics, *german_release.tables)
    english_names = [table.name.replace(":prefix", " (up to each value)") for table in tables]
    views = contents_of(german_release, "en").views
    assert [view.name for view in views] == english_names
    german_views = contents_of(german_release, "de").views
    assert [view.name for view in german_views] != english_names


def guard_receipt(kept_rows, used_rows, std, **cuts):
    """Return a receipt with the counts of a guard."""
    guard = GuardCounts(
        share="1/100", charge="", number=1, used=used_rows, kept=kept_rows, noise_std=std, **cuts
    )
    return ReceiptFacts(id="", guard=guard)


def test_headline_has_the_guard_numbers(observation):
    release = build_release(observation, receipt=guard_receipt(1234, 1215, 10.0))
    assert "Rows read: about 1,234 (± 30.5). Rows used: about 1,215 (± 21.7)." in text_of(release)


@pytest.mark.parametrize(
    ("used", "std", "percent"),
    [
        (860, 10.0, "14%"),
        (970, 10.0, "3%"),
        (980, 10.0, None),
        (997, 1.0, None),
        (0, 500.0, None),
        (1010, 10.0, None),
        (-20, 10.0, "100%"),
    ],
)
def test_unused_rows_are_reported_from_one_percent(observation, used, std, percent):
    release = build_release(observation, receipt=guard_receipt(1000, used, std))
    sentences = describe_guard_counts(release)
    if percent is None:
        assert "are not used" not in sentences
    else:
        unused = rf"About {percent} of these rows \(\d+% to \d+%\) are not used"
        assert re.search(unused, sentences)


@pytest.mark.parametrize(("used", "percent"), [(570, "43%"), (860, "14%"), (998, None)])
def test_first_screen_states_uncounted_rows(observation, used, percent):
    text = text_of(build_release(observation, receipt=guard_receipt(1000, used, 2.0)))
    first_screen = text[: text.index("The tables")]
    if percent is None:
        assert "are in none of the numbers" not in first_screen
    else:
        uncounted = rf"About {percent} of the rows \(\d+% to \d+%\) are in none of the numbers"
        assert re.search(uncounted, first_screen)
        assert "Yes, for" not in first_screen


@pytest.mark.parametrize("summed", [None, "pay"])
def test_first_screen_distinguishes_rows_without_a_number(summed):
    """The guard counts rows without a number to sum as unused; other tables count them."""
    domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 9)})
    workload = ln.queries(domain, sex="identity") + ln.queries(domain, {}, sum=summed)
    rows = pd.DataFrame({"sex": ["F", "M"] * 400, "pay": [5, "none"] * 400})
    plan = ln.plan(workload, ln.PureDP(1), strategy="identity")
    outcome = ln.release(plan, rows, seed=1).outcome
    text = text_of(build_release(outcome, receipt=guard_receipt(800, 400, 2.0)))
    sentence = "are in none of the numbers, or are left out of the sums and means of a column"
    assert (sentence in text) == (summed is not None)
    guard = "are not used, or are left out of the sums and means of a column"
    assert (guard in text) == (summed is not None)


def test_survey_screen_states_missing_sampling_error():
    domain = ln.Domain(
        sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 9), "w": ln.Measure("w", 0, 50)}
    )
    rows = pd.DataFrame({"sex": ["F", "M"] * 400, "pay": [5] * 800, "w": [20] * 800})
    mean_workload = ln.mean_queries(domain, "pay", by=["sex"])
    for weighted in (False, True):
        workload = mean_workload.weighted_by("w") if weighted else mean_workload
        text = text_of(ln.release(ln.plan(workload, ln.PureDP(9)), rows, seed=1))
        first_screen = text[: text.index("The tables")]
        assert ("sampling error is not included" in first_screen) is weighted
        assert ("Yes, for" in first_screen) is not weighted


def test_index_states_values_a_table_omits():
    domain = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9, null="other", outside="other"))
    plan = ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1))
    rows = pd.DataFrame({"sex": ["F", "M"] * 40, "age": list(range(8)) * 10})
    text = text_of(ln.release(plan, rows, seed=1))
    assert "Without rows whose value is missing or outside in" in text


def test_sentences_for_every_definition_and_unit():
    approximate = Privacy(ApproxDP("1/2", "1e-9"), "replace", unit_column="id", max_rows=1)
    assert describe_promise(approximate) == (
        "Whatever else anybody knows, no result of this release becomes more than exp(epsilon) = "
        "1.65 times as likely, or as unlikely, "
        "except with a probability of at most delta = 1e-9, when all rows of one value of the "
        "column 'id' (of which at most one is used) "
        "are replaced by others."
    )
    assert describe_definition(approximate) == (
        "approximate differential privacy",
        {"epsilon": "1/2", "delta": "1/1000000000"},
    )
    concentrated = Privacy(ZCDP("1/2"), "replace")
    assert "hardly tell whether one row is replaced by another" in describe_promise(concentrated)
    assert "implies epsilon = 6.47 at delta = 1e-9" in describe_promise(concentrated)
    assert format_budget(concentrated) == "rho = 0.5"
    assert "exp(epsilon) = more than 10^300 times" in describe_promise(Privacy(PureDP(1000)))


def test_report_states_values_behind_cells_and_sums():
    assert describe_attribute(
        "pay", Bins(0, "0.5", 5, closed="right", null="other", outside="clip")
    ) == (
        "pay: 5 bins of equal width from 0 to 0.5, closed on the right; rows with other values go "
        "to the nearest cell; rows with a null "
        "are counted in the cell 'other'."
    )
    assert describe_measure("pay", Measure("x", -1, 2, unit="0.5")).startswith(
        "pay: the column 'x', clipped to -1 .. 2"
    )
    domain = ln.Domain(
        {"pay": ln.Bins(0, 9, 3, outside="clip")}, measures={"pay": ln.Measure("pay", 0, 9)}
    )
    plan = ln.plan(ln.marginals(domain, ways=1) + ln.queries(domain, sum="pay"), ln.PureDP(1))
    assert list_clipped_values(ln.release(plan, pd.DataFrame({"pay": [1, 20]}), seed=1)) == [
        "Values beyond the public bounds were counted at the nearest bound: pay.",
        (
            "In sums of pay a value below 0 counts as 0 and one above 9 as 9; rows without a "
            "value add nothing."
        ),
        (
            "Of about 2 rows, up to about 2 (± 5.50; 100%) have a value above 9 (their cell also "
            "counts values within the bounds). Sums and means of pay count a value beyond the "
            "bounds as the bound: they miss the part beyond, and no interval covers it."
        ),
    ]


# Bins of ten minutes, which go beyond the bounds of the measure.
BY_MINUTES = {"minutes": ln.Bins(-60, 600, 66, outside="clip")}


@pytest.mark.parametrize(
    ("kinds", "options", "ending"),
    [
        (
            BY_MINUTES,
            {},
            (
                "about 100 (10%) have a value below 0 and about 300 (30%) have a value of "
                "120 or more. Sums and means of minutes count a value beyond the bounds as the"
            ),
        ),
        (
            {"minutes": ln.Bins(0, 120, 12, outside="clip")},
            {},
            "Of about 1,000 rows, up to about 400 (40%) have a value above 120 (their cell also",
        ),
        (
            BY_MINUTES,
            {"below": 200},
            "fewer than 200 have a value below 0 and about 300 (30%)",
        ),
        ({"group": ln.Coded(1)}, {}, "How many values are beyond the bounds of minutes was not"),
        (
            {"minutes": ln.Bins(0, 120, 12)},
            {},
            "was not measured; a table by that column would measure it.",
        ),
    ],
)
def test_first_screen_counts_values_beyond_bounds_of_measures(tmp_path, kinds, options, ending):
    """The durations include negative and very long ones, which are most of the sum."""
    minutes = [-5.0] * 100 + [50.0] * 500 + [115.0] * 100 + [10_000.0] * 300
    frame = pd.DataFrame({"minutes": minutes, "group": 0})
    domain = ln.Domain(kinds, measures={"minutes": ln.Measure("minutes", 0, 120)})
    workload = ln.marginals(domain, ways=1) + ln.mean_queries(domain, "minutes")
    plan = ln.plan(workload, ln.PureDP(200))
    ln.release(plan, frame, seed=1, out=tmp_path / "out", options=ln.Options(**options))
    head = (tmp_path / "out/report.html").read_text(encoding="utf-8").split("</header>")[0]
    assert ending in re.sub(r"± [\d.]+; ", "", head)


DIVIDED = " (without the cell that the bound {} divides)"
AMONG_OTHERS = " (their cell also counts values within the bounds)"


@pytest.mark.parametrize(
    ("kind", "bounds", "below", "above"),
    [
        (
            ln.Bins(0, 40, 4, outside="clip"),
            (10, 30),
            "about 3 have a value below 10",
            "about 2 have a value of 30 or more",
        ),
        (
            ln.Bins(0, 40, 4, outside="clip", closed="right"),
            (10, 30),
            "about 4 have a value of 10 or less",
            "about 1 have a value above 30",
        ),
        (
            ln.Edges([0, 10, 30, 40]),
            (11, 29),
            "about 3 have a value below 10" + DIVIDED.format(11),
            "about 2 have a value of 30 or more" + DIVIDED.format(29),
        ),
        (
            ln.Edges([0, 20, 40], outside="clip", closed="right"),
            (10, 30),
            "up to about 5 have a value below 10" + AMONG_OTHERS,
            "up to about 3 have a value above 30" + AMONG_OTHERS,
        ),
        (
            ln.Integers(0, 40, outside="clip"),
            (10, 30),
            "about 3 have a value of 9 or less",
            "about 1 have a value of 31 or more",
        ),
        (
            ln.Integers(10, 30, outside="clip"),
            (10, 30),
            "up to about 4 have a value below 10" + AMONG_OTHERS,
            "up to about 2 have a value above 30" + AMONG_OTHERS,
        ),
        (
            ln.Integers(0, 40, outside="clip", rounding="down"),
            (10, 30),
            "about 3 have a value below 10",
            "about 1 have a value of 31 or more" + DIVIDED.format(30),
        ),
        (
            ln.Integers(0, 40, outside="clip", rounding="up"),
            (10, 30),
            "about 3 have a value of 9 or less" + DIVIDED.format(10),
            "about 1 have a value above 30",
        ),
        (
            ln.Decimals(0, 40, "0.5", outside="clip"),
            (10, 30),
            "about 3 have a value of 9.5 or less",
            "about 1 have a value of 30.5 or more",
        ),
    ],
)
def test_clipped_values_are_counted_in_cells_beyond_bounds(kind, bounds, below, above):
    values = [-7, 0, 9, 10, 20, 25, 30, 35]
    if kind.outside != "clip":
        values[0] = 1
    domain = ln.Domain({"pay": kind}, measures={"pay": ln.Measure("pay", *bounds)})
    workload = ln.marginals(domain, ways=1) + ln.queries(domain, sum="pay")
    release = ln.release(
        ln.plan(workload, ln.PureDP(200), strategy="identity"),
        pd.DataFrame({"pay": values}),
        seed=1,
    )
    sentence = list_clipped_values(release)[-1]
    assert f"Of about 8 rows, {below} and {above}." in re.sub(r" \(± [^;]*; [^)]*%\)", "", sentence)
    german = list_clipped_values(release, load_catalogue("de"))[-1]
    assert german.count("bis zu etwa") == sentence.count("up to about")
    assert german.count("ohne die Zelle") == sentence.count("without the cell")


@pytest.mark.parametrize(
    ("largest", "attributes", "rating"),
    [
        (100.0, {"minutes": ln.Bins(0, 600, 60, outside="clip")}, "Yes, for mean of minutes"),
        (400.0, {"minutes": ln.Bins(0, 600, 60, outside="clip")}, "Only the noise is small for"),
        (100.0, {"group": ln.Coded(1)}, "Only the noise is small for mean of minutes"),
    ],
)
def test_means_of_clipped_values_are_rated_by_noise_only(tmp_path, largest, attributes, rating):
    """A mean is rated "yes" only if few values, and a known number, are beyond its bounds."""
    frame = pd.DataFrame({"minutes": [50.0] * 900 + [largest] * 100, "group": 0})
    domain = ln.Domain(attributes, measures={"minutes": ln.Measure("minutes", 0, 120)})
    workload = ln.queries(domain) + ln.mean_queries(domain, "minutes")
    workload += ln.marginals(domain, ways=1)
    ln.release(ln.plan(workload, ln.PureDP(200)), frame, seed=1, out=tmp_path / "out")
    head = (tmp_path / "out/report.html").read_text(encoding="utf-8").split("</header>")[0]
    assert rating in head
    assert ("Only the noise" in head) == rating.startswith("Only")


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_many_values_beyond_a_bound_are_a_first_warning(tmp_path, share):
    minutes = np.where(np.arange(1000) < 1000 * share, 10_000.0, 50.0)
    scores = np.arange(1000) % 5 + 1
    kinds = {
        "minutes": ln.Bins(0, 600, 60, outside="clip"),
        "score": ln.Integers(1, 5, outside="clip"),
    }
    measures = {"minutes": ln.Measure("minutes", 0, 120), "score": ln.Measure("score", 1, 5)}
    domain = ln.Domain(kinds, measures=measures)
    workload = ln.marginals(domain, ways=1)
    workload += ln.queries(domain, sum="minutes") + ln.queries(domain, sum="score")
    frame = pd.DataFrame({"minutes": minutes, "score": scores})
    release = ln.release(ln.plan(workload, ln.PureDP(200)), frame, seed=1, out=tmp_path / "out")
    assert "they miss the part beyond" in " ".join(list_file_notices(release))
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    warnings = re.findall(r'class="notice">(.*?)</p>', page.split('class="lead"')[0])
    found = [text for text in warnings if "have a value of 120 or more. Sums and means" in text]
    assert len(found) == (share > 0.1)
    # A fifth of the rows has the highest score, and none a higher one.
    assert not any("score" in text for text in warnings)


def test_report_states_numbers_between_clipped_values():
    kinds = {
        "age": ln.Integers(0, 9, outside="clip"),
        "years": ln.Integers(0, 9, outside="clip", rounding="down"),
        "height": ln.Decimals("0", "9", "0.5", outside="clip"),
    }
    plan = ln.plan(ln.marginals(ln.Domain(kinds), ways=1), ln.PureDP(1))
    release = ln.release(
        plan, pd.DataFrame({"age": [0.6], "years": [0.6], "height": [0.6]}), seed=1
    )
    assert list_clipped_values(release) == [
        "Values beyond the public bounds were counted at the nearest bound: age, years and height.",
        "Numbers between two values were counted at the nearest value: age and height.",
    ]


# --- the estimated share of rows that a limit on the rows of a unit cut ---------------------------


@pytest.fixture(scope="module")
def limited_release():
    """Return a release that uses at most 20 rows of every customer."""
    privacy = Privacy(ZCDP("1/2"), unit_column="customer", max_rows=20)
    return example_release(example_plan(privacy=privacy, noise=Noise.DISCRETE_GAUSSIAN))


def with_guard_counts(release, cut, kept_rows, cut_std, std):
    """Return the release with noisy counts of the cut rows and of the kept rows."""
    receipt = guard_receipt(kept_rows, kept_rows, std, cut=cut, cut_std=cut_std)
    return replace(release, receipt=receipt)


def cut_share(release, *counts):
    """Return the estimated share of cut rows for the counts of `with_guard_counts`."""
    return estimate_cut_share(with_guard_counts(release, *counts).receipt.guard, release.level)


@pytest.mark.parametrize(
    ("cut", "uncounted", "kept_rows", "std"),
    [
        (86_667, 0, 133_333, 1500),
        (0, 0, 3000, 60),
        (900, 0, 2100, 80),
        (5000, 0, 2000, 40),
        (150, 9_800, 5050, 60),
        (150, 40, 5050, 60),
    ],
)
def test_share_interval_covers_at_its_level(limited_release, cut, uncounted, kept_rows, std):
    """The interval of a share covers at its level; with uncounted rows only its lower end does."""
    rng = np.random.default_rng(3)
    trials = 1500
    true_share = (cut + uncounted) / (cut + uncounted + kept_rows)
    covered = 0
    for _ in range(trials):
        used_noise, unused_noise, cut_noise = rng.normal(scale=[std, std, 3 * std]).round()
        noisy_cut = cut + int(cut_noise)
        noisy_kept = kept_rows + int(used_noise + unused_noise)
        share = cut_share(limited_release, noisy_cut, noisy_kept, 3 * std, std)
        assert 0 <= share.low <= share.share <= share.high <= 1
        covered += share.low <= true_share <= (1 if uncounted else share.high)
    # Four standard errors of the simulation below the level. The interval has the larger multiplier
    # of normal and Laplace noise.
    assert covered / trials > 0.95 - 4 * (0.05 * 0.95 / trials) ** 0.5


def test_negative_cut_count_does_not_claim_zero(limited_release):
    share = cut_share(limited_release, -15_243, 67_337, 3000, 1000)
    assert share.share == 0
    assert share.low == 0
    assert share.high == cut_share(limited_release, 0, 67_337, 3000, 1000).high > 0.05


@pytest.mark.parametrize("counts", [(400, 500, 900, 300), (0, -20, 30, 10), (10, 0, 30, 10)])
def test_report_claims_nothing_hidden_by_noise(limited_release, counts):
    assert cut_share(limited_release, *counts) is None
    release = with_guard_counts(limited_release, *counts)
    assert "The noise of the guard hides" in describe_cut_rows(release, ENGLISH)
    limit = "of at most 20 rows of every value of 'customer'"
    assert describe_row_limit(release, ENGLISH) == limit


def test_report_without_guard_counts_says_so(limited_release):
    assert estimate_cut_share(limited_release.receipt.guard, limited_release.level) is None
    sentence = describe_cut_rows(limited_release, ENGLISH)
    assert "The number of rows that were cut is not published." in sentence


def test_shares_hidden_by_noise_are_not_stated_as_facts(limited_release, observation):
    release = with_guard_counts(limited_release, 1146, 5117, 900, 300)
    sentence = describe_cut_rows(release, ENGLISH)
    assert "up to about 38% of the rows may have been cut. " in sentence
    limit = describe_row_limit(release, ENGLISH)
    assert "; up to about 38% of the rows may have been cut" in limit

    receipt = guard_receipt(kept_rows=18_814, used_rows=11_413, std=3400.0)
    sentences = describe_guard_counts(build_release(observation, receipt=receipt))
    assert "Some of these rows are not used" in sentences
    assert "%" not in sentences


def test_cut_share_is_stated_in_both_languages(limited_release):
    release = with_guard_counts(limited_release, 86_667, 133_333, 1500, 500)
    assert describe_row_limit(release, load_catalogue("en")) == (
        "of at most 20 rows of every value of 'customer'; at least about 39% of the rows were cut"
    )
    assert describe_row_limit(release, load_catalogue("de")) == (
        "höchstens 20 Zeilen je Wert von „customer“; mindestens etwa 39\u00a0% der Zeilen "
        "wurden dadurch nicht gezählt"
    )
    sentence = describe_cut_rows(release, ENGLISH)
    assert "At least about 39% of the rows were cut (38% to 40%). " in sentence


def test_report_without_units_mentions_no_cut_rows(release):
    assert describe_row_limit(release, ENGLISH) == ""
    assert describe_cut_rows(release, ENGLISH) is None


def test_intervals_of_named_attributes_are_words():
    names = {"attributes": {"age": {"en": "age", "de": "Alter"}}}
    options = Options(names=names, labels={"age": {"[0, 6)": {"en": "infants", "de": "Kinder"}}})
    kinds = {
        "age": ln.Edges(["0", "6", "15.5", "2500"]),
        "pay": ln.Bins(0, 20, 2),
        "rent": ln.Bins(0, 2000, 2, closed="right"),
    }
    texts = display_texts(options, ln.Domain(kinds), "de")
    ages = {"[0, 6)": "Kinder", "[6, 15.5)": "6 bis unter 15,5", "[15.5, 2500]": "15,5 bis 2.500"}
    ages |= {"< 6": "unter 6", "<= 6": "bis 6", "< 15.5": "unter 15,5", "<= 15.5": "bis 15,5"}
    ages |= {"< 2500": "unter 2.500", "<= 2500": "bis 2.500"}
    assert texts == {"age": ages}
    names["attributes"]["rent"] = {"en": "rent", "de": "Miete"}
    texts = display_texts(Options(names=names), ln.Domain(kinds), "en")
    assert (
        texts["rent"].items()
        >= {
            "[0, 1000]": "0 to 1,000",
            "(1000, 2000]": "over 1,000 to 2,000",
            "<= 1000": "up to 1,000",
        }.items()
    )
    names["attributes"]["rent"] = {"name": "year", "thousands": False}
    texts = display_texts(Options(names=names), ln.Domain(kinds), "en")
    assert (
        texts["rent"].items()
        >= {
            "[0, 1000]": "0 to 1000",
            "(1000, 2000]": "over 1000 to 2000",
            "< 2000": "under 2000",
        }.items()
    )


def test_limit_within_cells_is_stated_once():
    domain = ln.Domain(sex=["F", "M"], month=ln.Integers(1, 4))
    unit_counts = ln.queries(domain, {"month": "identity"}, count="units")
    bound = ln.PerCellBound(1, "month")
    privacy = ln.Privacy(ln.ZCDP(1), unit_column="id", max_rows=2, max_per_cell=bound)
    frame = pd.DataFrame({"id": [1, 1, 2], "sex": ["F", "M", "M"], "month": [1, 2, 2]})
    for workload in (unit_counts, unit_counts + ln.marginals(domain, ways=1)):
        release = ln.release(ln.plan(workload, privacy), frame, seed=1)
        text = " ".join(list_file_notices(release))
        assert text.count("in any one cell of month") == 1
        assert "counted in at most 2 of the cells" in text


def test_first_screen_lists_parts_of_statistics_last(tmp_path):
    """The counts and sums of a mean are in the workload before the table that was requested."""
    amounts = {"pay": Measure("pay", 0, 100), "bonus": Measure("bonus", 0, 100)}
    domain = ln.Domain({"region": ["north", "south"], "sex": ["F", "M"]}, measures=amounts)
    workload = ln.mean_queries(domain.as_complete(), of="pay", by=["region"])
    workload += ln.queries(domain.as_complete(), region="identity", sex="identity", sum="bonus")
    people = pd.DataFrame(
        {"region": ["north", "south"] * 400, "sex": ["F", "M"] * 400, "pay": 50, "bonus": 20}
    )
    options = Options(names={"rows": "persons", "measures": {"pay": {"mean": "mean pay"}}})
    ln.release(ln.plan(workload, ZCDP(1)), people, seed=1, out=tmp_path / "out", options=options)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    first_screen = page[: page.index('<section id="statistics">')]
    names = re.findall("<dt>([^<]*)</dt>", first_screen[first_screen.index('class="margins"') :])
    assert names[:2] == ["Mean pay by region", "Sum of bonus by region and sex"]
    assert {*names[2:4]} == {"Persons with a value of pay by region", "Sum of pay by region"}
    description = first_screen[first_screen.index('class="cards"') :]
    assert description.index("um of bonus") < description.index("um of pay")
