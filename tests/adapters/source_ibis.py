"""Tables of Ibis on DuckDB, of the types that Ibis reads; none where Ibis is not installed."""

import warnings
from importlib.util import find_spec

from adapters.pools import DUCKDB
from adapters.sources import CONNECTION, Pool, of_duckdb


def table(made, folder, rng):
    import ibis

    name = f"given_{rng.integers(2**62)}"
    made.create(name)
    with warnings.catch_warnings():
        # Ibis 12 calls functions that DuckDB 2 would rather have called otherwise
        warnings.simplefilter("ignore", DeprecationWarning)
        return ibis.duckdb.from_connection(CONNECTION).table(name)


SIZES = {name: len(pool) + 1 for name, pool in DUCKDB.items() if name not in {"BIT", "INTERVAL", "UNION(k INTEGER)"}}
POOLS = {"ibis": Pool(of_duckdb, SIZES, table)} if find_spec("ibis") else {}
