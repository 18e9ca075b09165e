"""The comparison of ``dawa`` on two attributes with published mechanisms: rectangles over two-dimensional histograms.

    leastnoise experiments dawa-plane --data ../shared/data [--out DIR] [--quick]

Queries: every cell; 2000 rectangles anywhere; 2000 rectangles whose sides are at most an eighth of the table's. The error is the mean
absolute error of a query, in records. Ours is planned for what is asked: cells, all rectangles, all small ones; where that are more queries
than a release takes, for prefix sums along both attributes, of which a rectangle is a sum of four. Its way out for rectangles is the plan
for all of them. It goes through the package's own payment and noise. Noise comes from a seed, so nothing here is private.
"""

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines import TWO_DIMENSIONS, Ranges
from experiments.dawa_figures import draw_ratios
from leastnoise._accounting import Privacy, PureDP
from leastnoise._accuracy import promised
from leastnoise._check import InputError
from leastnoise._domain import Domain, Integers
from leastnoise._estimate import Estimate, Grid, Outcome
from leastnoise._fitting import rescaled
from leastnoise._kernel import SeededEntropy, UnpaidSeries, simulate
from leastnoise._mechanisms import candidates, mechanism_of, terms_of
from leastnoise._mechanisms._dawa import MOST_QUERIES, plan_plane
from leastnoise._plan import Plan
from leastnoise._table import Table
from leastnoise._workload import QuerySet, all_ranges, identity, queries, ranges

