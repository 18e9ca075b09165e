"""Compare errors that need more than independent noise and one release with earlier methods.

    python bench/least_error.py [--only tables sizes ledger after quantiles] [--draws 200] [--first]

Prints the tables of docs/results/least-error.md. Every row has the expected standard error of the
plan or the error of releases, the best result without the method (a strategy by name, the sum of
epsilons and deltas, a plan without earlier releases, the distribution function), and the error of
OpenDP for the same task in the same run, if OpenDP is installed and supports it.

tables     one-way tables by K-norm noise
sizes      CPU seconds of groups of 1,000 cells
ledger     several releases under one (epsilon, delta)
after      a table that an earlier release measured
quantiles  quantiles by private choice
"""

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["LEASTNOISE_CACHE"] = "off"
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[_threads] = "1"

import numpy as np  # noqa: E402  # after the number of threads is set

DELTA = "1e-6"
# Sizes of the attributes, (epsilon, delta) or a pure budget of epsilon 1, and the goal: the exact
# error of a prototype.
TABLES = {
    "16 of 2": ([2] * 16, False, 7.56),
    "4 of 4": ([4] * 4, False, 3.56),
    "4 of 10": ([10] * 4, False, 4.63),
    "8 of 10": ([10] * 8, False, 8.92),
    "9, 16, 7, 15, 6, 5, 2, 2 (Adult, Q1)": ([9, 16, 7, 15, 6, 5, 2, 2], False, 7.79),
    "2, 2, 3, 4, 5, 6, 7, 8, 10, 16": ([2, 2, 3, 4, 5, 6, 7, 8, 10, 16], False, 9.10),
    "16 of 2 under delta": ([2] * 16, True, 7.56),
    "8 of 4 under delta": ([4] * 8, True, 6.37),
}
LARGE_GROUPS = {"50 of 20": [20] * 50, "4 of 250": [250] * 4, "500 of 2": [2] * 500}
ROWS = 2000
# Releases under one (epsilon, delta), and the gain that the composition in mu allows.
RELEASES = {2: 1.40, 4: 1.96, 12: 3.39, 52: 7.04}
QUANTILES = {"median": ["1/2"], "quartiles": ["1/4", "1/2", "3/4"]}
CELLS_OF_QUANTILES = 4096
ROWS_OF_QUANTILES = 10_000


def line(cells: Iterable[object]) -> str:
    """Return one row of a table in Markdown."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def heading(*names: str) -> str:
    """Return the first two rows of a table in Markdown, numbers to the right."""
    return line(names) + "\n|---|" + "--:|" * (len(names) - 1)


def opendp() -> Any:
    """Return OpenDP, or None where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    return dp


def domain_of(sizes: list[int]) -> Any:
    """Return a domain of complete attributes with these numbers of cells."""
    import leastnoise as ln

    kinds = {f"x{number}": ln.Coded(size) for number, size in enumerate(sizes)}
    return ln.Domain(kinds).as_complete()


def budget_of(*, has_delta: bool) -> Any:
    """Return epsilon 1, with delta or without."""
    import leastnoise as ln

    return ln.ApproxDP(1, DELTA) if has_delta else ln.PureDP(1)


def standard_error(plan: Any) -> float:
    """Return the root mean square error of all answers of a plan."""
    expected_error = plan.expected_error()
    queries = sum(table.queries for table in expected_error.tables)
    return math.sqrt(expected_error.total_squared_error / queries)


def random_rows(sizes: list[int], rows: int = ROWS) -> Any:
    """Return a table of random codes."""
    import pyarrow as pa

    rng = np.random.default_rng(1)
    return pa.table(
        {f"x{number}": rng.integers(0, size, rows) for number, size in enumerate(sizes)}
    )


def error_of_releases(plan: Any, workload: Any, rows: Any, exact: list[Any], draws: int) -> float:
    """Return the root mean square error of released answers over many seeds."""
    import leastnoise as ln

    squares = []
    for seed in range(draws):
        release = ln.release(plan, rows, seed=seed)
        for table, truth in zip(release.answer(workload), exact, strict=True):
            squares.append((table.answer - truth).ravel() ** 2)
    return math.sqrt(np.concatenate(squares).mean())


