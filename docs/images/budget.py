"""Computes the tables of docs/choose-a-budget.md and draws its picture.

python docs/images/budget.py
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import altair as alt

from leastnoise._charts._picture import CONFIG, DASHES, SERIES
from leastnoise._trusted.accounting import gaussian_epsilon

HERE = Path(__file__).parent
PAGE = HERE.with_name("choose-a-budget.md")
PICTURE = HERE / "budget-risk.svg"
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
DRAWN = (0.1, 0.5, 1.0, 2.0, 4.0)
PRIORS = (0.01, 0.1, 0.5)
FALSE_POSITIVE_RATES = (0.01, 0.05)
MU_SQUARES = ("1/100", "1/20", "1/4", "1", "4")
DELTA = "1e-6"
STEPS = 100


def largest_posterior(prior: float, epsilon: float) -> float:
    """Return the largest posterior probability of a statement about a person.

    Bayes' rule with the largest likelihood ratio, exp(epsilon).

    Args:
        prior: the probability before the release, from 0 to 1.
        epsilon: the logarithm of the largest likelihood ratio.

    >>> round(largest_posterior(0.5, 1.0), 3)
    0.731
    """
    odds_factor = math.exp(epsilon)
    return prior * odds_factor / (1 - prior + prior * odds_factor)


def largest_true_positive_rate(false_positive_rate: float, epsilon: float) -> float:
    """Return the largest true positive rate of a membership attack.

    The lower of the two bounds of Wasserman and Zhou (2010) and of Kairouz, Oh and Viswanath
    (2015), for delta 0.

    >>> round(largest_true_positive_rate(0.05, 1.0), 3)
    0.136
    """
    bound_by_ratio = math.exp(epsilon) * false_positive_rate
    bound_by_complement = 1 - math.exp(-epsilon) * (1 - false_positive_rate)
    return min(bound_by_ratio, bound_by_complement)


def gaussian_true_positive_rate(false_positive_rate: float, mu: float) -> float:
    """Return the largest true positive rate under mu-GDP (Dong, Roth and Su, 2022).

    >>> round(gaussian_true_positive_rate(0.05, 1.0), 3)
    0.26
    """
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(false_positive_rate) + mu)


def format_share(share: float) -> str:
    """Return a share as a percentage with two digits, rounded up since it is a bound."""
    percent = 100 * share
    if percent > 99.9:
        text = "over 99.9%"
    elif percent < 10 or percent > 99:
        text = f"{math.ceil(10 * percent - 1e-9) / 10:.1f}%"
    else:
        text = f"{math.ceil(percent - 1e-9)}%"
    return text


def pure_rows() -> Iterator[str]:
    """Yield the rows of the table of epsilon."""
    for epsilon in EPSILONS:
        posteriors = [format_share(largest_posterior(prior, epsilon)) for prior in PRIORS]
        rates = [
            format_share(largest_true_positive_rate(rate, epsilon)) for rate in FALSE_POSITIVE_RATES
        ]
        yield f"| {epsilon:g} | " + " | ".join([*posteriors, *rates]) + " |"


def gaussian_rows() -> Iterator[str]:
    """Yield the rows of the table of Gaussian budgets."""
    for text in MU_SQUARES:
        square = Fraction(text)
        epsilon = math.ceil(100 * float(gaussian_epsilon(text, DELTA))) / 100
        mu = math.sqrt(square)
        rates = [
            format_share(gaussian_true_positive_rate(rate, mu)) for rate in FALSE_POSITIVE_RATES
        ]
        yield f"| {text} | {square / 2} | {epsilon:.2f} | " + " | ".join(rates) + " |"


def draw_lines(
    points: Sequence[dict[str, float | str]], x_title: str, y_title: str, title: str
) -> Any:
    """Return a chart with a line for each epsilon, and the diagonal."""
    axis = alt.Axis(format="%", tickCount=5)
    data = {"values": list(points)}
    dashes = list(DASHES[: len(DRAWN)])
    names = [f"{epsilon:g}" for epsilon in reversed(DRAWN)]
    lines = (
        alt.Chart(data, title=title)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("x:Q", title=x_title, axis=axis),
            y=alt.Y("y:Q", title=y_title, axis=axis),
            color=alt.Color(
                "epsilon:N",
                title="epsilon",
                scale=alt.Scale(domain=names, range=list(SERIES[: len(DRAWN)])),
            ),
            strokeDash=alt.StrokeDash("epsilon:N", scale=alt.Scale(domain=names, range=dashes)),
        )
    )
    ends = {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]}
    diagonal = alt.Chart(ends).mark_line(color="#8a949e", strokeWidth=1).encode(x="x:Q", y="y:Q")
    return alt.layer(diagonal, lines).properties(width=300, height=300)


def draw_risk() -> Any:
    """Return the picture: posteriors on the left, rates of attacks on the right."""
    corners = [1 / (1 + math.exp(epsilon)) for epsilon in DRAWN]
    shares = sorted([*corners, *(step / STEPS for step in range(STEPS + 1))])
    posteriors: list[dict[str, float | str]] = []
    rates: list[dict[str, float | str]] = []
    for epsilon in DRAWN:
        name = f"{epsilon:g}"
        for share in shares:
            posterior = largest_posterior(share, epsilon)
            posteriors.append({"x": share, "y": posterior, "epsilon": name})
            rate = largest_true_positive_rate(share, epsilon)
            rates.append({"x": share, "y": rate, "epsilon": name})
    left = draw_lines(
        posteriors, "probability before the release", "largest probability after it", "A guess"
    )
    right = draw_lines(
        rates, "false positive rate", "largest true positive rate", "A membership attack"
    )
    return alt.hconcat(left, right).configure(**{**CONFIG, "background": "white"})


def main() -> None:
    """Draw the picture and print the rows of the tables."""
    draw_risk().save(PICTURE)
    print(PICTURE, *pure_rows(), *gaussian_rows(), sep="\n")


if __name__ == "__main__":
    main()
