"""Build the manifest of a release, and check a manifest against its release."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from leastnoise._domain import READ_AS_IT_IS
from leastnoise._error import block_variance, noise_name
from leastnoise._estimation import REPETITIONS
from leastnoise._frames import name_key_columns
from leastnoise._pages import (
    describe_attribute,
    describe_cuts,
    describe_definition,
    describe_dropped_rows,
    describe_intervals,
    describe_large_table,
    describe_measure,
    describe_neighbours,
    describe_optional_columns,
    describe_promise,
    describe_risk,
    describe_row_limit,
    describe_second_table,
    error_over_bound,
    format_cost,
    list_uncovered_errors,
    published_part,
)
from leastnoise._plan import LinearPlan, versions
from leastnoise._publication._directory import ListedFile
from leastnoise._publication._manifest import (
    MANIFEST_FORMAT,
    AnswerFacts,
    CellLimit,
    CovarianceFacts,
    CovarianceFile,
    DomainFacts,
    ErrorFacts,
    IntervalFacts,
    ListedTable,
    Manifest,
    MeasuredBlock,
    MeasurementFacts,
    PlanCost,
    PlanFacts,
    PostProcessing,
    PrivacyFacts,
    StatementFacts,
    StatisticFacts,
    UnitFacts,
)
from leastnoise._release import (
    MOST_TABLE_FILES,
    NO_RECEIPT,
    NUMBER_COLUMNS,
    Options,
    Release,
    StatisticTable,
    TableEntry,
    describe_columns,
    describe_survey_columns,
    largest_rounding_change,
    rounded_quantities,
    rounding_rule,
    statement_path,
    statistic_path,
)
from leastnoise._texts import ENGLISH
from leastnoise._trusted.accounting import covers
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.measurements import Measurements

MOST_LISTED_TABLES = 200  # the manifest lists at most this many; tables.csv lists all
MOST_LABELS = 100_000  # labels of all attributes and levels in the manifest
PROJECTIONS = {
    "agreed": "from the total down, each group is divided into the nearest groups (least squares) "
    "that are at least 0 and add up to it; one table has the cells or groups of all others, and "
    "all tables are sums of it, so they agree",
    "marginal": "the nearest cells (least squares) that are at least 0 and keep the estimated "
    "total, if that is positive",
    "prefix": "the nearest answers (least squares) that do not fall along the prefix sums and are "
    "at least 0",
    "clip": "negative answers are replaced by 0",
    "none": "not made, because the true answers may be negative",
}
_COLUMNS = {
    "answer": "the unbiased least squares estimate, consistent across tables",
    "noise_std": "its standard error from the noise, as the plan promised it",
}
_ADAPTIVE_COLUMNS = {
    "answer": "the estimate, consistent across tables; it is biased where the data are less even "
    "than the choices assume",
    "noise_std": "its standard error from the noise, given the outcome of the choices",
    "approximation_std": "the rest of its error, estimated from the paid measurements; empty where "
    "no measurement shows it",
}
_ADAPTIVE_POST_PROCESSING = (
    "answer is the mechanism's estimate; it is %s. Everything after the measurements is "
    "post-processing and cost nothing."
)
_ADAPTIVE_ERROR_NOTE = (
    "earlier steps of the release chose which queries were measured, so the error depends on the "
    "data and no plan could promise it"
)
_MEAN_INTERVALS = (
    "Intervals are Fieller's, separately for each mean. std_error is by the delta method at the "
    "estimates; it is empty if the divisor is not clear of 0. The sum and the divisor are from the "
    "tables."
)
_MEANINGS = {
    "variances": (
        "root of the mean squared distance of the values of a group from their mean, with "
        "the number of values as the divisor. An interval has every value that the noise of the "
        "count, the sum and the sum of squares explains, separately for each group. std_error is "
        "by the delta method at the estimates; it is empty if the count is not clear of 0 or the "
        "estimate is 0. Values beyond the public bounds count as the nearest bound"
    ),
    "correlations": (
        "correlation and covariance of each pair of measures, of the rows of a group "
        "with a value of every measure, with the number of these rows as the divisor. Intervals "
        "are by the delta method, separately for each pair. If the count or a variance is not "
        "clear of 0, the interval has all values that the bounds allow, and std_error is empty. "
        "Values beyond the public bounds count as the nearest bound"
    ),
    "regression": (
        "coefficients of least squares with an intercept, of the rows of a group with a "
        "value of every measure. Intervals are for the noise only, by the delta method, "
        "separately for each coefficient. low, high and std_error are empty if the smallest "
        "eigenvalue of the normal equations is not clear of 0, because every coefficient is then "
        "possible. ridge is the amount that was then added to their diagonal, as a share of count. "
        "Values beyond the public bounds count as the nearest bound"
    ),
    "r_squared": (
        "R^2 of a least-squares regression with an intercept: the share of the variance of the "
        "response that the predictors explain, of the rows of a group with a value of every "
        "measure. The mean that the noise adds is subtracted. Intervals are for the noise only, by "
        "the delta method to second order, separately for each group. If the noise hides R^2, "
        "because the smallest eigenvalue of the normal equations or the variance of the response "
        "is not clear of 0, r_squared and std_error are empty and the interval is from 0 to 1. "
        "Values beyond the public bounds count as the nearest bound"
    ),
    "quantiles": "the least value with at least a share of the %s at or below it. Only the cell "
    "that contains it is known, so low and high are ends of cells, separately for each quantile. "
    "The first and the last cell also count values beyond the bounds: may_be_below is 1 if the "
    "interval contains the first cell, so that the quantile may lie below low, and may_be_above "
    "is 1 if it contains the last cell, so that the quantile may lie above high",
    "cdf": "share of the %s up to the end of every cell (up_to); low to high is a band that "
    "holds for all cells of a group together. The first and the last cell also count values beyond "
    "the bounds: the last share covers all rows, some of which may lie above the last up_to",
    "covariances": "covariance of the noise in two answers of one table, in squared rows or "
    "amounts. The answers are numbered from 1 in row-major order, and each pair occurs once. The "
    "variance of a sum of answers is the sum of their covariances, in both orders.",
    "answer_integer": "%s, in whole rows or multiples of the measure's unit. Tables of cells are "
    "rounded by largest remainders, so that they keep their rounded total, and other tables to "
    "the nearest number. If levels are requested and one table has the cells of all others, the "
    "numbers are instead rounded from the total down, so that all tables agree",
    "answer_nnls": "non-negative least squares over the joint table of all measurements, with "
    "the total fixed to its own estimate (at least 0); it agrees across tables",
    "nnls_rmse": f"root mean square error of answer_nnls in {REPETITIONS} simulated releases, in "
    "which the estimate itself was the truth; it depends on the data and is not a promise of the "
    "plan",
    "answer_local": "the maximum likelihood estimate among the tables that have no cell below 0 "
    "and agree with each other; the total is fixed to its own estimate (at least 0); no errors "
    "are known for them",
    "answer_top_down": "whole numbers of at least 0 that add up: from the total down, each group "
    "is divided into its cells by non-negative least squares and controlled rounding. Public "
    "counts hold, and impossible cells are 0. A total that is not public is the rounded unbiased "
    "total (at least 0). No errors are known for them",
}


def list_measured_blocks(measurements: Measurements) -> tuple[MeasuredBlock, ...]:
    """Return the manifest's description of each block of measured queries."""
    return tuple(
        MeasuredBlock(
            attributes=tuple(block.attributes),
            queries=block.rows,
            scale=str(block.scale),
            variance=block_variance(measurements, block),
            row_weights=any(factor.row_weights is not None for factor in block.factors),
            measure=block.measure,
            ends=bool(block.ends),
            k_norm_group=block.k_norm_group,
        )
        for block in measurements.blocks
    )


