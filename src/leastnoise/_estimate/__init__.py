"""Estimates from noisy measurements.

Least squares, non-negative answers, means, quantiles, records.
"""

from leastnoise._estimate._cdf import (
    HasLeastSquares,
    cdf,
    minimal_draws,
    quantiles,
    simulated_noise,
)
from leastnoise._estimate._expansion import (
    BucketExpansion,
    DataIndependentEstimate,
    DeviationBound,
    Posterior,
    SmoothedEstimate,
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
    estimate_products,
    join_measurements,
    join_observations,
)
from leastnoise._estimate._local_non_negative import (
    from_residual_parts,
    locally_non_negative,
    residual_parts,
)
from leastnoise._estimate._means import DIVISORS, changes, means
from leastnoise._estimate._model import (
    MOST_RECORDS,
    ModelEstimator,
    NoisyTables,
    ShrunkToModel,
    draw_records,
    fitted_model,
)
from leastnoise._estimate._non_negative import (
    REPETITIONS,
    ConsistentCells,
    NonNegativeCells,
    finest_table,
    make_consistent,
    monotone,
    nnls,
    non_negative,
    onto_simplex,
    projection_method,
    public_on,
    whole_numbers,
)
from leastnoise._estimate._plane_expansion import AdaptiveGridEstimate
from leastnoise._estimate._shrinkage import HalvingTree, cheapest_blocks, shrink
from leastnoise._estimate._stated import (
    Combination,
    PublicCounts,
    public_counts,
    public_counts_of_plan,
    read_combinations,
    read_public,
    sums_within,
    whole_with_sums,
    with_public_sums,
)
from leastnoise._estimate._truncated import (
    DroppedBucketsEstimate,
    GroupedBucketSumsEstimate,
    TruncatedSumsEstimate,
    measured_by_group,
)
