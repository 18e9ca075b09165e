"""What an (epsilon, delta) budget covers, against the best adaptive adversary."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    ApproxDP,
    Charge,
    GaussianCost,
    PureCost,
    PureDP,
    SeriesCost,
    _mu,
    charge,
    covers,
    gaussian_epsilon,
    gaussian_mu_squared,
    is_within_budget,
    largest_accepted,
    left_of_budget,
    pure_epsilon,
    pure_mu_squared,
    share_limit,
    spent_epsilon,
    sum_charges,
)
from leastnoise._trusted.accounting._deltas import gaussian_delta
from leastnoise._trusted.accounting._mu import pure_is_gaussian
from leastnoise._trusted.check import InputError

NORMAL = NormalDist()
WHOLE = ApproxDP(1, "1e-6")


def gaussian_charge(mu_squared):
    return Charge(mu_squared=mu_squared)


def pure_charge(epsilon):
    return charge(WHOLE, PureDP(epsilon), PureCost(epsilon))


# --- pure releases in mu --------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1e-9", "0.01", "0.3", "1", "4", "30"])
def test_pure_mu_matches_the_published_formula(epsilon):
    exact = Fraction(epsilon)
    computed = pure_mu_squared(exact)
    error = 1 / (1 + math.exp(float(exact)))
    assert math.sqrt(computed) == pytest.approx(-2 * NORMAL.inv_cdf(error), rel=1e-6)
    assert not pure_is_gaussian(exact, computed * (1 - Fraction(1, 2**40)))
    assert pure_is_gaussian(pure_epsilon(computed), computed)
    assert exact <= pure_epsilon(computed) <= exact * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "2"])
def test_pure_trade_off_is_above_the_gaussian_one(epsilon):
    """Compare the trade-off curves of Dong, Roth and Su (2022), section 2."""
    mu = math.sqrt(pure_mu_squared(Fraction(epsilon)))
    factor = math.exp(float(epsilon))
    for false_alarm in np.linspace(0.0005, 0.9995, 1999):
        gaussian_miss = NORMAL.cdf(NORMAL.inv_cdf(1 - false_alarm) - mu)
        pure_miss = max(0.0, 1 - factor * false_alarm, (1 - false_alarm) / factor)
        assert gaussian_miss <= pure_miss + 1e-12


def test_large_epsilon_has_a_simple_mu():
    assert pure_mu_squared(Fraction(2000)) == 16000
    assert pure_is_gaussian(Fraction(10**6), Fraction(8 * 10**6))
    assert not pure_is_gaussian(Fraction(10**6), Fraction(7 * 10**6))


@pytest.mark.parametrize("delta", ["0.1", "1e-6", "1e-300"])
def test_epsilon_of_mu_squared_is_proved(delta):
    square = gaussian_mu_squared(1, delta)
    assert gaussian_epsilon(square, delta) == pytest.approx(1, rel=1e-8)
    assert covers(ApproxDP(gaussian_epsilon(square, delta), delta), GaussianCost(square))
    assert gaussian_epsilon("1e-9", "0.5") == 0


# --- searches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("near", [None, "1e-30", "1/4", "1/3", "341/1024", "683/2048", "7e20"])
def test_search_ends_at_one_number_wherever_it_starts(near):
    start = None if near is None else Fraction(near)
    largest = largest_accepted(lambda number: number <= Fraction(1, 3), 12, start)
    assert largest == Fraction(2730, 2**13)


@pytest.mark.parametrize("epsilon", ["0.0123", "0.517", "1.01", "7.3"])
def test_searches_start_near_their_results(monkeypatch, epsilon):
    calls = []

    def counted(decide):
        return lambda *arguments: calls.append(arguments) or decide(*arguments)

    for name in ("gaussian_is_private", "pure_is_gaussian"):
        monkeypatch.setattr(_mu, name, counted(getattr(_mu, name)))
    square = gaussian_mu_squared(epsilon, "1e-9")
    gaussian_epsilon(square, "1e-9")
    pure_epsilon(pure_mu_squared(Fraction(epsilon)))

    assert len(calls) <= 4 * 12  # bisection takes 4 * 44


# --- the best adversary ---------------------------------------------------------------------------
# A release is a finite list of outcomes: their probabilities under P, and the logarithms of P / Q.

Release = tuple[np.ndarray, np.ndarray]


def binned_gaussian(mu, bins=40, reach=4):
    """Return bin probabilities of N(mu, 1) and N(0, 1), a post-processing of the two."""
    edges = np.linspace(-reach, reach + mu, bins - 1)
    under_p = np.diff([0.0, *[NORMAL.cdf(edge - mu) for edge in edges], 1.0])
    under_q = np.diff([0.0, *[NORMAL.cdf(edge) for edge in edges], 1.0])
    return under_p, np.log(under_p / under_q)


def randomised_response(epsilon, delta=0.0):
    """Return the worst release that is (epsilon, delta)-DP: all others are functions of it."""
    heads = math.exp(epsilon) / (1 + math.exp(epsilon))
    chances = [delta, (1 - delta) * heads, (1 - delta) * (1 - heads)]
    return np.array(chances), np.array([np.inf, epsilon, -epsilon])


def best_delta(epsilon, menu, is_allowed, depth):
    """Return the largest P(S) - e^epsilon Q(S) of any adaptive choice of allowed releases."""

    def largest_delta(charges, losses):
        """Return the largest delta that follows these charges, at these losses so far."""
        best = np.maximum(0.0, -np.expm1(epsilon - losses))
        if len(charges) == depth:
            return best
        for amount, (chances, steps) in menu:
            if not is_allowed([*charges, amount]):
                continue
            later = largest_delta((*charges, amount), (losses[:, None] + steps[None, :]).ravel())
            best = np.maximum(best, later.reshape(len(losses), -1) @ chances)
        return best

    return float(largest_delta((), np.zeros(1))[0])


E = Fraction(1, 2)
D = Fraction(1, 50)
BUDGET = ApproxDP(E, D)
SQUARE = gaussian_mu_squared(E, D)


def menu_entry(declared, cost):
    """Return a release with its charge, and the worst outcomes that its cost allows."""
    amount = charge(BUDGET, declared, cost)
    if isinstance(cost, GaussianCost):
        return amount, binned_gaussian(math.sqrt(cost.mu_squared))
    if isinstance(cost, PureCost):
        return amount, randomised_response(float(cost.epsilon))
    return amount, randomised_response(float(amount.epsilon), float(amount.delta))


def gaussian(share):
    square = SQUARE * Fraction(share)
    return menu_entry(GDP(square), GaussianCost(square))


def pure(epsilon):
    return menu_entry(PureDP(epsilon), PureCost(epsilon))


def with_delta(epsilon, delta):
    declared = ApproxDP(epsilon, delta)
    return menu_entry(declared, SeriesCost(declared))


@pytest.mark.parametrize(
    "menu",
    [
        [gaussian("1"), gaussian("1/2"), gaussian("1/3")],
        [gaussian("1/2"), pure("1/8"), pure("1/4")],
        [gaussian("1/4"), gaussian("3/4"), pure("1/2"), pure("1/10")],
        [pure("1/2"), pure("1/4"), gaussian("1/2")],
        [with_delta("1/4", "1/100"), gaussian("1/4"), pure("1/4")],
        [with_delta("1/8", "1/60"), with_delta("1/10", "1/90"), gaussian("1/8"), pure("1/8")],
    ],
)
def test_no_adaptive_mixture_exceeds_the_budget(menu):
    worst = best_delta(float(E), menu, lambda charges: is_within_budget(BUDGET, charges), depth=3)
    assert worst <= float(D) * (1 + 1e-9)


def test_gaussian_releases_use_the_whole_budget():
    worst = best_delta(
        float(E), [gaussian("1/2")], lambda charges: is_within_budget(BUDGET, charges), depth=3
    )
    assert worst >= 0.97 * float(D)


def test_late_delta_would_exceed_the_budget():
    """Without rule G4 each path fits the budget, but an adaptive choice of path does not."""
    early = gaussian("1/3")
    late = gaussian("2/3")
    own_delta = (D - gaussian_delta(E, early[0].mu_squared)) * Fraction(999, 1000)
    choices = [early, late, with_delta("1e-9", str(own_delta))]

    def covers_path(charges):
        total = sum_charges(charges)
        if total.delta >= D:
            return False
        return total.mu_squared <= gaussian_mu_squared(E, D - total.delta)

    assert best_delta(float(E), choices, covers_path, depth=2) > 1.4 * float(D)

    worst = best_delta(
        float(E), choices, lambda charges: is_within_budget(BUDGET, charges), depth=2
    )
    assert worst <= float(D) * (1 + 1e-9)


def test_raise_does_not_divide_charges_anew():
    """The adversary also chooses from earlier outputs whether the budget is raised.

    If pure charges too large for mu were summed, these would be summed within the first budget and
    composed within the second, and the choice would have more than the delta of both.
    """
    first_budget = WHOLE
    raised = ApproxDP(3, "1e-6")
    count = 4
    pure_step = pure_charge(Fraction(1, 5))
    remaining = gaussian_mu_squared(3, "1e-6") - count * pure_step.mu_squared
    menu = [
        (pure_step, randomised_response(0.2)),
        (gaussian_charge(remaining), binned_gaussian(math.sqrt(remaining), bins=300, reach=7)),
        (
            Charge(epsilon=Fraction(1, 10**6), delta=first_budget.delta),
            randomised_response(1e-6, 1e-6),
        ),
    ]
    assert is_within_budget(raised, [*[pure_step] * count, gaussian_charge(remaining)])

    def is_covered(charges):
        return is_within_budget(first_budget, charges) or is_within_budget(raised, charges)

    assert best_delta(3.0, menu, is_covered, depth=count + 1) <= 1e-6 * (1 + 1e-9)


# --- what is within a budget ----------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 12, 52])
def test_shares_add_up_to_the_budget(count):
    share = WHOLE.share(Fraction(1, count))
    amount = (
        charge(WHOLE, share, SeriesCost(share))
        if count > 1
        else gaussian_charge(gaussian_mu_squared(1, "1e-6"))
    )
    assert is_within_budget(WHOLE, [amount] * count)
    assert not is_within_budget(WHOLE, [amount] * (count + 1))
    assert left_of_budget(WHOLE, [amount] * count).mu_squared == 0


def test_pure_shares_and_gaussian_shares_mix():
    share = WHOLE.share("1/4")
    epsilon = pure_epsilon(share.mu_squared)
    assert covers(share, PureCost(epsilon))
    laplace = charge(WHOLE, share, PureCost(epsilon))
    assert laplace.epsilon >= epsilon
    assert laplace.mu_squared == share.mu_squared
    noisy = charge(WHOLE, share, GaussianCost(share.mu_squared))
    assert is_within_budget(WHOLE, [laplace, noisy, noisy, laplace])
    assert not is_within_budget(WHOLE, [laplace, noisy, noisy, laplace, laplace])


def test_only_pure_releases_may_use_the_epsilon():
    large = pure_charge(Fraction(1))
    assert is_within_budget(WHOLE, [large])
    assert is_within_budget(WHOLE, [pure_charge(Fraction(1, 10))] * 10)
    assert not is_within_budget(WHOLE, [pure_charge(Fraction(1, 10))] * 11)
    assert not is_within_budget(WHOLE, [large, gaussian_charge(Fraction(1, 10**9))])
    tenth = pure_charge(Fraction(1, 10))
    assert not is_within_budget(WHOLE, [gaussian_charge(Fraction("0.05")), tenth])


def test_pure_release_is_never_summed_with_gaussian_ones():
    first_charge = pure_charge(Fraction(9, 10))
    tiny = gaussian_charge(Fraction(1, 10**9))
    assert not is_within_budget(WHOLE, [first_charge, tiny])
    assert not is_within_budget(WHOLE, [tiny, first_charge])
    assert left_of_budget(WHOLE, [first_charge]) == Charge(epsilon=Fraction(1, 10))


def test_releases_with_their_own_delta_come_first():
    search = charge(WHOLE, ApproxDP("0.1", "1e-7"), SeriesCost(ApproxDP("0.1", "1e-7")))
    remaining_charge = gaussian_charge(gaussian_mu_squared("0.9", "9e-7"))
    assert is_within_budget(WHOLE, [search, remaining_charge])
    assert not is_within_budget(WHOLE, [remaining_charge, search])
    assert left_of_budget(WHOLE, [search]).delta == Fraction(9, 10**7)
    assert left_of_budget(WHOLE, [remaining_charge]).delta == 0
    assert not is_within_budget(WHOLE, [search] * 11)
    assert not is_within_budget(WHOLE, [pure_charge(Fraction(1, 10)), search])
    assert not is_within_budget(ApproxDP(10**6, "0.9"), [search, remaining_charge, search])


AMOUNTS = st.lists(
    st.one_of(
        st.fractions(min_value="1/1000", max_value="1/50").map(gaussian_charge),
        st.fractions(min_value="1/100", max_value="1/4", max_denominator=1000).map(pure_charge),
        st.just(Charge(epsilon=Fraction(1, 10), delta=Fraction(1, 10**7))),
    ),
    max_size=4,
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(AMOUNTS)
def test_exactly_the_remaining_mu_is_payable(charges):
    if not is_within_budget(WHOLE, charges):
        return  # nothing is left, so no charge is payable
    available = left_of_budget(WHOLE, charges)
    factor = Fraction(1001, 1000)
    if available.mu_squared:
        assert is_within_budget(WHOLE, [*charges, gaussian_charge(available.mu_squared)])
    assert not is_within_budget(
        WHOLE, [*charges, gaussian_charge(available.mu_squared * factor + Fraction(1, 10**9))]
    )

    if available.epsilon:
        assert is_within_budget(WHOLE, [*charges, pure_charge(available.epsilon)])
    if available.delta:
        pair = Charge(epsilon=available.epsilon, delta=available.delta)
        assert is_within_budget(WHOLE, [*charges, pair])
    beyond = available.epsilon * factor + Fraction(1, 10**9)
    assert not is_within_budget(WHOLE, [*charges, pure_charge(beyond)])
    assert spent_epsilon(WHOLE, charges) <= 1


@pytest.mark.parametrize("count", range(1, 40, 3))
def test_pure_amount_left_of_mu_is_payable(count):
    """The largest epsilon that is mu-GDP has a charge rounded up above the remainder."""
    charges = [gaussian_charge(Fraction(count, 1000))]
    available = left_of_budget(WHOLE, charges)
    paid = pure_charge(available.epsilon)
    assert is_within_budget(WHOLE, [*charges, paid])
    assert available.mu_squared * (1 - Fraction(1, 10**9)) <= paid.mu_squared


BUDGETS = st.builds(
    ApproxDP,
    st.fractions(min_value="1/20", max_value=2, max_denominator=100),
    st.sampled_from(["1e-9", "1e-7", "3e-7", "1e-6", "1e-3", "1/4"]),
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(AMOUNTS, BUDGETS, BUDGETS)
@example(
    [*[pure_charge(Fraction(1, 5))] * 3, Charge(epsilon=Fraction(1, 10), delta=Fraction(1, 10**7))],
    ApproxDP(1, "1e-6"),
    ApproxDP(3, "1e-6"),
)
def test_larger_budget_covers_all_that_a_smaller_one_covers(charges, first, second):
    larger = ApproxDP(max(first.epsilon, second.epsilon), max(first.delta, second.delta))
    for budget in (first, second):
        if is_within_budget(budget, charges):
            assert is_within_budget(larger, charges)
            assert all(is_within_budget(budget, charges[:count]) for count in range(len(charges)))


@settings(max_examples=60, deadline=None)
@given(AMOUNTS, st.randoms())
def test_order_of_composed_charges_does_not_matter(charges, random):
    composed = [amount for amount in charges if not amount.has_own_delta]
    other_order = list(composed)
    random.shuffle(other_order)
    assert is_within_budget(WHOLE, composed) == is_within_budget(WHOLE, other_order)


def test_spent_epsilon_counts_every_charge():
    search = Charge(epsilon=Fraction(1, 5), delta=Fraction(5, 10**7))
    hundredth = pure_charge(Fraction(1, 100))
    assert spent_epsilon(WHOLE, [search]) == Fraction(1, 5)
    assert spent_epsilon(WHOLE, [search, hundredth]) == Fraction(21, 100)
    assert spent_epsilon(WHOLE, [hundredth, search]) is None
    assert spent_epsilon(WHOLE, [pure_charge(Fraction(2))]) is None
    assert spent_epsilon(WHOLE, []) == 0


def test_sums_decide_in_other_definitions():
    for budget in (PureDP(1), ZCDP(1), GDP(1)):
        third_charge = charge(
            budget, budget.scaled(Fraction(1, 3)), SeriesCost(budget.scaled(Fraction(1, 3)))
        )
        assert is_within_budget(budget, [third_charge] * 3)
        assert not is_within_budget(budget, [third_charge] * 4)
        assert left_of_budget(budget, [third_charge] * 2) == third_charge


def test_share_limit_covers_its_part():
    limit = share_limit(WHOLE, "1/12")
    share_of_mu = WHOLE.share("1/12").mu_squared

    assert type(limit) is ApproxDP
    assert limit.delta == WHOLE.delta
    assert is_within_budget(limit, [gaussian_charge(share_of_mu)])
    assert not is_within_budget(limit, [gaussian_charge(share_of_mu * Fraction(1001, 1000))])
    assert share_limit(ZCDP(1), "1/4") == ZCDP("1/4")
    with pytest.raises(
        InputError, match=r"a larger fraction, because delta = .* covers this whole share"
    ):
        share_limit(WHOLE, "1e-30")
    for wrong in (0, 2, "-1/2"):
        with pytest.raises(
            InputError, match="the share of the budget must be above 0 and at most 1"
        ):
            WHOLE.share(wrong)
