"""SQL as a way to ask: a SELECT with GROUP BY becomes tables, means and quantiles, and a `Statement` that lays out their answers.

DuckDB computes an expression of one column (a condition, CASE, date_trunc) over the public values
of that column's cells, in an empty database that reaches no file, so SQL has its usual meaning. An
expression that differs within a cell is refused. A clause that cannot be answered is refused by its
name.
"""

import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations, pairwise
from typing import Any

from leastnoise._check import Exact, InputError, did_you_mean
from leastnoise._domain import (
    FOLDED,
    RESERVED,
    Bins,
    Dates,
    Decimals,
    Domain,
    Edges,
    Kind,
    Label,
    Measure,
    period_of,
)
from leastnoise._workload._product import MEASURES_ARE_DECLARED
from leastnoise._workload._query_sets import QuerySet, identity, level, level_names, predicates
from leastnoise._workload._workload import (
    Workload,
    mean_queries,
    quantile_queries,
    queries,
    together,
)

Node = Any
"""A node of sqlglot's syntax tree; its base class is called otherwise in some versions."""
Cells = Mapping[str, frozenset[int]]
"""The cells that are kept, by attribute; of an attribute that is left out, all."""
Key = tuple[object, ...]

_COMPARED = (
    "Column|Identifier|Literal|Boolean|Null|Neg|Paren|And|Or|Not|N?EQ|[GL]TE?|Between|In|Is|Case|If"
)
_COMPUTED = (
    f"{_COMPARED}|Add|Sub|Mul|Div|IntDiv|Mod|Floor|Ceil|Round|Abs|Cast|TryCast|DataType|Coalesce|Nullif|Substring|Left|Right|Upper|Lower"
    "|Trim|Length|I?Like|StartsWith|Concat|DPipe|DateTrunc|TimestampTrunc|Extract|Year|Quarter|Month|Week|Day|DayOfWeek|DayOfMonth|Date"
    "|TsOrDsToDate|Interval|Var|Tuple"
)
_ADVICE = {
    "having": "Publish every group, and choose among the answers; small ones are left out with "
    "below in [output]",
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
_ACCEPTED = {
    "kind",
    "expressions",
    "from",
    "from_",
    "where",
    "group",
    "order",
    "limit",
    "hint",
    "operation_modifiers",
}
_VALUE = " value"
OTHER = "other"  # the last cell of attributes that have one
_NONE: frozenset[int] = frozenset()
_MOST_ROWS = 2_000_000  # of public values that a column's cells stand for
_MOST_STATEMENTS, _MOST_GROUPS = 200, 200_000


def refused(clause: str, advice: str) -> InputError:
    """Return the error for a clause that cannot be answered, with advice."""
    return InputError(f"{clause} cannot be answered. {advice}.")


@dataclass(frozen=True, slots=True)
class Grouped:
    """A column of groups: its name, and its value in every cell of an attribute."""

    name: str
    attribute: str
    keys: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A column of answers, computed from the rows in some cells."""

    name: str
    kind: str  # "rows", "units", "values", "sum", "weighted", "mean" or "quantile"
    of: str = ""  # the measure; of a quantile the attribute
    share: Fraction = Fraction(0)
    cells: Cells = field(default_factory=dict)  # those that FILTER and CASE keep
    weight: str = ""  # the measure by which rows are weighted


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A SELECT that can be answered."""

    text: str
    domain: Domain
    columns: tuple[Grouped | Aggregate, ...]
    groups: tuple[Grouped, ...]  # the columns of GROUP BY
    sets: tuple[tuple[int, ...], ...]  # the grouping sets, as indices of `groups`
    cells: Cells  # those that WHERE keeps
    order: tuple[
        tuple[int, bool], ...
    ] = ()  # indices of `columns`, and whether the largest comes first
    limit: int | None = None
    of_unit: tuple[str, ...] = ()  # attributes in which the rows of a unit agree

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The columns of answers."""
        return tuple(column for column in self.columns if isinstance(column, Aggregate))

    def along(
        self, grouping: Sequence[int], cells: Cells
    ) -> dict[str, tuple[QuerySet, tuple[Key, ...]]]:
        """Return by attribute the query set of a grouping set, and of each of its queries the values of the columns of groups."""
        groups = [self.groups[at] for at in grouping]
        names = {group.attribute for group in groups} | {*cells}
        return {
            name: _groups(
                self.domain.kind(name),
                [group.keys for group in groups if group.attribute == name],
                cells.get(name),
            )
            for name in self.domain.names
            if name in names
        }

    def kept(self, aggregate: Aggregate) -> Cells:
        """Return the cells whose rows a column of answers counts."""
        return both(f"WHERE with {aggregate.name}", self.cells, aggregate.cells)

    def asked(self, aggregate: Aggregate, grouping: Sequence[int], weight: Exact = 1) -> Workload:
        """Return what one column asks for one grouping set."""
        kind, of = aggregate.kind, aggregate.of
        sets = {
            name: asked for name, (asked, _) in self.along(grouping, self.kept(aggregate)).items()
        }
        if kind == "mean":
            return mean_queries(self.domain, of, by=sets, weight=weight)
        if kind == "quantile":
            return quantile_queries(self.domain, of, [aggregate.share], by=sets, weight=weight)
        if kind in ("sum", "weighted"):
            sums = queries(self.domain, sets, sum=of, weight=weight)
            return sums.weighted_by(aggregate.weight) if kind == "weighted" else sums
        count = of if kind == "values" else kind
        return queries(
            self.domain,
            sets,
            count=count,
            of_unit=self.of_unit if kind == "units" else (),
            weight=weight,
        )

    def workload(self, weight: Exact = 1) -> Workload:
        """Return all that it asks; too many groups are refused."""
        groups = sum(
            math.prod(len(keys) for _, keys in self.along(grouping, self.cells).values())
            for grouping in self.sets
        )
        if groups > _MOST_GROUPS:
            raise refused(
                f"GROUP BY with {groups} groups",
                f"A statement has at most {_MOST_GROUPS}: take coarser ones, or ask with queries",
            )
        return together(
            [
                self.asked(aggregate, grouping, weight)
                for grouping in self.sets
                for aggregate in self.aggregates
            ]
        )


def both(clause: str, cells: Cells, others: Cells) -> Cells:
    """Return the cells that two conditions keep; conditions that keep none are refused by the name of their clause."""
    kept = {
        name: cells.get(name, others.get(name, _NONE)) & others.get(name, cells.get(name, _NONE))
        for name in {**cells, **others}
    }
    for name, left in kept.items():
        if not left:
            raise InputError(
                f"{clause} keeps no value that {name} may have. Compare with values of "
                f"[domain.{name}]."
            )
    return kept


def _groups(
    kind: Kind, keys: Sequence[Sequence[object]], kept: frozenset[int] | None
) -> tuple[QuerySet, tuple[Key, ...]]:
    """Return the query set whose queries are the groups of cells with equal keys, and these keys, both in the order of the cells."""
    cells_by_key: dict[Key, list[int]] = {}
    for cell in range(kind.published) if kept is None else sorted(kept):
        cells_by_key.setdefault(tuple(of_cells[cell] for of_cells in keys), []).append(cell)
    parts = list(cells_by_key.values())
    if kept is None and len(parts) == kind.published:
        return identity(), tuple(cells_by_key)
    for name in level_names(kind) if kept is None else ():
        level_cells: dict[int, list[int]] = {}
        for cell, group in enumerate(kind.level(name).cells):
            level_cells.setdefault(group, []).append(cell)
        if [*level_cells.values()] == parts:
            return level(name), tuple(cells_by_key)
    labels = kind.labels
    return predicates([[labels[cell] for cell in part] for part in parts]), tuple(cells_by_key)


def sql(
    domain: Domain,
    *statements: str,
    unit: str | None = None,
    of_unit: Sequence[str] = (),
    weight: Exact = 1,
) -> Workload:
    """What SQL statements ask, as one workload: SELECT with COUNT, SUM, AVG and quantiles, WHERE and GROUP BY.

    Args:
        domain: the domain; attributes, their levels and columns, and measures are the columns of
            the one table there is.
        statements: each a SELECT, or several of them with semicolons.
        unit: the column of the privacy unit, whose COUNT(DISTINCT) counts units.
        of_unit: attributes in which the rows of a unit agree.
        weight: of every table.

    Returns:
        The workload. A CASE or another grouping with a name becomes a level of its ``domain``;
        `Release.sql` lays out the answers.

    Raises:
        InputError: a clause that cannot be answered, by its name.

    >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 99), measures={"pay": ln.Measure("pay", 0, 9000)})
    >>> asked = ln.sql(domain, "SELECT sex, age >= 65 AS retired, COUNT(*), AVG(pay) FROM people GROUP BY ROLLUP (sex, retired)")
    >>> [table.name for table in asked if table.measure is None]
    ['sex x age:retired', 'sex', 'total']
    """
    read = with_levels(read_statements(domain, statements, unit, of_unit))
    return together([statement.workload(weight) for statement in read])


def read_statements(
    domain: Domain, texts: Sequence[str], unit: str | None = None, of_unit: Sequence[str] = ()
) -> tuple[Statement, ...]:
    """Return the statements of some texts over one domain."""
    import sqlglot

    split: list[tuple[Node, str]] = []
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"SQL must be a text; got {type(text).__name__}.")
        try:
            trees = [tree for tree in sqlglot.parse(text, read="duckdb") if tree is not None]
        except sqlglot.errors.SqlglotError as error:
            raise InputError(
                f"The SQL cannot be read: {str(error).splitlines()[0].strip(' .')}."
            ) from None
        split += [
            (tree, text.strip().rstrip(";") if len(trees) == 1 else tree.sql("duckdb"))
            for tree in trees
        ]
    if not 0 < len(split) <= _MOST_STATEMENTS:
        raise InputError(f"SQL must have 1 to {_MOST_STATEMENTS} statements; got {len(split)}.")
    return tuple(
        _Reader(domain, unit, tree, text).statement(tuple(of_unit)) for tree, text in split
    )


def with_levels(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return the statements over their domain with a level for every named column of groups that is none yet."""
    domain = statements[0].domain
    value = domain.to_json()
    entries = {entry["name"]: entry for entry in value["attributes"]}
    for group in chain.from_iterable(statement.groups for statement in statements):
        kind, levels = (
            domain.kind(group.attribute),
            entries[group.attribute].setdefault("levels", []),
        )
        known = {*domain.names, *RESERVED, *(each["name"] for each in levels)}
        if (
            _groups(kind, [group.keys], None)[0].kind == "predicates"
            and group.name not in known
            and group.name.isidentifier()
        ):
            labels = ["(none)" if key is None else str(key) for key in group.keys[: kind.regular]]
            numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
            levels.append(
                {
                    "name": group.name,
                    "labels": [*numbers],
                    "cells": [numbers[label] for label in labels],
                }
            )
    made = Domain.from_json(value)
    return tuple(replace(statement, domain=made) for statement in statements)


