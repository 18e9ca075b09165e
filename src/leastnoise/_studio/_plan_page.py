"""The page that plans: its routes, and what it shows, as texts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import BaseRoute

from leastnoise._accuracy import interval_multiplier, statistic_errors
from leastnoise._check import InputError
from leastnoise._plan import Plan
from leastnoise._planning import Price, reached_by_means, stated
from leastnoise._release import Texts, bet_words, budget_words, goodness, sums_words, texts
from leastnoise._spec import plan_warnings, read_spec_text, spec_warnings
from leastnoise._studio._draft import OBJECTIVES, TARGETS, Draft, Question, Row, Setting, spec_text
from leastnoise._studio._pages import Page, action, asset, get, shown
from leastnoise._studio._planning import Margin, Planning, Seen, margins

_LEVELS = (0.8, 0.9, 0.95, 0.99, 0.999)


def view(seen: Seen) -> dict[str, Any]:
    """The page as a JSON object."""
    draft, said = seen.draft, texts(seen.draft.spec.options.language)
    now = {} if seen.plan is None else margins(seen.plan, draft.level)
    before = None if seen.kept is None else margins(seen.kept.plan, seen.kept.draft.level)
    each = enumerate(zip(draft.rows, draft.settings, strict=True))
    return {
        "version": seen.version,
        "busy": bool(seen.doing),
        "lead": said.say("st_lead", percent=said.percent(draft.level)),
        "status": _status(seen, said),
        "error": seen.error,
        "size": draft.size,
        "delta": draft.delta,
        "objective": draft.objective,
        "level": draft.level,
        "facts": _facts(draft, seen.plan, said),
        "kept": None if seen.kept is None else _facts(seen.kept.draft, seen.kept.plan, said),
        "warnings": [*spec_warnings(draft.spec), *(plan_warnings(draft.spec, seen.plan) if seen.ready and seen.plan else ())],
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
    facts += [(said.say("st_of_values"), sentence) for sentence in sums_words(spec.workload, said)]
    return facts if privacy is None else [*facts, (said.say("h_protects"), bet_words(privacy, said))]


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

        return action(path, done)

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
        "rows": [(row.name, said.plain(row.queries)) for row in draft.rows],
        "of": draft.of,
        "delta": bool(draft.delta),
        "levels": [(level, said.percent(level)) for level in levels],
        "objectives": [(name, said.say(f"st_{name}")) for name in OBJECTIVES],
        "targets": [("", said.say("st_none")), *((name, said.say(f"st_{'share' if name == 'relative' else name}")) for name in TARGETS)],
    }
