"""Estimate how many rows have values at or beyond a measure's bounds.

If a release counts rows by an attribute of the same column, these numbers follow from its
measurements and cost nothing. The bounds of a measure are public, but the number of values that
they clip is not.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

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

# By the rounding of `Integers`: how far the cell of a whole number reaches down and up.
_REACH_OF_ROUNDING: dict[str | None, tuple[Fraction, Fraction]] = {
    "down": (Fraction(0), Fraction(1)),
    "nearest": (Fraction(1, 2), Fraction(1, 2)),
    "up": (Fraction(1), Fraction(0)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedValues:
    """The estimated number of rows at or beyond one bound of a measure.

    Attributes:
        measure: the name of the measure.
        is_upper: whether the bound is the upper one.
        bound: the bound.
        value: the rows are counted from this value outwards. It is the inner end of the cells that
            lie beyond the bound or, if no cells do, of the outermost cell.
        counts_value: whether the value itself is counted.
        rows: an unbiased estimate of the number of these rows; NaN if it is suppressed because it
            is smaller than the option ``below``. If `is_beyond` is False, it estimates an upper
            limit of the number of values beyond the bound.
        margin: half of the width of the interval around ``rows``; NaN if ``rows`` is NaN.
        all_rows: an estimate of the number of rows that are measured. Rows without a value of an
            attribute that every table uses are not measured.
        is_beyond: whether all counted values are beyond the bound, or exactly at it in a bin. If
            False, the outermost cell also counts values that are not clipped.
        has_divided_cell: whether one cell has values on both sides of the bound. Its rows are
            counted only if `is_beyond` is False.
    """

    measure: str
    is_upper: bool
    bound: Fraction
    value: Fraction
    counts_value: bool
    rows: float
    margin: float
    all_rows: float
    is_beyond: bool
    has_divided_cell: bool

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
        bound: the bound.
        value: the inner end of these cells, which is nearer to the other bound.
        has_value: whether the value itself is in these cells.
        is_beyond: whether all cells are beyond the bound.
        has_divided_cell: whether one cell has values on both sides of the bound; it is one of these
            cells only if `is_beyond` is False.
    """

    attribute: str
    first: int
    end: int
    is_upper: bool
    bound: Fraction
    value: Fraction
    has_value: bool
    is_beyond: bool
    has_divided_cell: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """The values of one cell, from its lower end to its upper end.

    Attributes:
        start: the lower end.
        end: the upper end.
        has_start: whether the lower end is in the cell.
        has_end: whether the upper end is in the cell.
        reaches_bound: whether a cell that begins or ends exactly at a bound lies beyond it. This
            holds for bins. A cell of whole numbers at a bound mostly counts the bound itself.
    """

    start: Fraction
    end: Fraction
    has_start: bool
    has_end: bool
    reaches_bound: bool

    def is_above(self, bound: Fraction) -> bool:
        """Return whether the cell lies above a bound, or begins at it."""
        touches = self.start == bound and (self.reaches_bound or not self.has_start)
        return self.start > bound or touches

    def is_below(self, bound: Fraction) -> bool:
        """Return whether the cell lies below a bound, or ends at it."""
        touches = self.end == bound and (self.reaches_bound or not self.has_end)
        return self.end < bound or touches


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

    These are the cells beyond a bound, without a cell that the bound divides. If no cell is beyond
    a bound, the result is the outermost cell, but only if this cell also counts all values beyond
    the bound. A lower bound of 0 has no outer cells if no cells are below it, because the values of
    most measures begin at 0.

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
    spans = _list_spans(kind)
    low = Fraction(measure.low)
    high = Fraction(measure.high)
    below = sum(span.is_below(low) for span in spans)
    above = sum(span.is_above(high) for span in spans)
    cells = []
    is_beyond = below > 0
    is_divided = below < len(spans) and spans[below].start < low
    if not below and kind.outside == "clip" and low != 0:
        below = 1
        is_divided = True
    if below:
        inner = spans[below - 1]
        cells.append(
            OuterCells(
                attribute=attribute,
                first=0,
                end=below,
                is_upper=False,
                bound=low,
                value=inner.end,
                has_value=inner.has_end,
                is_beyond=is_beyond,
                has_divided_cell=is_divided,
            )
        )
    is_beyond = above > 0
    is_divided = above < len(spans) and spans[len(spans) - above - 1].end > high
    if not above and kind.outside == "clip":
        above = 1
        is_divided = True
    if above:
        first = len(spans) - above
        inner = spans[first]
        cells.append(
            OuterCells(
                attribute=attribute,
                first=first,
                end=len(spans),
                is_upper=True,
                bound=high,
                value=inner.start,
                has_value=inner.has_start,
                is_beyond=is_beyond,
                has_divided_cell=is_divided,
            )
        )
    return cells


def _list_spans(kind: Kind) -> list[_Span]:
    """Return the values of each cell of numbers."""
    if isinstance(kind, (Bins, Edges)):
        return _list_bin_spans(kind)
    labels = [Fraction(label) for label in kind.labels[: kind.regular]]
    rounding = kind.rounding if isinstance(kind, Integers) else None
    # How far the cell of a number reaches down and up. Without a stated rounding, the numbers
    # between two values are exceptions, and a separate sentence states how they are counted.
    down, up = _REACH_OF_ROUNDING.get(rounding, (Fraction(0), Fraction(0)))
    return [
        _Span(
            start=label - down,
            end=label + up,
            has_start=rounding != "up",
            has_end=rounding in (None, "up"),
            reaches_bound=False,
        )
        for label in labels
    ]


def _list_bin_spans(kind: Bins | Edges) -> list[_Span]:
    """Return the values of each bin."""
    edges = [Fraction(edge) for edge in kind.edges]
    is_closed_left = kind.closed == "left"
    spans = []
    for position, (start, end) in enumerate(pairwise(edges)):
        is_first = position == 0
        is_last = position == len(edges) - 2
        spans.append(
            _Span(
                start=start,
                end=end,
                has_start=is_closed_left or is_first,
                has_end=not is_closed_left or is_last,
                reaches_bound=True,
            )
        )
    return spans
