"""Carry out a series of private steps under one payment.

Each step may be chosen by looking at the outcomes of the steps before it.

PROOFS-kernel.md has the argument: (K5) all steps together satisfy the declared budget, however the
steps are chosen; (K6) a choice satisfies its epsilon for all rows of a unit; (K9) a search for keys
is the only step of its series; (K10) rows are drawn period by period.
"""

import hashlib
import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from leastnoise._trusted.accounting import (
    ZCDP,
    ApproxDP,
    Budget,
    Charge,
    Cost,
    GaussianCost,
    Privacy,
    PureCost,
    PureDP,
    SeriesCost,
    charge,
    charge_text,
    step_charge,
    sum_charges,
    unspent_charge,
)
from leastnoise._trusted.check import (
    BudgetError,
    Immutable,
    InputError,
    exact_positive,
    one_of,
    refuse,
    whole,
)
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.domain import Domain
from leastnoise._trusted.kernel._count import exact_marginals
from leastnoise._trusted.kernel._entropy import Entropy, SystemEntropy
from leastnoise._trusted.kernel._key_search import FoundKeys, KeySearch
from leastnoise._trusted.kernel._ledger import Ledger
from leastnoise._trusted.kernel._ledger_file import Entry
from leastnoise._trusted.kernel._ledger_run import NeedsData, Receipt, RecordedStep
from leastnoise._trusted.kernel._measurement import check_table, draw_answers, verified_cost
from leastnoise._trusted.kernel._periods import (
    ClosedPeriods,
    answers_of_last_period,
    check_drawable_by_period,
    close_period,
    fingerprint_measurements,
    has_total_bound,
    read_closed,
    write_closed,
)
from leastnoise._trusted.kernel._plane import LeastCost
from leastnoise._trusted.kernel._quantile_selection import QuantileSelection
from leastnoise._trusted.kernel.helpers._outcome import (
    answers_from_text,
    cells_from_text,
    outcome_from_text,
    outcome_to_text,
)
from leastnoise._trusted.linop import SignedArray
from leastnoise._trusted.measurements import Measurements, Observation, measurements_digest
from leastnoise._trusted.table import (
    SALT_BYTES,
    Keyed,
    RowAllowance,
    Table,
    UsedRows,
    open_content,
)

