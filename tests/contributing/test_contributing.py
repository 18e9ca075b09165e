"""CONTRIBUTING.md, followed literally in a copy of the tree: what it adds works, and touches at most one existing file of the package."""

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from waiting import HANGS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
NEEDED = ("src", "contracts", "baselines", "experiments", "docs/strategies.md", "pyproject.toml")
HELPERS = [
    f"tests/{name}.py" for name in ("conftest", "waiting", "accuracy/plans", "estimate/agreement")
]
# It looks at the whole tree, which takes long, so it is run once, with everything that the page
# adds.
OF_ALL = "lint-imports"
HALF_WRITTEN = shutil.ignore_patterns("*.pyc.*")  # bytecode that another process is writing
_BLOCK = re.compile(
    r"^(?:`(?P<file>[^`\n]+)`:\n\n)?```(?P<kind>python|toml|diff|console)\n(?P<text>.*?)^```$",
    flags=re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Recipe:
    """What a section of the page says: new files, changes of existing ones, and what is run then."""

    title: str
    files: dict[str, str]
    changes: dict[str, str]
    commands: tuple[str, ...]


def recipes() -> list[Recipe]:
    found = []
    for section in re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        blocks = list(_BLOCK.finditer(section))
        made = Recipe(
            title=section.splitlines()[0],
            files={
                block["file"]: block["text"]
                for block in blocks
                if block["kind"] in ("python", "toml") and block["file"]
            },
            changes={block["file"]: block["text"] for block in blocks if block["kind"] == "diff"},
            commands=tuple(
                line[2:]
                for block in blocks
                if block["kind"] == "console"
                for line in block["text"].splitlines()
            ),
        )
        if made.files:
            found.append(made)
    return found


def changed(text: str, diff: str) -> str:
    """A text after a change: paragraphs of lines that are there (a space in front), to be added (+) or taken away (-)."""
    for part in diff.strip("\n").split("\n\n"):
        lines = part.split("\n")
        before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
        after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
        if text.count(before) != 1:
            raise ValueError(
                f"these lines are there {text.count(before)} times, not once:\n{before}"
            )
        text = text.replace(before, after)
    return text


def follow(some: list[Recipe], scratch: Path) -> None:
    """In a copy of what they need, with its bytecode: compiling the package takes seconds."""
    named = " ".join(
        name for recipe in some for name in [*recipe.files, *recipe.changes, *recipe.commands]
    )
    tests = set(re.findall(r"\btests/(\w+)/", named))
    for name in (*NEEDED, *(f"tests/{folder}" for folder in tests), *HELPERS):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, scratch / name, ignore=HALF_WRITTEN)
        else:
            (scratch / name).parent.mkdir(exist_ok=True)
            shutil.copy2(ROOT / name, scratch / name)
    for recipe in some:
        for file, text in recipe.files.items():
            if (scratch / file).exists():
                raise ValueError(f"{file} is there already")
            (scratch / file).write_text(text, encoding="utf-8")
        for file, diff in recipe.changes.items():
            (scratch / file).write_text(
                changed((scratch / file).read_text("utf-8"), diff), encoding="utf-8"
            )


# Runs commands in forks, which find loaded what all of them load.
FORKS = """
import os, runpy, shlex, subprocess, sys
import pandas, polars, pyarrow.parquet, pytest, scipy.optimize, scipy.stats
import leastnoise._session
for command in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        name, *sys.argv[1:] = shlex.split(command)
        code = 0
        try:
            if name == "pytest":
                code = pytest.main(sys.argv[1:])
            elif name == "python":
                runpy.run_module(sys.argv.pop(2), run_name="__main__", alter_sys=True)
            else:
                code = subprocess.run([sys.executable, "-m", name, *sys.argv[1:]]).returncode
        except SystemExit as stop:
            code = stop.code or 0
        except BaseException as error:
            print(repr(error))
            code = 1
        sys.stdout.flush()
        os._exit(int(code))
    print(f"== {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}: {command}", flush=True)
"""


def run(command: str, scratch: Path) -> subprocess.CompletedProcess[str]:
    name, *arguments = shlex.split(command)
    modules = {"pytest": ["-m", "pytest"], "ruff": ["-m", "ruff"], "python": []}
    program = (
        [sys.executable, *modules[name]]
        if name in modules
        else [str(Path(sys.executable).with_name(name))]
    )
    return subprocess.run(
        [*program, *arguments],
        cwd=scratch,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"{scratch / 'src'}:{scratch}",
            "OMP_NUM_THREADS": "1",
            "LEASTNOISE_CACHE": "off",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
    )


def test_what_the_page_says_works(tmp_path: Path) -> None:
    """All of it, in one tree."""
    commands, examples = [], []
    for recipe in recipes():
        assert sum(file.startswith("src/") for file in recipe.changes) <= 1, (
            "more than one existing file of the package is touched"
        )
        assert recipe.commands
        examples += [
            file
            for file, text in recipe.files.items()
            if file.startswith("src/") and ">>> " in text
        ]
        commands += [command for command in recipe.commands if not command.startswith(OF_ALL)]
    commands = [
        *dict.fromkeys(commands),
        shlex.join(
            ["pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--doctest-modules", *examples]
        ),
    ]
    follow(recipes(), tmp_path)
    done = run(f"python -c {shlex.quote(FORKS)} {shlex.join(commands)}", tmp_path)
    assert re.findall(r"^== (\d+): (.*)$", done.stdout, flags=re.MULTILINE) == [
        ("0", one) for one in commands
    ], done.stdout + done.stderr
    (of_all,) = {
        command for recipe in recipes() for command in recipe.commands if command.startswith(OF_ALL)
    }
    done = run(of_all, tmp_path)
    assert done.returncode == 0, f"{of_all}\n{done.stdout}\n{done.stderr}"


def test_a_step_left_out_is_seen(tmp_path: Path) -> None:
    whole = next(recipe for recipe in recipes() if recipe.title == "An operator")
    (file,) = (file for file in whole.files if file.startswith("src"))
    wrong = whole.files[file].replace(
        "return np.append(0, weights) + np.append(weights, 0)", "return np.append(weights, 0)"
    )
    follow(
        [Recipe(whole.title, {**whole.files, file: wrong}, whole.changes, whole.commands)], tmp_path
    )
    done = run(whole.commands[0], tmp_path)
    assert "test_column_sums_with_weights[1-differences]" in done.stdout


def test_a_change_of_lines_that_are_not_there_is_refused() -> None:
    assert changed("a\nb\nc\n", " a\n+x\n\n-c\n") == "a\nx\nb\n"
    with pytest.raises(ValueError, match="0 times"):
        changed("a\n", " b\n+x\n")
