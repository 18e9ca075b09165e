"""Measure every cell of the joint table of all attributes that are asked about."""

import math

from leastnoise._accounting import Privacy
from leastnoise._plan import MOST_TABLE_CELLS
from leastnoise._planner._strategy import NotApplicable, Strategy
from leastnoise._planner.tables._tables import weighted_strategy
from leastnoise._workload import Workload


def identity(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """The cells of the joint table, one table a measure.

    Args:
        workload: what is asked.
        privacy: not used; every planner takes it.
        power: 1 for Laplace, 2 for Gaussian.

    Raises:
        NotApplicable: the joint table has more than 2^28 cells.

    Source: the strategy I of Cormode et al. (arXiv 1207.6096).

    >>> identity(marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1), Privacy(PureDP(1)), 1).blocks[0][0].rows
    4
    """
    tables: dict[str | None, list[tuple[str, ...]]] = {}
    for measure in workload.measures:
        asked = {name for product in workload if product.measure == measure for name in product.attributes}
        names = tuple(name for name in workload.domain.names if name in asked)
        cells = math.prod(workload.domain.kind(name).size for name in names)
        if not cells <= MOST_TABLE_CELLS:
            raise NotApplicable(f"the joint table of {' x '.join(names)} has {cells} cells; at most {MOST_TABLE_CELLS} are allowed")
        tables[measure] = [names]
    return weighted_strategy("identity", workload, {}, tables, power)
