"""Estimate from guard counts how many rows and amounts exceed the limits."""

import math
from typing import NamedTuple

from leastnoise._error import interval_multiplier
from leastnoise._release import GuardCounts
from leastnoise._texts import Catalogue, name_unit
from leastnoise._trusted.accounting import Noise, Privacy

_WIDEST_SHARE = 0.5  # a wider interval of a share carries no information


class ShareInterval(NamedTuple):
    """An estimated share, with the ends of its interval."""

    share: float
    low: float
    high: float


def estimate_cut_share(guard: GuardCounts | None, level: float) -> ShareInterval | None:
    """Estimate the share of rows beyond the row limit of units, or None.

    The estimate is computed from the guard's noisy counts; it is None if their noise hides the
    share. Let C be the count of cut rows and K the count of kept rows, with independent noise of
    standard errors s and t. The inequality |C - r K| <= z sqrt(s^2 + r^2 t^2) holds at the level
    for the true ratio r = cut / kept. The interval consists of all r that satisfy this inequality
    (Fieller 1954). The share cut / (cut + kept) equals r / (1 + r).
    """
    if guard is None or guard.cut is None or guard.cut_std is None:
        return None
    return _estimate_share(
        guard.cut, guard.kept, guard.cut_std, math.sqrt(2) * guard.noise_std, level
    )


def estimate_unused_share(guard: GuardCounts | None, level: float) -> ShareInterval | None:
    """Estimate the share of rows that no table uses, or None.

    The computation is as in `estimate_cut_share`. The result is None if there was no guard, or if
    the noise hides the share.
    """
    if guard is None:
        return None
    error = guard.noise_std
    unused_rows = guard.kept - guard.used
    if unused_rows <= guard.used:
        return _estimate_share(unused_rows, guard.used, error, error, level)
    used_share = _estimate_share(guard.used, unused_rows, error, error, level)
    if used_share is None:
        return None
    return ShareInterval(1 - used_share.share, 1 - used_share.high, 1 - used_share.low)


def estimate_cut_amount(
    guard: GuardCounts | None, measure: str, level: float
) -> ShareInterval | None:
    """Estimate the share that the limits cut from a total of units, or None.

    The computation is as in `estimate_cut_share`, but with the guard's noisy amounts. The result is
    None if the guard measured no amounts, or if the noise hides the share.
    """
    for amounts in guard.amounts if guard is not None else ():
        if amounts.measure == measure:
            return _estimate_share(
                amounts.cut, amounts.kept, amounts.cut_std, amounts.kept_std, level
            )
    return None


def _estimate_share(
    cut: float, kept: float, cut_error: float, kept_error: float, level: float
) -> ShareInterval | None:
    """Return the share cut / (cut + kept) with its interval, or None.

    The result is None if noise hides the share.

    Args:
        cut: the noisy amount beyond the limit.
        kept: the noisy amount within the limit.
        cut_error: the standard error of ``cut``.
        kept_error: the standard error of ``kept``.
        level: the coverage probability of the interval.
    """
    # An interval around 0 contains all non-negative numbers of an interval around a negative
    # number, and never ends at 0.
    cut = max(0.0, cut)
    multiplier = interval_multiplier(Noise.DISCRETE_LAPLACE, level)
    cut_error = multiplier * cut_error
    kept_error = multiplier * kept_error
    square = kept**2 - kept_error**2
    if kept <= 0 or square <= 0:
        return None
    root = math.sqrt(
        (kept * cut_error) ** 2 + (cut * kept_error) ** 2 - (cut_error * kept_error) ** 2
    )
    share, low, high = (
        max(0.0, ratio) / (1 + max(0.0, ratio))
        for ratio in (cut / kept, (cut * kept - root) / square, (cut * kept + root) / square)
    )
    if high - low <= _WIDEST_SHARE:
        return ShareInterval(share, low, high)
    return None


def format_row_limit(
    privacy: Privacy, guard: GuardCounts | None, level: float, catalogue: Catalogue
) -> str:
    """Return a phrase on units' row limit and the rows beyond it; "" for rows.

    The phrase is empty if there is no limit.
    """
    if privacy.unit_column is None:
        return ""
    limit = catalogue.say_count("of", privacy.max_rows, **name_unit(privacy, catalogue))
    cut_share = estimate_cut_share(guard, level)
    if cut_share is None or cut_share.share < 0.005:
        return limit
    if cut_share.low == 0:
        high = catalogue.format_percent(round(cut_share.high, 2))
        return catalogue.say("of_share_hidden", of=limit, high=high)
    share = catalogue.format_percent(round(cut_share.share, 2))
    return catalogue.say("of_share", of=limit, share=share)
