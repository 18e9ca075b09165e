"""Choose sentences on privacy, noise and intervals for manifest and report.

The functions choose sentences of a catalogue and fill in the numbers.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

from leastnoise._domain import (
    Bins,
    Categories,
    CompleteCount,
    Dates,
    Decimals,
    DeviationProduct,
    Edges,
    Integers,
    Kind,
    Measure,
    SquaredDeviation,
    UnitCount,
    UnitTotal,
    ValueCount,
    Weighted,
    column_measures,
)
from leastnoise._error import interval_multiplier, noise_name
from leastnoise._estimation import public_counts_of_plan
from leastnoise._fitting import zcdp_epsilon
from leastnoise._pages._guard_shares import (
    estimate_cut_amount,
    estimate_cut_share,
    estimate_unused_share,
    format_row_limit,
)
from leastnoise._pages._risk import PRIOR, guessing_chance, risk_holds_always
from leastnoise._plan import LinearPlan, Plan, SeriesPlan
from leastnoise._release import (
    MOST_WRITTEN_ANSWERS,
    ClippedValues,
    MissingRows,
    Options,
    Release,
    Survey,
    clipped_measures,
    describe_rounding,
    is_too_large_to_write,
    rounding_rule,
)
from leastnoise._texts import (
    ENGLISH,
    MANY_ROWS_SHARE,
    Catalogue,
    name_attribute,
    name_measure,
    name_statistic,
    name_summed,
    name_unit,
    table_title,
)
from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    ApproxDP,
    Cost,
    GaussianCost,
    Noise,
    Privacy,
    PureDP,
    SeriesCost,
    format_amount,
    gaussian_epsilon,
    parameters_by_name,
)
from leastnoise._trusted.check import readable
from leastnoise._workload import Product, Workload

_COMMON_DELTA = Fraction(1, 10**9)  # for converting zCDP and mu-GDP to epsilon
_MOST_LISTED_LABELS = 5  # labels listed in a sentence
_MOST_LISTED_TABLES = 6  # tables listed in a sentence
_LARGEST_CHANCE = 99  # percent; a budget that allows a better guess is called too large
_FEW_CLIPPED_SHARE = 0.01  # of the rows; a larger share beyond a bound can exceed usual margins
_LEAST_CHANCE = 51  # percent; every budget allows more than the prior of 50%
_DEFINITIONS = {PureDP: "pure", ApproxDP: "approximate", ZCDP: "concentrated", GDP: "gaussian"}


def describe_definition(
    privacy: Privacy, catalogue: Catalogue = ENGLISH
) -> tuple[str, dict[str, str]]:
    """Return the name of the privacy definition and its exact parameters."""
    budget = privacy.budget
    return catalogue.say(_DEFINITIONS[type(budget)]), {
        name: str(number) for name, number in parameters_by_name(budget).items()
    }


def format_budget(privacy: Privacy, catalogue: Catalogue = ENGLISH) -> str:
    """Return the budget as text, such as "epsilon = 1".

    A long number is rounded up.
    """
    return ", ".join(
        f"{name.replace('_', ' ')} = {catalogue.localize(format_amount(number, up=True))}"
        for name, number in parameters_by_name(privacy.budget).items()
    )


def describe_neighbours(privacy: Privacy, catalogue: Catalogue = ENGLISH) -> str:
    """Return a clause on how two neighbouring tables may differ."""
    if privacy.unit_column is None:
        return catalogue.say(f"change_row_{privacy.neighbours}")
    return catalogue.say_count(
        f"change_unit_{privacy.neighbours}",
        privacy.max_rows,
        **name_unit(privacy, catalogue),
    )


def describe_promise(privacy: Privacy, catalogue: Catalogue = ENGLISH) -> str:
    """Return a sentence that states the guarantee of the budget."""
    budget = privacy.budget
    values = dict[str, object](parameters_by_name(budget))
    if isinstance(budget, ZCDP):
        values |= {
            "epsilon": catalogue.localize(f"{float(zcdp_epsilon(budget.rho, _COMMON_DELTA)):.3g}"),
            "delta": _COMMON_DELTA,
        }
    elif isinstance(budget, GDP):
        epsilon = gaussian_epsilon(budget.mu_squared, _COMMON_DELTA)
        values = {
            "mu": catalogue.localize(f"{math.sqrt(budget.mu_squared):.3g}"),
            "epsilon": catalogue.localize(f"{float(epsilon):.3g}"),
            "delta": _COMMON_DELTA,
        }
    else:
        values["times"] = catalogue.say("over_10_300")
        if budget.epsilon < 700:
            factor = math.exp(float(budget.epsilon))
            values["times"] = catalogue.localize(_format_factor(factor))
    return catalogue.say(
        f"promise_{_DEFINITIONS[type(budget)]}",
        change=describe_neighbours(privacy, catalogue),
        **values,
    )


def _format_factor(factor: float) -> str:
    """Return a probability ratio as text, with three digits or as an integer."""
    if factor < 1000:
        return f"{factor:.3g}"
    if factor < 1e6:
        return f"{factor:,.0f}"
    return f"{factor:.2g}"


def name_protected_unit(privacy: Privacy, catalogue: Catalogue = ENGLISH) -> str:
    """Return the privacy unit and the neighbour relation as text, for citations."""
    if privacy.unit_column is None:
        unit = catalogue.say("cite_row")
    else:
        unit = catalogue.say_count("cite_unit", privacy.max_rows, **name_unit(privacy, catalogue))
    return f"{unit} ({catalogue.say(f'cite_change_{privacy.neighbours}')})"


def name_paid_unit(privacy: Privacy, catalogue: Catalogue = ENGLISH) -> str:
    """Return the unit and neighbour relation of a ledger, without a row limit."""
    if privacy.unit_column is None:
        return name_protected_unit(privacy, catalogue)
    unit = catalogue.say("ledger_unit", **name_unit(privacy, catalogue))
    return f"{unit} ({catalogue.say(f'cite_change_{privacy.neighbours}')})"


def describe_guessing_chance(
    privacy: Privacy,
    catalogue: Catalogue = ENGLISH,
    cost: Cost | None = None,
    covered_part: str = "release",
) -> str:
    """Explain the budget by the best chance to guess right about a unit.

    Args:
        privacy: the budget of all parts that are published.
        catalogue: the language.
        cost: the cost of the plan; within (epsilon, delta) its noise makes the bound smaller.
        covered_part: "release"; "addition" for a release that adds to others (see
            `published_part`); or "ledger" for all releases within its budget.
    """
    # Percentages are rounded up, because the sentence says "at most". 1e-9 covers floating-point
    # errors.
    percent = max(math.ceil(100 * guessing_chance(privacy, cost) - 1e-9), _LEAST_CHANCE)
    unit = "row" if privacy.unit_column is None else "unit"
    suspicion = catalogue.say(f"guess_{unit}_{privacy.neighbours}", **name_unit(privacy, catalogue))
    if percent > _LARGEST_CHANCE:
        key = "protects_little"
    elif risk_holds_always(privacy, cost):
        key = "protects"
    else:
        key = "protects_average"
    return catalogue.say(
        key,
        suspicion=suspicion,
        published=catalogue.say(f"protects_{covered_part}"),
        prior=catalogue.format_percent(PRIOR),
        chance=catalogue.format_percent(min(percent, _LARGEST_CHANCE) / 100),
    )


def published_part(plan: Plan, *, has_searches: bool) -> str:
    """Return "release" or "addition": the part that a plan's budget covers.

    Searches for categories or bounds have separate budgets, and so do the earlier releases that a
    plan builds on. A release that contains the results of searches or earlier releases is an
    addition to them.

    Args:
        plan: the plan.
        has_searches: whether searches found categories or bounds of its domain.
    """
    if has_searches or (isinstance(plan, LinearPlan) and plan.earlier):
        return "addition"
    return "release"


def describe_risk(
    privacy: Privacy, cost: Cost | None = None, covered_part: str = "release"
) -> dict[str, Any]:
    """Return the sentence on risk and its numbers as a JSON object."""
    sentence = describe_guessing_chance(privacy, cost=cost, covered_part=covered_part)
    return {
        "in_words": sentence,
        "prior": PRIOR,
        "best_guess": guessing_chance(privacy, cost),
        "every_result": risk_holds_always(privacy, cost),
    }


def format_cost(cost: Cost, catalogue: Catalogue = ENGLISH) -> str:
    """Return the cost of a plan as text, such as "epsilon = 0.5"."""
    if isinstance(cost, GaussianCost):
        return catalogue.say("gaussian_cost", value=cost.mu_squared)
    if isinstance(cost, SeriesCost):
        return str(cost)
    return ", ".join(
        f"{name} = {catalogue.format_value(number)}"
        for name, number in parameters_by_name(cost).items()
    )


def error_over_bound(plan: Plan) -> float | None:
    """Return the plan's error divided by the least possible error, or None.

    The ratio is the square root of the total squared error divided by its lower bound.
    """
    if plan.data_independent_error is None:
        return None
    return plan.data_independent_error.times_least


def format_ratio(ratio: float, catalogue: Catalogue = ENGLISH) -> str:
    """Return the ratio of an error to the least possible error as text."""
    return catalogue.localize(f"{ratio:.3f}" if ratio < 1000 else f"{ratio:,.0f}")


def describe_attribute(name: str, kind: Kind, catalogue: Catalogue = ENGLISH) -> str:
    """Return a sentence on an attribute's cells and on values outside them."""
    if isinstance(kind, Categories):
        cells = catalogue.say("kind_categories", count=len(kind.values))
    elif isinstance(kind, Integers):
        if kind.rounding:
            key = f"kind_integers_{kind.rounding}"
        else:
            key = "kind_integers"
        cells = catalogue.say(key, low=str(kind.low), high=str(kind.high))
    elif isinstance(kind, Dates):
        by = catalogue.say(f"by_{kind.by}")
        cells = catalogue.say(
            "kind_dates",
            start=kind.start.isoformat(),
            end=kind.end.isoformat(),
            by=by,
            zone=kind.zone or "UTC",
        )
    elif isinstance(kind, Decimals):
        cells = catalogue.say(
            "kind_decimals",
            low=catalogue.format_exact(kind.low),
            high=catalogue.format_exact(kind.high),
            step=catalogue.format_exact(kind.step),
        )
    elif isinstance(kind, (Bins, Edges)):
        if isinstance(kind, Bins):
            key = "kind_bins"
        else:
            key = "kind_edges"
        cells = catalogue.say(
            f"{key}_{kind.closed}",
            count=kind.regular,
            low=catalogue.format_exact(kind.low),
            high=catalogue.format_exact(kind.high),
        )
    else:
        cells = catalogue.say("kind_coded", last=str(kind.regular - 1))
    return catalogue.say(
        "rule",
        name=name_attribute(name, catalogue),
        cells=cells,
        outside=catalogue.say(_row_policy_key(kind, kind.outside)),
        null=catalogue.say(_row_policy_key(kind, str(kind.null))),
    )


