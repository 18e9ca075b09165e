"""Iterative least squares against dense least squares, and its simulated errors."""

from fractions import Fraction

import numpy as np
import pytest

from error.plans import MIXED, SEPARATE, SOLVED, LeastSquares, factor
from leastnoise._domain import Domain, Integers
from leastnoise._error import (
    IterativeStructure,
    JointBlocks,
    UnsupportedQuery,
    block_variance,
    confidence_factor,
    evaluate_plan,
)
from leastnoise._trusted.accounting import Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import Dense, Identity, Prefix
from leastnoise._trusted.measurements import Block, Measurements
from leastnoise._workload import queries


def plan_of(*blocks, domain=SOLVED):
    return Measurements(
        domain=domain, privacy=Privacy(PureDP(99)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    )


def joint_of(plan):
    return JointBlocks.of(
        plan.domain, [(block, block_variance(plan, block)) for block in plan.blocks]
    )


@pytest.mark.parametrize(
    "plan", [MIXED.plan, SEPARATE.plan], ids=["with a joint factor", "one factor an attribute"]
)
def test_implicit_operator_equals_explicit_matrix(plan):
    joint = joint_of(plan)
    squares = LeastSquares(plan)
    gram = squares.rows.T @ squares.rows
    x = np.random.default_rng(0).normal(size=(joint.cells, 3))
    np.testing.assert_allclose(joint.gram(x), gram @ x, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(joint.diagonal(), np.diag(gram), rtol=1e-10)
    values = [
        np.random.default_rng(place).normal(size=(block.rows, 2))
        for place, block in enumerate(plan.blocks)
    ]
    expected = squares.rows.T @ (np.vstack(values) / squares.noise_std[:, None])
    np.testing.assert_allclose(joint.gather(values), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(joint.solve(gram @ x, "a test"), x, rtol=1e-6, atol=1e-6)


def test_simulated_variances_are_conservative_and_close(monkeypatch):
    # With 256 draws and the factor 1.335, the variance of an answer is too small with a probability
    # of 1 in 1000. By the union bound over 24 + 84 dependent answers, the false alarm rate is below
    # 0.11; the seed is fixed.
    monkeypatch.setattr("leastnoise._error._joint._MOST_EXACT", 0)
    iterative = IterativeStructure(joint_of(SEPARATE.plan))
    squares = LeastSquares(SEPARATE.plan)
    for product in queries(SOLVED, a="prefix", b="identity") + queries(
        SOLVED, b="all_ranges", a="identity"
    ):
        ratios = iterative.variances(product).reshape(-1) / (squares.weights(product) ** 2).sum(
            axis=1
        )
        assert ratios.min() > 1
        # The tolerance is over 5 standard deviations of the mean of one answer.
        assert ratios.mean() == pytest.approx(confidence_factor(256), rel=0.15)


def test_automatic_choice_may_refuse_to_iterate():
    plan = plan_of(
        Block((factor("a", Identity(90)), factor("b", Identity(90))), Fraction(9)),
        Block((factor("a", Prefix(90)),), Fraction(4)),
        # One more block, as the error of two tables has a closed form.
        Block((factor("b", Prefix(90)),), Fraction(5)),
        domain=Domain(a=Integers(0, 89), b=Integers(0, 89)),
    )
    with pytest.raises(
        InputError,
        match="linear solver over 8100 joint cells, which takes long; ask for it by name: "
        "strategy = 'mixed'",
    ):
        evaluate_plan(queries(plan.domain, a="prefix"), plan, "mixed", may_iterate=False)


def test_undetermined_queries_fail_to_converge_with_reason():
    apart = [factor("a", Identity(4)), factor("b", Identity(6)), factor("a", Prefix(4))]
    plan = plan_of(
        *(Block((factor_apart,), Fraction(scale)) for scale, factor_apart in enumerate(apart, 1))
    )
    iterative = IterativeStructure(joint_of(plan))
    (determined,), (undetermined,) = (
        queries(plan.domain, a="all_ranges"),
        queries(plan.domain, a="identity", b="identity"),
    )
    assert iterative.variances(determined).shape == (10,)
    with pytest.raises(
        UnsupportedQuery,
        match=r"for a x b did not converge: the relative residual is .*do not follow from",
    ):
        iterative.variances(undetermined)
    (elsewhere,) = queries(plan.domain, c="identity")
    with pytest.raises(UnsupportedQuery, match="do not determine c"):
        iterative.variances(elsewhere)


def test_queries_without_a_coefficient_are_refused():
    plan = plan_of(Block((factor("a", Dense([[0, 0, 0, 0]])),), Fraction(1)))
    with pytest.raises(InputError, match="at least one query with a coefficient other than 0"):
        joint_of(plan).solve(np.ones((4, 1)), "a test")
