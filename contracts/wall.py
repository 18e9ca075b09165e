"""The wall as an import contract: what no file may reach but the kernel, the adapters, the table, and the holder's own command.

The wall holds by design first: what sessions and mechanisms have are handles without contents, and what is paid for draws from the system's
randomness alone (K7, K8 and section 4 of PROOFS-kernel.md). This keeps careless and over-curious authors out of what is left. One rule for
words: every word that a file reaches, as a name, an attribute, a keyword of a pattern, an import or a text, is compared with `RESERVED`,
whatever way it is spelled. Besides:

- names that begin with an underscore are their own file's or package's; what is computed (`getattr`, formats, classes) is not let through;
- nothing of another package is changed, registered with, or derived from, where the kernel and the adapters call it with private values;
- a private source is handed on and not used otherwise, and read with the caller's own display of progress.

`lint-imports` runs it with the other contracts. It reads the sources, so it refuses what a source says; SECURITY.md says what that leaves.
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

_PRIVATE = re.compile(r"_[^_]")
_FIELD = re.compile(r"\{[^{}]*\._")
INSIDE = {"_adapters", "_holder", "_kernel", "_table"}
# Whose classes and dispatched functions the kernel and the adapters call with private values.
TRUSTED = INSIDE | {"_accounting", "_domain", "_linop", "_measurements"}
# Code of these packages runs where a table or a series is at hand; of the last ones, where the place of the data is.
NEAR = {"_audit", "_cli", "_estimate", "_mechanisms", "_release", "_session"}
AT_DATA = {"_audit", "_estimate", "_mechanisms", "_session"}

BUILTINS = "__builtins__ __import__ breakpoint compile delattr dir eval exec getattr globals locals memoryview setattr vars"
# Why (in `AT_DATA` alone where it says "near data"): words (modules where it says "is imported") | the files that may reach them.
RESERVED = """
is imported: _ctypes _thread bdb builtins cffi code codeop copyreg ctypes dis faulthandler gc importlib inspect marshal mmap mock operator \
    pdb pickle pkgutil profile cProfile runpy trace traceback tracemalloc types unittest weakref adbc_driver_manager \
    adbc_driver_postgresql duckdb ibis narwhals pandas polars pyarrow pyspark
is imported, near data: codecs concurrent fileinput io linecache multiprocessing pty shutil signal sqlite3 subprocess tokenize
looks into other objects: addaudithook ag_frame as_strided attrgetter buffer_info cr_frame ctypes ctypeslib exc_info excepthook f_back \
    f_builtins f_code f_globals f_locals from_address get_field get_objects get_referents get_referrers gi_frame import_module last_exc \
    last_traceback last_value memmap meta_path methodcaller modules monitoring path_hooks setprofile setprofile_all_threads settrace \
    settrace_all_threads tb_frame tb_next unraisablehook __class__ __closure__ __code__ __defaults__ __dict__ __func__ __getattribute__ \
    __globals__ __kwdefaults__ __reduce_ex__ __self__ __subclasses__ __traceback__ __wrapped__
changes how numbers are computed: seterr seterrcall seterrobj setbufsize
changes how numbers are computed, near data: errstate | _estimate/_plane_expansion.py _mechanisms/_choose.py
is noise that is not paid for: SystemEntropy simulate | _audit/_made_up.py
is noise that is not paid for: UnpaidSeries | _audit/_made_up.py _session/_categories.py _session/_session.py
is noise that is not paid for: SeededEntropy | _audit/_made_up.py _session/_audit.py _session/_categories.py _session/_session.py
is a payment that is not the kernel's: reserve
makes a ledger: create | _cli/_ledger.py _session/_categories.py _session/_session.py
changes what a ledger allows: set_budget | _cli/_ledger.py
enters what was spent: add_spent | _cli/_ledger.py _session/_elsewhere.py
takes a payment over: take_over | _session/_categories.py _session/_finish.py
tells where the data are: location | _session/_before.py _session/_categories.py _session/_expected.py _session/_session.py
tells where the data are: located | _session/_before.py
opens a file or starts a program, near data: open read_bytes fromfile genfromtxt loadtxt fromregex popen system fork forkpty posix_spawn \
    execv posix_spawnp execve execvp spawnv spawnve Popen check_output symlink_to hardlink_to
