"""Warnings for valid but probably mistaken settings: budgets that protect hardly anybody, and errors above the answers."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from leastnoise._domain import (
    Bins,
    Categories,
    Dates,
    Decimals,
    Edges,
    Integers,
    Kind,
    Measure,
    PerCellBound,
    UnitCount,
    Unknown,
    factor_measures,
)
from leastnoise._error import measured_multiplier
from leastnoise._mechanisms import noise_kinds
from leastnoise._plan import Plan
from leastnoise._planning import stated_privacy, table_goals
from leastnoise._release import ENGLISH, Catalogue, table_title
from leastnoise._sources import has_text_rows
from leastnoise._spec._column_names import names_person, words_in
from leastnoise._spec._spec import Spec, asked_about
from leastnoise._trusted.accounting import Privacy, PureDP
from leastnoise._trusted.check import readable
from leastnoise._trusted.measurements import MOST_ROWS, cost
from leastnoise._trusted.reading import DatabaseTable, Joined, csv_delimiter
from leastnoise._workload import Product

MOST_EPSILON = 20
MOST_OF_TARGETS = 2
MOST_DELTA = Fraction(1, 10**5)
"""Without a public number of rows."""
_LISTED = 3


def budget_warnings(
    privacy: Privacy, rows: int | None, said: Catalogue, *, of_targets: bool = False
) -> Iterator[str]:
    """Warn of each part of a budget that protects hardly anybody; a budget that follows from targets is warned of at a lower epsilon."""
    most = MOST_OF_TARGETS if of_targets else MOST_EPSILON
    advice = said.say("st_w_much" if of_targets else "st_w_hardly")
    budget = privacy.budget
    epsilon, rho, delta = (
        getattr(budget, "epsilon", None),
        getattr(budget, "rho", None),
        getattr(budget, "delta", None),
    )
    if epsilon is not None and epsilon > most:
        times = f"{math.exp(epsilon):.2g}" if epsilon < 700 else f"e^{readable(epsilon)}"
        yield said.say(
            "st_w_epsilon", epsilon=readable(epsilon), times=times, most=most, advice=advice
        )
    if rho is not None and rho > most:
        yield said.say("st_w_rho", rho=readable(rho), most=most, advice=advice)
    if delta is not None and delta > (MOST_DELTA if rows is None else Fraction(1, rows)):
        yield said.say(
            f"st_w_delta{'' if rows is None else '_rows'}",
            delta=readable(delta),
            most=readable(MOST_DELTA),
            rows=str(rows),
        )


def early_warnings(plan: Plan, said: Catalogue = ENGLISH) -> Iterator[str]:
    """Warn if planning ran out of time before all strategies were tried."""
    if plan.details.ended_early:
        yield said.say("st_early", names=", ".join(plan.details.ended_early))


def crowded_warnings(plan: Plan, said: Catalogue = ENGLISH) -> Iterator[str]:
    """Warn if tables have much larger errors than they would have alone."""
    if known := sorted(plan.details.high_errors.items(), key=lambda pair: -pair[1]):
        called = {product.name: _called(product, said) for product in plan.workload}
        times = (
            said.say("st_times", name=called.get(name, name), ratio=said.localize(f"{ratio:.2g}"))
            for name, ratio in known
        )
        yield said.say("st_crowded", listed=", ".join(times))


def _called(product: Product, said: Catalogue) -> str:
    """Name a table as commands and files do, and on pages in another language in that language."""
    return product.name if said is ENGLISH else table_title(product, said)


def error_warnings(
    plan: Plan, level: float, rows: int | None = None, said: Catalogue = ENGLISH
) -> Iterator[str]:
    """Warn of tables whose answers are probably smaller than their margins: public sizes and numbers of rows bound the answers."""
    if plan.promise is None:
        return
    measured, warnings = plan.measured(), []
    groups = {
        table.table_key: asked.size
        for asked in plan.workload.statistics
        if asked.size
        for table in plan.workload.tables_of(asked)
    }
    times, step = measured_multiplier(measured, level), 0.5 / measured.grid
    for table, product in zip(plan.promise.tables, plan.workload, strict=True):
        known = product.size or (groups.get(product.table_key) if product.measure is None else None)
        cells = [
            operator.rows
            for operator, asked in zip(product.operators, product.query_sets, strict=True)
            if asked.form.axis == "cells"
        ]
        most = (
            (MOST_ROWS if rows is None else rows)
            * plan.domain.largest_value(product.measure)
            / math.prod(cells)
        )
        size = (
            most if known is None else float(known) / product.unit
        )  # the mean of cells, or the most that sums of cells can be
        margin = times * table.largest_std + step
        if margin > size:
            values = {
                "margin": said.format_error(margin * product.unit),
                "typical": said.format_value(size * product.unit),
            }
            warnings.append(f"{_called(product, said)} ({said.say('exact_around', **values)})")
    if warnings:
        more = (
            [said.say_count("further", len(warnings) - _LISTED)] if len(warnings) > _LISTED else []
        )
        yield said.say("st_margins", listed=said.join_names([*warnings[:_LISTED], *more]))


_DECIMAL_NAME = re.compile(
    r"income|salary|wage|price|amount|cost|rent|height|weight|balance|rate$|umsatz|preis|betrag",
    flags=re.ASCII,
)
_AMOUNT_NAME = re.compile(
    r"(incomes?|salary|wages?|pay|prices?|amounts?|costs?|rents?|balance|revenue|turnover"
    r"|umsatz|preis|betrag|lohn|gehalt|miete|einkommen)"
)
_SHARE_NAME = re.compile(r"share|rate|ratio|fraction|probability|quote|anteil", flags=re.ASCII)


def spec_warnings(what: Spec, said: Catalogue = ENGLISH) -> tuple[str, ...]:
    """Return a warning for each part of a spec that is likely wrong."""
    attributes, measures = asked_about(what)
    warnings = [
        sentence
        for name in attributes
        for sentence in _of_kind(name, what.domain.kind(name), what, said)
    ]
    warnings += dict.fromkeys(_of_decimal_marks(what, said))
    for name in measures:
        warnings += _of_measure(name, what.domain.measure(name), said)
    warnings += [
        said.say("st_w_unasked", name=name) for name in what.domain.names if name not in attributes
    ]
    if what.series is not None and what.privacy.unit_column is None:
        warnings.append(said.say("st_w_series"))
    if what.options.round and any(
        product.target is not None and product.target.kind == "margin" for product in what.workload
    ):
        warnings.append(said.say("st_w_round", half=readable(Fraction(what.options.round) / 2)))
    if what.join.get("public"):  # joined on the unit, it protects nothing more
        warnings.append(
            said.say(
                "st_w_join_unit"
                if what.privacy.unit_column == Joined(None, **what.join).own
                else "st_w_join"
            )
        )
    privacy = stated_privacy(what.privacy)
    return *(() if privacy is None else budget_warnings(privacy, what.rows, said)), *warnings


def _of_measure(name: str, measure: Measure, said: Catalogue) -> Iterator[str]:
    """Warn of bounds so narrow that in whole units nearly nothing is left of values.

    Bounds of 0 and 1 are right for a column of zeros and ones, whose mean is a share. They are
    doubtful where the name is that of an amount, or that of values between 0 and 1.
    """
    if type(measure) is not Measure or measure.unit != 1 or measure.high - measure.low > 1:
        return
    if _SHARE_NAME.search(name.lower()):
        yield said.say("st_w_unit", name=name)
        return
    is_of_zeros_and_ones = measure.low == 0 and measure.high == 1
    if is_of_zeros_and_ones and not _AMOUNT_NAME.fullmatch(name.lower()):
        return
    low, high = f"{float(measure.low):g}", f"{float(measure.high):g}"
    yield said.say("st_w_clipped", name=name, low=low, high=high)


def plan_warnings(what: Spec, made: Plan, said: Catalogue = ENGLISH) -> tuple[str, ...]:
    """Return a warning for each mistake that only the plan of a spec shows: large errors, and a large least budget."""
    least, pure = stated_privacy(what.privacy) is None, isinstance(made.privacy.budget, PureDP)
    noise = (
        noise_kinds(made.privacy)[0] if made.measurements is None else made.measurements.noise
    )  # without measurements, the usual noise
    return (
        *(budget_warnings(made.privacy, what.rows, said, of_targets=True) if least else ()),
        *(_untargeted(what, said) if least else ()),
        *(
            [said.say("st_w_cells_pure" if pure else "st_w_cells")]
            if noise.norm == 1 and what.series is None and _limits_rows_by_cell(made)
            else ()
        ),
        *early_warnings(made, said),
        *crowded_warnings(made, said),
        *error_warnings(made, what.options.level, what.rows, said),
    )


def _limits_rows_by_cell(plan: Plan) -> bool:
    """Whether max_per_cell takes rows or units away from some table and makes nothing cheaper."""
    bound, measured = plan.privacy.max_per_cell, plan.measurements
    if bound is None or not any(_is_cut(product, bound) for product in plan.workload):
        return False
    if measured is None:
        return True
    without = replace(measured, privacy=replace(measured.privacy, max_per_cell=None))
    return cost(without) == cost(measured)


def _is_cut(product: Product, bound: PerCellBound) -> bool:
    """Whether a bound on the rows of a unit in a cell can take something away from a table."""
    if not product.of_units or product.measure is None:
        return True
    counted = product.domain.measure(product.measure)
    attributes = counted.attributes if isinstance(counted, UnitCount) else ()
    if not attributes:
        return False
    others = [product.domain.cells(name) for name in attributes if name not in bound.attributes]
    return not ({*bound.attributes} <= {*attributes} and math.prod(others) <= bound.rows)


def _untargeted(what: Spec, said: Catalogue) -> Iterator[str]:
    """Warn of tables without a target where the budget is the least that keeps the targets: their errors are whatever that leaves."""
    goals = table_goals(what.workload, what.options.level)
    without = [
        product.name
        for product, goal in zip(what.workload, goals, strict=True)
        if not goal.has_target
    ]
    if without:
        more = [said.say_count("further", len(without) - _LISTED)] if len(without) > _LISTED else []
        yield said.say(
            f"st_w_without_{'many' if len(without) > 1 else 'one'}",
            tables=said.join_names([*without[:_LISTED], *more]),
        )


def _of_decimal_marks(what: Spec, said: Catalogue) -> Iterator[str]:
    """Warn of numbers with a decimal point in files whose fields are cut at semicolons."""
    delimiter = what.layout.get("delimiter")
    if delimiter is None and isinstance(what.source, Path):
        delimiter = csv_delimiter(what.data(what.source))
    if delimiter != ";":
        return
    attributes, measures = asked_about(what)
    for name in attributes:
        kind = what.domain.kind(name)
        if isinstance(kind, (Bins, Edges, Decimals)) and kind.reading.decimal == ".":
            yield said.say("st_w_comma", part=f"domain.{name}")
    for name in measures:
        for part in factor_measures(what.domain.measure(name)):
            if part.reading.decimal == ".":
                yield said.say("st_w_comma", part=f"measures.{name}")
                break


def _of_kind(name: str, kind: Kind, what: Spec, said: Catalogue) -> Iterator[str]:
    text = not isinstance(what.source, DatabaseTable) and (
        what.source is None or has_text_rows(what.source)
    )
    if isinstance(kind, Categories):
        yield from _of_categories(name, kind, said, text=text)
    if (
        isinstance(kind, (Bins, Edges, Decimals))
        and kind.high - kind.low <= 1
        and not _SHARE_NAME.search(name.lower())
        and not (0 <= kind.low < kind.high <= 1 and not _AMOUNT_NAME.fullmatch(name.lower()))
    ):
        yield said.say(
            f"st_w_narrow_{'other' if kind.outside == 'cell' else kind.outside}",
            name=name,
            low=f"{float(kind.low):g}",
            high=f"{float(kind.high):g}",
        )
    if (
        isinstance(kind, Integers)
        and kind.rounding is None
        and kind.outside != "clip"
        and _DECIMAL_NAME.search(name.lower())
    ):
        yield said.say("st_w_whole", name=name)
    if isinstance(kind, Dates) and kind.regular == 1:
        yield said.say(
            "st_w_one_cell", name=name, start=kind.start, end=kind.end, by=said.say(f"by_{kind.by}")
        )
    column = kind.reading.column or name
    is_bare_id = set(words_in(column)) <= {"id", "uuid", "guid", "key"}
    if what.privacy.unit_column is None and (names_person(column) or is_bare_id):
        yield said.say("st_w_person", name=name, column=column)
    if isinstance(kind, Unknown) and kind.reading.ignore_case:
        yield said.say("st_w_case", name=name)


def _of_categories(name: str, kind: Categories, said: Catalogue, *, text: bool) -> Iterator[str]:
    if (
        text
        and {*map(str, kind.values)} == {"true", "false"}
        and not kind.spellings
        and not kind.reading.ignore_case
    ):
        yield said.say("st_w_true", name=name)
    if not kind.reading.ignore_case or not kind.reading.trim:
        seen: dict[str, str] = {}
        for value in map(str, kind.values):
            before = seen.setdefault(value.strip().lower(), value)
            if before != value:
                yield said.say("st_w_alike", name=name, before=repr(before), value=repr(value))
                return
    if any(value != value.strip() for value in map(str, kind.values)) and not kind.reading.trim:
        yield said.say("st_w_blanks", name=name)
