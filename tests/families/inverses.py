"""What must hold of a structured inverse: every answer is that of its matrix."""

from collections.abc import Iterable

import numpy as np
import pytest

from leastnoise._families import Basis
from leastnoise._linop import Operator, dense


def check_answers(known: Basis, matrix: np.ndarray, asked: Iterable[Operator], rng: np.random.Generator) -> None:
    """Compare everything that a basis answers with the inverse of the Gram matrix of what is measured."""
    inverse = np.linalg.inv(matrix.T @ matrix)
    assert (known.size, known.kappa) == (len(inverse), pytest.approx(inverse.sum()))
    mean = inverse.sum(axis=0) / inverse.sum()
    np.testing.assert_allclose(known.mean, mean, atol=1e-12)
    v = rng.normal(size=(len(inverse), 2))
    np.testing.assert_allclose(known.residual(v), (inverse - inverse.sum() * np.outer(mean, mean)) @ v, atol=1e-12)
    np.testing.assert_allclose(known.solve(v[:, 0]), inverse @ v[:, 0], atol=1e-12)
    for operator in asked:
        rows = dense(operator).astype(float)
        variances = np.einsum("ij,jk,ik->i", rows, inverse, rows)
        np.testing.assert_allclose(known.variances(operator), variances, rtol=1e-9)
        assert known.total_variance(operator) == pytest.approx(variances.sum())
        assert known.largest_variance(operator) == pytest.approx(variances.max())
        along = ((rows @ mean) ** 2).sum()
        assert known.split_sums(operator) == pytest.approx((along, variances.sum() - inverse.sum() * along), abs=1e-9)
