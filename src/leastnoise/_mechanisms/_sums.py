"""What is public about releases of sums along the number that is summed: its cells, and the most that a record of each can add."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from leastnoise._accounting import Budget, Noise, Privacy, parameters
from leastnoise._check import InputError
from leastnoise._check.arrays import IntArray
from leastnoise._domain import Bins, Decimals, Edges, Integers, Kind
from leastnoise._estimate import joined
from leastnoise._fitting import fit
from leastnoise._linop import Ranges
from leastnoise._measurements import MOST_ROWS, Block, Factor, Measurements
from leastnoise._mechanisms._choose import noises
from leastnoise._mechanisms._protocol import Explanation
from leastnoise._plan import Plan
from leastnoise._planner import candidate_cells
from leastnoise._workload import Workload

TAIL_SHARE = Fraction(1, 10)
"""The part of the budget that chooses a threshold."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is public about a release of truncated sums."""

    plan: Plan
    measure: str
    attribute: str
    edges: IntArray

    @property
    def noise(self) -> Noise:
        """The noise of both steps."""
        return noises(self.plan.privacy)[0]


def setting(workload: Workload, privacy: Privacy, steps: Sequence[tuple[str, Fraction]], strategy: str) -> Setting:
    """What is public about a release of sums, with its plan."""
    if len(workload.measures) != 1 or workload.measures[0] is None or not workload.products[0].of_values:
        raise InputError(
            f"{strategy} answers sums of one measure; this workload asks for {_asked(workload)}. "
            "Ask for counts and other sums in a release of their own."
        )
    measure = workload.measures[0]
    attribute, edges = _cells_of(workload, measure, strategy)
    if not MOST_ROWS * int(edges[-1]) < 2**62:
        raise InputError(
            f"The public bounds are too large for exact arithmetic: up to {int(edges[-1])} units of {measure}; allowed is less than "
            f"{2**62 // MOST_ROWS}. Choose a larger unit or a smaller upper bound."
        )
    parts = [{"step": name, "budget": _budget_json(privacy.budget, share)} for name, share in steps]
    details = {"measure": measure, "attribute": attribute, "mechanism": noises(privacy)[0].value, "steps": parts}
    plan = Plan(workload=workload, privacy=privacy, strategy=strategy, details=details)
    return Setting(plan, measure, attribute, edges)


def number_of_sums(workload: Workload) -> str | None:
    """The column of the one measure whose sums are asked for; None for counts, or several measures."""
    measures = workload.measures
    found = len(measures) == 1 and workload.products[0].of_values
    return workload.domain.measure(str(measures[0])).column if found else None


def _asked(workload: Workload) -> str:
    asked = {
        product.measure: f"sums of {product.measure}" if product.of_values else "counts of units" if product.of_units else product.measure
        for product in workload
    }
    return " and ".join(asked[name] or "counts" for name in workload.measures)


def _budget_json(budget: Budget, share: Fraction) -> dict[str, str]:
    return {name: str(number * share) for name, number in parameters(budget).items()}


def _cells_of(workload: Workload, name: str, strategy: str) -> tuple[str, IntArray]:
    """The attribute that holds the measure's number, and the most that a record of each of its cells adds, in units."""
    domain, measure = workload.domain, workload.domain.measure(name)
    if measure.low_units < 0:
        raise InputError(
            f"{strategy} cuts values from above, so {name} must not be negative; its lower bound is {measure.low_units} units. "
            "Choose a lower bound of 0."
        )
    kind = domain.kind(measure.column) if measure.column in domain.names else None
    if not isinstance(kind, (Bins, Edges, Decimals, Integers)):
        raise InputError(
            f"{strategy} chooses its threshold along the number that is summed, so the domain must have the attribute {measure.column} as "
            f"Integers or Bins. Add it, for example {measure.column} = Bins(0, {float(measure.high):g}, 500)."
        )
    if kind.reading != measure.reading or (isinstance(kind, Integers) and kind.rounding is not None):
        raise InputError(f"{strategy} needs the attribute {measure.column} and the measure {name} to read the column in the same way.")
    whole_numbers = [Fraction(one) for one in kind.regular_labels] if isinstance(kind, Integers) else []
    ends = kind.edges[1:] if isinstance(kind, (Bins, Edges)) else kind.values if isinstance(kind, Decimals) else whole_numbers
    least = max(1, measure.low_units)  # smaller values are raised to the lower bound
    whole = [
        max(least, min(measure.high_units, -(-end.numerator * measure.unit.denominator // (end.denominator * measure.unit.numerator))))
        for end in ends
    ]
    if kind.outside == "clip":
        whole[-1] = measure.high_units  # what lies above is counted in the last cell
    beside = whole[-1] if _nulls_alone(kind) else measure.high_units
    edges = np.array([*whole, *[beside] * (kind.size - len(whole))], dtype=np.int64)
    return measure.column, np.maximum.accumulate(edges)


def _nulls_alone(kind: Kind) -> bool:
    """Whether the cell `other` holds nothing but nulls, which add nothing."""
    return kind.null == "other" and kind.outside != "other"


def tail_counts(setting: Setting, places: IntArray) -> Measurements | None:
    """Counts of the records between one candidate threshold and the next; None where there is one candidate only."""
    if len(places) < 2:
        return None
    plan, last = setting.plan, places[1:].copy()
    kind = plan.domain.kind(setting.attribute)
    if _nulls_alone(kind):
        last[-1] = kind.regular - 1  # nulls are no large values
    factor = Factor((setting.attribute,), Ranges(len(setting.edges), places[:-1] + 1, last))
    return fit(plan.domain, plan.privacy.share(TAIL_SHARE), setting.noise, [(Block((factor,), Fraction(1)), 1.0)])


def after_the_tail(setting: Setting, blocks: Sequence[tuple[Block, float]]) -> Measurements:
    """Measurements of the second step, with what the tail leaves of the budget."""
    made = fit(setting.plan.domain, setting.plan.privacy.share(1 - TAIL_SHARE), setting.noise, blocks)
    tail = tail_counts(setting, candidate_cells(setting.edges))
    joined([made] if tail is None else [tail, made], setting.plan.privacy)  # refused now, and not when both have been paid for
    return made


def same_plan(found: Setting, plan: Plan) -> Setting:
    """The setting of a plan."""
    if found.plan.digest() != plan.digest():
        raise InputError("The details of the plan are not those of this version. Make the plan again; nothing was spent.")
    return replace(found, plan=plan)


class OfSums:
    """What mechanisms for sums of one measure have in common: they are asked for by name, and look at the number that is summed."""

    names: tuple[str, ...]

    def takes(self, strategy: str, workload: Workload) -> bool:  # noqa: ARG002 - refused with a reason
        """By name."""
        return strategy in self.names

    def decides_along(self, workload: Workload) -> tuple[str, ...]:
        """The numbers that are summed."""
        columns = {workload.domain.measure(name).column for name in workload.measures if name is not None}
        return tuple(name for name in workload.domain.names if name in columns)

    def explain(self, plan: Plan) -> Explanation:
        """Its steps."""
        return Explanation(mechanism=plan.details["mechanism"], steps=tuple(plan.details["steps"]))
