"""K-norm noise: its law on small lattices, chi-square tests of samples, and its parts."""

import math
from collections import Counter
from fractions import Fraction
from itertools import chain, pairwise

import numpy as np
import pytest
from scipy import stats

from leastnoise._trusted.check import InternalError
from leastnoise._trusted.kernel import SeededEntropy, SystemEntropy, _k_norm_sampler
from leastnoise._trusted.kernel._k_norm_sampler import k_norm_noise
from leastnoise._trusted.measurements import ball_count_numerators, draw_tables
from trusted.kernel.k_norm_lattice import k_norm, lattice_points
from trusted.kernel.noise_oracle import ALARM

SEED = 20261128


def balls_of(sizes, count):
    """Return the numbers of points of norm at most 0, 1, ..., count - 1."""
    numerators = ball_count_numerators(tuple(sorted(sizes)))
    free = len(numerators) - 1
    balls = []
    for norm in range(count):
        terms = [
            numerator * math.comb(norm - place + free, free)
            for place, numerator in enumerate(numerators)
            if norm >= place
        ]
        balls.append(sum(terms))
    return balls


def draws(sizes, scale, number, seed=SEED):
    entropy = SeededEntropy(seed)
    return [np.concatenate(k_norm_noise(sizes, scale, entropy)) for _ in range(number)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "scale"),
    [
        ((1,), Fraction(1)),
        ((3,), Fraction(3, 4)),
        ((2, 2), Fraction(1, 2)),
        ((3, 2), Fraction(1)),
        ((1, 2, 2), Fraction(2, 3)),
    ],
)
def test_law_matches_the_enumerated_lattice(sizes, scale):
    number = 20_000
    most = 9
    weights = {
        point: math.exp(-k_norm(sizes, point) / scale) for point in lattice_points(sizes, most)
    }
    # The numerators give the sum over all points, also those that are not enumerated.
    ratio = math.exp(-1 / scale)
    numerators = ball_count_numerators(tuple(sorted(sizes)))
    numerator = sum(h * ratio**place for place, h in enumerate(numerators))
    total = numerator / (1 - ratio) ** (len(numerators) - 1)
    assert sum(weights.values()) == pytest.approx(total, rel=0.02)

    observed = Counter(tuple(point.tolist()) for point in draws(sizes, scale, number))
    frequent = [point for point, weight in weights.items() if weight / total * number > 8]
    means = [weights[point] / total * number for point in frequent]
    counts = [observed[point] for point in frequent]
    # All other points are one more cell of the test.
    means.append(number - sum(means))
    counts.append(number - sum(counts))
    statistic = sum((count - mean) ** 2 / mean for count, mean in zip(counts, means, strict=True))
    assert stats.chi2.sf(statistic, len(frequent)) > ALARM


@pytest.mark.slow
def test_wrong_scale_fails_the_distribution_test():
    sizes = (3, 2)
    number = 20_000
    norms = Counter(k_norm(sizes, tuple(point)) for point in draws(sizes, Fraction(1), number))

    def p_value(scale):
        ratio = math.exp(-1 / scale)
        points_of_norm = np.diff([0, *balls_of(sizes, 40)])
        means = points_of_norm * ratio ** np.arange(40)
        means = means / means.sum() * number
        observed = np.array([norms[norm] for norm in range(40)])
        frequent = means > 8
        statistic = ((observed - means) ** 2 / means)[frequent].sum()
        return stats.chi2.sf(statistic, frequent.sum() - 1)

    assert p_value(1.0) > ALARM
    assert max(p_value(0.93), p_value(1.07)) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2,) * 16, (4,) * 4, (2, 3, 10), (20, 20)])
