"""Measure the joint coverage of intervals of several treatments with one control.

    python -m experiments.coverage_joint [--draws 500]

Prints the table of docs/results/coverage.md: the share of simulated releases in which all intervals
contain the truth, for differences and for lifts. For A/B tests each release has a new sample.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd

import leastnoise as ln
from leastnoise._estimation import Differences, Estimate
from leastnoise._estimation._ab_test import ABTest

ARMS = (4, 9)  # with the control
SIZES = (60, 1000)  # rows of an arm
BUDGETS = (ln.PureDP(1), ln.ZCDP("1/20"))
_STD = 1.0  # standard deviation of the outcome within an arm


def outcome_rows(arms: int, size: int, seed: int) -> pd.DataFrame:
    """Return rows of every arm, whose expected outcomes rise from 2 to 6."""
    random = np.random.default_rng(seed)
    numbers = np.repeat(np.arange(arms), size)
    paid = np.linspace(2, 6, arms)[numbers] + random.normal(0, _STD, len(numbers))
    labels = np.array([f"a{number}" for number in range(arms)])
    return pd.DataFrame({"arm": labels[numbers], "paid": np.clip(paid, 0, 10)})


def joint_coverage(tables: Sequence[Differences | ABTest], name: str, truth: np.ndarray) -> float:
    """Return the share of tables whose intervals all contain the truth."""
    is_covered = []
    for table in tables:
        low = table.numbers[f"{name}_low"]
        high = table.numbers[f"{name}_high"]
        is_covered.append(((low <= truth) & (truth <= high)).all())
    return float(np.mean(is_covered))


def print_row(arms: int, size: int, budget: ln.PureDP | ln.ZCDP, draws: int) -> None:
    """Print the coverage of one setting, for the rows and for the population."""
    labels = [f"a{number}" for number in range(arms)]
    domain = ln.Domain(arm=labels, measures={"paid": ln.Measure("paid", 0, 10, unit="0.1")})
    plan = ln.plan(ln.mean_queries(domain, "paid", by=["arm"]), budget)
    fixed = outcome_rows(arms, size, 0)
    counted = np.rint(10 * fixed["paid"]) / 10
    true_means = counted.groupby(fixed["arm"]).mean()[labels].to_numpy()
    expected = np.linspace(2, 6, arms)
    compared = []
    tested = []
    estimate = None
    for draw in range(draws):
        release = ln.release(plan, fixed, seed=draw)
        sampled = ln.release(plan, outcome_rows(arms, size, draw + 1), seed=draw)
        sources = []
        for released in (release, sampled):
            observation = released.least_squares().observation
            if estimate is None:
                estimate = Estimate(observation)
            sources.append(estimate.for_observation(observation))
        compared.append(
            ln.compare_groups(sources[0], "arm", labels[1:], labels[0], mean="paid", each=True)
        )
        tested.append(
            ln.ab_test(sources[1], "arm", labels[1:], labels[0], mean="paid", std=_STD, each=True)
        )
    shares = [
        joint_coverage(compared, "difference", true_means[1:] - true_means[0]),
        joint_coverage(compared, "lift", true_means[1:] / true_means[0] - 1),
        joint_coverage(tested, "difference", expected[1:] - expected[0]),
        joint_coverage(tested, "lift", expected[1:] / expected[0] - 1),
    ]
    texts = " | ".join(f"{share:.3f}" for share in shares)
    print(f"| {arms - 1} | {budget} | {size:,} | {texts} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    options = parser.parse_args()
    print("| treatments | budget | rows | differences | lifts | effects | lifts of effects |")
    print("|--:|---|--:|--:|--:|--:|--:|")
    for arms in ARMS:
        for budget in BUDGETS:
            for size in SIZES:
                print_row(arms, size, budget, options.draws)


if __name__ == "__main__":
    main()
