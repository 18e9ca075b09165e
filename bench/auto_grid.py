"""Compare the automatic plan with every strategy by name on random mixed workloads.

    python bench/auto_grid.py OUT [--seconds 5] [--cases 0 1 ...] [--table]

A case is two to six entries (cells, prefix sums, all ranges, lists of ranges, levels, marginals,
means) on one to five attributes of 2 to 65,536 cells, under a pure budget, rho, or epsilon and
delta. Cases from 60 on are one-way tables of 3 to 24 attributes; half of these cases also have
other tables.
Each plan is computed in a separate process on one core. The comparison leaves out a strategy that
exceeds the limit of CPU seconds. OUT gets a line of JSON for each case. The program plans a
strategy by name only if `auto` did not try it in full and OUT has no result for it. `--table`
computes no plan. It prints the results in OUT: docs/results/auto/grid.csv, followed by the rows of
docs/results/auto.md.
"""

import argparse
import csv
import json
import math
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["LEASTNOISE_CACHE"] = "off"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
WIDEST = 2**20  # cells of a product
FIRST_ONE_WAY = 60  # cases from here on are one-way tables
NOT_TRIED = "its estimated time does not fit", "its tables have no common product form"
BUDGETS = {
    "pure": {"epsilon": "1"},
    "rho": {"rho": "1/2"},
    "(epsilon, delta)": {"epsilon": "1", "delta": "1e-6"},
}


def draw_case(seed: int) -> dict[str, Any]:
    """Draw a case as JSON values: the sizes of the attributes, the entries, and the budget."""
    rng = random.Random(seed)
    if seed >= FIRST_ONE_WAY:
        return _one_way_tables(rng, seed)
    sizes = {
        f"a{number}": round(2 ** rng.uniform(1, 16))
        for number in range(rng.choice([1, 1, 2, 3, 4, 5]))
    }
    entries = [_entry(rng, sizes) for _ in range(rng.randint(2, 6))]
    return {"seed": seed, "budget": rng.choice(sorted(BUDGETS)), "sizes": sizes, "entries": entries}


def _one_way_tables(rng: random.Random, seed: int) -> dict[str, Any]:
    """Draw a case of one-way tables of cells or levels; every second one also has other tables."""
    largest = rng.choice([1, 4, 6])
    sizes = {
        f"a{number}": round(2 ** rng.uniform(1, largest)) for number in range(rng.randint(3, 24))
    }
    of_levels = seed % 5 == 4
    if of_levels:
        sizes = {name: 16 * size for name, size in sizes.items()}
    along = {"level": "group"} if of_levels else "identity"
    entries = [{"kind": "queries", "along": {name: along}} for name in sizes]
    if seed % 2:
        sizes["b0"] = round(2 ** rng.uniform(3, 9))
        kind = rng.choice(["prefix", "all_ranges", "identity"])
        entries.append({"kind": "queries", "along": {"b0": kind}})
        if not of_levels:
            entries.append({"kind": "marginals", "names": ["a0", rng.choice(["a1", "a2"])]})
    budget = rng.choice(["pure", "pure", "(epsilon, delta)"])
    return {"seed": seed, "budget": budget, "sizes": sizes, "entries": entries}


def _entry(rng: random.Random, sizes: dict[str, int]) -> dict[str, Any]:
    """Draw one entry of a workload."""
    names = rng.sample(sorted(sizes), rng.randint(1, min(3, len(sizes))))
    while math.prod(sizes[name] for name in names) > WIDEST:
        names.pop()
    kind = rng.choice(["queries", "queries", "queries", "queries", "marginals", "means"])
    if kind != "queries":
        return {"kind": kind, "names": names}
    return {"kind": kind, "along": {name: _along(rng, sizes[name]) for name in names}}


