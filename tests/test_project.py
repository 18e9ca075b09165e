"""Rules of the whole project, as checks: they hold for every file, whoever wrote it."""

import ast
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest
from contracts.trusted import APART, HELPERS
from contracts.trusted import TRUSTED as TRUSTED_PACKAGES

from leastnoise._linop import operators
from waiting import HANGS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "leastnoise"
MODULES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted(
    [
        *(path.parent.name for path in SOURCE.glob("*/__init__.py")),
        *(path.stem for path in SOURCE.glob("_[!_]*.py")),
    ]
)
PAGES = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("*.md"),
        *(ROOT / "changelog.d").glob("*.md"),
        *SOURCE.rglob("*.md"),
    ]
)

# Oracles and other people's mechanisms are for tests, baselines and experiments; reading a pickle
# runs code; nothing needs the network.
BANNED_EVERYWHERE = {
    "cvxpy", "diffprivlib", "dp_accounting", "jax", "matplotlib", "mpmath", "opendp", "pandas", "torch",
    "pickle", "marshal", "shelve", "socket", "http", "urllib", "requests", "random",
}  # fmt: skip
TRUSTED = {"_check", "_accounting", "_kernel", "_table"}
# Where a seeded generator of numpy is allowed: nothing it makes protects anybody.
# `check` for the data holder alone: no package exports it, so that nothing that makes a release
# comes by it.
HOLDER = {"_holder/_check.py": "leastnoise._adapters._"}
SEEDED = (
    # seeded entropy for tests and experiments, which marks what it makes as not private
    "_kernel/_seeded.py",
    "_families/",  # starts of a search over public values
    "_planner/",  # the same
    "_accuracy/_joint.py",  # error bars by simulation of the plan, which is public
    # where the fit of a model starts, which has nothing to do with the data
    "_estimate/_mixture.py",
    "_estimate/_expansion.py",  # the estimate of risk, by adding noise to what was measured
    "_estimate/_model.py",  # error bars by fitting the model to other noise, and records
    "_release/_records.py",  # values within the bins of these
    "_estimate/_non_negative.py",  # error bars, at the estimate
    "_estimate/_cdf.py",  # simultaneous bands, by simulation of the plan
    "_cli/_demo.py",  # the generated survey
)
parsed = cache(ast.parse)  # several rules look at each file


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").split(".")[0] == "leastnoise"
            and not node.level
        ):
            # `from leastnoise import _plan` and `from leastnoise._plan import _plan` name modules
            whole = node.module == "leastnoise"
            for alias in node.names:
                yield (
                    node.lineno,
                    f"{node.module}.{alias.name}"
                    if whole or alias.name.startswith("_")
                    else node.module,
                )
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def module_name(package: str) -> str:
    return ".".join(filter(None, ["leastnoise", package]))


