"""Sources and columns.

A source states public facts about a table, and gives access to the table's private rows, chunk by
chunk, or to counts of the rows.

Arrow arrays are converted to columns by the same function for every source. No value makes this
conversion fail. The label (E2) refers to PROOFS-reading.md.
"""

import os
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check.arrays import Array, BoolArray, IntArray
from leastnoise._trusted.domain import READ_AS_IT_IS, Holds, Measure, PerCellBound, Reading, Rule
from leastnoise._trusted.reading._value_rules import stamp_text
from leastnoise._trusted.reading._words import (
    MOST_SMALL,
    WORD,
    Words,
    bytes_of,
    distinct_words,
    single_byte_words,
    words_of,
)

# Rows in a chunk. The number is large enough that fixed costs do not matter. It is small enough
# that a chunk of long texts takes only some tens of MiB.
CHUNK = 2**16


# It represents a value that no rule reads, such as a list. The policy ``outside`` applies to it.
UNSUPPORTED = object()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column:
    """The values of one column in a chunk of rows.

    A column stores one value for each row, or it stores distinct values and, for each row, the
    position of its value.

    Attributes:
        data: a numpy array of Booleans, integers, floats or datetime64, or a list of Python values,
            in which nulls can be recognised. Text is Python text or bytes; bytes that are not UTF-8
            count as a value without a string form.
        null: a mask of the missing values; None if no value can be missing.
        index: None if the values are in the order of the rows. Otherwise, for each row, the
            position of its value, or -1 for a null.
        zoned: whether the time stamps of an array are in UTC because their type has a time zone.
            Otherwise they have no zone.
    """

    data: Array | Sequence[object]
    null: BoolArray | None = None
    index: IntArray | None = None
    zoned: bool = False

    def rows(self, value_codes: IntArray, null_code: int) -> IntArray:
        """Return the code of every row, given the code of each stored value.

        A row without a value gets the code ``null_code``. ``value_codes`` is overwritten.

        >>> Column(["a", "b"], index=np.array([1, 1, -1, 0])).rows(np.array([5, 7]), 0).tolist()
        [7, 7, 0, 5]
        """
        if self.index is not None:
            value_codes = np.append(value_codes, null_code)[self.index]
        if self.null is not None:
            value_codes[self.null] = null_code
        return value_codes


class DistinctTexts(Sequence[object]):
    """Distinct byte strings of a column, converted to Python only when needed.

    Args:
        array: an Arrow array of type large_binary; it has no nulls.
    """

    __slots__ = ("_values", "array")

    def __init__(self, array: Any) -> None:
        self.array = array
        self._values: list[bytes] | None = None

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, place: Any) -> Any:
        return self._listed()[place]

    def __iter__(self) -> Iterator[object]:
        return iter(self._listed())

    def bytes_and_starts(self) -> tuple[npt.NDArray[np.uint8], IntArray]:
        """Return the concatenated byte strings, and the start offset of each one.

        The last offset is the end of the last byte string.
        """
        _, offsets, content = self.array.buffers()
        starts = np.frombuffer(offsets, dtype=np.int64)
        starts = starts[self.array.offset : self.array.offset + len(self.array) + 1]
        if content is None:
            return np.zeros(0, dtype=np.uint8), np.zeros_like(starts)
        raw = np.frombuffer(content, dtype=np.uint8)
        return raw[starts[0] : starts[-1]], starts - starts[0]

    def _listed(self) -> list[bytes]:
        """Return the byte strings as a list of Python `bytes`."""
        if self._values is None:
            self._values = self.array.to_pylist()
        return self._values


class TextColumn(Column):
    """A column of byte strings; equal ones are found only if that is requested.

    Args:
        texts: an Arrow array of type large_binary with the byte string of each row; it has no
            nulls.

    Attributes:
        data: the distinct byte strings.
        index: for each row the position of its byte string in ``data``.

    >>> column = TextColumn(pa.array([b"F", b"M", b"F"], pa.large_binary()))
    >>> list(column.data), column.index.tolist()
    ([b'F', b'M'], [0, 1, 0])
    """

    __slots__ = ("_distinct", "texts")

    _distinct: Column | None
    texts: Any
    null = None
    zoned = False

    def __init__(self, texts: Any) -> None:
        object.__setattr__(self, "texts", texts)
        object.__setattr__(self, "_distinct", None)

    @property
    def data(self) -> Array | Sequence[object]:
        """The distinct byte strings."""
        return self._distinct_column().data

    @property
    def index(self) -> IntArray | None:
        """The position of each row's byte string in ``data``."""
        return self._distinct_column().index

    def _distinct_column(self) -> Column:
        """Return the same column with each distinct byte string stored once."""
        column = self._distinct
        if column is None:
            column = distinct_texts(self.texts)
            object.__setattr__(self, "_distinct", column)
        return column


