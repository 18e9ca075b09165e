"""Warn about settings that are valid but probably mistaken.

Examples are budgets that protect little, and plans whose errors exceed the answers.
"""

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
    Domain,
    Edges,
    Integers,
    Kind,
    Measure,
    PerCellBound,
    PerUnit,
    Unknown,
    column_measures,
)
from leastnoise._error import measured_multiplier
from leastnoise._mechanisms import noises_to_plan
from leastnoise._plan import LinearPlan, Plan
from leastnoise._planning import stated_privacy, table_goals
from leastnoise._release import product_rounding
from leastnoise._sources import has_text_rows
from leastnoise._spec._column_names import names_person, split_column_name
from leastnoise._spec._location_spec import name_join
from leastnoise._spec._spec import Spec, columns_to_read
from leastnoise._spec._unused_settings import UnusedSetting
from leastnoise._texts import ENGLISH, Catalogue, table_title
from leastnoise._trusted.accounting import Privacy, PureDP
from leastnoise._trusted.check import readable
from leastnoise._trusted.measurements import MOST_ROWS, cost
from leastnoise._trusted.reading import DatabaseTable, Joined, csv_delimiter
from leastnoise._workload import Product, Workload

LARGEST_EPSILON = 20
LARGEST_TARGET_EPSILON = 2
LARGEST_DELTA = Fraction(1, 10**5)
"""Without a public number of rows."""
_MOST_LISTED_TABLES = 3  # in a warning; layout


def budget_warnings(
    privacy: Privacy, rows: int | None, catalogue: Catalogue, *, is_from_targets: bool = False
) -> Iterator[str]:
    """Yield a warning for each parameter of a budget that protects little.

    If the budget follows from targets, the warning starts at a lower epsilon.
    """
    if is_from_targets:
        most = LARGEST_TARGET_EPSILON
    else:
        most = LARGEST_EPSILON
    advice = catalogue.say("st_w_much" if is_from_targets else "st_w_hardly")
    budget = privacy.budget
    epsilon = getattr(budget, "epsilon", None)
    rho = getattr(budget, "rho", None)
    delta = getattr(budget, "delta", None)
    if epsilon is not None and epsilon > most:
        if epsilon < 700:
            times = f"{math.exp(epsilon):.2g}"
        else:
            times = f"e^{readable(epsilon)}"
        yield catalogue.say(
            "st_w_epsilon", epsilon=readable(epsilon), times=times, most=most, advice=advice
        )
    if rho is not None and rho > most:
        yield catalogue.say("st_w_rho", rho=readable(rho), most=most, advice=advice)
    if delta is not None and delta > (LARGEST_DELTA if rows is None else Fraction(1, rows)):
        yield catalogue.say(
            f"st_w_delta{'' if rows is None else '_rows'}",
            delta=readable(delta),
            most=readable(LARGEST_DELTA),
            rows=str(rows),
        )


def time_limit_warnings(plan: Plan, catalogue: Catalogue = ENGLISH) -> Iterator[str]:
    """Yield a warning if the time limit ended planning early."""
    if plan.details.ended_early:
        yield catalogue.say("st_early", names=", ".join(plan.details.ended_early))


def shared_budget_warnings(plan: Plan, catalogue: Catalogue = ENGLISH) -> Iterator[str]:
    """Yield a warning if tables have twice the errors of an equal budget split."""
    high_errors = sorted(plan.details.high_errors.items(), key=lambda pair: -pair[1])
    if high_errors:
        display_names = {
            product.name: _localised_table_name(product, catalogue) for product in plan.workload
        }
        times = (
            catalogue.say(
                "st_times",
                name=display_names.get(name, name),
                ratio=catalogue.localize(f"{ratio:.2g}"),
            )
            for name, ratio in high_errors
        )
        yield catalogue.say("st_crowded", listed=", ".join(times))


def _localised_table_name(product: Product, catalogue: Catalogue) -> str:
    """Return the name of a table in the language of the catalogue."""
    if catalogue.language == ENGLISH.language and catalogue.names.is_empty:
        return product.name
    return table_title(product, catalogue)


