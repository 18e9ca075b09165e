"""Expected errors of a plan's answers, lower bounds, interval widths.

The errors are exact. Planners and error bars use the same functions.

``_structure`` computes the covariance of least squares from the measured queries of a plan
(``_equations``). The covariance has four forms with the same interface. ``_product_covariance``
has the form for tables with one strategy along every attribute, and ``_pair`` the form for two
tables. ``_joint`` has two forms over joint cells: one matrix, or a linear solver. Each form
computes variances, covariances and the estimate, and raises an error for queries that the
measurements do not determine (``_undetermined``). ``_lower_bounds`` has lower bounds on the
error, and ``_noise_intervals`` the widths of intervals. ``_memory`` raises an error before
computations that need too much memory. Start reading at `evaluate_plan` in ``_structure``.
"""

from leastnoise._error._comparison_errors import (
    ComparisonInterval,
    Estimated,
    PairCovariances,
    correlation_of,
    difference_interval,
    error_covariance,
    estimate_quotient,
    expand,
    linear_difference,
    quotient_interval,
    sum_interval,
)
from leastnoise._error._determination_errors import (
    EffectNoise,
    effect_noise,
    standardised_effects,
)
from leastnoise._error._equations import (
    Cells,
    Covariance,
    Equations,
    NoisyBlock,
    Structure,
    block_rows,
    block_variance,
    centred_quantities,
    centring_midpoint,
    check_noise,
    covariances,
    equations,
    is_nontrivial,
    midpoint,
    subsets,
)
from leastnoise._error._joint import (
    DenseStructure,
    IterativeStructure,
    JointBlocks,
    confidence_factor,
    conjugate_gradients,
    joint_rows_in_parts,
    joint_variances,
)
from leastnoise._error._k_norm_law import (
    KNormVariances,
    LargeScaleVariances,
    cell_multiplier,
    k_norm_variances,
    measured_multiplier,
    noise_name,
)
from leastnoise._error._lower_bounds import (
    AttributeSetTerms,
    bound_seconds,
    centred_nuclear_norm,
    lower_bound,
    nuclear_norm,
    nuclear_norm_parts,
    subset_sums,
)
from leastnoise._error._memory import available_memory, memory_limit, require_memory
from leastnoise._error._moment_errors import (
    Entry,
    Gradient,
    MomentScales,
    coefficient_gradients,
    coefficient_scales,
    correlation_gradient,
    covariance_gradient,
    expected_statistic_errors,
    information_gradients,
    moment_scales,
    public_eigenvalue,
    smallest_eigenvalue,
)
from leastnoise._error._noise_intervals import (
    LEVEL,
    ConstrainedLeastSquares,
    checked_level,
    interval_multiplier,
    noise_variance,
    ratio_interval,
    widen_interval,
)
from leastnoise._error._pair import PairStructure, pair_structure, pair_terms
from leastnoise._error._product_covariance import ProductStructure
from leastnoise._error._public_scales import (
    NumberAtScales,
    largest_relative_derivatives,
    numbers_at_scales,
    r_squared_points,
    r_squared_std_error,
    slope_points,
    statistic_scales,
    variance_points,
)
from leastnoise._error._structure import (
    ROUNDING,
    StatisticError,
    block_precisions,
    combine_structures,
    covariance_by_measure,
    evaluate_plan,
    exact_variance,
    largest_mean_deviation,
    mean_error,
    measure_covariance,
    quantity_structure,
    statistic_errors,
)
from leastnoise._error._undetermined import UnsupportedQuery
from leastnoise._error._variance_errors import squared_deviation, variance_error
