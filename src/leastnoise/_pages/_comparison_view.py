"""Texts of a comparison in one language: title, table, chart data and notes.

The terminal prints these texts, and the page of a comparison shows them.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from leastnoise._charts import Axis, DotPlot, DotRow, Picture
from leastnoise._estimation import ABTest, ComparisonSubject
from leastnoise._pages._comparison_suppression import ComparisonResult, releases_of
from leastnoise._release import Release, display_texts
from leastnoise._texts import (
    MOST_DECIMALS,
    Catalogue,
    CodeTexts,
    NumberFormat,
    attribute_heading,
    capitalize,
    display_labels,
    key_headings,
    make_key_axes,
    name_attribute,
    name_groups,
    name_quantity,
    name_rows,
    statistic_format,
    statistic_title,
    table_format,
    table_title,
    unit_of_statistic,
    unit_of_sums,
)
from leastnoise._trusted.check.arrays import BoolArray, FloatArray
from leastnoise._workload import Product, QuerySet, Statistic

_MINUS = "\u2212"
_NOT_PUBLISHED = "\u2013"
_MOST_DOTS = 60  # differences in a picture; of more, only the largest are drawn
_LARGEST_DOTS = 40  # these largest ones; both are choices of layout
_MOST_SERIES = 4  # labels of the last key that are distinguished by colours, as for statistics
_LEAST_PERIODS_OF_LINES = 13  # fewer periods are easier to read as dots; a choice of layout
_MOST_NAME_WORDS = 3  # words in which two titles differ, if they are to name the releases
_SPREADS_OF_INTERVAL = 8  # digits as in intervals of statistics: about half a standard error


class DifferenceCounts(NamedTuple):
    """How many intervals lie above 0, lie below 0, and contain 0."""

    above: int
    below: int
    unclear: int


class ReleaseNames(NamedTuple):
    """The names of compared groups or releases, and the name of the reference."""

    first: tuple[str, ...]
    against: str


@dataclass(frozen=True, kw_only=True)
class ComparisonView:
    """The texts of a comparison in one language.

    Attributes:
        comparison: the differences or the A/B test.
        catalogue: the texts of the language, with the display names of the first release.
        labels: short names of two releases; empty to take them from their titles.
    """

    comparison: ComparisonResult
    catalogue: Catalogue
    labels: tuple[str, ...] = ()

    @property
    def _subject(self) -> ComparisonSubject:
        """The compared quantity, groups and releases."""
        return self.comparison.subject

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """The releases of the comparison."""
        return releases_of(self.comparison)

    @cached_property
    def _code_texts(self) -> CodeTexts:
        """The display texts of the codes of each attribute."""
        release = self.releases[0]
        return display_texts(release.options, release.plan.domain, self.catalogue.language)

    @cached_property
    def _product(self) -> Product:
        """The table of the compared counts or sums, or of a quotient's numerator."""
        return self._subject.quantity.over(
            self.releases[0].plan.domain, dict(self._subject.by)
        ).numerator

    @cached_property
    def _statistic(self) -> Statistic:
        """The compared means as a statistic of the release."""
        return Statistic(
            kind="means",
            of=str(self._subject.quantity.measure),
            by=tuple(self._subject.by),
            groups=tuple(self._subject.by.values()),
        )

    @property
    def _with_format(self) -> Catalogue:
        """The catalogue with the number format of the compared quantity."""
        domain = self.releases[0].plan.domain
        if self._subject.quantity.kind == "mean":
            number_format = statistic_format(self._statistic, domain, self.catalogue)
        elif self._subject.quantity.kind == "share":
            number_format = NumberFormat(percent=True)
        else:
            number_format = table_format(self._product, self.catalogue)
        return self.catalogue.with_format(number_format)

    @property
    def is_percent(self) -> bool:
        """Whether the values are percentages, which differ by percentage points."""
        return self._with_format.number_format.percent

    @property
    def quantity_title(self) -> str:
        """The quantity, its groups and its unit, such as ``Mean pay by sex, EUR``."""
        catalogue = self.catalogue
        domain = self.releases[0].plan.domain
        if self._subject.quantity.kind == "mean":
            return capitalize(statistic_title(self._statistic, domain, catalogue))
        if self._subject.quantity.kind == "share":
            conditions = self._name_conditions(dict(self._subject.quantity.share_of))
            return self._with_groups(catalogue.say("cmp_share", conditions=conditions))
        if catalogue.names.is_empty:
            return self._with_groups(name_quantity(self._product, catalogue))
        return table_title(self._product, catalogue)

    def _with_groups(self, quantity: str) -> str:
        """Return the name of a quantity with the names of its groups."""
        groups = name_groups(self._subject.by, self.catalogue)
        if groups:
            quantity = self.catalogue.say("name_by", name=quantity, groups=groups)
        return capitalize(quantity)

    def _name_conditions(self, cells: Mapping[str, Any]) -> str:
        """Return selected cells as text, such as ``sex = women``."""
        conditions = []
        for name, selected in cells.items():
            labels = list(selected.arguments[0]) if isinstance(selected, QuerySet) else selected
            heading = name_attribute(name, self.catalogue)
            conditions.append(f"{heading} = {self._name_selection(name, labels)}")
        return self.catalogue.join_names(conditions)

    def _name_selection(self, attribute: str, selection: object) -> str:
        """Return the display name of one group along an attribute."""
        if isinstance(selection, Mapping):
            selection = [*selection.values()]
        if isinstance(selection, (list, tuple)):
            names = [self._name_selection(attribute, label) for label in selection]
            return self.catalogue.join_alternatives(names)
        texts = self._code_texts.get(attribute, {})
        if str(selection) in texts:
            return texts[str(selection)]
        ((label,),) = display_labels(((str(selection),),), (attribute,), {})
        return self.catalogue.format_period(label)

    @cached_property
    def names(self) -> ReleaseNames:
        """The names of the compared groups or releases."""
        along = self._subject.along
        if along:
            first = [self._name_selection(along, each) for each in self._subject.selections]
            return ReleaseNames(tuple(first), self._name_selection(along, self._subject.against))
        if self.labels:
            return ReleaseNames(self.labels[:1], self.labels[1])
        titles = [
            release.options.text("title", self.catalogue.language) for release in self.releases
        ]
        short = shorten_titles(*titles)
        if short is not None:
            return ReleaseNames(short[:1], short[1])
        first_name, second_name = (self.catalogue.say(key) for key in ("cmp_first", "cmp_second"))
        return ReleaseNames((first_name,), second_name)

    @property
    def title(self) -> str:
        """The title: the quantity, and the two compared groups or releases."""
        return self.catalogue.say(
            "cmp_title_each" if self._is_separate else "cmp_title",
            name=self.quantity_title,
            first=self.catalogue.join_names([*self.names.first]),
            against=self.names.against,
        )

    @property
    def _is_separate(self) -> bool:
        """Whether several groups are compared, each with the same group."""
        return self.comparison.is_joint

    @property
    def explanations(self) -> list[str]:
        """Sentences on which number is subtracted, and which rows are compared."""
        if self._is_separate:
            sentences = [self.catalogue.say("cmp_minus_each", against=self.names.against)]
        else:
            (first,) = self.names.first
            sentences = [self.catalogue.say("cmp_minus", first=first, against=self.names.against)]
        if self._subject.where:
            conditions = self._name_conditions(self._subject.where)
            sentences.append(self.catalogue.say("cmp_where", conditions=conditions))
        return sentences

    @property
    def key_headings(self) -> list[str]:
        """The headings of the groups."""
        headings = [*key_headings(self._subject.by, self.catalogue)]
        if self._is_separate:
            headings.insert(0, attribute_heading(self._subject.along, self.catalogue))
        if self.catalogue.names.is_empty:
            return headings
        return [capitalize(heading) for heading in headings]

    @cached_property
    def key_labels(self) -> tuple[tuple[str, ...], ...]:
        """The display labels along each key."""
        labels = self.comparison.labels
        first: tuple[tuple[str, ...], ...] = ()
        if self._is_separate:
            first = (self.names.first,)
            labels = labels[1:]
        return (*first, *display_labels(labels, tuple(self._subject.by), self._code_texts))

    @property
    def has_samples(self) -> bool:
        """Whether intervals cover sampling errors that two surveys state."""
        return "difference_both_low" in self.comparison.numbers

    @property
    def number_headings(self) -> list[str]:
        """The headings of the numbers."""
        catalogue = self.catalogue
        percent = catalogue.format_percent(self.comparison.level)
        first = catalogue.say("cmp_value") if self._is_separate else self.names.first[0]
        headings = [
            first,
            self.names.against,
            catalogue.say("cmp_difference"),
            catalogue.say("col_interval", percent=percent),
        ]
        if self.has_samples:
            headings.append(catalogue.say("cmp_noise_interval", percent=percent))
        if isinstance(self.comparison, ABTest):
            headings += [catalogue.say("cmp_noise_std"), catalogue.say("cmp_sampling_std")]
        if not self.is_percent:
            headings.append(catalogue.say("cmp_relative"))
        return [*headings, catalogue.say("cmp_direction")]

    def _flat(self, *names: str) -> FloatArray:
        """Return the first of the named columns that exists, as a flat array."""
        for name in names:
            if name in self.comparison.numbers:
                return self.comparison.numbers[name].reshape(-1)
        raise KeyError(names)

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """The ends of the intervals that cover all stated errors, as flat arrays."""
        return (
            self._flat("difference_both_low", "difference_low"),
            self._flat("difference_both_high", "difference_high"),
        )

    @property
    def counts(self) -> DifferenceCounts:
        """How many intervals lie above 0, lie below 0, and contain 0.

        An unknown interval counts as one that contains 0.
        """
        low, high = self._ends
        published = int((~self._is_left_out).sum())
        above = int((low > 0).sum())
        below = int((high < 0).sum())
        return DifferenceCounts(above, below, published - above - below)

    @property
    def _is_left_out(self) -> BoolArray:
        """A mask of the differences without numbers, as a flat array."""
        return np.isnan(self._flat("difference_low"))

    @property
    def lead(self) -> str:
        """A sentence on how many differences are certainly not 0."""
        counts = self.counts
        certain = counts.above + counts.below
        if self.published == 0:
            key = "cmp_lead_none"
        elif len(self._ends[0]) == 1:
            key = "cmp_lead_one_certain" if certain else "cmp_lead_one_unclear"
        elif certain == 0:
            key = "cmp_lead_unclear"
        elif counts.unclear:
            key = "cmp_lead"
        elif counts.below == 0:
            key = "cmp_lead_above"
        elif counts.above == 0:
            key = "cmp_lead_below"
        else:
            key = "cmp_lead_certain"
        return self.catalogue.say(key, all=self.published, **counts._asdict())

    def rows(self) -> list[list[str]]:
        """Return the texts of each group: labels, then numbers."""
        groups = itertools.product(*self.key_labels)
        return [[*labels, *self._format_row(row)] for row, labels in enumerate(groups)]

    def _format_row(self, row: int) -> list[str]:
        """Return the texts of the numbers of a group."""
        catalogue = self._with_format
        if self._is_left_out[row]:
            return [_NOT_PUBLISHED] * len(self.number_headings)
        low, high = (float(ends[row]) for ends in self._ends)
        noise_low = float(self._flat("difference_low")[row])
        noise_high = float(self._flat("difference_high")[row])
        uncertainty = (high - low) / _SPREADS_OF_INTERVAL
        if math.isnan(uncertainty):  # the sampling error of this group is unknown
            uncertainty = (noise_high - noise_low) / _SPREADS_OF_INTERVAL
        texts = [
            catalogue.format_number(float(self._flat(*names)[row]), uncertainty)
            for names in (("value", "treatment"), ("against", "control"))
        ]
        difference = float(self._flat("difference")[row])
        texts.append(self._with_points(self._format_number(difference, uncertainty, has_plus=True)))
        texts.append(self._format_ends(low, high, uncertainty))
        if self.has_samples:
            texts.append(self._format_ends(noise_low, noise_high, uncertainty))
        if isinstance(self.comparison, ABTest):
            stds = [float(self._flat(name)[row]) for name in ("noise_std", "sampling_std")]
            texts += [catalogue.format_error(std) for std in stds]
        if not self.is_percent:
            texts.append(self._format_relative(row))
        key = "cmp_unclear"
        if low > 0:
            key = "cmp_higher"
        elif high < 0:
            key = "cmp_lower"
        return [*texts, catalogue.say(key)]

    def _format_ends(self, low: float, high: float, uncertainty: float) -> str:
        """Return an interval of a difference as text."""
        if math.isnan(low):
            return _NOT_PUBLISHED
        ends = [self._format_number(end, uncertainty) for end in (low, high)]
        return self._with_points(self.catalogue.say("from_to", low=ends[0], high=ends[1]))

    def _format_number(self, change: float, uncertainty: float, *, has_plus: bool = False) -> str:
        """Return a difference as text without its unit.

        Args:
            change: the difference; of percentages it is shown in percentage points.
            uncertainty: the uncertainty that determines the number of digits.
            has_plus: whether a positive difference has a sign.
        """
        catalogue = self._with_format
        number_format = catalogue.number_format
        if number_format.percent:
            catalogue = catalogue.with_format(replace(number_format, percent=False))
            change = 100 * change
            uncertainty = 100 * uncertainty
        return _with_sign(catalogue.format_number(change, uncertainty), has_plus=has_plus)

    def _with_points(self, text: str) -> str:
        """Add "percentage points" to differences, if the values are percentages."""
        if text == _NOT_PUBLISHED:
            return text
        return self.catalogue.say("points", number=text) if self.is_percent else text

    def _format_relative(self, row: int) -> str:
        """Return a difference in percent of the second number, with its interval."""
        lift = float(self._flat("lift")[row])
        low = float(self._flat("lift_both_low", "lift_low")[row])
        high = float(self._flat("lift_both_high", "lift_high")[row])
        second = float(self._flat("against", "control")[row])
        if not (second > 0 and all(map(math.isfinite, (lift, low, high)))):
            return _NOT_PUBLISHED
        half_width = 100 * (high - low) / 2  # in percent; its first two digits are meaningful
        decimals = 0
        if half_width > 0:
            decimals = min(MOST_DECIMALS, max(0, 1 - math.floor(math.log10(half_width))))
        catalogue = self.catalogue.with_format(NumberFormat(percent=True, decimals=decimals))
        ends = [_with_sign(catalogue.format_number(end)) for end in (low, high)]
        value = _with_sign(catalogue.format_number(lift), has_plus=True)
        return f"{value} ({catalogue.say('from_to', low=ends[0], high=ends[1])})"

    @property
    def has_relative_gaps(self) -> bool:
        """Whether a published difference has no value in percent."""
        if self.is_percent:
            return False
        published = np.flatnonzero(~self._is_left_out)
        return any(self._format_relative(row) == _NOT_PUBLISHED for row in published.tolist())

    @property
    def coverage_notes(self) -> list[str]:
        """Sentences on the errors that the intervals cover, and on their coverage."""
        catalogue = self.catalogue
        percent = catalogue.format_percent(self.comparison.level)
        key = "cmp_covers_noise"
        if isinstance(self.comparison, ABTest):
            key = "cmp_covers_effect"
        elif self.has_samples:
            key = "cmp_covers_both"
        sentences = [catalogue.say(key)]
        if self._is_separate:
            sentences.append(catalogue.say("cmp_all_hold", percent=percent))
        else:
            missed = catalogue.localize(f"{round(100 * (1 - self.comparison.level), 4):g}")
            sentences.append(catalogue.say("cmp_each_holds", percent=percent, hundred=missed))
        if self._subject.has_common_noise:
            sentences.append(catalogue.say("cmp_common_noise"))
        return sentences

    @property
    def table_notes(self) -> list[str]:
        """Sentences on numbers that are left out of the table."""
        notes = []
        if self.has_relative_gaps:
            notes.append(self.catalogue.say("cmp_unbounded", sign=_NOT_PUBLISHED))
        if (np.isnan(self._ends[0]) & ~self._is_left_out).any():
            notes.append(self.catalogue.say("cmp_unknown", sign=_NOT_PUBLISHED))
        if self._is_left_out.any():
            notes.append(self.catalogue.say("cmp_left_out", sign=_NOT_PUBLISHED))
        return notes

    @property
    def axis_title(self) -> str:
        """The title of the axis of differences, with the unit."""
        catalogue = self.catalogue
        domain = self.releases[0].plan.domain
        if self.is_percent:
            unit = catalogue.say("cmp_points")
        elif self._subject.quantity.kind == "mean":
            unit = unit_of_statistic(self._statistic, domain, catalogue)
        elif self._subject.quantity.measure is not None:
            unit = unit_of_sums(self._product, catalogue)
        elif self._subject.quantity.units:
            unit = name_quantity(self._product, catalogue)
        else:
            unit = name_rows(catalogue)
        difference = catalogue.say("cmp_difference")
        return f"{difference}, {unit}" if unit else difference

    @property
    def _scale(self) -> float:
        """The factor that converts values for charts, such as 100 for percentages."""
        return self._with_format.number_format.factor

    def _axes(self) -> tuple[Axis, ...]:
        """Return a chart axis for each key."""
        labels = self.key_labels
        first: tuple[Axis, ...] = ()
        if self._is_separate:
            first = (Axis(name=self.key_headings[0], labels=labels[0]),)
            labels = labels[1:]
        domain = self.releases[0].plan.domain
        return (*first, *make_key_axes(self._subject.by, domain, labels, self.catalogue))

    def lines(self) -> Picture | None:
        """Return the differences over many periods as chart data, or None."""
        axes = self._axes()
        periods = [axis.size for axis in axes if axis.kind == "times"]
        if max(periods, default=0) < _LEAST_PERIODS_OF_LINES:
            return None
        shape = tuple(axis.size for axis in axes)
        low, high = self._ends
        return Picture(
            name=self.title,
            axes=axes,
            answer=self._scale * self._flat("difference").reshape(shape),
            low=self._scale * low.reshape(shape),
            high=self._scale * high.reshape(shape),
            unit=self.axis_title,
        )

    def dots(self) -> DotPlot | None:
        """Return the differences as a dot plot, or None for a single number.

        Many names without a natural order are sorted by their differences. If there are several
        keys and the last has few labels, each of these labels has a colour.
        """
        rows = self._dot_rows()
        if len(self._ends[0]) < 2 or not rows:
            return None
        headings = self.key_headings
        series = ""
        if self._has_series:
            *headings, series = headings
        return DotPlot(
            title=self.axis_title,
            groups=", ".join(headings),
            rows=tuple(rows),
            series=series,
            marks_zero=True,
        )

    @property
    def shown_dots(self) -> int:
        """The number of differences in the dot plot."""
        return len(self._dot_rows())

    @property
    def published(self) -> int:
        """The number of differences that are not left out."""
        return sum(self.counts)

    @property
    def _has_series(self) -> bool:
        """Whether each label of the last key has a colour in the dot plot."""
        return (
            len(self.key_labels) > 1
            and len(self.key_labels[-1]) <= _MOST_SERIES
            and len(self._ends[0]) <= _MOST_DOTS
        )

    def _dot_rows(self) -> list[DotRow]:
        """Return the dots in the order in which they are drawn."""
        low, high = self._ends
        changes = self._flat("difference")
        rows = []
        groups = len(self.key_labels) - self._has_series
        for row, labels in enumerate(itertools.product(*self.key_labels)):
            value, lower, upper = (
                self._scale * float(numbers[row]) for numbers in (changes, low, high)
            )
            if not math.isnan(lower):
                group, series = (", ".join(part) for part in (labels[:groups], labels[groups:]))
                rows.append(DotRow(group, series, value, lower, upper))
        if len(rows) > _MOST_DOTS:
            rows.sort(key=lambda row: -abs(row.value))
            return sorted(rows[:_LARGEST_DOTS], key=lambda row: -row.value)
        axes = self._axes()
        if len(axes) == 1 + self._has_series:
            sizes = changes.reshape(axes[0].size, -1)[:, 0]
            ranks = {axes[0].labels[key]: rank for rank, key in enumerate(axes[0].order_by(sizes))}
            rows.sort(key=lambda row: ranks[row.group])
        return rows


