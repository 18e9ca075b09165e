"""Implement EFPA: the exponential mechanism chooses how many first frequencies to measure.

The real trigonometric basis has whole multiples of 2^-16, so that sums and sensitivities are whole
numbers and do not depend on the normalisation of a transform. All measured coefficients, sine and
cosine, get noise; the released implementations add noise to magnitudes and publish exact phases.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from baselines._baseline import Baseline, Ranges, Reals, Wholes
from baselines._noise import choose, laplace
from leastnoise._trusted.kernel import Entropy

FINE = 2**16
MOST_RECORDS = 2**37  # times FINE this is 2^53: sums are exact in float64
STEPS = 16  # scores are in multiples of 1/16 of a record
# One record moves the norm of a tail by at most 1 (the basis is orthonormal but for 2^-17), so 16
# of it, rounded down, by at most 17.
SCORE_SENSITIVITY = STEPS + 1
_CHUNK = 256


def basis(size: int) -> Iterator[tuple[int, Wholes, Wholes]]:
    """Yield cosines and sines of the frequencies 0 to n // 2, in chunks.

    A chunk is its first frequency and two arrays of shape (f, n), in multiples of 1 / FINE.

    >>> [(first, cosine.tolist(), sine.tolist()) for first, cosine, sine in basis(2)]
    [(0, [[65536, 65536], [65536, -65536]], [[0, 0], [0, 0]])]
    """
    angle = 2 * np.pi * np.arange(size) / size
    cosine, sine = (np.round(FINE * wave(angle)).astype(np.int64) for wave in (np.cos, np.sin))
    for first in range(0, size // 2 + 1, _CHUNK):
        positions = (
            np.outer(np.arange(first, min(first + _CHUNK, size // 2 + 1)), np.arange(size)) % size
        )
        yield first, cosine[positions], sine[positions]


@lru_cache(maxsize=4)
def sensitivities(size: int) -> Wholes:
    """Return how much one record changes the lowest 1, 2, ... frequencies together (L1).

    The numbers are multiples of 1 / FINE.

    >>> (sensitivities(4) / FINE).tolist()
    [1.0, 2.0, 3.0]
    """
    running = np.zeros(size, dtype=np.int64)
    largest = []
    for _, cosine, sine in basis(size):
        sums = np.cumsum(np.abs(cosine) + np.abs(sine), axis=0) + running
        running = sums[-1]
        largest.append(sums.max(axis=1))
    return np.concatenate(largest)


def coefficients(x: Wholes) -> tuple[Wholes, Wholes]:
    """Sum the cells with all cosines and sines exactly; each of shape (n // 2 + 1,).

    The sums are multiples of 1 / FINE.

    >>> [part.tolist() for part in coefficients(np.array([3, 1]))]
    [[262144, 131072], [0, 0]]
    """
    counts = x.astype(np.float64)  # sums stay below 2^53
    parts = [
        (cosine.astype(np.float64) @ counts, sine.astype(np.float64) @ counts)
        for _, cosine, sine in basis(len(x))
    ]
    cosines, sines = (
        np.concatenate(chunks).astype(np.int64) for chunks in zip(*parts, strict=True)
    )
    return cosines, sines


def multiplicities(size: int) -> Wholes:
    """Return how often each frequency counts: twice, or once for 0 and n / 2.

    >>> multiplicities(4).tolist(), multiplicities(3).tolist()
    ([1, 2, 1], [1, 2])
    """
    twice = np.full(size // 2 + 1, 2, dtype=np.int64)
    twice[0] = 1
    if size % 2 == 0:
        twice[-1] = 1
    return twice


def tails(cosines: Wholes, sines: Wholes, size: int) -> Wholes:
    """Return the norm of the coefficients beyond the lowest 1, 2, ... frequencies.

    The norm is exact, rounded down to 1 / STEPS of a record. In the example, the first norm is 16
    times the square root of 2 and the second is 0.

    >>> tails(*coefficients(np.array([3, 1])), 2).tolist()
    [22, 0]
    """
    energy = 0
    norms = []
    for twice, c, s in zip(
        *(part.tolist()[::-1] for part in (multiplicities(size), cosines, sines)), strict=True
    ):
        norms.append(math.isqrt(STEPS**2 * energy // (size * FINE**2)))
        energy += twice * (c * c + s * s)
    return np.array(norms[::-1], dtype=np.int64)


def inverse(cosines: Reals, sines: Reals, size: int) -> Reals:
    """Compute the cells from the lowest coefficients; all other coefficients are 0.

    >>> inverse(np.array([4.0, 2.0]), np.zeros(2), 2).tolist()
    [3.0, 1.0]
    """
    spectrum = np.zeros(size // 2 + 1, dtype=np.complex128)
    spectrum[: len(cosines)] = cosines - 1j * sines
    if size > 1:
        return np.asarray(np.fft.irfft(spectrum, size))
    return np.array([float(cosines[0])])


def efpa(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Measure the lowest Fourier coefficients; half the budget chooses their number."""
    size = len(x)
    # Cell by cell, so that neighbours stay neighbours.
    cosines, sines = coefficients(np.minimum(x, MOST_RECORDS // size))
    sensitivity = sensitivities(size)
    numbers = np.arange(1, len(cosines) + 1)
    # Expected norm of the noise, public; in records.
    noise = np.sqrt(2 * (2 * numbers - 1) * 2 / size) * sensitivity / FINE / float(epsilon / 2)
    scores = -tails(cosines, sines, size) - np.round(STEPS * noise).astype(np.int64)
    number = choose(scores, epsilon / 2 / (2 * SCORE_SENSITIVITY), entropy) + 1
    values = np.concatenate([cosines[:number], sines[:number]])
    noisy = laplace(values, epsilon / 2, entropy, sensitivity=int(sensitivity[number - 1])) / FINE
    return inverse(noisy[:number], noisy[number:], size)


EFPA = Baseline(
    name="EFPA",
    dimensions=1,
    private=True,
    proof=(
        "Exponential mechanism with epsilon / 2: one record moves the norm of each tail by at "
        "most 1. Laplace with epsilon / 2 on the "
        "cosine and sine coefficients kept, at the exact largest column sum of their "
        "whole-numbered basis. Sequential composition."
    ),
    source="Acs, Castelluccia, Chen, ICDM 2012",
    mechanism=efpa,
    most_cells=2**14,
)
