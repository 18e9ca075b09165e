"""What intervals of regression coefficients cover, in groups of any size.

    python -m experiments.coverage_moments [--draws 20000]

Only the noisy sums are drawn, with continuous noise of standard errors 1 to 1.5 rows, not whole
releases: far more draws are possible, so that rare groups with few rows and ends are seen. Prints
the table of docs/results/coverage.md.
"""

import argparse

import numpy as np

from leastnoise._error import MomentScales, interval_multiplier
from leastnoise._estimation import EstimatedMoments, coefficient_columns
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check.arrays import FloatArray

NOISE = (Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN)
SIZES = (20, 25, 30, 40, 60, 100, 200, 2000, 20_000)
PREDICTORS = (1, 3, 8)
_PEOPLE = 3000  # whose moments are taken as true


def regression_truth(predictors: int) -> tuple[FloatArray, FloatArray]:
    """Return the moments of one row of correlated predictors, and the exact coefficients.

    The predictors are away from the middle of their bounds.
    """
    rng = np.random.default_rng(predictors)
    common = rng.normal(size=(_PEOPLE, 1))
    values = 0.15 + 0.25 * common + 0.25 * rng.normal(size=(_PEOPLE, predictors))
    response = values @ np.linspace(0.8, -0.4, predictors) / predictors**0.5 - 0.1
    response += 0.1 * rng.normal(size=_PEOPLE)
    design = np.column_stack([np.ones(_PEOPLE), response, values])
    truth = design.T @ design / _PEOPLE
    rows = [0, *range(2, predictors + 2)]
    return truth, np.linalg.solve(truth[np.ix_(rows, rows)], truth[rows, 1])


def drawn_moments(
    truth: FloatArray, size: float, noise: Noise, draws: int, seed: int, *, response: bool
) -> EstimatedMoments:
    """Draw the estimated moments of one group many times.

    Args:
        truth: the moments of one row, as a symmetric matrix.
        size: the number of rows.
        response: whether the square of the first variable is not measured.
        noise: of each sum, with standard errors between 1 and 1.5.
        draws: how many.
        seed: of the draws.
    """
    rows = len(truth)
    rng = np.random.default_rng([seed, int(size), noise.norm])
    draw = rng.laplace if noise.norm == 1 else rng.normal
    std = np.triu(np.linspace(1, 1.5, rows**2).reshape(rows, rows))
    offsets = np.zeros((rows, rows))
    if response:
        std[1, 1] = 0
    for row in range(1, rows):
        offsets[row, row] = 0.5
    added = draw(0, 2**-0.5 if noise.norm == 1 else 1.0, (draws, rows, rows)) * std
    shared = added[:, :1, :1] * offsets
    upper = np.triu(truth * size) + added + shared
    moments = np.triu(upper) + np.swapaxes(np.triu(upper, 1), -1, -2)
    ones = np.ones(rows - 1)
    noise_std = np.broadcast_to(std, moments.shape)
    return EstimatedMoments(
        scales=MomentScales(
            variables=tuple("yabcdefghi"[: rows - 1]),
            names={},
            centres=0 * ones,
            reaches=ones,
            units=ones,
            steps=np.ones((rows, rows)),
            offsets=offsets,
            common=offsets,
            lows=-ones,
            highs=ones,
        ),
        moments=moments,
        noise=noise_std,
        interval_noise=noise_std,
        multiplier=interval_multiplier(noise, 0.95),
        level=0.95,
        by=(),
        labels=(),
        groups="",
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options = parser.parse_args()
    print("| predictors | noise | rows | covered | with ends | of these covered |")
    print("|--:|---|--:|--:|--:|--:|")
    for predictors in PREDICTORS:
        truth, exact = regression_truth(predictors)
        for noise in NOISE:
            for size in options.sizes:
                found = coefficient_columns(
                    drawn_moments(truth, size, noise, options.draws, 1, response=True)
                )
                inside = (found["low"] <= exact) & (exact <= found["high"])
                has_ends = np.isfinite(found["high"]).all(axis=1)
                of_these = f"{inside[has_ends].mean(axis=0).min():.3f}" if has_ends.any() else "-"
                print(
                    f"| {predictors} | {noise.value} | {size:,} | {inside.mean(axis=0).min():.3f} "
                    f"| {has_ends.mean():.2%} | {of_these} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
