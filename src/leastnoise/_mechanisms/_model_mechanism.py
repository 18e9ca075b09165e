"""Tables from a model: a mixture fitted to noisy tables.

The number of rows determines the measured tables.

The number of rows is counted first. If there are too few rows for an accurate data-independent
plan, single attributes are measured first. Then pairs (and triples) of attributes are measured on
bins, which are chosen from the noisy counts of the single attributes. If there are enough rows, the
data-independent plan is carried out. The model is fitted to the measurements. One payment covers
all steps, and the model is post-processing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, combinations
from typing import Any

import numpy as np

from leastnoise._domain import Domain
from leastnoise._error import block_variance
from leastnoise._estimation import (
    Combination,
    Estimate,
    Estimator,
    ModelEstimator,
    NoisyTables,
    Outcome,
    PublicCounts,
    ShrunkToModel,
    join_observations,
    read_combinations,
    read_public,
)
from leastnoise._fitting import fit_noise_scales, rescale_noise
from leastnoise._mechanisms._planning_time import noises_to_plan
from leastnoise._mechanisms._protocol import (
    DataDependentFinding,
    Mechanism,
    Run,
    adaptive_details,
    reference_measurements,
    reference_of,
    require_adaptive,
    require_details,
    rescale_plan,
    shared_mu_squared,
    step_privacy,
    summarize_reference,
)
from leastnoise._mechanisms._search import Search
from leastnoise._mechanisms._strategy_choice import choose_plan
from leastnoise._plan import (
    AdaptiveDetails,
    AdaptivePlan,
    Plan,
    PlanDetails,
    Step,
    StepChoice,
    Steps,
)
from leastnoise._strategies import binned_tables, table_precisions
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import Series
from leastnoise._trusted.linop import Coarse, Identity
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import Workload, table_of_all_cells

STRATEGY = "model"
# The part of the budget that counts the rows is at most _MOST_COUNT_SHARE. It is halved, at most
# _MOST_COUNT_HALVINGS times, while the standard error of the count stays below the part
# _COUNT_ERROR_RATIO of the deciding number of rows.
_MOST_COUNT_SHARE = Fraction(1, 50)
_COUNT_ERROR_RATIO = 0.05
_MOST_COUNT_HALVINGS = 10
# By norm, the share of rows in wrong cells that makes both plans equally good.
_WRONG_CELL_SHARES = {
    1: 0.075,
    2: 0.03,
}
_THREE_WAY_SHARE = Fraction(1, 2)  # part of the budget for tables of three attributes
# By norm, the part of the deciding number of rows that tables of three attributes need.
_THREE_WAY_ROW_FRACTIONS = {
    1: 0.47,
    2: 0.19,
}
# Tables of this number of cells have half as many deciding rows, and 2 x 2 tables far fewer,
# because their cells are rarely empty. At twice this number of cells, the effect is below 2%.
_SMALL_TABLE_CELLS = 9
_SMALL_TABLE_POWER = 6
# The share of rows in wrong cells is half the sum of absolute errors, divided by the rows. The mean
# absolute error is sqrt(2 / pi) = 0.8 times the RMSE under Gaussian noise, and 0.7 times under
# Laplace noise.
_WRONG_CELLS_OVER_RMSE = 0.4
# If the deciding number is smaller, rows are not counted, because users of tables have more rows.
_LEAST_COUNTED_ROWS = 100
# The part of the budget for tables of single attributes; and by norm, the part if there are only
# slightly too few rows. Coarse bins need accurate counts of single attributes. With Laplace noise,
# these counts take more from the pairs, because epsilons add up instead of their squares.
_ONE_WAY_SHARE = Fraction(1, 5)
_LEAST_ONE_WAY_SHARES = {1: Fraction(1, 10), 2: Fraction(1, 5)}
_MOST_CELLS = 2**22  # the most cells of a table that the model answers
_MOST_PAIRS = 2**13  # the most pairs of attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class _FromModel(DataDependentFinding):
    """The finding of a release whose answers come from a fitted model.

    The finding has the requested tables that no other requested table contains, the public facts
    and, if rows were counted, the noisy number of rows.
    """

    reading = "aware_reading_model"

    maximal_tables: tuple[tuple[str, ...], ...]
    impossible: tuple[Mapping[str, Sequence[int]], ...] = ()
    public: tuple[Mapping[str, Any], ...] = ()
    rows: int | None = None

    def _parse_public_facts(
        self, domain: Domain
    ) -> tuple[tuple[Combination, ...], tuple[PublicCounts, ...]]:
        """Parse the impossible combinations and the public counts of the finding."""
        return read_combinations(domain, self.impossible), read_public(domain, self.public)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedModelFinding(_FromModel):
    """Finding: the model was fitted to single attributes and to binned pairs."""

    regime = "model_bins"
    uncovered_error = "aware_model_bins"

    tables: int
    cells: int

    def estimator(self, observation: Observation) -> Estimator:
        """Return the estimator that reads answers from the fitted model."""
        impossible, public = self._parse_public_facts(observation.measurements.domain)
        return ModelEstimator(
            NoisyTables.of(observation, impossible, public),
            tuple(map(tuple, self.maximal_tables)),
            impossible,
            public,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeWayModelFinding(BinnedModelFinding):
    """Finding: the model was fitted to binned tables of up to three attributes."""

    regime = "model_threes"
    uncovered_error = "aware_model_threes"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableModelFinding(_FromModel):
    """Finding: the model was fitted to least squares estimates of tables.

    The answers lie between the model and these tables.
    """

    regime = "model_tables"
    uncovered_error = "aware_model_tables"

    def estimator(self, observation: Observation) -> Estimator:
        """Return the estimator that shrinks least squares towards the model."""
        impossible, public = self._parse_public_facts(observation.measurements.domain)
        return ShrunkToModel(
            Estimate(observation, public), tuple(map(tuple, self.maximal_tables)), impossible
        )


@dataclass(frozen=True)
class ModelSetting:
    """The public properties of a plan on which the steps of a model depend.

    Attributes:
        plan: the plan of the release.
        pairs: the weight of the squared errors of each pair of attributes.
    """

    plan: AdaptivePlan
    pairs: Mapping[tuple[str, ...], float]

    @cached_property
    def maximal_tables(self) -> tuple[tuple[str, ...], ...]:
        """The attribute sets of tables that no other requested table contains."""
        tables = dict.fromkeys(product.attributes for product in self.plan.workload)
        sets_by_width: dict[int, list[frozenset[str]]] = {}
        for names in tables:
            sets_by_width.setdefault(len(names), []).append(frozenset(names))
        maximal = []
        for names in tables:
            widths = [width for width in sets_by_width if width > len(names)]
            wider = chain.from_iterable(sets_by_width[width] for width in widths)
            if not any(other.issuperset(names) for other in wider):
                maximal.append(names)
        return tuple(maximal)

    @property
    def public_facts(self) -> dict[str, Any]:
        """The impossible combinations and public counts, as a spec states them."""
        return {"impossible": self.plan.details.impossible, "public": self.plan.details.public}

    @cached_property
    def public_rows(self) -> int | None:
        """The number of rows, if a public count states it; otherwise None."""
        return next(
            (table.rows for table in read_public(self.plan.domain, self.public_facts["public"])),
            None,
        )

    @property
    def noise(self) -> Noise:
        """The kind of noise of all measurements."""
        return adaptive_details(self.plan).noise

    @cached_property
    def deciding_rows(self) -> float:
        """The number of rows above which the data-independent plan is better.

        The number is infinite if some queries are not on single cells.
        """
        if not all(product.is_marginal for product in self.plan.workload):
            return math.inf
        cells = np.array([product.rows for product in self.plan.workload])
        errors_of_tables = cells * reference_of(self.plan).rmse
        rows_in_wrong_cells = _WRONG_CELLS_OVER_RMSE * float(np.mean(errors_of_tables))
        smallness = (_SMALL_TABLE_CELLS / float(cells.mean())) ** _SMALL_TABLE_POWER
        return rows_in_wrong_cells / (_WRONG_CELL_SHARES[self.noise.norm] * (1 + smallness))

    def alternative_for_rows(self, rows: int | None) -> str:
        """Return the name of the list of steps that suits a number of rows.

        The names are listed in the plan's `StepChoice`. ``rows`` is None if the rows are not
        counted.
        """
        if self.deciding_rows <= (_LEAST_COUNTED_ROWS if rows is None else max(rows, 1)):
            return "model_tables"
        if (
            rows is not None
            and rows > _THREE_WAY_ROW_FRACTIONS[self.noise.norm] * self.deciding_rows
        ):
            return "model_fuller"
        return "model_bins"

    @cached_property
    def counting_share(self) -> Fraction:
        """The share of the budget that pays for counting the rows.

        The share is 0 if the count could not change which tables are measured.
        """
        deciding = self.deciding_rows
        share = _MOST_COUNT_SHARE
        if not _LEAST_COUNTED_ROWS < deciding < math.inf or self.public_rows is not None:
            return Fraction(0)
        for _ in range(_MOST_COUNT_HALVINGS):
            half = self.row_count(share / 2)
            if block_variance(half, half.blocks[0]) > (_COUNT_ERROR_RATIO * deciding) ** 2:
                break
            share /= 2
        return share

    @property
    def may_use_reference(self) -> bool:
        """Whether the data-independent plan is better for some number of rows."""
        return (
            bool(self.counting_share)
            or self.alternative_for_rows(self.public_rows) == "model_tables"
        )

    def shares(self, alternative: str) -> dict[str, Fraction]:
        """Return each step's share of the budget, for one alternative list of steps."""
        remaining = 1 - self.counting_share
        if alternative == "model_tables":
            return {"independent": remaining}
        if alternative == "model_bins":
            one_way_share = _ONE_WAY_SHARE
        else:
            one_way_share = _LEAST_ONE_WAY_SHARES[self.noise.norm]
        if alternative == "model_bins" or not self.three_way_tables:
            return {"alone": remaining * one_way_share, "pairs": remaining * (1 - one_way_share)}
        return {
            "alone": remaining * one_way_share,
            "pairs": remaining * (1 - one_way_share - _THREE_WAY_SHARE),
            "threes": remaining * _THREE_WAY_SHARE,
        }

    def fit_blocks(
        self, budget_share: Fraction, blocks: Sequence[tuple[Block, float]]
    ) -> Measurements:
        """Return measurements of blocks whose noise uses a share of the budget."""
        return fit_noise_scales(
            self.plan.domain, step_privacy(self.plan).scaled(budget_share), self.noise, blocks
        )

    def row_count(self, budget_share: Fraction) -> Measurements:
        """Return the measurement of the number of rows, for a budget share."""
        return self.fit_blocks(budget_share, [(Block((), Fraction(1)), 1.0)])

    def one_way_marginals(self, alternative: str) -> Measurements:
        """Return the measurements of the histogram of each attribute.

        The result has all attributes of the workload, including attributes that are in no pair.
        """
        attributes = set(chain.from_iterable(product.attributes for product in self.plan.workload))
        domain = self.plan.domain
        sizes = {name: domain.kind(name).size for name in domain.names if name in attributes}
        blocks = [
            Block((Factor((name,), Identity(size)),), Fraction(1)) for name, size in sizes.items()
        ]
        relative = table_precisions([*sizes.values()], [1.0] * len(sizes))
        return self.fit_blocks(
            self.shares(alternative)["alone"], list(zip(blocks, map(float, relative), strict=True))
        )

    @cached_property
    def three_way_tables(self) -> dict[tuple[str, ...], float]:
        """The requested tables of three attributes, and their error weights.

        The weights multiply squared errors.
        """
        threes: dict[tuple[str, ...], float] = {
            names: 0.0 for names in self.maximal_tables if len(names) == 3
        }
        for product in self.plan.workload:
            if product.attributes in threes:
                threes[product.attributes] += product.importance
        return threes

    def binned_tables(
        self,
        one_way_counts: Observation,
        tables: Mapping[tuple[str, ...], float],
        budget_share: Fraction,
    ) -> Measurements:
        """Choose bins from noisy histograms; return measurements of binned tables."""
        noisy = NoisyTables.of(one_way_counts)
        total_block = self.row_count(budget_share)
        std = math.sqrt(block_variance(total_block, total_block.blocks[0]))
        shares = dict(zip(noisy.names, noisy.shares, strict=True))
        blocks = []
        for names, (weight, starts) in binned_tables(
            shares, tables, noisy.total, std, self.noise.norm
        ).items():
            sizes = [len(shares[name]) for name in names]
            bins = [
                Identity(n) if n == len(cut) else Coarse(Identity(len(cut)), cut, n)
                for n, cut in zip(sizes, starts, strict=True)
            ]
            factors = tuple(
                Factor((name,), operator) for name, operator in zip(names, bins, strict=True)
            )
            blocks.append((Block(factors, Fraction(1)), weight))
        return self.fit_blocks(budget_share, blocks)


