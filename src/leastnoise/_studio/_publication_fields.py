"""Fields of the planning page: names, outputs, public facts, and the sampling error.

Each field has a path in the spec. A text that differs between languages has one field per language.
Fields of one entry, such as the file and the columns of labels, are written when all are filled in.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import tomlkit

from leastnoise._release import PUBLICATION_TEXTS
from leastnoise._studio._form_parts import SURVEY_NUMBERS, parse_number
from leastnoise._studio._totals_and_ids import SDMX_FLOWS, SDMX_STATUS, read_codes, read_totals
from leastnoise._texts import LANGUAGES, has_text
from leastnoise._trusted.check import InputError, one_of

_OUTPUT_NUMBERS = ("round", "below")
_NOUNS = ("rows", "units", "unit")
_OF_MEASURES = ("name", "mean", "sum", "unit")
_ENTRY_DEPTH = 2  # of an attribute, level or measure below [names]
_MOST_ENTRY_FIELDS = 400  # of columns, levels and measures; a longer form is slow to fill in
_TOTAL_KEYS = ("counts", "file", "column")  # of a [[public]] entry, as fields


@dataclass(frozen=True, slots=True)
class PublicationField:
    """A form field of the planning page.

    Attributes:
        path: the keys from the top of the spec to the value. For a translated text, the last key is
            the language.
        group: the section of the form: ``output``, ``names``, ``survey``, ``sdmx`` or ``facts``.
        key: the catalogue key of the field's label.
        subject: the column or level that the field describes; empty for the whole release.
        form: ``text`` for a text that can be translated, ``number``, ``id`` for another text,
            ``flag``, ``flows`` for a kind of data flows, or ``codes`` for a table of ids.
        entry_depth: the number of keys that the fields of one entry share; 0 if the field does not
            need others.
    """

    path: tuple[str, ...]
    group: str
    key: str
    subject: str = ""
    form: str = "text"
    entry_depth: int = 0

    @property
    def id(self) -> str:
        """The identifier of the field in requests and on the page."""
        return "/".join(part.replace("~", "~0").replace("/", "~1") for part in self.path)

    @property
    def is_text(self) -> bool:
        """Whether the value is a text that can be translated."""
        return self.form == "text"

    @property
    def language(self) -> str:
        """The language of the field's text; empty if it is not translated."""
        return self.path[-1] if self.is_text else ""

    @property
    def value_path(self) -> tuple[str, ...]:
        """The keys from the top of the spec to the value, without a language."""
        return self.path[:-1] if self.is_text else self.path

    @property
    def entry(self) -> tuple[str, ...]:
        """The keys that the fields of its entry share; empty without an entry."""
        return self.path[: self.entry_depth]

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """The values of a list of choices, each with the catalogue key of its text."""
        if self.form == "flag":
            return (("", "pf_no"), ("true", "pf_yes"))
        if self.form == "flows":
            return tuple((flows, f"sd_flows_{flows}") for flows in SDMX_FLOWS)
        return ()


def publication_fields(spec_table: Mapping[str, Any]) -> tuple[PublicationField, ...]:
    """Return all publication fields of a spec, in the order of the page.

    Args:
        spec_table: the parsed TOML table of the spec.
    """
    return tuple(_list_fields(spec_table))


def _list_fields(spec_table: Mapping[str, Any]) -> Iterator[PublicationField]:
    """Yield the fields of outputs, names, SDMX, public facts and the survey."""
    for key in filter(_has_label, PUBLICATION_TEXTS):
        yield from _fields_in_languages(("output", key), "output", f"pf_{key}")
    for key in _OUTPUT_NUMBERS:
        yield PublicationField(("output", key), "output", f"sd_{key}", form="number")
    for key in _NOUNS:
        yield from _fields_in_languages(("names", key), "names", f"sd_{key}_name")
    yield from islice(_list_entry_fields(spec_table), _MOST_ENTRY_FIELDS)
    yield from _list_sdmx_fields(spec_table)
    yield from _list_fact_fields(spec_table)
    for key in SURVEY_NUMBERS:
        yield PublicationField(("survey", key), "survey", f"pf_{key}", form="number", entry_depth=1)


def _has_label(option: str) -> bool:
    """Return whether the page has a label for an option, and so a field."""
    return has_text(f"pf_{option}")


def _list_entry_fields(spec_table: Mapping[str, Any]) -> Iterator[PublicationField]:
    """Yield the fields for names of columns, levels and measures."""
    for name, attribute in spec_table["domain"].items():
        for key in ("name", "unit"):
            yield from _fields_in_languages(
                ("names", "attributes", name, key), "names", f"pf_{key}", name
            )
        if "file" in attribute.get("labels", {"file": ""}):
            yield from _list_label_fields(name)
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


