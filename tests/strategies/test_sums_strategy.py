"""Strategies for sums under limits and thresholds, against dense algebra."""

import math

import numpy as np
import pytest

from baselines._linear import strategy_rmse
from experiments.sums_strategies import PrefixSums, sum_strategy
from families.grams import prefix_gram
from leastnoise._domain import Bins, Domain, Integers, Measure
from leastnoise._families import dense_gram, fit_gaussian_optimum
from leastnoise._fitting import fit_noise_scales
from leastnoise._strategies import (
    TailLaw,
    candidate_cells,
    choose_threshold,
    decreasing_counts,
    estimated_rmse,
    estimated_rmse_along,
    gram_matrices_along,
    integer_rows,
    isotonic_decreasing,
    limited_gram,
    limited_strategy,
)
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import dense
from leastnoise._workload import queries
from strategies.proposals import total_squared_error

LIMITS = np.minimum(np.arange(1, 81) * 25, 900)


def noise_of(gram):
    """Return `estimated_rmse` at norm 1, computed once for each set of limits."""
    cache: dict[bytes, float] = {}

    def noise(limits):
        if limits.tobytes() not in cache:
            cache[limits.tobytes()] = estimated_rmse(gram, limits, 1)
        return cache[limits.tobytes()]

    return noise


def optimum(sums, limits, norm):
    """Return the unit RMSE of the best strategy for sums under limits."""
    if norm == 2:
        gram = limited_gram(sums.gram(), limits)
        return strategy_rmse(gram, fit_gaussian_optimum(gram).matrix, 2)
    return sum_strategy("optimum", sums.matrix(), sums.gram(), limits, effort=0.3).rmse(1.0)


def test_quick_noise_follows_the_optimum():
    sums = PrefixSums(edges=100 * np.arange(1, 121), last=np.arange(120))
    for norm in (1, 2):
        ratios = []
        for threshold in (500, 2_000, 12_000):
            limits = sums.limits(threshold)
            ratios.append(estimated_rmse(sums.gram(), limits, norm) / optimum(sums, limits, norm))
        assert max(ratios) / min(ratios) < 1.12
        assert min(ratios) > 0.85
        assert max(ratios) < 1.35


@pytest.mark.parametrize("power", [1, 2])
def test_merged_cells_have_the_noise_of_one_cell(power):
    fine = Domain(pay=Integers(1, 200), measures={"wages": Measure("pay", 0, 200)})
    workload = queries(fine, pay={"ranges": [[1, 20 * end] for end in range(1, 11)]}, sum="wages")
    for threshold in (30, 90, 200):
        limits = np.minimum(np.arange(1, 201), threshold)
        expected = estimated_rmse(prefix_gram(10), limits[19::20], power) / 200
        assert estimated_rmse_along(workload, "pay", power)(limits) == pytest.approx(expected)


def test_falling_counts_fit_a_falling_density():
    rng = np.random.default_rng(1)
    counts = rng.normal(20, 15, 9)
    edges = np.cumsum(rng.uniform(0.5, 4, 10))
    spans = -np.diff(1 / edges)
    fitted = isotonic_decreasing(counts, spans)
    assert (np.diff(fitted / spans) <= 1e-9).all()
    assert (fitted >= 0).all()
    for _ in range(400):
        other = np.sort(np.abs(fitted / spans + rng.normal(0, 1, 9)))[::-1] * spans
        assert ((fitted - counts) ** 2).sum() <= ((other - counts) ** 2).sum() + 1e-9


@pytest.mark.parametrize("index", [1.0, 1.2, 2.0])
def test_pareto_tail_with_mean_is_kept(index):
    edges = 100 * 1.2 ** np.arange(20)
    counts = -1e6 * np.diff(edges**-index)
    assert decreasing_counts(counts, edges) == pytest.approx(counts)


def test_pareto_tail_without_mean_is_reduced():
    edges = 100 * 1.2 ** np.arange(20)
    counts = -1e6 * np.diff(edges**-0.5)
    assert decreasing_counts(counts, edges)[-1] < 0.9 * counts[-1]
    assert (
        decreasing_counts(counts, edges, TailLaw(certain_count=0.99 * counts[-1]))[-1] == counts[-1]
    )


def test_large_noise_is_not_taken_for_rich_records():
    edges = 20_000 * np.arange(1, 401)
    places = candidate_cells(edges)
    rng = np.random.default_rng(2)
    amounts = rng.lognormal(10.6, 0.8, 50_000)
    counts = np.histogram(amounts, edges[places])[0] + rng.laplace(
        scale=100, size=(40, len(places) - 1)
    )
    gram = prefix_gram(400)
    noise = noise_of(gram)
    chosen = [
        choose_threshold(gram, edges, places, noisy_counts, noise, 2**0.5 / 0.09).threshold
        for noisy_counts in counts
    ]
    # The public maximum is 8 million, and the largest amount is about one million. The error is
    # least at about 300,000.
    assert np.percentile(chosen, 90) <= 900_000
    assert np.percentile(chosen, 10) >= 150_000


