"""Pay for releases, carry them out, and finish stopped ones.

This is the only package that calls sources, planning, the kernel, estimation and release.
"""

from leastnoise._session._guard_counts import (
    MISSED,
    WRONG,
    WRONG_COLUMN,
    GuardForecast,
    forecast_guard,
    guard_measurements,
    guard_warning,
    laplace_difference_tail,
    missing_column_threshold,
    noise_difference_bound,
    optional_attributes,
    rows_to_detect_missing_column,
    single_draw_bound,
    unit_total_measures,
)
from leastnoise._session._ledger_sections import describe_ledger, round_epsilon_up
from leastnoise._session._payments import (
    IN_MEMORY,
    affordable_share,
    check_before_planning,
    check_writable,
    count_csv_blocks,
    estimate_reading_seconds,
    estimate_release_memory,
    estimate_resuming_seconds,
    is_published,
    is_resumable,
    list_csv_sizes,
    open_or_create_ledger_of,
    read_payment_state,
    reconcile_ledger,
    remove_drafts_of_dead_processes,
)
from leastnoise._session._release_job import (
    FinishedRelease,
    ReleaseRequest,
    enter_release,
    export,
    outcome_from_json,
    read_release,
)
from leastnoise._session._schema_check import ColumnCheck, check_schema
from leastnoise._session._series_publication import (
    PublishedPeriods,
    SeriesProgress,
    combine_periods,
    is_unfinished,
    publish_due_periods,
    series_progress,
)
from leastnoise._session._session import (
    audit,
    estimate_planning_seconds,
    find_bounds,
    find_categories,
    finish_releases,
    plan_spec,
    release,
    release_series,
    resume,
)
from leastnoise._session._spec_run import (
    RunObserver,
    SpecFile,
    SpecRun,
    choose_ledger,
    pay_for_searches,
    read_spec,
    require_finished_searches,
    require_release,
    run_spec,
    settle_earlier_releases,
    warnings_after_planning,
    warnings_before_planning,
    with_data,
)
from leastnoise._sources import SchemaField, file_endings, schema
from leastnoise._trusted.kernel import Entry, Ledger, Limit
from leastnoise._trusted.ledgers import (
    CATEGORY_FOLDER,
    find_other_ledgers,
    find_unrecorded_releases,
)
from leastnoise._trusted.reading import (
    CSV,
    DatabaseTable,
    ledger_beside,
)
