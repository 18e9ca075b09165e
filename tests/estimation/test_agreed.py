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


def asked():
    along = ["total", ln.level("land"), ln.level("town"), "identity"]
    products = [
        ln.queries(DOMAIN, sex=of, place=one) for of in ("total", "identity") for one in along
    ]
    return sum(products[1:], products[0])


def estimated(seed):
    workload = asked()
    plan = ln.plan(workload, ln.ZCDP("1/50"), strategy="marginals")
    rows = np.random.default_rng(seed).geometric(0.1, 300).clip(1, 30) - 1
    table = Table(DOMAIN, {"sex": rows % 2, "place": rows})
    return workload, Estimate(simulate(plan.measured(), table, SeededEntropy(seed)))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("non_negative", [False, True])
def test_all_tables_are_sums_of_the_cells(whole, non_negative):
    workload, estimate = estimated(3)
    finest = finest_table(workload.products)
    agreed = make_consistent(
        estimate, workload.products, finest, is_non_negative=non_negative, is_whole=whole
    )
    assert finest.rows == 60
    truth = agreed.cells.reshape(2, 30)
    assert (truth >= 0).all() == non_negative
    assert not whole or agreed.cells.dtype == np.int64
    if not (whole or non_negative):
        np.testing.assert_allclose(agreed.cells, estimate.values(finest), atol=1e-6)
    for product in workload:
        sums = truth if "sex" in product.attributes else truth.sum(axis=0, keepdims=True)
        groups, labels = np.zeros(30, int), [0]
        if "place" in product.attributes:
            groups, labels = (
                GROUPS[product.keys[-1].split(":")[-1]],
                [int(label) for label in product.labels[-1]],
            )
        by_group = np.stack([sums[:, groups == label].sum(axis=1) for label in labels], axis=-1)
        np.testing.assert_allclose(
            np.asarray(agreed.values(product)).reshape(-1), by_group.reshape(-1), atol=1e-9
        )
    total = float(estimate.values(workload.products[0]))
    assert abs(float(agreed.cells.sum()) - total) <= (0.5 if whole else 1e-6)


def test_agreed_counts_are_nearest_within_groups():
    random = np.random.default_rng(5)
    values, sums = random.normal(1, 4, (30, 3)), random.integers(0, 20, (6, 3)).astype(float)
    sums[2] = 0
    near = project_to_parent_sums(values, TOWNS, sums, is_non_negative=True, is_whole=False)
    rounded = project_to_parent_sums(values, TOWNS, sums, is_non_negative=True, is_whole=True)
    for group in range(6):
        of_group = group == TOWNS
        for column in range(3):
            np.testing.assert_allclose(
                near[of_group, column],
                project_to_simplex(values[of_group, column], sums[group, column]),
                atol=1e-9,
            )
            assert rounded[of_group, column].sum() == sums[group, column]
    assert (rounded >= 0).all()
    assert (np.abs(rounded - near) < 1 + 1e-9).all()
    assert (rounded == np.rint(rounded)).all()


def test_agreement_needs_a_level_with_all_cells():
    domain = ln.Domain(
        a=ln.Coded(4, levels={"half": {0: "x", 1: "x", 2: "y", 3: "y"}}), b=ln.Coded(3)
    )
    half, cells = ln.queries(domain, a=ln.level("half")), ln.marginals(domain, ways=2)
    assert finest_table(cells.products) is None
    assert finest_table((half + ln.marginals(domain, ways=1)).products) is None
    assert finest_table((half + cells).products).attributes == ("a", "b")


def test_sums_that_may_be_negative_are_not_raised_to_0():
    domain = ln.Domain(
        a=ln.Coded(4, levels={"half": {0: "x", 1: "x", 2: "y", 3: "y"}}),
        measures={"debt": ln.Measure("debt", -9, 9)},
    )
    along = ln.queries(domain, a=ln.level("half"), sum="debt") + ln.queries(
        domain, a="identity", sum="debt"
    )
    rows, options = (
        pd.DataFrame({"a": [0, 1, 2, 3], "debt": [-9] * 4}),
        ln.Options(non_negative=True, integer=True),
    )
    for table in ln.release(
        ln.plan(along, ln.PureDP(100), strategy="marginals"), rows, seed=1, options=options
    ).tables:
        assert table.non_negative is None
        assert (table.integer < 0).all()


def test_level_release_has_agreed_columns(
    tmp_path,
):
    rows = np.random.default_rng(1).integers(0, 30, 200)
    plan = ln.plan(asked(), ln.ZCDP("1/50"), strategy="marginals")
    options = ln.Options(non_negative=True, integer=True)
    release = ln.release(
        plan,
        pd.DataFrame({"sex": rows % 2, "place": rows}),
        seed=1,
        options=options,
        out=tmp_path / "out",
    )
    tables = {table.product.keys: table for table in release.tables}
    whole, towns = tables["sex", "place"].integer, tables["sex", "place:town"]
    assert (whole >= 0).all()
    np.testing.assert_array_equal(
        np.stack([whole[:, int(label) == TOWNS].sum(axis=1) for label in towns.labels[1]], axis=1),
        towns.integer,
    )
    assert '"agreed"' in (tmp_path / "out" / "manifest.json").read_text()
    written = [
        pq.read_table(file).to_pydict()
        for file in sorted((tmp_path / "out" / "answers").glob("*.parquet"))
    ]
    levels = {table["query"][0]: set(table["level"]) for table in written}
    names = ["total", "land", "town", "place"]
    assert levels == {f"q{number}": {name} for number, name in enumerate([*names, *names], 1)}
    listed = (
        (tmp_path / "out" / "report.html").read_text().split('id="levels"')[1].split("</table>")[0]
    )
    assert listed.count("<tr>") == 4  # with the heading
    largest = tables[("place:town",)]
    assert f"{largest.labels[0][int(largest.answer.argmax())]}: " in listed
