"""Least squares within blocks and over their sums, against the matrices."""

import numpy as np
import pytest

from families.inverses import check_answers
from leastnoise._check import InputError
from leastnoise._families import basis
from leastnoise._families._blocks import NestedInverse
from leastnoise._linop import AllRanges, Dense, DiagonalAndRows, Identity, Nested, Operator, Prefix, Ranges, Total, Tree, dense
from leastnoise._measurements import Factor

RNG = np.random.default_rng(11)
INNER = DiagonalAndRows([3, 2, 4, 5], [[1, 2, 0, 1], [0, 1, 3, 1]])
LAST = DiagonalAndRows([3, 2], [[1, 2], [0, 1]])


def weighted(operator: Nested, heights: list[int], above: list[int]) -> Factor:
    inner, last = operator.inner.rows, operator.last.rows
    return Factor(("a",), operator, np.concatenate([np.repeat(heights, [inner] * (len(heights) - 1) + [last]), above]))


STRATEGIES = {
    "a shorter last block": weighted(Nested(INNER, LAST, Dense([[1, 2, 1], [0, 1, 4]])), [3, 5, 4], [2, 6]),
    "sums by themselves": weighted(Nested(INNER, INNER, DiagonalAndRows([1, 2, 3], [[1, 1, 2]])), [7, 5, 6], [1, 2, 3, 4]),
    "no weights": Factor(("a",), Nested(Tree.full(4, 2), Identity(3), Total(2))),
}


def asked(size: int) -> list[Operator]:
    few = [Total(size), Ranges(size, [0, 4, 1], [3, size - 1, 1]), Dense(RNG.integers(-4, 5, (5, size)))]
    return [*few, Prefix(size), Identity(size), AllRanges(size)]


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_answer_is_that_of_the_matrix(name: str) -> None:
    known, size = basis(STRATEGIES[name]), STRATEGIES[name].operator.size
    assert isinstance(known, NestedInverse)
    matrix = STRATEGIES[name].weights[:, None] * dense(STRATEGIES[name].operator).astype(float)
    check_answers(known, matrix, asked(size), RNG)


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_bound_for_very_many_ranges_is_above_all_of_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = basis(STRATEGIES[name])
    listed = known.variances(AllRanges(known.size)).max()
    monkeypatch.setattr("leastnoise._families._blocks.MOST_LISTED", 10)
    assert listed <= known.largest_variance(AllRanges(known.size)) <= 3 * listed


def test_rows_of_a_block_of_unlike_noise_need_a_matrix() -> None:
    operator = Nested(INNER, LAST, Total(3))
    factor = Factor(("a",), operator, np.arange(1, operator.rows + 1))
    matrix = factor.weights[:, None] * dense(operator).astype(float)
    assert basis(factor).kappa == pytest.approx(np.linalg.inv(matrix.T @ matrix).sum())
    large = Nested(Identity(1000), Identity(1000), Total(5))
    with pytest.raises(InputError, match="needs a dense matrix of 5000 x 5000"):
        basis(Factor(("a",), large, np.arange(1, large.rows + 1)))


def test_blocks_that_do_not_determine_their_cells_need_a_matrix_too() -> None:
    undetermined = Nested(Total(3), Total(3), Identity(2))
    assert not isinstance(basis(Factor(("a",), undetermined)), NestedInverse)
