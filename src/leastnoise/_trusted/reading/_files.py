"""Read CSV files, plain or compressed by gzip, and Parquet files.

The bytes of a CSV file are split into lines, and the lines into fields (E1, E2). Several files can
form one source.

1. A line ends with LF. One CR before the LF is part of the line end; any other CR is an ordinary
   byte. Bytes after the last LF, if there are any, are also a line.
2. Every line is a separate record, whatever its content. No line affects another line, and a field
   cannot contain a line break.
3. A line is split at its delimiters. A field that begins with ``"`` must end with ``"``. Such a
   field may contain delimiters, and ``""`` within it means one ``"``.
4. A line is dropped in three cases: it does not have as many fields as the header has names; it has
   a field with quotes in other positions; or it is longer than ``LONGEST`` bytes. In a file with
   one column, an empty line is a null.

Lines that have no quotes, or have quotes only around whole fields, are split all at once, by
arithmetic on the positions of all delimiters. Other lines are split one by one.

If there are several files, their names and not their contents decide which of them are read. If a
folder below the path has a name such as ``key=value``, every row of its files gets a column
``key``, which has the text ``value``. Hive and Spark write such folders.
"""

import codecs
import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._trusted.check import InputError, InternalError, message
from leastnoise._trusted.check.arrays import BoolArray, IntArray
from leastnoise._trusted.domain import Holds
from leastnoise._trusted.reading._column import (
    CHUNK,
    UNSUPPORTED,
    Chunk,
    Chunks,
    Column,
    DistinctTexts,
    Encoders,
    FileKind,
    Part,
    SchemaField,
    Source,
    SourceFile,
    TextColumn,
    arrow_fields,
    batch_parts,
    by_parts,
    to_column,
    word_texts,
)
from leastnoise._trusted.reading._lines import (
    DAMAGED,
    LONGEST,
    NO_RECORD,
    open_binary,
    whole_lines,
)
from leastnoise._trusted.reading._words import WORD, Bytes, distinct_words, words_of
from leastnoise._trusted.reading.helpers._column_types import arrow_value_types, common_value_types
from leastnoise._trusted.reading.helpers._locations import (
    BROKEN_HEADER,
    CSV,
    CSV_FILE,
    EMPTY_HEADER,
    LONG_HEADER,
    MISQUOTED_HEADER,
    NO_CSV,
    NO_CSV_LAYOUT,
    NO_PARQUET,
    NO_TEXT_HEADER,
    NOT_WHOLE,
    ONE_FILE_TWICE,
    OTHER_COLUMNS,
    OTHER_ENCODING,
    OTHER_FORMAT,
    PARQUET_FILE,
    SAME_FILE_IN_TWO_FORMS,
    check_files_without_names,
    find_files,
)

_LF = 10
_CR = 13
_QUOTE = 34
_ASCII = 128
_ASCII_TABLE = bytes(range(_ASCII)).decode("ascii")

# The header must end within this many bytes.
_MOST_HEADER_BYTES = 2**20
_DELIMITERS = ",;\t|"
# Two patterns for a header: a quoted name, whose closing quote may be missing; and the beginning of
# a quoted name.
_QUOTED_NAME = re.compile(r'(?:^|(?<=[,;\t|]))"[^"]*(?:""[^"]*)*(?:"|$)')
_NAME_START = r'(?:^|%s)"'


def split_line(line: bytes, delimiter: bytes, most_fields: int = LONGEST) -> list[bytes] | None:
    """Split a CSV line into its unquoted fields; None if it is not a record.

    The result is None if the line is not a record: its quotes are wrong, or it has more than
    ``most_fields`` fields.

    >>> split_line(b'1,"a ""b"", c",,x"y', b",")
    [b'1', b'a "b", c', b'', b'x"y']
    >>> split_line(b'1,"a"b', b","), split_line(b'"a', b",")
    (None, None)
    """
    field = re.compile(
        rb'"([^"]*+(?:""[^"]*+)*+)"|(?:[^"%b][^%b]*+)?' % ((re.escape(delimiter),) * 2)
    )
    fields: list[bytes] = []
    at = 0
    while len(fields) < most_fields:
        match = field.match(line, at)
        if match is None:
            return None
        if match[1] is None:
            fields.append(match[0])
        else:
            fields.append(match[1].replace(b'""', b'"'))
        at = match.end()
        if at == len(line):
            return fields
        if line[at : at + 1] != delimiter:
            return None
        at += 1
    return None


