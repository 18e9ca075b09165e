"""A release: the answers to a workload with their error bars.

Computed from an observation only.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from leastnoise._error import (
    Covariance,
    checked_level,
    covariances,
    equations,
    interval_multiplier,
    measure_covariance,
)
from leastnoise._estimation import (
    Estimate,
    Finding,
    Outcome,
    locally_non_negative,
    nnls,
    public_counts_of_plan,
    sums_within,
)
from leastnoise._frames import Columns, pluralize, to_frame
from leastnoise._plan import Plan, guard_share, with_guard
from leastnoise._release._options import (
    Options,
    check_formats,
    is_large,
    is_part,
    table_position,
    written,
)
from leastnoise._release._records import make_records
from leastnoise._release._sql_answers import (
    answer_statement,
    check_statements,
    find_answer,
    read_statement,
)
from leastnoise._release._statistics import Statistics
from leastnoise._release._tables import MOST_SHOWN, Interval, Table, Tables, in_unit
from leastnoise._release._texts import ENGLISH, limit_words, texts
from leastnoise._threads import one_thread
from leastnoise._trusted.accounting import Privacy, charge_text, whole_budget
from leastnoise._trusted.check import InputError, html_facts, number_text, refuse
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.measurements import Measurements, Observation
from leastnoise._workload import (
    Product,
    QuerySet,
    SqlSettings,
    Statement,
    Workload,
    declared,
    over,
    predicates,
    queries,
    questions_over,
    ranges,
)

MOST_IN_ONE_FRAME = 20_000_000
_MOST_JOINT, _MOST_LOCAL = 2**16, 2**22  # cells
_MOST_COVARIANCES = 2**11
_MOST_SUMS = 2  # whole numbers with the sums of two partitions always exist


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Release:
    """Answers with error bars. Made by `build`.

    Args:
        outcome: what was measured, and what a data-aware mechanism chose.
        workload: what was asked; in the place of tables too large to write their cells, and behind
            all others their prefix sums.
        options: the options beside the plan, with tables named by their ids.
        receipt: further facts about the payment, such as the ledger's name.
        tables: one a product of the workload, computed when taken.
        statistics: the means, quantiles and distribution functions that were asked for, computed
            when taken.

    Guarantees: post-processing of the observation; it never looks at the data, so it costs nothing,
        however often it is made.
    """

    outcome: Outcome
    workload: Workload
    options: Options
    receipt: Mapping[str, Any] = field(default_factory=dict)
    tables: Tables
    statistics: Statistics
    _structures: dict[str | None, Covariance] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        return f"Release({self._what()}; {', '.join(text for _, text in self._facts()[1:])})"

    def _repr_html_(self) -> str:
        lang = texts()
        tables = [
            (
                table.name,
                f"{pluralize(table.cells, 'answer')}, ± {lang.error(table.typical_margin)}",
            )
            for table in self.tables[:MOST_SHOWN]
        ]
        more = (
            [("...", f"{len(self.tables) - MOST_SHOWN:,} more tables")]
            if len(self.tables) > MOST_SHOWN
            else []
        )
        return html_facts(f"Release of {self._what()}", [*self._facts(), *tables, *more])

    def _what(self) -> str:
        return f"{texts().some('answers', self.workload.rows)} in {texts().some('tables', len(self.tables))}"

    def _facts(self) -> list[tuple[str, str]]:
        privacy = self.privacy
        facts = [
            ("protects", privacy.unit),
            ("cost", charge_text(privacy.budget, whole_budget(privacy.budget))),
        ]
        facts += (
            [("answers", of)]
            if (of := limit_words(privacy, self.receipt, self.level, ENGLISH))
            else []
        )
        return facts if self.private else [*facts, ("noise", "NOT PRIVATE, from a seed")]

    @property
    def library(self) -> str | None:
        """The library of its data frames.

        That of the data, if these were a frame; None for the first that is installed.
        """
        return self.tables.library

    @property
    def plan(self) -> Plan:
        """The plan that was carried out."""
        return self.outcome.plan

    @property
    def privacy(self) -> Privacy:
        """The privacy of all that is published.

        The plan's budget and, if there was a guard, its share.
        """
        return with_guard(self.plan.privacy, guard_share(self.receipt.get("guard_share")))

    @property
    def observation(self) -> Observation:
        """What was measured."""
        return self.outcome.observation

    @property
    def measurements(self) -> Measurements:
        """The queries that were measured."""
        return self.observation.measurements

    @property
    def finding(self) -> Finding:
        """What a data-aware mechanism chose."""
        return self.outcome.finding

    @property
    def plan_digest(self) -> str:
        """The plan's digest."""
        return self.plan.digest()

    @property
    def large(self) -> tuple[Product, ...]:
        """The requested tables that are too large to write.

        Their cells and prefix sums are written instead.
        """
        return tuple(product for product in self.plan.workload if is_large(product))

    @property
    def level(self) -> float:
        """Coverage of the intervals ``low`` to ``high``."""
        return self.options.level

    @property
    def interval(self) -> Interval:
        """How wide intervals at this level are."""
        return interval_of(self.measurements, self.level)

    @property
    def private(self) -> bool:
        """False if the noise came from a seed."""
        return self.observation.private

    @property
    def answers(self) -> Any:
        """All answers as one data frame: query, cell, answer, noise_std, low, high.

        It comes from the library of the data, if these were a data frame, else from the first of
        pandas, polars and pyarrow that is installed.

        Raises:
            InputError: none is installed, or there are over 20 million answers.
        """
        return self.long()

    @one_thread()
    def long(self, library: str | None = None) -> Any:
        """Return all answers as one data frame in long form.

        Columns query, cell, answer, noise_std, low, high, and the optional ones.

        Args:
            library: pandas, polars or pyarrow; None for that of the data, or else the first that is
                installed.

        Raises:
            InputError: the library is not installed, or there are over 20 million answers.
        """
        if not self.workload.rows <= MOST_IN_ONE_FRAME:
            raise InputError(
                f"One data frame may hold at most {MOST_IN_ONE_FRAME} answers; got "
                f"{self.workload.rows}. "
                "Take one table at a time with release.frame(id), or read the files of a release "
                "that is made with out=."
            )
        parts: dict[str, list[Any]] = {
            "query": [],
            "cell": [],
            "answer": [],
            "noise_std": [],
            "low": [],
            "high": [],
        }
        for table in self.tables:
            numbers = table.numbers()
            for name in self.options.some:
                numbers.setdefault(name, np.full(table.cells, np.nan))
            parts["query"].append(np.full(table.cells, table.id, dtype=object))
            parts["cell"].append(np.array(table.cell_names(), dtype=object))
            for name, values in numbers.items():
                parts.setdefault(name, []).append(values)
        return to_frame(
            {name: np.concatenate(values) for name, values in parts.items()},
            library or self.library,
        )

    def frame(self, table_id: str, library: str | None = None) -> Any:
        """Return one table as a data frame.

        Columns query, one key for each attribute, answer, noise_std, low, high.

        Args:
            table_id: such as ``q1``, or the table's name.
            library: pandas, polars or pyarrow; None for that of the data, or else the first that is
                installed.

        Raises:
            InputError: no such table, or the library is not installed.
        """
        return self.tables[table_id].frame(library)

    def plot(self, table_id: str) -> Any:
        """Return a table as an Altair chart, which notebooks show.

        It can be changed and saved.

        Args:
            table_id: such as ``q1``, or the table's name.

        Raises:
            InputError: no such table, or it is a single number.
        """
        return self.tables[table_id].plot()

    @one_thread()
    def answer(self, questions: Workload, *, level: float | None = None) -> tuple[Table, ...]:
        """Answers to further questions, from the measurements; they cost nothing.

        Args:
            questions: over the release's domain, such as ``leastnoise.queries(domain,
                age=leastnoise.ranges([(20, 39)]))``.
            level: coverage of the intervals; None for that of the release.

        Returns:
            One table a product, with exact errors and intervals; `Table.frame` makes data frames of
            them.

        Raises:
            InputError: the measurements do not determine an answer, or it is of another domain or
                has too many numbers.

        >>> domain = ln.Domain(age=ln.Integers(1, 3))
        >>> plan = ln.plan(ln.queries(domain, age="identity"), ln.PureDP(1))
        >>> release = ln.release(plan, pd.DataFrame({"age": [1, 2, 2, 3]}), seed=7)
        >>> (table,) = release.answer(ln.queries(domain, age=ln.ranges([(1, 2)])))
        >>> table.answer.round(6).tolist(), table.noise_std.round(3).tolist()
        ([2.0], [1.919])
        """
        declared_domain = declared(self.plan.domain)
        over_declared = questions_over(over(questions, declared(questions.domain)), declared_domain)
        if over_declared is None:
            raise InputError(
                "Questions to a release must be over its own domain, release.plan.domain."
            )
        questions = over(over_declared, self.plan.domain)
        if not questions.rows <= MOST_IN_ONE_FRAME:
            raise InputError(
                f"At most {MOST_IN_ONE_FRAME} answers can be given at once; got {questions.rows}. "
                "Ask for fewer."
            )
        interval = interval_of(
            self.measurements, self.level if level is None else checked_level(level)
        )
        # A mechanism's own answers have intervals for the queries of its workload; others need
        # measurements that determine them.
        asked = all(
            any(is_part(question, product) for product in self.plan.workload)
            for question in questions
        )
        estimator = self.outcome.estimator() if asked else self.least_squares()
        options = Options(labels=self.options.labels)
        return tuple(
            Tables(
                estimator,
                questions.products,
                options,
                interval,
                library=self.library,
                privacy=self.privacy,
            )
        )

    def least_squares(self) -> Estimate:
        """The least squares estimate, for questions that were not in the workload.

        Raises:
            InputError: what was measured was chosen by its own noise, or cut at a threshold, so
                that no interval of a new answer is known.
        """
        if not self.finding.further:
            raise InputError(
                "No interval is known for further answers from a release by "
                f"{self.plan.strategy!r}, which chose by looking at the data "
                "what to measure. Ask for them in the workload, or choose strategy = 'auto'."
            )
        return self.outcome.least_squares()

    def sum(
        self, table_id: str, where: Mapping[str, Any] | None = None, *, level: float | None = None
    ) -> Table:
        """The sum of some cells of a table, with its exact error; it costs nothing.

        Args:
            table_id: such as ``q1``, or the table's name.
            where: for some of its attributes the labels to be added up: one, a list, or a pair
                (low, high) of numbers as in `ranges`. All cells along every other attribute are
                added up.
            level: coverage of the interval; None for that of the release.

        Returns:
            A table of one answer.

        Raises:
            InputError: no such table, an attribute that is not in it, or a label that is none.

        >>> plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"], age=ln.Integers(17, 90)), ways=2), ln.PureDP(1))
        >>> release = ln.release(plan, pd.DataFrame({"sex": ["F", "M", "M"], "age": [20, 30, 40]}), seed=7)
        >>> release.sum("sex x age", {"sex": "M", "age": (20, 39)}).noise_std.round(2).tolist()
        [[6.07]]
        """
        product = self.workload.products[self.tables.position(table_id)]
        sets: dict[str, QuerySet] = {}
        for name, values in (where or {}).items():
            if name not in product.attributes:
                raise refuse(
                    "an attribute of where", name, "one of " + ", ".join(product.attributes)
                )
            if (
                isinstance(values, tuple)
                and len(values) == 2
                and not any(isinstance(value, str) for value in values)
            ):
                sets[name] = ranges([values])
                continue
            labels = list(values) if isinstance(values, (list, tuple, set, frozenset)) else [values]
            if not labels:
                raise refuse(
                    "the labels of where",
                    labels,
                    "at least one label, or a pair (low, high) of numbers",
                )
            sets[name] = predicates([labels])
        for name in product.attributes:
            kind = self.plan.domain.kind(name)
            if kind.hidden and name not in sets:
                # The table leaves out the rows of the hidden cell, and so does the sum.
                sets[name] = predicates([kind.labels])
        (table,) = self.answer(queries(self.plan.domain, sets, sum=product.measure), level=level)
        return table

    @one_thread()
    def synthesize(
        self,
        rows: int | None = None,
        *,
        seed: int = 0,
        units: bool = False,
        library: str | None = None,
    ) -> Any:
        """Return records that agree with the release, at no cost.

        A data frame in the columns and spellings of its domain.

        A model of the tables is rounded to rows: the model of a release by the strategy ``model``,
        else one that is fitted to its answers. Where an attribute is a bin or a period, values are
        drawn evenly from within it. What was not asked of together is independent.

        Args:
            rows: how many; None for as many as the release counted.
            seed: of the rounding; any whole number from 0, for nothing here is private.
            units: group rows into units, all of about as many rows as a unit has in the mean, by
                the release's counts of rows and units.
            library: pandas, polars or pyarrow; None for that of the data, or else the first that is
                installed.

        Raises:
            InputError: no counts were asked for, the cells of an attribute are not determined, over
                2^27 rows, or no counts of units.

        >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(17, 20))
        >>> plan = ln.plan(ln.marginals(domain, ways=2), ln.PureDP(2))
        >>> release = ln.release(plan, pd.DataFrame({"sex": ["F", "M"] * 20, "age": [17, 18, 19, 20] * 10}), seed=7)
        >>> release.synthesize(rows=3).shape
        (3, 2)
        """
        return to_frame(
            make_records(self.outcome, rows, seed, units=units).columns(), library or self.library
        )

    @one_thread()
    def with_nnls(self) -> "Release":
        """Return the release with non-negative least squares columns, at no cost.

        The biased columns ``answer_nnls`` and ``nnls_rmse`` stand beside the others.

        Raises:
            InputError: over 2^20 joint cells, or answers that are no linear estimates.

        >>> domain = ln.Domain(sex=["F", "M"])
        >>> block = Block((Factor(("sex",), Identity(2)),), scale=1)
        >>> cells = Measurements(domain=domain, privacy=ln.Privacy(ln.PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,))
        >>> plan = evaluate_plan(ln.marginals(domain, ways=1), cells)
        >>> release = build(Outcome(plan, Observation(cells, (np.array([5, -1]),), "", private=False)))
        >>> release.with_nnls().tables["sex"].nnls.round(6) + 0.0
        array([4., 0.])
        """
        return build(self.outcome, replace(self.options, nnls=True), self.receipt, self.library)

    def sql(self, statement: str, library: str | None = None) -> Any:
        """Return the answers of a SQL statement as a data frame.

        It has the columns of SELECT. An answer ``n``, or a monotone function of one, is followed
        by the ends of its interval, ``n_low`` and ``n_high``.

        Args:
            statement: a SELECT, as `leastnoise.sql` takes it.
            library: pandas, polars or pyarrow; None for that of the data, or else the first that is
                installed.

        Raises:
            InputError: a clause that cannot be answered, or tables that the measurements do not
                determine. Means and quantiles must have been asked for before the release.

        >>> domain = ln.Domain(age=ln.Integers(1, 3))
        >>> release = ln.release(ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1)), pd.DataFrame({"age": [1, 2, 2, 3]}), seed=7)
        >>> list(release.sql("SELECT age > 1 AS older, COUNT(*) AS n FROM people GROUP BY older"))
        ['older', 'n', 'n_low', 'n_high']
        """
        return to_frame(self.answered(statement), library or self.library)

    @one_thread()
    def answered(self, text: str) -> Columns:
        """The answers of a SQL statement, by the names of its columns."""
        return answer_statement(self.read_statement(text), self._numbers)

    def read_statement(self, text: str) -> Statement:
        """Return a SQL statement over the domain of the release.

        Raises:
            InputError: a clause that cannot be answered, by its name and position.
        """
        return read_statement(self.plan.workload, sql_settings(self.plan, self.options), text)

    def _numbers(self, workload: Workload) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Answer one aggregate of a statement.

        As it was published if it was, else from the measurements.
        """
        position = find_answer(self.plan.workload, workload)
        if workload.statistics and position is None:
            raise InputError(
                f"The {workload.statistics[0].name} was not requested before this release, so it "
                "cannot be answered."
            )
        if workload.statistics and position is not None:
            statistic = self.statistics[position]
            return statistic.values, statistic.low, statistic.high
        table = self.answer(workload)[0] if position is None else self.tables[position]
        return table.answer, table.low, table.high

    @one_thread()
    def covariance(self, table_id: str, other_id: str | None = None) -> FloatArray:
        """Return the noise covariances of one table's answers, or of two tables'.

        Public, because they depend only on the plan.

        Args:
            table_id: such as ``q1``, or the table's name.
            other_id: another table of the same measure; None for the same.

        Returns:
            Array of shape (answers, answers of the other), answers in row-major order, in squared
            rows or amounts. Its diagonal is ``noise_std`` squared. The variance of a weighted sum w
            of answers is ``w @ covariance @ w``.

        Raises:
            InputError: no such table, tables of two measures, over 2^24 pairs, or estimates that
                need a linear solver.

        >>> plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=0), ln.PureDP(1))
        >>> release = ln.release(plan, pd.DataFrame({"sex": ["F", "M"]}), seed=7)
        >>> release.covariance("total").round(3).tolist()
        [[1.841]]
        """
        positions = (
            self.tables.position(key)
            for key in (table_id, table_id if other_id is None else other_id)
        )
        return self.covariances(*(self.workload.products[position] for position in positions))

    def covariances(self, first: Product, second: Product) -> FloatArray:
        """Return the noise covariances of the answers of two products.

        Products over the domain, requested or not; see `covariance`.
        """
        check_linear(self.plan, ["covariances"], linear=self.finding.linear)
        measure = first.measure
        if measure not in self._structures:
            exact = [known.block for known in public_counts_of_plan(self.plan)]
            self._structures[measure] = measure_covariance(self.measurements, measure, exact)
        return in_unit(first, in_unit(first, covariances(self._structures[measure], first, second)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """The line of a table in the index ``tables.csv``."""

    query: str
    name: str
    files: str
    attributes: tuple[str, ...]
    answers: int
    measure: str | None
    quantity: str
    unit: str
    weight: str
    rmse: float
    largest_std: float
    promised_rmse: float | None
    leaves_out: tuple[str, ...]
    of: str


def statement_file(number: int) -> str:
    """The path of the answers of a SQL statement, without ending."""
    return f"answers/statement-{number}"


def interval_of(measurements: Measurements, level: float) -> Interval:
    """Return how far intervals of a level reach."""
    two_sided, one_sided = (
        interval_multiplier(measurements.noise, each) for each in (level, max(2 * level - 1, 0.0))
    )
    return Interval(two_sided, 0.5 / measurements.grid, one_sided)


def build(
    outcome: Outcome,
    options: Options | None = None,
    receipt: Mapping[str, Any] | None = None,
    library: str | None = None,
) -> Release:
    """Build the release of an outcome.

    Its tables are computed when they are used or written.
    """
    workload = Workload(outcome.plan.domain, written(outcome.plan.workload.products))
    asked = Options() if options is None else options
    ids = tuple(
        dict.fromkeys(f"q{table_position(workload.products, key) + 1}" for key in asked.covariances)
    )
    options = replace(asked, covariances=ids)
    check_linear(outcome.plan, options.optional_columns, linear=outcome.finding.linear)
    estimate, measures = outcome.least_squares(), _never_negative(workload)
    public = public_counts_of_plan(outcome.plan)
    # both stop after a bounded number of rounds
    known = {
        each: None if public else estimate.covariance_of(each) for each in measures if options.nnls
    }
    joint = {each: nnls(outcome.observation, measure=each, known=of) for each, of in known.items()}
    local = {
        each: locally_non_negative(estimate, _tables(workload, each), measure=each)
        for each in measures
        if options.local_non_negative
    }
    interval = interval_of(outcome.observation.measurements, options.level)
    tables = Tables(
        outcome.estimator(),
        workload.products,
        options,
        interval,
        joint,
        local,
        library,
        outcome.plan.privacy,
        public,
    )
    statistics = Statistics(estimate, outcome.plan.workload, options, library)
    return Release(
        outcome=outcome,
        workload=workload,
        options=options,
        receipt=dict(receipt or {}),
        tables=tables,
        statistics=statistics,
    )


def sql_settings(plan: Plan, options: Options) -> SqlSettings:
    """Return what the SQL statements of a release are read with."""
    return SqlSettings(
        unit=plan.privacy.unit_column,
        today=options.today or None,
        join=None if not options.joined_on else (options.joined_on[0], options.joined_on[-1]),
    )


def check_options(plan: Plan, options: Options) -> None:
    """Refuse options that this plan cannot fulfil, before anything is paid."""
    tables = written(plan.workload.products)
    check_formats(options.formats, tables)
    check_statements(plan.workload, sql_settings(plan, options), options.statements)
    for asked in plan.workload.statistics:
        if plan.measurements is None:
            raise InputError(
                f"The {asked.name} cannot be given by the strategy {plan.strategy!r}, which "
                "decides on the way what is measured, so that "
                "no interval is known. Leave it out, or choose strategy = 'auto'."
            )
    _check_whole_rounding(tables, options)
    public = public_counts_of_plan(plan)
    counts = [table for table in tables if table.measure is None]
    if options.integer and any(
        len(sums_within(table.attributes, table.shape, public)) > _MOST_SUMS for table in counts
    ):
        raise refuse(
            "integer",
            options.integer,
            f"left out where a table has more than {_MOST_SUMS} tables of public counts in it",
        )
    check_linear(plan, options.optional_columns, linear=plan.measurements is not None)
    if plan.measurements is None:
        return
    if options.nnls or options.local_non_negative:
        _check_biased(
            plan.measurements, plan.workload, joint=options.nnls, local=options.local_non_negative
        )
    for key in options.covariances:
        product = tables[table_position(tables, key)]
        if not product.rows <= _MOST_COVARIANCES:
            what, advice = (
                f"the table {key!r} whose covariances are written",
                "Take them from Python, with release.covariance.",
            )
            raise refuse(what, product.rows, f"of at most {_MOST_COVARIANCES} answers", advice)
        if measure_covariance(plan.measurements, product.measure).solver_cells:
            raise InputError(
                f"The covariances of {key!r} are not known under the strategy {plan.strategy!r}, "
                "whose estimates need a linear solver. "
                "Choose another strategy."
            )


def _check_whole_rounding(tables: Sequence[Product], options: Options) -> None:
    """Refuse whole answers that rounding would make of something else: no rows, or no multiples of a measure's unit."""
    if not options.integer or options.round is None:
        return
    step = Fraction(options.round)
    for table in tables:
        unit = Fraction(1)
        if table.measure is not None:
            unit = table.domain.measure(table.measure).unit
        stays_whole = (step / unit).denominator == 1 or (unit / step).denominator == 1
        if not stays_whole:
            raise refuse(
                "round",
                number_text(step),
                f"a whole multiple of {number_text(unit)} beside integer = true, as {table.name} "
                "is counted in these",
                "Round to whole multiples, or leave out integer.",
            )


