"""SQL statements as workloads, and their results from released tables."""

from leastnoise._workload._sql._combinations import (
    AnswerExpression,
    AnswerTerm,
    Combination,
    CombinationRatio,
    CombinationSum,
    LinearSum,
    WindowFrame,
)
from leastnoise._workload._sql._expression_values import UNDECIDED
from leastnoise._workload._sql._function_translation import SqlSettings, join_columns, parse_day
from leastnoise._workload._sql._query import (
    ReleasedColumns,
    count_groups,
    run_query,
    set_keys,
    to_array,
)
from leastnoise._workload._sql._sql import over_common_domain, read_statements, sql
from leastnoise._workload._sql._statement import (
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
