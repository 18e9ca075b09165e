"""Build the texts that readers of a release see.

These texts are sentences and numbers in a language, templates, titles of tables and statistics, and
chart axes. In files and commands, tables, statistics and keys have the same name in all languages.
"""

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise, takewhile, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._charts import Axis, Picture, choose_chart, format_digits
from leastnoise._domain import (
    Bins,
    CompleteCount,
    Dates,
    Decimals,
    DeviationProduct,
    Domain,
    Edges,
    Integers,
    Kind,
    Label,
    Measure,
    SquaredDeviation,
    UnitCount,
    ValueCount,
    Weighted,
)
from leastnoise._families import interval_ends
from leastnoise._texts._locales import (
    add_percent_sign,
    decline_plural,
    find_decimal_mark,
    find_group_mark,
    format_long_date,
    format_month,
    join_alternatives,
    join_list,
    join_percent_compounds,
    localize_number,
)
from leastnoise._texts._names import (
    MOST_DECIMALS,
    NO_NAMES,
    PLAIN_NUMBERS,
    Names,
    NumberFormat,
    QuantityNames,
    capitalize,
)
from leastnoise._texts._translations import LANGUAGES, find_text, translate_template
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import Message, message, readable
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._workload import Product, QuerySet, Statistic

TEMPLATES = Path(__file__).with_name("templates")
_SUPPRESSED = "\u2013"  # shown instead of a suppressed answer
_LEAST_SHORTENED_MARGIN = 1000  # in tables, larger margins are shown with only three digits


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """The texts of a language by key, and its notation of numbers and dates.

    Attributes:
        language: the language, such as ``en``.
        names: the display names of a release in the language.
        number_format: the format of numbers.
    """

    language: str
    names: Names = NO_NAMES
    number_format: NumberFormat = PLAIN_NUMBERS

    def say(self, key: str, **values: object) -> str:
        """Return the text of a key; fill in values in the notation of the language.

        The field ``rows_noun`` of a text is replaced by the display name of rows, such as
        ``persons``; ``Rows_noun`` has a capital letter. ``rows_noun_weak`` and ``rows_noun_dative``
        are inflected, see `decline_plural`.
        """
        return self._fill_in(find_text(key, self.language).forms[0], values)

    def say_count(self, key: str, count: int, **values: object) -> str:
        """Return the plural form of a text for ``count``, with values filled in."""
        text = find_text(key, self.language).form(count)
        return self._fill_in(text, {"count": count, **values})

    def rows_nouns(self, name: str = "") -> dict[str, str]:
        """Return the forms of a name of rows, by the field they fill; empty: the name "rows"."""
        rows_noun = name or find_text("unit_rows", self.language).forms[0]
        return {
            "rows_noun": rows_noun,
            "Rows_noun": capitalize(rows_noun),
            "rows_noun_weak": decline_plural(rows_noun, self.language),
            "rows_noun_dative": decline_plural(rows_noun, self.language, dative=True),
        }

    def _fill_in(self, text: str, values: Mapping[str, object]) -> str:
        """Fill values into a text, in the notation of the language."""
        nouns = self.rows_nouns(self.names.rows)
        fields = {name: self.format_value(value) for name, value in values.items()}
        return join_percent_compounds(text % (nouns | fields))

    def translate(self, sentence: str) -> str:
        """Return an error message in the language, or with a note that it is English.

        The catalogue contains the messages that forms of the studio can cause. Any other message
        stays in English, and a note says so.
        """
        if self.language == "en":
            return str(sentence)
        translated = _translate_message(sentence, self.language)
        return translated or self.say("st_english", text=sentence)

    def format_value(self, value: object) -> str:
        """Return a value as text; numbers are in the notation of the language.

        Texts are returned unchanged.
        """
        if isinstance(value, Fraction):
            if value.denominator == 1:
                return self.format_value(int(value))
            return self.localize(format_digits(float(value)))
        if isinstance(value, int):
            return self.localize(f"{value:,}")
        if isinstance(value, float):
            value = float(f"{value:.4g}")
            return self.localize(f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:g}")
        return str(value)

    def localize(self, text: str) -> str:
        """Return a number, given in Python's notation, in the language's notation."""
        return localize_number(text, self.language)

    def localize_parameters(self, text: str) -> str:
        """Return a cost such as ``epsilon = 0.5, delta = 1e-9`` in local notation.

        Receipts state costs as such texts, with numbers in Python's notation.
        """
        parts = [part.split(" = ") for part in text.split(", ")]
        return ", ".join(" = ".join(map(self.localize, part)) for part in parts)

    @property
    def decimal_mark(self) -> str:
        """The decimal mark of the language."""
        return find_decimal_mark(self.language)

    @property
    def group_mark(self) -> str:
        """The thousands separator of the language."""
        return find_group_mark(self.language)

    def format_date(self, day: dt.date) -> str:
        """Return a date as text, such as ``29 November 2026``."""
        return format_long_date(day, self.language)

    def format_period(self, label: str) -> str:
        """Return the display text of a period's label, such as ``January 2026``.

        Labels of periods other than months and quarters stay in ISO form.
        """
        period = _PERIOD.fullmatch(label)
        if period is None or first_moment(label) is None:
            return label
        year, quarter, _, month, day, _ = period.groups()
        if quarter is not None:
            return self.say("quarter_of_year", quarter=quarter, year=year)
        if month is None or day is not None:
            return label
        return format_month(dt.date(int(year), int(month), 1), self.language)

    def format_exact(self, value: Fraction) -> str:
        """Return an exact number as text with all of its digits.

        The number format determines whether the text has separators of thousands.
        """
        whole, point, decimals = readable(value).partition(".")
        if self.number_format.thousands and whole.lstrip("-").isdecimal() and int(whole):
            whole = f"{int(whole):,}"
        return self.localize(whole + point + decimals)

    def quote(self, name: object) -> str:
        """Return a name in quotation marks, as the language writes them."""
        if not isinstance(name, str):
            return repr(name)
        escaped = repr(name)[1:-1]
        return self.say("quoted_name", name=escaped)

    def join_names(self, names: list[str]) -> str:
        """Return names as a list in one text, such as ``a, b and c``."""
        return join_list(names, self.language)

    def join_alternatives(self, names: list[str]) -> str:
        """Return names as alternatives in one text, such as ``a, b or c``."""
        return join_alternatives(names, self.language)

    def format_number(self, value: float, uncertainty: float = 1.0) -> str:
        """Return a number as text.

        The uncertainty of the number determines its digits.

        The number format may state the decimals, separators and percent instead.
        """
        if math.isnan(value):
            return _SUPPRESSED
        number_format = self.number_format
        value = number_format.factor * value
        uncertainty = number_format.factor * uncertainty
        decimals = number_format.decimals
        if decimals is None:
            decimals = meaningful_decimals(uncertainty)
        text = self._localize_answer(value, min(decimals, MOST_DECIMALS))
        if number_format.percent:
            return add_percent_sign(text, self.language)
        return text

    def _localize_answer(self, value: float, decimals: int) -> str:
        """Return a number as text with this number of decimals."""
        separator = "," if self.number_format.thousands else ""
        # The format option z omits the sign of a number that rounds to 0.
        return self.localize(f"{value:z{separator}.{decimals}f}")

    def format_error(self, value: float) -> str:
        """Return a margin or standard error as text with three digits.

        The margin of a percentage is in percentage points.
        """
        if math.isnan(value):
            return _SUPPRESSED
        if self.number_format.percent:
            return self.say("points", number=self._format_three_digits(100 * value))
        return self._format_three_digits(self.number_format.factor * value)

    def _format_three_digits(self, value: float) -> str:
        """Return a number as text with three significant digits."""
        rounded = float(f"{value:.3g}")
        if not rounded > 0:
            return "0"
        decimals = max(0, 2 - math.floor(math.log10(rounded)))
        return self._localize_answer(rounded, decimals)

    def with_format(self, number_format: NumberFormat) -> "Catalogue":
        """Return a copy of the catalogue with another number format."""
        return replace(self, number_format=number_format)

    def format_percent(self, share: float, digits: int = 6) -> str:
        """Return a share as a percentage with at most ``digits`` digits.

        A share below 1 keeps all digits if six digits would round it to 100%.
        """
        text = format_digits(float(f"{100 * share:.{digits}g}"))
        if digits == 6 and text == "100" and share < 1:
            text = format(100 * Decimal(repr(float(share))), "f").rstrip("0")
        return add_percent_sign(self.localize(text), self.language)

    def format_answer(self, answer: float, margin: float) -> str:
        """Return an answer with its margin, such as ``120 ± 7``."""
        if math.isnan(answer):
            return _SUPPRESSED
        shown_margin = self.number_format.factor * margin
        if self.number_format.percent or shown_margin >= _LEAST_SHORTENED_MARGIN:
            return f"{self.format_number(answer, margin)} ± {self.format_error(margin)}"
        return f"{self.format_number(answer, margin)} ± {self.format_number(margin, margin)}"


