"""Implement mechanisms that cut cells into buckets: P-HPartition, StructureFirst, AHP."""

from fractions import Fraction

import numpy as np

from baselines._baseline import Baseline, Ranges, Reals, Wholes
from baselines._linear import chain, height
from baselines._noise import choose, laplace
from baselines._noisy_costs import grid_sensitivity
from baselines._tree import even_weights, measure_hierarchy
from leastnoise._trusted.kernel import Entropy
from leastnoise._trusted.kernel._plane import GRID, clip_counts

_CHUNK = 64
# Positions where StructureFirst may cut; its table of costs has half the square of this number.
MOST_CUTS = 512
AHP_SHARE = Fraction(17, 20)  # the paper's rho
AHP_CUTOFF = 0.35  # the paper's eta


def deviations(x: Wholes, stops: Wholes) -> Wholes:
    """Compute the deviation from the mean of the first ``stop`` cells for each stop.

    The numbers are multiples of 1 / GRID, rounded down. Each stop takes O(n).

    >>> (deviations(np.array([2, 3, 8, 1]), np.array([1, 2, 4])) / GRID).tolist()
    [0.0, 1.0, 9.0]
    """
    sums = np.cumsum(x)[stops - 1]
    result = np.empty(len(stops), dtype=np.int64)
    for first in range(0, len(stops), _CHUNK):
        part = slice(first, first + _CHUNK)
        stop = stops[part, None]
        total = sums[part, None]
        first_stop = int(stop.min())
        last_stop = int(stop.max())
        cost = np.abs(x[:first_stop] * stop - total).sum(axis=1)
        tail = np.abs(x[first_stop:last_stop] * stop - total)
        cost += np.where(np.arange(first_stop, last_stop) < stop, tail, 0).sum(axis=1)
        result[part] = cost // stops[part] * GRID + (cost % stops[part]) * GRID // stops[part]
    return result


def averages(x: Wholes, starts: Wholes, epsilon: Fraction, entropy: Entropy) -> Reals:
    """Measure the counts of buckets and distribute them evenly; epsilon-DP.

    A record is in only one bucket.
    """
    lengths = np.diff(starts, append=len(x))
    return np.repeat(laplace(np.add.reduceat(x, starts), epsilon, entropy) / lengths, lengths)


def bisect(
    x: Wholes, epsilon: Fraction, penalty: Fraction, depth: int, entropy: Entropy
) -> tuple[Wholes, Wholes]:
    """Divide the cells in two parts, and these again, to a depth of at most ``depth``.

    For each part, a private test decides whether to divide it, and a choice decides where.

    Args:
        x: counts, int64 of shape (n,); private.
        epsilon: cost of one level of cuts.
        penalty: cost of a bucket in addition to its deviation, in records.
        depth: the largest number of decisions about any cell.
        entropy: the source of bits.

    Returns:
        Starts of the buckets, and the number of decisions about each.

    Guarantees: (depth epsilon)-DP: at each depth the parts are disjoint, and one record changes
        each score of one of them by at most 2.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> [
    ...     part.tolist()
    ...     for part in bisect(
    ...         np.array([900, 900, 0, 0]), Fraction(1), Fraction(1), 1, SeededEntropy(1)
    ...     )
    ... ]
    [[0, 2], [1, 1]]
    """
    fixed = round(penalty * GRID)
    rate = epsilon / (2 * grid_sensitivity(max(len(x), 2)))
    buckets = []
    open_parts = [(0, len(x), 0)]
    while open_parts:
        start, stop, level = open_parts.pop()
        part = x[start:stop]
        if len(part) == 1 or level == depth:
            buckets.append((start, level))
            continue
        lengths = np.arange(1, len(part))
        left_deviations = deviations(part, np.append(lengths, len(part)))
        right_deviations = deviations(part[::-1], lengths)[::-1]
        # The last score is for the undivided part.
        scores = np.append(
            left_deviations[:-1] + right_deviations + 2 * fixed, left_deviations[-1] + fixed
        )
        length = choose(-scores, rate, entropy) + 1
        if length == len(part):
            buckets.append((start, level + 1))
        else:
            open_parts += [
                (start, start + length, level + 1),
                (start + length, stop, level + 1),
            ]
    starts, decisions = np.array(sorted(buckets), dtype=np.int64).T
    return starts, decisions


