"""The mode that explores a finished release: tables and sums are those of its measurements, exactly."""

import json
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._check import InputError
from leastnoise._release import rounding_words, texts
from leastnoise._session._session import planned_spec
from leastnoise._studio._explore_page import Exploring
from simulated import releases
from spec.test_public import BOTH, ROWS_OF, spec_of
from studio.conftest import serving

DOMAIN = ln.Domain(
    sex=["F", "M"], zone=["north", "south", "<b>west</b>"], kids=ln.Integers(0, 5), measures={"pay": ln.Measure("pay", 0, 100)}
)
ASKED = ln.marginals(DOMAIN, ways=2) + ln.queries(DOMAIN, sex="identity", kids="identity", sum="pay")


def rows():
    random = np.random.default_rng(0)
    texts = {name: random.choice(values, 500) for name, values in (("sex", ["F", "M"]), ("zone", ["north", "south"]))}
    return pd.DataFrame({**texts, "kids": random.integers(0, 6, 500), "pay": random.integers(0, 101, 500)})


def released(out, strategy, budget, asked=ASKED, language="en"):
    plan = ln.plan(asked, budget, strategy=strategy)
    return ln.release(plan, rows(), seed=1, out=out, options=ln.Options(formats=["csv"], level=0.9, language=language))


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return released(tmp_path_factory.mktemp("explored") / "release", "marginals", ln.PureDP(1))


@pytest.fixture
def client(release, tmp_path_factory):
    with serving(next(tmp_path_factory.getbasetemp().glob("explored*/release"))) as one:
        yield one


def test_a_page_has_tables_charts_and_sums_of_any_cells(client, release):
    for path in ("/", "/vega.js", "/exploring.js"):
        assert client.ask(path)[0::2] == (403, b"")
    assert client.ask("/table", {})[0::2] == (403, b"")
    page = client.enter()
    assert "NOT PRIVATE" in page
    assert "<b>west</b>" not in page
    assert b"vegaEmbed" in client.ask("/vega.js")[2]
    asked = {"asked": {"sex": "identity", "zone": "", "kids": "prefix"}, "measure": ""}
    found = client.json("/table", asked)
    (table,) = release.answer(ln.queries(DOMAIN, sex="identity", kids="prefix"))
    assert [row[0] for row in found["rows"]] == table.cell_names()
    assert [float(row[1].replace(",", "")) for row in found["rows"]] == pytest.approx(table.answer.reshape(-1), abs=0.51)
    assert found["chart"]["$schema"].startswith("https://vega.github.io/schema/vega-lite")
    total = client.json("/sum", {"asked": {"sex": "identity", "kids": "identity"}, "cells": [7, 8, 9]})
    wanted = release.sum("sex x kids", {"sex": "M", "kids": (1, 3)})
    assert total["answer"] == pytest.approx(float(wanted.answer.sum()))
    assert total["noise_std"] == pytest.approx(float(wanted.noise_std.sum()))
    assert (total["low"], total["high"]) == (pytest.approx(float(wanted.low.sum())), pytest.approx(float(wanted.high.sum())))
    assert total["sum"].startswith("3 cells: ")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/table", {"asked": {"age": "identity"}}, "an attribute must be"),
        ("/table", {"asked": {"sex": "all"}}, "what is asked of sex must be"),
        ("/table", {"asked": [], "measure": ""}, "an object of attributes"),
        ("/table", {"asked": {}, "measure": "age"}, "sum must be"),
        ("/sum", {"asked": {"sex": "identity"}, "cells": []}, "at least one cell"),
        ("/sum", {"asked": {"sex": "identity"}, "cells": [2]}, "a cell must be"),
        ("/sum", {"asked": {"sex": "identity"}, "cells": "0"}, "a list of cells"),
    ],
)
def test_what_cannot_be_answered_is_said(client, path, body, message):
    client.enter()
    status, _, content = client.ask(path, body)
    assert (status, message in json.loads(content)["refused"]) == (200, True), content


def test_sums_of_scattered_cells_have_the_error_of_independent_cells(tmp_path):
    apart = ln.marginals(DOMAIN, ways=2) + ln.queries(DOMAIN, sex="identity", sum="pay")  # no sums that tell of counts
    release = released(tmp_path / "release", "identity", ln.ZCDP("1/2"), apart)
    exploring = Exploring(release)
    asked = (("sex", "identity"), ("zone", "identity"))
    (scale,) = {float(block.scale) for block in release.measurements.blocks if block.measure is None}
    one = exploring.sum(asked, None, [0])
    for cells in ([0, 4], [1, 3, 5], [0, 1, 2, 3, 4, 5], [2, 2, 2, 3]):
        found = exploring.sum(asked, None, cells)
        assert found.noise_std == pytest.approx(one.noise_std * len(set(cells)) ** 0.5)  # every cell has been measured by itself
        assert found.answer == pytest.approx(exploring.table(asked, None).answer.reshape(-1)[sorted(set(cells))].sum())
    assert one.noise_std == pytest.approx(scale * 6**0.5, rel=1e-3)
    paid = exploring.sum((("sex", "identity"),), "pay", range(2))
    whole = release.sum("sum of pay by sex")
    assert (paid.answer.item(), paid.noise_std.item(), paid.low.item()) == pytest.approx(
        (float(whole.answer.sum()), float(whole.noise_std.sum()), float(whole.low.sum()))
    )