def _row_policy_key(kind: Kind, policy: str) -> str:
    """Return the key of the text on the effect of a policy on a row."""
    if policy == "drop" and kind.hidden:
        return "fate_hidden"
    return f"fate_{policy}"


def describe_measure(name: str, measure: Measure, catalogue: Catalogue = ENGLISH) -> str:
    """Return a sentence on column, bounds and unit of a measure."""
    if isinstance(measure, UnitCount):
        return catalogue.say(
            "measure_units_of" if measure.attributes else "measure_units",
            name=name,
            names=catalogue.join_names(
                [name_attribute(attribute, catalogue) for attribute in measure.attributes]
            ),
        )
    if isinstance(measure, UnitTotal):
        return catalogue.say(
            "measure_total_of" if measure.attributes else "measure_total",
            name=name,
            column=catalogue.quote(measure.column),
            names=catalogue.join_names([*measure.attributes]),
            low=catalogue.format_exact(measure.low),
            high=catalogue.format_exact(measure.high),
            unit=catalogue.format_exact(measure.unit),
        )
    if isinstance(measure, Weighted):
        weight = catalogue.quote(measure.weight.column)
        if isinstance(measure.of, ValueCount):
            return catalogue.say("measure_weights", name=name, weight=weight)
        factor = catalogue.quote(measure.of.column)
        return catalogue.say("measure_weighted", name=name, of=factor, weight=weight)
    if isinstance(measure, SquaredDeviation):
        return catalogue.say(
            "measure_squares",
            name=name,
            column=catalogue.quote(measure.of.column),
            middle=catalogue.format_exact(measure.centre * measure.of.unit),
            unit=catalogue.format_exact(measure.unit),
        )
    if isinstance(measure, (CompleteCount, DeviationProduct)):
        return _describe_complete_rows(name, measure, catalogue)
    if isinstance(measure, ValueCount):
        return catalogue.say("measure_values", name=name, column=catalogue.quote(measure.column))
    low, high, unit = (
        catalogue.format_exact(value) for value in (measure.low, measure.high, measure.unit)
    )
    return catalogue.say(
        "measure", name=name, column=catalogue.quote(measure.column), low=low, high=high, unit=unit
    )


