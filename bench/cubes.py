"""Compare the expected errors of data cube strategies on the twelve cube workloads.

    python bench/cubes.py [--only TEXT]            # the designs
    python bench/cubes.py --plans [--only TEXT]    # expected errors of automatic plans

Errors are total squared errors at epsilon 1, factor 2 included, add/remove neighbours; a ratio of
at most 1.00 is reached. The others are the strategies of Cormode et al., those with tables also
recovered by least squares, and the best weights inside the workload's closure. With --plans both
neighbour relations are planned; replacing a row costs four times as much. Seconds are of the
processor. Seconds and memory of up to 100 attributes are measured by bench/scale.py.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from experiments.datacube_strategies import (  # noqa: E402
    OURS,
    PAPER,
    cube_workload,
    gaussian_errors,
    least_squares_error,
    method,
)  # noqa: E402, RUF100
from experiments.residuals import coefficients, optimal_weights  # noqa: E402

import leastnoise as ln  # noqa: E402
from leastnoise._strategies._residual_algebra import (  # noqa: E402
    AttributeSet,
    attribute_sets,
    downward_closure,
    incidence,
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


def others(shape: Sequence[int], targets: list[AttributeSet]) -> dict[str, float]:
    """Return the total squared errors of the compared strategies at epsilon 1."""
    found = {}
    for name in PAPER:
        ready = method(name, shape, targets)
        found[name] = 2 * ready.error
        if name[0] in "QC":
            found[f"{name} by least squares"] = 2 * least_squares_error(shape, targets, ready)
    closure = downward_closure(shape, targets)
    coefficient = coefficients(closure, dict.fromkeys(targets, 1.0))
    inside = optimal_weights(incidence(closure, attribute_sets(closure)), coefficient, norm=1)
    return {**found, "weights inside": 2 * inside.error}


def cubes(only: str) -> Iterator[str]:
    """Compare the strategies on the twelve workloads."""
    for data, (shape, figures) in CUBES.items():
        for name, figure in figures.items():
            if only not in f"{data} Q{name} ":
                continue
            targets = cube_workload(len(shape), name)
            start = time.process_time()
            ours = 2 * method(OURS, shape, targets).error
            seconds = time.process_time() - start
            known = others(shape, targets)
            best = min(known, key=lambda other: known[other])
            gaussian = gaussian_errors(shape, targets)
            rival = min(value for other, value in gaussian.items() if other != "residual")
            yield (
                f"{data} Q{name:2}  ours/best other {ours / known[best]:.3f} ({best})  "
                f"ours/reference {ours / figure:.4f}  {ours:12.1f}"
                f"  {seconds:5.1f} s   Gaussian: ours/best other {gaussian['residual'] / rival:.3f}"
            )


def plans(only: str) -> Iterator[str]:
    """Plan the twelve workloads with the library."""
    for data, (shape, figures) in CUBES.items():
        domain = ln.Domain(
            {f"a{place}": ln.Coded(size) for place, size in enumerate(shape)}
        ).as_complete()
        for name, figure in figures.items():
            if only not in f"{data} Q{name} ":
                continue
            targets = cube_workload(len(shape), name)
            sets = [tuple(domain.names[place] for place in target) for target in targets]
            asked = ln.Workload(
                domain,
                tuple(
                    product
                    for s in sets
                    for product in ln.queries(domain, **dict.fromkeys(s, "identity"))
                ),
            )
            known = others(shape, targets)
            best = min(known, key=lambda other: known[other])
            for neighbours, factor in (("add_remove", 1), ("replace", 4)):
                start = time.process_time()
                plan = ln.plan(asked, ln.Privacy(ln.PureDP(1), neighbours))
                seconds = time.process_time() - start
                ours = plan.expected_error().total_squared_error / factor
                yield (
                    f"{data} Q{name:2}  {neighbours:10} {plan.strategy}  ours/best other "
                    f"{ours / known[best]:.3f} ({best})"
                    f"  ours/reference {ours / figure:.4f}  {ours * factor:12.1f}  {seconds:5.1f} s"
                )


def main() -> None:
    """Print all comparisons, a line at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", action="store_true", help="through the library")
    parser.add_argument(
        "--only",
        default="",
        help="only workloads with this text in their name, such as 'Adult Q1 '",
    )
    arguments = parser.parse_args()
    for line in plans(arguments.only) if arguments.plans else cubes(arguments.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
