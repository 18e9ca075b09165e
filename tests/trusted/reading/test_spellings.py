"""The tables of docs/spec.md on reading texts, line by line from every source."""

import csv
import gzip
import re
from collections import Counter, defaultdict
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leastnoise as ln
from leastnoise._domain import UnitCount, ValueCount
from leastnoise._trusted.reading import ReadRequest, read, read_keys
from leastnoise._trusted.table import open_content
from trusted.reading.encoders import units_of
from trusted.reading.engine_rows import counts, literal
from trusted.reading.postgres import table as server_table

PAGE = (Path(__file__).parents[3] / "docs" / "spec.md").read_text(encoding="utf-8")
CONNECTION = duckdb.connect()
MOST = 1_070_000
KEYS = {
    "no key": {},
    '`decimal = ","`': {"decimal": ","},
    '`thousands = " "`': {"thousands": " "},
    '`currency = ["€"]`': {"currency": ["€"]},
    "`trim = true`": {"trim": True},
    "`ignore_case = true`": {"ignore_case": True},
    '`null = ["NA", "-9"]`': {"nulls": ["NA", "-9"]},
}

ABOUT_TEXTS = ["no key", "`trim = true`", "`ignore_case = true`", '`null = ["NA", "-9"]`']


def table_of_page(kind):
    """Return the lines of a table of the page: the text, and its reading in each column."""
    section = PAGE.split("### How a text is read")[1].split("\n## ")[0]
    lines = section.split(f"**{kind}**")[1].split("\n\n")[1].splitlines()
    header, _, *rows = [re.split(r" ?(?<!\\)\| ?", line.strip())[1:-1] for line in lines]
    texts = [row[0].removeprefix("`").removesuffix("`") for row in rows]
    columns = zip(header[1:], zip(*(row[1:] for row in rows), strict=True), strict=True)
    return texts, {title: list(cells) for title, cells in columns if title}


def csv_file(texts, folder):
    path = folder / "texts.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["number", "text"])
        writer.writerows(enumerate(texts))
    return path


def gzip_file(texts, folder):
    path = folder / "texts.csv.gz"
    path.write_bytes(gzip.compress(csv_file(texts, folder).read_bytes()))
    return path


def arrow_table(texts, _folder):
    return pa.table({"number": range(len(texts)), "text": pa.array(texts, pa.string())})


def parquet_file(texts, folder):
    pq.write_table(arrow_table(texts, folder), folder / "texts.parquet")
    return folder / "texts.parquet"


def pandas_objects(texts, _folder):
    return pd.DataFrame({"number": range(len(texts)), "text": pd.Series(texts, dtype=object)})


def pandas_categories(texts, folder):
    return pandas_objects(texts, folder).astype({"text": "category"})


SOURCES = {
    "csv": csv_file,
    "csv.gz": gzip_file,
    "parquet": parquet_file,
    "pyarrow": arrow_table,
    "arrow dictionary": lambda texts, folder: arrow_table(texts, folder).set_column(
        1, "text", pa.array(texts).dictionary_encode()
    ),
    "pandas": pandas_objects,
    "pandas categories": pandas_categories,
    "polars": lambda texts, folder: pl.from_arrow(arrow_table(texts, folder)),
    "duckdb": lambda texts, folder: CONNECTION.from_arrow(arrow_table(texts, folder)),
}


@pytest.fixture(params=[*SOURCES, "postgres", "spark"])
def source_of(request, tmp_path):
    """Return a function from texts to a source with one text and its number in each row."""
    if request.param == "postgres":
        request.getfixturevalue("postgres")
        url = request.getfixturevalue("url")

        def postgres_table(texts):
            rows = [(str(row), literal(text, "text")) for row, text in enumerate(texts)]
            return server_table(url, "spellings", {"number": "bigint", "text": "text"}, rows)

        return postgres_table
    if request.param == "spark":
        session = request.getfixturevalue("spark_session")
        return lambda texts: session.createDataFrame(arrow_table(texts, tmp_path))
    return lambda texts: SOURCES[request.param](texts, tmp_path)


def cells_of_rows(content, name):
    """Return the cell of an attribute in each row that is read, by the number of the row."""
    return dict(zip(content.codes["number"].tolist(), content.codes[name].tolist(), strict=True))


def documented_texts(texts, cells):
    """Return each text's reading in a column of the page."""
    return [text if cell == "itself" else cell for text, cell in zip(texts, cells, strict=True)]


def read_numbers(source, texts, reading):
    """Return each row's number, "null" or "outside", as measures and attributes see it."""
    column = {"column": "text"}
    kind = ln.Bins(-MOST, MOST, 1, null="other", reading=ln.Reading(**column, **reading))
    measure = ln.Measure("text", -MOST, MOST, unit="0.001", reading=ln.Reading(**reading))
    domain = ln.Domain(
        {"number": ln.Coded(len(texts)), "text": kind},
        measures={"amount": measure, "values": ValueCount(measure)},
    )
    attributes = ReadRequest(attributes=["number", "text"])
    cells = cells_of_rows(open_content(read(source, domain, read_request=attributes)), "text")
    measures = ReadRequest(attributes=["number"])
    content = open_content(read(source, domain, read_request=measures))
    order = np.argsort(content.codes["number"])
    amounts = content.values["amount"][order] / 1000
    values = content.values["values"][order]
    assert all((cells.get(row) == 0) == bool(values[row]) for row in range(len(texts)))
    special_cells = {None: "outside", 1: "null"}
    return [special_cells.get(cells.get(row), float(amounts[row])) for row in range(len(texts))]


