"""Non-negative whole answers of tables with levels: they agree, and are the nearest."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import leastnoise as ln
from leastnoise._estimation import (
    Estimate,
    finest_table,
    make_consistent,
    project_to_parent_sums,
    project_to_simplex,
)
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.table import Table

# No order of the cells keeps the towns together.
TOWNS = np.random.default_rng(2).permutation(np.repeat(np.arange(6), [1, 2, 3, 5, 8, 11]))
GROUPS = {"town": TOWNS, "land": TOWNS // 3, "place": np.arange(30)}
DOMAIN = ln.Domain(
    sex=ln.Coded(2, complete=True),
    place=ln.Coded(
        30,
        complete=True,
        levels={
            "town": dict(enumerate(TOWNS.tolist())),
            "land": dict(enumerate((TOWNS // 3).tolist())),
        },
    ),
)


def level_workload():
    """Return tables of all levels of places, in all and by sex."""
    first, *tables = [
        ln.queries(DOMAIN, sex=sex, place=place)
        for sex in ("total", "identity")
        for place in ("total", ln.level("land"), ln.level("town"), "identity")
    ]
    return sum(tables, first)


def workload_and_estimate(seed):
    workload = level_workload()
    plan = ln.plan(workload, ln.ZCDP("1/50"), strategy="marginals")
    rows = np.random.default_rng(seed).geometric(0.1, 300).clip(1, 30) - 1
    table = Table(DOMAIN, {"sex": rows % 2, "place": rows})
    return workload, Estimate(simulate(plan.measured(), table, SeededEntropy(seed)))


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("is_non_negative", [False, True])
def test_all_tables_are_sums_of_the_cells(is_whole, is_non_negative):
    workload, estimate = workload_and_estimate(3)
    finest = finest_table(workload.products)
    agreed = make_consistent(
        estimate, workload.products, finest, is_non_negative=is_non_negative, is_whole=is_whole
    )
    assert finest.rows == 60
    cells = agreed.cells.reshape(2, 30)
    assert (cells >= 0).all() == is_non_negative
    assert not is_whole or agreed.cells.dtype == np.int64
    if not (is_whole or is_non_negative):
        np.testing.assert_allclose(agreed.cells, estimate.values(finest), atol=1e-6)
    for product in workload:
        by_sex = cells if "sex" in product.attributes else cells.sum(axis=0, keepdims=True)
        expected = sums_of_places(by_sex, product)
        np.testing.assert_allclose(
            np.asarray(agreed.values(product)).reshape(-1), expected.reshape(-1), atol=1e-9
        )
    total = float(estimate.values(workload.products[0]))
    assert abs(float(agreed.cells.sum()) - total) <= (0.5 if is_whole else 1e-6)


def sums_of_places(cells, product):
    """Return the sums of cells over the places of each label of a product."""
    if "place" not in product.attributes:
        return cells.sum(axis=1)
    groups = GROUPS[product.keys[-1].split(":")[-1]]
    sums = [cells[:, groups == int(label)].sum(axis=1) for label in product.labels[-1]]
    return np.stack(sums, axis=-1)


def test_agreed_counts_are_nearest_within_groups():
    random = np.random.default_rng(5)
    values = random.normal(1, 4, (30, 3))
    sums = random.integers(0, 20, (6, 3)).astype(float)
    sums[2] = 0
    nearest = project_to_parent_sums(values, TOWNS, sums, is_non_negative=True, is_whole=False)
    rounded = project_to_parent_sums(values, TOWNS, sums, is_non_negative=True, is_whole=True)
    for group in range(6):
        of_group = group == TOWNS
        for column in range(3):
            np.testing.assert_allclose(
                nearest[of_group, column],
                project_to_simplex(values[of_group, column], sums[group, column]),
                atol=1e-9,
            )
            assert rounded[of_group, column].sum() == sums[group, column]
    assert (rounded >= 0).all()
    assert (np.abs(rounded - nearest) < 1 + 1e-9).all()
    assert (rounded == np.rint(rounded)).all()


def test_agreement_needs_a_level_with_all_cells():
    domain = ln.Domain(
        a=ln.Coded(4, levels={"half": {0: "x", 1: "x", 2: "y", 3: "y"}}), b=ln.Coded(3)
    )
    half = ln.queries(domain, a=ln.level("half"))
    cells = ln.marginals(domain, ways=2)
    assert finest_table(cells.products) is None
    assert finest_table((half + ln.marginals(domain, ways=1)).products) is None
    assert finest_table((half + cells).products).attributes == ("a", "b")


def test_sums_that_may_be_negative_are_not_raised_to_0():
    domain = ln.Domain(
        a=ln.Coded(4, levels={"half": {0: "x", 1: "x", 2: "y", 3: "y"}}),
        measures={"debt": ln.Measure("debt", -9, 9)},
    )
    workload = ln.queries(domain, a=ln.level("half"), sum="debt")
    workload += ln.queries(domain, a="identity", sum="debt")
    plan = ln.plan(workload, ln.PureDP(100), strategy="marginals")
    rows = pd.DataFrame({"a": [0, 1, 2, 3], "debt": [-9] * 4})
    options = ln.Options(non_negative=True, integer=True)
    release = ln.release(plan, rows, seed=1, options=options)
    for table in release.tables:
        assert table.non_negative is None
        assert (table.integer < 0).all()


@pytest.fixture(scope="module")
def level_release(tmp_path_factory):
    """Return a release with agreed answers, and its folder."""
    out = tmp_path_factory.mktemp("levels") / "out"
    rows = np.random.default_rng(1).integers(0, 30, 200)
    release = ln.release(
        ln.plan(level_workload(), ln.ZCDP("1/50"), strategy="marginals"),
        pd.DataFrame({"sex": rows % 2, "place": rows}),
        seed=1,
        options=ln.Options(non_negative=True, integer=True),
        out=out,
    )
    return release, out


def test_level_release_has_agreed_columns(level_release):
    release, out = level_release
    tables = {table.product.keys: table for table in release.tables}
    cells = tables["sex", "place"].integer
    towns = tables["sex", "place:town"]
    assert (cells >= 0).all()
    sums = [cells[:, int(label) == TOWNS].sum(axis=1) for label in towns.labels[1]]
    np.testing.assert_array_equal(np.stack(sums, axis=1), towns.integer)
    assert '"agreed"' in (out / "manifest.json").read_text()


def test_level_release_names_the_level_of_each_table(level_release):
    _, out = level_release
    files = sorted((out / "answers").glob("*.parquet"))
    tables = [pq.read_table(file).to_pydict() for file in files]
    levels = {table["query"][0]: set(table["level"]) for table in tables}
    names = ["total", "land", "town", "place"]
    assert levels == {f"q{number}": {name} for number, name in enumerate([*names, *names], 1)}


def test_report_of_levels_lists_the_largest_group(level_release):
    release, out = level_release
    page = (out / "report.html").read_text()
    level_table = page.split('id="levels"')[1].split("</table>")[0]
    # Three levels and the heading.
    assert level_table.count("<tr>") == 4
    towns = next(table for table in release.tables if table.product.keys == ("place:town",))
    assert f"{towns.labels[0][int(towns.answer.argmax())]}: " in level_table
