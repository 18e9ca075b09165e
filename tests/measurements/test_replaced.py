"""Distances of two rows against all pairs of rows: never less, for tables and along one attribute the same."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._domain import Coded, Domain, Measure
from leastnoise._linop import AllRanges, Coarse, Contrasts, Dense, DiagonalAndRows, Haar, Identity, Operator, Ordered, Prefix, Total, Tree
from leastnoise._measurements import Block, Factor, Limits, Measurements, _sensitivity
from leastnoise._measurements._sensitivity import replaced_distance
from measurements.brute import claimed, units_of, worst

SIZES = {"a": 2, "b": 3, "c": 4}
MEASURES = {"pay": Measure("pay", -2, 3), "tips": Measure("tips", 0, 4)}
DOMAIN = Domain({name: Coded(size) for name, size in SIZES.items()}, measures=MEASURES)

LIMITS = [None, Limits(np.array([2])), Limits(np.array([3, 1]), "a"), Limits(np.array([1, 0, 3]), "b")]


def operators(size: int, power: int) -> st.SearchStrategy[Operator]:
    rows = st.lists(st.lists(st.integers(-2, 2), min_size=size, max_size=size).filter(any), min_size=1, max_size=3)
    return st.one_of(
        st.sampled_from([Identity(size), Prefix(size), Total(size), Tree.full(size, 2), Haar(size), AllRanges(size)]),
        st.just(Coarse(Prefix(2), np.array([0, 1]), size)),
        st.just(Contrasts(size)) if power == 2 else st.nothing(),
        rows.map(lambda found: Dense(np.array(found))),
        st.tuples(st.lists(st.integers(1, 3), min_size=size, max_size=size), rows).map(lambda pair: DiagonalAndRows(*map(np.array, pair))),
        st.permutations(range(size)).map(lambda order: Ordered(Prefix(size), np.array(order))),
    )


@st.composite
def blocks(draw: st.DrawFn, power: int, *, summed: bool) -> Block:
    factors = []
    for together in draw(st.sampled_from([(), ("a",), ("b",), ("a", "b"), ("a", "c"), (("a", "b"), "c"), ("a", "b", "c"), (("b", "c"),)])):
        names = (together,) if isinstance(together, str) else together
        operator = draw(operators(math.prod(SIZES[name] for name in names), power))
        weights = None
        if not isinstance(operator, Contrasts) and draw(st.booleans()):
            weights = np.array(draw(st.lists(st.integers(1, 5), min_size=operator.rows, max_size=operator.rows)))
        factors.append(Factor(names, operator, weights))
    measure = draw(st.sampled_from([None, None, "pay", "tips"])) if summed else None
    limits = None if measure is None else draw(st.sampled_from(LIMITS))
    return Block(tuple(factors), draw(st.fractions(Fraction(1, 4), 9, max_denominator=7)), measure, limits)


def plan_of(power: int, measured: list[Block], domain: Domain = DOMAIN) -> Measurements:
    privacy = Privacy(PureDP(1) if power == 1 else ZCDP(1), "replace")
    mechanism = Noise.DISCRETE_LAPLACE if power == 1 else Noise.DISCRETE_GAUSSIAN
    return Measurements(domain=domain, privacy=privacy, noise=mechanism, blocks=tuple(measured))


@settings(max_examples=70, deadline=None)
@given(st.data(), st.sampled_from([1, 2]))
def test_no_two_rows_are_farther_apart(data: st.DataObject, power: int) -> None:
    plan = plan_of(power, data.draw(st.lists(blocks(power, summed=True), min_size=1, max_size=3)))
    assert claimed(plan) >= worst(plan) * (1 - 1e-12)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from([1, 2]))
def test_of_one_attribute_nothing_is_lost(data: st.DataObject, power: int) -> None:
    operator = data.draw(operators(4, power))
    weights = (
        None
        if isinstance(operator, Contrasts)
        else np.array(data.draw(st.lists(st.integers(1, 5), min_size=operator.rows, max_size=operator.rows)))
    )
    plan = plan_of(power, [Block((Factor(("c",), operator, weights),), Fraction(3, 2))])
    assert claimed(plan) == pytest.approx(worst(plan), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.fractions(Fraction(1, 4), 9, max_denominator=7)), min_size=1, max_size=4),
    st.booleans(),
)
def test_of_tables_and_of_contrasts_nothing_is_lost(tables: list[tuple[set[str], Fraction]], contrasts: bool) -> None:
    make = Contrasts if contrasts else Identity
    measured = [Block(tuple(Factor((name,), make(SIZES[name])) for name in sorted(names)), scale) for names, scale in tables]
    for power in (2,) if contrasts else (1, 2):
        assert claimed(plan_of(power, measured)) == pytest.approx(worst(plan_of(power, measured)), rel=1e-9)


@pytest.mark.parametrize("name", ["_MOST_CELLS", "_MOST_ENTRIES", "_MOST_COMPARED", "_MOST_SETS", "_EXACT_FLOAT", "_EXACT_BITS"])
@pytest.mark.parametrize("most", [1, 6])
@settings(max_examples=5, deadline=None)
@given(st.data(), st.sampled_from([1, 2]))
def test_no_limit_of_work_makes_rows_nearer(name: str, most: int, data: st.DataObject, power: int) -> None:
    plan = plan_of(power, data.draw(st.lists(blocks(power, summed=True), min_size=1, max_size=3)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_sensitivity, name, most)
        _sensitivity._apart.cache_clear()
        found = replaced_distance(plan, power)
    _sensitivity._apart.cache_clear()
    inside = units_of(plan)
    assert float(found) * (1 + 1e-12) >= worst(plan, inside[inside.any(axis=1)])


@pytest.mark.parametrize("power", [1, 2])
def test_products_are_bounded_by_what_all_columns_of_each_factor_share(power: int) -> None:
    """Twice the largest norm less the last query, which all have; exact where columns are as long as one another, as in trees."""
    sums, trees = (
        plan_of(power, [Block(tuple(Factor((name,), make(size)) for name, size in SIZES.items()), Fraction(1))])
        for make in (Prefix, lambda size: Tree.full(size, 2))
    )
    assert replaced_distance(sums, power) == 2 * (24 - 1)
    assert replaced_distance(trees, power) == round(worst(trees))


def test_long_attributes_are_told_apart() -> None:
    """Two to the twentieth cells: nothing in common but the root; a wavelet's squares are bounded by opposite columns."""
    domain = Domain(a=Coded(2**20))
    for power, operator, apart in ((1, Tree.full(2**20, 2), 40), (2, Tree.full(2**20, 2), 40), (1, Haar(2**20), 40), (2, Haar(2**20), 80)):
        assert replaced_distance(plan_of(power, [Block((Factor(("a",), operator),), Fraction(1))], domain), power) == apart


