"""Compute sampling errors of surveys by the rules that a spec states.

The noise of a release hides the people in a sample. The noise does not account for the people
outside the sample. A spec states the size of this sampling error by standard errors, coefficients
of variation (CV), a variance model or design effects. The release then has three kinds of
intervals: for the noise, for the sample, and for both. Each number has a flag. The flag depends on
the CV that noise and sampling error have together.

All results are computed from released numbers and public figures of the spec. These results cost no
budget and reveal nothing further.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from leastnoise._domain import DeviationProduct, Domain, SquaredDeviation, Weighted
from leastnoise._error import widen_interval
from leastnoise._frames import Columns
from leastnoise._texts import check_key
from leastnoise._trusted.check import InputError, exact, number_text, one_of, refuse
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._workload import Product, Statistic, Workload

SAMPLING_COLUMNS = (
    "sampling_std",
    "sampling_low",
    "sampling_high",
    "both_low",
    "both_high",
    "cv",
    "reliability",
)
"""The columns that a table or statistic with a stated sampling error has besides its own."""
RELIABILITY = ("reliable", "caution", "unreliable")
"""The flags; files have 1, 2 and 3."""
_METHODS = ("standard_error", "cv", "variance_model", "design_effect")
_DESIGN_KEYS = ("sample", "population", "deviation")
_FLAG_KEYS = ("caution", "unreliable", "suppress")
_RULE_KEYS = (*_METHODS, "deviation")
_SURVEY_KEYS = (*_METHODS, *_DESIGN_KEYS, *_FLAG_KEYS, "tables")
_LARGEST_NUMBER = 1e15  # in a spec; doubles represent whole numbers up to this size exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyDesign:
    """Public figures about the design of a survey's sample.

    Attributes:
        effect: the design effect. This is the variance of an estimate divided by its variance in a
            simple random sample.
        sample: the number of persons in the sample.
        population: the number of persons in the population.
        deviation: the standard deviation of a measure in the population; None for counts and
            shares, whose variance is computed from the estimate.
    """

    effect: float
    sample: float
    population: float
    deviation: float | None = None

    @property
    def finite_factor(self) -> float:
        """The finite population correction, as a factor of the variance."""
        return max(0.0, 1 - self.sample / self.population)

    def errors_of_counts(self, answer: FloatArray, total: float) -> FloatArray:
        """Return the standard errors of weighted or unweighted counts.

        A standard error is total * sqrt(effect * (1 - n/N) * p (1 - p) / n). Here p is the
        estimated share of the count in the total.
        """
        share = np.clip(answer / total, 0, 1)
        variance = self.effect * self.finite_factor * share * (1 - share) / self.sample
        return total * np.sqrt(variance)

    def errors_of_means(self, mean: FloatArray, group_weights: FloatArray) -> FloatArray:
        """Return the standard errors of group means, from the groups' weights.

        The sample contains about ``n * weights / N`` persons of a group. If no standard deviation
        is stated, the mean is a share p, and the variance between persons is p (1 - p).
        """
        persons = self.sample * np.maximum(group_weights, 0) / self.population
        if self.deviation is None:
            share = np.clip(mean, 0, 1)
            person_variance = share * (1 - share)
        else:
            person_variance = np.full(mean.shape, self.deviation**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = self.effect * self.finite_factor * person_variance / persons
        return np.where(persons > 0, np.sqrt(variance), np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRule:
    """A rule that computes sampling errors from a table's or statistic's answers.

    Attributes:
        method: the key in the spec, such as ``cv``.
        values: for ``standard_error`` and ``cv``, one value, or one for each cell; for
            ``variance_model``, a and b of the relative variance a + b / answer.
        design: the design, for ``design_effect``.
    """

    method: str
    values: tuple[float, ...] = ()
    design: SurveyDesign | None = None

    def standard_errors(
        self,
        answer: FloatArray,
        *,
        has_weights: bool,
        group_weights: FloatArray | None = None,
    ) -> FloatArray:
        """Return the standard errors of answers; NaN if the rule states none.

        Args:
            answer: the released answers.
            has_weights: whether the answers are weighted.
            group_weights: for means, the released sum of weights of each group.
        """
        if self.design is not None:
            if group_weights is not None:
                if not has_weights:
                    group_weights = group_weights * self.design.population / self.design.sample
                return self.design.errors_of_means(answer, group_weights)
            total = self.design.population if has_weights else self.design.sample
            return self.design.errors_of_counts(answer, total)
        if self.method == "variance_model":
            first, second = self.values
            # The error is sqrt((a + b / x) x^2), in a form that is 0 instead of infinite at x = 0.
            variance = first * answer**2 + second * np.abs(answer)
            return np.sqrt(np.maximum(variance, 0))
        totals = np.array(self.values)
        if totals.size == answer.size:
            errors = totals.reshape(answer.shape)
        elif totals.size == 1:
            errors = np.full(answer.shape, totals)
        else:  # the table has other answers, as in a series before its end
            errors = np.full(answer.shape, np.nan)
        if self.method == "cv":
            errors = errors * np.abs(answer)
        return np.where(np.isnan(answer), np.nan, errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRule:
    """The CV limits of reliability flags, and whether to suppress answers."""

    caution: float
    unreliable: float
    suppress: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplingErrors:
    """The sampling errors of answers, with intervals and reliability flags.

    ``low`` and ``high`` account for the sampling error only. The other intervals and the flags
    account for the sampling error and the noise. Arrays have the shape of the answers; all except
    ``reliability`` are NaN for suppressed answers.

    Attributes:
        std: the standard errors of the sample.
        low: the lower ends of the intervals for the sampling error.
        high: the upper ends of these intervals.
        both_low: the lower ends of the intervals for noise and sample together.
        both_high: the upper ends of these intervals.
        cv: the root of the summed variances of noise and sample, divided by the answer.
        reliability: 1 for reliable answers, 2 for caution, 3 for unreliable or suppressed answers.
        suppressed: whether unreliable answers are suppressed.
    """

    std: FloatArray
    low: FloatArray
    high: FloatArray
    both_low: FloatArray
    both_high: FloatArray
    cv: FloatArray
    reliability: IntArray
    suppressed: bool

    @property
    def flag_keys(self) -> tuple[str, str, str]:
        """The text keys of the three reliability flags, from reliable to unreliable."""
        last = "flag_suppressed" if self.suppressed else "flag_unreliable"
        return "flag_reliable", "flag_caution", last

    @property
    def flag_counts(self) -> tuple[int, ...]:
        """The number of answers with each of the three reliability flags."""
        return tuple(int((self.reliability == flag).sum()) for flag in (1, 2, 3))

    @property
    def margins(self) -> FloatArray:
        """The half widths of the intervals for the sampling error."""
        return (self.high - self.low) / 2

    @property
    def is_suppressed(self) -> BoolArray:
        """A mask of the suppressed answers."""
        return (self.reliability == len(RELIABILITY)) & self.suppressed

    def without(self, is_suppressed: BoolArray) -> "SamplingErrors":
        """Return the errors with NaN and the last flag for suppressed answers."""
        return SamplingErrors(
            std=np.where(is_suppressed, np.nan, self.std),
            low=np.where(is_suppressed, np.nan, self.low),
            high=np.where(is_suppressed, np.nan, self.high),
            both_low=np.where(is_suppressed, np.nan, self.both_low),
            both_high=np.where(is_suppressed, np.nan, self.both_high),
            cv=np.where(is_suppressed, np.nan, self.cv),
            reliability=np.where(is_suppressed, len(RELIABILITY), self.reliability),
            suppressed=self.suppressed,
        )

    def columns(self) -> Columns:
        """Return the columns of sampling errors for files, as flat arrays."""
        arrays = (
            self.std,
            self.low,
            self.high,
            self.both_low,
            self.both_high,
            self.cv,
            self.reliability,
        )
        columns: Columns = {}
        for name, values in zip(SAMPLING_COLUMNS, arrays, strict=True):
            columns[name] = values.reshape(-1)
        return columns


def combine_errors(
    answer: FloatArray,
    low: FloatArray,
    high: FloatArray,
    noise_std: FloatArray,
    sampling_std: FloatArray,
    level: float,
    flags: FlagRule,
) -> SamplingErrors:
    """Combine noise and sampling errors into intervals and reliability flags.

    The half widths of the two intervals are added in quadrature. This is valid for two reasons:
    noise and sample are independent, and the half width of the noise is at least the half width for
    a normal error of the same variance.

    Args:
        answer: the released answers.
        low: the lower ends of the intervals of the noise.
        high: the upper ends.
        noise_std: the standard errors of the noise.
        sampling_std: the standard errors of the sample; NaN if unknown.
        level: the coverage of the intervals.
        flags: the CV limits of the flags.
    """
    reach = NormalDist().inv_cdf((1 + level) / 2) * sampling_std
    both_low, both_high = widen_interval(answer, low, high, reach)
    with np.errstate(divide="ignore", invalid="ignore"):
        cv = np.sqrt(noise_std**2 + sampling_std**2) / np.abs(answer)
    # A number is not reliable if its error is unknown or if it is 0.
    reliability = np.full(answer.shape, len(RELIABILITY), dtype=np.int64)
    reliability[cv <= flags.unreliable] = 2
    reliability[cv <= flags.caution] = 1
    errors = SamplingErrors(
        std=sampling_std,
        low=answer - reach,
        high=answer + reach,
        both_low=both_low,
        both_high=both_high,
        cv=cv,
        reliability=reliability,
        suppressed=flags.suppress,
    )
    return errors.without(errors.is_suppressed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The section ``[survey]`` of a spec: sampling rules and flags.

    Attributes:
        default: the rule for all tables and means without a separate rule; None if there is none.
        tables: the separate rules by the name of a table or statistic.
        flags: the CV limits of the flags.
    """

    default: SamplingRule | None
    tables: Mapping[str, SamplingRule]
    flags: FlagRule

    def rule_of_table(self, product: Product) -> SamplingRule | None:
        """Return the sampling rule of a table; None if no rule applies.

        A design effect applies only to counts; sums of amounts need another rule.
        """
        if product.name in self.tables:
            return self.tables[product.name]
        if self.default is None or self.default.design is None:
            return self.default
        return self.default if _counts_persons(product) else None

    def rule_of_statistic(self, statistic: Statistic, domain: Domain) -> SamplingRule | None:
        """Return the sampling rule of a statistic; None if no rule applies.

        Among statistics, the default rule applies only to means. A default design effect applies
        only to shares, which are means of a measure between 0 and 1.
        """
        if statistic.name in self.tables:
            return self.tables[statistic.name]
        if self.default is None or statistic.kind != "means":
            return None
        if self.default.design is None or _is_share(domain, statistic.of):
            return self.default
        return None


