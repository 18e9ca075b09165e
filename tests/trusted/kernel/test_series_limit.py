"""Units with rows in all periods of a series: allowances, frozen counts, and costs."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import leastnoise as ln
from behind_the_wall import SAMPLERS, _periods
from leastnoise._domain import UnitCount, UnitTotal
from leastnoise._trusted.accounting import Noise, Privacy, parameters_by_name
from leastnoise._trusted.check import InputError, InternalError, LedgerError
from leastnoise._trusted.kernel import (
    Ledger,
    ReleaseContract,
    SeededEntropy,
    Series,
    UnpaidSeries,
    row_allowance,
)
from leastnoise._trusted.linop import Dense, Identity
from leastnoise._trusted.measurements import Block, Factor, Measurements, cost
from leastnoise._trusted.reading import read
from leastnoise._trusted.table import RowAllowance, Table, UsedRows, open_content, used_rows

PERIODS = 3
GROUPS = 2
DOMAIN = ln.Domain(
    month=list(range(PERIODS)),
    group=list(range(GROUPS)),
    measures={
        "people": UnitCount(["month", "group"]),
        "paid": UnitTotal("amount", 0, 3, by=["month", "group"]),
    },
)
# The amount of a row by its group: two rows of the first group are clipped, and totals of the
# second become 0.
AMOUNTS = (2, -1)
# The rows of a unit: its id, their period and their group.
Rows = Sequence[tuple[str, int, int]]


def plan_of(most, per_period, noise, operator, *measures):
    """Return a plan of counts along time, by group and in total, or of amounts of units."""
    bound = None if per_period is None else ln.PerCellBound(per_period, "month")
    budget = ln.PureDP(10**6) if noise is Noise.DISCRETE_LAPLACE else ln.ZCDP(10**6)
    privacy = Privacy(budget, unit_column="id", max_rows=most, max_per_cell=bound)
    by_group = (Factor(("month",), operator), Factor(("group",), Identity(GROUPS)))
    blocks = [Block(by_group, Fraction(7, 2)), Block(by_group[:1], Fraction(5))]
    blocks += [Block(by_group, Fraction(3), name) for name in measures]
    return Measurements(domain=DOMAIN, privacy=privacy, noise=noise, blocks=tuple(blocks))


def contract(plan):
    """Return the contract of a series that declares one step."""
    return ReleaseContract(
        domain=DOMAIN,
        privacy=plan.privacy,
        attributes=DOMAIN.names,
        measures=tuple(DOMAIN.measures),
        declared_step=plan,
        plan_text="a plan",
        along="month",
    )


def read_rows(plan, rows, allowance, source=pa.table):
    columns = [*zip(*rows, strict=True)] or [(), (), ()]
    arrow = pa.table(
        {
            "id": pa.array(columns[0], pa.string()),
            "month": pa.array(columns[1], pa.int64()),
            "group": pa.array(columns[2], pa.int64()),
            "amount": pa.array([AMOUNTS[group] for group in columns[2]], pa.int64()),
        }
    )
    unit = plan.privacy
    return read(
        arrow if source is pa.table else source(arrow),
        DOMAIN,
        unit_column="id",
        max_rows=unit.max_rows,
        max_per_cell=unit.max_per_cell,
        allowance=allowance,
    )


def allowance_after(plan, closed):
    """Return what a reading begins with once some periods are closed."""
    fresh = row_allowance(contract(plan), None, None, None)
    if fresh is None or closed.used is None:
        return fresh
    return type(fresh)("month", plan.privacy.max_rows, closed.used)


def tables_of(plan, stream):
    """Give the table of each closing, read as the series reads it."""
    closed = _periods.ClosedPeriods()
    for rows in stream:
        table = read_rows(plan, rows, allowance_after(plan, closed))
        yield table
        closed = _periods.close_period(plan, "month", "drop", table, closed, SeededEntropy(1))


def frozen_counts(plan, stream):
    """Return the frozen counts by period and group once all periods are closed."""
    closed = _periods.ClosedPeriods()
    for table in tables_of(plan, stream):
        closed = _periods.close_period(plan, "month", "drop", table, closed, SeededEntropy(1))
    counts: list[list[int]] = (
        closed.tables[None, ("month", "group")][0].reshape(PERIODS, GROUPS).tolist()
    )
    return counts


def totals(plan, stream):
    return [sum(groups) for groups in frozen_counts(plan, stream)]


@pytest.fixture
def quiet(monkeypatch):
    """Draw no noise, so that what a unit shifts is seen."""
    for noise in SAMPLERS:
        monkeypatch.setitem(
            SAMPLERS, noise, lambda top, _bottom, _count, _entropy: np.zeros_like(top)
        )


# The answers by period and block.
Outputs = list[list[np.ndarray]]


def outputs(plan, tables):
    """Return the scaled answers of each period after it is closed."""
    closed = _periods.ClosedPeriods()
    answers = []
    for table in tables:
        closed = _periods.close_period(plan, "month", "drop", table, closed, SeededEntropy(1))
        answers.append(scaled_answers(plan, closed))
    return answers


def scaled_answers(plan, closed):
    """Return the answers of the last closed period, by block, in multiples of its scale."""
    answers = _periods.answers_of_last_period(plan, "month", closed)
    scales = [float(block.scale) for block in plan.blocks]
    return [block_answers / scale for block_answers, scale in zip(answers, scales, strict=True)]


def first_blocks(plan, all_outputs):
    """Return what a plan outputs, from the outputs of one that begins with its blocks."""
    return np.concatenate([block for period in all_outputs for block in period[: len(plan.blocks)]])


def joint_loss(plan, outputs_before, outputs_after):
    """Return the loss, epsilon or rho, of outputs in multiples of their scale."""
    shifts = first_blocks(plan, outputs_before) - first_blocks(plan, outputs_after)
    if plan.noise is Noise.DISCRETE_LAPLACE:
        return float(np.abs(shifts).sum())
    return float((shifts**2).sum() / 2)


def cost_of(plan):
    """Return the one parameter of the cost of a plan."""
    (amount,) = parameters_by_name(cost(plan)).values()
    return float(amount)


LOWER = Dense(np.array([[4, 0, 0], [2, 3, 0], [1, 0, 5]]))
# The groups of a unit's rows in one period when it is closed.
IN_PERIOD = [(), (0,), (0, 0), (0, 1), (1, 1, 1)]
LIMITS = [(1, None), (2, None), (2, 1), (3, 2), (4, 2), (6, 2)]


Stream = tuple[tuple[int, ...], ...]


def streams(periods):
    return itertools.product(IN_PERIOD, repeat=periods)


def tables_of_streams(plan, other_rows):
    """Read the rows of a unit next to others, for all its streams and their beginnings."""
    # Rows of a later period may still change.
    later = [("unit", PERIODS - 1, 1)] * 2
    tables: dict[Stream, Table] = {}
    closed = {(): _periods.ClosedPeriods()}
    for period in range(PERIODS):
        for stream in streams(period + 1):
            before = closed[stream[:-1]]
            unit_rows = [("unit", period, group) for group in stream[-1]]
            rows = [*other_rows[period], *unit_rows, *later * (period < PERIODS - 1)]
            table = read_rows(plan, rows, allowance_after(plan, before))
            tables[stream] = table
            closed[stream] = _periods.close_period(
                plan, "month", "drop", table, before, SeededEntropy(1)
            )
    return tables


def outputs_of_streams(plan, tables):
    """Return the outputs of all whole streams; those that begin alike share their first periods."""
    closed = {(): _periods.ClosedPeriods()}
    outputs_of: dict[Stream, Outputs] = {(): []}
    for stream, table in tables.items():
        before = stream[:-1]
        closed[stream] = _periods.close_period(
            plan, "month", "drop", table, closed[before], SeededEntropy(1)
        )
        outputs_of[stream] = [*outputs_of[before], scaled_answers(plan, closed[stream])]
    return {stream: outputs_of[stream] for stream in streams(PERIODS)}


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("most", "per_period"), LIMITS, ids=str)
def test_unit_in_a_series_loses_at_most_the_payment(most, per_period):
    """Try all streams of one unit next to another one; most plans lose all of the payment."""
    noises = (Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN)
    measures = ((), ("people",), ("people", "paid"))
    plans_by_operator = [
        [
            plan_of(most, per_period, noise, operator, *names)
            for noise in noises
            for names in measures
        ]
        for operator in (Identity(PERIODS), LOWER)
    ]
    any_plan = plans_by_operator[0][0]
    other_rows = [[("other", period, 0)] for period in range(PERIODS)]
    tables_without = [*tables_of(any_plan, other_rows)]
    tables = tables_of_streams(any_plan, other_rows)
    last = (IN_PERIOD[-1],) * PERIODS
    tables_of_last = [tables[last[: period + 1]] for period in range(PERIODS)]
    shares = []
    for plans in plans_by_operator:
        # Without noise, the outputs of the last plan include the outputs of all others.
        without = outputs(plans[-1], tables_without)
        outputs_by_stream = outputs_of_streams(plans[-1], tables)
        for plan in plans:
            blocks = first_blocks(plan, outputs(plan, tables_of_last))
            assert (blocks == first_blocks(plan, outputs_by_stream[last])).all()
            losses = [
                joint_loss(plan, with_unit, without) for with_unit in outputs_by_stream.values()
            ]
            shares.append(max(losses) / cost_of(plan))

    assert max(shares) <= 1 + 1e-9
    assert sum(share > 1 - 1e-9 for share in shares) >= 4


@pytest.mark.parametrize(
    ("most", "per_period", "counts"),
    [
        (2, None, [2, 0, 0]),
        (4, None, [3, 1, 0]),
        (4, 2, [2, 2, 0]),
        (5, 2, [2, 2, 1]),
        (6, 2, [2, 2, 2]),
    ],
)
def test_rows_are_kept_up_to_the_allowance(most, per_period, counts):
    """A unit has three rows a period, closed one by one or all at once, from any source."""
    plan = plan_of(most, per_period, Noise.DISCRETE_GAUSSIAN, LOWER)
    rows = [("ann", period, 0) for period in range(PERIODS) for _ in range(3)]
    assert totals(plan, [rows] * PERIODS) == counts
    assert totals(plan, [rows[: 3 * period + 3] for period in range(PERIODS)]) == counts

    fresh = row_allowance(contract(plan), None, None, None)
    for source in (pa.table, duckdb.from_arrow):
        table = read_rows(plan, rows, fresh, source)
        closed = _periods.ClosedPeriods()
        for _ in range(PERIODS):
            closed = _periods.close_period(plan, "month", "drop", table, closed, SeededEntropy(1))
        ((frozen, _), *_) = closed.tables.values()
        assert frozen.reshape(PERIODS, GROUPS).sum(axis=1).tolist() == counts


def test_rows_of_later_and_closed_periods_use_nothing():
    """Late rows and rows of later periods do not use the allowance."""
    plan = plan_of(2, None, Noise.DISCRETE_GAUSSIAN, LOWER)
    early = [("ann", 2, 0)] * 5
    late = [("ann", 0, 0)] * 5
    assert totals(plan, [early, late, [("ann", 2, 1)] * 2]) == [0, 0, 2]
    assert totals(plan, [[("ann", 0, 0)], [*late, ("ann", 1, 0)], early]) == [1, 1, 0]


def test_units_have_allowances_of_their_own():
    plan = plan_of(1, None, Noise.DISCRETE_GAUSSIAN, LOWER)
    stream = [
        [("ann", 0, 0), ("bob", 1, 0)],
        [("bob", 1, 0), ("ann", 1, 1)],
        [("ann", 2, 0), ("bob", 2, 0), ("eve", 2, 1)],
    ]
    assert frozen_counts(plan, stream) == [[1, 0], [1, 0], [0, 1]]


def test_amounts_of_units_have_an_allowance_in_cells():
    """Rows of one cell use one unit of it; rows, counts and totals have separate allowances."""
    plan = plan_of(3, None, Noise.DISCRETE_GAUSSIAN, LOWER, "people", "paid")
    rows = [("ann", period, group) for period in range(PERIODS) for group in (0, 0, 1)]
    closed = _periods.ClosedPeriods()
    for table in tables_of(plan, [rows] * PERIODS):
        closed = _periods.close_period(plan, "month", "drop", table, closed, SeededEntropy(1))
    by_measure = {
        measure: counts[0].reshape(PERIODS, GROUPS).sum(axis=1).tolist()
        for (measure, names), counts in closed.tables.items()
        if "group" in names
    }
    first_total, second_total, third_total = by_measure.pop("paid")

    assert first_total == 3
    assert third_total == 0
    assert second_total in {0, 3}  # a random key chose the one cell that counts
    assert by_measure == {None: [3, 0, 0], "people": [2, 1, 0]}
    assert closed.used is not None
    assert {name: counts.tolist() for name, counts in closed.used.counts.items()} == {
        None: [3],
        "people": [3],
        "paid": [3],
    }


def test_total_of_zero_uses_a_cell_of_the_allowance():
    """Otherwise the remaining allowance would depend on the sizes of a unit's amounts."""
    plan = plan_of(1, None, Noise.DISCRETE_GAUSSIAN, LOWER, "paid")
    stream = [[("ann", 0, 1), ("bob", 1, 0)], [("ann", 1, 0), ("bob", 1, 0)], []]
    closed = _periods.ClosedPeriods()
    for table in tables_of(plan, stream):
        closed = _periods.close_period(plan, "month", "drop", table, closed, SeededEntropy(1))
    frozen = closed.tables["paid", ("month", "group")][0].reshape(PERIODS, GROUPS)
    assert frozen.tolist() == [[0, 0], [2, 0], [0, 0]]


