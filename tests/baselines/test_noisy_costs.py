"""Noisy costs of intervals and the cheapest partition: definitions and sensitivity."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from baselines import _noisy_costs as costs
from baselines._noisy_costs import cheapest_of_powers, costs_of_length, noisy_costs
from behind_the_wall import clip_counts
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import GRID, SeededEntropy

EPSILON = Fraction(3, 13)  # no scale is a multiple of the step to which it is rounded up
BASES = [(3, 0, 15, 15), (4, 4, 6, 6), (3, 15, 0, 15)]


def all_costs(x):
    """Return the costs of intervals of every length from 1 to n."""
    return list(costs_of_length(x, range(1, len(x) + 1)))


def partitions_of_powers(n):
    if n == 0:
        yield ()
        return
    for power in range(n.bit_length()):
        for later_parts in partitions_of_powers(n - 2**power):
            yield (*later_parts, (n - 2**power, power))


def by_definition(x, start, length):
    window = [Fraction(int(v)) for v in x[start : start + length]]
    return sum(abs(v - sum(window) / length) for v in window)


SHAPES = {
    "sparse": lambda g, n: g.integers(0, 50, n) * (g.random(n) < 0.05),
    "dense": lambda g, n: g.integers(0, 10**6, n),
    "few values": lambda g, n: g.integers(0, 3, n),
    "constant": lambda g, n: np.full(n, 7),
    "rising": lambda g, n: np.arange(n) ** 2,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("short", [0, 128])
def test_all_intervals_are_exact(shape, short, monkeypatch):
    monkeypatch.setattr(costs, "_SHORT", short)
    monkeypatch.setattr(costs, "_BLOCK", 7)
    for n in (1, 2, 3, 8, 21):
        x = SHAPES[shape](np.random.default_rng(n), n).astype(np.int64)
        for length, costs_by_start in enumerate(all_costs(x), start=1):
            assert costs_by_start.dtype == np.int64
            assert costs_by_start.tolist() == [
                length * by_definition(x, start, length) for start in range(n - length + 1)
            ]


def test_noisy_costs_match_the_worked_example():
    x = np.array([2, 3, 8, 1, 0, 2, 0, 4, 2, 4])
    by_length = all_costs(x)
    worked_costs = {
        (0, 2): 1,
        (2, 1): 0,
        (3, 4): 3,
        (7, 3): Fraction(8, 3),
        (0, 10): Fraction(172, 10),
    }

    assert {
        (start, length): Fraction(int(by_length[length - 1][start]), length)
        for start, length in worked_costs
    } == worked_costs


@pytest.mark.parametrize("length", range(1, 8))
def test_deviation_sensitivity_is_two_minus_two_over_length(length):
    generator = np.random.default_rng(length)
    changes = []
    for trial in range(300):
        x = generator.integers(0, 4, length) if trial else np.zeros(length, dtype=np.int64)
        larger_counts = x + (np.arange(length) == generator.integers(length))
        changes.append(abs(int(all_costs(larger_counts)[-1][0]) - int(all_costs(x)[-1][0])))
    # The empty interval has the largest change.
    assert Fraction(max(changes), length) == 2 - Fraction(2, length)


@pytest.mark.parametrize("n", [1, 2, 3, 64, 1000])
def test_nothing_overflows_at_the_largest_counts(n):
    x = np.zeros(n, dtype=np.int64)
    x[: (n + 1) // 2] = 2**63 - 1
    cut = clip_counts(x)
    (cost_of_all,) = costs_of_length(cut, [n])
    assert cost_of_all[0] == n * by_definition(cut, 0, n)


def deviations(counts):
    """Return the deviation from the mean of each interval, by start and power."""
    powers = range(len(counts).bit_length())
    return {
        (start, k): by_definition(counts, start, 2**k)
        for k in powers
        for start in range(len(counts) - 2**k + 1)
    }


def test_noisy_cost_scales_cover_one_changed_record():
    """Noise of at least (D_c + D_b) / epsilon suffices; D_b is found by brute force."""
    change = {}
    for counts in itertools.product(range(3), repeat=4):
        before = deviations(counts)
        for cell in range(4):
            after = deviations(
                tuple(number + (place == cell) for place, number in enumerate(counts))
            )
            for (start, power), value in after.items():
                change[power] = max(
                    change.get(power, Fraction(0)), abs(value - before[start, power])
                )
    assert change == {0: 0, 1: 1, 2: Fraction(3, 2)}

    for (_, power), scale in noisy((3, 0, 5, 5), 1)[1].items():
        least = (change[2] + change[power]) * GRID / EPSILON
        assert least <= scale <= least + Fraction(1, 256)


def noisy(counts, seed):
    """Return the partition under given noise, the noise scales, and the noise.

    Noise and scales are indexed by start and power.
    """
    generator = np.random.default_rng(seed)
    scales = {}
    draws = {}
    power = itertools.count()

    def sampler(numerator, denominator, count, entropy):
        k = next(power)
        noise = generator.integers(-40 * GRID, 40 * GRID, count)
        for place, draw in enumerate(noise.tolist()):
            scales[place, k] = Fraction(numerator, denominator)
            draws[place, k] = draw
        return noise

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(costs, "discrete_laplace", sampler)
        partition = noisy_costs(np.array(counts), EPSILON, SeededEntropy(1), Fraction(5))
    return partition, scales, draws


def test_partition_minimises_costs_with_separate_noise():
    """Each interval, single cells included, gets one draw, and every draw matters."""
    decisive = set()
    for seed in range(60):
        counts = BASES[seed % len(BASES)]
        partition, _, draws = noisy(counts, seed)
        exact = deviations(counts)
        assert draws.keys() == exact.keys()
        total = {
            B: sum(math.floor(GRID * exact[b]) + 5 * GRID + draws[b] for b in B)
            for B in partitions_of_powers(4)
        }
        best = min(total, key=lambda B: total[B])
        assert partition.tolist() == [start for start, _ in best]
        decisive.update(best)

    assert len(decisive) == len(deviations((0, 0, 0, 0)))


@pytest.mark.parametrize("n", range(1, 10))
def test_cheapest_partition_matches_brute_force(n):
    generator = np.random.default_rng(n)
    for _ in range(30):
        powers = [generator.integers(-9, 10, n - 2**k + 1) for k in range(n.bit_length())]
        starts = cheapest_of_powers(powers)
        totals = {
            tuple(b[0] for b in B): sum(int(powers[k][start]) for start, k in B)
            for B in partitions_of_powers(n)
        }
        assert totals[tuple(starts.tolist())] == min(totals.values())


def test_partition_ties_are_broken_by_rule_not_data():
    level = [np.zeros(4 - 2**k + 1, dtype=np.int64) for k in range(3)]
    assert cheapest_of_powers(level).tolist() == [0, 1, 2, 3]


def test_penalty_beyond_exact_arithmetic_is_refused():
    with pytest.raises(InputError, match="penalty must be from 0 to"):
        noisy_costs(np.array([1, 2, 3, 4]), Fraction(1), SeededEntropy(1), Fraction(-1))
