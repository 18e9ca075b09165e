"""Compare sums along a number with a threshold, by buckets, and by TaMM, on many shapes.

TaMM uses the sparse vector technique.

    python -m experiments.sums_shapes [--trials 40] [--cells 100]

The queries are prefix sums up to the ends of equal bins. The amounts have light and heavy tails (a
Pareto tail of index 1 or less has no mean), a public maximum up to a hundred times too large, no
small values, or few records. With a public maximum above 2^23, the buckets measure amounts in a
larger unit. The errors are the paper's, before and after isotonic regression, and the root mean
square error over the largest sum.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from experiments.common import Reals, Wholes, arguments
from experiments.selections.threshold import geometric_candidates, sparse_vector
from experiments.sums import monotone, relative_errors
from experiments.sums_mechanisms import TAIL_SHARE, WholeRows, bucketed_answers, chosen_threshold
from experiments.sums_strategies import PrefixSums, sum_strategy
from leastnoise._trusted.kernel import Entropy, SeededEntropy

START = 50_000
EPSILONS = (Fraction(1, 100), Fraction(1, 10), Fraction(1))
# Largest public maximum, in units, for which `truncated_sums` has coefficients of six bits.
_MOST_UNITS = 2**23


@dataclass(frozen=True, eq=False)
class Shape:
    """Amounts below a public maximum.

    Args:
        name: the name in tables.
        values: whole numbers, at least 1 and at most the maximum.
        maximum: the public maximum.
    """

    name: str
    values: Wholes
    maximum: int

    def cut_sums(self, sums: PrefixSums, threshold: int) -> Wholes:
        """Sum the values clipped at a threshold by bin; exact."""
        return self._sum_by_bin(sums, np.minimum(self.values, threshold))

    @property
    def unit(self) -> int:
        """The smallest power of ten with a public maximum of at most 2^23 units."""
        unit = 1
        while self.maximum > unit * _MOST_UNITS:
            unit *= 10
        return unit

    def sums_in_units(self, sums: PrefixSums) -> Wholes:
        """Sum the values by bin, each rounded to a whole number of units; exact."""
        return self._sum_by_bin(sums, np.rint(self.values / self.unit))

    def _sum_by_bin(self, sums: PrefixSums, amounts: Reals | Wholes) -> Wholes:
        """Sum an amount of each record by the bin of its value."""
        position = np.searchsorted(sums.edges, self.values)
        return np.bincount(position, weights=amounts, minlength=len(sums.edges)).astype(np.int64)


def shapes(seed: int = 0) -> Iterator[Shape]:
    """Yield the shapes."""
    random = np.random.default_rng(seed)

    def with_maxima(name: str, values: Reals, *maxima: int) -> Iterator[Shape]:
        """Yield a shape with each maximum."""
        for maximum in maxima:
            yield Shape(name, np.clip(np.rint(values), 1, maximum).astype(np.int64), maximum)

    light = random.lognormal(10.2, 0.8, 50_000)
    yield from with_maxima("log-normal", light, 800_000, 8_000_000, 80_000_000)
    for index in (0.8, 1.2, 2.0):
        yield from with_maxima(
            f"Pareto {index}", 15_000 * random.random(50_000) ** (-1 / index), 8_000_000
        )
    yield from with_maxima("none small", 100_000 + light, 800_000)
    yield from with_maxima("few records", light[:1000], 800_000)


@cache
def _rows(name: str, sums: PrefixSums, threshold: int) -> WholeRows:
    """Return the rows of an algorithm."""
    limits = sums.limits(threshold)
    return WholeRows.of(
        sum_strategy(
            name, sums.matrix(), sums.gram(), limits, released=name == "tamm", effort=0.03
        ),
        sums,
        limits,
    )


@cache
def _in_units(sums: PrefixSums, unit: int) -> PrefixSums:
    """Return the queries with their edges in units, rounded up."""
    return PrefixSums(edges=-(-sums.edges // unit), last=sums.last)


def draw_answers(
    method: str, shape: Shape, sums: PrefixSums, epsilon: Fraction, trials: int, entropy: Entropy
) -> Reals:
    """Draw noisy answers, shape (trials, m)."""
    if method == "buckets":
        in_units = bucketed_answers(
            shape.sums_in_units(sums), _in_units(sums, shape.unit), epsilon, trials, entropy
        )
        return shape.unit * in_units
    answers = []
    candidates = geometric_candidates(START, "1.2", shape.maximum)
    for _ in range(trials):
        if method == "tamm":
            threshold = sparse_vector(shape.values, epsilon * TAIL_SHARE, entropy, candidates)
        else:
            threshold = chosen_threshold(
                np.searchsorted(sums.edges, shape.values), sums, epsilon, entropy
            )
        answers.append(
            _rows(method, sums, threshold).draw(
                shape.cut_sums(sums, threshold), epsilon * (1 - TAIL_SHARE), 1, entropy
            )[0]
        )
    return np.array(answers)


def lines(trials: int, cells: int, seed: int = 0) -> Iterator[str]:
    """Yield the rows of the table."""
    yield (
        "| amounts | public maximum | epsilon | TaMM + SVT | threshold | buckets | buckets over "
        "TaMM + SVT | over threshold |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    sums_by_maximum: dict[int, PrefixSums] = {}
    for shape in shapes(seed):
        if shape.maximum not in sums_by_maximum:
            sums_by_maximum[shape.maximum] = PrefixSums(
                edges=shape.maximum // cells * np.arange(1, cells + 1), last=np.arange(cells)
            )
        sums = sums_by_maximum[shape.maximum]
        truth = np.cumsum(shape.cut_sums(sums, shape.maximum)).astype(float)
        for epsilon in EPSILONS:
            scores = []
            for method in ("tamm", "optimum", "buckets"):
                answers = draw_answers(method, shape, sums, epsilon, trials, SeededEntropy(seed))
                errors = [
                    relative_errors(values, truth).mean() for values in (answers, monotone(answers))
                ]
                scores.append(
                    (*errors, float(np.sqrt(np.mean((answers - truth) ** 2)) / truth[-1]))
                )
            tamm, threshold_only, bucket_scores = np.array(scores)
            shown = [", ".join(f"{value:.3g}" for value in score) for score in scores]
            ratios = [
                ", ".join(f"{value:.2f}" for value in bucket_scores / reference)
                for reference in (tamm, threshold_only)
            ]
            yield (
                f"| {shape.name} | {shape.maximum:,} | {float(epsilon):g} | "
                f"{' | '.join([*shown, *ratios])} |"
            )


if __name__ == "__main__":
    for line in lines(
        **arguments(
            __doc__, trials={"type": int, "default": 40}, cells={"type": int, "default": 100}
        )
    ):
        print(line, flush=True)
