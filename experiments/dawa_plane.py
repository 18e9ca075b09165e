"""Which private partition of a rectangle of cells is best on which data: random rectangles over two-dimensional histograms.

    python -m experiments.dawa_plane [--data ../shared/data] [--trials 10] [--epsilon 1 0.1 0.01] [--ways D default ...] [--made-up]

Every way spends the same epsilon in all. Noise in the measurements is floating-point Laplace, so nothing here is private;
the partitions and the test are drawn by the package's own code from a seeded source. Mean absolute error over 2000 random
rectangles, in records.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from numpy.typing import NDArray

from baselines import ADAPTIVE_GRID, QUADTREE, UNIFORM_GRID, Baseline
from experiments.dawa_rectangles import QUICK, Size, compare
from experiments.selections.adaptive_blocks import adaptive_blocks
from experiments.selections.hilbert import hilbert_order
from experiments.selections.partition_variants import labels_of, sampled_aligned
from leastnoise._check import InputError
from leastnoise._estimate._plane_expansion import block_counts, bounded_cells
from leastnoise._families._gram import AllRangesGram, DenseGram
from leastnoise._families._p_identity import fit_p_identity
from leastnoise._families._tree_fits import fit_greedy_h
from leastnoise._kernel._entropy import SeededEntropy
from leastnoise._kernel._plane import least_block_cost, quadtree_mechanism
from leastnoise._linop import BlockTree, block_tree
from leastnoise._planner import TEST_SHARE, plane_regime

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]
Shape = tuple[int, int]

PARTITION_SHARE = 0.25
SIDES = (1, 4, 16)
WEIGHTS = (0.4, 0.3, 0.3)


@cache
def halves(shape: Shape) -> BlockTree:
    """The tree of halved blocks."""
    return block_tree(*shape, "halves")


# --- estimation: post-processing only; cells are in the order of the tree of halves -----------------------------------------------


def differences(cells: Reals, tree: BlockTree) -> tuple[Reals, list[Reals]]:
    """The total and, finest first, what the first half of every block has more than its share of the block; (trials, blocks).

    For equal halves it is first half minus second half; for parts of n1 and n2 cells 2 (n2 first - n1 second) / (n1 + n2).
    """
    out = []
    for level in range(len(tree.children) - 1, -1, -1):
        first, number = tree.children[level], tree.broods(level)
        parts = tree.lengths(level + 1)
        total = np.add.reduceat(cells, first, axis=-1)
        out.append(np.where(number > 1, 2 * (cells[..., first] - total * parts[first] / tree.lengths(level)), 0.0))
        cells = total
    return cells, out


def together(total: Reals, parts: list[Reals], tree: BlockTree) -> Reals:
    """Cells from total and differences, from the top down, no block below 0 and none above its parent."""
    cells = np.maximum(total, 0.0)
    for level, part in enumerate(reversed(parts)):
        first, number = tree.children[level], tree.broods(level)
        left = np.clip(cells * tree.lengths(level + 1)[first] / tree.lengths(level) + part / 2, 0.0, cells)
        both = np.repeat(cells - left, number, axis=-1)
        both[..., first] = np.where(number > 1, left, cells)
        cells = both
    return cells


def tree_estimate(values: list[Reals], levels: tuple[int, ...], variances: Reals, tree: BlockTree) -> tuple[Reals, list[Reals]]:
    """Least squares on a hierarchy with one variance a level, cells first, and the variances of the differences, finest first."""
    estimate, spread, firsts = [values[0]], [np.broadcast_to(variances[0], len(tree.order))], []
    between: list[Reals] = []
    for place in range(len(levels)):
        coarse = levels[place + 1] if place + 1 < len(levels) else 0
        for level in range(levels[place] - 1, coarse - 1, -1):
            inside = np.searchsorted(tree.starts[levels[place]], tree.starts[level + 1])
            own = np.add.reduceat(spread[-1], inside)
            first, parts, length = tree.children[level], tree.lengths(level + 1), tree.lengths(level)
            second = np.minimum(first + 1, len(parts) - 1)
            variance = 4 * (parts[second] ** 2 * own[first] + parts[first] ** 2 * own[second]) / length**2
            between.append(np.where(tree.broods(level) > 1, variance, variance.max()))
        if place + 1 == len(levels):
            break
        first = np.searchsorted(tree.starts[levels[place]], tree.starts[coarse])
        firsts.append(first)
        below, noise = np.add.reduceat(estimate[-1], first, axis=-1), np.add.reduceat(spread[-1], first)
        share = noise / (noise + variances[place + 1])
        estimate.append(share * values[place + 1] + (1 - share) * below)
        spread.append(share * variances[place + 1])
    final = estimate[-1]
    for place in range(len(levels) - 2, -1, -1):
        first, noise = firsts[place], spread[place]
        number = np.diff(first, append=len(noise))
        gap = (final - np.add.reduceat(estimate[place], first, axis=-1)) / np.add.reduceat(noise, first)
        final = estimate[place] + np.repeat(gap, number, axis=-1) * noise
    return final, between


def shrink(parts: list[Reals], spread: list[Reals], tail: float, tree: BlockTree, rounds: int = 10, states: int = 18) -> list[Reals]:
    """Posterior means of the differences under a hidden Markov tree, fitted to each trial by itself (empirical Bayes).

    As in experiments/dawa_partition.py, where the model is described; a block that is its own only part says nothing.
    """
    trials, count = len(parts[0]), states + 1
    least = min(float(sd.min()) for sd in spread)
    variance = np.concatenate([[0.0], (least / 4 * 2.0 ** np.arange(states)) ** 2])
    likelihood, gain = [], []
    for level, (part, sd) in enumerate(zip(parts, spread, strict=True)):
        own = sd[:, None] ** 2 + variance
        size = np.abs(part)[..., None]
        log = np.where(size < own / tail, -(size**2) / (2 * own), own / (2 * tail**2) - size / tail) - np.log(own) / 2
        log = np.where(tree.broods(len(parts) - 1 - level)[:, None] > 1, log, 0.0)
        likelihood.append(np.exp(log - log.max(axis=-1, keepdims=True)))
        gain.append(variance / own)
    rung = np.arange(count)
    prior = 0.6 ** np.abs(rung[:, None] - rung)
    prior[0], prior[:, 0] = 0.15 * 0.8 ** (rung - 1.0), 0.15
    prior[0, 0] = 1.0
    prior /= prior.sum(axis=1, keepdims=True)
    matrix = np.repeat(prior[None], trials, axis=0)
    posterior: list[Reals] = []
    top_level = len(parts) - 1
    for _ in range(rounds):
        upward: list[Reals] = []
        message: list[Reals] = []
        for place, part in enumerate(likelihood):
            inside = part if place == 0 else part * np.multiply.reduceat(message[-1], tree.children[top_level - place], axis=1)
            upward.append(inside / inside.max(axis=-1, keepdims=True))
            message.append(upward[-1] @ matrix.transpose(0, 2, 1))
        top = upward[-1] / upward[-1].sum(axis=-1, keepdims=True)
        posterior, counts = [top], np.zeros_like(matrix)
        for place in range(len(parts) - 2, -1, -1):
            above = np.repeat(posterior[0], tree.broods(top_level - 1 - place), axis=1)
            parent = above / np.maximum(message[place], 1e-200)
            posterior.insert(0, (parent @ matrix) * upward[place])
            counts += matrix * (parent.transpose(0, 2, 1) @ upward[place])
        matrix = counts + 20 * prior
        matrix /= matrix.sum(axis=-1, keepdims=True)
    return [part * np.einsum("tbs,bs->tb", state, factor) for part, state, factor in zip(parts, posterior, gain, strict=True)]


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
        return replace(self, epsilon=self.epsilon * share, trials=self.trials if trials is None else trials)

    def ordered(self) -> Wholes:
        """Counts in the order of the tree of halves."""
        return self.x.reshape(-1)[halves(self.shape()).order]

    def shape(self) -> Shape:
        """Height and width."""
        return self.x.shape[0], self.x.shape[1]

    def noise(self, scale: float, *shape: int) -> Reals:
        """Laplace noise."""
        return self.generator.laplace(0, scale, shape)


def as_table(cells: Reals, tree: BlockTree) -> Reals:
    """Cells in the order of the tree as tables; (trials, height, width)."""
    out = np.empty_like(cells)
    out[..., tree.order] = cells
    return out.reshape(*cells.shape[:-1], *tree.shape)


@cache
def side_strategy(size: int) -> tuple[Reals, Reals]:
    """The p-Identity for all ranges of a side, and its pseudo-inverse."""
    strategy = fit_p_identity(AllRangesGram(size)).matrix() if size > 1 else np.ones((1, 1))
    strategy /= strategy.sum(axis=0).max()
    return strategy, np.asarray(np.linalg.pinv(strategy), dtype=np.float64)


def fixed(run: Setting) -> Reals:
    """D at the full budget: the Kronecker product of two p-Identities, linear least squares."""
    (rows, rows_inverse), (columns, columns_inverse) = (side_strategy(size) for size in run.shape())
    values = rows @ run.x @ columns.T + run.noise(1 / run.epsilon, run.trials, len(rows), len(columns))
    return rows_inverse @ values @ columns_inverse.T


def levels_of(shape: Shape, sides: tuple[int, ...]) -> tuple[int, ...]:
    """For each side the coarsest level of the tree of halves whose blocks have no longer side; cells first, each once."""
    tree = halves(shape)
    longest = []
    for level in range(len(tree.starts)):
        last = tree.starts[level] + tree.lengths(level) - 1
        corners = [np.divmod(tree.order[place], shape[1]) for place in (tree.starts[level], last)]
        longest.append(max(int((corners[1][axis] - corners[0][axis]).max()) + 1 for axis in (0, 1)))
    found = []
    for side in sides:
        level = next(level for level, length in enumerate(longest) if length <= side)
        if level > 0 and level not in found:
            found.append(level)
    return tuple(found)


def measured_levels(run: Setting, sides: tuple[int, ...], weights: tuple[float, ...]) -> tuple[Reals, list[Reals], list[Reals], float]:
    """Total and differences by least squares, standard deviations of the differences, and the scale of the cells' noise."""
    tree = halves(run.shape())
    levels = levels_of(run.shape(), sides)
    scales = sum(weights[: len(levels)]) / (np.array(weights[: len(levels)]) * run.epsilon)
    x = run.ordered()
    values = [
        np.add.reduceat(x, tree.starts[level]) + run.noise(scale, run.trials, len(tree.starts[level]))
        for level, scale in zip(levels, scales, strict=True)
    ]
    cells, spread = tree_estimate(values, levels, 2 * scales**2, tree)
    total, parts = differences(cells, tree)
    return total, parts, [np.sqrt(variance) for variance in spread], float(scales[0])


