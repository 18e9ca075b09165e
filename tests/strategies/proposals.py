"""Proposals of planners, and sets of tables, for the tests of several folders."""

import itertools
import math

from leastnoise._domain import Domain, Integers
from leastnoise._error import covariance_by_measure, evaluate_plan
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms import noises_to_plan
from leastnoise._strategies import PLANNERS, PlanningProblem
from leastnoise._trusted.accounting import Privacy, covers
from leastnoise._workload import Workload, queries


def proposal(name, workload, privacy, noise=None):
    """Return the strategy of a planner, by default for the usual noise of the budget."""
    full_privacy = privacy if isinstance(privacy, Privacy) else Privacy(privacy)
    return PLANNERS[name].strategy(
        PlanningProblem(workload, full_privacy, noise or noises_to_plan(full_privacy)[0])
    )


def plan_of(name, workload, privacy):
    """Return the proposal of a planner, fitted to the budget, which it must keep."""
    full_privacy = privacy if isinstance(privacy, Privacy) else Privacy(privacy)
    strategy = proposal(name, workload, full_privacy)
    plan = evaluate_plan(
        workload,
        fit_noise_scales(
            workload.domain, full_privacy, noises_to_plan(full_privacy)[0], strategy.blocks
        ),
        name,
        details=strategy.details,
    )
    assert covers(full_privacy.budget, plan.cost())
    return plan


def error_of(name, workload, privacy):
    """Return the total squared error that the plan of a planner promises."""
    return plan_of(name, workload, privacy).expected_error().total_squared_error


def total_squared_error(workload, plan):
    """Return the sum over all queries of importance times variance of the answer."""
    covariances = covariance_by_measure(workload, plan)
    return math.fsum(
        product.importance * covariances[product.measure].total(product) for product in workload
    )


def prefix(size):
    return queries(Domain(a=Integers(0, size - 1)), a="prefix")


def tables(shape, sets, rich=0, kind="prefix"):
    """Return the tables of some attribute sets.

    The first ``rich`` attributes have queries of ``kind``, the others identity queries.
    """
    domain = Domain({f"a{place}": Integers(0, size - 1) for place, size in enumerate(shape)})
    parts = [
        queries(domain, {f"a{place}": kind if place < rich else "identity" for place in attributes})
        for attributes in sets
    ]
    return Workload(domain, tuple(product for part in parts for product in part))


# The sizes of the attributes of published data cubes.
ADULT8 = (9, 16, 7, 15, 6, 5, 2, 2)
NLTCS = (2,) * 16


def ways(count, *sizes):
    """Return all sets of attributes of the given sizes."""
    return [attributes for k in sizes for attributes in itertools.combinations(range(count), k)]


def cube_workload(count, k, kind):
    """Return all tables of k attributes, and some tables of k + 1.

    The kind selects none (""), every second one ("*"), or those with attribute 0 ("a").
    """
    larger = ways(count, k + 1)
    return ways(count, k) + {"": [], "*": larger[::2], "a": [s for s in larger if 0 in s]}[kind]


# Total squared errors at epsilon 1, the factor 2 included, of a cube's tables: measured without
# recovery, by weights inside their closure, both as published, and by a covering design; of the
# last Adult 1* was 207235 by a search and NLTCS 1* 163427 with signs beside tables
# (docs/decisions/planning.md).
CUBES: dict[tuple[tuple[int, ...], int, str], tuple[float | None, float | None, float]] = {
    (NLTCS, 1, ""): (16384, 8704, 4608),
    (NLTCS, 1, "*"): (3.07e6, 589215, 163660),
    (NLTCS, 1, "a"): (170017, 28920, 14560),
    (NLTCS, 2, ""): (1.38e7, 3.95e6, 639334),
    (NLTCS, 2, "a"): (None, 1.08e7, 1.84e6),
    (ADULT8, 1, ""): (6785, 5663, 5202),
    (ADULT8, 1, "*"): (582845, 242300, 211707),
    (ADULT8, 1, "a"): (147696, 65480, 59476),
    (ADULT8, 2, ""): (1.88e6, 1.31e6, 989989),
    (ADULT8, 2, "*"): (4.43e7, 1.12e7, 9.57e6),
    (ADULT8, 2, "a"): (2.97e7, None, 6.54e6),
}
