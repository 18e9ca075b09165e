"""Compute the keys that identify units (E6 of PROOFS-reading.md).

Rows with equal keys belong to one unit. `key_reader` returns the key of one value; `UnitNumbers`
numbers the keys of whole columns. Keys of columns are byte strings, and pyarrow compares all their
bytes.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
)
from leastnoise._trusted.reading._key_sets import (
    KeySet,
    Numbers,
    PairSet,
    TextSet,
    WordSet,
)
from leastnoise._trusted.reading._value_rules import is_null, value_as_text, without_zeros
from leastnoise._trusted.reading._words import WORD, WordPairs, Words, word_pairs_of, words_of

# Prefix of keys that are not text. UTF-8 never contains this byte.
_NO_TEXT = b"\xff"
_NO_PLACES = np.zeros(0, dtype=np.int64)
_ASCII = 128
_POINT = ord(".")
_ZERO = ord("0")
_ASCII_BLANKS = "".join(filter(str.isascii, BLANKS))
# Whole doubles whose absolute value is below this bound fit into 64-bit integers.
_MOST_WHOLE = 2.0**63
# Waiting keys are numbered when they take at least this many bytes, and at least twice the bytes of
# all numbered keys. Each key is then compared about one and a half times, for any number of keys.
_WAITING_BYTES = 2**26


def key_reader(reading: Reading) -> Callable[[object], Hashable | None]:
    """Return a function from a value to its unit or join key, or None (E6).

    The key of a value is its string form as the reading compares it. A text that is a whole number
    followed by a point and zeros has the key of the whole number. If bytes are not text, the bytes
    themselves are the key. A null, a spelling of a null, and a value without a string form have no
    key.

    >>> key = key_reader(Reading(trim=True, ignore_case=True, nulls=["NA"]))
    >>> [key(value) for value in (17.0, b"17", "17.00", " P17 ", "p17", "", "na", [17])]
    ['17', '17', '17', 'p17', 'p17', None, None, None]
    """
    nulls = null_keys(reading)

    def key(value: object) -> Hashable | None:
        """Return the key of a value; None if it has none."""
        if is_null(value):
            return None
        form = value_as_text(value)
        if form is None:
            return value if isinstance(value, bytes) else None
        form = key_text(form, reading)
        return None if form in nulls else form

    return key


def key_text(form: str, reading: Reading) -> str:
    """Return the text by which a key is compared, such as 17 for 17.00.

    >>> key_text("17.00", Reading()), key_text("17.50", Reading())
    ('17', '17.50')
    """
    compared = reading.form(form)
    return without_zeros(compared) or compared


def null_keys(reading: Reading) -> set[str]:
    """Return the texts that mean a null and so cannot be keys.

    >>> sorted(null_keys(Reading(nulls=["-9.0", "NA"])))
    ['', '-9', 'NA']
    """
    return {"", *(key_text(null, reading) for null in reading.nulls)}


def key_number_encoder(
    numbers: dict[Hashable, int],
    key: Callable[[object], Hashable | None],
    *,
    allow_new: bool = True,
) -> Encoder:
    """Return an encoder that numbers the distinct keys of a column.

    A value without a key gets -1.

    ``numbers`` has the numbers of the keys that were found so far. A new key gets the next number;
    with ``allow_new=False`` it gets -1.

    >>> numbers, key = {"a": 0}, key_reader(Reading())
    >>> key_number_encoder(numbers, key)(Column(["b", "a", None, b"b"])).tolist()
    [1, 0, -1, 1]
    >>> key_number_encoder(numbers, key, allow_new=False)(Column(["b", "c"])).tolist()
    [1, -1]
    """

    def number(value: object) -> int:
        """Return the number of a value's key."""
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
    """The unit keys of some rows: an array of keys and each row's position.

    Attributes:
        keys: an Arrow array of the byte strings of `key_bytes`; a key may occur several times.
        positions: for each row the position of its key; -1 for a row without a key.
    """

    keys: Any
    positions: IntArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KeyParts:
    """The unit keys of some rows, split into short, medium and long keys.

    Attributes:
        words: the keys of at most 7 bytes, as integers (`words_of`).
        pairs: the keys of 8 to 15 bytes, each as two integers (`word_pairs_of`).
        texts: an Arrow array of the longer keys. In all three arrays a key may occur several times.
        positions: for each row the position of its key in the three arrays joined; -1 for a row
            without a key.
    """

    words: Words
    pairs: WordPairs
    texts: Any
    positions: IntArray


