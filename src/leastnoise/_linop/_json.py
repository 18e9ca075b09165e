"""Operators and their arrays as JSON values; of an array, what a file says is not believed beyond public sizes."""

import base64
import math
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from leastnoise._check import InputError, refuse, whole
from leastnoise._check.arrays import IntArray
from leastnoise._linop._operators import Operator, SignedArray

# As many numbers as a measured table may have cells.
MOST_UNPACKED = 2**28


def narrow(array: IntArray) -> SignedArray:
    """The same whole numbers as int32 if they all fit, else as they are: half the memory, and nothing lost.

    >>> narrow(np.array([3, -4])).dtype, narrow(np.array([2**31])).dtype
    (dtype('int32'), dtype('int64'))
    """
    fits = array.size > 0 and int(array.min()) >= -(2**31) and int(array.max()) < 2**31
    return array.astype(np.int32) if fits else array


def pack(array: SignedArray, level: int = 6) -> dict[str, object]:
    """A JSON value of an int64 or int32 array: its shape and its compressed bytes.

    Args:
        array: of any shape.
        level: of the compression; 1 is several times faster than 6, and noise hardly shrinks either way.

    >>> unpack(pack(np.array([[1, 2]])), 2).tolist()
    [[1, 2]]
    """
    bits = 32 if array.dtype == np.int32 else 64
    raw = zlib.compress(np.ascontiguousarray(array, dtype=f"<i{bits // 8}").tobytes(), level)
    return {"shape": list(array.shape), f"zlib_int{bits}": base64.b64encode(raw).decode("ascii")}


def unpack(value: Mapping[str, Any], most: int = MOST_UNPACKED) -> IntArray:
    """Read what ``pack`` wrote, as int64; nothing is made that is larger than the shape says.

    Args:
        value: from a file that may have been written by anybody.
        most: the most numbers that there may be, from public sizes.

    Raises:
        InputError: the value is no packed array, has more numbers than allowed, or other ones than its shape says.

    >>> unpack({"shape": [1], "zlib_int64": "eJxjZoAAAAAgAAQ="}, 1).tolist()
    [3]
    """
    allowed, advice = "an object with shape and zlib_int64 or zlib_int32, as a plan file has it", "The file is damaged; make it again."
    try:
        shape = tuple(whole("a length in the shape of an array", length, 0) for length in value["shape"])
        count = math.prod(shape)
        if not count <= min(most, MOST_UNPACKED):
            raise refuse("a packed array", f"{count} numbers", f"of at most {min(most, MOST_UNPACKED)} numbers", advice)
        bits = 32 if "zlib_int32" in value else 64
        engine = zlib.decompressobj()
        # One byte more than the shape says, at most: a short text can be the compressed form of gigabytes.
        raw = engine.decompress(base64.b64decode(value[f"zlib_int{bits}"], validate=True), count * bits // 8 + 1)
        if len(raw) != count * bits // 8:
            raise InputError(f"A packed array must hold the {count} numbers of its shape; got more or fewer. {advice}")
        return np.frombuffer(raw, dtype=f"<i{bits // 8}").reshape(shape).astype(np.int64)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, zlib.error):
        raise refuse("array", type(value).__name__, allowed) from None


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
