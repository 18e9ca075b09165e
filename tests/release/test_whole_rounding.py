"""Whole answers and rounding: no rounded answer is a part of a row."""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln

DOMAIN = ln.Domain(
    g=["a", "b"],
    measures={
        "cents": ln.Measure("v", 0, 10, unit="0.01"),
        "dozens": ln.Measure("v", 0, 24, unit="12"),
    },
)
ROWS = pd.DataFrame({"g": ["a"] * 7 + ["b"] * 9, "v": [1.23] * 16})


def released(asked, step):
    plan = ln.plan(asked, ln.PureDP(1))
    return ln.release(plan, ROWS, seed=1, options=ln.Options(integer=True, round=step))


@pytest.mark.parametrize(
    ("measure", "step", "allowed"),
    [
        (None, "2.5", "a whole multiple of 1 beside integer"),
        (None, "1.5", "a whole multiple of 1 beside integer"),
        ("cents", "0.025", "a whole multiple of 0.01 beside integer"),
        ("dozens", "10", "a whole multiple of 12 beside integer"),
    ],
)
def test_rounding_that_breaks_whole_answers_is_refused(measure, step, allowed):
    with pytest.raises(ln.InputError, match=allowed):
        released(ln.queries(DOMAIN, g="identity", sum=measure), step)


@pytest.mark.parametrize(
    ("measure", "step", "unit"),
    [
        (None, "5", 1),
        (None, "0.25", 1),
        ("cents", "0.05", 0.01),
        ("dozens", "36", 12),
        ("dozens", "3", 12),
    ],
)
def test_whole_answers_stay_whole_when_rounded(measure, step, unit):
    table = released(ln.queries(DOMAIN, g="identity", sum=measure), step).tables[0]
    whole = np.asarray(table.integer, dtype=float) / unit
    assert np.allclose(whole, np.rint(whole), atol=1e-6)
