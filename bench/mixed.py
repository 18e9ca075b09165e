"""Compare Gaussian plans for tables with prefix sums and ranges with published errors.

A ratio of at most 1.00 reaches the published error. Seconds are of planning.

    python bench/mixed.py [--quick] [--only TEXT]

Figures are root mean square errors of a query at privacy cost 1 (rho = 1/2), of plans that measure
queries with whole numbers.
"""

import argparse
import itertools
import math
import time
from collections.abc import Callable, Iterator
from functools import partial

import leastnoise as ln
from leastnoise._workload import Product

# Smallest published errors of prefix sums on the first attributes and cells on the others, for 1-,
# 2-, 3- and up to 3-way tables.
PREFIX = {
    "Adult": (
        (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2),
        5,
        (4.998, 16.801, 43.753, 43.685),
    ),
    "CPS": ((50, 100, 7, 4, 2), 2, (3.066, 5.818, 7.302, 7.568)),
    "Loans": ((101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15), 4, (4.619, 14.200, 33.438, 33.393)),
}
# 40 attributes of n cells, 1- and 2-way.
SIZES = (10, 20, 30, 40, 50)
FORTY = {
    "identity": (23.48, 25.70, 26.46, 26.84, 27.07),
    "prefix": (33.69, 49.38, 59.66, 67.46, 73.80),
    "all_ranges": (41.08, 63.31, 78.78, 90.90, 100.96),
}


def workload(shape: tuple[int, ...], rich: int, ways: tuple[int, ...], kind: str) -> ln.Workload:
    """Build all tables of some numbers of attributes.

    The first ``rich`` attributes have queries of one kind, the others cells.
    """
    attributes: dict[str, ln.Integers | ln.Coded] = {}
    for i, size in enumerate(shape):
        attributes[f"a{i}"] = ln.Integers(0, size - 1) if i < rich else ln.Coded(size)
    domain = ln.Domain(attributes).as_complete()
    products: list[Product] = []
    for count in ways:
        if count == 0:
            products += ln.marginals(domain, ways=0).products
            continue
        for chosen in itertools.combinations(range(len(shape)), count):
            query_sets = {f"a{i}": kind if i < rich else "identity" for i in chosen}
            products += ln.queries(domain, **query_sets).products
    return ln.Workload(domain, tuple(products))


def lines(*, quick: bool, only: str) -> Iterator[str]:
    """Yield all comparisons as lines."""
    return (
        f"{name}  {_compare(build_workload(), strategy, figure)}"
        for name, build_workload, strategy, figure in cases(quick=quick)
        if only in name
    )


def cases(*, quick: bool) -> Iterator[tuple[str, Callable[[], ln.Workload], str, float]]:
    """Yield the name, workload, strategy and published error of each case."""
    for name, (shape, rich, figures) in PREFIX.items():
        for ways, figure in zip(((1,), (2,), (3,), (0, 1, 2, 3)), figures, strict=True):
            yield (
                f"{name:5} {'+'.join(map(str, ways)):7} prefix",
                partial(workload, shape, rich, ways, "prefix"),
                "tilted",
                figure,
            )
    for kind, published in FORTY.items():
        for size, figure in zip(SIZES, published, strict=True):
            if not (quick and kind == "all_ranges" and size > SIZES[1]):
                if kind == "identity":
                    strategy = "residual"
                else:
                    strategy = "tilted"
                yield (
                    f"{size}^40 1+2 {kind:10}",
                    partial(workload, (size,) * 40, 40, (1, 2), kind),
                    strategy,
                    figure,
                )


def _compare(workload: ln.Workload, strategy: str, figure: float) -> str:
    """Plan a workload; return the columns of its line."""
    start = time.process_time()
    plan = ln.plan(workload, ln.ZCDP("1/2"), strategy=strategy)
    seconds = time.process_time() - start
    rmse = math.sqrt(plan.expected_error().total_squared_error / workload.rows)
    return f"ours/published {rmse / figure:.4f}  {rmse:8.3f}  {seconds:5.1f} s"


def main() -> None:
    """Print the comparisons, a line at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no ranges beyond 20 cells")
    parser.add_argument(
        "--only", default="", help="only workloads with this text in their name, such as 'Adult 1 '"
    )
    options = parser.parse_args()
    for line in lines(quick=options.quick, only=options.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
