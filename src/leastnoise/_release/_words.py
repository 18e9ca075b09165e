"""What a release says about itself in sentences: the promise, the noise, the intervals and their limits. Manifest and report share them."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from leastnoise._accounting import (
    ApproxDP,
    ConcentratedCost,
    Cost,
    GaussianCost,
    Noise,
    Privacy,
    PureCost,
    PureDP,
    SeriesCost,
    readable,
    zcdp_epsilon,
)
from leastnoise._domain import Bins, Categories, Dates, Decimals, Domain, Edges, Integers, Kind, Measure
from leastnoise._plan import Plan, cost
from leastnoise._release import _data_aware as aware
from leastnoise._release._large import MOST_WRITTEN, is_large
from leastnoise._release._release import Release
from leastnoise._workload import Product, from_json

NOT_PRIVATE = (
    "NOT PRIVATE: the noise of this release came from a seed, so anyone who knows the seed can take it away. "
    "It is for tests and experiments only and must not be published."
)
NOISES = {
    Noise.DISCRETE_LAPLACE: "discrete Laplace noise (whole numbers), sampled exactly",
    Noise.DISCRETE_GAUSSIAN: "discrete Gaussian noise (whole numbers), sampled exactly",
    Noise.ROUNDED_GAUSSIAN: "continuous Gaussian noise rounded to a grid, sampled exactly",
}
_COMMON_DELTA = Fraction(1, 10**9)
# Below this standard error (in steps of the noise) a quantile of the continuous distribution says little about a discrete one.
_COARSE = 5.0


def definition(privacy: Privacy) -> tuple[str, dict[str, str]]:
    """Name and exact parameters of the definition of privacy.

    >>> definition(Privacy(PureDP("1/3")))
    ('pure differential privacy', {'epsilon': '1/3'})
    """
    budget = privacy.budget
    if isinstance(budget, PureDP):
        return "pure differential privacy", {"epsilon": str(budget.epsilon)}
    if isinstance(budget, ApproxDP):
        return "approximate differential privacy", {"epsilon": str(budget.epsilon), "delta": str(budget.delta)}
    return "zero-concentrated differential privacy", {"rho": str(budget.rho)}


def budget_words(privacy: Privacy) -> str:
    """The budget, short.

    >>> budget_words(Privacy(ApproxDP(1, "1e-9")))
    'epsilon = 1, delta = 1e-09'
    """
    budget = privacy.budget
    if isinstance(budget, PureDP):
        return f"epsilon = {_number(budget.epsilon)}"
    if isinstance(budget, ApproxDP):
        return f"epsilon = {_number(budget.epsilon)}, delta = {_number(budget.delta)}"
    return f"rho = {_number(budget.rho)}"


def change(privacy: Privacy) -> str:
    """What two neighbouring tables differ by, as a clause.

    >>> change(Privacy(PureDP(1), unit_column="id", max_rows=3))
    "all rows of one value of the column 'id' (of which at most 3 are used) are added or removed"
    """
    verb = "added or removed" if privacy.neighbours == "add_remove" else "replaced by others"
    if privacy.unit_column is None:
        return f"one row is {verb.replace('others', 'another')}"
    used = "one is" if privacy.max_rows == 1 else f"{privacy.max_rows} are"
    return f"all rows of one value of the column {privacy.unit_column!r} (of which at most {used} used) are {verb}"


def promise(privacy: Privacy) -> str:
    """What the budget means, in one sentence.

    >>> print(promise(Privacy(PureDP(1))))
    Whatever else anybody knows, no result of this release becomes more than exp(epsilon) = 2.72 times as likely, or as unlikely, when
    one row is added or removed.
    """
    budget, difference = privacy.budget, change(privacy)
    if isinstance(budget, (PureDP, ApproxDP)):
        times = f"exp(epsilon) = {_power(budget.epsilon)} times as likely, or as unlikely"
        rest = f", except with a probability of at most delta = {_number(budget.delta)}," if isinstance(budget, ApproxDP) else ","
        return f"Whatever else anybody knows, no result of this release becomes more than {times}{rest} when {difference}."
    epsilon = zcdp_epsilon(budget.rho, _COMMON_DELTA)
    return (
        f"Whatever else anybody knows, the results of this release hardly tell whether {difference}: the Rényi divergence of every order a "
        f"is at most a times rho = {_number(budget.rho)}, which implies epsilon = {float(epsilon):.3g} at delta = {_number(_COMMON_DELTA)}."
    )


def cost_words(cost: Cost) -> str:
    """What the plan really spends, as computed from its integer queries.

    >>> cost_words(PureCost("1/2"))
    'epsilon = 0.5'
    """
    if isinstance(cost, PureCost):
        return f"epsilon = {_number(cost.epsilon)}"
    if isinstance(cost, GaussianCost):
        return f"mu squared = {_number(cost.mu_squared)} (Gaussian differential privacy)"
    if isinstance(cost, ConcentratedCost):
        return f"rho = {_number(cost.rho)}"
    if isinstance(cost, SeriesCost):
        return str(cost)
    raise TypeError(cost)


def cost_of(plan: Plan) -> Cost:
    """What a plan spends: by its integer queries; all of the budget where private choices were made on the way."""
    return cost(plan) if aware.facts_of(plan) is None else SeriesCost(plan.privacy.budget)


def domain_words(name: str, kind: Kind) -> str:
    """Which values of a column are counted where, and what happens to all others.

    >>> print(domain_words("age", Integers(17, 90, outside="clip")))
    age: whole numbers from 17 to 90; rows with other values go to the nearest cell; rows with a null are dropped.
    """
    fate = {"drop": "are dropped", "clip": "go to the nearest cell", "other": "are counted in the cell 'other'"}
    return f"{name}: {_cells(kind)}; rows with other values {fate[kind.outside]}; rows with a null {fate[kind.null]}."


def _cells(kind: Kind) -> str:
    if isinstance(kind, Categories):
        return f"{len(kind.values)} categories"
    if isinstance(kind, Integers):
        return f"whole numbers from {kind.low} to {kind.high}" + (f", rounded ({kind.rounding})" if kind.rounding else "")
    if isinstance(kind, Bins):
        return f"{kind.count} bins of equal width from {readable(kind.low)} to {readable(kind.high)}, closed on the {kind.closed}"
    if isinstance(kind, Edges):
        return f"{kind.regular} bins from {readable(kind.low)} to {readable(kind.high)}, closed on the {kind.closed}"
    if isinstance(kind, Decimals):
        return f"numbers from {readable(kind.low)} to {readable(kind.high)} in steps of {readable(kind.step)}"
    if isinstance(kind, Dates):
        return f"days from {kind.start} to {kind.end} by {kind.by.replace('_', ' ')}, on the clock of {kind.zone}"
    return f"codes from 0 to {kind.regular - 1}"


def measure_words(name: str, measure: Measure) -> str:
    """What is summed.

    >>> print(measure_words("pay", Measure("income", 0, 100, unit="0.01")))
    pay: the column 'income', clipped to 0 .. 100, rounded to multiples of 0.01; a null counts as 0, clipped.
    """
    bounds = f"clipped to {readable(measure.low)} .. {readable(measure.high)}"
    return (
        f"{name}: the column {measure.column!r}, {bounds}, rounded to multiples of {readable(measure.unit)}; a null counts as 0, clipped."
    )


def dropped_words(domain: Domain) -> str:
    """Whether rows are missing from the release.

    >>> dropped_words(Domain(zone=Categories(["a"], null="other", outside="other")))
    'Every row of the table is counted.'
    """
    if drops(domain):
        return (
            "Rows with a value (or a null) that an attribute drops are in none of the tables. How many there were was not measured, "
            "so it is not published: the number would itself cost budget."
        )
    return "Every row of the table is counted."


def drops(domain: Domain) -> bool:
    """Whether some value or null makes a row disappear.

    >>> drops(Domain(zone=Categories(["a"], null="other", outside="other")))
    False
    """
    return any("drop" in (domain.kind(name).outside, domain.kind(name).null) for name in domain.names)


def interval_words(release: Release) -> str:
    """How ``low`` and ``high`` come about."""
    percent, times = percent_words(release.level), release.options.multiplier
    reason = (
        "the larger of the normal and the Laplace quantile, between which the quantile of a sum of such noise lies"
        if release.plan.noise.norm == 1
        else "the normal quantile"
    )
    if aware.facts_of(release.plan) is not None:
        return (
            f"low and high are answer minus and plus {times:.4g} times the root of noise_std squared plus approximation_std squared "
            f"({reason}) and half a step of the noise ({release.options.half_step:.4g}), for a share of {percent}. "
            f"{aware.reading_words(release.plan)}"
        )
    return (
        f"low and high are answer minus and plus {times:.4g} times noise_std ({reason}) and half a step of the noise "
        f"({release.options.half_step:.4g}), so that an interval holds the true answer in at least {percent} of all releases."
    )


def percent_words(level: float) -> str:
    """A level as a percentage.

    >>> percent_words(0.95), percent_words(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * level:.6g}%"


