"""Rewrite a SELECT with joins of a star schema as a SELECT from one table.

Two kinds of tables can be joined: the further tables of the source, and public tables. A public
table has an attribute as its key, and its other columns are levels of this attribute. So a join
adds no new information: the joined columns are columns of the one table of the domain. An INNER
JOIN becomes conditions in WHERE.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leastnoise._domain import Kind
from leastnoise._trusted.check import InputError
from leastnoise._workload._sql._column_references import ColumnReader, add_condition, terms
from leastnoise._workload._sql._expression_values import Node, refused
from leastnoise._workload._sql._function_translation import JoinColumns

JOIN_ADVICE = (
    "Declare the table in [source.join]; or declare a public table whose key is an attribute as "
    "levels of that attribute: levels.NAME = { file = ..., key = ..., value = ... }"
)


@dataclass(frozen=True)
class JoinedTable:
    """A table that a statement joins to the rows.

    Attributes:
        key: the name of its key column.
        attribute: the attribute whose levels are its columns, or an empty text for a table that the
            source joins.
        required_column: a column that is null in rows without a partner; None if the columns that
            the statement names serve this purpose.
        source_join: the columns of the join that the source declares; None for a public table.
    """

    key: str
    attribute: str = ""
    required_column: str | None = None
    source_join: JoinColumns | None = None


def without_joins(
    select: Node,
    columns: ColumnReader,
    source_joins: Sequence[JoinColumns],
    query_names: Sequence[str] = (),
) -> Node:
    """Remove the joins of a SELECT, and use the domain's columns instead.

    Args:
        select: the syntax tree; it may contain joins of tables.
        columns: finds the attributes and measures that columns refer to.
        source_joins: the columns on which the source is joined with each further table.
        query_names: the names of the queries of WITH, which are not tables.

    Raises:
        InputError: the domain and the source do not declare a join.
    """
    select = _with_subqueries_as_joins(select, query_names)
    _write_keys_of_joins(select, columns, source_joins)
    joins = select.args.pop("joins", None) or []
    tables: dict[str, JoinedTable] = {}
    aliases = {select.args["from_"].this.alias_or_name.lower()}
    inner_aliases = []
    second_tables: dict[JoinColumns, set[str]] = {}
    for join in joins:
        alias = join.alias_or_name.lower()
        if alias in aliases:
            raise refused(join.sql("duckdb"), "Give each table its own alias")
        aliases.add(alias)
        reader = _JoinReader(select, join, columns, source_joins, tables)
        tables[alias] = reader.read()
        source_join = tables[alias].source_join
        if source_join is not None:
            names = second_tables.setdefault(source_join, set())
            names.add(join.this.name.lower())
            _check_number_of_tables(names, source_join, source_joins)
        if not reader.is_left:
            inner_aliases.append(alias)
    for alias in inner_aliases:
        partner_columns = _required_columns(select, alias, tables[alias], columns)
        add_condition(select, _is_any_filled(partner_columns))
    _rename_columns(select, columns, tables)
    return select


def _check_number_of_tables(
    names: Collection[str], columns: JoinColumns, source_joins: Sequence[JoinColumns]
) -> None:
    """Raise if more tables are joined on a key than the source declares."""
    declared = [*source_joins].count(columns)
    if len(names) > declared:
        raise refused(
            f"JOIN of {' and '.join(sorted(names))} on {columns[0]} = {columns[1]}",
            f"The source has {declared} of these joins. Declare the other table in a "
            "[[source.join]], or write the name of the table that you mean",
        )


def _write_keys_of_joins(
    select: Node, columns: ColumnReader, source_joins: Sequence[JoinColumns]
) -> None:
    """Rewrite FROM dates, sales WHERE ... as JOIN ... ON, in place.

    Any of the tables may be the table that contains the rows. A SELECT whose joins have another
    form stays unchanged.
    """
    exp = _exp()
    joins = select.args.get("joins") or []
    if not joins or not all(map(_is_inner, joins)):
        return
    pairs, others = _pairs_of_keys(select, joins, columns, source_joins)
    tables = {
        node.alias_or_name.lower(): node for node in (select.args["from_"].this, *_tables(joins))
    }
    source_tables = [
        source_key.table.lower() for source_key, _ in pairs if source_key.table.lower() in tables
    ]
    source = (source_tables or [*tables])[0]
    is_written = source == next(iter(tables)) and all(join.args.get("on") for join in joins)
    assigned = _assigned_keys([alias for alias in tables if alias != source], pairs)
    if is_written or assigned is None or len(tables) <= len(joins):
        return
    select.set("from_", exp.From(this=tables[source]))
    select.set("joins", _joins_on_keys(source, tables, assigned))
    select.set("where", None)
    used = [*assigned.values()]
    others += [
        exp.EQ(this=source_key, expression=key)
        for source_key, key in pairs
        if (source_key, key) not in used
    ]
    for term in others:
        add_condition(select, term)


def _is_inner(join: Node) -> bool:
    """Return whether a JOIN is an inner join with a table."""
    is_plain = not any(join.args.get(key) for key in ("side", "using"))
    return is_plain and _is_inner_or_left(join) and isinstance(join.this, _exp().Table)


def _is_inner_or_left(join: Node) -> bool:
    """Return whether a JOIN is an inner join or a left join."""
    is_side = join.args.get("side") in (None, "", "LEFT")
    is_kind = join.args.get("kind") not in ("SEMI", "ANTI")
    return is_side and is_kind and not join.args.get("method")


def _tables(joins: Sequence[Node]) -> list[Node]:
    """Return the table of each of some joins."""
    return [join.this for join in joins]


def _pairs_of_keys(
    select: Node,
    joins: Sequence[Node],
    columns: ColumnReader,
    source_joins: Sequence[JoinColumns],
) -> tuple[list[tuple[Node, Node]], list[Node]]:
    """Return pairs of equal keys in WHERE and ON, and the other conditions there."""
    where = select.args.get("where")
    conditions = []
    if where is not None:
        conditions.append(where.this)
    conditions += [join.args["on"] for join in joins if join.args.get("on")]
    pairs = []
    others = []
    for condition in conditions:
        for term in _common_terms(condition):
            pair = _pair_of_source(term, columns, source_joins)
            if pair is None:
                others.append(term)
            else:
                pairs.append(pair)
    return pairs, others


def _joins_on_keys(
    source: str, tables: Mapping[str, Node], keys: Mapping[str, tuple[Node, Node]]
) -> list[Node]:
    """Return a JOIN of each table with the source, on their keys."""
    exp = _exp()
    joins = []
    for alias, (source_key, key) in keys.items():
        on = exp.EQ(
            this=exp.column(source_key.this.copy(), table=source),
            expression=exp.column(key.this.copy(), table=alias),
        )
        joins.append(exp.Join(this=tables[alias], on=on))
    return joins


def _common_terms(node: Node) -> list[Node]:
    """Split a condition into terms joined by AND, also common terms inside OR.

    For (a AND b) OR (a AND c) these are a, and b OR c.
    """
    exp = _exp()
    common = []
    for term in terms(node):
        branches = [*term.flatten()] if isinstance(term, exp.Or) else []
        parts = [[*terms(branch)] for branch in branches]
        shared = (
            [part for part in parts[0] if all(part in other for other in parts)] if parts else []
        )
        other_parts = [[part for part in of_branch if part not in shared] for of_branch in parts]
        if not shared or not all(other_parts):
            common.append(term)
            continue
        common += shared
        common.append(exp.or_(*(exp.and_(*of_branch) for of_branch in other_parts)))
    return common


def _pair_of_source(
    term: Node, columns: ColumnReader, source_joins: Sequence[JoinColumns]
) -> tuple[Node, Node] | None:
    """Return both columns of ``source key = key of a joined table``, or None."""
    exp = _exp()
    if not isinstance(term, exp.EQ):
        return None
    sides = [side.unnest() for side in (term.left, term.right)]
    if not all(isinstance(side, exp.Column) for side in sides):
        return None
    for source_key, key in (sides, sides[::-1]):
        for first, second in source_joins:
            is_of_source = source_key.name.lower() == first.lower()
            if is_of_source and key.name.lower() == second.lower() and source_key.table:
                return source_key, key
        is_key = not columns.is_attribute(key) or key.table.lower() != source_key.table.lower()
        if columns.is_source_column(source_key.name) and is_key:
            return source_key, key
    return None


def _assigned_keys(
    aliases: Sequence[str], pairs: Sequence[tuple[Node, Node]]
) -> dict[str, tuple[Node, Node]] | None:
    """Assign key pairs to the tables by alias; None if a table has none.

    A key without a table name may belong to any table that has no key with a table name.
    """
    assigned = {}
    unassigned = [*pairs]
    for alias in aliases:
        for pair in unassigned:
            if pair[1].table.lower() == alias:
                assigned[alias] = pair
                unassigned.remove(pair)
                break
    plain = [pair for pair in unassigned if not pair[1].table]
    for alias in aliases:
        if alias not in assigned and plain:
            assigned[alias] = plain.pop(0)
    return assigned if len(assigned) == len(aliases) else None


@dataclass
class _JoinReader:
    """Interprets one JOIN of a SELECT.

    Attributes:
        select: the SELECT around it. Conditions of the join that filter rows are moved to its
            WHERE.
        join: the syntax tree.
        columns: finds the attributes and measures that columns refer to.
        source_joins: the columns on which the source is joined.
        tables: the tables that are joined before this table.
    """

    select: Node
    join: Node
    columns: ColumnReader
    source_joins: Sequence[JoinColumns]
    tables: Mapping[str, JoinedTable]

    @property
    def is_left(self) -> bool:
        """Whether the join keeps rows without a partner."""
        return bool(self.join.args.get("side") == "LEFT")

    def read(self) -> JoinedTable:
        """Return the joined table, and move conditions of the join to WHERE."""
        exp = _exp()
        text = self.join.sql("duckdb").strip()
        if text.startswith(","):
            text = f"FROM with a second table ({text.strip(' ,')})"
        if not _is_inner_or_left(self.join):
            raise refused(text, "Write LEFT JOIN or JOIN, with ON or USING")
        if not isinstance(self.join.this, exp.Table):
            raise refused(
                text, "Join tables. Or aggregate the rows first, in one subquery for each table"
            )
        if self.join.this.name.lower() == self.select.args["from_"].this.name.lower():
            raise refused(text, "A table is not joined with itself: use FILTER or CASE")
        keys, conditions = self._keys_and_conditions()
        if len(keys) != 1:
            raise refused(text, f"Join on one key, as in ON a.key = b.key. {JOIN_ADVICE}")
        if conditions and self.is_left:
            raise refused(text, "Write the conditions on one table in WHERE")
        for condition in conditions:
            add_condition(self.select, condition)
        source_key, key = keys[0]
        pair = sorted((source_key.name.lower(), key.name.lower()))
        for columns in self.source_joins:
            if pair == sorted(name.lower() for name in columns):
                return JoinedTable(key.name.lower(), source_join=columns)
        return self._public_table(source_key, key, text)

    def _public_table(self, source_key: Node, key: Node, text: str) -> JoinedTable:
        """Return the public table whose key is an attribute, or a level of one."""
        before = self.tables.get(source_key.table.lower())
        if before is not None and before.attribute:
            attribute = before.attribute
            level = _level_of(self.columns, before, source_key.name)
        elif self.columns.is_attribute(source_key):
            attribute, level = self.columns.find("JOIN", source_key)
        else:
            raise refused(text, self._advice())
        levels = _declared_levels(self.columns.domain.kind(attribute))
        if not levels:
            raise refused(text, self._advice())
        name = f"{attribute}:{level or levels[0]}"
        return JoinedTable(key.name.lower(), attribute, name)

    def _advice(self) -> str:
        """Return advice on which tables can be joined."""
        if not self.source_joins:
            return JOIN_ADVICE
        joins = " and ".join(f"{first} = {second}" for first, second in self.source_joins)
        return f"The source is joined on {joins}. {JOIN_ADVICE}"

    def _keys_and_conditions(self) -> tuple[list[tuple[Node, Node]], list[Node]]:
        """Return the equated pairs of columns, and the join's other conditions."""
        exp = _exp()
        using = self.join.args.get("using") or []
        pairs = [(exp.column(node.copy()), exp.column(node.copy())) for node in using]
        conditions = []
        for term in terms(self.join.args["on"]) if self.join.args.get("on") else ():
            pair = self._key_pair(term)
            if pair is None:
                conditions.append(term)
            else:
                pairs.append(pair)
        if not pairs and not self.join.args.get("on"):
            pairs = self._keys_of_where()
        return pairs, conditions

    def _keys_of_where(self) -> list[tuple[Node, Node]]:
        """Remove equations of keys from WHERE, and return their pairs of columns."""
        where = self.select.args.get("where")
        if where is None:
            return []
        pairs = []
        others = []
        for term in terms(where.this):
            pair = self._key_pair(term)
            if pair is None or not self._is_certain(*pair):
                others.append(term)
            else:
                pairs.append(pair)
        if pairs:
            self.select.set("where", None)
            for term in others:
                add_condition(self.select, term)
        return pairs

    def _is_certain(self, source_key: Node, key: Node) -> bool:
        """Return whether it is clear which column belongs to the joined table."""
        if source_key.table and key.table:
            return True
        return self.columns.is_attribute(source_key) and not self.columns.is_attribute(key)

    def _key_pair(self, term: Node) -> tuple[Node, Node] | None:
        """Return source's and table's column that a condition equates, or None."""
        exp = _exp()
        alias = self.join.alias_or_name.lower()
        if not isinstance(term, exp.EQ):
            return None
        left = term.left.unnest()
        right = term.right.unnest()
        if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
            return None
        is_joined = [side.table.lower() == alias for side in (left, right)]
        if all(is_joined):
            return None
        if is_joined[0] or (not is_joined[1] and not self.columns.is_attribute(left)):
            return right, left
        if is_joined[1] or not (left.table or right.table):
            return left, right
        return None


