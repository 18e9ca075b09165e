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
from leastnoise._estimate import Estimator, Finding, Modelled, Moved, NoisyTables, Outcome, Said, join, read_combinations
from leastnoise._fitting import fit, rescaled
from leastnoise._kernel import Series
from leastnoise._linop import Coarse, Identity
from leastnoise._measurements import Block, Factor, Measurements, Observation
from leastnoise._mechanisms._choose import choose, noises
from leastnoise._mechanisms._findings import Looked, explained, fallback, read_finding, within
from leastnoise._mechanisms._protocol import Explanation, Reference, Run
from leastnoise._mechanisms._search import Search
from leastnoise._plan import Plan
from leastnoise._planner import ALONE_SHARE, binned_tables, precisions
from leastnoise._workload import Workload

STRATEGY = "model"
_COUNTING = Fraction(1, 50)  # of the budget at most; halved as long as the rows are still told within a part of those that decide
_COUNTED, _HALVINGS = 0.05, 10
_DENSE = 0.02  # the share of rows that the plan which does not look puts into wrong cells, below which it is carried out;
_FEW_CELLS = 14  # of tables of so many cells twice as much, and of 2 x 2 any, because they are seldom empty
_FEW_ROWS = 100  # who asks for tables has more, so where these decide nothing is counted
_MOST_SAID = 5
_MOST_CELLS, _MOST_PAIRS = 2**22, 2**13


def _said(domain: Domain, impossible: Sequence[Mapping[str, Sequence[int]]]) -> list[Said]:
    """That zeros of impossible values are not protected, and which they are."""
    if not impossible:
        return []
    listed = [" x ".join(f"{name} {_labels(domain, name, codes)}" for name, codes in one.items()) for one in impossible]
    return [("aware_impossible", {"values": "; ".join(listed)})]


