"""Other people's mechanisms behind one interface, for comparison. Not part of the library: it never imports this.

Each is written from its paper's definition, with the kernel's exact samplers; says why it is private, or that it is not; and takes
counts, a budget, a source of randomness and the ranges that matter (docs/results/baselines.md).

    for baseline in ONE_DIMENSION:
        estimate = baseline.run(x, "0.1", SeededEntropy(1), ranges)
"""

from baselines._baseline import Baseline, Ranges, all_ranges
from baselines._greedy_h import GREEDY_H, RELEASED_GREEDY_H
from baselines._linear import H2, HB, PRIVELET, cells_baseline, uniform_baseline

ONE_DIMENSION: tuple[Baseline, ...] = (cells_baseline(1), uniform_baseline(1), PRIVELET, H2, HB, GREEDY_H, RELEASED_GREEDY_H)
TWO_DIMENSIONS: tuple[Baseline, ...] = (cells_baseline(2), uniform_baseline(2))

__all__ = ["ONE_DIMENSION", "TWO_DIMENSIONS", "Baseline", "Ranges", "all_ranges"]
