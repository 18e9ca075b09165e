"""The privacy loss of a series' private choice, by brute force over neighbouring tables.

It is asked for through a series, so that the distance of neighbours is that of the plan's privacy;
its noise is exact (PROOFS), so what it loses follows from the scale.
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
PRIVACIES = [(neighbours, rows) for neighbours in ("add_remove", "replace") for rows in (1, 3)]

every_privacy = pytest.mark.parametrize(("neighbours", "rows"), PRIVACIES)


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


def worst(law, neighbours, rows, loss):
    """Return the largest loss over all pairs of neighbouring counts."""
    largest = 0
    for base in BASES:
        laws = [law(tuple(np.add(base, added).tolist())) for added in rows_of_units(rows)]
        pairs = (
            itertools.combinations(laws, 2)
            if neighbours == "replace"
            else ((laws[0], law_after) for law_after in laws[1:])
        )
        largest = max(largest, *(loss(law_before, law_after) for law_before, law_after in pairs))
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

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_plane, "discrete_laplace", sampler)
        largest_loss = worst(
            lambda counts: choose(selection, counts, neighbours, rows),
            neighbours,
            rows,
            lambda cost_before, cost_after: abs(cost_before - cost_after) * GRID / scales[0],
        )
    assert len(set(scales)) == 1
    return Fraction(largest_loss)


@every_privacy
@pytest.mark.parametrize("way", COSTS)
def test_least_cost_choice_loses_at_most_epsilon(way, neighbours, rows):
    """Some pair loses nearly all of epsilon."""
    assert EPSILON * Fraction(2, 3) < loss_of_cost(COSTS[way], neighbours, rows) <= EPSILON


@pytest.mark.parametrize("way", COSTS)
def test_noise_of_a_least_cost_is_added_to_it(monkeypatch, way):
    noisy_costs = []
    for noise in (0, 12345):
        monkeypatch.setattr(_plane, "discrete_laplace", lambda *_, noise=noise: np.array([noise]))
        noisy_costs.append(choose(COSTS[way], (3, 0, 5, 5), "add_remove", 1))
    assert noisy_costs[1] == noisy_costs[0] + Fraction(12345, GRID)
