"""Counts and sums measured by distances from both ends: errors and intervals."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from error.plans import ENDS, KINDS, TIPS, ends, factor
from leastnoise._domain import Coded, Domain, Measure
from leastnoise._error import evaluate_plan, measure_covariance, statistic_errors
from leastnoise._estimation import nnls
from leastnoise._fitting import fit_noise_scales
from leastnoise._trusted.accounting import Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.linop import Identity
from leastnoise._trusted.measurements import Block, Limits
from leastnoise._trusted.table import Table
from leastnoise._workload import mean_queries, queries

GENERATOR = np.random.default_rng(5)
ROWS = 400
CODES = {"a": GENERATOR.integers(0, 3, ROWS), "b": GENERATOR.integers(0, 4, ROWS)}
GIVEN = GENERATOR.integers(0, 4, ROWS) > 0  # a quarter has no tips
VALUES = {
    "pay": GENERATOR.integers(-2, 7, ROWS),
    "tips": GIVEN * GENERATOR.integers(1, 6, ROWS),
    "count of tips": GIVEN.astype(np.int64),
}
A = factor("a", Identity(3))
B = factor("b", Identity(4))
LAPLACE = KINDS["Laplace"]


def test_counts_and_sums_cost_as_much_as_one():
    """The published standard errors at epsilon 1 are 2.00 and 1.41 R.

    With half of the budget for each they were 2.83 and 2.83 R.
    """
    domain = Domain(a=Coded(3), measures={"pay": Measure("pay", 0, 1000)})
    plan = fit_noise_scales(
        domain,
        Privacy(PureDP(1)),
        Noise.DISCRETE_LAPLACE,
        [(Block((A,), Fraction(1), "pay", ends=True), 1.0)],
    )
    assert plan.blocks[0].scale == 1000
    counts, sums = (
        evaluate_plan(queries(domain, a="identity", sum=name), plan).expected_error().tables[0].rmse
        for name in (None, "pay")
    )
    assert round(counts, 3) == 2.0
    assert round(sums / 1000, 3) == 1.414


def test_mean_error_bound_is_reached_at_both_ends():
    """The error of a sum minus r counts is at most its bound, and equal to it at the ends."""
    workload = mean_queries(ENDS, "pay", by=["a"], size=100) + queries(ENDS, b="identity")
    plan = evaluate_plan(
        workload,
        fit_noise_scales(
            workload.domain, *LAPLACE, [(ends((A,), "pay"), 1.0), (Block((B,), Fraction(1)), 2.5)]
        ),
    )
    (bound,) = statistic_errors(plan)
    assert bound.std_error is not None
    ways = {}
    for rate in range(-2, 7):
        counts, sums = (
            measure_covariance(plan.measured(), name) for name in ("count of pay", "pay")
        )
        (cells,) = queries(plan.domain, a="identity", sum="count of pay")
        (summed,) = queries(plan.domain, a="identity", sum="pay")
        # Cov(sum, count) = 2 Var(count), where 2 is the middle of -2 and 6.
        ways[rate] = float(
            np.sqrt(
                (sums.variances(summed) + (rate**2 - 2 * rate * 2) * counts.variances(cells))[0]
            )
        )
    assert (
        max(ways.values())
        == pytest.approx(ways[-2])
        == pytest.approx(ways[6])
        == pytest.approx(bound.std_error * 100)
    )


def test_cells_without_negative_numbers():
    """From the distances themselves; counts, and sums of a measure from 1."""
    plan = fit_noise_scales(ENDS, *LAPLACE, [(ends((A,), "tips"), 1.0)])
    observed = simulate(plan, Table(ENDS, CODES, VALUES), SeededEntropy(4))
    assert (
        np.abs(nnls(observed, measure="count of tips").cells - np.bincount(CODES["a"][GIVEN])).max()
        < 60
    )
    summed = nnls(observed, measure="tips")
    assert np.abs(summed.cells - np.bincount(CODES["a"], weights=VALUES["tips"])).max() < 200
    (product,) = queries(ENDS, a="identity", sum="tips")
    assert np.all(replace(summed, repetitions=20).estimate(product).std > 0)


def test_both_ends_needs_measure_without_limits():
    for block in (
        Block((A,), Fraction(1), ends=True),
        Block((A,), Fraction(1), "pay", Limits([3]), ends=True),
    ):
        with pytest.raises(
            InputError,
            match="the quantity of a block with ends must be a measure without limits; got 'counts "
            "or limited sums'",
        ):
            fit_noise_scales(ENDS, *LAPLACE, [(block, 1.0)])
    of_rows = Domain(a=Coded(3), measures={"tips": TIPS})
    with pytest.raises(
        InputError,
        match=(
            r"the measure of a block with ends must be a measure whose values are counted, or may "
            r"be 0; got"
        ),
    ):
        fit_noise_scales(of_rows, *LAPLACE, [(ends((A,), "tips"), 1.0)])
    with pytest.raises(InputError, match="got 'counts or limited sums'"):
        fit_noise_scales(ENDS, *LAPLACE, [(ends((A,), "count of tips"), 1.0)])
    like = type("Name", (str,), {"__hash__": str.__hash__, "__eq__": lambda *_: True})("pay")
    with pytest.raises(
        InputError, match="the measure of a block must be str or NoneType; got 'Name'"
    ):
        fit_noise_scales(ENDS, *LAPLACE, [(Block((A,), Fraction(1), like), 1.0)])
    with pytest.raises(InputError, match="the ends of a block must be bool; got 'int'"):
        fit_noise_scales(ENDS, *LAPLACE, [(Block((A,), Fraction(1), "pay", ends=1), 1.0)])
    plan = fit_noise_scales(
        ENDS, *LAPLACE, [(ends((A,), "pay"), 1.0), (Block((A,), Fraction(1), "pay"), 1.0)]
    )
    with pytest.raises(
        InputError,
        match="Separate sums of pay and distances from both ends of its values cannot be "
        "estimated together",
    ):
        measure_covariance(plan, "pay")
