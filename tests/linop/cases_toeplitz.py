"""Lower triangular Toeplitz matrices of steps, with scaled columns."""

import numpy as np

from leastnoise._linop import Toeplitz
from linop.case import Case


def reference(coefficients: list[int], scales: list[int]) -> np.ndarray:
    n = len(scales)
    return np.array([[coefficients[i - j] * scales[j] if j <= i else 0 for j in range(n)] for i in range(n)], dtype=np.int64)


CASES = [
    Case("toeplitz of 1", Toeplitz([0], [3], [2]), lambda: np.array([[6]])),
    Case("toeplitz", Toeplitz([0, 1, 3], [5, 3, 1], [2, 2, 3, 4, 9, 9]), lambda: reference([5, 3, 3, 1, 1, 1], [2, 2, 3, 4, 9, 9])),
    Case("signed toeplitz", Toeplitz([0, 2, 4], [-4, 2, 0], [1, 3, 1, 2, 1]), lambda: reference([-4, -4, 2, 2, 0], [1, 3, 1, 2, 1])),
]