@cache
def load_catalogue(language: str = "en") -> Catalogue:
    """Return the catalogue of a language; texts are read when needed."""
    return Catalogue(language)


def list_language_names() -> list[tuple[str, str]]:
    """Return each language code with its name, such as ``de`` and ``Deutsch``."""
    return [(language, load_catalogue(language).say("this_language")) for language in LANGUAGES]


def _translate_message(sentence: str, language: str) -> str | None:
    """Return an error message in a language, or None if it has no translation.

    The result is also None if a value that is filled in lacks a translation.
    """
    if not isinstance(sentence, Message):
        return translate_template(sentence, language)
    template = translate_template(sentence.template, language)
    translated = {}
    for name, value in sentence.values.items():
        is_sentence = isinstance(value, Message) or name in _TRANSLATED_VALUES
        if isinstance(value, str) and value and is_sentence:
            translated[name] = _translate_message(value, language)
    if template is None or None in translated.values():
        return None
    return message(template, **{**sentence.values, **translated})


_TRANSLATED_VALUES = ("what", "allowed", "advice", "part", "fault", "why", "key")
ENGLISH = load_catalogue("en")


def fill_template(template: str, **values: Any) -> str:
    """Return a template of pages with values filled in.

    Texts are escaped, and a missing value raises an error.
    """
    # Parsers of HTML and XML take a bare carriage return for the end of a line. Only texts contain
    # carriage returns, templates do not.
    return str(load_templates(TEMPLATES).get_template(template).render(**values)).replace(
        "\r", "&#13;"
    )


@cache
def load_templates(folder: Path) -> Any:
    """Return a Jinja environment for the templates of a folder."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


Labels = Sequence[Sequence[str | int]]
CodeTexts = Mapping[str, Mapping[str, str]]
"""Texts of codes, by attribute."""
_PERIOD = re.compile(
    r"(\d{4})(?:-(?:Q([1-4])|W(\d\d)|(\d\d)(?:-(\d\d)(?: (\d\d):00)?)?))?", flags=re.ASCII
)
MANY_ROWS_SHARE = 0.1
"""The page begins with a warning if more than this share of all rows is missing."""


def display_labels(
    labels: Labels, names: Sequence[str], texts: CodeTexts, *, typeset: bool = True
) -> tuple[tuple[str, ...], ...]:
    """Return the display labels that replace the codes of each key.

    If several codes share a text, the code is appended. If ``typeset`` is True, ranges are written
    with a dash; otherwise they look as in files.
    """
    labels_by_key = []
    for codes, name in zip_longest(labels, names):
        shown = tuple(map(str, codes))
        if typeset:
            shown = tuple(map(_typeset_range, shown))
        texts_of_codes = texts.get(str(name), {})
        if texts_of_codes:
            shown = _replace_codes(shown, texts_of_codes)
        labels_by_key.append(shown)
    return tuple(labels_by_key)


def _typeset_range(code: str) -> str:
    """Return a range such as ``15 .. 19`` with a dash, and other codes unchanged."""
    low, dots, high = code.partition(" .. ")
    if not dots:
        return code
    if low.isdecimal() and high.isdecimal():
        return f"{low}\u2013{high}"
    return f"{low} \u2013 {high}"


def _replace_codes(codes: Sequence[str], texts_of_codes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the text of each code; equal texts have their code appended."""
    texts = [texts_of_codes.get(code, code) for code in codes]
    counts = Counter(texts)
    return tuple(
        f"{text} ({code})" if counts[text] > 1 else text
        for text, code in zip(texts, codes, strict=True)
    )


