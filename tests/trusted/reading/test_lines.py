"""Lines and fields of CSV, against the rule applied line by line."""

import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._trusted.reading import _files, _lines
from leastnoise._trusted.reading._files import (
    WORD,
    parse_lines,
    parse_plain_lines,
    plain_lines,
    split_line,
    to_texts,
)
from leastnoise._trusted.reading._lines import whole_lines

ODD = [
    b"a",
    b"bc",
    b",",
    b",,",
    b'"',
    b'""',
    b'"x"',
    b',"y",',
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\r\n",
    b"\xff",
    b"\0",
    b"\x1f",
    b";",
]
PIECES = st.sampled_from([*ODD, b"1234567", b"12345678", b"long" * 5])
# Bytes behind the fields do not change them.
BEHIND = np.full(WORD, 255, dtype=np.uint8)


def by_hand(content, delimiter, width, longest):
    """Apply the rule line by line."""
    *lines, unfinished = content.split(b"\n")
    records = []
    for line in [*lines, *([unfinished] if unfinished else [])]:
        fields = split_line(line.removesuffix(b"\r"), delimiter)
        if len(line) <= longest and fields is not None and len(fields) == width:
            records.append(tuple(fields))
    return records


def texts_of(columns):
    return [[column.data[place] for place in column.index] for column in columns]


def records_of_blocks(content, delimiter, width, places):
    """Return the records that are read in blocks, and compare both parsers of a block."""
    records = []
    for block in whole_lines(io.BytesIO(content).read):
        rows, text, fields = parse_lines(block, delimiter, width, places)
        columns = [to_texts(np.append(text, BEHIND), *field) for field in fields]
        texts = texts_of(columns)
        plain = parse_plain_lines(block, delimiter.decode(), width, places)
        assert plain is None or texts_of(plain) == texts
        records += zip(*texts, strict=True) if places else [()] * rows
    return records


@given(
    st.lists(PIECES, max_size=60).map(b"".join),
    st.integers(1, 3),
    st.sampled_from([1, 3, 17, 2**20]),
    st.sampled_from([9, 2_000_000]),
)
@settings(max_examples=80, deadline=None)
@pytest.mark.parametrize("delimiter", [b",", b"\\", b"]"])
def test_line_blocks_split_like_single_lines(delimiter, content, width, block, longest):
    content = content.replace(b",", delimiter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lines, "BLOCK", block)
        for module in (_files, _lines):
            patch.setattr(module, "LONGEST", longest)
        expected = by_hand(content, delimiter, width, longest)
        assert records_of_blocks(content, delimiter, width, range(width)) == expected
        assert records_of_blocks(content, delimiter, width, [width - 1]) == [
            record[-1:] for record in expected
        ]
        assert records_of_blocks(content, delimiter, width, []) == [()] * len(expected)


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("delimiter", [",", "\t", "\\", "]"])
def test_plain_lines_have_all_their_bytes(width, delimiter):
    """Cover blanks, byte order marks, NUL, invalid bytes, long fields and empty lines."""
    pieces = [b"", b"a", b" b ", b"\0", b"\xff", b"\x1f", b"\xef\xbb\xbf", b"'", b"#", b"long" * 99]
    generator = np.random.default_rng(width)
    for rows in (1, 2, 40):
        for _ in range(10):
            fields = generator.choice(np.array(pieces, dtype=object), (rows, width)).tolist()
            block = b"".join(delimiter.encode().join(line) + b"\n" for line in fields)
            columns = parse_plain_lines(block, delimiter, width, range(width))
            assert width == 1 or parse_plain_lines(block + b"\n", delimiter, width, [0]) is None
            if block.startswith(b"\xef\xbb\xbf"):
                assert columns is None
            else:
                assert texts_of(columns) == [list(column) for column in zip(*fields, strict=True)]
            assert parse_plain_lines(block + b'"\n', delimiter, width, [0]) is None
            assert parse_plain_lines(block + b"x\r\n", delimiter, width, [0]) is None


FIELDS = [b"", b"a", b"12345678", b'""', b'"a"', b'"12345678"', b'" "']
ENDS = [b"\n", b"\r\n"]


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(FIELDS), min_size=2, max_size=2), st.sampled_from(ENDS))
    ),
    st.integers(0, 200),
    st.sampled_from([b"", b'"', b'""', b"\r", b",", b"\n", b"\xef\xbb\xbf", b"\r\n"]),
)
@settings(max_examples=80, deadline=None)
def test_plain_lines_have_the_same_fields(lines, place, odd):
    """Files have CRs and quotes that are regular except in one place."""
    content = b"".join(b",".join(fields) + end for fields, end in lines)
    content = content[:place] + odd + content[place:] + b"\n"
    plain = plain_lines(content, b",")
    assert records_of_blocks(plain, b",", 2, [0, 1]) == by_hand(content, b",", 2, 99)
    columns = parse_plain_lines(plain, ",", 2, [0, 1])
    assert odd or not lines or columns is None  # the last line is empty
    columns = parse_plain_lines(plain[:-1], ",", 2, [0, 1])
    assert odd or not lines or (b'"' not in plain and columns is not None)


HARD = [
    b"a,b",
    b'"a,b",c',
    b'"a"b,c',
    b'"a',
    b'"a ""b""",c',
    b'a,"',
    b'"","x"',
    b'a,"b,c"',
    b'"a,b"',
]


@pytest.mark.parametrize("line", HARD)
def test_line_does_not_depend_on_its_neighbours(line):
    """Try all ways of quoting, valid and invalid."""
    for other_lines in itertools.product(HARD, repeat=2):
        content = b"\n".join((line, *other_lines, b""))
        assert records_of_blocks(content, b",", 2, [0, 1]) == by_hand(content, b",", 2, 99)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (b"", [b""]),
        (b",", [b"", b""]),
        (b'"a,b",c', [b"a,b", b"c"]),
        (b'"a ""b""",""', [b'a "b"', b""]),
        (b'a"b,c"', [b'a"b', b'c"']),
        (b'"a"b', None),
        (b'"a', None),
        (b'"a""', None),
        (b'a,"', None),
        (b'""""', [b'"']),
    ],
)
@pytest.mark.parametrize("delimiter", [b",", b"\\", b"]", b"^", b"-"])
def test_fields(line, fields, delimiter):
    """Include delimiters with a meaning in regular expressions."""
    expected = fields and [field.replace(b",", delimiter) for field in fields]
    assert split_line(line.replace(b",", delimiter), delimiter) == expected


def test_long_line_takes_linear_time():
    assert split_line(b'"' + b'""' * 999_999, b",") is None
    assert split_line(b'"' + b'""' * 999_998 + b'"', b",") == [b'"' * 999_998]
    assert split_line(b'""' + b"," * 10**6, b",", 5) is None


@pytest.mark.parametrize(
    "texts",
    [
        [b"a", b"\0", b"\xff", b"a"],
        [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0\0\0\0\0\0", b"\xff" * 7, b"1234567", b"a"],
        [b"", b"12345678", b"1234567", b"1234567\0", b"12345678"],
        [b"", b""],
        [],
    ],
)
def test_fields_are_compared_by_all_bytes(texts):
    text = np.frombuffer(b",".join(texts) + b"," * WORD, dtype=np.uint8)
    ends = np.cumsum([len(field) + 1 for field in texts], dtype=np.int64) - 1
    column = to_texts(text, ends - np.array([len(field) for field in texts], dtype=np.int64), ends)
    assert [column.data[place] for place in column.index] == texts
    assert len(column.data) == len(set(texts))
