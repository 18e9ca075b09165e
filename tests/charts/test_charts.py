"""The conformance kit of charts: checks of every chart and every picture."""

import json
import re
import sys
from dataclasses import replace
from itertools import cycle, pairwise
from xml.etree import ElementTree as ET

import altair as alt
import numpy as np
import pytest

from charts.axes import AXES, REGION, SEX, STORE, cells, months, names, pictures, up_to
from charts.axes import picture as made
from leastnoise._charts import (
    CHARTS,
    Axis,
    DotPlot,
    choose_chart,
    count_certain_largest,
    draw_chart,
    draw_dots,
    groups_with_wide_bands,
    has_axis_above_zero,
    has_own_scales,
    make_altair_chart,
    render_svg,
)
from leastnoise._charts import _render as render

TEXTS = ("k", "a <title>", "a & description")


def dotted(groups, *rows):
    return draw_dots(DotPlot(title="pay", groups=groups, series="share", rows=rows))


DOTS = dotted(
    "sex", ("F", "0.5", 3.0, 2.0, 4.0), ("F", "0.9", 5.0, 4.0, 6.0), ("<M>", "0.5", 1.0, 0.0, 2.0)
)
WIDE = dotted(
    "region",
    ("a", "0.5", 5.0, 4.0, 6.0),
    ("a", "0.9", 8.0, 7.0, 9.0),
    ("b", "0.5", 8.0, -100.0, 100.0),
    ("b", "0.9", 8.0, 7.0, 9.0),
)
DECIMALS = draw_chart(made(AXES["steps"][0], 0.25, 0.01))


def with_gaps(axes):
    """A picture of which some answers were left out, among them all neighbours of others."""
    whole = made(axes)
    gone = np.zeros(whole.answer.shape, dtype=bool)
    gone.reshape(-1)[[1, 3, 4, 6, -2]] = True
    return replace(
        whole,
        **{
            name: np.where(gone, np.nan, getattr(whole, name)) for name in ("answer", "low", "high")
        },
    )


GAPS = [with_gaps((months("month", 12),)), with_gaps((SEX, up_to("income", 8, 10)))]


