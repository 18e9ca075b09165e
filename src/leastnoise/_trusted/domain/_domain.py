"""Define the domain of a table: its attributes and its measures."""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

from leastnoise._trusted.check import Immutable, InputError, InternalError, one_of, refuse, whole
from leastnoise._trusted.domain._cells import (
    MOST_CELLS,
    KeyTable,
    Rule,
    kind_of_argument,
    plain_json,
    read_domain_parts,
    rule_of,
)
from leastnoise._trusted.domain._measure import (
    CompleteCount,
    DeviationProduct,
    Measure,
    PerUnit,
    SquaredDeviation,
    UnitCount,
    UnitTotal,
    ValueCount,
    Weighted,
)
from leastnoise._trusted.domain._reading import attribute_name
from leastnoise._trusted.domain.helpers._kind import Kind, attribute_pairs, domain_text

_MEASURES = (
    Measure,
    CompleteCount,
    DeviationProduct,
    SquaredDeviation,
    UnitCount,
    UnitTotal,
    ValueCount,
    Weighted,
)


class Domain(Immutable):
    """Ordered attributes, each with a finite and public list of cells.

    Domains are immutable, and compare and hash by value.

    Args:
        attributes: a mapping from column name to kind; alternatively, pass the attributes as
            keywords. A list stands for `Categories`.
        measures: a mapping from a name to a `Measure`, which is a column that may be summed.
        **kinds: attributes whose names are Python names.

    Attributes:
        names: the attributes' names, in order.
        shape: the number of cells of each attribute.
        size: the number of cells of the whole domain, exact.

    Raises:
        InputError: there is no attribute; an attribute occurs twice; a name is empty; or a value is
            not a kind.

    Edge cases: ``size`` is the product of the sizes as a Python integer, of any magnitude. No
        object of that size is created.

    >>> people = ln.Domain(
    ...     sex=["F", "M"],
    ...     age=ln.Integers(17, 90),
    ...     measures={"pay": ln.Measure("income", 0, 200_000)},
    ... )
    >>> people.names, people.shape, people.size
    (('sex', 'age'), (2, 74), 148)
    >>> people.measures["pay"].largest
    200000
    """

    __slots__ = ("_by_name", "_hash", "_kinds", "_measures", "_sizes", "names", "shape", "size")

    names: tuple[str, ...]
    shape: tuple[int, ...]
    size: int
    _kinds: tuple[tuple[str, Kind], ...]
    _measures: tuple[tuple[str, Measure], ...]
    # Lookups that every table of a workload needs, made once.
    _by_name: Mapping[str, Kind]
    _sizes: Mapping[str, int]
    _hash: int

    def __init__(
        self,
        attributes: Mapping[str, Kind | Iterable[str | int]]
        | Iterable[tuple[str, Kind | Iterable[str | int]]]
        | None = None,
        /,
        *,
        measures: Mapping[str, Measure] | None = None,
        **kinds: Kind | Iterable[str | int],
    ) -> None:
        pairs = [*attribute_pairs(attributes), *kinds.items()]
        if not pairs:
            raise InputError(
                "a domain must have at least one attribute; got none. Name one, for example "
                "Domain(sex=['F', 'M'])."
            )
        checked = _checked_kinds(pairs)
        checked_measures = _checked_measures(measures, checked)
        entries = tuple(checked.items())
        # The sizes are read once: encoding, counting and costs use the sizes that are checked here.
        sizes = {
            name: whole(f"the number of cells of {name!r}", kind.size, 1, MOST_CELLS)
            for name, kind in entries
        }
        facts = {
            "names": tuple(checked),
            "shape": tuple(sizes.values()),
            "size": math.prod(sizes.values()),
            "_kinds": entries,
            "_measures": checked_measures,
            "_by_name": MappingProxyType(checked),
            "_sizes": MappingProxyType(sizes),
            "_hash": hash((entries, checked_measures)),
        }
        for field, fact in facts.items():
            object.__setattr__(self, field, fact)

    def cells(self, name: str) -> int:
        """Return the number of cells of an attribute.

        The number was checked when the domain was created.

        >>> ln.Domain(sex=["F", "M"]).cells("sex")
        2
        """
        return self._sizes[self._checked_name(name)]

    @property
    def measures(self) -> dict[str, Measure]:
        """The columns that may be summed, by name (a copy)."""
        return dict(self._measures)

    def kind(self, name: str) -> Kind:
        """Return the kind of an attribute.

        Args:
            name: the name of the attribute or measure.

        Returns:
            The kind.

        Raises:
            InputError: there is no such attribute.

        >>> ln.Domain(sex=["F", "M"]).kind("sex").size
        2
        """
        return self._by_name[self._checked_name(name)]

    def _checked_name(self, name: str) -> str:
        """Check that the domain has an attribute of this name, and return it."""
        if isinstance(name, str) and name in self._by_name:
            return name
        return one_of("an attribute", name, self.names)

    def rule(self, name: str) -> Rule:
        """Return the rule that maps values of an attribute to cells.

        Every cell of the rule is a cell of the domain.

        Raises:
            InputError: there is no such attribute, or its categories are still unknown.

        >>> ln.Domain(zone=ln.Coded(3)).rule("zone").table.high
        2
        """
        rule = self._checked_rule(name)
        if isinstance(rule.table, KeyTable):
            raise InputError(
                f"The categories of {self.kind(name)!r} are not known yet. Find them first, with "
                "`leastnoise categories` or leastnoise.find_categories."
            )
        return rule

    def keys(self, name: str) -> Rule:
        """Return the rule that reads the keys of an attribute for a search.

        The rule determines how keys are read, and which keys can be found.

        Raises:
            InputError: there is no such attribute, or its categories are known.

        >>> ln.Domain(agent=ln.Unknown(9)).keys("agent").table
        KeyTable(max_length=200)
        """
        rule = self._checked_rule(name)
        if not isinstance(rule.table, KeyTable):
            raise refuse(
                f"the attribute {name!r}",
                self.kind(name),
                "Unknown",
                "The categories of the others are known.",
            )
        return rule

    def _checked_rule(self, name: str) -> Rule:
        """Return the rule of an attribute.

        Raises:
            InternalError: the rule and the attribute have different numbers of cells.
        """
        rule = rule_of(self.kind(name))
        if type(rule) is not Rule or rule.size != self.cells(name):
            raise InternalError(
                f"the rule of {name!r} must be about its own cells; please report this."
            )
        return rule

    def largest_value(self, measure: str | None) -> int:
        """Return the largest amount by which one row can change a sum.

        The amount is in units of the measure; for counts of rows, it is 1.

        >>> people = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("income", 0, 10)})
        >>> people.largest_value("pay"), people.largest_value(None)
        (10, 1)
        """
        if measure is None:
            return 1
        return self.measure(measure).largest

    def measure(self, name: str) -> Measure:
        """Return a measure by its name.

        Args:
            name: the name of the attribute or measure.

        Returns:
            The measure.

        Raises:
            InputError: there is no such measure.

        >>> domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("income", 0, 10)})
        >>> domain.measure("pay").column
        'income'
        """
        measures = dict(self._measures)
        if not measures:
            advice = "Add it, for example measures={'pay': Measure('income', 0, 200000)}."
            raise refuse("a measure", name, "declared in the domain, which has none", advice)
        return measures[one_of("a measure", name, measures)]

    def count_of(self, measure: str) -> str | None:
        """Return the measure that counts the values of a measure, by name, or None.

        The result is None if there is no such measure; rows are then counted instead. The result is
        also None if the measure has amounts of units.

        >>> pay = ln.Measure("income", 0, 10)
        >>> measures = {"pay": pay, "count of pay": ValueCount(pay)}
        >>> ln.Domain(sex=["F", "M"], measures=measures).count_of("pay")
        'count of pay'
        """
        summed = self.measure(measure)
        if isinstance(summed, PerUnit):
            return None
        if isinstance(summed, (CompleteCount, DeviationProduct)):
            count_measure: Measure = CompleteCount(summed.present)
        elif isinstance(summed, Weighted):
            count_measure = Weighted(ValueCount(summed.of), summed.weight)
        elif isinstance(summed, SquaredDeviation):
            count_measure = ValueCount(summed.of)
        else:
            count_measure = ValueCount(summed)
        return next(
            (name for name, measure_kind in self._measures if measure_kind == count_measure), None
        )

    def as_complete(self, *names: str) -> "Domain":
        """Return a copy of the domain that declares the named attributes complete.

        The data holder declares that no value of a complete attribute is dropped.

        Args:
            names: the names of attributes; if there is none, all attributes.

        Raises:
            InputError: there is no such attribute.

        >>> ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9)).as_complete("sex").kind("sex")
        Categories(['F', 'M'], complete=True)
        """
        if names:
            attribute_names = {*map(self._checked_name, names)}
        else:
            attribute_names = {*self.names}
        kinds = {
            name: kind.as_complete() if name in attribute_names else kind
            for name, kind in self._kinds
        }
        return Domain(kinds, measures=self.measures)

    def to_json(self) -> dict[str, Any]:
        """Convert the domain to plain JSON values.

        Fractions are texts such as ``"1/3"``.

        Returns:
            A new dictionary, equal for equal domains.

        >>> ln.Domain(zone=ln.Coded(3)).to_json()
        {'attributes': [{'name': 'zone', 'kind': 'coded', 'size': 3}], 'measures': []}
        """
        return {
            "attributes": [{"name": name, **plain_json(kind)} for name, kind in self._kinds],
            "measures": [{"name": name, **plain_json(measure)} for name, measure in self._measures],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Domain":
        """Read and check a domain from the JSON values that `to_json` wrote.

        Args:
            value: the dictionary.

        Returns:
            The domain.

        Raises:
            InputError: a key is missing or unknown, or `Domain` refuses a value.

        >>> people = ln.Domain(
        ...     sex=["F", "M"], pay=ln.Bins(0, "1.5", 3), measures={"pay": ln.Measure("pay", 0, 10)}
        ... )
        >>> ln.Domain.from_json(people.to_json()) == people
        True
        """
        kinds, measures = read_domain_parts(value)
        return cls(kinds, measures=measures)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        same_kinds = self._hash == other._hash and (self._kinds, self._measures) == (
            other._kinds,
            other._measures,
        )
        return self is other or (same_kinds and self.shape == other.shape)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return domain_text(self._by_name, dict(self._measures))

    def __copy__(self) -> "Domain":
        return self

    def __deepcopy__(self, memo: object) -> "Domain":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Domain.from_json, (self.to_json(),)


def _checked_kinds(
    pairs: Iterable[tuple[str, Kind | Iterable[str | int]]],
) -> dict[str, Kind]:
    """Return the kind of each attribute; raise if a name or a kind is unusable."""
    kinds: dict[str, Kind] = {}
    for pair_name, value in pairs:
        name = attribute_name("the name of an attribute", pair_name)
        if name in kinds:
            raise InputError(
                f"attributes must have different names; got {name!r} twice. Give one of them "
                "another name."
            )
        kind = kind_of_argument(value)
        if type(kind) not in rule_of.registry or type(kind) is object:
            allowed = (
                "a list of categories, Categories, Integers, Decimals, Bins, Edges, Dates, "
                "Coded or Unknown"
            )
            raise refuse(f"the attribute {name!r}", kind, allowed, _kind_advice(kind))
        kinds[name] = cast(Kind, kind)
    return kinds


def _checked_measures(
    measures: Mapping[str, Measure] | None, kinds: Mapping[str, Kind]
) -> tuple[tuple[str, Measure], ...]:
    """Return the measures by their names, and raise for unusable measures.

    Raises:
        InputError: they do not fit the attributes.
    """
    if measures is not None and not isinstance(measures, Mapping):
        raise refuse("measures", measures, "a mapping from a name to a Measure")
    named = tuple(
        (attribute_name("the name of a measure", name), measure)
        for name, measure in (measures or {}).items()
    )
    for name, measure in named:
        if type(measure) not in _MEASURES:
            raise refuse(
                f"the measure {name!r}",
                measure,
                "a Measure",
                "Write for example Measure('income', 0, 200000).",
            )
        if isinstance(measure, PerUnit) and not {*measure.attributes} <= {*kinds}:
            raise refuse(
                f"the attributes of {name!r}", list(measure.attributes), "attributes of the domain"
            )
        if isinstance(measure, UnitCount):
            _check_groups(name, measure, kinds)
    return named


def _check_groups(name: str, unit_count: UnitCount, kinds: Mapping[str, Kind]) -> None:
    """Raise if a measure counts units in groups of cells that do not exist."""
    for attribute, groups in zip(unit_count.attributes, unit_count.groups, strict=True):
        last = max((group[-1] for group in groups or ()), default=0)
        if not last < kinds[attribute].size:
            raise refuse(
                f"a group of {name!r}", f"the cell {last} of {attribute}", "cells of the attribute"
            )


def _kind_advice(value: object) -> str:
    """Return advice for the user of a value that is not a kind, or ""."""
    if isinstance(value, Measure):
        return "Name the measure in measures={...}."
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return f"For the codes 0 to {value - 1} write ln.Coded({value})."
    return ""
