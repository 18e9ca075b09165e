"""The ledger in one process: sums, messages, states, and damaged files."""

import json
import os
import re
import sqlite3
import threading
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from behind_the_wall import hash_row
from leastnoise._domain import PerCellBound
from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    ApproxDP,
    Charge,
    ConcentratedCost,
    GaussianCost,
    Privacy,
    PureCost,
    PureDP,
    SeriesCost,
    gaussian_mu_squared,
    pure_mu_squared,
)
from leastnoise._trusted.check import BudgetError, InputError, LedgerError
from leastnoise._trusted.kernel import Ledger, _ledger_file
from leastnoise._trusted.kernel._ledger_file import SELECT, write_transaction
from trusted.kernel.ledgers import ONE, edit, open_new_ledger, take

SET = Ledger.set_budget
ADD = Ledger.add_spent


def edit_and_sign(ledger, column, value):
    """Change the second entry and repair its digest, to reach the checks behind the digest."""
    edit(ledger, f"UPDATE entry SET {column} = ? WHERE number = 2", value)
    with suppress(TypeError), sqlite3.connect(ledger.path) as connection:
        first_row, row = connection.execute(SELECT).fetchall()
        if column != "digest":
            digest = hash_row((first_row[9], *row[:9]))
            connection.execute("UPDATE entry SET digest = ? WHERE number = 2", (digest,))
            connection.execute("UPDATE head SET digest = ?", (digest,))
    connection.close()


def test_three_thirds_are_paid_and_a_fourth_is_refused(ledger):
    receipts = [take(ledger) for _ in range(2)]
    with pytest.raises(BudgetError) as caught:
        take(ledger, "1/2")
    assert str(caught.value) == (
        "The release requests epsilon = 0.5, but of epsilon = 1 for the data set 'people' only "
        "epsilon = 1/3 is left; "
        "that is epsilon = 1/6 too much. Nothing was spent. Plan with at most what is left, or "
        "ask the data holder to raise the budget (`leastnoise ledger change`)."
    )

    receipts.append(take(ledger))
    assert ledger.spent() == Charge(epsilon=Fraction(1))
    assert ledger.left() == Charge()
    assert len({receipt.id for receipt in receipts}) == 3
    with pytest.raises(
        BudgetError,
        match=(
            r"only epsilon = 0 is left; that is epsilon = 1e-30 too much.* "
            r"Make no further release"
        ),
    ):
        take(ledger, Fraction(1, 10**30))
    assert len(ledger.entries()) == 3
    # A ledger waits half a minute for another process.
    assert ledger.timeout == Ledger.open(ledger.path).timeout == 30


def test_each_definition_composes_by_its_rule(tmp_path):
    zcdp = Ledger.create(tmp_path / "z", "z", Privacy(ZCDP(1)))
    take(zcdp, "1/2")
    take(zcdp, cost=GaussianCost("1/2"), declared=ZCDP("1/4"))
    take(zcdp, cost=ConcentratedCost("1/2"), declared=ZCDP("1/2"))
    assert zcdp.left().rho == 1 - Fraction(1, 8) - Fraction(1, 4) - Fraction(1, 2)


def test_epsilon_delta_ledger_adds_up_mu_squared(tmp_path):
    budget = ApproxDP(1, "1e-6")
    square = gaussian_mu_squared(1, "1e-6")
    approx = Ledger.create(tmp_path / "a", "a", Privacy(budget))
    assert approx.left() == Charge(epsilon=budget.epsilon, delta=budget.delta, mu_squared=square)

    quarter = budget.share("1/4")
    for _ in range(3):
        take(approx, cost=GaussianCost(square / 4), declared=quarter)
    assert approx.left().mu_squared == square / 4
    assert approx.spent() == Charge(mu_squared=square * 3 / 4)
    with pytest.raises(
        BudgetError,
        match=(
            r"only mu squared = .* for Gaussian noise, or epsilon = .* for a pure release is "
            r"left. .*Plan with at most what is left, a guard included: a share of the budget "
            r"\(\[privacy\] share, or GDP\)"
        ),
    ):
        take(approx, "1/2")
    with pytest.raises(BudgetError, match=r"its own delta .* is paid before the other charges"):
        take(approx, cost=SeriesCost(ApproxDP("1e-3", "1e-9")), declared=ApproxDP("1e-3", "1e-9"))
    with pytest.raises(InputError, match=r"The data set has an ApproxDP budget"):
        take(approx, cost=ConcentratedCost("1e-9"), declared=ZCDP(1))

    take(approx, approx.left().epsilon)
    assert approx.left().mu_squared <= square / 10**9
    with pytest.raises(BudgetError, match=r"'a' only mu squared = .* is left"):
        take(approx, "1e-3")
    assert len(approx.entries()) == 4


