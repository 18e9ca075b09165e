"""Files and frames of few rows, and the encoded rows that are read from them."""

import gzip

import duckdb
import pandas as pd

from leastnoise._trusted.table import open_content

# Before version 2 of DuckDB, a relation does not keep its connection.
CONNECTION = duckdb.connect()


def encoded_rows(table):
    """Return the encoded rows as sorted tuples, since sources promise no order."""
    names = [open_content(table).codes[name].tolist() for name in table.domain.names]
    sums = [open_content(table).values[name].tolist() for name in table.domain.measures]
    return sorted(zip(*names, *sums, strict=True))


def from_csv(frame, folder, name="x.csv", delimiter=","):
    frame.write_csv(folder / name, separator=delimiter)
    return folder / name


def from_gzip(frame, folder):
    (folder / "x.csv.gz").write_bytes(gzip.compress(frame.write_csv(quote_style="always").encode()))
    return folder / "x.csv.gz"


def from_parquet(frame, folder):
    frame.write_parquet(folder / "x.parquet")
    return folder / "x.parquet"


SOURCES_OF_FRAME = {
    "csv": from_csv,
    "csv.gz, all quoted": from_gzip,
    "tsv": lambda frame, folder: from_csv(frame, folder, "x.tsv", "\t"),
    "parquet": from_parquet,
    "polars": lambda frame, folder: frame,
    "polars lazy": lambda frame, folder: frame.lazy(),
    "pyarrow": lambda frame, folder: frame.to_arrow(),
    "pandas": lambda frame, folder: frame.to_pandas(),
    "pandas of arrow": lambda frame, folder: frame.to_pandas(use_pyarrow_extension_array=True),
    "pandas of objects": lambda frame, folder: pd.DataFrame(
        {name: pd.Series(frame[name].to_list(), dtype=object) for name in frame.columns}
    ),
    "duckdb": lambda frame, folder: CONNECTION.from_arrow(frame.to_arrow()),
}


def write_file(folder, content, name="x.csv"):
    (folder / name).write_bytes(content)
    return folder / name
