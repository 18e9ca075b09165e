"""Exact privacy losses of all releasable parts on small domains, against their claims.

``make losses`` writes docs/results/privacy-loss.md. What is covered is read from the package's own
registries and from the conformance kits. So ``test_losses.py`` tries a new strategy, operator or
mechanism as soon as it is registered, and the page has it once ``make losses`` was run.

    python -m privacy.losses           writes the page
    python -m privacy.losses --check   tells whether the page names all that is registered
"""

import itertools
import re
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from leastnoise._domain import Bins, Coded, Domain, Integers, Measure, PerCellBound
from leastnoise._fitting import fit_noise_scales, gaussian_mu_squared
from leastnoise._mechanisms import BY_NAME, Search, mechanism_for, mechanism_of, release_contract
from leastnoise._plan import without_guard
from leastnoise._session import guard_measurements
from leastnoise._strategies import PLANNERS, NotApplicable, PlanningProblem
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, UnpaidSeries
from leastnoise._trusted.linop import (
    AllRanges,
    Coarse,
    Contrasts,
    Dense,
    DiagonalAndRows,
    Haar,
    Identity,
    Nested,
    Operator,
    Ordered,
    Prefix,
    Ranges,
    Toeplitz,
    Total,
    Tree,
)
from leastnoise._trusted.linop import operator_classes as classes_of_operators
from leastnoise._trusted.measurements import Block, Factor, Limits, Measurements
from leastnoise._trusted.table import Table
from leastnoise._workload import Workload, marginals, queries
from mechanisms.conformance import ROWS
from trusted.kernel.choice_losses import COSTS, EPSILON, loss_of_cost
from trusted.linop.conformance import CASES
from trusted.measurements.brute import claimed, units_of, worst

LEAST = 0.9  # below this share of the claim a reason is written down
PAGE = Path(__file__).parents[2] / "docs" / "results" / "privacy-loss.md"
DELTA = "1/1000000"
# Budget and noise: the claim is the budget's own number, epsilon, mu squared or rho.
KINDS: dict[str, tuple[Budget, str]] = {
    "epsilon, Laplace": (PureDP(1), Noise.DISCRETE_LAPLACE),
    "(epsilon, delta), Gaussian": (ApproxDP(1, DELTA), Noise.ROUNDED_GAUSSIAN),
    "(epsilon, delta), Laplace": (ApproxDP(1, DELTA), Noise.DISCRETE_LAPLACE),
    "rho, Gaussian": (ZCDP("1/2"), Noise.DISCRETE_GAUSSIAN),
}
LETTERS = "EGLR"  # of the budgets on the page
UNITS = [(neighbours, rows) for neighbours in ("add_remove", "replace") for rows in (1, 2, 3)]

MEASURES = {"pay": Measure("pay", -2, 3), "tips": Measure("tips", 0, 4)}
# Brute force compares three rows with the three rows that replace them.
DOMAIN = Domain(a=Coded(2), b=Integers(0, 3), measures=MEASURES)
WIDE = Domain(a=Coded(3), b=Integers(0, 3), c=Coded(2))
LONG = Domain(b=Integers(0, 7))
WORKLOADS: dict[str, Workload] = {
    "cells and prefix sums": marginals(DOMAIN, upto=2) + queries(DOMAIN, b="prefix", weight=2),
    "pairs and prefix sums": marginals(WIDE, ways=2) + queries(WIDE, b="prefix", weight=2),
    "pairs": marginals(WIDE, ways=2),
    "ranges": queries(LONG, b="all_ranges"),
    "sums": marginals(DOMAIN, upto=2, sum="tips") + queries(DOMAIN, a="identity"),
}
# These strategies support none of the workloads above.
OTHER_WORKLOADS: dict[str, dict[str, Workload]] = {
    "window_root": {
        "ranges of three cells": queries(LONG, b={"ranges": [[low, low + 2] for low in range(6)]})
    }
}


@dataclass(frozen=True)
class Row:
    """The largest loss over all neighbours as a share of the claim, by unit.

    It belongs to one part that can be released, under a budget of ``KINDS``. Units that brute force
    cannot reach are left out.
    """

    kind: str
    name: str
    budget: str
    claim: float
    ratios: dict[tuple[str, int], float]

    @property
    def reason(self):
        """Return why the loss is below 0.9 of the claim, or an empty text."""
        return REASONS.get((self.kind, self.name.partition(":")[0]), "")


