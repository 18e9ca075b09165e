"""Translate SQL statements with SELECT and GROUP BY to one workload.

A text is split into statements, and each statement is read over the domain (`_reader`).
Conditions and groups are computed for every value that a column can hold (`_expression_values`). If
an answer counts nulls or values outside the domain, their attribute gets a cell for them, whatever
the data are. Then each statement requests its tables (`_statement`).
"""

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, ClassVar

from leastnoise._domain import RESERVED, Domain
from leastnoise._trusted.check import Exact, InputError
from leastnoise._workload._sql._expression_values import UNDECIDED, Node
from leastnoise._workload._sql._faults import Faults, FaultsError
from leastnoise._workload._sql._function_translation import (
    SqlSettings,
    in_duckdb,
    join_columns,
    parse_day,
)
from leastnoise._workload._sql._reader import StatementReader
from leastnoise._workload._sql._statement import GroupColumn, Statement, group_queries, place_groups
from leastnoise._workload._workload import Workload, together

_MOST_STATEMENTS = 200  # the most statements in one text; more could take minutes to read


def sql(
    domain: Domain,
    *statements: str,
    unit: str | None = None,
    of_unit: Sequence[str] = (),
    weight: Exact = 1,
    today: str | None = None,
    joined_on: str | Mapping[str, str] | Sequence[str | Mapping[str, str]] | None = None,
) -> Workload:
    """Translate SQL statements to the workload of the tables that they need.

    A statement is a SELECT with COUNT, SUM, AVG or quantiles, and may have WHERE and GROUP BY.
    Statements have the meaning that SQL defines, also for null values.

    Args:
        domain: the domain. The only table of the statements has these columns: attributes, their
            levels and columns, and measures.
        statements: SQL texts. Each text contains one SELECT, or several separated by semicolons.
        unit: the column of the privacy unit, whose COUNT(DISTINCT) counts units.
        of_unit: attributes that have one value for all rows of a unit.
        weight: the weight of every table, above 0.
        today: the day that CURRENT_DATE stands for, such as "2026-01-31".
        joined_on: the argument ``on`` of the `Joined` source, or a list of these if several tables
            are joined. With this argument, statements may contain the source's LEFT JOIN.

    Returns:
        The workload. In the ``domain`` of the workload, a named CASE or other grouping is a level.
        An attribute has the cells ``(null)`` and ``(outside)`` if a statement counts nulls or
        values outside the domain. `Release.sql` returns the answers as the statements request them.

    Raises:
        InputError: a clause cannot be answered; the message lists all such clauses by name and
            position.

    >>> domain = ln.Domain(
    ...     sex=["F", "M"], age=ln.Integers(0, 99), measures={"pay": ln.Measure("pay", 0, 9000)}
    ... )
    >>> asked = ln.sql(
    ...     domain,
    ...     "SELECT sex, age >= 65 AS retired, COUNT(*), AVG(pay) FROM people "
    ...     "GROUP BY ROLLUP (sex, retired)",
    ... )
    >>> [table.name for table in asked if table.measure is None]
    ['sex x age:retired', 'sex', 'total']
    """
    settings = SqlSettings(unit, tuple(of_unit), today, join_columns(joined_on))
    read = over_common_domain(read_statements(domain, statements, settings))
    return together([statement.workload(weight) for statement in read])


def read_statements(
    domain: Domain, texts: Sequence[str], settings: SqlSettings | None = None
) -> tuple[Statement, ...]:
    """Parse the SQL statements of some texts over one domain.

    Args:
        domain: the domain.
        texts: each has one statement, or several separated by semicolons.
        settings: the unit, the current day and the join; None if none of these is stated.

    Raises:
        InputError: a part of a statement cannot be answered. The message lists all such parts, with
            the number of the statement, the line and the column.
    """
    if settings is None:
        settings = SqlSettings()
    day = parse_day(settings.today)
    trees = list(chain.from_iterable(_parse(text) for text in texts))
    if not 0 < len(trees) <= _MOST_STATEMENTS:
        raise InputError(f"SQL must have 1 to {_MOST_STATEMENTS} statements; got {len(trees)}.")
    statements = []
    messages: list[str] = []
    for number, tree, text in trees:
        faults = Faults(number)
        try:
            with faults.collect(tree):
                adapted = _in_duckdb(tree, day, faults)
                statement = StatementReader(domain, settings, adapted, faults).statement(text)
                over_common_domain([statement])[0].workload()  # whether it can be planned
                statements.append(statement)
            faults.check()
        except FaultsError as error:
            messages.append(error.args[0])
    if messages:
        raise InputError("\n".join(messages))
    return tuple(statements)


def _in_duckdb(tree: Node, day: dt.date | None, faults: Faults) -> Node:
    """Replace functions of other databases in a statement by DuckDB's.

    Raises:
        FaultsError: some calls have no equivalent; the error lists each with its position.
    """

    def adapted(node: Node) -> Node:
        """Replace the function of a node if DuckDB lacks it."""
        with faults.collect(node):
            return in_duckdb(node, day)
        return node

    statement = tree.transform(adapted)
    faults.check()
    return statement


