"""Compare the automatic plan with all published errors of the matrix mechanism.

The numbers are published, or measured with the released programs; both kinds of budget.

    python bench/matrix_mechanism.py [--quick] [--only TEXT] [--most-cells 4096] [--data DIR]
    [--csv FILE] [--prefix-release [N]]

Prints a line for each case with our error / the published error, the ratio of root mean square
errors at unit budget (epsilon = 1 without the factor 2, or a Gaussian of standard deviation 1). The
goal is a ratio of at most 1.000. The program plans workloads in the forms that users write: by
name, as ranges, and as a matrix. ``--quick`` leaves out cases with more than 256 cells.
``--prefix-release`` compares the time of a release of all prefix sums at n = 2^20 with the time to
sample its noise.

Errors are measured at a small budget, where discrete noise has the variance of continuous noise.
"""

import argparse
import csv
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leastnoise._domain import Coded, Domain, Integers
from leastnoise._mechanisms import Search, choose_plan, try_strategies
from leastnoise._plan import Plan
from leastnoise._trusted.accounting import ZCDP, Privacy, PureDP
from leastnoise._trusted.linop import AllRanges, Prefix, all_range_ends, dense
from leastnoise._workload import (
    Product,
    QuerySet,
    Workload,
    all_ranges,
    identity,
    marginals,
    matrix,
    prefix,
    queries,
    ranges,
)

