"""Compare thresholds and buckets for sums by group.

Buckets are below a threshold, and each group keeps some of them. The alternatives are one
threshold, chosen by our mechanism or by TaMM, and the best threshold.

    python -m experiments.sums_groups [--groups 20 500] [--trials 30] [--sizes falling] [--others]

The amounts come from `experiments.sums_shapes`, or with --others amounts that no choice of the
mechanism used. The sizes of the groups are like 1, 1/2, 1/3 ... (falling), equal (even), or falling
with amounts that differ between groups (scaled). The error is the root mean square error over the
groups, divided by the error of the best threshold for the case. The error with a threshold is
computed from the amounts above it and the noise of nine tenths of the budget; the error of buckets
is simulated. The number has 100 equal cells, or 100 cells whose ends grow by a constant ratio,
which suit a public maximum that is far too large.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from experiments.common import Reals, Wholes, arguments
from experiments.selections.threshold import geometric_candidates, sparse_vector
from experiments.sums_mechanisms import TAIL_SHARE
from experiments.sums_shapes import EPSILONS, START, Shape, shapes
from leastnoise._domain import Bins, Domain, Edges, Measure
from leastnoise._mechanisms._sums_mechanism import (
    SumsSetting,
    group_chooser,
    measurable_thresholds,
    threshold_chooser,
)
from leastnoise._mechanisms._sums_mechanism import plan_sums as plan_setting
from leastnoise._trusted.accounting import Privacy, PureDP
from leastnoise._trusted.kernel import SeededEntropy
from leastnoise._workload import queries

CELLS = 100
SIZES = ("falling", "even", "scaled")
_FIRST_CELL_RATIO = 1000  # maximum over the end of the first growing cell
_SCALE_DEVIATION = 0.7  # standard deviation of the logarithm of the scale of groups


def other_shapes(seed: int = 7) -> Iterator[Shape]:
    """Yield shapes that no choice of the mechanism used."""
    random = np.random.default_rng(seed)
    humps = np.concatenate([random.lognormal(9.5, 0.4, 20_000), random.lognormal(13.0, 0.3, 1000)])
    flat = 1000 * random.random(10_000)
    for name, values, maximum in (
        ("gamma", random.gamma(2, 20_000, 50_000), 1_000_000),
        ("gamma", random.gamma(2, 20_000, 20_000), 20_000_000),
        ("Weibull 0.5", 20_000 * random.weibull(0.5, 50_000), 4_000_000),
        ("two humps", humps, 5_000_000),
        ("uniform", flat, 1000),
        ("uniform", flat, 10_000),
        ("few, Pareto 1.5", 5000 * random.random(2000) ** (-1 / 1.5), 2_000_000),
    ):
        yield Shape(name, np.clip(np.rint(values), 1, maximum).astype(np.int64), maximum)


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
    values = shape.values * np.exp(random.normal(0, _SCALE_DEVIATION, groups))[owner]
    return Shape(
        shape.name, np.clip(np.rint(values), 1, shape.maximum).astype(np.int64), shape.maximum
    ), owner


def setting_for(maximum: int, groups: int, epsilon: Fraction, *, growing: bool) -> SumsSetting:
    """Return the setting of a release of sums by group.

    >>> setting_for(1000, 3, Fraction(1), growing=True).edges[[0, -1]].tolist()
    [1, 1000]
    """
    edges = sorted(
        {
            int(maximum * _FIRST_CELL_RATIO ** (cell / (CELLS - 1)) / _FIRST_CELL_RATIO)
            for cell in range(CELLS)
        }
    )
    pay = Edges([0, *edges], closed="right") if growing else Bins(0, maximum, CELLS, closed="right")
    domain = Domain(
        group=[f"g{number}" for number in range(groups)],
        pay=pay,
        measures={"amount": Measure("pay", 0, maximum)},
    ).as_complete()
    return plan_setting(queries(domain, group="identity", sum="amount"), Privacy(PureDP(epsilon)))


def error_of(threshold: int, shape: Shape, owner: Wholes, groups: int, epsilon: Fraction) -> float:
    """Return the root mean square error over the groups with a threshold."""
    excess = np.bincount(owner, np.maximum(shape.values - threshold, 0), groups)
    return float(
        np.sqrt(np.mean(excess**2) + 2 * (threshold / float(epsilon * (1 - TAIL_SHARE))) ** 2)
    )


def noisy_counts(
    setting: SumsSetting, shape: Shape, epsilon: Fraction, random: np.random.Generator
) -> Callable[[], Reals]:
    """Return a function that draws noisy counts of the tail."""
    candidates = setting.candidates
    cells = np.searchsorted(setting.edges, shape.values)
    counts = np.bincount(np.searchsorted(candidates, cells), minlength=len(candidates))[1:]
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
    draw_counts = noisy_counts(setting, shape, epsilon, random)
    truth = np.bincount(owner, shape.values, groups)
    for _ in range(trials):
        threshold = choose(draw_counts()).threshold
        measured = thresholds[threshold]
        sums = np.zeros((groups, len(measured.noise)))
        bucket = np.searchsorted(measured.buckets.starts, cells, side="right") - 1
        np.add.at(sums, (owner, bucket), np.minimum(shape.values, threshold))
        noisy = sums + random.laplace(0, measured.noise / 2**0.5, sums.shape)
        is_kept = (
            np.arange(len(measured.noise))
            < measured.buckets.choose_ranges(noisy, measured.noise).kept_buckets[:, None]
        )
        yield float(np.sqrt(np.mean((np.where(is_kept, noisy, 0.0).sum(axis=1) - truth) ** 2)))


def sparse_vector_thresholds(shape: Shape, epsilon: Fraction, trials: int) -> Iterator[int]:
    """Yield thresholds of the sparse vector technique."""
    candidates = geometric_candidates(START, "1.2", shape.maximum)
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
    """Return the error of the best threshold, and the errors of releases by each method.

    The methods are TaMM, and one threshold and buckets, each with equal and with growing cells.
    """

    def error_with(threshold: int) -> float:
        """Return the error with a threshold."""
        return error_of(threshold, shape, owner, groups, epsilon)

    settings = [
        setting_for(shape.maximum, groups, epsilon, growing=growing) for growing in (False, True)
    ]
    errors_by_method = [[np.nan]]
    if shape.maximum >= START:
        thresholds = sparse_vector_thresholds(shape, epsilon, min(trials, 8))
        errors_by_method = [[error_with(threshold) for threshold in thresholds]]
    for setting in settings:
        choose = threshold_chooser(setting)
        draw_counts = noisy_counts(setting, shape, epsilon, random)
        errors_by_method.append(
            [error_with(choose(draw_counts()).threshold) for _ in range(trials)]
        )
    errors_by_method.extend(
        list(buckets(setting, shape, owner, epsilon, trials, random)) for setting in settings
    )
    best = min(error_with(int(edge)) for setting in settings for edge in setting.edges)
    return best, [np.array(method_errors) for method_errors in errors_by_method]


def lines(groups: int, trials: int, sizes: str, *, others: bool, seed: int = 0) -> Iterator[str]:
    """Yield the rows of the table and their summary."""
    methods = ("TaMM + SVT", "threshold, equal cells", "growing", "buckets, equal cells", "growing")
    yield f"| amounts | public maximum | epsilon | {' | '.join(methods)} |"
    yield f"|---|--:|---|{'--:|' * len(methods)}"
    random = np.random.default_rng(seed)
    mean_ratios = []
    root_ratios = []
    for base_shape in other_shapes() if others else shapes(seed):
        shape, owner = grouped(base_shape, groups, sizes, random)
        for epsilon in EPSILONS:
            best_error, errors_by_method = errors(shape, owner, groups, epsilon, trials, random)
            mean_ratios.append([values.mean() / best_error for values in errors_by_method])
            root_ratios.append(
                [np.sqrt(np.mean(values**2)) / best_error for values in errors_by_method]
            )
            yield (
                f"| {shape.name} | {shape.maximum:,} | {float(epsilon):g} | "
                f"{' | '.join(f'{ratio:.2f}' for ratio in mean_ratios[-1])} |"
            )
    for name, scores in (
        ("mean over releases", mean_ratios),
        ("root of the mean square over releases", root_ratios),
    ):
        middle = np.exp(np.nanmean(np.log(scores), axis=0))
        largest = np.nanmax(scores, axis=0)
        shown = " | ".join(
            f"{mean:.2f}, {worst:.2f}" for mean, worst in zip(middle, largest, strict=True)
        )
        yield f"| *all: geometric mean, worst; {name}* | | | {shown} |"


if __name__ == "__main__":
    options = arguments(
        __doc__,
        groups={"type": int, "nargs": "+", "default": [20, 500]},
        trials={"type": int, "default": 30},
        sizes={"choices": SIZES, "default": "falling"},
        others={"action": "store_true"},
    )
    for groups in options["groups"]:
        print(f"\n{groups} groups\n")
        for line in lines(groups, options["trials"], options["sizes"], others=options["others"]):
            print(line, flush=True)