def on_levels(run: Setting, sides: tuple[int, ...] = SIDES, weights: tuple[float, ...] = WEIGHTS, *, shrunk: bool = False) -> Reals:
    """L and H: levels at the full budget, least squares, shrunk by ``shrink`` or not, and made non-negative by ``together``."""
    tree = halves(run.shape())
    out = []
    for _ in range(run.trials):
        total, parts, spread, tail = measured_levels(run.less(1.0, trials=1), sides, weights)
        out.append(together(total, shrink(parts, spread, tail, tree) if shrunk else parts, tree))
    return as_table(np.concatenate(out), tree)


def on_curve(way: Callable[[Setting], Reals]) -> Callable[[Setting], Reals]:
    """A way along the Hilbert curve, as if the cells lay on a line."""

    def along(run: Setting) -> Reals:
        order = hilbert_order(*run.shape())
        line = way(replace(run, x=run.x.reshape(1, -1)[:, order])).reshape(run.trials, -1)
        out = np.empty_like(line)
        out[:, order] = line
        return out.reshape(run.trials, *run.shape())

    return along


def range_sums(size: int) -> Reals:
    """Twofold running sums of the Gram matrix of all ranges of a side, with a border of zeros."""
    cell = np.arange(size)
    gram = np.minimum.outer(cell + 1.0, cell + 1.0) * (size - np.maximum.outer(cell, cell))
    return np.pad(gram.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))


