"""Merge a SELECT from a grouped subquery with this subquery.

``SELECT revenue / orders FROM (SELECT SUM(amount) AS revenue, COUNT(*) AS orders FROM sales GROUP
BY region)`` becomes ``SELECT SUM(amount) / COUNT(*) FROM sales GROUP BY region``. The intervals of
the merged SELECT follow from the covariances of its answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from leastnoise._workload._sql._column_references import (
    ColumnReader,
    clause_columns,
    own_columns,
    replace_column,
)
from leastnoise._workload._sql._expression_values import Node

GROUP_NAME = "group name"
"""The key of a node's metadata with the name of a column of groups."""
_INNER = {"kind", "expressions", "from_", "where", "group", "having", "order", "with_"}
_OUTER = {"kind", "expressions", "from_", "where", "qualify", "windows", "order", "limit", "offset"}
_OUTER_COLUMNS = ("expressions", "where", "qualify", "windows", "order")


def with_groups_of(select: Node, inner: Node, columns: ColumnReader) -> Node | None:
    """Merge a SELECT with the grouped query in its FROM; None if impossible.

    Args:
        select: the outer query, with a name for every column.
        inner: the query of groups in its FROM.
        columns: finds the attributes and measures that columns of rows refer to.

    Returns:
        The merged query; None if one of the two queries does more than compute a result for each
        group.
    """
    from sqlglot import exp

    if not _are_mergeable(select, inner):
        return None
    definitions = {node.alias.lower(): node.unalias() for node in inner.expressions}
    groups = _written_groups(inner, definitions, columns)
    if groups is None:
        return None
    copy = select.copy()
    copy.set("expressions", [*_without_stars(copy, inner)])
    if not _replace_group_columns(copy, definitions):
        return None
    _merge_clauses(copy, inner, groups)
    if not groups and not any(node.find(exp.AggFunc) for node in copy.expressions):
        return None  # without an aggregate it would be about rows
    return copy


def _replace_group_columns(select: Node, definitions: Mapping[str, Node]) -> bool:
    """Replace group columns by expressions in place; return whether that worked.

    Args:
        select: the outer query, which is changed.
        definitions: the expression of each column of the inner query, by its name in lower case.
    """
    aliases = {node.alias.lower(): node.unalias() for node in select.expressions}
    for column in [*clause_columns(select, _OUTER_COLUMNS)]:
        name = column.name.lower()
        is_alias = not column.table and name in aliases
        if is_alias and _is_in_last_order(column):
            continue
        if name not in definitions:
            return False
        replace_column(column, definitions[name])
    for node in select.expressions:
        name = node.alias.lower()
        if name in definitions and node.unalias().unnest() != definitions[name].unnest():
            return False  # the name could mean two columns
    return True


def _merge_clauses(select: Node, inner: Node, groups: Sequence[Node]) -> None:
    """Give a SELECT the FROM, WHERE and groups of its inner query, in place.

    The conditions on groups are HAVING of the inner query and WHERE of the outer query.
    """
    from sqlglot import exp

    conditions = [
        clause.this.copy()
        for clause in (inner.args.get("having"), select.args.get("where"))
        if clause
    ]
    where = having = group = None
    if inner.args.get("where"):
        where = inner.args["where"].copy()
    if conditions:
        having = exp.Having(this=exp.and_(*conditions))
    if groups:
        group = exp.Group(expressions=groups)
    select.set("from_", inner.args["from_"].copy())
    select.set("where", where)
    select.set("having", having)
    select.set("group", group)


def _are_mergeable(select: Node, inner: Node) -> bool:
    """Return whether an outer query computes one row from each inner group."""
    from sqlglot import exp

    inner_clauses = {name for name, value in inner.args.items() if value}
    outer_clauses = {name for name, value in select.args.items() if value} - {"with_"}
    if not inner_clauses <= _INNER or not outer_clauses <= _OUTER:
        return False
    is_of_groups = inner.args.get("group") or any(
        node.find(exp.AggFunc) for node in inner.expressions
    )
    if not is_of_groups or inner.find(exp.Window, exp.Subquery):
        return False
    clauses = [select.args.get(key) for key in ("where", "qualify", "order")]
    parts = [*select.expressions, *(clause for clause in clauses if clause is not None)]
    if any(part.find(exp.Select) for part in parts):
        return False
    if any(any(star.args.values()) for part in parts for star in part.find_all(exp.Star)):
        return False  # EXCLUDE, REPLACE or RENAME
    aggregates = list(chain.from_iterable(part.find_all(exp.AggFunc) for part in parts))
    return all(_is_window_function(aggregate) for aggregate in aggregates)


def _is_in_last_order(column: Node) -> bool:
    """Return whether a column is in the query's ORDER BY, not in a window's."""
    from sqlglot import exp

    is_in_order = column.find_ancestor(exp.Order) is not None
    return is_in_order and column.find_ancestor(exp.Window) is None


def _is_window_function(aggregate: Node) -> bool:
    """Return whether an aggregate has an OVER clause."""
    from sqlglot import exp

    node = aggregate.parent
    while isinstance(node, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        node = node.parent
    return isinstance(node, exp.Window)


def _written_groups(
    inner: Node, definitions: dict[str, Node], columns: ColumnReader
) -> list[Node] | None:
    """Return the columns of GROUP BY as expressions; None for grouping sets."""
    from sqlglot import exp

    group = inner.args.get("group")
    if group is None:
        return []
    if any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets", "totals")):
        return None
    if group.args.get("all"):
        named = [node for node in inner.expressions if not node.find(exp.AggFunc)]
        return [_named(node.unalias(), node.alias) for node in named]
    groups = []
    for node in group.expressions:
        definition = _definition_of_group(node.unnest(), inner, definitions, columns)
        if definition is None:
            return None
        written, name = definition
        if written.find(exp.AggFunc) or not any(own_columns(written)):
            return None
        groups.append(_named(written, name))
    return groups


def _definition_of_group(
    written: Node, inner: Node, definitions: dict[str, Node], columns: ColumnReader
) -> tuple[Node, str] | None:
    """Return the expression and the name of a column in GROUP BY, or None.

    The column may be written as a position, a column or an alias; another expression has an empty
    name. The result is None for grouping sets, and for a position that does not exist.
    """
    from sqlglot import exp

    if isinstance(written, exp.Literal) and not written.is_string:
        position = int(written.name) if written.name.isdecimal() else 0
        if not 0 < position <= len(inner.expressions):
            return None
        numbered = inner.expressions[position - 1]
        return numbered.unalias(), numbered.alias
    if isinstance(written, exp.Column):
        name = written.name
        is_alias = not written.table and not columns.is_source_column(name)
        if is_alias and name.lower() in definitions:
            return definitions[name.lower()], name
        return written, name
    if isinstance(written, (exp.Tuple, exp.Rollup, exp.Cube, exp.GroupingSets)):
        return None
    return written, ""


def _named(node: Node, name: str) -> Node:
    """Return a copy of an expression under a column name."""
    copy = node.copy()
    if name:
        copy.meta[GROUP_NAME] = name
    return copy


def _without_stars(select: Node, inner: Node) -> Iterator[Node]:
    """Yield the columns of SELECT, with ``*`` expanded."""
    from sqlglot import exp

    for node in select.expressions:
        is_star = isinstance(node, exp.Star) or isinstance(node.this, exp.Star)
        if not is_star:
            yield node
            continue
        for inner_node in inner.expressions:
            reference = exp.column(inner_node.alias, quoted=True)
            yield exp.alias_(reference, inner_node.alias, quoted=True)
