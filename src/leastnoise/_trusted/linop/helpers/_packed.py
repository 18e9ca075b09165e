"""Write operators and noisy answers as JSON values, and read them.

Reading an array uses no more memory than its public shape requires. This file is not trusted:
operators and noisy answers are public, and costs are computed from the operators that were read.
"""

import base64
import math
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from leastnoise._trusted.check import InputError, refuse, whole
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.linop._operators import Operator, SignedArray

# The largest number of cells of a measured table.
MOST_UNPACKED = 2**28
# The number of bytes of each integer, by the key of the text in the JSON value.
_FORMS = {"zlib_int64": 8, "zlib_int32": 4, **{f"int{8 * size}": size for size in range(1, 9)}}


def array_to_json(array: SignedArray) -> dict[str, object]:
    """Convert an int64 or int32 array to a JSON value, compressed.

    The value has the shape and the compressed bytes.
    """
    if array.dtype == np.int32:
        bits = 32
    else:
        bits = 64
    raw = zlib.compress(np.ascontiguousarray(array, dtype=f"<i{bits // 8}").tobytes())
    return {"shape": list(array.shape), f"zlib_int{bits}": base64.b64encode(raw).decode("ascii")}


def to_json(operator: Operator) -> dict[str, object]:
    """Convert an operator to a JSON value.

    The value has the name of the class and the arguments of the constructor.
    """
    kind: type = type(operator)
    arguments = {field.name: getattr(operator, field.name) for field in fields(kind) if field.init}
    return {
        "kind": kind.__name__.lower(),
        **{name: _field_json(value) for name, value in arguments.items()},
    }


def _field_json(value: Any) -> object:
    """Convert a field of an operator to a JSON value."""
    if isinstance(value, np.ndarray):
        return array_to_json(value)
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, int):
        return value
    return to_json(value)


def noisy_array_to_json(array: SignedArray) -> dict[str, object]:
    """Convert integers to a JSON value with a fixed number of bytes for each.

    The largest integer determines the number of bytes. The bytes are not compressed, because noise
    is hardly compressible.
    """
    size = max(int(array.max(initial=0)), -1 - int(array.min(initial=0))).bit_length() // 8 + 1
    raw = np.ascontiguousarray(array, dtype="<i8").reshape(-1, 1).view(np.uint8)[:, :size]
    return {
        "shape": list(array.shape),
        f"int{8 * size}": base64.b64encode(raw.tobytes()).decode("ascii"),
    }


def noisy_array_to_json_text(array: SignedArray) -> str:
    """Return the result of `noisy_array_to_json` as JSON text.

    The function does not use the encoder of ``json``, which would search the whole text for
    characters to escape.
    """
    value = noisy_array_to_json(array)
    form = next(key for key in value if key != "shape")
    return f'{{"shape": [{", ".join(map(str, array.shape))}], "{form}": "{value[form]}"}}'


def array_from_json(value: Mapping[str, Any], max_size: int = MOST_UNPACKED) -> IntArray:
    """Read an int64 array from a JSON value that this module wrote.

    An array of more than ``max_size`` numbers is refused before it is unpacked.
    """
    allowed = "an object with shape and either zlib_int64, zlib_int32 or one of int8 to int64"
    advice = "The file is damaged; make it again."
    try:
        shape = tuple(
            whole("a length in the shape of an array", length, 0) for length in value["shape"]
        )
        count = math.prod(shape)
        if not count <= min(max_size, MOST_UNPACKED):
            raise refuse(
                "a packed array",
                f"{count} numbers",
                f"of at most {min(max_size, MOST_UNPACKED)} numbers",
                advice,
            )
        (form,) = _FORMS.keys() & value
        raw = base64.b64decode(value[form], validate=True)
        size = _FORMS[form]
        if form.startswith("zlib"):
            # At most one byte more than the shape requires, because a short text can be the
            # compressed form of gigabytes.
            raw = zlib.decompressobj().decompress(raw, count * size + 1)
        if len(raw) != count * size:
            raise InputError(
                f"A packed array must hold the {count} numbers of its shape; got more or fewer. "
                f"{advice}"
            )
        wide = np.zeros((count, 8), dtype=np.uint8)
        wide[:, 8 - size :] = np.frombuffer(raw, dtype=np.uint8).reshape(count, size)
        numbers = wide.view("<i8").reshape(shape).astype(np.int64, copy=False)
        return np.right_shift(numbers, 64 - 8 * size, out=numbers)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, zlib.error):
        raise refuse("array", type(value).__name__, allowed) from None
