"""Means whose measure is far from 0 beside its width."""

import numpy as np
import pandas as pd

import leastnoise as ln
from simulated import releases


def test_values_far_from_zero_and_close_together_have_no_error_that_is_too_small() -> None:
    """The part of the sums that is not the middle times the counts is known to the doubles' precision alone."""
    low = 500_000_000
    domain = ln.Domain(a=ln.Coded(2), measures={"pay": ln.Measure("pay", low, low + 2)})
    plan = ln.plan(ln.mean_queries(domain, "pay", by=["a"]), ln.PureDP(1))
    rows = pd.DataFrame({"a": [0, 1] * 200, "pay": [low, low + 2, low + 1, low + 1] * 100})
    truth = rows.groupby("a")["pay"].mean().to_numpy()
    found = [ln.means(one, "pay", by=["a"]) for one in releases(plan, rows, range(40))]
    assert np.array_equal(found[5].mean, ln.means(ln.release(plan, rows, seed=5), "pay", by=["a"]).mean)
    assert np.mean([(one.low <= truth) & (truth <= one.high) for one in found]) > 0.9
