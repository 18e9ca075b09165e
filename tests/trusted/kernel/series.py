"""Releases of few steps, paid by the cost of their measurements."""

from leastnoise._trusted.kernel import ReleaseContract, Series
from leastnoise._trusted.measurements import measurements_digest


def contract_of_one_step(measurements):
    """Return the contract of a release whose only step has these measurements."""
    attributes, measures = measurements.columns()
    text = measurements_digest(measurements)
    return ReleaseContract(
        domain=measurements.domain,
        privacy=measurements.privacy,
        attributes=attributes,
        measures=measures,
        declared_step=measurements,
        plan_text=text,
    )


def many_steps(domain, privacy):
    """Return the contract of a release whose steps are decided while it runs."""
    return ReleaseContract(
        domain=domain,
        privacy=privacy,
        attributes=tuple(domain.names),
        measures=tuple(domain.measures),
        plan_text="a plan",
    )


def measure(measurements, table, ledger, **options):
    """Pay for the measurements and draw them."""
    series = Series.paid(contract_of_one_step(measurements), table, ledger, **options)
    assert series.receipt is not None
    return series.measure(measurements), series.receipt
