"""Rewrite means over units, such as AVG over the number of rows of each unit.

The number of rows of a single unit is never published. The mean of these numbers is the number of
rows divided by the number of units, because the numbers of rows of all units add up to the number
of rows.
"""

from leastnoise._workload._sql._expression_values import Node

_INNER_CLAUSES = {"kind", "expressions", "from_", "where", "group"}


def without_groups_of_units(inner: Node, select: Node, unit: str) -> tuple[Node, Node]:
    """Rewrite aggregates over counts of each unit's rows as aggregates of rows.

    Args:
        inner: a SELECT in FROM whose columns have aliases.
        select: the SELECT around it.
        unit: the column of the privacy unit.

    Returns:
        Two syntax trees: the subquery without its groups and counts, and the SELECT with aggregates
        of rows. Both are unchanged if the subquery does anything else, or if the SELECT has another
        aggregate.
    """
    from sqlglot import exp

    counts = [node for node in inner.expressions if _is_count_of_rows(node.unalias())]
    groups = [node for node in inner.expressions if node not in counts]
    names = {node.alias.lower() for node in groups}
    units = {node.alias.lower() for node in groups if _is_column(node.unalias(), unit)}
    if not counts or len(units) != 1 or not _groups_by(inner, groups):
        return inner, select
    group = select.args.get("group")
    outer_groups = {node.name.lower() for node in group.expressions} if group else set()
    if outer_groups != names - units:
        return inner, select
    row_count_names = {node.alias.lower() for node in counts}
    translated = select.copy()
    for aggregate in [*translated.find_all(exp.AggFunc)]:
        aggregate_over_rows = _over_rows(aggregate, row_count_names, units, unit)
        if aggregate_over_rows is None:
            return inner, select
        aggregate.replace(aggregate_over_rows)
    if any(column.name.lower() in row_count_names for column in translated.find_all(exp.Column)):
        return inner, select
    rows = inner.copy()
    rows.set("group", None)
    rows.set("expressions", [node.copy() for node in groups])
    return rows, translated


def _over_rows(
    aggregate: Node, row_count_columns: set[str], unit_columns: set[str], unit: str
) -> Node | None:
    """Return an aggregate over units as an aggregate over rows, or None."""
    from sqlglot import exp

    people = exp.Count(this=exp.Distinct(expressions=[exp.column(unit)]))
    argument = aggregate.this
    name = argument.name.lower() if isinstance(argument, exp.Column) else ""
    if isinstance(aggregate, exp.Count):
        is_of_units = isinstance(argument, (exp.Star, exp.Literal)) or name in unit_columns
        return people if is_of_units else None
    rows = exp.Count(this=exp.Star())
    if isinstance(aggregate, exp.Sum) and name in row_count_columns:
        return rows
    if isinstance(aggregate, exp.Avg) and name in row_count_columns:
        divisor = exp.Nullif(this=people, expression=exp.Literal.number(0))
        return exp.Paren(this=exp.Div(this=rows, expression=divisor))
    return None


def _groups_by(inner: Node, columns: list[Node]) -> bool:
    """Return whether a SELECT does nothing but group rows by given columns."""
    from sqlglot import exp

    clauses = {name for name, value in inner.args.items() if value}
    group = inner.args.get("group")
    if not clauses <= _INNER_CLAUSES or group is None or len(group.expressions) != len(columns):
        return False
    numbers = {str(inner.expressions.index(node) + 1) for node in columns}
    texts = {node.unalias().sql().lower() for node in columns}
    names = {node.alias.lower() for node in columns} | texts | numbers
    has_further = any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets", "all"))
    written = {node.sql().lower() for node in group.expressions}
    are_plain = not any(node.find(exp.AggFunc, exp.Window) for node in columns)
    return are_plain and not has_further and len(written) == len(columns) and written <= names


def _is_count_of_rows(node: Node) -> bool:
    """Return whether a node is COUNT(*) or COUNT(constant)."""
    from sqlglot import exp

    return isinstance(node, exp.Count) and isinstance(node.this, (exp.Star, exp.Literal))


def _is_column(node: Node, name: str) -> bool:
    """Return whether a node is the column with a name; case is ignored."""
    from sqlglot import exp

    return isinstance(node, exp.Column) and node.name.lower() == name.lower()