# At these budgets scales are in the hundreds or more, so that discrete noise has nearly the
# variance of continuous noise.
_EPSILON = "1/1000"
_RHO = "1/2000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload with the error to reach.

    Args:
        name: description of the workload.
        cells: number of cells of the longest attribute.
        workload: function that builds the workload, called when the case is run.
        power: 1 for pure differential privacy, 2 for a Gaussian budget.
        published: published root mean square error at unit budget.
        source: section with the published error.
        strategies: strategies to plan by name as well, because ``auto`` leaves them out at this
            size.
    """

    name: str
    cells: int
    workload: Callable[[], Workload]
    power: int
    published: float
    source: str
    strategies: tuple[str, ...] = ()


def line(size: int) -> Domain:
    """Return a domain with one attribute of ``size`` cells."""
    return Domain(x=Integers(0, size - 1)).as_complete()


def widths(size: int) -> QuerySet:
    """Return all ranges of 32 cells."""
    return ranges([(low, low + 31) for low in range(size - 31)])


def permuted(size: int) -> QuerySet:
    """Return all ranges over permuted cells, as a matrix.

    The permutation is numpy's legacy random order 0.
    """
    low, high = all_range_ends(size)
    order = np.random.RandomState(0).permutation(size)
    cells = np.arange(size)
    rows = ((cells >= low[:, None]) & (cells <= high[:, None])).astype(np.int64)[:, order]
    return matrix(rows.tolist())


def cells_and_total(size: int) -> Workload:
    """Return a workload of every cell and the total."""
    return queries(line(size), x="identity") + queries(line(size))


def build_along(size: int, build_queries: Callable[[], QuerySet]) -> Callable[[], Workload]:
    """Return a function that builds a workload on one attribute."""
    return lambda: queries(line(size), x=build_queries())


def query_set_forms(size: int, kind: str) -> Iterator[tuple[str, Callable[[], QuerySet]]]:
    """Yield forms of the same queries: by name, as ranges, and as a matrix if it is small."""
    if kind == "prefix":
        yield "prefix", prefix
        yield "prefix, as ranges", lambda: ranges([(0, high) for high in range(size)])
        if size <= 1024:
            yield "prefix, as a matrix", lambda: matrix(dense(Prefix(size)).tolist())
    elif kind == "ranges":
        yield "all ranges", all_ranges
        if size <= 1024:
            yield (
                "all ranges, as ranges",
                lambda: ranges(
                    list(zip(*(bounds.tolist() for bounds in all_range_ends(size)), strict=True))
                ),
            )
        if size <= 256:
            yield "all ranges, as a matrix", lambda: matrix(_interval_rows(size))
    elif kind == "width32":
        yield "ranges of 32", lambda: widths(size)
        if size <= 1024:
            yield "ranges of 32, as a matrix", lambda: matrix(_window_rows(size))
    elif size <= 256:
        yield "permuted ranges, as a matrix", lambda: permuted(size)


def _interval_rows(size: int) -> list[list[int]]:
    """Return a row of 0 and 1 for each interval."""
    low, high = all_range_ends(size)
    cells = np.arange(size)
    rows: list[list[int]] = (
        ((cells >= low[:, None]) & (cells <= high[:, None])).astype(np.int64).tolist()
    )
    return rows


def _window_rows(size: int) -> list[list[int]]:
    """Return a row of 0 and 1 for each window of 32 cells."""
    cells = np.arange(size)
    return [((cells >= low) & (cells <= low + 31)).astype(int).tolist() for low in range(size - 31)]


# The smallest error of any published or released method (p-Identity of hdmm or our own);
# docs/results/matrix-mechanism.md.
PURE = {
    64: {"prefix": 3.763, "ranges": 3.926, "width32": 4.159, "permuted": 3.928, "idtotal": 1.342},
    128: {"prefix": 4.451, "ranges": 4.752},
    256: {"prefix": 5.199, "ranges": 5.700, "width32": 4.482, "permuted": 5.704, "idtotal": 1.227},
    512: {"prefix": 7.817, "ranges": 8.444},
    1024: {"prefix": 6.786, "ranges": 7.868, "width32": 4.535, "permuted": 7.899, "idtotal": 1.146},
    4096: {"prefix": 8.95, "ranges": 10.9, "width32": 4.567, "idtotal": 1.093},
}
GAUSSIAN = {
    64: {"prefix": 2.0999, "ranges": 2.3022, "width32": 2.067},
    128: {"prefix": 2.3110, "ranges": 2.5990},
    256: {"prefix": 2.5244, "ranges": 2.9014, "width32": 2.354},
    512: {"prefix": 2.7395, "ranges": 3.2073},
    1024: {"prefix": 2.955, "ranges": 3.515, "width32": 2.385},
    2048: {"prefix": 3.96, "ranges": 3.850},
    4096: {"prefix": 4.13, "ranges": 4.134, "width32": 2.396},
}
# The smallest error of OPT_kron, OPT_M and OPT_+ of hdmm: pure and Gaussian.
SEVERAL = {
    "prefix x prefix, 64 x 64": (14.21, 4.409),
    "prefix x prefix, 256 x 256": (27.05, 6.373),
    "ranges x ranges, 64 x 64": (16.52, 5.300),
    "ranges x ranges, 256 x 256": (32.60, 8.418),
    "Adult, 2-way": (6.454, 2.366),
    "Adult, 3-way": (5.665, 2.257),
    "Adult, 2- and 3-way": (6.664, 2.456),
    "Adult, 1- to 3-way": (6.965, 2.492),
    "Adult, 2-way with prefix on 75, 16, 20": (39.21, 7.057),
    "10^8, 1-way": (7.642, 2.702),
    "10^8, 2-way": (25.60, 4.838),
    "10^8, 3-way": (46.39, 6.570),
    "10^8, 4-way": (52.99, 7.088),
    "CPS, cells and totals": (3.421, 1.859),
    "CPS, prefix on income and age": (28.68, 6.976),
    "Census SF1 persons": (5.163, 2.321),
    "Census SF1 persons, 51 states": (7.303, 2.578),
}
_QUICK_SEVERAL = (
    "prefix x prefix, 64 x 64",
    "ranges x ranges, 64 x 64",
    "Adult, 2-way",
    "10^8, 1-way",
    "CPS, cells and totals",
)


def one_attribute() -> Iterator[Case]:
    """Yield the cases with one attribute."""
    for power, table in ((1, PURE), (2, GAUSSIAN)):
        for size, numbers in table.items():
            if power == 1:
                slow_strategies = ("p_identity",)
            else:
                slow_strategies = ("gaussian_optimum",)
            for kind, published in numbers.items():
                if power == 1:
                    source = "8.2, 12.1"
                else:
                    source = "7.1, 8.1, 12.2"
                strategies = slow_strategies if size > 1024 else ()
                if kind == "idtotal":
                    yield Case(
                        name=f"cells and total, n = {size}",
                        cells=size,
                        workload=lambda size=size: cells_and_total(size),  # type: ignore[misc]
                        power=power,
                        published=published,
                        source=source,
                        strategies=strategies,
                    )
                    continue
                for form, build_queries in query_set_forms(size, kind):
                    yield Case(
                        name=f"{form}, n = {size}",
                        cells=size,
                        workload=build_along(size, build_queries),
                        power=power,
                        published=published,
                        source=source,
                        strategies=strategies,
                    )


def several_attributes(schemas: Path) -> Iterator[Case]:
    """Yield the cases with several attributes."""
    for name, numbers in SEVERAL.items():
        if name.startswith("Census") and not (schemas / "census_sf1_person.json").exists():
            print(f"{name}: left out, because {schemas} has no census_sf1_person.json")
            continue
        for power, published in zip((1, 2), numbers, strict=True):
            quick = name in _QUICK_SEVERAL
            yield Case(
                name=name,
                cells=256 if quick else 257,
                workload=lambda name=name: several(name, schemas),  # type: ignore[misc]
                power=power,
                published=published,
                source="12.3",
            )


def several(name: str, schemas: Path) -> Workload:
    """Build a workload on several attributes by its name in ``SEVERAL``."""
    if " x " in name.split(",", maxsplit=1)[0]:
        size = int(name.rsplit(" ", 1)[1])
        plane = Domain(x=Integers(0, size - 1), y=Integers(0, size - 1)).as_complete()
        if name.startswith("prefix"):
            query_set = prefix()
        else:
            query_set = all_ranges()
        return queries(plane, x=query_set, y=query_set)
    if name.startswith("Adult"):
        people = Domain(
            age=Coded(75), education=Coded(16), race=Coded(5), sex=Coded(2), hours=Coded(20)
        ).as_complete()
        if "prefix" in name:
            return _pairs(people, ("age", "education", "hours"))
        return _summed(
            marginals(people, ways=ways)
            for ways in {"2-way": (2,), "3-way": (3,), "2- and 3-way": (2, 3)}.get(
                name.split(", ")[1], (1, 2, 3)
            )
        )
    if name.startswith("10^8"):
        return marginals(
            Domain({f"a{number}": Coded(10) for number in range(8)}).as_complete(),
            ways=int(name.split(", ")[1][0]),
        )
    if name.startswith("CPS"):
        people = Domain(
            income=Coded(50), age=Coded(100), marital=Coded(7), race=Coded(4), sex=Coded(2)
        ).as_complete()
        if "prefix" not in name:
            return marginals(people, upto=5)
        unordered = ("marital", "race", "sex")
        subsets = itertools.chain.from_iterable(
            itertools.combinations(unordered, ways) for ways in range(4)
        )
        return _summed(
            queries(people, income="prefix", age="prefix", **dict.fromkeys(names, "identity"))
            for names in subsets
        )
    return census(schemas, with_states="states" in name)


def _pairs(people: Domain, ordered: Sequence[str]) -> Workload:
    """Build the tables of all pairs of attributes: prefix sums if ordered, else cells."""
    return _summed(
        queries(people, **{name: "prefix" if name in ordered else "identity" for name in pair})
        for pair in itertools.combinations(people.names, 2)
    )


def _summed(parts: Iterator[Workload]) -> Workload:
    """Combine workloads into one."""
    products: list[Product] = []
    domain = None
    for part in parts:
        products += part.products
        domain = part.domain
    if domain is None:
        raise ValueError("a workload needs at least one part")
    return Workload(domain, tuple(products))


def census(schemas: Path, *, with_states: bool) -> Workload:
    """Build the 33 products of the Census SF1 person tables.

    ``identitytotal`` is written as two products.
    """
    schema = json.loads((schemas / "census_sf1_person.json").read_text(encoding="utf-8"))
    sizes = {entry["name"]: entry["size"] for entry in schema["attributes"]}
    names = list(sizes)
    domain = Domain(
        {
            name: Coded(size)
            for name, size in ({"state": 51} | sizes if with_states else sizes).items()
        }
    ).as_complete()

    def choices(name: str, word: str) -> list[QuerySet | None]:
        """Return the query sets that a word of the schema stands for."""
        if word == "total":
            return [None]
        if word == "identity":
            return [identity()]
        if word == "identitytotal":
            return [identity(), None]
        rows = np.zeros((len(schema["groups"][word]["cells"]), sizes[name]), dtype=int)
        for row, cells in zip(rows, schema["groups"][word]["cells"], strict=True):
            row[cells] = 1
        return [matrix(rows.tolist())]

    parts = []
    for product in (product for table in schema["tables"].values() for product in table):
        sets = [choices(name, word) for name, word in zip(names, product, strict=True)]
        for chosen in itertools.product(*sets, *([[identity(), None]] if with_states else [])):
            query_sets = {
                name: one_set
                for name, one_set in zip([*names, "state"], chosen, strict=False)
                if one_set is not None
            }
            parts.append(queries(domain, query_sets))
    return _summed(iter(parts))


def unit_rmse(plan: Plan, workload: Workload, power: int) -> float:
    """Return the unweighted root mean square error at unit budget."""
    total = plan.expected_error().total_squared_error / workload.rows
    if power == 1:
        budget = float(PureDP(_EPSILON).epsilon) ** 2 / 2
    else:
        budget = 2 * float(ZCDP(_RHO).rho)
    return math.sqrt(total * budget)


def run(case: Case) -> tuple[float, str, float, float]:
    """Plan a case; return its error, strategy, lower bound and planning seconds."""
    workload = case.workload()
    privacy = Privacy(PureDP(_EPSILON) if case.power == 1 else ZCDP(_RHO))
    start = time.perf_counter()
    plans = [choose_plan(workload, privacy)[0]]
    for name in case.strategies:
        plans += [
            candidate.plan
            for candidate in try_strategies(workload, privacy, name)
            if candidate.plan is not None
        ]
    seconds = time.perf_counter() - start
    best_plan = min(plans, key=lambda plan: plan.expected_error().total_squared_error)
    error = unit_rmse(best_plan, workload, case.power)
    expected_error = best_plan.expected_error()
    if expected_error.lower_bound > 0:
        bound = error * math.sqrt(expected_error.lower_bound / expected_error.total_squared_error)
    else:
        bound = math.nan
    return error, best_plan.strategy, bound, seconds


def permuted_by_gram(size: int, published: float) -> None:
    """Plan the permuted ranges at 1024 cells from their Gram matrix.

    The matrix itself would have 5 * 10^8 entries.
    """
    from leastnoise._families import dense_gram, gram_of
    from leastnoise._families._p_identity import fit_p_identity, p_identity_rmse

    order = np.random.RandomState(0).permutation(size)
    gram = dense_gram(
        gram_of(AllRanges(size)).dense()[np.ix_(order, order)], size * (size + 1) // 2
    )
    start = time.perf_counter()
    strategy = fit_p_identity(gram)
    error = p_identity_rmse(gram, strategy.diagonal, strategy.rows)
    show(
        f"permuted ranges, by Gram, n = {size}",
        1,
        error,
        published,
        math.nan,
        "p_identity",
        time.perf_counter() - start,
        "12.1",
    )


def show(
    name: str,
    power: int,
    error: float,
    published: float,
    bound: float,
    strategy: str,
    seconds: float,
    source: str,
) -> None:
    """Print a line of the table."""
    mark = " " if error <= published * 1.0005 else "!"
    budget = "pure" if power == 1 else "Gaussian"
    ratio = error / published
    print(
        f"{mark} {name:<42} {budget:<8} {error:9.4f} / {published:<8g} = {ratio:6.4f}  bound "
        f"{bound:7.3f}  {strategy:<20}"
        f"{seconds:7.1f} s  [{source}]",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> list[tuple[str, int, float]]:
    """Print the table; return the name, power and ratio of every case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="only cases of at most 256 cells")
    parser.add_argument("--most-cells", type=int, default=4096)
    parser.add_argument("--only", default="", help="only cases with this text in their name")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(),
        help="folder with census_sf1_person.json  [default: the current folder]",
    )
    parser.add_argument("--csv", type=Path, help="also write the table to this file")
    parser.add_argument(
        "--prefix-release",
        type=int,
        nargs="?",
        const=2**20,
        metavar="N",
        help="only measure a release of all prefix sums at n = 2^20, or N",
    )
    options = parser.parse_args(arguments)
    if options.prefix_release:
        prefix_release(options.prefix_release)
        return []
    most_cells = 256 if options.quick else options.most_cells
    ratios = []
    rows = []
    for case in [*one_attribute(), *several_attributes(options.data)]:
        if case.cells > most_cells or options.only not in case.name:
            continue
        try:
            error, strategy, bound, seconds = run(case)
        except Exception as fault:  # noqa: BLE001 - a fault in one case must not hide the others
            print(f"! {case.name}: {type(fault).__name__}: {fault}", flush=True)
            ratios.append((case.name, case.power, math.inf))
            continue
        show(case.name, case.power, error, case.published, bound, strategy, seconds, case.source)
        ratios.append((case.name, case.power, error / case.published))
        rows.append(
            [
                case.name,
                case.power,
                error,
                case.published,
                error / case.published,
                bound,
                strategy,
                seconds,
                case.source,
            ]
        )
    if most_cells >= 1024 and options.only in "permuted":
        permuted_by_gram(1024, PURE[1024]["permuted"])
    above = [entry for entry in ratios if entry[2] > 1.0005]
    print(
        f"{len(ratios)} numbers, {len(ratios) - len(above)} reached; largest ratio "
        f"{max((entry[2] for entry in ratios), default=math.nan):.4f}"
    )
    if options.csv is not None:
        with options.csv.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(
                [
                    "workload",
                    "power",
                    "ours",
                    "theirs",
                    "ratio",
                    "bound",
                    "strategy",
                    "seconds",
                    "source",
                ]
            )
            table.writerows(rows)
    return ratios


