"""The results page: the score of each package, and the relevant survivors."""

import json
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from contracts.trusted import TRUSTED
from mutants.covering import LONGEST
from mutants.generate import Mutant
from mutants.trial import FIRST, MOST, PATIENCE

REASONS = Path(__file__).parent / "reasons.toml"
DEAD = {"killed", "time"}
# The reason of a survivor that a later test kills, as tried by hand, begins with this word.
CLOSED = "closed"
# The reasons of survivors that change no result begin with one of these.
HARMLESS = ("equivalent", "speed only", "memory only", "message only")
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


def sample_of(folder):
    """Return the sample in its random order."""
    return [Mutant(**fields_of_mutant) for fields_of_mutant in _facts(folder)["mutants"]]


def _facts(folder):
    return json.loads((folder / "sample.json").read_text("utf-8"))


def states(folder):
    """Return the state of each tested mutant, by key."""
    path = folder / "results.jsonl"
    return {
        trial["key"]: trial["state"]
        for trial in map(json.loads, path.read_text("utf-8").splitlines() if path.exists() else [])
    }


@dataclass(frozen=True)
class _Survivors:
    """Survivors that change behaviour, by the reasons that a person has written down.

    Attributes:
        all: every survivor.
        harmless: those that change no result.
        closed: those that a later test kills.
        shown: those that no later test kills, or that could change the privacy loss.
    """

    all: list[Mutant]
    harmless: list[Mutant]
    closed: list[Mutant]
    shown: list[Mutant]


def _classify(survivors, reasons):
    harmless = [mutant for mutant in survivors if reasons[mutant.name].startswith(HARMLESS)]
    closed = [mutant for mutant in survivors if reasons[mutant.name].startswith(CLOSED)]
    shown = [
        mutant
        for mutant in survivors
        if mutant not in harmless
        and (mutant not in closed or "privacy loss" in reasons[mutant.name])
    ]
    shown.sort(key=lambda mutant: (mutant.file, mutant.first, mutant.number))
    return _Survivors(survivors, harmless, closed, shown)


def write(folder, page):
    """Write the page of a sample whose mutants all ran."""
    mutants = sample_of(folder)
    states_by_key = states(folder)
    # Why each known survivor does no harm, by the mutant's name.
    reasons = defaultdict(str, tomllib.loads(REASONS.read_text("utf-8")))
    survivors = _classify(
        [
            mutant
            for mutant in mutants
            if not mutant.words and states_by_key[mutant.key] not in DEAD
        ],
        reasons,
    )
    facts = _facts(folder)
    sample = f"{len(mutants)} of {facts['all']} mutants of {facts['commit']}"
    harmless_counts = _count_by_reason(survivors.all, reasons)
    lines = [
        f"{facts['date']}: {sample}, drawn with the seed {facts['seed']}.\n",
        *_score_table(mutants, states_by_key, survivors),
        "\n## Survivors\n",
        *_survivor_table(survivors.shown, reasons),
        (
            f"\nSurvivors that change no result, or that a test kills now: {harmless_counts}. "
            "Their reasons are in\n`tests/mutants/reasons.toml`."
        ),
    ]
    method = _HOW.format(most=MOST, longest=LONGEST, patience=PATIENCE, first=FIRST)
    page.write_text(_HEAD + "\n".join(lines) + "\n" + method, "utf-8")


def _score_table(mutants, states_by_key, survivors):
    """Return the lines of the table with the score of each package."""
    behaviour = [mutant for mutant in mutants if not mutant.words]
    counted = [mutant for mutant in behaviour if mutant not in survivors.harmless]
    killed_since = {mutant.key: "killed" for mutant in survivors.closed}
    states_now = states_by_key | killed_since
    lines = [
        "| package | mutants | killed | of these by time | survived | killed, % |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name in sorted(TRUSTED):
        of_package = [mutant for mutant in behaviour if mutant.file.startswith(name + "/")]
        lines.append(_row(f"`{name}`", of_package, states_by_key))
    words = [mutant for mutant in mutants if mutant.words]
    return [
        *lines,
        _row("**together**", behaviour, states_by_key),
        _row("**without those that change no result**", counted, states_by_key),
        _row("**the same, with the tests added since**", counted, states_now),
        _row("words of messages", words, states_by_key),
    ]


def _survivor_table(survivors, reasons):
    """Return the lines of the table of survivors, or a sentence if there are none."""
    if not survivors:
        return ["None changes a result without a test that fails now."]
    lines = ["| where | change | what it alters |", "|---|---|---|"]
    for survivor in survivors:
        reason = reasons[survivor.name] or "**not yet looked at**"
        lines.append(f"| `{survivor.file}` {survivor.first} | {_change(survivor)} | {reason} |")
    return lines


def _count_by_reason(survivors, reasons):
    """Return how many survivors have each known kind of reason, or "none"."""
    counts = []
    for kind in (*HARMLESS, CLOSED):
        count = sum(reasons[mutant.name].startswith(kind) for mutant in survivors)
        if count:
            counts.append(f"{count} {kind}")
    return ", ".join(counts) or "none"


def _row(name, mutants, states_by_key):
    count = Counter(states_by_key[mutant.key] for mutant in mutants)
    dead = sum(count[state] for state in DEAD)
    return (
        f"| {name} | {len(mutants)} | {dead} | {count['time']} | {len(mutants) - dead} | "
        f"{100 * dead / max(1, len(mutants)):.1f} |"
    )


def _common_length(left, right):
    """Return how many characters at the beginning of both texts are equal."""
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _change(mutant):
    """Return the text that differs, with some context."""
    before = mutant.before
    after = mutant.after
    start = _common_length(before, after)
    end = _common_length(before[start:][::-1], after[start:][::-1])
    if end == min(len(before), len(after)) - start:
        end = 0
    start = max(0, start - 30)
    end = max(0, end - 12)
    texts = []
    for text in (before, after):
        excerpt = text[start : len(text) - end].replace("|", "\\|").replace("`", "'")
        texts.append(f"`{'... ' if start else ''}{excerpt}{' ...' if end else ''}`")
    return " to ".join(texts)
