"""The text of a drafted spec.

The draft is based on the names and types of columns, or on the description of another tool.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leastnoise._cli._output import display_path
from leastnoise._descriptions import Description
from leastnoise._spec import (
    BLANK,
    SourceColumn,
    SourceColumns,
    date_range_in_name,
    escape_comment,
    format_toml_key,
    format_toml_value,
    path_for_spec,
)

_COMMANDS = """\
#
#     leastnoise plan %(spec)s                  expected error; reads no data and spends nothing
#     leastnoise release %(spec)s --out out     pays, and writes answers, manifest and report
"""
_HEAD = f"""\
# A spec for leastnoise, drafted only from the column names and types of %(data)s.
# It holds no value of the data.
# Replace every "{BLANK}" by a public value: from a questionnaire, a code list, a law or an earlier
# publication, never by looking at the data. Confirm every line that is marked as a guess. Remove
# the attributes you do not want to publish. Then:
{_COMMANDS}
[source]
%(source)s"""
_PRIVACY = """
[privacy]
epsilon = "1"                 # the budget of this release: smaller protects more
                              # Or rho = "1/2", or epsilon and delta.
neighbours = "add_remove"     # hides whether a person is in the table;
                              # "replace" hides what the person's rows say
"""
_TEXTS = """\
# The format of its texts is stated here for all columns, or in the table of one column; nothing is
# guessed from values:
# encoding = "latin-1"          # if it is not UTF-8; delimiter = ";" if the header does not show it
# decimal = ","                 # with thousands = "." and currency = ["€"] where numbers have them
# null = ["NA", "-"]            # besides the empty text
# trim = true                   # remove blanks around texts; ignore_case = true: F is f
"""
_FEW_NAMES = """\
# The first line has %s. If lines precede the names, or names have line breaks, draft with
# --header "name,name,...", which becomes header = [...] here: then every line is a row. If another
# character separates fields: --delimiter.
"""
_ROW = """\
unit = "row"                  # every row is another person; otherwise
                              # unit = { column = "person_id", max_rows = 5 }
"""
_COLUMN = """\
# If a person can have several rows, max_rows is the most that count; a larger number costs more
# noise. If they are of different months, and the budget is a rho or has a delta, add
# max_per_cell = 1, cell = "month": then tables by month cost only the square root.
unit = { column = %s, max_rows = "%s" }     # if every row is another person: unit = "row"
"""
_CANDIDATES = f"""\
# %(which)s: %(names)s.
# Name the column of the person and the most rows of a person that count. If every row is another
# person: unit = "row"
unit = {{ column = "{BLANK}", max_rows = "{BLANK}" }}
"""
_NO_PERSON_COLUMN = (
    "No column name tells which person a row belongs to. These columns may name persons"
)
_SEVERAL_PERSON_COLUMNS = "Several columns may name the person of a row"
_DOMAIN = """\

# The domain: every attribute with the public list of its values. A row with a missing value or
# another one is left out of the tables by that attribute, unless you write null = "other" or
# outside = "other" (an added cell), or outside = "clip" (numbers: the nearest cell).
# The kinds of attributes, each with an example:
#
#     categories = ["F", "M"]                          texts, written as in the data
#     unknown = { most = 10000 }                       texts without a public list: a private
#                                                      search finds them; needs delta
#     integers = [17, 90]                              whole numbers, lowest and highest; for
#                                                      codes 0, 1, ... write size = 9
#     bins = { low = 0, high = 200000, count = 100 }   numbers, in bins of one width
#     edges = ["0", "9.99", "50", "200"]               numbers, in bins from one edge to the next
#     dates = { from = "2024-01-01", to = "2024-12-31", by = "month" }
#                                                      by year, quarter, month, week, day, hour
#                                                      or weekday; with format = "%d.%m.%Y" for the
#                                                      format of texts, also "%m/%d/%Y %I:%M %p",
#                                                      "epoch_ms", "excel"; zone = "Europe/Berlin"
#                                                      for the time zone of the days
#
"""
_COMPLETE = """\
# complete = true in an attribute states that no value of it is missing or outside the list. Some
# plans are then more accurate, but a row without a listed value is in no table of any attribute.
# State it only if it is public knowledge, such as a required answer in the questionnaire.
"""
_GROUPS = """\
#
# Also groups and texts: levels.group = { edges = [0, 18, 65] } of numbers,
# levels.major = { digits = 1 } of codes, and labels = { "1" = "men", "2" = "women" }, or both from
# a public file; see docs/spec.md.
"""
_GUESSED = """\
#
# A CSV file has no types: the kinds below are guessed from names. Replace a line where the guess is
# wrong.
"""
_WORKLOAD = """
[[workload]]
marginals = { ways = 1 }      # a table for each attribute; ways = 2: for each pair;
                              # upto = 2: for up to two attributes