def exact_one_way(rows: Any, sizes: list[int]) -> list[Any]:
    """Return the true one-way tables."""
    return [
        np.bincount(rows[f"x{number}"].to_numpy(), minlength=size)
        for number, size in enumerate(sizes)
    ]


def opendp_error(sizes: list[int], draws: int, *, has_delta: bool) -> float | None:
    """Return the error of OpenDP's noise on one-way tables: the better kind of noise."""
    dp = opendp()
    if dp is None:
        return None
    number = len(sizes)
    cells = [0] * sum(sizes)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    makers = [dp.m.make_laplace(*space, scale=float(number))]
    if has_delta:
        makers.append(gaussian_of_opendp(dp, number, 1))
    errors = []
    for measurement in makers:
        noise = np.array([measurement(cells) for _ in range(draws)], dtype=float)
        errors.append(math.sqrt((noise**2).mean()))
    return min(errors)


def gaussian_of_opendp(dp: Any, number: int, releases: int) -> Any:
    """Return OpenDP's Gaussian noise for a number of tables in each of some releases.

    All releases together cost epsilon 1 and delta.
    """
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)

    def all_releases(scale: float) -> Any:
        """Return Gaussian noise of a scale, composed over all releases."""
        gaussian = dp.m.make_gaussian(*space, scale=scale)
        composed = dp.c.make_composition([gaussian] * releases)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(composed), float(DELTA))

    scale = dp.binary_search_param(
        all_releases, d_in=math.sqrt(number), d_out=(1.0, float(DELTA)), T=float
    )
    return dp.m.make_gaussian(*space, scale=scale)


def shown(value: float | None) -> str:
    """Return a number with three decimals, or a dash."""
    return "-" if value is None else f"{value:.3f}"


def tables(draws: int) -> Iterator[str]:
    """One-way tables: K-norm noise, the best other strategy, and OpenDP."""
    import leastnoise as ln

    yield heading(
        "tables", "strategy", "promised", "goal", "releases", "best other", "its error",
        "error / other", "OpenDP", "CPU s of the plan",
    )  # fmt: skip
    for name, (sizes, has_delta, goal) in TABLES.items():
        workload = ln.marginals(domain_of(sizes), ways=1)
        budget = budget_of(has_delta=has_delta)
        start = time.process_time()
        plan = ln.plan(workload, budget)
        seconds = time.process_time() - start
        other_name, other_error = best_other(workload, budget)
        rows = random_rows(sizes)
        released_error = error_of_releases(plan, workload, rows, exact_one_way(rows, sizes), draws)
        expected = standard_error(plan)
        peer_error = opendp_error(sizes, draws, has_delta=has_delta)
        yield line(
            [name, f"`{plan.strategy}`", shown(expected), goal, shown(released_error),
             f"`{other_name}`", shown(other_error), shown(expected / other_error),
             shown(peer_error), f"{seconds:.1f}"]
        )  # fmt: skip


def best_other(workload: Any, budget: Any) -> tuple[str, float]:
    """Return the best automatic strategy with independent noise, and its error."""
    import leastnoise as ln
    from leastnoise._strategies import PLANNERS

    errors = {}
    for name, planner in PLANNERS.items():
        if planner.automatic and name != "k_norm":
            try:
                errors[name] = standard_error(ln.plan(workload, budget, strategy=name))
            except ln.InputError:
                continue  # the strategy does not apply
    best_name = min(errors, key=lambda name: errors[name])
    return best_name, errors[best_name]


def sizes(_: int) -> Iterator[str]:
    """CPU seconds of groups of 1,000 cells: to plan, and to draw the noise of a release."""
    import leastnoise as ln

    yield heading("tables", "strategy", "standard error", "CPU s of the plan", "CPU s of a release")
    for name, cells in LARGE_GROUPS.items():
        workload = ln.marginals(domain_of(cells), ways=1)
        start = time.process_time()
        plan = ln.plan(workload, ln.PureDP(1), strategy="k_norm")
        planned = time.process_time()
        ln.release(plan, random_rows(cells, 200), seed=1)
        released = time.process_time()
        yield line(
            [name, f"`{plan.strategy}`", shown(standard_error(plan)), f"{planned - start:.1f}",
             f"{released - planned:.1f}"]
        )  # fmt: skip


