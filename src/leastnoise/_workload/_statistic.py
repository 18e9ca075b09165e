"""What is asked for that is no linear query: means, quantiles and distribution functions by group, with the tables they follow from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from leastnoise._check import Exact, InputError, exact, exact_positive, number_text, one_of, refuse
from leastnoise._domain import Bins, Decimals, Domain, Edges, Integers
from leastnoise._workload._product import Target, target
from leastnoise._workload._query_sets import By, QuerySet, groups_of, identity, prefix

MEASURES_ARE_DECLARED = "Declare it with public bounds: [measures.pay] clip = [0, 100000] in a spec, ln.Measure in Python."
Cell = tuple[Fraction | int, Fraction | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticForm:
    """One kind of statistics."""

    noun: str
    column: str
    of_measure: bool = False
    at_shares: bool = False
    along: bool = False


FORMS: Mapping[str, StatisticForm] = {
    "means": StatisticForm(noun="mean", column="mean", of_measure=True),
    "quantiles": StatisticForm(noun="quantiles", column="quantile", at_shares=True),
    "cdf": StatisticForm(noun="distribution", column="share", along=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """Means of a measure, or quantiles or the distribution function of a number, of every group."""

    kind: str
    of: str
    by: tuple[str, ...] = ()
    groups: tuple[QuerySet, ...] = ()
    at: tuple[Fraction, ...] = ()
    size: Fraction | None = None
    target: Target | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", self.groups or (identity(),) * len(self.by))
        if FORMS[one_of("the kind of a statistic", self.kind, tuple(FORMS))].at_shares != bool(self.at):
            raise refuse(f"the shares of {self.kind}", [str(share) for share in self.at], "at least one for quantiles, else none")
        if not all(0 < share <= 1 for share in self.at) or len(set(self.at)) != len(self.at):
            shown = ", ".join(number_text(share) for share in self.at)
            raise refuse("at", shown, "different shares above 0 and at most 1, such as 0.5 for the median")
        if self.target is not None and not self.form.of_measure:
            raise InputError(f"{self.kind} have no targets: their errors depend on the data. Give one to queries for the same table.")
        if self.target is not None and self.size is None:
            advice = "The error of a mean depends on the rows of its group: say a public size, for example size = 1000."
            raise refuse(f"the {self.target.kind} of a mean", f"{self.target.most} without a size", "given with a size", advice)

    @property
    def form(self) -> StatisticForm:
        """What is known of statistics of this kind."""
        return FORMS[self.kind]

    @property
    def name(self) -> str:
        """What it is called in files and reports."""
        return f"{self.form.noun} of {self.of}" + (f" by {self.groups_name}" if self.by else "")

    @property
    def groups_name(self) -> str:
        """What its groups are called, such as ``sex x store:region``."""
        return " x ".join(asked.name_along(name) for name, asked in self.along.items())

    @property
    def keys(self) -> tuple[str, ...]:
        """What the columns of its groups are called."""
        return tuple(asked.key_along(name) for name, asked in self.along.items())

    @property
    def along(self) -> dict[str, QuerySet]:
        """The groups along each attribute."""
        return dict(zip(self.by, self.groups, strict=True))

    def questions(self, domain: Domain) -> tuple[tuple[object, ...], ...]:
        """The tables that it follows from, as `Product.question` says what a product asks."""
        if self.form.of_measure:
            return (domain.count_of(self.of), self.by, self.groups), (self.of, self.by, self.groups)
        asked = {**self.along, self.of: prefix()}
        names = tuple(name for name in domain.names if name in asked)
        return ((None, names, tuple(asked[name] for name in names)),)

    def to_json(self) -> dict[str, object]:
        """A JSON value."""
        at = {"at": [str(share) for share in self.at]} if self.at else {}
        size = {} if self.size is None else {"size": str(self.size)}
        wanted = {} if self.target is None else self.target.to_json()
        by = [name if asked == identity() else {name: asked.to_spec()} for name, asked in self.along.items()]
        return {self.kind: {"of": self.of, **at, "by": by, **size, **wanted}}


def checked_statistic(
    domain: Domain,
    kind: str,
    of: object,
    at: Sequence[Exact] | None,
    by: By,
    size: Exact | None,
    wanted: Target | None = None,
) -> Statistic:
    """Check what is asked for against the domain."""
    of_measure = FORMS[kind].of_measure
    if of_measure:
        if not isinstance(of, str) or of not in domain.measures:
            known = ", ".join(domain.measures) or "none is declared"
            raise refuse("of", of, f"a measure of the domain ({known})", MEASURES_ARE_DECLARED)
    else:
        if isinstance(of, str) and of in domain.measures and of not in domain.names:
            advice = f"{of} is a measure: for its quantiles declare an attribute of the same column in bins."
            raise refuse("of", of, f"an attribute of numbers ({', '.join(_numbers(domain)) or 'none is declared'})", advice)
        number_cells(domain, of)
    groups = groups_of(domain, by, "by")
    if not of_measure and of in groups:
        raise InputError(f"{of} cannot be both of and in by: its {kind} by its own values say nothing. Leave it out of by.")
    if at is not None and (isinstance(at, str) or not isinstance(at, Sequence)):
        raise refuse("at", at, 'a list of shares above 0 and at most 1, such as ["0.25", "0.5", "0.75"]')
    shares = tuple(exact("at", share) for share in at or ())
    known_size = None if size is None else exact_positive("size", size)
    return Statistic(kind=kind, of=str(of), by=(*groups,), groups=(*groups.values(),), at=shares, size=known_size, target=wanted)


def statistic_from_json(domain: Domain, value: Mapping[str, Any]) -> Statistic:
    """Read what `Statistic.to_json` wrote."""
    ((kind, asked),) = value.items()
    one_of("the kind of a statistic", kind, tuple(FORMS))
    wanted = target(margin=asked.get("margin"), rmse=asked.get("rmse"))
    return checked_statistic(domain, kind, asked["of"], asked.get("at"), asked["by"], asked.get("size"), wanted)


def number_cells(domain: Domain, attribute: object) -> tuple[Cell, ...]:
    """Lower and upper end of every cell that is a number, exact; as a range of the attribute has them."""
    kind = domain.kind(attribute) if isinstance(attribute, str) else None
    if isinstance(kind, (Bins, Edges)):
        return tuple(zip(kind.edges[:-1], kind.edges[1:], strict=True))
    if isinstance(kind, Integers):
        return tuple((number, number) for number in range(kind.low, kind.high + 1))
    if isinstance(kind, Decimals):
        return tuple((value, value) for value in kind.values)
    allowed = "one of Integers, Decimals, Bins or Edges, whose cells are numbers"
    raise refuse("the attribute of a distribution function", attribute, f"{allowed} ({', '.join(_numbers(domain)) or 'there is none'})")


def _numbers(domain: Domain) -> Iterator[str]:
    return (name for name in domain.names if isinstance(domain.kind(name), (Bins, Edges, Integers, Decimals)))
