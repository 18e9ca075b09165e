"""Tests of exploring a release in the studio: its tables, sums, statistics and charts."""

import re
from contextlib import contextmanager
from html import unescape

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._release import describe_rounding
from leastnoise._session import plan_spec
from leastnoise._studio import ReleaseExplorer
from leastnoise._texts import load_catalogue
from leastnoise._trusted.check import InputError
from simulated import releases
from spec.public_totals import PUBLIC_SEX_AND_REGION, SURVEY, spec_of
from studio.answers import is_empty_refusal
from studio.conftest import serving

DOMAIN = ln.Domain(
    sex=["F", "M"],
    zone=["north", "south", "<b>west</b>"],
    kids=ln.Integers(0, 5, outside="clip"),
    measures={"pay": ln.Measure("pay", 0, 100)},
)
WORKLOAD = ln.marginals(DOMAIN, ways=2) + ln.queries(
    DOMAIN, sex="identity", kids="identity", sum="pay"
)
BY_SEX = ln.cdf_queries(DOMAIN, of="kids", by=["sex"])


def rows():
    """Return 500 random rows of the domain."""
    random = np.random.default_rng(0)
    values = {"sex": ["F", "M"], "zone": ["north", "south"], "kids": range(6), "pay": range(101)}
    return pd.DataFrame({name: random.choice(labels, 500) for name, labels in values.items()})


def release_of(workload, budget=None, out=None, strategy="identity", data=None, **options):
    """Return a release of the workload, by default from random rows."""
    plan = ln.plan(workload, budget or ln.PureDP(1), strategy=strategy)
    if data is None:
        data = rows()
    return ln.release(plan, data, seed=1, out=out, options=ln.Options(formats=["csv"], **options))


@contextmanager
def explored(out):
    """Yield a client that has entered, and the page that it got."""
    with serving(out) as client:
        yield client, client.enter()


def numbers(total):
    """Return the answer, standard error and interval of a sum of cells."""
    columns = (total.answer, total.noise_std, total.low, total.high)
    return [float(column.sum()) for column in columns]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explored") / "release"


@pytest.fixture(scope="module")
def release(folder):
    return release_of(WORKLOAD, out=folder, strategy="marginals", level=0.9)


@pytest.fixture
def client(release, folder):
    with serving(folder) as studio_client:
        yield studio_client


@pytest.mark.slow
def test_explore_page_is_shown_after_login_only(client):
    for path in ("/", "/vega.js", "/exploring.js"):
        assert is_empty_refusal(client.ask(path))
    assert is_empty_refusal(client.ask("/table", {}))

    page = client.enter()
    assert "NOT PRIVATE" in page
    assert "<b>west</b>" not in page
    assert b"vegaEmbed" in client.ask("/vega.js")[2]


def test_explored_table_has_answers_and_a_chart(client, release):
    client.enter()
    question = {"asked": {"sex": "identity", "zone": "", "kids": "prefix"}, "measure": ""}
    shown = client.json("/table", question)
    (table,) = release.answer(ln.queries(DOMAIN, sex="identity", kids="prefix"))
    assert [row[0] for row in shown["rows"]] == table.cell_names()
    # The page shows whole numbers.
    shown_answers = [float(row[1].replace(",", "")) for row in shown["rows"]]
    assert shown_answers == pytest.approx(table.answer.reshape(-1), abs=0.51)
    assert shown["chart"]["$schema"].startswith("https://vega.github.io/schema/vega-lite")


@pytest.mark.parametrize(
    ("table", "measure"), [("sex x kids", ""), ("sum of pay by sex x kids", "pay")]
)
def test_explored_sum_matches_the_release(client, release, table, measure):
    client.enter()
    asked = {"sex": "identity", "kids": "identity"}
    shown = client.json("/sum", {"asked": asked, "measure": measure, "cells": [7, 8, 9]})
    expected = release.sum(table, {"sex": "M", "kids": (1, 3)})
    shown_numbers = [shown[key] for key in ("answer", "noise_std", "low", "high")]
    assert shown_numbers == pytest.approx(numbers(expected))
    assert shown["sum"].startswith("3 cells: ")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/table", {"asked": {"age": "identity"}}, "an attribute must be"),
        ("/table", {"asked": {"sex": "all"}}, "the query on sex must be"),
        ("/table", {"asked": [], "measure": ""}, "an object of attributes"),
        ("/table", {"asked": {}, "measure": "age"}, "sum must be"),
        ("/sum", {"asked": {"sex": "identity"}, "cells": []}, "at least one cell"),
        ("/sum", {"asked": {"sex": "identity"}, "cells": [2]}, "a cell must be"),
        ("/sum", {"asked": {"sex": "identity"}, "cells": "0"}, "a list of cells"),
    ],
)
def test_unanswerable_question_is_reported(client, path, body, message):
    client.enter()
    assert message in client.json(path, body)["refused"]


