"""Strategies for sums cut at a threshold: published noise and brute force."""

import math

import numpy as np
import pytest

from baselines._linear import strategy_rmse
from experiments import sums_strategies as sums
from experiments.sums_tree import fit_halved_tree
from families.grams import all_ranges_gram, prefix_gram

LAPLACE = math.sqrt(2)
PAPER = sums.PrefixSums(edges=800 * np.arange(1, 1001), last=np.arange(1000))


def paper_strategy(name, threshold, *, released=False):
    return sums.sum_strategy(
        name, PAPER.matrix(), PAPER.gram(), PAPER.limits(threshold), released=released
    )


# By the closed forms of the paper: root mean square over the 1000 prefix queries at epsilon2 = 1.
LEVELS = {
    100_000: {
        "identity": 2.90e6,
        "workload": 1.24e8,
        "timm": (1.43e6, 1.23e6),
        "tamm": (1.42e6, 1.27e6),
    },
    150_000: {
        "identity": 4.16e6,
        "workload": 1.73e8,
        "timm": (2.14e6, 1.84e6),
        "tamm": (2.00e6, 1.80e6),
    },
    800_000: {
        "identity": 1.04e7,
        "workload": 2.83e8,
        "timm": (1.14e7, 9.8e6),
        "tamm": (5.3e6, 5.1e6),
    },
}


def close(value, printed):
    """Return whether a number has the printed digits.

    It may differ by one unit of the third digit, or half a unit of the second where only two are
    printed.
    """
    return abs(value / printed - 1) < (0.006 if f"{printed:.2e}"[3] != "0" else 0.01)


@pytest.mark.parametrize("threshold", sorted(LEVELS))
def test_published_noise_levels(threshold):
    expected = LEVELS[threshold]
    for name in ("identity", "workload"):
        assert close(paper_strategy(name, threshold).rmse(LAPLACE), expected[name]), name
    for name in ("timm", "tamm"):
        for released, printed in zip((True, False), expected[name], strict=True):
            rmse = paper_strategy(name, threshold, released=released).rmse(LAPLACE)
            assert close(rmse, printed), (name, released)


def test_published_noise_of_a_small_query():
    tenth = {
        name: paper_strategy(name, 100_000).std(LAPLACE)[9] for name in ("identity", "tamm", "timm")
    }
    assert close(tenth["identity"], 2.2e4)
    assert close(tenth["tamm"], 2.7e4)
    assert close(tenth["timm"], 9.9e5)
    assert close(paper_strategy("timm", 100_000, released=True).std(LAPLACE)[9], 5.6e5)


@pytest.mark.parametrize(
    ("gram", "printed"),
    [
        (all_ranges_gram(128), (5.667, 5.528)),
        (all_ranges_gram(256), (6.973, 6.875)),
        (prefix_gram(128), (5.344, 5.337)),
        (prefix_gram(256), (6.523, 6.457)),
    ],
)
def test_greedy_h_readings_give_published_errors(gram, printed):
    errors = [
        strategy_rmse(gram, fit_halved_tree(gram, released=released).matrix(), 1)
        for released in (False, True)
    ]
    assert errors == pytest.approx(printed, abs=6e-4)


@pytest.mark.parametrize("name", sums.ALGORITHMS)
def test_sum_strategies_answer_at_sensitivity_one(name):
    prefix_sums = sums.PrefixSums(
        edges=np.array([3, 7, 20, 21, 40, 100, 101, 250]), last=np.array([1, 2, 5, 7])
    )
    limits = prefix_sums.limits(60)
    strategy = sums.sum_strategy(name, prefix_sums.matrix(), prefix_sums.gram(), limits)
    assert strategy.recover @ strategy.rows == pytest.approx(
        prefix_sums.matrix() * limits, abs=1e-6
    )
    assert np.abs(strategy.rows).sum(axis=0).max() == pytest.approx(1)


@pytest.mark.parametrize(("every", "threshold"), [(1, 800_000), (10, 100_000), (25, 800_000)])
def test_the_optimum_never_loses_to_timm(every, threshold):
    prefix_sums = sums.PrefixSums(
        edges=8_000 * np.arange(1, 101), last=np.arange(every - 1, 100, every)
    )
    errors = {
        name: sums.sum_strategy(
            name,
            prefix_sums.matrix(),
            prefix_sums.gram(),
            prefix_sums.limits(threshold),
            effort=0.2,
        ).rmse(1.0)
        for name in ("timm", "tamm", "optimum")
    }
    assert errors["optimum"] < 0.95 * min(errors["timm"], errors["tamm"])
