"""Hierarchies and Haar wavelets with one weight a level: closed forms, so all of them can be searched.

With ``tau_l = tr(M P_l)``, P_l the projection on vectors constant on the blocks of level l, a tree of widths B_l and weights w_l has error
``sum_l (tau_l - tau_(l+1)) / sum_(i <= l) w_i^2 B_i`` and a Haar wavelet ``sum_l (tau_(l-1) - tau_l) / (w_l^2 B_l)``: no matrix at all.
When a width does not divide n the formulas are those of the domain padded with cells that are empty but not known to be so.

Under L1 the best trees use few levels, far apart; levels in between only cost. So chains of widths are searched, not just powers of one
branching. Under L2 every level helps a little.

With a scale for every node a gradient method on the recursion of ``_tree`` takes O(n) a level and step. Each node takes a share of what its
ancestors have left (of the L1 norm, or of the square of the L2 norm), so every path from a root to a cell has norm exactly 1 whatever the
shares are. Under L1 a share of zero is always a local optimum: which levels are used at all is decided by the starts, of which the best
tree with one weight a level is the strongest, and GreedyH another: from the cells up, the share lambda of each node is chosen, with its
subtree given what is left, to make the error of the queries inside the node least; queries that leave the node are anticipated by damping
what crosses the node's children with ``b^(-depth/2)``. (Copies of it in public code call it with W^T W where W is meant, and so optimise
another workload; that is not repeated here.)

Source: Li, Hay, Miklau, Wang, PVLDB 2014, section 4.3 (GreedyH); the rest is ours.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, singledispatch

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families._family import Fitted
from leastnoise._families._gram import FITS, MOST_KEPT, Gram, RangesGram, ScaledSum
from leastnoise._families._queries import MOST_DENSE
from leastnoise._families._search import NotApplicable, descended, over
from leastnoise._families._tree import ScaledTree, full_chain, node_counts, path_scales, scaled_tree, tree_error
from leastnoise._linop import Haar, Tree, run_spread, run_sums
from leastnoise._measurements import Factor

# Logarithm of the least weight, relative to the largest: with the cells' weight any smaller, the error drowns in rounding.
_LEAST = -6.0
# How many of the chains of each length go on, and for how many longer steps, after the short ones that all of them take.
_BEST_CHAINS, _NEWTON_STEPS, _SHORTENINGS = 12, 12, 4
# A share of 1 would leave nothing for the descendants.
_LARGEST_SHARE = 0.999
_NODES_AT_ONCE = 8192
_NOTHING = 1e-9
_WEIGHT_BITS = 20


@singledispatch
def block_traces(gram: Gram, widths: Sequence[int]) -> FloatArray:
    """``tr(M P)`` for the projections P on vectors that are constant on blocks of each width."""
    # For ``M_ij = sum a_i b_j`` (i <= j) the sum over a block follows from those over the parts it is made of: O(n) for all widths that are
    # powers of one number together.
    pairs = gram.generators()
    if pairs is None:
        ones = np.ones(gram.size)
        return np.array([gram.block_products(ones, width).sum() / width if width > 1 else gram.trace() for width in widths])
    # For every width the sum over each block, and those of each a and b alone.
    known = {1: (gram.diagonal(), list(pairs))}
    for width in sorted({*widths} - {1}):
        part = max(smaller for smaller in known if width % smaller == 0)
        sums, ends = known[part]
        joined = min(width // part, len(sums))
        missing = -len(sums) % joined
        runs = [np.pad(values, (0, missing)).reshape(-1, joined).T for values in (sums, *(end for pair in ends for end in pair))]
        whole_sums = runs[0].sum(axis=0)
        for rising, falling in zip(runs[1::2], runs[2::2], strict=True):
            before = np.zeros(len(whole_sums))
            for place in range(1, joined):
                before += rising[place - 1]
                whole_sums += 2 * before * falling[place]
        totals = [run.sum(axis=0) for run in runs[1:]]
        known[width] = whole_sums, list(zip(totals[::2], totals[1::2], strict=True))
    return np.array([known[width][0].sum() / width for width in widths])


@block_traces.register
def _(gram: ScaledSum, widths: Sequence[int]) -> FloatArray:
    return np.asarray(sum(weight * block_traces(part, widths) for weight, part in gram.parts))


@block_traces.register
def _(gram: RangesGram, widths: Sequence[int]) -> FloatArray:
    found = []
    for width in widths:  # a range is of some whole blocks, and of a part of its first and of its last one
        first, last = gram.low // width, gram.high // width
        begin, end = np.minimum(gram.high + 1, (first + 1) * width) - gram.low, gram.high + 1 - last * width
        parts = np.where(last > first, (last - first - 1) * float(width) ** 2 + end.astype(float) ** 2, 0.0)
        found.append(float((begin.astype(float) ** 2 + parts).sum()) / width)
    return np.array(found)


def _sensitivity(weights: FloatArray, norm: int) -> FloatArray:
    return np.asarray(np.abs(weights).sum(axis=-1) if norm == 1 else np.sqrt((weights**2).sum(axis=-1)))


def _slopes(logs: FloatArray, parts: FloatArray, widths: FloatArray, norm: int) -> tuple[FloatArray, FloatArray]:
    """The logarithms of the squared errors of chains with given logarithms of weights, and their gradients."""
    amounts = np.exp(2 * logs) * widths
    each = parts / np.cumsum(amounts, axis=-1)
    error = each.sum(axis=-1)
    shares = np.exp(norm * logs) * (widths > 0)
    spent = shares.sum(axis=-1)
    later = np.cumsum((each**2 / np.where(parts > 0, parts, 1.0))[..., ::-1], axis=-1)[..., ::-1]
    slope = 2 * shares / spent[..., None] - 2 * amounts * later / error[..., None]
    return np.log(error) + 2 / norm * np.log(spent), slope


def _curvature(logs: FloatArray, parts: FloatArray, widths: FloatArray, norm: int) -> FloatArray:
    """The matrices of second derivatives of what ``_slopes`` gives."""
    amounts = np.exp(2 * logs) * widths
    seen = np.cumsum(amounts, axis=-1)
    error = (parts / seen).sum(axis=-1)[..., None]
    squares, cubes = (np.cumsum((parts / seen**power)[..., ::-1], axis=-1)[..., ::-1] / error for power in (2, 3))
    shares = np.exp(norm * logs) * (widths > 0)
    shares /= shares.sum(axis=-1)[..., None]
    pulls = 2 * amounts * squares
    levels = np.arange(logs.shape[-1])
    both = 8 * amounts[..., :, None] * amounts[..., None, :] * cubes[..., np.maximum.outer(levels, levels)]
    own = (2 * norm * shares - 2 * pulls)[..., None] * np.eye(len(levels))
    return np.asarray(both + own - pulls[..., :, None] * pulls[..., None, :] - 2 * norm * shares[..., :, None] * shares[..., None, :])


def _bounded(logs: FloatArray, widths: FloatArray) -> FloatArray:
    """Logarithms of weights with the largest 0 and none below the least."""
    used = np.where(widths > 0, logs, -np.inf)
    return np.maximum(used - used.max(axis=-1, keepdims=True), _LEAST)


def _parts_of(chains: Sequence[tuple[int, ...]], traces: Mapping[int, float]) -> tuple[FloatArray, FloatArray]:
    """What ``_weigh`` needs to know of chains: their differences of traces and their widths."""
    most = max(map(len, chains))
    tau = np.array([[*(traces[width] for width in chain), *[0.0] * (most + 1 - len(chain))] for chain in chains])
    widths = np.array([(*chain, *[0] * (most - len(chain))) for chain in chains], dtype=float)
    return np.maximum(tau[:, :-1] - tau[:, 1:], 0.0), widths


def _weigh(parts: FloatArray, widths: FloatArray, norm: int, steps: int) -> tuple[IntArray, FloatArray]:
    """The best of many chains of levels, each with weights of least error."""
    # All chains take some steps down the slope. The best of them go on with Newton's, with the curvature made positive (under L1 the
    # problem is not convex) and shortened until the error falls.
    logs = _bounded(np.zeros(parts.shape), widths)
    for step in range(steps):
        _, slope = _slopes(logs, parts, widths, norm)
        logs = _bounded(logs - (0.5 / (1 + step / 100)) * slope, widths)
    # The best of each length: which of them is the very best is not seen after so few steps.
    value, levels = _slopes(logs, parts, widths, norm)[0], (widths > 0).sum(axis=-1)
    ranked = np.argsort(value, kind="stable")
    best = np.concatenate([ranked[levels[ranked] == count][:_BEST_CHAINS] for count in np.unique(levels)])
    parts, widths, logs = parts[best], widths[best], logs[best]
    value, slope = _slopes(logs, parts, widths, norm)
    for _ in range(_NEWTON_STEPS):
        held = ((logs <= _LEAST) & (slope > 0)) | (widths == 0)
        curvature = np.where(held[:, :, None] | held[:, None, :], 0.0, _curvature(logs, parts, widths, norm))
        bends, axes = np.linalg.eigh(curvature)
        turned = np.einsum("cij,ci->cj", axes, np.where(held, 0.0, slope)) / np.maximum(np.abs(bends), 1e-6)
        moves = np.clip(-np.einsum("cij,cj->ci", axes, turned), -1.0, 1.0)
        for _ in range(_SHORTENINGS):
            moved = _bounded(logs + moves, widths)
            reached, turn = _slopes(moved, parts, widths, norm)
            better = reached < value
            logs, slope = np.where(better[:, None], moved, logs), np.where(better[:, None], turn, slope)
            value = np.where(better, reached, value)
            moves = np.where(better[:, None], 0.0, moves / 4)
            if better.all():
                break
    order = np.argsort(value, kind="stable")
    return best[order], (np.exp(logs) * (widths > 0))[order]


def _chains(size: int, norm: int) -> list[tuple[int, ...]]:
    """Chains of widths to try."""
    if norm == 2:
        return [full_chain(size, branching) for branching in (2, 3, 4, 5, 6, 8, 12, 16) if branching <= 2 * size]
    factors = (2, 3) if size <= 2**16 else (2,)
    ratios = sorted({factor * 2**power for power in range(40) for factor in factors if factor * 2**power < 4 * size})
    out: list[tuple[int, ...]] = [(1,)]
    for depth in (1, 2, 3, 4):
        steps = [ratio for ratio in ratios if ratio <= max(64, 2 * size ** (1 / depth))] if depth > 1 else ratios
        for chosen in itertools.product(steps if depth < 4 else [4, 8, 16, 32], repeat=depth):
            widths = tuple(itertools.accumulate((1, *chosen), int.__mul__))
            # A level of one block is enough, and no wider than need be.
            if len(widths) < 2 or widths[-2] < size:
                below = widths[-2] if len(widths) > 1 else 1
                out.append((*widths[:-1], min(widths[-1], -(-size // below) * below)))
    return list(dict.fromkeys(out))


def weighted_tree(
    gram: Gram, widths: Sequence[int], weights: FloatArray, norm: int, traces: Mapping[int, float] | None = None
) -> ScaledTree:
    """A hierarchy with one weight a level, scaled to sensitivity 1, with its exact error; what ``block_traces`` gives may be known."""
    scaled, counts = weights / _sensitivity(weights, norm), node_counts(gram.size, widths)
    if all(gram.size % width == 0 for width in widths):
        tau = np.append(block_traces(gram, widths) if traces is None else [traces[width] for width in widths], 0.0)
        error = float(((tau[:-1] - tau[1:]) / np.cumsum(scaled**2 * np.array(widths))).sum())
    else:
        error, _ = tree_error(
            gram, widths, [np.full(count, weight**2) for count, weight in zip(counts, scaled, strict=True)], gradient=False
        )
    scales = tuple(np.broadcast_to(weight, count) for weight, count in zip(scaled, counts, strict=True))
    return ScaledTree(size=gram.size, widths=tuple(widths), scales=scales, norm=norm, rmse=math.sqrt(error / gram.queries))


def uniform_tree(gram: Gram, norm: int) -> ScaledTree:
    """The plain hierarchy, all levels measured alike, of the branching that gives the least error."""
    candidates = sorted({*range(2, 34), *(2**power for power in range(6, 40) if 2**power < 2 * gram.size)})
    # The level of all cells is left out where that is better: it is one query of little use for short ranges.
    chains = [chain for b in candidates for chain in (full_chain(gram.size, b), full_chain(gram.size, b)[:-1] or (1,))]
    widths = sorted({width for chain in chains for width in chain})
    traces = dict(zip(widths, block_traces(gram, widths), strict=True))

    def score(chain: Sequence[int]) -> float:
        own = np.array([*(traces[width] for width in chain), 0.0])
        return len(chain) ** (3 - norm) * float(((own[:-1] - own[1:]) / np.cumsum(chain)).sum())

    best = min(chains, key=score)
    return weighted_tree(gram, best, np.ones(len(best)), norm)


def fit_level_tree(gram: Gram, norm: int) -> ScaledTree:
    """Find a hierarchy with one weight a level: widths and weights of least error."""
    return (_kept_levels if gram.size <= MOST_KEPT else _fit_levels)(gram, norm)


def _fit_levels(gram: Gram, norm: int) -> ScaledTree:
    plain = {uniform_tree(gram, norm).widths} if gram.size <= 2**16 else set()
    chains = sorted({*_chains(gram.size, norm), *plain}, key=len)
    widths = sorted({width for chain in chains for width in chain})
    traces = dict(zip(widths, block_traces(gram, widths), strict=True))
    best, weights = _weigh(*_parts_of(chains, traces), norm, 300 if gram.size <= 2**16 else 60)
    # Levels that have shrunk to the least weight are left out, and what is left is weighed again.
    kept = [
        tuple(
            width for width, weight in zip(chains[place], own, strict=False) if width == 1 or weight > 1.01 * math.exp(_LEAST) * own.max()
        )
        for place, own in zip(best, weights, strict=True)
    ]
    kept = list(dict.fromkeys(kept))[: 32 if gram.size <= 4096 else 4]
    best, weights = _weigh(*_parts_of(kept, traces), norm, 60)
    found = [weighted_tree(gram, kept[place], own[: len(kept[place])], norm, traces) for place, own in zip(best, weights, strict=True)]
    found.sort(key=lambda tree: tree.rmse)
    # The search took a shorter last block for a whole one; where that may matter, the exact error has the last word.
    uneven = gram.size <= 2**14 and any(gram.size % width for width in found[0].widths)
    return min([*found[:2], *map(_refine(gram), found[:3])], key=lambda tree: tree.rmse) if uneven else found[0]


_kept_levels = lru_cache(maxsize=FITS)(_fit_levels)


def _refine(gram: Gram) -> Callable[[ScaledTree], ScaledTree]:
    """Weights of a tree improved on the exact error."""

    def refine(tree: ScaledTree) -> ScaledTree:
        counts = node_counts(tree.size, tree.widths)

        def objective(above: FloatArray) -> tuple[float, FloatArray]:
            weights = np.exp(_LEAST + above)
            error, slopes = tree_error(gram, tree.widths, [np.full(count, w**2) for count, w in zip(counts, weights, strict=True)])
            by_level = np.array([slope.sum() for slope in slopes]) * 2 * weights**2 / error
            size = float(_sensitivity(weights, tree.norm))
            whole = error * size**2
            return whole, whole * (by_level + 2 * (weights / size) ** tree.norm)

        above, _ = descended(objective, np.log([scale[0] for scale in tree.scales]) - _LEAST, -_LEAST, 30)
        return weighted_tree(gram, tree.widths, np.exp(_LEAST + above), tree.norm)

    return refine


def haar_weights(gram: Gram, norm: int) -> FloatArray:
    """The best weights of the Haar wavelet, a closed form: of the total, then of the differences of halves, the widest first."""
    widths = full_chain(gram.size, 2)
    traces = block_traces(gram, widths)
    cost = np.concatenate([[traces[-1]], (traces[:-1] - traces[1:])[::-1]]) / np.array([widths[-1], *widths[:0:-1]])
    weights = np.maximum(cost, 1e-12 * cost.max()) ** (1 / (2 + norm))
    return np.asarray(weights / _sensitivity(weights, norm))


def shares_of(tree: ScaledTree) -> list[FloatArray]:
    """The shares that give a tree's scales (see ``path_scales``), the narrowest level first."""
    left = np.ones(tree.size)
    shares: list[FloatArray] = []
    for width, scale in zip(tree.widths[:0:-1], tree.scales[:0:-1], strict=True):
        share = np.clip(scale**tree.norm / left[::width], 0.0, _LARGEST_SHARE)
        shares.append(share)
        left = left * (1 - run_spread(share, width, tree.size))
    return shares[::-1]


