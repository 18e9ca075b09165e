"""The guard of a release: its cost, when it stops, how often it errs, and what it publishes."""

import itertools
import logging
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from behind_the_wall import exact_marginals, lacking_rows
from leastnoise._domain import UnitTotal
from leastnoise._pages import describe_guessing_chance, describe_promise
from leastnoise._plan import guard_budget, with_guard, without_guard
from leastnoise._session import (
    MISSED,
    WRONG,
    WRONG_COLUMN,
    enter_release,
    forecast_guard,
    guard_measurements,
    laplace_difference_tail,
    missing_column_threshold,
    noise_difference_bound,
    optional_attributes,
    rows_to_detect_missing_column,
    single_draw_bound,
)
from leastnoise._trusted.accounting import (
    GaussianCost,
    Noise,
    PureCost,
    charge,
    gaussian_mu_squared,
    is_within_budget,
    parameters_by_name,
)
from leastnoise._trusted.reading import (
    CUT,
    LACKING,
    MOST_CUT,
    ReadRequest,
    cut_amount,
    cut_limit,
    kept_amount,
    read,
)
from session.releasing import manifest, report

pytestmark = pytest.mark.usefixtures("kept_plans")

DOMAIN = ln.Domain(sex=["F", "M"])
WORKLOAD = ln.marginals(DOMAIN, ways=1)
MATCHING_ROWS = pd.DataFrame({"sex": ["F", "M"] * 2500})
ROWS_IN_LOWER_CASE = pd.DataFrame({"sex": ["f", "m"] * 2500})
PLAN = ln.plan(WORKLOAD, ln.PureDP(1), guard="1/10")
TENTH = ln.Options(guard="1/10")
BUDGETS = [ln.PureDP(1), ln.ApproxDP(1, "1e-6"), ln.ZCDP("1/2"), ln.GDP("1/2")]
every_budget = pytest.mark.parametrize("budget", BUDGETS, ids=repr)
both_relations = pytest.mark.parametrize("neighbours", ["add_remove", "replace"])


def size(budget):
    """Return epsilon, rho or mu squared."""
    return next(number for number in parameters_by_name(budget).values() if number)


@both_relations
@every_budget
def test_guard_stops_a_wrong_spec_at_its_share(tmp_path, budget, neighbours):
    ledger_file = tmp_path / "people.ledger"
    plan = ln.plan(WORKLOAD, ln.Privacy(budget, neighbours), guard="1/100")
    with pytest.raises(
        ln.GuardError,
        match=r"fewer than half.*1/100 of the budget. The rest is left.*leastnoise check",
    ):
        ln.release(
            plan,
            ROWS_IN_LOWER_CASE,
            ledger=ledger_file,
            out=tmp_path / "out",
            options=ln.Options(guard="1/100"),
        )
    assert not (tmp_path / "out").exists()
    ledger = ln.Ledger.open(ledger_file)
    (entry,) = ledger.entries()
    assert (entry.state, entry.description) == ("sealed", "guard: rows read and used")
    assert ledger.privacy.budget == budget
    assert size(entry.charge) == size(budget) / 100
    assert entry.charge.delta == 0
    # The remaining budget is enough for the plan.
    released = ln.release(plan, MATCHING_ROWS, ledger=ledger_file, out=tmp_path / "out")
    assert released.private
    assert ledger.left().epsilon == 0
    assert ledger.left().rho == 0


def test_release_publishes_the_two_numbers_of_its_guard(tmp_path):
    release = ln.release(
        PLAN, MATCHING_ROWS, ledger=tmp_path / "people.ledger", out=tmp_path / "out", options=TENTH
    )
    record = manifest(tmp_path / "out")
    page = report(tmp_path / "out")
    receipt = record["receipt"]
    assert receipt["guard_used"] == release.receipt.guard.used
    assert abs(receipt["guard_used"] - 5000) < 300
    assert abs(receipt["guard_kept"] - 5000) < 300
    assert receipt["guard_share"] == "1/10"
    assert receipt["guard_charge"] == "epsilon = 0.1"
    assert receipt["guard_number"] == 1
    assert receipt["number"] == 2
    assert f"{receipt['guard_used']:,}" in page
    privacy = ln.Privacy(ln.PureDP(1))
    assert release.privacy == ln.read_release(tmp_path / "out").privacy == privacy
    assert all(
        text in page
        for text in (
            describe_guessing_chance(privacy),
            describe_promise(privacy),
            "epsilon = 1 (pure",
        )
    )
    assert record["privacy"]["parameters"] == {"epsilon": "1"}


