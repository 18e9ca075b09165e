"""Operators from JSON that any release of the program has written; each is made by its own constructor, which checks it."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from leastnoise._check import refuse
from leastnoise._check.arrays import IntArray
from leastnoise._linop import MOST_UNPACKED, Operator, operators, unpack


def operator_from_json(value: Mapping[str, Any], cells: int | None = None) -> Operator:
    """Read what ``to_json`` of ``_linop`` wrote."""
    operator = _from_json(value, MOST_UNPACKED if cells is None else cells)
    if cells is not None and operator.size != cells:
        raise refuse("the size of an operator", operator.size, f"the {cells} cells of its attributes")
    return operator


def _from_json(value: Mapping[str, Any], cells: int) -> Operator:
    kinds: dict[str, type] = {kind.__name__.lower(): kind for kind in operators()}
    try:
        kind = kinds[value["kind"]]
        made: Operator = kind(**{one.name: _read(value[one.name], one.type, cells) for one in fields(kind) if one.init})
    except (KeyError, TypeError, RecursionError):
        raise refuse("operator", value if len(str(value)) < 80 else "something else", "an operator as a plan file has it") from None
    return made


def _read(value: Any, kind: object, cells: int) -> object:
    if kind == IntArray:
        return _unpacked(value, cells)
    if kind is Operator:
        return _from_json(value, cells)
    return tuple(value) if kind == tuple[int, ...] else value


def _unpacked(value: Mapping[str, Any], cells: int) -> IntArray:
    """An array; a matrix has one column a cell."""
    shape = value["shape"]
    if isinstance(shape, list) and len(shape) > 1 and not shape[-1] <= cells:
        raise refuse("the shape of an operator's matrix", shape, f"[rows, columns] with at most {cells} columns")
    return unpack(value)