def distinct_texts(texts: Any) -> Column:
    r"""Return a column that stores each distinct byte string once.

    If all byte strings have at most two bytes, their integers (`words_of`) are compared (E2).

    Args:
        texts: an Arrow array of type large_binary; it has no nulls.

    >>> column = distinct_texts(pa.array([b"M", b"", b"\0", b"M"], pa.large_binary()))
    >>> [column.data[place] for place in column.index]
    [b'M', b'', b'\x00', b'M']
    """
    content, starts = DistinctTexts(texts).bytes_and_starts()
    lengths = np.diff(starts)
    if lengths.max(initial=0) > MOST_SMALL:
        encoded = texts.dictionary_encode()
        return Column(
            DistinctTexts(encoded.dictionary), None, _numbers(encoded.indices).astype(np.int64)
        )
    if len(content) == len(texts) and lengths.min(initial=1) == 1:  # one byte each
        words = single_byte_words(content)
    else:
        text = np.append(content, np.zeros(WORD, dtype=np.uint8))
        words = words_of(text, starts[:-1], lengths)
    different, index = distinct_words(words)
    return Column(word_texts(different), None, index)


def word_texts(words: Words) -> DistinctTexts:
    """Convert integers that `words_of` returned back to byte strings.

    >>> list(word_texts(np.array([326, 333, 1], dtype=np.uint64)))
    [b'F', b'M', b'']
    """
    import pyarrow as pa

    content, starts = bytes_of(words)
    parts = [None, pa.py_buffer(starts), pa.py_buffer(content)]
    return DistinctTexts(pa.Array.from_buffers(pa.large_binary(), len(words), parts))


@dataclass(frozen=True, slots=True)
class SplitEncoder:
    """An encoder in two steps; only the second one may keep state between chunks.

    Attributes:
        prepare: the first step, a function of only the column; it may run in any thread.
        finish: the second step: it makes the encoded column from the result of ``prepare``. The
            second step runs in the caller's thread, chunk after chunk, in the order of the rows.
    """

    prepare: Callable[[Column], Any]
    finish: Callable[[Any], IntArray]

    def __call__(self, column: Column) -> IntArray:
        """Return the encoded column."""
        return self.finish(self.prepare(column))


Encoder = Callable[[Column], IntArray]
Encoders = Sequence[tuple[str, Encoder]]
Item = TypeVar("Item")
Result = TypeVar("Result")


def stateless(encode: Encoder) -> SplitEncoder:
    """Wrap an encoder that keeps no state, so that it may run in any thread.

    >>> stateless(by_value(lambda values: np.arange(len(values))))(Column(["a", "b"])).tolist()
    [0, 1]
    """
    return SplitEncoder(encode, _unchanged)


def _unchanged(encoded: IntArray) -> IntArray:
    """Return the codes unchanged, as the second step of a stateless encoder."""
    return encoded


class Chunk(NamedTuple, Generic[Result]):
    """Consecutive rows of a source, with one entry of ``columns`` per column.

    Attributes:
        rows: the number of rows.
        columns: the encoded values of each column.
        malformed: the number of lines of a CSV file that are not records; ``rows`` does not include
            them.
    """

    rows: int
    columns: list[Result]
    malformed: int = 0


Chunks = Iterator[Chunk[Result]]


def by_value(compute: Callable[[Sequence[object]], IntArray]) -> Encoder:
    """Return an encoder that calls a function once for each distinct value.

    >>> by_value(lambda values: np.array([len(str(value)) for value in values]))(
    ...     Column(["a", "bc", "a"])
    ... ).tolist()
    [1, 2, 1]
    """
    missing = int(compute([None])[0])

    def encode(column: Column) -> IntArray:
        """Encode the distinct values, and copy the codes to all rows."""
        values, where = distinct(column.data)
        encoded = compute(values)
        return column.rows(encoded if where is None else encoded[where], missing)

    return encode


