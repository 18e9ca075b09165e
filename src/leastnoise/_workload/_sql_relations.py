"""Rewrites the relations of FROM that select no rows of the source.

Constants, such as the dates in ``WITH params AS (SELECT DATE '2026-01-01' AS first_day)``, replace the
columns that name them. A join of rows with groups that another query selects, such as the five
largest, becomes a condition ``key IN (SELECT key ...)``.
"""

from collections.abc import Callable, Iterator, Sequence

from leastnoise._workload._sql_columns import own_columns, terms
from leastnoise._workload._sql_values import Node, refused, released_database

TreeOf = Callable[[Node], Node | None]
"""From a relation of FROM to the tree of its query; None of a table of rows."""

_ROW_FUNCTIONS = ("generateseries", "generate_series", "range", "unnest")
_CLAUSES = ("expressions", "where", "group", "having", "qualify", "order", "windows", "joins")


def with_column_names(tree: Node, names: Sequence[str]) -> Node:
    """Return a query whose columns have other names, as in ``WITH t (a, b) AS (...)``.

    Args:
        tree: a SELECT, perhaps from VALUES, or a UNION.
        names: the names; there may be fewer than columns.
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
    """Return whether a relation of FROM is VALUES or a series, without columns of others."""
    from sqlglot import exp

    if relation.find(exp.Select) is not None or any(own_columns(relation)):
        return False
    if isinstance(relation, exp.Table):
        function = relation.this
        name = function.name if isinstance(function, exp.Anonymous) else function.key
        return name.lower() in _ROW_FUNCTIONS
    return isinstance(relation, (exp.Values, exp.Unnest))


def constant_column_names(relation: Node) -> list[str]:
    """Return the names of the columns of VALUES or a series.

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
    """Return a SELECT with constants in place of the queries that name them.

    These are cross joins with a SELECT of constants, and scalar subqueries from one.
    """
    from sqlglot import exp

    copy = select.copy()
    for subquery in [*copy.find_all(exp.Subquery)]:
        constant = _scalar_constant(subquery, tree_of)
        if constant is not None:
            subquery.replace(exp.Paren(this=constant))
    source = copy.args.get("from_")
    joins = copy.args.get("joins") or []
    relations = [source.this, *(join.this for join in joins)] if source else []
    constants = {
        relation.alias_or_name.lower(): _constants_of(tree_of(relation)) for relation in relations
    }
    definitions = {name: values for name, values in constants.items() if values}
    are_crossed = all(
        _is_cross_join(join)
        for join in joins
        if join.alias_or_name.lower() in definitions or source.this.alias_or_name in definitions
    )
    if not definitions or len(definitions) == len(relations) or not are_crossed:
        return copy
    rest = [
        clause for clause in (source, *joins) if clause.alias_or_name.lower() not in definitions
    ]
    copy.set("from_", exp.From(this=rest[0].this))
    copy.set("joins", rest[1:] or None)
    for column in [*_clause_columns(copy)]:
        constant = _constant_of_column(column, definitions)
        if constant is not None:
            column.replace(constant.copy())
    return copy


def _constants_of(tree: Node | None) -> dict[str, Node]:
    """Return the columns of a SELECT of constants; none of others."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select):
        return {}
    clauses = {name for name, value in tree.args.items() if value} - {"kind"}
    has_others = clauses != {"expressions"} or tree.find(exp.Subquery, exp.AggFunc, exp.Star)
    if has_others or any(own_columns(tree)):
        return {}
    return {node.alias.lower(): node.unalias() for node in tree.expressions if node.alias}


def _scalar_constant(subquery: Node, tree_of: TreeOf) -> Node | None:
    """Return the constant that ``(SELECT s FROM params)`` or ``(SELECT 1)`` is, or None."""
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
    """Return whether a join has no condition and leaves no rows out."""
    has_condition = any(join.args.get(key) for key in ("on", "using", "method"))
    return not has_condition and join.args.get("side") in (None, "")


def _constant_of_column(column: Node, definitions: dict[str, dict[str, Node]]) -> Node | None:
    """Return the constant that a column names; None of others."""
    for alias, values in definitions.items():
        if column.table.lower() in ("", alias) and column.name.lower() in values:
            return values[column.name.lower()]
    return None


def _clause_columns(select: Node) -> Iterator[Node]:
    """Yield the columns of a SELECT outside of its subqueries and relations."""
    for key in _CLAUSES:
        value = select.args.get(key)
        for node in value if isinstance(value, list) else [value]:
            if node is not None:
                yield from own_columns(node)


def with_joins_as_conditions(select: Node, tree_of: TreeOf) -> Node:
    """Return a SELECT in which joins with selected groups are conditions.

    A row has at most one partner among groups, so ``JOIN (SELECT key ... GROUP BY key LIMIT 5) t ON
    key = t.key`` keeps the rows whose key is one of them.

    Args:
        select: a SELECT from rows.
        tree_of: returns the query that a relation is.

    Raises:
        InputError: another join with a query.
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
                "Aggregate the rows first, in a subquery, and join the two results; a join with "
                "groups that another query selects uses no column of it but the keys of its GROUP BY",
            )
        _replace_keys(copy, join, keys)
        _add_term(copy, _membership(join, keys))
    copy.set("joins", joins or None)
    return copy


