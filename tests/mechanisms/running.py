"""Carry out a plan with seeded noise, as a release does."""

from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._trusted.kernel import SeededEntropy, UnpaidSeries
from leastnoise._trusted.linop import noisy_array_to_json
from leastnoise._trusted.measurements import measurements_value


def run(plan, table, entropy):
    """By the mechanism that made it."""
    return runs(plan, table)(SeededEntropy(entropy) if isinstance(entropy, int) else entropy)


def runs(plan, table):
    """The same many times: the plan, which is public, is read and checked once."""
    run_steps = mechanism_of(plan).prepare(plan)
    contract = release_contract(plan)
    return lambda entropy: run_steps(UnpaidSeries(contract, table, entropy))


def regime(outcome):
    """The way to measure that was found."""
    return outcome.finding.facts()["regime"]


def stored_outcome(outcome):
    """What a release keeps of its measurements, beside the plan."""
    observation = outcome.observation
    return {
        "plan_digest": outcome.plan.digest(),
        "receipt": observation.receipt,
        "private": observation.private,
        "measurements": measurements_value(observation.measurements),
        "outcome": outcome.finding.facts(),
        "values": [noisy_array_to_json(value) for value in observation.values],
    }