def test_threshold_follows_noise_and_tail():
    edges = 100 * np.arange(1, 101)
    places = candidate_cells(edges)
    assert places[-1] == 99
    widths = np.diff(edges[places])
    tail = 4000 * np.exp(-edges[places][1:] / 1500) * widths / widths.sum()
    gram = prefix_gram(100)
    noise_at = noise_of(gram)

    def chosen(counts, noise):
        return choose_threshold(gram, edges, places, counts, noise_at, noise).threshold

    by_noise = [chosen(tail, noise) for noise in (0.1, 3.0, 30.0, 300.0)]
    assert by_noise == sorted(by_noise, reverse=True)
    assert by_noise[0] > 2 * by_noise[-1]
    assert chosen(10 * tail, 30.0) > chosen(tail, 30.0)
    assert chosen(np.zeros(len(places) - 1), 30.0) == edges[places[0]]


def test_predicted_bias_is_exact_at_bucket_centres():
    edges = 10 * np.arange(1, 21)
    places = np.arange(20)
    counts = -1e6 * np.diff(edges**-2.0)
    choice = choose_threshold(
        prefix_gram(20), edges, places, counts, lambda limits: float(limits.max()), 2.0
    )
    centres = edges[1:] - 5.0
    for place, threshold in enumerate(choice.candidates):
        lost = np.cumsum(counts * np.maximum(centres - threshold, 0))
        assert choice.clipping_rmse[place] == pytest.approx(math.sqrt((lost**2).sum() / 20))
    assert choice.noise_rmse == pytest.approx(2.0 * edges)
    assert choice.clipped_amounts.sum() == pytest.approx(
        (counts * np.maximum(centres - choice.threshold, 0)).sum()
    )


def test_groups_and_merged_cells_are_planned():
    domain = Domain(sex=["F", "M"], pay=Integers(1, 40), measures={"wages": Measure("pay", 0, 40)})
    limits = np.minimum(np.arange(1, 41), 12)
    grouped = queries(domain, sex="identity", pay="prefix", sum="wages")
    noise, loss = gram_matrices_along(grouped, "pay")
    assert noise.dense() == pytest.approx(2 * prefix_gram(40).dense() / 40**2)
    assert loss.dense() == pytest.approx(prefix_gram(40).dense() / 2 / 40**2)
    assert limited_strategy(grouped, "pay", limits, 1).blocks[0][0].attributes == ("sex", "pay")
    few = queries(domain, pay={"ranges": [[1, 10], [11, 40]]}, sum="wages")
    (block, _), *_ = limited_strategy(few, "pay", limits, 1).blocks
    assert len({tuple(column) for column in dense(block.factors[0].operator).T}) == 2
    alone = queries(domain, sex="identity", sum="wages")
    assert limited_strategy(alone, "pay", limits, 2).blocks[0][0].attributes == ("sex",)


def test_weights_of_a_gram_matrix_without_a_short_form():
    full = dense_gram(np.array([[2.0, 1.0], [1.0, 3.0]]), 2)
    assert limited_gram(full, np.array([2, 5])).dense().tolist() == [[8.0, 10.0], [10.0, 75.0]]
    assert strategy_rmse(limited_gram(full, np.array([2, 5])), np.eye(2), 1) == pytest.approx(
        math.sqrt(83 / 2)
    )


def test_refusals_are_read():
    with pytest.raises(
        InputError,
        match="The public bounds are too large for whole coefficients: up to 1099511627776 units",
    ):
        integer_rows(np.eye(1), np.array([2**40]), 1)
    with pytest.raises(
        InputError, match="There must be one count for each interval between 3 candidates; got 3"
    ):
        choose_threshold(
            prefix_gram(8), np.arange(1, 9), np.arange(3), np.zeros(3), lambda _: 1.0, 1.0
        )


@pytest.mark.parametrize("power", [1, 2])
def test_the_optimum_is_as_good_in_whole_coefficients(power):
    domain = Domain(pay=Bins(0, 8000, 80), measures={"wages": Measure("pay", 0, 8000)})
    workload = queries(domain, pay="prefix", sum="wages")
    limits = np.minimum(np.arange(1, 81) * 100, 3000)
    privacy = Privacy(PureDP("1/3") if power == 1 else ZCDP("1/20"))
    mechanism = Noise.DISCRETE_LAPLACE if power == 1 else Noise.DISCRETE_GAUSSIAN

    plan = fit_noise_scales(
        domain, privacy, mechanism, limited_strategy(workload, "pay", limits, power).blocks
    )
    assert plan.blocks[0].limits is not None
    least = total_squared_error(workload, plan)
    ideal = (
        80
        * 8000.0**-2
        * optimum(PrefixSums(edges=100 * np.arange(1, 81), last=np.arange(80)), limits, power) ** 2
    )
    noise = 2 * 9 if power == 1 else 10
    assert least == pytest.approx(ideal * noise, rel=0.02)
