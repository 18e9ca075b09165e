"""The page that plans: a draft of a spec, the plan that a background process makes for it, and a kept plan to compare it with."""

import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, PlainTextResponse

from leastnoise._error import interval_multiplier, statistic_errors
from leastnoise._plan import Plan
from leastnoise._planning import (
    TargetStatus,
    attributes_of_public_counts,
    mean_target_statuses,
    period_errors,
    plan_for_workload,
    stated_privacy,
    target_statuses,
)
from leastnoise._release import (
    Catalogue,
    describe_guessing_chance,
    error_over_bound,
    format_budget,
    list_sum_contributions,
    load_catalogue,
)
from leastnoise._spec import Spec, plan_warnings, read_spec_text, spec_warnings
from leastnoise._studio._draft import (
    MOST_PERIODS,
    OBJECTIVES,
    TARGETS,
    Draft,
    Question,
    Row,
    Setting,
    changed,
    drafted,
    save,
    spec_text,
)
from leastnoise._studio._pages import Page, action, assets, get, shown
from leastnoise._trusted.check import InputError
from leastnoise._workload import Workload, with_hidden_cells

_ENDED = "Planning ended without a plan."
_COMMAND = ("-P", "-c", "from leastnoise._studio._draft import plan_for_parent; plan_for_parent()")
_PATIENCE = 0.5  # seconds without a change before planning begins
_LEVELS = (0.8, 0.9, 0.95, 0.99, 0.999)


