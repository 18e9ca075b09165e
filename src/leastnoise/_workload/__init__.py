"""Workloads: query sets on attributes, products of them, weighted unions."""

from leastnoise._workload._comparison import (
    Comparison,
    ComparisonTarget,
    Quantity,
    Quotient,
    all_published,
    read_comparison,
    read_comparison_targets,
    read_quantity,
    selected_cells,
)
from leastnoise._workload._complete_rows import (
    INTERCEPT,
    Factors,
    checked_variables,
    complete_rows_measures,
    factors_of_sums,
    in_domain_order,
    in_factor_order,
    join_measures,
    name_sums,
    pair_names,
    term_names,
)
from leastnoise._workload._missing import (
    declared,
    incomplete_attributes,
    leaves_out,
    over,
    rows_left_out,
    table_of_all_cells,
    with_hidden,
    with_hidden_cells,
    with_hidden_groups,
)
from leastnoise._workload._product import (
    AttributeQueries,
    Product,
    QueryIndex,
    Statistic,
    Target,
    by_width,
    cell_sets,
    index_queries,
    number_cells,
    square_measure,
    squares_name,
    target,
)
from leastnoise._workload._query_sets import (
    By,
    QuerySet,
    all_cells,
    all_ranges,
    cells_of,
    change,
    groups_of,
    identity,
    level,
    level_names,
    matrix,
    predicates,
    prefix,
    query_set,
    ranges,
    total,
    with_hidden_group,
)
from leastnoise._workload._sql import over_common_domain, read_statements, sql
from leastnoise._workload._sql_combinations import (
    AnswerTerm,
    Combination,
    LinearSum,
    PairCombination,
    WindowFrame,
)
from leastnoise._workload._sql_functions import SqlSettings, join_columns, parse_day
from leastnoise._workload._sql_query import (
    ReleasedColumns,
    count_groups,
    run_query,
    set_keys,
    to_array,
)
from leastnoise._workload._sql_statement import (
    OF_LINES,
    OF_PAIRS,
    SPREADS,
    Aggregate,
    GroupColumn,
    OutputColumn,
    Placement,
    Selection,
    Statement,
    answer_column,
    combination_high_column,
    combination_low_column,
    group_queries,
    high_column,
    low_column,
)
from leastnoise._workload._sql_values import UNDECIDED
from leastnoise._workload._workload import (
    Workload,
    cdf_queries,
    correlation_queries,
    from_json,
    marginals,
    mean_queries,
    quantile_queries,
    queries,
    questions_over,
    regression_queries,
    together,
    variance_queries,
    with_domain,
)
