"""Two tables of one engine, joined where they are (E10 of PROOFS-adapters.md)."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from leastnoise._adapters._engine import APART, Engine
from leastnoise._adapters._sql import Expression, Value, case, unit_of, whole


def joined_engine(first: Engine, second: Engine, own: str, key: str, columns: Sequence[str]) -> Engine | None:
    """An engine in which rows have the columns of their partner in a second table.

    Args:
        first: whose rows are its rows.
        second: where the partners are.
        own: the column of the first that they are joined on.
        key: that of the second.
        columns: of the second, those that are wanted.

    Returns:
        The engine; None where one query cannot have both tables, or their keys have no SQL. That depends on public facts alone.

    Guarantees: a row has nulls for columns of the second table, or the values of the one row there whose key is its own.
    """
    both = first.place.beside(second.place)
    keys = _key(first, own), _key(second, key)
    if both is None or keys[0] is None or keys[1] is None:
        return None
    session, relation = both
    mine, theirs = dict(first.values), {name: second.values[name] for name in columns if name in second.values}
    rows = _with_key({f"a{place}": value.it for place, value in enumerate(mine.values())}, keys[0], first.relation)
    every = _with_key({f"b{place}": value.it for place, value in enumerate(theirs.values())}, keys[1], relation)
    times = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[exp.column("k")])
    counted = exp.select("*", exp.alias_(times, "times")).from_(every.subquery("every"))
    single = exp.select("*").from_(counted.subquery("counted")).where(exp.EQ(this=exp.column("times"), expression=whole(1)))
    found = {f"a{place}": exp.column(f"a{place}", "one") for place in range(len(mine))}
    found |= {f"b{place}": exp.column(f"b{place}", "other") for place in range(len(theirs))}
    chosen = [exp.alias_(column, name) for name, column in found.items()]
    same = exp.EQ(this=exp.column("k", "one"), expression=exp.column("k", "other"))
    joined = exp.select(*chosen).from_(rows.subquery("one")).join(single.subquery("other"), on=same, join_type="left")
    values = {name: Value(value.held, exp.column(f"b{place}")) for place, (name, value) in enumerate(theirs.items())}
    values |= {name: Value(value.held, exp.column(f"a{place}")) for place, (name, value) in enumerate(mine.items())}
    return replace(first, relation=joined.subquery("joined"), values=values, session=session, place=APART)


def _key(engine: Engine, name: str) -> Expression | None:
    """The string form by which units are told apart, null where there is none; None where it has no SQL."""
    value = engine.values.get(name)
    form = None if value is None else unit_of(value)
    return None if value is None or form is None else case([(value.is_null, exp.Null())], form)


def _with_key(columns: dict[str, Expression], key: Expression, relation: Expression) -> exp.Select:
    chosen = [exp.alias_(it.copy(), name) for name, it in columns.items()]
    return exp.select(*chosen, exp.alias_(key, "k")).from_(relation.copy())
