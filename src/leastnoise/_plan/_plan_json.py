"""Read plans, measurements and observations from JSON.

Any version of the program may have written the JSON.

The constructor of each class builds its values, and checks them. So a file cannot contain a value
that a program could not build.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

from leastnoise._domain import (
    Domain,
)
from leastnoise._trusted.accounting import (
    Noise,
    fraction_from_text,
    privacy_from_json,
)
from leastnoise._trusted.check import InputError, one_of, refuse, whole
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.linop import (
    MOST_UNPACKED,
    Operator,
    SignedArray,
    array_from_json,
    as_int32_if_exact,
    operator_classes,
)
from leastnoise._trusted.measurements import (
    Block,
    Factor,
    Limits,
    Measurements,
)


def operator_from_json(value: Mapping[str, Any], cells: int | None = None) -> Operator:
    """Parse an operator (a matrix of queries) from JSON, and check it.

    The operator must have one column for each cell.
    """
    operator = _from_json(value, MOST_UNPACKED if cells is None else cells)
    if cells is not None and operator.size != cells:
        raise refuse(
            "the size of an operator", operator.size, f"the {cells} cells of its attributes"
        )
    return operator


def _from_json(value: Mapping[str, Any], cells: int) -> Operator:
    """Parse an operator, and limit its matrices to ``cells`` columns.

    The same limit applies to nested operators.
    """

    def read(entry: Any, kind: object) -> object:
        """Parse an entry of a JSON object as the given type."""
        if kind == IntArray:
            shape = entry["shape"]
            if isinstance(shape, list) and len(shape) > 1 and not shape[-1] <= cells:
                raise refuse(
                    "the shape of an operator's matrix",
                    shape,
                    f"[rows, columns] with at most {cells} columns",
                )
            return array_from_json(entry)
        if kind is Operator:
            return _from_json(entry, cells)
        if kind == tuple[int, ...]:
            return tuple(entry)
        return entry

    kinds: dict[str, type] = {kind.__name__.lower(): kind for kind in operator_classes()}
    try:
        kind = kinds[value["kind"]]
        operator: Operator = kind(
            **{
                entry.name: read(value[entry.name], entry.type)
                for entry in fields(kind)
                if entry.init
            }
        )
    except (KeyError, TypeError, RecursionError):
        raise refuse(
            "operator",
            value if len(str(value)) < 80 else "something else",
            "an operator as a plan file has it",
        ) from None
    return operator


_Read = TypeVar("_Read")


def parse_or_refuse(reader: Callable[[], _Read], subject: str, advice: str) -> _Read:
    """Call a parser; raise InputError with advice if the text is damaged."""
    try:
        return reader()
    except InputError:
        raise
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, RecursionError):
        raise InputError(
            f"This is not {'an' if subject[0] in 'aeiou' else 'a'} {subject}, or a damaged one. "
            f"{advice}"
        ) from None


def read_json(text: str) -> Any:
    """Parse JSON from untrusted text.

    Raises a ValueError if it is not valid.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and infinity, which are not JSON numbers."""
    raise ValueError(name)


def measurements_from_value(value: Mapping[str, Any], domain: Domain | None = None) -> Measurements:
    """Parse the JSON object that `measurements_value` wrote."""
    if domain is None:
        domain = Domain.from_json(value["domain"])
    factors = [_factor(domain, entry) for entry in value["factors"]]
    limits = [_limits(domain, entry) for entry in value.get("limits", ())]
    privacy = privacy_from_json(value["privacy"])
    noise = Noise(one_of("mechanism", value["mechanism"], [kind.value for kind in Noise]))
    return Measurements(
        domain=domain,
        privacy=privacy,
        noise=noise,
        blocks=tuple(_block(entry, factors, limits) for entry in value["blocks"]),
        grid=value["grid"],
    )


def _block(entry: Mapping[str, Any], factors: Sequence[Factor], limits: Sequence[Limits]) -> Block:
    """Parse a block of measured queries from its JSON object.

    The JSON object refers to factors and limits by their positions.
    """
    block_factors = [
        factors[whole("a factor's place", number, 0, len(factors) - 1)]
        for number in entry["factors"]
    ]
    scale = fraction_from_text("scale", entry["scale"])
    block_limits = None
    if "limits" in entry:
        block_limits = limits[whole("the place of limits", entry["limits"], 0, len(limits) - 1)]
    return Block(
        tuple(block_factors),
        scale,
        entry["measure"],
        block_limits,
        entry.get("ends", False),
        entry.get("k_norm_group"),
    )


def _factor(domain: Domain, entry: Mapping[str, Any]) -> Factor:
    """Parse a factor of a block: its attributes and its operator.

    The arrays of the operator must not be larger than the public domain allows.
    """
    names = tuple(entry["attributes"])
    operator = operator_from_json(
        entry["operator"], math.prod(domain.kind(name).size for name in names)
    )
    row_weights = None
    if entry["row_weights"] is not None:
        row_weights = array_from_json(entry["row_weights"], operator.rows)
    return Factor(names, operator, row_weights)


def _limits(domain: Domain, entry: Mapping[str, Any]) -> Limits:
    """Parse the limits of the values that a block sums."""
    name = entry["attribute"]
    return Limits(
        array_from_json(entry["values"], 1 if name is None else domain.kind(name).size), name
    )


def values_from_json(measurements: Measurements, entries: Iterable[Any]) -> tuple[SignedArray, ...]:
    """Parse the noisy values of an observation, one array per block."""
    packed = list(entries)
    if len(packed) != len(measurements.blocks):
        raise refuse(
            "the values of an observation", f"{len(packed)} arrays", "one array a block of the plan"
        )
    return tuple(
        as_int32_if_exact(array_from_json(entry, block.rows))
        for entry, block in zip(packed, measurements.blocks, strict=True)
    )
