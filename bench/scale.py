"""Measure planning and release of all marginals up to 3-way of many attributes.

Attributes have ten values. It prints seconds, memory and file sizes for both budgets.

    python bench/scale.py [--attributes 6 10 20 50 100]     # plan only
    python bench/scale.py --release 100 [--budget pure]     # also release; needs disk space

The library chooses the strategies automatically and limits its threads itself. Each line comes from
a process of its own. CPU seconds are of all threads and include the import of the package. Seconds
of the clock follow them; they depend on the load of the machine. Peak memory is of the whole
process. A release reads 100,000 seeded random rows from a Parquet file.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = ("gaussian", "pure")  # rho = 1/2, epsilon = 1
# The library obeys these variables. They are removed, so that its own limits are timed.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Root mean square error per cell at privacy cost 1 of ResidualPlanner, attributes of ten values,
# all marginals up to 3-way.
RESIDUAL_PLANNER = {6: 4.2752, 10: 9.3481, 20: 26.917, 50: 107.258, 100: 303.216}

_PROGRAM = """
import json, math, resource, sys, time
began = time.perf_counter()
from pathlib import Path
import leastnoise as ln
count, budget, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
workload = ln.marginals(ln.Domain({f"a{i}": ln.Coded(10) for i in range(count)}), upto=3)
plan = ln.plan(workload, ln.PureDP(1) if budget == "pure" else ln.ZCDP("1/2"))
found = {"plan_seconds": time.process_time(), "plan_clock": time.perf_counter() - began,
         "plan_peak": peak(), "strategy": plan.strategy,
         "tables": len(workload.products), "answers": workload.rows,
         "blocks": len(plan.measurements.blocks),
         "noisy": sum(block.rows for block in plan.measurements.blocks),
         "rmse": math.sqrt(plan.expected_error().total_squared_error / workload.rows)}
if out:
    folder = Path(out)
    parquet = ln.Options(formats=["parquet"])
    ln.release(plan, folder / "rows.parquet", ledger=folder / "rows.ledger",
               out=folder / "release", options=parquet)
    files = sum(path.stat().st_size for path in (folder / "release").rglob("*") if path.is_file())
    found |= {"seconds": time.process_time(), "clock": time.perf_counter() - began,
              "peak": peak(), "files": files / 2**30}
print(json.dumps(found))
"""


def run(count: int, budget: str, out: str = "") -> dict[str, Any]:
    """Plan in a process of its own; release too if there is a directory."""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _PROGRAM, str(count), budget, out],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name not in _THREAD_VARIABLES}
        | {"PYTHONPATH": str(ROOT / "src")},
    )
    if done.returncode:
        raise SystemExit(
            f"{count} attributes, {budget}: {(done.stderr.strip() or 'failed').splitlines()[-1]}"
        )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def planning(counts: Sequence[int], budgets: Sequence[str]) -> Iterator[str]:
    """Yield the seconds and peak memory of planning."""
    for count in counts:
        for budget in budgets:
            own = run(count, budget)
            known = RESIDUAL_PLANNER.get(count)
            if known and budget == "gaussian":
                over = f"  / ResidualPlanner {own['rmse'] / known:.4f}"
            else:
                over = ""
            yield (
                f"{_asked(count, budget, own)}, plan {own['plan_seconds']:5.1f} s "
                f"({own['plan_clock']:.1f} by the clock)  "
                f"peak {own['plan_peak']:.2f} GiB  {own['blocks']:6} measured tables, "
                f"{own['noisy']} queries  RMSE {own['rmse']:.3f}{over}"
            )


def releases(count: int, budgets: Sequence[str], rows: int) -> Iterator[str]:
    """Yield the seconds, peak memory and file sizes of whole releases."""
    for budget in budgets:
        with tempfile.TemporaryDirectory() as folder:
            _write_rows(Path(folder, "rows.parquet"), count, rows)
            own = run(count, budget, folder)
        yield (
            f"{_asked(count, budget, own)}, {own['answers']} answers  {own['seconds']:.0f} s "
            f"({own['clock']:.0f} by the clock), of which "
            f"plan {own['plan_seconds']:.1f} s ({own['plan_clock']:.1f})  peak {own['peak']:.2f} "
            f"GiB  files {own['files']:.2f} GiB  "
            f"{own['noisy']} noisy integers"
        )


def _asked(count: int, budget: str, own: Mapping[str, Any]) -> str:
    """Describe a case in the first columns of its line."""
    return f"{count:3} attributes, {own['tables']:6} tables  {budget:8}  {own['strategy']:9}"


def _write_rows(path: Path, count: int, rows: int) -> None:
    """Write random rows to a Parquet file."""
    import duckdb

    columns = ", ".join(
        f"(hash(i * {count} + {place}) % 10)::UTINYINT AS a{place}" for place in range(count)
    )
    with duckdb.connect(":memory:") as database:
        database.execute(
            f"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"  # noqa: S608
        )  # noqa: RUF100, S608


def main() -> None:
    """Print the results, a line at a time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attributes", type=int, nargs="*", default=[6, 10, 20, 50, 100])
    parser.add_argument("--budget", choices=[*BUDGETS], help="default both")
    parser.add_argument(
        "--release", type=int, metavar="ATTRIBUTES", help="carry out the plan of so many attributes"
    )
    parser.add_argument("--rows", type=int, default=100_000)
    arguments = parser.parse_args()
    budgets = [arguments.budget] if arguments.budget else BUDGETS
    lines = (
        planning(arguments.attributes, budgets)
        if arguments.release is None
        else releases(arguments.release, budgets, arguments.rows)
    )
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
