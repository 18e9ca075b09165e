"""The results page: the score of each package, and the survivors that matter, with their reasons."""

import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from contracts.trusted import TRUSTED

from mutants.covering import LONGEST
from mutants.generate import Mutant

REASONS = Path(__file__).parent / "reasons.toml"
DEAD = {"killed", "time"}
CLOSED = "closed"  # how the reason begins of one that a test kills which was written after it was found, tried by hand
HARMLESS = ("equivalent", "speed only", "memory only", "message only")  # how the reason of a survivor begins that changes no result
_HEAD = """# Mutants of the trusted packages

A *mutant* is the program with one small change: another operator, number, argument or constant, a statement without its value. A test suite
is worth as much as the mutants it notices. `make mutants` draws a sample of those of the packages that must be trusted, and runs the tests
that cover each. Tests that read the code instead of running it (the digests of the proofs) are left out, so that what kills is behaviour.

"""
_HOW = """
## How it is done

`tests/mutants/` has the program.

1. All tests and examples of the trusted packages and of the session run once under `coverage`, in a copy of the project: which test runs
   which line, and how long it takes. Tests that need more than {longest:.0f} CPU seconds with it are left out.
2. A sample of all mutants is drawn, each as likely as any other, from a seed. The changes are those of the operators of mutmut 3.8.1.
   Left out: types and decorators, the arguments of `len` and `isinstance`, which only raise without them, and docstrings.
3. Every mutant of a function meets the tests that run its lines until one fails, {in_place:.0f} CPU seconds of them at most.
4. What is no function's code (constants, classes, defaults), and what step 3 did not kill, runs afresh: package and tests imported anew, 60
   tests and then {afresh:.0f} CPU seconds of tests. One that needs 90 CPU seconds more than three times what they took is killed by time.

*Without those that change no result*: a survivor is left out of that line only if a person has read the code and written down, in
`tests/mutants/reasons.toml`, why no run gives, writes or refuses anything else: it is *equivalent*, or only speed, memory or the words of a
message differ. One without such a reason counts against the score.

*With the tests added since*: a survivor whose reason begins with *closed* was run again by hand, and died of a
test that was written for it.

*Words*: changes inside `raise`, `refuse(...)` and the names that checks are given alter only what a message says. They are drawn and run
like all others and counted apart.
"""


def drawn(folder: Path) -> list[Mutant]:
    """The sample, in the order it was drawn."""
    return [Mutant(**one) for one in _facts(folder)["mutants"]]


def _facts(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "sample.json").read_text("utf-8"))  # type: ignore[no-any-return]


def states(folder: Path) -> dict[str, tuple[str, float]]:
    """The last state of each mutant, by key: its state and the limit at which it was found; 0 if it was not run."""
    found = {mutant.key: ("", 0.0) for mutant in drawn(folder)}
    path = folder / "results.jsonl"
    for one in map(json.loads, path.read_text("utf-8").splitlines() if path.exists() else []):
        if one["limit"] >= found[one["key"]][1]:
            found[one["key"]] = one["outcome"]["state"], one["limit"]
    return found


def read_reasons() -> dict[str, str]:
    """Why each known survivor does no harm, by the mutant's name."""
    return tomllib.loads(REASONS.read_text("utf-8"))


