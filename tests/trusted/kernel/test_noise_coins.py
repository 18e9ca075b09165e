"""Coins, uniform integers and raw bits: by enumeration, at ties, and by frequency."""

import itertools
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from leastnoise._trusted.kernel import SeededEntropy, _sampling
from leastnoise._trusted.kernel._sampling import LazyReals, Ratios, coin_exp, toss_exp
from trusted.kernel.noise_oracle import ALARM, TOP, Script, scalar, u64

RATIOS = [
    (0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (255, 256), (1, 257), (7, 1000), (2**56 - 2, 2**56 - 1),
    (1, 2**56 - 1), (12345678901, 98765432109),
]  # fmt: skip


@pytest.mark.parametrize(("p", "q"), RATIOS)
def test_ratio_coins_by_enumeration_of_the_first_byte(p, q):
    """Try all first bytes; a tie is followed by a byte for heads (0) or tails (255)."""
    coins = Ratios(numerators=scalar(p), denominators=scalar(q))
    digit = 256 * p // q
    first_bytes = np.frombuffer(bytes(range(256)), dtype=np.uint64).tolist()
    high = coins.toss(np.arange(256), Script([*first_bytes, *[TOP - 1] * 40], then=1))
    assert int(high.sum()) in {digit, digit + 1}
    np.testing.assert_array_equal(high[:digit], True)
    np.testing.assert_array_equal(high[digit + 1 :], False)


@pytest.mark.parametrize(("p", "q"), RATIOS[2:])
@pytest.mark.parametrize("depth", [1, 2, 3, 9])
def test_ratio_coins_on_ties_go_on_with_the_next_digit(p, q, depth):
    digits = [256**n * p // q % 256 for n in range(1, depth + 2)]
    coins = Ratios(numerators=u64(5, p), denominators=u64(7, q))
    for last, heads in ((digits[-1] - 1, True), (digits[-1] + 1, False)):
        if 0 <= last <= 255:
            script = Script([*digits[:-1], last], then=None)
            assert coins.toss(np.array([1]), script).tolist() == [heads]
            assert not script.left


def test_tied_coins_continue_with_own_digits():
    # In base 256, all digits of 1/3 are 85, and all digits of 2/3 are 170.
    thirds = Ratios(numerators=u64(1, 2), denominators=u64(3, 3))
    random_bytes = bytes([84, 170, 85, 170, *[0] * 4, 169, 86, 171, *[0] * 5])
    script = Script(np.frombuffer(random_bytes, dtype=np.uint64).tolist(), then=None)
    assert thirds.toss(np.array([0, 1, 0, 1]), script).tolist() == [True, True, False, False]
    x = LazyReals(leading=u64(0xFF << 56, 0xAB << 56 | 8))
    assert x.toss(
        np.array([0, 1, 1]), Script([0xAB_AB_FE, 9 << 8, 7 << 8], then=None)
    ).tolist() == [True, False, True]


def test_lazy_reals_compare_digit_by_digit():
    leading = 0xAB12_0000_0000_0042
    for byte, heads in ((0xAA, True), (0xAC, False)):
        assert LazyReals(leading=u64(0, leading)).toss(
            np.array([1]), Script([byte], then=None)
        ).tolist() == [heads]

    later_bits = (leading & (2**56 - 1)) << 8
    for change, heads in ((-256, True), (256, False)):
        assert LazyReals(leading=u64(0, leading)).toss(
            np.array([1]), Script([0xAB, later_bits + change], then=None)
        ).tolist() == [heads]

    # After a tie of 64 digits, u and x take new words in turn.
    x = LazyReals(leading=u64(0, leading))
    assert x.toss(np.array([1]), Script([0xAB, later_bits, 10, 11], then=None)).tolist() == [True]
    assert x.word(1, 1, Script([], then=None)) == 11  # remembered, not drawn again
    assert x.toss(np.array([1]), Script([0xAB, later_bits, 12], then=None)).tolist() == [False]
    # This is a tie of 128 digits.
    assert x.toss(np.array([1]), Script([0xAB, later_bits, 11, 7, 8], then=None)).tolist() == [True]
    assert [x.word(1, n, Script([], then=None)) for n in range(3)] == [leading, 11, 8]
    assert x.word(0, 2, Script([1, 2], then=None)) == 2


class Fork(Exception):
    """A choice among outcomes with probabilities that the path leaves open."""

    def __init__(self, options):
        self.options = options


def exact_probabilities(program, depth):
    """Return exact probabilities of a random program's results along every path.

    The probability of the paths that are cut at the depth is returned too.
    """
    results = Counter()
    left_open = Fraction(0)
    paths = [((), Fraction(1))]
    while paths:
        path, probability = paths.pop()
        decisions = list(path)

        def choose(options, decisions=decisions):
            if not decisions:
                raise Fork(options)
            return decisions.pop(0)

        try:
            results[program(choose)] += probability
        except Fork as fork:
            if len(path) == depth:
                left_open += probability
            else:
                paths += [
                    ((*path, outcome), probability * chance)
                    for outcome, chance in fork.options
                    if chance
                ]
    return results, left_open


@pytest.mark.parametrize(
    ("linear", "square", "slots", "x"),
    [
        (1, False, 1, Fraction(1)),
        (1, False, 8, Fraction(2, 3)),
        (0, True, 2, Fraction(3, 5)),
        (14, True, 128, Fraction(1, 7)),
        (126, True, 128, Fraction(8, 9)),
    ],
)
def test_exponential_coins_by_exact_enumeration(monkeypatch, linear, square, slots, x):
    """Exact weights of all inner coins enclose exp(-g) up to g^n/n!."""
    tail = slots - linear - square

    def one_byte(count, choose):  # what chooses stands in the place of the entropy
        assert count == 1
        options = [
            (0, Fraction(linear, slots)),
            (linear, Fraction(int(square), slots)),
            (slots - 1, Fraction(tail, slots)),
        ]
        return np.array([choose(options)], dtype=np.uint8)

    class Exactly:
        def __init__(self, numerators, denominators):
            self.x = Fraction(int(numerators), int(denominators))

        def toss(self, index, choose):
            return np.array(
                [choose([(True, self.x), (False, 1 - self.x)]) for _ in index], dtype=bool
            )

    monkeypatch.setattr(_sampling, "random_bytes", one_byte)
    monkeypatch.setattr(_sampling, "Ratios", Exactly)
    coins = Exactly(x.numerator, x.denominator)
    how = {"linear": scalar(linear), "square": square, "slots": slots}
    results, open_ = exact_probabilities(
        lambda choose: bool(toss_exp(coins, np.array([0]), choose, **how)[0]), depth=18
    )
    g = (linear * x + square * x * x) / slots
    with mpmath.workdps(40):
        exact = mpmath.exp(-mpmath.mpf(g.numerator) / g.denominator)
        heads, unknown = (
            mpmath.mpf(weight.numerator) / weight.denominator for weight in (results[True], open_)
        )
        assert heads <= exact <= heads + unknown
        assert unknown <= mpmath.mpf("0.002")

    assert sum(results.values()) + open_ == 1


@pytest.mark.parametrize(("square", "slots"), [(False, 8), (True, 16)])
def test_simultaneous_exponential_coins_have_own_terms(square, slots):
    count = 120_000
    index = np.random.default_rng(0).permutation(120_000)
    tenths = np.resize(u64(2, 5, 9), count)
    linear = np.resize(u64(0, 1, 3, 7), count)
    coins = Ratios(numerators=tenths, denominators=scalar(10))
    heads = toss_exp(coins, index, SeededEntropy(3), linear=linear, square=square, slots=slots)
    for n, times in itertools.product((2, 5, 9), (0, 1, 3, 7)):
        chosen = heads[(tenths[index] == n) & (linear == times)]
        x = n / 10
        assert (
            stats.binomtest(
                int(chosen.sum()), chosen.size, np.exp(-(times * x + square * x * x) / slots)
            ).pvalue
            > ALARM
        )


def test_coins_of_any_exponent():
    for numerator, denominator in ((0, 1), (1, 3), (1, 1), (8, 8), (5, 2), (49, 128)):
        source = SeededEntropy(numerator + 10)
        count = 1500
        heads = sum(coin_exp(numerator, denominator, source) for _ in range(count))
        assert stats.binomtest(heads, count, np.exp(-numerator / denominator)).pvalue > ALARM


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 100, 255, 256])
def test_uniform_integers_by_enumeration(bound):
    """Of all 65536 values of 16 bits, each residue is accepted equally often."""
    words = np.arange(1 << 16, dtype=np.uint16).view(np.uint64).tolist()
    values, accepted = _sampling.uniform_below(
        scalar(bound), 256, 1 << 16, Script(words, then=None)
    )
    counts = np.bincount(values[accepted].astype(np.int64))
    assert counts.size == bound
    assert (counts == counts[0]).all()
    assert accepted.mean() >= 255 / 256


