"""The wall as an import contract: only the kernel, the adapters and the table may open, watch or patch what holds private rows.

`lint-imports` runs it with the other contracts. It reads the sources, so it can refuse only what a source says; it is made against
a careless or over-curious author of a session, a planner or an estimate, and refuses every way to the rows that we could think of:

- imports of what opens a table, and of any module or name inside another package that begins with an underscore;
- attributes that begin with an underscore, of anything but ``self``; computed attributes; ``vars``, ``__dict__`` and the like;
- modules that look into other objects: ``gc``, ``inspect``, ``importlib``, ``ctypes`` ...; frames and tracebacks;
- patches: attributes set or deleted of anything but ``self``, functions registered with another package's dispatch, classes derived from
  those that the kernel and the adapters call;
- seeded noise, which costs nothing, and libraries that read tables, in any place but those listed;
- any use of a private source except handing it on.

What stands in `ALLOWED` is let through: exact expressions of exact files, each with its reason.
"""

import ast
import builtins
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from importlinter import Contract, ContractCheck, fields, output

PUBLIC_SOURCE = "_session/_spec.py"  # there the word means the table of the spec file
_FIELD = re.compile(r"\{[^{}]*\._")
INSIDE = {"_adapters", "_kernel", "_table"}
# Whose classes and dispatched functions the kernel and the adapters call with private values.
TRUSTED = INSIDE | {"_accounting", "_domain", "_linop", "_measurements"}

MODULES = {
    "_ctypes", "_thread", "bdb", "builtins", "cffi", "code", "codeop", "copyreg", "ctypes", "dis", "faulthandler", "gc", "importlib",
    "inspect", "marshal", "mmap", "mock", "operator", "pdb", "pickle", "pkgutil", "profile", "cProfile", "runpy", "trace", "traceback",
    "tracemalloc", "types", "unittest", "weakref",
}  # fmt: skip
READERS = {"adbc_driver_manager", "adbc_driver_postgresql", "duckdb", "ibis", "narwhals", "pandas", "polars", "pyarrow", "pyspark"}
BUILTINS = {
    "__builtins__", "__import__", "breakpoint", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals", "locals", "memoryview",
    "setattr", "vars",
}  # fmt: skip
ATTRIBUTES = {
    "addaudithook", "ag_frame", "as_strided", "attrgetter", "cr_frame", "ctypes", "ctypeslib", "exc_info", "excepthook", "f_back",
    "f_builtins", "f_globals", "f_locals", "from_address", "get_field", "gi_frame", "import_module", "last_exc",
    "last_traceback", "last_value", "memmap", "meta_path", "methodcaller", "modules", "monitoring", "path_hooks", "setprofile",
    "setprofile_all_threads", "settrace", "settrace_all_threads", "tb_frame", "tb_next", "unraisablehook",
}  # fmt: skip
DUNDERS = {"__doc__", "__getitem__", "__mul__", "__name__", "__version__"}
MAKERS = {"__init__", "__post_init__", "_freeze_weights", "_keep"}  # methods that set the fields of a frozen value that is being made
PAYING = {"reserve"}  # the kernel pays, with the cost that it has computed
LEDGERS_MADE_IN = {"_cli/_ledger.py", "_session/_categories.py", "_session/_session.py"}
SEEDED = {"SeededEntropy", "simulate", "simulated"}
SEEDED_IN = {"_session/_categories.py", "_session/_session.py"}  # releases and searches with a seed, which say that they protect nobody
# And to functions of the session.
SOURCE_GOES_TO = {
    "Path", "_adapters.dataset_name", "_adapters.join_facts", "_adapters.located", "_adapters.location", "_adapters.protected_tables",
    "_adapters.read", "_adapters.read_keys", "isinstance", "type",
}  # fmt: skip
# Code of these packages runs where a table or a series is at hand.
NEAR = {"_audit", "_cli", "_estimate", "_mechanisms", "_release", "_session"}

