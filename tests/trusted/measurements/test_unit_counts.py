"""The loss of units where rows and units are counted together, by brute force."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._domain import Coded, Domain, Measure, PerCellBound, UnitCount, UnitTotal
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import Contrasts, Dense, Identity, Prefix
from leastnoise._trusted.measurements import Block, Factor, Limits, Measurements
from trusted.measurements.brute import claimed, rows_of, worst

SIZES = {"a": 2, "b": 2}
UNITS = {"units": (), "units by a": ("a",), "units by a x b": ("a", "b")}
TOTALS = {
    "total": UnitTotal("pay", -1, 2),
    "total by a": UnitTotal("pay", 1, 3, by=["a"]),
    "total by a x b": UnitTotal("pay", -3, -1, by=["a", "b"]),
}
GROUPS = {
    "units in a group of a": UnitCount(["a"], [[[0, 1]]]),
    "units in groups of a x b": UnitCount(["a", "b"], [[[0], [0, 1]], [[0, 1]]]),
}
DOMAIN = Domain(
    {name: Coded(size) for name, size in SIZES.items()},
    measures={
        "pay": Measure("pay", -1, 2),
        **{name: UnitCount(attributes) for name, attributes in UNITS.items()},
        **TOTALS,
        **GROUPS,
    },
)
ALONG = {
    "a": [None, Identity(2), Prefix(2), Contrasts(2)],
    "b": [None, Identity(2), Dense([[1, -2]])],
}


def plan_of(blocks, noise, neighbours, most, bound=None):
    budget = PureDP(1) if noise is Noise.DISCRETE_LAPLACE else ZCDP(1)
    return Measurements(
        domain=DOMAIN,
        privacy=Privacy(budget, neighbours, "id", most, bound),
        noise=noise,
        blocks=tuple(blocks),
    )


@st.composite
def measured(draw, noise):
    """Draw measurements of rows, sums and counts of units."""
    blocks = []
    for of in draw(
        st.lists(st.sampled_from([None, "pay", *UNITS, *TOTALS, *GROUPS]), min_size=1, max_size=3)
    ):
        factors = []
        for name, operators in ALONG.items():
            operator = draw(st.sampled_from(operators))
            if operator is not None and not (isinstance(operator, Contrasts) and noise.norm == 1):
                factors.append(Factor((name,), operator))
        blocks.append(
            Block(
                tuple(factors),
                draw(st.fractions(min_value=Fraction(1, 2), max_value=3, max_denominator=4)),
                of,
            )
        )
    return blocks


@pytest.mark.parametrize("noise", [Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(
    ("most", "bound"), [(1, None), (2, None), (2, PerCellBound(1, "a")), (3, None)], ids=str
)
@settings(max_examples=6)
@given(data=st.data())
def test_cost_is_never_below_the_worst_change(noise, neighbours, most, bound, data):
    plan = plan_of(data.draw(measured(noise)), noise, neighbours, most, bound)
    assert claimed(plan) >= worst(plan) * (1 - 1e-7)


CELLS = {
    (): (),
    ("a",): (Factor(("a",), Identity(2)),),
    ("a", "b"): tuple(Factor((name,), Identity(2)) for name in "ab"),
}


@pytest.mark.parametrize(
    ("of", "laplace", "gaussian"), [("units", 3, 1), ("units by a", 4, 2), ("units by a x b", 4, 2)]
)
def test_rows_and_units_cost_the_sum(of, laplace, gaussian):
    """Two rows at scale 1 and the units of each cell; Laplace noise attains the cost."""
    tables = [
        Block(CELLS["a", "b"], Fraction(1)),
        Block(CELLS[UNITS[of] or ("a",)], Fraction(1), of),
    ]
    pure = plan_of(tables, Noise.DISCRETE_LAPLACE, "add_remove", 2)
    assert claimed(pure) == laplace
    assert worst(pure) == laplace
    normal = plan_of(tables, Noise.DISCRETE_GAUSSIAN, "add_remove", 2)
    assert claimed(normal) == (5 if of == "units" else 6)
    without_first = plan_of(tables[1:], Noise.DISCRETE_GAUSSIAN, "add_remove", 2)
    assert claimed(without_first) == worst(without_first) == gaussian


def test_separate_rows_may_share_a_coarser_cell():
    """Two cells of a x b may be one cell of a, so the bound of all attributes holds there."""
    for noise, largest in ((Noise.DISCRETE_LAPLACE, 2), (Noise.DISCRETE_GAUSSIAN, 4)):
        plan = plan_of([Block(CELLS["a",], Fraction(1), "units by a x b")], noise, "add_remove", 2)
        assert claimed(plan) == worst(plan) == largest


@pytest.mark.parametrize(
    ("measure", "names", "laplace", "gaussian"),
    [
        ("total by a", ("a",), 6, 18),  # 3 in each of two cells
        ("total by a x b", ("a", "b"), 6, 18),  # two rows of -3
        ("total by a x b", ("a",), 6, 36),  # which may be in one cell of a
        ("total", (), 2, 4),
        ("units in a group of a", ("a",), 1, 1),
        ("units in groups of a x b", ("a", "b"), 2, 2),
    ],
)
def test_amounts_of_units_cost_the_largest(measure, names, laplace, gaussian):
    """A unit has at most two cells, and no more than there are groups."""
    for noise, largest in ((Noise.DISCRETE_LAPLACE, laplace), (Noise.DISCRETE_GAUSSIAN, gaussian)):
        plan = plan_of([Block(CELLS[names], Fraction(1), measure)], noise, "add_remove", 2)
        assert claimed(plan) == worst(plan) == largest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ends": True}, "a measure without limits; got 'counts or limited sums'"),
        (
            {"limits": Limits([1])},
            (
                "a sum of amounts of units must be a plain sum, where a column names the units; "
                "got 'one of limits'"
            ),
        ),
        ({}, "got 'one of rows'"),
    ],
)
def test_uncountable_measurements_are_refused(change, message):
    privacy = Privacy(PureDP(1), unit_column="id" if change else None)
    block = Block((), Fraction(1), "units", **change)
    with pytest.raises(InputError, match=message):
        Measurements(domain=DOMAIN, privacy=privacy, noise=Noise.DISCRETE_LAPLACE, blocks=(block,))


IN_PERIODS = Domain(
    {"t": Coded(3), "a": Coded(2)},
    measures={"by t": UnitCount(("t",)), "by t x a": UnitCount(("t", "a")), "by a": UnitCount("a")},
)


def in_periods(noise, neighbours, *blocks, rows, most):
    budget = PureDP(1) if noise is Noise.DISCRETE_LAPLACE else ZCDP(1)
    privacy = Privacy(budget, neighbours, "id", most, PerCellBound(rows, "t"))
    return Measurements(domain=IN_PERIODS, privacy=privacy, noise=noise, blocks=blocks)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("noise", [Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN])
@pytest.mark.parametrize(
    ("measure", "along_a"), [("by t", False), ("by t x a", True), ("by t x a", False)]
)
def test_units_by_period_cost_their_change(noise, neighbours, measure, along_a):
    """A unit has up to two rows in each of three periods, and counts once in each cell."""
    lower = Dense([[2, 0, 0], [1, 3, 0], [1, 1, 1]])
    factors = (Factor(("t",), lower), *([Factor(("a",), Identity(2))] if along_a else []))
    plan = in_periods(noise, neighbours, Block(factors, Fraction(2), measure), rows=2, most=6)
    worst = worst_counts(plan, measure)
    assert worst <= claimed(plan) * (1 + 1e-9)
    # Of two units that replace each other the cost is an upper bound only.
    if neighbours == "add_remove":
        assert claimed(plan) == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("measure", ["by t", "by t x a", "by a"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_period_bounded_units_are_not_undercharged(neighbours, measure, data):
    noise = data.draw(st.sampled_from([Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN]))
    entries = data.draw(st.lists(st.integers(-2, 3), min_size=6, max_size=6))
    along_t = Dense([[*entries[:3]], [*entries[3:]], [1, 0, 2]])
    uneven = Dense([[1, 0], [2, 3]])
    along_a = data.draw(
        st.sampled_from([(), *((Factor(("a",), operator),) for operator in (Identity(2), uneven))])
    )
    block = Block((Factor(("t",), along_t), *along_a), Fraction(3, 2), measure)
    rows = data.draw(st.integers(1, 2))
    most = data.draw(st.integers(rows, 3))
    plan = in_periods(noise, neighbours, block, rows=rows, most=most)

    assert claimed(plan) >= worst_counts(plan, measure) * (1 - 1e-9)


def worst_counts(plan, measure):
    """Return the largest change by units within all bounds."""
    bound = plan.privacy.max_per_cell
    assert bound is not None
    names = IN_PERIODS.measure(measure).attributes
    worthy = [row for row in rows_of(plan) if row.values[measure]]
    sums = [np.zeros_like(worthy[0].column)]
    for number in range(1, plan.privacy.max_rows + 1):
        for chosen in itertools.combinations(worthy, number):
            cells = {tuple(row.cells[name] for name in names) for row in chosen}
            in_period = Counter(row.cells["t"] for row in chosen)
            if len(cells) == number and max(in_period.values()) <= bound.rows:
                sums.append(sum(row.column for row in chosen))
    return worst(plan, np.array(sums))
