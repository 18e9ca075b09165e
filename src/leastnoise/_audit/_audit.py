"""Audit a plan: compute empirical lower bounds on its privacy loss.

The audit runs the installed kernel on synthetic tables. It reads no data and pays nothing.

Only the paid steps of a mechanism lose privacy, because all computations between them use only
public numbers. The audit carries out the steps of a run many times on two tables that differ in
some units. The first test distinguishes the tables by the likelihood ratio of all steps together.
Further tests examine each step separately.

For tables whose rows are all in one cell, this module computes the distribution of a private choice
from its definition, independently of the kernel. Only the tree of blocks is taken from the kernel.
The tests of the kernel compare this tree with its definition.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from leastnoise._audit._measurement_tests import (
    LEAST_TRIALS,
    AuditResult,
    Effort,
    Loss,
    Pairs,
    UnitRows,
    approximate_dp_loss,
    audit_measurements,
    batch_size,
    build_columns,
    certify_loss,
    clopper_pearson_lower,
    draw_answer_differences,
    epsilon_bound,
    epsilon_of_mu,
    gaussian_mu_bound,
    noise_shortfall,
    noise_tail,
    pairs_of_units,
    rho_bound,
    unit_with_equal_rows,
)
from leastnoise._audit._synthetic_tables import (
    EntropySource,
    series_on_keys,
    series_on_rows,
    series_on_table,
    synthetic_keys,
    synthetic_table,
)
from leastnoise._domain import Domain
from leastnoise._fitting import allowed_epsilon
from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._plan import BoundsPlan, CategoryPlan, LinearPlan, Plan, SearchPlan
from leastnoise._trusted.accounting import GDP, ZCDP, ApproxDP, Noise, parameters_by_name
from leastnoise._trusted.check import InputError, InternalError, whole
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.kernel import (
    KeySearch,
    LeastCost,
    QuantileSelection,
    ReleaseContract,
    Series,
)
from leastnoise._trusted.linop import block_tree, interval_tree
from leastnoise._trusted.measurements import Measurements, Observation, measurements_digest

_MOST_ROWS = 2**22  # rows of a synthetic table
_MOST_ROWS_OF_A_CHOICE = 2**17  # rows of a synthetic table of one private choice
_MOST_UNITS = 1000  # units in which two tables differ
_MOST_UNITS_OF_KEYS = 100  # units in which two tables of keys differ
# The numbers of choices and of keys that are drawn at a time.
_CHOICES_PER_BATCH = 2**6
_KEYS_PER_BATCH = 2**17
_QUADRATURE_NODES = 400  # nodes of the quadrature, which is exact for up to 799 cells
_UNPUBLISHED_COUNT = -(2.0**60)  # stands for the count of a key that was not published


class LeastCostDistribution:
    """The distribution of a noisy least cost, the outcome of a private choice.

    The outcome is the least cost that any partition of a table has, plus Laplace noise. All rows of
    the table are in the same cell.
    """

    def __init__(self, plan: Plan, selection: LeastCost, unit_rows: UnitRows) -> None:
        sizes = [plan.domain.kind(name).size for name in selection.attributes]
        row, self._rows = unit_rows[0]
        if len(sizes) == 2:
            tree = block_tree(*sizes)
        else:
            tree = interval_tree(*sizes)
        cell = int(np.ravel_multi_index([row[name] for name in selection.attributes], sizes))
        position = int(np.flatnonzero(tree.order == cell)[0])
        path = [
            int(np.searchsorted(starts, position, side="right")) - 1 for starts in tree.starts[:-1]
        ]
        # These subtrees do not contain the cell.
        self._off_path_subtrees = sum(
            int(tree.child_counts(level)[block]) - 1 for level, block in enumerate(path)
        )
        self._penalty = float(selection.penalty)
        self.scale = plan.privacy.distance / float(selection.epsilon)
        most_units = max(1, _MOST_ROWS_OF_A_CHOICE // self._rows)
        self.units = min(math.ceil(4 / float(selection.epsilon)), most_units)

    def least_cost(self, units: int) -> float:
        """Return the least cost that any partition of a table of ``units`` units has.

        The partition of least cost is one of two: it has only one bucket, or it has one bucket for
        the occupied cell and one for each subtree off the path to this cell.
        """
        return self._penalty + min(units * self._rows, self._penalty * self._off_path_subtrees)

    def log_likelihood_ratio(self, outcome: Any, units: int) -> float:
        """Return an outcome's log likelihood ratio for ``units`` units against none."""
        return (
            abs(float(outcome) - self._penalty) - abs(float(outcome) - self.least_cost(units))
        ) / self.scale


@cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of a Gauss-Legendre quadrature on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_QUADRATURE_NODES)
    return nodes, weights


class QuantileDistribution:
    """The distribution of the cell that a private choice of a quantile selects.

    The distribution is computed from its definition, independently of the kernel. All rows of the
    table are in the same cell.
    """

    def __init__(
        self, plan: Plan | BoundsPlan, selection: QuantileSelection, unit_rows: UnitRows
    ) -> None:
        row, self._rows = unit_rows[0]
        domain = plan.domain
        self._cell = row[selection.attribute]
        self._share = float(selection.share)
        self._parts = selection.share.denominator
        self._cells = selection.cells
        sensitivity = max(self._share, 1 - self._share)
        self._scale = 2 * plan.privacy.distance * sensitivity / float(selection.epsilon)
        sizes = [domain.cells(name) for name in selection.by]
        self.group = (
            int(np.ravel_multi_index([row[name] for name in selection.by], sizes)) if sizes else 0
        )
        # With this number of units the other cells pass rarely, and the frequency shows the scale.
        self.units = max(1, math.ceil(10 / float(selection.epsilon)))

    def cell_probabilities(self, units: int) -> FloatArray:
        """Return the probability that each cell is chosen, given ``units`` units.

        Each cell passes a test independently, and one of the passing cells is chosen at random.
        All rows are in one cell, the occupied cell. So all rows are above the cells before the
        occupied cell, and below the cells after it.
        """
        rows = units * self._rows
        position = np.arange(self._cells)
        distances = np.where(position < self._cell, self._share * rows, 0.0)
        part = 1 / self._parts  # a cell that begins at the target is after it
        if rows:
            rows_above = (1 - self._share) * rows + part
        else:
            rows_above = 0.0
        distances = np.where(position > self._cell, rows_above, distances)
        passing = np.exp(-distances / self._scale)
        # Let K be the number of other cells that pass. The mean of 1 / (1 + K) is the integral over
        # t from 0 to 1 of the mean of t^K.
        nodes, weights = _quadrature()
        moments = 1 - np.outer((1 - nodes) / 2, passing)
        others = np.exp(np.log(moments).sum(axis=1, keepdims=True) - np.log(moments))
        return np.asarray(passing * (weights / 2 @ others))

    def log_ratios(self, units: int) -> FloatArray:
        """Return each cell's log likelihood ratio for ``units`` units against none."""
        return np.asarray(
            np.log(self.cell_probabilities(units)) - np.log(self.cell_probabilities(0))
        )


@dataclass
class _Recorder:
    """A series that records the steps that a mechanism requests."""

    series: Series
    steps: list[LeastCost | QuantileSelection | Measurements] = field(default_factory=list)

    def choose(self, selection: LeastCost) -> Any:
        """Record a private choice by least cost, and return its noisy outcome."""
        self.steps.append(selection)
        return self.series.choose(selection)

    def choose_quantile_cells(self, selection: QuantileSelection) -> IntArray:
        """Record a private choice of quantiles, and return the chosen cells."""
        self.steps.append(selection)
        return self.series.choose_quantile_cells(selection)

    def measure(self, measurements: Measurements) -> Observation:
        """Record a measurement, and return its noisy observation."""
        self.steps.append(measurements)
        return self.series.measure(measurements)


AuditedStep: TypeAlias = LeastCost | QuantileSelection | Measurements
Steps: TypeAlias = Sequence[AuditedStep]
_Outcome = TypeVar("_Outcome")


