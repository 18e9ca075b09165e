"""Compare the expected errors of data cube strategies on the twelve cube workloads.

    python bench/cubes.py [--only TEXT]            # the designs
    python bench/cubes.py --plans [--only TEXT]    # expected errors of automatic plans

Errors are total squared errors at epsilon 1, with the factor 2, for add/remove neighbours. A ratio
of at most 1.00 reaches the reference. The other strategies are the strategies of Cormode et al.,
the same with a least squares recovery if they measure tables, and the best weights inside the
workload's closure. With --plans both neighbour relations are planned; replacing a row costs four
times as much. Seconds are CPU seconds. bench/scale.py measures seconds and memory of up to 100
attributes.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import leastnoise as ln  # noqa: E402
from experiments.datacube_strategies import (  # noqa: E402
    OUR_STRATEGY,
    PAPER,
    cube_workload,
    gaussian_errors,
    least_squares_error,
    method,
)  # noqa: E402, RUF100
from experiments.residuals import coefficients, optimal_weights  # noqa: E402
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


def reference_errors(shape: Sequence[int], targets: list[AttributeSet]) -> dict[str, float]:
    """Return the total squared errors of the compared strategies at epsilon 1."""
    errors = {}
    for name in PAPER:
        strategy = method(name, shape, targets)
        errors[name] = 2 * strategy.error
        if name[0] in "QC":
            errors[f"{name} by least squares"] = 2 * least_squares_error(shape, targets, strategy)
    closure = downward_closure(shape, targets)
    coefficient = coefficients(closure, dict.fromkeys(targets, 1.0))
    inside = optimal_weights(incidence(closure, attribute_sets(closure)), coefficient, norm=1)
    return {**errors, "weights inside": 2 * inside.error}


def cubes(only: str) -> Iterator[str]:
    """Compare the strategies on the twelve workloads."""
    for data, (shape, figures) in CUBES.items():
        for name, figure in figures.items():
            if only not in f"{data} Q{name} ":
                continue
            targets = cube_workload(len(shape), name)
            start = time.process_time()
            error = 2 * method(OUR_STRATEGY, shape, targets).error
            seconds = time.process_time() - start
            references = reference_errors(shape, targets)
            best_name = min(references, key=lambda other: references[other])
            gaussian = gaussian_errors(shape, targets)
            rival = min(value for other, value in gaussian.items() if other != "residual")
            yield (
                f"{data} Q{name:2}  ours/best other {error / references[best_name]:.3f} "
                f"({best_name})  ours/reference {error / figure:.4f}  {error:12.1f}"
                f"  {seconds:5.1f} s   Gaussian: ours/best other {gaussian['residual'] / rival:.3f}"
            )


def plans(only: str) -> Iterator[str]:
    """Plan the twelve workloads with the library."""
    for data, (shape, figures) in CUBES.items():
        domain = ln.Domain(
            {f"a{number}": ln.Coded(size) for number, size in enumerate(shape)}
        ).as_complete()
        for name, figure in figures.items():
            if only not in f"{data} Q{name} ":
                continue
            targets = cube_workload(len(shape), name)
            sets = [tuple(domain.names[number] for number in target) for target in targets]
            workload = ln.Workload(
                domain,
                tuple(
                    product
                    for s in sets
                    for product in ln.queries(domain, **dict.fromkeys(s, "identity"))
                ),
            )
            references = reference_errors(shape, targets)
            best_name = min(references, key=lambda other: references[other])
            for neighbours, factor in (("add_remove", 1), ("replace", 4)):
                start = time.process_time()
                plan = ln.plan(workload, ln.Privacy(ln.PureDP(1), neighbours))
                seconds = time.process_time() - start
                error = plan.expected_error().total_squared_error / factor
                yield (
                    f"{data} Q{name:2}  {neighbours:10} {plan.strategy}  ours/best other "
                    f"{error / references[best_name]:.3f} ({best_name})"
                    f"  ours/reference {error / figure:.4f}  {error * factor:12.1f}"
                    f"  {seconds:5.1f} s"
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
