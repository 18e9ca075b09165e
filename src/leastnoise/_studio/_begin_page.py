"""The first pages of the studio: forms for the data and for a new spec.

These pages show the names and types of columns, and no value of the data.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tomlkit
from starlette.responses import JSONResponse

from leastnoise._charts import draw_chart
from leastnoise._plan import Plan
from leastnoise._session import CSV, DatabaseTable, file_endings, schema
from leastnoise._spec import SourceColumn, SourceColumns, parse_spec, source_columns
from leastnoise._studio._explore_page import MOST_CELLS
from leastnoise._studio._form_parts import (
    FORMATS,
    FURTHER_ANSWERS,
    LATE,
    LEVEL_WAYS,
    LEVELS,
    MOST_LEVELS,
    OUTPUT_ROUNDING,
    READINGS,
    Form,
    labels_from_form,
    levels_from_form,
    names_table,
    output_table,
    parse_number,
    report_languages,
    series_table,
    split_level_names,
    survey_table,
    translate_texts,
    unit_total_table,
)
from leastnoise._studio._pages import (
    Page,
    ShowPage,
    action_route,
    asset_routes,
    chart_json,
    page_route,
    render_page,
)
from leastnoise._studio._planning import Planning, planning_page, state_json, table_margins
from leastnoise._studio._studio_draft import save_spec, to_toml_table
from leastnoise._studio._totals_and_ids import (
    SDMX_FLOWS,
    SDMX_STATUS,
    list_total_numbers,
    public_total,
    sdmx_table,
)
from leastnoise._texts import LANGUAGES, Catalogue, load_catalogue, make_picture
from leastnoise._trusted.check import InputError, exact, message, one_of
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import apply
from leastnoise._workload import Product

FORMS = {"text": "list", "whole": "whole", "number": "number", "date": "dates", "truth": "truth"}
"""The suggested form of each kind of column."""
# The keys of [domain.NAME] for each form of a column. "$" precedes the names of form fields.
_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "list": {"categories": "$codes"},
    "file": {"categories": {"file": "$file", "column": "$file_column"}},
    "whole": {"integers": ["$low", "$high"]},
    "number": {"bins": {"low": "$low", "high": "$high", "count": "$count"}},
    "dates": {"dates": {"from": "$from", "to": "$to", "by": "$by"}},
    "unknown": {"unknown": {"most": "$most"}},
    "truth": {"categories": [True, False]},
}
# The forms of columns whose rows may all have a valid value; a search never finds all values.
_LISTED = ("list", "file", "whole", "number", "dates", "truth")
# How numbers beyond the bounds are treated; the first value is the default.
_BEYOND = ("clip", "drop", "other")
# The [[workload]] table of each kind of question. $groups stands for the ticked columns by name,
# and $by for a list of them.
_QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    "counts": {"queries": "$groups"},
    "top": {"queries": "$groups"},
    "means": {"means": {"of": "$of", "by": "$by"}},
    "median": {"quantiles": {"of": "$of", "by": "$by", "at": ["0.5"]}},
    "quartiles": {"quantiles": {"of": "$of", "by": "$by", "at": ["0.25", "0.5", "0.75"]}},
    "cdf": {"cdf": {"of": "$of", "by": "$by"}},
    "sums": {"queries": "$groups", "sum": "$of"},
    "people": {"queries": "$groups", "count": "units"},
    "totals": {"queries": "$groups", "sum": "$of"},
}
_ORDERED = ("median", "quartiles", "cdf")  # questions whose column is an attribute
_SUMMED = ("means", "sums")  # questions whose column is a measure
_OF_PERSONS = ("people", "totals")  # questions that need a column of persons
WEIGHTED = ("counts", "top", "means", "sums")
"""The questions whose rows may have weights."""
PERIODS = ("year", "quarter", "month", "week", "day", "hour", "weekday")
NUMBERS = {"1234.56": ("", ""), "1234,56": (",", ""), "1.234,56": (",", "."), "1,234.56": ("", ",")}
"""``decimal`` and ``thousands`` of [source] for each format of numbers."""
DAYS = {
    "2025-12-31": "",
    "31.12.2025": "%d.%m.%Y",
    "31/12/2025": "%d/%m/%Y",
    "12/31/2025": "%m/%d/%Y",
}
"""``format`` of dates for each format of days."""
BUDGETS = ("epsilon", "rho")
"""The kinds of budgets that the form offers; the first is the default."""
# The names of the form fields that contain numbers.
_NUMBERS = {
    "low",
    "high",
    "step",
    "epsilon",
    "rho",
    "margin",
    "delta",
    "size",
    "max_rows",
    "most",
    "round",
    "below",
    "width",
}
_HEAD = """\
# A spec for leastnoise, filled in on the page of `leastnoise studio` from names and types of
# columns: it holds no value of the data.

