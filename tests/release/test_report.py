"""The page: well-formed, self-contained, with every label escaped; its small drawing functions."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from leastnoise._accounting import ZCDP, ApproxDP, Privacy, PureDP
from leastnoise._domain import Bins, Categories, Domain, Integers, Measure
from leastnoise._release import _report, _words, build, write
from leastnoise._release._charts import chart, chart_kind, ticks
from leastnoise._workload import marginals, queries

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """Checks that elements nest, and collects ids, references, texts and tags."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.references, self.links, self.words = [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    def note(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name == "aria-labelledby":
                self.references += value.split()
            if name in ("href", "src", "xlink:href"):
                self.links.append(value)

    @property
    def text(self):
        return " ".join(self.words)


@pytest.fixture
def page(observation, tmp_path):
    """The report of the example as it is on the disk."""
    target = write(build(observation, non_negative=True, receipt={"ledger": "a & <b>"}), tmp_path / "out", "csv")
    return (target / "report.html").read_text(encoding="utf-8")


def test_the_page_is_well_formed_and_needs_nothing_else(page):
    parsed = Page(page)
    assert parsed.links == []
    assert "http" not in page
    assert "@import" not in page
    assert set(re.findall(r"url\(([^)]*)\)", page)) == {"#hatch"}
    assert "script" not in parsed.tags
    assert len(parsed.ids) == len(set(parsed.ids))
    assert set(parsed.references) <= set(parsed.ids)
    assert parsed.tags.count("h1") == 1


def test_every_chart_has_a_title_and_a_description(page):
    charts = re.findall(r"<svg role=\"img\".*?</svg>", page, flags=re.DOTALL)
    assert len(charts) == 8  # nine tables, one of them a single number
    assert all("-title" in one and "<desc id=" in one for one in charts)


def test_labels_are_escaped(page):
    assert "<b>a" not in page
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;" in page
    assert "a &amp; &lt;b&gt;" in page
    parsed = Page(page)
    assert "b" not in parsed.tags
    assert "<b>a & b</b>" in parsed.text


def test_the_page_says_what_was_promised_and_what_is_not_covered(page):
    text = Page(page).text
    for words in (
        "no result of this release becomes more than exp(epsilon) = 1.28 times as likely",
        "What they do not cover",
        "sampling error",
        "The column answer_non_negative is biased",
        "95%",
        "Least possible alone",
        "whole numbers from 17 to 21",
    ):
        assert words in text


def test_a_seeded_release_says_so_loudly_and_a_private_one_does_not(observation, making):
    release = build(observation)
    loud = _report.report(release, _entries(release))
    assert loud.count("NOT PRIVATE") >= 3  # the tab, the banner, the footer
    real = build(replace(observation, private=True, receipt="2026-1"))
    quiet = _report.report(real, _entries(real))
    assert "NOT PRIVATE" not in quiet
    assert "<code>2026-1</code>" in quiet


def _entries(release):
    from leastnoise._release._files import _entry

    return [_entry(release, table, f"answers/{table.id}") for table in release.tables]


def test_long_lists_are_cut_and_say_so(observation, monkeypatch):
    release = build(observation)
    monkeypatch.setattr(_report, "MOST_ROWS", 2)
    monkeypatch.setattr(_report, "MOST_CHARTS", 3)
    text = Page(_report.report(release, _entries(release))).text
    assert "The first 2 of 9 tables" in text
    assert "6 more tables are not drawn" in text
    assert "The first 2 of 4 rules" in text


