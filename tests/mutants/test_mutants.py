"""The mutation runner: it changes what it says, kills what a test notices, and lets live what none does."""

import dataclasses
import gc
import importlib.util
import json
import os
import re
import time
from pathlib import Path
from types import SimpleNamespace

import coverage
import pytest

from mutants import report
from mutants.covering import NAMES, SERVERS, THREADED, Cover, Recorder, gather, server_of, targets
from mutants.generate import mutants_of, mutated, sample
from mutants.trial import _KILLED, _PASSED, Outcome, forked, outcome, replace_code, until_one_fails

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


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "_kernel" / "sample.py"
    path.parent.mkdir()
    path.write_text(CODE, "utf-8")
    spec = importlib.util.spec_from_file_location("sample", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    gc.freeze()  # as tests/conftest.py does with what was collected
    yield loaded
    gc.freeze()


def found(tmp_path, name):
    (one,) = [mutant for mutant in mutants_of(tmp_path, "_kernel/sample.py") if mutant.name == f"_kernel/sample.py: {name}"]
    return one


def text_of(tmp_path, name):
    return mutated(tmp_path, [found(tmp_path, name)]).popitem()[1]


def test_mutants_are_those_of_code_and_not_of_types_and_docstrings(tmp_path, module):
    names = {mutant.name.partition(": ")[2]: mutant.words for mutant in mutants_of(tmp_path, "_kernel/sample.py")}
    assert {"LIMIT = 5 -> LIMIT = None", "5 -> 6", "3 -> 4", "> least -> >= least", "self.left * 2 -> self.left / 2"} <= names.keys()
    assert not any("Whether" in name or "bool" in name or "dataclass" in name for name in names)
    assert {name for name, words in names.items() if words} == {
        'ValueError("a number of at least 0") -> ValueError(None)',
        '"a number of at least 0" -> "XXa number of at least 0XX"',
        '"a number of at least 0" -> "A NUMBER OF AT LEAST 0"',
    }


def test_each_mutant_is_the_file_with_one_change_that_compiles(tmp_path, module):
    texts = mutated(tmp_path, mutants_of(tmp_path, "_kernel/sample.py")).values()
    assert len(set(texts)) == len(texts) == 13
    for text in texts:
        compile(text, "sample.py", "exec")
        differing = [(one, other) for one, other in zip(CODE.splitlines(), text.splitlines(), strict=True) if one != other]
        assert len(differing) == 1


def test_a_function_is_changed_in_place_wherever_it_is_held(tmp_path, module):
    held, pair = module.above, module.Pair()
    for name, check in (("> least -> >= least", lambda: held(3)), ("self.left * 2 -> self.left / 2", lambda: pair.double == 0.5)):
        assert not check()
        assert replace_code(tmp_path / "_kernel" / "sample.py", text_of(tmp_path, name))
        assert check()


@pytest.mark.parametrize("name", ["5 -> 6", "3 -> 4", "left: int = 1 -> left: int = None"])
def test_what_runs_at_import_is_not_changed_in_place(tmp_path, module, name):
    assert not replace_code(tmp_path / "_kernel" / "sample.py", text_of(tmp_path, name))


def test_a_child_says_what_became_of_the_mutant():
    assert outcome(*forked(lambda: (_PASSED, ""), 10), 3).state == "survived"
    dead = outcome(*forked(lambda: (_KILLED, "tests/a.py::b"), 10), 3)
    assert (dead.state, dead.by, dead.tests) == ("killed", "tests/a.py::b", 3)
    assert outcome(*forked(lambda: 1 // 0, 10), 1).state == "killed"
    assert outcome(*forked(lambda: os._exit(3), 10), 1).state == "killed"
    assert outcome(*forked(lambda: [None for _ in iter(time.process_time, None)], 0), 1).state == "time"


def test_tests_run_until_one_fails_and_its_servers_are_stopped():
    """A mutant that meets no test survives."""
    ran, verdict = [], SimpleNamespace(failed="")

    def protocol(item, nextitem):
        ran.append((item, nextitem))
        verdict.failed = "b" if item == "b" else ""

    hook, state = SimpleNamespace(pytest_runtest_protocol=protocol), SimpleNamespace(teardown_exact=ran.append)
    session = SimpleNamespace(config=SimpleNamespace(hook=hook), _setupstate=state)
    assert until_one_fails(session, [], verdict) == (_PASSED, "")
    assert until_one_fails(session, ["a", "c"], verdict) == (_PASSED, "")
    assert until_one_fails(session, ["a", "b", "c"], verdict) == (_KILLED, "b")
    assert ran == [("a", "c"), ("c", None), ("a", "b"), ("b", "c"), None]


def test_a_sample_is_drawn_from_a_seed_until_enough_are_no_words(tmp_path, module):
    mutants = list(mutants_of(tmp_path, "_kernel/sample.py"))
    drawn = sample(mutants, 8, 1)
    assert drawn == sample(mutants, 8, 1) != sample(mutants, 8, 2)
    assert sum(not mutant.words for mutant in drawn) == 8
    assert set(sample(mutants, 10**6, 1)) == set(mutants)


def test_tests_of_the_own_package_come_first_and_quick_ones_before_slow_ones(tmp_path, module):
    quick, slow, other, bad = "tests/kernel/a.py::quick", "tests/kernel/a.py::slow", "tests/session/b.py::c", "tests/kernel/a.py::bad"
    lines = {"_kernel/sample.py": {"11": [slow, quick, other, bad], "9": [other]}}
    served = [f"tests/kernel/a.py::{name}" for name in ("served", "served too")]
    lines["_kernel/sample.py"]["11"] += served
    names = f"{NAMES}[_kernel]"
    lines["_kernel/__init__.py"] = {"1": [other]}
    seconds = {slow: 9.0, quick: 0.1, other: 0.01, bad: 0.0, names: 0.3, **dict.fromkeys(served, 0.2)}
    known = {"seconds": seconds, "failed": [bad], "servers": dict.fromkeys(served, "spark"), "lines": lines}
    (tmp_path / "lines.json").write_text(json.dumps(known), "utf-8")
    cover = Cover(tmp_path)
    tests = cover.tests(found(tmp_path, "> least -> >= least"))
    assert tests == [quick, slow, *served, other]
    assert cover.within(tests, 1.0) == tests[:1]
    assert cover.within(tests, 10 + SERVERS["spark"]) == tests  # which is started once
    assert cover.within(tests, 9 + SERVERS["spark"]) == tests[:2]
    assert cover.tests(found(tmp_path, "5 -> 6")) == tests  # at import alone: whatever runs the file
    offered = dataclasses.replace(found(tmp_path, "5 -> 6"), file="_kernel/__init__.py")
    assert cover.tests(offered) == [names, other]  # and what looks at the names that a package offers


def test_a_recording_that_was_stopped_goes_on_where_it_was(tmp_path):
    done = [["tests/a.py::quick", 0.5, False, ""], ["tests/a.py::bad", 0.1, True, "spark"]]
    (tmp_path / "tests.jsonl").write_text("".join(json.dumps(one) + "\n" for one in done), "utf-8")
    items = [SimpleNamespace(path="tests/a.py", nodeid=f"tests/a.py::{name}") for name in ("quick", "bad", "new")]
    Recorder(coverage.Coverage(data_file=None), tmp_path / "tests.jsonl").pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["tests/a.py::new"]
    data = coverage.CoverageData(str(tmp_path / "coverage"))
    data.set_context("tests/a.py::quick")
    data.add_lines({str(tmp_path / "src" / "leastnoise" / "_kernel" / "a.py"): {7}})
    gather(tmp_path, tmp_path)
    known = json.loads((tmp_path / "lines.json").read_text("utf-8"))
    assert known["lines"] == {"_kernel/a.py": {"7": ["tests/a.py::quick"]}}
    assert (known["seconds"], known["failed"]) == ({"tests/a.py::quick": 0.5, "tests/a.py::bad": 0.1}, ["tests/a.py::bad"])
    assert known["servers"] == {"tests/a.py::bad": "spark"}


def test_every_target_is_there():
    root = Path(__file__).parents[2]
    for file, _, test in (target.partition("::") for target in targets()):
        assert (root / file).exists(), file
        assert not test or f"def {test}(" in (root / file).read_text("utf-8")


def test_files_that_make_frames_at_import_are_known():
    """A fork that finds their threads gone waits for ever."""
    tests = Path(__file__).parents[1]
    made = re.compile(r"^from adapters\.(pools|sources|neighbours) import", re.MULTILINE)
    assert {f"tests/{path.relative_to(tests)}" for path in tests.rglob("*.py") if made.search(path.read_text("utf-8"))} <= {*THREADED}


def test_what_server_a_test_needs_is_in_its_fixtures_or_its_parameters():
    for name, fixtures, server in (
        ("test_a[spark-u]", ["engine"], "spark"),
        ("test_a", ["spark_session"], "spark"),
        ("test_a", ["url", "tmp_path"], "url"),
        ("test_what_spark_says", ["tmp_path"], ""),
    ):
        assert server_of(SimpleNamespace(name=name, fixturenames=fixtures)) == server
    assert server_of(SimpleNamespace(name="module.example")) == ""


def test_the_page_lists_every_survivor_with_its_reason(tmp_path, module, monkeypatch):
    mutants = [mutant for mutant in mutants_of(tmp_path, "_kernel/sample.py") if mutant.before in {"5", "> least", "3"}]
    states = dict(zip([mutant.key for mutant in mutants], ("survived", "survived", "killed"), strict=True))
    facts = {"seed": 1, "commit": "abc", "date": "today", "all": 99, "mutants": [dataclasses.asdict(mutant) for mutant in mutants]}
    (tmp_path / "sample.json").write_text(json.dumps(facts), "utf-8")
    lines = [
        json.dumps({"key": key, "limit": 6.0, "outcome": dataclasses.asdict(Outcome(state, 1, "", 0.0))}) for key, state in states.items()
    ]
    (tmp_path / "results.jsonl").write_text("\n".join(lines), "utf-8")
    reasons = '"_kernel/sample.py: 5 -> 6" = "equivalent: nobody reads it"\n'
    (tmp_path / "reasons.toml").write_text(reasons, "utf-8")
    monkeypatch.setattr(report, "REASONS", tmp_path / "reasons.toml")
    report.write(tmp_path, tmp_path / "page.md", 60, 30)
    page = (tmp_path / "page.md").read_text("utf-8")
    assert "| **together** | 3 | 1 | 0 | 2 | 33.3 |" in page
    assert "| **without those that change no result** | 2 | 1 | 0 | 1 | 50.0 |" in page
    assert "| **the same, with the tests added since** | 2 | 1 | 0 | 1 | 50.0 |" in page
    assert page.count("not yet looked at") == 1
    assert "or that a test kills now: 1 equivalent." in page
    (tmp_path / "reasons.toml").write_text(f'{reasons}"{mutants[1].name}" = "closed: there is a test"', "utf-8")
    report.write(tmp_path, tmp_path / "page.md", 60, 30)
    page = (tmp_path / "page.md").read_text("utf-8")
    assert "| **without those that change no result** | 2 | 1 | 0 | 1 | 50.0 |" in page
    assert "| **the same, with the tests added since** | 2 | 2 | 0 | 0 | 100.0 |" in page
    assert "or that a test kills now: 1 equivalent, 1 closed." in page
    assert "not yet looked at" not in page
