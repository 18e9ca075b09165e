"""Compute SQL expressions of one attribute for all values of its column.

An attribute has regular cells. After the regular cells come two parts that every column has in SQL:
nulls, and values that are not in the domain's list. DuckDB computes an expression for public values
of the cells, for a null, and for values outside the domain. DuckDB uses an empty database without
access to files. So conditions have the three truth values of SQL, and a null falls into ELSE.
"""

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any

from leastnoise._domain import (
    FOLDED,
    Bins,
    Categories,
    Coded,
    Dates,
    Decimals,
    Edges,
    Integers,
    Kind,
    Label,
    period_of,
)
from leastnoise._trusted.check import InputError

Node = Any
"""A node of sqlglot's syntax tree; its base class has several names in its versions."""
FindColumn = Callable[[Node], tuple[str, str | None]]
"""For the node of a column: its attribute, and its level if it names a level."""


class Undecided(Enum):
    """Marks an expression whose value is not the same for all values outside."""

    UNDECIDED = "undecided"


UNDECIDED = Undecided.UNDECIDED

_COMPARISONS = "N?EQ|NullSafeN?EQ|[GL]TE?|Between|In|Is"
_CARRIERS = (
    "Column|Identifier|Literal|Boolean|Null|Neg|Paren|Case|If|Coalesce|Nullif|DType|DataType"
)
_COMPARED = f"{_COMPARISONS}|{_CARRIERS}|And|Or|Not"
_COMPUTED = (
    f"{_COMPARED}|Add|Sub|Mul|Div|IntDiv|Mod|Floor|Ceil|Round|Abs|Cast|TryCast|Substring|Left|Right"
    "|Upper|Lower|Initcap|Trim|Length|I?Like|StartsWith|Concat|DPipe|DateTrunc|TimestampTrunc"
    "|Extract|Year|Quarter|Month|Week|Day|DayOfWeek|DayOfMonth|Date|TsOrDsToDate|TimeToStr"
    "|StrToTime|Interval|Var|Tuple|DateBin|Dayname|DayOfWeekIso|DayOfYear|LastDay|Monthname"
    "|WeekOfYear|DateDiff|DateFromParts|Contains|ConcatWs|EndsWith|Greatest|Least|Pad|Pow"
    "|RegexpExtract|RegexpLike|RegexpReplace|Reverse|Replace|Sign|SimilarTo|SplitPart|StrPosition"
    "|Trunc"
)
_VALUE = " value"
_MOST_ROWS = 2_000_000  # the most public values for which an expression is computed
_EPOCH = dt.date(1970, 1, 1)


def refused(clause: str, advice: str) -> InputError:
    """Return the error for a clause that cannot be answered, with advice."""
    return InputError(f"{clause} cannot be answered. {advice}.")


@dataclass(frozen=True, slots=True)
class ColumnParts:
    """Numbers the parts of a column: regular cells, then nulls, outside values.

    Attributes:
        regular: the number of regular cells, which are the parts 0 to ``regular - 1``.
        has_outside: whether a value can be outside the domain; False if all outside values are
            clipped.
    """

    regular: int
    has_outside: bool

    @classmethod
    def of(cls, kind: Kind) -> "ColumnParts":
        """Return the parts of an attribute's column."""
        is_complete = is_boolean(kind) and kind.outside == "drop"
        return cls(kind.regular, kind.outside != "clip" and not is_complete)

    @property
    def null(self) -> int:
        """The number of the part with nulls."""
        return self.regular

    @property
    def outside(self) -> int:
        """The number of the part with values outside the domain."""
        return self.regular + 1

    @property
    def all(self) -> range:
        """The numbers of all parts."""
        return range(self.regular + 1 + self.has_outside)


def is_boolean(kind: Kind) -> bool:
    """Return whether an attribute's only categories are true and false."""
    return isinstance(kind, Categories) and {str(label).lower() for label in kind.values} <= {
        "true",
        "false",
    }


