"""Rules that hold for every file of the project."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

from contracts.trusted import HELPERS, LOCKING_LIBRARIES, LOCKS
from contracts.trusted import TRUSTED as TRUSTED_PACKAGES
from leastnoise._trusted.linop import operator_classes
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

# Oracles and other people's mechanisms are for tests, baselines and experiments. Reading a pickle
# runs code. Nothing needs the network, and only the kernel draws random numbers.
BANNED_EVERYWHERE = {
    "cvxpy", "diffprivlib", "dp_accounting", "jax", "matplotlib", "mpmath", "opendp", "pandas",
    "torch", "pickle", "marshal", "shelve", "socket", "http", "urllib", "requests", "random",
}  # fmt: skip
NUMPY_ONLY = {f"_trusted/{name}" for name in ("check", "accounting", "kernel", "table")}
# `leastnoise check` is for the data holder only. Its file takes names from private modules of the
# readers, because no package exports them: so nothing that makes a release can use them.
READERS = ("leastnoise._trusted.reading._", "leastnoise._trusted.reading.helpers._")
HOLDER = {"_holder/_check.py": READERS, "_sources/_schema.py": READERS}
# Where a seeded generator of NumPy is allowed: nothing that it draws protects anybody.
SEEDED = (
    # Seeded entropy for tests and experiments, which marks its releases as not private.
    "_trusted/kernel/helpers/_seeded.py",
    "_families/",  # starts of a search over public values
    "_strategies/",  # the same
    "_error/_joint.py",  # error bars by simulation of the plan, which is public
    "_estimation/_mixture.py",  # where the fit of a model starts, whatever the data are
    "_estimation/_smoothing.py",  # the estimate of risk, by adding noise to measurements
    "_estimation/_model_estimates.py",  # error bars by fits to other noise, and records
    "_release/_record",  # values within the bins of these, and their units and weights
    "_estimation/_non_negative.py",  # error bars, at the estimate
    "_estimation/_cdf.py",  # simultaneous bands, by simulation of the plan
    "_estimation/_joint_intervals.py",  # joint intervals, by simulation of the plan
    "_cli/_demo.py",  # the generated survey
)
parse = cache(ast.parse)  # several rules look at each file


def name_of(path):
    return str(path.relative_to(ROOT))


def read(path):
    return path.read_text(encoding="utf-8")


@cache
def nodes_of(tree):
    """Return all nodes of a file; walking through them takes longer than any rule."""
    return tuple(ast.walk(tree))


def imported(tree):
    """Yield the line and the dotted name of every import, inside functions too."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if module.split(".")[0] != "leastnoise":
                yield node.lineno, module
                continue
            # `from leastnoise import _plan` and `from leastnoise._plan import _plan` name modules.
            for alias in node.names:
                is_module = module == "leastnoise" or alias.name.startswith("_")
                yield node.lineno, f"{module}.{alias.name}" if is_module else module


def module_name(package):
    return ".".join(filter(None, ["leastnoise", package.replace("/", ".")]))


def sort_key(name):
    """Order CONSTANTS, then Classes, then functions, as ruff's RUF022 does."""
    if name.isupper() and len(name) > 1:
        return 0, name
    return (1 if name[:1].isupper() else 2), name


# --- the code -------------------------------------------------------------------------------------


def exported(module):
    """Return the names that a package lists or, of a private one, imports from its own files."""
    if hasattr(module, "__all__") or not getattr(module, "__file__", ""):
        return list(getattr(module, "__all__", []))
    return [
        alias.asname or alias.name
        for node in ast.walk(parse(read(Path(module.__file__))))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(module.__name__)
        for alias in node.names
    ]


@pytest.mark.parametrize("package", ["", *PACKAGES])
def test_exported_names_are_public_and_importable(package):
    module = importlib.import_module(module_name(package))
    names = exported(module)
    assert names == sorted(names, key=sort_key) or package
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []
    assert [name for name in names if name.startswith("_") and name != "__version__"] == []


def test_every_module_can_be_imported():
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


# The examples in these files are tests, as in every other untrusted file.
NOT_TRUSTED = {f"leastnoise.{file.removesuffix('.py').replace('/', '.')}" for file in HELPERS}