def check_linear(plan: Plan, asked: Sequence[str], *, linear: bool) -> None:
    """Raise for options that need linear estimates and do not have them.

    Also for non-negative least squares with public counts, which it would change.
    """
    if asked and not linear:
        raise InputError(
            f"{' and '.join(asked)} cannot be given by the strategy {plan.strategy!r}, whose "
            "answers are no linear estimates. Leave that "
            "out, or choose strategy = 'auto'."
        )
    if "nnls" in asked and public_counts_of_plan(plan):
        raise refuse(
            "nnls", True, "left out where counts are public", "local_non_negative keeps their sums."
        )


def _check_biased(
    measurements: Measurements, workload: Workload, *, joint: bool, local: bool
) -> None:
    measures = _never_negative(workload)
    if not measures:
        raise InputError(
            "Answers without negative cells can be asked for counts and for measures whose lowest "
            "value is at least 0, and there are none "
            "of these. Leave out nnls and local_non_negative."
        )
    sizes = {name: measurements.domain.kind(name).size for name in measurements.domain.names}
    if joint:
        touched = [
            {name for entry in equations(measurements, measure) for name in entry.block.attributes}
            for measure in measures
        ]
        cells = max(math.prod(sizes[name] for name in names) for names in touched)
        if not cells <= _MOST_JOINT:
            advice = "Leave out nnls, ask for local_non_negative, or take it from the finished release, with release.with_nnls()."
            raise refuse(
                "the joint table of non-negative least squares",
                cells,
                f"of at most {_MOST_JOINT} cells",
                advice,
            )
    if local:
        total = sum(
            math.prod(sizes[name] for name in names)
            for measure in measures
            for names in _tables(workload, measure)
        )
        if not total <= _MOST_LOCAL:
            advice = "Leave out local_non_negative, or ask for fewer or coarser tables."
            raise refuse(
                "the tables of the local projection",
                total,
                f"of at most {_MOST_LOCAL} cells",
                advice,
            )
    # Whatever else could fail, such as cells that the measurements do not determine, fails now, on
    # made-up numbers of the noise's size.
    spreads = [
        float(block.scale) * measurements.grid / block.scaling() for block in measurements.blocks
    ]
    values = tuple(
        np.rint(spread * np.cos(np.arange(len(spread)))).astype(np.int64) for spread in spreads
    )
    tried = Observation(measurements, values, "", private=False)
    option = "nnls"
    try:
        by_measure = {measure: nnls(tried, measure=measure) for measure in measures if joint}
        for product in workload:
            if product.measure in by_measure:
                by_measure[product.measure].values(product)
        option = "local_non_negative"
        for measure in measures if local else ():
            locally_non_negative(
                Estimate(tried), _tables(workload, measure), measure=measure, rounds=0
            )
    except InputError as error:  # cells are needed also where only sums of them were asked for
        raise InputError(
            f"{option} needs every cell of the attributes that a table is about. {error} Or leave "
            f"out {option}."
        ) from error


def _never_negative(workload: Workload) -> list[str | None]:
    measures = workload.domain.measures
    return [
        measure
        for measure in workload.measures
        if measure is None or measures[measure].low_units >= 0
    ]


def _tables(workload: Workload, measure: str | None) -> list[tuple[str, ...]]:
    return list(
        dict.fromkeys(product.attributes for product in workload if product.measure == measure)
    )
