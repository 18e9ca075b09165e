"""Tests of series: one plan, paid once, whose periods are published one after the other."""

import datetime as dt
import gzip
import math
import re

import duckdb
import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._mechanisms import Search, release_contract
from leastnoise._planning import SeriesOptions, period_errors, series_plan, truncate_plan
from leastnoise._release import build_release
from leastnoise._session import (
    _release_job,
    _series_publication,
    combine_periods,
    plan_spec,
    publish_due_periods,
)
from leastnoise._spec import read_spec, spec_warnings
from leastnoise._trusted.accounting import charge
from leastnoise._trusted.kernel import SeededEntropy, Series, UnpaidSeries, _ledger, row_allowance
from session.releasing import manifest, report, stopped
from simulated import read_table

SPEC = """
[source]
path = "visits.csv"
[privacy]
rho = "1000"
{unit}
[domain.month]
dates = {{ column = "day", from = "2024-01-01", to = "2024-06-30", by = "month" }}
[domain.sex]
categories = ["F", "M"]
[measures.paid]
clip = [0, 500]
[[workload]]
queries = {{ month = "identity", sex = "identity" }}
[[workload]]
queries = {{ month = "prefix" }}
[[workload]]
queries = {{ month = {{ rolling = 3 }}, sex = "identity" }}
[series]
along = "month"
late = "{late}"
[output]
formats = ["csv"]
"""


class Office:
    """A folder with a spec and a table that grows, and the date of today."""

    def __init__(self, folder, patch):
        self.folder = folder
        self.patch = patch
        self.rows = []
        self.out = "monthly"
        self.ledger = folder / "visits.ledger"
        self.write_spec()

    def write_spec(self, *changes, late="drop", unit=""):
        """Write the spec, with each old text replaced by its new one."""
        text = SPEC.format(late=late, unit=unit)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (self.folder / "spec.toml").write_text(text)

    def read_spec(self):
        return read_spec(self.folder / "spec.toml")

    def set_today(self, day):
        self.patch.setattr(_series_publication, "_today", lambda: dt.date.fromisoformat(day))

    def add_rows(self, *rows):
        self.rows += rows

    def publish(self, day, through=None):
        """Publish the periods that are due on a day, and return what was published."""
        width = len(self.rows[0]) if self.rows else 2
        header = ",".join(["day", "sex", "person", "paid"][:width])
        (self.folder / "visits.csv").write_text("\n".join([header, *map(",".join, self.rows), ""]))
        self.set_today(day)
        spec = self.read_spec()
        return publish_due_periods(
            spec,
            spec.source,
            self.folder / self.out,
            self.ledger,
            lambda: plan_spec(spec),
            through=through,
        )

    def answers(self, period):
        """Return the answers of the release up to a period, by query and cell."""
        frame = ln.read_release(self.folder / self.out / period).answers
        keys = zip(frame["query"], frame["cell"], strict=True)
        return dict(zip(keys, frame["answer"], strict=True))

    def counts(self, period):
        """Return the rounded counts by month and sex, such as "01F"; the noise is below 1/2."""
        counts = {}
        for (query, cell), answer in self.answers(period).items():
            if query == "q1":
                month_and_sex = cell.replace("month=2024-", "").replace(", sex=", "")
                counts[month_and_sex] = round(answer)
        return counts

    @property
    def private_files(self):
        return [*self.folder.glob("*.private")]

    def open_ledger(self):
        return ln.Ledger.open(self.ledger)

    def pending_steps(self):
        """Return the steps that the first entry of the ledger has drawn."""
        ledger = self.open_ledger()
        return ledger.pending(ledger.entries()[0]).steps

    @property
    def charges(self):
        """Return the charge of each release in rho."""
        return [
            entry.charge.rho for entry in self.open_ledger().entries() if entry.kind == "release"
        ]


@pytest.fixture
def office(tmp_path, monkeypatch):
    return Office(tmp_path, monkeypatch)


def rows_of(month, women, men):
    """Return rows of visits in the middle of a month."""
    day = f"2024-{month:02}-15"
    return [(day, "F")] * women + [(day, "M")] * men


def published_periods(published):
    """Return the names of the periods of all releases that a call published."""
    return [folder.name for folder in published.releases]


def test_series_without_unit_column_is_warned_about(office):
    (warning,) = [
        sentence for sentence in spec_warnings(office.read_spec()) if "series" in sentence
    ]
    moved_row = "A row whose date changes after its period was closed is counted again each time"
    assert moved_row in warning
    office.write_spec(unit='unit = { column = "person", max_rows = 1 }')
    assert not [sentence for sentence in spec_warnings(office.read_spec()) if "series" in sentence]


@pytest.mark.parametrize("unit", ["", 'unit = { column = "person", max_rows = 2 }'])
def test_series_count_rows_without_a_sex_in_tables_without_sex(office, unit):
    office.write_spec(unit=unit)
    rng = np.random.default_rng(0)
    for row in range(180):
        month = row // 60 + 1
        person = f"p{row // 2}" if rng.random() < 0.8 else ""
        sex = str(rng.choice(["F", "M", "", "x"]))
        office.add_rows((f"2024-{month:02}-15", sex, person, "3"))
    office.add_rows(("", "F", "p1", "3"))
    office.publish("2024-04-02")
    rows = pd.DataFrame(office.rows, columns=["day", "sex", "person", "paid"])
    rows = rows[(rows.person != "") | (unit == "")]
    counts = office.counts("2024-03")
    totals = office.answers("2024-03")
    for month in range(1, 4):
        rows_in_month = rows[rows.day == f"2024-{month:02}-15"]
        for sex in ("F", "M"):
            assert counts[f"{month:02}{sex}"] == (rows_in_month.sex == sex).sum()
        rows_so_far = ((rows.day != "") & (rows.day <= f"2024-{month:02}-15")).sum()
        assert totals["q2", f"month <= 2024-{month:02}"] == pytest.approx(rows_so_far, abs=1)


def test_series_is_paid_once_and_never_changes(office):
    office.add_rows(*rows_of(1, 30, 40), *rows_of(2, 10, 20))
    first = office.publish("2024-02-10")
    assert first.paid
    assert published_periods(first) == ["2024-01"]
    assert first.state.drawn == 1
    assert first.state.due == 1
    assert office.counts("2024-01") == {"01F": 30, "01M": 40}

    # The second rows of January come late, and are dropped.
    office.add_rows(*rows_of(3, 5, 6), *rows_of(1, 2, 0))
    second = office.publish("2024-04-01")
    assert not second.paid
    assert published_periods(second) == ["2024-02", "2024-03"]
    january = {"01F": 30, "01M": 40}
    assert office.counts("2024-03") == {**january, "02F": 10, "02M": 20, "03F": 5, "03M": 6}
    assert office.charges == [1000]

    third = office.publish("2024-04-02")
    assert third.releases == ()
    assert third.state.unpublished == ()
    answers_in_march = office.answers("2024-03")
    for cell, answer in office.answers("2024-02").items():
        assert answers_in_march[cell] == pytest.approx(answer, rel=1e-9, abs=1e-9)


