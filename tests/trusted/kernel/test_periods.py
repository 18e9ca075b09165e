"""Series drawn by period: the joint cost of all outputs, late rows, and single draws."""

import functools
import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import leastnoise as ln
from behind_the_wall import SAMPLERS
from leastnoise._domain import UnitCount
from leastnoise._trusted.accounting import Noise, Privacy, parameters_by_name
from leastnoise._trusted.check import InputError, InternalError, LedgerError
from leastnoise._trusted.kernel import (
    Ledger,
    NeedsData,
    ReleaseContract,
    SeededEntropy,
    Series,
    UnpaidSeries,
    _periods,
)
from leastnoise._trusted.linop import Dense, Identity
from leastnoise._trusted.measurements import Block, Factor, Limits, Measurements, cost
from leastnoise._trusted.table import Table

PERIODS = 3
GROUPS = 2
MEASURES = {
    "pay": ln.Measure("pay", -2, 3),
    "people": UnitCount(["month", "group"]),
    "ever": UnitCount(["group"]),
}
DOMAIN = ln.Domain(month=list(range(PERIODS)), group=list(range(GROUPS)), measures=MEASURES)
# The period of a row, its group, the periods when it arrives and leaves, and its amount if it has
# one.
Row = tuple[int, ...]


def measured(noise, *operators, privacy=None, more_blocks=()):
    """Measure each operator along time, by group and for all groups, and more blocks."""
    blocks = [
        Block((Factor(("month",), operator), *along), scale)
        for operator in operators
        for along, scale in (
            ((Factor(("group",), Identity(GROUPS)),), Fraction(7, 2)),
            ((), Fraction(5)),
        )
    ]
    budget = Privacy(ln.PureDP(1000) if noise is Noise.DISCRETE_LAPLACE else ln.ZCDP(1000))
    return Measurements(
        domain=DOMAIN, privacy=privacy or budget, noise=noise, blocks=(*blocks, *more_blocks)
    )


LOWER = Dense(np.array([[4, 0, 0], [2, 3, 0], [1, -2, 5]]))
HIERARCHY = Dense(np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]))
KINDS = [
    (Noise.DISCRETE_LAPLACE, LOWER),
    (Noise.DISCRETE_GAUSSIAN, LOWER),
    (Noise.DISCRETE_LAPLACE, HIERARCHY),
]


@pytest.fixture
def quiet(monkeypatch):
    """Remove the noise, so that the effect of a row is visible."""
    for noise in SAMPLERS:
        monkeypatch.setitem(
            SAMPLERS, noise, lambda top, _bottom, _count, _entropy: np.zeros_like(top)
        )


def rows_present(rows, period):
    """Return the rows that have come by the end of a period, and have not left."""
    present = [row for row in rows if row[2] <= period < row[3]]
    codes = {"month": [row[0] for row in present], "group": [row[1] for row in present]}
    amounts = [(*row, 0)[4] for row in present]
    return Table(DOMAIN, codes, {"pay": amounts}, rows=len(present))


def outputs(plan, late, tables):
    """Return the outputs of each closing for the rows present at that time."""
    closed = _periods.ClosedPeriods()
    answers = []
    for table in tables:
        closed = _periods.close_period(
            plan, "month", late, table, closed, SeededEntropy(len(answers))
        )
        answers.append(_periods.answers_of_last_period(plan, "month", closed))
    return answers


def row_outputs(plan, late, rows):
    return outputs(plan, late, [rows_present(rows, period) for period in range(PERIODS)])


def joint_loss(plan, outputs_before, outputs_after):
    """Return the exact joint loss of all outputs: epsilon for Laplace, rho for Gaussian noise."""
    pairs = [
        pair
        for answers in zip(outputs_before, outputs_after, strict=True)
        for pair in zip(plan.blocks, *answers, strict=True)
    ]
    shifts = [
        Fraction(abs(int(difference))) / block.scale
        for block, a, b in pairs
        for difference in a.astype(int) - b
    ]
    return sum(
        shifts if plan.noise is Noise.DISCRETE_LAPLACE else [shift * shift / 2 for shift in shifts],
        Fraction(0),
    )