def test_message_says_that_nothing_is_left_of_an_approximate_budget(tmp_path):
    approx = Ledger.create(tmp_path / "a", "a", Privacy(ApproxDP(2, "1e-6")))
    take(approx, approx.left().epsilon)
    with pytest.raises(BudgetError, match="for the data set 'a' nothing is left"):
        take(approx, "1e-3")


def test_large_pure_release_leaves_epsilon_only(tmp_path):
    approx = Ledger.create(tmp_path / "a", "a", Privacy(ApproxDP(2, "1e-6")))
    take(approx, "1/2")
    assert approx.left() == Charge(epsilon=Fraction(3, 2))
    with pytest.raises(BudgetError, match=r"only mu squared = 0 .* or epsilon = 1.5 for a pure"):
        take(approx, cost=GaussianCost("1e-6"), declared=GDP("1e-6"))
    take(approx, "3/2")


def test_gdp_ledger_adds_up_mu_squared(tmp_path):
    ledger = Ledger.create(tmp_path / "g", "g", Privacy(GDP(1)))
    take(ledger, cost=GaussianCost("1/2"), declared=GDP("1/2"))
    take(ledger, "1/10")
    assert ledger.left() == Charge(mu_squared=Fraction(1, 2) - pure_mu_squared(Fraction(1, 10)))
    with pytest.raises(BudgetError, match=r"mu squared = 0\.5, but of mu squared = 1 for"):
        take(ledger, cost=GaussianCost("1/2"), declared=GDP("1/2"))


def test_unit_and_neighbours_must_match_the_ledger(ledger, tmp_path):
    message = (
        "The plan protects {}, the data set 'people' one row (add_remove); these costs cannot be "
        "added up, because "
    )
    for privacy, unit_text in (
        (Privacy(PureDP(1), "replace"), "one row (replace)"),
        (
            Privacy(PureDP(1), unit_column="id"),
            "all rows of one value of the column 'id' (add_remove)",
        ),
    ):
        with pytest.raises(InputError, match=re.escape(message.format(unit_text))):
            take(ledger, privacy=privacy)
    assert ledger.entries() == ()

    ledger = Ledger.create(
        tmp_path / "units.ledger", "people", Privacy(PureDP(1), unit_column="id")
    )
    for bound in (None, PerCellBound(2, "month")):
        take(
            ledger,
            "1/2",
            privacy=Privacy(PureDP(1), unit_column="id", max_rows=5, max_per_cell=bound),
        )
    assert ledger.left() == Charge()
    with pytest.raises(
        InputError,
        match=r"'household' .* of the column 'id' .* does not bound the loss of the other",
    ):
        take(ledger, privacy=Privacy(PureDP(1), unit_column="household", max_rows=5))


