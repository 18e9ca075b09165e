"""How sources of every kind are made from pools of values; rows of the kit of neighbours."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from adapters.pools import ARROW, DUCKDB, NO_PARQUET, PANDAS, POLARS

CONNECTION = duckdb.connect()


def of_arrow(rng, names):
    """Arrow tables, as a function from rows."""
    ids = [10, 11, 12, None, 14]
    unit = [pa.array(ids, pa.int16()), pa.array(ids).cast(pa.decimal128(25, 3)), pa.array([None if i is None else f"u{i}" for i in ids])][
        rng.integers(3)
    ]
    unit = unit.dictionary_encode() if rng.random() < 0.3 else unit

    def make(rows):
        unit_of, serial, values = rows
        columns = [
            unit.take(pa.array(unit_of)),
            pa.array(serial, pa.int32()),
            *(_taken(ARROW[name], v) for name, v in zip(names, values, strict=True)),
        ]
        return pa.table(dict(zip(("id", "mark", "a", "b"), columns, strict=True)))

    return make


def _taken(pool, places):
    try:
        return pool.take(pa.array(places))
    except pa.ArrowNotImplementedError:
        return pa.concat_arrays([pool.slice(int(place), 1) for place in places]) if len(places) else pool.slice(0, 0)


def of_pandas(rng, names):
    unit = pd.Series([10, 11, 12, None, 14], dtype=["Int64", "float64", object][rng.integers(3)])

    def make(rows):
        unit_of, serial, values = rows
        columns = {"id": unit.iloc[unit_of], "mark": pd.Series(serial, dtype=np.int64)}
        columns |= {name: PANDAS[kind].iloc[v] for name, kind, v in zip(("a", "b"), names, values, strict=True)}
        return pd.DataFrame({name: column.reset_index(drop=True) for name, column in columns.items()})

    return make


def of_polars(rng, names):
    unit = [pl.Series([10, 11, 12, None, 14], dtype=pl.Int16), pl.Series(["a", "b", "", None, "new"], dtype=pl.Categorical)][
        rng.integers(2)
    ]

    def make(rows):
        unit_of, serial, values = rows
        columns = {"id": unit.gather(unit_of), "mark": pl.Series(serial, dtype=pl.Int32)}
        return pl.DataFrame(columns | {name: POLARS[kind].gather(v) for name, kind, v in zip(("a", "b"), names, values, strict=True)})

    return make


def of_duckdb(rng, names):
    unit_type = ["INTEGER", "VARCHAR", "HUGEINT"][rng.integers(3)]
    types = [unit_type, "INTEGER", *names]

    def make(rows):
        unit_of, serial, values = rows
        if not len(serial):
            nothing = ", ".join(f"NULL::{kind} AS {name}" for name, kind in zip(("id", "mark", "a", "b"), types, strict=True))
            return CONNECTION.sql(f"SELECT {nothing} WHERE false")
        lines = []
        for place in range(len(serial)):
            literals = [str([10, 11, 12, "NULL", 14][unit_of[place]]), str(serial[place])]
            literals += [(*DUCKDB[kind], "NULL")[v[place]] for kind, v in zip(names, values, strict=True)]
            lines.append("(" + ", ".join(f"CAST({literal} AS {kind})" for literal, kind in zip(literals, types, strict=True)) + ")")
        return CONNECTION.sql(f"SELECT * FROM (VALUES {', '.join(lines)}) AS t(id, mark, a, b)")

    return make


@dataclass(frozen=True)
class Pool:
    """How sources of a kind are made.

    Args:
        make: from a generator and the names of two pools a function from rows to a table.
        sizes: of the pools, by name.
        opened: from that table, a folder and the generator to what is read.
    """

    make: Callable
    sizes: dict[str, int]
    opened: Callable = lambda made, folder, rng: made


def parquet_file(made, folder, rng):
    """Written as Parquet."""
    file = folder / "x.parquet"
    pq.write_table(made, file, version="2.6", row_group_size=int(rng.choice([1, 3, 1000])), store_schema=bool(rng.random() < 0.7))
    return file


def ibis_table(made, folder, rng):
    """On DuckDB, of the types that Ibis reads."""
    import ibis

    name = f"given_{rng.integers(2**62)}"
    made.create(name)
    with warnings.catch_warnings():
        # Ibis 12 calls functions that DuckDB 2 would rather have called otherwise
        warnings.simplefilter("ignore", DeprecationWarning)
        return ibis.duckdb.from_connection(CONNECTION).table(name)


ARROW_SIZES, POLARS_SIZES = ({name: len(pool) for name, pool in pools.items()} for pools in (ARROW, POLARS))
DUCKDB_SIZES = {name: len(pool) + 1 for name, pool in DUCKDB.items()}
POOLS = {
    "pyarrow": Pool(of_arrow, ARROW_SIZES),
    "parquet": Pool(of_arrow, {name: size for name, size in ARROW_SIZES.items() if name not in NO_PARQUET}, parquet_file),
    "pandas": Pool(of_pandas, {name: len(pool) for name, pool in PANDAS.items()}),
    "polars": Pool(of_polars, POLARS_SIZES),
    "polars lazy": Pool(of_polars, POLARS_SIZES, lambda made, *_: made.lazy()),
    "duckdb": Pool(of_duckdb, DUCKDB_SIZES),
}
if find_spec("ibis"):
    no_ibis = {"BIT", "INTERVAL", "UNION(k INTEGER)"}
    POOLS["ibis"] = Pool(of_duckdb, {name: size for name, size in DUCKDB_SIZES.items() if name not in no_ibis}, ibis_table)
