"""``leastnoise init`` drafts a spec file, and ``leastnoise check`` shows the data holder alone how rows fit it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from leastnoise._check import InputError
from leastnoise._cli._output import FILE, options, shown, write_new
from leastnoise._descriptions import Description, read_description
from leastnoise._frames import visible
from leastnoise._holder import check as checked
from leastnoise._progress import Progress
from leastnoise._session import CSV, columns, reading_seconds
from leastnoise._spec import BLANK, read_spec, source_columns

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", flags=re.ASCII)
_LINES = {
    "text": f'categories = ["{BLANK}"]',
    "whole": f'integers = ["{BLANK}", "{BLANK}"]',
    "date": f'dates = {{ from = "{BLANK}", to = "{BLANK}", by = "month" }}',
    "number": f'bins = {{ low = "{BLANK}", high = "{BLANK}", count = 100 }}',
    "truth": 'categories = [true, false]     # also spellings = { true = ["yes"], false = ["no"] }',
}

_COMMANDS = """\
#
#     leastnoise plan %(spec)s                  expected error; reads no data and spends nothing
#     leastnoise release %(spec)s --out out     pays, and writes answers, manifest and report
"""
_HEAD = f"""\
# A spec for leastnoise, drafted from the column names and types of %(file)s alone: it holds no value of the data.
# Replace every "{BLANK}" by a public value: from a questionnaire, a code list, a law or an earlier
# publication, never by looking at the data. Remove the attributes that you do not want to publish. Then:
{_COMMANDS}
[source]
path = %(path)s
%(layout)s"""
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


@click.command()
@click.argument("file", type=FILE, required=False)
@options(
    ("--from", FILE, "A description by another tool; then no data is read."),
    ("--out", FILE, "The spec file to write.  [default: FILE with the ending .toml]"),
    (
        "--delimiter",
        str,
        "The mark between the fields of a CSV file.  [default: guessed from its header]",
    ),
    ("--encoding", str, "The encoding of a CSV file, such as latin-1.  [default: utf-8]"),
)
def init(
    file: Path | None,
    out: Path | None,
    delimiter: str | None,
    encoding: str | None,
    **described_in: Path | None,
) -> None:
    """Draft a spec file from column names and types.

    No value of the data is written into it: what a column may hold is for you to say, from public
    knowledge. With --from it is what a description says: CSVW-EO, SmartNoise metadata, domain.json
    of mbi, or a domain that OpenDP serialized; FILE need not exist then.
    """
    description = described_in["from"]
    if description is not None:
        if delimiter or encoding:
            raise InputError(
                "--from reads no data; --delimiter and --encoding are for a CSV file. Leave them "
                "out, or write them to the spec."
            )
        spec = out or (file or description).with_suffix(".toml")
        draft = described(read_description(description), description, spec, file)
    elif file is None:
        raise InputError(
            "Say which data the spec is for, as in `leastnoise init people.csv`, or give a "
            "description with --from."
        )
    else:
        spec = out or file.with_name(file.name.split(".")[0] + ".toml")
        draft = _drafted(
            file,
            spec,
            {
                key: mark
                for key, mark in (("delimiter", delimiter), ("encoding", encoding))
                if mark is not None
            },
        )
    write_new(spec, draft, "Edit that file, or choose another with --out.")
    blanks = f"Replace every {BLANK!r} in it, then run" if draft.count(f'"{BLANK}"') > 1 else "Run"
    click.echo(f"The draft is in {shown(spec)}. {blanks}: leastnoise plan {shown(spec)}")


def _drafted(file: Path, spec: Path, layout: Mapping[str, str]) -> str:
    """Return the text of a spec from names and types of columns."""
    listed = source_columns(
        columns(
            CSV(file, layout.get("delimiter"), layout.get("encoding", "utf-8")) if layout else file
        )
    )
    naming = [column.name for column in listed if column.names_person]
    untyped = not all(column.typed for column in listed)
    said = "".join(f"{key} = {_value(mark)}\n" for key, mark in layout.items()) + (
        _TEXTS if untyped else ""
    )
    parts = [
        _HEAD
        % {
            "file": _comment(file.name),
            "spec": shown(spec),
            "path": _path(file, spec),
            "layout": said,
        },
        _PRIVACY,
    ]
    parts += [
        _COLUMN % (_value(naming[0]), BLANK) if naming else _ROW,
        _DOMAIN,
        *([_GUESSED] if untyped else []),
    ]
    usable = [column for column in listed if column.kind and not column.names_person]
    for column in listed:
        if column not in usable:
            parts.append(
                _left_out(
                    column.name, "it names the person" if column.names_person else column.unusable
                )
            )
            continue
        parts.append(f"\n[domain.{_key(column.attribute)}]\n")
        if column.attribute != column.name:
            parts.append(
                f"column = {_value(column.name)}     # with its blanks; tables are called after "
                "the attribute\n"
            )
        parts.append(f"{_LINES[column.kind]}\n")
    parts += [*([] if usable else [_NO_COLUMN]), _ASKED, _WORKLOAD]
    if numbers := [
        column for kind in ("whole", "number") for column in usable if column.kind == kind
    ]:
        name = numbers[-1].name
        parts += [
            _EXAMPLE % _key(numbers[-1].attribute),
            _MEASURE % {"key": _key(name), "name": _value(name)},
        ]
    return "".join([*parts, _END])


def described(description: Description, described_in: Path, spec: Path, data: Path | None) -> str:
    """Return the text of a spec from another tool's description."""
    head = _DESCRIBED % {
        "tool": description.tool,
        "file": _comment(described_in.name),
        "spec": shown(spec),
    }
    parts = [head, *(f"#\n# {_comment(note)}\n" for note in description.notes)]
    parts.append(
        '\n# [source]\n# path = "people.csv"\n'
        if data is None
        else f"\n[source]\npath = {_path(data, spec)}\n"
    )
    unit = {"column": description.unit, "max_rows": description.max_rows}
    parts += [_PRIVACY, _ROW if description.unit is None else f"unit = {_value(unit)}\n"]
    for name, table in description.attributes.items():
        parts.append(
            f"\n[domain.{_key(name)}]\n"
            + "".join(f"{word} = {_value(entry)}\n" for word, entry in table.items())
        )
    parts += [_left_out(name, why) for name, why in description.left_out.items()]
    for name, table in description.measures.items():
        lines = "".join(f"# {word} = {_value(entry)}\n" for word, entry in table.items())
        parts.append(
            f"\n# Its sum:\n# [measures.{_key(name)}]\n{lines}# [[workload]]\n# queries = {{}}\n# "
            f"sum = {_value(name)}\n"
        )
    return "".join([*parts, _WORKLOAD, _END])


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _value(name)


