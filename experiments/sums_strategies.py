"""Sums of a number cut at a threshold: the five algorithms of Wu et al., and better strategies on the weighted workload.

Cells j are bins of the number with upper edges u_j; a record of cell j with value t adds min(t, theta) to every query that contains the
cell, at most the limit T_j = min(u_j, theta). A strategy is written on z_j = (sum of the cut values of cell j) / T_j, a vector that one
record changes by at most 1 in one cell; in the paper's reading, where every record counts as the upper edge of its bin, z is the vector of
counts. The workload on z is W T with T = diag(T_j), and all of the matrix mechanism applies to it.

TiMM with the strategy A is the strategy A T on z, so whatever is best for W T is never worse than TiMM.

Source: Wu, Pujol, Kotsogiannis, Machanavajjhala, "Answering summation queries for numerical attributes under differential privacy".
"""

from dataclasses import dataclass

import numpy as np

from experiments.sums_tree import fit_halved_tree
from leastnoise._check import InputError, one_of, refuse
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families._dense import column_norm, fit_gaussian_optimum
from leastnoise._families._gram import Gram
from leastnoise._families._p_identity import fit_p_identity
from leastnoise._planner._sums import weighted_gram

ALGORITHMS = ("identity", "workload", "timm", "tamm", "optimum")
"""The four algorithms of the paper that answer all queries at once, and the best strategy on the weighted workload."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefixSums:
    """Sums over all records up to some of the edges of consecutive bins.

    Args:
        edges: upper edges u_j of the bins, in units of the number, increasing and above 0; int64 of shape (n,).
        last: the last bin of each query, increasing; int64 of shape (m,).

    Raises:
        InputError: edges or bins that do not increase.

    >>> PrefixSums(edges=np.array([10, 20, 30]), last=np.array([0, 2])).matrix().tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """

    edges: IntArray
    last: IntArray

    def __post_init__(self) -> None:
        edges, last = np.array(self.edges, dtype=np.int64), np.array(self.last, dtype=np.int64)
        if not (edges.ndim == 1 and edges.size and edges[0] > 0 and (np.diff(edges) > 0).all()):
            raise refuse("the edges of the bins", f"an array of shape {edges.shape}", "increasing whole numbers above 0")
        if not (last.ndim == 1 and last.size and last[0] >= 0 and last[-1] < len(edges) and (np.diff(last) > 0).all()):
            raise refuse("the last bins of the queries", f"an array of shape {last.shape}", f"increasing places from 0 to {len(edges) - 1}")
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "last", last)

    def asked(self) -> IntArray:
        """How many queries contain each bin, shape (n,)."""
        return np.asarray(len(self.last) - np.searchsorted(self.last, np.arange(len(self.edges)), side="left"))

    def limits(self, threshold: int) -> IntArray:
        """T_j: the most that a record of each bin adds, shape (n,)."""
        if not threshold >= 1:
            raise refuse("threshold", threshold, "a whole number of at least 1")
        return np.minimum(self.edges, int(threshold))

    def matrix(self) -> FloatArray:
        """W, shape (m, n)."""
        return np.asarray(np.arange(len(self.edges)) <= self.last[:, None], dtype=np.float64)

    def gram(self) -> Gram:
        """W^T W, in its short form."""
        return Gram(len(self.edges), len(self.last), ((np.ones(len(self.edges)), self.asked().astype(float)),))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumStrategy:
    """What is measured on z, and how the answers are put together from it.

    Attributes:
        name: the algorithm.
        rows: shape (k, n); sensitivity 1.
        recover: shape (m, k); its product with the rows is W T.
        norm: 1 for Laplace noise, 2 for Gaussian noise.
    """

    name: str
    rows: FloatArray
    recover: FloatArray
    norm: int = 1

    def std(self, noise: float) -> FloatArray:
        """Standard error of every answer, given the threshold: the noise term of the paper's appendix.

        Args:
            noise: standard deviation of the noise on a query of sensitivity 1: sqrt(2) / epsilon for Laplace.

        Returns:
            Shape (m,), in units of the number.
        """
        return np.asarray(noise * np.sqrt(np.einsum("ij,ij->i", self.recover, self.recover)))

    def rmse(self, noise: float) -> float:
        """Root of the mean variance over the queries."""
        return float(np.sqrt(np.mean(self.std(noise) ** 2)))


def sum_strategy(
    name: str, queries: FloatArray, gram: Gram, limits: IntArray, *, norm: int = 1, released: bool = False, effort: float = 1.0
) -> SumStrategy:
    """One of the algorithms that answer all queries at once.

    Args:
        name: identity, workload, timm, tamm (the paper's), or optimum: a p-Identity strategy under Laplace noise, the optimum under
            Gaussian noise, on the weighted workload.
        queries: W, shape (m, n).
        gram: W^T W.
        limits: T_j, whole units, shape (n,).
        norm: 1 for Laplace noise, 2 for Gaussian noise; the paper's algorithms are for 1.
        released: GreedyH as the released copies compute it.
        effort: of the search for a p-Identity strategy.

    Raises:
        InputError: an unknown name, or Gaussian noise for an algorithm of the paper.

    Source: Wu et al., Table 1 and appendix A.

    >>> sums = PrefixSums(edges=np.arange(1, 5) * 100, last=np.arange(4))
    >>> made = sum_strategy("identity", sums.matrix(), sums.gram(), sums.limits(200))
    >>> (made.std(1.0) ** 2).tolist()
    [10000.0, 50000.0, 90000.0, 130000.0]
    """
    one_of("name", name, ALGORITHMS)
    if norm != 1 and name != "optimum":
        raise InputError(f"The algorithm {name} is for pure differential privacy; for Gaussian noise take the optimum.")
    weights = limits.astype(np.float64)
    asked = queries * weights
    if name == "identity":
        return SumStrategy(name=name, rows=np.eye(len(weights)), recover=asked)
    if name == "workload":
        sensitivity = column_norm(asked, 1)
        return SumStrategy(name=name, rows=asked / sensitivity, recover=sensitivity * np.eye(len(asked)))
    if name == "timm":
        own = fit_halved_tree(gram, released=released).matrix()
        matrix = own * weights / column_norm(own * weights, 1)
        return SumStrategy(name=name, rows=matrix, recover=queries @ _pseudo_inverse(own) * column_norm(own * weights, 1))
    if name == "tamm":
        matrix = fit_halved_tree(weighted_gram(gram, limits), released=released).matrix()
    elif norm == 1:
        matrix = fit_p_identity(weighted_gram(gram, limits), effort=effort).matrix()
    else:
        matrix = fit_gaussian_optimum(weighted_gram(gram, limits)).factor
    matrix = matrix / column_norm(matrix, norm)
    return SumStrategy(name=name, rows=matrix, recover=asked @ _pseudo_inverse(matrix), norm=norm)


def _pseudo_inverse(matrix: FloatArray) -> FloatArray:
    """A^+ of a matrix of full column rank, by its normal equations."""
    return np.asarray(np.linalg.solve(matrix.T @ matrix, matrix.T))


def single_query_std(edges: IntArray, thresholds: IntArray, noise: float) -> FloatArray:
    """SQM: standard errors where every query is answered by itself with its share of the budget and its own threshold.

    Args:
        edges: the upper edge of each query, shape (m,), in units.
        thresholds: theta of each query, shape (m,).
        noise: standard deviation of the noise on a query of sensitivity 1 with the whole budget of the answers.

    Returns:
        Shape (m,). The budget is divided by m, so that all together cost no more than one budget.

    Source: Wu et al., Table 1. Their algorithms 2 and 3 run the choice of the threshold with the whole budget for each query.

    >>> single_query_std(np.array([100, 200]), np.array([150, 150]), 2**0.5).round(1).tolist()
    [282.8, 424.3]
    """
    return np.asarray(noise * len(edges) * np.minimum(edges, thresholds), dtype=np.float64)