def test_entries_hold_reservations_and_no_time(ledger):
    before = datetime.now(UTC).date()
    text = 'first "table"'.ljust(10_000)  # the longest
    receipt = take(ledger, output="out/übersicht", description=text)
    (entry,) = Ledger.open(ledger.path).entries()
    assert entry.number == 1
    assert entry.state == "reserved"
    assert entry.resumable is False
    assert (entry.id, entry.charge, entry.number, entry.digest) == (
        receipt.id,
        receipt.charge,
        receipt.number,
        receipt.head,
    )
    assert (entry.cost, entry.declared) == (PureCost("1/3"), PureDP("1/3"))
    assert (entry.plan_digest, entry.output, entry.description) == ("ab12", "out/übersicht", text)
    assert before <= entry.reserved_on <= datetime.now(UTC).date()
    assert re.fullmatch("[0-9a-f]{32}", receipt.id)

    ledger.seal(receipt)
    assert not re.search(rb"[0-9]{2}:[0-9]{2}", ledger.path.read_bytes())
    # When nothing is written, everything is in one file.
    assert [path.name for path in ledger.path.parent.iterdir()] == ["people.ledger"]


def test_sealing_and_reconciling_give_nothing_back(ledger, tmp_path):
    receipts = [take(ledger, output=output) for output in ("a", "b", "c")]
    ledger.seal(receipts[0])
    lookups = []
    settled = ledger.reconcile(lambda entry: lookups.append(entry.output) or entry.output == "b")
    assert lookups == ["b", "c"]
    assert [(entry.output, entry.state) for entry in settled] == [("b", "sealed"), ("c", "absent")]
    assert ledger.reconcile(lambda _: False) == ()
    # What another run found absent while it was still being written is sealed by the next one, also
    # if its own process died meanwhile.
    assert [(entry.output, entry.state) for entry in ledger.reconcile(lambda _: True)] == [
        ("c", "sealed")
    ]

    before = ledger.entries()
    ledger.seal(receipts[1])
    assert ledger.entries() == before
    assert ledger.reconcile(lambda _: False) == ()
    assert ledger.left() == Charge()

    other_ledger = Ledger.create(tmp_path / "other", "other", ONE)
    with pytest.raises(
        LedgerError,
        match=r"belongs to another ledger than .*other. Seal a release where it was reserved.",
    ):
        other_ledger.seal(receipts[0])


def test_entry_is_sealed_during_reconcile(ledger):
    receipt = take(ledger)
    assert [entry.state for entry in ledger.reconcile(lambda _: len(ledger.entries()) == 0)] == [
        "absent"
    ]

    ledger.seal(receipt)
    late = take(ledger)
    assert [entry.state for entry in ledger.reconcile(lambda _: ledger.seal(late) or False)] == [
        "sealed"
    ]
    assert [entry.state for entry in ledger.entries()] == ["sealed", "sealed"]


def test_ledger_shows_budget_spent_and_left(ledger):
    take(ledger, "1/4")
    named = f"data set: people, protects: one row (add_remove), file: {ledger.path}"
    assert (
        repr(ledger)
        == f"Ledger({named}, budget: epsilon = 1, spent: epsilon = 0.25, left: epsilon = 0.75)"
    )

    ledger.set_budget(PureDP(2), period="month")
    ledger.set_budget(PureDP("1/2"), share="<ann>")
    page = Ledger.open(ledger.path, share="<ann>")._repr_html_()
    assert "<th>budget</th><td>epsilon = 2 a month</td>" in page
    assert (
        "<th>budget</th><td>epsilon = 0.5 a month for "
        "&lt;ann&gt;</td></tr><tr><th>spent</th><td>epsilon = 0</td>" in page
    )
    # Another process writes, and a display does not wait for it.
    with write_transaction(ledger.path, 1.0):
        assert repr(ledger).endswith("left: epsilon = 1.75)")
    ledger.path.unlink()
    assert f"unreadable: The ledger {ledger.path} cannot be opened." in repr(ledger)


# --- files ----------------------------------------------------------------------------------------


def test_odd_ledger_paths_work_and_none_is_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "a b%20?mode=ro#ü.ledger"
    take(Ledger.create(name, "x", ONE))

    with pytest.raises(
        LedgerError,
        match=r"never replaced. Open it, or change its budget with `leastnoise ledger change`.",
    ):
        Ledger.create(name, "x", ONE)
    for path in (Path(name), str(tmp_path / name)):
        assert len(Ledger.open(path).entries()) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/x", "at .*: no such file or directory. Choose a folder that exists"),
        ("x" * 300, "at .*: file name too long"),
    ],
)
def test_ledger_needs_a_writable_folder(tmp_path, name, message):
    with pytest.raises(LedgerError, match=rf"A ledger cannot be made {message}"):
        Ledger.create(tmp_path / name, "x", ONE)
    assert list(tmp_path.iterdir()) == []


