"""An adaptive grid on the tree of halved blocks: how many blocks are measured first, and how noisy counts divide and join them.

Everything here is a function of noisy counts and public numbers.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from leastnoise._check import Exact, exact_positive, whole
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._linop import BlockTree, Operator, dense

# The default rule; docs/decisions/dawa.md. Costs and records are in units of 1 / epsilon.
TEST_SHARE = Fraction(4, 100)
_HARD = 0.6  # of the cells: above it nothing can be joined
_CLEAR = 1.2  # times the noise of the test: on so few cells that a border lies lower, the test cannot tell
_BUCKETS_A_BLOCK = 7
_FEWEST, _MOST = 4, 6  # levels: 16, 32 or 64 blocks
# Where all queries are of few cells 128 or 256 blocks.
_NARROW, _FEWEST_NARROW, _MOST_NARROW = 4, 7, 8
FIRST_SHARE, GROUP_SHARE, DEEP = Fraction(1, 4), Fraction(2, 5), 4
_FINEST, _COARSEST = 2.0, 11.0  # records a part, in units of 1 / epsilon
_LIGHT, _LIGHT_NARROW = 0.5, 2.0  # parts: blocks that deserve no more together are one


def plane_regime(cost: Exact, epsilon: Exact, cells: int, *, narrow: bool = False) -> tuple[str, int]:
    """What the default does with the least cost, from noisy and public numbers alone.

    Edge cases:
        On fewer than 50 cells always the plan without a look: the test cannot tell.
    """
    buckets = float(Fraction(cost) * exact_positive("epsilon", epsilon))
    unclear = _CLEAR / float(TEST_SHARE)
    if buckets > _HARD * cells or unclear > _HARD * cells:
        return "fixed", 0
    fewest, most = (_FEWEST_NARROW, _MOST_NARROW) if narrow else (_FEWEST, _MOST)
    return "blocks", int(2 ** min(max(math.floor(math.log2(max(buckets, 1.0) / _BUCKETS_A_BLOCK)), fewest), most))


def single_cells(asked: Sequence[tuple[float, tuple[Operator, Operator]]]) -> bool:
    """Whether every query holds few cells: up to 4; public."""
    return all(math.prod(int((dense(operator) != 0).sum(axis=1).max()) for operator in both) <= _NARROW for _, both in asked)


def records_a_part(buckets: float, records: float) -> float:
    """How many records a part of the second round should hold, in units of its noise.

    Where no cell stands out of the noise a partition costs nearly as much as there are records, and parts may be large. Where records lie
    in few heavy cells the cost is a small part of them, and parts have to be small.
    """
    least = 4 / float(TEST_SHARE)
    return min(max(_COARSEST * (max(buckets, least) / max(records, least)) ** 1.5, _FINEST), _COARSEST)


def first_level(tree: BlockTree, blocks: int) -> int:
    """The first level of a tree with so many blocks, or its last; public."""
    return next((level for level, starts in enumerate(tree.starts) if len(starts) >= blocks), len(tree.starts) - 1)


def divided(
    tree: BlockTree, base: int, counts: IntArray, rate: Fraction, deep: int = DEEP, *, narrow: bool = False
) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
    """What the second round measures: each block of a level is halved until its parts deserve no more, and light blocks are joined.

    A block of the tree that deserves at most half a part in all, or two where no query is of many cells, is one part.
    """
    own, starts = np.asarray(counts * float(rate), dtype=np.float64), tree.starts[base]
    first = _joined(tree, base, own, _LIGHT_NARROW if narrow else _LIGHT)
    deserved = np.maximum(counts, 1) * float(rate)
    deserved[np.bincount(first)[first] > 1] = 1.0
    depth = np.clip(np.ceil(np.log2(deserved)), 0, len(tree.starts) - 1 - base).astype(np.int64)
    many = (depth >= whole("deep", deep, 1)).astype(np.int64)
    inner = starts[first != np.arange(len(starts))]
    layers = tuple(np.setdiff1d(_refined(tree, base, most), inner, assume_unique=True) for most in (depth, depth // 2))
    parts, groups = (many[np.searchsorted(starts, layer, side="right") - 1] for layer in layers)
    return (layers[0], layers[1]), (parts, groups)


def _joined(tree: BlockTree, base: int, deserved: FloatArray, most: float) -> IntArray:
    """For each block of the base, by how many parts they deserve, the first one of those that are one part with it; mostly itself."""
    first = np.arange(len(deserved))
    alone = np.ones(len(deserved), dtype=np.bool_)
    for level in range(base):
        begin = np.searchsorted(tree.starts[base], tree.starts[level])
        number = np.diff(begin, append=len(first))
        light = np.repeat(np.add.reduceat(deserved, begin) <= most, number) & alone
        first[light] = np.repeat(begin, number)[light]
        alone &= ~light
    return first


def _refined(tree: BlockTree, base: int, depth: IntArray) -> IntArray:
    """Starts of the blocks that lie so many levels below each block of the base."""
    starts = np.zeros(len(tree.order), dtype=np.bool_)
    for level in range(base, len(tree.starts)):
        block = np.searchsorted(tree.starts[base], tree.starts[level], side="right") - 1
        starts[tree.starts[level][depth[block] >= level - base]] = True
    return np.flatnonzero(starts)
