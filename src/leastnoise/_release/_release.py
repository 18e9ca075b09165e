"""A release: the answers to a workload with their error bars.

Everything in a release is computed from an observation.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from leastnoise._domain import Measure
from leastnoise._error import (
    Covariance,
    checked_level,
    covariances,
    equations,
    interval_multiplier,
    measure_covariance,
    measured_multiplier,
)
from leastnoise._estimation import (
    MOST_CONTROLLED_CELLS,
    Estimate,
    Finding,
    Outcome,
    check_top_down,
    finest_table,
    locally_non_negative,
    nnls,
    pair_covariances,
    public_counts_of_plan,
    public_sums_within,
    read_combinations,
    top_down_measures,
)
from leastnoise._facts import summarize
from leastnoise._frames import Columns, pluralize, to_frame
from leastnoise._plan import (
    AdaptivePlan,
    EarlierRelease,
    LinearPlan,
    Plan,
    SeriesPlan,
    checked_guard_share,
    with_guard,
)
from leastnoise._release._clipped_values import (
    ClippedValues,
    OuterCells,
    clipped_measures,
    outer_cells,
)
from leastnoise._release._csv_files import make_file_name
from leastnoise._release._json_records import ALWAYS_WRITTEN
from leastnoise._release._observation import observation_digest
from leastnoise._release._options import (
    Options,
    check_formats,
    check_names_and_survey,
    display_texts,
    find_table_position,
    is_contained_in,
    is_too_large_to_write,
    product_rounding,
    tables_to_write,
    with_table_names,
)
from leastnoise._release._receipt import NO_RECEIPT, ReceiptFacts
from leastnoise._release._records import make_records
from leastnoise._release._release_tables import (
    MOST_SHOWN_CELLS,
    AnswerTable,
    IntervalWidth,
    Tables,
    convert_to_amounts,
)
from leastnoise._release._sql_answers import (
    answer_statement,
    check_statements,
    find_answer,
    read_statement,
)
from leastnoise._release._sql_combinations import AnswerNoise
from leastnoise._release._statistics import Statistics, StatisticTable
from leastnoise._release._survey import Survey, read_survey
from leastnoise._texts import load_catalogue
from leastnoise._threads import one_thread
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import InputError, html_facts, number_text, refuse
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.measurements import Measurements, Observation
from leastnoise._workload import (
    Product,
    QuerySet,
    SqlSettings,
    Statement,
    Workload,
    predicates,
    queries,
    questions_over,
    ranges,
    rows_left_out,
    with_hidden_groups,
    without_hidden_cells,
    workload_over,
)

MOST_TABLE_FILES = 200  # up to this number, each table has separate files
MOST_FRAME_ANSWERS = 20_000_000  # answers in one data frame
_MOST_JOINT_CELLS = 2**16  # cells of the joint table of non-negative least squares
_MOST_LOCAL_CELLS = 2**22  # cells of all tables of the local projection
_MOST_COVARIANCE_ANSWERS = 2**11  # answers of a table whose covariances are written
# Public tables inside one table: whole numbers with the sums of two partitions always exist.
_MOST_PUBLIC_TABLES = 2


_FACTS_IN_REPR = ("budget", "row_limit", "noise")


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRows:
    """The estimated number of rows that tables of an attribute leave out.

    The value of the attribute is missing or outside the domain in these rows.

    Attributes:
        attribute: the name of the attribute.
        rows: an unbiased estimate of the number of these rows; NaN if it is less than the option
            ``below``.
        margin: half of the width of the interval around ``rows``; NaN if ``rows`` is NaN.
        joint_margin: half of the width of a wider interval. The wider intervals of all attributes
            of the release are simultaneous at the level (Bonferroni). NaN if ``rows`` is NaN.
        all_rows: an estimate of the number of rows that are measured. Rows without a value of an
            attribute that every table uses are not measured.
    """

    attribute: str
    rows: float
    margin: float
    joint_margin: float
    all_rows: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Release:
    """Answers with error bars, created by `build_release`.

    Args:
        outcome: the plan, the observation, and the choices of a data-dependent mechanism.
        workload: the tables to write. They are the tables of the requested workload, with one
            exception. If a table is too large to write, the table of its cells replaces it, and its
            prefix sums are added at the end.
        options: the options of the release, with tables named by their ids.
        receipt: the payment, the counts of the guard and the second table.
        tables: one table for each product of the workload, computed on access.
        statistics: the requested means, quantiles and distribution functions, computed on access.

    Guarantees: a release is post-processing of the observation. A release never reads the data, and
        can be built any number of times at no cost.
    """

    outcome: Outcome
    workload: Workload
    options: Options
    receipt: ReceiptFacts = NO_RECEIPT
    tables: Tables
    statistics: Statistics
    _covariances: dict[str | None, Covariance] = field(default_factory=dict, init=False, repr=False)
    _missing_rows: dict[str, MissingRows | None] = field(
        default_factory=dict, init=False, repr=False
    )
    _clipped_values: dict[str, tuple[ClippedValues, ...]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __repr__(self) -> str:
        (_, size), *facts = summarize(self, "size", *_FACTS_IN_REPR)
        return f"Release({size}; {', '.join(text for _, text in facts)})"

    def _repr_html_(self) -> str:
        """Return the main facts about the release as an HTML table, for notebooks."""
        catalogue = load_catalogue()
        (_, size), *facts = summarize(self, "size", "protects", *_FACTS_IN_REPR)
        for table in self.tables[:MOST_SHOWN_CELLS]:
            margin = catalogue.format_error(table.typical_margin)
            facts.append((table.name, f"{pluralize(table.cells, 'answer')}, ± {margin}"))
        if len(self.tables) > MOST_SHOWN_CELLS:
            facts.append(("...", f"{len(self.tables) - MOST_SHOWN_CELLS:,} more tables"))
        return html_facts(f"Release of {size}", facts)

    @property
    def library(self) -> str | None:
        """The data frame library used by default; None for the first installed one.

        If the data were a data frame, the default is its library.
        """
        return self.tables.library

    @property
    def plan(self) -> Plan:
        """The plan that was carried out."""
        return self.outcome.plan

    @property
    def privacy(self) -> Privacy:
        """The privacy guarantee of the whole release.

        The budget covers the plan and, if there was a guard, the guard.
        """
        guard = self.receipt.guard
        share = None if guard is None else checked_guard_share(guard.share)
        return with_guard(self.plan.privacy, share)

    @property
    def observation(self) -> Observation:
        """The noisy values of the measured queries."""
        return self.outcome.observation

    @property
    def measurements(self) -> Measurements:
        """The queries that were measured."""
        return self.observation.measurements

    @property
    def finding(self) -> Finding:
        """The data-dependent choices of the mechanism."""
        return self.outcome.finding

    @property
    def plan_digest(self) -> str:
        """The digest that identifies the plan."""
        return self.plan.digest()

    def as_earlier(self, name: str = "") -> EarlierRelease:
        """Return the measurements and receipts for a later plan on the same data.

        `leastnoise.plan(workload, budget, after=[release])` calls this method.

        Args:
            name: the name of the release in messages, such as its folder; defaults to its number in
                the ledger.

        Raises:
            InputError: the error of the answers depends on the data, or the release is a period
                of a series.

        >>> plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
        >>> release = ln.release(plan, pd.DataFrame({"sex": ["F", "M", "M"]}), seed=7)
        >>> release.as_earlier().name
        'a seeded release'
        """
        plan = self.plan
        payment = self.receipt.payment
        if not name:
            name = f"release {payment.number}" if payment else "a seeded release"
        if isinstance(plan, SeriesPlan):
            raise InputError(
                f"The earlier release {name!r} must count all rows, but it is a period of a "
                "series, and a period counts only the rows of its time. Remove it from `after`."
            )
        if not isinstance(plan, LinearPlan):
            raise InputError(
                f"The earlier release {name!r} must have an error that does not depend on the "
                f"data. Its strategy {plan.strategy!r} chose its measurements by noisy values, so "
                "the error of an estimate that uses them is unknown. Leave it out of after."
            )
        is_paid = bool(self.observation.receipt)
        receipts = [self.observation.receipt] if is_paid else []
        plan_digests = [self.plan_digest] if is_paid else []
        counted = []
        for earlier in plan.earlier:
            receipts += earlier.receipts
            plan_digests += earlier.plan_digests
            counted += [earlier.digest, *earlier.counted]
        return EarlierRelease(
            name=name,
            digest=observation_digest(self.outcome),
            dataset=payment.dataset if payment else "",
            receipts=tuple(receipts),
            plan_digests=tuple(plan_digests),
            counted=tuple(counted),
            attributes=plan.used()[0],
            observation=self.observation,
        )

    @property
    def large_tables(self) -> tuple[Product, ...]:
        """The requested tables that are too large to write.

        The cells and the prefix sums of these tables are written instead.
        """
        return tuple(product for product in self.plan.workload if is_too_large_to_write(product))

    @property
    def level(self) -> float:
        """The coverage probability of the intervals from ``low`` to ``high``."""
        return self.options.level

    @property
    def interval(self) -> IntervalWidth:
        """The half widths of the release's intervals, in standard errors."""
        return interval_width(self.measurements, self.level, self.workload.products)

    @property
    def survey(self) -> Survey | None:
        """The stated sampling errors of a survey; None if none are stated."""
        return read_survey(self.options.survey)

    def find_published(
        self, kind: str, measure: str | None, groups: Mapping[str, QuerySet]
    ) -> AnswerTable | StatisticTable | None:
        """Return the published table of a quantity by groups, or None.

        Args:
            kind: "count", "sum" or "mean".
            measure: the measure of a sum or a mean; None for counts of rows.
            groups: the query set along each attribute.
        """
        if kind == "mean":
            for position, statistic in enumerate(self.plan.workload.statistics):
                is_mean = (statistic.kind, statistic.of) == ("means", measure)
                if is_mean and statistic.along == groups:
                    return self.statistics[position]
        elif kind in ("count", "sum"):
            for position, product in enumerate(self.workload.products):
                if product.measure == measure and product.along == groups:
                    return self.tables[position]
        return None

    def find_sampling_errors(
        self, kind: str, measure: str | None, groups: Mapping[str, QuerySet]
    ) -> FloatArray | None:
        """Return the stated sampling standard errors of a published table, or None.

        The arguments are as in `find_published`. The array has one entry for each group.
        """
        if self.survey is None:
            return None
        published = self.find_published(kind, measure, groups)
        if published is None or published.sampling is None:
            return None
        return published.sampling.std

    @property
    def private(self) -> bool:
        """Whether the noise is secret, and did not come from a seed."""
        return self.observation.private

    @property
    def answers(self) -> Any:
        """All answers as one data frame, with one row per answer.

        It uses the library of the data if they were a data frame; otherwise the first of pandas,
        polars and pyarrow that is installed.

        Raises:
            InputError: no library is installed, or there are over 20 million answers.
        """
        return self.long()

    @one_thread()
    def long(self, library: str | None = None) -> Any:
        """Return all answers as one data frame, with one row per answer.

        The columns are ``query``, ``cell``, ``answer``, ``noise_std``, ``low``, ``high``, and the
        optional columns.

        Args:
            library: pandas, polars or pyarrow; defaults to the library of the data if they were a
                data frame, and otherwise to the first that is installed.

        Raises:
            InputError: the library is not installed, or there are over 20 million answers.
        """
        if self.workload.rows > MOST_FRAME_ANSWERS:
            raise InputError(
                f"One data frame may hold at most {MOST_FRAME_ANSWERS} answers; got "
                f"{self.workload.rows}. Take one table at a time with release.frame(id), or read "
                "the files of a release that is made with out=."
            )
        arrays_by_column: dict[str, list[Any]] = {
            "query": [],
            "cell": [],
            "answer": [],
            "noise_std": [],
            "low": [],
            "high": [],
        }
        for table in self.tables:
            numbers = table.numbers()
            for name in self.options.occasional_columns:
                numbers.setdefault(name, np.full(table.cells, np.nan))
            arrays_by_column["query"].append(np.full(table.cells, table.id, dtype=object))
            arrays_by_column["cell"].append(np.array(table.cell_names(), dtype=object))
            for name, values in numbers.items():
                arrays_by_column.setdefault(name, []).append(values)
        return to_frame(
            {name: np.concatenate(values) for name, values in arrays_by_column.items()},
            library or self.library,
        )

    def frame(self, table_id: str, library: str | None = None) -> Any:
        """Return the answers of one table as a data frame.

        The columns are ``query``, one key for each attribute, ``answer``, ``noise_std``, ``low``
        and ``high``.

        Args:
            table_id: the id of the table, such as ``q1``, or its name.
            library: pandas, polars or pyarrow; defaults to the library of the data if they were a
                data frame, and otherwise to the first that is installed.

        Raises:
            InputError: there is no such table, or the library is not installed.
        """
        return self.tables[table_id].frame(library)

    def plot(self, table_id: str) -> Any:
        """Return a table as an Altair chart, which notebooks show.

        The chart can be changed and saved.

        Args:
            table_id: the id of the table, such as ``q1``, or its name.

        Raises:
            InputError: there is no such table, or it is a single number.
        """
        return self.tables[table_id].plot()

    @property
    def missing_rows(self) -> tuple[MissingRows, ...]:
        """For each attribute, the estimated number of rows that its tables leave out.

        The result has an entry for each attribute that only some tables have. Rows without a value
        of such an attribute are measured in a hidden cell; this cell is not published. The
        estimates follow from the measurements and cost nothing. An attribute has no entry if the
        measurements do not determine the number of these rows.

        >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 99))
        >>> plan = ln.plan(ln.marginals(domain, ways=1), ln.PureDP(100))
        >>> frame = pd.DataFrame({"sex": ["F", "M", None], "age": [20, 30, 40]})
        >>> [
        ...     (each.attribute, round(each.rows))
        ...     for each in ln.release(plan, frame, seed=7).missing_rows
        ... ]
        [('sex', 1), ('age', 0)]
        """
        names = [name for name in self.plan.used()[0] if self.plan.domain.kind(name).hidden]
        for name in names:
            if name not in self._missing_rows:
                self._missing_rows[name] = self._estimate_missing_rows(name, len(names))
        return tuple(each for each in self._missing_rows.values() if each is not None)

    def _estimate_missing_rows(
        self, attribute: str, number_of_attributes: int
    ) -> MissingRows | None:
        """Return the estimated rows in an attribute's hidden cell; None if unknown.

        Args:
            attribute: the name of the attribute.
            number_of_attributes: the number of attributes with a hidden cell.
        """
        domain = self.plan.domain
        products = (rows_left_out(domain, attribute), queries(domain).products[0])
        options = Options(level=self.level, round=self.options.round, below=self.options.below)
        interval = interval_width(self.measurements, self.level, products)
        joint_level = 1 - (1 - self.level) / number_of_attributes
        joint_interval = interval_width(self.measurements, joint_level, products)
        try:
            left_out, total = Tables(self.least_squares(), products, options, interval)
        except InputError:
            return None
        margin = float(left_out.high[0] - left_out.answer[0])
        return MissingRows(
            attribute=attribute,
            rows=float(left_out.answer[0]),
            margin=margin,
            joint_margin=margin * joint_interval.multiplier / interval.multiplier,
            all_rows=float(total.answer.item()),
        )

    @property
    def clipped_values(self) -> tuple[ClippedValues, ...]:
        """The estimated number of rows at or beyond each bound of summed measures.

        The result has entries only for measures whose column is also an attribute that tables
        count. The estimates follow from the measurements and cost nothing.

        >>> domain = ln.Domain(
        ...     pay=ln.Bins(0, 100, 5, outside="clip"), measures={"pay": ln.Measure("pay", 0, 100)}
        ... )
        >>> plan = ln.plan(
        ...     ln.marginals(domain, ways=1) + ln.mean_queries(domain, "pay"), ln.PureDP(100)
        ... )
        >>> release = ln.release(plan, pd.DataFrame({"pay": [20, 300, 2000]}), seed=7)
        >>> (clipped,) = release.clipped_values
        >>> str(clipped.value), round(clipped.rows)
        ('80', 2)
        """
        for name, measure in clipped_measures(self.plan.workload).items():
            if name not in self._clipped_values:
                self._clipped_values[name] = self._estimate_clipped_values(name, measure)
        return tuple(chain.from_iterable(self._clipped_values.values()))

    def _estimate_clipped_values(
        self, measure_name: str, measure: Measure
    ) -> tuple[ClippedValues, ...]:
        """Return the estimated number of rows at or beyond each bound of a measure."""
        domain = self.plan.domain
        counts = [product for product in self.plan.workload.products if product.measure is None]
        counted_names = set(chain.from_iterable(product.attributes for product in counts))
        estimates: list[ClippedValues] = []
        for attribute in domain.names:
            if attribute in counted_names and not estimates:
                for cells in outer_cells(domain, attribute, measure):
                    estimates += self._estimate_outer_rows(measure_name, cells)
        return tuple(estimates)

    def _estimate_outer_rows(self, measure_name: str, cells: OuterCells) -> list[ClippedValues]:
        """Return the estimated number of rows in outer cells; empty if not measured."""
        domain = self.plan.domain
        labels = domain.kind(cells.attribute).labels[cells.first : cells.end]
        beyond = queries(domain, {cells.attribute: predicates([labels])})
        products = (*beyond.products, *queries(domain).products)
        options = Options(level=self.level, round=self.options.round, below=self.options.below)
        interval = interval_width(self.measurements, self.level, products)
        try:
            rows, total = Tables(self.least_squares(), products, options, interval)
        except InputError:
            return []
        return [
            ClippedValues(
                measure=measure_name,
                is_upper=cells.is_upper,
                bound=cells.bound,
                value=cells.value,
                counts_value=cells.has_value,
                rows=float(rows.answer.item()),
                margin=float(rows.high.item() - rows.answer.item()),
                all_rows=float(total.answer.item()),
                is_beyond=cells.is_beyond,
                has_divided_cell=cells.has_divided_cell,
            )
        ]

    @one_thread()
    def answer(self, questions: Workload, *, level: float | None = None) -> tuple[AnswerTable, ...]:
        """Answer further queries from the measurements, at no cost.

        Args:
            questions: a workload over the domain of the release, such as
                ``leastnoise.queries(domain, age=leastnoise.ranges([(20, 39)]))``.
            level: the coverage probability of the intervals; defaults to the level of the release.

        Returns:
            One table for each product, with exact errors and intervals; `AnswerTable.frame` returns
            it as a data frame.

        Raises:
            InputError: the measurements do not determine an answer, or the workload has another
                domain or too many answers.

        >>> domain = ln.Domain(age=ln.Integers(1, 3))
        >>> plan = ln.plan(ln.queries(domain, age="identity"), ln.PureDP(1))
        >>> release = ln.release(plan, pd.DataFrame({"age": [1, 2, 2, 3]}), seed=7)
        >>> (table,) = release.answer(ln.queries(domain, age=ln.ranges([(1, 2)])))
        >>> table.answer.round(6).tolist(), table.noise_std.round(3).tolist()
        ([2.0], [1.919])
        """
        questions = self._over_plan_domain(questions)
        if questions.rows > MOST_FRAME_ANSWERS:
            raise InputError(
                f"At most {MOST_FRAME_ANSWERS} answers can be computed together; got "
                f"{questions.rows}. Ask for fewer."
            )
        interval = interval_width(
            self.measurements,
            self.level if level is None else checked_level(level),
            questions.products,
        )
        # The answers of a mechanism have intervals for the queries of its workload. All other
        # queries need measurements that determine them.
        in_workload = all(
            any(is_contained_in(question, product) for product in self.plan.workload)
            for question in questions
        )
        if in_workload:
            estimator = self.outcome.estimator()
        else:
            estimator = self.least_squares()
        options = Options(
            labels=self.options.labels,
            names=self.options.names,
            language=self.options.language,
            languages=self.options.languages,
        )
        return tuple(
            Tables(
                estimator,
                questions.products,
                options,
                interval,
                library=self.library,
                privacy=_privacy_with_row_limit(self.plan),
            )
        )

    def least_squares(self) -> Estimate:
        """Return the least-squares estimator for queries outside the workload.

        Raises:
            InputError: the interval of a new answer is unknown. This is the case if noisy results
                determined which queries were measured, or if values were cut at a threshold.
        """
        if not self.finding.answers_new_questions:
            raise InputError(
                "No interval is known for further answers from a release by "
                f"{self.plan.strategy!r}, which chose its measurements from noisy data. Request "
                "these answers in the workload, or choose strategy = 'auto'."
            )
        return self.outcome.least_squares()

    def sum(
        self, table_id: str, where: Mapping[str, Any] | None = None, *, level: float | None = None
    ) -> AnswerTable:
        """Return a sum of cells of a table with its exact error, at no cost.

        Args:
            table_id: the id of the table, such as ``q1``, or its name.
            where: for some attributes of the table, the labels to add up: one label, a list of
                labels, or a pair (low, high) of numbers as in `ranges`. Along every other
                attribute, all cells are added up.
            level: the coverage probability of the interval; defaults to the level of the release.

        Returns:
            A table with a single answer.

        Raises:
            InputError: there is no such table, or it lacks an attribute or a label.

        >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(17, 90))
        >>> plan = ln.plan(ln.marginals(domain, ways=2), ln.PureDP(1))
        >>> release = ln.release(
        ...     plan, pd.DataFrame({"sex": ["F", "M", "M"], "age": [20, 30, 40]}), seed=7
        ... )
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
            if isinstance(values, (list, tuple, set, frozenset)):
                labels = list(values)
            else:
                labels = [values]
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
        size: str | None = None,
        weight: str | None = None,
        whole_numbers: Sequence[str] = (),
        library: str | None = None,
    ) -> Any:
        """Return synthetic records that agree with the release, at no cost.

        The result is a data frame with the columns and spellings of the data. The records come from
        a model of the tables, which is rounded to whole rows. A release with the strategy ``model``
        has such a model; for other releases, a model is fitted to the answers. In a bin or a
        period, values are drawn uniformly. Attributes that never occur in a common table are
        independent.

        Args:
            rows: the number of records; defaults to the number of rows that the release counted.
            seed: the seed for the rounding, a whole number from 0; nothing here is private.
            units: if True, rows are grouped into units. The number of units in each cell of the
                largest table of units then agrees with the release. The rows of a unit share the
                attributes of that table.
            size: an attribute whose value is the number of rows of a unit, such as the size of a
                household. Each unit has this number of rows.
            weight: a measure; the records get weights that add up to its released sums.
            whole_numbers: attributes in bins whose values are whole numbers.
            library: pandas, polars or pyarrow; defaults to the library of the data if they were a
                data frame, and otherwise to the first that is installed.

        Raises:
            InputError: the release has no counts; it does not determine the cells of an attribute;
                there are over 2^27 rows; or it lacks counts of units or sums of the weight by
                cells.

        >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(17, 20))
        >>> plan = ln.plan(ln.marginals(domain, ways=2), ln.PureDP(2))
        >>> release = ln.release(
        ...     plan, pd.DataFrame({"sex": ["F", "M"] * 20, "age": [17, 18, 19, 20] * 10}), seed=7
        ... )
        >>> release.synthesize(rows=3).shape
        (3, 2)
        """
        records = make_records(
            self.outcome,
            rows,
            seed,
            units=units,
            size=size,
            weight=weight,
            whole_numbers=whole_numbers,
        )
        return to_frame(records.columns(), library or self.library)

    @one_thread()
    def with_nnls(self) -> "Release":
        """Return a release that also has non-negative least-squares answers.

        The tables of the new release have the additional, biased column ``answer_nnls`` and its
        error ``nnls_rmse``. This costs nothing.

        Raises:
            InputError: there are over 2^20 joint cells, or the answers are not linear estimates.

        >>> domain = ln.Domain(sex=["F", "M"])
        >>> block = Block((Factor(("sex",), Identity(2)),), scale=1)
        >>> cells = Measurements(
        ...     domain=domain,
        ...     privacy=ln.Privacy(ln.PureDP(1)),
        ...     noise=Noise.DISCRETE_LAPLACE,
        ...     blocks=(block,),
        ... )
        >>> plan = evaluate_plan(ln.marginals(domain, ways=1), cells)
        >>> release = build_release(
        ...     Outcome(plan, Observation(cells, (np.array([5, -1]),), "", private=False))
        ... )
        >>> release.with_nnls().tables["sex"].nnls.round(6) + 0.0
        array([4., 0.])
        """
        return build_release(
            self.outcome, replace(self.options, nnls=True), self.receipt, self.library
        )

    def sql(self, statement: str, library: str | None = None) -> Any:
        """Return the answers of a SQL statement as a data frame.

        The data frame has the columns of SELECT. Each answer ``n``, or monotone function of an
        answer, is followed by the ends of its interval: ``n_low`` and ``n_high``.

        Args:
            statement: a SELECT, as `leastnoise.sql` accepts it.
            library: pandas, polars or pyarrow; defaults to the library of the data if they were a
                data frame, and otherwise to the first that is installed.

        Raises:
            InputError: a clause cannot be answered, or the measurements do not determine a table.
                Means and quantiles must have been in the workload.

        >>> domain = ln.Domain(age=ln.Integers(1, 3))
        >>> plan = ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1))
        >>> release = ln.release(plan, pd.DataFrame({"age": [1, 2, 2, 3]}), seed=7)
        >>> list(release.sql("SELECT age > 1 AS older, COUNT(*) AS n FROM people GROUP BY older"))
        ['older', 'n', 'n_low', 'n_high']
        """
        return to_frame(self.answer_sql(statement), library or self.library)

    @one_thread()
    def answer_sql(self, text: str) -> Columns:
        """Return the columns of a SQL statement's result by name."""
        statement = self.read_statement(text)
        return answer_statement(
            statement, self._answer_column, self._answer_noise(), self.plan.workload
        )

    def _answer_noise(self) -> AnswerNoise | None:
        """Return the covariances of the answers; None if intervals are unknown."""
        if self.options.round is not None or self.options.survey or not self.finding.linear:
            return None
        estimate = self.least_squares()
        multiplier = interval_multiplier(self.measurements.noise, self.level)
        return AnswerNoise(pair_covariances(estimate), multiplier, self._product_over_plan_domain)

    def read_statement(self, text: str) -> Statement:
        """Parse a SQL statement over the domain of the release.

        Raises:
            InputError: a clause cannot be answered; the message states its name and position.
        """
        return read_statement(self.plan.workload, sql_settings(self.plan, self.options), text)

    def _answer_column(
        self, workload: Workload, column: str = ""
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the answers to an aggregate's workload, with interval ends.

        A published table or statistic is reused; other tables are computed from the measurements.
        """
        position = find_answer(self.plan.workload, workload)
        if workload.statistics and position is None:
            raise InputError(
                f"The {workload.statistics[0].name} was not requested before this release, so the "
                "release cannot answer it."
            )
        if workload.statistics and position is not None:
            statistic = self.statistics[position]
            if column:
                further = statistic.extra_columns
                return further[column], further[f"{column}_low"], further[f"{column}_high"]
            return statistic.values, statistic.low, statistic.high
        if position is None:
            table = self.answer(workload)[0]
        else:
            table = self.tables[position]
        return table.answer, table.low, table.high

    def _product_over_plan_domain(self, questions: Workload) -> Product:
        """Return the only table of a workload over the domain of the plan."""
        position = find_answer(self.plan.workload, questions)
        if position is not None:  # only tables of the workload can count units
            return self.workload.products[position]
        return self._over_plan_domain(questions).products[0]

    def _over_plan_domain(self, questions: Workload) -> Workload:
        """Return a workload over the domain of the plan, including hidden cells."""
        declared_domain = without_hidden_cells(self.plan.domain)
        without_hidden = workload_over(questions, without_hidden_cells(questions.domain))
        over_declared = questions_over(without_hidden, declared_domain)
        if over_declared is None:
            raise InputError(
                "Queries for a release must use the domain of the release, release.plan.domain."
            )
        return workload_over(over_declared, self.plan.domain)

    @one_thread()
    def covariance(self, table_id: str, other_id: str | None = None) -> FloatArray:
        """Return the noise covariances of one table's answers, or of two tables'.

        Covariances are public, because they depend only on the plan.

        Args:
            table_id: the id of the table, such as ``q1``, or its name.
            other_id: another table of the same measure; defaults to the table itself.

        Returns:
            An array of shape (answers of the table, answers of the other table), each in row-major
            order, in squared rows or amounts. The diagonal is ``noise_std`` squared. The variance
            of the sum of answers with weights w is ``w @ covariance @ w``.

        Raises:
            InputError: there is no such table; the tables have different measures; there are over
                2^24 pairs; or the estimates need a linear solver.

        >>> plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=0), ln.PureDP(1))
        >>> release = ln.release(plan, pd.DataFrame({"sex": ["F", "M"]}), seed=7)
        >>> release.covariance("total").round(3).tolist()
        [[1.841]]
        """
        if other_id is None:
            other_id = table_id
        positions = (self.tables.position(key) for key in (table_id, other_id))
        return self.covariances(*(self.workload.products[position] for position in positions))

    def covariances(self, first: Product, second: Product) -> FloatArray:
        """Return the noise covariances of the answers to two products of queries.

        The products need not be in the workload; see `covariance`.
        """
        check_linear_estimates(self.plan, ["covariances"], linear=self.finding.linear)
        measure = first.measure
        if measure not in self._covariances:
            public_blocks = [counts.block for counts in public_counts_of_plan(self.plan)]
            self._covariances[measure] = measure_covariance(
                self.measurements, measure, public_blocks
            )
        return convert_to_amounts(
            first, convert_to_amounts(first, covariances(self._covariances[measure], first, second))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """A table's line in the index ``tables.csv``; the fields are its columns.

    Attributes:
        query: the id of the table, such as ``q1``.
        name: the name of the table.
        files: the path of its files, without an ending.
        attributes: the attributes of the table.
        answers: the number of answers.
        measure: the summed measure; None for counts.
        quantity: the name of the counted or summed quantity.
        unit: the unit of the answers.
        weight: the weight in the workload, as an exact text.
        rmse: the root mean square error of the answers.
        largest_std: the largest standard error of the noise in an answer.
        promised_rmse: the expected error in the plan; None if it depends on the data.
        leaves_out: the attributes of which a row must have a value to be in the table.
        of: the rows of a unit that count, in a phrase; empty if all rows count.
    """

    query: str
    name: str
    files: str
    attributes: tuple[str, ...]
    answers: int
    measure: str | None
    quantity: str = field(default="", metadata=ALWAYS_WRITTEN)
    unit: str
    weight: str
    rmse: float
    largest_std: float
    promised_rmse: float | None
    leaves_out: tuple[str, ...] = field(default=(), metadata=ALWAYS_WRITTEN)
    of: str = field(default="", metadata=ALWAYS_WRITTEN)


def statistic_path(release: Release, statistic: StatisticTable) -> str:
    """Return the path of a statistic's files inside a release, without ending."""
    return f"answers/{make_file_name(statistic.id, statistic.name, len(release.statistics))}"


