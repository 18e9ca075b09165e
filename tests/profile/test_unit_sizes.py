"""Units by their number of rows: the histogram, the drafted limit, and its payment."""

import tomllib
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._plan import PlanDetails
from leastnoise._profile import describe_unit_sizes, plan_unit_sizes, unit_size_cells

UNITS = 5000
SEED = 3


def unit_sizes(units=UNITS):
    """Return numbers of rows with a long tail: half of the units have one row."""
    return np.minimum(np.random.default_rng(SEED).zipf(2.0, units), 5000)


def visits(units=UNITS):
    """A table with one row for each visit of a patient."""
    patients = np.repeat(np.arange(units), unit_sizes(units))
    frame = pd.DataFrame({"patient_id": patients, "age": patients % 90})
    return frame.sample(frac=1, random_state=SEED)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    """Return a seeded profile that takes max_rows from the histogram."""
    out = tmp_path_factory.mktemp("seeded") / "profile"
    return ln.profile(visits(), epsilon=4, out=out, unit="patient_id", seed=SEED)


def test_findings_hold_the_true_units_and_rows(seeded):
    stated = seeded.findings.unit_sizes
    sizes = unit_sizes()
    assert stated is not None
    assert stated.units.low <= UNITS <= stated.units.high
    sizes_in_histogram = sizes[sizes <= stated.largest]
    assert stated.mean_rows.low <= sizes_in_histogram.mean() <= stated.mean_rows.high
    assert (sizes > stated.largest).sum() <= stated.units_beyond.high
    for effect in stated.limits:
        cut_units = (sizes > effect.max_rows).mean()
        assert effect.cut_units.low <= cut_units <= effect.cut_units.high
        if effect.cut_rows is not None:
            cut_rows = np.maximum(sizes_in_histogram - effect.max_rows, 0).sum()
            share = cut_rows / sizes_in_histogram.sum()
            assert effect.cut_rows.low <= share <= effect.cut_rows.high
    assert stated.limits[-1].cut_rows is None


def test_draft_and_tables_take_max_rows_from_the_units(seeded):
    sizes = unit_sizes()
    draft = tomllib.loads(seeded.draft.read_text(encoding="utf-8"))
    tables = tomllib.loads((seeded.out / "profile.toml").read_text(encoding="utf-8"))
    max_rows = draft["privacy"]["unit"]["max_rows"]
    assert np.quantile(sizes, 0.93) <= max_rows <= 1.5 * np.quantile(sizes, 0.97)
    assert tables["privacy"]["unit"] == {"column": "patient_id", "max_rows": max_rows}
    assert tables["privacy"]["share"] == "9/10"
    assert seeded.findings.rows.low <= np.minimum(sizes, max_rows).sum()
    assert np.minimum(sizes, max_rows).sum() <= seeded.findings.rows.high


@pytest.mark.parametrize(
    ("file", "sentences"),
    [
        ("profile.html", ["Rows per unit", "The draft has max_rows = ", "6 to 7"]),
        ("profile.de.html", ["Zeilen je Einheit", "Der Entwurf enthält max_rows = ", "6 bis 7"]),
    ],
)
def test_page_shows_the_rows_of_units(seeded, file, sentences):
    page = (seeded.out / file).read_text(encoding="utf-8")
    assert all(sentence in page for sentence in sentences)


def test_stated_max_rows_stays_in_the_tables(tmp_path):
    arguments = {"unit": "patient_id", "max_rows": 2, "seed": SEED}
    profile = ln.profile(visits(), epsilon=4, out=tmp_path / "p", **arguments)
    tables = tomllib.loads((profile.out / "profile.toml").read_text(encoding="utf-8"))
    draft = tomllib.loads(profile.draft.read_text(encoding="utf-8"))
    assert tables["privacy"]["unit"]["max_rows"] == 2
    assert draft["privacy"]["unit"]["max_rows"] > 2


def test_few_units_give_no_limit(tmp_path):
    few = ln.profile(visits(5), epsilon="1/10", out=tmp_path / "p", unit="patient_id", seed=SEED)
    assert few.findings.unit_sizes is not None
    assert not few.findings.unit_sizes.has_units
    assert "max_rows = 1 " in few.draft.read_text(encoding="utf-8")
    assert "cannot be distinguished from noise" in few.page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def repeated():
    """The findings of forty seeded histograms of the same units."""
    plan = plan_unit_sizes(ln.Privacy(ln.PureDP("1/4"), unit_column="patient_id"))
    rows = visits()
    return [describe_unit_sizes(ln.release(plan, rows, seed=seed)) for seed in range(40)]


