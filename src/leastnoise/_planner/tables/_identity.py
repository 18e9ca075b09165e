"""Measure every cell of the joint table of all attributes that are asked about."""

import math

from leastnoise._families import NotApplicable
from leastnoise._measurements import MOST_TABLE_CELLS
from leastnoise._planner._strategy import Planner, Strategy, Task
from leastnoise._planner.tables._tables import Candidates, weighted_strategy


def identity(task: Task) -> Strategy:
    """The cells of the joint table, one table a measure.

    Source: the strategy I of Cormode et al. (arXiv 1207.6096).
    """
    workload, norm = task.workload, task.norm
    tables: dict[str | None, list[tuple[str, ...]]] = {}
    for measure in workload.measures:
        asked = {name for product in workload if product.measure == measure for name in product.attributes}
        names = tuple(name for name in workload.domain.names if name in asked)
        cells = math.prod(workload.domain.kind(name).size for name in names)
        if not cells <= MOST_TABLE_CELLS:
            raise NotApplicable(f"the joint table of {' x '.join(names)} has {cells} cells; at most {MOST_TABLE_CELLS} are allowed")
        tables[measure] = [names]
    return weighted_strategy("identity", workload, {}, Candidates(tables), norm, privacy=task.privacy)


IDENTITY = Planner(
    name="identity",
    propose=identity,
    measures="every cell of the joint table of all attributes asked about",
    made_for="few cells",
    limits="a joint table of 2^28 cells",
    reference=lambda _: True,
)
