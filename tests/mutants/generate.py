"""Every mutant of a file, and a random sample of mutants of the trusted packages."""

import random
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, ParentNodeProvider, PositionProvider
from mutmut.mutation.mutators import mutation_operators

from contracts.trusted import TRUSTED

# Their first argument is the name of what they check, for the message.
_CHECKS = {
    "attribute_name", "checked_text", "exact", "exact_positive", "fields_of", "fraction_from_text",
    "fraction_to_text", "checked_keys", "one_of", "exact_with_few_digits", "whole",
    "_exact_positive_parameter",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    Attributes:
        file: below ``src/leastnoise``.
        number: among the mutants of the file.
        first: first line of the code that is changed.
        last: last line of it.
        statement: first line of the statement it is part of.
        before: that code.
        after: what becomes of it.
        words: whether it is part of what an error is made of: its message, seldom its kind; or the
            name that a check is given for it.
    """

    file: str
    number: int
    first: int
    last: int
    statement: int
    before: str
    after: str
    words: bool

    @property
    def key(self):
        """Return a key that is unique in this tree."""
        return f"{self.file} {self.number}"

    @property
    def name(self):
        """Return a name that stays the same if other lines change."""
        return f"{self.file}: {self.before} -> {self.after}"


# What is there, what becomes of it, where it is, the first line of its statement, and whether it is
# words.
_Found = tuple[cst.CSTNode, cst.CSTNode, CodeRange, int, bool]


class _Finder(cst.CSTVisitor):
    """Collects the changes of all nodes.

    Types and decorators are left out: nothing checks the first at run time, and a change of the
    second is an error at import. So are the arguments of ``len`` and ``isinstance``, as mutmut
    does: without them these only raise.
    """

    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(self):
        super().__init__()
        self.found: list[_Found] = []

    def on_visit(self, node):
        if isinstance(node, cst.Annotation | cst.Decorator):
            return False
        trivial = (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Name)
            and node.func.value in {"len", "isinstance"}
        )
        if not trivial:
            changed = [
                new
                for kind, operator in mutation_operators
                if isinstance(node, kind)
                for new in operator(node)
            ]
            if changed:
                where = self.get_metadata(PositionProvider, node, None)
                if where is None:
                    where = self.get_metadata(
                        PositionProvider, self.get_metadata(ParentNodeProvider, node)
                    )
                statement, words = self._place(node)
                self.found += [
                    (node, new, where, statement, words or _names(node, new)) for new in changed
                ]
        return True

    def _place(self, node):
        """Return the first line of the statement, and whether the node is part of a message."""
        words = False
        inner = node
        while not isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            words = (
                words
                or _called_name(node) == "refuse"
                or (_called_name(node) in _CHECKS and node.args[0].value is inner)
            )
            above = self.get_metadata(ParentNodeProvider, node)
            node, inner = above, inner if isinstance(node, cst.Arg) else node
        return self.get_metadata(PositionProvider, node).start.line, words or isinstance(
            node, cst.Raise
        )


def _called_name(node):
    return (
        node.func.value
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.args
        else ""
    )


def _names(old, new):
    """Return whether a check gets None for the name of its argument."""
    return (
        isinstance(new, cst.Call)
        and _called_name(old) in _CHECKS
        and list(new.args[1:]) == list(old.args[1:])
    )


def _find_places(path):
    wrapper = MetadataWrapper(cst.parse_module(path.read_text("utf-8")))
    finder = _Finder()
    wrapper.visit(finder)
    return wrapper.module, finder.found


def mutants_of(source, file):
    """Yield all mutants of a file, in the order of the code.

    Args:
        source: the folder of the package.
        file: below it.
    """
    module, changes = _find_places(source / file)
    for number, (old, new, where, statement, words) in enumerate(changes):
        before, after = (" ".join(module.code_for_node(node).split()) for node in (old, new))
        yield Mutant(
            file, number, where.start.line, where.end.line, statement, before, after, words
        )


def mutated(source, mutant):
    """Return the text of the file with a mutant's change."""
    module, changes = _find_places(source / mutant.file)
    old, new, *_ = changes[mutant.number]
    return cst.ensure_type(module.deep_replace(old, new), cst.Module).code


def all_mutants(source):
    """Return all mutants of the trusted packages."""
    files = sorted(
        str(path.relative_to(source)) for name in TRUSTED for path in (source / name).rglob("*.py")
    )
    return [mutant for file in files for mutant in mutants_of(source, file)]


def sample(mutants, number, seed):
    """Draw mutants uniformly without replacement until ``number`` of them are no words of messages.

    Args:
        mutants: all.
        number: how many, at most as many as there are.
        seed: of the draw; recorded with the results.
    """
    shuffled = random.Random(seed).sample(mutants, len(mutants))
    enough = [place for place, mutant in enumerate(shuffled) if not mutant.words][:number]
    return shuffled[: enough[-1] + 1]
