"""The keys of units: which rows are of one unit (E6 of PROOFS-reading.md).

`key_reader` returns the key of one value; `UnitNumbers` numbers the keys of whole columns.
Keys of columns are byte strings, which pyarrow compares by all their bytes.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check import InternalError
from leastnoise._trusted.check.arrays import Array, BoolArray, IntArray
from leastnoise._trusted.domain import BLANKS, Reading
from leastnoise._trusted.reading._column import (
    Column,
    DistinctTexts,
    Encoder,
    SplitEncoder,
    TextColumn,
    by_value,
    distinct,
    word_texts,
)
from leastnoise._trusted.reading._values import is_null, text, without_zeros
from leastnoise._trusted.reading._words import WORD, Words, arrow_words, words_of

Numbers = npt.NDArray[np.int32]

# Stands before the bytes of a key that is no text: no text in UTF-8 has this byte.
_NO_TEXT = b"\xff"
_ASCII = 128
_POINT = ord(".")
_ZERO = ord("0")
_ASCII_BLANKS = "".join(filter(str.isascii, BLANKS))
# A double below this in size that is a whole number is a 64-bit integer.
_MOST_WHOLE = 2.0**63
# Keys are numbered when the waiting ones take at least this many bytes, and twice the bytes of all
# numbered ones. So each key is compared about one and a half times, however many there are.
_WAITING_BYTES = 2**26


def key_reader(reading: Reading) -> Callable[[object], Hashable | None]:
    """Return the function from a value to the key of a unit or join (E6).

    The key of a value is its string form as the reading compares it, where text made of a whole
    number, a point and zeros is that whole number; or its bytes, if these are not text. A null, a
    spelling of one, and a value without a string form have no key.

    >>> key = key_reader(Reading(trim=True, ignore_case=True, nulls=["NA"]))
    >>> [key(value) for value in (17.0, b"17", "17.00", " P17 ", "p17", "", "na", [17])]
    ['17', '17', '17', 'p17', 'p17', None, None, None]
    """
    nulls = _null_keys(reading)

    def key(value: object) -> Hashable | None:
        if is_null(value):
            return None
        form = text(value)
        if form is None:
            return value if isinstance(value, bytes) else None
        form = _canonical_text(form, reading)
        return None if form in nulls else form

    return key


def _canonical_text(form: str, reading: Reading) -> str:
    """Return a text as keys compare it, such as 17 for 17.00."""
    compared = reading.form(form)
    return without_zeros(compared) or compared


def _null_keys(reading: Reading) -> set[str]:
    """Return the texts that are no key, because they mean a null."""
    return {"", *(_canonical_text(null, reading) for null in reading.nulls)}


def key_number_encoder(
    numbers: dict[Hashable, int],
    key: Callable[[object], Hashable | None],
    *,
    allow_new: bool = True,
) -> Encoder:
    """Return an encoder from a column to the numbers of its keys.

    The number is -1 for a value that is no key.

    A new key gets the next number, or -1 if ``allow_new`` is False.

    >>> numbers, key = {"a": 0}, key_reader(Reading())
    >>> key_number_encoder(numbers, key)(Column(["b", "a", None, b"b"])).tolist()
    [1, 0, -1, 1]
    >>> key_number_encoder(numbers, key, allow_new=False)(Column(["b", "c"])).tolist()
    [1, -1]
    """

    def number(value: object) -> int:
        form = key(value)
        if form is None:
            return -1
        if allow_new:
            return numbers.setdefault(form, len(numbers))
        return numbers.get(form, -1)

    return by_value(
        lambda values: np.fromiter(map(number, values), dtype=np.int64, count=len(values))
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KeyColumn:
    """The keys of the units of some rows.

    Attributes:
        keys: an Arrow array of the byte strings of `key_bytes`; one key may come several times.
        positions: for each row the position of its key; -1 for a row without one.
    """

    keys: Any
    positions: IntArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberedKeys:
    """The keys of the units of some rows, the short ones as numbers.

    Attributes:
        words: the numbers of the keys of at most 7 bytes (`words_of`).
        long_keys: an Arrow array of the other keys. In both one key may come several times.
        positions: for each row the position of its key, where the long keys come behind the short
            ones; -1 for a row without one.
    """

    words: Words
    long_keys: Any
    positions: IntArray

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(self.words) + len(self.long_keys)

    @property
    def nbytes(self) -> int:
        """The bytes that the keys take."""
        return int(self.words.nbytes + self.long_keys.nbytes)


class UnitNumbers:
    """Assigns a number to each distinct unit key.

    Each key of a chunk first gets an entry, a number that only its rows have. `number_keys` compares
    the keys of all entries and numbers the different ones; `numbers_of` returns these numbers. Equal
    keys are found by the hash table of pyarrow, which compares all bytes of keys whose hashes agree;
    short keys are compared as the numbers that are their bytes. Each key is stored once.

    Args:
        reading: how the values of the unit's column are read.

    Attributes:
        entries: the encoder from a column to entries, -1 for a row without a unit. Its keys are
            found by a function of the column alone, in any thread.

    Guarantees: two entries have one number if and only if their values have one key (`key_reader`).

    >>> units = UnitNumbers(Reading())
    >>> entries = units.entries(Column(["a", 17, None, b"a", "17.0"]))
    >>> units.number_keys()
    >>> units.numbers_of(entries).tolist(), units.keys()
    ([0, 1, -1, 0, 1], ['a', '17'])
    """

    def __init__(self, reading: Reading) -> None:
        keys_of = key_columns(reading)
        self.entries = SplitEncoder(lambda column: number_short_keys(keys_of(column)), self._enter)
        self._words: Words = np.zeros(0, dtype=np.uint64)
        self._long_keys = _byte_strings([])
        # the numbers of the units that have these keys
        self._word_numbers: Numbers = np.zeros(0, dtype=np.int32)
        self._long_numbers: Numbers = np.zeros(0, dtype=np.int32)
        self._waiting: list[NumberedKeys] = []
        self._waiting_bytes = 0
        self._entered = 0
        # numbers of the entries so far, and how many entries came before each of these arrays
        self._numbers: list[Numbers] = []
        self._starts: list[int] = []

    def __len__(self) -> int:
        """Return how many units have a number."""
        return len(self._words) + len(self._long_keys)

    @property
    def is_full(self) -> bool:
        """Whether the waiting keys take enough bytes to be numbered."""
        stored_bytes = self._words.nbytes + self._long_keys.nbytes
        return self._waiting_bytes >= max(_WAITING_BYTES, 2 * stored_bytes)

    def _enter(self, keys: NumberedKeys) -> IntArray:
        """Return the entry of each row, and keep the keys."""
        entries = np.where(keys.positions < 0, -1, keys.positions + self._entered)
        self._waiting.append(keys)
        self._waiting_bytes += keys.nbytes
        self._entered += len(keys)
        return entries

    def number_keys(self) -> None:
        """Number all keys entered so far; earlier keys keep their numbers."""
        import pyarrow as pa

        count = sum(map(len, self._waiting))
        if not count:
            return
        words = [arrow_words(keys.words) for keys in self._waiting]
        places, stored_words = _places_of(arrow_words(self._words), words)
        self._words = np.from_dlpack(stored_words)
        self._word_numbers = self._number_new(self._word_numbers, len(self._words))
        long_keys = [keys.long_keys for keys in self._waiting]
        long_places, self._long_keys = _places_of(self._long_keys, long_keys)
        self._long_numbers = self._number_new(self._long_numbers, len(self._long_keys))
        self._starts.append(self._entered - count)
        self._numbers.append(self._numbers_in_order(places, long_places))
        self._waiting = []
        self._waiting_bytes = 0
        pa.default_memory_pool().release_unused()

    def _number_new(self, numbers: Numbers, count: int) -> Numbers:
        """Return the numbers of the units of keys, with those of new keys behind.

        Args:
            numbers: of the first of these keys.
            count: how many keys there are.
        """
        numbered = len(self._word_numbers) + len(self._long_numbers)
        new = np.arange(numbered, numbered + count - len(numbers), dtype=np.int32)
        return np.concatenate((numbers, new))

    def _numbers_in_order(self, places: Numbers, long_places: Numbers) -> Numbers:
        """Return the numbers of all waiting keys in the order of their entries.

        Args:
            places: of the short keys among all short keys.
            long_places: of the long keys among all long keys.
        """
        if not len(self._long_keys):
            return places  # the numbers of short keys are then 0, 1, ...
        numbers_of_words = self._word_numbers[places]
        numbers_of_long_keys = self._long_numbers[long_places]
        parts = []
        word_start = 0
        long_start = 0
        for keys in self._waiting:
            word_end = word_start + len(keys.words)
            long_end = long_start + len(keys.long_keys)
            parts.append(numbers_of_words[word_start:word_end])
            parts.append(numbers_of_long_keys[long_start:long_end])
            word_start = word_end
            long_start = long_end
        return np.concatenate(parts)

    def numbers_of(self, entries: IntArray) -> Numbers:
        """Return the number of the unit of each entry, -1 for -1.

        The keys of all entries must have been numbered.
        """
        if self._starts and len(entries) and entries.min() >= self._starts[-1]:
            return self._numbers[-1][entries - self._starts[-1]]
        numbers = np.full(len(entries), -1, dtype=np.int32)
        segments = np.searchsorted(self._starts, entries, side="right") - 1
        for segment in np.unique(segments[entries >= 0]).tolist():
            rows = segments == segment
            numbers[rows] = self._numbers[segment][entries[rows] - self._starts[segment]]
        return numbers

    def keys(self) -> list[Hashable]:
        """Return the key of every unit, in the order of their numbers."""
        keys: list[Hashable] = [None] * len(self)
        for numbers, stored in (
            (self._word_numbers, word_texts(self._words)),
            (self._long_numbers, self._long_keys.to_pylist()),
        ):
            for number, raw in zip(numbers.tolist(), stored, strict=True):
                keys[number] = _key_of_bytes(raw)
        return keys


def _places_of(stored: Any, waiting: Sequence[Any]) -> tuple[Numbers, Any]:
    """Return the place of each waiting key among all keys, and these.

    Args:
        stored: an Arrow array of different keys, which keep their places.
        waiting: Arrow arrays of keys.
    """
    import pyarrow as pa

    if not sum(map(len, waiting)):
        return np.zeros(0, dtype=np.int32), stored
    # The stored keys come first, each once and in order, so their places are theirs again.
    encoded = pa.chunked_array([stored, *waiting]).dictionary_encode()
    places = np.concatenate([_int32_array(chunk.indices) for chunk in encoded.chunks])
    if len(places) != len(stored) + sum(map(len, waiting)):
        raise InternalError("every key must have one number; please report this.")
    return places[len(stored) :], encoded.chunks[-1].dictionary


def number_short_keys(column: KeyColumn) -> NumberedKeys:
    """Return keys with the short ones as numbers.

    >>> keys = key_columns(Reading())(Column(["F", "a long key", None]))
    >>> numbered = number_short_keys(keys)
    >>> numbered.words.tolist(), numbered.long_keys.to_pylist(), numbered.positions.tolist()
    ([326], [b'a long key'], [0, 1, -1])
    """
    content, starts = DistinctTexts(column.keys).bytes_and_starts()
    lengths = np.diff(starts)
    is_short = lengths < WORD
    text = np.append(content, np.zeros(WORD, dtype=np.uint8))
    if is_short.all():
        words = words_of(text, starts[:-1], lengths)
        return NumberedKeys(words, _byte_strings([]), column.positions)
    words = words_of(text, starts[:-1][is_short], lengths[is_short])
    places = np.where(
        is_short, np.cumsum(is_short) - 1, len(words) + np.cumsum(~is_short) - 1
    )
    # -1 stands for a row without a key, and finds the last entry
    positions = np.append(places, -1)[column.positions]
    return NumberedKeys(words, column.keys.filter(_arrow_mask(~is_short)), positions)


def key_bytes(key: Hashable | None) -> bytes | None:
    r"""Return a key of `key_reader` as bytes; other keys have other bytes.

    >>> key_bytes("17"), key_bytes(b"\xe9"), key_bytes(None)
    (b'17', b'\xff\xe9', None)
    """
    if isinstance(key, bytes):
        return _NO_TEXT + key
    if key is None:
        return None
    return str(key).encode("utf-8", "surrogatepass")


def _key_of_bytes(raw: bytes) -> Hashable:
    """Return the key that has these bytes."""
    if raw.startswith(_NO_TEXT):
        return raw.removeprefix(_NO_TEXT)
    return raw.decode("utf-8", "surrogatepass")


def key_columns(reading: Reading) -> Callable[[Column], KeyColumn]:
    """Return the function from a column to the keys of its rows.

    It finds the keys of `key_reader`, value by value, and writes them as `key_bytes` does.

    >>> column = key_columns(Reading(nulls=["9"]))(Column(np.array([17, 9])))
    >>> column.keys.to_pylist(), column.positions.tolist()
    ([b'17'], [0, -1])
    """
    key = key_reader(reading)
    nulls = _byte_strings([key_bytes(null) for null in _null_keys(reading)])

    def keys_of(column: Column) -> KeyColumn:
        if isinstance(column, TextColumn):  # told apart with the keys of other chunks
            keys = _keys_of_texts(column.texts, reading, key)
            places = np.arange(len(keys))
        else:
            keys, places = _keys_of_values(column.data, reading, key)
        has_key = ~_is_among(keys, nulls)
        if keys.null_count:
            has_key &= _boolean_array(keys.is_valid())
        if not has_key.all():
            keys = keys.filter(_arrow_mask(has_key))
            # -1 stands for a value without a key, and finds the last entry
            places = np.append(np.where(has_key, np.cumsum(has_key) - 1, -1), -1)[places]
        if isinstance(column, TextColumn):
            return KeyColumn(keys, places)
        return KeyColumn(keys, column.rows(places, -1))

    return keys_of


def _is_among(keys: Any, others: Any) -> BoolArray:
    """Return which byte strings are equal to one of some others, not null."""
    import pyarrow.compute as pc

    _, starts = DistinctTexts(keys).bytes_and_starts()
    lengths = np.diff(starts)
    # most have another length than any of the others
    is_among = np.zeros(len(keys), dtype=np.bool_)
    for length in {len(other) for other in others.to_pylist()}:
        is_among |= lengths == length
    if is_among.any():
        candidates = keys.filter(_arrow_mask(is_among))
        is_among[is_among] = _boolean_array(pc.is_in(candidates, value_set=others))
    return is_among


def _keys_of_values(
    data: Array | Sequence[object], reading: Reading, key: Callable[[object], Hashable | None]
) -> tuple[Any, IntArray]:
    """Return the keys of some values, and the place of each value among them.

    The place is -1, or the key is null or the spelling of a null, where a value has no key.
    """
    if isinstance(data, DistinctTexts):
        return _keys_of_texts(data.array, reading, key), np.arange(len(data))
    if isinstance(data, np.ndarray):
        wholes = _whole_numbers(data)
        if wholes is not None:
            return _keys_of_wholes(wholes), np.where(np.isnan(data), -1, np.arange(len(data)))
    values, places = distinct(data)
    keys = _byte_strings([key_bytes(key(value)) for value in values])
    if places is None:
        return keys, np.arange(len(values))
    return keys, places.astype(np.int64)


def _whole_numbers(data: Array) -> Array | None:
    """Return numbers as integers, 0 for NaN; None if some are no whole numbers.

    A double and the integer that it equals have the same text (`text`).
    """
    if data.dtype.kind in "iu":
        return data
    if data.dtype != np.float64:
        return None
    numbers = np.where(np.isnan(data), 0.0, data)
    if not ((np.floor(numbers) == numbers) & (np.abs(numbers) < _MOST_WHOLE)).all():
        return None
    return numbers.astype(np.int64)


def _keys_of_wholes(wholes: Array) -> Any:
    """Return the decimal digits of integers, as an Arrow array."""
    import pyarrow as pa

    wholes = wholes.astype(wholes.dtype.newbyteorder("="), copy=False)
    buffer = pa.py_buffer(np.ascontiguousarray(wholes))
    array = pa.Array.from_buffers(pa.from_numpy_dtype(wholes.dtype), len(wholes), [None, buffer])
    return array.cast(pa.large_string()).cast(pa.large_binary())


def _keys_of_texts(texts: Any, reading: Reading, key: Callable[[object], Hashable | None]) -> Any:
    """Return the keys of an Arrow array of byte strings.

    Texts that are their own keys stay as they are; those with blanks or capitals that do not count
    are taken together if they are ASCII; ``key`` reads the others one by one.
    """
    import pyarrow.compute as pc

    content, starts = DistinctTexts(texts).bytes_and_starts()
    is_ascii = np.ones(len(texts), dtype=np.bool_)
    is_ascii[_string_of_each_byte(content >= _ASCII, starts)] = False
    rewrites = reading.trim or reading.ignore_case
    if rewrites or not _is_text(texts, ~is_ascii):
        one_by_one = ~is_ascii
    else:
        one_by_one = np.zeros(len(texts), dtype=np.bool_)
    keys = texts
    if rewrites:
        keys = _rewrite_ascii(texts, is_ascii, reading)
    one_by_one |= _may_end_in_zeros(keys)
    if not one_by_one.any():
        return keys
    chosen = _arrow_mask(one_by_one)
    replacements = [key_bytes(key(value)) for value in texts.filter(chosen).to_pylist()]
    return pc.replace_with_mask(keys, chosen, _byte_strings(replacements))


def _rewrite_ascii(texts: Any, is_ascii: BoolArray, reading: Reading) -> Any:
    """Return byte strings with the ASCII ones as the reading compares them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    in_ascii = texts.filter(_arrow_mask(is_ascii)).cast(pa.large_string())
    if reading.trim:
        in_ascii = pc.ascii_trim(in_ascii, characters=_ASCII_BLANKS)
    if reading.ignore_case:
        in_ascii = pc.ascii_lower(in_ascii)
    rewritten = in_ascii.cast(pa.large_binary())
    return pc.replace_with_mask(texts, _arrow_mask(is_ascii), rewritten)