def rectangle_gram(starts: Wholes, lengths: Wholes, size: int) -> Reals:
    """Mean over pairs of cells of the Gram matrix of all ranges, for all pairs of intervals."""
    sums, ends = range_sums(size), starts + lengths
    block = sums[np.ix_(ends, ends)] - sums[np.ix_(starts, ends)] - sums[np.ix_(ends, starts)] + sums[np.ix_(starts, starts)]
    return block / np.outer(lengths, lengths)


def boxes_gram(tops: Wholes, heights: Wholes, lefts: Wholes, widths: Wholes, shape: Shape) -> Reals:
    """Mean over pairs of cells of the Gram matrix of all rectangles, for all pairs of boxes."""
    return rectangle_gram(tops, heights, shape[0]) * rectangle_gram(lefts, widths, shape[1])


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """A partition: the bucket of each cell (row-major), numbers of cells, and a way to the Gram matrix of all rectangles on the buckets."""

    label: Wholes
    areas: Wholes
    gram: Callable[[], Reals]


def of_rectangles(tops: Wholes, lefts: Wholes, heights: Wholes, widths: Wholes, label: Wholes) -> Buckets:
    """Buckets that are rectangles."""
    shape = label.shape
    return Buckets(
        label=label.reshape(-1),
        areas=heights * widths,
        gram=partial(boxes_gram, tops, heights, lefts, widths, (shape[0], shape[1])),
    )