Row = dict[str, Any]
Wholes = NDArray[np.int64]
Reals = NDArray[np.float64]
WORKLOADS = ("cells", "rectangles", "small rectangles")
OURS = "dawa"
_QUERIES = 2000
_MARKS = {"cells": ("#777777", "x"), "rectangles": ("#111111", "D"), "small rectangles": ("#3b75af", "o")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is run.

    Args:
        names: of the tables, None for all.
        epsilons: budgets.
        trials: of every other mechanism.
        releases: of ours: how far the worst of them is off is asked too.
    """

    names: tuple[str, ...] | None = None
    epsilons: tuple[str, ...] = ("0.01", "0.1", "1")
    trials: int = 20
    releases: int = 200


QUICK = Size(names=("ADULT-2D", "BLOOD recency x time"), epsilons=("0.1",), trials=2, releases=4)


def compare(data: Mapping[str, Wholes], out: Path, what: Size, seed: int, report: Callable[[str], None]) -> list[Row]:
    """Carry out the experiment.

    Args:
        data: tables of counts by name.
        out: where the files go; made if it is not there.
        what: how much is run.
        seed: of noise and random queries.
        report: called with every line to be shown.

    Returns:
        One row a table, budget and workload: the error of every mechanism, its standard error, our ratio to the best other, and how far the
        worst of our releases is off, in medians.
    """
    out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for epsilon in what.epsilons:
        for place, (name, x) in enumerate(data.items()):
            if what.names is None or name in what.names:
                found, regimes = errors(x, epsilon, what, [seed, place])
                rows += list(summary(name, x, epsilon, found, regimes))
                told = ", ".join(f"{row['workload']} {row[OURS]:.3g} ({row['ratio']:.2f})" for row in rows[-len(WORKLOADS) :])
                report(f"epsilon {epsilon}, {name}: {told}; {regimes}")
    for stem, table in (("errors", rows), ("regret", regret(rows))):
        with (out / f"{stem}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(column for row in table for column in row)), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
    for row in regret(rows):
        report(json.dumps(row))
    draw_ratios(rows, out / "ratios", _MARKS)
    report(f"Tables and figures are in {out}.")
    return rows


def rectangles_of(workload: str, shape: tuple[int, int], seed: Sequence[int]) -> Ranges:
    """The queries.

    >>> rectangles_of("cells", (1, 2), [0]).high.tolist()
    [[1, 1], [1, 2]]
    """
    if workload == "cells":
        low = np.stack(np.divmod(np.arange(shape[0] * shape[1]), shape[1]), axis=1)
        return Ranges(low, low + 1)
    generator = np.random.default_rng([*seed, WORKLOADS.index(workload)])
    if workload == "rectangles":
        ends = np.sort([generator.integers(0, side, (2, _QUERIES)) for side in shape], axis=1)
        return Ranges(ends[:, 0].T.copy(), ends[:, 1].T + 1)
    low = np.stack([generator.integers(0, side, _QUERIES) for side in shape], axis=1)
    width = np.stack([generator.integers(1, max(2, side // 8 + 1), _QUERIES) for side in shape], axis=1)
    return Ranges(low, np.minimum(low + width, shape))


@lru_cache(maxsize=16)
def best_fixed(shape: tuple[int, int]) -> Plan:
    """D: p-Identities for all ranges along both sides, at epsilon 1."""
    domain = Domain(row=Integers(0, shape[0] - 1), column=Integers(0, shape[1] - 1))
    (found,) = candidates(queries(domain, row="all_ranges", column="all_ranges"), Privacy(PureDP(1)), "p_identity")
    if found.plan is None:
        raise InputError(found.reason)
    return found.plan


def asked_along(workload: str, side: int) -> QuerySet:
    """The queries along one side whose products a workload draws from.

    >>> asked_along("small rectangles", 16).operator("row", Integers(0, 15)).rows
    31
    """
    if workload == "cells":
        return identity()
    if workload == "rectangles":
        return all_ranges()
    return ranges((first, last) for first in range(side) for last in range(first, min(first + max(1, side // 8), side)))


@lru_cache(maxsize=64)
def planned(shape: tuple[int, int], epsilon: str) -> dict[str, Plan]:
    """Our plan for every workload; D is the way out for rectangles of more queries than a release takes."""
    domain, privacy = Domain(row=Integers(0, shape[0] - 1), column=Integers(0, shape[1] - 1)), Privacy(PureDP(epsilon))
    prefixes = queries(domain, row="prefix", column="prefix")
    fixed = rescaled(best_fixed(shape).measured(), privacy)
    found, whole = {}, plan_plane(prefixes, privacy, reference=promised(prefixes, fixed))
    for workload in WORKLOADS:
        row, column = (asked_along(workload, side) for side in shape)
        asked = queries(domain, row=row, column=column)
        found[workload] = plan_plane(asked, privacy) if asked.products[0].rows <= MOST_QUERIES else whole
    return found


def errors(x: Wholes, epsilon: str, what: Size, seed: Sequence[int]) -> tuple[dict[str, dict[str, list[float]]], str]:
    """Mean absolute errors by mechanism and workload, one a trial or release; and how often each way was taken."""
    shape = x.shape[0], x.shape[1]
    plans, fixed = planned(shape, epsilon), rescaled(best_fixed(shape).measured(), Privacy(PureDP(epsilon)))
    domain, apart = plans[WORKLOADS[0]].domain, {plan.digest: plan for plan in plans.values()}.values()
    rows, columns = np.repeat(np.indices(shape, dtype=np.int16).reshape(2, -1), x.reshape(-1), axis=1)
    table = Table(domain, {"row": rows, "column": columns})
    found: dict[str, dict[str, list[float]]] = {}
    regimes: list[str] = []
    for trial in range(max(what.trials, what.releases)):
        asked = {workload: rectangles_of(workload, shape, [*seed, trial]) for workload in WORKLOADS}
        entropy = SeededEntropy(int(np.random.default_rng([*seed, trial]).integers(2**32)))
        answers: dict[str, dict[str, Reals]] = {}
        if trial < what.releases:
            outcomes = {plan.digest: carried_out(plan, table, entropy) for plan in apart}
            regimes.append(outcomes[plans[WORKLOADS[1]].digest].finding.facts()["regime"])
            tables = {digest: cells_of(outcome) for digest, outcome in outcomes.items()}
            answers[OURS] = {workload: tables[plan.digest] for workload, plan in plans.items()}
        if trial < what.trials:
            others = {"D": Estimate(simulate(fixed, table, entropy)).marginal(("row", "column")).reshape(shape)}
            others |= {one.label: one.run(x, epsilon, entropy) for one in TWO_DIMENSIONS if one.most_cells >= x.size}
            answers |= {mechanism: dict.fromkeys(WORKLOADS, estimate) for mechanism, estimate in others.items()}
        for mechanism, estimates in answers.items():
            for workload, rectangles in asked.items():
                error = float(np.abs(rectangles.answers(estimates[workload] - x)).mean())
                found.setdefault(mechanism, {}).setdefault(workload, []).append(error)
    return found, " ".join(f"{one}:{regimes.count(one)}" for one in sorted(set(regimes)))


def carried_out(plan: Plan, table: Table, entropy: SeededEntropy) -> Outcome:
    """One release, simulated."""
    return mechanism_of(plan).ready(plan)(UnpaidSeries(terms_of(plan), table, entropy))


def cells_of(outcome: Outcome) -> Reals:
    """The table that answers are sums of, without the error bars of its cells, which take long."""
    estimator = outcome.estimator()
    if isinstance(estimator, Grid):
        return estimator.cells
    return estimator.estimate(queries(outcome.plan.domain, row="identity", column="identity").products[0]).values


def summary(name: str, x: Wholes, epsilon: str, found: Mapping[str, Mapping[str, list[float]]], regimes: str) -> Iterator[Row]:
    """One row a workload."""
    for workload in WORKLOADS:
        means = {one: float(np.mean(values[workload])) for one, values in found.items()}
        spread = {
            f"{one} se": float(np.std(v[workload], ddof=1) / math.sqrt(len(v[workload]))) if len(v[workload]) > 1 else math.nan
            for one, v in found.items()
        }
        others = {one: mean for one, mean in means.items() if one not in (OURS, "D") and "not private" not in one}
        best = min(others, key=lambda one: others[one])
        ours = found[OURS][workload]
        yield {
            "data": name,
            "records": int(x.sum()),
            "epsilon": epsilon,
            "workload": workload,
            "regimes": regimes,
            "best other": best,
            "ratio": means[OURS] / others[best],
            "ratio to D": means[OURS] / means["D"],
            "worst release": max(ours) / float(np.median(ours)),
            **means,
            **spread,
        }


def regret(rows: Sequence[Row]) -> list[Row]:
    """For every budget and workload the geometric mean, over tables, of each mechanism's error over the least of all private ones.

    And the largest of ours, of these ratios and of single releases over their median.
    """
    names = [one for one in rows[0] if f"{one} se" in rows[0] and "not private" not in one]
    out = []
    for epsilon, workload in dict.fromkeys((row["epsilon"], row["workload"]) for row in rows):
        own = [row for row in rows if (row["epsilon"], row["workload"]) == (epsilon, workload)]
        ratios = {one: [row[one] / min(row[other] for other in names) for row in own] for one in names}
        means = {one: round(float(np.exp(np.mean(np.log(values)))), 3) for one, values in ratios.items()}
        to_fixed = float(np.exp(np.mean([math.log(row["ratio to D"]) for row in own])))
        out.append(
            {
                "epsilon": epsilon,
                "workload": workload,
                **means,
                f"{OURS}, largest": round(max(ratios[OURS]), 3),
                f"{OURS} / D": round(to_fixed, 3),
                "worst release": round(max(row["worst release"] for row in own), 3),
            }
        )
    return out
