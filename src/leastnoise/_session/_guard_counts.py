"""Count used, unused and dropped rows for a small budget before a release.

A guard stops a release that would use few of the rows, or none. The guard decides by its noisy
counts and public numbers only, so its decision is post-processing.

The guard stops a release in four cases, and stops a correct release with a probability of at most
2 ``WRONG`` + ``WRONG_COLUMN``. docs/mathematics.md, section 13, states the rules and proves this.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from statistics import NormalDist
from typing import Any

from leastnoise._domain import UnitTotal
from leastnoise._fitting import fit_noise_scales
from leastnoise._frames import pluralize
from leastnoise._log import LOGGER
from leastnoise._plan import Plan, SearchPlan, checked_guard_share, guard_budget
from leastnoise._planning import without_cell_bound
from leastnoise._release import AmountsOfTotal, GuardCounts, Options
from leastnoise._session._payments import GUARD, payment_run, require_receipt
from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    Budget,
    Noise,
    Privacy,
    left_text,
    parameters_by_name,
)
from leastnoise._trusted.check import GuardError, LedgerError, readable
from leastnoise._trusted.kernel import Entry, Ledger, Receipt, ReleaseContract, Series
from leastnoise._trusted.linop import Identity
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._trusted.reading import (
    ATTRIBUTE,
    CUT,
    LACKING,
    MOST_CUT,
    ROWS,
    cut_amount,
    cut_limit,
    kept_amount,
    usage_domain,
)

WRONG = 1 / 2000
"""Largest chance of a wrong stop for one reason, with room for errors of rounding in doubles."""
WRONG_COLUMN = 1 / 500
"""Largest chance of a wrong stop because of a column.