def of_curve(label: Wholes, shape: Shape) -> Buckets:
    """Buckets that are any sets of cells."""
    areas = np.bincount(label)

    def gram() -> Reals:
        grams = [np.diff(np.diff(range_sums(size), axis=0), axis=1) for size in shape]
        out = np.empty((len(areas), len(areas)))
        for bucket in range(len(areas)):
            row, column = np.nonzero((label == bucket).reshape(shape))
            rows, row_of = np.unique(row, return_inverse=True)
            columns, column_of = np.unique(column, return_inverse=True)
            inside = np.zeros((len(rows), len(columns)))
            inside[row_of, column_of] = 1.0
            reached = grams[0][:, rows] @ inside @ grams[1][columns]
            out[bucket] = np.bincount(label, reached.reshape(-1), len(areas)) / areas / areas[bucket]
        return (out + out.T) / 2

    return Buckets(label=label, areas=areas, gram=gram)


Second = Callable[
    [Callable[[], Reals], int], Reals | None
]  # a strategy from a way to the Gram matrix and the number of buckets; None: each by itself


def greedy(gram: Callable[[], Reals], count: int) -> Reals | None:
    """GreedyH on buckets, in their order, if they are not too many."""
    if not 1 < count <= 1000:
        return None
    strategy = fit_greedy_h(DenseGram(gram(), 1)).matrix()
    return strategy[strategy.max(axis=1) > 0]


def p_identity(gram: Callable[[], Reals], count: int) -> Reals | None:
    """p-Identity on buckets if they are few."""
    return fit_p_identity(DenseGram(gram(), 1)).matrix() if 1 < count <= 200 else greedy(gram, count)


def second_stage(run: Setting, buckets: Buckets, strategy_of: Second) -> Reals:
    """Strategy on the buckets, least squares, uniform expansion; (height, width)."""
    sums = np.bincount(buckets.label, run.x.reshape(-1), len(buckets.areas))
    strategy = strategy_of(buckets.gram, len(buckets.areas))
    if strategy is None:
        found = sums + run.noise(1 / run.epsilon, len(sums))
    else:
        strategy = strategy / np.abs(strategy).sum(axis=0).max()
        values = strategy @ sums + run.noise(1 / run.epsilon, len(strategy))
        found = np.linalg.solve(strategy.T @ strategy, strategy.T @ values)
    return (found / buckets.areas)[buckets.label].reshape(run.shape())


