"""Audits of every private baseline, which also find faults of the released code."""

import inspect
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

from baselines import (
    ONE_DIMENSION,
    TWO_DIMENSIONS,
    Ranges,
    _dawa,
    _fourier,
    _grids,
    _linear,
    _mwem,
    _noise,
    _partition,
    _tree,
)
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.kernel import SeededEntropy
from mechanisms.remembered import draw_ahead

EPSILON = Fraction(1, 2)
ROUNDING = 1e-9
ALARM = 1e-6
ALL = {
    f"{baseline.name}, {baseline.dimensions}-D": baseline
    for baseline in (*ONE_DIMENSION, *TWO_DIMENSIONS)
}
AUDITED = [
    name
    for name, baseline in ALL.items()
    if baseline.private and not baseline.name.startswith("DAWA")
]


# --- what is private ------------------------------------------------------------------------------


LISTED = Ranges(np.array([0, 1, 1, 5]), np.array([2, 6, 9, 9]))
RUNS = [(name, side, None) for name in AUDITED for side in (4, 9)] + [
    (name, 9, LISTED) for name in AUDITED if ALL[name].aware
]


@pytest.mark.parametrize(("name", "side", "ranges"), RUNS)
def test_baseline_loss_is_at_most_epsilon(name, side, ranges, audit, monkeypatch):
    """Some pair loses at least 40% of epsilon, so the audit measures something."""
    monkeypatch.setattr(_mwem, "_PASSES", 2)  # post-processing
    baseline = ALL[name]
    shape = (side,) if baseline.dimensions == 1 else (side, side - 1)
    loss, leaks = audit(
        lambda x, entropy: baseline.run(x, EPSILON, entropy, ranges), shape, seeds=(side,)
    )
    assert not leaks
    assert 0.4 * EPSILON <= loss <= EPSILON + ROUNDING


def test_dawa_second_stage_loss_is_as_stated(audit):
    starts = np.array([0, 1, 4])
    loss, leaks = audit(
        lambda x, entropy: _dawa.second_stage(x, starts, EPSILON, entropy, None), (8,)
    )
    assert not leaks
    assert 0.4 * EPSILON <= loss <= EPSILON + ROUNDING


def test_choices_follow_exponential_mechanism():
    """Chi-square with 4 degrees of freedom below 33.4: a false alarm in 10^6.

    A rate that is wrong by a quarter is detected with probability 99.9%.
    """
    entropy = SeededEntropy(3)
    scores = np.array([0, 3, 5, 1, -2])
    frequencies = Counter(_noise.choose(scores, Fraction(1, 2), entropy) for _ in range(2500))
    chances = np.exp(scores / 2) / np.exp(scores / 2).sum()
    assert sum((frequencies[i] - 2500 * p) ** 2 / (2500 * p) for i, p in enumerate(chances)) < 33.4


def test_choices_are_best_at_high_rate_or_wide_gap():
    """A score 10^9 behind counts as 45 / rate behind.

    4096 such scores together have a probability below 10^-15.
    """
    far = np.full(4096, -(10**9))
    far[7] = 0

    for scores, rate, best in (
        (far, Fraction(1, 100), 7),
        (np.array([-1, 0, -68]), Fraction(1500), 1),
    ):
        assert {_noise.choose(scores, rate, SeededEntropy(seed)) for seed in range(20)} == {best}


def test_too_small_a_rate_is_refused():
    with pytest.raises(InputError, match=r"epsilon must be larger for this number of scores"):
        _noise.choose(np.zeros(2, dtype=np.int64), Fraction(1, 2**41), SeededEntropy(1))


# --- the faults of released code, put in ----------------------------------------------------------


def test_true_total_is_detected_uniform(audit):
    _, leaks = audit(lambda x, _: np.full(len(x), x.sum() / len(x)), (8,))
    assert leaks