_MEET = (
    "the rows of a unit are in different cells; with only four cells two units share some of "
    "them, where less than both is left"
)
_SIGNS = (
    "replaced rows are bounded separately for each character, as if no two rows had a sign in "
    "common, but every two rows do"
)
_UNEVEN = (
    "two blocks on one attribute, one of them with uneven row weights, are each bounded by their "
    "own worst pair of cells"
)
_LIMITS = "replaced rows are bounded as if both were in the cell with the largest limit"
# Why less is lost than is claimed, for rows with a ratio below 0.9.
REASONS: dict[tuple[str, ...], str] = {
    ("strategy", "fourier"): _SIGNS,
    ("strategy", "fourier_even"): _SIGNS,
    ("operator", "Identity"): _UNEVEN,
    ("operator", "Ranges"): _UNEVEN,
    ("sums", "limits by cell"): _LIMITS,
    ("sums", "counts and limited sums"): _LIMITS,
    (
        "choice",
        "LeastCost",
    ): "the noise is for a change of the least cost by one record a row of the unit; rows "
    "replaced in four cells change it less",
    ("bound", "max_per_cell, cells"): _MEET,
    ("bound", "max_per_cell, tree"): _MEET,
    (
        "bound",
        "max_per_cell, contrasts",
    ): "as for cells; in addition, the bound for contrasts holds for any number of them, and few "
    "contrasts do not attain it",
}


def claim_of(budget, noise):
    if isinstance(budget, ZCDP):
        return 2 * budget.rho if noise == Noise.ROUNDED_GAUSSIAN else budget.rho
    return (
        budget.epsilon
        if noise == Noise.DISCRETE_LAPLACE
        else gaussian_mu_squared(budget.epsilon, budget.delta)
    )


def in_measure(plan, squared):
    """Return a loss in the measure of the noise: epsilon, mu squared, or rho."""
    return squared / 2 if plan.noise == Noise.DISCRETE_GAUSSIAN else squared


def loss(plan):
    """Return the largest loss over all pairs of neighbours, or None if there are too many."""
    units = units_of(plan)
    if plan.privacy.neighbours == "replace" and len(units) ** 2 * units.shape[1] > 2**25:
        return None
    return in_measure(plan, worst(plan, units))


def privacy_of(budget, neighbours, rows, bound=None):
    return Privacy(budget, neighbours, "id" if rows > 1 or bound else None, rows, bound)


def _row(kind, name, budget, domain, blocks, units, bound=None):
    declared, noise = KINDS[budget]
    claim = float(claim_of(declared, noise))
    ratios = {}
    for unit in units:
        plan = fit_noise_scales(domain, privacy_of(declared, *unit, bound), noise, blocks)
        assert in_measure(plan, claimed(plan)) <= claim
        largest_loss = loss(plan)
        if largest_loss is not None:
            ratios[unit] = largest_loss / claim
    return Row(kind, name, budget, claim, ratios)


def strategies(units=UNITS, names=PLANNERS):
    """Yield the rows of all planners, on the first workloads that each supports."""
    for name, (budget, (declared, noise)) in itertools.product(names, KINDS.items()):
        for label, workload in {**WORKLOADS, **OTHER_WORKLOADS.get(name, {})}.items():
            try:
                proposal = PLANNERS[name].strategy(
                    PlanningProblem(workload, Privacy(declared), noise)
                )
            except NotApplicable:
                continue
            yield _row(
                "strategy", f"{name}: {label}", budget, workload.domain, proposal.blocks, units
            )