def column_values(kind: Kind, level_name: str | None) -> tuple[object, ...]:
    """Return, for each part of a column, its value or the value of its level."""
    labels: Sequence[Label] = kind.regular_labels
    if level_name is not None:
        level = kind.level(level_name)
        labels = [level.labels[group] for group in level.cells[: kind.regular]]
        if are_whole_numbers(level.labels):
            labels = [*map(int, labels)]
    elif is_boolean(kind):
        labels = [str(label).lower() == "true" for label in labels]
    if ColumnParts.of(kind).has_outside:
        outside = [UNDECIDED]
    else:
        outside = []
    return (*labels, None, *outside)


def are_whole_numbers(labels: Sequence[Label]) -> bool:
    """Return whether all labels are whole numbers in their usual notation."""
    return all(re.fullmatch("0|-?[1-9][0-9]{0,17}", str(label)) for label in labels)


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute in a clause of a statement."""

    name: str
    kind: Kind
    clause: str


def expression_values(
    attribute: Attribute,
    node: Node,
    find: FindColumn,
    sql_type: str | None = None,
    counted_parts: frozenset[int] | None = None,
) -> tuple[object, ...]:
    """Return the value of an expression in each part of its column.

    Args:
        attribute: the attribute.
        node: the expression; all its columns must belong to this attribute.
        find: a function that looks up the columns of the expression.
        sql_type: the SQL type of the result; None for no cast.
        counted_parts: the parts where the expression must have one value; None for all parts. In
            other parts an expression may have several values; the result is then ``UNDECIDED``.

    Returns:
        One value for each part; ``UNDECIDED`` if the values outside the domain give different
        results.

    Raises:
        InputError: a function is not allowed, the expression has several values within a cell, or
            DuckDB cannot compute it.
    """
    kind = attribute.kind
    _check_functions(attribute, node)
    expression = _Expression(attribute, node, find, sql_type)
    pairs = expression.regular_values()
    if len(pairs) > _MOST_ROWS:
        raise refused(
            f"{attribute.clause} of {attribute.name}, which has {len(pairs)} values,",
            "Give the attribute coarser cells",
        )
    parts = ColumnParts.of(kind)
    results = expression.compute([*pairs, (parts.null, None)])
    for part, values in results.items():
        is_counted = counted_parts is None or part in counted_parts
        if len(values) > 1 and not is_counted:
            results[part] = {UNDECIDED}
        elif len(values) > 1:
            raise refused(
                f"{attribute.clause} that cuts through the cell {kind.labels[part]} of "
                f"{attribute.name}",
                "Its values would be in two groups, and only the cell is counted; "
                + _finer_cells(attribute, part),
            )
    if parts.has_outside:
        outside = [expression.value_outside()]
    else:
        outside = []
    return (*(results[part].pop() for part in range(parts.regular + 1)), *outside)


def _finer_cells(attribute: Attribute, part: int) -> str:
    """Return advice on cells where an expression has a single value."""
    advice = f"give [domain.{attribute.name}] finer cells"
    kind = attribute.kind
    if not isinstance(kind, (Bins, Edges)):
        return advice
    if kind.closed == "left" and part == kind.regular - 1:
        return f"{advice}, or a last edge above its end, which this cell includes"
    comparisons = ">= and <" if kind.closed == "left" else "> and <="
    return f"{advice}, or compare with the edges of cells, by {comparisons}"


def truth_values(attribute: Attribute, node: Node, find: FindColumn) -> tuple[object, ...]:
    """Return whether a condition is True, False or None in each part.

    In a part, the result may also be ``UNDECIDED``.
    """
    from sqlglot import exp

    if isinstance(node, exp.Column):
        values = column_values(attribute.kind, find(node)[1])[: attribute.kind.regular]
        if not (is_boolean(attribute.kind) or all(isinstance(value, int) for value in values)):
            raise refused(
                f"{attribute.clause} {node.name}, which is neither true nor false,",
                "Compare it with a value",
            )
    return expression_values(attribute, node, find, "BOOLEAN")


def constant_truth(clause: str, node: Node) -> bool:
    """Evaluate a condition without columns, such as ``1 = 1``."""
    import duckdb

    for part in node.walk():
        if not re.fullmatch(_COMPUTED, type(part).__name__):
            raise refused(f"{function_name(part)} in {clause}", "Leave the constant out")
    try:
        ((value,),) = _query(f"SELECT CAST(({node.sql('duckdb')}) AS BOOLEAN)", [])
    except duckdb.Error as error:
        raise InputError(
            f"{clause} cannot be computed: {str(error).splitlines()[0]}. Leave the constant out."
        ) from None
    return value is True


def _check_functions(attribute: Attribute, node: Node) -> None:
    """Raise if an expression uses a function that is not supported."""
    from sqlglot import exp

    binned = isinstance(attribute.kind, (Bins, Edges))
    for part in node.walk():
        is_of_bins = binned and part.find(exp.Column) is not None
        if not re.fullmatch(_COMPARED if is_of_bins else _COMPUTED, type(part).__name__):
            raise refused(f"{function_name(part)} in {attribute.clause}", _advice(attribute, part))


def function_name(node: Node) -> str:
    """Return the SQL name of the function that a node calls."""
    from sqlglot import exp

    if isinstance(node, exp.Binary) and not isinstance(node, exp.Func):
        return node.sql("duckdb")
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper()
    names: Sequence[str]
    if hasattr(node, "sql_names"):
        names = node.sql_names()
    else:
        names = []
    if names:
        return names[0]
    return type(node).__name__.upper()


def _advice(attribute: Attribute, node: Node) -> str:
    """Return advice for an unsupported function in a condition."""
    if isinstance(attribute.kind, (Bins, Edges)):
        return f"Bins of {attribute.name} are compared only with their edges"
    return "Make a level of the attribute, and group by it"


class _Expression:
    """An expression of one attribute that DuckDB evaluates for public values."""

    def __init__(
        self, attribute: Attribute, node: Node, find: FindColumn, result_type: str | None
    ) -> None:
        from sqlglot import exp

        self._exp: Any = exp
        self._of = attribute
        self._kind = attribute.kind
        self._node = node
        self._find = find
        self._result_type = result_type
        self._column_type, self._stand_ins = stand_ins(attribute.kind, self._numbers())
        names = {find(column)[1] for column in node.find_all(exp.Column)}
        self._levels = {name: attribute.kind.level(name) for name in names if name is not None}

    def regular_values(self) -> list[tuple[int, Any]]:
        """Return pairs of a regular cell and a value in it."""
        return self._stand_ins

    def compute(
        self, pairs: Sequence[tuple[int, Any]], column_type: str | None = None
    ) -> dict[int, set[object]]:
        """Evaluate the expression for some values; return its results by part.

        Raises:
            InputError: the expression cannot be computed for these values.
        """
        import duckdb

        columns = {_VALUE: (column_type or self._column_type, [value for _, value in pairs])}
        for level_name, level in self._levels.items():
            groups: list[Any] = [
                str(level.labels[level.cells[part]]) if part < self._kind.regular else None
                for part, _ in pairs
            ]
            level_type = "BIGINT" if are_whole_numbers(level.labels) else "VARCHAR"
            columns[level_name] = (level_type, groups)
        unnested = ", ".join(
            f"unnest(?::{sql_type}[]) AS {_quoted(title)}"
            for title, (sql_type, _) in columns.items()
        )
        table = f'SELECT unnest(?::INTEGER[]) AS " part", {unnested}'
        # The text has only nodes that are allowed.
        query = f'SELECT " part", {self._text()} FROM ({table})'  # noqa: S608
        arguments = [[part for part, _ in pairs], *(values for _, values in columns.values())]
        try:
            rows = _query(query, arguments)
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{self._of.clause} cannot be computed over the values of {self._of.name}: {reason}"
            ) from None
        results: dict[int, set[object]] = {}
        for part, value in rows:
            results.setdefault(part, set()).add(plain_value(value))
        return results

    def value_outside(self) -> object:
        """Return the value, if it is equal for all values outside, or UNDECIDED."""
        import duckdb

        if not self._only_compares():
            return UNDECIDED
        part = ColumnParts.of(self._kind).outside
        # A column of whole numbers may hold others, too.
        is_number = not isinstance(self._kind, (Categories, Dates))
        try:
            pairs = [(part, value) for value in self._values_outside()]
            if pairs:
                results = self.compute(pairs, "DOUBLE" if is_number else None)
            else:
                results = {}
        except (InputError, duckdb.Error):
            return UNDECIDED
        values = results.get(part, set())
        if len(values) == 1:
            return values.pop()
        return UNDECIDED

    def _text(self) -> str:
        """Return the expression as SQL text, with stand-ins for its columns."""

        def renamed(node: Node) -> Node:
            """Replace a column by its stand-in."""
            if not isinstance(node, self._exp.Column):
                return node
            return self._exp.column(self._find(node)[1] or _VALUE, quoted=True)

        text = str(self._node.transform(renamed).sql("duckdb"))
        if self._result_type is None:
            return text
        return f"CAST(({text}) AS {self._result_type})"

    def _numbers(self) -> list[Fraction]:
        """Return the numbers in the expression, and their negatives."""
        literals = [node for node in self._node.find_all(self._exp.Literal) if not node.is_string]
        numbers = [Fraction(literal.name) for literal in literals]
        return [*numbers, *(-number for number in numbers)]

    def _only_compares(self) -> bool:
        """Return whether the expression only compares the column with constants.

        The result of such an expression changes only at the constants of the comparisons.
        """
        allowed = f"{_COMPARISONS}|{_CARRIERS}"
        if isinstance(self._kind, Categories):
            allowed = allowed.replace("[GL]TE?|Between|", "")
        for column in self._node.find_all(self._exp.Column):
            if self._find(column)[1] is not None:
                return False
            node = column
            while node is not self._node and not self._is_condition(node):
                node = node.parent
                if not re.fullmatch(f"{allowed}|And|Or|Not", type(node).__name__):
                    return False
        return True

    def _is_condition(self, node: Node) -> bool:
        """Return whether a node's value is always true, false or null."""
        conditions = (
            *(self._exp.EQ, self._exp.NEQ, self._exp.NullSafeEQ, self._exp.NullSafeNEQ),
            *(self._exp.GT, self._exp.GTE, self._exp.LT, self._exp.LTE),
            *(self._exp.Between, self._exp.In, self._exp.Is),
        )
        return isinstance(node, conditions)

    def _values_outside(self) -> Iterator[object]:
        """Yield values that represent all values outside the domain."""
        if isinstance(self._kind, Categories):
            yield from self._texts_outside(self._kind)
        elif isinstance(self._kind, Dates):
            yield from self._days_outside(self._kind)
        else:
            yield from numbers_outside(self._kind, self._constants("DOUBLE"))

    def _texts_outside(self, kind: Categories) -> Iterator[object]:
        """Yield constants that are not categories, and two unused texts.

        The two texts do not occur in the expression.
        """
        listed = kind.lookup
        texts = self._constants("VARCHAR")
        yield from (text for text in texts if text and kind.reading.form(text) not in listed)
        if self._column_type == "BIGINT":
            numbers = [int(text) for text in (*texts, *listed) if re.fullmatch("-?[0-9]+", text)]
            beyond = max(map(abs, numbers), default=0)
            yield from (beyond + 1, beyond + 2)
            return
        longest = max(map(len, (*texts, *listed)))
        yield from ("\u2026" * (longest + 1), "\u2026" * (longest + 2))

    def _days_outside(self, kind: Dates) -> Iterator[object]:
        """Yield days outside the domain, near each constant and bound."""
        if kind.by in FOLDED or kind.by == "hour":
            return  # the values of the column are not days
        days = [time.date() for time in self._constants("TIMESTAMP")]
        numbers = {day.toordinal() for day in (*days, kind.start, kind.end)}
        around = sorted({number + shift for number, shift in product(numbers, range(-2, 3))})
        for number in around:
            if dt.date.min.toordinal() <= number <= dt.date.max.toordinal():
                day = dt.date.fromordinal(number)
                if not kind.start <= day <= kind.end:
                    yield day.isoformat()

    def _constants(self, sql_type: str) -> list[Any]:
        """Return the values of constant subexpressions, converted to one type."""
        texts = [
            f"TRY_CAST(CAST(({node.sql('duckdb')}) AS VARCHAR) AS {sql_type})"
            for node in self._constant_nodes(self._node)
        ]
        if not texts:
            return []
        (values,) = _query(f"SELECT {', '.join(texts)}", [])
        return [value for value in values if value is not None]

    def _constant_nodes(self, node: Node) -> Iterator[Node]:
        """Yield the largest subexpressions without columns."""
        if isinstance(node, self._exp.Column):
            return
        is_branch = isinstance(node, self._exp.If) and isinstance(node.parent, self._exp.Case)
        if node.find(self._exp.Column) or is_branch:
            for child in node.iter_expressions():
                yield from self._constant_nodes(child)
        elif isinstance(node, (self._exp.Condition, self._exp.Cast)):
            yield node