_CHANGED = (
    "The measurements must be those that were paid for; their queries or their noise were "
    "changed. Nothing was drawn."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseContract:
    """The domain, steps and budget that a release declares before it is paid.

    Args:
        domain: the domain over which the rows are encoded.
        privacy: budget, neighbours and privacy unit of all steps together.
        attributes: the attributes with which rows are read, in the order of the domain.
        measures: the measures with which rows are read.
        declared_step: the measurements of the only step, if there is a single one. Only this step
            is carried out, and its exact cost is paid. None for adaptive steps within the whole
            budget.
        shared_mu_squared: mu squared of all steps together, for steps that are measurements with
            rounded Gaussian noise within (epsilon, delta). This mu squared is paid for, and the
            steps together use at most this amount. None if the steps divide the budget itself.
        plan_text: the plan as text, for the ledger and for the process that finishes the release.
        along: the attribute whose cells are the periods; the only step is drawn in these periods,
            one after the other; "" to draw the step at once.
        late: how a row counts if it arrives after its period was closed: "drop" (it does not
            count), or "arrival" (it counts in the period in which it arrives).

    Raises:
        InputError: an argument has another class; the only step has another domain or privacy, or
            cannot be drawn period by period; or ``shared_mu_squared`` is used with another budget
            than (epsilon, delta), or together with a single step.

    >>> ReleaseContract(
    ...     domain=Domain(age=[1, 2]),
    ...     privacy=Privacy(PureDP(1)),
    ...     attributes=("age",),
    ...     plan_text="a plan",
    ... ).digest()[:8]
    'a27fa2ba'
    """

    domain: Domain
    privacy: Privacy
    attributes: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    declared_step: Measurements | None = None
    shared_mu_squared: Fraction | None = None
    plan_text: str = ""
    along: str = ""
    late: str = "drop"

    def __post_init__(self) -> None:
        types = (*map(type, (self.domain, self.privacy, self.plan_text, self.along, self.late)),)
        # M6: The values are exactly of these classes.
        if types != (Domain, Privacy, str, str, str) or type(self.declared_step) not in {
            Measurements,
            type(None),
        }:
            raise refuse(
                "contract",
                ", ".join(kind.__name__ for kind in (*types, type(self.declared_step))),
                "Domain, Privacy, three str, Measurements or None",
            )
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "measures", tuple(self.measures))
        if self.declared_step is not None and (
            self.declared_step.domain,
            self.declared_step.privacy,
        ) != (
            self.domain,
            self.privacy,
        ):
            raise InputError(
                "The declared measurements must have the domain and the privacy of their series. "
                "Make the plan again; nothing was spent."
            )
        if self.shared_mu_squared is not None:
            if self.declared_step is not None or type(self.privacy.budget) is not ApproxDP:
                raise InputError(
                    "mu-squared composition requires an ApproxDP budget and adaptive steps. Make "
                    "the plan again; nothing was spent."
                )
            object.__setattr__(
                self,
                "shared_mu_squared",
                exact_positive("shared_mu_squared", self.shared_mu_squared),
            )
            # Raises an error now, before the payment, if the number has too many digits.
            ZCDP(self.shared_mu_squared / 2)
        if self.along:
            if self.declared_step is None:
                # A choice is not in the private file, and would be drawn again after every run
                # that is killed.
                raise InputError(
                    "A series that is drawn period by period must declare its measurements. Make "
                    "the plan again; nothing was spent."
                )
            check_drawable_by_period(self.declared_step, self.along, self.late)

    @property
    def shared_budget(self) -> Budget:
        """The budget that the adaptive steps of the release share.

        It is the declared budget or, for steps that share mu squared, a zCDP budget with rho = mu
        squared / 2.
        """
        if self.shared_mu_squared is None:
            return self.privacy.budget
        return ZCDP(self.shared_mu_squared / 2)

    def digest(self) -> str:
        """SHA-256 of the plan's text, in hexadecimal."""
        return hashlib.sha256(self.plan_text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _PrivateState:
    """The private rows, the source of noise and the charges of a series.

    This state is stored outside the `Series` object, so that no reference leads from the object to
    the rows (K7).

    Attributes:
        table: the encoded rows; None if only recorded steps are requested.
        entropy: the source of all noise.
        cost: an upper bound on the total cost of all steps.
        ledger: the ledger that paid; None for an `UnpaidSeries`.
        recorded: the steps that the ledger has recorded, in order.
        charges: the charge of each step so far.
        lock: held while a step is charged.
        process: the process that created the series; a fork of this process cannot use the series.
    """

    table: Table | None
    entropy: Entropy
    cost: Cost
    ledger: Ledger | None = None
    recorded: tuple[RecordedStep, ...] = ()
    charges: list[Charge] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    process: int = field(default_factory=os.getpid)


_PRIVATE_STATES: "WeakKeyDictionary[Series, _PrivateState]" = WeakKeyDictionary()


class Series(Immutable):
    """A series of steps on private rows, for which the ledger paid once.

    All noise comes from the operating system. `Series.paid` or `Series.resumed` returns one.

    Attributes:
        contract: what the series may do; public.
        receipt: the ledger's receipt; None for an `UnpaidSeries`.
        private: whether it was paid for.

    Guarantees: all outputs of all steps together satisfy the budget of the contract for their
        neighbours and unit; (K1) to (K6).

    >>> contract = ReleaseContract(
    ...     domain=Domain(age=[1, 2]), privacy=Privacy(PureDP(1)), attributes=("age",)
    ... )
    >>> table = Table(contract.domain, {"age": [0, 0, 1]})
    >>> series = UnpaidSeries(contract, table, SeededEntropy(1))
    >>> cost = series.choose(LeastCost(attributes=("age",), epsilon="3/4", penalty=0))
    >>> str(series.left())
    'epsilon = 0.25'
    >>> series.choose(LeastCost(attributes=("age",), epsilon="1/2", penalty=0))
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.BudgetError: A step requests epsilon = 0.5, ...
    """

    __slots__ = ("__weakref__", "contract", "receipt")

    contract: ReleaseContract
    receipt: Receipt | None

    def __init__(self) -> None:
        raise TypeError(
            "Create a Series with Series.paid, which pays for it. UnpaidSeries is a series "
            "without payment, which is not private."
        )

    @staticmethod
    def paid(
        contract: ReleaseContract,
        table: Table | None,
        ledger: Ledger,
        *,
        output: str,
        description: str = "",
        options: str = "",
        run: str = "",
    ) -> "Series":
        """Charge the ledger for a series of steps, and return the series.

        Args:
            contract: the steps to be carried out; public.
            table: the encoded private rows; None if no step is drawn before the series is resumed.
            ledger: the ledger that pays now: the whole declared budget, or the cost of the only
                step.
            output: where the release will be published, for the ledger.
            description: one line for people, for the ledger.
            options: options of the release, for the ledger and the process that finishes it.
            run: identification of this process, from ``ledger.running``.

        Raises:
            InputError: the table does not belong to the contract; the only step costs more than
                is declared; or periods of a series would be drawn from a budget that is renewed
                with each day, week, month or year. Nothing was spent.
            BudgetError: the ledger has less left than this release costs; nothing was spent.
            LedgerError: the ledger cannot be used, or the rows were read in an earlier period of
                its budget. Nothing was spent.
        """
        spent = _checked_cost(contract, table)
        if contract.along:
            _checked_ledger(ledger).check_not_periodic()
        receipt = _checked_ledger(ledger).reserve(  # (K3)
            cost=spent,
            privacy=contract.privacy,
            plan_digest=contract.digest(),
            output=output,
            description=description,
            plan=contract.plan_text,
            options=options,
            run=run,
            read_on=None if table is None else table.read_on,
        )
        return _initialise(
            object.__new__(Series),
            contract,
            _PrivateState(table, SystemEntropy(), spent, ledger),
            receipt,
        )

    @staticmethod
    def resumed(
        contract: ReleaseContract, table: Table | None, ledger: Ledger, receipt: Receipt
    ) -> "Series":
        """Return a series that another process paid for and began, to continue it.

        Args:
            contract: the contract that was paid for.
            table: the encoded private rows; None if only recorded steps are requested.
            ledger: the ledger that paid.
            receipt: from ``ledger.take_over``.

        Raises:
            InputError: the payment was for another contract, or the table does not belong to it.
            LedgerError: the rows were read in another period of the budget than the period of the
                payment. Nothing was drawn.
        """
        spent = _checked_cost(contract, table)
        # (K3): The ledger's file, not the receipt, must have the whole charge of this contract.
        entry = _checked_ledger(ledger).entry_of(receipt)
        charge_due = charge(ledger.privacy.budget, contract.privacy.budget, spent)
        # The cost of a declared step is computed again when the step is drawn.
        paid = spent if contract.declared_step is not None else entry.cost
        if (entry.plan_digest, entry.charge, paid) != (
            contract.digest(),
            charge_due,
            spent,
        ) or not contract.privacy.same_unit(ledger.privacy):
            raise InputError(
                "The receipt must belong to the payment for this plan; its entry in the ledger "
                "records another payment. Resume the release with its own plan and receipt."
            )
        if table is not None:  # rows that were read after the payment
            ledger.check_period_of(receipt, table.read_on)
        return _initialise(
            object.__new__(Series),
            contract,
            _PrivateState(table, SystemEntropy(), spent, ledger, ledger.pending(receipt).steps),
            receipt,
        )

    @property
    def private(self) -> bool:
        """Whether the series was paid for.

        An unpaid series has seeded noise or synthetic rows.
        """
        return self.receipt is not None

    def left(self) -> Charge:
        """Return the exact amount that the next steps may spend."""
        return unspent_charge(
            self.contract.shared_budget, sum_charges(_private_state(self).charges)
        )

    def choose(self, selection: LeastCost) -> Fraction:
        """Draw the noisy least cost of a partition.

        The draw is the next step of the series.

        Args:
            selection: the choice, with its epsilon.

        Returns:
            The noisy least cost, in records. It is public once it is returned.

        Raises:
            InputError: an argument has another class, or the choice refuses it. Nothing was drawn.
            BudgetError: the budget has less left than the epsilon of the choice; nothing was drawn.
        """
        state = _state_for_adaptive_step(self, "selection", selection, LeastCost)
        privacy = self.contract.privacy
        shape = [self.contract.domain.cells(name) for name in selection.attributes]
        selection.penalty_and_scale(math.prod(shape), privacy.distance)
        if state.table is not None:
            state.table.require(selection.attributes)

        def draw_cost(table: Table) -> Fraction:
            """Draw the noisy least cost from the counts of the table."""
            ((_, cells),) = exact_marginals(table, [selection.attributes])
            return selection.draw(cells.reshape(shape), privacy.distance, state.entropy)  # (K6)

        cost = step_charge(privacy.budget, PureDP(selection.epsilon), PureCost(selection.epsilon))
        step = _step(self, cost, fingerprint_step(selection), draw_cost, outcome_from_text)
        return cast(Fraction, step)

    def choose_quantile_cells(self, selection: QuantileSelection) -> IntArray:
        """Choose the cells that contain quantiles.

        The draw is the next step of the series.

        Args:
            selection: the quantile, its groups and its epsilon.

        Returns:
            The number of the chosen cell of each group, int64 of shape (groups,). The groups are in
            the order of their cells. The numbers are public once they are returned.

        Raises:
            InputError: the argument has another class; the domain does not have one of the
                attributes; or the choice cannot be drawn exactly with these numbers. Nothing was
                drawn.
            BudgetError: the budget has less left than the epsilon of the choice; nothing was drawn.
        """
        state = _state_for_adaptive_step(self, "selection", selection, QuantileSelection)
        privacy = self.contract.privacy
        domain = self.contract.domain
        axes = (*selection.by, selection.attribute)
        for name in axes:
            one_of("an attribute of a quantile", name, domain.names)
        whole("the cells of a quantile", selection.cells, 1, domain.cells(selection.attribute))
        selection.scale(privacy.distance)
        if state.table is not None:
            state.table.require(axes)

        def draw_cells(table: Table) -> IntArray:
            """Draw the chosen cells from the counts of the table."""
            ((_, counts),) = exact_marginals(table, [axes])
            by_group = counts.reshape(-1, domain.cells(selection.attribute))
            numbers = np.ascontiguousarray(by_group[:, : selection.cells])
            return selection.draw(numbers, privacy.distance, state.entropy)  # (K6)

        cost = step_charge(privacy.budget, PureDP(selection.epsilon), PureCost(selection.epsilon))
        groups = math.prod(domain.cells(name) for name in selection.by)

        def read_cells(text: str) -> IntArray:
            """Read the chosen cells from the recorded text."""
            return cells_from_text(text, groups, selection.cells)

        request = fingerprint_step(selection)
        return cast(IntArray, _step(self, cost, request, draw_cells, read_cells))

    def find(self, search: KeySearch) -> FoundKeys:
        """Search for the keys of an attribute, a step that costs the whole budget.

        Args:
            search: the search, with its noise and threshold.

        Returns:
            The keys that reached the threshold, with their noisy numbers of units. Both are public
            once they are returned.

        Raises:
            InputError: the argument has another class, or the rule of the search is not proved to
                satisfy the budget of the series; nothing was drawn.
            BudgetError: an earlier step of this series has already been drawn.
        """
        state = _state_for_adaptive_step(self, "search", search, KeySearch)
        privacy = self.contract.privacy
        budget = search.verify(privacy)  # (K9)
        if state.table is not None:
            state.table.require([search.attribute])

        def draw_keys(table: Table) -> FoundKeys:
            """Draw the released keys from the private keys."""
            return search.draw(open_content(table, Keyed), privacy, state.entropy)

        cost = step_charge(budget, budget, SeriesCost(budget))
        step = _step(self, cost, fingerprint_step(search), draw_keys, outcome_from_text)
        return cast(FoundKeys, step)

    def measure(self, measurements: Measurements) -> Observation:
        """Draw the noisy answers to queries.

        The draw is the next step of the series.

        Args:
            measurements: queries over the domain, neighbours and unit of the series, within the
                remaining budget. If the series declares its only step, the measurements must be
                this step.

        Returns:
            The observation, with the receipt of the series.

        Raises:
            InputError: the measurements have another domain or unit; they cost more than they
                declare; they are not the only step; or the steps share mu squared, and the noise is
                not rounded Gaussian noise. Nothing was drawn.
            BudgetError: the measurements declare more than the remaining budget; nothing was drawn.
        """
        contract = self.contract
        state = _private_state(self)
        if not measurements.privacy.same_unit(contract.privacy):
            raise InputError(
                f"A step must protect the unit of its series, {contract.privacy.unit}; got "
                f"{measurements.privacy.unit}. Make the plan with the unit of the series."
            )
        declared_step = contract.declared_step
        if declared_step is not None and (
            measurements is not declared_step or state.charges or contract.along
        ):
            raise InputError(
                "measure() carries out only the measurements that the series declares, and "
                "only once; period() draws the measurements of a series of periods. For "
                "other steps, declare a series without fixed measurements."
            )
        spent = verified_cost(measurements, state.table)
        # The measured queries are the paid ones.
        if declared_step is not None and spent != state.cost:
            raise InputError(_CHANGED)
        # Theorem 8 of PROOFS-accounting.md holds only for this noise.
        if contract.shared_mu_squared is not None and type(spent) is not GaussianCost:
            raise InputError(
                "Steps that share mu squared must have rounded Gaussian noise; got another "
                "noise. Nothing was drawn."
            )
        cost = step_charge(contract.shared_budget, measurements.privacy.budget, spent)
        request = contract.digest()
        if declared_step is None:
            # With the charge that is computed here, because code that is not trusted writes the
            # text of the measurements.
            request = fingerprint_step((cost, measurements_digest(measurements)))
        if self.receipt:
            receipt_id = self.receipt.id
        else:
            receipt_id = ""

        def observation_of(values: tuple[SignedArray, ...]) -> Observation:
            """Return an observation of noisy answers, with the receipt of the series."""
            return Observation(measurements, values, receipt_id, private=self.private)

        def draw_observation(table: Table) -> Observation:
            """Draw the noisy answers from the rows of the table."""
            return observation_of(draw_answers(measurements, table, state.entropy))

        def read_observation(text: str) -> Observation:
            """Read the noisy answers from the recorded text."""
            rows = [block.rows for block in measurements.blocks]
            return observation_of(answers_from_text(text, rows))

        step = _step(self, cost, request, draw_observation, read_observation)
        return cast(Observation, step)

    def period(self, state_file: Path) -> tuple[SignedArray, ...]:
        """Close the next period, and return the noisy answers that it completes.

        The whole cost is charged with the first period (P4).

        Args:
            state_file: the private file next to the ledger; it is made with the first period.

        Returns:
            For every block, its noisy answers of that period, in order and in multiples of 1 /
            grid.

        Raises:
            InputError: the contract names no attribute of periods; the measurements were changed;
                or two threads draw periods simultaneously. Nothing was drawn.
            NeedsData: the period has not been drawn yet, and the series has no rows.
            LedgerError: the private file is missing or belongs to another ledger, or a file cannot
                be written; nothing was drawn.
        """
        contract = self.contract
        private_state = _private_state(self)
        declared_step = contract.declared_step
        number = len(private_state.charges)
        if declared_step is None or not contract.along:
            raise InputError(
                "period() requires a series that declares its measurements and the attribute of "
                "its periods (along). Nothing was drawn."
            )
        cost = Charge()
        if number == 0:
            cost = step_charge(
                contract.privacy.budget, declared_step.privacy.budget, private_state.cost
            )
        measurements_fingerprint = fingerprint_measurements(
            declared_step, contract.along, contract.late
        )
        owner = _owner_of_file(self.receipt.id if self.receipt else "", measurements_fingerprint)

        def close_and_answer(table: Table) -> tuple[SignedArray, ...]:
            """Close the next period and return its answers.

            If the private file already has the period, it is not drawn again.
            """
            # The measured queries are the paid ones.
            if verified_cost(declared_step, table) != private_state.cost:
                raise InputError(_CHANGED)
            if len(private_state.charges) != number + 1:
                raise InputError(
                    "Another thread draws periods of this series at the same time. Resume the "
                    "series and draw its periods in one thread. Nothing was drawn."
                )
            if number or state_file.exists():
                closed = read_closed(state_file, owner, number)
            else:
                closed = ClosedPeriods()
            # Otherwise a process closed it and was killed before the ledger had its rows.
            if closed.number == number:
                entropy = private_state.entropy
                closed = close_period(
                    declared_step, contract.along, contract.late, table, closed, entropy
                )
                write_closed(state_file, owner, closed)
            return answers_of_last_period(declared_step, contract.along, closed)

        def read_recorded(text: str) -> tuple[SignedArray, ...]:
            """Read the noisy answers of the period from the recorded text."""
            return answers_from_text(text, [block.rows for block in declared_step.blocks])

        request = fingerprint_step((measurements_fingerprint, number))
        return tuple(_step(self, cost, request, close_and_answer, read_recorded))

    def __repr__(self) -> str:
        return f"<Series on private rows, {len(_private_state(self).charges)} steps>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a Series holds private rows and is not pickled")


