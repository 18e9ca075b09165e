"""Count all three-way marginals of 20 attributes; compare with DuckDB.

The table has 10^6 rows and attributes of 10 values; DuckDB runs a GROUP BY per marginal.

    python bench/counting.py [--rows 1000000] [--attributes 20] [--size 10] [--ways 3]
    [--duckdb-tables 60] [--threads N] [--rounds 3]

DuckDB gets the same codes (one UTINYINT or USMALLINT column per attribute) in an in-memory table
and returns only the cells that occur. Its time is measured on ``--duckdb-tables`` evenly spread
marginals (0: all), and scaled to all of them; our time is measured on all of them. The two take
turns, and the shortest time of all rounds counts for each, because other programs on the machine
only add time.
"""

import argparse
import itertools
import time

import duckdb
import numpy as np

from leastnoise._domain import Coded, Domain
from leastnoise._trusted.kernel._count import exact_marginals
from leastnoise._trusted.table import Table


def main() -> None:
    """Measure both programs and print a line for each, and the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--attributes", type=int, default=20)
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--ways", type=int, default=3)
    parser.add_argument("--duckdb-tables", type=int, default=60)
    parser.add_argument(
        "--threads", type=int, default=None, help="threads of DuckDB; default all. Ours uses one."
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    generator = np.random.default_rng(1)
    names = [f"a{number}" for number in range(options.attributes)]
    codes = {
        name: generator.integers(0, options.size, options.rows, dtype=np.uint16) for name in names
    }
    table = Table(Domain({name: Coded(options.size) for name in names}).as_complete(), codes)
    marginals = list(itertools.combinations(names, options.ways))

    connection = duckdb.connect()
    if options.threads:
        connection.execute(f"SET threads = {options.threads}")
    kind = "UTINYINT" if options.size <= 256 else "USMALLINT"
    rows = codes
    connection.register("rows", rows)
    connection.execute(
        "CREATE TABLE people AS SELECT "  # noqa: S608
        f"{', '.join(f'{name}::{kind} AS {name}' for name in names)} FROM rows"
    )  # noqa: RUF100, S608
    if options.duckdb_tables:
        step = max(1, len(marginals) // options.duckdb_tables)
    else:
        step = 1
    chosen = marginals[::step]
    our_seconds = []
    duckdb_seconds = []
    for _ in range(options.rounds):
        start = time.perf_counter()
        checksum = {
            attributes: counts
            for attributes, counts in exact_marginals(table, marginals, None)
            if attributes in (marginals[0], marginals[-1])
        }
        our_seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        for attributes in chosen:
            listed = ", ".join(attributes)
            result = connection.execute(
                f"SELECT {listed}, count(*) FROM people GROUP BY {listed}"  # noqa: S608
            ).fetchnumpy()  # noqa: RUF100, S608
            if attributes in checksum:
                cells = np.ravel_multi_index(
                    [result[name] for name in attributes], (options.size,) * options.ways
                )
                assert np.array_equal(checksum[attributes][cells], result["count_star()"]), (  # noqa: S101
                    "the two disagree"
                )  # noqa: RUF100, S101
        duckdb_seconds.append((time.perf_counter() - start) * len(marginals) / len(chosen))

    work = options.rows * len(marginals)
    print(f"rows {options.rows}, marginals {len(marginals)}")
    our_least = min(our_seconds)
    duckdb_least = min(duckdb_seconds)
    print(f"leastnoise  {our_least:8.2f} s   {work / our_least:12.3g} rows x tables per second")
    print(
        f"duckdb      {duckdb_least:8.2f} s   {work / duckdb_least:12.3g} rows x tables per second "
        f"({len(chosen)} marginals measured)"
    )
    print(f"ratio       {duckdb_least / our_least:8.2f}")


if __name__ == "__main__":
    main()
