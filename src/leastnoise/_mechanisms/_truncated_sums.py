"""Sums that are not drowned: a threshold chosen privately, then the sums of the values cut at it with a strategy that knows it.

Two steps under one payment. A tenth of the budget counts the records between candidate thresholds. From those noisy counts, and from the
noise that the strategy for every candidate would have, the threshold of least predicted error follows; it costs nothing more. The rest
measures the sums, every value cut at the limit of its cell, by a hierarchy made for these limits (docs/decisions/0012).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from leastnoise._accounting import Budget, Noise, Privacy, parameters
from leastnoise._accuracy import block_variance
from leastnoise._check import InputError, refuse
from leastnoise._check.arrays import IntArray
from leastnoise._domain import Bins, Decimals, Domain, Edges, Integers
from leastnoise._estimate import Estimator, Finding, Outcome, Said, Truncated, join
from leastnoise._fitting import fit
from leastnoise._kernel import Series
from leastnoise._linop import Identity, Ranges
from leastnoise._measurements import MOST_ROWS, Block, Factor, Measurements, Observation
from leastnoise._mechanisms._choose import noises
from leastnoise._mechanisms._findings import Looked, read_finding
from leastnoise._mechanisms._protocol import Explanation, Run
from leastnoise._mechanisms._search import Progress, Search
from leastnoise._plan import Plan
from leastnoise._planner import ThresholdChoice, asked_along, candidate_cells, choose_threshold, limited_strategy, noise_along
from leastnoise._workload import Workload

STRATEGY = "truncated_sums"
TAIL_SHARE = Fraction(1, 10)
_STEPS = (("tail", TAIL_SHARE), ("sums", 1 - TAIL_SHARE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Looked):
    """Values above a threshold were cut to it.

    Args:
        measure: that is summed.
        attribute: with the same number.
        threshold: in units.
        losses: first cell, the one behind the last, and what the cut is estimated to have taken between them, in units.
        estimated_loss: in all, in units.
    """

    regime = "truncated"
    further = False  # sums of cut values are not those that are asked for
    reading = "aware_reading_truncated"

    measure: str
    attribute: str
    threshold: int
    losses: tuple[tuple[int, int, float], ...] = ()
    estimated_loss: float

    def not_covered(self, domain: Domain) -> list[Said]:
        """What the cut does to sums."""
        unit = domain.measure(self.measure).unit
        lost = float(f"{float(self.estimated_loss * unit):.3g}")
        return [("truncated", {"name": self.measure, "cut": Fraction(self.threshold * unit), "lost": lost})]

    def estimator(self, observation: Observation) -> Estimator:
        """Least squares, and what the cut is estimated to have taken."""
        losses = ((int(start), int(stop), float(loss)) for start, stop, loss in self.losses)
        return Truncated.of(observation, self.attribute, losses)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is public about a release of truncated sums.

    Args:
        plan: the plan.
        measure: its name.
        attribute: the attribute with the same number, whose cells the limits belong to.
        edges: the most that a record of each cell can add, in units, shape (n,).
    """

    plan: Plan
    measure: str
    attribute: str
    edges: IntArray

    @property
    def noise(self) -> Noise:
        """The noise of both steps."""
        return noises(self.plan.privacy)[0]


def plan_truncated_sums(workload: Workload, privacy: Privacy, strategy: str = STRATEGY, progress: Progress = None) -> Plan:
    """The public plan of a release of truncated sums.

    Args:
        workload: sums of one measure: total, prefix sums or ranges of the number, by any groups.
        privacy: budget, neighbours and unit of everything together.
        strategy: the name.
        progress: called with the name once.

    Raises:
        InputError: counts are asked for too, or the number is no attribute of the domain.

    >>> domain = Domain(pay=Bins(0, 1000, 10), measures={"wages": Measure("pay", 0, 1000)})
    >>> plan_truncated_sums(queries(domain, pay="prefix", sum="wages"), Privacy(PureDP(1))).details["steps"][0]
    {'step': 'tail', 'budget': {'epsilon': '1/10'}}
    """
    if strategy != STRATEGY:
        raise refuse("strategy", strategy, f"'{STRATEGY}'")
    found = setting(workload, privacy, _STEPS).plan
    if progress is not None:
        progress(STRATEGY)
    return found