It holds if three quarters of the used rows have a value in the column.
"""
MISSED = 1 / 200
"""Largest chance that a source without a row passes."""
NEARLY_NONE = 1 / 10
"""Share of the rows with a value below which a column counts as missing in nearly all of them."""
_LEDGER_BYTES = 2**16  # for the few numbers of a guard


def unit_total_measures(plan: Plan | SearchPlan) -> dict[str, UnitTotal]:
    """Return the `UnitTotal` measures of a plan, by name; a search has none."""
    if not isinstance(plan, Plan):
        return {}
    measures = {name: plan.domain.measure(name) for name in plan.used()[1]}
    return {name: total for name, total in measures.items() if isinstance(total, UnitTotal)}


def optional_attributes(plan: Plan) -> tuple[str, ...]:
    """Return the attributes in which a used row may lack a value.

    These are attributes that not all tables use. Some of them may be in no table, because they only
    define the cells in which the amounts of a `UnitTotal` are clipped.

    >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9))
    >>> optional_attributes(ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1)))
    ('sex', 'age')
    """
    return tuple(name for name in plan.used()[0] if plan.domain.kind(name).hidden)


def guard_measurements(
    privacy: Privacy,
    guard_share: Fraction,
    attribute_count: int = 0,
    totals: Mapping[str, UnitTotal] | None = None,
) -> Measurements:
    """Return a guard's measurements, which count used and unused rows.

    If there is a unit column, the rows dropped by ``max_rows`` are also counted. If there are
    `optional_attributes`, the rows without a value in them are also counted. For each `UnitTotal`,
    the kept amount and the cut amount are measured. Each of these measurements costs as much as the
    counts of used and unused rows together.

    Args:
        privacy: the privacy of the plan.
        guard_share: the guard's share of the total budget of guard and plan.
        attribute_count: the number of `optional_attributes` of the plan.
        totals: the `unit_total_measures` of the plan.

    Guarantees: the cost covers both extreme cases: all rows of a unit are used, or all are unused.
        The cost also covers the case that all rows of a unit are drawn for the same attribute. A
        bound on the unit's rows in cells of the plan's domain does not apply to the cells that a
        guard counts. A kept row represents at most ``MOST_CUT`` dropped rows, and a cell with a
        total of a unit represents at most `cut_limit`. The cost is therefore computed like the cost
        of sums.
    """
    budget = guard_budget(privacy.budget, guard_share)
    noise = Noise.DISCRETE_LAPLACE
    if isinstance(budget, ZCDP):
        noise = Noise.DISCRETE_GAUSSIAN
    blocks = [(Block((Factor((ROWS,), Identity(2)),), Fraction(1)), 1.0)]
    if privacy.unit_column is not None:
        blocks.append((Block((), Fraction(1), CUT), 1 / MOST_CUT))
    if attribute_count:
        by_column = Factor((ATTRIBUTE,), Identity(attribute_count))
        blocks.append((Block((by_column,), Fraction(1), LACKING), 1.0))
    for name, total in (totals or {}).items():
        amounts = ((kept_amount(name), total.largest), (cut_amount(name), cut_limit(total.largest)))
        blocks += [(Block((), Fraction(1), measure), 1 / largest) for measure, largest in amounts]
    return fit_noise_scales(
        usage_domain(attribute_count, totals),
        without_cell_bound(privacy).within(budget),
        noise,
        blocks,
    )


def noise_difference_bound(noise: Noise, scale: float) -> int:
    """Return q with P(M - N > q) <= ``WRONG`` for two noise draws M and N.

    M and N are independent, and q is an integer. For discrete Laplace noise, q is the smallest
    integer with this property.
    """
    if noise is Noise.DISCRETE_GAUSSIAN:
        return math.floor(2 * scale * math.sqrt(-math.log(WRONG))) + 1
    low = 0
    high = math.ceil(20 * scale) + 20
    while low < high:
        middle = (low + high) // 2
        if laplace_difference_tail(middle + 1, scale) <= WRONG:
            high = middle
        else:
            low = middle + 1
    return low


def single_draw_bound(noise: Noise, scale: float, probability: float) -> int:
    """Return t with P(N > t) = P(N < -t) <= ``probability`` for a noise draw N.

    >>> single_draw_bound(Noise.DISCRETE_LAPLACE, 100.0, MISSED)
    461
    """
    if noise is Noise.DISCRETE_GAUSSIAN:
        return math.ceil(scale * NormalDist().inv_cdf(1 - probability))
    p = math.exp(-1 / scale)
    return max(0, math.ceil(-scale * math.log(probability * (1 + p))) - 1)


def laplace_difference_tail(threshold: int, scale: float) -> float:
    """Return P(M - N >= threshold) for two discrete Laplace draws M and N.

    ``threshold`` must be at least 1.
    """
    p = math.exp(-1 / scale)
    complement = -math.expm1(-1 / scale)
    return (
        math.exp(-threshold / scale)
        / (1 + p) ** 2
        * (threshold * complement + (1 + p * p) / (1 + p) + p)
    )


def guard_contract(measured: Measurements, plan_text: str = "") -> ReleaseContract:
    """Return the contract that limits the paid steps of a guard.

    ``plan_text`` identifies the plan in the ledger.
    """
    return ReleaseContract(
        domain=measured.domain,
        privacy=measured.privacy,
        attributes=measured.domain.names,
        measures=tuple(measured.domain.measures),
        declared_step=measured,
        plan_text=plan_text,
    )


@dataclass(frozen=True, slots=True)
class PaidGuard:
    """A guard that was paid for and did not stop the release.

    Attributes:
        counts: the result of `check_guard_counts`.
        receipt: the receipt of the payment.
    """

    counts: GuardCounts
    receipt: Receipt

    @property
    def payment_sentence(self) -> str:
        """A sentence about the guard's payment, for error messages."""
        return (
            f"Its guard was paid ({self.receipt.charge}); the same release again uses its counts."
        )

    def seal(self, ledger: Ledger) -> None:
        """Seal the ledger entry of the guard, after its release is paid.

        After the guard is sealed, no later release can use its counts.
        """
        with suppress(LedgerError):  # another process has taken them, and seals it
            ledger.seal(self.receipt)


