"""Resumption of releases that stopped after payment, from Python."""

import datetime as dt
import re

import duckdb
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._mechanisms import _dawa
from leastnoise._plan import AdaptiveDetails
from leastnoise._publication import _writing
from leastnoise._session import _release_job, _session
from leastnoise._trusted.accounting import Charge, Noise
from leastnoise._trusted.kernel import Series, _ledger, outcome_to_text
from leastnoise._trusted.ledgers import _ledger_choice, find_unrecorded_releases
from leastnoise._trusted.reading import _read
from session.releasing import full, stopped

PLAN = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
PEOPLE = pd.DataFrame({"sex": ["F"] * 60 + ["M"] * 40})
pytestmark = pytest.mark.filterwarnings(
    "ignore:Release . of .* was stopped before it was published"
)


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(ln.PureDP(3)))


def test_unfinishable_release_does_not_block_others(tmp_path, ledger):
    for out in (tmp_path / "a", None, tmp_path / "c"):
        with stopped(_release_job, "build_release") as error:
            ln.release(PLAN, PEOPLE, ledger=ledger, out=out)
        assert error.value.state == "resumable"
    (tmp_path / "a").mkdir()
    with pytest.warns(
        UserWarning, match=r"Release 1 was not finished: The output directory must not exist yet"
    ):
        in_memory, in_files = ln.resume(ledger)
    # After an error, the release that is only in memory would be lost.
    assert len(in_memory.answers) == len(in_files.answers) == 2
    assert [entry.state for entry in ledger.entries()] == ["reserved", "sealed", "sealed"]
    with pytest.raises(ln.InputError, match="must not exist yet"):
        ln.resume(ledger)
    (tmp_path / "a").rmdir()
    (finished,) = ln.resume(ledger)
    assert (
        ln.read_release(tmp_path / "a").answers["answer"].tolist()
        == finished.answers["answer"].tolist()
    )


def test_resumed_release_counts_earlier_measurements(tmp_path, ledger):
    earlier = ln.release(PLAN, PEOPLE, ledger=ledger, out=tmp_path / "earlier")
    plan = ln.plan(PLAN.workload, ln.PureDP(1), strategy=PLAN.strategy, after=[earlier])
    with stopped(_release_job, "build_release"):
        ln.release(plan, PEOPLE, ledger=ledger, out=tmp_path / "new")
    assert ledger.spent().epsilon == 2
    (finished,) = ln.resume(ledger)
    assert ledger.spent().epsilon == 2
    reread = ln.read_release(tmp_path / "new")
    mean = (reread.observation.values[0] + earlier.observation.values[0]) / 2
    for release in (finished, reread):
        assert release.answers["answer"].tolist() == pytest.approx(mean.tolist())
    ratio = reread.answers["noise_std"] / earlier.answers["noise_std"]
    assert ratio.tolist() == pytest.approx([0.5**0.5] * 2)


def test_changed_plan_is_not_reported_unpaid(tmp_path, ledger):
    plan = ln.plan(
        ln.queries(ln.Domain(age=ln.Integers(0, 7)), age="prefix"), ln.PureDP(1), strategy="dawa"
    )
    with stopped(_release_job, "build_release"):
        ln.release(plan, pd.DataFrame({"age": [1, 2, 3]}), ledger=ledger, out=tmp_path / "a")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            _dawa, "plan_details", lambda *_: AdaptiveDetails(noise=Noise.DISCRETE_LAPLACE)
        )
        with pytest.raises(
            ln.LedgerError,
            match=r"was paid, but this program cannot carry out .*nothing is paid again\.",
        ) as error:
            ln.resume(ledger)
    assert not re.search("nothing was spent|plan again", str(error.value), re.IGNORECASE)
    assert len(ln.resume(ledger)) == 1


def test_full_disk_in_writer_thread_loses_nothing(tmp_path, ledger):
    plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"], age=[1, 2, 3]), ways=1), ln.PureDP(1))
    usual = _writing._write_result
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            _writing,
            "_write_result",
            lambda part, *arguments: full() if part.id == "q2" else usual(part, *arguments),
        )
        with pytest.raises(ln.PaidError) as error:
            ln.release(
                plan,
                pd.DataFrame({"sex": ["F", "M", "M"], "age": [1, 2, 3]}),
                ledger=ledger,
                out=tmp_path / "a",
            )
    assert error.value.state == "resumable"
    assert not (tmp_path / "a").exists()
    (entry,) = ledger.entries()
    outcome = ledger.pending(entry).steps[0].outcome
    (finished,) = ln.resume(ledger)
    assert outcome == "".join(outcome_to_text(finished.observation))
    for table in finished.tables:
        (file,) = (tmp_path / "a/answers").glob(f"{table.id}-*.csv")
        assert pd.read_csv(file)["answer"].tolist() == table.answer.reshape(-1).tolist()


