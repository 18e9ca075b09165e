"""K-norm noise: its law on small lattices, chi-square tests of samples, and its parts."""

import math
from collections import Counter
from fractions import Fraction
from itertools import chain, pairwise, product

import numpy as np
import pytest
from scipy import stats

from leastnoise._trusted.check import InternalError
from leastnoise._trusted.kernel import SeededEntropy, SystemEntropy, _k_norm
from leastnoise._trusted.kernel._k_norm import k_norm_noise
from leastnoise._trusted.measurements import ball_count_numerators, draw_tables
from trusted.kernel.noise_oracle import ALARM

SEED = 20261128


def lattice(sizes, most):
    """Return all lists of tables with one total and a norm of at most ``most``."""
    tables = []
    for size in sizes:
        of_total = {}
        for cells in product(range(-most, most + 1), repeat=size):
            if sum(map(abs, cells)) <= most:
                of_total.setdefault(sum(cells), []).append(cells)
        tables.append(of_total)
    for total in range(-most, most + 1):
        yield from (
            sum(chosen, ()) for chosen in product(*(table.get(total, []) for table in tables))
        )


def norm_of(sizes, point):
    starts = np.cumsum([0, *sizes])
    return max(sum(map(abs, point[start:end])) for start, end in pairwise(starts))


def draws(sizes, scale, number, seed=SEED):
    entropy = SeededEntropy(seed)
    return [np.concatenate(k_norm_noise(sizes, scale, entropy)) for _ in range(number)]


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
    number, most = 20_000, 9
    weights = {point: math.exp(-norm_of(sizes, point) / scale) for point in lattice(sizes, most)}
    # the balls' numerators give the whole sum, beyond the enumerated part too
    ratio = math.exp(-1 / scale)
    free = len(ball_count_numerators(tuple(sorted(sizes)))) - 1
    numerator = sum(h * ratio**j for j, h in enumerate(ball_count_numerators(tuple(sorted(sizes)))))
    total = numerator / (1 - ratio) ** free
    assert sum(weights.values()) == pytest.approx(total, rel=0.02)

    observed = Counter(tuple(point.tolist()) for point in draws(sizes, scale, number))
    frequent = [point for point, weight in weights.items() if weight / total * number > 8]
    expected = [weights[point] / total * number for point in frequent]
    counts = [observed[point] for point in frequent]
    others = number - sum(counts), number - sum(expected)
    statistic = sum(
        (count - mean) ** 2 / mean
        for count, mean in zip([*counts, others[0]], [*expected, others[1]], strict=True)
    )
    assert stats.chi2.sf(statistic, len(frequent)) > ALARM


def test_wrong_scale_fails_the_test_of_the_law():
    sizes, number = (3, 2), 20_000
    norms = Counter(norm_of(sizes, tuple(point)) for point in draws(sizes, Fraction(1), number))

    def p_value(scale):
        ratio = math.exp(-1 / scale)
        h = ball_count_numerators((2, 3))
        balls = [
            sum(coefficient * math.comb(m - j + 4, 4) for j, coefficient in enumerate(h) if m >= j)
            for m in range(40)
        ]
        shells = np.diff([0, *balls]) * ratio ** np.arange(40)
        shells = shells / shells.sum() * number
        observed = np.array([norms[m] for m in range(40)])
        frequent = shells > 8
        statistic = ((observed - shells) ** 2 / shells)[frequent].sum()
        return stats.chi2.sf(statistic, frequent.sum() - 1)

    assert p_value(1.0) > ALARM
    assert max(p_value(0.93), p_value(1.07)) < ALARM


@pytest.mark.parametrize("sizes", [(2,) * 16, (4,) * 4, (2, 3, 10), (20, 20)])
def test_large_samples_have_the_counted_norms(sizes):
    scale, number = Fraction(3), 4000
    ordered = tuple(sorted(sizes))
    h = ball_count_numerators(ordered)
    free, ratio = len(h) - 1, math.exp(-1 / 3)
    most = 14 * (free + 3)
    balls = [
        sum(
            coefficient * math.comb(m - j + free, free) for j, coefficient in enumerate(h) if m >= j
        )
        for m in range(most)
    ]
    logs = np.array([math.log(b - a) for a, b in pairwise([0, *balls])])
    law = np.exp(logs + np.arange(most) * math.log(ratio) - logs.max())
    law /= law.sum()
    norms = np.array([norm_of(sizes, point.tolist()) for point in draws(sizes, scale, number)])
    edges = np.searchsorted(np.cumsum(law), np.linspace(0, 1, 13)[1:-1])
    edges = np.unique(edges)
    observed = np.bincount(np.searchsorted(edges, norms, side="left"), minlength=len(edges) + 1)
    mean = number * np.diff([0, *np.cumsum(law)[edges], 1.0])

    assert stats.chi2.sf(((observed - mean) ** 2 / mean).sum(), len(edges)) > ALARM


@pytest.mark.parametrize(("sizes", "norm"), [((2, 2), 2), ((3, 2), 2), ((1, 3), 3), ((4,), 2)])
def test_points_of_a_ball_are_equally_likely(sizes, norm):
    points = list(lattice(sizes, norm))
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
    low, high = _k_norm._enclose_exp_of_minus(value, bits)
    with mpmath.workprec(bits + 200):
        exact = mpmath.exp(-mpmath.mpf(value.numerator) / value.denominator) * 2**bits
        assert low <= exact <= high
    assert high - low <= 2


def test_open_choice_of_the_offset_draws_more_digits(monkeypatch):
    monkeypatch.setattr(_k_norm, "_SPARE_BITS", 0)  # few digits: most choices stay open at first
    weights, scale = ball_count_numerators((2, 3)), Fraction(1)
    integers = _k_norm._UniformIntegers(SeededEntropy(SEED))
    frequencies = np.bincount([_k_norm._draw_offset(weights, scale, integers) for _ in range(4000)])
    law = np.array(weights) * np.exp(-np.arange(len(weights)))
    law *= 4000 / law.sum()

    assert (
        stats.chi2.sf(
            ((frequencies - law[: len(frequencies)]) ** 2 / law[: len(frequencies)]).sum(), 4
        )
        > ALARM
    )


@pytest.mark.parametrize(
    ("sizes", "scale"),
    [((), Fraction(1)), ((0, 2), Fraction(1)), ((2,), Fraction(0)), ((2,), Fraction(2**56))],
)
def test_impossible_tables_and_scales_are_refused(sizes, scale):
    with pytest.raises(InternalError):
        k_norm_noise(sizes, scale, SystemEntropy())
