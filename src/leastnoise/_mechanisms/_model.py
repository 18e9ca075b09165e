"""Tables from a model: a mixture of products that explains noisy tables, which follow from what a table's cells hold.

The number of rows is counted first. Where the plan that does not look would be far off for so many rows, attributes are measured alone,
then pairs of attributes on bins that follow from those noisy counts; else that plan is carried out, and the model is fitted to it. All
steps are under one payment, and the model is post-processing.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from leastnoise._accounting import Noise, Privacy, parameters
from leastnoise._accuracy import block_variance
from leastnoise._check import InputError
from leastnoise._domain import Domain
from leastnoise._estimate import Estimator, Finding, Modelled, Moved, NoisyTables, Outcome, Said, join
from leastnoise._fitting import fit, rescaled
from leastnoise._kernel import Series
from leastnoise._linop import Coarse, Identity
from leastnoise._measurements import Block, Factor, Measurements, Observation
from leastnoise._mechanisms._choose import choose, noises
from leastnoise._mechanisms._findings import Looked, read_finding
from leastnoise._mechanisms._protocol import Explanation, Reference, Run
from leastnoise._mechanisms._reference import explained, fallback, within
from leastnoise._mechanisms._search import Search
from leastnoise._plan import Plan
from leastnoise._planner import ALONE_SHARE, binned_tables, precisions
from leastnoise._workload import Workload

STRATEGY = "model"
TOTAL_SHARE = Fraction(1, 50)
_DENSE = 0.02  # the share of rows that the plan which does not look puts into wrong cells, below which it is carried out;
_FEW_CELLS = 16  # of tables of so many cells twice as much, because small tables are seldom empty
_MOST_CELLS, _MOST_PAIRS = 2**22, 2**13


@dataclass(frozen=True, slots=True, kw_only=True)
class OnBins(Looked):
    """A model of attributes alone and of pairs on bins."""

    regime = "model_bins"
    reading = "aware_reading_model"

    rows: int
    tables: int
    cells: int
    asked: tuple[tuple[str, ...], ...] = ()

    def not_covered(self, domain: Domain) -> list[Said]:  # noqa: ARG002 - of all domains
        """What no pair of attributes shows."""
        return [("aware_model_bins", {})]

    def estimator(self, observation: Observation) -> Estimator:
        """The model."""
        return Modelled.of(observation, [tuple(names) for names in self.asked])


@dataclass(frozen=True, slots=True, kw_only=True)
class OnTables(Looked):
    """A model of the least-squares tables, and answers between it and them."""

    regime = "model_tables"
    reading = "aware_reading_model"

    rows: int
    asked: tuple[tuple[str, ...], ...]

    def not_covered(self, domain: Domain) -> list[Said]:  # noqa: ARG002 - of all domains
        """What is taken for typical of all cells."""
        return [("aware_model_tables", {})]

    def estimator(self, observation: Observation) -> Estimator:
        """Tables between the model and least squares."""
        return Moved.of(observation, [tuple(names) for names in self.asked])


@dataclass(frozen=True, slots=True)
class Setting:
    """What is public about a release from a model: its plan, and what a squared error of each pair of attributes counts."""

    plan: Plan
    pairs: Mapping[tuple[str, ...], float]

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that are asked about, also those that are in no pair."""
        return tuple(name for name in self.plan.domain.names if any(name in product.attributes for product in self.plan.workload))

    @property
    def asked(self) -> tuple[tuple[str, ...], ...]:
        """The widest tables that are asked for."""
        tables = list(dict.fromkeys(product.attributes for product in self.plan.workload))
        return tuple(names for names in tables if not any(set(names) < set(other) for other in tables))

    @property
    def noise(self) -> Noise:
        """The noise of tables on bins."""
        return noises(self.plan.privacy)[0]

    def fitted(self, share: Fraction, blocks: Sequence[tuple[Block, float]]) -> Measurements:
        """Blocks within a part of the budget."""
        return fit(self.plan.domain, self.plan.privacy.share(share), self.noise, blocks)

    def total(self) -> Measurements:
        """The number of rows."""
        return self.fitted(TOTAL_SHARE, [(Block((), Fraction(1)), 1.0)])

    def dense(self, rows: float) -> bool:
        """Whether the plan that does not look is nearly right for so many rows; it says nothing of cells where other queries are asked."""
        if not all(product.is_marginal for product in self.plan.workload):
            return False
        rmse = Reference.read(self.plan.details["reference"]).rmse
        cells = np.array([product.rows for product in self.plan.workload])
        return 0.4 * float(np.mean(cells * rmse)) < _DENSE * (1 + _FEW_CELLS / float(cells.mean())) * max(rows, 1.0)

    def alone(self) -> Measurements:
        """Every attribute alone."""
        sizes = [self.plan.domain.kind(name).size for name in self.names]
        factors = [Factor((name,), Identity(size)) for name, size in zip(self.names, sizes, strict=True)]
        relative = precisions(sizes, [1.0] * len(sizes))
        blocks = [(Block((one,), Fraction(1)), float(weight)) for one, weight in zip(factors, relative, strict=True)]
        return self.fitted((1 - TOTAL_SHARE) * ALONE_SHARE, blocks)

    def together(self, first: Observation) -> Measurements:
        """Pairs on bins that follow from noisy counts of the attributes alone."""
        told, share = NoisyTables.of(first), (1 - TOTAL_SHARE) * (1 - ALONE_SHARE)
        whole = self.fitted(share, [(Block((), Fraction(1)), 1.0)])
        std = math.sqrt(block_variance(whole, whole.blocks[0]))
        shares = dict(zip(told.names, told.shares, strict=True))
        blocks = []
        for names, (weight, starts) in binned_tables(shares, self.pairs, told.total, std, self.noise.norm).items():
            sizes = [len(shares[name]) for name in names]
            bins = [Identity(n) if n == len(one) else Coarse(Identity(len(one)), one, n) for n, one in zip(sizes, starts, strict=True)]
            factors = tuple(Factor((name,), operator) for name, operator in zip(names, bins, strict=True))
            blocks.append((Block(factors, Fraction(1)), weight))
        return self.fitted(share, blocks)


