"""Options are one value: the same names in the spec, in Python, in the manifest and in the ledger, checked once."""

import json
import re
from dataclasses import asdict, fields
from fractions import Fraction
from pathlib import Path

import pytest

import leastnoise as ln
from leastnoise._release import Options, _writing, build
from leastnoise._session._finish import Asked
from release.conftest import write

ROOT = Path(__file__).parents[2]
OTHERS = {
    "level": 0.9,
    "formats": ("csv",),
    "non_negative": True,
    "integer": True,
    "nnls": True,
    "local_non_negative": True,
    "covariances": ("q2",),
    "language": "de",
    "contact": "statistik@example.org",
    "guard": Fraction(1, 100),
    "round": 5,
    "below": 10,
    "title": "People",
    "source": "Register of people",
    "agency": "Office",
    "labels": {"sex": {"F": "women", "M": "men"}},
    "statements": ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",),
    "searches": ({"attribute": "agent", "dataset": "people", "charge": "epsilon = 0.1", "number": 1, "ledger": "people.ledger"},),
}
BESIDE = {"guard", "searches", "labels", "statements"}  # said in [plan], [domain] and [[workload]]
SPEC = """
[privacy]
epsilon = 1
[domain.sex]
categories = ["F", "M"]
labels = { F = "women", M = "men" }
[[workload]]
marginals = { upto = 1 }
[[workload]]
sql = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
[plan]
guard = "1/100"
[output]
"""


def test_the_spec_the_page_and_the_value_have_the_same_names(tmp_path: Path) -> None:
    names = [one.name for one in fields(Options)]
    page = (ROOT / "docs" / "spec.md").read_text("utf-8").split("## output")[1].split("\n## ")[0].split("\n\n")[1]
    assert sorted([*re.findall(r"^\| `(\w+)`", page, flags=re.MULTILINE), *BESIDE]) == sorted(names) == sorted(OTHERS)
    lines = [f"{name} = {json.dumps(value)}" for name, value in OTHERS.items() if name not in BESIDE]
    (tmp_path / "people.toml").write_text(SPEC + "\n".join(lines), encoding="utf-8")
    assert asdict(ln.read_spec(tmp_path / "people.toml").options) == {**OTHERS, "searches": ()}


def test_every_option_comes_back_from_the_manifest_and_from_the_ledger(observation, tmp_path: Path) -> None:
    options = Options(**OTHERS)
    assert all(value != Options().to_json().get(name) for name, value in options.to_json().items())
    release = build(observation, options)
    target = write(release, tmp_path / "out")
    said = json.loads((target / "manifest.json").read_text("utf-8"))["options"]
    assert list(said) == list(OTHERS)
    assert Options(**said) == ln.read_release(target).options == options
    assert Asked.from_json(Asked(options, "people.csv", {"used": 3}).to_json()) == Asked(options, "people.csv", {"used": 3})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"options": {"level": 2}, "source": null, "guard": {}}', '{"options": {"x": 1}}'])
def test_options_that_the_ledger_does_not_hold_are_refused(text: str) -> None:
    with pytest.raises(ln.LedgerError, match="options is unreadable"):
        Asked.from_json(text)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"formats": ["pdf"]}, "formats must be a list of some of 'csv', 'parquet', 'xlsx' and 'sdmx', at least one of them; got"),
        ({"formats": []}, "formats must be a list"),
        ({"formats": "csv"}, "formats must be a list"),
        ({"nnls": 1}, "nnls must be true or false; got 1"),
        ({"covariances": "sex"}, "covariances must be a list of texts that are not empty; got 'sex'"),
        ({"language": "fr"}, "language must be one of 'en', 'de'; got 'fr'"),
        ({"contact": None}, "contact must be a text of one line; got None"),
        ({"guard": "2/3"}, "guard must be a share of the budget above 0 and at most 1/2"),
        ({"guard": 0}, "guard must be"),
        ({"searches": [{"attribute": "agent"}]}, "searches must be a list of what FoundCategories.named() gives"),
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ln.InputError) as refused:
        ln.Options(**wrong)
    assert message in str(refused.value)


def test_releases_of_earlier_versions_have_their_options_where_they_were(observation, tmp_path: Path, monkeypatch) -> None:
    asked = Options(level=0.8, non_negative=True, integer=True, nnls=True, local_non_negative=True, covariances=["q2"], language="de")
    made = _writing.manifest

    def earlier(*args):
        value = made(*args)
        page = {name: value["options"][name] for name in ("language", "contact")}
        return {**{name: entry for name, entry in value.items() if name != "options"}, "report": page}

    monkeypatch.setattr(_writing, "manifest", earlier)
    target = write(build(observation, asked), tmp_path / "out")
    assert ln.read_release(target).options == asked


def test_margins_of_the_worst_objective_are_at_the_level() -> None:
    domain = ln.Domain(a=["x", "y"], b=[str(number) for number in range(9)])
    asked = ln.marginals(domain, ways=1, of=["a"]).within(margin=20) + ln.marginals(domain, ways=1, of=["b"]).within(rmse=20)
    stds = []
    for level in (0.5, 0.999):
        tables = ln.plan(asked, ln.PureDP(1), objective="worst", level=level).expected_error().tables
        stds.append(tables[0].rmse / tables[1].rmse)
    assert stds[0] > 1.5 * stds[1]  # the surer the interval, the more of the budget its table needs