def write(folder: Path, page: Path, in_place: float, afresh: float) -> None:
    """Write the page.

    Args:
        folder: with the sample and the results.
        page: the file.
        in_place: limit of the tests' CPU seconds, for the words.
        afresh: the other limit.
    """
    facts, found = _facts(folder), {key: state for key, (state, _) in states(folder).items() if state in {*DEAD, "survived"}}
    reasons = read_reasons()
    mutants = [mutant for mutant in drawn(folder) if mutant.key in found]
    behaviour = [mutant for mutant in mutants if not mutant.words]
    sample = f"{len(mutants)} of {facts['all']} mutants of {facts['commit']}, drawn with the seed {facts['seed']}"
    cut = len(facts["mutants"]) - len(mutants)
    sample += f";\n{cut} more were drawn, and the run ended before they were decided" if cut else ""
    counted = [one for one in behaviour if _counts(one, found, reasons)]
    since = found | {one.key: "killed" for one in counted if found[one.key] not in DEAD and reasons.get(one.name, "").startswith(CLOSED)}
    told = [
        f"{facts['date']}: {sample}.\n",
        "| package | mutants | killed | of these by time | survived | killed, % |\n|---|--:|--:|--:|--:|--:|",
        *(_row(f"`{name}`", [one for one in behaviour if one.file.startswith(name + "/")], found) for name in sorted(TRUSTED)),
        _row("**together**", behaviour, found),
        _row("**without those that change no result**", counted, found),
        _row("**the same, with the tests added since**", counted, since),
        _row("words of messages", [one for one in mutants if one.words], found),
        "\n## Survivors\n",
        "| where | change | what it alters |\n|---|---|---|",
        *_survivors([one for one in counted if found[one.key] not in DEAD and _matters(reasons.get(one.name, ""))], reasons),
        _others([one for one in behaviour if found[one.key] not in DEAD], reasons),
    ]
    page.write_text(_HEAD + "\n".join(told) + "\n" + _HOW.format(in_place=in_place, afresh=afresh, longest=LONGEST), "utf-8")


def _counts(mutant: Mutant, found: dict[str, str], reasons: dict[str, str]) -> bool:
    """Whether it is dead, or nobody has said why no result can differ."""
    return found[mutant.key] in DEAD or not reasons.get(mutant.name, "").startswith(HARMLESS)


def _row(name: str, mutants: list[Mutant], found: dict[str, str]) -> str:
    count = Counter(found[mutant.key] for mutant in mutants)
    dead = sum(count[state] for state in DEAD)
    return f"| {name} | {len(mutants)} | {dead} | {count['time']} | {len(mutants) - dead} | {100 * dead / max(1, len(mutants)):.1f} |"


def _survivors(mutants: list[Mutant], reasons: dict[str, str]) -> list[str]:
    return [f"| {_where(one)} | {_change(one)} | {reasons.get(one.name, '**not yet looked at**')} |" for one in _sorted(mutants)]


def _matters(reason: str) -> bool:
    """Whether a survivor is listed: no test kills it since, or it could change the privacy loss."""
    return not reason.startswith(CLOSED) or "privacy loss" in reason


def _others(mutants: list[Mutant], reasons: dict[str, str]) -> str:
    """How many survivors change no result, or die of a test that was written since, by kind."""
    kinds = Counter(kind for one in mutants for kind in (*HARMLESS, CLOSED) if reasons.get(one.name, "").startswith(kind))
    shown = ", ".join(f"{kinds[kind]} {kind}" for kind in (*HARMLESS, CLOSED) if kinds[kind])
    where = "Their reasons are in\n`tests/mutants/reasons.toml`."
    return f"\nSurvivors that change no result, or that a test kills now: {shown or 'none'}. {where}"


def _sorted(mutants: list[Mutant]) -> list[Mutant]:
    return sorted(mutants, key=lambda mutant: (mutant.file, mutant.first, mutant.number))


def _where(mutant: Mutant) -> str:
    return f"`{mutant.file}` {mutant.first}"


def _change(mutant: Mutant) -> str:
    """The text that differs, with a little of what stands around it."""
    before, after = mutant.before, mutant.after
    start = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    end = next((i for i, (a, b) in enumerate(zip(before[start:][::-1], after[start:][::-1], strict=False)) if a != b), 0)
    start, end = max(0, start - 30), max(0, end - 12)
    cut = [("... " if start else "") + text[start : len(text) - end] + (" ..." if end else "") for text in (before, after)]
    return " to ".join(f"`{text.replace('|', chr(92) + '|').replace('`', chr(39))}`" for text in cut)
