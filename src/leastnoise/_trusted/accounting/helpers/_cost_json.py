"""Read budgets, costs and charges from JSON.

The texts are checked character by character, so that a damaged file is refused.

This file is not trusted. After reading a value, the ledger writes it again and checks that the two
texts are equal.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction

from leastnoise._trusted.accounting._budget import (
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    Privacy,
    PureDP,
    exact_with_few_digits,
    parameters_by_name,
)
from leastnoise._trusted.accounting._charge import Charge
from leastnoise._trusted.accounting._cost import (
    ConcentratedCost,
    Cost,
    GaussianCost,
    PureCost,
    SeriesCost,
)
from leastnoise._trusted.check import MOST_DIGITS, one_of, refuse, whole
from leastnoise._trusted.domain import READ_AS_IT_IS, PerCellBound, Reading

_TEXT = re.compile(r"(0|[1-9][0-9]*)(/[1-9][0-9]*)?")
_KINDS: dict[str, type[PureCost | GaussianCost | ConcentratedCost]] = {
    it.kind: it for it in (PureCost, GaussianCost, ConcentratedCost)
}


def fraction_from_text(name: str, text: object) -> Fraction:
    """Parse a fraction from a text that `fraction_to_text` wrote."""
    if not isinstance(text, str) or len(text) > 2 * MOST_DIGITS + 1 or not _TEXT.fullmatch(text):
        raise refuse(
            name,
            text,
            "a text such as '1/3' or '2'",
            "The file is damaged, or not of this package.",
        )
    return exact_with_few_digits(name, Fraction(text))


def fields_of(name: str, data: object, names: set[str]) -> Mapping[str, object]:
    """Return a JSON object unchanged; raise unless it has exactly these keys.

    Raises:
        InputError: the object lacks one of the keys or has another key.
    """
    if not isinstance(data, Mapping) or set(data) != names:
        received = sorted(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
        raise refuse(name, received, "a JSON object with the keys " + ", ".join(sorted(names)))
    return data


def budget_from_json(data: object) -> Budget:
    """Read a budget from the JSON values that its ``to_json`` wrote."""
    kinds = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP, GDP)}
    definition = one_of(
        "definition", data.get("definition") if isinstance(data, Mapping) else data, list(kinds)
    )
    names = [field.name for field in fields(kinds[definition])]
    texts = fields_of(f"the budget {definition}", data, {"definition", *names})
    return kinds[definition](*(fraction_from_text(name, texts[name]) for name in names))


def privacy_from_json(data: object) -> Privacy:
    """Read a `Privacy` from the JSON values that `Privacy.to_json` wrote."""
    if isinstance(data, Mapping):
        present = set(data)
    else:
        present = set()
    optional = {"max_per_cell", "unit_reading"} & present
    names = {"budget", "neighbours", "unit_column", "max_rows", *optional}
    entries = fields_of("privacy", data, names)
    column = entries["unit_column"]
    if column is not None and not isinstance(column, str):
        raise refuse("unit_column", column, "the name of a column, or null")
    return Privacy(
        budget_from_json(entries["budget"]),
        one_of("neighbours", entries["neighbours"], ["add_remove", "replace"]),
        column,
        whole("max_rows", entries["max_rows"], 1),
        _per_cell_bound(entries["max_per_cell"]) if "max_per_cell" in optional else None,
        _unit_reading(entries["unit_reading"]) if "unit_reading" in optional else READ_AS_IT_IS,
    )


def _unit_reading(data: object) -> Reading:
    """Read the `Reading` of the unit column from a JSON object."""
    names = {setting.name for setting in fields(Reading)} - {"column"}
    if not isinstance(data, Mapping) or not set(data) <= names:
        raise refuse("unit_reading", type(data).__name__, "a JSON object with parts of a Reading")
    return Reading(**data)


def _per_cell_bound(data: object) -> PerCellBound:
    """Read the bound on rows per cell from a JSON object."""
    if (
        not isinstance(data, Mapping)
        or set(data) != {"rows", "attributes"}
        or not isinstance(data["attributes"], list)
    ):
        raise refuse(
            "max_per_cell", type(data).__name__, "a JSON object with rows, and attributes in a list"
        )
    return PerCellBound(data["rows"], data["attributes"])


def cost_from_json(data: object) -> Cost:
    """Read a cost from the JSON values that its ``to_json`` wrote."""
    kind = one_of("kind", data.get("kind") if isinstance(data, dict) else data, [*_KINDS, "series"])
    if kind == "series":
        return SeriesCost(
            budget_from_json(fields_of("the cost of a series", data, {"kind", "budget"})["budget"])
        )
    (name,) = (field.name for field in fields(_KINDS[kind]))
    return _KINDS[kind](
        fraction_from_text(name, fields_of(f"a {kind} cost", data, {"kind", name})[name])
    )


def charge_from_json(data: object) -> Charge:
    """Read a charge from the JSON values that `Charge.to_json` wrote."""
    names = {*parameters_by_name(Charge())}
    if isinstance(data, Mapping) and "mu_squared" not in data:
        names.remove("mu_squared")
    entries = fields_of("a charge", data, names)
    return Charge(**{name: fraction_from_text(name, value) for name, value in entries.items()})
