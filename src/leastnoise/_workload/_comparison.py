"""A comparison of a count, sum, mean or share in two groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from leastnoise._domain import Domain, UnitCount
from leastnoise._trusted.check import InputError, exact, exact_positive, one_of, refuse
from leastnoise._workload._product import MEASURES_ARE_DECLARED, Product
from leastnoise._workload._query_sets import (
    By,
    QuerySet,
    cells_of,
    groups_of,
    predicates,
    total,
)
from leastnoise._workload._workload import queries

Sets = Mapping[str, QuerySet]
_NEEDS_COUNTS = (
    'Ask for means of {measure} in the workload, or for its sums and with count = "{measure}" for '
    "the number of its values."
)


@dataclass(frozen=True, slots=True)
class Quotient:
    """The queries for a quantity by group: a table, or a quotient of two tables.

    ``denominator`` is None for a count or a sum.
    """

    numerator: Product
    denominator: Product | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """The compared quantity: a count, a sum, a mean or a share.

    Attributes:
        kind: "count", "sum", "mean" or "share".
        measure: the measure of a sum or a mean.
        share_of: for a share, the selected cells of each attribute in the numerator. The
            denominator counts the rows whose values of these attributes are in the domain.
        units: whether privacy units are counted instead of rows.
    """

    kind: Literal["count", "sum", "mean", "share"] = "count"
    measure: str | None = None
    share_of: tuple[tuple[str, QuerySet], ...] = ()
    units: bool = False

    @property
    def name(self) -> str:
        """The name of the quantity in headings, such as ``mean of pay``."""
        if self.kind in ("sum", "mean"):
            return f"{self.kind} of {self.measure}"
        if self.kind == "share":
            conditions = [f"{name}={_cells_text(cells)}" for name, cells in self.share_of]
            return f"share of {', '.join(conditions)}"
        if self.units:
            return "units"
        return "count"

    @property
    def is_quotient(self) -> bool:
        """Whether the quantity is a mean or a share."""
        return self.kind in ("mean", "share")

    def over(self, domain: Domain, sets: Sets) -> Quotient:
        """Return the queries for the quantity in each group of some query sets.

        Raises:
            InputError: the measure has no count of values, which a mean needs; an attribute is
                selected twice; or the domain does not count units in such groups.
        """
        if self.kind == "mean":
            measure = str(self.measure)
            number = domain.count_of(measure)
            if number is None:
                advice = _NEEDS_COUNTS.format(measure=measure)
                raise InputError(
                    f"A mean of {measure} needs its sums and the number of its values. {advice}"
                )
            return Quotient(_table(domain, sets, measure), _table(domain, sets, number))
        if self.kind == "share":
            return self._share_over(domain, sets)
        if self.kind == "count" and self.units:
            return Quotient(_table(domain, sets, _units_measure(domain, sets)))
        return Quotient(_table(domain, sets, self.measure))

    def _share_over(self, domain: Domain, sets: Sets) -> Quotient:
        """Return the queries for the share of selected cells in each group."""
        repeated = [name for name, _ in self.share_of if name in sets]
        if repeated:
            raise InputError(
                f"{repeated[0]} is selected twice: for the share and for the groups. Use it once."
            )
        selected = {**sets, **dict(self.share_of)}
        everything = {**sets, **{name: all_published(domain, name) for name, _ in self.share_of}}
        return Quotient(_table(domain, selected, None), _table(domain, everything, None))

    def to_json(self) -> dict[str, Any]:
        """Return the quantity as a JSON object."""
        return {
            "kind": self.kind,
            "measure": self.measure,
            "share_of": {name: cells.to_spec() for name, cells in self.share_of},
            "units": self.units,
        }


def _cells_text(cells: QuerySet) -> str:
    """Return the labels of a query set's cells as text, such as ``A or B``."""
    return " or ".join(map(str, cells.arguments[0]))


def _table(domain: Domain, sets: Sets, measure: str | None) -> Product:
    """Return the table that counts rows or sums a measure by some query sets."""
    return queries(domain, dict(sets), sum=measure).products[0]


