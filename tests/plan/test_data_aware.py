"""Data-aware plans: frozen at every depth, and read from files that anybody may have written."""

from collections.abc import Mapping
from typing import Any

import pytest

from leastnoise._accounting import Privacy, PureDP
from leastnoise._check import InputError
from leastnoise._domain import Domain
from leastnoise._measurements import Measurements
from leastnoise._plan import DataAwarePlan

DETAILS: dict[str, Any] = {"shares": {"test": "1/25"}, "steps": [1, [2]]}


def plan(details: Mapping[str, Any] = DETAILS) -> DataAwarePlan:
    return DataAwarePlan(
        domain=Domain(age=[1, 2]), privacy=Privacy(PureDP(1)), strategy="dawa", questions=({"attributes": []},), details=details
    )


def test_a_round_trip_keeps_the_digest() -> None:
    read = DataAwarePlan.from_json(plan().to_json())
    assert (read.digest(), read.details["steps"]) == (plan().digest(), (1, (2,)))


def test_nothing_inside_can_change() -> None:
    details: dict[str, Any] = {"shares": {"test": "1/25"}}
    made = plan(details)
    details["shares"]["test"] = "1"
    assert made.details["shares"]["test"] == "1/25"
    with pytest.raises(TypeError, match="cannot be changed"):
        made.details["shares"]["test"] = "1"
    with pytest.raises(TypeError, match="cannot be changed"):
        made.questions[0]["attributes"] = ["age"]


@pytest.mark.parametrize("kind", [Measurements, DataAwarePlan])
@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"format": NaN}', plan().to_json().replace('"1/25"', "NaN")])
def test_a_damaged_file_is_refused_in_one_sentence(kind: type[Measurements] | type[DataAwarePlan], text: str) -> None:
    with pytest.raises(InputError, match="This is not a"):
        kind.from_json(text)


def test_other_refusals() -> None:
    with pytest.raises(InputError, match="must have questions"):
        DataAwarePlan(domain=Domain(age=[1, 2]), privacy=Privacy(PureDP(1)), strategy="dawa", questions=())
    with pytest.raises(InputError, match="format of a data-aware plan"):
        DataAwarePlan.from_json(plan().to_json().replace('"data_aware":1', '"data_aware":2'))
