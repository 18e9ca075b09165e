"""Strategies for sums with a threshold: five of Wu et al., and better ones.

Better strategies are fitted to the weighted workload.

Cells j are bins of the number with upper edges u_j; a record of cell j with value t adds min(t,
theta) to every query that contains the cell, at most the limit T_j = min(u_j, theta). Strategies
measure z_j = (sum of the clipped values of cell j) / T_j, a vector that one record changes by at
most 1 in one cell. In the paper's reading every record counts as the upper edge of its bin, and z
is the vector of counts. The workload on z is W T with T = diag(T_j), and the matrix mechanism
applies to it.

TiMM with the strategy A is the strategy A T on z, so the best strategy for W T is never worse than
TiMM.

Source: Wu, Pujol, Kotsogiannis, Machanavajjhala, "Answering summation queries for numerical
    attributes under differential privacy".
"""

from dataclasses import dataclass

import numpy as np

from experiments.sums_tree import fit_halved_tree
from leastnoise._families._dense import column_norm
from leastnoise._families._gram import Gram
from leastnoise._families._p_identity import fit_p_identity
from leastnoise._strategies._sums_strategy import limited_gram
from leastnoise._trusted.check.arrays import FloatArray, IntArray

ALGORITHMS = ("identity", "workload", "timm", "tamm", "optimum")
"""The paper's four algorithms that answer all queries together, and our best strategy."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefixSums:
    """Sums over all records up to some edges of consecutive bins.

    Args:
        edges: upper edges u_j of the bins, in units of the number, increasing and above 0; int64 of
            shape (n,).
        last: the last bin of each query, increasing; int64 of shape (m,).

    >>> PrefixSums(edges=np.array([10, 20, 30]), last=np.array([0, 2])).matrix().tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """

    edges: IntArray
    last: IntArray

    def limits(self, threshold: int) -> IntArray:
        """Return T_j: the largest amount that a record of each bin adds; shape (n,)."""
        return np.minimum(self.edges, threshold)

    def matrix(self) -> FloatArray:
        """Return W, shape (m, n)."""
        return np.asarray(np.arange(len(self.edges)) <= self.last[:, None], dtype=np.float64)

    def gram(self) -> Gram:
        """Return W^T W in its short form: the number of queries that contain each bin."""
        query_counts = len(self.last) - np.searchsorted(
            self.last, np.arange(len(self.edges)), side="left"
        )
        return Gram(
            len(self.edges),
            len(self.last),
            ((np.ones(len(self.edges)), query_counts.astype(float)),),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumStrategy:
    """The rows that are measured with Laplace noise, and the recovery of the answers.

    Attributes:
        rows: shape (k, n); sensitivity 1.
        recover: shape (m, k); its product with the rows is W T.
    """

    rows: FloatArray
    recover: FloatArray

    def std(self, noise: float) -> FloatArray:
        """Return the standard error of each answer for a threshold.

        This is the noise term of the paper's appendix.

        Args:
            noise: standard deviation of the noise on a query of sensitivity 1: sqrt(2) / epsilon.

        Returns:
            Shape (m,), in units of the number.
        """
        return np.asarray(noise * np.sqrt((self.recover**2).sum(axis=1)))

    def rmse(self, noise: float) -> float:
        """Return the root of the mean variance over the queries."""
        return float(np.sqrt(np.mean(self.std(noise) ** 2)))


def sum_strategy(
    name: str,
    queries: FloatArray,
    gram: Gram,
    limits: IntArray,
    *,
    released: bool = False,
    effort: float = 1.0,
) -> SumStrategy:
    """Return one of the algorithms that answer all queries together.

    Args:
        name: one of ALGORITHMS; the optimum is a p-Identity strategy on the weighted workload.
        queries: W, shape (m, n).
        gram: W^T W.
        limits: T_j, whole units, shape (n,).
        released: whether GreedyH is computed as in the released implementations.
        effort: effort of the search for a p-Identity strategy.

    Source: Wu et al., Table 1 and appendix A.

    >>> sums = PrefixSums(edges=np.arange(1, 5) * 100, last=np.arange(4))
    >>> strategy = sum_strategy("identity", sums.matrix(), sums.gram(), sums.limits(200))
    >>> (strategy.std(1.0) ** 2).tolist()
    [10000.0, 50000.0, 90000.0, 130000.0]
    """
    weighted_queries = queries * limits
    if name == "identity":
        return SumStrategy(rows=np.eye(len(limits)), recover=weighted_queries)
    if name == "workload":
        sensitivity = column_norm(weighted_queries, 1)
        return SumStrategy(
            rows=weighted_queries / sensitivity, recover=sensitivity * np.eye(len(weighted_queries))
        )
    if name == "timm":
        tree_rows = fit_halved_tree(gram, released=released).matrix()
        sensitivity = column_norm(tree_rows * limits, 1)
        return SumStrategy(
            rows=tree_rows * limits / sensitivity,
            recover=queries @ _pseudo_inverse(tree_rows) * sensitivity,
        )
    weighted = limited_gram(gram, limits)
    if name == "tamm":
        matrix = fit_halved_tree(weighted, released=released).matrix()
    else:
        matrix = fit_p_identity(weighted, effort=effort).matrix()
    matrix = matrix / column_norm(matrix, 1)
    return SumStrategy(rows=matrix, recover=weighted_queries @ _pseudo_inverse(matrix))


def _pseudo_inverse(matrix: FloatArray) -> FloatArray:
    """Return A^+ of a matrix of full column rank by its normal equations."""
    return np.asarray(np.linalg.solve(matrix.T @ matrix, matrix.T))