def _value(given: Any) -> str:
    """Write a value of TOML on one line; a text is written as in JSON, with the one control character escaped that JSON leaves."""
    if isinstance(given, Mapping):
        return (
            "{ "
            + ", ".join(f"{_key(name)} = {_value(entry)}" for name, entry in given.items())
            + " }"
        )
    if isinstance(given, (list, tuple)):
        return "[" + ", ".join(_value(entry) for entry in given) + "]"
    return (
        json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")
        if isinstance(given, (str, bool))
        else str(given)
    )


def _comment(text: str) -> str:
    """Replace the characters that would end a comment, or cannot be printed."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _left_out(name: str, why: str) -> str:
    return f"\n# The column {_comment(_value(name))} was left out: {_comment(why)}.\n"


def _path(file: Path, spec: Path) -> str:
    """Write the path of the data for the spec file: relative to the folder of the spec if the data are below it, else absolute."""
    data, folder = Path(file).absolute(), Path(spec).absolute().parent
    return _value(str(data.relative_to(folder)) if data.is_relative_to(folder) else str(data))


@click.command()
@click.argument("spec", type=FILE)
@click.option("--source", type=FILE, help="The data, if the spec file does not name it.")
@click.option(
    "--values",
    is_flag=True,
    help="Also show the most frequent values that match nothing: values of rows.",
)
def check(spec: Path, source: Path | None, values: bool) -> None:  # noqa: FBT001 - a flag of the command line
    """Show how rows fit the spec: exact, for the data holder alone.

    PRIVATE: every number it prints is one of the data. It spends nothing, because nothing of it may
        be published, and it writes no file.
    """
    what = read_spec(spec)
    path = source or what.source
    data = None if path is None else what.data(path)
    with Progress(
        f"reading {what.data_name if source is None else source.name}", about=reading_seconds(data)
    ):
        counts = checked(what, data, values=10 if values else 0)
    for line in counts.lines():
        click.echo(visible(line))
