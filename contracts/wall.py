"""The wall, as an import contract: what only the kernel, the adapters, the table and the holder's command may reach.

The design itself is the first wall: sessions and mechanisms hold handles without contents, and paid series draw from the system's
randomness alone (K7, K8 and section 4 of PROOFS-kernel.md). This contract closes what is left to careless or curious authors; `wall.toml`
has the lists. Every word that a file uses as a name, an attribute, a keyword of a pattern, an import or a text is compared with the
reserved words. Besides:

- what is imported is listed, with fewer modules where the place of the data is at hand;
- names that begin with an underscore are their own file's or package's; what is computed (`getattr`, formats, classes) is not let through;
- nothing of another package is changed, registered with, or derived from, where the kernel and the adapters call it with private values;
- a private source is only passed on, to functions whose parameter is called ``source`` too, and read with the caller's display of progress.

`lint-imports` runs it with the other contracts. It reads the sources, so it refuses what a source says; SECURITY.md says what that leaves.
"""

import ast
import importlib.util
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from importlinter import Contract, ContractCheck, fields, output

from contracts.trusted import BESIDE

SOURCE = Path(__file__).parents[1] / "src" / "leastnoise"
_PRIVATE = re.compile(r"_[^_]")
_FIELD = re.compile(r"\{[^{}]*\._")
INSIDE = {"_adapters", "_holder", "_kernel", "_table"}
# Whose classes and dispatched functions the kernel and the adapters call with private values.
TRUSTED = INSIDE | {"_accounting", "_domain", "_linop", "_measurements"}
# Code of these packages runs where a table or a series is at hand; of the last ones, where the place of the data is.
NEAR = {"_audit", "_cli", "_estimate", "_mechanisms", "_planning", "_release", "_session", "_spec"}
AT_DATA = {"_audit", "_estimate", "_mechanisms", "_planning", "_session", "_spec"}

LISTS = tomllib.loads(Path(__file__).with_name("wall.toml").read_text(encoding="utf-8"))
ALLOWED: Mapping[str, Mapping[str, str]] = LISTS["allowed"]
BUILTINS = LISTS["builtins"].split()
IMPORTS = {name: {*words.split()} for name, words in LISTS["imports"].items()}
DUNDERS = {"__doc__", "__getitem__", "__mul__", "__name__", "__version__"}
MAKERS = {"__init__", "__post_init__", "_keep"}  # methods that set the fields of a frozen value that is being made
# Functions that may be given the private source, besides those of the session.
SOURCE_GOES_TO = {
    "_adapters.check_source", "_adapters.dataset_name", "_adapters.join_facts", "_adapters.located", "_adapters.location",
    "_adapters.protected_tables", "_adapters.read", "_adapters.read_keys", "isinstance", "type",
}  # fmt: skip


@dataclass
class _File:
    """One source file: its syntax tree, what its names stand for, and the faults found so far."""

    place: str
    tree: ast.Module
    found: list[tuple[int, str]] = field(default_factory=list)
    imported: dict[str, str] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)  # names of the fields and methods of its classes
    nodes: list[ast.AST] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes += ast.walk(self.tree)
        for node in self.nodes:
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
        """Return where the first name of an expression was imported from; "" if it was not imported."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        return self.imported.get(node.id, "") if isinstance(node, ast.Name) else ""

    def trusted(self, node: ast.AST) -> bool:
        """Tell whether an expression is of another package, which the kernel or the adapters call with private values."""
        return self.home(node).startswith("leastnoise.") and self.home(node).split(".")[1] in TRUSTED - {self.package}

    def refuse(self, node: ast.AST, what: str) -> None:
        """Record a fault, unless the node is part of an allowed expression or import."""
        allowed = {ast.unparse(ast.parse(expression)) for expression in ALLOWED.get(self.place, {})}
        around: ast.AST | None = node
        while isinstance(around, ast.expr | ast.Import | ast.ImportFrom):
            if ast.unparse(around) in allowed:
                return
            around = self.parents.get(around)
        self.found.append((getattr(node, "lineno", 0), what))


def faults(place: str, text: str) -> list[str]:
    """Return the ways through the wall that a file opens.

    Args:
        place: path of the file in the package, such as ``_session/_dawa.py``.
        text: its source.

    Returns:
        Lines for people; empty if there is none.

    >>> faults("_session/_x.py", "from leastnoise._kernel import Series")
    []
    >>> faults("_session/_x.py", "rows = vars(series)")
    ['_session/_x.py:1: vars']
    """
    file = _File(place, ast.parse(text))
    if file.package in INSIDE and Path(place).name not in BESIDE.get(file.package, ()):
        return []
    for node in file.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            _import(file, node)
        elif isinstance(node, ast.Name) and node.id in {"_HOMES", "_HOME_OF"}:
            _lazy(file, node)
    reserved = dict(_reserved(file))
    for node in file.nodes:
        for word in reserved.keys() & _reached(node):
            file.refuse(node, f"{word} {reserved[word]}")
        _node(file, node)
    return [f"{place}:{line}: {what}" for line, what in sorted(set(file.found))]


def _reserved(file: _File) -> Iterator[tuple[str, str]]:
    """Give the words that a file may not use, each with the reason."""
    for rule in LISTS["reserved"]:
        there = file.place in rule["only"].split() if "only" in rule else file.package in AT_DATA or not rule.get("near_data")
        if there and file.place not in rule.get("but", "").split():
            yield from ((word, rule["why"]) for word in rule["words"].split())


def _reached(node: ast.AST) -> Iterator[str]:
    """Give every word that a node uses, as code or in a text that code may look up."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.MatchClass):
        yield from node.kwd_attrs
    elif isinstance(node, ast.Import | ast.ImportFrom):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        yield from (word for name in [*modules, *(alias.name for alias in node.names)] for word in name.split("."))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if re.fullmatch(r"[\w.]+", node.value):
            yield from node.value.split(".")
        for inside in re.findall(r"\{([^{}]*)\}", node.value):
            yield from re.findall(r"\w+", inside)


