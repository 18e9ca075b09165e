"""SQL as a way to ask: a SELECT with GROUP BY becomes tables, means and quantiles, and says how its answer is laid out.

What a statement says of one column (a condition, CASE, date_trunc) is computed by DuckDB over the public values of that column's cells, in
an empty database that reaches no file, so it means what it means there. A cell whose values disagree is refused. What cannot be answered
is refused by the name of its clause.
"""

import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations, pairwise
from typing import Any

from leastnoise._check import Exact, InputError, did_you_mean
from leastnoise._domain import FOLDED, RESERVED, Bins, Dates, Decimals, Domain, Edges, Kind, Label, Measure, period_of
from leastnoise._workload._product import MEASURES_ARE_DECLARED
from leastnoise._workload._query_sets import QuerySet, identity, level, level_names, predicates
from leastnoise._workload._workload import Workload, mean_queries, quantile_queries, queries, together

Node = Any
"""A part of a statement, as sqlglot has it; its base class has had several names."""
Cells = Mapping[str, frozenset[int]]
"""The cells that count, by attribute; every cell of an attribute that is not in it."""
Key = tuple[object, ...]

_COMPARED = "Column|Identifier|Literal|Boolean|Null|Neg|Paren|And|Or|Not|N?EQ|[GL]TE?|Between|In|Is|Case|If"
_COMPUTED = (
    f"{_COMPARED}|Add|Sub|Mul|Div|IntDiv|Mod|Floor|Ceil|Round|Abs|Cast|TryCast|DataType|Coalesce|Nullif|Substring|Left|Right|Upper|Lower"
    "|Trim|Length|I?Like|StartsWith|Concat|DPipe|DateTrunc|TimestampTrunc|Extract|Year|Quarter|Month|Week|Day|DayOfWeek|DayOfMonth|Date"
    "|TsOrDsToDate|Interval|Var|Tuple"
)
_ADVICE = {
    "having": "Publish every group, and choose among the answers; small ones are left out with below in [output]",
    "distinct": "List the values in the domain, and count them with GROUP BY",
    "with": "Ask of the table itself, or prepare it as a view and name that in [source]",
    "join": "A second table is joined in [source.join]",
    "window": "Take shares and ranks from the finished release, at no cost",
    "qualify": "Choose among the answers",
    "offset": "Choose among the answers",
    "lateral": "Prepare the table as a view",
    "pivot": "Use GROUP BY",
    "sample": "All rows are read; noise protects them",
}
_ACCEPTED = {"kind", "expressions", "from", "from_", "where", "group", "order", "limit", "hint", "operation_modifiers"}
_VALUE = " value"
OTHER = "other"  # the last cell of attributes that have one
_NONE: frozenset[int] = frozenset()
_MOST_ROWS = 2_000_000  # of public values that a column's cells stand for
_MOST_STATEMENTS, _MOST_GROUPS = 200, 200_000


def refused(clause: str, advice: str) -> InputError:
    """What cannot be answered, by the name of its clause, and what to do."""
    return InputError(f"{clause} cannot be answered. {advice}.")


