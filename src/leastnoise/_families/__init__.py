"""Strategy families along one attribute: parameters, fit, rounding, inverse.

Each file defines one family.

Planners use a family through the type `FitFamily`. A `FitFamily` is a function that takes the
`Gram` matrix of the workload and the norm of the noise, and returns a strategy with integer
coefficients (``_gram``). Code that computes errors uses the `GramInverse` of a measured strategy:
the inverse of the strategy's Gram matrix (``_inverse``). The inverse is registered for the class of
the strategy's operator. Start reading with these two files, then continue with a short family such
as `haar` in ``_tree``.

cells, runs of cells, any matrix    ``_inverse``        trees                     ``_tree``
cells and rows                      ``_p_identity``     the same within blocks    ``_blocks``
along time, row by row              ``_toeplitz``       ranges of equal widths    ``_windows``
matrices on up to 4096 cells        ``_dense``          all but the total         ``_contrasts``
levels of groups of any sizes       ``_level_trees``

``_queries`` has closed-form properties of operators and row spaces. ``_search`` has the tools of
all searches: a deadline, L-BFGS, and a dual ascent.
"""

from leastnoise._families._blocks import (
    NestedInverse,
    block_gram,
    block_width,
    blocks_objective,
    fit_blocks,
    p_identity_blocks,
)
from leastnoise._families._contrasts import (
    GroupContrasts,
    balanced_rounding,
    best_tilt,
    contrast_strength,
    contrast_variances,
    excludes_total,
    fit_contrast_rows,
    group_contrasts,
    invert_contrast_gram,
)
from leastnoise._families._dense import (
    column_norm,
    eigen_design,
    fill_columns,
    fit_gaussian_optimum,
    gaussian_optimum,
    singular_value_bound,
    to_dyadic,
)
from leastnoise._families._gram import (
    FitFamily,
    FittedFamily,
    Gram,
    dense_gram,
    fit_family,
    fit_on_merged_cells,
    gram_of,
    identity_family,
    is_exchangeable,
    merge_equal_cells,
    order_cells,
    seriate_cells,
    sum_grams,
)
from leastnoise._families._inverse import (
    MOST_LISTED,
    CellsInverse,
    DenseInverse,
    GramInverse,
    UndeterminedQuery,
    invert_gram,
)
from leastnoise._families._level_trees import (
    InvariantSubspace,
    LevelInverse,
    Levels,
    Orbits,
    nested_levels,
    partition_groups,
    trace_of_root,
)
from leastnoise._families._p_identity import (
    PIdentity,
    Support,
    fit_p_identity,
    p_identity,
    p_identity_objective,
    p_identity_rmse,
    p_identity_seconds,
    positive_inverse,
)
from leastnoise._families._queries import (
    MOST_DENSE,
    QUICKER_BY_GRAM,
    RowSpace,
    apply_along_axes,
    apply_gram,
    apply_in_parts,
    apply_weighted_gram,
    column_weights,
    first_cells,
    full_space,
    gram_diagonal,
    gram_generators,
    interval_ends,
    invert_within,
    is_zero_one,
    restrict_to_runs,
    row_space,
    row_space_of_gram,
    singular_values,
    triangular_form,
    unit_rows,
    weighted_gram,
)
from leastnoise._families._search import (
    Deadline,
    NotApplicable,
    check_deadline,
    deadline_passed,
    dual_ascent,
    minimize_lbfgs,
    time_limit,
)
from leastnoise._families._toeplitz import (
    MOST_LISTED_WORK,
    ToeplitzInverse,
    causal_hierarchy,
    causal_strategies,
    convolve,
    ending_variances,
    first_rows,
    inverse_series,
    square_root,
    toeplitz_root,
    weighted_cells,
)
from leastnoise._families._tree import (
    ScaledTree,
    TreeInverse,
    best_hierarchy,
    even_tree,
    fit_level_tree,
    haar,
    level_tree,
    tree_factor,
)
from leastnoise._families._windows import causal_root, diagonal_sums, full_set_bound, window_root
