"""Measure the gain of `dawa` along one attribute from smoothing.

The reference is least squares from the same measurements of the data-independent plan.

    leastnoise experiments dawa-smooth --data DIR
    python -m experiments.dawa_smooth --data DIR [--cells 256 1024] [--asked prefix] [--epsilon 0.02
    0.2] [--trials 4]

The result is the root mean square error of the requested queries after smoothing, over the error of
least squares with the same noise. The data are real histograms, six smooth synthetic shapes and
thirteen rough ones. The test of `dawa` for smoothness, which costs 3% of epsilon, is not included.
Noise comes from a seed, so nothing here is private.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from experiments.common import Report, Row, Wholes, arguments, geometric_mean, write_csv
from experiments.coverage_shapes import histograms, real_histograms
from experiments.dawa import best_data_independent
from leastnoise._estimation import SmoothedEstimate
from leastnoise._fitting import rescale_noise
from leastnoise._plan import Plan
from leastnoise._trusted.accounting import Privacy, PureDP
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.linop import apply
from leastnoise._trusted.table import Table


def smooth(cells: int, records: int) -> dict[str, Wholes]:
    """Draw smooth counts of about ``records`` records by name: Poisson around a density."""
    at = (np.arange(cells) + 0.5) / cells
    densities = {
        "normal": np.exp(-(((at - 0.5) / 0.15) ** 2) / 2),
        "two normals": np.exp(-(((at - 0.3) / 0.1) ** 2) / 2)
        + 0.6 * np.exp(-(((at - 0.7) / 0.08) ** 2) / 2),
        "exponential": np.exp(-5 * at),
        "sinusoid": 1 + 0.8 * np.sin(6 * np.pi * at),
        "log-normal": np.exp(-((np.log(at / 0.25) / 0.5) ** 2) / 2) / at,
        "linear": at + 0.05,
    }
    random = np.random.default_rng(0)
    return {
        name: random.poisson(records * density / density.sum()).astype(np.int64)
        for name, density in densities.items()
    }


def shapes(data: Path, cells: int) -> dict[str, Mapping[str, Wholes]]:
    """Read or draw histograms by group and name."""
    return {
        "real": real_histograms(data, cells),
        **{f"smooth, {records:.0e} records": smooth(cells, records) for records in (10**5, 10**7)},
        **{
            f"other, {records:.0e} records": histograms(cells, records, 7)
            for records in (10**5, 10**7)
        },
    }


def gain(x: Wholes, plan: Plan, epsilon: str, trials: int) -> float:
    """Divide the RMSE of smoothed answers by the RMSE of least squares with equal noise."""
    measurements = rescale_noise(plan.measured(), Privacy(PureDP(epsilon)))
    table = Table(plan.domain, {"cell": np.repeat(np.arange(len(x), dtype=np.int32), x)})
    (operator,) = plan.workload.products[0].operators
    squares = np.zeros(2)
    for seed in range(trials):
        smoothed = SmoothedEstimate.of(simulate(measurements, table, SeededEntropy(seed)))
        cell_estimates = smoothed.cells, smoothed.least_squares.marginal(("cell",))
        squares += [
            float(np.mean(apply(operator, cells.reshape(-1) - x) ** 2)) for cells in cell_estimates
        ]
    return float(np.sqrt(squares[0] / squares[1]))


def run(
    data: Path,
    out: Path,
    *,
    quick: bool = False,
    report: Report = print,
    cells: Sequence[int] = (256, 1024),
    query_sets: Sequence[str] = ("prefix", "all_ranges", "identity"),
    epsilons: Sequence[str] = ("0.02", "0.2"),
    trials: int = 4,
) -> list[Row]:
    """Carry out the experiment.

    Args:
        data: the folder with ``hist1d``.
        out: the folder for the table, created if it is missing.
        quick: 256 cells, prefix sums, one budget, one trial.
        report: called with a line for every group of histograms.
        cells: numbers of cells of the histograms; divisors of 4096.
        query_sets: query sets that are requested and planned.
        epsilons: budgets.
        trials: number of releases of each.

    Returns:
        One row for each number of cells, query set, budget and histogram.
    """
    if quick:
        cells = (256,)
        query_sets = ("prefix",)
        epsilons = ("0.1",)
        trials = 1
    rows: list[Row] = []
    for size, query_set, epsilon in product(cells, query_sets, epsilons):
        plan = best_data_independent(size, query_set)
        for group, histograms_by_name in shapes(data, size).items():
            gains = {name: gain(x, plan, epsilon, trials) for name, x in histograms_by_name.items()}
            head = {"cells": size, "asked": query_set, "epsilon": epsilon, "group": group}
            rows += [
                {**head, "data": name, "over least squares": round(ratio, 3)}
                for name, ratio in gains.items()
            ]
            mean = geometric_mean(np.maximum([*gains.values()], 0.01))
            worst_name = max(gains, key=lambda name: gains[name])
            report(
                f"{size} cells, {query_set}, epsilon {epsilon}, {group}: {mean:.3f}, at most "
                f"{gains[worst_name]:.3f} ({worst_name})"
            )
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / "smoothed.csv", rows)
    return rows


if __name__ == "__main__":
    options = arguments(
        __doc__,
        data={"type": Path, "required": True},
        out={"type": Path, "default": Path("build/dawa-smooth")},
        cells={"type": int, "nargs": "+", "default": [256, 1024]},
        asked={
            "nargs": "+",
            "default": ["prefix", "all_ranges", "identity"],
            "dest": "query_sets",
        },
        epsilon={"nargs": "+", "default": ["0.02", "0.2"], "dest": "epsilons"},
        trials={"type": int, "default": 4},
    )
    run(**options)