def _describe_complete_rows(
    name: str, measure: CompleteCount | DeviationProduct, catalogue: Catalogue
) -> str:
    """Return a sentence on a count of complete rows or a product of deviations."""
    columns = catalogue.join_names([catalogue.quote(of.column) for of in measure.present])
    if isinstance(measure, CompleteCount):
        return catalogue.say("measure_complete", name=name, columns=columns)
    distances = [
        catalogue.say(
            "distance_from_middle",
            column=catalogue.quote(of.column),
            middle=catalogue.format_exact(centre * of.unit),
        )
        for of, centre in zip(measure.factors, measure.centres, strict=True)
    ]
    return catalogue.say(
        "measure_deviations" if len(distances) == 1 else "measure_products",
        name=name,
        distances=catalogue.join_names(distances),
        columns=columns,
        unit=catalogue.format_exact(measure.unit),
    )


def list_dropped_rows(plan: Plan, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return sentences about the rows that all tables or some tables leave out."""
    names_in_no_table, names_of_some_tables = _list_dropping_attributes(plan)
    return [
        *_list_dropping_sentences("dropped", names_in_no_table, plan, catalogue),
        *_list_dropping_sentences("left_out_of_some", names_of_some_tables, plan, catalogue),
    ]


def _list_dropping_attributes(plan: Plan) -> tuple[list[str], list[str]]:
    """Return the attributes that drop rows from all tables, and from some only."""
    kinds = {name: plan.domain.kind(name) for name in plan.used()[0]}
    dropping = {name: kind for name, kind in kinds.items() if "drop" in (kind.null, kind.outside)}
    names_of_tables = set(chain.from_iterable(product.attributes for product in plan.workload))
    return (
        [name for name, kind in dropping.items() if not kind.hidden],
        [name for name, kind in dropping.items() if kind.hidden and name in names_of_tables],
    )


def _list_naming_sentence(
    text_key: str,
    attributes: Sequence[str],
    catalogue: Catalogue,
    *,
    are_alternatives: bool = False,
) -> list[str]:
    """Return a list with one sentence that names attributes.

    The list is empty if there are no names.

    If ``are_alternatives`` is True, the names are joined by "or" instead of "and".
    """
    if not attributes:
        return []
    named = [name_attribute(name, catalogue) for name in attributes]
    join = catalogue.join_alternatives if are_alternatives else catalogue.join_names
    return [catalogue.say(text_key, names=join(named))]


def _list_dropping_sentences(
    text_key: str, attributes: Sequence[str], plan: Plan, catalogue: Catalogue
) -> list[str]:
    """Return sentences that group attributes by the values that they drop."""
    kinds = {name: _dropped_values_suffix(plan.domain.kind(name)) for name in attributes}
    sentences = []
    for values in ("", "_missing", "_outside"):
        dropping = [name for name in attributes if kinds[name] == values]
        sentences += _list_naming_sentence(
            f"{text_key}{values}",
            dropping,
            catalogue,
            are_alternatives=text_key == "dropped",  # one of these values drops a row
        )
    return sentences


def _dropped_values_suffix(kind: Kind) -> str:
    """Return the suffix of text keys for the values that an attribute drops.

    The suffix is empty if both missing values and values outside are dropped.
    """
    if kind.null != "drop":
        return "_outside"
    if kind.outside != "drop":
        return "_missing"
    return ""


def describe_earlier(plan: LinearPlan, catalogue: Catalogue = ENGLISH) -> str:
    """Return sentences on the earlier releases that a plan builds on."""
    names = catalogue.join_names([release.name for release in plan.earlier])
    sentences = [catalogue.say("after", names=names), catalogue.say("after_bound")]
    if plan.privacy.unit_column is not None:
        sentences.append(catalogue.say("after_units"))
    return " ".join(sentences)


def describe_dropped_rows(release: Release, catalogue: Catalogue = ENGLISH) -> str:
    """Return sentences about the rows that tables leave out.

    The sentences state the estimated number of these rows if there is an estimate.
    """
    names_in_no_table, _ = _list_dropping_attributes(release.plan)
    estimates = [each for each in release.missing_rows if not math.isnan(each.rows)]
    sentences = [
        *_list_dropping_sentences("dropped", names_in_no_table, release.plan, catalogue),
        *_list_dropping_sentences(
            "left_out_of_some", _attributes_without_row_counts(release), release.plan, catalogue
        ),
    ]
    if sentences and release.receipt.guard is None:
        sentences.append(catalogue.say("dropped_unmeasured"))
    sentences += _list_suppressed_rows(release, catalogue)
    if estimates:
        sentences.append(_list_missing_rows(release.plan, estimates, catalogue))
    return " ".join(sentences) or catalogue.say("not_dropped")


def _attributes_without_row_counts(release: Release) -> list[str]:
    """Return the attributes whose tables leave out an unmeasured number of rows."""
    _, names_of_some_tables = _list_dropping_attributes(release.plan)
    measured_names = {each.attribute for each in release.missing_rows}
    return [name for name in names_of_some_tables if name not in measured_names]


def _list_suppressed_rows(release: Release, catalogue: Catalogue) -> list[str]:
    """Return sentences about omitted rows whose number is suppressed."""
    names = [each.attribute for each in release.missing_rows if math.isnan(each.rows)]
    sentences = _list_dropping_sentences("left_out_of_some", names, release.plan, catalogue)
    if sentences:
        _, bound = rounding_rule(release.options)
        below = catalogue.format_value(bound)
        sentences.append(catalogue.say("dropped_suppressed", below=below))
    return sentences


def describe_rows_of_unknown_number(release: Release, catalogue: Catalogue = ENGLISH) -> str | None:
    """Return sentences about omitted rows that have no published number, or None."""
    names = _attributes_without_row_counts(release)
    sentences = _list_dropping_sentences("left_out_of_some", names, release.plan, catalogue)
    if sentences:
        sentences.append(catalogue.say("dropped_unmeasured"))
    sentences += _list_suppressed_rows(release, catalogue)
    return " ".join(sentences) or None


def describe_missing_rows(
    release: Release, catalogue: Catalogue = ENGLISH, least_share: float = 0.0
) -> str | None:
    """Return a sentence about rows that tables certainly leave out, or None.

    The sentence names the attributes with the most omitted rows. The result is None if noise can
    explain all numbers. If no rows are omitted, at most a share ``1 - level`` of releases has the
    sentence.

    Args:
        release: the release whose measurements determine the numbers.
        catalogue: the catalogue of the language.
        least_share: a share of the rows. The result is None unless the tables of some attribute
            certainly leave out more than this share.
    """
    missing = [each for each in release.missing_rows if each.rows > each.joint_margin]
    if not any(each.rows - each.joint_margin > least_share * each.all_rows for each in missing):
        return None
    most_missing = sorted(missing, key=lambda each: -each.rows)[:_MOST_LISTED_TABLES]
    return _list_missing_rows(release.plan, most_missing, catalogue)


def _list_missing_rows(plan: Plan, estimates: Sequence[MissingRows], catalogue: Catalogue) -> str:
    """Return a sentence with the number of omitted rows for each attribute."""
    counts = [
        catalogue.say(
            "missing_rows_of",
            rows=catalogue.format_number(max(each.rows, 0.0)),
            margin=catalogue.format_error(each.margin),
            all=catalogue.format_number(each.all_rows),
            name=name_attribute(each.attribute, catalogue),
        )
        for each in estimates
    ]
    values = {_dropped_values_suffix(plan.domain.kind(each.attribute)) for each in estimates}
    key = "missing_rows"
    if len(values) == 1:
        key += values.pop()
    return catalogue.say(key, counts=catalogue.join_names(counts))


def list_clipped_values(release: Release, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return sentences about the clipped values of attributes and measures."""
    domain = release.plan.domain
    workload_attributes = set(
        chain.from_iterable(product.attributes for product in release.workload.products)
    )
    clipped = [
        name
        for name in domain.names
        if name in workload_attributes and domain.kind(name).outside == "clip"
    ]
    in_steps = [name for name in clipped if _takes_nearest_value(domain.kind(name))]
    return [
        *_list_naming_sentence("clipped", clipped, catalogue),
        *_list_naming_sentence("clipped_between", in_steps, catalogue),
        *list_measure_values(release.plan.workload, catalogue),
        *list_values_beyond_bounds(release, catalogue),
    ]


def list_values_beyond_bounds(
    release: Release, catalogue: Catalogue = ENGLISH, least_share: float | None = None
) -> list[str]:
    """Return sentences on how many values the bounds of measures clip.

    Without a least share, a sentence also names the measures whose number is unknown.

    Args:
        release: the release.
        catalogue: the catalogue of the language.
        least_share: if stated, only those measures have a sentence for which more than this share
            of rows is beyond one of the bounds.
    """
    workload = release.plan.workload
    by_measure: dict[str, list[ClippedValues]] = {name: [] for name in clipped_measures(workload)}
    for estimate in release.clipped_values:
        by_measure[estimate.measure].append(estimate)
    sentences = []
    unknown_names = []
    for name, estimates in by_measure.items():
        if least_share is not None and not any(
            each.is_beyond and each.share > least_share for each in estimates
        ):
            continue
        display_name = name_measure(workload.domain, name, catalogue)
        if not estimates:
            unknown_names.append(display_name)
            continue
        counts = [_describe_outer_rows(release, each, catalogue) for each in estimates]
        sentences.append(
            catalogue.say(
                "values_beyond_bounds",
                name=display_name,
                all=catalogue.format_number(estimates[0].all_rows),
                counts=catalogue.join_names(counts),
            )
        )
    if unknown_names:
        names = catalogue.join_names(unknown_names)
        sentences.append(catalogue.say("values_beyond_unknown", names=names))
    return sentences


def measures_with_clipping(release: Release) -> frozenset[str]:
    """Return the measures with many or an unknown number of clipped values."""
    estimates_of: dict[str, list[ClippedValues]] = {}
    for estimate in release.clipped_values:
        estimates_of.setdefault(estimate.measure, []).append(estimate)
    return frozenset(
        name
        for name in clipped_measures(release.plan.workload)
        if name not in estimates_of
        or any(each.is_beyond and each.share > _FEW_CLIPPED_SHARE for each in estimates_of[name])
    )


def _describe_outer_rows(release: Release, estimate: ClippedValues, catalogue: Catalogue) -> str:
    """Return a phrase with the number of values at or beyond a bound.

    If no cell lies beyond the bound, the outermost cell limits this number.
    """
    side = "above" if estimate.is_upper else "below"
    value = estimate.value
    if not estimate.is_beyond:
        key = f"values_{side}"
        value = estimate.bound
    elif not estimate.counts_value:
        key = f"values_{side}"
    else:
        key = "values_from" if estimate.is_upper else "values_up_to"
    if math.isnan(estimate.rows):
        _, bound = rounding_rule(release.options)
        phrase = catalogue.say(
            f"{key}_few", below=catalogue.format_value(bound), value=catalogue.format_exact(value)
        )
    else:
        phrase = catalogue.say(
            key if estimate.is_beyond else f"{key}_at_most",
            rows=catalogue.format_number(max(estimate.rows, 0.0)),
            margin=catalogue.format_error(estimate.margin),
            share=catalogue.format_percent(estimate.share, 2),
            value=catalogue.format_exact(value),
        )
    if estimate.is_beyond and estimate.has_divided_cell:
        bound_text = catalogue.format_exact(estimate.bound)
        return catalogue.say("values_without_divided", values=phrase, bound=bound_text)
    return phrase


def _takes_nearest_value(kind: Kind) -> bool:
    """Return whether numbers between two values of a kind go to the nearest one."""
    return isinstance(kind, Decimals) or (isinstance(kind, Integers) and kind.rounding is None)


def list_measure_values(workload: Workload, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return a sentence for each measure on how its values are read.

    The sentence states the bounds of the clipped values, and how a row without a value counts.
    """
    measures = workload.domain.measures
    averaged: set[Measure] = set()
    for statistic in workload.statistics:
        if statistic.form.of_measure:
            for variable in statistic.variables:
                averaged.update(column_measures(measures[variable]))
    sentences = []
    for name, measure in clipped_measures(workload).items():
        low, high = (catalogue.format_exact(value) for value in (measure.low, measure.high))
        sentences.append(
            catalogue.say(
                "clipped_means" if measure in averaged else "clipped_sums",
                name=name_measure(workload.domain, name, catalogue),
                low=low,
                high=high,
            )
        )
    for statistic in workload.statistics:
        if statistic.form.of_several:
            names = [name_measure(workload.domain, name, catalogue) for name in statistic.variables]
            sentences.append(
                catalogue.say(
                    "complete_rows",
                    statistic=name_statistic(statistic, workload.domain, catalogue),
                    names=catalogue.join_names(names),
                )
            )
    for name in sorted({str(product.measure) for product in workload.products}):
        total = measures.get(name)
        if isinstance(total, UnitTotal):
            sentences.append(
                catalogue.say(
                    "clipped_totals_of" if total.attributes else "clipped_totals",
                    name=name,
                    names=catalogue.join_names([*total.attributes]),
                    low=catalogue.format_exact(total.low),
                    high=catalogue.format_exact(total.high),
                )
            )
    return sentences


def list_sum_contributions(workload: Workload, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return sentences on measures and on a row's largest contribution to sums.

    The noise must hide this contribution. Sums that only serve a statistic have no sentence.
    """
    measures = workload.domain.measures
    summed = sorted({str(product.measure) for product in workload.products if product.of_values})
    contributions = {
        name: catalogue.format_exact(measures[name].largest * measures[name].unit)
        for name in summed
        if not isinstance(measures[name], DeviationProduct)
    }
    sentences = [*list_measure_values(workload, catalogue)]
    for name, text in contributions.items():
        key = "row_adds"
        if isinstance(measures[name], UnitTotal):
            key = "unit_adds"
        display_name = name_summed(workload.domain, name, catalogue)
        sentences.append(catalogue.say(key, name=display_name, most=text))
    return [*dict.fromkeys(sentences)]


def has_row_limit(release: Release, product: Product | None = None) -> bool:
    """Return whether the row limit of units drops rows of a table, or of any.

    Counts of units and totals of units use all rows of a unit; they have a limit on the unit's
    cells instead.
    """
    if release.privacy.unit_column is None or release.plan.details.counts_unit_sizes:
        return False
    products = release.workload.products if product is None else (product,)
    return not all(product.is_per_unit for product in products)


def describe_row_limit(
    release: Release, catalogue: Catalogue = ENGLISH, product: Product | None = None
) -> str:
    """Return a phrase on the row limit of a unit, or "" without a limit.

    The phrase is about one table, or about all tables that have a limit.
    """
    if not has_row_limit(release, product):
        return ""
    return format_row_limit(release.privacy, release.receipt.guard, release.level, catalogue)


def describe_row_limit_of_answers(release: Release, catalogue: Catalogue = ENGLISH) -> str:
    """Return a sentence on answers that a row limit affects; "" without a limit."""
    row_limit = describe_row_limit(release, catalogue)
    if not row_limit:
        return ""
    has_all = all(has_row_limit(release, product) for product in release.workload)
    return catalogue.say("beyond" if has_all else "beyond_rows", of=row_limit)


def describe_cut_rows(release: Release, catalogue: Catalogue = ENGLISH) -> str | None:
    """Return sentences on how the row limit of units affects answers, or None.

    The sentences state the estimated share of the rows beyond the limit. The result is None without
    a limit.
    """
    privacy = release.privacy
    guard = release.receipt.guard
    if not has_row_limit(release):
        return None
    cut_share = estimate_cut_share(guard, release.level)
    parts = [catalogue.say_count("cut", privacy.max_rows, **name_unit(privacy, catalogue))]
    if cut_share is not None:
        share, low, high = (catalogue.format_percent(round(value, 2)) for value in cut_share)
        key = "cut_share" if cut_share.low > 0 else "cut_share_hidden"
        parts.append(catalogue.say(key, share=share, low=low, high=high))
    else:
        is_counted = guard is not None and guard.cut is not None
        parts.append(catalogue.say("cut_hidden" if is_counted else "cut_unpublished"))
    return " ".join([*parts, *_list_further_limits(release, catalogue)])


def describe_cut_cells(release: Release, catalogue: Catalogue = ENGLISH) -> str | None:
    """Return sentences on counts of units that omit cells of a unit, or None.

    A unit is counted in at most ``max_rows`` cells of a table. The result is None if no table has
    more cells than this. If rows are also limited, `describe_cut_rows` states the further limits.
    """
    most = release.privacy.max_rows
    products = [
        product
        for product in release.workload
        if product.counts_units_in_cells and product.rows > most
    ]
    if not products:
        return None
    values = {
        "names": _join_table_names(products, catalogue),
        **name_unit(release.privacy, catalogue),
    }
    limit = catalogue.say_count("units_limited", most, **values)
    if has_row_limit(release):
        return limit
    return " ".join([limit, *_list_further_limits(release, catalogue)])


def _list_further_limits(release: Release, catalogue: Catalogue) -> list[str]:
    """Return the sentences on limits within cells and over periods."""
    privacy = release.privacy
    sentences = []
    if has_series_limit(release.plan):
        sentences.append(catalogue.say("cut_series", **name_unit(privacy, catalogue)))
    cell_limit = privacy.max_per_cell
    if cell_limit is not None:
        names = catalogue.join_names(
            [name_attribute(name, catalogue) for name in cell_limit.attributes]
        )
        sentences.append(catalogue.say_count("cut_cell", cell_limit.rows, names=names))
        # Under Laplace noise all rows of a unit count, so the limit saves nothing.
        if release.measurements.noise.norm == 2:
            sentences.append(catalogue.say("cut_cell_saves"))
    return sentences


def _join_table_names(products: Sequence[Product], catalogue: Catalogue) -> str:
    """Return the attributes of tables as a list in one text, shortened if long."""
    tables = [
        " x ".join(name_attribute(name, catalogue) for name in product.attributes)
        for product in products
    ]
    distinct_names = list(dict.fromkeys(filter(None, tables)))
    return catalogue.join_names(_shorten_list(distinct_names))


def _shorten_list(names: list[str]) -> list[str]:
    """Return the first names, followed by "..." if there are more."""
    if len(names) <= _MOST_LISTED_TABLES:
        return names
    return [*names[:_MOST_LISTED_TABLES], "..."]


def list_cut_amounts(
    release: Release, catalogue: Catalogue = ENGLISH, least_share: float | None = None
) -> list[str]:
    """Return a sentence for each total of units: how much of it the limits cut.

    Args:
        release: the release; its receipt may contain amounts that the guard measured.
        catalogue: the catalogue of the language.
        least_share: if stated, a total has no sentence if the estimated share that was cut is at
            most this.
    """
    domain = release.plan.domain
    guard = release.receipt.guard
    names = dict.fromkeys(
        str(product.measure)
        for product in release.workload
        if product.of_values and product.is_per_unit
    )
    sentences = []
    for name in names:
        total = domain.measure(name)
        display_name = name_summed(domain, name, catalogue)
        values = {
            "name": display_name,
            "low": catalogue.format_exact(total.low),
            "high": catalogue.format_exact(total.high),
            **name_unit(release.privacy, catalogue),
        }
        limit = catalogue.say_count("amount_cells", release.privacy.max_rows, **values)
        cut = estimate_cut_amount(guard, name, release.level)
        if least_share is not None and cut is not None and cut.share <= least_share:
            continue
        if cut is not None:
            share, low_share, high_share = (
                catalogue.format_percent(round(value, 2)) for value in cut
            )
            shares = {"share": share, "low_share": low_share, "high_share": high_share}
            finding = catalogue.say("amount_cut", name=display_name, **shares)
        elif guard is not None and guard.amounts:
            finding = catalogue.say("amount_hidden", name=display_name)
        else:
            finding = catalogue.say("amount_unpublished", name=display_name)
        sentences.append(f"{limit} {finding}")
    return sentences


def has_series_limit(plan: Plan) -> bool:
    """Return whether a series limits the rows of a unit over all periods.

    With such a limit, rows of a unit in later periods count only until the limit is reached.
    """
    privacy = plan.privacy
    if not isinstance(plan, SeriesPlan) or privacy.unit_column is None:
        return False
    bound = privacy.max_per_cell
    periods = plan.series.periods or plan.domain.cells(plan.series.along)
    return bound is None or bound.rows * periods > privacy.max_rows


def describe_guard_counts(
    release: Release, catalogue: Catalogue = ENGLISH, least_unused_share: float | None = None
) -> str | None:
    """Return a sentence with the guard's noisy counts of rows, or None.

    There are two counts: the rows within the row limit (all read rows, if each row is a unit), and
    the rows that some table uses. The result is None without a guard.

    If noise makes the second count the larger one, the sentence also states it as the first count.
    A note follows if it is certain that at least about one percent of the rows were not used.

    Args:
        release: the release whose receipt has the counts.
        catalogue: the catalogue of the language.
        least_unused_share: if stated, the result is None unless certainly more than this share of
            the rows was unused.
    """
    guard = release.receipt.guard
    privacy = release.privacy
    if guard is None:
        return None
    reach = interval_multiplier(Noise.DISCRETE_LAPLACE, release.level) * guard.noise_std
    kept_rows = guard.kept
    surely_unused = kept_rows - guard.used - reach - 0.5
    if least_unused_share is not None and not surely_unused > least_unused_share * kept_rows:
        return None
    values = {
        "kept": catalogue.format_number(float(max(kept_rows, guard.used))),
        "used": catalogue.format_number(float(guard.used)),
        "kept_margin": catalogue.format_error(math.sqrt(2) * reach + 0.5),
        "used_margin": catalogue.format_error(reach + 0.5),
    }
    if privacy.unit_column is None:
        sentence = catalogue.say("guard", **values)
    else:
        unit_name = name_unit(privacy, catalogue)
        sentence = catalogue.say_count("guard_kept", privacy.max_rows, **unit_name, **values)
    if unused_row_share(release):
        return f"{sentence} {_describe_unused_share('guard_few', release, catalogue)}"
    return sentence


def _describe_unused_share(text_key: str, release: Release, catalogue: Catalogue) -> str:
    """Return a sentence with the share of unused rows and an interval for it.

    The sentence contains no number if the noise of the guard hides the share.
    """
    if _has_summed_values(release):
        text_key = f"{text_key}_sums"
    estimated = estimate_unused_share(release.receipt.guard, release.level)
    if estimated is None:
        return catalogue.say(f"{text_key}_hidden")
    low, high = (catalogue.format_percent(round(end, 2)) for end in (estimated.low, estimated.high))
    percent = catalogue.format_percent(unused_row_share(release))
    return catalogue.say(text_key, percent=percent, low=low, high=high)


def _has_summed_values(release: Release) -> bool:
    """Return whether the guard counts rows without a number to sum as unused."""
    domain = release.plan.domain
    measures = filter(None, release.plan.workload.measures)
    return any(not isinstance(domain.measure(name), UnitCount) for name in measures)


def unused_row_share(release: Release) -> float:
    """Return the guard's share of rows that no table uses; 0 if it is uncertain.

    The share is 0 if there was no guard, or if noise can explain the difference of the counts.
    """
    guard = release.receipt.guard
    if guard is None:
        return 0.0
    unused_rows = guard.kept - guard.used
    multiplier = interval_multiplier(Noise.DISCRETE_LAPLACE, release.level)
    if not unused_rows > multiplier * guard.noise_std + 0.5:
        return 0.0
    return max(0.0, round(min(1.0, unused_rows / max(guard.kept, 1)), 2))


def keys_of_parts(workload: Workload) -> set[tuple[object, ...]]:
    """Return the keys of the tables from which statistics are computed."""
    tables = chain.from_iterable(map(workload.tables_of, workload.statistics))
    return {product.table_key for product in tables}


def has_weights(release: Release) -> bool:
    """Return whether any table of a release is weighted, as in surveys."""
    return is_weighted(release.plan.workload)


def is_weighted(workload: Workload) -> bool:
    """Return whether any table or statistic of a workload is weighted."""
    if any(statistic.weighted_by is not None for statistic in workload.statistics):
        return True
    measures = filter(None, workload.measures)
    return any(isinstance(workload.domain.measure(name), Weighted) for name in measures)


def describe_unused_rows(release: Release, catalogue: Catalogue = ENGLISH) -> str:
    """Return a sentence about unused rows, which margins omit, or ""."""
    if not unused_row_share(release):
        return ""
    return _describe_unused_share("fit_unused", release, catalogue)


def describe_survey(release: Release, catalogue: Catalogue = ENGLISH) -> str:
    """Return sentences on sampling errors and flags; none without a survey."""
    survey = release.survey
    if survey is None:
        return ""
    flags = survey.flags
    return catalogue.say(
        "survey_suppressed" if flags.suppress else "survey",
        rules=catalogue.join_names(_list_survey_rules(survey, catalogue)),
        percent=catalogue.format_percent(release.level),
        caution=catalogue.format_percent(flags.caution),
        unreliable=catalogue.format_percent(flags.unreliable),
    )


def _list_survey_rules(survey: Survey, catalogue: Catalogue) -> list[str]:
    """Return the display name of each kind of sampling rule in a survey."""
    default = [] if survey.default is None else [survey.default]
    methods = [rule.method for rule in (*default, *survey.tables.values())]
    return [catalogue.say(f"rule_{method}") for method in dict.fromkeys(methods)]


def dropping_attributes(plan: Plan, product: Product) -> tuple[str, ...]:
    """Return the attributes whose missing or outside values a table leaves out.

    An attribute that drops a row drops it from all tables. The exception is an attribute with a
    hidden cell, which drops a row only from the tables that have the attribute.
    """
    kinds = {name: plan.domain.kind(name) for name in plan.used()[0]}
    return tuple(
        name
        for name, kind in kinds.items()
        if "drop" in (kind.outside, kind.null)
        and (name in product.attributes or not getattr(kind, "hidden", False))
    )


def describe_budget_reduction(release: Release, catalogue: Catalogue = ENGLISH) -> str | None:
    """Return a sentence on the budget spent on stopped releases' guards, or None.

    The result is None if there were no such guards.
    """
    earlier_budget = release.receipt.guard_reduced_from
    if earlier_budget is None:
        return None
    budget = release.privacy.budget
    name, size = next(iter(parameters_by_name(budget).items()))
    return catalogue.say(
        "guard_reduced",
        before=earlier_budget,
        now=f"{name.replace('_', ' ')} = {readable(size)}",
    )


def list_first_warnings(release: Release, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return the warnings that the report shows above all numbers.

    A warning appears in these cases: limits may have cut over a tenth of the rows, or of an amount;
    counts of units omit cells; over a tenth of the rows has a value beyond a bound of a sum, was
    not used, or is left out of some tables; or the number of omitted rows is unknown.
    """
    share = estimate_cut_share(release.receipt.guard, release.level)
    if share is None or share.share > MANY_ROWS_SHARE:
        cut = describe_cut_rows(release, catalogue)
    else:
        cut = None
    unused_rows = describe_guard_counts(release, catalogue, least_unused_share=MANY_ROWS_SHARE)
    missing = describe_missing_rows(release, catalogue, least_share=MANY_ROWS_SHARE)
    unmeasured = describe_rows_of_unknown_number(release, catalogue)
    return [
        *filter(None, [cut, describe_cut_cells(release, catalogue)]),
        *list_cut_amounts(release, catalogue, least_share=MANY_ROWS_SHARE),
        *list_values_beyond_bounds(release, catalogue, least_share=MANY_ROWS_SHARE),
        *filter(None, [unused_rows, missing, unmeasured]),
    ]


def describe_cuts(release: Release, catalogue: Catalogue = ENGLISH) -> str | None:
    """Return sentences about the rows and amounts that limits cut, or None.

    The result is None if the release has no limits.
    """
    cuts = [describe_cut_rows(release, catalogue), describe_cut_cells(release, catalogue)]
    sentences = [*filter(None, cuts), *list_cut_amounts(release, catalogue)]
    return " ".join(sentences) or None


def describe_intervals(release: Release, catalogue: Catalogue = ENGLISH) -> str:
    """Return sentences that explain how ``low`` and ``high`` are computed."""
    laplace = release.measurements.noise.norm == 1
    if laplace:
        quantile = "quantile_laplace"
    else:
        quantile = "quantile_normal"
    if noise_name(release.measurements) == "k_norm":
        quantile = "quantile_k_norm"
    values = {
        "times": catalogue.localize(f"{release.interval.multiplier:.4g}"),
        "reason": catalogue.say(quantile),
        "half": catalogue.localize(f"{release.interval.half_step:.4g}"),
        "percent": catalogue.format_percent(release.level),
    }
    sentences = [catalogue.say(release.finding.interval, **values)]
    step = rounding_rule(release.options)[0]
    if isinstance(release.options.round, Mapping):
        sentences.append(catalogue.say("interval_rounded_each"))
    elif step and release.options.is_controlled:
        reach = catalogue.format_value(step)
        sentences.append(catalogue.say("interval_controlled", step=reach))
    elif step:
        sentences.append(catalogue.say("interval_rounded", half=catalogue.format_value(step / 2)))
    if release.statistics.quantile_choices:
        sentences.append(catalogue.say("interval_selected"))
    if not release.finding.linear:
        agree = catalogue.say("reading_apart" if release.options.has_rounding else "reading_agree")
        sentences.append(
            catalogue.say(
                release.finding.reading,
                once=catalogue.localize(f"{release.interval.one_sided:.4g}"),
                agree=agree,
            )
        )
    return " ".join(sentences)


def describe_answers(release: Release, catalogue: Catalogue = ENGLISH) -> str:
    """Return sentences on fractions, negative numbers and additivity of answers."""
    options = release.options
    keys = []
    if not options.round:
        keys.append("reading_exact")
    if not options.below:
        keys.append("reading_negative")
    if options.has_rounding:
        keys.append("reading_apart")
    elif not any(product.has_hidden for product in release.workload):
        keys += ["reading_agree", "reading_sum"]
    else:
        keys += ["reading_agree_but", "reading_sum"]
    return " ".join(map(catalogue.say, keys))


def format_public_facts(plan: Plan, catalogue: Catalogue = ENGLISH) -> dict[str, str]:
    """Return texts on impossible cells and public counts by text key.

    Attributes and tables have their display names if the catalogue has names, and otherwise the
    names in files.
    """

    def list_cells(name: str, codes: Sequence[int]) -> str:
        """Return an attribute's display name with the labels of some cells, as text."""
        labels = [str(plan.domain.kind(name).labels[code]) for code in codes]
        if len(labels) > _MOST_LISTED_LABELS:
            labels = [*labels[: _MOST_LISTED_LABELS - 1], "...", labels[-1]]
        return f"{name_attribute(name, catalogue)} {', '.join(labels)}"

    public_tables = [table.product for table in public_counts_of_plan(plan)]
    if catalogue.names.is_empty:
        public_names = [product.name for product in public_tables]
    else:
        public_names = [table_title(product, catalogue) for product in public_tables]
    impossible = "; ".join(
        " x ".join(map(list_cells, cells, cells.values())) for cells in plan.details.impossible
    )
    is_linear = isinstance(plan, LinearPlan)
    facts = {
        "stated_impossible_top_down" if is_linear else "stated_impossible": impossible,
        "stated_public": "; ".join(public_names),
    }
    return {key: values for key, values in facts.items() if values}


def _noise_limit_key(options: Options) -> str:
    """Return the key of the sentence on errors that all intervals cover."""
    if options.survey:
        return "limit_noise_survey"
    return "limit_noise_rounded" if options.round else "limit_noise"


def list_uncovered_errors(release: Release, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return a sentence for each kind of error that intervals do not cover."""
    sentences = [catalogue.say(_noise_limit_key(release.options))]
    if not release.finding.linear:
        sentences = [catalogue.say("limit_aware")]
    sentences += list_uncovered_rows(release, catalogue)
    sentences.append(catalogue.say("limit_survey" if release.options.survey else "limit_sample"))
    if any(product.of_values for product in release.workload):
        sentences.append(catalogue.say("limit_sums"))
    sentences.append(
        catalogue.say(
            "limit_each", hundred=catalogue.localize(f"{round(100 * (1 - release.level), 4):g}")
        )
    )
    if release.options.has_biased_columns:
        sentences.append(describe_optional_columns(release, catalogue)[0])
    return sentences


def list_uncovered_rows(release: Release, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return a sentence for each kind of row or cell that intervals do not cover.

    These kinds are approximations of a mechanism, public facts, dropped rows, and rows beyond the
    row limit of units.
    """
    plan = release.plan
    privacy = plan.privacy
    domain = plan.domain
    sentences = []
    if not release.finding.linear:
        sentences += [
            catalogue.say(key, **values) for key, values in release.finding.uncovered_errors(domain)
        ]
    sentences += [
        catalogue.say(key, values=values)
        for key, values in format_public_facts(plan, catalogue).items()
    ]
    if list_dropped_rows(release.plan):
        sentences.append(
            f"{describe_dropped_rows(release, catalogue)} {catalogue.say('not_covered_dropped')}"
        )
    if has_row_limit(release):
        unit_names = name_unit(privacy, catalogue)
        cell_limit = privacy.max_per_cell
        if cell_limit is None:
            sentences.append(catalogue.say_count("limit_unit", privacy.max_rows, **unit_names))
        else:
            limit_values = {
                "count": privacy.max_rows,
                "rows": cell_limit.rows,
                "names": catalogue.join_names(
                    [name_attribute(name, catalogue) for name in cell_limit.attributes]
                ),
            }
            sentences.append(catalogue.say("limit_unit_cell", **unit_names, **limit_values))
    return sentences


def describe_large_table(release: Release, product: Product, catalogue: Catalogue = ENGLISH) -> str:
    """Return a sentence on the tables that replace a table that is too large.

    The sentence also explains how to compute the other answers of the large table.
    """
    products = release.plan.workload.products
    large = [
        position for position, candidate in enumerate(products) if is_too_large_to_write(candidate)
    ]
    position = next(
        position
        for position in large
        if products[position] is product or products[position] == product
    )
    cells = f"q{position + 1}"
    prefix = f"q{len(products) + large.index(position) + 1}"
    return catalogue.say(
        "large",
        name=table_title(product, catalogue),
        rows=product.rows,
        most=MOST_WRITTEN_ANSWERS,
        cells=cells,
        prefix=prefix,
    )


def describe_second_table(release: Release, catalogue: Catalogue = ENGLISH) -> str | None:
    """Return sentences on whether joined tables are protected, or None."""
    sentences = [
        catalogue.say(
            "joined_public" if table.public else "joined",
            table=table.table or "-",
            column=catalogue.quote(table.on),
        )
        for table in release.receipt.joined_tables
    ]
    if not sentences:
        return None
    return " ".join(sentences)


def list_answer_notices(release: Release, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return the notices that matter to readers of any answer.

    Their subjects are the row limit, counts of units and joined tables. The notices also hold for
    answers that are computed after the release.
    """
    unit_counts = [product for product in release.workload if product.of_units]
    unit_sentences = []
    if unit_counts:
        unit_sentences.append(catalogue.say("unit_is", **name_unit(release.privacy, catalogue)))
    for key, is_once_in_all in (("units_each", False), ("units_once", True)):
        counted_products = [
            product
            for product in unit_counts
            if (product.domain.measure(str(product.measure)) == UnitCount()) is is_once_in_all
        ]
        names = _join_table_names(counted_products, catalogue)
        if names:
            unit_sentences.append(catalogue.say(key, names=names))
    notices = [
        describe_cut_rows(release, catalogue),
        describe_cut_cells(release, catalogue),
        *list_cut_amounts(release, catalogue),
        " ".join(unit_sentences),
        describe_second_table(release, catalogue),
    ]
    return [notice for notice in notices if notice]


def list_further_notices(release: Release, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return the notices for answers that are computed after the release."""
    notices = []
    if not release.private:
        notices.append(catalogue.say("not_private"))
    notices += list_answer_notices(release, catalogue)
    notices += list_dropped_rows(release.plan, catalogue)
    if release.options.survey or has_weights(release):
        notices.append(catalogue.say("st_noise_only"))
    return notices


def list_file_notices(release: Release, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return the notices for readers of the files of a release.

    These are the notices of `list_page_notices`, and the notices on values beyond the bounds of
    sums.
    """
    return [
        *list_page_notices(release, catalogue),
        *list_values_beyond_bounds(release, catalogue),
    ]


def list_page_notices(release: Release, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return the notices for readers of the report, without clipped values.

    These are the notices of `list_answer_notices`, and notices on the budget, rounding, omitted
    rows and tables that are not written.
    """
    large = [describe_large_table(release, product, catalogue) for product in release.large_tables]
    return [
        *filter(
            None,
            [
                describe_budget_reduction(release, catalogue),
                describe_rounding(release.options, catalogue),
                describe_missing_rows(release, catalogue),
                describe_rows_of_unknown_number(release, catalogue),
            ],
        ),
        *list_non_additive_tables(release, catalogue),
        *list_answer_notices(release, catalogue),
        *large,
    ]


def list_non_additive_tables(release: Release, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return a list with a sentence that names non-additive tables.

    The list is empty if post-processing leaves all tables additive.
    """
    is_listed = {
        "answer_non_negative": release.options.non_negative,
        "answer_integer": release.options.integer,
    }
    columns = [name for name, is_chosen in is_listed.items() if is_chosen]
    tables = [*release.tables.not_additive] if columns else []
    if not tables:
        return []
    titles = {product.name: table_title(product, catalogue) for product in release.workload}
    tables = [titles.get(name, name) for name in release.tables.not_additive]
    if not catalogue.names.is_empty:
        tables = [catalogue.say("quoted", name=title) for title in tables]
    return [
        catalogue.say(
            "biased_disagree",
            columns=catalogue.join_names(columns),
            tables=catalogue.join_names(_shorten_list(tables)),
        )
    ]


def describe_optional_columns(release: Release, catalogue: Catalogue = ENGLISH) -> list[str]:
    """Return sentences that explain the biased columns of a release.

    The first sentence is about all biased columns; one or two sentences on each kind follow.
    """
    options = release.options
    is_chosen = {
        "answer_non_negative": options.non_negative,
        "answer_integer": options.integer,
        "answer_nnls": options.nnls,
        "answer_local": options.local_non_negative,
        "answer_top_down": options.top_down,
    }
    names = [name for name, is_listed in is_chosen.items() if is_listed]
    sentences = [catalogue.say_count("biased", len(names), columns=catalogue.join_names(names))]
    sentences += list_non_additive_tables(release, catalogue)
    if options.nnls:
        sentences.append(catalogue.say("biased_nnls"))
    if options.local_non_negative:
        sentences.append(catalogue.say("biased_local"))
    if options.top_down:
        sentences.append(catalogue.say("biased_top_down"))
    return sentences