@pytest.mark.parametrize(
    ("table", "where", "cells", "is_public"),
    [
        ("sex x store", {"sex": "F"}, range(6), True),
        ("sex x store", {"sex": "F", "store": ["a", "b"]}, [0, 1, 1, 0], False),
        ("sex x store", {"store": ["a", "c", "d"]}, [0, 2, 3, 6, 8, 9], False),
        ("sex x age", {"sex": "M", "age": (3, 5)}, [15, 16, 17], False),
        (
            "age x store",
            {"age": (0, 11), "store": ["a", "c"]},
            [6 * age + store for age in range(12) for store in (0, 2)],
            True,
        ),
    ],
)
def test_sums_with_public_counts_match_the_release(table, where, cells, is_public):
    (release,) = releases(plan_spec(spec_of(PUBLIC_SEX_AND_REGION)), SURVEY, [1])
    shown = ReleaseExplorer(release).sum(
        tuple((name, "identity") for name in table.split(" x ")), None, cells
    )
    assert numbers(shown) == pytest.approx(numbers(release.sum(table, where)), abs=1e-6)
    assert (shown.noise_std.item() < 1e-6) == is_public


def test_adaptive_release_has_no_error_for_sums():
    workload = ln.queries(ln.Domain(kids=ln.Integers(0, 15)), kids="identity")
    explorer = ReleaseExplorer(release_of(workload, strategy="dawa"))
    assert explorer.table((("kids", "identity"),), None).cells == 16
    with pytest.raises(InputError, match="depend on the data"):
        explorer.sum((("kids", "identity"),), None, [1, 5])


def test_explore_page_shows_statistics_with_charts(tmp_path):
    workload = (
        ln.mean_queries(DOMAIN, of="pay", by=["zone"])
        + ln.quantile_queries(DOMAIN, of="kids", at=["1/2"])
        + BY_SEX
    )
    release = release_of(workload, ln.PureDP(4), tmp_path / "out")
    with explored(tmp_path / "out") as (client, page):
        for statistic in release.statistics:
            assert f'<h3 id="n{statistic.id}">{statistic.name} ' in page
            for row in statistic.format_rows(load_catalogue(), 200):
                for text in row:
                    assert text.replace("<", "&lt;").replace(">", "&gt;") in page
            chart = client.json("/statistic", {"statistic": statistic.id})["chart"]
            assert (chart is None) == (statistic.cells == 1)
        for unknown_id in (7, "q1"):
            answer = client.json("/statistic", {"statistic": unknown_id})
            assert "must be called by its id" in answer["refused"]


def test_charts_use_the_release_language(tmp_path):
    release_of(WORKLOAD + BY_SEX, ln.PureDP(4), tmp_path / "out", language="de")
    with explored(tmp_path / "out") as (client, _):
        for path, body in (
            ("/table", {"asked": {"sex": "identity"}, "measure": ""}),
            ("/statistic", {"statistic": "s1"}),
        ):
            locale = client.json(path, body)["chart"]["config"]["locale"]
            assert locale["number"]["decimal"] == ","
            assert locale["time"]["months"][6] == "Juli"


def test_level_is_picked_like_an_attribute(tmp_path):
    zone = ln.Categories(["a", "b", "c"], levels={"half": {"a": "left", "b": "left", "c": "right"}})
    domain = ln.Domain(zone=zone, kids=ln.Integers(0, 5, outside="clip"))
    data = pd.DataFrame({"zone": list("aabc") * 50, "kids": [0, 1, 2, 3] * 50})
    half = ln.level("half")
    workload = ln.queries(domain, zone="identity", kids="identity")
    workload += ln.cdf_queries(domain, "kids", by=[{"zone": half}])
    release = release_of(workload, ln.PureDP(2), tmp_path / "release", data=data)
    (table,) = release.answer(ln.queries(domain, zone=half))
    halves = {"asked": {"zone": "half", "kids": ""}, "measure": ""}
    with explored(tmp_path / "release") as (client, page):
        assert page.count('<option value="half">half</option>') == 1
        assert "distribution of kids by zone:half" in page
        rows = client.json("/table", halves)["rows"]
        assert [row[0] for row in rows] == ["zone:half=left", "zone:half=right"]
        left = client.json("/sum", {**halves, "cells": [0]})
        assert left["answer"] == pytest.approx(table.answer[0])


WIDE_DOMAIN = ln.Domain(
    a=ln.Integers(0, 64),
    b=ln.Categories(
        [str(number) for number in range(64)],
        levels={"tens": {str(number): f"t{number // 10}" for number in range(64)}},
    ),
    measures={"pay": ln.Measure("pay", 0, 100)},
)
BY_TENS = ln.level("tens")
SOME_RANGES = ln.queries(WIDE_DOMAIN, a=ln.ranges([(0, 9)]))