def statement_path(number: int) -> str:
    """Return the path of a SQL statement's files, by its number, without ending."""
    return f"answers/statement-{number}"


def interval_width(
    measurements: Measurements, level: float, products: Sequence[Product]
) -> IntervalWidth:
    """Return the half width of intervals at a level, in standard errors."""
    two_sided, one_sided = (
        measured_multiplier(measurements, coverage, products)
        for coverage in (level, max(2 * level - 1, 0.0))
    )
    return IntervalWidth(two_sided, 0.5 / measurements.grid, one_sided)


def with_table_ids(options: Options, products: Sequence[Product]) -> Options:
    """Return options in which ``covariances`` refers to tables by their ids."""
    ids = [f"q{find_table_position(products, key) + 1}" for key in options.covariances]
    return replace(options, covariances=tuple(dict.fromkeys(ids)))


def build_release(
    outcome: Outcome,
    options: Options | None = None,
    receipt: ReceiptFacts = NO_RECEIPT,
    library: str | None = None,
) -> Release:
    """Build a release from an outcome; its tables are computed on access."""
    workload = Workload(outcome.plan.domain, tables_to_write(outcome.plan.workload.products))
    options = with_table_ids(options or Options(), workload.products)
    options = with_table_names(options, outcome.plan.workload)
    check_linear_estimates(
        outcome.plan, options.plan_dependent_options, linear=outcome.finding.linear
    )
    estimate = outcome.least_squares()
    public_counts = public_counts_of_plan(outcome.plan)
    joint_estimates = {}
    local_estimates = {}
    # Both projections stop after a limited number of rounds.
    for measure in _non_negative_measures(workload):
        if options.nnls:
            covariance = None
            if not public_counts:
                covariance = estimate.covariance_of(measure)
            joint_estimates[measure] = nnls(
                outcome.observation, measure=measure, covariance=covariance
            )
        if options.local_non_negative:
            sets = _attribute_sets(workload, measure)
            local_estimates[measure] = locally_non_negative(estimate, sets, measure=measure)
    interval = interval_width(outcome.observation.measurements, options.level, workload.products)
    tables = Tables(
        outcome.estimator(),
        workload.products,
        options,
        interval,
        joint_estimates,
        local_estimates,
        library,
        _privacy_with_row_limit(outcome.plan),
        public_counts,
        read_combinations(outcome.plan.domain, outcome.plan.details.impossible),
    )
    statistics = Statistics(
        estimate,
        outcome.plan.workload,
        options,
        library,
        tables.suppression_by_rule,
        outcome.finding.quantile_choices(outcome.plan.workload),
    )
    tables.linked_suppression = statistics.suppressed_sums
    return Release(
        outcome=outcome,
        workload=workload,
        options=options,
        receipt=receipt,
        tables=tables,
        statistics=statistics,
    )


