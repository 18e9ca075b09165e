"""How samplers combine their parts: exact weights, doubtful roundings and tails."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from leastnoise._trusted.kernel import SeededEntropy, _noise
from leastnoise._trusted.kernel._sampling import LazyReals, geometric_table
from trusted.kernel.noise_oracle import ALARM, SAMPLERS, TOP, Script, cumulative, grid, u64, word_of


@pytest.fixture
def one_attempt(monkeypatch):
    """Return a function that runs one attempt of a sampler on enumerated parts.

    It returns the values, which of them are accepted, and the probability of its coins for each.
    """

    def run(law, p, q, *, k, negative, uniform=None, entropy=None):
        probability = np.ones(k.size)

        class Enumerated:
            def draw(self, count, entropy):
                return k.astype(np.uint64)

        def accept(coins, index, entropy, *, linear, square, slots):
            """Multiply by the exact probability that toss_exp accepts."""
            if isinstance(coins, LazyReals):
                x = coins.leading[index] / 2.0**64
            else:
                assert (coins.numerators[index] < coins.denominators).all()
                x = coins.numerators[index] / coins.denominators.astype(float)
            exponent = (np.broadcast_to(linear, index.shape) * x + square * x * x) / slots
            probability[index] *= np.exp(-exponent)
            return np.ones(index.size, dtype=bool)

        for table in ("geometric_table", "half_normal_table"):
            monkeypatch.setattr(_noise, table, lambda *_: Enumerated())
        monkeypatch.setattr(_noise, "toss_exp", accept)
        monkeypatch.setattr(_noise, "random_signs", lambda *_: negative.copy())
        if uniform is not None:
            draws = uniform.astype(np.uint64), np.ones(k.size, dtype=bool)
            monkeypatch.setattr(_noise, "uniform_below", lambda *_: draws)
        monkeypatch.setattr(
            _noise, "draw_in_blocks", lambda count, attempt: attempt(slice(0, count), count)
        )
        values, accepted = SAMPLERS[law](p, q, k.size, entropy or SeededEntropy(0))
        return values, accepted, probability

    return run


def assert_law(law, p, q, values, weight, atol):
    """Check that weighted values have the exact probabilities, up to three scales from 0."""
    reach = int(3 * p / q) + 2
    exact = np.diff(cumulative(law, p / q, np.arange(-reach - 1, reach + 1)))
    frequencies = [weight[values == z].sum() / weight.sum() for z in range(-reach, reach + 1)]
    assert frequencies == pytest.approx(exact, rel=1e-5, abs=atol)


@pytest.mark.parametrize(("p", "q"), [(1, 8), (3, 10), (1, 1), (3, 2), (7, 3)])
def test_composition_of_the_laplace(one_attempt, p, q):
    """Sum the exact weights of all (u, v, sign) that give z, up to the table's last cell."""
    u, v, negative = grid(np.arange(p), np.arange(128), [False, True])
    values, accepted, probability = one_attempt("laplace", p, q, k=v, uniform=u, negative=negative)
    np.testing.assert_allclose(probability, np.exp(-u / (8 * p)))
    assert_law("laplace", p, q, values, probability * np.exp(-v / 8) * accepted, atol=2e-7)


