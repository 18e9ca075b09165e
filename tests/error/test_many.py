"""Errors of workloads with very many tables."""

import itertools
import math
import sys
from collections import Counter
from fractions import Fraction
from types import FrameType

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
from leastnoise._trusted.accounting import ZCDP, Budget, Noise, Privacy, PureDP
from leastnoise._trusted.linop import Identity, Prefix
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._workload import Workload, from_json, index_queries, marginals, queries, together

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


def mixed() -> Workload:
    """Return tables of several sizes and weights whose answers differ in variance."""
    parts = [
        marginals(MIXED, upto=3, weight="3/2"),
        queries(MIXED, d="prefix", g="identity", weight=2),
        marginals(MIXED, ways=2, sum="pay"),
    ]
    return together(parts)


def triples(count: int) -> Workload:
    return marginals(Domain({f"a{place}": Coded(2 + place % 3) for place in range(count)}), ways=3)


@pytest.mark.parametrize(
    ("strategy", "budget"),
    [("residual", ZCDP("1/50")), ("marginals", PureDP("1/3")), ("covering", PureDP("1/3"))],
)
def test_errors_match_one_table_at_a_time(strategy: str, budget: Budget) -> None:
    workload = mixed()
    noise = Noise.DISCRETE_GAUSSIAN if isinstance(budget, ZCDP) else Noise.DISCRETE_LAPLACE
    proposal = PLANNERS[strategy].strategy(PlanningProblem(workload, Privacy(budget), noise))
    covariances = covariance_by_measure(
        workload, fit_noise_scales(MIXED, Privacy(budget), noise, proposal.blocks)
    )
    for measure, covariance in covariances.items():
        products = [product for product in workload if product.measure == measure]
        for product, errors in zip(products, covariance.errors_of(products), strict=True):
            variances = covariance.variances(product)
            assert math.isclose(errors.total, float(variances.sum()), rel_tol=1e-9)
            assert math.isclose(errors.largest, float(variances.max()), rel_tol=1e-9)
            assert errors.is_exact


def test_unmeasured_table_is_named_among_many() -> None:
    workload = triples(7)
    budget = Privacy(ZCDP(1))
    proposal = PLANNERS["residual"].strategy(
        PlanningProblem(workload, budget, Noise.DISCRETE_GAUSSIAN)
    )
    without = [block for block in proposal.blocks if block[0].attributes != ("a1", "a4")]
    with pytest.raises(
        UnsupportedQuery, match=r"do not determine a0 x a1 x a4\. Ask for the table a0 x a1 x a4"
    ):
        evaluate_plan(
            workload, fit_noise_scales(workload.domain, budget, Noise.DISCRETE_GAUSSIAN, without)
        )


def test_cells_and_contrasts_determine_queries_together() -> None:
    domain = Domain(a=Coded(3), b=Coded(3))
    cells, across = (Factor((name,), Identity(3)) for name in domain.names)
    proposal = PLANNERS["residual"].strategy(
        PlanningProblem(marginals(domain, ways=2), Privacy(ZCDP(1)), Noise.DISCRETE_GAUSSIAN)
    )
    contrasts = {block.attributes: block for block, _ in proposal.blocks}
    for blocks, determined in (
        ([Block((cells,), Fraction(1)), contrasts["b",], contrasts["a", "b"]], True),
        ([Block((cells,), Fraction(1)), Block((across,), Fraction(1)), contrasts["a", "b"]], True),
        ([Block((cells,), Fraction(1)), contrasts["a", "b"]], False),
        ([contrasts["a",], contrasts["b",], contrasts["a", "b"]], False),
    ):
        measured = Measurements(
            domain=domain,
            privacy=Privacy(ZCDP(9)),
            noise=Noise.DISCRETE_GAUSSIAN,
            blocks=tuple(blocks),
        )
        structure, (product,) = quantity_structure(measured, None), marginals(domain, ways=2)
        seen = np.vstack([block_rows(domain, domain.names, block) for block in blocks])
        assert int(np.linalg.matrix_rank(seen)) == 9 or not determined
        if determined:
            structure.require(product)
        else:
            with pytest.raises(UnsupportedQuery):
                structure.require(product)