_LAZY = "public names, and the libraries of users' data frames, are imported when they are asked for; the names are listed there"
_NAMED = "the names are listed in the same function, or are those of a budget's parts"
_ITSELF = "a frozen value that is being made, or an object of the same class"
_SHOWN = "where a fault happened: files and lines, without the values of variables"
_HOLDER = (
    "`leastnoise check` shows the data's holder exact counts, paid by nobody and marked private; an import contract keeps everything that "
    "makes a release from importing it"
)
_FACE = {"from importlib import import_module": _LAZY, "getattr(import_module(f'leastnoise.{_HOME_OF[name]}'), name)": _LAZY}
ALLOWED: Mapping[str, Mapping[str, str]] = {
    "__init__.py": {
        **_FACE,
        "globals()": _LAZY,
        "from leastnoise._session._fit import check": _HOLDER,
    },
    "_mechanisms/__init__.py": _FACE,
    "_session/__init__.py": _FACE,
    "_stopped/_causes.py": {"import traceback": _SHOWN, "error.__traceback__": _SHOWN},
    "_accounting/_budget.py": {"getattr(amount, one.name)": _NAMED},
    "_cli/_check.py": {"from leastnoise._session._fit import check as checked": _HOLDER},
    "_cli/_demo.py": {"import duckdb": "writes the generated survey"},
    "_cli/_experiments.py": {
        "import importlib": "experiments are found by their files' names",
        "import inspect": "whether an experiment needs data stands in its signature",
        "importlib.import_module(f'experiments.{known[name]}')": "experiments are found by their files' names",
    },
    "_mechanisms/_choose.py": {
        "from gc import disable, enable, freeze, get_freeze_count, isenabled, unfreeze": "none of these gives objects",
    },
    "_cli/_init.py": {"_HEAD.format": "a constant of the same file"},
    "_cli/_ledger.py": {"getattr(entry.charge, part)": _NAMED},
    "_cli/_main.py": {
        "import traceback": _SHOWN,
        "error.__traceback__": _SHOWN,
        "sys.modules['leastnoise'].__version__": "the version of the package",
        "sys.stdout": "a closed stream becomes an empty one",
        "sys.stderr": "the same",
    },
    "_cli/_output.py": {"getattr(charge, name)": _NAMED},
    "_cli/_plan.py": {"getattr(paid, name)": _NAMED, "getattr(most, name)": _NAMED},
    "_progress/_progress.py": {
        "from types import TracebackType": "an annotation",
        "sys.modules": "whether IPython is loaded, by whoever uses a notebook",
    },
    "_threads/_limit.py": {"_LATER in sys.modules": "whether SciPy is loaded, whose library has threads of its own"},
    "_domain/_dates.py": {"self.format": "how dates are written, a field that the attribute's author fills; nothing is formatted by it"},
    "_linop/_json.py": {"getattr(operator, one.name)": _NAMED},
    "_linop/_operators.py": {"Sized.__post_init__(self)": _ITSELF},
    "_session/_fit.py": {
        "from leastnoise._adapters._fit import ColumnFit, Fit, JoinFit, rows_fit": _HOLDER,
    },
    "_release/_files.py": {
        "getattr(self, name)": _NAMED,
        "self.__slots__": _NAMED,
        "TableEntry.__slots__": _NAMED,
        "import duckdb": "writes CSV files",
        "import pyarrow as pa": "writes Parquet files, of answers",
        "from pyarrow.parquet import write_table": "the same",
    },
    "_plan/_versions.py": {"from importlib.metadata import PackageNotFoundError, version": "the version of the package"},
    "_release/_columns.py": {"import importlib": _LAZY, "import importlib.util": _LAZY, "importlib.import_module(name)": _LAZY},
}


@dataclass
class _File:
    """One source file, and what its names stand for."""

    place: str
    tree: ast.Module
    found: list[tuple[int, str]] = field(default_factory=list)
    imported: dict[str, str] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)  # names of the fields and methods of its classes

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            self.parents.update(dict.fromkeys(ast.iter_child_nodes(node), node))
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef):
                        self.own.add(part.name)
                    elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                        self.own.add(part.target.id)

    @property
    def package(self) -> str:
        return self.place.split("/")[0] if "/" in self.place else ""

    def refuse(self, node: ast.AST, what: str) -> None:
        """Unless the node is part of an allowed expression or import."""
        allowed = {ast.unparse(ast.parse(expression)) for expression in ALLOWED.get(self.place, {})}
        around: ast.AST | None = node
        while isinstance(around, ast.expr | ast.Import | ast.ImportFrom):
            if ast.unparse(around) in allowed:
                return
            around = self.parents.get(around)
        self.found.append((getattr(node, "lineno", 0), what))


def faults(place: str, text: str) -> list[str]:
    """Ways through the wall that a file opens.

    Args:
        place: of the file in the package, such as ``_session/_dawa.py``.
        text: what it says.

    Returns:
        Lines for people; empty if there is none.

    >>> faults("_session/_x.py", "from leastnoise._kernel import Series")
    []
    >>> faults("_session/_x.py", "rows = vars(series)")
    ['_session/_x.py:1: vars']
    """
    file = _File(place, ast.parse(text))
    if file.package in INSIDE:
        return []
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            _import(file, node, typing_only=_typing_only(node, file.parents))
        elif isinstance(node, ast.Name) and node.id in {"_HOMES", "_HOME_OF"}:
            _lazy(file, node)
    for node in ast.walk(file.tree):
        _node(file, node)
    return [f"{place}:{line}: {what}" for line, what in sorted(file.found)]