def setting(workload: Workload, privacy: Privacy, steps: Sequence[tuple[str, Fraction]], strategy: str = STRATEGY) -> Setting:
    """What is public about a release of sums, with its plan.

    Args:
        workload: sums of one measure.
        privacy: budget, neighbours and unit of everything together.
        steps: names, and parts of the budget.
        strategy: the name, for the plan and for messages.

    Raises:
        InputError: counts are asked for too, or the number is no attribute of the domain.
    """
    if len(workload.measures) != 1 or workload.measures[0] is None:
        raise InputError(
            f"{strategy} answers sums of one measure; this workload asks for {_asked(workload)}. "
            "Ask for counts and other sums in a release of their own."
        )
    measure = workload.measures[0]
    attribute, edges = _cells_of(workload, measure)
    if not MOST_ROWS * int(edges[-1]) < 2**62:
        raise InputError(
            f"The public bounds are too large for exact arithmetic: up to {int(edges[-1])} units of {measure}; allowed is less than "
            f"{2**62 // MOST_ROWS}. Choose a larger unit or a smaller upper bound."
        )
    parts = [{"step": name, "budget": _budget_json(privacy.budget, share)} for name, share in steps]
    details = {"measure": measure, "attribute": attribute, "mechanism": noises(privacy)[0].value, "steps": parts}
    plan = Plan(workload=workload, privacy=privacy, strategy=strategy, details=details)
    return Setting(plan, measure, attribute, edges)


def _asked(workload: Workload) -> str:
    return " and ".join("counts" if name is None else f"sums of {name}" for name in workload.measures)


def _budget_json(budget: Budget, share: Fraction) -> dict[str, str]:
    return {name: str(number * share) for name, number in parameters(budget).items()}


