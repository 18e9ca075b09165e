"""Rewrite items of FROM that do not select rows of the source.

Constants, such as the dates in ``WITH params AS (SELECT DATE '2026-01-01' AS first_day)``, replace
the columns that name them. A join of rows with groups that another query selects becomes a
condition ``key IN (SELECT key ...)``. An example is a join with the five largest groups.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from leastnoise._workload._sql._column_references import (
    add_condition,
    clause_columns,
    own_columns,
    terms,
)
from leastnoise._workload._sql._expression_values import Node, refused, released_database

TreeOf = Callable[[Node], Node | None]
"""From a relation of FROM to the tree of its query; None of a table of rows."""

_ROW_FUNCTIONS = ("generateseries", "generate_series", "range", "unnest")


def with_column_names(tree: Node, names: Sequence[str]) -> Node:
    """Rename the columns of a query, as in ``WITH t (a, b) AS (...)``.

    Args:
        tree: a SELECT (possibly from VALUES) or a UNION.
        names: the names; there may be fewer names than columns.
    """
    from sqlglot import exp

    copy = tree.copy()
    source = copy.args.get("from_")
    if source is not None and isinstance(source.this, exp.Values):
        identifiers = [exp.to_identifier(name, quoted=True) for name in names]
        alias = exp.TableAlias(this=source.this.args["alias"].this, columns=identifiers)
        source.this.set("alias", alias)
        return copy
    first = copy
    while isinstance(first, (exp.SetOperation, exp.Subquery)):
        first = first.this
    columns = [
        exp.alias_(node.unalias(), name, quoted=True)
        for node, name in zip(first.expressions, names, strict=False)
    ]
    first.set("expressions", [*columns, *first.expressions[len(columns) :]])
    return copy


def is_constant_relation(relation: Node) -> bool:
    """Return whether an item of FROM is VALUES or a series of constants."""
    from sqlglot import exp

    if relation.find(exp.Select) is not None or any(own_columns(relation)):
        return False
    if isinstance(relation, exp.Table):
        function = relation.this
        name = function.name if isinstance(function, exp.Anonymous) else function.key
        return name.lower() in _ROW_FUNCTIONS
    return isinstance(relation, (exp.Values, exp.Unnest))


def constant_column_names(relation: Node) -> list[str]:
    """Return the column names of VALUES or of a series.

    Raises:
        InputError: DuckDB cannot compute it.
    """
    import duckdb
    from sqlglot import exp

    query = exp.select("*").from_(relation.copy()).limit(0)
    with released_database() as database:
        try:
            description = database.execute(query.sql("duckdb")).description
        except duckdb.Error as error:
            reason = str(error).splitlines()[0].strip(" .")
            raise refused(relation.sql("duckdb"), f"DuckDB cannot compute it: {reason}") from None
    return [entry[0] for entry in description]


def without_constants(select: Node, tree_of: TreeOf) -> Node:
    """Replace columns of queries of constants by the constants.

    The queries of constants are in cross joins, or are scalar subqueries.
    """
    from sqlglot import exp

    copy = select.copy()
    for subquery in [*copy.find_all(exp.Subquery)]:
        constant = _scalar_constant(subquery, tree_of)
        if constant is not None:
            subquery.replace(exp.Paren(this=constant))
    source = copy.args.get("from_")
    if source is None:
        return copy
    clauses = [source, *(copy.args.get("joins") or [])]
    definitions = {
        clause.alias_or_name.lower(): values
        for clause in clauses
        if (values := _constants_of(tree_of(clause.this)))
    }
    other_clauses = [
        clause for clause in clauses if clause.alias_or_name.lower() not in definitions
    ]
    # Without FROM's relation the condition of a join would have no place.
    is_source_constant = source not in other_clauses
    joins = [join for join in clauses[1:] if is_source_constant or join not in other_clauses]
    if not definitions or not other_clauses or not all(map(_is_cross_join, joins)):
        return copy
    copy.set("from_", exp.From(this=other_clauses[0].this))
    copy.set("joins", other_clauses[1:] or None)
    _leave_out_constants(copy, definitions)
    for column in [*clause_columns(copy)]:
        constant = _constant_of_column(column, definitions)
        if constant is not None and not _is_ordered_alias(column, copy):
            column.replace(constant.copy())
    return copy


def _leave_out_constants(select: Node, definitions: dict[str, dict[str, Node]]) -> None:
    """Remove constants from GROUP BY and ORDER BY, in place.

    In GROUP BY and ORDER BY, a number would mean the position of a column.
    """
    for key in ("group", "order"):
        clause = select.args.get(key)
        for node in [*clause.expressions] if clause is not None else ():
            column = node.this if key == "order" else node
            is_constant = _constant_of_column(column, definitions) is not None
            if is_constant and not _is_ordered_alias(column, select):
                node.pop()
        if clause is not None and not any(clause.args.values()):
            select.set(key, None)


def _is_ordered_alias(column: Node, select: Node) -> bool:
    """Return whether a term of ORDER BY is the alias of a SELECT column."""
    order = select.args.get("order")
    is_term = order is not None and any(term.this is column for term in order.expressions)
    aliases = {node.alias.lower() for node in select.expressions}
    return is_term and not column.table and column.name.lower() in aliases


def _constants_of(tree: Node | None) -> dict[str, Node]:
    """Return the constants that a query selects, by name, or an empty mapping."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select):
        return {}
    clauses = {name for name, value in tree.args.items() if value} - {"kind"}
    has_others = clauses != {"expressions"} or tree.find(
        exp.Subquery, exp.AggFunc, exp.Star, exp.Unnest
    )
    if has_others or any(own_columns(tree)):
        return {}
    return {node.alias.lower(): node.unalias() for node in tree.expressions if node.alias}


