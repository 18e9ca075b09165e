"""Two tables of one engine, joined where they are (E10 of PROOFS-adapters.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from leastnoise._adapters._engine import APART, Engine
from leastnoise._adapters._sql import Expression, Value, case, unit_of, whole


def joined_engine(first: Engine, second: Engine, on: tuple[str, str], mine: Sequence[str], theirs: Sequence[str]) -> Engine | None:
    """An engine in which rows have the columns of their partner in a second table.

    Args:
        first: whose rows are its rows.
        second: where the partners are.
        on: the column of the first, and that of the second, that they are joined on.
        mine: of the first, the columns that are wanted; no other is named in a query.
        theirs: of the second, likewise.

    Returns:
        The engine; None where one query cannot have both tables, or their keys have no SQL. That depends on public facts alone.

    Guarantees: a row has nulls for columns of the second table, or the values of the one row there whose key is its own.
    """
    both = first.place.beside(second.place)
    keys = _key(first, on[0]), _key(second, on[1])
    if both is None or keys[0] is None or keys[1] is None:
        return None
    session, relation = both
    named = {name: f"a{place}" for place, name in enumerate(mine) if name in first.values}
    beside = {name: f"b{place}" for place, name in enumerate(theirs) if name in second.values}
    times = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[exp.column("k")])
    every = _with_key(second, beside, keys[1], relation).subquery("every")
    counted = exp.select("*", exp.alias_(times, "times")).from_(every).subquery("counted")
    single = exp.select("*").from_(counted).where(exp.EQ(this=exp.column("times"), expression=whole(1)))
    found = {**dict.fromkeys(named.values(), "one"), **dict.fromkeys(beside.values(), "other")} or {"k": "one"}
    chosen = [exp.alias_(exp.column(name, table), name) for name, table in found.items()]
    same = exp.EQ(this=exp.column("k", "one"), expression=exp.column("k", "other"))
    rows = _with_key(first, named, keys[0], first.relation).subquery("one")
    joined = exp.select(*chosen).from_(rows).join(single.subquery("other"), on=same, join_type="left")
    values = {name: Value(second.values[name].held, exp.column(short)) for name, short in beside.items()}
    values |= {name: Value(first.values[name].held, exp.column(short)) for name, short in named.items()}
    return replace(first, relation=joined.subquery("joined"), values=values, session=session, place=APART)


def _key(engine: Engine, name: str) -> Expression | None:
    """The string form by which units are told apart, null where there is none; None where it has no SQL."""
    value = engine.values.get(name)
    form = None if value is None else unit_of(value)
    return None if value is None or form is None else case([(value.is_null, exp.Null())], form)


def _with_key(engine: Engine, columns: Mapping[str, str], key: Expression, relation: Expression) -> exp.Select:
    chosen = [exp.alias_(engine.values[name].it.copy(), short) for name, short in columns.items()]
    return exp.select(*chosen, exp.alias_(key, "k")).from_(relation.copy())
