"""The domain as the tables of a spec file. Every message names the table it is about."""

from collections.abc import Mapping
from typing import Any

from leastnoise._check import InputError, refuse
from leastnoise._domain import Bins, Categories, Coded, Domain, Integers, Kind, Measure, attribute_name, known_keys

_SHAPES = ("categories", "integers", "bins", "size")


def domain_from_spec(attributes: Mapping[str, Any], measures: Mapping[str, Any] | None = None) -> Domain:
    """Read the tables ``[domain.*]`` and ``[measures.*]`` of a spec file.

    Args:
        attributes: from attribute to table; a table has exactly one of ``categories = [...]``, ``integers = [low, high]``,
            ``bins = { low, high, count, closed }`` and ``size = n``, and optionally ``outside`` and ``null``.
        measures: from name to table with ``clip = [low, high]`` and optionally ``column`` (else the name itself) and ``unit``.

    Returns:
        The domain.

    Raises:
        InputError: a key that is missing or unknown, or a value that `Domain` refuses; the message names the table.

    >>> domain_from_spec({"sex": {"categories": ["F", "M"]}, "age": {"integers": [17, 90], "outside": "clip"}})
    Domain(sex=Categories(['F', 'M']), age=Integers(17, 90, outside='clip'))
    """
    for what, tables in (("[domain]", attributes), ("[measures]", measures or {})):
        if not isinstance(tables, Mapping):
            raise refuse(what, tables, "a table of tables")
    kinds = {name: kind_from_spec(name, table) for name, table in attributes.items()}
    return Domain(kinds, measures={name: measure_from_spec(name, table) for name, table in (measures or {}).items()})


def kind_from_spec(name: str, table: object) -> Kind:
    """Read one table ``[domain.NAME]``.

    Args:
        name: the attribute.
        table: the table; exactly one of ``categories``, ``integers``, ``bins`` and ``size``, and optionally ``outside`` and ``null``.

    Returns:
        The kind.

    Raises:
        InputError: a key that is missing or unknown, or a value that the kind refuses.

    >>> kind_from_spec("income", {"bins": {"low": 0, "high": "0.5", "count": 5}, "null": "other"})
    Bins(0, '0.5', 5, null='other')
    """
    attribute_name("the name of an attribute", name)
    where = f"[domain.{name}]"
    found: dict[str, Any] = known_keys(where, table, [*_SHAPES, "outside", "null"])
    shapes = [key for key in _SHAPES if key in found]
    if len(shapes) != 1:
        listed = " and ".join(repr(key) for key in shapes) or "none of them"
        raise InputError(f"{where} must have exactly one of 'categories', 'integers', 'bins' and 'size'; got {listed}.")
    policies = {key: found[key] for key in ("outside", "null") if key in found}
    shape, value = shapes[0], found[shapes[0]]
    try:
        if shape == "categories":
            if not isinstance(value, (list, tuple)):
                raise refuse("categories", value, "a list of text or whole numbers")
            return Categories(tuple(value), **policies)
        if shape == "size":
            return Coded(value, **policies)
        if shape == "integers":
            low, high = _bounds("integers", value)
            return Integers(low, high, **policies)
        bins: dict[str, Any] = known_keys("bins", value, ["low", "high", "count", "closed"])
        for key in ("low", "high", "count"):
            if key not in bins:
                raise InputError(f"bins must have {key!r}; write for example bins = {{ low = 0, high = 200000, count = 500 }}.")
        return Bins(**bins, **policies)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def measure_from_spec(name: str, table: object) -> Measure:
    """Read one table ``[measures.NAME]``.

    Args:
        name: the measure.
        table: ``clip = [low, high]``, and optionally ``column`` (else the name itself) and ``unit`` (else 1).

    Returns:
        The measure.

    Raises:
        InputError: a key that is missing or unknown, or a value that `Measure` refuses.

    >>> measure_from_spec("pay", {"column": "income", "clip": [0, 200000], "unit": "0.01"})
    Measure('income', 0, 200000, unit='0.01')
    """
    attribute_name("the name of a measure", name)
    where = f"[measures.{name}]"
    found: dict[str, Any] = known_keys(where, table, ["column", "clip", "unit"])
    if "clip" not in found:
        raise InputError(f"{where} must have 'clip', the public bounds of a value; write for example clip = [0, 200000].")
    try:
        low, high = _bounds("clip", found["clip"])
        return Measure(found.get("column", name), low, high, found.get("unit", "1"))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _bounds(what: str, value: object) -> tuple[Any, Any]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise refuse(what, value, "a list of two numbers, [low, high]")
    return value[0], value[1]