def _privacy_with_row_limit(plan: Plan) -> Privacy | None:
    """Return a plan's privacy if tables state its row limit, otherwise None."""
    if plan.details.counts_unit_sizes:
        return None
    return plan.privacy


ResultType = TypeVar("ResultType", bound=AnswerTable | StatisticTable)


def with_labels_in(result: ResultType, release: Release, language: str) -> ResultType:
    """Return a table or statistic that shows its labels in a language."""
    texts = display_texts(release.options, release.plan.domain, language)
    return replace(result, code_texts=texts)


def sql_settings(plan: Plan, options: Options) -> SqlSettings:
    """Return the privacy unit, current day and joins for reading SQL."""
    return SqlSettings(
        unit=plan.privacy.unit_column,
        today=options.today or None,
        joins=tuple(zip(options.joined_on[::2], options.joined_on[1::2], strict=True)),
    )


def check_options(plan: Plan, options: Options) -> None:
    """Raise if a plan cannot fulfil the options of its release."""
    tables = tables_to_write(plan.workload.products)
    check_names_and_survey(options, plan.workload)
    check_formats(options.formats, tables)
    check_statements(plan.workload, sql_settings(plan, options), options.statements)
    for statistic in plan.workload.statistics:
        if isinstance(plan, AdaptivePlan) and not plan.adaptive.selects_quantiles:
            raise InputError(
                f"The {statistic.name} cannot be given by the strategy {plan.strategy!r}, "
                "whose measurements are adaptive, so no interval is known. Leave it out, "
                "or choose strategy = 'auto'."
            )
    _check_whole_rounding(tables, options)
    _check_controlled_rounding(plan, tables, options)
    public_counts = public_counts_of_plan(plan)
    counts = [table for table in tables if table.measure is None]
    if options.integer and any(
        len(public_sums_within(table.attributes, table.shape, public_counts)) > _MOST_PUBLIC_TABLES
        for table in counts
    ):
        raise refuse(
            "integer",
            options.integer,
            f"left out where a table has more than {_MOST_PUBLIC_TABLES} "
            "tables of public counts in it",
        )
    check_linear_estimates(
        plan, options.plan_dependent_options, linear=not isinstance(plan, AdaptivePlan)
    )
    _check_top_down(plan, tables, options)
    if isinstance(plan, AdaptivePlan):
        return
    measurements = plan.measured()
    if options.nnls or options.local_non_negative:
        _check_non_negative(
            measurements, plan.workload, is_joint=options.nnls, is_local=options.local_non_negative
        )
    _check_covariances(measurements, plan.strategy, tables, options)


