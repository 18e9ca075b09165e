"""User-supplied strategies.

A user's strategy has an array, a query set or an operator for each attribute. A strategy may also
be a function from the planning problem to such values.

A user's strategy is planned like a family: along every other attribute, cells are measured; the
tables get the best weights and exact scales; and the plan states the error of the rounded queries.
Real coefficients are scaled to norm 1 and rounded to a dyadic grid, as in the families.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from leastnoise._domain import Kind
from leastnoise._families import (
    MOST_DENSE,
    UndeterminedQuery,
    column_norm,
    first_cells,
    restrict_to_runs,
    to_dyadic,
)
from leastnoise._strategies._planning_problem import Planner, PlanningProblem, Strategy
from leastnoise._strategies._table_weights import (
    attribute_sets_with_joint,
    factor_along,
    joint_table,
    weighted_strategy,
)
from leastnoise._trusted.check import InputError, LeastNoiseError, quoted, refuse
from leastnoise._trusted.linop import Coarse, Dense, Operator, apply, dense
from leastnoise._trusted.measurements import Block, Factor
from leastnoise._workload import QuerySet, query_set

OWN = "own"
# Maximum number of bits of a table, over all its attributes: sums of 2^32 rows must stay below
# 2^62.
_MOST_BITS = 29
Own: TypeAlias = Any
"""A user's strategy, in one of three forms.

It is an array or an operator, if the workload has only one attribute; a mapping from attributes to
arrays, operators or query sets; or a function from a `PlanningProblem` to one of these or to a
`Strategy`.
"""
_ALLOWED = (
    "'auto', a name, an array of numbers (queries x cells), a mapping from attributes to arrays or "
    "query sets, or a function of the planning problem that returns one of these"
)


def user_planner(user_strategy: Own) -> Planner:
    """Return the planner for a strategy that a user supplies.

    If the strategy is a function, it is called once for each kind of noise.
    """
    if user_strategy is None or isinstance(user_strategy, (str, bool, int, float)):
        raise refuse("strategy", user_strategy, _ALLOWED)
    return Planner(
        name=OWN,
        propose=lambda problem: _user_strategy(user_strategy, problem),
        measures="the queries that the user passed",
        made_for="user-supplied strategies",
    )


def _user_strategy(user_strategy: Own, problem: PlanningProblem) -> Strategy:
    """Return the user's strategy with the best weights.

    If the strategy is a function, it is called with the planning problem.
    """
    strategy_along = user_strategy
    names = problem.workload.attributes
    if callable(user_strategy) and not _is_operator(user_strategy):
        try:
            strategy_along = user_strategy(problem)
        except LeastNoiseError:
            raise
        except Exception as error:
            raise InputError(
                f"The function given as strategy failed: {type(error).__name__}: {error}. It is "
                "called with one argument, the planning problem. It must return an array of "
                "numbers (queries x cells), or a mapping from attributes to such arrays."
            ) from error
    if isinstance(strategy_along, Strategy):
        return replace(strategy_along, name=OWN)
    if not isinstance(strategy_along, Mapping):
        if len(names) != 1:
            listing = ", ".join(names) or "none"
            raise refuse(
                "strategy",
                f"one array for {len(names)} attributes ({listing})",
                "a mapping from attributes to arrays",
            )
        strategy_along = {names[0]: strategy_along}
    for name in strategy_along:
        if name not in names:
            raise refuse(
                "an attribute of the strategy",
                name,
                "an attribute of the workload: " + (", ".join(names) or "there is none"),
            )
    if not strategy_along:
        raise refuse("strategy", "an empty mapping", _ALLOWED)
    bits = min(20, _MOST_BITS // len(strategy_along))
    return _weighted(
        problem,
        {
            name: Factor((name,), _operator(problem, name, value, bits))
            for name, value in strategy_along.items()
        },
    )


def _weighted(problem: PlanningProblem, fitted_factors: Mapping[str, Factor]) -> Strategy:
    """Return the requested tables, the joint table and their best weights.

    If the requested tables do not determine all cells, only the joint table is measured.
    """
    workload = problem.workload
    domain = problem.workload.domain
    try:
        return weighted_strategy(
            OWN,
            workload,
            fitted_factors,
            attribute_sets_with_joint(workload, fitted_factors),
            problem.norm,
            privacy=problem.privacy,
        )
    except UndeterminedQuery:
        blocks = []
        for measure in workload.measures:
            factors = tuple(
                factor_along(domain, name, fitted_factors)
                for name in joint_table(workload, measure)
            )
            blocks.append((Block(factors, Fraction(1), measure), 1 / domain.largest_value(measure)))
        return Strategy(OWN, tuple(blocks))


def _operator(problem: PlanningProblem, attribute: str, user_value: Any, bits: int) -> Operator:
    """Return the user's strategy along an attribute, as an operator."""
    kind = problem.workload.domain.kind(attribute)
    if isinstance(user_value, (str, QuerySet, Mapping)):
        user_value = query_set(attribute, user_value).operator(attribute, kind)
    elif not _is_operator(user_value):
        user_value = _array_operator(attribute, user_value, problem.norm, bits)
    if user_value.size not in (kind.published, kind.size):
        raise refuse(
            f"the strategy along {attribute}",
            f"{user_value.rows} x {user_value.size}",
            f"{kind.published} columns, one a cell",
        )
    if kind.hidden and kind.size <= MOST_DENSE:
        user_value = _with_hidden_cell(user_value, kind, problem.norm)
    elif user_value.size != kind.size:
        raise refuse(
            f"the strategy along {attribute}",
            f"{user_value.size} cells, where values may be missing",
            f"at most {MOST_DENSE - 1} cells",
            "Declare complete = true if none is missing.",
        )
    if user_value.size <= MOST_DENSE or len(starts := first_cells(user_value)) == user_value.size:
        return user_value
    # The same queries as functions of runs of cells that no query separates.
    return Coarse(restrict_to_runs(user_value, starts), starts, user_value.size)


