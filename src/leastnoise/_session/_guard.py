"""The guard of a release: rows cut, kept and used, counted with noise and paid before the rest, and a stop where fewer than half are used.

The stop, and how often it is wrong. With u rows used and v rows not, the guard sees U = u + N and V
= v + M, where N and M are independent draws of the same noise, and stops if V - U > q. If at least
half of the rows are used, v <= u, and it stops only if M - N > q; so q is chosen with P(M - N > q)
<= ``WRONG``, whatever the rows, their number and the budget:

- discrete Laplace noise of scale b, with p = exp(-1/b): M - N is a difference of two such, and for
  m >= 1 P(M - N >= m) = p^m / (1 + p)^2 * (m (1 - p) + (1 + p^2) / (1 + p) + p);
- discrete Gaussian noise of scale s: its moments are at most those of the continuous one (Canonne,
  Kamath and Steinke 2020, corollary 17), so E exp(t (M - N)) <= exp(t^2 s^2), and P(M - N >= m) <=
  exp(-m^2 / (4 s^2)).
"""

import json
import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from leastnoise._accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._adapters import CUT, MOST_CUT, ROWS, USAGE
from leastnoise._check import GuardError, LedgerError
from leastnoise._fitting import fit
from leastnoise._frames import several
from leastnoise._kernel import Entry, Ledger, Receipt, Series, Terms
from leastnoise._linop import Identity
from leastnoise._measurements import Block, Factor, Measurements, Observation
from leastnoise._plan import Plan
from leastnoise._planning import protected
from leastnoise._session._payments import GUARD, paying, receipt_of

WRONG = 1 / 2000
"""The most chance of a stop where at least half of the rows are used; below 1 in 1000, with room for the doubles it is computed in."""
_ROOM = 2**16


def guard_measurements(privacy: Privacy, share: Fraction) -> Measurements:
    """Return what a guard measures: rows used and rows not used; with a unit also rows cut, for half of the price.

    Guarantees: all rows of a unit may be in one of the two cells; a bound on its rows in cells of
        the plan's domain says nothing of these. A kept row stands for at most ``MOST_CUT`` that
        were cut, so that the cost is that of a sum.
    """
    budget, part = privacy.budget, share / (1 - share)
    paid, noise = (
        (ZCDP(budget.rho * part), Noise.DISCRETE_GAUSSIAN)
        if isinstance(budget, ZCDP)
        else (PureDP(budget.epsilon * part), Noise.DISCRETE_LAPLACE)
    )
    blocks = [(Block((Factor((ROWS,), Identity(2)),), Fraction(1)), 1.0)]
    blocks += [] if privacy.unit_column is None else [(Block((), Fraction(1), CUT), 1 / MOST_CUT)]
    return fit(USAGE, protected(privacy).within(paid), noise, blocks)


def most_by_chance(noise: Noise, scale: float) -> int:
    """Return the least q with P(M - N > q) <= ``WRONG``, as the head of this file has it."""
    if noise is Noise.DISCRETE_GAUSSIAN:
        return math.floor(2 * scale * math.sqrt(-math.log(WRONG))) + 1
    low, high = 0, math.ceil(20 * scale) + 20
    while low < high:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if laplace_tail(middle + 1, scale) <= WRONG else (middle + 1, high)
        )
    return low


def laplace_tail(least: int, scale: float) -> float:
    """Return P(M - N >= least) for two draws of discrete Laplace noise and least >= 1."""
    p, rest = math.exp(-1 / scale), -math.expm1(-1 / scale)
    return math.exp(-least / scale) / (1 + p) ** 2 * (least * rest + (1 + p * p) / (1 + p) + p)


def guard_terms(measured: Measurements, text: str = "") -> Terms:
    """Return the terms of a guard's series; ``text`` names the plan that it guards."""
    return Terms(
        domain=USAGE,
        privacy=measured.privacy,
        attributes=(ROWS,),
        measures=(CUT,),
        only=measured,
        text=text,
    )


