"""A release: answers with error bars, tables, statistics and options."""

from leastnoise._release._clipped_values import ClippedValues, clipped_measures
from leastnoise._release._csv_files import make_file_name, make_inert, restore_inert, write_rows
from leastnoise._release._json_records import REQUIRED, Json, flat, read_record, write_record
from leastnoise._release._observation import OBSERVATION_FILE, observation_text
from leastnoise._release._options import (
    FORMATS,
    MOST_TABLES,
    MOST_WRITTEN_ANSWERS,
    PUBLICATION_TEXTS,
    Options,
    check_formats,
    describe_rounding,
    display_texts,
    find_table_or_groups,
    find_table_position,
    is_too_large_to_write,
    largest_rounding_change,
    name_survey_tables,
    product_rounding,
    quantity_key,
    resolve_names,
    rounded_quantities,
    rounding_rule,
    tables_to_write,
)
from leastnoise._release._quantities import (
    describe_columns,
    describe_margin,
    describe_quantity,
    describe_survey_columns,
)
from leastnoise._release._receipt import (
    NO_RECEIPT,
    AmountsOfTotal,
    BoundsFacts,
    GuardCounts,
    Payment,
    ReceiptFacts,
    SearchFacts,
    SecondTable,
)
from leastnoise._release._records import Records, make_records
from leastnoise._release._release import (
    MOST_TABLE_FILES,
    MissingRows,
    Release,
    TableEntry,
    build_release,
    check_options,
    statement_path,
    statistic_path,
    with_labels_in,
    with_table_ids,
)
from leastnoise._release._release_tables import (
    NUMBER_COLUMNS,
    AnswerTable,
    ResultTable,
    RoundedTable,
    Tables,
    convert_to_amounts,
    round_table,
    typical_half_width,
)
from leastnoise._release._sdmx_mapping import (
    OBSERVATION_STATUS,
    SDMX_ID,
    TIME_PERIOD,
    SdmxMapping,
    read_sdmx_mapping,
    sdmx_period,
)
from leastnoise._release._sql_answers import answer_statement
from leastnoise._release._statistics import StatisticTable, format_interval
from leastnoise._release._survey import FlagRule, SamplingErrors, Survey
