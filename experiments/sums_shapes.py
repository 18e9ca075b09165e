"""Compare sums along a number with a threshold, by buckets, and by TaMM, on many shapes.

TaMM uses the sparse vector technique.

    python -m experiments.sums_shapes [--trials 40] [--cells 100]

Prefix sums up to the ends of equal bins. Amounts with light and heavy tails (a Pareto tail of index
1 or less has no mean), a public maximum up to a hundred times too large, amounts none of which is
small, and few records. The error is that of the paper, before and after isotonic regression, and
the root of the mean square over the largest sum.
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


@dataclass(frozen=True, eq=False)
class Shape:
    """Amounts below a public maximum.

    Args:
        name: for people.
        values: whole numbers, at least 1 and at most the maximum.
        most: the public maximum.
    """

    name: str
    values: Wholes
    most: int

    def cut_sums(self, sums: PrefixSums, threshold: int) -> Wholes:
        """Sum the values clipped at a threshold by bin; exact."""
        place = np.searchsorted(sums.edges, self.values)
        return np.bincount(
            place, weights=np.minimum(self.values, threshold), minlength=len(sums.edges)
        ).astype(np.int64)


def shapes(seed: int = 0) -> Iterator[Shape]:
    """Yield the shapes."""
    random = np.random.default_rng(seed)

    def made(name: str, values: Reals, *maxima: int) -> Iterator[Shape]:
        """Yield a shape with each maximum."""
        for most in maxima:
            yield Shape(name, np.clip(np.rint(values), 1, most).astype(np.int64), most)

    light = random.lognormal(10.2, 0.8, 50_000)
    yield from made("log-normal", light, 800_000, 8_000_000, 80_000_000)
    for index in (0.8, 1.2, 2.0):
        yield from made(
            f"Pareto {index}", 15_000 * random.random(50_000) ** (-1 / index), 8_000_000
        )
    yield from made("none small", 100_000 + light, 800_000)
    yield from made("few records", light[:1000], 800_000)


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


def _answers(
    way: str, shape: Shape, sums: PrefixSums, epsilon: Fraction, trials: int, entropy: Entropy
) -> Reals:
    """Draw noisy answers, shape (trials, m)."""
    if way == "buckets":
        return bucketed_answers(shape.cut_sums(sums, shape.most), sums, epsilon, trials, entropy)
    found = []
    candidates = geometric_candidates(START, "1.2", shape.most)
    for _ in range(trials):
        if way == "tamm":
            threshold = sparse_vector(shape.values, epsilon * TAIL_SHARE, entropy, candidates)
        else:
            threshold = chosen_threshold(
                np.searchsorted(sums.edges, shape.values), sums, epsilon, entropy
            )
        found.append(
            _rows(way, sums, threshold).draw(
                shape.cut_sums(sums, threshold), epsilon * (1 - TAIL_SHARE), 1, entropy
            )[0]
        )
    return np.array(found)


def lines(trials: int, cells: int, seed: int = 0) -> Iterator[str]:
    """Yield the rows of the table."""
    yield (
        "| amounts | public maximum | epsilon | TaMM + SVT | threshold | buckets | buckets over "
        "TaMM + SVT | over threshold |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    known: dict[int, PrefixSums] = {}
    for shape in shapes(seed):
        if shape.most not in known:
            known[shape.most] = PrefixSums(
                edges=shape.most // cells * np.arange(1, cells + 1), last=np.arange(cells)
            )
        sums = known[shape.most]
        truth = np.cumsum(shape.cut_sums(sums, shape.most)).astype(float)
        for epsilon in EPSILONS:
            scores = []
            for way in ("tamm", "optimum", "buckets"):
                answers = _answers(way, shape, sums, epsilon, trials, SeededEntropy(seed))
                errors = [
                    relative_errors(one, truth).mean() for one in (answers, monotone(answers))
                ]
                scores.append(
                    (*errors, float(np.sqrt(np.mean((answers - truth) ** 2)) / truth[-1]))
                )
            theirs, ours, new = np.array(scores)
            shown = [", ".join(f"{one:.3g}" for one in score) for score in scores]
            ratios = [", ".join(f"{one:.2f}" for one in new / old) for old in (theirs, ours)]
            yield (
                f"| {shape.name} | {shape.most:,} | {float(epsilon):g} | "
                f"{' | '.join([*shown, *ratios])} |"
            )


if __name__ == "__main__":
    for line in lines(
        **arguments(
            __doc__, trials={"type": int, "default": 40}, cells={"type": int, "default": 100}
        )
    ):
        print(line, flush=True)