@dataclass(frozen=True, slots=True)
class PaidGuard:
    """A guard that was paid for and let the release pass.

    Attributes:
        facts: what it counted, from `judged`.
        receipt: of its payment.
    """

    facts: dict[str, Any]
    receipt: Receipt

    def seal(self, book: Ledger) -> None:
        """Record that the release that it guards was paid, so that no later one takes its counts."""
        with suppress(LedgerError):  # another process has taken them, and seals it
            book.seal(self.receipt)


def waiting_guard(book: Ledger, plan: Plan, share: Fraction | None) -> Entry | None:
    """Return the guard of a plan that was paid by a run that was stopped before it paid the plan.

    Args:
        book: the ledger.
        plan: that is to be released.
        share: of the budget that its guard costs; None without one.
    """
    if share is None:
        return None
    digest = guard_terms(guard_measurements(plan.privacy, share), _guard_text(plan, share)).digest()
    for entry in book.entries():
        same = entry.output == GUARD and entry.plan_digest == digest
        if same and entry.resumable and not book.is_running(entry) and book.pending(entry).steps:
            return entry
    return None


def _guard_text(plan: Plan, share: Fraction) -> str:
    return json.dumps({"guard": str(share), "of": plan.digest()})


def guarded(book: Ledger, table: Any, plan: Plan, share: Fraction) -> PaidGuard:
    """Pay for the guard and count; or take what the guard of this plan counted in a stopped run.

    Args:
        book: the ledger that pays.
        table: the encoded rows, with their usage.
        plan: that is to be released.
        share: of the budget of guard and plan together.

    Raises:
        GuardError: with confidence fewer than half of the rows are used.
    """
    measured = guard_measurements(plan.privacy, share)
    terms, waiting = (
        guard_terms(measured, _guard_text(plan, share)),
        waiting_guard(book, plan, share),
    )
    with paying(book, _ROOM) as run:
        if waiting is None:
            description = "guard: rows read and used"
            series = Series.paid(
                terms, table.usage, book, output=GUARD, description=description, run=run
            )
        else:
            series = Series.resumed(terms, None, book, book.take_over(waiting, run))
        observation, receipt = series.measure(measured), receipt_of(series)
    try:
        facts = judged(measured, share, observation, str(receipt.charge), receipt.number)
    except GuardError:
        book.seal(receipt)
        raise
    return PaidGuard(facts, receipt)


def judged(
    measured: Measurements, share: Fraction, observation: Observation, charge: str, number: int
) -> dict[str, Any]:
    """Return what a guard counted, which is public because it was paid for; or stop the release.

    Args:
        measured: from `guard_measurements`.
        share: of the whole budget.
        observation: of ``measured``.
        charge: what the guard cost.
        number: of its payment in the ledger; 0 if nothing was paid.

    Returns:
        Plain JSON values: share, charge and number, about how many rows are used, kept and, with a
        unit, cut, and their standard errors.

    Raises:
        GuardError: with confidence fewer than half of the rows are used.
    """
    std, *of_cut = (
        float(block.scale) * (1 if measured.noise is Noise.DISCRETE_GAUSSIAN else math.sqrt(2))
        for block in measured.blocks
    )
    used, unused, *cut = (
        int(value) // measured.grid for block in observation.values for value in block
    )
    kept = used + unused
    if unused - used > most_by_chance(measured.noise, float(measured.blocks[0].scale)):
        rows = f"{several(max(kept, 0), 'row')}{' that count for their unit' * bool(cut)}"
        spent, again = "Nothing was spent", "and release again"
        if number:
            spent = f"Only the guard was paid, {charge}: {share} of the budget. The rest is left"
            again = "and release again, with a budget of at most what the ledger has left"
        raise GuardError(
            f"The guard stopped this release: of about {rows} about {max(used, 0):,} are used "
            "(each with a standard "
            f"error of about {std:,.0f}), with confidence fewer than half. {spent}. `leastnoise "
            "check` shows the data holder why; mend "
            f"the spec, {again}."
        )
    facts = {
        "share": str(share),
        "charge": charge,
        "number": number,
        "used": used,
        "kept": kept,
        "noise_std": std,
    }
    return {**facts, **({"cut": cut[0], "cut_std": of_cut[0]} if cut else {})}
