"""Measure the automatic plan of each case: error, seconds and memory.

A separate process computes each plan on one core. The time runs from the import to the plan.

    python bench/auto.py [--seconds 1] [part of a name ...]

Each case is a row: unit error (root of the mean squared error at privacy cost 1, Laplace noise
counted at variance 1), the goal, our error over the goal, the lower bound, CPU seconds with the
import, and peak memory. The goals were set for ``auto``, or are the errors of the best other
program, as measured for this project: ResidualPlanner for all marginals up to some size, and HDMM
2024-10 for the other workloads. For all 3-way marginals of 100 attributes the goal is the error of
our plans before a tenfold acceleration, which must not increase the error.
"""

import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["LEASTNOISE_CACHE"] = "off"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
ADULT = (75, 16, 5, 2, 20)
# Workloads by name, with the number of cells of one attribute or the sizes of a domain.
WORKLOADS: dict[str, Callable[[Any, Any], Any]] = {
    "prefix": lambda ln, n: ln.queries(
        ln.Domain(a=ln.Integers(0, n - 1)).as_complete(), a="prefix"
    ),
    "all_ranges": lambda ln, n: ln.queries(
        ln.Domain(a=ln.Integers(0, n - 1)).as_complete(), a="all_ranges"
    ),
    "width32": lambda ln, n: ln.queries(
        ln.Domain(a=ln.Integers(0, n - 1)).as_complete(),
        a={"ranges": [[low, low + 31] for low in range(n - 31)]},
    ),
    "cells_total": lambda ln, n: sum_of(
        ln.queries(ln.Domain(a=ln.Integers(0, n - 1)).as_complete(), a=kind)
        for kind in ("identity", "total")
    ),
    "prefix_prefix": lambda ln, n: ln.queries(
        ln.Domain(a=ln.Coded(n), b=ln.Coded(n)).as_complete(), a="prefix", b="prefix"
    ),
    "ranges_ranges": lambda ln, n: ln.queries(
        ln.Domain(a=ln.Coded(n), b=ln.Coded(n)).as_complete(), a="all_ranges", b="all_ranges"
    ),
    "adult_2way": lambda ln, sizes: ln.marginals(domain(ln, sizes), ways=2),
    "adult_3way": lambda ln, sizes: ln.marginals(domain(ln, sizes), ways=3),
    "tens_1way": lambda ln, d: ln.marginals(domain(ln, [10] * d), ways=1),
    "tens_2way": lambda ln, d: ln.marginals(domain(ln, [10] * d), ways=2),
    "tens_3way": lambda ln, d: ln.marginals(domain(ln, [10] * d), ways=3),
    "tens_4way": lambda ln, d: ln.marginals(domain(ln, [10] * d), ways=4),
    "tens_upto2": lambda ln, d: ln.marginals(domain(ln, [10] * d), upto=2),
    "tens_upto3": lambda ln, d: ln.marginals(domain(ln, [10] * d), upto=3),
}
PURE = [
    *[
        ("prefix", 256, 5.18),
        ("all_ranges", 256, 5.70),
        ("prefix", 1024, 6.75),
        ("all_ranges", 1024, 7.80),
        ("prefix", 2048, 7.63),
    ],
    *[
        ("prefix", 4096, 8.50),
        ("all_ranges", 4096, 10.10),
        ("prefix", 16384, 10.40),
        ("prefix", 65536, 12.8),
        ("prefix", 2**20, 17.8),
    ],
    *[
        ("prefix", 64, 3.764),
        ("all_ranges", 64, 3.941),
        ("width32", 64, 4.159),
        ("width32", 256, 4.482),
        ("width32", 1024, 4.535),
    ],
    *[
        ("cells_total", 64, 1.342),
        ("cells_total", 256, 1.227),
        ("cells_total", 1024, 1.146),
        ("cells_total", 4096, 1.093),
    ],
    *[
        ("prefix_prefix", 64, 14.21),
        ("prefix_prefix", 256, 27.05),
        ("ranges_ranges", 64, 16.52),
        ("ranges_ranges", 256, 32.60),
    ],
    *[
        ("adult_2way", ADULT, 6.454),
        ("adult_3way", ADULT, 5.665),
        ("tens_1way", 8, 7.642),
        ("tens_2way", 8, 25.60),
    ],
    *[("tens_3way", 8, 46.39), ("tens_4way", 8, 52.99), ("tens_3way", 100, 110338.6)],
]
GAUSSIAN = [
    *[
        ("prefix", 256, 2.5244),
        ("prefix", 1024, 2.9554),
        ("all_ranges", 1024, 3.5151),
        ("prefix", 4096, 3.395),
        ("all_ranges", 4096, 4.134),
    ],
    *[("prefix", 16384, 3.88), ("prefix", 65536, 4.32), ("prefix", 2**20, 5.25)],
    *[
        ("prefix", 64, 2.100),
        ("all_ranges", 64, 2.302),
        ("all_ranges", 256, 2.901),
        ("width32", 64, 2.067),
        ("width32", 256, 2.354),
    ],
    # For 1024 and more cells: 1.002 times the lower bound, the goal along one attribute.
    *[("width32", 1024, 2.385), ("width32", 2048, 2.3938), ("width32", 4096, 2.3967)],
    *[("prefix_prefix", 64, 4.409), ("prefix_prefix", 256, 6.373), ("ranges_ranges", 64, 5.300)],
    *[
        ("ranges_ranges", 256, 8.418),
        ("adult_2way", ADULT, 2.366),
        ("adult_3way", ADULT, 2.257),
        ("tens_1way", 8, 2.702),
    ],
    *[
        ("tens_2way", 8, 4.838),
        ("tens_3way", 8, 6.570),
        ("tens_4way", 8, 7.088),
        ("tens_upto2", 6, 3.4589),
        ("tens_upto2", 10, 5.8461),
    ],
    *[
        ("tens_upto3", 6, 4.2752),
        ("tens_upto3", 10, 9.3481),
        ("tens_upto3", 100, 303.216),
        ("tens_3way", 100, 303.1726),
    ],
]
CASES = {
    f"{kind} {'' if size is ADULT else size} {budget}".replace("  ", " "): (
        kind,
        size,
        budget,
        goal,
    )
    for budget, rows in (("pure", PURE), ("gaussian", GAUSSIAN))
    for kind, size, goal in rows
}


