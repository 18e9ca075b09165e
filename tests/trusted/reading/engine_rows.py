"""Rows of every type, with odd values, to fill engines with."""

import datetime as dt
import math

import numpy as np
import pyarrow as pa

from behind_the_wall import exact_marginals
from leastnoise._trusted.reading import ReadRequest, read
from leastnoise._trusted.table import Columns, Counted, open_content

WHOLE = [0, 1, -1, 2, 3, 16, 17, 18, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), None]
DOUBLE = [
    0.0,
    -0.0,
    0.1,
    0.25,
    0.5,
    1.0,
    1.5,
    2.5,
    3.5,
    17.0,
    -1.0,
    -0.5,
    0.30000000000000004,
    0.005,
    0.015,
    5e-324,
    2.3e-308,
    -1e-320,
]
DOUBLE += [1e15 + 0.5, 2**53 + 2.0, 1e300, -1.7e308, math.inf, -math.inf, math.nan, None]
TEXT = [
    "F", "M", "f", " F", "F ", "", None, "17", "17.0", "17.00", "017", "17.", "17.01", "-0", "-0.0",
    "0", "0.0", "1.0.0", "x", "é", "e\u0301",
]  # fmt: skip
TEXT += [
    "O'Brien",
    'say "x"',
    "%.0%",
    "17.0\n",
    "true",
    "false",
    "ß",
    "ẞ",
    "SS",
    "{F}",
    "$1",
    ":a",
    "1" * 500,
    "17." + "0" * 500,
]
FLAG = [True, False, None]
EXACT = [
    "0",
    "0.1",
    "0.30",
    "1.50",
    "17.00",
    "17",
    "-1",
    "NaN",
    "1e400",
    "-1e400",
    "1e-400",
    "0.1" + "0" * 60 + "1",
    None,
]
# Numbers above half of the least double, and below it.
EXACT += ["5e-324", "1e-323", "2.471e-324", "-2.471e-324", "2.470e-324", "-2e-324"]
DAYS = [
    "1969-12-31",
    "1970-01-01",
    "2023-12-31",
    "2024-01-01",
    "2024-02-29",
    "2024-03-31",
    "2024-12-30",
    "2025-01-05",
    "2025-01-06",
    None,
]
DAYS += ["0001-01-01", "9999-12-31"]
# Around the days, and around the changes of clocks in Berlin, New York and on Lord Howe Island.
HOURS = [
    "00:00",
    "00:59:59.999999",
    "01:00",
    "02:00",
    "06:59:59.5",
    "07:00",
    "15:00",
    "23:00",
    "23:59:59.999999",
]
STAMPS = [
    f"{day} {hour}"
    for day in ("2023-12-31", "2024-01-01", "2024-03-31", "2024-10-27", "2024-11-03", "2025-01-05")
    for hour in HOURS
]
STAMPS += [
    "1969-12-31 23:59:59.999999",
    "0001-01-01 00:00",
    "9999-12-31 23:59:59.999999",
    "2024-04-06 14:59:59",
    "2024-04-06 15:30",
    None,
]
ROWS = 500


def fill_from(pool, rng):
    """Return a column of every value of a pool, and of random ones."""
    places = [*range(len(pool)), *rng.integers(0, len(pool), ROWS - len(pool))]
    return [pool[place] for place in places]


def columns():
    """Return columns in which every value of each pool occurs, in many combinations."""
    rng = np.random.default_rng(1)
    pools = {"n": WHOLE, "x": DOUBLE, "t": TEXT, "b": FLAG}
    values_by_name = {name: fill_from(pool, rng) for name, pool in pools.items()}
    values_by_name["u"] = [
        None if place == 0 else int(place) for place in rng.integers(0, 120, ROWS)
    ]
    names_of_units = [None, "", *(f"u:{place}'" for place in range(2, 120))]
    values_by_name["w"] = [names_of_units[place] for place in rng.integers(0, 120, ROWS)]
    values_by_name["i"] = list(range(ROWS))
    for name, pool in {"d": DAYS, "s": STAMPS, "z": STAMPS}.items():
        times = [None if text is None else dt.datetime.fromisoformat(text) for text in pool]
        values_by_name[name] = [times[place] for place in rng.integers(0, len(pool), ROWS)]
    values_by_name["e"] = [EXACT[place] for place in rng.integers(0, len(EXACT), ROWS)]
    return values_by_name


COLUMNS = columns()
# Control characters at the ends of their ranges, blanks that are trimmed and others, letters of
# several bytes. PostgreSQL has no text with NUL.
ODD = [
    "a",
    "b",
    "a b",
    " a\u00a0",
    "\u202fb\t",
    "a\n",
    "\x01",
    "\x1fa",
    "\x7f",
    "\x80",
    "\x9fa",
    "\xa0",
    "\xad",
    "\u2003a",
]
ODD += [
    "\U0001f600" * 5,
    "\U0001f600" * 6,
    "e\u0301" * 3,
    "nul\x00",
    "'\"",
    "\\",
    "%_",
    "--",
    None,
    "",
]
COLUMNS["o"] = fill_from(ODD, np.random.default_rng(3))
TYPES = {
    "n": pa.int64(),
    "x": pa.float64(),
    "t": pa.string(),
    "b": pa.bool_(),
    "u": pa.int64(),
    "w": pa.string(),
    "i": pa.int64(),
}
TYPES["o"] = pa.string()
TYPES |= {"d": pa.date32(), "s": pa.timestamp("us"), "z": pa.timestamp("us", "UTC")}
ARROW = pa.table({name: pa.array(COLUMNS[name], kind) for name, kind in TYPES.items()})


def literal(value, kind):
    """Return a value as a PostgreSQL literal."""
    if value is None:
        return "NULL"
    # A text with the control character 1 is no key either.
    text = str(value).replace("'", "''").replace("\x00", "\x01")
    zone = "+00" if kind == "timestamptz" else ""
    return f"'{text}{zone}'::{kind}"


def counted(table, tables):
    """Return every requested marginal, and whether the engine counted the rows."""
    counts_by_table = {
        (measure, names): cells.tolist()
        for measure, attribute_sets in tables.items()
        for names, cells in exact_marginals(table, attribute_sets, measure)
    }
    return counts_by_table, isinstance(open_content(table, Columns, Counted), Counted)


def counts(source, domain, tables, attributes=None, **options):
    """Return every marginal of a source, and whether an engine counted its rows."""
    request = ReadRequest(attributes=attributes, tables=tables)
    return counted(read(source, domain, read_request=request, **options), tables)
