"""K-norm noise together with other tables and with levels, and its releases."""

import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import leastnoise as ln
from leastnoise._error import LargeScaleVariances, k_norm_variances, measured_multiplier
from leastnoise._trusted.kernel import SeededEntropy, _k_norm_sampler, _measurement
from simulated import releases

PURE = ln.PureDP(1)
ROWS = 400


def domain_of(*sizes, complete=True):
    kinds = {
        f"a{at}": ln.Integers(1, size, levels={"part": {"width": 2}})
        for at, size in enumerate(sizes)
    }
    domain = ln.Domain(kinds, measures={"pay": ln.Measure("pay", 0, 100)})
    return domain.as_complete() if complete else domain


def one_way(domain, names=None, **options):
    return ln.marginals(domain, ways=1, of=list(names or domain.names), **options)


def levels(domain):
    parts = [ln.queries(domain, {name: ln.level("part")}) for name in domain.names]
    return sum(parts[1:], start=parts[0])


def rows_of(domain, outside=()):
    generator = np.random.default_rng(3)
    columns = {
        name: generator.integers(1, domain.kind(name).published + 1, ROWS).tolist()
        for name in domain.names
    }
    for name in outside:
        columns[name][:60] = [99] * 60
    return pa.table({**columns, "pay": generator.integers(0, 101, ROWS).tolist()})


def errors_by_name(workload, privacy, names):
    """Return the total squared error of every strategy that applies."""
    errors = {}
    for name in names:
        with suppress(ln.InputError):
            errors[name] = ln.plan(workload, privacy, strategy=name).expected_error()
    return errors


def exact_answers(questions, rows):
    """Return the answers to one-way and two-way questions, from a release without visible noise."""
    plan = ln.plan(questions, ln.ZCDP(500), strategy="workload")
    (release,) = releases(plan, rows, [1])
    return [np.rint(table.answer) for table in release.answer(questions)]


def seen_errors(plan, questions, rows, seeds=range(150)):
    """Return root mean squared errors over what is promised, and the coverage, of all answers."""
    truths = exact_answers(questions, rows)
    squares = []
    promised = []
    covered = []
    for release in releases(plan, rows, seeds):
        for table, truth in zip(release.answer(questions), truths, strict=True):
            squares.append((table.answer - truth).ravel() ** 2)
            promised.append(table.noise_std.ravel() ** 2)
            covered.append(((table.low <= truth) & (truth <= table.high)).ravel())
    ratio = math.sqrt(np.concatenate(squares).sum() / np.concatenate(promised).sum())
    return ratio, float(np.concatenate(covered).mean())


PAIR = domain_of(4, 4, 4, 4)
LONG = domain_of(2, 2, 2, 3, 20)
MIXED = {
    "a table of two attributes": one_way(PAIR) + ln.queries(PAIR, a0="identity", a1="identity"),
    "heavy one-way tables": one_way(PAIR, weight=9) + ln.marginals(PAIR, ways=2),
    "prefix sums": one_way(LONG, ["a0", "a1", "a2", "a3"]) + ln.queries(LONG, a4="prefix"),
    "groups of levels": levels(domain_of(6, 6, 8)),
    "levels and cells": levels(domain_of(4, 4, 4)) + one_way(domain_of(4, 4, 4)),
    "values outside": levels(domain_of(6, 6, 8, complete=False)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", MIXED)
def test_auto_takes_shared_noise_with_the_promised_errors(case):
    workload = MIXED[case]
    plan = ln.plan(workload, PURE)
    assert plan.strategy == "k_norm"
    assert plan.measured().k_norm_groups()
    separate_errors = errors_by_name(
        workload, PURE, ["covering", "marginals", "workload", "p_identity"]
    )
    least = min(error.total_squared_error for error in separate_errors.values())
    assert plan.expected_error().total_squared_error < 0.95 * least
    outside = ["a1"] if case == "values outside" else []
    ratio, coverage = seen_errors(plan, workload, rows_of(workload.domain, outside))
    assert ratio == pytest.approx(1, abs=0.06)
    assert 0.93 <= coverage <= 0.99


QUESTIONS = {
    "ranges of cells": lambda domain: ln.queries(domain, a0=ln.ranges([(1, 2), (2, 4)])),
    "the number of rows": lambda domain: ln.queries(domain, {}),
    "differences of cells": lambda domain: ln.queries(
        domain, a0=ln.matrix([[1, -1, 0, 0], [1, 0, 0, -1], [1, 1, -1, -1]])
    ),
    "prefix sums": lambda domain: ln.queries(domain, a1="prefix"),
    "levels": levels,
}


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("sizes", [(4,) * 3, (4, 4, 9, 20)])
def test_further_answers_have_intervals_that_cover(question, sizes):
    domain = domain_of(*sizes)
    plan = ln.plan(one_way(domain), PURE)
    assert plan.strategy == "k_norm"
    ratio, coverage = seen_errors(plan, QUESTIONS[question](domain), rows_of(domain))
    assert ratio == pytest.approx(1, abs=0.15)  # of one number in 150 releases
    assert 0.93 <= coverage <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 2), (2,) * 16, (3,) * 12, (10,) * 3, (2, 2, 30)])
