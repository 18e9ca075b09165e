"""Hierarchies and wavelets with the best weight for every level."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from baselines._linear import strategy_rmse
from families.grams import all_ranges_gram, cells_and_total, prefix_gram, width_gram
from leastnoise._families import _tree as trees
from leastnoise._families import dense_gram
from leastnoise._trusted.linop import Haar
from leastnoise._trusted.linop import dense as dense_of


def random_gram(size):
    """Return the Gram matrix of random queries."""
    queries = np.random.default_rng(0).integers(-1, 3, (size, size)).astype(float)
    return dense_gram(queries.T @ queries, size)


KINDS = [
    prefix_gram,
    all_ranges_gram,
    cells_and_total,
    random_gram,
    lambda size: width_gram(size, 4),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widths", [(1, 2, 4, 8), (1, 3, 6), (1, 16), (1,)])
def test_tree_error_agrees_with_brute_force(kind, widths):
    gram = kind(13)
    rng = np.random.default_rng(1)
    squares = [rng.random(-(-13 // width)) + 0.2 for width in widths]
    levels = [
        np.equal.outer(np.arange(len(level_squares)), np.arange(13) // width)
        for level_squares, width in zip(squares, widths, strict=True)
    ]
    matrix = np.sqrt(np.concatenate(squares))[:, None] * np.vstack(levels)
    assert trees.tree_error(gram, widths, squares) == pytest.approx(
        np.trace(gram.dense() @ np.linalg.inv(matrix.T @ matrix)), rel=1e-9
    )


# The errors of level trees, and of binary trees of equal weights, were found by brute force.
@pytest.mark.parametrize(
    ("kind", "size", "rmse", "equal_rmse"),
    [
        (prefix_gram, 64, 4.148, 6.661),
        (all_ranges_gram, 64, 4.276, 7.976),
        (lambda size: width_gram(size, 32), 64, 4.824, 8.500),
        (cells_and_total, 64, 1.342, 5.445),
        (prefix_gram, 256, 5.948, 9.307),
        (all_ranges_gram, 256, 6.282, 11.51),
        (lambda size: width_gram(size, 32), 256, 4.849, 10.96),
        (cells_and_total, 256, 1.227, 7.008),
        (all_ranges_gram, 4096, 11.45, 19.73),
    ],
)
def test_tree_errors_match_the_published_ones(kind, size, rmse, equal_rmse):
    gram = kind(size)
    fitted = trees.fit_level_tree(gram, 1)
    assert fitted.rmse <= rmse * 1.0001 + 0.0005
    chain = trees.full_chain(size, 2)
    assert trees.weighted_tree(gram, chain, np.ones(len(chain)), 1).rmse == pytest.approx(
        equal_rmse, rel=5e-4
    )
    assert fitted.rmse <= trees.uniform_tree(gram, 1).rmse * (1 + 1e-9)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 7, 30, 32])
@pytest.mark.parametrize("kind", [prefix_gram, all_ranges_gram, cells_and_total, random_gram])
def test_tree_errors_match_their_matrices(kind, size, norm):
    gram = kind(size)
    chain = trees.full_chain(size, 3)
    equal = trees.weighted_tree(gram, chain, np.ones(len(chain)), norm)
    for tree in (trees.fit_level_tree(gram, norm), trees.uniform_tree(gram, norm), equal):
        matrix = tree.matrix()
        assert strategy_rmse(gram, matrix, norm) == pytest.approx(tree.rmse, rel=1e-7)
        assert np.linalg.norm(matrix, ord=norm, axis=0).max() == pytest.approx(1)
    assert trees.fit_level_tree(gram, norm).rmse <= strategy_rmse(gram, np.eye(size), norm) * (
        1 + 1e-9
    )
    if size & (size - 1) == 0:
        equal = np.ones(size.bit_length())
        rng = np.random.default_rng(2)
        best = haar_rmse(gram, trees.haar_weights(gram, norm), norm)
        for other in (
            equal,
            *(
                trees.haar_weights(gram, norm) * np.exp(0.1 * rng.normal(size=len(equal)))
                for _ in range(5)
            ),
        ):
            assert best <= haar_rmse(gram, other, norm) * (1 + 1e-9)


def haar_rmse(gram, weights, norm):
    """Return the error of a wavelet with these weights of its levels."""
    operator = Haar(gram.size)
    counts = [1, *(-(-gram.size // width) for width in operator.widths)]
    return strategy_rmse(gram, dense_of(operator) * np.repeat(weights, counts)[:, None], norm)


def test_wavelet_errors_match_the_published_ones():
    assert haar_rmse(prefix_gram(512), np.ones(10), 1) == pytest.approx(10.676, abs=5e-4)
    # Under L2 the best tree on the levels of the wavelet has its Gram matrix, so the best of all
    # trees is no worse.
    gram = all_ranges_gram(256)
    assert trees.fit_level_tree(gram, 2).rmse <= haar_rmse(gram, trees.haar_weights(gram, 2), 2) * (
        1 + 1e-5
    )


def test_tree_error_is_never_below_the_bound():
    # The best weight of the cells is then 0; a weight too close to it would leave nothing but
    # rounding errors.
    for gram in (width_gram(64, 64), width_gram(50, 50)):
        fitted = trees.fit_level_tree(gram, 1)
        assert 1 <= fitted.rmse < 1.003
        assert strategy_rmse(gram, fitted.matrix(), 1) == pytest.approx(fitted.rmse, rel=1e-6)


@pytest.mark.parametrize("norm", [1, 2])
def test_chains_are_weighed_best_first(norm):
    widths = np.array([[1, 4, 32, 0], [1, 8, 0, 0], [1, 2, 6, 36], [1, 0, 0, 0]], dtype=float)
    traces = np.random.default_rng(3).uniform(0.1, 5, widths.shape) * (widths > 0)
    places, weights = trees._optimize_weights(traces, widths, norm, 60)
    assert sorted(places.tolist()) == [0, 1, 2, 3]
    assert not weights[widths[places] == 0].any()
    errors = [
        trees._log_errors_and_gradients(
            np.log(weight[weight > 0]), traces[at][weight > 0], widths[at][weight > 0], norm
        )[0]
        for at, weight in zip(places, weights, strict=True)
    ]
    assert errors == sorted(errors)


@pytest.mark.parametrize("norm", [1, 2])
def test_slopes_of_levels_agree_with_differences(norm):
    traces = np.array([3.0, 2.0, 0.5, 0.0])
    widths = np.array([1.0, 4.0, 12.0, 0.0])
    logs = np.array([0.0, -0.4, -0.9, -6.0])
    slopes = approx_fprime(
        logs, lambda x: trees._log_errors_and_gradients(x, traces, widths, norm)[0], 1e-7
    )
    np.testing.assert_allclose(
        trees._log_errors_and_gradients(logs, traces, widths, norm)[1], slopes, atol=1e-6
    )


def test_prefix_release_plans_without_scipy():
    code = (
        "import sys\n"
        "from leastnoise._domain import Domain, Integers\n"
        "from leastnoise._mechanisms import Search, choose_plan\n"
        "from leastnoise._trusted.accounting import Privacy, PureDP\n"
        "from leastnoise._workload import queries\n"
        "workload = queries(Domain(x=Integers(0, 2**15 - 1)), x='prefix')\n"
        "choose_plan(workload, Privacy(PureDP(1)), Search('level_tree'))\n"
        "print('scipy' in sys.modules)"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert completed.stdout.strip() == "False"
