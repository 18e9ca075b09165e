"""Gram matrices of workloads for the tests of families."""

import numpy as np

from leastnoise._families import dense_gram, gram_of, sum_grams
from leastnoise._trusted.linop import AllRanges, Identity, Prefix, Ranges, Total


def prefix_gram(size):
    return gram_of(Prefix(size))


def all_ranges_gram(size):
    return gram_of(AllRanges(size))


def ranges_of_width(size, width):
    """Return all ranges of ``width`` cells."""
    low = np.arange(size - width + 1)
    return Ranges(size, low, low + width - 1)


def width_gram(size, width):
    """Return the Gram matrix of all ranges of ``width`` cells."""
    return gram_of(ranges_of_width(size, width))


def cells_and_total(size):
    return sum_grams([(1.0, gram_of(Identity(size))), (1.0, gram_of(Total(size)))])


def permuted(gram, seed=0):
    """Return a Gram matrix whose cells are in a random order."""
    order = np.random.RandomState(seed).permutation(gram.size)
    return dense_gram(gram.dense()[np.ix_(order, order)], gram.queries)