def _units_measure(domain: Domain, sets: Sets) -> str:
    """Return the name of the measure that counts units by these attributes."""
    attributes = tuple(name for name in domain.names if name in sets)
    for cell in (attributes, ()):
        for name, measure in domain.measures.items():
            if isinstance(measure, UnitCount) and measure.attributes == cell:
                return name
    raise InputError(
        f"Units by {' and '.join(attributes) or 'nothing'} were not counted. Ask for this table "
        'with count = "units" in the workload.'
    )


def all_published(domain: Domain, name: str) -> QuerySet:
    """Return one query that adds up all published cells of an attribute."""
    kind = domain.kind(name)
    if kind.hidden:
        return predicates([kind.labels])
    return total()


def read_quantity(
    domain: Domain,
    *,
    mean: str | None = None,
    sum: str | None = None,  # noqa: A002 - the word of `queries`
    share: Mapping[str, object] | None = None,
    count: str = "rows",
) -> Quantity:
    """Return the quantity that one of the arguments states, by default a count.

    Raises:
        InputError: two of the arguments are stated, there is no such measure, or a share selects no
            cells.
    """
    named = {
        name: value
        for name, value in (("mean", mean), ("sum", sum), ("share", share))
        if value is not None
    }
    one_of("count", count, ("rows", "units"))
    if len(named) > 1 or (named and count == "units"):
        measures = [*named, *(["count"] if count == "units" else [])]
        raise refuse(
            "the compared quantity",
            " and ".join(measures),
            "one of mean, sum, share and count = 'units'",
        )
    if share is not None:
        if not isinstance(share, Mapping) or not share:
            raise refuse("share", share, "a mapping from attributes to cells, such as {'sex': 'F'}")
        return Quantity(
            kind="share",
            share_of=tuple(
                (name, selected_cells(domain, name, cells, "share"))
                for name, cells in share.items()
            ),
        )
    for kind, measure in named.items():
        if not isinstance(measure, str) or measure not in domain.measures:
            listing = ", ".join(domain.measures) or "none is declared"
            raise refuse(
                kind, measure, f"a measure of the domain ({listing})", MEASURES_ARE_DECLARED
            )
        return Quantity(kind="mean" if kind == "mean" else "sum", measure=measure)
    return Quantity(units=count == "units")


def selected_cells(domain: Domain, name: object, cells: object, argument_name: str) -> QuerySet:
    """Return one query that adds up the selected cells of an attribute.

    Args:
        domain: the attributes that ``name`` may be one of.
        name: the attribute.
        cells: a label, a list of labels, or a level with its groups: ``{"region": "north"}``.
        argument_name: the argument of the user's call that messages name.
    """
    if not isinstance(name, str) or name not in domain.names:
        raise refuse(f"the attribute of {argument_name}", name, "one of " + ", ".join(domain.names))
    kind = domain.kind(name)
    labels = cells_of(kind, cells)
    if not labels:
        raise refuse(f"the cells of {argument_name}", cells, f"at least one cell of {name}")
    selected = predicates([labels])
    selected.operator(name, kind)  # refuses a label that is none
    return selected


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of a quantity in one group with the quantity in another group.

    Attributes:
        quantity: the compared quantity.
        along: the attribute that divides the two groups.
        group: the cells of the first group along it.
        against: the cells of the second group, whose numbers are subtracted.
        by: the attributes that define further groups, with query sets; the comparison is repeated
            within each of these groups.
    """

    quantity: Quantity
    along: str
    group: QuerySet
    against: QuerySet
    by: tuple[tuple[str, QuerySet], ...] = ()

    @property
    def name(self) -> str:
        """The name of the comparison: ``mean of pay, arm=B against arm=A``."""
        groups = f"{self.along}={_cells_text(self.group)} against {self.against_text}"
        names = [cells.name_along(name) for name, cells in self.by]
        return f"{self.quantity.name}, {groups}" + (f" by {' x '.join(names)}" if names else "")

    @property
    def against_text(self) -> str:
        """The second group as text, such as ``arm=A``."""
        return f"{self.along}={_cells_text(self.against)}"

    def sides(self, domain: Domain) -> tuple[Quotient, Quotient]:
        """Return the queries for the first group and the queries for the second."""
        first, second = (
            self.quantity.over(domain, {**dict(self.by), self.along: cells})
            for cells in (self.group, self.against)
        )
        return first, second

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a JSON object."""
        return {
            "quantity": self.quantity.to_json(),
            "along": self.along,
            "group": self.group.to_spec(),
            "against": self.against.to_spec(),
            "by": {name: cells.to_spec() for name, cells in self.by},
        }