def _level_of(columns: ColumnReader, table: JoinedTable, name: str) -> str | None:
    """Return the level for a column of a public table; None for the key column."""
    kind = columns.domain.kind(table.attribute)
    declared = _declared_levels(kind)
    for level in declared:
        if level.lower() == name.lower():
            return level
    if name.lower() in (table.key, table.attribute.lower()):
        return None
    if name.lower() == str(kind.reading.column).lower():
        return None
    raise InputError(
        f"{name} is not a level of {table.attribute}, the attribute by which its table is joined. "
        f"The levels are: {', '.join(declared) or 'none'}. Name one of these, or declare "
        f"levels.{name} in [domain.{table.attribute}]."
    )


def _declared_levels(kind: Kind) -> list[str]:
    """Return the names of declared levels; months always have the level quarter."""
    return [level.name for level in kind.levels]


def _is_any_filled(names: Sequence[str]) -> Node:
    """Return the condition that at least one of some columns is not null."""
    exp = _exp()
    columns = [exp.column(name, quoted=True) for name in names]
    return exp.or_(*(exp.Is(this=column, expression=exp.Null()).not_() for column in columns))


def _required_columns(
    select: Node, alias: str, table: JoinedTable, columns: ColumnReader
) -> list[str]:
    """Return columns of which at least one is not null if a row has a partner."""
    if table.required_column is not None:
        return [table.required_column]
    names = {
        column.name.lower()
        for column in select.find_all(_exp().Column)
        if column.table.lower() == alias and columns.is_attribute(column)
    }
    if not names:
        raise refused(
            f"JOIN {alias} of which no attribute is used",
            f"Write its attributes as {alias}.COLUMN. Or write LEFT JOIN, which keeps the rows "
            "without a partner",
        )
    null_names = _null_names(select)
    if names <= null_names:
        written = " and ".join(f"{alias}.{name} IS NULL" for name in sorted(names))
        raise refused(
            f"JOIN {alias} with {written}",
            "Such rows cannot be distinguished from rows without a partner. Use a filled attribute "
            f"of {alias} as well, or write LEFT JOIN, which keeps the rows without a partner",
        )
    return sorted(names)