class UnpaidSeries(Series):
    """A series of steps that is not paid for, and never private (K8).

    The noise of its steps comes from a seed, or the rows are synthetic.

    Args:
        contract: the steps to be carried out.
        table: encoded rows that are not secret.
        entropy: any source: a seeded one for tests and experiments, or the system's for audits on
            made-up rows.

    Raises:
        InputError: the table does not belong to the contract.

    >>> contract = ReleaseContract(
    ...     domain=Domain(age=[1, 2]), privacy=Privacy(PureDP(1)), attributes=("age",)
    ... )
    >>> UnpaidSeries(contract, Table(contract.domain, {"age": [0, 0, 1]}), SystemEntropy()).private
    False
    """

    __slots__ = ()

    def __init__(self, contract: ReleaseContract, table: Table, entropy: Entropy) -> None:
        _initialise(
            self, contract, _PrivateState(table, entropy, _checked_cost(contract, table)), None
        )


def row_allowance(
    contract: ReleaseContract, ledger: Ledger | None, entry: Entry | None, state_file: Path | None
) -> RowAllowance | None:
    """Return a handle to the rows that each unit may still use; None if no limit.

    Args:
        contract: the contract of the series.
        ledger: the ledger that paid; None before the payment.
        entry: the entry of the payment; None before the payment.
        state_file: the private file next to the ledger; None before the payment.

    Returns:
        A handle that reveals nothing about a unit. None if no numbers have to be stored, because
        the bound in each period also bounds the rows in all periods (P2).

    Raises:
        LedgerError: the private file is missing or belongs to another ledger.

    >>> contract = ReleaseContract(
    ...     domain=Domain(age=[1, 2]), privacy=Privacy(PureDP(1)), attributes=("age",)
    ... )
    >>> row_allowance(contract, None, None, None) is None
    True
    """
    declared_step = contract.declared_step
    if (
        declared_step is None
        or not contract.along
        or not has_total_bound(declared_step, contract.along)
    ):
        return None
    used = None
    if ledger is not None and entry is not None and state_file is not None:
        recorded = len(ledger.pending(entry).steps)
        if recorded or state_file.exists():
            owner = _owner_of_file(
                entry.id, fingerprint_measurements(declared_step, contract.along, contract.late)
            )
            used = read_closed(state_file, owner, recorded).used
    if used is None:  # no period is closed
        used = UsedRows.none(os.urandom(SALT_BYTES))
    return RowAllowance(contract.along, contract.privacy.max_rows, used)