def cost_of(plan):
    """Return the one parameter of the cost of a plan."""
    (amount,) = parameters_by_name(cost(plan)).values()
    return amount


def every_row(*, with_removed):
    return [
        (period, group, start, end)
        for period in range(PERIODS)
        for group in range(GROUPS)
        for start in range(period, PERIODS)
        for end in ([*range(start + 1, PERIODS), 99] if with_removed else [99])
    ]


def neighbours(late, *, with_removed):
    """Return streams of up to two rows, each with neighbours that have one row more.

    The additional row is removed again where removed rows cost nothing.
    """
    base_rows = every_row(with_removed=True)[::2]
    base = [
        (),
        *((row,) for row in base_rows),
        *itertools.combinations_with_replacement(base_rows, 2),
    ]
    for rows in base:
        for row in every_row(with_removed=with_removed or late == "drop"):
            if row[1] == 0:  # the groups are alike
                yield rows, (*rows, row)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("late", ["drop", "arrival"])
@pytest.mark.parametrize(("noise", "operator"), KINDS, ids=["laplace", "gaussian", "hierarchy"])
def test_neighbouring_streams_lose_exactly_the_payment(noise, operator, late):
    plan = measured(noise, operator)
    outputs_of_rows = {}

    def outputs_of(rows):
        if rows not in outputs_of_rows:
            outputs_of_rows[rows] = row_outputs(plan, late, rows)
        return outputs_of_rows[rows]

    losses = {
        joint_loss(plan, outputs_of(before), row_outputs(plan, late, after))
        for before, after in neighbours(late, with_removed=False)
        if len(before) < 2
    }
    losses |= {
        joint_loss(plan, outputs_of(before), row_outputs(plan, late, after))
        for before, after in [*neighbours(late, with_removed=False)][::197]
    }

    assert max(losses) == cost_of(plan)


def summed(operator, measure="pay", scale=Fraction(9, 2), **how):
    """Return a block of sums by month and group."""
    return Block(
        (Factor(("month",), operator), Factor(("group",), Identity(GROUPS))), scale, measure, **how
    )


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("ends", [False, True], ids=["values", "ends"])
@pytest.mark.parametrize(("noise", "operator"), KINDS[:2], ids=["laplace", "gaussian"])
def test_stream_sums_and_counts_lose_exactly_the_payment(noise, operator, ends):
    """The additional row may be removed, or change its amount, in any period."""
    plan = measured(noise, operator, more_blocks=[summed(operator, ends=ends)])
    losses = []
    for base in [(), *((row,) for row in [*every_row(with_removed=True)][::11])]:
        before = row_outputs(plan, "drop", base)
        for period, group, start, end in every_row(with_removed=True)[::3]:
            for amount, corrected in itertools.product((-2, 0, 3), (-2, 3)):
                rows = (
                    *base,
                    (period, group, start, end, amount),
                    (period, group, end, 99, corrected),
                )
                losses.append(joint_loss(plan, before, row_outputs(plan, "drop", rows)))

    assert max(losses) == cost_of(plan)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    "operator",
    [Identity(3), Dense(np.array([[4, 0, 0], [2, 3, 0], [1, 0, 5]]))],
    ids=["cells", "triangle"],
)
@pytest.mark.parametrize("noise", [Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN])
def test_units_in_each_period_lose_the_payment(noise, operator):
    """The largest loss over all rows at each closing equals the payment."""
    budget = ln.PureDP(1000) if noise is Noise.DISCRETE_LAPLACE else ln.ZCDP(1000)
    privacy = Privacy(
        budget, unit_column="id", max_rows=2 * PERIODS, max_per_cell=ln.PerCellBound(2, "month")
    )
    plan = measured(noise, operator, privacy=privacy)
    if noise is Noise.DISCRETE_LAPLACE:
        plan = measured(noise, operator, privacy=privacy, more_blocks=[summed(operator, "people")])
    bounds = {name: getattr(privacy, name) for name in ("unit_column", "max_rows", "max_per_cell")}

    def released(groups):
        """Return the release of a unit with rows of these groups in every period."""
        tables = []
        for now_in in groups:
            rows = [
                (period, group, place == now_in.index(group))
                for period in range(PERIODS)
                for place, group in enumerate(now_in)
            ]
            codes = {"month": [row[0] for row in rows], "group": [row[1] for row in rows]}
            tables.append(
                Table(
                    DOMAIN,
                    codes,
                    {"people": [int(row[2]) for row in rows]},
                    rows=len(rows),
                    **bounds,
                )
            )
        return outputs(plan, "drop", tables)

    rows_of_a_unit = [(), (0,), (1,), (0, 0), (0, 1), (1, 1)]
    release_without = released([()] * PERIODS)
    losses = [
        joint_loss(plan, release_without, released(groups_by_period))
        for groups_by_period in itertools.product(rows_of_a_unit, repeat=PERIODS)
    ]

    assert max(losses) == cost_of(plan)