def _may_end_in_zeros(texts: Any) -> BoolArray:
    """Return which byte strings have a point and end in 0, as 17.00 does."""
    content, starts = DistinctTexts(texts).bytes_and_starts()
    has_point = np.zeros(len(texts), dtype=np.bool_)
    has_point[_string_of_each_byte(content == _POINT, starts)] = True
    if not has_point.any():
        return has_point
    ends_in_zero = np.zeros(len(texts), dtype=np.bool_)
    ends_in_zero[has_point] = content[starts[1:][has_point] - 1] == _ZERO
    return ends_in_zero


def _is_text(texts: Any, flags: BoolArray) -> bool:
    """Return whether some byte strings are all UTF-8."""
    import pyarrow as pa

    if not flags.any():
        return True
    try:
        texts.filter(_arrow_mask(flags)).cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _string_of_each_byte(is_selected: BoolArray, starts: IntArray) -> IntArray:
    """Return the position of the byte string that has each selected byte."""
    positions: IntArray = np.searchsorted(starts, np.flatnonzero(is_selected), side="right") - 1
    return positions


def _arrow_mask(flags: BoolArray) -> Any:
    """Return a mask as an Arrow array."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, _bit_buffer(flags)])


def _byte_strings(values: Sequence[bytes | None]) -> Any:
    """Return byte strings as an Arrow array, without pa.array (loads pandas)."""
    import pyarrow as pa

    content = [value or b"" for value in values]
    starts = np.cumsum([0, *map(len, content)], dtype=np.int64)
    is_valid = np.array([value is not None for value in values], dtype=np.bool_)
    return pa.Array.from_buffers(
        pa.large_binary(),
        len(content),
        [_bit_buffer(is_valid), pa.py_buffer(starts), pa.py_buffer(b"".join(content))],
    )


def _bit_buffer(flags: BoolArray) -> Any:
    """Return a mask as an Arrow buffer of bits."""
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _boolean_array(array: Any) -> BoolArray:
    """Return the Booleans of an Arrow array without nulls."""
    booleans: BoolArray = np.from_dlpack(array.cast("uint8")).view(np.bool_)
    return booleans


def _int32_array(array: Any) -> Numbers:
    """Return the 32-bit integers of an Arrow array, -1 for nulls."""
    if array.null_count:
        array = array.fill_null(-1)
    numbers: Array = np.from_dlpack(array)
    if numbers.dtype != np.int32:
        raise InternalError("places of keys must be 32-bit integers; please report this.")
    return numbers
