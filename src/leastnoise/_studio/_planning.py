"""The page that plans: a draft, the plan that a background process makes for it meanwhile, and a kept plan to compare with."""

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

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import BaseRoute

from leastnoise._accuracy import block_variance, interval_multiplier, lower_bound, statistic_errors
from leastnoise._check import InputError
from leastnoise._fitting import rescaled
from leastnoise._measurements import Measurements
from leastnoise._plan import Plan, Promise, TableError
from leastnoise._planning import Price, Reached, answering, period_errors, reached, reached_by_means, stated
from leastnoise._release import Texts, bet_words, budget_words, goodness, sums_words, texts
from leastnoise._spec import Spec, plan_warnings, read_spec_text, spec_warnings
from leastnoise._studio._draft import MOST_PERIODS, OBJECTIVES, TARGETS, Draft, Question, Row, Setting, changed, drafted, save, spec_text
from leastnoise._studio._pages import Page, action, asset, get, shown
from leastnoise._workload import Workload

_ENDED = "Planning ended without a plan."
_COMMAND = ("-P", "-c", "from leastnoise._studio._draft import plan_for_parent; plan_for_parent()")
_PATIENCE = 0.5  # seconds without a change before planning begins
_SAME = 1e-6  # relative: scales are rounded to 24 bits, and margins are shown in three digits
_LEVELS = (0.8, 0.9, 0.95, 0.99, 0.999)


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
                self._seen = replace(seen, doing="", trying="", error=_ENDED if stopped else seen.error)
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
    return {"text": spec_text(draft), "folder": str(draft.folder), "language": draft.spec.options.language}


def view(seen: Seen) -> dict[str, Any]:
    """The page as a JSON object."""
    draft, said = seen.draft, texts(seen.draft.spec.options.language)
    now, planned = {} if seen.plan is None else margins(seen.plan, draft.level), seen.plan if seen.ready else None
    before = None if seen.kept is None else margins(seen.kept.plan, seen.kept.draft.level)
    each = enumerate(zip(draft.rows, draft.settings, strict=True))
    return {
        "version": seen.version,
        "busy": bool(seen.doing),
        "lead": said.say("st_lead", percent=said.percent(draft.level)),
        "status": _status(seen, said),
        "error": said.fault(seen.error) if seen.error == _ENDED else seen.error,
        "size": draft.size,
        "delta": draft.delta,
        "objective": draft.objective,
        "level": draft.level,
        "periods": draft.periods,
        "horizon": _horizon(draft),
        "facts": _facts(draft, seen.plan, said),
        "kept": None if seen.kept is None else _facts(seen.kept.draft, seen.kept.plan, said),
        "warnings": [*spec_warnings(draft.spec, said), *(plan_warnings(draft.spec, planned, said) if planned else ())],
        "ready": seen.ready,
        "rows": [
            {
                **_row_texts(row, setting, now, before, seen.prices.get(number), said),
                **_promised(row, setting, seen.plan, draft.level, said),
            }
            for number, (row, setting) in each
        ],
    }


def _status(seen: Seen, said: Texts) -> str:
    trying = " " + said.say("st_trying", strategy=seen.trying) if seen.trying else ""
    if seen.doing == "pricing":
        return said.say("st_pricing")
    if seen.plan is None or not seen.ready:
        known = "" if seen.plan is None else said.say("st_before_now")
        return f"{known} {said.say('st_planning') + trying if seen.doing else said.say('st_stopped')}".strip()
    return said.say("st_aware" if seen.plan.promise is None else "st_ready", strategy=seen.plan.strategy)


def _facts(draft: Draft, plan: Plan | None, said: Texts) -> list[tuple[str, str]]:
    spec = draft.spec
    privacy = stated(spec.privacy) or (None if plan is None else plan.privacy)
    facts = [] if privacy is None else [(said.say("budget"), budget_words(privacy, said))]
    answers, tables = said.some("answers", spec.workload.rows), said.some("tables", len(spec.workload.products))
    facts.append((said.say("st_asked"), f"{answers}, {tables}"))
    ratio = None if plan is None else goodness(plan)
    if ratio is not None:
        facts.append((said.say("goodness"), said.say("goodness_value", ratio=said.local(f"{ratio:.2f}"))))
    facts.append((said.say("st_objective"), said.say(f"st_{draft.objective}")))
    facts += _of_periods(draft, plan, said)
    facts += [(said.say("st_of_values"), sentence) for sentence in sums_words(spec.workload, said)]
    return facts if privacy is None else [*facts, (said.say("h_protects"), bet_words(privacy, said))]


def _horizon(draft: Draft) -> str:
    """How many periods a series has, and its last day."""
    return "" if draft.dates is None else f"{draft.periods}, {draft.dates.reaching(draft.periods).end}"