def test_seeded_release_has_a_guard_too():
    a_fifth_unused = pd.DataFrame({"sex": ["F", "M"] * 2000 + ["x"] * 1000})
    release = ln.release(PLAN, a_fifth_unused, seed=1, options=TENTH)
    assert release.receipt.guard.used == pytest.approx(4000, abs=300)
    assert release.receipt.guard.kept == pytest.approx(5000, abs=300)
    assert release.receipt.guard.charge == "nothing"
    with pytest.raises(ln.GuardError, match="Nothing was spent"):
        ln.release(PLAN, ROWS_IN_LOWER_CASE, seed=1, options=TENTH)


def test_release_and_guard_are_charged_together(tmp_path):
    ledger = ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(ln.PureDP(1)))
    with pytest.raises(ln.BudgetError):
        ln.release(
            ln.plan(WORKLOAD, ln.PureDP(1)),
            MATCHING_ROWS,
            ledger=ledger,
            options=ln.Options(guard="1/100"),
        )
    assert ledger.entries() == ()


@every_budget
def test_budgets_of_guard_and_plan_add_up(budget):
    whole_privacy = ln.Privacy(budget, "replace", "id", 3)
    for share in (Fraction(1, 100), Fraction(1, 3)):
        plan_privacy = without_guard(whole_privacy, share)
        together = with_guard(plan_privacy, share)
        if share == Fraction(1, 100) or not isinstance(budget, ln.ApproxDP):
            assert together == whole_privacy
        else:  # its mu squared is more than that share of the budget's
            assert size(plan_privacy.budget) < (1 - share) * size(together.budget)
            assert size(together.budget) <= size(budget)
        guard = guard_measurements(plan_privacy, share).privacy.budget
        assert size(guard) == share * (size(plan_privacy.budget) + size(guard))


SHARES = ["1/100", "1/20", "1/10", "1/5", "1/2"]
EPSILONS = ["0.1", "1", "5"]
DELTAS = ["1e-6", "1e-9", "1e-12"]
# Each pair of a share, an epsilon or a delta occurs in one of these cases.
PAIRWISE = [
    (share, epsilon, DELTAS[(row + column) % 3])
    for row, share in enumerate(SHARES)
    for column, epsilon in enumerate(EPSILONS)
]


@pytest.mark.parametrize(("share", "epsilon", "delta"), PAIRWISE)
def test_guard_and_plan_are_within_mu_squared(share, epsilon, delta):
    part = Fraction(share)
    budget = ln.ApproxDP(epsilon, delta)
    planned = without_guard(ln.Privacy(budget), part).budget
    guard = guard_budget(planned, part)
    for guarded_budget in (budget, with_guard(ln.Privacy(planned), part).budget):
        guard_charge = charge(guarded_budget, guard, PureCost(guard.epsilon))
        gaussian = GaussianCost(gaussian_mu_squared(planned.epsilon, planned.delta))
        for cost in (gaussian, PureCost(planned.epsilon)):
            assert is_within_budget(
                guarded_budget, [guard_charge, charge(guarded_budget, planned, cost)]
            )
    assert planned.epsilon + guard.epsilon <= budget.epsilon


EIGHT = ln.Domain(**{f"c{number}": ["0", "1", "2"] for number in range(8)})
EIGHT_ROWS = pd.DataFrame({name: ["0", "1", "2"] * 1000 for name in EIGHT.names})
PAIRS = ln.marginals(EIGHT, ways=2)  # 28 tables, for which Gaussian noise is best


