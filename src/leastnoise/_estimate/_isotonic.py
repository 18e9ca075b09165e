"""Isotonic regression of sums or counts that cannot fall: less error, a bias, and error bars that no longer are those of the plan.

Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010.
"""

import numpy as np
import numpy.typing as npt

from leastnoise._check import refuse
from leastnoise._check.arrays import FloatArray


def isotonic(answers: npt.ArrayLike, *, variances: npt.ArrayLike | None = None) -> FloatArray:
    """The nearest answers that do not fall.

    Guarantees: post-processing. The squared distance from the truth, weighted by the variances, never grows.

    Edge cases: no answers give no answers.
    """
    from scipy.optimize import isotonic_regression

    values = np.asarray(answers, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise refuse("the answers", f"an array of shape {values.shape}", "a flat array of finite numbers")
    if values.size == 0:
        return values
    spread = np.ones(len(values)) if variances is None else np.asarray(variances, dtype=np.float64)
    if spread.shape != values.shape or not (np.isfinite(spread) & (spread > 0)).all():
        raise refuse("the variances", f"an array of shape {spread.shape}", f"{len(values)} finite numbers above 0")
    return np.asarray(isotonic_regression(values, weights=1 / spread).x)
