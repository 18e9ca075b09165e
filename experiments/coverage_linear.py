"""Measure the coverage of intervals of data-independent releases.

The study has all planners, kinds of noise and estimates, bands, quantiles and means.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.common import Reals, Row
from leastnoise._domain import Coded, Domain, Integers, Measure
from leastnoise._estimation import Estimate, Outcome, cdf, means, monotone
from leastnoise._mechanisms import try_strategies
from leastnoise._plan import Plan
from leastnoise._planning import plan as make
from leastnoise._release import Options, build_release
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import Budget, Privacy
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.linop import dense
from leastnoise._trusted.table import Table
from leastnoise._workload import Product, Workload, marginals, mean_queries, queries

LEVEL = 0.95
DOMAIN = mean_queries(
    Domain(
        a=Coded(3), b=Integers(0, 15), c=Coded(2), measures={"pay": Measure("pay", 0, 40)}
    ).as_complete(),
    "pay",
).domain
WORKLOADS: Mapping[str, Workload] = {
    "marginals, prefix sums, sums": marginals(DOMAIN, ways=2)
    + queries(DOMAIN, b="prefix", weight=3)
    + marginals(DOMAIN, ways=1, of=["a", "c"], sum="pay"),
    "marginals": marginals(DOMAIN, upto=2),
    "ranges": queries(DOMAIN, b="all_ranges"),
}


class People:
    """500 generated rows and their exact answers."""

    def __init__(self, seed: int) -> None:
        generator = np.random.default_rng(seed)
        codes = {name: generator.integers(0, DOMAIN.kind(name).size, 500) for name in DOMAIN.names}
        codes["b"] = np.minimum(generator.geometric(0.2, 500) - 1, 15)
        self.pay = generator.integers(0, 41, 500)
        row_counts = np.ones(500, dtype=np.int64)  # every row has a value
        self.table = Table(DOMAIN, codes, {"pay": self.pay, "count of pay": row_counts})
        flat = np.ravel_multi_index([codes[name] for name in DOMAIN.names], DOMAIN.shape)
        values: dict[str | None, Any] = {None: None, "pay": self.pay, "count of pay": row_counts}
        self.cubes = {
            measure: np.bincount(flat, weights, DOMAIN.size).reshape(DOMAIN.shape)
            for measure, weights in values.items()
        }

    def answers(self, product: Product) -> Reals:
        """Return the exact answers to a product."""
        cube = self.cubes[product.measure].sum(
            axis=tuple(
                axis for axis, name in enumerate(DOMAIN.names) if name not in product.attributes
            )
        )
        for axis, operator in enumerate(product.operators):
            cube = np.moveaxis(np.tensordot(dense(operator), cube, axes=(1, axis)), 0, axis)
        return np.asarray(cube, dtype=np.float64)


def planners(
    budgets: Mapping[str, Budget], trials: int, seed: int, names: tuple[str, ...] | None = None
) -> Iterator[Row]:
    """Yield a row per planner, noise and workload with the share of covered answers.

    The row also has the share of the worst table.

    Args:
        budgets: budgets by name.
        trials: number of releases of each plan.
        seed: seed of the rows and the noise.
        names: names of the planners; None for all.
    """
    people = People(seed)
    for budget, limit in budgets.items():
        for name in PLANNERS if names is None else names:
            for workload, requested in WORKLOADS.items():
                for candidate in try_strategies(requested, Privacy(limit), name):
                    if candidate.plan is not None:
                        yield {
                            "strategy": name,
                            "budget": budget,
                            "noise": candidate.noise.value,
                            "estimate": "unbiased",
                            "queries": workload,
                            **_shares(candidate.plan, people, trials, seed),
                        }


def _outcome(plan: Plan, people: People, seed: int) -> Outcome:
    """Carry out a plan with a seed."""
    return Outcome(plan, simulate(plan.measured(), people.table, SeededEntropy(seed)))


def _shares(plan: Plan, people: People, trials: int, seed: int) -> Row:
    """Return the row of one plan over a number of trials."""
    inside: dict[str, list[float]] = {}
    exact: dict[str, Reals] = {}
    for trial in range(trials):
        release = build_release(_outcome(plan, people, seed + trial), Options(level=LEVEL))
        for table in release.tables:
            truth = exact.setdefault(table.id, people.answers(table.product))
            inside.setdefault(table.id, []).append(
                float(((table.low <= truth + 1e-9) & (truth <= table.high + 1e-9)).mean())
            )
    tables = [float(np.mean(shares)) for shares in inside.values()]
    cells = [exact[name].size for name in inside]
    return {
        "releases": trials,
        "coverage": float(np.average(tables, weights=cells)),
        "worst table": min(tables),
    }


def estimates(budgets: Mapping[str, Budget], trials: int, seed: int) -> Iterator[Row]:
    """Yield how often a true answer is within the stated half width of a biased column.

    For nnls there is also a row for the errors that nnls states.
    """
    people = People(seed)
    workload = marginals(DOMAIN, upto=2)
    for budget, limit in budgets.items():
        plan = make(workload, limit, strategy="marginals")
        shares_by_name: dict[str, list[float]] = {}
        for trial in range(trials):
            outcome = _outcome(plan, people, seed + trial)
            release = build_release(
                outcome,
                Options(
                    level=LEVEL, non_negative=True, integer=True, nnls=True, local_non_negative=True
                ),
            )
            for table in release.tables:
                truth = people.answers(table.product)
                half = (table.high - table.low) / 2
                nnls_width = None
                if table.nnls_rmse is not None:
                    nnls_width = 1.96 * table.nnls_rmse + 0.5
                columns = {
                    "non-negative": (table.non_negative, half),
                    "integer": (table.integer, half),
                    "nnls": (table.nnls, half),
                    "nnls, 1.96 nnls_rmse": (table.nnls, nnls_width),
                    "local non-negative": (table.local, half),
                }
                for name, (values, width) in columns.items():
                    if values is not None and width is not None:
                        shares_by_name.setdefault(name, []).append(
                            float((np.abs(values - truth) <= width + 1e-9).mean())
                        )
        for name, shares in shares_by_name.items():
            yield _row(
                plan.strategy,
                budget,
                plan.measured().noise.value,
                name,
                "marginals",
                trials,
                shares,
            )


def functions(
    budgets: Mapping[str, Budget], trials: int, seed: int, draws: int = 199
) -> Iterator[Row]:
    """Yield coverage of isotonic prefix sums, CDF bands, quantiles and means.

    A band counts if it covers all points, and quantiles count if all of them are covered.
    """
    people = People(seed)
    workload = queries(DOMAIN, b="prefix") + mean_queries(DOMAIN, "pay", by=["a"])
    answers = {product.measure: people.answers(product) for product in workload}
    prefix = answers[None]
    true_means = answers["pay"] / answers["count of pay"]
    share = prefix / prefix[-1]
    at = (0.25, 0.5, 0.75)
    exact = [int(np.searchsorted(share, level)) for level in at]
    for budget, limit in budgets.items():
        plan = make(workload, limit, strategy="hierarchy")
        shares_by_name: dict[str, list[float]] = {}
        for trial in range(trials):
            release = build_release(_outcome(plan, people, seed + trial), Options(level=LEVEL))
            estimate = Estimate(release.observation)
            table = release.tables[0]
            rising = monotone(table.answer, 0)
            shares_by_name.setdefault("isotonic", []).append(
                float((np.abs(rising - prefix) <= (table.high - table.low) / 2 + 1e-9).mean())
            )
            band = cdf(estimate, "b", level=LEVEL, draws=draws, seed=trial)
            shares_by_name.setdefault("cdf band", []).append(
                float(((band.low <= share + 1e-9) & (share <= band.high + 1e-9)).all())
            )
            quantiles = band.quantiles(at)
            is_covered = all(
                quantile.low <= value <= quantile.high
                for quantile, value in zip(quantiles, exact, strict=True)
            )
            shares_by_name.setdefault("quantile intervals", []).append(float(is_covered))
            mean = means(estimate, "pay", by=["a"], level=LEVEL)
            shares_by_name.setdefault("means", []).append(
                float(((mean.low <= true_means + 1e-9) & (true_means <= mean.high + 1e-9)).mean())
            )
        for name, shares in shares_by_name.items():
            yield _row(
                plan.strategy,
                budget,
                plan.measured().noise.value,
                name,
                "b" if name != "means" else "pay by a",
                trials,
                shares,
            )


def _row(
    strategy: str,
    budget: str,
    noise: str,
    estimate: str,
    query_name: str,
    trials: int,
    shares: list[float],
) -> Row:
    """Return a row of results."""
    mean = float(np.mean(shares))
    row = {
        "strategy": strategy,
        "budget": budget,
        "noise": noise,
        "estimate": estimate,
        "queries": query_name,
        "releases": trials,
    }
    return {**row, "coverage": mean, "worst table": mean}