@dataclass(frozen=True, slots=True)
class Grouped:
    """A column of groups: what it is called, and its value in every cell of an attribute."""

    name: str
    attribute: str
    keys: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A column of answers: a count (of rows, units or values), sum (perhaps weighted), mean or quantile, of the rows in some cells."""

    name: str
    kind: str
    of: str = ""
    share: Fraction = Fraction(0)
    cells: tuple[tuple[str, frozenset[int]], ...] = ()
    weight: str = ""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A SELECT that can be answered: its columns, the sets of groups (by place), the cells that WHERE keeps, and how rows are sorted."""

    text: str
    domain: Domain
    columns: tuple[Grouped | Aggregate, ...]
    groups: tuple[Grouped, ...]
    sets: tuple[tuple[int, ...], ...]
    cells: Cells
    order: tuple[tuple[int, bool], ...] = ()
    limit: int | None = None
    of_unit: tuple[str, ...] = ()

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The columns of answers."""
        return tuple(column for column in self.columns if isinstance(column, Aggregate))

    def along(self, grouping: Sequence[int], cells: Cells) -> dict[str, tuple[QuerySet, tuple[Key, ...]]]:
        """What is asked along every attribute for a set of groups, and the values of its columns in every group."""
        groups = [self.groups[at] for at in grouping]
        names = {group.attribute for group in groups} | {*cells}
        return {
            name: _groups(self.domain.kind(name), [group.keys for group in groups if group.attribute == name], cells.get(name))
            for name in self.domain.names
            if name in names
        }

    def kept(self, aggregate: Aggregate) -> Cells:
        """The cells that a column of answers counts."""
        return both(self.cells, dict(aggregate.cells))

    def asked(self, aggregate: Aggregate, grouping: Sequence[int], weight: Exact = 1) -> Workload:
        """What one column asks for one set of groups."""
        sets = {name: asked for name, (asked, _) in self.along(grouping, self.kept(aggregate)).items()}
        return _ASKED[aggregate.kind](self, aggregate, sets, weight)

    def workload(self, weight: Exact = 1) -> Workload:
        """All that it asks, of as many groups as a table of its own can have."""
        groups = sum(math.prod(len(keys) for _, keys in self.along(grouping, self.cells).values()) for grouping in self.sets)
        if groups > _MOST_GROUPS:
            raise refused(
                f"GROUP BY with {groups} groups", f"A statement has at most {_MOST_GROUPS}: take coarser ones, or ask with queries"
            )
        return together([self.asked(aggregate, grouping, weight) for grouping in self.sets for aggregate in self.aggregates])


def both(cells: Cells, others: Cells) -> Cells:
    """The cells that two conditions keep."""
    return {name: cells.get(name, others.get(name, _NONE)) & others.get(name, cells.get(name, _NONE)) for name in {**cells, **others}}


def _groups(kind: Kind, keys: Sequence[Sequence[object]], kept: frozenset[int] | None) -> tuple[QuerySet, tuple[Key, ...]]:
    """The query set whose rows are the groups of cells with equal keys, and these keys, both in the order of the cells."""
    cells_by_key: dict[Key, list[int]] = {}
    for cell in range(kind.size) if kept is None else sorted(kept):
        cells_by_key.setdefault(tuple(of_cells[cell] for of_cells in keys), []).append(cell)
    parts = list(cells_by_key.values())
    if kept is None and len(parts) == kind.size:
        return identity(), tuple(cells_by_key)
    for name in level_names(kind) if kept is None else ():
        level_cells: dict[int, list[int]] = {}
        for cell, group in enumerate(kind.level(name).cells):
            level_cells.setdefault(group, []).append(cell)
        if [*level_cells.values()] == parts:
            return level(name), tuple(cells_by_key)
    labels = kind.labels
    return predicates([[labels[cell] for cell in part] for part in parts]), tuple(cells_by_key)


_ASKED: Mapping[str, Callable[[Statement, Aggregate, dict[str, QuerySet], Exact], Workload]] = {
    "rows": lambda said, _, sets, weight: queries(said.domain, sets, weight=weight),
    "units": lambda said, _, sets, weight: queries(said.domain, sets, count="units", of_unit=said.of_unit, weight=weight),
    "values": lambda said, column, sets, weight: queries(said.domain, sets, count=column.of, weight=weight),
    "sum": lambda said, column, sets, weight: queries(said.domain, sets, sum=column.of, weight=weight),
    "weighted": lambda said, column, sets, weight: queries(said.domain, sets, sum=column.of, weight=weight).weighted_by(column.weight),
    "mean": lambda said, column, sets, weight: mean_queries(said.domain, column.of, by=sets, weight=weight),
    "quantile": lambda said, column, sets, weight: quantile_queries(said.domain, column.of, [column.share], by=sets, weight=weight),
}


def sql(domain: Domain, *statements: str, unit: str | None = None, of_unit: Sequence[str] = (), weight: Exact = 1) -> Workload:
    """What SQL statements ask, as one workload: SELECT with COUNT, SUM, AVG and quantiles, WHERE and GROUP BY.

    Args:
        domain: the domain; attributes, their levels and columns, and measures are the columns of the one table there is.
        statements: each a SELECT, or several of them with semicolons.
        unit: the column of the privacy unit, whose COUNT(DISTINCT) counts units.
        of_unit: attributes in which the rows of a unit agree.
        weight: of every table.

    Returns:
        The workload. A CASE or another grouping with a name becomes a level of its ``domain``; `Release.sql` lays out the answers.

    Raises:
        InputError: a clause that cannot be answered, by its name.

    >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 99), measures={"pay": ln.Measure("pay", 0, 9000)})
    >>> asked = ln.sql(domain, "SELECT sex, age >= 65 AS retired, COUNT(*), AVG(pay) FROM people GROUP BY ROLLUP (sex, retired)")
    >>> [table.name for table in asked if table.measure is None]
    ['sex x age:retired', 'sex', 'total']
    """
    read = with_levels(read_statements(domain, statements, unit, of_unit))
    return together([statement.workload(weight) for statement in read])


def read_statements(domain: Domain, texts: Sequence[str], unit: str | None = None, of_unit: Sequence[str] = ()) -> tuple[Statement, ...]:
    """The statements of some texts, over one domain."""
    split = [statement for text in texts for statement in _parsed(text)]
    if not 0 < len(split) <= _MOST_STATEMENTS:
        raise InputError(f"SQL must have 1 to {_MOST_STATEMENTS} statements; got {len(split)}.")
    return tuple(_Reader(domain, unit, tree, text).statement(tuple(of_unit)) for tree, text in split)


def _parsed(text: str) -> list[tuple[Node, str]]:
    """The statements of a text, each with what was written."""
    import sqlglot

    if not isinstance(text, str):
        raise InputError(f"SQL must be a text; got {type(text).__name__}.")
    try:
        trees = [tree for tree in sqlglot.parse(text, read="duckdb") if tree is not None]
    except sqlglot.errors.SqlglotError as error:
        raise InputError(f"The SQL cannot be read: {str(error).splitlines()[0].strip(' .')}.") from None
    return [(tree, text.strip().rstrip(";") if len(trees) == 1 else tree.sql("duckdb")) for tree in trees]


def with_levels(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements over their domain with a level for every named column of groups that is none yet."""
    domain = statements[0].domain
    value = domain.to_json()
    entries = {entry["name"]: entry for entry in value["attributes"]}
    for group in chain.from_iterable(statement.groups for statement in statements):
        kind, levels = domain.kind(group.attribute), entries[group.attribute].setdefault("levels", [])
        known = {*domain.names, *RESERVED, *(each["name"] for each in levels)}
        if _groups(kind, [group.keys], None)[0].kind != "predicates" or group.name in known or not group.name.isidentifier():
            continue
        labels = ["(none)" if key is None else str(key) for key in group.keys[: kind.regular]]
        numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        levels.append({"name": group.name, "labels": [*numbers], "cells": [numbers[label] for label in labels]})
    made = Domain.from_json(value)
    return tuple(replace(statement, domain=made) for statement in statements)


