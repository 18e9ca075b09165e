"""Least squares on Toeplitz strategies by convolutions, against their matrices."""

import numpy as np
import pytest

from families.inverses import check_answers
from leastnoise._check import InputError
from leastnoise._families import basis
from leastnoise._families._toeplitz import ToeplitzInverse, convolved, inverse_series
from leastnoise._linop import AllRanges, Dense, Identity, Operator, Prefix, Ranges, Toeplitz, Total, Tree, dense
from leastnoise._measurements import Factor

RNG = np.random.default_rng(9)
STRATEGIES = {
    "one scale": Toeplitz([0, 1, 2, 5], [9, 4, 3, 1], np.full(12, 3)),
    "runs of scales": Toeplitz([0, 1, 2, 5], [9, 4, 3, 1], [5, 5, 5, 5, 6, 6, 6, 8, 8, 9, 11, 11]),
    "falling scales": Toeplitz([0, 2, 7], [7, -2, 1], [9, 9, 4, 4, 4, 4, 2, 2, 1, 1, 1, 3]),
    "a scale a cell": Toeplitz([0, 3], [5, 2], RNG.integers(1, 9, 12)),
}
FEW = [Total(12), Ranges(12, [0, 4], [3, 11]), Dense(RNG.integers(-4, 5, (5, 12)))]
ASKED = [*FEW, Prefix(12), Identity(12), AllRanges(12), Tree.full(12, 2)]


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_answer_is_that_of_the_matrix(name: str) -> None:
    strategy = STRATEGIES[name]
    known = basis(Factor(("a",), strategy))
    assert isinstance(known, ToeplitzInverse)
    check_answers(known, dense(strategy).astype(float), ASKED, RNG)


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_bound_for_very_many_ranges_is_above_all_of_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = ToeplitzInverse(STRATEGIES[name])
    listed = known.variances(AllRanges(12)).max()
    monkeypatch.setattr("leastnoise._families._toeplitz.MOST_LISTED", 10)
    assert listed <= known.largest_variance(AllRanges(12)) <= 4 * known.prefix_variances.max()
    assert (known.largest_variance(AllRanges(12)) <= 2 * known.prefix_variances.max()) == (name in {"one scale", "runs of scales"})


@pytest.mark.parametrize("operator", ASKED, ids=repr)
def test_rows_are_looked_at_some_at_a_time(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    known = ToeplitzInverse(STRATEGIES["runs of scales"])
    whole = known.variances(operator)
    monkeypatch.setattr("leastnoise._families._toeplitz._NUMBERS", 30)
    monkeypatch.setattr("leastnoise._families._toeplitz._MOST_COVARIED", 10)
    np.testing.assert_allclose(known.variances(operator), whole, rtol=1e-9)


def test_series_are_inverted_and_convolved() -> None:
    series = np.array([2.0, -1.0, 0.5, 3.0, 1.0])
    np.testing.assert_allclose(np.convolve(series, inverse_series(series))[:5], [1, 0, 0, 0, 0], atol=1e-12)
    both = RNG.normal(size=(4, 3))
    np.testing.assert_allclose(convolved(series, both, 6), np.stack([np.convolve(series, one)[:6] for one in both.T], axis=1), atol=1e-12)


def test_scales_that_change_at_every_cell_of_many_are_refused() -> None:
    known = basis(Factor(("a",), Toeplitz([0], [1], np.arange(1, 2**15 + 1))))
    with pytest.raises(InputError, match=r"change 32767 times over 32768 cells\. Use fewer scales"):
        known.kappa  # noqa: B018 - a property


def test_rows_of_unlike_noise_need_a_matrix() -> None:
    factor = Factor(("a",), STRATEGIES["one scale"], np.arange(1, 13))
    matrix = np.arange(1, 13)[:, None] * dense(STRATEGIES["one scale"]).astype(float)
    assert basis(factor).kappa == pytest.approx(np.linalg.inv(matrix.T @ matrix).sum())
    with pytest.raises(InputError, match="needs a dense matrix of 5000 x 5000"):
        basis(Factor(("a",), Toeplitz([0], [1], np.ones(5000, dtype=np.int64)), np.arange(1, 5001)))
