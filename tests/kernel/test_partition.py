"""Private partitions: what they choose, that their probabilities are those of the definition, and what they refuse."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from baselines._noisy_costs import noisy_costs, on_powers
from experiments.selections import partition_variants
from experiments.selections.partition_variants import (
    aligned_costs,
    cheapest_aligned,
    draw_powers,
    leaves,
    noisy_aligned,
    powers_charge,
    sampled_powers,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from leastnoise._check import InputError
from leastnoise._kernel import _plane as plane
from leastnoise._kernel._entropy import SeededEntropy
from leastnoise._kernel._partition import GRID, Partition, noise_scale, read_penalty
from leastnoise._kernel._partition_sampling import (
    Scaled,
    exponents,
    plus,
    powers_of_half,
    rate,
    roots_of_half,
    settle,
    times,
)
from leastnoise._kernel._plane import draw_blocks, least_block_cost, plane_charge, read_plane, sampled_partition
from leastnoise._linop import interval_tree
from mechanisms.remembered import remember_weights

# The families, of which a release uses aligned intervals with the exponential mechanism.
NOISY = {"powers": noisy_costs, "aligned": noisy_aligned}
SAMPLED = {"aligned": sampled_partition, "powers": sampled_powers}


class Scripted:
    """Entropy that says given words, then repeats the last."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        return np.array([self.left.pop(0) if len(self.left) > 1 else self.left[0] for _ in range(count)], dtype=np.uint64)


def draw_aligned(weights, entropy):
    """Starts of the buckets, from the weights of the intervals of lengths 1, 2, 4, ..."""
    tree = interval_tree(len(weights[0].mantissa))
    kept = draw_blocks(weights[::-1], tree, entropy)
    return np.sort(np.concatenate([starts[own] for starts, own in zip(tree.starts, kept, strict=True)]))


def charged(size):
    return plane_charge(len(interval_tree(size).starts))


def partitions_of_powers(n):
    if n == 0:
        yield ()
        return
    for power in range(n.bit_length()):
        for rest in partitions_of_powers(n - 2**power):
            yield (*rest, (n - 2**power, power))


def aligned_partitions(n):
    def of(start, power):
        if start >= n:
            yield ()
            return
        if power == 0 or start + 2 ** (power - 1) < n:
            yield ((start, power),)
        if power:
            for left in of(start, power - 1):
                for right in of(start + 2 ** (power - 1), power - 1):
                    yield left + right

    return list(of(0, (n - 1).bit_length()))


FAMILIES = {"powers": partitions_of_powers, "aligned": aligned_partitions}


def cost_of(levels, bucket, family):
    start, power = bucket
    return int(levels[power][start if family == "powers" else start >> power])


