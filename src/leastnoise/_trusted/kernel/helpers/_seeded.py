"""Provide noise from a seed, for tests and experiments.

Such noise protects nobody. This file is not trusted: a paid series never uses it, but creates its
own `SystemEntropy`.
"""

from typing import Any

import numpy as np

from leastnoise._trusted.check import InputError, whole
from leastnoise._trusted.kernel._entropy import Words
from leastnoise._trusted.kernel._series import ReleaseContract, UnpaidSeries
from leastnoise._trusted.measurements import Measurements, Observation


class SeededEntropy:
    """A reproducible stream of words, for tests and experiments.

    Anybody who has the seed can subtract the noise.

    Args:
        seed: a whole number of at least 0.

    Raises:
        InputError: the seed is not a whole number of at least 0. There is no default seed.

    >>> source = SeededEntropy(7)
    >>> bool((source.words(4) == SeededEntropy(7).words(4)).all())
    True
    """

    __slots__ = ("_generator", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = whole("seed", seed, 0)
        self._generator = np.random.PCG64DXSM(self._seed)

    def words(self, count: int) -> Words:
        """Return the next words of the stream, uint64 of shape (count,)."""
        return np.asarray(self._generator.random_raw(count), dtype=np.uint64)

    def __repr__(self) -> str:
        return f"SeededEntropy({self._seed})"


def simulate(measurements: Measurements, table: Any, entropy: SeededEntropy) -> Observation:
    """Return noisy answers with noise from a seed, for tests only.

    Nothing is paid, because nothing is private.

    Args:
        measurements: the queries and their noise.
        table: a `Table` of encoded rows that are not secret.
        entropy: a seeded source.

    Returns:
        An observation marked as not private, without a receipt.

    Raises:
        InputError: the source is not seeded (use a paid series), or the table has another domain or
            unit.

    >>> simulate(None, None, SystemEntropy())
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: simulate is for seeded noise, which
    protects nobody; got another source. ...
    """
    if type(entropy) is not SeededEntropy:
        raise InputError(
            "simulate is for seeded noise, which protects nobody; got another source. Use a paid "
            "series, with a ledger."
        )
    contract = ReleaseContract(
        domain=measurements.domain, privacy=measurements.privacy, declared_step=measurements
    )
    return UnpaidSeries(contract, table, entropy).measure(measurements)
