"""Compare the errors of TopDown, BlueDown, InfTDA and leastnoise on 4,096 places.

Places are in groups of 16 and 256. Errors are mean absolute errors of counts by level.

    pip install --no-deps inf-tda && python bench/peers/levels.py [--rows 100000 1000000] [--seeds
    5]

Everybody has rho = 1/2 in all. The peers know the total, as the census does, and measure each of
the three levels with a third of the budget. From the top down, each group's noisy parts are moved
to counts of at least 0 that add up to it: the nearest by least squares (TopDown, arXiv 2204.08986),
or in the largest move (InfTDA, arXiv 2412.09256, its authors' `int_opt`); BlueDown (arXiv
2603.10099) puts the best linear unbiased estimate in the place of noisy parts. These are their
steps for one attribute, not their programs. leastnoise has no public total here; it is planned for
the least total and for the least worst error of a level, and "agree" are its non-negative whole
answers that agree up the tree.
"""

import argparse
import importlib.util
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import leastnoise as ln

WIDTH, LEVELS = 16, 3
Parts = Callable[[np.ndarray, np.ndarray], Any]


def nearest(noisy: np.ndarray, totals: np.ndarray) -> Any:
    """Return the nearest non-negative parts with the given totals, row by row."""
    falling = -np.sort(-noisy, axis=1)
    over = falling.cumsum(axis=1) - totals[:, None]
    kept = np.maximum((falling * np.arange(1, WIDTH + 1) > over).sum(axis=1), 1)
    return np.maximum(noisy - (over[np.arange(len(noisy)), kept - 1] / kept)[:, None], 0)


def down(noisy: list[np.ndarray], total: float, parts: Parts) -> list[np.ndarray]:
    """Estimate the levels from the total down to the places."""
    found = [np.array([total])]
    for level in noisy:
        found.append(parts(level.reshape(-1, WIDTH), found[-1]).reshape(-1))
    return found[1:]


def unbiased(noisy: list[np.ndarray], total: float) -> list[np.ndarray]:
    """Compute the best linear unbiased estimate: up the tree, then down."""
    above, variance = [noisy[-1]], 1.0
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
    given = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    given.add_argument("--rows", nargs="+", type=int, default=[100_000, 1_000_000])
    given.add_argument("--seeds", type=int, default=5)
    said = given.parse_args()
    package = importlib.util.find_spec("InfTDA")
    int_opt = (
        runpy.run_path(str(Path(package.origin).with_name("optimization.py")))["int_opt"]
        if package and package.origin
        else None
    )
    levels = {f"groups of {WIDTH**above}": {"width": WIDTH**above} for above in (2, 1)}
    place = ln.Integers(0, WIDTH**LEVELS - 1, levels=levels)
    asked = ln.queries(ln.Domain(place=place).as_complete(), place="identity")
    for name in levels:
        asked += ln.queries(asked.domain, place=ln.level(name))
    plans = {
        objective: ln.plan(asked, ln.ZCDP("1/2"), objective=objective)
        for objective in ("total", "worst")
    }
    for rows in said.rows:
        rng = np.random.default_rng(1)
        share = rng.permutation(1 / np.arange(1, place.size + 1) ** 0.8)
        data = rng.choice(place.size, rows, p=share / share.sum())
        cells = np.bincount(data, minlength=place.size)
        truth = [cells.reshape(WIDTH**level, -1).sum(axis=1) for level in range(1, LEVELS + 1)]
        errors: dict[str, list[list[float]]] = {}
        for seed in range(said.seeds):
            noise = np.random.default_rng(seed)
            noisy = [
                level + np.rint(noise.normal(scale=LEVELS**0.5, size=level.size)) for level in truth
            ]
            made: dict[str, list[Any]] = {
                "TopDown": down(noisy, rows, nearest),
                "BlueDown": down(unbiased(noisy, rows), rows, nearest),
            }
            if int_opt is not None:
                each = lambda level, totals: np.array(  # noqa: E731
                    [
                        int_opt(*one)
                        for one in zip(level.astype(int), totals.astype(int), strict=True)
                    ]
                )  # noqa: E731, RUF100
                made["InfTDA"] = down(noisy, rows, each)
            options = ln.Options(non_negative=True, integer=True)
            for objective, plan in plans.items():
                release = ln.release(
                    plan, pd.DataFrame({"place": data}), seed=seed, options=options
                )
                tables = [
                    release.tables[name]
                    for name in (*(f"place:{level}" for level in levels), "place")
                ]
                made[f"leastnoise, {objective}"] = [one.answer for one in tables]
                made[f"leastnoise, {objective}, agree"] = [one.integer for one in tables]
            for name, found in made.items():
                errors.setdefault(name, []).append(
                    [float(abs(a - b).mean()) for a, b in zip(found, truth, strict=True)]
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
