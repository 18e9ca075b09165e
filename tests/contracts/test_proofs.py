"""Labels of proofs and of code agree, and every trusted file has a proof."""

import re

import pytest

from contracts.proofs import Proved, pages, proved
from contracts.trusted import FOLDER, trusted_files

PROVED = list(proved())


def name_of(parameter):
    return " ".join(parameter.names) if isinstance(parameter, Proved) else parameter.name


def labels_of(page):
    """Return the labels that a page proves: in bold or in a heading, not in its lists."""
    text = page.read_text("utf-8")
    emphasised = re.findall(r"(?<!^- )\*\*([^*]+)\*\*", text, flags=re.MULTILINE) + re.findall(
        r"^## (.*)$", text, flags=re.MULTILINE
    )
    return {label for text_part in emphasised for label in re.findall(r"\b[A-Z]\d\b", text_part)}


def cited(page):
    """Return the page and the pages that it builds on."""
    named = set(re.findall(r"PROOFS-[\w-]+\.md", page.read_text("utf-8")))
    return {page, *(page_of_proofs for page_of_proofs in pages() if page_of_proofs.name in named)}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_label_of_a_proof_stands_in_the_code(page):
    texts = [entry.file.read_text("utf-8") for entry in PROVED if entry.page == page]
    assert texts
    missing = {
        label
        for label in labels_of(page)
        if not any(re.search(rf"\b{label}\b", text) for text in texts)
    }
    assert not missing, (
        f"{page.name} has the labels {sorted(missing)}, which no file of its table names. Name a "
        "label where the code relies on it, or remove it from the page."
    )


@pytest.mark.parametrize("file", sorted({entry.file for entry in PROVED}), ids=name_of)
def test_every_label_in_the_code_is_proved(file):
    about = {page for entry in PROVED if entry.file == file for page in cited(entry.page)}
    labels = set().union(*map(labels_of, about))
    letters = "".join(
        sorted(
            {
                label[0]
                for page in {entry.page for entry in PROVED if entry.file == file}
                for label in labels_of(page)
            }
        )
    )
    used = set(re.findall(rf"\b([{letters}]\d)\b", file.read_text("utf-8"))) if letters else set()

    unproved = sorted(used - labels)
    assert not unproved, (
        f"{file.name} names {unproved}, which are not labels of its proof pages. Add the statement "
        "to the page, or correct the label."
    )


def test_every_trusted_file_has_a_proof():
    named = {entry.file for entry in PROVED}
    files = {FOLDER / file for file in trusted_files()}
    assert sorted(path.relative_to(FOLDER).as_posix() for path in files - named) == []
