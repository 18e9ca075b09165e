"""Measure the coverage of intervals of data-dependent releases on each data set."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from unittest.mock import patch

import numpy as np

from experiments.common import Reals, Row, Wholes, geometric_mean, simulated
from leastnoise._domain import Domain, Integers
from leastnoise._error import evaluate_plan
from leastnoise._estimation import Outcome
from leastnoise._fitting import rescale_noise
from leastnoise._mechanisms import try_strategies
from leastnoise._mechanisms._dawa import plan_dawa
from leastnoise._plan import Plan
from leastnoise._release import Options, build_release
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP
from leastnoise._trusted.table import Table
from leastnoise._workload import Workload, queries, ranges

LEVEL = 0.95
ALONG = ("long ranges", "short ranges", "prefix sums", "cells")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Data of one kind, and the settings of their releases.

    Args:
        group: name of the kind of data.
        data: histograms or tables by name.
        budget: budget of every release.
        strategies: mechanisms.
        trials: number of releases of each.
        few: whether queries on two attributes have at most four cells.
    """

    group: str
    data: Mapping[str, Wholes]
    budget: Budget
    strategies: tuple[str, ...] = ("dawa",)
    trials: int = 4
    few: bool = False


@contextmanager
def quick_strategies() -> Iterator[None]:
    """Leave out strategies that take seconds per release.

    The intervals of this study need only trees.
    """
    with patch.multiple("leastnoise._strategies._data_dependent", _MOST_P_IDENTITY=0):
        yield


def budget_name(budget: Budget) -> str:
    """Return "epsilon", "rho" or "epsilon, delta" for a budget."""
    return {PureDP: "epsilon", ZCDP: "rho", ApproxDP: "epsilon, delta"}[type(budget)]


def covered(outcome: Outcome, truth: Sequence[Reals]) -> Iterator[tuple[str, float, float]]:
    """Yield, for each table, its name, the share of covered answers, and a width ratio.

    The ratio is the mean half width over the mean error, which is taken as at least 1/2.
    """
    for table, exact in zip(
        build_release(outcome, Options(level=LEVEL)).tables, truth, strict=True
    ):
        is_finite = np.isfinite(table.low) & np.isfinite(table.high)
        inside = (table.low <= exact + 1e-9) & (exact <= table.high + 1e-9)
        half = (table.high - table.low)[is_finite].mean() / 2
        error = np.abs(table.answer - exact)[is_finite].mean()
        yield table.name, float(inside[is_finite].mean()), float(half / max(error, 0.5))


@lru_cache(maxsize=64)
def workload_along(size: int, seed: int = 5) -> tuple[Workload, Wholes, Wholes]:
    """Return long ranges, short ranges, prefix sums and cells as a workload.

    The result also has the first and last cells of the long and of the short ranges.
    """
    generator = np.random.default_rng(seed)
    low, high = np.sort(generator.integers(0, size, (2, 400)), axis=0)
    start = generator.integers(0, size, 200)
    stop = np.minimum(start + generator.geometric(1 / 8, 200), size - 1)
    limits = [np.unique(np.stack(pair, axis=1), axis=0) for pair in ((low, high), (start, stop))]
    domain = Domain(cell=Integers(0, size - 1)).as_complete()
    sets = (
        *(ranges([tuple(pair) for pair in pairs.tolist()]) for pairs in limits),
        "prefix",
        "identity",
    )
    parts = [queries(domain, cell=query_set) for query_set in sets]
    return parts[0] + parts[1] + parts[2] + parts[3], limits[0], limits[1]


def plan_by(strategy: str, workload: Workload, privacy: Privacy) -> Plan:
    """Plan with a strategy that must apply."""
    return next(
        candidate.plan
        for candidate in try_strategies(workload, privacy, strategy)
        if candidate.plan
    )


@lru_cache(maxsize=64)
def plan_along(size: int, budget: Budget, strategy: str) -> Plan:
    """Plan one attribute so that the data-independent alternative is found quickly.

    The intervals of the alternative are exact; `coverage_linear` measures their coverage.
    """
    workload = workload_along(size)[0]
    privacy = Privacy(budget)
    tree = plan_by("level_tree", queries(workload.domain, cell="prefix"), privacy)
    reference = evaluate_plan(workload, rescale_noise(tree.measured(), privacy), tree.strategy)
    return plan_dawa(workload, privacy, strategy, reference=reference)