def test_general_multiplier_covers_every_combination(sizes):
    """Sums over tables and within them, signs and random weights, from the kernel's own noise."""
    generator = np.random.default_rng(7)
    entropy = SeededEntropy(11)
    scale = Fraction(12)
    draws = [
        np.concatenate(_k_norm_sampler.k_norm_noise(sizes, scale, entropy)).astype(float)
        for _ in range(1500)
    ]
    noise = np.stack(draws, axis=1)
    total = np.repeat([1.0, 0.0], [sizes[0], sum(sizes) - sizes[0]])
    signs = np.where(np.arange(sum(sizes)) % 2, -1.0, 1.0)
    first_cells = np.zeros(sum(sizes))
    first_cells[np.cumsum([0, *sizes[:-1]])] = 1.0
    combinations = [total, signs, first_cells, *generator.normal(size=(6, sum(sizes)))]
    plan = ln.plan(one_way(domain_of(*sizes)), PURE, strategy="k_norm").measured()
    multiplier = measured_multiplier(plan, 0.95, [ln.queries(plan.domain, {}).products[0]])
    for weights in combinations:
        errors = np.abs(weights @ noise)
        std = math.sqrt((errors**2).mean())
        assert (errors <= multiplier * std).mean() >= 0.93


def test_differences_between_tables_follow_the_covariance():
    domain = domain_of(4, 4, 4)
    plan = ln.plan(one_way(domain), PURE)
    first, second = (ln.queries(domain, {name: "identity"}).products[0] for name in ("a0", "a1"))
    table = rows_of(domain)
    errors = []
    for release in releases(plan, table, range(300)):
        table_a0, table_a1 = release.answer(one_way(domain, ["a0", "a1"]))
        errors.append(table_a0.answer[0] - table_a1.answer[2])
    covariance = release.least_squares().covariance_of(None)
    variance_a0 = covariance.variances(first)[0]
    variance_a1 = covariance.variances(second)[2]
    expected = variance_a0 + variance_a1 - 2 * covariance.covariance(first, second)[0, 2]
    assert np.std(errors) == pytest.approx(math.sqrt(expected), rel=0.12)


@pytest.mark.slow
def test_quantiles_and_bands_of_shared_noise_hold():
    domain = domain_of(2, 2, 2, 12)
    plan = ln.plan(one_way(domain), PURE)
    assert plan.strategy == "k_norm"
    rows = rows_of(domain)
    ages = np.sort(rows["a3"].to_numpy())
    truth = ages[math.ceil(0.5 * len(ages)) - 1]
    hits = []
    for release in releases(plan, rows, range(60)):
        (median,) = ln.quantiles(release, "a3", [0.5])
        hits.append(median.low <= truth <= median.high)
    assert np.mean(hits) >= 0.93
    band = ln.cdf(release, "a3")
    below = np.searchsorted(ages, np.arange(1, 13), side="right") / len(ages)
    assert (band.low.ravel()[:11] <= below[:11]).all()
    assert (below[:11] <= band.high.ravel()[:11]).all()


@pytest.mark.parametrize("budget", [PURE, ln.ApproxDP(1, "1e-6")])
@pytest.mark.parametrize("sizes", [(2,) * 16, (4,) * 8, (2,) * 64, (2, 8, 100), (3, 3)])
def test_auto_is_at_most_the_best_by_name(budget, sizes):
    workload = one_way(domain_of(*sizes))
    named = errors_by_name(workload, budget, ["k_norm", "covering", "workload", "residual"])
    least = min(error.total_squared_error for error in named.values())
    assert ln.plan(workload, budget).expected_error().total_squared_error <= least * 1.0001


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("case", MIXED)
def test_error_is_at_least_the_least_possible(case, neighbours):
    privacy = ln.Privacy(ln.PureDP(3), neighbours)
    named = errors_by_name(MIXED[case], privacy, ["k_norm", "covering", "workload"])
    assert all(error.times_least >= 1 for error in named.values())


