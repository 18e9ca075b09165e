"""What a release says about itself in sentences: the promise, the noise, the intervals and their limits. Manifest and report share them.

The sentences stand in the catalogue; here is decided which of them is said, and with which numbers.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from leastnoise._accounting import ZCDP, ApproxDP, Cost, GaussianCost, Noise, Privacy, PureDP, SeriesCost, parameters
from leastnoise._accuracy import interval_multiplier
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
    UnitCount,
    ValueCount,
    Weighted,
    parts,
)
from leastnoise._estimate import public_of
from leastnoise._fitting import zcdp_epsilon
from leastnoise._plan import Plan
from leastnoise._release._options import MOST_WRITTEN, exact_rule, is_large, rounding_words
from leastnoise._release._release import Release
from leastnoise._release._texts import ENGLISH, MANY, Texts, cut_share, limit_words, table_words
from leastnoise._workload import Product, Workload

_COMMON_DELTA = Fraction(1, 10**9)
_MOST_SAID = 5  # labels in a sentence
_MOST_NAMED = 6  # tables in a sentence
_DEFINITIONS = {PureDP: "pure", ApproxDP: "approximate", ZCDP: "concentrated"}


def definition(privacy: Privacy, said: Texts = ENGLISH) -> tuple[str, dict[str, str]]:
    """Name and exact parameters of the definition of privacy."""
    budget = privacy.budget
    return said.say(_DEFINITIONS[type(budget)]), {name: str(number) for name, number in parameters(budget).items()}


def budget_words(privacy: Privacy, said: Texts = ENGLISH) -> str:
    """The budget, short."""
    return ", ".join(f"{name} = {said.plain(number)}" for name, number in parameters(privacy.budget).items())


def change(privacy: Privacy, said: Texts = ENGLISH) -> str:
    """What two neighbouring tables differ by, as a clause."""
    if privacy.unit_column is None:
        return said.say(f"change_row_{privacy.neighbours}")
    return said.some(f"change_unit_{privacy.neighbours}", privacy.max_rows, column=repr(privacy.unit_column))


def promise(privacy: Privacy, said: Texts = ENGLISH) -> str:
    """What the budget means, in one sentence."""
    budget, values = privacy.budget, dict[str, object](parameters(privacy.budget))
    if isinstance(budget, ZCDP):
        values |= {"epsilon": said.local(f"{float(zcdp_epsilon(budget.rho, _COMMON_DELTA)):.3g}"), "delta": _COMMON_DELTA}
    else:
        values["times"] = said.say("over_10_300")
        if budget.epsilon < 700:
            times = math.exp(float(budget.epsilon))
            values["times"] = said.local(f"{times:.3g}" if times < 1000 else f"{times:,.0f}" if times < 1e6 else f"{times:.2g}")
    return said.say(f"promise_{_DEFINITIONS[type(budget)]}", change=change(privacy, said), **values)


def bet(privacy: Privacy) -> float:
    """The largest chance to tell two neighbouring tables apart by the results, if both are as likely beforehand."""
    budget = privacy.budget
    if isinstance(budget, ZCDP):
        rho = float(budget.rho)
        return (1 + min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))) / 2
    smaller, delta = math.exp(-float(budget.epsilon)), float(budget.delta) if isinstance(budget, ApproxDP) else 0.0
    return min(1.0, (1 + delta * smaller) / (1 + smaller))


def bet_words(privacy: Privacy, said: Texts = ENGLISH) -> str:
    """What the budget means for somebody who bets, in one sentence without formulas."""
    share = math.ceil(100 * bet(privacy) - 1e-9)
    unit = "row" if privacy.unit_column is None else "unit"
    difference = said.say(f"bet_{unit}_{privacy.neighbours}", column=repr(privacy.unit_column))
    if share > 99:
        return said.say("protects_little", change=difference)
    return said.say("protects_delta" if isinstance(privacy.budget, ApproxDP) else "protects", change=difference, share=share)


def cost_words(cost: Cost, said: Texts = ENGLISH) -> str:
    """What the plan really spends, as computed from its integer queries."""
    if isinstance(cost, GaussianCost):
        return said.say("gaussian_cost", value=cost.mu_squared)
    if isinstance(cost, SeriesCost):
        return str(cost)
    return ", ".join(f"{name} = {said.plain(number)}" for name, number in parameters(cost).items())


def goodness(plan: Plan) -> float | None:
    """How many times the least possible error the plan's error is: the root of the total of squared errors over its lower bound."""
    return None if plan.promise is None else plan.promise.times_least