opens a file or starts a program, near data: fdopen | _session/_kept.py
opens a file or starts a program, near data: read_text | _session/_accounts.py _session/_before.py _session/_elsewhere.py \
    _session/_export.py _session/_kept.py _session/_reading.py
"""
OPENED = {"Ledger.open", "os.open"}
DUNDERS = {"__doc__", "__getitem__", "__mul__", "__name__", "__version__"}
MAKERS = {"__init__", "__post_init__", "_freeze_weights", "_keep"}  # methods that set the fields of a frozen value that is being made
# And to functions of the session.
SOURCE_GOES_TO = {
    "_adapters.check_source", "_adapters.dataset_name", "_adapters.join_facts", "_adapters.located", "_adapters.location",
    "_adapters.protected_tables", "_adapters.read", "_adapters.read_keys", "isinstance", "type",
}  # fmt: skip

_LAZY = "public names, and the libraries of users' data frames, are imported when they are asked for; the names are listed there"
_NAMED = "the names are listed in the same function, or are those of a budget's parts"
_ITSELF = "a frozen value that is being made, or an object of the same class"
_SHOWN = "where a fault happened: files and lines, without the values of variables"
_HOLDER = "shows the data's holder exact counts, paid by nobody and marked private; nothing that makes a release imports it"
_FACE = {"from importlib import import_module": _LAZY, "getattr(import_module(f'leastnoise.{_HOME_OF[name]}'), name)": _LAZY}
ALLOWED: Mapping[str, Mapping[str, str]] = {
    "__init__.py": {**_FACE, "globals()": _LAZY, "from leastnoise._holder import check": _HOLDER},
    "_mechanisms/__init__.py": _FACE,
    "_session/__init__.py": _FACE,
    "_stopped.py": {"import traceback": _SHOWN, "error.__traceback__": _SHOWN},
    "_accounting/_budget.py": {"getattr(amount, one.name)": _NAMED},
    "_session/_public_files.py": {"path.open": "lists of categories, which are public"},
    "_session/_spec.py": {"place.open": "the spec"},
    "_audit/_made_up.py": {"from leastnoise._table import Table": "of rows that the same file lists; none that a reader made comes here"},
    "_cli/_check.py": {"from leastnoise._holder import check as checked": _HOLDER},
    "_cli/_demo.py": {"import duckdb": "writes the generated survey"},
    "_cli/_experiments.py": {
        "import importlib": "experiments are found by their files' names",
        "import inspect": "whether an experiment needs data stands in its signature",
        "importlib.import_module(f'experiments.{known[name]}')": "experiments are found by their files' names",
    },
    "_mechanisms/_choose.py": {"from gc import disable, enable, freeze, get_freeze_count, isenabled, unfreeze": "none gives objects"},
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
    "_progress.py": {
        "from types import TracebackType": "an annotation",
        "sys.modules": "whether IPython is loaded, by whoever uses a notebook",
    },
    "_threads.py": {"_LATER in sys.modules": "whether SciPy is loaded, whose library has threads of its own"},
    "_domain/_dates.py": {"self.format": "how dates are written, a field that the attribute's author fills; nothing is formatted by it"},
    "_domain/_domain.py": {"from types import MappingProxyType": "a mapping that cannot be written"},
    "_linop/_json.py": {"getattr(operator, one.name)": _NAMED},
    "_linop/_operators.py": {"Sized.__post_init__(self)": _ITSELF},
    "_release/_files.py": {
        "getattr(self, name)": _NAMED,
        "self.__slots__": _NAMED,
        "TableEntry.__slots__": _NAMED,
        "import duckdb": "writes CSV files",
        "import pyarrow as pa": "writes Parquet files, of answers",
        "from pyarrow.parquet import write_table": "the same",
    },
    "_plan/_plan.py": {"from importlib.metadata import PackageNotFoundError, version": "the version of the package"},
    "_frames.py": {
        "import importlib": _LAZY,
        "import importlib.util": _LAZY,
        "importlib.import_module(name)": _LAZY,
        "kind.__module__": "the library that a class of data frames is from; of a class, which tells nothing of rows",
    },
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
            for part in node.body if isinstance(node, ast.ClassDef) else []:
                if isinstance(part, ast.FunctionDef):
                    self.own.add(part.name)
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    self.own.add(part.target.id)

    @property
    def package(self) -> str:
        return self.place.split("/")[0] if "/" in self.place else ""

    def home(self, node: ast.AST) -> str:
        """Where what an expression begins with was imported from; "" if it was not."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        return self.imported.get(node.id, "") if isinstance(node, ast.Name) else ""

    def trusted(self, node: ast.AST) -> bool:
        """Whether it is of another package, which the kernel or the adapters call with private values."""
        return self.home(node).startswith("leastnoise.") and self.home(node).split(".")[1] in TRUSTED - {self.package}

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
            _import(file, node)
        elif isinstance(node, ast.Name) and node.id in {"_HOMES", "_HOME_OF"}:
            _lazy(file, node)
    reserved = dict(_reserved(file))
    for node in ast.walk(file.tree):
        for word in set(reserved) & set(_reached(node)):
            file.refuse(node, f"{word} {reserved[word]}")
        _node(file, node)
    return [f"{place}:{line}: {what}" for line, what in sorted(set(file.found))]


