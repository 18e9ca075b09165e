"""What a page that plans shows, as texts: a pure function of what is seen."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leastnoise._accuracy import interval_multiplier, statistic_errors
from leastnoise._plan import Plan
from leastnoise._release import Texts, bet_words, budget_words, goodness, texts
from leastnoise._session import Price, plan_warnings, reached_by_means, spec_warnings, stated
from leastnoise._studio._draft import Draft, Question, Row, Setting
from leastnoise._studio._margins import Margin, margins
from leastnoise._studio._planning import Seen
from leastnoise._workload import Statistic


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
        "warnings": _warnings(draft, seen.plan if seen.ready else None),
        "ready": seen.ready,
        "rows": [
            {**_row(row, setting, now, before, seen.prices.get(place), said), **_promised(row, setting, seen.plan, draft.level, said)}
            for place, (row, setting) in each
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
    return facts if privacy is None else [*facts, (said.say("h_protects"), bet_words(privacy, said))]


def _warnings(draft: Draft, plan: Plan | None) -> list[str]:
    spec = draft.spec
    late = () if plan is None else plan_warnings(spec, plan)
    return [*spec_warnings(spec), *late]


def _row(
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
    return {
        "set": [setting.on, setting.weight, setting.target, setting.most, setting.size_of],
        "typical": _joined([said.error(one.typical) for one in known]) or said.say("st_unknown" if setting.on else "st_off"),
        "largest": _joined([("≤ " if one.is_bound else "") + said.error(one.largest) for one in known]),
        "share": _joined([said.percent(one.share, 2) for one in known if one.share is not None]),
        "verdict": _joined([_verdict(one, said) for one in known if one.target is not None]),
        "missed": any(one.target is not None and not one.target.kept for one in known),
        "price": "" if price is None else said.say("st_price", alone=said.percent(price.alone, 2), saved=said.percent(price.saved, 2)),
        "before": _joined([said.error(one.typical) for one in kept]),
        "change": "" if ratio is None else f"{'+' if ratio > 1 else ''}{said.percent(round(ratio - 1, 3) + 0.0, 3)}",
    }


def _promised(row: Row, setting: Setting, plan: Plan | None, level: float, said: Texts) -> dict[str, Any]:
    """What is promised for means, quantiles or a distribution function, in the place of the verdict on a target; nothing for tables."""
    if row.statistic is None or not setting.on or plan is None or plan.promise is None:
        return {}
    asked = row.statistic
    known = zip(statistic_errors(plan), reached_by_means(plan, level), strict=True)
    found, target = next(((one, target) for one, target in known if _bare(one.statistic) == _bare(asked)), (None, None))
    if found is None:
        return {}
    if found.std_error is None:
        return {"verdict": said.say("st_needs_size")}
    margin = interval_multiplier(plan.measured().noise, level) * found.std_error
    if asked.form.of_measure:
        own = target.error if target is not None and target.kind == "margin" else margin
        return {"verdict": said.say("st_margin_of_mean", margin=said.error(own)), "missed": target is not None and not target.kept}
    return {"verdict": said.say("st_margin_of_share", margin=said.percent(margin, 2))}


def _bare(asked: Statistic) -> Statistic:
    return replace(asked, size=None, target=None)


def _verdict(margin: Margin, said: Texts) -> str:
    if margin.target is None or margin.target.kept:
        return said.say("st_kept")
    return said.say("st_missed", error=said.error(margin.target.error))


def _joined(found: list[str]) -> str:
    return " / ".join(dict.fromkeys(found))
