"""Private thresholds: exact output probabilities and published errors."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from experiments.selections import threshold, threshold_joint
from experiments.selections.threshold import (
    geometric_candidates,
    recursive,
    scale_up,
    sparse_vector,
)
from experiments.selections.threshold_joint import biases, least_error, sensitivity
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy
from mechanisms.remembered import draw_ahead

CANDIDATES = (1, 2, 4, 6)
MOST = 6
# All multisets of up to three amounts, and with each one row more.
DATA = [
    rows
    for size in range(4)
    for rows in itertools.combinations_with_replacement((0, 1, 3, 5, 6), size)
]
PAIRS = [(rows, tuple(sorted((*rows, more)))) for rows in DATA for more in (0, 2, 3, 5, 6)]


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
    return np.where(
        values > 0,
        t ** np.maximum(values, 0) / (1 + t),
        1 - t ** np.maximum(1 - values, 1) / (1 + t),
    )


def vector_law(rows, epsilon, kept_share=Fraction(3, 4), damp=1.0):
    """Return the probabilities of sparse vector results; ``damp`` reduces the noise."""
    a, b = kept_share.as_integer_ratio()
    queries = [b * sum(w <= u for w in rows) - a * len(rows) for u in CANDIDATES[:-1]]
    bars, mass = laplace(damp * max(a, b - a) / (epsilon / 2), 400)
    scale = damp * b / (epsilon / 2)
    law, open_ = [], mass.copy()
    for query in queries:
        hit = at_least(scale, bars - query)
        law.append(float((open_ * hit).sum()))
        open_ = open_ * (1 - hit)
    return np.array([*law, float(open_.sum())])


def joint_law(rows, epsilon, low, high, damp=1.0):
    """Exact probabilities of the least error's results."""
    scores = []
    for place, limit in enumerate(CANDIDATES):
        cut = [
            sum(max(w - limit, 0) for w in rows if lo < w <= hi)
            for lo, hi in zip(low, high, strict=True)
        ]
        scores.append(
            sum(math.isqrt(c * c + int(s) ** 2) for c, s in zip(cut, NOISE[place], strict=True))
        )
    most = max(
        sum(max(w - CANDIDATES[0], 0) for lo, hi in zip(low, high, strict=True) if lo < w <= hi)
        for w in range(MOST + 1)
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
    "prefixes": (np.array([-1, -1, -1]), np.array([2, 4, 6])),
    "ranges": (np.array([-1, 2, 3]), np.array([3, 6, 5])),
}
NOISE = np.array([[2.0, 2, 2], [3, 3, 4], [5, 5, 6], [5, 7, 9]])


def worst(law):
    return max(np.abs(np.log(law(rows) / law(neighbour))).max() for rows, neighbour in PAIRS)


@pytest.mark.parametrize(
    ("law", "epsilon", "more"),
    [
        (vector_law, 0.8, (Fraction(3, 4),)),
        (vector_law, 0.8, (Fraction(1, 5),)),
        *((joint_law, 1.2, ends) for ends in QUERIES.values()),
    ],
)
def test_choices_are_private_by_enumeration(law, epsilon, more):
    """Neighbours differ by one row, as the number of rows is private too."""
    assert worst(lambda rows: law(rows, epsilon, *more)) <= epsilon + 1e-9
    assert worst(lambda rows: law(rows, epsilon, *more, damp=0.3)) > epsilon


@pytest.fixture
def ahead(monkeypatch):
    """Noise of many calls is drawn together."""
    draw_ahead(monkeypatch, threshold, threshold_joint)


def agrees(draw, law, trials=2500):
    """Check that frequencies are within 5 standard errors (false alarm below 1e-5)."""
    frequencies = Counter(draw() for _ in range(trials))
    for limit, chance in zip(CANDIDATES, law, strict=True):
        assert (
            abs(frequencies[limit] / trials - chance)
            <= 5 * math.sqrt(chance * (1 - chance) / trials) + 1e-9
        )


