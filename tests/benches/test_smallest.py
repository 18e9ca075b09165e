"""Every measurement of bench/ at its smallest size: it runs and prints."""

import os
from pathlib import Path

import pytest

from waiting import HANGS

BENCH = Path(__file__).resolve().parents[2] / "bench"
SMALLEST = [
    ("auto", "--seconds", "1", "tens_1way 8 gaussian"),
    ("auto_grid", "none.jsonl", "--table"),
    ("counting", "--rows", "100", "--attributes", "3", "--rounds", "1"),
    ("cubes", "--only", "Adult Q1 "),
    ("first_report", "--here", "--rows", "50", "--only", "3 tables"),
    ("marginals", "--only", "Adult Q1 "),
    ("marginals", "--only", "ten^6"),
    ("least_error", "--only", "ledger", "--draws", "1", "--first"),
    ("ledger",),
    ("matrix_mechanism", "--prefix-release", "64"),
    ("missing", "--seconds", "1", "--cases", "5, 8, 16"),
    ("mixed", "--quick", "--only", "CPS   1 "),
    ("noise", "--draws", "100", "--reference-draws", "10", "--repeats", "1"),
    ("p_identity", "--quick", "--sizes"),
    ("quantile_shares", "--shares", "0.5"),
    ("partition", "--largest", "12", "--repeats", "1"),
    ("reading", "--rows", "100", "--csv-rows", "100", "--rounds", "1"),
    ("scale", "--attributes", "3", "--budget", "gaussian"),
    ("series", "--periods", "2", "--months", "2", "--seeds", "0"),
    ("studio", "--ways", "1"),
    ("trees", "--shapes", "even-32", "--budgets", "rho", "--strategies", "workload"),
    ("walks", "--rows", "12000", "--only", "calls"),
    ("units", "--rows", "120", "--csv-rows", "120"),
    ("units", "--scale", "120"),
    ("trees", "--release", "1", "--rows", "100", "--sources", "duckdb"),
]
# Spark starts Java, which takes longer than all others together; sums is run with one threshold by
# tests/experiments.
NOT_HERE = {"spark", "sums"}
PROGRAM = """
import runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_every_measurement_has_a_smallest_size():
    assert {file.stem for file in BENCH.glob("*.py")} == {name for name, *_ in SMALLEST} | NOT_HERE


@pytest.mark.slow
@pytest.mark.parametrize("run", SMALLEST, ids=" ".join)
def test_smallest_bench_runs(run, fork_server):
    """Run it in a separate process, since it starts threads and servers."""
    name, *options = run
    arguments = [str(BENCH / f"{name}.py"), *options]
    process = fork_server.start(PROGRAM, arguments, dict(os.environ))
    output, errors = process.communicate(HANGS)
    assert process.returncode == 0, errors
    printed = output.splitlines()
    assert printed
    assert not [line for line in printed if line.startswith("!")]