def _import(file: _File, node: ast.Import | ast.ImportFrom) -> None:
    above = file.parents.get(node)
    typing_only = isinstance(above, ast.If) and ast.unparse(above.test) == "TYPE_CHECKING" and node in above.body
    typing_only &= file.imported.get("TYPE_CHECKING") == "typing.TYPE_CHECKING"
    listed = IMPORTS["anywhere"] | (set() if file.package in AT_DATA else IMPORTS["elsewhere"])
    for alias in node.names:
        module = alias.name if isinstance(node, ast.Import) else "." * node.level + (node.module or "")
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
        elif module not in listed or (root == "os" and file.package in AT_DATA and {*parts} - IMPORTS["os"]):
            file.refuse(node, f"{whole} is imported")


def _lazy(file: _File, node: ast.Name) -> None:
    """Check a list of names that are imported on first use: it is a literal, is never changed, and obeys the rules of imports."""
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
    """Check the rules that are not lists of words."""
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
    if node.id in BUILTINS and node.id not in file.imported:
        name = call.args[1] if call is not None and len(call.args) > 1 else None
        if node.id != "getattr" or not isinstance(name, ast.Constant) or str(name.value).startswith("_"):
            file.refuse(call or node, node.id)
    if file.imported.get(node.id) == "os" and file.package in AT_DATA and getattr(above, "attr", "") not in IMPORTS["os"]:
        file.refuse(above or node, "what is not listed of the operating system is used")
    if node.id == "TYPE_CHECKING" and not isinstance(node.ctx, ast.Load):
        file.refuse(node, "what is imported for types alone is imported")
    if node.id == "type" and call is not None and len(call.args) > 1:
        file.refuse(call, "a class is made without its bases being seen")
    # in the spec the word means its own table
    if file.package not in AT_DATA - {"_audit", "_estimate"} or node.id not in {"progress", "source"} or file.place == "_spec/_spec.py":
        return
    if not isinstance(node.ctx, ast.Load):
        file.refuse(node, f"{node.id} is replaced by something else")
    elif node.id == "source" and not (isinstance(above, ast.Call) and node in above.args and _hands_on(file, above, node)):
        file.refuse(above or node, "the private source is used, and not only handed on")


def _hands_on(file: _File, call: ast.Call, source: ast.Name) -> bool:
    """Tell whether a call passes the source to the adapters, or to a function of the session whose parameter is called ``source`` too."""
    name, place, tree = ast.unparse(call.func), call.args.index(source), file.tree
    if (home := file.imported.get(name, "")).startswith("leastnoise._session._"):
        tree = ast.parse(SOURCE.joinpath(*home.split(".")[1:-1]).with_suffix(".py").read_text(encoding="utf-8"))
    called = [one.args.args[place : place + 1] for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    own = bool(called) and all([one.arg for one in given] == ["source"] for given in called)
    return name in SOURCE_GOES_TO or (own and not any(isinstance(one, ast.Starred) for one in call.args))


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
    """Return the name of the method that contains a node; None if there is none."""
    above: ast.AST | None = node
    while above is not None and not isinstance(above, ast.FunctionDef | ast.Lambda):
        above = file.parents.get(above)
    return above.name if isinstance(above, ast.FunctionDef) and isinstance(file.parents.get(above), ast.ClassDef) else None


def modules(folder: Path) -> Iterator[tuple[str, str]]:
    """Place and text of every file of the package."""
    for path in sorted(folder.rglob("*.py")):
        yield path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8")


def unused(folder: Path) -> list[str]:
    """Return the exceptions of `wall.toml` that are not needed any more."""
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