def distinct(
    data: Array | Sequence[object],
) -> tuple[Sequence[object], npt.NDArray[np.intp] | None]:
    """Return the distinct values and each entry's index, or all values and None.

    The indices are None if the values are listed in the order of the rows.

    Two values count as the same only if they are equal texts, or are equal and have the same NumPy
    type. Equal values of different types can have different texts.

    >>> values, where = distinct(["b", "a", "b", None])
    >>> values, where.tolist()
    (['b', 'a', None], [0, 1, 0, 2])
    """
    if isinstance(data, np.ndarray):
        different, where = np.unique(data, return_inverse=True)
        if data.dtype.kind != "M":
            return list(different), where.reshape(-1)
        return [
            None if np.isnat(value) else stamp_text(str(value)) for value in different
        ], where.reshape(-1)
    if not set(map(type, data)) <= {str, type(None)}:
        return data, None
    positions = {value: position for position, value in enumerate(dict.fromkeys(data))}
    return list(positions), np.fromiter(
        map(positions.__getitem__, data), dtype=np.intp, count=len(data)
    )


def constant_column(value: object, null: BoolArray) -> Column:
    """Return a column with one value in every row that is not null."""
    return Column([value], None, -null.astype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRequest:
    """Public parameters of the counts that a database engine computes.

    Attributes:
        rules: the rules of the attributes that are read, in the order of the domain.
        sums: the measures that are read.
        tables: for each measure that is summed, and for rows (None), the attributes of each
            marginal.
        unit_column: the column whose values are the privacy units; None if every row is a unit.
        max_rows: the largest number of rows of a unit that are counted.
        max_per_cell: the largest number of them in one cell of attributes that are read; None
            without such a bound.
        usage: whether the rows that are used, not used and cut are counted too.
        unit_reading: how the values of the unit's column are read.
        filled: for each published table, the attributes whose hidden cells the table excludes. If
            no attribute drops a row, the row is used if it is in none of the hidden cells of at
            least one of these tables. If there are no tables, every row that no attribute drops is
            used.
        hidden: for each attribute that has a hidden cell, the number of this cell.
    """

    rules: Mapping[str, Rule]
    sums: Mapping[str, Measure]
    tables: Mapping[str | None, Sequence[tuple[str, ...]]]
    unit_column: str | None
    max_rows: int
    max_per_cell: PerCellBound | None = None
    usage: bool = False
    unit_reading: Reading = READ_AS_IT_IS
    filled: Sequence[Mapping[str, int]] = ()
    hidden: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaField:
    """A column as the schema of its source describes it; no value was read.

    Attributes:
        name: the column.
        type: the Arrow type of its values; None if the source has no types, such as a CSV file.
        type_name: the name of its type in messages.
        readable: whether any rule reads values of this type.
        required: whether the schema declares that no row has a null in this column.
        zone: the time zone of a column of instants; ``""`` if the schema does not name it. None for
            every other column.
    """

    name: str
    type: Any = None
    type_name: str = ""
    readable: bool = True
    required: bool = False
    zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """The name of a file of a source; the content of the file was not read.

    Attributes:
        name: its path relative to the path of the source, with ``/`` between folders.
        values: the columns that the names of its folders, such as ``month=2024-03``, add to all its
            rows.
    """

    name: str
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Source:
    """An opened source: public facts, and access to its private rows.

    Attributes:
        description: its name in messages.
        fields: its columns, in order. A name that occurs twice is listed twice.
        total: the number of rows if it is known in advance; only the progress line uses this
            number.
        encoded: a function that takes columns with their encoders. For each chunk, the function
            yields the number of rows and the encoded columns.
        engine: an `leastnoise._trusted.reading._engine.Engine` that can count the rows; None if the
            rows can only be read.
        delimiter: the separator of fields in CSV files; None for other sources.
        holds: the kinds of values that columns of declared types have, if the source states types.
        constants: the columns that the names of folders add to all rows.
        restrict_files: a function that takes a choice of files, and returns the source of the rows
            in these files; None if the rows are not in several files.
    """

    description: str
    fields: tuple[SchemaField, ...]
    total: int | None
    encoded: Callable[[Encoders], Chunks[IntArray]]
    engine: Any = None
    delimiter: str | None = None
    holds: Mapping[str, Holds] = field(default_factory=dict)
    constants: Mapping[str, str | None] = field(default_factory=dict)
    restrict_files: "Callable[[Callable[[SourceFile], bool]], Source] | None" = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.fields)

    @property
    def unreadable_columns(self) -> dict[str, str]:
        """The columns that no rule can read because of their types, with these types."""
        return {column.name: column.type_name for column in self.fields if not column.readable}


