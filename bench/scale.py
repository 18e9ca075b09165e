"""Plan, and carry out, all marginals up to 3-way of many attributes of ten values: seconds, memory and files for both budgets.

    python bench/scale.py [--attributes 6 10 20 50 100]     # plan only
    python bench/scale.py --release 100 [--budget pure]     # also count, draw noise, estimate and write Parquet; needs disk space

Every line comes from a process of its own with one thread. Seconds are of the processor, from the workload to the plan; peak memory is of
the whole process. The data of a release are 100,000 rows drawn from a seed, read from a Parquet file.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = {"gaussian": ("ZCDP(rho=1/2)", "residual"), "pure": ("PureDP(epsilon=1)", "covering")}
# Root mean square error per cell at privacy cost 1 of ResidualPlanner, attributes of ten values, all marginals up to 3-way.
RESIDUAL_PLANNER = {6: 4.2752, 10: 9.3481, 20: 26.917, 50: 107.258, 100: 303.216}

_PROGRAM = """
import json, math, resource, sys, time
from pathlib import Path
import leastnoise as ln
count, budget, strategy, out = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
workload = ln.marginals(ln.Domain({f"a{i}": ln.Coded(10) for i in range(count)}), upto=3)
plan = ln.plan(workload, ln.PureDP(1) if budget == "pure" else ln.ZCDP("1/2"), strategy=strategy)
found = {"plan_seconds": time.process_time(), "plan_peak": peak(), "tables": len(workload.products), "answers": workload.rows,
         "blocks": len(plan.measurements.blocks), "noisy": sum(block.rows for block in plan.measurements.blocks),
         "rmse": math.sqrt(plan.expected_error().total_squared_error / workload.rows)}
if out:
    folder = Path(out)
    parquet = ln.Options(formats=["parquet"])
    ln.release(plan, folder / "rows.parquet", ledger=folder / "rows.ledger", out=folder / "release", options=parquet)
    files = sum(path.stat().st_size for path in (folder / "release").rglob("*") if path.is_file())
    found |= {"seconds": time.process_time(), "peak": peak(), "files": files / 2**30}
print(json.dumps(found))
"""


def run(count: int, budget: str, out: str = "") -> dict[str, float]:
    """Plan, and carry out if there is a directory, in a process of its own."""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _PROGRAM, str(count), budget, BUDGETS[budget][1], out],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        raise SystemExit(f"{count} attributes, {budget}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def planning(counts: Sequence[int], budgets: Sequence[str]) -> Iterator[str]:
    """Seconds and peak memory of planning."""
    for count in counts:
        for budget in budgets:
            own = run(count, budget)
            known = RESIDUAL_PLANNER.get(count)
            over = f"  over ResidualPlanner {own['rmse'] / known:.4f}" if known and budget == "gaussian" else ""
            yield (
                f"{count:3} attributes, {own['tables']:6} tables  {budget:8}  plan {own['plan_seconds']:5.1f} s  peak "
                f"{own['plan_peak']:.2f} GiB  {own['blocks']:6} measured tables, {own['noisy']:9} queries  RMSE {own['rmse']:.3f}{over}"
            )


def releases(count: int, budgets: Sequence[str], rows: int) -> Iterator[str]:
    """Seconds, peak memory and size of whole releases."""
    for budget in budgets:
        with tempfile.TemporaryDirectory() as folder:
            _write_rows(Path(folder, "rows.parquet"), count, rows)
            own = run(count, budget, folder)
        yield (
            f"{count:3} attributes, {own['tables']:6} tables, {own['answers']} answers  {budget:8}  {own['seconds']:.0f} s, of which plan "
            f"{own['plan_seconds']:.1f} s  peak {own['peak']:.2f} GiB  files {own['files']:.2f} GiB  {own['noisy']} noisy integers"
        )


def _write_rows(path: Path, count: int, rows: int) -> None:
    import duckdb

    columns = ", ".join(f"(hash(i * {count} + {place}) % 10)::UTINYINT AS a{place}" for place in range(count))
    with duckdb.connect(":memory:") as database:
        database.execute(f"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)")  # noqa: S608 - numbers and a path


def main() -> None:
    """Print one line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attributes", type=int, nargs="*", default=[6, 10, 20, 50, 100])
    parser.add_argument("--budget", choices=[*BUDGETS], help="default both")
    parser.add_argument("--release", type=int, metavar="ATTRIBUTES", help="carry out the plan of so many attributes")
    parser.add_argument("--rows", type=int, default=100_000)
    arguments = parser.parse_args()
    budgets = [arguments.budget] if arguments.budget else [*BUDGETS]
    lines = planning(arguments.attributes, budgets) if arguments.release is None else releases(arguments.release, budgets, arguments.rows)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
