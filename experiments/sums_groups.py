"""Truncated sums by many groups: the threshold of `truncated_sums`, TaMM's from the sparse vector technique, and the best candidate.

    python -m experiments.sums_groups [--groups 20 500] [--trials 30]

The amounts of `experiments.sums_shapes` in groups of sizes like 1, 1/2, 1/3 ...; the error is the root of the mean square over the groups:
given a threshold it is what was cut from each and the noise of nine tenths of the budget, so it is computed and not drawn. The number has
100 equal cells, or 100 whose ends grow by one ratio, which fit a public maximum that is far too large.
"""

import argparse
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from experiments.selections.threshold import geometric_candidates, sparse_vector
from experiments.sums_mechanisms import TAIL_SHARE, Reals, Wholes
from experiments.sums_shapes import EPSILONS, START, Shape, shapes
from leastnoise._accounting import Privacy, PureDP
from leastnoise._domain import Bins, Domain, Edges, Measure
from leastnoise._kernel import SeededEntropy
from leastnoise._mechanisms._sums import Setting
from leastnoise._mechanisms._truncated_sums import chooser, plan_truncated_sums, setting_of
from leastnoise._planner import candidate_cells
from leastnoise._workload import queries

CELLS = 100
_LEAST = 1000  # the first cell of growing ones ends so many times below the maximum


def setting_for(most: int, groups: int, epsilon: Fraction, *, growing: bool) -> Setting:
    """A release of sums by group.

    >>> setting_for(1000, 3, Fraction(1), growing=True).edges[[0, -1]].tolist()
    [1, 1000]
    """
    ends = sorted({int(most * _LEAST ** (cell / (CELLS - 1)) / _LEAST) for cell in range(CELLS)})
    pay = Edges([0, *ends], closed="right") if growing else Bins(0, most, CELLS, closed="right")
    domain = Domain(group=[f"g{one}" for one in range(groups)], pay=pay, measures={"amount": Measure("pay", 0, most)})
    return setting_of(plan_truncated_sums(queries(domain, group="identity", sum="amount"), Privacy(PureDP(epsilon))))


def error_of(threshold: int, shape: Shape, owner: Wholes, epsilon: Fraction) -> float:
    """Root mean square over the groups, cut at a threshold."""
    cut = np.bincount(owner, np.maximum(shape.values - threshold, 0))
    return float(np.sqrt(np.mean(cut**2) + 2 * (threshold / float(epsilon * (1 - TAIL_SHARE))) ** 2))


def ours(setting: Setting, shape: Shape, epsilon: Fraction, trials: int, random: np.random.Generator) -> Iterator[int]:
    """Thresholds of `truncated_sums`."""
    places, choose = candidate_cells(setting.edges), chooser(setting)
    cells = np.searchsorted(setting.edges, shape.values)
    counts = np.bincount(np.searchsorted(places, cells), minlength=len(places))[1:]
    for _ in range(trials):
        yield choose(counts + random.laplace(0, 1 / float(epsilon * TAIL_SHARE), len(counts))).threshold


def theirs(shape: Shape, epsilon: Fraction, trials: int) -> Iterator[int]:
    """Thresholds of the sparse vector technique."""
    candidates = geometric_candidates(START, "1.2", shape.most)
    for seed in range(trials):
        yield int(sparse_vector(shape.values, epsilon * TAIL_SHARE, SeededEntropy(seed), candidates=candidates, most=shape.most).limit)


def lines(groups: int, trials: int, seed: int = 0) -> Iterator[str]:
    """The rows of the table."""
    yield "| amounts | public maximum | epsilon | TaMM + SVT | equal cells | growing cells |"
    yield "|---|--:|---|--:|--:|--:|"
    random = np.random.default_rng(seed)
    shares = np.cumsum(1 / np.arange(1, groups + 1))
    for shape in shapes(seed):
        owner = np.searchsorted(shares / shares[-1], random.random(len(shape.values)))
        for epsilon in EPSILONS:
            made = [setting_for(shape.most, groups, epsilon, growing=growing) for growing in (False, True)]
            best = min(error_of(int(edge), shape, owner, epsilon) for setting in made for edge in setting.edges)
            found: list[Reals] = [
                np.array([error_of(one, shape, owner, epsilon) for one in thresholds]) / best
                for thresholds in (theirs(shape, epsilon, min(trials, 8)), *(ours(one, shape, epsilon, trials, random) for one in made))
            ]
            shown = " | ".join(f"{one.mean():.2f}" for one in found)
            yield f"| {shape.name} | {shape.most:,} | {float(epsilon):g} | {shown} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, nargs="+", default=[20, 500])
    parser.add_argument("--trials", type=int, default=30)
    given = parser.parse_args()
    for groups in given.groups:
        print(f"\n{groups} groups\n")
        for line in lines(groups, given.trials):
            print(line, flush=True)


if __name__ == "__main__":
    main()
