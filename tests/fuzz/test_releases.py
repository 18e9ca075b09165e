"""Damaged files of releases: each reader answers, or refuses in one sentence.

`make fuzz` runs thousands of cases; here some hundred are tried, the same ones every time.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leastnoise as ln
from fuzz.cases import or_refused, trials
from fuzz.values import WEIRD, damaged
from leastnoise._session import enter_release, export, read_release
from leastnoise._studio import exploring_page
from leastnoise._trusted.ledgers import find_other_ledgers, find_unrecorded_releases

pytestmark = pytest.mark.slow

DOMAIN = ln.Domain(
    {
        "sex": ln.Categories(["F", "M"]),
        "age": ln.Integers(0, 9, outside="clip", levels={"pair": {"width": 2}}),
    },
    measures={"pay": ln.Measure("pay", 0, 100)},
)
WORKLOAD = (
    ln.marginals(DOMAIN, upto=2)
    + ln.mean_queries(DOMAIN, "pay", by=["sex"])
    + ln.quantile_queries(DOMAIN, "age", at=["0.5"], by=["sex"])
)
PEOPLE = pd.DataFrame(
    {
        "sex": ["F", "M"] * 200,
        "age": [number % 10 for number in range(400)],
        "pay": [number % 90 for number in range(400)],
        "id": [number // 2 for number in range(400)],
    }
)
OPTIONS = ln.Options(
    formats=["csv"],
    guard="1/10",
    non_negative=True,
    integer=True,
    round="5",
    below="2",
    labels={"sex": {"F": "women"}},
    statements=["SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"],
    contact="statistics@example.org",
    title="People",
)


def release_from_ledger(folder):
    ledger = folder / "people.ledger"
    ln.Ledger.create(ledger, "people", ln.Privacy(ln.PureDP(5)))
    ln.Ledger.create(folder / "other.empty", "people", ln.Privacy(ln.PureDP(5)))
    plan = ln.plan(WORKLOAD, ln.PureDP(2))
    ln.release(plan, folder / "people.parquet", ledger=ledger, out=folder / "out", options=OPTIONS)


def release_of_units(folder):
    ledger = folder / "people.ledger"
    unit = ln.Privacy(ln.ZCDP(1), unit_column="id", max_rows=1)
    ln.Ledger.create(ledger, "people", unit.within(ln.ZCDP(5)))
    ln.Ledger.create(folder / "other.empty", "people", unit.within(ln.ZCDP(5)))
    plan = ln.plan(ln.marginals(DOMAIN, ways=1), unit)
    options = ln.Options(formats=["csv"], guard="1/10")
    ln.release(plan, folder / "people.parquet", ledger=ledger, out=folder / "out", options=options)


def adaptive_release(folder):
    ln.Ledger.create(folder / "other.empty", "people", ln.Privacy(ln.PureDP(5)))
    domain = ln.Domain(age=ln.Integers(0, 63))
    plan = ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1), strategy="dawa")
    ln.release(plan, PEOPLE, seed=1, out=folder / "out", options=ln.Options(formats=["csv"]))


RELEASES = [release_from_ledger, release_of_units, adaptive_release]


@pytest.fixture(scope="module", params=RELEASES, ids=lambda make: make.__name__)
def release_folder(request, tmp_path_factory):
    """Return the folder of a release."""
    folder = tmp_path_factory.mktemp("released")
    PEOPLE.to_parquet(folder / "people.parquet")
    request.param(folder)
    return folder / "out"


def enter(out):
    """Enter a release into a new ledger."""
    ledger = Path(shutil.copy(out.parent / "other.empty", out.parent / "other.ledger"))
    return enter_release(ln.Ledger.open(ledger), out)


def look_for_releases(out):
    """Look for releases that a ledger paid, and for other ledgers of the data."""
    ledger = out.parent / "new.ledger"
    return find_unrecorded_releases(ledger, None), find_other_ledgers(ledger, "people")


def explore(out):
    return exploring_page(out).routes


USES: dict[str, Callable[[Path], object]] = {
    "repr": lambda out: repr(read_release(out)) + read_release(out)._repr_html_(),
    "answer": lambda out: read_release(out).answer(ln.queries(read_release(out).plan.domain)),
    "tables": lambda out: [repr(table) for table in read_release(out).tables],
    "statistics": lambda out: [repr(statistic) for statistic in read_release(out).statistics],
    "studio": explore,
    "enter": enter,
    "look for": look_for_releases,
    **{form: lambda out, form=form: export(out, form) for form in ("review", "registry", "mbi")},
    "notebook": lambda out: export(out, "notebook"),
}
MANIFEST = "manifest.json"
PLAN = "measurements/plan.json"
OBSERVATION = "measurements/observation.json"
READ_FILES = (PLAN, OBSERVATION, MANIFEST)


def write_file(out, name, text):
    """Write a file of a release and its digest into the manifest, so that it is read."""
    (out / name).write_text(text, encoding="utf-8")
    if name == MANIFEST:
        return
    manifest = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
    entry = next(entry for entry in manifest["files"] if entry["path"] == name)
    entry["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (out / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def with_digest_of_plan(observation, plan):
    """Return the observation with the plan's digest, if it can be read."""
    try:
        digest = ln.Plan.from_json(plan).digest()
    except ln.InputError:
        return observation
    return json.dumps({**json.loads(observation), "plan_digest": digest})


@pytest.mark.parametrize("name", [MANIFEST, PLAN, OBSERVATION])
@trials(25)
@given(data=st.data())
def test_damaged_release_answers_or_refuses(release_folder, name, data):
    intact = {
        file_name: (release_folder / file_name).read_text(encoding="utf-8")
        for file_name in READ_FILES
    }
    changed = data.draw(damaged(json.loads(intact[name]), WEIRD))
    try:
        write_file(release_folder, name, json.dumps(changed, separators=(",", ":")))
        if name == PLAN:
            observation = with_digest_of_plan(intact[OBSERVATION], json.dumps(changed))
            write_file(release_folder, OBSERVATION, observation)
        for use in USES.values():
            with or_refused():
                use(release_folder)
    finally:
        for file_name, text in intact.items():
            (release_folder / file_name).write_text(text, encoding="utf-8")


REFUSED = {("adaptive_release", "enter"): "no ledger paid for it"}


@pytest.mark.parametrize("name", USES)
def test_every_use_of_an_intact_release_answers(release_folder, request, name):
    reason = REFUSED.get((request.node.callspec.params["release_folder"].__name__, name))
    expected = nullcontext() if reason is None else pytest.raises(ln.InputError, match=reason)
    with expected:
        assert USES[name](release_folder) is not None


@trials(80)
@given(damaged(json.loads(ln.plan(WORKLOAD, ln.PureDP(2)).to_json()), WEIRD))
def test_any_plan_describes_itself_or_is_refused(value):
    with or_refused():
        plan = ln.Plan.from_json(json.dumps(value))
        descriptions = [repr(plan), plan._repr_html_(), str(plan.cost()), plan.digest()]
        assert all(descriptions)
        plan.expected_error().columns(), plan.used(), plan.plot().to_dict()