def _scalar_constant(subquery: Node, tree_of: TreeOf) -> Node | None:
    """Return the constant of a subquery such as ``(SELECT 1)``, or None."""
    from sqlglot import exp

    inner = subquery.unnest()
    is_relation = isinstance(subquery.parent, (exp.From, exp.Join))
    if is_relation or not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
        return None
    clauses = {name for name, value in inner.args.items() if value} - {"kind"}
    node = inner.expressions[0].unalias()
    if clauses == {"expressions"}:
        is_constant = not any(own_columns(node)) and not node.find(
            exp.Select, exp.AggFunc, exp.Star
        )
        return node.copy() if is_constant else None
    if clauses != {"expressions", "from_"} or not isinstance(node, exp.Column):
        return None
    constant = _constants_of(tree_of(inner.args["from_"].this)).get(node.name.lower())
    return None if constant is None else constant.copy()


def _is_cross_join(join: Node) -> bool:
    """Return whether a join has no condition and keeps all rows."""
    has_condition = any(join.args.get(key) for key in ("on", "using", "method"))
    return not has_condition and join.args.get("side") in (None, "")


def _constant_of_column(column: Node, definitions: dict[str, dict[str, Node]]) -> Node | None:
    """Return the constant that a column stands for, or None."""
    from sqlglot import exp

    if not isinstance(column, exp.Column):
        return None
    for alias, values in definitions.items():
        if column.table.lower() in ("", alias) and column.name.lower() in values:
            return values[column.name.lower()]
    return None


def with_joins_as_conditions(select: Node, tree_of: TreeOf) -> Node:
    """Rewrite joins with selected groups as conditions ``key IN (...)``.

    A row matches at most one group, so ``JOIN (SELECT key ... GROUP BY key LIMIT 5) t ON key =
    t.key`` keeps the rows whose key is among the keys of these groups.

    Args:
        select: a SELECT from rows.
        tree_of: a function that returns the query of a relation.

    Raises:
        InputError: a join with a query has another form.
    """
    copy = select.copy()
    joins = []
    for join in copy.args.get("joins") or []:
        tree = tree_of(join.this)
        if tree is None:
            joins.append(join)
            continue
        keys = _keys_of_groups(join, tree)
        if keys is None or not _uses_only_keys(copy, join, keys):
            raise refused(
                f"JOIN of the rows with {join.alias_or_name or 'a query'}",
                "Aggregate the rows first, in a subquery, and join the two results. If a query "
                "selects groups, a join with it uses no column except the keys of its GROUP BY",
            )
        _replace_keys(copy, join, keys)
        add_condition(copy, _membership(join, keys))
    copy.set("joins", joins or None)
    return copy


def _keys_of_groups(join: Node, tree: Node) -> dict[str, Node] | None:
    """Return the column that a join equates with each key of a query, or None."""
    from sqlglot import exp

    has_other_form = join.args.get("side") or join.args.get("method")
    is_inner = not has_other_form and join.args.get("kind") in (None, "", "INNER")
    if not is_inner or not isinstance(tree, exp.Select) or tree.args.get("group") is None:
        return None
    outputs = {node.alias_or_name.lower(): node.unalias() for node in tree.expressions}
    keys = _compared_keys(join, outputs)
    if keys is None or not _are_all_keys(tree, outputs, keys):
        return None
    return keys