class _Reader:
    """Reads one statement over a domain."""

    def __init__(self, domain: Domain, unit: str | None, tree: Node, text: str) -> None:
        self._domain, self._unit, self._tree, self._text = domain, unit, tree, text

    def statement(self, of_unit: tuple[str, ...]) -> Statement:
        """What it asks; a clause that cannot be answered is refused."""
        from sqlglot import exp

        tree = self._tree
        if not isinstance(tree, exp.Select):
            raise refused(type(tree).__name__.upper(), "Write a SELECT with GROUP BY, and each part of a set operation as its own")
        for clause, value in tree.args.items():
            if value and clause not in _ACCEPTED:
                name = clause.rstrip("_").removesuffix("s")
                raise refused(name.upper(), _ADVICE.get(name, "Leave it out"))
        if len([*tree.find_all(exp.Select)]) > 1:
            raise refused("A subquery", _ADVICE["with"])
        table = tree.args.get("from_") or tree.args.get("from")
        if table is None or not isinstance(table.this, exp.Table) or any(table.this.args.get(key) for key in ("sample", "joins", "pivots")):
            raise refused("FROM with more than the name of a table", _ADVICE["with"])
        where = tree.args.get("where")
        cells = self._cells("WHERE", where.this) if where else {}
        columns = [self._column(node) for node in tree.expressions]
        groups, sets = self._sets(columns)
        names = [column.name for column in columns]
        if len({*names}) < len(names):
            raise InputError(f"SELECT must give every column a name of its own, with AS; got {', '.join(names)}.")
        loose = [column.name for column in columns if isinstance(column, Grouped) and column not in groups]
        if loose:
            raise refused(f"SELECT {loose[0]}, which GROUP BY does not name,", "Add it to GROUP BY")
        if not any(isinstance(column, Aggregate) for column in columns):
            raise refused("A SELECT without COUNT, SUM, AVG or a quantile", "Rows are never given; add COUNT(*) and GROUP BY")
        limit = tree.args.get("limit")
        return Statement(
            text=self._text,
            domain=self._domain,
            columns=tuple(columns),
            groups=tuple(groups),
            sets=tuple(sets),
            cells=cells,
            order=tuple(self._order(columns)),
            limit=None if limit is None else _number("LIMIT", limit.expression, int),
            of_unit=of_unit,
        )

    def _column(self, node: Node) -> Grouped | Aggregate:
        from sqlglot import exp

        named = isinstance(node, exp.Alias)
        inner, name = (node.this, node.alias) if named else (node, node.name if isinstance(node, exp.Column) else node.sql("duckdb"))
        if isinstance(inner, exp.Star):
            raise refused("SELECT *", "Rows are never given; name the groups, and COUNT(*)")
        if inner.find(exp.Window):
            raise refused("A window function (OVER)", _ADVICE["window"])
        return self._aggregate(inner, name) if inner.find(exp.AggFunc) else Grouped(name, *self._values("SELECT", inner))

    def _aggregate(self, node: Node, name: str) -> Aggregate:
        from sqlglot import exp

        if isinstance(node, exp.Filter):
            inner = self._aggregate(node.this, name)
            return replace(inner, cells=_items(both(dict(inner.cells), self._cells("FILTER", node.expression.this))))
        if isinstance(node, exp.WithinGroup):
            (ordered,) = node.expression.expressions
            share = _number(node.this.key.upper(), node.this.this)
            if name == node.sql("duckdb"):  # no name of its own: that of DuckDB
                name = f"quantile_{node.this.key[-4:]}({node.this.this.sql('duckdb')} {node.expression.sql('duckdb').strip()})"
            return self._quantile(name, ordered.this, 1 - share if ordered.args.get("desc") else share)
        if isinstance(node, (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile, exp.Median)):
            at = node.args.get("quantile") or node.args.get("expression")
            return self._quantile(name, node.this, Fraction(1, 2) if at is None else _number(node.key.upper(), at))
        what, cells = self._of_some(node)
        rows = isinstance(what, (exp.Star, exp.Literal)) and what.name in ("*", "1")
        if isinstance(node, (exp.Count, exp.CountIf, exp.Sum)) and rows and not (isinstance(node, exp.Sum) and isinstance(what, exp.Star)):
            return Aggregate(name, "rows", cells=cells)
        if isinstance(node, exp.Count) and isinstance(what, exp.Distinct):
            return Aggregate(name, "units", self._counted_unit(what), cells=cells)
        if isinstance(node, exp.Sum) and isinstance(what, exp.Mul):
            factors = [self._measure("SUM", part) for part in (what.left, what.right)]
            weight = next((factor for factor in factors if self._domain.measure(factor).low >= 0), factors[0])
            return Aggregate(name, "weighted", factors[weight == factors[0]], cells=cells, weight=weight)
        kinds = {exp.Count: "values", exp.Sum: "sum", exp.Avg: "mean"}
        if type(node) not in kinds:
            advice = "Answers are COUNT, SUM, AVG, PERCENTILE_CONT and MEDIAN, each of one column; compute with them afterwards"
            raise refused(node.sql("duckdb"), advice)
        return Aggregate(name, kinds[type(node)], self._measure(node.key.upper(), what), cells=cells)

    def _of_some(self, node: Node) -> tuple[Node, tuple[tuple[str, frozenset[int]], ...]]:
        """What is aggregated, and in which cells, where CASE says so: SUM(CASE WHEN ... THEN ... ELSE 0 END) is of some rows."""
        from sqlglot import exp

        what, clause = node.this, f"{node.key.upper()} of CASE"
        if isinstance(node, exp.CountIf):
            return exp.Literal.number(1), _items(self._cells("COUNT_IF", what))
        if not isinstance(what, (exp.Case, exp.If)):
            return what, ()
        (branch, *others) = what.args.get("ifs") or [what]
        rest = what.args.get("default") or what.args.get("false")
        nothing = rest is None or isinstance(rest, exp.Null) or (isinstance(node, exp.Sum) and rest.sql() == "0")
        if others or (what.args.get("ifs") and what.this is not None) or not nothing or isinstance(node, exp.Avg):
            share = "A share is the mean of a column of zeros and ones: AVG of it, with clip = [0, 1]; or group by the CASE"
            advice = "One condition stands in it: CASE WHEN ... THEN ... END (of a sum: ELSE 0); or group by the CASE"
            raise refused(clause, share if isinstance(node, exp.Avg) else advice)
        return branch.args["true"], _items(self._cells(clause, branch.this))

    def _counted_unit(self, what: Node) -> str:
        names = [column.name for column in what.expressions]
        if len(names) != 1 or self._unit is None or names[0].lower() != self._unit.lower():
            known = f"that is {self._unit}" if self._unit else "none is declared: every row is a unit"
            raise refused(f"COUNT(DISTINCT {', '.join(names)})", f"Units alone are counted, by the column of [privacy] unit; {known}")
        return self._unit

    def _quantile(self, name: str, what: Node, share: Fraction) -> Aggregate:
        attribute, level_name = self._found("A quantile", what)
        if level_name is not None:
            raise refused(f"A quantile of the level {level_name}", "Take it of an attribute of numbers")
        return Aggregate(name, "quantile", attribute, share)

    def _measure(self, clause: str, what: Node) -> str:
        from sqlglot import exp

        if not isinstance(what, exp.Column):
            raise refused(f"{clause} of an expression", "Declare a measure of a column that holds it: [measures.NAME] with column and clip")
        wanted, measures = what.name.lower(), {name: measure for name, measure in self._domain.measures.items() if type(measure) is Measure}
        fitting = [name for name in measures if name.lower() == wanted]
        fitting = fitting or [name for name, measure in measures.items() if measure.column.lower() == wanted]
        if len(fitting) != 1:
            known = ", ".join(measures) or "none is declared"
            instead = "COUNT(*) counts rows" if clause == "COUNT" else "a quantile is taken of an attribute"
            advice = f"It needs one measure of that column with public bounds ({known}): {MEASURES_ARE_DECLARED} Or {instead}"
            raise refused(f"{clause}({what.name})", advice)
        return fitting[0]

    def _found(self, clause: str, column: Node) -> tuple[str, str | None]:
        """The attribute, and perhaps its level, that a column is: by its name, that of a level, or that of the column that is read."""
        from sqlglot import exp

        if not isinstance(column, exp.Column):
            raise refused(f"{clause} of {column.sql('duckdb')}", "Name one column")
        names = self._domain.names
        kinds = {name: self._domain.kind(name) for name in names}
        ways = [(name, (name, None)) for name in names], [(level, (name, level)) for name in names for level in level_names(kinds[name])]
        for pairs in (*ways, [(str(kind.reading.column), (name, None)) for name, kind in kinds.items() if kind.reading.column]):
            fitting = [pair for pair in pairs if pair[0].lower() == column.name.lower()]
            fitting = [pair for pair in fitting if pair[0] == column.name] or fitting
            if len(fitting) == 1:
                return fitting[0][1]
            if fitting:
                both_named = " and ".join(attribute for _, (attribute, _) in fitting)
                raise InputError(f"{clause} names {column.name}, which {both_named} have; name one of these.")
        near, known = did_you_mean(column.name, names), ", ".join(names)
        raise InputError(f"{clause} names {column.name}, which is no attribute of the domain ({known}), nor a level. {near}".strip())

    def _cells(self, clause: str, node: Node) -> Cells:
        """The cells that a condition keeps: all its parts that AND joins, each about one attribute."""
        from sqlglot import exp

        kept: Cells = {}
        for part in node.flatten() if isinstance(node, exp.And) else [node]:
            inner = part.unnest()
            if isinstance(inner, exp.And):
                kept = both(kept, self._cells(clause, inner))
                continue
            attribute, values = self._values(clause, inner)
            kept = both(kept, {attribute: frozenset(cell for cell, value in enumerate(values) if value is True)})
        for name, cells in kept.items():
            if not cells:
                raise InputError(f"{clause} keeps no value that {name} may have. Compare with values of [domain.{name}].")
        return kept

    def _values(self, clause: str, node: Node) -> tuple[str, tuple[object, ...]]:
        """The attribute that an expression is about, and its value in every cell; OTHER in the cell of other values."""
        from sqlglot import exp

        columns = {id(column_node): self._found(clause, column_node) for column_node in node.find_all(exp.Column)}
        attributes = sorted({name for name, _ in columns.values()})
        if len(attributes) > 1:
            advice = "Name both in GROUP BY, or ask for each in a statement of its own"
            raise refused(f"{clause} with {' and '.join(attributes)} in one expression", advice)
        if not attributes:
            raise refused(f"A constant in {clause} ({node.sql('duckdb')})", "Leave it out")
        (name,) = attributes
        kind = self._domain.kind(name)
        if isinstance(node, exp.Column):
            ((_, of_level),) = columns.values()
            level = None if of_level is None else kind.level(of_level)
            return name, kind.labels if level is None else tuple(level.labels[cell] for cell in level.cells)
        binned = isinstance(kind, (Bins, Edges))
        for part in node.walk():
            if not re.fullmatch(_COMPARED if binned else _COMPUTED, type(part).__name__):
                advice = (
                    f"Bins of {name} are compared with their edges alone" if binned else "Make a level of the attribute, and group by it"
                )
                raise refused(f"{type(part).__name__.upper()} in {clause}", advice)
        return name, self._computed(clause, name, node)

    def _computed(self, clause: str, name: str, written: Node) -> tuple[object, ...]:
        """The value of an expression in every cell, by an empty database that reaches no file."""
        import duckdb
        from sqlglot import exp

        def called(node: Node) -> Node:
            return exp.column(self._found(clause, node)[1] or _VALUE, quoted=True) if isinstance(node, exp.Column) else node

        kind, text = self._domain.kind(name), written.transform(called).sql("duckdb")
        compared = [Fraction(literal.name) for literal in written.find_all(exp.Literal) if not literal.is_string]
        held, pairs = _stand_ins(kind, compared)
        if len(pairs) > _MOST_ROWS:
            raise refused(f"{clause} of {name}, which has {len(pairs)} values,", "Give the attribute coarser cells")
        cells = [cell for cell, _ in pairs]
        levels = {of_level: kind.level(of_level) for of_level in level_names(kind)}
        columns = {_VALUE: (held, [value for _, value in pairs])}
        columns |= {of_level: ("VARCHAR", [str(level.labels[level.cells[cell]]) for cell in cells]) for of_level, level in levels.items()}
        listed = ", ".join(f'unnest(?::{column}[]) AS "{title.replace(chr(34), chr(34) * 2)}"' for title, (column, _) in columns.items())
        try:
            with duckdb.connect(":memory:", config={"enable_external_access": False}) as database:
                given = [cells, *(values for _, values in columns.values())]
                database.execute(f'CREATE TABLE cells AS SELECT unnest(?::INTEGER[]) AS " cell", {listed}', given)
                rows = database.execute(f'SELECT " cell", {text} FROM cells').fetchall()  # noqa: S608 - of the nodes that are listed above
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{clause} cannot be computed over the values of {name}: {reason}") from None
        results: dict[int, set[object]] = {}
        for cell, value in rows:
            results.setdefault(cell, set()).add(_plain(value))
        cut = next((cell for cell, values in results.items() if len(values) > 1), None)
        if cut is not None:
            advice = f"Its values would be in two groups, and only the cell is counted; give [domain.{name}] finer cells"
            raise refused(f"{clause} that cuts through the cell {kind.labels[cut]} of {name}", advice)
        return tuple(results[cell].pop() if cell in results else OTHER for cell in range(kind.size))

    def _sets(self, columns: Sequence[Grouped | Aggregate]) -> tuple[list[Grouped], list[tuple[int, ...]]]:
        """The columns that GROUP BY names, and the sets of them that ROLLUP, CUBE and GROUPING SETS make."""
        group, groups = self._tree.args.get("group"), []
        plain = [column for column in columns if isinstance(column, Grouped)]
        if group is None:
            if plain:
                raise refused(f"SELECT {plain[0].name} without GROUP BY", "Add GROUP BY")
            return [], [()]
        if group.args.get("all"):
            return plain, [tuple(range(len(plain)))]

        def position(node: Node) -> int:
            grouped = self._group(node, columns)
            if grouped not in groups:
                groups.append(grouped)
            return groups.index(grouped)

        sets: list[tuple[int, ...]] = [()]
        further = [group.args.get(key) for key in ("rollup", "cube", "grouping_sets")]
        for part in (*group.expressions, *chain.from_iterable(parts for parts in further if isinstance(parts, list))):
            sets = [tuple(dict.fromkeys((*members, *more))) for members in sets for more in _sets_of(part, position)]
        if len(sets) > _MOST_STATEMENTS:
            raise refused(f"GROUP BY with {len(sets)} grouping sets", f"At most {_MOST_STATEMENTS} stand in a statement")
        return groups, list(dict.fromkeys(sets))

    def _group(self, node: Node, columns: Sequence[Grouped | Aggregate]) -> Grouped:
        """A column of GROUP BY: that of SELECT which it names, numbers or repeats, or else one that SELECT has not."""
        from sqlglot import exp

        grouped, named = [column for column in columns if isinstance(column, Grouped)], None
        if isinstance(node, exp.Literal) and not node.is_string:
            at = _number("GROUP BY", node, int)
            named = columns[at - 1] if 0 < at <= len(columns) else None
            if not isinstance(named, Grouped):
                raise refused(f"GROUP BY {at}", "The number is that of a column of SELECT that is no answer")
        elif isinstance(node, exp.Column) and not node.table:
            named = next((column for column in grouped if column.name.lower() == node.name.lower()), None)
        if isinstance(named, Grouped):
            return named
        made = Grouped(node.name if isinstance(node, exp.Column) else node.sql("duckdb"), *self._values("GROUP BY", node))
        return next((column for column in grouped if (column.attribute, column.keys) == (made.attribute, made.keys)), made)

    def _order(self, columns: Sequence[Grouped | Aggregate]) -> Iterator[tuple[int, bool]]:
        """The columns that ORDER BY names, numbers or repeats, and whether the largest comes first."""
        from sqlglot import exp

        order = self._tree.args.get("order")
        names = [column.name.lower() for column in columns]
        written = [(node.this if isinstance(node, exp.Alias) else node).sql("duckdb").lower() for node in self._tree.expressions]
        for term in order.expressions if order else ():
            text, number = term.this.sql("duckdb").lower(), term.this.name if isinstance(term.this, exp.Literal) else ""
            named = [at for at, pair in enumerate(zip(names, written, strict=True)) if text in pair]
            at = int(number) - 1 if number.isdecimal() else (*named, -1)[0]
            if not 0 <= at < len(columns):
                raise refused(f"ORDER BY {term.this.sql('duckdb')}", "Order by columns of SELECT")
            yield at, bool(term.args.get("desc"))


