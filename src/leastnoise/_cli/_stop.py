"""Interruptions, and what a run that did not end well says about payment."""

import signal
from typing import Any

from leastnoise._stopped import runs

_interrupted: list[int] = []


def listen() -> None:
    """Turn the first interruption into KeyboardInterrupt; later ones are ignored, so that the last sentence is said whole.

    A run that was started with interruptions ignored, as in the background, keeps ignoring them.
    """
    _interrupted.clear()
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _stop)


def interrupted() -> bool:
    """Whether an interruption came; libraries may turn it into errors of their own."""
    return bool(_interrupted)


def _stop(number: int, frame: Any) -> None:  # noqa: ARG001 - the signature is Python's
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _interrupted.append(number)
    raise KeyboardInterrupt


def what_was_paid(since: int) -> tuple[str, str]:
    """Ask the ledgers about all payments of this run, at this moment."""
    if len(runs()) == since:
        return "nothing", "Nothing was spent."
    try:
        from leastnoise._session import account

        asked = [account(ledger, run) for ledger, run in runs()[since:]]
    except Exception:  # noqa: BLE001 - the first error must not be hidden by a second one
        return "unknown", "Whether something was paid cannot be told now; see `leastnoise ledger show`."
    found = [one for one in asked if one.state != "nothing"]
    states = [
        state for state in ("unknown", "resumable", "absent", "whole", "entered", "guard") if any(one.state == state for one in found)
    ]
    return (states[0], " ".join(one.words for one in found)) if states else ("nothing", "Nothing was spent.")
