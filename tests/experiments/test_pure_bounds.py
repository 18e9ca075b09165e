"""The least Gram matrix is a mixture of partitions; other matrices are recognised."""

import itertools

import numpy as np
import pytest

from experiments.pure_bounds import WORKLOADS, intervals, optimal_gram, workload_gram


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("size", [2, 5, 24])
def test_optimum_is_a_mixture_of_partitions(name, size):
    gram = workload_gram(name, size)
    x, d = optimal_gram(gram)
    assert np.allclose(x @ np.diag(d) @ x, gram, rtol=1e-7)
    v = intervals(x)
    assert v[np.triu_indices(size)].min() > 0
    covered = [
        sum(v[a, b] for a in range(place + 1) for b in range(place, size)) for place in range(size)
    ]
    assert np.allclose(covered, 1)


def test_non_mixture_of_partitions_is_detected():
    x = np.array([[1, 0.1, 0.9], [0.1, 1, 0.1], [0.9, 0.1, 1]])
    assert intervals(x).min() < 0


@pytest.mark.parametrize("size", [2, 3, 4])
def test_largest_of_a_convex_function_is_at_signs(size):
    rng = np.random.default_rng(size)
    half = rng.normal(size=(size, size))
    y = half @ half.T
    best = max(
        np.array(signs) @ y @ np.array(signs) for signs in itertools.product([-1, 1], repeat=size)
    )
    for _ in range(300):
        matrix = rng.laplace(size=(2 * size, size)) * (rng.random((2 * size, size)) < rng.random())
        matrix /= np.maximum(abs(matrix).sum(axis=0), 1e-300)
        assert np.trace(matrix @ y @ matrix.T) <= best + 1e-9
