"""Private thresholds: exact output probabilities and published errors."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.selections import threshold, threshold_joint
from experiments.selections.threshold import (
    geometric_candidates,
    recursive,
    scale_up,
    sparse_vector,
)
from experiments.selections.threshold_joint import biases, least_error, sensitivity
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy
from mechanisms.remembered import draw_ahead

CANDIDATES = (1, 2, 4, 6)
MOST = 6
# All multisets of up to three amounts. `PAIRS` adds a row to each of them.
DATA = [
    rows
    for size in range(4)
    for rows in itertools.combinations_with_replacement((0, 1, 3, 5, 6), size)
]
PAIRS = [(rows, tuple(sorted((*rows, added)))) for rows in DATA for added in (0, 2, 3, 5, 6)]
QUERIES = {
    "prefixes": (np.array([-1, -1, -1]), np.array([2, 4, 6])),
    "ranges": (np.array([-1, 2, 3]), np.array([3, 6, 5])),
}
NOISE = np.array([[2.0, 2, 2], [3, 3, 4], [5, 5, 6], [5, 7, 9]])


def amounts(rows):
    return np.array(rows, dtype=np.int64)


def laplace(scale, reach):
    """Return values from -reach to reach, and their probabilities as discrete Laplace noise."""
    z = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(z) / scale)
    return z, mass / (2 / (1 - math.exp(-1 / scale)) - 1)


def at_least(scale, values):
    """Return P(Z >= value) for discrete Laplace noise Z and integer values."""
    t = math.exp(-1 / scale)
    return np.where(
        values > 0,
        t ** np.maximum(values, 0) / (1 + t),
        1 - t ** np.maximum(1 - values, 1) / (1 + t),
    )


def sparse_vector_probabilities(rows, epsilon, kept_share=Fraction(3, 4), damp=1.0):
    """Return the probability of each candidate; ``damp`` reduces the noise."""
    a, b = kept_share.as_integer_ratio()
    queries = [b * sum(w <= u for w in rows) - a * len(rows) for u in CANDIDATES[:-1]]
    bars, mass = laplace(damp * max(a, b - a) / (epsilon / 2), 400)
    scale = damp * b / (epsilon / 2)
    probabilities = []
    remaining = mass.copy()
    for query in queries:
        stops = at_least(scale, bars - query)
        probabilities.append(float((remaining * stops).sum()))
        remaining = remaining * (1 - stops)
    return np.array([*probabilities, float(remaining.sum())])


def cut_by(limit, rows, low, high):
    """Return how much of the amounts above a limit is cut from each query's range of rows."""
    return [
        sum(max(w - limit, 0) for w in rows if lo < w <= hi)
        for lo, hi in zip(low, high, strict=True)
    ]


def least_error_probabilities(rows, epsilon, low, high, damp=1.0):
    """Return the probability of each candidate; ``damp`` reduces the noise."""
    scores = []
    for limit, noise in zip(CANDIDATES, NOISE, strict=True):
        cut = cut_by(limit, rows, low, high)
        errors = [math.isqrt(c * c + int(s) ** 2) for c, s in zip(cut, noise, strict=True)]
        scores.append(sum(errors))
    most = max(sum(cut_by(CANDIDATES[0], [w], low, high)) for w in range(MOST + 1))
    return probabilities_of_least(scores, damp * most / epsilon)


def probabilities_of_least(scores, scale):
    """Return the probability that each score less the absolute value of its noise is the least.

    The first of equal ones is chosen.
    """
    z, mass = laplace(scale, 2000)
    half = np.where(z == 0, mass, 2 * mass)[z >= 0]
    below = np.concatenate([[0.0], np.cumsum(half)])  # P(|Z| < i)
    probabilities = []
    for place, score in enumerate(scores):
        probability = half.copy()
        for other_place, other_score in enumerate(scores):
            if other_place == place:
                continue
            # The other score less its noise is larger, or equal and later in the list.
            bound = other_score - score + np.arange(len(half)) + (other_place > place)
            probability = probability * below[np.clip(bound, 0, len(below) - 1)]
        probabilities.append(float(probability.sum()))
    return np.array(probabilities)


def largest_loss(law):
    """Return the largest absolute privacy loss of all neighbours and results."""
    return max(np.abs(np.log(law(rows) / law(neighbour))).max() for rows, neighbour in PAIRS)


@pytest.mark.parametrize(
    ("law", "epsilon", "arguments"),
    [
        (sparse_vector_probabilities, 0.8, (Fraction(3, 4),)),
        (sparse_vector_probabilities, 0.8, (Fraction(1, 5),)),
        *((least_error_probabilities, 1.2, ends) for ends in QUERIES.values()),
    ],
)
def test_choices_are_private_by_enumeration(law, epsilon, arguments):
    """Neighbours differ by one row, as the number of rows is private too."""
    assert largest_loss(lambda rows: law(rows, epsilon, *arguments)) <= epsilon + 1e-9
    assert largest_loss(lambda rows: law(rows, epsilon, *arguments, damp=0.3)) > epsilon