@pytest.mark.parametrize(("p", "q"), [(1, 8), (3, 10), (1, 1), (3, 2), (7, 3), (33, 1), (100, 3)])
def test_composition_of_the_discrete_gaussian(one_attempt, p, q):
    parts = 8 if p >= 32 * q else 1
    k, j, negative = grid(np.arange(8 * parts), np.arange(-(-p // (parts * q))), [False, True])
    values, accepted, probability = one_attempt("gaussian", p, q, k=k, uniform=j, negative=negative)

    assert_law(
        "gaussian",
        p,
        q,
        values,
        np.exp(-(k**2) / (2 * parts**2)) * probability * accepted,
        atol=1e-11,
    )


@pytest.mark.parametrize(("p", "q"), [(1, 8), (3, 10), (3, 2), (7, 3)])
def test_composition_of_the_rounded_gaussian(one_attempt, p, q):
    """Take x at midpoints of a fine grid, which integrates the density to about 1e-6."""
    steps = 4096
    k, x, negative = grid(np.arange(64), np.arange(steps), [False, True])
    words = ((2 * x + 1).astype(object) * 2**63 // steps).astype(np.uint64)
    values, accepted, probability = one_attempt(
        "rounded", p, q, k=k, negative=negative, entropy=Script(words.tolist(), then=0)
    )
    assert accepted.all()
    assert_law("rounded", p, q, values, np.exp(-(k**2) / 128) * probability, atol=2e-5)


def test_rounding_agrees_with_rational_arithmetic(one_attempt):
    """The integer is floor(|c| + 1/2) for every x with these 64 digits, or more are drawn."""
    rng = np.random.default_rng(8)
    for _ in range(60):
        p, q = (int(2 ** rng.uniform(0, 56)) for _ in range(2))
        k = rng.integers(0, 64, size=50)
        words = rng.integers(0, TOP, size=50, dtype=np.uint64)
        words[:4] = u64(0, 1, TOP - 1, TOP - 2)
        values, *_ = one_attempt(
            "rounded",
            p,
            q,
            k=k,
            negative=np.zeros(50, dtype=bool),
            entropy=Script(words.tolist(), then=3),
        )
        for number, word, value in zip(k.tolist(), words.tolist(), values.tolist(), strict=True):
            low = math.floor(Fraction(p, 8 * q) * (number + Fraction(word, TOP)) + Fraction(1, 2))
            high = Fraction(p, 8 * q) * (number + Fraction(word + 1, TOP)) + Fraction(1, 2)
            assert low <= value <= high
            assert value == low or value == math.ceil(high) - 1


def test_doubtful_rounding_draws_further_digits(one_attempt):
    """The 64 digits of x tie with a half-integer boundary, so the next word decides."""
    p = 7
    q = 3
    k = 5
    x = Fraction(3, 2) * 8 * q / p - k  # |c| = 3/2 lies in part 5: 7/24 * 5 < 3/2 < 7/24 * 6
    assert 0 < x < 1
    digits = x.numerator * TOP**3 // x.denominator
    words = [word_of(digits, 192, position) for position in range(3)]
    for change, rounded in ((-1, 1), (1, 2)):
        for depth in (1, 2):
            script = Script([*words[1:depth], words[depth] + change], then=None)
            reals = LazyReals(leading=u64(words[0]))
            assert _noise._round_exactly(p, 8 * q, k, reals, 0, entropy=script) == rounded
            assert not script.left
            assert reals.word(0, depth, script) == words[depth] + change
        script = Script([words[0], words[1] + change], then=None)
        assert one_attempt(
            "rounded", p, q, k=np.array([k]), negative=np.array([False]), entropy=script
        )[0].tolist() == [rounded]
    reals = LazyReals(leading=u64(words[0]))
    # A word that a coin drew before is used, and not drawn again.
    reals.word(0, 1, Script([words[1] + 1], then=None))
    assert _noise._round_exactly(p, 8 * q, k, reals, 0, entropy=Script([], then=None)) == 2


def test_wide_product_is_exact():
    rng = np.random.default_rng(1)
    left = np.concatenate(
        [
            u64(1, 2, 2**32 - 1, 2**32, 2**57 - 2, 2**57 - 1),
            rng.integers(1, 2**57, size=500, dtype=np.uint64),
        ]
    )
    right = np.concatenate(
        [
            u64(0, 1, 2**32 - 1, 2**32, TOP - 1, TOP - 2),
            rng.integers(0, TOP, size=500, dtype=np.uint64),
        ]
    )
    for factors, other_factors in (grid(left[:12], right[:12]), (left, right)):
        high, low = _noise._wide_product(factors, other_factors)
        assert (high.astype(object) * TOP + low == factors.astype(object) * other_factors).all()


def test_part_beyond_the_table_is_kept_by_its_square(monkeypatch):
    ratios = []
    replies = iter([True, True, False, False, True, False, True])
    monkeypatch.setattr(_noise, "coin_exp", lambda *of: ratios.append(of[:2]) or next(replies))
    assert _noise._draw_far_part(8, None) == 8 * 8 + 1
    assert ratios == [*[(8, 8)] * 3, (4, 128), *[(8, 8)] * 2, (1, 128)]


def test_number_beyond_the_laplace_table():
    source = SeededEntropy(6)
    beyond = np.array([_noise.draw_far_geometric(source) for _ in range(4000)]) - 128
    counts = np.bincount(np.minimum(beyond, 40), minlength=41)
    probabilities = np.append(np.exp(-np.arange(40) / 8) * -np.expm1(-1 / 8), np.exp(-5))
    assert stats.chisquare(counts, 4000 * probabilities).pvalue > ALARM

    # The draw is the last cell (all ones) twice, then 3. The words are a prefix, low bits, and so
    # on.
    script = Script(
        [TOP - 1] * 4 + [int(geometric_table().leading[2] >> np.uint64(48)) + 1], then=None
    )
    assert _noise.draw_far_geometric(script) == 3 * 128 + 3


@pytest.mark.parametrize("parts", [1, 8])
def test_part_beyond_the_gaussian_table(parts):
    source = SeededEntropy(7)
    count = 1500
    beyond = np.array([_noise._draw_far_part(parts, source) for _ in range(count)]) - 8 * parts
    j = np.arange(60)
    weight = np.exp(-8 * j / parts - j**2 / (2 * parts**2))
    cut = 1 if parts == 1 else 4
    expected = count * np.append(weight[:cut], weight[cut:].sum()) / weight.sum()
    counts = np.bincount(np.minimum(beyond, cut), minlength=cut + 1)
    assert stats.chisquare(counts, expected).pvalue > ALARM


@pytest.mark.parametrize(("p", "q"), [(3, 2), (2**56 - 1, 1), (2**56 - 1, 3), (1, 2**56 - 1)])
@pytest.mark.parametrize("far", [128, 255, 256, 5000])
def test_far_laplace_values_are_exact_modulo_2_64(monkeypatch, one_attempt, p, q, far):
    monkeypatch.setattr(_noise, "draw_far_geometric", lambda entropy: far)
    u = np.array([0, p - 1, p // 2, 0])
    v = np.array([128, 128, 128, 3])
    negative = np.array([False, False, True, True])
    values, accepted, _ = one_attempt("laplace", p, q, k=v, uniform=u, negative=negative)
    for row in range(4):
        exact = (int(u[row]) + p * (far if row < 3 else 3)) // (8 * q)
        assert (int(values[row]) - (-exact if negative[row] else exact)) % TOP == 0
        assert accepted[row] == (exact > 0 or not negative[row])


def test_far_multiple_of_2_64_is_not_zero(monkeypatch, one_attempt):
    monkeypatch.setattr(_noise, "draw_far_geometric", lambda entropy: 2**11)
    assert (2**56 - 1) * 2**11 + 2**11 == 8 * 2**64
    values, accepted, _ = one_attempt(
        "laplace",
        2**56 - 1,
        1,
        k=np.array([128]),
        uniform=np.array([2**11]),
        negative=np.array([True]),
    )
    assert values.tolist() == [0]
    assert accepted.tolist() == [True]


@pytest.mark.parametrize(("p", "q"), [(3, 2), (1000, 1), (2**56 - 1, 2**40), (1, 2**56 - 1)])
@pytest.mark.parametrize("law", ["gaussian", "rounded"])
@pytest.mark.parametrize("far", [0, 7, 100, 10**6])
def test_far_gaussian_values_are_exact_modulo_2_64(monkeypatch, one_attempt, law, p, q, far):
    """Values of parts beyond the table (8 scales) equal rational arithmetic, modulo 2^64."""
    parts = 8 if law == "rounded" or p >= 32 * q else 1
    k = 8 * parts + far
    word = 0x0123_4567_89AB_CDEF  # the first 64 digits of x
    monkeypatch.setattr(_noise, "_draw_far_part", lambda parts, entropy: k)
    if far == 10**6:  # so many coins exp(-x) would take long to check one by one
        monkeypatch.setattr(
            _noise,
            "_toss_acceptance",
            lambda parts, k, x, index, entropy: np.ones(index.size, dtype=bool),
        )
    j = np.array([0, -(-p // (parts * q)) // 2, 0])
    negative = np.array([False, False, True])
    source = Script([word] * 3, then=0)
    values, accepted, probability = one_attempt(
        law, p, q, k=np.full(3, 8 * parts), uniform=j, negative=negative, entropy=source
    )
    for row in range(3):
        if law == "rounded":
            # The value is (k + x) / 8 of the scale p / q, rounded.
            x = Fraction(word, TOP)
            exact = math.floor(Fraction(p, 8 * q) * (k + x) + Fraction(1, 2))
            assert accepted[row]
        else:
            # The value is the j-th integer from k / parts of the scale p / q on. It is accepted if
            # it is in part k, that is if x < 1.
            exact = math.ceil(Fraction(k * p, parts * q)) + int(j[row])
            x = Fraction(exact * parts * q - k * p, p)
            assert accepted[row] == (x < 1)
        if accepted[row]:
            assert (int(values[row]) - (-exact if negative[row] else exact)) % TOP == 0
            if far < 10**6:
                # The coins correct the density from k^2 to (k + x)^2 in the exponent.
                exponent = x * (2 * k + x) / (2 * parts**2)
                assert probability[row] == pytest.approx(math.exp(-exponent), rel=1e-6)


def test_whole_draws_through_the_tails():
    """Scripted words lead into the last cell: values beyond 8 scales, or a new draw."""
    laplace = [0, TOP - 1, TOP - 1, TOP - 1]  # u = 0 of 1000 bits, slot not hit, last cell
    assert abs(int(_noise.discrete_laplace(1000, 1, 1, Script(laplace, then=11))[0])) >= 16_000
    draws = [
        abs(int(_noise.rounded_gaussian(1000, 1, 1, Script([TOP - 1, TOP - 1], then=seed))[0]))
        for seed in range(40)
    ]
    # A draw is accepted with probability about 0.6.
    assert sum(8_000 <= size < 12_000 for size in draws) >= 10
