"""Counting in an engine: it encodes, bounds contributions and counts, and only counts of cells come back (E7 of PROOFS-adapters.md).

An adapter gives an `Engine`: what its columns hold, and a way to run queries on one snapshot. The SQL is the same for all of them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from sqlglot import exp

from leastnoise._adapters._sql import Expression, Value, amount_of, case, cell_of, key_of, prepared, text, unit_of, whole
from leastnoise._adapters._usage import MOST_CUT
from leastnoise._check import InternalError
from leastnoise._check.arrays import IntArray
from leastnoise._domain import Kind, Measure, PerCell, UnitCount, Unknown
from leastnoise._table import Wanted, groups

# More cells than this are not sent for: then the rows are read, and counted here. 128 MiB of counts.
MOST_CELLS = 2**24
# Tables of counts are kept below 2^17 cells where smaller ones can be summed out of them, as for so many rows.
_ROWS = 2**20
_KEY_BYTES = 16
# The one column of an answer that is text.
KEY = "key"

Run = Callable[[exp.Select], Any]
Session = Callable[[], AbstractContextManager[Run]]


class Place:
    """Where a relation is; of one that cannot be joined to another, as it stands."""

    __slots__ = ()

    def beside(self, _other: "Place") -> tuple[Session, Expression] | None:
        """A session in which the other's relation is there too, and what that is called in it; None where one query cannot have both."""
        return None


