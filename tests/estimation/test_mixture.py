"""The mixture of products: its slopes, its fit, and its repeatability."""

import numpy as np
import pytest

from leastnoise._estimation import RESIDUAL, NoisyTable, fit_mixture, refit_mixture, smoothed_shares
from leastnoise._estimation._mixture import _Fit

SIZES = (5, 4, 3)


def tables(noise, seed=1, rows=10_000.0):
    """Return noisy tables of up to three attributes, and the true distributions."""
    random = np.random.default_rng(seed)
    kinds = np.array([0.5, 0.3, 0.2])
    along = [random.dirichlet(np.full(n, 0.5), 3).T for n in SIZES]
    cube = np.einsum("k,ak,bk,ck->abc", kinds, *along) * rows
    all_cells = [np.arange(n) for n in SIZES]
    merged = np.array([0, 2])
    places_and_starts = [
        ((0,), (all_cells[0],)),
        ((1,), (all_cells[1],)),
        ((2,), (all_cells[2],)),
        ((0, 1), (merged, all_cells[1])),
        ((1, 2), (all_cells[1], all_cells[2])),
    ]
    noisy_tables = []
    for places, starts in [*places_and_starts, ((0, 1, 2), (merged, all_cells[1], all_cells[2]))]:
        counts = cube.sum(axis=tuple(k for k in range(3) if k not in places))
        for axis, axis_starts in enumerate(starts):
            counts = np.add.reduceat(counts, axis_starts, axis=axis)
        noisy_tables.append(
            NoisyTable(places, starts, counts + noise * random.standard_normal(counts.shape), noise)
        )
    return noisy_tables, [
        cube.sum(axis=tuple(j for j in range(3) if j != k)) / rows for k in range(3)
    ]


def test_slopes_match_the_squared_residuals():
    noisy_tables, start = tables(30.0)
    logits = np.random.default_rng(3).standard_normal((sum(SIZES), 4))
    fit = _Fit(10_000.0, start, noisy_tables, (logits, np.zeros(4)))
    along, shares = fit.distributions()
    _, spread, pull = fit.slopes(along, shares)
    random = np.random.default_rng(2)
    step = 1e-7
    for _ in range(5):
        towards = random.standard_normal(along.shape)
        moved = random.standard_normal(shares.shape)
        above, below = (
            fit.slopes(along + sign * step * towards, shares + sign * step * moved)[0]
            for sign in (1, -1)
        )
        # The slopes along the distributions leave out the factor of the shares, and all slopes are
        # half the slopes of the squares.
        expected = 2 * float((spread * shares * towards).sum() + pull @ moved)
        assert (above - below) / (2 * step) == pytest.approx(expected, rel=1e-4)
    fit.run(60)
    assert fit.rounds == 60 + 250  # rounds of falling steps follow


def test_fit_leaves_as_much_as_the_noise_and_no_more():
    for noise in (100.0, 10.0):
        noisy_tables, start = tables(noise)
        fitted = fit_mixture(10_000.0, start, noisy_tables, components=30)
        fit = _Fit(
            10_000.0,
            start,
            noisy_tables,
            (np.log(np.concatenate(fitted.distributions)), np.log(fitted.shares)),
        )
        assert fit.slopes(*fit.distributions())[0] / fit.cells == pytest.approx(RESIDUAL, abs=0.25)
        for place, truth in enumerate(start):
            assert fitted.table([place]) == pytest.approx(truth, abs=3 * noise / 10_000)
        assert fitted.table([0, 1, 2]).sum() == pytest.approx(1)
        assert fitted.table([1, 0]) == pytest.approx(fitted.table([0, 1]).T)
        assert float(fitted.table([])) == pytest.approx(1)


def test_mixture_fit_repeats_and_follows_noise():
    noisy_tables, start = tables(20.0)
    first_fit, second_fit = (
        fit_mixture(10_000.0, start, noisy_tables, components=20) for _ in range(2)
    )
    assert all(
        (a == b).all()
        for a, b in zip(first_fit.distributions, second_fit.distributions, strict=True)
    )
    same = refit_mixture(first_fit, 10_000.0, start, noisy_tables, 50)
    assert same.table([0, 1]) == pytest.approx(first_fit.table([0, 1]), abs=2e-3)
    other = tables(20.0, seed=1)[0]
    other[1] = NoisyTable(
        (1,), other[1].starts, other[1].counts + np.array([400.0, -400.0, 0, 0]), 20.0
    )
    change = refit_mixture(first_fit, 10_000.0, start, other, 100).table([1]) - first_fit.table([1])
    assert change[0] > 0 > change[1]


def test_mixture_start_ignores_noise_level_counts():
    random = np.random.default_rng(4)
    counts = np.repeat([900.0, 100.0], 32)
    shares = smoothed_shares(counts + 20 * random.standard_normal(64), 20.0, 32_000.0)
    assert shares.sum() == pytest.approx(1)
    assert (shares > 0).all()
    assert np.abs(shares - counts / counts.sum()).sum() < 0.5 * 20 * 64 * 0.8 / counts.sum()
    assert (smoothed_shares(np.array([-5.0, 3.0]), 10.0, -2.0) > 0).all()