def node_objective(gram: Gram, widths: Sequence[int], shares: Sequence[FloatArray], norm: int) -> tuple[float, list[FloatArray]]:
    """The error ``tr(M (A^T A)^-1)`` of a tree given by its shares, and its derivatives by the shares."""
    scales = path_scales(widths, shares, norm, gram.size)
    error, by_square = tree_error(gram, widths, [scale**2 for scale in scales])
    # What is shared out at a node is scale^norm, so a squared scale is that to the power 2 / norm.
    by_amount = [2 * slope * scale for slope, scale in zip(by_square, scales, strict=True)] if norm == 1 else by_square
    below = by_amount[0]
    slopes: list[FloatArray] = []
    left = _remainders(widths, shares, gram.size)
    for level, share in enumerate(shares):
        joined = widths[level + 1] // widths[level]
        below = np.add.reduceat(below, np.arange(0, len(below), joined))
        slopes.append(left[level] * (by_amount[level + 1] - below))
        below = share * by_amount[level + 1] + (1 - share) * below
    return error, slopes


def _remainders(widths: Sequence[int], shares: Sequence[FloatArray], size: int) -> list[FloatArray]:
    """What each node above the cells finds left by its ancestors."""
    left = [np.ones(len(shares[-1]))] if shares else []
    for level in range(len(shares) - 2, -1, -1):
        rest = left[-1] * (1 - shares[level + 1])
        left.append(np.repeat(rest, widths[level + 2] // widths[level + 1])[: len(shares[level])])
    return left[::-1]


def _look_at_clock(_: FloatArray) -> None:
    if over():
        raise StopIteration


def fit_node_tree(gram: Gram, starts: Sequence[ScaledTree], *, steps: int | None = None) -> ScaledTree:
    """Improve hierarchies by optimising the scale of every node."""
    from scipy.optimize import minimize

    tree, norm = min(starts, key=lambda tree: tree.rmse), starts[0].norm
    shaped = [start for start in starts if len(start.widths) > 1]
    if not shaped:
        return tree
    first = min(shaped, key=lambda tree: tree.rmse)
    ends = np.cumsum([0, *(len(scale) for scale in first.scales[1:])])

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        error, slopes = node_objective(gram, first.widths, [point[low:high] for low, high in itertools.pairwise(ends)], norm)
        return math.log(error), np.concatenate(slopes) / error

    start = np.concatenate(shares_of(first))
    most = max(8, min(300, 600 * 2**18 // (gram.size * len(first.widths)))) if steps is None else steps
    options = {"maxiter": most, "maxfun": 2 * most, "ftol": 1e-10, "maxcor": 8}
    bounds = [(0.0, _LARGEST_SHARE)] * len(start)
    end = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=_look_at_clock).x
    shares = [end[low:high] for low, high in itertools.pairwise(ends)]
    return min(tree, scaled_tree(gram, first.widths, path_scales(first.widths, shares, norm, gram.size), norm), key=lambda tree: tree.rmse)


def _best_shares(error: FloatArray, mass: FloatArray, cross: FloatArray) -> FloatArray:
    """Of ``{0, 1/100, ...}`` the lambda with the least ``(1 + u)^2 (E - c u^2 / (1 + k u^2))``, ``u = lambda / (1 - lambda)``."""
    shares = np.arange(100) / 100
    u = shares / (1 - shares)
    best = np.empty(len(error))
    for start in range(0, len(error), _NODES_AT_ONCE):
        part = slice(start, start + _NODES_AT_ONCE)
        value = (1 + u) ** 2 * (error[part, None] - cross[part, None] * u**2 / (1 + mass[part, None] * u**2))
        best[part] = shares[np.argmin(value, axis=1)]
    return best


def fit_greedy_h(gram: Gram) -> ScaledTree:
    """The hierarchy that the greedy of DAWA's second stage chooses, on the exact workload."""
    # When n is no power of two, the nodes at the right end are shorter.
    widths = full_chain(gram.size, 2)
    vector = np.ones(gram.size)
    error = gram.diagonal()
    inside = gram.diagonal()
    shares: list[FloatArray] = []
    for level, width in enumerate(widths[1:], start=1):
        product = gram.block_products(vector, width)
        k, m = run_sums(vector, width), run_sums(vector * product, width)
        error, children = run_sums(error, 2), run_sums(inside, 2)
        damping = 2 ** (-(len(widths) - 1 - level) / 2)
        share = _best_shares(error, k, damping * (m - children) + children)
        share[error <= _NOTHING * error.max()] = 0.0  # nobody asks there: only rounding errors would be minimised
        rest = (1 - share) ** 2
        divisor = rest + k * share**2
        error = (error - share**2 / divisor * m) / rest
        inside = m / divisor**2
        vector = vector / run_spread(divisor, width, gram.size)
        shares.append(share)
    return scaled_tree(gram, widths, path_scales(widths, shares, 1, gram.size), 1)


def tree_factor(name: str, size: int, widths: Sequence[int], scales: Sequence[np.ndarray]) -> Fitted:
    """A hierarchy from the narrowest level up, with a scale a node; levels without any weight are left out."""
    used = [place for place in range(len(widths)) if scales[place].max() > 0]
    tree = Tree(size, tuple(int(widths[place]) for place in reversed(used)))
    weights = np.concatenate([scales[place] for place in reversed(used)])
    return Fitted(Factor((name,), tree, _whole_weights(weights)))


def _whole_weights(weights: np.ndarray) -> np.ndarray | None:
    # A row may have no weight at all beside heavy ones; the least whole weight costs next to nothing.
    whole = np.maximum(1, np.rint(weights / weights.max() * 2**_WEIGHT_BITS)).astype(np.int64)
    return None if (whole == whole[0]).all() else whole


def best_hierarchy(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The hierarchy without weights of the branching that gives the least error."""
    fitted_tree = uniform_tree(gram, norm)
    return tree_factor(name, gram.size, fitted_tree.widths, [np.ones(-(-gram.size // width)) for width in fitted_tree.widths])


def level_tree(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The hierarchy with the best weight for every level."""
    fitted_tree = fit_level_tree(gram, norm)
    return tree_factor(name, gram.size, fitted_tree.widths, fitted_tree.scales)


def node_tree(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The hierarchy with the best weight for every node."""
    levels = fit_level_tree(gram, norm)
    starts = [scaled_tree(gram, levels.widths, levels.scales, norm), *([fit_greedy_h(gram)] if norm == 1 else [])]
    fitted_tree = fit_node_tree(gram, starts)
    return tree_factor(name, gram.size, fitted_tree.widths, fitted_tree.scales)


def haar(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The Haar wavelet with the best weight for every level."""
    if gram.size > MOST_DENSE:
        raise NotApplicable(f"the wavelet's error bars need a matrix of {gram.size} x {gram.size}; at most {MOST_DENSE} cells are allowed")
    operator = Haar(gram.size)
    counts = [1, *(-(-gram.size // width) for width in operator.widths)]
    weights = np.concatenate([np.full(count, weight) for count, weight in zip(counts, haar_weights(gram, norm), strict=True)])
    return Fitted(Factor((name,), operator, _whole_weights(weights)))
