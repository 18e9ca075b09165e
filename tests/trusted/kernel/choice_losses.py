"""The privacy loss of the choice of least cost, by brute force over neighbouring counts.

A series makes the choice, so that the distance of neighbours is the distance of the plan's privacy.
The noise is exact (PROOFS), so the loss follows from its scale.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Domain, Integers
from leastnoise._trusted.accounting import Privacy, PureDP
from leastnoise._trusted.kernel import GRID, LeastCost, SeededEntropy, UnpaidSeries, _plane
from leastnoise._trusted.table import Table
from trusted.kernel.series import many_steps

LINE = Domain(age=Integers(0, 3))
PLANE = Domain(age=["x", "y"], sex=["F", "M"])
# Counts of four cells in which one record raises some costs and lowers others.
BASES = [(3, 0, 15, 15), (4, 4, 6, 6), (3, 15, 0, 15)]
EPSILON = Fraction(3, 13)  # no scale is a multiple of the step to which it is rounded up


def rows_of_units(rows):
    """Return what a unit of up to ``rows`` rows can add to four cells, nothing first."""
    units = itertools.chain.from_iterable(
        itertools.combinations_with_replacement(range(4), number) for number in range(rows + 1)
    )
    return [
        tuple(np.bincount(np.array(cells, dtype=np.int64), minlength=4).tolist()) for cells in units
    ]


def choose(selection, counts, neighbours, rows):
    """Choose on a table of these counts, as a series does."""
    unit = {"unit_column": "id", "max_rows": rows} if rows > 1 else {}
    names = selection.attributes
    domain = LINE if names == ("age",) else PLANE
    cells = np.repeat(np.arange(4), counts)
    codes = {"age": cells} if domain is LINE else {"age": cells // 2, "sex": cells % 2}
    privacy = Privacy(PureDP(selection.epsilon), neighbours, **unit)
    plan = many_steps(domain, privacy)
    return UnpaidSeries(plan, Table(domain, codes, **unit), SeededEntropy(1)).choose(selection)


def replace_noise(patch, sampler):
    """Draw the noise of a choice of least cost with another sampler."""
    patch.setattr(_plane, "discrete_laplace", sampler)


def largest_change(cost_of, neighbours, rows):
    """Return the largest change of a cost over all pairs of neighbouring counts."""
    largest = 0
    for base in BASES:
        costs = [cost_of(tuple(np.add(base, added).tolist())) for added in rows_of_units(rows)]
        if neighbours == "replace":
            pairs = itertools.combinations(costs, 2)
        else:
            pairs = itertools.product(costs[:1], costs[1:])
        largest = max(largest, *(abs(before - after) for before, after in pairs))
    return largest


COSTS = {
    "intervals": LeastCost(attributes=("age",), epsilon=EPSILON, penalty=Fraction(20)),
    "rectangle": LeastCost(attributes=("age", "sex"), epsilon=EPSILON, penalty=Fraction(20)),
}


def loss_of_cost(selection, neighbours, rows):
    """Return the largest change of the cost over the scale of its noise."""
    scales: list[Fraction] = []

    def sampler(numerator, denominator, count, entropy):
        assert count == 1
        scales.append(Fraction(numerator, denominator))
        return np.zeros(1, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        replace_noise(patch, sampler)
        change = largest_change(
            lambda counts: choose(selection, counts, neighbours, rows), neighbours, rows
        )
    (scale,) = set(scales)
    return Fraction(change * GRID) / scale
