"""Few test files import private modules; the others use public names."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "leastnoise"
# Parts that contributing/ adds to a copy of the package are no tests.
PARTS = TESTS / "contributing" / "parts"
# The number of files that import a private module. Lower it when a file stops doing so.
MOST_FILES = 74


def is_private_module(name):
    """Return whether a dotted name is a module inside a folder of the package."""
    top, *inner = name.split(".")
    if inner[:1] == ["_trusted"]:
        inner = inner[1:]
    if top != "leastnoise" or len(inner) < 2 or not inner[1].startswith("_"):
        return False
    return SOURCE.joinpath(*name.split(".")[1:]).with_suffix(".py").is_file()


def imported_names(tree):
    """Yield the dotted names of imported modules, and of the names taken from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_private_module(text):
    """Return whether the text of a file imports a module inside a folder of the package."""
    return any(is_private_module(name) for name in imported_names(ast.parse(text)))


def test_private_imports_of_tests_only_go_down():
    files = [
        str(path.relative_to(TESTS))
        for path in sorted(TESTS.rglob("*.py"))
        if PARTS not in path.parents and imports_private_module(path.read_text(encoding="utf-8"))
    ]
    assert len(files) <= MOST_FILES, (
        f"{len(files)} test files import a private module; at most {MOST_FILES} may. In a new "
        "file, import the name from its package, or from tests/behind_the_wall.py. The files are "
        f"{', '.join(files)}."
    )


def test_every_form_of_a_private_import_is_detected():
    assert imports_private_module("from leastnoise._plan._plan import Plan")
    assert imports_private_module("from leastnoise._planning import _targets as targets")
    assert imports_private_module("def f():\n    import leastnoise._trusted.kernel._measurement")
    assert not imports_private_module("from leastnoise._trusted.kernel import Ledger")
    assert not imports_private_module("from leastnoise._plan import Plan\nimport leastnoise as ln")