@pytest.fixture
def ahead(monkeypatch):
    """Draw the noise of many calls together."""
    draw_ahead(monkeypatch, threshold, threshold_joint)


def assert_follows(draw, law, trials=2500):
    """Check that frequencies are within 5 standard errors (false alarm below 1e-5)."""
    results = Counter(draw() for _ in range(trials))
    for limit, probability in zip(CANDIDATES, law, strict=True):
        std_error = math.sqrt(probability * (1 - probability) / trials)
        assert abs(results[limit] / trials - probability) <= 5 * std_error + 1e-9


@pytest.mark.parametrize("rows", [(), (1, 3, 3, 5), (6,) * 9, (0,) * 12])
def test_sparse_vector_draws_the_stated_law(rows, ahead):
    entropy = SeededEntropy(17)
    epsilon = Fraction(4, 5)

    def draw():
        return sparse_vector(amounts(rows), epsilon, entropy, CANDIDATES, Fraction(3, 4))

    assert_follows(draw, sparse_vector_probabilities(rows, 0.8))


@pytest.mark.parametrize(
    ("name", "rows"),
    [("prefixes", (1, 3, 3, 5)), *(("ranges", rows) for rows in ((), (1, 3, 3, 5), (6,) * 9))],
)
def test_least_error_draws_the_stated_law(name, rows, ahead):
    entropy = SeededEntropy(23)
    epsilon = Fraction(6, 5)

    def draw():
        return least_error(amounts(rows), epsilon, entropy, CANDIDATES, *QUERIES[name], NOISE)

    assert_follows(draw, least_error_probabilities(rows, 1.2, *QUERIES[name]))


@given(st.integers(1, 10**6), st.fractions(Fraction(1, 900), 50, max_denominator=997))
@settings(max_examples=100, deadline=None)
def test_scales_are_rounded_up_and_only_a_little(most, epsilon):
    scale = Fraction(*scale_up(most, epsilon))
    assert most / epsilon <= scale < most / epsilon + Fraction(1, 256)


@pytest.fixture
def scales(monkeypatch):
    """Draw no noise; return the list of requested scales."""
    requested = []

    def no_noise(numerator, denominator, count, entropy):
        requested.extend([Fraction(numerator, denominator)] * count)
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(threshold, "discrete_laplace", no_noise)
    monkeypatch.setattr(threshold_joint, "discrete_laplace", no_noise)
    return requested


EPSILON = Fraction(7, 13)  # its scales must be rounded up


def assert_scales_rounded_up(scales, exact_scales):
    """Check that each scale is the exact one, rounded up by at most 1/256."""
    for scale, exact in zip(scales, exact_scales, strict=True):
        assert exact <= scale <= exact + Fraction(1, 256)


@pytest.mark.parametrize(
    ("kept_share", "factors"),
    [(Fraction(3, 4), [3, 4, 4, 4]), (Fraction(1, 5), [4, 5, 5, 5])],
    ids=str,
)
def test_sparse_vector_noise_has_the_scale_of_its_proof(scales, kept_share, factors):
    """Theorem V of PROOFS-threshold.md: the bar gets half of epsilon, and the queries the rest."""
    sparse_vector(amounts((1, 3, 5, 6)), EPSILON, SeededEntropy(1), CANDIDATES, kept_share)
    assert_scales_rounded_up(scales, [factor / (EPSILON / 2) for factor in factors])


def test_recursive_noise_has_the_scale_of_its_proof(scales):
    """Theorem R of PROOFS-threshold.md.

    A row changes the index by at most 1, so the scale is 1 / epsilon.
    """
    recursive(amounts((1, 3, 5, 6)), EPSILON, SeededEntropy(1), 1, MOST)
    assert_scales_rounded_up(scales, [1 / EPSILON])


