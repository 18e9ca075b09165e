"""What hidden cells cost: plans where values may be missing over those of complete attributes.

    python bench/missing.py [--seconds 5] [--cases 5 16 ...]

Each case is all marginals of up to one or two ways over some attributes, under a pure budget and
rho. The ratio is of the root mean square errors of published answers. It prints the rows of
docs/results/missing.md.
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


def planned(sizes: list[int], upto: int, budget: Any, seconds: float, *, complete: bool) -> Any:
    """Plan all marginals; return the plan and its CPU seconds."""
    import leastnoise as ln

    domain = ln.Domain({f"a{place}": ln.Coded(size) for place, size in enumerate(sizes)})
    domain = domain.as_complete() if complete else domain
    begun = time.process_time()
    plan = ln.plan(ln.marginals(domain, upto=upto), budget, seconds=seconds)
    return plan, time.process_time() - begun


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
            for budget, said in BUDGETS.items():
                kind = ln.PureDP(**said) if budget == "pure" else ln.ZCDP(**said)
                whole, _ = planned(CASES[name], upto, kind, options.seconds, complete=True)
                missing, took = planned(CASES[name], upto, kind, options.seconds, complete=False)
                errors = [plan.expected_error().total_squared_error for plan in (missing, whole)]
                print(
                    f"| {name} | {len(CASES[name])} | {upto} | {budget} | `{whole.strategy}` "
                    f"| `{missing.strategy}` | {math.sqrt(errors[0] / errors[1]):.4f} "
                    f"| {took:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