"""
_NO_STEPS = (
    "The step of {name} must divide the range from {low} to {high} into whole steps; got {step}."
)
_TOO_MANY = (
    "{name} would have {count} values here, and at most {most} are allowed. "
    "Take wider steps, or numbers in steps of a width."
)
_LEVEL_SPLITS = tuple(f"l{number}" for number in range(MOST_LEVELS))
_MOST_DRAWN = 4  # charts of invented counts
_MOST_VALUES = 10**6  # of a column; more groups would slow down the page
_MOST_MARKS = 2000  # marks of a chart
_HILL_CELLS = 12  # invented counts over more cells have the shape of a hill
_INVENTED_ROWS = 10_000  # rows in charts that show margins before data are read


@dataclass(frozen=True, slots=True)
class DataColumns:
    """The location of the data, and the names and types of their columns.

    Attributes:
        name: the name of the data on pages.
        folder: the folder for the new spec, which is the folder of the data file or the current
            folder.
        source_settings: the keys and values of ``[source]`` in the spec.
        suggested: the columns, with the settings that their names and types suggest.
    """

    name: str
    folder: Path
    source_settings: Mapping[str, Any]
    suggested: SourceColumns

    @property
    def columns(self) -> tuple[SourceColumn, ...]:
        """The columns, in order."""
        return self.suggested.listed


def read_columns(source: Path | DatabaseTable, layout: Mapping[str, str]) -> DataColumns:
    """Read the names and types of columns, and no value."""
    if isinstance(source, DatabaseTable):
        table = {"table": source.table, "connection": source.connection}
        return DataColumns(source.table, Path.cwd(), table, source_columns(schema(source)))
    table = {"path": source.name, **layout}
    file: Path | CSV = source
    if layout:
        file = CSV(source, layout.get("delimiter"), layout.get("encoding", "utf-8"))
    return DataColumns(source.name, source.absolute().parent, table, source_columns(schema(file)))


def _states_margin(form: Form) -> bool:
    """Return whether a form states a margin of error instead of a budget."""
    return form.get("how") == "within"


def _read_margin(form: Form) -> str:
    """Return the margin of error of a form, or "" if it states a budget."""
    if not _states_margin(form):
        return ""
    margin = form.get("margin", "")
    if not margin:
        raise InputError(
            "State how far a number may be from the truth, such as 500; or enter a budget."
        )
    return margin


def spec_from_form(
    data: DataColumns, form: Form, language: str, *, allow_no_question: bool = False
) -> str:
    """Return the checked text of the spec that a form describes.

    Args:
        data: the columns of the data.
        form: the texts of the form fields by name.
        language: the language of the page; its decimal mark may be a comma.
        allow_no_question: whether the form may have no question. This is allowed if SQL statements
            replace the workload. Without questions, the spec describes all columns.
    """
    if load_catalogue(language).decimal_mark == ",":
        form = _replace_decimal_commas(form)
    languages = report_languages(form, language)
    form = split_level_names(form, languages)
    contents = _read_contents(data, form)
    questions = tuple(contents.questions.values())
    _check_questions(questions, form, allow_no_question=allow_no_question)
    margin = _read_margin(form)
    table: dict[str, Any] = {
        "source": {**data.source_settings, **_source_settings(form)},
        "privacy": _privacy_table(data, form, margin, has_search=contents.has_search(form)),
        "domain": _domain_tables(data, form, contents),
    }
    measure_columns = contents.measure_columns(form)
    measure_tables = _measure_tables(data, form, contents, measure_columns)
    if measure_tables:
        table["measures"] = measure_tables
    if questions:
        table["workload"] = _workload_entries(questions, margin, measure_tables)
    table["plan"] = {"guard": "1/100"}
    table |= _publication_tables(form, language, contents, [*table["domain"]], measure_columns)
    translate_texts(table, languages)
    return _format_checked_spec(table, data, has_questions=bool(questions))


class _FormContents(NamedTuple):
    """The columns, the public totals and the questions of a form.

    Attributes:
        columns: the column number of each attribute.
        public_totals: the tables ``[[public]]`` of the spec.
        questions: the questions by number, in order.
    """

    columns: Mapping[str, int]
    public_totals: Sequence[Mapping[str, Any]]
    questions: Mapping[int, "Question"]

    @property
    def names(self) -> dict[int, str]:
        """The attribute of each column number."""
        return {number: name for name, number in self.columns.items()}

    def attributes(self) -> set[str]:
        """Return the attributes that questions use; all without questions."""
        if self.questions:
            return _used_attributes([*self.questions.values()])
        return set(self.columns)

    def measures(self, form: Form) -> set[str]:
        """Return the measures that questions use; all without questions."""
        if self.questions:
            return _used_measures([*self.questions.values()])
        return _summable_columns(self.columns, form)

    def has_search(self, form: Form) -> bool:
        """Return whether the categories of an attribute are searched."""
        return any(form[f"c{self.columns[name]}.kind"] == "unknown" for name in self.attributes())

    def domain_names(self, form: Form) -> set[str]:
        """Return the names of the columns that the domain describes."""
        names = self.attributes()
        if not names:  # a domain needs at least one attribute, even if no question uses it
            names = self.measures(form)
        if not names:
            names = {question.of for question in self.questions.values() if question.of}
        for total in self.public_totals:
            names.update(total.get("queries", {}))
        return names

    def measure_columns(self, form: Form) -> dict[str, int]:
        """Return the column number of each measure of the spec."""
        columns = {name: self.columns[name] for name in sorted(self.measures(form))}
        for question in self.questions.values():
            if question.kind == "totals":
                columns[question.measure] = self.columns[question.of]
        return columns


def _read_contents(data: DataColumns, form: Form) -> _FormContents:
    """Read the columns, the public totals and the questions of a form."""
    question_numbers = _list_question_numbers(form)
    columns = _numbers_by_attribute(data, form)
    names = {number: name for name, number in columns.items()}
    public_totals = []
    for number in list_total_numbers(form):
        groups = _read_groups(f"p{number}", names, form)
        public_totals.append(public_total(form, number, groups))
    questions = {number: _read_question(number, names, form) for number in question_numbers}
    return _FormContents(columns, public_totals, questions)


def _domain_tables(data: DataColumns, form: Form, contents: _FormContents) -> dict[str, Any]:
    """Return the tables [domain.NAME] of a spec by name."""
    described = contents.domain_names(form)
    return {
        name: _attribute_table(data.columns[number], number, name, form)
        for name, number in contents.columns.items()
        if name in described
    }


def _measure_tables(
    data: DataColumns, form: Form, contents: _FormContents, measure_columns: Mapping[str, int]
) -> dict[str, Any]:
    """Return the tables [measures.NAME] of a spec by name."""
    weights = {question.weight for question in contents.questions.values()}
    tables: dict[str, Any] = {}
    for name in sorted(contents.measures(form)):
        number = contents.columns[name]
        is_weight = name in weights
        tables[name] = _measure_table(data.columns[number], number, form, is_weight=is_weight)
    for number, question in contents.questions.items():
        if question.kind == "totals":
            column = data.columns[measure_columns[question.measure]]
            tables[question.measure] = unit_total_table(column, form, number, [*question.groups])
    return tables


def _publication_tables(
    form: Form,
    language: str,
    contents: _FormContents,
    attributes: Sequence[str],
    measure_columns: Mapping[str, int],
) -> dict[str, Any]:
    """Return the tables of a spec that do not change the plan, if not empty.

    Args:
        form: the texts of the form fields by name.
        language: the language of the page.
        contents: the columns, the public totals and the questions of the form.
        attributes: the attributes of the domain.
        measure_columns: the column number of each measure.
    """
    output = output_table(form, language)
    sdmx = sdmx_table(form, contents.columns, attributes, measure_columns)
    if sdmx:
        output["sdmx"] = sdmx
    tables: dict[str, Any] = {
        "public": contents.public_totals,
        "series": series_table(form, contents.names),
        "names": names_table(form, contents.columns, attributes, measure_columns),
        "survey": survey_table(form),
        "output": output,
    }
    return {name: table for name, table in tables.items() if table}


def _check_questions(
    questions: Sequence["Question"], form: Form, *, allow_no_question: bool
) -> None:
    """Raise InputError for a form without questions or without a person column."""
    if not questions and (not allow_no_question or _states_margin(form)):
        raise InputError("No table is chosen yet; choose what to publish.")
    if not form.get("unit") and any(question.kind in _OF_PERSONS for question in questions):
        raise InputError(
            "Numbers of persons and totals per person need a column that identifies a person; "
            "choose this column in section 2."
        )


def _format_checked_spec(
    table: Mapping[str, Any], data: DataColumns, *, has_questions: bool
) -> str:
    """Format a spec as TOML, and check that it can be read."""
    text = _HEAD + _format_toml(table)
    complete_text = text
    if not has_questions:
        complete_text = f"{text}\n[[workload]]\nqueries = {{}}\n"
    parse_spec(complete_text, data.folder)
    return text


def _list_question_numbers(form: Form) -> list[int]:
    """List the numbers of the questions that the user filled in, in order."""
    numbers = set()
    for key, text in form.items():
        match = re.fullmatch(r"a(\d{1,3})\.what", key)
        if match and text:
            numbers.add(int(match.group(1)))
    return sorted(numbers)


def _numbers_by_attribute(data: DataColumns, form: Form) -> dict[str, int]:
    """Return the column number of each attribute that the form describes."""
    return {
        column.attribute: number
        for number, column in enumerate(data.columns)
        if form.get(f"c{number}.kind")
    }


def _used_attributes(questions: Sequence["Question"]) -> set[str]:
    """Return the attributes of the tables that questions request."""
    return set(chain.from_iterable(question.attributes for question in questions))


def _used_measures(questions: Sequence["Question"]) -> set[str]:
    """Return the names of columns that questions sum or use as weights."""
    weights = {question.weight for question in questions if question.weight}
    return weights | {question.of for question in questions if question.kind in _SUMMED}


def _summable_columns(columns: Mapping[str, int], form: Form) -> set[str]:
    """Return the names of numeric columns, which SQL statements may sum."""
    return {
        name for name, number in columns.items() if form[f"c{number}.kind"] in {"whole", "number"}
    }


def _privacy_table(
    data: DataColumns, form: Form, margin: str, *, has_search: bool
) -> dict[str, Any]:
    """Return the table [privacy] of a spec."""
    kind = one_of("the kind of budget", form.get("budget") or BUDGETS[0], BUDGETS)
    if has_search and kind == "rho":
        raise InputError("A search for texts needs a budget of epsilon with delta; choose epsilon.")
    privacy: dict[str, Any] = {kind: "least" if margin else form.get(kind, "")}
    if has_search:  # a private search for categories needs a delta
        privacy["delta"] = form.get("delta", "")
    unit = form.get("unit", "")
    if not unit:
        return {**privacy, "unit": "row"}
    if not unit.isdecimal() or int(unit) >= len(data.columns):
        raise InputError(
            "The protected unit must be each row, or each value of a column; choose one."
        )
    max_rows = parse_number(form.get("max_rows", ""))
    return {**privacy, "unit": {"column": data.columns[int(unit)].name, "max_rows": max_rows}}


def _source_settings(form: Form) -> dict[str, str]:
    """Return the keys of [source] that the form sets: encoding, number format."""
    number_format = form.get("numbers") or "1234.56"
    decimal, thousands = NUMBERS[one_of("the format of numbers", number_format, NUMBERS)]
    encoding = form.get("encoding", "").replace("utf-8", "")
    settings = {"encoding": encoding, "decimal": decimal, "thousands": thousands}
    return {key: text for key, text in settings.items() if text}


def _measure_table(
    column: SourceColumn, column_number: int, form: Form, *, is_weight: bool
) -> dict[str, Any]:
    """Return the table [measures.NAME] for a column."""
    low, high = (
        parse_number(form.get(f"c{column_number}.{field}", "")) for field in ("low", "high")
    )
    measure: dict[str, Any] = {"column": column.name, "clip": [low, high]}
    if is_weight and form[f"c{column_number}.kind"] == "number":
        measure["unit"] = form.get(f"c{column_number}.step", "")
    return measure


def _replace_decimal_commas(form: Form) -> dict[str, str]:
    """Replace decimal commas by points in all fields that contain numbers."""
    changed = dict(form)
    for key, text in form.items():
        if key.rpartition(".")[2] in _NUMBERS:
            changed[key] = _replace_decimal_comma(text)
    return changed


def _replace_decimal_comma(text: str) -> str:
    """Convert the decimal comma of a number to a point, as specs have it."""
    if re.search(r"\.\d{3}(\D|$)", text):
        raise InputError(
            message(
                "A number must be written without separators of thousands; got {text}.", text=text
            )
        )
    return text.replace(",", ".")


def _fill_template(template: Any, fields: Mapping[str, Any]) -> Any:
    """Replace "$FIELD" in a template of TOML values by the value of the field."""
    if isinstance(template, Mapping):
        return {key: _fill_template(entry, fields) for key, entry in template.items()}
    if isinstance(template, list):
        return [_fill_template(entry, fields) for entry in template]
    if isinstance(template, str) and template.startswith("$"):
        return fields[template.removeprefix("$")]
    return template


class Question(NamedTuple):
    """A question of the form: one or more tables, or a statistic.

    Attributes:
        kind: the kind of question, a key of ``_QUESTIONS``.
        groups: the attributes that split the table, each with its query set.
        of: the column whose sum or distribution is requested; empty if rows are counted.
        weight: the column of weights; empty without weights.
        size: the public number of rows of a group; empty if there is none.
        measure: the name of the measure for totals of persons; empty for other kinds.
    """

    kind: str
    groups: Mapping[str, Any]
    of: str
    weight: str
    size: str
    measure: str

    @property
    def attributes(self) -> set[str]:
        """The attributes of the tables that the question needs."""
        names = set(self.groups)
        if self.kind in _ORDERED:
            names.add(self.of)
        return names

    def workload_entry(self) -> dict[str, Any]:
        """Return the [[workload]] table that answers the question."""
        group_list: list[Any] = []
        for name, sets in self.groups.items():
            if sets == "identity":
                group_list.append(name)
            else:
                group_list.append({name: sets})
        fields = {"groups": self.groups, "by": group_list, "of": self.measure or self.of}
        entry: dict[str, Any] = {**_fill_template(_QUESTIONS[self.kind], fields)}
        if self.size and "queries" not in entry:
            entry["size"] = self.size
        if self.weight:
            entry["weighted_by"] = self.weight
        return entry


def _read_question(question_number: int, column_names: Mapping[int, str], form: Form) -> Question:
    """Read one of the questions in the form.

    Args:
        question_number: the number of the question in the form.
        column_names: the names of the columns that the form describes, by column number.
        form: the form.
    """
    kind = one_of("the kind of table", form.get(f"a{question_number}.what", ""), _QUESTIONS)
    groups = _read_groups(f"a{question_number}", column_names, form)
    of = weight = ""
    if kind in WEIGHTED and form.get(f"a{question_number}.weight"):
        weight = _column_of_number(form[f"a{question_number}.weight"], column_names, "Weights")
    if kind in (*_SUMMED, *_ORDERED, "totals"):
        subject = "Means, medians, distributions and sums"
        of = _column_of_number(form.get(f"a{question_number}.of", ""), column_names, subject)
    if kind == "top" and len(groups) != 1:
        raise InputError("A list of the largest groups needs exactly one column; tick one.")
    measure = ""
    if kind == "totals":
        measure = f"{of} total {question_number + 1}"
    return Question(kind, groups, of, weight, form.get(f"a{question_number}.size", ""), measure)


def _read_groups(prefix: str, column_names: Mapping[int, str], form: Form) -> dict[str, Any]:
    """Return the query set of each ticked column: its values or its groups.

    Args:
        prefix: the first part of the names of the ticks, such as ``a1`` for question 1.
        column_names: the names of the columns that the form describes, by column number.
        form: the form.
    """
    groups: dict[str, Any] = {}
    for column, name in column_names.items():
        splits = [
            split
            for split in ("cells", "group", *_LEVEL_SPLITS)
            if form.get(f"{prefix}.by.{column}.{split}")
        ]
        if len(splits) > 1:
            raise InputError(
                message(
                    "A table must have the values of {name} or their groups, not both; add two "
                    "tables.",
                    name=name,
                )
            )
        if splits == ["cells"]:
            groups[name] = "identity"
        elif splits == ["group"]:
            groups[name] = {"level": "group"}
        elif splits:
            groups[name] = {"level": form.get(f"c{column}.{splits[0]}.name", "")}
    return groups


def _column_of_number(number_text: str, column_names: Mapping[int, str], subject: str) -> str:
    """Return the name of the column whose number the form contains as text."""
    if not number_text.isdecimal() or int(number_text) not in column_names:
        raise InputError(
            message(
                "{what} must be of a published column of numbers; choose one.",
                what=subject,
            )
        )
    return column_names[int(number_text)]


def _workload_entries(
    questions: Sequence[Question], margin: str, measures: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the [[workload]] tables of questions; a margin is their target.

    A statistic cannot have a target of this kind. The counts and sums that the statistic needs are
    therefore added as tables with a target. For a sum, the target is the margin times the largest
    value.
    """
    entries = [question.workload_entry() for question in questions]
    if not margin:
        return entries
    for entry in entries:
        if "queries" in entry:
            entry["margin"] = margin
    for question in questions:
        if question.kind in _ORDERED:
            query_sets = {**question.groups, question.of: "prefix"}
            entries.append({"queries": query_sets, "margin": margin})
        elif question.kind == "means":
            if question.weight:
                weights = {"weighted_by": question.weight}
            else:
                weights = {}
            counts = {"queries": question.groups, "count": question.of, **weights}
            entries.append({**counts, "margin": margin})
            total = {"queries": question.groups, "sum": question.of, **weights}
            if {**total, "margin": margin} not in entries:
                bounds = measures[question.of]["clip"]
                total["margin"] = _sum_margin(margin, question.of, bounds)
                entries.append(total)
    return entries