# One of each class, over four cells. A class that is not here is tried as the conformance kit of
# operators has it.
_OPERATORS: dict[str, Operator] = {
    type(operator).__name__: operator
    for operator in (
        Identity(4),
        Total(4),
        Prefix(4),
        AllRanges(4),
        Ranges(4, np.array([0, 2]), np.array([2, 3])),
        Tree.full(4, 2),
        Dense(np.array([[3, 1, 0, -1], [0, -2, 1, 5]])),
        DiagonalAndRows(np.array([1, 2, 3, 4]), np.array([[1, -1, 2, 0]])),
        Haar(4),
        Contrasts(4),
        Coarse(Prefix(3), np.array([0, 1, 3]), 4),
        Ordered(Prefix(4), np.array([2, 0, 3, 1])),
        Nested(
            DiagonalAndRows(np.array([1, 2]), np.array([[2, 1]])),
            Identity(2),
            Dense(np.array([[1, -2]])),
        ),
        Toeplitz(np.array([0, 1, 3]), np.array([3, 2, -1]), np.array([1, 2, 1, 4])),
    )
}
# Those of the package: other tests of the same run make operators of their own.
CLASSES = {
    class_.__name__
    for class_ in classes_of_operators()
    if class_.__module__.startswith("leastnoise.")
}


def operator_examples():
    """Return one operator of each class, by the name of the class."""
    examples = dict(_OPERATORS)
    for case in sorted(CASES, key=lambda case: case.operator.size):
        if case.operator.size > 1:
            examples.setdefault(type(case.operator).__name__, case.operator)
    return examples


def operators(units=UNITS):
    """Yield the rows of every operator: only it, with row weights, and next to the cells."""
    for (name, operator), (budget, (_, noise)) in itertools.product(
        operator_examples().items(), KINDS.items()
    ):
        domain = Domain(a=Coded(2), b=Coded(operator.size))
        if isinstance(operator, Contrasts) and noise == Noise.DISCRETE_LAPLACE:
            continue
        weights = None if isinstance(operator, Contrasts) else np.arange(operator.rows) % 3 + 1
        of_b = Factor(("b",), operator, weights)
        cells = Factor(("a",), Identity(2))
        by_group = [
            (Block((cells, of_b), Fraction(1)), 1.0),
            (Block((Factor(("b",), Identity(operator.size)),), Fraction(1)), 0.7),
        ]
        for label, blocks in (
            ("alone", [(Block((of_b,), Fraction(1)), 1.0)]),
            ("by group, and the cells", by_group),
        ):
            yield _row("operator", f"{name}: {label}", budget, domain, blocks, units)


def sums(units=UNITS):
    """Yield the rows of sums with and without limits and contrasts, next to counts."""
    a = Factor(("a",), Identity(2))
    b = Factor(("b",), Identity(4))
    prefix = Factor(("b",), Prefix(4), np.array([1, 3, 2, 1]))
    steps = Limits(np.array([1, 2, 4, 3]), "b")
    cut_at_3 = Limits(np.array([3]))
    cases: dict[str, list[tuple[Block, float]]] = {
        "sums from 0": [(Block((b,), Fraction(1), "tips"), 1.0)],
        "sums of both signs": [(Block((b,), Fraction(1), "pay"), 1.0)],
        "one limit": [(Block((a,), Fraction(1), "tips", cut_at_3), 1.0)],
        "limits by cell": [(Block((b,), Fraction(1), "tips", steps), 1.0)],
        "limits by a cell that is summed over": [(Block((a,), Fraction(1), "tips", steps), 1.0)],
        "counts and sums": [
            (Block((a, b), Fraction(1)), 1.0),
            (Block((b,), Fraction(1), "tips"), 0.5),
        ],
        "counts and limited sums": [
            (Block((a, b), Fraction(1)), 1.0),
            (Block((b,), Fraction(1), "tips", steps), 0.5),
        ],
        "two measures": [
            (Block((a,), Fraction(1), "pay"), 1.0),
            (Block((b,), Fraction(1), "tips"), 0.5),
        ],
        "both ends": [(Block((b,), Fraction(1), "pay", ends=True), 1.0)],
        "both ends of totals": [(Block((), Fraction(1), "pay", ends=True), 1.0)],
        "both ends and counts": [
            (Block((a, b), Fraction(1)), 1.0),
            (Block((prefix,), Fraction(1), "pay", ends=True), 0.3),
        ],
        "both ends of two measures": [
            (Block((a,), Fraction(1), "pay", ends=True), 1.0),
            (Block((b,), Fraction(1), "tips", ends=True), 1.0),
        ],
    }
    contrasts = [
        (Block((), Fraction(1), "tips"), 1.0),
        (Block((Factor(("b",), Contrasts(4)),), Fraction(1), "tips"), 0.5),
    ]
    for (name, blocks), (budget, (_, noise)) in itertools.product(
        {**cases, "contrasts of sums": contrasts}.items(), KINDS.items()
    ):
        if not (name == "contrasts of sums" and noise == Noise.DISCRETE_LAPLACE):
            yield _row("sums", name, budget, DOMAIN, blocks, units)


