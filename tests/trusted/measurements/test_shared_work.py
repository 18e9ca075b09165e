"""Shared or cached work gives the results of separate computations."""

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from caches import cached_functions
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
):
    """Return a block along an attribute, and along another one if ``beside`` is given."""
    row_weights = None if weights is None else np.resize(weights, along.rows)
    factors = [Factor((name,), along, row_weights)]
    if beside is not None:
        factors.append(Factor(("c",), beside))
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
FIELDS_OF_COUNTS = ("name", "along", "weights", "scale", "beside")


def families(seed):
    """Return families of blocks that differ in one field each, of counts and of sums."""
    rng = random.Random(seed)
    any_block = {name: rng.choice(values) for name, values in FIELDS.items()} | {"ends": False}
    # Every cell adds the same, so that blocks are counted.
    equal_cells = any_block | {"along": Identity(3), "weights": None, "limits": None}
    counts = {"measure": None, "limits": None}

    def variants(fields, name):
        return [block(**(fields | {name: value})) for value in FIELDS[name]]

    result = []
    for fields in (any_block, equal_cells):
        result += [variants(fields | counts, name) for name in FIELDS_OF_COUNTS]
    for fields in (any_block, equal_cells):
        result += [variants(fields, name) for name in FIELDS if name != "ends"]
    return [*result, variants(equal_cells, "ends")]


def measured(blocks, noise=Noise.DISCRETE_GAUSSIAN, **privacy):
    """Return measurements of these blocks."""
    budget: Budget = PureDP(1) if noise is Noise.DISCRETE_LAPLACE else ZCDP(1)
    return Measurements(
        domain=DOMAIN, privacy=Privacy(budget, **privacy), noise=noise, blocks=tuple(blocks)
    )


def norm_by_entries(blocks, power):
    """Return the largest column norm, computed entry by entry in fractions."""
    plan = measured(blocks)
    cells = [
        dict(zip("abc", codes, strict=True))
        for codes in itertools.product(range(3), range(3), range(2))
    ]
    return max(
        sum((norm_of_cell(plan, block_, cell, power) for block_ in blocks), Fraction(0))
        for cell in cells
    )


def norm_of_cell(plan, measured_block, cell, power):
    """Return the norm of a row of the largest value in one cell, to the power."""
    largest_values = plan.largest_values(measured_block)
    limits = measured_block.limits
    place = 0 if limits is None or limits.attribute is None else cell[limits.attribute]
    norm = Fraction(int(largest_values[place])) ** power
    for factor in measured_block.factors:
        column = dense(factor.operator)[:, cell[factor.attributes[0]]]
        entries = [
            abs(int(entry) * int(weight)) ** power
            for entry, weight in zip(column, factor.weights, strict=True)
        ]
        norm *= sum(entries)
    return norm / measured_block.scale**power


@pytest.mark.parametrize(("seed", "power"), [(0, 1), (1, 2)])
def test_blocks_with_one_difference_add_their_costs(seed, power):
    noise = Noise.DISCRETE_LAPLACE if power == 1 else Noise.DISCRETE_GAUSSIAN
    for family in families(seed):
        for first_block, second_block in itertools.combinations(family, 2):
            blocks = [first_block, second_block, first_block]
            norm = column_norm(measured(blocks, noise), power)
            assert norm == norm_by_entries(blocks, power), (first_block, second_block)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "neighbours"), [*enumerate(["add_remove", "replace"])])
def test_unit_cells_added_cost_at_least_the_worst_unit(seed, neighbours):
    for family in families(seed):
        unlimited = [member for member in family if member.limits is None]
        for blocks in itertools.islice(itertools.combinations(unlimited, 2), 4):
            plan = measured(
                list(blocks),
                neighbours=neighbours,
                unit_column="id",
                max_rows=2,
                max_per_cell=PerCellBound(1, "a"),
            )
            assert 2 * cost(plan).rho >= worst(plan) * (1 - 1e-7), blocks


def digest_and_cost(plan):
    return measurements_digest(plan), str(cost(plan))


@pytest.mark.slow
def test_cost_does_not_depend_on_earlier_calls():
    """Costs under replace are equal in any order and with empty caches."""
    assert {function.__name__ for function in cached_functions()} >= {"_norm_and_distance"}
    rng = random.Random(0)
    families_of_counts = [
        family for family in families(0) if all(member.measure is None for member in family)
    ]
    noises = (Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN)
    plans = []
    for family in families_of_counts:
        for pair, noise in itertools.product(itertools.pairwise(family), noises):
            plans.append(measured(list(pair), noise, neighbours="replace"))
    fresh = []
    for plan in plans:
        for function in cached_functions():
            function.cache_clear()
        fresh.append(digest_and_cost(plan))
    order = rng.sample(range(len(plans)), len(plans))
    assert {place: digest_and_cost(plans[place]) for place in order} == dict(enumerate(fresh))


def test_digest_covers_every_field():
    start = {"measure": "pay", "limits": LIMITS[1], "beside": Identity(2)}
    base = measured([block(**start)])
    unit = {"neighbours": "replace", "unit_column": "id", "max_rows": 2}
    plans = [
        measured([block(**(start | {name: value}))])
        for name in FIELDS
        if name != "ends"
        for value in FIELDS[name]
    ]
    plans += [measured([block(measure="pay", ends=ends)]) for ends in (False, True)]
    plans += [
        measured([block(**start), block(**start)]),
        replace(base, grid=2),
        replace(base, noise=Noise.ROUNDED_GAUSSIAN),
    ]
    plans += [
        replace(
            base,
            domain=Domain(a=Integers(0, 2), b=Integers(0, 2), c=Integers(2, 3), measures=MEASURES),
        )
    ]
    plans += [
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
    plans += [replace(base, privacy=Privacy(ZCDP(1), **(unit | change))) for change in changes]
    different = {
        (repr(plan.domain), plan.privacy, plan.noise, plan.blocks, plan.grid) for plan in plans
    }

    assert len({measurements_digest(plan) for plan in plans}) == len(different) >= 35