def undocumented(module):
    """List exported classes without a docstring and exported functions without an example."""
    complaints = []
    for name in exported(module):
        member = getattr(module, name)
        if not getattr(member, "__module__", "").startswith("leastnoise"):
            continue  # a constant, or an alias of a type
        text = inspect.getdoc(member) or ""
        generated = text.startswith(f"{getattr(member, '__name__', name)}(")  # of a dataclass
        if inspect.isclass(member) and (not text or generated):
            complaints.append(f"{name} has no docstring")
        needs_example = inspect.isroutine(member) and member.__module__ not in NOT_TRUSTED
        if needs_example and ">>>" not in text:
            complaints.append(f"{name} has no example that runs")
    return complaints


SECTION = re.compile(r"^(?:Args|Attributes):\n((?:    .*\n?|\n)*)", flags=re.MULTILINE)
LISTED = re.compile(r"^    (\w+(?:, \w+)*):", flags=re.MULTILINE)


def listed_names(text):
    """Return the names in the lists of arguments and attributes of a docstring."""
    lines = [line for section in SECTION.findall(text) for line in LISTED.findall(section)]
    return {name for line in lines for name in line.split(", ")}


def described_below(statements):
    """Return the fields that a text below them describes."""
    return {
        field.target.id
        for field, text in pairwise(statements)
        if isinstance(field, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def wrong_attributes(tree):
    """List differences between fields of classes and the lists of attributes in their docstrings.

    Private fields and class variables may be left out. A class with a base class may list the
    fields of that base class.
    """
    complaints = []
    for node in ast.walk(tree):
        text = ast.get_docstring(node) or "" if isinstance(node, ast.ClassDef) else ""
        if "\nAttributes:\n" not in text:
            continue
        listed = listed_names(text)
        annotations = {
            statement.target.id: ast.unparse(statement.annotation)
            for statement in node.body
            if isinstance(statement, ast.AnnAssign)
        }
        required = {
            name
            for name, annotation in annotations.items()
            if not name.startswith("_") and "ClassVar" not in annotation
        }
        missing = required - listed - described_below(node.body)
        complaints += [f"{node.name} does not list {name}" for name in sorted(missing)]
        bases = {ast.unparse(base) for base in node.bases} - {"NamedTuple"}
        generates_fields = any("dataclass" in ast.unparse(each) for each in node.decorator_list)
        if not bases and (generates_fields or node.bases):
            members = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            unknown = listed - annotations.keys() - members
            complaints += [f"{node.name} has no field {name}" for name in sorted(unknown)]
    return complaints


def test_lists_of_attributes_are_complete():
    found = {name_of(path): wrong_attributes(parse(read(path))) for path in MODULES}
    assert {name: complaints for name, complaints in found.items() if complaints} == {}


@pytest.mark.parametrize(
    ("header", "listed", "complaints"),
    [
        ("@dataclass\nclass A:", "x: one.", ["A does not list y"]),
        ("class A(NamedTuple):", "x, y, z: three.", ["A has no field z"]),
        ("class A(B):", "x, y, z: three.", []),
        ("@dataclass\nclass A:", "x: one.\n        y: two.", []),
    ],
)
def test_incomplete_lists_of_attributes_are_detected(header, listed, complaints):
    docstring = f'    """Text.\n\n    Attributes:\n        {listed}\n    """\n'
    assert (
        wrong_attributes(ast.parse(f"{header}\n{docstring}    x: int\n    y: int\n")) == complaints
    )


def misplaced_arguments(tree, exported_names):
    """List private dataclasses and named tuples that check nothing and have a section Args."""
    complaints = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name in exported_names:
            continue
        declarations = [*node.decorator_list, *node.bases]
        has_fields = any(
            re.search("dataclass|NamedTuple", ast.unparse(each)) for each in declarations
        )
        methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        has_checks = not methods.isdisjoint({"__init__", "__post_init__"})
        if has_fields and not has_checks and "\nArgs:\n" in (ast.get_docstring(node) or ""):
            complaints.append(f"{node.name} should list its fields under Attributes")
    return complaints


def test_fields_of_private_classes_are_listed_as_attributes():
    import leastnoise

    names = set(leastnoise.__all__)
    found = {name_of(path): misplaced_arguments(parse(read(path)), names) for path in MODULES}
    assert {name: complaints for name, complaints in found.items() if complaints} == {}


@pytest.mark.parametrize(
    ("header", "method", "is_refused"),
    [
        ("@dataclass\nclass A:", "columns", True),
        ("class A(NamedTuple):", "columns", True),
        ("@dataclass\nclass A:", "__post_init__", False),
        ("@dataclass\nclass Exported:", "columns", False),
        ("class A(B):", "columns", False),
    ],
)
def test_fields_listed_as_arguments_are_detected(header, method, is_refused):
    docstring = '    """Text.\n\n    Args:\n        x: one.\n    """\n'
    tree = ast.parse(f"{header}\n{docstring}    x: int\n    def {method}(self): ...\n")
    assert bool(misplaced_arguments(tree, {"Exported"})) == is_refused


@pytest.mark.parametrize("package", ["", *TRUSTED_PACKAGES])
def test_public_and_trusted_members_are_documented(package):
    assert undocumented(importlib.import_module(module_name(package))) == []


def test_missing_documentation_is_detected():
    module = ModuleType("leastnoise.bad")
    source = (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\ndef b():\n"
        "    'Nothing to show.'\n__all__ = ['A', 'b']\n"
    )
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, "bad", "exec"), module.__dict__)  # noqa: S102 - text of this very test
    finally:
        del sys.modules[module.__name__]
    assert undocumented(module) == ["A has no docstring", "b has no example that runs"]


