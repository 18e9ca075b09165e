"""Series of private steps: paid first, within the budget, of the kernel's own kinds."""

import inspect
import os
import pickle
import threading
import time
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from leastnoise._audit import series_on_rows
from leastnoise._domain import Domain, Integers, Measure, PerCellBound
from leastnoise._fitting import fit_noise_scales
from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    ApproxDP,
    Charge,
    GaussianCost,
    Noise,
    Privacy,
    PureDP,
    SeriesCost,
    charge_of_budget,
    pure_mu_squared,
)
from leastnoise._trusted.check import BudgetError, InputError
from leastnoise._trusted.kernel import (
    LeastCost,
    Ledger,
    ReleaseContract,
    SeededEntropy,
    Series,
    SystemEntropy,
    UnpaidSeries,
    _measurement,
    _series,
    simulate,
)
from leastnoise._trusted.linop import Identity
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._trusted.table import Columns, Table
from trusted.kernel.series import contract_of_one_step, many_steps, measure
from trusted.table.reach import reachable

DOMAIN = Domain(age=Integers(0, 7))
TABLE = Table(DOMAIN, {"age": [0] * 500 + [5, 6]})


def adaptive_contract(budget=PureDP(1), **privacy):  # noqa: B008 - frozen
    return many_steps(DOMAIN, Privacy(budget, **privacy))


def step(budget, mechanism=Noise.DISCRETE_LAPLACE, **privacy):
    blocks = [(Block((Factor(("age",), Identity(8)),), Fraction(1)), 1.0)]
    return fit_noise_scales(DOMAIN, Privacy(budget, **privacy), mechanism, blocks)


def least_cost(epsilon):
    """Return a selection of the partition of ages with the least cost."""
    return LeastCost(attributes=("age",), epsilon=Fraction(epsilon), penalty=Fraction(1))


def test_columns_that_were_not_read_are_refused_unpaid(ledger):
    domain = Domain(age=Integers(0, 7), sex=["F", "M"], measures={"pay": Measure("pay", 0, 9)})
    blocks = (Block((Factor(("age",), Identity(8)),), Fraction(9)), Block((), Fraction(99), "pay"))
    measurements = Measurements(
        domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    )
    without_age = Table(domain, {"sex": [0, 1]}, {"pay": [1, 2]})
    without_pay = Table(domain, {"age": [0, 1], "sex": [0, 1]})
    for table, message in (
        (without_age, "read without the attribute 'age'"),
        (without_pay, "read without the measure 'pay'"),
    ):
        series = UnpaidSeries(
            ReleaseContract(domain=domain, privacy=measurements.privacy), table, SeededEntropy(1)
        )
        uses = [
            partial(Series.paid, contract, table, ledger, output="out")
            for contract in (
                contract_of_one_step(measurements),
                many_steps(domain, measurements.privacy),
            )
        ]
        for use in (
            *uses,
            partial(simulate, measurements, table, SeededEntropy(1)),
            partial(series.measure, measurements),
        ):
            with pytest.raises(InputError, match=message):
                use()
        assert series.left().epsilon == 1
    series = UnpaidSeries(
        ReleaseContract(domain=domain, privacy=measurements.privacy), without_age, SeededEntropy(1)
    )

    with pytest.raises(InputError, match="read without the attribute 'age'"):
        series.choose(least_cost("1/4"))
    assert series.left().epsilon == 1
    assert ledger.entries() == ()


def test_series_is_paid_before_its_first_step(ledger, monkeypatch):
    plan = adaptive_contract()
    series = Series.paid(plan, TABLE, ledger, output="out", description="two steps")
    (entry,) = ledger.entries()
    assert series.receipt is not None
    assert (entry.id, entry.plan_digest, entry.charge) == (
        series.receipt.id,
        plan.digest(),
        charge_of_budget(PureDP(1)),
    )
    assert (entry.output, entry.description) == ("out", "two steps")
    assert ledger.left().epsilon == 0

    series.choose(least_cost("1/4"))
    observation = series.measure(step(PureDP("3/4")))
    assert observation.private is True
    assert observation.receipt == entry.id
    assert series.left().epsilon == 0
    assert len(ledger.entries()) == 1

    monkeypatch.setattr(
        _measurement,
        "exact_marginals",
        lambda *_: pytest.fail("the rows were touched before the ledger agreed"),
    )
    with pytest.raises(BudgetError, match=r"only (epsilon = )?0 is left"):
        measure(step(PureDP("1/3")), TABLE, ledger, output="again")

    word_counts: list[int] = []
    monkeypatch.setattr(SystemEntropy, "words", lambda self, count: word_counts.append(count))
    with pytest.raises(
        BudgetError,
        match=r"requests epsilon = 0\.1, but only epsilon = 0 of this release's budget is left",
    ):
        series.choose(least_cost("1/10"))
    with pytest.raises(BudgetError, match="Nothing was drawn"):
        series.measure(step(PureDP("1/10")))
    assert word_counts == []