class Background:
    """Runs one request at a time in another process; a new request ends the one before.

    Args:
        hear: called with the number of a request and each message of its process, and with None
            when the process has ended.
    """

    def __init__(self, hear: Callable[[int, Mapping[str, Any] | None], None]) -> None:
        self._hear = hear
        self._process: subprocess.Popen[str] | None = None
        self._waiting: threading.Timer | None = None
        self._lock = threading.Lock()

    def start(
        self, number: int, request: Callable[[], Mapping[str, Any]], after: float = 0.0
    ) -> None:
        """End the request that runs, and begin another one after so many seconds."""
        self.stop()
        with self._lock:
            self._waiting = threading.Timer(after, self._run, (number, request))
            self._waiting.daemon = True
            self._waiting.start()

    def stop(self) -> None:
        """End the request that runs."""
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
                [sys.executable, *_COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
            self._process = process
        # A process that ended before it read its request leaves a pipe that can neither be written
        # nor closed without an error.
        with suppress(OSError, ValueError), process:
            process.stdin.write(json.dumps(request()) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            for line in process.stdout or ():
                self._hear(number, json.loads(line))
        self._hear(number, None)


class Margin(NamedTuple):
    """The margins that a plan promises for one table, in rows or in amounts of its measure.

    ``share`` is the typical margin over the public size of the table; ``is_bound`` says that
    ``largest`` is only a bound.
    """

    typical: float
    largest: float
    is_bound: bool
    share: float | None
    target: TargetStatus | None


def scaled(plan: Plan, spec: Spec) -> Plan | None:
    """Return a plan with the measurements of ``plan`` at the budget of ``spec``, for those tables of the spec that they answer.

    None if there is no such plan. Its errors are exact: the noise is fitted to the new budget, and
    they are computed anew.
    """
    if plan.measurements is None or plan.promise is None:
        return None
    privacy = stated_privacy(spec.planned_privacy) or plan.privacy
    if type(privacy.budget) is not type(plan.privacy.budget):
        return None
    known = {product.table_key for product in plan.workload}
    for products in (
        spec.workload.products,
        tuple(product for product in spec.workload if product.table_key in known),
    ):
        if not products:
            return None
        workload = with_hidden_cells(
            Workload(spec.domain, products), attributes_of_public_counts(spec.public)
        )
        if workload.domain != plan.domain:
            continue
        try:
            return plan_for_workload(workload, plan, privacy)
        # these measurements do not determine one of the tables, or the budget is too small for them
        except InputError:
            continue
    return None


def margins(plan: Plan | None, level: float) -> dict[Question, Margin]:
    """Return the margins of each table of a plan by its question; empty where the errors depend on the data."""
    if plan is None or plan.promise is None:
        return {}
    measured = plan.measured()
    times, half = interval_multiplier(measured.noise, level), 0.5 / measured.grid
    by_question = {}
    for product, table, target in zip(
        plan.workload, plan.promise.tables, target_statuses(plan, level), strict=True
    ):
        typical, largest = (
            (times * error + half) * product.unit for error in (table.rmse, table.largest_std)
        )
        share = None if product.size is None else typical / float(product.size)
        by_question[product.table_key] = Margin(
            typical, largest, table.largest_is_bound, share, target
        )
    return by_question


class Kept(NamedTuple):
    """A plan to compare others with, and the draft that it was made for."""

    draft: Draft
    plan: Plan


@dataclass(frozen=True, slots=True)
class Seen:
    """The state that a page shows.

    ``number`` counts the requests to the background, ``version`` the changes of the draft.
    ``ready`` says that the plan is for exactly this draft, ``prices`` has the shares of the budget
    that a row needs alone and that leaving it out saves.
    """

    number: int
    draft: Draft
    plan: Plan | None = None
    ready: bool = False
    doing: str = ""
    trying: str = ""
    error: str = ""
    prices: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    kept: Kept | None = None
    version: int = 0

    @property
    def promised(self) -> Plan | None:
        """The plan if it is for exactly this draft and its error is known."""
        return (
            self.plan
            if self.ready and self.plan is not None and self.plan.promise is not None
            else None
        )


class Planning:
    """The work of one person on one spec; pages and the background call it from several threads. `seen` is the state to show."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.seen = Seen(0, drafted(text, path.parent, str(path)))
        self._saved = text
        self._lock = threading.RLock()
        self._base: Plan | None = (
            None  # the measurements that a changed draft is shown with until it is planned
        )
        self.background = Background(self._hear)

    def begin(self) -> None:
        """Plan the draft as it is."""
        with self._lock:
            self._plan_for(self.seen.draft)

    def act(self, name: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an action of a page that shows the newest version of the settings; return the new view and a message."""
        with self._lock:
            if asked.get("version") != self.seen.version:
                raise InputError(
                    "These settings were changed on another page of this studio, and nothing was "
                    "done. They are shown here as they are "
                    "now; look at them, and do it again."
                )
            done = _ACTIONS[name](self, asked)
            return {**view(self.seen), "done": done}

    def change(self, asked: Mapping[str, Any]) -> None:
        """Change the draft as `changed` does, and begin to plan it."""
        rows, changes = asked.get("rows", []), asked.get("changes")
        if not isinstance(rows, list) or not isinstance(changes, dict):
            raise InputError("A change must have an object of changes, and a list of rows.")
        self._plan_for(changed(self.seen.draft, changes, rows))

    def price(self, asked: Mapping[str, Any]) -> None:
        """Begin to compute the prices of rows, one after the other."""
        rows, seen = asked.get("rows"), self.seen
        if not isinstance(rows, list) or not all(isinstance(row, int) for row in rows):
            raise InputError("A price must have a list of rows.")
        if seen.promised is None:
            raise InputError(
                "Tables have a price when there is a plan for them whose error is known; wait for "
                "it."
            )
        numbers = {
            product.table_key: number for number, product in enumerate(seen.promised.workload)
        }
        known = [
            row
            for row in rows
            if 0 <= row < len(seen.draft.rows)
            and seen.draft.settings[row].on
            and row not in seen.prices
        ]
        priced = [
            (row, [numbers[question] for question in seen.draft.rows[row].questions])
            for row in known
        ]
        request = {"plan": seen.promised.to_json(), "price": priced}
        self.seen = replace(seen, number=seen.number + 1, doing="pricing", trying="", error="")
        self.background.start(self.seen.number, lambda: {**_request(seen.draft), **request})

    def keep(self, _: Mapping[str, Any] | None = None) -> None:
        """Keep the plan that is ready, to compare others with it; if none is ready, forget the kept one."""
        plan = self.seen.promised
        self.seen = replace(self.seen, kept=None if plan is None else Kept(self.seen.draft, plan))

    def swap(self, _: Mapping[str, Any]) -> None:
        """Go back to the draft of the plan that is kept, and keep the one that was here."""
        kept, seen = self.seen.kept, self.seen
        if kept is None:
            raise InputError("No plan is kept to go back to.")
        self.background.stop()
        self.keep()
        self._base = kept.plan
        other = self.seen.kept or kept
        self.seen = Seen(
            seen.number + 1, kept.draft, kept.plan, ready=True, kept=other, version=seen.version + 1
        )

    def save(self, asked: Mapping[str, Any]) -> str:
        """Write the spec as `save` does."""
        text = spec_text(self.seen.draft)
        written = save(self.path, self._saved, str(asked.get("name", "")), text)
        if written.name == self.path.name:
            self._saved = text
        return load_catalogue(self.seen.draft.spec.options.language).say(
            "st_saved", file=written.name
        )

    def _plan_for(self, draft: Draft) -> None:
        plan = None if self._base is None else scaled(self._base, draft.spec)
        before = self.seen
        self.seen = Seen(
            before.number + 1,
            draft,
            plan,
            doing="planning",
            kept=before.kept,
            version=before.version + 1,
        )
        self.background.start(
            self.seen.number, lambda: _request(draft), 0.0 if self._base is None else _PATIENCE
        )

    def _hear(self, number: int, message: Mapping[str, Any] | None) -> None:
        """Take over a message of the background into the state."""
        with self._lock:
            seen = self.seen
            if number != seen.number:
                return
            if message is None:
                stopped = seen.doing == "planning" and not seen.ready and not seen.error
                self.seen = replace(
                    seen, doing="", trying="", error=_ENDED if stopped else seen.error
                )
            elif "price" in message:
                self.seen = replace(
                    seen,
                    prices={**seen.prices, message["price"]: (message["alone"], message["saved"])},
                )
            elif "plan" in message:
                self._base = Plan.from_json(message["plan"])
                self.seen = replace(seen, plan=self._base, ready=True)
            else:
                self.seen = replace(seen, **message)  # the strategy that is tried, or an error


_ACTIONS: Mapping[str, Callable[[Planning, Mapping[str, Any]], str | None]] = {
    "change": Planning.change,
    "price": Planning.price,
    "keep": Planning.keep,
    "swap": Planning.swap,
    "save": Planning.save,
}


def _request(draft: Draft) -> dict[str, Any]:
    return {
        "text": spec_text(draft),
        "folder": str(draft.folder),
        "language": draft.spec.options.language,
    }


def view(seen: Seen) -> dict[str, Any]:
    """Return a state as the JSON object that the page shows."""
    draft, said = seen.draft, load_catalogue(seen.draft.spec.options.language)
    now, planned = margins(seen.plan, draft.level), seen.plan if seen.ready else None
    before = {} if seen.kept is None else margins(seen.kept.plan, seen.kept.draft.level)
    statistics: list[Any] = []
    if seen.plan is not None and seen.plan.promise is not None:
        statistics = [
            *zip(
                statistic_errors(seen.plan),
                mean_target_statuses(seen.plan, draft.level),
                strict=True,
            )
        ]
    times = (
        interval_multiplier(seen.plan.measured().noise, draft.level)
        if seen.plan is not None and statistics
        else 0.0
    )
    rows = []
    for number, (row, setting) in enumerate(zip(draft.rows, draft.settings, strict=True)):
        price, promised = (
            seen.prices.get(number),
            _promised(row, statistics, times, said) if setting.on else {},
        )
        rows.append({**_row_texts(row, setting, now, before, price, said), **promised})
    return {
        "version": seen.version,
        "busy": bool(seen.doing),
        "lead": said.say("st_lead", percent=said.format_percent(draft.level)),
        "status": _status(seen, said),
        "error": said.translate(seen.error) if seen.error == _ENDED else seen.error,
        "size": draft.size,
        "delta": draft.delta,
        "objective": draft.objective,
        "level": draft.level,
        "periods": draft.periods,
        "horizon": draft.horizon,
        "facts": _facts(draft, seen.plan, said),
        "kept": None if seen.kept is None else _facts(*seen.kept, said),
        "warnings": [
            *spec_warnings(draft.spec, said),
            *(plan_warnings(draft.spec, planned, said) if planned else ()),
        ],
        "ready": seen.ready,
        "rows": rows,
    }


def _status(seen: Seen, said: Catalogue) -> str:
    trying = " " + said.say("st_trying", strategy=seen.trying) if seen.trying else ""
    if seen.doing == "pricing":
        return said.say("st_pricing")
    if seen.plan is None or not seen.ready:
        known = "" if seen.plan is None else said.say("st_before_now")
        return f"{known} {said.say('st_planning') + trying if seen.doing else said.say('st_stopped')}".strip()
    return said.say(
        "st_aware" if seen.plan.promise is None else "st_ready", strategy=seen.plan.strategy
    )


def _facts(draft: Draft, plan: Plan | None, said: Catalogue) -> list[tuple[str, str]]:
    spec = draft.spec
    privacy = stated_privacy(spec.privacy) or (None if plan is None else plan.privacy)
    answers, tables = (
        said.say_count("answers", spec.workload.rows),
        said.say_count("tables", len(spec.workload.products)),
    )
    ratio = None if plan is None else error_over_bound(plan)
    return [
        *([] if privacy is None else [(said.say("budget"), format_budget(privacy, said))]),
        (said.say("st_asked"), f"{answers}, {tables}"),
        *(
            []
            if ratio is None
            else [
                (
                    said.say("error_ratio"),
                    said.say("error_ratio_value", ratio=said.localize(f"{ratio:.2f}")),
                )
            ]
        ),
        (said.say("st_objective"), said.say(f"st_{draft.objective}")),
        *_of_periods(draft, plan, said),
        *(
            (said.say("st_of_values"), sentence)
            for sentence in list_sum_contributions(spec.workload, said)
        ),
        *(
            []
            if privacy is None
            else [(said.say("h_protects"), describe_guessing_chance(privacy, said))]
        ),
    ]


def _of_periods(draft: Draft, plan: Plan | None, said: Catalogue) -> Iterator[tuple[str, str]]:
    """Yield the facts about a series: its length, the margins of answers that end in some of its periods, and the error of all answers."""
    if draft.dates is None:
        return
    yield said.say("st_periods"), draft.horizon
    errors = [] if plan is None else [*period_errors(plan).items()]
    if plan is None or plan.promise is None or not errors:
        return
    times = interval_multiplier(plan.measured().noise, draft.level)
    for period in sorted({0, (len(errors) - 1) // 2, len(errors) - 1}):
        label, row = errors[period]
        known = [
            (product.name, times * error)
            for product, error in zip(plan.workload, row, strict=True)
            if error is not None
        ]
        yield (
            said.say("st_ending", period=label),
            "; ".join(f"{name} ± {said.format_error(margin)}" for name, margin in known),
        )
    total, least = (
        math.sqrt(squares / plan.workload.rows)
        for squares in (plan.promise.total_squared_error, plan.promise.lower_bound)
    )
    yield (
        said.say("st_all_periods"),
        said.say("st_total_least", total=said.format_error(total), least=said.format_error(least)),
    )


def _row_texts(
    row: Row,
    setting: Setting,
    now: Mapping[Question, Margin],
    before: Mapping[Question, Margin],
    price: tuple[float, float] | None,
    said: Catalogue,
) -> dict[str, Any]:
    """Return the settings of a row of the page, and a text for each of its columns."""
    known = [now[question] for question in row.questions if question in now] if setting.on else []
    kept = [before[question] for question in row.questions if question in before]
    ratio = known[0].typical / kept[0].typical if known and kept else None
    targets = [margin.target for margin in known if margin.target is not None]
    several = {
        "typical": [said.format_error(margin.typical) for margin in known],
        "largest": [
            ("≤ " if margin.is_bound else "") + said.format_error(margin.largest)
            for margin in known
        ],
        "share": [
            said.format_percent(margin.share, 2) for margin in known if margin.share is not None
        ],
        "verdict": [
            said.say("st_kept")
            if target.kept
            else said.say("st_missed", error=said.format_error(target.error))
            for target in targets
        ],
        "before": [said.format_error(margin.typical) for margin in kept],
    }
    columns = {name: " / ".join(dict.fromkeys(cells)) for name, cells in several.items()}
    alone, saved = (said.format_percent(share, 2) for share in price or (0.0, 0.0))
    return {
        "set": [setting.on, setting.weight, setting.target, setting.most, setting.size_of],
        **columns,
        "typical": columns["typical"] or said.say("st_unknown" if setting.on else "st_off"),
        "missed": not all(target.kept for target in targets),
        "price": "" if price is None else said.say("st_price", alone=alone, saved=saved),
        "change": ""
        if ratio is None
        else f"{'+' if ratio > 1 else ''}{said.format_percent(round(ratio - 1, 3) + 0.0, 3)}",
    }


def _promised(row: Row, statistics: list[Any], times: float, said: Catalogue) -> dict[str, Any]:
    """Return the verdict on a mean, quantiles or a distribution function, which says the promised margin; nothing for tables."""
    if row.statistic is None:
        return {}
    asked = replace(row.statistic, size=None, target=None)
    for error, target in statistics:
        if replace(error.statistic, size=None, target=None) == asked:
            if error.std_error is None:
                return {"verdict": said.say("st_needs_size")}
            margin = times * error.std_error
            if not asked.form.of_measure:
                return {
                    "verdict": said.say("st_margin_of_share", margin=said.format_percent(margin, 2))
                }
            margin = target.error if target is not None and target.kind == "margin" else margin
            words = said.say("st_margin_of_mean", margin=said.format_error(margin), of=asked.of)
            return {"verdict": words, "missed": target is not None and not target.kept}
    return {}


def planning_page(path: Path) -> Page:
    """Return the page for one spec."""
    planning = Planning(path, read_spec_text(path))
    said = load_catalogue(planning.seen.draft.spec.options.language)

    def page() -> str:
        draft = planning.seen.draft
        targets = [
            (name, said.say(f"st_{'share' if name == 'relative' else name}")) for name in TARGETS
        ]
        return shown(
            "planning.html",
            t=said,
            name=path.name,
            lead=view(planning.seen)["lead"],
            rows=[
                (row.name(said), said.format_value(sum(product.rows for product in row.products)))
                for row in draft.rows
            ],
            of=draft.of,
            delta=bool(draft.delta),
            horizon=min(4 * draft.periods, MOST_PERIODS),
            levels=[
                (level, said.format_percent(level)) for level in sorted({*_LEVELS, draft.level})
            ],
            objectives=[(name, said.say(f"st_{name}")) for name in OBJECTIVES],
            targets=[("", said.say("st_none")), *targets],
        )

    return Page(
        routes=[
            get("/", page),
            *assets("planning.js"),
            get("/view", lambda: view(planning.seen), JSONResponse),
            get("/spec", lambda: spec_text(planning.seen.draft), PlainTextResponse),
            *(action(f"/{name}", partial(planning.act, name), said) for name in _ACTIONS),
        ],
        begin=planning.begin,
        close=planning.background.stop,
    )
