"""Public totals and the ids of SDMX that the first form can state."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from leastnoise._release import OBSERVATION_STATUS, SDMX_ID, sdmx_period
from leastnoise._studio._form_parts import MOST_LEVELS, Form, read_pairs
from leastnoise._trusted.check import InputError, message, one_of

SDMX_FLOWS = ("table", "quantity")
"""A data flow for each table, which is the default, or for each quantity."""
SDMX_STATUS = {"published": "E", "suppressed": "Q", "unreliable": "U"}
"""The codes of observation status that a release has by default."""
_NO_TOTALS = (
    "Public totals must have numbers, or a public file and its column of numbers; got neither. "
    "Fill them in, or remove these totals."
)
_NO_TOTAL = "Public totals must be whole numbers without separators of thousands; got {text!r}."
_NO_ROWS = (
    "The public number of all rows must be one number; got {count} numbers. Choose the columns "
    "that split them."
)
_NO_ID = (
    "An id in SDMX files must begin with a letter, and have only letters, digits, - and _; got "
    "{text!r}."
)
_NO_PERIOD = "The period of SDMX files must be such as 2025, 2025-Q3 or 2025-08; got {text!r}."
_NO_CODE = (
    "SDMX codes of {name} must have one line for each code, such as 'f = F'; got the line {line!r}."
)


def list_total_numbers(form: Form) -> list[int]:
    """List the numbers of the public totals in a form, in order."""
    matches = (re.fullmatch(r"p(\d{1,3})\.counts", key) for key in form)
    return sorted(int(match.group(1)) for match in matches if match)


def public_total(form: Form, number: int, groups: Mapping[str, Any]) -> dict[str, Any]:
    """Return one table [[public]] for a spec.

    Args:
        form: the form.
        number: the number of the public totals in the form.
        groups: the attributes of the totals, each with its query set; empty for all rows.

    Raises:
        InputError: the form states no numbers, or numbers that are not whole.
    """
    prefix = f"p{number}."
    counts: Any = read_totals(form.get(f"{prefix}counts", ""))
    if form.get(f"{prefix}file"):
        counts = {"file": form[f"{prefix}file"], "column": form.get(f"{prefix}column", "")}
    if not counts:
        raise InputError(_NO_TOTALS)
    if groups:
        return {"queries": dict(groups), "counts": counts}
    if not isinstance(counts, list):
        return {"counts": counts}
    if len(counts) > 1:
        raise InputError(message(_NO_ROWS, count=len(counts)))
    return {"counts": counts[0]}


def read_totals(text: str) -> list[int]:
    """Return whole numbers of a text, separated by blanks, commas or semicolons.

    Raises:
        InputError: a part of the text is not a whole number.
    """
    totals = []
    for part in re.split(r"[\s,;]+", text.strip(" ,;\n")):
        if re.fullmatch(r"\d{1,18}", part):
            totals.append(int(part))
        elif part:
            raise InputError(message(_NO_TOTAL, text=part))
    return totals


def read_codes(name: str, text: str) -> dict[str, str]:
    """Return the SDMX codes of labels from lines such as ``f = F``.

    Args:
        name: the attribute, for messages.
        text: the lines.

    Raises:
        InputError: a line has no label or no code.
    """
    return read_pairs(text, name, _NO_CODE, str.rpartition)


def sdmx_table(
    form: Form,
    column_numbers: Mapping[str, int],
    attributes: Sequence[str],
    measure_columns: Mapping[str, int],
) -> dict[str, Any]:
    """Return the table [output.sdmx] for a spec; it is empty without SDMX files.

    Args:
        form: the form.
        column_numbers: the column number of each attribute.
        attributes: the attributes of the spec.
        measure_columns: the column number of each measure.
    """
    if not form.get("formats.sdmx"):
        return {}
    table: dict[str, Any] = {}
    if form.get("sdmx.agency"):
        table["agency"] = _checked_id(form["sdmx.agency"])
    flows = one_of("the data flows", form.get("sdmx.flows") or SDMX_FLOWS[0], SDMX_FLOWS)
    if flows != SDMX_FLOWS[0]:
        table["flows"] = flows
    concepts: dict[str, str] = {}
    codes: dict[str, dict[str, str]] = {}
    for name in attributes:
        prefix = f"c{column_numbers[name]}."
        concepts |= _concepts_of_column(form, prefix, name)
        codes_of_column = read_codes(name, form.get(f"{prefix}codes", ""))
        if codes_of_column:
            codes[name] = codes_of_column
    units = {key: form[f"sdmx.{key}"] for key in ("rows", "units") if form.get(f"sdmx.{key}")}
    for name, number in measure_columns.items():
        if form.get(f"c{number}.unit_code"):
            units[name] = form[f"c{number}.unit_code"]
    status = {
        key: one_of("a status code of SDMX files", form[f"sdmx.{key}"], OBSERVATION_STATUS)
        for key, default in SDMX_STATUS.items()
        if form.get(f"sdmx.{key}", "") not in ("", default)
    }
    parts = {"concepts": concepts, "codes": codes, "units": units, "status": status}
    table |= {key: part for key, part in parts.items() if part}
    period = form.get("sdmx.period", "")
    if period:
        if sdmx_period(period) is None:
            raise InputError(message(_NO_PERIOD, text=period))
        table["period"] = period
    return table


def _checked_id(text: str) -> str:
    """Return an id of SDMX; raise InputError if its form is not allowed."""
    if not SDMX_ID.fullmatch(text):
        raise InputError(message(_NO_ID, text=text))
    return text


def _concepts_of_column(form: Form, prefix: str, name: str) -> dict[str, str]:
    """Return the concepts of an attribute and its levels, by keys of a spec."""
    fields = {name: f"{prefix}concept"}
    if form.get(f"{prefix}edges"):
        fields[f"{name}:group"] = f"{prefix}group_concept"
    for level in range(MOST_LEVELS):
        if form.get(f"{prefix}l{level}.name"):
            fields[f"{name}:{form[f'{prefix}l{level}.name']}"] = f"{prefix}l{level}.concept"
    return {key: _checked_id(form[field]) for key, field in fields.items() if form.get(field)}
