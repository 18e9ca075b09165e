"""Count marginals of a Spark data frame in local mode.

It prints the memory of the Python process and of the Java process.

    python bench/spark.py [--rows 100000000] [--heap 2g] [--folder DIR] [--unit] [--collected]

The rows of `reading.py` (8 attributes of 2 to 90 values) in a Parquet file that Spark reads: Spark
encodes and counts, and all 28 two-way tables come back. With ``--unit`` rows belong to units of
which each keeps 2 rows, so that Spark sorts all rows by their unit. With ``--collected`` the first
attribute is a number that Spark cannot encode, so that all rows come to the driver, a partition at
a time. What is printed is processor time of both processes, and the largest memory of each; some
tables are then counted by DuckDB too.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession
from reading import NAMES, PAIRS, SIZES

import leastnoise as ln
from leastnoise._trusted.kernel._count import exact_marginals
from leastnoise._trusted.reading import read
from leastnoise._trusted.reading._read import ReadRequest


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10**8)
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--unit", action="store_true")
    parser.add_argument("--collected", action="store_true")
    options = parser.parse_args()
    domain = ln.Domain(
        {name: ln.Integers(0, size - 1) for name, size in zip(NAMES, SIZES, strict=True)}
    ).as_complete()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        file = Path(folder, "rows.parquet")
        write(file, options.rows)
        settings = {
            "spark.driver.memory": options.heap,
            "spark.ui.enabled": "false",
            "spark.local.dir": folder,
        }
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        builder = SparkSession.builder.master("local[2]").appName("leastnoise")
        for name, value in settings.items():
            builder = builder.config(name, value)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        spark = builder.getOrCreate()
        # No public method gives the number of the process.
        java = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]  # noqa: SLF001
        before = seconds(java)
        start = time.perf_counter()
        unit, most = ("unit", 2) if options.unit else (None, 1)
        frame = spark.read.parquet(str(file))
        if options.collected:
            frame = frame.withColumn(NAMES[0], frame[NAMES[0]].cast("float"))
        table = read(
            frame,
            domain,
            read_request=ReadRequest(tables={None: PAIRS}),
            unit_column=unit,
            max_rows=most,
        )
        found = dict(exact_marginals(table, PAIRS))
        totals = {int(counts.sum()) for counts in found.values()}
        print(
            f"{options.rows} rows, {len(PAIRS)} tables, each of {totals} rows; heap {options.heap}"
        )
        print(
            f"    {time.perf_counter() - start:.0f} s by the clock, {seconds(java) - before:.0f} "
            "s of processors in Java"
        )
        own = resource.getrusage(resource.RUSAGE_SELF)
        print(
            f"    Python: {own.ru_utime:.1f} s of processors with imports, at most "
            f"{own.ru_maxrss / 2**20:.2f} GiB"
        )
        print(f"    Java: at most {status(java, 'VmHWM') / 2**20:.2f} GiB", flush=True)
        spark.stop()
        if not options.unit:
            same = all(found[pair].tolist() == counted(file, pair) for pair in PAIRS[::9])
            print(
                f"    {len(PAIRS[::9])} of the tables counted by DuckDB: "
                f"{'the same' if same else 'OTHERS'}",
                flush=True,
            )


def write(file: Path, rows: int) -> None:
    """Write the rows in a process of its own, which returns DuckDB's memory."""
    import multiprocessing

    process = multiprocessing.get_context("spawn").Process(target=_write, args=(str(file), rows))
    process.start()
    process.join()


def _write(file: str, rows: int) -> None:
    """Write the rows in this process."""
    columns = [
        f"(hash(i * 8 + {place}) % {size})::INTEGER AS {name}"
        for place, (name, size) in enumerate(zip(NAMES, SIZES, strict=True))
    ]
    columns.append(f"(hash(i * 8 + 9) % {max(1, rows // 2)})::INTEGER AS unit")
    duckdb.connect().execute(
        f"COPY (SELECT {', '.join(columns)} FROM range({rows}) AS r(i)) TO '{file}'"
    )


def counted(file: Path, pair: tuple[str, ...]) -> list[int]:
    """Count a table with DuckDB."""
    sizes = [SIZES[NAMES.index(name)] for name in pair]
    cell = f"{pair[0]} * {sizes[1]} + {pair[1]}"
    rows = (
        duckdb.connect()
        .execute(f"SELECT {cell} AS cell, count(*) FROM '{file}' GROUP BY cell")
        .fetchall()
    )
    known = dict(rows)
    return [known.get(place, 0) for place in range(sizes[0] * sizes[1])]


def status(process: int, name: str) -> int:
    """Return an entry of a process's status in /proc."""
    line = next(
        line
        for line in Path(f"/proc/{process}/status").read_text().splitlines()
        if line.startswith(name)
    )
    return int(line.split()[1])


def seconds(process: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


if __name__ == "__main__":
    main()
