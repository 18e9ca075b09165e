"""Compare the errors of TopDown, BlueDown, InfTDA and leastnoise on 4,096 places.

Places are in groups of 16 and 256. Errors are mean absolute errors of counts by level.

    pip install --no-deps inf-tda && python bench/peers/levels.py [--rows 100000 1000000] [--seeds
    5]

Every program spends rho = 1/2. The peers know the total, as the census does, and measure each of
the three levels with a third of the budget. From the top down, they move the noisy parts of each
group to non-negative counts that add up to the group's count. TopDown (arXiv 2204.08986) minimises
the squared moves, and InfTDA (arXiv 2412.09256, its authors' `int_opt`) the largest move. BlueDown
(arXiv 2603.10099) replaces the noisy parts by their best linear unbiased estimate. These are their
steps for one attribute, not their programs. leastnoise has no public total here. It has a plan for
the smallest total error and a plan for the smallest error of the worst level. Lines with "agree"
show its non-negative whole answers that agree up the tree.
"""

import argparse
import importlib.util
import runpy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import leastnoise as ln

WIDTH = 16
LEVELS = 3
Parts = Callable[[np.ndarray, np.ndarray], Any]


def nearest(noisy: np.ndarray, totals: np.ndarray) -> Any:
    """Return the nearest non-negative parts with the given totals, row by row."""
    falling = -np.sort(-noisy, axis=1)
    excess = falling.cumsum(axis=1) - totals[:, None]
    count = np.maximum((falling * np.arange(1, WIDTH + 1) > excess).sum(axis=1), 1)
    return np.maximum(noisy - (excess[np.arange(len(noisy)), count - 1] / count)[:, None], 0)


def largest_moves(int_opt: Callable[..., Any], noisy: np.ndarray, totals: np.ndarray) -> Any:
    """Return non-negative parts with the given totals by InfTDA's ``int_opt``, row by row."""
    pairs = zip(noisy.astype(int), totals.astype(int), strict=True)
    return np.array([int_opt(parts, total) for parts, total in pairs])


def down(noisy: list[np.ndarray], total: float, parts: Parts) -> list[np.ndarray]:
    """Estimate the levels from the total down to the places."""
    estimates = [np.array([total])]
    for level in noisy:
        estimates.append(parts(level.reshape(-1, WIDTH), estimates[-1]).reshape(-1))
    return estimates[1:]


def unbiased(noisy: list[np.ndarray], total: float) -> list[np.ndarray]:
    """Compute the best linear unbiased estimate: up the tree, then down."""
    above = [noisy[-1]]
    variance = 1.0
    for level in noisy[-2::-1]:
        share = WIDTH * variance / (WIDTH * variance + 1)
        above.append(share * level + (1 - share) * above[-1].reshape(-1, WIDTH).sum(axis=1))
        variance = share
    return down(
        above[::-1],
        total,
        lambda level, totals: level + (totals - level.sum(axis=1))[:, None] / WIDTH,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    package = importlib.util.find_spec("InfTDA")
    int_opt = None
    if package and package.origin:
        module = runpy.run_path(str(Path(package.origin).with_name("optimization.py")))
        int_opt = module["int_opt"]
    levels = {f"groups of {WIDTH**above}": {"width": WIDTH**above} for above in (2, 1)}
    place = ln.Integers(0, WIDTH**LEVELS - 1, levels=levels)
    workload = ln.queries(ln.Domain(place=place).as_complete(), place="identity")
    for name in levels:
        workload += ln.queries(workload.domain, place=ln.level(name))
    plans = {
        objective: ln.plan(workload, ln.ZCDP("1/2"), objective=objective)
        for objective in ("total", "worst")
    }
    for rows in options.rows:
        rng = np.random.default_rng(1)
        share = rng.permutation(1 / np.arange(1, place.size + 1) ** 0.8)
        data = rng.choice(place.size, rows, p=share / share.sum())
        cells = np.bincount(data, minlength=place.size)
        truth = [cells.reshape(WIDTH**level, -1).sum(axis=1) for level in range(1, LEVELS + 1)]
        errors: dict[str, list[list[float]]] = {}
        for seed in range(options.seeds):
            noise = np.random.default_rng(seed)
            noisy = [
                level + np.rint(noise.normal(scale=LEVELS**0.5, size=level.size)) for level in truth
            ]
            estimates: dict[str, list[Any]] = {
                "TopDown": down(noisy, rows, nearest),
                "BlueDown": down(unbiased(noisy, rows), rows, nearest),
            }
            if int_opt is not None:
                estimates["InfTDA"] = down(noisy, rows, partial(largest_moves, int_opt))
            output = ln.Options(non_negative=True, integer=True)
            for objective, plan in plans.items():
                release = ln.release(plan, pd.DataFrame({"place": data}), seed=seed, options=output)
                tables = [
                    release.tables[name]
                    for name in (*(f"place:{level}" for level in levels), "place")
                ]
                estimates[f"leastnoise, {objective}"] = [table.answer for table in tables]
                estimates[f"leastnoise, {objective}, agree"] = [table.integer for table in tables]
            for name, level_estimates in estimates.items():
                errors.setdefault(name, []).append(
                    [float(abs(a - b).mean()) for a, b in zip(level_estimates, truth, strict=True)]
                )
        for name, means in errors.items():
            print(
                f"| {rows:,} | {name} | "
                + " | ".join(f"{value:.2f}" for value in np.mean(means, axis=0))
                + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
