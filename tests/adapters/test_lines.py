"""Lines and fields of CSV, at once by arithmetic, against the rule applied to every line by itself."""

import io
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._adapters import _lines
from leastnoise._adapters._lines import cut, split, whole_lines

PIECES = st.sampled_from(
    [b"a", b"bc", b",", b",,", b'"', b'""', b'"x"', b',"y",', b"\r", b"\n", b"\r\n", b"\r\r\n", b"\xff", b"\0", b"\x1f", b";", b"long" * 5]
)


def by_hand(content, delimiter, width, longest):
    """The rule, line by line."""
    *lines, rest = content.split(b"\n")
    records = []
    for line in [*lines, *([rest] if rest else [])]:
        fields = split(line.removesuffix(b"\r"), delimiter)
        if len(line) <= longest and fields is not None and len(fields) == width:
            records.append(tuple(fields))
    return records


def at_once(content, delimiter, width, places):
    records = []
    for block in whole_lines(io.BytesIO(content).read):
        rows, columns = cut(block, delimiter, width, places)
        texts = [[text[start:end].tobytes() for start, end in pairwise(starts)] for starts, text in columns]
        records += zip(*texts, strict=True) if places else [()] * rows
    return records


@given(st.lists(PIECES, max_size=60).map(b"".join), st.integers(1, 3), st.sampled_from([1, 3, 17, 2**20]), st.sampled_from([9, 2_000_000]))
@settings(max_examples=500, deadline=None)
def test_blocks_of_lines_are_cut_as_each_line_by_itself(content, width, block, longest):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lines, "BLOCK", block)
        patch.setattr(_lines, "LONGEST", longest)
        expected = by_hand(content, b",", width, longest)
        assert at_once(content, b",", width, range(width)) == expected
        assert at_once(content, b",", width, [width - 1]) == [record[-1:] for record in expected]
        assert at_once(content, b",", width, []) == [()] * len(expected)


@given(st.lists(PIECES, max_size=40).map(b"".join), PIECES.map(lambda line: line.replace(b"\n", b"")), st.integers(1, 3))
@settings(max_examples=300, deadline=None)
def test_one_more_line_is_at_most_one_more_record(content, line, width):
    lines = content.split(b"\n")
    before = at_once(content, b",", width, range(width))
    for place in {0, len(lines) // 2}:
        more = b"\n".join([*lines[:place], line, *lines[place:]])
        after = at_once(more, b",", width, range(width))
        assert len(after) - len(before) in {0, 1}
        if len(after) == len(before):
            assert after == before
        else:
            assert any([*after[:gone], *after[gone + 1 :]] == before for gone in range(len(after)))


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
def test_fields(line, fields):
    assert split(line, b",") == fields


def test_a_long_line_takes_time_in_proportion_to_its_length():
    assert split(b'"' + b'""' * 999_999, b",") is None
    assert split(b'"' + b'""' * 999_998 + b'"', b",") == [b'"' * 999_998]
    assert split(b'""' + b"," * 10**6, b",", 5) is None
