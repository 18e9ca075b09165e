"""Options have the same names and checks in the spec, Python, manifest and ledger."""

import json
import re
from dataclasses import asdict, fields
from fractions import Fraction
from pathlib import Path

import pytest

import leastnoise as ln
from example_releases import write
from leastnoise._release import (
    PUBLICATION_TEXTS,
    GuardCounts,
    Options,
    Payment,
    ReceiptFacts,
    SearchFacts,
    build_release,
)
from leastnoise._session import ReleaseRequest

ROOT = Path(__file__).parents[2]
OTHERS = {
    "level": 0.9,
    "formats": ("csv",),
    "non_negative": True,
    "integer": True,
    "nnls": True,
    "local_non_negative": True,
    "top_down": True,
    "covariances": ("q2",),
    "language": "de",
    "languages": ("de", "en"),
    "contact": "statistik@example.org",
    "guard": Fraction(1, 100),
    "rows": 5000,
    "round": 5,
    "below": 10,
    "rounding": "controlled",
    "title": "People",
    "source": "Register of people",
    "agency": "Office",
    "labels": {"sex": {"F": "women", "M": {"en": "men", "de": "Männer"}}},
    "names": {"rows": "persons", "attributes": {"sex": {"name": "sex"}}},
    "survey": {"cv": "1/20", "tables": {}},
    "sdmx": {"agency": "AT1", "concepts": {"sex": "SEX"}, "units": {"rows": "PS"}},
    "statements": ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",),
    "today": "2026-01-31",
    "joined_on": ("region", "region"),
    "searches": (
        SearchFacts(
            attribute="agent",
            plan="p1",
            receipt=ReceiptFacts(
                id="r1",
                payment=Payment(
                    dataset="people",
                    ledger="people.ledger",
                    ledger_id="l1",
                    charge="epsilon = 0.1",
                    number=1,
                    head="h1",
                    steps=1,
                ),
            ),
        ),
    ),
}
# These are set in [plan], [privacy], [source], [domain] and [[workload]].
BESIDE = {
    "guard",
    "rows",
    "searches",
    "labels",
    "names",
    "survey",
    "statements",
    "today",
    "joined_on",
}
SPEC = """
[source]
path = "people.csv"
today = "2026-01-31"
[source.join]
path = "regions.csv"
on = "region"
public = true
[privacy]
epsilon = 1
rows = 5000
[domain.sex]
categories = ["F", "M"]
labels = { F = "women", M = { en = "men", de = "Männer" } }
[names]
rows = "persons"
attributes.sex = "sex"
[survey]
cv = "1/20"
[[workload]]
marginals = { upto = 1 }
[[workload]]
sql = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
[plan]
guard = "1/100"
[output]
"""


def test_option_names_agree_in_spec_page_and_value(tmp_path):
    names = [field.name for field in fields(Options)]
    page = (
        (ROOT / "docs" / "spec.md")
        .read_text("utf-8")
        .split("## output")[1]
        .split("\n## ")[0]
        .split("\n\n")[1]
    )
    assert (
        sorted([*re.findall(r"^\| `(\w+)`", page, flags=re.MULTILINE), *BESIDE])
        == sorted(names)
        == sorted(OTHERS)
    )
    lines = [
        f"{name} = {json.dumps(value)}"
        for name, value in OTHERS.items()
        if name not in {*BESIDE, "sdmx"}
    ]
    lines.append('sdmx = { agency = "AT1", concepts = { sex = "SEX" }, units = { rows = "PS" } }')
    (tmp_path / "people.toml").write_text(SPEC + "\n".join(lines), encoding="utf-8")
    assert asdict(ln.read_spec(tmp_path / "people.toml").options) == {**OTHERS, "searches": ()}


def test_manifest_has_new_options_only_if_they_are_set():
    """A version without an option must read the manifests that do not use it."""
    assert {*Options().to_json()} == {
        "level", "formats", "non_negative", "integer", "nnls", "local_non_negative", "covariances",
        "language",
    }  # fmt: skip


def test_options_survive_manifest_and_ledger(observation, tmp_path):
    options = Options(**OTHERS)
    assert all(value != Options().to_json().get(name) for name, value in options.to_json().items())
    target = write(build_release(observation, options), tmp_path / "out")
    stored_options = json.loads((target / "manifest.json").read_text("utf-8"))["options"]
    assert set(stored_options) == set(OTHERS)
    assert Options.from_json(stored_options) == ln.read_release(target).options == options
    guard = GuardCounts(share="1/100", charge="", number=1, used=3, kept=4, noise_std=2.0)
    request = ReleaseRequest(options, "people.csv", ReceiptFacts(id="", guard=guard))
    assert ReleaseRequest.from_text(request.to_text()) == request


@pytest.mark.parametrize("name", PUBLICATION_TEXTS)
def test_publication_text_can_be_in_every_language(name):
    options = Options(**{name: {"en": "text", "de": "Text"}})
    assert options.languages == ("en", "de")
    assert options.text(name) == "text"
    assert options.text(name, "de") == "Text"
    assert options.to_json()[name] == {"en": "text", "de": "Text"}
    assert name not in Options().to_json()
    with pytest.raises(ln.InputError, match=name):
        Options(**{name: 7})


def test_empty_label_is_refused():
    with pytest.raises(ln.InputError, match="labels sex F must be a text of one line"):
        Options(labels={"sex": {"F": ""}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"options": {"level": 2}, "source": null, "guard": {}}',
        '{"options": {"x": 1}}',
    ],
)
def test_options_unknown_to_the_ledger_are_refused(text):
    with pytest.raises(ln.LedgerError, match="options is unreadable"):
        ReleaseRequest.from_text(text)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        *(
            ("formats", value, "a list of at least one of 'csv', 'parquet', 'xlsx' and 'sdmx'")
            for value in (["pdf"], [], "csv")
        ),
        ("nnls", 1, "true or false; got 1"),
        ("covariances", "sex", "a list of texts that are not empty; got 'sex'"),
        ("labels", {"sex": ["F"]}, "a mapping from attributes to texts of their codes"),
        ("language", "fr", "one of 'en', 'de'; got 'fr'"),
        ("contact", None, "a text of one line, or one for each language; got None"),
        ("guard", "2/3", "a share of the budget above 0 and at most 1/2"),
        ("guard", 0, "a number above 0"),
        ("searches", [{"attribute": "agent"}], "a list of results of search_facts"),
        *(
            (name, value, "")
            for name in ("round", "below")
            for value in (0, -5, "x", float("nan"), True, 10**400, "1e-300")
        ),
    ],
)
def test_wrong_values_are_refused(name, value, allowed):
    with pytest.raises(ln.InputError, match=re.escape(f"{name} must be {allowed}")):
        ln.Options(**{name: value})


def test_worst_objective_margins_use_the_level():
    domain = ln.Domain(a=["x", "y"], b=[str(number) for number in range(9)])
    workload = ln.marginals(domain, ways=1, of=["a"]).within(margin=20) + ln.marginals(
        domain, ways=1, of=["b"]
    ).within(rmse=20)
    stds = []
    for level in (0.5, 0.999):
        tables = (
            ln.plan(workload, ln.PureDP(1), objective="worst", level=level).expected_error().tables
        )
        stds.append(tables[0].rmse / tables[1].rmse)
    assert stds[0] > 1.5 * stds[1]  # the surer the interval, the more of the budget its table needs
