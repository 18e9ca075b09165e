"""Compare thresholds and buckets for sums by group.

Buckets are below a threshold, and each group keeps some. The others are one threshold,
ours or TaMM's, and the best candidate.

    python -m experiments.sums_groups [--groups 20 500] [--trials 30] [--sizes falling] [--others]

The amounts of `experiments.sums_shapes`, or others that nothing was chosen on, in groups of sizes
like 1, 1/2, 1/3 ... (falling), of one size (even), or of such sizes and with amounts that differ
between groups (scaled). The error is the root of the mean square over the groups, over that of the
best threshold for the case. Given a threshold it is what was cut from each and the noise of nine
tenths of the budget, so it is computed; of buckets it is drawn. The number has 100 equal cells, or
100 whose ends grow by one ratio, which fit a public maximum that is far too large.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from experiments.common import Reals, Wholes, arguments
from experiments.selections.threshold import geometric_candidates, sparse_vector
from experiments.sums_mechanisms import TAIL_SHARE
from experiments.sums_shapes import EPSILONS, START, Shape, shapes
from leastnoise._domain import Bins, Domain, Edges, Measure
from leastnoise._mechanisms._sums import (
    SumsSetting,
    group_chooser,
    measurable_thresholds,
    threshold_chooser,
)
from leastnoise._mechanisms._sums import plan_sums as made_for
from leastnoise._trusted.accounting import Privacy, PureDP
from leastnoise._trusted.kernel import SeededEntropy
from leastnoise._workload import queries

CELLS = 100
SIZES = ("falling", "even", "scaled")
_LEAST = 1000  # the first cell of growing ones ends so many times below the maximum
_SPREAD = 0.7  # of the logarithm of the scale of groups


def other_shapes(seed: int = 7) -> Iterator[Shape]:
    """Yield shapes that no choice was based on."""
    random = np.random.default_rng(seed)
    humps = np.concatenate([random.lognormal(9.5, 0.4, 20_000), random.lognormal(13.0, 0.3, 1000)])
    flat = 1000 * random.random(10_000)
    for name, values, most in (
        ("gamma", random.gamma(2, 20_000, 50_000), 1_000_000),
        ("gamma", random.gamma(2, 20_000, 20_000), 20_000_000),
        ("Weibull 0.5", 20_000 * random.weibull(0.5, 50_000), 4_000_000),
        ("two humps", humps, 5_000_000),
        ("uniform", flat, 1000),
        ("uniform", flat, 10_000),
        ("few, Pareto 1.5", 5000 * random.random(2000) ** (-1 / 1.5), 2_000_000),
    ):
        yield Shape(name, np.clip(np.rint(values), 1, most).astype(np.int64), most)


def owners(count: int, groups: int, random: np.random.Generator, *, even: bool = False) -> Wholes:
    """Draw the group of each amount; group sizes are like 1, 1/2, 1/3, ..., or equal.

    >>> bool((np.diff(np.bincount(owners(1000, 3, np.random.default_rng(0)))) < 0).all())
    True
    """
    shares = np.cumsum(np.ones(groups) if even else 1 / np.arange(1, groups + 1))
    return np.searchsorted(shares / shares[-1], random.random(count))


def grouped(
    shape: Shape, groups: int, sizes: str, random: np.random.Generator
) -> tuple[Shape, Wholes]:
    """Return the amounts and the group of each.

    >>> random = np.random.default_rng(0)
    >>> _, groups = grouped(next(other_shapes()), 3, "falling", random)
    >>> bool((np.diff(np.bincount(groups)) < 0).all())
    True
    """
    owner = owners(len(shape.values), groups, random, even=sizes == "even")
    if sizes != "scaled":
        return shape, owner
    values = shape.values * np.exp(random.normal(0, _SPREAD, groups))[owner]
    return Shape(
        shape.name, np.clip(np.rint(values), 1, shape.most).astype(np.int64), shape.most
    ), owner


def setting_for(most: int, groups: int, epsilon: Fraction, *, growing: bool) -> SumsSetting:
    """Return the setting of a release of sums by group.

    >>> setting_for(1000, 3, Fraction(1), growing=True).edges[[0, -1]].tolist()
    [1, 1000]
    """
    ends = sorted({int(most * _LEAST ** (cell / (CELLS - 1)) / _LEAST) for cell in range(CELLS)})
    pay = Edges([0, *ends], closed="right") if growing else Bins(0, most, CELLS, closed="right")
    domain = Domain(
        group=[f"g{one}" for one in range(groups)],
        pay=pay,
        measures={"amount": Measure("pay", 0, most)},
    ).as_complete()
    return made_for(queries(domain, group="identity", sum="amount"), Privacy(PureDP(epsilon)))


def error_of(threshold: int, shape: Shape, owner: Wholes, groups: int, epsilon: Fraction) -> float:
    """Return the root mean square error over the groups with a threshold."""
    cut = np.bincount(owner, np.maximum(shape.values - threshold, 0), groups)
    return float(
        np.sqrt(np.mean(cut**2) + 2 * (threshold / float(epsilon * (1 - TAIL_SHARE))) ** 2)
    )


def noisy_counts(
    setting: SumsSetting, shape: Shape, epsilon: Fraction, random: np.random.Generator
) -> Callable[[], Reals]:
    """Return a function that draws noisy counts of the tail."""
    places = setting.candidates
    cells = np.searchsorted(setting.edges, shape.values)
    counts = np.bincount(np.searchsorted(places, cells), minlength=len(places))[1:]
    return lambda: counts + random.laplace(0, 1 / float(epsilon * TAIL_SHARE), len(counts))


def buckets(
    setting: SumsSetting,
    shape: Shape,
    owner: Wholes,
    epsilon: Fraction,
    trials: int,
    random: np.random.Generator,
) -> Iterator[float]:
    """Yield the errors of releases by buckets."""
    groups = setting.plan.workload.products[0].rows
    thresholds = measurable_thresholds(setting)
    choose = group_chooser(setting, thresholds)
    cells = np.searchsorted(setting.edges, shape.values)
    drawn = noisy_counts(setting, shape, epsilon, random)
    truth = np.bincount(owner, shape.values, groups)
    for _ in range(trials):
        threshold = choose(drawn()).threshold
        under = thresholds[threshold]
        sums = np.zeros((groups, len(under.noise)))
        bucket = np.searchsorted(under.buckets.starts, cells, side="right") - 1
        np.add.at(sums, (owner, bucket), np.minimum(shape.values, threshold))
        noisy = sums + random.laplace(0, under.noise / 2**0.5, sums.shape)
        kept = (
            np.arange(len(under.noise))
            < under.buckets.choose_ranges(noisy, under.noise).kept_buckets[:, None]
        )
        yield float(np.sqrt(np.mean((np.where(kept, noisy, 0.0).sum(axis=1) - truth) ** 2)))


def theirs(shape: Shape, epsilon: Fraction, trials: int) -> Iterator[int]:
    """Yield thresholds of the sparse vector technique."""
    candidates = geometric_candidates(START, "1.2", shape.most)
    for seed in range(trials):
        yield sparse_vector(shape.values, epsilon * TAIL_SHARE, SeededEntropy(seed), candidates)


def errors(
    shape: Shape,
    owner: Wholes,
    groups: int,
    epsilon: Fraction,
    trials: int,
    random: np.random.Generator,
) -> tuple[float, list[Reals]]:
    """Return the error of the best threshold, and of releases by each way.

    The ways are TaMM, one threshold and buckets, each with equal and with growing cells.
    """

    def cut(threshold: int) -> float:
        """Return the error with a threshold."""
        return error_of(threshold, shape, owner, groups, epsilon)

    made = [setting_for(shape.most, groups, epsilon, growing=growing) for growing in (False, True)]
    found = [
        [cut(one) for one in theirs(shape, epsilon, min(trials, 8))]
        if shape.most >= START
        else [np.nan]
    ]
    for one in made:
        choose = threshold_chooser(one)
        drawn = noisy_counts(one, shape, epsilon, random)
        found.append([cut(choose(drawn()).threshold) for _ in range(trials)])
    found.extend(list(buckets(one, shape, owner, epsilon, trials, random)) for one in made)
    return min(cut(int(edge)) for one in made for edge in one.edges), [
        np.array(one) for one in found
    ]


def lines(groups: int, trials: int, sizes: str, *, others: bool, seed: int = 0) -> Iterator[str]:
    """Yield the rows of the table and their summary."""
    ways = ("TaMM + SVT", "threshold, equal cells", "growing", "buckets, equal cells", "growing")
    yield f"| amounts | public maximum | epsilon | {' | '.join(ways)} |"
    yield f"|---|--:|---|{'--:|' * len(ways)}"
    random = np.random.default_rng(seed)
    means = []
    roots = []
    for whole in other_shapes() if others else shapes(seed):
        shape, owner = grouped(whole, groups, sizes, random)
        for epsilon in EPSILONS:
            best, found = errors(shape, owner, groups, epsilon, trials, random)
            means.append([one.mean() / best for one in found])
            roots.append([np.sqrt(np.mean(one**2)) / best for one in found])
            yield (
                f"| {shape.name} | {shape.most:,} | {float(epsilon):g} | "
                f"{' | '.join(f'{one:.2f}' for one in means[-1])} |"
            )
    for name, scores in (
        ("mean over releases", means),
        ("root of the mean square over releases", roots),
    ):
        middle = np.exp(np.nanmean(np.log(scores), axis=0))
        worst = np.nanmax(scores, axis=0)
        shown = " | ".join(
            f"{one:.2f}, {other:.2f}" for one, other in zip(middle, worst, strict=True)
        )
        yield f"| *all: geometric mean, worst; {name}* | | | {shown} |"


if __name__ == "__main__":
    given = arguments(
        __doc__,
        groups={"type": int, "nargs": "+", "default": [20, 500]},
        trials={"type": int, "default": 30},
        sizes={"choices": SIZES, "default": "falling"},
        others={"action": "store_true"},
    )
    for groups in given["groups"]:
        print(f"\n{groups} groups\n")
        for line in lines(groups, given["trials"], given["sizes"], others=given["others"]):
            print(line, flush=True)
