"""Errors of workloads with very many tables."""

import itertools
import math
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Coded, Domain, Measure
from leastnoise._error import (
    AttributeSetTerms,
    UnsupportedQuery,
    block_rows,
    covariance_by_measure,
    evaluate_plan,
    quantity_structure,
    subset_sums,
)
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms import Search, choose_plan, try_strategies
from leastnoise._strategies import PLANNERS, PlanningProblem
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.linop import Identity, Prefix
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._workload import from_json, index_queries, marginals, queries, together

MIXED = Domain(
    a=Coded(3),
    b=Coded(2),
    c=Coded(1),
    d=Coded(4),
    e=Coded(2),
    f=Coded(2),
    g=Coded(5),
    measures={"pay": Measure("pay", 0, 9)},
)


def mixed():
    """Return tables of several sizes and weights whose answers differ in variance."""
    tables = [
        marginals(MIXED, upto=3, weight="3/2"),
        queries(MIXED, d="prefix", g="identity", weight=2),
        marginals(MIXED, ways=2, sum="pay"),
    ]
    return together(tables)


def triples(count):
    """Return all tables of three of `count` attributes."""
    return marginals(Domain({f"a{place}": Coded(2 + place % 3) for place in range(count)}), ways=3)


@pytest.mark.parametrize(
    ("strategy", "budget"),
    [("residual", ZCDP("1/50")), ("marginals", PureDP("1/3")), ("covering", PureDP("1/3"))],
)
def test_errors_match_one_table_at_a_time(strategy, budget):
    workload = mixed()
    noise = Noise.DISCRETE_GAUSSIAN if isinstance(budget, ZCDP) else Noise.DISCRETE_LAPLACE
    proposal = PLANNERS[strategy].strategy(PlanningProblem(workload, Privacy(budget), noise))
    plan = fit_noise_scales(MIXED, Privacy(budget), noise, proposal.blocks)
    covariances = covariance_by_measure(workload, plan)
    for measure, covariance in covariances.items():
        products = [product for product in workload if product.measure == measure]
        for product, errors in zip(products, covariance.errors_of(products), strict=True):
            variances = covariance.variances(product)
            assert math.isclose(errors.total, float(variances.sum()), rel_tol=1e-9)
            assert math.isclose(errors.largest, float(variances.max()), rel_tol=1e-9)
            assert errors.is_exact


def test_unmeasured_table_is_named_among_many():
    workload = triples(7)
    privacy = Privacy(ZCDP(1))
    noise = Noise.DISCRETE_GAUSSIAN
    proposal = PLANNERS["residual"].strategy(PlanningProblem(workload, privacy, noise))
    blocks = [block for block in proposal.blocks if block[0].attributes != ("a1", "a4")]
    plan = fit_noise_scales(workload.domain, privacy, noise, blocks)
    with pytest.raises(
        UnsupportedQuery, match=r"do not determine a0 x a1 x a4\. Ask for the table a0 x a1 x a4"
    ):
        evaluate_plan(workload, plan)


PAIR_DOMAIN = Domain(a=Coded(3), b=Coded(3))
# The cells of one attribute, and the contrasts of one or both.
MEASURED_AND_DETERMINED = [
    (["cells of a", "b", "a x b"], True),
    (["cells of a", "cells of b", "a x b"], True),
    (["cells of a", "a x b"], False),
    (["a", "b", "a x b"], False),
]


@pytest.mark.parametrize(("names", "determined"), MEASURED_AND_DETERMINED)
def test_cells_and_contrasts_determine_queries_together(names, determined):
    noise = Noise.DISCRETE_GAUSSIAN
    workload = marginals(PAIR_DOMAIN, ways=2)
    proposal = PLANNERS["residual"].strategy(PlanningProblem(workload, Privacy(ZCDP(1)), noise))
    blocks_by_name = {" x ".join(block.attributes): block for block, _ in proposal.blocks}
    for name in PAIR_DOMAIN.names:
        blocks_by_name[f"cells of {name}"] = Block((Factor((name,), Identity(3)),), Fraction(1))
    blocks = tuple(blocks_by_name[name] for name in names)
    plan = Measurements(domain=PAIR_DOMAIN, privacy=Privacy(ZCDP(9)), noise=noise, blocks=blocks)
    rows = np.vstack([block_rows(PAIR_DOMAIN, PAIR_DOMAIN.names, block) for block in blocks])
    structure = quantity_structure(plan, None)
    (product,) = workload
    if determined:
        assert int(np.linalg.matrix_rank(rows)) == 9
        structure.require(product)
    else:
        with pytest.raises(UnsupportedQuery):
            structure.require(product)


