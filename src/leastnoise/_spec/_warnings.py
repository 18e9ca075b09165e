"""Warnings for valid but probably mistaken settings: budgets that protect hardly anybody, and errors above the answers."""

import math
import re
from collections.abc import Iterator
from fractions import Fraction

from leastnoise._accounting import Privacy, PureDP
from leastnoise._accuracy import interval_multiplier
from leastnoise._adapters import DatabaseTable, Joined
from leastnoise._check import readable
from leastnoise._domain import Bins, Categories, Dates, Decimals, Edges, Integers, Kind, Unknown
from leastnoise._measurements import MOST_ROWS
from leastnoise._mechanisms import noises
from leastnoise._plan import Plan
from leastnoise._planning import goals_of, stated
from leastnoise._release import ENGLISH, Texts, cells_save, table_words
from leastnoise._spec._domain import IDENTIFIER, PERSON
from leastnoise._spec._spec import Spec, asked_about
from leastnoise._workload import Product

MOST_EPSILON = 20
MOST_OF_TARGETS = 2
MOST_DELTA = Fraction(1, 10**5)
"""Without a public number of rows."""
_LISTED = 3


def budget_warnings(privacy: Privacy, rows: int | None = None, *, of_targets: bool = False) -> Iterator[str]:
    """One sentence for each part of a budget that protects hardly anybody; a budget that nobody chose is told earlier."""
    most = MOST_OF_TARGETS if of_targets else MOST_EPSILON
    advice = "that is much to pay for targets: give them wider margins, or ask for less" if of_targets else "hardly anybody is protected"
    budget = privacy.budget
    epsilon, rho, delta = getattr(budget, "epsilon", None), getattr(budget, "rho", None), getattr(budget, "delta", None)
    if epsilon is not None and epsilon > most:
        times = f"{math.exp(epsilon):.2g} times" if epsilon < 700 else f"e^{readable(epsilon)} times"
        yield (
            f"epsilon = {readable(epsilon)} makes what is published up to {times} as likely with a person as without; above "
            f"{most} {advice}."
        )
    if rho is not None and rho > most:
        yield f"rho = {readable(rho)} is above {most}: {advice}."
    if delta is not None and delta > (MOST_DELTA if rows is None else Fraction(1, rows)):
        above = (
            f"{readable(MOST_DELTA)}; say rows in [privacy] if the number of rows is public and small, so that it can be judged"
            if rows is None
            else f"1 / {rows}, one over the number of rows: publishing somebody's row in the clear would satisfy it"
        )
        yield f"delta = {readable(delta)} is above {above}."


def early_warnings(plan: Plan, said: Texts = ENGLISH) -> Iterator[str]:
    """One sentence if the clock ended the search of strategies."""
    if ended := plan.details.get("ended_early", ()):
        yield said.say("st_early", names=", ".join(ended))


def crowded_warnings(plan: Plan, said: Texts = ENGLISH) -> Iterator[str]:
    """One sentence if tables have much larger errors than they would have alone."""
    if known := sorted(plan.details.get("crowded", {}).items(), key=lambda pair: -pair[1]):
        called = {product.name: _called(product, said) for product in plan.workload}
        times = (said.say("st_times", name=called.get(name, name), ratio=said.local(f"{ratio:.2g}")) for name, ratio in known)
        yield said.say("st_crowded", listed=", ".join(times))


def _called(product: Product, said: Texts) -> str:
    """A table in a warning: commands and files have one name for it, pages in another language theirs."""
    return product.name if said is ENGLISH else table_words(product, said)


