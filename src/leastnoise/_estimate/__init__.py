"""Estimates from observations: least squares, non-negative answers, means, quantiles, records."""

from leastnoise._estimate._agreed import Agreed, agree, finest_table, onto_simplex
from leastnoise._estimate._answer import Answer, Estimator, estimates
from leastnoise._estimate._cdf import HasLeastSquares, Quantile, cdf, few_draws, quantiles, simulated_noise
from leastnoise._estimate._changes import Changes, changes
from leastnoise._estimate._expansion import Expanded, Hidden, Independent
from leastnoise._estimate._least_squares import Estimate
from leastnoise._estimate._local_non_negative import LocallyNonNegative, from_residual_parts, locally_non_negative, residual_parts
from leastnoise._estimate._means import Means, means
from leastnoise._estimate._model import MOST_RECORDS, Modelled, Moved, NoisyTables, fitted_model, records
from leastnoise._estimate._nnls import REPETITIONS, NonNegativeCells, nnls
from leastnoise._estimate._non_negative import isotonic, monotone, non_negative, projection_method, whole_numbers
from leastnoise._estimate._outcome import Finding, Fixed, Outcome, Said, join, joined
from leastnoise._estimate._plane_expansion import Grid
from leastnoise._estimate._posterior import Posterior, shrunk_levels
from leastnoise._estimate._shrinkage import Halving, cheapest_blocks, shrink
from leastnoise._estimate._smoothed import Smoothed, can_be_smoothed
from leastnoise._estimate._stated import (
    PublicCounts,
    checked_public,
    public_counts,
    public_of,
    read_combinations,
    read_public,
    sums_within,
    whole_with_sums,
    with_public_sums,
)
from leastnoise._estimate._truncated import ByGroup, LeftOut, Truncated, measured_by_group