def pairs_of(workload: Workload) -> dict[tuple[str, ...], float]:
    """Return all pairs of attributes that share a table, with error weights.

    The weights multiply squared errors. Raise for a workload that a model cannot answer.
    """
    if workload.measures != (None,):
        raise InputError(
            f"{STRATEGY} answers counts; this workload has sums. Choose strategy = 'auto'."
        )
    domain = workload.domain
    pairs = dict[tuple[str, ...], float]()
    for product in workload:
        if math.prod(domain.kind(name).size for name in product.attributes) > _MOST_CELLS:
            raise InputError(
                f"{STRATEGY} answers tables of at most {_MOST_CELLS} cells; {product.name} has "
                "more. Use coarser attributes, or choose strategy = 'auto'."
            )
        several = [
            name
            for name in domain.names
            if name in product.attributes and domain.kind(name).size > 1
        ]
        for pair in combinations(several, 2):
            pairs[pair] = pairs.get(pair, 0.0) + product.importance
    if not 0 < len(pairs) <= _MOST_PAIRS:
        raise InputError(
            f"{STRATEGY} is for tables of two or more attributes, with at most {_MOST_PAIRS} "
            f"pairs of attributes in total; this workload has {len(pairs)} "
            "pairs. Choose strategy = 'auto'."
        )
    return pairs


