"""The proofs are about the code as it is, their labels stand in it, and every trusted file has a proof."""

import re
from pathlib import Path

import pytest
from contracts.proofs import ROOT, Proved, complaint, pages, proved, recorded
from contracts.trusted import FOLDER, TRUSTED, lines_of_code

from contracts import proofs

PROVED = list(proved())


def name_of(one: Proved | Path) -> str:
    return " ".join(one.names) if isinstance(one, Proved) else one.name


def labels_of(page: Path) -> set[str]:
    """Labels that a page proves: those in bold or in a heading; not the assumptions, which are the items of a list."""
    text = page.read_text("utf-8")
    found = re.findall(r"(?<!^- )\*\*([^*]+)\*\*", text, flags=re.MULTILINE) + re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    return {label for part in found for label in re.findall(r"\b[A-Z]\d\b", part)}


def cited(page: Path) -> set[Path]:
    """The page and those that it builds on."""
    named = set(re.findall(r"PROOFS-[\w-]+\.md", page.read_text("utf-8")))
    return {page, *(other for other in pages() if other.name in named)}


@pytest.mark.parametrize("one", PROVED, ids=name_of)
def test_the_proof_was_read_for_this_code(one):
    found = complaint(one, recorded())
    assert found is None, found


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_label_of_a_proof_stands_in_the_code(page):
    texts = [one.file.read_text("utf-8") for one in PROVED if one.page == page]
    assert texts
    missing = {label for label in labels_of(page) if not any(re.search(rf"\b{label}\b", text) for text in texts)}
    assert missing == set()


@pytest.mark.parametrize("file", sorted({one.file for one in PROVED}), ids=name_of)
def test_every_label_in_the_code_is_proved(file):
    about = {page for one in PROVED if one.file == file for page in cited(one.page)}
    labels = set().union(*map(labels_of, about))
    letters = "".join(sorted({label[0] for page in {one.page for one in PROVED if one.file == file} for label in labels_of(page)}))
    used = set(re.findall(rf"\b([{letters}]\d)\b", file.read_text("utf-8"))) if letters else set()
    assert used - labels == set()


def test_every_trusted_file_has_a_proof():
    named = {one.file for one in PROVED}
    files = {FOLDER / name for name, _ in lines_of_code() if name.split("/")[0] in TRUSTED and not name.endswith("__init__.py")}
    assert sorted(path.relative_to(FOLDER).as_posix() for path in files - named) == []


def test_nothing_is_recorded_that_no_page_names():
    assert {(page, file) for page, files in recorded().items() for file in files} == {one.names for one in PROVED}


def test_a_changed_line_is_seen_and_a_changed_comment_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(proofs, "ROOT", tmp_path)
    page, file = tmp_path / "PROOFS-x.md", tmp_path / "x.py"
    file.write_text("def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    whole, part = Proved(page, file, ()), Proved(page, file, ("f",))
    before = (whole.digest(), part.digest())
    file.write_text('"""Doc."""\n\n\ndef f():\n    # why\n    return 1\n\n\ndef g():\n    return 2\n')
    assert (whole.digest(), part.digest()) == before
    file.write_text("def f():\n    return 1\n\n\ndef g():\n    return 3\n")
    assert whole.digest() != before[0]
    assert part.digest() == before[1]
    record = {"PROOFS-x.md": {"x.py": before[0]}}
    assert complaint(whole, record) == (
        "x.py was changed since PROOFS-x.md was read for it: read the proof against the code again, mend either, then `make proofs`"
    )
    assert complaint(Proved(page, file, ("f",)), {"PROOFS-x.md": {"x.py": before[1]}}) is None


def test_the_record_is_of_this_tree():
    assert proofs.RECORD.is_relative_to(ROOT)