def _along(rng: random.Random, size: int) -> Any:
    """Draw the queries along one attribute: a name, a level or ranges."""
    kinds = ["identity", "prefix", "ranges", "level", *(["all_ranges"] if size <= 2**11 else [])]
    kind = rng.choice(kinds)
    if kind == "ranges":
        return {
            "ranges": [
                sorted(rng.choices(range(size), k=2)) for _ in range(rng.choice([4, 64, 500]))
            ]
        }
    return {"level": "group"} if kind == "level" else kind


def build_case(case: dict[str, Any]) -> tuple[Any, Any]:
    """Build the workload and the budget of a case."""
    import leastnoise as ln

    attributes = {
        name: ln.Integers(0, size - 1, levels={"group": {"width": 16}})
        for name, size in case["sizes"].items()
    }
    domain = ln.Domain(attributes, measures={"pay": ln.Measure("pay", 0, 100)}).as_complete()
    workloads = []
    for entry in case["entries"]:
        if entry["kind"] == "marginals":
            workloads.append(ln.marginals(domain, ways=len(entry["names"]), of=entry["names"]))
        elif entry["kind"] == "means":
            workloads.append(ln.mean_queries(domain, "pay", by=entry["names"]))
        else:
            workloads.append(ln.queries(domain, entry["along"]))
    amounts = BUDGETS[case["budget"]]
    budget: Any
    if "rho" in amounts:
        budget = ln.ZCDP(**amounts)
    elif "delta" in amounts:
        budget = ln.ApproxDP(**amounts)
    else:
        budget = ln.PureDP(**amounts)
    return sum(workloads[1:], start=workloads[0]), budget


def plan_case(case: dict[str, Any], strategy: str, seconds: float) -> dict[str, Any]:
    """Plan in this process; return the error, CPU seconds and strategies not fully tried."""
    from leastnoise._mechanisms._high_errors import tables_with_high_error
    from leastnoise._mechanisms._search import Search
    from leastnoise._mechanisms._strategy_choice import choose_plan
    from leastnoise._strategies import PLANNERS
    from leastnoise._trusted.accounting import Privacy
    from leastnoise._trusted.check import InputError

    workload, budget = build_case(case)
    search = Search(strategy, seconds)
    start = time.process_time()
    try:
        plan, candidates = choose_plan(workload, Privacy(budget), search)
    except InputError as error:
        return {"reason": str(error)[:200]}
    if strategy != "auto":
        crowded_tables = {}
    else:
        crowded_tables = tables_with_high_error(plan, search)
    not_fully_tried = {
        candidate.strategy
        for candidate in candidates
        if candidate.ended or candidate.useful_seconds or candidate.reason.startswith(NOT_TRIED)
    }
    full_errors: dict[str, float] = {}
    for candidate in candidates:
        name = candidate.strategy
        if name not in not_fully_tried and candidate.plan is not None:
            full_errors[name] = min(candidate.total, full_errors.get(name, math.inf))
    return {
        "strategy": plan.strategy,
        "error": plan.expected_error().total_squared_error,
        "ended": list(plan.details.ended_early),
        "crowded": crowded_tables,
        "seconds": time.process_time() - start,
        "whole": full_errors,
        "apart": [
            name
            for name, planner in PLANNERS.items()
            if name in not_fully_tried or not planner.automatic
        ],
    }


def run_in_process(
    limit: float, function: Callable[..., dict[str, Any]], *arguments: Any
) -> dict[str, Any]:
    """Call a function in a separate process that has loaded the library.

    The process is stopped if it exceeds the limit, in CPU seconds.
    """
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        if limit < math.inf:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit + time.process_time()),) * 2)
        with os.fdopen(writing, "w") as file:
            json.dump(function(*arguments), file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"reason": "stopped: it takes longer", "seconds": limit}