def line_fault(line: bytes, delimiter: bytes, number_of_fields: int) -> str | None:
    r"""Return the reason why a line is not a record; None if it is a record.

    The line must not contain its LF. A record has ``number_of_fields`` fields.

    >>> line_fault(b"F,3,", b",", 2), line_fault(b'F,"x"y', b",", 2), line_fault(b'F,"x', b",", 2)
    ('it has 3 fields, and the header has 2', 'text stands behind a closing quote',
     'a quote does not close')
    """
    if len(line) > LONGEST or line == NO_RECORD[:-1]:
        return f"it is longer than {LONGEST:,} bytes, or it consists only of a quote"
    line = line.removesuffix(b"\r")
    fields = split_line(line, delimiter)
    if fields is None:
        closed = re.sub(rb'"[^"]*+"', b"", line.replace(b'""', b""))
        if b'"' in closed:
            return "a quote does not close"
        return "text stands behind a closing quote"
    if len(fields) != number_of_fields:
        many = f"{len(fields):,} field{'s' * (len(fields) != 1)}"
        return f"it has {many}, and the header has {number_of_fields:,}"
    return None


def parse_lines(
    block: bytes, delimiter: bytes, number_of_fields: int, column_positions: Sequence[int]
) -> tuple[int, Bytes, list[tuple[IntArray, IntArray]]]:
    r"""Split a block of lines into records, and return the fields' positions.

    The block contains whole lines with their LFs. A record has ``number_of_fields`` fields.

    Returns:
        Three results: the number of records; the bytes that contain their fields; and for each
        requested column, a pair of arrays with the start and the end of its field in every record.

    >>> rows, text, ((begins, ends),) = parse_lines(b'1,F\n2\n3,"M"\n', b",", 2, [1])
    >>> rows, [text[begin:end].tobytes() for begin, end in zip(begins, ends)]
    (2, [b'F', b'M'])
    """
    buffer = np.frombuffer(block, dtype=np.uint8)
    marks = np.flatnonzero((buffer == ord(delimiter)) | (buffer == _LF))
    last = np.flatnonzero(buffer[marks] == _LF)
    feeds = marks[last]
    fields = np.diff(last, prepend=-1)
    starts = np.append(0, feeds[:-1] + 1)
    stops = feeds - ((feeds > starts) & (buffer[feeds - 1] == _CR))
    is_short = feeds - starts <= LONGEST
    is_regular = is_short & (fields == number_of_fields)
    lines = np.flatnonzero(is_regular)
    # A field lies between two delimiters, or between a delimiter and an end of its line.
    inner_marks = marks[np.repeat(is_regular, fields)].reshape(-1, number_of_fields)[:, :-1]
    begins = np.column_stack([starts[lines], inner_marks + 1])
    ends = np.column_stack([inner_marks, stops[lines]])
    quotes = np.flatnonzero(buffer == _QUOTE)
    if len(quotes):
        is_wrapped, is_unquoted = _find_wrapped_fields(buffer, quotes, begins, ends)
        is_plain = (is_wrapped | is_unquoted).all(axis=1)
        has_hard_quotes = np.zeros(len(feeds), dtype=np.bool_)
        has_hard_quotes[np.searchsorted(feeds, quotes)] = True
        has_hard_quotes[lines[is_plain]] = False
        records: dict[int, list[bytes]] = {}
        for line in np.flatnonzero(has_hard_quotes & is_short).tolist():
            record = split_line(block[starts[line] : stops[line]], delimiter, number_of_fields)
            if record is not None and len(record) == number_of_fields:
                records[line] = record
        buffer, begins, ends = _append_records(
            block,
            records,
            lines[is_plain],
            (begins + is_wrapped)[is_plain],
            (ends - is_wrapped)[is_plain],
        )
    return (
        len(begins),
        buffer,
        [(begins[:, position], ends[:, position]) for position in column_positions],
    )


def _find_wrapped_fields(
    buffer: Bytes, quotes: IntArray, begins: IntArray, ends: IntArray
) -> tuple[BoolArray, BoolArray]:
    """Return which fields are inside one pair of quotes, and which have no quote.

    Args:
        buffer: the bytes of a block.
        quotes: the positions of all quotes in it.
        begins: the start of each field; one row for each line.
        ends: the end of each field, with the same shape.
    """
    number_of_quotes = np.searchsorted(quotes, ends) - np.searchsorted(quotes, begins)
    is_wrapped = (
        (number_of_quotes == 2)
        & (ends - begins >= 2)
        & (buffer[begins] == _QUOTE)
        & (buffer[ends - 1] == _QUOTE)
    )
    return is_wrapped, number_of_quotes == 0