def _keys_of_groups(join: Node, tree: Node) -> dict[str, Node] | None:
    """Return the column of the rows that equals each key of a query of groups."""
    from sqlglot import exp

    is_inner = join.args.get("side") in (None, "") and not join.args.get("method")
    if not is_inner or not isinstance(tree, exp.Select) or tree.args.get("group") is None:
        return None
    alias = join.alias_or_name.lower()
    keys: dict[str, Node] = {}
    for identifier in join.args.get("using") or []:
        keys[identifier.name.lower()] = exp.column(identifier.copy())
    outputs = {node.alias_or_name.lower(): node.unalias() for node in tree.expressions}
    for term in terms(join.args["on"]) if join.args.get("on") else ():
        if not isinstance(term, exp.EQ):
            return None
        left: Node = term.left.unnest()
        right: Node = term.right.unnest()
        if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
            return None
        for own, key in ((left, right), (right, left)):
            is_of_query = key.table.lower() == alias or (
                not key.table and key.name.lower() in outputs and own.table.lower() != alias
            )
            if is_of_query:
                keys.setdefault(key.name.lower(), own)
                break
    groups = {
        name for name, node in outputs.items() if node.find(exp.Column) and not _is_computed(node)
    }
    group = tree.args["group"]
    has_one_set = not any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets"))
    are_all = group.args.get("all") or len(group.expressions) == len(groups)
    if not has_one_set or not are_all or groups != set(keys):
        return None
    return keys


def _is_computed(node: Node) -> bool:
    """Return whether a column of a query of groups is an aggregate."""
    from sqlglot import exp

    return node.find(exp.AggFunc, exp.Window, exp.Select) is not None


def _uses_only_keys(select: Node, join: Node, keys: dict[str, Node]) -> bool:
    """Return whether a SELECT uses no column of a joined query but its keys."""
    alias = join.alias_or_name.lower()
    return all(
        column.name.lower() in keys
        for column in _clause_columns(select)
        if column.table.lower() == alias
    )


def _replace_keys(select: Node, join: Node, keys: dict[str, Node]) -> None:
    """Replace the keys of a joined query by the columns that they equal."""
    alias = join.alias_or_name.lower()
    for column in [*_clause_columns(select)]:
        if column.table.lower() == alias:
            column.replace(keys[column.name.lower()].copy())


def _membership(join: Node, keys: dict[str, Node]) -> Node:
    """Return the condition that the keys are those of a query."""
    from sqlglot import exp

    alias = join.alias_or_name
    relation = join.this.copy()
    if isinstance(relation, exp.Table):  # a query of WITH, which is no table to join
        relation = exp.select("*").from_(relation).subquery(alias)
    names = [exp.column(name, quoted=True) for name in keys]
    query = exp.select(*names).from_(relation)
    own = [column.copy() for column in keys.values()]
    operand = own[0] if len(own) == 1 else exp.Tuple(expressions=own)
    return exp.In(this=operand, query=query.subquery())


def _add_term(select: Node, term: Node) -> None:
    """Add a condition to WHERE."""
    from sqlglot import exp

    where = select.args.get("where")
    both = term if where is None else exp.And(this=exp.paren(where.this), expression=term)
    select.set("where", exp.Where(this=both))


def plain_table(tree: Node) -> Node | None:
    """Return the table of ``SELECT * FROM table``, or of its columns by their names."""
    from sqlglot import exp

    clauses = {name for name, value in tree.args.items() if value} - {"kind"}
    if not isinstance(tree, exp.Select) or clauses != {"expressions", "from_"}:
        return None
    table = tree.args["from_"].this
    for node in tree.expressions:
        inner = node.unalias()
        is_same = isinstance(inner, exp.Column) and node.alias_or_name == inner.name
        if not (isinstance(node, exp.Star) or is_same):
            return None
    is_table = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
    return table if is_table else None
