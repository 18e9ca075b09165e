"""The points on which K-norm noise is drawn, listed one by one, and their norms."""

from collections import defaultdict
from itertools import pairwise, product

import numpy as np


def lattice_points(sizes, most):
    """Return all lists of tables with one total and a norm of at most ``most``."""
    tables_by_total = []
    for size in sizes:
        by_total = defaultdict(list)
        for cells in product(range(-most, most + 1), repeat=size):
            if sum(map(abs, cells)) <= most:
                by_total[sum(cells)].append(cells)
        tables_by_total.append(by_total)
    for total in range(-most, most + 1):
        for tables in product(*(by_total[total] for by_total in tables_by_total)):
            yield sum(tables, ())


def k_norm(sizes, point):
    """Return the largest sum of absolute cells of a table."""
    starts = np.cumsum([0, *sizes])
    return max(sum(map(abs, point[start:end])) for start, end in pairwise(starts))
