"""Tables of levels: errors, estimates and bounds against dense algebra."""

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
from leastnoise._plan import Plan
from leastnoise._strategies import PLANNERS, PlanningProblem
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP, parameters_by_name
from leastnoise._trusted.linop import Identity
from leastnoise._trusted.measurements import Block, Factor, cost
from leastnoise._workload import Workload, level, queries, together


def test_level_queries_without_measurements_are_refused() -> None:
    workload = leveled(IN_ORDER)
    blocks = [block for block in level_tables(workload) if len(block[0].factors) == 2]
    structure = quantity_structure(
        fit_noise_scales(workload.domain, Privacy(ZCDP("1/2")), Noise.DISCRETE_GAUSSIAN, blocks),
        None,
    )
    assert isinstance(structure, ProductStructure)
    assert structure.leveled_attribute == "place"
    structure.require(queries(workload.domain, place=level("group"), age="identity").products[0])
    for place, names in (("identity", ["age"]), (level("group"), ["sex"])):
        with pytest.raises(UnsupportedQuery):
            structure.variances(
                queries(workload.domain, place=place, **dict.fromkeys(names, "identity")).products[
                    0
                ]
            )


@pytest.mark.parametrize("groups", [IN_ORDER, SHUFFLED])
@pytest.mark.parametrize("total", [True, False])
def test_bound_of_unequal_groups_matches_the_matrix(
    groups: list[int], total: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = leveled(groups, more=False)
    two = {"half": {0: 0, 1: 0, 2: 1}}
    domain = Domain(sex=Coded(2), place=workload.domain.kind("place"), age=Coded(3, levels=two))
    places, ages = ("identity", level("group")), ("identity", level("half"))
    both = [queries(domain, place=place, age=other, weight=2) for place in places for other in ages]
    both += [
        queries(domain, sex="identity", age=level("half")),
        queries(domain, place=level("region")),
    ]
    exact = together(both)
    for each_workload in (workload, exact):
        assert nuclear_norm(each_workload.products, with_total=total) == pytest.approx(
            dense_nuclear(each_workload, total=total)
        )
    # The limit is so low that the joint spaces count as too large.
    monkeypatch.setattr("leastnoise._error._bounds._MOST_JOINT", 2)
    for each_workload in (workload, exact, leveled(groups)):
        assert (
            0.6 * dense_nuclear(each_workload, total=total)
            < nuclear_norm(each_workload.products, with_total=total)
            <= dense_nuclear(each_workload, total=total) * (1 + 1e-9)
        )


@pytest.mark.parametrize("total", [True, False])
def test_cell_weights_raise_bound_to_at_most_the_optimum(total: bool) -> None:
    groups = {"a": [0] * 8 + [1], "b": [0] + [1] * 6, "c": [0, 0, 0, 1]}
    domain = Domain(
        {
            name: Coded(len(groups_of_cells), levels={"group": dict(enumerate(groups_of_cells))})
            for name, groups_of_cells in groups.items()
        }
    )
    pairs = [(one, other) for one, other in (("a", "b"), ("a", "c"), ("b", "c"))]
    along = ("identity", level("group"))
    products = [
        queries(domain, {one: own, other: more})
        for one, other in pairs
        for own in along
        for more in along
    ]
    workload = together(products)
    even, weighted = (
        nuclear_norm(workload.products, with_total=total, with_cell_weights=weighted) ** 2
        for weighted in (False, True)
    )
    matrix = dense_rows(workload, total=total)
    factor = fit_gaussian_optimum(dense_gram(matrix.T @ matrix, len(matrix)), gap=1e-4).matrix
    apart = factor[:, :, None] - factor[:, None]  # one row is replaced by another
    sensitivity = (factor**2).sum(axis=0).max() if total else (apart**2).sum(axis=0).max() / 2
    least = sensitivity * ((matrix @ np.linalg.pinv(factor, rcond=1e-6)) ** 2).sum()
    assert even * 1.005 < weighted <= least * (1 + 1e-9)


def marginals_plan(
    workload: Workload, privacy: Privacy, noise: Noise, unit: float, rel: float = 0.01
) -> Plan:
    """Of the strategy whose error is what it says at a cost of 1, times a unit."""
    strategy = PLANNERS["marginals"].strategy(PlanningProblem(workload, privacy, noise))
    plan = evaluate_plan(
        workload,
        fit_noise_scales(workload.domain, privacy, noise, strategy.blocks),
        may_iterate=False,
    )
    assert plan.expected_error().total_squared_error == pytest.approx(
        strategy.error * unit, rel=rel
    )
    return plan


@pytest.mark.parametrize("noise", [Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN])
def test_marginals_measure_level_tables_within_budget(noise: Noise) -> None:
    workload = leveled(IN_ORDER, more=False)
    privacy = Privacy(PureDP("1/8") if noise.norm == 1 else ZCDP("1/128"))
    plan = marginals_plan(workload, privacy, noise, 2 * 8**2 if noise.norm == 1 else 8**2)
    (paid,), (most,) = (
        parameters_by_name(budget).values() for budget in (cost(plan.measured()), privacy.budget)
    )
    assert 0.999 * most < paid <= most
    cells = tuple(
        Factor((name,), Identity(size)) for name, size in (("sex", 2), ("place", 10), ("age", 3))
    )
    alone = fit_noise_scales(workload.domain, privacy, noise, [(Block(cells, Fraction(1)), 1.0)])
    assert (
        plan.expected_error().total_squared_error
        < 0.95 * evaluate_plan(workload, alone).expected_error().total_squared_error
    )


@pytest.mark.parametrize(
    ("noise", "least"), [(Noise.DISCRETE_GAUSSIAN, 375_933), (Noise.DISCRETE_LAPLACE, 2.287e6)]
)
def test_equal_groups_of_4096_places_reach_known_least(noise: Noise, least: float) -> None:
    levels = {
        f"of {width}": dict(enumerate((np.arange(4096) // width).tolist())) for width in (16, 256)
    }
    domain = Domain(place=Coded(4096, levels=levels), sex=Coded(2), age=Coded(18))
    others = [dict.fromkeys(names, "identity") for names in ([], ["sex"], ["sex", "age"])]
    products = [
        queries(domain, place=one, **other)
        for one in ("identity", level("of 16"), level("of 256"), "total")
        for other in others
    ]
    workload = together(products)
    plan = marginals_plan(
        workload,
        Privacy(PureDP(1) if noise.norm == 1 else ZCDP("1/2")),
        noise,
        2 if noise.norm == 1 else 1,
        rel=0.05,
    )
    assert plan.expected_error().total_squared_error <= 1.001 * least
    if noise.norm == 2:
        assert plan.expected_error().total_squared_error == pytest.approx(
            plan.lower_bound(), rel=1e-4
        )


def test_unequal_groups_get_own_weights_at_equal_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = np.repeat(np.arange(12), [1, 1, 2, 2, 3, 5, 8, 20, 40, 90, 200, 400])
    levels = {
        "group": dict(enumerate(groups.tolist())),
        "region": dict(enumerate((groups // 5).tolist())),
    }
    domain = Domain(place=Coded(len(groups), levels=levels), age=Coded(9))
    others: list[dict[str, str]] = [{}, {"age": "identity"}]
    products = [
        queries(domain, place=one, **other)
        for one in ("identity", level("group"), level("region"), "total")
        for other in others
    ]
    workload = together(products)
    errors = []
    for most in (2**12, 0):
        monkeypatch.setattr("leastnoise._strategies._marginals._MOST_ORBITS", most)
        plan = marginals_plan(workload, Privacy(ZCDP("1/32")), Noise.DISCRETE_GAUSSIAN, 4**2)
        expected_error = plan.expected_error()
        assert quantity_structure(plan.measured(), None).leveled_attribute == "place"
        errors.append(expected_error.total_squared_error)
    assert errors[0] < 0.99 * errors[1]
    assert errors[0] < 1.012 * expected_error.lower_bound
