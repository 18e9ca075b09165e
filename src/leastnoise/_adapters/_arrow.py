"""Arrow arrays to columns: the one way for values with a declared type, whatever source they come from. No value makes it fail.

The label (E2) refers to PROOFS-adapters.md.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from leastnoise._adapters._column import CHUNK, STRANGE, Chunks, Column, nothing_but
from leastnoise._check.arrays import Array, BoolArray


def strange_types(schema: Iterable[Any]) -> dict[str, str]:
    """The columns of an Arrow schema whose type no rule reads, with the type.

    >>> strange_types(pa.schema({"a": pa.int8(), "b": pa.list_(pa.int8())}))
    {'b': 'list<item: int8>'}
    """
    return {field.name: str(field.type) for field in schema if not _readable(field.type)}


def _readable(kind: Any) -> bool:
    """Whether `to_column` makes values of a type, seen on a null of it."""
    import pyarrow as pa

    extended = isinstance(kind, pa.BaseExtensionType)
    null = pa.nulls(1, kind.storage_type if extended else kind)
    data = to_column(kind.wrap_array(null) if extended else null).data
    return not isinstance(data, list) or data != [STRANGE]


def _is_text(kind: Any) -> bool:
    """Text and bytes of every layout: bytes that are UTF-8 are text."""
    import pyarrow.types as t

    tests = (t.is_string, t.is_large_string, t.is_string_view, t.is_binary, t.is_large_binary, t.is_binary_view, t.is_fixed_size_binary)
    return any(test(kind) for test in tests)


def to_column(array: Any) -> Column:
    """Take an Arrow array as it is: numbers and times from their own buffers, all else by its distinct values.

    Args:
        array: a pyarrow Array.

    Returns:
        The column. A value of a type without a rule is ``STRANGE``; the least int64 as a time stamp is a null, as numpy and pandas have it.

    >>> column = to_column(pa.array(["F", None, "F"]))
    >>> column.data, column.index.tolist()
    ([b'F'], [0, -1, 0])
    """
    import pyarrow as pa

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _of_extension(array)
    if pa.types.is_dictionary(kind):
        return _of_dictionary(array)
    if pa.types.is_run_end_encoded(kind):
        return _of_runs(array)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return Column(
            _numbers(array.cast(pa.uint8())).view(np.bool_) if pa.types.is_boolean(kind) else _numbers(array), _null_or_none(array)
        )
    if pa.types.is_float16(kind):
        return Column(_numbers(array.view(pa.int16())).view(np.float16), _null_or_none(array))
    if pa.types.is_date32(kind):
        return Column(_numbers(array.view(pa.int32())).astype("M8[D]"), _null_or_none(array))
    if pa.types.is_date64(kind) or pa.types.is_timestamp(kind):
        unit = "ms" if pa.types.is_date64(kind) else kind.unit
        # with a time zone the number is that of UTC
        zoned = pa.types.is_timestamp(kind) and kind.tz is not None
        return Column(_numbers(array.view(pa.int64())).view(f"M8[{unit}]"), _null_or_none(array), zoned=zoned)
    if pa.types.is_decimal(kind):
        return _of_decimals(array)
    if _is_text(kind):
        return _distinct(array.cast(pa.large_binary()).dictionary_encode())
    return nothing_but(None if pa.types.is_null(kind) else STRANGE, _null(array))


def in_chunks(batches: Iterable[Any], wanted: Sequence[tuple[str | int, Callable[[Any], Column]]]) -> Chunks[Column]:
    """Arrow batches as chunks of columns.

    Args:
        batches: record batches of any length.
        wanted: for each column, in the order wanted, its name or place in a batch, and what makes a column of its array.

    >>> [(rows, a.data.tolist()) for rows, (a,) in in_chunks(pa.table({"a": [1, 2]}).to_batches(), [("a", to_column)])]
    [(2, [1, 2])]
    """
    for batch in batches:
        for start in range(0, batch.num_rows, CHUNK):
            part = batch.slice(start, CHUNK)
            yield part.num_rows, [read(part.column(name)) for name, read in wanted]


def strange(missing: Any) -> Column:
    """The column of a type that no rule reads, of whose rows is known which are null alone.

    >>> strange(pa.array([True, False])).index.tolist()
    [-1, 0]
    """
    return nothing_but(STRANGE, _numbers(missing.cast("uint8")).view(np.bool_))


def of_days(array: Any) -> Column:
    """The column of dates that are sent as days since 1970.

    >>> of_days(pa.array([1])).data.tolist()
    [datetime.date(1970, 1, 2)]
    """
    import pyarrow as pa

    return to_column(array.cast(pa.int32()).view(pa.date32()))


def of_microseconds(array: Any, zone: str | None = None) -> Column:
    """The column of times that are sent as microseconds since 1970.

    >>> of_microseconds(pa.array([1_000_000]), "UTC").zoned
    True
    """
    import pyarrow as pa

    return to_column(array.cast(pa.int64()).view(pa.timestamp("us", zone)))


def one_array(array: Any) -> Any:
    """The array of a chunked one."""
    import pyarrow as pa

    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) and array.num_chunks else array


def _null(array: Any) -> BoolArray:
    import pyarrow as pa

    return _numbers(array.is_null().cast(pa.uint8())).view(np.bool_)


def _null_or_none(array: Any) -> BoolArray | None:
    return _null(array) if array.null_count else None


def _numbers(array: Any, filler: int = 0) -> Array:
    # What comes from the source itself cannot be written to. Arrow's own `to_numpy` would import pandas, which takes most of a second.
    numbers: Array = np.from_dlpack(array.fill_null(filler) if array.null_count else array)
    return numbers


def _distinct(encoded: Any) -> Column:
    return Column(encoded.dictionary.to_pylist(), None, _numbers(encoded.indices, -1).astype(np.int64))


def _of_decimals(array: Any) -> Column:
    """Exact, from the whole numbers that decimals are stored as; little-endian, as Arrow has it on all machines supported."""
    import pyarrow as pa

    integers = _distinct(array.view(pa.binary(array.type.bit_width // 8)).dictionary_encode())
    exponent = -array.type.scale
    numbers = (int.from_bytes(raw, "little", signed=True) for raw in _raw(integers))
    # not by arithmetic, which would round to the digits of the context
    return Column([Decimal((int(number < 0), tuple(map(int, str(abs(number)))), exponent)) for number in numbers], None, integers.index)


def _raw(column: Column) -> list[bytes]:
    return column.data  # type: ignore[return-value]  # of a binary array


def _of_dictionary(array: Any) -> Column:
    import pyarrow as pa

    codes, values = _numbers(array.indices.cast("int64"), -1), array.dictionary
    if pa.types.is_run_end_encoded(values.type):  # cannot be taken from
        return _repeated(to_column(values), codes)
    # only values that occur in the chunk: there may be many more
    used, index = np.unique(codes, return_inverse=True)
    missing = int(len(used) > 0 and used[0] < 0)
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())  # nor can views
    return _repeated(to_column(values.take(used[missing:])), index.reshape(-1) - missing)


def _of_runs(array: Any) -> Column:
    # Arrow's own decoding knows fewer types
    first, count = array.find_physical_offset(), array.find_physical_length()
    ends = _numbers(array.run_ends.slice(first, count)).astype(np.int64) - array.offset
    lengths = np.diff(ends.clip(max=len(array)), prepend=0)
    return _repeated(to_column(array.values.slice(first, count)), np.repeat(np.arange(count), lengths))


def _repeated(column: Column, positions: Array) -> Column:
    """The values at these places, -1 for a null."""
    indices = np.arange(len(column.data)) if column.index is None else column.index
    if column.null is not None:
        indices = np.where(column.null, -1, indices)
    return Column(column.data, None, np.append(indices, -1)[positions], column.zoned)


def _of_extension(array: Any) -> Column:
    name = array.type.extension_name
    inner = to_column(array.storage)
    if name == "arrow.json":
        return inner
    if name == "arrow.bool8":
        return Column(np.asarray(inner.data) != 0, inner.null)
    if name == "arrow.uuid":
        return Column([str(uuid.UUID(bytes=raw)) for raw in _raw(inner)], None, inner.index)
    return nothing_but(STRANGE, _null(array.storage))
