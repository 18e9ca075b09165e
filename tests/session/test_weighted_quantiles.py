"""Weighted quantiles and distribution functions: brute force, and intervals that cover."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._error import statistic_errors
from leastnoise._spec import parse_spec
from simulated import releases

RNG = np.random.default_rng(8)
ROWS = 4_000
PEOPLE = pd.DataFrame(
    {
        "region": RNG.choice(["north", "south"], ROWS, p=[0.3, 0.7]),
        "pay": RNG.normal(30, 25, ROWS).round(2),
        "wt": RNG.gamma(2, 12, ROWS).round(2),
    }
)
# Weights increase with the value, so that weighted quantiles differ from plain ones.
PEOPLE["wt"] += PEOPLE["pay"].clip(0, 60) / 2
PEOPLE.loc[RNG.random(ROWS) < 0.05, "pay"] = np.nan
PEOPLE.loc[RNG.random(ROWS) < 0.02, "wt"] = np.nan
WEIGHT = (np.rint(PEOPLE.wt.clip(0, 60) * 4) / 4).fillna(0)
SHARES = [0.25, 0.5, 0.75]
SPEC = """
[privacy]
epsilon = "400"
[domain.region]
categories = ["north", "south"]
[domain.pay]
bins = { low = -10, high = 90, count = 40, closed = "right" }
[measures.weight]
column = "wt"
clip = [0, 60]
unit = "0.25"
[[workload]]
quantiles = { of = "pay", at = ["0.25", "0.5", "0.75"], by = ["region"] }
weighted_by = "weight"
size = 20000
[[workload]]
cdf = { of = "pay", by = [] }
weighted_by = "weight"
[[workload]]
quantiles = { of = "pay", at = ["0.5"], by = ["region"] }
"""
NAMES = [
    "quantiles of pay weighted by weight by region",
    "distribution of pay weighted by weight",
    "quantiles of pay by region",
]


@pytest.fixture(scope="module")
def domain():
    return parse_spec(SPEC, Path()).domain


def weighted_quantiles():
    """Return the exact weighted quantiles by region, shape (regions, shares)."""
    rows = []
    for name in ("north", "south"):
        group = PEOPLE[(PEOPLE.region == name) & PEOPLE.pay.notna()].sort_values("pay")
        upto = WEIGHT[group.index].cumsum()
        positions = np.searchsorted(upto, np.array(SHARES) * upto.iloc[-1])
        rows.append(group.pay.clip(-10, 90).to_numpy()[positions])
    return np.array(rows)


def weighted_shares():
    """Return the exact share of the weights up to each cell."""
    counted = PEOPLE.pay.notna()
    cells = np.ceil((PEOPLE.pay[counted] + 10) / 2.5).clip(1, 40).astype(int) - 1
    upto = np.bincount(cells, WEIGHT[counted], 40).cumsum()
    return upto / upto[-1]


@pytest.mark.slow
def test_weighted_quantiles_match_brute_force(tmp_path):
    spec = parse_spec(SPEC, tmp_path)
    assert [statistic.name for statistic in spec.workload.statistics] == NAMES
    plan = ln.plan(spec.workload, spec.privacy)
    assert ln.Plan.from_json(plan.to_json()).workload == plan.workload
    options = ln.Options(languages=["en", "de"])
    release = ln.release(plan, PEOPLE, seed=4, out=tmp_path / "out", options=options)
    table = release.statistics[NAMES[0]]
    truth = weighted_quantiles()
    assert np.abs(table.values - truth).max() < 2.5  # the width of a bin
    assert (table.low <= truth).all()
    assert (truth <= table.high).all()
    assert release.statistics[NAMES[1]].values == pytest.approx(weighted_shares(), abs=0.005)
    assert (release.statistics[NAMES[2]].values < table.values[:, 1:2]).all()
    reread = ln.read_release(tmp_path / "out").statistics[NAMES[0]]
    assert reread.frame().equals(table.frame())
    recomputed = ln.quantiles(release, "pay", SHARES, by=["region"], weighted_by="weight")
    assert [entry.value for entry in recomputed] == pytest.approx(table.values.ravel())
    for page, sentence in (
        ("report.html", "quantiles of pay weighted by weight"),
        ("report.de.html", "Quantile von pay (gewichtet nach weight)"),
    ):
        assert sentence in (tmp_path / "out" / page).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("budget", [ln.PureDP(2), ln.ZCDP("1/8")], ids=["pure", "zcdp"])
def test_intervals_and_bands_of_weighted_quantiles_cover(domain, budget):
    queries = ln.quantile_queries(domain, "pay", ["1/4", "1/2", "3/4"], by=["region"])
    plan = ln.plan(queries.weighted_by("weight"), budget)
    truth = weighted_quantiles().ravel()
    share = weighted_shares()
    covered = []
    in_band = []
    for release in releases(plan, PEOPLE, range(60)):
        quantiles = ln.quantiles(
            release, "pay", SHARES, by=["region"], weighted_by="weight", level=0.9
        )
        covered.append(
            [
                quantile.low <= exact <= quantile.high
                for quantile, exact in zip(quantiles, truth, strict=True)
            ]
        )
        band = ln.cdf(release, "pay", weighted_by="weight", level=0.9, draws=19)
        in_band.append(((band.low <= share + 1e-9) & (share <= band.high + 1e-9)).all())
        assert band.count == pytest.approx(WEIGHT[PEOPLE.pay.notna()].sum(), rel=0.3)
    assert np.mean(covered) > 0.9 - 3 * (0.09 / np.size(covered)) ** 0.5
    assert np.mean(in_band) > 0.9 - 3 * (0.09 / len(in_band)) ** 0.5


def test_stated_error_of_weighted_shares_matches_simulation(domain):
    size = float(WEIGHT[PEOPLE.pay.notna()].sum())
    queries = ln.cdf_queries(domain, "pay", size=str(round(size)))
    plan = ln.plan(queries.weighted_by("weight"), ln.PureDP(1))
    (error,) = statistic_errors(plan)
    counts = np.array([release.tables[0].answer for release in releases(plan, PEOPLE, range(200))])
    deviation = np.sqrt(counts.var(axis=0).mean()) / size
    assert deviation == pytest.approx(error.std_error, rel=0.1)


@pytest.mark.slow
def test_pages_and_files_name_shares_of_weights(domain, tmp_path, monkeypatch):
    monkeypatch.delenv("LEASTNOISE_CHARTS")
    weighted = ln.quantile_queries(domain, "pay", ["1/2"]) + ln.cdf_queries(domain, "pay")
    out = tmp_path / "out"
    ln.release(ln.plan(weighted.weighted_by("weight"), ln.PureDP(10)), PEOPLE, seed=1, out=out)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert all("of the weights" in entry["meaning"] for entry in manifest["statistics"])
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "share (sum of weight)" in page
    assert "share (rows)" not in page
    assert "the stated share of all weights" in page


def test_weights_of_quantiles_are_checked(domain):
    median = ln.quantile_queries(domain, "pay", ["1/2"])
    with pytest.raises(ln.InputError, match="weighted_by can be applied only once"):
        median.weighted_by("weight").weighted_by("weight")
    with pytest.raises(
        ln.InputError,
        match=r"With the strategy selected_quantiles, the .* must be of unweighted rows",
    ):
        ln.plan(median.weighted_by("weight"), ln.PureDP(1), strategy="selected_quantiles")
    release = ln.release(ln.plan(median, ln.PureDP(1)), PEOPLE, seed=1)
    with pytest.raises(ln.InputError, match="weight"):
        ln.quantiles(release, "pay", [0.5], weighted_by="weight")
    signed = ln.Domain(
        {"pay": ln.Integers(0, 9, outside="clip")}, measures={"x": ln.Measure("x", -1, 1)}
    )
    release = ln.release(
        ln.plan(ln.queries(signed, pay="prefix", sum="x"), ln.PureDP(1)),
        pd.DataFrame({"pay": [1], "x": [1]}),
        seed=1,
    )
    with pytest.raises(ln.InputError, match="whose bounds are not negative"):
        ln.cdf(release, "pay", weighted_by="x")
