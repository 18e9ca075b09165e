"""The guard of a release: rows cut, kept and used, counted with noise and paid before the rest, and a stop where fewer than half are used.

The stop, and how often it is wrong. With u rows used and v rows not, the guard sees U = u + N and V = v + M, where N and M are independent
draws of the same noise, and stops if V - U > q. If at least half of the rows are used, v <= u, and it stops only if M - N > q; so q is
chosen with P(M - N > q) <= ``WRONG``, whatever the rows, their number and the budget:

- discrete Laplace noise of scale b, with p = exp(-1/b): M - N is a difference of two such, and for m >= 1
  P(M - N >= m) = p^m / (1 + p)^2 * (m (1 - p) + (1 + p^2) / (1 + p) + p);
- discrete Gaussian noise of scale s: its moments are at most those of the continuous one (Canonne, Kamath and Steinke 2020, corollary 17),
  so E exp(t (M - N)) <= exp(t^2 s^2), and P(M - N >= m) <= exp(-m^2 / (4 s^2)).
"""

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from leastnoise._accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._adapters import CUT, MOST_CUT, ROWS, USAGE
from leastnoise._check import GuardError
from leastnoise._fitting import fit
from leastnoise._frames import several
from leastnoise._kernel import Ledger, Series, Terms
from leastnoise._linop import Identity
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._planning import protected
from leastnoise._session._payments import GUARD, paying, receipt_of

WRONG = 1 / 2000
"""The most chance of a stop where at least half of the rows are used; below 1 in 1000, with room for the doubles it is computed in."""
_ROOM = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """What a guard found, public because it was paid for: about how many rows are used, kept and cut, with standard errors."""

    share: str
    charge: str
    number: int
    used: int
    kept: int
    noise_std: float
    cut: int | None = None
    cut_std: float | None = None

    def facts(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def guard_measurements(privacy: Privacy, share: Fraction) -> Measurements:
    """What a guard measures: rows used and rows not, by themselves; and, where some are cut, how many, for half of the price.

    Guarantees: all rows of a unit may be in one of the two cells; a bound on its rows in cells of the plan's domain says nothing of these.
        A kept row stands for at most ``MOST_CUT`` that were cut, so that the cost is that of a sum.
    """
    budget, part = privacy.budget, share / (1 - share)
    pure = not isinstance(budget, ZCDP)
    promise = protected(privacy).within(PureDP(budget.epsilon * part) if not isinstance(budget, ZCDP) else ZCDP(budget.rho * part))
    noise = Noise.DISCRETE_LAPLACE if pure else Noise.DISCRETE_GAUSSIAN
    blocks = [(Block((Factor((ROWS,), Identity(2)),), Fraction(1)), 1.0)]
    blocks += [] if privacy.unit_column is None else [(Block((), Fraction(1), CUT), 1 / MOST_CUT)]
    return fit(USAGE, promise, noise, blocks)


def most_by_chance(noise: Noise, scale: float) -> int:
    """The least q with P(M - N > q) <= ``WRONG``; see above."""
    if noise is Noise.DISCRETE_GAUSSIAN:
        return math.floor(2 * scale * math.sqrt(-math.log(WRONG))) + 1
    low, high = 0, math.ceil(20 * scale) + 20
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if laplace_tail(middle + 1, scale) <= WRONG else (middle + 1, high)
    return low


def laplace_tail(least: int, scale: float) -> float:
    """P(M - N >= least) of two draws of discrete Laplace noise, for least of 1 and more."""
    p, rest = math.exp(-1 / scale), -math.expm1(-1 / scale)
    return math.exp(-least / scale) / (1 + p) ** 2 * (least * rest + (1 + p * p) / (1 + p) + p)


def guard_terms(measured: Measurements) -> Terms:
    """What a guard may do, and costs."""
    return Terms(domain=USAGE, privacy=measured.privacy, attributes=(ROWS,), measures=(CUT,), only=measured)


def guarded(book: Ledger, table: Any, privacy: Privacy, share: Fraction) -> Guarded:
    """Pay for the guard, count, and stop if too few rows are used."""
    measured = guard_measurements(privacy, share)
    with paying(book, _ROOM) as run:
        series = Series.paid(guard_terms(measured), table.usage, book, output=GUARD, description="guard: rows read and used", run=run)
        values = _values(series, measured)
        receipt = receipt_of(series)
        book.seal(receipt)
    return judged(measured, share, values, str(receipt.charge), receipt.number)


def rehearsed(series: Series, measured: Measurements, share: Fraction) -> Guarded:
    """The guard of a run that is not private."""
    return judged(measured, share, _values(series, measured), "nothing", 0)


def _values(series: Series, measured: Measurements) -> tuple[int, ...]:
    return tuple(int(value) // measured.grid for block in series.measure(measured).values for value in block)


def judged(measured: Measurements, share: Fraction, values: tuple[int, ...], charge: str, number: int) -> Guarded:
    """Say what was found, or stop."""
    scale = float(measured.blocks[0].scale)
    std, *of_cut = (float(block.scale) * (1 if measured.noise is Noise.DISCRETE_GAUSSIAN else math.sqrt(2)) for block in measured.blocks)
    used, unused, *cut = values
    counts = Guarded(share=str(share), charge=charge, number=number, used=used, kept=used + unused, noise_std=std)
    counts = replace(counts, cut=cut[0], cut_std=of_cut[0]) if cut else counts
    if unused - used > most_by_chance(measured.noise, scale):
        rows = f"{several(max(counts.kept, 0), 'row')}{' that count for their unit' * bool(cut)}"
        spent, again = "Nothing was spent", "and release again"
        if number:
            spent = f"Only the guard was paid, {charge}: {share} of the budget. The rest is left"
            again = "and release again, with a budget of at most what the ledger has left"
        raise GuardError(
            f"The guard stopped this release: of about {rows} about {max(used, 0):,} are used (each with a standard "
            f"error of about {std:,.0f}), with confidence fewer than half. {spent}. `leastnoise check` shows the data holder why; mend "
            f"the spec, {again}."
        )
    return counts
