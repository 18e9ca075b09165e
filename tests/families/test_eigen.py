"""Eigen-design: the bound of its own dual, the published figures, both norms."""

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._families._gram import AllRangesGram, DenseGram, PrefixGram, WidthGram
from leastnoise._families._matrix import column_norm, fit_eigen_design, singular_value_bound, strategy_rmse


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("gram", [PrefixGram(32), AllRangesGram(31), WidthGram(30, 5)])
def test_no_other_weights_are_better(gram: object, norm: int) -> None:
    found = fit_eigen_design(gram, norm, gap=1e-5)
    assert found.gap <= 1e-5
    assert found.rmse == pytest.approx(strategy_rmse(gram, found.matrix, norm))
    assert column_norm(found.matrix, norm) == pytest.approx(1)
    assert found.rmse >= singular_value_bound(gram) * (1 - 1e-9)
    # Against random weights of the same eigenvectors.
    kept = len(found.weights)
    bare = found.matrix[:kept]
    least = strategy_rmse(gram, bare, norm)
    assert found.rmse <= least * (1 + 1e-9)
    rng = np.random.default_rng(0)
    for spread in (0.01, 0.1, 1.0):
        for _ in range(20):
            other = bare * np.exp(spread * rng.standard_normal((kept, 1)))
            assert strategy_rmse(gram, other, norm) >= least * (1 - 1e-4)


def test_the_published_figures() -> None:
    # EigenDesign as measured at n = 4096; the design is within a few per cent of the optimum for ranges at every size.
    assert fit_eigen_design(AllRangesGram(256), 2).rmse <= 2.9014 * 1.01
    assert fit_eigen_design(WidthGram(256, 32), 2).rmse <= 2.354 * 1.02


def test_low_rank_and_guards() -> None:
    total = fit_eigen_design(WidthGram(5, 5), 2)
    assert total.rmse == pytest.approx(1)
    assert total.matrix.shape == (1, 5)
    with pytest.raises(InputError, match="nothing to plan"):
        fit_eigen_design(DenseGram(np.zeros((2, 2)), 1), 2)
    with pytest.raises(InputError, match="gap"):
        fit_eigen_design(PrefixGram(4), 2, gap=0)
    with pytest.raises(InputError, match="norm"):
        fit_eigen_design(PrefixGram(4), 0)
