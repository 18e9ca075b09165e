"""The privacy loss of a search for keys by brute force, and the draws of the program."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

import leastnoise as ln
from leastnoise._domain import Domain, Unknown
from leastnoise._fitting import key_rule
from leastnoise._trusted.accounting import ApproxDP, KeyRule, Noise, Privacy, keys_are_private
from leastnoise._trusted.kernel import (
    FoundKeys,
    KeySearch,
    ReleaseContract,
    SeededEntropy,
    UnpaidSeries,
    outcome_from_text,
    outcome_to_text,
)
from leastnoise._trusted.measurements import Block, Measurements
from leastnoise._trusted.table import Table

LAPLACE = Noise.DISCRETE_LAPLACE
GAUSSIAN = Noise.ROUNDED_GAUSSIAN
EPSILON = Fraction(9, 10)
# The thresholds are so low that the deltas are large enough to be measured.
RULES = [
    (noise, k, neighbours, threshold)
    for noise, thresholds_of_one_key in ((LAPLACE, (3, 6)), (GAUSSIAN, (3, 8)))
    for k, thresholds in ((1, thresholds_of_one_key), (2, (5,)))
    for neighbours in ("add_remove", "replace")
    for threshold in thresholds
]


def rule_and_privacy(noise, k, neighbours, threshold, delta=Fraction(1, 2)):
    privacy = Privacy(ApproxDP(EPSILON, delta), neighbours, "id", k)
    if noise is LAPLACE:
        scale = Fraction(privacy.distance) / EPSILON
    elif neighbours == "replace":
        scale = 2 * Fraction(13, 7)
    else:
        scale = Fraction(13, 7)
    return KeyRule(noise=noise, scale=scale, threshold=threshold), privacy


def outcome_probabilities(rule, count, reach):
    """Return the probabilities of the outcomes of a key with ``count`` units.

    The first outcome is that the key stays out. The others are the noisy counts from the threshold
    on, ``reach`` of them. A key without units always stays out.
    """
    if count == 0:
        return np.eye(1, reach + 1)[0]
    noise_values = rule.threshold - count + np.arange(reach)
    scale = float(rule.scale)
    if rule.noise is LAPLACE:
        p = math.exp(-1 / scale)
        found = (1 - p) / (1 + p) * p ** np.abs(noise_values)
    else:
        found = ndtr((noise_values + 0.5) / scale) - ndtr((noise_values - 0.5) / scale)
    return np.concatenate([[1 - found.sum()], found])


def changes_of_neighbours(k, neighbours, counts):
    """Return, for all neighbours, the counts of the changed keys before and after.

    A unit has at most k keys. A key of the unit before is lost if only that unit has it; otherwise
    its count falls from n + 1 to n, where n, from ``counts``, is the count without the unit. A key
    of the unit after is new, or its count rises from n to n + 1.
    """
    pairs = []
    for number_before, number_after in itertools.product(range(k + 1), repeat=2):
        if neighbours == "add_remove" and number_after:
            continue
        for only_before, only_after in itertools.product(
            range(number_before + 1), range(number_after + 1)
        ):
            for base in itertools.product(
                counts, repeat=number_before + number_after - only_before - only_after
            ):
                shared = [
                    (n + 1, n) if place < number_before - only_before else (n, n + 1)
                    for place, n in enumerate(base)
                ]
                pairs.append([(1, 0)] * only_before + [(0, 1)] * only_after + shared)
    return [pair for pair in pairs if pair]


def exact_delta(rule, pairs, reach):
    """Return the exact delta at EPSILON of one pair of neighbours, in both directions."""
    # The noise of keys is independent, so probabilities of joint outcomes are products.
    before = np.ones(1)
    after = np.ones(1)
    for count_before, count_after in pairs:
        key_before = outcome_probabilities(rule, count_before, reach)
        key_after = outcome_probabilities(rule, count_after, reach)
        before = np.multiply.outer(before, key_before).ravel()
        after = np.multiply.outer(after, key_after).ravel()
    factor = math.exp(EPSILON)
    return max(
        np.maximum(before - factor * after, 0).sum(), np.maximum(after - factor * before, 0).sum()
    )


def least_proved_delta(rule, privacy):
    """Return the least delta that the bound accepts."""
    low = 0.0
    high = 1.0 - 2**-20
    for _ in range(24):
        middle = (low + high) / 2
        proved = keys_are_private(rule, privacy.within(ApproxDP(EPSILON, Fraction(middle))))
        low, high = (low, middle) if proved else (middle, high)
    return high


@pytest.mark.parametrize(("noise", "k", "neighbours", "threshold"), RULES)
def test_key_bound_is_close_above_the_exact_loss(noise, k, neighbours, threshold):
    rule, privacy = rule_and_privacy(noise, k, neighbours, threshold)
    claimed = least_proved_delta(rule, privacy)
    counts = (1, 2, threshold, threshold + 4)
    if k == 2 and neighbours == "replace":
        counts = (1, threshold)
    reach = threshold + 60
    if k == 2:
        reach = threshold + math.ceil(3 * float(rule.scale))
    worst = max(
        exact_delta(rule, pairs, reach) for pairs in changes_of_neighbours(k, neighbours, counts)
    )

    assert worst <= claimed * (1 + 1e-6)
    # The bound adds up the deltas of the k keys. The probability that any of them is published is
    # smaller: 1 - (1 - q)^k instead of k q, if q is the delta of one key.
    assert 1 - (1 - claimed / k) ** k <= worst * (1.02 if noise is LAPLACE or k == 1 else 1.35)


@pytest.mark.parametrize(
    ("k", "neighbours"), [(1, "add_remove"), (2, "replace"), (7, "add_remove")]
)
def test_key_rule_is_least_and_checked_by_the_kernel(k, neighbours):
    privacy = Privacy(ApproxDP("1/2", "1e-8"), neighbours, "id", k)
    rule = key_rule(privacy)
    search = KeySearch(attribute="agent", rule=rule, most=5)
    assert search.verify(privacy) == privacy.budget

    worse = [
        replace(rule, threshold=rule.threshold - 1),
        replace(rule, scale=rule.scale * Fraction(4, 5)),
    ]
    for worse_rule in worse:
        with pytest.raises(
            ln.InputError, match=r"not proved to satisfy ApproxDP.*nothing was spent"
        ):
            replace(search, rule=worse_rule).verify(privacy)
    with pytest.raises(ln.InputError, match="not proved"):
        search.verify(Privacy(privacy.budget, neighbours, "id", k + 1))
    for budget in (ln.PureDP(1), ln.ZCDP(1)):
        with pytest.raises(ln.InputError, match="not proved"):
            search.verify(privacy.within(budget))


TEXTS = [f"key {number:05}" for number in range(20_000)]


def search_texts(texts, units, privacy, search):
    domain = Domain(agent=Unknown(10**5))
    contract = ReleaseContract(domain=domain, privacy=privacy, attributes=("agent",))
    return UnpaidSeries(
        contract, Table.keyed(domain, "agent", texts, units), SeededEntropy(3)
    ).find(search)


@pytest.mark.parametrize(
    ("noise", "scale", "count"),
    [(LAPLACE, Fraction(7, 3), 5), (GAUSSIAN, Fraction(22, 5), 9), (GAUSSIAN, Fraction(1, 2), 12)],
)
def test_key_draws_follow_the_law_of_the_bound(noise, scale, count):
    rule = KeyRule(noise=noise, scale=scale, threshold=12)
    privacy = Privacy(ApproxDP(10, "9/10"))
    search = KeySearch(attribute="agent", rule=rule, most=10**5)
    keys = search_texts(TEXTS, np.full(len(TEXTS), count), privacy, search)
    expected = len(TEXTS) * outcome_probabilities(rule, count, 12)
    frequencies = np.array(
        [
            len(TEXTS) - len(keys.keys),
            *(np.count_nonzero(keys.units == 12 + place) for place in range(12)),
        ]
    )
    large = expected > 10
    assert large.sum() > 1

    z = (frequencies - expected)[large] / np.sqrt(expected[large])
    assert np.abs(z).max() < 4.5
    assert (keys.units >= 12).all()
    assert list(zip(-keys.units, keys.keys, strict=True)) == sorted(
        zip(-keys.units, keys.keys, strict=True)
    )


def test_key_search_keeps_only_the_largest():
    privacy = Privacy(ApproxDP(1, "1e-9"))
    all_keys, largest_keys, no_keys = (
        search_texts(
            texts,
            30 + np.arange(len(texts)),
            privacy,
            KeySearch(attribute="agent", rule=key_rule(privacy), most=most),
        )
        for texts, most in ((TEXTS[:300], 300), (TEXTS[:300], 7), ([], 7))
    )
    assert largest_keys.keys == all_keys.keys[:7]
    assert largest_keys.units.tolist() == all_keys.units[:7].tolist()
    assert no_keys.keys == ()

    for outcome in (largest_keys, no_keys):
        read_outcome = outcome_from_text("".join(outcome_to_text(outcome)))
        assert type(read_outcome) is FoundKeys
        assert read_outcome.keys == outcome.keys
        assert read_outcome.units.tolist() == outcome.units.tolist()


def test_key_search_is_the_only_step_of_its_series():
    domain = Domain(agent=Unknown(9))
    privacy = Privacy(ApproxDP(1, "1e-9"))
    contract = ReleaseContract(domain=domain, privacy=privacy, attributes=("agent",))
    search = KeySearch(attribute="agent", rule=key_rule(privacy), most=9)
    table = Table.keyed(domain, "agent", ["curl"], np.array([50]))
    series = UnpaidSeries(contract, table, SeededEntropy(1))
    assert series.find(search).keys == ("curl",)
    with pytest.raises(ln.BudgetError, match="epsilon = 0 and delta = 0"):
        series.find(search)

    total = Measurements(
        domain=domain,
        privacy=privacy.within(ln.PureDP("1/2")),
        noise=LAPLACE,
        blocks=(Block((), 2),),
    )
    with pytest.raises(ln.BudgetError):
        series.measure(total)
    with pytest.raises(ln.InternalError, match="This table has Keyed"):
        UnpaidSeries(contract, table, SeededEntropy(1)).measure(total)

    rows = Table(domain, {"agent": [0, 0, 1]})
    with pytest.raises(ln.InternalError, match="This table has Columns"):
        UnpaidSeries(contract, rows, SeededEntropy(1)).find(search)
    with pytest.raises(ln.InputError, match="search must be a KeySearch"):
        UnpaidSeries(contract, table, SeededEntropy(1)).find(total)

    only = ReleaseContract(
        domain=domain, privacy=total.privacy, attributes=("agent",), declared_step=total
    )
    with pytest.raises(ln.InputError, match="are not allowed in a series that declares"):
        UnpaidSeries(only, rows, SeededEntropy(1)).find(search)


@pytest.mark.parametrize(
    ("keys", "units"),
    [
        (["a", "a"], [1, 1]),
        (["a"], [0]),
        (["a"], [1, 2]),
        (["a\n"], [1]),
        ([""], [1]),
        (["a" * 201], [1]),
        (["a"], [1.0]),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys, units):
    with pytest.raises(ln.InternalError, match=r"the keys of 'agent' must be distinct"):
        Table.keyed(Domain(agent=Unknown(9)), "agent", keys, np.array(units))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": Noise.DISCRETE_GAUSSIAN}, "noise of a search"),
        ({"scale": 0}, "scale"),
        ({"scale": 2**49}, r"at most 2\^48"),
        ({"scale": Fraction(2**57 + 1, 2**56)}, r"below 2\^56"),
        ({"threshold": 1}, "threshold"),
    ],
)
def test_rules_are_checked(change, message):
    with pytest.raises(ln.InputError, match=message):
        replace(KeyRule(noise=LAPLACE, scale=Fraction(1), threshold=22), **change)


def test_searches_and_their_budgets_are_checked():
    rule = KeyRule(noise=LAPLACE, scale=Fraction(1), threshold=22)
    for wrong in ({"attribute": 5}, {"rule": "low"}, {"most": 0}):
        with pytest.raises(ln.InputError, match=r"search for keys must be|most must be"):
            KeySearch(**{"attribute": "agent", "rule": rule, "most": 9, **wrong})
    with pytest.raises(ln.InputError, match=r"threshold above 2\^40"):
        key_rule(Privacy(ApproxDP("1e-13", "1e-13")))
    with pytest.raises(ln.InputError, match="budget of a search for keys must be ApproxDP"):
        key_rule(Privacy(ln.PureDP(1)))
    with pytest.raises(ln.InputError, match="budget of a search for keys must be ApproxDP"):
        keys_are_private(rule, Privacy(ln.ZCDP(1)))


@pytest.mark.parametrize(
    ("epsilon", "delta", "k", "noise"),
    [
        ("1e-4", "1e-9", 3, GAUSSIAN),
        ("0.12345678901234567890123", "1e-400", 3, LAPLACE),
        ("1", "0.99999999999999999999", 3, GAUSSIAN),
        ("1.6e-9", "1e-100", 9, GAUSSIAN),  # the other noise needs too high a threshold
    ],
)
def test_extreme_budgets_have_a_private_rule(epsilon, delta, k, noise):
    privacy = Privacy(ApproxDP(epsilon, delta), unit_column="id", max_rows=k)
    rule = key_rule(privacy)
    assert rule.noise is noise
    assert keys_are_private(rule, privacy)