def _steps(setting: ModelSetting) -> Steps:
    """Return the steps with their budgets, for each range of the number of rows."""
    budget = step_privacy(setting.plan).budget

    def steps_of(alternative: str) -> tuple[Step, ...]:
        """Return the steps of one alternative."""
        shares = setting.shares(alternative)
        return tuple(Step(name, budget.scaled(share)) for name, share in shares.items())

    if not setting.counting_share:
        return steps_of(setting.alternative_for_rows(setting.public_rows))
    alternatives = ("model_bins", "model_fuller", "model_tables")
    return (
        Step("total", budget.scaled(setting.counting_share)),
        StepChoice(tuple((alternative, steps_of(alternative)) for alternative in alternatives)),
    )


def setting_from_plan(plan: Plan) -> ModelSetting:
    """Check a plan before anything is paid, and return the settings of a run.

    The plan may come from a file.
    """
    setting = ModelSetting(require_adaptive(plan), pairs_of(plan.workload))

    read_combinations(plan.domain, plan.details.impossible)
    read_public(plan.domain, plan.details.public)
    noise = noises_to_plan(plan.privacy)[0]
    if setting.may_use_reference:
        noise = reference_measurements(plan).noise
    mu_squared = shared_mu_squared(plan.privacy, noise)
    details = adaptive_details(plan)
    if (details.noise, details.mu_squared) != (noise, mu_squared):
        raise InputError(
            "The noise of the plan is from another version. Make the plan again; nothing was spent."
        )
    expected = AdaptiveDetails(
        noise=noise,
        steps=_steps(setting),
        mu_squared=mu_squared,
        pairs=len(setting.pairs),
    )
    require_details(plan, expected)
    rescale_noise(
        reference_measurements(plan), step_privacy(plan).scaled(1 - setting.counting_share)
    )
    for alternative in (
        {"model_bins", "model_fuller"}
        if setting.counting_share
        else {setting.alternative_for_rows(setting.public_rows)} - {"model_tables"}
    ):
        # Refuses now instead of after the payment for the first step.
        setting.one_way_marginals(alternative)
    return setting