def ledger(_: int) -> Iterator[str]:
    """Errors of one of several releases of 15 tables of 36 cells under one (epsilon, delta)."""
    import leastnoise as ln

    yield heading(
        "releases", "error of each, shares of mu", "equal parts of epsilon and delta",
        "parts / shares", "goal", "shares of mu, equal noise in all tables", "OpenDP, zCDP",
        "paid from one ledger",
    )  # fmt: skip
    cells = [6] * 6
    workload = ln.marginals(domain_of(cells), ways=2)
    budget = ln.ApproxDP(1, DELTA)
    rows = random_rows(cells)
    for count, goal in RELEASES.items():
        shared = ln.plan(workload, budget.share(Fraction(1, count)))
        parts = standard_error(ln.plan(workload, budget.scaled(Fraction(1, count))))
        even = ln.plan(workload, budget.share(Fraction(1, count)), strategy="workload_even")
        error = standard_error(shared)
        dp = opendp()
        peer = None if dp is None else error_of_composition(dp, count)
        paid = paid_releases(shared, rows, budget, count)
        yield line(
            [count, shown(error), shown(parts), shown(parts / error), goal,
             shown(standard_error(even)), shown(peer), paid]
        )  # fmt: skip


def error_of_composition(dp: Any, count: int) -> float:
    """Return the error of 15 tables in each of several releases by OpenDP's composition."""
    gaussian = gaussian_of_opendp(dp, 15, count)
    cells = [0] * (15 * 36)
    noise = np.array([gaussian(cells) for _ in range(40)], dtype=float)
    return math.sqrt((noise**2).mean())


def paid_releases(plan: Any, rows: Any, budget: Any, count: int) -> int:
    """Return how often a ledger with the whole budget pays for the plan, up to ``count + 1``."""
    import leastnoise as ln

    with tempfile.TemporaryDirectory() as folder:
        ledger_file = ln.Ledger.create(Path(folder) / "rows.ledger", "rows", ln.Privacy(budget))
        paid = 0
        for _ in range(count + 1):
            try:
                ln.release(plan, rows, ledger=ledger_file)
            except ln.BudgetError:
                break
            paid += 1
    return paid


def after(draws: int) -> Iterator[str]:
    """Errors of tables that an earlier release at the same budget measured."""
    import leastnoise as ln

    yield heading(
        "tables", "budget", "first release", "second, `after` the first", "second / first", "goal",
        "both in releases / first",
    )  # fmt: skip
    cells = [6, 8, 10]
    domain = domain_of(cells)
    workloads = {
        "one table of 60 cells": ln.queries(domain, x0="identity", x2="identity"),
        "all tables of two attributes": ln.marginals(domain, ways=2),
        "prefix sums of 10 cells": ln.queries(domain, x2="prefix"),
    }
    budgets: dict[str, Any] = {"epsilon 1": ln.PureDP(1), "rho 1/8": ln.ZCDP("1/8")}
    rows = random_rows(cells)
    for name, workload in workloads.items():
        exact = [
            np.rint(table.answer)
            for table in ln.release(ln.plan(workload, ln.ZCDP(500)), rows, seed=1).tables
        ]
        for budget_name, budget in budgets.items():
            first = ln.plan(workload, budget)
            released_error = seen_after_earlier(first, workload, rows, exact, draws)
            error = standard_error(first)
            second = ln.plan(workload, budget, after=[ln.release(first, rows, seed=1)])
            second_error = standard_error(second)
            yield line(
                [name, budget_name, shown(error), shown(second_error), shown(second_error / error),
                 f"{math.sqrt(0.5):.3f}", shown(released_error / error)]
            )  # fmt: skip