def _null_names(select: Node) -> set[str]:
    """Return the columns that WHERE requires to be null."""
    exp = _exp()
    where = select.args.get("where")
    if where is None:
        return set()
    return {
        term.this.name.lower()
        for term in terms(where.this)
        if isinstance(term, exp.Is)
        and isinstance(term.expression, exp.Null)
        and isinstance(term.this, exp.Column)
    }


def _rename_columns(select: Node, columns: ColumnReader, tables: Mapping[str, JoinedTable]) -> None:
    """Replace columns of public tables by levels of the domain, in place."""
    exp = _exp()
    for column in [*select.find_all(exp.Column)]:
        table = tables.get(column.table.lower())
        if table is None or not table.attribute or isinstance(column.this, exp.Star):
            continue
        level = _level_of(columns, table, column.name)
        if level is None:
            name = table.attribute
        else:
            name = f"{table.attribute}:{level}"
        column.this.set("this", name)
        column.this.set("quoted", True)
        column.set("table", None)


def _with_subqueries_as_joins(select: Node, query_names: Sequence[str]) -> Node:
    """Rewrite ``key IN (SELECT key ...)`` as a JOIN.

    Keys of the joined table are unique, so the join repeats no row.
    """
    exp = _exp()
    where = select.args.get("where")
    copy = select.copy()
    if where is None or where.find(exp.Select) is None:
        return copy
    copy.set("where", None)
    no_tables = {copy.args["from_"].this.name.lower(), *query_names}
    joins = list(copy.args.get("joins") or [])
    for number, term in enumerate(terms(where.this)):
        join = _semi_join(term, f" in {number}", no_tables)
        if join is None:
            add_condition(copy, term)
        else:
            joins.append(join)
    copy.set("joins", joins)
    return copy


