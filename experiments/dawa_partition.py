"""Which private partition is best on which data, and what the default rule makes of it: random ranges over histograms of 4096 cells.

    python -m experiments.dawa_partition [--data ../shared/data] [--trials 10] [--epsilon 0.1 0.01] [--ways D default ...] [--made-up]
        [--only ADULT ...]

Every way spends the same epsilon in all. Noise in the measurements is floating-point Laplace, so nothing here is private;
the partitions and the test are drawn by the package's own code from a seeded source. Mean absolute error over 2000 random
ranges, in records.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from baselines._noisy_costs import noisy_costs
from numpy.typing import NDArray

from experiments.selections.partition_levels import pruned_levels
from experiments.selections.partition_variants import noisy_aligned, sampled_aligned, sampled_powers
from leastnoise._estimate import Halving, Levels, Shrunk, cheapest_blocks, shrink
from leastnoise._families._gram import AllRangesGram, DenseGram
from leastnoise._families._p_identity import fit_p_identity
from leastnoise._families._tree_fits import fit_greedy_h
from leastnoise._kernel._entropy import SeededEntropy
from leastnoise._kernel._plane import least_block_cost
from leastnoise._linop import AllRanges
from leastnoise._planner import difference_costs

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]

CELLS = 4096
HALVING = Halving(CELLS)
# The default rule as it was first measured; docs/results/dawa-partition.md. The package's is in leastnoise._mechanisms._dawa.
TEST_SHARE = 0.04
EASIEST, EASY, HARD = 0.01, 0.15, 0.75  # least cost, in units of 1 / epsilon, per cell
FIRST_SHARE = 0.55
PARTITION_SHARE = 0.25
WIDTHS = (1, 8, 64, 512)
WEIGHTS = (0.20, 0.22, 0.26, 0.32)


# --- measurements and strategies ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One run: counts, budget, trials, sources of randomness."""

    x: Wholes
    epsilon: float
    trials: int
    generator: np.random.Generator
    entropy: SeededEntropy

    def less(self, share: float, trials: int | None = None) -> "Setting":
        """The same with a part of the budget."""
        return Setting(
            x=self.x,
            epsilon=self.epsilon * share,
            trials=self.trials if trials is None else trials,
            generator=self.generator,
            entropy=self.entropy,
        )


@cache
def best_fixed() -> tuple[Reals, Reals, Reals]:
    """D: the p-Identity for all ranges, and what its least squares need."""
    found = fit_p_identity(AllRangesGram(CELLS))
    scaled = found.rows / found.diagonal**2
    return found.diagonal, found.rows, np.asarray(np.linalg.inv(np.eye(len(found.rows)) + scaled @ found.rows.T), dtype=np.float64)


def fixed(run: Setting) -> Reals:
    """D at the full budget, linear least squares."""
    diagonal, rows, inner = best_fixed()
    cells = run.x * diagonal + run.generator.laplace(0, 1 / run.epsilon, (run.trials, CELLS))
    sums = rows @ run.x + run.generator.laplace(0, 1 / run.epsilon, (run.trials, len(rows)))
    right = (cells * diagonal + sums @ rows) / diagonal**2
    return right - ((right @ rows.T) @ inner) @ (rows / diagonal**2)


