"""Nothing that can be released loses more than it claims, and where it loses much less the reason is written down."""

import itertools
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import get_args

import pytest

from leastnoise._accounting import Budget, Noise
from leastnoise._kernel import _plane
from leastnoise._mechanisms import BY_NAME, MECHANISMS, mechanism_for
from leastnoise._mechanisms._linear import Linear
from leastnoise._planner import PLANNERS
from privacy import losses
from privacy.losses import CLASSES, KINDS, LEAST, OPERATORS, PAGE, REASONS, Row

# Of what is listed on the page, as much as the suite has time for.
FEW = [("replace", 1), ("add_remove", 2)]
KINDS_OF_ROWS = ("strategy", "operator", "sums", "guard", "mechanism", "bound", "choice")
LINES = [
    [cell.strip(" `") for cell in line[1:-1].split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line[:1] == "|"
]
LINES = [line for line in LINES if line[0] in KINDS_OF_ROWS]
MARKS = dict(
    re.findall(r"^- \*\*(\w)\*\*: (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
)


def check(row: Row) -> None:
    assert row.ratios
    assert max(row.ratios.values()) <= 1 + 1e-9
    assert min(row.ratios.values()) >= LEAST or row.reason


def names(kind: str) -> set[str]:
    return {name.strip("`") for line in LINES if line[0] == kind for name in line[1].split("`, `")}


def test_everything_that_can_be_released_has_a_row() -> None:
    """A new strategy, operator, mechanism, choice, budget or noise fails here until ``make losses`` has seen it."""
    assert names("strategy") == set(PLANNERS)
    assert names("operator") == CLASSES == set(OPERATORS)
    assert names("mechanism") == set(BY_NAME)
    looking = {type(mechanism_for(name, workload)) for name, workload in losses.asked()}
    assert {type(one) for one in MECHANISMS} == {*looking, Linear}
    assert names("guard") == {"guard"}
    assert names("choice") == {row.name for row in losses.choices(FEW[:1])}
    assert {type(budget) for budget, _ in KINDS.values()} == set(get_args(Budget))
    assert {noise for _, noise in KINDS.values()} == set(Noise)


def test_no_row_of_the_page_loses_more_than_it_claims_or_much_less_without_a_reason() -> None:
    for kind, name, _, *shares, reason in LINES:
        numbers = [float(share) for cell in shares for share in cell.split(", ") if share]
        assert numbers, (kind, name)
        assert max(numbers) <= 1.0005, (kind, name)
        assert min(numbers) >= LEAST or reason, (kind, name)
        assert not reason or MARKS[reason] in REASONS.values()


@pytest.mark.parametrize("strategy", PLANNERS)
def test_strategies_lose_what_they_claim(strategy: str) -> None:
    (row,) = itertools.islice(losses.strategies(FEW, [strategy]), 1)
    check(row)


@pytest.mark.parametrize(
    ("rows", "units"),
    [
        (losses.operators, FEW),
        (losses.sums, FEW),
        (losses.guards, losses.UNITS),
        *((losses.mechanisms, [(neighbours, 1)]) for neighbours in ("add_remove", "replace")),
        (losses.bounds, FEW),
    ],
)
def test_nothing_else_loses_more_than_it_claims(
    rows: Callable[..., Iterator[Row]], units: list[tuple[str, int]]
) -> None:
    found = list(rows(units))
    assert rows is not losses.bounds or {row.name for row in found} == names("bound")
    for row in found:
        check(row)


def test_a_private_choice_with_too_little_noise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a factor of 1.25; nothing is left to chance, as the scale is the program's own for all neighbours of some tables."""

    def too_little(sensitivity: int, epsilon: Fraction, size: int) -> tuple[int, int]:
        top, bottom = real(sensitivity, epsilon, size)
        return top * 4, bottom * 5

    real = _plane.noise_scale
    (row,) = losses.choices([("add_remove", 1)])
    assert max(row.ratios.values()) <= 1
    monkeypatch.setattr(_plane, "noise_scale", too_little)
    (row,) = losses.choices([("add_remove", 1)])
    assert max(row.ratios.values()) > 1