"""
_TABLES = """
# The tables to publish. Every [[workload]] adds tables; weight = 2.0 makes the errors of its
# queries count more. In SQL: [[workload]] sql = "SELECT ... GROUP BY ...", or a file:
# leastnoise plan queries.sql --spec SPEC"""
_NO_COLUMN = f"""
# No column has a name and a type from which an attribute could be drafted. Name one, and its
# values:
[domain."{BLANK}"]
categories = ["{BLANK}"]
"""
_GUESS_NOTE = "     # guessed from its name or type: confirm or correct"
_FROM_FILE_NAME = "     # days as the name of the file has them: confirm or correct"
_EXAMPLE = """
# [[workload]]
# queries = { %s = "prefix" }     # its cumulative distribution
"""
_MEASURE = """
# A numeric column can be summed instead of counting rows; every value is clipped to public bounds.
# [measures.%(key)s]
# clip = [0, 100000]
#
# [[workload]]
# queries = {}                  # its sum over all rows; queries = { sex = "identity" } sums by sex
# sum = %(name)s
"""
_DESCRIBED = f"""\
# A spec for leastnoise, drafted from a description of %(tool)s (%(file)s): no row was read.
# Every "{BLANK}" is missing in the description: replace it by a public value. Remove what you do
# not want to publish. Then:
{_COMMANDS}"""
_END = """
[plan]
strategy = "auto"             # the least expected error; `leastnoise compare` lists the others
guard = "1/100"               # this share of the budget first counts the rows that are used;
                              # with too few rows, the release stops before it pays the rest

[output]
level = 0.95                  # of the intervals
"""


def draft_from_columns(
    columns: SourceColumns, source_part: Mapping[str, Any], data_name: str, spec_path: Path
) -> str:
    """Draft the text of a spec from the names and types of columns.

    Args:
        columns: the columns of the data.
        source_part: the keys and values of the part ``[source]``.
        data_name: the name of the file or table.
        spec_path: the path where the spec will be written.
    """
    drafted = [column for column in columns.listed if not column.left_out]
    untyped = not any(column.declares_type for column in columns.listed)
    heading = _HEAD % {
        "data": escape_comment(data_name),
        "spec": display_path(spec_path),
        "source": "".join(
            f"{key} = {format_toml_value(entry)}\n" for key, entry in source_part.items()
        ),
    }
    parts = [heading, *_header_advice(columns, source_part, untyped=untyped)]
    if untyped:
        parts.append(_TEXTS)
    parts += [_PRIVACY, _unit_text(columns), _DOMAIN, _COMPLETE, _GROUPS]
    if untyped:
        parts.append(_GUESSED)
    for column in columns.listed:
        if column.left_out:
            parts.append(_left_out_comment(column.name, column.left_out))
        else:
            parts.append(_attribute_text(column, data_name))
    if not drafted:
        parts.append(_NO_COLUMN)
    return "".join([*parts, _TABLES, _WORKLOAD, *_example_lines(drafted), _END])


def _header_advice(
    columns: SourceColumns, source_part: Mapping[str, Any], *, untyped: bool
) -> Iterator[str]:
    """Yield advice if the first line of a file does not look like a header."""
    names = [column.name for column in columns.listed]
    if untyped and "header" not in source_part and (len(names) == 1 or "" in names):
        names_in_words = "names that are empty"
        if len(names) == 1:
            names_in_words = "a single name"
        yield _FEW_NAMES % names_in_words


def _unit_text(columns: SourceColumns) -> str:
    """Return the TOML lines for the privacy unit, with candidates for its column."""
    if columns.person is not None:
        return _COLUMN % (format_toml_value(columns.person.name), BLANK)
    if not columns.candidates:
        return _ROW
    names = ", ".join(format_toml_value(name) for name in columns.candidates)
    return _CANDIDATES % {
        "which": _SEVERAL_PERSON_COLUMNS if columns.names_several_persons else _NO_PERSON_COLUMN,
        "names": escape_comment(names),
    }


