"""The page that plans a draft of a spec, and compares two plans.

A background process computes the plans.
"""

import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, PlainTextResponse

from leastnoise._domain import Domain
from leastnoise._error import StatisticError, measured_multiplier, statistic_errors
from leastnoise._facts import list_facts
from leastnoise._pages import describe_draft, is_weighted
from leastnoise._plan import AdaptivePlan, Plan
from leastnoise._planning import (
    TargetStatus,
    attributes_of_public_counts,
    period_errors,
    plan_for_workload,
    stated_privacy,
    statistic_target_statuses,
    target_statuses,
)
from leastnoise._spec import Spec, plan_warnings, read_spec_text, read_toml, spec_warnings
from leastnoise._studio._pages import Page, action_route, asset_routes, page_route, render_page
from leastnoise._studio._publication_fields import PublicationField
from leastnoise._studio._studio_draft import (
    MOST_PERIODS,
    OBJECTIVES,
    TARGETS,
    PageRow,
    RowSetting,
    SpecDraft,
    TableKey,
    change_draft,
    draft_from_text,
    format_spec,
    save_spec,
)
from leastnoise._texts import (
    LANGUAGES,
    Catalogue,
    name_measure,
    name_rows,
    name_strategy,
    name_summed,
    table_title,
    unit_of_sums,
)
from leastnoise._trusted.check import InputError, one_of, whole
from leastnoise._workload import Product, Workload, pair_names, term_names, with_hidden_cells

_ENDED = "Planning ended without a plan."
_COMMAND = (
    "-P",
    "-c",
    "from leastnoise._studio._studio_draft import plan_for_parent; plan_for_parent()",
)
_SECONDS_WITHOUT_CHANGE = 0.5  # seconds without a change before planning begins
_MOST_UNDONE = 200  # changes; each draft takes some kilobytes
_CONFIDENCE_LEVELS = (0.8, 0.9, 0.95, 0.99, 0.999)