def _owner_of_file(receipt_id: str, measurements_fingerprint: str) -> str:
    """Return the text that identifies the series to which a private file belongs."""
    return f"{receipt_id} {measurements_fingerprint}"


def _private_state(series: Series) -> _PrivateState:
    """Return the private state of a series; raise for an object of another class."""
    if type(series) not in (Series, UnpaidSeries):
        raise InputError(
            f"A series must be a Series or an UnpaidSeries; got a {type(series).__name__}, for "
            "which nothing was paid."
        )
    return _PRIVATE_STATES[series]


def _state_for_adaptive_step(
    series: Series, step_name: str, step: object, step_class: type
) -> _PrivateState:
    """Return a series' private state; raise unless adaptive steps are allowed.

    Args:
        series: the series that takes this step next.
        step_name: the name of the step in messages.
        step: the choice or the search.
        step_class: the class that the step must have exactly.

    Raises:
        InputError: the step has another class, or the series declares its steps beforehand.
    """
    if type(step) is not step_class:
        raise refuse(step_name, type(step).__name__, f"a {step_class.__name__}")
    if series.contract.declared_step is not None or series.contract.shared_mu_squared is not None:
        raise InputError(
            "choose() and find() are not allowed in a series that declares fixed measurements or "
            "mu squared. Declare a series with neither; its steps share the whole budget."
        )
    return _private_state(series)


