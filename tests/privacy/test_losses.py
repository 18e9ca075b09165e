"""Nothing that can be released loses more than it claims, and where it loses much less the reason is written down."""

import itertools
import re
from typing import get_args

import pytest

from leastnoise._accounting import Budget, Noise
from leastnoise._mechanisms import BY_NAME, MECHANISMS, mechanism_for
from leastnoise._mechanisms._linear import Linear
from leastnoise._planner import PLANNERS
from privacy import losses
from privacy.losses import CLASSES, KINDS, LEAST, OPERATORS, PAGE, REASONS, Row

# Of what is listed on the page, as much as the suite has time for.
FEW = [("replace", 1), ("add_remove", 2)]
KINDS_OF_ROWS = ("strategy", "operator", "sums", "guard", "mechanism", "bound", "choice")
LINES = [[cell.strip(" `") for cell in line[1:-1].split("|")] for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
LINES = [line for line in LINES if line[0] in KINDS_OF_ROWS]
MARKS = dict(re.findall(r"^- \*\*(\w)\*\*: (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE))


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
    found = list(itertools.islice(losses.strategies(FEW, [strategy]), 1))
    assert found
    for row in found:
        check(row)


def test_operators_lose_what_they_claim() -> None:
    for row in losses.operators(FEW):
        check(row)


def test_sums_lose_what_they_claim() -> None:
    for row in losses.sums(FEW):
        check(row)


def test_the_guard_loses_what_it_claims() -> None:
    for row in losses.guards():
        check(row)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_mechanisms_lose_what_they_claim(neighbours: str) -> None:
    for row in losses.mechanisms([(neighbours, 1)]):
        check(row)


def test_bounds_in_cells_lose_what_they_claim() -> None:
    found = list(losses.bounds(FEW))
    assert {row.name for row in found} == names("bound")
    for row in found:
        check(row)
