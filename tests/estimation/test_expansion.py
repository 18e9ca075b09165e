"""Answers and errors from data-dependent observations, against dense matrices."""

import json
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from leastnoise._domain import Domain, Integers
from leastnoise._error import block_variance
from leastnoise._estimation import (
    BucketExpansion,
    Outcome,
    Posterior,
    join_observations,
    shrunk_levels,
)
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms import mechanism_for
from leastnoise._plan import AdaptiveDetails, AdaptivePlan
from leastnoise._session import outcome_from_json
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.linop import Coarse, Tree, array_to_json, dense
from leastnoise._trusted.measurements import Block, Factor
from leastnoise._trusted.table import Table
from leastnoise._workload import all_ranges, matrix, prefix, queries, ranges
from mechanisms.running import stored_outcome
from simulated import simulations

SIZE = 13
DOMAIN = Domain(age=Integers(0, SIZE - 1))
STARTS = np.array([0, 2, 7, 8])
PRODUCTS = [
    queries(DOMAIN, age=query_set).products[0]
    for query_set in (
        "identity",
        prefix(),
        all_ranges(),
        ranges([(0, 12), (3, 9), (4, 6)]),
        matrix(np.arange(39).reshape(3, 13) % 5 - 2),
    )
] + [queries(DOMAIN).products[0]]
PRIVACY = {
    Noise.DISCRETE_LAPLACE: Privacy(PureDP("1/3")),
    Noise.DISCRETE_GAUSSIAN: Privacy(ZCDP("1/30")),
}


def rows_of(product):
    return dense(product.operators[0]).astype(float) if product.attributes else np.ones((1, SIZE))


@cache
def steps_of(regime, mechanism):
    levels = Factor(("age",), Tree(SIZE, (4, 1)), np.repeat([2**20, 2**19], [4, SIZE]))
    coarse = Factor(
        ("age",), Coarse(Tree.full(4, 2), STARTS, SIZE), np.array([5, 4, 4, 3, 3, 3, 9])
    )
    steps = {"adaptive": [levels, coarse], "buckets": [coarse]}[regime]
    return [
        fit_noise_scales(
            DOMAIN, PRIVACY[mechanism], mechanism, [(Block((factor,), Fraction(1)), 1.0)]
        )
        for factor in steps
    ]


def adaptive_outcome(mechanism, cells, seed=1):
    """Return the outcome of levels, then buckets, on these counts of cells."""
    privacy = PRIVACY[mechanism]
    entropy = SeededEntropy(seed)
    table = Table(DOMAIN, {"age": np.repeat(np.arange(SIZE), cells)})
    steps = steps_of("adaptive", mechanism)
    observation = join_observations([simulate(step, table, entropy) for step in steps], privacy)
    plan = AdaptivePlan(
        workload=queries(DOMAIN, age="identity"),
        privacy=privacy,
        strategy="dawa",
        adaptive=AdaptiveDetails(noise=Noise.DISCRETE_LAPLACE),
    )
    facts = {"regime": "adaptive", "buckets": 4, "starts": array_to_json(STARTS)}
    return Outcome(plan, observation, mechanism_for("dawa", plan.workload).finding(facts))


@pytest.mark.parametrize("most", [10**6, 3])
@pytest.mark.parametrize("mechanism", PRIVACY)
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_posterior_matches_normal_distributions(mechanism, product, most, monkeypatch):
    """All edges and queries are computed together, or three at a time."""
    monkeypatch.setattr("leastnoise._estimation._expansion._MOST_EDGES", most)
    monkeypatch.setattr("leastnoise._estimation._expansion._QUERIES_PER_BATCH", most)
    observation = adaptive_outcome(mechanism, np.arange(SIZE) * 3).observation
    plan = observation.measurements
    halving, first_step = shrunk_levels(observation)
    basis = np.diff(halving.up_to(np.arange(SIZE + 1)).toarray(), axis=0)
    assert (first_step.errors >= first_step.variances).all()

    # The second step updates the normal distribution of the first.
    prior = np.diag(first_step.variances)
    block = plan.blocks[1]
    factor = block.factors[0]
    rows = dense(factor.operator) @ basis
    row_weights = factor.weights.astype(float)
    row_covariance = np.diag(block_variance(plan, block) / row_weights**2)
    gain = prior @ rows.T @ np.linalg.inv(rows @ prior @ rows.T + row_covariance)
    values = observation.values[1] / plan.grid
    mean = first_step.means + gain @ (values - rows @ first_step.means)
    remaining = np.eye(len(prior)) - gain @ rows
    noise_of_step = gain @ row_covariance @ gain.T
    noise = remaining @ np.diag(first_step.noise) @ remaining.T + noise_of_step
    error = remaining @ np.diag(first_step.errors) @ remaining.T + noise_of_step

    query_rows = rows_of(product) @ basis
    noise_variances = np.einsum("ij,jk,ik->i", query_rows, noise, query_rows)
    error_variances = np.einsum("ij,jk,ik->i", query_rows, error, query_rows)
    assert (error_variances >= noise_variances * (1 - 1e-9)).all()
    answer = Posterior.of(observation).estimate(product)
    answers = answer.values.reshape(-1)
    squared_changes = (answers - query_rows @ mean) ** 2
    assert np.allclose(answer.noise_std.reshape(-1) ** 2, noise_variances)
    assert np.allclose(
        answer.approximation_std.reshape(-1) ** 2,
        error_variances - noise_variances + squared_changes,
        atol=1e-9 * error_variances.max(),
    )
    # Without negative cells, no cell is changed.
    if (basis @ mean >= 0).all():
        assert np.allclose(answers, query_rows @ mean)


# Counts are even inside the buckets, so that all error is noise.
EVEN = np.repeat([30, 4, 90, 10], np.diff(STARTS, append=SIZE))


@cache
def expanded(mechanism):
    """Return expansions of 400 simulated releases of the same rows, which all tests share."""
    (plan,) = steps_of("buckets", mechanism)
    draws = simulations(plan, Table(DOMAIN, {"age": np.repeat(np.arange(SIZE), EVEN)}), 400, seed=1)
    return [BucketExpansion.of(observation) for observation in draws]


@pytest.mark.parametrize("mechanism", PRIVACY)
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_expanded_buckets_have_stated_noise(mechanism, product):
    draws = expanded(mechanism)
    estimates = np.array([draw.estimate(product).values.reshape(-1) for draw in draws])
    truth = rows_of(product) @ EVEN
    stated_variances = draws[0].estimate(product).noise_std.reshape(-1) ** 2
    # With 400 draws, the mean is beyond 5 standard errors, or the variance beyond 40% (6 standard
    # errors of Laplace noise), with a probability of one in a million.
    assert (
        np.abs(estimates.mean(axis=0) - truth) <= 5 * np.sqrt(stated_variances / 400) + 1e-9
    ).all()
    assert (
        np.abs(((estimates - truth) ** 2).mean(axis=0) - stated_variances)
        <= 0.4 * stated_variances + 1e-9
    ).all()


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"regime": "magic"},
        {"regime": "adaptive"},
        {"regime": "buckets"},
        {"regime": ["shrunk"]},
    ],
)
def test_damaged_facts_are_refused(facts):
    outcome = adaptive_outcome(Noise.DISCRETE_LAPLACE, np.full(SIZE, 9))
    with pytest.raises(InputError, match="not an observation, or a damaged one"):
        outcome_from_json(
            outcome.plan.to_json(), json.dumps(stored_outcome(outcome) | {"outcome": facts})
        )
