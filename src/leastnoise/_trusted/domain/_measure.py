"""Define measures (columns to be summed) and the bound on rows per cell."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from leastnoise._trusted.check import (
    Exact,
    InputError,
    exact,
    exact_python_source,
    message,
    number_text,
    plain,
    refuse,
    whole,
)
from leastnoise._trusted.domain._cells import MOST_CELLS, READ_AS_IT_IS
from leastnoise._trusted.domain._reading import Reading, attribute_name

# Numerator and denominator of a unit can be represented as doubles.
LEAST_UNIT = Fraction(1, 10**100)
MOST_UNITS = 2**30 - 1
"""The largest bound of a measure in units: sums of 2^32 such rows stay below 2^62."""
Groups: TypeAlias = tuple[tuple[int, ...], ...]
_MOST_NAMES = 8  # blocks of contrasts are split along each of them
_MOST_FACTORS = 2  # of a product whose amount stays within 64 bits while it is computed


@dataclass(frozen=True, slots=True, init=False)
class PerCellBound:
    """A bound on the rows of one unit that fall into one cell.

    Under Gaussian noise, the bound reduces the cost of tables that have all attributes of the
    bound.

    Args:
        rows: the largest number of rows of a unit that count in one cell.
        attributes: one name or several names; their values together identify the cell.

    Raises:
        InputError: ``rows`` is below 1, or there is no attribute, a repeated attribute, or more
            than 8.

    >>> ln.PerCellBound(1, "month")
    PerCellBound(rows=1, attributes=('month',))
    """

    rows: int
    attributes: tuple[str, ...]

    def __init__(self, rows: int, attributes: str | Sequence[str]) -> None:
        listed_names = (attributes,) if isinstance(attributes, str) else attributes
        names = tuple(map(plain, listed_names if isinstance(listed_names, Sequence) else ()))
        if not (
            0 < len(names) <= _MOST_NAMES
            and all(isinstance(name, str) and name for name in names)
            and len(set(names)) == len(names)
        ):
            raise refuse(
                "the attributes of max_per_cell",
                list(names),
                f"1 to {_MOST_NAMES} names of attributes, none twice",
            )
        object.__setattr__(self, "rows", whole("max_per_cell", rows, 1))
        object.__setattr__(self, "attributes", names)

    def to_json(self) -> dict[str, int | list[str]]:
        """Return the values for a JSON object.

        >>> ln.PerCellBound(1, "month").to_json()
        {'rows': 1, 'attributes': ['month']}
        """
        return {"rows": self.rows, "attributes": list(self.attributes)}


@dataclass(frozen=True, slots=True)
class Measure:
    """A numeric column to be summed.

    Every value is clipped to public bounds and converted to whole multiples of a unit.

    Args:
        column: the name of the column.
        low: the lower bound to which values are clipped: exact, a multiple of ``unit``.
        high: the upper bound to which values are clipped: above ``low``, a multiple of ``unit``.
        unit: the amount that counts as one, exact and above 0. With ``"0.01"``, sums are in cents;
            with ``"1000"``, they are in thousands.
        reading: how numbers are read from texts.

    Attributes:
        low_units: the lower bound in units.
        high_units: the upper bound in units.
        largest: the largest amount, in units, that one row can add to a sum or subtract from it.

    Raises:
        InputError: a bound is not finite or not a multiple of the unit; ``low`` is not below
            ``high``; or a bound is beyond 2^30 - 1 units. The limit of 2^30 - 1 units is the
            largest for which sums over 2^32 rows are exact.

    Guarantees: every value contributes a whole number of units between ``low_units`` and
        ``high_units``. The value is clipped, and then rounded to the nearest multiple of the unit
        (in double precision, ties to the even multiple). A row contributes 0 if it has no value: a
        null, or a text that is not a number. Therefore one row changes a sum by at most ``largest``
        units.

    >>> pay = ln.Measure("income", 0, 200_000, unit="0.01")
    >>> pay.low_units, pay.high_units, pay.largest
    (0, 20000000, 20000000)
    """

    column: str
    low: Fraction
    high: Fraction
    unit: Fraction
    reading: Reading = READ_AS_IT_IS
    low_units: int = field(init=False, compare=False)
    high_units: int = field(init=False, compare=False)
    largest: int = field(init=False, compare=False)

    def __init__(
        self,
        column: str,
        low: Exact,
        high: Exact,
        unit: Exact = "1",
        *,
        reading: Reading = READ_AS_IT_IS,
    ) -> None:
        if type(reading) is not Reading or reading.column is not None:
            raise refuse(
                "reading",
                reading,
                "a Reading without a column",
                "The column of a measure is its first argument.",
            )
        source = attribute_name("the column of a measure", column)
        first = exact("low", low)
        last = exact("high", high)
        step = exact("unit", unit)
        if not LEAST_UNIT <= step <= 1 / LEAST_UNIT:
            raise refuse("unit", unit, "a number above 0, between 1e-100 and 1e100")
        if not first < last:
            raise InputError(
                message(
                    "low must be below high; got low {low} and high {high}.", low=first, high=last
                )
            )
        for name, value in (("low", first), ("high", last)):
            if (value / step).denominator != 1:
                raise refuse(
                    name,
                    number_text(value),
                    message("a whole multiple of the unit {unit}", unit=step),
                    "Choose another bound or unit.",
                )
            _check_units(name, value, step)
        units = {
            "low_units": int(first / step),
            "high_units": int(last / step),
            "largest": int(max(abs(first), abs(last)) / step),
        }
        for name, fact in {
            "column": source,
            "low": first,
            "high": last,
            "unit": step,
            "reading": reading,
            **units,
        }.items():
            object.__setattr__(self, name, fact)

    def __repr__(self) -> str:
        if self.unit == 1:
            unit = []
        else:
            unit = [f"unit={exact_python_source(self.unit)}"]
        if self.reading != READ_AS_IT_IS:
            unit.append(f"reading={self.reading!r}")
        bounds = [exact_python_source(self.low), exact_python_source(self.high)]
        return f"{type(self).__name__}({', '.join([repr(self.column), *bounds, *unit])})"


def _check_units(name: str, value: Fraction, unit: Fraction) -> None:
    """Raise if sums over 2^32 rows would not be exact with this bound.

    The message names a unit that is large enough.
    """
    if abs(value / unit) <= MOST_UNITS:
        return
    larger = unit
    while abs(value / larger) > MOST_UNITS:
        larger *= 10
    raise refuse(
        name,
        number_text(value),
        f"between -{MOST_UNITS} and {MOST_UNITS} units of {number_text(unit)}, so that sums of "
        "2^32 rows are exact",
        f"Choose smaller bounds or a larger unit, such as {number_text(larger)}.",
    )


@dataclass(frozen=True, init=False, repr=False)
class ValueCount(Measure):
    """A measure that counts the rows with a value of another measure.

    A row with a value counts 1, a row without a value 0.

    Args:
        of: the other measure; measures with the same column and reading have the same values.

    Guarantees: a row counts 1 if and only if a sum of the other measure includes its value.

    >>> ValueCount(Measure("income", 0, 200_000)), ValueCount(Measure("income", 0, 10)).largest
    (ValueCount('income', 0, 1), 1)
    """

    def __init__(self, of: Measure) -> None:
        super().__init__(of.column, 0, 1, reading=of.reading)


@dataclass(frozen=True, init=False, repr=False)
class PerUnit(Measure):
    """The amount that one privacy unit adds to each cell of some attributes.

    In each of these cells, one row of the unit has this amount, and the other rows of the unit have
    the amount 0. A unit has an amount in at most ``max_rows`` cells, regardless of the number of
    its rows in them.

    Attributes:
        attributes: at most 8 attributes, whose values together identify a cell. If there are none,
            all rows of a unit are in one cell.

    Guarantees: the amounts of a unit's rows depend only on the rows of this unit.
    """

    attributes: tuple[str, ...] = ()

    def _set_attributes(self, attributes: Sequence[str]) -> None:
        """Check the attributes of the count, and store them."""
        if attributes:
            names = PerCellBound(1, attributes).attributes
        else:
            names = ()
        object.__setattr__(self, "attributes", names)


@dataclass(frozen=True, init=False, repr=False)
class UnitCount(PerUnit):
    """A measure that counts the privacy units in each cell or group of cells.

    The amount of a unit is 1 in each of its cells. Along an attribute with groups, the count of a
    group is stored at one cell, which no other group uses (`places`). This cell is the same for all
    cells of the other attributes.

    Args:
        attributes: at most 8 attributes, whose values together identify a cell. If there are none,
            a unit counts once in the whole table.
        groups: for each attribute, None if its cells are counted. Otherwise lists of cells; a unit
            counts once in each list. Groups may overlap. Without ``groups``, cells are counted
            along all attributes.

    Raises:
        InputError: an attribute occurs twice, or there are more than 8; a group has no cell; or
            there are more groups than cells that can store their counts.

    >>> UnitCount(["region"]).attributes, UnitCount().largest
    (('region',), 1)
    >>> UnitCount(["month"], [[[0, 1, 2], [3, 4, 5]]]).places
    ((2, 5),)
    """

    groups: tuple[Groups | None, ...] = ()
    places: tuple[tuple[int, ...] | None, ...] = field(default=(), compare=False)

    def __init__(
        self,
        attributes: Sequence[str] = (),
        groups: Sequence[Sequence[Sequence[int]] | None] | None = None,
    ) -> None:
        super().__init__("units", 0, 1)
        self._set_attributes(attributes)
        if groups is None or all(groups_along is None for groups_along in groups):
            listed: tuple[Groups | None, ...] = (None,) * len(self.attributes)
        else:
            listed = tuple(map(_checked_groups, groups))
        if len(listed) != len(self.attributes):
            raise refuse(
                "groups", len(listed), f"one for each of {len(self.attributes)} attributes"
            )
        positions = tuple(None if along is None else _group_cells(along) for along in listed)
        object.__setattr__(self, "groups", listed)
        object.__setattr__(self, "places", positions)

    @property
    def has_groups(self) -> bool:
        """Whether groups of cells are counted along some attribute."""
        return any(along is not None for along in self.groups)

    def __repr__(self) -> str:
        if self.has_groups:
            return f"UnitCount({list(self.attributes)}, groups={self.groups!r})"
        return f"UnitCount({list(self.attributes)})"


def _checked_groups(groups: Sequence[Sequence[int]] | None) -> Groups | None:
    """Return groups of cells, in order and without repetitions, or None."""
    if groups is None:
        return None
    listed = tuple(
        tuple(sorted({whole("a cell of a group", cell, 0, MOST_CELLS) for cell in group}))
        for group in groups
    )
    if not listed or not all(listed):
        raise refuse("the groups of a count of units", "one without cells", "groups of cells")
    return listed


def _group_cells(groups: Groups) -> tuple[int, ...]:
    """Return, for each group, the number of the cell that stores its count.

    The count is stored at the last cell of the group. If an earlier group uses this cell, the count
    is stored at the nearest cell before it that no earlier group uses. That cell need not belong to
    the group.
    """
    taken_positions: set[int] = set()
    positions = []
    for group in groups:
        position = group[-1]
        while position in taken_positions:
            position -= 1
        if position < 0:
            raise InputError(
                "A count of units has too many groups of cells. The count of a group is stored at "
                "the last cell of the group, or at a free cell before it. There is no free cell "
                "for one of these groups. Ask for fewer groups at once."
            )
        taken_positions.add(position)
        positions.append(position)
    return tuple(positions)


@dataclass(frozen=True, init=False, repr=False)
class UnitTotal(PerUnit):
    """A numeric column that is added up for each privacy unit, then clipped.

    The values of a unit are added up in each cell of some attributes, and each total is clipped.
    If values have heavy tails, clipping totals loses far less of the sum than bounding the rows of
    a unit.

    Args:
        column: the name of the column.
        low: the lower bound to which the total of a unit in a cell is clipped; exact, and a
            multiple of ``unit``.
        high: the upper bound to which this total is clipped; above ``low``, and a multiple of
            ``unit``.
        unit: the amount that counts as one, as for a `Measure`.
        by: at most 8 attributes, whose values together identify a cell. If there are none, each
            unit has one total over all its rows.
        reading: how numbers are read from texts.

    Raises:
        InputError: `Measure` refuses the bounds or the unit, an attribute occurs twice, or there
            are more than 8.

    Guarantees: values are rounded to whole units before they are added up. Totals are therefore
        exact and do not depend on the order of rows. A unit without a value in a cell adds 0.

    >>> revenue = ln.UnitTotal("amount", -500, 2000, by=["month", "region"])
    >>> revenue.attributes, revenue.largest
    (('month', 'region'), 2000)
    """

    def __init__(
        self,
        column: str,
        low: Exact,
        high: Exact,
        unit: Exact = "1",
        *,
        by: Sequence[str] = (),
        reading: Reading = READ_AS_IT_IS,
    ) -> None:
        super().__init__(column, low, high, unit, reading=reading)
        if isinstance(by, str) or not isinstance(by, Sequence):
            raise refuse("by", by, "a list of attributes, such as ['month', 'region']")
        self._set_attributes(by)

    @property
    def row_amount(self) -> Measure:
        """The measure of single rows, before they are added up and clipped.

        Its bounds are the widest bounds that keep sums over 2^32 rows exact.

        >>> ln.UnitTotal("amount", 0, 5, "0.01").row_amount
        Measure('amount', '-10737418.23', '10737418.23', unit='0.01')
        """
        most = MOST_UNITS * self.unit
        return Measure(self.column, -most, most, self.unit, reading=self.reading)

    def __repr__(self) -> str:
        measure = super().__repr__()
        return f"{measure[:-1]}, by={list(self.attributes)})"


@dataclass(frozen=True, init=False, repr=False, kw_only=True)
class Weighted(Measure):
    """A measure whose amounts are multiplied by a weight.

    The product of a `ValueCount` and a weight is the weight of the rows with a value.

    Args:
        of: a `Measure` or a `ValueCount`.
        weight: a `Measure` whose values are not negative.

    Raises:
        InputError: an argument has another type; the weight may be negative; or the product of the
            bounds is beyond 2^30 - 1 units.

    Guarantees: a row counts the product of its two amounts, in whole units. The row counts 0 if one
        of the two amounts has no value.

    >>> paid = Weighted(ln.Measure("income", -10, 100), ln.Measure("weight", 0, 50, unit="0.5"))
    >>> paid, paid.low_units, paid.largest
    (Weighted('income x weight', -500, 5000, unit='0.5'), -1000, 10000)
    """

    of: Measure
    weight: Measure

    def __init__(self, of: Measure, weight: Measure) -> None:
        if type(of) not in (Measure, ValueCount) or type(weight) is not Measure or weight.low < 0:
            raise refuse(
                "a weight",
                weight,
                "a Measure with a lower bound of at least 0, together with a Measure",
                "Declare it with bounds from 0.",
            )
        low = min(of.low, Fraction(0)) * weight.high
        high = max(of.high, Fraction(0)) * weight.high
        unit = of.unit * weight.unit
        for name, value in (("low", low), ("high", high)):
            _check_units(f"{name} of {of.column} times {weight.column}", value, unit)
        super().__init__(f"{of.column} x {weight.column}", low, high, unit)
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "weight", weight)


@dataclass(frozen=True, init=False, repr=False, kw_only=True)
class SquaredDeviation(Measure):
    """The squared distance of a value from the centre of its bounds.

    Variances follow from sums of this measure. The measure is in whole multiples of ``divisor``
    squared units; ``divisor`` is the smallest number that keeps sums over 2^32 rows exact.

    Args:
        of: a `Measure`.

    Attributes:
        centre: the middle of the bounds in units of ``of``, rounded down.
        divisor: the number of squared units of ``of`` in one unit of this measure.

    Raises:
        InputError: ``of`` is another kind of measure, or its squared unit is not between 1e-100 and
            1e100.

    Guarantees: a row counts ``((v - centre)^2 + divisor // 2) // divisor`` for its value v in units
        of ``of``. This number is between 0 and ``high_units``. A row without a value counts 0.

    >>> (
    ...     SquaredDeviation(ln.Measure("income", 0, 100)),
    ...     SquaredDeviation(ln.Measure("income", 0, 200_000)).divisor,
    ... )
    (SquaredDeviation('income - 50', 0, 2500), 10)
    """

    of: Measure
    centre: int = field(init=False, compare=False)
    divisor: int = field(init=False, compare=False)

    def __init__(self, of: Measure) -> None:
        if type(of) is not Measure:
            raise refuse(
                "a squared deviation",
                of,
                "one of a Measure of values of rows",
                "Declare it with bounds, without a weight and without unit_total.",
            )
        centre = (of.low_units + of.high_units) // 2
        largest_square = max(of.high_units - centre, centre - of.low_units) ** 2
        divisor = -(-largest_square // MOST_UNITS)
        unit = divisor * of.unit**2
        if not LEAST_UNIT <= unit <= 1 / LEAST_UNIT:
            raise refuse(
                f"the unit of the measure of {of.column}, squared",
                number_text(of.unit**2),
                "a number between 1e-100 and 1e100",
                "Choose a unit nearer to 1.",
            )
        high = (largest_square + divisor // 2) // divisor * unit
        middle = number_text(centre * of.unit)
        super().__init__(f"{of.column} - {middle}", 0, high, unit)
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "divisor", divisor)


@dataclass(frozen=True, init=False, repr=False, kw_only=True)
class CompleteCount(Measure):
    """A measure that counts the rows with a value of each of several measures.

    Args:
        present: the measures, each a `Measure`; no measure occurs twice.

    Raises:
        InputError: there is no measure, a measure of another kind, or a repeated measure.

    Guarantees: a row counts 1 if the sums of all these measures include its values. Otherwise it
        counts 0.

    >>> CompleteCount([ln.Measure("income", 0, 100), ln.Measure("age", 0, 99)])
    CompleteCount('income x age', 0, 1)
    """

    present: tuple[Measure, ...]

    def __init__(self, present: Sequence[Measure]) -> None:
        measures = _checked_measures("the measures of complete rows", present)
        super().__init__(" x ".join(measure.column for measure in measures), 0, 1)
        object.__setattr__(self, "present", measures)


@dataclass(frozen=True, init=False, repr=False, kw_only=True)
class DeviationProduct(Measure):
    """The product of the distances of values from the centres of their bounds.

    With one factor, the product is the distance. If the same factor occurs twice, the product is
    the square of the distance. Only complete rows count, which are the rows that have a value of
    every measure of a statistic. All sums of a statistic are therefore over the same rows.
    Covariances and regressions are computed from such sums. The measure is in whole multiples of
    ``divisor`` products of units; ``divisor`` is the smallest number that keeps sums over 2^32 rows
    exact.

    Args:
        factors: one or two measures of ``present``; the same measure twice means its square.
        present: distinct measures of class `Measure`; a complete row has a value of each.

    Attributes:
        centres: for each factor, the middle of its bounds in units of this factor, rounded down.
        divisor: the number of products of units in one unit of this measure; 1 for one factor.

    Raises:
        InputError: there is no factor or more than two; a factor is not in ``present``; a measure
            of ``present`` occurs twice or is not of class `Measure`; or a unit is not between
            1e-100 and 1e100.

    Guarantees: a complete row counts ``(p + divisor // 2) // divisor``. Here p is the product of
        the distances of its values from the centres, in units. The number is between ``low_units``
        and ``high_units``. Any other row counts 0.

    >>> pay, age = ln.Measure("income", 0, 100), ln.Measure("age", 20, 60)
    >>> DeviationProduct([pay, age], [pay, age]), DeviationProduct([pay], [pay, age])
    (DeviationProduct('(income - 50) x (age - 40)', -1000, 1000),
     DeviationProduct('(income - 50)', -50, 50))
    """

    factors: tuple[Measure, ...]
    present: tuple[Measure, ...]
    centres: tuple[int, ...] = field(init=False, compare=False)
    divisor: int = field(init=False, compare=False)

    def __init__(self, factors: Sequence[Measure], present: Sequence[Measure]) -> None:
        complete = _checked_measures("the measures of complete rows", present)
        multiplied = tuple(factors)
        is_valid = 1 <= len(multiplied) <= _MOST_FACTORS
        if not is_valid or not all(measure in complete for measure in multiplied):
            raise refuse(
                "the factors of a product",
                list(multiplied),
                f"1 to {_MOST_FACTORS} of the measures of complete rows",
            )
        centres = tuple((factor.low_units + factor.high_units) // 2 for factor in multiplied)
        low_product, high_product = _product_bounds(multiplied, centres)
        divisor = -(-max(-low_product, high_product) // MOST_UNITS)
        unit = Fraction(divisor)
        for factor in multiplied:
            unit *= factor.unit
        if not LEAST_UNIT <= unit <= 1 / LEAST_UNIT:
            columns = " and ".join(factor.column for factor in multiplied)
            raise refuse(
                f"the product of the units of {columns}",
                number_text(unit),
                "a number between 1e-100 and 1e100",
                "Choose units nearer to 1.",
            )
        middles = [
            f"({factor.column} - {number_text(centre * factor.unit)})"
            for factor, centre in zip(multiplied, centres, strict=True)
        ]
        low = (low_product + divisor // 2) // divisor * unit
        high = (high_product + divisor // 2) // divisor * unit
        super().__init__(" x ".join(middles), low, high, unit)
        object.__setattr__(self, "factors", multiplied)
        object.__setattr__(self, "present", complete)
        object.__setattr__(self, "centres", centres)
        object.__setattr__(self, "divisor", divisor)


def _checked_measures(name: str, measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """Return a tuple of measures; raise unless distinct and of class `Measure`."""
    listed = tuple(measures)
    is_of_rows = all(type(measure) is Measure for measure in listed)
    if not listed or not is_of_rows or len(set(listed)) < len(listed):
        raise refuse(
            name,
            list(listed),
            "at least one Measure of values of rows, none twice",
            "Declare them with bounds, without a weight and without unit_total.",
        )
    return listed


def _product_bounds(factors: Sequence[Measure], centres: Sequence[int]) -> tuple[int, int]:
    """Return the least and the largest product of distances from the centres."""
    ends = [
        (factor.low_units - centre, factor.high_units - centre)
        for factor, centre in zip(factors, centres, strict=True)
    ]
    if len(ends) == 1:
        return ends[0]
    first, second = ends
    products = [one * other for one in first for other in second]
    if factors[0] == factors[1]:
        return 0, max(products)  # a square
    return min(products), max(products)


def column_measures(measure: Measure) -> tuple[Measure, ...]:
    """Return the measures of single columns from which a measure is computed.

    For a `SquaredDeviation`, they are the measure of the value and the `ValueCount` of this
    measure. For a `DeviationProduct`, they are its factors and the `ValueCount` of each measure of
    a complete row. For a `CompleteCount`, they are the `ValueCount` of each of its measures. A
    `UnitCount` has no measure of a single column. A `UnitTotal` has one: the measure of the amounts
    of single rows.

    >>> column_measures(Measure("income", 0, 10)), column_measures(UnitCount())
    ((Measure('income', 0, 10),), ())
    """
    if isinstance(measure, SquaredDeviation):
        return (measure.of, ValueCount(measure.of))
    if isinstance(measure, DeviationProduct):
        return (*measure.factors, *map(ValueCount, measure.present))
    if isinstance(measure, CompleteCount):
        return tuple(map(ValueCount, measure.present))
    if isinstance(measure, Weighted):
        return (measure.of, measure.weight)
    if isinstance(measure, UnitTotal):
        return (measure.row_amount,)
    if isinstance(measure, UnitCount):
        return ()
    return (measure,)


COMBINED_MEASURES = (CompleteCount, DeviationProduct, SquaredDeviation, Weighted)
"""The measures whose amounts are computed from several numbers of a row, and clipped after that."""
