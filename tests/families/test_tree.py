"""Trees: their error by the recursion, the inverse in two passes, the largest variance of a range."""

import tracemalloc
from functools import reduce

import numpy as np
import pytest

from families.inverses import check_answers
from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._accuracy import structure
from leastnoise._accuracy._joint import joint_rows_in_parts, joint_variances
from leastnoise._domain import Coded, Domain
from leastnoise._families import basis
from leastnoise._families._tree import TreeInverse
from leastnoise._linop import AllRanges, Dense, DiagonalAndRows, Identity, Prefix, Ranges, Total, Tree, dense
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._workload import all_ranges, queries

TREES = [Tree.full(size, b) for size, b in [(1, 2), (2, 2), (5, 2), (8, 2), (13, 3), (16, 4), (27, 3), (30, 7), (33, 2)]]


@pytest.mark.parametrize("tree", [*TREES, Tree(11, (6, 3, 1)), Tree(20, (5, 1)), Tree(7, (1,))], ids=repr)
def test_everything_about_the_inverse(tree: Tree) -> None:
    size, rng = tree.size, np.random.default_rng(tree.size)
    precision = rng.uniform(0.05, 4, tree.rows)
    low = rng.integers(0, size, 20)
    some = [Ranges(size, low, low + rng.integers(0, size - low)), Dense(rng.integers(-3, 4, (4, size)))]
    asked = [Identity(size), Total(size), Prefix(size), AllRanges(size), tree, Tree.full(size, 4), *some]
    check_answers(TreeInverse(tree, precision), np.sqrt(precision)[:, None] * dense(tree), asked, rng)


def test_variances_of_prefixes_are_computed_once_and_nobody_changes_them() -> None:
    known = TreeInverse(Tree.full(16, 4), np.ones(21))
    assert known.prefix_variances is known.variances(Prefix(16))
    with pytest.raises(ValueError, match="read-only"):
        known.prefix_variances[0] = 0


RNG = np.random.default_rng(5)
TREES_LARGEST = [Tree.full(n, b) for n, b in [(1, 2), (2, 2), (5, 2), (13, 3), (30, 7), (33, 2), (200, 2), (256, 2), (300, 16), (343, 7)]]


@pytest.mark.parametrize("even", [True, False], ids=["a weight a level", "a weight a node"])
@pytest.mark.parametrize("tree", [*TREES_LARGEST, Tree(11, (6, 3, 1)), Tree(20, (5, 1)), Tree(7, (1,)), Tree(74, (37, 1))], ids=repr)
def test_the_bound_on_a_hierarchy_is_above_the_largest_variance_of_all_ranges_by_little(tree: Tree, even: bool) -> None:
    precision = np.repeat(RNG.uniform(0.05, 4, len(tree.widths)), tree.level_sizes) if even else RNG.uniform(0.05, 4, tree.rows)
    known = TreeInverse(tree, precision)
    listed = known.variances(AllRanges(tree.size))
    # A child of 37 cells, a prime, is one run: a bound all the same, but not a close one.
    assert float(listed.max()) * (1 - 1e-12) <= known.bound_of_ranges() <= float(listed.max()) * (1.05 if 37 not in tree.widths else 2)
    assert known.total_variance(AllRanges(tree.size)) == pytest.approx(float(listed.sum()), rel=1e-11)


CELLS = DiagonalAndRows(RNG.integers(1, 9, 12), RNG.integers(-3, 6, (3, 12)))


def test_the_largest_of_many_rows_is_found_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    known = basis(Factor(("a",), CELLS))
    whole = known.largest_variance(AllRanges(12))
    for module in ("_inverse", "_tree"):
        monkeypatch.setattr(f"leastnoise._families.{module}._NUMBERS", 20)
    assert known.largest_variance(AllRanges(12)) == pytest.approx(whole)
    known = TreeInverse(Tree.full(60, 2), RNG.uniform(0.05, 4, Tree.full(60, 2).rows))
    assert known.bound_of_ranges() == pytest.approx(float(known.variances(AllRanges(60)).max()), rel=0.01)


MIXED = [AllRanges(4), Dense(RNG.integers(-2, 3, (5, 3))), Prefix(2), Ranges(2, [0, 1, 0], [1, 1, 0])]


def test_variances_of_a_product_under_one_matrix_are_those_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    root = RNG.normal(size=(48, 48))
    rows = reduce(np.kron, map(dense, MIXED))
    expected = np.einsum("ij,jk,ik->i", rows, root @ root.T, rows)
    np.testing.assert_allclose(joint_variances(root @ root.T, MIXED), expected, rtol=1e-9)
    monkeypatch.setattr("leastnoise._accuracy._joint._AT_ONCE", 500)
    np.testing.assert_allclose(joint_variances(root @ root.T, MIXED), expected, rtol=1e-9)
    parts = list(joint_rows_in_parts(MIXED))
    assert len(parts) > 1
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), rows)


def test_ranges_along_two_attributes_in_one_matrix_are_not_made_into_rows() -> None:
    # Blocks without a product form on 24 x 24 cells: the 90,000 rows would have 400 MB.
    domain = Domain(a=Coded(24), b=Coded(24))
    blocks = (
        Block((Factor(("a", "b"), Identity(24 * 24)),), 9),
        Block((Factor(("a",), Prefix(24)),), 9),
        Block((Factor(("b",), Identity(24)),), 9),
    )
    plan = Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    asked = queries(domain, a=all_ranges(), b=all_ranges()).products[0]
    known = structure(plan, None)
    tracemalloc.start()
    found = known.errors(asked)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
    assert found.total == pytest.approx(known.total(asked), rel=1e-9)


def test_along_one_attribute_all_ranges_are_not_listed_for_their_largest_variance() -> None:
    domain = Domain(a=Coded(12))
    asked = queries(domain, a="all_ranges").products[0]
    for factor, unlisted in ((Factor(("a",), CELLS), True), (Factor(("a",), Tree.full(12, 3)), False)):
        measured = Measurements(
            domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(Block((factor,), 7), Block((factor,), 19))
        )
        known = structure(measured, None)
        assert (basis(factor).largest_unlisted(asked.operators[0]) is not None) is unlisted
        assert known.errors(asked).largest == pytest.approx(float(known.variances(asked).max()), rel=1e-11)
        assert known.errors(asked).exact
