"""``python -m mutants``: copies the project, records what its tests cover, runs a sample of mutants and writes the results page.

python -m mutants [--mutants 400] [--seed 1] [--folder build/mutants]     all steps; continues where an earlier run was stopped
python -m mutants --page                                                  the page of what is decided so far, without running anything
python -m mutants --again build/mutants --folder build/again              the survivors of that run, in the code as it is now
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

from contracts.trusted import TRUSTED

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
    parser.add_argument("--again", type=Path, help="the folder of an earlier run: take its survivors instead of a sample")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once, each with a copy of the project")
    parser.add_argument("--packages", nargs="+", default=TRUSTED, help="only mutants and tests of these")
    parser.add_argument("--quick", action="store_true", help="only quick tests, of the trusted packages alone: for a busy machine")
    parser.add_argument("--page", action="store_true", help="write the page of what an earlier run has decided, and run nothing")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    folder = given.folder.resolve()
    if given.step:
        os.chdir(_tree(folder, given.part))
        steps = {
            "record": partial(_record, packages=given.packages, quick=given.quick),
            "afresh": _afresh,
            **{f"in place {most:g}": partial(_in_place, most=most) for most in IN_PLACE},
        }
        steps[given.step](folder, given.part, given.jobs, given.first)
        return
    if not given.page:
        _run(folder, given)
    page = folder / "page.md" if given.again else ROOT / "docs" / "results" / "mutation.md"
    report.write(folder, page, IN_PLACE[-1], AFRESH)
    print(f"The results are in {page}.")


def _run(folder: Path, given: argparse.Namespace) -> None:
    """All steps, each from where an earlier run was stopped."""
    for part in range(given.jobs):  # the changes of one are not seen by another
        if not _tree(folder, part).exists():
            shutil.copytree(_tree(folder, 0) if part else ROOT, _tree(folder, part), ignore=NOT_COPIED)
    if not all((folder / f"lines-{part}.json").exists() for part in range(given.jobs)):
        _step("record", folder, given.jobs, *(["--quick"] if given.quick else []), "--packages", *given.packages)
    if not (folder / "sample.json").exists():
        _draw(folder, given)
    number = len(report.drawn(folder))
    for first in [*range(_CHUNK, number, _CHUNK), number]:
        for most in IN_PLACE:
            _step(f"in place {most:g}", folder, given.jobs, "--first", str(first))
        _step("afresh", folder, given.jobs, "--first", str(first))


def _tree(folder: Path, part: int) -> Path:
    """The copy of the project of one process."""
    return folder / f"tree-{part}"


def _draw(folder: Path, given: argparse.Namespace) -> None:
    """The sample, or the survivors of an earlier run as they are in this tree."""
    mutants = generate.all_mutants(_tree(folder, 0) / "src" / "leastnoise", given.packages)
    if given.again:
        last = report.states(given.again)
        names = {mutant.name for mutant in report.drawn(given.again) if last[mutant.key][0] not in report.DEAD}
        drawn = [mutant for mutant in mutants if mutant.name in names]
        print(f"{len(names)} survivors; {len(names - {mutant.name for mutant in drawn})} of them are changes of code that is gone")
    else:
        drawn = generate.sample(mutants, given.mutants, given.seed)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    facts = {
        "seed": given.seed,
        "commit": commit or "no commit",
        "date": f"{datetime.now(UTC):%-d %B %Y}",
        "all": len(mutants),
        "packages": list(given.packages),
    }
    facts["mutants"] = [dataclasses.asdict(mutant) for mutant in drawn]
    (folder / "sample.json").write_text(json.dumps(facts, indent=1), "utf-8")


def _step(name: str, folder: Path, jobs: int, *more: str) -> None:
    """Run a step in so many processes, which take turns at its tests or mutants."""
    paths = [os.pathsep.join(map(str, (_tree(folder, part) / "src", ROOT / "tests", ROOT))) for part in range(jobs)]
    own = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-m", "mutants", "--step", name, "--folder", str(folder), "--jobs", str(jobs), *more]
    started = [
        subprocess.Popen([*command, "--part", str(part)], env={**os.environ, **own, "PYTHONPATH": paths[part]}) for part in range(jobs)
    ]
    codes = [one.wait() for one in started]
    if any(codes):
        sys.exit(f"The step {name!r} has failed; what is done is kept.")


def _record(folder: Path, part: int, parts: int, _first: int, *, packages: list[str], quick: bool) -> None:
    covering.record(_tree(folder, part), folder, part, parts, packages=packages, quick=quick)


def _in_place(folder: Path, part: int, parts: int, first: int, most: float) -> None:
    """Every mutant of a function's code, of the first that many, that is not dead yet; what is left is for ``_afresh``."""
    cover = covering.Cover(folder)

    def tell(mutant: generate.Mutant | None, found: trial.Outcome) -> None:
        if mutant is None and found.state != "survived":
            sys.exit(f"The tests fail on the code as it is: {found.by}")
        if mutant is not None:
            _write(folder, most, mutant, found)

    last = _last(folder)
    left = [mutant for mutant, state, limit in last[part:first:parts] if state not in {*report.DEAD, "no function"} and limit < most]
    checked = any(most <= limit < _LAST for _, _, limit in last)
    if left:
        trial.in_place(_tree(folder, part), cover, left if checked else [None, *left], most, tell)


def _afresh(folder: Path, part: int, parts: int, first: int) -> None:
    """What is no function's code, and every survivor once more, of the first that many: the first tests alone, then more of the file's.

    Before them those that could not run in place.
    """
    cover, tree = covering.Cover(folder), _tree(folder, part)
    last = sorted(_last(folder)[part:first:parts], key=lambda one: one[1] == "survived")
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
