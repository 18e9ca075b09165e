"""Data cubes: expected error of each workload, ours over the best of the others and over the reference figures; seconds and memory.

    python bench/cubes.py [--effort 10] [--attributes 6 10 20 50 100]

Errors are total squared errors at epsilon 1, factor 2 included, add/remove neighbours; a ratio of at most 1.00 is reached. The others are
the strategies of Cormode et al., those with tables also recovered by least squares, and the best weights inside the workload's closure.
Planning is measured in a process of its own for every number of attributes of ten values, all marginals up to 3-way.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from experiments.datacube_strategies import OURS, PAPER, cube_workload, gaussian_errors, least_squares_error, method  # noqa: E402

from leastnoise.planner._marginal_weights import optimal_weights  # noqa: E402
from leastnoise.planner._residual_algebra import AttributeSet, attribute_sets, coefficients, downward_closure, incidence  # noqa: E402

CUBES = {
    "NLTCS": ((2,) * 16, {"1": 4608, "1*": 163427, "1a": 14560, "2": 639334, "2*": 8.91e6, "2a": 1.84e6}),
    "Adult": ((9, 16, 7, 15, 6, 5, 2, 2), {"1": 5202, "1*": 207235, "1a": 59476, "2": 989989, "2*": 9.57e6, "2a": 6.54e6}),
}
# Root mean square error per cell at privacy cost 1 of ResidualPlanner, attributes of ten values, all marginals up to 3-way.
RESIDUAL_PLANNER = {6: 4.2752, 10: 9.3481, 20: 26.917, 50: 107.258, 100: 303.216}

_PLAN = """
import json, math, resource, sys, time
import leastnoise as ln
count, strategy = int(sys.argv[1]), sys.argv[2]
workload = ln.marginals(ln.Domain({f"a{i}": ln.Coded(10) for i in range(count)}), upto=3)
start = time.perf_counter()
plan = ln.plan(workload, ln.PureDP(1) if strategy == "covering" else ln.ZCDP("1/2"), strategy=strategy)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
rmse = math.sqrt(plan.expected_error().total_squared_error / workload.rows)
print(json.dumps({"seconds": seconds, "peak": peak, "rmse": rmse, "blocks": len(plan.blocks)}))
"""


def others(shape: Sequence[int], targets: list[AttributeSet]) -> dict[str, float]:
    """Total squared error at epsilon 1 of what ours is compared with."""
    found = {}
    for name in PAPER:
        ready = method(name, shape, targets)
        found[name] = 2 * ready.error
        if name[0] in "QC":
            found[f"{name} by least squares"] = 2 * least_squares_error(shape, targets, ready)
    closure = downward_closure(shape, targets)
    coefficient = coefficients(closure, dict.fromkeys(targets, 1.0))
    inside = optimal_weights(incidence(closure, attribute_sets(closure)), coefficient, norm="l1")
    return {**found, "weights inside": 2 * inside.error}


def cubes(effort: float) -> Iterator[str]:
    """The twelve workloads."""
    for data, (shape, figures) in CUBES.items():
        for name, figure in figures.items():
            targets = cube_workload(len(shape), name)
            start = time.perf_counter()
            ours = 2 * method(OURS, shape, targets, effort=effort).error
            seconds = time.perf_counter() - start
            known = others(shape, targets)
            best = min(known, key=lambda other: known[other])
            gaussian = gaussian_errors(shape, targets)
            rival = min(value for other, value in gaussian.items() if other != "residual")
            yield (
                f"{data} Q{name:2}  ours/best other {ours / known[best]:.3f} ({best})  ours/reference {ours / figure:.4f}  {ours:12.1f}"
                f"  {seconds:5.1f} s   Gaussian: ours/best other {gaussian['residual'] / rival:.3f}"
            )


def planning(counts: Sequence[int]) -> Iterator[str]:
    """Seconds and peak memory of planning."""
    for count in counts:
        for strategy in ("residual", "covering"):
            done = subprocess.run(  # noqa: S603 - our own program
                [sys.executable, "-c", _PLAN, str(count), strategy],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            )
            if done.returncode:
                yield f"ten^{count} {strategy}: {(done.stderr.strip() or 'failed').splitlines()[-1]}"
                continue
            own = json.loads(done.stdout)
            known = (
                f"  over ResidualPlanner {own['rmse'] / RESIDUAL_PLANNER[count]:.4f}"
                if strategy == "residual" and count in RESIDUAL_PLANNER
                else ""
            )
            tables = sum(math.comb(count, k) for k in range(4))
            yield (
                f"ten^{count:<3} up to 3-way, {tables:6} tables  {strategy:8}  {own['seconds']:6.1f} s  peak {own['peak']:5.0f} MB"
                f"  rmse {own['rmse']:.4f}{known}  {own['blocks']} blocks"
            )


def main() -> None:
    """Print all comparisons, one a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--effort", type=float, default=10.0, help="work of the search, about seconds of one core a workload")
    parser.add_argument("--attributes", type=int, nargs="*", default=[6, 10, 20])
    parser.add_argument("--no-errors", action="store_true", help="only seconds and memory")
    arguments = parser.parse_args()
    if not arguments.no_errors:
        for line in cubes(arguments.effort):
            print(line, flush=True)
    for line in planning(arguments.attributes):
        print(line, flush=True)


if __name__ == "__main__":
    main()