def _list_label_fields(name: str) -> Iterator[PublicationField]:
    """Yield the fields for a public file of labels: the file and its columns."""
    path = ("domain", name, "labels")
    for key in ("file", "key"):
        yield PublicationField((*path, key), "names", f"sd_labels_{key}", name, "id", len(path))
    yield from _fields_in_languages((*path, "value"), "names", "sd_labels_value", name, len(path))


def _list_sdmx_fields(spec_table: Mapping[str, Any]) -> Iterator[PublicationField]:
    """Yield the fields for the ids of SDMX, if the release has files in SDMX."""
    output = spec_table.get("output", {})
    if "sdmx" not in output and "sdmx" not in output.get("formats", ()):
        return
    path = ("output", "sdmx")
    for key in ("agency", "period"):
        yield PublicationField((*path, key), "sdmx", f"sd_sdmx_{key}", form="id")
    yield PublicationField((*path, "flows"), "sdmx", "sd_sdmx_flows", form="flows")
    for key in ("rows", "units"):
        yield PublicationField((*path, "units", key), "sdmx", f"sd_sdmx_{key}", form="id")
    for key in SDMX_STATUS:
        yield PublicationField((*path, "status", key), "sdmx", f"sd_sdmx_{key}", form="id")
    yield from islice(_list_sdmx_entry_fields(spec_table, path), _MOST_ENTRY_FIELDS)


