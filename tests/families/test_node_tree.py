"""Every node's scale optimised: gradients, never worse than the starts, structure against brute force."""

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._families._gram import AllRangesGram, DenseGram, Gram, PrefixGram, ScaledSum, WidthGram
from leastnoise._families._matrix import strategy_rmse
from leastnoise._families._tree import full_chain, node_counts, path_scales, scaled_tree
from leastnoise._families._tree_fits import fit_greedy_h, fit_level_tree, fit_node_tree, node_objective, shares_of

MIXED = ScaledSum(((3.0, PrefixGram(20)), (1.0, WidthGram(20, 6))))
CHAINS = [(1, 2, 4, 8, 16, 32), (1, 4, 12), (1, 3, 27), (1,)]


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("widths", CHAINS)
@pytest.mark.parametrize("gram", [PrefixGram(20), AllRangesGram(20), MIXED, DenseGram(MIXED.dense(), 7)])
def test_the_gradient_is_that_of_finite_differences(gram: Gram, widths: tuple[int, ...], norm: int) -> None:
    rng = np.random.default_rng(5)
    shares = [0.1 + 0.6 * rng.random(count) for count in node_counts(20, widths)[1:]]
    error, slopes = node_objective(gram, widths, shares, norm)
    tree = scaled_tree(gram, widths, path_scales(widths, shares, norm, 20), norm)
    assert np.sqrt(error / gram.queries) == pytest.approx(tree.rmse)
    assert strategy_rmse(gram, tree.matrix(), norm) == pytest.approx(tree.rmse, rel=1e-9)
    np.testing.assert_allclose(np.linalg.norm(tree.matrix(), ord=norm, axis=0), 1)
    for back, share in zip(shares_of(tree), shares, strict=True):
        np.testing.assert_allclose(back, share)
    for level, share in enumerate(shares):
        for node in range(len(share)):
            ends = []
            for sign in (1, -1):
                moved = [side.copy() for side in shares]
                moved[level][node] += sign * 1e-6
                ends.append(node_objective(gram, widths, moved, norm)[0])
            assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(slopes[level][node], rel=1e-4, abs=1e-6 * error)


@pytest.mark.parametrize("kind", [PrefixGram, AllRangesGram, lambda size: WidthGram(size, 10)])
@pytest.mark.parametrize("size", [64, 100, 256])
def test_never_worse_than_greedy_or_one_weight_a_level(kind: object, size: int) -> None:
    gram = kind(size)
    greedy, level = fit_greedy_h(gram), fit_level_tree(gram, 1)
    assert fit_node_tree(gram, [greedy]).rmse <= greedy.rmse
    both = fit_node_tree(gram, [greedy, level.nodes()], descents=2)
    # For short ranges every one of these trees is the identity.
    assert both.rmse < min(greedy.rmse, level.rmse) * 0.999 or (level.widths == (1,) and both.rmse <= level.rmse)
    binary = fit_level_tree(gram, 2, branching=2)
    assert fit_node_tree(gram, [binary.nodes()]).rmse < binary.rmse * 0.999


def test_all_prefix_sums_of_many_cells() -> None:
    gram = PrefixGram(2**15)
    level = fit_level_tree(gram, 1)
    found = fit_node_tree(gram, [level.nodes()], steps=25)
    assert found.rmse < level.rmse * 0.98
    paths = sum(np.repeat(scale, width)[: gram.size] for scale, width in zip(found.scales, found.widths, strict=True))
    assert paths.max() == pytest.approx(1)


def test_the_gaussian_tree_is_convex_so_starts_agree() -> None:
    gram = PrefixGram(32)
    chain = full_chain(32, 2)
    weights = (np.ones(6), np.array([3.0, 1, 2, 1, 1, 0.5]))
    counts = node_counts(32, chain)
    starts = [scaled_tree(gram, chain, [np.full(count, w) for count, w in zip(counts, each, strict=True)], 2) for each in weights]
    first, second = (fit_node_tree(gram, [start], steps=2000).rmse for start in starts)
    assert first == pytest.approx(second, rel=1e-4)


def test_guards() -> None:
    with pytest.raises(InputError, match="at least one start"):
        fit_node_tree(PrefixGram(4), [])
    with pytest.raises(InputError, match="of one norm"):
        fit_node_tree(PrefixGram(8), [fit_greedy_h(PrefixGram(4))])
    plain = scaled_tree(PrefixGram(4), (1,), [np.ones(4)], 1)
    assert fit_node_tree(PrefixGram(4), [plain]) is plain
