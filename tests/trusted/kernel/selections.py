"""The law of a private choice, computed from its definition."""

import math

import numpy as np


def cell_probabilities(selection, counts, distance):
    """Return the probability of each cell: uniform among the cells that pass."""
    numerator, denominator = selection.scale(distance)
    distances = selection.distances(np.array(counts))
    passes = np.exp(-(distances - distances.min()) * denominator / numerator)
    law = np.zeros(len(passes))
    for cell, chance in enumerate(passes):
        passed = np.array([1.0])  # the law of the number of other cells that pass
        for chance_of_other in np.delete(passes, cell):
            passed = np.convolve(passed, [1 - chance_of_other, chance_of_other])
        law[cell] = chance * (passed / np.arange(1, len(passed) + 1)).sum()
    assert math.isclose(law.sum(), 1)
    return law
