"""Distribution functions, quantiles and means: simulated coverage at noise that is not of scale 1, and every refusal."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._accuracy import interval_multiplier, noise_variance, ratio_interval
from leastnoise._check import InputError
from leastnoise._domain import Bins, Domain, Integers, Measure, ValueCount
from leastnoise._estimate import Estimate, cdf, few_draws, means, quantiles, simulated_noise
from leastnoise._estimate._cdf import counts_of, quantile_difference, up_to
from leastnoise._fitting import fit
from leastnoise._kernel import SeededEntropy, simulate
from leastnoise._linop import Tree
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._table import Table, columns_of
from leastnoise._workload import Product, queries
from simulated import releases, simulations

PAY = Measure("pay", 0, 100)
DOMAIN = Domain(age=Integers(1, 30), sex=["F", "M"], pay=Bins(0, 100, 20), measures={"pay": PAY, "count of pay": ValueCount(PAY)})
RNG = np.random.default_rng(8)
ROWS = 900
TABLE = Table(
    DOMAIN,
    {"age": RNG.binomial(29, 0.3, ROWS), "sex": RNG.integers(0, 2, ROWS), "pay": RNG.integers(0, 20, ROWS)},
    {"pay": RNG.integers(0, 101, ROWS), "count of pay": np.ones(ROWS, dtype=np.int64)},
)
HELD = columns_of(TABLE)
AGES = np.bincount(HELD.codes["age"], minlength=30)


def tree_plan(privacy: Privacy, mechanism: str) -> Measurements:
    weights = np.concatenate([[3], np.full(5, 2), np.full(30, 7)])
    return fit(DOMAIN, privacy, mechanism, [(Block((Factor(("age",), Tree(30, (30, 6, 1)), weights),), Fraction(1)), 1.0)])


@pytest.mark.parametrize(
    ("privacy", "mechanism"), [(Privacy(PureDP("1/7")), Noise.DISCRETE_LAPLACE), (Privacy(ZCDP("1/50")), Noise.ROUNDED_GAUSSIAN)]
)
def test_the_band_contains_the_whole_function_and_the_quantiles_at_once(privacy: Privacy, mechanism: str) -> None:
    plan = tree_plan(privacy, mechanism)
    truth = np.cumsum(AGES) / ROWS
    shares = (0.1, 0.25, 0.5, 0.75, 0.9)
    exact = [1 + int(np.searchsorted(truth, share)) for share in shares]
    inside = quantiles_inside = 0
    releases, first = 120, Estimate(simulate(plan, TABLE, SeededEntropy(0)))
    first.values(queries(DOMAIN, age="prefix").products[0])
    for seed, observation in enumerate(simulations(plan, TABLE, releases, seed=0)):
        found = cdf(first.like(observation), "age", level=0.8, draws=19, seed=seed)
        held = bool((found.low <= truth + 1e-12).all() and (truth <= found.high + 1e-12).all())
        inside += held
        quantiles_inside += all(one.low <= value <= one.high for one, value in zip(found.quantiles(shares), exact, strict=True))
        assert (np.diff(found.share) >= 0).all()
        assert (np.diff(found.low) >= 0).all()
        assert (np.diff(found.high) >= 0).all()
        assert (found.low <= found.share + 1e-12).all()
        assert (found.share <= found.high + 1e-12).all()
    # Binomial of 120 at 0.8: below 0.8 - 4 standard errors with a chance of less than 1e-4.
    assert inside / releases > 0.8 - 4 * (0.16 / releases) ** 0.5
    assert quantiles_inside >= inside


GIVEN = np.repeat([1, 0, 1, 1], 235)  # a quarter of the rows has no value, and these are of the first group
GROUPED = Table(
    DOMAIN,
    {
        "age": np.concatenate([RNG.binomial(29, 0.3, 600), RNG.choice([2, 11, 12, 28], 300), RNG.binomial(29, 0.8, 40)]),
        "sex": np.repeat([0, 1], [600, 340]),
        "pay": np.zeros(940, dtype=np.int64),
    },
    {"pay": GIVEN * np.concatenate([RNG.integers(20, 101, 600), RNG.integers(0, 30, 340)]), "count of pay": GIVEN},
)
SHARES = (0.1, 0.5, 0.75, 1.0)


def grouped_plan(privacy: Privacy, mechanism: str) -> Measurements:
    """Trees of ages with weights of their own for each sex, and sums and numbers of values of pay: noise of several scales."""
    weights = np.concatenate([[3], np.full(5, 2), np.full(30, 7)])
    trees = Block((Factor(("age",), Tree(30, (30, 6, 1)), weights), Factor(("sex",), Tree(2, (1,)))), Fraction(1))
    sums, values = (Block((Factor(("sex",), Tree(2, (1,))),), Fraction(1), name) for name in ("pay", "count of pay"))
    return fit(DOMAIN, privacy, mechanism, [(trees, 1.0), (sums, 0.02), (values, 2.0)])


@pytest.mark.parametrize(
    ("privacy", "mechanism"), [(Privacy(PureDP("1/3")), Noise.DISCRETE_LAPLACE), (Privacy(ZCDP("1/40")), Noise.ROUNDED_GAUSSIAN)]
)
def test_quantiles_and_means_by_group_cover(privacy: Privacy, mechanism: str) -> None:
    plan, held = grouped_plan(privacy, mechanism), columns_of(GROUPED)
    ages = [np.sort(held.codes["age"][held.codes["sex"] == place]) for place in (0, 1)]
    exact = [1 + own[int(np.ceil(share * len(own))) - 1] for own in ages for share in SHARES]
    true = np.array([held.values["pay"][(held.codes["sex"] == place) & (GIVEN == 1)].mean() for place in (0, 1)])
    releases, covered, widths, both = 100, np.zeros(8), [], np.zeros(2)
    first = Estimate(simulate(plan, GROUPED, SeededEntropy(0)))
    means(first, "pay", by=["sex"])
    for observation in simulations(plan, GROUPED, releases, seed=0):
        estimate = first.like(observation)
        found = quantiles(estimate, "age", SHARES, by=["sex"], level=0.8)
        covered += [one.low <= value <= one.high for one, value in zip(found, exact, strict=True)]
        assert all(one.low <= one.value <= one.high for one in found)
        widths.append(found[1].high - found[1].low)
        made = means(estimate, "pay", by=["sex"], level=0.8)
        both += (made.low <= true) & (true <= made.high)
    assert [one.group for one in found] == [("F",)] * 4 + [("M",)] * 4
    # Binomial of 100 at 0.8: below 0.8 - 4 standard errors with a chance of less than 1e-4, each.
    assert (np.append(covered, both) / releases > 0.8 - 4 * (0.16 / releases) ** 0.5).all()
    band = cdf(first, "age", by=["sex"], level=0.8, draws=199).quantiles(SHARES)
    assert np.mean(widths) < band[1].high - band[1].low
    assert [one.group for one in band] == [one.group for one in found]


def test_the_bands_of_groups_are_those_of_their_rows_alone() -> None:
    plan = grouped_plan(Privacy(PureDP(100)), Noise.DISCRETE_LAPLACE)
    estimate = Estimate(simulate(plan, GROUPED, SeededEntropy(5)))
    found = cdf(estimate, "age", by=["sex"], draws=199)
    assert found.share.shape == found.low.shape == (2, 30)
    for place, label in enumerate("FM"):
        own = cdf(estimate, "age", where={"sex": label}, draws=199)
        assert own.share == pytest.approx(found.share[place], abs=1e-9)
        assert own.count == pytest.approx(found.count[place])
        apart, together = quantiles(estimate, "age", SHARES, where={"sex": label}), quantiles(estimate, "age", SHARES, by=["sex"])
        assert [(one.value, one.low, one.high) for one in apart] == [
            (one.value, one.low, one.high) for one in together if one.group == (label,)
        ]


def test_a_band_without_simulations_covers_and_is_wider() -> None:
    plan = grouped_plan(Privacy(PureDP("1/3")), Noise.DISCRETE_LAPLACE)
    held = columns_of(GROUPED).codes
    counts = [np.bincount(held["age"][held["sex"] == place], minlength=30) for place in (0, 1)]
    truth = np.array([np.cumsum(own) / own.sum() for own in counts])
    first = Estimate(simulate(plan, GROUPED, SeededEntropy(0)))
    assert few_draws(first, 0.95) == 199
    assert few_draws(first, 0.99999) == 0
    wide, tight = (cdf(first, "age", by=["sex"], level=0.8, draws=draws) for draws in (0, 199))
    assert (wide.high - wide.low).mean() > (tight.high - tight.low).mean()
    releases, inside = 100, np.zeros(2)
    for observation in simulations(plan, GROUPED, releases, seed=0):
        found = cdf(first.like(observation), "age", by=["sex"], level=0.8, draws=0)
        inside += ((found.low <= truth + 1e-12) & (truth <= found.high + 1e-12)).all(axis=1)
    # Binomial of 100 at 0.8: below 0.8 - 4 standard errors with a chance of less than 1e-4, each.
    assert (inside / releases > 0.8 - 4 * (0.16 / releases) ** 0.5).all()


def test_the_error_of_what_is_tested_for_a_quantile_is_its_own() -> None:
    plan = grouped_plan(Privacy(PureDP("1/3")), Noise.DISCRETE_LAPLACE)
    first = Estimate(simulate(plan, GROUPED, SeededEntropy(0)))
    (upto,), share = queries(DOMAIN, age="prefix", sex="identity"), 0.3
    draws = np.stack(list(simulated_noise(first, upto, 600, seed=4)))
    errors = (1 - share) * draws - share * (draws[:, -1:] - draws)
    _, spread = quantile_difference(*counts_of(first, up_to(DOMAIN, "age", {}, ["sex"])), share)
    # Variances of 600 draws are off by 6%: 60 of them, 5 standard errors.
    assert np.moveaxis(errors.var(axis=0), 0, -1) == pytest.approx(spread, rel=0.3)


def by_both_ways(estimate: Estimate, product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors by a matrix are those by an estimate for each draw."""
    by_matrix = list(simulated_noise(estimate, product, 120, seed=6))
    with monkeypatch.context() as patched:
        patched.setattr("leastnoise._estimate._cdf._MOST_LINEAR", 0)
        np.testing.assert_allclose(by_matrix, list(simulated_noise(estimate, product, 120, seed=6)), rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("grouped", [False, True])
def test_errors_are_the_same_by_a_matrix_and_by_an_estimate_a_draw(grouped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    privacy, table = Privacy(ZCDP("1/40")), GROUPED if grouped else TABLE
    plan = (grouped_plan if grouped else tree_plan)(privacy, Noise.ROUNDED_GAUSSIAN)
    (product,) = queries(DOMAIN, age="prefix", sex="identity") if grouped else queries(DOMAIN, age="prefix")
    estimate = Estimate(simulate(plan, table, SeededEntropy(1)))
    measured = np.concatenate([value for block, value in zip(plan.blocks, estimate.observation.values, strict=True) if not block.measure])
    answers = (estimate.linear(product) @ measured / plan.grid).reshape(product.shape)
    np.testing.assert_allclose(answers, estimate.values(product), rtol=1e-9, atol=1e-9)
    by_both_ways(estimate, product, monkeypatch)


def test_blocks_that_tell_of_counts_and_of_sums_are_columns_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    ages = (Factor(("age",), Tree(30, (30, 1))),)
    blocks = (Block(ages, Fraction(4), "pay", ends=True), Block(ages, Fraction(9), "count of pay"))
    plan = Measurements(domain=DOMAIN, privacy=Privacy(PureDP(99)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    estimate = Estimate(simulate(plan, TABLE, SeededEntropy(1)))
    for product in (*queries(DOMAIN, age="prefix", count="pay"), *queries(DOMAIN, age="prefix", sum="pay")):
        assert estimate.linear(product).shape == (30, sum(block.rows for block in blocks))
        by_both_ways(estimate, product, monkeypatch)


def test_next_to_nothing_known_gives_the_whole_band() -> None:
    plan = tree_plan(Privacy(PureDP("1/100000")), Noise.DISCRETE_LAPLACE)
    found = cdf(Estimate(simulate(plan, TABLE, SeededEntropy(1))), "age", draws=199)
    assert found.low[0] == 0
    assert found.high[-2] == 1
    assert (found.quantiles([0.5])[0].low, found.quantiles([0.5])[0].high) == (1, 30)


@pytest.mark.parametrize("count", [0, 5, 40, 4000])
@pytest.mark.parametrize("scale", [(3.0, 170.0), (0.7, 400.0)])
def test_intervals_of_quotients_cover_whatever_the_count(count: int, scale: tuple[float, float]) -> None:
    rng = np.random.default_rng(count)
    mean, draws = 37.0, 40_000

    def noise(b: float) -> np.ndarray:
        step = -np.expm1(-1 / b)
        return rng.geometric(step, draws) - rng.geometric(step, draws)

    low, high = ratio_interval(
        count * mean + noise(scale[1]),
        count + noise(scale[0]),
        np.full(draws, noise_variance(Noise.DISCRETE_LAPLACE, scale[1])),
        np.full(draws, noise_variance(Noise.DISCRETE_LAPLACE, scale[0])),
        interval_multiplier(Noise.DISCRETE_LAPLACE, 0.9),
        (0.0, 100.0),
        steps=(0.5, 0.5),
    )
    covered = ((low <= mean + 1e-9) & (mean - 1e-9 <= high)).mean()
    # 40000 draws at 0.9: 4 standard errors are 0.006.
    assert covered > 0.9 - 0.006
    if count == 4000:
        assert (high - low).max() < 3
        assert covered < 0.97


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda source: cdf(source, "sex"), "the attribute of a distribution function must be one of Integers, Decimals, Bins or Edges"),
        (lambda source: cdf(source, "age", level=1), "level must be a number above 0 and below 1"),
        (lambda source: cdf(source, "age", draws=10), "draws must be at least 19 for the level"),
        (lambda source: cdf(source, "age", where={"age": 3}), "cannot be restricted to some values of age itself"),
        (lambda source: cdf(source, "age", where={"sex": "F"}), "The measurements"),
        (lambda source: cdf(source, "age", draws=10**9), "At most 2147483648 numbers are drawn to simulate releases"),
        (lambda source: quantiles(source, "age", [0]), "a quantile must be a number above 0 and at most 1"),
        (lambda source: quantiles(source, "age", [0.5], where={"sex": "F"}, by=["sex"]), "asked for by sex, which is in use already"),
        (lambda source: quantiles(source, "age", [0.5], by=["sex"]), "The measurements do not determine age:prefix x sex"),
        (lambda source: means(source, "pay"), "A mean of pay needs its sums and the number of its values, both measured"),
        (lambda source: means(source, "pay", by=["zone"]), "the groups of means must be attributes of age, sex, pay"),
        (lambda source: means(source, "pay", level=0), "level must be"),
        (lambda _: ratio_interval(*[np.ones(1)] * 4, 2.0, (3, 2)), "The bounds of a quotient must be a lower and an upper one"),
    ],
)
def test_refusals_are_read(ask: Callable[[Estimate], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask(Estimate(simulate(tree_plan(Privacy(PureDP(1)), Noise.DISCRETE_LAPLACE), TABLE, SeededEntropy(1))))


def test_values_far_from_zero_and_close_together_have_no_error_that_is_too_small() -> None:
    """The part of the sums that is not the middle times the counts is known to the doubles' precision alone."""
    low = 500_000_000
    domain = ln.Domain(a=ln.Coded(2), measures={"pay": ln.Measure("pay", low, low + 2)})
    plan = ln.plan(ln.mean_queries(domain, "pay", by=["a"]), ln.PureDP(1))
    rows = pd.DataFrame({"a": [0, 1] * 200, "pay": [low, low + 2, low + 1, low + 1] * 100})
    truth = rows.groupby("a")["pay"].mean().to_numpy()
    found = [ln.means(one, "pay", by=["a"]) for one in releases(plan, rows, range(40))]
    assert np.array_equal(found[5].mean, ln.means(ln.release(plan, rows, seed=5), "pay", by=["a"]).mean)
    assert np.mean([(one.low <= truth) & (truth <= one.high) for one in found]) > 0.9


@pytest.mark.parametrize(
    ("statistic", "more"),
    [(ln.means, ()), (ln.cdf, ()), (ln.quantiles, (["1/2"],)), (ln.changes, (1,))],
    ids=["means", "cdf", "quantiles", "changes"],
)
def test_statistics_of_a_domain_are_refused_with_what_asks_for_them(statistic, more):
    with pytest.raises(ln.InputError, match=r"must be a release or an estimate; got 'Domain'\. Before a release, ask with mean_queries"):
        statistic(ln.Domain(age=ln.Integers(0, 9)), "age", *more)
