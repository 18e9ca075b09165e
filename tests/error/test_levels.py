"""Tables of levels: errors, estimates and bounds against dense algebra."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from error.plans import IN_ORDER, SHUFFLED, dense_nuclear, dense_rows, level_tables, leveled
from leastnoise._domain import Coded, Domain
from leastnoise._error import (
    ProductStructure,
    UnsupportedQuery,
    evaluate_plan,
    nuclear_norm,
    quantity_structure,
)
from leastnoise._families import dense_gram, fit_gaussian_optimum
from leastnoise._fitting import fit_noise_scales
from leastnoise._strategies import PLANNERS, PlanningProblem
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP, parameters_by_name
from leastnoise._trusted.linop import Identity
from leastnoise._trusted.measurements import Block, Factor, cost
from leastnoise._workload import level, queries, together


def test_level_queries_without_measurements_are_refused():
    workload = leveled(IN_ORDER)
    blocks = [block for block in level_tables(workload) if len(block[0].factors) == 2]
    privacy = Privacy(ZCDP("1/2"))
    plan = fit_noise_scales(workload.domain, privacy, Noise.DISCRETE_GAUSSIAN, blocks)
    structure = quantity_structure(plan, None)
    assert isinstance(structure, ProductStructure)
    assert structure.leveled_attribute == "place"
    structure.require(queries(workload.domain, place=level("group"), age="identity").products[0])
    cells_by_age = queries(workload.domain, place="identity", age="identity")
    groups_by_sex = queries(workload.domain, place=level("group"), sex="identity")
    for (product,) in (cells_by_age, groups_by_sex):
        with pytest.raises(UnsupportedQuery):
            structure.variances(product)


@pytest.mark.parametrize("groups", [IN_ORDER, SHUFFLED])
@pytest.mark.parametrize("total", [True, False])
def test_bound_of_unequal_groups_matches_the_matrix(groups, total, monkeypatch):
    levels_of_one = leveled(groups, with_prefix=False)
    halves = {"half": {0: 0, 1: 0, 2: 1}}
    place_kind = levels_of_one.domain.kind("place")
    domain = Domain(sex=Coded(2), place=place_kind, age=Coded(3, levels=halves))
    tables = [
        queries(domain, place=place, age=age, weight=2)
        for place in ("identity", level("group"))
        for age in ("identity", level("half"))
    ]
    tables.append(queries(domain, sex="identity", age=level("half")))
    tables.append(queries(domain, place=level("region")))
    levels_of_two = together(tables)
    for workload in (levels_of_one, levels_of_two):
        assert nuclear_norm(workload.products, with_total=total) == pytest.approx(
            dense_nuclear(workload, total=total)
        )

    # The limit is so low that the joint spaces count as too large.
    monkeypatch.setattr("leastnoise._error._lower_bounds._MOST_JOINT", 2)
    for workload in (levels_of_one, levels_of_two, leveled(groups)):
        exact = dense_nuclear(workload, total=total)
        bound = nuclear_norm(workload.products, with_total=total)
        assert 0.6 * exact < bound <= exact * (1 + 1e-9)


@pytest.mark.parametrize("total", [True, False])
def test_cell_weights_raise_bound_to_at_most_the_optimum(total):
    group_of_cell = {"a": [0] * 8 + [1], "b": [0] + [1] * 6, "c": [0, 0, 0, 1]}
    domain = Domain(
        {
            name: Coded(len(groups), levels={"group": dict(enumerate(groups))})
            for name, groups in group_of_cell.items()
        }
    )
    query_sets = ("identity", level("group"))
    pairs_of_attributes = itertools.combinations(domain.names, 2)
    tables = [
        queries(domain, dict(zip(names, pair_of_sets, strict=True)))
        for names in pairs_of_attributes
        for pair_of_sets in itertools.product(query_sets, repeat=2)
    ]
    workload = together(tables)

    def squared_bound(*, with_cell_weights):
        bound = nuclear_norm(
            workload.products, with_total=total, with_cell_weights=with_cell_weights
        )
        return bound**2

    matrix = dense_rows(workload, total=total)
    factor = fit_gaussian_optimum(dense_gram(matrix.T @ matrix, len(matrix)), gap=1e-4).matrix
    if total:
        sensitivity = (factor**2).sum(axis=0).max()
    else:
        # One row is replaced by another.
        changes = factor[:, :, None] - factor[:, None]
        sensitivity = (changes**2).sum(axis=0).max() / 2
    optimum = sensitivity * ((matrix @ np.linalg.pinv(factor, rcond=1e-6)) ** 2).sum()
    weighted_bound = squared_bound(with_cell_weights=True)
    assert squared_bound(with_cell_weights=False) * 1.005 < weighted_bound
    assert weighted_bound <= optimum * (1 + 1e-9)


def marginals_plan(workload, privacy, noise, unit_variance, rel=0.01):
    """Plan `marginals`, and check its error: the strategy's times the variance of the noise."""
    strategy = PLANNERS["marginals"].strategy(PlanningProblem(workload, privacy, noise))
    measurements = fit_noise_scales(workload.domain, privacy, noise, strategy.blocks)
    plan = evaluate_plan(workload, measurements, may_iterate=False)
    expected = strategy.error * unit_variance
    assert plan.expected_error().total_squared_error == pytest.approx(expected, rel=rel)
    return plan


