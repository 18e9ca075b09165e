"""Measure the cost of hidden cells: plans with and without missing values.

    python bench/missing.py [--seconds 5] [--cases 5 16 ...]

Each case has all marginals of up to one or two attributes, under a pure budget and rho. The printed
ratio divides the root mean square error of published answers by the error for complete attributes.
The output is the rows of docs/results/missing.md.
"""

import argparse
import math
import os
import time
from typing import Any

os.environ["LEASTNOISE_CACHE"] = "off"
CASES = {
    "5": [5] * 4,
    "5, 8, 16": [5, 8, 16],
    "16": [16] * 4,
    "2": [2] * 10,
}
BUDGETS = {"pure": {"epsilon": "1"}, "rho": {"rho": "1/2"}}


def plan_marginals(
    sizes: list[int], upto: int, budget: Any, seconds: float, *, complete: bool
) -> Any:
    """Plan all marginals; return the plan and its CPU seconds."""
    import leastnoise as ln

    domain = ln.Domain({f"a{number}": ln.Coded(size) for number, size in enumerate(sizes)})
    domain = domain.as_complete() if complete else domain
    start = time.process_time()
    plan = ln.plan(ln.marginals(domain, upto=upto), budget, seconds=seconds)
    return plan, time.process_time() - start


def main() -> None:
    """Print a row for every case."""
    import leastnoise as ln

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=CASES)
    options = parser.parse_args()
    print("| cells | attributes | up to | budget | complete | may be missing | error | CPU s |")
    print("|---|--:|--:|---|---|---|--:|--:|")
    for name in options.cases:
        for upto in (1, 2):
            for budget, amount in BUDGETS.items():
                privacy_budget = ln.PureDP(**amount) if budget == "pure" else ln.ZCDP(**amount)
                sizes = CASES[name]
                complete, _ = plan_marginals(
                    sizes, upto, privacy_budget, options.seconds, complete=True
                )
                missing, seconds = plan_marginals(
                    sizes, upto, privacy_budget, options.seconds, complete=False
                )
                errors = [plan.expected_error().total_squared_error for plan in (missing, complete)]
                print(
                    f"| {name} | {len(sizes)} | {upto} | {budget} | `{complete.strategy}` "
                    f"| `{missing.strategy}` | {math.sqrt(errors[0] / errors[1]):.4f} "
                    f"| {seconds:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
