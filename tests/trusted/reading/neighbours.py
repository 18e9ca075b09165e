"""Pairs of neighbouring inputs of all sources: one more unit changes only its own rows.

Every pair is a source with some rows and the same source with one unit more: a row, a line, or the
rows of one new unit. Both are read, with the same random keys for the rows that both have. What
must hold: neither fails; every row of the first table is in the second; the second has at most
``max_rows`` rows more, and in one cell as many as ``max_per_cell`` allows. Rows carry a serial
number as an attribute, so that they are told apart.
"""

import gzip
from collections import Counter
from contextlib import ExitStack
from unittest import mock
from zlib import crc32

import numpy as np

from leastnoise._domain import (
    Bins,
    Categories,
    Coded,
    Dates,
    Decimals,
    Domain,
    Edges,
    Integers,
    Measure,
    PerCellBound,
    Reading,
)
from leastnoise._trusted.reading import CSV, ReadRequest, _files, _lines, read
from leastnoise._trusted.table import Counted, open_content
from trusted.reading.pools import FIELDS, JUNK
from trusted.reading.row_keys import fixed_row_keys
from trusted.reading.sources import POOLS

TEXTS = [
    "F", "M", "1", "0", "-1", "17", "true", "false", "0.1", "0.5", "1.5", "x", "a,b", " F", "é",
    "2024-05-01", "1970-01-01", "1970-01-01 00:00:00.001", "2024-10-27 00:30:00",
    "31313131-3131-3131-3131-313131313131", "1.0",
]  # fmt: skip
# Bytes that other readers take for the end of a line.
ENDS = [
    b"\r",
    b"\r",
    b"\r",
    b"\r",
    b"\r\r",
    b"\x0b",
    b"\x0c",
    b"\x1c",
    b"\x1e",
    b"\x85",
    "\u2028".encode(),
    b"\0",
]
POLICIES = ("drop", "other", "cell")


def categories_of(rng, null, outside):
    """Return texts, some of them also in another spelling."""
    texts = rng.permutation(TEXTS)[: rng.integers(4, len(TEXTS))]
    # 1.0 and 1 are one category.
    chosen = list({text.removesuffix(".0"): text for text in texts}.values())
    if rng.random() < 0.5:
        return Categories(chosen, null=null, outside=outside)
    folded = list({text.strip().lower(): text for text in chosen}.values())
    return Categories(
        folded,
        null=null,
        outside=outside,
        reading=Reading(trim=True, ignore_case=True, nulls=["x"]),
        spellings={folded[0]: ["m\xe4rz", "\xff"]},
    )


def random_kind(rng):
    """Return a random kind of attribute."""
    null, outside = (POLICIES[place] for place in rng.integers(0, len(POLICIES), 2))
    clip = "clip" if rng.random() < 0.4 else outside
    if rng.random() < 0.4:
        return categories_of(rng, null, outside)
    make_kind = [
        lambda: Integers(-1, 17, null=null, outside=clip),
        lambda: Bins(0, 1, 4, null=null, outside=clip),
        lambda: Coded(18, null=null, outside=outside),
        lambda: Integers(
            -1,
            17,
            null=null,
            outside=clip,
            rounding=["down", "nearest", "up"][rng.integers(3)],
            reading=reading(rng),
        ),
        lambda: Edges(["0", "0.1", "0.5", "17"], null=null, outside=clip, reading=reading(rng)),
        lambda: Decimals("-1", "17", "0.5", null=null, outside=clip, reading=reading(rng)),
        lambda: dates(rng, null, clip),
        lambda: dates(rng, null, clip),
    ]
    return make_kind[rng.integers(len(make_kind))]()


def reading(rng):
    """Return random rules for reading values."""
    decimal, thousands = [(".", ""), (".", ","), (",", "."), (",", "")][rng.integers(4)]
    return Reading(
        nulls=[[], ["x"], ["1", "-0"]][rng.integers(3)],
        decimal=decimal,
        thousands=thousands,
        currency=[[], ["F", "€"]][rng.integers(2)],
        trim=bool(rng.random() < 0.5),
        ignore_case=bool(rng.random() < 0.5),
    )


def dates(rng, null, clip):
    """Return days near the days of the pools."""
    start, end = [
        ("1970-01-01", "1970-01-02"),
        ("2024-05-01", "2024-11-01"),
        ("1969-12-30", "2024-12-31"),
    ][rng.integers(3)]
    by = ["year", "quarter", "month", "week", "day", "weekday", "hour_of_day"][rng.integers(7)]
    zone = ["UTC", "Europe/Berlin", "America/St_Johns"][rng.integers(3)]
    return Dates(start, end, by, zone=zone, null=null, outside=clip, reading=reading(rng))


