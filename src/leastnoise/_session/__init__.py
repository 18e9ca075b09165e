"""The only code that calls sources, planning, kernel, estimate and release together: it pays, and finishes paid releases."""

from leastnoise._session._guard import GuardForecast, guard_forecast, guard_warning
from leastnoise._session._payments import (
    IN_MEMORY,
    account,
    check_before,
    check_writable,
    csv_blocks,
    is_published,
    is_resumable,
    plan_budget_left,
    reading_seconds,
    reconcile_ledger,
    resuming_seconds,
)
from leastnoise._session._periods import (
    PeriodState,
    PublishedPeriods,
    is_unfinished,
    period_state,
    release_due,
)
from leastnoise._session._release_job import (
    FinishedRelease,
    enter_release,
    export,
    outcome_from_json,
    read_release,
)
from leastnoise._session._session import (
    audit,
    find_categories,
    finish_all,
    planned_spec,
    release,
    release_series,
    resume,
    spec_seconds,
)
from leastnoise._sources import SchemaField, file_endings, schema
from leastnoise._trusted.kernel import Entry, Ledger, Limit
from leastnoise._trusted.ledgers import find_other_ledgers, find_unrecorded_releases
from leastnoise._trusted.reading import (
    CSV,
    DatabaseTable,
    ledger_beside,
)
