"""Count rows in an engine (E7 of PROOFS-reading.md).

The engine encodes rows, bounds the rows of units and counts; it returns only counts of cells.

An adapter provides an `Engine`, which has the types of its columns and a function that runs queries
on one snapshot. The same SQL is used for all engines.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from sqlglot import exp

from leastnoise._trusted.check import InternalError
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.domain import (
    READ_AS_IT_IS,
    KeyTable,
    PerUnit,
    Reading,
    UnitCount,
    UnitTotal,
    ValueCount,
    column_measures,
)
from leastnoise._trusted.reading._column import (
    Chunks,
    Column,
    CountRequest,
    SchemaField,
    Source,
    by_columns,
    chunk_batches,
    unsupported_column,
)
from leastnoise._trusted.reading._rules_sql import (
    ContentKind,
    Expression,
    Value,
    amount_of,
    cell_of,
    clipped,
    combined_amount,
    prepare_value,
    sql,
    unit_of,
)
from leastnoise._trusted.reading._units import MOST_CUT, RowUsage, cut_limit
from leastnoise._trusted.reading.helpers._column_types import database_value_types
from leastnoise._trusted.table import TableKey, group_attribute_sets

# If there are more cells than this, which take 512 MiB as counts, the program reads and counts the
# rows itself.
MOST_CELLS = 2**26
# One requested table may be summed from a larger one that is counted. Such larger tables stay
# below 2^17 cells, as they would for this number of rows; the true number is private.
_ASSUMED_ROWS = 2**20
_KEY_BYTES = 16

Run = Callable[[exp.Select], Any]
Session = Callable[[str], AbstractContextManager[Run]]
Entropy = Callable[[int], bytes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Engine:
    """A database or Spark cluster that can count rows by SQL.

    Attributes:
        description: its name in messages.
        relation: the expression after FROM.
        values: for each usable column, the expression of its value and the content of that value.
        hashed: the expression of a keyed hash of a text; hashes are sorted by their bytes.
        numbered: the expression of such a hash as a whole number from 0 to 2^16 - 1.
        most_sets: the largest number of GROUPING SETS in one query; 1 if only a plain GROUP BY is
            possible.
        session: a function that takes the name in messages and returns a context manager. The
            context manager yields a function from a query to a reader of Arrow batches; all queries
            see one snapshot of the data. The context manager raises only InputError, without the
            engine's messages, which may quote a row.
        is_valid_text: returns the condition that a text is UTF-8 and has no NUL; None if this holds
            for every text.
        merges: whether the engine inserts the expressions of a subquery wherever they are named,
            unless the subquery has an OFFSET.
        home: the server or session of the relation. One query can use two relations if they have
            the same home, even if one of them is a relation of joined tables. None if it can use
            only this relation.
    """

    description: str
    relation: Expression
    values: Mapping[str, Value]
    hashed: Callable[[Expression], Expression]
    numbered: Callable[[Expression], Expression]
    most_sets: int
    session: Session
    is_valid_text: Callable[[Expression], Expression] | None = None
    merges: bool = False
    home: object = None

    def counts(
        self, request: CountRequest, entropy_bytes: Entropy
    ) -> tuple[dict[TableKey, IntArray], RowUsage | None] | None:
        """Count the requested tables in the engine; None if SQL cannot count them.

        Raises an `InputError` if the engine fails.

        Returns:
            The result has marginals from which all requested marginals follow. If ``usage`` is
            requested, the result also has the numbers of rows that are used, not used and cut (as
            in `Units.count_cut_rows`). The result is None if the engine's SQL cannot compute the
            tables; the rows must then be read. Whether it is None depends only on the request and
            on the types of the columns.

        Guarantees: as for `leastnoise._trusted.reading.read`. Which rows of a unit count depends
            only on the unit's rows and the key (E7).
        """
        if any(isinstance(m, UnitCount) and m.has_groups for m in request.sums.values()):
            return None  # a row may be in several groups
        covers = _covering_sets(request)
        counts_units = any(isinstance(measure, PerUnit) for measure in request.sums.values())
        rows = self._bounded_rows(request, entropy_bytes, flagged=counts_units)
        if rows is not None and request.rules:
            rows = (
                exp.select("*")
                .from_(self._once(rows).subquery("encoded"))
                .where(*_inside_domain(request))
            )
        if rows is not None and counts_units:
            rows = _with_unit_amounts(rows, request)
        # A sum beyond 64 bits would make the engine fail, and the failure would depend on a row.
        # Sums over 2^32 rows stay below 2^62, because `Measure` limits amounts to less than 2^30.
        cells = sum(math.prod(request.rules[name].size for name in cover) for cover in covers)
        if rows is None or cells > MOST_CELLS:
            return None
        tables: dict[TableKey, IntArray] = {}
        with self.session(self.description) as run:
            for start in range(0, len(covers), self.most_sets):
                some = covers[start : start + self.most_sets]
                answer = run(_marginals_query(rows, some, request)).read_all()
                for cover in some:
                    tables.update(_tables_of_answer(answer, cover, request))
        if not request.usage:
            return tables, None
        usage = self._usage(request, entropy_bytes)
        return tables, replace(usage, amounts=self._kept_and_cut(rows, request))

    def keys(self, request: CountRequest, entropy_bytes: Entropy) -> dict[str, int] | None:
        """Count the units that have each key; None if SQL cannot count them.

        The categories of the attribute are still unknown.

        The keys are the categories that a search is to find. Whether the result is None depends
        only on public facts. Raises an `InputError` if the engine fails.
        """
        (rule,) = request.rules.values()
        rows = self._bounded_rows(request, entropy_bytes)
        allowed = rule.table
        if rows is None or not isinstance(allowed, KeyTable):
            return None
        units_of: dict[str, int] = {}
        query = exp.select("c0", "COUNT(*) AS n").from_(rows.subquery("kept")).group_by("c0")
        with self.session(self.description) as run:
            for batch in run(query):
                for key, units in zip(
                    batch.column("c0").to_pylist(), batch.column("n").to_pylist(), strict=True
                ):
                    if key in units_of:
                        raise InternalError("A key was counted twice; please report this.")
                    units_of[key] = int(units)
        return {key: units for key, units in units_of.items() if allowed.allows(key)}

    def joined(
        self,
        other: "Engine",
        on: tuple[str, str],
        first_columns: Sequence[str],
        second_columns: Sequence[str],
        reading: Reading = READ_AS_IT_IS,
    ) -> "Engine | None":
        """Return the engine of this table left-joined with a second, or None (E10).

        A row gets the columns of its partner, a row of the second table.

        The tables are joined on one column of each. A query uses only the requested columns of the
        two tables. The result is None in two cases: one query cannot use both tables, or their keys
        have no SQL. Whether the result is None depends only on public facts.

        Guarantees: in columns of the second table, a row has the values of the one row there with
            the same key, or nulls.
        """
        keys = _unit_key(self, on[0], reading), _unit_key(other, on[1], reading)
        if self.home is None or self.home != other.home or keys[0] is None or keys[1] is None:
            return None

        @contextmanager
        def session(description: str) -> Iterator[Run]:
            """Open the sessions of both engines, and yield a function that runs queries."""
            # The relation of a source may exist only while its session is open.
            with other.session(description), self.session(description) as run:
                yield run

        named = {
            name: f"a{number}" for number, name in enumerate(first_columns) if name in self.values
        }
        joined_names = {
            name: f"b{number}" for number, name in enumerate(second_columns) if name in other.values
        }
        with_key = [
            _select_columns(
                {
                    **{short: table.values[name].expression for name, short in columns.items()},
                    "k": key,
                },
                table.relation.copy(),
            )
            for table, columns, key in ((self, named, keys[0]), (other, joined_names, keys[1]))
        ]
        with_times = exp.select("*", "COUNT(*) OVER (PARTITION BY k) AS times").from_(
            with_key[1].subquery("every")
        )
        single = (
            exp.select("*").from_(with_times.subquery("counted")).where(sql("times = :one", one=1))
        )
        tables = {
            **dict.fromkeys(named.values(), "one"),
            **dict.fromkeys(joined_names.values(), "other"),
        } or {"k": "one"}
        selected_columns = [
            exp.alias_(exp.column(name, table), name) for name, table in tables.items()
        ]
        rows = exp.select(*selected_columns).from_(with_key[0].subquery("one"))
        rows = rows.join(single.subquery("other"), on="one.k = other.k", join_type="left")
        values = {**other.values_named(joined_names), **self.values_named(named)}
        return replace(
            self,
            description=f"{self.description} joined with {other.description}",
            relation=rows.subquery("joined"),
            values=values,
            session=session,
        )

    def values_named(self, columns: Mapping[str, str]) -> dict[str, Value]:
        """Return the engine's values, each read from a query column of a new name."""
        return {
            name: Value(self.values[name].content, exp.column(short))
            for name, short in columns.items()
        }

    def _kept_and_cut(self, rows: exp.Select, request: CountRequest) -> dict[str, tuple[int, int]]:
        """Query the counted amount and the cut amount of each total of units (E8).

        ``rows`` must have the columns that `_with_unit_amounts` adds.
        """
        amounts: dict[str, tuple[int, int]] = {}
        for number, (name, measure) in enumerate(request.sums.items()):
            if not isinstance(measure, UnitTotal):
                continue
            in_cell = f"CASE WHEN eligible{number} = :one AND in_cell{number} = :one"
            beyond = sql(f"{in_cell} THEN ABS(total{number} - w{number}) ELSE :no END", one=1, no=0)
            cut_limit_sum = sql(f"SUM(stands{number}) * :most", most=cut_limit(measure.largest))
            sums = {
                "kept": sql(f"SUM(ABS(w{number}))"),
                "gone": sql("LEAST(SUM(:beyond), :chosen)", beyond=beyond, chosen=cut_limit_sum),
            }
            by_unit = _select_columns(sums, rows.subquery("with_totals")).group_by("u0")
            added = {
                column: sql(f"CAST(COALESCE(SUM({column}), :no) AS BIGINT)", no=0)
                for column in sums
            }
            with self.session(self.description) as run:
                answer = run(_select_columns(added, by_unit.subquery("by_unit"))).read_all()
            kept, cut = (int(answer.column(column)[0].as_py()) for column in added)
            amounts[name] = kept, cut
        return amounts

    def _usage(self, request: CountRequest, entropy_bytes: Entropy) -> RowUsage:
        """Query how many rows are used, not used and cut (E8)."""
        rows = self._bounded_rows(request, entropy_bytes)
        if rows is None:
            raise InternalError(
                "An engine accepted a count that it cannot make; please report this."
            )
        if request.hidden:
            rows = self._with_drawn_attribute(rows, request, entropy_bytes)
        used = exp.and_(*_inside_domain(request), sql("unreadable = :no", no=0))
        if request.filled:
            used = exp.and_(
                used, exp.or_(*(_in_no_hidden_cell(request, table) for table in request.filled))
            )
        unit = []
        if request.unit_column is not None:
            unit.append("u0")
        if unit:
            beyond = f"LEAST(MAX(every) - COUNT(*), {MOST_CUT} * COUNT(*))"
        else:
            beyond = ":no"
        numbers = {
            "n": exp.Count(this=exp.Star()),
            "k": sql("SUM(CASE WHEN :used THEN :one ELSE :no END)", used=used, one=1, no=0),
            "m": sql(beyond, no=0),
            **_net_hidden_cell_counts(request, used),
        }
        by_unit = _select_columns(numbers, self._once(rows).subquery("encoded")).group_by(*unit)
        sums = {name: sql(f"CAST(COALESCE(SUM({name}), :no) AS BIGINT)", no=0) for name in numbers}
        with self.session(self.description) as run:
            answer = run(_select_columns(sums, by_unit.subquery("by_unit"))).read_all()
        every, used_rows, cut, *lacking = (int(answer.column(name)[0].as_py()) for name in sums)
        return RowUsage(used=used_rows, unused=every - used_rows, cut=cut, lacking=tuple(lacking))

    def _with_drawn_attribute(
        self, rows: exp.Select, request: CountRequest, entropy_bytes: Entropy
    ) -> exp.Select:
        """Add the column ``drawn``, which has a random attribute for each row (E8).

        The column has the number of the attribute, which is computed from a keyed hash. If there is
        a unit column, the hash is of the row's position among the rows of its unit. If every row is
        a unit, the hash is of all values that decide whether the row is used, and of the row's
        position among the rows that agree in these values.
        """
        key = entropy_bytes(_KEY_BYTES).hex()
        if request.unit_column is None:
            columns = [*(f"c{number}" for number in range(len(request.rules))), "unreadable"]
            rows = _with_row_number(rows, columns, columns[:1], "place")
            texts = [f"CAST({column} AS TEXT)" for column in columns]
        else:
            texts = ["u0"]
        content = " || ':' || ".join([":key", *texts, "CAST(place AS TEXT)"])
        number = self.numbered(sql(content, key=key))
        hidden_number = sql(":number % :most", number=number, most=len(request.hidden))
        return exp.select("*", exp.alias_(hidden_number, "drawn")).from_(
            rows.subquery("with_place")
        )

    def _bounded_rows(
        self, request: CountRequest, entropy_bytes: Entropy, *, flagged: bool = False
    ) -> exp.Select | None:
        """Return the query of the encoded rows that count for their units, or None.

        Rows outside the domain are included.

        For unknown categories the query has only the rows with a key. The query's columns are the
        cell ``ci`` of each attribute i and the amount ``vi`` of each measure i. If ``flagged``, the
        query has all rows of units, and its column ``counts`` is 1 for rows that count and 0 for
        other rows. The result is None if a column has no SQL.
        """
        column_names = _source_columns(request)
        if not set(column_names) <= set(self.values):
            return None
        # Each value is computed once, in a column with a generated name.
        short_names = {name: f"r{number}" for number, name in enumerate(column_names)}
        values = self.values_named(short_names)
        prepared = [
            prepare_value(rule, values[rule.reading.column or name])
            for name, rule in request.rules.items()
        ]
        columns = self._encoded_columns(request, values, prepared)
        if any(column is None for column in columns.values()):
            return None
        raw = _select_columns(
            {short: self.values[name].expression for name, short in short_names.items()},
            self.relation.copy(),
        )
        prepared_columns = [
            exp.alias_(value.expression.copy(), f"p{number}")
            for number, value in enumerate(prepared)
            if value is not None
        ]
        raw = exp.select("*", *prepared_columns).from_(self._once(raw).subquery("raw"))
        rows = _select_columns(columns, self._once(raw).subquery("prepared"))
        if request.unit_column is not None:
            with_units = self._once(rows).subquery("with_units")
            rows = exp.select("*").from_(with_units).where("NOT u0 IS NULL")
        if any(isinstance(rule.table, KeyTable) for rule in request.rules.values()):
            with_keys = self._once(rows).subquery("with_keys")
            rows = exp.select("*").from_(with_keys).where("NOT c0 IS NULL")
        if request.unit_column is None:
            return rows
        return self._bounded(rows, list(columns), request, entropy_bytes, flagged=flagged)

    def _encoded_columns(
        self,
        request: CountRequest,
        values: Mapping[str, Value],
        prepared: Sequence[Value | None],
    ) -> dict[str, Expression | None]:
        """Return the SQL expressions of the encoded columns; None if one has none.

        The columns are the cell ``ci`` of each attribute i, the amount ``vi`` of each measure i,
        and, for a total of units, ``gi``: whether the row has an amount. If usage is requested,
        ``unreadable`` marks unreadable rows. ``u0`` is the unit.

        Args:
            request: the requested tables.
            values: the value of each source column.
            prepared: the prepared value of each attribute, which is read from the column ``pi`` of
                attribute i.
        """
        columns: dict[str, Expression | None] = {}
        for number, (rule, value) in enumerate(zip(request.rules.values(), prepared, strict=True)):
            if value is None:
                columns[f"c{number}"] = None
            else:
                stored = Value(value.content, exp.column(f"p{number}"))
                columns[f"c{number}"] = cell_of(rule, stored, self.is_valid_text)
        for number, measure in enumerate(request.sums.values()):
            parts = column_measures(measure)
            if parts:
                amounts = [amount_of(part, values[part.column]) for part in parts]
                columns[f"v{number}"] = combined_amount(measure, amounts)
        for number, measure in enumerate(request.sums.values()):
            if isinstance(measure, UnitTotal):
                part = measure.row_amount
                columns[f"g{number}"] = amount_of(ValueCount(part), values[part.column])
        if request.usage:
            columns["unreadable"] = _unreadable(request, values)
        if request.unit_column is not None:
            columns["u0"] = unit_of(values[request.unit_column], request.unit_reading)
        return columns

    def _once(self, query: exp.Select) -> exp.Select:
        """Wrap a query so that each expression is computed once for a row.

        Without the wrapping, an engine may compute an expression again at each place that names it.
        """
        return query.offset(0) if self.merges else query

    def _bounded(
        self,
        rows: exp.Select,
        names: list[str],
        request: CountRequest,
        entropy_bytes: Entropy,
        *,
        flagged: bool,
    ) -> exp.Select:
        """Number each unit's rows in random order, and keep ``max_rows`` of them.

        Rows are numbered in the order of their codes, and a keyed hash of these numbers makes the
        order random. If ``flagged``, all rows stay, and the column ``counts`` is 1 for rows that
        would be kept and 0 for other rows.
        """
        key = entropy_bytes(_KEY_BYTES).hex()
        rows = exp.select("*", "COUNT(*) OVER (PARTITION BY u0) AS every").from_(
            rows.subquery("of_units")
        )
        rows = _with_row_number(
            rows, ["u0"], [name for name in names if name != "u0"] or ["u0"], "place"
        )
        hashed = self.hashed(sql(":key || u0 || ':' || CAST(place AS TEXT)", key=f"{key}:"))
        if flagged:
            rows = exp.select("*", exp.alias_(hashed, "hashed")).from_(rows.subquery("placed"))
            rows = self._once(rows)
        turns: list[str | Expression] = [hashed, "place"]
        if flagged:
            turns[0] = "hashed"
        partition = ["u0"]
        if request.max_per_cell is not None:
            partition_of_cell = ["u0", *_cell_columns(request, request.max_per_cell.attributes)]
            most = request.max_per_cell.rows
            rows = _with_row_number(
                rows, partition_of_cell, turns, "within", None if flagged else most
            )
            if flagged:
                rows = _with_flag(rows, "stays", sql("within <= :most", most=most))
                partition.append("stays")
        rows = _with_row_number(
            rows, partition, turns, "turn", None if flagged else request.max_rows
        )
        if not flagged:
            return rows
        counts = sql("turn <= :most", most=request.max_rows)
        if request.max_per_cell is not None:
            counts = exp.and_(counts, sql("stays = :one", one=1))
        return _with_flag(rows, "counts", counts)


