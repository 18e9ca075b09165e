"""Measure planning and release of all marginals up to 3-way of many attributes.

Attributes have ten values. It prints seconds, memory and file sizes for both budgets.

    python bench/scale.py [--attributes 6 10 20 50 100]     # plan only
    python bench/scale.py --release 100 [--budget pure]     # also release; needs disk space

The library chooses the strategies automatically and limits its threads. Each line comes from a
separate process. CPU seconds are of all threads and include the import of the package. Seconds by
the clock follow them; they depend on the load of the machine. Peak memory is of the whole process.
A release reads 100,000 seeded random rows from a Parquet file.
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
start = time.perf_counter()
from pathlib import Path
import leastnoise as ln
count, budget, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
workload = ln.marginals(ln.Domain({f"a{i}": ln.Coded(10) for i in range(count)}), upto=3)
plan = ln.plan(workload, ln.PureDP(1) if budget == "pure" else ln.ZCDP("1/2"))
result = {"plan_seconds": time.process_time(), "plan_clock": time.perf_counter() - start,
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
    result |= {"seconds": time.process_time(), "clock": time.perf_counter() - start,
               "peak": peak(), "files": files / 2**30}
print(json.dumps(result))
"""


def run(count: int, budget: str, out: str = "") -> dict[str, Any]:
    """Plan in a separate process; release too if there is a directory."""
    process = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _PROGRAM, str(count), budget, out],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name not in _THREAD_VARIABLES}
        | {"PYTHONPATH": str(ROOT / "src")},
    )
    if process.returncode:
        message = (process.stderr.strip() or "failed").splitlines()[-1]
        raise SystemExit(f"{count} attributes, {budget}: {message}")
    result: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
    return result


def planning(counts: Sequence[int], budgets: Sequence[str]) -> Iterator[str]:
    """Yield the seconds and peak memory of planning."""
    for count in counts:
        for budget in budgets:
            result = run(count, budget)
            reference = RESIDUAL_PLANNER.get(count)
            if reference and budget == "gaussian":
                comparison = f"  / ResidualPlanner {result['rmse'] / reference:.4f}"
            else:
                comparison = ""
            yield (
                f"{_describe_case(count, budget, result)}, plan {result['plan_seconds']:5.1f} s "
                f"({result['plan_clock']:.1f} by the clock)  "
                f"peak {result['plan_peak']:.2f} GiB  {result['blocks']:6} measured tables, "
                f"{result['noisy']} queries  RMSE {result['rmse']:.3f}{comparison}"
            )


def releases(count: int, budgets: Sequence[str], rows: int) -> Iterator[str]:
    """Yield the seconds, peak memory and file sizes of whole releases."""
    for budget in budgets:
        with tempfile.TemporaryDirectory() as folder:
            _write_rows(Path(folder, "rows.parquet"), count, rows)
            result = run(count, budget, folder)
        yield (
            f"{_describe_case(count, budget, result)}, {result['answers']} answers  "
            f"{result['seconds']:.0f} s ({result['clock']:.0f} by the clock), of which "
            f"plan {result['plan_seconds']:.1f} s ({result['plan_clock']:.1f})  "
            f"peak {result['peak']:.2f} GiB  files {result['files']:.2f} GiB  "
            f"{result['noisy']} noisy integers"
        )


def _describe_case(count: int, budget: str, result: Mapping[str, Any]) -> str:
    """Describe a case in the first columns of its line."""
    return f"{count:3} attributes, {result['tables']:6} tables  {budget:8}  {result['strategy']:9}"


def _write_rows(path: Path, count: int, rows: int) -> None:
    """Write random rows to a Parquet file."""
    import duckdb

    columns = ", ".join(
        f"(hash(i * {count} + {number}) % 10)::UTINYINT AS a{number}" for number in range(count)
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
        "--release", type=int, metavar="ATTRIBUTES", help="release tables of ATTRIBUTES attributes"
    )
    parser.add_argument("--rows", type=int, default=100_000)
    arguments = parser.parse_args()
    budgets = [arguments.budget] if arguments.budget else BUDGETS
    if arguments.release is None:
        lines = planning(arguments.attributes, budgets)
    else:
        lines = releases(arguments.release, budgets, arguments.rows)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
