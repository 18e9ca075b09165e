"""Of which rows the answers of a release are: how many a limit on the rows of a unit cut, by the guard's noisy counts, in sentences."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leastnoise._accounting import Noise, Privacy
from leastnoise._accuracy import interval_multiplier
from leastnoise._release._texts import ENGLISH, Texts

if TYPE_CHECKING:
    from leastnoise._release._release import Release

MANY = 0.1
"""Readers are told first of rows that are missing if these are more than this share of all."""
_TOLD = 0.5  # an interval longer than this tells nothing


@dataclass(frozen=True, slots=True)
class Share:
    """The share of rows that were cut, of all that have a unit; between the two ends with the confidence of the release's intervals."""

    share: float
    low: float
    high: float


def cut_share(release: "Release") -> Share | None:
    """The share of rows that a limit on the rows of a unit cut, as far as a guard counted them; None where its noise hides it.

    Of C rows cut and K kept, both with independent noise of standard errors s and t, |C - r K| <= z sqrt(s^2 + r^2 t^2) holds for the true
    r = cut / kept at the level. The interval has all r for which it does (Fieller 1954), and cut / (cut + kept) is r / (1 + r).
    """
    if "guard_cut" not in release.receipt:
        return None
    cut, kept, s, t = (float(release.receipt[f"guard_{name}"]) for name in ("cut", "kept", "cut_std", "noise_std"))
    times = interval_multiplier(Noise.DISCRETE_LAPLACE, release.level)
    s, t = times * s, times * math.sqrt(2) * t
    square = kept**2 - t**2
    if kept <= 0 or square <= 0:
        return None
    root = math.sqrt((kept * s) ** 2 + (cut * t) ** 2 - (s * t) ** 2)
    share, low, high = (
        max(0.0, ratio) / (1 + max(0.0, ratio)) for ratio in (cut / kept, (cut * kept - root) / square, (cut * kept + root) / square)
    )
    return Share(share, low, high) if high - low <= _TOLD else None


def of_words(release: "Release", said: Texts = ENGLISH) -> str:
    """Of which rows the answers are, short: of at most so many of a unit, and about how many were cut; empty where each row is a unit."""
    privacy = release.privacy
    if privacy.unit_column is None:
        return ""
    found, of = cut_share(release), said.some("of", privacy.max_rows, column=repr(privacy.unit_column))
    return of if found is None else said.say("of_share", of=of, share=_percent(found.share, said))


def unit_words(unit: str, privacy: Privacy | None, said: Texts) -> str:
    """What a table counts or sums, and of how many rows of a unit at most."""
    if privacy is None or privacy.unit_column is None:
        return unit
    return said.some("unit_of", privacy.max_rows, unit=unit, column=privacy.unit_column)


def cut_words(release: "Release", said: Texts = ENGLISH) -> str | None:
    """What a limit on the rows of a unit does to all answers, and about how many rows it cut; None if there is none."""
    privacy, found = release.privacy, cut_share(release)
    if privacy.unit_column is None:
        return None
    words = [said.some("cut", privacy.max_rows, column=repr(privacy.unit_column))]
    if found is not None:
        share, low, high = (_percent(value, said) for value in (found.share, found.low, found.high))
        words.append(said.say("cut_share", share=share, low=low, high=high))
    else:
        words.append(said.say("cut_hidden" if "guard_cut" in release.receipt else "cut_unpublished"))
    bound = privacy.max_per_cell
    if bound is not None:
        words.append(said.some("cut_cell", bound.rows, names=said.listed([*bound.attributes])))
        words += [said.say("cut_cell_saves")] if cells_save(release.measurements.noise) else []
    return " ".join(words)


def cells_save(noise: Noise) -> bool:
    """Whether a limit on a unit's rows in a cell makes tables cheaper: under Laplace noise all its rows count, wherever they are."""
    return noise.norm == 2


def _percent(share: float, said: Texts) -> str:
    return said.percent(round(share, 2))
