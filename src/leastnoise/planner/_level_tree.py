"""Hierarchies and Haar wavelets with one weight a level: closed forms, so all of them can be searched.

With ``tau_l = tr(M P_l)``, P_l the projection on vectors constant on the blocks of level l, a tree of widths B_l and weights w_l has error
``sum_l (tau_l - tau_(l+1)) / sum_(i <= l) w_i^2 B_i`` and a Haar wavelet ``sum_l (tau_(l-1) - tau_l) / (w_l^2 B_l)``: no matrix at all.
When a width does not divide n the formulas are those of the domain padded with cells that are empty but not known to be so.

Under L1 the best trees use few levels, far apart; levels in between only cost. So chains of widths are searched, not just powers of one
branching. Under L2 every level helps a little.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._check import InputError, one_of, whole
from leastnoise.planner._gram import Gram, Reals
from leastnoise.planner._tree import ScaledTree, full_chain, node_counts, tree_error

# Logarithm of the least weight, relative to the largest: with the cells' weight any smaller, the error drowns in rounding.
_LEAST = -6.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelTree:
    """A hierarchy with one scale a level.

    Attributes:
        size: Number of cells n.
        widths: Cells in a block of each level, the first 1, each a multiple of the one before; a last block may be shorter.
        weights: Scale of each level; sensitivity 1 under ``norm``.
        norm: 1 for pure DP, 2 for a Gaussian budget.
        rmse: Unit RMSE, exact for uneven sizes too.
    """

    size: int
    widths: tuple[int, ...]
    weights: Reals
    norm: int
    rmse: float

    def nodes(self) -> ScaledTree:
        """The same tree with the scale of every node written out."""
        counts = node_counts(self.size, self.widths)
        scales = tuple(np.full(count, weight) for count, weight in zip(counts, self.weights, strict=True))
        return ScaledTree(size=self.size, widths=self.widths, scales=scales, norm=self.norm, rmse=self.rmse)

    def matrix(self) -> Reals:
        """The strategy as a matrix, one row a block, cells first."""
        return self.nodes().matrix()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedHaar:
    """A Haar wavelet on the smallest power of two of at least n cells, with one scale a level.

    Attributes:
        size: Number of cells n.
        weights: Scale of the total, then of the differences of halves, from the widest level (2^h cells) to pairs of cells.
        norm: 1 for pure DP, 2 for a Gaussian budget.
        rmse: Unit RMSE; above the exact one when n is not a power of two, because the padding's cells count as unknown.
    """

    size: int
    weights: Reals
    norm: int
    rmse: float

    def matrix(self) -> Reals:
        """The strategy as a matrix: the total, then the differences, widest first."""
        rows = [np.full((1, self.size), self.weights[0])]
        cell = np.arange(self.size)
        for level, weight in enumerate(self.weights[1:]):
            width = 2 ** (len(self.weights) - 1 - level)
            inside = np.equal.outer(np.arange(-(-self.size // width)), cell // width)
            rows.append(weight * inside * np.where(cell % width < width // 2, 1.0, -1.0))
        return np.vstack(rows)


def block_traces(gram: Gram, widths: Sequence[int]) -> Reals:
    """``tr(M P)`` for the projections P on vectors that are constant on blocks of each width.

    >>> from leastnoise.planner._gram import PrefixGram
    >>> block_traces(PrefixGram(4), (1, 2, 4)).tolist()
    [10.0, 9.0, 7.5]
    """
    ones = np.ones(gram.size)
    return np.array([gram.block_products(ones, width).sum() / width if width > 1 else gram.trace() for width in widths])


def _sensitivity(weights: Reals, norm: int) -> Reals:
    return np.asarray(np.abs(weights).sum(axis=-1) if norm == 1 else np.sqrt((weights**2).sum(axis=-1)))


def _weigh(parts: Reals, widths: Reals, norm: int, steps: int = 400) -> tuple[Reals, Reals]:
    """Weights of small error for many chains at once (chains x levels), by multiplicative steps of decreasing length.

    ``parts`` are the differences ``tau_l - tau_(l+1)``; returns the weights and the squared errors.
    """
    from scipy.optimize import minimize

    def errors(logs: Reals) -> tuple[Reals, Reals]:
        weights = np.exp(logs)
        seen = np.cumsum(weights**2 * widths, axis=-1)
        total = (parts / seen).sum(axis=-1)
        later = np.cumsum((parts / seen**2)[..., ::-1], axis=-1)[..., ::-1]
        slope = -2 * weights**2 * widths * later / total[..., None]
        norms = _sensitivity(weights, norm)
        slope += 2 * weights / norms[..., None] if norm == 1 else 2 * (weights / norms[..., None]) ** 2
        return np.log(total) + 2 * np.log(norms), slope

    logs = np.zeros(parts.shape)
    for step in range(steps):
        _, slope = errors(logs)
        logs = logs - (0.5 / (1 + step / 100)) * slope
        logs = np.maximum(logs - logs.max(axis=-1, keepdims=True), _LEAST)
    values, _ = errors(logs)
    for index in np.argsort(values)[:3]:

        def one(point: Reals, index: int = int(index)) -> tuple[float, Reals]:
            seen = np.cumsum(np.exp(2 * point) * widths[index])
            total = float((parts[index] / seen).sum())
            later = np.cumsum((parts[index] / seen**2)[::-1])[::-1]
            size = float(_sensitivity(np.exp(point), norm))
            slope = -2 * np.exp(2 * point) * widths[index] * later / total + 2 * (np.exp(point) / size) ** norm
            return math.log(total) + 2 * math.log(size), slope

        found = minimize(one, logs[index], jac=True, method="L-BFGS-B", bounds=[(_LEAST, 0.0)] * len(logs[index]))
        if found.fun < values[index]:
            logs[index], values[index] = found.x, found.fun
    return np.exp(logs), np.exp(values)


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
            # A level of one block is enough; a block wider than all cells is the total.
            if len(widths) < 2 or widths[-2] < size:
                out.append((*widths[:-1], size if widths[-1] >= size and size % widths[-2] == 0 else widths[-1]))
    return out


def level_tree(gram: Gram, widths: Sequence[int], weights: Reals, norm: int) -> LevelTree:
    """A hierarchy of given widths and weights, scaled to sensitivity 1, with its exact error.

    Raises:
        InputError: the widths are no chain from 1, or the cells' own weight is not above 0.

    >>> from leastnoise.planner._gram import PrefixGram
    >>> round(level_tree(PrefixGram(64), (1, 2, 4, 8, 16, 32, 64), np.ones(7), 1).rmse, 3)
    6.661
    """
    chain = tuple(int(width) for width in widths)
    if chain[:1] != (1,) or any(big <= small or big % small for small, big in itertools.pairwise(chain)):
        raise InputError(f"widths must start at 1 and each be a larger multiple of the one before; got {chain}.")
    if not (len(weights) == len(chain) and weights[0] > 0 and (np.asarray(weights) >= 0).all()):
        raise InputError("A tree needs one weight of at least 0 a level, that of the cells above 0.")
    scaled = np.asarray(weights, float) / _sensitivity(np.asarray(weights, float), norm)
    squares = [np.full(count, weight**2) for count, weight in zip(node_counts(gram.size, chain), scaled, strict=True)]
    error, _ = tree_error(gram, chain, squares, gradient=False)
    return LevelTree(size=gram.size, widths=chain, weights=scaled, norm=norm, rmse=math.sqrt(error / gram.queries))


def uniform_tree(gram: Gram, norm: int, branching: int | None = None) -> LevelTree:
    """The plain hierarchy, all levels measured alike; without ``branching`` the one of least error.

    >>> from leastnoise.planner._gram import AllRangesGram
    >>> uniform_tree(AllRangesGram(256), 1, 16).widths
    (1, 16, 256)
    """
    whole("norm", norm, 1, 2)
    if branching is not None:
        chain = full_chain(gram.size, whole("branching", branching, 2))
        return level_tree(gram, chain, np.ones(len(chain)), norm)
    candidates = sorted({*range(2, 34), *(2**power for power in range(6, 40) if 2**power < 2 * gram.size)})
    # The level of all cells is left out where that is better: it is one query of little use for short ranges.
    chains = [chain for b in candidates for chain in (full_chain(gram.size, b), full_chain(gram.size, b)[:-1] or (1,))]
    scores = []
    for chain in chains:
        traces = np.append(block_traces(gram, chain), 0.0)
        scores.append(len(chain) ** (3 - norm) * float(((traces[:-1] - traces[1:]) / np.cumsum(chain)).sum()))
    best = chains[int(np.argmin(scores))]
    return level_tree(gram, best, np.ones(len(best)), norm)


def fit_level_tree(gram: Gram, norm: int, *, branching: int | None = None) -> LevelTree:
    """Find a hierarchy with one weight a level: widths and weights of least error.

    Args:
        gram: Gram matrix of the workload, n cells.
        norm: 1 for pure DP, 2 for a Gaussian budget.
        branching: Use the powers of this number as widths (levels may get the weight 0); None searches chains of widths.

    Returns:
        The best tree found; the identity is among the candidates.

    >>> from leastnoise.planner._gram import PrefixGram
    >>> tree = fit_level_tree(PrefixGram(64), 1)
    >>> tree.rmse <= 4.148, len(tree.widths)
    (True, 2)
    """
    whole("norm", norm, 1, 2)
    if branching is not None:
        chain = full_chain(gram.size, whole("branching", branching, 2))
        inner = range(1, len(chain))
        depths = range(min(5, len(chain))) if norm == 1 and len(chain) <= 21 else (len(chain) - 1,)
        picks = [(0, *pick) for depth in depths for pick in itertools.combinations(inner, depth)]
        chains = sorted((tuple(chain[level] for level in pick) for pick in picks), key=len)
    else:
        plain = {uniform_tree(gram, norm).widths} if gram.size <= 2**16 else set()
        chains = sorted({*_chains(gram.size, norm), *plain}, key=len)
    widths = sorted({width for chain in chains for width in chain})
    traces = dict(zip(widths, block_traces(gram, widths), strict=True))
    best: list[tuple[float, tuple[int, ...], Reals]] = []
    for _, group in itertools.groupby(chains, key=len):
        same = list(group)
        tau = np.array([[*(traces[width] for width in chain), 0.0] for chain in same])
        weights, errors = _weigh(np.maximum(tau[:, :-1] - tau[:, 1:], 0.0), np.array(same, float), norm)
        best += [(float(errors[index]), same[index], weights[index]) for index in np.argsort(errors)[:8]]
    found = []
    for _, chain, weight in sorted(best, key=lambda item: item[0])[: 16 if gram.size <= 4096 else 4]:
        kept = [level for level in range(len(chain)) if level == 0 or weight[level] > 1.01 * math.exp(_LEAST) * weight.max()]
        found.append(level_tree(gram, [chain[level] for level in kept], weight[kept], norm))
    found.sort(key=lambda tree: tree.rmse)
    # The search took a shorter last block for a whole one; where that may matter, the exact error has the last word.
    uneven = gram.size <= 2**14 and any(gram.size % width for width in found[0].widths)
    return min([*found[:2], *map(_refine(gram), found[:3])], key=lambda tree: tree.rmse) if uneven else found[0]


def _refine(gram: Gram) -> Callable[[LevelTree], LevelTree]:
    """Weights of a tree improved on the exact error."""

    def refine(tree: LevelTree) -> LevelTree:
        from scipy.optimize import minimize

        counts = node_counts(tree.size, tree.widths)

        def objective(logs: Reals) -> tuple[float, Reals]:
            weights = np.exp(logs)
            error, slopes = tree_error(gram, tree.widths, [np.full(count, w**2) for count, w in zip(counts, weights, strict=True)])
            by_level = np.array([slope.sum() for slope in slopes]) * 2 * weights**2 / error
            size = float(_sensitivity(weights, tree.norm))
            return math.log(error) + 2 * math.log(size), by_level + 2 * (weights / size) ** tree.norm

        found = minimize(
            objective, np.log(tree.weights), jac=True, method="L-BFGS-B", bounds=[(_LEAST, 0.0)] * len(counts), options={"maxiter": 30}
        )
        return level_tree(gram, tree.widths, np.exp(found.x), tree.norm)

    return refine


def fit_haar(gram: Gram, norm: int, *, weights: str = "optimal") -> WeightedHaar:
    """The Haar wavelet, with the weights that are best (a closed form) or all alike.

    Args:
        gram: Gram matrix of the workload, n cells.
        norm: 1 for pure DP, 2 for a Gaussian budget.
        weights: ``"optimal"`` or ``"equal"``.

    Returns:
        The wavelet, at sensitivity 1. With ``c_l`` the error of level l at weight 1, the best weights are proportional to
        ``c_l^(1/3)`` under L1 and to ``c_l^(1/4)`` under L2.

    >>> from leastnoise.planner._gram import PrefixGram
    >>> round(fit_haar(PrefixGram(64), 1, weights="equal").rmse, 3), round(fit_haar(PrefixGram(64), 2, weights="equal").rmse, 4)
    (6.629, 2.5054)
    """
    whole("norm", norm, 1, 2)
    one_of("weights", weights, ("optimal", "equal"))
    widths = full_chain(gram.size, 2)
    traces = block_traces(gram, widths)
    cost = np.concatenate([[traces[-1]], (traces[:-1] - traces[1:])[::-1]]) / np.array([widths[-1], *widths[:0:-1]])
    scales = np.maximum(cost, 1e-12 * cost.max()) ** (1 / (2 + norm)) if weights == "optimal" else np.ones(len(cost))
    scales = scales / _sensitivity(scales, norm)
    return WeightedHaar(size=gram.size, weights=scales, norm=norm, rmse=math.sqrt(float((cost / scales**2).sum()) / gram.queries))
