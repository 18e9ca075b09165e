"""What shrunk levels, and the plan that does not look where it is shrunk, gain or lose on smooth histograms, against that plan as it is.

    python -m experiments.dawa_smooth [--cells 256 1024 4096] [--records 100000 ...] [--epsilon 0.1 1] [--asked prefix] [--trials 8]

Six shapes without empty cells or plateaus, exactly and as independent draws. Errors are root mean squares over what is asked; what is
shrunk has what the test of `dawa` leaves of the budget, the plan that does not look all of it. Noise comes from a seed, so nothing here
is private.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from experiments.dawa import best_fixed
from experiments.selections.partition_variants import aligned_costs, cheapest_aligned
from leastnoise._accounting import Privacy, PureDP
from leastnoise._estimate import Smoothed
from leastnoise._estimate._shrinkage import Halving, Levels, shrink_to_slopes
from leastnoise._fitting import rescaled
from leastnoise._kernel import SeededEntropy, simulate
from leastnoise._kernel._interval_costs import GRID
from leastnoise._linop import AllRanges, Prefix
from leastnoise._mechanisms._dawa import TEST_SHARE, regime_of
from leastnoise._planner import difference_costs, first_levels, total_cost
from leastnoise._table import Table

Reals = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]
_ASKED: dict[str, type[AllRanges | Prefix]] = {"all_ranges": AllRanges, "prefix": Prefix}


def smooth(cells: int, records: int, *, drawn: bool, seed: int = 0) -> dict[str, Wholes]:
    """Smooth counts by name.

    Args:
        cells: of the histogram.
        records: about so many.
        drawn: whether every count is a Poisson draw, or the nearest whole number.
        seed: of the draws.
    """
    at = (np.arange(cells) + 0.5) / cells
    densities = {
        "normal": np.exp(-(((at - 0.5) / 0.15) ** 2) / 2),
        "two normals": np.exp(-(((at - 0.3) / 0.1) ** 2) / 2) + 0.6 * np.exp(-(((at - 0.7) / 0.08) ** 2) / 2),
        "exponential": np.exp(-5 * at),
        "sinusoid": 1 + 0.8 * np.sin(6 * np.pi * at),
        "log-normal": np.exp(-((np.log(at / 0.25) / 0.5) ** 2) / 2) / at,
        "linear": at + 0.05,
    }
    random = np.random.default_rng(seed)
    means = {name: records * density / density.sum() for name, density in densities.items()}
    return {name: (random.poisson(mean) if drawn else np.rint(mean)).astype(np.int64) for name, mean in means.items()}


def least_share(x: Wholes, epsilon: float) -> float:
    """The least cost of a partition in units of the noise, per cell, as the test of `dawa` has it but for its noise."""
    penalty = round(GRID / epsilon)
    return cheapest_aligned([level + penalty for level in aligned_costs(x, "median")])[0] / penalty / len(x)


@cache
def _levels(cells: int, asked: str) -> tuple[Halving, list[Reals], float, tuple[int, ...], Reals]:
    halving = Halving(cells)
    queries = [(1.0, _ASKED[asked](cells))]
    costs, total = difference_costs(queries, halving.left, halving.right, cells), total_cost(queries, cells)
    return halving, costs, total, *first_levels([float(one.sum()) for one in costs], total, 1)


def shrunk_rmse(x: Wholes, epsilon: float, asked: str, trials: int, seed: int = 0) -> float:
    """Root mean square error of the queries by shrunk levels.

    A power of two cells. Errors of differences are summed up by what they cost; the squares of the noise, whose mean is known, take most of
    the chance out of those of the estimates.
    """
    halving, costs, of_one, widths, weights = _levels(len(x), asked)
    random, scales = np.random.default_rng(seed), 1 / (epsilon * weights)
    values = []
    for width, scale in zip(widths, scales, strict=True):
        blocks = x.reshape(-1, width).sum(axis=1)
        values.append(blocks + random.laplace(0, scale, (trials, len(blocks))))
    levels = Levels(halving, widths, tuple(2 * scales**2))
    plain = levels.estimate(values)
    total, parts = halving.differences(plain)
    of_total, noise = levels.noise()
    cells = halving.together(total, shrink_to_slopes(halving, plain, noise, float(scales[0])).means)
    errors = halving.differences(cells - x)[1]
    truth = halving.differences(x[None].astype(float))[1]
    found = of_total * of_one
    for cost, error, part, exact, variance in zip(costs, errors, parts, truth, noise, strict=True):
        square, chance = error**2, (part - exact) ** 2 - variance
        share = float(np.clip(np.mean((square - square.mean()) * chance) / chance.var(), 0, 1))
        found += float((cost * (square - share * chance).mean(axis=0)).sum())
    return math.sqrt(found / _ASKED[asked](len(x)).rows)


def smoothed_rmse(x: Wholes, epsilon: str, asked: str, trials: int, seed: int = 0) -> float:
    """Root mean square error of the queries by the plan that does not look, shrunk; within what the test leaves of the budget.

    The squares of the errors before shrinking, whose mean is known, take most of the chance out of those after it.
    """
    fixed, operator = best_fixed(len(x), asked), _ASKED[asked](len(x))
    epsilon_left = Fraction(epsilon) * (1 - TEST_SHARE["pure"])
    left = rescaled(fixed.measured(), Privacy(PureDP(epsilon_left)))
    table = Table(fixed.domain, {"cell": np.repeat(np.arange(len(x), dtype=np.int16), x)})
    mean = (fixed.expected_error().tables[0].rmse / float(epsilon_left)) ** 2
    found, plain = np.empty(trials), np.empty(trials)
    for trial in range(trials):
        estimate = Smoothed.of(simulate(left, table, SeededEntropy(1000 * seed + trial)))
        both = estimate.cells, estimate.plain.marginal(("cell",)).reshape(-1)
        found[trial], plain[trial] = (_mean_square(operator, one - x) for one in both)
    share = float(np.clip(np.cov(found, plain)[0, 1] / plain.var(ddof=1), 0, 1)) if trials > 2 else 1.0
    return math.sqrt(max(float(np.mean(found - share * (plain - mean))), 0.0))


def _mean_square(operator: Prefix | AllRanges, errors: Reals) -> float:
    sums = errors.cumsum()
    if isinstance(operator, Prefix):
        return float(np.mean(sums**2))
    edges = np.append(0.0, sums)
    return float((len(edges) * (edges**2).sum() - edges.sum() ** 2) / operator.rows)


def lines(cells: Sequence[int], records: Sequence[int], epsilons: Sequence[float], asked: str, trials: int) -> Iterator[str]:
    """The rows of the table."""
    yield "| cells | records | epsilon | shape | drawn | least share | levels / independent | smoothed / independent | taken |"
    yield "|--:|--:|--:|---|---|--:|--:|--:|---|"
    left = 1 - float(TEST_SHARE["pure"])
    for size in cells:
        fixed = best_fixed(size, asked).expected_error().tables[0].rmse
        for many in records:
            for drawn in (False, True):
                for name, x in smooth(size, many, drawn=drawn).items():
                    for epsilon in epsilons:
                        share = least_share(x, epsilon)
                        ratio = shrunk_rmse(x, epsilon * left, asked, trials) * epsilon / fixed
                        shrunk = smoothed_rmse(x, repr(epsilon), asked, trials) * epsilon / fixed
                        taken = regime_of(share, 1 / float(TEST_SHARE["pure"]) / size)
                        what = f"{size} | {many:.0e} | {epsilon:g} | {name} | {'yes' if drawn else 'no'}"
                        yield f"| {what} | {share:.2f} | {ratio:.2f} | {shrunk:.2f} | {taken} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--records", type=int, nargs="+", default=[10**5, 10**6, 10**7, 10**8])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--asked", choices=list(_ASKED), default="all_ranges")
    parser.add_argument("--trials", type=int, default=8)
    given = parser.parse_args()
    for line in lines(given.cells, given.records, given.epsilon, given.asked, given.trials):
        print(line, flush=True)


if __name__ == "__main__":
    main()