def rows_of_pools(rng, sizes, units):
    """Draw the pool values of each row, the rows of the added unit, and random keys."""
    common = int(rng.integers(0, 7))
    added = int(rng.integers(1, 5)) if units else 1
    count = common + added
    is_new = np.zeros(count, dtype=bool)
    is_new[rng.permutation(count)[:added]] = True
    # Only the new unit has the last value of the unit's pool.
    unit = np.where(is_new, 4, rng.integers(0, 4, count))
    columns = [unit, np.arange(count), *(rng.integers(0, size, count) for size in sizes)]
    return columns, is_new, rng.permutation(2**16)[:count]


SOURCES = (*POOLS, "csv", "csv.gz")


def any_line(rng):
    """Draw one line of any bytes, which may name any unit but those there."""
    raw = rng.integers(0, 256, rng.integers(0, 60), dtype=np.uint8).tobytes()
    return raw.replace(b"\n", b" ").replace(b"u", b" ")


def line_end(rng, share_of_crlf):
    if rng.random() < 0.1:
        return b"\r\r\n"
    return b"\r\n" if rng.random() < share_of_crlf else b"\n"


def lines_of(rng, units):
    """Draw lines of a CSV file, which of them are new, and random keys."""
    is_quoted = rng.random() < 0.3

    def line(serial, unit):
        values = [FIELDS[place] for place in rng.integers(0, len(FIELDS), 2)]
        fields = [b"u%d" % unit, b"%d" % serial, *values]
        if is_quoted:
            fields = [field if b'"' in field else b'"%b"' % field for field in fields]
        return b",".join(fields)

    common = []
    for serial in range(rng.integers(0, 7)):
        if rng.random() < 0.8:
            common.append(line(serial, int(rng.integers(0, 4))))
        else:
            common.append(JUNK[rng.integers(len(JUNK))])
    if rng.random() < 0.3:
        raw = any_line(rng)
        glued = ENDS[rng.integers(len(ENDS))].join([line(100, 9), line(101, 9)])
        new = [[raw, JUNK[rng.integers(len(JUNK))], glued, glued][rng.integers(4)]]
    else:
        new = [line(100 + place, 9) for place in range(rng.integers(1, 5) if units else 1)]
    order = rng.permutation(len(common) + len(new))
    share_of_crlf = rng.choice([0, 1, 0.5])
    lines = [(common + new)[place] + line_end(rng, share_of_crlf) for place in order]
    return lines, order >= len(common), rng.permutation(2**16)[: len(order)]


def rows_of(table):
    """Return how often each row of codes and values is in a table."""
    content = open_content(table)
    columns = (*content.codes.values(), *content.values.values())
    return Counter(zip(*(column.tolist() for column in columns), strict=True))