def seen_after_earlier(first: Any, workload: Any, rows: Any, exact: Any, draws: int) -> float:
    """Return the root mean square error of second releases, each after another first one."""
    import leastnoise as ln

    squares = []
    for seed in range(max(1, draws // 4)):
        earlier = ln.release(first, rows, seed=seed)
        plan = ln.plan(workload, first.privacy, after=[earlier])
        release = ln.release(plan, rows, seed=10**6 + seed)
        for table, truth in zip(release.tables, exact, strict=True):
            squares.append((table.answer - truth).ravel() ** 2)
    return math.sqrt(np.concatenate(squares).mean())


def quantiles(draws: int) -> Iterator[str]:
    """Distances of quantiles from their ranks: choice, distribution function, OpenDP."""
    import pyarrow as pa

    import leastnoise as ln

    yield heading(
        "quantiles", "distribution function (`auto`), epsilon 1",
        "`selected_quantiles`, epsilon 1", "the same, epsilon 2 (epsilon 1 for the choice)",
        "goal", "OpenDP, epsilon 1",
    )  # fmt: skip
    rng = np.random.default_rng(1)
    values = rng.gamma(2, 400, ROWS_OF_QUANTILES).astype(int).clip(0, CELLS_OF_QUANTILES - 1)
    rows = pa.table({"pay": values})
    ordered = np.sort(values)
    domain = ln.Domain(pay=ln.Integers(0, CELLS_OF_QUANTILES - 1)).as_complete()
    for name, goal in (("median", 0.5), ("quartiles", 2.2)):
        shares = QUANTILES[name]
        workload = ln.quantile_queries(domain, "pay", shares)
        distances = []
        for strategy, budget in (("auto", 1), ("selected_quantiles", 1), ("selected_quantiles", 2)):
            plan = ln.plan(workload, ln.PureDP(budget), strategy=strategy)
            released = [
                ln.release(plan, rows, seed=seed).statistics[0].frame("pandas")["quantile"]
                for seed in range(draws)
            ]
            distances.append(mean_distance(ordered, shares, released))
        dp = opendp()
        if dp is not None:
            choose = opendp_quantiles(dp, shares, values.tolist())
            distances.append(mean_distance(ordered, shares, [choose() for _ in range(draws)]))
        yield line([name, *(f"{distance:.2f}" for distance in distances[:3]), goal,
                    *(f"{distance:.2f}" for distance in distances[3:])])  # fmt: skip


def mean_distance(ordered: Any, shares: list[str], released: Any) -> float:
    """Return the mean number of rows between quantiles and their ranks."""
    distances = []
    for values in released:
        for share, value in zip(shares, values, strict=True):
            rank = float(Fraction(share)) * len(ordered)
            below = np.searchsorted(ordered, value, side="left")
            up_to = np.searchsorted(ordered, value, side="right")
            distances.append(max(0.0, below - rank, rank - up_to))
    return float(np.mean(distances))


def opendp_quantiles(dp: Any, shares: list[str], values: list[int]) -> Callable[[], list[int]]:
    """Return a function that draws quantiles with OpenDP, epsilon 1 for all of them."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    candidates = list(range(CELLS_OF_QUANTILES))
    choices = []
    for share in shares:

        def chosen(scale: float, alpha: float = float(Fraction(share))) -> Any:
            """Return OpenDP's choice of one quantile with a scale."""
            return dp.m.make_private_quantile(
                *space, dp.max_divergence(), candidates=candidates, alpha=alpha, scale=scale
            )

        epsilon = 1.0 / len(shares)
        scale = dp.binary_search_param(chosen, d_in=1, d_out=epsilon, T=float)
        choices.append(chosen(scale))
    return lambda: [choose(values) for choose in choices]


PARTS: dict[str, Callable[[int], Iterator[str]]] = {
    "tables": tables,
    "sizes": sizes,
    "ledger": ledger,
    "after": after,
    "quantiles": quantiles,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", action="store_true", help="only the first row of each table")
    options = parser.parse_args()
    for name in options.only:
        print(f"\n{name}\n", flush=True)
        rows = PARTS[name](options.draws)
        for row in islice(rows, 2 if options.first else None):
            print(row, flush=True)


if __name__ == "__main__":
    main()