def _with_unit_amounts(rows: exp.Select, request: CountRequest) -> exp.Select:
    """Add a column ``wi`` with the amounts of units, for each measure i (E12).

    In each cell, one row represents the unit. In this row, the column has the amount of the unit;
    in the unit's other rows, it has 0. The query must have flagged rows inside the domain. Each row
    has a turn, which is its position in a random order. In each cell, the row with the first turn
    represents the unit; if values are added up, only rows that have a value can represent it.
    ``max_per_cell`` limits the number of rows that represent a unit in each of its cells, and
    ``max_rows`` limits their number in all cells. Rows with earlier turns are chosen first.
    """
    turns: list[str | Expression] = [*_hidden_cell_count(request), "hashed", "place"]
    for number, measure in enumerate(request.sums.values()):
        if not isinstance(measure, PerUnit):
            continue
        most = 1
        if measure.attributes:
            most = request.max_rows
        attribute_cells = _cell_columns(request, measure.attributes)
        cell = ["u0", *attribute_cells]
        if isinstance(measure, UnitTotal):
            # Hidden cells also have totals, because tables without the attribute include them.
            eligible = sql(f"g{number} = :one", one=1)
        else:
            published = {
                name: request.hidden[name] for name in measure.attributes if name in request.hidden
            }
            eligible = _in_no_hidden_cell(request, published)
        rows = _with_flag(rows, f"eligible{number}", eligible)
        # With the unit first in all partitions, a server sorts the table once, and then only the
        # rows of each unit.
        partition = ["u0", f"eligible{number}", *attribute_cells]
        rows = _with_row_number(rows, partition, turns, f"in_cell{number}")
        first = sql(f"eligible{number} = :one AND in_cell{number} = :one", one=1)
        if request.max_per_cell is not None:
            rows = _with_flag(rows, f"alone{number}", first)
            partition_of_cell = [
                "u0",
                f"alone{number}",
                *_cell_columns(request, request.max_per_cell.attributes),
            ]
            rows = _with_row_number(rows, partition_of_cell, turns, f"bounded{number}")
            within = sql(f"bounded{number} <= :most", most=request.max_per_cell.rows)
            first = exp.and_(sql(f"alone{number} = :one", one=1), within)
        rows = _with_flag(rows, f"first{number}", first)
        rows = _with_row_number(rows, ["u0", f"first{number}"], turns, f"cell{number}")
        stands = exp.and_(
            sql(f"first{number} = :one", one=1), sql(f"cell{number} <= :most", most=most)
        )
        amount = sql(":one", one=1)
        if isinstance(measure, UnitTotal):
            rows = _with_total(_with_flag(rows, f"stands{number}", stands), cell, number)
            stands = sql(f"stands{number} = :one", one=1)
            amount = clipped(exp.column(f"total{number}"), measure.low_units, measure.high_units)
        rows = _with_flag(rows, f"w{number}", stands, amount)
    return rows


