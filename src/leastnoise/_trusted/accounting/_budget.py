"""Define privacy budgets, and the privacy unit that a data holder protects.

The module also writes exact fractions as text for files. Files contain every fraction as ``"p/q"``,
never as a float. Text that is read back is checked character by character, so that a damaged file
is refused instead of misread.
"""

from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Self

from leastnoise._trusted.accounting._mu import gaussian_mu_squared, pure_mu_squared
from leastnoise._trusted.check import (
    MOST_DIGITS,
    Exact,
    InputError,
    exact,
    one_of,
    plain,
    refuse,
    whole,
)
from leastnoise._trusted.domain import READ_AS_IT_IS, PerCellBound, Reading

_MOST_TERM = 10**MOST_DIGITS
BUDGET_FORMS = "PureDP(epsilon), ApproxDP(epsilon, delta), ZCDP(rho) or GDP(mu_squared)"


def exact_with_few_digits(name: str, value: Exact) -> Fraction:
    """Convert a number to an exact fraction; raise if it has too many digits.

    The numerator and the denominator may each have at most 1000 digits.

    >>> exact_with_few_digits("epsilon", "0.1")
    Fraction(1, 10)
    """
    number = exact(name, value)
    if not (abs(number.numerator) < _MOST_TERM and number.denominator < _MOST_TERM):
        raise InputError(
            f"{name} must be a fraction of two whole numbers of at most {MOST_DIGITS} digits "
            "each; got a longer one. Use fewer digits."
        )
    return number


def fraction_to_text(name: str, value: Fraction) -> str:
    """Format a non-negative fraction as ``"p/q"``, or ``"p"`` if it is whole.

    Args:
        name: the name of the number in messages.
        value: a fraction of at least zero.

    Raises:
        InputError: the fraction is negative, or too long to be read back.

    >>> fraction_to_text("epsilon", Fraction(1, 3))
    '1/3'
    """
    if not value >= 0:
        raise InputError(
            f"{name} must be at least 0 to be written to a file; got a negative fraction."
        )
    return str(exact_with_few_digits(name, value))


