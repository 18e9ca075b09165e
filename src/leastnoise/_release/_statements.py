"""The answers of a SQL statement as its own table, with the columns that it names and the interval of each answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from leastnoise._check import InputError, refuse
from leastnoise._check.arrays import Array, FloatArray
from leastnoise._domain import UnitCount
from leastnoise._frames import Columns, Names
from leastnoise._workload import Aggregate, Grouped, Statement, read_statements
from leastnoise._workload import Workload as Asked

Numbers = Callable[[Asked], tuple[FloatArray, FloatArray, FloatArray]]
"""The answers to what a column asks, and the lower and upper ends of their intervals, one axis an attribute."""


def statement_of(workload: Asked, unit: str | None, text: str) -> Statement:
    """The one statement of a text, over the domain of what was asked."""
    once = UnitCount()  # of the attributes of such a count the rows of a unit agree
    agree = {
        name for product in workload if product.measure and product.domain.measure(product.measure) == once for name in product.attributes
    }
    read = read_statements(workload.domain, [text], unit, sorted(agree))
    if len(read) != 1:
        raise refuse("the SQL that a table answers", f"{len(read)} statements", "one")
    return read[0]


def asked_before(workload: Asked, asked: Asked) -> int | None:
    """The place of what a column asks among the statistics, or else the tables, of a workload; None where it was not asked for."""
    if asked.statistics:
        known = [replace(statistic, size=None, target=None) for statistic in workload.statistics]
        return known.index(asked.statistics[0]) if asked.statistics[0] in known else None
    questions, question = [product.question for product in workload], asked.products[0].question
    return questions.index(question) if question in questions else None


def check_statements(workload: Asked, unit: str | None, texts: Sequence[str]) -> None:
    """Refuse statements of which a plan does not have every table, before anything is paid for it."""
    for text in texts:
        statement = statement_of(workload, unit, text)
        for asked in (statement.asked(aggregate, grouping) for grouping in statement.sets for aggregate in statement.aggregates):
            if asked_before(workload, asked) is None:
                name = (asked.statistics or asked.products)[0].name
                raise InputError(f"The statement {text!r} needs {name}, which the plan does not have. Ask for it with leastnoise.sql.")


def answered(statement: Statement, numbers: Numbers) -> Columns:
    """One column a name of SELECT, and beside an answer its interval: ``n``, ``n_low``, ``n_high``; a row a group.

    Guarantees: groups without rows are there too; of a set of groups, columns that are not in it are None, as in SQL.
    """
    parts = [_of_set(statement, grouping, numbers) for grouping in statement.sets]
    names = Names(set())
    columns: Columns = {}
    for at, column in enumerate(statement.columns):
        together = [np.concatenate(arrays) for arrays in zip(*(part[at] for part in parts), strict=True)]
        if isinstance(column, Grouped):
            kinds = {type(value) for value in together[0].tolist() if value is not None}
            if len(kinds) > 1:  # whole numbers beside a cell of other values
                together = [np.array([None if value is None else str(value) for value in together[0].tolist()], dtype=object)]
        called = [column.name] if isinstance(column, Grouped) else [column.name, f"{column.name}_low", f"{column.name}_high"]
        columns |= {names.give(name): values for name, values in zip(called, together, strict=True)}
    names_given = [*columns]
    starts = np.cumsum([0, *(1 if isinstance(column, Grouped) else 3 for column in statement.columns)])
    order = [*range(len(columns[names_given[0]]))]
    for at, down in reversed(statement.order):  # what is not there comes last
        values = columns[names_given[starts[at]]].tolist()
        known = [row for row in order if values[row] is not None and values[row] == values[row]]
        are_texts = not all(isinstance(values[row], (int, float)) for row in known)
        keys = [str(value) if are_texts else value for value in values]
        known.sort(key=keys.__getitem__, reverse=down)
        there = {*known}
        order = [*known, *(row for row in order if row not in there)]
    return {name: values[order[: statement.limit]] for name, values in columns.items()}


def _of_set(statement: Statement, grouping: Sequence[int], numbers: Numbers) -> list[list[Array]]:
    """The arrays of every column for one set of groups."""
    along = {name: keys for name, (_, keys) in statement.along(grouping, statement.cells).items()}
    rows = [dict(zip(along, row, strict=True)) for row in product(*along.values())]
    made: list[list[Array]] = []
    for column in statement.columns:
        if isinstance(column, Aggregate):
            made.append(_of_answers(statement, column, grouping, along, numbers))
            continue
        group = statement.groups.index(column)
        of_attribute = [at for at in grouping if statement.groups[at].attribute == column.attribute]
        values = [row[column.attribute][of_attribute.index(group)] if group in of_attribute else None for row in rows]
        made.append([np.array([*values, None], dtype=object)[:-1]])
    return made


def _of_answers(
    statement: Statement, aggregate: Aggregate, grouping: Sequence[int], along: Mapping[str, Sequence[object]], numbers: Numbers
) -> list[Array]:
    """An answer with its interval for every group; where FILTER leaves no cell of a group, an exact 0 of counts and sums."""
    keys_along = {name: keys for name, (_, keys) in statement.along(grouping, statement.kept(aggregate)).items()}
    wanted = [np.array([keys.index(key) if key in keys else -1 for key in along.get(name, keys)]) for name, keys in keys_along.items()]
    gone = np.zeros([len(at) for at in wanted], dtype=np.bool_)
    for axis, at in enumerate(wanted):
        gone |= (at < 0).reshape([-1 if axis == other else 1 for other in range(len(wanted))])
    empty = np.nan if aggregate.kind in ("mean", "quantile") else 0.0
    shape = tuple(map(len, keys_along.values()))
    taken = (
        values.reshape(shape)[np.ix_(*wanted)] if wanted else values.reshape(()) for values in numbers(statement.asked(aggregate, grouping))
    )
    return [np.where(gone, empty, values).reshape(-1) for values in taken]
