"""Compare ``dawa`` on two attributes with published mechanisms.

The queries are rectangles over two-dimensional histograms.

    leastnoise experiments dawa-plane --data DIR [--out DIR] [--quick]

The workloads are every cell; 2000 rectangles anywhere; and 2000 rectangles whose sides are at most
an eighth of the table's sides. The error is the mean absolute error of a query, in records. Our
mechanism is planned for a workload: all cells, all rectangles, or all small rectangles. If a
workload has more queries than a release allows, the mechanism is planned for prefix sums along both
attributes; a rectangle is a sum of four of these. Its data-independent alternative for rectangles
is the plan for all rectangles. The releases use the package's payment and noise. Noise comes from a
seed, so nothing here is private.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from baselines import TWO_DIMENSIONS, Ranges
from experiments.common import Reals, Report, Row, Wholes, simulated
from experiments.dawa_comparison import DATA_INDEPENDENT, Errors, add_error, line, summary, write
from leastnoise._domain import Domain, Integers
from leastnoise._error import evaluate_plan
from leastnoise._estimation import AdaptiveGridEstimate, Estimate, Outcome
from leastnoise._fitting import rescale_noise
from leastnoise._mechanisms import try_strategies
from leastnoise._mechanisms._dawa import MOST_QUERIES, plan_dawa
from leastnoise._plan import Plan
from leastnoise._trusted.accounting import Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.table import Table
from leastnoise._workload import QuerySet, all_ranges, identity, queries, ranges

MARKS = {
    "cells": ("#777777", "x"),
    "rectangles": ("#111111", "D"),
    "small rectangles": ("#3b75af", "o"),
}
WORKLOADS = tuple(MARKS)
_QUERIES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The numbers of data sets, budgets, queries and trials of a run.

    Args:
        names: names of the tables, None for all.
        epsilons: budgets.
        trials: number of trials of every other mechanism.
        releases: number of our releases; larger, because the tables also have the largest error of
            a single release.
    """

    names: tuple[str, ...] | None = None
    epsilons: tuple[str, ...] = ("0.01", "0.1", "1")
    trials: int = 20
    releases: int = 200


QUICK = Size(names=("ADULT-2D", "BLOOD recency x time"), epsilons=("0.1",), trials=2, releases=4)


def run(
    data: Path, out: Path, *, quick: bool = False, seed: int = 0, report: Report = print
) -> None:
    """Carry out the experiment.

    Args:
        data: the folder with ``hist2d`` and ``microdata``.
        out: the folder for tables and figures, created if it is missing.
        quick: two tables, one budget, two trials.
        seed: seed of the noise and the random rectangles.
        report: called with every line of progress.
    """
    if not (data / "hist2d").is_dir():
        raise InputError(
            f"The experiment needs histograms in {data / 'hist2d'}; got none. Say where they are: "
            "--data DIR."
        )
    compare(read_data(data), out, QUICK if quick else Size(), seed, report)


def read_data(folder: Path) -> dict[str, Wholes]:
    """Read histograms of 128 x 128 cells, and tables of two attributes of microdata.

    The sides of the tables are not powers of two.
    """
    data = {}
    for path in sorted((folder / "hist2d").glob("*.256x256.npy")):
        data[path.name.split(".")[0]] = (
            np.load(path).reshape(128, 2, 128, 2).sum(axis=(1, 3)).astype(np.int64)
        )
    cps, adult, blood = (
        _columns(folder / "microdata" / name)
        for name in ("cps.csv", "adult14_pgm.csv", "transfusion.csv")
    )
    data["CPS income x age"] = _tabulate(cps["income"] // 2000, cps["age"] - 15, (250, 76))
    data["ADULT age x hours"] = _tabulate(adult["age"], adult["hours-per-week"], (85, 99))
    data["ADULT age x fnlwgt"] = _tabulate(adult["age"], adult["fnlwgt"], (85, 100))
    data["ADULT gain x loss"] = _tabulate(adult["capital-gain"], adult["capital-loss"], (100, 100))
    data["ADULT school x country"] = _tabulate(
        adult["education-num"], adult["native-country"], (16, 42)
    )
    recency, _, _, since, _ = blood.values()
    data["BLOOD recency x time"] = _tabulate(recency, since, (75, 99))
    return data


def _columns(path: Path) -> dict[str, Wholes]:
    """Read the columns of a file."""
    names = path.read_text("utf-8").split("\n", 1)[0].strip().split(",")
    return dict(
        zip(
            names,
            np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64, unpack=True),
            strict=True,
        )
    )


def _tabulate(row: Wholes, column: Wholes, shape: tuple[int, int]) -> Wholes:
    """Count pairs; the last cells also count all larger values."""
    cells = np.minimum(row, shape[0] - 1) * shape[1] + np.minimum(column, shape[1] - 1)
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)