def prefix_release(size: int) -> None:
    """Release all prefix sums, and print the CPU seconds of the steps.

    The reference is the time to draw the plan's noise. The goal is for the first of the two
    strategies, which runs before any lazy import and with empty caches.
    """
    from leastnoise._estimation import Estimate
    from leastnoise._trusted.kernel import SeededEntropy, simulate
    from leastnoise._trusted.kernel._noise import discrete_laplace
    from leastnoise._trusted.table import Table

    workload = queries(line(size), x="prefix")
    cells = np.random.default_rng(0).integers(0, size, 10**6).astype(np.uint32)
    truth = np.cumsum(np.bincount(cells, minlength=size))
    table = Table(workload.domain, {"x": cells})
    for strategy in ("level_tree", "hierarchy"):
        marks = [time.process_time()]
        plan = choose_plan(workload, Privacy(PureDP(1)), Search(strategy))[0]
        marks.append(time.process_time())
        observation = simulate(plan.measured(), table, SeededEntropy(1))
        marks.append(time.process_time())
        estimate = Estimate(observation)
        estimate.marginal(("x",))
        marks.append(time.process_time())
        answer = estimate.estimate(workload.products[0])
        answers = answer.values
        variances = answer.noise_std**2
        marks.append(time.process_time())
        measured = plan.measured()
        (block,) = measured.blocks
        scales = block.scale.denominator * block.row_weights()
        start = time.process_time()
        discrete_laplace(
            np.full(block.rows, block.scale.numerator * measured.grid),
            scales,
            block.rows,
            SeededEntropy(2),
        )
        noise = time.process_time() - start
        parts = dict(zip(("plan", "measure", "estimate", "answers"), np.diff(marks), strict=True))
        total_seconds = sum(parts.values())
        if strategy == "level_tree":
            goal = " (goal: below 10)"
        else:
            goal = ""
        print(
            f"{strategy:<10} n = {size}: {total_seconds:.3f} s "
            f"({', '.join(f'{name} {value:.3f}' for name, value in parts.items())}); "
            f"noise {noise:.3f} s for {block.rows} rows; {total_seconds / noise:.1f} times{goal}",
            flush=True,
        )
        root = math.sqrt(float(variances.mean()))
        error = math.sqrt(float(np.mean((answers - truth) ** 2)))
        print(
            f"           expected rmse {root:.3f}, error of this release {error:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