def read_comparison(
    domain: Domain,
    along: object,
    group: object,
    against: object,
    *,
    by: By = (),
    quantity: Quantity,
) -> Comparison:
    """Check the arguments of a comparison of two groups, and return it.

    Raises:
        InputError: there is no such attribute or cell; the groups overlap; or an attribute is used
            twice.
    """
    first = selected_cells(domain, along, group, "group")
    second = selected_cells(domain, along, against, "against")
    name = str(along)
    kind = domain.kind(name)
    overlap = kind.names.cells("group", first.arguments[0])
    shared = {*overlap} & {*kind.names.cells("against", second.arguments[0])}
    if shared:
        raise refuse(
            "the groups of a comparison",
            "two with a cell in common",
            "two without a common cell",
            "For a part compared with its whole ask for shares.",
        )
    sets = groups_of(domain, by, "the groups of a comparison")
    used = [*sets, *(attribute for attribute, _ in quantity.share_of)]
    if name in used or len({*used}) < len(used):
        raise InputError(
            f"An attribute is used twice in a comparison along {name}. Use each attribute in "
            "only one of along, by and share."
        )
    return Comparison(
        quantity=quantity, along=name, group=first, against=second, by=tuple(sets.items())
    )


@dataclass(frozen=True, slots=True)
class SeparateGroups:
    """Several groups along an attribute; each is compared with the same group.

    Attributes:
        key: the name of the column with the labels, such as ``arm`` or ``store:region``.
        labels: the label of each group.
        selections: the cells of each group, as for a comparison of two groups.
    """

    key: str
    labels: tuple[str | int, ...]
    selections: tuple[object, ...]


def separate_groups(along: object, groups: object) -> SeparateGroups:
    """Return the groups of a selection that are compared separately.

    Args:
        along: the attribute.
        groups: a list of groups, where each is a label, a list of labels or a group of a level; or
            several groups of a level: ``{"region": ["north", "south"]}``.

    Raises:
        InputError: there are no groups, or two of them have the same label.
    """
    selections: list[object] = []
    if isinstance(groups, Mapping):
        for level_name, names in groups.items():
            listed = names if isinstance(names, (list, tuple)) else [names]
            selections += [{level_name: name} for name in listed]
    elif isinstance(groups, (list, tuple)):
        selections += groups
    labels = [_label_of_group(selection) for selection in selections]
    if not labels or len({*map(str, labels)}) < len(labels):
        raise refuse(
            "group",
            groups,
            "a list of groups, none twice",
            "With each=True every group of the list is compared separately.",
        )
    levels = [[*selection] if isinstance(selection, Mapping) else [] for selection in selections]
    key = str(along)
    if levels[0] and all(names == levels[0] for names in levels):
        key = f"{along}:{levels[0][0]}"
    return SeparateGroups(key, tuple(labels), tuple(selections))


def _label_of_group(selection: object) -> str | int:
    """Return the label of one group: its cells, or its name in a level."""
    if isinstance(selection, Mapping):
        selection = [*selection.values()]
    if isinstance(selection, (list, tuple)):
        return " or ".join(str(_label_of_group(cells)) for cells in selection)
    if isinstance(selection, int) and not isinstance(selection, bool):
        return selection
    return str(selection)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonTarget:
    """The largest allowed error of a comparison, in groups of a public size.

    Attributes:
        comparison: the comparison.
        form: "difference" or "ratio".
        kind: "margin", the half width of the interval, or "rmse", the standard error.
        most: the largest error, in rows, in amounts of the measure, or as a ratio.
        size: the public number of rows of the smaller group (of rows with a value, for means); None
            for a difference of counts or sums, because its error does not depend on the size.
        value: the expected mean, share or sum of the group in ``against``; None if none is stated.
        ratio: the expected ratio.
    """

    comparison: Comparison
    form: Literal["difference", "ratio"]
    kind: Literal["margin", "rmse"]
    most: Fraction
    size: Fraction | None = None
    value: Fraction | None = None
    ratio: Fraction = Fraction(1)

    @property
    def name(self) -> str:
        """The name of the target: ``difference of mean of pay, arm=B against arm=A``."""
        return f"{self.form} of {self.comparison.name}"

    def to_json(self) -> dict[str, Any]:
        """Return the target as a JSON object."""
        return {
            self.form: self.comparison.to_json(),
            self.kind: str(self.most),
            "size": None if self.size is None else str(self.size),
            "value": None if self.value is None else str(self.value),
            "expected_ratio": str(self.ratio),
        }