class _Recorder:
    """A series on made-up rows that records its steps."""

    def __init__(self, series):
        self.series = series
        self.steps = list[Any]()

    def __getattr__(self, name):
        return getattr(self.series, name)

    def choose(self, selection):
        self.steps.append(selection)
        return self.series.choose(selection)

    def choose_quantile_cells(self, selection):
        self.steps.append(selection)
        return self.series.choose_quantile_cells(selection)

    def measure(self, plan):
        self.steps.append(plan)
        return self.series.measure(plan)


PAID = Domain(pay=Bins(0, 40, 8, closed="right"), measures={"wages": Measure("pay", 0, 40)})
PLANE = Domain(a=Integers(0, 3), b=Integers(0, 3))
CUBE = Domain(a=["x", "y"], b=Integers(0, 7), c=Integers(0, 3))


def mechanisms(units=UNITS):
    """Yield the rows of every data-dependent mechanism, with the losses of a run.

    They are the exact losses of its measurements and the charges of its private choices together.
    The losses of the choices are tried over all neighbours in
    tests/trusted/kernel/test_selection_privacy.py.
    """
    for (name, workload), (budget, (declared, noise)) in itertools.product(
        mechanism_workloads(), KINDS.items()
    ):
        if budget == "(epsilon, delta), Laplace":
            continue
        ratios: dict[tuple[str, int], float] = {}
        claim = float(claim_of(declared, noise))
        for neighbours, rows in units:
            share = _run(name, workload, privacy_of(declared, neighbours, rows))
            if share is None:
                break
            ratios[neighbours, rows] = share
        if ratios:
            yield Row(
                "mechanism", f"{name}: {' by '.join(workload.domain.names)}", budget, claim, ratios
            )


def mechanism_workloads():
    """Yield the names and workloads of the mechanisms that look at the data."""
    for name in BY_NAME:
        if name == "truncated_sums":
            along = queries(PAID, pay="prefix", sum="wages")
            total = queries(PAID, sum="wages")
            yield from (
                (name, mechanism_workloads) for mechanism_workloads in (along, total, along + total)
            )
        elif name == "model":
            yield name, marginals(CUBE, ways=2)
        elif name in {"dawa", "dawa_levels"}:
            yield name, queries(LONG, b="prefix")
            yield name, queries(PLANE, a="prefix", b="prefix")
        else:
            workloads = dict.fromkeys(row.workload for row in ROWS if row.strategy == name)
            yield from ((name, workload) for workload in workloads)


def _run(name, workload, privacy):
    """Return the largest share of the budget that a run loses, or None if unsupported."""
    try:
        plan = mechanism_for(name, workload).plan(workload, privacy, Search(name))
    except InputError:
        return None
    domain = plan.domain
    generator = np.random.default_rng(3)
    codes = {
        attribute: generator.integers(0, domain.kind(attribute).size, 400)
        for attribute in domain.names
    }
    amounts = 5 * codes[domain.names[0]] + 1  # within the bin of the cell
    values = dict.fromkeys(domain.measures, amounts)
    table = Table(domain, codes, values, unit_column=privacy.unit_column, max_rows=privacy.max_rows)
    series = _Recorder(UnpaidSeries(release_contract(plan), table, SeededEntropy(7)))
    mechanism_of(plan).prepare(plan)(series)
    return sum(_share(step, privacy) for step in series.steps)


def _share(step, privacy):
    """Return a step's largest share of the budget: of epsilon, epsilon and delta, or rho."""
    budget = privacy.budget
    if isinstance(step, Measurements):
        step_budget = step.privacy.budget
        step_loss = loss(step)
        ratio = 1.0 if step_loss is None else step_loss / float(claim_of(step_budget, step.noise))
        assert ratio <= 1 + 1e-9
        # Under (epsilon, delta), Gaussian steps divide half of mu squared among them.
        if isinstance(step_budget, ZCDP):
            return (
                float(
                    step_budget.rho
                    / (budget.rho if isinstance(budget, ZCDP) else claim_of(budget, step.noise) / 2)
                )
                * ratio
            )
        return float(step_budget.epsilon / budget.epsilon) * ratio
    if isinstance(budget, ZCDP):
        return float(step.epsilon**2 / 2 / budget.rho)
    return float(step.epsilon / budget.epsilon)