def _check_top_down(plan: Plan, tables: Sequence[Product], options: Options) -> None:
    """Raise if the plan does not allow the option ``top_down``."""
    if isinstance(plan, AdaptivePlan):
        return
    impossible = read_combinations(plan.domain, plan.details.impossible)
    if not options.top_down:
        if impossible:
            raise InputError(
                "Impossible cells are 0 only in answer_top_down, but top_down is false. Set "
                "top_down = true, or plan with strategy = 'model'."
            )
        return
    measures = top_down_measures(tables)
    if not measures:
        raise InputError(
            "top_down = true needs counts of rows, or a measure whose lowest value is at least 0; "
            "this workload has neither. Leave it out."
        )
    public_counts = public_counts_of_plan(plan)
    exact = [table.block for table in public_counts]
    for measure in measures:
        products = [with_hidden_groups(table) for table in tables if table.measure == measure]
        facts = (public_counts, impossible) if measure is None else ((), ())
        finest = check_top_down(products, measure or "rows", *facts)
        if finest.has_hidden:
            blocks = exact if measure is None else []
            measure_covariance(plan.measured(), measure, blocks).require(finest)


def _check_covariances(
    measurements: Measurements, strategy: str, tables: Sequence[Product], options: Options
) -> None:
    """Raise if the covariances that the options request cannot be written."""
    for key in options.covariances:
        product = tables[find_table_position(tables, key)]
        if product.rows > _MOST_COVARIANCE_ANSWERS:
            raise refuse(
                f"the table {key!r} whose covariances are written",
                product.rows,
                f"of at most {_MOST_COVARIANCE_ANSWERS} answers",
                "Take them from Python, with release.covariance.",
            )
        if measure_covariance(measurements, product.measure).solver_cells:
            raise InputError(
                f"The covariances of {key!r} are not known under the strategy {strategy!r}, whose "
                "estimates need a linear solver. Choose another strategy."
            )


