"""Facts about the payment of a release or a search, for manifests."""

from dataclasses import dataclass, field

from leastnoise._plan import checked_guard_share
from leastnoise._release._json_records import flat
from leastnoise._trusted.check import InputError, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A payment, as recorded in a ledger.

    Attributes:
        dataset: the name of the data set.
        ledger: the name of the ledger's file.
        ledger_id: the identifier of the ledger.
        charge: the amount, such as "epsilon = 0.1".
        number: the number of the release in the ledger.
        head: the digest of the ledger's entries.
        steps: the number of steps that were drawn. A ledger that records fewer steps is an older
            copy, which would draw the last steps again.
    """

    dataset: str
    ledger: str
    ledger_id: str
    charge: str
    number: int
    head: str
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountsOfTotal:
    """Noisy amounts of a total of units: within the guard's limits, and beyond."""

    measure: str
    kept: float
    cut: float
    kept_std: float
    cut_std: float

    def __post_init__(self) -> None:
        if not (self.kept_std > 0 and self.cut_std > 0):
            raise InputError("A guard must have a standard error above 0 for each of its amounts.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardCounts:
    """The payment of a guard and the noisy row counts that it measured.

    Attributes:
        share: the guard's share of the whole budget, such as "1/100".
        charge: the amount that was paid.
        number: the number of the guard's payment in the ledger; 0 if nothing was paid.
        used: the number of rows that at least one table counts.
        kept: the number of rows within the row limit of their unit.
        noise_std: the standard error of ``used`` and of ``kept``.
        cut: the number of rows that exceed the row limit of their unit; None without a limit.
        cut_std: the standard error of ``cut``.
        amounts: the kept and the cut amount of each total of units.
    """

    share: str
    charge: str
    number: int
    used: int
    kept: int
    noise_std: float
    cut: int | None = None
    cut_std: float | None = None
    amounts: tuple[AmountsOfTotal, ...] = ()

    def __post_init__(self) -> None:
        checked_guard_share(self.share)
        if not self.noise_std > 0 or (self.cut is None) != (self.cut_std is None):
            raise InputError("A guard must have a standard error above 0 for each of its counts.")
        if self.cut_std is not None and not self.cut_std > 0:
            raise refuse("the standard error of rows that were cut", self.cut_std, "above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondTable:
    """A table that is joined to the first table.

    Attributes:
        table: the name of the table; empty for a data frame.
        on: the column of the first table.
        key: the column of this table.
        public: whether the contents of the table were declared public.
    """

    table: str
    on: str
    key: str
    public: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptFacts:
    """Facts about a release or search: payment, guard and joined tables.

    Attributes:
        id: the identifier of the payment; empty if nothing was paid.
        payment: the payment in a ledger; None if nothing was paid.
        guard: the counts of the guard; None if there is none.
        guard_reduced_from: the original budget, if a part of it was used by guards that stopped
            earlier releases; otherwise None.
        joined: the first joined table of the data; None if there is none.
        further_joined: the tables that are joined after the first joined table.
    """

    id: str
    payment: Payment | None = field(default=None, metadata=flat())
    guard: GuardCounts | None = field(default=None, metadata=flat("guard_"))
    guard_reduced_from: str | None = None
    joined: SecondTable | None = None
    further_joined: tuple[SecondTable, ...] = ()

    @property
    def joined_tables(self) -> tuple[SecondTable, ...]:
        """All joined tables, in the order in which they are joined."""
        if self.joined is None:
            return ()
        return (self.joined, *self.further_joined)


NO_RECEIPT = ReceiptFacts(id="")
"""The receipt of a release or search that paid and counted nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsFacts:
    """The bounds that a search found, as exact texts, and its rule and error."""

    low: str
    high: str
    covers: str
    rank_error: int
    promise: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFacts:
    """Facts about a paid search for the categories or bounds of an attribute.

    Attributes:
        attribute: the attribute, or ``max_rows`` for the row limit of units.
        plan: the digest of the search's plan.
        receipt: the payment of the search.
        bounds: the bounds that the search found; None for categories.
    """

    attribute: str
    plan: str
    receipt: ReceiptFacts = field(metadata=flat())
    bounds: BoundsFacts | None = field(default=None, metadata=flat())
