"""Costs of added or replaced rows, against all pairs of rows.

No cost is too small, and costs of tables and along one attribute are exact.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leastnoise._domain import Coded, Domain
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.linop import Contrasts, Dense, Haar, Identity, Prefix, Tree
from leastnoise._trusted.measurements import Block, Factor, _sensitivity, cost
from leastnoise._trusted.measurements._sensitivity import replaced_row_bound
from trusted.measurements import drawn
from trusted.measurements.brute import claimed, units_of, worst
from trusted.measurements.drawn import (
    DOMAIN,
    GAUSSIAN,
    LAPLACE,
    SIZES,
    blocks,
    cells,
    factors,
    scales,
)

NOISE = st.sampled_from([LAPLACE, GAUSSIAN])


def plan_of(power, measured, domain=DOMAIN):
    return drawn.plan_of(
        LAPLACE if power == 1 else GAUSSIAN, *measured, domain=domain, neighbours="replace"
    )


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.data(), NOISE, st.sampled_from(["add_remove", "replace"]))
def test_no_row_changes_more_than_is_claimed(data, noise, neighbours):
    measured = data.draw(st.lists(blocks(noise), min_size=1, max_size=3))
    plan = drawn.plan_of(noise, *measured, neighbours=neighbours)
    assert claimed(plan) >= worst(plan) * (1 - 1e-12)
    if noise is GAUSSIAN:
        assert (
            cost(drawn.plan_of(Noise.ROUNDED_GAUSSIAN, *measured, neighbours=neighbours)).mu_squared
            == 2 * cost(plan).rho
        )


@settings(max_examples=40, deadline=None)
@given(st.data(), NOISE)
def test_bound_along_one_attribute_is_exact(data, noise):
    block = Block((data.draw(factors(noise, ("c",), 4)),), Fraction(3, 2))
    plan = drawn.plan_of(noise, block, domain=Domain(c=Coded(4)), neighbours="replace")
    assert claimed(plan) == pytest.approx(worst(plan), rel=1e-9)


TABLES = st.lists(st.tuples(st.sets(st.sampled_from("abc")), scales), min_size=1, max_size=4)
TOTAL = [(set(), Fraction(1)), ({"b"}, Fraction(4))]  # which only a new row changes


@settings(max_examples=50, deadline=None)
@example(TOTAL, "contrasts", 2, "replace")
@given(
    TABLES,
    st.sampled_from(["contrasts", *Noise]),
    st.integers(1, 3),
    st.sampled_from(["add_remove", "replace"]),
)
def test_bound_of_tables_and_contrasts_is_exact(tables, kind, rows, neighbours):
    """Compare all sets of up to ``rows`` rows, and of none; the cost is exact."""
    unit = {"unit_column": "id", "max_rows": rows} if rows > 1 else {}
    operator_class = Contrasts if kind == "contrasts" else Identity
    measured = [Block(cells(*sorted(names), of=operator_class), scale) for names, scale in tables]
    plan = drawn.plan_of(
        GAUSSIAN if kind == "contrasts" else Noise(kind), *measured, neighbours=neighbours, **unit
    )
    assert claimed(plan) == pytest.approx(worst(plan), rel=1e-9)


@pytest.mark.parametrize(
    "name",
    ["_MOST_CELLS", "_MOST_ENTRIES", "_MOST_COMPARED", "_MOST_SETS", "_EXACT_FLOAT", "_EXACT_BITS"],
)
@pytest.mark.parametrize("most", [1, 6])
@settings(max_examples=5, deadline=None)
@given(st.data(), NOISE)
def test_bound_holds_under_each_work_limit(name, most, data, noise):
    plan = drawn.plan_of(
        noise, *data.draw(st.lists(blocks(noise), min_size=1, max_size=3)), neighbours="replace"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_sensitivity, name, most)
        _sensitivity._norm_and_distance.cache_clear()
        bound = replaced_row_bound(plan, noise.norm)
    _sensitivity._norm_and_distance.cache_clear()
    inside = units_of(plan)

    assert float(bound) * (1 + 1e-12) >= worst(plan, inside[inside.any(axis=1)])


# If there are more sets of attributes than ``most``, attributes with equally many cells are merged.
@pytest.mark.parametrize("most", [1, 6])
@settings(max_examples=20, deadline=None)
@example([({"a", "b"}, Fraction(1), Contrasts), ({"b", "c"}, Fraction(1), Identity)])
@given(
    st.lists(
        st.tuples(st.sets(st.sampled_from("abc")), scales, st.sampled_from([Contrasts, Identity])),
        min_size=1,
        max_size=4,
    )
)
def test_bound_holds_for_merged_attributes(most, tables):
    """Contrasts have negative shares, even in sets as large as others that have none."""
    plan = plan_of(
        2,
        [
            Block(cells(*sorted(names), of=operator_class), scale)
            for names, scale, operator_class in tables
        ],
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_sensitivity, "_MOST_SETS", most)
        distance = replaced_row_bound(plan, 2)
    inside = units_of(plan)

    assert float(distance) * (1 + 1e-12) >= worst(plan, inside[inside.any(axis=1)])


@pytest.mark.parametrize("power", [1, 2])
def test_products_are_bounded_by_shared_columns(power):
    """The bound is twice the largest norm less the last query, which all columns share.

    It is exact where all columns are equally long, as in trees.
    """
    sums, trees = (
        plan_of(
            power,
            [
                Block(
                    tuple(Factor((name,), make(size)) for name, size in SIZES.items()), Fraction(1)
                )
            ],
        )
        for make in (Prefix, lambda size: Tree.full(size, 2))
    )
    assert replaced_row_bound(sums, power) == 2 * (12 - 1)
    assert replaced_row_bound(trees, power) == round(worst(trees))


def test_long_attributes_are_distinguished():
    """Of 2^20 cells, columns share only the root; opposite columns bound a wavelet's squares."""
    domain = Domain(a=Coded(2**20))
    for power, operator, apart in (
        (1, Tree.full(2**20, 2), 40),
        (2, Tree.full(2**20, 2), 40),
        (1, Haar(2**20), 40),
        (2, Haar(2**20), 80),
    ):
        assert (
            replaced_row_bound(
                plan_of(power, [Block((Factor(("a",), operator),), Fraction(1))], domain), power
            )
            == apart
        )


