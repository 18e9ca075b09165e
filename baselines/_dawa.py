"""Implement DAWA as printed, and with the first stage of its public copies (not private)."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from baselines._baseline import Baseline, Mechanism, Ranges, Reals, Wholes
from baselines._greedy_h import MOST_DENSE, as_defined, gram_of
from baselines._noisy_costs import cheapest_of_powers, noisy_costs, on_powers
from baselines._tree import measure_hierarchy, whole_weights
from leastnoise._families import dense_gram
from leastnoise._trusted.kernel import Entropy
from leastnoise._trusted.kernel._noise import discrete_laplace
from leastnoise._trusted.kernel._plane import GRID, clip_counts

FIRST_SHARE = Fraction(1, 4)


def printed_partition(x: Wholes, first: Fraction, second: Fraction, entropy: Entropy) -> Wholes:
    """Choose the buckets by algorithm 1 as printed; epsilon-DP with epsilon = ``first``.

    Each bucket costs 1 / ``second``, where ``second`` is the epsilon of the counts.
    """
    return noisy_costs(x, first, entropy, 1 / second)


def released_partition(x: Wholes, first: Fraction, second: Fraction, entropy: Entropy) -> Wholes:
    """Choose the buckets with the three errors of all public implementations. NOT PRIVATE.

    The scale is half as large: (2 - 1/L - 1/n) / first for an interval of L cells. Single cells get
    no noise, and noisy costs below 1 / second are raised to it.
    """
    n = len(x)
    penalty = round(GRID / second)
    noisy = []
    for power, level in enumerate(on_powers(clip_counts(x))):
        cost = level + penalty
        if power:
            scale = (2 - Fraction(1, 2**power) - Fraction(1, n)) / first * GRID
            cost = cost + discrete_laplace(max(1, round(scale * 256)), 256, len(level), entropy)
        noisy.append(np.maximum(cost, penalty))
    return cheapest_of_powers(noisy)


def second_stage(
    x: Wholes, starts: Wholes, epsilon: Fraction, entropy: Entropy, ranges: Ranges | None
) -> Reals:
    """Estimate cells from buckets that GreedyH measures; epsilon-DP for fixed buckets.

    The ranges are transformed to the buckets, and each bucket is expanded uniformly.
    """
    lengths = np.diff(starts, append=len(x))
    gram = np.add.reduceat(
        np.add.reduceat(gram_of(ranges, len(x)), starts, axis=0), starts, axis=1
    ) / np.outer(lengths, lengths)
    fitted = as_defined(dense_gram(gram, 1))
    sums = np.add.reduceat(x, starts)
    return np.repeat(
        measure_hierarchy(sums, whole_weights(fitted.scales), fitted.widths, epsilon, entropy)
        / lengths,
        lengths,
    )


def _dawa(partition: Callable[[Wholes, Fraction, Fraction, Entropy], Wholes]) -> Mechanism:
    """Return DAWA with a function that chooses buckets.

    The buckets get a quarter of the budget, and GreedyH the remaining budget.
    """

    def mechanism(x: Wholes, epsilon: Fraction, entropy: Entropy, ranges: Ranges | None) -> Reals:
        """Choose buckets, then estimate the cells from their noisy counts."""
        first = epsilon * FIRST_SHARE
        second = epsilon * (1 - FIRST_SHARE)
        return second_stage(x, partition(x, first, second, entropy), second, entropy, ranges)

    return mechanism


DAWA = Baseline(
    name="DAWA, Algorithm 1 as printed",
    dimensions=1,
    private=True,
    proof="epsilon / 4 for the partition (its Theorem 2; theorem N of PROOFS-noisy-costs.md), the "
    "rest for GreedyH on buckets.",
    source="Li, Hay, Miklau, Wang, PVLDB 2014",
    mechanism=_dawa(printed_partition),
    aware=True,
    most_cells=MOST_DENSE,
)
RELEASED_DAWA = Baseline(
    name="DAWA, released first stage",
    dimensions=1,
    private=False,
    proof="None: half the noise that the theorem needs, none on single cells, and a clamp; a loss "
    "of 2.5 times its budget at 4 cells.",
    source="the authors' code of 2013 and its copies",
    mechanism=_dawa(released_partition),
    aware=True,
    most_cells=MOST_DENSE,
)