class BackgroundProcess:
    """Runs one request at a time in another process; a new request ends the last.

    Args:
        receive: a function that is called with the number of the request and each message of its
            process. The message is None when the process has ended.
    """

    def __init__(self, receive: Callable[[int, Mapping[str, Any] | None], None]) -> None:
        self._receive = receive
        self._process: subprocess.Popen[str] | None = None
        self._waiting: threading.Timer | None = None
        self._lock = threading.Lock()

    def start(
        self, number: int, request: Callable[[], Mapping[str, Any]], delay: float = 0.0
    ) -> None:
        """End the running request, and start a new one after ``delay`` seconds."""
        self.stop()
        with self._lock:
            self._waiting = threading.Timer(delay, self._run, (number, request))
            self._waiting.daemon = True
            self._waiting.start()

    def stop(self) -> None:
        """End the running request."""
        with self._lock:
            if self._waiting is not None:
                self._waiting.cancel()
            if self._process is not None:
                self._process.kill()
            self._waiting = self._process = None

    def _run(self, number: int, request: Callable[[], Mapping[str, Any]]) -> None:
        """Run a request in another process, and pass on the messages that it sends."""
        with self._lock:
            if self._waiting is not threading.current_thread():
                return  # stopped before it could start
            process = subprocess.Popen(  # noqa: S603 - this Python and a module of this package
                [sys.executable, *_COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
            self._process = process
        # If the process ends before it reads its request, writing to the pipe and closing it both
        # fail.
        with suppress(OSError, ValueError), process:
            process.stdin.write(json.dumps(request()) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            for line in process.stdout or ():
                self._receive(number, json.loads(line))
        self._receive(number, None)


class TableMargin(NamedTuple):
    """The expected margins of one table, in rows or in the unit of its measure.

    Attributes:
        typical: the typical margin of an answer.
        largest: the largest margin of an answer, or an upper bound.
        is_bound: whether ``largest`` is only an upper bound.
        share: the typical margin divided by the public size of the table; None without a size.
        target: whether the table meets its target; None without a target.
        product: the queries of the table.
    """

    typical: float
    largest: float
    is_bound: bool
    share: float | None
    target: TargetStatus | None
    product: Product


def rescale_plan(plan: Plan, spec: Spec) -> Plan | None:
    """Return a plan with the same strategy for a changed spec, or None.

    The plan has the budget of the spec, and those tables of the spec that the measured queries
    answer. Its errors are exact: they are computed again for this budget. The result is None if
    there is no such plan.
    """
    if isinstance(plan, AdaptivePlan):
        return None
    privacy = stated_privacy(spec.planned_privacy) or plan.privacy
    if type(privacy.budget) is not type(plan.privacy.budget):
        return None
    planned_keys = {product.table_key for product in plan.workload}
    for products in (
        spec.workload.products,
        tuple(product for product in spec.workload if product.table_key in planned_keys),
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
        except InputError:
            continue  # the measured queries do not determine a table, or the budget is too small
    return None


def table_margins(plan: Plan | None, level: float) -> dict[TableKey, TableMargin]:
    """Return the margins of each table of a plan, by table key.

    The result is empty if the errors depend on the data.
    """
    if plan is None or plan.data_independent_error is None:
        return {}
    measured = plan.measured()
    multiplier = measured_multiplier(measured, level, plan.workload)
    half_step = 0.5 / measured.grid
    margins = {}
    for product, table, target in zip(
        plan.workload, plan.data_independent_error.tables, target_statuses(plan, level), strict=True
    ):
        typical, largest = (
            (multiplier * error + half_step) * product.unit
            for error in (table.rmse, table.largest_std)
        )
        if product.size is None:
            share = None
        else:
            share = typical / float(product.size)
        margins[product.table_key] = TableMargin(
            typical, largest, table.largest_is_bound, share, target, product
        )
    return margins


class ComparedPlan(NamedTuple):
    """The reference plan for comparisons, and its draft."""

    draft: SpecDraft
    plan: Plan


@dataclass(frozen=True, slots=True)
class PlanningState:
    """The state that the planning page shows.

    Attributes:
        number: the number of requests to the background process.
        draft: the current draft of the spec.
        plan: the plan of the draft, or a rescaled plan until the draft is planned; None if there is
            neither.
        ready: whether ``plan`` was computed for exactly this draft.
        doing: the task of the background process, "planning" or "pricing"; empty if the process has
            no task.
        trying: the strategy that is being planned.
        error: the reason why the last request failed, or an empty text if it did not fail.
        prices: two shares of the budget for each row: the share that the row needs if it is planned
            separately, and the share that is saved if it is left out.
        reference: the plan with which the page compares; None if there is none.
        version: the number of changes of the draft.
        past: earlier drafts; undo restores the last one.
        future: drafts that were undone; redo restores the last one.
        drag: the number of the slider movement that made the last change; 0 if no movement made it.
    """

    number: int
    draft: SpecDraft
    plan: Plan | None = None
    ready: bool = False
    doing: str = ""
    trying: str = ""
    error: str = ""
    prices: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    reference: ComparedPlan | None = None
    version: int = 0
    past: tuple[SpecDraft, ...] = ()
    future: tuple[SpecDraft, ...] = ()
    drag: int = 0

    @property
    def plan_with_known_error(self) -> Plan | None:
        """The plan if it is for this draft and its error is known, otherwise None."""
        if self.ready and self.plan is not None and self.plan.data_independent_error is not None:
            return self.plan
        return None


class Planning:
    """The session of one user who plans one spec.

    ``state`` is the state that the page shows. Methods are called from several threads.
    """

    def __init__(self, path: Path, text: str, language: str = "") -> None:
        self.path = path
        draft = draft_from_text(text, path.parent, str(path))
        self.state = PlanningState(0, replace(draft, language=language))
        self._saved = text
        self._lock = threading.RLock()
        # The plan that is rescaled for a changed draft until the draft is planned.
        self._base: Plan | None = None
        self.background = BackgroundProcess(self._update)

    def begin(self) -> None:
        """Start to plan the current draft."""
        with self._lock:
            self._start_planning(self.state.draft)

    @property
    def catalogue(self) -> Catalogue:
        """The texts of the page's language."""
        return self.state.draft.catalogue

    def set_language(self, language: str) -> None:
        """Switch the language of the page; the spec does not change."""
        with self._lock:
            self.state = replace(self.state, draft=replace(self.state.draft, language=language))

    def act(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an action of the page, such as "change" or "undo".

        Returns:
            The new state and a message as JSON.
        """
        with self._lock:
            if arguments.get("version") != self.state.version:
                raise InputError(
                    "These settings were changed on another page of this studio, and nothing was "
                    "done. This page now shows the new settings; check them, and try again."
                )
            message = _ACTIONS[name](self, arguments)
            return {**state_json(self.state), "done": message}

    def change(self, arguments: Mapping[str, Any]) -> None:
        """Change the draft with `change_draft`, and start to plan it.

        All changes of one movement of a slider are undone by one undo.
        """
        rows = arguments.get("rows", [])
        changes = arguments.get("changes")
        if not isinstance(rows, list) or not isinstance(changes, dict):
            raise InputError("A change must have 'changes', an object, and 'rows', a list.")
        drag = whole("the movement of a slider", arguments.get("drag", 0), 0, 10**9)
        state = self.state
        past = state.past
        if not drag or drag != state.drag:
            past = (*past, state.draft)[-_MOST_UNDONE:]
        self._start_planning(change_draft(state.draft, changes, rows), past, drag=drag)

    def undo(self, _: Mapping[str, Any]) -> None:
        """Restore the draft before the last change."""
        state = self.state
        if not state.past:
            raise InputError("There is no change to undo.")
        self._start_planning(state.past[-1], state.past[:-1], (*state.future, state.draft))

    def redo(self, _: Mapping[str, Any]) -> None:
        """Restore the draft before the last undo."""
        state = self.state
        if not state.future:
            raise InputError("There is no change to redo.")
        self._start_planning(state.future[-1], (*state.past, state.draft), state.future[:-1])

    def price(self, arguments: Mapping[str, Any]) -> None:
        """Start to compute the share of the budget that each of some rows needs."""
        rows = arguments.get("rows")
        state = self.state
        if not isinstance(rows, list) or not all(isinstance(row, int) for row in rows):
            raise InputError("A request for prices must have 'rows', a list of row numbers.")
        if state.plan_with_known_error is None:
            raise InputError(
                "The price of a table can be computed only from a plan whose error is known. Wait "
                "until the plan for these tables is finished."
            )
        product_numbers = {
            product.table_key: number
            for number, product in enumerate(state.plan_with_known_error.workload)
        }
        unpriced = [
            row
            for row in rows
            if 0 <= row < len(state.draft.rows)
            and state.draft.settings[row].on
            and row not in state.prices
        ]
        priced_products = [
            (row, [product_numbers[key] for key in state.draft.rows[row].table_keys])
            for row in unpriced
        ]
        request = {"plan": state.plan_with_known_error.to_json(), "price": priced_products}
        self.state = replace(state, number=state.number + 1, doing="pricing", trying="", error="")
        self.background.start(
            self.state.number, lambda: {**_planning_request(state.draft), **request}
        )

    def keep(self, _: Mapping[str, Any] | None = None) -> None:
        """Make the current plan the reference.

        If there is no plan to keep, the reference is cleared.
        """
        plan = self.state.plan_with_known_error
        self.state = replace(
            self.state, reference=None if plan is None else ComparedPlan(self.state.draft, plan)
        )

    def swap(self, _: Mapping[str, Any]) -> None:
        """Exchange the current draft and plan with the reference."""
        reference = self.state.reference
        state = self.state
        if reference is None:
            raise InputError("There is no earlier plan to return to.")
        self.background.stop()
        self.keep()
        self._base = reference.plan
        new_reference = self.state.reference or reference
        self.state = PlanningState(
            state.number + 1,
            replace(reference.draft, language=state.draft.language),
            reference.plan,
            ready=True,
            reference=new_reference,
            version=state.version + 1,
            past=(*state.past, state.draft),
        )

    def save(self, arguments: Mapping[str, Any]) -> str:
        """Save the spec; return a message for the user."""
        text = format_spec(self.state.draft)
        path = save_spec(self.path, self._saved, str(arguments.get("name", "")), text)
        if path.name == self.path.name:
            self._saved = text
        return self.state.draft.catalogue.say("st_saved", file=path.name)

    def _start_planning(
        self,
        draft: SpecDraft,
        past: tuple[SpecDraft, ...] = (),
        future: tuple[SpecDraft, ...] = (),
        drag: int = 0,
    ) -> None:
        """Make a draft the current one, and plan it in the background process."""
        draft = replace(draft, language=self.state.draft.language)
        if self._base is None:
            plan = None
        else:
            plan = rescale_plan(self._base, draft.spec)
        previous = self.state
        self.state = PlanningState(
            previous.number + 1,
            draft,
            plan,
            doing="planning",
            reference=previous.reference,
            version=previous.version + 1,
            past=past,
            future=future,
            drag=drag,
        )
        self.background.start(
            self.state.number,
            lambda: _planning_request(draft),
            0.0 if self._base is None else _SECONDS_WITHOUT_CHANGE,
        )

    def _update(self, number: int, message: Mapping[str, Any] | None) -> None:
        """Update the state with a message of the background process."""
        with self._lock:
            state = self.state
            if number != state.number:
                return
            if message is None:
                is_failed = state.doing == "planning" and not state.ready and not state.error
                self.state = replace(
                    state, doing="", trying="", error=_ENDED if is_failed else state.error
                )
            elif "price" in message:
                self.state = replace(
                    state,
                    prices={**state.prices, message["price"]: (message["alone"], message["saved"])},
                )
            elif "plan" in message:
                self._base = Plan.from_json(message["plan"])
                self.state = replace(state, plan=self._base, ready=True)
            else:
                # The name of the strategy that is tried, or an error.
                self.state = replace(state, **message)


_ACTIONS: Mapping[str, Callable[[Planning, Mapping[str, Any]], str | None]] = {
    "change": Planning.change,
    "price": Planning.price,
    "keep": Planning.keep,
    "swap": Planning.swap,
    "undo": Planning.undo,
    "redo": Planning.redo,
    "save": Planning.save,
}


def _planning_request(draft: SpecDraft) -> dict[str, Any]:
    """Return the request to the background process that plans a draft."""
    return {
        "text": format_spec(draft),
        "folder": str(draft.folder),
        "language": draft.catalogue.language,
    }


def state_json(state: PlanningState) -> dict[str, Any]:
    """Return a state as the JSON object that the page displays."""
    draft = state.draft
    catalogue = draft.catalogue
    warnings = [*spec_warnings(draft.spec, catalogue)]
    if draft.spec.options.survey or is_weighted(draft.spec.workload):
        warnings.append(catalogue.say("st_noise_only"))
    if state.plan is not None and state.ready:
        warnings += plan_warnings(draft.spec, state.plan, catalogue)
    error = state.error
    if error == _ENDED:
        error = catalogue.translate(error)
    reference_facts = None
    if state.reference is not None:
        reference_facts = _draft_facts(*state.reference, catalogue)
    return {
        "version": state.version,
        "busy": bool(state.doing),
        "lead": catalogue.say("st_lead", percent=catalogue.format_percent(draft.level)),
        "status": _describe_status(state, catalogue),
        "error": error,
        "size": draft.size,
        "delta": draft.delta,
        "objective": draft.objective,
        "level": draft.level,
        "periods": draft.periods,
        "horizon": draft.horizon,
        "facts": _draft_facts(draft, state.plan, catalogue),
        "kept": reference_facts,
        "undo": bool(state.past),
        "redo": bool(state.future),
        "warnings": warnings,
        "ready": state.ready,
        "rows": _rows_json(state, catalogue),
        "fields": draft.field_texts,
    }


def _rows_json(state: PlanningState, catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return the displayed texts of all rows of the page."""
    draft = state.draft
    plan = state.plan
    reference = state.reference
    margins = table_margins(plan, draft.level)
    reference_margins: dict[TableKey, TableMargin] = {}
    if reference is not None:
        reference_margins = table_margins(reference.plan, reference.draft.level)
    statistics: list[Any] = []
    multiplier = 0.0
    if plan is not None and plan.data_independent_error is not None:
        targets = statistic_target_statuses(plan, draft.level)
        statistics = [*zip(statistic_errors(plan), targets, strict=True)]
        multiplier = measured_multiplier(plan.measured(), draft.level, plan.workload)
    rows = []
    for number, (row, setting) in enumerate(zip(draft.rows, draft.settings, strict=True)):
        price = state.prices.get(number)
        row_json = _row_json(row, setting, margins, reference_margins, price, catalogue)
        if setting.on:
            row_json |= _statistic_row_json(row, statistics, multiplier, catalogue)
        rows.append(row_json)
    return rows


def _describe_status(state: PlanningState, catalogue: Catalogue) -> str:
    """Describe the progress of planning in one line."""
    if state.doing == "pricing":
        return catalogue.say("st_pricing")
    if state.plan is not None and state.ready:
        if state.plan.data_independent_error is None:
            key = "st_data_dependent"
        else:
            key = "st_ready"
        return catalogue.say(key, strategy=name_strategy(state.plan.strategy, catalogue))
    sentences = []
    if state.plan is not None:
        sentences.append(catalogue.say("st_before_now"))
    sentences.append(catalogue.say("st_planning" if state.doing else "st_stopped"))
    if state.doing and state.trying:
        sentences.append(
            catalogue.say("st_trying", strategy=name_strategy(state.trying, catalogue))
        )
    return " ".join(sentences)


def _draft_facts(
    draft: SpecDraft, plan: Plan | None, catalogue: Catalogue
) -> list[tuple[str, str]]:
    """Return labels and texts of the facts about a draft and its plan."""
    spec = draft.spec
    privacy = stated_privacy(spec.privacy) or (None if plan is None else plan.privacy)
    # The budget of a spec with searches is larger than the budget of its plan.
    cost = None
    if plan is not None and not spec.all_searches:
        cost = plan.cost()
    sections = describe_draft(spec.workload, privacy, plan, catalogue, cost)
    facts = [
        (fact.label, fact.text) for fact in list_facts(sections, "budget", "size", "error_ratio")
    ]
    facts.append((catalogue.say("st_objective"), catalogue.say(f"st_{draft.objective}")))
    facts += _period_facts(draft, plan, catalogue)
    facts += [(fact.label, fact.text) for fact in list_facts(sections, "values", "risk")]
    return facts


def _period_facts(
    draft: SpecDraft, plan: Plan | None, catalogue: Catalogue
) -> Iterator[tuple[str, str]]:
    """Yield labels and texts of the facts about a series.

    The facts are the length of the series, the margins of the answers that end in some of its
    periods, and the error of all answers.
    """
    if draft.dates is None:
        return
    yield catalogue.say("st_periods"), draft.horizon
    if plan is None:
        errors = []
    else:
        errors = [*period_errors(plan).items()]
    if plan is None or plan.data_independent_error is None or not errors:
        return
    multiplier = measured_multiplier(plan.measured(), draft.level, plan.workload)
    for period in sorted({0, (len(errors) - 1) // 2, len(errors) - 1}):
        label, row = errors[period]
        margins = [
            (table_title(product, catalogue), multiplier * error)
            for product, error in zip(plan.workload, row, strict=True)
            if error is not None
        ]
        yield (
            catalogue.say("st_ending", period=label),
            "; ".join(f"{name} ± {catalogue.format_error(margin)}" for name, margin in margins),
        )
    total, least = (
        math.sqrt(squares / plan.workload.rows)
        for squares in (
            plan.data_independent_error.total_squared_error,
            plan.data_independent_error.lower_bound,
        )
    )
    yield (
        catalogue.say("st_all_periods"),
        catalogue.say(
            "st_total_least",
            total=catalogue.format_error(total),
            least=catalogue.format_error(least),
        ),
    )


def _row_json(
    row: PageRow,
    setting: RowSetting,
    margins: Mapping[TableKey, TableMargin],
    reference_margins: Mapping[TableKey, TableMargin],
    price: tuple[float, float] | None,
    catalogue: Catalogue,
) -> dict[str, Any]:
    """Return the settings of a row of the page, and a text for each column."""
    row_margins = []
    if setting.on:
        row_margins = [margins[key] for key in row.table_keys if key in margins]
    old_margins = [reference_margins[key] for key in row.table_keys if key in reference_margins]
    targets = [margin.target for margin in row_margins if margin.target is not None]
    columns = {
        "typical": _join_margins(row_margins, _format_typical_error, catalogue),
        "largest": _join_margins(row_margins, _format_largest_error, catalogue),
        "share": _join_texts(
            catalogue.format_percent(margin.share, 2)
            for margin in row_margins
            if margin.share is not None
        ),
        "verdict": _join_texts(_target_verdict(target, catalogue) for target in targets),
        "before": _join_margins(old_margins, _format_typical_error, catalogue),
    }
    if not columns["typical"]:
        columns["typical"] = catalogue.say("st_unknown" if setting.on else "st_off")
    price_text = ""
    if price is not None:
        alone, saved = (catalogue.format_percent(share, 2) for share in price)
        price_text = catalogue.say("st_price", alone=alone, saved=saved)
    change = ""
    if row_margins and old_margins:
        change = _format_change(row_margins[0].typical / old_margins[0].typical, catalogue)
    return {
        "set": [setting.on, setting.weight, setting.target, setting.most, setting.size_of],
        **columns,
        "missed": not all(target.is_met for target in targets),
        "price": price_text,
        "change": change,
    }


def _join_margins(
    margins: Sequence[TableMargin],
    format_margin: Callable[[TableMargin, Catalogue], str],
    catalogue: Catalogue,
) -> str:
    """Join the margins of a row's tables; name the unit of each if there are several.

    A mean, for example, has a margin in rows and one in the unit of its measure.
    """
    texts = []
    for margin in margins:
        text = format_margin(margin, catalogue)
        if len(margins) > 1:
            text = f"{text} {_name_margin_unit(margin.product, catalogue)}"
        texts.append(text)
    return _join_texts(texts)


def _name_margin_unit(product: Product, catalogue: Catalogue) -> str:
    """Return the unit of a table's margins: rows, units, or the unit of a measure."""
    if product.of_values:
        measure = name_summed(product.domain, str(product.measure), catalogue)
        return unit_of_sums(product, catalogue) or measure
    if product.of_units:
        return catalogue.names.units or catalogue.say("name_units")
    return name_rows(catalogue)


def _format_typical_error(margin: TableMargin, catalogue: Catalogue) -> str:
    """Format the typical margin of a table."""
    return catalogue.format_error(margin.typical)


def _format_largest_error(margin: TableMargin, catalogue: Catalogue) -> str:
    """Format the largest margin of a table, or the known bound on it."""
    error = catalogue.format_error(margin.largest)
    if margin.is_bound:
        return f"≤ {error}"
    return error


def _join_texts(cells: Iterable[str]) -> str:
    """Join the texts of a row's tables with slashes; repeated texts occur once."""
    return " / ".join(dict.fromkeys(cells))


def _target_verdict(target: TargetStatus, catalogue: Catalogue) -> str:
    """Return a text that states whether a target is met."""
    if target.is_met:
        return catalogue.say("st_kept")
    if math.isinf(target.error):
        return catalogue.say("st_no_bound")
    return catalogue.say("st_missed", error=catalogue.format_error(target.error))


def _format_change(ratio: float, catalogue: Catalogue) -> str:
    """Format the ratio of two margins as a change in percent, with its sign."""
    sign = "+" if ratio > 1 else ""
    change = round(ratio - 1, 3) + 0.0  # no negative zero
    return f"{sign}{catalogue.format_percent(change, 3)}"


def _statistic_row_json(
    row: PageRow, statistics: list[Any], multiplier: float, catalogue: Catalogue
) -> dict[str, Any]:
    """Return the "verdict" column of a statistic: its margin and target.

    The result is empty for tables.
    """
    if row.statistic is None:
        return {}
    statistic = replace(row.statistic, size=None, target=None)
    for error, target in statistics:
        if replace(error.statistic, size=None, target=None) != statistic:
            continue
        if error.std_error is None:
            return {"verdict": catalogue.say("st_needs_size")}
        margin = multiplier * error.std_error
        if not statistic.form.of_measure:
            share = catalogue.format_percent(margin, 2)
            return {"verdict": catalogue.say("st_margin_of_share", margin=share)}
        if target is not None and target.kind == "margin":
            margin = target.error
        is_missed = target is not None and not target.is_met
        if statistic.form.has_scales:
            return {
                "verdict": _scales_verdict(
                    error, target, multiplier, row.products[0].domain, catalogue
                ),
                "missed": is_missed,
            }
        amount = catalogue.format_error(margin)
        of = name_measure(row.products[0].domain, statistic.of, catalogue)
        verdict = catalogue.say("st_margin_of_mean", margin=amount, of=of)
        return {"verdict": verdict, "missed": is_missed}
    return {}


def _scales_verdict(
    error: StatisticError,
    target: TargetStatus | None,
    multiplier: float,
    domain: Domain,
    catalogue: Catalogue,
) -> str:
    """Describe the largest margins of a statistic, and whether its target is met."""
    if error.statistic.form.row_key:
        margins = _parameter_margins(error, multiplier, domain, catalogue)
    elif error.statistic.kind == "r_squared":
        amount = catalogue.format_error(multiplier * (error.std_error or 0.0))
        margins = catalogue.say("st_margin_of_r_squared", margin=amount)
    else:
        amount = catalogue.format_error(multiplier * (error.std_error or 0.0))
        of = name_measure(domain, error.statistic.of, catalogue)
        margins = catalogue.say("st_margin_of_variance", margin=amount, of=of)
    if target is None:
        return margins
    return f"{_target_verdict(target, catalogue)}; {margins}"


def _parameter_margins(
    error: StatisticError, multiplier: float, domain: Domain, catalogue: Catalogue
) -> str:
    """Describe the expected margins of covariances or coefficients."""
    names = [name_measure(domain, name, catalogue) for name in error.statistic.variables]
    if error.statistic.kind == "correlations":
        key = "st_margin_of_covariance"
        names_of_parts = pair_names(names)
    else:
        key = "st_margin_of_coefficient"
        names_of_parts = term_names(names)
    margins = [
        catalogue.say(key, margin=catalogue.format_error(multiplier * std_error), of=name)
        for name, (_, std_error) in zip(names_of_parts, error.parts, strict=True)
    ]
    return "; ".join(margins)


def _render_planning_page(state: PlanningState, name: str, catalogue: Catalogue) -> str:
    """Render the planning page of a spec as HTML."""
    draft = state.draft
    rows = []
    for row in draft.rows:
        answers = sum(product.rows for product in row.products)
        rows.append((row.name(catalogue), catalogue.format_value(answers)))
    levels = sorted({*_CONFIDENCE_LEVELS, draft.level})
    return render_page(
        "planning.html",
        t=catalogue,
        name=name,
        lead=state_json(state)["lead"],
        rows=rows,
        of=draft.parameter,
        delta=bool(draft.delta),
        horizon=min(4 * draft.periods, MOST_PERIODS),
        levels=[(level, catalogue.format_percent(level)) for level in levels],
        objectives=[(objective, catalogue.say(f"st_{objective}")) for objective in OBJECTIVES],
        targets=_list_target_choices(catalogue),
        field_groups=fields_by_group(draft),
    )


def fields_by_group(
    draft: SpecDraft,
) -> list[tuple[str, list[tuple[str, list[PublicationField]]]]]:
    """Return the publication fields by group of fields, then by subject."""
    groups: dict[str, dict[str, list[PublicationField]]] = {}
    for one in draft.fields:
        subject = _name_subject(one.subject, draft.catalogue)
        groups.setdefault(one.group, {}).setdefault(subject, []).append(one)
    return [(group, [*subjects.items()]) for group, subjects in groups.items()]


def _name_subject(subject: str, catalogue: Catalogue) -> str:
    """Return a column or level with its name, such as ``age group (age:group)``."""
    names = catalogue.names
    name = names.attribute(subject).name or names.measure(subject).name or names.level(subject).name
    if name in ("", subject):
        return subject
    return f"{name} ({subject})"


def _list_target_choices(catalogue: Catalogue) -> list[tuple[str, str]]:
    """Return the kinds of targets with their display names, "none" first."""
    choices = [("", catalogue.say("st_none"))]
    for target in TARGETS:
        key = f"st_{target}"
        if target == "relative":
            key = "st_share"
        choices.append((target, catalogue.say(key)))
    return choices


def planning_page(path: Path, language: str = "") -> Page:
    """Return the page that plans a spec.

    Args:
        path: the path of the spec.
        language: the language of the page. If it is empty, the spec's language is used; if the spec
            states none, the browser's language.
    """
    text = read_spec_text(path)
    planning = Planning(path, text, language)
    states_language = language or "language" in read_toml(text).get("output", {})

    def translate(fault: Any) -> str:
        """Return an error message in the language of the page."""
        return planning.catalogue.translate(fault)

    def choose_language(arguments: Mapping[str, Any]) -> dict[str, str]:
        """Switch the page to the requested language; return an empty JSON object."""
        planning.set_language(one_of("the language", arguments.get("language"), LANGUAGES))
        return {}

    def in_language(browser_language: str) -> Page:
        """Return the page, in this language unless the spec states one."""
        if not states_language:
            planning.set_language(browser_language)
        return page

    page = Page(
        routes=[
            page_route(
                "/", lambda: _render_planning_page(planning.state, path.name, planning.catalogue)
            ),
            *asset_routes("planning.js"),
            page_route("/view", lambda: state_json(planning.state), JSONResponse),
            page_route("/spec", lambda: format_spec(planning.state.draft), PlainTextResponse),
            *(
                action_route(f"/{name}", partial(planning.act, name), translate)
                for name in _ACTIONS
            ),
            action_route("/language", choose_language, translate),
        ],
        begin=planning.begin,
        close=planning.background.stop,
        in_language=in_language,
    )
    return page
