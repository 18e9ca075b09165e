"""Buckets under a threshold by hand: their cells, their noise, and choices by group."""

import numpy as np
import pytest

from leastnoise._strategies import (
    GroupBuckets,
    TailLaw,
    candidate_cells,
    choose_group_threshold,
    decreasing_counts,
)
from leastnoise._trusted.linop import dense

EDGES = np.array(sorted({int(8000 * 1000 ** (cell / 49) / 1000) for cell in range(50)}))


def under(threshold):
    return GroupBuckets.of("pay", EDGES, threshold)


@pytest.mark.parametrize("norm", [1, 2])
def test_buckets_grow_threefold_with_matching_noise(norm):
    for threshold in EDGES[candidate_cells(EDGES)].tolist():
        buckets = under(threshold)
        assert buckets.upper_ends[-1] == buckets.limits.max() == threshold
        assert (buckets.limits == np.minimum(EDGES, threshold)).all()
        ratios = buckets.upper_ends[1:] / buckets.upper_ends[:-1]
        assert ((ratios > 2.4) & (ratios < 3.7)).all()
        matrix = dense(buckets.factor(norm).operator)
        assert (matrix.sum(axis=0) == 1).all()
        assert ((matrix * buckets.limits).max(axis=1) == buckets.upper_ends).all()
        heavy = buckets.factor(norm).weights * buckets.upper_ends
        assert heavy == pytest.approx(heavy[0], rel=0.02 if norm == 2 else 0.002)


def test_groups_keep_buckets_worth_their_noise():
    buckets = under(8000)
    noise = buckets.upper_ends / 1.0
    profile = np.array([1.0, 1.0, 1.0, 0.5, 0.05, 0.0, 0.0][: len(noise)]) * 1e6
    shares = np.array([0.85, 0.14, 0.009, 0.001])
    ranges = buckets.choose_ranges(shares[:, None] * profile, noise)
    # Computed by hand: the amount beyond a bucket is kept if it is larger than its noise. 5% of
    # each group's share of a million is 42,500, 7000, 450 and 50.
    assert noise[3:].round().tolist() == [312.0, 838.0, 2589.0, 8000.0]
    assert ranges.kept_buckets.tolist() == [5, 5, 4, 4]
    assert ranges.group_shares == pytest.approx(shares, abs=2e-3)
    assert ranges.omitted_sums[:2] == pytest.approx([0, 0])
    assert ranges.omitted_sums[2:] == pytest.approx(shares[2:] * 5e4, rel=0.7)


def test_noise_above_all_values_is_left_out_by_all():
    buckets = under(8000)
    random = np.random.default_rng(0)
    noise = 100.0 * buckets.upper_ends
    exact = np.outer(
        1 / np.arange(1, 21), np.array([1.0, 1.0, 0.5] + [0.0] * (len(noise) - 3)) * 1e6
    )
    for _ in range(20):
        ranges = buckets.choose_ranges(
            exact + random.laplace(0, noise / 2**0.5, exact.shape), noise
        )
        assert ranges.kept_buckets.max() <= 4
        assert ranges.kept_buckets[0] == 3 or ranges.kept_buckets[0] == 4
        assert ranges.kept_buckets[-1] <= ranges.kept_buckets[0]


def test_distinct_group_keeps_its_own_buckets():
    buckets = under(8000)
    noise = 10.0 * buckets.upper_ends
    sums = np.zeros((6, len(noise)))
    sums[:, 0] = 1e6
    sums[4, -1] = 9.1 * noise[-1]  # of 42 sums of nothing one has as much in 0.005% of all releases
    assert buckets.choose_ranges(sums, noise).kept_buckets.tolist()[4] == len(noise)
    sums[4, -1] = 3 * noise[-1]
    assert buckets.choose_ranges(sums, noise).kept_buckets.max() < len(noise)


def test_sums_of_zero_keep_no_bucket():
    buckets = under(8000)
    ranges = buckets.choose_ranges(np.zeros((3, len(buckets.upper_ends))), buckets.upper_ends / 1.0)
    assert ranges.kept_buckets.tolist() == [0, 0, 0]
    assert ranges.omitted_sums.tolist() == [0, 0, 0]


def test_more_groups_lower_the_cut_less_than_evenly():
    """More groups lower the threshold, by less than groups of one known size would."""
    places = candidate_cells(EDGES)
    ends = EDGES[places].astype(float)
    counts = 1e5 * -np.diff(ends**-2.0) * ends[0] ** 2
    chosen = [
        choose_group_threshold(
            EDGES, counts, groups, lambda threshold: 20.0 * threshold, certain_count=np.inf
        ).threshold
        for groups in (1, 8, 64, 512)
    ]
    assert chosen == sorted(chosen, reverse=True)
    assert chosen[-1] < chosen[0]
    even = choose_group_threshold(
        EDGES, counts / 64, 1, lambda threshold: 20.0 * threshold, certain_count=np.inf
    ).threshold
    assert chosen[2] > even


def test_dropped_amount_is_estimated_from_tails():
    """The amount follows the tail of index 1, not the heavier tail of the choice.

    Where noise is large, the heavier tail would add a few records at the maximum.
    """
    places = candidate_cells(EDGES)
    noisy = np.random.default_rng(4).laplace(3.0, 40.0, len(places) - 1)
    chosen = choose_group_threshold(
        EDGES, noisy, 10, lambda threshold: 20.0 * threshold, certain_count=np.inf
    )
    spans = np.diff(places)
    centres = (EDGES + np.concatenate([[0], EDGES[:-1]])) / 2
    lost = []
    for law in (TailLaw(), TailLaw(index=0.5)):
        counts = np.concatenate(
            [
                np.zeros(places[0] + 1),
                np.repeat(decreasing_counts(noisy, EDGES[places], law) / spans, spans),
            ]
        )
        lost.append(counts * np.maximum(centres - chosen.threshold, 0.0))
    assert chosen.clipped_amounts == pytest.approx(lost[0])
    assert lost[1].sum() > 1.5 * lost[0].sum() > 0