def _semi_join(term: Node, alias: str, query_names: Collection[str]) -> Node | None:
    """Return ``key IN (SELECT key ...)`` as a JOIN; None for other conditions."""
    exp = _exp()
    query = term.args.get("query")
    if not isinstance(term, exp.In) or query is None or not isinstance(term.this, exp.Column):
        return None
    inner = query.unnest()
    allowed = {"kind", "expressions", "from_", "where", "distinct"}
    clauses = {name for name, value in inner.args.items() if value}
    if not isinstance(inner, exp.Select) or not clauses <= allowed or len(inner.expressions) != 1:
        return None
    key = inner.expressions[0].unalias()
    table = inner.args["from_"].this
    if not isinstance(key, exp.Column) or not isinstance(table, exp.Table):
        return None
    if table.name.lower() in query_names or inner.find(exp.Subquery):
        return None
    inner = inner.copy()
    for column in inner.find_all(exp.Column):
        column.set("table", exp.to_identifier(alias, quoted=True))
    table = inner.args["from_"].this
    table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    on = exp.EQ(this=term.this.copy(), expression=inner.expressions[0].unalias())
    conditions = [on]
    if inner.args.get("where"):
        conditions.append(inner.args["where"].this)
    return exp.Join(this=table, on=exp.and_(*conditions, copy=False))


def _exp() -> Any:
    """Import and return sqlglot's module of node classes."""
    from sqlglot import exp

    return exp
