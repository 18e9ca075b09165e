"""Translate PostgreSQL's TO_CHAR with a format to functions of DuckDB.

A format is a sequence of three kinds of parts: patterns such as ``YYYY`` and ``Mon``, texts in
double quotes, and other characters. Other characters are copied.
"""

import re
from typing import Any

from leastnoise._workload._sql._expression_values import Node, refused

_NUMBERS = {
    "YYYY": "%Y",
    "YY": "%y",
    "IYYY": "%G",
    "MM": "%m",
    "DDD": "%j",
    "DD": "%d",
    "IW": "%V",
    "HH24": "%H",
    "HH12": "%I",
    "HH": "%I",
    "MI": "%M",
    "SS": "%S",
    "MS": "%g",
    "ID": "%u",
}
"""Patterns of numbers, in upper or lower case, as DuckDB writes them."""
_WITHOUT_ZEROS = {"MM": "%-m", "DDD": "%-j", "DD": "%-d", "HH24": "%-H", "HH12": "%-I", "HH": "%-I"}
"""These patterns after FM, which leaves out zeros at the beginning."""
_NAMES = {"MONTH": "%B", "MON": "%b", "DAY": "%A", "DY": "%a", "AM": "%p", "PM": "%p"}
"""Patterns of names. A name is written in the case of its pattern."""
_HALVES_OF_DAY = ("AM", "PM")  # the spelling of DuckDB
_PADDED = ("MONTH", "DAY")
_PADDED_NAME_WIDTH = 9  # PostgreSQL pads these names with blanks to this width
_PATTERN = re.compile(
    r"(?P<fill>FM|TM)?(?:(?P<name>MONTH|MON|DAY|DY|AM|PM)|(?P<number>IYYY|YYYY|YY|MM|DDD|DD|IW|ID"
    r'|HH24|HH12|HH|MI|SS|MS|Q))|"(?P<text>[^"]*)"|(?P<other>[^A-Za-z"])',
    re.IGNORECASE,
)
_NUMBER_FORMAT = re.compile(r"(FM)?(?=.*[90])[90.,DGLS$%+() -]+(MI|PR)?", re.IGNORECASE)
_ADVICE = (
    "Its patterns are YYYY, YY, IYYY, Q, MM, Month, Mon, IW, DDD, DD, Day, Dy, ID, HH24, HH12, MI, "
    "SS, MS and AM, each also after FM. Write other text in double quotes"
)


def formatted_time(call: Node) -> Node:
    """Translate TO_CHAR(column, format) to DuckDB.

    Raises:
        InputError: the format is for numbers, or has a pattern that DuckDB lacks.
    """
    from sqlglot import exp

    written = call.args["format"].name
    if _NUMBER_FORMAT.fullmatch(written):
        raise refused(
            f"TO_CHAR with the format '{written}' of numbers",
            "Write ROUND(x, 2), and format the number where it is shown",
        )
    parts: list[Node] = []
    plain = ""  # the codes collected since the last function
    position = 0
    while position < len(written):
        match = _PATTERN.match(written, position)
        if match is None:
            raise refused(f"TO_CHAR with '{written[position:]}' in its format", _ADVICE)
        position = match.end()
        text = _plain_format(match)
        if text is not None:
            plain += text
            continue
        if plain:
            parts.append(_time_text(call, plain))
        parts.append(_formatted_by_functions(call, match))
        plain = ""
    if plain or not parts:
        parts.append(_time_text(call, plain))
    result = parts[0]
    for part in parts[1:]:
        result = exp.DPipe(this=result, expression=part, safe=True)
    return exp.Paren(this=result) if len(parts) > 1 else result


def _plain_format(match: re.Match[str]) -> str | None:
    """Return DuckDB's format code for a pattern; None if it needs a function."""
    if match["name"] is not None:
        name = match["name"].upper()
        is_capitalised = match["name"] in (name.capitalize(), *_HALVES_OF_DAY)
        is_filled = name in _PADDED and match["fill"] is None
        return _NAMES[name] if is_capitalised and not is_filled else None
    if match["number"] is not None:
        number = match["number"].upper()
        if number == "Q":
            return None
        if (match["fill"] or "").upper() == "FM":
            return _WITHOUT_ZEROS.get(number, _NUMBERS[number])
        return _NUMBERS[number]
    text = match["text"] if match["text"] is not None else match["other"]
    return text.replace("%", "%%")


def _formatted_by_functions(call: Node, match: re.Match[str]) -> Node:
    """Return SQL functions for a date pattern that has no format code.

    These patterns are the quarter, and names of months or days that are in upper case, in lower
    case, or padded with blanks.
    """
    from sqlglot import exp

    if match["number"] is not None:
        quarter = exp.Extract(this=exp.var("QUARTER"), expression=_as_time(call))
        return exp.cast(quarter, "VARCHAR")
    name = match["name"].upper()
    part = _time_text(call, _NAMES[name])
    if match["name"] == name:
        part = exp.Upper(this=part)
    elif match["name"].islower():
        part = exp.Lower(this=part)
    if name not in _PADDED or match["fill"] is not None:
        return part
    return exp.Pad(
        this=part,
        expression=exp.Literal.number(_PADDED_NAME_WIDTH),
        fill_pattern=exp.Literal.string(" "),
        is_left=False,
    )


def _time_text(call: Node, duckdb_format: str) -> Node:
    """Return STRFTIME with a DuckDB format."""
    from sqlglot import exp

    text: Any = exp.Literal.string(duckdb_format)
    return exp.TimeToStr(this=_as_time(call), format=text)


def _as_time(call: Node) -> Node:
    """Return a copy of the time expression that TO_CHAR formats."""
    return call.this.copy()
