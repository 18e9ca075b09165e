"""Reproduce the figures of Miklau's talk on the matrix mechanism (2011).

The figures are about range queries on one ordered attribute.

    leastnoise experiments matrix-mechanism [--data DIR] [--out DIR] [--quick]

Three tables and figures: the errors of cells, hierarchy, wavelet and our optimum compared with the
singular value bound for all ranges; the same for random subsets of the ranges; and the effect of
non-negative inference on sparse data. Noise is simulated from a seed.
"""

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.optimize import nnls as scipy_nnls

from experiments.common import Reals, Report, Row, Wholes, write_csv
from experiments.matrix_mechanism_figures import draw_against_sizes, draw_non_negative
from leastnoise._domain import Domain, Integers
from leastnoise._error import block_rows, lower_bound, measure_covariance
from leastnoise._estimation import Estimate, nnls
from leastnoise._fitting import allowed_epsilon, fit_noise_scales
from leastnoise._mechanisms import Candidate, Search, choose_plan, try_strategies
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.linop import Haar, Identity, Operator, Tree
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._trusted.table import Table
from leastnoise._workload import Workload, queries, ranges

BUDGETS = {"pure": Privacy(PureDP("1/1000")), "Gaussian": Privacy(ZCDP("1/2000000"))}
STRATEGIES = ("cells", "hierarchy", "wavelet", "ours")
# Our error is the smallest one of these planners; the first one is the optimum if it applies.
OUR_PLANNERS = {
    "pure": ("p_identity", "level_tree"),
    "Gaussian": ("gaussian_optimum", "eigen_design", "level_tree"),
}
COUNTS = (16, 64, 256, 1024, 4096)
DATA_SETS = ("NETTRACE", "ADULT")


