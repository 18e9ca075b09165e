"""Multipliers of simultaneous intervals, from simulated noise.

Let e_i be the errors of some estimates, and s_i their standard errors. Let c be a quantile of max_i
|e_i| / s_i, at the level of the intervals. Then, with a probability equal to this level, all true
values lie within c s_i of their estimates simultaneously. c is an order statistic of simulated
noise. For any noise, the coverage is at least the level, up to the errors of the delta method for
quotients. The band of a distribution function has the same property. If the simulation would be too
large, the union bound is used: every interval gets an equal part of the error probability, so the
intervals are slightly wider.
"""

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np

from leastnoise._error import interval_multiplier
from leastnoise._estimation._cdf import DRAWS
from leastnoise._estimation._least_squares import Estimate
from leastnoise._estimation._non_negative import simulate_noise
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._workload import Product

_SEED = 20251129  # of the simulation, which is public; any number
_MOST_SIMULATED = 2**22
"""The largest number of answers times measured numbers, and of answers times draws."""


def simulate_answers(
    estimate: Estimate, products: Sequence[Product]
) -> dict[Product, FloatArray] | None:
    """Return simulated errors of the answers to products, or None if too large.

    In each draw, all products get the same simulated noise.

    Args:
        estimate: the estimate of a release.
        products: tables that the measurements determine.

    Returns:
        For each product an array of shape (draws, *product.shape); None if the simulation would be
        too large.
    """
    plan = estimate.observation.measurements
    distinct = [*dict.fromkeys(products)]
    blocks = sorted(
        set(chain.from_iterable(estimate.block_indices(product.measure) for product in distinct))
    )
    measured = sum(plan.blocks[index].rows for index in blocks)
    answers = sum(product.rows for product in distinct)
    if measured > DRAWS or answers * max(measured, DRAWS) > _MOST_SIMULATED:
        return None
    noise = simulate_noise(plan, blocks, DRAWS, np.random.default_rng(_SEED))
    errors = {}
    for product, matrix in zip(distinct, estimate.answer_matrices(distinct), strict=True):
        noise_of_product = [noise[index] for index in estimate.block_indices(product.measure)]
        draws = matrix @ np.concatenate(noise_of_product)
        errors[product] = draws.T.reshape(DRAWS, *product.shape)
    return errors


def simulate_sampling_errors(stds: FloatArray, sample_index: int) -> FloatArray:
    """Return draws of a sample's errors, shape (draws, *stds.shape).

    Args:
        stds: the standard errors of the sample.
        sample_index: names the sample; the errors of two samples are independent.
    """
    generator = np.random.default_rng([_SEED, sample_index])
    return np.asarray(generator.standard_normal((DRAWS, *stds.shape)) * stds)


def joint_multiplier(
    errors: FloatArray | None, stds: FloatArray, noise: Noise, level: float
) -> float:
    """Return the half width of simultaneous intervals, in standard errors.

    Args:
        errors: simulated errors, shape (draws, *stds.shape); None without a simulation.
        stds: the standard errors; NaN for unbounded intervals, which contain every value.
        noise: the kind of noise.
        level: the probability that all intervals contain their true values.
    """
    has_error = np.isfinite(stds) & (stds > 0)
    intervals = int(has_error.sum())
    if intervals <= 1:
        return interval_multiplier(noise, level)
    rank = math.ceil((DRAWS + 1) * level - 1e-9)
    if errors is None or rank > DRAWS:
        return interval_multiplier(noise, 1 - (1 - level) / intervals)
    peaks = np.abs(errors[:, has_error] / stds[has_error]).max(axis=-1)
    return float(np.sort(peaks)[rank - 1])
