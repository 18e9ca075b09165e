"""Ten thousand faults: ``make faults`` injects them and writes the page of results.

Usage: ``python tests/faults/run.py [--every N] [--out docs/results/faults.md]``.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import textwrap
from collections import Counter
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import trials
from trials import (
    MODES,
    Scenario,
    before_and_after,
    command,
    entered,
    entering,
    faulted,
    fresh,
    trial,
    with_ledger,
)

ROOT = Path(__file__).parents[2]


def killed_after_the_record():
    """Release up to the moment before the answers are written."""
    from leastnoise._session import _release_job

    _release_job.fill_draft = lambda *_, **__: os._exit(9)
    command("release", "people.toml", "--out", "out")()


def after(work):
    """Return a function that copies the ledger which some work leaves."""
    content: list[bytes] = []

    def prepare(folder):
        with_ledger(folder)
        if not content:
            trials.forked(work, folder)
            content.append((folder / "people.ledger").read_bytes())
            with_ledger(folder)
        (folder / "people.ledger").write_bytes(content[0])

    return prepare


LEDGER = "people.ledger"
SHARE = ("--share", "ann")
RELEASE = command("release", "people.toml", "--out", "out")
# Entries of a data holder: the arguments of `leastnoise ledger`, and the folder before.
ENTRIES = {
    "a new ledger": (fresh, "set", LEDGER, "--epsilon", "3"),
    "a raised budget": (with_ledger, "change", LEDGER, "--epsilon", "5", "--note", "board"),
    "a budget for every month": (with_ledger, "change", LEDGER, "--epsilon", "3", "--per", "month"),
    "a share of the budget": (with_ledger, "share", LEDGER, "ann", "--epsilon", "1"),
    "spending from before": (with_ledger, "spent", LEDGER, "--epsilon", "1/2", "--note", "2024"),
}


def with_paid_release():
    """Return a function that prepares a ledger, and a release that another ledger paid."""
    folders: list[Path] = []

    def prepare(folder):
        if not folders:
            fresh(folder)
            trials.forked(RELEASE, folder)
            folders.append(shutil.move(folder / "out", folder.with_name("paid")))
        with_ledger(folder)
        shutil.copytree(folders[0], folder / "old")

    return prepare


def scenarios():
    """Return the scenarios that are run with the faults of all their calls."""
    entries = [
        entering(name, prepare, "ledger", *arguments)
        for name, (prepare, *arguments) in ENTRIES.items()
    ]
    entries.append(
        entering(
            "a release of another ledger",
            with_paid_release(),
            *("ledger", "spent", LEDGER, "--release", "old"),
        )
    )
    return [
        *entries,
        Scenario(
            "a release from a share",
            after(command("ledger", "share", LEDGER, "ann", "--epsilon", "2")),
            command("release", "people.toml", "--out", "out", *SHARE),
            known=1,
            share=SHARE,
        ),
        Scenario("a release", with_ledger, RELEASE),
        Scenario("a first release, which creates its ledger", fresh, RELEASE),
        Scenario(
            "a release that is finished later",
            after(killed_after_the_record),
            command("resume", LEDGER),
            pays=False,
        ),
    ]


@dataclass(frozen=True)
class Line:
    """One kind of fault, in every call of a scenario or in every byte of a ledger."""

    subject: str  # the scenario, or the damaged ledger
    fault: str
    possible: int  # faults of this kind
    ends: dict[str, int]  # trials by the state in which they ended
    failed_checks: list[str]
    seconds: float  # of CPU


def main():
    """Run all trials and write the page; continue a run with a page where it stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every N-th trial")
    parser.add_argument("--only", default="", help="only scenarios with this in their name")
    parser.add_argument(
        "--damage", type=int, default=1, help="damage every N-th byte of a ledger; 0 for none"
    )
    parser.add_argument("--out", type=Path, help="the page to write")
    arguments = parser.parse_args()
    build = ROOT / "build" / "faults"
    trials.with_faults(build)
    import_module("loaded")  # once, before the forks
    memory = "/dev/shm"  # noqa: S108
    folder = memory if os.access(memory, os.W_OK) else None
    base = Path(tempfile.mkdtemp(prefix="faults-", dir=folder))
    saved_lines = build / "lines.jsonl" if arguments.out else Path(os.devnull)
    lines = []
    if saved_lines.is_file():
        lines = [Line(**json.loads(text)) for text in saved_lines.read_text("utf-8").splitlines()]
    try:
        for line in run_trials(arguments, base, {(line.subject, line.fault) for line in lines}):
            lines.append(line)
            print_line(line)
            with saved_lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(line)) + "\n")
            if arguments.out:
                arguments.out.write_text(page_of(lines), encoding="utf-8")
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(page_of(lines))
    return 1 if any(line.failed_checks for line in lines) else 0


def run_trials(arguments, base, known_faults):
    """Yield the results of all selected trials, except for known kinds of fault."""
    for scenario in scenarios():
        if arguments.only in scenario.name:
            yield from swept(scenario, base / "trial", arguments.every, known_faults)
    if arguments.damage:
        yield from damaged(base / "damage", arguments.damage, known_faults)


def print_line(line):
    """Write one kind of fault, its results and its failed checks to standard error."""
    parts = (line.subject, line.fault, line.ends, *line.failed_checks)
    print(*parts, sep="\n    ", file=sys.stderr, flush=True)


