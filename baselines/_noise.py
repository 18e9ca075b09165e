"""Draw the two randomised steps of all mechanisms exactly, with the kernel's samplers."""

from fractions import Fraction

import numpy as np

from baselines._baseline import Wholes
from leastnoise._trusted.check import refuse
from leastnoise._trusted.kernel import Entropy
from leastnoise._trusted.kernel._noise import discrete_laplace
from leastnoise._trusted.kernel._sampling import Ratios, geometric_table, toss_exp, uniform_below

_FURTHEST = 45  # scores further behind the best are raised to a weight of e^-45
# geometric_table draws floor(8 E) for an exponential E, and separates numbers up to 128.
_STEP = 15
_BITS = 12  # of a rate


def laplace(answers: Wholes, epsilon: Fraction, entropy: Entropy, sensitivity: int = 1) -> Wholes:
    """Add discrete Laplace noise of scale ``sensitivity / epsilon``.

    Args:
        answers: int64, shape (m,); private.
        epsilon: cost of all answers together.
        entropy: the source of the noise.
        sensitivity: the largest change of all answers together by one record (L1).

    Guarantees: epsilon-DP.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> laplace(np.array([5, 7]), Fraction(100), SeededEntropy(1)).tolist()
    [5, 7]
    """
    return answers + discrete_laplace(
        sensitivity * epsilon.denominator, epsilon.numerator, len(answers), entropy
    )


def weighted_laplace(
    answers: Wholes, weights: Wholes, unit: int, epsilon: Fraction, entropy: Entropy
) -> Wholes:
    """Add discrete Laplace noise of scale ``unit / (weight epsilon)`` to each answer.

    Args:
        answers: int64, shape (m,), each a query of sensitivity 1; private.
        weights: int64 of the same shape, from 1 to ``unit``; the weights of the answers that one
            record changes add up to at most ``unit``.
        unit: the weight of the whole budget.
        epsilon: cost of all answers together.
        entropy: the source of the noise.

    Guarantees: epsilon-DP; an answer costs ``epsilon weight / unit``.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> weighted_laplace(
    ...     np.array([5, 7]), np.array([1, 3]), 4, Fraction(1000), SeededEntropy(1)
    ... ).tolist()
    [5, 7]
    """
    numerator = np.full(len(answers), unit * epsilon.denominator, dtype=np.int64)
    return answers + discrete_laplace(numerator, weights * epsilon.numerator, len(answers), entropy)


def choose(scores: Wholes, rate: Fraction, entropy: Entropy) -> int:
    """Draw i with probability proportional to ``exp(rate scores[i])``.

    The function is the exponential mechanism, by rejection of uniform candidates.

    Args:
        scores: whole numbers, shape (m,), below 2^62 in size; private.
        rate: ``epsilon / (2 sensitivity)`` for epsilon-DP; from 2^-40. Rounded down to 12
            significant bits.
        entropy: the source of bits.

    Returns:
        The index i.

    Raises:
        InputError: too small a rate.

    Guarantees: (2 rate sensitivity)-DP if one record changes each score by at most ``sensitivity``.
        Scores more than 45 / rate behind the best are raised to that distance, which does not
        change the sensitivity; the coins are exact. The running time depends on the scores; this is
        out of scope.

    Source: McSherry and Talwar, FOCS 2007.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> choose(np.array([0, 500, 3]), Fraction(1), SeededEntropy(1))
    1
    """
    if rate < Fraction(1, 2**40):
        raise refuse(
            "epsilon",
            f"a rate of {float(rate):.2g}",
            "larger for this number of scores",
            "Spend more.",
        )
    shift = 0
    while rate * 2**shift < 2 ** (_BITS - 1):
        shift += 1
    numerator = int(rate * 2**shift)
    denominator = 2**shift
    behind = np.minimum(scores.max() - scores, _FURTHEST * denominator // numerator + 1) * numerator
    quotient, remainder = np.divmod(np.minimum(behind, _FURTHEST * denominator), denominator)
    count = len(scores)
    while True:
        candidates, is_fair = uniform_below(
            np.asarray(count, dtype=np.uint64), count, max(64, count), entropy
        )
        index = candidates[is_fair].astype(np.int64)
        for passed in range(0, _FURTHEST, _STEP):  # exp(-quotient), in parts
            eighths = 8 * np.clip(quotient[index] - passed, 0, _STEP)
            index = index[geometric_table().draw(len(index), entropy).astype(np.int64) >= eighths]
        coins = Ratios(
            numerators=remainder[index].astype(np.uint64),
            denominators=np.asarray(denominator, dtype=np.uint64),
        )
        heads = toss_exp(
            coins,
            np.arange(len(index)),
            entropy,
            linear=np.asarray(1, dtype=np.uint64),
            square=False,
            slots=1,
        )
        if heads.any():
            return int(index[heads.argmax()])
