"""The report: one page for readers of a release, with every table; nothing on it comes from elsewhere, and no request leaves it."""

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from leastnoise._accuracy import lower_bound
from leastnoise._plan import versions
from leastnoise._release import _words as words
from leastnoise._release._cut import of_words
from leastnoise._release._files import TableEntry
from leastnoise._release._names import table_words
from leastnoise._release._pages import TEMPLATES, filled
from leastnoise._release._release import Release
from leastnoise._release._rounding import exact_rule
from leastnoise._release._texts import Texts, texts
from leastnoise._release._views import views
from leastnoise._workload import Product, Workload

MOST_RULES = 40
MOST_LISTED = 5000
MOST_MAIN = 5
# A table's own bound needs the eigenvalues of a matrix of this size, which should not take longer than the release.
_MOST_CELLS_OF_A_BOUND = 1024
_MOST_BOUNDS = 40
_OBJECTIVES = ("worst", "relative", "least")  # what a plan says that it was chosen for, if it is not the least total


def report(release: Release, entries: Sequence[TableEntry], *, written: datetime | None = None) -> str:
    """The report as one HTML text, in the language of the release."""
    said = texts(release.options.language)
    shown, statistics = views(release, entries, said), len(release.statistics)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    return filled(
        "report.html",
        t=said,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        head=_head(release, entries, said, (written or datetime.now(UTC)).astimezone(UTC)),
        index=_index(release, entries, said),
        statistics=shown[:statistics],
        views=shown[statistics:],
        reading=_reading(release, said),
        spent=_spent(release, said),
        files=_files(release, entries, said),
        use=_use(release, said, (written or datetime.now(UTC)).year),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """The first screen."""

    title: str
    mark: str
    kicker: str
    warning: str
    lead: str
    what: str
    about: str
    protects: str
    exact: list[tuple[str, str]]
    exact_intro: str
    facts: list[tuple[str, str, str]]
    first: list[str]
    notices: list[str]
    written: str


def _head(release: Release, entries: Sequence[TableEntry], said: Texts, when: datetime) -> _Head:
    privacy = release.privacy
    title = _title(release, said)
    answers = said.some("answers", sum(entry.answers for entry in entries))
    about = said.say("about_row")
    if privacy.unit_column is not None:
        about = said.some("about_unit", privacy.max_rows, column=repr(privacy.unit_column))
    month, of, first = f"{when:%Y-%m-%d}", of_words(release, said), words.first_words(release, said)
    return _Head(
        title=title,
        mark=title if release.private else said.say("mark_seeded", title=title),
        kicker=said.say("kicker_private" if release.private else "kicker_seeded"),
        warning="" if release.private else said.say("not_private"),
        lead=said.say("lead", answers=answers),
        what=_what(release, entries, said, answers),
        about=about,
        protects=words.bet_words(privacy, said),
        exact=_exact(release, entries, said),
        exact_intro=said.say("exact_intro", percent=said.percent(release.level)) + (f" {said.say('beyond', of=of)}" if of else ""),
        facts=_facts(release, said),
        first=first,
        notices=[one for one in _notices(release, said) if one not in first],
        written=said.say("written_on", date=month),
    )


def _title(release: Release, said: Texts) -> str:
    asked = {name for product in release.workload for name in product.attributes}
    names = [name for name in release.workload.domain.names if name in asked]
    start = said.say("title_private" if release.private else "title_seeded", tables=said.some("tables", len(release.tables)))
    if not names:
        return start
    shown = names if len(names) <= 5 else [*names[:4], said.say("more_attributes", count=len(names) - 4)]
    return said.say("title_on", start=start, names=said.listed(shown))


def _what(release: Release, entries: Sequence[TableEntry], said: Texts, answers: str) -> str:
    sums = sorted({str(product.measure) for product in release.workload if product.of_values})
    counts = [said.say("counts")] if any(entry.measure is None for entry in entries) else []
    valued = sorted({product.values_of for product in release.workload} - {None}, key=str)
    counts += [said.say("counts_values", names=said.listed([*map(str, valued)]))] if valued else []
    counts += [said.say("counts_units")] if any(product.of_units for product in release.workload) else []
    kinds = said.listed(counts + ([said.say("sums_of", names=said.listed(sums))] if sums else []))
    asked = {name for entry in entries for name in entry.attributes}
    names = [name for name in release.workload.domain.names if name in asked]
    tables = said.some("in_tables", len(entries))
    if not names:
        return said.say("what_nothing", answers=answers, tables=tables, kinds=kinds)
    shown = names if len(names) <= 12 else [*names[:11], said.say("more_attributes", count=len(names) - 11)]
    return said.say("what", answers=answers, tables=tables, kinds=kinds, names=said.listed(shown))


def _exact(release: Release, entries: Sequence[TableEntry], said: Texts) -> list[tuple[str, str]]:
    """The margins of the main tables: those with the fewest attributes, with the typical answer that stands beside each."""
    main = sorted(range(len(entries)), key=lambda place: (len(entries[place].attributes), entries[place].answers > 1000, place))[:MOST_MAIN]
    found = []
    for place in sorted(main):
        table = release.tables[place]
        margin, known = said.error(table.typical_margin), table.answer[~np.isnan(table.answer)]
        typical = float(abs(known).mean()) if known.size else 0.0
        if not table.labels and known.size:
            text = said.say("exact_total", answer=said.number(float(table.answer)), margin=margin)
        elif typical > 0:
            share = said.percent(table.typical_margin / typical, 2)
            text = said.say("exact_relative", margin=margin, typical=said.number(typical), share=share)
        else:
            text = said.say("exact_plain", margin=margin)
        found.append((table_words(table.product, said), text))
    return found


def _facts(release: Release, said: Texts) -> list[tuple[str, str, str]]:
    privacy = release.privacy
    change = said.say("added_removed" if privacy.neighbours == "add_remove" else "replaced")
    protected = said.say("one_row")
    if privacy.unit_column is not None:
        protected = said.say("one_of", column=privacy.unit_column)
        change = said.some("at_most_rows", privacy.max_rows, change=change)
    facts = [
        (said.say("budget"), words.budget_words(privacy, said), words.definition(privacy, said)[0]),
        (said.say("protected"), protected, change),
    ]
    ratio = words.goodness(release.plan)
    if ratio is not None:
        facts.append((said.say("goodness"), said.say("goodness_value", ratio=said.local(f"{ratio:.2f}")), said.say("goodness_note")))
    return facts


def _notices(release: Release, said: Texts) -> list[str]:
    """What changes how every number is to be read."""
    found = [*words.notices(release, said), *words.clipped(release, said)]
    guard = words.guard_words(release, said)
    return found + ([guard] if guard else [])


def _index(release: Release, entries: Sequence[TableEntry], said: Texts) -> dict[str, Any]:
    """The list of all tables, with margins in place of standard errors."""
    times, half, rounded = release.interval.multiplier, release.interval.half_step, float(exact_rule(release.options)[0]) / 2
    bounds = release.finding.linear and len(entries) <= _MOST_BOUNDS
    rows, gives_way = [], False
    for product, table, entry in zip(release.workload, release.tables.first(MOST_LISTED), entries, strict=False):
        least = _alone(release, product) if bounds else None
        margins = [said.error(table.typical_margin), said.error(table.largest_margin)]
        alone = "" if least is None else said.error(times * least + half * product.unit + rounded)
        gives_way = gives_way or (least is not None and entry.rmse > 2 * least)
        rows.append((entry.query, table_words(product, said), said.plain(entry.answers), *margins, *([alone] if bounds else [])))
    heads = ["col_id", "col_table", "col_answers", "col_typical", "col_largest", *(["col_alone"] if bounds else [])]
    promise, summary = release.plan.promise, ""
    if not release.finding.linear:
        summary = said.say("aware_errors")
    elif promise is not None and promise.lower_bound > 0:
        total, bound = (said.local(_short(value)) for value in (promise.total_squared_error, promise.lower_bound))
        objective = release.plan.details.get("objective")
        objective = objective if objective in _OBJECTIVES else "total"
        why = [f"chosen_{objective}", *(["gives_way"] if gives_way and objective == "total" else [])]
        summary = " ".join([*map(said.say, why), said.say("squared", total=total, bound=bound)])
    cut = said.say("index_cut", count=MOST_LISTED, all=len(entries)) if len(entries) > MOST_LISTED else ""
    notes = [said.say("index_note", percent=said.percent(release.level)), *([said.say("index_alone")] if bounds else [])]
    return {"heads": [said.say(head) for head in heads], "rows": rows, "summary": summary, "cut": cut, "note": " ".join(notes)}


def _short(value: float) -> str:
    short = float(f"{value:.4g}")
    return f"{short:,.0f}" if 1000 <= short < 1e15 else f"{short:g}"


def _alone(release: Release, product: Product) -> float | None:
    if any(operator.size > _MOST_CELLS_OF_A_BOUND for operator in product.operators):
        return None
    bound = lower_bound(Workload(product.domain, (product,)), release.plan.privacy, release.measurements.noise)
    return math.sqrt(bound / (product.importance * product.rows)) * product.unit


def _reading(release: Release, said: Texts) -> dict[str, Any]:
    domain = release.plan.domain
    rules = [words.domain_words(name, domain.kind(name), said) for name in domain.names]
    rules += [words.measure_words(name, measure, said) for name, measure in domain.measures.items()]
    return {
        "interval": words.interval_words(release, said),
        "plain": words.reading_words(release, said) if release.finding.linear else "",
        "limits": words.limits(release, said),
        "dropped": words.dropped_words(release, said),
        "rules": rules[:MOST_RULES],
        "more": said.say("rows_more", count=MOST_RULES, all=len(rules)) if len(rules) > MOST_RULES else "",
        "promise": words.promise(release.privacy, said),
    }


def _spent(release: Release, said: Texts) -> list[tuple[str, str]]:
    plan = release.plan
    kept = {name: value for name, value in release.receipt.items() if not name.startswith(("guard_", "joined"))}  # told in the headline
    receipt = ", ".join(f"{name}: {value}" for name, value in {"id": release.observation.receipt, **kept}.items() if value)
    ordinary = release.finding.linear
    done = said.some("done", len(release.measurements.blocks)) if ordinary else said.say(release.finding.done[0], **release.finding.done[1])
    return [
        (said.say("s_budget"), f"{words.budget_words(release.privacy, said)} ({words.definition(release.privacy, said)[0]})"),
        (said.say("s_cost"), said.say("computed" if ordinary else "computed_aware", cost=words.cost_words(plan.cost(), said))),
        *([(said.say("s_guard"), str(release.receipt["guard_charge"]))] if "guard_charge" in release.receipt else []),
        *((said.say("s_search", **one), said.say("searched", **one)) for one in map(_search, release.options.searches)),
        (said.say("s_neighbours"), f"{words.change(release.privacy, said)} ({release.privacy.neighbours})"),
        (said.say("s_noise"), said.say(release.measurements.noise.value)),
        (said.say("s_strategy"), f"{plan.strategy}: {done}"),
        (said.say("s_receipt"), receipt or said.say("no_receipt")),
    ]


def _search(paid: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(paid[name]) for name in ("attribute", "charge", "number", "ledger")}


def _files(release: Release, entries: Sequence[TableEntry], said: Texts) -> dict[str, Any]:
    rest = "" if release.finding.linear else "approximation_std, "
    kept = release.options.covariances
    listed = [
        ("answers/", said.say("f_answers", file=entries[0].files, rest=rest)),
        ("tables.csv", said.say("f_tables")),
        ("covariances/", said.say("f_covariances", names=", ".join(kept))),
        ("measurements/", said.say("f_measurements")),
        ("manifest.json", said.say("f_manifest")),
    ]
    if not kept:
        del listed[2]
    return {"listed": listed, "biased": words.post_processing_words(release, said) if release.options.biased else []}


def _use(release: Release, said: Texts, year: int) -> dict[str, Any]:
    """How to cite, to recompute and to ask."""
    made = versions()
    cited = said.say(
        "cite_text",
        title=_title(release, said),
        budget=words.budget_words(release.privacy, said),
        unit=release.privacy.unit,
        digest=release.plan_digest,
        version=made["leastnoise"],
        year=str(year),
    )
    table = next((product for product in release.workload if product.attributes), None)
    return {
        "cite": cited,
        "python": "import leastnoise as ln\nrelease = ln.read_release('.')      # the folder of this page\nrelease.frame('q1')",
        "shell": "leastnoise show .\nleastnoise answer . --cells " + (table.attributes[0] if table else "NAME"),
        "contact": said.say("contact", contact=release.options.contact) if release.options.contact else said.say("ask_whom"),
        "versions": f"leastnoise {made['leastnoise']}, numpy {made['numpy']}, Python {made['python']}",
        "digest": release.plan_digest,
        "receipt": release.observation.receipt,
    }