def test_repeated_call_finishes_with_current_options(tmp_path, ledger):
    with stopped(_release_job, "build_release"):
        ln.release(PLAN, PEOPLE, ledger=ledger, out=tmp_path / "a")
    finished = ln.release(
        PLAN, PEOPLE, ledger=ledger, out=tmp_path / "a", options=ln.Options(integer=True)
    )
    assert "answer_integer" in finished.answers
    assert ln.read_release(tmp_path / "a").options.integer
    assert [entry.state for entry in ledger.entries()] == ["sealed"]


def test_older_copy_draws_no_moved_release_again(tmp_path, ledger):
    """The copy is from between payment and noise; the release was moved away."""
    with stopped(ln.Ledger, "begin"):
        ln.release(PLAN, PEOPLE, ledger=ledger, out=tmp_path / "a")
    older = ledger.path.read_bytes()
    ln.release(PLAN, PEOPLE, ledger=ledger, out=tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "moved")
    assert ln.resume(ledger) == []
    ledger.path.write_bytes(older)
    for call in (
        lambda: ln.resume(ledger, source=PEOPLE),
        lambda: ln.release(PLAN, PEOPLE, ledger=ledger, out=tmp_path / "a"),
    ):
        with pytest.raises(ln.LedgerError, match=r"fewer steps than were drawn .*moved"):
            call()
    (tmp_path / "moved").rename(tmp_path / "a")
    assert ln.resume(ledger) == []
    assert [entry.state for entry in ledger.entries()] == ["sealed"]


def test_release_of_another_process_is_not_missing(tmp_path, monkeypatch, ledger):
    """Another process pays and publishes it during the search of the folders."""
    real = _ledger_choice.read_receipt
    (tmp_path / "folder").mkdir()

    def read_receipt(folder):
        monkeypatch.setattr(_ledger_choice, "read_receipt", real)
        ln.release(PLAN, PEOPLE, ledger=ledger, out=tmp_path / "other")
        return real(tmp_path / "other")

    monkeypatch.setattr(_ledger_choice, "read_receipt", read_receipt)
    assert find_unrecorded_releases(ledger.path, ledger) == ()
    assert [entry.state for entry in ledger.entries()] == ["sealed"]


@pytest.mark.parametrize("kind", ["release", "guard", "search", "engine"])
def test_rows_of_an_earlier_period_are_not_paid(tmp_path, monkeypatch, kind):
    """The month ends during the reading, so rows may be of people who have left."""
    budget = ln.ApproxDP(1, "1e-6") if kind == "search" else ln.PureDP(1)
    ledger = ln.Ledger.create(tmp_path / "people", "people", ln.Privacy(budget))
    ledger = ledger.set_budget(budget, period="month")
    source = duckdb.from_df(PEOPLE) if kind == "engine" else PEOPLE

    def run():
        if kind == "search":
            search = ln.plan_categories("sex", ln.Unknown(9), budget)
            return ln.find_categories(search, PEOPLE, ledger=ledger)
        plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP("9/10"))
        options = ln.Options(guard="1/10" if kind == "guard" else None)
        return ln.release(plan, source, ledger=ledger, options=options)

    first_day = dt.datetime.now(dt.UTC).date().replace(day=1)
    with monkeypatch.context() as patch:
        patch.setattr(_read, "today", lambda: first_day - dt.timedelta(1))
        with pytest.raises(
            ln.LedgerError, match=r"Reading of the rows began on .*Nothing was spent"
        ):
            run()
    assert ledger.spent() == Charge()
    monkeypatch.setattr(_read, "today", lambda: first_day)  # an earlier day of the month will do
    run()
    assert ledger.spent() != Charge()


def test_day_of_reading_is_taken_before_the_source_is_opened(monkeypatch):
    """Rows read over midnight may be of people who are gone on the next day."""
    day = dt.date(2026, 11, 30)
    days = [day]
    monkeypatch.setattr(_read, "today", lambda: days[-1])
    real = _read.open_columns

    def open_columns(*arguments):
        days.append(day + dt.timedelta(1))
        return real(*arguments)

    monkeypatch.setattr(_read, "open_columns", open_columns)
    table = _read.read(PEOPLE, PLAN.domain, read_request=_read.ReadRequest(usage=True))
    assert len(days) == 2
    assert table.read_on == day
    assert table.usage.read_on == day
    days.append(day)
    assert _read.read_keys(PEOPLE, ln.Domain(sex=ln.Unknown(9)), "sex").read_on == day
    days.append(day)
    sizes = ln.Domain(rows=ln.Integers(1, 3, outside="clip"))
    assert _read.read_unit_sizes(PEOPLE, sizes, "rows", unit_column="sex").read_on == day


