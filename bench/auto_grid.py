"""Mixed workloads, drawn by seed: the automatic choice beside every strategy by name that plans in the same time.

    python bench/auto_grid.py OUT [--seconds 5] [--cases 60] [--table]

A case is two to six entries (cells, prefix sums, all and given ranges, levels, marginals, means) on one to five attributes of 2 to 65,536
cells, under a pure budget, rho, or epsilon and delta. Each plan is made in a process of its own on one core; a strategy that takes more CPU
seconds than are given counts as not there. OUT gets a line of JSON a case, and cases that it has are left out, so a run can go on later.
`--table` makes no plan and prints what OUT has as rows of docs/results/auto.md.
"""

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ["LEASTNOISE_CACHE"] = "off"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
LONG, WIDEST = 1.25, 2**20  # a strategy by name is stopped at so many times the seconds; most cells of a product
BUDGETS = {"pure": {"epsilon": "1"}, "rho": {"rho": "1/2"}, "(epsilon, delta)": {"epsilon": "1", "delta": "1e-6"}}


def drawn(seed: int) -> dict[str, Any]:
    """A case, as JSON: the sizes of the attributes, the entries, and the budget."""
    rng = random.Random(seed)
    sizes = {f"a{place}": round(2 ** rng.uniform(1, 16)) for place in range(rng.choice([1, 1, 2, 3, 4, 5]))}
    entries = [_entry(rng, sizes) for _ in range(rng.randint(2, 6))]
    return {"seed": seed, "budget": rng.choice(sorted(BUDGETS)), "sizes": sizes, "entries": entries}


def _entry(rng: random.Random, sizes: dict[str, int]) -> dict[str, Any]:
    names = rng.sample(sorted(sizes), rng.randint(1, min(3, len(sizes))))
    while math.prod(sizes[name] for name in names) > WIDEST:
        names.pop()
    kind = rng.choice(["queries", "queries", "queries", "queries", "marginals", "means"])
    if kind != "queries":
        return {"kind": kind, "names": names}
    return {"kind": kind, "along": {name: _along(rng, sizes[name]) for name in names}}


def _along(rng: random.Random, size: int) -> Any:
    kinds = ["identity", "prefix", "ranges", "level", *(["all_ranges"] if size <= 2**11 else [])]
    kind = rng.choice(kinds)
    if kind == "ranges":
        return {"ranges": [sorted(rng.choices(range(size), k=2)) for _ in range(rng.choice([4, 64, 500]))]}
    return {"level": "group"} if kind == "level" else kind


def asked(ln: Any, case: dict[str, Any]) -> tuple[list[Any], Any]:
    """The entries as workloads, and the budget."""
    kinds = {name: ln.Integers(0, size - 1, levels={"group": {"width": 16}}) for name, size in case["sizes"].items()}
    domain = ln.Domain(kinds, measures={"pay": ln.Measure("pay", 0, 100)})
    found = []
    for entry in case["entries"]:
        if entry["kind"] == "marginals":
            found.append(ln.marginals(domain, ways=len(entry["names"]), of=entry["names"]))
        elif entry["kind"] == "means":
            found.append(ln.mean_queries(domain, "pay", by=entry["names"]))
        else:
            found.append(ln.queries(domain, entry["along"]))
    budget = BUDGETS[case["budget"]]
    made = ln.ZCDP(**budget) if "rho" in budget else ln.ApproxDP(**budget) if "delta" in budget else ln.PureDP(**budget)
    return found, made


def one(case: dict[str, Any], strategy: str, seconds: float) -> dict[str, Any]:
    """One plan, in this process."""
    import leastnoise as ln

    parts, budget = asked(ln, case)
    workload = parts[0]
    for part in parts[1:]:
        workload += part
    if strategy != "auto":
        most = math.ceil(time.process_time() + LONG * seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    start = time.process_time()
    try:
        plan = ln.plan(workload, budget, strategy=strategy, seconds=seconds)
    except ln.InputError as error:
        return {"reason": str(error)[:200]}
    taken = time.process_time() - start
    return {"strategy": plan.strategy, "error": plan.expected_error().total_squared_error, "seconds": taken, **_ended(plan)}


def _ended(plan: Any) -> dict[str, Any]:
    return {"ended": list(plan.details["ended_early"])} if "ended_early" in plan.details else {}


def run(case: dict[str, Any], seconds: float) -> dict[str, Any]:
    """A case under the automatic choice and under all strategies by name."""
    from leastnoise._planner import PLANNERS

    env = os.environ | dict.fromkeys(THREADS, "1")
    found: dict[str, dict[str, Any]] = {}
    for name in ("auto", *PLANNERS):
        command = [sys.executable, __file__, "--one", json.dumps(case), name, str(seconds)]
        ended = subprocess.run(command, capture_output=True, env=env, check=False)  # noqa: S603 - this very file
        found[name] = json.loads(ended.stdout) if ended.returncode == 0 else {"reason": "stopped: it takes longer"}
    within = {name: own for name, own in found.items() if name != "auto" and own.get("seconds", math.inf) <= seconds}
    best = min(within, key=lambda name: within[name]["error"], default=None)
    ratio = None if best is None or "error" not in found["auto"] else math.sqrt(found["auto"]["error"] / within[best]["error"])
    return {**case, "given": seconds, "found": found, "best": best, "ratio": ratio}


def table(known: list[dict[str, Any]]) -> None:
    """Rows of the page of results."""
    print("| case | asked | budget | `auto` | CPU s | best by name | error over it | ended early |\n|---|---|---|---|--:|---|--:|---|")
    for case in sorted(known, key=lambda case: case["seed"]):
        words = [entry["kind"] if "names" in entry else " x ".join(map(_word, entry["along"].values())) for entry in case["entries"]]
        cells = " x ".join(f"{size:,}" for size in case["sizes"].values())
        auto, ratio = case["found"]["auto"], "-" if case["ratio"] is None else f"{case['ratio']:.4f}"
        taken = f"{auto['seconds']:.1f}" if "seconds" in auto else "-"
        asked_for = f"{cells}: {', '.join(words)}"
        print(
            f"| {case['seed']} | {asked_for} | {case['budget']} | `{auto.get('strategy', '-')}` | {taken} | `{case['best']}` | {ratio} "
            f"| {', '.join(auto.get('ended', ()))} |"
        )


def _word(along: Any) -> str:
    if isinstance(along, str):
        return {"identity": "cells", "all_ranges": "all ranges"}.get(along, along)
    return "level" if "level" in along else f"{len(along['ranges'])} ranges"


def main() -> None:
    """All cases that are not in the file yet."""
    options = argparse.ArgumentParser()
    options.add_argument("out", type=Path)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--cases", type=int, default=60)
    options.add_argument("--table", action="store_true")
    given = options.parse_args()
    known = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    if given.table:
        table(known)
        return
    for seed in sorted({*range(given.cases)} - {case["seed"] for case in known}):
        made = run(drawn(seed), given.seconds)
        with given.out.open("a") as file:
            file.write(json.dumps(made) + "\n")
        print(seed, made["budget"], made["found"]["auto"].get("strategy"), made["best"], made["ratio"], flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(json.loads(sys.argv[2]), sys.argv[3], float(sys.argv[4]))))
    else:
        main()
