"""What `dawa` gains along one attribute where it measures the plan that does not look at the data, against that plan as it is.

    leastnoise experiments dawa-smooth --data ../shared/data
    python -m experiments.dawa_smooth --data DIR [--cells 256 1024] [--asked prefix] [--epsilon 0.02 0.2] [--trials 4]

Root mean square error of what is asked after smoothing, over that of least squares from the same noise: real histograms, six smooth shapes
and thirteen made-up ones that are anything but smooth. Where the test of `dawa` takes this way it has paid 3% of epsilon before. Noise
comes from a seed, so nothing here is private.
"""

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.coverage_shapes import histograms, real_histograms
from experiments.dawa import best_fixed
from leastnoise._accounting import Privacy, PureDP
from leastnoise._estimate import Smoothed
from leastnoise._fitting import rescaled
from leastnoise._kernel import SeededEntropy, simulate
from leastnoise._linop import apply
from leastnoise._plan import Plan
from leastnoise._table import Table

Wholes = npt.NDArray[np.int64]
Row = dict[str, str | int | float]


def smooth(cells: int, records: int, *, drawn: bool, seed: int = 0) -> dict[str, Wholes]:
    """Smooth counts by name.

    Args:
        cells: of the histogram.
        records: about so many.
        drawn: whether every count is a Poisson draw, or the nearest whole number.
        seed: of the draws.
    """
    at = (np.arange(cells) + 0.5) / cells
    densities = {
        "normal": np.exp(-(((at - 0.5) / 0.15) ** 2) / 2),
        "two normals": np.exp(-(((at - 0.3) / 0.1) ** 2) / 2) + 0.6 * np.exp(-(((at - 0.7) / 0.08) ** 2) / 2),
        "exponential": np.exp(-5 * at),
        "sinusoid": 1 + 0.8 * np.sin(6 * np.pi * at),
        "log-normal": np.exp(-((np.log(at / 0.25) / 0.5) ** 2) / 2) / at,
        "linear": at + 0.05,
    }
    random = np.random.default_rng(seed)
    means = {name: records * density / density.sum() for name, density in densities.items()}
    return {name: (random.poisson(mean) if drawn else np.rint(mean)).astype(np.int64) for name, mean in means.items()}


def shapes(data: Path, cells: int) -> dict[str, Mapping[str, Wholes]]:
    """Histograms by group and name."""
    return {
        "real": real_histograms(data, cells),
        **{f"smooth, {records:.0e} records": smooth(cells, records, drawn=True) for records in (10**5, 10**7)},
        **{f"other, {records:.0e} records": histograms(cells, records, 7) for records in (10**5, 10**7)},
    }


def gain(x: Wholes, plan: Plan, epsilon: str, trials: int) -> float:
    """Error of the plan's queries over that of least squares, root mean squares over trials."""
    made = rescaled(plan.measured(), Privacy(PureDP(epsilon)))
    table = Table(plan.domain, {"cell": np.repeat(np.arange(len(x), dtype=np.int32), x)})
    (product,) = plan.workload
    squares = np.zeros(2)
    for seed in range(trials):
        found = Smoothed.of(simulate(made, table, SeededEntropy(seed)))
        both = found.cells, found.plain.marginal(("cell",))
        squares += [float(np.mean(apply(product.operators[0], one.reshape(-1) - x) ** 2)) for one in both]
    return float(np.sqrt(squares[0] / squares[1]))


def rows(
    data: Path, cells: Sequence[int], asked: Sequence[str], epsilons: Sequence[str], trials: int, report: Callable[[str], None]
) -> Iterator[Row]:
    """One row for each number of cells, question, budget and histogram; a line of the report for each group."""
    for size in cells:
        for what in asked:
            plan = best_fixed(size, what)
            for epsilon in epsilons:
                for group, known in shapes(data, size).items():
                    found = {name: gain(x, plan, epsilon, trials) for name, x in known.items()}
                    for name, one in found.items():
                        what_for: Row = {"cells": size, "asked": what, "epsilon": epsilon, "group": group, "data": name}
                        yield {**what_for, "over least squares": round(one, 3)}
                    mean, worst = np.exp(np.mean(np.log(np.maximum([*found.values()], 0.01)))), max(found, key=lambda name: found[name])
                    report(f"{size} cells, {what}, epsilon {epsilon}, {group}: {mean:.3f}, at most {found[worst]:.3f} ({worst})")


def run(
    data: Path,
    out: Path,
    *,
    quick: bool = False,
    report: Callable[[str], None] = print,
    cells: Sequence[int] = (256, 1024),
    asked: Sequence[str] = ("prefix", "all_ranges", "identity"),
    epsilons: Sequence[str] = ("0.02", "0.2"),
    trials: int = 4,
) -> list[Row]:
    """Carry out the experiment.

    Args:
        data: the folder with ``hist1d``.
        out: where the table goes; made if it is not there.
        quick: 256 cells, prefix sums, one budget, one trial.
        report: called with every line to be shown.
        cells: of the histograms; divisors of 4096.
        asked: what is asked, and planned for.
        epsilons: budgets.
        trials: releases of each.
    """
    found = list(rows(data, (256,), ("prefix",), ("0.1",), 1, report) if quick else rows(data, cells, asked, epsilons, trials, report))
    out.mkdir(parents=True, exist_ok=True)
    with (out / "smoothed.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--out", type=Path, default=Path("build/dawa-smooth"))
    parser.add_argument("--cells", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--asked", nargs="+", default=["prefix", "all_ranges", "identity"])
    parser.add_argument("--epsilon", nargs="+", default=["0.02", "0.2"])
    parser.add_argument("--trials", type=int, default=4)
    given = parser.parse_args()
    run(given.data, given.out, cells=given.cells, asked=given.asked, epsilons=given.epsilon, trials=given.trials)


if __name__ == "__main__":
    main()