def _cells_of(workload: Workload, name: str) -> tuple[str, IntArray]:
    """The attribute that holds the measure's number, and the most that a record of each of its cells adds, in units."""
    domain, measure = workload.domain, workload.domain.measure(name)
    if measure.low_units < 0:
        raise InputError(
            f"{STRATEGY} cuts values from above, so {name} must not be negative; its lower bound is {measure.low_units} units. "
            "Choose a lower bound of 0."
        )
    kind = domain.kind(measure.column) if measure.column in domain.names else None
    if not isinstance(kind, (Bins, Edges, Decimals, Integers)):
        raise InputError(
            f"{STRATEGY} chooses its threshold along the number that is summed, so the domain must have the attribute {measure.column} as "
            f"Integers or Bins. Add it, for example {measure.column} = Bins(0, {float(measure.high):g}, 500)."
        )
    if kind.reading != measure.reading or (isinstance(kind, Integers) and kind.rounding is not None):
        raise InputError(f"{STRATEGY} needs the attribute {measure.column} and the measure {name} to read the column in the same way.")
    whole_numbers = [Fraction(one) for one in kind.regular_labels] if isinstance(kind, Integers) else []
    ends = kind.edges[1:] if isinstance(kind, (Bins, Edges)) else kind.values if isinstance(kind, Decimals) else whole_numbers
    whole = [
        max(1, min(measure.high_units, -(-end.numerator * measure.unit.denominator // (end.denominator * measure.unit.numerator))))
        for end in ends
    ]
    if kind.outside == "clip":
        whole[-1] = measure.high_units  # what lies above is counted in the last cell
    edges = np.array([*whole, *[measure.high_units] * (kind.size - len(whole))], dtype=np.int64)
    return measure.column, np.maximum.accumulate(edges)


def setting_of(plan: Plan) -> Setting:
    """Read and check a plan before anything is paid; it may come from a file that somebody wrote.

    Raises:
        InputError: it is not what this version would plan for its workload.
    """
    return same_plan(setting(plan.workload, plan.privacy, _STEPS), plan)


def same_plan(found: Setting, plan: Plan) -> Setting:
    """The setting of a plan.

    Args:
        found: of the same workload and budget.
        plan: perhaps from a file.

    Raises:
        InputError: the plan is another one.
    """
    if found.plan.digest() != plan.digest():
        raise InputError("The details of the plan are not those of this version. Make the plan again; nothing was spent.")
    return replace(found, plan=plan)


def carry_out(setting: Setting, series: Series) -> Outcome:
    """Choose the threshold, and measure the sums under it.

    Args:
        setting: from ``setting_of``.
        series: paid, or simulated.

    Returns:
        Both measurements side by side; the finding names the threshold and what it is estimated to take.
    """
    places = candidate_cells(setting.edges)
    tail = tail_counts(setting, places)
    observed, counts = [], np.zeros(0)
    if tail is not None:
        observed.append(series.measure(tail))
        counts = observed[0].values[0] / tail.grid
    choice = _choice(setting, places, counts)
    observed.append(series.measure(sums(setting, choice.threshold)))
    kept = [(start + 1, stop + 1) for start, stop in zip(places[:-1].tolist(), places[1:].tolist(), strict=True)]
    losses = [(start, stop, float(choice.excess[start:stop].sum())) for start, stop in kept]
    found = Cut(
        measure=setting.measure,
        attribute=setting.attribute,
        threshold=choice.threshold,
        losses=tuple(entry for entry in losses if entry[2] > 0),
        estimated_loss=float(choice.excess.sum()),
    )
    return Outcome(setting.plan, join(observed, setting.plan.privacy), found)


def tail_counts(setting: Setting, places: IntArray) -> Measurements | None:
    """Counts of the records between one candidate threshold and the next; None where there is one candidate only."""
    if len(places) < 2:
        return None
    size = len(setting.edges)
    factor = Factor((setting.attribute,), Ranges(size, places[:-1] + 1, places[1:].copy()))
    return fit(
        setting.plan.domain,
        setting.plan.privacy.share(TAIL_SHARE),
        setting.noise,
        [(Block((factor,), Fraction(1)), 1.0)],
    )


def _choice(setting: Setting, places: IntArray, counts: np.ndarray) -> ThresholdChoice:
    """The threshold of least predicted error."""
    gram, lost = asked_along(setting.plan.workload, setting.attribute)
    cells = Block((Factor((setting.attribute,), Identity(len(setting.edges))),), Fraction(1))
    noise = fit(setting.plan.domain, setting.plan.privacy.share(1 - TAIL_SHARE), setting.noise, [(cells, 1.0)])
    unit = block_variance(noise, noise.blocks[0]) ** 0.5
    quick = noise_along(setting.plan.workload, setting.attribute, setting.noise.norm)
    return choose_threshold(gram, setting.edges, places, counts, quick, unit, lost=lost)


def sums(setting: Setting, threshold: int) -> Measurements:
    """The sums under the limits of a threshold.

    Raises:
        InputError: the public bounds are too large for exact arithmetic.
    """
    limits = np.minimum(setting.edges, threshold)
    strategy = limited_strategy(setting.plan.workload, setting.attribute, limits, setting.noise.norm)
    return fit(setting.plan.domain, setting.plan.privacy.share(1 - TAIL_SHARE), setting.noise, strategy.blocks)


def explained(plan: Plan) -> Explanation:
    """Its steps."""
    return Explanation(mechanism=plan.details["mechanism"], steps=tuple(plan.details["steps"]))


class TruncatedSums:
    """The mechanism for sums of one measure."""

    names = (STRATEGY,)

    def takes(self, strategy: str, workload: Workload) -> bool:  # noqa: ARG002 - refused with a reason
        """By name."""
        return strategy == STRATEGY

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """See `plan_truncated_sums`."""
        return plan_truncated_sums(workload, privacy, search.strategy, search.tell)

    def ready(self, plan: Plan) -> Run:
        """See `setting_of` and `carry_out`."""
        return partial(carry_out, setting_of(plan))

    def explain(self, plan: Plan) -> Explanation:
        """Two steps."""
        return explained(plan)

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """The threshold."""
        return read_finding((Cut,), facts)
