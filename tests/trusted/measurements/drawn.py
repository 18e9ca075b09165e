"""Random blocks of all kinds on a small domain, for tests against brute force."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from leastnoise._domain import Coded, Domain, Measure
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP
from leastnoise._trusted.linop import (
    AllRanges,
    Coarse,
    Contrasts,
    Dense,
    DiagonalAndRows,
    Haar,
    Identity,
    Ordered,
    Prefix,
    Total,
    Tree,
)
from leastnoise._trusted.measurements import Block, Factor, Limits, Measurements

SIZES = {"a": 2, "b": 3, "c": 2}
MEASURES = {"pay": Measure("pay", -2, 3), "tips": Measure("tips", 0, 4)}
DOMAIN = Domain({name: Coded(size) for name, size in SIZES.items()}, measures=MEASURES)
BUDGET = {
    Noise.DISCRETE_LAPLACE: PureDP(1),
    Noise.DISCRETE_GAUSSIAN: ZCDP(1),
    Noise.ROUNDED_GAUSSIAN: ApproxDP(1, "1e-6"),
}
LAPLACE = Noise.DISCRETE_LAPLACE
GAUSSIAN = Noise.DISCRETE_GAUSSIAN
LIMITS = [None, Limits([2]), Limits([3, 1], "a"), Limits([1, 0, 3], "b"), Limits([1, 1, 1], "b")]
ALONG = [
    (),
    ("a",),
    ("b",),
    ("a", "b"),
    ("b", "c"),
    (("a", "b"), "c"),
    ("a", "b", "c"),
    (("b", "c"),),
]

scales = st.fractions(Fraction(1, 4), 9, max_denominator=7)


def numbers(count, least=1, most=5):
    """Draw an array of integers."""
    return st.lists(st.integers(least, most), min_size=count, max_size=count).map(np.array)


def operators(size, noise):
    """Draw an operator on this number of cells that the noise allows."""
    rows = st.lists(numbers(size, -2, 2).filter(np.any), min_size=1, max_size=3).map(np.array)
    return st.one_of(
        st.just(Identity(size)),
        st.just(Identity(size) if noise is LAPLACE else Contrasts(size)),
        st.sampled_from(
            [Prefix(size), Total(size), Tree.full(size, 2), Haar(size), AllRanges(size)]
        ),
        st.just(Coarse(Prefix(2), np.array([0, 1]), size)),
        rows.map(Dense),
        st.builds(DiagonalAndRows, numbers(size, 1, 3), rows),
        st.permutations(range(size)).map(lambda order: Ordered(Prefix(size), np.array(order))),
    )


@st.composite
def factors(draw, noise, names, size=None):
    """Draw a factor along these attributes."""
    operator = draw(operators(size or math.prod(SIZES[name] for name in names), noise))
    weighted = not isinstance(operator, Contrasts) and draw(st.booleans())
    return Factor(names, operator, draw(numbers(operator.rows)) if weighted else None)


@st.composite
def blocks(draw, noise, measures=(None, None, *MEASURES)):
    """Draw a block of counts or sums."""
    along = [
        (attributes,) if isinstance(attributes, str) else attributes
        for attributes in draw(st.sampled_from(ALONG))
    ]
    measure = draw(st.sampled_from(measures))
    limits = None if measure is None else draw(st.sampled_from(LIMITS))
    return Block(
        tuple(draw(factors(noise, names)) for names in along), draw(scales), measure, limits
    )


def plan_of(noise, *measured, domain=DOMAIN, **privacy):
    """Return measurements of these blocks."""
    return Measurements(
        domain=domain, privacy=Privacy(BUDGET[noise], **privacy), noise=noise, blocks=measured
    )


def cells(*names, of=Identity):
    """Return the cells of some attributes, or their contrasts."""
    return tuple(Factor((name,), of(SIZES[name])) for name in names)
