"""Translate the syntax tree of one SQL statement to a `Statement`.

A statement may consist of nested queries. A SELECT over the rows is released (`_selection`);
DuckDB computes every query that selects from its answer. A subquery that only filters, renames or
computes for each row is inlined into the SELECT above it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from leastnoise._domain import Domain
from leastnoise._trusted.check import InputError
from leastnoise._workload._sql._column_intervals import NoiseInterval, expression_noise
from leastnoise._workload._sql._column_references import (
    ColumnReader,
    clause_columns,
    replace_column,
)
from leastnoise._workload._sql._expression_values import Node, refused
from leastnoise._workload._sql._faults import Faults
from leastnoise._workload._sql._function_translation import NO_TODAY, SqlSettings, is_current_time
from leastnoise._workload._sql._joins import without_joins
from leastnoise._workload._sql._layers import with_groups_of
from leastnoise._workload._sql._query import check_query
from leastnoise._workload._sql._relations import (
    constant_column_names,
    is_constant_relation,
    plain_table,
    with_column_names,
    with_joins_as_conditions,
    without_constants,
)
from leastnoise._workload._sql._rows_of_units import without_groups_of_units
from leastnoise._workload._sql._selection import (
    CLAUSE_ADVICE,
    WITHOUT_ROWS,
    ComputedColumn,
    ComputedQuery,
    SelectionReader,
    check_clauses,
    is_star,
    output_nodes,
    with_safe_function,
)
from leastnoise._workload._sql._statement import (
    OutputColumn,
    Selection,
    Statement,
    high_column,
    low_column,
)

_QUERY_CLAUSES = {
    *("kind", "hint", "operation_modifiers", "expressions", "from", "from_", "where", "group"),
    *("having", "qualify", "windows", "distinct", "order", "limit", "offset", "with", "with_"),
    "joins",
}
_IS_SOURCE = "is source"
_ROW_CLAUSES = {"kind", "expressions", "from", "from_", "where", "order", "with", "with_"}


@dataclass(frozen=True)
class NamedQuery:
    """A query in WITH, or a subquery in FROM, and the queries that it may name.

    Attributes:
        tree: its syntax tree.
        queries: the earlier queries, which this query may name.
    """

    tree: Node
    queries: "Queries"


Queries = Mapping[str, NamedQuery]
"""The queries of WITH, by their names in lower case."""


class StatementReader:
    """Translates one SQL statement to released tables and a query on them."""

    def __init__(self, domain: Domain, settings: SqlSettings, tree: Node, faults: Faults) -> None:
        """Keep the settings for reading a statement.

        Args:
            domain: the domain; its attributes and measures are the columns of the table.
            settings: the unit, the current day and the join.
            tree: the syntax tree.
            faults: collects the errors of the statement.
        """
        from sqlglot import exp

        self.exp: Any = exp
        self._domain = domain
        self._columns = ColumnReader(domain)
        self._settings = settings
        self._tree = tree
        self._faults = faults
        self._selections: list[Selection] = []
        self._source_name: str | None = None

    def statement(self, text: str) -> Statement:
        """Translate the statement, and return it with its tables and query.

        Args:
            text: the statement as the user writes it.

        Raises:
            FaultsError: clauses cannot be answered; all are listed by name and position.
        """
        self._check_constants()
        layer = ComputedQuery(self._tree, [])
        with self._faults.collect(self._tree):
            layer = self._layer(self._tree, {})
            names = [column.name.lower() for column in layer.columns]
            if len({*names}) < len(names):
                raise InputError(
                    "SELECT must give every column its own name, with AS; got "
                    f"{', '.join(column.name for column in layer.columns)}."
                )
        self._faults.check()
        statement = Statement(
            text=text,
            domain=self._domain,
            selections=tuple(self._selections),
            query=layer.select.sql("duckdb"),
            columns=tuple(layer.columns),
        )
        with self._faults.collect(self._tree):
            if not self._selections:
                raise refused("A SELECT without a table", WITHOUT_ROWS)
            check_query(statement)
        self._faults.check()
        return statement

    def _check_constants(self) -> None:
        """Raise if the statement contains the current time, or a parameter."""
        exp = self.exp
        for node in self._tree.walk():
            if is_current_time(node):
                name = node.sql("duckdb")
                self._faults.add(node, refused(name, NO_TODAY).args[0])
            if isinstance(node, (exp.Placeholder, exp.Parameter, exp.SessionParameter)):
                name = f"The parameter {node.sql('duckdb')}"
                self._faults.add(node, refused(name, "Write its value").args[0])
        self._faults.check()

    # --- layers -----------------------------------------------------------------------------------

    def _layer(self, node: Node, queries: Queries) -> ComputedQuery:
        """Translate a query to a query on released tables."""
        exp = self.exp
        if isinstance(node, exp.Subquery):
            return self._layer(node.this, queries)
        queries = self._queries_of(node, queries)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, queries)
        if not isinstance(node, exp.Select):
            raise refused(type(node).__name__.upper(), "Write a SELECT with GROUP BY")
        select = self._inlined(self._prepared(node, queries), queries)
        if self._is_over_rows(select, queries):
            self._check_source(select)
            reader = SelectionReader(
                columns=self._columns,
                unit=self._settings.unit,
                of_unit=self._settings.of_unit,
                select=select,
                faults=self._faults,
                translate=lambda query: self._subquery(query, queries),
                add_selection=self._add_selection,
            )
            return reader.read()
        merged = self._over_groups(select, queries)
        if merged is not None:
            return merged
        return self._computed_layer(select, queries)

    def _over_groups(self, select: Node, queries: Queries) -> ComputedQuery | None:
        """Merge a SELECT with the grouped query it selects from; None if impossible.

        Merging makes it possible to compute intervals of combinations. The result is None if the
        two cannot be merged.
        """
        clause = _from(select)
        if clause is None or not self._is_query(clause.this, queries):
            return None
        query = self._query_in_from(clause.this, queries)
        if not isinstance(query.tree, self.exp.Select):
            return None
        faults = dict(self._faults.messages)
        selections = [*self._selections]
        try:
            layer = self._merged_layer(select, query, queries)
        except InputError:
            layer = None
        if layer is None or self._faults.messages != faults:
            self._faults.messages = faults
            self._selections[:] = selections
            return None
        return layer

    def _merged_layer(
        self, select: Node, query: NamedQuery, queries: Queries
    ) -> ComputedQuery | None:
        """Merge a SELECT with a grouped query and translate it; None if impossible.

        The result is None if the two cannot be merged.
        """
        inner_queries = self._queries_of(query.tree, query.queries)
        inner = self._inlined(self._prepared(query.tree, inner_queries), inner_queries)
        if not self._is_over_rows(inner, inner_queries):
            return None
        merged = with_groups_of(select, inner, self._columns)
        if merged is None:
            return None
        merged.args["from_"].this.meta[_IS_SOURCE] = True  # even if WITH has a query of that name
        return self._layer(merged, queries)

    def _queries_of(self, node: Node, queries: Queries) -> Queries:
        """Return the queries in scope, including the queries of WITH."""
        clause = node.args.get("with_") or node.args.get("with")
        if clause is None:
            return queries
        if clause.args.get("recursive"):
            raise refused("WITH RECURSIVE", "Write it without RECURSIVE")
        for query in clause.expressions:
            tree = _with_names_of_alias(query.this, query)
            queries = {**queries, query.alias.lower(): NamedQuery(tree, queries)}
        return queries

    def _set_operation(self, node: Node, queries: Queries) -> ComputedQuery:
        """Translate UNION and the like; only UNION ALL keeps intervals."""
        layers = [self._layer(side, queries) for side in (node.left, node.right)]
        pairs = [*zip(*(layer.columns for layer in layers), strict=False)]
        is_union_all = isinstance(node, self.exp.Union) and not node.args.get("distinct")
        has_ends = is_union_all and all(
            column.has_interval == other.has_interval for column, other in pairs
        )
        copy = node.copy()
        copy.set("with_", None)
        for key, layer in zip(("this", "expression"), layers, strict=True):
            copy.set(key, layer.select if has_ends else _without_ends(layer))
        columns = [
            OutputColumn(
                name=column.name,
                aggregates=(*column.aggregates, *other.aggregates),
                has_noise=column.has_noise or other.has_noise,
                has_interval=has_ends and column.has_interval,
            )
            for column, other in pairs
        ]
        return ComputedQuery(copy, columns)

    def _subquery(self, node: Node, queries: Queries) -> Node:
        """Translate a subquery in an expression to a query on released tables."""
        for table in node.find_all(self.exp.Table):
            is_named = node.find(self.exp.With) is not None
            is_source = is_named or table.name.lower() == self._source_name
            if not is_source and self._is_source(table, queries):
                raise refused(
                    f"A subquery from {table.name}",
                    "Join the table; or write key IN (SELECT key FROM table WHERE ...), with a key "
                    "that the statement can join",
                )
        return self.exp.Subquery(this=_without_ends(self._layer(node, queries)))

    def _add_selection(self, selection: Selection) -> int:
        """Add a released table, and return its number.

        Equal tables have the same number.
        """
        if selection not in self._selections:
            self._selections.append(selection)
        return self._selections.index(selection)

    def _check_source(self, select: Node) -> None:
        """Raise if a statement selects rows from two different tables."""
        table = _from(select).this
        name = table.name.lower()
        if self._source_name is None:
            self._source_name = name
        elif name != self._source_name:
            self._faults.add(
                table,
                f"FROM names {self._source_name} and {name}, but there is one table of "
                "rows, the table of [source]. Ask for each table in its own spec.",
            )

    def _is_over_rows(self, select: Node, queries: Queries) -> bool:
        """Return whether a SELECT reads rows of the source, and not other queries."""
        clause = _from(select)
        if clause is None:
            return False
        table = clause.this
        if not self._is_source(table, queries):
            return False
        is_plain = isinstance(table.this, self.exp.Identifier)
        alias = table.args.get("alias")
        has_column_names = alias is not None and bool(alias.args.get("columns"))
        has_more = any(table.args.get(key) for key in ("sample", "joins", "pivots"))
        if not is_plain or has_more or has_column_names:
            raise refused("FROM with more than the name of a table", "Name the table of the rows")
        return True

    def _is_source(self, table: Node, queries: Queries) -> bool:
        """Return whether a table is the data source, not a named query."""
        if not isinstance(table, self.exp.Table) or is_constant_relation(table):
            return False
        is_qualified = bool(table.args.get("db")) or table.meta.get(_IS_SOURCE, False)
        return is_qualified or table.name.lower() not in queries

    def _is_query(self, relation: Node, queries: Queries) -> bool:
        """Return whether an item of FROM is a query, not a table or constants."""
        return not self._is_source(relation, queries) and not is_constant_relation(relation)

    def _query_in_from(self, table: Node, queries: Queries) -> NamedQuery:
        """Return the query that an item of FROM refers to."""
        if isinstance(table, self.exp.Table):
            return queries[table.name.lower()]
        if isinstance(table, self.exp.Subquery):
            return NamedQuery(_with_names_of_alias(table.unnest(), table), queries)
        raise refused(f"{table.sql('duckdb')} in FROM", "Name the table of the rows, or a SELECT")

    # --- queries over released answers ------------------------------------------------------------

    def _computed_layer(self, select: Node, queries: Queries) -> ComputedQuery:
        """Translate a SELECT from other queries, which DuckDB computes."""
        check_clauses(select, self._faults, _QUERY_CLAUSES)
        copy = select.copy()
        copy.set("with_", None)
        relations: dict[str, list[OutputColumn]] = {}
        for clause in [_from(copy), *(copy.args.get("joins") or [])]:
            if clause is None:
                continue
            table = clause.this
            if self._is_source(table, queries):
                raise refused("JOIN of the rows", CLAUSE_ADVICE["join"])
            if is_constant_relation(table):
                names = constant_column_names(table)
                relations[table.alias_or_name.lower()] = [*map(OutputColumn, names)]
                continue
            query = self._query_in_from(table, queries)
            layer = self._layer(query.tree, query.queries)
            name = table.alias_or_name or f" query {len(relations)}"
            relations[name.lower()] = layer.columns
            clause.set("this", self.exp.Subquery(this=layer.select, alias=_table_alias(name)))
        self._translate_subqueries(copy, queries)
        self._expand_stars(copy, relations)
        outputs = [
            self._computed_column(
                _with_safe_functions(node), relations, is_grouped=_is_grouped(copy)
            )
            for node in copy.expressions
        ]
        copy.set("expressions", output_nodes(outputs, with_ends=True))
        for key in ("where", "having", "qualify", "order"):
            if copy.args.get(key) is not None:
                copy.set(key, _with_safe_functions(copy.args[key]))
        return ComputedQuery(copy, [projection.column for projection in outputs])

    def _translate_subqueries(self, select: Node, queries: Queries) -> None:
        """Translate subqueries outside FROM, in place."""
        relations = {id(clause.this) for clause in self._relation_clauses(select)}
        pending = [select]
        while pending:
            node = pending.pop()
            for child in node.iter_expressions():
                if id(child) in relations:
                    continue
                if isinstance(child, (self.exp.Subquery, self.exp.Select)):
                    child.replace(self._subquery(child, queries))
                else:
                    pending.append(child)

    def _relation_clauses(self, select: Node) -> Iterator[Node]:
        """Yield the FROM clause and each JOIN of a SELECT."""
        if _from(select) is not None:
            yield _from(select)
        yield from select.args.get("joins") or []

    def _expand_stars(self, select: Node, relations: Mapping[str, list[OutputColumn]]) -> None:
        """Replace ``*`` by the columns of the queries in FROM, in place."""
        exp = self.exp
        expanded: list[Node] = []
        for node in select.expressions:
            if not is_star(node):
                expanded.append(node)
                continue
            if isinstance(node, exp.Star):
                star = node
            else:
                star = node.this
            if any(star.args.values()):
                raise refused(node.sql("duckdb"), "Name the columns")
            if isinstance(node, exp.Column):
                names = [node.table.lower()]
            else:
                names = [*relations]
            for name in names:
                for column in relations.get(name, []):
                    reference = exp.column(column.name, table=name, quoted=True)
                    expanded.append(exp.alias_(reference, column.name, quoted=True))
        select.set("expressions", expanded)

    def _computed_column(
        self, node: Node, relations: Mapping[str, list[OutputColumn]], *, is_grouped: bool
    ) -> ComputedColumn:
        """Translate a column that is computed from columns of other queries."""
        inner = node.unalias()
        noise = expression_noise(inner, lambda column: _column_noise(column, relations))
        if noise is not None and (is_grouped or inner.find(self.exp.AggFunc)):
            noise = NoiseInterval()
        sources = []
        for column in inner.find_all(self.exp.Column):
            resolved = _resolved(column, relations)
            if resolved is not None:
                sources.append(resolved[2])
        is_column = isinstance(inner, self.exp.Column) and len(sources) == 1
        output = OutputColumn(
            name=node.alias,
            group=sources[0].group if is_column else None,
            aggregates=tuple(chain.from_iterable(source.aggregates for source in sources)),
            has_noise=noise is not None,
            has_interval=noise is not None and noise.has_interval,
        )
        return ComputedColumn(output, inner, noise)

    # --- queries of rows --------------------------------------------------------------------------

    def _inlined(self, select: Node, queries: Queries) -> Node:
        """Replace a subquery of rows in FROM by its table."""
        clause = _from(select)
        if clause is None or not self._is_query(clause.this, queries):
            return select
        query = self._query_in_from(clause.this, queries)
        if not isinstance(query.tree, self.exp.Select):
            self._check_union(query)
            return select
        inner_queries = self._queries_of(query.tree, query.queries)
        inner = self._inlined(self._prepared(query.tree, inner_queries), inner_queries)
        inner, select = self._without_distinct_units(inner, select)
        if self._settings.unit is not None:
            inner, select = without_groups_of_units(inner, select, self._settings.unit)
        if not self._is_of_rows(inner, inner_queries):
            return select
        merged = _merged(select, inner)
        if merged.args.get("joins"):
            return self._prepared(merged, queries)
        return merged

    def _check_union(self, query: NamedQuery) -> None:
        """Raise for a union of rows in FROM."""
        selects = [*query.tree.find_all(self.exp.Select)]
        if any(self._is_of_rows(select, query.queries) for select in selects):
            name = type(query.tree).__name__.upper()
            raise refused(
                f"{name} of rows in FROM",
                "Aggregate each SELECT, and add up the results; or write one SELECT whose WHERE "
                "joins the conditions by OR",
            )

    def _prepared(self, select: Node, queries: Queries) -> Node:
        """Rewrite a SELECT so that its columns have names and joins are removed."""

        def tree_of(relation: Node) -> Node | None:
            """Return the syntax tree of the query that a relation refers to, or None."""
            if not self._is_query(relation, queries):
                return None
            return self._query_in_from(relation, queries).tree

        prepared = without_constants(_with_aliases(select), tree_of)
        clause = _from(prepared)
        if clause is None or not self._is_source(clause.this, queries):
            return prepared
        self._check_tables(prepared)
        joins = prepared.args.get("joins") or []
        with self._faults.collect(joins[0] if joins else prepared):
            self._replace_plain_queries(joins, queries)
            prepared = with_joins_as_conditions(prepared, tree_of)
            return without_joins(prepared, self._columns, self._settings.joins, [*queries])
        prepared.set("joins", None)
        return prepared

    def _replace_plain_queries(self, joins: Sequence[Node], queries: Queries) -> None:
        """Replace joined ``SELECT * FROM table`` by the table, in place."""
        for join in joins:
            if not self._is_query(join.this, queries):
                continue
            table = plain_table(self._query_in_from(join.this, queries).tree)
            if table is not None and self._is_source(table, queries):
                named = table.copy()
                named.set("alias", _table_alias(join.alias_or_name))
                named.meta[_IS_SOURCE] = True
                join.set("this", named)

    def _check_tables(self, select: Node) -> None:
        """Raise for columns of tables that are not in FROM."""
        clauses = [_from(select), *(select.args.get("joins") or [])]
        names = {clause.alias_or_name.lower() for clause in clauses}
        names |= {clause.this.name.lower() for clause in clauses}
        for column in clause_columns(select):
            if column.table and column.table.lower() not in names:
                advice = "Name a table of FROM. Or aggregate in two subqueries, and join them"
                reason = refused(f"{column.sql('duckdb')}, whose table FROM does not have,", advice)
                self._faults.add(column, reason.args[0])

    def _without_distinct_units(self, inner: Node, select: Node) -> tuple[Node, Node]:
        """Rewrite COUNT(*) over SELECT DISTINCT unit as COUNT(DISTINCT unit)."""
        exp = self.exp
        unit = self._settings.unit
        names = [_source_column(node) for node in inner.expressions]
        groups = select.args.get("group")
        if groups:
            grouped = {node.name.lower() for node in groups.expressions}
        else:
            grouped = set()
        counts = [*select.find_all(exp.AggFunc)]
        is_count_of_units = (
            unit is not None
            and inner.args.get("distinct") is not None
            and unit.lower() in names
            and {node.alias.lower() for node in inner.expressions} - {unit.lower()} == grouped
            and bool(counts)
            and all(_counts_rows_or(count, unit) for count in counts)
        )
        if not is_count_of_units:
            return inner, select
        inner = inner.copy()
        inner.set("distinct", None)
        select = select.copy()
        for count in [*select.find_all(exp.Count)]:
            count.set("this", exp.Distinct(expressions=[exp.column(unit)]))
        return inner, select

    def _is_of_rows(self, select: Node, queries: Queries) -> bool:
        """Return whether a SELECT only filters, renames or computes for each row."""
        exp = self.exp
        clauses = {clause for clause, value in select.args.items() if value}
        if not clauses <= _ROW_CLAUSES or not _from(select):
            return False
        if not self._is_source(_from(select).this, queries):
            return False
        return not any(
            node.find(exp.AggFunc, exp.Window, exp.Subquery) for node in select.expressions
        )


def _counts_rows_or(aggregate: Node, unit: str) -> bool:
    """Return whether an aggregate counts all rows, or counts the unit column."""
    from sqlglot import exp

    argument = aggregate.this
    if not isinstance(aggregate, exp.Count):
        return False
    is_unit = isinstance(argument, exp.Column) and argument.name.lower() == unit.lower()
    return is_unit or isinstance(argument, (exp.Star, exp.Literal))


def _with_safe_functions(node: Node) -> Node:
    """Make functions such as LN return NULL where noisy numbers make them fail."""
    copy = node.copy()
    children = [(key, value) for key, value in copy.args.items() if value is not None]
    for key, value in children:
        if isinstance(value, list):
            copy.set(key, [_safe_child(entry) for entry in value])
        else:
            copy.set(key, _safe_child(value))
    return with_safe_function(copy)


def _safe_child(value: Any) -> Any:
    """Apply `_with_safe_functions` to a child of a node."""
    if hasattr(value, "walk"):
        return _with_safe_functions(value)
    return value


def _source_column(node: Node) -> str:
    """Return the source column that a SELECT column shows unchanged, or ""."""
    from sqlglot import exp

    inner = node.unalias()
    if isinstance(inner, exp.Column):
        return str(inner.name).lower()
    return ""


def _from(select: Node) -> Node:
    """Return the FROM clause of a SELECT, or None."""
    return select.args.get("from_") or select.args.get("from")


def _is_grouped(select: Node) -> bool:
    """Return whether a SELECT has GROUP BY or DISTINCT."""
    return bool(select.args.get("group") or select.args.get("distinct"))


def _with_names_of_alias(tree: Node, named: Node) -> Node:
    """Rename a query's columns as its alias states, such as ``t (a, b)``."""
    alias = named.args.get("alias")
    columns = alias.args.get("columns") if alias else None
    if not columns:
        return tree
    return with_column_names(tree, [column.name for column in columns])