def test_least_error_noise_has_the_scale_of_its_proof(scales):
    """Theorem J of PROOFS-threshold.md.

    The scale is the largest rise of a predicted error by one row, divided by epsilon.
    """
    limits = (10, 9000, 10**6)
    low = np.array([-1, -1, 5])
    high = np.array([10**6, 7, 3000])
    least_error(
        amounts((1, 3, 5, 6)), EPSILON, SeededEntropy(1), limits, low, high, np.ones((3, 3))
    )
    # A row changes one query by the largest amount, or two queries by amounts up to 3000.
    most = max(10**6 - 10, 2 * (3000 - 10))
    assert most % (most // 4096) != 0
    sensitivity_in_steps = math.ceil(Fraction(most, most // 4096))
    assert_scales_rounded_up(scales, [sensitivity_in_steps / EPSILON] * 3)


def recursive_index(rows, start, most, beta):
    """Return the least i such that at most i rows are above the limit of step i."""
    for i in itertools.count():
        limit = min(most, math.floor(start * math.exp(i * beta)))
        if sum(w > limit for w in rows) <= i:
            return i
    raise AssertionError("no rows are above the largest limit")


@given(
    st.lists(st.integers(0, 60), max_size=12), st.integers(0, 60), st.sampled_from([0.05, 0.3, 1.0])
)
@settings(max_examples=150, deadline=None)
def test_recursive_mechanism_index_moves_by_at_most_one(rows, added, beta):
    index = recursive_index(rows, 3, 60, beta)
    assert 0 <= recursive_index([*rows, added], 3, 60, beta) - index <= 1


@given(st.lists(st.integers(0, 60), max_size=40), st.sampled_from(["1/4", "1", "3"]))
@settings(max_examples=60, deadline=None)
def test_recursive_without_noise_is_the_definition(rows, epsilon):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            threshold,
            "discrete_laplace",
            lambda n, d, count, entropy: np.zeros(count, dtype=np.int64),
        )
        limit = recursive(amounts(rows), Fraction(epsilon), SeededEntropy(1), start=3, maximum=60)
    beta = 0.4 * float(Fraction(epsilon))  # the mechanism's ratio of beta to epsilon
    exponent = min(0.5 + beta * recursive_index(rows, 3, 60, beta), math.log(20))
    assert limit == min(60, math.ceil(3 * math.exp(exponent)))


def test_recursive_draws_the_stated_law(ahead):
    """Frequencies of likely results are within 5 standard errors of the law."""
    rows = [millions * 10**6 for millions in (3, 9, 14, 30, 31, 55)]
    trials = 3000
    entropy = SeededEntropy(29)
    start = 3 * 10**6
    index = recursive_index(rows, start, 10**15, 0.4)
    assert index == 4
    draws = [
        recursive(amounts(rows), Fraction(1), entropy, start=start, maximum=10**15)
        for _ in range(trials)
    ]
    shifts = Counter(round((math.log(limit / start) - 0.5) / 0.4) - index for limit in draws)
    for shift, probability in zip(*laplace(1.0, 30), strict=True):
        if trials * probability >= 10:
            difference = abs(shifts[int(shift)] / trials - probability)
            assert difference <= 5 * math.sqrt(probability / trials)


def test_searches_end_within_the_public_range(scales):
    """Searches stop at the bound where no smaller limit is enough (erratum 12)."""
    for values in (amounts([6] * 50), amounts([10**15] * 50)):
        assert sparse_vector(values, Fraction(1), SeededEntropy(1), CANDIDATES) == MOST
        assert recursive(values, Fraction(1), SeededEntropy(1), start=2, maximum=MOST) == MOST
    assert geometric_candidates(50_000, "1.2", 800_000)[-2:] == (770352, 800_000)


def test_recursive_never_leaves_the_public_range():
    entropy = SeededEntropy(5)
    limits = [
        recursive(amounts([5] * 9), Fraction(1, 1000), entropy, start=2, maximum=MOST)
        for _ in range(300)
    ]
    assert set(limits) >= {1, MOST}
    assert all(1 <= limit <= MOST for limit in limits)


@given(
    st.lists(st.integers(0, 40), max_size=25),
    st.lists(st.tuples(st.integers(-1, 40), st.integers(-1, 40)), min_size=1, max_size=5),
)
@settings(max_examples=80, deadline=None)
def test_biases_and_sensitivity_by_brute_force(rows, pairs):
    ends = [sorted(pair) for pair in pairs]
    low, high = np.array(ends).T
    limits = (3, 10, 40)
    expected = [cut_by(limit, rows, low, high) for limit in limits]
    assert biases(np.sort(amounts(rows)), limits, low, high).tolist() == expected
    assert sensitivity(limits, low, high) == max(sum(cut_by(3, [w], low, high)) for w in range(41))


def test_biases_of_large_amounts_are_exact():
    values = np.array([2**53 - 1 - i for i in range(5000)])[::-1].copy()
    ((bias,),) = biases(values, [7], np.array([-1]), np.array([2**53 - 1])).tolist()
    assert bias == sum(int(v) - 7 for v in values)


def test_a_bias_that_cannot_be_costs_no_draw(scales):
    low = np.array([-1])
    high = np.array([1])
    limit = least_error(
        amounts([1, 1]), Fraction(1), SeededEntropy(1), CANDIDATES, low, high, NOISE[:, :1]
    )
    assert limit == 1
    assert scales == []


def test_no_row_makes_thresholds_fail():
    values = np.array([-(2**63), 2**63 - 1, 0, 5] * 3)
    for limit in (
        sparse_vector(values, Fraction(1), SeededEntropy(1), CANDIDATES),
        recursive(values, Fraction(1), SeededEntropy(1), start=1, maximum=MOST),
        least_error(values, Fraction(1), SeededEntropy(1), CANDIDATES, *QUERIES["prefixes"], NOISE),
    ):
        assert 1 <= limit <= MOST


def test_threshold_refuses_inexact_noise_and_searches():
    with pytest.raises(InputError, match=r"epsilon must be larger: more than 2\^22 steps"):
        recursive(amounts([1]), Fraction(1, 10**9), SeededEntropy(1), start=1, maximum=2**40)
    with pytest.raises(
        InputError, match=r"epsilon must be larger: noise of 1.2e\+18 is beyond exact arithmetic"
    ):
        scale_up(2**30, Fraction(1, 2**30))