def domain_words(name: str, kind: Kind, said: Texts = ENGLISH) -> str:
    """Which values of a column are counted where, and what happens to all others."""
    if isinstance(kind, Categories):
        cells = said.say("kind_categories", count=len(kind.values))
    elif isinstance(kind, Integers):
        key = f"kind_integers_{kind.rounding}" if kind.rounding else "kind_integers"
        cells = said.say(key, low=str(kind.low), high=str(kind.high))
    elif isinstance(kind, Dates):
        by = said.say(f"by_{kind.by}")
        cells = said.say("kind_dates", start=kind.start.isoformat(), end=kind.end.isoformat(), by=by, zone=kind.zone)
    elif isinstance(kind, Decimals):
        cells = said.say("kind_decimals", low=said.exact(kind.low), high=said.exact(kind.high), step=said.exact(kind.step))
    elif isinstance(kind, (Bins, Edges)):
        key = "kind_bins" if isinstance(kind, Bins) else "kind_edges"
        cells = said.say(f"{key}_{kind.closed}", count=kind.regular, low=said.exact(kind.low), high=said.exact(kind.high))
    else:
        cells = said.say("kind_coded", last=str(kind.regular - 1))
    return said.say("rule", name=name, cells=cells, outside=said.say(f"fate_{kind.outside}"), null=said.say(f"fate_{kind.null}"))


def measure_words(name: str, measure: Measure, said: Texts = ENGLISH) -> str:
    """What is summed, or how units are counted."""
    if isinstance(measure, UnitCount):
        return said.say("measure_units_of" if measure.attributes else "measure_units", name=name, names=said.listed([*measure.attributes]))
    if isinstance(measure, Weighted):
        of = "1" if isinstance(measure.of, ValueCount) else repr(measure.of.column)
        return said.say("measure_weighted", name=name, of=of, weight=repr(measure.weight.column))
    if isinstance(measure, ValueCount):
        return said.say("measure_values", name=name, column=repr(measure.column))
    low, high, unit = (said.exact(value) for value in (measure.low, measure.high, measure.unit))
    return said.say("measure", name=name, column=repr(measure.column), low=low, high=high, unit=unit)


def drops(domain: Domain) -> bool:
    """Whether some value or null makes a row disappear."""
    return any("drop" in (domain.kind(name).outside, domain.kind(name).null) for name in domain.names)


def dropped_words(release: Release, said: Texts = ENGLISH) -> str:
    """Whether rows are missing from the release, and that nobody counted them where there was no guard."""
    if not drops(release.plan.domain):
        return said.say("not_dropped")
    return said.say("dropped") + ("" if "guard_used" in release.receipt else f" {said.say('dropped_unmeasured')}")


def clipped(release: Release, said: Texts = ENGLISH) -> list[str]:
    """Of which attributes values beyond the public bounds were counted at the nearest bound, and of which values sums and means are."""
    domain = release.plan.domain
    asked = {name for product in release.workload.products for name in product.attributes}
    names = [name for name in domain.names if name in asked and domain.kind(name).outside == "clip"]
    return [*([said.say("clipped", names=said.listed(names))] if names else []), *values_words(release.plan.workload, said)]


def values_words(workload: Workload, said: Texts = ENGLISH) -> list[str]:
    """Of which values the sums and means of a workload are, and how a row without a value counts: a sentence for every measure."""
    known, summed = workload.domain.measures, sorted({str(product.measure) for product in workload.products if product.of_values})
    columns = {part: name for name in summed for part in parts(known[name]) if type(part) is Measure}
    averaged = {part for statistic in workload.statistics if statistic.form.of_measure for part in parts(known[statistic.of])}
    sentences = []
    for measure, name in columns.items():
        low, high = (said.exact(value) for value in (measure.low, measure.high))
        named = next((known_as for known_as, declared in known.items() if declared == measure), name)
        sentences.append(said.say("clipped_means" if measure in averaged else "clipped_sums", name=named, low=low, high=high))
    return sentences


def sums_words(workload: Workload, said: Texts = ENGLISH) -> list[str]:
    """The same with what it costs that a row may add as much as the bounds of a measure, or of a weight, allow."""
    known, summed = workload.domain.measures, sorted({str(product.measure) for product in workload.products if product.of_values})
    most = {name: said.exact(known[name].largest * known[name].unit) for name in summed}
    return [*values_words(workload, said), *(said.say("row_adds", name=name, most=text) for name, text in most.items())]


def of_words(release: Release, said: Texts = ENGLISH) -> str:
    """Of which rows the answers are, short; empty where each row is a unit."""
    return limit_words(release.privacy, release.receipt, release.level, said)


