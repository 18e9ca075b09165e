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
# Bytes of a number, by the key of an array's text.
_FORMS = {"zlib_int64": 8, "zlib_int32": 4, **{f"int{8 * size}": size for size in range(1, 9)}}


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


def whole_bytes(array: SignedArray) -> dict[str, object]:
    """A JSON value of whole numbers in as many bytes each as the largest needs: noise hardly shrinks further, and this takes no time.

    Args:
        array: of any shape.

    >>> found = whole_bytes(np.array([[1, -129]]))
    >>> found, unpack(found, 2).tolist()
    ({'shape': [1, 2], 'int16': 'AQB//w=='}, [[1, -129]])
    """
    size = max(int(array.max(initial=0)), -1 - int(array.min(initial=0))).bit_length() // 8 + 1
    raw = np.ascontiguousarray(array, dtype="<i8").reshape(-1, 1).view(np.uint8)[:, :size]
    return {"shape": list(array.shape), f"int{8 * size}": base64.b64encode(raw.tobytes()).decode("ascii")}


def whole_bytes_text(array: SignedArray) -> str:
    """``whole_bytes`` as JSON, without a look at every character.

    >>> whole_bytes_text(np.array([[1, -129]]))
    '{"shape": [1, 2], "int16": "AQB//w=="}'
    """
    value = whole_bytes(array)
    form = next(key for key in value if key != "shape")
    return f'{{"shape": [{", ".join(map(str, array.shape))}], "{form}": "{value[form]}"}}'


def unpack(value: Mapping[str, Any], most: int = MOST_UNPACKED) -> IntArray:
    """Read what ``pack`` or ``whole_bytes`` wrote, as int64; nothing is made that is larger than the shape says.

    Args:
        value: from a file that may have been written by anybody.
        most: the most numbers that there may be, from public sizes.

    Raises:
        InputError: the value is no packed array, has more numbers than allowed, or other ones than its shape says.

    >>> unpack({"shape": [1], "zlib_int64": "eJxjZoAAAAAgAAQ="}, 1).tolist()
    [3]
    """
    allowed = "an object with shape and either zlib_int64, zlib_int32 or one of int8 to int64"
    advice = "The file is damaged; make it again."
    try:
        shape = tuple(whole("a length in the shape of an array", length, 0) for length in value["shape"])
        count = math.prod(shape)
        if not count <= min(most, MOST_UNPACKED):
            raise refuse("a packed array", f"{count} numbers", f"of at most {min(most, MOST_UNPACKED)} numbers", advice)
        (form,) = _FORMS.keys() & value
        raw, size = base64.b64decode(value[form], validate=True), _FORMS[form]
        if form.startswith("zlib"):
            # One byte more than the shape says, at most: a short text can be the compressed form of gigabytes.
            raw = zlib.decompressobj().decompress(raw, count * size + 1)
        if len(raw) != count * size:
            raise InputError(f"A packed array must hold the {count} numbers of its shape; got more or fewer. {advice}")
        wide = np.zeros((count, 8), dtype=np.uint8)
        wide[:, 8 - size :] = np.frombuffer(raw, dtype=np.uint8).reshape(count, size)
        found = wide.view("<i8").reshape(shape).astype(np.int64, copy=False)
        return np.right_shift(found, 64 - 8 * size, out=found)
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
