"""Tests that docs/published-fields.md gives a reason for exactly the fields that are written."""

import pytest

from session.published_fields import (
    LIST,
    RARE,
    entries_with_reasons,
    entry_of_field,
    key_paths,
    listed_fields,
    row_of_field,
    written_fields,
)

PAGE = (
    "## Why each field is public\n| ledger | `a`, `b.*`, `b.c` | why |\n| x | d | why |\n## next\n"
    "| ledger | `e` | why |\n"
)


@pytest.mark.slow
def test_every_written_field_is_listed(tmp_path):
    written = written_fields(tmp_path)
    listed = listed_fields(LIST.read_text(encoding="utf-8")).keys()
    assert sorted(written - listed) == []
    assert sorted(listed - written - RARE) == []


def test_every_listed_field_has_a_reason():
    text = LIST.read_text(encoding="utf-8")
    entries = entries_with_reasons(text)
    listed = listed_fields(text)
    assert listed == {field: entry_of_field(*field, entries) for field in listed}
    used = {(kind, entry) for (kind, _), entry in listed.items()}
    assert sorted(set(entries) - used) == []
    assert len(set(entries)) == len(entries)


def test_new_published_field_is_detected():
    assert set(key_paths({"a": [{"b": 1}, {"c": {"d": 2}}]})) == {"a", "a.b", "a.c", "a.c.d"}
    entries = entries_with_reasons(PAGE)
    assert entries == [("ledger", "a"), ("ledger", "b.*"), ("ledger", "b.c")]
    fields = ("a", "a.b", "b", "b.c", "b.c.d", "b.e")
    found = [entry_of_field("ledger", field, entries) for field in fields]
    assert found == ["a", None, "b.*", "b.c", "b.*", "b.*"]
    assert entry_of_field("index", "a", entries) is None


def test_stated_options_share_one_row():
    assert row_of_field("manifest", "options.title") == ("manifest", "options.*")
    for kind, field in [
        ("manifest", "options.unknown"),
        ("manifest", "options.searches"),
        ("plan", "options.title"),
    ]:
        assert row_of_field(kind, field) == (kind, field)
