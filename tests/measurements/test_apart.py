"""The distance of two rows against brute force over all pairs of rows; every shortcut gives at least as much, and how much more."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._check import InputError
from leastnoise._domain import Coded, Domain, Measure
from leastnoise._linop import (
    AllRanges,
    Coarse,
    Contrasts,
    Dense,
    DiagonalAndRows,
    Haar,
    Identity,
    Operator,
    Ordered,
    Prefix,
    Total,
    Tree,
    dense,
)
from leastnoise._measurements import Block, Factor, Limits, Measurements, _apart, _pairs, cost
from leastnoise._measurements._apart import largest_distance

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


def rows(plan: Measurements) -> np.ndarray:
    """The columns of all rows, with extreme values of the measures, and of a row that does not count."""
    found = []
    for cells in itertools.product(*(range(size) for size in SIZES.values())):
        at = dict(zip(SIZES, cells, strict=True))
        for pay, tips in itertools.product((-2, 0, 3), (0, 4)):
            column = []
            for block in plan.blocks:
                value = {None: 1, "pay": pay, "tips": tips}[block.measure]
                if block.limits is not None:
                    value = min(value, int(block.limits.values[at.get(block.limits.attribute or "", 0)]))
                own: np.ndarray = np.ones(1)
                for factor in block.factors:
                    place = np.ravel_multi_index([at[name] for name in factor.attributes], [SIZES[name] for name in factor.attributes])
                    own = np.kron(own, dense(factor.operator)[:, place] * factor.scaling)
                column.append(own * value / float(block.scale))
            found.append(np.concatenate(column))
    return np.unique([*found, np.zeros_like(found[0])], axis=0)


def brute(plan: Measurements, power: int) -> float:
    columns = rows(plan)
    return float(max((np.abs(columns - one) ** power).sum(axis=1).max() for one in columns))


def claimed(plan: Measurements, power: int) -> float:
    spent = cost(plan)
    return float(spent.epsilon if power == 1 else 2 * spent.rho)  # type: ignore[union-attr]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([1, 2]))
def test_no_two_rows_are_farther_apart(data: st.DataObject, power: int) -> None:
    plan = plan_of(power, data.draw(st.lists(blocks(power, summed=True), min_size=1, max_size=3)))
    assert claimed(plan, power) >= brute(plan, power) * (1 - 1e-12)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_counts_under_gaussian_noise_are_exact(data: st.DataObject) -> None:
    plan = plan_of(2, data.draw(st.lists(blocks(2, summed=False), min_size=1, max_size=3)))
    if brute(plan, 2) > 0:  # a cost of nothing is no cost
        assert claimed(plan, 2) == pytest.approx(brute(plan, 2), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from([1, 2]), st.sampled_from(["limits", "no tables", "few combinations"]))
def test_every_shortcut_is_safe(data: st.DataObject, power: int, shortcut: str) -> None:
    measured = data.draw(st.lists(blocks(power, summed=True), min_size=1, max_size=3))
    with pytest.MonkeyPatch.context() as patched:
        _apart._axis.cache_clear()
        if shortcut == "limits":
            patched.setattr(_apart, "_LIMITS", (data.draw(st.sampled_from([3, 2, 1])),))
            patched.setattr(_apart, "_MOST_LISTED", 20)
        elif shortcut == "no tables":
            patched.setattr(_apart, "MOST_CELLS", 2)
            patched.setattr(_pairs, "MOST_CELLS", 2)
        else:
            patched.setattr(_apart, "_LIMITS", (64,))
            patched.setattr(_apart, "_MOST_COMBINED", 3)
            patched.setattr(_apart, "_EXACT_WORK", 1)
        plan = plan_of(power, measured)
        found = claimed(plan, power)
    _apart._axis.cache_clear()
    assert found >= brute(plan, power) * (1 - 1e-12)
    assert found >= claimed(plan, power) * (1 - 1e-12)  # and no shortcut is better than all pairs


@pytest.mark.parametrize(("bits", "most"), [(1, 10**9), (3, 10**9), (8, 10**9), (8, 100)])
def test_shares_are_rounded_to_the_far_side_and_to_few_numbers(bits: int, most: int) -> None:
    found = np.random.default_rng(bits).integers(-most, most, size=(50, 2, 4))
    rounded = _apart._rounded(found, bits)
    norms, common = rounded[:, :, :2] - found[:, :, :2], found[:, :, 2:] - rounded[:, :, 2:]
    assert norms.min() >= 0 <= common.min()
    assert not (rounded[:, :, 2:] % 2).any()
    for part, column in np.ndindex(2, 4):
        assert len(np.unique(rounded[:, part, column])) <= 2 ** (bits + 1) + 1


def test_axes_that_are_too_long_are_bounded_as_if_columns_could_be_opposite(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_apart, _pairs):
        monkeypatch.setattr(module, "MOST_CELLS", 1)
    one = Factor(("a",), Dense(np.array([[2, -1]])))  # squares of norms: 4 and 1
    two = Factor(("c",), Dense(np.array([[1, -1, 1, 2], [0, 1, -1, 1]])))  # 1, 2, 2 and 5
    plan = plan_of(2, [Block(factors, Fraction(1)) for factors in ((one,), (two,), (one, two))])
    _apart._axis.cache_clear()
    found = largest_distance(plan, 2)
    _apart._axis.cache_clear()
    assert brute(plan, 2) <= 4 * 5 + 4 * 4 * 5 == found  # equal along the first, opposite along the second


def test_axes_that_are_too_long_are_bounded_by_orthogonal_columns_where_no_entry_is_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_apart, _pairs):
        monkeypatch.setattr(module, "MOST_CELLS", 1)
    one = Factor(("a",), Dense(np.array([[2, 1]])))  # squares of norms: 4 and 1
    two = Factor(("c",), Dense(np.array([[1, 1, 1, 2], [0, 1, 1, 1]])))  # 1, 2, 2 and 5
    plan = plan_of(2, [Block(factors, Fraction(1)) for factors in ((one,), (two,), (one, two))])
    _apart._axis.cache_clear()
    found = largest_distance(plan, 2)
    _apart._axis.cache_clear()
    assert brute(plan, 2) <= 2 * (4 + 5 + 4 * 5) == found


def test_several_rows_with_any_entries_are_told_apart_exactly() -> None:
    plan = plan_of(1, [Block((Factor(("a",), Dense(np.array([[2, 1], [1, 2]]))),), Fraction(1))])
    assert largest_distance(plan, 1) == 2


@pytest.mark.parametrize("power", [1, 2])
def test_trees_and_wavelets_are_told_apart_by_a_few_pairs(power: int) -> None:
    for size in (1, 2, 3, 5, 8, 11):
        for operator in (Tree.full(size, 2), Tree.full(size, 3), Tree(size, (4, 2)), Haar(size)):
            sizes = operator.level_sizes if isinstance(operator, Tree) else (1, *(-(-size // width) for width in operator.widths))
            weights = np.repeat(np.arange(3, 3 + len(sizes)) % 4 + 1, sizes)
            for factors in ([Factor(("a",), operator, weights)], [Factor(("a",), operator, weights), Factor(("a",), Identity(size))]):
                steps = _pairs.ladder(factors)
                assert steps is not None
                few, all_pairs = (
                    np.concatenate([shared.shares for f in factors if (shared := _pairs.shared(f, power, which))], axis=1)
                    for which in (steps, None)
                )
                assert {*map(tuple, few.tolist())} == {*map(tuple, all_pairs.tolist())}


def test_long_attributes_are_told_apart() -> None:
    """Two to the twentieth cells: nothing in common but the root, or the root and the opposite half."""
    domain = Domain(a=Coded(2**20))
    for power, operator, apart in ((1, Tree.full(2**20, 2), 40), (2, Tree.full(2**20, 2), 40), (1, Haar(2**20), 40), (2, Haar(2**20), 42)):
        assert largest_distance(plan_of(power, [Block((Factor(("a",), operator),), Fraction(1))], domain), power) == apart


def test_alike_attributes_are_counted() -> None:
    """Of all pairs among d attributes of two cells, m in which the rows differ: 2 m + m (d - m) is largest at a known m."""
    for count in (5, 19, 31):
        domain = Domain({f"a{place}": Coded(2) for place in range(count)})
        factors = [Factor((name,), Contrasts(2)) for name in domain.names]
        measured = [Block((one,), Fraction(1)) for one in factors] + [
            Block(pair, Fraction(1)) for pair in itertools.combinations(factors, 2)
        ]
        exact = Fraction(max(2 * m + m * (count - m) for m in range(count + 1)))
        assert exact <= (largest_distance(plan_of(2, measured, domain), 2) or 0) <= exact * (1 + Fraction(1, 2**40))


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("limits", [None, Limits(np.array([2])), Limits(np.array([2, 1]), "a")])
def test_no_name_of_the_domain_makes_rows_nearer(power: int, limits: Limits | None) -> None:
    """Attributes and measures may have any printable name, also one that the search could have used for values."""

    def found(attribute: str, measure: str) -> Fraction | None:
        domain = Domain({"a": Coded(2), attribute: Coded(2)}, measures={"pay": MEASURES["pay"], measure: MEASURES["tips"]})
        each = [Factor((name,), Identity(2)) for name in domain.names]
        measured = [Block(tuple(each), Fraction(1), "pay", limits), Block((), Fraction(1), measure), Block((each[1],), Fraction(1))]
        return largest_distance(plan_of(power, measured, domain), power)

    key = None if limits is None else limits.key()
    for free in ("", "value of ", " ", "0", "\\0", "\\x00"):
        for name in (f"{free}pay", f"{free}pay below {key}", f"{free}pay{key}", f"{free}pay\\x00{key}"):
            assert found(name, "tips") == found("b", "tips")
            if name != "pay":
                assert found("b", name) == found("b", "tips")
    with pytest.raises(InputError, match="control"):
        found("\0pay", "tips")


def test_weights_beyond_floating_point_are_multiplied_exactly() -> None:
    """Norms above 2^53: floating-point products would be off by one."""
    entries = np.array([[2**20 - 1, 2**20 - 3], [2**20 - 5, 2**20 - 7]])
    plan = plan_of(2, [Block((Factor(("a",), Dense(entries), np.array([2**7 - 1, 2**7 - 3])),), Fraction(2**10))])
    weighted = [[int(x) * w for x in row] for row, w in zip(entries, (2**7 - 1, 2**7 - 3), strict=True)]
    distance = sum((row[0] - row[1]) ** 2 for row in weighted)
    assert largest_distance(plan, 2) == Fraction(distance, 2**20)


def test_distances_without_a_short_common_denominator_are_short_too() -> None:
    """Of ten scales the common denominator has more than 512 bits; each part is rounded up, to 128 bits after the point of the least."""
    scales = [Fraction(3**34 + 2 * place, 2**44) for place in range(10)]
    plan = plan_of(1, [Block((Factor(("a",), Dense(np.array([[1, place + 2]]))),), scale) for place, scale in enumerate(scales)])
    exact = sum((place + 1) / scale for place, scale in enumerate(scales))
    found = largest_distance(plan, 1) or Fraction(0)
    assert math.lcm(*(scale.numerator for scale in scales)).bit_length() > 512
    assert exact < found < exact * (1 + Fraction(1, 2**120))
    assert found.denominator == 2 ** (128 + 54 - 45)


@pytest.mark.parametrize("bits", [512, 513])
def test_distances_are_exact_up_to_a_length_of_the_common_denominator(bits: int) -> None:
    tops = [3**33, 5**22, 7**18, 11**15, 13**14, 17**12, 19**12, 23**11, 29**10, 37**9]
    tops.append(2 ** (bits - math.prod(tops).bit_length()))
    scales = [Fraction(top, 31**8) for top in tops]
    plan = plan_of(1, [Block((Factor(("a",), Dense(np.array([[1, place + 2]]))),), scale) for place, scale in enumerate(scales)])
    exact, found = sum((place + 1) / scale for place, scale in enumerate(scales)), largest_distance(plan, 1)
    assert math.lcm(*tops).bit_length() == bits
    assert found is not None
    assert found >= exact
    assert (found == exact) == (bits == 512)


def test_norms_beyond_64_bits_along_an_axis_too_long_to_be_listed_are_exact() -> None:
    size, value, weight = 2500, 2897, 2**20 - 1
    domain = Domain({"a": Coded(size)}, measures={"pay": Measure("pay", 0, value)})
    limits = Limits(np.full(size, value), "a")
    summed = Block((Factor(("a",), Total(size), np.array([weight])),), Fraction(1), "pay", limits)
    wavelet = Block((Factor(("a",), Haar(size)),), Fraction(1))
    assert 2**63 < (value * weight) ** 2 < 2**64
    norm = int(np.max((dense(Haar(size)) ** 2).sum(axis=0)))
    assert largest_distance(plan_of(2, [summed, wavelet], domain), 2) == 2 * (value * weight) ** 2 + 4 * norm


@pytest.mark.parametrize(
    ("power", "operator", "weight"),
    [
        (2, Dense(np.full((257, 2048), 2**4)), 2**20),  # 2^30 products of whole numbers, with sums beyond 2^53
        (1, Dense(np.full((257, 2048), 2**4)), 1),  # rows of several entries, compared one by one
        (1, Dense(np.ones((4097, 2048), dtype=np.int8)), 1),  # 2^23 entries
        (2, Dense(np.full((2, 2), 2**10)), 2**20),
    ],
    ids=["products", "comparisons", "entries", "norms"],
)
def test_pairs_that_are_too_much_work_are_not_listed(power: int, operator: Operator, weight: int) -> None:
    assert _pairs.shared(Factor(("a",), operator, np.full(operator.rows, weight)), power, None) is None


@pytest.mark.parametrize("power", [1, 2])
def test_pairs_of_a_product_are_those_of_its_matrix(power: int) -> None:
    """Of entries of -1, 0 and 1 where norms are sums; of any where they are sums of squares."""
    rng, most = np.random.default_rng(power), 2 * power
    for _ in range(5):
        one, other = rng.integers(1 - most, most, (3, 2)), rng.integers(1 - most, most, (4, 3))
        listed = _apart._listed(((Factor(("a",), Dense(one)), Factor(("b",), Dense(other))),), {"a": 2, "b": 3}, power)
        whole = _pairs.shared(Factor(("a", "b"), Dense(np.kron(one, other))), power, None)
        assert listed is not None
        assert whole is not None
        ((unit,), found) = listed
        assert (found[:, 0] * unit).tolist() == (whole.shares * whole.unit).reshape(-1, 4).tolist()


@pytest.mark.parametrize(("sizes", "few"), [((16, 32), True), ((19, 27), False)], ids=["2^18 pairs", "more"])
def test_pairs_in_whole_numbers_of_python_are_listed_up_to_a_number(sizes: tuple[int, int], few: bool) -> None:
    factors = tuple(Factor((name,), Prefix(size)) for name, size in zip("ab", sizes, strict=True))
    assert (_apart._listed((factors,), dict(zip("ab", sizes, strict=True)), 2) is not None) == few


def test_matrices_are_compared_up_to_a_number_of_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (5, 6):
        monkeypatch.setattr(_pairs, "_MOST_ENTRIES", most)
        assert (_pairs.shared(Factor(("a",), Dense([[1, 2], [3, 4], [5, 6]])), 1, None) is not None) == (most == 6)
