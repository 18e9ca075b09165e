"""Releases of few steps, paid by the cost of their measurements."""

from typing import Any

from leastnoise._domain import Domain
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.kernel import Ledger, Receipt, ReleaseContract, Series
from leastnoise._trusted.measurements import Measurements, Observation, measurements_digest
from leastnoise._trusted.table import Table


def one_step(made: Measurements) -> ReleaseContract:
    """Return a plan of a single step with these measurements."""
    attributes, measures = made.columns()
    text = measurements_digest(made)
    return ReleaseContract(
        domain=made.domain,
        privacy=made.privacy,
        attributes=attributes,
        measures=measures,
        declared_step=made,
        plan_text=text,
    )


def many_steps(domain: Domain, privacy: Privacy) -> ReleaseContract:
    """Return a plan whose steps are decided while it runs."""
    return ReleaseContract(
        domain=domain,
        privacy=privacy,
        attributes=tuple(domain.names),
        measures=tuple(domain.measures),
        plan_text="a plan",
    )


def measure(
    made: Measurements, table: Table, ledger: Ledger, **how: Any
) -> tuple[Observation, Receipt]:
    """Pay for the measurements and draw them."""
    series = Series.paid(one_step(made), table, ledger, **how)
    assert series.receipt is not None
    return series.measure(made), series.receipt