def test_finished_series_is_sealed_without_private_file(office):
    office.add_rows(*rows_of(1, 30, 40))
    office.publish("2024-04-01")
    assert office.private_files[0].stat().st_mode & 0o777 == 0o600

    office.publish("2025-01-01")
    assert office.private_files == []
    assert [entry.state for entry in office.open_ledger().entries()] == ["sealed"]
    after_the_end = office.publish("2025-01-02")
    assert not after_the_end.paid
    assert after_the_end.releases == ()
    assert after_the_end.state is None


def test_series_index_lists_published_periods(office):
    index = office.folder / "monthly/index.html"
    office.add_rows(*rows_of(1, 30, 40))
    office.publish("2024-04-01")
    page = index.read_text()
    # The newest first, then all.
    newest_then_all = [f"2024-0{month}/report.html" for month in (3, 1, 2, 3)]
    assert re.findall(r'href="([^"]*)"', page) == newest_then_all
    assert "3 of 6 periods are published." in page
    assert "<tr><td>June 2024<td data-name=" in page

    office.publish("2025-01-01")
    assert "6 of 6 periods are published." in index.read_text()


def test_releases_of_a_series_describe_it(office):
    office.add_rows(*rows_of(1, 30, 40))
    office.publish("2024-04-01")
    out = office.folder / "monthly/2024-03"
    assert (
        "A release up to 2024-03 of a series over 6 periods. The budget is for all its "
        "releases together." in report(out)
    )
    assert manifest(out)["plan"]["details"]["series"] == {
        "along": "month",
        "late": "drop",
        "strategy_of_a_period": "tilted",
        "through": "2024-03",
        "periods": 6,
        "cost": plan_spec(office.read_spec()).cost().to_json(),
    }


