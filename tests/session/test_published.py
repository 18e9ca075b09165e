"""Every field that is written is in the list of docs/promise.md, with the reason why it is public, and nothing else is."""

import re
from pathlib import Path

from session.published import fields, published

# Only of a release with over ten million answers to intervals.
RARE = {("manifest", "answers.too_large_to_write")}
PAGE = Path(__file__).parents[2] / "docs" / "promise.md"


def listed(text: str) -> set[tuple[str, str]]:
    """The pairs of a kind of file and a field that the page names, each with a reason."""
    section = text.partition("### Every field")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| (`.*?) \| (\S.*?) \|$", section, flags=re.MULTILINE)
    return {(kind, field) for kind, names, _ in rows for field in re.findall(r"`([^`]+)`", names)}


def test_every_field_that_is_written_is_listed_with_its_reason_and_no_other(tmp_path: Path) -> None:
    found, said = published(tmp_path), listed(PAGE.read_text(encoding="utf-8"))
    assert sorted(found - said) == []
    assert sorted(said - found - RARE) == []


def test_a_new_field_is_seen() -> None:
    assert set(fields({"a": [{"b": 1}, {"c": {"d": 2}}]})) == {"a", "a.b", "a.c", "a.c.d"}
    assert listed("### Every field\n| ledger | `a`, `b.c` | why |\n| x | d | why |\n## next\n| ledger | `e` | why |\n") == {
        ("ledger", "a"),
        ("ledger", "b.c"),
    }