class UnitNumbers:
    """Assigns a number to each distinct unit key.

    Each key of a chunk first gets an entry: a number that belongs only to the rows with this key in
    the chunk. `number_keys` compares the keys of all entries and numbers the distinct keys;
    `numbers_of` returns these numbers. Hash tables of pyarrow find equal keys; two keys are taken
    to be equal only after all their bytes have been compared (`_key_sets.py`). Each key is stored
    once.

    Args:
        reading: how the values of the unit's column are read.

    Attributes:
        entries: the encoder from a column to entries; -1 for a row without a unit. The first step
            of this encoder depends only on the column, and may run in any thread.

    Guarantees: two entries have the same number if and only if their values have the same key
        (`key_reader`).

    >>> units = UnitNumbers(Reading())
    >>> entries = units.entries(Column(["a", 17, None, b"a", "17.0"]))
    >>> units.number_keys()
    >>> units.numbers_of(entries).tolist(), units.keys()
    ([0, 1, -1, 0, 1], ['a', '17'])
    """

    def __init__(self, reading: Reading) -> None:
        keys_of = key_columns(reading)
        self.entries = SplitEncoder(lambda column: key_parts(keys_of(column)), self._enter)
        self._words = WordSet()
        self._pairs = PairSet()
        self._texts = TextSet()
        self._sets: tuple[KeySet, ...] = (self._words, self._pairs, self._texts)
        # For each set, the unit numbers of its keys.
        self._numbers_of_sets: list[Numbers] = [np.zeros(0, dtype=np.int32) for _ in self._sets]
        # For each waiting chunk, the number of its keys in each set.
        self._waiting: list[tuple[int, ...]] = []
        self._entered = 0
        # The unit numbers of all numbered entries in several arrays, and the first entry of each
        # array.
        self._numbers: list[Numbers] = []
        self._starts: list[int] = []

    def __len__(self) -> int:
        """Return the number of units that are numbered."""
        return sum(map(len, self._numbers_of_sets))

    @property
    def is_full(self) -> bool:
        """Whether the waiting keys take so much memory that they must be numbered."""
        stored_bytes = sum(keys.stored_bytes for keys in self._sets)
        waiting_bytes = sum(keys.waiting_bytes for keys in self._sets)
        return waiting_bytes >= max(_WAITING_BYTES, 2 * stored_bytes)

    def _enter(self, parts: KeyParts) -> IntArray:
        """Store the keys of a chunk for later numbering; return each row's entry."""
        entries = np.where(parts.positions < 0, -1, parts.positions + self._entered)
        counts = (
            self._words.wait(parts.words),
            self._pairs.wait(parts.pairs),
            self._texts.wait(parts.texts),
        )
        self._waiting.append(counts)
        self._entered += sum(counts)
        return entries

    def number_keys(self) -> None:
        """Number all waiting keys; earlier keys keep their numbers."""
        count = sum(map(sum, self._waiting))
        if not count:
            return
        positions = [keys.store() for keys in self._sets]
        for position, keys in enumerate(self._sets):
            numbers = self._numbers_of_sets[position]
            new = np.arange(len(self), len(self) + len(keys) - len(numbers), dtype=np.int32)
            self._numbers_of_sets[position] = np.concatenate((numbers, new))
        self._starts.append(self._entered - count)
        self._numbers.append(self._numbers_in_order(positions))
        self._waiting = []

    def _numbers_in_order(self, positions: Sequence[Numbers]) -> Numbers:
        """Return the unit number of every waiting key, in the order of entry.

        Args:
            positions: for each of the three sets of keys, the places of its waiting keys in the
                set.
        """
        places_in_nonempty_sets = [
            of_set for of_set, keys in zip(positions, self._sets, strict=True) if len(keys)
        ]
        if len(places_in_nonempty_sets) == 1:
            return places_in_nonempty_sets[0]  # with one nonempty set, places are unit numbers
        numbers_of_sets = [
            numbers.take(of_set)
            for numbers, of_set in zip(self._numbers_of_sets, positions, strict=True)
        ]
        parts = []
        starts = [0 for _ in self._sets]
        for counts in self._waiting:
            for position, count in enumerate(counts):
                end = starts[position] + count
                parts.append(numbers_of_sets[position][starts[position] : end])
                starts[position] = end
        return np.concatenate(parts)

    def numbers_of(self, entries: IntArray) -> Numbers:
        """Return the unit number of each entry; -1 for the entry -1.

        The keys of all entries must have been numbered.
        """
        if self._starts and len(entries) and entries.min() >= self._starts[-1]:
            return self._numbers[-1].take(entries - self._starts[-1])
        numbers = np.full(len(entries), -1, dtype=np.int32)
        segments = np.searchsorted(self._starts, entries, side="right") - 1
        for segment in np.unique(segments[entries >= 0]).tolist():
            rows = segments == segment
            numbers[rows] = self._numbers[segment][entries[rows] - self._starts[segment]]
        return numbers

    def keys(self) -> list[Hashable]:
        """Return the key of every unit, ordered by unit number."""
        keys: list[Hashable] = [None] * len(self)
        for numbers, stored in zip(self._numbers_of_sets, self._sets, strict=True):
            for number, raw in zip(numbers.tolist(), stored.keys(), strict=True):
                keys[number] = _key_of_bytes(raw)
        return keys