def test_large_samples_have_the_counted_norms(sizes):
    scale = Fraction(3)
    number = 4000
    free = len(ball_count_numerators(tuple(sorted(sizes)))) - 1
    most = 14 * (free + 3)
    logs = np.array([math.log(b - a) for a, b in pairwise([0, *balls_of(sizes, most)])])
    law = np.exp(logs - np.arange(most) / 3 - logs.max())
    law /= law.sum()
    norms = np.array([k_norm(sizes, point.tolist()) for point in draws(sizes, scale, number)])
    # Up to 12 classes of norms with nearly equal probabilities.
    edges = np.unique(np.searchsorted(np.cumsum(law), np.linspace(0, 1, 13)[1:-1]))
    observed = np.bincount(np.searchsorted(edges, norms, side="left"), minlength=len(edges) + 1)
    mean = number * np.diff([0, *np.cumsum(law)[edges], 1.0])

    assert stats.chi2.sf(((observed - mean) ** 2 / mean).sum(), len(edges)) > ALARM


@pytest.mark.parametrize(("sizes", "norm"), [((2, 2), 2), ((3, 2), 2), ((1, 3), 3), ((4,), 2)])
def test_points_of_a_ball_are_equally_likely(sizes, norm):
    points = list(lattice_points(sizes, norm))
    generator = np.random.default_rng(SEED)

    def below(bound):
        return int(generator.integers(bound))

    number = 60 * len(points)
    frequencies = Counter(
        tuple(chain.from_iterable(draw_tables(sizes, norm, below))) for _ in range(number)
    )
    assert set(frequencies) <= set(points)
    statistic = sum((frequencies[point] - 60) ** 2 / 60 for point in points)
    assert stats.chi2.sf(statistic, len(points) - 1) > ALARM


def test_tables_of_a_draw_have_one_total():
    for seed in range(20):
        tables = k_norm_noise((2, 5, 1, 3), Fraction(50), SeededEntropy(seed))
        assert [table.dtype for table in tables] == [np.int64] * 4
        assert len({int(table.sum()) for table in tables}) == 1


def test_group_of_a_thousand_cells_is_drawn_at_very_small_budgets():
    tables = k_norm_noise((20,) * 50, Fraction(2**40), SystemEntropy())
    assert len({int(table.sum()) for table in tables}) == 1
    assert max(int(np.abs(table).sum()) for table in tables) > 2**40


@pytest.mark.parametrize("value", [Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(500)])
@pytest.mark.parametrize("bits", [10, 64, 1000])
def test_exponentials_are_enclosed(value, bits):
    mpmath = pytest.importorskip("mpmath")
    low, high = _k_norm_sampler._enclose_exp_of_minus(value, bits)
    with mpmath.workprec(bits + 200):
        exact = mpmath.exp(-mpmath.mpf(value.numerator) / value.denominator) * 2**bits
        assert low <= exact <= high
    assert high - low <= 2


def test_open_choice_of_the_offset_draws_more_digits(monkeypatch):
    # With few digits, most choices stay open at first.
    monkeypatch.setattr(_k_norm_sampler, "_SPARE_BITS", 0)
    weights = ball_count_numerators((2, 3))
    scale = Fraction(1)
    integers = _k_norm_sampler._UniformIntegers(SeededEntropy(SEED))
    frequencies = np.bincount(
        [_k_norm_sampler._draw_offset(weights, scale, integers) for _ in range(4000)]
    )
    means = np.array(weights) * np.exp(-np.arange(len(weights)))
    means *= 4000 / means.sum()
    means = means[: len(frequencies)]

    statistic = ((frequencies - means) ** 2 / means).sum()
    assert stats.chi2.sf(statistic, 4) > ALARM


@pytest.mark.parametrize(
    ("sizes", "scale"),
    [((), Fraction(1)), ((0, 2), Fraction(1)), ((2,), Fraction(0)), ((2,), Fraction(2**56))],
)
def test_impossible_tables_and_scales_are_refused(sizes, scale):
    with pytest.raises(InternalError):
        k_norm_noise(sizes, scale, SystemEntropy())
