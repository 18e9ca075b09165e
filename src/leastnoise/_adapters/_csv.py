"""CSV files, plain or compressed by gzip: from bytes to lines, and from lines to the distinct fields of a column (E1, E2).

1. A line ends with LF. One CR before the LF belongs to the end; any other CR is a byte like others. What follows the last LF is a line if
   it is not empty.
2. A line is a record, whatever it holds: nothing in one line has an effect on another, and a field cannot hold a line break.
3. A line is cut at its delimiters. A field that begins with ``"`` must end with ``"``, may hold delimiters, and ``""`` within it means one
   ``"``.
4. A line is dropped if it does not have as many fields as the header has names, has a field that is quoted otherwise, or is longer than
   ``LONGEST`` bytes. An empty line is a null where there is one column.

Lines without quotes, and lines in which quotes only surround whole fields, are cut by arithmetic on the places of all delimiters at once.
The others are cut one by one.
"""

import gzip
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from leastnoise._adapters._arrow import to_column
from leastnoise._adapters._column import STRANGE, Column, FileKind, Source, not_whole
from leastnoise._adapters._location import CSV
from leastnoise._check import InputError
from leastnoise._check.arrays import BoolArray, IntArray

# The most bytes of a line, without its LF.
LONGEST = 2_000_000
BLOCK = 2**20
_LF, _CR, _QUOTE = 10, 13, 34

Bytes = npt.NDArray[np.uint8]
Item = TypeVar("Item")
Made = TypeVar("Made")
# A field of fewer bytes is told apart as one whole number of so many, in which a 1 stands behind its last byte.
WORD = 8
_END = np.array([1 << 8 * length for length in range(WORD)], dtype=np.uint64)
# The header must end within this many bytes.
_HEADER = 2**20
_DELIMITERS = ",;\t|"
_DAMAGED = (OSError, EOFError, zlib.error)


def whole_lines(read: Callable[[int], bytes]) -> Iterator[bytes]:
    r"""Read lines in blocks, each of which ends with LF; a line longer than ``LONGEST`` is left out.

    Args:
        read: gives at most that many further bytes, none at the end.

    >>> list(whole_lines(io.BytesIO(b"a,1\nb,2").read))
    [b'a,1\n', b'b,2\n']
    """
    rest, dropping = b"", False
    while block := read(BLOCK):
        if dropping:
            _, found, block = block.partition(b"\n")
            dropping = not found
        start, found, rest = (rest + block).rpartition(b"\n")
        if found:
            yield start + found
        if len(rest) > LONGEST:
            rest, dropping = b"", True
    if rest:
        yield rest + b"\n"


def split(line: bytes, delimiter: bytes, most: int = LONGEST) -> list[bytes] | None:
    """Cut one line by the rule.

    Args:
        line: without its end.
        delimiter: one byte.
        most: the number of fields beyond which the line is not cut.

    Returns:
        The fields without their quotes, or None if the line is quoted wrongly or has more fields.

    >>> split(b'1,"a ""b"", c",,x"y', b",")
    [b'1', b'a "b", c', b'', b'x"y']
    >>> split(b'1,"a"b', b","), split(b'"a', b",")
    (None, None)
    """
    field = re.compile(rb'"([^"]*+(?:""[^"]*+)*+)"|(?:[^"%b][^%b]*+)?' % (delimiter, delimiter))
    fields: list[bytes] = []
    at = 0
    while len(fields) < most:
        found = field.match(line, at)
        if found is None:
            return None
        fields.append(found[0] if found[1] is None else found[1].replace(b'""', b'"'))
        at = found.end()
        if at == len(line):
            return fields
        if line[at : at + 1] != delimiter:
            return None
        at += 1
    return None


def cut(block: bytes, delimiter: bytes, width: int, places: Sequence[int]) -> tuple[int, Bytes, list[tuple[IntArray, IntArray]]]:
    r"""Cut a block of lines into the columns wanted.

    Args:
        block: lines, each with its LF.
        delimiter: one byte.
        width: the number of fields of a record.
        places: which fields are wanted, from 0.

    Returns:
        The number of records, the bytes that their fields are in, and for each field wanted where it begins and ends in each record.

    >>> rows, text, ((begins, ends),) = cut(b'1,F\n2\n3,"M"\n', b",", 2, [1])
    >>> rows, [text[begin:end].tobytes() for begin, end in zip(begins, ends)]
    (2, [b'F', b'M'])
    """
    buffer = np.frombuffer(block, dtype=np.uint8)
    marks = np.flatnonzero((buffer == ord(delimiter)) | (buffer == _LF))
    last = np.flatnonzero(buffer[marks] == _LF)
    first = np.concatenate(([0], last[:-1] + 1))
    feeds = marks[last]
    starts = np.concatenate(([0], feeds[:-1] + 1))
    short = feeds - starts <= LONGEST
    stops = feeds - ((feeds > starts) & (buffer[feeds - 1] == _CR))
    quotes = np.flatnonzero(buffer == _QUOTE)
    quoted = np.zeros(len(feeds), dtype=np.bool_)
    quoted[np.searchsorted(feeds, quotes)] = True
    kept = short & (last - first == width - 1)
    if kept.all() and not len(quotes):
        return len(feeds), buffer, _regular(marks.reshape(-1, width), starts, stops, places)
    hard = short & quoted
    begins = [starts.copy() if place == 0 else _at(marks, first + place - 1, kept) + 1 for place in places]
    ends = [stops.copy() if place == width - 1 else _at(marks, first + place, kept) for place in places]
    if quoted.any():
        _unwrap(buffer, quotes, (marks, first, starts, stops), np.flatnonzero(kept & quoted), width, places, (begins, ends, hard))
        kept &= ~hard
        buffer = _one_by_one(block, delimiter, width, places, np.flatnonzero(hard), (starts, stops), (begins, ends, kept))
    return int(np.count_nonzero(kept)), buffer, [(begin[kept], end[kept]) for begin, end in zip(begins, ends, strict=True)]


