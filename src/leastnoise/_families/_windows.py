"""A Gaussian strategy for ranges of the same widths at every position.

Let M be the Gram matrix of the workload. For ranges of the same widths at every position, the
entries of M depend only on the distance of two cells, except near the ends: ``M_jk = c_(j-k)``. Let
``m(t) = sum_d c_d e^(idt)`` be the spectral density of these entries. For infinitely many cells,
the strategy of least error has a Gram matrix of density ``m^(1/2)``. This file measures its lower
triangular factor, a Toeplitz matrix T with ``|T(t)|^2 = m(t)^(1/2)``. The coefficients of T are a
power series: the exponential of the causal part of ``log m^(1/4)`` (Kolmogorov's factorisation).
For prefix sums T is the square root of ``_toeplitz``. As in ``_toeplitz``, the column norms
decrease towards the end, and each column is scaled up to the largest norm. For other ranges, c is
the mean of M along its diagonals. The density of c is never negative.

The lower bound for full sets of ranges is derived as follows. Let W have the ranges as rows. All
other symbols are as in ``_dense``. Every matrix Z of spectral norm 1 gives ``tr K >= tr(D^1/2 W^T
Z)``. Let the rows of Z consist of circulant matrices, with one matrix for each width. The spectral
values of Z at a frequency are the spectral values of W at this frequency, scaled to norm 1. Then
``h_j`` is the sum of ``W_ij Z_ij`` over the rows i and follows from running sums. The best weights
D give the bound ``sum_j max(h_j, 0)^2``.

Source: textbook material (spectral factorisation, duality of norms). This project uses the two
    together (docs/mathematics.md, section 2).
"""

import math

import numpy as np

from leastnoise._families._gram import FittedFamily, Gram
from leastnoise._families._search import NotApplicable
from leastnoise._families._toeplitz import (
    MOST_LISTED_WORK,
    SCALE_RUNS,
    SEPARATE_DISTANCES,
    count_widths,
    rounded_toeplitz,
    strategy_bits,
)
from leastnoise._trusted.check.arrays import FloatArray, IntArray

# The points of the spectral density, for each cell; the error of the coefficients falls with it.
_POINTS_PER_CELL = 8
_LEAST_DENSITY = 1e-12  # relative to the largest; the logarithm of a zero would be infinite
_MOST_CELLS = 2**16  # the transforms of a million cells would take seconds
# The largest ratio of the coefficients that one run of equal coefficients replaces.
_MOST_COEFFICIENT_RATIO = 1.1
_LEAST_COEFFICIENT = 2**-11  # smaller coefficients, relative to the largest, have one run
_MOST_WIDTHS = 64  # maximum number of widths of ranges with a lower bound


def diagonal_sums(gram: Gram) -> FloatArray:
    """Return the sums of M along its diagonals, from the main one up, (n,).

    ``gram.array`` must be None.
    """
    size = gram.size
    sums = np.zeros(size)
    sums[0] = size * gram.identity_weight
    length = 2 * size
    for a, b in gram.pairs:
        transform = np.conj(np.fft.rfft(a, length)) * np.fft.rfft(b, length)
        sums += np.fft.irfft(transform, length)[:size]
    if gram.weighted_ranges is not None:
        # A range of w cells contributes max(0, w - d) at the distance d.
        amounts, low, high = gram.weighted_ranges
        by_width = np.bincount(high - low + 1, amounts, size + 1)
        counts = np.cumsum(by_width[::-1])[::-1]  # of ranges of at least w cells
        sums += np.cumsum(counts[:0:-1])[::-1]
    return sums


