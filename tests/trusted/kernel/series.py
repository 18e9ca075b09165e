"""A release of one step, as the session makes it: paid by the cost of what is measured."""

from typing import Any

from leastnoise._domain import Domain
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.kernel import Ledger, Receipt, ReleaseContract, Series
from leastnoise._trusted.measurements import Measurements, Observation, measurements_digest
from leastnoise._trusted.table import Table


def one_step(made: Measurements) -> ReleaseContract:
    """Nothing but these measurements."""
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
    """Steps that are decided on the way."""
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
    """Pay and measure."""
    series = Series.paid(one_step(made), table, ledger, **how)
    assert series.receipt is not None
    return series.measure(made), series.receipt