def compare(
    data: Mapping[str, Wholes], out: Path, run_size: Size, seed: int, report: Report
) -> list[Row]:
    """Compare the mechanisms on tables of counts; write the tables and the figure to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for epsilon in run_size.epsilons:
        for number, (name, x) in enumerate(data.items()):
            if run_size.names is None or name in run_size.names:
                errors_of_data, regimes = errors(x, epsilon, run_size, [seed, number])
                head = {
                    "data": name,
                    "records": int(x.sum()),
                    "epsilon": epsilon,
                    "regimes": regimes,
                }
                rows += summary(head, errors_of_data, WORKLOADS)
                report(f"epsilon {epsilon}, {name}: {line(rows, WORKLOADS)}; {regimes}")
    write(rows, out, MARKS, report)
    return rows


def rectangles_of(workload: str, shape: tuple[int, int], seed: Sequence[int]) -> Ranges:
    """Draw the rectangles of a workload.

    >>> rectangles_of("cells", (1, 2), [0]).high.tolist()
    [[1, 1], [1, 2]]
    """
    if workload == "cells":
        low = np.stack(np.divmod(np.arange(shape[0] * shape[1]), shape[1]), axis=1)
        return Ranges(low, low + 1)
    generator = np.random.default_rng([*seed, WORKLOADS.index(workload)])
    if workload == "rectangles":
        limits = np.sort([generator.integers(0, side, (2, _QUERIES)) for side in shape], axis=1)
        return Ranges(limits[:, 0].T.copy(), limits[:, 1].T + 1)
    low = np.stack([generator.integers(0, side, _QUERIES) for side in shape], axis=1)
    width = np.stack(
        [generator.integers(1, max(2, side // 8 + 1), _QUERIES) for side in shape], axis=1
    )
    return Ranges(low, np.minimum(low + width, shape))


@lru_cache(maxsize=16)
def best_data_independent(shape: tuple[int, int]) -> Plan:
    """Return D: p-Identities for all ranges along both sides, at epsilon 1."""
    domain = Domain(row=Integers(0, shape[0] - 1), column=Integers(0, shape[1] - 1)).as_complete()
    (candidate,) = try_strategies(
        queries(domain, row="all_ranges", column="all_ranges"), Privacy(PureDP(1)), "p_identity"
    )
    if candidate.plan is None:
        raise InputError(candidate.reason)
    return candidate.plan


def query_set_along(workload: str, side: int) -> QuerySet:
    """Return the queries along one side whose products form a workload.

    >>> query_set_along("small rectangles", 16).operator("row", Integers(0, 15)).rows
    31
    """
    if workload == "cells":
        return identity()
    if workload == "rectangles":
        return all_ranges()
    return ranges(
        (first, last)
        for first in range(side)
        for last in range(first, min(first + max(1, side // 8), side))
    )


@lru_cache(maxsize=64)
def plan_mechanism(shape: tuple[int, int], epsilon: str) -> dict[str, Plan]:
    """Plan our mechanism for every workload.

    For rectangles with too many queries, it is the plan for prefix sums, with D as alternative.
    """
    domain = Domain(row=Integers(0, shape[0] - 1), column=Integers(0, shape[1] - 1)).as_complete()
    privacy = Privacy(PureDP(epsilon))
    prefixes = queries(domain, row="prefix", column="prefix")
    prefix_plan = plan_dawa(
        prefixes,
        privacy,
        "dawa",
        reference=evaluate_plan(
            prefixes, rescale_noise(best_data_independent(shape).measured(), privacy)
        ),
    )
    plans = {}
    for workload in WORKLOADS:
        row, column = (query_set_along(workload, side) for side in shape)
        requested = queries(domain, row=row, column=column)
        if requested.products[0].rows <= MOST_QUERIES:
            plans[workload] = plan_dawa(requested, privacy, "dawa")
        else:
            plans[workload] = prefix_plan
    return plans


def errors(x: Wholes, epsilon: str, run_size: Size, seed: Sequence[int]) -> tuple[Errors, str]:
    """Compute the errors of all mechanisms, and count the regimes of our releases."""
    shape = x.shape[0], x.shape[1]
    plans = plan_mechanism(shape, epsilon)
    fixed = rescale_noise(best_data_independent(shape).measured(), Privacy(PureDP(epsilon)))
    rows, columns = np.repeat(
        np.indices(shape, dtype=np.int16).reshape(2, -1), x.reshape(-1), axis=1
    )
    table = Table(plans["cells"].domain, {"row": rows, "column": columns})
    mechanism_errors = Errors()
    regimes = list[str]()
    for trial in range(max(run_size.trials, run_size.releases)):
        query_rectangles = {
            workload: rectangles_of(workload, shape, [*seed, trial]) for workload in WORKLOADS
        }
        entropy = SeededEntropy(int(np.random.default_rng([*seed, trial]).integers(2**32)))
        estimates: dict[str, dict[str, Reals]] = {}
        if trial < run_size.releases:
            # A plan that several workloads share is run once.
            distinct_plans = {id(plan): plan for plan in plans.values()}
            outcomes = {
                key: simulated(plan, table, entropy) for key, plan in distinct_plans.items()
            }
            regimes.append(outcomes[id(plans["rectangles"])].finding.facts()["regime"])
            cells = {key: cells_of(outcome) for key, outcome in outcomes.items()}
            estimates["dawa"] = {workload: cells[id(plan)] for workload, plan in plans.items()}
        if trial < run_size.trials:
            other_estimates = {
                DATA_INDEPENDENT: Estimate(simulate(fixed, table, entropy))
                .marginal(("row", "column"))
                .reshape(shape)
            }
            other_estimates |= {
                baseline.label: baseline.run(x, epsilon, entropy)
                for baseline in TWO_DIMENSIONS
                if baseline.most_cells >= x.size
            }
            estimates |= {
                mechanism: dict.fromkeys(WORKLOADS, estimate)
                for mechanism, estimate in other_estimates.items()
            }
        for mechanism, of_workload in estimates.items():
            for workload, rectangles in query_rectangles.items():
                add_error(
                    mechanism_errors, mechanism, workload, rectangles, of_workload[workload], x
                )
    counts = " ".join(f"{regime}:{regimes.count(regime)}" for regime in sorted(set(regimes)))
    return mechanism_errors, counts


def cells_of(outcome: Outcome) -> Reals:
    """Estimate the cells from an outcome, without their slow standard errors."""
    estimator = outcome.estimator()
    if isinstance(estimator, AdaptiveGridEstimate):
        return estimator.cells
    return estimator.estimate(
        queries(outcome.plan.domain, row="identity", column="identity").products[0]
    ).values
