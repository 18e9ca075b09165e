"""Texts for readers of a release.

Sentences and numbers by language, templates, names of tables and statistics, axes of charts.

In files and commands, tables, statistics and keys have one name in every language.
"""

import datetime as dt
import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from leastnoise._charts import Axis, Picture, choose_chart, format_digits
from leastnoise._domain import Bins, Decimals, Edges, Integers, Kind, Label
from leastnoise._error import interval_multiplier
from leastnoise._families import interval_ends
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.check import Message, message, readable
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._workload import Product, Statistic

LANGUAGES = ("en", "de")
TEMPLATES = Path(__file__).with_name("templates")
_SUPPRESSED = "\u2013"  # in the place of an answer that is not published


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """The sentences of one language by key, and translated error messages.

    Error messages are found by their English templates.
    """

    language: str
    sentences: Mapping[str, str]
    faults: Mapping[str, str]

    def say(self, key: str, **values: object) -> str:
        """Fill in a sentence; numbers are written as the language does."""
        return self.sentences[key] % {
            name: self.format_value(value) for name, value in values.items()
        }

    def translate(self, sentence: str) -> str:
        """Translate an error message.

        One that the catalogue lacks, which no form can cause, stays in English and is marked so.
        """
        return (
            str(sentence)
            if self.language == "en"
            else _translate_message(sentence, self.faults) or self.say("st_english", text=sentence)
        )

    def say_count(self, key: str, count: int, **values: object) -> str:
        """Fill in ``key_one`` or ``key_many``, by the count."""
        return self.say(f"{key}_one" if count == 1 else f"{key}_many", count=count, **values)

    def format_value(self, value: object) -> str:
        """Write a number with separators and all significant digits.

        A text stays as it is.
        """
        if isinstance(value, Fraction):
            return (
                self.format_value(int(value))
                if value.denominator == 1
                else self.localize(format_digits(float(value)))
            )
        if isinstance(value, int):
            return self.localize(f"{value:,}")
        if isinstance(value, float):
            value = float(f"{value:.4g}")
            return self.localize(f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:g}")
        return str(value)

    def localize(self, text: str) -> str:
        """Localise a formatted number.

        Without leading zeros in a power of ten.
        """
        text = text.replace("e-0", "e-").replace("e+0", "e+")
        return text if self.language == "en" else text.translate(str.maketrans(",.", ".,"))

    def format_exact(self, value: Fraction) -> str:
        """Write a bound or a unit with separators and all of its digits."""
        whole, point, decimals = readable(value).partition(".")
        return self.localize(
            (f"{int(whole):,}" if whole.lstrip("-").isdecimal() and int(whole) else whole)
            + point
            + decimals
        )

    def join_names(self, names: list[str]) -> str:
        """Join names: a, b and c."""
        return (
            self.say("and", first=", ".join(names[:-1]), last=names[-1])
            if len(names) > 1
            else "".join(names)
        )

    def format_number(self, value: float, spread: float = 1.0) -> str:
        """Write a number with the digits that its margin leaves meaningful.

        With thousands separators.
        """
        if math.isnan(value):
            return _SUPPRESSED
        decimals = max(0, 1 - math.floor(math.log10(spread))) if 0 < spread < 1 else 0
        text = f"{value:,.{min(decimals, 12)}f}"
        return self.localize(text[1:] if text.startswith("-") and not text.strip("-0.,") else text)

    def format_error(self, value: float) -> str:
        """Write a margin or standard error in three digits."""
        if math.isnan(value):
            return _SUPPRESSED
        rounded = float(f"{value:.3g}")
        if not rounded > 0:
            return "0"
        return self.localize(f"{rounded:,.{max(0, 2 - math.floor(math.log10(rounded)))}f}")

    def format_percent(self, share: float, digits: int = 6) -> str:
        """Write a share as a percentage.

        With more than ``digits`` digits if six would round a share below 100 up to 100.
        """
        text = format_digits(float(f"{100 * share:.{digits}g}"))
        if digits == 6 and text == "100" and share < 1:
            text = format(100 * Decimal(repr(float(share))), "f").rstrip("0")
        return self.localize(text) + ("%" if self.language == "en" else "\u00a0%")

    def format_answer(self, answer: float, margin: float) -> str:
        """Write an answer with its margin."""
        if math.isnan(answer):
            return _SUPPRESSED
        return f"{self.format_number(answer, margin)} ± {self.format_number(margin, margin)}"


