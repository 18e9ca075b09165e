"""Translate one SELECT over the rows to a released table and a query on it.

Its groups and aggregates are released as a table. DuckDB computes the other parts of the statement
from that table: expressions of aggregates, window functions, HAVING, QUALIFY, DISTINCT, ORDER BY
and LIMIT.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, combinations, pairwise, product
from typing import Any

from leastnoise._domain import Bins, Categories, Dates, Edges
from leastnoise._trusted.check import InputError
from leastnoise._workload._sql._aggregates import AggregateReader, Boxes
from leastnoise._workload._sql._column_intervals import NoiseInterval, expression_noise
from leastnoise._workload._sql._column_references import ColumnReader, own_columns, terms
from leastnoise._workload._sql._combinations import (
    AnswerExpression,
    AnswerTerm,
    Combination,
    LinearSum,
    WindowFrame,
    read_combination,
    read_expression,
    read_linear_sum,
)
from leastnoise._workload._sql._conditions import (
    EVERYTHING,
    CellBox,
    empty_condition_error,
    hull,
    intersect,
    merge,
    overlap,
)
from leastnoise._workload._sql._expression_values import Node, constant_number, refused
from leastnoise._workload._sql._faults import Faults
from leastnoise._workload._sql._layers import GROUP_NAME
from leastnoise._workload._sql._statement import (
    Aggregate,
    GroupColumn,
    OutputColumn,
    Selection,
    absent_column,
    answer_column,
    combination_high_column,
    combination_low_column,
    group_column,
    high_column,
    joint_column,
    low_column,
    published_parts,
    table_name,
)

CLAUSE_ADVICE = {
    "join": "A second table is joined in [source.join]; the statement then names one table",
    "lateral": "Prepare the table as a view",
    "pivot": "Use GROUP BY, with SUM(x) FILTER (WHERE column = 'value') for each column",
    "sample": "All rows are read; noise protects them",
    "into": "The answer is written by leastnoise release",
}
WITHOUT_ROWS = "Rows are never published; name groups and aggregates such as COUNT(*)"
SUBQUERY_ADVICE = (
    "A subquery may be in FROM, in WITH, among the columns of SELECT, or in a condition on a "
    "column of the rows, where it selects groups and aggregates. Write other values directly"
)
_CLAUSES = {
    *("kind", "hint", "operation_modifiers", "expressions", "from", "from_", "where", "group"),
    *("having", "qualify", "windows", "distinct", "order", "limit", "offset", "with", "with_"),
}
_MOST_SETS = 200  # the most grouping sets of a statement, also from CUBE and ROLLUP
_LINEAR_KINDS = ("rows", "units", "values", "sum", "weighted")
_CAN_FAIL = ("Sqrt", "Ln", "Log", "Pow", "Exp")


@dataclass
class ComputedQuery:
    """A query on released tables that DuckDB computes.

    Attributes:
        select: the syntax tree.
        columns: the columns of its result; a column that has an interval is followed by its two
            ends.
    """

    select: Node
    columns: list[OutputColumn]


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column of a `ComputedQuery`.

    Attributes:
        column: its name, and the group or the answers that it shows.
        node: the expression.
        noise: the interval of its noise; None if it has no noise.
    """

    column: OutputColumn
    node: Node
    noise: NoiseInterval | None


TranslateQuery = Callable[[Node], Node]
"""From a subquery to the query over released tables that answers it."""


