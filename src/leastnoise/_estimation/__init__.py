"""Estimates from noisy measurements.

Least squares, non-negative answers, means, quantiles, records.
"""

from leastnoise._estimation._ab_test import (
    ABTest,
    ab_test,
    design_effect,
    sampling_variance,
    with_sampling_error,
)
from leastnoise._estimation._cdf import (
    HasLeastSquares,
    cdf,
    minimal_draws,
    quantiles,
    simulated_noise,
)
from leastnoise._estimation._comparisons import (
    Differences,
    compare_groups,
    compare_releases,
    pair_covariances,
    possible_values,
    shares,
    unit_of,
)
from leastnoise._estimation._expansion import (
    BucketExpansion,
    DataIndependentEstimate,
    Posterior,
    SmoothedEstimate,
    can_be_smoothed,
    shrunk_levels,
)
from leastnoise._estimation._least_squares import (
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
from leastnoise._estimation._local_non_negative import (
    from_residual_parts,
    locally_non_negative,
    residual_parts,
)
from leastnoise._estimation._means import DIVISORS, changes, means
from leastnoise._estimation._model import (
    MOST_RECORDS,
    ModelEstimator,
    NoisyTables,
    ShrunkToModel,
    draw_records,
    fitted_model,
)
from leastnoise._estimation._non_negative import (
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
from leastnoise._estimation._plane_expansion import AdaptiveGridEstimate
from leastnoise._estimation._public_facts import (
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
from leastnoise._estimation._shrinkage import HalvingTree, cheapest_blocks, shrink
from leastnoise._estimation._truncated import (
    DroppedBucketsEstimate,
    GroupedBucketSumsEstimate,
    TruncatedSumsEstimate,
    measured_by_group,
)