def _with_total(rows: exp.Select, cell_columns: Sequence[str], measure_number: int) -> exp.Select:
    """Add a column with the sum of a measure over all rows in the same cell."""
    total = exp.Window(
        this=exp.Sum(this=exp.column(f"v{measure_number}")),
        partition_by=[exp.column(column) for column in cell_columns],
    )
    named = exp.alias_(exp.cast(total, "BIGINT"), f"total{measure_number}")
    return exp.select("*", named).from_(rows.subquery(f"before_total{measure_number}"))


def _sorted_positions(order: Sequence[str], names: Iterable[str]) -> tuple[int, ...]:
    """Return the positions of attribute names in a list, in ascending order."""
    return tuple(sorted(order.index(name) for name in names))


def _unit_columns(request: CountRequest) -> list[str]:
    """Return the unit's column in a list, which is empty if rows are units."""
    if request.unit_column is None:
        return []
    return [request.unit_column]


def _with_flag(
    rows: exp.Select, name: str, condition: Expression, amount: Expression | None = None
) -> exp.Select:
    """Add a column with ``amount`` in rows that satisfy a condition, else with 0."""
    if amount is None:
        amount = sql(":one", one=1)
    flag = sql(
        "CASE WHEN :condition THEN :amount ELSE :no END", condition=condition, amount=amount, no=0
    )
    return exp.select("*", exp.alias_(flag, name)).from_(rows.subquery(f"before_{name}"))


