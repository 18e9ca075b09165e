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
from leastnoise._trusted.reading import CSV, ReadRequest, _files, _read, read
from leastnoise._trusted.table import Counted, open_content
from trusted.reading.pools import FIELDS, JUNK
from trusted.reading.sources import POOLS

TEXTS = [
    "F", "M", "1", "0", "-1", "17", "true", "false", "0.1", "0.5", "1.5", "x", "a,b", " F", "é",
    "2024-05-01", "1970-01-01", "1970-01-01 00:00:00.001", "2024-10-27 00:30:00",
    "31313131-3131-3131-3131-313131313131", "1.0",
]  # fmt: skip
# What other readers take for the end of a line.
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
    # 1.0 and 1 are one category
    chosen = list({text.removesuffix(".0"): text for text in texts}.values())
    if rng.random() < 0.5:
        return Categories(chosen, null=null, outside=outside)
    folded = list({text.strip().lower(): text for text in chosen}.values())
    how = Reading(trim=True, ignore_case=True, nulls=["x"])
    return Categories(
        folded, null=null, outside=outside, reading=how, spellings={folded[0]: ["m\xe4rz", "\xff"]}
    )


def kinds(rng):
    """Return a random kind of attribute."""
    null, outside = (POLICIES[place] for place in rng.integers(0, len(POLICIES), 2))
    clip = "clip" if rng.random() < 0.4 else outside
    categories, *numbers = [
        lambda: categories_of(rng, null, outside),
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
    return (categories if rng.random() < 0.4 else numbers[rng.integers(len(numbers))])()


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
    new = np.zeros(count, dtype=bool)
    new[rng.permutation(count)[:added]] = True
    # only the new unit has the last value of the unit's pool
    unit = np.where(new, 4, rng.integers(0, 4, count))
    return (
        [unit, np.arange(count), *(rng.integers(0, size, count) for size in sizes)],
        new,
        rng.permutation(2**16)[:count],
    )


SOURCES = (*POOLS, "csv", "csv.gz")


def lines_of(rng, units):
    """Draw lines of a CSV file, the new ones, and what each new line may add."""
    quoted = rng.random() < 0.3

    def line(serial, unit):
        fields = [
            b"u%d" % unit,
            b"%d" % serial,
            *(FIELDS[place] for place in rng.integers(0, len(FIELDS), 2)),
        ]
        return b",".join(
            b'"%b"' % field if quoted and b'"' not in field else field for field in fields
        )

    common = [
        line(serial, int(rng.integers(0, 4)))
        if rng.random() < 0.8
        else JUNK[rng.integers(len(JUNK))]
        for serial in range(rng.integers(0, 7))
    ]
    if rng.random() < 0.3:
        # one line of any bytes, which may name any unit but those there
        raw = (
            rng.integers(0, 256, rng.integers(0, 60), dtype=np.uint8)
            .tobytes()
            .replace(b"\n", b" ")
            .replace(b"u", b" ")
        )
        glued = ENDS[rng.integers(len(ENDS))].join([line(100, 9), line(101, 9)])
        new = [[raw, JUNK[rng.integers(len(JUNK))], glued, glued][rng.integers(4)]]
    else:
        new = [line(100 + place, 9) for place in range(rng.integers(1, 5) if units else 1)]
    order = rng.permutation(len(common) + len(new))
    crlf = rng.choice([0, 1, 0.5])
    ends = [
        b"\r\r\n" if rng.random() < 0.1 else b"\r\n" if rng.random() < crlf else b"\n"
        for _ in order
    ]
    ended_lines = [(common + new)[place] + end for place, end in zip(order, ends, strict=True)]
    return ended_lines, order >= len(common), rng.permutation(2**16)[: len(order)]


def entropy_of(keys):
    remaining = list(keys)

    def take(count):
        taken_keys, remaining[: count // 8] = remaining[: count // 8], []
        return np.array(taken_keys, dtype="<u8").tobytes()

    return take


def rows_of(table):
    columns = open_content(table)
    return Counter(
        zip(
            *(column.tolist() for column in (*columns.codes.values(), *columns.values.values())),
            strict=True,
        )
    )


class Pair:
    """Two sources and the rules for reading them.

    Args:
        kind: one of `SOURCES`.
        seed: decides everything.
        folder: where files may be written.
    """

    def __init__(self, kind, seed, folder):
        self.kind, self.folder = kind, folder
        # The name of a source is part of its seeds, so that a new one changes no other's.
        self.rng = rng = np.random.default_rng([crc32(kind.encode()), seed])
        units = bool(rng.random() < 0.6)
        self.unit = {"unit_column": "id", "max_rows": int(rng.integers(1, 4))} if units else {}
        if units and seed % 2:
            self.unit["max_per_cell"] = PerCellBound(1 + seed // 2 % self.unit["max_rows"], "a")
        self.domain = Domain(
            {
                "mark": Integers(0, 200, null="other", outside="other"),
                "a": kinds(rng),
                "b": kinds(rng),
            },
            measures={"m": Measure("b", -3, 20, unit="0.5", reading=reading(rng))},
        )
        encoding = ["utf-8", "utf-8", "latin-1", "cp1252"][rng.integers(4)]
        self.layout = {
            "delimiter": ",",
            "encoding": encoding,
            "header": ["id", "mark", "a", "b"] if rng.random() < 0.3 else True,
        }
        self.usages, self.records = [], {}
        self.small = {
            "CHUNK": int(rng.choice([2, 3, 2**16])),
            "BLOCK": int(rng.choice([5, 33, 2**20])),
            "LONGEST": int(rng.choice([60, 2_000_000])),
        }
        if pool := POOLS.get(kind):
            # columns of mixed Python objects have the most ways to go wrong
            often = [
                *pool.values,
                *2 * [name for name in pool.values if name.startswith("objects")],
            ]
            names = [often[place] for place in rng.integers(0, len(often), 2)]
            rows, new, keys = rows_of_pools(rng, [len(pool.values[name]) for name in names], units)
            make = pool.maker(rng, names)
            self.what = f"{kind}: {names}"
            self.sources = [
                (make([column[use] for column in rows]), keys[use]) for use in (~new, new | True)
            ]
        else:
            lines, new, keys = lines_of(rng, units)
            self.what = f"{kind}: {lines}, new {np.flatnonzero(new).tolist()}"
            self.sources = [
                ([lines[place] for place in np.flatnonzero(use)], keys[use])
                for use in (~new, new | True)
            ]

    def tables(self):
        """Return the rows of both tables."""
        with ExitStack() as stack:
            for name in ("_column", "_files", "_frames"):
                stack.enter_context(
                    mock.patch(f"leastnoise._trusted.reading.{name}.CHUNK", self.small["CHUNK"])
                )
            for name in ("BLOCK", "LONGEST"):
                stack.enter_context(mock.patch.object(_files, name, self.small[name]))
            return [self._table(source, keys) for source, keys in self.sources]

    def _table(self, source, keys):
        if self.kind.startswith("csv"):
            keys = [
                key
                for line, key in zip(source, keys, strict=True)
                for _ in range(self._records(line))
            ]
            opened = self._csv(source)
        else:
            opened = POOLS[self.kind].opened(source, self.folder, self.rng)
        with mock.patch.object(_read, "urandom", entropy_of(keys)):
            table = read(opened, self.domain, read_request=ReadRequest(usage=True), **self.unit)
        self.usages.append(open_content(table.usage, Counted).tables[None, ("rows",)])
        return rows_of(table)

    def _csv(self, lines):
        content = (b"id,mark,a,b\n" if self.layout["header"] is True else b"") + b"".join(lines)
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
            raise AssertionError(f"reading failed: {error!r}: {self.what}") from error
        lost, gained = before - after, after - before
        (used, unused), change = self.usages[-2], self.usages[-1] - self.usages[-2]
        most = self.unit.get("max_rows", 1)
        # a row of which a measure is no number is in the table, and not used
        assert used <= before.total(), f"rows used: {self.what}"
        assert change[0] <= after.total() - before.total(), f"rows used: {self.what}"
        assert (change >= 0).all(), f"rows used or not of others changed: {change}: {self.what}"
        assert change.sum() <= most, f"{change} rows more, {most} allowed: {self.what}"
        assert unused >= 0
        assert not lost, f"rows of others changed: {dict(lost)} became {dict(gained)}: {self.what}"
        assert gained.total() <= most, f"{gained.total()} rows more, {most} allowed: {self.what}"
        if "max_per_cell" in self.unit:
            often = Counter(row[1] for row in gained.elements())
            assert max(often.values(), default=0) <= self.unit["max_per_cell"].rows, (
                f"{often} in the cells of a: {self.what}"
            )
        return gained.total()