@pytest.mark.slow
@pytest.mark.parametrize("share", ["1/20", "1/10"])
@pytest.mark.parametrize("kind", ["gaussian", "pure"])
@pytest.mark.parametrize("is_whole_given", [True, False])
def test_new_ledger_pays_a_guard_and_its_plan(tmp_path, share, kind, is_whole_given):
    """A new ledger's budget is large enough for the release after the guard."""
    budget = ln.ApproxDP(1, "1e-6")
    workload = PAIRS if kind == "gaussian" else ln.marginals(EIGHT, ways=1, of=["c0"])
    plan = ln.plan(workload, budget, guard=share)
    assert plan.cost().kind == kind
    ln.release(
        plan,
        EIGHT_ROWS,
        ledger=tmp_path / "p.ledger",
        dataset="p",
        options=ln.Options(guard=share),
        total_privacy=ln.Privacy(budget) if is_whole_given else None,
    )
    ledger = ln.Ledger.open(tmp_path / "p.ledger")
    assert len(ledger.entries()) == 2
    if is_whole_given:
        assert ledger.privacy.budget == budget
    else:
        assert ledger.privacy.budget.epsilon <= 1


def test_guard_that_a_new_ledger_cannot_follow_is_unpaid(tmp_path):
    """A plan without room for its guard that costs exactly the whole budget."""
    plan = ln.plan(PAIRS, ln.ApproxDP(1, "1e-6"))
    with pytest.raises(ln.BudgetError, match="Nothing was spent"):
        ln.release(
            plan,
            EIGHT_ROWS,
            ledger=tmp_path / "p.ledger",
            options=TENTH,
            total_privacy=ln.Privacy(ln.ApproxDP(1, "1e-6")),
        )
    assert not (tmp_path / "p.ledger").exists()


class SpendAfterGuard(logging.Handler):
    """Spends the rest of a ledger, as another process may, between a guard and its release."""

    def __init__(self, ledger):
        super().__init__()
        self.ledger = ledger

    def emit(self, record):
        if record.getMessage().startswith("guard: about"):
            self.ledger.add_spent(ln.PureDP(1))


def test_refusal_after_a_paid_guard_states_the_payment(tmp_path):
    ledger = ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(ln.PureDP(1)))
    logger = logging.getLogger("leastnoise")
    handler = SpendAfterGuard(ledger)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with pytest.raises(ln.PaidError, match=r"Its guard was paid \(epsilon = 0.1\)") as caught:
            ln.release(PLAN, MATCHING_ROWS, ledger=ledger, options=TENTH)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert "othing was spent" not in str(caught.value)
    assert caught.value.state == "guard"
    assert isinstance(caught.value.cause, ln.BudgetError)
    ledger.set_budget(ln.PureDP(2))
    # The second call uses the counts of the paid guard.
    release = ln.release(PLAN, MATCHING_ROWS, ledger=ledger, options=TENTH)
    assert release.private
    assert [str(entry.charge) for entry in ledger.entries() if entry.kind == "release"] == [
        "epsilon = 0.1",
        "epsilon = 0.9",
    ]


def possible_counts(max_rows, columns):
    """Return the counts of every possible unit: used, unused and cut rows, and per column.

    The count of a column is the number of used rows without a value less those with one.
    """
    counts = set()
    for rows in range((MOST_CUT + 1) * max_rows + 3):
        kept = min(rows, max_rows)
        cut = min(rows - kept, MOST_CUT * kept)
        for used in range(kept + 1):
            for of_columns in itertools.product((-used, 0, used), repeat=columns):
                if sum(map(abs, of_columns)) <= used:
                    counts.add((used, kept - used, cut, *of_columns))
    return counts


