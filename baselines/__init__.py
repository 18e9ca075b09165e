"""Published mechanisms of other authors behind one interface, for comparison.

The library never imports this package.

Each mechanism implements its paper's definition with the kernel's exact samplers. It states why it
is private, or that it is not private, and takes counts, a budget, a source of randomness and the
requested ranges (docs/results/baselines.md).

    for baseline in ONE_DIMENSION:
        estimate = baseline.run(x, "0.1", SeededEntropy(1), ranges)
"""

from baselines._baseline import Baseline, Ranges, Reals, Wholes, all_ranges
from baselines._dawa import DAWA, RELEASED_DAWA
from baselines._fourier import EFPA
from baselines._greedy_h import GREEDY_H, RELEASED_GREEDY_H
from baselines._grids import ADAPTIVE_GRID, QUADTREE, UNIFORM_GRID
from baselines._linear import H2, HB, PRIVELET, cells_baseline, uniform_baseline
from baselines._mwem import MWEM
from baselines._partition import AHP, PHP, STRUCTURE_FIRST

ONE_DIMENSION: tuple[Baseline, ...] = (
    cells_baseline(1),
    uniform_baseline(1),
    PRIVELET,
    H2,
    HB,
    GREEDY_H,
    RELEASED_GREEDY_H,
    MWEM,
    EFPA,
    PHP,
    STRUCTURE_FIRST,
    AHP,
    DAWA,
    RELEASED_DAWA,
)
TWO_DIMENSIONS: tuple[Baseline, ...] = (
    cells_baseline(2),
    uniform_baseline(2),
    UNIFORM_GRID,
    ADAPTIVE_GRID,
    QUADTREE,
)

__all__ = [
    "ADAPTIVE_GRID",
    "ONE_DIMENSION",
    "QUADTREE",
    "TWO_DIMENSIONS",
    "UNIFORM_GRID",
    "Baseline",
    "Ranges",
    "Reals",
    "Wholes",
    "all_ranges",
]
