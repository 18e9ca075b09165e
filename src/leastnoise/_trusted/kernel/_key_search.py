"""Search for keys that cannot be listed beforehand (PROOFS-keys.md).

A key is released if its noisy number of units reaches a threshold.
"""

from dataclasses import dataclass

import numpy as np

from leastnoise._trusted.accounting import ApproxDP, KeyRule, Noise, Privacy, keys_are_private
from leastnoise._trusted.check import InputError, refuse, whole
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.kernel._entropy import Entropy
from leastnoise._trusted.kernel._noise import discrete_laplace, rounded_gaussian
from leastnoise._trusted.table import Keyed

_SAMPLERS = {Noise.DISCRETE_LAPLACE: discrete_laplace, Noise.ROUNDED_GAUSSIAN: rounded_gaussian}


@dataclass(frozen=True, slots=True, eq=False)
class FoundKeys:
    """The released keys of a search, with their noisy numbers of units.

    Attributes:
        keys: texts, sorted by their noisy number of units, the largest first. Keys with equal
            numbers are sorted by their texts.
        units: the noisy number of units of each key, an int64 array; each is at least the
            threshold.
    """

    keys: tuple[str, ...]
    units: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySearch:
    """A search for the keys of an attribute that enough units have.

    The search is the only step of its series. The budget of the series has a delta.

    Args:
        attribute: name of the attribute whose keys are to be found.
        rule: the noise, its scale, and the threshold.
        most: the largest number of keys to release; the keys with the largest noisy numbers are
            kept.

    Raises:
        InputError: an argument has another class, or ``most`` is below 1.

    >>> KeySearch(
    ...     attribute="agent",
    ...     rule=KeyRule(noise=Noise.DISCRETE_LAPLACE, scale=Fraction(1), threshold=22),
    ...     most=9,
    ... ).most
    9
    """

    attribute: str
    rule: KeyRule
    most: int

    def __post_init__(self) -> None:
        if type(self.attribute) is not str or type(self.rule) is not KeyRule:
            raise refuse(
                "a search for keys",
                f"{type(self.attribute).__name__}, {type(self.rule).__name__}",
                "a name and a KeyRule",
            )
        object.__setattr__(self, "most", whole("most", self.most, 1))

    def verify(self, privacy: Privacy) -> ApproxDP:
        """Return the budget; raise unless the rule of the search satisfies it (U1).

        Args:
            privacy: the budget, unit and neighbours of the series.

        Raises:
            InputError: the rule is not proved to satisfy the budget, or the budget has no delta.
        """
        budget = privacy.budget
        if not isinstance(budget, ApproxDP) or not keys_are_private(self.rule, privacy):
            raise InputError(
                f"The threshold of a search for keys is not proved to satisfy {budget!r}. Plan "
                "the search again; nothing was spent."
            )
        return budget

    def draw(self, keyed: Keyed, privacy: Privacy, entropy: Entropy) -> FoundKeys:
        """Return the keys whose noisy number of units reaches the threshold.

        Every key that occurs gets its own draw of noise, and a unit has at most ``max_rows`` keys
        (U0). The result depends only on the noisy numbers (U2).

        Args:
            keyed: the private keys, with the number of units of each.
            privacy: the budget, unit and neighbours of the series.
            entropy: the source of the noise.

        Raises:
            InputError: `verify` refuses the rule; nothing was drawn.
        """
        self.verify(privacy)
        scale = self.rule.scale
        number = len(keyed.keys)
        noise = _SAMPLERS[self.rule.noise](scale.numerator, scale.denominator, number, entropy)
        noisy = keyed.units + noise
        reached = [
            (-units, keyed.keys[index])
            for index, units in enumerate(noisy.tolist())
            if units >= self.rule.threshold
        ]
        largest = sorted(reached)[: self.most]
        return FoundKeys(
            tuple(key for _, key in largest),
            np.array([-units for units, _ in largest], dtype=np.int64),
        )