def _labels(domain: Domain, name: str, codes: Sequence[int]) -> str:
    labels = [str(domain.kind(name).labels[code]) for code in codes]
    return ", ".join(labels if len(labels) <= _MOST_SAID else [*labels[: _MOST_SAID - 1], "...", labels[-1]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _FromModel(Looked):
    """What both models know: the widest tables asked for, values that cannot be together, and the noisy number of rows if it decided."""

    reading = "aware_reading_model"

    asked: tuple[tuple[str, ...], ...]
    impossible: tuple[Mapping[str, Sequence[int]], ...] = ()
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnBins(_FromModel):
    """A model of attributes alone and of pairs on bins."""

    regime = "model_bins"

    tables: int
    cells: int

    def not_covered(self, domain: Domain) -> list[Said]:
        """What no pair of attributes shows."""
        return [("aware_model_bins", {}), *_said(domain, self.impossible)]

    def estimator(self, observation: Observation) -> Estimator:
        """The model."""
        domain = observation.measurements.domain
        return Modelled.of(observation, [tuple(names) for names in self.asked], read_combinations(domain, self.impossible))


@dataclass(frozen=True, slots=True, kw_only=True)
class OnTables(_FromModel):
    """A model of the least-squares tables, and answers between it and them."""

    regime = "model_tables"

    def not_covered(self, domain: Domain) -> list[Said]:
        """What is taken for typical of all cells."""
        return [("aware_model_tables", {}), *_said(domain, self.impossible)]

    def estimator(self, observation: Observation) -> Estimator:
        """Tables between the model and least squares."""
        domain = observation.measurements.domain
        return Moved.of(observation, [tuple(names) for names in self.asked], read_combinations(domain, self.impossible))


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
    def impossible(self) -> tuple[Mapping[str, Sequence[int]], ...]:
        """Values that cannot be together, as the spec says them."""
        return tuple(self.plan.details.get("impossible", ()))

    @property
    def noise(self) -> Noise:
        """The noise of tables on bins."""
        return noises(self.plan.privacy)[0]

    def fitted(self, share: Fraction, blocks: Sequence[tuple[Block, float]]) -> Measurements:
        """Blocks within a part of the budget."""
        return fit(self.plan.domain, self.plan.privacy.share(share), self.noise, blocks)

    @property
    def deciding_rows(self) -> float:
        """From how many rows on the plan that does not look is nearly right; it says nothing of cells where other queries are asked."""
        if not all(product.is_marginal for product in self.plan.workload):
            return math.inf
        rmse = Reference.read(self.plan.details["reference"]).rmse
        cells = np.array([product.rows for product in self.plan.workload])
        return 0.4 * float(np.mean(cells * rmse)) / (_DENSE * (1 + (_FEW_CELLS / float(cells.mean())) ** 4))

    @property
    def counting(self) -> Fraction:
        """The part of the budget that counts the rows; none where no count would change what is measured."""
        deciding, share = self.deciding_rows, _COUNTING
        if not _FEW_ROWS < deciding < math.inf:
            return Fraction(0)
        for _ in range(_HALVINGS):
            half = self.total(share / 2)
            if block_variance(half, half.blocks[0]) > (_COUNTED * deciding) ** 2:
                break
            share /= 2
        return share

    def total(self, share: Fraction) -> Measurements:
        """The number of rows."""
        return self.fitted(share, [(Block((), Fraction(1)), 1.0)])

    def alone(self) -> Measurements:
        """Every attribute alone."""
        sizes = [self.plan.domain.kind(name).size for name in self.names]
        factors = [Factor((name,), Identity(size)) for name, size in zip(self.names, sizes, strict=True)]
        relative = precisions(sizes, [1.0] * len(sizes))
        blocks = [(Block((one,), Fraction(1)), float(weight)) for one, weight in zip(factors, relative, strict=True)]
        return self.fitted((1 - self.counting) * ALONE_SHARE, blocks)

    def together(self, first: Observation) -> Measurements:
        """Pairs on bins that follow from noisy counts of the attributes alone."""
        told, share = NoisyTables.of(first), (1 - self.counting) * (1 - ALONE_SHARE)
        whole = self.total(share)
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


def _steps(setting: Setting) -> list[dict[str, Any]]:
    def budget(share: Fraction) -> dict[str, str]:
        return {name: str(number * share) for name, number in parameters(setting.plan.privacy.budget).items()}

    rest = 1 - setting.counting
    bins = [{"step": "alone", "budget": budget(rest * ALONE_SHARE)}, {"step": "pairs", "budget": budget(rest * (1 - ALONE_SHARE))}]
    tables = [{"step": "independent", "budget": budget(rest)}]
    if rest == 1:
        return tables if setting.deciding_rows <= _FEW_ROWS else bins
    return [{"step": "total", "budget": budget(1 - rest)}, {"step": "one of", "model_bins": bins, "model_tables": tables}]


def plan_model(workload: Workload, privacy: Privacy, search: Search) -> Plan:
    """The public plan: shares of the budget, and the plan that does not look."""
    pairs = pairs_of(workload)
    reference, _ = choose(workload, privacy, replace(search, strategy="auto", found=None))
    details = {
        "mechanism": noises(privacy)[0].value,
        "pairs": len(pairs),
        "reference": Reference.of(reference).facts(),
        **({"impossible": list(search.impossible)} if search.impossible else {}),
    }
    setting = Setting(Plan(workload=workload, privacy=privacy, strategy=STRATEGY, details=details, fallback=reference), pairs)
    rest = within(reference, privacy.share(1 - setting.counting))
    return replace(setting.plan, details=details | {"steps": _steps(setting)}, fallback=rest)


def setting_of(plan: Plan) -> Setting:
    """Read and check a plan before anything is paid; it may come from a file that somebody wrote."""
    found = Setting(plan, pairs_of(plan.workload))
    try:
        read_combinations(plan.domain, found.impossible)
        same = json.dumps(plan.details["steps"]) == json.dumps(_steps(found))
        tables = len(Reference.read(plan.details["reference"]).rmse)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"The plan of the model cannot be read: {error}. Make the plan again; nothing was spent.") from None
    if not same or tables != len(plan.workload.products):
        raise InputError("The steps of the plan are not those that this version carries out. Make the plan again; nothing was spent.")
    rescaled(fallback(plan), plan.privacy.share(1 - found.counting))
    found.alone()  # refused now, and not when the first step has been paid for
    return found


def carry_out(found: Setting, series: Series) -> Outcome:
    """Count the rows if they decide, then measure tables on bins or what the plan that does not look measures."""
    rows, share = None, found.counting
    if share:
        counted = series.measure(found.total(share))
        rows = int(counted.values[0][0] / counted.measurements.grid)
    if found.deciding_rows > (_FEW_ROWS if rows is None else max(rows, 1)):
        return on_bins(found, series, rows)
    rest = series.measure(rescaled(fallback(found.plan), found.plan.privacy.share(1 - share)))
    return Outcome(found.plan, join([rest], found.plan.privacy), OnTables(rows=rows, asked=found.asked, impossible=found.impossible))


def on_bins(found: Setting, series: Series, rows: int | None) -> Outcome:
    """Measure attributes alone, then pairs of them on bins."""
    first = series.measure(found.alone())
    second = series.measure(found.together(first))
    blocks = second.measurements.blocks
    finding = OnBins(
        rows=rows, tables=len(blocks), cells=sum(block.rows for block in blocks), asked=found.asked, impossible=found.impossible
    )
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