def round_up(value: Fraction, bits: int = 128) -> Fraction:
    """Round a fraction with a long denominator up to ``bits`` significant bits.

    The result is a dyadic rational with ``bits`` significant bits. A fraction whose denominator has
    at most 64 bits is returned unchanged, so that three costs of 1/3 add up to exactly 1.

    Args:
        value: a fraction of at least zero, for instance a cost summed over many scales.
        bits: significant bits of the result, at least 1.

    Returns:
        A fraction in ``[value, value * (1 + 2**(1 - bits))]``.

    Guarantees:
        The result is never below ``value``, so a rounded cost is never understated.

    >>> round_up(Fraction(1, 3)), round_up(Fraction(1, 3**60), bits=4) == Fraction(15, 2**99)
    (Fraction(1, 3), True)
    """
    if value.denominator.bit_length() <= 64:
        return value
    shift = bits - (value.numerator.bit_length() - value.denominator.bit_length())
    scaled = value * Fraction(2) ** shift
    return Fraction(-(-scaled.numerator // scaled.denominator)) / Fraction(2) ** shift


Json = dict[str, str | int | None]


def _exact_budget_fraction(fraction: Exact) -> Fraction:
    """Convert a fraction to an exact number; raise unless it is in (0, 1]."""
    number = exact_with_few_digits("the share of the budget", fraction)
    if not 0 < number <= 1:
        raise refuse("the share of the budget", fraction, "above 0 and at most 1, such as '1/12'")
    return number


def _exact_positive_parameter(name: str, value: Exact) -> Fraction:
    """Convert a budget's parameter to an exact fraction; raise unless above 0."""
    number = exact_with_few_digits(name, value)
    if not number > 0:
        raise refuse(name, value, "a number above 0", "A budget of nothing allows no release.")
    return number


@dataclass(frozen=True, slots=True, init=False, repr=False)
class _BudgetDefinition:
    """The base class of budgets; a budget has one or two named exact numbers."""

    def __repr__(self) -> str:
        arguments = ", ".join(
            f"{name}={str(number)!r}" for name, number in parameters_by_name(self).items()
        )
        return f"{type(self).__name__}({arguments})"

    def scaled(self, factor: Fraction) -> Self:
        """Return this budget with every parameter multiplied by a factor.

        If the factors of several steps add up to 1, the steps together satisfy the budget.

        >>> ln.ApproxDP(1, "1e-9").scaled(Fraction(1, 2))
        ApproxDP(epsilon='1/2', delta='1/2000000000')
        """
        return replace(
            self, **{name: number * factor for name, number in parameters_by_name(self).items()}
        )

    def share(self, fraction: Exact) -> "Budget":
        """Return the budget of one release that gets a fraction of this budget.

        If the fractions of several releases add up to 1, the releases together satisfy this budget.

        Args:
            fraction: above 0 and at most 1, read exactly.

        Raises:
            InputError: the fraction is out of range.

        >>> ln.ZCDP(1).share("1/12")
        ZCDP(rho='1/12')
        """
        # `scaled` returns a budget of the same subclass.
        return self.scaled(_exact_budget_fraction(fraction))  # type: ignore[return-value]

    def without(self, epsilon: Fraction | int) -> Self:
        """Return the budget that remains after a pure step with this epsilon.

        Delta does not change.

        Args:
            epsilon: the epsilon of the step, smaller than the epsilon of the budget.

        >>> ln.PureDP(1).without(Fraction(1, 4))
        PureDP(epsilon='3/4')
        """
        numbers = parameters_by_name(self)
        return replace(self, **(numbers | {"epsilon": numbers["epsilon"] - epsilon}))

    def to_json(self) -> Json:
        """Return the values for a JSON object; `budget_from_json` reads them.

        >>> ln.ApproxDP(1, "1e-3").to_json()
        {'definition': 'ApproxDP', 'epsilon': '1', 'delta': '1/1000'}
        """
        return {
            "definition": type(self).__name__,
            **{
                name: fraction_to_text(name, number)
                for name, number in parameters_by_name(self).items()
            },
        }


def parameters_by_name(amount: Any) -> dict[str, Fraction]:
    """Return the parameters of a budget, a cost or a charge by name.

    The names are in the order in which the class defines them.

    >>> parameters_by_name(ApproxDP(1, "1e-9"))
    {'epsilon': Fraction(1, 1), 'delta': Fraction(1, 1000000000)}
    """
    return {parameter.name: getattr(amount, parameter.name) for parameter in fields(amount)}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PureDP(_BudgetDefinition):
    """Pure differential privacy.

    No output becomes more than ``exp(epsilon)`` times as likely when one unit changes.

    Args:
        epsilon: a number above 0, read exactly. Allowed are an int, a Fraction, a Decimal, a text
            such as "1/3", or a float; a float is read as the decimal number that Python prints for
            it.

    Raises:
        InputError: epsilon is NaN, infinite, zero, negative, or longer than 1000 digits.

    Source: Dwork, McSherry, Nissim, Smith (TCC 2006), definition 1.

    >>> ln.PureDP("1/3").epsilon, ln.PureDP(0.1)
    (Fraction(1, 3), PureDP(epsilon='1/10'))
    """

    epsilon: Fraction

    def __init__(self, epsilon: Exact) -> None:
        object.__setattr__(self, "epsilon", _exact_positive_parameter("epsilon", epsilon))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproxDP(_BudgetDefinition):
    """Approximate differential privacy.

    ``P(S) <= exp(epsilon) P'(S) + delta`` for all sets S of outputs.

    Args:
        epsilon: above 0, read exactly.
        delta: above 0 and below 1, read exactly.

    Raises:
        InputError: epsilon or delta is NaN, infinite, out of range, or longer than 1000 digits.

    Source: Dwork, Kenthapadi, McSherry, Mironov, Naor (EUROCRYPT 2006).

    >>> ln.ApproxDP(1, "1e-9")
    ApproxDP(epsilon='1', delta='1/1000000000')
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Exact, delta: Exact) -> None:
        object.__setattr__(self, "epsilon", _exact_positive_parameter("epsilon", epsilon))
        number = exact_with_few_digits("delta", delta)
        if number == 0:
            raise refuse(
                "delta", delta, "a number above 0 and below 1", "For delta = 0 use PureDP(epsilon)."
            )
        if not 0 < number < 1:
            advice = "Choose far less than one over the number of people, for example '1e-9'."
            raise refuse("delta", delta, "a number above 0 and below 1", advice)
        object.__setattr__(self, "delta", number)

    def share(self, fraction: Exact) -> "Budget":
        """Return the budget of one release that gets a fraction of this budget.

        Charges to an (epsilon, delta) budget are added up as mu squared. The fraction therefore
        divides the mu squared of this budget. The result is a `GDP` budget. For the fraction 1, the
        result is this budget. If the fractions of several releases add up to 1, the releases
        together satisfy this budget (PROOFS-mu.md).

        Args:
            fraction: above 0 and at most 1, read exactly.

        Raises:
            InputError: the fraction is out of range, or delta is below 1e-1000.

        >>> share = ln.ApproxDP(1, "1e-6").share("1/12")
        >>> type(share).__name__, round(float(share.mu_squared), 5)
        ('GDP', 0.00467)
        """
        part = _exact_budget_fraction(fraction)
        if part == 1:
            return self
        return GDP(gaussian_mu_squared(self.epsilon, self.delta) * part)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ZCDP(_BudgetDefinition):
    """Zero-concentrated differential privacy.

    The Renyi divergence of every order alpha > 1 is at most ``alpha * rho``.

    Args:
        rho: above 0, read exactly.

    Raises:
        InputError: rho is NaN, infinite, zero, negative, or longer than 1000 digits.

    Source: Bun and Steinke (TCC 2016), definition 1.1.

    >>> ln.ZCDP("1/2")
    ZCDP(rho='1/2')
    """

    rho: Fraction

    def __init__(self, rho: Exact) -> None:
        object.__setattr__(self, "rho", _exact_positive_parameter("rho", rho))

    def without(self, epsilon: Fraction | int) -> Self:
        """Return the budget that remains after a pure step with this epsilon.

        The step is charged epsilon^2 / 2.

        >>> ln.ZCDP(1).without(1)
        ZCDP(rho='1/2')
        """
        return replace(self, rho=self.rho - Fraction(epsilon) ** 2 / 2)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GDP(_BudgetDefinition):
    """Gaussian differential privacy.

    Telling two neighbours apart is at least as hard as telling N(0, 1) from N(mu, 1).

    Args:
        mu_squared: the square of mu, above 0, read exactly. The squares of several releases add up.

    Raises:
        InputError: mu squared is NaN, infinite, zero, negative, or longer than 1000 digits.

    Source: Dong, Roth, Su (JRSS-B 2022), definition 2.6.

    >>> ln.GDP("1/20")
    GDP(mu_squared='1/20')
    """

    mu_squared: Fraction

    def __init__(self, mu_squared: Exact) -> None:
        object.__setattr__(self, "mu_squared", _exact_positive_parameter("mu_squared", mu_squared))

    def without(self, epsilon: Fraction | int) -> Self:
        """Return the budget that remains after a pure step with this epsilon.

        The step is charged the mu squared of its epsilon.

        >>> ln.GDP(2).without(1).mu_squared < Fraction("0.4821")
        True
        """
        return replace(self, mu_squared=self.mu_squared - pure_mu_squared(Fraction(epsilon)))


Budget = PureDP | ApproxDP | ZCDP | GDP


@dataclass(frozen=True, slots=True)
class Privacy:
    """A privacy guarantee: the budget, the privacy unit and the neighbours.

    Args:
        budget: PureDP, ApproxDP, ZCDP or GDP.
        neighbours: "add_remove" (one unit is added or removed) or "replace" (one unit becomes
            another).
        unit_column: name of the column whose value identifies the unit; None if every row is a
            separate unit.
        max_rows: the largest number of rows of one unit that count; it is 1 if the unit is a row.
        max_per_cell: the largest number of these rows that count in one cell; None without such a
            bound.
        unit_reading: which spellings of the unit's values are nulls, and whether blanks and capital
            letters distinguish units. Rows whose values are read as the same text belong to one
            unit.

    Raises:
        InputError: ``neighbours`` is not one of the two words; the column name is empty;
            ``max_rows`` is below 1; a bound or a reading is passed without a unit column; or
            ``max_per_cell`` is above ``max_rows``.

    >>> ln.Privacy(ln.PureDP(1), unit_column="person_id", max_rows=5).max_rows
    5
    """

    budget: Budget
    neighbours: str = "add_remove"
    unit_column: str | None = None
    max_rows: int = 1
    max_per_cell: PerCellBound | None = None
    unit_reading: Reading = field(default=READ_AS_IT_IS, repr=False)

    def __post_init__(self) -> None:
        budget = self.budget
        unit_column = self.unit_column
        max_per_cell = self.max_per_cell
        if type(budget) not in (PureDP, ApproxDP, ZCDP, GDP):
            raise refuse("budget", budget, BUDGET_FORMS)
        if unit_column is not None and (
            not isinstance(unit_column, str) or not unit_column.strip()
        ):
            raise refuse(
                "unit_column", unit_column, "the name of a column, or None if every row is a unit"
            )
        rows = whole("max_rows", self.max_rows, 1)
        if unit_column is None and rows != 1:
            raise InputError(
                f"max_rows must be 1 if every row is a unit; got {rows}. Name the column of the "
                "unit (unit_column)."
            )
        if max_per_cell is not None and type(max_per_cell) is not PerCellBound:
            raise refuse(
                "max_per_cell",
                max_per_cell,
                "None or a PerCellBound, such as PerCellBound(1, 'month')",
            )
        if max_per_cell is not None and (unit_column is None or not max_per_cell.rows <= rows):
            if unit_column:
                allowed = "at most max_rows, the rows of a unit in all cells"
            else:
                allowed = "none where the unit is a row"
            raise refuse("max_per_cell", max_per_cell.rows, allowed)
        reading = self.unit_reading
        if type(reading) is not Reading or reading.column is not None:
            raise refuse("unit_reading", reading, "a Reading without a column")
        if unit_column is None and reading != READ_AS_IT_IS:
            raise refuse("unit_reading", reading, "left out if every row is a unit")
        object.__setattr__(
            self, "neighbours", one_of("neighbours", self.neighbours, ["add_remove", "replace"])
        )
        object.__setattr__(self, "unit_column", plain(unit_column))
        object.__setattr__(self, "max_rows", rows)

    @property
    def unit(self) -> str:
        """A description of the privacy unit and the neighbours.

        >>> ln.Privacy(ln.PureDP(1), unit_column="id", max_rows=5).unit
        "at most 5 rows of one value of the column 'id' (add_remove)"
        """
        if self.unit_column is None:
            return f"one row ({self.neighbours})"
        if self.max_rows == 1:
            rows = "1 row"
        else:
            rows = f"{self.max_rows} rows"
        if self.max_per_cell is not None:
            rows += (
                f", {self.max_per_cell.rows} in a cell of "
                f"{' x '.join(self.max_per_cell.attributes)},"
            )
        return f"at most {rows} of one value of the column {self.unit_column!r} ({self.neighbours})"

    @property
    def protected(self) -> str:
        """A description of the unit and the neighbours that omits the bound on rows.

        The costs of two releases can be added up if their descriptions agree.

        >>> ln.Privacy(ln.PureDP(1), unit_column="id", max_rows=5).protected
        "all rows of one value of the column 'id' (add_remove)"
        """
        if self.unit_column is None:
            return self.unit
        return f"all rows of one value of the column {self.unit_column!r} ({self.neighbours})"

    @property
    def distance(self) -> int:
        """The largest number of rows by which neighbouring tables differ.

        The distance is the number of rows of a unit, or twice this number if one unit is replaced
        by another.

        >>> ln.Privacy(ln.PureDP(1), "replace", "id", 5).distance
        10
        """
        return self.max_rows * (2 if self.neighbours == "replace" else 1)

    @property
    def squares(self) -> int:
        """The largest possible sum of the squares of a unit's row counts in cells.

        ``max_per_cell`` limits the number of a unit's rows in one cell. Without it, all rows of a
        unit may be in one cell.

        >>> ln.Privacy(
        ...     ln.ZCDP(1), unit_column="id", max_rows=5, max_per_cell=ln.PerCellBound(2, "month")
        ... ).squares
        9
        """
        full_cells, remainder = divmod(
            self.max_rows, self.max_rows if self.max_per_cell is None else self.max_per_cell.rows
        )
        return full_cells * ((self.max_rows - remainder) // full_cells) ** 2 + remainder**2

    def within(self, budget: Budget) -> "Privacy":
        """Return a copy that has this budget instead.

        >>> ln.Privacy(ln.PureDP(1), "replace").within(ln.PureDP("1/2"))
        Privacy(budget=PureDP(epsilon='1/2'), neighbours='replace', unit_column=None, max_rows=1,
                max_per_cell=None)
        """
        return replace(self, budget=budget)

    def scaled(self, factor: Fraction) -> "Privacy":
        """Return a copy whose budget is multiplied by a factor."""
        return self.within(self.budget.scaled(factor))

    def share(self, fraction: Exact) -> "Privacy":
        """Return a copy with a fraction of the budget."""
        return self.within(self.budget.share(fraction))

    def same_unit(self, other: "Privacy") -> bool:
        """Return whether two guarantees have the same privacy unit and neighbours.

        If the units or the neighbours differ, the costs of the two must not be added up.

        The bounds on the rows of a unit may differ, because each cost holds for all rows that a
        unit has in the source, counted or not (theorem 6 of PROOFS-accounting.md). The readings of
        ids may differ as well: the data holder declares that ids belong to one person if the
        reading merges them (E6 of PROOFS-reading.md).

        >>> ln.Privacy(ln.PureDP(1)).same_unit(ln.Privacy(ln.PureDP(2), neighbours="replace"))
        False
        """
        return (self.neighbours, self.unit_column) == (other.neighbours, other.unit_column)

    def to_json(self) -> dict[str, Any]:
        """Return the values for a JSON object; `privacy_from_json` reads them.

        >>> ln.Privacy(ln.ZCDP(1)).to_json()
        {'budget': {'definition': 'ZCDP', 'rho': '1'}, 'neighbours': 'add_remove',
         'unit_column': None, 'max_rows': 1}
        """
        return {
            "budget": self.budget.to_json(),
            "neighbours": self.neighbours,
            "unit_column": self.unit_column,
            "max_rows": self.max_rows,
            **({} if self.max_per_cell is None else {"max_per_cell": self.max_per_cell.to_json()}),
            **(
                {}
                if self.unit_reading == READ_AS_IT_IS
                else {"unit_reading": self.unit_reading.to_json()}
            ),
        }