STRUCTURES = {
    *(one.__name__ for one in operator_classes()), "CellsInverse", "CoarseInverse",
    "DenseInverse", "DenseStructure", "IterativeStructure", "PairStructure", "ProductStructure",
    "ToeplitzInverse", "TreeInverse",
}  # fmt: skip
# Parts of operators; query sets and estimates that are proved class by class; and what a file must
# hold to be read.
CLASSES_ASKED_FOR_IN = (
    "_trusted/linop/", "_trusted/measurements/", "_workload/_query_sets.py",
    "_estimation/_expansion.py", "_estimation/_plane_expansion.py",
)  # fmt: skip
ARRAYS = {f"npt.NDArray[{kind}]" for kind in ("np.float64", "np.int64", "np.bool_", "Any")}


def asks_for_class(node):
    """Tell whether it is isinstance() with the class of an operator or of a structure."""
    is_question = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and len(node.args) == 2
    )
    if not is_question:
        return False
    names = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
    return bool(STRUCTURES & names)


def package_of(relative):
    """Return the package of a file, named by its path; a package may be one file."""
    folder, _, file = relative.rpartition("/")
    if folder.startswith("_trusted/"):
        return "/".join(folder.split("/")[:2])
    if folder:
        return folder.split("/")[0]
    return "" if file.startswith("__") else file.removesuffix(".py")


def faulty_expressions(relative, tree):
    """Yield what the expressions of a file do against the rules."""
    seeded = relative.startswith(SEEDED)
    for node in nodes_of(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Attribute) and node.attr == "random" and not seeded:
            if ast.unparse(node) in {"np.random", "numpy.random"}:
                yield (
                    f"{line}: numpy.random draws nothing that protects; use "
                    "leastnoise._trusted.kernel"
                )
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng"):
            if not (node.args or node.keywords):
                yield f"{line}: a generator without a seed"
        if asks_for_class(node) and not relative.startswith(CLASSES_ASKED_FOR_IN):
            yield f"{line}: register a function for the class (functools.singledispatch)"
        if isinstance(node, ast.Subscript) and relative != "_trusted/check/arrays.py":
            if ast.unparse(node) in ARRAYS:
                yield (
                    f"{line}: arrays of these numbers have a name in "
                    "leastnoise._trusted.check.arrays"
                )


