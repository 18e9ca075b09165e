"""Strategy families along one attribute: parameters, fit, rounding, inverse.

Each file holds one family.

For a planner a family is a `Fit`: a function from the `Gram` matrix of the workload and the norm of
the noise to a strategy in whole numbers (``_gram``). Whoever needs errors uses the `Basis` of a
measured strategy, the inverse of its Gram matrix (``_inverse``), which is registered for the
operator. Begin with these two files, then with a short family, ``_contrasts``.

cells, runs of cells, any matrix    ``_inverse``        trees                     ``_tree``
cells and rows                      ``_p_identity``     the same within blocks    ``_blocks``
along time, row by row              ``_toeplitz``
matrices on up to 4096 cells        ``_dense``          all but the total         ``_contrasts``
levels of groups of any sizes       ``_levels``

``_queries`` has facts about operators and row spaces, ``_search`` the parts of all searches: a
clock, a descent, an iteration of dual weights.
"""

from leastnoise._families._blocks import p_identity_blocks
from leastnoise._families._contrasts import (
    balanced_rounding,
    basis_without_total,
    contrast_strength,
    leaves_out_total,
    rest,
    spread,
    tilt,
)
from leastnoise._families._dense import (
    column_norm,
    eigen_design,
    fit_gaussian_optimum,
    gaussian_optimum,
    singular_value_bound,
    to_dyadic,
)
from leastnoise._families._gram import (
    Fit,
    Fitted,
    Gram,
    all_alike,
    dense_gram,
    every_cell,
    fitted_apart,
    fitted_to,
    gram_of,
    merge_equal_cells,
    summed,
)
from leastnoise._families._inverse import (
    MOST_LISTED,
    Basis,
    CellsBasis,
    DenseBasis,
    Undetermined,
    basis,
)
from leastnoise._families._levels import (
    LevelInverse,
    Levels,
    Orbits,
    Part,
    nested_levels,
    partition,
    root_trace,
)
from leastnoise._families._p_identity import fit_p_identity, p_identity, p_identity_seconds
from leastnoise._families._queries import (
    MOST_DENSE,
    QUICKER_BY_GRAM,
    RowSpace,
    along_each,
    applied_in_parts,
    apply_gram,
    apply_weighted_gram,
    columns,
    everything,
    first_cells,
    gram_diagonal,
    gram_generators,
    interval_ends,
    inverted,
    of_gram,
    on_runs,
    row_space,
    singular_values,
    unit_rows,
    weighted_gram,
    zero_one,
)
from leastnoise._families._search import (
    Clock,
    NotApplicable,
    descended,
    dual_ascent,
    go_on,
    over,
    running,
)
from leastnoise._families._toeplitz import (
    causal_hierarchy,
    causal_strategies,
    ending_variances,
    first_rows,
    square_root,
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