def guards(units=UNITS):
    """Yield the rows of the guard, which spends a share on rows read and rows used."""
    share = Fraction(1, 100)
    for budget, (declared, noise) in KINDS.items():
        if budget == "(epsilon, delta), Gaussian":  # its noise is Laplace
            continue
        budget_without_guard = without_guard(Privacy(declared), share).budget
        claim = claim_of(declared, noise) * share
        losses = {
            unit: loss(guard_measurements(privacy_of(budget_without_guard, *unit), share))
            for unit in units
        }
        yield Row(
            "guard",
            "guard",
            budget,
            float(claim),
            {
                unit: unit_loss / float(claim)
                for unit, unit_loss in losses.items()
                if unit_loss is not None
            },
        )


def bounds(units=UNITS):
    """Yield the rows of units with one row in each cell of an attribute, under Gaussian noise."""
    cells = {
        attribute: Factor((attribute,), Identity(DOMAIN.kind(attribute).size))
        for attribute in DOMAIN.names
    }
    across = {
        attribute: Factor((attribute,), Contrasts(DOMAIN.kind(attribute).size))
        for attribute in DOMAIN.names
    }
    together = {
        "cells": [(cells["b"],), (cells["a"], cells["b"]), (cells["a"],)],
        "contrasts": [(), (across["a"],), (across["b"],), (across["a"], across["b"])],
        "tree": [(Factor(("a",), Tree.full(2, 2)), cells["b"])],
    }
    at_ends = {
        "both ends": [(cells["b"],), (cells["a"],)],
        "both ends of totals": [(), (cells["b"],)],
    }
    cases = [*together.items(), *at_ends.items()]
    for (name, measured), budget in itertools.product(
        cases, ("rho, Gaussian", "(epsilon, delta), Gaussian")
    ):
        end = {"measure": "pay", "ends": True} if name in at_ends else {}
        blocks = [(Block(factors, Fraction(1), **end), 1.0) for factors in measured]
        yield _row(
            "bound", f"max_per_cell, {name}", budget, DOMAIN, blocks, units, PerCellBound(1, "b")
        )


def choices(units=UNITS):
    """Yield the row of the private choice, over all neighbours of tables of four cells."""
    ratios = {
        unit: max(float(loss_of_cost(way, *unit)) for way in COSTS.values()) / float(EPSILON)
        for unit in units
    }
    yield Row("choice", "LeastCost", "epsilon, Laplace", float(EPSILON), ratios)


def rows():
    """Return the whole table; this takes some minutes."""
    return [*strategies(), *operators(), *sums(), *guards(), *mechanisms(), *bounds(), *choices()]


HEAD = """# Exact privacy losses

**In short:** no release loses more than its manifest states, in any case that brute force can
enumerate; most lose exactly that.

This page lists everything that can be released, on small domains: the exact loss over **all** pairs
of neighbouring tables, as a share of the declared budget. Units of one, two and three rows are
added, removed, replaced by others, or replaced by rows outside the domain. A share of 1 means that
no noise is wasted; no share is above 1. Budgets: E is epsilon with Laplace noise, G and L are
(epsilon, delta) with Gaussian and Laplace noise, R is rho with Gaussian noise.

`make losses` (`tests/privacy/losses.py`) writes this page in some minutes. The test suite also
tests all strategies, operators, mechanisms and choices, including those that are not yet on this
page, with fewer sizes of units, and compares its figures with this page.

For linear measurements the loss is the largest `sum_i |d_i| / s_i` (epsilon) or
`sum_i d_i^2 / s_i^2` (mu squared; half of it is rho) over all differences `d` of up to k rows. For
mechanisms it is the sum over the steps of one run: exact for measurements, the charge for choices.
The private choice is in the last row, over all neighbours of some tables of four cells. If a case
has several workloads, the page shows the smallest share. Units of three rows are omitted if they
have too many pairs. A single number means that all three sizes have this share; names with the same
shares are in one row.

| kind | what | budgets | +-1, 2, 3 | replace 1, 2, 3 | why below 0.9 |
|---|---|---|---|---|---|
"""