def test_failed_making_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "leastnoise._trusted.kernel._ledger_file.TABLES", ("CREATE TABLE dataset (x)", "NO SQL")
    )
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.create(tmp_path / "x", "x", ONE)
    assert list(tmp_path.iterdir()) == []


def test_overtaken_creation_keeps_the_other_ledger(tmp_path, monkeypatch):
    """Another process creates the ledger and pays from it between the check and the link."""
    path = tmp_path / "x"
    other_receipts = []
    link = os.link

    def overtaken(*arguments):
        monkeypatch.setattr("os.link", link)
        other_receipts.append(take(Ledger.create(path, "other", ONE)))
        link(*arguments)

    monkeypatch.setattr("os.link", overtaken)

    with pytest.raises(LedgerError, match="exists already, and a ledger is never replaced"):
        Ledger.create(path, "x", ONE)
    assert [entry.id for entry in Ledger.open(path).entries()] == [other_receipts[0].id]
    assert list(tmp_path.iterdir()) == [path]


def test_ledger_with_a_second_name_pays_nothing(tmp_path):
    """The journal of a process killed under one name is not found under the other."""
    ledger = open_new_ledger(tmp_path)
    second_name = tmp_path / "other.ledger"
    second_name.hardlink_to(ledger.path)
    for name in (ledger.path, second_name):
        with pytest.raises(
            LedgerError, match=r"must have exactly one name, but it has 2 \(hard links\)"
        ):
            take(Ledger.open(name))
    assert ledger.entries() == ()
    second_name.unlink()
    assert take(ledger).number == 1


@pytest.mark.parametrize("through", ["ledger", "link"])
def test_draft_of_a_killed_creation_is_removed(tmp_path, through):
    ledger = open_new_ledger(tmp_path)
    draft = tmp_path / f".{ledger.path.name}.0123456789abcdef"
    draft.hardlink_to(ledger.path)
    stranger = tmp_path / f".{ledger.path.name}.fedcba9876543210"
    stranger.write_bytes(b"another file")
    path = ledger.path
    if through == "link":
        (tmp_path / "elsewhere").mkdir()
        path = tmp_path / "elsewhere" / "link"
        path.symlink_to(ledger.path)

    assert take(Ledger.open(path)).number == 1
    assert not draft.exists()
    assert stranger.exists()


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_journal_of_a_deleted_ledger_is_not_replayed(tmp_path, ending):
    leftover = tmp_path / f"x{ending}"
    leftover.write_bytes(b"hot")
    with pytest.raises(LedgerError, match="is left from an earlier ledger of this name"):
        Ledger.create(tmp_path / "x", "x", ONE)
    assert list(tmp_path.iterdir()) == [leftover]


def create_ledger_beside(ledger, **arguments):
    return Ledger.create(
        **{"path": ledger.path.parent / "x", "dataset": "x", "privacy": ONE, **arguments}
    )


def check_of_budget(ledger):
    ledger.check((PureCost(1), PureDP(1)))


