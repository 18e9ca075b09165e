"""``leastnoise init``: drafts a spec file from column names and types alone, or from another tool's description of the data."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from leastnoise._check import InputError
from leastnoise._cli._output import shown, write_new
from leastnoise._descriptions import Description, read_description
from leastnoise._session import CSV, columns
from leastnoise._spec import SourceColumn, source_columns

_BLANK = "FILL IN"  # the BLANK of leastnoise._spec, which refuses a spec that still has one; importing it here would be slow
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", flags=re.ASCII)
_LINES = {
    "text": f'categories = ["{_BLANK}"]',
    "whole": f'integers = ["{_BLANK}", "{_BLANK}"]',
    "date": f'dates = {{ from = "{_BLANK}", to = "{_BLANK}", by = "month" }}',
    "number": f'bins = {{ low = "{_BLANK}", high = "{_BLANK}", count = 100 }}',
    "truth": 'categories = [true, false]     # also spellings = { true = ["yes"], false = ["no"] }',
}

_HEAD = """\
# A spec for leastnoise, drafted from the column names and types of {file} alone: it holds no value of the data.
# Replace every "{blank}" by a public value: from a questionnaire, a code list, a law or an earlier
# publication, never by looking at the data. Remove the attributes that you do not want to publish. Then:
#
#     leastnoise plan {spec}                  expected error; reads no data and spends nothing
#     leastnoise release {spec} --out out     pays, and writes answers, manifest and report

[source]
path = {path}
{layout}"""
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
_AS_USUAL: Mapping[str, str] = {}
_ROW = """\
unit = "row"                  # every row is another person; else unit = { column = "person_id", max_rows = 5 }
"""
_COLUMN = """\
# If a person can have several rows, max_rows says how many of them count; a larger one costs more noise. Where these are of different
# months, and the budget is a rho or has a delta: with max_per_cell = 1, cell = "month" beside it tables by month cost the root of that.
unit = { column = %s, max_rows = "%s" }     # if every row is another person: unit = "row"
"""
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
#                                                      format = "%d.%m.%Y", and zone = "Europe/Berlin" if they have one
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
_NO_COLUMN = "# No column has a type that can be published. Add an attribute such as [domain.sex] with categories = [...].\n"
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
_DESCRIBED = """\
# A spec for leastnoise, drafted from a description of {tool} ({file}): no row was read.
# What the description does not say is marked "FILL IN": replace it by a public value. Remove what you do not want to publish. Then:
#
#     leastnoise plan {spec}                  expected error; reads no data and spends nothing
#     leastnoise release {spec} --out out     pays, and writes answers, manifest and report
"""
_END = """
[plan]
strategy = "auto"             # the least expected error; `leastnoise compare` lists the others
guard = "1/100"               # this share of the budget counts rows first, and stops a release of which few rows are used