def _check_whole_rounding(tables: Sequence[Product], options: Options) -> None:
    """Raise if a rounding step is not compatible with whole answers.

    Whole answers are whole rows, or whole multiples of a measure's unit.
    """
    if not options.integer or options.round is None:
        return
    for table in tables:
        step, _ = product_rounding(options, table)
        if not step:
            continue
        unit = Fraction(1)
        if table.measure is not None:
            unit = table.domain.measure(table.measure).unit
        stays_whole = (step / unit).denominator == 1 or (unit / step).denominator == 1
        if not stays_whole:
            raise refuse(
                "round",
                number_text(step),
                f"a whole multiple of {number_text(unit)} with integer = true, as {table.name} "
                "is counted in these",
                "Round to whole multiples, or leave out integer.",
            )


def _check_controlled_rounding(plan: Plan, tables: Sequence[Product], options: Options) -> None:
    """Raise if controlled rounding is not possible for the tables of a plan."""
    if not options.is_controlled:
        return
    if options.below is not None or options.suppresses_by_cv:
        raise InputError(
            "rounding = 'controlled' makes totals the sums of their parts. So an answer that is "
            "suppressed could be computed from the others. Remove the settings `below` and "
            "`suppress`, or set rounding = 'nearest'."
        )
    if isinstance(plan, AdaptivePlan):
        raise InputError(
            "rounding = 'controlled' needs estimates that add up, and the estimates of the "
            f"strategy {plan.strategy!r} do not. Choose strategy = 'auto', or round to the nearest."
        )
    by_measure: dict[str | None, list[Product]] = {}
    for table in tables:
        if product_rounding(options, table)[0] and not table.of_units:
            by_measure.setdefault(table.measure, []).append(table)
    for measure, products in by_measure.items():
        finest = finest_table(products, only_levels=False)
        if finest is None or finest.has_hidden:
            raise InputError(
                "rounding = 'controlled' needs one table from whose cells all tables of "
                f"{measure or 'rows'} can be added up. Also request this table and write complete "
                "= true in the domain, or round to the nearest."
            )
        if finest.rows > MOST_CONTROLLED_CELLS:
            raise refuse(
                f"the table {finest.name!r} under rounding = 'controlled'",
                f"{finest.rows} cells",
                f"of at most {MOST_CONTROLLED_CELLS} cells",
                "Round to the nearest.",
            )