def _initialise(
    series: Series, contract: ReleaseContract, state: _PrivateState, receipt: Receipt | None
) -> Series:
    """Set the fields of a new series once, and return the series."""
    object.__setattr__(series, "contract", contract)
    object.__setattr__(series, "receipt", receipt)
    _PRIVATE_STATES[series] = state
    return series


def _checked_cost(contract: ReleaseContract, table: Table | None) -> Cost:
    """Return the total cost of all steps that a contract allows (K1).

    The table, if there is one, must belong to the contract (K2).
    """
    if type(contract) is not ReleaseContract:
        raise refuse("contract", type(contract).__name__, "ReleaseContract")
    if table is not None:
        check_table(contract.domain, contract.privacy, table)
        table.require(contract.attributes, contract.measures)
    if contract.shared_mu_squared is not None:  # `charge` checks later that the budget covers it
        return GaussianCost(contract.shared_mu_squared)
    if contract.declared_step is None:
        return SeriesCost(contract.privacy.budget)
    return verified_cost(contract.declared_step, table)


def _checked_ledger(ledger: Ledger) -> Ledger:
    """Return the ledger, which must be of class `Ledger` (K3)."""
    if type(ledger) is not Ledger:
        raise refuse("ledger", type(ledger).__name__, "a Ledger, from Ledger.open or Ledger.create")
    return ledger