@pytest.mark.parametrize("n", range(1, 10))
def test_the_cheapest_partition_is_that_of_all_partitions(n):
    generator = np.random.default_rng(n)
    for _ in range(30):
        aligned = [generator.integers(-9, 10, -(-n // 2**k)) for k in range((n - 1).bit_length() + 1)]
        least, starts = cheapest_aligned(aligned)
        costs = {tuple(b[0] for b in B): sum(cost_of(aligned, b, "aligned") for b in B) for B in aligned_partitions(n)}
        assert least == min(costs.values()) == costs[tuple(starts.tolist())]


def test_of_equally_cheap_partitions_the_rule_decides_and_not_the_data():
    assert cheapest_aligned([np.zeros(4, dtype=np.int64), np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.int64)])[1].tolist() == [0]


def test_leaves_of_a_tree_with_a_cut_off_end():
    assert leaves(5, [np.array([True]), np.array([False, True]), np.array([True, True, True])]).tolist() == [0, 4]
    assert leaves(1, []).tolist() == [0]


@pytest.mark.parametrize("way", ["powers", "aligned"])
def test_clear_structure_is_found(way):
    x = np.repeat([50_000, 0, 20_000, 20_000, 90_000], [64, 64, 64, 32, 32])
    for method in (
        lambda: NOISY[way](x, 1, SeededEntropy(5), penalty=300),
        lambda: SAMPLED[way](x, 1, SeededEntropy(5), penalty=20, prior="2.2"),
    ):
        found = method()
        assert {64, 128, 224} <= set(found.starts.tolist())
        assert len(found.starts) <= 12
        assert found.lengths().sum() == 256


@pytest.mark.parametrize("n", [1, 2, 3, 5, 100])
def test_any_number_of_cells(n):
    x = np.arange(n) * 100
    for way in ("powers", "aligned"):
        for found in (
            NOISY[way](x, "0.1", SeededEntropy(1), penalty=1),
            SAMPLED[way](x, "0.1", SeededEntropy(1), penalty=1),
        ):
            assert isinstance(found, Partition)
            assert found.starts[0] == 0
            assert (found.lengths() > 0).all()
            assert found.lengths().sum() == n
            assert found.spent == Fraction(1, 10)
    assert least_block_cost(x, 1, SeededEntropy(1), penalty=1).denominator <= GRID


def test_penalties_and_scales_are_at_most_what_keeps_sums_exact():
    most = Fraction(2**58, 4 * GRID)
    assert read_penalty(most, 4) == 2**56
    with pytest.raises(InputError, match=r"penalty must be from 0 to 1\.76e\+13 records"):
        read_penalty(most + Fraction(1, GRID), 4)
    numerator, denominator = noise_scale(1, Fraction(1, 2**48), 4)
    assert numerator == 2**48 * denominator
    with pytest.raises(InputError, match="epsilon must be larger for 4 cells"):
        noise_scale(1, Fraction(1, 2**48 + 1), 4)


def test_no_count_makes_a_partition_fail():
    for x in (np.full(100, 2**63 - 1), np.full(100, -(2**63)), np.where(np.arange(100) % 2, 2**63 - 1, 0)):
        for way in ("powers", "aligned"):
            assert NOISY[way](x, 1, SeededEntropy(1), penalty=1).size == 100
            assert SAMPLED[way](x, 1, SeededEntropy(1), penalty=1).size == 100
        assert least_block_cost(x, 1, SeededEntropy(1), penalty=1) > -100


# --- the exponential mechanism ---------------------------------------------------------------------------------------------------


def probabilities(x, epsilon, penalty, prior, family):
    """By the definition, in real numbers."""
    n = len(x)
    levels = aligned_costs(x) if family == "aligned" else on_powers(x)
    delta = 2 - 2 / (n if family == "aligned" else 2 ** (len(levels) - 1))
    weights = {}
    for B in FAMILIES[family](n):
        cost = sum(cost_of(levels, b, family) / GRID + penalty for b in B)
        weights[tuple(b[0] for b in B)] = math.exp(-prior * len(B) - epsilon * cost / (2 * delta))
    total = sum(weights.values())
    return {starts: weight / total for starts, weight in weights.items()}


@pytest.mark.parametrize("family", ["aligned", "powers"])
def test_partitions_are_drawn_with_the_probabilities_of_the_definition(family, monkeypatch):
    """False alarms: 1e-6 a case."""
    remember_weights(monkeypatch, plane, partition_variants)
    x = np.array([2, 0, 5, 1, 1])
    expected = probabilities(x, 1.5, 0.3, 0.7, family)
    entropy = SeededEntropy(11)
    draws = 4000
    seen = dict.fromkeys(expected, 0)
    for _ in range(draws):
        found = SAMPLED[family](x, "1.5", entropy, penalty="0.3", prior="0.7")
        seen[tuple(found.starts.tolist())] += 1
    statistic = sum((seen[B] - draws * p) ** 2 / (draws * p) for B, p in expected.items())
    assert statistic < chi2.isf(1e-6, len(expected) - 1)


@pytest.mark.parametrize("family", ["aligned", "powers"])
@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_the_loss_computed_exactly_is_at_most_epsilon(family, n):
    """With the whole exponents that the program uses, and exact sums over all partitions."""
    epsilon = Fraction(3, 4)
    bits, step = rate(epsilon - (charged(n) if family == "aligned" else powers_charge(n)))
    fixed = 1000
    generator = np.random.default_rng(n)
    worst = mpmath.mpf(0)
    for trial in range(40):
        x = generator.integers(0, 3, n) * (trial > 0)
        more = x.copy()
        more[generator.integers(n)] += 1
        tables = []
        for cells in (x, more):
            levels = aligned_costs(cells) if family == "aligned" else on_powers(cells)
            delta = math.ceil(GRID * (2 - 2 / (n if family == "aligned" else 2 ** (len(levels) - 1))))
            t = [exponents(level, step, delta) + fixed for level in levels]
            weights = {B: mpmath.mpf(2) ** (-mpmath.mpf(sum(cost_of(t, b, family) for b in B)) / 2**bits) for B in FAMILIES[family](n)}
            total = sum(weights.values())
            tables.append({B: weight / total for B, weight in weights.items()})
        worst = max(worst, *(abs(mpmath.log(tables[0][B] / tables[1][B])) for B in tables[0]))
    assert worst <= float(epsilon)
    assert worst > float(epsilon) / 4 or n == 2  # the bound is not idle


def test_the_program_s_own_sums_give_the_probabilities_to_the_error_that_is_charged():
    """The product of its exact draws, from sums rounded as they are, against real numbers."""
    x = np.array([7, 0, 0, 3, 3, 4, 90, 2])
    bits, step = rate(Fraction(1, 2))
    weights = [powers_of_half(exponents(level, step, 7168) + 90000, bits) for level in aligned_costs(x)]
    with mpmath.workdps(60):
        exact = [
            [mpmath.mpf(2) ** (-mpmath.mpf(int(t)) / 2**bits) for t in exponents(level, step, 7168) + 90000] for level in aligned_costs(x)
        ]
        sums = [weights[0]]
        for weight in weights[1:]:
            below = sums[-1]
            sums.append(plus(weight, times(below.at(slice(0, None, 2)), below.at(slice(1, None, 2)))))

        def number(scaled, place):
            mantissa, exponent = scaled.whole(place)
            return mpmath.mpf(mantissa) * mpmath.mpf(2) ** exponent

        def drawn(start, power, B):
            own, place = (start, power) in B, start >> power
            if power == 0:
                return mpmath.mpf(1)
            w = number(weights[power], place)
            s = number(sums[power - 1], 2 * place) * number(sums[power - 1], 2 * place + 1)
            if own:
                return w / (w + s)
            return s / (w + s) * drawn(start, power - 1, B) * drawn(start + 2 ** (power - 1), power - 1, B)

        products = {B: mpmath.fprod(exact[power][start >> power] for start, power in B) for B in aligned_partitions(8)}
        total = sum(products.values())
        errors = [abs(mpmath.log(drawn(0, 3, B) * total / products[B])) for B in products]
        assert sum(drawn(0, 3, B) for B in products) == pytest.approx(1, abs=1e-40)
        assert max(errors) < float(charged(8)) / 2
        assert max(errors) > 1e-18


@pytest.mark.parametrize("levels", [1, 4, 21])
def test_what_is_charged_for_rounding_is_what_was_proved(levels):
    """500 + 24 a level roundings, on either side."""
    assert plane_charge(levels) == Fraction(500 + 24 * levels, 2**52)


def test_roots_of_half_are_correctly_rounded():
    with mpmath.workdps(80):
        for j, root in enumerate(roots_of_half(), start=1):
            assert root == float(mpmath.mpf(2) ** (-(mpmath.mpf(2) ** -j)))


@pytest.mark.parametrize("bits", [0, 1, 13, 44])
def test_powers_of_half_are_within_their_error(bits):
    t = np.unique(np.concatenate([np.arange(9), np.random.default_rng(bits).integers(0, 2**60, 50)]))
    found = powers_of_half(t, bits)
    with mpmath.workdps(60):
        for place, value in enumerate(t.tolist()):
            exact = mpmath.mpf(2) ** (-mpmath.mpf(value % 2**bits) / 2**bits)
            assert abs(mpmath.mpf(float(found.mantissa[place])) / exact - 1) < 100 * 2.0**-53
            assert found.exponent[place] == -(value >> bits)


def test_sums_and_products_of_scaled_numbers():
    generator = np.random.default_rng(2)
    a, b = (Scaled(generator.uniform(0.5, 1, 200), generator.integers(-(10**9), 10**9, 200)) for _ in range(2))
    b.exponent[:150] = a.exponent[:150] + generator.integers(-70, 70, 150)
    for name, found in (("+", plus(a, b)), ("*", times(a, b))):
        assert ((found.mantissa >= 0.5) & (found.mantissa <= 1)).all()
        with mpmath.workdps(400):
            for i in range(200):
                u, v, w = (mpmath.mpf(float(z.mantissa[i])) * mpmath.mpf(2) ** int(z.exponent[i]) for z in (a, b, found))
                exact = u + v if name == "+" else u * v
                assert abs(w / exact - 1) <= 2.0**-52


@pytest.mark.parametrize("epsilon", ["1e-9", "0.001", "0.1", "1", "50", "20000"])
def test_the_rate_never_exceeds_epsilon(epsilon):
    bits, step = rate(Fraction(epsilon))
    assert 2 * step * mpmath.log(2) / 2**bits <= Fraction(epsilon)
    assert 2 * step * 0.6931471805599453 / 2**bits > float(Fraction(epsilon)) * (0.999 if epsilon != "20000" else 0.5) or step < 1000


def test_a_close_call_is_settled_in_whole_numbers():
    third = 2**64 // 3
    assert settle([(1, 0), (2, 0)], third - 1, Scripted(0)) == 0
    assert settle([(1, 0), (2, 0)], third + 1, Scripted(0)) == 1
    assert settle([(1, 0), (2, 0)], third, Scripted(0)) == 0  # the next digits of 1/3 are 0101...
    assert settle([(1, 0), (2, 0)], third, Scripted(third, 2**64 - 1)) == 1
    tiny = [(1, -(10**15)), (1, 0), (1, -(10**15))]
    assert settle(tiny, 0, Scripted(0, 0, 1)) == 1
    assert settle(tiny, 2**64 - 1, Scripted(5)) == 1


def test_the_draw_uses_the_exact_comparison_when_it_is_close(monkeypatch):
    calls = []

    def watched(terms, word, entropy):
        calls.append(len(terms))
        return settle(terms, word, entropy)

    monkeypatch.setattr(plane, "settle", watched)
    monkeypatch.setattr(partition_variants, "settle", watched)
    half = Scaled(np.array([0.5, 0.5]), np.array([1, 1]))
    whole = Scaled(np.array([0.5]), np.array([1]))
    assert draw_aligned([half, whole], Scripted(2**63 - 1)).tolist() == [0]
    assert draw_aligned([half, whole], Scripted(2**63)).tolist() == [0, 1]
    assert draw_powers([half, whole], Scripted(2**63)).tolist() == [0]
    assert draw_powers([half, whole], Scripted(2**63 - 1)).tolist() == [0, 1]
    assert calls == [2, 2, 2, 2]
    third = Scaled(np.array([0.5, 0.5]), np.array([1, 2]))  # weights of 1 and 2 for the cells, 1 for both together
    for more, starts in ((0, [0]), (2**64 - 1, [0, 1])):  # the next digits of 1/3 are 0101...
        assert draw_aligned([third, whole], Scripted(2**64 // 3, more)).tolist() == starts
    for more, starts in ((0, [0, 1]), (2**64 - 1, [0])):  # from the right: the last cell alone, 2 of 3, or both
        assert draw_powers([third, whole], Scripted(2**64 // 3 * 2, more)).tolist() == starts
    monkeypatch.setattr(plane, "_DOUBT", 2.0)  # every comparison
    weights = [Scaled(np.full(8 >> k, 0.75), np.full(8 >> k, -k)) for k in range(4)]
    entropy, other = SeededEntropy(3), SeededEntropy(3)
    exact = [draw_aligned(weights, entropy).tolist() for _ in range(50)]
    monkeypatch.setattr(plane, "_DOUBT", 2.0**-40)
    assert exact == [draw_aligned(weights, other).tolist() for _ in range(50)]


# --- refusals ----------------------------------------------------------------------------------------------------------------------


X = np.array([1, 2, 3, 4])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: read_plane(np.array([1.0])), "must be an int64 array of shape"),
        (lambda: read_plane(np.zeros((2, 2, 1), dtype=np.int64)), "array of shape \\(2, 2, 1\\)"),
        (lambda: read_plane([1]), "got 'list'"),
        (lambda: noisy_costs(np.zeros((2, 2), dtype=np.int64), 1, SeededEntropy(1), penalty=1), "shape \\(2, 2\\)"),
        (lambda: read_plane(np.zeros(0, dtype=np.int64)), "with 1 to 2\\^24 cells"),
        (lambda: least_block_cost(X, 0, SeededEntropy(1), penalty=1), "epsilon must be a number above 0; got 0"),
        (lambda: least_block_cost(X, float("nan"), SeededEntropy(1), penalty=1), "epsilon must be a finite number"),
        (lambda: least_block_cost(X, 1, SeededEntropy(1), penalty=-1), "penalty must be from 0 to"),
        (lambda: least_block_cost(X, 1, SeededEntropy(1), penalty=1, distance=0), "distance must be a whole number of at least 1"),
        (lambda: noise_scale(4096, Fraction(1, 2**60), 4), "epsilon must be larger for 4 cells"),
        (lambda: sampled_partition(X, "1e-13", SeededEntropy(1), penalty=1), "too small for the exponential mechanism"),
        (lambda: sampled_partition(X, 1, SeededEntropy(1), penalty=1, prior=-1), "prior must be from 0 to 1024"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@given(st.integers(1, 2 * GRID), st.fractions(Fraction(1, 900), 50, max_denominator=997))
@settings(max_examples=100, deadline=None)
def test_scales_are_rounded_up_and_only_a_little(sensitivity, epsilon):
    scale = Fraction(*noise_scale(sensitivity, epsilon, 4))
    assert sensitivity / epsilon <= scale < sensitivity / epsilon + Fraction(1, 256)


def test_neighbours_that_differ_by_more_records_get_more_noise():
    """Group privacy: at distance 2 the draws are those of half the epsilon."""
    x = np.random.default_rng(1).integers(0, 40, 64)
    for way in (noisy_costs, sampled_partition):
        pairs = [(way(x, 1, SeededEntropy(s), penalty=2, distance=2), way(x, "0.5", SeededEntropy(s), penalty=2)) for s in range(5)]
        assert all((one.spent, other.spent) == (1, Fraction(1, 2)) for one, other in pairs)
        if way is noisy_costs:
            assert all(np.array_equal(one.starts, other.starts) for one, other in pairs)
