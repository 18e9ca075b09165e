"""Observations: memory, JSON, joining, and refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from leastnoise._domain import Domain
from leastnoise._estimation import join_observations
from leastnoise._plan import LinearPlan
from leastnoise._session import outcome_from_json
from leastnoise._trusted.accounting import Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import Identity, noisy_array_to_json
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import marginals

DOMAIN = Domain(a=["x", "y"])
MEASUREMENTS = Measurements(
    domain=DOMAIN,
    privacy=Privacy(PureDP(1)),
    noise=Noise.DISCRETE_LAPLACE,
    blocks=(Block((), 2), Block((Factor(("a",), Identity(2)),), 3)),
)
PLAN = LinearPlan(
    workload=marginals(DOMAIN, ways=0),
    privacy=MEASUREMENTS.privacy,
    strategy="test",
    measurements=MEASUREMENTS,
)


def observation_of(*values, plan=MEASUREMENTS):
    """Return an observation of these values, one array for each block."""
    return Observation(plan, tuple(np.array(value) for value in values), "", private=False)


def stored_observation(observation):
    """Return the observation as a release stores it."""
    values = [noisy_array_to_json(value) for value in observation.values]
    return {"plan_digest": PLAN.digest(), "receipt": "", "private": False, "values": values}


def read_observation(value):
    """Read an observation as from the files of a release."""
    return outcome_from_json(PLAN.to_json(), json.dumps(value)).observation


def test_observation_json_is_exact_and_small():
    for total in (2**31 - 1, 2**31, -(2**31), -(2**62)):
        read_again = read_observation(stored_observation(observation_of([total], [-3, 4])))
        assert [value.tolist() for value in read_again.values] == [[total], [-3, 4]]
        assert read_again.values[0].dtype == (np.int32 if -(2**31) <= total < 2**31 else np.int64)
        assert read_again.values[1].dtype == np.int32


def test_joining_on_a_finer_grid_does_not_wrap_around():
    coarse = replace(
        observation_of([2**30], [1, 2]),
        values=(np.array([2**30], dtype=np.int32), np.array([1, 2], dtype=np.int32)),
    )
    joined = join_observations(
        [coarse, observation_of([8], [9, 10], plan=replace(MEASUREMENTS, grid=16))],
        Privacy(PureDP(2)),
    )
    assert [value.tolist() for value in joined.values] == [[2**34], [16, 32], [8], [9, 10]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value["values"].pop(), "one array a block of the plan"),
        (lambda value: value["values"].reverse(), "of at most 1 numbers; got '2 numbers'"),
        (
            lambda value: value["values"][1]["shape"].__setitem__(0, 1),
            "must hold the 1 numbers of its shape; got more or fewer",
        ),
        (lambda value: value.__setitem__("plan_digest", "0"), "belongs to another plan"),
        (lambda value: value.pop("values"), "not an observation, or a damaged one"),
    ],
)
def test_damaged_observations_are_refused(change, message):
    value = stored_observation(observation_of([5], [-3, 4]))
    change(value)
    with pytest.raises(InputError, match=message):
        read_observation(value)