def _counts_persons(product: Product) -> bool:
    """Return whether a table counts persons, weighted or not.

    The sum of a measure between 0 and 1 counts the persons with the value 1.
    """
    if product.measure is None or product.measure in weight_measures(product.domain):
        return True
    return _is_share(product.domain, product.measure)


def _is_share(domain: Domain, measure: str) -> bool:
    """Return whether a measure has the bounds 0 and 1; its mean is then a share."""
    declared = domain.measure(measure)
    if isinstance(declared, (DeviationProduct, SquaredDeviation)):
        return False
    values = declared.of if isinstance(declared, Weighted) else declared
    return values.low == 0 and values.high == 1


def weight_measures(domain: Domain) -> set[str]:
    """Return the names of the measures that are used as weights."""
    weights = [
        measure.weight for measure in domain.measures.values() if isinstance(measure, Weighted)
    ]
    return {name for name, measure in domain.measures.items() if measure in weights}


def is_weighted(domain: Domain, measure: str | None) -> bool:
    """Return whether tables of a measure are weighted."""
    if measure is None:
        return False
    return isinstance(domain.measure(measure), Weighted) or measure in weight_measures(domain)


def check_survey(survey: object) -> dict[str, Any]:
    """Return the checked section ``[survey]``; exact numbers become texts.

    Raises:
        InputError: a key is unknown, or a number is not allowed.
    """
    if not isinstance(survey, Mapping):
        raise refuse("survey", survey, f"a table with some of {', '.join(_SURVEY_KEYS)}")
    if not survey:
        return {}
    for key in survey:
        one_of("a key of survey", key, _SURVEY_KEYS)
    checked = _check_rule("survey", survey, (*_RULE_KEYS, *_DESIGN_KEYS))
    for key in ("caution", "unreliable"):
        if key in survey:
            checked[key] = _check_number(f"survey {key}", survey[key])
    if "suppress" in survey:
        if not isinstance(survey["suppress"], bool):
            raise refuse("survey suppress", survey["suppress"], "true or false")
        checked["suppress"] = survey["suppress"]
    checked["tables"] = _check_table_rules(survey.get("tables", {}))
    if not checked["tables"] and not any(method in checked for method in _METHODS):
        raise refuse(
            "survey",
            ", ".join(survey),
            f"one with {', '.join(_METHODS)}, or with rules for tables",
            "State how large the sampling error is, or leave the part out.",
        )
    _read_flag_rule(checked)
    _check_designs(checked)
    return checked