def _unit_key(engine: Engine, name: str, reading: Reading) -> Expression | None:
    """Return SQL for the key of a row's unit; None if the column has none.

    Rows with equal keys belong to one unit.
    """
    value = engine.values.get(name)
    return None if value is None else unit_of(value, reading)


def _unreadable(request: CountRequest, values: Mapping[str, Value]) -> Expression:
    """Return SQL that is 1 if a value of a measure is infinite, otherwise 0.

    In a column of numbers, only an infinity is such a value.
    """
    columns = {
        part.column for measure in request.sums.values() for part in column_measures(measure)
    }
    infinite = [values[column].is_infinite() for column in sorted(columns)]
    return sql(
        "CASE WHEN :infinite THEN :yes ELSE :no END",
        infinite=exp.or_(exp.false(), *infinite),
        yes=1,
        no=0,
    )


def _select_columns(columns: Mapping[str, Expression], source: Expression) -> exp.Select:
    """Build a query that selects named expressions from a source.

    If there are no columns, the query selects a constant, because a query must have a column.
    """
    return exp.select(
        *[
            exp.alias_(it.copy(), name)
            for name, it in (columns or {"nothing": sql(":zero", zero=0)}).items()
        ]
    ).from_(source)


def _inside_domain(request: CountRequest) -> list[Expression]:
    """Return SQL conditions that a row is inside the domain, by attribute."""
    return [sql(f"c{number} >= :least", least=0) for number in range(len(request.rules))]


