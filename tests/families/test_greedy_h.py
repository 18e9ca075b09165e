"""GreedyH on the exact workload: the published figures, by structure and by matrix."""

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._families._gram import AllRangesGram, DenseGram, PrefixGram, WidthGram
from leastnoise._families._matrix import strategy_rmse
from leastnoise._families._tree_fits import fit_greedy_h


# GreedyH by equation 9 of the paper (arXiv 1410.0265); lambda on a grid of 0.01.
@pytest.mark.parametrize(
    ("kind", "size", "published"),
    [
        (AllRangesGram, 64, 4.453),
        (PrefixGram, 64, 4.519),
        (PrefixGram, 128, 5.344),
        (AllRangesGram, 256, 6.973),
        (PrefixGram, 256, 6.523),
        (AllRangesGram, 512, 8.510),
        (PrefixGram, 512, 7.817),
    ],
)
def test_the_published_figures(kind: object, size: int, published: float) -> None:
    assert fit_greedy_h(kind(size)).rmse == pytest.approx(published, abs=5e-4)


def test_the_figure_given_to_four_digits() -> None:
    assert fit_greedy_h(AllRangesGram(128)).rmse == pytest.approx(5.6666, abs=5e-5)


def test_a_matrix_does_as_well_as_a_name() -> None:
    for gram in (AllRangesGram(50), WidthGram(32, 5), WidthGram(32, 20)):
        named, given = fit_greedy_h(gram), fit_greedy_h(DenseGram(gram.dense(), gram.queries))
        assert given.rmse == pytest.approx(named.rmse, rel=1e-9)
        assert strategy_rmse(gram, named.matrix(), 1) == pytest.approx(named.rmse, rel=1e-9)
        np.testing.assert_allclose(named.matrix().sum(axis=0), 1)


def test_other_branchings_and_guards() -> None:
    tree = fit_greedy_h(PrefixGram(27), branching=3)
    assert tree.widths == (1, 3, 9, 27)
    assert fit_greedy_h(PrefixGram(1)).rmse == pytest.approx(1)
    with pytest.raises(InputError, match="branching"):
        fit_greedy_h(PrefixGram(4), branching=1)
    with pytest.raises(InputError, match="grid"):
        fit_greedy_h(PrefixGram(4), grid=1)