def bounded(table: Reals) -> Reals:
    """No block of the tree of halves below 0 or above its parent; (trials, height, width)."""
    tree = halves((table.shape[1], table.shape[2]))
    return as_table(together(*differences(table.reshape(len(table), -1)[:, tree.order], tree), tree), tree)


def grown(run: Setting, blocks: int = 64, cost: float | None = None) -> Reals:
    """G: the adaptive grid on the tree, least squares, non-negative from the top down; by the package's own code."""
    out = []
    for _ in range(run.trials):
        found = adaptive_blocks(run.x, repr(run.epsilon), run.entropy, blocks=blocks, cost=cost)
        counts = block_counts(found.starts, found.values, found.scales)
        out.append(bounded_cells(counts, found.starts[0], halves(run.shape()).starts))
    return as_table(np.array(out), halves(run.shape()))


def by_rule(run: Setting) -> Reals:
    """The default: a private test with a small share of the budget, then D or G with all the rest."""
    out = []
    for _ in range(run.trials):
        cost = cost_of(run)
        way, blocks = plane_regime(cost, repr(run.epsilon), run.x.size)
        rest = run.less(1 - float(TEST_SHARE), trials=1)
        out.append(fixed(rest)[0] if way == "fixed" else grown(rest, blocks, float(cost) * run.epsilon)[0])
    return np.array(out)


def cost_of(run: Setting) -> Fraction:
    """The noisy least cost."""
    return least_block_cost(run.x, repr(run.epsilon * float(TEST_SHARE)), run.entropy, penalty=repr(1 / run.epsilon), split="halves")


def along_curve(run: Setting, epsilon: str, *, prior: str = "1.386294361", centre: str = "mean") -> Buckets:
    """(c) in one dimension along the Hilbert curve."""
    order = hilbert_order(*run.shape())
    found = sampled_aligned(run.x.reshape(-1)[order], epsilon, run.entropy, penalty=0, prior=prior, centre=centre)
    label = np.empty(len(order), dtype=np.int64)
    label[order] = np.repeat(np.arange(len(found.starts)), found.lengths())
    return of_curve(label, run.shape())


def quadtree(run: Setting, epsilon: str, *, split: str, prior: str | None = None, centre: str = "mean") -> Buckets:
    """(c) on a quadtree."""
    found = quadtree_mechanism(run.x, epsilon, run.entropy, split=split, prior=prior, centre=centre)
    return of_rectangles(found.tops, found.lefts, found.heights, found.widths, labels_of(found))


def two_stages(
    draw: Callable[[Setting, str], Buckets], strategy_of: Second = greedy, share: float = PARTITION_SHARE
) -> Callable[[Setting], Reals]:
    """A partition with a quarter of the budget, and a strategy on its buckets with the rest; made non-negative."""

    def way(run: Setting) -> Reals:
        out = []
        for _ in range(run.trials):
            buckets = draw(run, repr(run.epsilon * share))
            out.append(second_stage(run.less(1 - share), buckets, strategy_of))
        return bounded(np.array(out))

    return way


def baseline(mechanism: Baseline) -> Callable[[Setting], Reals]:
    """Other people's."""
    return lambda run: np.array([mechanism.run(run.x, repr(run.epsilon), run.entropy) for _ in range(run.trials)])