def error_warnings(plan: Plan, level: float, rows: int | None = None, said: Texts = ENGLISH) -> Iterator[str]:
    """One sentence if answers are expected to be smaller than their margins, by what is public of them."""
    if plan.promise is None:
        return
    measured, found = plan.measured(), []
    groups = {table.question: one.size for one in plan.workload.statistics if one.size for table in plan.workload.tables_of(one)}
    times, step = interval_multiplier(measured.noise, level), 0.5 / measured.grid
    for table, product in zip(plan.promise.tables, plan.workload, strict=True):
        known = product.size or (groups.get(product.question) if product.measure is None else None)
        cells = [one.rows for one, asked in zip(product.operators, product.query_sets, strict=True) if asked.form.axis == "cells"]
        most = (MOST_ROWS if rows is None else rows) * plan.domain.largest_value(product.measure) / math.prod(cells)
        size = most if known is None else float(known) / product.unit  # of cells on average, of sums of cells at most
        margin = times * table.largest_std + step
        if margin > size:
            values = {"margin": said.error(margin * product.unit), "typical": said.plain(size * product.unit)}
            found.append(f"{_called(product, said)} ({said.say('exact_around', **values)})")
    if found:
        more = [said.some("further", len(found) - _LISTED)] if len(found) > _LISTED else []
        yield said.say("st_margins", listed=said.listed([*found[:_LISTED], *more]))


_DECIMAL_NAME = re.compile(r"income|salary|wage|price|amount|cost|rent|height|weight|balance|rate$|umsatz|preis|betrag", flags=re.ASCII)
_SHARE_NAME = re.compile(r"share|rate|ratio|fraction|probability|quote|anteil", flags=re.ASCII)


def spec_warnings(what: Spec) -> tuple[str, ...]:
    """One sentence for each part of a spec that is likely wrong."""
    attributes, measures = asked_about(what)
    found = [sentence for name in attributes for sentence in _of_kind(name, what.domain.kind(name), what)]
    for name in measures:
        low, high = what.domain.measure(name).low, what.domain.measure(name).high
        if high - low <= 1 and not _SHARE_NAME.search(name.lower()):
            found.append(
                f"[measures.{name}] is clipped to {float(low):g} .. {float(high):g}: of whole numbers nearly nothing is left. {_BOUNDS}"
            )
    found += [
        f"[domain.{name}] is asked about by no query: it is not read. Ask for it, or leave it out."
        for name in what.domain.names
        if name not in attributes
    ]
    if what.series is not None and what.privacy.unit_column is None:
        found.append(
            "[series] has no column of units: a row whose date is moved after its period was closed counts once more each time, and is "
            "protected that much less. If dates are corrected, name the unit in [privacy]: unit = { column = ..., max_rows = ... }."
        )
    if what.options.round and any(product.target is not None and product.target.kind == "margin" for product in what.workload):
        found.append(
            f"[output] round makes published intervals {readable(Fraction(what.options.round) / 2)} wider to either side than a margin, "
            "which is of answers before they are rounded. Give margins that much less."
        )
    said = stated(what.privacy)
    return *(() if said is None else budget_warnings(said, what.rows)), *found, *_of_join(what)


def plan_warnings(what: Spec, made: Plan, said: Texts = ENGLISH) -> tuple[str, ...]:
    r"""One sentence for each mistake that only the plan of a spec shows: large errors, and a large budget where it was to be found."""
    found = (*budget_warnings(made.privacy, what.rows, of_targets=True), *_without_target(what)) if stated(what.privacy) is None else ()
    return (
        *found,
        *_of_cells(made),
        *early_warnings(made, said),
        *crowded_warnings(made, said),
        *error_warnings(made, what.options.level, what.rows, said),
    )


def _of_cells(made: Plan) -> Iterator[str]:
    """Where a limit on a unit's rows in a cell cuts rows and saves nothing."""
    noise = noises(made.privacy)[0] if made.measurements is None else made.measurements.noise  # what chooses as it goes takes the usual
    if made.privacy.max_per_cell is None or cells_save(noise):
        return
    pure = isinstance(made.privacy.budget, PureDP)
    instead = ", or give a budget for Gaussian noise: rho, or delta beside epsilon" if pure else ": Gaussian noise would be larger here"
    yield f"max_per_cell makes nothing cheaper under this plan's Laplace noise, and cuts rows. Leave it out{instead}."


