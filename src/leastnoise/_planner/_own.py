"""A strategy of the user's own: what is measured along an attribute as an array, queries or an operator, or a function of the task.

It is planned like the families: cells along every other attribute, the best weights of the tables, exact scales, and the error of what is
really measured. Real coefficients are scaled to norm 1 and rounded to a dyadic grid, as those of the families are.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from leastnoise._check import InputError, LeastNoiseError, quoted, refuse
from leastnoise._check.arrays import Array
from leastnoise._families import MOST_DENSE, Undetermined, column_norm, first_cells, on_runs, to_dyadic
from leastnoise._linop import Coarse, Dense, Operator, apply
from leastnoise._measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._planner._strategy import Planner, Strategy, Task
from leastnoise._planner._tables import Candidates, asked_tables, factor_along, weighted_strategy
from leastnoise._workload import QuerySet, Workload, query_set

OWN = "own"
_MOST_BITS = 29  # of the attributes of a table together: a sum of 2^32 rows times them must stay below 2^62
Own: TypeAlias = Any
"""An array or an operator along the only attribute asked about; a mapping from attributes to arrays, operators or query sets; or a function
from a `Task` to one of these, or to a `Strategy`."""
_ALLOWED = (
    "'auto', a name, an array of numbers (queries x cells), a mapping from attributes to arrays or query sets, or a function of the task "
    "that returns one of these"
)


def own_planner(given: Own) -> Planner:
    """The planner of a strategy that was given in place of a name; a function is called once a kind of noise."""
    if given is None or isinstance(given, (str, bool, int, float)):
        raise refuse("strategy", given, _ALLOWED)
    return Planner(name=OWN, propose=lambda task: _proposed(given, task), measures="what was given", made_for="a strategy of one's own")


def _proposed(given: Own, task: Task) -> Strategy:
    known: Own = _returned(given, task) if callable(given) and not _is_operator(given) else given
    if isinstance(known, Strategy):
        return replace(known, name=OWN)
    names = task.workload.attributes
    if not isinstance(known, Mapping):
        if len(names) != 1:
            listed = ", ".join(names) or "none"
            raise refuse("strategy", f"one array for {len(names)} attributes ({listed})", "a mapping from attributes to arrays")
        known = {names[0]: known}
    for name in known:
        if name not in names:
            raise refuse("an attribute of the strategy", name, "one that is asked about: " + (", ".join(names) or "there is none"))
    if not known:
        raise refuse("strategy", "an empty mapping", _ALLOWED)
    bits = min(20, _MOST_BITS // len(known))
    return _weighted(task, {name: Factor((name,), _operator(task, name, value, bits)) for name, value in known.items()})


def _returned(given: Any, task: Task) -> Own:
    try:
        return given(task)
    except LeastNoiseError:
        raise
    except Exception as error:
        raise InputError(
            f"The function given as strategy failed: {type(error).__name__}: {error}. It is called with one argument, the task, and "
            "must return an array of numbers (queries x cells), or a mapping from attributes to these."
        ) from error


def _weighted(task: Task, along: Mapping[str, Factor]) -> Strategy:
    """The asked tables and the joint one with their best weights; where these do not tell every cell, the joint table alone."""
    workload = task.workload
    try:
        tables = asked_tables(workload)
        for measure, sets in tables.items():
            joint = _joint(workload, measure)
            rows = math.prod(factor_along(workload.domain, name, along).operator.rows for name in joint)
            if joint not in sets and rows <= min(MOST_TABLE_CELLS, 2**24):
                sets.append(joint)
        return weighted_strategy(OWN, workload, along, Candidates(tables), task.norm, privacy=task.privacy)
    except Undetermined:
        joints = [(_joint(workload, measure), measure) for measure in workload.measures]
        blocks = (Block(tuple(factor_along(workload.domain, name, along) for name in names), Fraction(1), of) for names, of in joints)
        return Strategy(OWN, tuple((block, 1 / workload.domain.largest_value(block.measure)) for block in blocks))


def _joint(workload: Workload, measure: str | None) -> tuple[str, ...]:
    return tuple(name for name in workload.domain.names if name in workload.used[measure])


def _operator(task: Task, name: str, value: Any, bits: int) -> Operator:
    """What is measured along an attribute, in whole numbers."""
    kind = task.workload.domain.kind(name)
    if isinstance(value, (str, QuerySet, Mapping)):
        value = query_set(name, value).operator(name, kind)
    elif not _is_operator(value):
        value = _matrix(name, value, task.norm, bits)
    if value.size != kind.size:
        raise refuse(f"the strategy along {name}", f"{value.rows} x {value.size}", f"{kind.size} columns, one a cell")
    if value.size <= MOST_DENSE or len(starts := first_cells(value)) == value.size:
        return value
    return Coarse(on_runs(value, starts), starts, value.size)  # the same queries over runs of cells that none of them tells apart


def _dense(array: Array) -> Operator:
    """Whole numbers as queries, over the runs of equal columns where there are many."""
    starts, size = np.append(0, 1 + np.flatnonzero((array[:, 1:] != array[:, :-1]).any(axis=0))), array.shape[1]
    return Dense(array) if size <= MOST_DENSE or len(starts) == size else Coarse(Dense(array[:, starts]), starts, size)


def _matrix(name: str, value: object, norm: int, bits: int) -> Operator:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        raise refuse(f"the strategy along {name}", "rows of different lengths", "an array (queries x cells)") from None
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "iufb":
        got = f"{array.dtype} of shape {array.shape}" if array.dtype.kind in "iufb" else f"{type(value).__name__} {quoted(value)}"
        raise refuse(f"the strategy along {name}", got, "an array of numbers (queries x cells), an operator or a query set")
    if not array.any():
        raise InputError(f"The strategy along {name} measures nothing: every coefficient is 0. Give at least one query.")
    if array.dtype.kind != "f":
        return _dense(array)
    if not np.isfinite(array).all():
        raise refuse(f"the strategy along {name}", "a number that is not finite", "finite numbers")
    if np.array_equal(array, np.rint(array)) and np.abs(array).max() < 2**53:
        return _dense(array.astype(np.int64))
    return _dense(to_dyadic(array / column_norm(array, norm), bits))


def _is_operator(value: object) -> bool:
    return apply.dispatch(type(value)) is not apply.dispatch(object)
