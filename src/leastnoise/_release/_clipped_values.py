"""Estimate how many rows have values at or beyond a measure's bounds.

If a release counts rows by an attribute of the same column, these numbers follow from its
measurements and cost nothing. The bounds of a measure are public, but the number of values that
they clip is not.
"""

from dataclasses import dataclass
from fractions import Fraction

from leastnoise._domain import (
    Bins,
    Decimals,
    Domain,
    Edges,
    Integers,
    Kind,
    Measure,
    UnitTotal,
    column_measures,
)
from leastnoise._workload import Workload

_NUMBERS = (Integers, Decimals, Bins, Edges)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedValues:
    """The estimated number of rows at or beyond one bound of a measure.

    Attributes:
        measure: the name of the measure.
        is_upper: whether the bound is the upper one.
        value: the rows are counted from this value outwards. It is the bound or, if no cells lie
            beyond the bound, the inner end of the outermost cell.
        rows: an unbiased estimate of the number of these rows; NaN if it is suppressed because it
            is smaller than the option ``below``.
        margin: half of the width of the interval around ``rows``; NaN if ``rows`` is NaN.
        all_rows: an estimate of the number of rows that are measured. Rows without a value of an
            attribute that every table uses are not measured.
        is_beyond: whether all counted values are beyond the bound, or exactly at it in a bin. If
            False, the outermost cell also counts values that are not clipped.
    """

    measure: str
    is_upper: bool
    value: Fraction
    rows: float
    margin: float
    all_rows: float
    is_beyond: bool

    @property
    def share(self) -> float:
        """The estimated share of all rows at or beyond the bound, between 0 and 1."""
        return min(max(self.rows, 0.0) / max(self.all_rows, self.rows, 1.0), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterCells:
    """The cells of an attribute that count values at or beyond a bound.

    Attributes:
        attribute: the name of the attribute.
        first: the position of the first of the cells.
        end: the position after the last one.
        is_upper: whether the bound is the upper one.
        value: the inner end of these cells, which is nearer to the other bound.
        is_beyond: whether all cells are beyond the bound.
    """

    attribute: str
    first: int
    end: int
    is_upper: bool
    value: Fraction
    is_beyond: bool


def clipped_measures(workload: Workload) -> dict[str, Measure]:
    """Return the measures that the workload sums, by name.

    >>> domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("income", 0, 9)})
    >>> clipped_measures(ln.mean_queries(domain, "pay", by=["sex"]))
    {'pay': Measure('income', 0, 9)}
    """
    measures = workload.domain.measures
    summed = sorted({str(product.measure) for product in workload.products if product.of_values})
    names = {declared: name for name, declared in reversed(measures.items())}
    clipped = {}
    for name in summed:
        if isinstance(measures[name], UnitTotal):
            continue
        for factor in column_measures(measures[name]):
            if type(factor) is Measure:
                clipped[names.get(factor, name)] = factor
    return clipped


def outer_cells(domain: Domain, attribute: str, measure: Measure) -> list[OuterCells]:
    """Return the cells of an attribute that lie at or beyond a measure's bounds.

    These are the cells beyond a bound. If no cell is beyond a bound, the result is the outermost
    cell, but only if this cell also counts all values beyond the bound. A lower bound of 0 has no
    outer cells if no cells are below it, because the values of most measures begin at 0.

    Args:
        domain: the domain of the plan.
        attribute: the name of an attribute.
        measure: the measure that has the bounds.

    >>> domain = ln.Domain(pay=ln.Bins(0, 100, 10, outside="clip"))
    >>> [
    ...     (cells.first, cells.end, str(cells.value))
    ...     for cells in outer_cells(domain, "pay", ln.Measure("pay", 0, 60))
    ... ]
    [(6, 10, '60')]
    """
    kind = domain.kind(attribute)
    if not isinstance(kind, _NUMBERS) or (kind.reading.column or attribute) != measure.column:
        return []
    lows, highs = _list_cell_ends(kind)
    low = Fraction(measure.low)
    high = Fraction(measure.high)
    if isinstance(kind, (Bins, Edges)):
        below = sum(end <= low for end in highs)
        above = sum(start >= high for start in lows)
    else:
        below = sum(value < low for value in lows)
        above = sum(value > high for value in lows)
    cells = []
    is_beyond = below > 0
    if not below and kind.outside == "clip" and low != 0:
        below = 1
    if below:
        cells.append(
            OuterCells(
                attribute=attribute,
                first=0,
                end=below,
                is_upper=False,
                value=highs[below - 1],
                is_beyond=is_beyond,
            )
        )
    is_beyond = above > 0
    if not above and kind.outside == "clip":
        above = 1
    if above:
        first = len(lows) - above
        cells.append(
            OuterCells(
                attribute=attribute,
                first=first,
                end=len(lows),
                is_upper=True,
                value=lows[first],
                is_beyond=is_beyond,
            )
        )
    return cells


def _list_cell_ends(kind: Kind) -> tuple[list[Fraction], list[Fraction]]:
    """Return the lower ends and the upper ends of all cells of numbers."""
    if isinstance(kind, (Bins, Edges)):
        edges = [Fraction(edge) for edge in kind.edges]
        return edges[:-1], edges[1:]
    values = [Fraction(label) for label in kind.labels[: kind.regular]]
    return values, values