def _append_records(
    block: bytes,
    records: Mapping[int, Sequence[bytes]],
    lines: IntArray,
    begins: IntArray,
    ends: IntArray,
) -> tuple[Bytes, IntArray, IntArray]:
    """Append the fields of further records to a block.

    Args:
        block: the bytes of a block.
        records: the unquoted fields of further records, by the number of their line.
        lines: the numbers of the lines whose fields are in the block.
        begins: the start of each of these fields; one row for each line.
        ends: the end of each of these fields, with the same shape.

    Returns:
        The bytes of the block and of the further fields; and the start and the end of each field in
        them, one row for each record, in the order of the lines.
    """
    texts = list(chain.from_iterable(records.values()))
    lengths = np.array([len(field) for field in texts], dtype=np.int64)
    next_ends = len(block) + np.cumsum(lengths)
    next_begins = next_ends - lengths
    shape = (-1, begins.shape[1])
    order = np.argsort(np.append(lines, np.array([*records], dtype=np.int64)))
    all_begins = np.vstack([begins, next_begins.reshape(shape)])[order]
    all_ends = np.vstack([ends, next_ends.reshape(shape)])[order]
    return np.frombuffer(b"".join([block, *texts]), dtype=np.uint8), all_begins, all_ends


def plain_lines(block: bytes, delimiter: bytes) -> bytes:
    r"""Remove CRs and quotes from a block if this changes no field.

    The CRs can be removed if each CR is directly before an LF. The quotes can be removed if each
    pair of quotes surrounds a whole field without a delimiter. Otherwise the block is returned
    unchanged.

    >>> plain_lines(b'"1",F\r\n2,""\r\n', b",")
    b'1,F\n2,\n'
    >>> plain_lines(b'"1,F"\n', b",")
    b'"1,F"\n'
    """
    if len(block) > LONGEST or not (b"\r" in block or b'"' in block):
        return block
    buffer = np.frombuffer(block, dtype=np.uint8)
    is_feed = buffer == _LF
    is_return = buffer == _CR
    # The last byte of a block is an LF.
    if (is_return[:-1] & ~is_feed[1:]).any():
        return block
    if b'"' not in block:
        return block.translate(None, b"\r")
    is_quote = buffer == _QUOTE
    is_mark = is_feed | (buffer == ord(delimiter))
    is_inside = np.logical_xor.accumulate(is_quote)
    opens = is_quote & is_inside
    closes = is_quote & ~is_inside
    if (opens[1:] & ~is_mark[:-1]).any():
        return block
    is_mark |= is_return
    if (closes[:-1] & ~is_mark[1:]).any() or (is_inside & is_mark).any():
        return block
    return block.translate(None, b'\r"')


