"""Count marginals of a Spark data frame in local mode.

It prints the memory of the Python process and of the Java process.

    python bench/spark.py [--rows 100000000] [--heap 2g] [--folder DIR] [--unit] [--collected]

Spark reads the rows of `reading.py` (8 attributes of 2 to 90 values) from a Parquet file, encodes
and counts them, and returns all 28 two-way tables. With ``--unit`` rows belong to units, each of
which keeps 2 rows, so that Spark sorts all rows by their unit. With ``--collected`` the first
attribute is a number that Spark cannot encode, so that all rows come to the driver, a partition at
a time. The program prints the CPU seconds and the largest memory of both processes. DuckDB then
counts some tables to check the results.
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
        unit = "unit" if options.unit else None
        max_rows = 2 if options.unit else 1
        frame = spark.read.parquet(str(file))
        if options.collected:
            frame = frame.withColumn(NAMES[0], frame[NAMES[0]].cast("float"))
        table = read(
            frame,
            domain,
            read_request=ReadRequest(tables={None: PAIRS}),
            unit_column=unit,
            max_rows=max_rows,
        )
        tables = dict(exact_marginals(table, PAIRS))
        totals = {int(counts.sum()) for counts in tables.values()}
        print(
            f"{options.rows} rows, {len(PAIRS)} tables, each of {totals} rows; heap {options.heap}"
        )
        print(
            f"    {time.perf_counter() - start:.0f} s by the clock, {seconds(java) - before:.0f} "
            "s of processors in Java"
        )
        usage = resource.getrusage(resource.RUSAGE_SELF)
        print(
            f"    Python: {usage.ru_utime:.1f} s of processors with imports, at most "
            f"{usage.ru_maxrss / 2**20:.2f} GiB"
        )
        print(f"    Java: at most {status(java, 'VmHWM') / 2**20:.2f} GiB", flush=True)
        spark.stop()
        if not options.unit:
            checked = PAIRS[::9]
            is_equal = all(tables[pair].tolist() == counted(file, pair) for pair in checked)
            print(
                f"    {len(checked)} of the tables counted by DuckDB: "
                f"{'the same' if is_equal else 'DIFFERENT'}",
                flush=True,
            )


def write(file: Path, rows: int) -> None:
    """Write the rows in a separate process, so that DuckDB's memory is freed."""
    import multiprocessing

    process = multiprocessing.get_context("spawn").Process(target=_write, args=(str(file), rows))
    process.start()
    process.join()


def _write(file: str, rows: int) -> None:
    """Write the rows in this process."""
    columns = [
        f"(hash(i * 8 + {number}) % {size})::INTEGER AS {name}"
        for number, (name, size) in enumerate(zip(NAMES, SIZES, strict=True))
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
    counts = dict(rows)
    return [counts.get(number, 0) for number in range(sizes[0] * sizes[1])]


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