def build_manifest(
    release: Release, entries: Sequence[TableEntry], files: tuple[ListedFile, ...]
) -> Manifest:
    """Build the manifest of a release from its tables and its files."""
    plan = release.plan
    options = release.options
    workload: Any = "listed in measurements/plan.json under 'questions'"
    if len(plan.workload.products) <= MOST_LISTED_TABLES:
        workload = plan.workload.to_json()
    return Manifest(
        format=MANIFEST_FORMAT,
        warning=None if release.private else ENGLISH.say("not_private"),
        private=release.private,
        written=datetime.now(UTC).date(),
        versions=versions(),
        privacy=_privacy_facts(release),
        receipt=None if release.receipt == NO_RECEIPT else release.receipt,
        domain=_domain_facts(release),
        workload=workload,
        plan=_plan_facts(release),
        measurements=_measurement_facts(release.measurements),
        expected_error=_error_facts(release, entries),
        intervals=_interval_facts(release),
        post_processing=_post_processing_facts(release),
        answers=_answer_facts(release, entries),
        statistics=tuple(_statistic_facts(release, table) for table in release.statistics),
        statements=tuple(
            _statement_facts(release, number, text)
            for number, text in enumerate(options.statements, 1)
        ),
        covariances=_covariance_facts(options),
        options=options,
        files=files,
    )