@pytest.mark.usefixtures("quiet")
def test_replaced_late_row_costs_up_to_twice():
    plan = measured(Noise.DISCRETE_LAPLACE, LOWER)
    rows: tuple[Row, ...] = ((0, 0, 2, 99),)  # another row of the cell comes when this one has gone
    loss_of_replacement, *other_losses = (
        joint_loss(
            plan,
            row_outputs(plan, "arrival", rows_before),
            row_outputs(plan, "arrival", rows_after),
        )
        for rows_before, rows_after in (
            (rows, (*rows, (0, 0, 1, 2))),
            *[*neighbours("arrival", with_removed=True)][::41],
        )
    )

    assert (
        cost_of(plan)
        < loss_of_replacement
        <= max(loss_of_replacement, *other_losses)
        <= 2 * cost_of(plan)
    )


@pytest.mark.usefixtures("quiet")
def test_adaptive_later_data_stay_within_the_budget():
    """Compute the joint distribution where the rows of period 2 depend on the output of 1."""
    domain = ln.Domain(month=[0, 1])
    scale = Fraction(3)
    block = Block((Factor(("month",), Dense(np.array([[2, 0], [1, 2]]))),), scale)
    plan = Measurements(
        domain=domain, privacy=Privacy(ln.PureDP(2)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,)
    )

    @functools.cache
    def exact_outputs(*months):
        tables = [Table(domain, {"month": rows}, rows=len(rows)) for rows in months]
        return [int(values[0]) for (values,) in outputs(plan, "drop", tables)]

    def log_chance(rows, added, at):
        # Two rows arrive if the first output is large.
        second_rows = [*rows, *([1, 1] if at[0] > 1 else []), *added]
        return -sum(
            abs(value - exact_value)
            for value, exact_value in zip(
                at, exact_outputs((*rows, *added), tuple(second_rows)), strict=True
            )
        ) / float(scale)

    worst = 0.0
    for at in itertools.product(range(-4, 7), repeat=2):
        for rows, added in itertools.product([[], [0], [0, 1]], [[0], [1]]):
            worst = max(worst, abs(log_chance(rows, [], at) - log_chance(rows, added, at)))

    assert worst == pytest.approx(float(cost_of(plan)))


def release_contract(plan, late="drop"):
    return ReleaseContract(
        domain=DOMAIN,
        privacy=plan.privacy,
        attributes=DOMAIN.names,
        declared_step=plan,
        plan_text="a plan",
        along="month",
        late=late,
    )


ROWS: tuple[Row, ...] = tuple(
    (period, group, period, 99)
    for period in range(PERIODS)
    for group in range(GROUPS)
    for _ in range(40)
)


@pytest.fixture
def book(tmp_path):
    return Ledger.create(tmp_path / "people.ledger", "people", Privacy(ln.ZCDP(2000)))


