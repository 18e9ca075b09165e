"""Conformance kit of charts: checks of every chart and every picture."""

import ast
import json
import re
import sys
from dataclasses import replace
from itertools import cycle, pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import altair as alt
import numpy as np
import pytest

from charts.axes import REGION, SEX, STORE, cells, months, names, up_to
from charts.axes import picture as example_picture
from charts.draw import draw
from charts.kit import AXES, pictures
from leastnoise._charts import (
    CHARTS,
    CHARTS_BY_NAME,
    Axis,
    DotPlot,
    DotRow,
    choose_chart,
    count_certain_largest,
    draw_chart,
    draw_dots,
    groups_with_wide_bands,
    has_axis_above_zero,
    has_marked_intervals,
    has_own_scales,
    make_altair_chart,
    render_svg,
)
from leastnoise._charts import _render as render
from leastnoise._texts import LANGUAGES, load_catalogue

PACKAGE = Path(__file__).parents[2] / "src" / "leastnoise"
TEXTS = ("k", "a <title>", "a & description")


def dot_plot_of_pay(groups, *rows):
    dots = tuple(DotRow(*row) for row in rows)
    return draw_dots(DotPlot(title="pay", groups=groups, series="share", rows=dots))


DOTS = dot_plot_of_pay(
    "sex", ("F", "0.5", 3.0, 2.0, 4.0), ("F", "0.9", 5.0, 4.0, 6.0), ("<M>", "0.5", 1.0, 0.0, 2.0)
)
WIDE_DOTS = dot_plot_of_pay(
    "region",
    ("a", "0.5", 5.0, 4.0, 6.0),
    ("a", "0.9", 8.0, 7.0, 9.0),
    ("b", "0.5", 8.0, -100.0, 100.0),
    ("b", "0.9", 8.0, 7.0, 9.0),
)
DECIMALS = draw_chart(example_picture(AXES["steps"][0], 0.25, 0.01))


def with_gaps(axes):
    """Return a picture that lacks some answers, among them all neighbours of others."""
    picture = example_picture(axes)
    missing = np.zeros(picture.answer.shape, dtype=bool)
    missing.reshape(-1)[[1, 3, 4, 6, -2]] = True
    return replace(
        picture,
        answer=np.where(missing, np.nan, picture.answer),
        low=np.where(missing, np.nan, picture.low),
        high=np.where(missing, np.nan, picture.high),
    )


PICTURES_WITH_GAPS = [with_gaps((months("month", 12),)), with_gaps((SEX, up_to("income", 8, 10)))]


