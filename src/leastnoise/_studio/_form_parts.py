"""The optional parts of a spec that the first form can state.

The optional parts are levels, labels, display names, totals of units, a series and the outputs of a
release.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leastnoise._release import PUBLICATION_TEXTS
from leastnoise._spec import SourceColumn
from leastnoise._texts import LANGUAGES, MOST_DECIMALS
from leastnoise._trusted.check import InputError, exact_positive, message, one_of, refuse, whole

Form = Mapping[str, str]
"""The fields of the form by name: ``c3.low`` belongs to column 3, ``a1.what`` to question 1."""
LEVEL_WAYS: Mapping[str, tuple[str, ...]] = {
    "file": ("list", "file", "whole"),
    "groups": ("list", "file", "whole", "truth"),
    "digits": ("list", "file"),
    "width": ("whole",),
    "edges": ("whole", "number"),
}
"""The ways to state a level, each with the forms of columns that have it."""
MOST_LEVELS = 10  # of a column, in addition to the groups between edges
_MOST_WIDE = 10**6  # values or digits of a group
READINGS = ("", "nearest", "down", "up")
"""How whole numbers read a number with a fraction. An empty text means outside."""
FORMATS = ("csv", "parquet", "xlsx", "sdmx")
"""The formats of the files with answers."""
_DEFAULT_FORMATS = ["csv", "parquet"]
FURTHER_ANSWERS = ("non_negative", "integer", "nnls", "local_non_negative", "top_down")
"""The flags of [output] that add columns of biased answers."""
_LIMITS = {"round": "the multiples to publish", "below": "the lowest number to publish"}
OUTPUT_ROUNDING = ("nearest", "controlled")
LEVELS = ("0.8", "0.9", "0.95", "0.99", "0.999")
"""The levels of intervals that the form offers."""
SURVEY_NUMBERS = ("design_effect", "sample", "population")
"""The numbers of a rule for the sampling error of a survey."""
_SURVEY_NAMES = {
    "design_effect": "the design effect",
    "sample": "the number of persons in the sample",
    "population": "the number of persons in the population",
}
LATE = ("drop", "arrival")
"""How a series counts rows that arrive late; the first is the default."""
_NO_GROUPS = (
    "Groups must have one line for each group, such as 'north = Kiel, Mainz'; got the line "
    "{line!r}."
)
_NO_LABELS = (
    "Labels of {name} must have one line for each code, such as '1 = men'; got the line {line!r}."
)


_WRONG_TEXTS = (
    "A text in several languages must have one part for each of them, separated by |; got "
    "{text!r} for the languages {languages}."
)


def report_languages(form: Form, language: str) -> tuple[str, ...]:
    """Return the languages of the reports, the language of the page first."""
    others = [name for name in LANGUAGES if form.get(f"languages.{name}") and name != language]
    return (language, *others)


def split_level_names(form: Form, languages: Sequence[str]) -> Form:
    """Return a form with separate fields for a level's key and translated names.

    The first part of the name becomes the key, and the whole text goes to the field ``shown``.
    """
    if len(languages) < 2:
        return form
    split = dict(form)
    for field, text in form.items():
        if re.fullmatch(r"c\d+\.l\d+\.name", field) and "|" in text:
            split[field] = text.partition("|")[0].strip()
            split[f"{field.removesuffix('name')}shown"] = text
    return split


def translate_texts(table: dict[str, Any], languages: Sequence[str]) -> None:
    """Split each text that has parts by language into a table of languages.

    The form separates the parts by ``|``, in the order of the languages. Texts are labels, names,
    and the texts of [output].

    Args:
        table: the table of the spec, which is changed.
        languages: the languages of the reports, the language of the page first.

    Raises:
        InputError: a text has another number of parts than the reports have languages.
    """
    if len(languages) < 2:
        return
    for attribute in table["domain"].values():
        if "labels" in attribute:
            attribute["labels"] = {
                key: text if key in ("file", "key") else _text_by_language(text, languages)
                for key, text in attribute["labels"].items()
            }
    if "names" in table:
        table["names"] = _texts_by_language(table["names"], languages)
    for key in PUBLICATION_TEXTS:
        if key in table.get("output", {}):
            table["output"][key] = _text_by_language(table["output"][key], languages)


def _texts_by_language(value: Any, languages: Sequence[str]) -> Any:
    """Return a value of [names] in which every text has its parts by language."""
    if isinstance(value, Mapping):
        return {key: _texts_by_language(part, languages) for key, part in value.items()}
    return _text_by_language(value, languages)


def _text_by_language(text: Any, languages: Sequence[str]) -> Any:
    """Return a text's parts by language, or the text itself if it has no ``|``."""
    if not isinstance(text, str) or "|" not in text:
        return text
    parts = [part.strip() for part in text.split("|")]
    if len(parts) != len(languages) or not all(parts):
        listed = ", ".join(languages)
        raise InputError(message(_WRONG_TEXTS, text=text, languages=listed))
    return dict(zip(languages, parts, strict=True))