def _reserved(file: _File) -> Iterator[tuple[str, str]]:
    """The words that a file may not reach, and why."""
    for line in RESERVED.strip().splitlines():
        why, _, rest = line.partition(": ")
        words, _, places = rest.partition(" | ")
        if file.place not in places.split() and (not why.endswith(", near data") or file.package in AT_DATA):
            prefix = "import " if why.startswith("is imported") else ""
            yield from ((prefix + word, why) for word in words.split())


def _reached(node: ast.AST) -> Iterator[str]:
    """Every word that a node names, as code or as a text that code may look up."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute) and ast.unparse(node) not in OPENED:
        yield node.attr
    elif isinstance(node, ast.MatchClass):
        yield from node.kwd_attrs
    elif isinstance(node, ast.Import | ast.ImportFrom):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        yield from (f"import {name.split('.')[0]}" for name in modules)
        yield from (word for name in [*modules, *(alias.name for alias in node.names)] for word in name.split("."))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if re.fullmatch(r"[\w.]+", node.value):
            yield from node.value.split(".")
        for inside in re.findall(r"\{([^{}]*)\}", node.value):
            yield from re.findall(r"\w+", inside)


def _import(file: _File, node: ast.Import | ast.ImportFrom) -> None:
    above = file.parents.get(node)
    typing_only = isinstance(above, ast.If) and ast.unparse(above.test).endswith("TYPE_CHECKING") and node in above.body
    for alias in node.names:
        whole = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
        file.imported[alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)] = whole
        root, *parts = whole.split(".")
        if alias.name == "*":
            file.refuse(node, f"names that are not written out are imported: {whole}")
        elif root == "leastnoise":
            if parts[:1] in (["_holder"], ["_table"]) and not typing_only:
                file.refuse(node, "rows are imported, which only the kernel, the adapters and the holder's own command may open")
            if parts[:1] not in ([file.package], ["_check"]) and any(map(_PRIVATE.match, parts[1:])):
                file.refuse(node, f"a private name of another package is imported: {whole}")
        elif alias.name in BUILTINS.split():
            file.refuse(node, f"{whole} is imported")


def _lazy(file: _File, node: ast.Name) -> None:
    """What is imported when it is asked for is imported: the list is written out, is never changed, and obeys the rules of imports."""
    above = file.parents[node]
    if (
        isinstance(above, ast.Assign)
        and node.id == "_HOMES"
        and not {ast.BinOp, ast.Call, ast.Name} & set(map(type, ast.walk(above.value)))
    ):
        for home, names in ast.literal_eval(above.value).items():
            _import(file, ast.ImportFrom(f"leastnoise.{home}", [ast.alias(name) for name in names], 0, lineno=node.lineno))
        return
    used = {"_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}", "_HOMES.items", "_HOME_OF[name]"}
    if not isinstance(above, ast.Compare) and (ast.unparse(above) not in used or isinstance(getattr(above, "ctx", None), ast.Store)):
        file.refuse(node, f"the list of what is imported later is used otherwise: {ast.unparse(above)}")


def _node(file: _File, node: ast.AST) -> None:
    """What no list of words can say."""
    if isinstance(node, ast.Name):
        _name(file, node)
    elif isinstance(node, ast.Attribute):
        _attribute(file, node)
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and file.home(node).startswith("leastnoise"):
        file.refuse(node, f"an item of another package's object is changed: {ast.unparse(node)}")
    elif isinstance(node, ast.ClassDef):
        for base in filter(file.trusted, node.bases):
            file.refuse(base, f"{node.name} is derived from a trusted class: {ast.unparse(base)}")
    elif isinstance(node, ast.Call) and "_adapters" in file.home(node) and ast.unparse(node.func).split(".")[-1] in {"read", "read_keys"}:
        said = {keyword.arg or "**": ast.unparse(keyword.value) for keyword in node.keywords}
        if "**" in said or said.get("progress", "None") not in {"progress", "None"}:
            file.refuse(node, f"the reading of rows is watched: {ast.unparse(node)}")
    elif isinstance(node, ast.MatchClass) and any(map(_PRIVATE.match, node.kwd_attrs)):
        file.refuse(node, f"a pattern reads a private attribute: {ast.unparse(node)}")
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _FIELD.search(node.value):
        file.refuse(node, f"a format reads a private attribute: {node.value!r}")


def _name(file: _File, node: ast.Name) -> None:
    above = file.parents.get(node)
    call = above if isinstance(above, ast.Call) and above.func is node else None
    if node.id in BUILTINS.split() and node.id not in file.imported:
        name = call.args[1] if call is not None and len(call.args) > 1 else None
        if node.id != "getattr" or not isinstance(name, ast.Constant) or str(name.value).startswith("_"):
            file.refuse(call or node, node.id)
    if node.id == "type" and call is not None and len(call.args) > 1:
        file.refuse(call, "a class is made without its bases being seen")
    # in the spec the word means its own table
    if file.package not in {"_mechanisms", "_session"} or node.id not in {"progress", "source"} or file.place == "_session/_spec.py":
        return
    if not isinstance(node.ctx, ast.Load):
        file.refuse(node, f"{node.id} is replaced by something else")
    elif node.id == "source":
        called = isinstance(above, ast.Call) and node in above.args and _hands_on(file, above.func)
        if not called:
            file.refuse(above or node, "the private source is used, and not only handed on")


def _hands_on(file: _File, function: ast.expr) -> bool:
    own = isinstance(function, ast.Name) and file.imported.get(function.id, f"leastnoise.{file.package}").startswith("leastnoise._session")
    return ast.unparse(function) in SOURCE_GOES_TO or (own and ast.unparse(function) not in vars(builtins))


def _attribute(file: _File, node: ast.Attribute) -> None:
    own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"} and _method(file, node) is not None
    text, home = ast.unparse(node), file.home(node)
    mine = own or node.attr in file.own or home.startswith(f"leastnoise.{file.package}.")
    if node.attr in {"format", "format_map"} and not isinstance(node.value, ast.Constant):
        file.refuse(node, f"a computed text is a format, which can read attributes: {text}")
    if node.attr == "register" and file.trusted(node):
        file.refuse(node, f"a function is registered with another package: {text}")
    if node.attr.startswith("__") and node.attr not in DUNDERS:
        call = file.parents.get(node)
        made = isinstance(call, ast.Call) and bool(call.args) and ast.unparse(call.args[0]) == "self" and _method(file, node) in MAKERS
        if text != "super().__init__" and not (text == "object.__setattr__" and made):
            file.refuse(node, text)
    elif _PRIVATE.match(node.attr) and not mine:
        file.refuse(node, f"a private attribute: {text}")
    if not isinstance(node.ctx, ast.Load) and not own and (home or file.package in NEAR):
        file.refuse(node, f"an attribute is changed: {text}")


def _method(file: _File, node: ast.AST) -> str | None:
    """The name of the method that a node stands in, None if it is in none."""
    above: ast.AST | None = node
    while above is not None and not isinstance(above, ast.FunctionDef | ast.Lambda):
        above = file.parents.get(above)
    return above.name if isinstance(above, ast.FunctionDef) and isinstance(file.parents.get(above), ast.ClassDef) else None


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
