"""The largest disagreement between tables that share attributes."""

from itertools import combinations

import numpy as np


def disagreement(tables):
    """Return the largest difference between the shared sums of two tables."""
    differences = [0.0]
    for (names, first), (other_names, second) in combinations(tables.items(), 2):
        shared = sorted({*names} & {*other_names})
        sums = [
            np.einsum(np.asarray(cells), range(len(axes)), [axes.index(name) for name in shared])
            for axes, cells in ((names, first), (other_names, second))
        ]
        differences.append(float(np.abs(sums[0] - sums[1]).max()))
    return max(differences)
