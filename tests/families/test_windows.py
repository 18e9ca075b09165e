"""The causal root of queries at all positions, and the lower bound of full sets of ranges."""

import math

import numpy as np
import pytest

from families.grams import ranges_of_width, width_gram
from leastnoise._domain import Domain, Integers
from leastnoise._families import (
    causal_root,
    diagonal_sums,
    fit_gaussian_optimum,
    full_set_bound,
    gram_of,
    invert_gram,
    sum_grams,
    window_root,
)
from leastnoise._planning import plan
from leastnoise._strategies import PLANNERS, PlanningProblem
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import Identity, Prefix, Ranges, column_sums
from leastnoise._trusted.measurements import Factor
from leastnoise._workload import queries


def gram_of_widths(size, widths):
    return sum_grams([(1.0, width_gram(size, width)) for width in widths])


def errors(size, widths):
    """Return the root of the total squared error at unit noise, and its lower bound."""
    fitted = window_root(gram_of_widths(size, widths), 2)
    norm = column_sums(fitted.operator, np.ones(size, dtype=np.int64), 2).max()
    inverse = invert_gram(Factor(("a",), fitted.operator))
    variances = [inverse.total_variance(ranges_of_width(size, width)) for width in widths]
    return math.sqrt(norm * sum(variances)), math.sqrt(fitted.error_lower_bound)


def windows(size, widths):
    ranges = [[start, start + width - 1] for width in widths for start in range(size - width + 1)]
    return queries(Domain(a=Integers(0, size - 1)), a={"ranges": ranges})


@pytest.mark.parametrize(
    ("size", "widths", "most"),
    [
        (256, [4], 1.01),
        (1024, [32], 1.01),
        (4096, [4], 1.002),
        (4096, [32], 1.002),
        (4096, [128], 1.01),
        (4096, [512], 1.03),
        (4096, [4, 32, 256], 1.02),
        (8192, [512], 1.015),
        (16384, [4, 32, 512], 1.01),
    ],
    ids=str,
)
def test_error_is_near_its_lower_bound(size, widths, most):
    error, bound = errors(size, widths)
    assert bound <= error <= most * bound


@pytest.mark.parametrize("widths", [[3], [16], [64], [150], [1, 5, 40], [2, 120]], ids=str)
def test_bound_is_below_the_optimum(widths):
    gram = gram_of_widths(200, widths)
    optimum = fit_gaussian_optimum(gram)
    inverse = np.linalg.pinv(optimum.matrix.T @ optimum.matrix)
    error = float((gram.dense() * inverse).sum()) * np.square(optimum.matrix).sum(axis=0).max()
    bound = full_set_bound(gram)
    assert bound <= optimum.rmse_lower_bound**2 * gram.queries * (1 + 1e-9) <= error * (1 + 1e-6)
    if max(widths) <= 20:
        assert bound > 0.96 * error


def test_bound_is_only_for_full_sets():
    part = Ranges(20, np.arange(10), np.arange(10) + 3)
    assert full_set_bound(gram_of(part)) == 0
    with_prefix = sum_grams([(1.0, width_gram(20, 3)), (1.0, gram_of(Prefix(20)))])
    assert full_set_bound(with_prefix) == 0
    cells = sum_grams([(1.0, width_gram(20, 3)), (0.5, gram_of(Identity(20)))])
    assert 0 < full_set_bound(cells) > full_set_bound(width_gram(20, 3))


@pytest.mark.parametrize("width", [1, 2, 7, 32])
def test_causal_root_squares_to_the_ranges(width):
    root = causal_root(diagonal_sums(gram_of_widths(512, [width])))
    square = np.convolve(root, root)[:512]
    expected = np.zeros(512)
    expected[:width] = math.sqrt(512 - width + 1)
    np.testing.assert_allclose(square, expected, atol=1e-2 * expected[0])


def test_diagonal_sums_match_the_matrix():
    low = np.array([0, 3, 3, 8])
    high = np.array([11, 3, 9, 10])
    gram = sum_grams(
        [
            (2.0, gram_of(Ranges(12, low, high))),
            (0.5, gram_of(Identity(12))),
            (3.0, gram_of(Prefix(12))),
        ]
    )
    matrix = gram.dense()
    expected = [matrix.diagonal(distance).sum() for distance in range(12)]
    np.testing.assert_allclose(diagonal_sums(gram), expected, rtol=1e-9)


def test_auto_uses_the_root_for_windows_of_4096_cells():
    planned = plan(windows(4096, [32]), ZCDP("1/2"))
    assert planned.strategy == "window_root"
    expected_error = planned.expected_error()
    assert 1 <= expected_error.times_least < 1.002
    assert math.sqrt(expected_error.total_squared_error / (4096 - 31)) < 2.4


def test_window_root_refuses_other_queries(monkeypatch):
    def propose(workload):
        problem = PlanningProblem(workload, Privacy(ZCDP(1)), Noise.DISCRETE_GAUSSIAN)
        PLANNERS["window_root"].strategy(problem)

    prefix = queries(Domain(a=Integers(0, 99)), a="prefix")
    with pytest.raises(
        InputError, match="available for ranges of the same widths at many positions"
    ):
        propose(prefix)
    long = queries(Domain(a=Integers(0, 2**17 - 1)), a={"ranges": [[i, i + 8] for i in range(99)]})
    propose(long)  # 198 runs of cells are enough
    monkeypatch.setattr("leastnoise._families._windows._MOST_CELLS", 64)
    with pytest.raises(InputError, match="at most 64 cells are allowed"):
        propose(windows(99, [8]))
    monkeypatch.setattr("leastnoise._families._windows._MOST_CELLS", 128)
    monkeypatch.setattr("leastnoise._families._windows.MOST_LISTED_WORK", 2**7)
    with pytest.raises(InputError, match=r"of 2 widths on 99 cells take long; at most 1 "):
        propose(windows(99, [8, 9]))
