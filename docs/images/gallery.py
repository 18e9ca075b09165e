"""Runs the tasks of docs/gallery.md, and writes their output and pictures into the documentation.

python docs/images/gallery.py
"""

import contextlib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.with_name("gallery.md")
FILES = re.compile(r"^`(make_files\.py)`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TASKS = re.compile(
    r"^```python\n(import leastnoise.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Task:
    """The code of a task and the output that the page shows."""

    code: str
    output: str


def read_tasks() -> list[Task]:
    """Return the tasks of the page in their order."""
    text = PAGE.read_text(encoding="utf-8")
    return [Task(code, output or "") for code, output in TASKS.findall(text)]


def run_tasks(folder: Path) -> Iterator[str]:
    """Write the files of the page into a folder, run every task there, and yield its output."""
    ((name, script),) = FILES.findall(PAGE.read_text(encoding="utf-8"))
    with contextlib.chdir(folder):
        exec(compile(script, name, "exec"), {})  # noqa: S102 - our own page
        for task in read_tasks():
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(task.code, PAGE.name, "exec"), {})  # noqa: S102 - our own page
            yield output.getvalue()


def main() -> None:
    """Replace the outputs on the page and the pictures in this folder."""
    os.environ["LEASTNOISE_CACHE"] = "off"
    with tempfile.TemporaryDirectory() as folder:
        outputs = iter(list(run_tasks(Path(folder))))

        def with_output(match: re.Match[str]) -> str:
            output = next(outputs)
            shown = f"\n```text\n{output}```" if output else ""
            return f"```python\n{match[1]}```\n{shown}"

        text = TASKS.sub(with_output, PAGE.read_text(encoding="utf-8"))
        PAGE.write_text(text, encoding="utf-8")
        for picture in Path(folder).glob("*.svg"):
            shutil.copy(picture, HERE / f"gallery-{picture.name}")
            print(HERE / f"gallery-{picture.name}")


if __name__ == "__main__":
    main()