def faulty_imports(relative, tree):
    """Yield what the imports of a file do against the rules."""
    package = package_of(relative)
    for line, name in imported(tree):
        top, *inner = name.split(".")
        if inner[:1] == ["_trusted"]:
            inner = ["/".join(inner[:2]), *inner[2:]]
        other = inner[0] if top == "leastnoise" and inner else ""
        is_library = top not in sys.stdlib_module_names and top not in {"", "numpy", "leastnoise"}
        draws = name.startswith("numpy.random") and not relative.startswith(SEEDED)
        is_private = any(part.startswith("_") for part in inner[1:])
        # Reading a URL needs no network.
        if (top in BANNED_EVERYWHERE and name != "urllib.parse") or draws:
            yield f"{line}: {name} is not to be imported in the package"
        is_lock = relative == LOCKS and top in LOCKING_LIBRARIES
        if package in NUMPY_ONLY and is_library and not is_lock:
            yield f"{line}: {name}: trusted code needs numpy and the standard library only"
        if package and other == package and len(inner) == 1 and "/__init__" not in relative:
            yield f"{line}: import from the private module, not from the package's own __init__"
        if package and name == "leastnoise":
            yield f"{line}: a package does not import the public face above it"
        if other and other != package and is_private:
            if not name.startswith(HOLDER.get(relative, "-")):
                yield f"{line}: {name} is private to {other}"


def faults(relative, text):
    """List what a source file, named by its path in the package, does against the rules."""
    tree = parse(text)
    needless = re.compile(r"\s*>>> (from leastnoise|import (leastnoise|numpy|pandas)\b)")
    displaced = re.compile(r"\s*[])}].*  # (?!noqa|fmt:|type:)")
    return [
        *faulty_expressions(relative, tree),
        *faulty_imports(relative, tree),
        *(
            f"{number}: src/conftest.py gives examples their names"
            for number, line in enumerate(text.splitlines(), 1)
            if needless.match(line)
        ),
        *(
            f"{number}: a comment is above its statement, not after a closing bracket"
            for number, line in enumerate(text.splitlines(), 1)
            if displaced.match(line)
        ),
    ]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_source_file_keeps_the_rules(path):
    text = path.read_text(encoding="utf-8")
    assert faults(path.relative_to(SOURCE).as_posix(), text) == []
    assert is_the_same_optimized(text)


def is_the_same_optimized(text):
    """Tell whether `python -O` runs the same instructions, so that it drops no guard."""
    return compile(text, "", "exec", optimize=0, dont_inherit=True) == compile(
        text, "", "exec", optimize=1, dont_inherit=True
    )


@pytest.mark.parametrize(
    ("relative", "text", "complaint"),
    [
        ("_plan/_x.py", "import numpy as np\nnp.random.PCG64(1)", "draws nothing that protects"),
        ("_plan/_x.py", "from numpy.random import default_rng", "not to be imported"),
        ("_strategies/_x.py", "import numpy as np\nnp.random.default_rng()", "without a seed"),
        (
            "_plan/_x.py",
            "def f():\n    import opendp.prelude",
            "opendp.prelude is not to be imported",
        ),
        ("_error/_x.py", "isinstance(operator, (Total, Identity))", "register a function"),
        ("_plan/_x.py", "from leastnoise._plan import Plan", "own __init__"),
        ("_plan/_x.py", "import leastnoise", "public face above"),
        ("_plan/_x.py", "from leastnoise._domain._kinds import Bins", "private to _domain"),
        ("_trusted/kernel/_x.py", "def f():\n    import scipy.linalg", "standard library only"),
        ("_trusted/kernel/_noise/_x.py", "import duckdb", "standard library only"),
        (
            "_plan/_x.py",
            "def f(x: npt.NDArray[np.int64]): pass",
            "have a name in leastnoise._trusted.check.arrays",
        ),
        (
            "_plan/_x.py",
            '"""X.\n\n>>> from leastnoise._plan import Plan\n"""',
            "gives examples their names",
        ),
        ("_plan/_x.py", "x = f(\n    1\n)  # one", "not after a closing bracket"),
    ],
)
def test_broken_rules_are_detected(relative, text, complaint):
    assert [complaint in fault for fault in faults(relative, text)] == [True]


def test_rules_allow_good_code():
    text = (
        "import json\nimport numpy as np\n"
        "from leastnoise._trusted.check import refuse\n"
        "from leastnoise._trusted.kernel._noise import draw\n"
    )
    seeded = "import numpy as np\nnp.random.PCG64(1)"
    assert [
        faults(*one)
        for one in (("_trusted/kernel/_x.py", text), ("_trusted/kernel/helpers/_seeded.py", seeded))
    ] == [[]] * 2
    assert [is_the_same_optimized(text) for text in ("assert 1", "if __debug__: f()", "f()")] == [
        False,
        False,
        True,
    ]