def check_linear_estimates(plan: Plan, options: Sequence[str], *, linear: bool) -> None:
    """Raise if options need linear estimates, but the answers are not linear.

    Non-negative least squares is also refused if there are public counts, because it would change
    these counts.
    """
    if options and not linear:
        raise InputError(
            f"{' and '.join(options)} cannot be given by the strategy {plan.strategy!r}, whose "
            "answers are not linear estimates. Leave that out, or choose strategy = 'auto'."
        )
    if "nnls" in options and public_counts_of_plan(plan):
        raise refuse(
            "nnls", True, "left out where counts are public", "local_non_negative keeps their sums."
        )


def _check_non_negative(
    measurements: Measurements, workload: Workload, *, is_joint: bool, is_local: bool
) -> None:
    """Raise if the requested non-negative answers cannot be computed."""
    measures = _non_negative_measures(workload)
    if not measures:
        raise InputError(
            "Non-negative answers are possible only for counts and for measures whose lowest value "
            "is at least 0; this workload has neither. Leave out nnls and local_non_negative."
        )
    if is_joint:
        _check_joint_size(measurements, measures)
    if is_local:
        _check_local_unit_counts(workload)
        _check_local_size(measurements, workload, measures)
    _check_simulated_non_negative(
        measurements, workload, measures, is_joint=is_joint, is_local=is_local
    )