def check_manifest(manifest: Manifest, release: Release) -> None:
    """Raise if a manifest contradicts the plan and measurements of its release.

    A manifest lists the digests of all other files, but no file has the digest of the manifest.

    Raises:
        InputError: a fact differs; the message names it.
    """
    privacy = release.privacy
    written = manifest.privacy
    cell_limit = privacy.max_per_cell
    written_limit = written.unit.max_per_cell
    facts = {
        "private": (manifest.private, release.private),
        "plan.digest": (manifest.plan.digest, release.plan_digest),
        "plan.strategy": (manifest.plan.strategy, release.plan.strategy),
        "privacy.parameters": (
            dict(written.parameters),
            describe_definition(privacy)[1],
        ),
        "privacy.neighbours": (written.neighbours, privacy.neighbours),
        "privacy.unit.column": (written.unit.column, privacy.unit_column),
        "privacy.unit.max_rows": (written.unit.max_rows, privacy.max_rows),
        "privacy.unit.max_per_cell": (
            written_limit and (written_limit.rows, written_limit.attributes),
            cell_limit and (cell_limit.rows, tuple(cell_limit.attributes)),
        ),
        "privacy.cost.within_budget": (
            written.cost.within_budget,
            covers(release.plan.privacy.budget, release.plan.cost()),
        ),
        "intervals.level": (manifest.intervals.level, release.level),
        "receipt.id": (manifest.paid.id, release.observation.receipt),
    }
    for name, (fact, fact_of_files) in facts.items():
        if fact != fact_of_files:
            raise _changed_manifest(name, fact, fact_of_files)


def check_table_facts(manifest: Manifest, release: Release) -> None:
    """Raise if a manifest states a wrong size or error for a table.

    Raises:
        InputError: a fact differs; the message names it.
    """
    tables = manifest.answers.tables
    if isinstance(tables, str):
        return
    for position, (listed, table) in enumerate(zip(tables, release.tables, strict=False)):
        written = listed.entry
        location = f"answers.tables[{position}]"
        if (written.name, written.answers) != (table.name, table.cells):
            raise _changed_manifest(location, written.name, table.name)
        if not math.isclose(written.rmse, table.rmse, rel_tol=1e-6):
            raise _changed_manifest(f"{location}.rmse", written.rmse, table.rmse)


def _changed_manifest(name: str, fact: object, fact_of_files: object) -> InputError:
    """Return the error for a manifest that contradicts its release's files."""
    return refuse(
        f"{name} of a manifest",
        fact,
        f"{fact_of_files!r}, as in its plan and measurements",
        "The manifest was changed. Use an intact copy of the release.",
    )


