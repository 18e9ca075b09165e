"""Fields of the planning page: names, outputs, and the survey's sampling error.

Each field has a path in the spec. A text that differs between languages has one field per language.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import tomlkit

from leastnoise._studio._form_parts import SURVEY_NUMBERS, parse_number
from leastnoise._texts import LANGUAGES
from leastnoise._trusted.check import InputError, one_of

_OUTPUT_TEXTS = ("title", "source", "agency", "contact")
_OUTPUT_NUMBERS = ("round", "below")
_NOUNS = ("rows", "units", "unit")
_OF_MEASURES = ("name", "mean", "sum", "unit")
_ENTRY_DEPTH = 2  # of an attribute, level or measure below [names]
_MOST_ENTRY_FIELDS = 400  # of columns, levels and measures; a longer form is slow to fill in


@dataclass(frozen=True, slots=True)
class PublicationField:
    """A form field of the planning page.

    Attributes:
        path: the keys from the top of the spec to the value. For a translated text, the last key is
            the language.
        group: the section of the form: ``output``, ``names`` or ``survey``.
        key: the catalogue key of the field's label.
        subject: the column or level that the field describes; empty for the whole release.
        is_text: whether the value is a text, which can be translated, and not a number.
    """

    path: tuple[str, ...]
    group: str
    key: str
    subject: str = ""
    is_text: bool = True

    @property
    def id(self) -> str:
        """The identifier of the field in requests and on the page."""
        return "/".join(part.replace("~", "~0").replace("/", "~1") for part in self.path)

    @property
    def language(self) -> str:
        """The language of the field's text; empty for a number."""
        return self.path[-1] if self.is_text else ""


def publication_fields(spec_table: Mapping[str, Any]) -> tuple[PublicationField, ...]:
    """Return all publication fields of a spec, in the order of the page.

    Args:
        spec_table: the parsed TOML table of the spec.
    """
    return tuple(_list_fields(spec_table))


def _list_fields(spec_table: Mapping[str, Any]) -> Iterator[PublicationField]:
    """Yield the fields of outputs, names and the survey."""
    for key in _OUTPUT_TEXTS:
        yield from _fields_in_languages(("output", key), "output", f"pf_{key}")
    for key in _OUTPUT_NUMBERS:
        yield PublicationField(("output", key), "output", f"sd_{key}", is_text=False)
    for key in _NOUNS:
        yield from _fields_in_languages(("names", key), "names", f"sd_{key}_name")
    yield from islice(_list_entry_fields(spec_table), _MOST_ENTRY_FIELDS)
    for key in SURVEY_NUMBERS:
        yield PublicationField(("survey", key), "survey", f"pf_{key}", is_text=False)


def _list_entry_fields(spec_table: Mapping[str, Any]) -> Iterator[PublicationField]:
    """Yield the fields for names of columns, levels and measures."""
    for name, attribute in spec_table["domain"].items():
        for key in ("name", "unit"):
            yield from _fields_in_languages(
                ("names", "attributes", name, key), "names", f"pf_{key}", name
            )
        for level in attribute.get("levels", {}):
            level_key = f"{name}:{level}"
            # The spec may state the name of a level without its attribute.
            named = level if level in spec_table.get("names", {}).get("levels", {}) else level_key
            path = ("names", "levels", named, "name")
            yield from _fields_in_languages(path, "names", "pf_name", level_key)
    for measure in spec_table.get("measures", {}):
        for key in _OF_MEASURES:
            path = ("names", "measures", measure, key)
            yield from _fields_in_languages(path, "names", f"pf_{key}", measure)


def _fields_in_languages(
    path: tuple[str, ...], group: str, key: str, subject: str = ""
) -> Iterator[PublicationField]:
    """Yield one field of a text for each language."""
    for language in LANGUAGES:
        yield PublicationField((*path, language), group, key, subject)


def read_fields(
    spec_table: Mapping[str, Any], fields: tuple[PublicationField, ...]
) -> dict[str, str]:
    """Return the text of each field in a spec, by field identifier.

    Missing values are empty texts. A text for all languages is in the field of the first language.
    """
    texts = {}
    for field in fields:
        value = _value_at_path(spec_table, field.path[:-1] if field.is_text else field.path)
        if field.is_text and isinstance(value, Mapping):
            value = value.get(field.language, "")
        elif field.is_text and field.language != LANGUAGES[0]:
            value = ""
        texts[field.id] = str(value)
    return texts


def _value_at_path(spec_table: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the value at a path of a spec; an empty text if it is missing.

    The short form of an entry of [names] is its name.
    """
    value: Any = spec_table
    for position, key in enumerate(path):
        is_entry = position == len(path) - 1 and path[0] == "names" and len(path) > 2
        if is_entry and _is_short_entry(value):
            return value if key == "name" else ""
        if not isinstance(value, Mapping) or key not in value:
            return ""
        value = value[key]
    return value


def _is_short_entry(entry: object) -> bool:
    """Return whether an entry of [names] is only a name, possibly translated."""
    return isinstance(entry, str) or (
        isinstance(entry, Mapping) and bool(entry) and set(entry) <= set(LANGUAGES)
    )


def check_field(fields: tuple[PublicationField, ...], field_id: str, value: object) -> str:
    """Check the new text of a field, and return it without surrounding blanks.

    Raises:
        InputError: the page has no such field, or the value is not one line of text.
    """
    one_of("a field", field_id, [field.id for field in fields])
    if not isinstance(value, str) or not value.isprintable():
        raise InputError("A name must be a text of one line without control characters.")
    return value.strip()


def write_fields(
    document: Any, fields: tuple[PublicationField, ...], changes: Mapping[str, str]
) -> None:
    """Write changed texts of fields into the TOML document of a spec.

    Args:
        document: the tomlkit document.
        fields: the fields of the page.
        changes: the new texts by field identifier. An empty text removes the key.
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
        _set_at_path(document, path, value)


def combine_languages(texts: Mapping[str, str]) -> Any:
    """Return one text if all languages have the same, else a table by language."""
    given = {language: text for language, text in texts.items() if text}
    if len(set(given.values())) <= 1:
        return next(iter(given.values()), "")
    table = tomlkit.inline_table()
    table.update(given)
    return table


def _set_at_path(document: Any, path: tuple[str, ...], value: Any) -> None:
    """Set a value at a path of a document.

    An empty value is removed, and so are tables that become empty.
    """
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
