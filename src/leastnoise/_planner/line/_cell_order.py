"""Workloads given as matrices: cells that no query tells apart, their order along a line, and the short form that it may have."""

import math

import numpy as np

from leastnoise._check.arrays import IntArray
from leastnoise._planner.line._gram import DenseGram, GeneratedGram, Gram


def recognise(gram: Gram) -> tuple[Gram, IntArray]:
    """Order the cells of a workload given as a matrix along a line, and find its short form if it has one."""
    order = line_order(gram)
    ordered = gram.dense()[np.ix_(order, order)]
    for turned, places in ((ordered, order), (ordered[::-1, ::-1], order[::-1])):
        if turned[0, -1] > 0:
            rising, falling = turned[:, -1] / turned[0, -1], turned[0]
            if np.allclose(np.triu(np.outer(rising, falling)), np.triu(turned), rtol=1e-12, atol=0):
                return GeneratedGram(rising, falling, gram.queries), places
    return DenseGram(ordered, gram.queries), order


def merge_equal_cells(gram: Gram) -> tuple[DenseGram, IntArray]:
    """Merge the cells which no query tells apart: the workload then needs no strategy on the single cells."""
    if all_alike(gram):
        return DenseGram(gram.diagonal()[:1, None], gram.queries), np.zeros(gram.size, dtype=np.int64)
    matrix = gram.dense()
    _, first, group = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    kept = first[order]
    return DenseGram(matrix[np.ix_(kept, kept)], gram.queries), place[group.reshape(-1)]


def all_alike(gram: Gram) -> bool:
    """Whether no query tells any cell from another, at any size: every cell is asked for as often as the first, and together with it."""
    own, first = gram.diagonal(), np.eye(1, gram.size)
    return bool((own == own[0]).all() and (gram.rows(first)[0] == own[0]).all())


def line_order(gram: Gram) -> IntArray:
    """Order the cells along a line so that cells which few queries tell apart lie together.

    Two cells are ``M_ii + M_jj - 2 M_ij`` apart. The order by the Fiedler vector of M itself (ranges of one width) or of the
    closeness (prefix sums, whose cells differ much in how often they are asked for), whichever makes the shorter way from cell
    to cell, undoes any permutation of a workload of ranges, so that one given as a matrix is planned as well as one given by name.

    Source: Atkins, Boman, Hendrickson 1998 (seriation of Robinson matrices).
    """
    from scipy.linalg import eigh

    if gram.size < 3:
        return np.arange(gram.size)
    own, matrix = gram.diagonal(), gram.dense()
    apart = own[:, None] + own - 2 * matrix
    best, shortest = np.arange(gram.size), math.inf
    for close in (matrix, apart.max() - apart):
        _, vectors = eigh(np.diag(close.sum(axis=1)) - close, subset_by_index=[0, 1])
        # The constant vector may share its eigenvalue with others when the workload falls into parts.
        fiedler = vectors[:, 1] if np.ptp(vectors[:, 1]) > np.ptp(vectors[:, 0]) else vectors[:, 0]
        order = np.argsort(fiedler if fiedler[0] <= fiedler[-1] else -fiedler, kind="stable")
        length = float(apart[order[1:], order[:-1]].sum())
        if length < shortest * (1 - 1e-9):
            best, shortest = order, length
    return best