# Budget and variance of the noise, per unit of sensitivity: with epsilon or mu = 1 / 8, Laplace
# noise has the variance 2 / epsilon^2, and Gaussian noise 1 / mu^2, where rho = mu^2 / 2.
AN_EIGHTH = {
    Noise.DISCRETE_LAPLACE: (PureDP("1/8"), 2 * 8**2),
    Noise.DISCRETE_GAUSSIAN: (ZCDP("1/128"), 8**2),
}


@pytest.mark.parametrize("noise", [Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN])
def test_marginals_measure_level_tables_within_budget(noise):
    workload = leveled(IN_ORDER, with_prefix=False)
    budget, variance = AN_EIGHTH[noise]
    privacy = Privacy(budget)
    plan = marginals_plan(workload, privacy, noise, variance)
    (spent,) = parameters_by_name(cost(plan.measured())).values()
    (allowed,) = parameters_by_name(budget).values()
    assert 0.999 * allowed < spent <= allowed

    cells = tuple(
        Factor((name,), Identity(size)) for name, size in (("sex", 2), ("place", 10), ("age", 3))
    )
    only_cells = [(Block(cells, Fraction(1)), 1.0)]
    measurements = fit_noise_scales(workload.domain, privacy, noise, only_cells)
    error_of_cells = evaluate_plan(workload, measurements).expected_error()
    error = plan.expected_error()
    assert error.total_squared_error < 0.95 * error_of_cells.total_squared_error


@pytest.mark.parametrize(
    ("noise", "least"), [(Noise.DISCRETE_GAUSSIAN, 375_933), (Noise.DISCRETE_LAPLACE, 2.287e6)]
)
def test_equal_groups_of_4096_places_reach_known_least(noise, least):
    levels = {
        f"of {width}": dict(enumerate((np.arange(4096) // width).tolist())) for width in (16, 256)
    }
    domain = Domain(place=Coded(4096, levels=levels), sex=Coded(2), age=Coded(18))
    tables = [
        queries(domain, place=places, **dict.fromkeys(names, "identity"))
        for places in ("identity", level("of 16"), level("of 256"), "total")
        for names in ([], ["sex"], ["sex", "age"])
    ]
    is_laplace = noise is Noise.DISCRETE_LAPLACE
    # With epsilon or mu of 1, noise per unit of sensitivity has the variance 2 or 1.
    budget = PureDP(1) if is_laplace else ZCDP("1/2")
    variance = 2 if is_laplace else 1
    plan = marginals_plan(together(tables), Privacy(budget), noise, variance, rel=0.05)
    error = plan.expected_error().total_squared_error
    assert error <= 1.001 * least
    if not is_laplace:
        assert error == pytest.approx(plan.lower_bound(), rel=1e-4)


def test_unequal_groups_get_own_weights_at_equal_cost(monkeypatch):
    groups = np.repeat(np.arange(12), [1, 1, 2, 2, 3, 5, 8, 20, 40, 90, 200, 400])
    levels = {
        "group": dict(enumerate(groups.tolist())),
        "region": dict(enumerate((groups // 5).tolist())),
    }
    domain = Domain(place=Coded(len(groups), levels=levels), age=Coded(9))
    no_other: dict[str, str] = {}
    tables = [
        queries(domain, place=places, **other)
        for places in ("identity", level("group"), level("region"), "total")
        for other in (no_other, {"age": "identity"})
    ]
    workload = together(tables)
    errors = []
    for most_orbits in (2**12, 0):
        monkeypatch.setattr("leastnoise._strategies._marginals._MOST_ORBITS", most_orbits)
        # rho = 1 / 32 is mu = 1 / 4, and the noise has the variance 1 / mu^2.
        plan = marginals_plan(workload, Privacy(ZCDP("1/32")), Noise.DISCRETE_GAUSSIAN, 4**2)
        assert quantity_structure(plan.measured(), None).leveled_attribute == "place"
        errors.append(plan.expected_error())
    with_own_weights, with_equal_weights = errors
    error = with_own_weights.total_squared_error
    assert error < 0.99 * with_equal_weights.total_squared_error
    assert error < 1.012 * with_equal_weights.lower_bound
