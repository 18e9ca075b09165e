"""From a file to exact counts of all two-way tables, against DuckDB in the same run.

    python bench/reading.py [--rows 10000000] [--csv-rows 10000000] [--rounds 3] [--folder DIR]

Parquet: 8 attributes (whole numbers of 2 to 90 values); ours reads, encodes and counts all 28
tables; DuckDB computes the same counts by the fastest of one GROUP BY a table, all of them in one
UNION ALL, and GROUPING SETS. CSV: the same rows as text. Ours reads, encodes and counts all 28
tables; DuckDB only reads it, with its own guesses of the types, and sums every column; pyarrow only
parses it. Each takes its turn in every round, and its least time counts, which other programs on
the machine disturb least. The program prints how many times as fast ours is, by the clock and by
the processors.
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
    """Measure, and print a line for each way of counting."""
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
            f"(hash(i * 8 + {place}) % {size})::INTEGER AS {name}"
            for place, (name, size) in enumerate(zip(NAMES, SIZES, strict=True))
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
        theirs = {
            "DuckDB": lambda: connection.sql(f"SELECT {sums} FROM read_csv('{csv}')").fetchall(),
            "pyarrow": lambda: pyarrow.csv.read_csv(csv),
        }
        compare(
            f"CSV, {options.csv_rows} rows, {len(PAIRS)} tables",
            options.rounds,
            lambda: counted(csv, domain),
            theirs,
        )
    print(
        "largest memory of this process, DuckDB's included: "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"
    )


def counted(file: Path, domain: ln.Domain) -> int:
    """Count the first table with leastnoise; return its number of rows."""
    return int(
        next(iter([counts for _, counts in exact_marginals(read(file, domain), PAIRS)])).sum()
    )


def queries(connection: Any, file: Path) -> dict[str, Callable[[], Any]]:
    """Return functions that count the same table with DuckDB."""
    single = [
        f"SELECT {one}, {other}, count(*) FROM '{file}' GROUP BY 1, 2" for one, other in PAIRS
    ]
    sets = ", ".join(f"({one}, {other})" for one, other in PAIRS)
    return {
        "a GROUP BY a table": lambda: [connection.execute(query).fetchnumpy() for query in single],
        "UNION ALL": lambda: connection.execute(" UNION ALL ".join(single)).fetchnumpy(),
        "GROUPING SETS": lambda: connection.execute(
            f"SELECT {', '.join(NAMES)}, count(*) FROM '{file}' GROUP BY GROUPING SETS ({sets})"
        ).fetchnumpy(),
    }


def compare(
    what: str, rounds: int, ours: Callable[[], Any], theirs: dict[str, Callable[[], Any]]
) -> None:
    """Time functions in turns and print the shortest time of each."""
    least: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        for name, function in {"leastnoise": ours, **theirs}.items():
            start = time.perf_counter()
            used = time.process_time()
            function()
            taken = time.perf_counter() - start, time.process_time() - used
            least[name] = tuple(map(min, taken, least.get(name, taken)))  # type: ignore[assignment]
    own = least.pop("leastnoise")
    best = min(least.values())
    print(what)
    for name, (clock, used) in {"leastnoise": own, **least}.items():
        print(f"    {name:20} {clock:8.2f} s by the clock {used:8.2f} s of processors")
    print(
        f"    ratio to the best    {best[0] / own[0]:8.2f}                "
        f"{min(used for _, used in least.values()) / own[1]:8.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
