"""The results page: the score of each package, and the relevant survivors."""

import json
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from contracts.trusted import TRUSTED

from mutants.covering import LONGEST
from mutants.generate import Mutant
from mutants.trial import FIRST, MOST, PATIENCE

REASONS = Path(__file__).parent / "reasons.toml"
DEAD = {"killed", "time"}
# the beginning of the reason of a survivor that a later test kills, as tried by hand
CLOSED = "closed"
# beginnings of the reasons of survivors that change no result
HARMLESS = (
    "equivalent",
    "speed only",
    "memory only",
    "message only",
)
_HEAD = """# Mutants of the trusted packages

A *mutant* is the program with one small change: another operator, number, argument or constant, or
a statement without its value. `make mutants` (`tests/mutants/`) draws a sample of the mutants of
the trusted packages, and runs the tests that cover each of them. It skips tests that read the code
instead of running it (the digests of the proofs).

"""
_HOW = """
## Method

All tests and examples of the trusted packages and of the session run once under `coverage`, which
records the lines that each test runs; tests that need more than {longest:.0f} CPU seconds with it
are skipped. Mutants are drawn uniformly from a seed, by the operators of mutmut 3.8.1; types,
decorators, docstrings and arguments of `len` and `isinstance` are not mutated. For each mutant, the
tests that run its lines come first, then others that run its file, until one fails, for at most
{most:.0f} CPU seconds. The first {first} tests run in a process that imports package and tests
anew, and the others in another process. A mutant is killed by time if it needs {patience:.0f} CPU
seconds more than three times the time of the tests without it.

*Without those that change no result*: this row omits a survivor if a person has written down, in
`tests/mutants/reasons.toml`, why no run returns, writes or refuses anything different. It is
*equivalent*, or only speed, memory or the text of a message differs.

*With the tests added since*: a survivor whose reason begins with *closed* was run again by hand,
and a test written for it killed it.

*Words*: changes inside `raise`, `refuse(...)` and the names that checks receive alter only the text
of a message. They are counted separately.
"""


def drawn(folder: Path) -> list[Mutant]:
    """Return the sample in its random order."""
    return [Mutant(**fields_of_mutant) for fields_of_mutant in _facts(folder)["mutants"]]


def _facts(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "sample.json").read_text("utf-8"))  # type: ignore[no-any-return]


def states(folder: Path) -> dict[str, str]:
    """Return the state of each tested mutant, by key."""
    path = folder / "results.jsonl"
    return {
        trial["key"]: trial["state"]
        for trial in map(json.loads, path.read_text("utf-8").splitlines() if path.exists() else [])
    }


def write(folder: Path, page: Path) -> None:
    """Write the page of a sample whose mutants all ran."""
    facts = _facts(folder)
    states_by_key = states(folder)
    mutants = drawn(folder)
    # why each known survivor does no harm, by the mutant's name
    reasons = defaultdict(str, tomllib.loads(REASONS.read_text("utf-8")))
    behaviour = [mutant for mutant in mutants if not mutant.words]
    survivors = [mutant for mutant in behaviour if states_by_key[mutant.key] not in DEAD]
    harmless = [mutant for mutant in survivors if reasons[mutant.name].startswith(HARMLESS)]
    counted = [mutant for mutant in behaviour if mutant not in harmless]
    since = states_by_key | {
        mutant.key: "killed" for mutant in survivors if reasons[mutant.name].startswith(CLOSED)
    }
    shown_survivors = [  # no later test kills them, or they could change the privacy loss
        mutant
        for mutant in survivors
        if mutant not in harmless
        and (since[mutant.key] not in DEAD or "privacy loss" in reasons[mutant.name])
    ]
    kinds = Counter(
        kind
        for mutant in survivors
        for kind in (*HARMLESS, CLOSED)
        if reasons[mutant.name].startswith(kind)
    )
    other_survivors = (
        ", ".join(f"{kinds[kind]} {kind}" for kind in (*HARMLESS, CLOSED) if kinds[kind]) or "none"
    )
    lines = [
        (
            f"{facts['date']}: {len(mutants)} of {facts['all']} mutants of {facts['commit']}, "
            f"drawn with the seed {facts['seed']}.\n"
        ),
        (
            "| package | mutants | killed | of these by time | survived | killed, % "
            "|\n|---|--:|--:|--:|--:|--:|"
        ),
        *(
            _row(
                f"`{name}`",
                [mutant for mutant in behaviour if mutant.file.startswith(name + "/")],
                states_by_key,
            )
            for name in sorted(TRUSTED)
        ),
        _row("**together**", behaviour, states_by_key),
        _row("**without those that change no result**", counted, states_by_key),
        _row("**the same, with the tests added since**", counted, since),
        _row("words of messages", [mutant for mutant in mutants if mutant.words], states_by_key),
        "\n## Survivors\n",
        "| where | change | what it alters |\n|---|---|---|",
        *(
            f"| `{survivor.file}` {survivor.first} | {_change(survivor)} | "
            f"{reasons[survivor.name] or '**not yet looked at**'} |"
            for survivor in sorted(
                shown_survivors, key=lambda mutant: (mutant.file, mutant.first, mutant.number)
            )
        ),
        (
            "\nSurvivors that change no result, or that a test kills now: "
            f"{other_survivors}. Their reasons are in\n`tests/mutants/reasons.toml`."
        ),
    ]
    page.write_text(
        _HEAD
        + "\n".join(lines)
        + "\n"
        + _HOW.format(most=MOST, longest=LONGEST, patience=PATIENCE, first=FIRST),
        "utf-8",
    )


def _row(name: str, mutants: list[Mutant], states_by_key: dict[str, str]) -> str:
    count = Counter(states_by_key[mutant.key] for mutant in mutants)
    dead = sum(count[state] for state in DEAD)
    return (
        f"| {name} | {len(mutants)} | {dead} | {count['time']} | {len(mutants) - dead} | "
        f"{100 * dead / max(1, len(mutants)):.1f} |"
    )


def _change(mutant: Mutant) -> str:
    """Return the text that differs, with some context."""
    before, after = mutant.before, mutant.after
    start = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
        min(len(before), len(after)),
    )
    end = next(
        (
            i
            for i, (a, b) in enumerate(zip(before[start:][::-1], after[start:][::-1], strict=False))
            if a != b
        ),
        0,
    )
    start, end = max(0, start - 30), max(0, end - 12)
    cut = [
        ("... " if start else "") + text[start : len(text) - end] + (" ..." if end else "")
        for text in (before, after)
    ]
    return " to ".join(
        f"`{text.replace('|', chr(92) + '|').replace('`', chr(39))}`" for text in cut
    )
