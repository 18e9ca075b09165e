"""The kernel's privacy loss by brute force, with the scales of its own samplers."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Coded, Domain, Integers, Measure
from leastnoise._fitting import fit_noise_scales
from leastnoise._trusted.accounting import (
    ZCDP,
    ApproxDP,
    Budget,
    GaussianCost,
    Noise,
    Privacy,
    PureDP,
    covers,
)
from leastnoise._trusted.kernel import (
    Ledger,
    SeededEntropy,
    Series,
    SystemEntropy,
    UnpaidSeries,
    _measurement,
    simulate,
)
from leastnoise._trusted.linop import AllRanges, Contrasts, Dense, Identity, Prefix, Tree, dense
from leastnoise._trusted.measurements import Block, Factor, Limits, Measurements, cost, row_scales
from leastnoise._trusted.table import Table
from trusted.kernel.series import many_steps, measure

DOMAIN = Domain(a=["x", "y"], b=Integers(0, 2), measures={"pay": Measure("pay", -2, 3)})
CELLS = list(itertools.product(range(2), range(3)))
BUDGETS: list[tuple[Budget, str]] = [
    (PureDP("1/2"), Noise.DISCRETE_LAPLACE),
    (ZCDP("1/8"), Noise.DISCRETE_GAUSSIAN),
    (ApproxDP(1, "1e-6"), Noise.ROUNDED_GAUSSIAN),
]
TREE = Factor(("b",), Tree.full(3, 2), np.array([3, 2, 1, 1, 5, 4]))
STEPS = Limits([1, 3, 2], "b")
COUNTS = [
    (Block((Factor(("a",), Identity(2)), TREE), Fraction(1)), 1.0),
    (Block((Factor(("b",), Dense([[1, -2, 0], [0, 1, 1]])),), Fraction(1)), 0.7),
    (Block((), Fraction(1)), 0.4),
]
SUMS = [
    (Block((Factor(("a",), Prefix(2)),), Fraction(1), "pay"), 1.0),
    (Block((TREE,), Fraction(1), "pay", STEPS), 0.3),
]
CONTRASTS = [
    (Block((Factor(("a",), Contrasts(2)), Factor(("b",), Contrasts(3))), Fraction(1)), 1.0),
    (Block((), Fraction(1)), 0.3),
]
MOSTLY_TOTAL = [
    (Block((Factor(("b",), Contrasts(3)),), Fraction(1)), 0.1),
    (Block((), Fraction(1)), 4.0),
]
MIXED = [*COUNTS, *SUMS, *CONTRASTS]
# They differ in attributes, weights, scales, measures, limits or ends alone, and some are there
# twice.
ALONG = (Factor(("b",), Prefix(3)),)
NEARLY_ALIKE = [
    *(
        Block((Factor((name,), Prefix(DOMAIN.cells(name)), weights),), 1)
        for name, weights in (("b", None), ("b", [1, 2, 5]), ("a", [1, 2]))
    ),
    *(Block(ALONG, scale, measure) for scale, measure in ((2, None), (1, "pay"), (1, None))),
    *(Block(ALONG, 1, "pay", **options) for options in ({"ends": True}, {"limits": Limits([1])})),
    *[Block((Factor(("b",), Identity(3)),), 1)] * 2,
    *[Block((), 1)] * 2,
]


class Spy:
    """Replaces the samplers and records scale and source; draws 0, or 1000, 1001, ..."""

    scales: list[Fraction]
    sources: list[object]
    silent = False

    def forget(self):
        self.scales = []
        self.sources = []

    def __call__(self, numerators, denominators, count, entropy):
        tops, bottoms = (
            np.broadcast_to(np.asarray(numbers), (count,)).tolist()
            for numbers in (numerators, denominators)
        )
        first_draw = 1000 + len(self.scales)
        self.scales += [Fraction(top, bottom) for top, bottom in zip(tops, bottoms, strict=True)]
        self.sources += [entropy] * count
        return (
            np.zeros(count, dtype=np.int64)
            if self.silent
            else np.arange(first_draw, first_draw + count, dtype=np.int64)
        )


@pytest.fixture
def spy(monkeypatch):
    """Record the arguments of all samplers."""
    recorder = Spy()
    recorder.forget()
    for name in _measurement.SAMPLERS:
        monkeypatch.setitem(_measurement.SAMPLERS, name, recorder)
    return recorder


def people(rows, pay=None, **unit):
    """Return a table of rows (a, b) with these amounts of pay."""
    amounts = [0] * len(rows) if pay is None else pay
    return Table(
        DOMAIN, {"a": [a for a, _ in rows], "b": [b for _, b in rows]}, {"pay": amounts}, **unit
    )


def fitted(budget, mechanism, blocks, **privacy):
    return fit_noise_scales(DOMAIN, Privacy(budget, **privacy), mechanism, blocks)


def exact_answers(block, rows, pay):
    """Return the answers by definition, row by row; distances from the low end come first."""
    total = np.zeros(block.rows, dtype=np.int64)
    for (a, b), amount in zip(rows, pay, strict=True):
        value = 1 if block.measure is None else amount
        if block.limits is not None:
            value = min(
                value,
                int(block.limits.values[{"a": a, "b": b}.get(str(block.limits.attribute), 0)]),
            )
        column = np.array([value + 2, 3 - value] if block.ends else [value])
        for factor in block.factors:
            column = np.kron(
                column,
                dense(factor.operator)[:, {"a": a, "b": b}[factor.attributes[0]]].astype(np.int64),
            )
        total += column
    return total


def exact_squares(block, grid):
    """Return the squared scale of each row by definition.

    It is the square of the block's scale over the row weights, times the norms of contrasts.
    """
    squares = [Fraction(1)] * (2 if block.ends else 1)
    for factor in block.factors:
        if isinstance(factor.operator, Contrasts):
            factor_squares = [Fraction(k * (k + 1)) for k in range(1, factor.operator.size)]
        else:
            factor_squares = [Fraction(1, int(weight) ** 2) for weight in factor.weights]
        squares = [square * factor_square for square in squares for factor_square in factor_squares]
    return [square * (block.scale * grid) ** 2 for square in squares]


ROWS = [(0, 0), (0, 2), (1, 1), (1, 1), (1, 2), (0, 0)]
PAY = [3, -2, 0, 1, 2, 3]


def observe(kind_of_release, plan, folder):
    """Return the observation of a release that is simulated, paid, or a step of a series."""
    table = people(ROWS, PAY)
    if kind_of_release == "simulated":
        return simulate(plan, table, SeededEntropy(1))
    contract = many_steps(DOMAIN, plan.privacy)
    if kind_of_release == "a step of a simulated series":
        return UnpaidSeries(contract, table, SeededEntropy(1)).measure(plan)
    ledger = Ledger.create(folder / "people.ledger", "people", plan.privacy)
    if kind_of_release == "paid":
        return measure(plan, table, ledger, output="out")[0]
    series = Series.paid(contract, table, ledger, output="out")
    if kind_of_release == "a step of a resumed series":
        assert series.receipt is not None
        series = Series.resumed(contract, table, ledger, series.receipt)
    return series.measure(plan)


def plan_of_scales(budget, mechanism):
    """Return a plan with blocks of many scales, some of them nearly equal."""
    if mechanism != Noise.DISCRETE_LAPLACE:
        return fitted(budget, mechanism, MIXED)
    plan = fitted(budget, mechanism, [*COUNTS, *SUMS])
    blocks = (*plan.blocks, *NEARLY_ALIKE)
    return replace(plan, privacy=Privacy(PureDP(999)), blocks=blocks, grid=2)


@pytest.mark.parametrize(
    "kind_of_release",
    [
        "paid",
        "simulated",
        "a step of a paid series",
        "a step of a resumed series",
        "a step of a simulated series",
    ],
)
@pytest.mark.parametrize(("budget", "mechanism"), BUDGETS)
def test_row_is_exact_answer_plus_one_draw(
    spy, tmp_path, monkeypatch, kind_of_release, budget, mechanism
):
    """Each draw is used once, by the row whose scale it has, in small and large batches."""
    plan = plan_of_scales(budget, mechanism)
    source_type = SeededEntropy if "simulated" in kind_of_release else SystemEntropy
    for batch in (1, 4, 7, 20, 2**18):
        spy.forget()
        monkeypatch.setattr(_measurement, "_BATCH_ROWS", batch)
        folder = tmp_path / str(batch)
        folder.mkdir()
        observation = observe(kind_of_release, plan, folder)
        assert all(isinstance(source, source_type) for source in spy.sources)
        all_draws: list[int] = []
        for block, values in zip(plan.blocks, observation.values, strict=True):
            draws = (values - exact_answers(block, ROWS, PAY) * plan.grid - 1000).tolist()
            assert all(0 <= draw < len(spy.scales) for draw in draws)
            scales = [spy.scales[draw] for draw in draws]
            numerators, denominators = (parts.tolist() for parts in row_scales(block, plan.grid))
            assert scales == list(map(Fraction, numerators, denominators))
            # Scales of contrasts are irrational, and rounded up.
            has_contrasts = any(isinstance(factor.operator, Contrasts) for factor in block.factors)
            rounding = Fraction(1, 2**22) if has_contrasts else 0
            for scale, square in zip(scales, exact_squares(block, plan.grid), strict=True):
                assert square <= scale**2 <= square * (1 + rounding)
            all_draws += draws
        assert sorted(all_draws) == list(range(len(spy.scales)))


@pytest.mark.parametrize(
    ("operator", "names"),
    [(AllRanges(8), "abcd"), (Identity(8), "aaaa"), (Identity(8), "abcd")],
    ids=["queries", "copies", "cells"],
)
def test_batch_limits_tables_answered_at_once(monkeypatch, operator, names):
    monkeypatch.setattr(_measurement, "_BATCH_ROWS", 16)
    domain = Domain(a=Coded(8), b=Coded(8), c=Coded(8), d=Coded(8))
    blocks = tuple(Block((Factor((name,), operator),), Fraction(1)) for name in names)
    plan = Measurements(
        domain=domain, privacy=Privacy(PureDP(99)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    )
    applied = _measurement.apply
    tables = []

    def watched(of, cells):
        tables.append(cells.size // of.size)
        return applied(of, cells)

    monkeypatch.setattr(_measurement, "apply", watched)
    values = simulate(
        plan, Table(domain, {name: np.arange(8) for name in "abcd"}), SeededEntropy(1)
    ).values

    assert [len(table_values) for table_values in values] == [operator.rows] * 4
    assert tables == [max(1, 16 // operator.rows)] * (4 // max(1, 16 // operator.rows))


def units(most, amounts):
    """Return all that a unit of up to ``most`` rows can add; the first one adds nothing."""
    rows = [(cell, pay) for cell in CELLS for pay in amounts]
    for number in range(most + 1):
        for chosen in itertools.combinations_with_replacement(rows, number):
            yield [cell for cell, _ in chosen], [pay for _, pay in chosen]


# The contributions of units, for all budgets: answers without noise do not depend on scales.
KNOWN: dict[object, np.ndarray] = {}


def answers_of_units(plan, spy, amounts):
    """Return the kernel's noiseless answers to each unit's rows added to fixed rows."""
    unit = {"unit_column": plan.privacy.unit_column, "max_rows": plan.privacy.max_rows}
    key = (
        *(replace(block, scale=Fraction(1)) for block in plan.blocks),
        plan.grid,
        plan.privacy.max_rows,
        amounts,
    )
    if key not in KNOWN:
        spy.silent = True
        tables = (
            people(ROWS + cells, PAY + pay, **unit)
            for cells, pay in units(plan.privacy.max_rows, amounts)
        )
        KNOWN[key] = np.array(
            [
                np.concatenate(simulate(plan, table, SeededEntropy(1)).values).tolist()
                for table in tables
            ]
        )
    return KNOWN[key]


def worst_loss(plan, spy, amounts):
    """Return the largest sum of |change| / scale, or of its squares, over all neighbours.

    Under replace a unit's rows are exchanged for those of any other unit. The scales are those that
    the kernel passed to its sampler.
    """
    answers = answers_of_units(plan, spy, amounts)
    spy.forget()
    spy.silent = False
    nobody = people([], unit_column=plan.privacy.unit_column, max_rows=plan.privacy.max_rows)
    draw_numbers = np.concatenate(
        [values.tolist() for values in simulate(plan, nobody, SeededEntropy(1)).values]
    )
    scales = [spy.scales[draw - 1000] for draw in draw_numbers.tolist()]
    power = plan.noise.norm
    table = answers / np.array([float(scale) for scale in scales])
    bases = [0] if plan.privacy.neighbours == "add_remove" else range(len(table))
    losses = {base: (np.abs(table - table[base]) ** power).sum(axis=1) for base in bases}
    base = max(losses, key=lambda place: losses[place].max())
    change = (answers[int(losses[base].argmax())] - answers[base]).tolist()
    return sum(
        (Fraction(abs(difference)) / scale) ** power
        for difference, scale in zip(change, scales, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(
    ("budget", "mechanism", "rows"),
    # Units of three rows are tested with one kind of Gaussian noise, because their changes are the
    # same with the other.
    [
        (*budget_and_noise, rows)
        for budget_and_noise, most in zip(BUDGETS, (3, 3, 2), strict=True)
        for rows in range(1, most + 1)
    ],
)
def test_neighbours_lose_at_most_the_budget(spy, budget, mechanism, neighbours, rows):
    """Cover signed and weighted queries, sums of both signs, limited sums, and contrasts."""
    unit = {"unit_column": "id", "max_rows": rows} if rows > 1 else {}
    # Units of three rows have only the largest amount, because there would be 455 units otherwise.
    sums = (3,) if rows == 3 else (-2, 3)
    for blocks, amounts in ((COUNTS, (0,)), (SUMS, sums), (CONTRASTS, (0,)), (MOSTLY_TOTAL, (0,))):
        if mechanism == Noise.DISCRETE_LAPLACE and blocks in (CONTRASTS, MOSTLY_TOTAL):
            continue
        plan = fitted(budget, mechanism, blocks, neighbours=neighbours, **unit)
        worst = worst_loss(plan, spy, amounts)
        if isinstance(budget, PureDP):
            assert worst <= budget.epsilon
        elif isinstance(budget, ZCDP):
            assert worst / 2 <= budget.rho
        else:
            assert covers(budget, GaussianCost(worst))
        # The claim needs its condition: a unit whose rows are all in one cell violates it.
        if neighbours == "add_remove" and blocks == COUNTS:
            assert cost(plan) == plan.noise.cost(worst)