def subset_sums_by_loop(terms):
    """Return the sums of all subsets of the attribute sets, one subset at a time."""
    sums: Counter[tuple[int, ...]] = Counter()
    for attributes, member_factors, other_factors, weight in zip(
        terms.sets.tolist(), terms.member_factors, terms.other_factors, terms.weights, strict=True
    ):
        for in_subset in itertools.product((False, True), repeat=len(attributes)):
            subset = tuple(itertools.compress(attributes, in_subset))
            factors = np.where(in_subset, member_factors, other_factors)
            sums[subset] += weight * math.prod(factors)
    return sums


@pytest.mark.parametrize(("count", "width"), [(5, 3), (100, 10)])
def test_subset_sums_match_a_loop_for_wide_sets(count, width):
    rng = np.random.default_rng(3)
    sets = np.sort(np.array([rng.choice(count, width, replace=False) for _ in range(4)]), axis=1)
    member_factors = rng.random((4, width))
    other_factors = rng.random((4, width))
    terms = AttributeSetTerms(sets, member_factors, other_factors, rng.random(4))
    sums = {}
    for subsets, values in subset_sums([terms], count):
        sums |= dict(zip(map(tuple, subsets.tolist()), values.tolist(), strict=True))
    assert list(sums) == sorted(sums, key=lambda subset: (len(subset), subset))
    assert sums == pytest.approx(subset_sums_by_loop(terms), rel=1e-12)


def test_equal_query_sets_are_numbered_once():
    workload = triples(5)
    workload_from_json = from_json(workload.domain, workload.to_json())
    for products in (workload.products, workload_from_json.products):
        names = [entry.name for entry in index_queries(products).along]
        assert names == list(workload.domain.names)

    index = index_queries(mixed().products)
    operators_of_d = [entry.operator for entry in index.along if entry.name == "d"]
    assert operators_of_d in ([Identity(4), Prefix(4)], [Prefix(4), Identity(4)])
    for places, rows in index.widths:
        for place, row in zip(places.tolist(), rows.tolist(), strict=True):
            product = mixed().products[place]
            entries = [index.along[number] for number in row]
            assert tuple(entry.name for entry in entries) == product.attributes
            assert tuple(entry.query_set for entry in entries) == product.query_sets


def candidates_by_name(workload):
    """Return the candidates under rho = 1 / 2 by the name of their strategy."""
    candidates = try_strategies(workload, Privacy(ZCDP("1/2")))
    return {candidate.strategy: candidate for candidate in candidates}


def test_many_gaussian_marginals_reach_their_bound():
    workload = triples(20)
    assert len(workload.products) > 1024
    tried = candidates_by_name(workload)
    plan = tried["residual"].plan
    assert plan is not None
    error = plan.expected_error().total_squared_error
    assert math.isclose(error, plan.lower_bound(), rel_tol=1e-6)
    for name in ("marginals", "workload"):
        assert tried[name].plan is None
        assert (
            tried[name].reason
            == "its tables are among those that residual chooses from; ask for it by name"
        )
    plan_by_name, _ = choose_plan(workload, Privacy(ZCDP("1/2")), Search("marginals"))
    assert plan_by_name.strategy == "marginals"


def test_few_gaussian_marginals_try_marginals():
    assert candidates_by_name(triples(4))["marginals"].plan is not None


def test_prefix_sums_keep_workload_strategy_a_candidate():
    workload = triples(20)
    for name in ("residual", "covering"):
        assert PLANNERS[name].contains(workload) == ("marginals", "workload")
        assert PLANNERS[name].contains(workload + queries(workload.domain, a8="prefix")) == (
            "marginals",
        )


def count_calls(workload):
    """Return how often each Python function is called to choose a plan."""
    calls = Counter[str]()

    def record(frame, event, _):
        if event == "call":
            calls[frame.f_code.co_qualname] += 1

    sys.setprofile(record)
    try:
        choose_plan(workload, Privacy(ZCDP("1/2")))
    finally:
        sys.setprofile(None)
    return calls


def test_calls_grow_linearly_with_tables():
    # Imports and caches of the first plan are not counted.
    choose_plan(triples(6), Privacy(ZCDP("1/2")))
    calls_per_table = []
    for count in (20, 22):
        workload = triples(count)
        tables = len(workload.products)
        calls = count_calls(workload)
        calls_per_table.append(calls.total() / tables)
        # Equal work of many tables is done once for all of them.
        for function in (
            "Measurements._check_block",
            "Factor.__post_init__",
            "row_space",
            "contrast_strength",
            "ProductStructure.errors",
        ):
            assert calls[function] < tables / 2, function
    assert calls_per_table[1] < 1.1 * calls_per_table[0]
    assert calls_per_table[1] < 450