def _parse(text: str) -> Iterator[tuple[int, Node, str]]:
    """Yield each statement's number, syntax tree and text."""
    import sqlglot

    if not isinstance(text, str):
        raise InputError(f"SQL must be a text; got {type(text).__name__}.")
    dialects = [_dialect(), "tsql"]
    if re.search(r"(?<![\w\]])\[[A-Za-z_]\w*\]", text):
        dialects.reverse()  # brackets around names
    try:
        trees, texts = _trees_and_texts(text, dialects[0])
    except sqlglot.errors.SqlglotError as error:
        try:
            trees, texts = _trees_and_texts(text, dialects[1])
        except sqlglot.errors.SqlglotError:
            raise InputError(_syntax_fault(text, error)) from None
    for number, tree in enumerate(trees, 1):
        is_split_alike = len(texts) == len(trees)
        yield number, tree, texts[number - 1] if is_split_alike else tree.sql("duckdb")


def _trees_and_texts(text: str, dialect: Any) -> tuple[list[Node], list[str]]:
    """Parse a text into the syntax trees and the texts of its statements."""
    import sqlglot

    trees = [tree for tree in sqlglot.parse(text, read=dialect) if tree is not None]
    return trees, _statement_texts(text, dialect)


def _syntax_fault(text: str, error: Exception) -> str:
    """Return the error message for a text that is not valid SQL."""
    template = re.search(r"\{[{%].*?[}%]\}", text)
    if template is not None:
        line = text.count("\n", 0, template.start()) + 1
        return (
            f"The SQL cannot be read: line {line} has the template {template[0]}. Write what it "
            "stands for; dbt compile does so."
        )
    reason = re.sub(r"<Token .*?text: (.*?), line.*?>", r"\1", str(error).splitlines()[0])
    return f"The SQL cannot be read: {reason.strip(' .')}. Change it so that DuckDB accepts it."


@cache
def _dialect() -> Any:
    """Return a dialect: DuckDB's SQL, with backticks around names and with TOP."""
    import sqlglot

    class Reports(sqlglot.dialects.DuckDB):  # type: ignore[misc]  # it has no types
        class Tokenizer(sqlglot.dialects.DuckDB.Tokenizer):  # type: ignore[misc]
            IDENTIFIERS = ('"', "`")
            KEYWORDS: ClassVar = {
                **sqlglot.dialects.DuckDB.Tokenizer.KEYWORDS,
                "TOP": sqlglot.TokenType.TOP,
            }

    return Reports


def _statement_texts(text: str, dialect: Any) -> list[str]:
    """Split a text into statements, without comments around them."""
    import sqlglot

    ranges: list[list[int]] = [[]]
    for token in sqlglot.tokenize(text, read=dialect):
        if token.token_type is sqlglot.TokenType.SEMICOLON:
            ranges.append([])
        else:
            ranges[-1] += [token.start, token.end]
    return [text[positions[0] : positions[-1] + 1] for positions in ranges if positions]


def over_common_domain(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Give statements a common domain that has all cells and levels they need.

    Attributes get cells for nulls and for values outside the domain if a statement counts these.
    Every group column that has a name becomes a level, unless a level of this name exists.
    """
    return _with_levels(_with_cells(statements))


def _with_cells(statements: Sequence[Statement]) -> Sequence[Statement]:
    """Extend the domain by cells for nulls or outside values that are counted."""
    while True:
        needs: dict[str, frozenset[str]] = {}
        for statement in statements:
            for name, parts in statement.needs().items():
                needs[name] = needs.get(name, frozenset()) | parts
        if not needs:
            return statements
        value = statements[0].domain.to_json()
        for entry in value["attributes"]:
            entry.update(dict.fromkeys(needs.get(entry["name"], ()), "cell"))
        # With a cell for nulls, the group of nulls is published, and may need other parts.
        domain = Domain.from_json(value)
        statements = [statement.over(domain) for statement in statements]


def _with_levels(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Extend the domain by a level for each named group column."""
    domain = statements[0].domain
    value = domain.to_json()
    entries = {entry["name"]: entry for entry in value["attributes"]}
    for group in chain.from_iterable(statement.groups for statement in statements):
        levels = entries[group.attribute].setdefault("levels", [])
        names = {*domain.names, *RESERVED, *(level["name"] for level in levels)}
        is_new = group.name.isidentifier() and group.name not in names
        if is_new and _is_like_a_level(domain, group):
            levels.append(_level(domain, group))
    with_levels = Domain.from_json(value)
    return tuple(statement.over(with_levels) for statement in statements)


def _is_like_a_level(domain: Domain, group: GroupColumn) -> bool:
    """Return whether a new level could have the groups of a column.

    In a level, each cell for nulls or outside values is a separate group.
    """
    kind = domain.kind(group.attribute)
    if UNDECIDED in group.keys[: kind.regular]:
        return False
    placement = place_groups(kind, [group.keys], None)
    if placement.needs or group_queries(kind, placement).kind != "predicates":
        return False
    cells = [cells for _, cells in placement.groups]
    are_apart = all(len(group) == 1 or group[-1] < kind.regular for group in cells)
    return are_apart and sum(map(len, cells)) == kind.published


def _level(domain: Domain, group: GroupColumn) -> dict[str, Any]:
    """Return the JSON object of a level with the groups of a column."""
    regular = domain.kind(group.attribute).regular
    labels = [_label(key) for key in group.keys[:regular]]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return {
        "name": group.name,
        "labels": [*numbers],
        "cells": [numbers[label] for label in labels],
    }


def _label(key: object) -> str:
    """Return the label of a group in a level, from its SQL value."""
    if key is None:
        return "(none)"
    if isinstance(key, bool):
        return str(key).lower()
    return str(key)
