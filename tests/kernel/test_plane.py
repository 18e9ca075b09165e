"""Trees and partitions of a rectangle: what they are, that their probabilities are those of the definition, and what they refuse."""

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from leastnoise._check import InputError
from leastnoise._kernel import _plane as plane
from leastnoise._kernel._entropy import SeededEntropy
from leastnoise._kernel._partition import GRID, grid_sensitivity, noise_scale
from leastnoise._kernel._partition_sampling import Scaled, exponents, powers_of_half, rate
from leastnoise._kernel._plane import PRIOR, block_costs, draw_blocks, least_block_cost, plane_charge, sampled_partition
from leastnoise._linop import block_tree, interval_tree

SHAPES = [(1, 1), (1, 2), (2, 2), (3, 2), (4, 2), (3, 3), (1, 5), (2, 5)]


def all_partitions(tree):
    """Every partition into blocks, as tuples of (level, block), by the definition: each set of cells once."""

    def of(level, block):
        if level == len(tree.children):
            yield ((level, block),)
            return
        first, number = tree.children[level][block], tree.broods(level)[block]
        if number > 1:
            yield ((level, block),)
        for parts in itertools.product(*(list(of(level + 1, first + place)) for place in range(number))):
            yield tuple(itertools.chain.from_iterable(parts))

    return list(of(0, 0))


def cells_of(tree, level, block):
    start = tree.starts[level][block]
    return frozenset(tree.order[start : start + tree.lengths(level)[block]].tolist())


def deviation(values, centre):
    return np.abs(values - (values.mean() if centre == "mean" else np.median(values))).sum()


# --- trees -------------------------------------------------------------------------------------------------------------------------


def test_blocks_are_rectangles_that_divide_into_their_children():
    for height, width in itertools.product(range(1, 10), (1, 2, 3, 7, 20)):
        tree = block_tree(height, width)
        assert sorted(tree.order.tolist()) == list(range(height * width))
        assert len(tree.starts[0]) == 1
        assert len(tree.starts[-1]) == height * width
        for level in range(len(tree.starts)):
            sides = []
            for block in range(len(tree.starts[level])):
                row, column = np.divmod(np.array(sorted(cells_of(tree, level, block))), width)
                sides.append((np.ptp(row) + 1, np.ptp(column) + 1))
                assert len(row) == sides[-1][0] * sides[-1][1]
            assert np.ptp(sides, axis=0).max() <= 1  # uneven parts, but even ones overall
            if level < len(tree.children):
                assert set(tree.children[level].tolist()) <= set(range(len(tree.starts[level + 1])))
                assert (tree.broods(level) >= 1).all()
                assert tree.broods(level).max() == 2
                assert (tree.starts[level + 1][tree.children[level]] == tree.starts[level]).all()


# --- costs and the least of them ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centre", ["mean", "median"])
def test_costs_are_deviations(centre):
    x = np.random.default_rng(1).integers(0, 50, (6, 11))
    tree = block_tree(6, 11)
    for level, cost in enumerate(block_costs(x.reshape(-1)[tree.order], tree, centre)):
        for block, found in enumerate(cost.tolist()):
            want = GRID * deviation(x.reshape(-1)[sorted(cells_of(tree, level, block))], centre)
            assert found == math.floor(want + 1e-6)


@pytest.mark.parametrize("centre", ["mean", "median"])
def test_one_record_changes_one_block_a_level_by_at_most_the_sensitivity(centre):
    generator = np.random.default_rng(2)
    tree = block_tree(3, 5)
    most = GRID if centre == "median" else grid_sensitivity(15)
    seen = 0
    for _ in range(200):
        cells = generator.integers(0, 3, 15)
        more = cells.copy()
        more[generator.integers(15)] += 1
        for one, other in zip(block_costs(cells, tree, centre), block_costs(more, tree, centre), strict=True):
            change = np.abs(one - other)
            assert (change > 0).sum() <= 1
            seen = max(seen, int(change.max()))
    assert most / 2 < seen <= most


