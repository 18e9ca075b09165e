"""Compare the expected noise of sums with a threshold with the paper's algorithms.

The noise is exact; the ratio is our error over the smallest error of the paper's algorithms.

    python bench/sums.py [--queries 1000 100 10]

Errors are root mean square errors over the queries at epsilon 1, for a fixed threshold; a ratio
below 1.00 is better than TaMM and TiMM. `optimum` is the p-Identity strategy on the weighted
workload.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from experiments.sums_mechanisms import merged, workload  # noqa: E402
from experiments.sums_strategies import sum_strategy  # noqa: E402

THRESHOLDS = (100_000, 200_000, 800_000)


def noise(counts: Sequence[int]) -> Iterator[str]:
    """Yield a line per workload and threshold."""
    for count in counts:
        sums = workload(count)
        small = merged(sums)
        for threshold in THRESHOLDS:
            paper = {
                name: sum_strategy(name, sums.matrix(), sums.gram(), sums.limits(threshold)).rmse(
                    2**0.5
                )
                for name in ("identity", "timm", "tamm")
            }
            start = time.process_time()
            optimum = sum_strategy(
                "optimum", small.matrix(), small.gram(), small.limits(threshold), effort=0.5
            ).rmse(2**0.5)
            seconds = time.process_time() - start
            shown = ", ".join(
                f"{name} {error:.3g}" for name, error in {**paper, "optimum": optimum}.items()
            )
            ratio = optimum / min(paper.values())
            yield (
                f"{count:>4} queries, threshold {threshold:>6}: {shown}; "
                f"over the best of the paper: {ratio:.2f}; {seconds:.1f} s"
            )


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--queries",
        type=int,
        nargs="+",
        default=[1000, 100, 10],
        choices=(1000, 100, 10),
        help="sizes of the workload",
    )
    for line in noise(parser.parse_args().queries):
        print(line, flush=True)


if __name__ == "__main__":
    main()
