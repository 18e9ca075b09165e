"""Measure seconds and memory of the costs of all intervals of power-of-two lengths.

Intervals start anywhere; the number of cells varies.

    python bench/partition.py [--largest 20] [--repeats 2]

Three shapes of data: all counts different, sparse, and random walks. The goal is for the ratio of
the seconds, not for the seconds: at most 64 x (20/14)^2 x 1.5 from 2^14 to 2^20 cells. Expect 0.2 s
at 4096 cells, and under 60 s and 4 GiB at 2^20.
"""

import argparse
import os
import resource
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # after the number of threads is set

sys.path[:0] = [
    str(Path(__file__).resolve().parents[1]),
    str(Path(__file__).resolve().parents[1] / "src"),
]

from baselines._noisy_costs import power_of_two_costs  # noqa: E402


def shape(name: str, size: int) -> np.ndarray:
    """Draw counts of one of three shapes."""
    generator = np.random.default_rng(1)
    if name == "all different":
        return generator.permutation(size).astype(np.int64)
    if name == "sparse":
        return generator.poisson(20.0, size) * (generator.random(size) < 0.03)
    return np.abs(np.cumsum(generator.integers(-3, 4, size)))


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--largest", type=int, default=20, help="log2 of the largest number of cells"
    )
    parser.add_argument(
        "--repeats", type=int, default=2, help="number of runs; the quickest one counts"
    )
    options = parser.parse_args()
    print(f"{'shape':15} {'cells':>8} {'CPU s':>8}")
    for name in ("all different", "sparse", "random walk"):
        seconds = {}
        for power in sorted({12, 14, options.largest}):
            x = shape(name, 2**power)
            runs = []
            for _ in range(options.repeats):
                start = time.process_time()
                power_of_two_costs(x)
                runs.append(time.process_time() - start)
            seconds[power] = min(runs)
            print(f"{name:15} {2**power:8} {seconds[power]:8.3f}")
        if options.largest > 14:
            ratio = seconds[options.largest] / seconds[14]
            allowed = 2 ** (options.largest - 14) * (options.largest / 14) ** 2 * 1.5
            missed = "" if ratio <= allowed else ": MISSED"
            print(f"{name:15} ratio to 2^14: {ratio:.0f}, allowed {allowed:.0f}{missed}")
    print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