def run(
    data: Path | None, out: Path, *, quick: bool = False, seed: int = 0, report: Report = print
) -> dict[str, list[Row]]:
    """Carry out the experiment.

    Args:
        data: the folder with ``hist1d/NETTRACE.n4096.npy`` and ``hist1d/ADULT.n4096.npy``; None for
            a generated sparse histogram.
        out: the folder for tables and figures, created if it is missing.
        quick: at most 256 cells and few draws, in about half a minute.
        seed: seed of the noise, the random ranges and the generated histogram.
        report: called with every line of progress.

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
        write_csv(out / f"{name}.csv", rows)
    draw_against_sizes(tables["all_ranges"], "n", "cells of the attribute", out / "all_ranges")
    subsets = tables["random_ranges"]
    draw_against_sizes(
        subsets, "ranges", f"random ranges, of {subsets[0]['n']} cells", out / "random_ranges"
    )
    draw_non_negative(tables["non_negative"], out / "non_negative")
    report(f"Tables and figures are in {out}.")
    return tables


def line(size: int) -> Domain:
    """Return a domain with one ordered attribute."""
    return Domain(x=Integers(0, size - 1)).as_complete()


def measure_strategy(
    name: str, workload: Workload, budget: str, privacy: Privacy
) -> tuple[Measurements, str]:
    """Return the measurements and the name of a strategy, with the noise of a budget.

    It is a strategy of the talk, our best, or one of ours by name.
    """
    if name == "ours":
        candidates: list[Candidate] = []
        for planner in OUR_PLANNERS[budget]:
            candidates += try_strategies(workload, privacy, planner)
        best_candidate = min(candidates, key=lambda candidate: candidate.total)
        if best_candidate.plan is None:
            raise InputError(best_candidate.reason)
        return best_candidate.plan.measured(), best_candidate.plan.strategy
    if name not in STRATEGIES:
        plan = choose_plan(workload, privacy, Search(name))[0]
        return plan.measured(), plan.strategy
    size = workload.domain.size
    operators: dict[str, Operator] = {
        "cells": Identity(size),
        "hierarchy": Tree.full(size, 2),
        "wavelet": Haar(size),
    }
    block = Block((Factor(("x",), operators[name]),), Fraction(1))
    if budget == "pure":
        mechanism = Noise.DISCRETE_LAPLACE
    else:
        mechanism = Noise.DISCRETE_GAUSSIAN
    return fit_noise_scales(workload.domain, privacy, mechanism, [(block, 1.0)]), name


def total_squared_error(workload: Workload, plan: Measurements) -> float:
    """Sum the variances of all answers, weighted by the importance of their queries."""
    covariance = measure_covariance(plan, None)
    return math.fsum(product.importance * covariance.total(product) for product in workload)


def unit(total: float, workload: Workload, privacy: Privacy) -> float:
    """Return the rounded root mean square error at unit budget.

    This is epsilon = 1 without the factor 2, or a Gaussian of standard deviation 1.
    """
    budget = privacy.budget
    if isinstance(budget, ZCDP):
        share = 2 * float(budget.rho)
    else:
        share = allowed_epsilon(budget) ** 2 / 2
    return round(math.sqrt(total / workload.rows * share), 4)


def all_ranges_against_bound(sizes: Sequence[int], report: Report) -> list[Row]:
    """Compute the error of every strategy for all ranges, and the bound."""
    rows = []
    for size in sizes:
        workload = queries(line(size), x="all_ranges")
        for budget, privacy in BUDGETS.items():
            row: Row = {"n": size, "budget": budget}
            plans: dict[str, Measurements] = {}
            for name in STRATEGIES:
                start = time.perf_counter()
                plans[name], _ = measure_strategy(name, workload, budget, privacy)
                row[name] = unit(total_squared_error(workload, plans[name]), workload, privacy)
                row["seconds"] = round(time.perf_counter() - start, 1)
            row["bound"] = unit(
                lower_bound(workload, privacy, plans["ours"].noise), workload, privacy
            )
            row["ours over bound"] = round(row["ours"] / row["bound"], 4)
            report(
                f"all ranges, n = {size:<5} {budget:<8} "
                + ", ".join(f"{name} {row[name]:.3f}" for name in (*STRATEGIES, "bound"))
            )
            rows.append(row)
    return rows


def random_ranges(
    size: int, seed: int, report: Report, counts: Sequence[int] = COUNTS
) -> list[Row]:
    """Compute errors for random subsets of the ranges.

    Each strategy is optimised for the subset, or for all ranges.
    """
    rows = []
    generator = np.random.default_rng(seed)
    everything = queries(line(size), x="all_ranges")
    measured_for_all_ranges = {
        budget: measure_strategy("ours", everything, budget, privacy)[0]
        for budget, privacy in BUDGETS.items()
    }
    for count in counts:
        limits = np.sort(generator.integers(0, size, (count, 2)), axis=1)
        workload = queries(line(size), x=ranges(limits.tolist()))
        for budget, privacy in BUDGETS.items():
            row: Row = {"n": size, "ranges": count, "budget": budget}
            plans = {name: measure_strategy(name, workload, budget, privacy) for name in STRATEGIES}
            row |= {
                name: unit(total_squared_error(workload, plan), workload, privacy)
                for name, (plan, _) in plans.items()
            }
            our_measurements, row["strategy"] = plans["ours"]
            row["ours for all ranges"] = unit(
                total_squared_error(workload, measured_for_all_ranges[budget]), workload, privacy
            )
            row["bound"] = unit(
                lower_bound(workload, privacy, our_measurements.noise), workload, privacy
            )
            shown = ", ".join(
                f"{name} {row[name]:.3f}" for name in (*STRATEGIES, "ours for all ranges", "bound")
            )
            report(f"{count:>5} random ranges, n = {size}, {budget:<8} {shown}")
            rows.append(row)
    return rows


def histograms(data: Path | None, size: int, seed: int) -> dict[str, Wholes]:
    """Read sparse histograms of ``size`` cells from a folder, or generate one."""
    if data is None:
        generator = np.random.default_rng(seed)
        cells = np.zeros(size, dtype=np.int64)
        positions = generator.choice(size, size // 30, replace=False)
        cells[positions] = np.rint(25_000 * generator.dirichlet(np.full(len(positions), 0.3)))
        return {"generated": cells}
    full = {
        name: np.load(data / "hist1d" / f"{name}.n4096.npy", allow_pickle=False)
        for name in DATA_SETS
    }
    return {name: counts.reshape(size, -1).sum(axis=1) for name, counts in full.items()}


def non_negative_inference(
    data: Path | None, size: int, draws: int, seed: int, report: Report
) -> list[Row]:
    """Compute errors of cells and ranges in simulated releases.

    The estimates are unbiased, non-negative, non-negative with a fixed total, or whole counts.
    """
    rows = []
    workload = queries(line(size), x="all_ranges")
    for data_set, cells in histograms(data, size, seed).items():
        table = Table(workload.domain, {"x": np.repeat(np.arange(size), cells).astype(np.uint32)})
        for epsilon in ("1/100", "1/10", "1"):
            for name in ("hierarchy", "wavelet", "level_tree", "p_identity"):
                plan, _ = measure_strategy(name, workload, "pure", Privacy(PureDP(epsilon)))
                squares: dict[str, list[tuple[float, float]]] = defaultdict(list)
                for draw in range(draws):
                    observation = simulate(plan, table, SeededEntropy(1000 * seed + draw))
                    fixed = nnls(observation).cells
                    versions: dict[str, Reals | Wholes] = {
                        "unbiased": Estimate(observation).marginal(("x",)),
                        "non-negative": _nnls_without_total(observation),
                    }
                    versions |= {"total fixed": fixed, "whole counts": whole_counts(fixed, draw)}
                    for version, values in versions.items():
                        squares[version].append(mean_squares(values - cells))
                weak = round(_weak_total(plan, size), 2)
                row: Row = {
                    "data": data_set,
                    "n": size,
                    "epsilon": epsilon,
                    "strategy": name,
                    "total over cell variance": weak,
                }
                for version, pairs in squares.items():
                    of_cells, of_ranges = np.sqrt(np.mean(pairs, axis=0)).round(2).tolist()
                    row |= {f"{version}, cells": of_cells, f"{version}, ranges": of_ranges}
                row["promised, ranges"] = round(
                    math.sqrt(total_squared_error(workload, plan) / workload.rows), 2
                )
                shown = ", ".join(
                    f"{version} {row[f'{version}, ranges']:.1f}"
                    for version in ("promised", *squares)
                )
                report(f"{data_set:<9} epsilon = {epsilon:<5} {name:<10} ranges: {shown}")
                rows.append(row)
    return rows


def _nnls_without_total(observation: Observation) -> Reals:
    """Estimate cells by non-negative least squares without a fixed total.

    The library does not offer this estimate.
    """
    plan = observation.measurements
    (block,) = plan.blocks
    return np.asarray(
        scipy_nnls(
            block_rows(plan.domain, plan.domain.names, block),
            observation.values[0] / plan.grid * block.scaling(),
        )[0]
    )


def whole_counts(cells: Reals, seed: int) -> Wholes:
    """Round non-negative cells to integers without bias.

    Systematic sampling (Madow 1949) with one uniform number: every cell and every sum of
    consecutive cells moves by less than 1.

    >>> whole_counts(np.array([0.5, 0.5, 2.0, 0.25, 0.75]), seed=1).tolist()
    [1, 0, 2, 0, 1]
    """
    parts = np.floor(cells)
    running = np.cumsum(cells - parts)
    nearest = np.rint(running)
    # Keep a total that is an integer.
    running = np.where(np.abs(running - nearest) < 1e-9 * (1 + nearest), nearest, running)
    steps = np.floor(running + np.random.default_rng(seed).random())
    return np.asarray(parts + np.diff(steps, prepend=0.0), dtype=np.int64)


def _weak_total(plan: Measurements, size: int) -> float:
    """Return the variance of the total over the mean variance of a cell."""
    covariance = measure_covariance(plan, None)
    return (
        covariance.total(queries(line(size)).products[0])
        / covariance.total(queries(line(size), x="identity").products[0])
        * size
    )


def mean_squares(error: Reals | Wholes) -> tuple[float, float]:
    """Return the mean squared errors of cells and of all ranges, from errors of cells."""
    sums = np.concatenate([[0.0], np.cumsum(error)])
    count = len(sums)
    # The sum over pairs i < j of (s_j - s_i)^2 is count * sum s^2 - (sum s)^2.
    pairs = count * (count - 1) / 2
    of_ranges = float((count * (sums**2).sum() - sums.sum() ** 2) / pairs)
    return float((error**2).mean()), of_ranges