WAYS: dict[str, Callable[[Setting], Reals]] = {
    "D": fixed,
    "UGrid": baseline(UNIFORM_GRID),
    "AGrid": baseline(ADAPTIVE_GRID),
    "QuadTree": baseline(QUADTREE),
    "c hilbert": two_stages(along_curve),
    "c halves": two_stages(lambda run, e: quadtree(run, e, split="halves")),
    "c quarters": two_stages(lambda run, e: quadtree(run, e, split="quarters")),
    "E": two_stages(lambda run, e: quadtree(run, e, split="quarters"), p_identity),
    "c median": two_stages(lambda run, e: quadtree(run, e, split="quarters", centre="median")),
    "H hilbert": on_curve(partial(on_levels, sides=(1, 8, 64, 512), weights=(0.20, 0.22, 0.26, 0.32), shrunk=True)),
    "H": partial(on_levels, shrunk=True),
    "L": on_levels,
    "G hilbert": on_curve(grown),
    "G": grown,
    "default": by_rule,
}
FAST = {"D": 60}  # trials
SLOW = {"E": 3, "H": 3, "H hilbert": 3, "c hilbert": 3}


# --- data, errors, tables ----------------------------------------------------------------------------------------------------------


def read_data(folder: Path) -> dict[str, Wholes]:
    """Histograms of 128 x 128 cells, and tables of two attributes of microdata, of sides that are no powers of two."""
    data = {}
    for path in sorted((folder / "hist2d").glob("*.256x256.npy")):
        data[path.name.split(".")[0]] = np.load(path).reshape(128, 2, 128, 2).sum(axis=(1, 3)).astype(np.int64)
    folder = folder / "microdata"
    cps, adult, blood = (read_columns(folder / name) for name in ("cps.csv", "adult14_pgm.csv", "transfusion.csv"))
    data["CPS income x age"] = tabulate(cps["income"] // 2000, cps["age"] - 15, (250, 76))
    data["ADULT age x hours"] = tabulate(adult["age"], adult["hours-per-week"], (85, 99))
    data["ADULT age x fnlwgt"] = tabulate(adult["age"], adult["fnlwgt"], (85, 100))
    data["ADULT gain x loss"] = tabulate(adult["capital-gain"], adult["capital-loss"], (100, 100))
    data["ADULT school x country"] = tabulate(adult["education-num"], adult["native-country"], (16, 42))
    recency, _, _, since, _ = blood.values()
    data["BLOOD recency x time"] = tabulate(recency, since, (75, 99))
    return data


def read_columns(path: Path) -> dict[str, Wholes]:
    """Columns of whole numbers by name."""
    names = path.read_text("utf-8").split("\n", 1)[0].strip().split(",")
    return dict(zip(names, np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64, unpack=True), strict=True))


def tabulate(row: Wholes, column: Wholes, shape: Shape) -> Wholes:
    """Counts of pairs; values beyond the last go there."""
    place = np.minimum(row, shape[0] - 1) * shape[1] + np.minimum(column, shape[1] - 1)
    return np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)


def made_up(data: dict[str, Wholes], folder: Path) -> dict[str, Wholes]:
    """Shapes that nothing was tuned on, thinned data, and some at the full resolution."""
    generator = np.random.default_rng(79)
    down, across = np.mgrid[0:128, 0:128]
    bell = np.exp(-((down - 50) ** 2 + (across - 70) ** 2) / (2 * 20.0**2))
    rates = {
        "empty": np.zeros((128, 128)),
        "even 3": np.full((128, 128), 3.0),
        "even 300": np.full((128, 128), 300.0),
        "bell 7e5": 300 * bell,
        "bell 7e3": 3 * bell,
        "rough 30": generator.exponential(30.0, (128, 128)),
        "rough 500": generator.exponential(500.0, (128, 128)),
        "spikes 0.1": np.where(generator.random((128, 128)) < 0.1, generator.pareto(0.8, (128, 128)) * 30, 0.0),
        "spikes 0.01": np.where(generator.random((128, 128)) < 0.01, generator.pareto(0.8, (128, 128)) * 300, 0.0),
        "band 97 x 61": 500 * np.exp(-((np.mgrid[0:97, 0:61][0] - 1.5 * np.mgrid[0:97, 0:61][1]) ** 2) / 50),
    }
    out = {name: generator.poisson(rate).astype(np.int64) for name, rate in rates.items()}
    for name in ("GOWALLA", "LC-2D", "CPS income x age", "ADULT age x hours"):
        out[f"~{name}"] = generator.binomial(data[name], 0.1).astype(np.int64)
    for name in ("BJ-CABS-S", "MD-SAL-2D", "SF-CABS-S"):
        out[f"{name} 256"] = np.load(folder / "hist2d" / f"{name}.256x256.npy").astype(np.int64)
    return out