def _privacy_facts(release: Release) -> PrivacyFacts:
    """Return the manifest's section on the privacy guarantee and its cost."""
    privacy = release.privacy
    cost = release.plan.cost()
    definition, parameters = describe_definition(privacy)
    published = published_part(release.plan, has_searches=bool(release.options.searches))
    return PrivacyFacts(
        definition=definition,
        parameters=parameters,
        promise=describe_promise(privacy),
        risk=describe_risk(privacy, cost, published),
        neighbours=privacy.neighbours,
        unit=_unit_facts(release),
        cost=PlanCost(
            cost=cost.to_json(),
            in_words=format_cost(cost),
            within_budget=covers(release.plan.privacy.budget, cost),
        ),
    )


def _unit_facts(release: Release) -> UnitFacts:
    """Return the manifest's section on the privacy unit."""
    privacy = release.privacy
    limit = privacy.max_per_cell
    cell_limit = None
    if limit is not None:
        cell_limit = CellLimit(rows=limit.rows, attributes=tuple(limit.attributes))
    reading = None
    if privacy.unit_reading != READ_AS_IT_IS:
        reading = privacy.unit_reading.to_json()
    return UnitFacts(
        column=privacy.unit_column,
        max_rows=privacy.max_rows,
        max_per_cell=cell_limit,
        reading=reading,
        in_words=describe_neighbours(privacy),
        second_table=describe_second_table(release),
    )


def _domain_facts(release: Release) -> DomainFacts:
    """Return the manifest's section on the domain; long lists are left out."""
    domain = release.plan.domain
    kinds = {name: domain.kind(name) for name in domain.names}
    is_long = sum(kind.size * (1 + len(kind.levels)) for kind in kinds.values()) > MOST_LABELS
    facts = domain.to_json()
    if is_long:
        facts = {"attributes": "listed in measurements/plan.json under 'domain'"}
    rules = [describe_attribute(name, kind) for name, kind in kinds.items()]
    rules += [describe_measure(name, measure) for name, measure in domain.measures.items()]
    return DomainFacts(
        domain=facts, rules=tuple(rules), rows_outside=describe_dropped_rows(release)
    )


def _plan_facts(release: Release) -> PlanFacts:
    """Return the manifest's section on the plan and its mechanism's choices."""
    plan = release.plan
    noise = noise_name(release.measurements)
    earlier = plan.earlier if isinstance(plan, LinearPlan) else ()
    return PlanFacts(
        digest=release.plan_digest,
        strategy=plan.strategy,
        mechanism=noise,
        mechanism_in_words=ENGLISH.say(noise),
        details=plan.details_json(),
        after=tuple(earlier_release.facts() for earlier_release in earlier),
        outcome=release.finding.facts() or None,
    )


def _measurement_facts(measurements: Measurements) -> MeasurementFacts:
    """Return the manifest's section on the measurements."""
    tables: tuple[MeasuredBlock, ...] | str = "listed in measurements/tables.csv"
    if len(measurements.blocks) <= MOST_LISTED_TABLES:
        tables = list_measured_blocks(measurements)
    return MeasurementFacts(
        plan="measurements/plan.json",
        observation="measurements/observation.json",
        encoding="values: one entry a measured table, little-endian whole numbers (int8 "
        "... int64) in base64, row by row; "
        "divide by grid",
        grid=measurements.grid,
        variance="of a query of weight 1, in squared rows (or squared units of the "
        "measure); a row of weight w has 1/w^2 of it",
        tables=tables,
    )


