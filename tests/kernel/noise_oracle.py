"""What the noise tests share: probabilities computed without the samplers, chi-square, and scripted bits."""

from collections.abc import Iterable

import mpmath
import numpy as np
from scipy import stats

from leastnoise._kernel import SeededEntropy, _noise

SCALES = [(1, 8), (3, 10), (1, 1), (3, 2), (2, 1), (3, 1), (10, 1), (1000, 1), (2_500_000_001, 1000), (2**40, 1)]
SAMPLERS = {"laplace": _noise.discrete_laplace, "gaussian": _noise.discrete_gaussian, "rounded": _noise.rounded_gaussian}
LEAST_EXPECTED = 25  # draws in a bin
EXACT_UP_TO = 20_000  # scales up to a hundredth of it are summed term by term


def cumulative(law: str, scale: float, upto: np.ndarray) -> np.ndarray:
    """P(z <= upto), in double precision, for sorted integers."""
    upto = np.asarray(upto, dtype=np.int64)
    if law == "laplace":
        # P(z > n) = r^(n+1) / (1 + r) for n >= 0, r = exp(-1/scale)
        beyond = np.exp(-(np.abs(upto + (upto < 0)) + (upto >= 0)) / scale) / (1 + np.exp(-1 / scale))
        below = np.exp(upto.astype(float) / scale) / (1 + np.exp(-1 / scale))
        return np.where(upto >= 0, 1 - beyond, below)
    if law == "rounded":
        return stats.norm.cdf((upto + 0.5) / scale)
    if scale <= EXACT_UP_TO / 100:
        reach = int(12 * scale) + 3
        support = np.arange(-reach, reach + 1)
        mass = np.exp(-(support.astype(float) ** 2) / (2 * scale * scale))
        sums = np.cumsum(mass) / mass.sum()
        return np.where(upto < -reach, 0.0, sums[np.clip(upto + reach, 0, 2 * reach)])
    # Poisson summation: the normaliser is sigma sqrt(2 pi) up to exp(-2 pi^2 sigma^2); the midpoint rule is off by a part in 24 sigma^2
    return stats.norm.cdf((upto + 0.5) / scale)


def mass(law: str, scale: mpmath.mpf, z: int) -> mpmath.mpf:
    """P(z) with mpmath's precision, for small scales."""
    if law == "rounded":
        return mpmath.ncdf((z + mpmath.mpf("0.5")) / scale) - mpmath.ncdf((z - mpmath.mpf("0.5")) / scale)
    if law == "laplace":
        ratio = mpmath.exp(-1 / scale)
        return (1 - ratio) / (1 + ratio) * ratio ** abs(z)
    total = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * scale * scale)))
    return mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * scale * scale)) / total


def chi_square(law: str, scale: float, draws: np.ndarray, most_bins: int = 200) -> float:
    """p-value of the draws against the law; at most so many bins, each with LEAST_EXPECTED draws expected or more."""
    reach = (40 if law == "laplace" else 9) * scale + 2
    if reach < 400:
        edges = np.arange(-int(reach), int(reach) + 1)
    else:
        tail = np.geomspace(scale / 50, reach, most_bins // 2)
        edges = np.unique(np.concatenate([-tail, [0.0], tail]).astype(np.int64))
    below = cumulative(law, scale, edges)
    # walk from both ends, so that the tails get the finest bins that the number of draws allows
    keep = []
    left, right = 0.0, 1.0
    least = LEAST_EXPECTED / draws.size
    low, high = [], []
    for edge, value in zip(edges, below, strict=True):
        if value <= 0.5 and value - left >= least:
            low.append((edge, value))
            left = value
    for edge, value in zip(edges[::-1], below[::-1], strict=True):
        if value > 0.5 and right - value >= least:
            high.append((edge, value))
            right = value
    keep = low + high[::-1]
    if len(keep) > 1 and right - left < least:  # the two middle ends are closer together than a bin
        keep.remove(high[-1] if high else low[-1])
    if not keep:
        raise AssertionError("no bin is large enough: draw more")
    kept_edges = np.array([edge for edge, _ in keep])
    probabilities = np.diff(np.concatenate([[0.0], [value for _, value in keep], [1.0]]))
    counts = np.bincount(np.searchsorted(kept_edges, draws, side="left"), minlength=kept_edges.size + 1)
    expected = probabilities * draws.size
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, kept_edges.size))


def uniformity(values: np.ndarray, cells: int) -> float:
    """p-value of values in [0, cells) against the uniform distribution."""
    return float(stats.chisquare(np.bincount(values, minlength=cells)).pvalue)


class Script:
    """An entropy that plays the given words and then a seeded stream; it counts what it gave."""

    def __init__(self, words: Iterable[int], then: int | None = 0):
        self.left = list(words)
        self.rest = None if then is None else SeededEntropy(then)

    def words(self, count: int) -> np.ndarray:
        played, self.left = self.left[:count], self.left[count:]
        missing = count - len(played)
        if missing and self.rest is None:
            raise AssertionError("the script is over")
        return np.concatenate([np.array(played, dtype=np.uint64), self.rest.words(missing) if missing else np.empty(0, dtype=np.uint64)])


def u64(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def scalar(value: int) -> np.ndarray:
    return np.asarray(value, dtype=np.uint64)


def word_of(digits: int, bits: int, position: int) -> int:
    """The 64 binary digits at 64 * position of so many bits."""
    return digits >> (bits - 64 * (position + 1)) & (2**64 - 1)


def grid(*axes: Iterable[object]) -> list[np.ndarray]:
    """All combinations of the axes' values, one flat array for each axis."""
    return [axis.ravel() for axis in np.meshgrid(*[np.asarray(axis) for axis in axes], indexing="ij")]