def _with_sign(number: str, *, has_plus: bool = False) -> str:
    """Return a number with a real minus sign, and with a plus sign if requested.

    A number whose digits are all 0 has no sign.
    """
    is_zero = not any(digit in number for digit in "123456789")
    plus = "+" if has_plus and not is_zero and not number.startswith("-") else ""
    return f"{plus}{number}".replace("-", _MINUS, 1)


def shorten_titles(first: str, second: str) -> tuple[str, str] | None:
    """Return the words in which two titles differ, as names; None if they do not.

    If the titles differ in many words, or if one title only adds words to the other, both titles
    are returned. The result is None if a title is missing or both are equal.

    >>> shorten_titles("Income survey 2025", "Income survey 2024")
    ('2025', '2024')
    """
    if not first or not second or first == second:
        return None
    words, other_words = first.split(), second.split()
    start = _count_equal(words, other_words)
    end = _count_equal(words[start:][::-1], other_words[start:][::-1])
    short = words[start : len(words) - end]
    other_short = other_words[start : len(other_words) - end]
    if not short or not other_short or max(len(short), len(other_short)) > _MOST_NAME_WORDS:
        return first, second
    return " ".join(short).rstrip(",:;"), " ".join(other_short).rstrip(",:;")


def _count_equal(words: Sequence[str], other_words: Sequence[str]) -> int:
    """Return how many words at the beginning of two titles are equal."""
    pairs = zip(words, other_words, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