def in_circles(texts):
    """List modules that import themselves through others, in functions and for types too."""
    graph: dict[str, set[str]] = {}
    for module, text in texts.items():
        tree = parse(text)
        names = {name for _, name in imported(tree)}
        names |= {str(node.module) for node in nodes_of(tree) if isinstance(node, ast.ImportFrom)}
        parents = {name for name in names if module.startswith(f"{name}.")}
        graph[module] = (names & set(texts)) - parents - {module}
    return [module for module in graph if module in reachable(graph, module)]


def reachable(graph, start):
    """Return all modules that a module imports, directly or through others."""
    reached: set[str] = set()
    ahead = list(graph[start])
    while ahead:
        module = ahead.pop()
        if module not in reached:
            reached.add(module)
            ahead += graph[module]
    return reached


def test_no_files_import_each_other_in_a_circle():
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
def test_import_circles_are_detected(back):
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


def hurried(text):
    """List where a test sets a limit in seconds that a busy machine may miss."""
    if "timeout" not in text and "deadline" not in text:
        return []  # most files, which need not be parsed
    limits = []
    calls = (node for node in nodes_of(parse(text)) if isinstance(node, ast.Call))
    for call in calls:
        for word in call.keywords:
            if word.arg not in {"timeout", "deadline"}:
                continue
            if ast.unparse(call.func) in {"Ledger.open", "Ledger.create"}:
                continue  # tests of ledgers are about how long they wait for a lock
            value = ast.unparse(word.value)
            is_number = isinstance(word.value, ast.Constant) and value != "None"
            if is_number or (word.arg == "deadline" and value != "None"):
                limits.append(f"{call.lineno}: {word.arg}={value}")
    return limits


def test_tests_do_not_depend_on_machine_speed():
    texts = {
        name_of(path): path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")
    }
    assert {name: lines for name, text in texts.items() if (lines := hurried(text))} == {}


def test_timing_dependent_tests_are_detected():
    text = (
        "run(c, timeout=60)\nrun(c, timeout=HANGS)\nsettings(deadline=200)\n"
        "settings(deadline=None)\nLedger.open(p, timeout=0)\n"
    )
    assert hurried(text) == ["1: timeout=60", "3: deadline=200"]


# What stands at the root of the project.
AT_ROOT = {
    ".ci", ".devcontainer", ".dockerignore", ".git-blame-ignore-revs", ".githooks", ".github",
    ".gitignore", "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md",
    "Dockerfile", "LICENSE", "Makefile",
    "README.md", "SECURITY.md", "mkdocs.yml", "pyproject.toml",
    "baselines", "bench", "changelog.d", "contracts", "docs", "examples", "experiments", "src",
    "tests",
}  # fmt: skip
KINDS_OF_FILES = re.compile(
    r".*\.(py|pyi|c|typed|md|toml|yml|cff|css|js|mjs|json|csv|txt|sql|svg|png|html|j2|sh|spec|ipynb"
    r"|qmd|R|Rmd|xsd|xml|pot?)"
)
OTHER_FILES = {
    ".dockerignore", ".git-blame-ignore-revs", ".gitignore", "Dockerfile", "LICENSE", "Makefile",
    "commit-msg", "run",
}  # fmt: skip