@pytest.mark.parametrize(
    "groups", [[[[0], [0, 1], [1, 2]], None], [None, [[0, 1]]]], ids=["windows", "levels"]
)
def test_units_in_groups_need_no_bound_on_all_periods(groups):
    """A window may need rows of closed periods, which an allowance leaves out."""
    people = UnitCount(["month", "group"], groups)
    domain = ln.Domain(
        month=list(range(PERIODS)), group=list(range(GROUPS)), measures={"people": people}
    )
    for most, per_period, refused in ((6, 2, False), (5, 2, True), (2, None, True)):
        plan = plan_of(most, per_period, Noise.DISCRETE_GAUSSIAN, LOWER, "people")
        plan = Measurements(
            domain=domain, privacy=plan.privacy, noise=plan.noise, blocks=plan.blocks
        )
        if not refused:
            _periods.check_drawable_by_period(plan, "month", "drop")
            continue
        with pytest.raises(InputError, match="in groups of cells"):
            _periods.check_drawable_by_period(plan, "month", "drop")
        bounds = {"max_rows": most, "max_per_cell": plan.privacy.max_per_cell}
        allowance = RowAllowance("month", most, UsedRows.none(bytes(16)))
        with pytest.raises(InputError, match="in groups of cells"):
            read(
                pa.table({"id": ["ann"], "month": [0], "group": [0]}),
                domain,
                unit_column="id",
                allowance=allowance,
                **bounds,
            )


