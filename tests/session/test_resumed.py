"""Releases that were stopped after payment, finished together from Python."""

import re

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._kernel._outcome import outcome_to_text
from leastnoise._mechanisms import _dawa
from leastnoise._release import _writing
from leastnoise._session import _finish
from session.releasing import full, stopped

PLAN = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
PEOPLE = pd.DataFrame({"sex": ["F"] * 60 + ["M"] * 40})
pytestmark = pytest.mark.filterwarnings(
    "ignore:Release . of .* was stopped before it was published"
)


@pytest.fixture
def book(tmp_path) -> ln.Ledger:
    return ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(ln.PureDP(3)))


def test_what_cannot_be_finished_takes_nothing_from_the_others(tmp_path, book) -> None:
    for out in (tmp_path / "a", None, tmp_path / "c"):
        with stopped(_finish, "build") as told:
            ln.release(PLAN, PEOPLE, ledger=book, out=out)
        assert told.value.state == "resumable"
    (tmp_path / "a").mkdir()
    with pytest.warns(
        UserWarning, match=r"Release 1 was not finished: The output directory must not exist yet"
    ):
        in_memory, in_files = ln.resume(book)
    # the one that is in memory alone would be lost with an error
    assert len(in_memory.answers) == len(in_files.answers) == 2
    assert [entry.state for entry in book.entries()] == ["reserved", "sealed", "sealed"]
    with pytest.raises(ln.InputError, match="must not exist yet"):
        ln.resume(book)
    (tmp_path / "a").rmdir()
    (finished,) = ln.resume(book)
    assert (
        ln.read_release(tmp_path / "a").answers["answer"].tolist()
        == finished.answers["answer"].tolist()
    )


def test_a_plan_that_is_carried_out_otherwise_now_is_not_said_to_be_unpaid(tmp_path, book) -> None:
    plan = ln.plan(
        ln.queries(ln.Domain(age=ln.Integers(0, 7)), age="prefix"), ln.PureDP(1), strategy="dawa"
    )
    with stopped(_finish, "build"):
        ln.release(plan, pd.DataFrame({"age": [1, 2, 3]}), ledger=book, out=tmp_path / "a")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_dawa, "details_of", lambda *_: {"steps": []})
        with pytest.raises(
            ln.LedgerError,
            match=r"was paid, and this program cannot carry out .*nothing is paid again\.",
        ) as told:
            ln.resume(book)
    assert not re.search("nothing was spent|plan again", str(told.value), re.IGNORECASE)
    assert len(ln.resume(book)) == 1


def test_a_disk_that_is_full_for_the_thread_that_writes_loses_nothing_that_was_paid(
    tmp_path, book
) -> None:
    plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"], age=[1, 2, 3]), ways=1), ln.PureDP(1))
    usual = _writing._write_part
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            _writing,
            "_write_part",
            lambda part, *rest: full() if part.id == "q2" else usual(part, *rest),
        )
        with pytest.raises(ln.PaidError) as told:
            ln.release(
                plan,
                pd.DataFrame({"sex": ["F", "M", "M"], "age": [1, 2, 3]}),
                ledger=book,
                out=tmp_path / "a",
            )
    assert told.value.state == "resumable"
    assert not (tmp_path / "a").exists()
    (entry,) = book.entries()
    drawn = book.pending(entry).steps[0].outcome
    (finished,) = ln.resume(book)
    assert drawn == "".join(outcome_to_text(finished.observation))
    for table in finished.tables:
        (file,) = (tmp_path / "a/answers").glob(f"{table.id}-*.csv")
        assert pd.read_csv(file)["answer"].tolist() == table.answer.reshape(-1).tolist()


def test_the_same_call_again_finishes_the_release_with_the_options_that_it_has_now(
    tmp_path, book
) -> None:
    with stopped(_finish, "build"):
        ln.release(PLAN, PEOPLE, ledger=book, out=tmp_path / "a")
    finished = ln.release(
        PLAN, PEOPLE, ledger=book, out=tmp_path / "a", options=ln.Options(integer=True)
    )
    assert "answer_integer" in finished.answers
    assert ln.read_release(tmp_path / "a").options.integer
    assert [entry.state for entry in book.entries()] == ["sealed"]