def files_of_project():
    """Return the files that git has, or would take up: all but those that it ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS
    )
    if listing.returncode:
        pytest.skip("not a checkout of git")
    return listing.stdout.splitlines()


def unknown_at_root(files):
    """List entries of the root that nobody knows, such as a folder that a program has left."""
    return sorted({file.split("/")[0] for file in files} - AT_ROOT)


def foreign(files):
    """List files that are no kind of source, page, picture or table of the project."""
    return [
        file
        for file in files
        if not KINDS_OF_FILES.fullmatch(file) and Path(file).name not in OTHER_FILES
    ]


def test_root_has_listed_entries_only():
    assert unknown_at_root(files_of_project()) == []


def test_unknown_entries_are_detected():
    files = ["src/a.py", "on/4f2b.json", "LICENSE", "notes.md", ".github/workflows/test.yml"]
    assert unknown_at_root(files) == ["notes.md", "on"]


def test_no_foreign_file_is_in_the_project():
    assert foreign(files_of_project()) == []


def test_foreign_files_are_detected():
    files = ["src/a.py", "py_spy-0.4.3.whl", "tests/core.1234", "LICENSE"]
    assert foreign(files) == ["py_spy-0.4.3.whl", "tests/core.1234"]


def without_tests(texts):
    """List test files that define no test; pytest would pass over them in silence."""
    return [
        name for name, text in texts.items() if not re.search(r"^\s*def test_", text, re.MULTILINE)
    ]


def test_every_test_file_has_tests():
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "baselines").rglob("test_*.py")]
    assert len(files) > 200
    assert without_tests({name_of(file): read(file) for file in files}) == []
    assert without_tests(
        {"a": "def tset_one():\n    pass\n", "b": "def test_one():\n    pass"}
    ) == ["a"]


def test_workflow_runs_the_command_of_the_readme_with_all_tests():
    workflow = read(ROOT / ".github" / "workflows" / "test.yml")
    commands = re.findall(r"^ +- run: (.*)$", workflow, flags=re.MULTILINE)
    assert commands == [
        "make lint types imports",
        "sudo make machine",
        "make test ALL=1",
        "make oldest",
    ]
    assert re.search(r"^    make test .*ALL=1", read(ROOT / "README.md"), flags=re.MULTILINE)
    assert "exec make test ALL=1 " in read(ROOT / ".ci" / "run")
    assert all(f"\n  {event}:" in workflow for event in ("push", "pull_request", "schedule"))


def test_workflow_runs_once_for_each_pull_request():
    workflow = read(ROOT / ".github" / "workflows" / "test.yml")
    assert "\n  push:\n    branches: [main]\n" in workflow
    group = re.search(r"^concurrency:\n((?:  .*\n)+)", workflow, flags=re.MULTILINE)
    assert group is not None
    assert "pull_request.number || github.run_id" in group[1]
    assert "cancel-in-progress: ${{ github.event_name == 'pull_request' }}" in group[1]


def test_no_unfinished_marks():
    mark = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
    files = [
        name_of(path)
        for path in [*MODULES, *PAGES]
        if mark.search(path.read_text(encoding="utf-8"))
    ]
    assert files == []


# A comment behind a closing bracket, which is not an instruction to a tool.
COMMENT_BEHIND_BRACKET = re.compile(r"\s*[)\]}]+[:,]?\s+# (?!fmt: |noqa|type: )")


def comments_behind_brackets(text):
    """Return the lines whose comment should stand above its statement."""
    return [line for line in text.splitlines() if COMMENT_BEHIND_BRACKET.match(line)]


def test_comments_stand_above_their_statements():
    folders = ("baselines", "bench", "contracts", "examples", "experiments", "src", "tests")
    found = {
        name_of(path): lines
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if (lines := comments_behind_brackets(path.read_text(encoding="utf-8")))
    }
    assert found == {}


def test_comments_behind_brackets_are_detected():
    misplaced = "    )  # of both tables"
    assert comments_behind_brackets(f"f(\n    1\n{misplaced}\n") == [misplaced]
    assert comments_behind_brackets("f(1)  # one\n)  # fmt: skip\n)  # noqa: S603\n") == []


# --- the documentation ----------------------------------------------------------------------------


BLOCK = re.compile(r"^```.*?^```[ ]*$", flags=re.DOTALL | re.MULTILINE)


def anchors(path):
    """Return the anchors of a page's headings, as mkdocs builds them from plain titles."""
    titles = re.findall(
        r"^#{1,6}\s+(.+)$", BLOCK.sub("", path.read_text(encoding="utf-8")), flags=re.MULTILINE
    )
    return {
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_point_to_existing_targets(page):
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


def fragment_faults(text):
    """Return the rules of changelog.d/README.md that the text of a fragment breaks."""
    faults = []
    if text.count("\n") != 1 or not text.endswith("\n"):
        faults.append("a fragment is one line")
    if not text.rstrip("\n").endswith("."):
        faults.append("a fragment ends with a full stop")
    if re.match(r"(The|An?|This|These|[A-Z]\w+s)\b|[^A-Z]", text):
        faults.append("a fragment begins with a verb in the imperative")
    return faults


def test_fragments_are_sentences_of_one_line():
    fragments = {
        path: path.read_text(encoding="utf-8")
        for path in (ROOT / "changelog.d").glob("*.md")
        if path.name != "README.md"
    }
    assert {name_of(path): fragment_faults(text) for path, text in fragments.items()} == {
        name_of(path): [] for path in fragments
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Add survey weights.\nFix a bound.\n", "one line"),
        ("Add survey weights\n", "full stop"),
        ("Adds survey weights.\n", "imperative"),
        ("The strategy is new.\n", "imperative"),
    ],
)
def test_faulty_fragments_are_detected(text, fault):
    (fault_found,) = fragment_faults(text)
    assert fault in fault_found


