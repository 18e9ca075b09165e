"""Releases that count the measurements of earlier ones: payment and files."""

import hashlib
import json
from dataclasses import replace

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._session import enter_release
from session.releasing import manifest

PEOPLE = pd.DataFrame({"sex": ["F"] * 60 + ["M"] * 40, "age": [1, 2, 3, 4] * 25})
DOMAIN = ln.Domain(sex=["F", "M"], age=ln.Integers(1, 4))
WORKLOAD = ln.queries(DOMAIN, sex="identity", age="identity")


@pytest.fixture(scope="module")
def first_release(tmp_path_factory):
    """Return a folder with a ledger and a release from it."""
    folder = tmp_path_factory.mktemp("after")
    ledger = ln.Ledger.create(folder / "people.ledger", "people", ln.Privacy(ln.PureDP(9)))
    PEOPLE.to_csv(folder / "people.csv", index=False)
    plan = ln.plan(WORKLOAD, ln.PureDP(1), strategy="identity")
    ln.release(plan, folder / "people.csv", ledger=ledger, out=folder / "release-2025")
    return folder, ledger


def plan_after(folder):
    earlier = ln.read_release(folder / "release-2025")
    return ln.plan(WORKLOAD, ln.PureDP(1), strategy="identity", after=[earlier])


def test_unpaid_earlier_releases_are_refused_before_payment(first_release, tmp_path):
    folder, ledger = first_release
    other_ledger = ln.Ledger.create(tmp_path / "other.ledger", "people", ln.Privacy(ln.PureDP(9)))
    with pytest.raises(ln.InputError, match="must have been paid from the ledger of this release"):
        ln.release(plan_after(folder), folder / "people.csv", ledger=other_ledger)
    with pytest.raises(ln.InputError, match="must have been paid from the ledger of this release"):
        ln.release(plan_after(folder), PEOPLE, ledger=tmp_path / "new.ledger", dataset="fresh")
    entered = ln.Ledger.create(tmp_path / "entered.ledger", "people", ln.Privacy(ln.PureDP(9)))
    assert enter_release(entered, folder / "release-2025").kind == "spent"
    with pytest.raises(ln.InputError, match="must have been paid from the ledger of this release"):
        ln.release(plan_after(folder), PEOPLE, ledger=entered)
    assert entered.spent().epsilon == 1
    plan = ln.plan(WORKLOAD, ln.PureDP(1), strategy="identity")
    seeded = ln.release(plan, PEOPLE, seed=1)
    seeded_plan = ln.plan(WORKLOAD, ln.PureDP(1), strategy="identity", after=[seeded])
    with pytest.raises(ln.InputError, match="Its noise came from a seed"):
        ln.release(seeded_plan, folder / "people.csv", ledger=ledger)
    assert other_ledger.spent().epsilon == 0
    assert not ln.release(plan_after(folder), PEOPLE, seed=1).private


class Edited:
    """A release with other measurements than its ledger recorded."""

    def __init__(self, release):
        self.release = release

    def as_earlier(self):
        return replace(self.release.as_earlier(), plan_digests=("0" * 64,))


def test_edited_earlier_release_is_refused_before_payment(first_release):
    folder, ledger = first_release
    edited = Edited(ln.read_release(folder / "release-2025"))
    plan = ln.plan(WORKLOAD, ln.PureDP(1), strategy="identity", after=[edited])
    spent_before = ledger.spent()
    with pytest.raises(ln.InputError, match="must have the plan that its ledger recorded"):
        ln.release(plan, folder / "people.csv", ledger=ledger)
    assert ledger.spent() == spent_before


def test_changed_earlier_values_are_refused(first_release, tmp_path):
    folder, _ = first_release
    out = tmp_path / "new"
    ln.release(plan_after(folder), PEOPLE, seed=1, out=out)
    file = out / "measurements" / "observation.json"
    content = json.loads(file.read_text())
    content["values"].reverse()
    file.write_text(json.dumps(content))
    facts = manifest(out)
    for entry in facts["files"]:
        if entry["path"] == "measurements/observation.json":
            entry["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    (out / "manifest.json").write_text(json.dumps(facts))
    with pytest.raises(ln.InputError, match="differ from its plan"):
        ln.read_release(out)


@pytest.mark.parametrize("is_paid", [True, False])
def test_comparison_with_the_earlier_release_has_shared_noise(first_release, is_paid):
    folder, ledger = first_release
    if is_paid:
        earlier = ln.read_release(folder / "release-2025")
        later = ln.release(plan_after(folder), PEOPLE, ledger=ledger)
    else:
        plan = ln.plan(WORKLOAD, ln.PureDP(1), strategy="identity")
        earlier = ln.release(plan, PEOPLE, seed=1)
        following_plan = ln.plan(WORKLOAD, ln.PureDP(1), strategy="identity", after=[earlier])
        later = ln.release(following_plan, PEOPLE, seed=2)
    compared = ln.compare_releases(later, earlier, by=["sex", "age"]).frame("pandas")
    stds = [release.answers["noise_std"][0] for release in (later, earlier)]
    assert compared["difference_std_error"][0] == pytest.approx(sum(stds))
