"""Which ledger pays for a release, and why others are refused."""

import json
from pathlib import Path

import pandas as pd
import pytest

from leastnoise._trusted.accounting import Privacy, PureDP
from leastnoise._trusted.check import InputError, LedgerError
from leastnoise._trusted.domain import PerCellBound
from leastnoise._trusted.kernel import Ledger
from leastnoise._trusted.ledgers import (
    check_no_missing_releases,
    find_ledger,
    find_other_ledgers,
    find_unrecorded_releases,
    open_or_create_ledger,
    read_receipt,
)
from leastnoise._trusted.reading import CSV, Joined
from trusted.kernel.ledgers import ONE, open_new_ledger, take

FRAME = pd.DataFrame({"sex": ["F"]})


def write_release(folder, **receipt):
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"receipt": receipt}))
    return folder


def publish(ledger, receipt, folder, **facts):
    ledger_facts = {"id": receipt.id, "dataset": ledger.dataset, "ledger": ledger.path.name}
    return write_release(folder, **ledger_facts, ledger_id=ledger.id, **facts)


@pytest.mark.parametrize(
    "place",
    ["people/r", "outputs/r", "new/r", "people/series/2024-01", "people/profile/categories/1"],
)
@pytest.mark.parametrize("by_link", [False, True])
def test_older_copy_is_refused_for_any_release_in_sight(tmp_path, place, by_link):
    """Look next to the ledger, its link target, earlier outputs, and the new output."""
    for name in ("people", "links", "outputs", "new"):
        (tmp_path / name).mkdir()
    ledger = open_new_ledger(tmp_path / "people")
    take(ledger, output=str(tmp_path / "outputs" / "first"))
    older = ledger.path.read_bytes()
    release = publish(ledger, take(ledger), tmp_path / place)
    path = ledger.path
    if by_link:
        path = tmp_path / "links" / "people.ledger"
        path.symlink_to(ledger.path)
    folders = [tmp_path / "new"]
    for payer in (path, Ledger.open(path)):
        ledger_found = find_ledger(payer, FRAME, None, folders)
        assert ledger_found is not None
        assert len(ledger_found.entries()) == 2
    ledger.path.write_bytes(older)

    for payer in (path, Ledger.open(path)):
        with pytest.raises(LedgerError, match=rf"does not know the release in .*{release.name}"):
            find_ledger(payer, FRAME, None, folders)


def test_older_copy_with_fewer_steps_is_refused(tmp_path):
    ledger = open_new_ledger(tmp_path)
    receipt = take(ledger, plan="{}", output=str(tmp_path / "out"))
    ledger.begin(receipt, 1, "request")
    ledger.record(receipt, 1, ["outcome"])
    publish(ledger, receipt, tmp_path / "one", steps=1)
    check_no_missing_releases(ledger.path, ledger)
    publish(ledger, receipt, tmp_path / "out", steps=2)  # where it belongs: it will be sealed
    check_no_missing_releases(ledger.path, ledger)
    moved = (tmp_path / "out").rename(tmp_path / "two")
    assert find_unrecorded_releases(ledger.path, ledger) == (moved,)
    with pytest.raises(LedgerError, match=r"fewer steps than were drawn .*two.*Nothing was spent"):
        find_ledger(ledger.path, FRAME, None, [])

    ledger.begin(receipt, 2, "request")
    ledger.reconcile(lambda _: False)
    assert ledger.entries()[0].state == "absent"  # nothing more is drawn for it
    check_no_missing_releases(ledger.path, ledger)


def test_folder_with_two_names_is_searched_once(tmp_path):
    (tmp_path / "people").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "people")
    ledger = open_new_ledger(tmp_path / "people")
    older = ledger.path.read_bytes()
    publish(ledger, take(ledger), tmp_path / "people" / "r")
    ledger.path.write_bytes(older)
    for path in (ledger.path, tmp_path / "link" / "people.ledger"):
        unrecorded = find_unrecorded_releases(
            path, ledger, [tmp_path / "link", tmp_path / "people"]
        )
        assert len(unrecorded) == 1


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"ledger": "people.ledger"}, "There is no ledger at .*r was paid from one of this name"),
        ({"dataset": "people"}, "r was paid for the data set 'people'. A second ledger"),
        (
            {"joined": {"table": "people", "on": "id", "public": False}},
            "r was paid for the data set 'people'. A second ledger",
        ),
        ({"joined": {"table": "people", "on": "id", "public": True}}, ""),
        ({"ledger": "other.ledger", "dataset": "others"}, ""),
    ],
)
def test_lost_ledger_is_noticed_by_its_releases(tmp_path, facts, message):
    write_release(tmp_path / "r", id="a1", ledger_id="b2", **facts)
    path = tmp_path / "people.ledger"
    if not message:
        assert find_ledger(path, tmp_path / "people.csv", None, []) is None
    else:
        with pytest.raises(LedgerError, match=message):
            find_ledger(path, tmp_path / "people.csv", None, [])