def _sets_of(part: Node, position: Callable[[Node], int]) -> list[tuple[int, ...]]:
    """The sets of columns that one element of GROUP BY stands for."""
    from sqlglot import exp

    if isinstance(part, exp.GroupingSets):
        return [members_of for inner in part.expressions for members_of in _sets_of(inner, position)]
    if isinstance(part, (exp.Rollup, exp.Cube)):
        members = [members_of for inner in part.expressions for members_of in _sets_of(inner, position)]
        if not members:
            raise refused("GROUP BY ... WITH ROLLUP", "Write GROUP BY ROLLUP (a, b)")
        rolled = isinstance(part, exp.Rollup)
        chosen = [[members[:size]] if rolled else combinations(members, size) for size in range(len(members), -1, -1)]
        return [tuple(chain.from_iterable(members_of)) for members_of in chain.from_iterable(chosen)]
    if isinstance(part, (exp.Tuple, exp.Paren)):
        return [tuple(position(members_of) for members_of in (part.expressions if isinstance(part, exp.Tuple) else [part.this]))]
    return [(position(part),)]


def _items(cells: Cells) -> tuple[tuple[str, frozenset[int]], ...]:
    return tuple(sorted(cells.items()))


def _number(clause: str, node: Node, kind: Callable[[str], Any] = Fraction) -> Any:
    try:
        return kind(node.name)
    except (ValueError, AttributeError):
        raise refused(f"{clause} with what is no number", "Write a number") from None