@dataclass
class SelectionReader:
    """Translates one SELECT over the rows.

    Attributes:
        columns: finds the attributes and measures that columns refer to.
        unit: the column of the privacy unit.
        of_unit: attributes that have one value for all rows of a unit.
        select: the syntax tree; every column of SELECT has an alias.
        faults: collects the errors of the statement.
        translate: a function that answers subqueries among the columns.
        add_selection: a function that adds a released table and returns its number.
        exp: the module of sqlglot's nodes.
    """

    columns: ColumnReader
    unit: str | None
    of_unit: tuple[str, ...]
    select: Node
    faults: Faults
    translate: TranslateQuery
    add_selection: Callable[[Selection], int]
    exp: Any = field(init=False)
    _condition: CellBox = field(default_factory=CellBox)  # the box of WHERE
    _answers: list[Aggregate] = field(default_factory=list)
    _combinations: list[AnswerExpression] = field(default_factory=list)
    _groups: list[GroupColumn] = field(default_factory=list)
    # Indices of the groups by `_comparable_text`.
    _group_of_text: dict[str, int] = field(default_factory=dict)
    _aliases: dict[str, Node] = field(default_factory=dict)  # expressions of SELECT by name
    _failed: set[int] = field(default_factory=set)  # ids of nodes whose fault is collected
    _sets: list[tuple[int, ...]] = field(default_factory=list)  # grouping sets
    _written_groups: list[Node] = field(default_factory=list)  # GROUP BY as written
    _joint_groups: dict[str, Node] = field(default_factory=dict)  # groups of several attributes
    _hidden_groups: set[int] = field(default_factory=set)  # groups only for conditions of WHERE
    _failed_texts: set[str] = field(default_factory=set)  # texts of groups with errors
    _query_terms: list[Node] = field(default_factory=list)  # conditions of WHERE with subqueries

    def __post_init__(self) -> None:
        """Load sqlglot, which takes a while, only when SQL is read."""
        from sqlglot import exp

        self.exp = exp

    def read(self) -> ComputedQuery:
        """Translate the SELECT to a query on a released table, and collect errors."""
        check_clauses(self.select, self.faults, _CLAUSES)
        boxes = self._where()
        self._condition = hull(self.columns.domain, boxes)
        sets = self._with_hidden_groups(self._grouping_sets())
        self._sets = sets
        boxes = self._within_published_groups(boxes)
        self._condition = hull(self.columns.domain, boxes)
        self._aggregates = AggregateReader(
            self.columns, self.unit, boxes, self._answer_node, are_added_up=self._are_added_up
        )
        projections = [self._projection(node) for node in self.select.expressions]
        outputs = [projection for projection in projections if projection is not None]
        query = self._query_without_table(outputs)
        columns = [projection.column for projection in outputs]
        if query.args.get("distinct"):
            columns = [replace(column, has_interval=False) for column in columns]
        if self.faults.messages:
            return ComputedQuery(query, columns)
        if not self._answers:  # a table of counts has the groups
            self._answers.append(Aggregate("COUNT(*)", "rows"))
        selection = Selection(
            domain=self.columns.domain,
            groups=tuple(self._groups),
            sets=tuple(self._sets),
            condition=self._condition,
            aggregates=tuple(self._answers),
            of_unit=self.of_unit,
            combinations=tuple(self._combinations),
        )
        number = self.add_selection(selection)
        query.set("from_", self.exp.From(this=self._released_table(number)))
        return ComputedQuery(query, columns)

    def _within_published_groups(self, boxes: Boxes) -> Boxes:
        """Leave out those parts of several boxes that are in no published group.

        Fewer boxes remain, so fewer tables are measured. Under GROUP BY a, for example, rows
        without a are not published, and ``a IS NOT NULL OR b IS NOT NULL`` is true for all other
        rows.
        """
        if len(boxes) == 1:
            return boxes
        domain = self.columns.domain
        parts: dict[str, frozenset[int]] = {}
        in_all_sets = frozenset(self._sets[0]).intersection(*self._sets)
        for name in {self._groups[index].attribute for index in in_all_sets}:
            groups = [self._groups[index] for index in in_all_sets]
            keys = [group.keys for group in groups if group.attribute == name]
            parts[name] = published_parts(domain.kind(name), keys)
        published = overlap("WHERE", boxes, [CellBox(parts)])
        return merge(domain, published) or boxes

    @property
    def _are_added_up(self) -> bool:
        """Whether one row of the answer adds up several released groups."""
        return bool(self._joint_groups or self._hidden_groups)

    def _released_table(self, number: int) -> Node:
        """Return a released table that has columns for groups to add up."""
        exp = self.exp
        table = _table(number)
        if not self._joint_groups:
            return table
        columns = [
            exp.alias_(self._rewritten_children(node, "GROUP BY"), joint_column(index), quoted=True)
            for index, node in enumerate(self._joint_groups.values())
        ]
        return exp.select("*", *columns).from_(table).subquery("released")

    # --- WHERE ------------------------------------------------------------------------------------

    def _where(self) -> Boxes:
        """Return the cell boxes of WHERE; all rows if WHERE has an error."""
        where = self.select.args.get("where")
        boxes: Boxes = EVERYTHING
        for written in terms(where.this) if where else ():
            with self.faults.collect(written):
                term = self._with_alias_definitions(written)
                if term.find(self.exp.Select):
                    self._query_terms.append(term)
                    continue
                term_boxes = self.columns.true_boxes("WHERE", term)
                if not term_boxes:
                    raise empty_condition_error(
                        "WHERE", *self.columns.attribute_names("WHERE", term)
                    )
                boxes = intersect("WHERE", boxes, term_boxes)
        return boxes

    def _with_alias_definitions(self, term: Node) -> Node:
        """Replace aliases in a condition of WHERE by their expressions.

        Raises:
            InputError: the condition is about an aggregate.
        """
        exp = self.exp
        definitions = {node.alias.lower(): node.unalias() for node in self.select.expressions}

        def definition(column: Node) -> Node:
            """Return the expression of an alias; other nodes unchanged."""
            is_alias = isinstance(column, exp.Column) and not column.table
            if not is_alias or self.columns.is_attribute(column):
                return column
            inner = definitions.get(column.name.lower())
            if inner is None or any(part == column for part in inner.find_all(exp.Column)):
                return column
            return exp.Paren(this=inner.copy())

        definition_term = term.copy().transform(definition)
        aggregates = [
            part
            for part in definition_term.find_all(exp.AggFunc, exp.Window)
            if self._is_outside_queries(part, definition_term)
        ]
        if aggregates:
            raise refused(
                f"WHERE with {aggregates[-1].sql('duckdb')}",
                "Write the condition in HAVING, or in QUALIFY if it has a window function",
            )
        definition_term.parent = term.parent  # gives errors their position
        return definition_term

    # --- GROUP BY ---------------------------------------------------------------------------------

    def _grouping_sets(self) -> list[tuple[int, ...]]:
        """Read GROUP BY, and return its grouping sets as indices of group columns."""
        group = self.select.args.get("group")
        expressions = self.select.expressions
        plain = [node for node in expressions if not self._is_computed(node.unalias())]
        is_listing = bool(self.select.args.get("distinct")) and len(plain) == len(expressions)
        is_by_all = group is not None and group.args.get("all")
        if is_by_all or (group is None and is_listing):
            indices = [self._group_indices(node.unalias(), node.alias, node) for node in plain]
            return [tuple(chain.from_iterable(indices))]
        if group is None:
            return [()]
        further = [group.args.get(key) for key in ("rollup", "cube", "grouping_sets")]
        elements = [
            *group.expressions,
            *chain.from_iterable(parts for parts in further if isinstance(parts, list)),
        ]
        sets: list[tuple[int, ...]] = [()]
        for element in elements:
            with self.faults.collect(element):
                more_sets = self._sets_of(element)
                sets = [_union(old, more) for old, more in product(sets, more_sets)]
        if len(sets) > 1 and self._joint_groups:
            first = next(iter(self._joint_groups.values()))
            self.faults.add(
                first,
                f"{first.sql('duckdb')} in ROLLUP, CUBE or GROUPING SETS cannot be answered. It is "
                "about several attributes: write a statement for each grouping set.",
            )
        if len(sets) > _MOST_SETS:
            self.faults.add(
                group,
                f"GROUP BY with {len(sets)} grouping sets cannot be answered. At most "
                f"{_MOST_SETS} are possible in one statement.",
            )
        return list(dict.fromkeys(sets))

    def _with_hidden_groups(self, sets: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Extend GROUP BY by columns that conditions with subqueries need.

        The subqueries select released groups. The rows are then also grouped by these columns, and
        the answers are added up over the groups that the condition keeps.
        """
        for term in [*self._query_terms]:
            with self.faults.collect(term):
                # The term is added again below if it can be answered.
                self._query_terms.remove(term)
                if not [*own_columns(term)]:
                    raise refused("A subquery in WHERE", SUBQUERY_ADVICE)
                if len(sets) > 1:
                    raise refused(
                        "A subquery in WHERE with several grouping sets",
                        "Write a statement for each grouping set",
                    )
                for part in self._parts_of_one_attribute("WHERE", term):
                    self._check_is_value("WHERE", part)
                    known = len(self._groups)
                    index = self._group_index(part, part.sql("duckdb"), part)
                    if index is None or index in sets[0]:
                        continue
                    if index >= known:
                        self._hidden_groups.add(index)
                    sets = [(*sets[0], index)]
                self._query_terms.append(term)
        return sets

    def _is_computed(self, node: Node) -> bool:
        """Return whether a SELECT column is computed, not a group column."""
        exp = self.exp
        if not any(own_columns(node)) and not node.find(exp.Star):
            return True
        kinds = (exp.AggFunc, exp.Window, exp.Grouping)
        return any(self._is_outside_queries(part, node) for part in node.find_all(*kinds))

    def _is_outside_queries(self, part: Node, root: Node) -> bool:
        """Return whether a node is outside all subqueries of an expression."""
        node = part
        while node is not root:
            if isinstance(node, self.exp.Select):
                return False
            node = node.parent
        return True

    def _sets_of(self, element: Node) -> list[tuple[int, ...]]:
        """Return the grouping sets of one item of GROUP BY, adding its columns."""
        exp = self.exp
        if isinstance(element, (exp.GroupingSets, exp.Rollup, exp.Cube)):
            sets = list(chain.from_iterable(self._sets_of(inner) for inner in element.expressions))
            if isinstance(element, exp.GroupingSets):
                return sets
            if not sets:
                raise refused("ROLLUP or CUBE without columns", "Name columns in it")
            if isinstance(element, exp.Rollup):
                return _rolled_up(sets)
            return _cube(sets)
        is_tuple = isinstance(element, exp.Tuple)
        if is_tuple:
            nodes = element.expressions
        else:
            nodes = [element.unnest()]
        return [tuple(chain.from_iterable(map(self._named_groups, nodes)))]

    def _named_groups(self, node: Node) -> list[int]:
        """Return the group columns of an item: a name, a number or an expression."""
        exp = self.exp
        expressions = self.select.expressions
        if isinstance(node, exp.Literal) and not node.is_string:
            if node.name.isdecimal():
                number = int(node.name)
            else:
                number = 0
            if 0 < number <= len(expressions):
                numbered = expressions[number - 1]
            else:
                numbered = None
            if numbered is None or self._is_computed(numbered.unalias()):
                raise refused(
                    f"GROUP BY {node.name}",
                    "Use the number of a column of SELECT that is neither "
                    "an aggregate nor a constant",
                )
            return self._group_indices(numbered.unalias(), numbered.alias, numbered)
        # As in DuckDB, a column takes precedence over an alias of the same name.
        is_alias = isinstance(node, exp.Column) and not node.table
        if is_alias and not self.columns.is_source_column(node.name):
            for expression in expressions:
                inner = expression.unalias()
                if expression.alias.lower() != node.name.lower():
                    continue
                if not self._is_computed(inner):
                    return self._group_indices(inner, expression.alias, expression)
                raise refused(
                    f"GROUP BY {node.name}, which is {inner.sql('duckdb')},",
                    "Group by columns of the table and expressions of them",
                )
        name = node.name if isinstance(node, exp.Column) else node.sql("duckdb")
        return self._group_indices(node, node.meta.get(GROUP_NAME, name), node)

    def _group_indices(self, node: Node, name: str, position_node: Node) -> list[int]:
        """Return the indices of an expression's group columns; none if it is invalid.

        An expression of several attributes is divided into its largest parts that use one attribute
        each, and the groups of these parts are used. Answers of groups with equal values of the
        expression are then added up.
        """
        self._written_groups.append(node)
        parts = [node]
        if position_node is node:
            clause = "GROUP BY"
        else:
            clause = "SELECT"
        if self._is_joint(clause, node):
            self._joint_groups.setdefault(_comparable_text(node), node)
            parts = [*self._parts_of_one_attribute(clause, node)]
            for part in parts if node.find(self.exp.Select) else ():
                self._check_is_value(clause, part)
        indices = []
        for part in parts:
            if part is node:
                part_name = name
            else:
                part_name = part.sql("duckdb")
            index = self._group_index(part, part_name, position_node if part is node else part)
            if index is None:
                self._failed.add(id(position_node))
            else:
                indices.append(index)
        return indices

    def _is_joint(self, clause: str, node: Node) -> bool:
        """Return whether an expression's groups are unions of released groups.

        This is the case if the expression uses several attributes, or groups that a subquery
        selects.
        """
        try:
            count = len(self.columns.attribute_names(clause, node))
            return count > 1 or (count == 1 and node.find(self.exp.Select) is not None)
        except InputError:
            return False  # the error is recorded where the group is read

    def _parts_of_one_attribute(self, clause: str, node: Node) -> Iterator[Node]:
        """Yield the largest subexpressions that use one attribute.

        They contain no subquery.
        """
        if isinstance(node, self.exp.Select):
            return
        count = len(self.columns.attribute_names(clause, node))
        is_branch = isinstance(node, self.exp.If) and isinstance(node.parent, self.exp.Case)
        if count == 1 and not is_branch and not node.find(self.exp.Select):
            yield node
        elif count > 0:
            for child in node.iter_expressions():
                yield from self._parts_of_one_attribute(clause, child)

    def _check_is_value(self, clause: str, part: Node) -> None:
        """Raise if a subquery compares a column with cells of several values.

        The groups of such a column have labels, but no values that can be compared.
        """
        if not isinstance(part, self.exp.Column):
            return
        attribute, level_name = self.columns.find(clause, part)
        kind = self.columns.domain.kind(attribute)
        is_day = isinstance(kind, Dates) and kind.by == "day"
        if level_name is None and isinstance(kind, (Bins, Edges, Dates)) and not is_day:
            raise refused(
                f"{clause} of {attribute} with a subquery",
                f"Compare values that are constant within a cell of {attribute}, such as "
                "DATE_TRUNC of months or a CASE of ranges",
            )

    def _group_index(self, node: Node, name: str, position_node: Node) -> int | None:
        """Return the index of an expression's group column; None if invalid."""
        text = _comparable_text(node)
        if text in self._group_of_text:
            return self._group_of_text[text]
        if id(position_node) in self._failed:
            return None
        group = None
        if position_node is node:
            clause = "GROUP BY"
        else:
            clause = "SELECT"
        with self.faults.collect(node):
            if node.find(self.exp.Select):
                raise refused(f"A subquery in {clause}", SUBQUERY_ADVICE)
            if is_star(node):
                raise refused("SELECT *", WITHOUT_ROWS)
            self._check_unit_is_no_group(clause, node)
            group = GroupColumn(name, *self.columns.values(clause, node, self._condition))
        if group is None:
            self._failed.add(id(position_node))
            self._failed_texts.add(text)
            return None
        same = [
            index
            for index, other in enumerate(self._groups)
            if (other.attribute, other.keys) == (group.attribute, group.keys)
        ]
        if not same:
            self._groups.append(group)
        self._group_of_text[text] = same[0] if same else len(self._groups) - 1
        return self._group_of_text[text]

    def _check_unit_is_no_group(self, clause: str, node: Node) -> None:
        """Raise an error if rows are grouped by unit.

        Grouping by unit is allowed if the domain lists the units.
        """
        columns = [*node.find_all(self.exp.Column)]
        is_unit = any(self._is_unit(column) for column in columns)
        if is_unit and not any(map(self.columns.is_attribute, columns)):
            raise refused(
                f"{clause} {node.sql('duckdb')}, the column of [privacy] unit,",
                f"Rows of one unit are never published: COUNT(*) / COUNT(DISTINCT {self.unit}) is "
                f"the mean number of rows of a unit; SUM(x) / COUNT(DISTINCT {self.unit}) is the "
                "mean of its totals",
            )

    def _is_unit(self, column: Node) -> bool:
        """Return whether a column is the column of the privacy unit."""
        return self.unit is not None and column.name.lower() == self.unit.lower()

    # --- SELECT -----------------------------------------------------------------------------------

    def _projection(self, node: Node) -> ComputedColumn | None:
        """Translate a column of SELECT; None if it has an error."""
        if id(node) in self._failed:
            return None
        inner = node.unalias()
        with self.faults.collect(node):
            if is_star(inner):
                raise refused("SELECT *", WITHOUT_ROWS)
            computed = self._rewritten(inner, "SELECT")
            noise = expression_noise(computed, self._noise_of, self._combination_noise)
            self._aliases[node.alias.lower()] = computed
            names = {column.name for column in computed.find_all(self.exp.Column)}
            aggregates = tuple(
                aggregate
                for number, aggregate in enumerate(self._answers)
                if answer_column(number) in names
            )
            group = None
            if isinstance(computed, self.exp.Column) and not aggregates:
                group = self._group_in_placeholder(computed)
            column = OutputColumn(
                name=node.alias,
                group=group,
                aggregates=aggregates,
                has_noise=noise is not None,
                has_interval=noise is not None and noise.has_interval,
            )
            return ComputedColumn(column, computed, noise)
        return None

    def _group_in_placeholder(self, column: Node) -> GroupColumn | None:
        """Return the group column that a placeholder column stands for, or None."""
        for number, group in enumerate(self._groups):
            if column.name == group_column(number):
                return group
        return None

    def _noise_of(self, column: Node) -> NoiseInterval | None:
        """Return the interval of the answer that a placeholder stands for, or None."""
        for number in range(len(self._answers)):
            if column.name == answer_column(number):
                ends = (low_column(number), high_column(number))
                return NoiseInterval(*(self.exp.column(end, quoted=True) for end in ends))
        return None

    def _combination_noise(self, node: Node) -> NoiseInterval | None:
        """Register a combination of answers, and return its interval or None."""
        combination = read_expression(node, self._answer_sum, self._answer_quotient)
        if combination is None:
            return None
        if combination not in self._combinations:
            self._combinations.append(combination)
        number = self._combinations.index(combination)
        names = (combination_low_column(number), combination_high_column(number))
        return NoiseInterval(*(self.exp.column(name, quoted=True) for name in names))

    def _answer_sum(self, node: Node) -> LinearSum | None:
        """Return a count or sum as a linear combination of answers, or None."""
        if isinstance(node, self.exp.Window):
            return self._window_sum(node)
        if not isinstance(node, self.exp.Column):
            return None
        for number, aggregate in enumerate(self._answers):
            if node.name == answer_column(number) and aggregate.kind in _LINEAR_KINDS:
                return LinearSum(((AnswerTerm(number), Fraction(1)),))
        return None

    def _window_sum(self, window: Node) -> LinearSum | None:
        """Return a window function as a linear combination of answers, or None."""
        frame = self._window_frame(window)
        if frame is None:
            return self._total_sum(window)
        linear = read_linear_sum(window.this.this, self._answer_sum)
        if linear is None:
            return None
        is_sum = isinstance(window.this, self.exp.Sum)
        kinds = {self._answers[term.number].kind for term, _ in linear.factors}
        if is_sum and (linear.shift or "units" in kinds):  # a unit may be in several groups
            return None
        return linear.within(frame)

    def _answer_quotient(self, node: Node) -> Combination | None:
        """Return a mean as a quotient of answers, or None."""
        exp = self.exp
        if isinstance(node, exp.Window):
            frame = self._window_frame(node)
            if frame is None or isinstance(node.this, exp.Sum):
                return None
            quotient = read_combination(node.this.this, self._answer_sum, self._answer_quotient)
            return None if quotient is None else quotient.within(frame)
        for number, aggregate in enumerate(self._answers):
            is_column = isinstance(node, exp.Column) and node.name == answer_column(number)
            if is_column and aggregate.kind == "mean":
                parts = [AnswerTerm(number, part=part) for part in ("sum", "values")]
                return Combination(*(LinearSum(((part, Fraction(1)),)) for part in parts))
        return None

    def _window_frame(self, window: Node) -> WindowFrame | None:
        """Return the order and the ends of a window of groups, or None.

        LAG, LEAD and a running SUM use such a window. The groups of such a window are along one
        attribute, and all other attributes partition it.
        """
        exp = self.exp
        clauses = {name for name, value in window.args.items() if value}
        leaves_out_groups = self.select.args.get("having") or self._query_terms
        if not isinstance(window.this, (exp.Lag, exp.Lead, exp.Sum)) or self._has_several_sets():
            return None
        order = self._order_of_window(window)
        partition = self._attributes_of_partition(window.args.get("partition_by") or [])
        ends = _window_ends(window)
        if not clauses <= {"this", "partition_by", "order", "over", "spec"} or leaves_out_groups:
            return None
        if not order or partition is None or ends is None:
            return None
        attribute = self._groups[order[0][0]].attribute
        others = {group.attribute for group in self._groups} - {attribute}
        positions = [
            index for index, group in enumerate(self._groups) if group.attribute == attribute
        ]
        if set(partition) != others or {index for index, _ in order} != {*positions}:
            return None
        columns = tuple((positions.index(index), descends) for index, descends in order)
        return WindowFrame(attribute, columns, *ends)

    def _order_of_window(self, window: Node) -> list[tuple[int, bool]]:
        """Return the group columns that order a window; empty for others."""
        order = window.args.get("order")
        columns = []
        for term in order.expressions if order else ():
            key = term.this if isinstance(term, self.exp.Ordered) else term
            group = None
            if isinstance(key, self.exp.Column):
                group = self._group_in_placeholder(key)
            if group is None:
                return []
            columns.append((self._groups.index(group), bool(term.args.get("desc"))))
        return columns

    def _total_sum(self, window: Node) -> LinearSum | None:
        """Return SUM(answers) OVER (PARTITION BY groups) as a combination, or None.

        The result is None for other windows, and if HAVING leaves out groups.
        """
        exp = self.exp
        clauses = {name for name, value in window.args.items() if value}
        is_total = isinstance(window.this, exp.Sum) and clauses <= {"this", "partition_by", "over"}
        leaves_out_groups = self.select.args.get("having") or self._query_terms
        if not is_total or leaves_out_groups or self._has_several_sets():
            return None
        linear = read_linear_sum(window.this.this, self._answer_sum)
        partition = self._attributes_of_partition(window.args.get("partition_by") or [])
        if linear is None or partition is None or linear.shift:
            return None
        numbers = [term.number for term, _ in linear.factors if term.partition is None]
        has_units = any(self._answers[number].kind == "units" for number in numbers)
        if len(numbers) < len(linear.factors) or has_units:  # a unit may be in several groups
            return None
        factors = [factor for _, factor in linear.factors]
        totals = [AnswerTerm(number, partition) for number in numbers]
        return LinearSum(tuple(zip(totals, factors, strict=True)))

    def _attributes_of_partition(self, nodes: Sequence[Node]) -> tuple[str, ...] | None:
        """Return the attributes of PARTITION BY; None if it splits groups."""
        groups = [
            self._group_in_placeholder(node) if isinstance(node, self.exp.Column) else None
            for node in nodes
        ]
        attributes = {group.attribute for group in groups if group is not None}
        is_whole = all(
            (group in groups) == (group.attribute in attributes) for group in self._groups
        )
        return tuple(sorted(attributes)) if is_whole and None not in groups else None

    def _has_several_sets(self) -> bool:
        """Return whether GROUP BY has several grouping sets or hidden columns."""
        group = self.select.args.get("group")
        names = ("rollup", "cube", "grouping_sets")
        has_sets = group is not None and any(group.args.get(name) for name in names)
        return has_sets or self._are_added_up

    def _answer_node(self, aggregate: Aggregate) -> Node:
        """Return the column of an aggregate's answers, adding it if it is new.

        The answers are added up if a group has the rows of several released groups.
        """
        if aggregate not in self._answers:
            self._answers.append(aggregate)
        column = self.exp.column(answer_column(self._answers.index(aggregate)), quoted=True)
        if self._are_added_up:
            return self.exp.Sum(this=column)
        return column

    def _is_aggregate(self, node: Node) -> bool:
        """Return whether a node is an aggregate function, perhaps with FILTER."""
        exp = self.exp
        if isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
            return self._is_aggregate(node.this)
        return isinstance(node, exp.AggFunc)

    def _rewritten(self, node: Node, clause: str) -> Node:
        """Translate an expression to columns of the released table.

        Raises:
            InputError: an aggregate cannot be answered, or a column is not a column of groups.
        """
        exp = self.exp
        text = _comparable_text(node)
        if text in self._joint_groups:
            index = [*self._joint_groups].index(text)
            return exp.column(joint_column(index), quoted=True)
        group = self._group_of_text.get(text)
        if group is None and isinstance(node, exp.Column):
            group = self._same_group(node, clause)
        if group is not None:
            return exp.column(group_column(group), quoted=True)
        if text in self._failed_texts:
            return node.copy()  # its error is recorded already
        if isinstance(node, exp.Window):
            return self._rewritten_window(node, clause)
        if isinstance(node, exp.Grouping):
            return self._grouping(node)
        if self._is_aggregate(node):
            return self._rewritten_aggregate(node, clause)
        if isinstance(node, (exp.Subquery, exp.Select)):
            return self.translate(node)
        if isinstance(node, exp.Column):
            return self._alias_or_fault(node, clause)
        return with_safe_function(self._rewritten_children(node, clause))

    def _rewritten_aggregate(self, node: Node, clause: str) -> Node:
        """Translate an aggregate to columns of the released table."""
        exp = self.exp
        if node.find(exp.Window, exp.Select):
            raise refused(node.sql("duckdb"), "Aggregate columns of the table")
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
            node = node.this
        group_value = self._value_of_groups(node, clause)
        if group_value is not None:
            return group_value
        return self._aggregates.expression(node)

    def _value_of_groups(self, node: Node, clause: str) -> Node | None:
        """Return MIN, MAX or ANY_VALUE's value if each group has only one, or None.

        The argument is a column with one value in each group, such as the region of a shop. In
        ORDER BY, the argument may also be the column whose ranges are the groups.
        """
        exp = self.exp
        kinds = (exp.AnyValue, exp.First, exp.Min, exp.Max)
        is_plain = isinstance(node, kinds) and node.this is not None and not node.expressions
        if not is_plain or len(self._sets) != 1 or self._are_added_up:
            return None
        try:
            attribute, values = self.columns.values(clause, node.this)
        except InputError:
            return None
        groups = [self._groups[index] for index in self._sets[0]]
        keys = [group.keys for group in groups if group.attribute == attribute]
        if not keys:
            return None
        members: dict[tuple[object, ...], list[int]] = {}
        for part, key in enumerate(zip(*keys, strict=True)):
            members.setdefault(key, []).append(part)
        if all(len({values[part] for part in parts}) == 1 for parts in members.values()):
            added = GroupColumn(node.sql("duckdb"), attribute, values)
            if added not in self._groups:
                self._groups.append(added)
                self._sets = [(*self._sets[0], self._groups.index(added))]
            return exp.column(group_column(self._groups.index(added)), quoted=True)
        kind = self.columns.domain.kind(attribute)
        is_ordered = not isinstance(kind, Categories)
        if clause != "ORDER BY" or not is_ordered or not isinstance(node.this, exp.Column):
            return None
        regular = [
            (key, [part for part in parts if part < kind.regular]) for key, parts in members.items()
        ]
        return self._order_of_ranges(attribute, [entry for entry in regular if entry[1]])

    def _order_of_ranges(
        self, attribute: str, members: Sequence[tuple[tuple[object, ...], list[int]]]
    ) -> Node | None:
        """Return SQL for the order of groups that are ranges; None if they overlap."""
        exp = self.exp
        ranges = sorted((parts[0], parts[-1]) for _, parts in members)
        if any(first[1] > second[0] for first, second in pairwise(ranges)):
            return None
        numbers = [index for index in self._sets[0] if self._groups[index].attribute == attribute]
        order = exp.Case()
        for key, parts in members:
            conditions = [
                exp.NullSafeEQ(
                    this=exp.column(group_column(number), quoted=True),
                    expression=exp.convert(value),
                )
                for number, value in zip(numbers, key, strict=True)
            ]
            order = order.when(exp.and_(*conditions), exp.Literal.number(parts[0]), copy=False)
        return order

    def _rewritten_children(self, node: Node, clause: str) -> Node:
        """Return a copy of a node whose children are translated."""
        copy = node.copy()
        for key, value in node.args.items():
            if isinstance(value, self.exp.Expression):
                copy.set(key, self._rewritten(value, clause))
            elif isinstance(value, list):
                copy.set(
                    key,
                    [
                        self._rewritten(entry, clause)
                        if isinstance(entry, self.exp.Expression)
                        else entry
                        for entry in value
                    ],
                )
        return copy

    def _rewritten_window(self, window: Node, clause: str) -> Node:
        """Translate a window function over aggregates."""
        if not self._groups and not self._has_aggregates():
            raise refused(
                "A window function (OVER) over rows",
                "Use it over aggregates, such as SUM(SUM(x)) OVER (...), with GROUP BY",
            )
        function = window.this
        copy = self._rewritten_children(_without_function(window, self.exp), clause)
        copy.set("this", self._rewritten_function(function, clause))
        return copy

    def _has_aggregates(self) -> bool:
        """Return whether the columns of SELECT contain aggregates of rows."""
        return any(
            self._is_aggregate(node) and not isinstance(node.parent, self.exp.Window)
            for expression in self.select.expressions
            for node in expression.find_all(self.exp.AggFunc)
        )

    def _rewritten_function(self, function: Node, clause: str) -> Node:
        """Translate the arguments of a window function."""
        exp = self.exp
        if isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
            copy = self._rewritten_children(_without_function(function, exp), clause)
            copy.set("this", self._rewritten_function(function.this, clause))
            return copy
        return self._rewritten_children(function, clause)

    def _same_group(self, column: Node, clause: str) -> int | None:
        """Return the index of a group column under another name, or None."""
        try:
            attribute, keys = self.columns.values(clause, column)
        except InputError:
            return None
        for number, group in enumerate(self._groups):
            if (group.attribute, group.keys) == (attribute, keys):
                return number
        return None

    def _alias_or_fault(self, column: Node, clause: str) -> Node:
        """Return the expression of an alias; raise if a column is not allowed."""
        alias = column.name.lower()
        if not column.table and alias in self._aliases:
            return self.exp.Paren(this=self._aliases[alias].copy())
        failed = [node for node in self.select.expressions if id(node) in self._failed]
        if self.faults.messages and any(node.alias.lower() == alias for node in failed):
            return column.copy()  # the error of the alias is recorded already
        name = column.sql("duckdb")
        if clause == "ORDER BY":
            raise refused(f"ORDER BY {name}", "Order by columns of SELECT, groups or aggregates")
        self.columns.find(clause, column)  # raises for a name that does not exist
        if self.select.args.get("group") is None:
            raise refused(f"{clause} {name} without GROUP BY", "Add GROUP BY")
        raise refused(f"{clause} {name}, which GROUP BY does not name,", "Add it to GROUP BY")

    def _grouping(self, node: Node) -> Node:
        """Translate GROUPING(a, b) to columns of the released table.

        GROUPING returns a number with a bit for each column that is absent from the grouping set.
        """
        exp = self.exp
        total = exp.Literal.number(0)
        for argument in node.expressions:
            number = self._group_of_text.get(_comparable_text(argument))
            if number is None:
                raise refused(f"GROUPING({argument.sql('duckdb')})", "Name columns of GROUP BY")
            absent = exp.column(absent_column(number), quoted=True)
            double = exp.Mul(this=exp.Paren(this=total), expression=exp.Literal.number(2))
            total = exp.Add(this=double, expression=absent)
        return exp.Paren(this=total)

    # --- the other clauses ------------------------------------------------------------------------

    def _query_without_table(self, outputs: Sequence[ComputedColumn]) -> Node:
        """Build the query on the released table, still without FROM."""
        exp = self.exp
        is_distinct = bool(self.select.args.get("distinct")) and not self._shows_all_groups(outputs)
        query = exp.Select(expressions=output_nodes(outputs, with_ends=not is_distinct))
        if is_distinct:
            query.set("distinct", self.select.args["distinct"].copy())
        self._set_conditions(query)
        if self.select.args.get("windows"):
            query.set(
                "windows",
                [self._rewritten_children(node, "WINDOW") for node in self.select.args["windows"]],
            )
        if self._are_added_up and self._written_groups:
            groups = [self._rewritten(node, "GROUP BY") for node in self._written_groups]
            query.set("group", exp.Group(expressions=groups))
        order = self.select.args.get("order")
        if order is not None:
            query.set("order", exp.Order(expressions=[*self._order_terms(order)]))
        for key in ("limit", "offset"):
            if self.select.args.get(key) is not None:
                query.set(key, self.select.args[key].copy())
        return query

    def _set_conditions(self, query: Node) -> None:
        """Set HAVING, QUALIFY and the like in a query, in place."""
        exp = self.exp
        conditions: list[Node] = []
        for term in self._query_terms:
            with self.faults.collect(term):
                conditions.append(self._rewritten(term, "WHERE"))
        having = self.select.args.get("having")
        if having is not None:
            with self.faults.collect(having):
                condition = self._rewritten(having.this, "HAVING")
                if self._are_added_up:
                    query.set("having", exp.Having(this=condition))
                else:
                    conditions.append(condition)
        qualify = self.select.args.get("qualify")
        if qualify is not None:
            with self.faults.collect(qualify):
                condition = self._rewritten(qualify.this, "QUALIFY")
                query.set("qualify", exp.Qualify(this=condition))
        if conditions:
            query.set("where", exp.Where(this=exp.and_(*conditions)))

    def _shows_all_groups(self, outputs: Sequence[ComputedColumn]) -> bool:
        """Return whether SELECT has every group column, so rows are distinct."""
        shown = [projection.column.group for projection in outputs]
        distinct = self.select.args["distinct"]
        return distinct.args.get("on") is None and all(group in shown for group in self._groups)

    def _order_terms(self, order: Node) -> Iterator[Node]:
        """Yield the terms of ORDER BY, with positions replaced by column names."""
        exp = self.exp
        aliases = {node.alias.lower() for node in self.select.expressions}
        for term in order.expressions:
            copy = term.copy()
            key = term.this
            is_alias = isinstance(key, exp.Column) and not key.table and key.name.lower() in aliases
            if isinstance(key, exp.Literal):
                count = len(self.select.expressions)
                if not key.name.isdecimal() or not 0 < int(key.name) <= count:
                    self.faults.add(
                        term,
                        f"ORDER BY {key.sql('duckdb')} cannot be answered. Use the number of a "
                        "column of SELECT.",
                    )
                    continue
                alias = self.select.expressions[int(key.name) - 1].alias
                copy.set("this", exp.column(alias, quoted=True))
            elif is_alias:
                copy.set("this", exp.column(key.name, quoted=True))
            else:
                with self.faults.collect(term):
                    copy.set("this", self._rewritten(key, "ORDER BY"))
            yield copy


def _window_ends(window: Node) -> tuple[int | None, int | None] | None:
    """Return a window's first and last group, relative to the current; or None.

    The result is None for other windows. The window of LAG and LEAD consists of one group. The
    window of a running SUM ends at the current group.
    """
    from sqlglot import exp

    function = window.this
    spec = window.args.get("spec")
    if isinstance(function, exp.Sum):
        if spec is None:
            return None, 0
        is_running = (
            spec.args.get("end") in (None, "CURRENT ROW")
            and spec.args.get("start_side") == "PRECEDING"
            and not spec.args.get("exclude")
        )
        start = spec.args.get("start")
        if not is_running or spec.args.get("kind") not in ("ROWS", "RANGE"):
            return None
        if start == "UNBOUNDED":
            return None, 0
        number = constant_number(start) if isinstance(start, exp.Expression) else None
        if number is None or spec.args.get("kind") != "ROWS":
            return None
        return -int(number), 0
    offset = function.args.get("offset")
    steps = Fraction(1) if offset is None else constant_number(offset)
    if spec is not None or function.args.get("default") or steps is None:
        return None
    sign = 1 if isinstance(function, exp.Lead) else -1
    return sign * int(steps), sign * int(steps)


def with_safe_function(node: Node) -> Node:
    """Return a function that gives NULL where noisy numbers would make it fail."""
    from sqlglot import exp

    if type(node) is exp.Cast:
        return exp.TryCast(**node.args)
    if isinstance(node, exp.IntDiv):  # released numbers are not integers
        return exp.Trunc(this=exp.Div(this=node.this.copy(), expression=node.expression.copy()))
    is_simple = not node.find(exp.Window, exp.Select, exp.AggFunc)
    if type(node).__name__ in _CAN_FAIL and is_simple:
        return exp.Anonymous(this="TRY", expressions=[node.copy()])
    return node


def is_star(node: Node) -> bool:
    """Return whether a column of SELECT is ``*`` or ``table.*``."""
    from sqlglot import exp

    return isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def check_clauses(select: Node, faults: Faults, allowed: set[str]) -> None:
    """Record an error for each clause of a SELECT that is not allowed."""
    for clause, value in select.args.items():
        if value and clause not in allowed:
            name = clause.rstrip("_").removesuffix("s")
            if isinstance(value, list):
                node = value[0]
            else:
                node = value
            if hasattr(node, "walk"):
                place = node
            else:
                place = select
            faults.add(
                place, refused(name.upper(), CLAUSE_ADVICE.get(name, "Leave it out")).args[0]
            )


def output_nodes(outputs: Sequence[ComputedColumn], *, with_ends: bool) -> list[Node]:
    """Return the SELECT columns of a query, each followed by its interval's ends."""
    from sqlglot import exp

    nodes = []
    for number, projection in enumerate(outputs):
        noise = projection.noise
        nodes.append(exp.alias_(projection.node, projection.column.name, quoted=True))
        if with_ends and noise is not None and noise.low is not None and noise.high is not None:
            nodes.append(exp.alias_(noise.low.copy(), low_column(number), quoted=True))
            nodes.append(exp.alias_(noise.high.copy(), high_column(number), quoted=True))
    return nodes


def _comparable_text(node: Node) -> str:
    """Return the text of an expression, with normalised column names."""
    from sqlglot import exp

    def plain(part: Node) -> Node:
        """Return a column with its name in lower case."""
        if isinstance(part, exp.Column) and not isinstance(part.this, exp.Star):
            return exp.column(part.name.lower(), quoted=True)
        return part

    return str(node.unnest().transform(plain).sql("duckdb"))


def _without_function(window: Node, exp: Any) -> Node:
    """Replace the function of a window by a constant."""
    copy = window.copy()
    copy.set("this", exp.Literal.number(0))
    return copy


def _union(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """Return the members of two grouping sets, each once."""
    return tuple(dict.fromkeys((*first, *second)))


def _rolled_up(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return ROLLUP's grouping sets: all columns, all columns but the last, ..."""
    return [tuple(chain.from_iterable(sets[:size])) for size in range(len(sets), -1, -1)]


def _cube(sets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the grouping sets of CUBE: every subset, the largest first."""
    grouping_sets = []
    for size in range(len(sets), -1, -1):
        grouping_sets += [
            tuple(chain.from_iterable(members)) for members in combinations(sets, size)
        ]
    return grouping_sets


def _table(number: int) -> Node:
    """Return the SQL table that stands for a numbered released table."""
    from sqlglot import exp

    return exp.Table(this=exp.to_identifier(table_name(number), quoted=True))