def test_true_total_is_detected_mwem(audit, monkeypatch):
    def laplace(answers, epsilon, entropy):
        return (
            answers
            if epsilon == EPSILON * _mwem.TOTAL_SHARE
            else _noise.laplace(answers, epsilon, entropy)
        )

    monkeypatch.setattr(_mwem, "laplace", laplace)
    monkeypatch.setattr(_mwem, "_PASSES", 2)

    assert audit(lambda x, entropy: _mwem.mwem(x, EPSILON, entropy, None), (8,), seeds=(1,))[1]


@pytest.mark.parametrize("grid", [_grids.uniform_grid, _grids.adaptive_grid])
def test_true_total_is_detected_grids(grid, audit, monkeypatch):
    def few_and_one_more(shape, _):
        for total in (0, 38, 39):  # where a grid changes its size
            x = np.zeros(shape, dtype=np.int64)
            x[0, 0] = total
            yield x, x + (np.indices(shape).sum(axis=0) == 0)

    def run(x, entropy):
        return grid(x, EPSILON * 1000, entropy, None)

    assert not audit(run, (12, 12), pairs=few_and_one_more)[1]
    monkeypatch.setattr(_grids, "noisy_total", lambda x, epsilon, _: (float(x.sum()), epsilon))
    assert audit(run, (12, 12), pairs=few_and_one_more)[1]


def test_true_total_is_detected_ahp(audit):
    def with_true_total(x, entropy):
        estimate = _partition.ahp(x, EPSILON, entropy, None)
        return estimate + (x.sum() - estimate.sum()) / len(x)

    assert audit(with_true_total, (8,))[1]


def test_exact_phases_are_detected_efpa(audit, monkeypatch):
    """Add noise to the sizes of the Fourier coefficients only, not to their angles."""

    def with_true_phases(x, entropy):
        with monkeypatch.context() as patches:
            mine = _fourier.inverse
            cosines, sines = _fourier.coefficients(x)

            def turned(c, s, size):
                angle = np.arctan2(sines[: len(c)], cosines[: len(c)])
                return mine(np.hypot(c, s) * np.cos(angle), np.hypot(c, s) * np.sin(angle), size)

            patches.setattr(_fourier, "inverse", turned)
            return _fourier.efpa(x, EPSILON, entropy, None)

    assert audit(with_true_phases, (8,))[1]


def test_efpa_sensitivity_check_sees_other_normalisation(audit, monkeypatch):
    """Orthonormal sensitivities for other coefficients are too small by sqrt(n)."""
    wrong = (_fourier.sensitivities(16) / 4).astype(np.int64)
    monkeypatch.setattr(_fourier, "sensitivities", lambda _: wrong)
    loss, leaks = audit(lambda x, entropy: _fourier.efpa(x, EPSILON, entropy, None), (16,))
    assert not leaks
    assert loss > 1.5 * EPSILON


def test_efpa_tail_moves_by_at_most_one_record():
    """Compare the exact integers of its exponential mechanism; 17 is 1 record and rounding."""
    generator = np.random.default_rng(4)
    for x in (
        np.zeros(31, dtype=np.int64),
        generator.poisson(3.0, 32),
        generator.poisson(5.0, 33) ** 5,
    ):
        before = _fourier.tails(*_fourier.coefficients(x), len(x))
        steps = np.eye(len(x), dtype=np.int64)
        moved = [
            np.abs(_fourier.tails(*_fourier.coefficients(x + step), len(x)) - before).max()
            for step in steps
        ]
        assert max(moved) <= _fourier.SCORE_SENSITIVITY
        assert max(moved) > 5


@pytest.mark.parametrize("size", [1, 2, 5, 8, 31])
def test_efpa_sensitivities_are_column_sums_of_basis(size):
    rows = [
        np.abs(_fourier.coefficients(np.eye(size, dtype=np.int64)[j])).sum(axis=0)
        for j in range(size)
    ]
    assert _fourier.sensitivities(size).tolist() == np.cumsum(rows, axis=1).max(axis=0).tolist()


