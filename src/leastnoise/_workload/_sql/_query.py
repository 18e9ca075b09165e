"""Run the query of a statement on its released tables, in an empty DuckDB.

The database reaches no file, no network and no variable of Python. The tables of the database
contain only public groups of the selections and released numbers.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import Array
from leastnoise._workload._sql._expression_values import plain_value, released_database
from leastnoise._workload._sql._statement import (
    Selection,
    Statement,
    absent_column,
    answer_column,
    combination_high_column,
    combination_low_column,
    group_column,
    high_column,
    low_column,
    table_name,
)

ReleasedColumns = Mapping[str, Array]
"""The columns of a released table: answers, and the ends of their intervals."""


def set_keys(selection: Selection, grouping: Sequence[int]) -> list[list[object]]:
    """Return the keys of a grouping set's groups, as one list per group column."""
    along = selection.group_keys(grouping, selection.condition)
    rows = [dict(zip(along, row, strict=True)) for row in product(*along.values())]
    columns: list[list[object]] = []
    for number, group in enumerate(selection.groups):
        if number not in grouping:
            columns.append([None] * len(rows))
            continue
        same_attribute = [
            index for index in grouping if selection.groups[index].attribute == group.attribute
        ]
        position = same_attribute.index(number)
        columns.append([row[group.attribute][position] for row in rows])
    return columns


def count_groups(selection: Selection, grouping: Sequence[int]) -> int:
    """Return the number of groups of a grouping set."""
    along = selection.group_keys(grouping, selection.condition)
    return int(np.prod([len(keys) for keys in along.values()], dtype=np.int64))


def run_query(statement: Statement, answers: Sequence[ReleasedColumns]) -> list[list[Any]]:
    """Compute the answer to a statement; return a list of values per column.

    Args:
        statement: the statement.
        answers: for each selection, the columns of answers and the columns with the ends of their
            intervals.

    Raises:
        InputError: DuckDB cannot compute the query.
    """
    import duckdb

    with released_database() as database:
        for number, (selection, columns) in enumerate(
            zip(statement.selections, answers, strict=True)
        ):
            database.register(table_name(number), _table(selection, columns))
        try:
            result = database.execute(statement.query)
            names = [entry[0] for entry in result.description]
            rows = result.fetchall()
        except duckdb.Error as error:
            reason = _plain_reason(str(error))
            raise InputError(
                f"The statement cannot be computed from its groups and aggregates: {reason}. "
                "Change it so that DuckDB accepts it."
            ) from None
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]


def check_query(statement: Statement) -> None:
    """Check that DuckDB can compute a statement's query if all answers are 0.

    Raises:
        InputError: DuckDB cannot compute it; the message states its reason.
    """
    answers = []
    for selection in statement.selections:
        selection.check_size()
        count = sum(count_groups(selection, grouping) for grouping in selection.sets)
        names = []
        for number in range(len(selection.aggregates)):
            names += [answer_column(number), low_column(number), high_column(number)]
        for number in range(len(selection.combinations)):
            names += [combination_low_column(number), combination_high_column(number)]
        answers.append(dict.fromkeys(names, np.zeros(count)))
    run_query(statement, answers)


def _table(selection: Selection, answers: ReleasedColumns) -> Any:
    """Convert released answers to a PyArrow table."""
    import pyarrow as pa

    keys: list[list[object]] = [[] for _ in selection.groups]
    absent: list[list[int]] = [[] for _ in selection.groups]
    for grouping in selection.sets:
        for number, column in enumerate(set_keys(selection, grouping)):
            keys[number] += column
            absent[number] += [int(number not in grouping)] * len(column)
    columns: dict[str, Any] = {}
    for number, column in enumerate(keys):
        columns[group_column(number)] = _key_array(column)
        columns[absent_column(number)] = pa.array(absent[number], pa.int32())
    for name, values in answers.items():
        columns[name] = pa.array(values, pa.float64(), from_pandas=True)  # NaN as NULL
    return pa.table(columns)


def _key_array(keys: Sequence[object]) -> Any:
    """Convert group keys to a PyArrow array of a common type."""
    import pyarrow as pa

    values = [key for key in keys if key is not None]
    types = {type(value) for value in values}
    if types == {bool}:
        return pa.array(keys, pa.bool_())
    if types == {int}:
        return pa.array(keys, pa.int64())
    if types and types <= {int, float}:
        return pa.array(keys, pa.float64())
    if values and all(isinstance(value, str) and _is_day(value) for value in values):
        days = [None if key is None else dt.date.fromisoformat(str(key)) for key in keys]
        return pa.array(days, pa.date32())
    return pa.array([None if key is None else _text(key) for key in keys], pa.string())


def _text(key: object) -> str:
    """Convert a group key to text; truth values are written as in SQL."""
    if isinstance(key, bool):
        return str(key).lower()
    return str(key)


def _is_day(text: str) -> bool:
    """Return whether a text has the form of an ISO date."""
    return re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is not None


def _plain_reason(text: str) -> str:
    """Return the first line of DuckDB's message, with readable column names."""
    reason = text.splitlines()[0].strip(" .")
    return re.sub(
        r'" (group|joint|answer|low|high|absent|released|combination low|combination high) (\d+)"',
        r"\1 \2",
        reason,
    )


def to_array(values: Sequence[Any], *, are_noisy: bool) -> Array:
    """Convert a column of an answer to a NumPy array.

    Noisy numbers are floats, with NaN for NULL. All other values are objects.
    """
    plain: list[Any] = [plain_value(value) for value in values]
    are_numbers = all(
        isinstance(value, (int, float)) and not isinstance(value, bool)
        for value in plain
        if value is not None
    )
    if are_noisy and are_numbers:
        return np.array([np.nan if value is None else float(value) for value in plain])
    return np.array([*plain, None], dtype=object)[:-1]
