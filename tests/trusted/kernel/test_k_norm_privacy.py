"""Groups with K-norm noise: their cost by brute force, refusals, and draws."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Domain, Integers, Measure
from leastnoise._fitting import fit_noise_scales
from leastnoise._plan import measurements_from_value
from leastnoise._trusted.accounting import (
    ZCDP,
    ApproxDP,
    ConcentratedCost,
    Noise,
    Privacy,
    PureCost,
    PureDP,
)
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.kernel import Ledger, SeededEntropy, Series, _measurement, simulate
from leastnoise._trusted.kernel._periods import check_drawable_by_period
from leastnoise._trusted.linop import Dense, Identity, Prefix, dense
from leastnoise._trusted.measurements import (
    Block,
    Factor,
    Limits,
    Measurements,
    cost,
    measurements_digest,
    measurements_value,
)
from leastnoise._trusted.table import Table
from trusted.kernel.series import contract_of_one_step, measure

DOMAIN = Domain(
    a=["x", "y"], b=Integers(0, 2), c=["p", "q"], measures={"pay": Measure("pay", 0, 3)}
)
PURE = Privacy(PureDP(1))


def cells(name, scale=Fraction(1), group=0, **options):
    size = DOMAIN.kind(name).size
    return Block((Factor((name,), Identity(size)),), Fraction(scale), k_norm_group=group, **options)


def groups(name, rows, scale=Fraction(1), group=0):
    return Block((Factor((name,), Dense(rows)),), Fraction(scale), k_norm_group=group)


def measurements_of(*blocks, privacy=PURE, noise=Noise.DISCRETE_LAPLACE):
    return Measurements(domain=DOMAIN, privacy=privacy, noise=noise, blocks=blocks)


def privacy_loss(plan, before, after):
    """Return the largest log ratio of the output probabilities of two tables of rows.

    The density of the noise is proportional to exp(-norm / scale), where the norm of a group is the
    largest sum of absolute values over its tables, so the ratio is largest where one noise is 0.
    The tables of a group must count the same rows: noise is drawn on the points with one total.
    """
    difference = {
        index: exact - dict(_measurement.exact_answers(plan, after))[index]
        for index, exact in _measurement.exact_answers(plan, before)
    }
    grouped = {index for group in plan.k_norm_groups().values() for index in group}
    total = Fraction(0)
    for group in plan.k_norm_groups().values():
        sums = [difference[index].sum() for index in group]
        assert len(set(sums)) == 1
        norm = max(int(np.abs(difference[index]).sum()) for index in group)
        total += norm / plan.blocks[group[0]].scale
    for index, block in enumerate(plan.blocks):
        if index not in grouped:
            total += int(np.abs(difference[index]).sum()) / block.scale
    return total


def table_of_rows(rows):
    """Return the table of rows (a, b, c); None for no rows."""
    columns = {name: [row[at] for row in rows] for at, name in enumerate(("a", "b", "c"))}
    return Table(DOMAIN, columns, values={"pay": [0] * len(rows)}) if rows else None


PLANS = [
    (cells("a"), cells("b"), cells("c")),
    (cells("a"), cells("b", 3, 1), cells("c", 3, 1)),
    (cells("a", 2), cells("b", 2), Block((Factor(("c",), Identity(2)),), Fraction(5))),
    (cells("a", 2), groups("b", [[1, 0, 1], [0, 1, 0]], 2), cells("c", 2)),
    (cells("b"), groups("b", [[1, 1, 0], [0, 0, 1]]), cells("a")),
    (cells("b", "3/2"), Block((), Fraction(4)), Block((Factor(("b",), Prefix(3)),), Fraction(7))),
]


@pytest.mark.parametrize("blocks", PLANS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_cost_is_at_least_the_loss_of_every_pair_of_neighbours(blocks, neighbours):
    plan = measurements_of(*blocks, privacy=Privacy(PureDP(50), neighbours))
    possible_rows = list(itertools.product(range(2), range(3), range(2)))
    base = [(0, 0, 0), (1, 2, 1)]
    largest = Fraction(0)
    for row in possible_rows:
        neighbouring_rows = (
            [[*base]]
            if neighbours == "add_remove"
            else [[*base, row_after] for row_after in possible_rows]
        )
        for rows_after in neighbouring_rows:
            largest = max(
                largest, privacy_loss(plan, table_of_rows([*base, row]), table_of_rows(rows_after))
            )
    assert 0.7 * cost(plan).epsilon < largest <= cost(plan).epsilon
    if all(block.k_norm_group is not None for block in blocks):
        assert largest == cost(plan).epsilon


PARTS = 420  # parts of a loss of 1, so that the inverse of every scale is a whole number of them


def answers_of_row(blocks, row):
    """Return what a row adds to the answers of all blocks."""
    codes = dict(zip("abc", row, strict=True))
    parts = []
    for block in blocks:
        if block.factors:
            (factor,) = block.factors
            parts.append(dense(factor.operator)[:, codes[factor.attributes[0]]])
        else:
            parts.append(np.ones(1, dtype=np.int64))
    return np.concatenate(parts)


def largest_loss(plan, changes):
    """Return the largest privacy loss over many changes of the answers, as `privacy_loss`."""
    ends = np.cumsum([block.rows for block in plan.blocks])
    parts = np.split(changes, ends[:-1], axis=1)
    norms = [np.abs(changes_of_block).sum(axis=1) for changes_of_block in parts]
    losses = np.zeros(len(changes), dtype=np.int64)
    grouped = set()
    for group in plan.k_norm_groups().values():
        grouped.update(group)
        for index in group:
            assert (parts[index].sum(axis=1) == parts[group[0]].sum(axis=1)).all()
        norm = np.max([norms[index] for index in group], axis=0)
        losses += norm * inverse_in_parts(plan.blocks[group[0]].scale)
    for index, block in enumerate(plan.blocks):
        if index not in grouped:
            losses += norms[index] * inverse_in_parts(block.scale)
    return Fraction(int(losses.max()), PARTS)


def inverse_in_parts(scale):
    """Return 1 / scale as a whole number of parts."""
    parts = PARTS / scale
    assert parts.denominator == 1
    return int(parts)


@pytest.mark.parametrize("blocks", PLANS)
@pytest.mark.parametrize(("neighbours", "most"), [("add_remove", 3), ("replace", 2)])
def test_cost_is_at_least_the_loss_of_every_unit_of_several_rows(blocks, neighbours, most):
    """Try all units of up to ``most`` rows, and under replace all pairs of units."""
    plan = measurements_of(*blocks, privacy=Privacy(PureDP(50), neighbours, "id", most))
    possible_rows = itertools.product(range(2), range(3), range(2))
    rows = [answers_of_row(blocks, row) for row in possible_rows]
    units = np.array(
        [
            sum(unit)
            for number in range(1, most + 1)
            for unit in itertools.combinations_with_replacement(rows, number)
        ]
    )
    no_row = np.zeros_like(units[:1])
    replacements = no_row if neighbours == "add_remove" else np.concatenate([no_row, units])
    changes = (units[:, None] - replacements).reshape(-1, units.shape[1])
    largest = largest_loss(plan, changes)
    assert 0.7 * cost(plan).epsilon < largest <= cost(plan).epsilon
    if all(block.k_norm_group is not None for block in blocks):
        assert largest == cost(plan).epsilon


def test_cost_of_several_rows_is_reached_by_equal_ones():
    privacy = Privacy(PureDP(50), "replace", "id", 3)
    plan = measurements_of(*PLANS[1], privacy=privacy)
    assert cost(plan) == PureCost(Fraction(6) + Fraction(2))
    assert cost(measurements_of(*PLANS[1], privacy=Privacy(PureDP(50), "add_remove", "id", 3))) == (
        PureCost(Fraction(3) + Fraction(1))
    )


@pytest.mark.parametrize(
    "block",
    [
        Block((Factor(("b",), Prefix(3)),), Fraction(1), k_norm_group=0),
        Block((Factor(("b",), Identity(3), np.array([1, 2, 1])),), Fraction(1), k_norm_group=0),
        Block((Factor(("a", "b"), Identity(6)),), Fraction(1), k_norm_group=0),
        Block((), Fraction(1), k_norm_group=0),
        groups("b", [[1, 1, 0], [0, 0, 0]]),
        groups("b", [[1, 1, 0], [0, 1, 1]]),
        groups("b", [[2, 1, 0], [-1, 0, 1]]),
        groups("b", [[2, 1, 0], [0, 0, 1]]),
        groups("b", [[1, -1, 0], [0, 0, 1]]),
        cells("b", measure="pay"),
        cells("b", measure="pay", limits=Limits([2])),
        cells("b", measure="pay", ends=True),
        cells("b", 2),
    ],
)
def test_other_blocks_than_cells_of_one_scale_are_refused(block):
    with pytest.raises(InputError):
        measurements_of(cells("a"), block)


@pytest.mark.parametrize(
    ("noise", "budget"),
    [(Noise.DISCRETE_GAUSSIAN, ZCDP(1)), (Noise.ROUNDED_GAUSSIAN, ApproxDP(1, "1e-6"))],
)
def test_other_noise_than_laplace_is_refused(noise, budget):
    with pytest.raises(InputError, match="k_norm_group"):
        measurements_of(cells("a"), privacy=Privacy(budget), noise=noise)


def test_grid_is_refused():
    with pytest.raises(InputError, match="k_norm_group"):
        Measurements(
            domain=DOMAIN, privacy=PURE, noise=Noise.DISCRETE_LAPLACE, blocks=(cells("a"),), grid=2
        )


@pytest.mark.parametrize(
    ("size", "message"),
    [(257, "cells of a table .* at most 256; got 257"), (256, "at most 1024; got 1280")],
)
def test_groups_of_too_many_cells_are_refused(size, message):
    domain = Domain({name: Integers(1, size) for name in "abcde"}).as_complete()
    blocks = tuple(
        Block((Factor((name,), Identity(size)),), Fraction(1), k_norm_group=0) for name in "abcde"
    )
    with pytest.raises(InputError, match=message):
        Measurements(domain=domain, privacy=PURE, noise=Noise.DISCRETE_LAPLACE, blocks=blocks)


@pytest.mark.parametrize("names", ["a", "ab"])
def test_cost_checks_the_blocks_of_a_group_again(names):
    plan = measurements_of(*(cells(name) for name in names))
    (factor,) = plan.blocks[-1].factors
    object.__setattr__(factor, "operator", Prefix(factor.operator.size))
    with pytest.raises(InputError, match="a block with a k_norm_group"):
        cost(plan)


def test_series_of_periods_refuse_groups():
    plan = measurements_of(cells("a"))
    with pytest.raises(InputError):
        check_drawable_by_period(plan, "a", "drop")


def test_pure_groups_meet_budgets_of_other_kinds():
    blocks = [(cells("a"), 1.0), (cells("b"), 1.0)]
    for budget in (ZCDP("1/8"), ApproxDP("1/2", "1e-9"), PureDP("1/2")):
        fitted = fit_noise_scales(DOMAIN, Privacy(budget), Noise.DISCRETE_LAPLACE, blocks)
        assert float(cost(fitted).epsilon) == pytest.approx(0.5, rel=1e-6)
    assert not isinstance(cost(fitted), ConcentratedCost)


def test_groups_survive_json_and_change_the_digest():
    plan = measurements_of(*PLANS[2])
    plan_from_json = measurements_from_value(measurements_value(plan))
    assert [block.k_norm_group for block in plan_from_json.blocks] == [0, 0, None]
    assert measurements_digest(plan_from_json) == measurements_digest(plan)
    independent = measurements_of(*(Block(b.factors, b.scale) for b in plan.blocks))
    assert measurements_digest(independent) != measurements_digest(plan)


@pytest.mark.parametrize("number", [-1, True, "0", 1.5])
def test_group_is_a_whole_number(number):
    with pytest.raises(InputError, match="k_norm_group"):
        cells("a", group=number)


def test_kernel_draws_each_group_with_one_total():
    blocks = *PLANS[1], Block((Factor(("a",), Identity(2)),), Fraction(2))
    plan = measurements_of(*blocks, privacy=Privacy(PureDP(2)))
    rows = table_of_rows([(0, 1, 1)] * 5 + [(1, 2, 0)] * 3)
    totals = []
    for seed in range(200):
        values = simulate(plan, rows, SeededEntropy(seed)).values
        assert values[1].sum() == values[2].sum()
        totals.append([int(value.sum()) for value in values])
    drawn_totals = np.array(totals)
    assert np.abs(drawn_totals.mean(axis=0) - 8).max() < 2
    # Groups and other blocks are independent.
    correlations = np.corrcoef(drawn_totals[:, [0, 1, 3]].T)
    assert np.abs(correlations - np.eye(3)).max() < 0.3


def test_resumed_series_repeats_the_drawn_group(tmp_path):
    plan = measurements_of(*PLANS[0])
    ledger = Ledger.create(tmp_path / "rows.ledger", "rows", Privacy(PureDP(2)))
    rows = table_of_rows([(0, 1, 1)] * 5 + [(1, 2, 0)] * 3)
    observed, receipt = measure(plan, rows, ledger, output="out")
    assert len({int(values.sum()) for values in observed.values}) == 1
    assert ledger.spent().epsilon == cost(plan).epsilon == 1
    repeated = Series.resumed(contract_of_one_step(plan), None, ledger, receipt).measure(plan)
    for block_values, repeated_values in zip(observed.values, repeated.values, strict=True):
        assert block_values.tolist() == repeated_values.tolist()


def test_group_tables_must_count_the_same_rows(monkeypatch):
    blocks = tuple(
        Block((Factor((name,), Identity(2)),), Fraction(1), k_norm_group=0) for name in ("a", "c")
    )
    measurements = Measurements(
        domain=DOMAIN, privacy=PURE, noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    )
    table = Table(DOMAIN, {"a": [0, 1], "c": [0, 1], "b": [0, 0]}, {"pay": [0, 0]})
    exact = [(0, np.array([1, 1])), (1, np.array([1, 0]))]
    monkeypatch.setattr(_measurement, "exact_answers", lambda *_: iter(exact))

    with pytest.raises(InternalError, match="count different rows"):
        _measurement.draw_answers(measurements, table, SeededEntropy(1))