class _Reader:
    """Reads one statement over a domain."""

    def __init__(self, domain: Domain, unit: str | None, tree: Node, text: str) -> None:
        from sqlglot import exp

        self._domain, self._unit, self._tree, self._text = domain, unit, tree, text
        self.exp: Any = exp  # loaded only where SQL is read

    def statement(self, of_unit: tuple[str, ...]) -> Statement:
        """Return the statement; a clause that cannot be answered is refused."""
        tree = self._tree
        if not isinstance(tree, self.exp.Select):
            raise refused(
                type(tree).__name__.upper(),
                "Write a SELECT with GROUP BY, and each part of a set operation as its own",
            )
        for clause, value in tree.args.items():
            if value and clause not in _ACCEPTED:
                name = clause.rstrip("_").removesuffix("s")
                raise refused(name.upper(), _ADVICE.get(name, "Leave it out"))
        if len([*tree.find_all(self.exp.Select)]) > 1:
            raise refused("A subquery", _ADVICE["with"])
        table = tree.args.get("from_") or tree.args.get("from")
        if (
            table is None
            or not isinstance(table.this, self.exp.Table)
            or any(table.this.args.get(key) for key in ("sample", "joins", "pivots"))
        ):
            raise refused("FROM with more than the name of a table", _ADVICE["with"])
        where = tree.args.get("where")
        cells = self._cells("WHERE", where.this) if where else {}
        columns = [self._column(node) for node in tree.expressions]
        groups, sets = self._sets(columns)
        names = [column.name for column in columns]
        if len({*names}) < len(names):
            raise InputError(
                f"SELECT must give every column a name of its own, with AS; got {', '.join(names)}."
            )
        loose = [
            column.name
            for column in columns
            if isinstance(column, Grouped) and column not in groups
        ]
        if loose:
            raise refused(f"SELECT {loose[0]}, which GROUP BY does not name,", "Add it to GROUP BY")
        if not any(isinstance(column, Aggregate) for column in columns):
            raise refused(
                "A SELECT without COUNT, SUM, AVG or a quantile",
                "Rows are never given; add COUNT(*) and GROUP BY",
            )
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
        inner, name = (
            node.unalias(),
            node.alias or (node.name if isinstance(node, self.exp.Column) else node.sql("duckdb")),
        )
        if isinstance(inner, self.exp.Star):
            raise refused("SELECT *", "Rows are never given; name the groups, and COUNT(*)")
        if inner.find(self.exp.Window):
            raise refused("A window function (OVER)", _ADVICE["window"])
        return (
            self._aggregate(inner, name)
            if inner.find(self.exp.AggFunc)
            else Grouped(name, *self._values("SELECT", inner))
        )

    def _aggregate(self, node: Node, name: str) -> Aggregate:
        if isinstance(node, self.exp.Filter):
            inner = self._aggregate(node.this, name)
            return replace(
                inner,
                cells=both("FILTER", inner.cells, self._cells("FILTER", node.expression.this)),
            )
        if isinstance(node, self.exp.WithinGroup):
            (ordered,) = node.expression.expressions
            share = _number(node.this.key.upper(), node.this.this)
            if name == node.sql("duckdb"):  # no name of its own: that of DuckDB
                name = f"quantile_{node.this.key[-4:]}({node.this.this.sql('duckdb')} {node.expression.sql('duckdb').strip()})"
            return self._quantile(
                name, ordered.this, 1 - share if ordered.args.get("desc") else share
            )
        if isinstance(
            node,
            (
                self.exp.PercentileCont,
                self.exp.PercentileDisc,
                self.exp.Quantile,
                self.exp.ApproxQuantile,
                self.exp.Median,
            ),
        ):
            at = node.args.get("quantile") or node.args.get("expression")
            return self._quantile(
                name, node.this, Fraction(1, 2) if at is None else _number(node.key.upper(), at)
            )
        what, cells = self._of_some(node)
        is_one = isinstance(what, self.exp.Literal) and what.name == "1"
        counts = isinstance(node, (self.exp.Count, self.exp.CountIf))
        if (counts and isinstance(what, self.exp.Star)) or (
            is_one and (counts or isinstance(node, self.exp.Sum))
        ):
            return Aggregate(name, "rows", cells=cells)
        if isinstance(node, self.exp.Count) and isinstance(what, self.exp.Distinct):
            counted = [column.name for column in what.expressions]
            if self._unit is None or [column.lower() for column in counted] != [self._unit.lower()]:
                known = (
                    f"that is {self._unit}"
                    if self._unit
                    else "none is declared: every row is a unit"
                )
                advice = f"Units alone are counted, by the column of [privacy] unit; {known}"
                raise refused(f"COUNT(DISTINCT {', '.join(counted)})", advice)
            return Aggregate(name, "units", self._unit, cells=cells)
        if isinstance(node, self.exp.Sum) and isinstance(what, self.exp.Mul):
            factors = [self._measure("SUM", part) for part in (what.left, what.right)]
            weight = next(
                (factor for factor in factors if self._domain.measure(factor).low >= 0), factors[0]
            )
            return Aggregate(
                name, "weighted", factors[weight == factors[0]], cells=cells, weight=weight
            )
        kinds = {self.exp.Count: "values", self.exp.Sum: "sum", self.exp.Avg: "mean"}
        if type(node) not in kinds:
            advice = "Answers are COUNT, SUM, AVG, PERCENTILE_CONT and MEDIAN, each of one column; compute with them afterwards"
            raise refused(node.sql("duckdb"), advice)
        return Aggregate(
            name, kinds[type(node)], self._measure(node.key.upper(), what), cells=cells
        )

    def _of_some(self, node: Node) -> tuple[Node, Cells]:
        """Return what is aggregated, and the cells that CASE keeps: SUM(CASE WHEN ... THEN ... ELSE 0 END) is of some rows."""
        what, clause = node.this, f"{node.key.upper()} of CASE"
        if isinstance(node, self.exp.CountIf):
            return self.exp.Literal.number(1), self._cells("COUNT_IF", what)
        if not isinstance(what, (self.exp.Case, self.exp.If)):
            return what, {}
        (branch, *others) = what.args.get("ifs") or [what]
        rest = what.args.get("default") or what.args.get("false")
        nothing = (
            rest is None
            or isinstance(rest, self.exp.Null)
            or (isinstance(node, self.exp.Sum) and rest.sql() == "0")
        )
        if (
            others
            or (what.args.get("ifs") and what.this is not None)
            or not nothing
            or isinstance(node, self.exp.Avg)
        ):
            share = "A share is the mean of a column of zeros and ones: AVG of it, with clip = [0, 1]; or group by the CASE"
            advice = "One condition stands in it: CASE WHEN ... THEN ... END (of a sum: ELSE 0); or group by the CASE"
            raise refused(clause, share if isinstance(node, self.exp.Avg) else advice)
        return branch.args["true"], self._cells(clause, branch.this)

    def _quantile(self, name: str, what: Node, share: Fraction) -> Aggregate:
        attribute, level_name = self._found("A quantile", what)
        if level_name is not None:
            raise refused(
                f"A quantile of the level {level_name}", "Take it of an attribute of numbers"
            )
        return Aggregate(name, "quantile", attribute, share)

    def _measure(self, clause: str, what: Node) -> str:
        if not isinstance(what, self.exp.Column):
            raise refused(
                f"{clause} of an expression",
                "Declare a measure of a column that holds it: [measures.NAME] with column and clip",
            )
        wanted, measures = (
            what.name.lower(),
            {
                name: measure
                for name, measure in self._domain.measures.items()
                if type(measure) is Measure
            },
        )
        fitting = [name for name in measures if name.lower() == wanted]
        fitting = fitting or [
            name for name, measure in measures.items() if measure.column.lower() == wanted
        ]
        if len(fitting) != 1:
            known = ", ".join(measures) or "none is declared"
            instead = (
                "COUNT(*) counts rows"
                if clause == "COUNT"
                else "a quantile is taken of an attribute"
            )
            advice = f"It needs one measure of that column with public bounds ({known}): {MEASURES_ARE_DECLARED} Or {instead}"
            raise refused(f"{clause}({what.name})", advice)
        return fitting[0]

    def _found(self, clause: str, column: Node) -> tuple[str, str | None]:
        """Look up a column by the name of an attribute, a level or the column that is read; return the attribute, and perhaps its level."""
        if not isinstance(column, self.exp.Column):
            raise refused(f"{clause} of {column.sql('duckdb')}", "Name one column")
        names, known = (
            self._domain.names,
            {name: self._domain.kind(name) for name in self._domain.names},
        )
        for triples in (
            [(name, name, None) for name in names],
            [
                (of_level, name, of_level)
                for name, kind in known.items()
                for of_level in level_names(kind)
            ],
            [
                (str(kind.reading.column), name, None)
                for name, kind in known.items()
                if kind.reading.column
            ],
        ):
            fitting = [triple for triple in triples if triple[0].lower() == column.name.lower()]
            fitting = [triple for triple in fitting if triple[0] == column.name] or fitting
            if len(fitting) > 1:
                several = " and ".join(attribute for _, attribute, _ in fitting)
                raise InputError(
                    f"{clause} names {column.name}, which {several} have; name one of these."
                )
            if fitting:
                return fitting[0][1:]
        near = did_you_mean(column.name, names)
        raise InputError(
            f"{clause} names {column.name}, which is no attribute of the domain "
            f"({', '.join(names)}), nor a level. {near}".strip()
        )

    def _cells(self, clause: str, node: Node) -> Cells:
        """Return the cells that a condition keeps, whose parts between AND are each about one attribute."""
        kept: Cells = {}
        for part in node.flatten() if isinstance(node, self.exp.And) else [node]:
            inner = part.unnest()
            if isinstance(inner, self.exp.And):
                kept = both(clause, kept, self._cells(clause, inner))
            else:
                attribute, values = self._values(clause, inner)
                kept = both(
                    clause,
                    kept,
                    {
                        attribute: frozenset(
                            cell for cell, value in enumerate(values) if value is True
                        )
                    },
                )
        return kept

    def _values(self, clause: str, node: Node) -> tuple[str, tuple[object, ...]]:
        """Return the attribute that an expression is about, and its value in every cell; OTHER in the cell of other values."""
        columns = {
            id(column_node): self._found(clause, column_node)
            for column_node in node.find_all(self.exp.Column)
        }
        attributes = sorted({name for name, _ in columns.values()})
        if len(attributes) > 1:
            advice = "Name both in GROUP BY, or ask for each in a statement of its own"
            raise refused(f"{clause} with {' and '.join(attributes)} in one expression", advice)
        if not attributes:
            raise refused(f"A constant in {clause} ({node.sql('duckdb')})", "Leave it out")
        (name,) = attributes
        kind = self._domain.kind(name)
        if isinstance(node, self.exp.Column):
            ((_, of_level),) = columns.values()
            level = None if of_level is None else kind.level(of_level)
            return name, kind.labels if level is None else tuple(
                level.labels[cell] for cell in level.cells
            )
        binned = isinstance(kind, (Bins, Edges))
        for part in node.walk():
            if not re.fullmatch(_COMPARED if binned else _COMPUTED, type(part).__name__):
                advice = (
                    f"Bins of {name} are compared with their edges alone"
                    if binned
                    else "Make a level of the attribute, and group by it"
                )
                raise refused(f"{type(part).__name__.upper()} in {clause}", advice)
        return name, self._computed(clause, name, node)

    def _computed(self, clause: str, name: str, written: Node) -> tuple[object, ...]:
        """Compute the value of an expression in every cell, in an empty database that reaches no file."""
        import duckdb

        def called(node: Node) -> Node:
            return (
                self.exp.column(self._found(clause, node)[1] or _VALUE, quoted=True)
                if isinstance(node, self.exp.Column)
                else node
            )

        kind, text = self._domain.kind(name), written.transform(called).sql("duckdb")
        compared = [
            Fraction(literal.name)
            for literal in written.find_all(self.exp.Literal)
            if not literal.is_string
        ]
        held, pairs = _stand_ins(kind, compared)
        if len(pairs) > _MOST_ROWS:
            raise refused(
                f"{clause} of {name}, which has {len(pairs)} values,",
                "Give the attribute coarser cells",
            )
        cells = [cell for cell, _ in pairs]
        levels = {of_level: kind.level(of_level) for of_level in level_names(kind)}
        columns = {_VALUE: (held, [value for _, value in pairs])}
        columns |= {
            of_level: ("VARCHAR", [str(level.labels[level.cells[cell]]) for cell in cells])
            for of_level, level in levels.items()
        }
        listed = ", ".join(
            f'unnest(?::{column}[]) AS "{title.replace(chr(34), chr(34) * 2)}"'
            for title, (column, _) in columns.items()
        )
        try:
            with duckdb.connect(":memory:", config={"enable_external_access": False}) as database:
                given = [cells, *(values for _, values in columns.values())]
                database.execute(
                    f'CREATE TABLE cells AS SELECT unnest(?::INTEGER[]) AS " cell", {listed}', given
                )
                rows = database.execute(f'SELECT " cell", {text} FROM cells').fetchall()  # noqa: S608 - of the nodes that are listed above
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{clause} cannot be computed over the values of {name}: {reason}"
            ) from None
        results: dict[int, set[object]] = {}
        for cell, value in rows:
            results.setdefault(cell, set()).add(_plain(value))
        cut = next((cell for cell, values in results.items() if len(values) > 1), None)
        if cut is not None:
            advice = f"Its values would be in two groups, and only the cell is counted; give [domain.{name}] finer cells"
            raise refused(
                f"{clause} that cuts through the cell {kind.labels[cut]} of {name}", advice
            )
        return tuple(
            results[cell].pop() if cell in results else OTHER for cell in range(kind.published)
        )

    def _sets(
        self, columns: Sequence[Grouped | Aggregate]
    ) -> tuple[list[Grouped], list[tuple[int, ...]]]:
        """Return the columns that GROUP BY names, and the grouping sets of ROLLUP, CUBE and GROUPING SETS as indices of them."""
        group, groups = self._tree.args.get("group"), list[Grouped]()
        plain = [column for column in columns if isinstance(column, Grouped)]
        if group is None:
            if plain:
                raise refused(f"SELECT {plain[0].name} without GROUP BY", "Add GROUP BY")
            return [], [()]
        if group.args.get("all"):
            return plain, [tuple(range(len(plain)))]

        sets: list[tuple[int, ...]] = [()]
        further = [group.args.get(key) for key in ("rollup", "cube", "grouping_sets")]
        for part in (
            *group.expressions,
            *chain.from_iterable(parts for parts in further if isinstance(parts, list)),
        ):
            sets = [
                tuple(dict.fromkeys((*members, *more)))
                for members in sets
                for more in self._sets_of(part, columns, groups)
            ]
        if len(sets) > _MOST_STATEMENTS:
            raise refused(
                f"GROUP BY with {len(sets)} grouping sets",
                f"At most {_MOST_STATEMENTS} stand in a statement",
            )
        return groups, list(dict.fromkeys(sets))

    def _sets_of(
        self, part: Node, columns: Sequence[Grouped | Aggregate], groups: list[Grouped]
    ) -> list[tuple[int, ...]]:
        """Return the grouping sets that one element of GROUP BY stands for; columns that are new are added to ``groups``."""
        nested = isinstance(part, (self.exp.GroupingSets, self.exp.Rollup, self.exp.Cube))
        sets = (
            [
                members
                for inner in part.expressions
                for members in self._sets_of(inner, columns, groups)
            ]
            if nested
            else []
        )
        if isinstance(part, self.exp.GroupingSets):
            return sets
        if nested:
            if not sets:
                raise refused("GROUP BY ... WITH ROLLUP", "Write GROUP BY ROLLUP (a, b)")
            rolled = isinstance(part, self.exp.Rollup)
            chosen = [
                [sets[:size]] if rolled else combinations(sets, size)
                for size in range(len(sets), -1, -1)
            ]
            return [tuple(chain.from_iterable(members)) for members in chain.from_iterable(chosen)]
        indices = []
        inner = (
            part.expressions
            if isinstance(part, self.exp.Tuple)
            else [part.this if isinstance(part, self.exp.Paren) else part]
        )
        for group in [self._group(node, columns) for node in inner]:
            if group not in groups:
                groups.append(group)
            indices.append(groups.index(group))
        return [tuple(indices)]

    def _group(self, node: Node, columns: Sequence[Grouped | Aggregate]) -> Grouped:
        """Return a column of GROUP BY: the column of SELECT that it names, numbers or repeats, or else a new one."""
        grouped = [column for column in columns if isinstance(column, Grouped)]
        if isinstance(node, self.exp.Literal) and not node.is_string:
            at = _number("GROUP BY", node, int)
            numbered = columns[at - 1] if 0 < at <= len(columns) else None
            if not isinstance(numbered, Grouped):
                raise refused(
                    f"GROUP BY {at}", "The number is that of a column of SELECT that is no answer"
                )
            return numbered
        is_column = isinstance(node, self.exp.Column)
        for column in grouped if is_column and not node.table else ():
            if column.name.lower() == node.name.lower():
                return column
        made = Grouped(
            node.name if is_column else node.sql("duckdb"), *self._values("GROUP BY", node)
        )
        return next(
            (
                column
                for column in grouped
                if (column.attribute, column.keys) == (made.attribute, made.keys)
            ),
            made,
        )

    def _order(self, columns: Sequence[Grouped | Aggregate]) -> Iterator[tuple[int, bool]]:
        """Yield the index of each column that ORDER BY names, numbers or repeats, and whether the largest comes first."""
        order = self._tree.args.get("order")
        names = [column.name.lower() for column in columns]
        written = [node.unalias().sql("duckdb").lower() for node in self._tree.expressions]
        for term in order.expressions if order else ():
            text, number = (
                term.this.sql("duckdb").lower(),
                term.this.name if isinstance(term.this, self.exp.Literal) else "",
            )
            named = [at for at, pair in enumerate(zip(names, written, strict=True)) if text in pair]
            at = int(number) - 1 if number.isdecimal() else (*named, -1)[0]
            if not 0 <= at < len(columns):
                raise refused(f"ORDER BY {term.this.sql('duckdb')}", "Order by columns of SELECT")
            yield at, bool(term.args.get("desc"))


