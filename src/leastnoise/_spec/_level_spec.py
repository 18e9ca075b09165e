"""Read the levels of an attribute: the group of each of its cells."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from leastnoise._domain import (
    Bins,
    Categories,
    Decimals,
    Edges,
    Integers,
    Kind,
    checked_keys,
    group_pairs,
)
from leastnoise._spec._public_files import PublicFiles
from leastnoise._trusted.check import exact, message, number_text, refuse, whole

_LEVEL_FORMS = (
    "{ file, key, value }, { edges = [0, 18, 65] }, { digits = 2 }, { width = 5 } (whole "
    "numbers), or { groups = { north = ['Kiel'], south = ['Mainz'] } }"
)


def read_levels(
    value: object, kind: Kind, files: PublicFiles
) -> dict[str, Mapping[Any, Any] | list[str]]:
    """Read the levels by name.

    A level is a map from cells to groups, a list, or a width.
    """
    if not isinstance(value, Mapping):
        raise refuse(
            "levels",
            value,
            "a table of tables, such as levels.region = { file = 'stores.csv', key = 'name', "
            "value = 'region' }",
        )
    return {name: _read_level(name, table, kind, files) for name, table in value.items()}


def _read_level(
    name: str, table: object, kind: Kind, files: PublicFiles
) -> Mapping[Any, Any] | list[str]:
    """Read one level: a map from cells to groups, a list, or a width."""
    if isinstance(table, Mapping) and "file" in table:
        return files.pairs(message("levels.{level}", level=name), table)
    settings: dict[str, Any] = checked_keys(
        f"levels.{name}", table, ["file", "key", "value", "groups", "width", *_LEVEL_READERS]
    )
    if len(settings) == 1:
        ((form, value),) = settings.items()
        if form == "width":
            return settings
        if form in _LEVEL_READERS:
            subject = message("{form} of levels.{level}", form=form, level=name)
            return _LEVEL_READERS[form](subject, kind, value)
        if form == "groups" and isinstance(value, Mapping):
            return group_pairs(f"levels.{name}", value, kind.names)
    raise refuse(f"levels.{name}", dict(settings), _LEVEL_FORMS)


def _groups_from_edges(subject: str, kind: Kind, value: object) -> list[str]:
    """Return the group of each cell between edges, such as "0-17" or "65+"."""
    if not isinstance(kind, (Integers, Decimals, Bins, Edges)):
        raise refuse(subject, value, "used only for numbers (integers, decimals, bins or edges)")
    cell_edges = list(kind.edges) if isinstance(kind, (Bins, Edges)) else []
    starts = cell_edges[:-1] or [Fraction(label) for label in kind.regular_labels]
    group_edges = [exact(subject, edge) for edge in value] if isinstance(value, list) else []
    is_increasing = all(low < high for low, high in pairwise(group_edges))
    if not group_edges or not is_increasing or group_edges[0] > starts[0]:
        raise refuse(
            subject,
            value,
            message(
                "a list of increasing numbers, the first of them at most {most}", most=starts[0]
            ),
        )
    for edge in group_edges:
        divides_whole_number = isinstance(kind, Integers) and edge.denominator != 1
        is_inside = bool(cell_edges) and cell_edges[0] < edge < cell_edges[-1]
        if divides_whole_number or (is_inside and edge not in cell_edges):
            raise refuse(
                subject, value, "edges between cells, because no cell may lie in two groups"
            )
    texts = [
        _group_text(kind, low, high)
        for low, high in zip(group_edges, [*group_edges[1:], None], strict=True)
    ]
    return [texts[bisect_right(group_edges, start) - 1] for start in starts]


def _group_text(kind: Kind, low: Fraction, high: Fraction | None) -> str:
    """Return the name of the group from ``low`` to below ``high``.

    ``high`` is None for the last group, which has no upper end. If the cells include their upper
    ends, the group contains numbers above ``low`` and up to ``high``.
    """
    start = number_text(low)
    includes_low = not isinstance(kind, (Bins, Edges)) or kind.closed == "left"
    if high is None:
        return f"{start}+" if includes_low else f"> {start}"
    if not isinstance(kind, Integers):
        end = number_text(high)
        return f"[{start}, {end})" if includes_low else f"({start}, {end}]"
    last = int(high) - 1
    if last == low:
        return start
    dash = "-" if low >= 0 else " .. "
    return f"{start}{dash}{last}"


def _groups_from_digits(subject: str, kind: Kind, value: object) -> list[str]:
    """Return the group of each code, which is its first digits or letters."""
    digits = whole(subject, value, 1)
    codes = [str(label) for label in kind.regular_labels]
    lengths = {*map(len, codes)}
    is_listed = isinstance(kind, Categories)
    if (
        not isinstance(kind, (Categories, Integers))
        or min(lengths) < digits
        or (len(lengths) > 1 and not is_listed)
    ):
        raise refuse(
            subject,
            value,
            f"given for codes of at least {digits} digits or letters each; numbers must have "
            "equally many",
        )
    return [code[:digits] for code in codes]


_LEVEL_READERS: Mapping[str, Callable[[str, Kind, object], list[str]]] = {
    "edges": _groups_from_edges,
    "digits": _groups_from_digits,
}
