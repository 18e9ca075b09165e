"""Find what SQL columns refer to in the domain, and read conditions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from leastnoise._domain import Bins, Domain, Edges, Measure, UnitTotal
from leastnoise._trusted.check import InputError, did_you_mean
from leastnoise._workload._product import MEASURES_ARE_DECLARED
from leastnoise._workload._query_sets import level_names
from leastnoise._workload._sql._buckets import with_bucket_comparisons
from leastnoise._workload._sql._conditions import (
    EVERYTHING,
    CellBox,
    empty_condition_error,
    overlap,
    unite,
)
from leastnoise._workload._sql._expression_values import (
    UNDECIDED,
    Attribute,
    ColumnParts,
    Node,
    column_values,
    constant_truth,
    expression_values,
    is_boolean,
    refused,
    truth_values,
)

_COLUMN_CLAUSES = (
    *("expressions", "where", "group", "having", "qualify", "order", "windows", "joins"),
)


@dataclass(frozen=True)
class ColumnReader:
    """Finds what columns and conditions of SQL mean in a domain.

    Attributes:
        domain: the domain. The columns of the only table are its attributes, levels, columns and
            measures.
    """

    domain: Domain

    def measure(self, clause: str, node: Node) -> str:
        """Return the name of the measure that a column refers to.

        Raises:
            InputError: the node is not a column, or the name does not belong to exactly one
                measure.
        """
        from sqlglot import exp

        if not isinstance(node, exp.Column):
            raise refused(
                f"{clause} of an expression",
                "Declare a measure of a column that holds it: [measures.NAME] with column and clip",
            )
        kinds = (Measure, UnitTotal) if clause.startswith("SUM") else (Measure,)
        fitting = self.fitting_measures(node, kinds)
        if len(fitting) != 1:
            measures = self.domain.measures.items()
            names = [name for name, measure in measures if type(measure) in kinds]
            needed = (
                "It needs one measure of that column with public bounds "
                f"({', '.join(names) or 'none is declared'}): {MEASURES_ARE_DECLARED}"
            )
            if clause == "COUNT":
                raise refused(
                    f"COUNT({node.name})",
                    "Write COUNT(*) if no value is missing. " + needed.rstrip("."),
                )
            raise refused(f"{clause}({node.name})", f"{needed} Or take a quantile of an attribute")
        return fitting[0]

    def fitting_measures(
        self, column: Node, kinds: tuple[type, ...] = (Measure, UnitTotal)
    ) -> list[str]:
        """Return the measures that a column may refer to, by name or source column.

        Only measures of the classes ``kinds`` are returned.
        """
        name = column.name.lower()
        measures = {
            measure_name: measure
            for measure_name, measure in self.domain.measures.items()
            if type(measure) in kinds
        }
        same_name = [measure_name for measure_name in measures if measure_name.lower() == name]
        return same_name or [
            measure_name
            for measure_name, measure in measures.items()
            if measure.column.lower() == name
        ]

    def is_attribute(self, column: Node) -> bool:
        """Return whether a column refers to an attribute, or to a level of one."""
        return bool(self._fitting_attributes(column.name))

    def is_source_column(self, name: str) -> bool:
        """Return whether a name belongs to an attribute or to its source column."""
        attributes, _, columns, _ = _column_names(self.domain)
        return any(entry[0].lower() == name.lower() for entry in (*attributes, *columns))

    def find(self, clause: str, column: Node) -> tuple[str, str | None]:
        """Return the attribute of a column, and its level or None."""
        from sqlglot import exp

        if not isinstance(column, exp.Column):
            raise refused(f"{clause} of {column.sql('duckdb')}", "Name one column")
        fitting = self._fitting_attributes(column.name)
        if len(fitting) > 1:
            meanings = [
                attribute if level is None else f'"{attribute}:{level}"'
                for attribute, level in fitting
            ]
            raise InputError(
                f"{clause} names {column.name}, which can mean {' or '.join(meanings)}; name one "
                "of these."
            )
        if fitting:
            return fitting[0]
        names = self.domain.names
        near = did_you_mean(column.name, names)
        raise InputError(
            f"{clause} names {column.name}, which is not an attribute of the domain "
            f"({', '.join(names)}), nor a level. {near}".strip()
        )

    def _fitting_attributes(self, column_name: str) -> list[tuple[str, str | None]]:
        """Return each attribute that a name may refer to, with its level or None.

        The comparison ignores case, but a name with the same case takes precedence.
        """
        for candidates in _column_names(self.domain):
            fitting = [entry for entry in candidates if entry[0].lower() == column_name.lower()]
            fitting = [entry for entry in fitting if entry[0] == column_name] or fitting
            if fitting:
                return [entry[1:] for entry in fitting]
        return []

    def values(
        self, clause: str, node: Node, condition: CellBox | None = None
    ) -> tuple[str, tuple[object, ...]]:
        """Return the attribute of an expression, and its value in each part.

        Args:
            clause: for messages.
            node: the expression.
            condition: the condition of the counted rows. The parts of a column are its cells, its
                nulls and its values outside the domain. In excluded parts, the value may be
                ``UNDECIDED``.
        """
        from sqlglot import exp

        attribute = self._attribute(clause, node)
        node = _with_bucket_comparisons(attribute, node)
        if isinstance(node, exp.Column):
            return attribute.name, column_values(attribute.kind, self.find(clause, node)[1])
        parts = None if condition is None else condition.parts.get(attribute.name)
        values = expression_values(
            attribute, node, lambda column: self.find(clause, column), counted_parts=parts
        )
        return attribute.name, values

    def attribute_names(self, clause: str, node: Node) -> list[str]:
        """Return the sorted attributes that an expression uses outside subqueries."""
        return sorted({self.find(clause, column)[0] for column in own_columns(node)})

    def _attribute(self, clause: str, node: Node) -> Attribute:
        """Return the attribute of an expression; raise unless there is exactly one."""
        names = self.attribute_names(clause, node)
        if len(names) > 1:
            raise refused(
                f"{clause} with {' and '.join(names)} in one expression",
                "Name both in GROUP BY, or ask for each in its own statement",
            )
        if not names:
            raise refused(f"A constant in {clause} ({node.sql('duckdb')})", "Leave it out")
        return Attribute(names[0], self.domain.kind(names[0]), clause)

    def is_truth(self, node: Node) -> bool:
        """Return whether an expression is a condition or a Boolean column."""
        from sqlglot import exp

        inner = node.unnest()
        if isinstance(inner, exp.Column):
            if not self.is_attribute(inner):
                return False
            name, level_name = self.find("A condition", inner)
            return level_name is None and is_boolean(self.domain.kind(name))
        return isinstance(inner, (exp.Predicate, exp.And, exp.Or, exp.Not, exp.Boolean))

    def boxes(self, clause: str, node: Node) -> tuple[CellBox, ...]:
        """Return disjoint boxes of cells in which a condition is true.

        Raises:
            InputError: the condition cannot be computed, or is never true.
        """
        boxes: tuple[CellBox, ...] = EVERYTHING
        for term in terms(node):
            term_boxes = self.true_boxes(clause, term)
            if not term_boxes:
                raise empty_condition_error(clause, *self.attribute_names(clause, term))
            boxes = overlap(clause, boxes, term_boxes)
        if not boxes:
            raise empty_condition_error(clause, *self.attribute_names(clause, node))
        return boxes

    def true_boxes(
        self, clause: str, node: Node, *, with_undecided: bool = False
    ) -> tuple[CellBox, ...]:
        """Return disjoint boxes of cells in which a condition is true, perhaps none.

        Args:
            clause: for messages.
            node: the condition.
            with_undecided: whether to include rows if the condition depends on their value outside
                the domain.
        """
        from sqlglot import exp

        def read(part: Node) -> tuple[CellBox, ...]:
            """Return the boxes of a part of the condition."""
            return self.true_boxes(clause, part, with_undecided=with_undecided)

        inner = _with_negation_inside(node.unnest(), lambda part: self._is_mixed(clause, part))
        if isinstance(inner, exp.And):
            return overlap(clause, read(inner.left), read(inner.right))
        if isinstance(inner, exp.Or) and self._is_mixed(clause, inner):
            return unite(clause, self.domain, read(inner.left), read(inner.right))
        if not inner.find(exp.Column):
            if constant_truth(clause, inner):
                return EVERYTHING
            return ()
        attribute = self._attribute(clause, inner)
        inner = _with_bucket_comparisons(attribute, inner)
        values = truth_values(attribute, inner, lambda column: self.find(clause, column))
        true_values = (True, UNDECIDED) if with_undecided else (True,)
        parts = frozenset(part for part, value in enumerate(values) if value in true_values)
        if len(parts) == len(ColumnParts.of(attribute.kind).all):
            return EVERYTHING
        undecided = frozenset([attribute.name] if UNDECIDED in values else [])
        if parts:
            return (CellBox({attribute.name: parts}, undecided),)
        return ()

    def _is_mixed(self, clause: str, node: Node) -> bool:
        """Return whether a condition uses several attributes."""
        return len(self.attribute_names(clause, node)) > 1


def _with_bucket_comparisons(attribute: Attribute, node: Node) -> Node:
    """Replace bucket functions of a binned column by comparisons."""
    if isinstance(attribute.kind, (Bins, Edges)):
        return with_bucket_comparisons(attribute.kind, node)
    return node


def own_columns(node: Node) -> Iterator[Node]:
    """Yield the columns of an expression, except columns of its subqueries."""
    from sqlglot import exp

    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, exp.Column):
            yield part
        elif not isinstance(part, (exp.Select, exp.SetOperation)):
            pending += part.iter_expressions()


def clause_columns(select: Node, clauses: Sequence[str] = _COLUMN_CLAUSES) -> Iterator[Node]:
    """Yield the columns in the clauses of a SELECT, outside its subqueries."""
    for name in clauses:
        value = select.args.get(name)
        for node in value if isinstance(value, list) else [value]:
            if node is not None:
                yield from own_columns(node)


def replace_column(column: Node, definition: Node) -> None:
    """Replace a column, in place, by a copy of the expression that defines it."""
    from sqlglot import exp

    copy = definition.copy()
    column.replace(copy if isinstance(copy, exp.Column) else exp.Paren(this=copy))


def add_condition(select: Node, condition: Node) -> None:
    """Add a condition, joined by AND, to the WHERE of a SELECT in place."""
    from sqlglot import exp

    where = select.args.get("where")
    conditions = [condition] if where is None else [where.this, condition]
    both = exp.and_(*(part.copy() for part in conditions), copy=False)
    select.set("where", exp.Where(this=both))


def terms(node: Node) -> Iterator[Node]:
    """Split a condition into terms that AND joins.

    NOT (a OR b) is true exactly if NOT a and NOT b are true, also with nulls.
    """
    from sqlglot import exp

    inner = _with_negation_inside(node.unnest(), lambda _: False)
    if isinstance(inner, exp.And):
        yield from terms(inner.left)
        yield from terms(inner.right)
    else:
        yield inner


def _with_negation_inside(node: Node, is_mixed: Callable[[Node], bool]) -> Node:
    """Move NOT inwards: NOT (a OR b) becomes NOT a AND NOT b.

    NOT NOT a becomes a. NOT (a AND b) becomes NOT a OR NOT b, but only if the condition uses
    several attributes.
    """
    from sqlglot import exp

    if not isinstance(node, exp.Not):
        return node
    inner = node.this.unnest()
    if isinstance(inner, exp.Not):
        return _with_negation_inside(inner.this.unnest(), is_mixed)
    if isinstance(inner, exp.Or):
        return exp.And(this=_negated(inner.left), expression=_negated(inner.right))
    if isinstance(inner, exp.And) and is_mixed(inner):
        return exp.Or(this=_negated(inner.left), expression=_negated(inner.right))
    return node


def _negated(node: Node) -> Node:
    """Return the negation of a condition."""
    from sqlglot import exp

    return exp.Not(this=exp.Paren(this=node.copy()))


def _column_names(domain: Domain) -> list[list[tuple[str, str, str | None]]]:
    """List the names that SQL may use, each with its attribute and its level.

    There are four lists: attributes, levels, source columns, and full names ``attribute:level``.
    The level of an entry is None unless its name is the name of a level.
    """
    kinds = {name: domain.kind(name) for name in domain.names}
    levels: list[tuple[str, str, str | None]] = []
    for name, kind in kinds.items():
        levels += [(level_name, name, level_name) for level_name in level_names(kind)]
    columns: list[tuple[str, str, str | None]] = [
        (str(kind.reading.column), name, None)
        for name, kind in kinds.items()
        if kind.reading.column
    ]
    full_names = [(f"{name}:{level_name}", name, level_name) for _, name, level_name in levels]
    return [[(name, name, None) for name in kinds], levels, columns, full_names]