def _list_sdmx_entry_fields(
    spec_table: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[PublicationField]:
    """Yield the fields for the ids of columns, levels and measures in SDMX."""
    for name, attribute in spec_table["domain"].items():
        keys = [name, *(f"{name}:{level}" for level in attribute.get("levels", {}))]
        for key in keys:
            yield PublicationField((*path, "concepts", key), "sdmx", "sd_concept", key, "id")
        yield PublicationField((*path, "codes", name), "sdmx", "sd_sdmx_codes", name, "codes")
    for measure in spec_table.get("measures", {}):
        yield PublicationField((*path, "units", measure), "sdmx", "sd_unit_code", measure, "id")


def _list_fact_fields(spec_table: Mapping[str, Any]) -> Iterator[PublicationField]:
    """Yield the fields for complete columns and public totals."""
    yield PublicationField(("public", "", "counts"), "facts", "pf_all_rows", form="number")
    yield from islice(_list_fact_entry_fields(spec_table), _MOST_ENTRY_FIELDS)


def _list_fact_entry_fields(spec_table: Mapping[str, Any]) -> Iterator[PublicationField]:
    """Yield the fields for complete columns, and for totals of values and groups."""
    for name, attribute in spec_table["domain"].items():
        path = ("domain", name, "complete")
        yield PublicationField(path, "facts", "pf_complete", name, "flag")
        for subject in (name, *(f"{name}:{level}" for level in attribute.get("levels", {}))):
            for key in _TOTAL_KEYS:
                path = ("public", subject, key)
                yield PublicationField(path, "facts", f"sd_public_{key}", subject, "id")


def _fields_in_languages(
    path: tuple[str, ...], group: str, key: str, subject: str = "", entry_depth: int = 0
) -> Iterator[PublicationField]:
    """Yield one field of a text for each language."""
    for language in LANGUAGES:
        yield PublicationField((*path, language), group, key, subject, entry_depth=entry_depth)


def read_fields(
    spec_table: Mapping[str, Any], fields: tuple[PublicationField, ...]
) -> dict[str, str]:
    """Return the text of each field in a spec, by field identifier.

    Missing values are empty texts. A text for all languages is in the field of the first language.
    """
    totals = _totals_by_subject(spec_table)
    texts = {}
    for field in fields:
        if field.path[0] == "public":
            texts[field.id] = totals.get(field.path[1], {}).get(field.path[2], "")
        else:
            texts[field.id] = _field_text(field, _value_at_path(spec_table, field.value_path))
    return texts


def _field_text(field: PublicationField, value: Any) -> str:
    """Return the text of a field whose value in the spec is ``value``."""
    if field.form == "flag":
        return "true" if value is True else ""
    if field.form == "flows":
        return str(value) or SDMX_FLOWS[0]
    if field.form == "codes":
        codes = value if isinstance(value, Mapping) else {}
        return "\n".join(f"{label} = {code}" for label, code in codes.items())
    if field.is_text and isinstance(value, Mapping):
        return str(value.get(field.language, ""))
    if field.is_text and field.language != LANGUAGES[0]:
        return ""
    return str(value)


def _totals_by_subject(spec_table: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the public totals that the page can show, by subject and key."""
    totals = {}
    for entry in spec_table.get("public", []):
        subject = _subject_of_totals(entry)
        counts = entry.get("counts")
        if subject is None:
            continue
        if isinstance(counts, Mapping):
            totals[subject] = {key: str(counts.get(key, "")) for key in ("file", "column")}
        elif isinstance(counts, list):
            totals[subject] = {"counts": " ".join(str(count) for count in counts)}
        else:
            totals[subject] = {"counts": str(counts)}
    return totals


def _subject_of_totals(entry: Mapping[str, Any]) -> str | None:
    """Return a [[public]] entry's column, level or "" for all rows; or None.

    The subject is a column or level such as ``store:region``, or "" for all rows. The result is
    None for totals that the page cannot show, such as those by two columns.
    """
    query_sets = entry.get("queries", {})
    if not query_sets:
        return ""
    if len(query_sets) > 1:
        return None
    ((name, query_set),) = query_sets.items()
    if query_set == "identity":
        return str(name)
    if isinstance(query_set, Mapping) and [*query_set] == ["level"]:
        return f"{name}:{query_set['level']}"
    return None


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
        InputError: the page has no such field, or the value is not a text of as many lines as the
            field has.
    """
    one_of("a field", field_id, [field.id for field in fields])
    has_lines = any(field.id == field_id and field.form == "codes" for field in fields)
    lines = str(value).split("\n") if has_lines else [str(value)]
    if not isinstance(value, str) or not all(line.isprintable() for line in lines):
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
    incomplete = _incomplete_entries(fields, texts)
    changed_entries = {field.entry for field in fields if field.entry and field.id in changes}
    written = set()
    for field in fields:
        path = field.value_path
        is_changed = field.id in changes or field.entry in changed_entries
        if not is_changed or path in written or path[0] == "public":
            continue
        written.add(path)
        value: Any = ""
        if field.entry not in incomplete:
            value = _field_value(field, fields, texts)
        _set_at_path(document, path, value)
    changed_totals = {
        field.path[1] for field in fields if field.id in changes and field.path[0] == "public"
    }
    for subject in sorted(changed_totals):
        _set_totals(document, subject, texts)


def _incomplete_entries(
    fields: tuple[PublicationField, ...], texts: Mapping[str, str]
) -> set[tuple[str, ...]]:
    """Return the entries of which a field has no text in any language."""
    filled = {field.value_path for field in fields if texts[field.id]}
    return {field.entry for field in fields if field.entry and field.value_path not in filled}


def _field_value(
    field: PublicationField, fields: tuple[PublicationField, ...], texts: Mapping[str, str]
) -> Any:
    """Return the value of a field for the spec; an empty one removes its key."""
    text = texts[field.id]
    if field.is_text:
        path = field.value_path
        return combine_languages(
            {
                one.language: texts[one.id]
                for one in fields
                if one.is_text and one.value_path == path
            }
        )
    if field.form == "number":
        return parse_number(text)
    if field.form == "flag":
        return text == "true"
    if field.form == "flows" and text == SDMX_FLOWS[0]:
        return ""
    if field.form == "codes":
        table = tomlkit.inline_table()
        table.update(read_codes(field.subject, text))
        return table
    return text


def _set_totals(document: Any, subject: str, texts: Mapping[str, str]) -> None:
    """Write the public totals of a column, level or all rows into a document."""
    subject_fields = {
        key: texts.get(PublicationField(("public", subject, key), "", "").id, "")
        for key in _TOTAL_KEYS
    }
    counts: Any = read_totals(subject_fields["counts"])
    if not subject and len(counts) == 1:
        counts = counts[0]
    if counts == [] and subject_fields["file"] and subject_fields["column"]:
        counts = tomlkit.inline_table()
        counts.update({"file": subject_fields["file"], "column": subject_fields["column"]})
    entries = document.get("public", tomlkit.aot())
    position = next(
        (number for number, entry in enumerate(entries) if _subject_of_totals(entry) == subject),
        None,
    )
    if counts == []:
        if position is not None:
            del entries[position]
    elif position is not None:
        entries[position]["counts"] = counts
    else:
        is_inline = isinstance(entries, tomlkit.items.Array)
        entries.append(_new_totals(subject, counts, is_inline=is_inline))
    if entries:
        document["public"] = entries
    else:
        document.pop("public", None)


def _new_totals(subject: str, counts: Any, *, is_inline: bool) -> Any:
    """Return a new [[public]] entry for a column, level or all rows."""
    entry: Any = tomlkit.inline_table() if is_inline else tomlkit.table()
    name, _, level = subject.partition(":")
    if name:
        query_sets = tomlkit.inline_table()
        query_sets[name] = "identity"
        if level:
            query_sets[name] = tomlkit.inline_table()
            query_sets[name]["level"] = level
        entry["queries"] = query_sets
    entry["counts"] = counts
    return entry


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