@pytest.mark.parametrize("count", [5, 19, 31])
def test_alike_attributes_are_counted(count):
    """For all pairs of d binary attributes, m of them changed: maximise 2 m + m (d - m)."""
    domain = Domain({f"a{place}": Coded(2) for place in range(count)})
    factors = [Factor((name,), Contrasts(2)) for name in domain.names]
    measured = [Block((factor,), Fraction(1)) for factor in factors] + [
        Block(pair, Fraction(1)) for pair in itertools.combinations(factors, 2)
    ]
    exact = Fraction(max(2 * m + m * (count - m) for m in range(count + 1)))
    assert replaced_row_bound(plan_of(2, measured, domain), 2) == exact

    # One more block, along one attribute, either counts for all attributes or costs more.
    if count == 19:
        bound_of_more = replaced_row_bound(
            plan_of(2, [*measured, Block((factors[0],), Fraction(1))], domain), 2
        )
        assert exact < bound_of_more <= exact + 2 * count


def test_huge_norms_are_bounded_exactly():
    entries = np.array([[2**20 - 1, 2**20 - 3], [2**20 - 5, 2**20 - 7]])
    plan = plan_of(
        2,
        [Block((Factor(("a",), Dense(entries), np.array([2**7 - 1, 2**7 - 3])),), Fraction(2**10))],
    )
    norm = sum(
        (int(row[0]) * weight) ** 2
        for row, weight in zip(entries, (2**7 - 1, 2**7 - 3), strict=True)
    )

    assert replaced_row_bound(plan, 2) == Fraction(2 * norm, 2**20)


@pytest.mark.parametrize("bits", [512, 513])
def test_distances_are_exact_up_to_a_denominator_length(bits):
    tops = [3**33, 5**22, 7**18, 11**15, 13**14, 17**12, 19**12, 23**11, 29**10, 37**9]
    tops.append(2 ** (bits - math.prod(tops).bit_length()))
    scales = [Fraction(top, 31**8) for top in tops]
    plan = plan_of(
        1,
        [
            Block((Factor(("a",), Dense(np.array([[1, place + 2]]))),), scale)
            for place, scale in enumerate(scales)
        ],
    )
    exact = sum((place + 1) / scale for place, scale in enumerate(scales))
    bound = replaced_row_bound(plan, 1)

    assert math.lcm(*tops).bit_length() == bits
    assert exact <= bound < exact * (1 + Fraction(1, 2**100))
    assert (bound == exact) == (bits == 512)