def _error_facts(release: Release, entries: Sequence[TableEntry]) -> ErrorFacts:
    """Return the manifest's section on the expected errors."""
    expected_error = release.plan.data_independent_error
    errors = [
        (entry.rmse, entry.promised_rmse) for entry in entries if entry.promised_rmse is not None
    ]
    as_promised = bool(errors or release.large_tables) and all(
        math.isclose(rmse, promised, rel_tol=1e-6) for rmse, promised in errors
    )
    return ErrorFacts(
        total_squared_error=expected_error and expected_error.total_squared_error,
        lower_bound=expected_error and expected_error.lower_bound,
        times_the_least_possible=error_over_bound(release.plan),
        meaning="sum over all answers of weight squared times variance; errors of sums count "
        "in units of the most that one row can add",
        error_bars_are_as_promised=as_promised,
        note=None if release.finding.linear else _ADAPTIVE_ERROR_NOTE,
    )


def _interval_facts(release: Release) -> IntervalFacts:
    """Return the manifest's section on intervals."""
    options = release.options
    half_rounding = 0.0
    if not isinstance(options.round, Mapping):
        half_rounding = float(largest_rounding_change(options, rounding_rule(options)[0]))
    return IntervalFacts(
        level=release.level,
        half_width_in_noise_std=release.interval.multiplier,
        half_width_added=release.interval.half_step + half_rounding,
        method=describe_intervals(release),
        notice=describe_cuts(release),
        does_not_cover=tuple(list_uncovered_errors(release)),
    )


def _post_processing_facts(release: Release) -> PostProcessing:
    """Return the manifest's section on optional columns and on rounding."""
    options = release.options
    columns: dict[str, Any] = {}
    if options.non_negative:
        methods = {release.tables.projection(product) for product in release.workload}
        columns["answer_non_negative"] = {
            method: text for method, text in PROJECTIONS.items() if method in methods
        }
    if options.integer:
        source = "answer"
        if options.non_negative:
            source = "answer_non_negative if there is one, otherwise answer"
        columns["answer_integer"] = _MEANINGS["answer_integer"] % source
    columns |= {
        name: _MEANINGS[name]
        for name in ("answer_nnls", "nnls_rmse", "answer_local", "answer_top_down")
        if name in options.occasional_columns
    }
    rounding = _describe_steps(options)
    if options.below is None:
        negative = ", and it may be negative"
    else:
        negative = ""
    note = f"answer is unbiased least squares; it is {rounding}{negative}."
    if options.has_biased_columns:
        note = " ".join(describe_optional_columns(release))
    elif not release.finding.linear:
        note = _ADAPTIVE_POST_PROCESSING % rounding
    return PostProcessing(columns=columns or [], note=note, rounding=_rounding_facts(options))


def _rounding_facts(options: Options) -> dict[str, Any] | None:
    """Return the manifest's entries on rounding, or None if there is no rounding."""
    if options.round is None and options.below is None:
        return None
    rules: dict[str, dict[str, Any]] = {}
    for key in rounded_quantities(options) or ("rows",):
        rules[key] = _rule_facts(options, *rounding_rule(options, key))
    has_own_rules = bool(rounded_quantities(options))
    facts: dict[str, Any] = {"by_quantity": rules} if has_own_rules else rules["rows"]
    facts["note"] = (
        "post-processing, which protects nobody further. noise_std is the standard error of only "
        "the noise; low and high contain both errors. Of an answer that is left out, only high is "
        "stated: the true answer is not above it, at the level of the intervals"
    )
    return facts


def _describe_steps(options: Options) -> str:
    """Return a phrase such as "rounded to multiples of 5" or "not rounded"."""
    if isinstance(options.round, Mapping):
        steps = ", ".join(f"{step} ({key})" for key, step in options.round.items())
        return f"rounded to multiples of {steps}"
    if options.round is None:
        return "not rounded"
    return f"rounded to multiples of {options.round}"


def _rule_facts(options: Options, step: Fraction, lowest_answer: Fraction | None) -> dict[str, Any]:
    """Return the manifest's entries for a rounding step and a lowest answer."""
    facts: dict[str, Any] = {}
    if step:
        facts = {
            "multiples_of": str(step),
            "added_to_half_widths": float(largest_rounding_change(options, step)),
        }
        facts["standard_error_of_rounding"] = round(
            float(step) / math.sqrt(12), 3 - math.floor(math.log10(float(step)))
        )
    if lowest_answer is not None:
        facts["left_out_below"] = str(lowest_answer)
    return facts