def key_parts(column: KeyColumn) -> KeyParts:
    """Split keys by their lengths into short, medium and long keys.

    >>> keys = key_columns(Reading())(Column(["Florence", "F", "a key of 19 letters", None]))
    >>> parts = key_parts(keys)
    >>> parts.words.tolist(), parts.texts.to_pylist(), parts.positions.tolist()
    ([326], [b'a key of 19 letters'], [1, 0, 2, -1])
    """
    content, starts = DistinctTexts(column.keys).bytes_and_starts()
    lengths = np.diff(starts)
    text = np.append(content, np.zeros(WORD, dtype=np.uint8))
    if lengths.max(initial=0) < WORD:
        words = words_of(text, starts[:-1], lengths)
        return KeyParts(
            words,
            word_pairs_of(text, _NO_PLACES, _NO_PLACES),
            column.keys.slice(0, 0),
            column.positions,
        )
    set_of_key = (lengths >= WORD).astype(np.int8) + (lengths >= 2 * WORD)
    keys_of_sets = [np.flatnonzero(set_of_key == position) for position in range(3)]
    in_words, in_pairs, _ = keys_of_sets
    positions = column.positions
    if max(map(len, keys_of_sets)) < len(lengths):
        place_of_key = np.empty(len(lengths), dtype=np.int64)
        place_of_key[np.concatenate(keys_of_sets)] = np.arange(len(lengths))
        # The index -1, for a row without a key, selects the last entry.
        positions = np.append(place_of_key, -1)[positions]
    return KeyParts(
        words_of(text, starts[in_words], lengths[in_words]),
        word_pairs_of(text, starts[in_pairs], lengths[in_pairs]),
        column.keys.filter(_arrow_mask(set_of_key == 2)),
        positions,
    )


def key_bytes(key: Hashable | None) -> bytes | None:
    r"""Encode a key of `key_reader` as bytes, each distinctly; None for None.

    >>> key_bytes("17"), key_bytes(b"\xe9"), key_bytes(None)
    (b'17', b'\xff\xe9', None)
    """
    if isinstance(key, bytes):
        return _NO_TEXT + key
    if key is None:
        return None
    return str(key).encode("utf-8", "surrogatepass")


def _key_of_bytes(raw: bytes) -> Hashable:
    """Decode the bytes that `key_bytes` returned."""
    if raw.startswith(_NO_TEXT):
        return raw.removeprefix(_NO_TEXT)
    return raw.decode("utf-8", "surrogatepass")


def key_columns(reading: Reading) -> Callable[[Column], KeyColumn]:
    """Return the function that computes the unit keys of a whole column.

    The keys equal the results of `key_reader` for each value, written by `key_bytes`.

    >>> column = key_columns(Reading(nulls=["9"]))(Column(np.array([17, 9])))
    >>> column.keys.to_pylist(), column.positions.tolist()
    ([b'17'], [0, -1])
    """
    key = key_reader(reading)
    nulls = _byte_strings([key_bytes(null) for null in null_keys(reading)])

    def keys_of(column: Column) -> KeyColumn:
        """Return the unit keys of a column's rows."""
        # Duplicates are found later, together with the keys of other chunks.
        if isinstance(column, TextColumn):
            keys = _keys_of_texts(column.texts, reading, key)
            positions = np.arange(len(keys))
        else:
            keys, positions = _keys_of_values(column.data, reading, key)
        has_key = ~_is_among(keys, nulls)
        if keys.null_count:
            has_key &= _boolean_array(keys.is_valid())
        if not has_key.all():
            keys = keys.filter(_arrow_mask(has_key))
            # The position -1 marks a value without a key, and selects the last entry.
            positions = np.append(np.where(has_key, np.cumsum(has_key) - 1, -1), -1)[positions]
        if isinstance(column, TextColumn):
            return KeyColumn(keys, positions)
        return KeyColumn(keys, column.rows(positions, -1))

    return keys_of


