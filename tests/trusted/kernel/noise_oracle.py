"""Probabilities computed without the samplers, chi-square tests, and scripted bits."""

import numpy as np
from scipy import stats

from behind_the_wall import discrete_gaussian, discrete_laplace, rounded_gaussian
from leastnoise._trusted.kernel import SeededEntropy

SCALES = [
    (1, 8),
    (3, 10),
    (1, 1),
    (3, 2),
    (2, 1),
    (3, 1),
    (10, 1),
    (1000, 1),
    (2_500_000_001, 1000),
    (2**40, 1),
]
SAMPLERS = {"laplace": discrete_laplace, "gaussian": discrete_gaussian, "rounded": rounded_gaussian}
LEAST_EXPECTED = 25  # draws in a bin
SUMMED_UP_TO = 200  # smaller scales are summed term by term
ALARM = 1e-6  # a p-value below it; see test_noise_distribution.py
TOP = 2**64


def cumulative(law, scale, upto):
    """Return P(z <= upto) for integers, in double precision."""
    if law == "rounded" or scale > SUMMED_UP_TO:  # the midpoint rule is off by a part in 24 scale^2
        return (stats.laplace if law == "laplace" else stats.norm).cdf((upto + 0.5) / scale)
    reach = int(50 * scale) + 3
    support = np.abs(np.arange(-reach, reach + 1)) / scale
    sums = np.cumsum(np.exp(-support if law == "laplace" else -(support**2) / 2))
    return np.where(upto < -reach, 0.0, sums[np.clip(upto + reach, 0, 2 * reach)] / sums[-1])


def chi_square(law, scale, draws, most_bins=200):
    """Return the p-value of draws against the law; bins expect LEAST_EXPECTED draws or more."""
    reach = (40 if law == "laplace" else 9) * scale + 2
    tail = np.geomspace(scale / 50, reach, most_bins // 2)
    edges = (
        np.arange(-int(reach), int(reach) + 1)
        if reach < 400
        else np.unique(np.concatenate([-tail, [0.0], tail]).astype(np.int64))
    )
    below = cumulative(law, scale, edges)
    least = LEAST_EXPECTED / draws.size
    bin_edges = []
    for place, value in enumerate(below):  # as fine as the number of draws allows
        if min(value - (below[bin_edges[-1]] if bin_edges else 0), 1 - value) >= least:
            bin_edges.append(place)
    assert bin_edges, "no bin is large enough: draw more"
    expected = np.diff([0.0, *below[bin_edges], 1.0]) * draws.size
    counts = np.bincount(
        np.searchsorted(edges[bin_edges], draws, side="left"), minlength=expected.size
    )
    return float(stats.chisquare(counts, expected, sum_check=False).pvalue)


def uniformity(values, cells):
    """Return the p-value of values in [0, cells) against the uniform distribution."""
    return float(stats.chisquare(np.bincount(values, minlength=cells)).pvalue)


class Script:
    """An entropy source that plays scripted words, then a seeded stream, and counts words."""

    def __init__(self, script, then=0):
        self.left = list(script)
        self.rest = None if then is None else SeededEntropy(then)

    def words(self, count):
        played = self.left[:count]
        self.left = self.left[count:]
        missing = count - len(played)
        if missing and self.rest is None:
            raise AssertionError("the script is over")
        return np.concatenate(
            [
                np.array(played, dtype=np.uint64),
                self.rest.words(missing) if missing else np.empty(0, dtype=np.uint64),
            ]
        )


def u64(*values):
    return np.array(values, dtype=np.uint64)


def scalar(value):
    return np.asarray(value, dtype=np.uint64)


def word_of(digits, bits, position):
    """Return the 64 binary digits of a fraction from position 64 * position."""
    return digits >> (bits - 64 * (position + 1)) & (TOP - 1)


def grid(*axes):
    """Return all combinations of the axes' values, one flat array for each axis."""
    return [
        axis.ravel() for axis in np.meshgrid(*[np.asarray(axis) for axis in axes], indexing="ij")
    ]