def limits(release: Release) -> list[str]:
    """What the intervals do not cover."""
    plan = release.plan
    privacy, domain = plan.privacy, plan.domain
    found = [
        "An interval measures the noise added for privacy, and nothing else; its true answer is the one on the rows that were counted."
    ]
    if aware.facts_of(plan) is not None:
        found = [
            "An interval measures the noise added for privacy and an estimate of the rest; its true answer is the one on the counted rows.",
            *aware.approximation_words(plan),
        ]
    if drops(domain):
        found.append(dropped_words(domain) + " No interval covers what they would have added.")
    if privacy.unit_column is not None:
        found.append(
            f"Of every value of the column {privacy.unit_column!r} at most {privacy.max_rows} rows were used, chosen without looking at "
            "other columns. What the others would have added is not covered, nor is their number published."
        )
    found.append("If the table is a sample, the sampling error comes on top, and so do errors in the data themselves.")
    if any(product.measure is not None for product in release.workload):
        found.append(
            "Sums are sums of values clipped to the public bounds and rounded to the unit; what clipping took away is not covered."
        )
    if plan.details.get("data_aware", {}).get("regime") == "truncated":
        found.append(truncation_words(plan.details["data_aware"], release))
    hundred = round(100 * (1 - release.level), 4)
    found.append(
        f"Each interval stands for itself: of 100 independent intervals about {hundred:g} miss. Answers of one release share noise, so "
        "their misses come together."
    )
    if release.options.biased:
        found.append(post_processing_words(release)[0])
    return found