def parse_plain_lines(
    block: bytes, delimiter: str, number_of_fields: int, column_positions: Sequence[int]
) -> list[Column] | None:
    r"""Split a block without quotes with PyArrow; None if this is impossible.

    This method is faster than `parse_lines`. If the result is None, `parse_lines` must split the
    block. The result is None for a block with a quote, with a CR, with a byte order mark at its
    beginning, or with an empty line that is not a record. If another line of the block is not a
    record, the result is None too, because PyArrow refuses such a block.

    >>> [list(column.data) for column in parse_plain_lines(b"1,F\n2,\n", ",", 2, [1])]
    [[b'', b'F']]
    >>> parse_plain_lines(b"1,F\n2\n", ",", 2, [1])
    """
    import pyarrow as pa
    from pyarrow import csv

    if len(block) > LONGEST or not column_positions or block.startswith(codecs.BOM_UTF8):
        return None
    if b'"' in block or b"\r" in block:
        return None
    buffer = np.frombuffer(block, dtype=np.uint8)
    is_feed = buffer == _LF
    # Pyarrow would read an empty line as a record.
    if number_of_fields > 1 and (is_feed[:1].any() or (is_feed[1:] & is_feed[:-1]).any()):
        return None
    rows = int(np.count_nonzero(is_feed))
    if np.count_nonzero(buffer == ord(delimiter)) != rows * (number_of_fields - 1):
        return None
    names = [str(position) for position in range(number_of_fields)]
    column_names = [names[position] for position in column_positions]
    try:
        table = csv.read_csv(
            pa.BufferReader(block),
            csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
            csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(
                column_types=dict.fromkeys(column_names, pa.large_binary()),
                include_columns=list(dict.fromkeys(column_names)),
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:  # some line is not a record; the text of pyarrow's error may quote it
        return None
    if table.num_rows != rows:
        return None
    return [TextColumn(_whole_array(table.column(name))) for name in column_names]


def _whole_array(column: Any) -> Any:
    """Concatenate the chunks of an Arrow column; a single chunk is not copied."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks()


def to_texts(text: Bytes, begins: IntArray, ends: IntArray) -> Column:
    r"""Return a column whose values are slices of one block of bytes.

    ``begins`` and ``ends`` are the offsets of the slices. The block must have `WORD` additional
    bytes at its end.

    >>> column = to_texts(
    ...     np.frombuffer(b"F,M,F" + bytes(WORD), dtype=np.uint8),
    ...     np.array([0, 2, 4]),
    ...     np.array([1, 3, 5]),
    ... )
    >>> list(column.data), column.index.tolist()
    ([b'F', b'M'], [0, 1, 0])
    """
    import pyarrow as pa

    lengths = ends - begins
    if lengths.max(initial=0) < WORD:
        words, index = distinct_words(words_of(text, begins, lengths))
        return Column(word_texts(words), None, index)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    gathered = text[np.repeat(begins - starts[:-1], lengths) + np.arange(starts[-1])]
    parts = [None, pa.py_buffer(starts), pa.py_buffer(gathered)]
    return TextColumn(pa.Array.from_buffers(pa.large_binary(), len(begins), parts))


def open_csv(path: Path, layout: CSV | None = None) -> Source:
    """Open a CSV file as a `Source`; only the header is read.

    Without a layout, the file is UTF-8 with a header. The delimiter is the most frequent character
    in the header among comma, semicolon, tab and bar. Raises an `InputError` if the file cannot be
    opened, or if its first line is not a header.
    """
    description = message(CSV_FILE, path=str(path))
    layout = layout or CSV(path)
    headed = isinstance(layout.header, bool)
    characters = layout.characters
    if characters is not None and (type(characters) is not str or len(characters) != 256):
        raise InternalError("an encoding must be one character for each byte; please report this.")
    # Without a header the first line is a row, which must not influence how rows are read.
    line = ""
    if headed:
        line = _first_line(path, description, layout)
    mark = layout.delimiter or _delimiter_of(line, path)
    delimiter = mark.encode()
    # A delimiter must not be a byte that ends lines or fields.
    if len(delimiter) != 1 or delimiter in b'"\r\n':
        raise InternalError(
            "a delimiter must be one byte that does not end a line; please report this."
        )
    if isinstance(layout.header, bool):
        names = _column_names_in(line, mark, description)
    else:
        names = [*layout.header]

    def parts(columns: list[str]) -> Iterator[Part]:
        """Yield a function for each block of lines that splits it into columns."""
        positions = [names.index(name) for name in columns]

        def in_columns(block: bytes) -> Chunk[Column]:
            """Split a block of lines into the requested columns."""
            # The method `bytes.count` takes ten times as long.
            lines = int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == _LF))
            rows = lines
            plain = plain_lines(block, delimiter)
            read = parse_plain_lines(plain, mark, len(names), positions)
            if read is None:
                rows, text, fields = parse_lines(block, delimiter, len(names), positions)
                text = np.append(text, np.zeros(WORD, dtype=np.uint8))
                read = [to_texts(text, *field) for field in fields]
            if characters is not None:
                read = [_decode_column(column, characters) for column in read]
            return Chunk(rows, read, lines - rows)

        try:
            with open_binary(path) as opened:
                if headed:
                    opened.readline(_MOST_HEADER_BYTES + 1)
                for block in whole_lines(opened.read):
                    yield partial(in_columns, block)
        except DAMAGED:
            raise InputError(message(NOT_WHOLE, what=description)) from None

    fields = tuple(SchemaField(name=name) for name in names)
    return Source(
        description=description, fields=fields, total=None, encoded=by_parts(parts), delimiter=mark
    )


def _delimiter_of(header: str, path: Path) -> str:
    """Return the delimiter that occurs most often in a header, outside quotes."""
    outside_quotes = _QUOTED_NAME.sub("", header)
    candidates = _DELIMITERS
    if ".tsv" in path.name.lower():
        candidates = "\t" + _DELIMITERS
    return max(candidates, key=outside_quotes.count)


def _column_names_in(header: str, delimiter: str, description: str) -> list[str]:
    """Split the header line of a CSV file into column names.

    Raises:
        InputError: the text is not a header; the message states the reason.
    """
    fields = split_line(header.encode(), delimiter.encode())
    reason = ""
    if any(ord(character) < 32 and character not in {"\t", delimiter} for character in header):
        reason = NO_TEXT_HEADER
    elif fields is None:
        *_, last_name = re.split(_NAME_START % re.escape(delimiter), header)
        is_open = last_name.replace('""', "").count('"') == 0
        reason = MISQUOTED_HEADER
        if is_open:
            reason = BROKEN_HEADER
    elif not any(fields):
        reason = EMPTY_HEADER
    if fields is None or reason:
        raise InputError(message(reason, what=description))
    return [field.decode() for field in fields]


def _decode_column(column: Column, decoding_table: str) -> Column:
    """Decode a column of bytes by a table of 256 characters.

    ASCII bytes stay unchanged if the table agrees with ASCII.
    """
    data = column.data
    if isinstance(data, DistinctTexts) and decoding_table[:_ASCII] == _ASCII_TABLE:
        content, _ = data.bytes_and_starts()
        if (content < _ASCII).all():
            return column
    return Column([_decode_bytes(raw, decoding_table) for raw in data], None, column.index)


def _decode_bytes(raw: Any, decoding_table: str) -> object:
    """Decode one byte string by a table of 256 characters.

    The result is `UNSUPPORTED` if a byte has no character (U+FFFE).
    """
    # This mapping cannot fail for any bytes.
    decoded = codecs.charmap_decode(raw, "replace", decoding_table)[0]
    return UNSUPPORTED if "\ufffd" in decoded else decoded


# The first bytes of files that are not CSV, or are in an unsupported encoding.
_BEGINNINGS = {
    b"\x1f\x8b": "a gzip file",
    b"PK\x03\x04": "a ZIP file or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"PAR1\x15": "a Parquet file",
    b"ARROW1\x00": "an Arrow file",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}


def _first_line(path: Path, description: str, layout: CSV) -> str:
    """Read the header line of a CSV file as text."""
    try:
        with open_binary(path) as opened:
            line: bytes = opened.readline(_MOST_HEADER_BYTES)
    except DAMAGED:
        raise InputError(message(NO_CSV, what=description)) from None
    for beginning, form in _BEGINNINGS.items():
        if line.startswith(beginning):
            encoding = layout.encoding.upper()
            raise InputError(message(OTHER_FORMAT, what=description, encoding=encoding, form=form))
    if len(line) == _MOST_HEADER_BYTES:
        raise InputError(message(LONG_HEADER, what=description, most=_MOST_HEADER_BYTES))
    try:
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if layout.characters is None:
            return line.decode("utf-8-sig")
        return codecs.charmap_decode(line, "strict", layout.characters)[0]
    except UnicodeDecodeError:
        raise InputError(
            message(OTHER_ENCODING, what=description, encoding=layout.encoding.upper())
        ) from None


CSV_FILES = FileKind(
    name="CSV",
    endings=(".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"),
    open=open_csv,
    rows_are_lines=True,
)


def open_parquet(path: Path) -> Source:
    """Open a Parquet file as a `Source`; only its metadata are read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    description = message(PARQUET_FILE, path=str(path))
    try:
        # Old files have time stamps that do not fit into 64 bits of nanoseconds.
        opened = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise InputError(message(NO_PARQUET, what=description)) from None
    schema = opened.schema_arrow

    def not_whole() -> InputError:
        """Return the error for a damaged file, without PyArrow's message."""
        # The text of PyArrow's own errors may quote the file.
        return InputError(message(NOT_WHOLE, what=description))

    def cut(part: Part) -> Chunk[Column]:
        """Convert a part of the file to columns."""
        try:
            return part()
        except (pa.ArrowException, OSError):
            raise not_whole() from None

    def parts(columns: list[str]) -> Iterator[Part]:
        """Yield a function for each batch of rows that converts it to columns."""
        batches = opened.iter_batches(batch_size=CHUNK, columns=columns)
        try:
            for part in batch_parts(batches, [(name, to_column) for name in columns]):
                yield partial(cut, part)
        except (pa.ArrowException, OSError):
            raise not_whole() from None

    return Source(
        description=description,
        fields=arrow_fields(schema),
        total=opened.metadata.num_rows,
        encoded=by_parts(parts),
        holds=arrow_value_types(schema),
    )


PARQUET_FILES = FileKind(name="Parquet", endings=(".parquet",), open=open_parquet)


# All supported kinds of files. A new kind is one more entry.
KINDS = (
    CSV_FILES,
    PARQUET_FILES,
)
# Hive's name of the folder for rows without a value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def find_two_forms(paths: Iterable[Path], endings: Sequence[str]) -> tuple[Path, Path] | None:
    """Return two files whose names differ only in the ending, or None.

    >>> find_two_forms([Path("a.csv"), Path("b.csv"), Path("a.csv.gz")], (".csv", ".csv.gz"))
    (PosixPath('a.csv'), PosixPath('a.csv.gz'))
    """
    by_stem: dict[Path, Path] = {}
    for path in paths:
        name = path.name.lower()
        longest = max((ending for ending in endings if name.endswith(ending)), key=len, default="")
        stem = path.with_name(f"_{name.removesuffix(longest)}")
        if stem in by_stem:
            return by_stem[stem], path
        by_stem[stem] = path
    return None


def _fixed_folder(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a file, or of a pattern up to its wildcards."""
    root = Path(os.fsdecode(path))
    start = root
    if not root.exists():
        start = next(up for up in (root, *root.parents) if not glob.has_magic(str(up)))
    return Path(os.path.abspath(start))  # noqa: PTH100


def _check_files(
    path: str | os.PathLike[str], files: Sequence[Path], kind: FileKind, below: Path
) -> None:
    """Raise an error unless all files are valid.

    The files must be below the path and of one kind, and no file may be listed twice.
    """
    others = [file for file in files if not _absolute(file).is_relative_to(below)]
    if (
        others
        or kind not in KINDS
        or not all(file.name.lower().endswith(kind.endings) for file in files)
    ):
        raise InternalError(
            "the files of a source must be below its path and of the kind that their names say; "
            "please report this."
        )
    # If a file were read twice, each row would count twice.
    entries = [file.stat() for file in files]
    if len({(entry.st_dev, entry.st_ino) for entry in entries}) < len(files):
        raise InputError(message(ONE_FILE_TWICE, path=os.fsdecode(path)))
    if twins := find_two_forms(files, kind.endings):
        first_form, second_form = map(str, twins)
        raise InputError(message(SAME_FILE_IN_TWO_FORMS, first=first_form, second=second_form))


def open_files(path: str | os.PathLike[str] | CSV) -> Source:
    """Open all files of a path or pattern as one `Source`.

    Raises:
        InputError: as for `find_files`; or a file is listed twice, the files do not have the same
            columns, or there is a layout for files that are not CSV.
        InternalError: a file is neither the path itself, nor below the path or the fixed beginning
            of the pattern; or its kind does not match its name.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv"):
    ...         _ = Path(folder, name).write_text("age,sex")
    ...     open_files(folder).names
    ('age', 'sex')
    """
    layout = None
    if isinstance(path, CSV):
        layout = path
        path = path.path
    matched = find_files(path, KINDS)
    kind = matched[0][1]  # all files have the same kind
    below = _fixed_folder(path)
    _check_files(path, [file for file, _ in matched], kind, below)
    if layout is not None and not kind.rows_are_lines:
        raise InputError(message(NO_CSV_LAYOUT, path=os.fsdecode(path)))
    check_files_without_names(path, [file for file, _ in matched], layout)

    def open_one(file: Path) -> Source:
        """Open one of the files, and add the columns that its folders' names state."""
        if kind.rows_are_lines:
            opened = kind.open(file, layout)
        else:
            opened = kind.open(file)
        return with_folders(opened, folder_values(_absolute(file).relative_to(below)))

    if len(matched) == 1:
        return open_one(matched[0][0])
    # Only these facts are kept and no file stays open, because a process may open only a limited
    # number of files.
    first: Source | None = None
    fields: dict[str, SchemaField] = {}
    types: list[Mapping[str, Holds]] = []
    described: dict[Path, SourceFile] = {}
    total: int | None = 0
    for file, _ in matched:
        opened = open_one(file)
        if first is None:
            first = opened
        _check_same_columns(opened, first)
        fields |= {
            field.name: _common_field(fields.get(field.name, field), field)
            for field in opened.fields
        }
        types.append(opened.holds)
        name = _absolute(file).relative_to(below).as_posix()
        described[file] = SourceFile(name=name, values=opened.constants)
        if total is None or opened.total is None:
            total = None
        else:
            total += opened.total

    source = Source(
        description=f"the source of {len(matched)} files {os.fsdecode(path)!r}",
        fields=tuple(fields[name] for name in (first.names if first else ())),
        total=total,
        encoded=_read_in_turn(described, open_one),
        delimiter=first.delimiter if first else None,
        holds=common_value_types(types),
    )

    def restrict_files(is_read: Callable[[SourceFile], bool]) -> Source:
        """Return a source that has only the files that a function selects."""
        files = [file for file, description in described.items() if is_read(description)]
        return replace(source, total=None, encoded=_read_in_turn(files, open_one))

    return replace(source, restrict_files=restrict_files)


def _check_same_columns(opened: Source, first: Source) -> None:
    """Raise `InputError` if two files of a source have different columns."""
    if sorted(opened.names) != sorted(first.names):
        names = ", ".join(map(repr, sorted({*opened.names} ^ {*first.names})))
        raise InputError(
            message(OTHER_COLUMNS, what=opened.description, first=first.description, names=names)
        )


def _read_in_turn(
    files: Iterable[Path], open_one: Callable[[Path], Source]
) -> Callable[[Encoders], Chunks[IntArray]]:
    """Return a reader that reads the rows of several files, file by file."""

    def encoded(encoders: Encoders) -> Chunks[IntArray]:
        """Yield the encoded chunks of each file in turn."""
        for file in files:
            yield from open_one(file).encoded(encoders)

    return encoded


def _absolute(path: Path) -> Path:
    """Return the absolute path without following symbolic links."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed


def _common_field(first: SchemaField, other: SchemaField) -> SchemaField:
    """Merge two files' schema entries of a column that both of them have."""
    if not other.readable:
        first = replace(first, type_name=other.type_name, readable=False)
    return replace(
        first,
        required=first.required and other.required,
        zone=first.zone if other.zone is None or first.zone else other.zone,
    )


def folder_values(relative_path: Path) -> dict[str, str | None]:
    """Parse folder names such as ``year=2024`` into columns with one value.

    Args:
        relative_path: the file's path relative to the path of the source.

    >>> folder_values(Path("year=2024/region=01/part-0.parquet"))
    {'year': '2024', 'region': '01'}
    """
    values: dict[str, str | None] = {}
    for folder in relative_path.parts[:-1]:
        name, mark, value = folder.partition("=")
        if mark and name:
            if value == _NO_VALUE:
                values[_decode_percent(name)] = None
            else:
                values[_decode_percent(name)] = _decode_percent(value)
    return values


def _decode_percent(text: str) -> str:
    """Replace escapes such as ``%20`` in a text by the encoded characters."""
    raw = re.sub(rb"%([0-9A-Fa-f]{2})", lambda code: bytes.fromhex(code[1].decode()), text.encode())
    return raw.decode(errors="replace")


def with_folders(source: Source, values: Mapping[str, str | None]) -> Source:
    """Add columns to a file's source that have one value in all its rows.

    If the file itself has a column of this name, that column is not replaced.

    Guarantees: the value of a row is a text in the path of its file, so the added column depends on
        no other row.
    """
    added = {name: value for name, value in values.items() if name not in source.names}
    if not added:
        return source

    def encoded(encoders: Encoders) -> Chunks[IntArray]:
        """Yield the encoded chunks of the file, with the added columns."""
        file_encoders = [pair for pair in encoders if pair[0] not in added]
        for rows, columns, malformed in source.encoded(file_encoders):
            everywhere = np.zeros(rows, dtype=np.int64)
            next_column = iter(columns)
            new_columns = [
                encode(Column([added[name]], None, everywhere))
                if name in added
                else next(next_column)
                for name, encode in encoders
            ]
            yield Chunk(rows, new_columns, malformed)

    fields = [SchemaField(name=name, type_name="text of folders' names") for name in added]
    return replace(source, fields=(*source.fields, *fields), encoded=encoded, constants=added)
