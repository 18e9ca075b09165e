"""Measure the coverage of intervals of regression coefficients and of R^2.

    python -m experiments.coverage_moments [--draws 20000] [--determination]

The groups have 20 to 20,000 rows. The study draws only the noisy sums, with continuous noise of
standard errors 1 to 1.5 rows, instead of whole releases. Many more draws are possible in this way,
so that the results include rare cases in which a group with few rows has finite intervals. Prints
a table of docs/results/coverage.md: coefficients, or with --determination R^2.
"""

import argparse
from collections.abc import Sequence

import numpy as np

from leastnoise._error import MomentScales, interval_multiplier
from leastnoise._estimation import EstimatedMoments, coefficient_columns, determination_columns
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check.arrays import FloatArray

NOISE = (Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN)
SIZES = (20, 25, 30, 40, 60, 100, 200, 2000, 20_000)
PREDICTORS = (1, 3, 8)
EXPLAINED = (0.0, 0.1, 0.5, 0.9, 0.99)  # true R^2
_PEOPLE = 3000  # rows that define the true moments


def regression_truth(predictors: int) -> tuple[FloatArray, FloatArray]:
    """Return the moments of one row of correlated predictors, and the exact coefficients.

    The mean of the predictors is not the middle of their bounds.
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


def determination_truth(predictors: int, r_squared: float) -> FloatArray:
    """Return the moments of one row of correlated predictors with a stated R^2."""
    rng = np.random.default_rng(predictors)
    common = rng.normal(size=(_PEOPLE, 1))
    values = 0.15 + 0.25 * common + 0.25 * rng.normal(size=(_PEOPLE, predictors))
    design = np.column_stack([np.ones(_PEOPLE), values])
    residual = rng.normal(size=_PEOPLE)
    residual -= design @ np.linalg.lstsq(design, residual, rcond=None)[0]
    fitted = values @ np.linspace(0.8, -0.4, predictors)
    response = r_squared**0.5 * (fitted - fitted.mean()) / fitted.std()
    response += (1 - r_squared) ** 0.5 * residual / residual.std()
    variables = np.column_stack([np.ones(_PEOPLE), 0.3 * response - 0.1, values])
    return np.asarray(variables.T @ variables / _PEOPLE)


def drawn_moments(
    truth: FloatArray, size: float, noise: Noise, draws: int, seed: int, *, response: bool
) -> EstimatedMoments:
    """Draw the estimated moments of one group many times.

    Args:
        truth: the moments of one row, as a symmetric matrix.
        size: the number of rows.
        noise: kind of the noise of each sum, with standard errors between 1 and 1.5.
        draws: the number of draws.
        seed: seed of the draws.
        response: whether the square of the first variable is not measured.
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
        noise_kind=noise,
        level=0.95,
        by=(),
        labels=(),
        groups="",
    )


def print_coefficients(draws: int, sizes: Sequence[int]) -> None:
    """Print the coverage of intervals of coefficients."""
    print("| predictors | noise | rows | covered | with ends | of these covered |")
    print("|--:|---|--:|--:|--:|--:|")
    for predictors in PREDICTORS:
        truth, exact = regression_truth(predictors)
        for noise in NOISE:
            for size in sizes:
                columns = coefficient_columns(
                    drawn_moments(truth, size, noise, draws, 1, response=True)
                )
                inside = (columns["low"] <= exact) & (exact <= columns["high"])
                has_ends = np.isfinite(columns["high"]).all(axis=1)
                of_these = f"{inside[has_ends].mean(axis=0).min():.3f}" if has_ends.any() else "-"
                print(
                    f"| {predictors} | {noise.value} | {size:,} | {inside.mean(axis=0).min():.3f} "
                    f"| {has_ends.mean():.2%} | {of_these} |",
                    flush=True,
                )


def print_determination(draws: int, sizes: Sequence[int]) -> None:
    """Print the smallest and largest coverage of intervals of R^2 over `EXPLAINED`."""
    print("| predictors | noise | rows | covered | clear | of these covered | mean width | bias |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|")
    for predictors in PREDICTORS:
        for noise in NOISE:
            for size in sizes:
                covered = []
                clear = []
                of_these = []
                widths = []
                biases = []
                for exact in EXPLAINED:
                    truth = determination_truth(predictors, exact)
                    columns = determination_columns(
                        drawn_moments(truth, size, noise, draws, 1, response=False)
                    )
                    inside = (columns["low"] <= exact + 1e-9) & (exact <= columns["high"] + 1e-9)
                    is_clear = np.isfinite(columns["r_squared"])
                    covered.append(inside.mean())
                    clear.append(is_clear.mean())
                    if is_clear.mean() > 0.005:
                        of_these.append(inside[is_clear].mean())
                        widths.append((columns["high"] - columns["low"])[is_clear].mean())
                        biases.append(columns["r_squared"][is_clear].mean() - exact)
                print(
                    f"| {predictors} | {noise.value} | {size:,} | {_range(covered)} "
                    f"| {_range(clear)} | {_range(of_these)} | {_range(widths)} "
                    f"| {_range(biases)} |",
                    flush=True,
                )


def _range(numbers: Sequence[float]) -> str:
    """Return the smallest and the largest number as text."""
    if not numbers:
        return "-"
    return f"{min(numbers):.3f} to {max(numbers):.3f}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--determination", action="store_true")
    options = parser.parse_args()
    if options.determination:
        print_determination(options.draws, options.sizes)
    else:
        print_coefficients(options.draws, options.sizes)


if __name__ == "__main__":
    main()