def page(table_rows):
    """Return the page; names with the same shares under the same budgets share a line."""
    rows_of: dict[tuple[str, str, str], list[Row]] = {}
    for row in table_rows:
        rows_of.setdefault((row.kind, row.name.partition(":")[0], row.budget), []).append(row)
    budgets: dict[tuple[str, str, str, str], str] = {}  # by kind, name, shares and reason
    for (kind, name, budget), rows in rows_of.items():
        shares = [[row.ratios[unit] for row in rows if unit in row.ratios] for unit in UNITS]
        least = [f"{min(share):.3f}" if share else "" for share in shares]
        cells = " | ".join(_triple(least[start : start + 3]) for start in (0, 3))
        key = (
            kind,
            name,
            cells,
            next((row.reason for row in rows if min(row.ratios.values()) < LEAST), ""),
        )
        budgets[key] = budgets.get(key, "") + LETTERS[list(KINDS).index(budget)]
    names: dict[tuple[str, str, str, str], list[str]] = {}
    for (kind, name, cells, reason), letters in budgets.items():
        names.setdefault((kind, letters, cells, reason), []).append(f"`{name}`")
    reasons = sorted({reason for *_, reason in names if reason})
    marks = {"": "", **{reason: chr(ord("a") + place) for place, reason in enumerate(reasons)}}
    lines = [
        f"| {kind} | {', '.join(alike)} | {letters} | {cells} | {marks[reason]} |"
        for (kind, letters, cells, reason), alike in names.items()
    ]
    return (
        HEAD
        + "\n".join([*lines, "", *(f"- **{marks[reason]}**: {reason}" for reason in reasons)])
        + "\n"
    )


def _triple(shares):
    """Return the shares of units of one, two and three rows, or one number if equal."""
    return shares[0] if len(set(shares)) == 1 else ", ".join(filter(None, shares))


class Line(NamedTuple):
    """A line of the page: one name and one budget, with the shares as texts by unit."""

    kind: str
    name: str
    budget: str
    shares: dict[tuple[str, int], str]
    reason: str


def lines_of(text):
    """Read the rows of the page.

    Args:
        text: of the page.
    """
    reasons = dict(re.findall(r"^- \*\*(\w)\*\*: (.+)$", text, flags=re.MULTILINE))
    lines = []
    for row in re.findall(
        r"^\| (\w+) \| `(.*)` \| (\w+) \| (.*) \| (.*) \|(.*)\|$", text, re.MULTILINE
    ):
        kind, names, letters, added, replaced, mark = row
        shares: dict[tuple[str, int], str] = {}
        for neighbours, cell in (("add_remove", added), ("replace", replaced)):
            numbers = cell.split(", ") if ", " in cell else [cell] * 3
            shares |= {(neighbours, rows): share for rows, share in enumerate(numbers, 1)}
        reason = reasons.get(mark.strip(), "")
        for name, letter in itertools.product(names.split("`, `"), letters):
            budget = list(KINDS)[LETTERS.index(letter)]
            lines.append(Line(kind, name, budget, shares, reason))
    return lines


# The noise of its tables is not independent, as this page assumes: its losses are computed from the
# law of the whole group in tests/trusted/kernel/test_k_norm_privacy.py.
TRIED_ELSEWHERE = {"k_norm"}


def registered():
    """Return the names of all strategies, operators and mechanisms, by kind."""
    strategies_here = {*PLANNERS} - TRIED_ELSEWHERE
    return {"strategy": strategies_here, "operator": CLASSES, "mechanism": set(BY_NAME)}


def missing(lines):
    """Return the registered names that are not on the page."""
    listed = {(line.kind, line.name) for line in lines}
    return [
        f"{kind} {name}"
        for kind, names in registered().items()
        for name in sorted(names)
        if (kind, name) not in listed
    ]


if __name__ == "__main__":
    if "--check" not in sys.argv:
        PAGE.write_text(page(rows()), encoding="utf-8")
    elif names_missing := missing(lines_of(PAGE.read_text(encoding="utf-8"))):
        raise SystemExit(f"{PAGE.name} lacks {', '.join(names_missing)}; run `make losses`")
