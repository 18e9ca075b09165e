"""The list of trusted files includes everything that trusted code needs."""

import ast
import importlib
import re
import sys

import pytest

from contracts.sources import code_lines
from contracts.trusted import (
    FOLDER,
    HELPERS,
    LOCKING_LIBRARIES,
    LOCKS,
    READERS,
    READING_LIBRARIES,
    TRUSTED,
    trusted_files,
)


def roots(text):
    """Return the top-level names of everything that a source file imports."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


def foreign_libraries(file, text):
    """List the libraries that a trusted file, named by its path in the package, must not import."""
    libraries = {"leastnoise", "numpy", *sys.stdlib_module_names}
    if file.startswith(READERS):
        libraries |= READING_LIBRARIES
    if file == LOCKS:
        libraries |= LOCKING_LIBRARIES
    return sorted(roots(text) - libraries)


@pytest.mark.parametrize("file", [*trusted_files(), *HELPERS])
def test_trusted_file_imports_few_libraries(file):
    assert foreign_libraries(file, (FOLDER / file).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("file", "line", "foreign"),
    [
        ("_trusted/reading/_new.py", "import polars", ["polars"]),
        ("_trusted/linop/_new.py", "def f():\n    import scipy.linalg", ["scipy"]),
        ("_trusted/kernel/_new.py", "import pyarrow", ["pyarrow"]),
        ("_trusted/kernel/_new.py", "import portalocker", ["portalocker"]),
        ("_trusted/kernel/_new.py", "import numpy\nfrom leastnoise._trusted import check", []),
        ("_trusted/reading/_new.py", "import pyarrow.feather", []),
    ],
)
def test_foreign_library_in_trusted_code_is_detected(file, line, foreign):
    assert foreign_libraries(file, line) == foreign


def test_helpers_of_trusted_code_say_why_they_are_not_trusted():
    assert len(HELPERS) > 10
    unexplained = []
    for file in HELPERS:
        docstring = ast.get_docstring(ast.parse((FOLDER / file).read_text(encoding="utf-8")))
        if "This file is not trusted" not in " ".join((docstring or "").split()):
            unexplained.append(file)
    assert unexplained == []


def test_trusted_dispatch_to_other_files_is_listed():
    """Dispatch is not an import: each function in an unlisted file has a stated reason."""
    importlib.import_module("leastnoise._session")
    counted = set(trusted_files())
    unlisted_files = {}
    for file in counted:
        module = importlib.import_module(f"leastnoise.{file[:-3].replace('/', '.')}")
        for name, function in vars(module).items():
            if hasattr(function, "registry") and function.__module__ == module.__name__:
                # Classes of tests are left out.
                modules = {
                    implementation.__module__
                    for implementation in function.registry.values()
                    if implementation.__module__.startswith("leastnoise.")
                }
                homes = {
                    f"{module_of.removeprefix('leastnoise.').replace('.', '/')}.py"
                    for module_of in modules
                }
                unlisted_files |= {name: homes - counted} if homes - counted else {}

    assert unlisted_files == {
        # No cost is computed with transposes, as the next test checks.
        "apply_transpose": {"_trusted/linop/helpers/_transposes.py"},
        # `Rule` checks the result.
        "rule_of": {"_domain/_rules.py"},
        # It runs before a row is read, and a class is a kind if it has registered its rule.
        "kind_of_argument": {"_domain/_kinds.py"},
        # The fingerprint of `Series.measure` has the charge of a step without it.
        "plain_json": {"_domain/_kinds.py"},
        "read_domain_parts": {"_domain/_kinds.py"},
    }


def test_transposes_used_for_costs_are_trusted():
    from leastnoise._trusted.linop import AllRanges, Prefix, Ranges, Total, Tree, apply_transpose

    homes = {
        kind: apply_transpose.dispatch(kind).__module__
        for kind in (AllRanges, Prefix, Ranges, Total, Tree)
    }
    assert set(homes.values()) == {"leastnoise._trusted.linop._operator_functions"}, homes


@pytest.mark.parametrize("package", TRUSTED)
def test_trusted_init_only_reexports_names(package):
    """An `__init__` without code of its own needs no review."""
    text = (FOLDER / package / "__init__.py").read_text(encoding="utf-8")
    docstring, *statements = ast.parse(text).body
    assert isinstance(docstring, ast.Expr)
    assert isinstance(docstring.value, ast.Constant)
    for node in statements:
        assert isinstance(node, ast.ImportFrom)
        assert f"{node.module}.".startswith(f"leastnoise.{package.replace('/', '.')}.")
        assert all(alias.asname is None for alias in node.names)


def test_one_file_chooses_the_ledger_that_pays():
    """Count the calls that create and open ledgers for payments."""

    def files_with(code, pattern):
        # The first search also finds docstrings, and the second reads only code.
        named = (path for path in FOLDER.rglob(pattern) if code in path.read_text(encoding="utf-8"))
        return {path.relative_to(FOLDER).as_posix() for path in named if code in code_of(path)}

    creating_files = files_with("Ledger.create(", "_trusted/ledgers/*.py")
    assert creating_files == {"_trusted/ledgers/_ledger_choice.py"}
    assert files_with("Ledger.create(", "_session/*.py") == set()
    paying_files = files_with("Series.paid(", "*.py")
    assert paying_files == {
        f"_session/{name}.py" for name in ("_session", "_guard_counts", "_series_publication")
    }
    # A guard pays from the ledger of its release.
    for path in paying_files - {"_session/_guard_counts.py"}:
        code = code_of(FOLDER / path)
        arguments = r"\w+, source, dataset|self\.ledger, self\.source, self\.dataset"
        calls = re.findall(rf"find_ledger\((?:{arguments}), ", code)
        assert len(calls) == code.count("Series.paid(")  # each payment asks for its own


def code_of(path):
    return "\n".join(code_lines(path.read_text(encoding="utf-8")))


def test_only_code_is_counted():
    text = (
        '"""Doc\n\nof two."""\n\n# a comment\nX = """no\ndocstring"""\n\n\nclass A:\n'
        '    """Doc."""\n\n    y: int  # counted\n'
    )
    assert code_lines(text) == ['X = """no', 'docstring"""', "class A:", "    y: int  # counted"]


def test_code_lines_of_a_function_are_counted():
    text = (
        "import os\n\n@os.x\ndef f():\n    '''Doc.'''\n    return 1\n\nclass A:\n"
        "    def g(self):\n        return 2\n    h = 3\n"
    )
    assert code_lines(text, ["f"]) == ["@os.x", "def f():", "    return 1"]
    assert code_lines(text, ["A.g"]) == ["    def g(self):", "        return 2"]
    with pytest.raises(ValueError, match="does not define z"):
        code_lines(text, ["z"])