def test_comparison_names_the_noise():
    compared = ln.compare(MIXED["a table of two attributes"], PURE)
    noises = dict(zip(compared.columns()["strategy"], compared.columns()["noise"], strict=True))
    assert noises["k_norm"] == "laplace_and_k_norm"
    assert noises["covering"] == "discrete_laplace"
    alone = ln.compare(one_way(PAIR), PURE).columns()
    assert dict(zip(alone["strategy"], alone["noise"], strict=True))["k_norm"] == "k_norm"


@pytest.mark.parametrize("sizes", [(1, 2), (2, 2, 3, 9, 40), (90, 120), (2,) * 30])
def test_large_scale_variances_are_the_limit_of_the_exact_ones(sizes):
    limit = LargeScaleVariances([*sizes, 60]).of(sizes)
    exact = k_norm_variances(tuple(sorted(sizes)), Fraction(5000))
    assert limit.total * 5000**2 == pytest.approx(exact.total, rel=1e-5)
    for size in sizes:
        assert limit.cells[size] * 5000**2 == pytest.approx(exact.cells[size], rel=1e-5)


def test_objectives_and_targets_take_shared_noise():
    workload = one_way(domain_of(2, 2, 2, 2, 9))
    total = ln.plan(workload, PURE)
    worst = ln.plan(workload, PURE, objective="worst")
    largest = [max(table.rmse for table in plan.expected_error().tables) for plan in (worst, total)]
    assert largest[0] <= largest[1] * (1 + 1e-9)
    least = ln.plan(workload.within(margin=20), ln.Least("epsilon"))
    laplace = ln.plan(workload.within(margin=20), ln.Least("epsilon"), strategy="workload")
    assert least.privacy.budget.epsilon < laplace.privacy.budget.epsilon
    (release,) = releases(least, rows_of(workload.domain), [1])
    for table in release.answer(workload):
        assert ((table.high - table.low) / 2 <= 20 + 1e-9).all()


def test_weights_move_the_budget_between_groups():
    domain = domain_of(2, 2, 2, 60, 60, 60)
    even = ln.plan(one_way(domain), PURE)
    heavy = ln.plan(
        one_way(domain, ["a0", "a1", "a2"], weight=10) + one_way(domain, ["a3", "a4", "a5"]), PURE
    )
    errors = [plan.expected_error().tables[0].rmse for plan in (even, heavy)]
    assert errors[1] < errors[0]


@pytest.mark.slow
def test_audit_bound_is_close_below_the_claim():
    plan = ln.plan(MIXED["prefix sums"], PURE)
    audit = ln.audit(plan, trials=1500, entropy=SeededEntropy(5))
    assert audit.is_within_claim
    assert 0.3 < audit.lower_bound <= audit.claim == 1
    (norm,) = [part for part in audit.parts if "K-norm" in part.name]
    assert 0.8 * norm.claim < norm.lower_bound <= norm.claim


@pytest.mark.slow
def test_audit_sees_shared_noise_too_small_by_a_quarter(monkeypatch):
    draw = _measurement.k_norm_noise
    monkeypatch.setattr(
        _measurement,
        "k_norm_noise",
        lambda sizes, scale, entropy: draw(sizes, scale * 4 / 5, entropy),
    )
    plan = ln.plan(one_way(domain_of(2, 2, 2, 3)), PURE)
    audit = ln.audit(plan, trials=3000, entropy=SeededEntropy(6))
    assert not audit.is_within_claim
    assert not audit.parts[0].is_within_claim


def test_manifest_and_report_name_the_noise(tmp_path):
    domain = domain_of(2, 2, 2)
    plan = ln.plan(one_way(domain), PURE)
    release = ln.release(plan, rows_of(domain), seed=5, out=tmp_path / "out")
    assert '"k_norm"' in (tmp_path / "out" / "manifest.json").read_text()
    assert "K-norm noise" in (tmp_path / "out" / "report.html").read_text()
    assert release.interval.multiplier < measured_multiplier(
        plan.measured(), 0.95, [ln.queries(domain, {}).products[0]]
    )
