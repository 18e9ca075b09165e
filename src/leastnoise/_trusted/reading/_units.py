"""Bounds on the rows of units, and counts of the rows used, not used and cut.

The labels (E6, E8, E12) refer to PROOFS-reading.md.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check import refuse
from leastnoise._trusted.check.arrays import BoolArray, IntArray
from leastnoise._trusted.domain import READ_AS_IT_IS, Domain, Measure, PerCellBound, Reading
from leastnoise._trusted.reading._column import Column, Encoder, by_value
from leastnoise._trusted.reading._values import is_null, text, without_zeros
from leastnoise._trusted.table import Table

# Random bytes asked for at a time.
_BLOCK = 2**20


class Units:
    """Number the units of a source, and then choose the rows to keep.

    Units are numbered chunk after chunk.

    Attributes:
        number: from a column to the numbers of its units: two rows are of one unit if their values
            have one key (`key_reader`). A value without a key is of no unit, -1.

    >>> units = Units()
    >>> units.add(units.number(Column(["a", "b", "a", None])))
    >>> keep = units.keep(1, lambda count: bytes(range(count)))
    >>> keep.tolist()
    [True, True, False, False]
    """

    def __init__(
        self,
        bound: PerCellBound | None = None,
        sizes: Mapping[str, int] | None = None,
        reading: Reading = READ_AS_IT_IS,
    ) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.number: Callable[[Column], IntArray] = numbering(self._numbers, key_reader(reading))
        self._chunks: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        names = list(sizes or {})
        if bound is not None and not set(bound.attributes) <= set(names):
            raise refuse(
                "the attributes of max_per_cell",
                list(bound.attributes),
                "attributes that are read: " + ", ".join(names),
            )
        self._bound = bound
        self._within = (
            [(names.index(name), sizes[name]) for name in bound.attributes]
            if bound and sizes
            else []
        )
        self._cells: list[IntArray] = [np.zeros(0, dtype=np.int64)]

    def add(self, units: IntArray, codes: Sequence[IntArray] = ()) -> None:
        """Take the rows of a chunk.

        Args:
            units: their units, as `number` has them.
            codes: of every attribute the rows' cells, where few rows of a unit are to be kept in
                one; -1 is a cell like the others.
        """
        self._chunks.append(units)
        cell = np.zeros(len(units), dtype=np.int64)
        for attribute, size in self._within:
            cell = cell * (size + 1) + (
                codes[attribute] + 1
            )  # beyond int64 two cells may have one number, and share their bound
        self._cells.append(cell)

    def keep(
        self, max_rows: int, entropy_bytes: Callable[[int], bytes], among: BoolArray | None = None
    ) -> BoolArray:
        """Choose at most ``max_rows`` rows of each unit, uniformly at random.

        Of the values only the cells that are bounded have a say.

        Args:
            max_rows: k, at least 1.
            entropy_bytes: gives that many random bytes; `os.urandom` outside tests.
            among: the rows to choose from, each by a function of itself alone; None for all.

        Returns:
            A mask over all rows added.

        Guarantees (stability): let each row carry a random key of its own, drawn independently of
            everything, and let a unit keep its k
        rows with the least keys. Take two sources of which one has a unit's rows in addition, and
        give every common row the same key (a coupling of the two runs: each has its right
        distribution). Whether a row of another unit is kept depends on the keys of that unit's rows
        alone, so it is the same in both; of the additional unit at most k rows are kept. So the
        kept rows differ by at most k. Each kept row is then encoded or dropped by a function of
        itself alone, which takes away rows on either side but adds none: the encoded tables too
        differ by at most k rows. A mechanism that is private for every pair of tables that far
        apart is private for every fixed choice of keys, hence on average over them. Replacing a
        unit is removing one and adding one: at most 2k rows.

        With a bound m on the rows in a cell a unit keeps of its rows in each cell the m with the
        least keys, and of those the k with the least keys. That too depends on its own rows and
        keys alone: the kept rows of others stay, and those that come or go are at most k, and at
        most m in one cell.

        Rows without a unit are dropped. Kept as a separate unit, any number of people would
        share its k rows; kept each as its own unit, one person could have more than k. Dropping
        them lets a change of one affect no other row.

        Edge cases: two keys of 64 bits are equal with a chance of 2^-64 a pair; the earlier row is
        then preferred, which the argument above does not mind.
        """
        units = np.concatenate(self._chunks)
        units = units if among is None else np.where(among, units, -1)
        keys = _random_keys(len(units), entropy_bytes)
        if self._bound is not None:
            units = np.where(
                _first(keys, self._bound.rows, units, np.concatenate(self._cells)), units, -1
            )
        return _first(keys, max_rows, units) & (units >= 0)

    def cut(self, keep: BoolArray, most: int) -> int:
        """Count the rows that are not kept, clipped for each unit.

        A unit has at most ``most`` of them for each row that is kept.

        Args:
            keep: what `keep` gave.
            most: rows cut for which a kept row may stand.

        >>> units = Units()
        >>> units.add(units.number(Column(["a"] * 9 + ["b", "b", None])))
        >>> units.cut(units.keep(1, os.urandom), 3)
        4
        """
        units = np.concatenate(self._chunks)
        count = len(self._numbers)
        kept = np.bincount(units[keep], minlength=count)
        return int(
            np.minimum(np.bincount(units[units >= 0], minlength=count) - kept, most * kept).sum()
        )

    def worth(
        self,
        rows: BoolArray,
        cells: Sequence[npt.ArrayLike],
        most: int,
        entropy_bytes: Callable[[int], bytes],
        *,
        missing: IntArray | None = None,
        published: BoolArray | None = None,
    ) -> IntArray:
        """Return what each row is worth in a count of units (E12).

        It is 1 for one row of a unit in each of its cells, else 0.

        Rows of a unit in one cell count once towards ``most``, and towards a bound on the rows in
        cells of other attributes. Of the cells of a unit with more cells, as many as ``most`` are
        chosen by random keys.

        Args:
            rows: a mask over all rows added: those inside the domain.
            cells: of every attribute whose values together are a cell the cells of these rows;
                none: all rows of a unit are in one cell.
            most: cells in which a unit counts.
            entropy_bytes: as for `keep`.
            missing: in how many hidden cells each of these rows is; a row in fewer is chosen first,
                so that a unit counts by its rows that have a value.
            published: whether each of these rows is in none of the hidden cells of these
                attributes; others count for nothing. None: all are.

        >>> units = Units()
        >>> units.add(units.number(Column(["a", "a", "a", "b", None])))
        >>> units.worth(np.ones(5, dtype=bool), [np.array([0, 0, 1, 0, 0])], 2, lambda count: bytes(count)).tolist()
        [1, 0, 1, 1, 0]
        """
        every = np.concatenate(self._chunks)
        units = every[rows]
        keys = _random_keys(len(every), entropy_bytes)[rows]
        if published is not None:
            units = np.where(published, units, -1)
        if missing is not None:
            order = np.lexsort((keys, missing))
            keys = np.empty_like(keys)
            keys[order] = np.arange(len(order), dtype=np.uint64)
        once = _first(keys, 1, units, *map(np.asarray, cells)) & (units >= 0)
        if self._bound is not None:
            bounded = np.concatenate(self._cells)[rows]
            once &= _first(keys, self._bound.rows, np.where(once, units, -1), bounded)
        return (_first(keys, most, np.where(once, units, -1)) & once).astype(np.int64)


def _random_keys(count: int, entropy_bytes: Callable[[int], bytes]) -> npt.NDArray[np.uint64]:
    """Return as many random numbers of 64 bits."""
    keys = np.empty(count, dtype=np.uint64)
    for start in range(0, count, _BLOCK):
        some = keys[start : start + _BLOCK]
        some[:] = np.frombuffer(entropy_bytes(some.nbytes), dtype="<u8")
    return keys


def _first(keys: npt.NDArray[np.uint64], most: int, *groups: IntArray) -> BoolArray:
    """Mark the rows that have the ``most`` least keys of their group."""
    order = np.lexsort((keys, *groups))  # group by group, and within each by the keys
    new = np.ones(len(keys), dtype=np.bool_)
    new[1:] = np.logical_or.reduce(
        [ordered[1:] != ordered[:-1] for ordered in (group[order] for group in groups)]
    )
    starts = np.flatnonzero(new)  # of each group in this order
    first = np.zeros(len(keys), dtype=np.bool_)
    # the place of a row within its group
    first[order] = (
        np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys)))) < most
    )
    return first


def numbering(
    numbers: dict[Hashable, int], key: Callable[[object], Hashable | None], *, known: bool = False
) -> Encoder:
    """Make the function from a column to the numbers of its keys.

    The number is -1 for a value that is no key.

    A new key gets the next number; or -1, if only known ones have any.

    >>> numbers, key = {"a": 0}, key_reader(Reading())
    >>> numbering(numbers, key)(Column(["b", "a", None, b"b"])).tolist()
    [1, 0, -1, 1]
    >>> numbering(numbers, key, known=True)(Column(["b", "c"])).tolist()
    [1, -1]
    """

    def number(value: object) -> int:
        form = key(value)
        if form is None:
            return -1
        if known:
            return numbers.get(form, -1)
        return numbers.setdefault(form, len(numbers))

    return by_value(
        lambda values: np.fromiter(map(number, values), dtype=np.int64, count=len(values))
    )


def key_reader(reading: Reading) -> Callable[[object], Hashable | None]:
    """Make the function that tells units apart, and the keys of a join (E6).

    The key of a value is its string form as the reading compares it, where text made of a whole
    number, a point and zeros is that whole number; or its bytes, if these are not text. A null, a
    spelling of one, and a value without a string form have no key.

    >>> key = key_reader(Reading(trim=True, ignore_case=True, nulls=["NA"]))
    >>> [key(value) for value in (17.0, b"17", "17.00", " P17 ", "p17", "", "na", [17])]
    ['17', '17', '17', 'p17', 'p17', None, None, None]
    """

    def without_spelling(form: str) -> str:
        compared = reading.form(form)
        return without_zeros(compared) or compared

    nulls = {"", *map(without_spelling, reading.nulls)}

    def key(value: object) -> Hashable | None:
        if is_null(value):
            return None
        form = text(value)
        if form is None:
            return value if isinstance(value, bytes) else None
        form = without_spelling(form)
        return None if form in nulls else form

    return key


ROWS = "rows"
CUT = "cut"
MOST_CUT = 3
"""Rows cut for which a row that counts may stand."""


@cache
def usage_domain() -> Domain:
    """Return the domain of the table of rows used, not used and cut.

    >>> usage_domain().names
    ('rows',)
    """
    return Domain({ROWS: ["used", "unused"]}, measures={CUT: Measure(CUT, 0, MOST_CUT)})


def usage_table(numbers: tuple[int, int, int], unit_column: str | None, max_rows: int) -> Table:
    """Return the table of rows used, not used and cut.

    Args:
        numbers: of the rows that count for their unit those that the domain keeps, and the others;
            and for each unit its rows that do not count, ``MOST_CUT`` at most for each one that
            does, added up.
        unit_column: the column whose values are the privacy units; None if every row is one.
        max_rows: how many rows of a unit count.

    Guarantees: every row that counts for its unit is in exactly one of the two cells, so that a
        unit changes them by ``max_rows`` at most, and stands for at most ``MOST_CUT`` rows that
        were cut. All its rows may be in one of them, whatever ``max_per_cell`` of the table beside
        it says: that is about other cells.

    >>> usage_table((3, 1, 0), None, 1)
    <Table of private rows over Domain(rows=Categories(['used', 'unused']), measures={'cut': Measure('cut', 0, 3)})>
    """
    counts = {(None, (ROWS,)): np.array(numbers[:2]), (CUT, ()): np.array(numbers[2:])}
    return Table.counted(
        usage_domain(), [ROWS], [CUT], counts, unit_column=unit_column, max_rows=max_rows
    )
