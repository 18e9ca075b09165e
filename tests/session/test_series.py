"""Series: one plan for all periods, paid once and published by period, also after a stop."""

import datetime as dt
import gzip
import math
import re
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._mechanisms import Search, release_contract
from leastnoise._planning import SeriesOptions, period_errors, series_plan, truncate_plan
from leastnoise._release import build_release
from leastnoise._session import (
    _periods,
    _release_job,
    combine_periods,
    plan_spec,
    publish_due_periods,
)
from leastnoise._spec import read_spec, spec_warnings
from leastnoise._trusted.accounting import charge
from leastnoise._trusted.kernel import (
    SeededEntropy,
    Series,
    UnpaidSeries,
    _ledger,
    row_allowance,
)
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
    """A folder with a spec, data that change, and a day that passes."""

    def __init__(self, folder, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch, self.rows, self.out = folder, patch, [], "monthly"
        self.ledger = folder / "visits.ledger"
        self.spec()

    def spec(self, *changes: tuple[str, str], late: str = "drop", unit: str = "") -> None:
        """Write the spec, with other words in some places."""
        text = SPEC.format(late=late, unit=unit)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (self.folder / "spec.toml").write_text(text)

    @property
    def asked(self) -> Any:
        return read_spec(self.folder / "spec.toml")

    def on(self, day: str) -> None:
        self.patch.setattr(_periods, "_today", lambda: dt.date.fromisoformat(day))

    def come(self, *rows: tuple[str, ...]) -> None:
        self.rows += rows

    def publish(self, day: str, through: str | None = None) -> Any:
        """What the program does on a day."""
        names = ",".join(["day", "sex", "person", "paid"][: len(self.rows[0]) if self.rows else 2])
        (self.folder / "visits.csv").write_text("\n".join([names, *map(",".join, self.rows), ""]))
        self.on(day)
        what = self.asked
        return publish_due_periods(
            what,
            what.source,
            self.folder / self.out,
            self.ledger,
            lambda: plan_spec(what),
            through=through,
        )

    def answers(self, period: str) -> dict[tuple[str, str], float]:
        """By the number of the query and the cell, of the release up to a period."""
        frame = ln.read_release(self.folder / self.out / period).answers
        return dict(
            zip(zip(frame["query"], frame["cell"], strict=True), frame["answer"], strict=True)
        )

    def counts(self, period: str) -> dict[str, int]:
        """The counts of months by sex: the noise is so small that they are seen."""
        months = {
            cell: answer for (query, cell), answer in self.answers(period).items() if query == "q1"
        }
        return {
            cell.replace("month=2024-", "").replace(", sex=", ""): round(answer)
            for cell, answer in months.items()
        }

    @property
    def private(self) -> list[Any]:
        return [*self.folder.glob("*.private")]

    @property
    def book(self) -> ln.Ledger:
        return ln.Ledger.open(self.ledger)

    @property
    def paid(self) -> list[Any]:
        """The charges of releases, in rho."""
        return [entry.charge.rho for entry in self.book.entries() if entry.kind == "release"]


@pytest.fixture
def office(tmp_path, monkeypatch) -> Office:
    return Office(tmp_path, monkeypatch)


def rows_of(month: int, women: int, men: int) -> list[tuple[str, str]]:
    return [
        (f"2024-{month:02}-15", sex)
        for sex, number in (("F", women), ("M", men))
        for _ in range(number)
    ]


def test_series_without_unit_column_is_warned_about(office: Office) -> None:
    (warning,) = [sentence for sentence in spec_warnings(office.asked) if "series" in sentence]
    assert (
        "A row whose date changes after its period was closed is counted again each time" in warning
    )
    office.spec(unit='unit = { column = "person", max_rows = 1 }')
    assert not [sentence for sentence in spec_warnings(office.asked) if "series" in sentence]


@pytest.mark.parametrize("unit", ["", 'unit = { column = "person", max_rows = 2 }'])
def test_series_count_rows_without_a_sex_in_tables_without_sex(office: Office, unit: str) -> None:
    office.spec(unit=unit)
    rng = np.random.default_rng(0)
    for place in range(180):
        month, person = place // 60 + 1, f"p{place // 2}" if rng.random() < 0.8 else ""
        sex = str(rng.choice(["F", "M", "", "x"]))
        office.come((f"2024-{month:02}-15", sex, person, "3"))
    office.come(("", "F", "p1", "3"))
    office.publish("2024-04-02")
    rows = pd.DataFrame(office.rows, columns=["day", "sex", "person", "paid"])
    rows = rows[(rows.person != "") | (unit == "")]
    counts = office.counts("2024-03")
    totals = office.answers("2024-03")
    for month in range(1, 4):
        of_month = rows[rows.day == f"2024-{month:02}-15"]
        for sex in ("F", "M"):
            assert counts[f"{month:02}{sex}"] == (of_month.sex == sex).sum()
        so_far = ((rows.day != "") & (rows.day <= f"2024-{month:02}-15")).sum()
        assert totals["q2", f"month <= 2024-{month:02}"] == pytest.approx(so_far, abs=1)


def test_series_is_paid_once_and_never_changes(office: Office) -> None:
    office.come(*rows_of(1, 30, 40), *rows_of(2, 10, 20))
    first = office.publish("2024-02-10")
    assert (
        first.paid,
        [one.name for one in first.releases],
        first.state.drawn,
        first.state.due,
    ) == (True, ["2024-01"], 1, 1)
    assert office.counts("2024-01") == {"01F": 30, "01M": 40}
    office.come(*rows_of(3, 5, 6), *rows_of(1, 2, 0))  # the latter come late, and are dropped
    second = office.publish("2024-04-01")
    assert (second.paid, [one.name for one in second.releases]) == (False, ["2024-02", "2024-03"])
    assert office.counts("2024-03") == {
        "01F": 30,
        "01M": 40,
        "02F": 10,
        "02M": 20,
        "03F": 5,
        "03M": 6,
    }
    assert office.paid == [1000]
    again = office.publish("2024-04-02")
    assert (again.releases, again.state.unpublished) == ((), ())
    later = office.answers("2024-03")
    for cell, answer in office.answers("2024-02").items():
        assert later[cell] == pytest.approx(answer, rel=1e-9, abs=1e-9)
    assert office.private[0].stat().st_mode & 0o777 == 0o600
    index = (office.folder / "monthly/index.html").read_text()
    # The newest first, then all.
    assert re.findall(r'href="([^"]*)"', index) == [
        f"2024-0{month}/report.html" for month in (3, 1, 2, 3)
    ]
    assert "3 of 6 periods are published." in index
    assert "<tr><td>June 2024<td>" in index
    office.publish("2025-01-01")
    assert "6 of 6 periods are published." in (office.folder / "monthly/index.html").read_text()
    assert office.private == []
    assert [entry.state for entry in office.book.entries()] == ["sealed"]
    whole = office.publish("2025-01-02")
    assert (whole.paid, whole.releases, whole.state) == (False, (), None)
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
        "cost": plan_spec(office.asked).cost().to_json(),
    }