def _of_periods(draft: Draft, plan: Plan | None, said: Texts) -> Iterator[tuple[str, str]]:
    """How long a series is, the margins of answers that end in some of its periods, and the error of all beside the least possible."""
    if draft.dates is None:
        return
    yield said.say("st_periods"), _horizon(draft)
    errors = [] if plan is None else [*period_errors(plan).items()]
    if plan is None or plan.promise is None or not errors:
        return
    times = interval_multiplier(plan.measured().noise, draft.level)
    for period in sorted({0, (len(errors) - 1) // 2, len(errors) - 1}):
        label, row = errors[period]
        known = [(product.name, times * error) for product, error in zip(plan.workload, row, strict=True) if error is not None]
        yield said.say("st_ending", period=label), "; ".join(f"{name} ± {said.error(margin)}" for name, margin in known)
    total, least = (math.sqrt(squares / plan.workload.rows) for squares in (plan.promise.total_squared_error, plan.promise.lower_bound))
    yield said.say("st_all_periods"), said.say("st_total_least", total=said.error(total), least=said.error(least))


def _row_texts(
    row: Row,
    setting: Setting,
    now: Mapping[Question, Margin],
    before: Mapping[Question, Margin] | None,
    price: Price | None,
    said: Texts,
) -> dict[str, Any]:
    """The settings of a row, and one text a column."""
    known = [now[question] for question in row.questions if question in now] if setting.on else []
    kept = [before[question] for question in row.questions if question in before] if before else []
    ratio = known[0].typical / kept[0].typical if known and kept else None
    targets = [margin.target for margin in known if margin.target is not None]
    return {
        "set": [setting.on, setting.weight, setting.target, setting.most, setting.size_of],
        "typical": _joined([said.error(margin.typical) for margin in known]) or said.say("st_unknown" if setting.on else "st_off"),
        "largest": _joined([("≤ " if margin.is_bound else "") + said.error(margin.largest) for margin in known]),
        "share": _joined([said.percent(margin.share, 2) for margin in known if margin.share is not None]),
        "verdict": _joined(
            [said.say("st_kept") if target.kept else said.say("st_missed", error=said.error(target.error)) for target in targets]
        ),
        "missed": not all(target.kept for target in targets),
        "price": "" if price is None else said.say("st_price", alone=said.percent(price.alone, 2), saved=said.percent(price.saved, 2)),
        "before": _joined([said.error(margin.typical) for margin in kept]),
        "change": "" if ratio is None else f"{'+' if ratio > 1 else ''}{said.percent(round(ratio - 1, 3) + 0.0, 3)}",
    }


def _promised(row: Row, setting: Setting, plan: Plan | None, level: float, said: Texts) -> dict[str, Any]:
    """What is promised for means, quantiles or a distribution function, in the path of the verdict on a target; nothing for tables."""
    if row.statistic is None or not setting.on or plan is None or plan.promise is None:
        return {}
    asked = replace(row.statistic, size=None, target=None)
    promised = zip(statistic_errors(plan), reached_by_means(plan, level), strict=True)
    same = [(error, target) for error, target in promised if replace(error.statistic, size=None, target=None) == asked]
    if not same:
        return {}
    error, target = same[0]
    if error.std_error is None:
        return {"verdict": said.say("st_needs_size")}
    margin = interval_multiplier(plan.measured().noise, level) * error.std_error
    if asked.form.of_measure:
        margin = target.error if target is not None and target.kind == "margin" else margin
        return {"verdict": said.say("st_margin_of_mean", margin=said.error(margin)), "missed": target is not None and not target.kept}
    return {"verdict": said.say("st_margin_of_share", margin=said.percent(margin, 2))}


def _joined(texts_of_tables: list[str]) -> str:
    return " / ".join(dict.fromkeys(texts_of_tables))


def planning_page(path: Path) -> Page:
    """The page for one spec."""
    planning = Planning(path, read_spec_text(path))
    said = texts(planning.seen.draft.spec.options.language)

    def page() -> str:
        return shown("planning.html", t=said, name=path.name, lead=view(planning.seen)["lead"], **_choices(planning, said))

    def doing(path: str, do: Callable[[dict[str, Any]], str | None]) -> BaseRoute:
        """What is done for a page that says which version of the settings it shows; what it shows then, and a word of what was done."""

        def done(asked: dict[str, Any]) -> Any:
            with planning.showing(asked.get("version")):
                word = do(asked)
                return {**view(planning.seen), "done": word}

        return action(path, done, said)

    def change(asked: dict[str, Any]) -> None:
        rows, changes = asked.get("rows", []), asked.get("changes")
        if not isinstance(rows, list) or not isinstance(changes, dict):
            raise InputError("A change must have an object of changes, and a list of rows.")
        planning.change(changes, rows)

    def price(asked: dict[str, Any]) -> None:
        rows = asked.get("rows")
        if not isinstance(rows, list) or not all(isinstance(row, int) for row in rows):
            raise InputError("A price must have a list of rows.")
        planning.price(rows)

    def save(asked: dict[str, Any]) -> str:
        return said.say("st_saved", file=planning.save(str(asked.get("name", ""))).name)

    return Page(
        routes=[
            get("/", page),
            *(asset(name) for name in ("studio.css", "asking.js", "planning.js")),
            get("/view", lambda: view(planning.seen), JSONResponse),
            get("/spec", lambda: spec_text(planning.seen.draft), PlainTextResponse),
            doing("/change", change),
            doing("/price", price),
            doing("/keep", lambda _: planning.keep()),
            doing("/swap", lambda _: planning.swap()),
            doing("/save", save),
        ],
        begin=planning.begin,
        close=planning.close,
    )


def _choices(planning: Planning, said: Texts) -> dict[str, Any]:
    draft = planning.seen.draft
    levels = sorted({*_LEVELS, draft.level})
    return {
        "rows": [(row.name(said), said.plain(row.queries)) for row in draft.rows],
        "of": draft.of,
        "delta": bool(draft.delta),
        "horizon": min(4 * draft.periods, MOST_PERIODS),
        "levels": [(level, said.percent(level)) for level in levels],
        "objectives": [(name, said.say(f"st_{name}")) for name in OBJECTIVES],
        "targets": [("", said.say("st_none")), *((name, said.say(f"st_{'share' if name == 'relative' else name}")) for name in TARGETS)],
    }