def run_model(setting: ModelSetting, series: Series) -> Outcome:
    """Count the rows if necessary, then measure tables for the model.

    The tables are binned. If there are enough rows, the data-independent plan is carried out.
    """
    rows = setting.public_rows
    share = setting.counting_share
    if share:
        noisy_total = series.measure(setting.row_count(share))
        rows = int(noisy_total.values[0][0] / noisy_total.measurements.grid)
    alternative = setting.alternative_for_rows(rows)
    if alternative != "model_tables":
        return fit_on_bins(setting, series, rows, alternative)
    observation = series.measure(
        rescale_noise(
            reference_measurements(setting.plan), step_privacy(setting.plan).scaled(1 - share)
        )
    )
    return Outcome(
        setting.plan,
        join_observations([observation], setting.plan.privacy),
        TableModelFinding(rows=rows, maximal_tables=setting.maximal_tables, **setting.public_facts),
    )


def fit_on_bins(
    setting: ModelSetting, series: Series, rows: int | None, alternative: str
) -> Outcome:
    """Measure the histogram of each attribute, then binned tables.

    These tables are measured in all cases except "model_tables".
    """
    first = series.measure(setting.one_way_marginals(alternative))
    tables = {"pairs": setting.pairs, "threes": setting.three_way_tables}
    steps = [
        (tables[name], share)
        for name, share in setting.shares(alternative).items()
        if name in tables
    ]
    measured = [
        series.measure(setting.binned_tables(first, step_tables, share))
        for step_tables, share in steps
    ]
    blocks = list(chain.from_iterable(observation.measurements.blocks for observation in measured))
    cells = sum(block.rows for block in blocks)
    kind = ThreeWayModelFinding if len(steps) > 1 else BinnedModelFinding
    finding = kind(
        rows=rows,
        tables=len(blocks),
        cells=cells,
        maximal_tables=setting.maximal_tables,
        **setting.public_facts,
    )
    return Outcome(
        setting.plan, join_observations([first, *measured], setting.plan.privacy), finding
    )