def _check_joint_size(measurements: Measurements, measures: Sequence[str | None]) -> None:
    """Raise if the joint table of non-negative least squares is too large."""
    cells = 0
    for measure in measures:
        names: set[str] = set()
        for entry in equations(measurements, measure):
            names |= {*entry.block.attributes}
        cells = max(cells, _number_of_cells(measurements, names))
    if cells > _MOST_JOINT_CELLS:
        raise refuse(
            "the joint table of non-negative least squares",
            cells,
            f"of at most {_MOST_JOINT_CELLS} cells",
            "Leave out nnls; or ask for local_non_negative; or compute it from the finished "
            "release with release.with_nnls().",
        )


def _number_of_cells(measurements: Measurements, names: Iterable[str]) -> int:
    """Return the number of cells of a table, hidden cells included."""
    return math.prod(measurements.domain.kind(name).size for name in names)


def _check_local_unit_counts(workload: Workload) -> None:
    """Refuse local_non_negative for counts of units in groups or hidden cells."""
    incomplete = [
        product.name
        for product in workload
        if product.counts_units_in_cells and (product.counts_groups or product.has_hidden)
    ]
    if incomplete:
        raise refuse(
            "local_non_negative together with the table " + incomplete[0],
            True,
            "left out where units are counted in groups, or in cells of an attribute that may lack "
            "values",
            "Use non_negative, or write complete = true if no value can be missing.",
        )