@pytest.mark.parametrize(
    ("budget", "pure", "remaining_budget", "mechanism", "expected_left"),
    [
        (ZCDP("1/2"), "1/2", ZCDP("3/8"), Noise.DISCRETE_GAUSSIAN, "nothing"),
        (ApproxDP(1, "1e-6"), "1/4", ApproxDP("3/4", "1e-6"), Noise.ROUNDED_GAUSSIAN, "nothing"),
        (ApproxDP(1, "1e-6"), "1/4", PureDP("3/4"), Noise.DISCRETE_LAPLACE, "delta = 0.000001"),
    ],
)
def test_steps_are_charged_in_the_budget_definition(
    budget, pure, remaining_budget, mechanism, expected_left
):
    series = UnpaidSeries(adaptive_contract(budget), TABLE, SeededEntropy(1))
    series.choose(least_cost(pure))
    series.measure(step(remaining_budget, mechanism))
    assert str(series.left()) == expected_left


def test_step_that_fails_stays_charged(monkeypatch):
    series = UnpaidSeries(adaptive_contract(), TABLE, SeededEntropy(1))
    monkeypatch.setattr(LeastCost, "draw", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        series.choose(least_cost("1/2"))
    assert series.left().epsilon == Fraction(1, 2)


@pytest.mark.parametrize(
    ("public", "refused"),
    [
        ({"penalty": -1}, "penalty must be from 0"),
        ({"penalty": "x"}, "penalty"),
        ({"epsilon": "1e-18"}, "epsilon must be larger"),
        *(({"attributes": names}, "one name or two") for names in (("age", "age"), ())),
    ],
)
def test_impossible_choice_is_refused_uncharged(public, refused):
    series = UnpaidSeries(adaptive_contract(), TABLE, SeededEntropy(1))
    with pytest.raises(InputError, match=refused):
        series.choose(LeastCost(**{"attributes": ("age",), "epsilon": Fraction(1, 2)} | public))
    assert series.left().epsilon == 1


def test_foreign_class_is_not_kept_by_a_series(ledger):
    paid = Series.paid(adaptive_contract(), TABLE, ledger, output="out")

    class Twin(Series):
        __slots__ = ()

        def __hash__(self):
            return hash(paid)

        def __eq__(self, other):
            return True

    twin = object.__new__(Twin)
    object.__setattr__(twin, "contract", adaptive_contract(PureDP(10**6)))
    object.__setattr__(twin, "receipt", None)

    with pytest.raises(InputError, match="got a Twin, for which nothing was paid"):
        twin.measure(step(PureDP(10**6)))


def test_only_selections_of_the_kernel_are_drawn():
    class Cheap(LeastCost):
        pass

    series = UnpaidSeries(adaptive_contract(), TABLE, SeededEntropy(1))

    for stranger in (
        "a choice",
        Cheap(attributes=("age",), epsilon=Fraction(1), penalty=Fraction(0)),
    ):
        with pytest.raises(InputError, match="selection must be a LeastCost"):
            series.choose(stranger)
    assert series.left().epsilon == 1


def test_nothing_leads_from_a_series_to_the_rows():
    series = UnpaidSeries(adaptive_contract(), TABLE, SeededEntropy(1))
    series.choose(least_cost("1/4"))
    private_values = [
        reached
        for reached in reachable(series)
        if isinstance(reached, (np.ndarray, Table, Columns, SeededEntropy))
    ]
    assert private_values == []


class Known(SeededEntropy):
    """An entropy source with fixed words."""

    def words(self, count):
        return np.zeros(count, dtype=np.uint64)


def test_series_gives_no_access_to_rows():
    series = UnpaidSeries(adaptive_contract(), TABLE, SeededEntropy(1))
    assert repr(series) == "<Series on private rows, 0 steps>"
    with pytest.raises(TypeError, match="is not pickled"):
        pickle.dumps(series)
    with pytest.raises(TypeError, match=r"with Series\.paid"):
        Series()
    for name in ("contract", "receipt"):
        with pytest.raises(AttributeError, match="cannot be set"):
            setattr(series, name, None)
        with pytest.raises(AttributeError, match="cannot be deleted"):
            delattr(series, name)


def test_unpaid_draws_are_not_private():
    for source in (SystemEntropy(), Known(0)):
        series = UnpaidSeries(adaptive_contract(), TABLE, source)
        assert series.private is False
        assert series.receipt is None
    observation = simulate(step(PureDP(1)), TABLE, SeededEntropy(1))
    assert observation.private is False
    assert observation.receipt == ""
    with pytest.raises(InputError, match="got another source"):
        simulate(step(PureDP(1)), TABLE, Known(0))


@pytest.mark.parametrize(
    "unit",
    [
        {},
        {"unit_column": "house", "max_rows": 2},
        {"unit_column": "id", "max_rows": 3},
        {"unit_column": "id", "max_rows": 2, "max_per_cell": PerCellBound(1, "age")},
    ],
)
def test_series_rejects_rows_of_another_unit(unit):
    table = Table(DOMAIN, {"age": [0]}, **unit)
    with pytest.raises(InputError, match="another privacy unit"):
        UnpaidSeries(adaptive_contract(unit_column="id", max_rows=2), table, SeededEntropy(1))


# Its measurements cost an epsilon of 1/2.
TOO_EXPENSIVE = (PureDP("1/2"), Privacy(PureDP("1/4")))


def test_refused_series_costs_nothing(ledger):
    other_table = Table(Domain(age=Integers(0, 8)), {"age": [1]})
    with pytest.raises(InputError, match="with another domain"):
        Series.paid(adaptive_contract(), other_table, ledger, output="out")
    with pytest.raises(InputError, match="has a PureDP budget"):
        Series.paid(adaptive_contract(ZCDP(1)), TABLE, ledger, output="out")
    budget, declared = TOO_EXPENSIVE
    contract = contract_of_one_step(replace(step(budget), privacy=declared))
    with pytest.raises(
        InputError,
        match=r"their declared budget, PureDP\(epsilon='1/4'\). Make the plan again; nothing was",
    ):
        Series.paid(contract, TABLE, ledger, output="out")
    assert ledger.entries() == ()


def test_refused_step_costs_nothing():
    series = UnpaidSeries(adaptive_contract(), TABLE, SeededEntropy(1))
    with pytest.raises(InputError, match=r"must protect the unit of its series, .*; got one row"):
        series.measure(step(PureDP("1/2"), neighbours="replace"))
    budget, declared = TOO_EXPENSIVE
    with pytest.raises(InputError, match="cost more than their declared budget"):
        series.measure(replace(step(budget), privacy=declared))
    assert series.left().epsilon == 1


def test_two_threads_cannot_together_overspend(monkeypatch):
    series = UnpaidSeries(adaptive_contract(), TABLE, SeededEntropy(1))
    gate = threading.Barrier(8)
    real = _series.unspent_charge

    def slow_unspent_charge(budget, spent_charge):
        # Without a lock, another thread could run between check and charge.
        time.sleep(0.005)
        return real(budget, spent_charge)

    monkeypatch.setattr(_series, "unspent_charge", slow_unspent_charge)
    successes: list[int] = []

    def choose_at_once():
        gate.wait()
        try:
            series.choose(least_cost("1/3"))
            successes.append(1)
        except BudgetError:
            pass

    threads = [threading.Thread(target=choose_at_once) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(successes) == 3
    assert series.left().epsilon == 0


def test_forked_process_cannot_spend_again():
    series = UnpaidSeries(adaptive_contract(), TABLE, SeededEntropy(1))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            series.choose(least_cost("1"))
            os.write(writing, b"drawn")
        except InputError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)

    with os.fdopen(reading) as pipe:
        assert pipe.read().startswith("This Series was created in another process")
    assert series.left().epsilon == 1


def test_unpaid_series_draws_from_its_entropy():
    def values_drawn_from(entropy):
        series_pair = (
            series_on_rows(adaptive_contract(), {"age": [0, 0, 5]}, {}, entropy) for _ in range(2)
        )
        return [series.measure(step(PureDP(1))).values[0].tolist() for series in series_pair]

    assert (
        values_drawn_from(SeededEntropy(1))
        == values_drawn_from(SeededEntropy(1))
        != values_drawn_from(SeededEntropy(2))
    )
    first_draw, second_draw = values_drawn_from(SeededEntropy(1))
    assert first_draw != second_draw


def test_paid_series_accepts_no_other_noise_source(ledger):
    for maker in (Series.paid, Series.resumed, UnpaidSeries.paid, UnpaidSeries.resumed):
        assert "entropy" not in inspect.signature(maker).parameters
    # The result is a `Series`, although `paid` is called on another class.
    assert type(UnpaidSeries.paid(adaptive_contract(), TABLE, ledger, output="out")) is Series


MU_SQUARED = Fraction(1, 16)
WITHIN = ApproxDP(1, "1e-5")  # covers mu squared up to 0.0718


def gaussian(square=MU_SQUARED, budget=WITHIN):
    return replace(adaptive_contract(budget), shared_mu_squared=square)


def part(share):
    return step(ZCDP(MU_SQUARED / 2 * Fraction(share)), Noise.ROUNDED_GAUSSIAN)


def test_gaussian_steps_share_out_their_mu_squared(tmp_path, monkeypatch):
    book = Ledger.create(tmp_path / "people.ledger", "people", Privacy(WITHIN))
    series = Series.paid(gaussian(), TABLE, book, output="out")
    assert series.receipt is not None
    (entry,) = book.entries()
    assert (entry.charge, entry.cost) == (Charge(mu_squared=MU_SQUARED), GaussianCost(MU_SQUARED))
    series.measure(part("1/4"))
    assert series.left() == Charge(rho=MU_SQUARED / 2 * Fraction(3, 4))
    resumed = Series.resumed(gaussian(), None, book, series.receipt)
    assert resumed.measure(part("1/4")).values[0].shape == (8,)
    for mu_squared in (None, Fraction(7, 100)):
        with pytest.raises(InputError, match="must belong to the payment for this plan"):
            Series.resumed(
                replace(gaussian(), shared_mu_squared=mu_squared), TABLE, book, series.receipt
            )

    series.measure(part("3/4"))
    draws: list[int] = []
    monkeypatch.setattr(SystemEntropy, "words", lambda self, count: draws.append(count))
    with pytest.raises(BudgetError, match="only rho = 0 of this release's budget is left"):
        series.measure(part("1/1000"))
    assert draws == []


@pytest.mark.parametrize(
    "other_step",
    [
        step(PureDP("1/100")),
        step(ZCDP("1/1000"), Noise.DISCRETE_GAUSSIAN),
        step(ZCDP("1/1000"), Noise.DISCRETE_LAPLACE),
        least_cost("1/100"),
    ],
    ids=["pure", "discrete Gaussian", "Laplace", "choice"],
)
def test_gaussian_series_takes_rounded_gaussian_only(other_step):
    series = UnpaidSeries(gaussian(), TABLE, SeededEntropy(1))
    run_step = series.choose if isinstance(other_step, LeastCost) else series.measure
    with pytest.raises(
        InputError, match=r"rounded Gaussian noise; got another|are not allowed in a series"
    ):
        run_step(other_step)
    assert series.left() == Charge(rho=MU_SQUARED / 2)


def test_steps_of_all_kinds_share_a_gdp_budget(tmp_path):
    budget = GDP(MU_SQUARED)
    book = Ledger.create(tmp_path / "people.ledger", "people", Privacy(WITHIN))
    series = Series.paid(adaptive_contract(budget), TABLE, book, output="out")
    (entry,) = book.entries()
    assert (entry.charge, entry.cost) == (Charge(mu_squared=MU_SQUARED), SeriesCost(budget))

    series.choose(least_cost("1/10"))
    remaining = MU_SQUARED - pure_mu_squared(Fraction(1, 10))
    assert series.left() == Charge(mu_squared=remaining)
    assert budget.without(Fraction(1, 10)) == GDP(remaining)

    series.measure(step(GDP(remaining / 2), Noise.ROUNDED_GAUSSIAN))
    series.measure(step(GDP(remaining / 4)))
    with pytest.raises(BudgetError, match=r"is left\. Nothing was drawn"):
        series.measure(step(GDP(remaining / 2), Noise.ROUNDED_GAUSSIAN))
    assert series.left() == Charge(mu_squared=remaining / 4)


def test_gaussian_terms_stay_within_epsilon_and_delta(tmp_path):
    for refused in (PureDP(1), ZCDP(1)):
        with pytest.raises(InputError, match="mu-squared composition requires"):
            gaussian(budget=refused)
    with pytest.raises(InputError, match="mu-squared composition requires"):
        replace(
            contract_of_one_step(step(WITHIN, Noise.ROUNDED_GAUSSIAN)), shared_mu_squared=MU_SQUARED
        )
    for square in (Fraction(0), Fraction(-1)):
        with pytest.raises(InputError, match="shared_mu_squared must be"):
            gaussian(square)
    with pytest.raises(InputError, match="at most 1000 digits"):
        gaussian(Fraction(1, 9 * 10**999))

    book = Ledger.create(tmp_path / "people.ledger", "people", Privacy(WITHIN))
    with pytest.raises(InputError, match="not proved to cover its cost"):
        Series.paid(gaussian(Fraction(72, 1000)), TABLE, book, output="out")
    assert book.entries() == ()

    zcdp = Ledger.create(tmp_path / "rho.ledger", "people", Privacy(ZCDP(1)))
    Series.paid(gaussian(), TABLE, zcdp, output="out")
    assert zcdp.entries()[0].charge == Charge(rho=MU_SQUARED / 2)