def test_unit_ids_are_read_as_one_in_every_period():
    plan = plan_of(1, None, Noise.DISCRETE_GAUSSIAN, LOWER)
    stream = [[("17", 0, 0)], [("17.0", 1, 0)], [("17.00", 2, 0)]]
    assert totals(plan, stream) == [1, 0, 0]


def test_closing_needs_the_record_of_used_rows():
    """A table read without the record, or with the record of another period, is refused."""
    plan = plan_of(2, 1, Noise.DISCRETE_GAUSSIAN, LOWER)
    rows = [("ann", period, 0) for period in range(PERIODS)]
    no_periods = _periods.ClosedPeriods()
    bounds = {"max_rows": 2, "max_per_cell": ln.PerCellBound(1, "month")}
    columns = {"id": ["ann"], "month": [0], "group": [0], "amount": [1]}
    unread = read(pa.table(columns), DOMAIN, unit_column="id", **bounds)
    counted = Table.counted(DOMAIN, DOMAIN.names, ["people"], {}, unit_column="id", **bounds)
    first_table = read_rows(plan, rows, allowance_after(plan, no_periods))
    once = _periods.close_period(plan, "month", "drop", first_table, no_periods, SeededEntropy(1))
    # This table has another salt, and no used rows.
    table_of_other_record = read_rows(plan, rows, allowance_after(plan, no_periods))
    third_table = read_rows(
        plan,
        rows,
        allowance_after(
            plan, _periods.close_period(plan, "month", "drop", first_table, once, SeededEntropy(1))
        ),
    )

    for table, closed in (
        (unread, no_periods),
        (counted, no_periods),
        (table_of_other_record, once),
        (third_table, once),
    ):
        with pytest.raises(InputError, match="without the record of used rows"):
            _periods.close_period(plan, "month", "drop", table, closed, SeededEntropy(1))


