"""The comparison with recorded values: the differences it allows and refuses."""

import pytest

from contracts.golden import PARTS, RECORDS, differences


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        ({"total": 2.0 * (1 + 5e-10), "rmse": [1.0], "cpu": 9.0}, []),
        (
            {"total": 2.0 * (1 + 5e-9), "rmse": [1.0], "cpu": 1.0},
            ["x: total: 2.0 was recorded, now 2.00000001"],
        ),
        ({"total": 2.0, "rmse": [1.5], "cpu": 1.0}, ["x: rmse 0: 1.0 was recorded, now 1.5"]),
        (
            {"total": 2.0, "rmse": [1.0, 1.0], "cpu": 1.0},
            ["x: rmse: [1.0] was recorded, now [1.0, 1.0]"],
        ),
        ({"total": 2.0, "cpu": 1.0}, ["x: 'rmse' is gone"]),
        ({"total": 2.0, "rmse": [1.0], "cpu": 1.0, "strategy": "a"}, ["x: 'strategy' is new"]),
        (
            {"total": "refused", "rmse": [1.0], "cpu": 1.0},
            ["x: total: 2.0 was recorded, now 'refused'"],
        ),
    ],
)
def test_golden_comparison_reports_differences(computed, expected):
    assert list(differences({"total": 2.0, "rmse": [1.0], "cpu": 1.0}, computed, "x")) == expected


def test_every_record_is_of_a_part():
    assert {path.stem for path in RECORDS.glob("*.json")} <= set(PARTS)
