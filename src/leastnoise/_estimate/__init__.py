"""Estimates from noisy measurements.

Least squares, non-negative answers, means, quantiles, records.
"""

from leastnoise._estimate._cdf import HasLeastSquares, cdf, few_draws, quantiles, simulated_noise
from leastnoise._estimate._expansion import (
    Expanded,
    Hidden,
    Independent,
    Posterior,
    Smoothed,
    can_be_smoothed,
    shrunk_levels,
)
from leastnoise._estimate._least_squares import (
    Answer,
    Estimate,
    Estimator,
    Finding,
    Outcome,
    Said,
    estimates,
    join,
    joined,
)
from leastnoise._estimate._local_non_negative import (
    from_residual_parts,
    locally_non_negative,
    residual_parts,
)
from leastnoise._estimate._means import DIVISORS, changes, means
from leastnoise._estimate._model import (
    MOST_RECORDS,
    Modelled,
    Moved,
    NoisyTables,
    fitted_model,
    records,
)
from leastnoise._estimate._non_negative import (
    REPETITIONS,
    Agreed,
    NonNegativeCells,
    agree,
    finest_table,
    monotone,
    nnls,
    non_negative,
    onto_simplex,
    projection_method,
    public_on,
    whole_numbers,
)
from leastnoise._estimate._plane_expansion import Grid
from leastnoise._estimate._shrinkage import Halving, cheapest_blocks, shrink
from leastnoise._estimate._stated import (
    Combination,
    PublicCounts,
    public_counts,
    public_of,
    read_combinations,
    read_public,
    sums_within,
    whole_with_sums,
    with_public_sums,
)
from leastnoise._estimate._truncated import ByGroup, LeftOut, Truncated, measured_by_group