def find_waiting_guard(ledger: Ledger, plan: Plan, guard_share: Fraction | None) -> Entry | None:
    """Return the ledger entry of a paid but unused guard of this plan, or None.

    A guard is paid but unused if its run was stopped before it paid for the plan. A guard that was
    paid in an earlier period of the budget is ignored, because it counted that period's rows.

    Args:
        ledger: the ledger.
        plan: the plan to be released.
        guard_share: the share of the budget that the guard costs; None without a guard.
    """
    if guard_share is None:
        return None
    columns = optional_attributes(plan)
    measured = guard_measurements(
        plan.privacy, guard_share, len(columns), unit_total_measures(plan)
    )
    digest = guard_contract(measured, _guard_text(plan, guard_share)).digest()
    for entry in ledger.entries():
        same = entry.output == GUARD and entry.plan_digest == digest
        if (
            same
            and entry.resumable
            and not ledger.is_running(entry)
            and ledger.pending(entry).steps
            and not ledger.period_is_over(entry)
        ):
            return entry
    return None


def _guard_text(plan: Plan, guard_share: Fraction) -> str:
    """Return the JSON text that identifies the guard of a plan."""
    return json.dumps({"guard": str(guard_share), "of": plan.digest()})


def pay_for_guard(
    ledger: Ledger, table: Any, plan: Plan, guard_share: Fraction, public_rows: int | None = None
) -> PaidGuard:
    """Pay for a guard and check its counts, or use the guard of a stopped run.

    Args:
        ledger: the ledger that pays.
        table: the encoded rows, with a table of their usage.
        plan: the plan to be released.
        guard_share: the guard's share of the total budget of guard and plan.
        public_rows: the number of rows of the source, if it is public.

    Raises:
        GuardError: the guard stops the release. `check_guard_counts` lists the reasons.
    """
    columns = optional_attributes(plan)
    totals = unit_total_measures(plan)
    measured = guard_measurements(plan.privacy, guard_share, len(columns), totals)
    contract = guard_contract(measured, _guard_text(plan, guard_share))
    waiting_entry = find_waiting_guard(ledger, plan, guard_share)
    with payment_run(ledger, _LEDGER_BYTES) as run:
        if waiting_entry is None:
            description = "guard: rows read and used"
            series = Series.paid(
                contract, table.usage, ledger, output=GUARD, description=description, run=run
            )
        else:
            series = Series.resumed(contract, None, ledger, ledger.take_over(waiting_entry, run))
        observation = series.measure(measured)
        receipt = require_receipt(series)
    payment = GuardPayment(
        guard_share,
        str(receipt.charge),
        receipt.number,
        left_text(ledger.privacy.budget, ledger.left()),
    )
    try:
        guard = check_guard_counts(measured, observation, payment, plan, public_rows)
    except GuardError:
        ledger.seal(receipt)
        LOGGER.warning("guard stopped the release; paid %s", receipt.charge)
        raise
    LOGGER.info(
        "guard: about %s rows used (standard deviation %.3g); paid %s, release %d",
        guard.used,
        guard.noise_std,
        receipt.charge,
        receipt.number,
    )
    return PaidGuard(guard, receipt)


@dataclass(frozen=True, slots=True)
class GuardPayment:
    """The payment of a guard, for messages and for the manifest.

    Attributes:
        share: the guard's share of the whole budget.
        charge: the amount that was paid, as text.
        number: the number of the guard's payment in the ledger; 0 if nothing was paid.
        left: the remaining amount in the ledger, as text.
    """

    share: Fraction
    charge: str
    number: int = 0
    left: str = ""