@cache
def load_catalogue(language: str = "en") -> Catalogue:
    """The catalogue of a language."""
    folder = Path(__file__).with_name("texts")
    sentences: dict[str, str] = {}
    for path in (folder / f"{language}.toml", *sorted(folder.glob(f"*.{language}.toml"))):
        sentences |= tomllib.loads(path.read_text(encoding="utf-8"))
    faults = folder / "faults" / f"{language}.toml"
    return Catalogue(
        language,
        sentences,
        tomllib.loads(faults.read_text(encoding="utf-8")) if faults.exists() else {},
    )


def _translate_message(sentence: str, table: Mapping[str, str]) -> str | None:
    """Translate a message by a table of templates.

    Including its values that are messages or words; None if the table lacks one.
    """
    if not isinstance(sentence, Message):
        return table.get(sentence)
    text_values = {
        name: value for name, value in sentence.values.items() if isinstance(value, str) and value
    }
    translated = {
        name: _translate_message(text, table)
        for name, text in text_values.items()
        if name in _TRANSLATED_VALUES or isinstance(text, Message)
    }
    if sentence.template not in table or None in translated.values():
        return None
    return message(table[sentence.template], **{**sentence.values, **translated})


_TRANSLATED_VALUES = ("what", "allowed", "advice", "part", "fault", "why", "key")
ENGLISH = load_catalogue("en")


def fill_template(template: str, **values: Any) -> str:
    """Fill in a template.

    Every text is escaped, and a missing value is an error.
    """
    # Readers of HTML and XML take a bare carriage return for the end of a line; here only texts
    # have one.
    return str(load_templates(TEMPLATES).get_template(template).render(**values)).replace(
        "\r", "&#13;"
    )


@cache
def load_templates(folder: Path) -> Any:
    """Return the templates of a folder; see `fill_template`."""
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
"""Readers are warned first of missing rows if these are more than this share of all rows."""
_WIDEST_SHARE = 0.5  # an interval longer than this tells nothing


def display_labels(
    labels: Labels, names: Sequence[str], texts: CodeTexts
) -> tuple[tuple[str, ...], ...]:
    """Return the display labels of the codes along some attributes.

    The code is appended if several codes share a label.
    """
    labels_by_key = []
    for codes, name in zip_longest(labels, names):
        texts_of_codes, words = texts.get(str(name), {}), tuple(map(str, codes))
        if texts_of_codes:
            labelled = [texts_of_codes.get(label, label) for label in words]
            counts = Counter(labelled)
            words = tuple(
                f"{word} ({label})" if counts[word] > 1 else word
                for word, label in zip(labelled, words, strict=True)
            )
        labels_by_key.append(words)
    return tuple(labels_by_key)


def make_picture(
    product: Product,
    labels: Labels,
    answer: FloatArray,
    low: FloatArray,
    high: FloatArray,
    privacy: Privacy | None,
    catalogue: Catalogue,
) -> Picture:
    """Return the picture that the chart of a table is drawn from.

    All cells, or numbers and dates without their cell of other values.
    """
    picture = Picture(
        name=table_title(product, catalogue),
        axes=make_axes(product, labels),
        answer=answer,
        low=low,
        high=np.where(np.isnan(answer), np.nan, high),
        unit=name_with_row_limit(name_quantity(product, catalogue), privacy, catalogue),
        format_answer=catalogue.format_answer,
        format_number=catalogue.format_number,
        up_to=catalogue.say("up_to"),
    )
    # numbers and dates in their order, without the cells of nulls and other values, if that makes
    # a line or is the only form that can be drawn
    kinds = [product.domain.kind(name) for name in product.attributes]
    further = [
        _count_further_cells(kind, axis_labels)
        for kind, axis_labels in zip(kinds, product.labels, strict=True)
    ]
    if any(further):
        drawn_axes = []
        shorter = make_axes(
            product,
            [
                axis_labels[: len(axis_labels) - count]
                for axis_labels, count in zip(labels, further, strict=True)
            ],
        )
        for axis, shorter_axis, count in zip(picture.axes, shorter, further, strict=True):
            left_out = catalogue.join_names(list(axis.labels[len(axis.labels) - count :]))
            shorter_name = f"{axis.name}, {catalogue.say('without', label=left_out)}"
            drawn_axes.append(
                replace(shorter_axis, name=shorter_name)
                if count and shorter_axis.is_numbered
                else axis
            )
        cells = tuple(slice(axis.size) for axis in drawn_axes)
        shorter_picture = replace(
            picture,
            axes=tuple(drawn_axes),
            answer=answer[cells],
            low=picture.low[cells],
            high=picture.high[cells],
        )
        drawn_short, drawn_whole = (
            "" if (chart := choose_chart(drawn)) is None else chart.name
            for drawn in (shorter_picture, picture)
        )
        picture = (
            shorter_picture
            if drawn_short == "lines" or drawn_whole == "largest" != drawn_short
            else picture
        )
    varying_axes = (
        tuple(axis for axis in picture.axes if axis.size > 1) or picture.axes[:1]
    )  # a key that is equal in every row tells nothing
    shape = tuple(axis.size for axis in varying_axes)
    answer, low, high = (
        values.reshape(shape) for values in (picture.answer, picture.low, picture.high)
    )
    return replace(picture, axes=varying_axes, answer=answer, low=low, high=high)