def make_picture(
    product: Product,
    labels: Labels,
    answer: FloatArray,
    low: FloatArray,
    high: FloatArray,
    privacy: Privacy | None,
    catalogue: Catalogue,
) -> Picture:
    """Return the data from which the chart of a table is drawn.

    If ``privacy`` is not None, the title of the answers' axis states the row limit of units. The
    cells of nulls and other values are left out if the chart is then a line, or if the other cells
    can only be drawn without them.
    """
    catalogue = catalogue.with_format(table_format(product, catalogue))
    picture = with_number_format(
        Picture(
            name=table_title(product, catalogue),
            axes=make_axes(product, labels, catalogue),
            answer=answer,
            low=low,
            high=np.where(np.isnan(answer), np.nan, high),
            unit=name_with_row_limit(_answer_axis_title(product, catalogue), privacy, catalogue),
            up_to=catalogue.say("up_to"),
        ),
        catalogue,
    )
    shorter_picture = _without_further_cells(picture, product, labels, catalogue)
    if shorter_picture is not None:
        if _is_drawn_better(shorter_picture, picture):
            picture = shorter_picture
    # A key with a single label carries no information.
    varying_axes = tuple(axis for axis in picture.axes if axis.size > 1) or picture.axes[:1]
    shape = tuple(axis.size for axis in varying_axes)
    return replace(
        picture,
        axes=varying_axes,
        answer=picture.answer.reshape(shape),
        low=picture.low.reshape(shape),
        high=picture.high.reshape(shape),
    )


def _answer_axis_title(product: Product, catalogue: Catalogue) -> str:
    """Return the title of the axis of a table's answers: quantity and unit."""
    title = name_quantity_and_unit(product, catalogue)
    if catalogue.names.is_empty:
        return title
    return capitalize(title)


def with_number_format(picture: Picture, catalogue: Catalogue) -> Picture:
    """Return chart data with numbers in the catalogue's format.

    Shares in percent are drawn on a scale from 0 to 100, and sums on their stated scale.
    """
    scale = catalogue.number_format.factor
    return replace(
        picture,
        answer=scale * picture.answer,
        low=scale * picture.low,
        high=scale * picture.high,
        unit=f"{picture.unit}, %" if catalogue.number_format.percent else picture.unit,
        format_answer=lambda answer, margin: catalogue.format_answer(
            answer / scale, margin / scale
        ),
        format_number=lambda answer, margin: catalogue.format_number(
            answer / scale, margin / scale
        ),
    )


def _is_drawn_better(shorter_picture: Picture, picture: Picture) -> bool:
    """Return whether the chart is better without cells of nulls and other values."""
    shorter_chart = choose_chart(shorter_picture)
    if shorter_chart is not None and shorter_chart.omits_further_cells:
        return True
    chart = choose_chart(picture)
    if chart is None or not chart.shows_only_largest:
        return False
    return shorter_chart is None or not shorter_chart.shows_only_largest


def _without_further_cells(
    picture: Picture, product: Product, labels: Labels, catalogue: Catalogue
) -> Picture | None:
    """Return a picture without the cells of nulls and other values, or None.

    These cells are removed only from axes of numbers or dates. The result is None if no attribute
    has such cells.
    """
    counts = [
        _count_further_cells(product.domain.kind(name), axis_labels)
        for name, axis_labels in zip(product.attributes, product.labels, strict=True)
    ]
    if not any(counts):
        return None
    regular_labels = [
        axis_labels[: len(axis_labels) - count]
        for axis_labels, count in zip(labels, counts, strict=True)
    ]
    regular_axes = make_axes(product, regular_labels, catalogue)
    axes = []
    for axis, regular_axis, count in zip(picture.axes, regular_axes, counts, strict=True):
        if not (count and regular_axis.is_numbered):
            axes.append(axis)
            continue
        missing = catalogue.join_names(list(axis.labels[axis.size - count :]))
        name = f"{axis.name}, {catalogue.say('without', label=missing)}"
        axes.append(replace(regular_axis, name=name))
    cells = tuple(slice(axis.size) for axis in axes)
    return replace(
        picture,
        axes=tuple(axes),
        answer=picture.answer[cells],
        low=picture.low[cells],
        high=picture.high[cells],
    )


def _count_further_cells(kind: Kind, labels: Sequence[Label]) -> int:
    """Return how many of the last labels stand for nulls and other values."""
    count = len(kind.further_labels)
    if count and tuple(labels[-count:]) == kind.further_labels:
        return count
    return 0


def make_axes(product: Product, labels: Labels, catalogue: Catalogue) -> tuple[Axis, ...]:
    """Return a chart axis for each attribute of a table.

    An axis has one key for each label of its attribute.
    """
    return make_key_axes(product.along, product.domain, labels, catalogue)


