"""Operators and their arrays as JSON values: what fingerprints of measurements are made of."""

import base64
import zlib
from dataclasses import fields
from typing import Any

import numpy as np

from leastnoise._check.arrays import IntArray
from leastnoise._linop._operators import Operator, SignedArray


def narrow(array: IntArray) -> SignedArray:
    """The same whole numbers as int32 if they all fit, else as they are: half the memory, and nothing lost.

    >>> narrow(np.array([3, -4])).dtype, narrow(np.array([2**31])).dtype
    (dtype('int32'), dtype('int64'))
    """
    fits = array.size > 0 and int(array.min()) >= -(2**31) and int(array.max()) < 2**31
    return array.astype(np.int32) if fits else array


def pack(array: SignedArray) -> dict[str, object]:
    """A JSON value of an int64 or int32 array: its shape and its compressed bytes.

    >>> unpack(pack(np.array([[1, 2]])), 2).tolist()
    [[1, 2]]
    """
    bits = 32 if array.dtype == np.int32 else 64
    raw = zlib.compress(np.ascontiguousarray(array, dtype=f"<i{bits // 8}").tobytes())
    return {"shape": list(array.shape), f"zlib_int{bits}": base64.b64encode(raw).decode("ascii")}


def to_json(operator: Operator) -> dict[str, object]:
    """An operator as a JSON value: its kind, and the arguments that made it.

    >>> to_json(Tree(4, (4, 1)))
    {'kind': 'tree', 'size': 4, 'widths': [4, 1]}
    """
    kind: type = type(operator)
    parts = {one.name: getattr(operator, one.name) for one in fields(kind) if one.init}
    return {"kind": kind.__name__.lower(), **{name: _written(part) for name, part in parts.items()}}


def _written(part: Any) -> object:
    if isinstance(part, np.ndarray):
        return pack(part)
    if isinstance(part, tuple):
        return list(part)
    return part if isinstance(part, int) else to_json(part)
