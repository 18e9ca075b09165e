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
    asked = mixed()
    noise = Noise.DISCRETE_GAUSSIAN if isinstance(budget, ZCDP) else Noise.DISCRETE_LAPLACE
    proposal = PLANNERS[strategy].strategy(PlanningProblem(asked, Privacy(budget), noise))
    known = covariance_by_measure(
        asked, fit_noise_scales(MIXED, Privacy(budget), noise, proposal.blocks)
    )
    for measure, own in known.items():
        products = [product for product in asked if product.measure == measure]
        for product, found in zip(products, own.errors_of(products), strict=True):
            variances = own.variances(product)
            assert math.isclose(found.total, float(variances.sum()), rel_tol=1e-9)
            assert math.isclose(found.largest, float(variances.max()), rel_tol=1e-9)
            assert found.is_exact


def test_unmeasured_table_is_named_among_many() -> None:
    asked = triples(7)
    budget = Privacy(ZCDP(1))
    proposal = PLANNERS["residual"].strategy(
        PlanningProblem(asked, budget, Noise.DISCRETE_GAUSSIAN)
    )
    without = [one for one in proposal.blocks if one[0].attributes != ("a1", "a4")]
    with pytest.raises(
        UnsupportedQuery, match=r"do not determine a0 x a1 x a4\. Ask for the table a0 x a1 x a4"
    ):
        evaluate_plan(
            asked, fit_noise_scales(asked.domain, budget, Noise.DISCRETE_GAUSSIAN, without)
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
        own, (asked,) = quantity_structure(measured, None), marginals(domain, ways=2)
        seen = np.vstack([block_rows(domain, domain.names, block) for block in blocks])
        assert int(np.linalg.matrix_rank(seen)) == 9 or not determined
        if determined:
            own.require(asked)
        else:
            with pytest.raises(UnsupportedQuery):
                own.require(asked)


def test_subset_sums_match_a_loop_for_wide_sets() -> None:
    rng = np.random.default_rng(3)
    for count, width in ((5, 3), (100, 10)):
        sets = np.sort(
            np.array([rng.choice(count, width, replace=False) for _ in range(4)]), axis=1
        )
        inside, outside, weights = rng.random((4, width)), rng.random((4, width)), rng.random(4)
        wanted: dict[tuple[int, ...], float] = {}
        for own, far, near, weight in zip(sets.tolist(), inside, outside, weights, strict=True):
            for kept in itertools.product((0, 1), repeat=width):
                tau = tuple(one for one, k in zip(own, kept, strict=True) if k)
                wanted[tau] = wanted.get(tau, 0.0) + weight * math.prod(
                    f if k else n for f, n, k in zip(far, near, kept, strict=True)
                )
        found = subset_sums([AttributeSetTerms(sets, inside, outside, weights)], count)
        listed = {
            tuple(row): value
            for rows, sums in found
            for row, value in zip(rows.tolist(), sums.tolist(), strict=True)
        }
        assert list(listed) == sorted(listed, key=lambda tau: (len(tau), tau))
        assert listed == pytest.approx(wanted, rel=1e-12)


def test_equal_query_sets_are_numbered_once() -> None:
    asked = triples(5)
    read = from_json(asked.domain, asked.to_json())
    for products in (asked.products, read.products):
        assert [one.name for one in index_queries(products).along] == list(asked.domain.names)
    found = index_queries(mixed().products)
    assert [one.operator for one in found.along if one.name == "d"] in (
        [Identity(4), Prefix(4)],
        [Prefix(4), Identity(4)],
    )
    for places, rows in found.widths:
        for place, row in zip(places.tolist(), rows.tolist(), strict=True):
            product = mixed().products[place]
            assert tuple(found.along[one].name for one in row) == product.attributes
            assert tuple(found.along[one].query_set for one in row) == product.query_sets


def test_many_gaussian_marginals_reach_their_bound() -> None:
    asked = triples(20)
    tried = {one.strategy: one for one in try_strategies(asked, Privacy(ZCDP("1/2")))}
    assert len(asked.products) > 1024
    best = tried["residual"].plan
    assert best is not None
    assert math.isclose(best.expected_error().total_squared_error, best.lower_bound(), rel_tol=1e-6)
    for name in ("marginals", "workload"):
        assert tried[name].plan is None
        assert (
            tried[name].reason
            == "its tables are among those that residual chooses from; ask for it by name"
        )
    assert choose_plan(asked, Privacy(ZCDP("1/2")), Search("marginals"))[0].strategy == "marginals"
    few = {one.strategy: one for one in try_strategies(triples(4), Privacy(ZCDP("1/2")))}
    assert few["marginals"].plan is not None


def test_prefix_sums_keep_workload_strategy_a_candidate() -> None:
    asked = triples(20)
    for name in ("residual", "covering"):
        assert PLANNERS[name].contains(asked) == ("marginals", "workload")
        assert PLANNERS[name].contains(asked + queries(asked.domain, a8="prefix")) == ("marginals",)


def test_calls_grow_linearly_with_tables() -> None:
    choose_plan(triples(6), Privacy(ZCDP("1/2")))  # what is imported or kept is not counted
    each = []
    for count in (20, 22):
        asked, counted = triples(count), Counter[str]()

        def seen(frame: FrameType, event: str, _: object, counted: Counter[str] = counted) -> None:
            if event == "call":
                counted[frame.f_code.co_qualname] += 1

        sys.setprofile(seen)
        try:
            choose_plan(asked, Privacy(ZCDP("1/2")))
        finally:
            sys.setprofile(None)
        each.append(counted.total() / len(asked.products))
        # What is alike for many tables is done once for all of them.
        for function in (
            "Measurements._check_block",
            "Factor.__post_init__",
            "row_space",
            "contrast_strength",
            "ProductStructure.errors",
        ):
            assert counted[function] < len(asked.products) / 2, function
    assert each[1] < 1.1 * each[0]
    assert each[1] < 450