def _regular(marks: IntArray, starts: IntArray, stops: IntArray, places: Sequence[int]) -> list[tuple[IntArray, IntArray]]:
    """Lines without quotes that are all records: their marks stand in rows."""
    last = marks.shape[1] - 1
    return [(starts if place == 0 else marks[:, place - 1] + 1, stops if place == last else marks[:, place]) for place in places]


def _at(marks: IntArray, places: IntArray, kept: BoolArray) -> IntArray:
    """The marks at these places; of lines that are not kept anything, as they may have too few."""
    return marks[np.where(kept, places, 0)]


def _unwrap(
    buffer: Bytes,
    quotes: IntArray,
    found: tuple[IntArray, IntArray, IntArray, IntArray],
    lines: IntArray,
    width: int,
    places: Sequence[int],
    into: tuple[list[IntArray], list[IntArray], BoolArray],
) -> None:
    """Take the quotes off fields of lines in which they only surround whole fields; such lines are no longer hard."""
    marks, first, starts, stops = found
    begins, ends, hard = into
    easy = np.ones(len(lines), dtype=np.bool_)
    wrapped = {}
    for place in range(width):
        begin = starts[lines] if place == 0 else marks[first[lines] + place - 1] + 1
        end = stops[lines] if place == width - 1 else marks[first[lines] + place]
        within = np.searchsorted(quotes, end) - np.searchsorted(quotes, begin)
        whole = (within == 2) & (end - begin >= 2) & (buffer[begin] == _QUOTE) & (buffer[end - 1] == _QUOTE)
        easy &= whole | (within == 0)
        wrapped[place] = whole
    hard[lines[easy]] = False
    for begin, end, place in zip(begins, ends, places, strict=True):
        begin[lines[easy]] += wrapped[place][easy]
        end[lines[easy]] -= wrapped[place][easy]


def _one_by_one(
    block: bytes,
    delimiter: bytes,
    width: int,
    places: Sequence[int],
    lines: IntArray,
    found: tuple[IntArray, IntArray],
    into: tuple[list[IntArray], list[IntArray], BoolArray],
) -> Bytes:
    """Cut lines by the rule itself, and keep those that are records; their fields are put behind the block, which is returned."""
    begins, ends, kept = into
    behind, at = [block], len(block)
    for line, start, stop in zip(lines.tolist(), found[0][lines].tolist(), found[1][lines].tolist(), strict=True):
        fields = split(block[start:stop], delimiter, width)
        if fields is None or len(fields) != width:
            continue
        kept[line] = True
        for begin, end, place in zip(begins, ends, places, strict=True):
            behind.append(fields[place])
            begin[line], end[line] = at, at + len(fields[place])
            at += len(fields[place])
    return np.frombuffer(b"".join(behind), dtype=np.uint8)