def test_reader_refuses_an_allowance_of_another_bound():
    plan = plan_of(2, 1, Noise.DISCRETE_GAUSSIAN, LOWER)
    allowance = row_allowance(contract(plan), None, None, None)
    frame = pa.table({"id": ["ann"], "month": [0], "group": [0]})

    for unit in ({"unit_column": "id", "max_rows": 3}, {}):
        with pytest.raises(InputError, match="the bound of the series, 2"):
            read(frame, DOMAIN, allowance=allowance, **unit)
    with pytest.raises(InputError, match="an attribute that is read"):
        read(
            frame.select(["id", "group"]),
            ln.Domain(group=[0, 1]),
            unit_column="id",
            max_rows=2,
            allowance=allowance,
        )


def test_record_beyond_the_bound_is_not_closed():
    plan = plan_of(2, None, Noise.DISCRETE_GAUSSIAN, LOWER)
    table = read_rows(plan, [("ann", 0, 0)] * 2, allowance_after(plan, _periods.ClosedPeriods()))
    use = open_content(table).period_use
    object.__setattr__(use, "most", 1)
    with pytest.raises(InternalError, match="more rows in a series than its bound"):
        _periods.close_period(
            plan, "month", "drop", table, _periods.ClosedPeriods(), SeededEntropy(1)
        )


