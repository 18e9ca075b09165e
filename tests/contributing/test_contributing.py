"""The promise of docs/adding-parts.md: added parts of every kind pass the checks.

The example contributions in ``parts`` are added to a copy of the project, and the copy meets the
checks of ``make test`` that look at new files: format, rules, types, imports, the rules of the
project, and the conformance kit of every kind of part.
"""

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from contributing.parts import FOLDER, Part, add_part, changed, copy_project, read_part, read_parts
from waiting import HANGS

# The most files that a part touches, without a fragment of the changelog. A mechanism touches more,
# because it is a strategy, a procedure and several texts.
MOST_FILES = 5
FILES_OF_MECHANISM = 8
# The pages of docs that describe the parts of a kind.
PAGES = {
    "export": {"docs/commands.md"},
    "family": {"docs/strategies.md"},
    "mechanism": {"docs/strategies.md", "docs/decisions/planning.md"},
    "operator": {"docs/measurements.md"},
    "option": {"docs/spec.md"},
    "planner": {"docs/strategies.md"},
    "source": {"docs/spec.md", "src/leastnoise/_trusted/reading/PROOFS-reading.md"},
}
# Words in the names of tests of an added part.
ADDED = (
    "calendar",
    "codebook",
    "differences",
    "edition",
    "feather",
    "flat",
    "table_and_total",
    "two_levels",
)
# Files whose tests look at all parts, and among them tests that no added part can change.
RULES = ("test_project", "test_docs", "test_public_names", "test_trusted", "test_proofs")
RULES += ("test_options", "catalogues", "is_tried", "row_and")
RULES += ("bad_files", "another_form", "file_kind", "file_ending", "every_export", "missing_name")
RULES += ("fragments", "catalogue_sentences", "step_has_its_text", "only_by_the_registry")
RULES += ("not_one_source", "page_names", "page_of_strategies", "other_releases_lose")
UNCHANGED = (
    "containers",
    "page_commands",
    "are_seen",
    "is_seen",
    "audit_sees",
    "peers",
    "machine_speed",
)
TESTED = (
    "tests/test_project.py",
    "tests/test_docs.py",
    "tests/test_public_names.py",
    "tests/contracts",
    "tests/trusted/reading/test_files.py",
    "tests/trusted/reading/test_neighbours.py",
    "tests/cli/test_drafts.py",
    "tests/cli/test_sentences.py",
    "tests/texts/test_translations.py",
    "tests/charts",
    "tests/publication/test_exports.py",
    "tests/publication/test_format.py",
    "tests/publication/test_validators.py",
    "tests/families/test_row_space.py",
    "tests/trusted/linop",
    "tests/mechanisms/test_audit.py",
    "tests/mechanisms/test_conformance.py",
    "tests/strategies/test_conformance.py",
    "tests/privacy/test_losses.py",
    "tests/release/test_options.py",
    "tests/pages/test_report.py",
)
# First words of docstrings that are not imperative sentences.
NO_IMPERATIVE = re.compile(r"(The|An?|All|One|What|It|This|[A-Z]\w+s)\b")
LINTERS = all(find_spec(name) for name in ("importlinter", "mypy", "ruff"))


