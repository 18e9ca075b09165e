"""A ledger with the budget epsilon 1, a charge, and ways to damage its file."""

import sqlite3

from leastnoise._trusted.accounting import Privacy, PureCost, PureDP
from leastnoise._trusted.kernel import Ledger

ONE = Privacy(PureDP(1))


def open_new_ledger(folder):
    return Ledger.create(folder / "people.ledger", "people", ONE)


def take(ledger, epsilon="1/3", *, declared=None, privacy=ONE, **options):
    """Reserve a release on the ledger, and return its receipt."""
    paid = privacy.within(PureDP(epsilon) if declared is None else declared)
    return ledger.reserve(
        **{
            "cost": PureCost(epsilon),
            "privacy": paid,
            "plan_digest": "ab12",
            "output": "out",
            **options,
        }
    )


def edit(ledger, statement, *values):
    """Change a ledger by SQL, as no program of the project does."""
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement, values)
    connection.close()
