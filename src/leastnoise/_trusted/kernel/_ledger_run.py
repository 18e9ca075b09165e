"""Record the steps of releases that are paid and not yet published.

The beginning of a step is entered into the ledger before its first random bit is drawn. Its outcome
is entered before the outcome is returned. A step that has an entry but no outcome is never drawn
again; see (J1) to (J3) in PROOFS-ledger.md.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from leastnoise._trusted.accounting import Charge
from leastnoise._trusted.check import InputError, LedgerError
from leastnoise._trusted.kernel._ledger_file import damaged_message, hash_row

_PART = 2**26  # characters; SQLite holds at most 10^9 bytes in one value


class NeedsData(InputError):
    """The error for a paid release that has no rows, but has steps to draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that a charge was durably reserved.

    A receipt allows one draw of each step.

    Attributes:
        id: 128 random bits in hexadecimal.
        dataset: name of the data set.
        plan_digest: fingerprint of the plan that was paid for.
        output: where the release will be published.
        charge: the charged amount, in the definition of the data set's budget.
        number: number of its entry in the ledger.
        head: a digest of its entry and all entries before it.
        run: identifier of the process that carries out the release; see `Ledger.running`.

    >>> Receipt.__slots__
    ('id', 'dataset', 'plan_digest', 'output', 'charge', 'number', 'head', 'run')
    """

    id: str
    dataset: str
    plan_digest: str
    output: str
    charge: Charge
    number: int
    head: str
    run: str


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """The fingerprint and the outcome of a recorded step.

    Attributes:
        request: fingerprint of the request of the step.
        outcome: its result, as text.
    """

    request: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Pending:
    """The plan, the options and the recorded steps of an unpublished release.

    Attributes:
        plan: its JSON text.
        options: the options of the release, as the caller passed them.
        steps: the recorded steps, in order.
    """

    plan: str
    options: str
    steps: tuple[RecordedStep, ...]


def begin_step(
    connection: sqlite3.Connection, entry_id: str, step_number: int, step_fingerprint: str
) -> None:
    """Enter the beginning of a step into the ledger (J1).

    Raises:
        LedgerError: a process has begun this step or a later step before, or an earlier step has no
            outcome.
    """
    begun = connection.execute(
        "SELECT count(*), count(digest) FROM step WHERE id = ?", (entry_id,)
    ).fetchone()
    if begun != (step_number - 1, step_number - 1):
        raise LedgerError(
            f"Step {step_number} of the release {entry_id} was begun before, or the step before it "
            "has no outcome. A step is not drawn twice. If another process is finishing this "
            "release, wait for it."
        )
    connection.execute(
        "INSERT INTO step VALUES (?, ?, ?, NULL)", (entry_id, step_number, step_fingerprint)
    )


def record_step(
    connection: sqlite3.Connection, entry_id: str, step_number: int, outcome: Iterable[str]
) -> None:
    """Store the outcome of a step that has begun and has no outcome yet (J2)."""
    step = (entry_id, step_number)
    if connection.execute(
        "SELECT count(*) FROM step WHERE id = ? AND number = ? AND digest IS NULL", step
    ).fetchone() != (1,):
        raise LedgerError(
            f"Step {step_number} of the release {entry_id} is not under way. Let the process that "
            "makes this release finish it."
        )
    digest = hashlib.sha256(b'["')  # in the end equal to ``hash_row`` of all parts together
    for index, text in enumerate(_text_parts(outcome)):
        digest.update(json.dumps(text)[1:-1].encode())
        connection.execute("INSERT INTO outcome VALUES (?, ?, ?, ?)", (*step, index, text))
    digest.update(b'"]')
    connection.execute(
        "UPDATE step SET digest = ? WHERE id = ? AND number = ?", (digest.hexdigest(), *step)
    )


def _text_parts(texts: Iterable[str]) -> Iterator[str]:
    """Concatenate texts, and yield the result in parts of ``_PART`` characters.

    The last part may be shorter.
    """
    texts_of_part: list[str] = []
    size = 0
    for text in texts:
        start = 0
        # A text may be very long, so the remainder of it is not copied.
        while len(text) - start >= _PART - size:
            room = _PART - size
            yield "".join([*texts_of_part, text[start : start + room]])
            texts_of_part = []
            size = 0
            start += room
        texts_of_part.append(text[start:])
        size += len(text) - start
    if size:
        yield "".join(texts_of_part)


def count_recorded(connection: sqlite3.Connection, entry_id: str) -> int:
    """Return how many steps of a release have an outcome."""
    row = connection.execute("SELECT count(digest) FROM step WHERE id = ?", (entry_id,)).fetchone()
    number: int = row[0]
    return number


def read_pending(connection: sqlite3.Connection, entry_id: str, path: Path) -> Pending:
    """Return the plan, options and recorded steps of an unpublished release.

    Raises:
        LedgerError: the release has nothing to finish, or its rows are damaged.
    """
    head = connection.execute(
        "SELECT plan, options, digest FROM pending WHERE id = ?", (entry_id,)
    ).fetchone()
    if head is None:
        raise LedgerError(
            f"The release {entry_id} in the ledger {path} has nothing that could be finished."
        )
    steps: list[RecordedStep] = []
    for number, request, digest in connection.execute(
        "SELECT number, request, digest FROM step WHERE id = ? AND digest IS NOT NULL ORDER BY "
        "number",
        (entry_id,),
    ).fetchall():
        texts = connection.execute(
            "SELECT text FROM outcome WHERE id = ? AND number = ? ORDER BY part", (entry_id, number)
        ).fetchall()
        step = RecordedStep(request, "".join(text for (text,) in texts))
        if number != len(steps) + 1 or hash_row((step.outcome,)) != digest:
            raise LedgerError(
                damaged_message(path, f"the measurement of the release {entry_id} is unreadable")
            )
        steps.append(step)
    if hash_row((entry_id, *head[:2])) != head[2]:
        raise LedgerError(
            damaged_message(path, f"the plan of the release {entry_id} is unreadable")
        )
    return Pending(head[0], head[1], tuple(steps))
