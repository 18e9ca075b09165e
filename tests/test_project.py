"""Rules of the whole project, as checks: they hold for every file, whoever wrote it."""

import ast
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "leastnoise"
MODULES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "changelog.d").glob("*.md")])

MOST_LINES = {"src": 600, "tests": 800}
# Oracles and other people's mechanisms are for tests, baselines and experiments; reading a pickle runs code; nothing needs the network.
BANNED_EVERYWHERE = {
    "cvxpy", "diffprivlib", "dp_accounting", "jax", "matplotlib", "mpmath", "opendp", "pandas", "torch",
    "pickle", "marshal", "shelve", "socket", "http", "urllib", "requests", "random",
}  # fmt: skip
TRUSTED = {"_check", "accounting", "measure", "table"}
LAZY = {"scipy", "polars", "pyarrow"}
# Where a generator of numpy is allowed: nothing it makes protects anybody.
SEEDED = {
    "measure/_entropy.py": "seeded entropy for tests and experiments, which marks what it makes as not private",
    "cli/_demo.py": "the generated survey of the demo",
    "session/_demo.py": "the generated survey of the demo",
}
# Public functions that cannot be shown in an example that runs: the program itself, for instance.
NO_EXAMPLE = {"leastnoise.cli.main": "it ends the process"}
HEAVY = ["scipy", "duckdb", "pandas", "polars", "pyarrow", "numpy", "narwhals", "matplotlib"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def at_import_time(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of the imports that run when the module is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from imported(node)
        else:
            yield from at_import_time(node)


def package_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ""


def module_name(package: str) -> str:
    return ".".join(filter(None, ["leastnoise", package]))


def public_names() -> list[tuple[str, str]]:
    """Read (module, name) for every public name without importing anything, so that one broken module does not hide the others."""
    found = []
    for package in ["", *PACKAGES]:
        for node in tree_of(SOURCE / package / "__init__.py").body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found += [(module_name(package), name) for name in ast.literal_eval(node.value)]
    return found


def sort_key(name: str) -> tuple[int, str]:
    """Order CONSTANTS, then Classes, then functions, as ruff's RUF022 does."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name)


# --- the code ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["", *PACKAGES])
def test_public_names_are_listed_sorted_and_importable(package: str) -> None:
    module = importlib.import_module(module_name(package))
    tree = tree_of(Path(module.__file__))
    if any(name.startswith("leastnoise.") for _, name in imported(tree)):
        assert hasattr(module, "__all__"), f"{module.__name__} imports names but has no __all__"
    names = list(getattr(module, "__all__", []))
    assert names == sorted(names, key=sort_key)
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []
    assert [name for name in names if name.startswith("_") and name != "__version__"] == []


def test_every_module_can_be_imported() -> None:
    import leastnoise

    names = [info.name for info in pkgutil.walk_packages(leastnoise.__path__, "leastnoise.") if not info.name.endswith("__main__")]
    assert len(names) >= len(PACKAGES)
    for name in names:
        importlib.import_module(name)


@pytest.mark.parametrize(("module", "name"), public_names())
def test_public_functions_have_examples_and_classes_have_docstrings(module: str, name: str) -> None:
    thing = getattr(importlib.import_module(module), name)
    if not (inspect.isclass(thing) or inspect.isroutine(thing)) or not getattr(thing, "__module__", "").startswith("leastnoise"):
        pytest.skip("a constant or an alias of a type")
    text = inspect.getdoc(thing) or ""
    assert text, f"{name} has no docstring"
    # a dataclass without a docstring gets its signature as one
    assert not (inspect.isclass(thing) and text.startswith(f"{thing.__name__}(")), f"{name} has no docstring"
    if inspect.isroutine(thing) and f"{module}.{name}" not in NO_EXAMPLE:
        assert ">>>" in text, f"{name} has no example that runs"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_source_file_keeps_the_rules(path: Path) -> None:
    tree = tree_of(path)
    package = package_of(path)
    relative = path.relative_to(SOURCE).as_posix()
    faults = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Assert):
            faults.append(f"{line}: `assert` vanishes under python -O; raise InternalError")
        if isinstance(node, ast.Name) and node.id == "__debug__":
            faults.append(f"{line}: __debug__ changes under python -O")
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"np.random", "numpy.random"} and relative not in SEEDED:
            faults.append(f"{line}: numpy.random draws nothing that protects anybody; use leastnoise.measure")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"eval", "exec"}:
            faults.append(f"{line}: {node.func.id} runs text as code")
    for line, name in imported(tree):
        top = name.split(".")[0]
        inner = name.split(".")[1:2]
        if name.startswith("."):
            faults.append(f"{line}: relative import {name}")
        if top in BANNED_EVERYWHERE or name.startswith("numpy.random"):
            faults.append(f"{line}: {name} is not to be imported in the package")
        if package in TRUSTED and top not in sys.stdlib_module_names and top not in {"numpy", "leastnoise"}:
            faults.append(f"{line}: {name}: trusted code needs numpy and the standard library only")
        if top == "leastnoise" and package and name == f"leastnoise.{package}" and path.name != "__init__.py":
            faults.append(f"{line}: import from the private module, not from the package's own __init__")
        if top == "leastnoise" and package and name == "leastnoise":
            faults.append(f"{line}: a package does not import the public face above it")
        if top == "leastnoise" and inner and inner != [package] and any(part.startswith("_") for part in name.split(".")[2:]):
            faults.append(f"{line}: {name} is private to {inner[0]}")
    faults += [
        f"{line}: {name} is imported at import time; the command line must start fast"
        for line, name in at_import_time(tree)
        if name.split(".")[0] in LAZY
    ]
    assert faults == []


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_no_file_is_too_long(folder: str) -> None:
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES[folder]} == {}


def test_no_unfinished_marks() -> None:
    mark = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
    found = [name_of(path) for path in [*MODULES, *PAGES] if mark.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_help_starts_without_the_heavy_libraries() -> None:
    if not (SOURCE / "cli" / "_main.py").exists():
        pytest.skip("there is no command line yet")
    program = (
        "import json, sys\n"
        "from leastnoise.cli import main\n"
        "sys.argv = ['leastnoise', '--help']\n"
        "code = 0\n"
        "try:\n    main()\n"
        "except SystemExit as stop:\n    code = stop.code or 0\n"
        f"print(json.dumps([code, sorted(set({HEAVY!r}) & set(sys.modules))]), file=sys.stderr)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stderr.splitlines()[-1]) == [0, []]
    assert "release" in run.stdout


def test_the_typed_mark_is_there() -> None:
    assert (SOURCE / "py.typed").exists()


# --- the documentation ------------------------------------------------------------------------------------------------------


BLOCK = re.compile(r"^```.*?^```[ ]*$", flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a page, as mkdocs and code hosts build them (titles hold no links)."""
    titles = re.findall(r"^#{1,6}\s+(.+)$", BLOCK.sub("", path.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)[^)]*\)", re.sub(r"`[^`\n]*`", "", BLOCK.sub("", page.read_text(encoding="utf-8")))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = unquote(target).partition("#")
        goal = (page.parent / file).resolve() if file else page
        if not goal.exists() or (anchor and goal.suffix == ".md" and anchor not in anchors(goal)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_toml_blocks_are_toml(page: Path) -> None:
    for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE):
        assert tomllib.loads(block)


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if page not in navigation and not page.startswith(("decisions/", "results/"))] == []


def test_every_decision_is_in_the_list() -> None:
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    pages = [path.name for path in (ROOT / "docs" / "decisions").glob("0*.md")]
    assert pages != []
    assert [page for page in pages if f"({page})" not in listed] == []
