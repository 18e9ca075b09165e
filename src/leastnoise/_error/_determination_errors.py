"""Noise of the coefficient of determination R^2, from the errors of sums.

R^2 is |v|^2, where v = L^-1 c / sqrt(s). Here c has the covariances of the predictors with the
response, and s is the variance of the response. L L^T is the matrix of the covariances of the
predictors. A small error e of v has a part along v and a part orthogonal to v. The part along v is
the error of R to first order. At R = 0 the orthogonal part decides the error of R^2, to second
order:

    |v + e|^2 - |v|^2 = 2 v e + |e|^2,    e = w + u (R / 2) (q / f - d / s).

Here u = v / R, and w = L^-1 (dc - dS b) / sqrt(s), where dc and dS are the errors of the
covariances and b are the coefficients. f is the variance of the fitted values. q is the error of f
for fixed coefficients, and d is the error of s. These statements follow from the expansion of c
S^-1 c / s to second order in dc and dS.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leastnoise._error._moment_errors import Gradient, MomentScales, predictor_rows
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check.arrays import FloatArray

_LAPLACE_EXCESS = 3.0  # the excess kurtosis of Laplace noise; normal noise has 0
_TINY = np.finfo(np.float64).tiny  # a divisor above 0 for groups whose R is exactly 0


class StandardisedEffects(NamedTuple):
    """For each group, a vector v of effects with squared length R^2.

    Attributes:
        values: the vectors, shape (groups, predictors).
        gradients: the value of each component of v, and the derivatives of its error.
    """

    values: FloatArray
    gradients: tuple[Gradient, ...]

    @property
    def squared_length(self) -> FloatArray:
        """R^2 as computed from the noisy moments, shape (groups,)."""
        return np.asarray((self.values**2).sum(axis=-1))

    def direction(self) -> FloatArray:
        """Return v / |v| of each group, or 0 where v is 0."""
        return _unit_vectors(self.values)


@dataclass(frozen=True, slots=True)
class EffectNoise:
    """The noise e in the standardised effects v, by group.

    Attributes:
        mean: the mean of |e|^2.
        variance: the variance of |e|^2.
        along: the variance of e in the direction of v.
    """

    mean: FloatArray
    variance: FloatArray
    along: FloatArray

    def std_error(self, r_squared: FloatArray) -> FloatArray:
        """Return the standard errors of |v + e|^2 for true values of R^2."""
        return np.asarray(np.sqrt(self.variance + 4 * r_squared * self.along))


def effect_noise(
    scales: MomentScales, effects: StandardisedEffects, noise: FloatArray, noise_kind: Noise
) -> EffectNoise:
    """Return the noise of standardised effects.

    Suppose that e = D z, where the noises z are independent and have variance 1 and excess kurtosis
    k. Then |e|^2 has the variance 2 tr (D D^T)^2 + k sum_m |D_m|^4, where D_m is column m of D.

    Args:
        scales: the scales of the moments.
        effects: the effects of each group.
        noise: the standard errors of the moments, from `MomentScales.noise`.
        noise_kind: the kind of noise of the sums.
    """
    parts = [scales.contributions(gradient, noise) for gradient in effects.gradients]
    shares = np.stack([part.reshape(len(part), -1) for part in parts], axis=1)
    covariance = shares @ np.swapaxes(shares, -1, -2)
    variance = 2 * (covariance**2).sum(axis=(-2, -1))
    if noise_kind.norm == 1:
        variance = variance + _LAPLACE_EXCESS * ((shares**2).sum(axis=1) ** 2).sum(axis=-1)
    direction = effects.direction()
    along = (direction[:, None, :] @ covariance @ direction[:, :, None])[:, 0, 0]
    return EffectNoise(np.trace(covariance, axis1=-2, axis2=-1), variance, along)


def standardised_effects(moments: FloatArray) -> StandardisedEffects:
    """Return the standardised effects of the predictors and their derivatives.

    Args:
        moments: matrices of shape (groups, rows, rows) with both triangles. The eigenvalues of the
            normal equations and the variance of the response must be above 0.

    Returns:
        The effects of the other variables (the predictors) on the first variable (the response).
    """
    count = moments[..., 0, 0]
    means = moments[..., 0, 1:] / count[..., None]
    covariances = moments[..., 1:, 1:] / count[..., None, None]
    covariances = covariances - means[..., :, None] * means[..., None, :]
    variance = covariances[..., 0, 0]
    # Each column of ``whitening`` has the coefficients of a combination of predictors. The
    # combinations have the variance 1, and are uncorrelated.
    lower = np.linalg.cholesky(covariances[..., 1:, 1:])
    whitening = np.swapaxes(np.linalg.inv(lower), -1, -2)
    values = np.swapaxes(whitening, -1, -2) @ covariances[..., 1:, 0][..., None]
    values = values[..., 0] / np.sqrt(variance)[..., None]
    direction = _unit_vectors(values)

    predictors = [row - 1 for row in predictor_rows(moments.shape[-1])[1:]]
    groups = moments.shape[:-2]
    size = moments.shape[-1]
    response = np.zeros((*groups, size - 1))
    response[..., 0] = 1.0
    fitted = np.zeros_like(response)
    fitted[..., predictors] = (whitening @ direction[..., None])[..., 0]
    residual = response.copy()
    coefficients = (whitening @ values[..., None])[..., 0] * np.sqrt(variance)[..., None]
    residual[..., predictors] = -coefficients

    scale_slopes = _covariance_slopes(fitted, fitted, moments, means, np.ones_like(count))
    response_slopes = _covariance_slopes(response, response, moments, means, variance)
    along_slopes = scale_slopes - response_slopes / variance[..., None, None]
    gradients = []
    for component in range(len(predictors)):
        combination = np.zeros_like(response)
        combination[..., predictors] = whitening[..., :, component]
        slopes = _covariance_slopes(combination, residual, moments, means, np.zeros_like(count))
        slopes = slopes / np.sqrt(variance)[..., None, None]
        slopes = slopes + (values[..., component] / 2)[..., None, None] * along_slopes
        gradients.append(Gradient(values[..., component], slopes))
    return StandardisedEffects(values, tuple(gradients))


def _unit_vectors(vectors: FloatArray) -> FloatArray:
    """Divide each vector by its length; a vector of length 0 stays 0."""
    length = np.sqrt((vectors**2).sum(axis=-1))
    return np.asarray(vectors / np.maximum(length, _TINY)[..., None])


def _covariance_slopes(
    first: FloatArray,
    second: FloatArray,
    moments: FloatArray,
    means: FloatArray,
    covariance: FloatArray,
) -> FloatArray:
    """Return the derivatives of the covariance between two combinations.

    Args:
        first: the coefficients of a combination of the variables in each group.
        second: the coefficients of another combination, or of the same combination.
        moments: the moments of each group.
        means: the mean of each variable in each group.
        covariance: the covariance of the combinations.
    """
    count = moments[..., 0, 0]
    rows = [
        np.concatenate([-(part * means).sum(axis=-1)[..., None], part], axis=-1)
        for part in (first, second)
    ]
    full = rows[0][..., :, None] * rows[1][..., None, :]
    slopes = np.triu(full) + np.triu(np.swapaxes(full, -1, -2), 1)
    slopes[..., 0, 0] -= covariance
    return np.asarray(slopes / count[..., None, None])