def test_series_without_total_bound_needs_no_allowance():
    for most, per_period, needs in ((6, 2, False), (7, 2, False), (5, 2, True), (6, None, True)):
        plan = plan_of(most, per_period, Noise.DISCRETE_GAUSSIAN, LOWER)
        assert (row_allowance(contract(plan), None, None, None) is not None) is needs


@pytest.fixture
def book(tmp_path):
    """Return a ledger that is large enough for all tests."""
    return Ledger.create(
        tmp_path / "people.ledger", "people", Privacy(ln.ZCDP(2 * 10**6), unit_column="id")
    )


class Holder:
    """Runs of a series, each of which opens its ledger and its private file anew."""

    def __init__(self, book, plan, state):
        self.book = book
        self.plan = plan
        self.state = state
        self.runs = 0
        with book.running(1000) as run:
            Series.paid(contract(plan), None, book, output="out", run=run)

    def run(self, rows, periods):
        """Read the rows, and draw up to a number of periods."""
        self.runs += 1
        entry = self.book.entries()[-1]
        allowance = row_allowance(contract(self.plan), self.book, entry, self.state)
        table = read_rows(self.plan, rows, allowance)
        receipt = self.book.take_over(entry, f"run {self.runs}")
        series = Series.resumed(contract(self.plan), table, self.book, receipt)
        for _ in range(periods):
            series.period(self.state)

    def frozen(self):
        """Return the frozen counts by period, from the private file."""
        owner = self.state.read_text().split("\n")[1].split('"')[1]
        closed = _periods.read_closed(self.state, owner, len(self.steps))
        ((counts, _), *_) = closed.tables.values()
        return [int(number) for number in counts.reshape(PERIODS, -1).sum(axis=1)]

    @property
    def steps(self):
        return self.book.pending(self.book.entries()[-1]).steps


def rows_in(*periods):
    return [(unit, period, 0) for period in periods for unit in ("ann", "bob")]