@pytest.fixture(autouse=True, scope="module")
def with_pictures():
    """Here pictures are drawn; elsewhere tests go without them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEASTNOISE_CHARTS")
        yield


def read(text):
    return ET.fromstring(text)  # noqa: S314 - what the test has drawn


@pytest.fixture(scope="module")
def specs():
    """Every picture of the kit, at ordinary and at hostile levels."""
    hostile = zip(AXES.items(), cycle(((0.0, 1e-9), (-50.0, 40.0), (1e12, 1e6))))
    pictures_and_specs = [(name, draw_chart(picture)) for name, picture in pictures()]
    pictures_and_specs += [
        (name, draw_chart(made(rows[0], level, spread)))
        for (name, rows), (level, spread) in hostile
    ]
    return [*pictures_and_specs, ("dots", DOTS)]


@pytest.fixture(scope="module")
def drawn(specs):
    """All of them, and what single tests are about, as SVG in one process."""
    every = [*(spec for _, spec in specs), *map(draw_chart, GAPS), WIDE, DECIMALS]
    svgs = render_svg(every, [(f"c{place}", *TEXTS[1:]) for place in range(len(every))])
    assert None not in svgs
    return svgs


def test_every_chart_is_tried_and_is_the_one_meant():
    assert set(AXES) == {chart.name for chart in CHARTS}
    assert [choose_chart(picture).name for _, picture in pictures()] == [
        name for name, _ in pictures()
    ]
    assert draw_chart(made(())) is None
    assert draw_chart(made((STORE, up_to("income", 5, 10)))) is None, (
        "the largest counts up to a value are the last ones"
    )
    assert choose_chart(made((up_to("income", 5, 1000),)), 10).name == "lines", (
        "lines are thinned out, however many cells there are"
    )


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
    assert "pay <by> sex" in read(shown["image/svg+xml"])[0].text
    assert "http" not in shown["image/svg+xml"].replace("http://www.w3.org/", "")
    assert shown["application/vnd.vegalite.v6+json"]["$schema"].endswith("/v6.json")
    with alt.renderers.enable("html"):
        assert "text/html" in chart._repr_mimebundle_()  # another renderer that was asked for
    monkeypatch.setenv("LEASTNOISE_CHARTS", "off")
    assert "image/svg+xml" not in chart._repr_mimebundle_()


def test_picture_is_one_finite_element_with_alt_texts(drawn):
    ids = []
    for text in drawn:
        root = read(text)
        own_ids = [node.get("id") for node in root.iter() if node.get("id")]
        ids += own_ids
        assert root.get("role") == "img"
        assert set(root.get("aria-labelledby").split()) <= set(own_ids)
        assert not re.search(r"\b(NaN|Infinity|undefined|null)\b|<script|href", text)
        assert float(root.get("viewBox").split()[2]) <= 620
    assert len(ids) == len(set(ids))


def test_bar_keeps_the_only_label_that_names_it(drawn, specs):
    for (name, spec), text in zip(specs, drawn, strict=False):
        if name in ("bars", "largest"):
            shown = [
                node.text or "" for node in read(text).iter("{http://www.w3.org/2000/svg}text")
            ]
            for key in (row["k0"] for row in spec["data"]["values"]):
                assert key in shown or any(
                    label.endswith("…") and key.startswith(label[:-1]) for label in shown
                )


def test_chart_leaves_out_values_it_cannot_draw():
    nonsense, good, elsewhere = render_svg(
        [{"mark": "nonsense"}, DOTS, {**DOTS, "data": {"url": "http://127.0.0.1:9/data.csv"}}],
        [TEXTS] * 3,
    )
    assert (nonsense, bool(good)) == (None, True)
    assert elsewhere is None or "circle" not in elsewhere


def test_chart_without_drawable_values_is_empty(monkeypatch):
    for change in (
        lambda patch: patch.setenv("LEASTNOISE_CHARTS", "off"),
        lambda patch: patch.setattr(sys, "executable", "/nowhere/python"),
        lambda patch: [
            patch.setattr(render, name, 0.0) for name in ("START_SECONDS", "CHART_SECONDS")
        ],
    ):
        with monkeypatch.context() as patch:
            change(patch)
            assert render_svg([DOTS], [TEXTS]) == [None]


def test_decimals_follow_the_language(drawn):
    assert ">0.10<" in drawn[-1]
    assert ">0,10<" in render_svg([DECIMALS], [TEXTS], "de")[0]


def test_chart_calls_first_groups_sure_only_if_apart():
    random = np.random.default_rng(3)
    for _ in range(200):
        answer = random.integers(0, 30, size=7).astype(float)
        low, high = answer - 2, answer + 2
        order = np.argsort(-answer, kind="stable")
        sure = [k for k in range(1, 5) if low[order[:k]].min() > high[order[k:]].max()]
        assert count_certain_largest(low, high, order[:4]) == max(sure, default=0)


@pytest.mark.parametrize(("below", "scheme"), [(2, "blues"), (8, "blueorange")])
def test_second_colour_needs_more_negatives_than_noise(below, scheme):
    picture = made((cells("x", 0, 9), cells("y", 0, 9)))
    answer = np.full((10, 10), 50.0)
    answer.reshape(-1)[:below] = -20
    spec = draw_chart(replace(picture, answer=answer, low=answer - 9, high=answer + 9))
    assert spec["layer"][0]["encoding"]["color"]["scale"]["scheme"] == scheme


@pytest.mark.parametrize("columns", [9, 10])
def test_shaded_cells_have_digits_up_to_nine_columns(columns):
    spec = draw_chart(
        made((names("region", *map(str, range(20))), names("job", *map(str, range(columns)))))
    )
    assert [layer["mark"]["type"] for layer in spec["layer"]] == [
        "rect",
        *["text"] * (columns == 9),
    ]
    assert (spec["encoding"]["y"]["title"], spec["encoding"]["x"]["title"]) == (
        ("region", "job") if columns == 9 else ("job", "region")
    )


def test_isolated_answer_is_drawn_with_its_interval(drawn):
    steps = with_gaps((cells("income", 0, 29),))
    rows = draw_chart(steps)["data"]["values"]
    spans = [
        (row["x"], next_row["x"])
        for row, next_row in pairwise(rows)
        if None not in (row["answer"], next_row["answer"]) and next_row["x"] > row["x"]
    ]
    assert spans == [
        (float(place), place + 1.0) for place in np.flatnonzero(~np.isnan(steps.answer))
    ]
    for picture, text in zip(GAPS, drawn[-4:-2], strict=True):
        flat = np.isnan(picture.answer.reshape(-1, picture.answer.shape[-1]))
        gone = np.pad(flat, ((0, 0), (1, 1)), constant_values=True)
        alone = int((~flat & gone[:, :-2] & gone[:, 2:]).sum())
        assert (
            sum(
                len(node)
                for node in read(text).iter()
                if "mark-symbol role-mark" in (node.get("class") or "")
            )
            == alone
            > 0
        )


def test_neighbouring_cells_of_large_numbers_do_not_merge():
    spec = draw_chart(made((cells("number", 1_000_000, 1_000_030),)))
    assert [row["x"] for row in spec["data"]["values"]] == [1_000_000.0 + k for k in range(32)]
    assert spec["encoding"]["x"]["title"] == "number"
    spec = draw_chart(made((up_to("number", 20_000, 100),)))
    assert spec["encoding"]["x"]["title"] == "number, up to"
    assert len({row["x"] for row in spec["data"]["values"]}) == len(spec["data"]["values"])


def test_dots_of_one_group_are_apart_and_clip_with_arrows(drawn):
    assert WIDE["encoding"]["yOffset"]["field"] == "group"
    # Vega complains on the console of a layer without rows
    assert [sum("transform" in part for part in spec["layer"]) for spec in (WIDE, DOTS)] == [2, 0]
    ends = [(row["low"], row["from"], row["to"], row["high"]) for row in WIDE["data"]["values"]]
    assert ends == [(4, 4, 6, 6), (7, 7, 9, 9), (-100, 3.5, 9.5, 100), (7, 7, 9, 9)]
    assert [row["open"] for row in WIDE["data"]["values"]] == [False, False, True, False]
    scale = WIDE["layer"][0]["encoding"]["x"]["scale"]
    assert scale["domain"] == [3.5, 9.5]
    assert drawn[-2].count("<path") >= 4 + 2  # four dots and two arrows


@pytest.mark.parametrize(
    "wide",
    [(0.0, 20.0), (-3.0, 12.0), (7.0, 21.0)],
    ids=["both sides", "uneven", "upwards"],
)
def test_dots_show_whole_intervals_if_they_fit(wide):
    rows = [(name, "", 10.0, 7.0, 13.0) for name in "abcdef"]
    spec = draw_dots(DotPlot(title="pay", groups="sex", rows=(*rows, ("g", "", 9.0, *wide))))
    drawn = [(row["from"], row["to"]) for row in spec["data"]["values"]]
    assert drawn == [*[(7, 13)] * 6, wide]
    assert not any(row["open"] for row in spec["data"]["values"])
    assert "domain" not in spec["layer"][0]["encoding"]["x"]["scale"]


def test_dots_without_intervals_or_values_have_an_axis():
    missing = ("a", "", float("nan"), float("nan"), float("nan"))
    for rows in ((missing,), (("a", "", 3.0, 3.0, 3.0),), (("a", "", 3.0, 1.0, 900.0), missing)):
        spec = draw_dots(DotPlot(title="pay", groups="sex", rows=rows))
        assert not any(row["open"] for row in spec["data"]["values"])


def test_line_with_dominating_band_is_named_not_drawn():
    picture = made((SEX, up_to("income", 8, 10)))
    wide = np.where(np.arange(2)[:, None] == 0, 1e3, 1)
    unsure = replace(picture, low=picture.answer - wide, high=picture.answer + wide)
    assert (groups_with_wide_bands(picture), groups_with_wide_bands(unsure)) == (
        (),
        (SEX.labels[0],),
    )
    assert {row["group"] for row in draw_chart(unsure)["data"]["values"]} == {*SEX.labels[1:]}


def test_panels_of_unequal_groups_have_own_axes():
    even = made((REGION, months("month", 24)))
    sizes = np.where(np.arange(REGION.size) == 0, 10, 1)[:, None]
    uneven = replace(
        even, **{name: sizes * getattr(even, name) for name in ("answer", "low", "high")}
    )
    assert (has_own_scales(even), has_own_scales(uneven)) == (False, True)
    assert "resolve" not in draw_chart(even)
    assert draw_chart(uneven)["resolve"] == {"scale": {"y": "independent"}}


@pytest.mark.parametrize(("level", "is_cut"), [(1000, True), (70, False), (-1000, False)])
def test_time_axis_is_cut_only_far_above_zero(level, is_cut):
    picture = made((months("month", 24),), level, 30.0)
    scale = draw_chart(picture)["layer"][0]["encoding"]["y"].get("scale")
    assert (has_axis_above_zero(picture), scale) == (is_cut, {"zero": False} if is_cut else None)


def test_bars_of_many_names_are_sorted():
    labels = tuple("fedcbaghi")
    answer = np.arange(10.0)
    sorted_axis = Axis(name="job", labels=(*labels, "other"), further_keys=1)
    picture = replace(made((sorted_axis,)), answer=answer, low=answer, high=answer)
    shown = [row["k0"] for row in draw_chart(picture)["data"]["values"]]
    assert shown == [*reversed(labels), "other"]
    numbered = Axis(name="job", labels=tuple(f"{code} {code}" for code in range(10)))
    assert numbered.order_by(answer) == list(range(10))
    assert names("day", *"MTWTFSS").order_by(answer) == list(range(7))


def test_bars_of_small_charts_share_one_order():
    groups = names("region", *"abcdefghi")
    answer = np.array([np.arange(9.0), np.arange(9.0)[::-1] / 2])
    picture = replace(made((SEX, groups)), answer=answer, low=answer, high=answer)
    rows = draw_chart(picture)["data"]["values"]
    shown = {group: "".join(row["k0"] for row in rows if row["group"] == group) for group in "FM"}
    assert shown == {"F": "ihgfedcba", "M": "ihgfedcba"}