def test_subset_sums_match_a_loop_for_wide_sets() -> None:
    rng = np.random.default_rng(3)
    for count, width in ((5, 3), (100, 10)):
        sets = np.sort(
            np.array([rng.choice(count, width, replace=False) for _ in range(4)]), axis=1
        )
        inside, outside, weights = rng.random((4, width)), rng.random((4, width)), rng.random(4)
        wanted: dict[tuple[int, ...], float] = {}
        for attributes, far, near, weight in zip(
            sets.tolist(), inside, outside, weights, strict=True
        ):
            for bits in itertools.product((0, 1), repeat=width):
                tau = tuple(
                    attribute for attribute, bit in zip(attributes, bits, strict=True) if bit
                )
                wanted[tau] = wanted.get(tau, 0.0) + weight * math.prod(
                    f if bit else n for f, n, bit in zip(far, near, bits, strict=True)
                )
        sums_of_sets = subset_sums([AttributeSetTerms(sets, inside, outside, weights)], count)
        listed = {
            tuple(row): value
            for rows, sums in sums_of_sets
            for row, value in zip(rows.tolist(), sums.tolist(), strict=True)
        }
        assert list(listed) == sorted(listed, key=lambda tau: (len(tau), tau))
        assert listed == pytest.approx(wanted, rel=1e-12)


def test_equal_query_sets_are_numbered_once() -> None:
    workload = triples(5)
    read = from_json(workload.domain, workload.to_json())
    for products in (workload.products, read.products):
        assert [one.name for one in index_queries(products).along] == list(workload.domain.names)
    index = index_queries(mixed().products)
    assert [one.operator for one in index.along if one.name == "d"] in (
        [Identity(4), Prefix(4)],
        [Prefix(4), Identity(4)],
    )
    for places, rows in index.widths:
        for place, row in zip(places.tolist(), rows.tolist(), strict=True):
            product = mixed().products[place]
            assert tuple(index.along[one].name for one in row) == product.attributes
            assert tuple(index.along[one].query_set for one in row) == product.query_sets


def test_many_gaussian_marginals_reach_their_bound() -> None:
    workload = triples(20)
    tried = {
        candidate.strategy: candidate
        for candidate in try_strategies(workload, Privacy(ZCDP("1/2")))
    }
    assert len(workload.products) > 1024
    best = tried["residual"].plan
    assert best is not None
    assert math.isclose(best.expected_error().total_squared_error, best.lower_bound(), rel_tol=1e-6)
    for name in ("marginals", "workload"):
        assert tried[name].plan is None
        assert (
            tried[name].reason
            == "its tables are among those that residual chooses from; ask for it by name"
        )
    assert (
        choose_plan(workload, Privacy(ZCDP("1/2")), Search("marginals"))[0].strategy == "marginals"
    )
    few = {
        candidate.strategy: candidate
        for candidate in try_strategies(triples(4), Privacy(ZCDP("1/2")))
    }
    assert few["marginals"].plan is not None


def test_prefix_sums_keep_workload_strategy_a_candidate() -> None:
    workload = triples(20)
    for name in ("residual", "covering"):
        assert PLANNERS[name].contains(workload) == ("marginals", "workload")
        assert PLANNERS[name].contains(workload + queries(workload.domain, a8="prefix")) == (
            "marginals",
        )


def test_calls_grow_linearly_with_tables() -> None:
    choose_plan(triples(6), Privacy(ZCDP("1/2")))  # what is imported or kept is not counted
    each = []
    for count in (20, 22):
        workload, counted = triples(count), Counter[str]()

        def seen(frame: FrameType, event: str, _: object, counted: Counter[str] = counted) -> None:
            if event == "call":
                counted[frame.f_code.co_qualname] += 1

        sys.setprofile(seen)
        try:
            choose_plan(workload, Privacy(ZCDP("1/2")))
        finally:
            sys.setprofile(None)
        each.append(counted.total() / len(workload.products))
        # What is alike for many tables is done once for all of them.
        for function in (
            "Measurements._check_block",
            "Factor.__post_init__",
            "row_space",
            "contrast_strength",
            "ProductStructure.errors",
        ):
            assert counted[function] < len(workload.products) / 2, function
    assert each[1] < 1.1 * each[0]
    assert each[1] < 450
