"""Entropy sources: fresh words from the system, reproducible ones from a seed, and refusals."""

import os

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._kernel import SeededEntropy, SystemEntropy, _entropy
from leastnoise._kernel._noise import discrete_laplace


def test_system_words_are_private_fresh_and_of_the_right_shape():
    source = SystemEntropy()
    first, second = source.words(1000), source.words(1000)
    assert first.dtype == np.uint64
    assert first.shape == (1000,)
    assert np.unique(np.concatenate([first, second])).size == 2000  # a repetition has probability 2^-43
    assert source.words(0).shape == (0,)


def test_system_words_are_those_of_the_operating_system(monkeypatch):
    asked = []

    def recorded(size):
        asked.append(size)
        return bytes(range(8)) * (size // 8)

    monkeypatch.setattr(_entropy.os, "urandom", recorded)
    words = SystemEntropy().words(3)
    assert asked == [24]  # neither more, to be kept, nor less
    assert words.tobytes() == bytes(range(8)) * 3


def test_the_system_source_keeps_nothing_that_a_fork_could_copy():
    source = SystemEntropy()
    discrete_laplace(3, 2, 10, source)
    assert not hasattr(source, "__dict__")
    assert source.__slots__ == ()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  # another process
        os.write(write, discrete_laplace(2**40, 1, 16, source).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 128), dtype=np.int64)
    os.close(read)
    os.close(write)
    ours = discrete_laplace(2**40, 1, 16, source)
    assert theirs.size == 16
    assert not np.intersect1d(theirs, ours).size


def test_seeded_words_are_reproducible_and_not_private():
    assert not np.intersect1d(SeededEntropy(3).words(50), SeededEntropy(4).words(50)).size
    source = SeededEntropy(3)
    np.testing.assert_array_equal(np.concatenate([source.words(20), source.words(30)]), SeededEntropy(3).words(50))
    assert source.words(0).shape == (0,)
    assert SeededEntropy(2**200).words(1).dtype == np.uint64


def test_a_wrong_seed_is_refused_and_there_is_no_default():
    for seed in (-1, 0.5, True, None, "7", float("nan")):
        with pytest.raises(InputError, match=r"^seed must be a whole number of at least 0; got "):
            SeededEntropy(seed)
    with pytest.raises(TypeError, match="seed"):
        SeededEntropy()
    assert repr(SeededEntropy(5)) == "SeededEntropy(5)"