@pytest.mark.parametrize(
    ("workload", "first_table", "cells"),
    [
        (ln.marginals(WIDE_DOMAIN, ways=2), {"a": "identity"}, 65),
        (ln.queries(WIDE_DOMAIN, a="all_ranges"), {"a": "identity"}, 65),
        (ln.queries(WIDE_DOMAIN, b=BY_TENS), {"b": "tens"}, 7),
        (SOME_RANGES + ln.queries(WIDE_DOMAIN, b="prefix"), {"b": "prefix"}, 64),
        (SOME_RANGES + ln.queries(WIDE_DOMAIN), {}, 1),
        (ln.queries(WIDE_DOMAIN, b=BY_TENS, sum="pay"), {"b": "tens"}, 7),
    ],
)
def test_explore_page_opens_with_a_drawable_table(tmp_path, workload, first_table, cells):
    data = pd.DataFrame({"a": range(60), "b": [str(number) for number in range(60)], "pay": 1})
    release = release_of(workload, out=tmp_path / "release", strategy="workload", data=data)
    with explored(tmp_path / "release") as (client, page):
        picked = re.findall(r'data-name="(\w)">.*?<option value="(\w*)" selected>', page)
        assert {name: kind for name, kind in picked if kind} == first_table
        measure = re.findall(r'id="measure">.*?<option value="(\w*)" selected>', page)[0]
        assert measure == (release.workload.measures[0] or "")
        table = client.json("/table", {"asked": first_table, "measure": measure})
        assert len(table["rows"]) == cells


ROUNDED_TABLE = {"asked": {"sex": "identity", "zone": "identity"}, "measure": ""}


@pytest.fixture(params=["en", "de"])
def rounded_release(request, tmp_path):
    """Return a release rounded to 5, without numbers below 20, in English or German."""
    workload = ln.queries(DOMAIN, sex="identity", zone="identity")
    workload += ln.queries(DOMAIN, kids="identity")
    options = {"round": 5, "below": 20, "language": request.param}
    return release_of(workload, ln.PureDP(4), tmp_path / "release", **options)


def test_rounded_release_shows_rounded_tables(tmp_path, rounded_release):
    catalogue = load_catalogue(rounded_release.options.language)
    table = rounded_release.tables["sex x zone"]
    assert np.isnan(table.answer).any()
    columns = (table.answer, table.margins, table.low, table.high)
    expected_rows = []
    for answer, margin, low, high in zip(*(column.flat for column in columns), strict=True):
        numbers_of_cell = [
            catalogue.format_number(number, margin) for number in (answer, low, high)
        ]
        numbers_of_cell.insert(1, catalogue.format_error(margin))
        expected_rows.append(numbers_of_cell)
    with explored(tmp_path / "release") as (client, page):
        assert describe_rounding(rounded_release.options, catalogue) in unescape(page)
        rows = client.json("/table", ROUNDED_TABLE)["rows"]
        assert [row[1:] for row in rows] == expected_rows


def test_rounded_release_shows_rounded_sums(tmp_path, rounded_release):
    catalogue = load_catalogue(rounded_release.options.language)
    exact = rounded_release.sum("sex x zone", {"zone": ["north", "south"]})
    with explored(tmp_path / "release") as (client, _):
        shown = client.json("/sum", {**ROUNDED_TABLE, "cells": [0, 1, 3, 4]})
        assert shown["answer"] == 5 * round(float(exact.answer.sum()) / 5)
        half_a_step = 2.5
        margin = float(exact.margins.sum()) + half_a_step
        assert shown["high"] - shown["answer"] == pytest.approx(margin)

        hidden = client.json("/sum", {**ROUNDED_TABLE, "cells": [2, 5]})
        assert hidden["answer"] is None
        assert hidden["low"] is None
        assert hidden["high"] > 0
        assert catalogue.format_number(float("nan")) in hidden["sum"]


def test_page_and_tables_have_display_names(tmp_path):
    names = {
        "rows": "Kinderzimmer",
        "attributes": {"sex": "Geschlecht", "kids": "Kinder"},
        "measures": {"pay": {"name": "Lohn", "unit": "EUR"}},
    }
    options = {"names": names, "language": "de", "survey": {"cv": "0.1"}}
    release_of(WORKLOAD + BY_SEX, out=tmp_path / "named", **options)
    with explored(tmp_path / "named") as (client, page):
        assert ">Geschlecht</label>" in page
        assert ">Kinderzimmer</option>" in page
        assert ">Lohn</option>" in page
        assert "nur das Rauschen, nicht den Stichprobenfehler" in page
        table = client.json("/table", {"asked": {"sex": "identity"}, "measure": ""})
        assert table["name"] == "Kinderzimmer nach Geschlecht"
        assert table["rows"][0][0] == "Geschlecht=F"