def _net_hidden_cell_counts(request: CountRequest, used: Expression) -> dict[str, Expression]:
    """Return SQL sums of +1 for rows in a hidden cell and -1 for other rows.

    There is one sum for each attribute with a hidden cell. Each sum is over the used rows for which
    its attribute was drawn.
    """
    sums = {}
    for number, (column, hidden) in enumerate(
        zip(_cell_columns(request, [*request.hidden]), request.hidden.values(), strict=True)
    ):
        of_attribute = exp.and_(used.copy(), sql("drawn = :number", number=number))
        sums[f"l{number}"] = sql(
            f"SUM(CASE WHEN NOT (:drawn) THEN :no WHEN {column} = :hidden "
            "THEN :one ELSE -:one END)",
            drawn=of_attribute,
            hidden=hidden,
            one=1,
            no=0,
        )
    return sums


def _hidden_cell_count(request: CountRequest) -> list[Expression]:
    """Return a list with SQL for the number of hidden cells of a row.

    The list is empty if there are no hidden cells.
    """
    if not request.hidden:
        return []
    parts = (
        sql(f"CASE WHEN {column} = :hidden THEN 1 ELSE 0 END", hidden=hidden)
        for column, hidden in zip(
            _cell_columns(request, [*request.hidden]), request.hidden.values(), strict=True
        )
    )
    return [reduce(lambda one, other: sql(":one + :other", one=one, other=other), parts)]


