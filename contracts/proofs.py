"""The version of the code for which each proof was read: a changed line of code fails a test until the proof was read again.

    python -m contracts.proofs             what changed since
    python -m contracts.proofs --record    after reading: these files are what is proved   (`make proofs`)

A page ``PROOFS-*.md`` names under "The code that was proved" its files, with ``*`` for all files of a folder, and the functions if it is
about some of them. ``proofs.toml`` has the digests, each in a paragraph of its own, so that changes of different files do not conflict.
Comments, docstrings and blank lines do not count.
"""

import hashlib
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contracts.sources import code_lines

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_name("proofs.toml")
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

    def digest(self) -> str:
        """Return the first 16 hexadecimal digits of the SHA-256 of the lines of code."""
        lines = code_lines(self.file.read_text(encoding="utf-8"), self.functions)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def pages() -> list[Path]:
    """Return all pages of proofs."""
    return sorted(page for folder in ("src", "baselines", "experiments") for page in (ROOT / folder).rglob("PROOFS-*.md"))


def proved() -> Iterator[Proved]:
    """Give the files that every page proves."""
    for page in pages():
        for row in _ROW.finditer(page.read_text(encoding="utf-8")):
            functions = row["functions"].strip()
            named = () if functions == "all" else tuple(re.findall(r"`([\w.]+)`", functions))
            if functions != "all" and not named:
                raise ValueError(f"{page.name}: the row of {row['file']} must say `all` or name functions")
            files = sorted(page.parent.glob(row["file"])) if "*" in row["file"] else [page.parent / row["file"]]
            yield from (Proved(page, file.resolve(), named) for file in files if file.name != "__init__.py")


def recorded() -> dict[str, dict[str, str]]:
    """Return the recorded digests by page and file."""
    return tomllib.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def complaint(one: Proved, record: dict[str, dict[str, str]]) -> str | None:
    """Return what to do if the file was changed since its proof was read; None if it was not."""
    page, file = one.names
    if record.get(page, {}).get(file) == one.digest():
        return None
    return f"{file} was changed since {page} was read for it: read the proof against the code again, mend either, then `make proofs`"


def write() -> None:
    """Record the digests of the present code."""
    parts = []
    for page in pages():
        lines = [f'"{one.names[1]}" = "{one.digest()}"' for one in proved() if one.page == page]
        parts.append("\n\n".join([f'["{page.relative_to(ROOT).as_posix()}"]', *lines]))
    RECORD.write_text(
        "# Written by `make proofs`, after the proofs of what changed were read again.\n\n" + "\n\n".join(parts) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        write()
    else:
        found = [text for one in proved() if (text := complaint(one, recorded()))]
        print("\n".join(found) or "every proof was read for the code as it is")
        sys.exit(bool(found))
