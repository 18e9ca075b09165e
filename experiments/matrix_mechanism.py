"""The figures of Miklau's talk on the matrix mechanism (2011), from our own runs: range queries on one ordered attribute.

    leastnoise experiments matrix-mechanism [--data ../shared/data] [--out DIR] [--quick]

Three tables and figures: the error of cells, hierarchy, wavelet and our optimum against the singular value bound for all ranges; the same
for random subsets of the ranges; and what non-negative inference does on sparse data. Noise is simulated from a seed.
"""

import csv
import math
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from experiments.matrix_mechanism_figures import draw_bound, draw_non_negative, draw_subsets
from experiments.synthetic import synthetic_counts
from leastnoise._accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._accuracy import block_rows, lower_bound, structure
from leastnoise._check import InputError
from leastnoise._domain import Domain, Integers
from leastnoise._estimate import Estimate, nnls
from leastnoise._fitting import fit
from leastnoise._kernel import SeededEntropy, simulate
from leastnoise._linop import Haar, Identity, Operator, Tree
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._mechanisms import Search, candidates, choose
from leastnoise._table import Table
from leastnoise._workload import Workload, queries, ranges

Row = dict[str, Any]
Report = Callable[[str], None]
BUDGETS = {"pure": Privacy(PureDP("1/1000")), "Gaussian": Privacy(ZCDP("1/2000000"))}
STRATEGIES = ("cells", "hierarchy", "wavelet", "ours")
# Ours is the least of these; the first is the optimum where it can be used.
OURS = {"pure": ("p_identity", "level_tree"), "Gaussian": ("gaussian_optimum", "eigen_design", "level_tree")}
COUNTS = (16, 64, 256, 1024, 4096)
DATA_SETS = ("NETTRACE", "ADULT")


