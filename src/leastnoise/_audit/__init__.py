"""A lower bound on the privacy loss of a plan.

The installed kernel measures synthetic rows.
"""

from leastnoise._audit._audit import Audit, audit_plan
from leastnoise._audit._measurement_tests import AuditResult