def _sizes_of_statistics(workload: Workload) -> dict[tuple[object, ...], Fraction]:
    """Return the public size of each table that a statistic with a size needs."""
    sizes: dict[tuple[object, ...], Fraction] = {}
    for statistic in workload.statistics:
        if statistic.size:
            tables = workload.tables_of(statistic)
            sizes |= dict.fromkeys((table.table_key for table in tables), statistic.size)
    return sizes


def relative_error_warnings(
    plan: Plan, level: float, rows: int | None = None, catalogue: Catalogue = ENGLISH
) -> Iterator[str]:
    """Yield a warning if typical answers of tables are below their margins.

    The public sizes and the public number of rows limit how large typical answers can be.
    """
    if plan.data_independent_error is None:
        return
    measured = plan.measured()
    warnings = []
    sizes_of_statistics = _sizes_of_statistics(plan.workload)
    multiplier = measured_multiplier(measured, level, plan.workload)
    half_step = 0.5 / measured.grid
    row_limit = MOST_ROWS
    if rows is not None:
        row_limit = rows
    for table, product in zip(plan.data_independent_error.tables, plan.workload, strict=True):
        public_size = product.size
        if public_size is None and product.measure is None:
            public_size = sizes_of_statistics.get(product.table_key)
        if public_size is None:
            typical = _largest_mean_of_cells(plan.domain, product, row_limit)
        else:
            typical = float(public_size) / product.unit
        margin = multiplier * table.largest_std + half_step
        if margin > typical:
            values = {
                "margin": catalogue.format_error(margin * product.unit),
                "typical": catalogue.format_value(typical * product.unit),
            }
            warnings.append(
                f"{_localised_table_name(product, catalogue)} "
                f"({catalogue.say('exact_around', **values)})"
            )
    if warnings:
        if len(warnings) > _MOST_LISTED_TABLES:
            more = [catalogue.say_count("further", len(warnings) - _MOST_LISTED_TABLES)]
        else:
            more = []
        yield catalogue.say(
            "st_margins", listed=catalogue.join_names([*warnings[:_MOST_LISTED_TABLES], *more])
        )


def _largest_mean_of_cells(domain: Domain, product: Product, row_limit: int) -> float:
    """Return the largest possible mean of a table's answers, in measure units.

    If queries overlap, as prefix sums do, this is the largest possible sum of their cells.
    """
    cells = [
        operator.rows
        for operator, queries in zip(product.operators, product.query_sets, strict=True)
        if queries.form.axis == "cells"
    ]
    return row_limit * domain.largest_value(product.measure) / math.prod(cells)


_DECIMAL_NAME = re.compile(
    r"income|salary|wage|price|amount|cost|rent|height|weight|balance|rate$|umsatz|preis|betrag",
    flags=re.ASCII,
)
_AMOUNT_NAME = re.compile(
    r"(incomes?|salary|wages?|pay|prices?|amounts?|costs?|rents?|balance|revenue|turnover"
    r"|umsatz|preis|betrag|lohn|gehalt|miete|einkommen)"
)
_SHARE_NAME = re.compile(r"share|rate|ratio|fraction|probability|quote|anteil", flags=re.ASCII)


def spec_warnings(spec: Spec, catalogue: Catalogue = ENGLISH) -> tuple[str, ...]:
    """Return a warning for each setting of a spec that is probably mistaken."""
    attributes, measures = columns_to_read(spec)
    warnings: list[str] = []
    for name in attributes:
        warnings += _kind_warnings(name, spec.domain.kind(name), spec, catalogue)
    warnings += dict.fromkeys(_decimal_mark_warnings(spec, catalogue))
    for name in measures:
        warnings += _measure_warnings(name, spec.domain.measure(name), catalogue)
    warnings += [
        catalogue.say("st_w_unasked", name=name)
        for name in spec.domain.names
        if name not in attributes
    ]
    warnings += [_unused_setting_warning(setting, catalogue) for setting in spec.unused_settings]
    if spec.series is not None and spec.privacy.unit_column is None:
        warnings.append(catalogue.say("st_w_series"))
    if _has_series_limit(spec):
        warnings.append(catalogue.say("st_w_series_rows", most=str(spec.privacy.max_rows)))
    with_margins = [
        product
        for product in spec.workload
        if product.target is not None and product.target.kind == "margin"
    ]
    steps = {product_rounding(spec.options, product)[0] for product in with_margins}
    warnings += [
        catalogue.say("st_w_round", half=readable(step / 2)) for step in sorted(steps) if step
    ]
    for number, join in enumerate(spec.joins, 1):
        if not join.get("public"):
            continue
        key = "st_w_join"
        if spec.privacy.unit_column == Joined(None, **join).first_key:
            key = "st_w_join_unit"  # a table joined on the unit needs no further protection
        warnings.append(catalogue.say(key, part=name_join(number, len(spec.joins))))
    privacy = stated_privacy(spec.privacy)
    return *(() if privacy is None else budget_warnings(privacy, spec.rows, catalogue)), *warnings