def run(data: Path | None, out: Path, *, quick: bool = False, seed: int = 0, report: Report = print) -> dict[str, list[Row]]:
    """Carry out the experiment.

    Args:
        data: the folder with ``hist1d/NETTRACE.n4096.npy`` and ``hist1d/ADULT.n4096.npy``; None for a generated sparse histogram.
        out: where tables and figures go; made if it is not there.
        quick: at most 256 cells and few draws, in about half a minute.
        seed: of the noise, the random ranges and the generated histogram.
        report: called with every line to be shown.

    Returns:
        The rows of every table, by its name.
    """
    out.mkdir(parents=True, exist_ok=True)
    sizes = (64, 128, 256) if quick else (64, 128, 256, 512, 1024, 2048, 4096)
    tables = {
        "all_ranges": all_ranges_against_bound(sizes, report),
        "random_ranges": random_ranges(128 if quick else 256, seed, report),
        "non_negative": non_negative_inference(data, 256, 4 if quick else 20, seed, report),
    }
    for name, rows in tables.items():
        with (out / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    draw_bound(tables["all_ranges"], out / "all_ranges")
    draw_subsets(tables["random_ranges"], out / "random_ranges")
    draw_non_negative(tables["non_negative"], out / "non_negative")
    report(f"Tables and figures are in {out}.")
    return tables


def line(size: int) -> Domain:
    """One ordered attribute."""
    return Domain(x=Integers(0, size - 1))


def made(name: str, asked: Workload, budget: str, privacy: Privacy) -> tuple[Measurements, str]:
    """A strategy of the talk, or the best of ours, or one of ours by name, with the noise of a budget."""
    if name == "ours":
        found = [candidate for one in OURS[budget] for candidate in candidates(asked, privacy, one)]
        best = min(found, key=lambda candidate: candidate.total)
        if best.plan is None:
            raise InputError(best.reason)
        return best.plan.measured(), best.plan.strategy
    if name not in STRATEGIES:
        plan = choose(asked, privacy, Search(name))[0]
        return plan.measured(), plan.strategy
    size = asked.domain.size
    operators: dict[str, Operator] = {"cells": Identity(size), "hierarchy": Tree.full(size, 2), "wavelet": Haar(size)}
    block = Block((Factor(("x",), operators[name]),), Fraction(1))
    mechanism = Noise.DISCRETE_LAPLACE if budget == "pure" else Noise.DISCRETE_GAUSSIAN
    return fit(asked.domain, privacy, mechanism, [(block, 1.0)]), name


def total_squared_error(asked: Workload, plan: Measurements) -> float:
    """The sum over all queries of their importance times the variance of their answer."""
    known = structure(plan, None)
    return math.fsum(product.importance * known.total(product) for product in asked)


def unit(total: float, asked: Workload, privacy: Privacy) -> float:
    """Root mean square error at unit budget: epsilon = 1 without the factor 2, or a Gaussian of standard deviation 1."""
    budget = privacy.budget
    if isinstance(budget, PureDP):
        share = float(budget.epsilon) ** 2 / 2
    elif isinstance(budget, ZCDP):
        share = 2 * float(budget.rho)
    else:
        raise TypeError(budget)
    return math.sqrt(total / asked.rows * share)


def all_ranges_against_bound(sizes: Sequence[int], report: Report) -> list[Row]:
    """Error of every strategy for all ranges, and the bound."""
    rows = []
    for size in sizes:
        asked = queries(line(size), x="all_ranges")
        for budget, privacy in BUDGETS.items():
            row: Row = {"n": size, "budget": budget}
            plans: dict[str, Measurements] = {}
            for name in STRATEGIES:
                start = time.perf_counter()
                plans[name], _ = made(name, asked, budget, privacy)
                row[name] = round(unit(total_squared_error(asked, plans[name]), asked, privacy), 4)
                row["seconds"] = round(time.perf_counter() - start, 1)
            row["bound"] = round(unit(lower_bound(asked, privacy, plans["ours"].noise), asked, privacy), 4)
            row["ours over bound"] = round(row["ours"] / row["bound"], 4)
            report(f"all ranges, n = {size:<5} {budget:<8} " + ", ".join(f"{name} {row[name]:.3f}" for name in (*STRATEGIES, "bound")))
            rows.append(row)
    return rows


def random_ranges(size: int, seed: int, report: Report, counts: Sequence[int] = COUNTS) -> list[Row]:
    """Error for random subsets of the ranges, with strategies made for the subset and for all ranges."""
    rows = []
    generator = np.random.default_rng(seed)
    everything = queries(line(size), x="all_ranges")
    known = {budget: made("ours", everything, budget, privacy)[0] for budget, privacy in BUDGETS.items()}
    for count in counts:
        ends = np.sort(generator.integers(0, size, (count, 2)), axis=1)
        asked = queries(line(size), x=ranges(ends.tolist()))
        for budget, privacy in BUDGETS.items():
            row: Row = {"n": size, "ranges": count, "budget": budget}
            plans = {name: made(name, asked, budget, privacy) for name in STRATEGIES}
            for name, (plan, _) in plans.items():
                row[name] = round(unit(total_squared_error(asked, plan), asked, privacy), 4)
            ours, row["strategy"] = plans["ours"]
            row["ours for all ranges"] = round(unit(total_squared_error(asked, known[budget]), asked, privacy), 4)
            row["bound"] = round(unit(lower_bound(asked, privacy, ours.noise), asked, privacy), 4)
            report(
                f"{count:>5} random ranges, n = {size}, {budget:<8} "
                + ", ".join(f"{name} {row[name]:.3f}" for name in (*STRATEGIES, "ours for all ranges", "bound"))
            )
            rows.append(row)
    return rows


def histograms(data: Path | None, size: int, seed: int) -> dict[str, np.ndarray]:
    """Sparse histograms on ``size`` cells."""
    if data is None:
        generator = np.random.default_rng(seed)
        cells = np.zeros(size, dtype=np.int64)
        places = generator.choice(size, size // 30, replace=False)
        cells[places] = np.rint(25_000 * generator.dirichlet(np.full(len(places), 0.3)))
        return {"generated": cells}
    found = {}
    for name in DATA_SETS:
        full = np.load(data / "hist1d" / f"{name}.n4096.npy", allow_pickle=False)
        found[name] = full.reshape(size, -1).sum(axis=1)
    return found


def non_negative_inference(data: Path | None, size: int, draws: int, seed: int, report: Report) -> list[Row]:
    """Root mean square errors of cells and ranges in simulated releases: unbiased, non-negative, with the total fixed, and whole counts."""
    rows = []
    asked = queries(line(size), x="all_ranges")
    (product,) = asked
    for data_set, cells in histograms(data, size, seed).items():
        table = Table(asked.domain, {"x": np.repeat(np.arange(size), cells).astype(np.uint32)})
        truth = np.cumsum(cells)
        for epsilon in ("1/100", "1/10", "1"):
            for name in ("hierarchy", "wavelet", "level_tree", "p_identity"):
                plan, _ = made(name, asked, "pure", Privacy(PureDP(epsilon)))
                weak = _weak_total(plan, size)
                errors: dict[str, list[tuple[float, float]]] = {}
                for draw in range(draws):
                    observation = simulate(plan, table, SeededEntropy(1000 * seed + draw))
                    unbiased = Estimate(observation).marginal(("x",))
                    kept = nnls(observation).cells
                    free = _free(observation)
                    versions = {
                        "unbiased": unbiased,
                        "non-negative": free,
                        "total fixed": kept,
                        "whole counts": synthetic_counts(kept, draw),
                    }
                    for version, values in versions.items():
                        errors.setdefault(version, []).append(_squares(values, cells, truth))
                row: Row = {"data": data_set, "n": size, "epsilon": epsilon, "strategy": name, "total over cell variance": round(weak, 2)}
                for version, pairs in errors.items():
                    for place, what in enumerate(("cells", "ranges")):
                        row[f"{version}, {what}"] = round(math.sqrt(float(np.mean([pair[place] for pair in pairs]))), 2)
                row["promised, ranges"] = round(math.sqrt(total_squared_error(asked, plan) / product.rows), 2)
                shown = ", ".join(f"{version} {row[f'{version}, ranges']:.1f}" for version in ("promised", *errors))
                report(f"{data_set:<9} epsilon = {epsilon:<5} {name:<10} ranges: {shown}")
                rows.append(row)
    return rows


def _free(observation: Any) -> np.ndarray:
    """Non-negative least squares with nothing fixed, which the library does not offer: here it is what is to be shown."""
    from scipy.optimize import nnls as free

    plan = observation.measurements
    (block,) = plan.blocks
    return np.asarray(free(block_rows(plan.domain, plan.domain.names, block), observation.values[0] / plan.grid * block.scaling())[0])


def _weak_total(plan: Any, size: int) -> float:
    """How weakly a plan measures the total: its variance over the mean variance of a cell."""
    known = structure(plan, None)
    return known.total(queries(line(size)).products[0]) / known.total(queries(line(size), x="identity").products[0]) * size


def _squares(values: np.ndarray, cells: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Mean squared error of the cells and of all ranges, the latter from the errors of the prefix sums."""
    error = values - cells
    sums = np.concatenate([[0.0], np.cumsum(values) - truth])
    count = len(sums)
    # Sum over pairs i < j of (s_j - s_i)^2 = count * sum s^2 - (sum s)^2.
    return float((error**2).mean()), float((count * (sums**2).sum() - sums.sum() ** 2) / (count * (count - 1) / 2))