def _is_among(byte_strings: Any, listed: Any) -> BoolArray:
    """Return a mask of the byte strings that are in an Arrow array."""
    import pyarrow.compute as pc

    _, starts = DistinctTexts(byte_strings).bytes_and_starts()
    lengths = np.diff(starts)
    # Most byte strings differ from all of the others in length.
    is_among = np.zeros(len(byte_strings), dtype=np.bool_)
    for length in {len(other) for other in listed.to_pylist()}:
        is_among |= lengths == length
    if is_among.any():
        candidates = byte_strings.filter(_arrow_mask(is_among))
        is_among[is_among] = _boolean_array(pc.is_in(candidates, value_set=listed))
    return is_among


def _keys_of_values(
    data: Array | Sequence[object], reading: Reading, key: Callable[[object], Hashable | None]
) -> tuple[Any, IntArray]:
    """Return an Arrow array of keys, and each value's position in it.

    If a value has no key, its position is -1, or the key at that position is null or a spelling of
    a null.
    """
    if isinstance(data, DistinctTexts):
        return _keys_of_texts(data.array, reading, key), np.arange(len(data))
    if isinstance(data, np.ndarray):
        wholes = _whole_numbers(data)
        if wholes is not None:
            return _keys_of_wholes(wholes), np.where(np.isnan(data), -1, np.arange(len(data)))
    values, positions = distinct(data)
    keys = _byte_strings([key_bytes(key(value)) for value in values])
    if positions is None:
        return keys, np.arange(len(values))
    return keys, positions.astype(np.int64)


def _whole_numbers(data: Array) -> Array | None:
    """Convert doubles to integers, and NaN to 0; None if one is not an integer.

    A double that equals an integer has the same text as the integer (`value_as_text`).
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
    """Return the keys of whole numbers: an Arrow array of decimal digits."""
    import pyarrow as pa

    wholes = wholes.astype(wholes.dtype.newbyteorder("="), copy=False)
    buffer = pa.py_buffer(np.ascontiguousarray(wholes))
    array = pa.Array.from_buffers(pa.from_numpy_dtype(wholes.dtype), len(wholes), [None, buffer])
    return array.cast(pa.large_string()).cast(pa.large_binary())


def _keys_of_texts(
    texts: Any, reading: Reading, key_of_value: Callable[[object], Hashable | None]
) -> Any:
    """Return the key of each text, as an Arrow array of byte strings.

    Texts that are their own keys stay unchanged. If the reading ignores blanks or capital letters,
    all ASCII texts with blanks or capital letters are rewritten at once. The function
    ``key_of_value`` reads all other texts one by one.
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
    mask = _arrow_mask(one_by_one)
    replacements = [key_bytes(key_of_value(value)) for value in texts.filter(mask).to_pylist()]
    return pc.replace_with_mask(keys, mask, _byte_strings(replacements))


def _rewrite_ascii(texts: Any, is_ascii: BoolArray, reading: Reading) -> Any:
    """Trim and lowercase ASCII texts, if the reading ignores blanks and case."""
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
    """Return a mask of the texts that have a point and end in 0, such as 17.00."""
    content, starts = DistinctTexts(texts).bytes_and_starts()
    has_point = np.zeros(len(texts), dtype=np.bool_)
    has_point[_string_of_each_byte(content == _POINT, starts)] = True
    if not has_point.any():
        return has_point
    ends_in_zero = np.zeros(len(texts), dtype=np.bool_)
    ends_in_zero[has_point] = content[starts[1:][has_point] - 1] == _ZERO
    return ends_in_zero


def _is_text(texts: Any, flags: BoolArray) -> bool:
    """Return whether the marked byte strings are all valid UTF-8."""
    import pyarrow as pa

    if not flags.any():
        return True
    try:
        texts.filter(_arrow_mask(flags)).cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _string_of_each_byte(is_selected: BoolArray, starts: IntArray) -> IntArray:
    """Return the index of the byte string that each selected byte belongs to."""
    positions: IntArray = np.searchsorted(starts, np.flatnonzero(is_selected), side="right") - 1
    return positions


def _arrow_mask(flags: BoolArray) -> Any:
    """Convert a Boolean array to Arrow."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, _bit_buffer(flags)])


def _byte_strings(values: Sequence[bytes | None]) -> Any:
    """Convert byte strings to Arrow without pa.array, which imports pandas."""
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
    """Pack a Boolean array into an Arrow buffer of bits."""
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _boolean_array(array: Any) -> BoolArray:
    """Convert an Arrow array of Booleans without nulls to NumPy."""
    booleans: BoolArray = np.from_dlpack(array.cast("uint8")).view(np.bool_)
    return booleans