@pytest.mark.parametrize("shape", SHAPES)
def test_the_least_cost_is_that_of_all_partitions(shape):
    generator = np.random.default_rng(3)
    tree = block_tree(*shape)
    for _ in range(5):
        x = generator.integers(0, 9, shape)
        costs = [sum(deviation(x.reshape(-1)[list(cells_of(tree, *block))], "median") + 2 for block in B) for B in all_partitions(tree)]
        assert float(least_block_cost(x, 10**6, SeededEntropy(1), penalty=2)) == pytest.approx(min(costs), abs=0.01)


def test_the_noise_of_the_least_cost_has_its_scale():
    """Mean within 6 standard errors, variance within 20%: false alarms below 1e-6."""
    x = np.full((2, 2), 7)
    found = np.array([float(least_block_cost(x, "0.5", SeededEntropy(seed), penalty=2)) for seed in range(1500)])
    assert found.mean() == pytest.approx(2, abs=6 * math.sqrt(8 / 1500))
    assert found.var() == pytest.approx(8, rel=0.2)


# --- the exponential mechanism -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4, 5, 8])
def test_partitions_are_drawn_with_the_probabilities_of_the_definition(size):
    """False alarms: 1e-6 a case."""
    x = np.random.default_rng(6).integers(0, 5, size)
    tree = interval_tree(size)
    epsilon, penalty, prior = 1.5, 0.3, 0.4
    weights = {}
    for B in all_partitions(tree):
        cost = sum(deviation(x[list(cells_of(tree, *block))], "mean") + penalty for block in B)
        weights[tuple(sorted(min(cells_of(tree, *block)) for block in B))] = math.exp(
            -prior * len(B) - epsilon * cost / (2 * (2 - 2 / size))
        )
    assert len(weights) == len(all_partitions(tree))  # none is counted twice
    total = sum(weights.values())
    entropy = SeededEntropy(11)
    draws = 2000
    seen = dict.fromkeys(weights, 0)
    for _ in range(draws):
        seen[tuple(sampled_partition(x, "1.5", entropy, penalty="0.3", prior="0.4").starts.tolist())] += 1
    # partitions that are hardly ever drawn are counted together
    rare = [B for B, weight in weights.items() if draws * weight / total < 5]
    groups = [[B] for B in weights if B not in rare] + ([rare] if rare else [])
    expected = [draws * sum(weights[B] for B in group) / total for group in groups]
    found = [sum(seen[B] for B in group) for group in groups]
    statistic = sum((a - b) ** 2 / b for a, b in zip(found, expected, strict=True))
    assert statistic < chi2.isf(1e-6, max(1, len(groups) - 1))


@pytest.mark.parametrize("n", [4, 6, 8])
def test_the_loss_computed_exactly_is_at_most_epsilon(n):
    """With the whole exponents that the program uses, and exact sums over all partitions."""
    epsilon = Fraction(3, 4)
    tree = interval_tree(n)
    every = all_partitions(tree)
    bits, step = rate(epsilon - plane_charge(len(tree.starts)))
    delta = grid_sensitivity(n)
    generator = np.random.default_rng(n)
    worst = mpmath.mpf(0)
    for trial in range(25):
        cells = generator.integers(0, 3, n) * (trial > 0)
        more = cells.copy()
        more[generator.integers(n)] += 1
        tables = []
        for counts in (cells, more):
            t = [exponents(cost, step, delta) + 1000 for cost in block_costs(counts, tree, "mean")]
            weights = [mpmath.mpf(2) ** (-mpmath.mpf(sum(int(t[level][block]) for level, block in B)) / 2**bits) for B in every]
            total = sum(weights)
            tables.append([weight / total for weight in weights])
        worst = max(worst, *(abs(mpmath.log(a / b)) for a, b in zip(*tables, strict=True)))
    assert float(epsilon) / 8 < worst <= float(epsilon)