def test_python_publishes_due_periods(office: Office) -> None:
    office.come(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    office.on("2024-04-01")
    what, out = office.asked, office.folder / "monthly"
    given = {"out": out, "ledger": office.ledger}
    assert ln.release_series(what, what.source, **given, through="2024-02") == (out / "2024-02",)
    assert [
        one.name
        for one in ln.release_series(
            what, pd.DataFrame({"day": ["2024-03-01"], "sex": ["F"]}), **given
        )
    ] == ["2024-03"]
    assert ln.release_series(what, what.source, **given) == ()
    with pytest.raises(ln.InputError, match="A series must have a ledger"):
        ln.release_series(what, what.source, out=out)


def test_series_guard_is_paid_once_and_can_stop_it(
    office: Office,
) -> None:
    office.spec(("[series]", '[plan]\nguard = "1/100"\n[series]'))
    office.come(*rows_of(1, 30, 40), *[("2023-01-15", "F")] * 200)
    with pytest.raises(ln.GuardError, match=r"Only the guard was paid, rho = 10"):
        office.publish("2024-02-10")
    assert not (office.folder / office.out).exists()
    office.book.set_budget(ln.ZCDP(1010))
    office.rows[:] = rows_of(1, 30, 40)
    assert office.publish("2024-02-10").paid
    office.come(*[("2023-01-15", "F")] * 200)  # looked at once
    office.publish("2024-03-10")
    assert office.paid == [10, 10, 990]
    used = [
        ln.read_release(office.folder / office.out / period).receipt.guard.used
        for period in ("2024-01", "2024-02")
    ]
    assert used == [70, 70]


def test_sums_means_and_units_are_published_by_period(office: Office) -> None:
    asked = """means = { of = "paid", by = ["month", "sex"] }
[[workload]]
queries = { month = "prefix" }
sum = "paid"
[[workload]]
queries = { month = "identity", sex = "identity" }
count = "units"
[series]"""
    unit = 'unit = { column = "person", max_rows = 2 }'
    office.spec(("[series]", "[[workload]]\n" + asked), ('"1000"', '"1e7"'), unit=unit)
    office.come(
        ("2024-01-10", "F", "ann", "100"),
        ("2024-01-11", "F", "ann", "600"),
        ("2024-01-12", "M", "bob", ""),
    )
    office.publish("2024-02-10")
    # The second row comes late, and is dropped.
    office.come(("2024-02-10", "F", "ann", "70"), ("2024-01-15", "M", "bob", "400"))
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
    assert '["paid", ["month", "sex"]' in office.private[0].read_text()


def test_changes_are_published_with_difference_errors(
    office: Office,
) -> None:
    office.spec(("{ rolling = 3 }", "{ change = 2 }"), ('rho = "1000"', 'rho = "1/2"'))
    office.come(*rows_of(1, 30, 40), *rows_of(2, 10, 20), *rows_of(3, 5, 6), *rows_of(4, 15, 16))
    office.publish("2024-05-01")
    assert "month:change 2 x sex" not in (office.folder / "monthly/2024-02/tables.csv").read_text()
    assert (
        "month (change over 2 periods) x sex"
        in (office.folder / "monthly/2024-04/report.html").read_text()
    )
    release = ln.read_release(office.folder / "monthly/2024-04")
    table, months = release.tables["month:change 2 x sex"], release.tables["month x sex"]
    assert table.labels == (("2024-03 - 2024-01", "2024-04 - 2024-02"), ("F", "M"))
    assert table.answer == pytest.approx(months.answer[2:] - months.answer[:2])
    dense = release.covariance("month x sex").reshape(4, 2, 4, 2)
    variance = [
        [dense[m + 2, s, m + 2, s] + dense[m, s, m, s] - 2 * dense[m + 2, s, m, s] for s in (0, 1)]
        for m in (0, 1)
    ]
    assert table.noise_std**2 == pytest.approx(np.array(variance))
    office.spec(("{ rolling = 3 }", "{ change = 6 }"))
    with pytest.raises(ln.InputError, match="a whole number from 1 to 5; got 6"):
        office.publish("2024-05-02")


@pytest.mark.parametrize("late", ["drop", "arrival"])
def test_files_of_closed_periods_are_not_read(office: Office, late: str) -> None:
    """The file of January is damaged after it was counted, and needed for rows that come late."""
    folder = office.folder / "visits"
    folder.mkdir()
    for month in (1, 2, 3):
        lines = ["day,sex", *map(",".join, rows_of(month, month, 0)), ""]
        (folder / f"2024-{month:02}.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    moved = ('path = "visits.csv"', 'path = "visits"')
    office.spec(moved, ('along = "month"', 'along = "month"\nfiles = "%Y-%m.*"'), late=late)
    office.publish("2024-02-10")
    for month in (1, 3):
        file = folder / f"2024-{month:02}.csv.gz"
        file.write_bytes(file.read_bytes()[:-9])
    if late == "arrival":
        with pytest.raises(ln.InputError, match="cannot be read"):
            office.publish("2024-03-10")
        return
    office.publish("2024-03-10")
    assert office.counts("2024-02") == {"01F": 1, "01M": 0, "02F": 2, "02M": 0}
    office.spec(moved, late=late)
    with pytest.raises(ln.InputError, match="cannot be read"):
        office.publish("2024-04-10")


def test_late_rows_count_on_arrival_if_declared(
    office: Office,
) -> None:
    office.spec(late="arrival")
    office.come(*rows_of(1, 30, 40), *rows_of(2, 10, 20))
    office.publish("2024-02-10")
    office.come(*rows_of(1, 2, 0))
    office.publish("2024-03-10")
    office.come(*rows_of(1, 0, 7), *rows_of(2, 1, 0), *rows_of(3, 3, 3))
    office.publish("2024-04-10")
    assert office.counts("2024-03") == {
        "01F": 30,
        "01M": 40,
        "02F": 12,
        "02M": 20,
        "03F": 4,
        "03M": 10,
    }


SERIES_NAMES = """
[names]
rows = { en = "visits", de = "Besuche" }
attributes.sex = { en = "sex", de = "Geschlecht" }
[series]"""


def texts_of_table(page: str, view: str) -> list[list[str]]:
    """The rows of the newest values of a table on the page of a series."""
    article = re.search(rf'<article id="{view}".*?</article>', page, re.DOTALL)
    assert article is not None
    rows = re.findall(r"<tr>(<td.*)", article.group())
    return [re.split(r"<td[^>]*>|<small>", row.replace("</small>", ""))[1:] for row in rows]


def test_series_page_shows_newest_values_and_changes(office: Office) -> None:
    asked = 'queries = { month = "identity" }'
    office.spec(('"1000"', '"1e6"'), ("[series]", f"[[workload]]\n{asked}\n" + SERIES_NAMES))
    office.come(*rows_of(1, 400, 200), *rows_of(2, 500, 100))
    office.publish("2024-03-01", through="2024-02")
    page = (office.folder / "monthly/index.html").read_text(encoding="utf-8")
    german = (office.folder / "monthly/index.de.html").read_text(encoding="utf-8")
    assert re.findall(r'<article id="(q\d)"', page) == ["q2", "q3", "q1"]  # totals first
    assert texts_of_table(page, "q1") == [
        ["F", "500.00 ± 0.50", "+100.00 ± 0.50", "+25.0 ± 0.2%"],
        ["M", "100.00 ± 0.50", "\u2212100.00 ± 0.50", "\u221250.0 ± 0.3%"],
    ]
    assert texts_of_table(german, "q3") == [["600,00 ± 0,50", "0,00 ± 0,50", "0,0 ± 0,1\xa0%"]]
    assert texts_of_table(page, "q2") == [["1,200.00 ± 0.50"]]  # all so far have no change
    assert "Change from January\u00a02024" in page
    assert "Veränderung gegenüber Januar\u00a02024" in german
    assert "Besuche nach month und Geschlecht" in german


def test_series_page_shows_changes_of_means(office: Office) -> None:
    asked = '[[workload]]\nmeans = { of = "paid", by = ["month"] }\n[series]'
    office.spec(("[series]", asked))
    visits = [(1, 100), (2, 150), (3, 90)]
    office.come(*[(f"2024-0{month}-05", "F", "p", str(paid)) for month, paid in visits * 200])
    office.publish("2024-04-01", through="2024-03")
    page = (office.folder / "monthly/index.html").read_text(encoding="utf-8")
    ((value, change, percent),) = texts_of_table(page, "s1")
    assert re.fullmatch(r"(89|90)\.\d+ ± \d\.\d+", value)
    assert change.startswith("\u2212")
    assert percent.startswith(("\u221239", "\u221240"))


def test_series_page_changes_follow_published_rounding(office: Office) -> None:
    office.spec(("[output]", "[output]\nround = 50"))
    office.come(*rows_of(1, 420, 200), *rows_of(2, 530, 110))
    office.publish("2024-03-01", through="2024-02")
    page = (office.folder / "monthly/index.html").read_text(encoding="utf-8")
    assert texts_of_table(page, "q1") == [
        ["F", "550 ± 26", "+150 ± 51"],  # 550 less 400; the true change is 110
        ["M", "100 ± 26", "\u2212100 ± 51"],
    ]


def test_other_spec_is_a_series_of_its_own(office: Office) -> None:
    office.come(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    office.book.set_budget(ln.ZCDP(2000))
    for part, *changes in (
        (r"\[privacy\]", ('"1000"', '"900"')),
        (r"\[series\]", ('"drop"', '"arrival"')),
        (
            r"\[domain\](, \[\[workload\]\])?",
            ("2024-01-01", "2024-07-01"),
            ("2024-06-30", "2024-12-31"),
        ),
    ):
        office.spec(*changes)
        with pytest.raises(ln.InputError, match=rf"another spec \(its {part} differ\)"):
            office.publish("2024-08-10")
    office.out = "later"
    office.come(*rows_of(7, 3, 4))
    assert office.publish("2024-08-10").paid
    assert office.counts("2024-07") == {"07F": 3, "07M": 4}
    assert office.paid == [1000, 1000]
    assert len(office.private) == 2


@pytest.mark.filterwarnings("ignore:Release . of .* was stopped before it was published")
def test_stopped_series_run_resumes_with_its_draws(
    office: Office,
) -> None:
    office.come(*rows_of(1, 30, 40), *rows_of(2, 10, 20))
    with stopped(_release_job, "build_release") as told:
        office.publish("2024-03-10")
    assert told.value.state == "resumable"
    before = [step.outcome for step in office.book.pending(office.book.entries()[0]).steps]
    assert len(before) == 2
    office.rows.clear()  # neither the rows nor the file of exact counts are needed
    for file in office.private:
        file.unlink()
    (finished,) = ln.resume(office.book)
    assert office.counts("2024-01") == {"01F": 30, "01M": 40}
    assert finished.answers["answer"].tolist() == [*office.answers("2024-02").values()]
    assert ln.resume(office.book) == []


def test_lost_private_file_ends_the_series(
    office: Office,
) -> None:
    office.come(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    kept = office.private[0].read_bytes()
    office.private[0].unlink()
    with pytest.raises(
        ln.PaidError,
        match=(
            r"can still publish the periods that were drawn.*nothing of it is paid again: "
            r"`leastnoise ledger show "
        ),
    ):
        office.publish("2024-03-10")
    assert not (office.folder / "monthly/2024-02").exists()
    (office.folder / "visits.ledger.series-1.private").write_bytes(kept)
    assert [one.name for one in office.publish("2024-03-10").releases] == ["2024-02"]


def test_restored_ledger_copy_draws_no_period_twice(
    office: Office,
) -> None:
    office.come(*rows_of(1, 30, 40), *rows_of(2, 10, 20))
    office.publish("2024-02-10")
    copied = {path: path.read_bytes() for path in office.folder.iterdir() if "ledger" in path.name}
    assert len(copied) > 1
    office.publish("2024-03-10")
    for path, content in copied.items():
        path.write_bytes(content)
    with pytest.raises(ln.LedgerError, match=r"fewer steps than were drawn .*monthly/2024-02"):
        office.publish("2024-04-10")


def test_series_continues_with_its_second_table(office: Office) -> None:
    office.come(*rows_of(1, 30, 40), *rows_of(2, 10, 20))
    (office.folder / "visits.csv").write_text(
        "\n".join(["day,sex", *map(",".join, office.rows), ""])
    )
    office.on("2024-03-01")
    what, second = office.asked, pd.DataFrame({"sex": ["F", "M"], "region": ["n", "s"]})
    given = {"out": office.folder / "monthly", "ledger": office.ledger}
    both = ln.Joined(what.source, second, on="sex", public=True)
    ln.release_series(what, both, **given, through="2024-01")
    with pytest.raises(ln.InputError, match="the same second table"):
        ln.release_series(what, what.source, **given)
    assert [one.name for one in ln.release_series(what, both, **given)] == ["2024-02"]


def test_unfinished_periods_are_refused_unpaid(office: Office) -> None:
    office.come(*rows_of(1, 30, 40))
    with pytest.raises(ln.InputError, match="No period is over yet"):
        office.publish("2024-01-31")
    with pytest.raises(ln.InputError, match="2024-03 is not over; it ends on 2024-03-31"):
        office.publish("2024-03-31", through="2024-03")
    with pytest.raises(ln.InputError, match="--through"):
        office.publish("2024-03-31", through="2023-01")
    assert not (office.ledger).exists()
    assert [one.name for one in office.publish("2024-03-01", through="2024-02").releases] == [
        "2024-01",
        "2024-02",
    ]


def test_a_plan_of_a_series_is_no_plan_of_one_release(office: Office) -> None:
    plan = plan_spec(office.asked)
    with pytest.raises(ln.InputError, match="published period by period"):
        ln.release(plan, pd.DataFrame({"day": ["2024-01-01"], "sex": ["F"]}), seed=1)


@pytest.mark.parametrize(
    ("change", "words"),
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
        (('along = "month"', ""), "must have the key along"),
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
def test_invalid_series_are_refused(office: Office, change: tuple[str, ...], words: str) -> None:
    office.spec(change[:2], change[2:] or ("", ""))
    with pytest.raises(ln.InputError, match=words):
        plan_spec(office.asked)


def test_series_cost_covers_max_rows_in_every_period(
    office: Office,
) -> None:
    office.spec(('"1000"', '"40000"'), unit='unit = { column = "person", max_rows = 2 }')
    privacy = office.asked.privacy
    assert (privacy.max_rows, privacy.max_per_cell) == (12, ln.PerCellBound(2, "month"))
    office.come(
        *[("2024-01-10", "F", "ann")] * 5,
        *[("2024-02-10", "F", "ann")] * 5,
        *[("2024-02-11", "M", f"p{one}") for one in range(9)],
    )
    office.publish("2024-03-10")
    assert office.counts("2024-02") == {"01F": 2, "01M": 0, "02F": 2, "02M": 9}
    office.spec(unit='unit = { column = "person", max_rows = 2, max_per_cell = 1 }')
    with pytest.raises(ln.InputError, match="max_rows is for each period"):
        _ = office.asked
    office.spec(unit='unit = { column = "person", max_rows = 2 }', late="arrival")
    with pytest.raises(ln.InputError, match="where a column names the units"):
        _ = office.asked


@pytest.mark.parametrize(
    ("unit", "privacy", "counts"),
    [
        ("max_rows = 2", (4, ln.PerCellBound(2, "month")), [2, 2, 0]),
        ("max_rows = 3", (4, ln.PerCellBound(3, "month")), [3, 1, 0]),
        ("max_rows = 4", (4, None), [4, 0, 0]),
        ("max_rows = 9", (4, None), [4, 0, 0]),
        ("", (4, None), [4, 0, 0]),
    ],
)
def test_series_bounds_rows_of_a_unit_in_all_periods(
    office: Office, unit: str, privacy: tuple[Any, ...], counts: list[int]
) -> None:
    """Month by month, with late rows, and with runs that draw several months."""
    column = ", ".join(['column = "person"', *([unit] if unit else [])])
    office.spec(("[series]", "[series]\nmax_rows = 4"), unit=f"unit = {{ {column} }}")
    declared = office.asked.privacy
    assert (declared.max_rows, declared.max_per_cell) == privacy
    for month, day in ((1, "2024-02-10"), (2, "2024-03-10"), (3, "2024-06-10")):
        office.come(*[(f"2024-{month:02}-10", "F", "ann")] * 5, (f"2024-{month:02}-10", "M", "bob"))
        office.publish(day)
    published = office.counts("2024-05")
    assert [published[f"{month:02}F"] for month in (1, 2, 3)] == counts
    assert [published[f"{month:02}M"] for month in (1, 2, 3)] == [1, 1, 1]
    assert "it no longer counts in later periods" in report(office.folder / office.out / "2024-05")
    (warning,) = [text for text in spec_warnings(office.asked) if "max_rows" in text]
    assert "A unit that has used its 4 rows counts no more" in warning
    office.publish("2024-07-02")
    assert office.private == []


def test_series_limit_is_checked_and_part_of_the_spec(office: Office) -> None:
    limited = ("[series]", "[series]\nmax_rows = 4")
    office.spec(limited)
    with pytest.raises(ln.InputError, match="left out if every row is a unit"):
        _ = office.asked
    unit = 'unit = { column = "person", max_rows = 1 }'
    for wrong in ("0", "1.5", '"4"', "true"):
        office.spec((limited[0], limited[1].replace("4", wrong)), unit=unit)
        with pytest.raises(ln.InputError, match=r"\[series\] max_rows must be a whole number"):
            _ = office.asked
    office.spec(limited, unit='unit = { column = "person", max_rows = 4, max_per_cell = 1 }')
    with pytest.raises(ln.InputError, match=r"in all periods together by \[series\] max_rows"):
        _ = office.asked
    office.spec(limited, unit=unit)
    office.come(("2024-01-10", "F", "ann"))
    office.publish("2024-02-10")
    assert office.publish("2024-03-10").paid is False
    office.spec((limited[0], limited[1].replace("4", "5")), unit=unit)
    with pytest.raises(ln.InputError, match=r"another spec \(its \[privacy\] differ"):
        office.publish("2024-04-10")


def test_series_limit_reads_a_database_table(office: Office) -> None:
    office.spec(("[series]", "[series]\nmax_rows = 2"), unit='unit = { column = "person" }')
    office.come(*[(f"2024-{month:02}-10", "F", "ann") for month in (1, 2, 3)] * 2)
    office.publish("2024-02-10")
    office.on("2024-04-10")
    visits = duckdb.from_df(pd.DataFrame(office.rows, columns=["day", "sex", "person"]))
    spec = office.asked
    ln.release_series(spec, visits, ledger=office.ledger, out=office.folder / office.out)
    counts = office.counts("2024-03")
    assert [counts[f"{month:02}F"] for month in (1, 2, 3)] == [2, 0, 0]


@pytest.mark.parametrize("budget", [ln.ZCDP("1/2"), ln.PureDP(1)], ids=["rho", "epsilon"])
def test_smaller_limits_of_a_series_cost_less(budget: Any) -> None:
    """Between the error of one row in all periods and that of one in each of them."""
    workload = ln.queries(made_up(12), day="identity") + ln.queries(made_up(12), day="prefix")
    errors = []
    for most in (1, 2, 4, 8, None):
        series = SeriesOptions("day", max_rows=most)
        privacy = series.privacy(ln.Privacy(budget, unit_column="person"), workload.domain)
        plan = series_plan(workload, privacy, series, Search())
        assert plan.expected_error().times_least >= 1
        assert truncate_plan(plan, 3).expected_error().times_least >= 1
        errors.append(plan.expected_error().total_squared_error)
    assert errors == sorted(errors)
    of_rows = series_plan(workload, ln.Privacy(budget), SeriesOptions("day"), Search())
    assert errors[0] == pytest.approx(of_rows.expected_error().total_squared_error)


def made_up(periods: int, **kinds: Any) -> ln.Domain:
    return ln.Domain(
        {"day": ln.Dates("2024-01-01", dt.date(2024, 1, 1) + dt.timedelta(days=periods - 1))},
        **kinds,
    )


def planned(asked: ln.Workload, budget: Any) -> ln.Plan:
    return series_plan(asked, ln.Privacy(budget), SeriesOptions("day"), Search())


def released_up_to(plan: ln.Plan, rows: Any, seeds: int, folder, ends):
    """For each seed the releases up to some periods: how many periods, and the release."""
    contract = release_contract(plan)
    table = read_table(plan, rows, allowance=row_allowance(contract, None, None, None))
    for seed in range(seeds):
        series, values = UnpaidSeries(contract, table, SeededEntropy(seed)), []
        for periods in ends:
            while len(values) < periods:
                values.append(series.period(folder / f"{seed}.private"))
            yield (
                periods,
                build_release(combine_periods(plan, truncate_plan(plan, periods), values, "")),
            )


def test_period_release_matches_error_at_the_end() -> None:
    asked = ln.queries(made_up(64), day="prefix")
    plan = planned(asked, ln.ZCDP("1/2"))
    assert plan.expected_error().tables[0].rmse == pytest.approx(2.1000, abs=5e-5)
    waiting = ln.plan(asked, ln.ZCDP("1/2"), strategy="gaussian_optimum")
    assert plan.expected_error().total_squared_error == pytest.approx(
        waiting.expected_error().total_squared_error, rel=1e-5
    )
    promised = [errors[0] for errors in period_errors(plan).values()]
    for periods in (1, 7, 40, 64):
        total = truncate_plan(plan, periods).expected_error().total_squared_error
        assert total == pytest.approx(sum(one**2 for one in promised[:periods]), rel=1e-9)


def test_pure_series_hierarchies_improve_earlier_numbers(
    tmp_path,
) -> None:
    plan = planned(ln.queries(made_up(60), day="prefix"), ln.PureDP(1))
    (block,) = plan.measured().blocks
    assert block.rows > 60  # no cells alone
    promised = [errors[0] for errors in period_errors(plan).values()]
    cells = 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2 * sum(range(1, 61))  # of sums of cells alone
    assert sum(one**2 for one in promised) < 0.92 * cells
    rows = pd.DataFrame({"day": pd.to_datetime(["2024-01-01"] * 500 + ["2024-01-09"] * 300)})
    ends = [
        release.answers["answer"][9] - 800
        for _, release in released_up_to(plan, rows, 20, tmp_path, (10, 12))
    ]
    assert np.abs(ends).max() < 60
    assert np.sqrt(np.mean(np.square(ends[::2]))) == pytest.approx(promised[9], rel=0.4)


def test_long_series_are_planned_near_the_optimum() -> None:
    plan = planned(ln.queries(made_up(700), day="prefix"), ln.ZCDP("1/2"))
    assert plan.expected_error().times_least < 1.04
    early = [errors[0] ** 2 for errors in period_errors(plan).values()][:300]
    assert truncate_plan(plan, 300).expected_error().tables[0].rmse == pytest.approx(
        math.sqrt(np.mean(early))
    )


def dated(days: np.ndarray, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"day": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, "D"), **columns})


@pytest.mark.parametrize(
    "budget",
    [ln.ZCDP("1/8"), ln.ApproxDP(1, "1e-6"), ln.PureDP(1)],
    ids=["rho", "delta", "epsilon"],
)
def test_series_sums_have_promised_errors(tmp_path, budget: Any) -> None:
    periods, seeds, random = 5, 6, np.random.default_rng(6)
    domain = made_up(
        periods, group=ln.Coded(40), measures={"pay": ln.Measure("pay", -3, 40, unit="0.5")}
    )
    asked = ln.queries(domain, day="identity", group="identity", sum="pay") + ln.queries(
        domain, day="prefix", group="identity", sum="pay"
    )
    plan = planned(asked + ln.queries(domain, day="prefix", group="identity"), budget)
    days, codes, paid = (
        random.integers(periods, size=3000),
        random.integers(40, size=3000),
        random.integers(-6, 81, size=3000) / 2,
    )
    truth, squares = np.zeros((periods, 40)), np.zeros((periods, 2))
    promised = np.array([row[:2] for row in period_errors(plan).values()])
    np.add.at(truth, (days, codes), paid)
    for end, release in released_up_to(
        plan, dated(days, group=codes, pay=paid), seeds, tmp_path, range(1, periods + 1)
    ):
        for place, right in enumerate((truth[end - 1], truth[:end].sum(axis=0))):
            table = release.tables[f"sum of pay by day{':prefix' * place} x group"]
            assert table.noise_std[-1] == pytest.approx(promised[end - 1, place], rel=1e-6)
            squares[end - 1, place] += ((table.answer[-1] - right) ** 2).mean() / seeds
    ratios = squares / promised**2
    assert 0.8 < np.sqrt(ratios.min()) < np.sqrt(ratios.max()) < 1.2  # of 240 answers each
    assert np.sqrt(ratios.mean()) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("declared", ["rho", "epsilon"])
def test_enter_release_of_a_series_enters_the_whole(office: Office, declared: str) -> None:
    """A ledger of epsilon and delta gets the declared cost; a ledger of rho, the noise's rho."""
    if declared == "epsilon":
        office.spec(('rho = "1000"', 'epsilon = "1"\ndelta = "1e-6"'))
    office.come(("2024-01-03", "F"))
    (first,) = office.publish("2024-02-02").releases
    rho = ln.Ledger.create(office.folder / "rho", "visits", ln.Privacy(ln.ZCDP(5000)))
    entered = _release_job.enter_release(rho, first)
    whole = plan_spec(office.asked).cost()
    charged = charge(ln.ZCDP(5000), office.asked.privacy.budget, whole)
    assert entered.charge == charged
    assert float(entered.charge.rho) == pytest.approx(1000 if declared == "rho" else 0.028, rel=0.1)
    with pytest.raises(ln.LedgerError, match="already has the release"):
        _release_job.enter_release(rho, first)
    monthly = ln.Ledger.create(office.folder / "by month", "visits", ln.Privacy(ln.ZCDP(5000)))
    monthly.set_budget(ln.ZCDP(5000), period="month")
    with pytest.raises(ln.InputError, match="begins anew every month"):
        _release_job.enter_release(monthly, first)


def test_a_lost_ledger_of_a_series_is_noticed(office: Office) -> None:
    """By the releases in the directory of the series, whatever is asked for next."""
    office.come(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    older = office.ledger.read_bytes()
    office.ledger.unlink()
    office.out = "elsewhere"
    with pytest.raises(ln.LedgerError, match=r"There is no ledger at .*monthly/2024-01 was paid"):
        office.publish("2024-02-11")
    plan = ln.plan(ln.marginals(office.asked.domain, ways=1), ln.ZCDP(1))
    with pytest.raises(ln.LedgerError, match=r"There is no ledger at .*monthly/2024-01 was paid"):
        ln.release(plan, office.folder / "visits.csv", ledger=office.ledger)
    office.ledger.write_bytes(older)
    office.out = "monthly"
    assert office.publish("2024-02-11").releases == ()


def test_an_older_ledger_of_a_series_is_noticed(office: Office) -> None:
    office.come(*rows_of(1, 30, 40))
    ln.Ledger.create(office.ledger, "visits", ln.Privacy(ln.ZCDP(5000)))
    older = office.ledger.read_bytes()
    office.publish("2024-02-10")
    office.ledger.write_bytes(older)
    office.out = "elsewhere"
    with pytest.raises(ln.LedgerError, match=r"does not know the release in .*monthly/2024-01"):
        office.publish("2024-02-11")


@pytest.mark.parametrize("place", ["monthly", "renamed", "behind a link"])
def test_older_copies_draw_no_period_again(office: Office, place: str) -> None:
    """The ledger and the private file are of January; the releases go on until February."""
    kept = office.folder / "kept"
    kept.mkdir()
    ln.Ledger.create(kept / "visits.ledger", "visits", ln.Privacy(ln.ZCDP(5000)))
    if place == "behind a link":
        office.ledger.symlink_to(kept / "visits.ledger")
        office.out = "kept/monthly"
    else:
        office.ledger = kept / "visits.ledger"
    office.come(*rows_of(1, 30, 40), *rows_of(2, 3, 4))
    office.publish("2024-03-10", through="2024-01")
    older = {file: file.read_bytes() for file in kept.glob("visits.ledger*")}
    office.publish("2024-03-10")
    for file, content in older.items():
        file.write_bytes(content)
    if place == "renamed":
        (office.folder / "monthly").rename(office.folder / "renamed")
    elif place == "behind a link":
        office.out = "elsewhere/monthly"
    for call in (lambda: office.publish("2024-03-11"), lambda: ln.resume(office.ledger)):
        with pytest.raises(ln.LedgerError, match=r"fewer steps than were drawn .*2024-02"):
            call()
    assert len(office.book.pending(office.book.entries()[0]).steps) == 1


def test_private_file_is_beside_the_ledger(office: Office) -> None:
    kept = office.folder / "kept"
    kept.mkdir()
    ln.Ledger.create(kept / "real.ledger", "visits", ln.Privacy(ln.ZCDP(5000)))
    office.ledger.symlink_to(kept / "real.ledger")
    office.come(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    assert office.private == []
    assert [file.name for file in kept.glob("*.private")] == ["real.ledger.series-1.private"]
    office.ledger = kept / "real.ledger"  # without the link it goes on
    assert [one.name for one in office.publish("2024-03-10").releases] == ["2024-02"]


def test_a_series_is_not_paid_from_a_budget_by_periods(office: Office) -> None:
    office.come(*rows_of(1, 30, 40))
    book = ln.Ledger.create(office.ledger, "visits", ln.Privacy(ln.ZCDP(1000)))
    book.set_budget(ln.ZCDP(1000), period="month")
    with pytest.raises(ln.InputError, match=r"begins anew every month\. Nothing was spent"):
        office.publish("2024-02-10")
    assert office.paid == []
    assert office.private == []


def test_series_draws_nothing_in_a_later_budget_period(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of a later month may be those of other people, who have a budget of their own."""
    office.come(*rows_of(1, 30, 40))
    office.publish("2024-02-10")
    paid_on = office.book.entries()[0].reserved_on
    office.book.set_budget(ln.ZCDP(1000), period="month")
    office.come(*rows_of(2, 3, 4))
    later = (paid_on.replace(day=1) + dt.timedelta(40)).replace(day=1)
    monkeypatch.setattr(_ledger, "today", lambda: later)
    with pytest.raises(ln.LeastNoiseError, match="that month is over"):
        office.publish("2024-03-10")
    assert not (office.folder / "monthly/2024-02").exists()
    assert len(office.book.pending(office.book.entries()[0]).steps) == 1
    office.book.set_budget(ln.ZCDP(1000), period="")
    assert [one.name for one in office.publish("2024-03-10").releases] == ["2024-02"]


@pytest.mark.parametrize("when", ["between the payments", "before the first period"])
def test_killed_guarded_series_continues(
    office: Office, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The guard that was paid is not paid again, on a ledger that has just enough for both."""
    office.spec(("[series]", '[plan]\nguard = "1/100"\n[series]'))
    office.come(*rows_of(1, 30, 40))
    stopped_in = (Series, "paid") if when == "between the payments" else (Series, "period")
    real = getattr(*stopped_in)

    def killed(*given: Any, **named: Any) -> Any:
        if named.get("output") == "(guard)":
            return real(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(*stopped_in, staticmethod(killed) if when[0:2] == "be" else killed)
    with pytest.raises(KeyboardInterrupt):
        office.publish("2024-02-10")
    monkeypatch.undo()
    done = office.publish("2024-02-10")
    assert [one.name for one in done.releases] == ["2024-01"]
    assert office.paid == [10, 990]
    assert office.book.entries()[0].state == "sealed"
    used = ln.read_release(done.releases[0]).receipt.guard.used
    assert abs(used - 70) <= 5  # noise of scale 1/5, twice


def of_units(asked: ln.Workload, budget: Any, rows: int = 1, neighbours: str = "add_remove") -> Any:
    """The plan of a series of units that have some rows in each period."""
    series = SeriesOptions("day")
    privacy = series.privacy(ln.Privacy(budget, neighbours, "person", rows), asked.domain)
    return series_plan(asked, privacy, series, Search())


@pytest.mark.parametrize(
    ("neighbours", "rows", "std"),
    [("add_remove", 1, 50), ("add_remove", 3, 450), ("replace", 1, 50)],
)
def test_period_unit_counts_cost_root_of_squares(neighbours: str, rows: int, std: float) -> None:
    """Of 50 periods, at a rho of 1/2: a unit of one row in one period would have an error of 1."""
    asked = ln.queries(made_up(50), day="identity")
    expected = of_units(asked, ln.ZCDP("1/2"), rows, neighbours).expected_error()
    assert expected.tables[0].rmse == pytest.approx(math.sqrt(std), rel=1e-3)
    assert 1 <= expected.times_least < 2


def test_active_units_cost_root_of_periods() -> None:
    """However many rows a unit may have in a period, it is counted once in each."""
    domain = made_up(50, group=ln.Coded(3))
    asked = ln.queries(domain, day="identity", count="units")
    for rows in (1, 7, 50):
        (table,) = of_units(asked, ln.ZCDP("1/2"), rows).expected_error().tables
        assert table.rmse == pytest.approx(math.sqrt(50), rel=1e-3)
    by_group = ln.queries(domain, day="identity", group="identity", count="units")
    (table,) = of_units(by_group, ln.ZCDP("1/2"), 2).expected_error().tables
    assert table.rmse == pytest.approx(math.sqrt(2 * 50), rel=1e-3)


@pytest.mark.parametrize("asked", ["prefix", "both"])
def test_series_of_units_come_near_the_bound(asked: str) -> None:
    domain = made_up(50)
    workload = ln.queries(domain, day="prefix")
    if asked == "both":
        workload += ln.queries(domain, day="identity")
    plan = of_units(workload, ln.ZCDP("1/2"))
    assert 1 <= plan.expected_error().times_least < 1.3
    for periods in (1, 2, 9, 49):  # a unit has rows in these periods only
        assert truncate_plan(plan, periods).expected_error().times_least >= 1


@pytest.mark.parametrize("budget", [ln.ZCDP("1/8"), ln.PureDP(1)], ids=["rho", "epsilon"])
def test_series_units_have_promised_errors(tmp_path, budget: Any) -> None:
    random, periods, seeds = np.random.default_rng(2), 6, 40
    domain = made_up(periods, group=ln.Coded(40))
    asked = ln.queries(domain, day="identity", group="identity")
    asked += ln.queries(domain, day="prefix", group="identity")
    plan = of_units(asked, budget)
    rows = dated(np.tile(np.arange(periods), 300), group=random.integers(40, size=300 * periods))
    rows["person"] = np.repeat(np.arange(300), periods)
    truth = np.zeros((periods, 40))
    np.add.at(truth, (np.tile(np.arange(periods), 300), rows["group"].to_numpy()), 1)
    promised = np.array([row[:2] for row in period_errors(plan).values()])
    squares = np.zeros((periods, 2))
    for end, release in released_up_to(plan, rows, seeds, tmp_path, range(1, periods + 1)):
        for place, right in enumerate((truth[end - 1], truth[:end].sum(axis=0))):
            table = release.tables[f"day{':prefix' * place} x group"]
            squares[end - 1, place] += ((table.answer[-1] - right) ** 2).mean() / seeds
    ratios = squares / promised**2
    assert 0.8 < np.sqrt(ratios.min()) < np.sqrt(ratios.max()) < 1.2
    assert np.sqrt(ratios.mean()) == pytest.approx(1, abs=0.05)


def test_series_of_units_beside_contrasts_is_drawable() -> None:
    """Contrasts of another attribute leave few bits for the weights of periods."""
    domain = made_up(30, group=ln.Coded(2), age=ln.Coded(2))
    asked = ln.queries(domain, day="prefix", group="identity", age="prefix")
    asked += ln.queries(domain, day="identity")
    for budget in (ln.ApproxDP(1, "1e-6"), ln.ZCDP("1/2")):
        plan = of_units(asked, budget, rows=4)
        assert plan.measured().blocks[0].factors[0].row_weights is not None
        assert plan.expected_error().times_least >= 1


WINDOWS = """
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


def visits_of_persons(seed: int = 4) -> pd.DataFrame:
    """Visits of 30 persons in 40 days; some have no person, day or sex."""
    random = np.random.default_rng(seed)
    rows = dated(random.integers(0, 40, 400), person=random.integers(0, 31, 400).astype(object))
    rows["sex"] = np.array(["F", "M", None], dtype=object)[random.integers(0, 3, 400)]
    rows.loc[rows["person"] == 30, "person"] = None
    rows.loc[random.random(400) < 0.05, "day"] = pd.NaT
    return rows


def persons_active(rows: pd.DataFrame, last: int, days: int) -> int:
    """The people in a window of days, by hand."""
    first = pd.Timestamp("2024-01-01") + pd.Timedelta(last - days + 1, "D")
    inside = rows[(rows["day"] >= first) & (rows["day"] < first + pd.Timedelta(days, "D"))]
    return int(inside["person"].nunique())


def test_series_counts_active_people_in_rolling_windows(tmp_path) -> None:
    """A day, or seven or 28 up to it: every person once, whatever the other days say."""
    (tmp_path / "spec.toml").write_text(WINDOWS.format(budget='rho = "1000000"'))
    plan = plan_spec(read_spec(tmp_path / "spec.toml"))
    rows = visits_of_persons()
    ends = (7, 28, 40)
    for periods, release in released_up_to(plan, rows, 1, tmp_path, ends):
        by_name = {table.name: np.round(table.answer).astype(int) for table in release.tables}
        days, weeks, *months = by_name.values()
        assert days.tolist() == [persons_active(rows, last, 1) for last in range(periods)]
        for place, sex in enumerate("FM"):
            of_sex = rows[rows["sex"] == sex]
            expected = [persons_active(of_sex, last, 7) for last in range(6, periods)]
            assert weeks[:, place].tolist() == expected
        for month in months:
            assert month.tolist() == [persons_active(rows, last, 28) for last in range(27, periods)]
    assert len(months) == 1


def test_rolling_windows_of_people_cost_one_count_per_period(tmp_path) -> None:
    """A person may be in all forty windows, once in each: the root of 40, and not of their days."""
    text = WINDOWS.format(budget='rho = "1/2"')
    for window, count in ((7, 34), (28, 13)):
        start = text.index("[[workload]]")
        asked = f"[[workload]]\nqueries = {{ day = {{ rolling = {window} }} }}\ncount = 'units'\n"
        (tmp_path / "spec.toml").write_text(text[:start] + asked + text[text.index("[series]") :])
        (table,) = plan_spec(read_spec(tmp_path / "spec.toml")).expected_error().tables
        assert table.queries == count
        assert table.rmse == pytest.approx(count**0.5, rel=0.01)


@pytest.mark.parametrize(("most", "rho"), [(None, 10**6), (3, 4500)])
def test_series_publishes_totals_of_units(tmp_path, most: int | None, rho: int) -> None:
    """Each person's payments of a day are clipped, for all days or for ``most`` days a person."""
    text = WINDOWS.format(budget=f"rho = {rho}")
    start, end = text.index("[[workload]]"), text.index("[series]")
    measure = '[measures.paid]\nunit_total = { clip = [0, 9], by = ["day"] }\n'
    asked = '[[workload]]\nqueries = { day = "identity" }\nsum = "paid"\n'
    limit = "" if most is None else f"max_rows = {most}\n"
    (tmp_path / "spec.toml").write_text(text[:start] + measure + asked + text[end:] + limit)
    plan = plan_spec(read_spec(tmp_path / "spec.toml"))
    rows = visits_of_persons().assign(paid=np.random.default_rng(8).integers(-3, 8, 400))
    by_person = rows.groupby(["person", "day"])["paid"].sum().clip(0, 9)
    if most is not None:
        by_person = by_person.groupby("person").head(most)
    totals = by_person.groupby("day").sum()
    days = pd.date_range("2024-01-01", periods=40)
    expected = totals.reindex(days, fill_value=0).tolist()
    for periods, release in released_up_to(plan, rows, 1, tmp_path, (3, 40)):
        (table,) = release.tables
        assert np.round(table.answer).tolist() == expected[:periods]


def test_series_limit_is_refused_beside_people_in_windows(tmp_path) -> None:
    """With a limit that is never reached the spec is that without it."""
    text = WINDOWS.format(budget="rho = 1")
    for most in (1, 2, 79):
        (tmp_path / "spec.toml").write_text(f"{text}max_rows = {most}\n")
        with pytest.raises(ln.InputError, match=r"Leave out \[series\] max_rows"):
            plan_spec(read_spec(tmp_path / "spec.toml"))
    (tmp_path / "spec.toml").write_text(f"{text}max_rows = 80\n")
    assert plan_spec(read_spec(tmp_path / "spec.toml")).privacy.max_rows == 80


def test_bounds_found_before_a_series_share_its_ledger(tmp_path) -> None:
    """The search and the series together cost the whole budget, and no more is left."""
    random = np.random.default_rng(2)
    visits = pd.DataFrame(
        {
            "day": random.choice(["2024-01-05", "2024-02-10"], 300),
            "paid": random.integers(0, 99, 300),
        }
    )
    visits.to_csv(tmp_path / "visits.csv", index=False)
    ledger = tmp_path / "visits.ledger"
    search = ln.plan_bounds("paid", ln.ZCDP("1/40"), 1000, low=0, unit=1)
    found = ln.find_bounds(
        search, tmp_path / "visits.csv", ledger=ledger, whole=ln.Privacy(ln.ZCDP("1/2"))
    )
    text = """
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
    spec = tmp_path / "visits.toml"
    searching = "{ low = 0, most = 1000 }"
    spec.write_text(text.format(rho="1/2", clip=searching), encoding="utf-8")
    with pytest.raises(ln.InputError, match="Find them before it with the same ledger"):
        read_spec(spec)
    bounds = [int(found.low), int(found.high)]
    arguments = {"out": tmp_path / "out", "ledger": ledger}
    spec.write_text(text.format(rho="12/25", clip=bounds), encoding="utf-8")
    with pytest.raises(ln.LeastNoiseError, match="too much"):
        ln.release_series(read_spec(spec), tmp_path / "visits.csv", **arguments)
    spec.write_text(text.format(rho="19/40", clip=bounds), encoding="utf-8")
    folders = ln.release_series(read_spec(spec), tmp_path / "visits.csv", **arguments)
    assert [folder.name for folder in folders] == ["2024-01", "2024-02"]