def make_key_axes(
    query_sets: Mapping[str, QuerySet], domain: Domain, labels: Labels, catalogue: Catalogue
) -> tuple[Axis, ...]:
    """Return a chart axis for each key of a table or statistic."""
    axes = []
    titles = key_headings(query_sets, catalogue)
    for name, (attribute, queries), axis_labels in zip(
        titles, query_sets.items(), labels, strict=True
    ):
        kind = domain.kind(attribute)
        label_texts = tuple(map(str, axis_labels))
        axis = _make_number_axis(name, kind, queries, label_texts)
        axis = axis or _make_label_axis(name, kind, queries, label_texts)
        further_keys = _count_further_cells(kind, queries.labels(attribute, kind))
        axes.append(replace(axis, further_keys=further_keys))
    return tuple(axes)


def _make_number_axis(
    name: str, kind: Kind, queries: QuerySet, labels: tuple[str, ...]
) -> Axis | None:
    """Return the chart axis of keys that are ranges of numbers, otherwise None."""
    bounds = _cell_bounds(kind)
    if bounds is None or not queries.form.intervals:
        return None
    ends = interval_ends(queries.operator("", kind))
    if ends is None:
        return None
    low, high = (values[end[: len(labels)]] for values, end in zip(bounds, ends, strict=True))
    # A single number is drawn as wide as the step to the next number; then neighbours touch.
    step = 0.0
    if isinstance(kind, Integers):
        step = 1.0
    elif isinstance(kind, Decimals):
        step = float(kind.step)
    if queries.form.axis == "cells":
        drawn_high = high + step
    else:
        drawn_high = high
    return Axis(
        name=name,
        labels=labels,
        kind=queries.form.axis,
        low=low,
        high=drawn_high,
        first=low,
        last=high,
    )


def _make_label_axis(name: str, kind: Kind, queries: QuerySet, labels: tuple[str, ...]) -> Axis:
    """Return a chart axis of dates if all labels are periods, else of names.

    Labels such as ``2024`` are years only along an attribute of dates; elsewhere they may be codes.
    """
    are_windows = window_width(queries) > 0
    if are_windows:  # a window of periods is drawn at its last period
        periods = [str(last) for _, last in queries.arguments[: len(labels)]]
    else:
        periods = [label.removeprefix("<= ") for label in labels]
    moments = [*takewhile(bool, map(first_moment, periods))]
    are_dates = (
        (are_windows or queries.form.axis != "spans")
        and len(moments) == len(labels) > 2
        and (isinstance(kind, Dates) or len(periods[0]) > 4)
    )
    if not are_dates:
        return Axis(name=name, labels=labels, kind="names")
    return Axis(name=name, labels=labels, kind="times", moments=tuple(map(str, moments)))


def first_moment(label: str) -> str | None:
    """Return the first day or hour of a period's label in ISO form, or None.

    The result is None if the label is not a period.
    """
    period = _PERIOD.fullmatch(label)
    if period is None:
        return None
    year, quarter, week, month, day, hour = (
        None if part is None else int(part) for part in period.groups()
    )
    try:
        if week is not None:
            return dt.date.fromisocalendar(year or 1, week, 1).isoformat()
        date = dt.date(year or 1, month or 3 * (quarter or 1) - 2, day or 1).isoformat()
    except ValueError:
        return None
    return date if hour is None else f"{date}T{hour:02d}:00"


def _cell_bounds(kind: Kind) -> tuple[FloatArray, FloatArray] | None:
    """Return the lower and the upper bounds of all cells, or None.

    The bounds are NaN for cells of other values. The result is None if the cells are not numbers.
    """
    if isinstance(kind, (Bins, Edges)):
        edges = np.array([float(edge) for edge in kind.edges])
        low = edges[:-1]
        high = edges[1:]
    elif isinstance(kind, Integers):
        low = high = np.arange(kind.low, kind.high + 1, dtype=float)
    elif isinstance(kind, Decimals):
        low = high = np.array([float(value) for value in kind.values])
    else:
        return None
    missing = np.full(kind.size - len(low), np.nan)
    return np.concatenate([low, missing]), np.concatenate([high, missing])


def table_title(product: Product, catalogue: Catalogue) -> str:
    """Return the title of a table in the catalogue's language."""
    if not catalogue.names.is_empty:
        return _named_table_title(product, catalogue)
    table = catalogue.say("name_total")
    if product.attributes:
        table = replace(product, measure=None).name
        for query_set in {*product.query_sets}:
            if query_set.kind not in ("identity", "level"):
                table = table.replace(
                    f":{query_set.word}", f" ({_describe_queries(query_set, catalogue)})"
                )
    if product.measure is None:
        return table
    if product.of_values:
        quantity = _name_quantity_of_cells(product, catalogue)
    else:
        quantity = name_counted_or_summed(product, catalogue, "name")
    if not product.attributes:
        return quantity
    return catalogue.say("name_by", name=quantity, groups=table)


def _named_table_title(product: Product, catalogue: Catalogue) -> str:
    """Return the title of a table, composed of display names.

    For example: ``Persons by region and age``.
    """
    own_names = catalogue.names.table(product.name)
    if own_names.name:
        return own_names.name
    # The names of the groups include the changes and windows.
    quantity = _name_quantity_of_cells(product, catalogue)
    groups = name_groups(product.along, catalogue)
    if not groups and not product.of_values:
        return capitalize(catalogue.say("title_total", name=quantity))
    unit = unit_of_sums(product, catalogue) or own_names.unit
    if unit == catalogue.names.rows:  # a weighted count, whose quantity already names the unit
        unit = ""
    return _compose_title(quantity, groups, unit, catalogue)


def _compose_title(quantity: str, groups: str, unit: str, catalogue: Catalogue) -> str:
    """Return a title that joins a quantity, its groups and its unit."""
    title = catalogue.say("name_by", name=quantity, groups=groups) if groups else quantity
    return capitalize(f"{title}, {unit}" if unit else title)


