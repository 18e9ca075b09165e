"""The mutation runner: its changes, and which mutants it kills or leaves alive."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mutmut", reason="the group mutants is not installed")
from mutants import report
from mutants.covering import NAMES, SERVERS, Cover, server_of, targets
from mutants.generate import mutants_of, mutated, sample
from mutants.trial import Outcome, changed, run, run_tests

CODE = '''"""A module."""
from dataclasses import dataclass

LIMIT = 5


def above(value: int, least: int = 3) -> bool:
    """Whether it is above."""
    if value < 0:
        raise ValueError("a number of at least 0")
    return value > least


@dataclass
class Pair:
    left: int = 1

    @property
    def double(self) -> int:
        return self.left * 2
'''


@pytest.fixture(autouse=True)
def module(tmp_path):
    """Write the module whose mutants are made."""
    path = tmp_path / "_trusted" / "kernel" / "sample.py"
    path.parent.mkdir(parents=True)
    path.write_text(CODE, "utf-8")


def only_mutant(tmp_path, name):
    (one,) = [
        mutant
        for mutant in mutants_of(tmp_path, "_trusted/kernel/sample.py")
        if mutant.name == f"_trusted/kernel/sample.py: {name}"
    ]
    return one


def test_mutants_change_code_not_types_or_docstrings(tmp_path):
    names = {
        mutant.name.partition(": ")[2]: mutant.words
        for mutant in mutants_of(tmp_path, "_trusted/kernel/sample.py")
    }
    assert {
        "LIMIT = 5 -> LIMIT = None",
        "5 -> 6",
        "3 -> 4",
        "> least -> >= least",
        "self.left * 2 -> self.left / 2",
    } <= names.keys()
    assert not any("Whether" in name or "bool" in name or "dataclass" in name for name in names)
    assert {name for name, words in names.items() if words} == {
        'ValueError("a number of at least 0") -> ValueError(None)',
        '"a number of at least 0" -> "XXa number of at least 0XX"',
        '"a number of at least 0" -> "A NUMBER OF AT LEAST 0"',
    }


def test_mutant_is_one_change_that_compiles(tmp_path):
    texts = [
        mutated(tmp_path, mutant) for mutant in mutants_of(tmp_path, "_trusted/kernel/sample.py")
    ]
    assert len(set(texts)) == len(texts) == 13

    for text in texts:
        compile(text, "sample.py", "exec")
        differing = [
            (line, mutated_line)
            for line, mutated_line in zip(CODE.splitlines(), text.splitlines(), strict=True)
            if line != mutated_line
        ]
        assert len(differing) == 1


@pytest.mark.slow
def test_mutant_stays_on_disk_until_killed_or_timeout(tmp_path):
    tree = tmp_path / "tree"
    kernel = tmp_path / "tree" / "src" / "leastnoise" / "_trusted" / "kernel"
    kernel.mkdir(parents=True)
    (kernel / "sample.py").write_text(CODE, "utf-8")
    (tree / "test_a.py").write_text(
        "import sys\nsys.path.insert(0, 'src/leastnoise/_trusted/kernel')\n"
        "from sample import LIMIT, above\nassert LIMIT\n\n"
        "def test_one():\n    assert above(5)\n\ndef test_above():\n    assert not above(3)\n\n"
        "def test_waits():\n    while LIMIT == 6: pass\n"
    )
    *tests, missing_test = [
        f"test_a.py::test_{name}" for name in ("one", "above", "waits", "that_is_not_there")
    ]
    all_tests = [*tests, missing_test]
    (tmp_path / "lines.json").write_text(
        json.dumps({"tests": dict.fromkeys(all_tests, (0.01, "")), "lines": {}}), "utf-8"
    )
    cover = Cover(tmp_path)
    assert run(tree, cover, None, tests) == Outcome("survived", 3, "")
    assert run(tree, cover, only_mutant(tmp_path, "> least -> >= least"), tests) == Outcome(
        "killed", 3, tests[1]
    )
    # This mutant fails when the file is imported.
    assert run(tree, cover, only_mutant(tmp_path, "LIMIT = 5 -> LIMIT = None"), tests) == Outcome(
        "killed", 3, "test_a.py"
    )
    assert run(tree, cover, only_mutant(tmp_path, "> least -> >= least"), tests[:1]) == Outcome(
        "survived", 1, ""
    )
    with pytest.raises(RuntimeError, match="do not run on the code as it is either: ended with 4"):
        run(tree, cover, only_mutant(tmp_path, "5 -> 6"), [*tests[:1], missing_test])
    assert (kernel / "sample.py").read_text("utf-8") == CODE

    with changed(kernel.parents[1], only_mutant(tmp_path, "5 -> 6")):
        assert run_tests(tree, tests, 0) == ("time", "limit of time")
        with changed(kernel.parents[1], None):  # as after a run that was killed
            assert (kernel / "sample.py").read_text("utf-8") == CODE
        (kernel / "sample.kept").write_text(CODE, "utf-8")


def test_mutant_sample_is_seeded_and_counts_no_messages(tmp_path):
    mutants = [*mutants_of(tmp_path, "_trusted/kernel/sample.py")]
    sampled = sample(mutants, 8, 1)
    assert sampled == sample(mutants, 8, 1) != sample(mutants, 8, 2)
    assert sum(not mutant.words for mutant in sampled) == 8
    assert set(sample(mutants, 10**6, 1)) == set(mutants)


def test_covering_tests_run_own_and_quick_ones_first(tmp_path):
    quick = "tests/trusted/kernel/a.py::quick"
    slow = "tests/trusted/kernel/a.py::slow"
    other_test = "tests/session/b.py::c"
    bad = "tests/trusted/kernel/a.py::bad"
    # `bad` has failed, and has no CPU seconds.
    lines = {"_trusted/kernel/sample.py": {"11": [slow, quick, other_test, bad], "9": [other_test]}}
    served = [f"tests/trusted/kernel/a.py::{name}" for name in ("served", "served too")]
    lines["_trusted/kernel/sample.py"]["11"] += served
    names = f"{NAMES}[_trusted/kernel]"
    lines["_trusted/kernel/__init__.py"] = {"1": [other_test]}
    seconds = {slow: 9.0, quick: 0.1, other_test: 0.01, names: 0.3, **dict.fromkeys(served, 0.2)}
    tests = {test: (used, "spark" if test in served else "") for test, used in seconds.items()}
    (tmp_path / "lines.json").write_text(json.dumps({"tests": tests, "lines": lines}), "utf-8")
    cover = Cover(tmp_path)
    tests = cover.tests(only_mutant(tmp_path, "> least -> >= least"))
    assert tests == [quick, slow, *served, other_test]
    assert cover.within(tests, 1.0) == tests[:1]
    assert cover.within(tests, 10 + SERVERS["spark"]) == tests  # which is started once
    assert cover.within(tests, 9 + SERVERS["spark"]) == tests[:2]
    # A line that runs only at import is covered by all tests that run the file.
    assert cover.tests(only_mutant(tmp_path, "5 -> 6")) == tests

    offered = dataclasses.replace(
        only_mutant(tmp_path, "5 -> 6"), file="_trusted/kernel/__init__.py"
    )
    # The test of the names that a package exports is added.
    assert cover.tests(offered) == [names, other_test]


@pytest.fixture
def small_project(tmp_path):
    """Write a project with one trusted function and two tests, one of which fails."""
    for target in targets():
        file, _, test = target.partition("::")
        if test:
            (tmp_path / file).write_text(f"def {test}(): pass\n")
        elif not file.endswith(".py"):
            (tmp_path / file).mkdir(parents=True)
    (tmp_path / "tests" / "cli").mkdir()
    (tmp_path / "tests" / "cli" / "test_check.py").touch()
    (tmp_path / "src" / "leastnoise" / "_trusted" / "kernel" / "a.py").write_text(
        "def f(x):\n    return x\n"
    )
    (tmp_path / "tests" / "trusted" / "kernel" / "test_k.py").write_text(
        "import a\ndef test_f(url): a.f(url)\ndef test_no(): assert not a.f(1)\n"
    )
    (tmp_path / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef url(): return 1\n")
    return tmp_path


def test_covering_records_lines_seconds_and_server(small_project):
    lines_file = small_project / "lines.json"
    kernel = small_project / "src" / "leastnoise" / "_trusted" / "kernel"
    path = os.pathsep.join(map(str, (Path(__file__).parents[1], Path(__file__).parents[2], kernel)))
    command = [sys.executable, "-m", "mutants.covering", str(small_project), str(lines_file)]
    environment = os.environ | {"PYTHONPATH": path}
    subprocess.run(command, cwd=small_project, env=environment, check=True, capture_output=True)
    recorded = json.loads(lines_file.read_text("utf-8"))
    test = "tests/trusted/kernel/test_k.py::test_f"
    failed_test = "tests/trusted/kernel/test_k.py::test_no"

    servers = {name: server for name, (_, server) in recorded["tests"].items()}
    assert servers == {test: "url", NAMES: ""}
    assert recorded["lines"] == {"_trusted/kernel/a.py": {"1": [""], "2": [test, failed_test]}}


def test_every_target_is_there():
    root = Path(__file__).parents[2]
    for file, _, test in (target.partition("::") for target in targets()):
        assert (root / file).exists(), file
        assert not test or f"def {test}(" in (root / file).read_text("utf-8")


def test_server_is_found_in_fixtures_or_parameters():
    for name, fixtures, server in (
        ("test_a[spark-u]", ["engine"], "spark"),
        ("test_a", ["spark_session"], "spark"),
        ("test_a", ["url", "tmp_path"], "url"),
        ("test_what_spark_says", ["tmp_path"], ""),
    ):
        assert server_of(SimpleNamespace(name=name, fixturenames=fixtures)) == server
    assert server_of(SimpleNamespace(name="module.example")) == ""


def test_page_lists_every_survivor_with_its_reason(tmp_path, monkeypatch):
    mutants = [
        mutant
        for mutant in mutants_of(tmp_path, "_trusted/kernel/sample.py")
        if mutant.before in {"5", "> least", "3"}
    ]
    states = dict(
        zip([mutant.key for mutant in mutants], ("survived", "survived", "killed"), strict=True)
    )
    facts = {
        "seed": 1,
        "commit": "abc",
        "date": "today",
        "all": 99,
        "mutants": [dataclasses.asdict(mutant) for mutant in mutants],
    }
    (tmp_path / "sample.json").write_text(json.dumps(facts), "utf-8")
    lines = [json.dumps({"key": key, "state": state}) for key, state in states.items()]
    (tmp_path / "results.jsonl").write_text("\n".join(lines), "utf-8")
    reasons = '"_trusted/kernel/sample.py: 5 -> 6" = "equivalent: nobody reads it"\n'
    (tmp_path / "reasons.toml").write_text(reasons, "utf-8")
    monkeypatch.setattr(report, "REASONS", tmp_path / "reasons.toml")
    report.write(tmp_path, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text("utf-8")
    assert "| **together** | 3 | 1 | 0 | 2 | 33.3 |" in page
    assert "| **without those that change no result** | 2 | 1 | 0 | 1 | 50.0 |" in page
    assert "| **the same, with the tests added since** | 2 | 1 | 0 | 1 | 50.0 |" in page
    assert page.count("not yet looked at") == 1
    assert "or that a test kills now: 1 equivalent." in page

    (tmp_path / "reasons.toml").write_text(
        f'{reasons}"{mutants[1].name}" = "closed: there is a test"', "utf-8"
    )
    report.write(tmp_path, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text("utf-8")
    assert "| **without those that change no result** | 2 | 1 | 0 | 1 | 50.0 |" in page
    assert "| **the same, with the tests added since** | 2 | 2 | 0 | 0 | 100.0 |" in page
    assert "or that a test kills now: 1 equivalent, 1 closed." in page
    assert "not yet looked at" not in page