def p_h_partition(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Divide the cells by at most log2 n levels of cuts, then measure the buckets.

    Each of the two steps has half the budget.
    """
    depth = max(1, height(len(x), 2))
    starts, _decisions = bisect(clip_counts(x), epsilon / 2 / depth, 2 / epsilon, depth, entropy)
    return averages(x, starts, epsilon / 2, entropy)


def cut_costs(x: Wholes, edges: Wholes) -> Wholes:
    """Compute the deviation of the interval between each pair of edges.

    Shape (g + 1, g + 1); pairs that are not an interval have a prohibitive cost.
    """
    costs = np.full((len(edges), len(edges)), 2**60, dtype=np.int64)
    for number, start in enumerate(edges[:-1]):
        costs[number, number + 1 :] = deviations(x[start:], edges[number + 1 :] - start)
    return costs


def structure(
    x: Wholes, edges: Wholes, buckets: int, epsilon: Fraction, entropy: Entropy
) -> Wholes:
    """Draw the starts of a number of buckets by the exponential mechanism, last bucket first.

    Each draw assumes the best division of the cells to its left.

    Args:
        x: counts; private.
        edges: allowed positions of cuts, the first 0 and the last n; public.
        buckets: number of buckets, at most one less than the edges.
        epsilon: cost of all draws together.
        entropy: the source of bits.

    Guarantees: epsilon-DP: each of the k - 1 draws is the exponential mechanism with epsilon / (k -
        1); one record changes the smallest cost of the left part plus the cost of the bucket by at
        most 2, because it is in one bucket of every partition.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> structure(
    ...     np.array([900, 900, 0, 0]), np.arange(5), 2, Fraction(1), SeededEntropy(1)
    ... ).tolist()
    [0, 2]
    """
    costs = cut_costs(x, edges)
    lowest_costs = [costs[0]]
    for _ in range(buckets - 2):
        lowest_costs.append(np.minimum((lowest_costs[-1][:, None] + costs).min(axis=0), 2**60))
    stop = len(edges) - 1
    starts = []
    for number in range(buckets - 1, 0, -1):  # buckets to the left of the cut
        scores = -(lowest_costs[number - 1][number:stop] + costs[number:stop, stop])
        stop = number + choose(
            scores, epsilon / (buckets - 1) / (2 * grid_sensitivity(max(len(x), 2))), entropy
        )
        starts.append(int(edges[stop]))
    return np.array([0, *starts[::-1]], dtype=np.int64)


def structure_first(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Choose n / 10 buckets, then measure a binary hierarchy in each of them.

    Each of the two steps has half the budget, and every node is measured.
    """
    width = -(-len(x) // MOST_CUTS)
    edges = np.minimum(np.arange(0, len(x) + width, width), len(x))
    buckets = -(-(len(edges) - 1) // 10)
    if buckets > 1:
        starts = structure(clip_counts(x), edges, buckets, epsilon / 2, entropy)
    else:
        starts = np.zeros(1, dtype=np.int64)
    parts = []
    for start, stop in zip(starts, np.append(starts[1:], len(x)), strict=True):
        widths = chain(int(stop - start), 2, root=True)
        parts.append(
            measure_hierarchy(
                x[start:stop], even_weights(int(stop - start), widths), widths, epsilon / 2, entropy
            )
        )
    return np.concatenate(parts)


def greedy_clusters(values: Reals, noise: float) -> Wholes:
    """Return the starts of clusters of values in descending order.

    A value joins a cluster if this costs less than a separate cluster.

    Args:
        values: values in descending order; public.
        noise: variance of a cluster's count.

    >>> greedy_clusters(np.array([9.0, 9.0, 0.0, 0.0]), 1.0).tolist()
    [0, 2]
    """
    starts = [0]
    number = 0
    total = 0.0
    squares = 0.0
    for position, value in enumerate(values.tolist()):
        if number:
            separate_cost = squares - total**2 / number + noise / number + noise
            joint_cost = (
                squares + value**2 - (total + value) ** 2 / (number + 1) + noise / (number + 1)
            )
            if joint_cost > separate_cost:
                starts.append(position)
                number = 0
                total = 0.0
                squares = 0.0
        number = number + 1
        total = total + value
        squares = squares + value**2
    return np.array(starts, dtype=np.int64)


def ahp(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Cluster noisy cells, small cells set to 0; then measure the counts of the clusters."""
    first = epsilon * AHP_SHARE
    noisy = laplace(x, first, entropy).astype(np.float64)
    noisy[noisy <= AHP_CUTOFF * np.log(len(x) + 1.0) / float(first)] = 0.0
    order = np.argsort(-noisy, kind="stable")
    starts = greedy_clusters(noisy[order], 2 / float(epsilon - first) ** 2)
    estimate = np.empty(len(x))
    estimate[order] = averages(x[order], starts, epsilon - first, entropy)
    return estimate


PHP = Baseline(
    name="PHP",
    dimensions=1,
    private=True,
    proof=(
        "At most log2 n levels of cuts, counted, each by the exponential mechanism with epsilon / "
        "(2 log2 n): one record changes deviations by at most 2, and parts of one level are "
        "disjoint. Counts of disjoint buckets with epsilon / 2."
    ),
    source="Acs, Castelluccia, Chen, ICDM 2012 (P-HPartition)",
    mechanism=p_h_partition,
    most_cells=2**14,
)
STRUCTURE_FIRST = Baseline(
    name="StructureFirst",
    dimensions=1,
    private=True,
    proof=(
        "k - 1 cuts by the exponential mechanism with epsilon / (2 (k - 1)) each. Costs are "
        "absolute deviations, which one record changes by at most 2; squared deviations would need "
        "a public bound of the counts. Then hierarchies in disjoint buckets, noise on every node, "
        "epsilon / 2."
    ),
    source="Xu, Zhang, Xiao, Yang, Yu, ICDE 2012 and VLDBJ 2013; cuts at up to 512 positions",
    mechanism=structure_first,
    most_cells=2**14,
)
AHP = Baseline(
    name="AHP",
    dimensions=1,
    private=True,
    proof="Cells with 0.85 epsilon; clusters are a function of these; counts of disjoint clusters "
    "with 0.15 epsilon.",
    source="Zhang, Chen, Xu, Meng, Xie, SDM 2014",
    mechanism=ahp,
)