def along(case: Case, seed: int) -> Iterator[Row]:
    """Yield the rows of one attribute: a row per data set, strategy, regime and query kind."""
    for number, (name, x) in enumerate(case.data.items()):
        size = len(x)
        _, long, short = workload_along(size)
        sums = np.concatenate([[0], np.cumsum(x)]).astype(np.float64)
        truth = [sums[limits[:, 1] + 1] - sums[limits[:, 0]] for limits in (long, short)]
        truth += [sums[1:], x.astype(np.float64)]
        table = Table(
            Domain(cell=Integers(0, size - 1)).as_complete(),
            {"cell": np.repeat(np.arange(size, dtype=np.int16), x)},
        )
        for strategy in case.strategies:
            plan = plan_along(size, case.budget, strategy)
            yield from releases(case, name, strategy, plan, table, truth, ALONG, [seed, number])


@lru_cache(maxsize=16)
def plan_on(side: int, budget: Budget) -> tuple[Plan, Wholes, Wholes]:
    """Plan two attributes; return the plan and the ranges along each."""
    domain = Domain(row=Integers(0, side - 1), column=Integers(0, side - 1)).as_complete()
    generator = np.random.default_rng(5)
    limits = [
        np.unique(np.sort(generator.integers(0, side, (20, 2)), axis=1), axis=0) for _ in range(2)
    ]
    first, second = (ranges([tuple(pair) for pair in pairs.tolist()]) for pairs in limits)
    cells = queries(domain, row="identity", column="identity")
    workload = queries(domain, row=first, column=second) + cells + queries(domain, row="prefix")
    privacy = Privacy(budget)
    return (
        plan_dawa(workload, privacy, "dawa", reference=plan_by("identity", workload, privacy)),
        limits[0],
        limits[1],
    )


@lru_cache(maxsize=16)
def plan_of_few(side: int, budget: Budget) -> Plan:
    """Plan each cell and each square of 2 x 2 of two attributes."""
    domain = Domain(row=Integers(0, side - 1), column=Integers(0, side - 1)).as_complete()
    pairs = ranges([(first, first + 1) for first in range(side - 1)])
    privacy = Privacy(budget)
    workload = queries(domain, row="identity", column="identity") + queries(
        domain, row=pairs, column=pairs
    )
    return plan_dawa(workload, privacy, "dawa", reference=plan_by("identity", workload, privacy))


def on_plane(case: Case, seed: int) -> Iterator[Row]:
    """Yield the rows of two attributes."""
    for number, (name, x) in enumerate(case.data.items()):
        side = len(x)
        cells = x.astype(np.float64)
        kinds: tuple[str, ...]
        if case.few:
            plan = plan_of_few(side, case.budget)
            kinds = ("cells", "squares of 2 x 2")
            strips = cells[1:] + cells[:-1]
            truth = [cells, strips[:, 1:] + strips[:, :-1]]
        else:
            plan, rows, columns = plan_on(side, case.budget)
            kinds = ("rectangles", "cells", "prefix sums of rows")
            sums = np.pad(x.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0))).astype(np.float64)
            strips = sums[rows[:, 1] + 1] - sums[rows[:, 0]]
            truth = [strips[:, columns[:, 1] + 1] - strips[:, columns[:, 0]], cells, sums[1:, -1]]
        codes = np.repeat(np.indices(x.shape, dtype=np.int16).reshape(2, -1), x.reshape(-1), axis=1)
        table = Table(plan.domain, {"row": codes[0], "column": codes[1]})
        yield from releases(case, name, "dawa", plan, table, truth, kinds, [seed, 1000 + number])


def releases(
    case: Case,
    name: str,
    strategy: str,
    plan: Plan,
    table: Table,
    truth: Sequence[Reals] | Callable[[Outcome], Sequence[Reals]],
    kinds: Sequence[str],
    seed: Sequence[int],
) -> Iterator[Row]:
    """Yield a row per regime and query kind for one data set and strategy."""
    results: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for trial in range(case.trials):
        outcome = simulated(plan, table, int(np.random.default_rng([*seed, trial]).integers(2**32)))
        exact = truth(outcome) if callable(truth) else truth
        regime = outcome.finding.facts()["regime"]
        for kind, (_, share, width) in zip(kinds, covered(outcome, exact), strict=True):
            results.setdefault((regime, kind), []).append((share, width))
    for (regime, kind), shares in results.items():
        yield {
            "group": case.group,
            "data": name,
            "strategy": strategy,
            "regime": regime,
            "budget": budget_name(case.budget),
            "of": str(case.budget),
            "queries": kind,
            "releases": len(shares),
            "coverage": float(np.mean([share for share, _ in shares])),
            "below": int(sum(share < 0.9 for share, _ in shares)),
            "width": geometric_mean(max(width, 1e-9) for _, width in shares),
        }