def test_lines_of_pages_are_not_too_long():
    texts = {
        page: BLOCK.sub(
            lambda block: "\n" * block.group().count("\n"), page.read_text(encoding="utf-8")
        )
        for page in PAGES
        if page.parent.name != "changelog.d"  # a fragment is one line of any length
    }
    lines = [
        (name_of(page), number, line)
        for page, text in texts.items()
        for number, line in enumerate(text.split("\n"), 1)
    ]
    long_lines = [
        f"{page}:{number}"
        for page, number, line in lines
        if len(line) > 160 and not line.lstrip().startswith("|")
    ]
    assert long_lines == [], f"break these lines after at most 160 characters: {long_lines}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_toml_blocks_are_toml(page):
    for block in re.findall(
        r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    ):
        assert tomllib.loads(block)


def test_types_are_checked_outside_tests():
    settings = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["mypy"]
    checked: set[Path] = set()
    for pattern in settings["files"]:
        for path in ROOT.glob(pattern):
            checked |= set(path.rglob("*.py")) if path.is_dir() else {path}
    folders = [ROOT / name for name in AT_ROOT - {"tests"} if not name.startswith(".")]
    files = {file for folder in folders for file in folder.rglob("*.py")}
    assert {file for file in files - checked if file.name != "conftest.py"} == set()


def test_whole_specs_in_the_documentation_are_accepted():
    from leastnoise._spec import parse_spec

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


def test_version_is_stated_once():
    import leastnoise

    cited = re.findall(
        r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    collected = re.findall(
        r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert [*cited, collected[0]] == [leastnoise.__version__] * 2


@pytest.mark.parametrize("file", ["Dockerfile", ".devcontainer/devcontainer.json"])
def test_containers_run_existing_commands(file):
    """No test builds the image, which needs a registry: make must know the targets."""
    text = re.sub(r"^RUN apt-get.*", "", read(ROOT / file), flags=re.MULTILINE)
    targets = set(re.findall(r'make"?,? "?([a-z]+)', text))
    assert "env" in targets
    for name in sorted(targets):
        subprocess.run(
            ["make", "-n", name], cwd=ROOT, check=True, capture_output=True, timeout=HANGS
        )
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert not {"src", "pyproject.toml", "README.md", "LICENSE", "Makefile", "tests"} & {
        line.strip("/") for line in left_out
    }


def test_pages_named_in_the_sources_exist():
    missing = [
        f"{name_of(path)}: {name}"
        for path in MODULES
        for name in re.findall(
            r"\bdocs/[\w/-]+\.md|\bPROOFS-[\w-]+\.md", path.read_text(encoding="utf-8")
        )
        if not ((ROOT / name).exists() if name.startswith("docs/") else any(SOURCE.rglob(name)))
    ]
    assert missing == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [
        page
        for page in pages
        if page not in navigation and not page.startswith(("decisions/", "results/"))
    ] == []


def test_every_decision_is_in_the_list():
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    pages = [
        path.name for path in (ROOT / "docs" / "decisions").glob("*.md") if path.name != "README.md"
    ]
    assert pages != []
    assert [page for page in pages if f"({page})" not in listed] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_in_the_documentation_run(page):
    blocks = re.findall(r"^```python\n(.*?)^```", read(page), flags=re.DOTALL | re.MULTILINE)
    source = "\n".join(block for block in blocks if ">>>" in block)
    example = doctest.DocTestParser().get_doctest(source, {}, name_of(page), str(page), 0)
    report: list[str] = []
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(verbose=False, optionflags=options)
    runner.run(example, out=report.append)
    assert "".join(report) == ""
