"""Several releases from one (epsilon, delta) ledger: errors, kinds of plans, and shares."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._spec import read_spec
from leastnoise._trusted.accounting import Charge, GaussianCost, gaussian_mu_squared

WHOLE = ln.ApproxDP(1, "1e-6")
DOMAIN = ln.Domain(age=ln.Integers(0, 31), sex=["F", "M"])
FLAGS = ln.Domain(sex=["F", "M"], left=["no", "yes"], right=["no", "yes"])
ROWS = pd.DataFrame(
    {
        "age": [number % 20 for number in range(4000)],
        "sex": ["F", "M"] * 2000,
        "left": ["no", "yes"] * 2000,
        "right": ["yes", "no"] * 2000,
    }
)
TABLES = ln.marginals(DOMAIN, ways=1)


def root_mean_square_error(plan):
    """Return the root mean square error over all queries of a plan."""
    expected_error = plan.expected_error()
    return math.sqrt(
        expected_error.total_squared_error / sum(table.queries for table in expected_error.tables)
    )


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(WHOLE))


@pytest.mark.parametrize(("count", "ratio"), [(2, 1.397), (12, 3.387)])
def test_shares_have_the_error_that_mu_allows(count, ratio):
    domain = ln.Domain(**{f"x{number}": ln.Integers(0, 5) for number in range(6)})
    workload = ln.marginals(domain, ways=2)
    pairs = ln.plan(workload, WHOLE.scaled(Fraction(1, count)), strategy="marginals")
    shared = ln.plan(workload, WHOLE.share(Fraction(1, count)), strategy="marginals")
    assert root_mean_square_error(pairs) / root_mean_square_error(shared) == pytest.approx(
        ratio, rel=0.002
    )


@pytest.mark.parametrize("strategy", ["auto", "identity", "dawa", "k_norm"])
def test_four_quarters_spend_the_whole_budget(ledger, strategy):
    workload = TABLES
    if strategy == "k_norm":
        workload = ln.marginals(FLAGS, ways=1)
    if strategy == "dawa":
        workload = ln.queries(DOMAIN, age="all_ranges")
    plan = ln.plan(workload, WHOLE.share("1/4"), strategy=strategy, seconds=1)
    for number in range(4):
        release = ln.release(plan, ROWS, ledger=ledger)
        assert release.private
        assert len(ledger.entries()) == number + 1
    assert ledger.spent().mu_squared == gaussian_mu_squared(1, "1e-6")
    is_pure = strategy == "k_norm"  # their epsilons may add up to that of the budget
    assert ledger.left().mu_squared == 0
    assert (ledger.left().epsilon > 0) == is_pure
    with pytest.raises(ln.BudgetError, match="is left"):
        ln.release(ln.plan(TABLES, WHOLE.share("1/4"), strategy="fourier"), ROWS, ledger=ledger)


def test_data_dependent_pairs_come_first_or_take_a_share(ledger):
    workload = ln.queries(DOMAIN, age="all_ranges")
    ln.release(ln.plan(TABLES, WHOLE.share("1/2")), ROWS, ledger=ledger)
    pair = ln.plan(workload, ln.ApproxDP("1/10", "1e-7"), strategy="dawa")
    with pytest.raises(ln.BudgetError, match=r"paid before the other .* share of the budget"):
        ln.release(pair, ROWS, ledger=ledger)
    ln.release(ln.plan(workload, WHOLE.share("1/2"), strategy="dawa"), ROWS, ledger=ledger)
    assert ledger.left() == Charge()


def test_laplace_noise_may_spend_the_whole_epsilon(ledger):
    plan = ln.plan(ln.marginals(DOMAIN, ways=1, of=["sex"]), WHOLE)
    assert plan.cost().kind == "pure"
    ln.release(plan, ROWS, ledger=ledger)
    assert str(ledger.entries()[0].charge).startswith("epsilon = 1, mu squared = about 1.51")
    assert ledger.left() == Charge()


def test_gaussian_plan_charges_its_exact_mu_squared(ledger):
    plan = ln.plan(TABLES, ln.ApproxDP("1/2", "1e-8"), strategy="fourier")
    cost = plan.cost()
    assert isinstance(cost, GaussianCost)
    ln.release(plan, ROWS, ledger=ledger)
    charge = ledger.entries()[0].charge.mu_squared
    assert cost.mu_squared <= charge <= cost.mu_squared * (1 + Fraction(1, 2**120))


def test_errors_of_a_share_are_as_promised():
    """By simulation, with Gaussian noise at a declared mu squared."""
    plan = ln.plan(TABLES, ln.GDP("1/4"), strategy="identity")
    truth = np.bincount(ROWS.age, minlength=32)
    errors = [ln.release(plan, ROWS, seed=seed).tables[0].answer - truth for seed in range(60)]
    measured = math.sqrt(np.mean(np.square(errors)))
    assert measured == pytest.approx(plan.expected_error().tables[0].rmse, rel=0.08)


SPEC = """
[source]
path = "people.csv"
[privacy]
epsilon = "1"
delta = "1e-6"
share = "1/4"
[domain.age]
integers = [0, 31]
[domain.sex]
categories = ["F", "M"]
[[workload]]
marginals = {{ ways = 1 }}
[plan]
seconds = 1
{more}
"""


def test_spec_pays_a_share_of_the_total_budget(tmp_path):
    (tmp_path / "people.toml").write_text(SPEC.format(more=""))
    spec = read_spec(tmp_path / "people.toml")
    assert spec.privacy == ln.Privacy(WHOLE.share("1/4"))
    assert spec.total_privacy == ln.Privacy(WHOLE)
    plan = ln.plan(spec.workload, spec.privacy)
    for number in range(4):  # the first makes the ledger, with the whole budget
        ln.release(
            plan,
            ROWS,
            ledger=tmp_path / "people.ledger",
            dataset="people",
            out=tmp_path / f"out{number}",
            total_privacy=spec.total_privacy,
        )
    assert ln.Ledger.open(tmp_path / "people.ledger").left() == Charge()


def test_guarded_shares_fit_into_the_whole(tmp_path):
    path = tmp_path / "people.ledger"
    options = ln.Options(guard="1/50")
    plan = ln.plan(TABLES, WHOLE.share("1/3"), guard="1/50")
    for _ in range(3):
        ln.release(
            plan, ROWS, ledger=path, dataset="d", options=options, total_privacy=ln.Privacy(WHOLE)
        )
    assert ln.Ledger.open(path).left() == Charge()


PAIRS_SPEC = """
[source]
path = "people.csv"
[privacy]
epsilon = "1"
delta = "1e-6"
{domain}
[[workload]]
marginals = {{ ways = 2 }}
[plan]
guard = "{guard}"
"""


@pytest.mark.parametrize("guard", ["1/100", "1/20", "1/10", "1/3"])
def test_ledger_of_a_guarded_spec_has_its_budget(tmp_path, guard):
    names = [f"c{number}" for number in range(8)]
    pd.DataFrame({name: ["0", "1"] * 1000 for name in names}).to_csv(
        tmp_path / "people.csv", index=False
    )
    domain = "\n".join(f'[domain.{name}]\ncategories = ["0", "1"]' for name in names)
    (tmp_path / "people.toml").write_text(PAIRS_SPEC.format(domain=domain, guard=guard))
    ln.read_spec(tmp_path / "people.toml").release(out=tmp_path / "out")
    ledger = ln.Ledger.open(tmp_path / "people.ledger")
    assert ledger.privacy.budget == WHOLE
    assert len(ledger.entries()) == 2


def test_pair_after_its_own_guard_is_unpaid(tmp_path):
    pair = ln.plan(
        ln.queries(DOMAIN, age="all_ranges"),
        ln.ApproxDP("1/10", "1e-7"),
        strategy="dawa",
        guard="1/10",
    )
    with pytest.raises(ln.BudgetError, match=r"also before a guard.* without a guard"):
        ln.release(
            pair,
            ROWS,
            ledger=tmp_path / "p.ledger",
            options=ln.Options(guard="1/10"),
            total_privacy=ln.Privacy(WHOLE),
        )
    assert not (tmp_path / "p.ledger").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('share = "1/4"', 'share = "0"'), "above 0 and at most 1"),
        (('share = "1/4"', 'share = "5/4"'), "above 0 and at most 1"),
        (('epsilon = "1"', 'epsilon = "least"'), r"\[privacy\] with share"),
        (
            ('categories = ["F", "M"]', "unknown = { most = 5 }"),
            r"\[privacy\] share cannot be used with unknown categories",
        ),
    ],
)
def test_share_that_cannot_be_taken_is_refused(tmp_path, change, message):
    (tmp_path / "people.toml").write_text(SPEC.format(more="").replace(*change))
    with pytest.raises(ln.InputError, match=message):
        read_spec(tmp_path / "people.toml")