def ahead(function: Callable[[Item], Made], items: Iterable[Item]) -> Iterator[Made]:
    """What a function makes of each item, in order; it runs in threads, for a few items more than are waited for.

    Args:
        function: of one item, which keeps nothing from one to the next.
        items: of any number; taken one by one, by the caller's thread.

    Raises:
        Exception: whatever the function or the items raise.

    >>> list(ahead(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(cores, thread_name_prefix="leastnoise-read") as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def to_texts(text: Bytes, begins: IntArray, ends: IntArray) -> Column:
    r"""The fields between places, told apart by their bytes.

    Args:
        text: what they are in, with `WORD` further bytes behind the last of them.
        begins: where each begins.
        ends: where each ends.

    >>> column = to_texts(np.frombuffer(b"F,M,F" + bytes(WORD), dtype=np.uint8), np.array([0, 2, 4]), np.array([1, 3, 5]))
    >>> column.data, column.index.tolist()
    ([b'F', b'M'], [0, 1, 0])
    """
    import pyarrow as pa

    lengths = ends - begins
    if lengths.max(initial=0) >= WORD:
        starts = np.concatenate(([0], np.cumsum(lengths)))
        gathered = text[np.repeat(begins - starts[:-1], lengths) + np.arange(starts[-1])]
        parts = [None, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(gathered)]
        return to_column(pa.Array.from_buffers(pa.binary(), len(begins), parts))
    if (lengths == 1).all():
        keys, end = text[begins], 256
    else:
        ends_at = _END[lengths]
        words = np.ndarray(len(text) - WORD + 1, "<u8", text, strides=(1,))[begins]
        keys, end = (words & (ends_at - 1)) | ends_at, 0
    # not pa.array, which loads pandas
    found = pa.Array.from_buffers(pa.from_numpy_dtype(keys.dtype), len(keys), [None, pa.py_buffer(keys)]).dictionary_encode()
    return Column([_bytes(key + end) for key in found.dictionary.to_pylist()], None, np.from_dlpack(found.indices).astype(np.int64))


def _bytes(key: int) -> bytes:
    """The bytes below the highest bit, which stands behind the last of them, so that zeros at the end are told from none."""
    return key.to_bytes(WORD, "little")[: key.bit_length() // 8]


def open_csv(path: Path, layout: CSV | None = None) -> Source:
    """Open a CSV file; only its header is read.

    Fields may be quoted by ``"``, doubled within.

    Args:
        path: the file, ``.csv`` or ``.tsv``, or one of them with ``.gz``.
        layout: what was said of it; None: UTF-8 with a header, and the delimiter of comma, semicolon, tab and bar that the header holds
            most of.

    Returns:
        The source.

    Raises:
        InputError: the file cannot be opened, or its first line is not a header.
    """
    what = f"the CSV file {str(path)!r}"
    said = layout or CSV(path)
    headed = isinstance(said.header, bool)
    # a file without a header begins with a row, which has no say in anything
    line = _first_line(path, what, said.encoding) if headed else ""
    mark = said.delimiter or max(("\t" if ".tsv" in path.name.lower() else "") + _DELIMITERS, key=line.count)
    delimiter = mark.encode()
    fields = split(line.encode(), delimiter) if isinstance(said.header, bool) else [name.encode() for name in said.header]
    if fields is None or not any(fields) or (headed and any(ord(character) < 32 and character not in {"\t", mark} for character in line)):
        raise InputError(
            f"{what} must begin with a line of column names; its first line is not one. "
            "Check that the file is a CSV file whose lines end with LF or CRLF."
        )
    names = [field.decode() for field in fields]

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        places = [names.index(name) for name in columns]

        def in_columns(block: bytes) -> tuple[int, list[Column]]:
            rows, text, fields = cut(block, delimiter, len(names), places)
            text = np.append(text, np.zeros(WORD, dtype=np.uint8))
            read = [to_texts(text, *field) for field in fields]
            return rows, read if said.utf8 else [_decoded(column, said.encoding) for column in read]

        try:
            with opener(path)(path, "rb") as opened:
                if headed:
                    opened.readline(_HEADER + 1)
                yield from ahead(in_columns, whole_lines(opened.read))
        except _DAMAGED:
            raise InputError(not_whole(what)) from None

    return Source(what=what, names=tuple(names), total=None, chunks=chunks, strange={})


def _decoded(column: Column, encoding: str) -> Column:
    """The same column with its distinct texts decoded; bytes that the encoding does not have are no value."""
    return Column([_text(raw, encoding) for raw in column.data], None, column.index)


def _text(raw: object, encoding: str) -> object:
    try:
        return raw.decode(encoding) if isinstance(raw, bytes) else raw
    except UnicodeDecodeError:
        return STRANGE


def opener(path: Path) -> Callable[..., Any]:
    return gzip.open if path.suffix.lower() == ".gz" else Path.open


def _first_line(path: Path, what: str, encoding: str) -> str:
    try:
        with opener(path)(path, "rb") as opened:
            line: bytes = opened.readline(_HEADER)
    except _DAMAGED:
        raise InputError(
            f"{what} cannot be read. Check that it is a file you may read and, if it ends in .gz, that it is compressed by gzip."
        ) from None
    if len(line) == _HEADER:
        raise InputError(f"{what} must begin with a line of column names of at most {_HEADER} bytes; its first line is longer.")
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError:
        raise InputError(
            f"{what} must be text in {encoding.upper()}; its first line is not. "
            'Say its encoding, for example [source] encoding = "latin-1" (of `init`: --encoding latin-1), or save it as UTF-8 or Parquet.'
        ) from None


CSV_FILES = FileKind(name="CSV", endings=(".csv", ".csv.gz", ".tsv", ".tsv.gz"), open=open_csv)
