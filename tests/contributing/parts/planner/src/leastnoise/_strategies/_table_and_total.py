"""The strategy of one table of all requested attributes, and the total."""

import math
from fractions import Fraction

from leastnoise._strategies._planning_problem import (
    NotApplicable,
    Planner,
    PlanningProblem,
    Strategy,
)
from leastnoise._trusted.linop import Identity
from leastnoise._trusted.measurements import Block, Factor

_MOST_CELLS = 2**22  # larger tables take seconds to measure


def table_and_total(problem: PlanningProblem) -> Strategy:
    """Measure one table of all requested attributes, and the total.

    Each gets half of the budget.

    Args:
        problem: the workload and the budget.

    Raises:
        NotApplicable: the table has more than 2^22 cells.

    >>> workload = marginals(Domain(sex=["F", "M"]), ways=1)
    >>> problem = PlanningProblem(workload, Privacy(PureDP(1)), Noise.DISCRETE_LAPLACE)
    >>> [(block.rows, weight) for block, weight in table_and_total(problem).blocks]
    [(2, 1.0), (1, 1.0)]
    """
    domain = problem.workload.domain
    names = [
        name
        for name in domain.names
        if any(name in product.attributes for product in problem.workload)
    ]
    cells = math.prod(domain.kind(name).size for name in names)
    if cells > _MOST_CELLS:
        raise NotApplicable(f"the table has {cells} cells; at most {_MOST_CELLS} are allowed")
    factors = tuple(Factor((name,), Identity(domain.kind(name).size)) for name in names)
    blocks = [
        Block(part, Fraction(1), measure)
        for measure in problem.workload.measures
        for part in (factors, ())
    ]
    return Strategy("table_and_total", tuple((block, 1.0) for block in blocks))


TABLE_AND_TOTAL = Planner(
    name="table_and_total",
    propose=table_and_total,
    measures="all cells in one table, and the total",
    made_for="totals that must be good",
    limits="2^22 cells",
    automatic=False,
)
