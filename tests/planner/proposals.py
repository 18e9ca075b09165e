"""What planners propose, and sets of tables, for the tests of several folders."""

import itertools

from leastnoise._accounting import Budget, Noise, Privacy
from leastnoise._mechanisms import noises
from leastnoise._planner import PLANNERS, Strategy, Task
from leastnoise._workload import Workload


def proposal(name: str, workload: Workload, privacy: Privacy | Budget, noise: Noise | None = None) -> Strategy:
    """The strategy of a planner, by default for the usual noise of the budget."""
    whole = privacy if isinstance(privacy, Privacy) else Privacy(privacy)
    return PLANNERS[name].strategy(Task(workload, whole, noise or noises(whole)[0]))


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