[output]
level = 0.95                  # of the intervals
"""


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--from", "description", type=click.Path(path_type=Path), help="A description by another tool; then no data is read.")
@click.option("--out", type=click.Path(path_type=Path), help="The spec file to write.  [default: FILE with the ending .toml]")
@click.option("--delimiter", help="What stands between the fields of a CSV file.  [default: what its header holds most of]")
@click.option("--encoding", help="Of a CSV file, such as latin-1.  [default: utf-8]")
def init(file: Path | None, description: Path | None, out: Path | None, delimiter: str | None, encoding: str | None) -> None:
    """Draft a spec file from column names and types.

    No value of the data is written into it: what a column may hold is for you to say, from public knowledge. With --from it is what a
    description says: CSVW-EO, SmartNoise metadata, domain.json of mbi, or a domain that OpenDP serialized; FILE need not exist then.
    """
    if description is not None:
        if delimiter or encoding:
            raise InputError(
                "--from reads no data; --delimiter and --encoding are for a CSV file. Leave them out, or write them to the spec."
            )
        spec = out or (file or description).with_suffix(".toml")
        _write(spec, described(read_description(description), description, spec, file))
        return
    if file is None:
        raise InputError("Say which data the spec is for, as in `leastnoise init people.csv`, or give a description with --from.")
    spec = out or file.with_name(file.name.split(".")[0] + ".toml")
    layout = {key: value for key, value in (("delimiter", delimiter), ("encoding", encoding)) if value is not None}
    named = columns(CSV(file, delimiter, encoding or "utf-8") if layout else file)
    _write(spec, drafted(file, spec, source_columns(named), layout))


def _write(spec: Path, draft: str) -> None:
    write_new(spec, draft, "Edit that file, or choose another with --out.")
    blanks = f"Replace every {_BLANK!r} in it, then run" if draft.count(f'"{_BLANK}"') > 1 else "Run"
    click.echo(f"The draft is in {shown(spec)}. {blanks}: leastnoise plan {shown(spec)}")


def drafted(file: Path, spec: Path, columns: Sequence[SourceColumn], layout: Mapping[str, str] = _AS_USUAL) -> str:
    """Write the text of a spec."""
    naming = [column.name for column in columns if column.names_person]
    untyped = not all(column.typed for column in columns)
    said = "".join(f"{key} = {text(value)}\n" for key, value in layout.items()) + (_TEXTS if untyped else "")
    data = text(relative(file, spec))
    parts = [_HEAD.format(file=comment(file.name), spec=shown(spec), blank=_BLANK, path=data, layout=said)]
    parts += [_PRIVACY, _COLUMN % (text(naming[0]), _BLANK) if naming else _ROW, _DOMAIN]
    parts += [_GUESSED] if untyped else []
    usable = [column for column in columns if column.kind and not column.names_person]
    parts.append("\n" + "\n".join(map(_attribute, columns)))
    if not usable:
        parts.append(_NO_COLUMN)
    parts += [_ASKED, _WORKLOAD]
    numbers = [column for kind in ("whole", "number") for column in usable if column.kind == kind]
    if numbers:
        parts.append(_EXAMPLE % key(numbers[-1].attribute))
        parts.append(_MEASURE % {"key": key(numbers[-1].name), "name": text(numbers[-1].name)})
    parts.append(_END)
    return "".join(parts)


def _attribute(column: SourceColumn) -> str:
    """The part of a column, or why it has none."""
    if column.names_person or column.unusable:
        return left_out(column.name, "it names the person" if column.names_person else comment(column.unusable))
    source = (
        ""
        if column.attribute == column.name
        else f"column = {text(column.name)}     # with its blanks; tables are called after the attribute\n"
    )
    return f"[domain.{key(column.attribute)}]\n{source}{_LINES[column.kind]}\n"


def described(description: Description, described_in: Path, spec: Path, data: Path | None) -> str:
    """The text of a spec from another tool's description."""
    head = _DESCRIBED.replace("{tool}", description.tool).replace("{file}", comment(described_in.name)).replace("{spec}", shown(spec))
    parts = [head, *(f"#\n# {comment(note)}\n" for note in description.notes)]
    parts.append('\n# [source]\n# path = "people.csv"\n' if data is None else f"\n[source]\npath = {text(relative(data, spec))}\n")
    parts.append(_PRIVACY)
    if description.unit is None:
        parts.append(_ROW)
    else:
        parts.append(f"unit = {value({'column': description.unit, 'max_rows': description.max_rows})}\n")
    for name, table in description.attributes.items():
        parts.append(f"\n[domain.{key(name)}]\n" + "".join(f"{word} = {value(entry)}\n" for word, entry in table.items()))
    parts += ["\n" + left_out(name, comment(why)) for name, why in description.left_out.items()]
    for name, table in description.measures.items():
        lines = "".join(f"# {word} = {value(entry)}\n" for word, entry in table.items())
        parts.append(f"\n# Its sum:\n# [measures.{key(name)}]\n{lines}# [[workload]]\n# queries = {{}}\n# sum = {text(name)}\n")
    return "".join([*parts, _WORKLOAD, _END])


def text(value: str) -> str:
    """A TOML text: as in JSON, but for the one control character that JSON does not escape."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def key(name: str) -> str:
    """A key, in quotation marks where it needs them."""
    return name if _BARE_KEY.fullmatch(name) else text(name)


def value(given: Any) -> str:
    """A value on one line."""
    if isinstance(given, Mapping):
        return "{ " + ", ".join(f"{key(name)} = {value(entry)}" for name, entry in given.items()) + " }"
    if isinstance(given, (list, tuple)):
        return "[" + ", ".join(value(entry) for entry in given) + "]"
    if isinstance(given, bool):
        return "true" if given else "false"
    return text(given) if isinstance(given, str) else str(given)


def comment(said: str) -> str:
    """A text without what would end a comment."""
    return "".join(character if character.isprintable() else "?" for character in said)


def left_out(name: str, why: str) -> str:
    """A comment in the place of a column."""
    return f"# The column {comment(text(name))} was left out: {why}.\n"


def relative(file: Path, spec: Path) -> str:
    """The path of the data as the spec file needs it: relative to its own folder where that is simple."""
    data, folder = Path(file).absolute(), Path(spec).absolute().parent
    return str(data.relative_to(folder)) if data.is_relative_to(folder) else str(data)