def _without_target(what: Spec) -> Iterator[str]:
    """Where the budget is the least that keeps targets, tables that are part of none have what is left over."""
    goals = goals_of(what.workload, what.options.level)
    without = [product.name for product, goal in zip(what.workload, goals, strict=True) if not goal.wanted]
    if without:
        more = f" and {len(without) - _NAMED} more" if len(without) > _NAMED else ""
        yield (
            f"The budget is the least that keeps the targets, and {', '.join(without[:_NAMED])}{more} "
            f"{'have' if len(without) > 1 else 'has'} none: their errors are whatever that leaves. Give every table a margin, relative or "
            "rmse, and means a margin or rmse, or see that the errors suffice."
        )


def _of_join(what: Spec) -> Iterator[str]:
    if not what.join.get("public"):
        return
    if what.privacy.unit_column == Joined(None, **what.join).own:
        yield "[source.join] public gives up the second table's protection for nothing, as it is joined on the unit. Leave public out."
    else:
        yield "[source.join] public: nobody's row in the second table is protected, as if everyone knew it. Leave public out if not."


_NAMED = 3
_BOUNDS = "Check the bounds, and the unit they are in."


def _of_kind(name: str, kind: Kind, what: Spec) -> Iterator[str]:
    where = f"[domain.{name}]"
    text = not isinstance(what.source, DatabaseTable) and (what.source is None or bool(re.search(r"[.][ct]sv", what.source.name.lower())))
    if isinstance(kind, Categories):
        yield from _of_categories(where, kind, text=text)
    if isinstance(kind, (Bins, Edges, Decimals)) and kind.high - kind.low <= 1 and not _SHARE_NAME.search(name.lower()):
        fate = {"clip": "go to its first or last cell", "drop": "are dropped", "other": "are counted as other"}[kind.outside]
        yield f"{where} is between {float(kind.low):g} and {float(kind.high):g}: nearly all whole numbers {fate}. {_BOUNDS}"
    if isinstance(kind, Integers) and kind.rounding is None and kind.outside != "clip" and _DECIMAL_NAME.search(name.lower()):
        yield (
            f'{where} has whole numbers alone: a value such as 165.5 is outside. If there are such values, say rounding = "nearest", '
            "or use decimals or bins."
        )
    if isinstance(kind, (Bins, Edges, Decimals)) and text and what.layout.get("delimiter") == ";" and kind.reading.decimal == ".":
        yield f'{where} reads "1.5", and not "1,5", though fields are cut at semicolons. If numbers have decimal commas, say decimal = ",".'
    if isinstance(kind, Dates) and kind.regular == 1:
        yield f"{where} has one cell: from {kind.start} to {kind.end} is one {kind.by}. Check the days."
    column, naming = kind.reading.column or name, IDENTIFIER if kind.reading.column is None else PERSON
    if what.privacy.unit_column is None and naming.search(column):
        yield f'{where} seems to name a person, while every row is a unit. If so, say unit = {{ column = "{column}", max_rows = ... }}.'
    if isinstance(kind, Unknown) and kind.reading.ignore_case:
        yield f"{where} ignores case: what is found is published in small letters, since how rows write it is theirs."


def _of_categories(where: str, kind: Categories, *, text: bool) -> Iterator[str]:
    if text and {*map(str, kind.values)} == {"true", "false"} and not kind.spellings and not kind.reading.ignore_case:
        yield (
            f"{where} has true and false, which in a text file are the words true and false alone: TRUE, yes and 1 match nothing. "
            'Say ignore_case = true, or spellings = { true = ["yes", "1"], false = ["no", "0"] }.'
        )
    if not kind.reading.ignore_case or not kind.reading.trim:
        seen: dict[str, str] = {}
        for value in map(str, kind.values):
            before = seen.setdefault(value.strip().lower(), value)
            if before != value:
                yield (
                    f"{where} has {before!r} and {value!r}, which differ by case or blanks alone; if they mean the same, keep one and say "
                    "ignore_case or trim = true."
                )
                return
    if any(value != value.strip() for value in map(str, kind.values)) and not kind.reading.trim:
        yield f"{where} has a category with blanks around it, which matches nothing without them. Take them away, and say trim = true."
