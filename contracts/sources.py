"""Find the lines of a source file that are code."""

import ast
from collections.abc import Collection


def code_lines(text: str, names: Collection[str] = ()) -> list[str]:
    """Return the lines that are not blank, a comment or part of a docstring.

    Args:
        text: the text of the file.
        names: the functions and classes at the top level, or ``Class.method``, to which the lines
            are restricted; empty for the whole file.

    Raises:
        ValueError: a name that the file does not define.

    >>> code_lines("# why" + chr(10) + "X = 1  # one")
    ['X = 1  # one']
    >>> code_lines(
    ...     chr(10).join(["def f():", "    return 1", "", "def g():", "    return 2"]), ["g"]
    ... )
    ['def g():', '    return 2']
    """
    tree = ast.parse(text)
    wanted = _lines_of(tree, names) if names else range(1, len(text.splitlines()) + 1)
    without = set(wanted) - _docstring_lines(tree)
    return [
        line.rstrip()
        for number, line in enumerate(text.splitlines(), 1)
        if number in without and line.strip() and not line.strip().startswith("#")
    ]


def _docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines of all docstrings."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            first = node.body[0]
            found |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


def _lines_of(tree: ast.Module, names: Collection[str]) -> set[int]:
    """Return the numbers of the lines of some functions and classes."""
    places: dict[str, set[int]] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        """Add the lines of each definition in a body, and of methods of classes."""
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                places.setdefault(prefix + node.name, set()).update(
                    range(start, (node.end_lineno or start) + 1)
                )
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{node.name}.")

    visit(tree.body, "")
    if missing := sorted(set(names) - set(places)):
        raise ValueError(f"the file does not define {', '.join(missing)}")
    return set().union(*(places[name] for name in names))
