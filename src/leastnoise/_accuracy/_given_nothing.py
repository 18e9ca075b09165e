"""Least squares where some of the unknowns are taken for nothing: what is left of the others, and what an error in that does to them."""

from dataclasses import dataclass

import numpy as np

from leastnoise._check.arrays import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class GivenNothing:
    """Least squares estimates given that the unknowns that are not kept are 0."""

    kept: BoolArray
    covariance: FloatArray
    carried: FloatArray

    @staticmethod
    def of(covariance: FloatArray, kept: BoolArray) -> "GivenNothing":
        """From the covariance C of least squares on all unknowns.

        With i for what is kept and o for the rest, the estimates are x_i - C_io C_oo^-1 x_o with the covariance C_ii - C_io C_oo^-1 C_oi:
        least squares on the same measurements without the columns of the rest.
        """
        size = np.sqrt(np.diag(covariance))
        scaled = covariance / size / size[:, None]
        inside, outside = np.flatnonzero(kept), np.flatnonzero(~kept)
        across = np.linalg.solve(scaled[np.ix_(outside, outside)], scaled[np.ix_(outside, inside)]).T
        left = np.zeros_like(covariance)
        left[np.ix_(inside, inside)] = scaled[np.ix_(inside, inside)] - across @ scaled[np.ix_(outside, inside)]
        left = (left + left.T) / 2 * size * size[:, None]
        carried = np.diag(np.where(kept, 0.0, 1.0))
        carried[np.ix_(inside, outside)] = across * size[inside, None] / size[outside]
        return GivenNothing(kept, left, carried)

    def estimates(self, values: FloatArray) -> FloatArray:
        """From least squares estimates of all unknowns, shape (m,); 0 for what is not kept."""
        return np.asarray(values - self.carried @ np.where(self.kept, 0.0, values))