@pytest.mark.parametrize("size", [8, 9, 12])
def test_the_program_s_own_sums_give_the_probabilities_to_the_error_that_is_charged(monkeypatch, size):
    """The probability of every partition from the coins that the program would toss, against real numbers."""
    tree = interval_tree(size)
    cells = np.random.default_rng(8).integers(0, 30, size)
    bits, step = rate(Fraction(1, 2))
    t = [exponents(cost, step, grid_sensitivity(len(cells))) + 30000 for cost in block_costs(cells, tree, "mean")]
    asked = []

    def watched(terms, word, entropy):
        asked.append(terms)
        return 1  # split: every node is visited

    monkeypatch.setattr(plane, "settle", watched)
    monkeypatch.setattr(plane, "_DOUBT", 2.0)
    assert draw_blocks([powers_of_half(level, bits) for level in t], tree, SeededEntropy(1))[-1].all()
    visited = [(level, block) for level in range(len(tree.children)) for block in np.flatnonzero(tree.broods(level) > 1).tolist()]
    with mpmath.workdps(60):
        stays = {}
        for node, terms in zip(visited, asked, strict=True):
            one, other = (mpmath.mpf(mantissa) * mpmath.mpf(2) ** exponent for mantissa, exponent in terms)
            stays[node] = one / (one + other)

        def drawn(level, block, B):
            if (level, block) in B:
                return stays.get((level, block), mpmath.mpf(1))
            number = int(tree.broods(level)[block])
            inner = mpmath.fprod(drawn(level + 1, int(tree.children[level][block]) + place, B) for place in range(number))
            return inner * (1 - stays[level, block]) if number > 1 else inner

        every = [frozenset((level, int(block)) for level, block in B) for B in all_partitions(tree)]
        products = [mpmath.fprod(mpmath.mpf(2) ** (-mpmath.mpf(int(t[level][block])) / 2**bits) for level, block in B) for B in every]
        chances = [drawn(0, 0, B) for B in every]
        assert sum(chances) == pytest.approx(1, abs=1e-40)
        total = sum(products)
        errors = [abs(mpmath.log(chance * total / product)) for chance, product in zip(chances, products, strict=True)]
        assert 1e-18 < max(errors) < float(plane_charge(len(tree.starts))) / 2


def test_the_draw_is_the_same_by_exact_comparisons(monkeypatch):
    tree = block_tree(5, 7)
    weights = [powers_of_half(np.full(len(starts), 3 * level), 2) for level, starts in enumerate(tree.starts)]
    quick, exact = SeededEntropy(3), SeededEntropy(3)
    one = [[level.tolist() for level in draw_blocks(weights, tree, quick)] for _ in range(20)]
    monkeypatch.setattr(plane, "_DOUBT", 2.0)
    assert one == [[level.tolist() for level in draw_blocks(weights, tree, exact)] for _ in range(20)]


def test_the_prior_is_the_largest_weight_that_stays_bounded():
    assert math.exp(-float(PRIOR)) == pytest.approx(1 / 4, rel=1e-6)  # z = q + z^2 has a root up to q = 1/4
    bounded, z = math.exp(-float(PRIOR)) * (1 - 1e-6), 0.0
    for _ in range(10_000):
        z = bounded + z**2
    assert z < 1 / 2


def test_clear_structure_is_found():
    x = np.zeros(1536, dtype=np.int64)
    x[:512] = 4000
    x[990] = 90_000
    found = sampled_partition(x, 1, SeededEntropy(5))
    buckets = np.repeat(np.arange(len(found.starts)), found.lengths())
    assert len(np.unique(buckets[:512])) <= 3
    assert (buckets == buckets[990]).sum() == 1
    assert len(np.unique(x[buckets == buckets[0]])) == 1
    assert len(found.starts) <= 40
    assert found.spent == 1


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100, 153])
def test_any_line_of_cells(size):
    found = sampled_partition(np.arange(size) * 100, "0.1", SeededEntropy(1))
    assert (found.starts[0], found.size, found.spent) == (0, size, Fraction(1, 10))
    assert (found.lengths() >= 1).all()