def test_nodes_without_noise_are_detected_structure_first(audit, monkeypatch):
    """Add noise to the cells of every bucket, but not to the nodes above them."""

    def cells_only(bucket, weights, widths, epsilon, entropy):
        values = [_tree.sums_of_blocks(bucket, width).astype(float) for width in widths]
        values[0] = _noise.laplace(bucket, epsilon, entropy).astype(float)
        return _tree.least_squares(values, [np.ones(len(level)) for level in weights], widths)

    monkeypatch.setattr(_partition, "measure_hierarchy", cells_only)
    assert audit(lambda x, entropy: _partition.structure_first(x, EPSILON, entropy, None), (8,))[1]


def peeled(n):
    """Return counts to be cut cell by cell: each is far larger than all later ones."""
    return (8 ** np.arange(n)[::-1]).astype(np.int64)


def test_php_makes_at_most_the_paid_decisions():
    n = 16
    depth = _linear.height(16, 2)
    _, decisions = _partition.bisect(peeled(n), Fraction(1), Fraction(0), depth, SeededEntropy(1))
    assert decisions.max() == depth
    assert decisions.max() * (EPSILON / depth) == EPSILON
    _, unlimited = _partition.bisect(peeled(n), Fraction(1), Fraction(0), n, SeededEntropy(1))
    # The fault is a budget for log2 n decisions while there are more of them.
    assert unlimited.max() * (EPSILON / depth) > 2 * EPSILON


def test_php_passes_that_depth_on(monkeypatch):
    depths = []
    mine = _partition.bisect
    monkeypatch.setattr(
        _partition,
        "bisect",
        lambda x, e, p, depth, u: depths.append((e, depth)) or mine(x, e, p, depth, u),
    )
    for n in (1, 5, 16):
        _partition.p_h_partition(peeled(n), EPSILON, SeededEntropy(1), None)

    assert depths == [(EPSILON / 2, 1), (EPSILON / 6, 3), (EPSILON / 8, 4)]


def test_mwem_spends_half_a_step_on_the_choice(monkeypatch):
    rates = []
    monkeypatch.setattr(_mwem, "choose", lambda scores, rate, _: rates.append(rate) or 0)
    _mwem.mwem(np.arange(8), EPSILON, SeededEntropy(1), None)
    step = EPSILON * Fraction(19, 20) / 20
    assert rates == [step / 2] * 10


@pytest.mark.parametrize(
    "epsilon", [0, -1, "-0.1", float("nan"), float("inf"), "1e-30", None, True]
)
def test_every_baseline_refuses_an_impossible_epsilon(epsilon):
    for baseline in ALL.values():
        with pytest.raises(InputError, match="epsilon must be"):
            baseline.run(
                np.zeros((4,) * baseline.dimensions, dtype=np.int64), epsilon, SeededEntropy(1)
            )


def test_there_are_no_default_seeds():
    for baseline in ALL.values():
        assert (
            inspect.signature(baseline.run).parameters["entropy"].default is inspect.Parameter.empty
        )
        x = np.full((4,) * baseline.dimensions, 1000)
        runs = [baseline.run(x, 1, SeededEntropy(seed)) for seed in (1, 1, 2)]
        assert np.array_equal(runs[0], runs[1])  # the entropy given is the only source of chance
        assert not np.array_equal(runs[0], runs[2])


def test_sensitivities_use_absolute_sizes():
    """The released norm of -2 I is -2."""
    assert _tree.spent_weight([np.array([-2, -2])], (1,)) == 2
    for weights, widths in (
        ([np.array([-2, -2])], (1,)),
        ([np.array([2**20, 5]), np.array([1])], (1, 2)),
    ):
        with pytest.raises(InternalError, match="spends more than its budget"):
            _tree.measure_hierarchy(
                np.zeros(2, dtype=np.int64), weights, widths, EPSILON, SeededEntropy(1)
            )

    columns = np.array(
        [np.concatenate(_linear.wavelet_coefficients(row)) for row in np.eye(8, dtype=np.int64)]
    )
    assert np.abs(columns).sum(axis=1).tolist() == [4] * 8
    assert columns.sum(axis=1).min() == -2  # what a sum without sizes would make of the last cell


def test_hb_height_is_a_whole_number():
    assert math.ceil(math.log(125, 5)) == 4  # the fault: a level too many
    assert _linear.height(125, 5) == 3
    for branching in range(2, 40):
        for levels in range(1, 5):
            assert _linear.height(branching**levels, branching) == levels
            assert _linear.height(branching**levels + 1, branching) == levels + 1


