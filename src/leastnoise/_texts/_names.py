"""Read and look up display names of attributes, measures, tables and rows.

A text is one string for all languages, or a mapping with a string for each language. Names change
only the texts for readers. Columns, ids and codes in files are not renamed.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from leastnoise._texts._translations import LANGUAGES
from leastnoise._trusted.check import InputError, one_of, refuse, whole

Text = str | Mapping[str, str]
MOST_DECIMALS = 12
"""Maximum number of decimals of a number as text; doubles have 15 to 17 digits."""
_PARTS = ("rows", "units", "unit", "attributes", "levels", "measures", "tables")
_FORMAT_KEYS = ("decimals", "percent", "thousands")
SCALES = (1000, 10**6, 10**9, 10**12)
"""The scales of sums: thousands, millions, billions and trillions."""
_TEXT_KEYS: Mapping[str, tuple[str, ...]] = {
    "attributes": ("name", "unit", "quantiles", "cdf"),
    "levels": ("name",),
    "measures": ("name", "unit", "mean", "sum", "count"),
    "tables": ("name", "unit"),
}
"""The texts that an entry of each part may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """The format in which readers see the numbers of a quantity.

    Attributes:
        decimals: the number of decimals; if None, only decimals that the noise leaves meaningful
            are shown.
        percent: if True, 0.123 is written as 12.3%.
        thousands: if True, digits are separated in groups of three.
        scale: the number by which values are divided, such as 1,000,000.
    """

    decimals: int | None = None
    percent: bool = False
    thousands: bool = True
    scale: int = 1

    @property
    def factor(self) -> float:
        """The number by which a value is multiplied before it is written."""
        return 100.0 if self.percent else 1 / self.scale

    def excel_notation(self, half_width: float) -> str:
        """Return the format in Excel's notation, such as ``#,##0.0``.

        Args:
            half_width: the typical half width of an interval, in percent if the sheet shows the
                values in percent. If ``decimals`` is None, numbers have as many decimals as this
                half width needs for two significant digits.
        """
        decimals = self.decimals
        if decimals is None:
            decimals = 0
            if 0 < half_width < 1:
                decimals = min(MOST_DECIMALS, 1 - math.floor(math.log10(half_width)))
        digits = "0"
        if decimals:
            digits = f"0.{'0' * decimals}"
        if self.thousands:
            digits = f"#,##{digits}"
        if self.percent:
            digits = f"{digits}%"
        return digits


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityNames:
    """Display names and number format of an attribute, level, measure or table.

    Attributes:
        name: the display name; empty if no name is stated.
        unit: the unit of the values, such as ``EUR per year``.
        mean: the display name of means, such as ``Mean net income``.
        sum: the display name of sums.
        count: the display name of the number of rows with a value.
        quantiles: the display name of quantiles.
        cdf: the display name of the distribution function.
        number_format: the format of the values.
        scale: the divisor with which sums are shown, such as 1,000,000.
    """

    name: str = ""
    unit: str = ""
    mean: str = ""
    sum: str = ""
    count: str = ""
    quantiles: str = ""
    cdf: str = ""
    number_format: NumberFormat = NumberFormat()
    scale: int = 1


_NO_NAMES = QuantityNames()


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The display names of a release in one language.

    Attributes:
        rows: the name of rows, in the plural, such as ``persons``; empty for the name ``rows``.
        units: the name of privacy units, in the plural.
        unit: the name of one privacy unit, such as ``household``.
        attributes: the names of attributes.
        levels: the names of levels by key, such as ``store:region``.
        measures: the names of measures.
        tables: the titles of tables and statistics by their names.
    """

    rows: str = ""
    units: str = ""
    unit: str = ""
    attributes: Mapping[str, QuantityNames] = field(default_factory=dict)
    levels: Mapping[str, QuantityNames] = field(default_factory=dict)
    measures: Mapping[str, QuantityNames] = field(default_factory=dict)
    tables: Mapping[str, QuantityNames] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no display name is stated."""
        return not (
            self.rows
            or self.units
            or self.unit
            or self.attributes
            or self.levels
            or self.measures
            or self.tables
        )

    def attribute(self, name: str) -> QuantityNames:
        """Return the display names of an attribute; they are empty if not stated."""
        return self.attributes.get(name, _NO_NAMES)

    def level(self, key: str) -> QuantityNames:
        """Return the display names of a level, by a key such as ``store:region``."""
        return self.levels.get(key, _NO_NAMES)

    def measure(self, name: str) -> QuantityNames:
        """Return the display names of a measure; they are empty if none are stated."""
        return self.measures.get(name, _NO_NAMES)

    def table(self, name: str) -> QuantityNames:
        """Return the display names of a table or statistic."""
        return self.tables.get(name, _NO_NAMES)


NO_NAMES = Names()
PLAIN_NUMBERS = NumberFormat()


_MOST_LISTED_KEYS = 8  # keys that a message lists; a choice of layout


def check_key(subject: str, key: str, allowed: Iterable[str]) -> None:
    """Raise an error that lists the allowed keys if ``key`` is not among them."""
    keys = [*allowed]
    if key in keys:
        return
    listing = ", ".join(repr(name) for name in keys[:_MOST_LISTED_KEYS])
    more = ", ..." if len(keys) > _MOST_LISTED_KEYS else ""
    raise refuse(subject, key, f"one of {listing}{more}" if keys else "left out: there are none")


def capitalize(text: str) -> str:
    """Return a text with its first letter in upper case, the rest unchanged."""
    return text[:1].upper() + text[1:]