def domain(ln: Any, sizes: Any) -> Any:
    """Return a domain with attributes of these sizes."""
    return ln.Domain(
        **{f"x{number}": ln.Coded(size) for number, size in enumerate(sizes)}
    ).as_complete()


def sum_of(parts: Any) -> Any:
    """Combine workloads into one."""
    first, *others = parts
    return sum(others, start=first)


def plan_case(name: str, time_limit: float) -> dict[str, float | str]:
    """Plan one case in this process; a time limit of 0 follows from the case's size."""
    import leastnoise as ln

    kind, size, budget, _ = CASES[name]
    # A small budget, so that the noise is nearly continuous.
    spent = ln.PureDP("1/1000") if budget == "pure" else ln.ZCDP("1/2000000")
    seconds = time_limit or (60 if isinstance(size, int) and size > 2**14 else 20)
    plan = ln.plan(WORKLOADS[kind](ln, size), spent, seconds=seconds)
    expected_error = plan.expected_error()
    unit = sum(table.queries for table in expected_error.tables) * (
        2 * 1000**2 if budget == "pure" else 1000**2
    )
    return {
        "strategy": plan.strategy,
        "error": math.sqrt(expected_error.total_squared_error / unit),
        "bound": math.sqrt(expected_error.lower_bound / unit),
        "seconds": time.process_time(),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main(name_parts: list[str], seconds: float) -> None:
    """Run each case in a separate process and print a table."""
    print(
        f"{'case':28}{'strategy':18}{'error':>8}{'goal':>8}{'ours/goal':>11}{'bound':>8}"
        f"{'CPU s':>8}{'MiB':>8}"
    )
    for name in CASES:
        if name_parts and not any(part in name for part in name_parts):
            continue
        command = [sys.executable, __file__, "--one", name, str(seconds)]
        # Keep compiled files, as an installed package does.
        env = os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONDONTWRITEBYTECODE": ""}
        # The command runs this file.
        run = subprocess.run(command, check=True, capture_output=True, env=env)  # noqa: S603
        result = json.loads(run.stdout)
        goal = CASES[name][3]
        print(
            f"{name:28}{result['strategy']:18}{result['error']:8.4f}{goal:8.4f}"
            f"{result['error'] / goal:11.4f}{result['bound']:8.4f}{result['seconds']:8.1f}"
            f"{result['memory']:8.0f}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(plan_case(sys.argv[2], float(sys.argv[3]))))
    elif sys.argv[1:2] == ["--seconds"]:
        main(sys.argv[3:], float(sys.argv[2]))
    else:
        main(sys.argv[1:], 0.0)