def pairs_of(workload: Workload) -> dict[tuple[str, ...], float]:
    """Pairs of attributes that are asked about together, with what a squared error of each counts; refused where a model is no way."""
    if workload.measures != (None,):
        raise InputError(f"{STRATEGY} answers counts; this workload asks for sums. Choose strategy = 'auto'.")
    domain, pairs = workload.domain, dict[tuple[str, ...], float]()
    for product in workload:
        if math.prod(domain.kind(name).size for name in product.attributes) > _MOST_CELLS:
            raise InputError(
                f"{STRATEGY} answers tables of at most {_MOST_CELLS} cells; {product.name} has more. Use coarser attributes, or choose "
                "strategy = 'auto'."
            )
        several = [name for name in domain.names if name in product.attributes and domain.kind(name).size > 1]
        for pair in combinations(several, 2):
            pairs[pair] = pairs.get(pair, 0.0) + product.importance
    if not 0 < len(pairs) <= _MOST_PAIRS:
        raise InputError(
            f"{STRATEGY} is for tables of two attributes and more, of at most {_MOST_PAIRS} pairs in all; this workload has {len(pairs)} "
            "pairs. Choose strategy = 'auto'."
        )
    return pairs


def _steps(privacy: Privacy) -> list[dict[str, Any]]:
    def budget(share: Fraction) -> dict[str, str]:
        return {name: str(number * share) for name, number in parameters(privacy.budget).items()}

    rest = 1 - TOTAL_SHARE
    bins = [{"step": "alone", "budget": budget(rest * ALONE_SHARE)}, {"step": "pairs", "budget": budget(rest * (1 - ALONE_SHARE))}]
    return [
        {"step": "total", "budget": budget(TOTAL_SHARE)},
        {"step": "one of", "model_bins": bins, "model_tables": [{"step": "independent", "budget": budget(rest)}]},
    ]


def plan_model(workload: Workload, privacy: Privacy, search: Search) -> Plan:
    """The public plan: shares of the budget, and the plan that does not look."""
    pairs = pairs_of(workload)
    reference, _ = choose(workload, privacy, replace(search, strategy="auto", found=None))
    details = {
        "mechanism": noises(privacy)[0].value,
        "pairs": len(pairs),
        "steps": _steps(privacy),
        "reference": Reference.of(reference).facts(),
    }
    rest = within(reference, privacy.share(1 - TOTAL_SHARE))
    return Plan(workload=workload, privacy=privacy, strategy=STRATEGY, details=details, fallback=rest)


def setting_of(plan: Plan) -> Setting:
    """Read and check a plan before anything is paid; it may come from a file that somebody wrote."""
    found = Setting(plan, pairs_of(plan.workload))
    rescaled(fallback(plan), plan.privacy.share(1 - TOTAL_SHARE))
    try:
        same = json.dumps(plan.details["steps"]) == json.dumps(_steps(plan.privacy))
        tables = len(Reference.read(plan.details["reference"]).rmse)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"The plan of the model cannot be read: {error}. Make the plan again; nothing was spent.") from None
    if not same or tables != len(plan.workload.products):
        raise InputError("The steps of the plan are not those that this version carries out. Make the plan again; nothing was spent.")
    found.alone()  # refused now, and not when the first step has been paid for
    return found


def carry_out(found: Setting, series: Series) -> Outcome:
    """Count the rows, then measure tables on bins or what the plan that does not look measures."""
    counted = series.measure(found.total())
    (rows,) = counted.values[0] / counted.measurements.grid
    if not found.dense(float(rows)):
        return on_bins(found, series, int(rows))
    rest = series.measure(rescaled(fallback(found.plan), found.plan.privacy.share(1 - TOTAL_SHARE)))
    return Outcome(found.plan, join([rest], found.plan.privacy), OnTables(rows=int(rows), asked=found.asked))


def on_bins(found: Setting, series: Series, rows: int) -> Outcome:
    """Measure attributes alone, then pairs of them on bins."""
    first = series.measure(found.alone())
    second = series.measure(found.together(first))
    blocks = second.measurements.blocks
    finding = OnBins(rows=rows, tables=len(blocks), cells=sum(block.rows for block in blocks), asked=found.asked)
    return Outcome(found.plan, join([first, second], found.plan.privacy), finding)


class Model:
    """The mechanism for tables from a model."""

    names = (STRATEGY,)

    def takes(self, strategy: str, workload: Workload) -> bool:  # noqa: ARG002 - refused with a reason
        """By name."""
        return strategy == STRATEGY

    def decides_along(self, workload: Workload) -> tuple[str, ...]:  # noqa: ARG002 - none
        """None that is not asked about."""
        return ()

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """See `plan_model`."""
        return plan_model(workload, privacy, search)

    def ready(self, plan: Plan) -> Run:
        """See `setting_of` and `carry_out`."""
        return partial(carry_out, setting_of(plan))

    def explain(self, plan: Plan) -> Explanation:
        """Steps, and the plan that does not look."""
        return explained(plan)

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """One of two models."""
        return read_finding((OnBins, OnTables), facts)
