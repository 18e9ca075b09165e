"""No releasable part loses more than it claims, and the page of losses is current."""

import itertools
from typing import get_args

import pytest

from leastnoise._mechanisms import BY_NAME, MECHANISMS, mechanism_for
from leastnoise._mechanisms._linear import Linear
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import GDP, Budget, Noise
from leastnoise._trusted.kernel import _plane
from privacy import losses
from privacy.losses import CLASSES, KINDS, LEAST, PAGE, REASONS, Line, Row

# The suite has no time for all units of the page.
FEW = [("replace", 1), ("add_remove", 2)]
LINES = losses.lines_of(PAGE.read_text(encoding="utf-8"))
# Of strategies a sample is compared with the page: those that are fitted within a second.
COMPARED = ("identity", "workload", "hierarchy", "fourier", "fourier_even", "residual", "covering")


def assert_no_loss_above_claim(row):
    """Check that no unit loses more than its claim: exact loss over claim is at most 1."""
    assert row.ratios
    assert max(row.ratios.values()) <= 1 + 1e-9


def listed(kind):
    return {line.name for line in LINES if line.kind == kind}


def stale(lines, rows):
    """List the lines of the page that differ from rows computed now.

    A row on the page has the least share of several workloads.
    """
    least: dict[tuple[str, str, str], dict[tuple[str, int], float]] = {}
    for row in rows:
        shares = least.setdefault((row.kind, row.name.partition(":")[0], row.budget), {})
        for unit, share in row.ratios.items():
            shares[unit] = min(share, shares.get(unit, share))
    return [
        f"{line.kind} {line.name}, {line.budget}, {unit}: {line.shares[unit]}, now {share:.4f}"
        for line in lines
        for unit, share in least.get((line.kind, line.name, line.budget), {}).items()
        if unit in line.shares and abs(float(line.shares[unit]) - share) > 0.0006
    ]


def test_everything_that_can_be_released_is_tried():
    assert set(losses.operator_examples()) >= CLASSES
    mechanisms = {
        type(mechanism_for(name, workload)) for name, workload in losses.mechanism_workloads()
    }
    assert {type(mechanism) for mechanism in MECHANISMS} == {*mechanisms, Linear}
    assert {name for name, _ in losses.mechanism_workloads()} == set(BY_NAME)
    # A cost within mu squared is also within (epsilon, delta), as
    # tests/trusted/accounting/test_mu.py shows.
    assert {type(budget) for budget, _ in KINDS.values()} == set(get_args(Budget)) - {GDP}
    assert {noise for _, noise in KINDS.values()} == set(Noise)


def test_privacy_page_names_only_existing_code():
    """New names may be missing until ``make losses``; ``make release-check`` checks those."""
    assert len(LINES) > 100
    for kind, names in losses.registered().items():
        assert listed(kind) <= names
    assert listed("guard") == {"guard"}
    assert listed("choice") == {row.name for row in losses.choices(FEW[:1])}


def test_page_has_no_loss_above_its_claim():
    for line in LINES:
        shares = [float(share) for share in line.shares.values()]
        assert max(shares) <= 1.0005, line
        assert min(shares) >= LEAST or line.reason in REASONS.values(), line


def test_missing_name_and_changed_share_are_detected():
    # New entries are missing from the page until `make losses` runs.
    new = losses.missing(LINES)
    missing = losses.missing([line for line in LINES if line.name != "haar"])
    assert [name for name in missing if name not in new] == ["strategy haar"]
    line = Line("guard", "guard", "epsilon, Laplace", {("replace", 1): "0.900"}, "")
    row = Row("guard", "guard", "epsilon, Laplace", 1.0, {("replace", 1): 1.0})
    assert stale([line], [row]) == [
        "guard guard, epsilon, Laplace, ('replace', 1): 0.900, now 1.0000"
    ]


@pytest.mark.parametrize("strategy", sorted({*PLANNERS} - losses.TRIED_ELSEWHERE))
def test_privacy_losses_match_the_claims(strategy):
    (row,) = itertools.islice(losses.strategies(FEW, [strategy]), 1)
    assert_no_loss_above_claim(row)


@pytest.mark.parametrize("strategy", COMPARED)
def test_page_has_the_losses_of_a_strategy(strategy):
    assert stale(LINES, losses.strategies(FEW[:1], [strategy])) == []


@pytest.mark.slow
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
def test_other_releases_lose_at_most_their_claim(rows, units):
    tried_rows = list(rows(units))
    for row in tried_rows:
        assert_no_loss_above_claim(row)
    assert stale(LINES, tried_rows) == []


def test_private_choice_with_little_noise_is_detected(monkeypatch):
    """Reduce the scale by a factor of 1.25; the check of exact scales involves no chance."""

    def too_little(sensitivity, epsilon, size):
        top, bottom = real(sensitivity, epsilon, size)
        return top * 4, bottom * 5

    real = _plane.noise_scale
    (row,) = losses.choices([("add_remove", 1)])
    assert max(row.ratios.values()) <= 1

    monkeypatch.setattr(_plane, "noise_scale", too_little)
    (row,) = losses.choices([("add_remove", 1)])
    assert max(row.ratios.values()) > 1
