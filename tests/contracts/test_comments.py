"""A comment on its own line is a sentence, a heading of a section or a label of a proof."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("baselines", "bench", "contracts", "docs", "examples", "experiments", "src", "tests")
HEADING = re.compile(r"--- .+ ---+")
LABEL = re.compile(r"\(?[A-Z]\d[a-z]?\)?")  # of a statement of a proof, such as (J3) or B3a
# Linters and pages read these.
MARKER = re.compile(r"\[/?page\]|ruff: .+")
# A period, or the colon before a list or a formula; a bracket or quotation mark may follow.
END = re.compile(r"[.?!:][)\"'`]*$")
# A sentence may begin with code, as in "epsilon = 3", but not with a plain word in lower case.
LOWER_CASE_WORD = re.compile(r"[a-z]+(?:, | (?!=))")


def stands_alone(text):
    """Return whether a line of a comment is a heading, a label or a marker."""
    return any(pattern.fullmatch(text) for pattern in (HEADING, LABEL, MARKER))


def comments_on_own_lines(source):
    """Return the first line and the text of each block of lines that begin with #.

    Such lines can also be within strings, as in a test that writes a file of TOML.
    """
    comments = []
    last_position = None
    for number, line in enumerate(source.splitlines(), start=1):
        if not line.lstrip().startswith("#"):
            continue
        text = line.strip().removeprefix("#").strip()
        column = line.index("#")
        continues = last_position == (number - 1, column) and not stands_alone(comments[-1][1])
        if continues and not stands_alone(text):
            first_line, begun = comments[-1]
            comments[-1] = (first_line, f"{begun} {text}")
        else:
            comments.append((number, text))
        last_position = (number, column)
    return comments


def lines_of_comments(source):
    """Return the numbers of the lines with a comment of Python."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0] for token in tokens if token.type == tokenize.COMMENT}


def is_allowed(text):
    """Return whether a comment is a sentence, a heading, a label or a marker."""
    if stands_alone(text):
        return True
    sentence = re.sub(rf"^{LABEL.pattern}: ", "", text)
    return bool(END.search(sentence)) and not LOWER_CASE_WORD.match(sentence)


def faulty_comments(source):
    """Return the first line and the text of each comment that the rule does not allow."""
    suspects = [
        (line, text) for line, text in comments_on_own_lines(source) if not is_allowed(text)
    ]
    if not suspects:
        return []
    # To find comments in all files by their tokens would take ten times as long.
    comment_lines = lines_of_comments(source)
    return [(line, text) for line, text in suspects if line in comment_lines]


@pytest.mark.parametrize("folder", FOLDERS)
def test_comments_are_sentences_headings_or_labels(folder):
    faults = {
        f"{path.relative_to(ROOT)}:{line}": text
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "node_modules" not in path.parts
        for line, text in faulty_comments(path.read_text(encoding="utf-8"))
    }
    assert faults == {}


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("Noise is drawn once.", True),
        ("Noise is drawn once", False),
        ("noise is drawn once.", False),
        ("epsilon = 3 over 3 queries.", True),
        ("`is` is faster than `==`.", True),
        ("The costs are (see the proof):", True),
        ("--- refusals ------", True),
        ("Refusals", False),
        ("(J3)", True),
        ("(J3): It is never reserved again.", True),
        ("(J3): never reserved again.", False),
        ("(J3): Never reserved again", False),
        ("ruff: noqa: F401", True),
    ],
)
def test_comments_that_are_no_sentences_are_found(text, allowed):
    assert is_allowed(text) == allowed


def test_lines_of_one_comment_are_read_together():
    source = """
# One sentence on
# two lines.
x = 1  # a phrase
# --- a heading ---
# Another sentence.
"""
    assert comments_on_own_lines(source) == [
        (2, "One sentence on two lines."),
        (5, "--- a heading ---"),
        (6, "Another sentence."),
    ]


def test_comments_within_strings_are_no_comments_of_python():
    source = """
spec = '''
# a comment of TOML
'''
# a fault
"""
    assert faulty_comments(source) == [(5, "a fault")]
