"""Planners as a whole: promised errors against dense algebra and simpler strategies."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

from leastnoise._domain import Coded, Domain, Integers, Measure
from leastnoise._mechanisms import noises_to_plan
from leastnoise._planning import plan
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import ZCDP, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import Identity, dense
from leastnoise._workload import (
    Workload,
    identity,
    marginals,
    matrix,
    mean_queries,
    queries,
    ranges,
)
from published_data import published_data
from simulated import releases
from strategies.proposals import error_of, plan_of, proposal, total_squared_error

DOMAIN = Domain(
    a=Coded(3), b=Integers(0, 15), c=Integers(0, 7), measures={"pay": Measure("pay", 0, 9)}
)
PURE = PureDP("1/100")
RHO = ZCDP("1/20000")


@pytest.mark.parametrize(
    ("budget", "last"), [(PURE, "p_identity"), (RHO, "gaussian_optimum")], ids=["pure", "gaussian"]
)
def test_optimised_families_beat_their_members(budget, last):
    for query_set in ("prefix", "all_ranges", ranges([(i, i + 3) for i in range(13)])):
        workload = queries(DOMAIN, b=query_set)
        cells, hierarchy, by_level, best = (
            error_of(name, workload, budget)
            for name in ("identity", "hierarchy", "level_tree", last)
        )
        assert by_level <= min(cells, hierarchy) * 1.0001
        assert best <= cells * 1.0001


def test_undetermined_cells_still_have_an_optimum():
    workload = queries(DOMAIN, b=ranges([(0, 7), (4, 11), (8, 15)]))
    expected_error = plan_of("gaussian_optimum", workload, RHO).expected_error()
    assert expected_error.total_squared_error <= expected_error.lower_bound * 1.1


def test_small_attribute_and_total_can_be_searched():
    domain = Domain(a=Integers(0, 63))
    strategy = proposal("covering", marginals(domain, upto=1), PureDP(1))
    assert {block.attributes for block, _ in strategy.blocks} == {(), ("a",)}


@pytest.mark.parametrize("strategy", ["level_tree", "haar"])
@pytest.mark.parametrize("sizes", [(40, 24), (40, 24, 12), (16, 12, 10, 8)])
def test_weighted_trees_of_products_keep_their_errors(strategy, sizes):
    """At rho 1/2 the squared error of a product is the product over its attributes."""
    attributes = {f"x{size}": Integers(1, size) for size in sizes}
    domain = Domain(attributes)

    def squared_error(*names):
        workload = queries(domain, dict.fromkeys(names, "prefix"))
        planned = plan(workload, ZCDP("1/2"), strategy=strategy)
        return planned.expected_error().total_squared_error

    expected = math.prod(squared_error(name) for name in attributes)
    assert squared_error(*attributes) == pytest.approx(expected, rel=2e-3)


def test_many_laplace_tables_have_drawable_scales():
    """Weights that the optimiser leaves at next to nothing are dropped."""
    workload = marginals(Domain({f"a{place:02d}": Coded(10) for place in range(12)}), upto=2)
    plan = plan_of("marginals", workload, PureDP(1))
    assert len(plan.measured().blocks) == 66
    assert plan.data_independent_error.total_squared_error > plan.data_independent_error.lower_bound


@pytest.mark.parametrize("shuffled", [False, True], ids=["line", "permuted"])
def test_few_ranges_are_planned_on_merged_cells(shuffled):
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(0, 256, (30, 2)), axis=1)
    order = rng.permutation(256) if shuffled else np.arange(256)
    rows = np.array(
        [(np.arange(256) >= low) & (np.arange(256) <= high) for low, high in ends]
    ).astype(int)[:, order]
    workload = queries(Domain(x=Integers(0, 255)), x=matrix(rows.tolist()))
    plan = plan_of("p_identity", workload, PURE)
    assert plan.measured().blocks[0].factors[0].operator.rows < 120  # fewer than there are cells
    # The error is 4.23 if every cell is measured.
    assert plan.expected_error().tables[0].rmse / (np.sqrt(2) * 100) < 3.58
    # The optimum for Gaussian noise has rank 30. It is the only measured block, and its error is as
    # small as its bound.
    plan = plan_of("gaussian_optimum", workload, RHO)
    total = plan.expected_error().total_squared_error
    assert 1 - 1e-6 <= total / plan.expected_error().lower_bound < 1.0015
    (block,) = plan.measured().blocks
    seen = dense(block.factors[0].operator) * float(1 / block.scale)
    assert total == pytest.approx(
        np.trace(rows @ np.linalg.pinv(seen.T @ seen, rcond=1e-9) @ rows.T), rel=1e-4
    )


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("1/2")], ids=["pure", "rho"])
def test_long_attribute_is_planned_on_runs_of_ranges(budget):
    ends = np.sort(np.random.default_rng(3).integers(0, 2**16, (12, 2)), axis=1)
    edges = np.unique([0, *ends[:, 0], *(ends[:, 1] + 1), 2**16])
    runs = np.searchsorted(edges, ends + np.array([0, 1])) - np.array([0, 1])
    long = queries(Domain(x=Integers(0, 2**16 - 1)), x={"ranges": ends.tolist()})
    short = queries(Domain(x=Integers(0, len(edges) - 2)), x={"ranges": runs.tolist()})
    for name in (
        "level_tree",
        "hierarchy",
        "p_identity",
        "p_identity_blocks",
        "toeplitz_root",
        "gaussian_optimum",
        "haar",
    ):
        if noises_to_plan(Privacy(budget))[0].norm in PLANNERS[name].norms:
            errors = [
                plan(workload, budget, strategy=name).expected_error() for workload in (long, short)
            ]
            assert errors[0].total_squared_error == pytest.approx(
                errors[1].total_squared_error, rel=1e-9
            ), name


@pytest.mark.parametrize("strategy", ["level_tree", "p_identity", "p_identity_blocks"])
def test_range_releases_have_planned_errors(strategy):
    rng = np.random.default_rng(5)
    size = 6000
    ends = np.sort(rng.integers(0, size, (30, 2)), axis=1)
    cells = rng.integers(0, size, 20_000)
    rows = pd.DataFrame({"x": cells})
    truth = [int(((cells >= low) & (cells <= high)).sum()) for low, high in ends]
    ranges_plan = plan(
        queries(Domain(x=Integers(0, size - 1)), x={"ranges": ends.tolist()}),
        PureDP("1/20"),
        strategy=strategy,
    )
    answers = [release.answers for release in releases(ranges_plan, rows, range(40))]
    ratios = [
        ((answer["answer"] - truth) ** 2).mean() / (answer["noise_std"] ** 2).mean()
        for answer in answers
    ]
    # Errors of ranges are correlated: the standard deviation of a ratio is about 0.5.
    assert 0.8 < np.mean(ratios) < 1.25


def test_partial_strategy_names_unanswerable_queries():
    workload = queries(DOMAIN, b=matrix([[1] * 8 + [0] * 8, [0] * 8 + [1] * 8]), c="prefix")
    plan = plan_of("p_identity", workload, PURE).measured()
    assert total_squared_error(workload, plan) > 0
    with pytest.raises(InputError, match="do not determine"):
        total_squared_error(queries(DOMAIN, b="prefix"), plan)


GROUPED = Domain(sex=Coded(2), race=Coded(24), age=Integers(0, 29))
RACES = matrix([[1, *[0] * 23], [0, 1, *[0] * 22], [0, 0, *[1] * 22]])


@pytest.mark.parametrize(
    ("budget", "unit"), [(PURE, 20_000), (RHO, 10_000)], ids=["pure", "gaussian"]
)
def test_union_measures_two_parts_separately(budget, unit):
    workload = (
        queries(GROUPED, sex="identity", race=RACES, age="identity")
        + queries(GROUPED, race="identity", age=matrix([[0] * 18 + [1] * 12]))
        + queries(GROUPED, race=RACES, age="total")
        + queries(GROUPED, race="identity")
    )
    plan = plan_of("union", workload, budget)
    total = plan.expected_error().total_squared_error
    assert len(plan.measured().blocks) == 2
    # What the planner says at unit noise is what the plan promises, up to rounding of scales and of
    # the strategies' norms.
    assert total == pytest.approx(proposal("union", workload, budget).error * unit, rel=2e-3)
    assert total < 0.7 * min(
        error_of(name, workload, budget) for name in ("identity", "marginals", "hierarchy")
    )


LEVELS = Domain(
    a=Integers(0, 31, levels={"g": {"width": 8}}),
    b=Integers(0, 63),
    measures={"pay": Measure("pay", 0, 1000)},
)


@pytest.mark.parametrize("name", ["level_tree", "eigen_design", "gaussian_optimum", "tilted"])
def test_other_tables_count_by_their_errors(name):
    # Coefficients of 2^20 and more along b must not make its queries look certain: then only the
    # groups of a would matter along a.
    workload = queries(LEVELS, a={"level": "g"}) + queries(LEVELS, a="identity", b="prefix")
    assert error_of(name, workload, ZCDP("1/2")) < error_of("hierarchy", workload, ZCDP("1/2"))


@pytest.mark.parametrize(
    ("name", "budget"), [("gaussian_optimum", ZCDP("1/2")), ("p_identity", PureDP(1))]
)
def test_sums_have_strategies_of_their_own(name, budget):
    # With the strategies of the counts, sums up to 1000 would need more bits than an integer has,
    # and sums of cells would be computed from weighted sums.
    workload = (
        queries(LEVELS, a="prefix", b="prefix")
        + queries(LEVELS, b="identity")
        + mean_queries(LEVELS, "pay", by=["a", "b"])
    )
    plan = plan_of(name, workload, budget)
    sums = [block for block in plan.measured().blocks if block.measure == "pay"]
    assert all(
        factor.operator == Identity(factor.operator.size)
        for block in sums
        for factor in block.factors
    )
    assert plan.expected_error().total_squared_error < error_of("marginals", workload, budget)


# --- the Census SF1 person tables: attributes in detail here and in groups there ------------------


def person_tables(schema):
    """Return the workload of the Census tables of persons, whose queries a schema lists."""
    sizes = {entry["name"]: entry["size"] for entry in schema["attributes"]}
    domain = Domain({name: Coded(size) for name, size in sizes.items()})

    def choices(name, word):
        if word in schema["groups"]:
            rows = np.zeros((len(schema["groups"][word]["cells"]), sizes[name]), dtype=int)
            for row, cells in zip(rows, schema["groups"][word]["cells"], strict=True):
                row[cells] = 1
            return [matrix(rows.tolist())]
        return ([identity()] if word.startswith("identity") else []) + (
            [None] if word.endswith("total") else []
        )

    products = []
    for query in itertools.chain.from_iterable(schema["tables"].values()):
        for chosen in itertools.product(
            *(choices(name, word) for name, word in zip(sizes, query, strict=True))
        ):
            query_sets = {
                name: queried
                for name, queried in zip(sizes, chosen, strict=True)
                if queried is not None
            }
            products += queries(domain, **query_sets).products
    return Workload(domain, tuple(products))


# The best of OPT_kron, OPT_M and OPT_+, measured with hdmm.
@pytest.mark.parametrize(
    ("budget", "reached", "published"),
    [(PureDP(1), 4.345, 5.163), (RHO, 2.066, 2.321)],
    ids=["pure", "gaussian"],
)
def test_error_is_far_below_the_best_published(budget, reached, published):
    name = "schemas/census_sf1_person.json"
    schema = (published_data(name) / name).read_text(encoding="utf-8")
    workload = person_tables(json.loads(schema))
    assert workload.rows == 4151
    assert (
        math.sqrt(proposal("union", workload, budget).error / workload.rows) < reached < published
    )