@pytest.mark.parametrize(
    "bound", [257, 1000, 2**24 - 1, 2**24, 2**24 + 1, 10**12 + 39, 2**56 - 1, 2**56]
)
def test_uniform_integers_at_the_edge_of_rejection(bound):
    bits = 32 if bound <= 2**24 else 64
    accepted_below = (2**bits - 1) // bound * bound
    words = u64(0, bound - 1, bound, accepted_below - 1, accepted_below, 2**bits - 1)
    script = Script(
        (words.astype(np.uint32).view(np.uint64) if bits == 32 else words).tolist(), then=None
    )
    values, accepted = _sampling.uniform_below(scalar(bound), bound, 6, script)

    assert values[:4].tolist() == [0, bound - 1, 0, bound - 1]
    assert accepted.tolist() == [True, True, True, True, False, False]
    assert 2**bits - accepted_below <= 2**bits // 256


def test_signs_and_raw_bits_use_every_bit_once():
    words = SeededEntropy(0).words(4)
    raw = words.tobytes()
    assert _sampling.random_bytes(27, Script(words.tolist(), then=None)).tolist() == list(raw[:27])
    assert _sampling.random_uint16(13, Script(words.tolist(), then=None)).tobytes() == raw[:26]
    bits = "".join(f"{byte:08b}" for byte in raw)[:200]
    assert _sampling.random_signs(200, Script(words.tolist(), then=None)).tolist() == [
        bit == "1" for bit in bits
    ]
