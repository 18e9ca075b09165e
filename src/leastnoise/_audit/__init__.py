"""Compute lower bounds on the privacy loss of plans.

The installed kernel measures synthetic rows.
"""

from leastnoise._audit._audit import (
    Audit,
    audit_choice,
    audit_plan,
    audit_selection,
    distinct_steps,
    enumerate_mechanism_runs,
)
from leastnoise._audit._measurement_tests import AuditResult, Effort, Pairs, audit_measurements
from leastnoise._audit._synthetic_tables import series_on_rows
