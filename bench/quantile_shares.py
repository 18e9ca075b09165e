"""Compute the exact mean rank distance of a private median, by share of the budget.

    python bench/quantile_shares.py

The law of permute-and-flip is P(c) = p_c times the integral over t from 0 to 1 of the product of
1 - p_j t over the other cells j, with p_c = exp(-epsilon (d_c - min d) / (2 s)), the distances d
from the rank and the sensitivity s = 1/2 (McKenna and Sheldon, arXiv 2010.12603). The integral is a
Gauss-Legendre sum. *bound*: no pure private choice has less for all data sets of evenly spaced rows
(docs/decisions/answers.md). The mean distances are for permute-and-flip, except one column for the
exponential mechanism.
"""

import argparse

import numpy as np

CELLS = 4096
ROWS = 10_000
NEAREST = 400  # cells; the others have a total probability below 1e-12
NODES = 200
TABLES = 40  # of uniform and of normal values
SHARES = (0.4, 0.5, 0.6, 0.7, 0.8, 1.0)


def distances(counts: np.ndarray) -> np.ndarray:
    """Return the rank distances of the cells nearest to the median, in order."""
    before = np.cumsum(counts) - counts
    target = counts.sum() / 2
    distance = np.maximum(0.0, np.maximum(before - target, target - before - counts))
    return np.sort(distance)[:NEAREST]


def exponential_mean(distance: np.ndarray, epsilon: float) -> float:
    """Return the mean distance under the exponential mechanism."""
    weights = np.exp(-epsilon * distance)
    return float(weights @ distance / weights.sum())


def flipped_mean(distance: np.ndarray, epsilon: float) -> float:
    """Return the mean distance under permute-and-flip."""
    chances = np.exp(-epsilon * (distance - distance.min()))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    nodes = (nodes + 1) / 2
    products = np.array([np.log1p(-chances * node).sum() for node in nodes])
    law = [
        chance * (weights / 2 * np.exp(products) / (1 - chance * nodes)).sum() for chance in chances
    ]
    return float(np.array(law) @ distance)


def least_mean(epsilon: float) -> float:
    """Return the lower bound for evenly spaced rows."""
    width = ROWS / CELLS
    steps = np.arange(1, CELLS)
    other_distance = 2 * float((width * (steps - 0.5)) @ np.exp(-2 * epsilon * width * steps))
    return other_distance * (width / 2) / (other_distance + width / 2)


def main() -> None:
    """Print a row for each share of a budget of epsilon 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    shares = parser.parse_args().shares

    rng = np.random.default_rng(0)
    even = [distances(np.bincount(np.arange(ROWS) * CELLS // ROWS, minlength=CELLS))]
    uniform = [distances(rng.multinomial(ROWS, np.full(CELLS, 1 / CELLS))) for _ in range(TABLES)]
    normal = []
    for _ in range(TABLES):
        cells = np.clip(rng.normal(CELLS / 2, CELLS / 8, ROWS).astype(int), 0, CELLS - 1)
        normal.append(distances(np.bincount(cells, minlength=CELLS)))
    print(
        "| share of the choice | bound | evenly spaced | the same, exponential | uniform | normal |"
    )
    print("|--:|--:|--:|--:|--:|--:|")
    for share in shares:
        figures = (
            least_mean(share),
            flipped_mean(even[0], share),
            exponential_mean(even[0], share),
            np.mean([flipped_mean(distance, share) for distance in uniform]),
            np.mean([flipped_mean(distance, share) for distance in normal]),
        )
        print(f"| {share} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |")


if __name__ == "__main__":
    main()
