"""Cells and runs of cells along every attribute."""

from functools import partial

from leastnoise._families import two_levels
from leastnoise._strategies._kronecker import kronecker
from leastnoise._strategies._planning_problem import Planner

TWO_LEVELS = Planner(
    name="two_levels",
    propose=partial(kronecker, "two_levels", two_levels),
    measures="cells, and the sums of runs of about sqrt(n) cells",
    made_for="short ranges",
    automatic=False,
)