def _describe_queries(query_set: QuerySet, catalogue: Catalogue) -> str:
    """Return a phrase for a set of queries, such as ``up to each value``."""
    if query_set.kind == "change":
        return catalogue.say_count("name_along_change", int(query_set.arguments[0][0]))
    width = window_width(query_set)
    if width > 0:
        return catalogue.say("name_along_windows", periods=width)
    return catalogue.say(f"name_along_{query_set.kind}")


def window_width(query_set: QuerySet) -> int:
    """Return the number of periods in each time window; 0 if there are none.

    The ranges must be consecutive windows of equal width. An end that is a number, not a text, is a
    value such as an income, and not a year.
    """
    if query_set.kind != "ranges":
        return 0
    ends = [
        (_period_number(low), _period_number(high))
        for low, high in query_set.arguments
        if isinstance(low, str) and isinstance(high, str)
    ]
    if len(ends) < len(query_set.arguments):
        return 0
    windows = [(low, high) for low, high in ends if low is not None and high is not None]
    widths = {high - low + 1 for low, high in windows}
    first_periods = [low for low, _ in windows]
    are_consecutive = all(later - earlier == 1 for earlier, later in pairwise(first_periods))
    if len(windows) < len(ends) or len(windows) < 2:
        return 0
    if len(widths) != 1 or not are_consecutive:
        return 0
    width = widths.pop()
    return width if width > 1 else 0


def _period_number(label: str) -> int | None:
    """Return a number that grows by 1 from each period to the next, or None."""
    period = _PERIOD.fullmatch(label)
    if period is None or first_moment(label) is None:
        return None
    year, quarter, week, month, day, hour = (
        int(part) if part else None for part in period.groups()
    )
    if hour is not None or year is None:
        return None
    if week is not None:
        return dt.date.fromisocalendar(year, week, 1).toordinal() // 7
    if day is not None:
        return dt.date(year, month or 1, day).toordinal()
    if month is not None:
        return 12 * year + month
    return year if quarter is None else 4 * year + quarter


def name_groups(query_sets: Mapping[str, QuerySet], catalogue: Catalogue) -> str:
    """Return the display names of keys as a list in one text, ``a and b``."""
    return catalogue.join_names(
        [_name_key(name, query_set, catalogue) for name, query_set in query_sets.items()]
    )


def _name_key(attribute: str, query_set: QuerySet, catalogue: Catalogue) -> str:
    """Return the display name of a key, such as ``age (up to each value)``."""
    if query_set.kind == "level":
        level_names = catalogue.names.level(query_set.name_along(attribute))
        return level_names.name or query_set.word
    name = catalogue.names.attribute(attribute).name or attribute
    if query_set.kind == "identity":
        return name
    return f"{name} ({_describe_queries(query_set, catalogue)})"


def key_headings(query_sets: Mapping[str, QuerySet], catalogue: Catalogue) -> tuple[str, ...]:
    """Return the display headings of key columns.

    If there are no display names, the headings are the column names in files.
    """
    if catalogue.names.is_empty:
        return tuple(query_set.key_along(name) for name, query_set in query_sets.items())
    headings = []
    for name, query_set in query_sets.items():
        if query_set.key_along(name) == name:
            headings.append(attribute_heading(name, catalogue))
        else:
            headings.append(capitalize(_name_key(name, query_set, catalogue)))
    return tuple(headings)


def attribute_heading(attribute: str, catalogue: Catalogue) -> str:
    """Return an attribute's display name with a capital letter, or its own name."""
    name = catalogue.names.attribute(attribute).name
    return capitalize(name) if name else attribute


def name_attribute(attribute: str, catalogue: Catalogue) -> str:
    """Return the display name of an attribute inside a sentence."""
    return catalogue.names.attribute(attribute).name or attribute


def name_measure(domain: Domain, measure: str, catalogue: Catalogue) -> str:
    """Return the display name of a measure inside a sentence.

    A weighted measure has the display name of its measure. Without a display name, a description of
    the measure is returned.
    """
    name = names_of_measure(domain, measure, catalogue).name
    return name or name_with_weight(domain, measure, catalogue)


def name_with_weight(domain: Domain, measure: str, catalogue: Catalogue) -> str:
    """Return a phrase for a measure, with the weight of a weighted measure.

    In English, the phrase equals the name in files unless display names are stated.
    """
    declared = domain.measure(measure)
    if isinstance(declared, Weighted):
        if isinstance(declared.of, ValueCount):
            weight = _name_declared_measure(domain, declared.weight, catalogue)
            of = _name_counted_values(domain, declared.of, catalogue)
            return catalogue.say("name_weights", weight=weight, measure=of)
        of = _name_declared_measure(domain, declared.of, catalogue)
        return name_weighted(domain, of, declared.weight, catalogue)
    if isinstance(declared, SquaredDeviation):
        of = _name_declared_measure(domain, declared.of, catalogue)
        return catalogue.say("name_squares", measure=of)
    if isinstance(declared, CompleteCount):
        return catalogue.say(
            "name_rows_with", names=_join_declared(domain, declared.present, catalogue)
        )
    if isinstance(declared, DeviationProduct):
        return _name_deviations(domain, declared, catalogue)
    if isinstance(declared, ValueCount):
        of = _name_counted_values(domain, declared, catalogue)
        return catalogue.say("name_values", measure=of)
    if isinstance(declared, UnitCount) and (catalogue.language != "en" or catalogue.names.units):
        return catalogue.names.units or catalogue.say("name_units")
    return catalogue.names.measure(measure).name or measure


