"""Reads one SELECT, a syntax tree of sqlglot, as a `Statement`; refuses what cannot be answered."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

from leastnoise._domain import Domain, Measure
from leastnoise._trusted.check import InputError, did_you_mean
from leastnoise._workload._product import MEASURES_ARE_DECLARED
from leastnoise._workload._query_sets import level_names
from leastnoise._workload._sql_statement import Aggregate, Condition, Grouped, Statement, both
from leastnoise._workload._sql_values import (
    UNDECIDED,
    Attribute,
    Node,
    Parts,
    column_values,
    expression_values,
    is_boolean,
    refused,
    truth_values,
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
_MOST_SETS = 200
_SHARE = (
    "A share is the mean of a column of zeros and ones: AVG of it, with clip = [0, 1]; or group by "
    "the CASE"
)
_ONE_CASE = (
    "Its results must be one column or 1, and NULL elsewhere (0 in a sum): CASE WHEN ... THEN x END"
    "; or group by the CASE"
)


class StatementReader:
    """Reads one statement over a domain."""

    def __init__(self, domain: Domain, unit: str | None, tree: Node, text: str) -> None:
        from sqlglot import exp

        self._domain, self._unit, self._tree, self._text = domain, unit, tree, text
        self.exp: Any = exp  # loaded only where SQL is read
        self._named = _names(domain)

    def statement(self, of_unit: tuple[str, ...]) -> Statement:
        """Return the statement.

        Args:
            of_unit: attributes in which the rows of a unit agree.

        Raises:
            InputError: a clause that cannot be answered, by its name.
        """
        self._check_clauses()
        self._check_table()
        where = self._tree.args.get("where")
        condition = self._condition("WHERE", where.this) if where else Condition()
        columns = [self._column(node) for node in self._tree.expressions]
        groups, sets = self._grouping_sets(columns)
        self._check_columns(columns, groups)
        limit = self._tree.args.get("limit")
        return Statement(
            text=self._text,
            domain=self._domain,
            columns=tuple(columns),
            groups=tuple(groups),
            sets=tuple(sets),
            condition=condition,
            order=tuple(self._order(columns)),
            limit=None if limit is None else _number("LIMIT", limit.expression, int),
            of_unit=of_unit,
        )

    def _check_clauses(self) -> None:
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

    def _check_table(self) -> None:
        table = self._tree.args.get("from_") or self._tree.args.get("from")
        is_name = table is not None and isinstance(table.this, self.exp.Table)
        if not is_name or any(table.this.args.get(key) for key in ("sample", "joins", "pivots")):
            raise refused("FROM with more than the name of a table", _ADVICE["with"])

    def _check_columns(
        self, columns: Sequence[Grouped | Aggregate], groups: Sequence[Grouped]
    ) -> None:
        names = [column.name for column in columns]
        if len({*names}) < len(names):
            raise InputError(
                f"SELECT must give every column a name of its own, with AS; got {', '.join(names)}."
            )
        for column in columns:
            if isinstance(column, Grouped) and column not in groups:
                raise refused(
                    f"SELECT {column.name}, which GROUP BY does not name,", "Add it to GROUP BY"
                )
        if not any(isinstance(column, Aggregate) for column in columns):
            raise refused(
                "A SELECT without COUNT, SUM, AVG or a quantile",
                "Rows are never given; add COUNT(*) and GROUP BY",
            )

    # Columns of SELECT

    def _column(self, node: Node) -> Grouped | Aggregate:
        inner = node.unalias()
        name = node.alias or (
            node.name if isinstance(node, self.exp.Column) else node.sql("duckdb")
        )
        if isinstance(inner, self.exp.Star):
            raise refused("SELECT *", "Rows are never given; name the groups, and COUNT(*)")
        if inner.find(self.exp.Window):
            raise refused("A window function (OVER)", _ADVICE["window"])
        if inner.find(self.exp.AggFunc):
            return self._aggregate(inner, name)
        return Grouped(name, *self._values("SELECT", inner))

    def _aggregate(self, node: Node, name: str) -> Aggregate:
        exp = self.exp
        if isinstance(node, exp.Filter):
            inner = self._aggregate(node.this, name)
            condition = self._condition("FILTER", node.expression.this)
            return replace(inner, condition=both("FILTER", inner.condition, condition))
        if isinstance(node, exp.WithinGroup):
            return self._ordered_quantile(node, name)
        quantiles = (
            *(exp.PercentileCont, exp.PercentileDisc, exp.Quantile),
            *(exp.ApproxQuantile, exp.Median),
        )
        if isinstance(node, quantiles):
            at = node.args.get("quantile") or node.args.get("expression")
            share = Fraction(1, 2) if at is None else _number(node.key.upper(), at)
            return self._quantile(name, node.this, share)
        if isinstance(node, exp.CountIf):
            return Aggregate(name, "rows", condition=self._condition("COUNT_IF", node.this))
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            return self._distinct_count(node.this, name)
        if isinstance(node, (exp.Count, exp.Sum, exp.Avg)):
            counted, condition = self._conditional(node)
            plain = self._plain_aggregate(node, counted, name)
            clause = node.key.upper()
            return replace(plain, condition=both(clause, plain.condition, condition))
        advice = (
            "Answers are COUNT, SUM, AVG, PERCENTILE_CONT and MEDIAN, each of one column; compute "
            "with them afterwards"
        )
        raise refused(node.sql("duckdb"), advice)

    def _plain_aggregate(self, node: Node, counted: Node, name: str) -> Aggregate:
        """Return COUNT, SUM or AVG of a column or of 1, of all rows."""
        exp, clause = self.exp, node.key.upper()
        is_one = isinstance(counted, exp.Literal) and _is_number(counted.name, 1)
        if isinstance(node, exp.Count):
            if isinstance(counted, (exp.Star, exp.Literal, exp.Boolean)):
                return Aggregate(name, "rows")
            return self._count_of_values(counted, name)
        if isinstance(node, exp.Sum) and is_one:
            return Aggregate(name, "rows")
        if isinstance(node, exp.Sum) and isinstance(counted, exp.Mul):
            return self._weighted_sum(counted, name)
        kind = "mean" if isinstance(node, exp.Avg) else "sum"
        return Aggregate(name, kind, self._measure(clause, counted))

    def _count_of_values(self, counted: Node, name: str) -> Aggregate:
        """Return COUNT(x): the rows in which a measure, or else an attribute, is not null."""
        is_column = isinstance(counted, self.exp.Column)
        if is_column and not self._fitting_measures(counted) and self._is_attribute(counted):
            is_given = self.exp.Not(this=self.exp.Is(this=counted, expression=self.exp.Null()))
            return Aggregate(name, "rows", condition=self._condition("COUNT", is_given))
        return Aggregate(name, "values", self._measure("COUNT", counted))

    def _distinct_count(self, distinct: Node, name: str) -> Aggregate:
        counted = [column.name for column in distinct.expressions]
        if self._unit is None or [column.lower() for column in counted] != [self._unit.lower()]:
            known = (
                f"that is {self._unit}" if self._unit else "none is declared: every row is a unit"
            )
            raise refused(
                f"COUNT(DISTINCT {', '.join(counted)})",
                f"Units alone are counted, by the column of [privacy] unit; {known}",
            )
        return Aggregate(name, "units", self._unit)

    def _weighted_sum(self, product: Node, name: str) -> Aggregate:
        factors = [self._measure("SUM", part) for part in (product.left, product.right)]
        weights = [factor for factor in factors if self._domain.measure(factor).low >= 0]
        weight = (weights or factors)[0]
        value = factors[1] if weight == factors[0] else factors[0]
        return Aggregate(name, "weighted", value, weight=weight)

    def _conditional(self, node: Node) -> tuple[Node, Condition]:
        """Return what an aggregate is of, and the parts in which it is not null (in a sum, not 0).

        SUM(CASE WHEN c THEN x ELSE 0 END) is SUM(x) of the rows in which c is true; so is the sum
        of a condition that is cast to a number.
        """
        exp, inner = self.exp, node.this
        if isinstance(node, exp.Sum) and isinstance(inner, exp.Cast) and self._is_truth(inner.this):
            return exp.Literal.number(1), self._condition("SUM", inner.this)
        if not isinstance(inner, (exp.Case, exp.If)):
            return inner, Condition()
        clause = f"{node.key.upper()} of CASE"
        results = _results(inner)
        counted = [result for result in results if not self._adds_nothing(node, result)]
        if len({self._counted_form(node, result) for result in counted}) != 1:
            raise refused(clause, _SHARE if isinstance(node, exp.Avg) else _ONE_CASE)
        has_operand = isinstance(inner, exp.Case) and inner.this is not None
        if counted == results[:1] and len(results) == 2 and not has_operand:
            condition = (inner.args.get("ifs") or [inner])[0].this
        else:
            is_counted = [not self._adds_nothing(node, result) for result in results]
            condition = self._with_results(inner, is_counted)
        return counted[0], self._condition(clause, condition)

    def _with_results(self, case: Node, truths: Sequence[bool]) -> Node:
        """Return a CASE with truth values in place of its results."""
        condition = case.copy()
        branches = condition.args.get("ifs") or [condition]
        for branch, is_true in zip(branches, truths[:-1], strict=True):
            branch.set("true", self.exp.Boolean(this=is_true))
        default = "false" if isinstance(condition, self.exp.If) else "default"
        condition.set(default, self.exp.Boolean(this=truths[-1]))
        return condition

    def _adds_nothing(self, node: Node, result: Node) -> bool:
        """Return whether a result of CASE leaves an aggregate as it is."""
        is_zero = isinstance(result, self.exp.Literal) and _is_number(result.name, 0)
        is_null = isinstance(result, self.exp.Null)
        return is_null or (isinstance(node, self.exp.Sum) and is_zero)

    def _counted_form(self, node: Node, result: Node) -> str:
        """Return the text of a result of CASE; all constants count alike."""
        is_constant = isinstance(result, (self.exp.Literal, self.exp.Boolean))
        return "1" if isinstance(node, self.exp.Count) and is_constant else result.sql("duckdb")

    def _is_truth(self, node: Node) -> bool:
        """Return whether an expression is a condition or a Boolean column."""
        inner = node.unnest()
        if isinstance(inner, self.exp.Column):
            return self._is_attribute(inner) and is_boolean(
                self._domain.kind(self._find("SUM", inner)[0])
            )
        return isinstance(inner, (self.exp.Predicate, self.exp.And, self.exp.Or, self.exp.Not))

    def _ordered_quantile(self, node: Node, name: str) -> Aggregate:
        """Return PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY column)."""
        (ordered,) = node.expression.expressions
        share = _number(node.this.key.upper(), node.this.this)
        if name == node.sql("duckdb"):  # no name of its own: that of DuckDB
            order = node.expression.sql("duckdb").strip()
            name = f"quantile_{node.this.key[-4:]}({node.this.this.sql('duckdb')} {order})"
        return self._quantile(name, ordered.this, 1 - share if ordered.args.get("desc") else share)

    def _quantile(self, name: str, node: Node, share: Fraction) -> Aggregate:
        attribute, level_name = self._find("A quantile", node)
        if level_name is not None:
            raise refused(
                f"A quantile of the level {level_name}", "Take it of an attribute of numbers"
            )
        return Aggregate(name, "quantile", attribute, share)

    # Names

    def _measure(self, clause: str, node: Node) -> str:
        """Return the measure that a column names."""
        if not isinstance(node, self.exp.Column):
            raise refused(
                f"{clause} of an expression",
                "Declare a measure of a column that holds it: [measures.NAME] with column and clip",
            )
        fitting = self._fitting_measures(node)
        if len(fitting) != 1:
            measures = self._domain.measures.items()
            names = [name for name, measure in measures if type(measure) is Measure]
            instead = (
                "COUNT(*) counts rows"
                if clause == "COUNT"
                else "a quantile is taken of an attribute"
            )
            raise refused(
                f"{clause}({node.name})",
                "It needs one measure of that column with public bounds "
                f"({', '.join(names) or 'none is declared'}): {MEASURES_ARE_DECLARED} Or {instead}",
            )
        return fitting[0]

    def _fitting_measures(self, column: Node) -> list[str]:
        """Return the measures with the name of a column, or else those that sum this column."""
        name = column.name.lower()
        measures = {
            measure_name: measure
            for measure_name, measure in self._domain.measures.items()
            if type(measure) is Measure
        }
        named = [measure_name for measure_name in measures if measure_name.lower() == name]
        return named or [
            measure_name
            for measure_name, measure in measures.items()
            if measure.column.lower() == name
        ]

    def _is_attribute(self, column: Node) -> bool:
        return bool(self._fitting_attributes(column.name))

    def _find(self, clause: str, column: Node) -> tuple[str, str | None]:
        """Return the attribute that a column names, and the level if it names one."""
        if not isinstance(column, self.exp.Column):
            raise refused(f"{clause} of {column.sql('duckdb')}", "Name one column")
        fitting = self._fitting_attributes(column.name)
        if len(fitting) > 1:
            several = " and ".join(attribute for attribute, _ in fitting)
            raise InputError(
                f"{clause} names {column.name}, which {several} have; name one of these."
            )
        if fitting:
            return fitting[0]
        names = self._domain.names
        near = did_you_mean(column.name, names)
        raise InputError(
            f"{clause} names {column.name}, which is no attribute of the domain "
            f"({', '.join(names)}), nor a level. {near}".strip()
        )

    def _fitting_attributes(self, column_name: str) -> list[tuple[str, str | None]]:
        """Return attributes with their level: of that name, or with such a level or column.

        A name is found in any case; those that are the same come first.
        """
        for named in self._named:
            fitting = [entry for entry in named if entry[0].lower() == column_name.lower()]
            fitting = [entry for entry in fitting if entry[0] == column_name] or fitting
            if fitting:
                return [entry[1:] for entry in fitting]
        return []

    # Expressions and conditions

    def _values(self, clause: str, node: Node) -> tuple[str, tuple[object, ...]]:
        """Return the attribute of an expression, and its value in every part of the column."""
        of = self._attribute(clause, node)
        if isinstance(node, self.exp.Column):
            return of.name, column_values(of.kind, self._find(clause, node)[1])
        return of.name, expression_values(of, node, lambda column: self._find(clause, column))

    def _attribute(self, clause: str, node: Node) -> Attribute:
        """Return the only attribute of an expression."""
        names = sorted({self._find(clause, column)[0] for column in node.find_all(self.exp.Column)})
        if len(names) > 1:
            raise refused(
                f"{clause} with {' and '.join(names)} in one expression",
                "Name both in GROUP BY, or ask for each in a statement of its own",
            )
        if not names:
            raise refused(f"A constant in {clause} ({node.sql('duckdb')})", "Leave it out")
        return Attribute(names[0], self._domain.kind(names[0]), clause)

    def _condition(self, clause: str, node: Node) -> Condition:
        """Return the rows in which a condition is true.

        The terms between AND are each about one attribute. A term that is true in all parts keeps
        every row.
        """
        condition = Condition()
        for term in self._terms(node):
            of = self._attribute(clause, term)
            values = truth_values(of, term, lambda column: self._find(clause, column))
            parts = frozenset(part for part, value in enumerate(values) if value is True)
            undecided = frozenset([of.name] if UNDECIDED in values else [])
            if len(parts) < len(Parts.of(of.kind).all):
                condition = both(clause, condition, Condition({of.name: parts}, undecided))
        return condition

    def _terms(self, node: Node) -> Iterator[Node]:
        """Yield conditions that are all true exactly where a condition is.

        NOT (a OR b) is true where NOT a and NOT b are, also with nulls.
        """
        inner = node.unnest()
        if isinstance(inner, self.exp.And):
            yield from self._terms(inner.left)
            yield from self._terms(inner.right)
        elif isinstance(inner, self.exp.Not) and isinstance(inner.this.unnest(), self.exp.Or):
            either = inner.this.unnest()
            for side in (either.left, either.right):
                yield from self._terms(self.exp.Not(this=self.exp.Paren(this=side.copy())))
        elif isinstance(inner, self.exp.Not) and isinstance(inner.this.unnest(), self.exp.Not):
            yield from self._terms(inner.this.unnest().this)
        else:
            yield inner

    # GROUP BY and ORDER BY

    def _grouping_sets(
        self, columns: Sequence[Grouped | Aggregate]
    ) -> tuple[list[Grouped], list[tuple[int, ...]]]:
        """Return the columns of GROUP BY, and the grouping sets as indices of them."""
        group = self._tree.args.get("group")
        groups: list[Grouped] = []
        plain = [column for column in columns if isinstance(column, Grouped)]
        if group is None:
            if plain:
                raise refused(f"SELECT {plain[0].name} without GROUP BY", "Add GROUP BY")
            return [], [()]
        if group.args.get("all"):
            return plain, [tuple(range(len(plain)))]

        further = [group.args.get(key) for key in ("rollup", "cube", "grouping_sets")]
        elements = [
            *group.expressions,
            *chain.from_iterable(parts for parts in further if isinstance(parts, list)),
        ]
        sets: list[tuple[int, ...]] = [()]
        for element in elements:
            more_sets = self._sets_of(element, columns, groups)
            sets = [
                tuple(dict.fromkeys((*members, *more))) for members in sets for more in more_sets
            ]
        if len(sets) > _MOST_SETS:
            raise refused(
                f"GROUP BY with {len(sets)} grouping sets",
                f"At most {_MOST_SETS} stand in a statement",
            )
        return groups, list(dict.fromkeys(sets))

    def _sets_of(
        self, element: Node, columns: Sequence[Grouped | Aggregate], groups: list[Grouped]
    ) -> list[tuple[int, ...]]:
        """Return the grouping sets of one element of GROUP BY; add new columns to ``groups``."""
        exp = self.exp
        if isinstance(element, (exp.GroupingSets, exp.Rollup, exp.Cube)):
            sets = [
                members
                for inner in element.expressions
                for members in self._sets_of(inner, columns, groups)
            ]
            if isinstance(element, exp.GroupingSets):
                return sets
            if not sets:
                raise refused("GROUP BY ... WITH ROLLUP", "Write GROUP BY ROLLUP (a, b)")
            return _rolled_up(sets) if isinstance(element, exp.Rollup) else _cube(sets)
        is_tuple = isinstance(element, exp.Tuple)
        nodes = element.expressions if is_tuple else [element.unnest()]
        indices = []
        for group in [self._group(node, columns) for node in nodes]:
            if group not in groups:
                groups.append(group)
            indices.append(groups.index(group))
        return [tuple(indices)]

    def _group(self, node: Node, columns: Sequence[Grouped | Aggregate]) -> Grouped:
        """Return the column of SELECT that GROUP BY names, numbers or repeats, or else a new one."""
        grouped = [column for column in columns if isinstance(column, Grouped)]
        if isinstance(node, self.exp.Literal) and not node.is_string:
            number = _number("GROUP BY", node, int)
            numbered = columns[number - 1] if 0 < number <= len(columns) else None
            if not isinstance(numbered, Grouped):
                raise refused(
                    f"GROUP BY {number}",
                    "The number is that of a column of SELECT that is no answer",
                )
            return numbered
        is_column = isinstance(node, self.exp.Column)
        if is_column and not node.table:
            for column in grouped:
                if column.name.lower() == node.name.lower():
                    return column
        name = node.name if is_column else node.sql("duckdb")
        group = Grouped(name, *self._values("GROUP BY", node))
        for column in grouped:
            if (column.attribute, column.keys) == (group.attribute, group.keys):
                return column
        return group

    def _order(self, columns: Sequence[Grouped | Aggregate]) -> Iterator[tuple[int, bool]]:
        """Yield the index of each column of ORDER BY, and whether the largest comes first."""
        order = self._tree.args.get("order")
        names = [column.name.lower() for column in columns]
        written = [node.unalias().sql("duckdb").lower() for node in self._tree.expressions]
        for term in order.expressions if order else ():
            text = term.this.sql("duckdb").lower()
            number = term.this.name if isinstance(term.this, self.exp.Literal) else ""
            fitting = [
                index for index, pair in enumerate(zip(names, written, strict=True)) if text in pair
            ]
            index = int(number) - 1 if number.isdecimal() else (*fitting, -1)[0]
            if not 0 <= index < len(columns):
                raise refused(f"ORDER BY {term.this.sql('duckdb')}", "Order by columns of SELECT")
            yield index, bool(term.args.get("desc"))


def _names(domain: Domain) -> list[list[tuple[str, str, str | None]]]:
    """Return the names that a column may have: of attributes, of levels, of columns of the source.

    Each comes with the attribute, and with the level if it is one.
    """
    kinds = {name: domain.kind(name) for name in domain.names}
    levels: list[tuple[str, str, str | None]] = [
        (level_name, name, level_name)
        for name, kind in kinds.items()
        for level_name in level_names(kind)
    ]
    columns: list[tuple[str, str, str | None]] = [
        (str(kind.reading.column), name, None)
        for name, kind in kinds.items()
        if kind.reading.column
    ]
    return [[(name, name, None) for name in kinds], levels, columns]


def _rolled_up(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return all of them together, without the last one, and so on to none."""
    return [tuple(chain.from_iterable(sets[:size])) for size in range(len(sets), -1, -1)]