def pay_and_resume(book, plan):
    """Pay, and return a function that draws a period from its rows."""
    with book.running(1000) as run:
        Series.paid(release_contract(plan), None, book, output="out", run=run)

    def resumed(rows, period):
        entry = book.entries()[-1]
        run = f"{period}-{len(book.entries())}"
        return Series.resumed(
            release_contract(plan),
            None if rows is None else rows_present(rows, period),
            book,
            book.take_over(entry, run),
        )

    return resumed


def texts(values):
    return [value.tolist() for value in values]


def test_period_is_drawn_once_and_paid_once(book, tmp_path):
    plan = measured(Noise.DISCRETE_GAUSSIAN, LOWER)
    state = tmp_path / "people.private"
    resumed = pay_and_resume(book, plan)
    outputs_by_period = []
    for period in range(PERIODS):
        series = resumed(ROWS, period)
        outputs_by_period = [texts(series.period(state)) for _ in range(period + 1)]
    assert [entry.charge.rho for entry in book.entries()] == [1000]

    resumed_series = resumed(None, PERIODS)
    assert [texts(resumed_series.period(state)) for _ in range(PERIODS)] == outputs_by_period
    with pytest.raises(NeedsData):
        resumed_series.period(state)
    assert state.read_text().startswith("PRIVATE")
    assert state.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("when", ["before the file", "after the file"])
def test_killed_process_redraws_the_same_value(book, tmp_path, monkeypatch, when):
    plan = measured(Noise.DISCRETE_GAUSSIAN, LOWER)
    state = tmp_path / "people.private"
    resumed = pay_and_resume(book, plan)
    resumed(ROWS, 0).period(state)
    writing = _periods.write_closed
    written_output = []

    def killed(file, receipt, closed):
        if when == "after the file":
            writing(file, receipt, closed)
            written_output.extend(texts(_periods.answers_of_last_period(plan, "month", closed)))
        raise KeyboardInterrupt

    monkeypatch.setattr("leastnoise._trusted.kernel._series.write_closed", killed)
    series = resumed(ROWS, 1)
    series.period(state)
    with pytest.raises(KeyboardInterrupt):
        series.period(state)

    monkeypatch.undo()
    assert len(book.pending(book.entries()[0]).steps) == 1
    assert book.entries()[0].resumable
    series = resumed((*ROWS, *ROWS[:3]), 1)  # the data have changed since
    series.period(state)
    redrawn = texts(series.period(state))
    assert when == "before the file" or redrawn == written_output


def test_damaged_private_file_ends_the_series(book, tmp_path):
    plan = measured(Noise.DISCRETE_GAUSSIAN, LOWER)
    state = tmp_path / "people.private"
    resumed = pay_and_resume(book, plan)
    first_output = texts(resumed(ROWS, 0).period(state))
    older = state.read_text()
    series = resumed(ROWS, 1)
    two_outputs = [texts(series.period(state)), texts(series.period(state))]
    intact = state.read_text()
    for text in (
        None,
        older,
        intact.replace("2", "3", 1),
        intact.replace(book.entries()[0].id, "0" * 32),
        "",
        intact[:100],
    ):
        state.unlink(missing_ok=True)
        if text is not None:
            state.write_text(text)
        series = resumed(ROWS, 2)
        assert [texts(series.period(state)), texts(series.period(state))] == two_outputs
        assert two_outputs[0] == first_output
        with pytest.raises(LedgerError, match="Restore the file"):
            series.period(state)
    state.write_text(intact)
    series = resumed(ROWS, 2)

    assert [len(series.period(state)) for _ in range(3)] == [2, 2, 2]