@both_relations
@pytest.mark.parametrize("budget", BUDGETS[:3], ids=repr)
@pytest.mark.parametrize("totals", [{}, {"paid": UnitTotal("amount", -1, 2)}], ids=len)
@pytest.mark.parametrize("columns", [0, 2])
@pytest.mark.parametrize("max_rows", [1, 2, 5])
def test_guard_loss_of_a_unit_is_exactly_its_share(budget, neighbours, max_rows, columns, totals):
    """Try every possible unit against none and against every other unit.

    For a total the guard adds up the kept and the cut amounts, in as many cells as the unit may
    have rows.
    """
    privacy = ln.Privacy(budget, neighbours, "id", max_rows)
    measured = guard_measurements(privacy, Fraction(1, 100), columns, totals)
    scales = {block.measure: block.scale for block in measured.blocks}
    scale_of_count = [scales[None], scales[None], scales[CUT], *[scales.get(LACKING)] * columns]

    no_rows = (0,) * (3 + columns)
    units = possible_counts(max_rows, columns)
    pairs = itertools.product(units, units if neighbours == "replace" else {no_rows})
    differences = {tuple(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in pairs}
    for name, total in totals.items():
        # The largest changes of both amounts, whatever the rows of the unit are.
        kept_change = max_rows * total.largest
        cut_change = max_rows * cut_limit(total.largest)
        differences = {(*counts, kept_change, cut_change) for counts in differences}
        scale_of_count += [scales[kept_amount(name)], scales[cut_amount(name)]]

    worst_loss = Fraction(0)
    for counts in differences:
        shifts = [
            Fraction(change) / scale for change, scale in zip(counts, scale_of_count, strict=True)
        ]
        if measured.noise is Noise.DISCRETE_LAPLACE:
            loss = sum(shifts)
        else:
            loss = sum(shift**2 for shift in shifts) / 2
        worst_loss = max(worst_loss, loss)
    budget_size = size(measured.privacy.budget)
    assert worst_loss <= budget_size
    # An unused row lacks no column, so a replaced unit does not reach both bounds at once.
    if columns == 0 or neighbours == "add_remove":
        assert float(worst_loss / budget_size) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("share", ["0", "3/4", "-1", float("nan")])
def test_invalid_shares_of_a_guard_are_refused(share):
    with pytest.raises(ln.InputError, match="guard must be"):
        ln.plan(WORKLOAD, ln.PureDP(1), guard=share)


@pytest.mark.parametrize("scale", [0.7, 3.0, 40.0])
def test_false_stops_are_as_rare_as_the_proof_says(scale):
    """The tail of a difference of two draws is recomputed by convolution."""
    reach = math.ceil(60 * scale)
    draw_law = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    draw_law /= draw_law.sum()
    difference_law = np.convolve(draw_law, draw_law)
    for rows in (1, 2, math.ceil(4 * scale), math.ceil(9 * scale)):
        assert laplace_difference_tail(rows, scale) == pytest.approx(
            difference_law[2 * reach + rows :].sum(), rel=1e-9
        )
    bound = noise_difference_bound(Noise.DISCRETE_LAPLACE, scale)
    assert (
        difference_law[2 * reach + bound + 1 :].sum()
        <= WRONG
        < difference_law[2 * reach + bound :].sum()
    )
    gaussian = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    gaussian /= gaussian.sum()
    assert (
        np.convolve(gaussian, gaussian)[
            2 * reach + noise_difference_bound(Noise.DISCRETE_GAUSSIAN, scale) + 1 :
        ].sum()
        <= WRONG
    )


def test_guard_stops_half_used_rows_below_one_in_1000():
    """The worst correct spec uses exactly half of the rows; the noise law is exact."""
    measured = guard_measurements(
        without_guard(ln.Privacy(ln.PureDP("1/10")), Fraction(1, 100)), Fraction(1, 100)
    )
    scale = float(measured.blocks[0].scale)
    assert scale == 1000
    assert (
        laplace_difference_tail(noise_difference_bound(measured.noise, scale) + 1, scale) < 1 / 1000
    )


@pytest.mark.parametrize("attribute", ["month", "rows"])
def test_cell_bound_does_not_affect_the_guard(tmp_path, attribute):
    privacy = ln.Privacy(
        ln.ZCDP(1), unit_column="id", max_rows=12, max_per_cell=ln.PerCellBound(1, attribute)
    )
    measured = guard_measurements(privacy, Fraction(1, 10))
    all_used = sum(
        Fraction(change) ** 2 / (2 * block.scale**2)
        for change, block in zip((12, 36), measured.blocks, strict=True)
    )
    assert all_used <= measured.privacy.budget.rho
    months = [str(month) for month in range(12)]
    plan = ln.plan(ln.marginals(ln.Domain({attribute: months}), ways=1), privacy, guard="1/10")
    release = ln.release(
        plan,
        pd.DataFrame({"id": np.repeat(range(200), 12), attribute: months * 200}),
        ledger=tmp_path / "a.ledger",
        options=TENTH,
    )
    assert release.receipt.guard.noise_std**2 >= 12**2 / (2 * 0.1)


def test_entered_release_includes_its_guard(tmp_path):
    ln.release(
        PLAN,
        MATCHING_ROWS,
        ledger=tmp_path / "a.ledger",
        dataset="people",
        out=tmp_path / "out",
        options=TENTH,
    )
    other_ledger = ln.Ledger.create(tmp_path / "b.ledger", "people", ln.Privacy(ln.PureDP(9)))
    enter_release(other_ledger, tmp_path / "out")
    assert str(other_ledger.left()) == "epsilon = 8"
    assert len(other_ledger.entries()) == 2
    with pytest.raises(ln.LedgerError, match="already"):
        enter_release(other_ledger, tmp_path / "out")
    assert len(other_ledger.entries()) == 2


# --- releases that would publish nothing ----------------------------------------------------------

SEX_AGE = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9))
BY_SEX = ln.queries(SEX_AGE, sex="identity") + ln.queries(SEX_AGE, age="identity")
HUNDREDTH = ln.Options(guard="1/100")
MALFORMED = {
    "trailing delimiter": "sex;age\n" + "F;3;\nM;4;\n" * 100,
    "row names of R": '"sex","age"\n' + '"1","F",3\n"2","M",4\n' * 100,
    "escaped quotes": "sex,age,remark\n" + 'F,3,"said \\"no\\""\n' * 120 + 'M,4,"fine"\n' * 80,
    "nothing but a header": "sex,age\n",
    "blank lines": "sex,age\n" + "\n" * 200,
    "too long lines": "sex,age\n" + ("F" * 2_100_000 + ",3\n") * 3,
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("seed", [None, 3])
def test_guard_stops_files_with_broken_lines(tmp_path, content, seed, monkeypatch):
    (tmp_path / "x.csv").write_text(content)
    if seed is None:
        # A source without rows passes with a chance of 1 in 200, too often for a random run.
        monkeypatch.setattr("leastnoise._session._guard_counts.MISSED", 1e-9)
    plan = ln.plan(BY_SEX, ln.PureDP(400), guard="1/100")
    payment = {"ledger": tmp_path / "x.ledger"} if seed is None else {"seed": seed}
    with pytest.raises(ln.GuardError, match="The guard stopped this release"):
        ln.release(plan, tmp_path / "x.csv", options=HUNDREDTH, **payment)
    if seed is None:
        assert ln.Ledger.open(tmp_path / "x.ledger").left().epsilon == 396


@pytest.mark.parametrize("ids", ["", "NA"])
def test_guard_stops_a_source_whose_units_are_empty(tmp_path, ids):
    (tmp_path / "x.csv").write_text("id,sex,age\n" + f"{ids},F,3\n{ids},M,4\n" * 300)
    reading = ln.Reading(nulls=["NA"])
    privacy = ln.Privacy(ln.PureDP(400), unit_column="id", unit_reading=reading)
    with pytest.raises(ln.GuardError, match="noise alone could give this count without a used row"):
        ln.release(
            ln.plan(BY_SEX, privacy, guard="1/100"), tmp_path / "x.csv", seed=1, options=HUNDREDTH
        )


def test_guard_compares_with_a_public_number_of_rows(tmp_path):
    (tmp_path / "x.csv").write_text("sex,age\n" + "F,3\nM,4\n" * 100)
    plan = ln.plan(BY_SEX, ln.PureDP(100), guard="1/100")
    for rows in (199, 350):
        released = ln.release(
            plan, tmp_path / "x.csv", seed=1, options=ln.Options(guard="1/100", rows=rows)
        )
        assert abs(released.receipt.guard.used - 200) < 20
    with pytest.raises(ln.GuardError, match="fewer than half of the 5,000 that"):
        ln.release(plan, tmp_path / "x.csv", seed=1, options=ln.Options(guard="1/100", rows=5000))


@pytest.mark.parametrize("rows", [0, -1, 2.5, 2**70])
def test_public_rows_are_checked(rows):
    with pytest.raises(ln.InputError, match="rows must be"):
        ln.Options(rows=rows)


AMOUNTS = ln.Domain(dep=["01", "2A"], measures={"revenu": ln.Measure("revenu", 0, 100, unit="0.1")})
SUMS = ln.queries(AMOUNTS, dep="identity", sum="revenu")


def french_file(folder, share):
    """Write 1000 rows, of which a share has amounts with a decimal comma and the rest nulls."""
    lines = [
        f'"{("01", "2A")[row % 2]}";"{"21,5" if row < 1000 * share else ""}"' for row in range(1000)
    ]
    (folder / "fr.csv").write_text("\n".join(['"dep";"revenu"', *lines, ""]))
    return folder / "fr.csv"


def test_guard_stops_amounts_that_are_not_numbers(tmp_path):
    plan = ln.plan(SUMS, ln.PureDP(100), guard="1/100")
    with pytest.raises(ln.GuardError, match="fewer than half"):
        ln.release(plan, french_file(tmp_path, 1), seed=1, options=HUNDREDTH)
    released = ln.release(plan, french_file(tmp_path, 0), seed=1, options=HUNDREDTH)
    assert abs(released.receipt.guard.used - 1000) < 20  # nulls are no fault


@pytest.mark.slow
def test_every_row_is_used_or_not_and_never_both(tmp_path):
    """One more line of any content changes exactly one of the two counts by one."""
    lines = [
        "F,3,7",
        "F,3,x",
        "X,3,7",
        "F,3",
        'F,"3',
        "",
        "F,3,7,8",
        "F" * 2_100_001,
        ",,",
        "M,99,inf",
    ]
    domain = ln.Domain(
        {"sex": ["F", "M"], "age": ln.Integers(0, 9)}, measures={"m": ln.Measure("m", 0, 9)}
    )

    def counted(chosen):
        (tmp_path / "x.csv").write_text("".join(f"{line}\n" for line in ["sex,age,m", *chosen]))
        table = read(tmp_path / "x.csv", domain, read_request=ReadRequest(usage=True))
        cells, cut = (
            next(exact_marginals(table.usage, [names], name))[1]
            for names, name in ((("rows",), None), ((), "cut"))
        )
        return np.array([*cells.reshape(-1), *cut.reshape(-1)])

    rng = np.random.default_rng(0)
    for _ in range(60):
        chosen = [lines[index] for index in rng.integers(len(lines), size=rng.integers(0, 9))]
        position = rng.integers(len(chosen) + 1)
        line = lines[rng.integers(len(lines))]
        change = counted([*chosen[:position], line, *chosen[position:]]) - counted(chosen)
        assert sorted(change.tolist()) == [0, 0, 1]
        assert change[0] == (line == "F,3,7")


# --- columns of some tables only ------------------------------------------------------------------


def sexes_and_ages(rows, missing_ages, nonresponse=0.0):
    """Return rows of which the first lack an age, and others at random."""
    random = np.random.default_rng(5)
    ages = random.integers(0, 10, rows).astype(str).astype(object)
    ages[:missing_ages] = "??"
    ages[random.random(rows) < nonresponse] = None
    return pd.DataFrame({"sex": random.choice(["F", "M"], rows), "age": ages})


@pytest.mark.slow
@pytest.mark.parametrize(
    "workload",
    [
        BY_SEX,
        ln.queries(SEX_AGE, sex="identity") + ln.marginals(SEX_AGE, ways=2),
        ln.queries(SEX_AGE, sex="identity") + ln.queries(SEX_AGE, age="prefix", sex="identity"),
    ],
    ids=["apart", "one more", "prefix"],
)
@every_budget
def test_guard_stops_a_column_that_only_some_tables_use(tmp_path, workload, budget):
    """It stops at its share of rows, and the rest of the budget pays the corrected release."""
    plan = ln.plan(workload, budget, guard="1/100")
    payment = {"ledger": tmp_path / "people.ledger", "options": HUNDREDTH}
    with pytest.raises(ln.GuardError, match=r"nearly all of about [\d,]+ used rows have no value"):
        ln.release(plan, sexes_and_ages(6000, 6000), **payment)
    ledger = ln.Ledger.open(tmp_path / "people.ledger")
    (entry,) = ledger.entries()
    assert size(entry.charge) == size(budget) / 100
    assert ln.release(plan, sexes_and_ages(6000, 60), **payment).private


def test_guard_stops_a_single_table_that_would_be_empty():
    """The only table, each of two tables, and one table by a column without any value."""
    damaged = sexes_and_ages(3000, 3000)
    for workload in (
        ln.queries(SEX_AGE, age="identity"),
        ln.queries(SEX_AGE, age="identity") + ln.queries(SEX_AGE, age="prefix", sex="identity"),
    ):
        plan = ln.plan(workload, ln.PureDP(1), guard="1/100")
        with pytest.raises(ln.GuardError, match="with high confidence, fewer than half"):
            ln.release(plan, damaged, seed=1, options=HUNDREDTH)


@pytest.mark.parametrize("rows", [3000, 6000, 40_000])
def test_guard_passes_columns_with_honest_nonresponse(rows):
    plan = ln.plan(BY_SEX, ln.PureDP(1), guard="1/100")
    for seed in range(5):
        people = sexes_and_ages(rows, 0, nonresponse=0.2)
        assert ln.release(plan, people, seed=seed, options=HUNDREDTH).receipt.guard.used > 0
    half_missing = sexes_and_ages(40_000, 0, nonresponse=0.6)
    assert ln.release(plan, half_missing, seed=1, options=HUNDREDTH)


def drawn_noise(noise, scale, draws):
    """Return draws of a kind of noise by numpy."""
    random = np.random.default_rng(9)
    if noise is Noise.DISCRETE_GAUSSIAN:
        return np.rint(random.normal(0, scale, draws))
    chance = -math.expm1(-1 / scale)
    return random.geometric(chance, draws) - random.geometric(chance, draws)


@pytest.mark.parametrize("columns", [1, 2, 7])
@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.PureDP(40), ln.ZCDP("1/2")], ids=repr)
def test_missing_columns_stop_as_rarely_as_proved(budget, columns):
    """Simulated with a quarter of the rows without a value, and with all of them."""
    measured = guard_measurements(ln.Privacy(budget), Fraction(1, 100), columns)
    scale = float(measured.blocks[0].scale)
    enough = rows_to_detect_missing_column(measured)
    draws = 4000
    random = np.random.default_rng(3)
    for rows in (enough // 4, enough, 5 * enough):
        used = rows + drawn_noise(measured.noise, scale, draws)
        bounds = np.array([missing_column_threshold(measured, int(number)) for number in used])
        noise = random.permutation(drawn_noise(measured.noise, scale, draws))
        of_column = random.binomial(rows, 1 / columns, draws)
        missing_values = random.binomial(of_column, 1 / 4)
        stops = 2 * missing_values - of_column + noise > bounds
        assert stops.mean() <= WRONG_COLUMN / columns + 3 * math.sqrt(WRONG_COLUMN / draws)
        if rows >= enough:
            assert (of_column + noise > bounds).mean() > 1 - 4 * MISSED
        tenths = 2 * random.binomial(of_column, 3 / 4) - of_column
        if rows > 4 * enough:  # a quarter of many rows has a value, so the table is not empty
            assert (tenths + noise > bounds).mean() < 0.02


def test_guard_forecast_names_the_columns_it_looks_at():
    plan = ln.plan(BY_SEX, ln.PureDP("0.99"))
    forecast = forecast_guard(plan.privacy, Fraction(1, 100), columns=optional_attributes(plan))
    assert forecast.columns == ("sex", "age")
    assert 3000 < (forecast.rows_of_columns or 0) < 5000
    assert (
        "value in sex, age, which not all tables use, if at least about 4," in forecast.describe()
    )
    complete = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9, null="cell", outside="clip"))
    plan = ln.plan(ln.marginals(complete, ways=1), ln.PureDP("0.99"))
    assert optional_attributes(plan) == ("sex",)