def name_weighted(domain: Domain, values_name: str, weight: Measure, catalogue: Catalogue) -> str:
    """Return a phrase for weighted values, such as ``net income (weighted)``.

    The weight stays unnamed if it is the survey weight and no other weight occurs. The display
    names of a survey weight state what its sums are, such as ``population``.

    Args:
        domain: the domain that declares the weight.
        values_name: the display name of the values.
        weight: the measure by which the values are weighted.
        catalogue: the texts of the language, with the display names.
    """
    weights = {
        declared.weight for declared in domain.measures.values() if isinstance(declared, Weighted)
    }
    has_sum_name = bool(catalogue.names.measure(_find_declared_name(domain, weight) or "").sum)
    is_only_weight = weights <= {weight} and not _may_have_other_weight(domain, weight, catalogue)
    if has_sum_name and is_only_weight:
        return catalogue.say("name_weighted_alone", of=values_name)
    weight_name = _name_declared_measure(domain, weight, catalogue)
    return catalogue.say("name_weighted", of=values_name, weight=weight_name)


def _may_have_other_weight(domain: Domain, weight: Measure, catalogue: Catalogue) -> bool:
    """Return whether another measure may also be a weight, such as of quantiles.

    A domain does not state the weights of quantiles. A measure may be one if its sums have a
    display name, as the sums of a survey weight have, and if no mean or sum of its values is
    weighted.
    """
    weighted = {
        declared.of for declared in domain.measures.values() if isinstance(declared, Weighted)
    }
    return any(
        type(declared) is Measure
        and declared != weight
        and declared not in weighted
        and bool(catalogue.names.measure(name).sum)
        for name, declared in domain.measures.items()
    )


def _name_deviations(domain: Domain, declared: DeviationProduct, catalogue: Catalogue) -> str:
    """Return a phrase for deviations from a midpoint, or for products of them."""
    complete = _join_declared(domain, declared.present, catalogue)
    rows = catalogue.say("name_rows_with", names=complete)
    first, *others = declared.factors
    measure = _name_declared_measure(domain, first, catalogue)
    if not others:
        return catalogue.say("name_deviations", measure=measure, rows=rows)
    if others[0] == first:
        return catalogue.say("name_squares_in", measure=measure, rows=rows)
    names = _join_declared(domain, declared.factors, catalogue)
    if len(declared.present) == len(declared.factors):
        return catalogue.say("name_products", names=names)
    return catalogue.say("name_products_in", names=names, rows=rows)


def _join_declared(domain: Domain, measures: Sequence[Measure], catalogue: Catalogue) -> str:
    """Return the display names of declared measures as a list in one text."""
    return catalogue.join_names([_name_declared_measure(domain, of, catalogue) for of in measures])


def _name_declared_measure(domain: Domain, measure: Measure, catalogue: Catalogue) -> str:
    """Return the display name of a declared measure, or the name of its column."""
    name = _find_declared_name(domain, measure)
    if name is None:
        return measure.column
    return catalogue.names.measure(name).name or name


def unit_of_declared(domain: Domain, measure: Measure, catalogue: Catalogue) -> str:
    """Return the display unit of a declared measure, or "" if none is stated."""
    return catalogue.names.measure(_find_declared_name(domain, measure) or "").unit


def _find_declared_name(domain: Domain, measure: Measure) -> str | None:
    """Return the name under which a domain declares a measure, or None."""
    for name, declared in domain.measures.items():
        if declared == measure:
            return name
    return None


def _name_counted_values(domain: Domain, count: ValueCount, catalogue: Catalogue) -> str:
    """Return the display name of the measure whose values are counted."""
    for name, declared in domain.measures.items():
        is_counted = (declared.column, declared.reading) == (count.column, count.reading)
        if type(declared) is Measure and is_counted:
            return catalogue.names.measure(name).name or name
    return count.column


def names_of_measure(domain: Domain, measure: str, catalogue: Catalogue) -> QuantityNames:
    """Return the display names that apply to a measure.

    The names of a measure also apply to its weighted form and to the number of its values.
    """
    names = catalogue.names
    if measure in names.measures:
        return names.measure(measure)
    declared = domain.measure(measure)
    values = declared.of if isinstance(declared, Weighted) else declared
    for name in names.measures:
        base = domain.measures.get(name)
        is_count_of_it = (
            isinstance(values, ValueCount)
            and type(base) is Measure
            and (values.column, values.reading) == (base.column, base.reading)
        )
        if base == values or is_count_of_it:
            return names.measure(name)
    return QuantityNames()


def names_of_product(product: Product, catalogue: Catalogue) -> QuantityNames:
    """Return the display names that apply to the measure of a table."""
    if product.measure is None or product.of_units:
        return QuantityNames()
    return names_of_measure(product.domain, product.values_of or product.measure, catalogue)


def unit_of_sums(product: Product, catalogue: Catalogue) -> str:
    """Return the display unit of a table's sums, or "" for counts.

    A sum of the weights of rows with a value has the unit of the weight.
    """
    if not product.of_values:
        return ""
    names = _names_of_summed(product, catalogue)
    unit = catalogue.names.table(product.name).unit or names.unit
    if names.scale == 1:
        return unit
    zeros = len(str(names.scale)) - 1
    if unit:
        return catalogue.say(f"scale_{zeros}", unit=unit)
    return catalogue.say(f"scale_{zeros}_alone")


def _names_of_summed(product: Product, catalogue: Catalogue) -> QuantityNames:
    """Return the display names of the amounts that a table adds up."""
    weights = _weights_of_values(product.domain, str(product.measure))
    if weights is None:
        return names_of_product(product, catalogue)
    return catalogue.names.measure(_find_declared_name(product.domain, weights[0]) or "")


def name_summed(domain: Domain, measure: str, catalogue: Catalogue) -> str:
    """Return the display name of the measure or weight that a table sums."""
    weights = _weights_of_values(domain, measure)
    if weights is not None:
        return _name_declared_measure(domain, weights[0], catalogue)
    return name_measure(domain, measure, catalogue)


