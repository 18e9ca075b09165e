"""Shared or cached work gives the results of separate computations."""

import functools
import itertools
import random
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import leastnoise
from leastnoise._domain import Domain, Integers, Measure, PerCellBound
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, Noise, Privacy, PureDP
from leastnoise._trusted.linop import Dense, Identity, Prefix, Tree, dense
from leastnoise._trusted.measurements import (
    Block,
    Factor,
    Limits,
    Measurements,
    column_norm,
    cost,
    measurements_digest,
)
from trusted.measurements.brute import worst

MEASURES = {
    "pay": Measure("pay", -2, 3),
    "tips": Measure("tips", 0, 4),
    "fees": Measure("fees", 0, 4),
}
DOMAIN = Domain(a=Integers(0, 2), b=Integers(0, 2), c=Integers(0, 1), measures=MEASURES)
ROWS = {"a": [0, 1, 2, 2, 1], "b": [2, 0, 1, 2, 2], "c": [0, 1, 1, 0, 1]}
AMOUNTS = {"pay": [3, -2, 0, 1, 3], "tips": [0, 4, 1, 3, 2], "fees": [1, 0, 4, 4, 2]}
ALONG = [
    Identity(3),
    Prefix(3),
    Tree.full(3, 2),
    Dense([[1, 0, 2]]),
    Dense([[1, 0, 3]]),
    Dense([[-1, 0, 2]]),
]
SCALES = [Fraction(1, 2), Fraction(1, 1000), Fraction(3, 2), Fraction(2), Fraction(1)]
LIMITS = [
    None,
    Limits([2]),
    Limits([3]),
    Limits([1, 2, 3], "a"),
    Limits([1, 2, 3], "b"),
    Limits([1, 2, 2], "b"),
]
WEIGHTS = [None, [1, 1, 1], [1, 2, 1], [1, 2, 2]]


def block(
    name="a",
    along=ALONG[0],
    weights=None,
    scale=SCALES[0],
    measure=None,
    limits=None,
    ends=False,
    beside=None,
) -> Block:
    factors = [Factor((name,), along, None if weights is None else np.resize(weights, along.rows))]
    factors += [] if beside is None else [Factor(("c",), beside)]
    return Block(tuple(factors), scale, measure, limits, ends)


FIELDS = {
    "name": ["a", "b"],
    "along": ALONG,
    "weights": WEIGHTS,
    "scale": SCALES,
    "measure": list(MEASURES),
    "limits": LIMITS,
    "ends": [False, True],
    "beside": [None, Identity(2), Dense([[1, 1]]), Dense([[1, -1]])],
}
OF_COUNTS = ("name", "along", "weights", "scale", "beside")


def families(seed: int) -> list[list[Block]]:
    """Return a block, and variants of it that differ in one field each."""
    rng = random.Random(seed)
    base = {name: rng.choice(values) for name, values in FIELDS.items()} | {"ends": False}
    # every cell adds the same, so that blocks are counted
    even = base | {
        "along": Identity(3),
        "weights": None,
        "limits": None,
    }
    counts = {"measure": None, "limits": None}
    found = [
        [block(**(one | counts | {name: value})) for value in FIELDS[name]]
        for one in (base, even)
        for name in OF_COUNTS
    ]
    found += [
        [block(**(one | {name: value})) for value in FIELDS[name]]
        for one in (base, even)
        for name in FIELDS
        if name != "ends"
    ]
    return [*found, [block(**(even | {"ends": value})) for value in FIELDS["ends"]]]


def measured(blocks: list[Block], noise=Noise.DISCRETE_GAUSSIAN, **privacy: object) -> Measurements:
    budget: Budget = PureDP(1) if noise is Noise.DISCRETE_LAPLACE else ZCDP(1)
    return Measurements(
        domain=DOMAIN, privacy=Privacy(budget, **privacy), noise=noise, blocks=tuple(blocks)
    )


def norm_alone(blocks: list[Block], power: int) -> Fraction:
    """Return the largest column norm, computed entry by entry in fractions."""
    plan, cells = measured(blocks), []
    for at in (
        {"a": a, "b": b, "c": c} for a, b, c in itertools.product(range(3), range(3), range(2))
    ):
        total = Fraction(0)
        for one in blocks:
            most = plan.largest_values(one)
            limited = one.limits is not None and one.limits.attribute is not None
            own = Fraction(int(most[at[one.limits.attribute]] if limited else most[0])) ** power
            for factor in one.factors:
                column = dense(factor.operator)[:, at[factor.attributes[0]]]
                own *= sum(
                    abs(int(entry) * int(weight)) ** power
                    for entry, weight in zip(column, factor.weights, strict=True)
                )
            total += own / one.scale**power
        cells.append(total)
    return max(cells)