def parse_number(text: str) -> int | str:
    """Convert a whole number to int; return any other text unchanged.

    Other texts are unchanged, so that "0.1" stays exact.
    """
    text = text.strip()
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    return text


def level_numbers(field_texts: Mapping[str, str]) -> list[int]:
    """List the numbers of the levels that have a name, in order."""
    return [number for number in range(MOST_LEVELS) if field_texts.get(f"l{number}.name")]


def levels_from_form(column_kind: str, field_texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the levels of an attribute that the form describes, as in a spec.

    Args:
        column_kind: the form of the column, such as "whole".
        field_texts: the texts of the form fields of the column, without their prefix.
    """
    levels: dict[str, Any] = {}
    if field_texts.get("edges") and column_kind in {"whole", "number"}:
        levels["group"] = {"edges": _parse_edges(field_texts["edges"])}
    for number in level_numbers(field_texts):
        level = field_texts[f"l{number}.name"]
        prefix = f"l{number}."
        fields = {
            key.removeprefix(prefix): text
            for key, text in field_texts.items()
            if key.startswith(prefix)
        }
        subject = message("the groups of {name}", name=level)
        way = one_of(subject, fields.get("way") or "file", LEVEL_WAYS)
        if column_kind not in LEVEL_WAYS[way]:
            continue
        if level in levels:
            raise InputError(message("Two groups have the name {name}; rename one.", name=level))
        levels[level] = _level_table(way, level, fields, field_texts)
    return levels


def _level_table(
    definition: str, level: str, level_texts: Mapping[str, str], column_texts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the spec's table for one level of an attribute.

    If a level is read from a file and no other file is named, the level uses the file of the
    column's codes.
    """
    if definition == "groups":
        return {"groups": _parse_groups(level_texts.get("groups", ""))}
    if definition == "edges":
        return {"edges": _parse_edges(level_texts.get("edges", ""))}
    if definition in {"width", "digits"}:
        subject = message("the size of the groups {name}", name=level)
        return {
            definition: whole(subject, parse_number(level_texts.get(definition, "")), 1, _MOST_WIDE)
        }
    return {
        "file": level_texts.get("file") or column_texts.get("file", ""),
        "key": level_texts.get("key") or column_texts.get("file_column", ""),
        "value": level_texts.get("value") or level,
    }


def _parse_edges(text: str) -> list[int | str]:
    """Parse the edges of groups from a text, separated by blanks or commas."""
    return [parse_number(edge) for edge in re.split(r"[\s,;]+", text.strip(" ,;"))]


def _parse_groups(text: str) -> dict[str, list[str]]:
    """Parse groups and their cells from lines such as ``north = Kiel, Mainz``."""
    groups: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, separator, cells = line.partition("=")
        members = [cell.strip() for cell in cells.split(",") if cell.strip()]
        if not separator or not name.strip() or not members:
            raise InputError(message(_NO_GROUPS, line=line))
        groups.setdefault(name.strip(), []).extend(members)
    return groups


def labels_from_form(
    column_kind: str, attribute: str, field_texts: Mapping[str, str]
) -> dict[str, str]:
    """Return the display texts of an attribute's codes, or a public file of them.

    Labels that are read from a file use the file of the codes if no other file is named.
    """
    if column_kind not in {"list", "file", "whole", "truth"}:
        return {}
    if column_kind != "truth" and (
        field_texts.get("labels_value") or field_texts.get("labels_file")
    ):
        return {
            "file": field_texts.get("labels_file") or field_texts.get("file", ""),
            "key": field_texts.get("labels_key") or field_texts.get("file_column", ""),
            "value": field_texts.get("labels_value", ""),
        }
    return read_pairs(field_texts.get("labels", ""), attribute, _NO_LABELS, str.partition)


def read_pairs(
    text: str, attribute: str, refusal: str, split: Callable[[str, str], tuple[str, str, str]]
) -> dict[str, str]:
    """Return the pairs in lines such as ``1 = men``.

    Args:
        text: the lines.
        attribute: the name of the attribute, for the message.
        refusal: the message for a line without two sides.
        split: `str.partition` or `str.rpartition`: whether the first or the last = separates.

    Raises:
        InputError: a line has no text on one side.
    """
    pairs: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        left, separator, right = split(line, "=")
        if not separator or not left.strip() or not right.strip():
            raise InputError(message(refusal, name=attribute, line=line))
        pairs[left.strip()] = right.strip()
    return pairs


def names_table(
    form: Form,
    column_numbers: Mapping[str, int],
    attributes: Sequence[str],
    measure_columns: Mapping[str, int],
) -> dict[str, Any]:
    """Return the table [names] for a spec.

    Args:
        form: the form.
        column_numbers: the column number of each attribute.
        attributes: the attributes of the spec.
        measure_columns: the column number of each measure.
    """
    names: dict[str, Any] = {}
    for key in ("rows", "units", "unit"):
        if form.get(f"{key}_name"):
            names[key] = form[f"{key}_name"]
    described = {
        "attributes": {name: column_numbers[name] for name in attributes},
        "measures": measure_columns,
    }
    for part, columns in described.items():
        for name, number in columns.items():
            entry = _column_entry(form, number, is_measure=part == "measures")
            if entry:
                names.setdefault(part, {})[name] = entry
    for name in attributes:
        group_name = form.get(f"c{column_numbers[name]}.group_name", "")
        if group_name and form.get(f"c{column_numbers[name]}.edges"):
            names.setdefault("levels", {})[f"{name}:group"] = group_name
        for level in range(MOST_LEVELS):
            prefix = f"c{column_numbers[name]}.l{level}."
            if form.get(f"{prefix}shown"):
                level_key = f"{name}:{form[f'{prefix}name']}"
                names.setdefault("levels", {})[level_key] = form[f"{prefix}shown"]
    return names


def _column_entry(form: Form, number: int, *, is_measure: bool) -> dict[str, Any]:
    """Return the entry of [names] for a column: display name, unit and decimals."""
    entry: dict[str, Any] = {}
    prefix = f"c{number}."
    keys = ["name"]
    if form[f"{prefix}kind"] in {"whole", "number"}:
        keys.append("unit")
    for key in keys:
        text = form.get(f"{prefix}{key}", "")
        if not text.isprintable():
            allowed = "text that is not empty and has no control characters"
            raise refuse("the name or unit of a column", text, allowed)
        if text:
            entry[key] = text
    decimals = form.get(f"{prefix}decimals", "")
    if is_measure and decimals:
        entry["decimals"] = whole(
            "decimals of means and sums", parse_number(decimals), 0, MOST_DECIMALS
        )
    return entry


def series_table(form: Form, column_names: Mapping[int, str]) -> dict[str, Any]:
    """Return the table [series] for a spec, or an empty one without a series.

    Args:
        form: the form.
        column_names: the names of the columns that the form describes, by column number.
    """
    column = form.get("series", "")
    if not column:
        return {}
    is_dates = column.isdecimal() and form.get(f"c{column}.kind") == "dates"
    if not is_dates or int(column) not in column_names:
        raise InputError("A series must be along a column of dates; choose one.")
    series: dict[str, Any] = {"along": column_names[int(column)]}
    late = one_of("late rows of a series", form.get("late") or LATE[0], LATE)
    if late != LATE[0]:
        series["late"] = late
    if form.get("series_rows"):
        series["max_rows"] = parse_number(form["series_rows"])
    return series


def output_table(form: Form, language: str) -> dict[str, Any]:
    """Return the keys of [output] that differ from their defaults."""
    output: dict[str, Any] = {}
    level = one_of("the probability of intervals", form.get("level") or "0.95", LEVELS)
    if level != "0.95":
        output["level"] = float(level)
    formats = [name for name in FORMATS if form.get(f"formats.{name}")]
    if formats and formats != _DEFAULT_FORMATS:
        output["formats"] = formats
    for key in PUBLICATION_TEXTS:
        if form.get(key):
            output[key] = form[key]
    if language != "en":
        output["language"] = language
    languages = [name for name in LANGUAGES if form.get(f"languages.{name}") or name == language]
    if len(languages) > 1:
        output["languages"] = languages
    for key in FURTHER_ANSWERS:
        if form.get(key):
            output[key] = True
    for key, subject in _LIMITS.items():
        if form.get(key):
            exact_positive(subject, form[key])
            output[key] = parse_number(form[key])
    rounding = one_of("the rounding of answers", form.get("rounding") or "nearest", OUTPUT_ROUNDING)
    if "round" in output and rounding != "nearest":
        output["rounding"] = rounding
    return output


def survey_table(form: Form) -> dict[str, Any]:
    """Return the table [survey] for a spec; it is empty for a full count.

    Raises:
        InputError: the form states one or two of the three numbers.
    """
    numbers = {key: form.get(key, "").strip() for key in SURVEY_NUMBERS}
    if not any(numbers.values()):
        return {}
    for key, text in numbers.items():
        exact_positive(_SURVEY_NAMES[key], text)
    return {key: parse_number(text) for key, text in numbers.items()}


def unit_total_table(
    column: SourceColumn, form: Form, question_number: int, attributes: Sequence[str]
) -> dict[str, Any]:
    """Return the table [measures.NAME] for totals of persons in a question.

    Args:
        column: the column whose values are added up.
        form: the form.
        question_number: the number of the question, which states the bounds of a total.
        attributes: the attributes that define the cells of the totals.
    """
    low, high = (
        parse_number(form.get(f"a{question_number}.{field}", "")) for field in ("low", "high")
    )
    return {
        "column": column.name,
        "unit_total": {"clip": [low, high], "by": [*attributes]},
    }