def large_words(release: Release, product: Product) -> str:
    """What is written of a table too large to write, and how to get the rest of it.

    Args:
        release: of the table.
        product: the table.
    """
    asked = from_json(release.plan.domain, release.plan.questions).products
    large = [place for place, one in enumerate(asked) if is_large(one)]
    place = next(place for place in large if asked[place] is product or asked[place] == product)
    cells, prefix = f"q{place + 1}", f"q{len(asked) + large.index(place) + 1}"
    return (
        f"{product.name} asks for {product.rows:,} answers, too many to write (over {MOST_WRITTEN:,} a table). In its place are its cells "
        f"({cells}) and prefix sums ({prefix}), each with its exact error. A range is the difference of two prefix sums; its own exact "
        "error follows from the measurements: leastnoise answer RELEASE --ranges, or release.answer in Python."
    )


def cut_words(privacy: Privacy) -> str | None:
    """What a limit on the rows of a unit does to all answers; None if there is none.

    >>> cut_words(Privacy(PureDP(1))) is None
    True
    >>> print(cut_words(Privacy(PureDP(1), unit_column="id", max_rows=3)))
    Counts are of at most 3 rows of every value of 'id': intervals cover the noise, not rows beyond that, whose number is not published.
    """
    if privacy.unit_column is None:
        return None
    rows = "one row" if privacy.max_rows == 1 else f"{privacy.max_rows} rows"
    return (
        f"Counts are of at most {rows} of every value of {privacy.unit_column!r}: intervals cover the noise, not rows beyond that, whose "
        "number is not published."
    )


def notices(release: Release) -> list[str]:
    """What a reader of any answer has to know first: rows beyond a limit, and tables that are not written.

    >>> domain = Domain(x=Integers(1, 5000))
    >>> cells = Block((Factor(("x",), Identity(5000)),), scale=1)
    >>> plan = Plan(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(cells,), strategy="identity")
    >>> plan = promised(queries(domain, x="all_ranges"), plan)
    >>> notices(build(Observation(plan, (np.zeros(5000, dtype=int),), "", private=False)))[0][:74]
    'x:all_ranges asks for 12,502,500 answers, too many to write (over 10,000,0'
    """
    cut = cut_words(release.plan.privacy)
    return [*([cut] if cut else []), *(large_words(release, product) for product in release.large)]


def truncation_words(facts: Mapping[str, Any], release: Release) -> str:
    """What cutting values at a private threshold does to sums."""
    name = facts["measure"]
    unit = release.plan.domain.measure(name).unit
    cut, lost = _number(facts["threshold"] * unit), float(facts["estimated_loss"] * unit)
    return (
        f"Values of {name} above {cut} were counted as {cut}, a threshold that was chosen privately, so that sums with such values are "
        f"too small. noise_std is the standard error given the threshold. What the cut took from the sum of all rows is about {lost:.3g}, "
        "by noisy counts of the tail; approximation_std says how much of it an answer has, groups sharing it in proportion to their sums, "
        "and low and high reach that far. Nothing was added back."
    )


def post_processing_words(release: Release) -> list[str]:
    """What the optional columns are, and are not: first what holds for all of them, then a sentence or two a kind."""
    options = release.options
    one_by_one = ["answer_non_negative"] * options.non_negative + ["answer_integer"] * options.integer
    names = one_by_one + ["answer_nnls"] * options.joint + ["answer_local"] * options.local
    columns = f"The columns {', '.join(names[:-1])} and {names[-1]} are" if len(names) > 1 else f"The column {names[0]} is"
    found = [f"{columns} biased. noise_std, low and high belong to the unbiased answer: use that for sums, means and further statistics."]
    if one_by_one:
        found.append(f"Different tables need not agree in {' and '.join(one_by_one)}.")
    if options.joint:
        found.append(
            "answer_nnls (non-negative least squares, the total fixed) has errors of its own, nnls_rmse, from a simulation at the "
            "estimate. Its cells come nearer to the truth; sums of cells need not, because what is cut off below 0 comes back as mass "
            "elsewhere."
        )
    if options.local:
        found.append(
            "answer_local (the nearest tables without negative cells that agree with each other, the total fixed) has no known errors: "
            "small cells are raised on average, large ones lowered, and there need be no data set that has all these tables."
        )
    return found


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.6g}"


def _power(epsilon: Fraction) -> str:
    if epsilon >= 700:
        return "more than 10^300"
    value = math.exp(float(epsilon))
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}" if value < 1e6 else f"{value:.2g}"