def cpu():
    """Return the CPU seconds of this process and its children so far."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def swept(scenario, folder, every, known_faults):
    """Yield the results of every fault in every call, except for known kinds of fault."""
    modes = [mode for mode in MODES if (scenario.name, mode) not in known_faults]
    if not modes:
        return
    scenario.prepare(folder)
    calls = faulted(scenario, folder, 10**6, 1).calls
    if calls < 8:
        raise SystemExit(f"{scenario.name}: only {calls} calls were seen; is the library loaded?")
    sides = before_and_after(scenario, folder) if scenario.enters else (None, None)
    for mode in modes:
        start = cpu()
        ends = Counter[str]()
        failed_checks = []
        for place in range(calls):
            number = list(MODES).index(mode) * calls + place + 1
            if number % every:
                continue
            if scenario.enters:
                findings, end, state = entered(scenario, folder, place, MODES[mode], sides)
            else:
                findings, end, state = trial(
                    scenario, folder, place, MODES[mode], further=number % (every * 8) == 0
                )
            ends[state] += 1
            failed_checks += [
                f"{scenario.name}, {mode} at call {place} of {calls} (code {end.code}): {finding}"
                for finding in findings
            ]
        yield Line(scenario.name, mode, calls, dict(ends), failed_checks, cpu() - start)


def damaged(folder, every, known_faults):
    """Yield the results of a ledger with two entries, cut at and flipped in every byte."""
    from leastnoise._session import Ledger
    from leastnoise._trusted.accounting import PureCost, PureDP
    from leastnoise._trusted.check import LedgerError

    with_ledger(folder)
    book = Ledger.open(folder / "people.ledger")
    for number in range(2):
        book.reserve(
            cost=PureCost(1),
            privacy=book.privacy.within(PureDP(1)),
            plan_digest="ab",
            output=f"out{number}",
            plan="{}",
        )
    content = book.path.read_bytes()
    subject = f"a ledger of {len(content):,} bytes"
    for how in ("cut", "one bit flipped", "all bits of a byte flipped"):
        if (subject, how) in known_faults:
            continue
        start = cpu()
        ends = Counter[str]()
        failed_checks = []
        for place in range(0, len(content), every):
            bits = 1 << place % 8 if how == "one bit flipped" else 255
            flipped = content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]
            book.path.write_bytes(content[:place] if how == "cut" else flipped)
            complaint = None
            try:
                reopened = Ledger.open(book.path, timeout=0)
                is_same = (len(reopened.entries()), reopened.left().epsilon) == (2, 1)
                ends["as it was" if is_same else "CHANGED"] += 1
                complaint = None if is_same else "says something else"
            except LedgerError as error:
                ends["noticed"] += 1
                complaint = str(error) if "ake a" in str(error) or "ake one" in str(error) else None
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                complaint = type(error).__name__
            failed_checks += [f"a ledger {how} at byte {place}: {complaint}"] if complaint else []
        yield Line(subject, how, len(content), dict(ends), failed_checks, cpu() - start)


_METHOD = (
    "A fault is injected at every call that writes, syncs, renames, links or removes a file, in "
    "any library (SQLite, DuckDB, Python). If fewer faults were tried than possible, it is "
    "injected at one of several calls. After each fault the run checks that nothing is published "
    "unpaid; every recorded release is whole or resumable; the message and the exit code state "
    "the charge; `leastnoise resume` finishes what can be finished, once and with the noise that "
    "was drawn; and the next release works. An entry of the data holder in a ledger (a budget, a "
    "share, spending elsewhere) is complete or absent, and the message and the exit code say "
    "which."
)
_ABSENT = (
    "A release is absent if it was stopped after the ledger recorded that drawing begins and "
    "before it recorded the outcome ([the ledger](../ledger.md)). Read-only folders and several "
    "processes at once are tested in `tests/trusted/kernel/test_ledger_processes.py` and "
    "`tests/cli/test_killed.py`."
)


def page_of(lines):
    """Return the text of the page."""
    total = sum(sum(line.ends.values()) for line in lines)
    possible = sum(line.possible for line in lines)
    seconds = sum(line.seconds for line in lines)
    rows = []
    for subject in dict.fromkeys(line.subject for line in lines):
        lines_of_subject = [line for line in lines if line.subject == subject]
        ends = sum((Counter(line.ends) for line in lines_of_subject), Counter[str]())
        states = ", ".join(f"{count:,} {state}" for state, count in sorted(ends.items()))
        rows.append(
            f"| {subject} | {ends.total():,} | "
            f"{sum(line.possible for line in lines_of_subject):,} | {states} |"
        )
    kinds = ", ".join(dict.fromkeys(line.fault for line in lines))
    failed_checks = [check for line in lines for check in line.failed_checks]
    shown = [f"- {check}" for check in failed_checks[:200]] or ["None."]
    return "\n".join(
        [
            "# Faults",
            "",
            (
                f"`make faults` injected {total:,} of {possible:,} possible faults into releases "
                "and ledgers."
            ),
            f"{len(failed_checks)} checks failed. The run took {seconds:,.0f} CPU seconds.",
            "",
            *textwrap.wrap(f"Kinds of faults: {kinds}.", 100),
            "",
            *textwrap.wrap(_METHOD, 100),
            "",
            "| scenario | faults | of | state of the release or the ledger |",
            "|---|--:|--:|---|",
            *rows,
            "",
            *textwrap.wrap(_ABSENT, 100),
            "",
            "## Failed checks",
            "",
            *shown,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
