"""Public classes with many fields describe each field in their docstring."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "leastnoise"
LEAST_FIELDS = 6
SECTION = re.compile(r"^(?:Attributes|Args):\n(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def is_record(node):
    """Return whether a class is a dataclass or a NamedTuple."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    bases = [ast.unparse(base) for base in node.bases]
    return any("dataclass" in text for text in decorators) or "NamedTuple" in bases


def public_fields(node):
    """Return the names of the public fields that a class declares."""
    return [
        statement.target.id
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and not statement.target.id.startswith("_")
        and "ClassVar" not in ast.unparse(statement.annotation)
    ]


def undescribed_fields(node):
    """Return the public fields that are in no Attributes or Args section of a class."""
    text = ast.get_docstring(node) or ""
    sections = "\n".join(section.group(1) for section in SECTION.finditer(text))
    described = re.findall(r"^    (\w+(?:, \w+)*):", sections, re.MULTILINE)
    names = {name for entry in described for name in entry.split(", ")}
    return [field for field in public_fields(node) if field not in names]


def public_records(text):
    """Yield the public dataclasses and NamedTuples of a module with many fields."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        if is_record(node) and len(public_fields(node)) >= LEAST_FIELDS:
            yield node


def test_classes_with_many_fields_describe_them():
    faults = {
        f"{path.relative_to(SOURCE)}: {node.name}": fields
        for path in sorted(SOURCE.rglob("*.py"))
        for node in public_records(path.read_text(encoding="utf-8"))
        if (fields := undescribed_fields(node))
    }
    assert faults == {}, "List these fields under `Attributes:` in the docstring of the class."


@pytest.mark.parametrize(
    ("section", "undescribed"),
    [
        ("", ["a", "b", "c", "d", "e", "f"]),
        ("Attributes:\n    a: x.\n    b: x: y.\n    c, d: x.\n    e: x\n        f: y.", ["f"]),
        ("Args:\n    a: x.\n    b: x.\n    c: x.\n    d: x.\n    e: x.\n    f: x.", []),
    ],
    ids=["no section", "one field is missing", "complete"],
)
def test_missing_descriptions_are_found(section, undescribed):
    text = f"""
@dataclass(frozen=True)
class Record:
    '''A record.

{"".join(f"    {line}" for line in section.splitlines(keepends=True))}
    '''

    total: ClassVar[int] = 0
    a: int
    b: int
    c: int
    d: int
    e: int
    f: int
    _cache: int = 0
"""
    (node,) = public_records(text)
    assert undescribed_fields(node) == undescribed
