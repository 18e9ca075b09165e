"""Example contributions, one folder of `FOLDER` for each kind of part.

A folder mirrors the tree of the project: its files are added as they are. Its ``changes.txt`` has
the changes of existing files. A line ``--- FILE`` names a file. Below it are paragraphs of lines
that are there (a space in front), that are added (+) or that are removed (-).
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "parts"
CHANGES = "changes.txt"
# Bytecode is copied, since compiling the package takes seconds, but for what another process is
# writing at this moment.
LEFT_OUT = (".git", ".venv", "build", "site", "demo-release", "node_modules", "*.pyc.*")


@dataclass(frozen=True)
class Part:
    """A contribution: files that it adds, and changes of existing files, by path."""

    name: str
    files: dict[str, str]
    changes: dict[str, str]

    @property
    def touched(self):
        """Return the paths of all files that are added or changed."""
        return [*self.files, *self.changes]


def read_part(folder):
    """Read one example contribution."""
    files = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != CHANGES and "__pycache__" not in path.parts
    }
    text = (folder / CHANGES).read_text(encoding="utf-8")
    sections = re.split(r"^--- (.*)\n", text, flags=re.MULTILINE)[1:]
    return Part(folder.name, files, dict(zip(sections[::2], sections[1::2], strict=True)))


def read_parts():
    """Read all example contributions."""
    return [read_part(folder) for folder in sorted(FOLDER.iterdir()) if folder.is_dir()]


def changed(text, change):
    """Return a text after a change.

    Raises:
        ValueError: the lines that a paragraph expects are not there exactly once.
    """
    for paragraph in re.split(r"\n{2,}", change.strip("\n")):
        lines = paragraph.split("\n")
        before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
        after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
        if text.count(before) != 1:
            raise ValueError(
                f"these lines are there {text.count(before)} times, not once:\n{before}"
            )
        text = text.replace(before, after)
    return text


def copy_project(copy):
    """Copy the project, with the caches of its tools."""
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)


def add_part(part, copy):
    """Add a part to a copy of the project.

    Raises:
        ValueError: a file that is added is there already, or a change does not fit.
    """
    for name, text in part.files.items():
        file = copy / name
        if file.exists():
            raise ValueError(f"{name} is there already")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for name, change in part.changes.items():
        file = copy / name
        text = file.read_text(encoding="utf-8")
        file.write_text(changed(text, change), encoding="utf-8")
