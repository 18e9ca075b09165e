"""Carry out a plan with seeded noise, as a release does."""

from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._trusted.kernel import SeededEntropy, UnpaidSeries
from leastnoise._trusted.linop import noisy_array_to_json
from leastnoise._trusted.measurements import measurements_value


def run(plan, table, entropy):
    """Return the outcome of a plan, carried out by its mechanism."""
    return runs(plan, table)(SeededEntropy(entropy) if isinstance(entropy, int) else entropy)


def runs(plan, table):
    """Return a function that carries out a plan, which is checked only once, with given entropy."""
    run_steps = mechanism_of(plan).prepare(plan)
    contract = release_contract(plan)
    return lambda entropy: run_steps(UnpaidSeries(contract, table, entropy))


def regime(outcome):
    """Return the name of the way to measure that the mechanism chose."""
    return outcome.finding.facts()["regime"]


def stored_outcome(outcome):
    """Return the parts of an outcome that a release stores in addition to the plan."""
    observation = outcome.observation
    return {
        "plan_digest": outcome.plan.digest(),
        "receipt": observation.receipt,
        "private": observation.private,
        "measurements": measurements_value(observation.measurements),
        "outcome": outcome.finding.facts(),
        "values": [noisy_array_to_json(value) for value in observation.values],
    }