def by_columns(
    chunks: Callable[[list[str]], Chunks[Column]],
) -> Callable[[Encoders], Chunks[IntArray]]:
    """Return a reader that encodes each chunk column by column.

    ``chunks`` takes distinct columns, and yields for each chunk its number of rows and these
    columns in the same order.

    >>> source = by_columns(lambda names: iter([Chunk(2, [Column([5, None])])]))
    >>> encode = by_value(lambda values: np.array(list(map(bool, values))))
    >>> [(rows, codes.tolist()) for rows, (codes,), _ in source([("a", encode)])]
    [(2, [True, False])]
    """
    return by_parts(lambda names: map(_part_of, chunks(names)))


_MOST_WORKERS = 4
"""The most reading threads, and the most parts that wait; a part of long texts takes 30 MiB."""
Part = Callable[[], Chunk[Column]]
"""A function that returns some rows of a source as columns, in any thread."""


def _part_of(chunk: Chunk[Column]) -> Part:
    """Return a function without arguments that returns the chunk."""
    return lambda: chunk


def by_parts(
    parts: Callable[[list[str]], Iterator[Part]],
) -> Callable[[Encoders], Chunks[IntArray]]:
    """Return a reader that converts and encodes the parts of a source in threads.

    ``parts`` takes distinct columns, and yields the parts of the source in the order of its rows.
    Each part is a function that returns these columns in the same order, and keeps no state between
    calls. The second step of a `SplitEncoder` runs in the caller's thread, in the order of the
    rows. Every other encoder runs there too.
    """

    def encoded(encoders: Encoders) -> Chunks[IntArray]:
        """Yield the encoded chunks in the order of the rows."""
        names = list(dict.fromkeys(name for name, _ in encoders))

        def prepared(part: Part) -> Chunk[Any]:
            """Convert a part to columns, and run the first step of every encoder."""
            rows, columns, malformed = part()
            column = dict(zip(names, columns, strict=True))
            prepared_columns = []
            for name, encode in encoders:
                if isinstance(encode, SplitEncoder):
                    prepared_columns.append(encode.prepare(column[name]))
                else:
                    prepared_columns.append(column[name])
            return Chunk(rows, prepared_columns, malformed)

        for rows, columns, malformed in parallel_map(prepared, parts(names)):
            codes = []
            for column, (_, encode) in zip(columns, encoders, strict=True):
                if isinstance(encode, SplitEncoder):
                    codes.append(encode.finish(column))
                else:
                    codes.append(encode(column))
            yield Chunk(rows, codes, malformed)

    return encoded


def _count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Call a function on each item in threads, and yield the results in order.

    The function must keep no state between calls.

    A few items are computed in advance, and the caller's thread receives their results one by one.

    >>> list(parallel_map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    iterator = iter(items)
    first = list(islice(iterator, 2))
    if len(first) < 2:  # no thread for one item
        yield from map(function, first)
        return
    workers = min(_count_cores(), _MOST_WORKERS)
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="leastnoise-read") as pool:
        try:
            waiting.append(pool.submit(function, first[0]))
        except RuntimeError:  # the system lets no thread start
            yield from map(function, chain(first, iterator))
            return
        for item in chain(first[1:], iterator):
            waiting.append(pool.submit(function, item))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """The names, reader and layout of one kind of file.

    Attributes:
        name: its name in messages.
        endings: the endings of the names of its files, in lower case.
        open: a function that opens a file and reads its schema but no row. If rows are lines, the
            function also receives a `CSV` layout or None.
        rows_are_lines: whether a row is a line of text. If it is, a layout may be stated, columns
            have no types, and lines can be counted.
    """

    name: str
    endings: tuple[str, ...]
    open: Callable[..., Source]
    rows_are_lines: bool = False


_NUMBERS = {
    "float",
    "double",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}
# Bytes that are UTF-8 are text.
_TEXTS = {
    "string",
    "large_string",
    "string_view",
    "binary",
    "large_binary",
    "binary_view",
    "fixed_size_binary",
}


def arrow_fields(schema: Iterable[Any]) -> tuple[SchemaField, ...]:
    """Return one `SchemaField` for each column of an Arrow schema.

    >>> [
    ...     (field.name, field.readable)
    ...     for field in arrow_fields(pa.schema({"a": pa.int8(), "b": pa.list_(pa.int8())}))
    ... ]
    [('a', True), ('b', False)]
    """
    return tuple(
        SchemaField(
            name=column.name,
            type=(type_of_values := value_type(column.type)),
            type_name=str(column.type),
            readable=_has_rule(column.type),
            required=not column.nullable,
            zone=getattr(type_of_values, "tz", None),
        )
        for column in schema
    )


