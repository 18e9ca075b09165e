"""Releases of real tables keep their promises: realised against promised squared error over 200 seeded runs, and coverage of the intervals.

The tolerance. One run realises the ratio q = (sum over queries of importance * error^2) / (promised total); the plan promises E q = 1. The
runs are independent, so the mean of N of them has the standard error s / sqrt(N), s the standard deviation of q, which is estimated from
the runs themselves. The mean must lie within 5 standard errors of 1: a false alarm once in 1.7 million (normal quantile; N = 200 is large
enough for the mean of a sum of many squares). So that this is a test of anything, 5 standard errors must be less than a stated bound on the
ratio: an error bar that is wrong by half of that bound would be seen. Seeds are fixed, so the outcome is always the same.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import leastnoise as ln
from leastnoise import _adapters
from leastnoise._accounting import Noise
from leastnoise._estimate import Estimate, Outcome
from leastnoise._kernel import SeededEntropy, simulate
from leastnoise._kernel._count import count
from leastnoise._linop import along, apply
from leastnoise._measurements import Measurements, Observation
from leastnoise._plan import Plan
from leastnoise._release import Options, build
from leastnoise._table import Table
from leastnoise._workload import Product, Workload
from simulated import simulations

MICRODATA = Path(__file__).parents[3] / "shared" / "data" / "microdata"
ADULT = {"workclass": 9, "education": 16, "marital-status": 7, "occupation": 15, "relationship": 6, "race": 5, "sex": 2, "salary": 2}
RUNS = 200
AT_A_TIME = 20
Z = 5.0
LEVEL = 0.9

pytestmark = pytest.mark.skipif(not MICRODATA.is_dir(), reason=f"the real data are not there: no directory {MICRODATA}")


@pytest.fixture(scope="module")
def adult() -> Table:
    return _adapters.read(MICRODATA / "adult8.csv", ln.Domain({name: ln.Coded(size) for name, size in ADULT.items()}))


@pytest.fixture(scope="module")
def cps() -> Table:
    domain = ln.Domain(
        {"income": ln.Bins(0, 500_000, 500), "age": ln.Integers(15, 90), "sex": ln.Categories([1, 2])},
        measures={"pay": ln.Measure("income", 0, 150_000, unit=100)},
    )
    return _adapters.read(MICRODATA / "cps.csv", domain)


@dataclass
class Realised:
    """What the runs of one plan realised, one number a run: squared error over promise, and the share of intervals that cover."""

    ratio: npt.NDArray[np.float64]
    covered: npt.NDArray[np.float64]


def exact_answers(table: Table, product: Product) -> npt.NDArray[np.int64]:
    """The true answers, in rows or in units of the measure; the kernel does not give them, the test asks the table."""
    ((_, cells),) = count(table, [product.attributes], product.measure)
    cube = cells.reshape([operator.size for operator in product.operators])
    for axis, operator in enumerate(product.operators):
        cube = along(apply, operator, cube, axis)
    return cube


def simulated(measured: Measurements, table: Table, first_seed: int) -> Iterator[Observation]:
    """Some at a time, as all together need much memory."""
    for start in range(0, RUNS, AT_A_TIME):
        yield from simulations(measured, table, AT_A_TIME, first_seed + start)


def runs(plan: Plan, workload: Workload, table: Table, first_seed: int) -> Realised:
    """Carry a plan out again and again, with other seeds."""
    exact = [exact_answers(table, product) for product in workload]
    # The width of an interval depends on the plan alone; a sum's is in amounts and not in units.
    units = [1.0 if product.measure is None else float(table.domain.measures[product.measure].unit) for product in workload]
    shown = build(Outcome(plan, simulate(plan.measured(), table, SeededEntropy(first_seed))), Options(level=LEVEL)).tables
    half_widths = [(table.high - table.low) / 2 / unit for table, unit in zip(shown, units, strict=True)]
    ratios, covered = [], []
    measured = plan.measured()
    first = Estimate(simulate(measured, table, SeededEntropy(first_seed)))
    for observation in simulated(measured, table, first_seed):
        estimate = first.like(observation)
        total, inside = 0.0, 0
        for product, true, half in zip(workload, exact, half_widths, strict=True):
            error = estimate.values(product) - true
            total += product.importance * float(np.sum(error**2))
            inside += int(np.sum(np.abs(error) <= half))
        ratios.append(total / plan.expected_error().total_squared_error)
        covered.append(inside / workload.rows)
    return Realised(np.array(ratios), np.array(covered))


def standard_error(values: npt.NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


CASES = [
    # table, workload, budget, strategy (that of the automatic choice, which takes longer to find it), 5 standard errors at most, seed
    ("adult", lambda d: ln.marginals(d, ways=1), ln.PureDP("1/2"), "covering", 0.15, 1_000),
    ("adult", lambda d: ln.marginals(d, ways=2), ln.ZCDP("1/50"), "residual", 0.03, 2_000),
    ("adult", lambda d: ln.marginals(d, ways=3), ln.ApproxDP("1", "1e-9"), "residual", 0.02, 3_000),
    ("adult", lambda d: ln.marginals(d, upto=2, weight="1/2") + ln.marginals(d, ways=1, weight=4), ln.PureDP(2), "covering", 0.1, 4_000),
    ("cps", lambda d: ln.queries(d, income=ln.prefix()), ln.PureDP(1), "p_identity", 0.3, 5_000),
    ("cps", lambda d: ln.queries(d, income=ln.prefix()), ln.ZCDP("1/8"), "gaussian_optimum", 0.3, 6_000),
    ("cps", lambda d: ln.queries(d, income=ln.prefix(), sex=ln.identity(), weight=3), ln.ApproxDP("1/2", "1e-6"), "auto", 0.2, 7_000),
    (
        "cps",
        lambda d: ln.queries(d, age=ln.identity(), sum="pay") + ln.marginals(d, ways=2, of=["age", "sex"]),
        ln.ZCDP("1/500"),
        "auto",
        0.15,
        8_000,
    ),
]
NAMES = ["1-way", "2-way", "3-way", "weighted marginals", "prefix sums, pure", "prefix sums, zCDP", "prefix sums by sex", "sums and counts"]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_realised_error_is_the_promised_one_and_intervals_cover(case: tuple, request: pytest.FixtureRequest) -> None:
    name, ask, budget, strategy, bound, seed = case
    table = request.getfixturevalue(name)
    workload = ask(table.domain)
    plan = ln.plan(workload, budget, strategy=strategy)
    realised = runs(plan, workload, table, seed)
    margin = Z * standard_error(realised.ratio)
    assert margin < bound
    assert abs(realised.ratio.mean() - 1) < margin, (realised.ratio.mean(), margin)
    # Intervals cover at least at their level, and hardly more: half a step of the noise is added to each, which is little beside noise as
    # wide as here, and for Laplace noise the wider of two quantiles is taken.
    coverage, tolerance = realised.covered.mean(), Z * standard_error(realised.covered)
    assert coverage > LEVEL - tolerance, (coverage, tolerance)
    assert coverage < LEVEL + (0.01 if plan.measured().noise != Noise.DISCRETE_LAPLACE else 0.03) + tolerance, (coverage, tolerance)


def cumulative(release: ln.Release) -> Iterator[tuple[float, float, float]]:
    table = release.tables["income:prefix"]
    yield from zip(table.low, table.high, table.answer, strict=True)


def test_a_cdf_of_income_with_its_total(cps: Table) -> None:
    # The CDF is the prefix sums over the total: both come from one release, agree with each other, and the last prefix sum is the total.
    workload = ln.queries(cps.domain, income=ln.prefix()) + ln.marginals(cps.domain, ways=0)
    plan = ln.plan(workload, ln.ZCDP("1/2"), strategy="hierarchy")
    release = build(Outcome(plan, simulate(plan.measured(), cps, SeededEntropy(11))))
    total = float(release.tables["total"].answer)
    answers = np.array([answer for _, _, answer in cumulative(release)])
    assert answers[-1] == pytest.approx(total, abs=1e-6)
    exact = exact_answers(cps, workload.products[0])
    promised = plan.expected_error().tables[0].largest_std
    assert np.abs(answers / total - exact / exact[-1]).max() < 10 * promised / exact[-1]
    inside = np.mean([low <= true <= high for (low, high, _), true in zip(cumulative(release), exact, strict=True)])
    assert inside > 0.8


def test_the_promise_fails_for_noise_that_is_wrong(cps: Table) -> None:
    # The negative control: a plan that promises 10% less than its noise is caught by the same test.
    workload = ln.queries(cps.domain, age=ln.identity(), income=ln.identity())
    plan = ln.plan(workload, ln.PureDP(1))
    realised = runs(plan, workload, cps, 9_000)
    margin = Z * standard_error(realised.ratio)
    assert abs(realised.ratio.mean() - 1) < margin < 0.01
    assert abs(realised.ratio.mean() / 0.9 - 1) > margin