def test_series_along_an_attribute_does_nothing_else(tmp_path):
    plan = measured(Noise.DISCRETE_GAUSSIAN, LOWER)
    series = UnpaidSeries(release_contract(plan), rows_present(ROWS, 0), SeededEntropy(1))

    with pytest.raises(InputError, match="carries out only the measurements"):
        series.measure(plan)
    with pytest.raises(InputError, match="requires a series that declares"):
        UnpaidSeries(
            ReleaseContract(domain=DOMAIN, privacy=plan.privacy, declared_step=plan),
            rows_present(ROWS, 0),
            SeededEntropy(1),
        ).period(tmp_path / "state")


def gaussian_plan(bound, *more_blocks):
    """Return a plan of units of up to three rows, with a bound on the rows in a cell."""
    privacy = Privacy(ln.ZCDP(1000), unit_column="id", max_rows=3, max_per_cell=bound)
    return measured(Noise.DISCRETE_GAUSSIAN, LOWER, privacy=privacy, more_blocks=more_blocks)


ONE_ROW_A_MONTH = ln.PerCellBound(1, "month")
WITHOUT_PERIODS = Block((Factor(("group",), Identity(GROUPS)),), Fraction(1))


@pytest.mark.parametrize(
    ("block", "late", "message"),
    [
        (WITHOUT_PERIODS, "drop", "periods of"),
        (summed(LOWER), "arrival", "include the periods of"),
        (summed(LOWER, limits=Limits([2])), "drop", "include the periods of"),
    ],
    ids=["counts without periods", "sums of late rows", "limited sums"],
)
def test_series_with_an_undrawable_block_is_refused(block, late, message):
    plan = measured(Noise.DISCRETE_GAUSSIAN, LOWER, more_blocks=[block])
    with pytest.raises(InputError, match=message):
        release_contract(plan, late)


def test_series_needs_a_bound_on_rows_in_each_period():
    for bound in (None, ln.PerCellBound(2, "month"), ONE_ROW_A_MONTH):
        assert release_contract(gaussian_plan(bound)).along == "month"
    for bound in (ln.PerCellBound(1, "group"), ln.PerCellBound(2, ["month", "group"])):
        with pytest.raises(InputError, match="in no other cells"):
            release_contract(gaussian_plan(bound))


def test_undrawable_series_is_refused():
    plan = measured(Noise.DISCRETE_GAUSSIAN, LOWER)
    with pytest.raises(InputError, match="one of 'drop', 'arrival'"):
        release_contract(plan, "never")
    with pytest.raises(InputError, match="let each row be a unit"):
        release_contract(gaussian_plan(ONE_ROW_A_MONTH), "arrival")
    # A unit that counts once in all periods is not of one period.
    units_of_all_periods = gaussian_plan(ONE_ROW_A_MONTH, summed(LOWER, "ever"))
    with pytest.raises(InputError, match="count the units of each period"):
        release_contract(units_of_all_periods, "drop")
    # A choice outside the private file could be drawn again after each run that was stopped.
    with pytest.raises(InputError, match="must declare its measurements"):
        ReleaseContract(domain=DOMAIN, privacy=plan.privacy, along="month")


def test_period_noise_has_the_scale_of_its_rows():
    domain = ln.Domain(month=[0, 1, 2], group=ln.Coded(4000))
    weights = np.array([1, 2, 1])
    block = Block(
        (Factor(("month",), LOWER, weights), Factor(("group",), Identity(4000))), Fraction(9)
    )
    plan = Measurements(
        domain=domain, privacy=Privacy(ln.PureDP(9)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,)
    )
    noise_by_period = outputs(plan, "drop", [Table(domain, {"month": [], "group": []})] * 3)

    assert [values.std() for (values,) in noise_by_period] == pytest.approx(
        9 / weights * math.sqrt(2), rel=0.08
    )


def test_change_after_payment_is_not_drawn(book, tmp_path):
    plan = measured(Noise.DISCRETE_GAUSSIAN, LOWER)
    state = tmp_path / "people.private"
    series = pay_and_resume(book, plan)(ROWS, 0)
    series.period(state)
    object.__setattr__(plan.blocks[0], "scale", Fraction(1, 7))

    with pytest.raises(
        InputError, match=r"must be those that were paid for|cost more than their declared budget"
    ):
        series.period(state)
    assert len(book.pending(book.entries()[0]).steps) == 1


