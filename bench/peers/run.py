"""Run the same task with other libraries, and print a table of seconds and errors.

Each library is installed in a separate environment.

    python bench/peers/run.py [--folder build/peers] [--only NAME]

The error is the root mean square over all 1,126 cells, of one run; a cell that a library leaves out
counts as 0.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from task import TABLES, Counts, key, truth, write_people

HERE = Path(__file__).parent
PEERS = {
    "leastnoise": str(HERE.parents[1]),
    "opendp": "opendp[polars]",
    "tumult": "tmlt.analytics",
    "smartnoise": "smartnoise-sql",
    "mbi": "mbi",
}
COLUMNS = ("all", "sex", "age", "region|age")


def python_of(name: str, folder: Path) -> Path:
    """Return the Python of a library's environment; create it if it is missing."""
    environment = folder / name
    python = environment / "bin" / "python"
    if not (environment / "ready").exists():
        venv.create(environment, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PEERS[name]], check=True)
        (environment / "ready").touch()
    return python


def run(name: str, folder: Path) -> dict[str, Any]:
    """Run a library; return its released counts and its seconds from the first import."""
    python = python_of(name, folder)
    (folder / "people.ledger").unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": str(python),
        "PYTHONPATH": str(HERE),
        "PYTHONWARNINGS": "ignore",
    }
    process = subprocess.run(
        [python, HERE / f"peer_{name}.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        sys.exit(f"{name} failed:\n{process.stderr}")
    return dict(json.loads(process.stdout))


def errors(answers: Counts, exact: Counts) -> dict[str, float]:
    """Return the root mean square errors of all cells and of each table."""
    squares = {
        table: [
            (answers[table].get(cell, 0.0) - count) ** 2 for cell, count in exact[table].items()
        ]
        for table in map(key, TABLES)
    }
    squares["all"] = [square for table in map(key, TABLES) for square in squares[table]]
    return {column: math.sqrt(sum(squares[column]) / len(squares[column])) for column in COLUMNS}


def main() -> None:
    """Run all libraries and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=HERE.parents[1] / "build" / "peers")
    parser.add_argument("--only", choices=PEERS, default=None)
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    write_people(folder)
    exact = truth(folder)
    print(
        "| library | seconds | rmse of all cells | sex | age | region x age "
        "|\n|---|---|---|---|---|---|"
    )
    for name in [options.only] if options.only else PEERS:
        result = run(name, folder)
        rmse = errors(result["answers"], exact)
        print(
            f"| {name} | {result['seconds']:.1f} | "
            + " | ".join(f"{rmse[column]:.3g}" for column in COLUMNS)
            + " |",
            flush=True,
        )


if __name__ == "__main__":
    main()