@pytest.mark.parametrize("rows", [(), (1, 3, 3, 5), (6,) * 9, (0,) * 12])
def test_sparse_vector_draws_the_stated_law(rows, ahead):
    entropy, epsilon = SeededEntropy(17), Fraction(4, 5)
    agrees(
        lambda: sparse_vector(amounts(rows), epsilon, entropy, CANDIDATES, Fraction(3, 4)),
        vector_law(rows, 0.8),
    )


@pytest.mark.parametrize(
    ("name", "rows"),
    [("prefixes", (1, 3, 3, 5)), *(("ranges", rows) for rows in ((), (1, 3, 3, 5), (6,) * 9))],
)
def test_least_error_draws_the_stated_law(name, rows, ahead):
    entropy = SeededEntropy(23)
    law = joint_law(rows, 1.2, *QUERIES[name])
    agrees(
        lambda: least_error(
            amounts(rows), Fraction(6, 5), entropy, CANDIDATES, *QUERIES[name], NOISE
        ),
        law,
    )


@given(st.integers(1, 10**6), st.fractions(Fraction(1, 900), 50, max_denominator=997))
@settings(max_examples=100, deadline=None)
def test_scales_are_rounded_up_and_only_a_little(most, epsilon):
    scale = Fraction(*scale_up(most, epsilon))
    assert most / epsilon <= scale < most / epsilon + Fraction(1, 256)


@pytest.fixture
def scales(monkeypatch):
    """No noise; the scales that were asked for."""
    requested_scales = []

    def still(numerator, denominator, count, entropy):
        requested_scales.extend([Fraction(numerator, denominator)] * count)
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(threshold, "discrete_laplace", still)
    monkeypatch.setattr(threshold_joint, "discrete_laplace", still)
    return requested_scales