@pytest.mark.parametrize(
    ("table", "where", "cells"),
    [
        ("sex x store", {"sex": "F"}, range(6)),  # public
        ("sex x store", {"sex": "F", "store": ["a", "b"]}, [0, 1]),
        ("sex x store", {"store": ["a", "c", "d"]}, [0, 2, 3, 6, 8, 9]),
        ("sex x age", {"sex": "M", "age": (3, 5)}, [15, 16, 17]),
        ("age x store", {"age": (0, 11), "store": ["a", "c"]}, [6 * age + store for age in range(12) for store in (0, 2)]),  # public
    ],
)
def test_sums_beside_public_counts_are_those_of_the_release(table, where, cells):
    (release,) = releases(planned_spec(spec_of(BOTH)), ROWS_OF, [1])
    seen = Exploring(release).sum(tuple((name, "identity") for name in table.split(" x ")), None, cells)
    wanted = release.sum(table, where)
    numbers = [float(values.reshape(-1)[0]) for values in (seen.answer, seen.noise_std, seen.low, seen.high)]
    exact = [float(values.reshape(-1)[0]) for values in (wanted.answer, wanted.noise_std, wanted.low, wanted.high)]
    assert numbers == pytest.approx(exact, abs=1e-6)
    assert (numbers[1] < 1e-6) == (len(cells) in (6, 24) and "d" not in where.get("store", []))


def test_a_release_that_looked_at_the_data_has_no_error_for_such_sums():
    domain = ln.Domain(kids=ln.Integers(0, 15))
    plan = ln.plan(ln.queries(domain, kids="identity"), ln.PureDP(1), strategy="dawa")
    exploring = Exploring(ln.release(plan, rows(), seed=1))
    assert exploring.table((("kids", "identity"),), None).cells == 16
    with pytest.raises(InputError, match="looked at the data"):
        exploring.sum((("kids", "identity"),), None, [1, 5])


def test_large_tables_are_refused():
    domain = ln.Domain(a=ln.Integers(0, 99), b=ln.Integers(0, 99))
    made = ln.release(ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1), strategy="identity"), pd.DataFrame({"a": [1], "b": [2]}), seed=1)
    with pytest.raises(InputError, match="at most 4096 cells; this one would have 10000"):
        Exploring(made).table((("a", "identity"), ("b", "identity")), None)


def test_means_quantiles_and_functions_are_shown_with_their_charts(tmp_path):
    asked = ln.mean_queries(DOMAIN, of="pay", by=["zone"]) + ln.quantile_queries(DOMAIN, of="kids", at=["1/2"])
    asked += ln.cdf_queries(DOMAIN, of="kids", by=["sex"])
    made = ln.release(ln.plan(asked, ln.PureDP(4), strategy="identity"), rows(), seed=1, out=tmp_path / "out")
    with serving(tmp_path / "out") as client:
        page = client.enter()
        for one in made.statistics:
            assert f'<h3 id="n{one.id}">{one.name} ' in page
            assert all(text.replace("<", "&lt;").replace(">", "&gt;") in page for row in one.written(texts(), 200) for text in row)
            chart = client.json("/statistic", {"statistic": one.id})["chart"]
            assert (chart is None) == (one.cells == 1)
        assert "must be called by its id" in client.json("/statistic", {"statistic": 7})["refused"]
        assert "must be called by its id or name" in client.json("/statistic", {"statistic": "q1"})["refused"]


def test_charts_write_numbers_and_dates_in_the_language_of_the_release(tmp_path):
    asked = ASKED + ln.cdf_queries(DOMAIN, of="kids", by=["sex"])
    made = released(tmp_path / "out", "identity", ln.PureDP(4), asked, "de")
    with serving(tmp_path / "out") as client:
        client.enter()
        charts = [
            client.json("/table", {"asked": {"sex": "identity"}, "measure": ""}),
            client.json("/statistic", {"statistic": made.statistics["s1"].id}),
        ]
    for found in charts:
        words = found["chart"]["config"]["locale"]
        assert (words["number"]["decimal"], words["time"]["months"][6]) == (",", "Juli")