def _check_local_size(
    measurements: Measurements, workload: Workload, measures: Sequence[str | None]
) -> None:
    """Raise if the tables that local_non_negative projects are too large."""
    total = 0
    for measure in measures:
        for names in _attribute_sets(workload, measure):
            total += _number_of_cells(measurements, names)
    if total > _MOST_LOCAL_CELLS:
        raise refuse(
            "the tables that local_non_negative projects",
            total,
            f"of at most {_MOST_LOCAL_CELLS} cells",
            "Leave out local_non_negative, or ask for fewer or coarser tables.",
        )


def _check_simulated_non_negative(
    measurements: Measurements,
    workload: Workload,
    measures: Sequence[str | None],
    *,
    is_joint: bool,
    is_local: bool,
) -> None:
    """Raise if non-negative columns fail for simulated measurements.

    The check finds faults before the plan is paid. It therefore measures simulated data. One fault
    is a cell that the measurements do not determine.
    """
    noise_stds = [
        float(block.scale) * measurements.grid / block.scaling() for block in measurements.blocks
    ]
    values = tuple(
        np.rint(std * np.cos(np.arange(len(std)))).astype(np.int64) for std in noise_stds
    )
    simulated = Observation(measurements, values, "", private=False)
    option = "nnls"
    try:
        by_measure = {measure: nnls(simulated, measure=measure) for measure in measures if is_joint}
        for product in workload:
            if product.measure in by_measure:
                by_measure[product.measure].values(product)
        option = "local_non_negative"
        for measure in measures if is_local else ():
            locally_non_negative(
                Estimate(simulated),
                _attribute_sets(workload, measure),
                measure=measure,
                max_rounds=0,
            )
    except InputError as error:  # every cell is needed, even if only sums are requested
        raise InputError(
            f"{option} needs every cell of the attributes that a table is about. {error} Or leave "
            f"out {option}."
        ) from error


def _non_negative_measures(workload: Workload) -> list[str | None]:
    """Return the measures without negative values; None stands for counts."""
    measures = workload.domain.measures
    return [
        measure
        for measure in workload.measures
        if measure is None or measures[measure].low_units >= 0
    ]


def _attribute_sets(workload: Workload, measure: str | None) -> list[tuple[str, ...]]:
    """Return the distinct attribute tuples of the tables of a measure."""
    return list(
        dict.fromkeys(product.attributes for product in workload if product.measure == measure)
    )
