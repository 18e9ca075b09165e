"""Which files each page of proofs is about.

A page ``PROOFS-*.md`` names its files under "The code that was proved", with ``*`` for all files
of a folder, and the functions if it is about some of them only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ROW = re.compile(r"^\| `(?P<file>[\w./*-]+\.py)` \| (?P<functions>[^|]+) \|$", re.MULTILINE)


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
    """Give the files that every page proves."""
    for page in pages():
        for row in _ROW.finditer(page.read_text(encoding="utf-8")):
            functions = row["functions"].strip()
            named = () if functions == "all" else tuple(re.findall(r"`([\w.]+)`", functions))
            if functions != "all" and not named:
                raise ValueError(
                    f"{page.name}: the row of {row['file']} must say `all` or name functions"
                )
            files = (
                sorted(page.parent.glob(row["file"]))
                if "*" in row["file"]
                else [page.parent / row["file"]]
            )
            yield from (
                Proved(page, file.resolve(), named) for file in files if file.name != "__init__.py"
            )