def _plain(value: object) -> object:
    """A value as keys have it: whole numbers without a point, days and hours as texts."""
    if isinstance(value, dt.datetime):
        return value.date().isoformat() if value.time() == dt.time() else value.isoformat(" ", "minutes")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (float, Decimal)):
        return int(value) if value == int(value) else float(value)
    return value


def _stand_ins(kind: Kind, compared: Sequence[Fraction]) -> tuple[str, list[tuple[int, Any]]]:
    """Public values of every cell, and what they are in SQL: all of them, or, of bins, enough for whatever is compared with these numbers.

    A combination of comparisons changes at numbers that are compared alone, so that these, and one number between every two, tell all.
    """
    if isinstance(kind, (Bins, Edges)):
        cuts = sorted({*compared, *(-number for number in compared)})
        pairs = []
        for cell, (low, high) in enumerate(pairwise(kind.edges)):
            inner = [low, *(number for number in cuts if low < number < high), high]
            numbers = {*inner[1:-1], *((number + other) / 2 for number, other in pairwise(inner))}
            numbers |= {low} if kind.closed == "left" or cell == 0 else set()
            numbers |= {high} if kind.closed == "right" or cell == kind.regular - 1 else set()
            pairs += [(cell, float(number)) for number in sorted(numbers)]
        return "DOUBLE", pairs
    if isinstance(kind, Dates) and kind.by not in FOLDED:
        days = [kind.start + dt.timedelta(days=number) for number in range((kind.end - kind.start).days + 1)]
        epoch = dt.date(1970, 1, 1)
        if kind.by != "hour":
            return "DATE", [(period_of((day - epoch).days * 24, kind.by) - kind.first, day.isoformat()) for day in days]
        ends = [(24 * index + hour, f"{day.isoformat()} {hour:02}") for index, day in enumerate(days) for hour in range(24)]
        return "TIMESTAMP", [(cell, f"{text}:{end}") for cell, text in ends for end in ("00:00", "59:59.999999")]
    labels: Sequence[Label] = kind.regular_labels
    if isinstance(kind, Decimals):
        return "DOUBLE", [(cell, float(Fraction(label))) for cell, label in enumerate(labels)]
    return "BIGINT" if all(isinstance(label, int) for label in labels) else "VARCHAR", list(enumerate(labels))
