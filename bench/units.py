"""Time the reading of events with three rows per unit, and compare with DuckDB.

    python bench/units.py [--rows 13000000] [--csv-rows 13000000] [--rounds 1] [--folder DIR]
    python bench/units.py --scale [ROWS]   # 10^8 rows of Parquet, ours only; 2 GiB of disk

Parquet: twelve folders ``month=01`` ... ``month=12`` of events with ten rows per unit, whose ids
are whole numbers, then texts. Leastnoise reads and encodes the events, chooses the rows of each
unit and counts three tables. DuckDB numbers the rows of each unit in random order, keeps the first
three and counts the same tables. CSV: the same events as text, compared with pyarrow's parse of all
columns; leastnoise also sums the amounts of the events.

Each measurement is a separate process. Its time includes the first use of a library but not the
imports. The smallest CPU time of all rounds counts.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

MAX_ROWS = 3
SCALE_ROWS = 10**8
TABLES = [("month", "region"), ("age", "sex"), ("region", "age")]


class Measurement(NamedTuple):
    """Costs of a process.

    Attributes:
        cpu: seconds of all processors.
        clock: seconds by the clock.
        peak: largest memory in GiB.
        system: the part of ``cpu`` in the operating system.
    """

    cpu: float
    clock: float
    peak: float
    system: float


def write_events(folder: Path, rows: int, unit: str, kind: str) -> None:
    """Write the events of twelve months, with an SQL expression as the id of a unit."""
    import duckdb

    columns = f"""{unit.format(units=rows // 10)} AS person,
        ['N', 'S', 'E', 'W', 'C'][(hash(i * 7) % 5 + 1)::INT] AS region,
        (hash(i * 3) % 90)::INTEGER AS age, (hash(i * 5) % 2)::INTEGER AS sex,
        (hash(i * 11) % 1000) / 10.0 AS amount"""
    with duckdb.connect() as database:
        for month in range(12):
            part = folder / f"month={month + 1:02}"
            part.mkdir(parents=True)
            first = month * rows // 12
            last = (month + 1) * rows // 12
            events = database.sql(f"SELECT {columns} FROM range({first}, {last}) r(i)")  # noqa: S608
            path = str(part / f"part.{kind}")
            if kind == "csv":
                events.write_csv(path)
            else:
                events.write_parquet(path)


def count_by_leastnoise(folder: str, measures: tuple[str, ...] = ()) -> None:
    """Read, bound and count the events; also sum measures."""
    import leastnoise as ln
    from leastnoise._trusted.kernel._count import exact_marginals
    from leastnoise._trusted.reading import ReadRequest, read

    domain = ln.Domain(
        month=[f"{month:02}" for month in range(1, 13)],
        region=["N", "S", "E", "W", "C"],
        age=ln.Integers(0, 89),
        sex=ln.Integers(0, 1),
        measures={"amount": ln.Measure("amount", 0, 100, unit="0.1")},
    ).as_complete()
    request = ReadRequest(usage=True, measures=measures)
    table = read(folder, domain, unit_column="person", max_rows=MAX_ROWS, read_request=request)
    for _ in exact_marginals(table, TABLES):
        pass
    for measure in measures:
        for _ in exact_marginals(table, TABLES, measure):
            pass


def sum_by_leastnoise(folder: str) -> None:
    """Read, bound and count the events, and sum their amounts."""
    count_by_leastnoise(folder, ("amount",))


def count_by_duckdb(folder: str) -> None:
    """Number the rows of each unit in random order, and count the first ones."""
    import duckdb

    sets = ", ".join(f"({', '.join(table)})" for table in TABLES)
    kind = next(Path(folder).rglob("part.*")).suffix.removeprefix(".")
    # The program chooses the folder.
    query = f"""WITH kept AS MATERIALIZED (
            SELECT month, region, age, sex FROM (
                SELECT *, row_number() OVER (PARTITION BY person ORDER BY turn) AS place
                FROM (SELECT *, random() AS turn FROM read_{kind}('{folder}/*/*.{kind}',
                    hive_partitioning = true, hive_types_autocast = false))
            ) WHERE place <= {MAX_ROWS}
        ) SELECT month, region, age, sex, count(*) FROM kept GROUP BY GROUPING SETS ({sets})"""  # noqa: S608
    with duckdb.connect() as database:
        database.execute(query).fetchnumpy()


def parse_by_pyarrow(folder: str) -> None:
    """Parse all columns of CSV files."""
    import pyarrow.csv

    for file in sorted(Path(folder).rglob("*.csv")):
        pyarrow.csv.read_csv(file)


def measure(function: Callable[[str], None], folder: str) -> Measurement:
    """Run a function on a folder in this process."""
    import duckdb  # noqa: F401 - imports are not measured
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    import leastnoise._domain
    import leastnoise._trusted.kernel._count
    import leastnoise._trusted.reading  # noqa: F401

    start = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF)
    function(folder)
    after = resource.getrusage(resource.RUSAGE_SELF)
    system = after.ru_stime - before.ru_stime
    cpu = after.ru_utime - before.ru_utime + system
    return Measurement(cpu, time.perf_counter() - start, after.ru_maxrss / 2**20, system)


def compare(
    title: str, rounds: int, folder: Path, functions: dict[str, Callable[[str], None]]
) -> Iterator[str]:
    """Yield a line for each function, and a line with their ratios to the last one."""
    smallest_costs: dict[str, Measurement] = {}
    for _ in range(rounds):
        for name, function in functions.items():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                measurement = pool.apply(measure, (function, str(folder)))
            smallest_costs[name] = min(measurement, smallest_costs.get(name, measurement))
    yield title
    for name, costs in smallest_costs.items():
        yield (
            f"    {name:12} {costs.cpu:8.2f} s of processors ({costs.system:.2f} of the system) "
            f"{costs.clock:8.2f} s by the clock {costs.peak:6.2f} GiB"
        )
    if len(smallest_costs) == 1:
        return
    *others, reference = smallest_costs.values()
    ratios = " ".join(f"{measurement.cpu / reference.cpu:8.2f}" for measurement in others)
    yield f"    ratio        {ratios}"


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=13_000_000)
    parser.add_argument("--csv-rows", type=int, default=13_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--scale", type=int, nargs="?", const=SCALE_ROWS, metavar="ROWS")
    options = parser.parse_args()
    number = "(hash(i) % {units})::BIGINT"
    text = "'p' || (hash(i) % {units})"
    functions = {"leastnoise": count_by_leastnoise}
    csv_functions = {
        "with sums": sum_by_leastnoise,
        "DuckDB": count_by_duckdb,
        "pyarrow": parse_by_pyarrow,
    }
    cases: list[tuple[str, int, str, str, dict[str, Any]]] = [
        ("numbers as ids", options.rows, number, "parquet", {"DuckDB": count_by_duckdb}),
        ("texts as ids", options.rows, text, "parquet", {"DuckDB": count_by_duckdb}),
        ("texts as ids", options.csv_rows, text, "csv", csv_functions),
    ]
    if options.scale:
        cases = [("numbers as ids", options.scale, number, "parquet", {})]
    for title, rows, unit, kind, peers in cases:
        if not rows:
            continue
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            events = Path(folder, "events")
            write_events(events, rows, unit, kind)
            full_title = f"{kind}, {rows} rows, {title}"
            for line in compare(full_title, options.rounds, events, {**functions, **peers}):
                print(line, flush=True)


if __name__ == "__main__":
    main()