def _compared_keys(join: Node, names: Collection[str]) -> dict[str, Node] | None:
    """Return the column that a join equates with each key, or None.

    Args:
        join: the join, with USING or ON.
        names: the columns of the joined query.
    """
    from sqlglot import exp

    keys = {
        identifier.name.lower(): exp.column(identifier.copy())
        for identifier in join.args.get("using") or []
    }
    for term in terms(join.args["on"]) if join.args.get("on") else ():
        pair = _own_and_key(term, join.alias_or_name.lower(), names)
        if pair is None or pair[1].name.lower() in keys:
            return None
        keys[pair[1].name.lower()] = pair[0]
    return keys


def _own_and_key(term: Node, alias: str, names: Collection[str]) -> tuple[Node, Node] | None:
    """Return both columns of ``column = alias.key``, in this order, or None."""
    from sqlglot import exp

    if not isinstance(term, exp.EQ):
        return None
    left: Node = term.left.unnest()
    right: Node = term.right.unnest()
    if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
        return None
    for column, key in ((left, right), (right, left)):
        is_plain_key = not key.table and key.name.lower() in names
        is_of_query = key.table.lower() == alias or is_plain_key
        if is_of_query and column.table.lower() != alias:
            return column, key
    return None


def _are_all_keys(tree: Node, outputs: Mapping[str, Node], keys: Collection[str]) -> bool:
    """Return whether a query has one grouping set, which consists of given keys."""
    from sqlglot import exp

    groups = {
        name for name, node in outputs.items() if node.find(exp.Column) and not _is_computed(node)
    }
    group = tree.args["group"]
    has_one_set = not any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets"))
    are_all = group.args.get("all") or len(group.expressions) == len(groups)
    return bool(has_one_set and are_all and groups == set(keys))


def _is_computed(node: Node) -> bool:
    """Return whether a column of a grouped query is an aggregate."""
    from sqlglot import exp

    return node.find(exp.AggFunc, exp.Window, exp.Select) is not None


def _uses_only_keys(select: Node, join: Node, keys: dict[str, Node]) -> bool:
    """Return whether a SELECT uses no column of a joined query but its keys."""
    alias = join.alias_or_name.lower()
    return all(
        column.name.lower() in keys
        for column in clause_columns(select)
        if column.table.lower() == alias
    )


def _replace_keys(select: Node, join: Node, keys: dict[str, Node]) -> None:
    """Replace the keys of a joined query by the columns equated with them."""
    alias = join.alias_or_name.lower()
    for column in [*clause_columns(select)]:
        if column.table.lower() == alias:
            column.replace(keys[column.name.lower()].copy())


def _membership(join: Node, keys: dict[str, Node]) -> Node:
    """Return the condition that a row's keys are among the keys of a query."""
    from sqlglot import exp

    alias = join.alias_or_name
    relation = join.this.copy()
    if isinstance(relation, exp.Table):  # a query in WITH is not a table that can be joined
        relation = exp.select("*").from_(relation).subquery(alias)
    names = [exp.column(name, quoted=True) for name in keys]
    query = exp.select(*names).from_(relation)
    key_columns = [column.copy() for column in keys.values()]
    operand = key_columns[0] if len(key_columns) == 1 else exp.Tuple(expressions=key_columns)
    return exp.In(this=operand, query=query.subquery())


def plain_table(tree: Node) -> Node | None:
    """Return the table of ``SELECT * FROM table``, or None.

    Instead of ``*``, columns may be listed under their own names.
    """
    from sqlglot import exp

    clauses = {name for name, value in tree.args.items() if value} - {"kind"}
    if not isinstance(tree, exp.Select) or clauses != {"expressions", "from_"}:
        return None
    table = tree.args["from_"].this
    for node in tree.expressions:
        inner = node.unalias()
        is_same = isinstance(inner, exp.Column) and node.alias_or_name == inner.name
        is_plain_star = isinstance(node, exp.Star) and not any(node.args.values())
        if not is_same and not is_plain_star:
            return None
    is_table = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
    has_more = any(table.args.get(key) for key in ("sample", "pivots", "joins"))
    return table if is_table and not has_more else None