def _quoted(title: str) -> str:
    """Quote a name as an SQL identifier."""
    return '"' + title.replace('"', '""') + '"'


@cache
def _database() -> Any:
    """Return a connection to an empty DuckDB without access to files."""
    import duckdb

    return duckdb.connect(":memory:", config={"enable_external_access": False, "threads": 1})


@cache
def _sealed_database() -> Any:
    """Return an empty DuckDB connection without access to files or variables."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": False,
        "python_enable_replacements": False,
        "lock_configuration": True,
        "threads": 1,
    }
    return duckdb.connect(":memory:", config=config)


def released_database() -> AbstractContextManager[Any]:
    """Return a context manager with a DuckDB connection for released tables.

    Closing the connection drops its tables.
    """
    return closing(_sealed_database().cursor())


def _query(text: str, arguments: Sequence[object]) -> list[tuple[Any, ...]]:
    """Run a query that names no table, and return its rows."""
    with _database().cursor() as cursor:
        rows: list[tuple[Any, ...]] = cursor.execute(text, list(arguments)).fetchall()
    return rows


def plain_value(value: object) -> object:
    """Convert a DuckDB value to a group key: whole numbers plain, times as text."""
    if isinstance(value, dt.datetime):
        is_midnight = value.time() == dt.time()
        if is_midnight:
            return value.date().isoformat()
        return value.isoformat(" ", "minutes")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (float, Decimal)):
        if not math.isfinite(value):
            return float(value)
        if value == int(value):
            return int(value)
        return float(value)
    return value


def stand_ins(kind: Kind, compared: Iterable[Fraction]) -> tuple[str, list[tuple[int, Any]]]:
    """Return a column's SQL type, and (cell, value) pairs for all its values.

    The values of any expression of the column follow from these pairs. Usually the pairs contain
    all values. For bins, they contain every edge, every compared number, and one number between
    each two neighbours among these. Between two of these numbers, the result of a comparison does
    not change.
    """
    if isinstance(kind, (Bins, Edges)):
        return "DOUBLE", _numbers_in_bins(kind, sorted(set(compared)))
    if isinstance(kind, Dates) and kind.by not in FOLDED:
        return _times(kind)
    labels: Sequence[Label] = kind.regular_labels
    if isinstance(kind, Decimals):
        return "DOUBLE", [(cell, float(Fraction(label))) for cell, label in enumerate(labels)]
    if is_boolean(kind):
        return "BOOLEAN", [
            (cell, str(label).lower() == "true") for cell, label in enumerate(labels)
        ]
    are_whole = all(isinstance(label, int) for label in labels)
    if are_whole:
        return "BIGINT", list(enumerate(labels))
    return "VARCHAR", list(enumerate(map(str, labels)))


def _numbers_in_bins(kind: Bins | Edges, compared: Sequence[Fraction]) -> list[tuple[int, Any]]:
    """Return (cell, number) pairs that represent all numbers in the bins."""
    pairs = []
    for cell, (low, high) in enumerate(pairwise(kind.edges)):
        cuts = [low, *(number for number in compared if low < number < high), high]
        numbers = {*cuts[1:-1], *((below + above) / 2 for below, above in pairwise(cuts))}
        if kind.closed == "left" or cell == 0:
            numbers.add(low)
        if kind.closed == "right" or cell == kind.regular - 1:
            numbers.add(high)
        pairs += [(cell, float(number)) for number in sorted(numbers)]
    return pairs


def _times(kind: Dates) -> tuple[str, list[tuple[int, Any]]]:
    """Return the SQL type, and days or hours with their cells.

    There is a pair for each day, or for both ends of each hour.
    """
    count = (kind.end - kind.start).days + 1
    days = [kind.start + dt.timedelta(days=number) for number in range(count)]
    if kind.by != "hour":
        return "DATE", [
            (period_of((day - _EPOCH).days * 24, kind.by) - kind.first, day.isoformat())
            for day in days
        ]
    times = []
    for cell, (day, hour) in enumerate(product(days, range(24))):
        start = f"{day.isoformat()} {hour:02}"
        times.append((cell, f"{start}:00:00"))
        times.append((cell, f"{start}:59:59.999999"))
    return "TIMESTAMP", times


def numbers_outside(kind: Kind, compared: Sequence[float]) -> list[float]:
    """Return numbers that represent all numbers outside the domain.

    There is one number for each interval between compared numbers.

    >>> numbers_outside(Integers(0, 9), [5])
    [-2.0, -1.0, 2.5, 6.333333333333333, 10.0, 11.0]
    >>> numbers_outside(Bins(0, 9, 3), [5, 20])
    [-2.0, -1.0, 14.5, 20.0, 21.0, 22.0]
    """
    if isinstance(kind, Coded):
        low = 0
        high = kind.codes - 1
    else:
        low = kind.low  # type: ignore[attr-defined]
        high = kind.high  # type: ignore[attr-defined]
    cuts = sorted({*map(Fraction, compared), Fraction(low), Fraction(high)})
    numbers = {*cuts, cuts[0] - 2, cuts[0] - 1, cuts[-1] + 1, cuts[-1] + 2}
    for below, above in pairwise(cuts):
        # One of these is not a value of the domain, unless all between the cuts are.
        between = [below + (above - below) / divisor for divisor in (2, 3, 5, 7, 11, 13, 1009)]
        numbers.update([number for number in between if _is_outside(kind, number)][:1])
    return [float(number) for number in sorted(numbers) if _is_outside(kind, number)]


def _is_outside(kind: Kind, number: Fraction) -> bool:
    """Return whether a number is outside the domain of an attribute."""
    if isinstance(kind, Coded):
        return not (number.denominator == 1 and 0 <= number < kind.codes)
    if not isinstance(kind, (Integers, Decimals, Bins, Edges)):
        return False
    if not kind.low <= number <= kind.high:
        return True
    if isinstance(kind, Integers):
        return kind.rounding is None and number.denominator != 1
    return isinstance(kind, Decimals) and ((number - kind.low) / kind.step).denominator != 1


def constant_number(node: Node | None) -> Fraction | None:
    """Return the number that a literal states, or None for other nodes."""
    from sqlglot import exp

    if isinstance(node, (exp.Paren, exp.Cast, exp.TryCast)):
        return constant_number(node.this)
    if isinstance(node, exp.Neg):
        number = constant_number(node.this)
        return None if number is None else -number
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    return Fraction(node.name)


def number_literal(number: Fraction) -> Node:
    """Return a number as an SQL literal."""
    from sqlglot import exp

    if number.denominator == 1:
        text = str(int(number))
    else:
        text = repr(float(number))
    return exp.Literal.number(text)