def _count_further_cells(kind: Kind, labels: Sequence[Label]) -> int:
    """Return how many labels at the end are of cells behind the regular ones."""
    count = len(kind.further_labels)
    return count if count and tuple(labels[-count:]) == kind.further_labels else 0


def make_axes(product: Product, labels: Labels) -> tuple[Axis, ...]:
    """Return one axis for each attribute.

    With as many keys as it has labels: ranges of numbers, dates, or else names.
    """
    result = []
    for name, attribute, queries, axis_labels in zip(
        product.keys, product.attributes, product.query_sets, labels, strict=True
    ):
        label_texts, kind = tuple(map(str, axis_labels)), product.domain.kind(attribute)
        edges = _cell_bounds(kind)
        ends = (
            interval_ends(queries.operator("", kind))
            if edges is not None and queries.form.intervals
            else None
        )
        if edges is not None and ends is not None:
            low, high = (
                values[end[: len(label_texts)]] for values, end in zip(edges, ends, strict=True)
            )
            # a single number is drawn as wide as the step to the next, so that neighbours touch
            step = (
                1.0
                if isinstance(kind, Integers)
                else float(kind.step)
                if isinstance(kind, Decimals)
                else 0.0
            )
            drawn_high = high + step if queries.form.axis == "cells" else high
            result.append(
                Axis(
                    name=name,
                    labels=label_texts,
                    kind=queries.form.axis,
                    low=low,
                    high=drawn_high,
                    first=low,
                    last=high,
                )
            )
            continue
        moments = [
            *takewhile(bool, (first_moment(label.removeprefix("<= ")) for label in label_texts))
        ]
        are_dates = (
            queries.form.axis != "spans"
            and len(moments) == len(label_texts) > 2
            and len(label_texts[0]) > 4
        )
        result.append(
            Axis(
                name=name,
                labels=label_texts,
                kind="times" if are_dates else "names",
                moments=tuple(map(str, moments)) if are_dates else (),
            )
        )
    return tuple(result)