def _unused_setting_warning(setting: UnusedSetting, catalogue: Catalogue) -> str:
    """Return a sentence on a setting that has no effect, and what to do."""
    reason = catalogue.say(setting.reason, **setting.values)
    return catalogue.say("st_w_unused", part=setting.part, keys=setting.keys, reason=reason)


def _measure_warnings(name: str, measure: Measure, catalogue: Catalogue) -> Iterator[str]:
    """Yield a warning if bounds are too narrow for a column with this name.

    Bounds of 0 and 1 are right for a column of zeros and ones, whose mean is a share. These bounds
    cause a warning if the name suggests an amount or values between 0 and 1.
    """
    if type(measure) is not Measure or measure.unit != 1 or measure.high - measure.low > 1:
        return
    if _SHARE_NAME.search(name.lower()):
        yield catalogue.say("st_w_unit", name=name)
        return
    is_of_zeros_and_ones = measure.low == 0 and measure.high == 1
    if is_of_zeros_and_ones and not _AMOUNT_NAME.fullmatch(name.lower()):
        return
    low = f"{float(measure.low):g}"
    high = f"{float(measure.high):g}"
    yield catalogue.say("st_w_clipped", name=name, low=low, high=high)


def plan_warnings(spec: Spec, plan: Plan, catalogue: Catalogue = ENGLISH) -> tuple[str, ...]:
    """Return warnings about the plan of a spec: large errors, a large budget."""
    least = stated_privacy(spec.privacy) is None
    pure = isinstance(plan.privacy.budget, PureDP)
    # If there are no measurements yet, assume the usual noise.
    noise = (
        plan.measurements.noise if isinstance(plan, LinearPlan) else noises_to_plan(plan.privacy)[0]
    )
    warnings = list[str]()
    if least:
        warnings += budget_warnings(plan.privacy, spec.rows, catalogue, is_from_targets=True)
        warnings += _untargeted_table_warnings(spec, catalogue)
    if noise.norm == 1 and spec.series is None and _is_cell_limit_useless(plan):
        warnings.append(catalogue.say("st_w_cells_pure" if pure else "st_w_cells"))
    warnings += time_limit_warnings(plan, catalogue)
    named = spec.options.catalogue(catalogue.language)
    warnings += shared_budget_warnings(plan, named)
    warnings += relative_error_warnings(plan, spec.options.level, spec.rows, catalogue)
    return tuple(warnings)


def _is_cell_limit_useless(plan: Plan) -> bool:
    """Return whether ``max_per_cell`` drops rows without reducing an error."""
    bound = plan.privacy.max_per_cell
    if bound is None or not any(_may_lose_rows(product, bound) for product in plan.workload):
        return False
    if not isinstance(plan, LinearPlan):
        return True
    measured = plan.measurements
    without = replace(measured, privacy=replace(measured.privacy, max_per_cell=None))
    return cost(without) == cost(measured)


def _may_lose_rows(product: Product, bound: PerCellBound) -> bool:
    """Return whether a bound on rows per cell may drop rows of a table."""
    if not product.is_per_unit or product.measure is None:
        return True
    measure = product.domain.measure(product.measure)
    if isinstance(measure, PerUnit):
        attributes = measure.attributes
    else:
        attributes = ()
    if not attributes:
        return False
    others = [product.domain.cells(name) for name in attributes if name not in bound.attributes]
    return not ({*bound.attributes} <= {*attributes} and math.prod(others) <= bound.rows)