def table_format(product: Product, catalogue: Catalogue) -> NumberFormat:
    """Return the number format of a table's answers.

    If the values of a measure are percentages, its sums are plain numbers. The decimals that are
    stated for a measure apply to its values; if its sums have another scale, the noise determines
    their decimals.
    """
    own_names = catalogue.names.table(product.name)
    scale = scale_of_sums(product, catalogue)
    if own_names.number_format != PLAIN_NUMBERS:
        return replace(own_names.number_format, scale=scale)
    if not product.of_values:
        names = names_of_product(product, catalogue)
    else:
        names = _names_of_summed(product, catalogue)
    measure_format = names.number_format
    if not product.of_values or measure_format.percent:
        return NumberFormat(thousands=measure_format.thousands, scale=scale)
    if scale != 1:
        return NumberFormat(thousands=measure_format.thousands, scale=scale)
    return measure_format


def scale_of_sums(product: Product, catalogue: Catalogue) -> int:
    """Return the divisor with which a table's sums are shown; 1 for counts."""
    if not product.of_values:
        return 1
    return _names_of_summed(product, catalogue).scale


def statistic_format(statistic: Statistic, domain: Domain, catalogue: Catalogue) -> NumberFormat:
    """Return the number format of a statistic's values (percent for shares)."""
    own_names = catalogue.names.table(statistic.name)
    if own_names.number_format != PLAIN_NUMBERS:
        return own_names.number_format
    if statistic.form.along:
        return NumberFormat(percent=True)
    return _names_of_statistic(statistic, domain, catalogue).number_format


def _names_of_statistic(
    statistic: Statistic, domain: Domain, catalogue: Catalogue
) -> QuantityNames:
    """Return the display names that apply to a statistic's values.

    The result is empty for a statistic of several measures, because its values do not have the unit
    of one measure.
    """
    if statistic.form.of_several:
        return QuantityNames()
    if statistic.form.of_measure:
        return names_of_measure(domain, statistic.of, catalogue)
    return catalogue.names.attribute(statistic.of)


def _weights_of_values(domain: Domain, measure: str) -> tuple[Measure, ValueCount] | None:
    """Return the weight and the counted values of a sum of weights, or None."""
    declared = domain.measure(measure)
    if isinstance(declared, Weighted) and isinstance(declared.of, ValueCount):
        return declared.weight, declared.of
    return None


def name_counted_or_summed(
    product: Product, catalogue: Catalogue, text_prefix: str = "unit"
) -> str:
    """Return the noun for the counted or summed things: rows, units or values.

    ``text_prefix`` begins the key of the text for a number of values.
    """
    names = names_of_product(product, catalogue)
    if product.of_values:
        return name_measure(product.domain, str(product.measure), catalogue)
    if product.values_of is not None:
        measure = names.name or product.values_of
        return names.count or catalogue.say(f"{text_prefix}_values", measure=measure)
    if product.of_complete_rows:
        return name_with_weight(product.domain, str(product.measure), catalogue)
    if product.of_units:
        return catalogue.names.units or catalogue.say("name_units")
    return name_rows(catalogue)


def name_strategy(strategy: str, catalogue: Catalogue) -> str:
    """Return a phrase for the queries that a strategy measures.

    A strategy without such a text is called by its own name.
    """
    try:
        return catalogue.say(f"strategy_{strategy}")
    except KeyError:
        return strategy


def name_rows(catalogue: Catalogue) -> str:
    """Return the display name of rows, a plural noun such as "persons"."""
    return catalogue.names.rows or catalogue.say("unit_rows")


def name_share_total(statistic: Statistic, domain: Domain, catalogue: Catalogue) -> str:
    """Return a phrase for the total that a statistic's shares refer to."""
    weight = statistic.weighted_by
    if weight is None:
        return name_rows(catalogue)
    measure = name_measure(domain, weight, catalogue)
    return catalogue.names.measure(weight).sum or catalogue.say("name_sum", measure=measure)


def name_quantity(product: Product, catalogue: Catalogue) -> str:
    """Return a phrase for the quantity of a table, such as ``sum of pay``.

    If the answers are changes or other combinations of cells, the phrase states this, as in ``sum
    of pay, change over 12 periods``.
    """
    phrases = [_name_quantity_of_cells(product, catalogue)]
    for query_set in product.query_sets:
        if query_set.kind == "change":
            phrases.append(_describe_queries(query_set, catalogue))
        elif query_set.kind == "matrix" and not _has_only_subsets(query_set):
            phrases.append(catalogue.say("quantity_matrix"))
    return ", ".join(dict.fromkeys(phrases))


def name_quantity_and_unit(product: Product, catalogue: Catalogue) -> str:
    """Return a phrase for a table's quantity, with its display unit if stated."""
    quantity = name_quantity(product, catalogue)
    unit = unit_of_sums(product, catalogue) or catalogue.names.table(product.name).unit
    if unit in ("", catalogue.names.rows):  # the quantity already names the unit
        return quantity
    return f"{quantity}, {unit}"


def _has_only_subsets(query_set: QuerySet) -> bool:
    """Return whether each query of a matrix is the plain sum of some cells."""
    return all(entry in (0, 1) for row in query_set.arguments for entry in row)


def _name_quantity_of_cells(product: Product, catalogue: Catalogue) -> str:
    """Return a phrase for the quantity of one cell, such as ``sum of pay``."""
    if not product.of_values:
        return name_counted_or_summed(product, catalogue)
    names = names_of_product(product, catalogue)
    weights = _weights_of_values(product.domain, str(product.measure))
    if weights is not None:
        return names.count or _name_weighted_values(product, *weights, catalogue)
    measure = name_measure(product.domain, str(product.measure), catalogue)
    return names.sum or catalogue.say("name_sum", measure=measure)


