"""Measure the coverage of intervals of sums.

The sums are of values clipped at a threshold, along a number and by groups, and of all
values along a number.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from experiments.common import Reals, Row, Wholes
from experiments.coverage_aware import Case, releases
from experiments.coverage_shapes import real_histograms
from experiments.sums_groups import owners
from leastnoise._domain import Bins, Domain, Measure
from leastnoise._estimation import Outcome
from leastnoise._mechanisms._sums_mechanism import fit_limited_sums, plan_sums
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP
from leastnoise._trusted.table import Table
from leastnoise._workload import queries

KINDS = ("prefix sums", "cells")
CELLS = 64
MAXIMUM = 64_000
PAY = Domain(
    pay=Bins(0, MAXIMUM, CELLS, closed="right"), measures={"pay": Measure("pay", 0, MAXIMUM)}
).as_complete()
WORKLOAD = queries(PAY, pay="prefix", sum="pay") + queries(PAY, pay="identity", sum="pay")
THRESHOLD_DOMAIN = Domain(
    all=["everybody"], pay=PAY.kind("pay"), measures=PAY.measures
).as_complete()
THRESHOLD_WORKLOAD = queries(THRESHOLD_DOMAIN, all="identity", pay="prefix", sum="pay") + queries(
    THRESHOLD_DOMAIN, all="identity", pay="identity", sum="pay"
)
GROUPS = 20
GROUPED = Domain(
    group=[f"g{number}" for number in range(GROUPS)],
    pay=Bins(0, MAXIMUM, CELLS, closed="right"),
    measures=PAY.measures,
).as_complete()
BUDGETS: tuple[Budget, ...] = (
    *(PureDP(epsilon) for epsilon in ("1/100", "1/50", "1/20", "1/10", "1")),
    *(ZCDP(rho) for rho in ("1/1000", "1/100", "1/10")),
    ApproxDP("1/2", "1e-9"),
)
# Budgets of releases with a threshold, which take longer.
THRESHOLD_BUDGETS = (
    PureDP("1/10"),
    ZCDP("1/100"),
    ApproxDP("1/2", "1e-9"),
)


def amounts(seed: int, count: int = 20_000) -> dict[str, Wholes]:
    """Draw amounts of many shapes below one public maximum, by name.

    >>> int(amounts(1)["uniform"].max())
    63999
    """
    random = np.random.default_rng(seed)
    light = random.lognormal(np.log(MAXIMUM / 25), 0.8, count)
    values_by_name = {
        "log-normal": light,
        "far below the maximum": light / 20,
        **{
            f"Pareto {index}": MAXIMUM / 100 * random.random(count) ** (-1 / index)
            for index in (0.8, 1.2, 2.0)
        },
        "uniform": MAXIMUM * random.random(count),
        "exponential, 2000": random.exponential(MAXIMUM / 8, 2000),
        "two lumps, 360": np.concatenate(
            [
                random.normal(MAXIMUM / 10, MAXIMUM / 50, 300),
                random.normal(MAXIMUM / 2, MAXIMUM / 30, 60),
            ]
        ),
        "few large": np.where(random.random(5000) < 0.01, 0.9 * MAXIMUM, 0.02 * MAXIMUM),
        "one in 1000 large": np.where(
            random.random(count) < 0.001, 0.7 * MAXIMUM, MAXIMUM / 40 * random.random(count)
        ),
        "none small": MAXIMUM / 8 + light,
        "few records": light[:300],
        "constant": np.full(count, 0.3 * MAXIMUM),
        "nobody": np.zeros(0),
    }
    return {
        name: np.clip(np.rint(values), 1, MAXIMUM).astype(np.int64)
        for name, values in values_by_name.items()
    }


def real_amounts(data: Path, seed: int, count: int = 20_000) -> dict[str, Wholes]:
    """Draw amounts from the real histograms; each is the upper end of its cell."""
    random = np.random.default_rng(seed)
    upper = np.arange(1, CELLS + 1) * (MAXIMUM // CELLS)
    return {
        name: np.repeat(upper, random.multinomial(count, x / x.sum()))
        for name, x in real_histograms(data, CELLS).items()
    }


def cells_of(values: Wholes) -> Wholes:
    """Return the cell of every amount; a cell ends with a multiple of its width."""
    return -(-values // (MAXIMUM // CELLS)) - 1


def of_all_values(case: Case, seed: int) -> Iterator[Row]:
    """Yield rows of sums without a threshold; the truth is the sum of all values.

    Args:
        case: a case whose data are amounts.
        seed: seed of the noise.
    """
    plan = plan_sums(WORKLOAD, Privacy(case.budget)).plan
    for number, (name, values) in enumerate(case.data.items()):
        codes = cells_of(values)
        cells = np.bincount(codes, values, CELLS).astype(np.float64)
        table = Table(PAY, {"pay": codes.astype(np.int16)}, {"pay": values})
        yield from releases(
            case,
            name,
            plan.strategy,
            plan,
            table,
            [cells.cumsum(), cells],
            KINDS,
            [seed, 78, number],
        )


def clipped_sums(outcome: Outcome, values: Wholes, codes: Wholes, size: int) -> Reals:
    """Sum the values clipped at the threshold of a release, by cell or group."""
    return np.bincount(
        codes, np.minimum(values, outcome.finding.facts()["threshold"]), size
    ).astype(np.float64)


def cached_planner() -> Callable[[Any, int], Any]:
    """Return a planner of sums that plans once for each threshold.

    The plan depends on the release only through its threshold.
    """
    plans: dict[int, Any] = {}

    def plan_once(setting: Any, threshold: int) -> Any:
        """Return the plan for a threshold."""
        if threshold not in plans:
            plans[threshold] = fit_limited_sums(setting, threshold)
        return plans[threshold]

    return plan_once


def of_cut_values(case: Case, seed: int) -> Iterator[Row]:
    """Yield rows of sums with a threshold; the truth is the sum of clipped values.

    Args:
        case: a case whose data are amounts.
        seed: seed of the noise.
    """
    plan = plan_sums(THRESHOLD_WORKLOAD, Privacy(case.budget)).plan
    for name, values in case.data.items():

        def truth(outcome: Outcome, values: Wholes) -> list[Reals]:
            """Return the sums of the clipped values."""
            cells = clipped_sums(outcome, values, cells_of(values), CELLS)
            return [cells.cumsum(), cells]

        codes: dict[str, Any] = {
            "all": np.zeros(len(values), dtype=np.int8),
            "pay": cells_of(values).astype(np.int16),
        }
        with patch("leastnoise._mechanisms._sums_mechanism.fit_limited_sums", cached_planner()):
            table = Table(THRESHOLD_WORKLOAD.domain, codes, {"pay": values})
            yield from releases(
                case,
                name,
                plan.strategy,
                plan,
                table,
                partial(truth, values=values),
                KINDS,
                [seed, 77],
            )


def of_groups(case: Case, seed: int) -> Iterator[Row]:
    """Yield rows of sums by groups whose sizes are like 1, 1/2, 1/3, ...

    The truth is the sum of values clipped at the threshold.

    Args:
        case: a case whose data are amounts.
        seed: seed of the groups and of the noise.
    """
    plan = plan_sums(queries(GROUPED, group="identity", sum="pay"), Privacy(case.budget)).plan
    for number, (name, values) in enumerate(case.data.items()):
        group = owners(len(values), GROUPS, np.random.default_rng([seed, 79, number]))

        def truth(outcome: Outcome, values: Wholes, group: Wholes) -> list[Reals]:
            """Return the sums of the clipped values by group."""
            return [clipped_sums(outcome, values, group, GROUPS)]

        table = Table(GROUPED, {"group": group, "pay": cells_of(values)}, {"pay": values})
        exact = partial(truth, values=values, group=group)
        yield from releases(
            case, name, plan.strategy, plan, table, exact, ("groups",), [seed, 79, number]
        )