def error(estimate: Reals, x: Wholes, corners: Wholes) -> Reals:
    """Mean absolute error over the rectangles (top, bottom, left, right), ends not included; one number a trial."""
    sums = np.pad((estimate - x).cumsum(axis=1).cumsum(axis=2), ((0, 0), (1, 0), (1, 0)))
    top, bottom, left, right = corners
    return np.abs(sums[:, bottom, right] - sums[:, top, right] - sums[:, bottom, left] + sums[:, top, left]).mean(axis=1)


def rectangles(shape: Shape, count: int = 2000) -> Wholes:
    """Random rectangles, both pairs of ends uniform; (4, count)."""
    generator = np.random.default_rng(5)
    ends = [np.sort(generator.integers(0, size, (2, count)), axis=0) + np.array([[0], [1]]) for size in shape]
    return np.concatenate(ends)


def run(data: Path, out: Path, *, quick: bool = False, seed: int = 0, report: Callable[[str], None] = print) -> None:
    """``leastnoise experiments dawa-plane``: the mechanism as built against published ones; see ``dawa_rectangles``.

    Args:
        data: the folder with ``hist2d`` and ``microdata``.
        out: where tables and figures go.
        quick: two tables, one budget, two trials.
        seed: of noise and random rectangles.
        report: called with every line to be shown.
    """
    if not (data / "hist2d").is_dir():
        raise InputError(f"The experiment needs histograms in {data / 'hist2d'}; got none. Say where they are: --data DIR.")
    compare(read_data(data), out, QUICK if quick else Size(), seed, report)


def main() -> None:
    """Print one table an epsilon, and the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1, 0.1, 0.01])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--made-up", action="store_true", help="thinned, synthetic and larger histograms in the place of the others")
    parser.add_argument("--only", nargs="+", default=None, help="names of histograms; default all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not (options.data / "hist2d").is_dir():
        sys.exit(f"No histograms in {options.data / 'hist2d'}; give the folder with --data.")
    data = read_data(options.data)
    data = made_up(data, options.data) if options.made_up else data
    data = {name: x for name, x in data.items() if options.only is None or name in options.only}
    for epsilon in options.epsilon:
        print(f"\nepsilon {epsilon}\n\n| data | {' | '.join(options.ways)} | regime |")
        print("|---|" + "--:|" * len(options.ways) + "---|")
        table: dict[str, dict[str, float]] = {}
        for place, (name, x) in enumerate(data.items()):
            seed = 1000 * options.seed + place  # errors of different histograms are independent
            run = Setting(x=x, epsilon=epsilon, trials=options.trials, generator=np.random.default_rng(seed), entropy=SeededEntropy(seed))
            corners = rectangles(run.shape())
            table[name] = {
                way: float(
                    error(
                        WAYS[way](run.less(1.0, trials=FAST.get(way, min(options.trials, SLOW.get(way, options.trials))))), x, corners
                    ).mean()
                )
                for way in options.ways
            }
            chosen = [plane_regime(cost_of(run), repr(epsilon), x.size) for _ in range(10)]
            letters = ["D" if way == "fixed" else f"G({blocks})" for way, blocks in chosen]
            told = " ".join(f"{one}:{letters.count(one)}" for one in sorted(set(letters)))
            print(f"| {name} | {' | '.join(f'{found:.3g}' for found in table[name].values())} | {told} |", flush=True)
        for way in options.ways:
            mean = np.exp(np.mean([np.log(max(row[way], 0.1) / row[options.ways[0]]) for row in table.values()]))
            print(f"{way}: geometric mean over data sets of error / {options.ways[0]}: {mean:.3f}")


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"\n{time.perf_counter() - start:.0f} s")
