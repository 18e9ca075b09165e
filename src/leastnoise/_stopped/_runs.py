"""The payments that this process has prepared, so that at its end the ledgers can be asked in what state they are."""

from collections.abc import Sequence
from pathlib import Path

_RUNS: list[tuple[Path, str]] = []


def note_run(ledger: Path, run: str) -> None:
    """Note a payment before it can happen."""
    _RUNS.append((ledger, run))


def runs() -> Sequence[tuple[Path, str]]:
    """All of them, in order: the ledger's file, and the run."""
    return tuple(_RUNS)