def _cube(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return every choice of them, the largest first."""
    return [
        tuple(chain.from_iterable(members))
        for size in range(len(sets), -1, -1)
        for members in combinations(sets, size)
    ]


def with_strftime(node: Node) -> Node:
    """Return TO_CHAR(column, format), which DuckDB lacks, as its STRFTIME; other nodes as is."""
    import sqlglot
    from sqlglot import exp

    if not isinstance(node, exp.ToChar) or not isinstance(node.args.get("format"), exp.Literal):
        return node
    written = exp.ToChar(this=exp.column("x"), format=node.args["format"].copy())
    read = sqlglot.parse_one(written.sql("postgres"), read="postgres")
    if not isinstance(read, exp.TimeToStr):
        return node
    return exp.TimeToStr(this=node.this, format=read.args["format"])


def _results(case: Node) -> list[Node]:
    """Return the results of a CASE in order, and last that of ELSE."""
    from sqlglot import exp

    branches = case.args.get("ifs") or [case]
    default = case.args.get("default") or case.args.get("false") or exp.Null()
    return [*(branch.args["true"] for branch in branches), default]


def _is_number(text: str, number: int) -> bool:
    try:
        return Fraction(text) == number
    except ValueError:
        return False


def _number(clause: str, node: Node, read: Callable[[str], Any] = Fraction) -> Any:
    try:
        return read(node.name)
    except (ValueError, AttributeError):
        raise refused(f"{clause} with a value that is not a number", "Write a number") from None