@pytest.mark.parametrize("period", ["", "month"])
def test_resumed_rows_were_read_in_the_period_of_payment(tmp_path, monkeypatch, ledger, period):
    """The clock is set back to the month of the payment after the reading."""
    ledger = ledger.set_budget(ln.PureDP(1), period=period)
    with stopped(ln.Ledger, "begin"):
        ln.release(PLAN, PEOPLE, ledger=ledger, out=tmp_path / "a")
    later = (ledger.entries()[-1].reserved_on.replace(day=1) + dt.timedelta(40)).replace(day=1)
    monkeypatch.setattr(_read, "today", lambda: later)
    if period:
        with pytest.raises(ln.PaidError, match=r"that month is over.*No noise was drawn"):
            ln.resume(ledger, number=2, source=PEOPLE)
    else:
        assert len(ln.resume(ledger, number=2, source=PEOPLE)) == 1


def next_month(ledger, patch):
    """Set today to the first day of the month after the last payment."""
    day = (ledger.entries()[-1].reserved_on.replace(day=1) + dt.timedelta(40)).replace(day=1)
    for module in (_ledger, _read):
        patch.setattr(module, "today", lambda: day)
    return day


def test_guard_of_another_period_is_not_used(monkeypatch, ledger):
    """Its counts are of that period's rows, and the data have changed."""
    ledger = ledger.set_budget(ln.PureDP(1), period="month")
    plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP("1/2"))
    options = ln.Options(guard="1/2")
    with stopped(_session, "with_note") as error:
        ln.release(plan, PEOPLE, ledger=ledger, options=options)
    assert error.value.state == "guard"
    day = next_month(ledger, monkeypatch)
    ln.release(plan, PEOPLE.head(50), ledger=ledger, options=options)
    paid_on = [entry.reserved_on for entry in ledger.entries()[1:]]
    assert paid_on[0] < day
    assert paid_on[1:] == [day, day]
    assert ledger.left().epsilon == 0


@pytest.mark.parametrize("has_folder", [True, False])
def test_resume_reads_no_rows_of_another_period(tmp_path, monkeypatch, ledger, has_folder):
    """The next month's data hold other people, who have a budget of their own."""
    ledger = ledger.set_budget(ln.PureDP(1), period="month")
    target = tmp_path / "a" if has_folder else None
    with stopped(ln.Ledger, "begin") as error:
        ln.release(PLAN, PEOPLE, ledger=ledger, out=target)
    assert error.value.state == "resumable"
    next_month(ledger, monkeypatch)
    other_people = pd.DataFrame({"sex": ["M"] * 50})
    assert ln.resume(ledger, source=other_people) == []
    with pytest.raises(ln.LedgerError, match=r"that month is over.*No noise was drawn"):
        ln.resume(ledger, number=2, source=other_people)
    assert ledger.pending(ledger.entries()[1]).steps == ()
    # The new month pays for this release.
    release = ln.release(PLAN, other_people, ledger=ledger, out=target)
    assert release.receipt.payment.number == 3
    assert ledger.left().epsilon == 0


def test_resume_finishes_draws_of_another_period(tmp_path, monkeypatch, ledger):
    ledger = ledger.set_budget(ln.PureDP(1), period="month")
    with stopped(_release_job, "build_release"):
        ln.release(PLAN, PEOPLE, ledger=ledger, out=tmp_path / "a")
    next_month(ledger, monkeypatch)
    (finished,) = ln.resume(ledger, source=pd.DataFrame({"sex": ["M"] * 500}))
    assert finished.answers["answer"].sum() == pytest.approx(100, abs=60)
    assert ledger.left().epsilon == 1


def test_resume_reads_rows_in_the_same_period(tmp_path, ledger):
    ledger = ledger.set_budget(ln.PureDP(1), period="year")
    with stopped(ln.Ledger, "begin"):
        ln.release(PLAN, PEOPLE, ledger=ledger, out=tmp_path / "a")
    assert len(ln.resume(ledger, source=PEOPLE)) == 1


def test_guard_is_paid_once_across_stops(tmp_path, monkeypatch):
    """The ledger has just enough for guard and release."""
    options = ln.Options(guard="1/100")
    plan = ln.plan(PLAN.workload, ln.PureDP(99))
    real = Series.paid

    def killed(*arguments, **named):
        if named.get("output") == "(guard)":
            return real(*arguments, **named)
        raise KeyboardInterrupt

    terms = {"ledger": tmp_path / "new.ledger", "options": options, "out": tmp_path / "a"}
    with monkeypatch.context() as patch:
        patch.setattr(Series, "paid", staticmethod(killed))
        with pytest.raises(KeyboardInterrupt):
            ln.release(plan, PEOPLE, dataset="people", **terms)
    ledger = ln.Ledger.open(tmp_path / "new.ledger")
    assert ln.resume(ledger) == []  # a guard is no release
    with pytest.raises(ln.InputError, match=r"Release 1 .* is not one that can be finished"):
        ln.resume(ledger, number=1)
    released = ln.release(plan, PEOPLE, dataset="people", **terms)
    assert [entry.state for entry in ledger.entries()] == ["sealed", "sealed"]
    assert ledger.left().epsilon == 0
    assert released.receipt.guard.number == 1
