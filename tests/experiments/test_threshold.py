"""Private thresholds: against their definitions, by exact enumeration of the output probabilities, and the published faults."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from experiments.selections import threshold, threshold_joint
from experiments.selections.threshold import above, geometric_candidates, read_amounts, recursive, scale_up, sparse_vector
from experiments.selections.threshold_joint import biases, least_error, sensitivity
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._check import InputError
from leastnoise._kernel import SeededEntropy
from mechanisms.remembered import draw_ahead

CANDIDATES = (1, 2, 4, 6)
MOST = 6
# All multisets of up to three amounts, and with each one row more.
DATA = [rows for size in range(4) for rows in itertools.combinations_with_replacement((0, 1, 3, 5, 6), size)]
PAIRS = [(rows, tuple(sorted((*rows, more)))) for rows in DATA for more in (0, 2, 3, 5, 6)]


class Words:
    """An entropy source that counts what it gave."""

    def __init__(self, seed):
        self.inner, self.given = SeededEntropy(seed), 0

    def words(self, count):
        self.given += count
        return self.inner.words(count)


def amounts(rows):
    return np.array(rows, dtype=np.int64)


def laplace(scale, reach):
    """Probabilities of discrete Laplace noise from -reach to reach."""
    z = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(z) / scale)
    return z, mass / (2 / (1 - math.exp(-1 / scale)) - 1)


def at_least(scale, values):
    """P(Z >= value) for discrete Laplace noise and whole values."""
    t = math.exp(-1 / scale)
    return np.where(values > 0, t ** np.maximum(values, 0) / (1 + t), 1 - t ** np.maximum(1 - values, 1) / (1 + t))


def vector_law(rows, epsilon, kept=Fraction(3, 4), share=0.5, damp=1.0):
    """Exact probabilities of the sparse vector's results, from the definition; ``damp`` makes the noise too small."""
    a, b = kept.as_integer_ratio()
    queries = [b * sum(w <= u for w in rows) - a * len(rows) for u in CANDIDATES[:-1]]
    bars, mass = laplace(damp * max(a, b - a) / (epsilon * share), 400)
    scale = damp * b / (epsilon * (1 - share))
    law, open_ = [], mass.copy()
    for query in queries:
        hit = at_least(scale, bars - query)
        law.append(float((open_ * hit).sum()))
        open_ = open_ * (1 - hit)
    return np.array([*law, float(open_.sum())])


def joint_law(rows, epsilon, low, high, noise, weights, damp=1.0):
    """Exact probabilities of the least error's results."""
    scores = []
    for place, limit in enumerate(CANDIDATES):
        cut = [sum(max(w - limit, 0) for w in rows if lo < w <= hi) for lo, hi in zip(low, high, strict=True)]
        scores.append(sum(a * math.isqrt(c * c + int(s) ** 2) for a, c, s in zip(weights, cut, noise[place], strict=True)))
    most = max(
        sum(a * max(w - CANDIDATES[0], 0) for a, lo, hi in zip(weights, low, high, strict=True) if lo < w <= hi) for w in range(MOST + 1)
    )
    scale = damp * most / epsilon
    z, mass = laplace(scale, 2000)
    half = np.where(z == 0, mass, 2 * mass)[z >= 0]
    upto = np.concatenate([[0.0], np.cumsum(half)])  # P(|Z| < i)
    law = []
    for k, score in enumerate(scores):
        chance = half.copy()
        for other, theirs in enumerate(scores):
            if other != k:
                # theirs - Z' > score - z, or equal and behind
                bound = theirs - score + np.arange(len(half)) + (other > k)
                chance = chance * upto[np.clip(bound, 0, len(upto) - 1)]
        law.append(float(chance.sum()))
    return np.array(law)


QUERIES = {
    "prefixes": (np.array([-1, -1, -1]), np.array([2, 4, 6]), np.array([1, 1, 1])),
    "weighted ranges": (np.array([-1, 2, 3]), np.array([3, 6, 5]), np.array([5, 1, 2])),
}
NOISE = np.array([[2.0, 2, 2], [3, 3, 4], [5, 5, 6], [5, 7, 9]])


def worst(law):
    return max(np.abs(np.log(law(one) / law(other))).max() for one, other in PAIRS)