@pytest.mark.slow
def test_numbers_are_read_as_the_page_says(source_of):
    texts, columns = table_of_page("Numbers")
    assert len(texts) > 40
    source = source_of(texts)
    for title, cells in columns.items():
        documented = [cell if cell in {"null", "outside"} else float(cell) for cell in cells]
        numbers = read_numbers(source, texts, KEYS[title])
        differences = [
            (text, "read as", number, "not", expected)
            for text, number, expected in zip(texts, numbers, documented, strict=True)
            if number != expected
        ]
        assert differences == [], title


def test_times_are_read_as_the_page_says(source_of):
    texts, columns = table_of_page("Times")
    days = ln.Dates("2024-11-01", "2024-11-30", null="other", reading=ln.Reading(column="text"))
    domain = ln.Domain({"number": ln.Coded(len(texts)), "day": days})
    content = open_content(read(source_of(texts), domain))
    cells = cells_of_rows(content, "day")
    labels = {**dict(enumerate(days.labels)), None: "outside", days.regular: "null"}
    days_read = {text: labels[cells.get(row)] for row, text in enumerate(texts)}
    assert days_read == dict(zip(texts, columns["day"], strict=True))


def same_texts(texts, cells):
    """Return the page's groups: the numbers of rows with one text, without nulls."""
    rows_of_reading = defaultdict(set)
    for row, reading in enumerate(documented_texts(texts, cells)):
        if reading != "null":
            rows_of_reading[reading].add(row)
    return list(rows_of_reading.values())


def rows_of_units(source, texts, reading):
    """Return the number of units, and of rows that have one."""
    domain = ln.Domain({"number": ln.Coded(len(texts))}, measures={"units": UnitCount()})
    bounds = {"unit_column": "text", "max_rows": len(texts), "unit_reading": ln.Reading(**reading)}
    numbers, _ = counts(source, domain, {"units": [()], None: [()]}, **bounds)
    return numbers["units", ()][0], numbers[None, ()][0]


@pytest.mark.parametrize("title", ABOUT_TEXTS)
def test_units_are_distinguished_as_documented(source_of, title):
    texts, columns = table_of_page("Texts")
    groups = same_texts(texts, columns[title])
    units, rows = rows_of_units(source_of(texts), texts, KEYS[title])
    assert units == len(groups)
    assert rows == sum(map(len, groups))


@pytest.mark.parametrize("title", ABOUT_TEXTS)
def test_categories_are_distinguished_as_documented(source_of, title):
    texts, columns = table_of_page("Texts")
    source = source_of(texts)
    documented = documented_texts(texts, columns[title])
    values = [text for text in dict.fromkeys(documented) if text != "null"]
    kind = ln.Categories(values, null="other", reading=ln.Reading(column="text", **KEYS[title]))
    content = open_content(read(source, ln.Domain({"number": ln.Coded(len(texts)), "x": kind})))
    cells = cells_of_rows(content, "x")
    labels = [*values, "null"]

    assert [labels[cells[row]] for row in range(len(texts))] == documented


@pytest.mark.parametrize("title", ABOUT_TEXTS)
def test_found_categories_are_distinguished_as_documented(source_of, title):
    texts, columns = table_of_page("Texts")
    documented = documented_texts(texts, columns[title])
    kind = ln.Unknown(99, reading=ln.Reading(column="text", **KEYS[title]))
    units_by_key = units_of(read_keys(source_of(texts), ln.Domain(x=kind), "x"))
    assert units_by_key == Counter(text for text in documented if text != "null")
    # No two of the keys are one category.
    ln.Categories([*units_by_key])


@pytest.mark.parametrize("title", ["no key", "`trim = true`"])
def test_keys_of_a_join_are_compared_as_the_page_says(source_of, tmp_path, title):
    texts, columns = table_of_page("Texts")
    documented = documented_texts(texts, columns[title])
    values = [text for text in dict.fromkeys(documented) if text != "null"]
    patients = pa.table({"key": values, "place": range(len(values))})
    domain = ln.Domain(
        {"number": ln.Coded(len(texts)), "place": ln.Coded(len(values), null="other")}
    )
    reading = ln.Reading(**KEYS[title])
    visits = source_of(texts)
    joined = ln.Joined(visits, patients, on={"text": "key"}, reading=reading)
    unit = {"unit_column": "text", "max_rows": len(texts), "unit_reading": reading}
    content = open_content(read(joined, domain, **unit))
    places = cells_of_rows(content, "place")

    assert {row: values[place] for row, place in places.items()} == {
        row: text for row, text in enumerate(documented) if text != "null"
    }