@pytest.mark.parametrize("count", [5, 19, 31])
def test_alike_attributes_are_counted(count: int) -> None:
    """Of all pairs among d attributes of two cells, m in which the rows differ: 2 m + m (d - m) is largest at a known m."""
    domain = Domain({f"a{place}": Coded(2) for place in range(count)})
    factors = [Factor((name,), Contrasts(2)) for name in domain.names]
    measured = [Block((one,), Fraction(1)) for one in factors] + [Block(pair, Fraction(1)) for pair in itertools.combinations(factors, 2)]
    exact = Fraction(max(2 * m + m * (count - m) for m in range(count + 1)))
    assert replaced_distance(plan_of(2, measured, domain), 2) == exact
    if count == 19:  # one block more, along one attribute: all are taken to have it, or it is dearer
        more = replaced_distance(plan_of(2, [*measured, Block((factors[0],), Fraction(1))], domain), 2)
        assert exact < more <= exact + 2 * count


def test_norms_beyond_floating_point_are_bounded_exactly() -> None:
    entries = np.array([[2**20 - 1, 2**20 - 3], [2**20 - 5, 2**20 - 7]])
    plan = plan_of(2, [Block((Factor(("a",), Dense(entries), np.array([2**7 - 1, 2**7 - 3])),), Fraction(2**10))])
    norm = sum((int(row[0]) * weight) ** 2 for row, weight in zip(entries, (2**7 - 1, 2**7 - 3), strict=True))
    assert replaced_distance(plan, 2) == Fraction(2 * norm, 2**20)


@pytest.mark.parametrize("bits", [512, 513])
def test_distances_are_exact_up_to_a_length_of_the_common_denominator(bits: int) -> None:
    tops = [3**33, 5**22, 7**18, 11**15, 13**14, 17**12, 19**12, 23**11, 29**10, 37**9]
    tops.append(2 ** (bits - math.prod(tops).bit_length()))
    scales = [Fraction(top, 31**8) for top in tops]
    plan = plan_of(1, [Block((Factor(("a",), Dense(np.array([[1, place + 2]]))),), scale) for place, scale in enumerate(scales)])
    exact, found = sum((place + 1) / scale for place, scale in enumerate(scales)), replaced_distance(plan, 1)
    assert math.lcm(*tops).bit_length() == bits
    assert exact <= found < exact * (1 + Fraction(1, 2**100))
    assert (found == exact) == (bits == 512)