def _node(file: _File, node: ast.AST) -> None:
    if isinstance(node, ast.Name):
        _name(file, node)
    elif isinstance(node, ast.Attribute):
        _attribute(file, node)
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        if file.imported.get(_root(node), "").startswith("leastnoise"):
            file.refuse(node, f"an item of another package's object is changed: {ast.unparse(node)}")
    elif isinstance(node, ast.ClassDef):
        _bases(file, node)
    elif isinstance(node, ast.Call):
        _reading(file, node)
    elif isinstance(node, ast.MatchClass) and any(name.startswith("_") for name in node.kwd_attrs):
        file.refuse(node, f"a pattern reads a private attribute: {ast.unparse(node)}")
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _FIELD.search(node.value):
        file.refuse(node, f"a format reads a private attribute: {node.value!r}")


def _typing_only(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    above = parents.get(node)
    return isinstance(above, ast.If) and ast.unparse(above.test).endswith("TYPE_CHECKING") and node in above.body


def _import(file: _File, node: ast.Import | ast.ImportFrom, *, typing_only: bool) -> None:
    pairs = (
        [(alias.name, alias.asname or alias.name.split(".")[0]) for alias in node.names]
        if isinstance(node, ast.Import)
        else [(f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names]
    )
    for whole, local in pairs:
        file.imported[local] = whole
        parts = whole.split(".")
        if parts[0] == "leastnoise":
            other = parts[1] if len(parts) > 1 else ""
            if other == "_table" and not typing_only:
                file.refuse(node, "the table is imported, which only the kernel and the adapters may open")
            if other not in {file.package, "_check"} and any(_private(part) for part in parts[2:]):
                file.refuse(node, f"a private name of another package is imported: {whole}")
            if parts[-1] in SEEDED and file.place not in SEEDED_IN:
                file.refuse(node, f"seeded noise, which is not paid for: {whole}")
        elif parts[0] in MODULES | READERS or parts[-1] in ATTRIBUTES | BUILTINS:
            file.refuse(node, f"{whole} is imported")


def _lazy(file: _File, node: ast.Name) -> None:
    """What is imported when it is asked for is imported: the list is written out, is never changed, and obeys the rules of imports."""
    above = file.parents[node]
    if isinstance(above, ast.Assign) and node.id == "_HOMES":
        try:
            homes = dict(ast.literal_eval(above.value))
        except ValueError:
            file.refuse(node, "what is imported later is not written out")
            return
        for home, names in homes.items():
            later = ast.ImportFrom(f"leastnoise.{home}", [ast.alias(name) for name in names], 0, lineno=node.lineno)
            _import(file, later, typing_only=False)
    elif isinstance(above, ast.Assign):
        if ast.unparse(above) != "_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}":
            file.refuse(node, "what is imported later is not what is listed")
    else:
        kept = isinstance(above, ast.Compare) or (isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Load))
        if not kept and not (isinstance(above, ast.Attribute) and above.attr == "items" and node.id == "_HOMES"):
            file.refuse(node, f"the list of what is imported later is used otherwise: {ast.unparse(above)}")


def _name(file: _File, node: ast.Name) -> None:
    above = file.parents.get(node)
    if node.id in BUILTINS and node.id not in file.imported:
        if node.id == "getattr" and isinstance(above, ast.Call) and above.func is node and _plain_name(above):
            return
        file.refuse(above if isinstance(above, ast.Call) and above.func is node else node, node.id)
    near = file.package in {"_mechanisms", "_session"} and file.place != PUBLIC_SOURCE
    if near and node.id in {"progress", "source"} and not isinstance(node.ctx, ast.Load):
        file.refuse(node, f"{node.id} is replaced by something else")
    if node.id == "type" and isinstance(above, ast.Call) and above.func is node and len(above.args) > 1:
        file.refuse(above, "a class is made without its bases being seen")
    if near and node.id == "source" and isinstance(node.ctx, ast.Load):
        called = isinstance(above, ast.Call) and node in above.args and _hands_on(file, above.func)
        onward = file.parents.get(above) if called and isinstance(above, ast.Call) and ast.unparse(above.func) == "Path" else None
        if not called or (isinstance(onward, ast.Attribute) and onward.attr != "name"):
            file.refuse(above or node, "the private source is used, and not only handed on")


def _reading(file: _File, call: ast.Call) -> None:
    """A source is read with the caller's own display of progress, which is told the number of rows, and with nothing else that watches."""
    if ast.unparse(call.func).split(".")[-1] not in {"read", "read_keys"} or "_adapters" not in file.imported.get(_root(call.func), ""):
        return
    for keyword in call.keywords:
        if keyword.arg is None or (keyword.arg == "progress" and ast.unparse(keyword.value) not in {"progress", "None"}):
            file.refuse(call, f"the reading of rows is watched: {ast.unparse(keyword.value)}")


def _hands_on(file: _File, function: ast.expr) -> bool:
    home = file.imported.get(_root(function), f"leastnoise.{file.package}" if isinstance(function, ast.Name) else "")
    known = isinstance(function, ast.Name) and home.startswith("leastnoise._session") and function.id not in vars(builtins)
    return known or ast.unparse(function) in SOURCE_GOES_TO


def _plain_name(call: ast.Call) -> bool:
    """``getattr`` of a name that can be read in the source and is not private."""
    return len(call.args) > 1 and isinstance(call.args[1], ast.Constant) and not str(call.args[1].value).startswith("_")


def _attribute(file: _File, node: ast.Attribute) -> None:
    own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"} and _method(file, node) is not None
    text = ast.unparse(node)
    home = file.imported.get(_root(node), "")
    if node.attr in ATTRIBUTES:
        file.refuse(node, text)
    if node.attr in SEEDED and file.place not in SEEDED_IN:
        file.refuse(node, f"seeded noise, which is not paid for: {text}")
    if node.attr in PAYING or (text == "Ledger.create" and file.place not in LEDGERS_MADE_IN):
        file.refuse(node, f"a payment that is not the kernel's: {text}")
    if node.attr in {"format", "format_map"} and not isinstance(node.value, ast.Constant):
        file.refuse(node, f"a computed text is a format, which can read attributes: {text}")
    if node.attr == "register" and home.startswith("leastnoise.") and home.split(".")[1] in TRUSTED - {file.package}:
        file.refuse(node, f"a function is registered with another package: {text}")
    if node.attr.startswith("__") and node.attr not in DUNDERS:
        if text != "super().__init__" and (text != "object.__setattr__" or not _made(file, node)):
            file.refuse(node, text)
    elif _private(node.attr) and not (own or node.attr in file.own or home.startswith(f"leastnoise.{file.package}.")):
        file.refuse(node, f"a private attribute: {text}")
    if not isinstance(node.ctx, ast.Load) and not own and (home or file.package in NEAR):
        file.refuse(node, f"an attribute is changed: {text}")


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _method(file: _File, node: ast.AST) -> str | None:
    """The name of the method that a node stands in, None if it is in none."""
    above: ast.AST | None = node
    while above is not None and not isinstance(above, ast.FunctionDef | ast.Lambda):
        above = file.parents.get(above)
    return above.name if isinstance(above, ast.FunctionDef) and isinstance(file.parents.get(above), ast.ClassDef) else None


def _made(file: _File, node: ast.AST) -> bool:
    """Whether a field of ``self`` is set by the method that makes it."""
    return _of_self(file.parents.get(node)) and _method(file, node) in MAKERS


def _of_self(call: ast.AST | None) -> bool:
    return isinstance(call, ast.Call) and bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id == "self"


def _bases(file: _File, node: ast.ClassDef) -> None:
    for base in node.bases:
        home = file.imported.get(_root(base), "")
        if home.startswith("leastnoise.") and home.split(".")[1] in TRUSTED - {file.package}:
            file.refuse(base, f"{node.name} is derived from a trusted class: {ast.unparse(base)}")


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def modules(folder: Path) -> Iterator[tuple[str, str]]:
    """Place and text of every file of the package."""
    for path in sorted(folder.rglob("*.py")):
        yield path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8")


def unused(folder: Path) -> list[str]:
    """Exceptions that let nothing through any more."""
    left = []
    for place, expressions in ALLOWED.items():
        tree = ast.parse((folder / place).read_text(encoding="utf-8"))
        there = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.expr | ast.Import | ast.ImportFrom)}
        left += [f"{place}: {one}" for one in expressions if ast.unparse(ast.parse(one)) not in there]
    return left


class WallContract(Contract):
    """The rules of this file, for every module of a package."""

    package = fields.StringField()

    def check(self, graph: object, verbose: bool) -> ContractCheck:  # noqa: ARG002, FBT001 - import-linter's signature
        """Read every file of the package."""
        found = importlib.util.find_spec(str(self.package))
        folder = Path(str(found and found.origin)).parent
        lines = [line for place, text in modules(folder) for line in faults(place, text)]
        return ContractCheck(kept=not lines, metadata={"lines": lines})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Say what was found, and where."""
        for line in check.metadata["lines"]:
            output.print_error(line)
        output.new_line()
        output.print_error("Only leastnoise._kernel and leastnoise._adapters may come near private rows; see contracts/wall.py.")