def _check_table_rules(tables: object) -> dict[str, dict[str, Any]]:
    """Return the checked rules of single tables; exact numbers become texts."""
    if not isinstance(tables, Mapping):
        raise refuse("survey tables", tables, "a table with a rule for each table")
    checked = {}
    for name, rule in tables.items():
        where = f"survey tables {name}"
        if not isinstance(rule, Mapping) or not any(method in rule for method in _METHODS):
            raise refuse(where, rule, f"a table with one of {', '.join(_METHODS)}")
        for key in rule:
            one_of(f"a key of {where}", key, _RULE_KEYS)
        checked[str(name)] = _check_rule(where, rule, _RULE_KEYS)
    return checked


def _check_rule(location: str, rule: Mapping[str, Any], allowed: Sequence[str]) -> dict[str, Any]:
    """Return the checked settings of a sampling rule; numbers become texts."""
    methods = [method for method in _METHODS if method in rule]
    if len(methods) > 1:
        raise refuse(location, " and ".join(methods), "one with a single rule of the error")
    checked: dict[str, Any] = {}
    for key, value in rule.items():
        if key not in allowed:
            continue
        subject = f"{location} {key}"
        if key == "variance_model":
            if not isinstance(value, Mapping) or set(value) != {"a", "b"}:
                raise refuse(subject, value, "a table { a = ..., b = ... }")
            checked[key] = {
                name: _check_number(f"{subject} {name}", value[name], may_be_zero=True)
                for name in ("a", "b")
            }
            if set(checked[key].values()) == {"0"}:
                raise refuse(subject, "a = 0 and b = 0", "one with a or b above 0")
        elif isinstance(value, (list, tuple)) and key in ("standard_error", "cv"):
            checked[key] = [_check_number(subject, entry, may_be_zero=True) for entry in value]
        else:
            checked[key] = _check_number(subject, value)
    return checked