def _attribute_text(column: SourceColumn, data_name: str) -> str:
    """Return the TOML table [domain.NAME] for a column."""
    lines = [f"\n[domain.{format_toml_key(column.attribute)}]\n"]
    if column.attribute != column.name:
        lines.append(
            f"column = {format_toml_value(column.name)}     # with its blanks; tables are named "
            "after the attribute\n"
        )
    return "".join([*lines, *_value_lines(column, data_name)])


def _value_lines(column: SourceColumn, data_name: str) -> Iterator[str]:
    """Yield the TOML lines that state which values a column may have."""
    if column.kind == "date":
        yield from _date_line(column, data_name)
    elif column.kind == "truth":
        yield "categories = [true, false]\n"
    elif guess := column.guess:
        first, *further = [f"{key} = {format_toml_value(entry)}" for key, entry in guess.items()]
        yield f"{first}{'' if guess == {'categories': [BLANK]} else _GUESS_NOTE}\n"
        yield from (f"{line}\n" for line in further)
    elif column.kind == "whole":
        yield f'integers = ["{BLANK}", "{BLANK}"]\n'
    elif column.kind == "number":
        yield f'bins = {{ low = "{BLANK}", high = "{BLANK}", count = 100 }}\n'
        yield (
            'outside = "clip"              # beyond the bounds: counted in the first or last bin\n'
        )
    else:
        yield f'categories = ["{BLANK}"]\n'
    if column.field.required:
        yield "complete = true               # the schema allows no missing values\n"


def _date_line(column: SourceColumn, data_name: str) -> Iterator[str]:
    """Yield the TOML line that states the days of a column of dates.

    The range of days comes from the name of the file, and the time zone from the schema.
    """
    named_days = date_range_in_name(data_name, column)
    first, last, by = named_days or (BLANK, BLANK, "month")
    dates = {"from": first, "to": last, "by": by}
    if column.draft_zone is not None:
        dates["zone"] = column.draft_zone or BLANK
    yield f"dates = {format_toml_value(dates)}{_FROM_FILE_NAME if named_days else ''}\n"


def _example_lines(drafted: Sequence[SourceColumn]) -> Iterator[str]:
    """Yield commented-out example queries on the last column of numbers."""
    amounts = [column for column in drafted if not column.is_identifier]
    numbers = [column for column in amounts if column.kind == "number"] or [
        column for column in amounts if column.kind == "whole"
    ]
    if numbers:
        name = numbers[-1].name
        yield _EXAMPLE % format_toml_key(numbers[-1].attribute)
        yield _MEASURE % {"key": format_toml_key(name), "name": format_toml_value(name)}


def draft_from_description(
    description: Description, description_path: Path, spec_path: Path, data_path: Path | None
) -> str:
    """Draft the text of a spec from another tool's description of the data."""
    heading = _DESCRIBED % {
        "tool": description.tool,
        "file": escape_comment(description_path.name),
        "spec": display_path(spec_path),
    }
    parts = [heading, *(f"#\n# {escape_comment(note)}\n" for note in description.notes)]
    parts.append(f"#\n{_COMPLETE}")
    if data_path is None:
        parts.append('\n# [source]\n# path = "people.csv"\n')
    else:
        path = path_for_spec(data_path, spec_path)
        parts.append(f"\n[source]\npath = {format_toml_value(path)}\n")
    parts.append(_PRIVACY)
    if description.unit is None:
        parts.append(_ROW)
    else:
        unit = {"column": description.unit, "max_rows": description.max_rows}
        parts.append(f"unit = {format_toml_value(unit)}\n")
    for name, table in description.attributes.items():
        lines = "".join(f"{key} = {format_toml_value(entry)}\n" for key, entry in table.items())
        parts.append(f"\n[domain.{format_toml_key(name)}]\n{lines}")
    parts += [_left_out_comment(name, reason) for name, reason in description.left_out.items()]
    for name, table in description.measures.items():
        lines = "".join(f"# {key} = {format_toml_value(entry)}\n" for key, entry in table.items())
        parts.append(
            f"\n# Its sum:\n# [measures.{format_toml_key(name)}]\n{lines}# [[workload]]\n"
            f"# queries = {{}}\n# sum = {format_toml_value(name)}\n"
        )
    return "".join([*parts, _WORKLOAD, _END])


def _left_out_comment(column_name: str, reason: str) -> str:
    """Return a TOML comment that says why the draft leaves out a column."""
    column = escape_comment(format_toml_value(column_name))
    return f"\n# The column {column} was left out: {escape_comment(reason)}.\n"
