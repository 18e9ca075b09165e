"""Compare plans for marginals with reference errors, for pure and Gaussian budgets.

A ratio of at most 1.00 reaches the reference. Seconds are of planning.

    python bench/marginals.py [--large] [--only TEXT]

Figures are total squared errors at epsilon 1 with the factor 2 (cubes), or root mean square errors
per cell at unit noise (the other workloads).
"""

import argparse
import itertools
import math
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from experiments.datacube_strategies import cube_workload, sets_of_sizes  # noqa: E402
from experiments.residuals import coefficients, optimal_weights, residual_noise  # noqa: E402
from leastnoise._strategies._covering import covering_design  # noqa: E402
from leastnoise._strategies._residual_algebra import (  # noqa: E402
    attribute_sets,
    downward_closure,
    incidence,
    table_sizes,
)  # noqa: E402, RUF100

CUBES = {
    "NLTCS": (
        (2,) * 16,
        {"1": 4608, "1*": 163427, "1a": 14560, "2": 639334, "2*": 8.91e6, "2a": 1.84e6},
    ),
    "Adult": (
        (9, 16, 7, 15, 6, 5, 2, 2),
        {"1": 5202, "1*": 207235, "1a": 59476, "2": 989989, "2*": 9.57e6, "2a": 6.54e6},
    ),
}
ADULT5 = (75, 16, 5, 2, 20)
# Name -> (shape, sizes of the marginals, and the errors of the best peer at unit noise: pure,
# Gaussian).
PEERS = {
    "ten^8 1-way": ((10,) * 8, (1,), 7.642, 2.702),
    "ten^8 2-way": ((10,) * 8, (2,), 25.60, 4.838),
    "ten^8 3-way": ((10,) * 8, (3,), 46.39, 6.570),
    "ten^8 4-way": ((10,) * 8, (4,), 52.99, 7.088),
    "Adult5 2-way": (ADULT5, (2,), 6.454, 2.366),
    "Adult5 3-way": (ADULT5, (3,), 5.665, 2.257),
    "Adult5 2+3-way": (ADULT5, (2, 3), 6.664, 2.456),
    "Adult5 1+2+3-way": (ADULT5, (1, 2, 3), 6.965, 2.492),
}


def cubes(only: str) -> Iterator[str]:
    """Compare on the twelve cube workloads."""
    for data, (shape, figures) in CUBES.items():
        for name, figure in figures.items():
            if only not in f"{data} Q{name} ":
                continue
            targets = cube_workload(len(shape), name)
            closure = downward_closure(shape, targets)
            coefficient = coefficients(closure, dict.fromkeys(targets, 1.0))
            inside = optimal_weights(
                incidence(closure, attribute_sets(closure)), coefficient, norm=1
            ).error
            started = time.perf_counter()
            design = covering_design(closure, coefficient)
            seconds = time.perf_counter() - started
            yield (
                f"{data} Q{name:3} ours/best {2 * design.error / figure:.4f}  inside closure/best "
                f"{2 * inside / figure:6.2f}"
                f"  {2 * design.error:14.1f}  {len(design.tables):3} tables  {seconds:5.1f} s  "
                f"({design.start_name})"
            )


def peers(only: str) -> Iterator[str]:
    """Compare with the best strategy of hdmm."""
    for name, (shape, sizes, pure_reference, gaussian_reference) in PEERS.items():
        if only not in name:
            continue
        targets = sets_of_sizes(len(shape), *sizes)
        closure = downward_closure(shape, targets)
        coefficient = coefficients(closure, dict.fromkeys(targets, 1.0))
        cells = table_sizes(shape, targets).sum()
        started = time.perf_counter()
        design = covering_design(closure, coefficient)
        seconds = time.perf_counter() - started
        error = math.sqrt(design.error / cells)
        gaussian_error = math.sqrt(residual_noise(closure, coefficient)[1] / cells)
        yield (
            f"{name:17} pure ours/hdmm {error / pure_reference:.3f} ({error:.3f})  "
            f"Gaussian ours/hdmm {gaussian_error / gaussian_reference:.3f} "
            f"({gaussian_error:.3f})  {len(design.tables):3} tables  {seconds:5.1f} s  "
            f"({design.start_name})"
        )


def growth(counts: Iterable[int]) -> Iterator[str]:
    """Plan all marginals up to 3-way of attributes of ten values.

    The reference is the best set of weights inside the workload.
    """
    for count in counts:
        shape = (10,) * count
        targets = sets_of_sizes(count, 0, 1, 2, 3)
        started = time.perf_counter()
        closure = downward_closure(shape, targets)
        coefficient = coefficients(closure, dict.fromkeys(targets, 1.0))
        _, gaussian = residual_noise(closure, coefficient)
        gaussian_seconds = time.perf_counter() - started
        started = time.perf_counter()
        design = covering_design(closure, coefficient)
        seconds = time.perf_counter() - started
        inside = optimal_weights(incidence(closure, targets), coefficient, norm=1, steps=50).error
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cells = float(table_sizes(shape, targets).sum())
        yield (
            f"ten^{count:<3} up to 3-way: {closure.count:6} marginals  pure ours/inside "
            f"{math.sqrt(design.error / inside):.3f} "
            f"(rms1 {math.sqrt(design.error / cells):.2f}, {len(design.tables)} tables, "
            f"{seconds:.1f} s)  "
            f"Gaussian rms2 {math.sqrt(gaussian / cells):.4f} ({gaussian_seconds:.1f} s)  peak so "
            f"far {peak:.0f} MB"
        )


def main() -> None:
    """Print all comparisons, a line at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also 50 and 100 attributes")
    parser.add_argument(
        "--only",
        default="",
        help="only workloads with this text in their name, such as 'Adult Q1 ' or 'ten^6'",
    )
    arguments = parser.parse_args()
    for line in itertools.chain(
        cubes(arguments.only),
        peers(arguments.only),
        growth(
            [
                count
                for count in ((6, 10, 20, 50, 100) if arguments.large else (6, 10, 20))
                if arguments.only in f"ten^{count}"
            ]
        ),
    ):
        print(line, flush=True)


if __name__ == "__main__":
    main()