def fingerprint_step(selection: object) -> str:
    """Return the SHA-256 of a step's public numbers, in hexadecimal.

    >>> fingerprint_step("a") == fingerprint_step("b")
    False
    """
    return hashlib.sha256(repr(selection).encode()).hexdigest()


def _step(
    series: Series,
    cost: Charge,
    request: str,
    draw_outcome: Callable[[Table], Any],
    read_outcome: Callable[[str], Any],
) -> Any:
    """Draw the outcome of the next step, or read it if it is recorded (K5).

    A step is charged and begun before anything is drawn, and recorded before it is returned; a
    recorded step is not drawn again. Two threads, or a process and its fork, cannot overspend the
    budget.

    Args:
        series: the series that takes this step next.
        cost: the charge of the step.
        request: fingerprint of the request of the step.
        draw_outcome: draws the outcome from the rows.
        read_outcome: reads the outcome from the text that the ledger has.
    """
    state = _private_state(series)
    if os.getpid() != state.process:
        raise InputError(
            "This Series was created in another process and cannot be used here. Nothing was drawn."
        )
    along_periods = bool(series.contract.along)
    ledger = None if series.receipt is None else state.ledger
    shared = series.contract.shared_budget
    with state.lock:
        available = series.left()
        if not cost.is_within(available):
            raise BudgetError(
                f"A step requests {charge_text(shared, cost)}, but only "
                f"{charge_text(shared, available, up=False)} of this release's budget is left. "
                "Nothing was drawn. Divide the budget among the steps."
            )
        number = len(state.charges) + 1
        if number <= len(state.recorded):
            recorded = state.recorded[number - 1]
        else:
            recorded = None
        if recorded is None:
            if state.table is None:
                raise NeedsData(
                    "This release was paid and has steps left to measure; it needs its data."
                )
            if ledger is not None and series.receipt is not None and not along_periods:
                ledger.begin(series.receipt, number, request)
        elif recorded.request != request:
            raise InputError(
                "This version of leastnoise requests other steps than the ledger recorded. Resume "
                "the release with the version that began it."
            )
        state.charges.append(cost)
    if recorded is not None:
        return read_outcome(recorded.outcome)
    table = cast(Table, state.table)
    if ledger is None or series.receipt is None:
        return draw_outcome(table)
    if along_periods:  # (P3): from the private file, however often it is begun
        return ledger.draw(
            series.receipt, number, request, lambda: draw_outcome(table), outcome_to_text
        )
    outcome = draw_outcome(table)
    ledger.record(series.receipt, number, outcome_to_text(outcome))
    return outcome
