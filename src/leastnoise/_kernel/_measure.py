"""The kernel: checks a plan against its claim, pays for it, and only then draws noise. In no other order.

The argument that a release is private has four steps; the labels stand in the code.

(K1) The queries are integers and the data are integers, so what a block answers is an integer vector A x, and replacing the table by a
     neighbour changes it by the columns that ``plan.cost`` bounds. ``plan.cost`` reads the operators themselves, not what a planner says
     of them, and the limits of sums, which ``count`` enforces row by row; its sums are exact: ``column_sums`` refuses what might leave
     int64, and everything else is Python's integers and fractions.
(K2) The table keeps at most ``max_rows`` rows of a unit and was encoded row by row over the plan's own domain, so neighbouring data give
     tables that differ by at most that many rows. Only the columns that the plan uses are in it: a block on another is refused.
(K3) The budget the plan declares covers that cost, and the ledger has it left; the charge is on the disk before the first random bit is
     drawn. Whatever happens afterwards, the budget is gone. So is the mark that drawing was begun: what one receipt pays for is drawn once,
     whatever is killed and finished later (PROOFS-ledger.md, theorem 4). What was drawn is on the disk before it is returned.
(K4) Each row gets noise of its own, of exactly the scale that ``plan.cost`` used (PROOFS-noise.md; a scale is a Fraction of Python's
     integers, made so by ``Block``). On the grid both the answer and the scale are multiplied by ``grid``, so the shift stays an integer
     and shift over scale is unchanged. The rows are independent, so their losses add: |shift| / b for discrete Laplace (pure DP); alpha
     shift^2 / (2 sigma^2) in Renyi divergence for the discrete Gaussian, whatever the sigmas (zCDP; Canonne, Kamath, Steinke 2020,
     theorem 4 and composition); the rounded Gaussian is post-processing of one continuous Gaussian in units of its sigmas (GDP).

Overflow: ``Plan`` bounds |A x| times the grid below 2^62 from public numbers. int64 arithmetic is exact modulo 2^64 and the noise is
added modulo 2^64 too, so a value beyond would be a wrong answer and no leak: reduction modulo 2^64 is post-processing. Nothing is raised
because of a row.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from leastnoise._accounting import Cost, Noise, charge, covers
from leastnoise._check import InputError, refuse
from leastnoise._check.arrays import IntArray
from leastnoise._kernel._count import count
from leastnoise._kernel._entropy import Entropy, SystemEntropy
from leastnoise._kernel._gaussian import discrete_gaussian, rounded_gaussian
from leastnoise._kernel._laplace import discrete_laplace
from leastnoise._kernel._ledger import Ledger
from leastnoise._kernel._ledger_steps import NeedsData, Receipt
from leastnoise._linop import SignedArray, along, apply, narrow
from leastnoise._observation import Observation
from leastnoise._plan import Block, DataAwarePlan, Limits, Plan, cost, row_scales, used
from leastnoise._table import Table

_SAMPLERS = {Noise.DISCRETE_LAPLACE: discrete_laplace, Noise.DISCRETE_GAUSSIAN: discrete_gaussian, Noise.ROUNDED_GAUSSIAN: rounded_gaussian}
_BATCH_ROWS = 2**18
_AnyPlan = TypeVar("_AnyPlan", Plan, DataAwarePlan, Plan | DataAwarePlan)


def measure(
    plan: Plan, table: Table, ledger: Ledger, *, output: str, description: str = "", options: str = "", run: str = ""
) -> tuple[Observation, Receipt]:
    """Carry out a plan on private data, for real.

    Args:
        plan: what to measure; public.
        table: the encoded private rows.
        ledger: pays.
        output: where the release will be published, for the ledger.
        description: one line for people, for the ledger.
        options: of the release, for the ledger and whoever finishes it.
        run: from ``ledger.running``.

    Returns:
        The observation, and the receipt to seal the ledger's entry with once the release is published.

    Raises:
        InputError: the table does not belong to the plan, or the plan's cost is not covered by the budget it declares; nothing was spent.
        BudgetError: the ledger has less left than the plan costs; nothing was spent.
        LedgerError: the ledger cannot be used; no noise was drawn.

    Edge cases: what fails between the first random bit and the record of the outcome, such as a lack of memory, leaves a release that is
        paid and absent; what fails later leaves one that `finish` gives again.

    Guarantees: the observation satisfies the plan's declared budget for the plan's neighbours and unit; (K1) to (K4) above.

    >>> privacy = Privacy(PureDP(1))
    >>> table = Table(Domain(sex=["F", "M"]), {"sex": [0, 1, 1]})
    >>> plan = Plan(domain=table.domain, privacy=privacy, noise=Noise.DISCRETE_LAPLACE, blocks=(Block((), 1),), strategy="total")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(pathlib.Path(folder, "people.ledger"), "people", privacy)
    ...     observation, receipt = measure(plan, table, ledger, output="out")
    ...     (observation.private, observation.receipt == receipt.id, ledger.left().epsilon)
    (True, True, Fraction(0, 1))
    """
    receipt = check_ledger(ledger).reserve(  # (K3)
        cost=verify(plan, table),
        declared=plan.privacy.budget,
        privacy=plan.privacy,
        plan_digest=plan.digest(),
        output=output,
        description=description,
        plan=plan.to_json(),
        options=options,
        run=run,
    )
    return _drawn(plan, table, ledger, receipt), receipt


def finish(plan: Plan, table: Table | None, ledger: Ledger, receipt: Receipt) -> Observation:
    """Give the observation that a receipt has paid for: the recorded one, or, if drawing was never begun, one that is drawn now.

    Args:
        plan: that was paid for.
        table: the encoded private rows; None if the observation was recorded.
        ledger: that paid.
        receipt: from ``ledger.take_over``.

    Raises:
        InputError: another plan, or the rows are needed and not given (NeedsData).
        LedgerError: drawing was begun before, or the ledger cannot be used.

    >>> privacy = Privacy(PureDP(1))
    >>> table = Table(Domain(sex=["F", "M"]), {"sex": [0, 1, 1]})
    >>> plan = Plan(domain=table.domain, privacy=privacy, noise=Noise.DISCRETE_LAPLACE, blocks=(Block((), 1),), strategy="total")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(pathlib.Path(folder, "people.ledger"), "people", privacy)
    ...     first, receipt = measure(plan, table, ledger, output="out")
    ...     bool(finish(plan, None, ledger, receipt).values[0] == first.values[0])
    True
    """
    if plan.digest() != receipt.plan_digest:
        raise InputError("This plan is not the one that was paid for. Resume the release with its own plan.")
    known = ledger.pending(receipt).steps
    if known:
        return Observation.from_json(plan, known[0].outcome)
    if table is None:
        raise NeedsData("This release was paid and is not measured yet; it needs its data.")
    check_paid(plan, verify(plan, table), ledger, receipt)
    return _drawn(plan, table, ledger, receipt)


def check_paid(plan: Plan | DataAwarePlan, spent: Cost, ledger: Ledger, receipt: Receipt) -> None:
    """(K3): the ledger's file, whatever the receipt says, has an entry for this plan and its whole charge."""
    entry = check_ledger(ledger).entry_of(receipt)
    _check_plan(plan)
    due = charge(ledger.privacy.budget, plan.privacy.budget, spent)
    if (entry.plan_digest, entry.charge) != (plan.digest(), due) or not plan.privacy.same_unit(ledger.privacy):
        raise InputError("The entry of this receipt is not the payment of this plan. Resume the release with its own plan and receipt.")


