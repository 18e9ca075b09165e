"""``python -m mutants``: copies the project, records what its tests cover, runs a sample of mutants and writes the results page.

python -m mutants [--mutants 400] [--seed 1] [--folder build/mutants]     all steps; continues where an earlier run was stopped
"""

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from mutants import covering, generate, report, trial

ROOT = Path(__file__).resolve().parents[2]
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "build", "site", "dist", "__pycache__", ".*_cache", "*.egg-info")
IN_PLACE, AFRESH = (6.0, 60.0), 20.0  # CPU seconds of tests that a mutant meets at most; in place in two rounds
_LAST = 1e9  # the limit written for what was found afresh
_CHUNK = 100  # mutants that go through all steps before the next ones: of a run cut short, what is decided is a fair sample too


def main() -> None:
    """Run the steps, each in a process of its own: some must not have imported the package, others must."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description="Mutation testing of the trusted packages.")
    parser.add_argument("--mutants", type=int, default=400, help="how many, besides those that only change the words of messages")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    folder = given.folder.resolve()
    if given.step:
        os.chdir(_tree(folder))
        steps = {"record": _record, "afresh": _afresh, **{f"in place {most:g}": partial(_in_place, most=most) for most in IN_PLACE}}
        steps[given.step](folder, given.first)
        return
    _run(folder, given)
    page = ROOT / "docs" / "results" / "mutation.md"
    report.write(folder, page, IN_PLACE[-1], AFRESH)
    print(f"The results are in {page}.")


def _run(folder: Path, given: argparse.Namespace) -> None:
    """All steps, each from where an earlier run was stopped."""
    if not _tree(folder).exists():
        shutil.copytree(ROOT, _tree(folder), ignore=NOT_COPIED)
    if not (folder / "lines.json").exists():
        _step("record", folder, 0)
    if not (folder / "sample.json").exists():
        _draw(folder, given)
    number = len(report.drawn(folder))
    for first in [*range(_CHUNK, number, _CHUNK), number]:
        for most in IN_PLACE:
            _step(f"in place {most:g}", folder, first)
        _step("afresh", folder, first)


def _tree(folder: Path) -> Path:
    """The copy of the project."""
    return folder / "tree"


def _draw(folder: Path, given: argparse.Namespace) -> None:
    mutants = generate.all_mutants(_tree(folder) / "src" / "leastnoise")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    facts = {"seed": given.seed, "commit": commit or "no commit", "date": f"{datetime.now(UTC):%-d %B %Y}", "all": len(mutants)}
    drawn = [dataclasses.asdict(mutant) for mutant in generate.sample(mutants, given.mutants, given.seed)]
    (folder / "sample.json").write_text(json.dumps({**facts, "mutants": drawn}, indent=1), "utf-8")


def _step(name: str, folder: Path, first: int) -> None:
    """Run a step in a process of its own."""
    own = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    own["PYTHONPATH"] = os.pathsep.join(map(str, (_tree(folder) / "src", ROOT / "tests", ROOT)))
    command = [sys.executable, "-m", "mutants", "--step", name, "--folder", str(folder), "--first", str(first)]
    if subprocess.run(command, env={**os.environ, **own}, check=False).returncode:
        sys.exit(f"The step {name!r} has failed; what is done is kept.")


def _record(folder: Path, _first: int) -> None:
    covering.record(_tree(folder), folder)


def _in_place(folder: Path, first: int, most: float) -> None:
    """Every mutant of a function's code, of the first that many, that is not dead yet; what is left is for ``_afresh``."""
    cover = covering.Cover(folder)

    def tell(mutant: generate.Mutant | None, found: trial.Outcome) -> None:
        if mutant is None and found.state != "survived":
            sys.exit(f"The tests fail on the code as it is: {found.by}")
        if mutant is not None:
            _write(folder, most, mutant, found)

    last = _last(folder)
    left = [mutant for mutant, state, limit in last[:first] if state not in {*report.DEAD, "no function"} and limit < most]
    checked = any(most <= limit < _LAST for _, _, limit in last)
    if left:
        trial.in_place(_tree(folder), cover, left if checked else [None, *left], most, tell)


def _afresh(folder: Path, first: int) -> None:
    """What is no function's code, and every survivor once more, of the first that many: the first tests alone, then more of the file's.

    Before them those that could not run in place.
    """
    cover, tree = covering.Cover(folder), _tree(folder)
    last = sorted(_last(folder)[:first], key=lambda one: one[1] == "survived")
    left = [mutant for mutant, state, limit in last if state not in report.DEAD and limit != _LAST]
    if left:
        trial.load_libraries()
        found = trial.afresh(tree, cover, None, cover.tests(left[0])[:60], AFRESH)
        if found.state != "survived":
            sys.exit(f"The tests fail on the code as it is: {found.by}")
    for mutant in left:
        own = cover.tests(mutant)
        tests = [*own, *(test for test in cover.of_file(mutant) if test not in set(own))]
        tests.sort(key=lambda test: not test.startswith(covering.THREADED))
        result = trial.afresh(tree, cover, mutant, tests[:60], AFRESH)
        if result.state == "survived" and len(tests) > 60:
            result = trial.afresh(tree, cover, mutant, tests[60:], AFRESH)
        _write(folder, _LAST, mutant, result)


def _last(folder: Path) -> list[tuple[generate.Mutant, str, float]]:
    """Each mutant of the sample with its last state, so that a run can be continued."""
    last = report.states(folder)
    return [(mutant, *last[mutant.key]) for mutant in report.drawn(folder)]


def _write(folder: Path, limit: float, mutant: generate.Mutant, found: trial.Outcome) -> None:
    with (folder / "results.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"key": mutant.key, "limit": limit, "outcome": dataclasses.asdict(found)}) + "\n")
    print(f"{found.state:12} {found.seconds:6.1f} s  {mutant.file}:{mutant.first}  {mutant.before[:60]} -> {mutant.after[:60]}", flush=True)


if __name__ == "__main__":
    main()