def _check_number(subject: str, value: Any, *, may_be_zero: bool = False) -> str:
    """Return a checked number as text with its exact value."""
    number = exact(subject, value)
    if not (0 < number <= _LARGEST_NUMBER or (may_be_zero and number == 0)):
        lowest = "at least 0" if may_be_zero else "above 0"
        raise refuse(subject, number_text(number), f"a number {lowest}, up to 1e15")
    return str(number)


def _read_flag_rule(survey: Mapping[str, Any]) -> FlagRule:
    """Return the CV limits of the flags, by default 15% and 30%."""
    caution = float(exact("survey caution", survey.get("caution", "0.15")))
    unreliable = float(exact("survey unreliable", survey.get("unreliable", "0.3")))
    if not caution <= unreliable:
        raise refuse(
            "survey caution", caution, f"a CV of at most unreliable, which is {unreliable}"
        )
    return FlagRule(caution=caution, unreliable=unreliable, suppress=survey.get("suppress", False))


def _check_designs(survey: Mapping[str, Any]) -> None:
    """Raise if a design effect lacks the size of the sample or population."""
    has_design = "design_effect" in survey or any(
        "design_effect" in rule for rule in survey["tables"].values()
    )
    if not has_design:
        return
    missing = [key for key in ("sample", "population") if key not in survey]
    if missing:
        raise InputError(
            f"survey has a design_effect and must have {' and '.join(missing)}: the public number "
            "of persons in the sample and in the population."
        )
    sample = exact("survey sample", survey["sample"])
    population = exact("survey population", survey["population"])
    if not sample <= population:
        raise refuse(
            "survey sample",
            number_text(sample),
            f"at most the population, which is {number_text(population)}",
        )


