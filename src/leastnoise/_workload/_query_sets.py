"""Query sets on one attribute: what is asked along it, as a name with arguments that becomes an operator when the attribute is known."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from leastnoise._check import InputError, one_of, refuse
from leastnoise._domain import Domain, Kind, Label
from leastnoise._linop import Operator
from leastnoise._workload._forms import FORMS, Form

By = Iterable[str | Mapping[str, object]] | Mapping[str, object]
"""Groups: names of attributes, or mappings from an attribute to a query set such as ``level("region")``."""


@dataclass(frozen=True, slots=True)
class QuerySet:
    """What is asked along one attribute."""

    kind: str
    arguments: tuple[tuple[Any, ...], ...] = ()

    def __post_init__(self) -> None:
        argument = FORMS[one_of("a query set", self.kind, tuple(FORMS))].argument
        if bool(argument) != bool(self.arguments):
            raise InputError(
                f"{self.kind} must have {f'at least one {argument}' if argument else 'no arguments'}; got {len(self.arguments)}."
            )

    @property
    def form(self) -> Form:
        """What is known of queries of this kind."""
        return FORMS[self.kind]

    @property
    def word(self) -> str:
        """What names of tables call it: a level by its own name."""
        return str(self.arguments[0][0]) if self.form.named else self.kind

    def name_along(self, attribute: str) -> str:
        """What names of tables call it along an attribute: ``store``, or ``store:region`` for a level."""
        return attribute if self.kind == "identity" else f"{attribute}:{self.word}"

    def key_along(self, attribute: str) -> str:
        """What the column of its labels is called: the attribute, or ``store:region`` for a level, whose groups are no cells of it."""
        return self.name_along(attribute) if self.form.named else attribute

    def to_spec(self) -> object:
        """As a spec writes it and `query_set` reads it."""
        if not self.arguments:
            return self.kind
        return {self.kind: self.arguments[0][0] if self.form.named else [list(argument) for argument in self.arguments]}

    def operator(self, attribute: str, kind: Kind) -> Operator:
        """The queries as an operator over the cells of an attribute."""
        return self.form.operator(attribute, kind, self.arguments)

    def labels(self, attribute: str, kind: Kind) -> tuple[Label, ...]:
        """One label for every row of the operator, as a release prints them."""
        return self.form.labels(attribute, kind, self.arguments)

    def to_json(self) -> dict[str, object]:
        """A JSON value."""
        return {"kind": self.kind, "arguments": [list(argument) for argument in self.arguments]}


@cache
def identity() -> QuerySet:
    """Every cell of the attribute: a histogram.

    >>> ln.identity().kind
    'identity'
    """
    return QuerySet("identity")


def total() -> QuerySet:
    """The sum over the attribute, as if it were not there.

    >>> ln.total().kind
    'total'
    """
    return QuerySet("total")


def prefix() -> QuerySet:
    """All prefix sums: the empirical CDF in counts.

    >>> ln.prefix().kind
    'prefix'
    """
    return QuerySet("prefix")


def all_ranges() -> QuerySet:
    """Every interval of cells.

    >>> ln.all_ranges().kind
    'all_ranges'
    """
    return QuerySet("all_ranges")


def ranges(pairs: Iterable[Sequence[Any]]) -> QuerySet:
    """Given intervals.

    Args:
        pairs: (low, high) each. For Integers, Decimals and Dates values, both included; for Bins and Edges two edges; else cell positions,
            both included.

    >>> ln.ranges([(17, 24), (25, 64)]).arguments
    ((17, 24), (25, 64))
    """
    return QuerySet("ranges", tuple(tuple(pair) for pair in pairs))


def predicates(groups: Iterable[Iterable[Label]]) -> QuerySet:
    """Given sets of cells, by their labels.

    Args:
        groups: lists of labels; a query counts the rows in any cell of its list.

    >>> ln.predicates([["F"], ["F", "M"]]).arguments
    (('F',), ('F', 'M'))
    """
    return QuerySet("predicates", tuple(tuple(group) for group in groups))


def matrix(rows: Iterable[Iterable[int]]) -> QuerySet:
    """Given integer queries, one row each.

    Args:
        rows: whole numbers, one a cell of the attribute; shape (queries, size).

    >>> ln.matrix([[1, 1, 0], [0, 1, -1]]).arguments
    ((1, 1, 0), (0, 1, -1))
    """
    table = tuple(tuple(row) for row in rows)
    if any(isinstance(value, bool) or not isinstance(value, (int, np.integer)) for row in table for value in row):
        raise refuse(
            "matrix", "an entry that is not a whole number", "rows of whole numbers", "Multiply decimals by a power of ten and use weight."
        )
    return QuerySet("matrix", tuple(tuple(int(value) for value in row) for row in table))


def level(name: str) -> QuerySet:
    """Every group of a level of the attribute, such as the regions of its stores.

    Args:
        name: of the level, as the attribute declares it.

    >>> ln.level("region").arguments
    (('region',),)
    """
    if not isinstance(name, str) or not name:
        raise refuse("level", name, "the name of a level")
    return QuerySet("level", ((name,),))


_READ: Mapping[str, Callable[[Any], QuerySet]] = {"ranges": ranges, "predicates": predicates, "matrix": matrix, "level": level}


def query_set(attribute: str, value: object) -> QuerySet:
    """Read a query set as a spec writes it: a word, or a table with one key and its arguments."""
    if isinstance(value, QuerySet):
        return value
    plain = [word for word, form in FORMS.items() if not form.argument]
    if isinstance(value, str) and value in plain:
        return QuerySet(value)
    if isinstance(value, Mapping) and len(value) == 1:
        ((kind, arguments),) = value.items()
        listed = isinstance(arguments, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in arguments)
        if kind in _READ and (listed or FORMS[kind].named):
            return _READ[kind](arguments)
    words = ", ".join(f"'{word}'" for word in plain)
    raise refuse(
        f"the query set on {attribute}",
        value,
        f"{words}, a table with level and its name, or one with one of ranges, predicates and matrix and a list of lists",
    )


def level_names(kind: Kind) -> tuple[str, ...]:
    """The levels of an attribute, those that its dates have included."""
    return tuple(level.name for level in (*kind.levels, *kind.implied_levels))


def cells_of(kind: Kind, wanted: object) -> list[Label]:
    """The cells that are meant by a label, a list of labels, or groups of levels such as ``{"region": "north"}``."""
    if not isinstance(wanted, Mapping):
        return list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]  # type: ignore[list-item]  # checked with the cells
    found: list[Label] = []
    for name, groups in wanted.items():
        own = kind.level(name)
        for group in groups if isinstance(groups, (list, tuple)) else [groups]:
            known = [str(label) for label in own.labels]
            if str(group) not in known:
                listed = ", ".join(known[:_MOST_NAMED]) + ", ..." * (len(known) > _MOST_NAMED)
                raise refuse(f"a group of the level {name!r}", group, f"one of {listed}")
            found += [label for label, place in zip(kind.labels, own.cells, strict=True) if known[place] == str(group)]
    return found


_MOST_NAMED = 20
_GROUPS = ("identity", "level", "ranges", "predicates")


def groups_of(domain: Domain, by: object, what: str) -> dict[str, QuerySet]:
    """The groups along each attribute, in the order of the domain: cells, or those of a level, ranges or predicates.

    They are given as `queries` has them, or as a list of names of attributes and such mappings.
    """
    listed: list[Any] = [by] if isinstance(by, Mapping) else [None] if isinstance(by, str) or not isinstance(by, Iterable) else list(by)
    if not all(isinstance(one, (str, Mapping)) for one in listed):
        advice = f"The groups of a level are asked for as {{ {domain.names[0]} = {{ level = '...' }} }}."
        raise refuse(what, by, f"a list of attributes, such as [{domain.names[0]!r}]", advice)
    given = [pair for one in listed for pair in (one.items() if isinstance(one, Mapping) else [(one, identity())])]
    unknown = sorted({str(name) for name, _ in given if name not in domain.names})
    if unknown:
        owners = [name for name in domain.names if unknown[0] in level_names(domain.kind(name))]
        advice = f"{unknown[0]} is a level: ask for {{ {owners[0]} = {{ level = {unknown[0]!r} }} }}." if owners else ""
        raise refuse(what, ", ".join(unknown), "attributes of " + ", ".join(domain.names), advice)
    sets = {name: query_set(name, asked) for name, asked in given}
    if len(sets) != len(given):
        raise refuse(what, [name for name, _ in given], "attributes without repetitions")
    for name, asked in sets.items():
        if asked.kind not in _GROUPS:
            raise refuse(f"{what} along {name}", asked.kind, "one of " + ", ".join(_GROUPS))
        asked.operator(name, domain.kind(name))  # refuses what does not fit
    return {name: sets[name] for name in domain.names if name in sets}
