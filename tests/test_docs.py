"""The documentation is about the code as it is."""

import re
from pathlib import Path

from docs import architecture

import leastnoise as ln

ROOT = Path(__file__).parents[1]


def test_the_picture_of_the_architecture_is_the_code():
    assert architecture.PICTURE.read_text("utf-8") == architecture.picture(), "run `make pictures`"


def test_the_table_of_folders_is_the_code():
    text = architecture.PAGE.read_text("utf-8")
    assert text == architecture.page(text), "run `make pictures`"
    assert len(list(architecture.folders())) > 20


def test_the_picture_sees_a_new_import(monkeypatch):
    before = architecture.picture()
    monkeypatch.setattr(architecture, "imports", lambda: {("_cli", "_table")})
    assert architecture.picture() != before


def test_every_public_name_is_in_the_reference():
    shown = re.findall(r"^::: leastnoise\.(\w+)$", (ROOT / "docs" / "python.md").read_text("utf-8"), flags=re.MULTILINE)
    assert sorted(shown) == sorted(ln.__all__)


def test_every_folder_of_the_tree_is_in_the_page_of_the_architecture():
    page = architecture.PAGE.read_text("utf-8")
    folders = {path.relative_to(ROOT).parts[0] for path in ROOT.glob("*/**/*.py") if not path.relative_to(ROOT).parts[0].startswith(".")}
    assert {name for name in folders - {"build", "site", "src"} if f"| `{name}` |" not in page} == set()