def test_row_changes_the_count_of_one_column_by_one():
    """All rows of two columns, and all draws."""
    for rows in range(4):
        for cells in itertools.product((False, True), repeat=2 * rows):
            hidden = np.array(cells, dtype=bool).reshape(2, rows)
            for draw in itertools.product((0, 1), repeat=rows):
                keys = np.array(draw, dtype="<u8")
                counted = lacking_rows([*hidden], lambda _, keys=keys: keys.tobytes())
                for row in range(rows):
                    other_keys = np.delete(keys, row).tobytes()
                    without = lacking_rows(
                        [*np.delete(hidden, row, 1)], lambda _, rest=other_keys: rest
                    )
                    change = sorted(abs(a - b) for a, b in zip(counted, without, strict=True))
                    assert change == [0, 1]


# --- a corrected release --------------------------------------------------------------------------


@every_budget
@pytest.mark.parametrize("stops", [1, 3])
def test_corrected_release_fits_into_the_budget(tmp_path, budget, stops):
    ledger_file = tmp_path / "people.ledger"
    plan = ln.plan(WORKLOAD, budget, guard="1/100")
    options = ln.Options(guard="1/100")
    for _ in range(stops):
        with pytest.raises(ln.GuardError, match="fits into what the ledger has left"):
            ln.release(plan, ROWS_IN_LOWER_CASE, ledger=ledger_file, options=options)
    release = ln.release(
        plan, MATCHING_ROWS, ledger=ledger_file, out=tmp_path / "out", options=options
    )
    ledger = ln.Ledger.open(ledger_file)
    budget_left = ledger.left()
    assert (budget_left.epsilon, budget_left.rho) == (0, 0)
    assert ledger.privacy.budget == budget
    *guards, released = ledger.entries()
    assert len(guards) == stops + 1
    of_stopped = sum(size(entry.charge) for entry in guards[:-1])
    assert size(release.privacy.budget) == size(budget) - of_stopped
    assert size(guards[-1].charge) == size(release.privacy.budget) / 100
    assert size(released.charge) + sum(size(entry.charge) for entry in guards) == size(budget)
    assert (
        release.plan.data_independent_error.tables[0].largest_std
        > plan.data_independent_error.tables[0].largest_std
    )
    assert manifest(tmp_path / "out")["receipt"]["guard_reduced_from"].endswith(
        str(size(budget)) if size(budget) == 1 else "0.5"
    )
    assert "instead of" in report(tmp_path / "out")
    with pytest.raises(ln.BudgetError):
        ln.release(plan, MATCHING_ROWS, ledger=ledger_file, options=options)