def _table_alias(name: str) -> Node:
    """Return a quoted table alias."""
    from sqlglot import exp

    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))


def _with_aliases(select: Node) -> Node:
    """Give each column of a SELECT a name with AS, except ``*``."""
    from sqlglot import exp

    copy = select.copy()
    expressions = []
    for node in copy.expressions:
        if node.alias or is_star(node):
            expressions.append(node)
        else:
            expressions.append(exp.alias_(node, _column_name(node), quoted=True))
    copy.set("expressions", expressions)
    return copy


def _column_name(node: Node) -> str:
    """Return the name of a SELECT column without AS, as DuckDB forms it."""
    from sqlglot import exp

    if isinstance(node, exp.Column):
        return str(node.name)
    if isinstance(node, exp.WithinGroup):  # the name that DuckDB gives such a column
        order = node.expression.sql("duckdb").strip()
        return f"quantile_{node.this.key[-4:]}({node.this.this.sql('duckdb')} {order})"
    return str(node.sql("duckdb"))


def _without_ends(layer: ComputedQuery) -> Node:
    """Return a translated query without the columns of interval ends."""
    select = layer.select.copy()
    ends = {low_column(number) for number in range(len(layer.columns))}
    ends |= {high_column(number) for number in range(len(layer.columns))}
    if hasattr(select, "expressions") and select.expressions:
        select.set("expressions", [node for node in select.expressions if node.alias not in ends])
    return select