def read_survey(survey: Mapping[str, Any]) -> Survey | None:
    """Return a checked section ``[survey]`` as a `Survey`; None if it is empty."""
    if not survey:
        return None
    has_default = any(method in survey for method in _METHODS)
    return Survey(
        default=_read_rule(survey, survey) if has_default else None,
        tables={name: _read_rule(rule, survey) for name, rule in survey["tables"].items()},
        flags=_read_flag_rule(survey),
    )


def _read_rule(rule: Mapping[str, Any], survey: Mapping[str, Any]) -> SamplingRule:
    """Return the `SamplingRule` that a table of settings describes."""
    method = next(method for method in _METHODS if method in rule)
    stated = rule[method]
    if method == "variance_model":
        return SamplingRule(method=method, values=(_to_float(stated["a"]), _to_float(stated["b"])))
    if method != "design_effect":
        values = stated if isinstance(stated, list) else [stated]
        return SamplingRule(method=method, values=tuple(map(_to_float, values)))
    deviation = rule.get("deviation")
    design = SurveyDesign(
        effect=_to_float(stated),
        sample=_to_float(survey["sample"]),
        population=_to_float(survey["population"]),
        deviation=None if deviation is None else _to_float(deviation),
    )
    return SamplingRule(method=method, design=design)


def _to_float(text: str) -> float:
    """Return a number in text form as a float."""
    return float(exact("a number of survey", text))


def resolve_survey(
    survey: Mapping[str, Any], workload: Workload, names: Mapping[str, str]
) -> dict[str, Any]:
    """Check a section ``[survey]``; return it with table names instead of ids.

    Args:
        survey: the checked section.
        workload: the workload of the release.
        names: maps the name and the id of each table and statistic to its name.

    Raises:
        InputError: there is no table for a rule; a list does not have the length of its table; or a
            design effect does not determine the error of its table.
    """
    checked = check_survey(survey)
    if not checked:
        return {}
    cells = {product.name: product.rows for product in workload.products}
    products = {product.name: product for product in workload.products}
    statistics = {statistic.name: statistic for statistic in workload.statistics}
    tables = {}
    for key, rule in checked["tables"].items():
        check_key("a key of survey tables", key, names)
        name = names[key]
        tables[name] = rule
        if name in statistics:
            statistic = statistics[name]
            cells[name] = _count_statistic_cells(statistic, workload)
            if "design_effect" in rule:
                _check_design_of_mean(key, statistic, rule, workload.domain)
        elif "design_effect" in rule and not _counts_persons(products[name]):
            raise refuse(
                f"survey tables {key}",
                "a design_effect",
                "a standard_error, cv or variance_model, because its answers are sums of amounts",
            )
        for method in ("standard_error", "cv"):
            stated = rule.get(method)
            if isinstance(stated, list) and len(stated) != cells[name]:
                raise refuse(
                    f"survey tables {key} {method}",
                    f"a list of {len(stated)}",
                    f"one number, or one for each of the {cells[name]} answers in their order",
                )
    for method in ("standard_error", "cv"):
        if isinstance(checked.get(method), list):
            raise refuse(
                f"survey {method}",
                "a list",
                "one number for all tables",
                "Give lists to single tables, under [survey.tables].",
            )
    return {**checked, "tables": tables}


def _count_statistic_cells(statistic: Statistic, workload: Workload) -> int:
    """Return the number of values of a statistic."""
    table = workload.tables_of(statistic)[0]
    if statistic.form.along:
        return table.rows
    sizes = dict(zip(table.attributes, table.shape, strict=True))
    groups = math.prod(sizes[name] for name in statistic.by)
    return groups * max(1, len(statistic.at), len(statistic.row_labels))


def _check_design_of_mean(
    key: str, statistic: Statistic, rule: Mapping[str, Any], domain: Domain
) -> None:
    """Raise unless a design effect determines the error of a statistic."""
    if statistic.kind != "means":
        raise refuse(
            f"survey tables {key}",
            "a design_effect",
            "a standard_error or cv: a design effect gives the errors of counts and means only",
        )
    if "deviation" not in rule and not _is_share(domain, statistic.of):
        raise InputError(
            f"survey tables {key} has a design_effect and must have deviation: the public "
            "standard deviation of the measure in the population. The design effect is not enough, "
            "because the mean is not a share."
        )