def _in_no_hidden_cell(request: CountRequest, hidden_cells: Mapping[str, int]) -> Expression:
    """Return SQL for the condition that a row is in no hidden cell of a table."""
    columns = _cell_columns(request, [*hidden_cells])
    return exp.and_(
        exp.true(),
        *(
            sql(f"{column} < :hidden", hidden=hidden)
            for column, hidden in zip(columns, hidden_cells.values(), strict=True)
        ),
    )


def _cell_columns(request: CountRequest, attributes: Sequence[str]) -> list[str]:
    """Return the names of the query columns with the cells of the attributes."""
    return [f"c{list(request.rules).index(name)}" for name in attributes]


def _with_row_number(
    rows: exp.Select,
    group_columns: Sequence[str],
    order: Sequence[str | Expression],
    name: str,
    most_rows: int | None = None,
) -> exp.Select:
    """Add a column that numbers the rows of each group, in a given order.

    Rows with equal values in the columns ``group_columns`` form a group. If ``most_rows`` is
    passed, only rows with numbers up to ``most_rows`` are kept.
    """
    turns = exp.Order(
        expressions=[
            exp.Ordered(this=exp.maybe_parse(column).copy(), nulls_first=True) for column in order
        ]
    )
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[exp.column(column) for column in group_columns],
        order=turns,
    )
    numbered = exp.select("*", exp.alias_(number, name)).from_(rows.subquery(f"before_{name}"))
    if most_rows is None:
        return numbered
    return (
        exp.select("*")
        .from_(numbered.subquery(f"by_{name}"))
        .where(sql(f"{name} <= :most", most=most_rows))
    )