def test_a_release_without_readable_tables_says_so(making):
    domain = Domain(a=Integers(0, 9), b=Integers(0, 9), c=["x", "y"])
    workload = marginals(domain, ways=3)
    plan = making.plan(workload, Privacy(PureDP(1)))
    release = build(making.observe(plan, making.cells(domain), np.random.default_rng(0)))
    assert "No table is small enough to be drawn" in Page(_report.report(release, _entries(release))).text


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({"pay": "identity"}, "line"),
        ({"pay": "prefix"}, "line"),
        ({"pay": "all_ranges"}, None),
        ({"sex": "identity", "pay": "prefix"}, "lines"),
        ({"age": "prefix", "pay": "prefix"}, None),
        ({"age": "identity", "pay": "prefix"}, None),
        ({"age": "identity", "sex": {"matrix": [[1, -1]]}}, "heat"),
        ({"age": "identity", "pay": "identity"}, None),
        ({"age": "identity", "sex": "identity", "pay": "identity"}, None),
        ({"age": "identity"}, "columns"),
        ({"age": {"ranges": [[17, 20]]}}, "bars"),
    ],
)
def test_which_chart_suits_a_table(asked, kind):
    domain = Domain(sex=["F", "M"], age=Integers(17, 90), pay=Bins(0, 1000, 500))
    assert chart_kind(queries(domain, **asked).products[0]) == kind


@pytest.mark.parametrize(
    "asked",
    [
        {"sex": "identity"},
        {"age": "identity"},
        {"pay": "prefix"},
        {"sex": "identity", "pay": "prefix"},
        {"sex": "identity", "age": "identity"},
    ],
)
@pytest.mark.parametrize("level", [0.0, 50.0, -50.0, 1e12])
def test_charts_stay_finite_for_any_answers(asked, level):
    domain = Domain(sex=Categories(["F" * 100, "M"]), age=Integers(17, 90), pay=Bins(0, 1000, 700, closed="right"))
    workload = queries(domain, **asked)
    product = workload.products[0]
    from leastnoise._release._tables import Table

    answer = np.full(product.shape, level) + np.arange(product.rows).reshape(product.shape)
    std = np.full(product.shape, 3.0)
    table = Table(id="q1", name="t", product=product, labels=product.labels, answer=answer, noise_std=std, low=answer - 6, high=answer + 6)
    drawn = chart(table, "95%")
    Page(drawn)
    assert not re.search(r"\b(nan|inf)\b", drawn)
    numbers = [
        float(value) for name in ("x", "y", "x1", "x2", "y1", "y2", "width", "height") for value in re.findall(rf' {name}="([^"]*)"', drawn)
    ]
    assert min(numbers) > -30
    assert max(numbers) < 800
    assert "F" * 41 not in re.sub(r"<title>.*?</title>", "", drawn)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1e-9), (-5, 3), (0, 7e12), (-1e-3, 0), (3, 3)])
def test_ticks_cover_and_are_few(low, high):
    marks = ticks(low, high)
    assert marks[0] <= low
    assert marks[-1] >= high
    assert 2 <= len(marks) <= 9
    assert len({round(b - a, 12) for a, b in pairwise(marks)}) <= 2


def test_sentences_for_every_definition_and_unit():
    approximate = Privacy(ApproxDP("1/2", "1e-9"), "replace", unit_column="id", max_rows=1)
    assert _words.promise(approximate) == (
        "Whatever else anybody knows, no result of this release becomes more than exp(epsilon) = 1.65 times as likely, or as unlikely, "
        "except with a probability of at most delta = 1e-09, when all rows of one value of the column 'id' (of which at most one is used) "
        "are replaced by others."
    )
    assert _words.definition(approximate) == ("approximate differential privacy", {"epsilon": "1/2", "delta": "1/1000000000"})
    concentrated = Privacy(ZCDP("1/2"), "replace")
    assert "hardly tell whether one row is replaced by another" in _words.promise(concentrated)
    assert "implies epsilon = 6.47 at delta = 1e-09" in _words.promise(concentrated)
    assert _words.budget_words(concentrated) == "rho = 0.5"
    assert "exp(epsilon) = more than 10^300 times" in _words.promise(Privacy(PureDP(1000)))


def test_rules_of_the_domain_in_words():
    assert _words.domain_words("pay", Bins(0, "0.5", 5, closed="right", null="other", outside="clip")) == (
        "pay: 5 bins of equal width from 0 to 0.5, closed on the right; rows with other values go to the nearest cell; rows with a null "
        "are counted in the cell 'other'."
    )
    assert _words.measure_words("pay", Measure("x", -1, 2, unit="0.5")).startswith("pay: the column 'x', clipped to -1 .. 2")
