"""A small data set with its spec and ledger, and helpers that run the program."""

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from forked import Forked
from leastnoise import _progress
from leastnoise._cli import main
from waiting import HANGS

PROGRAM = "from leastnoise._cli import main; main()"
SPEC = """\
[source]
path = "people.csv"
[privacy]
epsilon = "1"
[domain.sex]
categories = ["F", "M"]
complete = true
[domain.age]
integers = [17, 90]
complete = true
[domain.income]
bins = { low = 0, high = 1000, count = 10 }
complete = true
[measures.pay]
column = "income"
clip = [0, 1000]
[[workload]]
marginals = { upto = 2, of = ["sex", "age"] }
[[workload]]
queries = { income = "prefix" }
weight = 2.0
[plan]
strategy = "marginals"
"""
ROWS = "sex,age,income\n" + "".join(f"{'FM'[i % 2]},{17 + i % 74},{i % 1000}\n" for i in range(400))


@dataclass(frozen=True)
class Result:
    """Exit code and output of a run."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Run:
    """Runs the program in this process."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments):
        self.monkeypatch.setattr(sys, "argv", ["leastnoise", *map(str, arguments)])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        output = self.capsys.readouterr()
        return Result(int(stop.value.code or 0), output.out, output.err)

    def succeeds(self, *arguments):
        """Return the result of a run, which must succeed."""
        result = self(*arguments)
        assert result.code == 0, result.err
        return result

    def json(self, *arguments):
        """Return the JSON output of a run."""
        return json.loads(self.succeeds(*arguments, "--json").out)

    def is_refused(self, parts, *arguments):
        """Check that a run ends with code 2 and one sentence that has all the parts."""
        result = self(*arguments)
        assert result.code == 2, result
        assert result.out == "", result
        assert re.fullmatch(
            r"((Warning:|Release ).*\n)?leastnoise: [^\n]+[.?](\n[^\n]*Statement [^\n]+[.?])*\n",
            result.err,
            re.DOTALL,
        ), result.err
        if isinstance(parts, str):
            parts = [parts]
        missing = [part for part in parts if part not in result.err]
        assert missing == [], f"{missing} missing in:\n{result.err}"
        return result


Start = Callable[..., Forked]  # in a separate process


def ended(process):
    """Return the exit code and the output of a process that has ended."""
    out, err = process.communicate(timeout=HANGS)
    return Result(process.returncode, out, err)


def edit(folder, *pairs):
    """Replace the first occurrence of each text in the spec."""
    spec = folder / "people.toml"
    text = spec.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    spec.write_text(text, encoding="utf-8")


def assert_contains(text, *parts):
    """Check that a text contains all the parts, however its lines are broken."""
    on_one_line = " ".join(text.split())
    missing = [part for part in parts if part not in text and part not in on_one_line]
    assert missing == [], f"{missing} missing in:\n{text}"


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def disk_is_full(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.fixture(autouse=True)
def plans(kept_plans):
    """Keep plans between commands, as a user's second command would find them."""


@pytest.fixture
def estimates(monkeypatch):
    """Record what each line of progress would say after half of its time, by task."""
    sentences: dict[str, str] = {}

    def note(line):
        half_time = line._work_start + line._about / 2
        sentences[line._text] = _progress.describe_time(
            half_time, line._done_share(half_time), line._work_start
        )

    def entered(line):
        note(line)
        return line

    monkeypatch.setattr(_progress.Progress, "__enter__", entered)
    monkeypatch.setattr(_progress.Progress, "__exit__", lambda line, *_: note(line))
    return sentences


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Enter a new directory with people.csv and people.toml."""
    (tmp_path / "people.csv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "people.toml").write_text(SPEC, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "LEASTNOISE_DEBUG", "TERM"):
        monkeypatch.delenv(name, raising=False)
    # On a busy machine anything may take over a second, and a line of progress would come before
    # the message that a test reads.
    monkeypatch.setenv("LEASTNOISE_PROGRESS", "off")
    return tmp_path


@pytest.fixture(scope="module")
def prepared_folders(tmp_path_factory):
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture
def prepare_once(folder, prepared_folders):
    """Prepare the directory by a function, whose files later tests of the module copy."""

    def prepare(name, write_files):
        if not (prepared_folders / name).exists():
            write_files()
            shutil.copytree(folder, prepared_folders / name)
        shutil.copytree(prepared_folders / name, folder, dirs_exist_ok=True)
        return folder

    return prepare


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Return the program as a function of its arguments; it runs in this process."""
    interrupt = signal.getsignal(signal.SIGINT)
    yield Run(monkeypatch, capsys)
    signal.signal(signal.SIGINT, interrupt)


@pytest.fixture
def start(folder, fork_server):
    """Start the program, or a script that changes it first, in a separate process."""
    started: list[Forked] = []

    def start_there(*arguments, program=PROGRAM, **environment):
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
        }
        texts = [*map(str, arguments)]
        started.append(fork_server.start(program, texts, {**inherited, **environment}))
        return started[-1]

    yield start_there
    for process in started:
        process.kill()
        process.wait(HANGS)