@pytest.mark.parametrize(
    ("use", "arguments", "message"),
    [
        (take, {"output": None}, "output must be a text of 0 to 10000 characters; got None."),
        (take, {"plan_digest": "a\0b"}, "plan_digest must be a text"),
        (take, {"description": "x" * 10001}, "description must be a text"),
        (
            take,
            {"description": "\ud800"},
            "description must be a text that can be written as UTF-8",
        ),
        (
            take,
            {"cost": 1},
            "cost must be PureCost, GaussianCost, ConcentratedCost or SeriesCost; got 1.",
        ),
        (
            take,
            {"declared": 1},
            (
                "budget must be PureDP(epsilon), ApproxDP(epsilon, delta), ZCDP(rho) or "
                "GDP(mu_squared); got 1."
            ),
        ),
        (take, {"declared": PureDP("1/4")}, "is not proved to cover its cost"),
        (check_of_budget, {}, "privacy must be a Privacy"),
        (
            create_ledger_beside,
            {"dataset": " "},
            "dataset must be a text of 1 to 10000 characters; got ' '.",
        ),
        (
            create_ledger_beside,
            {"privacy": PureDP(1)},
            "privacy must be a Privacy, such as Privacy(PureDP(1)); got",
        ),
        (create_ledger_beside, {"path": ""}, "path must be the path of a ledger's file; got ''."),
        (create_ledger_beside, {"path": 3}, "path must be the path of a ledger's file; got 3."),
        (create_ledger_beside, {"path": "a\0b"}, "path must be the path of a ledger's file"),
        (
            create_ledger_beside,
            {"timeout": float("nan")},
            "timeout must be a number of seconds from 0 to 86400; got nan.",
        ),
        (create_ledger_beside, {"timeout": "1"}, "timeout must be a number of seconds"),
        (
            SET,
            {"budget": ZCDP(1)},
            (
                "must have the definition PureDP, in which the ledger adds up its entries; got "
                "ZCDP(rho='1')"
            ),
        ),
        (
            SET,
            {"budget": 2},
            "must have the definition PureDP, in which the ledger adds up its entries; got 2",
        ),
        (
            SET,
            {"budget": PureDP(2), "period": "fortnight"},
            "period must be one of '', 'day', 'week', 'month', 'year'",
        ),
        (
            SET,
            {"budget": PureDP(2), "period": "day", "share": "ann"},
            "A period applies to the whole budget",
        ),
        (SET, {"budget": PureDP(2), "share": 3}, "share must be a text"),
        (SET, {"budget": PureDP(2), "note": "a\0b"}, "note must be a text"),
        *(
            (ADD, {"spent": PureDP(1), "on": day}, "on must be today or an earlier day")
            for day in (
                date.today() + timedelta(days=2),  # noqa: DTZ011
                "2024-01-01",
                datetime(2024, 1, 1, tzinfo=UTC),
            )  # noqa: DTZ011, RUF100
        ),
        (ADD, {"spent": ZCDP(1)}, "The data set has a PureDP budget"),
        (ADD, {"spent": Privacy(PureDP(1), "replace")}, "these costs cannot be added"),
        (ADD, {"spent": PureDP(1), "cost": PureCost(2)}, "is not proved to cover its cost"),
        (ADD, {"spent": 3}, "budget must be"),
        (ADD, {"spent": PureDP(1), "receipt": 3}, "receipt must be a text"),
    ],
)
def test_invalid_arguments_are_refused_unwritten(ledger, use, arguments, message):
    before = ledger.path.read_bytes()
    with pytest.raises(InputError, match=re.escape(message)):
        use(ledger, **arguments)
    assert [path.name for path in ledger.path.parent.iterdir()] == [ledger.path.name]
    assert ledger.path.read_bytes() == before


def test_vanished_or_replaced_ledger_file_is_noticed(ledger, tmp_path):
    path = ledger.path
    path.unlink()
    with pytest.raises(LedgerError, match=r"cannot be opened. Check that the file is there"):
        take(ledger)
    assert not path.exists()

    Ledger.create(tmp_path / "other", "people", Privacy(PureDP(2))).path.replace(path)
    for use in (lambda: take(ledger), ledger.spent):
        with pytest.raises(
            LedgerError, match=r"was replaced by another one since it was opened. Open it again."
        ):
            use()


def another_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE entry (number)")
    connection.close()