def causal_root(density_coefficients: FloatArray) -> FloatArray:
    """Return a causal power series whose squared modulus is sqrt(density).

    Args:
        density_coefficients: the coefficients c_0, c_1, ... of the density, shape (n,).

    Returns:
        The first n coefficients of the series, shape (n,).
    """
    size = len(density_coefficients)
    points = _POINTS_PER_CELL << (size - 1).bit_length()
    # The points lie between the multiples of 2 pi / points, where ranges have zeros.
    half_step = np.exp(1j * np.pi * np.arange(points) / points)
    padded = np.zeros(points, dtype=complex)
    padded[:size] = density_coefficients
    density = 2 * np.fft.fft(padded * np.conj(half_step)).real - density_coefficients[0]
    logarithm = np.log(np.maximum(density, _LEAST_DENSITY * density.max())) / 4
    cepstrum = (np.fft.ifft(logarithm) * half_step).real
    cepstrum[1 : points // 2] *= 2
    cepstrum[points // 2 :] = 0
    series = np.exp(np.fft.fft(cepstrum * np.conj(half_step)))
    return np.asarray((np.fft.ifft(series) * half_step).real[:size])


def window_root(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Return an integer Toeplitz strategy with a Gram matrix near M^(1/2).

    M is the Gram matrix of the workload, averaged along its diagonals.
    """
    if gram.weighted_ranges is None or gram.array is not None:
        raise NotApplicable(
            "this strategy is only available for ranges of the same widths at many positions; "
            "choose toeplitz_root for prefix sums and all ranges, and gaussian_optimum for other "
            "queries"
        )
    if gram.size > _MOST_CELLS:
        raise NotApplicable(
            f"the spectral density of this strategy needs {_POINTS_PER_CELL} numbers for each "
            f"cell; at most {_MOST_CELLS} cells are allowed"
        )
    widths = count_widths(gram)
    if widths * gram.size > MOST_LISTED_WORK:
        raise NotApplicable(
            f"the errors of ranges of {widths} widths on {gram.size} cells take long; at most "
            f"{MOST_LISTED_WORK // gram.size} widths are allowed"
        )
    root = causal_root(diagonal_sums(gram))
    root = root / np.abs(root).max()
    return FittedFamily(
        rounded_toeplitz(root, _run_starts(root), _scale_starts(root), strategy_bits(bits)),
        error_lower_bound=full_set_bound(gram),
    )


def _run_starts(root: FloatArray) -> IntArray:
    """Return the distances at which runs of similar coefficients begin."""
    sizes = np.maximum(1.0, np.abs(root) / _LEAST_COEFFICIENT)
    classes = np.sign(root) * np.floor(np.log(sizes) / math.log(_MOST_COEFFICIENT_RATIO))
    changes = np.flatnonzero(np.diff(classes)) + 1
    return np.union1d(np.arange(min(len(root), SEPARATE_DISTANCES)), changes)


def _scale_starts(root: FloatArray) -> IntArray:
    """Return the first cells of the runs with equal column scales.

    The logarithms of the scales at these cells are the squares of evenly spaced numbers. So the
    columns of most cells have almost the norm of the longest column.
    """
    norms = np.sqrt(np.cumsum(root**2))[::-1]
    log_scales = np.log(norms[0] / norms)
    classes = np.floor(SCALE_RUNS * np.sqrt(log_scales / max(log_scales[-1], 1e-300)))
    return np.append(0, np.flatnonzero(np.diff(classes)) + 1)


def _full_set_weights(gram: Gram) -> dict[int, float]:
    """Return the weight of each width if the queries are full sets of ranges.

    The result is empty if the queries are not full sets, or have too many widths.
    """
    if gram.weighted_ranges is None or gram.pairs or gram.array is not None:
        return {}
    if count_widths(gram) > _MOST_WIDTHS:
        return {}
    weights: dict[int, float] = {}
    if gram.identity_weight:
        weights[1] = gram.identity_weight
    amounts, low, high = gram.weighted_ranges
    for width in np.unique(high - low + 1).tolist():
        has_width = high - low + 1 == width
        at_start = np.bincount(low[has_width], amounts[has_width], gram.size)
        at_start = at_start[: gram.size - width + 1]
        if not np.allclose(at_start, at_start[0], rtol=1e-12, atol=0):
            return {}
        weights[width] = weights.get(width, 0.0) + float(at_start[0])
    return weights


def full_set_bound(gram: Gram) -> float:
    """Return a lower bound on the squared error for full sets of ranges.

    A full set has the ranges of one width at every position, all with the same weight. The bound
    applies to the union of a few full sets, each of another width. Single cells may be requested
    as well. For other queries the bound is 0.
    """
    size = gram.size
    weights = _full_set_weights(gram)
    if not weights:
        return 0.0
    points = 4 << (size - 1).bit_length()
    # The rows of the circulant and the ranges are compared on the same points.
    angles = np.pi * (2 * np.arange(points) + 1) / points
    spectra = {
        width: math.sqrt(weight) * np.sin(width * angles / 2) / np.sin(angles / 2)
        for width, weight in weights.items()
    }
    root_density = np.sqrt(np.sum([spectrum**2 for spectrum in spectra.values()], axis=0))
    root_density = np.maximum(root_density, np.finfo(float).tiny)
    products = np.zeros(size)
    cells = np.arange(size)
    for width, spectrum in spectra.items():
        shift = np.exp(1j * (width - 1) / 2 * angles)
        transform = np.fft.fft(spectrum / root_density * shift)[:width] / points
        entries = (transform * np.exp(-1j * np.pi * np.arange(width) / points)).real
        sums = math.sqrt(weights[width]) * np.append(0.0, np.cumsum(entries))
        inside = sums[np.minimum(cells + 1, width)]
        products += inside - sums[np.maximum(cells + 1 - (size - width + 1), 0)]
    return float((np.maximum(products, 0.0) ** 2).sum())
