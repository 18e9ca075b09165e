"""``python -m mutants``: test a sample of mutants and write the results page.

python -m mutants [--mutants 400] [--seed 1] [--folder build/mutants]

It runs all steps, and continues where an earlier run was stopped.
"""

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from mutants import generate, report, trial
from mutants.covering import Cover

ROOT = Path(__file__).resolve().parents[2]
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "build", "site", "dist", "__pycache__", ".*_cache", "*.egg-info"
)


def main():
    """Run the steps that are not done yet."""
    parser = argparse.ArgumentParser(
        prog="python -m mutants", description="Mutation testing of the trusted packages."
    )
    parser.add_argument(
        "--mutants",
        type=int,
        default=400,
        help="how many, besides those that only change the words of messages",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    tree = folder / "tree"
    if not tree.exists():
        shutil.copytree(ROOT, tree, ignore=NOT_COPIED)
    os.environ |= {
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "POLARS_MAX_THREADS": "1",
    }
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (tree / "src", ROOT / "tests", ROOT)))
    if not (folder / "lines.json").exists():
        subprocess.run(
            [sys.executable, "-m", "mutants.covering", str(tree), str(folder / "lines.json")],
            cwd=tree,
            check=True,
        )
    if not (folder / "sample.json").exists():
        _draw(folder, arguments)
    cover = Cover(folder)
    mutants = report.sample_of(folder)
    states = report.states(folder)
    if (
        not states
        and (outcome := trial.run(tree, cover, None, cover.tests(mutants[0]))).state != "survived"
    ):
        sys.exit(f"The tests fail on the code as it is: {outcome.by}")
    for mutant in mutants:
        if mutant.key not in states:
            outcome = trial.run(tree, cover, mutant, cover.tests(mutant))
            with (folder / "results.jsonl").open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"key": mutant.key, **dataclasses.asdict(outcome)}) + "\n")
            print(
                f"{outcome.state:8}  {mutant.file}:{mutant.first}  {mutant.before[:60]} -> "
                f"{mutant.after[:60]}",
                flush=True,
            )
    page = ROOT / "docs" / "results" / "mutation.md"
    report.write(folder, page)
    print(f"The results are in {page}.")


def _draw(folder, arguments):
    mutants = generate.all_mutants(folder / "tree" / "src" / "leastnoise")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    facts = {
        "seed": arguments.seed,
        "commit": commit or "no commit",
        "date": f"{datetime.now(UTC):%-d %B %Y}",
        "all": len(mutants),
    }
    sampled = [
        dataclasses.asdict(mutant)
        for mutant in generate.sample(mutants, arguments.mutants, arguments.seed)
    ]
    (folder / "sample.json").write_text(
        json.dumps({**facts, "mutants": sampled}, indent=1), "utf-8"
    )


if __name__ == "__main__":
    main()