def _with_hidden_cell(published_queries: Operator, kind: Kind, norm: int) -> Operator:
    """Return queries extended by a query for the hidden cell.

    The column of the hidden cell has the largest norm of all other columns, rounded down, so no row
    costs more. Without the added query, the measurements would not determine tables that lack the
    attribute.
    """
    rows = dense(published_queries)[:, : kind.published]
    largest = float((np.abs(rows).astype(np.float64) ** norm).sum(axis=0).max()) ** (1 / norm)
    matrix = np.zeros((len(rows) + 1, kind.size), dtype=np.int64)
    matrix[:-1, : kind.published] = rows
    matrix[-1, -1] = max(1, math.floor(largest))
    return Dense(matrix)


def _array_operator(attribute: str, user_value: object, norm: int, bits: int) -> Operator:
    """Return an array as an integer operator.

    For an array with many columns, the operator acts on runs of equal columns.
    """
    try:
        array = np.asarray(user_value)
    except ValueError:  # rows of different lengths
        raise refuse(
            f"the strategy along {attribute}",
            "rows of different lengths",
            "an array (queries x cells)",
        ) from None
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "iufb":
        if array.dtype.kind in "iufb":
            received = f"{array.dtype} of shape {array.shape}"
        else:
            received = f"{type(user_value).__name__} {quoted(user_value)}"
        raise refuse(
            f"the strategy along {attribute}",
            received,
            "an array of numbers (queries x cells), an operator or a query set",
        )
    if not array.any():
        raise InputError(
            f"The strategy along {attribute} measures nothing: every coefficient is 0. Give at "
            "least one query."
        )
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise refuse(
                f"the strategy along {attribute}", "a number that is not finite", "finite numbers"
            )
        is_integer = np.array_equal(array, np.rint(array)) and np.abs(array).max() < 2**53
        if is_integer:
            array = array.astype(np.int64)
        else:
            array = to_dyadic(array / column_norm(array, norm), bits)
    starts = np.append(0, 1 + np.flatnonzero((array[:, 1:] != array[:, :-1]).any(axis=0)))
    size = array.shape[1]
    if size <= MOST_DENSE or len(starts) == size:
        return Dense(array)
    return Coarse(Dense(array[:, starts]), starts, size)


def _is_operator(value: object) -> bool:
    """Return whether a value is an operator whose class is registered."""
    return apply.dispatch(type(value)) is not apply.dispatch(object)
