"""Isotonic regression of sums or counts that cannot fall: less error, a bias, and error bars that no longer are those of the plan.

Answers that were cut at different thresholds miss different amounts, and then pulling them together spreads the bias of the worst: the
finding of Wu et al. on queries with a threshold each. So only answers that share a threshold are pulled together, unless the caller gives
the whole covariance, whose inverse is the metric of the noise.

Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010; Wu, Pujol, Kotsogiannis, Machanavajjhala, section 4 (effects of isotonic regression).
"""

import numpy as np
import numpy.typing as npt

from leastnoise._check import InputError, refuse, whole
from leastnoise._check.arrays import FloatArray

_MOST_JOINT = 512


def isotonic(
    answers: npt.ArrayLike,
    *,
    variances: npt.ArrayLike | None = None,
    covariance: npt.ArrayLike | None = None,
    thresholds: npt.ArrayLike | None = None,
) -> FloatArray:
    """The nearest answers that do not fall.

    Args:
        answers: in the order in which the truth cannot fall, shape (m,).
        variances: of the noise of each; None for alike. Answers are pulled in proportion to them.
        covariance: of the noise, shape (m, m), in the place of ``variances``: the nearest in the metric of its inverse, over all answers
            whatever their thresholds; at most 512 answers.
        thresholds: what each answer was cut at; answers of different thresholds are not pulled together.

    Returns:
        Shape (m,). It does not fall among the answers of each threshold.

    Raises:
        InputError: not finite, shapes that do not fit, a variance that is not above 0, or both variances and a covariance.

    Guarantees: post-processing. With one threshold and no cut the squared distance from the truth never grows, in the metric that is used:
        weighted by the variances, or in that of the inverse covariance. The latter is no promise for the answers themselves: noise that
        adds up along the line is clipped where it falls, which adds mass.

    Edge cases: no answers give no answers.

    >>> isotonic([1.0, 3.0, 2.0, 5.0]).tolist(), isotonic([1.0, 3.0, 2.0], variances=[1, 1, 3]).tolist()
    ([1.0, 2.5, 2.5, 5.0], [1.0, 2.75, 2.75])
    >>> isotonic([1.0, 3.0, 2.0, 5.0], thresholds=[9, 9, 8, 8]).tolist()
    [1.0, 3.0, 2.0, 5.0]
    """
    from scipy.optimize import isotonic_regression

    values = np.asarray(answers, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise refuse("the answers", f"an array of shape {values.shape}", "a flat array of finite numbers")
    if variances is not None and covariance is not None:
        raise InputError("Give the variances or the covariance of the noise; got both.")
    if values.size == 0:
        return values
    if covariance is not None:
        return _in_metric(values, np.asarray(covariance, dtype=np.float64))
    spread = np.ones(len(values)) if variances is None else np.asarray(variances, dtype=np.float64)
    if spread.shape != values.shape or not (np.isfinite(spread) & (spread > 0)).all():
        raise refuse("the variances", f"an array of shape {spread.shape}", f"{len(values)} finite numbers above 0")
    cut = np.zeros(len(values)) if thresholds is None else np.asarray(thresholds)
    if cut.shape != values.shape:
        raise refuse("the thresholds", f"an array of shape {cut.shape}", f"{len(values)} numbers, one an answer")
    fitted = values.copy()
    for threshold in np.unique(cut):
        same = cut == threshold
        fitted[same] = isotonic_regression(values[same], weights=1 / spread[same]).x
    return fitted


def _in_metric(values: FloatArray, covariance: FloatArray) -> FloatArray:
    """Least squares for the first answer, of any sign, and the increases, at least 0, in the metric of the inverse covariance."""
    from scipy.optimize import lsq_linear

    count = len(values)
    if covariance.shape != (count, count) or count > _MOST_JOINT or not np.isfinite(covariance).all():
        raise refuse(
            "the covariance", f"an array of shape {covariance.shape}", f"a finite square one for {min(count, _MOST_JOINT)} answers"
        )
    try:
        root = np.linalg.inv(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        raise InputError("The covariance must be positive definite; leave out answers that are sums of others.") from None
    steps = np.tril(np.ones((count, count)))
    lower = np.append(-np.inf, np.zeros(count - 1))
    found = lsq_linear(root @ steps, root @ values, bounds=(lower, np.full(count, np.inf)), method="bvls", tol=1e-12)
    return np.asarray(steps @ found.x)


def simulated_isotonic_errors(
    answers: npt.ArrayLike, noise: npt.ArrayLike, *, variances: npt.ArrayLike | None = None, thresholds: npt.ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """What isotonic regression does to the errors: bias and root mean square error in simulated releases.

    Args:
        answers: the isotonic answers, taken as the truth of the simulated releases, shape (m,).
        noise: simulated noise of the unbiased answers, shape (draws, m), at least 2 draws.
        variances: as for `isotonic`.
        thresholds: as for `isotonic`.

    Returns:
        Bias and root mean square error of every answer, each of shape (m,). The Monte Carlo error of the latter is about
        1 / sqrt(2 draws).

    Guarantees: a parametric bootstrap: the true errors depend on the true answers, which are not known.

    >>> noise = np.random.default_rng(1).normal(size=(500, 3))
    >>> bias, rmse = simulated_isotonic_errors([5.0, 5.0, 5.0], noise)
    >>> bool((rmse < 1).all()), bool(bias[0] < -0.3 and bias[2] > 0.3)
    (True, True)
    """
    truth, draws = np.asarray(answers, dtype=np.float64), np.asarray(noise, dtype=np.float64)
    if draws.ndim != 2 or draws.shape[1:] != truth.shape:
        raise refuse("the noise", f"an array of shape {draws.shape}", f"simulated releases of {len(truth)} answers")
    whole("the number of simulated releases", len(draws), 2)
    errors = np.array([isotonic(truth + draw, variances=variances, thresholds=thresholds) - truth for draw in draws])
    return errors.mean(axis=0), np.sqrt((errors**2).mean(axis=0))
