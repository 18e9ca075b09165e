"""Builders of sources of every kind from pools of values."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from trusted.reading.pools import ARROW, DUCKDB, NO_PARQUET, PANDAS, POLARS

CONNECTION = duckdb.connect()
IDS = [10, 11, 12, None, 14]


@dataclass(frozen=True)
class Pool:
    """How sources of a kind are made.

    Args:
        units: columns of the unit, of which one is drawn.
        marks: the column of serial numbers.
        values: pools of values by name.
        take: from a column and places the values there.
        together: from the columns by name a table.
        opened: from that table, a folder and a generator what is read.
    """

    units: list[Any]
    marks: Any
    values: Mapping[str, Any]
    take: Callable
    together: Callable
    opened: Callable = lambda table, folder, rng: table

    def maker(self, rng, names):
        """Return a function from places in two pools to a table of those values."""
        columns = (
            self.units[rng.integers(len(self.units))],
            self.marks,
            *(self.values[name] for name in names),
        )

        def make(rows):
            picked_columns = (
                self.take(column, places) for column, places in zip(columns, rows, strict=True)
            )
            return self.together(dict(zip(("id", "mark", "a", "b"), picked_columns, strict=True)))

        return make


def take_from_arrow(pool, places):
    try:
        return pool.take(pa.array(places))
    except pa.ArrowNotImplementedError:
        return (
            pa.concat_arrays([pool.slice(int(place), 1) for place in places])
            if len(places)
            else pool.slice(0, 0)
        )


def take_from_pandas(pool, places):
    return pool.iloc[places].reset_index(drop=True)


def take_literals(pool, places):
    """Return the literals at the places, after one more that gives the column its type."""
    return [pool[place] for place in (0, *places)]


def relation(columns):
    lines = ", ".join(f"({', '.join(line)})" for line in zip(*columns.values(), strict=True))
    return CONNECTION.sql(f"SELECT * FROM (VALUES {lines}) AS t({', '.join(columns)}) OFFSET 1")


def cast(kind, literals):
    """Return SQL of the literals and of a null, cast to a type."""
    return [
        f"CAST({'NULL' if literal is None else literal} AS {kind})" for literal in (*literals, None)
    ]


def parquet_file(table, folder, rng):
    """Write the table as Parquet."""
    file = folder / "x.parquet"
    pq.write_table(
        table,
        file,
        version="2.6",
        row_group_size=int(rng.choice([1, 3, 1000])),
        store_schema=bool(rng.random() < 0.7),
    )
    return file


def ibis_table(table, folder, rng):
    """Return a DuckDB table of types that Ibis reads."""
    import ibis

    name = f"given_{rng.integers(2**62)}"
    table.create(name)
    with warnings.catch_warnings():
        # Ibis 12 calls functions that DuckDB 2 has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        return ibis.duckdb.from_connection(CONNECTION).table(name)


TEXTS = [None if number is None else f"u{number}" for number in IDS]
ARROW_UNITS = [pa.array(IDS, pa.int16()), pa.array(IDS).cast(pa.decimal128(25, 3)), pa.array(TEXTS)]
ARROW_UNITS += [unit.dictionary_encode() for unit in ARROW_UNITS]
OF_ARROW = Pool(ARROW_UNITS, pa.array(range(99), pa.int32()), ARROW, take_from_arrow, pa.table)
OF_POLARS = Pool(
    [pl.Series(IDS, dtype=pl.Int16), pl.Series(TEXTS, dtype=pl.Categorical)],
    pl.Series(range(99)),
    POLARS,
    pl.Series.gather,
    pl.DataFrame,
)
OF_PANDAS = Pool(
    [pd.Series(IDS, dtype=kind) for kind in ("Int64", "float64", object)],
    pd.Series(range(99)),
    PANDAS,
    take_from_pandas,
    pd.DataFrame,
)
OF_DUCKDB = Pool(
    [cast(kind, IDS) for kind in ("INTEGER", "VARCHAR", "HUGEINT")],
    cast("INTEGER", range(99)),
    {kind: cast(kind, literals) for kind, literals in DUCKDB.items()},
    take_literals,
    relation,
)
POOLS = {
    "pyarrow": OF_ARROW,
    "parquet": replace(
        OF_ARROW,
        values={name: pool for name, pool in ARROW.items() if name not in NO_PARQUET},
        opened=parquet_file,
    ),
    "pandas": OF_PANDAS,
    "polars": OF_POLARS,
    "polars lazy": replace(OF_POLARS, opened=lambda frame, *_: frame.lazy()),
    "duckdb": OF_DUCKDB,
}
if find_spec("ibis"):
    no_ibis = {"BIT", "INTERVAL", "UNION(k INTEGER)"}
    POOLS["ibis"] = replace(
        OF_DUCKDB,
        values={kind: pool for kind, pool in OF_DUCKDB.values.items() if kind not in no_ibis},
        opened=ibis_table,
    )
