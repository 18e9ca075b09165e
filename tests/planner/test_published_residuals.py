"""The published errors of ResidualPlanner, through whole plans: integers, exact scales, promise and cost."""

import itertools
import math

import pytest

from leastnoise._accounting import ZCDP, Privacy, covers
from leastnoise._domain import Coded, Domain
from leastnoise._mechanisms import candidates
from leastnoise._workload import Workload, marginals, queries

DOMAINS = {
    "adult": ((100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2), (3.047, 6.359, 10.515, 10.665)),
    "cps": ((50, 100, 7, 4, 2), (1.744, 2.035, 2.048, 2.276)),
    "loans": ((101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15), (2.875, 5.634, 8.702, 8.876)),
}


def rmse(shape: tuple[int, ...], ways: tuple[int, ...]) -> float:
    """Root mean squared error of a cell at privacy cost 1, of the plan."""
    domain = Domain({f"a{place}": Coded(size) for place, size in enumerate(shape)})
    sets = [names for k in ways for names in itertools.combinations(domain.names, k)]
    parts = [queries(domain, **dict.fromkeys(names, "identity")) if names else marginals(domain, ways=0) for names in sets]
    asked = Workload(domain, tuple(product for part in parts for product in part))
    (found,) = candidates(asked, Privacy(ZCDP("1/2")), "residual")
    assert found.plan is not None, found.reason
    assert covers(ZCDP("1/2"), found.plan.cost())
    return math.sqrt(found.total / asked.rows)


@pytest.mark.parametrize("place", range(4), ids=["1-way", "2-way", "3-way", "up to 3-way"])
@pytest.mark.parametrize("data", DOMAINS)
def test_the_twelve_published_figures(data: str, place: int) -> None:
    shape, figures = DOMAINS[data]
    assert round(rmse(shape, ((1,), (2,), (3,), (0, 1, 2, 3))[place]), 3) == figures[place]


@pytest.mark.parametrize(("size", "figure"), [(10, 23.48), (20, 25.70), (30, 26.46), (40, 26.84), (50, 27.07)])
def test_the_figures_of_forty_attributes(size: int, figure: float) -> None:
    assert round(rmse((size,) * 40, (1, 2)), 2) == figure