def test_intervals_cover_in_seeded_histograms(repeated):
    sizes = unit_sizes()
    misses = np.zeros(3)
    for findings in repeated:
        below = sizes[sizes <= findings.largest]
        effect = findings.draft_effect
        cut = (sizes > effect.max_rows).mean()
        misses += [
            not findings.units.low <= len(sizes) <= findings.units.high,
            not findings.mean_rows.low <= below.mean() <= findings.mean_rows.high,
            not effect.cut_units.low <= cut <= effect.cut_units.high,
        ]
    assert (misses <= 8).all()  # of 40 at 5%, 9 or more have probability 0.0003


def test_drafted_limits_are_near_the_share_of_units(repeated):
    sizes = unit_sizes()
    limits = [findings.max_rows for findings in repeated]
    assert min((sizes <= limit).mean() for limit in limits) > 0.88
    assert max(limits) <= 3 * np.quantile(sizes, 0.97)


def test_cells_tell_small_sizes_apart_and_have_no_gap():
    cells = unit_size_cells()
    assert cells[:5] == tuple((size, size) for size in range(1, 6))
    assert all(after[0] == before[1] + 1 for before, after in pairwise(cells))


def test_profile_with_units_is_paid_once_and_resumed(tmp_path, monkeypatch):
    """The histogram and the tables cost the epsilon together; a stop costs nothing more."""
    source = tmp_path / "visits.parquet"
    visits(800).to_parquet(source)

    def run():
        return ln.profile(source, epsilon=1, total=2, out=tmp_path / "p", unit="patient_id")

    def stop(*_, **__):
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr("leastnoise._profile._run.run_spec", stop)
        with pytest.raises(InterruptedError):
            run()
    first = (tmp_path / "p" / "unit-sizes" / "manifest.json").read_bytes()
    profile = run()
    assert (tmp_path / "p" / "unit-sizes" / "manifest.json").read_bytes() == first
    assert run().findings.unit_sizes.units == profile.findings.unit_sizes.units
    ledger = ln.Ledger.open(source.with_suffix(".ledger"))
    assert [str(entry.charge.epsilon) for entry in ledger.entries()] == ["1/10", "9/10"]
    report = (tmp_path / "p" / "unit-sizes" / "report.html").read_text(encoding="utf-8")
    assert "It counts once, by the number of its rows." in report
    assert "of which at most one is counted" not in report
    (tmp_path / "p" / "unit-sizes").rename(tmp_path / "other")
    seeded_plan = plan_unit_sizes(ln.Privacy(ln.PureDP("1/10"), unit_column="patient_id"))
    ln.release(seeded_plan, source, seed=1, out=tmp_path / "p" / "unit-sizes")
    with pytest.raises(
        ln.InputError, match="must be the counts of this profile, paid from the ledger"
    ):
        run()


def test_search_and_units_and_tables_share_an_approximate_budget(tmp_path):
    source = tmp_path / "visits.parquet"
    visits(800).assign(sex="F").to_parquet(source)
    arguments = {"epsilon": 1, "delta": "1e-6", "unit": "patient_id", "out": tmp_path / "p"}
    ln.profile(source, **arguments)
    ledger = ln.Ledger.open(source.with_suffix(".ledger"))
    search, sizes, tables = (entry.charge for entry in ledger.entries())
    assert search.delta > 0
    assert 9 * sizes.mu_squared == pytest.approx(tables.mu_squared, rel=1e-6)


def test_units_by_rows_have_neither_guard_nor_further_attributes():
    plan = plan_unit_sizes(ln.Privacy(ln.PureDP(1), unit_column="patient_id"))
    assert ln.Plan.from_json(plan.to_json()) == plan
    with pytest.raises(ln.InputError, match="cannot have a guard"):
        ln.release(plan, visits(9), options=ln.Options(guard="1/100"), seed=1)
    domain = ln.Domain(age=ln.Integers(0, 9), sex=["F", "M"])
    for privacy in (ln.Privacy(ln.PureDP(1)), ln.Privacy(ln.PureDP(1), unit_column="a")):
        table = ln.plan(ln.marginals(domain, ways=1), privacy)
        with pytest.raises(ln.InputError, match="counts units by their number of rows"):
            replace(table, details=PlanDetails(counts_unit_sizes=True))
