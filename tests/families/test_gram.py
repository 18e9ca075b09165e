"""Gram matrices by formula against brute force."""

import math

import numpy as np
import pytest

from baselines._linear import strategy_rmse
from families.grams import all_ranges_gram, permuted, prefix_gram, width_gram
from leastnoise._domain import Domain, Integers
from leastnoise._families import (
    Gram,
    column_norm,
    dense_gram,
    fill_columns,
    gram_of,
    merge_equal_cells,
    order_cells,
    seriate_cells,
    singular_value_bound,
    sum_grams,
    to_dyadic,
)
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import (
    AllRanges,
    Dense,
    Identity,
    Operator,
    Prefix,
    Ranges,
    Total,
    dense,
)
from leastnoise._workload import matrix, queries


def cases():
    """Return weighted operators by name, for several numbers of cells."""
    gram_cases: list[tuple[str, list[tuple[float, Operator]]]] = []
    for n in (1, 2, 7, 12):
        rng = np.random.default_rng(n)
        low, high = np.sort(rng.integers(0, n, (2, 6)), axis=0)
        ranges_of_cells = Ranges(n, low, high)
        matrix = Dense(rng.integers(-2, 3, (5, n)))
        window = Ranges(n, np.arange(n // 2 + 1), np.arange(n // 2 + 1) + (n - 1) // 2)
        names = (
            ("prefix", Prefix(n)),
            ("ranges", AllRanges(n)),
            ("cells", Identity(n)),
            ("total", Total(n)),
        )
        gram_cases += [
            (f"{name}{n}", [(1.0, operator)])
            for name, operator in (
                *names,
                ("windows", window),
                ("given", ranges_of_cells),
                ("matrix", matrix),
            )
        ]
        gram_cases.append((f"sum{n}", [(4.0, Prefix(n)), (1.0, AllRanges(n))]))
        gram_cases.append(
            (
                f"all forms{n}",
                [
                    (1.0, Prefix(n)),
                    (3.0, ranges_of_cells),
                    (0.5, window),
                    (2.0, Identity(n)),
                    (0.3, matrix),
                    (0.2, matrix),
                ],
            )
        )
    return gram_cases


@pytest.mark.parametrize(
    ("name", "weighted_operators"), cases(), ids=lambda case: case if isinstance(case, str) else ""
)
def test_gram_agrees_with_its_workload(name, weighted_operators):
    gram = sum_grams([(weight, gram_of(operator)) for weight, operator in weighted_operators])
    workload = np.vstack(
        [math.sqrt(weight) * dense(operator) for weight, operator in weighted_operators]
    )
    full = workload.T @ workload
    size = gram.size
    block = np.random.default_rng(0).standard_normal((3, size))
    assert gram.queries == len(workload)
    np.testing.assert_allclose(gram.dense(), full, atol=1e-9)
    np.testing.assert_allclose(gram.multiply_rows(block), block @ full, atol=1e-9)
    np.testing.assert_allclose(gram.diagonal(), full.diagonal(), atol=1e-9)
    for width in (1, 2, 3, size):
        same = np.equal.outer(np.arange(size) // width, np.arange(size) // width)
        np.testing.assert_allclose(
            gram.block_products(block[0], width), (full * same) @ block[0], atol=1e-9
        )
    if gram.generators:
        np.testing.assert_allclose(
            np.triu(sum(np.outer(a, b) for a, b in gram.generators)), np.triu(full), atol=1e-9
        )
    assert gram.is_symmetric_under_reversal == np.allclose(full, full[::-1, ::-1])
    widths = [1, 2, 4, 3, 6, 12, 24, 5, size]
    same = [
        np.equal.outer(np.arange(size) // width, np.arange(size) // width) / width
        for width in widths
    ]
    np.testing.assert_allclose(
        gram.block_traces(widths), [np.sum(full * mask) for mask in same], atol=1e-9
    )


def test_coarser_gram_spreads_queries_evenly():
    spread = np.kron(np.eye(16), np.full((1, 4), 1 / 4))
    low = np.arange(0, 40, 3)
    for operator, tolerance in (
        (Identity(64), 1e-12),
        (Ranges(64, low, low + 20), 1e-12),
        (Dense(dense(Prefix(64))), 1e-12),
        (Prefix(64), 0.1),
    ):
        gram = gram_of(operator)
        np.testing.assert_allclose(
            gram.coarsen(4).dense(),
            spread @ gram.dense() @ spread.T,
            rtol=tolerance * 20,
            atol=tolerance * 64,
        )
    # A multiple of the same queries on fewer cells.
    for kind in (Prefix, AllRanges):
        coarse = gram_of(kind(64)).coarsen(4).dense()
        small = gram_of(kind(16)).dense()
        np.testing.assert_allclose(coarse / coarse[0, 0], small / small[0, 0])


def test_singular_value_bound_matches_the_paper():
    assert singular_value_bound(prefix_gram(1024)) == pytest.approx(2.9096, abs=5e-5)
    assert singular_value_bound(all_ranges_gram(512)) == pytest.approx(3.1832, abs=5e-5)


def test_strategy_error_matches_hand_computation():
    gram = all_ranges_gram(64)
    assert strategy_rmse(gram, np.eye(64), 1) == pytest.approx(4.690, abs=5e-4)
    assert strategy_rmse(gram, -7 * np.eye(64), 2) == pytest.approx(4.690, abs=5e-4)
    assert strategy_rmse(width_gram(4, 4), np.ones((1, 4)), 1) == pytest.approx(1.0)
    assert strategy_rmse(width_gram(4, 1), np.ones((1, 4)), 1) == math.inf
    assert strategy_rmse(width_gram(4, 1), np.zeros((1, 4)), 1) == math.inf
    assert column_norm(np.array([[3.0], [-4.0]]), 2) == pytest.approx(5.0)


def test_gram_recognises_short_forms_and_cell_order():
    weighted = Gram(40, 7, ((np.arange(1.0, 41) ** 1.5, np.linspace(3, 1, 40)),))
    for gram in (all_ranges_gram(40), prefix_gram(40), weighted, width_gram(40, 6)):
        full = gram.dense()
        mixed = permuted(gram)
        order = seriate_cells(mixed)
        reordered = mixed.dense()[np.ix_(order, order)]
        assert np.allclose(reordered, full) or np.allclose(reordered, full[::-1, ::-1])
        short, order = order_cells(mixed)
        assert len(short.generators) == len(gram.generators)
        np.testing.assert_allclose(short.dense(), mixed.dense()[np.ix_(order, order)])
    for tiny in (np.eye(3), np.ones((1, 1))):
        np.testing.assert_allclose(order_cells(dense_gram(tiny, 3))[0].dense(), tiny)


def test_merged_cells_keep_the_error():
    workload = np.repeat(np.tril(np.ones((5, 5))), 3, axis=1)
    gram = dense_gram(workload.T @ workload, 5)
    merged, group = merge_equal_cells(gram)
    assert merged.size == 5
    strategy = np.random.default_rng(1).standard_normal((7, 5))
    error = strategy_rmse(merged, strategy, 1)
    assert strategy_rmse(gram, strategy[:, group], 1) == pytest.approx(error)


def test_rounding_is_to_nearest_and_keeps_the_error():
    rng = np.random.default_rng(0)
    strategy = np.vstack([np.eye(32) * 0.5, rng.random((3, 32)) / 6])
    rounded = to_dyadic(strategy)
    assert np.abs(rounded / 2**20 - strategy).max() <= 2.0**-21
    assert strategy_rmse(prefix_gram(32), rounded, 1) == pytest.approx(
        strategy_rmse(prefix_gram(32), strategy, 1), rel=1e-5
    )
    coarse = to_dyadic(np.vstack([np.eye(4) * [[1.0], [1], [1], [0.1]]]), bits=1)
    assert coarse.shape == (3, 4)
    assert strategy_rmse(prefix_gram(4), coarse, 1) == math.inf
    for unusable, reason in (
        (np.full((1, 2), 1e-9), "rounds to zero"),
        (np.array([[np.inf]]), "finite numbers"),
    ):
        with pytest.raises(InputError, match=reason):
            to_dyadic(unusable)


@pytest.mark.parametrize("norm", [1, 2])
def test_filled_columns_are_never_worse(norm):
    strategy = np.random.default_rng(4).standard_normal((10, 8))
    filled = fill_columns(strategy, norm)
    np.testing.assert_allclose(
        np.linalg.norm(filled, ord=norm, axis=0), column_norm(strategy, norm)
    )
    assert strategy_rmse(prefix_gram(8), filled, norm) < strategy_rmse(
        prefix_gram(8), strategy, norm
    )
    assert fill_columns(np.eye(3), norm).shape == (3, 3)


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (Identity(9), "alone"),
        (Total(9), "pairs"),
        (Prefix(9), "pairs"),
        (AllRanges(9), "pairs"),
        (Ranges(9, [0, 2], [3, 4]), "given"),
        (Dense([[1, -2, 0], [0, 1, 1]]), "array"),
    ],
    ids=repr,
)
def test_gram_keeps_the_structure_of_its_queries(operator, name):
    gram = gram_of(operator)
    structure = {
        "pairs": bool(gram.pairs),
        "alone": gram.identity_weight > 0,
        "given": gram.weighted_ranges is not None,
        "array": gram.array is not None,
    }
    assert [form for form, has in structure.items() if has] == [name]


def test_ranges_in_any_words_have_their_structure():
    low, high = np.triu_indices(12)
    shuffle = np.random.default_rng(0).permutation(len(low))
    assert gram_of(Ranges(12, low[shuffle], high[shuffle])) == gram_of(AllRanges(12))
    assert gram_of(Ranges(12, np.zeros(12, int), np.arange(12)[::-1])) == gram_of(Prefix(12))
    for operator in (
        Ranges(12, np.zeros(12, int), [*range(11), 10]),
        Ranges(12, low[:-1], high[:-1]),
    ):
        np.testing.assert_allclose(gram_of(operator).dense(), dense(operator).T @ dense(operator))
    line = Domain(x=Integers(0, 3))
    (product,), (other,) = (
        queries(line, x=matrix(rows)) for rows in ([[0, 1, 1, 0], [1, 0, 0, 0]], [[1, 0, 1, 0]])
    )
    assert product.operators == (Ranges(4, np.array([1, 0]), np.array([2, 0])),)
    assert other.operators == (Dense([[1, 0, 1, 0]]),)