def test_other_measurement_with_same_text_is_refused(book, tmp_path, monkeypatch):
    """The private file refuses it before the record, and the recorded step afterwards."""
    state = tmp_path / "people.private"
    resumed = pay_and_resume(book, measured(Noise.DISCRETE_GAUSSIAN, LOWER))
    other_contract = release_contract(measured(Noise.DISCRETE_GAUSSIAN, Dense(np.diag([4, 3, 5]))))

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("leastnoise._trusted.kernel._series.answers_of_last_period", killed)
    with pytest.raises(KeyboardInterrupt):
        resumed(ROWS, 0).period(state)

    monkeypatch.undo()
    with pytest.raises(LedgerError, match="does not match the ledger's entry of this series"):
        Series.resumed(
            other_contract,
            rows_present(ROWS, 0),
            book,
            book.take_over(book.entries()[0], "another"),
        ).period(state)

    resumed(ROWS, 1).period(state)
    with pytest.raises(InputError, match="other steps"):
        Series.resumed(
            other_contract,
            rows_present(ROWS, 1),
            book,
            book.take_over(book.entries()[0], "a third"),
        ).period(state)


def test_fingerprint_covers_answers_and_noise():
    """Vary answers, scales, weights, largest amounts, kind of noise, mode and grid."""
    gaussian = Noise.DISCRETE_GAUSSIAN
    plan = measured(gaussian, LOWER, more_blocks=[summed(LOWER)])
    block = plan.blocks[0]
    along, *other_factors = block.factors
    weighted = replace(
        block, factors=(replace(along, row_weights=np.array([1, 1, 2])), *other_factors)
    )
    wider = ln.Measure("pay", -2, 4)
    larger = ln.Domain(
        month=DOMAIN.kind("month"), group=DOMAIN.kind("group"), measures={**MEASURES, "pay": wider}
    )
    other_plans = [
        measured(gaussian, LOWER),
        measured(gaussian, Dense(np.diag([4, 3, 5])), more_blocks=[summed(LOWER)]),
        measured(Noise.ROUNDED_GAUSSIAN, LOWER, more_blocks=[summed(LOWER)]),
        replace(plan, blocks=(replace(block, scale=Fraction(4)), *plan.blocks[1:])),
        replace(plan, blocks=(weighted, *plan.blocks[1:])),
        replace(plan, grid=2),
        replace(plan, domain=larger),
    ]
    prints = {
        _periods.fingerprint_measurements(plan, "month", "drop"),
        _periods.fingerprint_measurements(plan, "month", "arrival"),
        *(
            _periods.fingerprint_measurements(other_plan, "month", "drop")
            for other_plan in other_plans
        ),
    }
    assert len(prints) == 2 + len(other_plans)
    equal_plan = measured(gaussian, LOWER, more_blocks=[summed(LOWER)])
    assert _periods.fingerprint_measurements(equal_plan, "month", "drop") in prints


def test_arrival_counts_a_replaced_row_once():
    """A row that replaces a removed row adds nothing to the largest count so far."""
    plan = measured(Noise.DISCRETE_LAPLACE, LOWER)
    stream = [(0, 0, 0, 1), (0, 0, 0, 99), (0, 0, 2, 99)]  # two rows, then one, then two again
    closed = _periods.ClosedPeriods()
    totals = []
    for period in range(PERIODS):
        closed = _periods.close_period(
            plan, "month", "arrival", rows_present(stream, period), closed, SeededEntropy(1)
        )
        ((frozen, _),) = closed.tables.values()
        totals.append(int(frozen.sum()))

    assert totals == [2, 2, 2]