def _check_plan(plan: _AnyPlan) -> _AnyPlan:
    """(K1): a frozen plan, and not something that looks like one and may answer otherwise when it is measured."""
    if type(plan) not in {Plan, DataAwarePlan}:
        raise refuse("plan", type(plan).__name__, "a Plan or DataAwarePlan")
    return plan


def check_ledger(ledger: Ledger) -> Ledger:
    """(K3): what pays is a ledger, and not something that looks like one."""
    if type(ledger) is not Ledger:
        raise refuse("ledger", type(ledger).__name__, "a Ledger, from Ledger.open or Ledger.create")
    return ledger


def _drawn(plan: Plan, table: Table, ledger: Ledger, receipt: Receipt) -> Observation:
    """(K3): begun on the disk, drawn, and on the disk again before anybody sees it."""
    ledger.begin(receipt, 1, receipt.plan_digest)
    observation = Observation(plan, draw(plan, table, SystemEntropy()), receipt.id, private=True)
    ledger.record(receipt, 1, observation.to_json())
    return observation


def simulate(plan: Plan, table: Table, entropy: Entropy) -> Observation:
    """Carry out a plan with noise from a seed, for tests and experiments: nothing is paid because nothing is private.

    Args:
        plan: what to measure.
        table: encoded rows that are not secret.
        entropy: a source that says of itself that it is not private.

    Returns:
        An observation marked as not private, without a receipt.

    Raises:
        InputError: the source is private (use ``measure``), or as ``measure``.

    >>> table = Table(Domain(sex=["F", "M"]), {"sex": [0, 1, 1]})
    >>> plan = Plan(domain=table.domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(Block((), 1),), strategy="total")
    >>> simulate(plan, table, SeededEntropy(1)).private
    False
    """
    if entropy.private:
        raise InputError("simulate is for seeded noise, which protects nobody; got a private source. Use measure, with a ledger.")
    verify(plan, table)
    return Observation(plan, draw(plan, table, entropy), "", private=False)


