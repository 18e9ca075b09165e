"""The tables of the samplers: digit by digit, every prefix, and ties settled by further digits."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from kernel.noise_oracle import ALARM, TOP, Script, word_of
from leastnoise._check import InternalError
from leastnoise._kernel import SeededEntropy
from leastnoise._kernel._draws import CellTable, geometric_table, half_normal_table, make_table


def exact_thresholds(name):
    if name == "geometric":
        return [1 - mpmath.exp(-mpmath.mpf(i) / 8) for i in range(1, 129)]
    parts = name
    weights = [mpmath.exp(-mpmath.mpf(k * k) / (2 * parts * parts)) for k in range(8 * parts)]
    theta = (mpmath.jtheta(3, 0, mpmath.exp(-mpmath.mpf(1) / (2 * parts * parts))) + 1) / 2
    return [mpmath.fsum(weights[:i]) / theta for i in range(1, 8 * parts + 1)]


def table_of(name):
    return geometric_table() if name == "geometric" else half_normal_table(name)


@pytest.mark.parametrize("name", ["geometric", 1, 8])
def test_tables_digit_by_digit(name):
    table = table_of(name)
    with mpmath.workdps(400):
        exact = exact_thresholds(name)
        assert table.leading.tolist() == [int(mpmath.floor(value * TOP)) for value in exact]
        for bits in (64, 128, 192, 1000):
            for value, (low, high) in zip(exact, table.enclose(bits), strict=True):
                scaled = value * mpmath.mpf(2) ** bits
                assert low <= scaled <= high
                assert high - low <= 2


@pytest.mark.parametrize("name", ["geometric", 1, 8])
def test_every_prefix_of_a_table(name):
    """All 65536 prefixes: the cell is that of both ends of the prefix's interval, or a threshold lies in it."""
    table = table_of(name)
    with mpmath.workdps(60):
        scaled = [int(mpmath.floor(value * 2**16)) for value in exact_thresholds(name)]
    below = np.searchsorted(np.array(scaled), np.arange(1 << 16), side="left")
    plain = table.cells != 255
    np.testing.assert_array_equal(table.cells[plain], below[plain])
    assert set(np.flatnonzero(~plain).tolist()) == set(scaled)


@pytest.mark.parametrize("name", ["geometric", 1, 8])
def test_the_law_of_all_words_of_a_table(name):
    """Every prefix once, followed by 2^12 equally spaced continuations where it is ambiguous: frequencies are exact to 2^-28 or so."""
    table = table_of(name)
    size = table.leading.size
    sizes = np.bincount(table.cells[table.cells != 255], minlength=size + 1).astype(object) * TOP // 2**16
    edges = [0, *table.leading.tolist(), TOP]
    for prefix in np.flatnonzero(table.cells == 255).tolist():
        low, high = prefix << 48, (prefix + 1) << 48
        for cell in range(size + 1):
            sizes[cell] += max(0, min(high, edges[cell + 1]) - max(low, edges[cell]))
    assert sizes.tolist() == np.diff(np.array(edges, dtype=object)).tolist()


@pytest.mark.parametrize("name", ["geometric", 1, 8])
@pytest.mark.parametrize("agreeing", [0, 1, 2, 4])
def test_ties_with_a_threshold_are_settled_by_its_further_digits(name, agreeing):
    """The drawn bits agree with the threshold in so many words of 64 digits, and are then 1 lower or 1 higher."""
    table = table_of(name)
    bits = 64 * (agreeing + 1)
    with mpmath.workdps(400):
        digits = [int(mpmath.floor(value * mpmath.mpf(2) ** bits)) for value in exact_thresholds(name)]
    for i in range(0, len(digits), 7 if agreeing else 1):
        for change, cell in ((-1, i), (1, i + 1)):
            first, *words = (word_of(digits[i] + change, bits, position) for position in range(agreeing + 1))
            # draw() takes the prefix from the lowest 16 bits of a word, then 48 bits from the top of the next
            script = Script([first >> 48, (first & (2**48 - 1)) << 16, *words], then=None)
            assert table.draw(1, script).tolist() == [cell]
            assert not script.left


def test_tables_cannot_be_changed():
    for table in (geometric_table(), half_normal_table(1), half_normal_table(8)):
        with pytest.raises(ValueError, match="read-only"):
            table.cells[0] = 1
        with pytest.raises(ValueError, match="read-only"):
            table.leading[0] = 1


def test_a_table_that_cannot_be_proved_is_refused():
    with pytest.raises(InternalError, match="could not be computed"):
        make_table(lambda bits: [(0, 1 << bits)])
    with pytest.raises(InternalError, match="out of order"):
        make_table(lambda bits: [(1 << (bits - 1), 1 << (bits - 1))] * 2)


def test_a_small_table_draws_its_law():
    third = make_table(lambda bits: [((1 << bits) // 3, -(-(1 << bits) // 3))])
    assert isinstance(third, CellTable)
    drawn = third.draw(200_000, SeededEntropy(1))
    assert stats.binomtest(int((drawn == 0).sum()), 200_000, 1 / 3).pvalue > ALARM