def _sum_margin(count_margin: str, measure: str, bounds: Sequence[Any]) -> str:
    """Return the margin of a sum: a margin of counts times the largest value."""
    subject = message("a bound of {name}", name=measure)
    largest_value = max(abs(exact(subject, bound)) for bound in bounds)
    return str(exact("the distance", count_margin) * largest_value)


def _attribute_table(
    column: SourceColumn, column_number: int, attribute: str, form: Form
) -> dict[str, Any]:
    """Return the table ``[domain.NAME]`` for a column."""
    prefix = f"c{column_number}."
    texts = {
        key.removeprefix(prefix): text.strip()
        for key, text in form.items()
        if key.startswith(prefix)
    }
    kinds = ("list", "file", *FORMS.values(), "unknown")
    kind = one_of(message("the kind of {name}", name=attribute), texts["kind"], kinds)
    table: dict[str, Any] = {} if attribute == column.name else {"column": column.name}
    fields = _attribute_fields(column, kind, attribute, texts)
    table |= _fill_template(_COLUMNS[kind], fields)
    if kind == "dates":
        if texts.get("zone"):
            table["dates"]["zone"] = texts["zone"]
        day_format = DAYS[one_of("the format of days", form.get("days") or "2025-12-31", DAYS)]
        if day_format:
            table["dates"]["format"] = day_format
    # Otherwise a row whose text is in no category would be in no table.
    if texts.get("other") or kind == "unknown":
        table |= {"outside": "other", "null": "other"}
    if kind in {"whole", "number"}:
        subject = message("values of {name} beyond the bounds", name=attribute)
        table["outside"] = one_of(subject, texts.get("beyond") or "clip", _BEYOND)
    if kind == "whole" and texts.get("rounding"):
        subject = message("the reading of fractions in {name}", name=attribute)
        table["rounding"] = one_of(subject, texts["rounding"], READINGS)
    further_keys = {
        "complete": kind in _LISTED and bool(texts.get("complete")),
        "levels": levels_from_form(kind, texts),
        "labels": labels_from_form(kind, attribute, texts),
    }
    return table | {key: entry for key, entry in further_keys.items() if entry}


