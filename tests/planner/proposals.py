"""What planners propose, and sets of tables, for the tests of several folders."""

import itertools
import math

from leastnoise._accounting import Budget, Noise, Privacy
from leastnoise._accuracy import structures
from leastnoise._measurements import Measurements
from leastnoise._mechanisms import noises
from leastnoise._planner import PLANNERS, Strategy, Task
from leastnoise._workload import Workload


def proposal(name: str, workload: Workload, privacy: Privacy | Budget, noise: Noise | None = None) -> Strategy:
    """The strategy of a planner, by default for the usual noise of the budget."""
    whole = privacy if isinstance(privacy, Privacy) else Privacy(privacy)
    return PLANNERS[name].strategy(Task(workload, whole, noise or noises(whole)[0]))


def total_squared_error(workload: Workload, plan: Measurements) -> float:
    """The sum over all queries of their importance times the variance of their answer."""
    known = structures(workload, plan)
    return math.fsum(product.importance * known[product.measure].total(product) for product in workload)


# sizes of the attributes of published data cubes
ADULT8 = (9, 16, 7, 15, 6, 5, 2, 2)
NLTCS = (2,) * 16


def ways(count: int, *sizes: int) -> list[tuple[int, ...]]:
    """All tables of so many of the attributes."""
    return [attributes for k in sizes for attributes in itertools.combinations(range(count), k)]


def cube_workload(count: int, k: int, kind: str) -> list[tuple[int, ...]]:
    """All tables of k attributes, and none, half, or those with the first attribute, of the tables of one more."""
    larger = ways(count, k + 1)
    return ways(count, k) + {"": [], "*": larger[::2], "a": [s for s in larger if 0 in s]}[kind]


# Total squared errors at epsilon 1, the factor 2 included, of a cube's tables: measured without recovery, by weights inside their closure,
# both as published, and by a covering design; of the last Adult 1* was 207235 by a search and
# NLTCS 1* 163427 with signs beside tables (docs/decisions/planning.md).
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
