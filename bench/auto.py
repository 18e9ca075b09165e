"""What a user gets: plans by ``plan(..., strategy="auto")``, timed from import to plan, each in a process of its own on one core.

    python bench/auto.py [name ...]

A row a case: unit error (root of the mean squared error at privacy cost 1, Laplace noise counted at variance 1), the reference, ours over
it, the lower bound, CPU seconds with the import, and peak memory. References: the goals that were set for ``auto``, or the best of other
people's programs where there is none.
"""

import json
import math
import os
import resource
import subprocess
import sys
import time

os.environ["LEASTNOISE_CACHE"] = "off"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# workload, cells, pure or Gaussian, reference
CASES: dict[str, tuple[str, int, str, float]] = {
    f"{kind} {cells} {budget}": (kind, cells, budget, goal)
    for kind, cells, budget, goal in [
        ("prefix", 256, "pure", 5.18),
        ("all_ranges", 256, "pure", 5.70),
        ("prefix", 1024, "pure", 6.75),
        ("all_ranges", 1024, "pure", 7.80),
        ("prefix", 2048, "pure", 7.63),
        ("prefix", 4096, "pure", 8.50),
        ("all_ranges", 4096, "pure", 10.10),
        ("prefix", 16384, "pure", 10.40),
        ("prefix", 65536, "pure", 12.8),
        ("prefix", 1024, "gaussian", 2.9554),
        ("all_ranges", 1024, "gaussian", 3.5151),
        ("prefix", 4096, "gaussian", 3.395),
        ("all_ranges", 4096, "gaussian", 4.134),
        ("prefix", 16384, "gaussian", 3.88),
        ("prefix", 65536, "gaussian", 4.32),
    ]
}


def one(name: str) -> dict[str, float | str]:
    """Plan one case in this process."""
    import leastnoise as ln

    kind, cells, budget, _ = CASES[name]
    # A small budget, so that the noise is as good as continuous.
    spent = ln.PureDP("1/1000") if budget == "pure" else ln.ZCDP("1/2000000")
    plan = ln.plan(ln.queries(ln.Domain(a=ln.Integers(0, cells - 1)), a=kind), spent)
    promise = plan.expected_error()
    unit = promise.tables[0].queries * (2 * 1000**2 if budget == "pure" else 1000**2)
    return {
        "strategy": plan.strategy,
        "error": math.sqrt(promise.total_squared_error / unit),
        "bound": math.sqrt(promise.lower_bound / unit),
        "seconds": time.process_time(),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main(names: list[str]) -> None:
    """Every case in a process of its own, as a table."""
    print(f"{'case':26}{'strategy':18}{'error':>8}{'goal':>8}{'ours/goal':>11}{'bound':>8}{'CPU s':>8}{'MiB':>8}")
    for name in names or CASES:
        run = [sys.executable, __file__, "--one", name]
        env = os.environ | dict.fromkeys(THREADS, "1")
        made = json.loads(subprocess.run(run, check=True, capture_output=True, env=env).stdout)  # noqa: S603 - this very file
        goal = CASES[name][3]
        print(
            f"{name:26}{made['strategy']:18}{made['error']:8.4f}{goal:8.4f}{made['error'] / goal:11.4f}"
            f"{made['bound']:8.4f}{made['seconds']:8.1f}{made['memory']:8.0f}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2])))
    else:
        main(sys.argv[1:])