class Pair:
    """Two sources and the rules for reading them.

    Args:
        kind: one of `SOURCES`.
        seed: decides everything.
        folder: where files may be written.
    """

    def __init__(self, kind, seed, folder):
        self.kind = kind
        self.folder = folder
        # The name of a source is part of its seeds, so that a new one changes no other's.
        self.rng = rng = np.random.default_rng([crc32(kind.encode()), seed])
        units = bool(rng.random() < 0.6)
        self.unit = {"unit_column": "id", "max_rows": int(rng.integers(1, 4))} if units else {}
        if units and seed % 2:
            self.unit["max_per_cell"] = PerCellBound(1 + seed // 2 % self.unit["max_rows"], "a")
        self.domain = Domain(
            {
                "mark": Integers(0, 200, null="other", outside="other"),
                "a": random_kind(rng),
                "b": random_kind(rng),
            },
            measures={"m": Measure("b", -3, 20, unit="0.5", reading=reading(rng))},
        )
        self.layout = {
            "delimiter": ",",
            "encoding": ["utf-8", "utf-8", "latin-1", "cp1252"][rng.integers(4)],
            "header": ["id", "mark", "a", "b"] if rng.random() < 0.3 else True,
        }
        self.usages = []
        self.records = {}
        self.limits = {
            "CHUNK": int(rng.choice([2, 3, 2**16])),
            "BLOCK": int(rng.choice([5, 33, 2**20])),
            "LONGEST": int(rng.choice([60, 2_000_000])),
        }
        if kind in POOLS:
            self._draw_pool_rows(POOLS[kind], units)
        else:
            self._draw_lines(units)

    def _draw_pool_rows(self, pool, units):
        """Draw the columns of both sources from a pool of values."""
        # Columns of mixed Python objects have the most ways to go wrong.
        objects = [name for name in pool.values if name.startswith("objects")]
        frequent = [*pool.values, *2 * objects]
        names = [frequent[place] for place in self.rng.integers(0, len(frequent), 2)]
        sizes = [len(pool.values[name]) for name in names]
        columns, is_new, keys = rows_of_pools(self.rng, sizes, units)
        make_source = pool.maker(self.rng, names)
        self.description = f"{self.kind}: {names}"
        self.sources = [
            (make_source([column[rows] for column in columns]), keys[rows])
            for rows in (~is_new, is_new | True)
        ]

    def _draw_lines(self, units):
        """Draw the lines of both CSV files."""
        lines, is_new, keys = lines_of(self.rng, units)
        self.description = f"{self.kind}: {lines}, new {np.flatnonzero(is_new).tolist()}"
        self.sources = [
            ([lines[place] for place in np.flatnonzero(rows)], keys[rows])
            for rows in (~is_new, is_new | True)
        ]

    def tables(self):
        """Return the rows of both tables."""
        with ExitStack() as stack:
            for name in ("_column", "_files", "_frame_sources"):
                stack.enter_context(
                    mock.patch(f"leastnoise._trusted.reading.{name}.CHUNK", self.limits["CHUNK"])
                )
            stack.enter_context(mock.patch.object(_lines, "BLOCK", self.limits["BLOCK"]))
            for module in (_files, _lines):
                stack.enter_context(mock.patch.object(module, "LONGEST", self.limits["LONGEST"]))
            return [self._table(source, keys) for source, keys in self.sources]

    def _table(self, source, keys):
        if self.kind.startswith("csv"):
            # Every record of a line has the key of the line.
            records = np.array([self._records(line) for line in source], dtype=int)
            keys = np.repeat(keys, records)
            opened = self._csv(source)
        else:
            opened = POOLS[self.kind].opened(source, self.folder, self.rng)
        with fixed_row_keys(keys):
            table = read(opened, self.domain, read_request=ReadRequest(usage=True), **self.unit)
        self.usages.append(open_content(table.usage, Counted).tables[None, ("rows",)])
        return rows_of(table)

    def _csv(self, lines):
        header = b"id,mark,a,b\n" if self.layout["header"] is True else b""
        content = header + b"".join(lines)
        file = self.folder / f"x.{self.kind}"
        file.write_bytes(gzip.compress(content) + bytes(3) if self.kind == "csv.gz" else content)
        return CSV(file, **self.layout)

    def _records(self, line):
        """Return how many records a line makes."""
        if line not in self.records:
            table = read(
                self._csv([line]), self.domain, read_request=ReadRequest(attributes=[], measures=[])
            )
            self.records[line] = open_content(table).rows
        return self.records[line]

    def check(self):
        """Raise an AssertionError if a read fails or the tables differ by more than the unit.

        Returns:
            How many rows the new unit has in the table.
        """
        try:
            before, after = self.tables()
        except Exception as error:
            raise AssertionError(f"reading failed: {error!r}: {self.description}") from error
        lost = before - after
        gained = after - before
        used, unused = self.usages[-2]
        change = self.usages[-1] - self.usages[-2]
        most = self.unit.get("max_rows", 1)
        # A row without a number in a measure is in the table, and not used.
        assert used <= before.total(), f"rows used: {self.description}"
        assert change[0] <= after.total() - before.total(), f"rows used: {self.description}"
        assert (change >= 0).all(), (
            f"rows used or not of others changed: {change}: {self.description}"
        )
        assert change.sum() <= most, f"{change} rows more, {most} allowed: {self.description}"
        assert unused >= 0
        assert not lost, (
            f"rows of others changed: {dict(lost)} became {dict(gained)}: {self.description}"
        )
        assert gained.total() <= most, (
            f"{gained.total()} rows more, {most} allowed: {self.description}"
        )
        if "max_per_cell" in self.unit:
            in_cells = Counter(row[1] for row in gained.elements())
            assert max(in_cells.values(), default=0) <= self.unit["max_per_cell"].rows, (
                f"{in_cells} in the cells of a: {self.description}"
            )
        return gained.total()