_COMPARISON_KEYS = ("along", "group", "against", "by", "mean", "sum", "share", "count")
_TARGET_KEYS = ("margin", "rmse", "size", "value", "expected_ratio")


def read_comparison_target(domain: Domain, form: str, table: Mapping[str, Any]) -> ComparisonTarget:
    """Parse the target of a difference or a ratio from a spec's table.

    Raises:
        InputError: a key is unknown or missing, or a value is not allowed.
    """
    if not isinstance(table, Mapping):
        raise refuse(form, table, "a table with along, group, against and a margin or rmse")
    allowed = (*_COMPARISON_KEYS, *_TARGET_KEYS)
    unknown = [key for key in table if key not in allowed]
    if unknown:
        raise refuse(f"a key of {form}", unknown[0], f"one of {', '.join(allowed)}")
    missing = [key for key in ("along", "group", "against") if key not in table]
    if missing:
        raise InputError(f"{form} must have {missing[0]}; it has {', '.join(table) or 'nothing'}.")
    errors = [key for key in ("margin", "rmse") if key in table]
    if len(errors) != 1:
        raise refuse(
            f"the target of a {form}", " and ".join(errors) or "none", "one of margin and rmse"
        )
    names = ("mean", "sum", "share", "count")
    quantity = read_quantity(domain, **{name: table[name] for name in names if name in table})
    comparison = read_comparison(
        domain,
        table["along"],
        table["group"],
        table["against"],
        by=table.get("by", ()),
        quantity=quantity,
    )
    numbers = {
        key: exact_positive(key, table[key]) for key in ("size", "expected_ratio") if key in table
    }
    target = ComparisonTarget(
        comparison=comparison,
        form="difference" if form == "difference" else "ratio",
        kind="margin" if errors[0] == "margin" else "rmse",
        most=exact_positive(errors[0], table[errors[0]]),
        size=numbers.get("size"),
        value=None if "value" not in table else exact("value", table["value"]),
        ratio=numbers.get("expected_ratio", Fraction(1)),
    )
    _check_public_numbers(target)
    return target


def _check_public_numbers(target: ComparisonTarget) -> None:
    """Raise if the error depends on a public number that is not stated."""
    quantity = target.comparison.quantity
    if quantity.is_quotient and target.size is None:
        raise InputError(
            f"The error of a {target.form} of {quantity.kind}s depends on the number of rows of "
            "the two groups: state a public size, for example size = 1000."
        )
    if target.form == "ratio" and quantity.kind == "count" and target.size is None:
        raise InputError(
            "The error of a ratio of counts depends on the count of the group in 'against': state "
            "a public size for it, for example size = 1000."
        )
    if quantity.kind == "count" and target.value is not None:
        raise refuse(
            f"a key of {target.form}",
            "value",
            "left out for counts",
            "It is the expected mean, share or sum in 'against'; state an expected count as size.",
        )
    if target.form == "ratio" and quantity.kind != "count" and target.value is None:
        raise InputError(
            f"The error of a ratio of {quantity.kind}s depends on the {quantity.kind} of the group "
            "in 'against': state a public value for it, for example value = 0.1."
        )


def read_comparison_targets(domain: Domain, table: object) -> tuple[ComparisonTarget, ...]:
    """Parse the targets of all differences and ratios in [targets]."""
    forms = ("difference", "ratio")
    if not isinstance(table, Mapping) or not table or not {*table} <= {*forms}:
        received = ", ".join(map(str, table)) if isinstance(table, Mapping) else table
        raise refuse("[targets]", received, "a table with difference, ratio or both")
    targets = []
    for form, entry in table.items():
        entries: Sequence[Any] = entry if isinstance(entry, list) else [entry]
        targets += [read_comparison_target(domain, form, each) for each in entries]
    return tuple(targets)