def _source_columns(request: CountRequest) -> list[str]:
    """Return the distinct columns of all attributes, measures and the unit."""
    names = [rule.reading.column or name for name, rule in request.rules.items()]
    for measure in request.sums.values():
        names += [part.column for part in column_measures(measure)]
    return [*dict.fromkeys([*names, *_unit_columns(request)])]


def _covering_sets(request: CountRequest) -> list[tuple[str, ...]]:
    """Return attribute sets whose tables suffice to compute all requested tables."""
    order = list(request.rules)
    sizes = [rule.size for rule in request.rules.values()]
    requested = sorted(set(chain.from_iterable(request.tables.values())))
    groups = group_attribute_sets(
        [_sorted_positions(order, names) for names in requested], sizes, _ASSUMED_ROWS
    )
    return [tuple(order[position] for position in group.attributes) for group in groups]


def _marginals_query(
    rows: exp.Select, attribute_sets: Sequence[tuple[str, ...]], request: CountRequest
) -> exp.Select:
    """Return the query for the counts and sums in the cells of several marginals.

    In the result, a row of one marginal has nulls in the columns of all other attributes.
    """
    counts_units = any(isinstance(measure, PerUnit) for measure in request.sums.values())
    if counts_units:
        rows_that_count = "CAST(COALESCE(SUM(counts), 0) AS BIGINT)"
    else:
        rows_that_count = "COUNT(*)"
    numbers = [f"{rows_that_count} AS n"]
    for number, measure in enumerate(request.sums.values()):
        if counts_units:
            amount = f"v{number} * counts"
        else:
            amount = f"v{number}"
        if isinstance(measure, PerUnit):
            amount = f"w{number}"
        numbers.append(f"CAST(COALESCE(SUM({amount}), 0) AS BIGINT) AS s{number}")
    sets = [_cell_columns(request, cover) for cover in attribute_sets]
    used = sorted(set(chain.from_iterable(sets)), key=lambda name: int(name[1:]))
    query = exp.select(*used, *numbers).from_(rows.subquery("kept"))
    if len(sets) > 1:
        return query.group_by(
            exp.GroupingSets(
                expressions=[
                    exp.Tuple(expressions=[exp.column(name) for name in names]) for names in sets
                ]
            )
        )
    return query.group_by(*sets[0]) if sets[0] else query


