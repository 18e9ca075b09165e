"""The tables of the samplers: every digit, every prefix, and ties."""

import mpmath
import numpy as np
import pytest

from leastnoise._trusted.check import InternalError
from leastnoise._trusted.kernel._sampling import geometric_table, half_normal_table, make_cell_table
from trusted.kernel.noise_oracle import TOP, Script, word_of

every_table = pytest.mark.parametrize("name", ["geometric", 1, 8])


def exact_thresholds(name):
    if name == "geometric":
        return [1 - mpmath.exp(-mpmath.mpf(i) / 8) for i in range(1, 129)]
    weights = [mpmath.exp(-mpmath.mpf(k * k) / (2 * name * name)) for k in range(8 * name)]
    theta = (mpmath.jtheta(3, 0, weights[1]) + 1) / 2
    return [mpmath.fsum(weights[:i]) / theta for i in range(1, 8 * name + 1)]


def table_of(name):
    return geometric_table() if name == "geometric" else half_normal_table(name)


@every_table
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


@every_table
def test_every_prefix_of_a_table(name):
    """For all 65536 prefixes both ends lie in one cell, or a threshold lies between them."""
    table = table_of(name)
    with mpmath.workdps(60):
        scaled = [int(mpmath.floor(value * 2**16)) for value in exact_thresholds(name)]
    below = np.searchsorted(np.array(scaled), np.arange(1 << 16), side="left")
    plain = table.cells != 255
    np.testing.assert_array_equal(table.cells[plain], below[plain])
    assert set(np.flatnonzero(~plain).tolist()) == set(scaled)


@every_table
@pytest.mark.parametrize("agreeing", [0, 1, 2, 4])
def test_threshold_ties_use_further_digits(name, agreeing):
    """The bits equal the threshold in some words of 64 digits, then differ by 1."""
    table = table_of(name)
    bits = 64 * (agreeing + 1)
    with mpmath.workdps(400):
        digits = [
            int(mpmath.floor(value * mpmath.mpf(2) ** bits)) for value in exact_thresholds(name)
        ]
    for i in range(0, len(digits), 7 if agreeing else 1):
        for change, cell in ((-1, i), (1, i + 1)):
            first_word, *later_words = (
                word_of(digits[i] + change, bits, position) for position in range(agreeing + 1)
            )
            # The method `draw` takes the two prefixes (0, and the prefix of the threshold) from
            # the lowest bits of a word, then 48 bits from the top of the next word.
            script = Script(
                [first_word >> 48 << 16, (first_word & (2**48 - 1)) << 16, *later_words], then=None
            )
            assert table.draw(2, script).tolist() == [0, cell]
            assert not script.left


def test_tables_cannot_be_changed():
    for table in (geometric_table(), half_normal_table(1), half_normal_table(8)):
        with pytest.raises(ValueError, match="read-only"):
            table.cells[0] = 1
        with pytest.raises(ValueError, match="read-only"):
            table.leading[0] = 1


def test_table_that_cannot_be_proved_is_refused():
    with pytest.raises(InternalError, match="could not be computed"):
        make_cell_table(lambda bits: [(0, 1 << bits)])
    with pytest.raises(InternalError, match="out of order"):
        make_cell_table(lambda bits: [(1 << (bits - 1), 1 << (bits - 1))] * 2)