@pytest.fixture(autouse=True, scope="module")
def with_pictures():
    """Draw pictures in this module; other tests go without them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEASTNOISE_CHARTS")
        yield


def parse_svg(text):
    return ET.fromstring(text)  # noqa: S314 - what the test has drawn


@pytest.fixture(scope="module")
def specs():
    """Return the charts of all pictures of the kit, at ordinary and at hostile levels."""
    charts = [(name, draw_chart(picture)) for name, picture in pictures()]
    hostile_levels = cycle(((0.0, 1e-9), (-50.0, 40.0), (1e12, 1e6)))
    for (name, rows), (level, spread) in zip(AXES.items(), hostile_levels, strict=False):
        charts.append((name, draw_chart(example_picture(rows[0], level, spread))))
    return [*charts, ("dots", DOTS)]


@pytest.fixture(scope="module")
def svgs(specs):
    """Return the pictures of all charts and of charts of single tests, from one process."""
    charts = [spec for _, spec in specs]
    charts += [*map(draw_chart, PICTURES_WITH_GAPS), WIDE_DOTS, DECIMALS]
    texts = [(f"c{number}", *TEXTS[1:]) for number in range(len(charts))]
    svgs = render_svg(charts, texts)
    assert None not in svgs
    return svgs


def test_every_chart_is_tried_and_is_the_one_meant():
    assert set(AXES) == {chart.name for chart in CHARTS}, (
        "Add tests/charts/pictures_NAME.py with the rows of each new chart."
    )
    for name, picture in pictures():
        assert choose_chart(picture).name == name
    assert draw_chart(example_picture(())) is None
    # No chart: the largest counts up to a value are always the last ones.
    assert draw_chart(example_picture((STORE, up_to("income", 5, 10)))) is None
    # Lines are thinned out, however many cells there are.
    assert choose_chart(example_picture((up_to("income", 5, 1000),)), 10).name == "lines"


def test_pictures_of_one_chart_are_drawn_to_a_folder(tmp_path):
    paths = draw("bars", tmp_path)
    assert len(paths) == len(AXES["bars"])
    for path in paths:
        assert parse_svg(path.read_text(encoding="utf-8")).tag.endswith("svg")


def list_chart_comparisons(source):
    """Return the comparisons in a file that depend on the name of a chart."""
    comparisons = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare) or "chart" not in ast.unparse(node):
            continue
        constants = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
        if constants & {*CHARTS_BY_NAME}:
            comparisons.append(ast.unparse(node))
    return comparisons


def test_pages_know_charts_only_by_the_registry():
    """A new chart is one record: no other file lists or compares the names of charts."""
    assert list_chart_comparisons("chart.name in {'lines', 'x'}") == [
        "chart.name in {'lines', 'x'}"
    ]
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "chart" in text and path.parent.name != "_charts":
            assert list_chart_comparisons(text) == [], f"Add a field of Chart; see {path}."


def test_charts_over_time_draw_changes_and_explain_their_scales():
    charts_over_time = [CHARTS_BY_NAME[name] for name in ("lines", "panels")]
    assert all(chart.draws_changes for chart in charts_over_time)
    assert not CHARTS_BY_NAME["bars"].draws_changes
    assert CHARTS_BY_NAME["lines"].omits_further_cells
    assert CHARTS_BY_NAME["largest"].shows_only_largest
    line = example_picture((months("month", 24),))
    small_charts = example_picture((REGION, months("month", 24)))
    assert CHARTS_BY_NAME["lines"].list_scale_keys(line) == ["axis_cut"]
    assert CHARTS_BY_NAME["panels"].list_scale_keys(small_charts) == ["axes_shared", "axis_cut"]
    assert CHARTS_BY_NAME["bars"].list_scale_keys(line) == ()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_chart_has_a_sentence_on_how_to_read_it(language):
    """A release shows `how_NAME` below the chart, and `how_NAME_marked` if intervals contain 0."""
    for chart in CHARTS:
        keys = [f"how_{chart.name}"]
        if has_marked_intervals(draw_chart(example_picture(AXES[chart.name][0], 0.0, 40.0))):
            keys.append(f"how_{chart.name}_marked")
        for key in keys:
            try:
                load_catalogue(language).say(key, percent="95%")
            except KeyError:
                pytest.fail(f"Add {key!r} to locales/{chart.name}.pot and de/LC_MESSAGES/*.po.")


def test_chart_is_vega_lite_and_shows_in_notebook(specs):
    for name, spec in dict(specs).items():
        few = {**spec, "data": {"values": spec["data"]["values"][:2]}}
        # The schema is checked here and when the chart is shown, which is slow.
        chart = make_altair_chart(few, name)
        assert isinstance(chart, alt.TopLevelMixin), name
        assert chart.to_dict()["config"]["font"] == spec["config"]["font"]
    for _, spec in specs:
        assert json.loads(json.dumps(spec, allow_nan=False)) == spec


def test_notebook_chart_needs_no_network(monkeypatch):
    chart = make_altair_chart(DOTS, "pay <by> sex")
    shown = chart.properties(width=200)._repr_mimebundle_()
    assert list(shown) == ["application/vnd.vegalite.v6+json", "image/svg+xml", "text/plain"]
    assert "pay <by> sex" in parse_svg(shown["image/svg+xml"])[0].text
    assert "http" not in shown["image/svg+xml"].replace("http://www.w3.org/", "")
    assert shown["application/vnd.vegalite.v6+json"]["$schema"].endswith("/v6.json")
    with alt.renderers.enable("html"):
        assert "text/html" in chart._repr_mimebundle_()  # another renderer, which the user selected
    monkeypatch.setenv("LEASTNOISE_CHARTS", "off")
    assert "image/svg+xml" not in chart._repr_mimebundle_()


def test_picture_is_one_finite_element_with_alt_texts(svgs):
    all_ids = []
    for text in svgs:
        root = parse_svg(text)
        ids = [node.get("id") for node in root.iter() if node.get("id")]
        all_ids += ids
        assert root.get("role") == "img"
        assert set(root.get("aria-labelledby").split()) <= set(ids)
        assert not re.search(r"\b(NaN|Infinity|undefined|null)\b|<script|href", text)
        assert float(root.get("viewBox").split()[2]) <= 620
    assert len(all_ids) == len(set(all_ids))


def test_bar_keeps_the_only_label_that_names_it(svgs, specs):
    for (name, spec), text in zip(specs, svgs, strict=False):
        if name not in ("bars", "largest"):
            continue
        nodes = parse_svg(text).iter("{http://www.w3.org/2000/svg}text")
        labels = [node.text or "" for node in nodes]
        shortened = tuple(label.removesuffix("…") for label in labels if label.endswith("…"))
        for row in spec["data"]["values"]:
            assert row["k0"] in labels or row["k0"].startswith(shortened)


def test_chart_leaves_out_values_it_cannot_draw():
    invalid = {"mark": "nonsense"}
    with_url = {**DOTS, "data": {"url": "http://127.0.0.1:9/data.csv"}}
    invalid_svg, valid_svg, svg_with_url = render_svg([invalid, DOTS, with_url], [TEXTS] * 3)
    assert invalid_svg is None
    assert valid_svg
    assert svg_with_url is None or "circle" not in svg_with_url


def test_charts_that_are_off_are_empty(monkeypatch):
    monkeypatch.setenv("LEASTNOISE_CHARTS", "off")
    assert render_svg([DOTS], [TEXTS]) == [None]


def test_chart_without_an_interpreter_is_empty(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert render_svg([DOTS], [TEXTS]) == [None]


def test_chart_without_time_is_empty(monkeypatch):
    monkeypatch.setattr(render, "START_SECONDS", 0.0)
    monkeypatch.setattr(render, "CHART_SECONDS", 0.0)
    assert render_svg([DOTS], [TEXTS]) == [None]


def test_decimals_follow_the_language(svgs):
    assert ">0.10<" in svgs[-1]
    assert ">0,10<" in render_svg([DECIMALS], [TEXTS], "de")[0]


def test_chart_calls_first_groups_sure_only_if_apart():
    random = np.random.default_rng(3)
    for _ in range(200):
        answer = random.integers(0, 30, size=7).astype(float)
        low = answer - 2
        high = answer + 2
        order = np.argsort(-answer, kind="stable")
        sure = [k for k in range(1, 5) if low[order[:k]].min() > high[order[k:]].max()]
        assert count_certain_largest(low, high, order[:4]) == max(sure, default=0)


@pytest.mark.parametrize(("below", "scheme"), [(2, "blues"), (8, "blueorange")])
def test_second_colour_needs_more_negatives_than_noise(below, scheme):
    picture = example_picture((cells("x", 0, 9), cells("y", 0, 9)))
    answer = np.full((10, 10), 50.0)
    answer.reshape(-1)[:below] = -20
    spec = draw_chart(replace(picture, answer=answer, low=answer - 9, high=answer + 9))
    assert spec["layer"][0]["encoding"]["color"]["scale"]["scheme"] == scheme


@pytest.mark.parametrize(
    ("columns", "marks", "y_title", "x_title"),
    [(9, ["rect", "text"], "region", "job"), (10, ["rect"], "job", "region")],
)
def test_shaded_cells_have_digits_up_to_nine_columns(columns, marks, y_title, x_title):
    axes = (names("region", *map(str, range(20))), names("job", *map(str, range(columns))))
    spec = draw_chart(example_picture(axes))
    assert [layer["mark"]["type"] for layer in spec["layer"]] == marks
    assert spec["encoding"]["y"]["title"] == y_title
    assert spec["encoding"]["x"]["title"] == x_title


def test_line_has_a_step_for_each_answer():
    steps = with_gaps((cells("income", 0, 29),))
    rows = draw_chart(steps)["data"]["values"]
    spans = [
        (row["x"], next_row["x"])
        for row, next_row in pairwise(rows)
        if None not in (row["answer"], next_row["answer"]) and next_row["x"] > row["x"]
    ]
    answered = np.flatnonzero(~np.isnan(steps.answer))
    assert spans == [(float(cell), cell + 1.0) for cell in answered]


def count_isolated_answers(picture):
    """Return the number of answers without an answer on either side."""
    missing = np.isnan(picture.answer.reshape(-1, picture.answer.shape[-1]))
    padded = np.pad(missing, ((0, 0), (1, 1)), constant_values=True)
    return int((~missing & padded[:, :-2] & padded[:, 2:]).sum())


def test_isolated_answer_is_drawn_with_its_interval(svgs):
    for picture, text in zip(PICTURES_WITH_GAPS, svgs[-4:-2], strict=True):
        marks = [
            node
            for node in parse_svg(text).iter()
            if "mark-symbol role-mark" in (node.get("class") or "")
        ]
        assert sum(map(len, marks)) == count_isolated_answers(picture) > 0


def test_neighbouring_cells_of_large_numbers_do_not_merge():
    spec = draw_chart(example_picture((cells("number", 1_000_000, 1_000_030),)))
    assert [row["x"] for row in spec["data"]["values"]] == [1_000_000.0 + k for k in range(32)]
    assert spec["encoding"]["x"]["title"] == "number"
    spec = draw_chart(example_picture((up_to("number", 20_000, 100),)))
    assert spec["encoding"]["x"]["title"] == "number, up to"
    assert len({row["x"] for row in spec["data"]["values"]}) == len(spec["data"]["values"])


def test_dots_of_one_group_are_apart_and_clip_with_arrows(svgs):
    assert WIDE_DOTS["encoding"]["yOffset"]["field"] == "group"
    # Vega complains on the console of a layer without rows.
    arrow_layers = [
        sum("transform" in part for part in spec["layer"]) for spec in (WIDE_DOTS, DOTS)
    ]
    assert arrow_layers == [2, 0]
    rows = WIDE_DOTS["data"]["values"]
    ends = [(row["low"], row["from"], row["to"], row["high"]) for row in rows]
    assert ends == [(4, 4, 6, 6), (7, 7, 9, 9), (-100, 3.5, 9.5, 100), (7, 7, 9, 9)]
    assert [row["open"] for row in rows] == [False, False, True, False]
    scale = WIDE_DOTS["layer"][0]["encoding"]["x"]["scale"]
    assert scale["domain"] == [3.5, 9.5]
    assert svgs[-2].count("<path") >= 4 + 2  # four dots and two arrows


@pytest.mark.parametrize(
    "wide", [(0.0, 20.0), (-3.0, 12.0), (7.0, 21.0)], ids=["both sides", "uneven", "upwards"]
)
def test_dots_show_whole_intervals_if_they_fit(wide):
    rows = [DotRow(name, "", 10.0, 7.0, 13.0) for name in "abcdef"]
    rows.append(DotRow("g", "", 9.0, *wide))
    spec = draw_dots(DotPlot(title="pay", groups="sex", rows=tuple(rows)))
    spans = [(row["from"], row["to"]) for row in spec["data"]["values"]]
    assert spans == [*[(7, 13)] * 6, wide]
    assert not any(row["open"] for row in spec["data"]["values"])
    assert "domain" not in spec["layer"][0]["encoding"]["x"]["scale"]


def test_dots_without_intervals_or_values_have_an_axis():
    missing = DotRow("a", "", float("nan"), float("nan"), float("nan"))
    exact = DotRow("a", "", 3.0, 3.0, 3.0)
    wide = DotRow("a", "", 3.0, 1.0, 900.0)
    for rows in ((missing,), (exact,), (wide, missing)):
        spec = draw_dots(DotPlot(title="pay", groups="sex", rows=rows))
        assert not any(row["open"] for row in spec["data"]["values"])


def test_line_with_dominating_band_is_named_not_drawn():
    picture = example_picture((SEX, up_to("income", 8, 10)))
    half_widths = np.where(np.arange(2)[:, None] == 0, 1e3, 1)
    unsure = replace(picture, low=picture.answer - half_widths, high=picture.answer + half_widths)
    assert groups_with_wide_bands(picture) == ()
    assert groups_with_wide_bands(unsure) == (SEX.labels[0],)
    assert {row["group"] for row in draw_chart(unsure)["data"]["values"]} == {*SEX.labels[1:]}


def test_panels_of_unequal_groups_have_own_axes():
    even = example_picture((REGION, months("month", 24)))
    sizes = np.where(np.arange(REGION.size) == 0, 10, 1)[:, None]
    uneven = replace(even, answer=sizes * even.answer, low=sizes * even.low, high=sizes * even.high)
    assert not has_own_scales(even)
    assert has_own_scales(uneven)
    assert "resolve" not in draw_chart(even)
    assert draw_chart(uneven)["resolve"] == {"scale": {"y": "independent"}}


@pytest.mark.parametrize(("level", "is_cut"), [(1000, True), (70, False), (-1000, False)])
def test_time_axis_is_cut_only_far_above_zero(level, is_cut):
    picture = example_picture((months("month", 24),), level, 30.0)
    scale = draw_chart(picture)["layer"][0]["encoding"]["y"].get("scale")
    assert has_axis_above_zero(picture) == is_cut
    assert scale == ({"zero": False} if is_cut else None)


def test_bars_of_many_names_are_sorted():
    labels = tuple("fedcbaghi")
    answer = np.arange(10.0)
    sorted_axis = Axis(name="job", labels=(*labels, "other"), further_keys=1)
    picture = replace(example_picture((sorted_axis,)), answer=answer, low=answer, high=answer)
    shown = [row["k0"] for row in draw_chart(picture)["data"]["values"]]
    assert shown == [*reversed(labels), "other"]
    numbered = Axis(name="job", labels=tuple(f"{code} {code}" for code in range(10)))
    assert numbered.order_by(answer) == list(range(10))
    assert names("day", *"MTWTFSS").order_by(answer) == list(range(7))


def test_bars_of_small_charts_share_one_order():
    groups = names("region", *"abcdefghi")
    answer = np.array([np.arange(9.0), np.arange(9.0)[::-1] / 2])
    picture = replace(example_picture((SEX, groups)), answer=answer, low=answer, high=answer)
    rows = draw_chart(picture)["data"]["values"]
    shown = {group: "".join(row["k0"] for row in rows if row["group"] == group) for group in "FM"}
    assert shown == {"F": "ihgfedcba", "M": "ihgfedcba"}
