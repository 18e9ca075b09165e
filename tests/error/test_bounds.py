"""Lower bounds of the error: closed forms, singular values, and actual plans."""

import math

import numpy as np
import pytest

from error.plans import DOMAIN, dense_nuclear
from leastnoise import _strategies
from leastnoise._domain import Domain, Integers, PerCellBound
from leastnoise._error import (
    centred_nuclear_norm,
    evaluate_plan,
    lower_bound,
    nuclear_norm,
    nuclear_norm_parts,
)
from leastnoise._families import singular_values
from leastnoise._fitting import fit_noise_scales
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP
from leastnoise._trusted.linop import AllRanges, Dense, Identity, Prefix, Ranges, Total, Tree, dense
from leastnoise._workload import marginals, queries
from strategies.proposals import proposal


@pytest.mark.parametrize(
    "operator",
    [Identity(7), Total(7), Prefix(7), AllRanges(7)],
    ids=lambda operator: type(operator).__name__,
)
def test_singular_values_match_the_dense_matrix(operator):
    closed = singular_values(operator)
    assert closed is not None
    np.testing.assert_allclose(
        np.sort(closed)[::-1],
        np.linalg.svd(dense(operator), compute_uv=False)[: len(closed)],
        rtol=1e-9,
    )


def exact_parts(operator):
    rows = dense(operator).astype(float)
    n = operator.size
    centred = rows - rows.mean(axis=1, keepdims=True)
    return [
        np.linalg.svd(rows, compute_uv=False).sum() / math.sqrt(n),
        float(np.linalg.norm(rows.sum(axis=1))) / n,
        np.linalg.svd(centred, compute_uv=False).sum() / math.sqrt(n),
    ]


@pytest.mark.parametrize(
    "operator",
    [
        Identity(6),
        Total(6),
        Prefix(6),
        AllRanges(6),
        Tree.full(6, 2),
        Dense([[1, -2, 0], [3, 0, 1]]),
    ],
)
def test_nuclear_parts_match_exact_parts(operator):
    np.testing.assert_allclose(
        [*nuclear_norm_parts(operator), centred_nuclear_norm(operator)],
        exact_parts(operator),
        rtol=1e-7,
        atol=1e-7,
    )


@pytest.mark.parametrize(
    "make",
    [
        Prefix,
        AllRanges,
        lambda n: Ranges(n, [0, 5], [9, 12]),
        lambda n: Dense(np.ones((2, n), dtype=int)),
    ],
)
def test_bound_of_long_attribute_is_below_exact_value(make, monkeypatch):
    operator = make(40)
    for most in ("_MOST_GRAM", "_MOST_CLOSED"):
        monkeypatch.setattr(f"leastnoise._error._lower_bounds.{most}", 8)
    for bound_of in (nuclear_norm_parts, centred_nuclear_norm):
        bound_of.cache_clear()
    parts = [*nuclear_norm_parts(operator), centred_nuclear_norm(operator)]
    for bound_of in (nuclear_norm_parts, centred_nuclear_norm):
        bound_of.cache_clear()
    for part, exact in zip(parts, exact_parts(operator), strict=True):
        assert part <= exact + 1e-9
    assert parts[0] > 0


WORKLOADS = {
    "marginals": marginals(DOMAIN, upto=2) + marginals(DOMAIN, ways=1, weight=3),
    "prefix": queries(DOMAIN, b="prefix"),
    "product": queries(DOMAIN, b="prefix", c="all_ranges"),
    "mixed": marginals(DOMAIN, ways=2)
    + queries(DOMAIN, b="all_ranges", weight=2)
    + queries(DOMAIN, a="identity", b="prefix"),
    "counts and sums": marginals(DOMAIN, ways=1) + marginals(DOMAIN, ways=1, sum="pay"),
}


@pytest.mark.parametrize("name", ["marginals", "prefix", "product", "mixed"])
def test_nuclear_norm_of_a_workload(name):
    workload = WORKLOADS[name]
    norm = nuclear_norm(workload.products, with_total=True)
    exact = dense_nuclear(workload)
    assert 0.8 * exact < norm <= exact * (1 + 1e-9)
    assert nuclear_norm(workload.products, with_total=False) <= norm
    if name != "mixed":
        assert norm == pytest.approx(exact)


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(
    ("budget", "mechanism"),
    [
        (PureDP(5), Noise.DISCRETE_LAPLACE),
        (ZCDP(2), Noise.DISCRETE_GAUSSIAN),
        (ApproxDP(1, "1e-6"), Noise.ROUNDED_GAUSSIAN),
    ],
)
def test_no_plan_is_below_the_bound(workload, neighbours, budget, mechanism):
    privacy = Privacy(budget, neighbours)
    for name in ("identity", "marginals"):
        try:
            strategy = proposal(name, workload, privacy)
        except _strategies.NotApplicable:
            continue
        expected_error = evaluate_plan(
            workload, fit_noise_scales(workload.domain, privacy, mechanism, strategy.blocks)
        ).expected_error()
        assert 0 < expected_error.lower_bound <= expected_error.total_squared_error * (1 + 1e-9)


def test_bound_is_met_where_identity_is_optimal():
    domain = Domain(a=Integers(0, 9))
    privacy = Privacy(PureDP("0.5"))
    workload = marginals(domain, ways=1)
    strategy = proposal("identity", workload, privacy)
    expected_error = evaluate_plan(
        workload, fit_noise_scales(domain, privacy, Noise.DISCRETE_LAPLACE, strategy.blocks)
    ).expected_error()
    assert expected_error.total_squared_error == pytest.approx(expected_error.lower_bound)
    assert lower_bound(workload, privacy, Noise.DISCRETE_LAPLACE) == expected_error.lower_bound


def test_bound_ignores_limits_by_other_attributes():
    workload = queries(DOMAIN, a="identity")
    free, limited = (
        Privacy(ZCDP(2), unit_column="id", max_rows=6, max_per_cell=limit)
        for limit in (None, PerCellBound(2, "c"))
    )
    bounds = [lower_bound(workload, privacy, Noise.ROUNDED_GAUSSIAN) for privacy in (free, limited)]
    assert bounds[0] == pytest.approx(bounds[1])


@pytest.mark.parametrize(("cells", "filled"), [(6, 6), (8, 8), (8, 6), (12, 3)])
def test_bound_covers_units_with_rows_in_many_cells(cells, filled):
    # Units are the 0/1 vectors with at most ``filled`` ones. Every permutation of a unit is a unit,
    # so the best precision has the form a (I - J/n) + b J/n. Its largest value over units is 1.
    ones = np.arange(1, filled + 1)
    between = ones * (cells - ones) / cells
    along = ones**2 / cells
    shares = np.geomspace(1e-4, 1e4, 4001)
    worst = (between + shares[:, None] * along).max(axis=1)
    best = float((worst * (cells - 1 + 1 / shares)).min())
    privacy = Privacy(
        ZCDP("1/2"), unit_column="id", max_rows=filled, max_per_cell=PerCellBound(1, "week")
    )
    workload = queries(Domain(week=Integers(1, cells)), week="identity")
    bound = lower_bound(workload, privacy, Noise.ROUNDED_GAUSSIAN)
    assert 0.85 * best <= bound <= best * (1 + 1e-9)
