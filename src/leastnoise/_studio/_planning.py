"""Planning: a draft, the plan that a background process makes for it, what is known meanwhile, and a kept plan to compare with."""

import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leastnoise._accuracy import block_variance, interval_multiplier, lower_bound
from leastnoise._check import InputError
from leastnoise._fitting import rescaled
from leastnoise._measurements import Measurements
from leastnoise._plan import Plan, Promise, TableError
from leastnoise._planning import Price, Reached, answering, reached, stated
from leastnoise._spec import Spec
from leastnoise._studio._draft import Draft, Question, changed, drafted, save, spec_text
from leastnoise._workload import Workload

_COMMAND = ("-P", "-m", "leastnoise._studio._worker")
_PATIENCE = 0.5  # seconds without a change before planning begins


class Background:
    """Runs one request at a time; a new one ends the one before, and nothing more is heard of that."""

    def __init__(self, hear: Callable[[int, Mapping[str, Any] | None], None]) -> None:
        self._hear = hear
        self._process: subprocess.Popen[str] | None = None
        self._waiting: threading.Timer | None = None
        self._lock = threading.Lock()

    def start(self, number: int, request: Callable[[], Mapping[str, Any]], after: float = 0.0) -> None:
        """Begin, and end what runs."""
        self.stop()
        with self._lock:
            self._waiting = threading.Timer(after, self._run, (number, request))
            self._waiting.daemon = True
            self._waiting.start()

    def stop(self) -> None:
        """End what runs."""
        with self._lock:
            if self._waiting is not None:
                self._waiting.cancel()
            if self._process is not None:
                self._process.kill()
            self._waiting = self._process = None

    def _run(self, number: int, request: Callable[[], Mapping[str, Any]]) -> None:
        with self._lock:
            if self._waiting is not threading.current_thread():
                return  # stopped at the last moment
            process = subprocess.Popen(  # noqa: S603 - this Python and a module of this package
                [sys.executable, *_COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
            )
            self._process = process
        # Ended before it has read its request, it leaves a pipe that can neither be written nor closed without an error.
        with suppress(OSError, ValueError), process:
            process.stdin.write(json.dumps(request()) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            for line in process.stdout or ():
                self._hear(number, json.loads(line))
        self._hear(number, None)


_SAME = 1e-6  # relative: scales are rounded to 24 bits, and margins are shown in three digits


@dataclass(frozen=True, slots=True)
class Margin:
    """What is promised for one table, in rows or in the amounts of its measure."""

    typical: float
    largest: float
    is_bound: bool
    share: float | None
    target: Reached | None


def scaled(plan: Plan, spec: Spec) -> Plan | None:
    r"""The measurements of a plan at the budget of a spec, and what they promise for those of its tables that they answer.

    Exact for these measurements: their noise is fitted to the budget anew, as a plan's is. Where that multiplies all their variances by one
    number, it multiplies those of least squares too; else the error is computed anew.
    """
    if plan.measurements is None or plan.promise is None or plan.domain != spec.domain:
        return None
    privacy = stated(spec.planned_privacy) or plan.privacy
    if type(privacy.budget) is not type(plan.privacy.budget):
        return None
    known = dict(zip((product.question for product in plan.workload), plan.promise.tables, strict=True))
    try:
        measured = rescaled(plan.measurements, privacy)
    except InputError:  # so small a budget needs a plan of its own
        return None
    pairs = zip(measured.blocks, plan.measurements.blocks, strict=True)
    shares = [block_variance(measured, new) / block_variance(plan.measurements, old) for new, old in pairs]
    if max(shares) <= min(shares) * (1 + _SAME) and all(product.question in known for product in spec.workload):
        return _multiplied(plan, spec.workload, measured, max(shares), known)
    for products in (spec.workload.products, tuple(product for product in spec.workload if product.question in known)):
        try:
            return answering(Workload(spec.domain, products), plan, privacy) if products else None
        except InputError:
            continue  # a table that these measurements do not determine
    return None


def _multiplied(plan: Plan, asked: Workload, measured: Measurements, by: float, known: Mapping[Question, TableError]) -> Plan:
    """The plan for tables that are known, all of whose variances are multiplied by one number."""
    root = math.sqrt(by)
    tables = []
    for product in asked:
        before = known[product.question]
        weight, rmse, largest = float(product.weight), root * before.rmse, root * before.largest_std
        tables.append(replace(before, name=product.name, weight=weight, rmse=rmse, largest_std=largest))
    total = math.fsum(product.importance * product.rows * table.rmse**2 for product, table in zip(asked, tables, strict=True))
    details = plan.details_for(asked)
    bound = lower_bound(asked, measured.privacy, measured.noise, float(details.get("unit_bound", 0.0)))
    promise = Promise(total, bound, tuple(tables))
    return replace(plan, workload=asked, privacy=measured.privacy, measurements=measured, promise=promise, details=details)


def margins(plan: Plan, level: float) -> Mapping[Question, Margin]:
    """What a plan promises for each of its tables, by what they ask; nothing where the error depends on the data."""
    if plan.promise is None:
        return {}
    measured = plan.measured()
    times, half = interval_multiplier(measured.noise, level), 0.5 / measured.grid
    by_question = {}
    for product, table, target in zip(plan.workload, plan.promise.tables, reached(plan, level), strict=True):
        typical, largest = ((times * error + half) * product.unit for error in (table.rmse, table.largest_std))
        share = None if product.size is None else typical / float(product.size)
        by_question[product.question] = Margin(typical, largest, table.largest_is_bound, share, target)
    return by_question


@dataclass(frozen=True, slots=True)
class Kept:
    """A plan that others are compared with, and the draft that it was made for."""

    draft: Draft
    plan: Plan


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page shows at one moment; ``version`` counts the changes of the draft, ``number`` what was asked of the background."""

    number: int
    draft: Draft
    plan: Plan | None = None
    ready: bool = False
    doing: str = ""
    trying: str = ""
    error: str = ""
    prices: Mapping[int, Price] = field(default_factory=dict)
    kept: Kept | None = None
    version: int = 0


class Planning:
    """What one person does with one spec, from several threads."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._saved = text
        self._lock = threading.RLock()
        self._seen = Seen(0, drafted(text, path.parent, str(path)))
        self._base: Plan | None = None
        self._background = Background(self._hear)

    @property
    def seen(self) -> Seen:
        """What there is to be seen now."""
        return self._seen

    def begin(self) -> None:
        """Plan the draft as it is."""
        with self._lock:
            self._plan_for(self._seen.draft)

    def close(self) -> None:
        """End what runs in the background."""
        self._background.stop()

    @contextmanager
    def showing(self, version: object) -> Iterator[None]:
        """Hold the draft still for a page that shows this version of it; a page that shows another is refused."""
        with self._lock:
            if version != self._seen.version:
                raise InputError(
                    "These settings were changed on another page of this studio, and nothing was done. They are shown here as they are "
                    "now; look at them, and do it again."
                )
            yield

    def change(self, changes: Mapping[str, object], rows: Sequence[int] = ()) -> None:
        """Change the draft, and begin to plan it; as `changed`."""
        with self._lock:
            self._plan_for(changed(self._seen.draft, changes, rows))

    def _plan_for(self, draft: Draft) -> None:
        plan = None if self._base is None else scaled(self._base, draft.spec)
        before = self._seen
        self._seen = Seen(before.number + 1, draft, plan, doing="planning", kept=before.kept, version=before.version + 1)
        first = not self._covers(plan)
        self._background.start(self._seen.number, lambda: {**_request(draft), "first": first}, 0.0 if self._base is None else _PATIENCE)

    def _covers(self, plan: Plan | None) -> bool:
        """Whether the margins of all tables are known."""
        return plan is not None and len(plan.workload.products) == len(self._seen.draft.spec.workload.products)

    def price(self, rows: Sequence[int]) -> None:
        """Find what rows cost, one after the other."""
        with self._lock:
            seen = self._seen
            if seen.plan is None or not seen.ready or seen.plan.promise is None:
                raise InputError("Tables have a price when there is a plan for them whose error is known; wait for it.")
            numbers = {product.question: number for number, product in enumerate(seen.plan.workload)}
            count = len(seen.draft.rows)
            new = [row for row in rows if 0 <= row < count and seen.draft.settings[row].on and row not in seen.prices]
            asked = [(row, [numbers[question] for question in seen.draft.rows[row].questions]) for row in new]
            self._seen = replace(seen, number=seen.number + 1, doing="pricing", trying="", error="")
            request = {"plan": seen.plan.to_json(), "price": asked}
            self._background.start(self._seen.number, lambda: {**_request(seen.draft), **request})

    def keep(self) -> None:
        """Keep the plan that is ready, to compare others with it; where none is, forget the one that is kept."""
        with self._lock:
            seen = self._seen
            kept = Kept(seen.draft, seen.plan) if seen.plan is not None and seen.ready and seen.plan.promise is not None else None
            self._seen = replace(seen, kept=kept)

    def swap(self) -> None:
        """Go back to the draft of the plan that is kept, and keep the one that was here."""
        with self._lock:
            kept, seen = self._seen.kept, self._seen
            if kept is None:
                raise InputError("No plan is kept to go back to.")
            self._background.stop()
            self.keep()
            self._base = kept.plan
            other = self._seen.kept or kept
            self._seen = Seen(seen.number + 1, kept.draft, kept.plan, ready=True, kept=other, version=seen.version + 1)

    def save(self, name: str) -> Path:
        """Write the spec; as `save`."""
        with self._lock:
            text = spec_text(self._seen.draft)
            written = save(self.path, self._saved, name, text)
            if written.name == self.path.name:
                self._saved = text
            return written

    def _hear(self, number: int, message: Mapping[str, Any] | None) -> None:
        """What the background says."""
        with self._lock:
            seen = self._seen
            if number != seen.number:
                return
            if message is None:
                stopped = seen.doing == "planning" and not seen.ready and not seen.error
                self._seen = replace(seen, doing="", trying="", error="Planning ended without a plan." if stopped else seen.error)
            elif "trying" in message:
                self._seen = replace(seen, trying=message["trying"])
            elif "error" in message:
                self._seen = replace(seen, error=message["error"])
            elif "price" in message:
                price = Price("", message["alone"], message["saved"])
                self._seen = replace(seen, prices={**seen.prices, message["price"]: price})
            elif "first" in message:
                if not self._covers(seen.plan):
                    self._base = Plan.from_json(message["first"])
                    self._seen = replace(seen, plan=self._base)
            else:
                self._base = Plan.from_json(message["plan"])
                self._seen = replace(seen, plan=self._base, ready=True)


def _request(draft: Draft) -> dict[str, Any]:
    return {"text": spec_text(draft), "folder": str(draft.folder)}