def check_guard_counts(
    measured: Measurements,
    observation: Observation,
    payment: GuardPayment,
    plan: Plan,
    public_rows: int | None = None,
) -> GuardCounts:
    """Return a guard's counts for the manifest; raise if they stop a release.

    The counts are noisy and paid for, so they are public.

    Args:
        measured: the result of `guard_measurements`.
        observation: the observation of ``measured``.
        payment: the payment of the guard.
        plan: the plan to be released.
        public_rows: the number of rows of the source, if it is public.

    Raises:
        GuardError: with high probability, one of four conditions is true: fewer than half of the
            rows are used; no row is used; the source has fewer than half of its public number of
            rows; or nearly no used row has a value in one of the `optional_attributes`.
    """
    stds: dict[str | None, float] = {}
    counts: dict[str | None, list[int]] = {}
    for block, values in zip(measured.blocks, observation.values, strict=True):
        unit_std = 1 if measured.noise is Noise.DISCRETE_GAUSSIAN else math.sqrt(2)
        stds[block.measure] = float(block.scale) * unit_std
        counts[block.measure] = [int(value) // measured.grid for value in values]
    std = stds[None]
    used_rows, unused_rows = counts[None]
    all_rows = used_rows + unused_rows
    reason = _reason_to_stop(measured, used_rows, unused_rows, std, public_rows)
    if not reason:
        reason = _reason_to_stop_for_missing_values(
            measured, used_rows, counts.get(LACKING, []), plan
        )
    if reason:
        raise GuardError(f"The guard stopped this release: {reason} {_guard_advice(payment)}")
    return GuardCounts(
        share=str(payment.share),
        charge=payment.charge,
        number=payment.number,
        used=used_rows,
        kept=all_rows,
        noise_std=std,
        cut=counts[CUT][0] if CUT in counts else None,
        cut_std=stds.get(CUT),
        amounts=_unit_total_amounts(counts, stds, unit_total_measures(plan)),
    )


def _unit_total_amounts(
    counts: Mapping[str | None, Sequence[int]],
    stds: Mapping[str | None, float],
    unit_totals: Mapping[str, UnitTotal],
) -> tuple[AmountsOfTotal, ...]:
    """Return the kept and the cut amount of each `UnitTotal`, and their errors."""
    amounts = []
    for name, total in unit_totals.items():
        kept_column = kept_amount(name)
        cut_column = cut_amount(name)
        unit = float(total.unit)
        amounts.append(
            AmountsOfTotal(
                measure=name,
                kept=counts[kept_column][0] * unit,
                cut=counts[cut_column][0] * unit,
                kept_std=stds[kept_column] * unit,
                cut_std=stds[cut_column] * unit,
            )
        )
    return tuple(amounts)


def _reason_to_stop(
    measured: Measurements,
    used_rows: int,
    unused_rows: int,
    count_std: float,
    public_rows: int | None,
) -> str:
    """Return why the counts of rows stop a release, or "" if they do not."""
    noise = measured.noise
    scale = float(measured.blocks[0].scale)
    bound = noise_difference_bound(noise, scale)
    all_rows = used_rows + unused_rows
    has_units = measured.privacy.unit_column is not None
    rows = pluralize(max(all_rows, 0), "row")
    if has_units:
        rows += " that count for their unit"
    counts_text = f"of about {rows} about {max(used_rows, 0):,} are used"
    error_text = f"(each with a standard error of about {count_std:,.0f})"
    if unused_rows - used_rows > bound:
        return f"{counts_text} {error_text}: with high confidence, fewer than half."
    if public_rows is not None and not has_units:
        if 2 * (all_rows + bound) < public_rows:
            return (
                f"about {rows} were read {error_text}: with high confidence, fewer than half of "
                f"the {public_rows:,} that [privacy] rows states."
            )
        return ""
    if used_rows <= single_draw_bound(noise, scale, MISSED):
        return (
            f"{counts_text} {error_text}: noise alone could give this count without a used row. "
            "If the data have so few rows, give the guard a larger share, such as 1/10, or none."
        )
    return ""


def _reason_to_stop_for_missing_values(
    measured: Measurements, used_rows: int, lacking_counts: Sequence[int], plan: Plan
) -> str:
    """Return why attributes without values stop a release, or ""."""
    missing = [
        name
        for name, number in zip(optional_attributes(plan), lacking_counts, strict=True)
        if number > missing_column_threshold(measured, used_rows)
    ]
    if not missing:
        return ""
    names_of_tables = set(chain.from_iterable(product.attributes for product in plan.workload))
    empty_tables = [repr(name) for name in missing if name in names_of_tables]
    empty_totals = [repr(name) for name in missing if name not in names_of_tables]
    consequences = []
    if empty_tables:
        consequences.append(f"tables by {', '.join(empty_tables)} would be nearly empty")
    if empty_totals:
        consequences.append(
            "totals of units would be clipped over all rows without a value together, and not by "
            f"{', '.join(empty_totals)}"
        )
    return (
        f"with high confidence, nearly all of about {pluralize(max(used_rows, 0), 'used row')} "
        f"have no value in {', '.join(map(repr, missing))} that the domain keeps, so "
        f"{', and '.join(consequences)}. If so few rows may have one, let the others be a cell "
        'of the attribute (null = "cell" or outside = "other").'
    )


def missing_column_threshold(measured: Measurements, used_rows: int) -> int:
    """Return the difference of counts above which an attribute is missing.

    Args:
        measured: the result of `guard_measurements` for a plan with `optional_attributes`.
        used_rows: the noisy number of used rows.
    """
    scales = {block.measure: float(block.scale) for block in measured.blocks}
    columns = measured.domain.cells(ATTRIBUTE)
    chance = WRONG_COLUMN / (4 * columns)
    error_of_rows = single_draw_bound(measured.noise, scales[None], chance)
    most_rows = max(used_rows + error_of_rows, 0)
    least_rows = max(used_rows - error_of_rows, 0)
    difference_bound = 0.0
    if columns > 1:
        exponent = -math.log(chance)
        difference_bound = exponent / 2 + math.sqrt(
            exponent**2 / 4 + 2 * exponent * most_rows / columns
        )
    error = single_draw_bound(measured.noise, scales[LACKING], chance)
    certain = error + difference_bound - least_rows / (2 * columns)
    missed_error = single_draw_bound(measured.noise, scales[LACKING], MISSED)
    nearly_all = (1 - 2 * NEARLY_NONE) * used_rows / columns - missed_error
    return math.ceil(max(certain, nearly_all))


def rows_to_detect_missing_column(measured: Measurements) -> int:
    """Return how many used rows a guard needs to detect a missing attribute.

    With this number of rows, it detects an attribute without any value with a probability of about
    1 - ``MISSED``.

    >>> rows_to_detect_missing_column(
    ...     guard_measurements(Privacy(PureDP("0.99")), Fraction(1, 100), 2)
    ... )
    4055
    """
    columns = measured.domain.cells(ATTRIBUTE)
    scale = next(float(block.scale) for block in measured.blocks if block.measure == LACKING)
    error = single_draw_bound(measured.noise, scale, MISSED)
    low = 0
    high = 1
    while high / columns - error <= missing_column_threshold(measured, high):
        low = high
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if middle / columns - error <= missing_column_threshold(measured, middle):
            low = middle
        else:
            high = middle
    return high


def _guard_advice(payment: GuardPayment) -> str:
    """Return advice for the user whose release was stopped by its guard."""
    advice = (
        "`leastnoise check` shows the data holder the reason; correct the spec and release again"
    )
    if not payment.number:
        return f"Nothing was spent. {advice}."
    return (
        f"Only the guard was paid, {payment.charge}: {payment.share} of the budget. The rest is "
        f"left. {advice}: the corrected release fits into what the ledger has left "
        f"({payment.left}), without a change of the ledger."
    )


@dataclass(frozen=True, slots=True)
class GuardForecast:
    """The expected cost and accuracy of a guard.

    Attributes:
        share: the guard's share of the whole budget.
        charge: the amount that the guard costs.
        left: the budget that remains for a corrected release if the guard stops one.
        noise_std: the standard error of the counts, in rows.
        most_by_chance: the guard stops a release if it counts at most this number of used rows.
            None if the guard uses the public number of rows instead.
        rows: the public number of rows, if the guard uses it; otherwise None.
        columns: the `optional_attributes` of the plan.
        rows_of_columns: the number of used rows that the guard needs to detect a column of
            ``columns`` that nearly all rows lack; None if ``columns`` is empty.
    """

    share: str
    charge: str
    left: str
    noise_std: float
    most_by_chance: int | None
    rows: int | None
    columns: tuple[str, ...] = ()
    rows_of_columns: int | None = None

    def describe(self) -> str:
        """Return sentences on the cost and the accuracy of the guard."""
        if self.rows is not None:
            nothing = (
                f"counts, with high confidence, fewer than half of the {self.rows:,} existing rows"
            )
        else:
            nothing = (
                f"counts at most {self.most_by_chance:,} used rows, which noise could give "
                "without any row"
            )
        missing = ""
        if self.rows_of_columns is not None:
            missing = (
                f"It also stops it where nearly no row has a value in {', '.join(self.columns)}, "
                f"which not all tables use, if at least about {self.rows_of_columns:,} rows are "
                "used. "
            )
        return (
            f"{self.share} of the budget ({self.charge}) first counts the rows that are used and "
            f"those that are not, with a standard error of about {self.noise_std:,.0f} each. The "
            f"guard stops the release where fewer than half are used, or where it {nothing}. "
            f"{missing}A stop costs only this share: the corrected release has the remaining "
            f"budget ({self.left}), in the same ledger."
        )


def forecast_guard(
    privacy: Privacy,
    guard_share: Fraction,
    public_rows: int | None = None,
    columns: tuple[str, ...] = (),
    totals: Mapping[str, UnitTotal] | None = None,
) -> GuardForecast:
    """Compute the cost and the accuracy of a guard before it is paid for.

    Args:
        privacy: the privacy of the plan.
        guard_share: the guard's share of the total budget of guard and plan.
        public_rows: the number of rows of the source, if it is public.
        columns: the `optional_attributes` of the plan.
        totals: the `unit_total_measures` of the plan.

    >>> forecast = forecast_guard(Privacy(PureDP("0.99")), Fraction(1, 100))
    >>> forecast.charge, forecast.left, forecast.most_by_chance
    ('epsilon = 0.01', 'epsilon = 0.99', 461)
    """
    measured = guard_measurements(privacy, guard_share, len(columns), totals)
    scale = float(measured.blocks[0].scale)
    laplace = measured.noise is Noise.DISCRETE_LAPLACE
    if privacy.unit_column is not None:
        rows = None
    else:
        rows = public_rows
    std = scale
    if laplace:
        std = scale * math.sqrt(2)
    largest_noise = None
    if rows is None:
        largest_noise = single_draw_bound(measured.noise, scale, MISSED)
    rows_for_columns = None
    if columns:
        rows_for_columns = rows_to_detect_missing_column(measured)
    return GuardForecast(
        str(guard_share),
        _budget_text(measured.privacy.budget),
        _budget_text(privacy.budget),
        std,
        largest_noise,
        rows,
        columns,
        rows_for_columns,
    )


def _budget_text(budget: Budget) -> str:
    """Format the first parameter of a budget, such as "epsilon = 1"."""
    name, size = next(iter(parameters_by_name(budget).items()))
    return f"{name.replace('_', ' ')} = {readable(size)}"


def guard_warning(plan: Plan, options: Options) -> str | None:
    """Return a warning if a guard is too inaccurate for its rows, otherwise None."""
    share = checked_guard_share(options.guard)
    rows = options.rows
    if share is None or rows is None or plan.privacy.unit_column is not None:
        return None
    needed = sufficient_guard_share(plan.privacy, share, rows, len(optional_attributes(plan)))
    if needed is None:
        return None
    if needed <= Fraction(1, 2):
        advice = f'Say guard = "{needed}".'
    else:
        advice = "Leave it out."
    return (
        f"the guard of {share} of the budget cannot distinguish {rows:,} rows from none, so it "
        f"would not stop a release of an empty source. {advice}"
    )


def sufficient_guard_share(
    privacy: Privacy, guard_share: Fraction, public_rows: int, attribute_count: int = 0
) -> Fraction | None:
    """Return the budget share a guard needs to detect no rows; None if it has it.

    With this share, the guard distinguishes ``public_rows`` rows from no rows.

    >>> privacy = Privacy(PureDP("0.99"))
    >>> (
    ...     sufficient_guard_share(privacy, Fraction(1, 100), 5000),
    ...     sufficient_guard_share(privacy, Fraction(1, 100), 500),
    ... )
    (None, Fraction(1, 29))
    """
    measured = guard_measurements(privacy, guard_share, attribute_count)
    bound = noise_difference_bound(measured.noise, float(measured.blocks[0].scale))
    if 2 * bound < public_rows:
        return None
    # The noise scale is proportional to 1 / share. For budgets of rho or mu squared, it is
    # proportional to the square root of 1 / share.
    if isinstance(privacy.budget, ZCDP | GDP):
        power = 2
    else:
        power = 1
    needed = guard_share * Fraction(2 * bound + 1, public_rows) ** power
    return Fraction(1, max(1, math.floor(1 / needed)))