APART = Place()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Engine:
    """Where rows can be counted.

    Attributes:
        relation: what stands after FROM.
        values: for each column that can be used the expression of its value, and what that holds.
        hashed: a keyed hash of a text, as an expression that orders by its bytes.
        most_sets: GROUPING SETS in one query; 1 for plain GROUP BY alone.
        session: gives, for as long as it is entered, a function from a query to a reader of Arrow batches, all on one
            snapshot of the data. It
            raises InputError alone, without a word of the engine's own messages, which may quote a row.
        sound: whether a text has no NUL and is UTF-8, as an expression; None if every text is so.
        merges: whether it puts the expressions of a subquery wherever they are named, unless the subquery has an OFFSET.
        place: where the relation is.
    """

    relation: Expression
    values: Mapping[str, Value]
    hashed: Callable[[Expression], Expression]
    most_sets: int
    session: Session
    sound: Callable[[Expression], Expression] | None = None
    merges: bool = False
    place: Place = APART


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be counted, all of it public.

    Attributes:
        kinds: the attributes that are read, in the order of the domain.
        sums: the measures that are read.
        tables: for each measure that is summed, or None for rows, the attributes of its marginals.
        unit_column: the column whose values are the privacy units; None if every row is one.
        max_rows: how many rows of a unit count.
        max_per_cell: how many of them in one cell of attributes that are read; None: all.
    """

    kinds: Mapping[str, Kind]
    sums: Mapping[str, Measure]
    tables: Mapping[str | None, Sequence[tuple[str, ...]]]
    unit_column: str | None
    max_rows: int
    max_per_cell: PerCell | None = None


def counted(engine: Engine, wish: Wish, entropy_bytes: Callable[[int], bytes]) -> dict[Wanted, IntArray] | None:
    """Count in the engine.

    Args:
        engine: where.
        wish: what.
        entropy_bytes: where the key of the choice of rows comes from.

    Returns:
        Marginals that hold all that were wished for; None if the engine cannot do it by its SQL, and the rows are to be read. That depends
        on the wish and on the columns' types alone.

    Raises:
        InputError: the engine failed.

    Guarantees: as `leastnoise._adapters.read`. Which rows of a unit count depends on that unit's rows and the key alone (E7).
    """
    sets = {names for wanted in wish.tables.values() for names in wanted}
    order, sizes = list(wish.kinds), [kind.size for kind in wish.kinds.values()]
    covers = [
        tuple(order[place] for place in group.attributes)
        for group in groups([tuple(sorted(order.index(name) for name in names)) for names in sorted(sets)], sizes, _ROWS)
    ]
    rows = encoded(engine, wish, entropy_bytes)
    if rows is None or sum(_cells(cover, wish) for cover in covers) > MOST_CELLS:
        return None
    found: dict[Wanted, IntArray] = {}
    with engine.session() as run:
        for start in range(0, len(covers), engine.most_sets):
            some = covers[start : start + engine.most_sets]
            answer = run(_grouped(rows, some, wish)).read_all()
            for cover in some:
                found.update(_tables(answer, cover, wish))
    return found


def usage(engine: Engine, wish: Wish, entropy_bytes: Callable[[int], bytes]) -> tuple[int, int, int]:
    """Count the rows that count for their unit: those that the domain keeps, and the others; and those cut, as `Units.cut` does.

    Args:
        engine: where.
        wish: what is counted; something that `counted` could.
        entropy_bytes: where the key of the choice of rows comes from.

    Raises:
        InputError: the engine failed.
    """
    rows = _bounded_rows(engine, wish, entropy_bytes)
    if rows is None:
        raise InternalError("An engine counted what it cannot count; please report this.")
    kept, units = exp.Count(this=exp.Star()), [] if wish.unit_column is None else [exp.column("u0")]
    beyond = exp.Sub(this=exp.Max(this=exp.column("every")), expression=kept)
    cut = exp.Least(this=beyond, expressions=[exp.Mul(this=whole(MOST_CUT), expression=kept.copy())]) if units else whole(0)
    numbers = {"n": kept, "k": exp.Sum(this=case([(exp.and_(*_kept(wish)), whole(1))], whole(0)) if wish.kinds else whole(1)), "m": cut}
    by_unit = _selected(numbers, _once(rows, engine).subquery("encoded")).group_by(*units).subquery("by_unit")
    sums = {name: exp.Coalesce(this=exp.Sum(this=exp.column(name)), expressions=[whole(0)]) for name in numbers}
    with engine.session() as run:
        answer = run(_selected({name: exp.cast(one, "BIGINT") for name, one in sums.items()}, by_unit)).read_all()
    every, used, gone = (int(answer.column(name)[0].as_py()) for name in numbers)
    return used, every - used, gone


def counted_keys(
    engine: Engine, attribute: str, kind: Unknown, unit_column: str | None, max_rows: int, entropy_bytes: Callable[[int], bytes]
) -> dict[str, int] | None:
    """Count the units that have each key, in the engine.

    Args:
        engine: where.
        attribute: whose keys they are.
        kind: which texts are keys.
        unit_column: the column whose values are the privacy units; None if every row is one.
        max_rows: in how many keys a unit counts, once in each.
        entropy_bytes: where the key of the choice comes from.

    Returns:
        For each key that is there how many units have it; None if the engine cannot do it by its SQL. That depends on public facts alone.

    Raises:
        InputError: the engine failed.
    """
    wish = Wish(
        kinds={attribute: kind},
        sums={},
        tables={},
        unit_column=unit_column,
        max_rows=max_rows,
        max_per_cell=None if unit_column is None else PerCell(1, attribute),
    )
    rows = _bounded_rows(engine, wish, entropy_bytes, keys=True)
    if rows is None:
        return None
    found: dict[str, int] = {}
    numbers = [exp.alias_(exp.column("c0"), KEY), exp.alias_(exp.Count(this=exp.Star()), "n")]
    with engine.session() as run:
        for batch in run(exp.select(*numbers).from_(rows.subquery("kept")).group_by(exp.column("c0"))):
            for key, units in zip(batch.column(KEY).to_pylist(), batch.column("n").to_pylist(), strict=True):
                if key in found:
                    raise InternalError("A key was counted twice; please report this.")
                found[key] = int(units)
    return {key: units for key, units in found.items() if kind.allows(key)}


def encoded(engine: Engine, wish: Wish, entropy_bytes: Callable[[int], bytes]) -> exp.Select | None:
    """The rows that count, encoded: for attribute i the cell ``ci``, for measure i the amount ``vi``; None where a column has no SQL."""
    rows = _bounded_rows(engine, wish, entropy_bytes)
    if rows is not None and wish.kinds:
        rows = exp.select("*").from_(_once(rows, engine).subquery("encoded")).where(*_kept(wish))
    for place, measure in enumerate(wish.sums.values()):
        if rows is not None and isinstance(measure, UnitCount):  # E12
            cell = [exp.column(f"c{list(wish.kinds).index(name)}") for name in measure.attributes]
            rows = _numbered(rows, [exp.column("u0"), *cell], [exp.column("turn")], f"w{place}")
    return rows


def _kept(wish: Wish) -> list[Expression]:
    """That no attribute drops a row."""
    return [exp.GTE(this=exp.column(f"c{place}"), expression=whole(0)) for place in range(len(wish.kinds))]


def _bounded_rows(engine: Engine, wish: Wish, entropy_bytes: Callable[[int], bytes], *, keys: bool = False) -> exp.Select | None:
    """The rows that count for their unit, encoded, with those that the domain drops; or those with a key, which is their cell."""
    sources = [kind.reading.column or name for name, kind in wish.kinds.items()]
    sums = {f"v{place}": measure for place, measure in enumerate(wish.sums.values()) if not isinstance(measure, UnitCount)}
    wanted = [*sources, *(measure.column for measure in sums.values()), *([] if wish.unit_column is None else [wish.unit_column])]
    if not set(wanted) <= set(engine.values):
        return None
    # each value is computed once, and called by a name of ours
    given = {name: f"r{place}" for place, name in enumerate(dict.fromkeys(wanted))}
    values = {name: Value(engine.values[name].held, exp.column(given[name])) for name in given}
    ready = [prepared(kind, values[source], engine.sound) for source, kind in zip(sources, wish.kinds.values(), strict=True)]
    called = [one and Value(one.held, exp.column(f"p{place}")) for place, one in enumerate(ready)]
    coded = partial(key_of, sound=engine.sound) if keys else cell_of
    cells = [one and coded(kind, one) for kind, one in zip(wish.kinds.values(), called, strict=True)]
    amounts = {name: amount_of(measure, values[measure.column]) for name, measure in sums.items()}
    unit = [] if wish.unit_column is None else [unit_of(values[wish.unit_column])]
    columns = {**_named("c", cells), **amounts, **_named("u", unit)}
    if any(column is None for column in columns.values()):
        return None
    raw = _selected({short: engine.values[name].it for name, short in given.items()}, engine.relation.copy())
    further = [exp.alias_(one.it.copy(), f"p{place}") for place, one in enumerate(ready) if one is not None]
    raw = exp.select("*", *further).from_(_once(raw, engine).subquery("raw"))
    rows = _selected({name: column for name, column in columns.items() if column is not None}, _once(raw, engine).subquery("prepared"))
    if wish.unit_column is not None:
        rows = rows.where(exp.Not(this=exp.Paren(this=values[wish.unit_column].is_null)))
    if keys:
        keyless = exp.Is(this=exp.column("c0"), expression=exp.Null())
        rows = exp.select("*").from_(_once(rows, engine).subquery("with_keys")).where(exp.Not(this=keyless))
    return rows if wish.unit_column is None else _bounded(rows, list(columns), engine, wish, entropy_bytes)


def _once(query: exp.Select, engine: Engine) -> exp.Select:
    """A query whose expressions are computed once a row, not again wherever they are named."""
    return query.offset(0) if engine.merges else query


def _selected(columns: Mapping[str, Expression], source: Expression) -> exp.Select:
    """At least one column, as a query must have."""
    return exp.select(*[exp.alias_(it.copy(), name) for name, it in (columns or {"nothing": whole(0)}).items()]).from_(source)


def _named(letter: str, expressions: Sequence[Expression | None]) -> dict[str, Expression | None]:
    return {f"{letter}{place}": one for place, one in enumerate(expressions)}


def _bounded(rows: exp.Select, names: list[str], engine: Engine, wish: Wish, entropy_bytes: Callable[[int], bytes]) -> exp.Select:
    """At most so many rows of each unit: they are numbered in the order of what they are encoded as, and the numbers chosen by a key."""
    key = entropy_bytes(_KEY_BYTES).hex()
    unit = exp.column("u0")
    rows = exp.select("*", exp.alias_(_over(exp.Count(this=exp.Star()), [unit]), "every")).from_(rows.subquery("of_units"))
    numbered = _numbered(rows, [unit], [exp.column(name) for name in names if name != "u0"] or [unit], "place")
    turns = [engine.hashed(reduce(_joined, [text(f"{key}:"), unit, text(":"), exp.cast(exp.column("place"), "TEXT")])), exp.column("place")]
    if wish.max_per_cell is not None:
        cell = [exp.column(f"c{list(wish.kinds).index(name)}") for name in wish.max_per_cell.attributes]
        numbered = _at_most(_numbered(numbered, [unit, *cell], turns, "within"), "within", wish.max_per_cell.rows)
    return _at_most(_numbered(numbered, [unit], turns, "turn"), "turn", wish.max_rows)


def _joined(one: Expression, other: Expression) -> Expression:
    return exp.DPipe(this=one.copy(), expression=other.copy(), safe=True)


def _at_most(rows: exp.Select, name: str, most: int) -> exp.Select:
    return exp.select("*").from_(rows.subquery(f"by_{name}")).where(exp.LTE(this=exp.column(name), expression=whole(most)))


def _numbered(rows: exp.Select, same: list[Expression], order: list[Expression], name: str) -> exp.Select:
    """The rows with their number among those that have the same."""
    turns = exp.Order(expressions=[exp.Ordered(this=one.copy(), nulls_first=True) for one in order])
    return exp.select("*", exp.alias_(_over(exp.RowNumber(), same, turns), name)).from_(rows.subquery(f"before_{name}"))


def _over(what: Expression, same: list[Expression], order: Expression | None = None) -> Expression:
    return exp.Window(this=what, partition_by=[one.copy() for one in same], order=order)


def _grouped(rows: exp.Select, covers: Sequence[tuple[str, ...]], wish: Wish) -> exp.Select:
    """IntArray and sums of every cell that occurs in each of some marginals; in a row of one marginal, the cells of others are null."""
    places = {name: place for place, name in enumerate(wish.kinds)}
    used = sorted({places[name] for cover in covers for name in cover})
    numbers = [exp.alias_(exp.Count(this=exp.Star()), "n")]
    for place, measure in enumerate(wish.sums.values()):
        first = exp.EQ(this=exp.column(f"w{place}"), expression=whole(1))
        amount = case([(first, whole(1))], whole(0)) if isinstance(measure, UnitCount) else exp.column(f"v{place}")
        summed = exp.Coalesce(this=exp.Sum(this=amount), expressions=[whole(0)])
        numbers.append(exp.alias_(exp.cast(summed, "BIGINT"), f"s{place}"))
    query = exp.select(*(exp.column(f"c{place}") for place in used), *numbers).from_(rows.subquery("kept"))
    sets = [[exp.column(f"c{places[name]}") for name in cover] for cover in covers]
    if len(sets) > 1:
        return query.group_by(exp.GroupingSets(expressions=[exp.Tuple(expressions=one) for one in sets]))
    return query.group_by(*sets[0]) if sets[0] else query


def _cells(names: Sequence[str], wish: Wish) -> int:
    return math.prod(wish.kinds[name].size for name in names)


def _tables(answer: Any, cover: tuple[str, ...], wish: Wish) -> Iterator[tuple[Wanted, IntArray]]:
    """The marginals of one set of attributes, from an answer that may have those of others too."""
    import pyarrow as pa

    places = {f"c{place}": name for place, name in enumerate(wish.kinds)}
    own = np.ones(answer.num_rows, dtype=np.bool_)
    cells: list[IntArray] = []
    for column, name in places.items():
        if column in answer.column_names:
            given = answer.column(column)
            own &= given.is_null().to_numpy() != (name in cover)
    for name in cover:
        column = next(column for column, attribute in places.items() if attribute == name)
        cells.append(answer.column(column).filter(pa.array(own)).cast(pa.int64()).to_numpy())
    shape = tuple(wish.kinds[name].size for name in cover)
    where: IntArray = np.ravel_multi_index(cells, shape) if cells else np.zeros(int(own.sum()), dtype=np.int64)
    if len(np.unique(where)) != len(where):
        raise InternalError("A cell was counted twice; please report this.")
    numbers: dict[str | None, str] = {None: "n", **{name: f"s{place}" for place, name in enumerate(wish.sums)}}
    for measure, column in numbers.items():
        if measure in wish.tables:
            counts = np.zeros(_cells(cover, wish), dtype=np.int64)
            counts[where] = answer.column(column).filter(pa.array(own)).cast(pa.int64()).to_numpy()
            yield (measure, cover), counts
