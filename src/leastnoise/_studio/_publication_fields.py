"""The fields of the planning page for names, outputs and the sampling error of a survey.

A field is a path in the spec. A text that differs between languages has a field for each.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import tomlkit

from leastnoise._release import LANGUAGES
from leastnoise._studio._form_parts import SURVEY_NUMBERS, parse_number
from leastnoise._trusted.check import InputError, one_of

_OUTPUT_TEXTS = ("title", "source", "agency", "contact")
_OUTPUT_NUMBERS = ("round", "below")
_NOUNS = ("rows", "units", "unit")
_OF_MEASURES = ("name", "mean", "sum", "unit")
_ENTRY_DEPTH = 2  # of an attribute, level or measure below [names]
_MOST_ENTRY_FIELDS = 400  # of columns, levels and measures; a longer form is slow to fill in


@dataclass(frozen=True, slots=True)
class PublicationField:
    """A field of the planning page.

    Attributes:
        path: the keys of its value in the spec; a translated text also has the language.
        group: the part of the form: ``output``, ``names`` or ``survey``.
        key: the key of its label among the texts of the studio.
        subject: the column or level that it names; empty for a field of the whole release.
        is_text: whether its value is a text in languages, and not a number.
    """

    path: tuple[str, ...]
    group: str
    key: str
    subject: str = ""
    is_text: bool = True

    @property
    def id(self) -> str:
        """The name of the field in requests and on the page."""
        return "/".join(part.replace("~", "~0").replace("/", "~1") for part in self.path)

    @property
    def language(self) -> str:
        """The language of a text; empty for a number."""
        return self.path[-1] if self.is_text else ""


def publication_fields(table: Mapping[str, Any]) -> tuple[PublicationField, ...]:
    """Return the fields that a spec can have, in the order of the page.

    Args:
        table: the spec, as its TOML file states it.
    """
    return tuple(_list_fields(table))


def _list_fields(table: Mapping[str, Any]) -> Iterator[PublicationField]:
    """Yield the fields of outputs, of names and of the survey."""
    for key in _OUTPUT_TEXTS:
        yield from _in_languages(("output", key), "output", f"pf_{key}")
    for key in _OUTPUT_NUMBERS:
        yield PublicationField(("output", key), "output", f"sd_{key}", is_text=False)
    for key in _NOUNS:
        yield from _in_languages(("names", key), "names", f"sd_{key}_name")
    yield from islice(_list_entry_fields(table), _MOST_ENTRY_FIELDS)
    for key in SURVEY_NUMBERS:
        yield PublicationField(("survey", key), "survey", f"pf_{key}", is_text=False)


def _list_entry_fields(table: Mapping[str, Any]) -> Iterator[PublicationField]:
    """Yield the fields of the names of columns, levels and measures."""
    for name, attribute in table["domain"].items():
        for key in ("name", "unit"):
            yield from _in_languages(("names", "attributes", name, key), "names", f"pf_{key}", name)
        for level in attribute.get("levels", {}):
            level_key = f"{name}:{level}"
            # The spec may name a level without its attribute.
            named = level if level in table.get("names", {}).get("levels", {}) else level_key
            path = ("names", "levels", named, "name")
            yield from _in_languages(path, "names", "pf_name", level_key)
    for measure in table.get("measures", {}):
        for key in _OF_MEASURES:
            path = ("names", "measures", measure, key)
            yield from _in_languages(path, "names", f"pf_{key}", measure)


def _in_languages(
    path: tuple[str, ...], group: str, key: str, subject: str = ""
) -> Iterator[PublicationField]:
    """Yield one field for each language of a text."""
    for language in LANGUAGES:
        yield PublicationField((*path, language), group, key, subject)


def read_fields(table: Mapping[str, Any], fields: tuple[PublicationField, ...]) -> dict[str, str]:
    """Return the texts of the fields as a spec has them, empty where it has none.

    A text for all languages is in the field of the first language.
    """
    texts = {}
    for field in fields:
        value = _find(table, field.path[:-1] if field.is_text else field.path)
        if field.is_text and isinstance(value, Mapping):
            value = value.get(field.language, "")
        elif field.is_text and field.language != LANGUAGES[0]:
            value = ""
        texts[field.id] = str(value)
    return texts


def _find(table: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the value at a path of a spec; empty without one.

    The short form of an entry of [names] is its name.
    """
    value: Any = table
    for position, key in enumerate(path):
        is_entry = position == len(path) - 1 and path[0] == "names" and len(path) > 2
        if is_entry and _is_short_entry(value):
            return value if key == "name" else ""
        if not isinstance(value, Mapping) or key not in value:
            return ""
        value = value[key]
    return value


def _is_short_entry(entry: object) -> bool:
    """Return whether an entry of [names] is only a name, in one or more languages."""
    return isinstance(entry, str) or (
        isinstance(entry, Mapping) and bool(entry) and set(entry) <= set(LANGUAGES)
    )


def check_field(fields: tuple[PublicationField, ...], name: str, value: object) -> str:
    """Return the text of a field without blanks around it.

    Raises:
        InputError: the page has no such field, or the value is no text of one line.
    """
    one_of("a field", name, [field.id for field in fields])
    if not isinstance(value, str) or not value.isprintable():
        raise InputError("A name must be a text of one line without control characters.")
    return value.strip()


def write_fields(
    document: Any, fields: tuple[PublicationField, ...], changes: Mapping[str, str]
) -> None:
    """Write changed fields into the document of a spec.

    Args:
        document: the document of tomlkit.
        fields: the fields of the page.
        changes: the new texts by field; an empty one removes the key.
    """
    texts = {**read_fields(document.unwrap(), fields), **changes}
    written = set()
    for field in fields:
        path = field.path[:-1] if field.is_text else field.path
        if field.id not in changes or path in written:
            continue
        written.add(path)
        value: Any = parse_number(changes[field.id])
        if field.is_text:
            value = combine_languages(
                {one.language: texts[one.id] for one in fields if one.path[:-1] == path}
            )
        _put(document, path, value)


def combine_languages(texts: Mapping[str, str]) -> Any:
    """Return one text for all languages, or a table with one for each."""
    given = {language: text for language, text in texts.items() if text}
    if len(set(given.values())) <= 1:
        return next(iter(given.values()), "")
    table = tomlkit.inline_table()
    table.update(given)
    return table


def _put(document: Any, path: tuple[str, ...], value: Any) -> None:
    """Put a value at a path of a document; remove an empty value and empty tables."""
    *parents, key = path
    tables = [document]
    for depth, parent in enumerate(parents):
        table = tables[-1]
        is_entry = depth == _ENTRY_DEPTH
        if parent not in table:
            table[parent] = tomlkit.inline_table() if is_entry else tomlkit.table()
        elif is_entry and _is_short_entry(table[parent]):
            entry = tomlkit.inline_table()
            entry["name"] = table[parent]
            table[parent] = entry
        tables.append(table[parent])
    if value:
        tables[-1][key] = value
    else:
        tables[-1].pop(key, None)
    for table, parent in reversed([*zip(tables, parents, strict=False)]):
        if table[parent]:
            return
        del table[parent]