@pytest.mark.parametrize("when", ["before the file", "after the file"])
@pytest.mark.parametrize("period", range(PERIODS))
def test_killed_run_counts_rows_of_a_unit_once(book, tmp_path, monkeypatch, when, period):
    """After a kill at any period the next run reuses the first run's allowance or counts."""
    plan = plan_of(2, None, Noise.DISCRETE_GAUSSIAN, LOWER)
    holder = Holder(book, plan, tmp_path / "people.private")
    for closed in range(1, period + 1):
        holder.run(rows_in(*range(PERIODS)), closed)
    writing = _periods.write_closed

    def killed(*parts):
        if when == "after the file":
            writing(*parts)
        raise KeyboardInterrupt

    monkeypatch.setattr("leastnoise._trusted.kernel._series.write_closed", killed)
    with pytest.raises(KeyboardInterrupt):
        holder.run(rows_in(*range(PERIODS)), period + 1)
    monkeypatch.undo()
    assert len(holder.steps) == period
    # Other rows have arrived. A period that was not frozen counts them, and a frozen period does
    # not.
    changed = [*rows_in(*range(PERIODS)), ("eve", period, 1)]
    for closed in range(period + 1, PERIODS + 1):
        holder.run(changed, closed)
    expected = [2, 2, 0]
    expected[period] += when == "before the file"
    assert holder.frozen() == expected


def test_private_file_names_no_unit(book, tmp_path):
    plan = plan_of(2, None, Noise.DISCRETE_GAUSSIAN, LOWER)
    holder = Holder(book, plan, tmp_path / "people.private")
    holder.run(rows_in(0), 1)
    text = holder.state.read_text()
    assert holder.state.stat().st_mode & 0o777 == 0o600
    assert "ann" not in text
    assert UsedRows.none(bytes(16)).digest("ann") != UsedRows.none(bytes(range(16))).digest("ann")

    allowance = row_allowance(contract(plan), book, book.entries()[-1], holder.state)
    assert allowance is not None
    assert used_rows(allowance).periods == 1
    assert repr(allowance) == "<RowAllowance of at most 2 rows of a unit along 'month'>"
    with pytest.raises(TypeError, match="not pickled"):
        allowance.__reduce__()


def test_lost_or_changed_record_ends_the_series(book, tmp_path):
    plan = plan_of(2, None, Noise.DISCRETE_GAUSSIAN, LOWER)
    holder = Holder(book, plan, tmp_path / "people.private")
    holder.run(rows_in(0), 1)
    older = holder.state.read_text()
    holder.run(rows_in(0, 1), 2)
    intact = holder.state.read_text()
    for text in (None, "", older, intact[:-200], intact.replace("A", "B", 1)):
        holder.state.unlink(missing_ok=True)
        if text is not None:
            holder.state.write_text(text)
        with pytest.raises(LedgerError, match="Restore the file"):
            holder.run(rows_in(0, 1, 2), 3)
    holder.state.write_text(intact)
    holder.run(rows_in(0, 1, 2), 3)

    assert holder.frozen() == [2, 2, 0]


def test_rows_read_before_another_run_are_not_drawn(book, tmp_path):
    """Two runs read together; the second finds that the first has closed a period."""
    plan = plan_of(2, None, Noise.DISCRETE_GAUSSIAN, LOWER)
    holder = Holder(book, plan, tmp_path / "people.private")
    entry = book.entries()[-1]
    early = read_rows(plan, rows_in(0, 1), row_allowance(contract(plan), book, entry, holder.state))
    holder.run(rows_in(0), 1)
    series = Series.resumed(contract(plan), early, book, book.take_over(entry, "late"))
    series.period(holder.state)

    with pytest.raises(InputError, match="Run the series again"):
        series.period(holder.state)
    assert len(holder.steps) == 1


def test_unpaid_series_keeps_the_total_bound(tmp_path):
    plan = plan_of(2, None, Noise.DISCRETE_GAUSSIAN, LOWER)
    allowance = row_allowance(contract(plan), None, None, None)
    table = read_rows(plan, rows_in(0, 1, 2), allowance)
    series = UnpaidSeries(contract(plan), table, SeededEntropy(1))
    for _ in range(PERIODS):
        series.period(tmp_path / "state")
    assert (tmp_path / "state").exists()
