"""The domain of an OpenDP context, as ``opendp.prelude.serialize`` writes it: the columns with their types, bounds and categories.

A context itself holds the data and cannot be a file; of what it says beside its domain, margins and lengths are no part of a spec.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from leastnoise._descriptions._description import BLANK, Description, clipped, numbers, whole_numbers


def is_opendp(value: Any) -> bool:
    """Whether it has columns of OpenDP."""
    return any(True for _ in _calls(value, "series_domain"))


def from_opendp(value: Any) -> Description:
    """The columns of a frame's domain."""
    attributes: dict[str, Any] = {}
    measures: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for column in _calls(value, "series_domain"):
        name, element = str(column.get("name")), column.get("element_domain")
        table = _attribute(element)
        if table is None:
            left_out[name] = "of a type which cannot be published"
            continue
        attributes[name] = table
        if ("integers" in table or "bins" in table) and (measure := clipped(*_bounds(element))) is not None:
            measures[name] = measure
    note = "The unit and the budget of an OpenDP context are not in its domain: write [privacy] anew."
    return Description(tool="OpenDP", attributes=attributes, measures=measures, left_out=left_out, notes=(note,))


def _attribute(element: Any) -> dict[str, Any] | None:
    for kind in ("enum_domain", "categorical_domain"):
        for call in _calls(element, kind):
            listed = call.get("categories")
            return {"categories": list(listed) if isinstance(listed, list) and listed else [BLANK]}
    for call in _calls(element, "atom_domain"):
        name = str(call.get("T"))
        if name == "bool":
            return {"categories": [True, False]}
        if name[:1] in "iu" and name[1:].isdecimal():
            return whole_numbers(*_bounds(element))
        if name.startswith("f"):
            return numbers(*_bounds(element))
        return {"categories": [BLANK]} if name == "String" else None
    if any(True for _ in _calls(element, "datetime_domain")):
        return {"dates": {"from": BLANK, "to": BLANK, "by": "month"}}
    return None


def _bounds(element: Any) -> tuple[Any, Any]:
    for call in _calls(element, "atom_domain"):
        bounds = call.get("bounds")
        pair = bounds.get("__tuple__") if isinstance(bounds, Mapping) else bounds
        if isinstance(pair, list) and len(pair) == 2:
            return pair[0], pair[1]
    return None, None


def _calls(value: Any, function: str) -> Iterator[Mapping[str, Any]]:
    """The arguments of every call of a constructor, wherever it stands."""
    if isinstance(value, list):
        for one in value:
            yield from _calls(one, function)
    elif isinstance(value, Mapping):
        if value.get("__function__") == function and isinstance(value.get("__kwargs__"), Mapping):
            yield value["__kwargs__"]
        else:
            for one in value.values():
                yield from _calls(one, function)