def test_threshold_noise_has_the_scale_of_its_proof(scales):
    """Theorems V, R and J hold at epsilon 7/13, whose scales must be rounded up."""
    epsilon, rows = Fraction(7, 13), amounts((1, 3, 5, 6))

    def requested_scales(call, *more):
        scales.clear()
        call(rows, epsilon, SeededEntropy(1), *more)
        return scales

    def close(values, least):
        assert all(
            one <= other <= one + Fraction(1, 256) for one, other in zip(least, values, strict=True)
        )

    close(
        requested_scales(sparse_vector, CANDIDATES, Fraction(3, 4)),
        [3 / (epsilon / 2), *[4 / (epsilon / 2)] * 3],
    )
    close(
        requested_scales(sparse_vector, CANDIDATES, Fraction(1, 5)),
        [4 / (epsilon / 2), *[5 / (epsilon / 2)] * 3],
    )
    close(requested_scales(recursive, 1, MOST), [1 / epsilon])
    limits, low, high = (10, 9000, 10**6), np.array([-1, -1, 5]), np.array([10**6, 7, 3000])
    # A row changes one query by the largest amount, or two queries by amounts up to 3000.
    most = max(10**6 - 10, 2 * (3000 - 10))
    assert most % (most // 4096) != 0
    close(
        requested_scales(least_error, limits, low, high, np.ones((3, 3))),
        [math.ceil(Fraction(most, most // 4096)) / epsilon] * 3,
    )


def recursive_index(rows, start, most, beta):
    """i* of the definition, with the counts written out."""
    return next(
        i
        for i in itertools.count()
        if sum(w > min(most, math.floor(start * math.exp(i * beta))) for w in rows) <= i
    )


@given(
    st.lists(st.integers(0, 60), max_size=12), st.integers(0, 60), st.sampled_from([0.05, 0.3, 1.0])
)
@settings(max_examples=150, deadline=None)
def test_recursive_mechanism_index_moves_by_at_most_one(rows, more, beta):
    assert (
        0 <= recursive_index([*rows, more], 3, 60, beta) - recursive_index(rows, 3, 60, beta) <= 1
    )


@given(st.lists(st.integers(0, 60), max_size=40), st.sampled_from(["1/4", "1", "3"]))
@settings(max_examples=60, deadline=None)
def test_recursive_without_noise_is_the_definition(rows, epsilon):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            threshold,
            "discrete_laplace",
            lambda n, d, count, entropy: np.zeros(count, dtype=np.int64),
        )
        limit = recursive(amounts(rows), Fraction(epsilon), SeededEntropy(1), start=3, most=60)
    beta = 0.4 * float(Fraction(epsilon))  # tied to the epsilon of this choice
    wanted = 3 * math.exp(min(0.5 + beta * recursive_index(rows, 3, 60, beta), math.log(20)))
    assert limit == min(60, math.ceil(wanted))


def test_recursive_draws_the_stated_law(ahead):
    """Frequencies of likely results are within 5 standard errors of the law."""
    rows, trials, entropy, start = (
        [millions * 10**6 for millions in (3, 9, 14, 30, 31, 55)],
        3000,
        SeededEntropy(29),
        3 * 10**6,
    )
    index = recursive_index(rows, start, 10**15, 0.4)
    assert index == 4
    draws = [
        recursive(amounts(rows), Fraction(1), entropy, start=start, most=10**15)
        for _ in range(trials)
    ]
    frequencies = Counter(round((math.log(limit / start) - 0.5) / 0.4) - index for limit in draws)
    z, mass = laplace(1.0, 30)
    for shift, chance in zip(z, mass, strict=True):
        if trials * chance >= 10:
            assert abs(frequencies[int(shift)] / trials - chance) <= 5 * math.sqrt(chance / trials)


def test_searches_end_within_the_public_range(scales):
    """Searches stop at the bound where no smaller limit is enough (erratum 12)."""
    for values in (amounts([6] * 50), amounts([10**15] * 50)):
        assert sparse_vector(values, Fraction(1), SeededEntropy(1), CANDIDATES) == MOST
        assert recursive(values, Fraction(1), SeededEntropy(1), start=2, most=MOST) == MOST
    assert geometric_candidates(50_000, "1.2", 800_000)[-2:] == (770352, 800_000)


def test_recursive_never_leaves_the_public_range():
    entropy = SeededEntropy(5)
    limits = [
        recursive(amounts([5] * 9), Fraction(1, 1000), entropy, start=2, most=MOST)
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
    low, high, limits = *np.array(ends).T, (3, 10, 40)
    wanted = [[sum(max(w - t, 0) for w in rows if lo < w <= hi) for lo, hi in ends] for t in limits]
    assert biases(np.sort(amounts(rows)), limits, low, high).tolist() == wanted
    assert sensitivity(limits, low, high) == max(
        sum(max(w - 3, 0) for lo, hi in ends if lo < w <= hi) for w in range(41)
    )


def test_biases_of_large_amounts_are_exact():
    values = np.array([2**53 - 1 - i for i in range(5000)])[::-1].copy()
    ((bias,),) = biases(values, [7], np.array([-1]), np.array([2**53 - 1])).tolist()
    assert bias == sum(int(v) - 7 for v in values)


def test_a_bias_that_cannot_be_costs_no_draw(scales):
    assert (
        least_error(
            amounts([1, 1]),
            Fraction(1),
            SeededEntropy(1),
            CANDIDATES,
            np.array([-1]),
            np.array([1]),
            NOISE[:, :1],
        )
        == 1
    )
    assert scales == []


def test_no_row_makes_thresholds_fail():
    values = np.array([-(2**63), 2**63 - 1, 0, 5] * 3)
    for limit in (
        sparse_vector(values, Fraction(1), SeededEntropy(1), CANDIDATES),
        recursive(values, Fraction(1), SeededEntropy(1), start=1, most=MOST),
        least_error(values, Fraction(1), SeededEntropy(1), CANDIDATES, *QUERIES["prefixes"], NOISE),
    ):
        assert 1 <= limit <= MOST


def test_threshold_refuses_inexact_noise_and_searches():
    with pytest.raises(InputError, match=r"epsilon must be larger: more than 2\^22 steps"):
        recursive(amounts([1]), Fraction(1, 10**9), SeededEntropy(1), start=1, most=2**40)
    with pytest.raises(
        InputError, match=r"epsilon must be larger: noise of 1.2e\+18 is beyond exact arithmetic"
    ):
        scale_up(2**30, Fraction(1, 2**30))
