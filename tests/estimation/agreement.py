"""The largest disagreement between tables that share attributes."""

from itertools import combinations

import numpy as np


def disagreement(tables):
    """Return the largest difference between the shared sums of two tables."""
    found = [0.0]
    for (one, first), (other, second) in combinations(tables.items(), 2):
        shared = sorted({*one} & {*other})
        sums = [
            np.einsum(np.asarray(cells), range(len(names)), [names.index(name) for name in shared])
            for names, cells in ((one, first), (other, second))
        ]
        found.append(float(np.abs(sums[0] - sums[1]).max()))
    return max(found)
