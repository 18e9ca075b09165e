"""Strategies on buckets: Gram matrices, costs of differences, and expected errors."""

import numpy as np
import pytest

from baselines._greedy_h import fit_greedy_h
from baselines._linear import strategy_rmse
from leastnoise._estimation import HalvingTree
from leastnoise._families import gram_of, sum_grams
from leastnoise._strategies import (
    bucket_gram,
    bucket_strategy,
    difference_costs,
    first_levels,
    total_cost,
)
from leastnoise._trusted.linop import (
    AllRanges,
    Coarse,
    Dense,
    Identity,
    Prefix,
    Ranges,
    Total,
    column_sums,
    dense,
)


def operators(size):
    """Return one operator of each kind."""
    rng = np.random.default_rng(size)
    ends = np.sort(rng.integers(0, size, (2, 9)), axis=0)
    return [
        Identity(size),
        Total(size),
        Prefix(size),
        AllRanges(size),
        Ranges(size, *ends),
        Dense(rng.integers(-2, 3, (4, size))),
    ]


@pytest.mark.parametrize("size", [16, 13, 6])
def test_bucket_gram_matches_transformed_queries(size):
    starts = np.array([0, 1, 4, 5])
    lengths = np.diff(starts, append=size)
    expansion = np.repeat(np.eye(4) / lengths, lengths, axis=1).T
    weighted_operators = list(zip([1.0, 2.5, 0.5, 1.0, 3.0, 7.0], operators(size), strict=True))
    rows = [dense(operator) @ expansion for _, operator in weighted_operators]
    whole = sum(
        weight * own.T @ own for (weight, _), own in zip(weighted_operators, rows, strict=True)
    )
    assert np.allclose(
        bucket_gram(
            sum_grams([(weight, gram_of(operator)) for weight, operator in weighted_operators]),
            starts,
        ).array,
        whole,
    )


@pytest.mark.parametrize("size", [16, 13, 6, 1])
def test_difference_costs_match_the_queries(size):
    halving = HalvingTree(size)
    for operator in operators(size):
        rows = dense(operator).astype(float)
        costs = difference_costs(sum_grams([(2.0, gram_of(operator))]), halving.left, halving.right)
        for level, cost in enumerate(costs):
            for block in range(len(cost)):
                vector = np.zeros(halving.padded)
                if halving.left[level][block] and halving.right[level][block]:
                    halving.levels(vector)[level][block] = 1.0
                cells = halving.cells_of(vector, are_blocks_bounded=False)
                assert np.isclose(2 * ((rows @ cells) ** 2).sum(), cost[block]), (
                    operator,
                    level,
                    block,
                )


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_bucket_strategy_is_no_worse_than_greedy_h(power, count):
    size = 200
    starts = np.sort(
        np.random.default_rng(count).choice(np.arange(1, size), count - 1, replace=False)
    )
    starts = np.concatenate([[0], starts]).astype(np.int64)
    factor = bucket_strategy(("age",), gram_of(AllRanges(size)), starts, power)
    assert isinstance(factor.operator, Coarse)
    sums = column_sums(factor.operator, factor.weights**power, power)
    assert all(len(set(part.tolist())) == 1 for part in np.split(sums, starts[1:]))
    gram = bucket_gram(gram_of(AllRanges(size)), starts)
    matrix = dense(factor.operator.operator) * factor.weights[:, None]
    if count > 1:
        greedy = fit_greedy_h(gram).matrix()
        assert strategy_rmse(gram, matrix, power) <= strategy_rmse(gram, greedy, power) * 1.001


@pytest.mark.parametrize("power", [1, 2])
def test_first_levels_suit_the_workload(power):
    def levels(operator):
        halving = HalvingTree(operator.size)
        gram = gram_of(operator)
        costs = [
            float(level_costs.sum())
            for level_costs in difference_costs(gram, halving.left, halving.right)
        ]
        return first_levels(costs, total_cost(gram), power)

    widths, weights = levels(AllRanges(4096))
    assert widths == (1, 8, 64, 512)
    assert np.isclose((weights**power).sum(), 1)
    assert weights[-1] > weights[0]
    assert levels(Identity(4096))[0] == (1,)
    assert [levels(Prefix(size))[0] for size in (4, 64, 200, 1024, 2048)] == [
        (1,),
        (1, 8),
        (1, 4, 32),
        (1, 8, 128),
        (1, 16, 256),
    ]
    # Every prefix sum has the error of the widest blocks before it.
    assert levels(Prefix(4096))[1][-1] > weights[-1]
    assert first_levels([], 1.0, power)[0] == (1,)


def test_total_error_has_a_cost():
    operators = (
        Identity(6),
        Prefix(6),
        AllRanges(6),
        Ranges(6, [0, 2], [5, 2]),
        Dense(np.arange(12).reshape(2, 6)),
    )
    for operator in operators:
        spread = dense(operator).astype(float).mean(axis=1)
        assert np.isclose(total_cost(sum_grams([(2.0, gram_of(operator))])), 2 * (spread**2).sum())


@pytest.mark.parametrize("power", [1, 2])
def test_queries_on_few_buckets_are_planned(power):
    size = 400
    starts = np.arange(0, 400, 2)
    query_sets = {
        "one range": Ranges(size, [10], [37]),
        "the total": Total(size),
        "two clusters": Ranges(
            size, np.repeat([20, 300], 50), np.concatenate([np.arange(25, 75), np.arange(310, 360)])
        ),
        "nothing but zeros": Dense(np.zeros((1, size), dtype=int)),
    }
    for name, operator in query_sets.items():
        factor = bucket_strategy(("age",), gram_of(operator), starts, power)
        assert (column_sums(factor.operator, factor.weights, 1) > 0).all(), name
        matrix = dense(factor.operator.operator) * factor.weights[:, None].astype(float)
        assert np.linalg.matrix_rank(matrix / matrix.max()) == len(starts), name