def cut_words(release: Release, said: Texts = ENGLISH) -> str | None:
    """What a limit on the rows of a unit does to all answers, and about how many rows it cut; None if there is none."""
    privacy, cut = release.privacy, cut_share(release.receipt, release.level)
    if privacy.unit_column is None:
        return None
    words = [said.some("cut", privacy.max_rows, column=repr(privacy.unit_column))]
    if cut is not None:
        share, low, high = (said.percent(round(value, 2)) for value in cut)
        words.append(said.say("cut_share", share=share, low=low, high=high))
    else:
        words.append(said.say("cut_hidden" if "guard_cut" in release.receipt else "cut_unpublished"))
    if (bound := privacy.max_per_cell) is not None:
        words.append(said.some("cut_cell", bound.rows, names=said.listed([*bound.attributes])))
        words += [said.say("cut_cell_saves")] if release.measurements.noise.norm == 2 else []  # under Laplace noise all rows count
    return " ".join(words)


def guard_words(release: Release, said: Texts = ENGLISH, unused_over: float | None = None) -> str | None:
    """The noisy counts of rows kept (all that were read, where each is a unit) and used, if there are any; they were paid for.

    No more rows are used than were kept: where noise has made it so, the count of those used is the best known of both. Where surely some
    rows are not used, and about a percent at least, it says so, from the same counts. None also where not surely more than a share are.
    """
    receipt, privacy = release.receipt, release.privacy
    if "guard_used" not in receipt:
        return None
    # rows kept were called read once, in releases that may still be resumed
    names = ("guard_kept" if "guard_kept" in receipt else "guard_read", "guard_used", "guard_noise_std")
    kept, used, std = (float(receipt[name]) for name in names)
    times = interval_multiplier(Noise.DISCRETE_LAPLACE, release.level)
    surely = kept - used - times * std - 0.5
    if unused_over is not None and not surely > unused_over * kept:
        return None
    values = {"kept": said.number(max(kept, used)), "used": said.number(used)}
    values |= {"kept_margin": said.error(times * math.sqrt(2) * std + 0.5), "used_margin": said.error(times * std + 0.5)}
    key = "guard" if privacy.unit_column is None else "guard_kept_one" if privacy.max_rows == 1 else "guard_kept_many"
    words = said.say(key, count=privacy.max_rows, column=repr(privacy.unit_column), **values)
    unused = round(min(1.0, (kept - used) / max(kept, 1)), 2)
    return f"{words} {said.say('guard_few', percent=said.percent(unused))}" if unused > 0 and surely > 0 else words


def first_words(release: Release, said: Texts = ENGLISH) -> list[str]:
    """What is said before any number: of which rows they are, where a limit may have cut over a tenth or values drop as many."""
    share = cut_share(release.receipt, release.level)
    cut = cut_words(release, said) if share is None or share.share > MANY else None
    return [*filter(None, [cut, guard_words(release, said, unused_over=MANY)])]


def interval_words(release: Release, said: Texts = ENGLISH) -> str:
    """How ``low`` and ``high`` come about."""
    laplace = release.measurements.noise.norm == 1
    values = {
        "times": said.local(f"{release.interval.multiplier:.4g}"),
        "reason": said.say("quantile_laplace" if laplace else "quantile_normal"),
        "half": said.local(f"{release.interval.half_step:.4g}"),
        "percent": said.percent(release.level),
    }
    step, sentences = exact_rule(release.options)[0], [said.say(release.finding.interval, **values)]
    if step:
        sentences.append(said.say("interval_rounded", half=said.plain(step / 2)))
    if not release.finding.linear:
        agree = said.say("reading_apart" if release.options.rounds else "reading_agree")
        sentences.append(said.say(release.finding.reading, once=said.local(f"{release.interval.one_sided:.4g}"), agree=agree))
    return " ".join(sentences)


def reading_words(release: Release, said: Texts = ENGLISH) -> str:
    """How answers by least squares are read: whether they are rounded, may be below zero, and agree."""
    options = release.options
    sentences = ["reading_exact"] * (not options.round) + ["reading_negative"] * (not options.below)
    return " ".join(map(said.say, [*sentences, *(["reading_apart"] if options.rounds else ["reading_agree", "reading_sum"])]))