def _name_weighted_values(
    product: Product, weight: Measure, values: ValueCount, catalogue: Catalogue
) -> str:
    """Return a phrase for a sum of weights, such as ``population with income``."""
    weight_name = _find_declared_name(product.domain, weight) or ""
    sum_name = catalogue.names.measure(weight_name).sum
    if not sum_name:
        measure = name_with_weight(product.domain, str(product.measure), catalogue)
        return catalogue.say("name_sum", measure=measure)
    values_name = _name_counted_values(product.domain, values, catalogue)
    return catalogue.say("name_weighted_values", weight=sum_name, measure=values_name)


def statistic_title(statistic: Statistic, domain: Domain, catalogue: Catalogue) -> str:
    """Return the display title of a statistic."""
    if catalogue.names.is_empty:
        title = name_statistic(statistic, domain, catalogue)
        if not statistic.by:
            return title
        return catalogue.say("name_by", name=title, groups=statistic.groups_name)
    own_names = catalogue.names.table(statistic.name)
    if own_names.name:
        return own_names.name
    names = _names_of_statistic(statistic, domain, catalogue)
    unit = "" if statistic.form.along else own_names.unit or names.unit
    quantity = name_statistic(statistic, domain, catalogue)
    return _compose_title(quantity, name_groups(statistic.along, catalogue), unit, catalogue)


def unit_of_statistic(statistic: Statistic, domain: Domain, catalogue: Catalogue) -> str:
    """Return the display unit of a statistic's values, or "" if none is stated."""
    if statistic.form.along:
        return ""
    return _names_of_statistic(statistic, domain, catalogue).unit


def statistic_axis_title(statistic: Statistic, domain: Domain, catalogue: Catalogue) -> str:
    """Return the title and unit of the chart axis of a statistic's values."""
    if catalogue.names.is_empty:
        return name_statistic(statistic, domain, catalogue)
    names = _names_of_statistic(statistic, domain, catalogue)
    is_percent = statistic_format(statistic, domain, catalogue).percent
    unit = "%" if is_percent else names.unit
    return _compose_title(name_statistic(statistic, domain, catalogue), "", unit, catalogue)


def statistic_groups_title(statistic: Statistic, catalogue: Catalogue) -> str:
    """Return the title of the chart axis of a statistic's groups."""
    if catalogue.names.is_empty:
        return statistic.groups_name
    return capitalize(name_groups(statistic.along, catalogue))


def name_statistic(statistic: Statistic, domain: Domain, catalogue: Catalogue) -> str:
    """Return a statistic's title without groups, such as ``Mean net income``."""
    names = _names_of_statistic(statistic, domain, catalogue)
    if statistic.form.of_several:
        measure_names = [name_measure(domain, name, catalogue) for name in statistic.variables]
        if statistic.kind == "correlations":
            return catalogue.say("name_correlations", of=catalogue.join_names(measure_names))
        response, *predictors = measure_names
        names_of_predictors = catalogue.join_names(predictors)
        return catalogue.say(f"name_{statistic.kind}", of=response, on=names_of_predictors)
    own_texts = {
        "means": names.mean,
        "variances": "",
        "quantiles": names.quantiles,
        "cdf": names.cdf,
    }
    of = names.name or statistic.of
    if statistic.form.of_measure:
        of = name_measure(domain, statistic.of, catalogue)
    if statistic.weighted_by is not None:
        of = name_weighted(domain, of, domain.measure(statistic.weighted_by), catalogue)
        return catalogue.say(f"name_{statistic.kind}", of=of)
    return own_texts[statistic.kind] or catalogue.say(f"name_{statistic.kind}", of=of)


def format_size(answers: int, tables: int, catalogue: Catalogue) -> str:
    """Return the text ``5 answers in 2 tables`` with these numbers."""
    return catalogue.say(
        "size",
        answers=catalogue.say_count("answers", answers),
        tables=catalogue.say_count("in_tables", tables),
    )


def name_with_row_limit(unit: str, privacy: Privacy | None, catalogue: Catalogue) -> str:
    """Return a table's unit followed by the row limit of privacy units, if any."""
    if privacy is None or privacy.unit_column is None:
        return unit
    return catalogue.say_count(
        "unit_of", privacy.max_rows, unit=unit, **name_unit(privacy, catalogue)
    )


def meaningful_decimals(uncertainty: float) -> int:
    """Return the decimals of a number up to the second digit of its uncertainty.

    >>> meaningful_decimals(0.03), meaningful_decimals(20.0)
    (3, 0)
    """
    if not 0 < uncertainty < 1:
        return 0
    return max(0, 1 - math.floor(math.log10(uncertainty)))


def name_unit(privacy: Privacy, catalogue: Catalogue) -> dict[str, str]:
    """Return phrases for one privacy unit, by the name of the field they fill.

    The phrases use the display name of a unit. If a unit has no display name, the phrases refer to
    the values of the unit column.

    The phrases call the rows of a unit "rows", not by their display name. If the rows are named
    after the units that they are about, as in a panel of employees, the display name would give
    "one person with all its employees".
    """
    name = catalogue.names.unit
    rows_nouns = catalogue.rows_nouns()
    if name:
        return {
            **rows_nouns,
            "unit_value": name,
            "unit_noun": name,
            "unit_short": name,
            "unit_singular": name,
            "unit_rows": catalogue.say("unit_rows_of_name", **rows_nouns),
        }
    column = catalogue.quote(privacy.unit_column)
    return {
        **rows_nouns,
        "unit_value": catalogue.say("unit_value", column=column),
        "unit_noun": catalogue.say("unit_noun", column=column),
        "unit_short": str(privacy.unit_column),
        "unit_singular": catalogue.say("unit_singular"),
        "unit_rows": catalogue.say("unit_rows_of_column", column=column, **rows_nouns),
    }