def run(copy, program, *arguments):
    """Run a module of this environment in a copy of the project, which is found first."""
    command = ["-m", program] if program != "lint-imports" else ["-m", "importlinter.cli", "lint"]
    environment = {
        "HOME": str(copy),
        "LEASTNOISE_CACHE": "off",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{copy / 'src'}:{copy}",
    }
    return subprocess.run(
        [sys.executable, *command, *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
    )


def check(copy, program, *arguments):
    """Check that a module of this environment succeeds in a copy of the project."""
    result = run(copy, program, *arguments)
    command = f"{program} {' '.join(arguments)}"
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """Return a copy of the project with all example contributions, after ``make format``."""
    copy = tmp_path_factory.mktemp("contributed")
    copy_project(copy)
    for part in read_parts():
        add_part(part, copy)
    if LINTERS:
        check(copy, "ruff", "check", "-q", "--fix", ".")
        check(copy, "ruff", "format", "-q", ".")
    return copy


def test_examples_are_of_every_kind():
    kinds = {"chart", "export", "family", "mechanism", "operator", "option", "planner", "source"}
    assert {part.name for part in read_parts()} == kinds


@pytest.mark.parametrize("part", read_parts(), ids=lambda part: part.name)
def test_part_touches_few_files(part):
    """An example has all files of its part: code, registry, texts, tests and pages."""
    files = [name for name in part.touched if not name.startswith("changelog.d/")]
    most = FILES_OF_MECHANISM if part.name == "mechanism" else MOST_FILES
    assert len(files) <= most, files


@pytest.mark.parametrize("part", read_parts(), ids=lambda part: part.name)
def test_part_has_a_test_and_a_fragment(part):
    assert any(name.startswith("tests/") for name in part.touched)
    (fragment,) = (name for name in part.files if name.startswith("changelog.d/"))
    assert re.fullmatch(r"changelog\.d/[\w-]+\.added\.md", fragment)


@pytest.mark.parametrize("part", read_parts(), ids=lambda part: part.name)
def test_part_has_the_pages_that_the_guide_names(part):
    pages = {name for name in part.touched if name.startswith("docs/")}
    pages |= {name for name in part.touched if "/PROOFS-" in name}
    assert pages == PAGES.get(part.name, set())


def docstring_faults(text):
    """Return the first lines of docstrings that break the rule of docs/rules.md."""
    faults = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        first_line = (ast.get_docstring(node) or "").partition("\n")[0]
        is_function = isinstance(node, ast.FunctionDef) and not node.decorator_list
        if len(first_line) > 75 or (is_function and NO_IMPERATIVE.match(first_line)):
            faults.append(first_line)
    return faults


@pytest.mark.parametrize("part", read_parts(), ids=lambda part: part.name)
def test_docstrings_of_parts_keep_the_rule(part):
    sources = [text for file, text in part.files.items() if file.endswith(".py")]
    assert [fault for text in sources for fault in docstring_faults(text)] == []


def test_faulty_docstrings_are_detected():
    assert docstring_faults('def f():\n    """The cells."""') == ["The cells."]
    assert docstring_faults(f'"""{76 * "x"}"""') == [76 * "x"]
    assert docstring_faults('def f():\n    """Return the cells."""') == []


@pytest.mark.slow
@pytest.mark.skipif(not LINTERS, reason="the group lint is not installed")
def test_parts_pass_rules_types_and_imports(extended):
    check(extended, "ruff", "check", "-q", ".")
    check(extended, "mypy", "--no-error-summary")
    check(extended, "lint-imports", "--no-cache")
    check(extended, "contracts.strategies")


@pytest.mark.slow
def test_parts_pass_tests(extended):
    new_files = [
        file
        for part in read_parts()
        for file in part.files
        if file.endswith(".py") and ("/test_" in file or file.startswith("src/"))
    ]
    touched = [name for part in read_parts() for name in part.touched if name.startswith("src/")]
    # Every file has a test of its rules; here only the rules of added and changed files are tested.
    rules = f"not keeps_the_rules or {' or '.join(touched)}"
    unchanged = " or ".join(UNCHANGED)
    selected = f"({' or '.join([*ADDED, *RULES])}) and not ({unchanged}) and ({rules})"
    options = ("-v", "-n", "0", "-p", "no:cacheprovider", "-k", selected)
    result = run(extended, "pytest", *options, *TESTED, *new_files)
    assert result.returncode == 0, result.stdout + result.stderr
    assert [name for name in ADDED if name not in result.stdout] == []


@pytest.mark.slow
def test_fault_of_a_part_is_detected(tmp_path):
    operator = read_part(FOLDER / "operator")
    (file,) = (name for name in operator.files if name.endswith(".py"))
    faulty_text = operator.files[file].replace(
        "return np.append(0, weights) + np.append(weights, 0)", "return np.append(weights, 0)"
    )
    copy_project(tmp_path)
    add_part(Part(operator.name, {file: faulty_text}, operator.changes), tmp_path)
    selected = ("-k", "column_sums and differences", "tests/trusted/linop")
    result = run(tmp_path, "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *selected)
    assert "test_column_sums_with_weights[1-differences]" in result.stdout


def test_change_of_missing_lines_is_refused():
    assert changed("a\nb\nc\n", " a\n+x\n\n-c\n") == "a\nx\nb\n"
    with pytest.raises(ValueError, match="0 times"):
        changed("a\n", " b\n+x\n")