def _merged(select: Node, inner: Node) -> Node:
    """Merge a SELECT with the subquery of rows in its FROM."""
    from sqlglot import exp

    _refuse_changed_stars(inner)
    has_star = any(map(is_star, inner.expressions))
    merged = select.copy()
    _write_keys_of_using(merged)
    _replace_inner_columns(merged, inner, has_star=has_star)
    if not has_star:
        merged.set("expressions", _without_star(merged, inner))
    source = _from(inner).copy()
    source.this.meta[_IS_SOURCE] = True  # even if WITH has a query of that name
    merged.set("from_", source)
    conditions = [query.args["where"].this for query in (inner, merged) if query.args.get("where")]
    if conditions:
        both = exp.and_(*(condition.copy() for condition in conditions))
        merged.set("where", exp.Where(this=both))
    return merged


def _refuse_changed_stars(inner: Node) -> None:
    """Refuse a subquery with ``* REPLACE`` or ``* RENAME``."""
    from sqlglot import exp

    for node in inner.expressions:
        star = node if isinstance(node, exp.Star) else node.this
        if is_star(node) and (star.args.get("replace") or star.args.get("rename")):
            raise refused(node.sql("duckdb"), "Name the columns")


def _replace_inner_columns(merged: Node, inner: Node, *, has_star: bool) -> None:
    """Replace columns of a subquery by their definitions in an outer query.

    The outer query is changed in place. Columns of joined tables, and its own names in ORDER BY,
    are not replaced.
    """
    from sqlglot import exp

    definitions = {node.alias.lower(): node.unalias() for node in inner.expressions if node.alias}
    aliases = {node.alias.lower() for node in merged.expressions}
    joined = {join.alias_or_name.lower() for join in merged.args.get("joins") or []}
    for column in [*clause_columns(merged)]:
        if isinstance(column.this, exp.Star) or column.table.lower() in joined:
            continue
        name = column.name.lower()
        if not column.table and name in aliases and _is_within_order(column):
            continue
        if name in definitions:
            replace_column(column, definitions[name])
            continue
        is_alias_or_joined = not column.table and (name in aliases or bool(joined))
        if not has_star and not is_alias_or_joined:
            raise InputError(
                f"{column.sql('duckdb')} is not a column of the subquery "
                f"({', '.join(definitions)}). Name one of these."
            )
        column.set("table", None)