@pytest.mark.parametrize("place", ["ledger", "data", "second", "output", "elsewhere"])
def test_second_ledger_in_sight_is_refused(tmp_path, place):
    """Look in the folders of the ledger, the data, a second table, and the output."""
    for name in ("ledger", "data", "second", "output", "elsewhere"):
        (tmp_path / name).mkdir()
    names = {"second": "visits"}
    Ledger.create(tmp_path / place / "other.ledger", names.get(place, "people"), ONE)
    people = CSV(tmp_path / "data" / "people.csv", delimiter=";")
    for source in (
        people,
        Joined(tmp_path / "second" / "visits.csv", people, on="id"),
        Joined(people, tmp_path / "second" / "visits.csv", on="id"),
    ):
        is_read = place != "second" or isinstance(source, Joined)
        path = tmp_path / "ledger" / "people.ledger"
        if place == "elsewhere" or not is_read:
            assert find_ledger(path, source, None, [tmp_path / "output"]) is None
            continue
        with pytest.raises(LedgerError, match=f"{place}/other.ledger knows the data set"):
            find_ledger(path, source, None, [tmp_path / "output"])


def test_ledger_pays_only_for_its_data_set(tmp_path):
    ledger = open_new_ledger(tmp_path)
    for source, dataset in ((FRAME, None), (FRAME, "people"), (tmp_path / "people.csv", None)):
        ledger_found = find_ledger(ledger.path, source, dataset, [])
        assert ledger_found is not None
        assert ledger_found.id == ledger.id
    for source, dataset in ((FRAME, "others"), (tmp_path / "others.csv", None)):
        with pytest.raises(InputError, match="belongs to the data set 'people'; got 'others'"):
            find_ledger(ledger.path, source, dataset, [])
    assert find_other_ledgers(ledger.path, "people") == ()

    (tmp_path / "link.ledger").symlink_to(ledger.path)
    assert find_other_ledgers(ledger.path, "people") == ()
    assert find_other_ledgers(tmp_path / "new.ledger", "people") != ()


@pytest.mark.parametrize("obstacle", ["link", "share", "-journal", "-wal", "folder"])
def test_no_ledger_is_made_in_the_place_of_another(tmp_path, obstacle):
    """A dangling link, a share without ledger, and leftovers of a deleted ledger."""
    path = tmp_path / "people.ledger"
    share = ""
    if obstacle == "link":
        path.symlink_to(tmp_path / "gone.ledger")
    elif obstacle == "share":
        share = "ann"
    elif obstacle == "folder":
        path = tmp_path / "missing" / "people.ledger"
    else:
        Path(f"{path}{obstacle}").write_bytes(b"hot")

    with pytest.raises(LedgerError):
        find_ledger(path, FRAME, None, [], share=share)
    assert not path.exists()


def test_new_ledger_has_the_unit_of_its_first_release(tmp_path):
    bound = PerCellBound(2, "month")
    privacy = Privacy(PureDP(1), "replace", "id", 5, bound)
    created = open_or_create_ledger(tmp_path / "people.ledger", "people", privacy)
    assert created.privacy == Privacy(PureDP(1), "replace", "id", 5)
    reopened = open_or_create_ledger(tmp_path / "people.ledger", "others", ONE)
    assert (reopened.id, reopened.dataset) == (created.id, "people")


JUNK = [b"", b"\xff", b"7", b"[]", b"{}", b"[" * 10**5, b'{"receipt": []}', b'{"receipt": null}']
JUNK += [b'{"receipt": {"id": 7, "ledger_id": [], "steps": "3", "joined": {"public": 0}}}']
JUNK += [b'{"receipt": {"steps": true, "joined": {"public": false, "table": 3}}}']


@pytest.mark.parametrize("content", JUNK, ids=lambda content: content[:30])
def test_receipt_of_junk_is_empty(tmp_path, content):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "manifest.json").write_bytes(content)
    assert read_receipt(tmp_path / "r") == {}
    assert find_ledger(tmp_path / "people.ledger", FRAME, None, []) is None
    assert find_ledger(open_new_ledger(tmp_path).path, FRAME, None, []) is not None
