"""Mechanisms that look at nothing but noisy answers to fixed queries: cells, total."""

from fractions import Fraction

import numpy as np

from baselines._baseline import Baseline, Ranges, Reals, Wholes
from baselines._noise import laplace
from leastnoise.measure import Entropy


def cells(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Every cell with noise of scale 1 / epsilon."""
    return laplace(x.reshape(-1), epsilon, entropy).reshape(x.shape).astype(np.float64)


def uniform(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """A noisy total, spread evenly."""
    return np.full(x.shape, laplace(x.sum().reshape(1), epsilon, entropy)[0] / x.size)


def cells_baseline(dimensions: int) -> Baseline:
    """Laplace noise on cells."""
    return Baseline(
        name="Identity",
        dimensions=dimensions,
        private=True,
        proof="One record changes one cell by 1; the noise has scale 1 / epsilon.",
        source="Dwork, McSherry, Nissim, Smith, TCC 2006",
        mechanism=cells,
    )


def uniform_baseline(dimensions: int) -> Baseline:
    """The total alone; released copies use the true one."""
    return Baseline(
        name="Uniform",
        dimensions=dimensions,
        private=True,
        proof="One record changes the total by 1; the noise has scale 1 / epsilon. The rest is post-processing.",
        source="Hay, Machanavajjhala, Miklau, Chen, Zhang, SIGMOD 2016 (as a control)",
        mechanism=uniform,
    )