NO_LEDGER = (
    r"x is not a ledger, or is a damaged one. Check the path; if it was a ledger, restore it from "
    r"a copy"
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda path: None,
            r"There is no ledger at .*x. If there was one, restore it. Make one with",
        ),
        (Path.mkdir, r"is a folder, not a ledger"),
        (
            Path.touch,
            (
                r"is empty: it is not a ledger, or its content was lost\. If it was a ledger, "
                r"restore it"
            ),
        ),
        (lambda path: path.write_text("name,age\nA,1\n" * 500), NO_LEDGER),
        (another_database, NO_LEDGER),
    ],
    ids=["nothing", "folder", "empty", "table", "database"],
)
def test_foreign_file_is_refused_unchanged(tmp_path, make, message):
    path = tmp_path / "x"
    make(path)
    before = path.read_bytes() if path.is_file() else path.exists()
    with pytest.raises(LedgerError, match=message):
        Ledger.open(path, timeout=0)
    assert (path.read_bytes() if path.is_file() else path.exists()) == before


def test_ledger_being_created_is_waited_for(tmp_path):
    complete_ledger = Ledger.create(tmp_path / "whole", "people", ONE)
    (tmp_path / "x").touch()
    maker = threading.Timer(0.1, lambda: complete_ledger.path.replace(tmp_path / "x"))
    maker.start()
    assert Ledger.open(tmp_path / "x").dataset == "people"
    maker.join()


def test_overwritten_bytes_never_give_budget_back(ledger):
    """Damage is noticed, or the ledger reports the same; `make faults` damages every byte."""
    for _ in range(3):
        take(ledger, "1/10")
    intact = ledger.path.read_bytes()
    filled = [k for k in range(len(intact)) if intact[k]][::31]
    damage = [(start, b"\xa5" * 128) for start in range(0, len(intact), 384)] + [
        (k, bytes([intact[k] ^ 1])) for k in filled
    ]
    noticed = 0
    for start, new in damage:
        ledger.path.write_bytes(intact[:start] + new + intact[start + len(new) :])
        try:
            reopened = Ledger.open(ledger.path)
            assert reopened.privacy == ONE
            assert reopened.spent().epsilon == Fraction(3, 10)
        except LedgerError:
            noticed += 1
    assert noticed > len(filled) / 2
    ledger.path.write_bytes(intact)
    assert ledger.left().epsilon == Fraction(7, 10)


LAST_MISSING = "damaged .*its last entries are missing, or parts of it are from an older copy"
GOOD = {"epsilon": "1/3", "delta": "0", "rho": "0"}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("charge", "not json"),
        *(
            ("charge", json.dumps({**GOOD, **wrong}))
            for wrong in ({"epsilon": "-1/3"}, {"epsilon": 0.3}, {"epsilon": "0"}, {"rho": "1"})
        ),
        ("charge", json.dumps({"epsilon": "1/3"})),
        ("charge", "[" * 100000),
        ("charge", b"\xff\xfe"),
        ("charge", 7),
        ("cost", "{}"),
        ("declared", '{"definition": "None"}'),
        ("state", "refunded"),
        ("reserved_on", "yesterday"),
        ("reserved_on", "2026-01-01T00:00:00"),
        ("reserved_on", 3),
        ("run", b"x"),
        ("output", b"x"),
        ("id", ""),
        ("digest", "0" * 64),
        ("description", "another"),
    ],
)
def test_unreadable_entry_closes_the_ledger(ledger, column, value):
    take(ledger)
    take(ledger)
    if column == "description":
        edit(ledger, "UPDATE entry SET description = ? WHERE number = 2", value)
    else:
        edit_and_sign(ledger, column, value)
    # The table itself restricts the states.
    damage = "its pages do not fit together" if column == "state" else "entry 2 is unreadable"

    for use in (
        lambda: Ledger.open(ledger.path),
        lambda: take(ledger),
        ledger.left,
        lambda: ledger.reconcile(lambda _: True),
    ):
        with pytest.raises(
            LedgerError, match=rf"is damaged \({damage}\)\. No release can be made from it\."
        ) as caught:
            use()
        assert len(str(value)) < 4 or str(value) not in str(caught.value)