def _write_keys_of_using(select: Node) -> None:
    """Rewrite ``USING (key)`` of each join as ON, in place."""
    from sqlglot import exp

    source = _from(select).alias_or_name
    for join in select.args.get("joins") or []:
        keys = join.args.get("using") or []
        if not keys:
            continue
        equal = [
            exp.EQ(
                this=exp.column(key.copy(), table=source),
                expression=exp.column(key.copy(), table=join.alias_or_name),
            )
            for key in keys
        ]
        join.set("on", exp.and_(*equal))
        join.set("using", None)


def _is_within_order(column: Node) -> bool:
    """Return whether a column is inside an ORDER BY."""
    from sqlglot import exp

    return column.find_ancestor(exp.Ordered, exp.Select) is not column.find_ancestor(exp.Select)


def _without_star(select: Node, inner: Node) -> list[Node]:
    """Return the columns of a SELECT, with ``*`` expanded."""
    expressions: list[Node] = []
    for node in select.expressions:
        if is_star(node):
            expressions += [entry.copy() for entry in inner.expressions]
        else:
            expressions.append(node)
    return expressions


def _resolved(
    column: Node, relations: Mapping[str, list[OutputColumn]]
) -> tuple[str, int, OutputColumn] | None:
    """Return the query in FROM that has a column, position and column; or None."""
    for name, columns in relations.items():
        if column.table and column.table.lower() != name:
            continue
        for number, output in enumerate(columns):
            if output.name.lower() == column.name.lower():
                return name, number, output
    return None


def _column_noise(
    column: Node, relations: Mapping[str, list[OutputColumn]]
) -> NoiseInterval | None:
    """Return the interval of a column of a query in FROM; None without noise."""
    from sqlglot import exp

    resolved = _resolved(column, relations)
    if resolved is None:
        return None
    name, number, output = resolved
    if not output.has_noise:
        return None
    if not output.has_interval:
        return NoiseInterval()
    ends = (low_column(number), high_column(number))
    return NoiseInterval(*(exp.column(end, table=name, quoted=True) for end in ends))
