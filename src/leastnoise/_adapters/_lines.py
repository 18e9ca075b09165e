"""From bytes to lines and from lines to fields: the rule that decides what a record of a CSV file is (E1).

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

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from leastnoise._check.arrays import BoolArray, IntArray

# The most bytes of a line, without its LF.
LONGEST = 2_000_000
BLOCK = 2**20
_LF, _CR, _QUOTE = 10, 13, 34

Bytes = npt.NDArray[np.uint8]


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
