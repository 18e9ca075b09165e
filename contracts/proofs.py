"""Find the files that each page of proofs proves.

A page ``PROOFS-*.md`` names its files under "The code that was proved", with ``*`` for all files
of a folder, and the functions if it is about some of them only. A new trusted file can name the
page itself instead, in its docstring: "Keeps E1 and E2 of PROOFS-reading.md".
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contracts.trusted import FOLDER, trusted_files

ROOT = Path(__file__).parents[1]
_ROW = re.compile(r"^\| `(?P<file>[\w./*-]+\.py)` \| (?P<functions>[^|]+) \|$", re.MULTILINE)
_PAGE = re.compile(r"PROOFS-[\w-]+\.md")


@dataclass(frozen=True, slots=True)
class Proved:
    """A file, or some functions of it, and the page that proves it."""

    page: Path
    file: Path
    functions: tuple[str, ...]

    @property
    def names(self) -> tuple[str, str]:
        """The paths of the page and of the file, from the root of the project."""
        return self.page.relative_to(ROOT).as_posix(), self.file.relative_to(ROOT).as_posix()


def pages() -> list[Path]:
    """Return all pages of proofs."""
    return sorted(
        page
        for folder in ("src", "baselines", "experiments")
        for page in (ROOT / folder).rglob("PROOFS-*.md")
    )


def proved() -> Iterator[Proved]:
    """Yield the files that each page proves."""
    listed = [entry for page in pages() for entry in _listed(page)]
    yield from listed
    listed_files = {entry.file for entry in listed}
    for name in trusted_files():
        file = (FOLDER / name).resolve()
        if file not in listed_files:
            names = pages_named(file)
            yield from (Proved(page, file, ()) for page in pages() if page.name in names)


def pages_named(file: Path) -> set[str]:
    """Return the names of the pages that the docstring of a file names."""
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return set(_PAGE.findall(docstring))


def _listed(page: Path) -> Iterator[Proved]:
    """Yield the files in the table of a page."""
    for row in _ROW.finditer(page.read_text(encoding="utf-8")):
        functions = row["functions"].strip()
        if functions == "all":
            named = ()
        else:
            named = tuple(re.findall(r"`([\w.]+)`", functions))
        if functions != "all" and not named:
            raise ValueError(
                f"{page.name}: the row of {row['file']} must say `all` or name functions"
            )
        if "*" in row["file"]:
            files = sorted(page.parent.glob(row["file"]))
        else:
            files = [page.parent / row["file"]]
        for file in files:
            if file.name != "__init__.py":
                yield Proved(page, file.resolve(), named)