def first_moment(label: str) -> str | None:
    """Return the first day or hour of a period in ISO form.

    None for a label that is no period.
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
    """Return the first and the last number of every cell.

    NaN for the cell of other values; None if cells are no numbers.
    """
    if isinstance(kind, (Bins, Edges)):
        edges = np.array([float(edge) for edge in kind.edges])
        low, high = edges[:-1], edges[1:]
    elif isinstance(kind, Integers):
        low = high = np.arange(kind.low, kind.high + 1, dtype=float)
    elif isinstance(kind, Decimals):
        low = high = np.array([float(value) for value in kind.values])
    else:
        return None
    missing = np.full(kind.size - len(low), np.nan)
    return np.concatenate([low, missing]), np.concatenate([high, missing])


def table_title(product: Product, catalogue: Catalogue) -> str:
    """Return the name of a table."""
    table = catalogue.say("name_total")
    if product.attributes:
        table = replace(product, measure=None).name
        for query_set in {*product.query_sets}:
            if query_set.kind not in ("identity", "level"):
                periods = query_set.arguments[0][0] if query_set.form.numbered else 0
                table = table.replace(
                    f":{query_set.word}",
                    f" ({catalogue.say(f'name_along_{query_set.kind}', periods=periods)})",
                )
    if product.measure is None:
        return table
    quantity = (
        catalogue.say("name_sum", measure=product.measure)
        if product.of_values
        else name_measured(product, catalogue, "name")
    )
    return catalogue.say("name_by", name=quantity, groups=table) if product.attributes else quantity


def name_measured(product: Product, catalogue: Catalogue, key: str = "unit") -> str:
    """Return the name of what a table sums or counts.

    A measure, rows, units, or values of a measure.
    """
    if product.of_values:
        return str(product.measure)
    if product.values_of is not None:
        return catalogue.say(f"{key}_values", measure=product.values_of)
    return catalogue.say("name_units" if product.of_units else "unit_rows")


def name_quantity(product: Product, catalogue: Catalogue) -> str:
    """Name the quantity of every answer of a table, such as ``rows`` or ``sum of pay``."""
    if product.of_values:
        return catalogue.say("name_sum", measure=product.measure)
    return name_measured(product, catalogue)


def statistic_title(statistic: Statistic, catalogue: Catalogue) -> str:
    """Return the name of a mean, of quantiles or of a distribution function."""
    title = catalogue.say(f"name_{statistic.kind}", of=statistic.of)
    return (
        catalogue.say("name_by", name=title, groups=statistic.groups_name)
        if statistic.by
        else title
    )


class ShareInterval(NamedTuple):
    """The share of rows that a limit cut, with its interval.

    At the level of the release.
    """

    share: float
    low: float
    high: float


def estimate_cut_share(receipt: Mapping[str, Any], level: float) -> ShareInterval | None:
    """Return the share of rows that the row limit of units cut.

    By the guard's noisy counts; None if the noise hides it.

    Of C rows cut and K kept, both with independent noise of standard errors s and t, |C - r K| <= z
    sqrt(s^2 + r^2 t^2) holds for the true r = cut / kept at the level. The interval has all r for
    which it does (Fieller 1954), and cut / (cut + kept) is r / (1 + r).
    """
    if "guard_cut" not in receipt:
        return None
    cut, kept, cut_error, kept_error = (
        float(receipt[f"guard_{name}"]) for name in ("cut", "kept", "cut_std", "noise_std")
    )
    cut = max(
        0.0,
        cut,
        # around 0 an interval has all numbers of at least 0 that one around less has, and never ends at
        # 0
    )
    multiplier = interval_multiplier(Noise.DISCRETE_LAPLACE, level)
    cut_error, kept_error = multiplier * cut_error, multiplier * math.sqrt(2) * kept_error
    square = kept**2 - kept_error**2
    if kept <= 0 or square <= 0:
        return None
    root = math.sqrt(
        (kept * cut_error) ** 2 + (cut * kept_error) ** 2 - (cut_error * kept_error) ** 2
    )
    share, low, high = (
        max(0.0, ratio) / (1 + max(0.0, ratio))
        for ratio in (cut / kept, (cut * kept - root) / square, (cut * kept + root) / square)
    )
    return ShareInterval(share, low, high) if high - low <= _WIDEST_SHARE else None


def format_row_limit(
    privacy: Privacy, receipt: Mapping[str, Any], level: float, catalogue: Catalogue
) -> str:
    """Say that the answers count at most so many rows of a unit.

    And about how many rows were cut; empty without a limit.
    """
    if privacy.unit_column is None:
        return ""
    share, limit = (
        estimate_cut_share(receipt, level),
        catalogue.say_count("of", privacy.max_rows, column=repr(privacy.unit_column)),
    )
    return (
        limit
        if share is None or share.share < 0.005
        else catalogue.say(
            "of_share", of=limit, share=catalogue.format_percent(round(share.share, 2))
        )
    )


def name_with_row_limit(unit: str, privacy: Privacy | None, catalogue: Catalogue) -> str:
    """Name what a table counts or sums.

    And the limit on the rows of a unit if there is one.
    """
    if privacy is None or privacy.unit_column is None:
        return unit
    return catalogue.say_count("unit_of", privacy.max_rows, unit=unit, column=privacy.unit_column)
