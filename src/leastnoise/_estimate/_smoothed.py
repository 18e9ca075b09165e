"""Shrunk answers from any queries along one attribute, such as those of the best plan that does not look at the data.

The cells are taken for normal: their total is free, and each difference of the halves of an aligned block (`Halving`) has mean 0 and a
variance of its own, which `shrink` finds from the least squares estimates; on the widest blocks, which are few, it is free too. Given
these variances the posterior takes the whole covariance of the noise into account, so that what queries cancel stays cancelled: where
nothing can be gained it is least squares. Functions of noisy numbers alone.

Source: docs/decisions/0054-smoothed-answers.md; the variances are those of wavelet shrinkage in `leastnoise._estimate._shrinkage`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._accuracy import block_variance
from leastnoise._check.arrays import FloatArray
from leastnoise._estimate._answer import Answer
from leastnoise._estimate._blocks import told_by
from leastnoise._estimate._intervals import answers_of
from leastnoise._estimate._least_squares import Estimate
from leastnoise._estimate._shrinkage import Halving, shrink
from leastnoise._linop import Total
from leastnoise._measurements import Observation
from leastnoise._workload import Product

_UNKNOWN = 1e-9  # precision of what was not measured, over the largest
_FREE = 1e6  # prior variance of the total, over its square and that of its noise
_LEAST_GAIN = 1e-6
_FEW = 4  # blocks of a level: no prior can be learned from them
_CLEAR = 10.0  # differences above so many of their standard errors have at least their square as prior variance, and stay as they are


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The posterior of the cells of one attribute, with the intervals of least squares."""

    plain: Estimate
    cells: FloatArray

    @staticmethod
    def of(observation: Observation) -> "Smoothed":
        """From the observation of one step along one attribute."""
        information, told = _information(observation)
        halving = Halving(len(told))
        unknown = _UNKNOWN * float(np.diag(information).max())
        noise = np.asarray(np.linalg.inv(information + unknown * np.eye(len(told))), dtype=np.float64)
        spread, tail = halving.variances(noise), None
        if observation.measurements.noise.norm == 1:
            tail = float(np.sqrt(np.median(np.diag(noise)) / 2))
        plain, measured = halving.differences((noise @ told)[None])
        prior = _priors(measured, spread, shrink(measured, spread, tail).variances)
        mean = _posterior_mean(halving, information, told, _FREE * float(noise.sum() + plain.sum() ** 2), prior)
        total, parts = halving.differences(mean[None])
        return Smoothed(Estimate(observation), halving.together(total, parts)[0])

    def estimate(self, product: Product) -> Answer:
        """Posterior means, with the intervals of least squares: chosen without the data, they hold the truth whatever was shrunk."""
        values, plain = answers_of(product, self.cells), self.plain.estimate(product)
        return Answer(values, plain.noise_std, np.abs(values - plain.values), centre=plain.values)


def _information(observation: Observation) -> tuple[FloatArray, FloatArray]:
    """The inverse covariance of the noise, as the cells see it, and what it tells of them: shapes (n, n) and (n,)."""
    made = observation.measurements
    (name,) = {name for block in made.blocks for factor in block.factors for name in factor.attributes}
    size = made.domain.kind(name).size
    information, told = np.zeros((size, size)), np.zeros(size)
    for block, values in zip(made.blocks, observation.values, strict=True):
        operator = block.factors[0].operator if block.factors else Total(size)
        precision = block.scaling() ** 2 / block_variance(made, block)
        more = told_by(operator, precision, values / made.grid)
        information, told = information + more[0], told + more[1]
    return (information + information.T) / 2, told


def _priors(parts: Sequence[FloatArray], noise: Sequence[FloatArray], posterior: Sequence[FloatArray]) -> FloatArray:
    """Prior variances of all differences, with which noise leaves the posterior variances that were found; free on few blocks."""
    found = []
    for part, own, left in zip(parts, noise, posterior, strict=True):
        gain = np.clip(left[0] / np.where(own > 0, own, 1.0) if len(own) > _FEW else 1.0, _LEAST_GAIN, 1 - _LEAST_GAIN)
        square = np.where(part[0] ** 2 > _CLEAR**2 * own, part[0] ** 2, 0.0)
        found.append(np.where(own > 0, np.maximum(own * gain / (1 - gain), square), 0.0))
    return np.concatenate([np.zeros(0), *found])


def _posterior_mean(halving: Halving, information: FloatArray, told: FloatArray, total: float, prior: FloatArray) -> FloatArray:
    """Means of the cells, shape (n,), given prior variances of the total and the differences."""
    from scipy.linalg import cho_factor, cho_solve

    spread = np.sqrt(np.append(total, prior))
    inner = halving.transposed(halving.transposed(information).T) * spread * spread[:, None]
    inner[np.diag_indices_from(inner)] += 1
    found = cho_solve(cho_factor(inner, lower=True, overwrite_a=True), spread * halving.transposed(told[None])[0])
    return np.asarray(halving.synthesised((spread * found)[None])[0])