def posterior_of(run: Setting) -> tuple[Reals, float, Shrunk]:
    """Total with its variance, and the posterior of the differences, from four levels at the run's budget."""
    scales = 1 / (np.array(WEIGHTS) * run.epsilon)
    values = [
        run.x.reshape(-1, width).sum(axis=1) + run.generator.laplace(0, scale, (run.trials, CELLS // width))
        for width, scale in zip(WIDTHS, scales, strict=True)
    ]
    levels = Levels(HALVING, WIDTHS, tuple(2 * scales**2))
    total, parts = HALVING.differences(levels.estimate(values))
    variance, noise = levels.noise()
    return total, variance, shrink(parts, noise, float(scales[0]))


def shrunk(run: Setting) -> Reals:
    """H: four levels at the full budget, shrunk, and non-negative."""
    total, _, found = posterior_of(run)
    return HALVING.together(total, found.means)


def parts_of_buckets(starts: Wholes) -> Reals:
    """What total and differences (finest first) add to the count of each bucket; (k, n)."""
    edges = np.append(starts, CELLS)
    columns = [(edges / CELLS)[:, None]]
    for level, left in enumerate(HALVING.left):
        block, weight = HALVING.edge_weights(level, edges)
        part = np.zeros((len(edges), len(left)))
        part[np.arange(len(edges)), block] = weight
        columns.append(part)
    return np.diff(np.concatenate(columns, axis=1), axis=0)


def adaptive(run: Setting) -> Reals:
    """A, the best form of (d): four levels and their posterior, a partition from it, GreedyH on its buckets, and the posterior of both."""
    first = run.less(FIRST_SHARE)
    total, spread, found = posterior_of(first)
    budget = run.epsilon * (1 - FIRST_SHARE)
    costs = difference_costs([(1.0, AllRanges(CELLS))], HALVING.left, HALVING.right, CELLS)
    out = np.empty((run.trials, CELLS))
    for trial in range(run.trials):
        squares = [mean[trial] ** 2 + variance[trial] for mean, variance in zip(found.means, found.variances, strict=True)]
        starts = cheapest_blocks(squares, costs, 36 / budget**2, HALVING)
        basis = parts_of_buckets(starts)
        mean = np.concatenate([total[trial], *(part[trial] for part in found.means)])
        variance = np.concatenate([[spread], *(part[trial] for part in found.variances)])
        strategy = greedy(starts)
        values = strategy @ np.add.reduceat(run.x, starts) + run.generator.laplace(0, 1 / budget, len(strategy))
        seen = strategy @ basis
        inner = (seen * variance) @ seen.T + 2 / budget**2 * np.eye(len(seen))
        mean += variance * (seen.T @ np.linalg.solve(inner, values - seen @ mean))
        ends = np.cumsum([1, *(len(left) for left in HALVING.left)])
        out[trial] = HALVING.together(mean[None, :1], [part[None] for part in np.split(mean, ends)[1:-1]])[0]
    return out


@cache
def all_ranges() -> Reals:
    """Gram matrix of all ranges."""
    cell = np.arange(CELLS)
    return np.minimum.outer(cell + 1.0, cell + 1.0) * (CELLS - np.maximum.outer(cell, cell))


def greedy(starts: Wholes) -> Reals:
    """GreedyH for all ranges, on buckets."""
    if len(starts) == 1:
        return np.ones((1, 1))
    lengths = np.diff(starts, append=CELLS)
    gram = np.add.reduceat(np.add.reduceat(all_ranges(), starts, axis=0), starts, axis=1) / np.outer(lengths, lengths)
    strategy = fit_greedy_h(DenseGram(gram, CELLS * (CELLS + 1) // 2)).matrix()
    return strategy[strategy.max(axis=1) > 0]


def buckets(run: Setting, starts: Wholes) -> Reals:
    """Second and third stage: GreedyH on the buckets, least squares, uniform expansion; (n,)."""
    lengths = np.diff(starts, append=CELLS)
    sums = np.add.reduceat(run.x, starts)
    strategy = greedy(starts)
    values = strategy @ sums + run.generator.laplace(0, 1 / run.epsilon, len(strategy))
    return np.repeat(np.linalg.solve(strategy.T @ strategy, strategy.T @ values) / lengths, lengths)


def two_stages(draw: Callable[[Wholes, str, SeededEntropy], Wholes], *, bounded: bool = False) -> Callable[[Setting], Reals]:
    """A partition with a quarter of the budget, and GreedyH on its buckets with the rest; if ``bounded``, made non-negative."""

    def way(run: Setting) -> Reals:
        out = np.empty((run.trials, CELLS))
        for trial in range(run.trials):
            starts = draw(run.x, repr(run.epsilon * PARTITION_SHARE), run.entropy)
            out[trial] = buckets(run.less(1 - PARTITION_SHARE), starts)
        return HALVING.together(*HALVING.differences(out)) if bounded else out

    return way


def pruned(run: Setting) -> Reals:
    """(d) with the whole budget in its levels: least squares on the pruned hierarchy, uniform inside buckets."""
    widths, shares = (1024, 128, 16, 1), ("0.15", "0.2", "0.25", "0.4")
    out = np.empty((run.trials, CELLS))
    for trial in range(run.trials):
        found = pruned_levels(run.x, repr(run.epsilon), run.entropy, widths=widths, shares=shares, penalty=3.0)
        bucket = np.repeat(np.arange(len(found.starts)), found.lengths())
        lengths = found.lengths()
        right, gram = np.zeros(len(lengths)), np.zeros((len(lengths), len(lengths)))
        for width, values, scale in zip(widths, found.values, found.scales, strict=True):
            weight = 1 / (2 * float(scale) ** 2)
            first, last = bucket[::width], bucket[width - 1 :: width]
            inside = first == last  # blocks within one bucket: all tell its density
            np.add.at(right, first[inside], weight * values[inside] * width / lengths[first[inside]])
            np.add.at(gram, (first[inside], first[inside]), weight * (width / lengths[first[inside]]) ** 2)
            for a, b, value in zip(first[~inside], last[~inside], values[~inside], strict=True):
                right[a : b + 1] += weight * value
                gram[a : b + 1, a : b + 1] += weight
        out[trial] = np.repeat(np.linalg.solve(gram, right) / lengths, lengths)
    return out


def by_rule(run: Setting) -> Reals:
    """The default: a private test with a small share of the budget, then one of four regimes with all the rest."""
    return np.concatenate([WAYS[choose(run)](run.less(1 - TEST_SHARE, trials=1)) for _ in range(run.trials)])


def choose(run: Setting) -> str:
    """The regime, from the noisy least cost of a partition with penalty 1 / epsilon a bucket."""
    cost = float(least_block_cost(run.x, repr(run.epsilon * TEST_SHARE), run.entropy, penalty=repr(1 / run.epsilon))) * run.epsilon
    per_cell = cost / len(run.x)
    return "E" if per_cell < EASIEST else "A" if per_cell < EASY else "H" if per_cell < HARD else "D"


def aligned(x: Wholes, epsilon: str, entropy: SeededEntropy) -> Wholes:
    """(c) with the prior ln 4 and no further penalty."""
    return sampled_aligned(x, epsilon, entropy, penalty=0).starts


WAYS: dict[str, Callable[[Setting], Reals]] = {
    "D": fixed,
    "a": two_stages(lambda x, e, u: noisy_costs(x, e, u, penalty=repr(1 / (3 * float(e)))).starts),
    "b": two_stages(lambda x, e, u: noisy_aligned(x, e, u, penalty=repr(25 / (3 * float(e)))).starts),
    "c": two_stages(aligned),
    "c median": two_stages(lambda x, e, u: sampled_aligned(x, e, u, penalty=0, centre="median").starts),
    "c powers": two_stages(lambda x, e, u: sampled_powers(x, e, u, penalty=0, prior="2.565").starts),
    "d": pruned,
    "E": two_stages(aligned, bounded=True),
    "H": shrunk,
    "A": adaptive,
    "default": by_rule,
}
FAST = {"D": 400, "H": 60}  # trials
SLOW = {"a": 2, "d": 2, "b": 6, "c": 6, "c median": 6, "c powers": 4, "E": 10, "A": 10}


# --- data, errors, tables ----------------------------------------------------------------------------------------------------------


def made_up() -> dict[str, Wholes]:
    """Shapes that no data set was tuned on."""
    generator = np.random.default_rng(77)
    cell = np.arange(CELLS)
    bell = np.exp(-((cell - 1500) ** 2) / (2 * 300.0**2)) + 0.5 * np.exp(-((cell - 3000) ** 2) / (2 * 80.0**2))
    rates = {
        "empty": np.zeros(CELLS),
        "uniform 10": np.full(CELLS, 10.0),
        "two bells 3e5": 3e5 * bell / bell.sum(),
        "two bells 1e4": 1e4 * bell / bell.sum(),
        "steps": np.repeat(generator.exponential(50.0, 23), generator.multinomial(CELLS, np.full(23, 1 / 23))),
        "spikes, even": np.where(generator.random(CELLS) < 0.02, generator.pareto(0.8, CELLS) * 20, 0.0),
        "rough": generator.exponential(500.0, CELLS),
        "zipf": 2e5 / (cell + 1.0),
        "daily": 40 * (1.2 + np.sin(cell / 170 * 2 * np.pi)) * np.where(cell % 7 < 2, 0.3, 1.0),
    }
    return {name: generator.poisson(rate).astype(np.int64) for name, rate in rates.items()}


def permuted(data: dict[str, Wholes]) -> dict[str, Wholes]:
    """The same histograms with runs of 64 cells in another order, and the second half of them thinned to a tenth."""
    generator = np.random.default_rng(78)
    out = {}
    for place, (name, x) in enumerate(data.items()):
        shuffled = x.reshape(-1, 64)[generator.permutation(CELLS // 64)].reshape(-1)
        out[f"~{name}"] = generator.binomial(shuffled, 0.1).astype(np.int64) if place % 2 else shuffled
    return out


def error(estimate: Reals, x: Wholes, ranges: tuple[Wholes, Wholes]) -> Reals:
    """Mean absolute error over the ranges [low, high), one number a trial."""
    sums = np.concatenate([np.zeros((len(estimate), 1)), np.cumsum(estimate - x, axis=1)], axis=1)
    return np.abs(sums[:, ranges[1]] - sums[:, ranges[0]]).mean(axis=1)


def main() -> None:
    """Print one table an epsilon, and the two measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.01])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--made-up", action="store_true", help="permuted and synthetic histograms in the place of the real ones")
    parser.add_argument("--only", nargs="+", default=None, help="names of histograms; default all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    files = sorted((options.data / "hist1d").glob("*.n4096.npy"))
    if not files:
        sys.exit(f"No histograms in {options.data / 'hist1d'}; give the folder with --data.")
    data = {path.name.split(".")[0]: np.load(path).astype(np.int64) for path in files}
    if options.made_up:
        data = {**made_up(), **permuted(data)}
    data = {name: x for name, x in data.items() if options.only is None or name in options.only}
    ends = np.sort(np.random.default_rng(5).integers(0, CELLS, (2, 2000)), axis=0)
    ranges = ends[0], ends[1] + 1
    for epsilon in options.epsilon:
        print(f"\nepsilon {epsilon}\n\n| data | {' | '.join(options.ways)} | regime | default / best | default / D |")
        print("|---|" + "--:|" * (len(options.ways) + 3))
        table: dict[str, dict[str, float]] = {}
        for place, (name, x) in enumerate(data.items()):
            seed = 1000 * options.seed + place  # errors of different histograms are independent
            run = Setting(
                x=x,
                epsilon=epsilon,
                trials=options.trials,
                generator=np.random.default_rng(seed),
                entropy=SeededEntropy(seed),
            )
            row = {}
            for way in options.ways:
                row[way] = float(
                    error(WAYS[way](run.less(1.0, trials=FAST.get(way, min(options.trials, SLOW.get(way, 10**6))))), x, ranges).mean()
                )
            table[name] = row
            regimes = [choose(run) for _ in range(20)]
            told = " ".join(f"{regime}{regimes.count(regime)}" for regime in sorted(set(regimes)))
            best = min(error for way, error in row.items() if way != "default")
            rate = [row["default"] / best, row["default"] / row["D"]] if {"default", "D"} <= set(row) else []
            print(
                f"| {name} | {' | '.join(f'{row[way]:.0f}' for way in options.ways)} | {told} | {' | '.join(f'{r:.2f}' for r in rate)} |",
                flush=True,
            )
        if {"default", "D"} <= set(options.ways):
            for way in options.ways:
                mean = np.exp(np.mean([np.log(row[way] / row["D"]) for row in table.values()]))
                print(f"{way}: geometric mean over data sets of error / D: {mean:.3f}")


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"\n{time.perf_counter() - start:.0f} s")
