"""The text of a drafted spec: from the names and types of columns, or from another tool's description."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leastnoise._cli._output import display_path
from leastnoise._descriptions import Description
from leastnoise._spec import BLANK, SourceColumn, SourceColumns, days_in_name

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", flags=re.ASCII)
_COMMANDS = """\
#
#     leastnoise plan %(spec)s                  expected error; reads no data and spends nothing
#     leastnoise release %(spec)s --out out     pays, and writes answers, manifest and report
"""
_HEAD = f"""\
# A spec for leastnoise, drafted from the column names and types of %(data)s alone: it holds no value of the data.
# Replace every "{BLANK}" by a public value: from a questionnaire, a code list, a law or an earlier
# publication, never by looking at the data. Confirm what is only supposed. Remove the attributes that you do not
# want to publish. Then:
{_COMMANDS}
[source]
%(source)s"""
_PRIVACY = """
[privacy]
epsilon = "1"                 # the budget of this release: smaller protects more; or rho = "1/2", or epsilon and delta
neighbours = "add_remove"     # hides whether a person is in the table; "replace" hides what the person's rows say
"""
_TEXTS = """\
# How its texts are written is said here for all columns, or beside one of them; nothing is guessed from values:
# encoding = "latin-1"          # if it is not UTF-8; delimiter = ";" if the header does not show it
# decimal = ","                 # with thousands = "." and currency = ["€"] where numbers have them
# null = ["NA", "-"]            # besides the empty text
# trim = true                   # leave out blanks around texts; ignore_case = true: F is f
"""
_FEW_NAMES = """\
# The first line has %s. If lines stand before the names, or names have line breaks, draft with --header "name,name,...",
# which becomes header = [...] here: then every line is a row. If another mark stands between fields: --delimiter.
"""
_ROW = """\
unit = "row"                  # every row is another person; else unit = { column = "person_id", max_rows = 5 }
"""
_COLUMN = """\
# If a person can have several rows, max_rows says how many of them count; a larger one costs more noise. Where these are of different
# months, and the budget is a rho or has a delta: with max_per_cell = 1, cell = "month" beside it tables by month cost the root of that.
unit = { column = %s, max_rows = "%s" }     # if every row is another person: unit = "row"
"""
_CANDIDATES = f"""\
# %(which)s: %(names)s.
# Name the column of the person, and how many rows of one count; if every row is another person: unit = "row"
unit = {{ column = "{BLANK}", max_rows = "{BLANK}" }}
"""
_NOBODY_SAYS = "No column's name says which person a row is of. These may be of persons"
_SEVERAL_SAY = "Several columns may say which person a row is of"
_DOMAIN = """\

# The domain: every attribute with the public list of its values. A row with a missing value or another one is dropped,
# unless you say null = "other" or outside = "other" (an added cell), or outside = "clip" (numbers: the nearest cell).
# Its kinds, each with an example:
#
#     categories = ["F", "M"]                          texts, written as in the data
#     unknown = { most = 10000 }                       texts that nobody can list: found privately first; needs delta
#     integers = [17, 90]                              whole numbers, lowest and highest; for codes 0, 1, ... write size = 9
#     bins = { low = 0, high = 200000, count = 100 }   numbers, in bins of one width
#     edges = ["0", "9.99", "50", "200"]               numbers, in bins from one edge to the next
#     dates = { from = "2024-01-01", to = "2024-12-31", by = "month" }
#                                                      by year, quarter, month, week, day, hour or weekday; with
#                                                      format = "%d.%m.%Y" says how texts are written, also
#                                                      "%m/%d/%Y %I:%M %p", "epoch_ms", "excel"; zone = "Europe/Berlin"
#                                                      whose days they are
#
# Beside it groups and texts: levels.group = { edges = [0, 18, 65] } of numbers, levels.major = { digits = 1 } of codes, and
# labels = { "1" = "men", "2" = "women" }, or both from a public file; see docs/spec.md.
"""
_GUESSED = """\
#
# A CSV file has no types: the kinds below are guessed from names. Replace a line where the guess is wrong.
"""
_WORKLOAD = """
[[workload]]
marginals = { ways = 1 }      # one table an attribute; ways = 2: one a pair; upto = 2: all of up to two attributes
"""
_ASKED = """
# What is asked. Every [[workload]] adds tables; weight = 2.0 makes the errors of its queries count more.
# In SQL: [[workload]] sql = "SELECT ... GROUP BY ...", or a file: leastnoise plan queries.sql --spec SPEC"""
_NO_COLUMN = f"""
# No column has a name and a type from which an attribute could be drafted. Name one, and its values:
[domain."{BLANK}"]
categories = ["{BLANK}"]
"""
_SUPPOSED = "     # supposed from its name or type: confirm or correct"
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
# What the description does not say is marked "{BLANK}": replace it by a public value. Remove what you do not want to publish. Then:
{_COMMANDS}"""
_END = """
[plan]
strategy = "auto"             # the least expected error; `leastnoise compare` lists the others
guard = "1/100"               # this share of the budget counts rows first, and stops a release of which few rows are used