def _reference_workload(workload: Workload) -> Workload:
    """Return the workload of the data-independent plan.

    The model may be fitted to the tables of this plan, so their hidden cells are part of the
    workload.
    """
    if not all(product.is_marginal for product in workload):
        return workload
    products = tuple(
        table_of_all_cells(workload.domain, product.attributes, product.measure)
        if product.has_hidden
        else product
        for product in workload
    )
    weighted = (
        replace(table, weight=product.weight)
        for table, product in zip(products, workload, strict=True)
    )
    return replace(workload, products=tuple(weighted), statistics=())


class Model(Mechanism):
    """The mechanism that answers tables of counts from a fitted model."""

    names = (STRATEGY,)
    findings = (BinnedModelFinding, ThreeWayModelFinding, TableModelFinding)

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Plan the steps and the budget of each step.

        The plan also contains the best data-independent plan.
        """
        pairs = pairs_of(workload)
        reference, _ = choose_plan(
            _reference_workload(workload), privacy, replace(search, strategy="auto")
        )
        adaptive = AdaptiveDetails(
            noise=reference.measured().noise,
            pairs=len(pairs),
            reference=summarize_reference(reference),
        )
        setting = ModelSetting(
            AdaptivePlan(
                workload=workload,
                privacy=privacy,
                strategy=STRATEGY,
                details=PlanDetails(impossible=search.impossible, public=search.public),
                adaptive=adaptive,
                fallback=reference,
            ),
            pairs,
        )
        if not setting.may_use_reference:
            adaptive = replace(adaptive, noise=noises_to_plan(privacy)[0])
        adaptive = replace(adaptive, mu_squared=shared_mu_squared(privacy, adaptive.noise))
        setting = replace(setting, plan=replace(setting.plan, adaptive=adaptive))
        remaining_measurements = rescale_plan(
            reference, step_privacy(setting.plan).scaled(1 - setting.counting_share)
        )
        return replace(
            setting.plan,
            adaptive=replace(adaptive, steps=_steps(setting)),
            fallback=remaining_measurements,
        )

    def prepare(self, plan: Plan) -> Run:
        """Check a plan, and return the function that carries it out."""
        return partial(run_model, setting_from_plan(plan))