def enumerate_mechanism_runs(plan: Plan, entropy: EntropySource) -> dict[str, Steps]:
    """Return the steps of a mechanism on synthetic tables, by branch name.

    The keys are the names of the branches of the mechanism (regimes). The tables differ in their
    counts: along the cells, the counts are constant on one, few or many intervals, or differ from
    cell to cell.
    """
    contract = release_contract(plan)
    run = mechanism_of(plan).prepare(plan)
    sizes = [plan.domain.kind(name).size for name in contract.attributes]
    size = math.prod(sizes)
    # This is the typical error of a count for the whole budget.
    noise = plan.privacy.distance / allowed_epsilon(plan.privacy.budget)
    height = max(1, min(math.ceil(8 * noise), _MOST_ROWS // size))
    steps_by_branch: dict[str, Steps] = {}
    for pieces in dict.fromkeys((1, max(2, size // 20), max(2, size // 3), size)):
        counts = np.where(np.arange(size) * pieces // size % 2 == 1, height, 0)
        cells = np.unravel_index(np.repeat(np.arange(size), counts), sizes)
        rows = int(counts.sum())
        cells_by_name = {
            name: column.tolist() for name, column in zip(contract.attributes, cells, strict=True)
        }
        codes = {name: cells_by_name.get(name, [0] * rows) for name in plan.domain.names}
        values = {
            name: [measure.high_units] * rows for name, measure in plan.domain.measures.items()
        }
        recorder = _Recorder(series_on_rows(contract, codes, values, entropy))
        facts = run(cast(Series, recorder)).finding.facts()
        steps_by_branch.setdefault(str(facts.get("regime", "measured")), recorder.steps)
    return steps_by_branch


def distinct_steps(steps_by_branch: dict[str, Steps]) -> list[AuditedStep]:
    """Return each different choice or measurement of the runs once."""
    step_by_key: dict[str, AuditedStep] = {}
    for steps in steps_by_branch.values():
        for step in steps:
            key = measurements_digest(step) if isinstance(step, Measurements) else repr(step)
            step_by_key.setdefault(key, step)
    return [*step_by_key.values()]


def _row_at_upper_bounds(domain: Domain) -> dict[str, int]:
    """Return a row in the first cell of each attribute, with largest amounts."""
    row = dict.fromkeys(domain.names, 0)
    for name, measure in domain.measures.items():
        row[name] = measure.high_units
    return row


def _repeat_on_units(
    plan: Plan,
    unit_rows: UnitRows,
    units: int,
    count: int,
    effort: Effort,
    run: Callable[[Series], _Outcome],
) -> list[_Outcome]:
    """Run a private step ``count`` times on a table of ``units`` equal units."""
    table = synthetic_table(
        plan.domain, plan.privacy, *build_columns(plan.domain, unit_rows, units)
    )
    return [
        run(series_on_table(release_contract(plan), table, effort.entropy)) for _ in range(count)
    ]


def _run_choice_repeatedly(
    plan: Plan, selection: LeastCost, unit_rows: UnitRows, units: int, count: int, effort: Effort
) -> list[Any]:
    """Run a private choice by least cost ``count`` times; return the outcomes."""
    return _repeat_on_units(
        plan, unit_rows, units, count, effort, lambda series: series.choose(selection)
    )


def audit_choice(plan: Plan, selection: LeastCost, effort: Effort) -> AuditResult:
    """Test the noise of a private choice by least cost."""
    unit_rows = unit_with_equal_rows(_row_at_upper_bounds(plan.domain), plan.privacy)
    distribution = LeastCostDistribution(plan, selection, unit_rows)
    # The draws of the two tables alternate, because their noise is equal: each half contains both.
    log_ratios = list[float]()
    for count in effort.batches(_CHOICES_PER_BATCH):
        draws_of_both = (
            _run_choice_repeatedly(plan, selection, rows_present, distribution.units, count, effort)
            for rows_present in (unit_rows, ())
        )
        for with_units, without_units in zip(*draws_of_both, strict=True):
            log_ratios += [
                -abs(float(with_units) - distribution.least_cost(distribution.units)),
                -abs(float(without_units) - distribution.least_cost(0)),
            ]

    def tails(factor: float, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, twice, the probability to reach each threshold at smaller noise."""
        # The grid of costs is so fine that they can be treated as continuous.
        chance = -np.expm1(thresholds * factor / distribution.scale)
        return chance, chance

    factor = noise_shortfall(np.array(log_ratios), np.array(log_ratios), effort.risk, tails)
    claim = (
        (distribution.least_cost(distribution.units) - distribution.least_cost(0))
        / distribution.scale
        / distribution.units
    )
    return AuditResult(
        name="least cost",
        claim=claim,
        lower_bound=claim * factor,
        trials=len(log_ratios) // 2,
        units=distribution.units,
    )


def _run_selection_repeatedly(
    plan: Plan,
    selection: QuantileSelection,
    unit_rows: UnitRows,
    units: int,
    count: int,
    effort: Effort,
) -> list[IntArray]:
    """Run a private choice of quantiles ``count`` times; return the chosen cells."""
    return _repeat_on_units(
        plan,
        unit_rows,
        units,
        count,
        effort,
        lambda series: series.choose_quantile_cells(selection),
    )


def _pure_loss_of_unit(units: int) -> Loss:
    """Return a function that bounds one unit's epsilon from two probabilities.

    The function takes a lower and an upper bound on the probabilities of an event on two tables
    that differ in ``units`` units. It returns a lower bound on epsilon.
    """
    return lambda low, high: epsilon_bound(low, high) / units


def _certify_in_both_directions(
    with_units: Sequence[float], without_units: Sequence[float], risk: float, loss: Loss
) -> float:
    """Return a lower bound on a loss, from outcomes with and without the units.

    Args:
        with_units: log likelihood ratios of outcomes on the table with the units.
        without_units: the log likelihood ratios of outcomes on the table that lacks the units.
        risk: the probability that the bound is too large.
        loss: a function that computes a lower bound on the loss from bounds on two probabilities.
    """
    present = np.array(with_units)
    absent = np.array(without_units)
    return max(
        certify_loss(likely, rare, risk / 2, loss)
        for likely, rare in ((present, absent), (-absent, -present))
    )


def audit_selection(plan: Plan, selection: QuantileSelection, effort: Effort) -> AuditResult:
    """Test the privacy loss of a private choice of quantiles."""
    unit_rows = unit_with_equal_rows(_row_at_upper_bounds(plan.domain), plan.privacy)
    distribution = QuantileDistribution(plan, selection, unit_rows)
    ratios_of_cells = distribution.log_ratios(distribution.units)
    with_units = list[float]()
    without_units = list[float]()
    for count in effort.batches(_CHOICES_PER_BATCH):
        for ratios, rows_present in ((with_units, unit_rows), (without_units, ())):
            for cells in _run_selection_repeatedly(
                plan, selection, rows_present, distribution.units, count, effort
            ):
                ratios.append(float(ratios_of_cells[cells[distribution.group]]))
    claim = float(np.abs(ratios_of_cells).max()) / distribution.units
    return AuditResult(
        name="quantile",
        claim=claim,
        lower_bound=_certify_in_both_directions(
            with_units, without_units, effort.risk, _pure_loss_of_unit(distribution.units)
        ),
        trials=len(with_units),
        units=distribution.units,
    )


def audit_mechanism_run(plan: Plan, name: str, steps: Steps, effort: Effort) -> AuditResult:
    """Test the privacy loss of all steps of a mechanism's run together."""
    pairs = {
        number: Pairs(step) for number, step in enumerate(steps) if isinstance(step, Measurements)
    }

    def distance(unit_pair: tuple[UnitRows, UnitRows]) -> float:
        return sum(
            step_pairs.build(unit_pair, 1).distance(step_pairs.measured.noise.norm)
            for step_pairs in pairs.values()
        )

    best = max(pairs_of_units(plan.domain, plan.privacy, equal=True), key=distance)
    units = max(1, min(_MOST_UNITS, math.floor(4 / distance(best))))
    measured_pairs = {number: step_pairs.build(best, units) for number, step_pairs in pairs.items()}
    most = _CHOICES_PER_BATCH
    for number, pair in measured_pairs.items():
        most = min(most, batch_size(pairs[number].measured, pair))
    ratios = list[FloatArray]()
    for count in effort.batches(most):
        ratio = np.zeros((2, count))
        for number, step in enumerate(steps):
            if isinstance(step, Measurements):
                pair = measured_pairs[number]
                ratio += [
                    pair.log_likelihood_ratio(noise, step.noise.norm)
                    for noise in draw_answer_differences(step, pair, count, effort)
                ]
            elif isinstance(step, QuantileSelection):
                _add_selection_log_ratios(ratio, plan, step, best, units, effort)
            else:
                ratio += _draw_choice_log_ratios(plan, step, best, units, count, effort)
        ratios.append(ratio)
    first, second = np.concatenate(ratios, axis=1)
    bound = certify_loss(first, second, effort.risk, loss_of_budget(plan, units))
    claim = float(next(iter(parameters_by_name(plan.privacy.budget).values())))
    return AuditResult(
        name=f"all steps, {name}", claim=claim, lower_bound=bound, trials=len(first), units=units
    )


def _add_selection_log_ratios(
    log_ratios: FloatArray,
    plan: Plan,
    selection: QuantileSelection,
    unit_pair: tuple[UnitRows, UnitRows],
    units: int,
    effort: Effort,
) -> None:
    """Add the log likelihood ratios of a choice of quantiles to ``log_ratios``.

    ``log_ratios`` is changed in place; its shape is (2, trials), for the two tables.
    """
    signed_ratios = []
    for sign, unit_rows in zip((1, -1), unit_pair, strict=True):
        if unit_rows:
            distribution = QuantileDistribution(plan, selection, unit_rows)
            signed_ratios.append((distribution.group, sign * distribution.log_ratios(units)))
    for side, unit_rows in enumerate(unit_pair):
        selections = _run_selection_repeatedly(
            plan, selection, unit_rows, units, log_ratios.shape[1], effort
        )
        for trial, cells in enumerate(selections):
            for group, ratios_of_cells in signed_ratios:
                log_ratios[side, trial] += ratios_of_cells[cells[group]]


def _draw_choice_log_ratios(
    plan: Plan,
    selection: LeastCost,
    unit_pair: tuple[UnitRows, UnitRows],
    units: int,
    count: int,
    effort: Effort,
) -> list[list[float]]:
    """Return log likelihood ratios of noisy least costs, shape (2, trials).

    If neighbours replace a unit, each of the two tables is compared with an empty table, and the
    ratio is the difference of these two log ratios.
    """
    distributions = [
        (sign, LeastCostDistribution(plan, selection, unit_rows))
        for sign, unit_rows in zip((1, -1), unit_pair, strict=True)
        if unit_rows
    ]

    def ratio(outcome: Any) -> float:
        return sum(
            sign * distribution.log_likelihood_ratio(outcome, units)
            for sign, distribution in distributions
        )

    outcomes = [
        _run_choice_repeatedly(plan, selection, unit_rows, units, count, effort)
        for unit_rows in unit_pair
    ]
    return [list(map(ratio, outcomes_of_table)) for outcomes_of_table in outcomes]


def loss_of_budget(plan: Plan | BoundsPlan, units: int) -> Loss:
    """Return a function that bounds one unit's loss from two probabilities.

    The loss is an epsilon, a rho or a mu squared, depending on the budget. The function's arguments
    are bounds on the probabilities of an event on tables that differ in ``units`` units.
    """
    budget = plan.privacy.budget
    if isinstance(budget, ApproxDP):
        return approximate_dp_loss(float(budget.delta), units)
    if isinstance(budget, ZCDP):
        return lambda low, high: rho_bound(low, high) / units**2
    if isinstance(budget, GDP):
        return lambda low, high: (gaussian_mu_bound(low, high) / units) ** 2
    return lambda low, high: epsilon_bound(low, high) / units


def audit_unique_keys(plan: CategoryPlan, effort: Effort) -> AuditResult:
    """Test the loss from keys that only the differing units have.

    On the table without these units, a key cannot be published, and the probability of the event is
    0. The number of units is chosen to maximise the certified bound.
    """
    tail = noise_tail(plan.rule.noise, float(plan.rule.scale))
    delta = float(_search_budget(plan).delta)
    highest = plan.threshold + math.ceil(2 * float(plan.rule.scale))
    keys = plan.privacy.max_rows

    publication_probabilities = {
        int(units): 1 - (1 - float(tail(np.array(plan.threshold - units)))) ** keys
        for units in np.linspace(1, highest, 60)
    }
    likely = {
        units: approximate_dp_loss(delta, units)(chance, 0.0)
        for units, chance in publication_probabilities.items()
        if chance > 0.05
    }
    units = max(likely, key=likely.__getitem__)
    named = np.concatenate(
        [
            (counts > _UNPUBLISHED_COUNT).any(axis=0)
            for counts in _draw_key_counts(plan, [units] * keys, effort)
        ]
    )
    bound = approximate_dp_loss(delta, units)(
        float(clopper_pearson_lower(named.sum(), len(named), effort.risk)), 0.0
    )
    return AuditResult(
        name="all keys that nobody else has",
        claim=float(_search_budget(plan).epsilon),
        lower_bound=bound,
        trials=len(named),
        units=units,
    )


def audit_shared_keys(plan: CategoryPlan, effort: Effort) -> AuditResult:
    """Test the loss from the noisy counts of keys that other units share."""
    privacy = plan.privacy
    scale = float(plan.rule.scale)
    if plan.rule.noise is Noise.ROUNDED_GAUSSIAN:
        norm = 2
    else:
        norm = 1
    units = max(1, min(_MOST_UNITS_OF_KEYS, math.floor(4 * scale / privacy.distance ** (1 / norm))))
    base = plan.threshold + math.ceil(40 * scale)
    signs = np.where(np.arange(privacy.distance) < privacy.max_rows, 1, -1)
    ratios = []
    for sign in (1, -1):
        unit_counts = np.where(signs == sign, base + units, base)
        above = [
            counts - base
            for counts in _draw_key_counts(
                plan, unit_counts.tolist(), replace(effort, seconds=effort.seconds / 2)
            )
        ]
        each = [
            noisy * units / scale**2
            if norm == 2
            else (np.abs(noisy) - np.abs(noisy - units)) / scale
            for noisy in above
        ]
        ratios.append(np.concatenate([signs @ ratio for ratio in each]))
    trials = min(map(len, ratios))
    first = ratios[0][:trials]
    second = ratios[1][:trials]
    bound = certify_loss(
        first, second, effort.risk, approximate_dp_loss(float(_search_budget(plan).delta), units)
    )
    return AuditResult(
        name="all keys that others have too",
        claim=float(_search_budget(plan).epsilon),
        lower_bound=bound,
        trials=len(first),
        units=units,
    )


def audit_threshold_key(plan: CategoryPlan, effort: Effort) -> AuditResult:
    """Test the noise of a key's count near the publication threshold.

    One key has slightly more units than the threshold, and one has slightly fewer. The published
    counts must follow the distribution of the noise.
    """
    noise = plan.rule.noise
    scale = float(plan.rule.scale)
    threshold = plan.threshold
    step = max(1, round(scale))
    unit_counts = (threshold + step, max(1, threshold - step))
    half = replace(effort, seconds=effort.seconds / 2)
    noises_of_keys = []
    for units in unit_counts:
        draws = [noisy[0] for noisy in _draw_key_counts(plan, [units], half)]
        noises_of_keys.append(np.concatenate(draws))
    trials = min(map(len, noises_of_keys))
    first = noises_of_keys[0][:trials]
    second = noises_of_keys[1][:trials]

    def tails(factor: float, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of counts to reach thresholds at smaller noise."""
        tail = noise_tail(noise, scale / factor)
        is_always_reached = thresholds <= _UNPUBLISHED_COUNT
        least_counts = np.maximum(thresholds, threshold)
        above = np.where(is_always_reached, 1.0, tail(least_counts - unit_counts[0]))
        below = np.where(is_always_reached, 1.0, tail(least_counts - unit_counts[1]))
        return above, below

    factor = noise_shortfall(first, second, effort.risk, tails)
    return AuditResult(
        name="a key at the threshold",
        claim=1 / scale,
        lower_bound=factor / scale,
        trials=len(first),
        units=unit_counts[0] - unit_counts[1],
    )


def _draw_key_counts(
    plan: CategoryPlan, units: Sequence[int], effort: Effort
) -> Iterator[FloatArray]:
    """Yield batches of noisy counts of units, shape (keys, trials).

    The count of an unpublished key is `_UNPUBLISHED_COUNT`.
    """
    for count in effort.batches(max(1, _KEYS_PER_BATCH // len(units))):
        all_units: IntArray = np.tile(np.array(units, dtype=np.int64), count)
        contract = ReleaseContract(
            domain=plan.domain, privacy=plan.privacy, attributes=(plan.attribute,)
        )
        series = series_on_keys(contract, all_units.tolist(), effort.entropy)
        keys = series.find(KeySearch(attribute=plan.attribute, rule=plan.rule, most=len(all_units)))
        numbers = {text: number for number, text in enumerate(synthetic_keys(len(all_units)))}
        noisy = np.full(len(all_units), _UNPUBLISHED_COUNT)
        noisy[[numbers[text] for text in keys.keys]] = keys.units
        yield noisy.reshape(count, len(units)).T


def audit_bounds_search(plan: BoundsPlan, effort: Effort) -> AuditResult:
    """Test the loss of all private choices in a search for bounds together."""
    contract = ReleaseContract(
        domain=plan.domain, privacy=plan.privacy, attributes=(plan.attribute,)
    )
    # Units in the last cell have the largest effect on an upper bound.
    unit_rows = unit_with_equal_rows({plan.attribute: plan.kind.size - 1}, plan.privacy)
    selections = [
        QuantileSelection(
            attribute=plan.attribute, share=share, cells=plan.kind.size, epsilon=plan.epsilon
        )
        for share in plan.quantiles
    ]
    laws = [QuantileDistribution(plan, selection, unit_rows) for selection in selections]
    units = max(law.units for law in laws)
    ratios_of_cells = [law.log_ratios(units) for law in laws]

    def draw_ratios(rows_present: UnitRows, count: int) -> list[float]:
        table = synthetic_table(
            plan.domain, plan.privacy, *build_columns(plan.domain, rows_present, units)
        )
        totals = [0.0] * count
        for trial in range(count):
            series = series_on_table(contract, table, effort.entropy)
            for selection, ratios in zip(selections, ratios_of_cells, strict=True):
                (cell,) = series.choose_quantile_cells(selection)
                totals[trial] += float(ratios[cell])
        return totals

    with_units = list[float]()
    without_units = list[float]()
    for count in effort.batches(_CHOICES_PER_BATCH):
        with_units += draw_ratios(unit_rows, count)
        without_units += draw_ratios((), count)
    return AuditResult(
        name="all choices",
        claim=float(next(iter(parameters_by_name(plan.privacy.budget).values()))),
        lower_bound=_certify_in_both_directions(
            with_units, without_units, effort.risk, loss_of_budget(plan, units)
        ),
        trials=len(with_units),
        units=units,
    )


def _search_budget(plan: CategoryPlan) -> ApproxDP:
    """Return the (epsilon, delta) budget of a search for categories."""
    budget = plan.privacy.budget
    if not isinstance(budget, ApproxDP):
        raise InternalError("A search for keys has no delta; please report this.")
    return budget


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit: lower bounds on losses, and the claimed losses.

    Attributes:
        claim: the loss that the plan claims for all steps together.
        measure: the measure of loss that claim and bound use: epsilon, mu or rho.
        lower_bound: the lower bound on the loss of all steps together.
        epsilon: the bound converted to an epsilon at the budget's delta; None unless ``measure`` is
            mu.
        parts: the results of further tests of the guard and of single steps.
        confidence: the probability with which all bounds hold together.
        trials: the number of trials of all steps together, on each table.
        units: the number of units in which the two tables differ.
        is_within_claim: whether every bound is at most its claim.
    """

    claim: float
    measure: str
    lower_bound: float
    epsilon: float | None
    parts: tuple[AuditResult, ...]
    confidence: float
    trials: int
    units: int
    is_within_claim: bool


_LOSS_MEASURES = {
    "discrete_laplace": "epsilon",
    "rounded_gaussian": "mu",
    "discrete_gaussian": "rho",
}


def _check_audit(plan: Plan | SearchPlan, trials: int | None, confidence: float) -> None:
    """Raise if an argument is out of range, or if a plan counts units."""
    if trials is not None:
        whole("trials", trials, LEAST_TRIALS)
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence must be from 0.5 to below 1; got {confidence}.")
    if isinstance(plan, Plan) and any(product.is_per_unit for product in plan.workload):
        raise InputError(
            "A plan that counts or adds up units cannot be audited yet: the synthetic rows of an "
            "audit have no units. Audit a plan that counts rows."
        )


def audit_plan(
    plan: Plan | SearchPlan,
    guard: Measurements | None,
    *,
    trials: int | None,
    seconds: float,
    confidence: float,
    entropy: EntropySource,
) -> Audit:
    """Audit a plan and its guard, and return lower bounds on the privacy loss."""
    _check_audit(plan, trials, confidence)
    tests = [*_plan_tests(plan, entropy)]
    if guard is not None:
        tests.append(partial(_audit_named_measurements, guard, "the guard: "))
    # A test uses at most three events, with two probabilities each.
    effort = Effort(
        trials=trials,
        seconds=seconds / len(tests),
        risk=(1 - confidence) / (6 * len(tests)),
        entropy=entropy,
    )
    results = [test(effort) for test in tests]
    parts: list[AuditResult] = []
    for outcome in results:
        if isinstance(outcome, list):
            parts += outcome
        else:
            parts.append(outcome)
    joint_result = max(
        (part for part in parts if part.name.startswith("all")), key=lambda part: part.lower_bound
    )
    loss_measure = next(iter(parameters_by_name(plan.privacy.budget)))
    epsilon = None
    if isinstance(plan, LinearPlan):
        loss_measure = _LOSS_MEASURES[plan.measurements.noise.value]
        epsilon = epsilon_of_mu(plan.measurements, joint_result.lower_bound)
    return Audit(
        claim=joint_result.claim,
        measure=loss_measure,
        lower_bound=joint_result.lower_bound,
        epsilon=epsilon,
        parts=tuple(part for part in parts if part is not joint_result),
        confidence=confidence,
        trials=joint_result.trials,
        units=joint_result.units,
        is_within_claim=all(part.is_within_claim for part in parts),
    )


def _plan_tests(
    plan: Plan | SearchPlan, entropy: EntropySource
) -> Iterator[Callable[[Effort], AuditResult | list[AuditResult]]]:
    """Yield the tests of a plan: of all steps together, then of single steps."""
    if isinstance(plan, CategoryPlan):
        tests: tuple[Callable[[CategoryPlan, Effort], AuditResult], ...] = (
            audit_unique_keys,
            audit_shared_keys,
            audit_threshold_key,
        )
        yield from (partial(test, plan) for test in tests)
        return
    if isinstance(plan, BoundsPlan):
        yield partial(audit_bounds_search, plan)
        return
    if isinstance(plan, LinearPlan):
        yield partial(_audit_named_measurements, plan.measurements, "")
        return
    steps_by_branch = enumerate_mechanism_runs(plan, entropy)
    yield from (
        partial(audit_mechanism_run, plan, name, steps) for name, steps in steps_by_branch.items()
    )
    for step in distinct_steps(steps_by_branch):
        if isinstance(step, Measurements):
            yield partial(_audit_named_measurements, step, "a step: ")
        elif isinstance(step, QuantileSelection):
            yield partial(audit_selection, plan, step)
        else:
            yield partial(audit_choice, plan, step)


def _audit_named_measurements(
    measured: Measurements, prefix: str, effort: Effort
) -> list[AuditResult]:
    """Return the audit results of measurements, with a prefix before each name."""
    return [replace(part, name=prefix + part.name) for part in audit_measurements(measured, effort)]