@pytest.mark.parametrize("kept", [Fraction(3, 4), Fraction(1, 5)])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_sparse_vector_is_private_by_enumeration(kept, share):
    """Every result of all pairs of neighbours, one of which has a row more: the number of rows is private too."""
    epsilon = 0.8
    assert worst(lambda rows: vector_law(rows, epsilon, kept, share)) <= epsilon + 1e-9
    assert worst(lambda rows: vector_law(rows, epsilon, kept, share, damp=0.3)) > epsilon


@pytest.mark.parametrize("name", QUERIES)
def test_least_error_is_private_by_enumeration(name):
    low, high, weights = QUERIES[name]
    epsilon = 1.2
    assert worst(lambda rows: joint_law(rows, epsilon, low, high, NOISE, weights)) <= epsilon + 1e-9
    assert worst(lambda rows: joint_law(rows, epsilon, low, high, NOISE, weights, damp=0.3)) > epsilon


@pytest.fixture
def ahead(monkeypatch):
    """Noise of many calls is drawn together."""
    draw_ahead(monkeypatch, threshold, threshold_joint)


def agrees(found, law, trials):
    """Frequencies against probabilities, each result within 5 standard errors: false alarm below 1e-5 a test."""
    for place, chance in enumerate(law):
        assert abs(found[CANDIDATES[place]] / trials - chance) <= 5 * math.sqrt(chance * (1 - chance) / trials) + 1e-9


@pytest.mark.parametrize("rows", [(), (1, 3, 3, 5), (6,) * 9, (0,) * 12])
def test_sparse_vector_draws_the_stated_law(rows, ahead):
    trials, entropy = 3000, SeededEntropy(17)
    found = Counter(sparse_vector(amounts(rows), "4/5", entropy, candidates=CANDIDATES, most=MOST, kept="3/4").limit for _ in range(trials))
    agrees(found, vector_law(rows, 0.8), trials)


def test_distance_and_share_divide_the_budget(ahead):
    trials, rows = 3000, (1, 1, 1, 1, 3, 5)
    for distance, share in ((2, "1/2"), (1, "1/5")):
        entropy = SeededEntropy(3)
        found = Counter(
            sparse_vector(amounts(rows), "8/5", entropy, candidates=CANDIDATES, most=MOST, kept="3/4", share=share, distance=distance).limit
            for _ in range(trials)
        )
        agrees(found, vector_law(rows, 1.6 / distance, share=float(Fraction(share))), trials)


@pytest.mark.parametrize(
    ("name", "rows"), [("prefixes", (1, 3, 3, 5)), *(("weighted ranges", rows) for rows in ((), (1, 3, 3, 5), (6,) * 9))]
)
def test_least_error_draws_the_stated_law(name, rows, ahead):
    low, high, weights = QUERIES[name]
    trials, entropy = 2500, SeededEntropy(23)

    def draw():
        return least_error(
            amounts(rows), "6/5", entropy, candidates=CANDIDATES, most=MOST, low=low, high=high, noise=NOISE, weights=weights
        ).limit

    agrees(Counter(draw() for _ in range(trials)), joint_law(rows, 1.2, low, high, NOISE, weights), trials)