def _tables_of_answer(
    answer: Any, attributes: tuple[str, ...], request: CountRequest
) -> Iterator[tuple[TableKey, IntArray]]:
    """Convert the engine's answer for one set of attributes to arrays of counts.

    Yields one array for each measure, and one array of the counts of rows. Rows of the answer that
    belong to other marginals are ignored.
    """
    import pyarrow as pa

    of_cover = np.ones(answer.num_rows, dtype=np.bool_)
    columns = _cell_columns(request, attributes)
    # A row belongs to this marginal if its columns have a cell and all other columns are null.
    for column in answer.column_names:
        if column.startswith("c"):
            of_cover &= answer.column(column).is_null().to_numpy() != (column in columns)
    answer = answer.filter(pa.array(of_cover))
    shape = tuple(request.rules[name].size for name in attributes)
    cells = [answer.column(column).cast(pa.int64()).to_numpy() for column in columns]
    if attributes:
        where = np.ravel_multi_index(cells, shape)
    else:
        where = np.zeros(answer.num_rows, dtype=np.int64)
    if len(np.unique(where)) != len(where):
        raise InternalError("A cell was counted twice; please report this.")
    numbers: dict[str | None, str] = {
        None: "n",
        **{name: f"s{number}" for number, name in enumerate(request.sums)},
    }
    for measure, column in numbers.items():
        if measure in request.tables:
            counts = np.zeros(math.prod(shape), dtype=np.int64)
            counts[where] = answer.column(column).cast(pa.int64()).to_numpy()
            yield (measure, attributes), counts


@dataclass(frozen=True, slots=True)
class Type:
    """How columns of one database type are queried and converted to arrays.

    Attributes:
        read: a function that converts the received array to a column.
        content: the content of an engine's value; None if the rows must be read.
        selected: the expression that is requested instead of the column. The expression is chosen
            so that no value makes the query fail; None if the column itself is requested.
        value: the expression of its value; None if this is the requested expression.
        arrow: the alias of the Arrow type of its values in a schema; None if there is no such type.
    """

    read: Callable[[Any], Column]
    content: ContentKind | None = None
    selected: Callable[[Expression], Expression] | None = None
    value: Callable[[Expression], Expression] | None = None
    arrow: str | None = None

    def sent(self, name: str) -> Expression:
        """Return the SELECT expression that fetches a column of this type.

        The expression is named after the column.
        """
        column = exp.column(exp.to_identifier(name, quoted=True))
        if self.selected is None:
            return column
        return self.selected(column)


INSTANTS = "instants"
"""Instead of an alias: time stamps with a time zone."""
UNREAD = Type(unsupported_column, selected=lambda column: sql(":it IS NULL", it=column))


def values_of(types: Mapping[str, Type]) -> dict[str, Value]:
    """Return the SQL value of each column that the engine can encode, by name.

    >>> values_of({"a": Type(to_column, "integer"), "b": UNREAD})["a"].content
    'integer'
    """
    return {
        name: Value(kind.content, replace(kind, selected=kind.value or kind.selected).sent(name))
        for name, kind in types.items()
        if kind.content
    }


def engine_source(
    engine: Engine, types: Mapping[str, Type], fields: Sequence[SchemaField], session: Session
) -> Source:
    """Return a `Source` whose rows an engine can count or send.

    Args:
        engine: the engine.
        types: the treatment of each column.
        fields: the columns, in order. A name may occur twice.
        session: as for the engine, except that the batches of an answer need not be in memory
            together.
    """

    def chunks(columns: list[str]) -> Chunks[Column]:
        """Query the columns, and yield them chunk by chunk."""
        query = _select_columns(
            {f"c{number}": types[name].sent(name) for number, name in enumerate(columns)},
            engine.relation.copy(),
        )
        with session(engine.description) as run:
            yield from chunk_batches(
                run(query), [(number, types[name].read) for number, name in enumerate(columns)]
            )

    return Source(
        description=engine.description,
        fields=tuple(fields),
        total=None,
        encoded=by_columns(chunks),
        engine=engine,
        holds=database_value_types((field.name, field.type_name) for field in fields),
    )


def engine_field(name: str, type_name: str, column_type: Type, *, is_not_null: bool) -> SchemaField:
    """Return the schema entry of a database column.

    ``column_type`` determines how the column is read.

    In the schema of an engine an instant has no zone.
    """
    import pyarrow as pa

    instants = column_type.arrow == INSTANTS
    arrow_type = None
    if instants:
        arrow_type = pa.timestamp("us", "UTC")
    elif column_type.arrow is not None:
        arrow_type = pa.type_for_alias(column_type.arrow)
    return SchemaField(
        name=name,
        type=arrow_type,
        type_name=type_name,
        readable=column_type is not UNREAD,
        required=is_not_null,
        zone="" if instants else None,
    )
