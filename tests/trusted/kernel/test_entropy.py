"""Entropy sources: fresh words of the system, reproducible words of a seed, refusals."""

import numpy as np
import pytest

from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, SystemEntropy, _entropy


def test_system_entropy_keeps_nothing_a_fork_could_copy(monkeypatch):
    requested_bytes = []

    def recorded(size):
        requested_bytes.append(size)
        return bytes(range(8)) * (size // 8)

    monkeypatch.setattr(_entropy.os, "urandom", recorded)
    source = SystemEntropy()
    words = source.words(3)

    assert words.dtype == np.uint64
    assert words.shape == (3,)
    assert words.tobytes() == bytes(range(8)) * 3
    assert source.words(0).shape == (0,)
    assert requested_bytes == [24, 0]  # neither more, to be kept, nor less
    assert not hasattr(source, "__dict__")
    assert source.__slots__ == ()


def test_seeded_words_are_reproducible_and_not_private():
    assert not np.intersect1d(SeededEntropy(3).words(50), SeededEntropy(4).words(50)).size
    source = SeededEntropy(3)
    np.testing.assert_array_equal(
        np.concatenate([source.words(20), source.words(30)]), SeededEntropy(3).words(50)
    )
    assert source.words(0).shape == (0,)
    assert SeededEntropy(2**200).words(1).dtype == np.uint64


@pytest.mark.parametrize("seed", [-1, 0.5, True, None, "7", float("nan")])
def test_invalid_seed_is_refused(seed):
    with pytest.raises(InputError, match=r"^seed must be a whole number of at least 0; got "):
        SeededEntropy(seed)


def test_seed_has_no_default():
    with pytest.raises(TypeError, match="seed"):
        SeededEntropy()
    assert repr(SeededEntropy(5)) == "SeededEntropy(5)"
