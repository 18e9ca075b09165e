"""Gram matrices by formula against the same by brute force, and the shared numerics."""

import math

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._families._dense import column_norm, fill_columns, singular_value_bound, strategy_rmse, to_dyadic
from leastnoise._families._gram import (
    DenseGram,
    GeneratedGram,
    Gram,
    RangesGram,
    ScaledSum,
    WidthGram,
    all_ranges_gram,
    line_order,
    merge_equal_cells,
    prefix_gram,
    recognise,
)
from leastnoise._families._tree import block_traces


def ranges(size: int, widths: range) -> np.ndarray:
    return np.array([[float(s <= j < s + w) for j in range(size)] for w in widths for s in range(size - w + 1)])


def cases() -> list[tuple[str, Gram, np.ndarray]]:
    out: list[tuple[str, Gram, np.ndarray]] = []
    for size in (1, 2, 7, 12):
        out.append((f"prefix{size}", prefix_gram(size), np.tril(np.ones((size, size)))))
        out.append((f"ranges{size}", all_ranges_gram(size), ranges(size, range(1, size + 1))))
        widths = {1, size // 2 + 1, size}
        out.extend((f"width{w}of{size}", WidthGram(size, w), ranges(size, range(w, w + 1))) for w in widths)
        some = np.random.default_rng(size).integers(-2, 3, (5, size)).astype(float)
        out.append((f"dense{size}", DenseGram(some.T @ some, 5), some))
        low, high = np.sort(np.random.default_rng(size).integers(0, size, (2, 6)), axis=0)
        given = np.array([(np.arange(size) >= first) & (np.arange(size) <= last) for first, last in zip(low, high, strict=True)]).astype(
            float
        )
        out.append((f"given{size}", RangesGram(size, low, high), given))
        out.append(
            (
                f"given and prefix{size}",
                ScaledSum(((1.0, prefix_gram(size)), (3.0, RangesGram(size, low, high)))),
                np.vstack([np.tril(np.ones((size, size))), math.sqrt(3) * given]),
            )
        )
        both = ScaledSum(((4.0, prefix_gram(size)), (1.0, all_ranges_gram(size))))
        out.append((f"sum{size}", both, np.vstack([2 * np.tril(np.ones((size, size))), ranges(size, range(1, size + 1))])))
    return out


@pytest.mark.parametrize(("name", "gram", "workload"), cases(), ids=lambda case: case if isinstance(case, str) else "")
def test_a_gram_agrees_with_its_workload(name: str, gram: Gram, workload: np.ndarray) -> None:
    full = workload.T @ workload
    size = gram.size
    block = np.random.default_rng(0).standard_normal((size, 3))
    assert gram.queries == len(workload)
    np.testing.assert_allclose(gram.dense(), full, atol=1e-9)
    np.testing.assert_allclose(gram.matmul(block), full @ block, atol=1e-9)
    np.testing.assert_allclose(gram.rows(block.T), block.T @ full, atol=1e-9)
    np.testing.assert_allclose(gram.diagonal(), full.diagonal(), atol=1e-9)
    assert gram.trace() == pytest.approx(np.trace(full))
    for width in (1, 2, 3, size):
        same = np.equal.outer(np.arange(size) // width, np.arange(size) // width)
        np.testing.assert_allclose(gram.block_products(block[:, 0], width), (full * same) @ block[:, 0], atol=1e-9)
    pairs = gram.generators()
    if pairs is not None:
        upper = np.triu(sum(np.outer(a, b) for a, b in pairs))
        np.testing.assert_allclose(upper, np.triu(full), atol=1e-9)
    assert not gram.mirrored or np.allclose(full, full[::-1, ::-1])
    assert gram.coarsen(2).size == -(-size // 2)
    widths = [1, 2, 4, size]
    same = [np.equal.outer(np.arange(size) // width, np.arange(size) // width) / width for width in widths]
    np.testing.assert_allclose(block_traces(gram, widths), [np.sum(full * own) for own in same], atol=1e-9)


def test_the_singular_value_bound_is_the_published_one() -> None:
    assert singular_value_bound(prefix_gram(1024)) == pytest.approx(2.9096, abs=5e-5)
    assert singular_value_bound(all_ranges_gram(512)) == pytest.approx(3.1832, abs=5e-5)


def test_the_error_of_a_strategy_by_hand() -> None:
    gram = all_ranges_gram(64)
    assert strategy_rmse(gram, np.eye(64), 1) == pytest.approx(4.690, abs=5e-4)
    assert strategy_rmse(gram, -7 * np.eye(64), 2) == pytest.approx(4.690, abs=5e-4)
    assert strategy_rmse(WidthGram(4, 4), np.ones((1, 4)), 1) == pytest.approx(1.0)
    assert strategy_rmse(WidthGram(4, 1), np.ones((1, 4)), 1) == math.inf
    assert strategy_rmse(WidthGram(4, 1), np.zeros((1, 4)), 1) == math.inf
    assert column_norm(np.array([[3.0], [-4.0]]), 2) == pytest.approx(5.0)


def test_seriation_undoes_a_permutation() -> None:
    shuffle = np.random.RandomState(0).permutation(64)
    for gram in (all_ranges_gram(64), prefix_gram(64), WidthGram(64, 8)):
        full = gram.dense()
        mixed = full[np.ix_(shuffle, shuffle)]
        order = line_order(DenseGram(mixed, gram.queries))
        back = mixed[np.ix_(order, order)]
        assert np.allclose(back, full) or np.allclose(back, full[::-1, ::-1])


def test_a_short_form_is_recognised_in_a_matrix() -> None:
    shuffle = np.random.RandomState(1).permutation(40)
    weighted = GeneratedGram(np.arange(1.0, 41) ** 1.5, np.linspace(3, 1, 40), 7)
    for gram in (all_ranges_gram(40), prefix_gram(40), weighted):
        full = gram.dense()
        short, order = recognise(DenseGram(full[np.ix_(shuffle, shuffle)], gram.queries))
        assert isinstance(short, GeneratedGram)
        np.testing.assert_allclose(short.dense(), full[np.ix_(shuffle, shuffle)][np.ix_(order, order)])
        np.testing.assert_allclose(short.matmul(np.eye(40)), short.dense())
        np.testing.assert_allclose(short.diagonal(), short.dense().diagonal())
        assert short.coarsen(2).size == 20
    for gram in (WidthGram(40, 6), DenseGram(np.eye(3), 3), DenseGram(np.ones((1, 1)), 1)):
        other, order = recognise(DenseGram(gram.dense(), gram.queries))
        np.testing.assert_allclose(other.dense(), gram.dense()[np.ix_(order, order)])


def test_merged_cells_keep_the_error() -> None:
    workload = np.repeat(np.tril(np.ones((5, 5))), 3, axis=1)
    small, group = merge_equal_cells(DenseGram(workload.T @ workload, 5))
    assert small.size == 5
    strategy = np.random.default_rng(1).standard_normal((7, 5))
    wide = strategy_rmse(DenseGram(workload.T @ workload, 5), strategy[:, group], 1)
    assert wide == pytest.approx(strategy_rmse(small, strategy, 1))


def test_rounding_is_to_nearest_and_keeps_the_error() -> None:
    rng = np.random.default_rng(0)
    strategy = np.vstack([np.eye(32) * 0.5, rng.random((3, 32)) / 6])
    whole = to_dyadic(strategy)
    assert np.abs(whole / 2**20 - strategy).max() <= 2.0**-21
    assert strategy_rmse(prefix_gram(32), whole, 1) == pytest.approx(strategy_rmse(prefix_gram(32), strategy, 1), rel=1e-5)
    coarse = to_dyadic(np.vstack([np.eye(4) * [[1.0], [1], [1], [0.1]]]), bits=1)
    assert coarse.shape == (3, 4)
    assert strategy_rmse(prefix_gram(4), coarse, 1) == math.inf


@pytest.mark.parametrize("norm", [1, 2])
def test_filled_columns_are_never_worse(norm: int) -> None:
    rng = np.random.default_rng(4)
    gram = prefix_gram(8)
    strategy = rng.standard_normal((10, 8))
    filled = fill_columns(strategy, norm)
    np.testing.assert_allclose(np.linalg.norm(filled, ord=norm, axis=0), column_norm(strategy, norm))
    assert strategy_rmse(gram, filled, norm) < strategy_rmse(gram, strategy, norm)
    assert fill_columns(np.eye(3), norm).shape == (3, 3)


def test_unusable_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="rounds to zero"):
        to_dyadic(np.full((1, 2), 1e-9))
    with pytest.raises(InputError, match="finite numbers"):
        to_dyadic(np.array([[np.inf]]))
