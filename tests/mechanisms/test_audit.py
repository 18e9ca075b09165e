"""The audit of every mechanism: what is as it should be stays below its claim, and each kind of step that is wrong by a quarter is seen.

The seeds fix the verdicts. Trials are as many as a fault needs to be seen by nineteen seeds of twenty or more.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest

from leastnoise._accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP
from leastnoise._audit import audited
from leastnoise._audit._audit import LAWS, choice_part, kinds_of_steps, ways
from leastnoise._audit._measured import Effort, measured_parts
from leastnoise._domain import Coded, Domain, Measure
from leastnoise._kernel import SeededEntropy, Selection, _measure, _partition, _partition_sampling, _plane
from leastnoise._linop import BlockTree
from leastnoise._measurements import Measurements
from leastnoise._mechanisms import Search, mechanism_for
from leastnoise._plan import Plan
from leastnoise._workload import mean_queries
from mechanisms.conformance import ROWS, Row
from mechanisms.remembered import draw_ahead, remember_weights

TRIALS = {"measurements": 8000, "least cost": 1200, "partition": 450}
SURE = 1e-4


def name_of(row: Row) -> str:
    return f"{row.mechanism} {row.strategy}"


every_row = pytest.mark.parametrize("row", ROWS, ids=name_of)


PLANS: dict[str, tuple[Plan, list[Selection | Measurements]]] = {}


def prepared(row: Row) -> tuple[Plan, list[Selection | Measurements]]:
    """Within a budget at which draws tell something: of an epsilon of 20 no number of trials sees the tails. With its steps, found once."""
    if name_of(row) not in PLANS:
        plan = mechanism_for(row.strategy, row.workload).plan(row.workload, Privacy(PureDP("1/2")), Search(row.strategy))
        PLANS[name_of(row)] = plan, steps_of(plan)
    return PLANS[name_of(row)]


def steps_of(plan: Plan) -> list[Selection | Measurements]:
    return [plan.measurements] if plan.measurements is not None else list(kinds_of_steps(ways(plan, SeededEntropy(1))))


def sharpness_of(plan: Plan, step: Selection | Measurements, seed: int = 1) -> tuple[str, float]:
    """What a step is, and the factor that is certified: at most 1 if it is right."""
    name = "measurements" if isinstance(step, Measurements) else KINDS[type(step).__name__]
    effort = Effort(trials=TRIALS[name], seconds=0.0, risk=SURE, entropy=SeededEntropy(seed))
    part = measured_parts(step, effort)[1] if isinstance(step, Measurements) else choice_part(plan, step, effort)
    return name, part.lower_bound / part.claim


KINDS = {"LeastCost": "least cost", "SampledPartition": "partition"}


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What draws of one table compute again and again, weights and deviations of intervals and blocks, is computed once for each rate."""
    kept: dict[object, Any] = {}
    deviations = _plane.block_costs

    def block_costs(cells: np.ndarray, tree: BlockTree, centre: str) -> Any:
        key = cells.tobytes(), *(starts.tobytes() for starts in tree.starts), centre
        if key not in kept:
            kept[key] = deviations(cells, tree, centre)
        return kept[key]

    remember_weights(monkeypatch, _plane)
    draw_ahead(monkeypatch, _plane)
    monkeypatch.setattr(_plane, "block_costs", block_costs)


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draw is sharper than it should be by a quarter."""

    def less(sampler: Callable[..., Any]) -> Callable[..., Any]:
        return lambda top, bottom, count, entropy: sampler(top * 4, bottom * 5, count, entropy)

    for noise, sampler in list(_measure.SAMPLERS.items()):
        monkeypatch.setitem(_measure.SAMPLERS, noise, less(sampler))
    rate, scale = _partition_sampling.rate, _partition.noise_scale
    monkeypatch.setattr(_partition_sampling, "rate", lambda epsilon: rate(epsilon * Fraction(5, 4)))
    monkeypatch.setattr(_plane, "noise_scale", lambda sensitivity, epsilon, size: scale(sensitivity, epsilon * Fraction(5, 4), size))


def test_every_choice_has_a_law_that_audits_know() -> None:
    """A new kind of choice fails here until its law is written down."""
    assert set(LAWS) == set(get_args(Selection))
    assert set(KINDS) == {kind.__name__ for kind in LAWS}


@every_row
def test_it_can_be_audited_and_holds(row: Row) -> None:
    found = audited(prepared(row)[0], None, trials=200, seconds=0.0, confidence=0.999, entropy=SeededEntropy(2))
    assert found.held
    assert 0 < found.lower_bound <= found.claim
    assert all(part.claim > 0 for part in found.parts)
    assert found.measure == "epsilon"


@every_row
def test_its_steps_are_those_that_the_row_names_and_follow_their_laws(row: Row) -> None:
    plan, steps = prepared(row)
    found = [sharpness_of(plan, step) for step in steps]
    assert {name for name, _ in found} == row.audited
    assert all(0.6 < factor <= 1 for _, factor in found)


@every_row
def test_each_of_its_steps_is_seen_if_it_is_wrong_by_a_quarter(row: Row, wrong: None) -> None:
    plan, steps = prepared(row)
    for step in steps:
        name, factor = sharpness_of(plan, step, 3)
        assert 1 < factor <= 1.25, name


def test_values_that_are_cut_at_a_wrong_limit_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A threshold of sums that is a quarter too high: a row adds more than it is charged for."""
    plan, steps = prepared(next(row for row in ROWS if row.strategy == "truncated_sums"))
    (sums,) = (step for step in steps if isinstance(step, Measurements) and step.blocks[0].limits is not None)
    assert sharpness_of(plan, sums)[1] <= 1
    real = _measure.count

    def generous(table: Any, wanted: Any, summed: Any = None, limits: Any = None) -> Any:
        return real(table, wanted, summed, None if limits is None else (limits[0], limits[1] * 5 // 4))

    monkeypatch.setattr(_measure, "count", generous)
    assert sharpness_of(plan, sums)[1] > 1


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("1/8"), ApproxDP(1, "1e-6")], ids=str)
def test_either_end_of_a_measure_is_seen_if_it_counts_too_much(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain(a=Coded(3), measures={"pay": Measure("pay", -10, 90)})
    plan = mechanism_for("auto", mean_queries(domain, "pay", by=["a"])).plan(
        mean_queries(domain, "pay", by=["a"]), Privacy(budget), Search("auto")
    )
    (step,) = steps_of(plan)
    assert isinstance(step, Measurements)
    assert any(block.ends for block in step.blocks)
    ends = _measure._from_ends
    for first, second in ((4, 1), (1, 4)):

        def wrong(*given: Any, by: tuple[int, int] = (first, second)) -> Any:
            return ((name, np.repeat(by, len(told) // 2) * told) for name, told in ends(*given))

        monkeypatch.setattr(_measure, "_from_ends", wrong)
        parts = measured_parts(step, Effort(trials=8000, seconds=0.0, risk=SURE, entropy=SeededEntropy(1)))
        assert any(part.lower_bound > part.claim for part in parts)


@pytest.mark.parametrize(("strategy", "neighbours"), [("dawa", "replace"), ("dawa_tree", "add_remove")])
def test_units_of_several_rows_are_asked_for(strategy: str, neighbours: str) -> None:
    """For both relations the tables differ by whole units; a choice that forgets the distance is far too sharp."""
    row = next(row for row in ROWS if row.strategy == strategy and row.mechanism == "Dawa")
    privacy = Privacy(PureDP(1), neighbours, "id", 2)  # type: ignore[arg-type]
    plan = mechanism_for(strategy, row.workload).plan(row.workload, privacy, Search(strategy))
    choice = next(step for step in steps_of(plan) if not isinstance(step, Measurements))
    assert sharpness_of(plan, choice)[1] <= 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_plane, "whole", lambda *_: 1)  # the distance, where it is read
        assert sharpness_of(plan, choice)[1] > 1.25


def test_laws_are_those_of_the_definition() -> None:
    """By all partitions of eight cells in pairs of halves: how likely each block with the first cell is a bucket."""
    from leastnoise._kernel import SampledPartition

    choice = SampledPartition(attributes=("age",), epsilon=Fraction(1), penalty=Fraction(1, 2), prior=Fraction(1, 3))
    law = LAWS[SampledPartition](choice, [6], 0, Privacy(PureDP(1), "replace", "id", 3))
    rows = 7 * 3  # of 7 units; neighbours differ by 6
    chances: dict[int, float] = {}

    def partitions(start: int, stop: int) -> list[tuple[tuple[int, int], ...]]:
        whole = ((start, stop),)
        if stop - start == 1:
            return [whole]
        middle = start + 2 ** ((stop - start - 1).bit_length() - 1)
        return [whole, *(left + right for left in partitions(start, middle) for right in partitions(middle, stop))]

    for buckets in partitions(0, 6):
        first = buckets[0][1]
        deviation = rows * (2 - 2 / first)
        weight = np.exp(-len(buckets) / 3 - (len(buckets) / 2 + deviation) / 6 / (2 * (2 - 2 / 6)))
        chances[first] = chances.get(first, 0.0) + float(weight)
    total = sum(chances.values())
    found = np.exp(law._chances(1.0, 7))  # type: ignore[attr-defined]
    assert found == pytest.approx([chances[length] / total for length in (6, 4, 2, 1)], rel=1e-9)