def check_table(plan: Plan | DataAwarePlan, table: Table) -> None:
    """(K2): the table was encoded over the plan's domain, has the columns that it is about, and was bounded for its unit."""
    privacy = _check_plan(plan).privacy
    if table.domain != plan.domain:
        raise InputError("The table was encoded over another domain than the plan's. Read the source again with the domain of the plan.")
    if (table.unit_column, table.max_rows) != (privacy.unit_column, privacy.max_rows):
        raise InputError("The table was bounded for another privacy unit than the plan's. Read the source again with the unit of the plan.")
    table.require(*used(plan))


def verify(plan: Plan, table: Table | None) -> Cost:
    """(K1), (K2): the table is the plan's, and the declared budget covers what the integers really cost, which is returned."""
    if table is not None:  # a resumed series asks for its recorded steps without the rows
        check_table(plan, table)
    spent = cost(_check_plan(plan))
    if not covers(plan.privacy.budget, spent):
        raise InputError(
            f"The plan's queries cost more than the budget it declares, {plan.privacy.budget!r}. Make the plan again; nothing was spent."
        )
    return spent


def draw(plan: Plan, table: Table, entropy: Entropy) -> tuple[SignedArray, ...]:
    """All blocks' answers plus noise; the caller has verified the plan and paid for it."""
    values: list[SignedArray | None] = [None] * len(plan.blocks)
    pending: list[tuple[int, IntArray]] = []
    rows = 0
    for place, exact in _answers(plan, table):
        pending.append((place, exact))
        rows += len(exact)
        if rows >= _BATCH_ROWS:
            _add_noise(plan, pending, values, entropy)
            pending, rows = [], 0
    _add_noise(plan, pending, values, entropy)
    return tuple(value for value in values if value is not None)


def _answers(plan: Plan, table: Table) -> Iterator[tuple[int, IntArray]]:
    """A x of every block in multiples of 1 / grid, exact; never leaves this module without noise."""
    groups: dict[tuple[str | None, Limits | None], dict[tuple[str, ...], list[int]]] = {}
    for place, block in enumerate(plan.blocks):
        groups.setdefault((block.measure, block.limits), {}).setdefault(block.attributes, []).append(place)
    for (summed, limits), places in groups.items():
        for names, cells in count(table, places, summed, None if limits is None else (limits.attribute, limits.values)):
            for place in places[names]:
                yield place, _apply(plan.blocks[place], cells) * plan.grid


def _apply(block: Block, cells: IntArray) -> IntArray:
    """The block's queries on the cells of its table, flat in row-major order."""
    cube = cells.reshape([factor.operator.size for factor in block.factors])
    for axis, factor in enumerate(block.factors):
        cube = along(apply, factor.operator, cube, axis)
    return np.ascontiguousarray(cube).reshape(-1)


def _add_noise(plan: Plan, pending: Sequence[tuple[int, IntArray]], values: list[SignedArray | None], entropy: Entropy) -> None:
    """(K4): one draw a row, in whole multiples of 1 / grid, of the scale that ``plan.row_scales`` gives exactly."""
    if not pending:
        return
    scales = [row_scales(plan.blocks[place], plan.grid) for place, _ in pending]
    numerators, denominators = (np.concatenate([pair[part] for pair in scales]) for part in (0, 1))
    noise = _SAMPLERS[plan.noise](_one(numerators), _one(denominators), len(numerators), entropy)
    start = 0
    for place, exact in pending:
        values[place] = narrow(exact + noise[start : start + len(exact)])  # a function of the noisy numbers alone
        start += len(exact)


def _one(terms: IntArray) -> int | IntArray:
    """A single number where all are equal, which the samplers are faster for."""
    return int(terms[0]) if (terms == terms[0]).all() else terms