def _number(clause: str, node: Node, kind: Callable[[str], Any] = Fraction) -> Any:
    try:
        return kind(node.name)
    except (ValueError, AttributeError):
        raise refused(f"{clause} with what is no number", "Write a number") from None


def _plain(value: object) -> object:
    """Return a value of DuckDB as a key: whole numbers without a point, days and hours as texts."""
    if isinstance(value, dt.datetime):
        return (
            value.date().isoformat()
            if value.time() == dt.time()
            else value.isoformat(" ", "minutes")
        )
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (float, Decimal)):
        return int(value) if value == int(value) else float(value)
    return value


def _stand_ins(kind: Kind, compared: Sequence[Fraction]) -> tuple[str, list[tuple[int, Any]]]:
    """Return a type of SQL, and pairs of a cell and a public value of it that together decide every expression.

    These are all values; of bins, every edge and compared number and one number between each two:
    comparisons change nowhere else.
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
        days = [
            kind.start + dt.timedelta(days=number)
            for number in range((kind.end - kind.start).days + 1)
        ]
        epoch = dt.date(1970, 1, 1)
        if kind.by != "hour":
            return "DATE", [
                (period_of((day - epoch).days * 24, kind.by) - kind.first, day.isoformat())
                for day in days
            ]
        ends = [
            (24 * index + hour, f"{day.isoformat()} {hour:02}")
            for index, day in enumerate(days)
            for hour in range(24)
        ]
        return "TIMESTAMP", [
            (cell, f"{text}:{end}") for cell, text in ends for end in ("00:00", "59:59.999999")
        ]
    labels: Sequence[Label] = kind.regular_labels
    if isinstance(kind, Decimals):
        return "DOUBLE", [(cell, float(Fraction(label))) for cell, label in enumerate(labels)]
    return "BIGINT" if all(isinstance(label, int) for label in labels) else "VARCHAR", list(
        enumerate(labels)
    )