def _has_rule(arrow_type: Any) -> bool:
    """Return whether values of an Arrow type can be encoded as cells."""
    import pyarrow as pa

    if isinstance(arrow_type, pa.BaseExtensionType):
        null = arrow_type.wrap_array(pa.nulls(1, arrow_type.storage_type))
    else:
        null = pa.nulls(1, arrow_type)
    data = to_column(null).data
    return not (isinstance(data, list) and data == [UNSUPPORTED])


def value_type(arrow_type: Any) -> Any:
    """Return the type of an Arrow array's decoded values.

    The array may be dictionary-encoded, run-end encoded, or of an extension type.

    >>> value_type(pa.dictionary(pa.int8(), pa.timestamp("us", "UTC"))).tz
    'UTC'
    """
    import pyarrow as pa

    if isinstance(arrow_type, pa.BaseExtensionType):
        read_as = {"arrow.bool8": pa.bool_(), "arrow.uuid": pa.string()}
        storage = value_type(arrow_type.storage_type)
        return read_as.get(arrow_type.extension_name, storage)
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return value_type(arrow_type.value_type)
    return arrow_type


def to_column(array: Any) -> Column:
    """Convert an Arrow array to a `Column`.

    Numbers and times keep their own buffers; other types are read by their distinct values.

    A value of a type without a rule is ``UNSUPPORTED``. A time stamp that is the smallest int64 is
    a null, as in numpy and pandas.

    >>> column = to_column(pa.array(["F", None, "F"]))
    >>> list(column.data), column.index.tolist()
    ([b'F'], [0, -1, 0])
    """
    import pyarrow as pa

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _extension_column(array)
    if pa.types.is_dictionary(kind):
        return _dictionary_column(array)
    if pa.types.is_run_end_encoded(kind):
        # Look up the run of each row, because Arrow's decoding supports fewer types. A slice
        # keeps all runs, and may begin inside its first run.
        first = array.find_physical_offset()
        count = array.find_physical_length()
        ends = _numbers(array.run_ends.slice(first, count)).astype(np.int64) - array.offset
        lengths = np.diff(ends.clip(max=len(array)), prepend=0)
        return _take_values(
            to_column(array.values.slice(first, count)), np.repeat(np.arange(count), lengths)
        )
    name = str(kind).partition("[")[0].partition("(")[0]
    if name.startswith("decimal"):
        # Convert exactly, from the stored little-endian integers. Decimal arithmetic would round
        # to the digits of its context, and at some scales Arrow's texts of decimals are not
        # numbers.
        stored = to_column(array.view(pa.binary(kind.bit_width // 8)))
        # The values of a binary array are bytes.
        wholes = [int.from_bytes(raw, "little", signed=True) for raw in stored.data]  # type: ignore[arg-type]
        exact = [
            Decimal((int(whole < 0), tuple(map(int, str(abs(whole)))), -kind.scale))
            for whole in wholes
        ]
        return Column(exact, None, stored.index)
    if name in _TEXTS:
        encoded = array.cast(pa.large_binary()).dictionary_encode()
        return Column(
            DistinctTexts(encoded.dictionary), None, _numbers(encoded.indices, -1).astype(np.int64)
        )
    if name in {"date32", "date64", "timestamp"}:
        unit = {"date32": "D", "date64": "ms"}.get(name) or kind.unit
        # With a time zone the number is in UTC.
        return since_1970(
            array.view(pa.int32() if name == "date32" else pa.int64()),
            unit,
            zoned=name == "timestamp" and kind.tz is not None,
        )
    if name in _NUMBERS:
        numbers = _numbers(array)
    elif name == "bool":
        numbers = _numbers(array.cast(pa.uint8())).view(np.bool_)
    elif name == "halffloat":
        numbers = _numbers(array.view(pa.int16())).view(np.float16)
    else:
        return constant_column(None if name == "null" else UNSUPPORTED, _null_mask(array))
    return Column(numbers, _null_mask(array) if array.null_count else None)


def since_1970(array: Any, unit: str, *, zoned: bool = False) -> Column:
    """Convert an Arrow array of integers to a column of dates or times.

    Each integer is a number of days, or of parts of a second, since 1970.

    >>> since_1970(pa.array([1]), "D").data.tolist()
    [datetime.date(1970, 1, 2)]
    """
    return Column(
        _numbers(array.cast("int64")).view(f"M8[{unit}]"),
        _null_mask(array) if array.null_count else None,
        zoned=zoned,
    )


def chunk_batches(
    batches: Iterable[Any], requested_columns: Sequence[tuple[str | int, Callable[[Any], Column]]]
) -> Chunks[Column]:
    """Convert each Arrow batch to a chunk, and yield the chunks.

    ``requested_columns`` has a pair for each column: its name or its position in a batch, and the
    function that converts its array to a `Column`.

    >>> batches = pa.table({"a": [1, 2]}).to_batches()
    >>> [(rows, a.data.tolist()) for rows, (a,), _ in chunk_batches(batches, [("a", to_column)])]
    [(2, [1, 2])]
    """
    for part in batch_parts(batches, requested_columns):
        yield part()


def batch_parts(
    batches: Iterable[Any], requested_columns: Sequence[tuple[str | int, Callable[[Any], Column]]]
) -> Iterator[Part]:
    """Yield, for each Arrow batch, a function that converts it to a chunk.

    The arguments are as for `chunk_batches`.
    """
    for batch in batches:
        for start in range(0, batch.num_rows, CHUNK):
            yield partial(_convert_batch, batch.slice(start, CHUNK), requested_columns)


def _convert_batch(
    batch: Any, requested_columns: Sequence[tuple[str | int, Callable[[Any], Column]]]
) -> Chunk[Column]:
    """Convert the requested columns of an Arrow batch to a chunk."""
    return Chunk(batch.num_rows, [read(batch.column(name)) for name, read in requested_columns])


def unsupported_column(is_null: Any) -> Column:
    """Return the column for values whose type no rule can encode.

    The values of this column are `UNSUPPORTED`, except for its nulls.

    >>> unsupported_column(pa.array([True, False])).index.tolist()
    [-1, 0]
    """
    return constant_column(UNSUPPORTED, _numbers(is_null.cast("uint8")).view(np.bool_))


def _null_mask(array: Any) -> BoolArray:
    """Return a Boolean mask of the null entries of an Arrow array."""
    return _numbers(array.is_null().cast("uint8")).view(np.bool_)


def _numbers(array: Any, filler: int = 0) -> Array:
    """Convert an Arrow array of numbers to NumPy; a filler replaces nulls."""
    # Arrays of the source are read-only. Arrow's own `to_numpy` would import pandas, which takes
    # most of a second.
    if array.null_count:
        array = array.fill_null(filler)
    numbers: Array = np.from_dlpack(array)
    return numbers


def _dictionary_column(array: Any) -> Column:
    """Convert a dictionary-encoded Arrow array to a `Column`."""
    import pyarrow as pa

    codes = _numbers(array.indices.cast("int64"), -1)
    values = array.dictionary
    stored = getattr(values.type, "storage_type", values.type)
    if pa.types.is_run_end_encoded(stored) or str(stored).endswith("_view"):  # cannot be taken from
        return _take_values(to_column(values), codes)
    # Use only values that occur in the chunk, because the dictionary may have many more.
    used, index = np.unique(codes, return_inverse=True)
    missing = int(len(used) > 0 and used[0] < 0)
    return _take_values(to_column(values.take(used[missing:])), index.reshape(-1) - missing)


def _take_values(column: Column, positions: Array) -> Column:
    """Return a column whose rows have the values at these positions.

    The position -1 is a null.
    """
    if column.index is None:
        indices = np.arange(len(column.data))
    else:
        indices = column.index
    if column.null is not None:
        indices = np.where(column.null, -1, indices)
    return Column(column.data, None, np.append(indices, -1)[positions], column.zoned)


def _extension_column(array: Any) -> Column:
    """Convert an Arrow array of an extension type to a `Column`."""
    name = array.type.extension_name
    inner = to_column(array.storage)
    if name == "arrow.json":
        return inner
    if name == "arrow.bool8":
        return Column(np.asarray(inner.data) != 0, inner.null)
    if name == "arrow.uuid":
        # The values of a binary array are bytes.
        return Column([str(uuid.UUID(bytes=raw)) for raw in inner.data], None, inner.index)  # type: ignore[arg-type]
    return constant_column(UNSUPPORTED, _null_mask(array.storage))