@pytest.mark.parametrize(
    "baseline",
    [baseline for baseline in TWO_DIMENSIONS if baseline.name != "Uniform"],
    ids=lambda baseline: baseline.name,
)
def test_plane_estimates_exceed_32_bits(baseline):
    x = np.zeros((16, 16), dtype=np.int64)
    x[3, 5] = 3 * 2**31
    assert baseline.run(x, 1000, SeededEntropy(1))[3, 5] == pytest.approx(3 * 2**31, rel=1e-6)
    estimate = baseline.run(np.ones((16, 16), dtype=np.int64), "0.3", SeededEntropy(1))
    assert estimate.dtype == np.float64
    if baseline.name != "Identity":
        assert (estimate != np.round(estimate)).any()


# --- Monte Carlo: the partitions of DAWA, whose noise is drawn for each bucket -------------------
# All others are audited above.


def surely_lost(draws_here, draws_there):
    """Return a lower bound of the privacy loss that holds with probability 1 - 1e-6.

    It is computed from draws on two neighbours with hashable outputs. The first half of the
    draws selects the outputs that look most revealing, the second half gives their
    Clopper-Pearson bounds.
    """
    half = len(draws_here) // 2
    loss = 0.0
    for mine, theirs in ((draws_here, draws_there), (draws_there, draws_here)):
        selection_counts = Counter(mine[:half])
        neighbour_counts = Counter(theirs[:half])
        ranked = sorted(
            selection_counts,
            key=lambda out: (selection_counts[out] + 1) / (neighbour_counts[out] + 1),
            reverse=True,
        )
        # Events are single outputs, and all outputs above a ratio.
        events = [{out} for out in ranked[:10]] + [
            set(ranked[:k]) for k in (3, 20, 50, len(ranked) // 2) if k
        ]
        total = len(mine) - half
        neighbour_total = len(theirs) - half
        for event in events:
            hits, faults = (sum(out in event for out in draws[half:]) for draws in (mine, theirs))
            low = beta.ppf(ALARM / 100, hits, total - hits + 1) if hits else 0.0
            high = (
                beta.isf(ALARM / 100, faults + 1, neighbour_total - faults)
                if faults < neighbour_total
                else 1.0
            )
            if low > 0:
                loss = max(loss, math.log(low / high))
    return loss


PAIRS = [
    (np.array(counts), np.array(neighbour))
    for counts, neighbour in (([0] * 4, [0, 1, 0, 0]), ([4, 0, 3, 0], [4, 0, 4, 0]))
]


def partitions(partition, pair, epsilons, draws, entropy):
    """Return draws of the partition of both neighbouring tables."""
    return (
        [tuple(partition(counts, *epsilons, entropy).tolist()) for _ in range(draws)]
        for counts in pair
    )


@pytest.mark.slow
def test_published_partition_loses_at_most_epsilon(monkeypatch):
    draw_ahead(monkeypatch, _dawa)
    for seed, pair in enumerate(PAIRS):
        draws, neighbour_draws = partitions(
            _dawa.printed_partition, pair, (Fraction(2), Fraction(6)), 500, SeededEntropy(80 + seed)
        )
        assert surely_lost(draws, neighbour_draws) <= 2


@pytest.mark.slow
def test_audit_detects_released_dawa_first_stage(monkeypatch):
    """Budget 1 for the partition and 3 for the counts: the loss at 4 cells is 2.5.

    These draws prove a loss above 1.
    """
    draw_ahead(monkeypatch, _dawa)
    draws, neighbour_draws = partitions(
        _dawa.released_partition, PAIRS[0], (Fraction(1), Fraction(3)), 6000, SeededEntropy(4)
    )
    assert surely_lost(draws, neighbour_draws) > 1


def test_released_dawa_first_stage_is_marked():
    marked = [baseline.label for baseline in ALL.values() if not baseline.private]
    assert marked == ["DAWA, released first stage (not private, for comparison)"]
