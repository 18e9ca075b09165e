"""Distribution functions, quantiles, means and changes: errors, coverage and refusals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._error import evaluate_plan, interval_multiplier, noise_variance, ratio_interval
from leastnoise._estimation import (
    Estimate,
    cdf,
    cumulative_counts,
    cumulative_query,
    means,
    minimal_draws,
    quantile_difference,
    quantiles,
    simulated_noise,
)
from leastnoise._fitting import fit_noise_scales
from leastnoise._plan import Plan
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.linop import Tree
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._workload import queries
from simulated import read_table, simulations

REGION = {"a": "north", "b": "south", "c": "north", "d": "south", "e": "west"}
DOMAIN = ln.Domain(
    month=ln.Dates("2024-01-01", "2024-06-30", "month"),
    age=ln.Integers(1, 30),
    sex=["F", "M"],
    store=ln.Categories(list(REGION), levels={"region": REGION}),
    measures={"pay": ln.Measure("pay", -20, 100, unit="0.5"), "tips": ln.Measure("tips", 0, 9)},
)
# Rows of each month and sex.
MONTHS = np.array([[400, 90], [500, 80], [100, 70], [50, 60], [700, 300], [20, 200]])


def people() -> pd.DataFrame:
    """Ages and pay differ by sex; a quarter has no pay, and these are of the first sex."""
    random, counts = np.random.default_rng(8), MONTHS.sum(axis=0)
    frame = pd.DataFrame(
        {
            "month": [
                f"2024-{1 + month:02}-03"
                for month in np.repeat([*range(6)] * 2, MONTHS.T.reshape(-1))
            ]
        }
    )
    frame["sex"] = np.repeat(["F", "M"], counts)
    frame["store"] = random.choice(list(REGION), len(frame))
    uneven = random.choice([2, 11, 12, 28, *random.binomial(29, 0.3, 8)], len(frame))
    frame["age"] = 1 + np.where(frame["sex"] == "F", uneven, random.binomial(29, 0.5, len(frame)))
    frame["pay"] = (
        np.where(
            frame["sex"] == "F",
            random.integers(40, 201, len(frame)),
            random.integers(-40, 60, len(frame)),
        )
        / 2
    )
    frame.loc[: len(frame) // 4, "pay"] = np.nan
    return frame


ROWS = people()
# What divides the rows, by other means than the library's.
GROUPS = {
    "sex": ROWS["sex"],
    "region": ROWS["store"].map(REGION),
    "young": ROWS["age"] > 14,
    "stores": ~ROWS["store"].isin(["a", "b"]),
}
BY: dict[str, Any] = {
    "sex": "sex",
    "region": {"store": ln.level("region")},
    "young": {"age": ln.ranges([(1, 14), (15, 30)])},
    "stores": {"store": ln.predicates([["a", "b"], ["c", "d", "e"]])},
}
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
PAID = ln.mean_queries(DOMAIN, "pay").domain
KINDS = {
    "Laplace": (Privacy(ln.PureDP("1/3")), Noise.DISCRETE_LAPLACE),
    "Gaussian": (Privacy(ln.ZCDP("1/40")), Noise.ROUNDED_GAUSSIAN),
}


def trees(kind: tuple[Privacy, Noise]) -> Plan:
    """Return weighted trees of ages by sex, and sums and counts of pay, at several scales."""
    weights = np.concatenate([[3], np.full(5, 2), np.full(30, 7)])
    sex = Factor(("sex",), Tree(2, (1,)))
    ages = Block((Factor(("age",), Tree(30, (30, 6, 1)), weights), sex), Fraction(1))
    sums, values = (Block((sex,), Fraction(1), name) for name in ("pay", "count of pay"))
    workload = queries(PAID, age="prefix", sex="identity") + ln.mean_queries(
        PAID, "pay", by=["sex"]
    )
    return evaluate_plan(
        workload, fit_noise_scales(PAID, *kind, [(ages, 1.0), (sums, 0.02), (values, 2.0)])
    )


def estimated(plan: Plan, seed: int = 0) -> Estimate:
    return Estimate(simulate(plan.measured(), read_table(plan, ROWS), SeededEntropy(seed)))


def parts(by: list[str]) -> list[pd.DataFrame]:
    """The rows of every group, in the order of its labels."""
    return [part for _, part in ROWS.groupby([GROUPS[name] for name in by])] if by else [ROWS]


# Both ends of intervals, and errors divided by the stated errors (None if those are unknown).
Found = tuple[np.ndarray, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Case:
    """What is asked of many releases, of groups in rows, and the truth."""

    plan: Callable[[], Plan]
    ask: Callable[[Estimate, float], Found]
    truth: np.ndarray
    level: float = 0.8
    count: int = 100
    at_once: bool = False  # all answers of a group
    rows: pd.DataFrame | None = None


def exact_quantiles(by: list[str]) -> np.ndarray:
    return np.array(
        [
            [np.quantile(part["age"], share, method="inverted_cdf") for share in SHARES]
            for part in parts(by)
        ]
    )


def ends_of(intervals: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    assert all(interval.low <= interval.value <= interval.high for interval in intervals)
    ends = np.array([(interval.low, interval.high) for interval in intervals]).reshape(
        -1, len(SHARES), 2
    )
    return ends[..., 0], ends[..., 1]


def bands(plan: Callable[[], Plan], by: list[str], draws: int = 19, **more: Any) -> Case:
    """Of the whole distribution function; a band that holds it holds all quantiles."""
    truth = np.array([[(part["age"] <= age).mean() for age in range(1, 31)] for part in parts(by)])
    exact = exact_quantiles(by)

    def ask(estimate: Estimate, level: float) -> Found:
        found = cdf(estimate, "age", by=[BY[name] for name in by], level=level, draws=draws)
        low, share, high = (
            side.reshape(len(truth), 30) for side in (found.low, found.share, found.high)
        )
        assert all((np.diff(side) >= 0).all() for side in (low, share, high))
        assert ((low <= share + 1e-12) & (share <= high + 1e-12)).all()
        first, last = ends_of(found.quantiles(SHARES))
        holds = ((low <= truth) & (truth <= high)).all(axis=-1)
        assert ((first <= exact) & (exact <= last))[holds].all()
        return low, high, None

    return Case(plan, ask, truth, at_once=True, **more)


def of_quantiles(plan: Callable[[], Plan], by: list[str], **more: Any) -> Case:
    def ask(estimate: Estimate, level: float) -> Found:
        return *ends_of(
            quantiles(estimate, "age", SHARES, by=[BY[name] for name in by], level=level)
        ), None

    return Case(plan, ask, exact_quantiles(by), **more)


def of_means(
    plan: Callable[[], Plan], by: list[str], rows: pd.DataFrame = ROWS, **more: Any
) -> Case:
    truth = (
        rows.groupby([GROUPS[name] for name in by] if rows is ROWS else by)["pay"].mean().to_numpy()
    )

    def ask(estimate: Estimate, level: float) -> Found:
        found = means(estimate, "pay", by=[BY.get(name, name) for name in by], level=level)
        low, high, mean, std_error = (
            values.reshape(-1) for values in (found.low, found.high, found.mean, found.std_error)
        )
        return low, high, (mean - truth) / std_error if rows is ROWS else None

    return Case(plan, ask, truth, rows=rows, **more)


def of_changes(kind: str, truth: np.ndarray, prefix: str) -> Case:
    workload = ln.queries(DOMAIN, month="prefix", sex="identity") + ln.queries(
        DOMAIN, month=ln.change(2), sex="identity"
    )

    def ask(estimate: Estimate, level: float) -> Found:
        found = ln.changes(estimate, "month", 2, by=["sex"], level=level).numbers
        errors = (
            (found["difference"] - truth) / found["std_error"] if kind == "difference" else None
        )
        return found[f"{prefix}low"], found[f"{prefix}high"], errors

    return Case(lambda: ln.plan(workload, ln.ZCDP("1/50")), ask, truth, level=0.95)


def planned(workload: ln.Workload, budget: Any, strategy: str = "workload") -> Callable[[], Plan]:
    return lambda: ln.plan(workload, budget, strategy=strategy)


def mean_plan(by: list[str], budget: Any, strategy: str) -> Callable[[], Plan]:
    """Means beside other queries, all weighted."""
    workload = ln.mean_queries(DOMAIN, "pay", by=[BY[name] for name in by], weight=3, size=250)
    return planned(workload + ln.queries(DOMAIN, age="prefix", weight="0.5"), budget, strategy)


def function_plan(by: str) -> Callable[[], Plan]:
    both = ln.quantile_queries(
        DOMAIN, "age", ["0.25", "0.5"], by=[BY[by]], weight=2
    ) + ln.cdf_queries(DOMAIN, "age", by=[BY[by]])
    return planned(both + ln.queries(DOMAIN, sex="identity", weight=5), ln.PureDP("0.1"))


LOW = 500_000_000
FAR = ln.Domain(a=ln.Coded(2), measures={"pay": ln.Measure("pay", LOW, LOW + 2)})
FAR_ROWS = pd.DataFrame({"a": [0, 1] * 200, "pay": [LOW, LOW + 2, LOW + 1, LOW + 1] * 100})
CASES = {
    **{
        f"whole band, {name}": bands(lambda kind=kind: trees(kind), [], count=60)
        for name, kind in KINDS.items()
    },
    **{
        f"quantiles by sex, {name}": of_quantiles(lambda kind=kind: trees(kind), ["sex"])
        for name, kind in KINDS.items()
    },
    **{
        f"means by sex, {name}": of_means(lambda kind=kind: trees(kind), ["sex"])
        for name, kind in KINDS.items()
    },
    "band without simulations": bands(lambda: trees(KINDS["Laplace"]), ["sex"], draws=0),
    "means by level": of_means(
        mean_plan(["sex", "region"], ln.PureDP("0.7"), "marginals"), ["sex", "region"], level=0.9
    ),
    "means by ranges": of_means(
        mean_plan(["young", "sex"], ln.ZCDP("0.2"), "workload"), ["young", "sex"], level=0.9
    ),
    "means by sets": of_means(
        mean_plan(["sex", "stores"], ln.PureDP("0.7"), "p_identity"), ["sex", "stores"], level=0.9
    ),
    # What of the sums is not the middle times the counts is known to the doubles' precision alone.
    "means far from 0": of_means(
        planned(ln.mean_queries(FAR, "pay", by=["a"]), ln.PureDP(1)), ["a"], FAR_ROWS, level=0.95
    ),
    **{
        f"quantiles by {by}": of_quantiles(function_plan(by), [by], level=0.9)
        for by in ("region", "stores")
    },
    **{
        f"bands by {by}": bands(function_plan(by), [by], level=0.9, count=24)
        for by in ("region", "stores")
    },
    "changes": of_changes("difference", MONTHS[2:] - MONTHS[:-2], ""),
    "ratios": of_changes("ratio", MONTHS[2:] / MONTHS[:-2], "ratio_"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_statistic_intervals_cover_at_stated_rate(case: Case) -> None:
    plan = case.plan()
    table = read_table(plan, ROWS if case.rows is None else case.rows)
    first, covered, errors = Estimate(simulate(plan.measured(), table, SeededEntropy(0))), [], []
    for observation in simulations(plan.measured(), table, case.count, seed=1):
        low, high, error = case.ask(first.for_observation(observation), case.level)
        inside = (low <= case.truth + 1e-12) & (case.truth <= high + 1e-12)
        covered.append(inside.all(axis=-1) if case.at_once else inside)
        errors += [] if error is None else [error]
    share, margin = np.mean(covered, axis=0), (case.level * (1 - case.level) / case.count) ** 0.5
    assert (share > case.level - 4 * margin).all()
    assert case.level - 0.03 < share.mean() < (case.level + 0.05 if errors else 1.01)
    if errors:
        assert 0.85 < np.sqrt(np.mean(np.square(errors))) < 1.15


def test_release_statistics_match_the_estimate() -> None:
    by, level = [BY["region"]], 0.9
    workload = ln.mean_queries(DOMAIN, "pay", by=by, size=100, margin=5) + ln.quantile_queries(
        DOMAIN, "age", ["1/4", "1/2"], by=by
    )
    plan = ln.plan(workload + ln.cdf_queries(DOMAIN, "age", by=by), ln.ZCDP(1), strategy="workload")
    read_plan = ln.Plan.from_json(plan.to_json())
    assert read_plan == plan
    assert read_plan.workload.statistics[0].along == {"store": ln.level("region")}
    release = ln.release(plan, ROWS, seed=1, options=ln.Options(level=level))
    mean, quantile, function = release.statistics
    assert mean.name == "mean of pay by store:region"
    means = ln.means(release, "pay", by=by, level=level)
    ends = ln.quantiles(release, "age", [0.25, 0.5], by=by, level=level)
    assert np.array_equal(means.mean, mean.values)
    assert "store:region" in means.columns()
    assert quantile.low.reshape(-1).tolist() == [interval.low for interval in ends]
    assert [interval.group for interval in ends][::2] == [("north",), ("south",), ("west",)]
    assert function.values == pytest.approx(ln.cdf(release, "age", by=by).share, abs=1e-3)


def test_changes_are_the_answers_of_their_table() -> None:
    workload = ln.queries(DOMAIN, month="prefix", sex="identity") + ln.queries(
        DOMAIN, month=ln.change(2), sex="identity"
    )
    release = ln.release(ln.plan(workload, ln.ZCDP("1/50")), ROWS, seed=1)
    changes, table = (
        ln.changes(release, "month", 2, by=["sex"]),
        release.tables["month:change 2 x sex"],
    )
    assert changes.numbers["difference"] == pytest.approx(table.answer, abs=1e-6)
    assert changes.numbers["std_error"] == pytest.approx(table.noise_std)
    for end in ("low", "high"):
        assert changes.numbers[end] == pytest.approx(getattr(table, end))
    # At the ends of a ratio r the later count less r times the earlier one is as far from 0 as its
    # noise and half a step of it allow.
    months = ln.queries(DOMAIN, month="identity", sex="identity")
    (cells,), times = release.answer(months), interval_multiplier(release.measurements.noise, 0.95)
    covariance = release.covariances(*months.products * 2).reshape(6, 2, 6, 2)
    for end in ("ratio_low", "ratio_high"):
        for (month, sex), ratio in np.ndenumerate(changes.numbers[end]):
            weights = np.array([-ratio, 1.0])
            variance = (
                weights
                @ covariance[month : month + 3 : 2, sex, month : month + 3 : 2, sex]
                @ weights
            )
            assert (
                1
                < abs(weights @ cells.answer[month : month + 3 : 2, sex])
                / times
                / np.sqrt(variance)
                < 1.07
            )
    assert [*changes.columns()][:2] == ["month", "sex"]
    assert changes.columns()["month"][0] == "2024-03 - 2024-01"


def test_group_statistics_use_rows_of_the_group() -> None:
    estimate = estimated(trees((Privacy(ln.PureDP(100)), Noise.DISCRETE_LAPLACE)), 5)
    distribution = cdf(estimate, "age", by=["sex"], draws=199)
    together = quantiles(estimate, "age", SHARES, by=["sex"])
    assert distribution.share.shape == distribution.low.shape == (2, 30)
    for place, label in enumerate("FM"):
        group_distribution = cdf(estimate, "age", where={"sex": label}, draws=199)
        assert group_distribution.share == pytest.approx(distribution.share[place], abs=1e-9)
        assert group_distribution.count == pytest.approx(distribution.count[place])
        apart = quantiles(estimate, "age", SHARES, where={"sex": label})
        assert [(quantile.value, quantile.low, quantile.high, (label,)) for quantile in apart] == [
            (quantile.value, quantile.low, quantile.high, quantile.group)
            for quantile in together
            if quantile.group == (label,)
        ]


def test_only_rows_of_a_group_of_a_level_count() -> None:
    release = ln.release(
        ln.plan(ln.queries(DOMAIN, store="identity", age="identity"), ln.PureDP(50)), ROWS, seed=1
    )
    (quantile,) = ln.quantiles(release, "age", [0.5], where={"store": {"region": "north"}})
    assert quantile == ln.quantiles(release, "age", [0.5], where={"store": ["a", "c"]})[0]
    assert (
        quantile.low
        <= np.quantile(ROWS["age"][GROUPS["region"] == "north"], 0.5, method="inverted_cdf")
        <= quantile.high
    )
    with pytest.raises(
        InputError,
        match="group of the level 'region' must be one of north, south, west; got 'east'",
    ):
        ln.cdf(release, "age", where={"store": {"region": "east"}})


def test_requested_statistics_have_narrower_bands() -> None:
    estimate = estimated(trees(KINDS["Laplace"]))
    wide, tight = (cdf(estimate, "age", by=["sex"], level=0.8, draws=draws) for draws in (0, 199))
    assert (wide.high - wide.low).mean() > (tight.high - tight.low).mean()
    alone, banded = (
        quantiles(estimate, "age", SHARES, by=["sex"], level=0.8),
        tight.quantiles(SHARES),
    )
    assert sum(quantile.high - quantile.low for quantile in alone) < sum(
        quantile.high - quantile.low for quantile in banded
    )
    assert [quantile.group for quantile in banded] == [quantile.group for quantile in alone]
    assert (minimal_draws(estimate, 0.95), minimal_draws(estimate, 0.99999)) == (199, 0)
    nothing = cdf(
        estimated(trees((Privacy(ln.PureDP("1/100000")), Noise.DISCRETE_LAPLACE))), "age", draws=199
    )
    assert (nothing.low[0], nothing.high[-2]) == (0, 1)
    assert (nothing.quantiles([0.5])[0].low, nothing.quantiles([0.5])[0].high) == (1, 30)


def test_quantile_test_uses_its_own_error() -> None:
    first, share = estimated(trees(KINDS["Laplace"])), 0.3
    (upto,) = queries(PAID, age="prefix", sex="identity")
    draws = np.stack(list(simulated_noise(first, upto, 600, seed=4)))
    errors = (1 - share) * draws - share * (draws[:, -1:] - draws)
    _, spread = quantile_difference(
        *cumulative_counts(first, cumulative_query(PAID, "age", {}, ["sex"])), share
    )
    # Variances of 600 draws are off by 6%: 60 of them, 5 standard errors.
    assert np.moveaxis(errors.var(axis=0), 0, -1) == pytest.approx(spread, rel=0.3)


def test_quantile_interval_holds_cells_not_rejected() -> None:
    estimate = estimated(trees((Privacy(ln.PureDP("1/20")), Noise.DISCRETE_LAPLACE)))
    times, half = (
        interval_multiplier(Noise.DISCRETE_LAPLACE, 0.9),
        0.5 / estimate.observation.measurements.grid,
    )
    shares = np.arange(1, 20) / 20
    quantile_table = quantiles(estimate, "age", shares.tolist(), by=["sex"], level=0.9)
    for place, (quantile, share) in enumerate(zip(quantile_table, [*shares, *shares], strict=True)):
        difference, spread = quantile_difference(
            *cumulative_counts(estimate, cumulative_query(PAID, "age", {}, ["sex"])), share
        )
        group_difference = difference[place // 19]
        margin = times * np.sqrt(spread[place // 19]) + half
        first = np.flatnonzero(group_difference + margin >= 0)[0]
        behind = np.flatnonzero((group_difference - margin < 0)[:-1])
        assert (quantile.low, quantile.high) == (first + 1, max(first, *(behind + 1)) + 1)


def of_both_ends() -> Plan:
    ages = (Factor(("age",), Tree(30, (30, 1))),)
    blocks = (Block(ages, Fraction(4), "pay", ends=True), Block(ages, Fraction(9), "count of pay"))
    plan = Measurements(
        domain=PAID, privacy=Privacy(ln.PureDP(999)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    )
    return evaluate_plan(
        queries(PAID, age="prefix", count="pay") + queries(PAID, age="prefix", sum="pay"), plan
    )


@pytest.mark.parametrize(
    "plan",
    [trees(KINDS["Gaussian"]), of_both_ends()],
    ids=["counts", "blocks that tell of counts and of sums"],
)
def test_errors_match_between_matrix_and_simulation(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate, measurements = estimated(plan, 1), plan.measured()
    values = dict(zip(range(99), estimate.observation.values, strict=False))
    for product in [*plan.workload][:2]:
        measured = np.concatenate(
            [values[index] for index in estimate.block_indices(product.measure)]
        )
        answers = (estimate.answer_matrix(product) @ measured / measurements.grid).reshape(
            product.shape
        )
        np.testing.assert_allclose(answers, estimate.values(product), rtol=1e-9, atol=1e-9)
        by_matrix = list(simulated_noise(estimate, product, 120, seed=6))
        with monkeypatch.context() as patched:
            patched.setattr("leastnoise._estimation._cdf._MOST_LINEAR", 0)
            np.testing.assert_allclose(
                by_matrix,
                list(simulated_noise(estimate, product, 120, seed=6)),
                rtol=1e-9,
                atol=1e-6,
            )


@pytest.mark.parametrize("count", [0, 5, 40, 4000])
@pytest.mark.parametrize("scales", [(3.0, 170.0), (0.7, 400.0)])
def test_ratio_intervals_cover_at_small_counts(count: int, scales: tuple[float, float]) -> None:
    rng, mean, draws = np.random.default_rng(count), 37.0, 40_000
    steps = [-np.expm1(-1 / scale) for scale in scales]
    counts, sums = (rng.geometric(step, draws) - rng.geometric(step, draws) for step in steps)
    variances = [
        np.full(draws, noise_variance(Noise.DISCRETE_LAPLACE, scale)) for scale in scales[::-1]
    ]
    multiplier = interval_multiplier(Noise.DISCRETE_LAPLACE, 0.9)
    low, high = ratio_interval(
        count * mean + sums,
        count + counts,
        *variances,
        multiplier,
        (0.0, 100.0),
        half_noise_steps=(0.5, 0.5),
    )
    covered = ((low <= mean + 1e-9) & (mean - 1e-9 <= high)).mean()
    # 40000 draws at 0.9: 4 standard errors are 0.006.
    assert covered > 0.9 - 0.006
    if count == 4000:
        assert (high - low).max() < 3
        assert covered < 0.97


def test_ratio_to_possible_zero_has_no_upper_end() -> None:
    plan = ln.plan(ln.queries(DOMAIN, month="identity"), ln.PureDP(1))
    release = ln.release(plan, ROWS[ROWS["month"] == "2024-02-03"], seed=3)
    changes = ln.changes(release, "month", 1).numbers
    assert (changes["ratio_low"][0], changes["ratio_high"][0]) == (0.0, np.inf)
    assert np.isnan(changes["ratio"][0])
    with pytest.raises(ln.InputError, match="from 1 to 5; got 6"):
        ln.changes(release, "month", 6)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda source: cdf(source, "sex"),
            (
                "the attribute of a distribution function must be one of Integers, Decimals, Bins "
                "or Edges"
            ),
        ),
        (lambda source: cdf(source, "age", level=1), "level must be a number above 0 and below 1"),
        (lambda source: cdf(source, "age", draws=10), "draws must be at least 19 for the level"),
        (
            lambda source: cdf(source, "age", where={"age": 3}),
            "cannot be restricted to some values of age itself",
        ),
        (lambda source: cdf(source, "age", where={"store": "a"}), "The measurements"),
        (
            lambda source: cdf(source, "age", draws=10**9),
            "At most 2147483648 numbers are drawn to simulate releases",
        ),
        (
            lambda source: quantiles(source, "age", [0]),
            "a quantile must be a number above 0 and at most 1",
        ),
        (
            lambda source: quantiles(source, "age", [0.5], where={"sex": "F"}, by=["sex"]),
            "requested by sex, which is in use already",
        ),
        (
            lambda source: quantiles(source, "age", [0.5], by=["store"]),
            "The measurements do not determine age:prefix x store",
        ),
        (
            lambda source: means(source, "tips"),
            "A mean of tips needs measurements of its sums and of the number of its values",
        ),
        (
            lambda source: means(source, "pay", by=["zone"]),
            "the groups of means must be attributes of month, age, sex",
        ),
        (lambda source: means(source, "pay", level=0), "level must be"),
        (
            lambda _: ratio_interval(*[np.ones(1)] * 4, 2.0, (3, 2)),
            "The bounds of a quotient must be a lower and an upper bound",
        ),
        *(
            (
                lambda _, ask=ask: ask(DOMAIN, "age"),
                (
                    "be a release or an estimate; got 'Domain'. Before a release, ask with "
                    "mean_queries"
                ),
            )
            for ask in (
                means,
                cdf,
                lambda *given: quantiles(*given, ["1/2"]),
                lambda *given: ln.changes(*given, 1),
            )
        ),
        *(
            (lambda _, by=by, ask=ask: ask(by), message)
            for ask in (
                lambda by: ln.mean_queries(DOMAIN, "pay", by=by),
                lambda by: ln.marginals(DOMAIN, ways=1, of=by),
            )
            for by, message in [
                (["region"], "region is a level: ask for { store = { level = 'region' } }"),
                (["sexe"], "attributes of month, age, sex, store; got 'sexe'"),
                ([{"store": "region"}], "query set on store must be 'identity'"),
                ([{"store": ln.level("county")}], "a level must be one of 'region'; got 'county'"),
                (
                    [{"age": "prefix"}],
                    " along age must be one of identity, level, ranges, predicates; got 'prefix'",
                ),
                (["store", BY["region"]], "attributes without repetitions"),
                *((by, "a list of attributes") for by in ([3], "sex", 7)),
            ]
        ),
    ],
)
def test_unsupported_statistics_are_refused(
    ask: Callable[[Estimate], object], message: str
) -> None:
    estimate = estimated(trees(KINDS["Laplace"]), 1)
    with pytest.raises(InputError) as refused:
        ask(estimate)
    assert message in str(refused.value)