@pytest.mark.parametrize(("seed", "power"), [(0, 1), (1, 2)])
def test_blocks_with_one_difference_add_their_costs(seed: int, power: int) -> None:
    noise = Noise.DISCRETE_LAPLACE if power == 1 else Noise.DISCRETE_GAUSSIAN
    for family in families(seed):
        for one, two in itertools.combinations(family, 2):
            assert column_norm(measured([one, two, one], noise), power) == norm_alone(
                [one, two, one], power
            ), (one, two)


@pytest.mark.parametrize(("seed", "neighbours"), [*enumerate(["add_remove", "replace"])])
def test_unit_cells_added_cost_at_least_the_worst_unit(seed: int, neighbours: str) -> None:
    for family in families(seed):
        for one, two in itertools.islice(
            itertools.combinations([made for made in family if made.limits is None], 2), 4
        ):
            plan = measured(
                [one, two],
                neighbours=neighbours,
                unit_column="id",
                max_rows=2,
                max_per_cell=PerCellBound(1, "a"),
            )
            assert 2 * cost(plan).rho >= worst(plan) * (1 - 1e-7), (one, two)


def kept() -> list[functools._lru_cache_wrapper]:  # type: ignore[type-arg]
    """List every cached function of the package."""
    modules = [
        module
        for name, module in [*sys.modules.items()]
        if name.split(".")[0] == leastnoise.__name__
    ]
    found = {
        id(one): one
        for module in modules
        for one in vars(module).values()
        if isinstance(one, functools._lru_cache_wrapper)
    }
    return list(found.values())


def facts(plan: Measurements) -> tuple[str, str]:
    return measurements_digest(plan), str(cost(plan))


def test_cost_does_not_depend_on_earlier_calls() -> None:
    """Costs under replace are equal in any order and with empty caches."""
    assert {one.__name__ for one in kept()} >= {"_norm_and_distance"}
    rng = random.Random(0)
    families_of_counts = [
        family for family in families(0) if all(one.measure is None for one in family)
    ]
    plans = [
        measured([one, two], noise, neighbours="replace")
        for family in families_of_counts
        for one, two in itertools.pairwise(family)
        for noise in (Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN)
    ]
    fresh = []
    for plan in plans:
        for function in kept():
            function.cache_clear()
        fresh.append(facts(plan))
    order = rng.sample(range(len(plans)), len(plans))
    assert {place: facts(plans[place]) for place in order} == dict(enumerate(fresh))


def test_digest_covers_every_field() -> None:
    start = {"measure": "pay", "limits": LIMITS[1], "beside": Identity(2)}
    base = measured([block(**start)])
    unit = {"neighbours": "replace", "unit_column": "id", "max_rows": 2}
    found = [
        measured([block(**(start | {name: value}))])
        for name in FIELDS
        if name != "ends"
        for value in FIELDS[name]
    ]
    found += [measured([block(measure="pay", ends=ends)]) for ends in (False, True)]
    found += [
        measured([block(**start), block(**start)]),
        replace(base, grid=2),
        replace(base, noise=Noise.ROUNDED_GAUSSIAN),
    ]
    found += [
        replace(
            base,
            domain=Domain(a=Integers(0, 2), b=Integers(0, 2), c=Integers(2, 3), measures=MEASURES),
        )
    ]
    found += [
        replace(base, privacy=Privacy(budget, **unit))
        for budget in (ZCDP(1), ZCDP(2), ApproxDP(1, "1e-6"), ApproxDP(1, "1e-7"))
    ]
    changes = (
        {},
        {"neighbours": "add_remove"},
        {"unit_column": "who"},
        {"max_rows": 3},
        {"max_per_cell": PerCellBound(1, "a")},
    )
    found += [replace(base, privacy=Privacy(ZCDP(1), **(unit | change))) for change in changes]
    different = {
        (repr(plan.domain), plan.privacy, plan.noise, plan.blocks, plan.grid) for plan in found
    }
    assert len({measurements_digest(plan) for plan in found}) == len(different) >= 35
