"""Check that no convex relaxation gives a higher lower bound under pure privacy.

The bounds are for prefix sums, ranges and marginals.

    python -m experiments.pure_bounds

The proof is in docs/results/pure-bounds.md. The program checks the condition of the proof: the
optimal Gram matrix with ones on its diagonal is a mixture of partitions of the line into intervals.
"""

import numpy as np

from leastnoise._trusted.check.arrays import FloatArray

WORKLOADS = ("prefix", "ranges")
SIZES = (8, 32, 128, 256)


def workload_gram(name: str, size: int) -> FloatArray:
    """Return W^T W of all prefix sums or all ranges.

    >>> workload_gram("prefix", 2).tolist(), workload_gram("ranges", 2).tolist()
    ([[2.0, 1.0], [1.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]])
    """
    first = np.minimum.outer(np.arange(size), np.arange(size))
    last = np.maximum.outer(np.arange(size), np.arange(size))
    return (size - last) * (1.0 if name == "prefix" else first + 1.0)


def root(matrix: FloatArray) -> FloatArray:
    """Return the positive semidefinite square root."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)


def optimal_gram(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Find the Gram matrix X of unit diagonal with the smallest tr(gram X^-1).

    The multipliers d prove it: X diag(d) X = gram.

    >>> x, d = optimal_gram(workload_gram("prefix", 16))
    >>> bool(abs(x @ np.diag(d) @ x - workload_gram("prefix", 16)).max() < 1e-6)
    True
    """
    d = np.diag(root(gram)) ** 2
    while True:
        half = np.sqrt(d)
        x = root(gram * np.outer(half, half)) / np.outer(half, half)
        if abs(np.diag(x) - 1).max() < 1e-10:
            return x, d
        d = d * np.diag(x)


def intervals(x: FloatArray) -> FloatArray:
    """Return weights v of intervals whose sum is x.

    x_ij is the sum of v_ab over a <= i, j <= b; v_ab is 0 for a > b.

    >>> intervals(np.array([[1, 0.25], [0.25, 1]])).tolist()
    [[0.75, 0.25], [0.0, 0.75]]
    """
    wide = np.pad(x, 1)
    return np.triu(wide[1:-1, 1:-1] - wide[:-2, 1:-1] - wide[1:-1, 2:] + wide[:-2, 2:])


if __name__ == "__main__":
    print("| workload | cells | least weight of an interval |\n|---|---|---|")
    for name in WORKLOADS:
        for size in SIZES:
            v = intervals(optimal_gram(workload_gram(name, size))[0])
            print(f"| {name} | {size} | {v[np.triu_indices(size)].min():.3g} |")