def sort_key(name: str) -> tuple[int, str]:
    """Order CONSTANTS, then Classes, then functions, as ruff's RUF022 does."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name)


# --- the code -------------------------------------------------------------------------------------


def handed_on(module: ModuleType) -> list[str]:
    """The names that a package lists, or, of a private one, imports from its own files."""
    if hasattr(module, "__all__") or not getattr(module, "__file__", ""):
        return list(getattr(module, "__all__", []))
    nodes = [
        node
        for node in ast.walk(tree_of(Path(module.__file__)))
        if isinstance(node, ast.ImportFrom)
    ]
    return [
        alias.asname or alias.name
        for node in nodes
        if (node.module or "").startswith(module.__name__)
        for alias in node.names
    ]


@pytest.mark.parametrize("package", ["", *PACKAGES])
def test_names_that_are_handed_on_are_public_and_importable(package: str) -> None:
    module = importlib.import_module(module_name(package))
    names = handed_on(module)
    assert names == sorted(names, key=sort_key) or package
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []
    assert [name for name in names if name.startswith("_") and name != "__version__"] == []


def test_every_module_can_be_imported() -> None:
    import leastnoise

    assert (SOURCE / "py.typed").exists()
    names = [
        info.name
        for info in pkgutil.walk_packages(leastnoise.__path__, "leastnoise.")
        if not info.name.endswith("__main__")
    ]
    assert len(names) >= len(PACKAGES)
    for name in names:
        importlib.import_module(name)


# Examples of these files are tests, as those of every other untrusted file.
NOT_TRUSTED = {
    f"leastnoise.{file.removesuffix('.py').replace('/', '.')}" for file in {**HELPERS, **APART}
}


def undocumented(module: ModuleType) -> list[str]:
    """List the public classes without a docstring and the public and trusted functions without an example."""
    found = []
    for name in handed_on(module):
        thing = getattr(module, name)
        text = inspect.getdoc(thing) or ""
        if not getattr(thing, "__module__", "").startswith("leastnoise"):
            continue  # a constant, or an alias of a type
        if inspect.isclass(thing) and (
            not text or text.startswith(f"{thing.__name__}(")
        ):  # a dataclass gets its signature as a docstring
            found.append(f"{name} has no docstring")
        if inspect.isroutine(thing) and ">>>" not in text and thing.__module__ not in NOT_TRUSTED:
            found.append(f"{name} has no example that runs")
    return found


@pytest.mark.parametrize("package", ["", *TRUSTED_PACKAGES])
def test_public_and_trusted_functions_have_examples_and_classes_have_docstrings(
    package: str,
) -> None:
    assert undocumented(importlib.import_module(module_name(package))) == []


def test_missing_documentation_is_seen() -> None:
    module = ModuleType("leastnoise.bad")
    source = "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\ndef b():\n    'Nothing to show.'\n__all__ = ['A', 'b']\n"
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, "bad", "exec"), module.__dict__)  # noqa: S102 - text of this very test
    finally:
        del sys.modules[module.__name__]
    assert undocumented(module) == ["A has no docstring", "b has no example that runs"]


STRUCTURES = {
    *(one.__name__ for one in operators()), "CellsBasis", "CoarseBasis", "DenseBasis", "DenseStructure",
    "IterativeStructure", "PairStructure", "ProductStructure", "ToeplitzInverse", "TreeInverse",
}  # fmt: skip
# Operators' own parts; proofs that go class by class and take all others from their matrix; and
# what a file must hold to be read.
CLASSES_ASKED_FOR_IN = (
    "_linop/", "_measurements/", "_workload/_query_sets.py",
    "_estimate/_expansion.py", "_estimate/_plane_expansion.py",
)  # fmt: skip


def asks_for_class(node: ast.AST) -> bool:
    """Whether it is isinstance() with an operator's or a structure's class."""
    if not (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and len(node.args) == 2
    ):
        return False
    return bool(
        STRUCTURES & {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
    )


def faults(relative: str, text: str) -> list[str]:
    """List what a source file, named by its path within the package, does against the rules."""
    tree = parsed(text)
    package, _, file = relative.rpartition("/")
    package = package.split("/")[0] or (
        relative.removesuffix(".py") if not relative.startswith("__") else ""
    )  # a room may be one file
    found = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        random = (
            isinstance(node, ast.Attribute)
            and node.attr == "random"
            and ast.unparse(node) in {"np.random", "numpy.random"}
        )
        if random and not relative.startswith(SEEDED):
            found.append(
                f"{line}: numpy.random draws nothing that protects anybody; use leastnoise._kernel"
            )
        if (
            isinstance(node, ast.Call)
            and not (node.args or node.keywords)
            and ast.unparse(node.func).endswith("default_rng")
        ):
            found.append(f"{line}: a generator without a seed")
        if asks_for_class(node) and not relative.startswith(CLASSES_ASKED_FOR_IN):
            found.append(
                f"{line}: operators and structures answer by their class "
                "(functools.singledispatch), and are not asked for it"
            )
    for line, name in imported(tree):
        top, *inner = name.split(".")
        other = inner[0] if top == "leastnoise" and inner else ""
        if top in BANNED_EVERYWHERE or (
            name.startswith("numpy.random") and not relative.startswith(SEEDED)
        ):
            found.append(f"{line}: {name} is not to be imported in the package")
        if (
            package in TRUSTED
            and top not in sys.stdlib_module_names
            and top not in {"", "numpy", "leastnoise"}
        ):
            found.append(f"{line}: {name}: trusted code needs numpy and the standard library only")
        if package and other == package and len(inner) == 1 and file != "__init__.py":
            found.append(
                f"{line}: import from the private module, not from the package's own __init__"
            )
        if package and name == "leastnoise":
            found.append(f"{line}: a package does not import the public face above it")
        private = any(part.startswith("_") for part in inner[1:]) and not name.startswith(
            HOLDER.get(relative, "-")
        )
        if other and other != package and private:
            found.append(f"{line}: {name} is private to {other}")
    found += [
        f"{node.lineno}: arrays of these numbers have a name in leastnoise._check.arrays"
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and ast.unparse(node.value) == "npt.NDArray"
        and ast.unparse(node)
        in {f"npt.NDArray[{kind}]" for kind in ("np.float64", "np.int64", "np.bool_", "Any")}
        and relative != "_check/arrays.py"
    ]
    found += [
        f"{line}: src/conftest.py gives examples their names"
        for line, text_of_line in enumerate(text.splitlines(), 1)
        if re.match(r"\s*>>> (from leastnoise|import (leastnoise|numpy|pandas)\b)", text_of_line)
    ]
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_source_file_keeps_the_rules(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert faults(path.relative_to(SOURCE).as_posix(), text) == []
    assert is_the_same_optimized(text)


def is_the_same_optimized(text: str) -> bool:
    """Whether `python -O` runs the same code to the last instruction, so that no guard vanishes there."""
    return compile(text, "", "exec", optimize=0, dont_inherit=True) == compile(
        text, "", "exec", optimize=1, dont_inherit=True
    )


@pytest.mark.parametrize(
    ("relative", "text", "complaint"),
    [
        ("_plan/_x.py", "import numpy as np\nnp.random.PCG64(1)", "draws nothing that protects"),
        ("_plan/_x.py", "from numpy.random import default_rng", "not to be imported"),
        ("_planner/_x.py", "import numpy as np\nnp.random.default_rng()", "without a seed"),
        (
            "_plan/_x.py",
            "def f():\n    import opendp.prelude",
            "opendp.prelude is not to be imported",
        ),
        ("_accuracy/_x.py", "isinstance(operator, (Total, Identity))", "answer by their class"),
        ("_plan/_x.py", "from leastnoise._plan import Plan", "own __init__"),
        ("_plan/_x.py", "import leastnoise", "public face above"),
        ("_plan/_x.py", "from leastnoise._domain._kinds import Bins", "private to _domain"),
        ("_kernel/_x.py", "def f():\n    import scipy.linalg", "standard library only"),
        ("_kernel/_noise/_x.py", "import duckdb", "standard library only"),
        (
            "_plan/_x.py",
            "def f(x: npt.NDArray[np.int64]): pass",
            "have a name in leastnoise._check.arrays",
        ),
        (
            "_plan/_x.py",
            '"""X.\n\n>>> from leastnoise._plan import Plan\n"""',
            "gives examples their names",
        ),
    ],
)
def test_the_rules_are_seen_to_fire(relative: str, text: str, complaint: str) -> None:
    assert [complaint in fault for fault in faults(relative, text)] == [True]


def test_the_rules_allow_what_they_should() -> None:
    text = "import json\nimport numpy as np\nfrom leastnoise._check import refuse\nfrom leastnoise._kernel._noise import draw\n"
    seeded = "import numpy as np\nnp.random.PCG64(1)"
    assert [faults(*one) for one in (("_kernel/_x.py", text), ("_kernel/_seeded.py", seeded))] == [
        []
    ] * 2
    assert [is_the_same_optimized(text) for text in ("assert 1", "if __debug__: f()", "f()")] == [
        False,
        False,
        True,
    ]


def in_circles(texts: Mapping[str, str]) -> list[str]:
    """Modules that a chain of imports leads back to, those inside functions and for types alone included."""
    graph = {}
    for module, text in texts.items():
        tree = parsed(text)
        names = {name for _, name in imported(tree)} | {
            str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
        }
        graph[module] = {
            name
            for name in names
            if name in texts and name != module and not module.startswith(f"{name}.")
        }
    reached: dict[str, set[str]] = {}
    for module, others in graph.items():
        reached[module], ahead = set(), [*others]
        while ahead:
            if (other := ahead.pop()) not in reached[module]:
                reached[module].add(other)
                ahead += graph[other]
    return [module for module in graph if module in reached[module]]


def test_no_files_import_each_other_in_a_circle() -> None:
    texts = {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path.read_text(
            encoding="utf-8"
        )
        for path in MODULES
    }
    assert in_circles({name.removesuffix(".__init__"): text for name, text in texts.items()}) == []


@pytest.mark.parametrize(
    "back",
    [
        "def f():\n    from leastnoise._a import x\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from leastnoise._a import x\n",
        "from leastnoise._c import z\n",
    ],
)
def test_circles_are_seen(back: str) -> None:
    texts = {
        "leastnoise._a": "from leastnoise import _b",
        "leastnoise._c": "import leastnoise._d",
        "leastnoise._d": "",
    }
    assert in_circles({**texts, "leastnoise._b": "import json"}) == []
    assert in_circles(
        {
            **texts,
            "leastnoise._b": back,
            "leastnoise._d": "from leastnoise._b import y" if "_c" in back else "",
        }
    )


def hurried(text: str) -> list[str]:
    """List where a test gives another process, or an example of Hypothesis, so many seconds: a busy machine needs more."""
    found = []
    for node in ast.walk(ast.parse(text)):
        given = (
            [word for word in node.keywords if word.arg in {"timeout", "deadline"}]
            if isinstance(node, ast.Call)
            else []
        )
        if given and ast.unparse(node.func) in {"Ledger.open", "Ledger.create"}:
            continue  # how long a ledger waits for a lock is what its own tests are about
        for word in given:
            number = isinstance(word.value, ast.Constant) and word.value.value is not None
            if (word.arg == "timeout" and number) or (
                word.arg == "deadline" and ast.unparse(word.value) != "None"
            ):
                found.append(f"{node.lineno}: {word.arg}={ast.unparse(word.value)}")
    return found


def test_tests_do_not_depend_on_how_fast_the_machine_is() -> None:
    texts = {
        name_of(path): path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")
    }
    assert {name: found for name, text in texts.items() if (found := hurried(text))} == {}


def test_hurry_is_seen() -> None:
    text = "run(c, timeout=60)\nrun(c, timeout=HANGS)\nsettings(deadline=200)\nsettings(deadline=None)\nLedger.open(p, timeout=0)\n"
    assert hurried(text) == ["1: timeout=60", "3: deadline=200"]


def foreign(names: list[str]) -> list[str]:
    """List files that no kind of source, page, picture or table of the project explains."""
    kinds = re.compile(
        r".*\.(py|pyi|c|typed|md|toml|yml|cff|css|js|mjs|json|csv|txt|sql|svg|png|html|j2|sh|spec|ipynb|qmd|R|Rmd|xsd|xml)"
    )
    plain = {
        "LICENSE",
        "Makefile",
        "Dockerfile",
        "run",
        ".gitignore",
        ".dockerignore",
        ".git-blame-ignore-revs",
    }
    return [name for name in names if not kinds.fullmatch(name) and Path(name).name not in plain]


def test_no_foreign_file_is_in_the_project() -> None:
    run = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS
    )
    if run.returncode:
        pytest.skip("not a checkout of git")
    assert foreign(run.stdout.splitlines()) == []


def test_foreign_files_are_seen() -> None:
    assert foreign(["src/a.py", "py_spy-0.4.3.whl", "tests/core.1234", "LICENSE"]) == [
        "py_spy-0.4.3.whl",
        "tests/core.1234",
    ]


def test_no_unfinished_marks() -> None:
    mark = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
    found = [
        name_of(path)
        for path in [*MODULES, *PAGES]
        if mark.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


# --- the documentation ----------------------------------------------------------------------------


BLOCK = re.compile(r"^```.*?^```[ ]*$", flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a page, as mkdocs and code hosts build them (titles hold no links)."""
    titles = re.findall(
        r"^#{1,6}\s+(.+)$", BLOCK.sub("", path.read_text(encoding="utf-8")), flags=re.MULTILINE
    )
    return {
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(
        r"\]\(([^)\s]+)[^)]*\)",
        re.sub(r"`[^`\n]*`", "", BLOCK.sub("", page.read_text(encoding="utf-8"))),
    ):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = unquote(target).partition("#")
        goal = (page.parent / file).resolve() if file else page
        if not goal.exists() or (anchor and goal.suffix == ".md" and anchor not in anchors(goal)):
            broken.append(target)
    assert broken == []


def test_lines_of_pages_are_not_too_long() -> None:
    texts = {
        page: BLOCK.sub(
            lambda block: "\n" * block.group().count("\n"), page.read_text(encoding="utf-8")
        )
        for page in PAGES
    }
    lines = [
        (name_of(page), number, line)
        for page, text in texts.items()
        for number, line in enumerate(text.split("\n"), 1)
    ]
    assert [
        (page, number)
        for page, number, line in lines
        if len(line) > 160 and not line.lstrip().startswith("|")
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_toml_blocks_are_toml(page: Path) -> None:
    for block in re.findall(
        r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    ):
        assert tomllib.loads(block)


def test_types_are_checked_wherever_no_test_runs_the_code() -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"][
        "files"
    ]
    checked = {
        file
        for one in said
        for found in ROOT.glob(one)
        for file in (found.rglob("*.py") if found.is_dir() else [found])
    }
    folders = {
        path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")
    } - {"build", "site", "tests"}
    missed = {
        file
        for folder in folders
        for file in (ROOT / folder).rglob("*.py")
        if file.name != "conftest.py"
    } - checked
    assert not missed


def test_whole_specs_in_the_documentation_are_accepted() -> None:
    from leastnoise._spec._spec import parse_spec

    blocks = re.findall(
        r"^```toml\n(.*?)^```",
        (ROOT / "docs" / "spec.md").read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
    whole = [block for block in blocks if "[privacy]" in block and "[[workload]]" in block]
    assert len(whole) == 2
    assert [parse_spec(block, ROOT).workload.rows for block in whole] == [
        2 * 74 + 2 * 500 + 2 * 9 + 74 * 500 + 74 * 9 + 500 * 9 + 2 * 500,
        213 + 3 + 3 + 3 * 20 + 74,  # a mean by sex is a sum and the number of values given
    ]


def test_the_version_is_one() -> None:
    import leastnoise

    cited = re.findall(
        r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    collected = re.findall(
        r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert [*cited, collected[0]] == [leastnoise.__version__] * 2


@pytest.mark.parametrize("file", ["Dockerfile", ".devcontainer/devcontainer.json"])
def test_containers_run_commands_that_there_are(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    run = set(
        re.findall(r'make"?,? "?([a-z]+)', re.sub(r"^RUN apt-get.*", "", text, flags=re.MULTILINE))
    )
    assert "env" in run
    # No test builds the image, which needs a registry of images: every line that make would run is
    # found, and what they name is copied.
    for name in sorted(run):
        subprocess.run(
            ["make", "-n", name], cwd=ROOT, check=True, capture_output=True, timeout=HANGS
        )
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert not {"src", "pyproject.toml", "README.md", "LICENSE", "Makefile", "tests"} & {
        line.strip("/") for line in left_out
    }


def test_pages_named_in_the_sources_exist() -> None:
    missing = [
        f"{name_of(path)}: {name}"
        for path in MODULES
        for name in re.findall(
            r"\bdocs/[\w/-]+\.md|\bPROOFS-[\w-]+\.md", path.read_text(encoding="utf-8")
        )
        if not ((ROOT / name).exists() if name.startswith("docs/") else any(SOURCE.rglob(name)))
    ]
    assert missing == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [
        page
        for page in pages
        if page not in navigation and not page.startswith(("decisions/", "results/"))
    ] == []


def test_every_decision_is_in_the_list() -> None:
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    pages = [
        path.name for path in (ROOT / "docs" / "decisions").glob("*.md") if path.name != "README.md"
    ]
    assert pages != []
    assert [page for page in pages if f"({page})" not in listed] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_in_the_documentation_run(page: Path) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    modules = tuple(
        block for block in blocks if block.startswith('"""')
    )  # run where they are written (test_contributing)
    source = "\n".join(block for block in blocks if ">>>" in block and block not in modules)
    example = doctest.DocTestParser().get_doctest(source, {}, name_of(page), str(page), 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(
        example, out=report.append
    )
    assert "".join(report) == ""


# --- the floor under the number of tests ----------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["-n", "2"], 1), (["-k", "one"], 0), (["test_small.py"], 0)],
    ids=["full, on two workers", "selected by name", "selected by path"],
)
def test_a_full_run_with_too_few_tests_fails(
    tmp_path: Path, arguments: list[str], code: int
) -> None:
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    (tmp_path / "conftest.py").write_text(
        re.sub(r"(?m)^LEAST_NUMBER_OF_TESTS = \d+$", "LEAST_NUMBER_OF_TESTS = 3", conftest),
        encoding="utf-8",
    )
    (tmp_path / "test_small.py").write_text(
        "def test_one():\n    assert True\n\ndef test_two():\n    assert True\n", encoding="utf-8"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = .\n", encoding="utf-8")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
        env=environment,
    )
    assert run.returncode == code, run.stdout + run.stderr
    assert ("only 2 tests were collected; at least 3 are expected" in run.stdout) == bool(code)
