"""Print the mean absolute errors of all baselines over 2000 random ranges, in records.

    python -m baselines --data DIR [--epsilon 0.1 0.01] [--trials 5] [--plane] [--only
    ADULT ...]

Noise comes from a seed, so nothing in the output is private. Labels mark the mechanisms that are
never private.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from baselines import ONE_DIMENSION, TWO_DIMENSIONS, Baseline, Ranges, Reals, Wholes
from leastnoise._trusted.kernel import SeededEntropy

QUERIES = 2000


def random_ranges(shape: Sequence[int], seed: int = 5) -> Ranges:
    """Draw ``QUERIES`` ranges with uniform ends.

    Args:
        shape: shape of the cells, one or two sides.
        seed: seed of the ends.
    """
    generator = np.random.default_rng(seed)
    sides = [np.sort(generator.integers(0, side, (2, QUERIES)), axis=0) for side in shape]
    low, high = (np.stack([side[end] + end for side in sides], axis=1) for end in (0, 1))
    if len(shape) == 1:
        return Ranges(low[:, 0], high[:, 0])
    return Ranges(low, high)


def errors(
    baseline: Baseline, x: Wholes, epsilon: str, ranges: Ranges, trials: int, seed: int
) -> Reals:
    """Return the mean absolute error over the ranges in each trial, in records."""
    entropy = SeededEntropy(seed)
    truth = ranges.answers(x)
    return np.array(
        [
            np.abs(ranges.answers(baseline.run(x, epsilon, entropy, ranges)) - truth).mean()
            for _ in range(trials)
        ]
    )


def table(
    data: dict[str, Wholes], baselines: Sequence[Baseline], epsilon: str, trials: int, seed: int
) -> None:
    """Print a table with a row per data set and a column per baseline.

    The last two rows have the standard error and the CPU seconds of each baseline.
    """
    print(
        f"\nepsilon {epsilon}\n\n| data | {' | '.join(baseline.label for baseline in baselines)} "
        f"|\n|---|{'--:|' * len(baselines)}",
        flush=True,
    )
    # One object for each shape, so that each strategy is fitted once.
    ranges: dict[tuple[int, ...], Ranges] = {}
    relative_errors = []
    seconds = np.zeros(len(baselines))
    for number, (name, x) in enumerate(data.items()):
        queries = ranges.setdefault(x.shape, random_ranges(x.shape))
        row = []
        for position, baseline in enumerate(baselines):
            start = time.process_time()
            row.append(errors(baseline, x, epsilon, queries, trials, 1000 * seed + number))
            seconds[position] += time.process_time() - start
        print(
            f"| {name} | {' | '.join(f'{trial_errors.mean():.0f}' for trial_errors in row)} |",
            flush=True,
        )
        relative_errors.append(
            [
                trial_errors.std(ddof=1) / trial_errors.mean() / np.sqrt(trials)
                for trial_errors in row
            ]
        )
    print(
        "| standard error, median | "
        f"{' | '.join(f'{100 * share:.0f}%' for share in np.median(relative_errors, axis=0))} |"
    )
    print(
        "| CPU seconds a run | "
        f"{' | '.join(f'{run_seconds:.2f}' for run_seconds in seconds / trials / len(data))} |",
        flush=True,
    )


def main() -> None:
    """Print a table for each epsilon."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "0.01"])
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--plane", action="store_true", help="two dimensions")
    parser.add_argument("--only", nargs="+", default=None, help="names of data sets; default all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = options.data / ("hist2d" if options.plane else "hist1d")
    files = sorted(folder.glob("*.npy"))
    if not files:
        sys.exit(f"No histograms in {folder}; give the folder with hist1d and hist2d by --data.")
    if options.trials < 2:
        sys.exit(f"--trials must be at least 2; got {options.trials}.")
    data = {path.name.split(".")[0]: np.load(path).astype(np.int64) for path in files}
    data = {name: x for name, x in data.items() if options.only is None or name in options.only}
    if not data:
        sys.exit(
            f"--only must name some of {', '.join(path.name.split('.')[0] for path in files)}; "
            f"got {', '.join(options.only)}."
        )
    for epsilon in options.epsilon:
        table(
            data,
            TWO_DIMENSIONS if options.plane else ONE_DIMENSION,
            epsilon,
            options.trials,
            options.seed,
        )


if __name__ == "__main__":
    main()
