"""Time exact counts of all two-way tables from a file, and compare with DuckDB.

    python bench/reading.py [--rows 10000000] [--csv-rows 10000000] [--rounds 3] [--folder DIR]

Parquet: 8 attributes (whole numbers of 2 to 90 values). Leastnoise reads, encodes and counts all 28
tables. DuckDB computes the same counts by the fastest of one GROUP BY a table, all of them in one
UNION ALL, and GROUPING SETS. CSV: the same rows as text. Leastnoise reads, encodes and counts all
28 tables; DuckDB only reads the file, guesses the types, and sums every column; pyarrow only parses
it. The programs take turns in every round of one run. The shortest time of each counts, because
other programs on the machine only add time. The ratios divide the shortest time of the others by
ours, by the clock and in CPU seconds.
"""

import argparse
import itertools
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.csv

import leastnoise as ln
from leastnoise._trusted.kernel._count import exact_marginals
from leastnoise._trusted.reading import read

SIZES = (2, 3, 5, 9, 12, 20, 50, 90)
NAMES = [f"a{place}" for place in range(len(SIZES))]
PAIRS = list(itertools.combinations(NAMES, 2))


def main() -> None:
    """Measure all programs and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--csv-rows", type=int, default=10**7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        parquet = Path(folder, "rows.parquet")
        csv = Path(folder, "rows.csv")
        connection = duckdb.connect()
        listed = ", ".join(
            f"(hash(i * 8 + {number}) % {size})::INTEGER AS {name}"
            for number, (name, size) in enumerate(zip(NAMES, SIZES, strict=True))
        )
        for file, rows in ((parquet, options.rows), (csv, options.csv_rows)):
            connection.execute(f"COPY (SELECT {listed} FROM range({rows}) AS r(i)) TO '{file}'")
        domain = ln.Domain(
            {name: ln.Integers(0, size - 1) for name, size in zip(NAMES, SIZES, strict=True)}
        ).as_complete()
        compare(
            f"Parquet, {options.rows} rows, {len(PAIRS)} tables",
            options.rounds,
            lambda: counted(parquet, domain),
            queries(connection, parquet),
        )
        sums = ", ".join(f"sum({name})" for name in NAMES)
        parsers = {
            "DuckDB": lambda: connection.sql(f"SELECT {sums} FROM read_csv('{csv}')").fetchall(),
            "pyarrow": lambda: pyarrow.csv.read_csv(csv),
        }
        compare(
            f"CSV, {options.csv_rows} rows, {len(PAIRS)} tables",
            options.rounds,
            lambda: counted(csv, domain),
            parsers,
        )
    print(
        "largest memory of this process, DuckDB's included: "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"
    )


def counted(file: Path, domain: ln.Domain) -> int:
    """Count all tables with leastnoise; return the number of rows of the first one."""
    tables = [counts for _, counts in exact_marginals(read(file, domain), PAIRS)]
    return int(tables[0].sum())


def queries(connection: Any, file: Path) -> dict[str, Callable[[], Any]]:
    """Return functions that count the same tables with DuckDB."""
    single = [
        f"SELECT {first}, {second}, count(*) FROM '{file}' GROUP BY 1, 2" for first, second in PAIRS
    ]
    sets = ", ".join(f"({first}, {second})" for first, second in PAIRS)
    return {
        "a GROUP BY a table": lambda: [connection.execute(query).fetchnumpy() for query in single],
        "UNION ALL": lambda: connection.execute(" UNION ALL ".join(single)).fetchnumpy(),
        "GROUPING SETS": lambda: connection.execute(
            f"SELECT {', '.join(NAMES)}, count(*) FROM '{file}' GROUP BY GROUPING SETS ({sets})"
        ).fetchnumpy(),
    }


def compare(
    title: str,
    rounds: int,
    count: Callable[[], Any],
    peers: dict[str, Callable[[], Any]],
) -> None:
    """Time functions in turns and print the shortest time of each."""
    clock_seconds: dict[str, float] = {}
    cpu_seconds: dict[str, float] = {}
    for _ in range(rounds):
        for name, function in {"leastnoise": count, **peers}.items():
            clock_start = time.perf_counter()
            cpu_start = time.process_time()
            function()
            clock = time.perf_counter() - clock_start
            cpu = time.process_time() - cpu_start
            clock_seconds[name] = min(clock, clock_seconds.get(name, clock))
            cpu_seconds[name] = min(cpu, cpu_seconds.get(name, cpu))
    print(title)
    for name, clock in clock_seconds.items():
        print(f"    {name:20} {clock:8.2f} s by the clock {cpu_seconds[name]:8.2f} s of processors")
    clock_ratio = min(clock_seconds[name] for name in peers) / clock_seconds["leastnoise"]
    cpu_ratio = min(cpu_seconds[name] for name in peers) / cpu_seconds["leastnoise"]
    print(
        f"    ratio to the best    {clock_ratio:8.2f}                {cpu_ratio:8.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
