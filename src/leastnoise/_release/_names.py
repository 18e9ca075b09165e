"""What tables and statistics are called on a page, in its language, and of which rows their answers are.

In files and commands they have one name in every language. A limit on the rows of a unit cuts rows: how many is told by the noisy counts
of the guard.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from leastnoise._accounting import Noise, Privacy
from leastnoise._accuracy import interval_multiplier
from leastnoise._release._texts import Texts
from leastnoise._workload import Product, Statistic

MANY = 0.1
"""Readers are told first of rows that are missing if these are more than this share of all."""
_WIDEST = 0.5  # an interval longer than this tells nothing


def table_words(product: Product, said: Texts) -> str:
    """The name of a table."""
    table = replace(product, measure=None).name if product.attributes else said.say("name_total")
    if product.measure is None:
        return table
    made = said.say("name_sum", measure=product.measure) if product.of_values else _counted(product, said, "name")
    return said.say("name_by", name=made, groups=table) if product.attributes else made


def measured_words(product: Product, said: Texts) -> str:
    """What a table counts or sums."""
    return str(product.measure) if product.of_values else _counted(product, said, "unit")


def _counted(product: Product, said: Texts, key: str) -> str:
    """What a table counts: rows, units, or values of a measure."""
    if product.values_of is not None:
        return said.say(f"{key}_values", measure=product.values_of)
    return said.say("name_units" if product.of_units else "unit_rows")


def statistic_words(statistic: Statistic, said: Texts) -> str:
    """The name of a mean, of quantiles or of a distribution function."""
    made = said.say(f"name_{statistic.kind}", of=statistic.of)
    return said.say("name_by", name=made, groups=statistic.groups_name) if statistic.by else made


@dataclass(frozen=True, slots=True)
class Share:
    """The share of rows that were cut, of all that have a unit; between the two ends with the confidence of the release's intervals."""

    share: float
    low: float
    high: float


def cut_share(receipt: Mapping[str, Any], level: float) -> Share | None:
    """The share of rows that a limit on the rows of a unit cut, as far as a guard counted them; None where its noise hides it.

    Of C rows cut and K kept, both with independent noise of standard errors s and t, |C - r K| <= z sqrt(s^2 + r^2 t^2) holds for the true
    r = cut / kept at the level. The interval has all r for which it does (Fieller 1954), and cut / (cut + kept) is r / (1 + r).
    """
    if "guard_cut" not in receipt:
        return None
    cut, kept, s, t = (float(receipt[f"guard_{name}"]) for name in ("cut", "kept", "cut_std", "noise_std"))
    cut = max(0.0, cut)  # around 0 an interval has all numbers of at least 0 that one around less has, and never ends at 0
    times = interval_multiplier(Noise.DISCRETE_LAPLACE, level)
    s, t = times * s, times * math.sqrt(2) * t
    square = kept**2 - t**2
    if kept <= 0 or square <= 0:
        return None
    root = math.sqrt((kept * s) ** 2 + (cut * t) ** 2 - (s * t) ** 2)
    share, low, high = (
        max(0.0, ratio) / (1 + max(0.0, ratio)) for ratio in (cut / kept, (cut * kept - root) / square, (cut * kept + root) / square)
    )
    return Share(share, low, high) if high - low <= _WIDEST else None


def limit_words(privacy: Privacy, receipt: Mapping[str, Any], level: float, said: Texts) -> str:
    """Of which rows the answers are, short: of at most so many of a unit, and about how many were cut; empty where each row is a unit."""
    if privacy.unit_column is None:
        return ""
    share, limit = cut_share(receipt, level), said.some("of", privacy.max_rows, column=repr(privacy.unit_column))
    return limit if share is None else said.say("of_share", of=limit, share=said.percent(round(share.share, 2)))


def unit_words(unit: str, privacy: Privacy | None, said: Texts) -> str:
    """What a table counts or sums, and of how many rows of a unit at most."""
    if privacy is None or privacy.unit_column is None:
        return unit
    return said.some("unit_of", privacy.max_rows, unit=unit, column=privacy.unit_column)


def cells_save(noise: Noise) -> bool:
    """Whether a limit on a unit's rows in a cell makes tables cheaper: under Laplace noise all its rows count, wherever they are."""
    return noise.norm == 2