def test_a_level_is_picked_like_an_attribute(tmp_path):
    domain = ln.Domain(
        zone=ln.Categories(["a", "b", "c"], levels={"half": {"a": "left", "b": "left", "c": "right"}}), kids=ln.Integers(0, 5)
    )
    rows = pd.DataFrame({"zone": list("aabc") * 50, "kids": [0, 1, 2, 3] * 50})
    asked = ln.queries(domain, zone="identity", kids="identity") + ln.cdf_queries(domain, "kids", by=[{"zone": ln.level("half")}])
    release = ln.release(ln.plan(asked, ln.PureDP(2), strategy="identity"), rows, seed=1, out=tmp_path / "release")
    with serving(tmp_path / "release") as client:
        page = client.enter()
        assert page.count('<option value="half">half</option>') == 1
        found = client.json("/table", {"asked": {"zone": "half", "kids": ""}, "measure": ""})
        (table,) = release.answer(ln.queries(domain, zone=ln.level("half")))
        assert [row[0] for row in found["rows"]] == ["zone:half=left", "zone:half=right"]
        total = client.json("/sum", {"asked": {"zone": "half", "kids": ""}, "measure": "", "cells": [0]})
        assert total["answer"] == pytest.approx(table.answer[0])
        assert "distribution of kids by zone:half" in page


WIDE = ln.Domain(
    a=ln.Integers(0, 64),
    b=ln.Categories([str(number) for number in range(64)], levels={"tens": {str(number): f"t{number // 10}" for number in range(64)}}),
    measures={"pay": ln.Measure("pay", 0, 100)},
)


@pytest.mark.parametrize(
    ("asked", "first", "cells"),
    [
        (ln.marginals(WIDE, ways=2), {"a": "identity"}, 65),
        (ln.queries(WIDE, a="all_ranges"), {"a": "identity"}, 65),
        (ln.queries(WIDE, b=ln.level("tens")), {"b": "tens"}, 7),
        (ln.queries(WIDE, a=ln.ranges([(0, 9)])) + ln.queries(WIDE, b="prefix"), {"b": "prefix"}, 64),
        (ln.queries(WIDE, a=ln.ranges([(0, 9)])) + ln.queries(WIDE), {}, 1),
        (ln.queries(WIDE, b=ln.level("tens"), sum="pay"), {"b": "tens"}, 7),
    ],
)
def test_a_page_opens_with_a_table_that_it_can_show(tmp_path, asked, first, cells):
    rows = pd.DataFrame({"a": range(60), "b": [str(number) for number in range(60)], "pay": 1})
    made = ln.release(ln.plan(asked, ln.PureDP(1), strategy="workload"), rows, seed=1, out=tmp_path / "release")
    with serving(tmp_path / "release") as client:
        page = client.enter()
        picked = re.findall(r'data-name="(\w)">.*?<option value="(\w*)" selected>', page)
        assert {name: kind for name, kind in picked if kind} == first
        measure = re.findall(r'id="measure">.*?<option value="(\w*)" selected>', page)[0]
        assert measure == (made.workload.measures[0] or "")
        assert len(client.json("/table", {"asked": first, "measure": measure})["rows"]) == cells


@pytest.mark.parametrize("language", ["en", "de"])
def test_tables_and_sums_of_a_rounded_release_are_rounded_and_say_so(tmp_path, language):
    asked = ln.queries(DOMAIN, sex="identity", zone="identity") + ln.queries(DOMAIN, kids="identity")
    options = ln.Options(formats=["csv"], round=5, below=20, language=language)
    made = ln.release(ln.plan(asked, ln.PureDP(4), strategy="identity"), rows(), seed=1, out=tmp_path / "release", options=options)
    wanted, question = made.tables["sex x zone"], {"sex": "identity", "zone": "identity"}
    said = texts(language)
    with serving(tmp_path / "release") as client:
        assert rounding_words(made.options, said) in unescape(client.enter())
        seen = client.json("/table", {"asked": question, "measure": ""})["rows"]
        columns = [one.reshape(-1) for one in (wanted.answer, wanted.low, wanted.high)]
        margins = wanted.margins.reshape(-1)
        for row, answer, low, high, margin in zip(seen, *columns, margins, strict=True):
            assert row[1:] == [said.number(answer, margin), said.error(margin), said.number(low, margin), said.number(high, margin)]
        assert np.isnan(wanted.answer).any()
        found = client.json("/sum", {"asked": question, "cells": [0, 1, 3, 4]})
        exact = made.sum("sex x zone", {"zone": ["north", "south"]})
        assert found["answer"] == 5 * round(float(exact.answer.sum()) / 5)
        assert found["high"] - found["answer"] == pytest.approx(float(exact.margins.sum()) + 2.5)
        none = client.json("/sum", {"asked": question, "cells": [2, 5]})
        assert (none["answer"], none["low"]) == (None, None)
        assert none["high"] > 0
        assert said.number(float("nan")) in none["sum"]