def run(case: dict[str, Any], seconds: float, earlier: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Plan a case automatically, and by name with every strategy not fully tried before.

    A strategy keeps its result of an earlier run. Other strategies get the same limit of seconds.
    """
    auto = run_in_process(math.inf, plan_case, case, "auto", seconds)
    by_name = {name: {"error": error} for name, error in auto.get("whole", {}).items()}
    by_name |= {
        name: earlier.get(name) or run_in_process(seconds, plan_case, case, name, seconds)
        for name in auto.get("apart", ())
    }
    errors_in_time = {
        name: result["error"]
        for name, result in by_name.items()
        if "error" in result and result.get("seconds", 0.0) <= seconds
    }
    best = min(errors_in_time, key=lambda name: errors_in_time[name], default=None)
    if best is None or "error" not in auto:
        ratio = None
    else:
        ratio = math.sqrt(auto["error"] / errors_in_time[best])
    full_errors = auto.get("whole", ())
    planned = {name: result for name, result in by_name.items() if name not in full_errors}
    return {
        **case,
        "given": seconds,
        "auto": auto,
        "named": earlier | planned,
        "best": best,
        "ratio": ratio,
    }


def table(cases: list[dict[str, Any]]) -> None:
    """Write the file of all cases and print the rows of the results page.

    The page lists the cases in which the best strategy by name has another error.
    """
    head = [
        "case",
        "asked",
        "budget",
        "`auto`",
        "CPU s",
        "best by name",
        "error over it",
        "ended early",
    ]
    rows = []
    for case in sorted(cases, key=lambda case: case["seed"]):
        words = [
            entry["kind"] if "names" in entry else " x ".join(map(_word, entry["along"].values()))
            for entry in case["entries"]
        ]
        cells = " x ".join(f"{size:,}" for size in case["sizes"].values())
        auto = case["auto"]
        if case["ratio"] is None:
            ratio = "-"
        else:
            ratio = f"{case['ratio']:.4f}"
        if "seconds" in auto:
            seconds = f"{auto['seconds']:.1f}"
        else:
            seconds = "-"
        ended = ", ".join(auto.get("ended", ()))
        description = f"{cells}: {', '.join(words)}"
        strategy = f"`{auto.get('strategy', '-')}`"
        rows.append(
            [
                str(case["seed"]),
                description,
                case["budget"],
                strategy,
                seconds,
                f"`{case['best']}`",
                ratio,
                ended,
            ]
        )
    csv.writer(sys.stdout, lineterminator="\n").writerows(
        [[cell.strip("`") for cell in row] for row in (head, *rows)]
    )
    print("\n| " + " | ".join(head) + " |\n|---|---|---|---|--:|---|--:|---|")
    for row in rows:
        if row[6] == "-" or abs(float(row[6]) - 1) > 0.0005:
            print("| " + " | ".join(row) + " |")


def _word(along: Any) -> str:
    """Describe the queries along one attribute in a word."""
    if isinstance(along, str):
        return {"identity": "cells", "all_ranges": "all ranges"}.get(along, along)
    if "level" in along:
        return "level"
    return f"{len(along['ranges'])} ranges"


def main() -> None:
    """Plan all cases automatically again, and by name only the missing results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--cases", type=int, nargs="*", default=list(range(80)))
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    cases = {}
    if options.out.exists():
        for text in options.out.read_text().splitlines():
            case = json.loads(text)
            cases[case["seed"]] = case
    if options.table:
        table(list(cases.values()))
        return
    for case in sorted(
        map(draw_case, options.cases),
        key=lambda case: (-len(case["sizes"]), -sum(case["sizes"].values())),
    ):
        result = run(case, options.seconds, cases.get(case["seed"], {}).get("named", {}))
        with options.out.open("a") as file:
            file.write(json.dumps(result) + "\n")
        auto = result["auto"]
        print(
            result["seed"],
            result["budget"],
            auto.get("strategy"),
            auto.get("seconds"),
            result["best"],
            result["ratio"],
            flush=True,
        )


if __name__ == "__main__":
    os.environ |= dict.fromkeys(THREADS, "1")
    import scipy.interpolate
    import scipy.linalg
    import scipy.optimize
    import scipy.sparse  # noqa: F401 - loaded once, before the program forks

    import leastnoise  # noqa: F401 - the same

    main()