[output]
level = 0.95                  # of the intervals
"""


def draft_from_columns(
    columns: SourceColumns, source: Mapping[str, Any], data_name: str, spec: Path
) -> str:
    """Return the text of a spec from the names and types of columns.

    Args:
        columns: the columns of the data.
        source: the part ``[source]`` of the spec.
        data_name: the name of the file or table.
        spec: where the spec will be.
    """
    drafted = [column for column in columns.listed if not column.left_out]
    untyped = not any(column.typed for column in columns.listed)
    head = _HEAD % {
        "data": _escape_comment(data_name),
        "spec": display_path(spec),
        "source": "".join(f"{key} = {_toml_value(entry)}\n" for key, entry in source.items()),
    }
    parts = [head, *_header_note(columns, source, untyped=untyped)]
    parts += [_TEXTS] if untyped else []
    parts += [_PRIVACY, _unit_lines(columns), _DOMAIN]
    parts += [_GUESSED] if untyped else []
    for column in columns.listed:
        if column.left_out:
            parts.append(_left_out_comment(column.name, column.left_out))
        else:
            parts.append(_attribute_lines(column, data_name))
    parts += [] if drafted else [_NO_COLUMN]
    return "".join([*parts, _ASKED, _WORKLOAD, *_example_lines(drafted), _END])


def _header_note(
    columns: SourceColumns, source: Mapping[str, Any], *, untyped: bool
) -> Iterator[str]:
    """Say what to do where the first line of a text does not look like names of columns."""
    names = [column.name for column in columns.listed]
    if untyped and "header" not in source and (len(names) == 1 or "" in names):
        yield _FEW_NAMES % ("a single name" if len(names) == 1 else "names that are empty")


def _unit_lines(columns: SourceColumns) -> str:
    """Return the unit: the column that names the person, candidates to choose from, or rows."""
    if columns.person is not None:
        return _COLUMN % (_toml_value(columns.person.name), BLANK)
    if not columns.candidates:
        return _ROW
    names = ", ".join(_toml_value(name) for name in columns.candidates)
    return _CANDIDATES % {
        "which": _SEVERAL_SAY if columns.names_several_persons else _NOBODY_SAYS,
        "names": _escape_comment(names),
    }


def _attribute_lines(column: SourceColumn, data_name: str) -> str:
    """Return the part [domain.NAME] of a column."""
    lines = [f"\n[domain.{_toml_key(column.attribute)}]\n"]
    if column.attribute != column.name:
        lines.append(
            f"column = {_toml_value(column.name)}     # with its blanks; tables are called after "
            "the attribute\n"
        )
    return "".join([*lines, *_values_lines(column, data_name)])


def _values_lines(column: SourceColumn, data_name: str) -> Iterator[str]:
    """Yield the lines that say what values a column may have."""
    if column.kind == "date":
        yield from _date_lines(column, data_name)
    elif column.kind == "truth":
        yield "categories = [true, false]\n"
    elif guess := column.guess:
        first, *others = [f"{key} = {_toml_value(entry)}" for key, entry in guess.items()]
        yield f"{first}{'' if guess == {'categories': [BLANK]} else _SUPPOSED}\n"
        yield from (f"{line}\n" for line in others)
    elif column.kind == "whole":
        yield f'integers = ["{BLANK}", "{BLANK}"]\n'
    elif column.kind == "number":
        yield f'bins = {{ low = "{BLANK}", high = "{BLANK}", count = 100 }}\n'
        yield 'outside = "clip"              # beyond the bounds: counted in the first or last bin\n'
    else:
        yield f'categories = ["{BLANK}"]\n'
    if column.field.required:
        yield "complete = true               # the schema allows no missing values\n"


def _date_lines(column: SourceColumn, data_name: str) -> Iterator[str]:
    """Yield the line of a column of dates: with the days of the file's name, and the schema's zone."""
    named_days = days_in_name(data_name, column)
    first, last, by = named_days or (BLANK, BLANK, "month")
    dates = {"from": first, "to": last, "by": by}
    if column.draft_zone is not None:
        dates["zone"] = column.draft_zone or BLANK
    yield f"dates = {_toml_value(dates)}{_FROM_FILE_NAME if named_days else ''}\n"


def _example_lines(drafted: Sequence[SourceColumn]) -> Iterator[str]:
    """Yield commented examples of a distribution and a sum, of the last column of numbers."""
    numbers = [column for column in drafted if column.kind == "number"] or [
        column for column in drafted if column.kind == "whole"
    ]
    if numbers:
        name = numbers[-1].name
        yield _EXAMPLE % _toml_key(numbers[-1].attribute)
        yield _MEASURE % {"key": _toml_key(name), "name": _toml_value(name)}


def draft_from_description(
    description: Description, described_in: Path, spec: Path, data: Path | None
) -> str:
    """Return the text of a spec from another tool's description."""
    head = _DESCRIBED % {
        "tool": description.tool,
        "file": _escape_comment(described_in.name),
        "spec": display_path(spec),
    }
    parts = [head, *(f"#\n# {_escape_comment(note)}\n" for note in description.notes)]
    parts.append(
        '\n# [source]\n# path = "people.csv"\n'
        if data is None
        else f"\n[source]\npath = {_toml_value(path_for_spec(data, spec))}\n"
    )
    unit = {"column": description.unit, "max_rows": description.max_rows}
    parts += [_PRIVACY, _ROW if description.unit is None else f"unit = {_toml_value(unit)}\n"]
    for name, table in description.attributes.items():
        parts.append(
            f"\n[domain.{_toml_key(name)}]\n"
            + "".join(f"{word} = {_toml_value(entry)}\n" for word, entry in table.items())
        )
    parts += [_left_out_comment(name, why) for name, why in description.left_out.items()]
    for name, table in description.measures.items():
        lines = "".join(f"# {word} = {_toml_value(entry)}\n" for word, entry in table.items())
        parts.append(
            f"\n# Its sum:\n# [measures.{_toml_key(name)}]\n{lines}# [[workload]]\n# queries = {{}}\n# "
            f"sum = {_toml_value(name)}\n"
        )
    return "".join([*parts, _WORKLOAD, _END])


def _toml_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _toml_value(name)


def _toml_value(given: Any) -> str:
    """Write a value of TOML on one line; a text is written as in JSON, with the one control character escaped that JSON leaves."""
    if isinstance(given, Mapping):
        return (
            "{ "
            + ", ".join(f"{_toml_key(name)} = {_toml_value(entry)}" for name, entry in given.items())
            + " }"
        )
    if isinstance(given, (list, tuple)):
        return "[" + ", ".join(_toml_value(entry) for entry in given) + "]"
    return (
        json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")
        if isinstance(given, (str, bool))
        else str(given)
    )


def _escape_comment(text: str) -> str:
    """Replace the characters that would end a comment, or cannot be printed."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _left_out_comment(name: str, why: str) -> str:
    return f"\n# The column {_escape_comment(_toml_value(name))} was left out: {_escape_comment(why)}.\n"


def path_for_spec(data: Path, spec: Path) -> str:
    """Return the path of the data for a spec: from its folder if they are below it, else absolute."""
    place, folder = data.absolute(), spec.absolute().parent
    return str(place.relative_to(folder)) if place.is_relative_to(folder) else str(place)