@pytest.mark.parametrize(("in_file", "in_ledger"), [(2, 0), (3, 1), (0, 1), (1, 3)])
def test_private_file_must_match_the_ledger(tmp_path, in_file, in_ledger):
    """It has the periods that the ledger has drawn, or one more whose record was lost."""
    state = tmp_path / "people.private"
    _periods.write_closed(state, "payment", _periods.ClosedPeriods(number=in_file))
    with pytest.raises(LedgerError, match="does not match the ledger's entry of this series"):
        _periods.read_closed(state, "payment", in_ledger)
    for accepted in {in_file, max(in_file - 1, 0)}:
        assert _periods.read_closed(state, "payment", accepted).number == in_file


PRIVATE_FILE = """\
PRIVATE: exact counts of rows, for the data's holder alone. Never publish or share this file. \
leastnoise needs it, unchanged.
["payment", 1, [["pay", ["sex"], "AwAAAAAAAAD+/////////w=="]], ["BQAAAAAAAAA="], null]
7c060b5231b6bec755109514c05ff79e7e4a114d4b075e5b067e26e3be156067
"""


def test_private_file_of_an_earlier_version_is_read(tmp_path):
    """A paid series could not go on if any byte of the format changed."""
    state = tmp_path / "people.private"
    state.write_text(PRIVATE_FILE, encoding="ascii")
    closed = _periods.read_closed(state, "payment", 1)
    assert {key: counts.tolist() for key, counts in closed.tables.items()} == {
        ("pay", ("sex",)): [[3, -2]]
    }
    assert [values.tolist() for values in closed.noise] == [[5]]
    _periods.write_closed(state, "payment", closed)
    assert state.read_text(encoding="ascii") == PRIVATE_FILE


@pytest.mark.parametrize("line", [0, 1, 2])
def test_private_file_with_another_line_is_refused(tmp_path, line):
    state = tmp_path / "people.private"
    _periods.write_closed(state, "payment", _periods.ClosedPeriods(number=1))
    lines = state.read_text().split("\n")
    wrong_lines = [
        "",
        "null",
        "7",
        "{}",
        "[]",
        "[" * 10**5,
        "[" * 400 + "]" * 400,
        "NaN",
        "9" * 5000,
    ]
    wrong_lines += [
        '["payment", "x", [], [], null]',
        '["payment", 1, {"a": 1}, 5, null]',
        lines[line] * 2,
    ]
    for wrong_line in wrong_lines:
        state.write_text("\n".join([*lines[:line], wrong_line, *lines[line + 1 :]]))
        with pytest.raises(LedgerError, match="Restore the file"):
            _periods.read_closed(state, "payment", 1)
    for text in (b"", b"\xff", "\n".join(lines[:line]).encode()):
        state.write_bytes(text)
        with pytest.raises(LedgerError, match="Restore the file"):
            _periods.read_closed(state, "payment", 1)


def test_noise_of_other_rows_is_not_added():
    plan = measured(Noise.DISCRETE_GAUSSIAN, LOWER)
    closed = _periods.close_period(
        plan, "month", "drop", rows_present(ROWS, 0), _periods.ClosedPeriods(), SeededEntropy(1)
    )
    with pytest.raises(InternalError, match="does not belong to its rows"):
        _periods.answers_of_last_period(
            plan, "month", replace(closed, noise=tuple(noise[:1] for noise in closed.noise))
        )


def test_two_threads_do_not_draw_a_period_as_two_steps(book, tmp_path, monkeypatch):
    plan = measured(Noise.DISCRETE_GAUSSIAN, LOWER)
    state = tmp_path / "people.private"
    other_thread = []
    series = pay_and_resume(book, plan)(ROWS, 1)
    series.period(state)

    def meanwhile(*arguments):
        if not other_thread:
            other_thread.append("another thread")
            other_thread.append(texts(series.period(state)))
        return _periods.fingerprint_measurements(*arguments)

    monkeypatch.setattr("leastnoise._trusted.kernel._series.fingerprint_measurements", meanwhile)

    with pytest.raises(InputError, match="Another thread draws periods"):
        series.period(state)
    assert len(book.pending(book.entries()[0]).steps) == 2
