"""Ten thousand faults: ``make faults``, or ``python tests/faults/run.py [--every N] [--out docs/results/faults.md]``."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import trials
from trials import MODES, Scenario, command, faulted, fresh, trial, with_ledger

ROOT = Path(__file__).parents[2]


def killed_after_the_record() -> None:
    """A release up to the moment before its answers are written."""
    from leastnoise._session import _finish

    _finish.fill_draft = lambda *_, **__: os._exit(9)
    command("release", "people.toml", "--out", "out")()


def scenarios() -> list[Scenario]:
    """What is run, each with the faults of all its calls."""
    made: dict[str, bytes] = {}

    def interrupted(folder: Path) -> None:
        """A release that was killed when its noise was on the disk."""
        if not made:
            with_ledger(folder)
            trials.forked(killed_after_the_record, folder)
            made["ledger"] = (folder / "people.ledger").read_bytes()
        with_ledger(folder)
        (folder / "people.ledger").write_bytes(made["ledger"])

    release = command("release", "people.toml", "--out", "out")
    return [
        Scenario("a release", with_ledger, release),
        Scenario("a first release, which makes its ledger", fresh, release),
        Scenario("a release that is finished later", interrupted, command("resume", "people.ledger"), pays=False),
    ]


def main() -> int:
    """Run all trials and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every N-th trial")
    parser.add_argument("--only", default="", help="only scenarios with this in their name")
    parser.add_argument("--damage", type=int, default=1, help="damage every N-th byte of a ledger; 0 for none")
    parser.add_argument("--out", type=Path, help="the page to write")
    given = parser.parse_args()
    trials.with_faults(ROOT / "build" / "faults")
    import duckdb  # noqa: F401 - once, before the forks
    import scipy.linalg  # noqa: F401

    import leastnoise._cli._main
    import leastnoise._release
    import leastnoise._session  # noqa: F401

    base = Path(tempfile.mkdtemp(prefix="faults-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))  # noqa: S108
    begun, lines, wrong = time.process_time(), [], []
    try:
        for scenario in scenarios():
            if given.only in scenario.name:
                lines += swept(scenario, base / "trial", given.every, wrong)
        if given.damage:
            lines += damaged(base / "damage", given.damage, wrong)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    times = os.times()
    spent = time.process_time() - begun + times.children_user + times.children_system
    page = written(lines, wrong, spent)
    print(page)
    if given.out:
        given.out.write_text(page, encoding="utf-8")
    return 1 if wrong else 0


def swept(scenario: Scenario, folder: Path, every: int, wrong: list[str]) -> list[tuple[str, str, int, Counter[str]]]:
    """Every fault in every call of a scenario."""
    scenario.prepare(folder)
    calls = faulted(scenario, folder, 10**6, 1).calls
    if calls < 20:
        raise SystemExit(f"{scenario.name}: only {calls} calls were seen; is the library loaded?")
    lines = []
    number = 0
    for mode, code in MODES.items():
        ends: Counter[str] = Counter()
        for place in range(calls):
            number += 1
            if number % every:
                continue
            found, end, state = trial(scenario, folder, place, code, further=number % (every * 8) == 0)
            ends[state] += 1
            wrong += [f"{scenario.name}, {mode} at call {place} of {calls} (code {end.code}): {one}" for one in found]
            for one in wrong[len(wrong) - len(found) :]:
                print(one, file=sys.stderr, flush=True)
        lines.append((scenario.name, mode, sum(ends.values()), ends))
        print(scenario.name, mode, dict(ends), len(wrong), file=sys.stderr, flush=True)
    return lines


def damaged(folder: Path, every: int, wrong: list[str]) -> list[tuple[str, str, int, Counter[str]]]:
    """A ledger with two entries, cut at and flipped in every byte: noticed, or as it was."""
    from leastnoise._accounting import PureCost, PureDP
    from leastnoise._check import LedgerError
    from leastnoise._session import Ledger

    with_ledger(folder)
    book = Ledger.open(folder / "people.ledger")
    for number in range(2):
        book.reserve(cost=PureCost(1), privacy=book.privacy.within(PureDP(1)), plan_digest="ab", output=f"out{number}", plan="{}")
    whole = book.path.read_bytes()
    lines = []
    for how in ("cut", "one bit flipped", "all bits of a byte flipped"):
        ends: Counter[str] = Counter()
        for place in range(0, len(whole), every):
            if how == "cut":
                changed = whole[:place]
            else:
                bits = 1 << place % 8 if how == "one bit flipped" else 255
                changed = whole[:place] + bytes([whole[place] ^ bits]) + whole[place + 1 :]
            book.path.write_bytes(changed)
            try:
                again = Ledger.open(book.path, timeout=0)
                same = (len(again.entries()), again.left().epsilon) == (2, 1)
                ends["as it was" if same else "CHANGED"] += 1
                if not same:
                    wrong.append(f"a ledger {how} at byte {place} says something else")
            except LedgerError as error:
                ends["noticed"] += 1
                if "ake a" in str(error) or "ake one" in str(error):
                    wrong.append(f"a ledger {how} at byte {place}: {error}")
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                wrong.append(f"a ledger {how} at byte {place}: {type(error).__name__}")
        lines.append((f"a ledger of {len(whole)} bytes", how, sum(ends.values()), ends))
        print("damage", how, dict(ends), len(wrong), file=sys.stderr, flush=True)
    return lines


def written(lines: list[tuple[str, str, int, Counter[str]]], wrong: list[str], spent: float) -> str:
    """The page."""
    total = sum(line[2] for line in lines)
    rows = [
        f"| {scenario} | {mode} | {number:,} | {', '.join(f'{count:,} {state}' for state, count in sorted(ends.items()))} |"
        for scenario, mode, number, ends in lines
    ]
    shown = [f"- {one}" for one in wrong[:200]] or ["None."]
    return "\n".join(
        [
            "# Faults",
            "",
            f"`{' '.join(['python', 'tests/faults/run.py', *sys.argv[1:]])}` put {total:,} faults into releases and ledgers;",
            f"{len(wrong)} complaints. It took {spent:,.0f} CPU seconds.",
            "",
            "Each line is one kind of fault at every call that writes, syncs, renames, links or removes a file, by whatever library",
            "(SQLite, DuckDB, Python); with `--every N` at every N-th. After each: nothing is out and unpaid; what was recorded is whole",
            "or resumable; the message and the exit code say in what state the payment is; `leastnoise resume` finishes what can be",
            "finished, with the noise that was drawn, once; the next release works.",
            "",
            "| what was run | fault | faults | state of the release, or of the ledger |",
            "|---|---|--:|---|",
            *rows,
            "",
            "Absent are releases that were stopped between the note that drawing begins and the record of the outcome",
            "([the ledger](../ledger.md)).",
            "",
            "## What went wrong",
            "",
            *shown,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
