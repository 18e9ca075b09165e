"""The common class of results with a value and an interval for each group."""

from abc import abstractmethod
from dataclasses import dataclass
from itertools import product
from typing import Any

from leastnoise._charts import DotPlot, DotRow, draw_dots, make_altair_chart
from leastnoise._frames import Columns, TabularMixin, grouped_columns
from leastnoise._trusted.check.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GroupIntervals(TabularMixin):
    """An estimate with an interval for each group, as a table and a chart.

    Attributes:
        by: the names of the columns of the groups.
        level: each interval contains its true value with this probability.
        labels: the labels of the groups along each attribute of ``by``.
        groups: the names of the groups, such as ``sex x store:region``.
        library: the library of the data frames; None if the data was no data frame.
    """

    by: tuple[str, ...]
    level: float
    labels: tuple[tuple[str | int, ...], ...] = ()
    groups: str = ""
    library: str | None = None

    @property
    @abstractmethod
    def quantity(self) -> str:
        """The estimated quantity, such as ``mean of pay``."""

    @abstractmethod
    def intervals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the estimates, and the lower and upper ends of their intervals."""

    @abstractmethod
    def numbers(self) -> dict[str, FloatArray]:
        """Return the numeric columns; each has one number for each group."""

    def rows(self) -> list[tuple[str, float, float, float]]:
        """Return a tuple (group, estimate, low, high) for each group.

        The group is ``all`` if there are no groups.
        """
        names = []
        for labels in product(*self.labels):
            group = zip(self.by, labels, strict=True)
            names.append(", ".join(f"{name}={label}" for name, label in group))
        flat = (values.reshape(-1).tolist() for values in self.intervals())
        return [(name or "all", *numbers) for name, *numbers in zip(names, *flat, strict=True)]

    def plot(self) -> Any:
        """Return an Altair chart with a dot and an interval for each group."""
        rows = tuple(DotRow(name, "", value, low, high) for name, value, low, high in self.rows())
        plot = DotPlot(title=self.quantity, groups=self.groups, rows=rows)
        return make_altair_chart(draw_dots(plot), self.quantity)

    @property
    def title(self) -> str:
        """The heading, such as ``mean of pay by store:region, 95% intervals``."""
        by = ""
        if self.groups:
            by = f" by {self.groups}"
        return f"{self.quantity}{by}, {100 * self.level:g}% intervals"

    def columns(self) -> Columns:
        """Return the data frame columns: one for each group key, then `numbers`."""
        return grouped_columns(self.by, self.labels, self.numbers())
