"""The mechanisms that look at the data and pay for it: by name only, because their error cannot be promised beforehand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leastnoise._accounting import Privacy
from leastnoise._check import InputError
from leastnoise._kernel import Series
from leastnoise._observation import Observation
from leastnoise._plan import DataAwarePlan
from leastnoise._session import _dawa as dawa
from leastnoise._session import _dawa_plane as plane
from leastnoise._session import _truncated_sums as truncated_sums
from leastnoise._workload import Workload

Progress = Callable[[str], None] | None


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What the session needs of a data-aware mechanism.

    Args:
        plan: makes the public plan for a workload, a budget and the mechanism's name.
        setting_of: reads and checks such a plan before anything is paid.
        carry_out: does what the setting says within a paid series, and joins what was measured.
    """

    plan: Callable[[Workload, Privacy, str, Progress], DataAwarePlan]
    setting_of: Callable[[DataAwarePlan], Any]
    carry_out: Callable[[Any, Series], Observation]


def _plan_dawa(workload: Workload, privacy: Privacy, strategy: str, progress: Progress) -> DataAwarePlan:
    """By the number of attributes."""
    return (plane.plan_plane if plane.on_two(workload) else dawa.plan_dawa)(workload, privacy, strategy, progress)


def _setting_of(made: DataAwarePlan) -> Any:
    return plane.plane_setting(made) if "attributes" in made.details else dawa.setting_of(made)


def _carry_out(setting: Any, series: Series) -> Observation:
    return plane.carry_out_plane(setting, series) if isinstance(setting, plane.PlaneSetting) else dawa.carry_out(setting, series)


MECHANISMS: dict[str, Mechanism] = {
    **{name: Mechanism(_plan_dawa, _setting_of, _carry_out) for name in dawa.STRATEGIES},
    truncated_sums.STRATEGY: Mechanism(truncated_sums.plan_truncated_sums, truncated_sums.setting_of, truncated_sums.carry_out),
}


def ready(plan: DataAwarePlan) -> Callable[[Series], Observation]:
    """Check a plan before anything is paid for it.

    Args:
        plan: perhaps from a file that somebody wrote.

    Returns:
        What carries it out.

    Raises:
        InputError: no such mechanism, or not a plan of it.

    >>> ready(DataAwarePlan(domain=Domain(age=[1, 2]), privacy=Privacy(PureDP(1)), strategy="magic", questions=({},)))
    Traceback (most recent call last):
    leastnoise._check._errors.InputError: The strategy of a data-aware plan must be one of dawa, ...; got 'magic'. ...
    """
    if plan.strategy not in MECHANISMS:
        raise InputError(
            f"The strategy of a data-aware plan must be one of {', '.join(MECHANISMS)}; got {plan.strategy!r}. Make the plan again; "
            "nothing was spent."
        )
    mechanism = MECHANISMS[plan.strategy]
    setting = mechanism.setting_of(plan)
    return lambda series: mechanism.carry_out(setting, series)
