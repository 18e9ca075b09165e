"""Measure the coverage of intervals of statistics, K-norm noise and plans after releases.

    python -m experiments.coverage_statistics [--releases 300] [--only NAME ...]

The study simulates whole releases of synthetic rows in groups of 20 to 3000 rows, with noise from a
seed and a nominal level of 95%. Prints the table of docs/results/coverage.md: the share of true
values inside their intervals, the lowest share of a group, the share of intervals that rule out a
value, and the coverage of these. An interval rules out no value if it has no ends, or the ends that
the bounds imply.
"""

import argparse
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import leastnoise as ln
from experiments.common import Row
from leastnoise._trusted.check.arrays import BoolArray, FloatArray

SIZES = (20, 60, 300, 3000)
GROUPS = tuple(f"g{size}" for size in SIZES)
SHARES = (0.25, 0.5, 0.75)
NAMES = ("pay", "hours", "tenure")
BOUNDS = {"pay": (0, 100), "hours": (0, 60), "tenure": (0, 40), "weight": (0, 10)}
BUDGETS = {"epsilon": ln.PureDP(2), "rho": ln.ZCDP("1/2"), "epsilon, delta": ln.ApproxDP(2, "1e-6")}
SMALLER_BUDGETS = {
    "epsilon 1/2": ln.PureDP("1/2"),
    "rho 1/32": ln.ZCDP("1/32"),
    "epsilon 1/2, delta": ln.ApproxDP("1/2", "1e-6"),
}


class Intervals(NamedTuple):
    """The ends of intervals, of shape (items, groups)."""

    low: FloatArray
    high: FloatArray


class Study(NamedTuple):
    """Intervals of one kind of statistic over many releases.

    Attributes:
        plan: function from a budget to the plan.
        truth: function that returns the true values, of shape (items, groups).
        intervals: function that reads the intervals of a release.
        widest: the ends that the bounds imply.
        by_group: whether the last axis has one entry for each size of `SIZES`.
        earlier: whether every release follows a separate earlier one, which its plan uses.
    """

    plan: Callable[[Any], ln.Plan]
    truth: Callable[[], FloatArray]
    intervals: Callable[[ln.Release], Intervals]
    widest: tuple[float, float] = (-math.inf, math.inf)
    by_group: bool = True
    earlier: bool = False


@cache
def people() -> pd.DataFrame:
    """Draw correlated integers in groups of the sizes."""
    rng = np.random.default_rng(20261129)
    parts = []
    for name, size in zip(GROUPS, SIZES, strict=True):
        common = rng.normal(size=size)
        drawn_values = {
            "pay": 45 + 15 * common + 10 * rng.normal(size=size),
            "hours": 30 + 8 * common + 8 * rng.normal(size=size),
            "tenure": 15 - 5 * common + 8 * rng.normal(size=size),
            "weight": 3 + common + rng.gamma(1, 1, size),
        }
        columns = {key: np.rint(values.clip(*BOUNDS[key])) for key, values in drawn_values.items()}
        parts.append(pd.DataFrame({"group": name, **columns}))
    frame = pd.concat(parts, ignore_index=True).astype(dict.fromkeys(BOUNDS, int))
    return frame.assign(pay_cell=frame["pay"])


@cache
def domain() -> ln.Domain:
    """Return a domain with the group, the pay in cells, and the measures."""
    measures = {name: ln.Measure(name, *BOUNDS[name]) for name in (*NAMES, "weight")}
    kinds: dict[str, Any] = {"group": list(GROUPS), "pay_cell": ln.Integers(0, 100)}
    return ln.Domain(kinds, measures=measures)


def by_group(statistic: Callable[[pd.DataFrame], Sequence[float]]) -> FloatArray:
    """Return a statistic of each group, of shape (items, groups)."""
    groups = people().groupby("group")
    return np.array([statistic(groups.get_group(name)) for name in GROUPS]).T


def stacked(low: FloatArray, high: FloatArray) -> Intervals:
    """Return intervals of (items, groups) from arrays whose first axis has the groups."""
    groups = len(GROUPS)
    return Intervals(low.reshape(groups, -1).T, high.reshape(groups, -1).T)