def test_reduced_release_without_a_guard_is_read_back(tmp_path):
    ledger = tmp_path / "people.ledger"
    with pytest.raises(ln.GuardError):
        ln.release(
            ln.plan(WORKLOAD, ln.PureDP(1), guard="1/10"),
            ROWS_IN_LOWER_CASE,
            ledger=ledger,
            options=TENTH,
        )
    ln.release(ln.plan(WORKLOAD, ln.PureDP(1)), MATCHING_ROWS, ledger=ledger, out=tmp_path / "out")
    receipt = ln.read_release(tmp_path / "out").receipt
    assert receipt.guard is None
    assert receipt.guard_reduced_from == "epsilon = 1"


def test_only_stopped_guards_reduce_a_release(tmp_path):
    """The spending of an ordinary release does not reduce the next one."""
    ledger = ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(ln.PureDP("3/2")))
    ln.release(PLAN, MATCHING_ROWS, ledger=ledger, options=TENTH)
    with pytest.raises(ln.BudgetError):
        ln.release(PLAN, MATCHING_ROWS, ledger=ledger, options=TENTH)
    assert len(ledger.entries()) == 2


def test_release_with_room_in_ledger_is_not_reduced(tmp_path):
    ledger = ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(ln.PureDP(3)))
    with pytest.raises(ln.GuardError):
        ln.release(PLAN, ROWS_IN_LOWER_CASE, ledger=ledger, options=TENTH)
    release = ln.release(PLAN, MATCHING_ROWS, ledger=ledger, options=TENTH)
    assert release.privacy.budget == ln.PureDP(1)
    assert release.receipt.guard_reduced_from is None


@pytest.mark.parametrize("noise", [Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN])
@pytest.mark.parametrize("scale", [0.7, 3.0, 40.0])
def test_guard_draw_exceeds_bound_as_rarely_as_proved(noise, scale):
    values = np.arange(-math.ceil(80 * scale), math.ceil(80 * scale) + 1)
    laplace = noise is Noise.DISCRETE_LAPLACE
    chances = np.exp(-np.abs(values) / scale if laplace else -(values**2) / (2 * scale**2))
    chances /= chances.sum()
    for chance in (1 / 20, MISSED, WRONG):
        bound = single_draw_bound(noise, scale, chance)
        assert chances[values > bound].sum() <= chance
        assert chances[values > bound - 2].sum() > chance or bound == 0