def stated_words(plan: Plan) -> dict[str, str]:
    """By their sentence, what a spec states of cells, which is not protected."""

    def cells(name: str, codes: Sequence[int]) -> str:
        labels = [str(plan.domain.kind(name).labels[code]) for code in codes]
        return f"{name} " + ", ".join(labels if len(labels) <= _MOST_SAID else [*labels[: _MOST_SAID - 1], "...", labels[-1]])

    never = "; ".join(" x ".join(map(cells, each, each.values())) for each in plan.details.get("impossible", ()))
    stated = {"stated_impossible": never, "stated_public": "; ".join(table.product.name for table in public_of(plan))}
    return {key: values for key, values in stated.items() if values}


def limits(release: Release, said: Texts = ENGLISH) -> list[str]:
    """What the intervals do not cover."""
    plan = release.plan
    privacy, domain = plan.privacy, plan.domain
    sentences = [said.say("limit_noise_rounded" if release.options.round else "limit_noise")]
    if not release.finding.linear:
        sentences = [said.say("limit_aware"), *(said.say(key, **values) for key, values in release.finding.not_covered(domain))]
    sentences += [said.say(key, values=values) for key, values in stated_words(plan).items()]
    if drops(domain):
        sentences.append(f"{dropped_words(release, said)} {said.say('not_covered_dropped')}")
    if privacy.unit_column is not None:
        column, cell = repr(privacy.unit_column), privacy.max_per_cell
        if cell is None:
            sentences.append(said.some("limit_unit", privacy.max_rows, column=column))
        else:
            limits = {"count": privacy.max_rows, "rows": cell.rows, "names": said.listed([*cell.attributes])}
            sentences.append(said.say("limit_unit_cell", column=column, **limits))
    sentences.append(said.say("limit_sample"))
    if any(product.of_values for product in release.workload):
        sentences.append(said.say("limit_sums"))
    sentences.append(said.say("limit_each", hundred=said.local(f"{round(100 * (1 - release.level), 4):g}")))
    if release.options.biased:
        sentences.append(post_processing_words(release, said)[0])
    return sentences


def large_words(release: Release, product: Product, said: Texts = ENGLISH) -> str:
    """What is written of a table too large to write, and how to get the rest of it."""
    asked = release.plan.workload.products
    large = [position for position, each in enumerate(asked) if is_large(each)]
    position = next(position for position in large if asked[position] is product or asked[position] == product)
    cells, prefix = f"q{position + 1}", f"q{len(asked) + large.index(position) + 1}"
    return said.say("large", name=table_words(product, said), rows=product.rows, most=MOST_WRITTEN, cells=cells, prefix=prefix)


def joined_words(release: Release, said: Texts = ENGLISH) -> str | None:
    """Whose rows a second table held, or that it was taken to be public; None if there was none."""
    second = release.receipt.get("joined")
    if not second:
        return None
    return said.say("joined_public" if second["public"] else "joined", table=second["table"] or "-", column=repr(second["on"]))


def notices_of_all(release: Release, said: Texts = ENGLISH) -> list[str]:
    """What a reader of any answer has to know, of one that is asked for later too: rows beyond a limit, units, and a second table."""
    units = [product for product in release.workload if product.of_units]
    sentences = [said.say("unit_is", column=repr(release.privacy.unit_column))] if units else []
    for key, in_all in (("units_each", False), ("units_once", True)):
        once = [product for product in units if (product.domain.measure(str(product.measure)) == UnitCount()) is in_all]
        tables = [product.attributes for product in once if product.attributes]
        names = [*map(" x ".join, tables[:_MOST_NAMED]), *(["..."] if len(tables) > _MOST_NAMED else [])]
        sentences += [said.say(key, names=said.listed(names))] if names else []
    return [*filter(None, [cut_words(release, said), " ".join(sentences), joined_words(release, said)])]


def notices(release: Release, said: Texts = ENGLISH) -> list[str]:
    """What a reader of what was written has to know first: how it was rounded, `notices_of_all`, and tables that are not written."""
    large = [large_words(release, product, said) for product in release.large]
    return [*filter(None, [rounding_words(release.options, said)]), *notices_of_all(release, said), *large]


def post_processing_words(release: Release, said: Texts = ENGLISH) -> list[str]:
    """What the optional columns are, and are not: first what holds for all of them, then a sentence or two a kind."""
    options = release.options
    one_by_one = ["answer_non_negative"] * options.non_negative + ["answer_integer"] * options.integer
    names = one_by_one + ["answer_nnls"] * options.nnls + ["answer_local"] * options.local_non_negative
    sentences = [said.some("biased", len(names), columns=said.listed(names))]
    if one_by_one:
        sentences.append(said.say("biased_disagree", columns=said.listed(one_by_one)))
    if options.nnls:
        sentences.append(said.say("biased_nnls"))
    if options.local_non_negative:
        sentences.append(said.say("biased_local"))
    return sentences
