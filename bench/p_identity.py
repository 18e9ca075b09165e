"""Compare strategies along one attribute with the best published ones.

It also compares the time of a structured p-Identity step with a dense one.

    python bench/p_identity.py [--sizes 64 256 1024] [--large] [--quick]

Prints a line for each case with our error / the reference. The goal is a ratio of at most 1.000.
``--large`` adds n = 4096 and 16384 (some minutes each), ``--quick`` leaves out trees of more than
1024 cells and compares few steps.
The references are the smallest errors of any published or released method;
docs/results/matrix-mechanism.md.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._families import (
    Gram,
    dense_gram,
    fit_gaussian_optimum,
    fit_level_tree,
    fit_p_identity,
    gram_of,
    p_identity_rmse,
    sum_grams,
)
from leastnoise._families._p_identity import Support, p_identity_objective
from leastnoise._trusted.linop import AllRanges, Identity, Prefix, Ranges, Total

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines._greedy_h import fit_greedy_h
from baselines._linear import strategy_rmse

Reals = np.ndarray
Objective = Callable[[Reals], tuple[float, Reals]]


def permuted(size: int) -> Gram:
    """Return all ranges over permuted cells, as a matrix.

    The permutation is numpy's legacy random order 0.
    """
    order = np.random.RandomState(0).permutation(size)
    return dense_gram(
        gram_of(AllRanges(size)).dense()[np.ix_(order, order)], size * (size + 1) // 2
    )


KINDS: dict[str, Callable[[int], Gram]] = {
    "prefix": lambda size: gram_of(Prefix(size)),
    "ranges": lambda size: gram_of(AllRanges(size)),
    "width32": lambda size: gram_of(Ranges(size, np.arange(size - 31), np.arange(31, size))),
    "permuted": permuted,
    "idtotal": lambda size: sum_grams(
        [(1.0, gram_of(Identity(size))), (1.0, gram_of(Total(size)))]
    ),
}
PURE = {
    64: {"prefix": 3.763, "ranges": 3.926, "width32": 4.159, "permuted": 3.928, "idtotal": 1.342},
    128: {"prefix": 4.451, "ranges": 4.752},
    256: {"prefix": 5.199, "ranges": 5.700, "width32": 4.482, "permuted": 5.704, "idtotal": 1.227},
    1024: {"prefix": 6.786, "ranges": 7.868, "width32": 4.535, "permuted": 7.899, "idtotal": 1.146},
    4096: {"prefix": 8.95, "ranges": 10.9, "width32": 4.567, "idtotal": 1.093},
    16384: {"prefix": math.nan, "ranges": math.nan},
}
GAUSSIAN = {
    64: {"prefix": 2.0999, "ranges": 2.3022, "width32": 2.067},
    128: {"prefix": 2.3110, "ranges": 2.5990},
    256: {"prefix": 2.5244, "ranges": 2.9014, "width32": 2.354},
    1024: {"prefix": 2.956, "ranges": 3.515, "width32": 2.385},
    4096: {"ranges": 4.134},
}
TREES = {
    64: {"prefix": 4.148, "ranges": 4.276, "width32": 4.824, "idtotal": 1.342},
    256: {"prefix": 5.948, "ranges": 6.282, "width32": 4.849, "idtotal": 1.227},
    1024: {"prefix": 7.712, "ranges": 8.790, "width32": 4.852, "idtotal": 1.146},
    4096: {"prefix": 9.831, "ranges": 11.45, "width32": 4.853, "idtotal": 1.093},
}


def line(
    method: str,
    size: int,
    kind: str,
    error: float,
    reference: float,
    seconds: float,
    more: str = "",
) -> None:
    """Print one row of the table."""
    print(
        f"{method:<14} n={size:<8} {kind:<9} {error:8.4f} / {reference:<7.4f} = "
        f"{error / reference:6.4f}  {seconds:7.1f} s  {more}",
        flush=True,
    )


def dense_objective(gram: Reals, theta: Reals) -> tuple[float, Reals]:
    """Compute a step with n x n matrices, as in the paper (arXiv 1808.03537, section 5)."""
    s = 1 + theta.sum(axis=0)
    inverse = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    inner = np.eye(len(s)) - theta.T @ inverse @ theta
    scaled = gram * np.outer(s, s)
    turned = theta @ inner
    per_cell = 2 * (inner * gram) @ s
    return float((inner * scaled).sum()), -2 * (turned @ scaled) @ inner + per_cell


def _descend(objective: Objective, start: Reals, steps: int) -> tuple[float, Any]:
    """Run a number of descent steps; return their seconds and result."""
    from scipy.optimize import Bounds, minimize

    start_time = time.perf_counter()
    options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 0.0, "gtol": 0.0}
    result = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=Bounds(0, np.inf), options=options
    )
    return time.perf_counter() - start_time, result


def steps_against_dense(size: int = 1024, rows: int = 64, steps: int = 200) -> None:
    """Time the same descent with and without the structure of the workload."""
    gram = gram_of(Prefix(size))
    full = gram.dense()
    spacing = size / (rows - 3)
    windows = [
        (max(0, int((k - 0.25) * spacing)), min(size, int((k + 2.25) * spacing)))
        for k in range(rows - 4)
    ]
    windows += [
        (max(0, int((k - 0.25) * size / 5)), min(size, int((k + 2.25) * size / 5)))
        for k in range(4)
    ]
    support = Support(size, windows)
    start = np.full(len(support.cells), 0.7)

    def structured(point: Reals) -> tuple[float, Reals]:
        """Return the objective and its gradient with the structure."""
        error, slope = p_identity_objective(gram, support, point)
        return math.log(error), slope / error

    def dense(point: Reals) -> tuple[float, Reals]:
        """Return the objective and its gradient with dense matrices."""
        error, slope = dense_objective(full, support.to_matrix(point))
        return math.log(error), support.from_matrix(slope) / error

    _descend(structured, start, 2)  # imports
    seconds = []
    for objective in (structured, dense):
        runs = [_descend(objective, start, steps) for _ in range(2)]
        # The shorter of two times, because other programs on the machine only add time.
        seconds.append(min(duration for duration, _ in runs))
        result = runs[-1][1]
        rmse = math.exp(result.fun / 2) / size**0.5
        print(
            f"{objective.__name__:<12} {result.nit} steps, p={rows}, n={size}: {seconds[-1]:.2f} "
            f"s, unit RMSE {rmse:.4f}"
        )
    print(f"dense / structured: {seconds[1] / seconds[0]:.1f} times (goal: at least 10)")


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[64, 128, 256, 1024])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    sizes = options.sizes + ([4096, 16384] if options.large else [])
    for size in sizes:
        for kind, reference in PURE.get(size, {}).items():
            start = time.perf_counter()
            strategy = fit_p_identity(KINDS[kind](size))
            line(
                "p-identity",
                size,
                kind,
                p_identity_rmse(KINDS[kind](size), strategy.diagonal, strategy.rows),
                reference,
                time.perf_counter() - start,
                f"p={len(strategy.rows)}",
            )
        for kind, reference in GAUSSIAN.get(size, {}).items():
            start = time.perf_counter()
            optimum = fit_gaussian_optimum(KINDS[kind](size))
            rmse = strategy_rmse(KINDS[kind](size), optimum.matrix, 2)
            line(
                "gaussian",
                size,
                kind,
                rmse,
                reference,
                time.perf_counter() - start,
                f"gap={(rmse / optimum.rmse_lower_bound) ** 2 - 1:.1e}",
            )
        for kind, reference in TREES.get(size, {}).items():
            start = time.perf_counter()
            tree = fit_level_tree(KINDS[kind](size), 1)
            line(
                "level tree",
                size,
                kind,
                tree.rmse,
                reference,
                time.perf_counter() - start,
                str(tree.widths),
            )
    for size in (1024,) if options.quick else (1024, 2**20):
        for kind in ("prefix", "ranges"):
            start = time.perf_counter()
            gram = KINDS[kind](size)
            tree = fit_level_tree(gram, 1)
            seconds = time.perf_counter() - start
            line(
                "level tree",
                size,
                kind,
                tree.rmse,
                fit_greedy_h(gram).rmse,
                seconds,
                "reference: GreedyH",
            )
    steps_against_dense(**({"size": 128, "rows": 16, "steps": 10} if options.quick else {}))


if __name__ == "__main__":
    main()
