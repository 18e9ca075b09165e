"""The ceiling on the lines that must be trusted, and that nothing trusted is left out of the count."""

import ast
from pathlib import Path

import pytest
from contracts.sources import code_lines
from contracts.trusted import CEILING, CHOOSES, FOLDER, TRUSTED, lines_of_code


def test_the_lines_that_must_be_trusted_are_below_the_ceiling():
    counted = dict(lines_of_code())
    total = sum(counted.values())
    assert total <= CEILING, f"{total} lines; `python -m contracts.trusted` lists them. Move out what need not be trusted."
    assert total > CEILING - 150, f"{total} lines: lower CEILING in contracts/trusted.py"


def imported_packages(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "leastnoise" else [node.module or ""]
        found |= {name.split(".")[1] for name in names if name.startswith("leastnoise.")}
    return found


def test_what_trusted_code_imports_is_counted_too():
    outside = {
        (path.relative_to(FOLDER).as_posix(), package)
        for path in (FOLDER / one for one in dict(lines_of_code()))
        for package in imported_packages(path) - set(TRUSTED)
    }
    assert outside == set()


def test_one_file_chooses_the_ledger_that_pays():
    """What makes and opens ledgers for payments is counted; a payment is made with what it gave (`contracts/wall.py` has the words)."""
    made = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("_session/*.py") if "Ledger.create(" in code_of(path)}
    paid = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py") if "Series.paid(" in code_of(path)}
    assert made == {CHOOSES}
    assert paid == {f"_session/{name}.py" for name in ("_session", "_categories", "_guard")}
    for path in paid - {"_session/_guard.py"}:  # which is given the ledger of the release
        assert "ledger_for(ledger, source, dataset, " in code_of(FOLDER / path)


def code_of(path: Path) -> str:
    return "\n".join(code_lines(path.read_text(encoding="utf-8")))


def test_only_code_is_counted():
    text = '"""Doc\n\nof two."""\n\n# a comment\nX = """no\ndocstring"""\n\n\nclass A:\n    """Doc."""\n\n    y: int  # counted\n'
    assert code_lines(text) == ['X = """no', 'docstring"""', "class A:", "    y: int  # counted"]


def test_the_lines_of_some_functions():
    text = "import os\n\n@os.x\ndef f():\n    '''Doc.'''\n    return 1\n\nclass A:\n    def g(self):\n        return 2\n    h = 3\n"
    assert code_lines(text, ["f"]) == ["@os.x", "def f():", "    return 1"]
    assert code_lines(text, ["A.g"]) == ["    def g(self):", "        return 2"]
    with pytest.raises(ValueError, match="does not define z"):
        code_lines(text, ["z"])
