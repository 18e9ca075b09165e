"""Variances of ranges and products of queries without listing the queries."""

import tracemalloc
from functools import reduce

import numpy as np
import pytest

from leastnoise._domain import Coded, Domain
from leastnoise._error import joint_rows_in_parts, joint_variances, measure_covariance
from leastnoise._families import invert_gram
from leastnoise._trusted.accounting import Noise, Privacy, PureDP
from leastnoise._trusted.linop import (
    AllRanges,
    Dense,
    DiagonalAndRows,
    Identity,
    Prefix,
    Ranges,
    Tree,
    dense,
)
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._workload import all_ranges, queries

RNG = np.random.default_rng(5)
CELLS = DiagonalAndRows(RNG.integers(1, 9, 12), RNG.integers(-3, 6, (3, 12)))
MIXED = [
    AllRanges(4),
    Dense(RNG.integers(-2, 3, (5, 3))),
    Prefix(2),
    Ranges(2, [0, 1, 0], [1, 1, 0]),
]


def test_product_variances_match_single_rows(monkeypatch):
    root = RNG.normal(size=(48, 48))
    rows = reduce(np.kron, map(dense, MIXED))
    expected = np.einsum("ij,jk,ik->i", rows, root @ root.T, rows)
    np.testing.assert_allclose(joint_variances(root @ root.T, MIXED), expected, rtol=1e-9)
    monkeypatch.setattr("leastnoise._error._joint._AT_ONCE", 500)
    np.testing.assert_allclose(joint_variances(root @ root.T, MIXED), expected, rtol=1e-9)
    parts = list(joint_rows_in_parts(MIXED))
    assert len(parts) > 1
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), rows)


def test_matrix_of_plane_ranges_is_not_expanded():
    # Blocks without a product form on 24 x 24 cells: the 90,000 rows would have 400 MB.
    domain = Domain(a=Coded(24), b=Coded(24))
    factors = (
        Factor(("a", "b"), Identity(24 * 24)),
        Factor(("a",), Prefix(24)),
        Factor(("b",), Identity(24)),
    )
    blocks = tuple(Block((factor,), 9) for factor in factors)
    plan = Measurements(
        domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    )
    product = queries(domain, a=all_ranges(), b=all_ranges()).products[0]
    covariance = measure_covariance(plan, None)
    tracemalloc.start()
    errors = covariance.errors(product)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
    assert errors.total == pytest.approx(covariance.total(product), rel=1e-9)


def test_largest_range_variance_needs_no_listing():
    domain = Domain(a=Coded(12))
    product = queries(domain, a="all_ranges").products[0]
    privacy = Privacy(PureDP(1))
    for factor, unlisted in (
        (Factor(("a",), CELLS), True),
        (Factor(("a",), Tree.full(12, 3)), False),
    ):
        blocks = (Block((factor,), 7), Block((factor,), 19))
        covariance = measure_covariance(
            Measurements(
                domain=domain, privacy=privacy, noise=Noise.DISCRETE_LAPLACE, blocks=blocks
            ),
            None,
        )
        assert (
            invert_gram(factor).largest_closed_form(product.operators[0]) is not None
        ) is unlisted
        assert covariance.errors(product).largest == pytest.approx(
            float(covariance.variances(product).max()), rel=1e-11
        )
        assert covariance.errors(product).is_exact