def _untargeted_table_warnings(spec: Spec, catalogue: Catalogue) -> Iterator[str]:
    """Yield a warning if tables have no target although targets set the budget.

    The targets of the other tables then determine the errors of these tables.
    """
    goals = table_goals(spec.workload, spec.options.level, spec.targets)
    without = [
        product.name
        for product, goal in zip(spec.workload, goals, strict=True)
        if not goal.has_target
    ]
    if without:
        if len(without) > _MOST_LISTED_TABLES:
            more = [catalogue.say_count("further", len(without) - _MOST_LISTED_TABLES)]
        else:
            more = []
        yield catalogue.say_count(
            "st_w_without",
            len(without),
            tables=catalogue.join_names([*without[:_MOST_LISTED_TABLES], *more]),
        )


def _decimal_mark_warnings(spec: Spec, catalogue: Catalogue) -> Iterator[str]:
    """Yield warnings if semicolon-separated files are read with decimal points."""
    delimiter = spec.layout.get("delimiter")
    if delimiter is None and isinstance(spec.source, Path):
        delimiter = csv_delimiter(spec.data(spec.source))
    if delimiter != ";":
        return
    attributes, measures = columns_to_read(spec)
    for name in attributes:
        kind = spec.domain.kind(name)
        if isinstance(kind, (Bins, Edges, Decimals)) and kind.reading.decimal == ".":
            yield catalogue.say("st_w_comma", part=f"domain.{name}")
    for name in measures:
        for part in column_measures(spec.domain.measure(name)):
            if part.reading.decimal == ".":
                yield catalogue.say("st_w_comma", part=f"measures.{name}")
                break


def _has_series_limit(spec: Spec) -> bool:
    """Return whether [series] limits the rows of a unit in all periods together."""
    if spec.series is None or spec.series.max_rows is None:
        return False
    bound = spec.privacy.max_per_cell
    periods = spec.domain.cells(spec.series.along)
    return bound is None or bound.rows * periods > spec.privacy.max_rows


def _kind_warnings(name: str, kind: Kind, spec: Spec, catalogue: Catalogue) -> Iterator[str]:
    """Yield warnings about the settings of an attribute."""
    is_read_from_text = not isinstance(spec.source, DatabaseTable) and (
        spec.source is None or has_text_rows(spec.source)
    )
    if isinstance(kind, Categories):
        yield from _category_warnings(name, kind, catalogue, is_read_from_text=is_read_from_text)
    if (
        isinstance(kind, (Bins, Edges, Decimals))
        and kind.high - kind.low <= 1
        and not _SHARE_NAME.search(name.lower())
        and not (0 <= kind.low < kind.high <= 1 and not _AMOUNT_NAME.fullmatch(name.lower()))
    ):
        yield catalogue.say(
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
        yield catalogue.say("st_w_whole", name=name)
    if isinstance(kind, Dates) and kind.regular == 1:
        yield catalogue.say(
            "st_w_one_cell",
            name=name,
            start=kind.start,
            end=kind.end,
            by=catalogue.say(f"by_{kind.by}"),
        )
    column = kind.reading.column or name
    is_bare_id = set(split_column_name(column)) <= {"id", "uuid", "guid", "key"}
    if spec.privacy.unit_column is None and (names_person(column) or is_bare_id):
        yield catalogue.say("st_w_person", name=name, column=column)
    if isinstance(kind, Unknown) and kind.reading.ignore_case:
        yield catalogue.say("st_w_case", name=name)


def _category_warnings(
    name: str, kind: Categories, catalogue: Catalogue, *, is_read_from_text: bool
) -> Iterator[str]:
    """Yield warnings about the categories of an attribute."""
    if (
        is_read_from_text
        and {*map(str, kind.values)} == {"true", "false"}
        and not kind.spellings
        and not kind.reading.ignore_case
    ):
        yield catalogue.say("st_w_true", name=name)
    if not kind.reading.ignore_case or not kind.reading.trim:
        first_spelling: dict[str, str] = {}
        for value in map(str, kind.values):
            before = first_spelling.setdefault(value.strip().lower(), value)
            if before != value:
                yield catalogue.say("st_w_alike", name=name, before=repr(before), value=repr(value))
                return
    if any(value != value.strip() for value in map(str, kind.values)) and not kind.reading.trim:
        yield catalogue.say("st_w_blanks", name=name)