def quantile_study(strategy: str, weighted_by: str | None = None) -> Study:
    """Study quartiles by group with a strategy, or weighted."""

    def plan(budget: Any) -> ln.Plan:
        queries = ln.quantile_queries(domain(), "pay_cell", SHARES, by=["group"])
        if weighted_by:
            queries = queries.weighted_by(weighted_by)
        return ln.plan(queries, budget, strategy=strategy, seconds=2)

    def truth() -> FloatArray:
        return by_group(
            lambda rows: true_quantiles(rows["pay"], rows[weighted_by] if weighted_by else None)
        )

    def intervals(release: ln.Release) -> Intervals:
        table = release.statistics[0]
        return stacked(np.asarray(table.low, dtype=float), np.asarray(table.high, dtype=float))

    return Study(plan, truth, intervals, widest=(0.0, 100.0))


def true_quantiles(values: pd.Series, weights: pd.Series | None) -> list[float]:
    """Return the smallest values up to which the weights add up to the shares."""
    ordered = values.sort_values()
    if weights is None:
        cumulated = np.arange(1.0, len(ordered) + 1)
    else:
        cumulated = weights[ordered.index].cumsum().to_numpy(dtype=float)
    positions = np.searchsorted(cumulated, np.array(SHARES) * cumulated[-1])
    return [float(ordered.iloc[position]) for position in positions]


def variance_study(*, of_deviations: bool) -> Study:
    """Study variances or standard deviations of the pay by group."""

    def intervals(release: ln.Release) -> Intervals:
        statistics = ln.variances(release, "pay", by=["group"])
        if of_deviations:
            return stacked(statistics.std_dev_low, statistics.std_dev_high)
        return stacked(statistics.low, statistics.high)

    largest = 50.0 if of_deviations else 2500.0
    return Study(
        lambda budget: ln.plan(ln.variance_queries(domain(), "pay", by=["group"]), budget),
        lambda: by_group(lambda rows: [rows["pay"].std(ddof=0) ** (1 if of_deviations else 2)]),
        intervals,
        widest=(0.0, largest),
    )


def pair_study(*, of_covariances: bool) -> Study:
    """Study correlations or covariances of three measures by group."""

    def plan(budget: Any) -> ln.Plan:
        return ln.plan(ln.correlation_queries(domain(), NAMES, by=["group"]), budget)

    def truth(rows: pd.DataFrame) -> Sequence[float]:
        matrix = rows[[*NAMES]].cov(ddof=0) if of_covariances else rows[[*NAMES]].corr()
        return matrix.to_numpy()[np.triu_indices(3, 1)].tolist()

    def intervals(release: ln.Release) -> Intervals:
        statistics = ln.correlations(release, NAMES, by=["group"])
        if of_covariances:
            return stacked(statistics.covariance_low, statistics.covariance_high)
        return stacked(statistics.low, statistics.high)

    # A covariance is at most a quarter of the product of both distances of the bounds. The pair
    # with the smallest limit determines which intervals count as finite.
    largest = 60.0 * 40.0 / 4 if of_covariances else 1.0
    return Study(plan, lambda: by_group(truth), intervals, widest=(-largest, largest))


def coefficient_study(predictors: Sequence[str]) -> Study:
    """Study coefficients of a regression of the pay on other measures by group."""

    def plan(budget: Any) -> ln.Plan:
        queries = ln.regression_queries(domain(), "pay", on=predictors, by=["group"])
        return ln.plan(queries, budget)

    def truth(rows: pd.DataFrame) -> Sequence[float]:
        design = np.column_stack([np.ones(len(rows)), rows[[*predictors]]])
        return np.linalg.lstsq(design, rows["pay"].to_numpy(), rcond=None)[0].tolist()

    def intervals(release: ln.Release) -> Intervals:
        statistics = ln.regression(release, "pay", on=predictors, by=["group"])
        return stacked(statistics.low, statistics.high)

    return Study(plan, lambda: by_group(truth), intervals)


def one_way_tables() -> ln.Workload:
    """Build three tables of 4, 7 and 6 counts: cells and groups of levels."""
    kinds: dict[str, Any] = {
        "group": list(GROUPS),
        "hours": ln.Integers(0, 60, levels={"part": {"width": 10}}),
        "tenure": ln.Integers(0, 40, levels={"part": {"width": 8}}),
    }
    tables = ln.Domain(kinds).as_complete()
    parts = ln.level("part")
    return (
        ln.queries(tables, group="identity")
        + ln.queries(tables, hours=parts)
        + ln.queries(tables, tenure=parts)
    )