def test_python_publishes_due_periods(office):
    office.add_rows(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    office.set_today("2024-04-01")
    spec = office.read_spec()
    out = office.folder / "monthly"
    places = {"out": out, "ledger": office.ledger}
    february = ln.release_series(spec, spec.source, **places, through="2024-02")
    assert february == (out / "2024-02",)
    march_rows = pd.DataFrame({"day": ["2024-03-01"], "sex": ["F"]})
    assert ln.release_series(spec, march_rows, **places) == (out / "2024-03",)
    assert ln.release_series(spec, spec.source, **places) == ()
    with pytest.raises(ln.InputError, match="A series must have a ledger"):
        ln.release_series(spec, spec.source, out=out)


def test_series_guard_is_paid_once_and_can_stop_it(office):
    office.write_spec(("[series]", '[plan]\nguard = "1/100"\n[series]'))
    office.add_rows(*rows_of(1, 30, 40), *[("2023-01-15", "F")] * 200)
    with pytest.raises(ln.GuardError, match=r"Only the guard was paid, rho = 10"):
        office.publish("2024-02-10")
    assert not (office.folder / office.out).exists()
    office.open_ledger().set_budget(ln.ZCDP(1010))
    office.rows[:] = rows_of(1, 30, 40)
    assert office.publish("2024-02-10").paid
    # The guard looked at the first table only: rows outside the domain may come later.
    office.add_rows(*[("2023-01-15", "F")] * 200)
    office.publish("2024-03-10")
    assert office.charges == [10, 10, 990]
    for period in ("2024-01", "2024-02"):
        release = ln.read_release(office.folder / office.out / period)
        # The standard error is 0.32: an error of 2 or more has a probability below 1e-8.
        assert release.receipt.guard.used == pytest.approx(70, abs=1)


@pytest.mark.slow
def test_sums_means_and_units_are_published_by_period(office):
    more_workload = """means = { of = "paid", by = ["month", "sex"] }
[[workload]]
queries = { month = "prefix" }
sum = "paid"
[[workload]]
queries = { month = "identity", sex = "identity" }
count = "units"
[series]"""
    unit = 'unit = { column = "person", max_rows = 2 }'
    office.write_spec(
        ("[series]", "[[workload]]\n" + more_workload), ('"1000"', '"1e7"'), unit=unit
    )
    office.add_rows(
        ("2024-01-10", "F", "ann", "100"),
        ("2024-01-11", "F", "ann", "600"),
        ("2024-01-12", "M", "bob", ""),
    )
    office.publish("2024-02-10")
    # The second row comes late, and is dropped.
    office.add_rows(("2024-02-10", "F", "ann", "70"), ("2024-01-15", "M", "bob", "400"))
    office.publish("2024-03-10")
    release = ln.read_release(office.folder / office.out / "2024-02")
    assert release.tables["sum of paid by month:prefix"].answer.round() == pytest.approx(
        [600, 670], abs=10
    )
    assert release.tables["units by month x sex"].answer.round().tolist() == [[1, 1], [1, 0]]
    assert release.tables["count of paid by month x sex"].answer.round().tolist() == [
        [2, 0],
        [1, 0],
    ]
    means = release.statistics["mean of paid by month x sex"].numbers()
    # The standard error of the second mean is 0.8, so 6 is beyond chance.
    assert means["mean"][[0, 2]].tolist() == pytest.approx([300, 70], abs=6)
    assert '["paid", ["month", "sex"]' in office.private_files[0].read_text()


def test_changes_are_published_with_difference_errors(office):
    office.write_spec(("{ rolling = 3 }", "{ change = 2 }"), ('rho = "1000"', 'rho = "1/2"'))
    office.add_rows(
        *rows_of(1, 30, 40), *rows_of(2, 10, 20), *rows_of(3, 5, 6), *rows_of(4, 15, 16)
    )
    office.publish("2024-05-01")
    out = office.folder / "monthly"
    assert "month:change 2 x sex" not in (out / "2024-02/tables.csv").read_text()
    april_report = (out / "2024-04/report.html").read_text()
    assert "month (change over 2 periods) x sex" in april_report

    release = ln.read_release(out / "2024-04")
    changes = release.tables["month:change 2 x sex"]
    months = release.tables["month x sex"]
    assert changes.labels == (("2024-03 - 2024-01", "2024-04 - 2024-02"), ("F", "M"))
    assert changes.answer == pytest.approx(months.answer[2:] - months.answer[:2])

    # Var(later - earlier) = Var(later) + Var(earlier) - 2 Cov(later, earlier).
    covariance = release.covariance("month x sex").reshape(4, 2, 4, 2)
    variances = np.zeros((2, 2))
    for month in (0, 1):
        for sex in (0, 1):
            later = covariance[month + 2, sex]
            earlier = covariance[month, sex]
            variances[month, sex] = later[month + 2, sex] + earlier[month, sex]
            variances[month, sex] -= 2 * later[month, sex]
    assert changes.noise_std**2 == pytest.approx(variances)
    office.write_spec(("{ rolling = 3 }", "{ change = 6 }"))
    with pytest.raises(ln.InputError, match="a whole number from 1 to 5; got 6"):
        office.publish("2024-05-02")


@pytest.mark.parametrize("late", ["drop", "arrival"])
def test_files_of_closed_periods_are_not_read(office, late):
    """The damaged file of January matters only if late rows are counted on arrival."""
    folder = office.folder / "visits"
    folder.mkdir()
    for month in (1, 2, 3):
        lines = ["day,sex", *map(",".join, rows_of(month, month, 0)), ""]
        (folder / f"2024-{month:02}.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    moved = ('path = "visits.csv"', 'path = "visits"')
    office.write_spec(moved, ('along = "month"', 'along = "month"\nfiles = "%Y-%m.*"'), late=late)
    office.publish("2024-02-10")
    for month in (1, 3):
        file = folder / f"2024-{month:02}.csv.gz"
        file.write_bytes(file.read_bytes()[:-9])
    if late == "arrival":
        with pytest.raises(ln.InputError, match="cannot be read"):
            office.publish("2024-03-10")
    else:
        office.publish("2024-03-10")
        assert office.counts("2024-02") == {"01F": 1, "01M": 0, "02F": 2, "02M": 0}
        office.write_spec(moved, late=late)
        with pytest.raises(ln.InputError, match="cannot be read"):
            office.publish("2024-04-10")


def test_late_rows_count_on_arrival_if_declared(office):
    office.write_spec(late="arrival")
    office.add_rows(*rows_of(1, 30, 40), *rows_of(2, 10, 20))
    office.publish("2024-02-10")
    office.add_rows(*rows_of(1, 2, 0))
    office.publish("2024-03-10")
    office.add_rows(*rows_of(1, 0, 7), *rows_of(2, 1, 0), *rows_of(3, 3, 3))
    office.publish("2024-04-10")
    january = {"01F": 30, "01M": 40}
    assert office.counts("2024-03") == {**january, "02F": 12, "02M": 20, "03F": 4, "03M": 10}


SERIES_NAMES = """
[names]
rows = { en = "visits", de = "Besuche" }
attributes.sex = { en = "sex", de = "Geschlecht" }
[series]"""


def newest_values(page, view):
    """Return the texts of the rows of a table of newest values on the page of a series."""
    article = re.search(rf'<article id="{view}".*?</article>', page, re.DOTALL)
    assert article is not None
    rows = re.findall(r"<tr>(<td.*)", article.group())
    return [re.split(r"<td[^>]*>|<small>", row.replace("</small>", ""))[1:] for row in rows]


def test_series_page_shows_newest_values_and_changes(office):
    total = 'queries = { month = "identity" }'
    office.write_spec(('"1000"', '"1e6"'), ("[series]", f"[[workload]]\n{total}\n" + SERIES_NAMES))
    office.add_rows(*rows_of(1, 400, 200), *rows_of(2, 500, 100))
    office.publish("2024-03-01", through="2024-02")
    page = (office.folder / "monthly/index.html").read_text(encoding="utf-8")
    german = (office.folder / "monthly/index.de.html").read_text(encoding="utf-8")
    assert re.findall(r'<article id="(q\d)"', page) == ["q2", "q3", "q1"]  # totals first
    assert newest_values(page, "q1") == [
        ["F", "500.00 ± 0.50", "+100.00 ± 0.50", "+25.0 ± 0.2%"],
        ["M", "100.00 ± 0.50", "\u2212100.00 ± 0.50", "\u221250.0 ± 0.3%"],
    ]
    assert newest_values(german, "q3") == [["600,00 ± 0,50", "0,00 ± 0,50", "0,0 ± 0,1\xa0%"]]
    assert newest_values(page, "q2") == [["1,200.00 ± 0.50"]]  # all so far have no change
    assert "Change from January\u00a02024" in page
    assert "Veränderung gegenüber Januar\u00a02024" in german
    assert "Besuche nach month und Geschlecht" in german


def test_series_page_shows_changes_of_means(office):
    means = '[[workload]]\nmeans = { of = "paid", by = ["month"] }\n[series]'
    office.write_spec(("[series]", means))
    visits = [(1, 100), (2, 150), (3, 90)]
    office.add_rows(*[(f"2024-0{month}-05", "F", "p", str(paid)) for month, paid in visits * 200])
    office.publish("2024-04-01", through="2024-03")
    page = (office.folder / "monthly/index.html").read_text(encoding="utf-8")
    ((value, change, percent),) = newest_values(page, "s1")
    assert re.fullmatch(r"(89|90)\.\d+ ± \d\.\d+", value)
    assert change.startswith("\u2212")
    assert percent.startswith(("\u221239", "\u221240"))


def test_series_page_changes_follow_published_rounding(office):
    office.write_spec(("[output]", "[output]\nround = 50"))
    office.add_rows(*rows_of(1, 420, 200), *rows_of(2, 530, 110))
    office.publish("2024-03-01", through="2024-02")
    page = (office.folder / "monthly/index.html").read_text(encoding="utf-8")
    assert newest_values(page, "q1") == [
        ["F", "550 ± 26", "+150 ± 51"],  # 550 less 400; the true change is 110
        ["M", "100 ± 26", "\u2212100 ± 51"],
    ]


def test_other_spec_starts_a_separate_series(office):
    office.add_rows(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    office.open_ledger().set_budget(ln.ZCDP(2000))
    changes_by_part = {
        r"\[privacy\]": [('"1000"', '"900"')],
        r"\[series\]": [('"drop"', '"arrival"')],
        r"\[domain\](, \[\[workload\]\])?": [
            ("2024-01-01", "2024-07-01"),
            ("2024-06-30", "2024-12-31"),
        ],
    }
    for part, changes in changes_by_part.items():
        office.write_spec(*changes)
        with pytest.raises(ln.InputError, match=rf"another spec \(its {part} differ\)"):
            office.publish("2024-08-10")
    office.out = "later"
    office.add_rows(*rows_of(7, 3, 4))
    assert office.publish("2024-08-10").paid
    assert office.counts("2024-07") == {"07F": 3, "07M": 4}
    assert office.charges == [1000, 1000]
    assert len(office.private_files) == 2


@pytest.mark.filterwarnings("ignore:Release . of .* was stopped before it was published")
def test_stopped_series_run_resumes_with_its_draws(office):
    office.add_rows(*rows_of(1, 30, 40), *rows_of(2, 10, 20))
    with stopped(_release_job, "build_release") as stop:
        office.publish("2024-03-10")
    assert stop.value.state == "resumable"
    assert len(office.pending_steps()) == 2

    # Neither the rows nor the file of exact counts are needed any more.
    office.rows.clear()
    for file in office.private_files:
        file.unlink()
    (finished,) = ln.resume(office.open_ledger())
    assert office.counts("2024-01") == {"01F": 30, "01M": 40}
    assert finished.answers["answer"].tolist() == [*office.answers("2024-02").values()]
    assert ln.resume(office.open_ledger()) == []


def test_lost_private_file_ends_the_series(office):
    office.add_rows(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    private_content = office.private_files[0].read_bytes()
    office.private_files[0].unlink()
    with pytest.raises(
        ln.PaidError,
        match=(
            r"can still publish the periods that were drawn.*nothing of it is paid again: "
            r"`leastnoise ledger show "
        ),
    ):
        office.publish("2024-03-10")
    assert not (office.folder / "monthly/2024-02").exists()
    (office.folder / "visits.ledger.series-1.private").write_bytes(private_content)
    assert published_periods(office.publish("2024-03-10")) == ["2024-02"]


def test_restored_ledger_copy_draws_no_period_twice(office):
    office.add_rows(*rows_of(1, 30, 40), *rows_of(2, 10, 20))
    office.publish("2024-02-10")
    copies = {path: path.read_bytes() for path in office.folder.iterdir() if "ledger" in path.name}
    assert len(copies) > 1
    office.publish("2024-03-10")
    for path, content in copies.items():
        path.write_bytes(content)
    with pytest.raises(ln.LedgerError, match=r"fewer steps than were drawn .*monthly/2024-02"):
        office.publish("2024-04-10")


def test_series_continues_with_its_second_table(office):
    office.add_rows(*rows_of(1, 30, 40), *rows_of(2, 10, 20))
    (office.folder / "visits.csv").write_text(
        "\n".join(["day,sex", *map(",".join, office.rows), ""])
    )
    office.set_today("2024-03-01")
    spec = office.read_spec()
    second = pd.DataFrame({"sex": ["F", "M"], "region": ["n", "s"]})
    places = {"out": office.folder / "monthly", "ledger": office.ledger}
    joined = ln.Joined(spec.source, second, on="sex", public=True)
    ln.release_series(spec, joined, **places, through="2024-01")
    with pytest.raises(ln.InputError, match="the same second table"):
        ln.release_series(spec, spec.source, **places)
    assert [folder.name for folder in ln.release_series(spec, joined, **places)] == ["2024-02"]


def test_unfinished_periods_are_refused_unpaid(office):
    office.add_rows(*rows_of(1, 30, 40))
    with pytest.raises(ln.InputError, match="No period is over yet"):
        office.publish("2024-01-31")
    with pytest.raises(ln.InputError, match="2024-03 is not over; it ends on 2024-03-31"):
        office.publish("2024-03-31", through="2024-03")
    with pytest.raises(ln.InputError, match="--through"):
        office.publish("2024-03-31", through="2023-01")
    assert not office.ledger.exists()
    published = office.publish("2024-03-01", through="2024-02")
    assert published_periods(published) == ["2024-01", "2024-02"]


def test_plan_of_a_series_is_refused_for_one_release(office):
    plan = plan_spec(office.read_spec())
    with pytest.raises(ln.InputError, match="published period by period"):
        ln.release(plan, pd.DataFrame({"day": ["2024-01-01"], "sex": ["F"]}), seed=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ('rho = "1000"\n', 'epsilon = "1"\n', '"2024-06-30"', '"2044-06-30"'),
            "at most 128 periods",
        ),
        (('rho = "1000"', 'rho = "least"'), "State the budget of all periods together"),
        (('along = "month"', 'along = "sex"'), "an attribute with dates"),
        (('late = "drop"', 'files = "%Y/*"'), "files must be a pattern that differs"),
        (('late = "drop"', 'files = " "'), "files must be a pattern that differs"),
        (('along = "month"', 'along = "week"'), "along must be one of"),
        (('along = "month"', ""), "must have the key 'along'"),
        (('late = "drop"', 'late = "never"'), "late must be one of"),
        (('by = "month"', 'by = "weekday"'), "an attribute with dates"),
        (('by = "month" }', 'by = "month" }\noutside = "clip"'), "null and outside"),
        (('to = "2024-06-30"', 'to = "2024-01-30"', "rolling = 3", "rolling = 1"), "at least 2"),
        (('{ month = "prefix" }', '{ sex = "identity" }'), "sex has none"),
        (
            ('{ month = "prefix" }', '{ month = { level = "quarter" } }'),
            "the query set of a series along month",
        ),
        (("rolling = 3 }", "rolling = 9 }"), "from 1 to 6"),
        (
            (
                '{ month = { rolling = 3 }, sex = "identity" }',
                '{ month = "identity", sex = { rolling = 2 } }',
            ),
            "windows of dates",
        ),
        (("[series]", '[plan]\nobjective = "worst"\n[series]'), "a weight"),
        (("[series]", '[plan]\nafter = ["release-2025"]\n[series]'), "one with \\[plan\\] after"),
        (
            (
                '{ month = "prefix" }',
                '{ month = "prefix" }\nsum = "paid"',
                'late = "drop"',
                'late = "arrival"',
            ),
            '"drop" if sums',
        ),
        (
            ('queries = { month = "prefix" }', 'means = { of = "paid", by = ["sex"] }'),
            "with month in by",
        ),
        (
            (
                "clip = [0, 500]",
                "clip = [0, 500_000_000]",
                '{ month = "prefix" }',
                '{ month = "prefix" }\nsum = "paid"',
            ),
            "a larger unit",
        ),
    ],
)
def test_invalid_series_are_refused(office, changes, message):
    office.write_spec(changes[:2], changes[2:] or ("", ""))
    with pytest.raises(ln.InputError, match=message):
        plan_spec(office.read_spec())


def test_series_cost_covers_max_rows_in_every_period(office):
    office.write_spec(('"1000"', '"40000"'), unit='unit = { column = "person", max_rows = 2 }')
    privacy = office.read_spec().privacy
    assert privacy.max_rows == 12  # 2 in each of 6 periods
    assert privacy.max_per_cell == ln.PerCellBound(2, "month")
    office.add_rows(
        *[("2024-01-10", "F", "ann")] * 5,
        *[("2024-02-10", "F", "ann")] * 5,
        *[("2024-02-11", "M", f"p{person}") for person in range(9)],
    )
    office.publish("2024-03-10")
    assert office.counts("2024-02") == {"01F": 2, "01M": 0, "02F": 2, "02M": 9}
    office.write_spec(unit='unit = { column = "person", max_rows = 2, max_per_cell = 1 }')
    with pytest.raises(ln.InputError, match="max_rows is for each period"):
        office.read_spec()
    office.write_spec(unit='unit = { column = "person", max_rows = 2 }', late="arrival")
    with pytest.raises(ln.InputError, match="where a column names the units"):
        office.read_spec()


@pytest.mark.parametrize(
    ("unit", "bound_per_month", "counts"),
    [
        (", max_rows = 2", ln.PerCellBound(2, "month"), [2, 2, 0]),
        (", max_rows = 3", ln.PerCellBound(3, "month"), [3, 1, 0]),
        (", max_rows = 4", None, [4, 0, 0]),
        (", max_rows = 9", None, [4, 0, 0]),
        ("", None, [4, 0, 0]),
    ],
)
def test_series_bounds_rows_of_a_unit_in_all_periods(office, unit, bound_per_month, counts):
    """One run publishes January, one February, and one the next three months together."""
    office.write_spec(
        ("[series]", "[series]\nmax_rows = 4"), unit=f'unit = {{ column = "person"{unit} }}'
    )
    privacy = office.read_spec().privacy
    assert privacy.max_rows == 4
    assert privacy.max_per_cell == bound_per_month

    for month, today in ((1, "2024-02-10"), (2, "2024-03-10"), (3, "2024-06-10")):
        day = f"2024-{month:02}-10"
        office.add_rows(*[(day, "F", "ann")] * 5, (day, "M", "bob"))
        office.publish(today)
    published = office.counts("2024-05")
    assert [published[f"{month:02}F"] for month in (1, 2, 3)] == counts
    assert [published[f"{month:02}M"] for month in (1, 2, 3)] == [1, 1, 1]
    assert "it no longer counts in later periods" in report(office.folder / office.out / "2024-05")
    (warning,) = [text for text in spec_warnings(office.read_spec()) if "max_rows" in text]
    assert "A unit that has used its 4 rows counts no more" in warning
    office.publish("2024-07-02")
    assert office.private_files == []


def test_series_limit_is_checked_and_part_of_the_spec(office):
    limited = ("[series]", "[series]\nmax_rows = 4")
    office.write_spec(limited)
    with pytest.raises(ln.InputError, match="left out if every row is a unit"):
        office.read_spec()
    unit = 'unit = { column = "person", max_rows = 1 }'
    for invalid in ("0", "1.5", '"4"', "true"):
        office.write_spec((limited[0], limited[1].replace("4", invalid)), unit=unit)
        with pytest.raises(ln.InputError, match=r"\[series\] max_rows must be a whole number"):
            office.read_spec()
    office.write_spec(limited, unit='unit = { column = "person", max_rows = 4, max_per_cell = 1 }')
    with pytest.raises(ln.InputError, match=r"in all periods together by \[series\] max_rows"):
        office.read_spec()
    office.write_spec(limited, unit=unit)
    office.add_rows(("2024-01-10", "F", "ann"))
    office.publish("2024-02-10")
    assert office.publish("2024-03-10").paid is False
    office.write_spec((limited[0], limited[1].replace("4", "5")), unit=unit)
    with pytest.raises(ln.InputError, match=r"another spec \(its \[privacy\] differ"):
        office.publish("2024-04-10")


def test_series_limit_reads_a_database_table(office):
    office.write_spec(("[series]", "[series]\nmax_rows = 2"), unit='unit = { column = "person" }')
    office.add_rows(*[(f"2024-{month:02}-10", "F", "ann") for month in (1, 2, 3)] * 2)
    office.publish("2024-02-10")
    office.set_today("2024-04-10")
    visits = duckdb.from_df(pd.DataFrame(office.rows, columns=["day", "sex", "person"]))
    spec = office.read_spec()
    ln.release_series(spec, visits, ledger=office.ledger, out=office.folder / office.out)
    counts = office.counts("2024-03")
    assert [counts[f"{month:02}F"] for month in (1, 2, 3)] == [2, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("budget", [ln.ZCDP("1/2"), ln.PureDP(1)], ids=["rho", "epsilon"])
def test_smaller_limits_of_a_series_cost_less(budget):
    """The error of one row in all periods is the least; one in each period costs the most."""
    workload = ln.queries(daily_domain(12), day="identity") + ln.queries(
        daily_domain(12), day="prefix"
    )
    errors = []
    for max_rows in (1, 2, 4, 8, None):
        series = SeriesOptions("day", max_rows=max_rows)
        privacy = series.privacy(ln.Privacy(budget, unit_column="person"), workload.domain)
        plan = series_plan(workload, privacy, series, Search())
        assert plan.expected_error().times_least >= 1
        assert truncate_plan(plan, 3).expected_error().times_least >= 1
        errors.append(plan.expected_error().total_squared_error)
    assert errors == sorted(errors)
    plan_of_rows = series_plan(workload, ln.Privacy(budget), SeriesOptions("day"), Search())
    assert errors[0] == pytest.approx(plan_of_rows.expected_error().total_squared_error)


def daily_domain(periods, **kinds):
    """Return a domain with that many days of 2024, and other attributes or measures."""
    last_day = dt.date(2024, 1, 1) + dt.timedelta(days=periods - 1)
    return ln.Domain({"day": ln.Dates("2024-01-01", last_day)}, **kinds)


def plan_daily_series(workload, budget):
    return series_plan(workload, ln.Privacy(budget), SeriesOptions("day"), Search())


def truncated_releases(plan, rows, seeds, folder, ends):
    """Yield, for each seed and end, the number of periods and the release up to there."""
    contract = release_contract(plan)
    table = read_table(plan, rows, allowance=row_allowance(contract, None, None, None))
    for seed in range(seeds):
        series = UnpaidSeries(contract, table, SeededEntropy(seed))
        values = []
        for periods in ends:
            while len(values) < periods:
                values.append(series.period(folder / f"{seed}.private"))
            combined = combine_periods(plan, truncate_plan(plan, periods), values, "")
            yield periods, build_release(combined)


def test_period_release_matches_error_at_the_end():
    workload = ln.queries(daily_domain(64), day="prefix")
    plan = plan_daily_series(workload, ln.ZCDP("1/2"))
    assert plan.expected_error().tables[0].rmse == pytest.approx(2.1000, abs=5e-5)
    plan_for_the_end = ln.plan(workload, ln.ZCDP("1/2"), strategy="gaussian_optimum")
    assert plan.expected_error().total_squared_error == pytest.approx(
        plan_for_the_end.expected_error().total_squared_error, rel=1e-5
    )
    promised_errors = [errors[0] for errors in period_errors(plan).values()]
    for periods in (1, 7, 40, 64):
        total = truncate_plan(plan, periods).expected_error().total_squared_error
        assert total == pytest.approx(
            sum(error**2 for error in promised_errors[:periods]), rel=1e-9
        )


@pytest.mark.slow
def test_pure_series_hierarchies_improve_earlier_numbers(tmp_path):
    plan = plan_daily_series(ln.queries(daily_domain(60), day="prefix"), ln.PureDP(1))
    (block,) = plan.measured().blocks
    assert block.rows > 60  # more than the cells
    promised_errors = [errors[0] for errors in period_errors(plan).values()]
    # Sums of noisy cells: the day n sums n cells of discrete Laplace noise at epsilon = 1.
    variance_of_a_cell = 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2
    error_from_cells = variance_of_a_cell * sum(range(1, 61))
    assert sum(error**2 for error in promised_errors) < 0.92 * error_from_cells
    rows = pd.DataFrame({"day": pd.to_datetime(["2024-01-01"] * 500 + ["2024-01-09"] * 300)})
    errors_of_day_10 = [
        release.answers["answer"][9] - 800
        for _, release in truncated_releases(plan, rows, 20, tmp_path, (10, 12))
    ]
    assert np.abs(errors_of_day_10).max() < 60
    assert np.sqrt(np.mean(np.square(errors_of_day_10[::2]))) == pytest.approx(
        promised_errors[9], rel=0.4
    )


def test_long_series_are_planned_near_the_optimum():
    plan = plan_daily_series(ln.queries(daily_domain(700), day="prefix"), ln.ZCDP("1/2"))
    assert plan.expected_error().times_least < 1.04
    squared_errors = [errors[0] ** 2 for errors in period_errors(plan).values()][:300]
    assert truncate_plan(plan, 300).expected_error().tables[0].rmse == pytest.approx(
        math.sqrt(np.mean(squared_errors))
    )


def table_of_days(days, **columns):
    return pd.DataFrame({"day": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, "D"), **columns})


@pytest.mark.parametrize(
    "budget",
    [ln.ZCDP("1/8"), ln.ApproxDP(1, "1e-6"), ln.PureDP(1)],
    ids=["rho", "delta", "epsilon"],
)
def test_series_sums_have_promised_errors(tmp_path, budget):
    periods = 5
    seeds = 6
    random = np.random.default_rng(6)
    pay = ln.Measure("pay", -3, 40, unit="0.5")
    domain = daily_domain(periods, group=ln.Coded(40), measures={"pay": pay})
    workload = ln.queries(domain, day="identity", group="identity", sum="pay") + ln.queries(
        domain, day="prefix", group="identity", sum="pay"
    )
    plan = plan_daily_series(workload + ln.queries(domain, day="prefix", group="identity"), budget)
    days = random.integers(periods, size=3000)
    codes = random.integers(40, size=3000)
    paid = random.integers(-6, 81, size=3000) / 2
    truth = np.zeros((periods, 40))
    np.add.at(truth, (days, codes), paid)
    promised = np.array([row[:2] for row in period_errors(plan).values()])
    squares = np.zeros((periods, 2))
    rows = table_of_days(days, group=codes, pay=paid)

    for end, release in truncated_releases(plan, rows, seeds, tmp_path, range(1, periods + 1)):
        for query, expected in enumerate((truth[end - 1], truth[:end].sum(axis=0))):
            table = release.tables[f"sum of pay by day{':prefix' * query} x group"]
            assert table.noise_std[-1] == pytest.approx(promised[end - 1, query], rel=1e-6)
            squares[end - 1, query] += ((table.answer[-1] - expected) ** 2).mean() / seeds

    # Each ratio averages 6 seeds x 40 groups.
    ratios = squares / promised**2
    assert 0.8 < np.sqrt(ratios.min()) < np.sqrt(ratios.max()) < 1.2
    assert np.sqrt(ratios.mean()) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("budget", ["rho", "epsilon"])
def test_enter_release_of_a_series_enters_the_whole(office, budget):
    """A ledger of rho is charged the declared rho, or the rho of the noise for an epsilon."""
    if budget == "epsilon":
        office.write_spec(('rho = "1000"', 'epsilon = "1"\ndelta = "1e-6"'))
    office.add_rows(("2024-01-03", "F"))
    (first,) = office.publish("2024-02-02").releases
    rho = ln.Ledger.create(office.folder / "rho", "visits", ln.Privacy(ln.ZCDP(5000)))
    entered = _release_job.enter_release(rho, first)
    series_cost = plan_spec(office.read_spec()).cost()
    series_charge = charge(ln.ZCDP(5000), office.read_spec().privacy.budget, series_cost)
    assert entered.charge == series_charge
    assert float(entered.charge.rho) == pytest.approx(1000 if budget == "rho" else 0.028, rel=0.1)
    with pytest.raises(ln.LedgerError, match="already has the release"):
        _release_job.enter_release(rho, first)
    monthly = ln.Ledger.create(office.folder / "by month", "visits", ln.Privacy(ln.ZCDP(5000)))
    monthly.set_budget(ln.ZCDP(5000), period="month")
    with pytest.raises(ln.InputError, match="begins anew every month"):
        _release_job.enter_release(monthly, first)


def test_a_lost_ledger_of_a_series_is_noticed(office):
    """The releases in the directory of the series show that a ledger is missing."""
    office.add_rows(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    ledger_content = office.ledger.read_bytes()
    office.ledger.unlink()
    office.out = "elsewhere"
    with pytest.raises(ln.LedgerError, match=r"There is no ledger at .*monthly/2024-01 was paid"):
        office.publish("2024-02-11")
    plan = ln.plan(ln.marginals(office.read_spec().domain, ways=1), ln.ZCDP(1))
    with pytest.raises(ln.LedgerError, match=r"There is no ledger at .*monthly/2024-01 was paid"):
        ln.release(plan, office.folder / "visits.csv", ledger=office.ledger)
    office.ledger.write_bytes(ledger_content)
    office.out = "monthly"
    assert office.publish("2024-02-11").releases == ()


def test_an_older_ledger_of_a_series_is_noticed(office):
    office.add_rows(*rows_of(1, 30, 40))
    ln.Ledger.create(office.ledger, "visits", ln.Privacy(ln.ZCDP(5000)))
    ledger_content = office.ledger.read_bytes()
    office.publish("2024-02-10")
    office.ledger.write_bytes(ledger_content)
    office.out = "elsewhere"
    with pytest.raises(ln.LedgerError, match=r"does not know the release in .*monthly/2024-01"):
        office.publish("2024-02-11")


@pytest.mark.parametrize("place", ["monthly", "renamed", "behind a link"])
def test_older_copies_draw_no_period_again(office, place):
    """The ledger and the private file are restored to January; February was published."""
    ledger_folder = office.folder / "kept"
    ledger_folder.mkdir()
    ln.Ledger.create(ledger_folder / "visits.ledger", "visits", ln.Privacy(ln.ZCDP(5000)))
    if place == "behind a link":
        office.ledger.symlink_to(ledger_folder / "visits.ledger")
        office.out = "kept/monthly"
    else:
        office.ledger = ledger_folder / "visits.ledger"
    office.add_rows(*rows_of(1, 30, 40), *rows_of(2, 3, 4))
    office.publish("2024-03-10", through="2024-01")
    january_files = {file: file.read_bytes() for file in ledger_folder.glob("visits.ledger*")}
    office.publish("2024-03-10")
    for file, content in january_files.items():
        file.write_bytes(content)
    if place == "renamed":
        (office.folder / "monthly").rename(office.folder / "renamed")
    elif place == "behind a link":
        office.out = "elsewhere/monthly"
    for call in (lambda: office.publish("2024-03-11"), lambda: ln.resume(office.ledger)):
        with pytest.raises(ln.LedgerError, match=r"fewer steps than were drawn .*2024-02"):
            call()
    assert len(office.pending_steps()) == 1


def test_private_file_is_beside_the_ledger(office):
    ledger_folder = office.folder / "kept"
    ledger_folder.mkdir()
    ln.Ledger.create(ledger_folder / "real.ledger", "visits", ln.Privacy(ln.ZCDP(5000)))
    office.ledger.symlink_to(ledger_folder / "real.ledger")
    office.add_rows(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    assert office.private_files == []
    assert [file.name for file in ledger_folder.glob("*.private")] == [
        "real.ledger.series-1.private"
    ]
    office.ledger = ledger_folder / "real.ledger"  # without the link it goes on
    assert published_periods(office.publish("2024-03-10")) == ["2024-02"]


def test_a_series_is_not_paid_from_a_budget_by_periods(office):
    office.add_rows(*rows_of(1, 30, 40))
    ledger = ln.Ledger.create(office.ledger, "visits", ln.Privacy(ln.ZCDP(1000)))
    ledger.set_budget(ln.ZCDP(1000), period="month")
    with pytest.raises(ln.InputError, match=r"begins anew every month\. Nothing was spent"):
        office.publish("2024-02-10")
    assert office.charges == []
    assert office.private_files == []


def test_series_draws_nothing_in_a_later_budget_period(office, monkeypatch):
    """The rows of a later month may belong to other people, who have their own budget."""
    office.add_rows(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    paid_on = office.open_ledger().entries()[0].reserved_on
    office.open_ledger().set_budget(ln.ZCDP(1000), period="month")
    office.add_rows(*rows_of(2, 3, 4))
    later = (paid_on.replace(day=1) + dt.timedelta(40)).replace(day=1)
    monkeypatch.setattr(_ledger, "today", lambda: later)
    with pytest.raises(ln.LeastNoiseError, match="that month is over"):
        office.publish("2024-03-10")
    assert not (office.folder / "monthly/2024-02").exists()
    assert len(office.pending_steps()) == 1
    office.open_ledger().set_budget(ln.ZCDP(1000), period="")
    assert published_periods(office.publish("2024-03-10")) == ["2024-02"]


@pytest.mark.parametrize("when", ["between the payments", "before the first period"])
def test_killed_guarded_series_continues(office, monkeypatch, when):
    """The paid guard is not paid again; the ledger has just enough for guard and series."""
    office.write_spec(("[series]", '[plan]\nguard = "1/100"\n[series]'))
    office.add_rows(*rows_of(1, 30, 40))
    stopped_method = "paid" if when == "between the payments" else "period"
    original = getattr(Series, stopped_method)

    def call_or_interrupt(*arguments, **options):
        if options.get("output") == "(guard)":
            return original(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Series, stopped_method, staticmethod(call_or_interrupt))
    with pytest.raises(KeyboardInterrupt):
        office.publish("2024-02-10")
    monkeypatch.undo()
    resumed = office.publish("2024-02-10")
    assert published_periods(resumed) == ["2024-01"]
    assert office.charges == [10, 990]
    assert office.open_ledger().entries()[0].state == "sealed"
    used = ln.read_release(resumed.releases[0]).receipt.guard.used
    assert abs(used - 70) <= 5  # two draws of noise of scale 1/5


def plan_series_of_units(workload, budget, rows=1, neighbours="add_remove"):
    """Return a plan of a daily series in which a person has up to ``rows`` rows a day."""
    series = SeriesOptions("day")
    privacy = series.privacy(ln.Privacy(budget, neighbours, "person", rows), workload.domain)
    return series_plan(workload, privacy, series, Search())


@pytest.mark.parametrize(
    ("neighbours", "rows", "std"),
    [("add_remove", 1, 50), ("add_remove", 3, 450), ("replace", 1, 50)],
)
def test_period_unit_counts_cost_root_of_squares(neighbours, rows, std):
    """At a rho of 1/2 the error is 1 for one row in one of the 50 periods."""
    workload = ln.queries(daily_domain(50), day="identity")
    expected = plan_series_of_units(workload, ln.ZCDP("1/2"), rows, neighbours).expected_error()
    assert expected.tables[0].rmse == pytest.approx(math.sqrt(std), rel=1e-3)
    assert 1 <= expected.times_least < 2


def test_active_units_cost_root_of_periods():
    """A unit is counted once in each period, whatever its number of rows."""
    domain = daily_domain(50, group=ln.Coded(3))
    workload = ln.queries(domain, day="identity", count="units")
    for rows in (1, 7, 50):
        (table,) = plan_series_of_units(workload, ln.ZCDP("1/2"), rows).expected_error().tables
        assert table.rmse == pytest.approx(math.sqrt(50), rel=1e-3)
    by_group = ln.queries(domain, day="identity", group="identity", count="units")
    (table,) = plan_series_of_units(by_group, ln.ZCDP("1/2"), 2).expected_error().tables
    assert table.rmse == pytest.approx(math.sqrt(2 * 50), rel=1e-3)


@pytest.mark.parametrize("query_sets", ["prefix", "both"])
def test_series_of_units_come_near_the_bound(query_sets):
    domain = daily_domain(50)
    workload = ln.queries(domain, day="prefix")
    if query_sets == "both":
        workload += ln.queries(domain, day="identity")
    plan = plan_series_of_units(workload, ln.ZCDP("1/2"))
    assert 1 <= plan.expected_error().times_least < 1.3
    for periods in (1, 2, 9, 49):  # a unit has rows in these periods only
        assert truncate_plan(plan, periods).expected_error().times_least >= 1


@pytest.mark.slow
@pytest.mark.parametrize("budget", [ln.ZCDP("1/8"), ln.PureDP(1)], ids=["rho", "epsilon"])
def test_series_units_have_promised_errors(tmp_path, budget):
    random = np.random.default_rng(2)
    periods = 6
    seeds = 40
    domain = daily_domain(periods, group=ln.Coded(40))
    workload = ln.queries(domain, day="identity", group="identity")
    workload += ln.queries(domain, day="prefix", group="identity")
    plan = plan_series_of_units(workload, budget)
    rows = table_of_days(
        np.tile(np.arange(periods), 300), group=random.integers(40, size=300 * periods)
    )
    rows["person"] = np.repeat(np.arange(300), periods)
    truth = np.zeros((periods, 40))
    np.add.at(truth, (np.tile(np.arange(periods), 300), rows["group"].to_numpy()), 1)
    promised = np.array([row[:2] for row in period_errors(plan).values()])
    squares = np.zeros((periods, 2))
    for end, release in truncated_releases(plan, rows, seeds, tmp_path, range(1, periods + 1)):
        for query, expected in enumerate((truth[end - 1], truth[:end].sum(axis=0))):
            table = release.tables[f"day{':prefix' * query} x group"]
            squares[end - 1, query] += ((table.answer[-1] - expected) ** 2).mean() / seeds
    ratios = squares / promised**2
    assert 0.8 < np.sqrt(ratios.min()) < np.sqrt(ratios.max()) < 1.2
    assert np.sqrt(ratios.mean()) == pytest.approx(1, abs=0.05)


def test_series_of_units_beside_contrasts_is_drawable():
    """The contrasts of another attribute leave few bits for the weights of periods."""
    domain = daily_domain(30, group=ln.Coded(2), age=ln.Coded(2))
    workload = ln.queries(domain, day="prefix", group="identity", age="prefix")
    workload += ln.queries(domain, day="identity")
    for budget in (ln.ApproxDP(1, "1e-6"), ln.ZCDP("1/2")):
        plan = plan_series_of_units(workload, budget, rows=4)
        assert plan.measured().blocks[0].factors[0].row_weights is not None
        assert plan.expected_error().times_least >= 1


WINDOWS_SPEC = """
[source]
path = "visits.csv"
[privacy]
{budget}
unit = {{ column = "person", max_rows = 2 }}
[domain.day]
dates = {{ from = "2024-01-01", to = "2024-02-09", by = "day" }}
[domain.sex]
categories = ["F", "M"]
[[workload]]
queries = {{ day = "identity" }}
count = "units"
[[workload]]
queries = {{ day = {{ rolling = 7 }}, sex = "identity" }}
count = "units"
[[workload]]
queries = {{ day = {{ rolling = 28 }} }}
count = "units"
[series]
along = "day"
"""


def draw_visits(seed=4):
    """Return 400 visits of 30 persons in 40 days; some have no person, day or sex."""
    random = np.random.default_rng(seed)
    rows = table_of_days(
        random.integers(0, 40, 400), person=random.integers(0, 31, 400).astype(object)
    )
    rows["sex"] = np.array(["F", "M", None], dtype=object)[random.integers(0, 3, 400)]
    rows.loc[rows["person"] == 30, "person"] = None
    rows.loc[random.random(400) < 0.05, "day"] = pd.NaT
    return rows


def count_active_persons(rows, last, days):
    """Return the number of people with a visit in a window of days that ends on ``last``."""
    first = pd.Timestamp("2024-01-01") + pd.Timedelta(last - days + 1, "D")
    inside = rows[(rows["day"] >= first) & (rows["day"] < first + pd.Timedelta(days, "D"))]
    return int(inside["person"].nunique())


@pytest.mark.slow
def test_series_counts_active_people_in_rolling_windows(tmp_path):
    """A window of 1, 7 or 28 days counts every person once."""
    (tmp_path / "spec.toml").write_text(WINDOWS_SPEC.format(budget='rho = "1000000"'))
    plan = plan_spec(read_spec(tmp_path / "spec.toml"))
    rows = draw_visits()
    ends = (7, 28, 40)
    for periods, release in truncated_releases(plan, rows, 1, tmp_path, ends):
        by_name = {table.name: np.round(table.answer).astype(int) for table in release.tables}
        days, weeks, *months = by_name.values()
        assert days.tolist() == [count_active_persons(rows, last, 1) for last in range(periods)]
        for column, sex in enumerate("FM"):
            of_sex = rows[rows["sex"] == sex]
            expected = [count_active_persons(of_sex, last, 7) for last in range(6, periods)]
            assert weeks[:, column].tolist() == expected
        for month in months:
            assert month.tolist() == [
                count_active_persons(rows, last, 28) for last in range(27, periods)
            ]
    assert len(months) == 1


def test_rolling_windows_of_people_cost_one_count_per_period(tmp_path):
    """A person is in each window at most once, so the error is the root of their number."""
    text = WINDOWS_SPEC.format(budget='rho = "1/2"')
    for window, count in ((7, 34), (28, 13)):
        start = text.index("[[workload]]")
        workload = (
            f"[[workload]]\nqueries = {{ day = {{ rolling = {window} }} }}\ncount = 'units'\n"
        )
        (tmp_path / "spec.toml").write_text(
            text[:start] + workload + text[text.index("[series]") :]
        )
        (table,) = plan_spec(read_spec(tmp_path / "spec.toml")).expected_error().tables
        assert table.queries == count
        assert table.rmse == pytest.approx(count**0.5, rel=0.01)


@pytest.mark.parametrize(("max_rows", "rho"), [(None, 10**6), (3, 4500)])
def test_series_publishes_totals_of_units(tmp_path, max_rows, rho):
    """The payments of a person on a day are clipped together; only ``max_rows`` days count."""
    text = WINDOWS_SPEC.format(budget=f"rho = {rho}")
    start = text.index("[[workload]]")
    end = text.index("[series]")
    measure = '[measures.paid]\nunit_total = { clip = [0, 9], by = ["day"] }\n'
    workload = '[[workload]]\nqueries = { day = "identity" }\nsum = "paid"\n'
    limit = "" if max_rows is None else f"max_rows = {max_rows}\n"
    (tmp_path / "spec.toml").write_text(text[:start] + measure + workload + text[end:] + limit)
    plan = plan_spec(read_spec(tmp_path / "spec.toml"))
    rows = draw_visits().assign(paid=np.random.default_rng(8).integers(-3, 8, 400))
    by_person = rows.groupby(["person", "day"])["paid"].sum().clip(0, 9)
    if max_rows is not None:
        by_person = by_person.groupby("person").head(max_rows)
    totals = by_person.groupby("day").sum()
    days = pd.date_range("2024-01-01", periods=40)
    expected = totals.reindex(days, fill_value=0).tolist()
    for periods, release in truncated_releases(plan, rows, 1, tmp_path, (3, 40)):
        (table,) = release.tables
        assert np.round(table.answer).tolist() == expected[:periods]


def test_series_limit_is_refused_beside_people_in_windows(tmp_path):
    """A limit of 80 rows is never reached: 2 rows on each of 40 days."""
    text = WINDOWS_SPEC.format(budget="rho = 1")
    for max_rows in (1, 2, 79):
        (tmp_path / "spec.toml").write_text(f"{text}max_rows = {max_rows}\n")
        with pytest.raises(ln.InputError, match=r"Leave out \[series\] max_rows"):
            plan_spec(read_spec(tmp_path / "spec.toml"))
    (tmp_path / "spec.toml").write_text(f"{text}max_rows = 80\n")
    assert plan_spec(read_spec(tmp_path / "spec.toml")).privacy.max_rows == 80


CLIPPED_SPEC = """
[source]
path = "visits.csv"
[privacy]
rho = "{rho}"
[domain.month]
dates = {{ column = "day", from = "2024-01-01", to = "2024-02-29", by = "month" }}
[measures.paid]
clip = {clip}
[[workload]]
queries = {{ month = "identity" }}
sum = "paid"
[series]
along = "month"
late = "drop"
[output]
formats = ["csv"]
"""


def test_bounds_found_before_a_series_share_its_ledger(tmp_path):
    """The search costs 1/40 of the 1/2 in the ledger, so the series can cost 19/40."""
    random = np.random.default_rng(2)
    visits = pd.DataFrame(
        {
            "day": random.choice(["2024-01-05", "2024-02-10"], 300),
            "paid": random.integers(0, 99, 300),
        }
    )
    table = tmp_path / "visits.csv"
    visits.to_csv(table, index=False)
    ledger = tmp_path / "visits.ledger"
    spec = tmp_path / "visits.toml"
    places = {"out": tmp_path / "out", "ledger": ledger}

    spec.write_text(CLIPPED_SPEC.format(rho="1/2", clip="{ low = 0, most = 1000 }"))
    with pytest.raises(ln.InputError, match="Find them before the series with the same ledger"):
        read_spec(spec)

    search = ln.plan_bounds("paid", ln.ZCDP("1/40"), 1000, low=0, unit=1)
    bounds = ln.find_bounds(search, table, ledger=ledger, total_privacy=ln.Privacy(ln.ZCDP("1/2")))
    clip = [int(bounds.low), int(bounds.high)]
    spec.write_text(CLIPPED_SPEC.format(rho="12/25", clip=clip))
    with pytest.raises(ln.LeastNoiseError, match="too much"):
        ln.release_series(read_spec(spec), table, **places)
    spec.write_text(CLIPPED_SPEC.format(rho="19/40", clip=clip))
    folders = ln.release_series(read_spec(spec), table, **places)
    assert [folder.name for folder in folders] == ["2024-01", "2024-02"]
