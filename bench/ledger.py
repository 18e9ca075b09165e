"""Compare the errors of several releases within one (epsilon, delta) budget.

It also measures the seconds that a ledger with many entries takes to check a payment.

    python bench/ledger.py

A ratio of 1 would mean that composing in mu gains nothing. Expected for 1, 2, 4, 12 and 52
    releases: 1.00, 1.40, 1.96, 3.39, 7.04.
"""

import math
import sys
import time
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import leastnoise as ln  # noqa: E402
from leastnoise._trusted.accounting import (  # noqa: E402
    SeriesCost,
    charge,
    is_within_budget,
    left_of_budget,
)

BUDGET = ln.ApproxDP(1, "1e-6")
COUNTS = (1, 2, 4, 12, 52)
ENTRIES = 1000


def root_mean_square_error(plan: ln.Plan) -> float:
    """Return the root mean square error of a plan's answers."""
    expected_error = plan.expected_error()
    return math.sqrt(
        expected_error.total_squared_error / sum(table.queries for table in expected_error.tables)
    )


def main() -> None:
    """Print one row for each number of releases, and the time for a long ledger."""
    domain = ln.Domain({f"x{number}": ln.Integers(0, 5) for number in range(6)})
    workload = ln.marginals(domain, ways=2)
    print("releases  sums of pairs  mu squared  ratio")
    for count in COUNTS:
        part = Fraction(1, count)
        pairs = root_mean_square_error(ln.plan(workload, BUDGET.scaled(part)))
        mu = root_mean_square_error(ln.plan(workload, BUDGET.share(part)))
        print(f"{count:8}  {pairs:13.2f}  {mu:10.2f}  {pairs / mu:5.2f}")
    share = BUDGET.share(Fraction(1, ENTRIES))
    charges = [charge(BUDGET, share, SeriesCost(share))] * ENTRIES
    start = time.perf_counter()
    covered = is_within_budget(BUDGET, charges)
    remaining = left_of_budget(BUDGET, charges)
    seconds = time.perf_counter() - start
    print(f"{ENTRIES} entries: within the budget {covered}, left {remaining}, {seconds:.3f} s")


if __name__ == "__main__":
    main()