def tables_study(strategy: str, *, earlier: bool = False) -> Study:
    """Study counts of the one-way tables."""

    def truth() -> FloatArray:
        rows = people()
        counts = [
            rows["group"].value_counts().reindex(GROUPS).to_numpy(),
            np.bincount(rows["hours"] // 10, minlength=7),
            np.bincount(rows["tenure"] // 8, minlength=6),
        ]
        return np.concatenate(counts).astype(float)[None]

    def intervals(release: ln.Release) -> Intervals:
        low = np.concatenate([table.low.ravel() for table in release.tables])
        high = np.concatenate([table.high.ravel() for table in release.tables])
        return Intervals(low[None], high[None])

    return Study(
        lambda budget: ln.plan(one_way_tables(), budget, strategy=strategy),
        truth,
        intervals,
        by_group=False,
        earlier=earlier,
    )


STUDIES: dict[str, Study] = {
    "quantiles by selection": quantile_study("selected_quantiles"),
    "quantiles": quantile_study("auto"),
    "weighted quantiles": quantile_study("auto", "weight"),
    "variances": variance_study(of_deviations=False),
    "standard deviations": variance_study(of_deviations=True),
    "covariances": pair_study(of_covariances=True),
    "correlations": pair_study(of_covariances=False),
    "coefficients, one predictor": coefficient_study(("hours",)),
    "coefficients, two predictors": coefficient_study(("hours", "tenure")),
    "one-way tables, K-norm noise": tables_study("k_norm"),
    "tables after an earlier release": tables_study("auto", earlier=True),
}


def covered(study: Study, budget: Any, releases: int, seed: int = 0) -> tuple[BoolArray, BoolArray]:
    """Return which intervals contain the truth, and which have ends.

    Both have the shape (releases, items, groups).
    """
    truth = study.truth()
    plan = study.plan(budget)
    inside = []
    has_ends = []
    for number in range(seed, seed + releases):
        current = plan
        if study.earlier:
            first = ln.release(plan, people(), seed=10**6 + number)
            current = ln.plan(plan.workload, plan.privacy, after=[first])
        intervals = study.intervals(ln.release(current, people(), seed=number))
        low = intervals.low
        high = intervals.high
        inside.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
        has_ends.append((low > study.widest[0]) | (high < study.widest[1]))
    return np.array(inside), np.array(has_ends)


def rows(
    releases: int,
    names: Sequence[str] = tuple(STUDIES),
    seed: int = 0,
    budgets: Mapping[str, Any] = BUDGETS,
) -> Iterator[Row]:
    """Yield a row for each statistic and budget that has a plan."""
    for name in names:
        study = STUDIES[name]
        for budget, privacy in budgets.items():
            if name == "one-way tables, K-norm noise" and budget.startswith("rho"):
                continue  # K-norm noise has no cost in rho
            inside, has_ends = covered(study, privacy, releases, seed)
            shares = inside.mean(axis=(0, 1))
            lowest = int(shares.argmin())
            yield {
                "statistic": name,
                "budget": budget,
                "intervals": inside.size,
                "covered": float(inside.mean()),
                "lowest group": float(shares.min()),
                "group": f"{SIZES[lowest]} rows" if study.by_group else "one cell",
                "with ends": float(has_ends.mean()),
                "covered of these": float(inside[has_ends].mean()) if has_ends.any() else math.nan,
            }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=list(STUDIES), choices=STUDIES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smaller", action="store_true", help="a quarter of the budgets")
    options = parser.parse_args()
    print(
        "| statistic | budget | intervals | covered | lowest group | with ends | of these covered |"
    )
    print("|---|---|--:|--:|---|--:|--:|")
    budgets = SMALLER_BUDGETS if options.smaller else BUDGETS
    for row in rows(options.releases, options.only, options.seed, budgets):
        print(
            f"| {row['statistic']} | {row['budget']} | {row['intervals']:,} | {row['covered']:.3f} "
            f"| {row['lowest group']:.3f} ({row['group']}) | {row['with ends']:.1%} "
            f"| {row['covered of these']:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
