"""Store how many rows each unit has used in the closed periods of a series.

A series may bound the rows of a unit in all its periods together. A unit then has an allowance: the
bound minus the rows that it has used. Readers keep no more rows of a unit than its allowance. When
a period is closed, the kernel writes to its private file how many rows each unit has used. The next
reading starts from these numbers (P2 and P5 of PROOFS-periods.md).
"""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from leastnoise._trusted.check import Immutable, InternalError
from leastnoise._trusted.check.arrays import IntArray

SALT_BYTES = 16  # 128 random bits, which no two data sets share
# Two of 2^24 units have one digest with a chance of about 2^-80.
DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UsedRows:
    """The number of rows that each unit has used in closed periods.

    All these numbers are private.

    Attributes:
        salt: random bytes that are used to hash ids.
        periods: the number of closed periods.
        units: the distinct digests of all units that have used a row.
        counts: int64 arrays of shape (units,). The array with the key None has the number of rows
            that each of these units has used. Every other array has the number of cells that each
            unit has used in a count or total of units.

    >>> UsedRows.none(bytes(16)).periods
    0
    """

    salt: bytes
    periods: int
    units: tuple[bytes, ...]
    counts: Mapping[str | None, IntArray]

    @classmethod
    def none(cls, salt: bytes) -> "UsedRows":
        """Return the empty record with which the first period begins."""
        return cls(salt=salt, periods=0, units=(), counts={})

    def digest(self, key: Hashable) -> bytes:
        """Return the salted digest that identifies a unit by its key.

        >>> record = UsedRows.none(bytes(16))
        >>> record.digest("17") == record.digest(b"17"), len(record.digest("17"))
        (False, 16)
        """
        if isinstance(key, bytes):
            content = b"bytes" + key
        else:
            content = b"text." + str(key).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=DIGEST_BYTES, key=self.salt).digest()

    def used_by_units(self, digests: Sequence[bytes], measure: str | None) -> IntArray:
        """Return the number of rows, or of cells, that each of these units has used.

        If ``measure`` names a count or total of units, cells are counted; if it is None, rows are
        counted.
        """
        used = np.zeros(len(digests), dtype=np.int64)
        if measure in self.counts:
            by_unit = dict(zip(self.units, self.counts[measure].tolist(), strict=True))
            used[:] = [by_unit.get(digest, 0) for digest in digests]
        return used

    def equals(self, other: "UsedRows") -> bool:
        """Return whether two records have the same units and numbers."""
        return (
            (self.salt, self.periods, self.units) == (other.salt, other.periods, other.units)
            and self.counts.keys() == other.counts.keys()
            and all(
                np.array_equal(counts, other.counts[name]) for name, counts in self.counts.items()
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PeriodUse:
    """The private number of rows of a table, by unit and open period.

    Attributes:
        before: the rows that units had used before this table.
        most: the bound on the rows of a unit in all periods.
        units: the digests of the units of the table.
        uses: for each count or total of units, and for rows (None), three int64 arrays of equal
            length. Each entry states the position of a unit in ``units``, an open period, and the
            number of rows of the table that this unit uses in this period.
    """

    before: UsedRows
    most: int
    units: tuple[bytes, ...]
    uses: Mapping[str | None, tuple[IntArray, IntArray, IntArray]]

    def used_after(self, periods: int) -> UsedRows:
        """Return the record of used rows after the first ``periods`` periods.

        Args:
            periods: the number of closed periods; at least the number of periods that were closed
                before the table was read.

        Raises:
            InternalError: a unit has used more rows than the bound, or ``periods`` is smaller than
                the number of closed periods before the table was read.
        """
        if periods < self.before.periods:
            raise InternalError("A closed period is not read again; please report this.")
        if periods == self.before.periods:
            return self.before
        closed_uses = {
            name: [column[use[1] < periods] for column in use] for name, use in self.uses.items()
        }
        positions = {digest: position for position, digest in enumerate(self.before.units)}
        for units, _, _ in closed_uses.values():
            for unit in np.unique(units).tolist():
                positions.setdefault(self.units[unit], len(positions))
        counts: dict[str | None, IntArray] = {}
        for name, (units, _, rows) in closed_uses.items():
            counts[name] = np.zeros(len(positions), dtype=np.int64)
            if name in self.before.counts:
                counts[name][: len(self.before.units)] = self.before.counts[name]
            of_units = [positions[self.units[unit]] for unit in units.tolist()]
            np.add.at(counts[name], np.array(of_units, dtype=np.int64), rows)
            if int(counts[name].max(initial=0)) > self.most:
                raise InternalError(
                    "A unit has more rows in a series than its bound; please report this."
                )
        return UsedRows(
            salt=self.before.salt, periods=periods, units=tuple(positions), counts=counts
        )


_USED: "WeakKeyDictionary[RowAllowance, UsedRows]" = WeakKeyDictionary()


class RowAllowance(Immutable):
    """An opaque handle of the rows that each unit may still use in a series.

    The kernel creates it from its private file, and readers open it. Like a `Table` it reveals
    nothing about a unit, and it can be neither changed nor pickled.

    Args:
        along: the attribute whose cells are the periods.
        most: the bound on the rows of a unit in all periods.
        used: the rows that units have used so far; private.

    >>> RowAllowance("month", 12, UsedRows.none(bytes(16)))
    <RowAllowance of at most 12 rows of a unit along 'month'>
    """

    __slots__ = ("__weakref__", "along", "most")

    along: str
    most: int

    def __init__(self, along: str, most: int, used: UsedRows) -> None:
        object.__setattr__(self, "along", along)
        object.__setattr__(self, "most", most)
        _USED[self] = used

    def __repr__(self) -> str:
        return f"<RowAllowance of at most {self.most} rows of a unit along {self.along!r}>"

    def __reduce__(self) -> str:
        raise TypeError("a RowAllowance holds private counts and is not pickled")


def used_rows(allowance: RowAllowance) -> UsedRows:
    """Return the used rows behind a handle; only for readers and the kernel.

    >>> used_rows(RowAllowance("month", 12, UsedRows.none(bytes(16)))).units
    ()
    """
    return _USED[allowance]
