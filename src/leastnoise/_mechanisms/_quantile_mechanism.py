"""Privately chosen quantiles, and tables with fixed measurements.

If a quantile is computed from a distribution function, the budget pays for the counts up to every
cell. If a cell is chosen privately instead, the budget pays only for the choice of this cell. So
the rank of a median among thousands of cells is usually within one row of its target. The largest
likely distance between the rank and its target is known beforehand, and does not depend on the data
(S6 of PROOFS-quantiles.md). Half of the budget pays for the choices, and the other half measures
the tables that determine the intervals.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from leastnoise._domain import Domain
from leastnoise._error import LEVEL
from leastnoise._estimation import CatalogueText, Outcome, join_observations
from leastnoise._fitting import choice_distance, pure_share
from leastnoise._mechanisms._protocol import (
    DataDependentFinding,
    Mechanism,
    Run,
    adaptive_plan,
    reference_measurements,
    require_adaptive,
    require_details,
)
from leastnoise._mechanisms._search import Search
from leastnoise._mechanisms._strategy_choice import choose_plan
from leastnoise._plan import AdaptiveDetails, AdaptivePlan, Plan, Step
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import InputError, refuse, whole
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.kernel import MOST_CELLS, QuantileSelection, Series
from leastnoise._workload import Statistic, Workload, identity, number_cells

STRATEGY = "selected_quantiles"
_OTHER_CHOICES = "The chosen quantiles belong to another plan. Use an intact copy of the release."
# Epsilons of choices are multiples of 1 / _EPSILON_GRID, so that the choices are exact.
_EPSILON_GRID = 2**24
TABLES_SHARE = Fraction(1, 2)
"""The part of the budget for the tables.