def test_no_count_makes_a_partition_fail():
    checked = np.where(np.arange(100) % 2, 2**63 - 1, 0).reshape(10, 10)
    for x in (np.full((10, 10), 2**63 - 1), np.full((10, 10), -(2**63)), checked):
        assert sampled_partition(x.reshape(-1), 1, SeededEntropy(1)).size == 100
        assert sampled_partition(x.reshape(-1), 1000, SeededEntropy(1)).size == 100
        assert least_block_cost(x, 1, SeededEntropy(1), penalty=1) > -100


def test_a_close_call_is_settled_by_further_digits():
    """A block of weight 1 against cells of weights 1 and 2: whole with probability 1/3, whose digits are 0101..."""
    weights = [Scaled(np.array([0.5]), np.array([1])), Scaled(np.array([0.5, 0.5]), np.array([1, 2]))]
    for more, whole in ((0, True), (2**64 - 1, False)):
        words = iter([2**64 // 3, more])
        entropy = SimpleNamespace(private=False, words=lambda count, words=words: np.array([next(words)] * count, dtype=np.uint64))
        buckets = draw_blocks(weights, block_tree(1, 2), entropy)
        assert [kept.tolist() for kept in buckets] == [[whole], [not whole] * 2]


def test_neighbours_that_differ_by_more_records_get_a_smaller_epsilon():
    """Group privacy: at distance 2 the draws are those of half the epsilon."""
    x = np.random.default_rng(1).integers(0, 40, (8, 8))
    for seed in range(5):
        one = sampled_partition(x.reshape(-1), 1, SeededEntropy(seed), distance=2)
        other = sampled_partition(x.reshape(-1), "0.5", SeededEntropy(seed))
        assert (one.spent, other.spent) == (1, Fraction(1, 2))
        assert np.array_equal(one.starts, other.starts)
        costs = [least_block_cost(x, e, SeededEntropy(seed), penalty=1, distance=d) for e, d in ((1, 2), ("0.5", 1))]
        assert costs[0] == costs[1]
    assert noise_scale(GRID, Fraction(1, 2), 4)[0] == 2 * GRID * 256


# --- refusals ----------------------------------------------------------------------------------------------------------------------

X = np.array([[1, 2], [3, 4]])
LINE = X.reshape(-1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sampled_partition(LINE.astype(float), 1, SeededEntropy(1)), "got 'float64 array of shape \\(4,\\)'"),
        (lambda: sampled_partition(X, 1, SeededEntropy(1)), "must be of shape \\(n,\\)"),
        (
            lambda: least_block_cost(X[None], 1, SeededEntropy(1), penalty=1),
            "must be an int64 array of shape \\(n,\\) or",
        ),
        (lambda: least_block_cost([[1]], 1, SeededEntropy(1), penalty=1), "got 'list'"),
        (lambda: sampled_partition(LINE[:0], 1, SeededEntropy(1)), "1 to 2\\^24 cells"),
        (lambda: sampled_partition(LINE, 0, SeededEntropy(1)), "epsilon must be a number above 0; got 0"),
        (lambda: sampled_partition(LINE, "1e-13", SeededEntropy(1)), "too small for the exponential mechanism"),
        (lambda: sampled_partition(LINE, 1, SeededEntropy(1), prior=-1), "prior must be from 0 to 1024"),
        (lambda: sampled_partition(LINE, 1, SeededEntropy(1), penalty=-1), "penalty must be from 0 to"),
        (lambda: least_block_cost(X, 1, SeededEntropy(1), penalty=1, distance=0), "distance must be a whole number of at least 1"),
        (lambda: block_tree(2, -1), "width must be a whole number from 1"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
