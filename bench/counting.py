"""Count all three-way marginals of 20 attributes; compare with DuckDB.

The table has 10^6 rows and attributes of 10 values; DuckDB runs a GROUP BY per marginal.

    python bench/counting.py [--rows 1000000] [--attributes 20] [--size 10] [--ways 3]
    [--duckdb-tables 60] [--threads N] [--rounds 3]

DuckDB gets the same codes (one UTINYINT or USMALLINT column per attribute) in an in-memory table
and returns only the cells that occur. Its time is measured on evenly spread marginals,
``--duckdb-tables`` of them (0: all), and scaled to all; ours is measured on all of them. The two
take turns, and the least of the rounds counts for each: what else the machine does is not measured.
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
    """Measure both and print a line for each, and the ratio."""
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
    names = [f"a{place}" for place in range(options.attributes)]
    codes = {
        name: generator.integers(0, options.size, options.rows, dtype=np.uint16) for name in names
    }
    table = Table(Domain({name: Coded(options.size) for name in names}).as_complete(), codes)
    wanted = list(itertools.combinations(names, options.ways))

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
        step = max(1, len(wanted) // options.duckdb_tables)
    else:
        step = 1
    chosen = wanted[::step]
    ours = []
    theirs = []
    for _ in range(options.rounds):
        start = time.perf_counter()
        checksum = {
            attributes: counts
            for attributes, counts in exact_marginals(table, wanted, None)
            if attributes in (wanted[0], wanted[-1])
        }
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        for attributes in chosen:
            listed = ", ".join(attributes)
            found = connection.execute(
                f"SELECT {listed}, count(*) FROM people GROUP BY {listed}"  # noqa: S608
            ).fetchnumpy()  # noqa: RUF100, S608
            if attributes in checksum:
                cells = np.ravel_multi_index(
                    [found[name] for name in attributes], (options.size,) * options.ways
                )
                assert np.array_equal(checksum[attributes][cells], found["count_star()"]), (  # noqa: S101
                    "the two disagree"
                )  # noqa: RUF100, S101
        theirs.append((time.perf_counter() - start) * len(wanted) / len(chosen))

    work = options.rows * len(wanted)
    print(f"rows {options.rows}, marginals {len(wanted)}")
    print(f"leastnoise  {min(ours):8.2f} s   {work / min(ours):12.3g} rows x tables per second")
    print(
        f"duckdb      {min(theirs):8.2f} s   {work / min(theirs):12.3g} rows x tables per second "
        f"({len(chosen)} marginals measured)"
    )
    print(f"ratio       {min(theirs) / min(ours):8.2f}")


if __name__ == "__main__":
    main()