def test_charge_must_be_written_canonically(ledger, monkeypatch):
    take(ledger)
    for wrong_charge in (Charge(epsilon=Fraction(1, 7)), PureDP("1/9"), "1"):
        monkeypatch.setattr(
            _ledger_file, "charge_from_json", lambda _data, wrong_charge=wrong_charge: wrong_charge
        )
        with pytest.raises(LedgerError, match="entry 1 is unreadable"):
            ledger.left()


@pytest.mark.parametrize(
    ("column", "value"),
    [("id", "7"), ("run", ""), ("output", ""), ("description", ""), ("plan_digest", "")],
)
def test_shortest_texts_of_an_entry_are_read(ledger, column, value):
    take(ledger)
    take(ledger)
    edit_and_sign(ledger, column, value)
    assert getattr(ledger.entries()[1], column) == value


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM entry WHERE number = 1", "damaged .*entries are missing"),
        ("DELETE FROM entry WHERE number = 4", LAST_MISSING),
        ("DELETE FROM entry WHERE number > 1", LAST_MISSING),
        (
            "UPDATE head SET number = 3, digest = (SELECT digest FROM entry WHERE number = 3)",
            LAST_MISSING,
        ),
        ("DELETE FROM head", LAST_MISSING),
        ("UPDATE entry SET number = 5 WHERE number = 2", "damaged .*entries are missing"),
        ("UPDATE entry SET kind = 'release' WHERE number = 1", "entry 1 is unreadable"),
        ("UPDATE entry SET kind = 'spent' WHERE number = 1", "entry 1 is unreadable"),
        (
            "UPDATE entry SET kind = 'release', share = '', period = '' WHERE number = 1",
            "entry 1 is unreadable",
        ),
        ("UPDATE entry SET period = 'day' WHERE number = 1", "entry 1 is unreadable"),
        (
            "UPDATE entry SET declared = replace(declared, '2', '3') WHERE number = 1",
            "entry 1 is unreadable",
        ),
        ("UPDATE entry SET share = 'bob' WHERE number = 2", "entry 2 is unreadable"),
        ("UPDATE entry SET kind = 'budget' WHERE number = 3", "entry 3 is unreadable"),
        ("UPDATE entry SET share = '' WHERE number = 3", "entry 3 is unreadable"),
        ("DELETE FROM dataset", "damaged .*the row of the data set is unreadable"),
        (
            "INSERT INTO dataset SELECT 2, name, privacy, id, digest FROM dataset",
            "damaged .*its pages do not fit together",
        ),
        ("UPDATE dataset SET privacy = '{}'", "damaged .*the row of the data set is unreadable"),
        (
            "UPDATE dataset SET privacy = replace(privacy, '\"1\"', '\"9\"')",
            "damaged .*the row of the data set is unreadable",
        ),
        ("UPDATE dataset SET name = x'00'", "damaged .*the row of the data set is unreadable"),
        ("DROP TABLE entry", "damaged .*its tables are unreadable"),
        ("PRAGMA user_version = 0", "damaged .*it has the unknown format 0"),
        (
            "PRAGMA user_version = 4",
            (
                r"has the format 4; this version of leastnoise reads the format 3. Use a newer "
                r"leastnoise."
            ),
        ),
        (
            "PRAGMA journal_mode = WAL",
            "Another program switched the ledger .* to the journal mode 'wal'",
        ),
    ],
)
def test_damaged_ledger_is_closed(ledger, statement, message):
    """The entries are a budget, a share, a release of the share, and a spending elsewhere."""
    ledger.set_budget(PureDP(2), period="month")
    ledger.set_budget(PureDP(1), share="ann")
    take(Ledger.open(ledger.path, share="ann"), "1/4")
    ledger.add_spent(PureDP("1/4"))
    edit(ledger, statement)
    uses = [lambda: take(ledger), lambda: Ledger.open(ledger.path)]

    # A ledger in another journal mode can be read.
    for use in uses[:1] if "journal" in statement else uses:
        with pytest.raises(LedgerError, match=message):
            use()
