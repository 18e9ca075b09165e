"""Non-negative and whole tables add up, or the release names those that need not."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from hierarchies import PLACES, domain_spec, draw_places
from leastnoise._families import partition_groups
from leastnoise._pages import list_file_notices
from leastnoise._session import plan_spec
from leastnoise._spec import parse_spec
from leastnoise._texts import load_catalogue
from leastnoise._trusted.linop import dense

LEVELS = {
    "county": {each: each[:2] for each in PLACES},
    "state": {each: each[:1] for each in PLACES},
}
AGES = {"five": {"width": 5}, "ten": {"width": 10}}
OPTIONS = ln.Options(non_negative=True, integer=True)


def domain():
    """Return a domain with levels of places and ages."""
    return ln.Domain(
        place=ln.Categories(PLACES, levels=LEVELS),
        sex=["m", "f"],
        age=ln.Integers(0, 19, levels=AGES),
    ).as_complete()


def people(seed=1, rows=600):
    """Return random rows."""
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "place": draw_places(generator, rows),
            "sex": generator.choice(["m", "f"], rows),
            "age": generator.integers(0, 20, rows),
        }
    )


def release_of(workload):
    plan = ln.plan(workload, ln.ZCDP("1/20"), strategy="workload")
    return ln.release(plan, people(), seed=3, options=OPTIONS)


def tables_of(*tables):
    parts = [ln.queries(domain(), table) for table in tables]
    return sum(parts[1:], parts[0])


COUNTY, STATE, FIVE, TEN = (ln.level(name) for name in ("county", "state", "five", "ten"))
TREES = {
    "level of age": [
        {"place": "identity", "sex": "identity", "age": FIVE},
        {"place": "identity"},
        {"place": COUNTY},
        {"place": STATE, "age": TEN},
        {},
    ],
    "levels only": [{"place": COUNTY, "age": FIVE}, {"place": STATE}, {"age": TEN}, {"age": FIVE}],
    "sums of groups": [
        {"place": COUNTY, "age": FIVE},
        {"age": ln.ranges([(0, 9), (5, 19)])},
        {"place": ln.predicates([PLACES[:4], PLACES[8:]])},
    ],
    "cells": [{"place": "identity", "age": "identity"}, {"place": STATE, "age": "all_ranges"}],
}


def truth_of(product, cells):
    """Sum a table of all cells, by place and sex and age, to the answers of a product."""
    sums = cells
    for axis, name in enumerate(("place", "sex", "age")):
        if name not in product.attributes:
            sums = sums.sum(axis=axis, keepdims=True)
            continue
        operator = product.operators[product.attributes.index(name)]
        sums = np.moveaxis(np.tensordot(dense(operator), sums, axes=(1, axis)), 0, axis)
    return sums.reshape(product.shape)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("column", ["non_negative", "integer"])
def test_tables_with_levels_are_sums_of_one(tree, column):
    release = release_of(tables_of(*TREES[tree]))
    tables = [*release.tables]
    finest = max(
        (table for table in tables if all(q.kind != "ranges" for q in table.product.query_sets)),
        key=lambda table: table.product.rows if "all_ranges" not in table.name else 0,
    )
    fine = finest.product
    values = np.asarray(getattr(finest, column), dtype=float).reshape(fine.shape)
    # Each group of the finest table is put on its first cell; other tables are sums of its groups.
    cells = np.zeros((24, 2, 20))
    first = []
    for name in ("place", "sex", "age"):
        if name in fine.attributes:
            groups = partition_groups(fine.operators[fine.attributes.index(name)])
            first.append(np.unique(groups, return_index=True)[1])
        else:
            first.append(np.array([0]))
    cells[np.ix_(*first)] = values.reshape([len(each) for each in first])
    for table in tables:
        answers = np.asarray(getattr(table, column), dtype=float).reshape(table.product.shape)
        np.testing.assert_allclose(answers, truth_of(table.product, cells), atol=1e-6)
        assert (answers >= -1e-9).all()
    assert not any("add up" in notice for notice in list_file_notices(release))


PUBLIC = f"""
[privacy]
rho = "1/20"
{domain_spec(20, "five", 5)}"""
PUBLIC += """
[[workload]]
queries = { place = "identity", sex = "identity", age = { level = "five" } }
[[workload]]
queries = { place = { level = "county" } }
[[workload]]
queries = { place = { level = "state" }, age = { level = "five" } }
[[public]]
queries = { PUBLIC }
counts = COUNTS
[plan]
strategy = "workload"
"""


@pytest.mark.parametrize(
    ("public", "keys"),
    [
        ("place = { level = 'state' }", ["state"]),
        ("place = { level = 'county' }, sex = 'identity'", ["county", "sex"]),
        ("age = 'identity'", ["age"]),
    ],
)
def test_public_counts_stay_at_the_finest_level(public, keys):
    rows = people().assign(
        state=lambda each: each["place"].str[:1], county=lambda each: each["place"].str[:2]
    )
    values = {
        "state": ["1", "2"],
        "county": sorted({each[:2] for each in PLACES}),
        "sex": ["f", "m"],
        "age": range(20),
    }
    index = pd.MultiIndex.from_product([values[key] for key in keys])
    counts = rows.groupby(keys).size()
    counts.index = pd.MultiIndex.from_arrays(
        [counts.index.get_level_values(level) for level in range(len(keys))]
    )
    counts = counts.reindex(index, fill_value=0).tolist()
    text = PUBLIC.replace("PUBLIC", public)
    spec = parse_spec(text.replace("COUNTS", str(counts)), Path())
    plan = plan_spec(spec)
    release = ln.release(plan, people(), seed=3, options=OPTIONS)
    for column in ("non_negative", "integer"):
        fine, county, state = (
            np.asarray(getattr(table, column), dtype=float) for table in release.tables
        )
        fine = fine.reshape(24, 2, 4)
        np.testing.assert_allclose(
            fine.sum(axis=(1, 2)).reshape(6, 4).sum(axis=1), county, atol=1e-5
        )
        np.testing.assert_allclose(
            fine.sum(axis=1).reshape(2, 12, 4).sum(axis=1), state.reshape(2, 4), atol=1e-5
        )
        expected = np.array(counts, dtype=float)
        if keys == ["state"]:
            sums = county.reshape(2, 3).sum(axis=1)
        elif keys == ["age"]:
            sums = state.reshape(2, 4).sum(axis=0)
            expected = expected.reshape(4, 5).sum(axis=1)
        else:
            sums = fine.sum(axis=2).reshape(6, 4, 2).sum(axis=1).reshape(-1)
        np.testing.assert_allclose(sums, expected, atol=1e-4)
    assert not any("add up" in notice for notice in list_file_notices(release))


@pytest.mark.parametrize(
    "tables",
    [
        [{"place": "identity", "age": TEN}, {"place": COUNTY, "age": FIVE}],
        [{"place": "identity"}, {"age": FIVE}],
        [{"place": COUNTY, "age": FIVE}, {"age": ln.ranges([(0, 6), (7, 19)])}],
    ],
)
def test_non_additive_tables_are_named_first(tables):
    release = release_of(tables_of(*tables))
    (notice,) = [each for each in list_file_notices(release) if "add up" in each]
    for product in release.workload:
        assert product.name.replace("age:ranges", "age (ranges)") in notice
    assert "answer_non_negative and answer_integer" in notice
    german = list_file_notices(release, load_catalogue("de"))
    assert any("nicht übereinstimmen" in each for each in german)


def test_level_groups_keep_only_their_total():
    release = release_of(
        tables_of({"place": "identity", "age": TEN}, {"place": COUNTY, "age": FIVE})
    )
    for table in release.tables:
        assert float(table.non_negative.sum()) == pytest.approx(float(table.answer.sum()))
        assert abs(float(table.integer.sum()) - float(table.answer.sum())) <= 0.5
