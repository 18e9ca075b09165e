"""Planning: the draft, what is known of its margins now, the plan that is being made for it, and the one it is compared with."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leastnoise._check import InputError
from leastnoise._plan import Plan
from leastnoise._session import Price
from leastnoise._studio._background import Background
from leastnoise._studio._draft import Draft, changed, drafted
from leastnoise._studio._margins import scaled
from leastnoise._studio._saving import save
from leastnoise._studio._text import spec_text

_PATIENCE = 0.5  # seconds without a change before planning begins


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

    def __init__(self, place: Path, text: str) -> None:
        self.place = place
        self._saved = text
        self._lock = threading.RLock()
        self._seen = Seen(0, drafted(text, place.parent, str(place)))
        self._base: Plan | None = None
        self._background = Background(self._told)

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
            places = {product.question: place for place, product in enumerate(seen.plan.workload)}
            count = len(seen.draft.rows)
            new = [row for row in rows if 0 <= row < count and seen.draft.settings[row].on and row not in seen.prices]
            asked = [(row, [places[question] for question in seen.draft.rows[row].questions]) for row in new]
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
            written = save(self.place, self._saved, name, text)
            if written.name == self.place.name:
                self._saved = text
            return written

    def _told(self, number: int, message: Mapping[str, Any] | None) -> None:
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
                found = Price("", message["alone"], message["saved"])
                self._seen = replace(seen, prices={**seen.prices, message["price"]: found})
            elif "first" in message:
                if not self._covers(seen.plan):
                    self._base = Plan.from_json(message["first"])
                    self._seen = replace(seen, plan=self._base)
            else:
                self._base = Plan.from_json(message["plan"])
                self._seen = replace(seen, plan=self._base, ready=True)


def _request(draft: Draft) -> dict[str, Any]:
    return {"text": spec_text(draft), "folder": str(draft.folder)}
