"""The public part of the adaptive grid: first blocks, division and merging."""

from fractions import Fraction

import numpy as np
import pytest

from leastnoise._strategies import divide_parts, first_level, plane_regime, records_per_part
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import block_tree


def test_structure_increases_first_blocks():
    costs = (-50, 0, 79, 81, 223, 224, 447, 448, 5999, 6001)
    blocks = (16, 16, 16, 16, 16, 32, 32, 64, 64)
    expected = [*(("blocks", count) for count in blocks), ("fixed", 0)]
    assert [plane_regime(cost, 1, 10**4) for cost in costs] == expected
    assert plane_regime(Fraction(3200), "0.1", 10**4) == ("blocks", 32)
    # The test cannot detect structure on 49 cells.
    assert [plane_regime(1, 1, cells)[0] for cells in (49, 51)] == ["fixed", "blocks"]
    narrow = [plane_regime(cost, 1, 10**4, is_narrow=True) for cost in (0, 5999)]
    assert [blocks for _, blocks in narrow] == [128, 256]


def test_parts_grow_where_cost_nears_the_records():
    ratios = [records_per_part(cost, 10_000) for cost in (50, 2500, 4900, 6400, 10_000, 40_000)]
    assert ratios == pytest.approx([2, 2, 11 * 0.343, 11 * 0.512, 11, 11])
    # A cost within the noise of the test shows no structure, so that cells count as equal.
    for cost, records in ((-70, -300), (25, 0), (3, 25)):
        assert records_per_part(cost, records) == 11


def test_budget_below_zero_is_refused():
    with pytest.raises(InputError, match="epsilon must be a number above 0"):
        plane_regime(1, -1, 4)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("shape", [(16, 16), (9, 23)])
def test_light_blocks_merge_up_the_tree(shape, narrow):
    """Each cell gets the largest light block that holds it, or its first block."""
    tree = block_tree(*shape)
    random = np.random.default_rng(8)
    base = first_level(tree, 16)
    size = shape[0] * shape[1]
    most_parts = 2 if narrow else Fraction(1, 2)
    ends = [np.append(starts[1:], size) for starts in tree.starts]
    joined = 0
    for _ in range(40):
        counts = random.integers(-9, 12, len(tree.starts[base])) * random.integers(0, 2)
        rate = Fraction(int(random.integers(1, 50)), 128)
        (parts, groups), (is_deep, _) = divide_parts(tree, base, counts, rate, is_narrow=narrow)
        expected: set[int] = set()
        cell = 0
        while cell < size:
            for level in range(base + 1):
                place = int(np.searchsorted(tree.starts[level], cell, side="right")) - 1
                first = tree.starts[level][place]
                stop = ends[level][place]
                inside = (tree.starts[base] >= first) & (tree.starts[base] < stop)
                is_light = counts[inside].sum() * rate <= most_parts
                if level == base or (inside.sum() > 1 and is_light):
                    break
            expected.add(int(first))
            if level == base:
                parts_of_block = parts[(parts >= first) & (parts < stop)]
                assert len(parts_of_block) >= max(1, counts[inside].sum() * rate)
                expected |= set(parts_of_block.tolist())
            else:
                joined += 1
                assert not is_deep[np.searchsorted(parts, first)]
            cell = int(stop)
        assert set(parts.tolist()) == expected
        assert set(groups.tolist()) <= expected
    assert joined > 40