def is_translated(text: object) -> bool:
    """Return whether a value maps language codes to texts."""
    return (
        isinstance(text, Mapping)
        and bool(text)
        and set(text) <= set(LANGUAGES)
        and all(isinstance(line, str) for line in text.values())
    )


def check_text(subject: str, text: object) -> Text:
    """Return a one-line text, or a mapping from languages to one-line texts.

    Raises:
        InputError: ``text`` has another type, is empty, or has several lines.
    """
    if isinstance(text, Mapping):
        if not text:
            raise refuse(subject, {}, "a text, or one for each language: { en = ..., de = ... }")
        return {
            one_of(f"a language of {subject}", language, LANGUAGES): _check_line(subject, line)
            for language, line in text.items()
        }
    return _check_line(subject, text)


def _check_line(subject: str, line: object) -> str:
    """Return a text of one line; raise for anything else."""
    if not isinstance(line, str) or not line.strip() or len(line.splitlines()) > 1:
        raise refuse(subject, line, "a text of one line, or one for each language")
    return line


def text_in(text: Text, language: str) -> str:
    """Return a text in a language, or in the first language that has it."""
    if isinstance(text, str):
        return text
    return text.get(language) or next(iter(text.values()), "")


def list_texts(value: object, location: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each mapping by language inside a value, with its location."""
    if not isinstance(value, Mapping):
        return
    if is_translated(value):
        yield location, value
        return
    for key, entry in value.items():
        yield from list_texts(entry, f"{location} {key}")


def check_names(names: object) -> dict[str, Any]:
    """Return the checked section ``[names]``; every entry is a table.

    Raises:
        InputError: a key is unknown, or a value is neither a text nor a number format.
    """
    if not isinstance(names, Mapping):
        raise refuse("names", names, f"a table with some of {', '.join(_PARTS)}")
    checked: dict[str, Any] = {}
    for part, value in names.items():
        one_of("a key of names", part, _PARTS)
        if part in ("rows", "units", "unit"):
            checked[part] = check_text(f"names {part}", value)
            continue
        if not isinstance(value, Mapping):
            raise refuse(f"names {part}", value, "a table with a name for each entry")
        checked[part] = {
            str(key): _check_entry(part, str(key), entry) for key, entry in value.items()
        }
    return checked


def _check_entry(group: str, key: str, entry: object) -> dict[str, Any]:
    """Return one entry of ``[names]`` as a checked table of settings."""
    where = f"names {group} {key}"
    if isinstance(entry, str) or is_translated(entry):
        return {"name": check_text(where, entry)}
    allowed = _TEXT_KEYS[group] if group == "levels" else (*_TEXT_KEYS[group], *_FORMAT_KEYS)
    if group == "measures":
        allowed = (*allowed, "scale")
    if not isinstance(entry, Mapping) or not entry:
        raise refuse(where, entry, f"a text, or a table with some of {', '.join(allowed)}")
    checked: dict[str, Any] = {}
    for setting, value in entry.items():
        one_of(f"a key of {where}", setting, allowed)
        subject = f"{where} {setting}"
        if setting == "decimals":
            checked[setting] = whole(subject, value, 0, MOST_DECIMALS)
        elif setting == "scale":
            if value not in SCALES or isinstance(value, bool):
                raise refuse(subject, value, f"one of {', '.join(map(str, SCALES))}")
            checked[setting] = int(value)
        elif setting in _FORMAT_KEYS:
            if not isinstance(value, bool):
                raise refuse(subject, value, "true or false")
            checked[setting] = value
        else:
            checked[setting] = check_text(subject, value)
    return checked


def names_in(names: Mapping[str, Any], language: str, *, scaled: bool = False) -> Names:
    """Return the display names of a checked section ``[names]`` in one language.

    Args:
        names: the checked section.
        language: the language, such as ``de``.
        scaled: whether sums have the stated scales. Files and working displays have the values
            themselves.
    """
    parts = {
        part: {
            key: _quantity_names_in(entry, language, scaled=scaled)
            for key, entry in names.get(part, {}).items()
        }
        for part in _TEXT_KEYS
    }
    return Names(
        rows=text_in(names.get("rows", ""), language),
        units=text_in(names.get("units", ""), language),
        unit=text_in(names.get("unit", ""), language),
        **parts,
    )


def _quantity_names_in(entry: Mapping[str, Any], language: str, *, scaled: bool) -> QuantityNames:
    """Return the display names and number format of an entry in one language."""
    texts = {
        key: text_in(value, language)
        for key, value in entry.items()
        if key not in (*_FORMAT_KEYS, "scale")
    }
    formats = {key: value for key, value in entry.items() if key in _FORMAT_KEYS}
    scale = entry.get("scale", 1) if scaled else 1
    return QuantityNames(number_format=NumberFormat(**formats), scale=scale, **texts)


def check_languages(texts: Mapping[str, object], languages: tuple[str, ...]) -> None:
    """Raise if a text with translations lacks one of a release's languages.

    Args:
        texts: values that may contain translated texts, by their location in the options, for
            messages.
        languages: the languages of the reports.
    """
    for where, value in texts.items():
        for location, translated in list_texts(value, where):
            missing = [language for language in languages if language not in translated]
            if missing:
                raise InputError(
                    f"The report is written in {' and '.join(languages)}, but {location} has "
                    f"{' and '.join(translated)} only. Add {' and '.join(missing)}, or give one "
                    "text for all languages."
                )
