"""Estimates from noisy measurements.

The package computes least-squares and non-negative answers, means, quantiles and records.
"""

from leastnoise._estimation._ab_test import (
    ABTest,
    ab_test,
    design_effect,
    sampling_variance,
)
from leastnoise._estimation._cdf import (
    HasLeastSquares,
    Quantiles,
    cdf,
    cumulative_counts,
    cumulative_query,
    minimal_draws,
    move_to_chosen_cells,
    quantile_difference,
    quantiles,
    simulated_noise,
)
from leastnoise._estimation._comparisons import (
    ComparisonSubject,
    Differences,
    axes_of,
    compare_groups,
    compare_releases,
    pair_covariances,
    possible_values,
    unit_of,
    with_sampling_error,
)
from leastnoise._estimation._controlled_rounding import MOST_CONTROLLED_CELLS, round_controlled
from leastnoise._estimation._correlations import Correlations, correlations, pair_columns
from leastnoise._estimation._determination import (
    Determination,
    determination_columns,
    expected_determination,
    r_squared,
)
from leastnoise._estimation._expansion import (
    BucketExpansion,
    DataIndependentEstimate,
    Posterior,
    answers_of,
    shrunk_levels,
)
from leastnoise._estimation._least_squares import (
    Answer,
    CatalogueText,
    Estimate,
    Estimator,
    Finding,
    OneSidedBounds,
    Outcome,
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
from leastnoise._estimation._mixture import (
    RESIDUAL,
    Mixture,
    NoisyTable,
    fit_mixture,
    refit_mixture,
    smoothed_shares,
)
from leastnoise._estimation._model_estimates import (
    MOST_RECORDS,
    ModelEstimator,
    NoisyTables,
    ShrunkToModel,
    draw_records,
    fitted_model,
    impossible_rows,
    round_systematically,
)
from leastnoise._estimation._moments import EstimatedMoments
from leastnoise._estimation._non_negative import (
    REPETITIONS,
    ConsistentCells,
    NonNegativeCells,
    finest_table,
    make_consistent,
    monotone,
    nnls,
    non_negative,
    non_negative_cells,
    project_to_parent_sums,
    project_to_simplex,
    project_to_simplices,
    projection_method,
    public_sums_on,
    simulate_noise,
    whole_numbers,
)
from leastnoise._estimation._plane_expansion import (
    AdaptiveGridEstimate,
    block_counts,
    bounded_cells,
    laplace_variances,
    nested_blocks,
    shrinkage_factors,
)
from leastnoise._estimation._public_facts import (
    Combination,
    PublicCounts,
    apply_public_facts,
    public_counts,
    public_counts_of_plan,
    public_sums_within,
    read_combinations,
    read_public,
    round_to_public_sums,
    scale_to_public_sums,
)
from leastnoise._estimation._regression import (
    Regression,
    coefficient_columns,
    expected_slope_margins,
    regression,
)
from leastnoise._estimation._shares import shares
from leastnoise._estimation._shrinkage import (
    HalvingTree,
    cheapest_bucket_starts,
    checked_errors,
    shrink,
)
from leastnoise._estimation._smoothing import (
    PosteriorMeans,
    RunTree,
    SmoothedEstimate,
    can_be_smoothed,
    level_prior,
    posterior_means,
)
from leastnoise._estimation._top_down import (
    MOST_CELLS_ALONG,
    MOST_TOP_DOWN_CELLS,
    check_top_down,
    make_top_down,
    top_down_measures,
)
from leastnoise._estimation._truncated import (
    DroppedBucketsEstimate,
    GroupedBucketSumsEstimate,
    TruncatedSumsEstimate,
    measured_by_group,
)
from leastnoise._estimation._variances import (
    NoisyMoments,
    expected_variance_intervals,
    variance_intervals,
    variances,
)