def _attribute_fields(
    column: SourceColumn, kind: str, attribute: str, field_texts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values of the form fields that ``[domain.NAME]`` needs.

    Raise InputError if the attribute would have too many values.
    """
    fields: dict[str, Any] = {}
    for field in ("file", "file_column", "low", "high", "step", "from", "to", "by", "most"):
        text = field_texts.get(field, "")
        fields[field] = parse_number(text) if field in _NUMBERS else text
    codes: list[Any] = [
        code.strip() for code in field_texts.get("list", "").splitlines() if code.strip()
    ]
    if column.kind in {"whole", "number"}:
        codes = [parse_number(code) for code in codes]
    fields["codes"] = [*dict.fromkeys(codes)]
    count = 0
    if kind == "whole" and isinstance(fields["low"], int) and isinstance(fields["high"], int):
        count = fields["high"] - fields["low"]
    if kind == "number":
        count = fields["count"] = _step_count(attribute, field_texts)
    if count > _MOST_VALUES:
        raise InputError(message(_TOO_MANY, name=attribute, count=count, most=_MOST_VALUES))
    return fields


def _step_count(attribute: str, field_texts: Mapping[str, str]) -> int:
    """Return the number of steps between the bounds of a numeric column."""
    subject = message("a bound or the step of {name}", name=attribute)
    bounds = {field: field_texts.get(field, "") for field in ("low", "high", "step")}
    low, high, step = (exact(subject, text) for text in bounds.values())
    if step > 0:
        count = (high - low) / step
    else:
        count = Fraction(0)
    if count.denominator != 1 or count < 1:
        raise InputError(message(_NO_STEPS, name=attribute, **bounds))
    return int(count)


def _format_toml(table: Mapping[str, Any]) -> str:
    """Format a spec as TOML, with one line for each key."""
    document = tomlkit.document()
    for part, entry in table.items():
        if isinstance(entry, list):
            document[part] = tomlkit.aot()
            for row in entry:
                document[part].append(to_toml_table(row))
        elif part in ("domain", "measures"):
            document[part] = tomlkit.table(is_super_table=True)
            for name, row in entry.items():
                document[part][name] = to_toml_table(row)
        else:
            sdmx = entry.get("sdmx") if part == "output" else None
            document[part] = to_toml_table({key: entry[key] for key in entry if key != "sdmx"})
            if sdmx:
                document[part]["sdmx"] = to_toml_table(sdmx)
    return re.sub(r"(?<!\n)\n\[\[", "\n\n[[", tomlkit.dumps(document))


def list_commands(path: Path, *, with_sql_file: bool = False) -> Sequence[str]:
    """Return the commands that plan and release a saved spec.

    The paths are relative to the current folder. If ``with_sql_file`` is True, the commands name a
    file of SQL statements.
    """
    import shlex

    if path.is_relative_to(Path.cwd()):
        shown_path = os.path.relpath(path)
    else:
        shown_path = str(path)
    arguments = shlex.quote(shown_path)
    if with_sql_file:
        arguments = f"questions.sql --spec {arguments}"
    return [
        f"leastnoise plan {arguments}",
        f"leastnoise release {arguments} --out {shlex.quote(path.stem)}-release",
    ]


def source_page(show_page: ShowPage, language: str = "en") -> Page:
    """Return the page where the user selects a file or a database table."""
    catalogue = load_catalogue(language)

    def page() -> str:
        """Return the HTML page that lists the data files in the current directory."""
        files = sorted(
            file.name for file in Path.cwd().iterdir() if file.name.lower().endswith(file_endings())
        )
        return render_page("choosing.html", t=catalogue, files=files, folder=Path.cwd())

    def choose(arguments: dict[str, Any]) -> Any:
        """Open the form for the file or database table that the user selected."""
        form = _read_form(arguments)
        if form.get("table") or form.get("connection"):
            source: Path | DatabaseTable = DatabaseTable(
                form.get("table", ""), form.get("connection", "")
            )
        elif form.get("path"):
            source = Path(form["path"]).expanduser()
        else:
            raise InputError("Name a file, or a table and its connection.")
        layout = {key: form[key] for key in ("delimiter", "encoding") if form.get(key)}
        return show_page(form_page(read_columns(source, layout), show_page, language))

    return Page(
        [
            page_route("/", page),
            *asset_routes("choosing.js"),
            action_route("/choose", choose, catalogue.translate),
            action_route(
                "/language",
                lambda arguments: show_page(source_page(show_page, _read_language(arguments))),
                catalogue.translate,
            ),
        ],
        in_language=partial(source_page, show_page),
    )


def form_page(data: DataColumns, show_page: ShowPage, language: str = "en") -> Page:
    """Return the page with the form for a new spec."""
    catalogue = load_catalogue(language)
    drafting = _FormPlanning(data, language, catalogue)

    def render() -> str:
        """Return the HTML page with the empty form."""
        return render_page(
            "beginning.html", t=catalogue, data=data, **_template_values(data, catalogue)
        )

    def open_planning(arguments: dict[str, Any]) -> Any:
        """Open the planning page of the saved spec."""
        path = data.folder / Path(str(arguments.get("name", ""))).name
        if path.suffix != ".toml" or not path.is_file():
            raise InputError("Save the spec first.")
        return show_page(planning_page(path, language))

    def change_language(arguments: dict[str, Any]) -> Any:
        """Open the form in the requested language."""
        return show_page(form_page(data, show_page, _read_language(arguments)))

    return Page(
        routes=[
            page_route("/", render),
            *asset_routes("beginning.js", charts=True),
            page_route("/view", drafting.view, JSONResponse),
            action_route("/plan", drafting.plan, catalogue.translate),
            action_route("/save", drafting.save, catalogue.translate),
            action_route("/further", open_planning, catalogue.translate),
            action_route("/language", change_language, catalogue.translate),
        ],
        close=drafting.stop,
        in_language=partial(form_page, data, show_page),
    )


class _FormPlanning:
    """Plans and saves the spec of a form. At most one plan is computed at a time."""

    def __init__(self, data: DataColumns, language: str, catalogue: Catalogue) -> None:
        self._data = data
        self._language = language
        self._catalogue = catalogue
        self._planning: Planning | None = None

    def stop(self) -> None:
        """Stop the planning of the last form, if there is one."""
        planning = self._planning
        self._planning = None
        if planning is not None:
            planning.background.stop()

    def plan(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Start to plan the form that the page sent; return what `view` returns."""
        text = spec_from_form(self._data, _read_form(arguments), self._language)
        self.stop()
        self._planning = Planning(self._data.folder / "draft.toml", text)
        self._planning.begin()
        return self.view()

    def view(self) -> dict[str, Any]:
        """Return the progress of planning as JSON, with charts once there is a plan."""
        planning = self._planning
        if planning is None:
            return {"refused": "Nothing is planned yet."}
        state = planning.state
        catalogue = state.draft.spec.options.catalogue(self._language)
        charts = []
        if state.plan is not None and state.ready:
            charts = _invented_charts(state.plan, state.draft.level, catalogue)
        names = [row.name(catalogue) for row in state.draft.rows]
        return {
            **state_json(state),
            "names": names,
            "charts": charts,
            "text": state.draft.text,
            "ended": not state.doing,
        }

    def save(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Save the spec of the form; return the next commands as JSON."""
        name = str(arguments.get("name", ""))
        text = spec_from_form(
            self._data, _read_form(arguments), self._language, allow_no_question=True
        )
        path = save_spec(self._data.folder / ".toml", "", name, text)
        has_workload = "\n[[workload]]" in text
        return {
            "done": self._catalogue.say("st_saved", file=str(path)),
            "commands": list_commands(path, with_sql_file=not has_workload),
            "name": name,
            "asked": has_workload,
        }


def _read_form(arguments: Mapping[str, Any]) -> Form:
    """Return the form fields in a request; raise InputError for other types."""
    form = arguments.get("form")
    if not isinstance(form, dict) or not all(isinstance(text, str) for text in form.values()):
        raise InputError("A form must be an object of texts.")
    return {key: text.strip() for key, text in form.items()}


def _read_language(arguments: Mapping[str, Any]) -> str:
    """Return the language in a request.

    Raises:
        InputError: the language is unknown.
    """
    return one_of("the language", arguments.get("language"), LANGUAGES)


def _template_values(data: DataColumns, catalogue: Catalogue) -> dict[str, Any]:
    """Return the variables of the HTML template of the form.

    The variables are the choices of the form, and suggestions from names and types of columns.
    """
    suggested = {
        number: FORMS["text" if column.is_identifier else column.kind]
        for number, column in enumerate(data.columns)
        if column.kind
    }
    person_columns = [number for number, column in enumerate(data.columns) if column.names_person]
    files = sorted(
        file.name
        for file in data.folder.iterdir()
        if file.suffix.lower() == ".csv" and file.name != data.name
    )
    return {
        "forms": [(form, catalogue.say(f"be_{form}")) for form in _COLUMNS],
        "suggested": suggested,
        "person": person_columns[0] if person_columns else None,
        "candidates": catalogue.join_names([*data.suggested.candidates]),
        "asked": [(kind, catalogue.say(f"be_ask_{kind}")) for kind in _QUESTIONS],
        "is_text": not any(column.declares_type for column in data.columns),
        "weighted": WEIGHTED,
        "ways": [
            (way, " ".join(kinds), catalogue.say(f"sd_way_{way}"))
            for way, kinds in LEVEL_WAYS.items()
        ],
        "readings": [
            (reading, catalogue.say(f"sd_read_{reading or 'not'}")) for reading in READINGS
        ],
        "formats": FORMATS,
        "budgets": [(kind, catalogue.say(f"be_budget_{kind}")) for kind in BUDGETS],
        "further_answers": [(key, catalogue.say(f"sd_{key}")) for key in FURTHER_ANSWERS],
        "roundings": [(key, catalogue.say(f"sd_round_{key}")) for key in OUTPUT_ROUNDING],
        "levels": [(level, catalogue.format_percent(float(level))) for level in LEVELS],
        "flows": [(key, catalogue.say(f"sd_flows_{key}")) for key in SDMX_FLOWS],
        "status": SDMX_STATUS,
        "late": [(key, catalogue.say(f"sd_late_{key}")) for key in LATE],
        "most_levels": MOST_LEVELS,
        "periods": [(period, catalogue.say(f"by_{period}")) for period in PERIODS],
        "files": files,
        "rows": _INVENTED_ROWS,
        "numbers": NUMBERS,
        "days": DAYS,
        "name": f"{data.name.split('.')[0]}.toml",
    }


def _invented_charts(plan: Plan, level: float, catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return charts of the first tables, with invented counts and real margins."""
    margins = table_margins(plan, level)
    tables = [
        product
        for product in plan.workload
        if product.attributes and product.rows <= MOST_CELLS and not product.of_values
    ]
    charts = []
    for product in tables[:_MOST_DRAWN]:
        if product.table_key not in margins:
            continue
        margin = margins[product.table_key].typical
        counts = _invented_counts(product).round()
        picture = make_picture(
            product,
            product.labels,
            counts,
            counts - margin,
            counts + margin,
            plan.privacy,
            catalogue,
        )
        alt = catalogue.say("be_invented", name=picture.name, margin=catalogue.format_error(margin))
        charts.append(chart_json(draw_chart(picture, _MOST_MARKS), catalogue, alt))
    return charts


def _invented_counts(product: Product) -> FloatArray:
    """Return invented counts: a hill over many cells, different heights over few.

    The array has one axis for each attribute of the table.
    """
    counts = np.array(float(_INVENTED_ROWS))
    for name, query_set in zip(product.attributes, product.query_sets, strict=True):
        kind = product.domain.kind(name)
        cells = np.arange(kind.size)
        heights = 1.0 + (3 * cells + 2) % 5
        if kind.size > _HILL_CELLS:
            heights = np.exp(-(((cells / kind.size - 0.4) / 0.25) ** 2))
        shares = heights / heights.sum()
        counts = np.multiply.outer(counts, apply(query_set.operator(name, kind), shares))
    return counts