@given(st.integers(1, 10**6), st.fractions(Fraction(1, 900), 50, max_denominator=997))
@settings(max_examples=100, deadline=None)
def test_scales_are_rounded_up_and_only_a_little(most, epsilon):
    scale = Fraction(*scale_up(most, epsilon))
    assert most / epsilon <= scale < most / epsilon + Fraction(1, 256)


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 6])
def test_every_draw_has_at_least_the_scale_of_its_proof(monkeypatch, distance):
    """Theorems V, R and J at epsilon 7/13, whose scales are no multiples of anything; distances of up to 3 rows, added or replaced."""
    asked = []

    def spy(numerator, denominator, count, entropy):
        asked.extend([Fraction(numerator, denominator)] * count)
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(threshold, "discrete_laplace", spy)
    monkeypatch.setattr(threshold_joint, "discrete_laplace", spy)
    epsilon, kept, share = Fraction(7, 13), Fraction(3, 4), Fraction(2, 5)
    low, high, weights = np.array([-1, 2, 3]), np.array([3, 6, 5]), np.array([2**20, 2**20 - 1, 2**19 + 7])
    rows = amounts((1, 3, 5, 6))

    def told(call, options):
        asked.clear()
        call(rows, epsilon, SeededEntropy(1), most=MOST, distance=distance, **options)
        return list(asked)

    def close(found, least):
        assert all(one <= other <= one + Fraction(1, 256) for one, other in zip(least, found, strict=True))

    one = distance / epsilon
    close(told(sparse_vector, {"candidates": CANDIDATES, "kept": kept, "share": share}), [3 * one / share, *[4 * one / (1 - share)] * 3])
    close(told(recursive, {"start": 1}), [one])
    # One row adds to the scores, in the mechanism's own unit, whole numbers: at least what it adds to the biases over that unit.
    most = max(sum(int(a) * (w - 1) for a, lo, hi in zip(weights, low, high, strict=True) if lo < w <= hi) for w in range(1, MOST + 1))
    found = told(least_error, {"candidates": CANDIDATES, "low": low, "high": high, "noise": NOISE, "weights": weights})
    assert most % (most // 4096) != 0
    close(found, [math.ceil(Fraction(most, most // 4096)) * one] * len(CANDIDATES))


def recursive_place(rows, start, most, beta):
    """i* of the definition, with the counts written out."""
    return next(i for i in itertools.count() if sum(w > min(most, math.floor(start * math.exp(i * beta))) for w in rows) <= i)


@given(st.lists(st.integers(0, 60), max_size=12), st.integers(0, 60), st.sampled_from([0.05, 0.3, 1.0]))
@settings(max_examples=150, deadline=None)
def test_recursive_place_moves_by_at_most_one(rows, more, beta):
    assert 0 <= recursive_place([*rows, more], 3, 60, beta) - recursive_place(rows, 3, 60, beta) <= 1


@pytest.fixture
def silent(monkeypatch):
    """No noise, and a record of the scales asked for."""
    scales = []

    def still(numerator, denominator, count, entropy):
        scales.append(Fraction(numerator, denominator))
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(threshold, "discrete_laplace", still)
    monkeypatch.setattr(threshold_joint, "discrete_laplace", still)
    return scales


@given(st.lists(st.integers(0, 60), max_size=40), st.sampled_from(["1/4", "1", "3"]), st.sampled_from([1, 2]))
@settings(max_examples=60, deadline=None)
def test_recursive_without_noise_is_the_definition(rows, epsilon, distance):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threshold, "discrete_laplace", lambda n, d, count, entropy: np.zeros(count, dtype=np.int64))
        found = recursive(amounts(rows), epsilon, SeededEntropy(1), start=3, most=60, distance=distance)
    beta = 0.4 * float(Fraction(epsilon)) / distance  # tied to the epsilon of this choice
    wanted = 3 * math.exp(min(0.5 + beta * recursive_place(rows, 3, 60, beta), math.log(20)))
    assert found.limit == min(60, math.ceil(wanted))


def test_recursive_noise_is_on_the_place_and_spreads_the_logarithm_by_beta(silent):
    rows = amounts([9] * 50)
    recursive(rows, "1/10", SeededEntropy(1), start=1, most=10**6)
    recursive(rows, "1/10", SeededEntropy(1), start=1, most=10**6, distance=4)
    assert silent == [10, 40]


def test_recursive_draws_the_stated_law(ahead):
    """The logarithm of the limit is beta (i* + Z) above the start: each of the likely places within 5 standard errors."""
    rows, trials, entropy, start = [one * 10**6 for one in (3, 9, 14, 30, 31, 55)], 3000, SeededEntropy(29), 3 * 10**6
    place = recursive_place(rows, start, 10**15, 0.4)
    assert place == 4
    draws = [recursive(amounts(rows), 1, entropy, start=start, most=10**15, margin=0).limit for _ in range(trials)]
    found = Counter(round(math.log(limit / start) / 0.4) - place for limit in draws)
    z, mass = laplace(1.0, 30)
    for shift, chance in zip(z, mass, strict=True):
        if trials * chance >= 10:
            assert abs(found[int(shift)] / trials - chance) <= 5 * math.sqrt(chance / trials)


def test_noise_of_the_sparse_vector_is_that_of_the_range_form(silent):
    sparse_vector(amounts([1, 2]), "1/100", SeededEntropy(1), candidates=CANDIDATES, most=MOST, kept="0.998")
    assert silent == [Fraction(499 * 200), Fraction(500 * 200)]  # in multiples of 1 / 500 of a row: r / e1 and 1 / e2
    silent.clear()
    sparse_vector(amounts([1, 2]), 1, SeededEntropy(1), candidates=CANDIDATES, most=MOST, kept="1/10", share="1/4", distance=3)
    assert silent == [Fraction(9 * 12), Fraction(10 * 4)]


def test_the_search_ends_at_the_public_bound(silent):
    """Erratum 12: an uncapped sequence runs on. All amounts at or beyond the bound, and nothing below it is enough."""
    for values in ([6] * 50, [10**15] * 50):
        assert sparse_vector(amounts(values), 1, SeededEntropy(1), candidates=CANDIDATES, most=MOST).limit == MOST
        assert recursive(amounts(values), 1, SeededEntropy(1), start=2, most=MOST).limit == MOST
    with pytest.raises(InputError, match="candidates must be increasing limits that end with the public upper bound, 6"):
        sparse_vector(amounts([1]), 1, SeededEntropy(1), candidates=(1, 2, 4), most=MOST)
    assert geometric_candidates(50_000, "1.2", 800_000)[-2:] == (770352, 800_000)


def test_recursive_never_leaves_the_public_range():
    entropy = SeededEntropy(5)
    limits = [recursive(amounts([5] * 9), "1/1000", entropy, start=2, most=MOST).limit for _ in range(300)]
    assert set(limits) >= {1, MOST}
    assert all(1 <= limit <= MOST for limit in limits)


def test_every_run_has_noise_of_its_own():
    entropy = Words(1)
    used = []
    for _ in range(3):
        before = entropy.given
        sparse_vector(amounts([1, 3]), 1, entropy, candidates=CANDIDATES, most=MOST)
        used.append(entropy.given - before)
    assert all(count > 0 for count in used)
    entropy = SeededEntropy(8)
    assert len({sparse_vector(amounts([1, 3]), 1, entropy, candidates=CANDIDATES, most=MOST).limit for _ in range(60)}) > 1


def test_what_is_spent_is_said():
    """Erratum 1: thresholds for each of m queries add up; the value carries what its own choice cost."""
    one = sparse_vector(amounts([1]), Fraction(1, 1000), SeededEntropy(1), candidates=CANDIDATES, most=MOST, distance=2)
    two = recursive(amounts([1]), "0.001", SeededEntropy(1), start=2, most=MOST)
    low, high, weights = QUERIES["prefixes"]
    three = least_error(
        amounts([1]), "0.001", SeededEntropy(1), candidates=CANDIDATES, most=MOST, low=low, high=high, noise=NOISE, weights=weights
    )
    assert {one.spent, two.spent, three.spent} == {Fraction(1, 1000)}
    assert [one.mechanism, two.mechanism, three.mechanism] == ["sparse vector", "recursive", "least error"]


@given(st.lists(st.integers(0, 40), max_size=25), st.lists(st.tuples(st.integers(-1, 40), st.integers(-1, 40)), min_size=1, max_size=5))
@settings(max_examples=80, deadline=None)
def test_biases_and_sensitivity_by_brute_force(rows, pairs):
    low, high = (np.array(ends) for ends in zip(*(sorted(pair) for pair in pairs), strict=True))
    limits, weights = (3, 10, 40), np.array([1 + 3 * (j % 2) for j in range(len(low))], dtype=object)
    wanted = [[sum(max(w - t, 0) for w in rows if lo < w <= hi) for lo, hi in pairs_of(low, high)] for t in limits]
    assert biases(np.sort(amounts(rows)), limits, low, high).tolist() == wanted
    added = [
        [sum(int(a) * max(w - t, 0) for a, (lo, hi) in zip(weights, pairs_of(low, high), strict=True) if lo < w <= hi) for t in limits]
        for w in range(41)
    ]
    assert sensitivity(limits, 40, low, high, weights) == max(map(max, added))


def pairs_of(low, high):
    return list(zip(low.tolist(), high.tolist(), strict=True))


def test_biases_of_large_amounts_are_exact():
    values = np.array([2**53 - 1 - i for i in range(5000)])[::-1].copy()
    ((found,),) = biases(values, [7], np.array([-1]), np.array([2**53 - 1])).tolist()
    assert found == sum(int(v) - 7 for v in values)


def test_large_weights_are_scored_on_a_grid(silent):
    """The same choice with weights a million times larger; the scale stays short."""
    low, high, weights = QUERIES["prefixes"]
    rows = amounts([5] * 7 + [1] * 3)

    def choose(times):
        return least_error(
            rows, 1, SeededEntropy(1), candidates=CANDIDATES, most=MOST, low=low, high=high, noise=NOISE, weights=weights * times
        ).limit

    assert choose(1) == choose(10**6) == 4
    assert 2**12 <= silent[1] <= 2**12 + 8


def test_a_bias_that_cannot_be_costs_no_draw(silent):
    low, high = np.array([-1]), np.array([1])
    found = least_error(amounts([1, 1]), 1, SeededEntropy(1), candidates=CANDIDATES, most=MOST, low=low, high=high, noise=NOISE[:, :1])
    assert (found.limit, silent) == (1, [])


@pytest.mark.parametrize("seed", [1, 2])
def test_no_row_makes_them_fail(seed):
    values = np.array([-(2**63), 2**63 - 1, 0, 5] * 3)
    low, high, weights = QUERIES["prefixes"]
    common = {"candidates": CANDIDATES, "most": MOST}
    for found in (
        sparse_vector(values, 1, SeededEntropy(seed), **common),
        recursive(values, 1, SeededEntropy(seed), start=1, most=MOST),
        least_error(values, 1, SeededEntropy(seed), low=low, high=high, noise=NOISE, weights=weights, **common),
    ):
        assert 1 <= found.limit <= MOST
    assert read_amounts(values, 6).tolist() == [0] * 6 + [5] * 3 + [6] * 3
    assert above(np.array([1, 5, 5]), np.array([0, 5])).tolist() == [3, 0]


def _joint(**changes):
    low, high, weights = QUERIES["prefixes"]
    given = {"candidates": CANDIDATES, "most": MOST, "low": low, "high": high, "noise": NOISE, "weights": weights, **changes}
    return least_error(amounts([1]), 1, SeededEntropy(1), **given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sparse_vector(np.array([1.0]), 1, SeededEntropy(1), candidates=(1,), most=1), "The amounts must be an int64 array"),
        (lambda: sparse_vector([1], 1, SeededEntropy(1), candidates=(1,), most=1), "one entry a row; got 'list'"),
        (lambda: sparse_vector(amounts([1]), 0, SeededEntropy(1), candidates=(1,), most=1), "epsilon must be a number above 0"),
        (lambda: sparse_vector(amounts([1]), 1, SeededEntropy(1), candidates=(2, 1), most=2), "candidates must be increasing"),
        (lambda: sparse_vector(amounts([1]), 1, SeededEntropy(1), candidates=(1,), most=1, kept=1), "kept must be a fraction between"),
        (lambda: sparse_vector(amounts([1]), 1, SeededEntropy(1), candidates=(1,), most=1, share=1), "share must be a number between"),
        (lambda: sparse_vector(amounts([1]), 1, SeededEntropy(1), candidates=(1,), most=1, distance=0), "distance must be a whole number"),
        (lambda: recursive(amounts([1]), 1, SeededEntropy(1), start=3, most=2), "start must be a whole number from 1 to 2"),
        (lambda: recursive(amounts([1]), 1, SeededEntropy(1), start=1, most=2, margin=-1), "margin must be a number of at least 0"),
        (lambda: recursive(amounts([1]), "1e-9", SeededEntropy(1), start=1, most=2**40), "step must be larger: more than 2\\^22 steps"),
        (lambda: geometric_candidates(1, 1, 9), "ratio must be a number above 1"),
        (lambda: scale_up(2**30, Fraction(1, 2**30)), "epsilon must be larger: noise of 1.2e\\+18 is beyond exact arithmetic"),
        (lambda: _joint(noise=NOISE[:2]), "noise must be finite numbers of at least 0, shape \\(4, 3\\)"),
        (lambda: _joint(noise=-NOISE), "noise must be finite numbers of at least 0"),
        (lambda: _joint(weights=np.array([1, 1, 2**21])), "weights must be whole numbers from 0 to 2\\^20; got '1 to 2097152'"),
        (lambda: _joint(weights=np.ones(3)), "weights must be an int64 array of shape \\(3,\\)"),
        (lambda: _joint(high=np.array([2, 4, 7])), "-1 <= low <= high <= 6"),
        (lambda: _joint(low=np.array([-1.0])), "low must be an int64 array with one entry a query"),
    ],
)
def test_guards(call, message):
    with pytest.raises(InputError, match=message):
        call()