Intervals from two further private choices were over ten times as wide (docs/decisions/answers.md).
These choices concerned ranks beyond the reach of the first choice.
"""


@dataclass(frozen=True, slots=True)
class SelectedQuantile:
    """A requested quantile, its budget, and the private choice of its cell.

    Attributes:
        statistic: the statistic of the workload to which the quantile belongs.
        part: the quantile's part of the budget.
        selection: the private choice of its cell.
    """

    statistic: Statistic
    part: Fraction
    selection: QuantileSelection


def rank_error_bound(
    selection: QuantileSelection, row_distance: int, failure_probability: float
) -> float:
    """Return a bound on the rank error of a private choice, in rows.

    Args:
        selection: the choice.
        row_distance: the number of rows by which neighbouring data sets differ.
        failure_probability: the probability that the error exceeds the bound.
    """
    numerator, denominator = selection.scale(row_distance)
    scale = numerator / denominator / selection.share.denominator
    return choice_distance(scale, selection.cells, failure_probability)


def largest_rank_errors(workload: Workload, privacy: Privacy) -> dict[Statistic, float]:
    """Bound the rank error of each statistic's quantiles, in rows.

    The bounds apply if this mechanism chooses the quantiles with half of the budget. Each bound
    holds with probability `LEVEL` for any data. The result is empty if the mechanism does not
    apply.
    """
    try:
        quantiles = selected_quantiles(workload, privacy)
    except InputError:
        return {}
    reaches: dict[Statistic, float] = {}
    for quantile in quantiles:
        rows = rank_error_bound(quantile.selection, privacy.distance, 1 - LEVEL)
        reaches[quantile.statistic] = max(rows, reaches.get(quantile.statistic, 0.0))
    return reaches


def selected_quantiles(workload: Workload, privacy: Privacy) -> tuple[SelectedQuantile, ...]:
    """Return the private choice of each quantile of a workload, in order.

    Raises:
        InputError: the workload has no quantiles, or has quantiles that cannot be chosen.
    """
    requests = [*_requests(workload)]
    if not requests:
        raise InputError(
            f"{STRATEGY} answers quantiles, and this workload has none. Request quantiles, or "
            "choose strategy = 'auto'."
        )
    weights = [_budget_weight(share) for _, share in requests]
    total = sum(weights)
    remaining = 1 - TABLES_SHARE
    chosen = []
    for (statistic, share), weight in zip(requests, weights, strict=True):
        part = remaining * weight / total
        chosen.append(_selected_quantile(workload, privacy, statistic, share, part))
    return tuple(chosen)


def _requests(workload: Workload) -> Iterator[tuple[Statistic, Fraction]]:
    """Yield each requested quantile: its statistic, and its share of rows."""
    for statistic in workload.statistics:
        if statistic.kind == "quantiles":
            _check_statistic(statistic)
            for share in statistic.at:
                yield statistic, share


def _check_statistic(statistic: Statistic) -> None:
    """Raise InputError for quantiles that cannot be chosen privately."""
    if statistic.weighted_by is not None:
        raise InputError(
            f"With the strategy {STRATEGY}, the {statistic.name} must be of unweighted rows; got "
            f"the weight {statistic.weighted_by}. Choose strategy = 'auto'."
        )
    if any(groups != identity() for groups in statistic.groups):
        raise InputError(
            f"With the strategy {STRATEGY}, the groups of the {statistic.name} must be single "
            "cells of attributes. Levels, ranges, predicates and the WHERE of a statement are not "
            "allowed. Choose strategy = 'auto', or group by the attribute itself."
        )
    if max(statistic.at) == 1:
        raise refuse(
            f"at of the {statistic.name}", 1, "shares below 1 for the strategy " + STRATEGY
        )


def _budget_weight(row_share: Fraction) -> Fraction:
    """Return the relative budget of a quantile with a given share of rows.

    The error of a quantile is proportional to its sensitivity divided by its budget, and these
    weights minimise the sum of the errors.
    """
    sensitivity = max(row_share, 1 - row_share)
    return Fraction(round(1000 * math.sqrt(sensitivity)), 1000)


def _selected_quantile(
    workload: Workload, privacy: Privacy, statistic: Statistic, row_share: Fraction, part: Fraction
) -> SelectedQuantile:
    """Return the private choice of a quantile that costs a part of the budget."""
    selection = QuantileSelection(
        attribute=statistic.of,
        by=tuple(name for name in workload.domain.names if name in statistic.by),
        cells=len(number_cells(workload.domain, statistic.of)),
        share=row_share,
        epsilon=_round_down(pure_share(privacy.budget, part)),
    )
    return SelectedQuantile(statistic, part, selection)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedQuantilesFinding(DataDependentFinding):
    """The finding with the chosen cell of each quantile.

    Attributes:
        choices: for every choice of the plan, in order, the chosen cells of the groups.
    """

    regime = "selected_quantiles"
    linear = True
    interval = "interval"
    reading = "reading"

    choices: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        choices = tuple(
            tuple(whole("a chosen cell", cell, 0, MOST_CELLS - 1) for cell in cells)
            for cells in self.choices
        )
        object.__setattr__(self, "choices", choices)

    @property
    def executed_steps(self) -> CatalogueText:
        """An empty text, because the plan already states all steps."""
        return "", {}

    @classmethod
    def text_keys(cls) -> tuple[str, ...]:
        """Return the catalogue key of the text on intervals, the only text."""
        return (cls.interval,)

    # No error is uncovered on any domain.
    def uncovered_errors(self, domain: Domain) -> list[CatalogueText]:  # noqa: ARG002
        """Return no text, because the intervals include all errors."""
        return []

    def facts(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {"regime": self.regime, "choices": [list(cells) for cells in self.choices]}

    def quantile_choices(self, workload: Workload) -> dict[Statistic, IntArray]:
        """Return the chosen cells by statistic, shape (quantiles, groups).

        The first axis has the shares of the statistic, and the second axis the cells of its groups.

        Raises:
            InputError: the choices belong to another workload.
        """
        remaining = list(self.choices)
        chosen = {}
        for statistic in workload.statistics:
            if statistic.kind != "quantiles":
                continue
            by = [name for name in workload.domain.names if name in statistic.by]
            groups = [workload.domain.cells(name) for name in by]
            count = len(statistic.at)
            cells = remaining[:count]
            del remaining[:count]
            most = len(number_cells(workload.domain, statistic.of)) - 1
            sizes = [len(group_cells) for group_cells in cells]
            if sizes != [math.prod(groups)] * count or max(map(max, cells)) > most:
                raise InputError(_OTHER_CHOICES)
            chosen[statistic] = np.array(cells, dtype=np.int64).reshape(count, *groups)
        if remaining:
            raise InputError(_OTHER_CHOICES)
        return chosen


def _round_down(epsilon: Fraction) -> Fraction:
    """Round an epsilon down to a few digits, so that choices can be exact."""
    if epsilon.denominator <= _EPSILON_GRID:
        return epsilon
    return Fraction(math.floor(epsilon * _EPSILON_GRID), _EPSILON_GRID)


def _details(plan: Plan, quantiles: tuple[SelectedQuantile, ...]) -> AdaptiveDetails:
    """Return the steps of a plan with their budgets and expected accuracy."""
    budget = plan.privacy.budget
    steps = [Step("tables", budget.scaled(TABLES_SHARE))]
    for quantile in quantiles:
        rows = rank_error_bound(quantile.selection, plan.privacy.distance, 1 - LEVEL)
        share = f"{float(quantile.selection.share):g}"
        name = f"quantile {share} of {quantile.statistic.of}, within {math.ceil(rows):,} rows (95%)"
        steps.append(Step(name, budget.scaled(quantile.part)))
    if isinstance(plan, AdaptivePlan):
        measured = reference_measurements(plan)
    else:
        measured = plan.measured()
    return AdaptiveDetails(noise=measured.noise, steps=tuple(steps), selects_quantiles=True)


def run_selections(
    plan: AdaptivePlan, quantiles: tuple[SelectedQuantile, ...], series: Series
) -> Outcome:
    """Measure the tables, then choose the quantiles privately."""
    observation = series.measure(reference_measurements(plan))
    choices = [
        tuple(series.choose_quantile_cells(quantile.selection).tolist()) for quantile in quantiles
    ]
    return Outcome(
        plan,
        join_observations([observation], plan.privacy),
        SelectedQuantilesFinding(choices=tuple(choices)),
    )


class SelectedQuantiles(Mechanism):
    """The mechanism that chooses the cells of quantiles privately."""

    names = (STRATEGY,)
    findings = (SelectedQuantilesFinding,)

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Plan the tables, and the private choice of each quantile."""
        quantiles = selected_quantiles(workload, privacy)
        reference, _ = choose_plan(workload, privacy, replace(search, strategy="auto"))
        tables_privacy = privacy.scaled(TABLES_SHARE)
        return adaptive_plan(reference, tables_privacy, STRATEGY, _details(reference, quantiles))

    def prepare(self, plan: Plan) -> Run:
        """Check a plan, and return the function that carries it out."""
        quantiles = selected_quantiles(plan.workload, plan.privacy)
        adaptive = require_adaptive(plan)
        require_details(plan, _details(adaptive, quantiles))
        measured = reference_measurements(plan)
        if measured.privacy != plan.privacy.scaled(TABLES_SHARE) or measured.domain != plan.domain:
            raise InputError(
                "The tables of the plan must have the domain and half of the budget of the plan. "
                "Make the plan again; nothing was spent."
            )
        return partial(run_selections, adaptive, quantiles)