def _statement_facts(release: Release, number: int, text: str) -> StatementFacts:
    """Return the manifest's entry for a SQL statement."""
    return StatementFacts(
        sql=text,
        files=statement_path(number),
        without_interval=tuple(release.read_statement(text).without_interval),
    )


def _covariance_facts(options: Options) -> CovarianceFacts | None:
    """Return the manifest's section on files of covariances, or None."""
    if not options.covariances:
        return None
    files = [CovarianceFile(query=key, files=f"covariances/{key}") for key in options.covariances]
    return CovarianceFacts(tables=tuple(files), meaning=_MEANINGS["covariances"])


def _answer_facts(release: Release, entries: Sequence[TableEntry]) -> AnswerFacts:
    """Return the manifest's section on the files of answers."""
    layout = "one file a table: query, one key column an attribute, and the numbers"
    if len(release.tables) > MOST_TABLE_FILES:
        layout = (
            "one folder for every number of attributes, with parts of many tables each: query, "
            "attribute_1, value_1, ..., and the numbers"
        )
    tables: tuple[ListedTable, ...] | str = "listed in tables.csv"
    if len(entries) <= MOST_LISTED_TABLES:
        tables = _list_tables(release, entries)
    return AnswerFacts(
        index="tables.csv",
        layout=layout,
        formats=tuple(release.options.formats),
        unit="rows; a sum in the measure's own unit (the whole multiples that were measured, "
        "times its unit)",
        of=describe_row_limit(release),
        columns=_describe_answer_columns(release),
        too_large_to_write=tuple(
            describe_large_table(release, product) for product in release.large_tables
        ),
        number_of_tables=len(entries),
        number_of_answers=sum(entry.answers for entry in entries),
        tables=tables,
    )


def _describe_answer_columns(release: Release) -> dict[str, str]:
    """Return an explanation of each number column in the files of answers."""
    level = ENGLISH.format_percent(release.level)
    columns = dict(_ADAPTIVE_COLUMNS)
    if release.finding.linear:
        columns = dict(_COLUMNS)
    columns["low"] = f"lower end of the {level} interval"
    columns["high"] = f"upper end of the {level} interval"
    if release.options.survey:
        columns |= describe_survey_columns()
    return columns


def _list_tables(release: Release, entries: Sequence[TableEntry]) -> tuple[ListedTable, ...]:
    """Return the manifest's entry for each table."""
    tables = []
    for product, entry in zip(release.workload.products, entries, strict=False):
        projection = None
        if release.options.non_negative:
            projection = release.tables.projection(product)
        tables.append(
            ListedTable(
                entry=entry,
                key_columns=tuple(name_key_columns(product.keys, NUMBER_COLUMNS)),
                answer_non_negative=projection,
            )
        )
    return tuple(tables)


def _statistic_facts(release: Release, table: StatisticTable) -> StatisticFacts:
    """Return the manifest's entry for a statistic."""
    statistic = table.statistic
    if statistic.kind == "means":
        meaning = f"{ENGLISH.say(table.meaning_key)} {_MEAN_INTERVALS}"
    else:
        meaning = _MEANINGS[statistic.kind]
    if statistic.kind in {"quantiles", "cdf"}:
        meaning = meaning % ("rows" if statistic.weighted_by is None else "weights")
    tables = release.plan.workload.tables_of(statistic)
    return StatisticFacts(
        query=table.id,
        name=table.name,
        request=statistic.to_json(),
        tables=tuple(product.name for product in tables),
        files=statistic_path(release, table),
        key_columns=tuple(table.key_columns()),
        values=table.cells,
        meaning=meaning,
        columns=describe_columns(table),
    )
