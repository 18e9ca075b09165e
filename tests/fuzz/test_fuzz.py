"""Damaged files: one short message, a documented exit code, and no private value.

`make fuzz` runs thousands of cases; here some hundred are tried, the same ones every time.
"""

import hashlib
import io
import json
import math
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leastnoise as ln
from fuzz.cases import MOST, SECRET, or_refused, trials
from fuzz.values import WEIRD, damaged
from leastnoise._cli import main
from leastnoise._session import read_release
from leastnoise._spec import parse_spec, plan_warnings, spec_warnings

pytestmark = pytest.mark.slow

SPEC: dict[str, Any] = {
    "source": {
        "path": "people.csv",
        "delimiter": ",",
        "encoding": "latin-1",
        "header": True,
        "null": ["", "NA"],
    },
    "privacy": {
        "epsilon": "1",
        "neighbours": "add_remove",
        "unit": {"column": "id", "max_rows": 2},
        "rows": 9,
    },
    "domain": {
        "sex": {"categories": ["F", "M"], "outside": "other"},
        "age": {"integers": [0, 9], "outside": "clip"},
        "pay": {"bins": {"low": 0, "high": "1.5", "count": 3, "closed": "right"}},
        "code": {"size": 3, "levels": {"half": {"groups": {"a": [0, 1], "b": [2]}}}},
        "day": {
            "dates": {
                "column": "bought",
                "from": "2024-01-01",
                "to": "2024-12-31",
                "by": "quarter",
                "zone": "Europe/Berlin",
            }
        },
        "price": {
            "edges": ["0", "9.99", "50"],
            "closed": "right",
            "decimal": ",",
            "thousands": ".",
            "currency": ["€"],
        },
        "height": {
            "decimals": {"low": "1", "high": "2", "step": "0.5"},
            "trim": True,
            "nulls": ["NA"],
        },
        "yes": {
            "categories": [True, False],
            "spellings": {"true": ["yes"]},
            "ignore_case": True,
            "column": "consent",
        },
    },
    "measures": {"wage": {"column": "pay", "clip": [0, "10"], "unit": "0.5"}},
    "workload": [
        {"marginals": {"ways": 1, "of": ["sex", "age"]}, "weight": "2"},
        {"marginals": {"upto": 1}, "sum": "wage"},
        {"queries": {"age": "prefix", "sex": "identity"}, "weight": 1.5},
        {
            "queries": {
                "age": {"ranges": [[0, 3], [2, 9]]},
                "sex": {"predicates": [["F"], ["F", "M"]]},
            }
        },
        {"queries": {"code": {"matrix": [[1, 0, -1]]}}},
        {"queries": {"code": {"level": "half"}, "day": {"level": "year"}}},
    ],
    "plan": {"strategy": "identity"},
    "output": {"level": 0.9, "formats": ["csv"], "covariances": ["q1"], "integer": True},
    "ledger": {"dataset": "people"},
}


def toml(value):
    """Return a value as TOML, with inline tables."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(str(key))} = {toml(entry)}" for key, entry in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        if math.isfinite(value):
            return str(value)
        return "nan" if math.isnan(value) else "inf"
    return json.dumps(value).replace("\x7f", "\\u007f")


def as_toml(table):
    return "\n".join(f"{json.dumps(str(key))} = {toml(entry)}" for key, entry in table.items())


def is_small(spec):
    return (
        spec.workload.rows < 3000
        and math.prod(kind.size for kind in map(spec.domain.kind, spec.domain.names)) < 15_000
    )


SURVEY: dict[str, Any] = {
    "privacy": {
        "rho": "1",
        "unit": {"column": "id", "max_rows": 3, "max_per_cell": 1, "cell": ["month"]},
    },
    "domain": {
        "month": {"dates": {"from": "2024-01-01", "to": "2024-12-31", "by": "month"}},
        "sex": {"categories": ["F", "M"], "labels": {"F": "women"}},
        "age": {"integers": [0, 9]},
    },
    "measures": {"pay": {"clip": [0, 9]}, "weight": {"clip": [0, "9.5"], "unit": "0.5"}},
    "workload": [
        {"means": {"of": "pay", "by": ["month"]}, "weighted_by": "weight", "size": 9, "margin": 3},
        {"queries": {"month": "identity", "sex": "identity"}, "relative": "0.1", "size": 100},
        {"quantiles": {"of": "age", "at": ["0.5"], "by": ["month"]}},
        {"cdf": {"of": "age", "by": ["month"]}},
        {"regression": {"of": "pay", "on": ["weight"], "by": []}, "size": 9},
        {"r_squared": {"of": "pay", "on": ["weight"], "by": []}, "size": 9, "margin": "0.1"},
        {"queries": {"month": {"change": 1}}, "rmse": 3, "weighted_by": "weight"},
    ],
    "plan": {"guard": "1/100"},
    "output": {"round": 5, "title": "x", "formats": ["csv"], "language": "de"},
}


@pytest.mark.parametrize("spec", [SPEC, SURVEY], ids=["census", "survey"])
@trials(120)
@given(data=st.data())
def test_any_spec_is_read_and_planned_or_refused(spec, data):
    table = data.draw(damaged(spec))
    with or_refused():
        spec_read = parse_spec(as_toml(table), Path())
        assert all(spec_warnings(spec_read))
        if is_small(spec_read):
            plan = ln.plan(spec_read.workload, spec_read.privacy, strategy="identity")
            assert all(plan_warnings(spec_read, plan))


@pytest.mark.parametrize("spec", [SPEC, SURVEY], ids=["census", "survey"])
def test_intact_spec_is_read_and_planned(spec):
    spec_read = parse_spec(as_toml(spec), Path())
    assert (
        ln.plan(spec_read.workload, spec_read.privacy, strategy="identity").data_independent_error
        is not None
    )


@trials(60)
@given(
    st.text(max_size=200)
    | st.sampled_from(
        ["[" * 5000, "a = " + "[" * 3000 + "]" * 3000, "a=" + "9" * 9999, "a.b." * 999 + "c=1"]
    )
)
def test_any_text_in_the_place_of_a_spec_is_refused(text):
    with pytest.raises(ln.InputError) as raised:
        parse_spec(text, Path())
    with or_refused():
        raise raised.value


DOMAIN = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 3, levels={"pair": {"width": 2}}))
PLAN = ln.plan(
    ln.marginals(DOMAIN, upto=1)
    + ln.queries(DOMAIN, age="all_ranges")
    + ln.queries(DOMAIN, age=ln.level("pair")),
    ln.PureDP(1),
    strategy="level_tree",
)
PEOPLE = pd.DataFrame({"sex": ["F", "M", SECRET], "age": [1, 2, 10**9]})


@trials(120)
@given(damaged(json.loads(PLAN.to_json())))
def test_any_plan_is_carried_out_or_refused(value):
    with or_refused():
        assert ln.release(ln.Plan.from_json(json.dumps(value)), PEOPLE, seed=1).answers is not None


@pytest.fixture(scope="module")
def release_folder(tmp_path_factory):
    """Return the folder of a release."""
    folder = tmp_path_factory.mktemp("released")
    ln.release(PLAN, PEOPLE, seed=1, out=folder / "out", options=ln.Options(formats=["csv"]))
    return folder / "out"


@pytest.mark.parametrize("name", ["manifest.json", "measurements/observation.json"])
@trials(40)
@given(data=st.data())
def test_any_release_is_read_or_refused(release_folder, name, data):
    intact_files = {
        path: path.read_text(encoding="utf-8")
        for path in (release_folder / name, release_folder / "manifest.json")
    }
    changed = json.dumps(data.draw(damaged(json.loads(intact_files[release_folder / name]), WEIRD)))
    try:
        if name != "manifest.json":
            # The manifest has the digest of the changed file, so that its content is read.
            manifest = json.loads(intact_files[release_folder / "manifest.json"])
            entry = next(entry for entry in manifest["files"] if entry["path"] == name)
            entry["sha256"] = hashlib.sha256(changed.encode()).hexdigest()
            (release_folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        with or_refused():
            (release_folder / name).write_text(changed, encoding="utf-8")
            read_release(release_folder)
    finally:
        for path, text in intact_files.items():
            path.write_text(text, encoding="utf-8")


@trials(40)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=40)), min_size=1, max_size=3)
)
def test_any_ledger_is_opened_or_refused(tmp_path, changes):
    file = tmp_path / "people.ledger"
    file.unlink(missing_ok=True)
    ln.Ledger.create(file, "people", PLAN.privacy)
    data = bytearray(file.read_bytes())
    for place, replacement in changes:
        start = int(place * (len(data) - 1))
        data[start : start + len(replacement)] = replacement
    file.write_bytes(bytes(data))
    with or_refused():
        ledger = ln.Ledger.open(file)
        ledger.entries(), ledger.left()


@trials(12)
@given(damaged(SPEC))
def test_any_spec_ends_with_a_documented_code(tmp_path, monkeypatch, table):
    with suppress(ln.InputError):
        if not is_small(parse_spec(as_toml(table), tmp_path)):
            return  # its plan would take too long
    (tmp_path / "s.toml").write_text(as_toml(table), encoding="utf-8", errors="replace")
    monkeypatch.setattr(sys, "argv", ["leastnoise", "plan", str(tmp_path / "s.toml"), "--json"])
    errors = io.StringIO()

    with redirect_stdout(io.StringIO()), redirect_stderr(errors), pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in {0, 2}, errors.getvalue()
    assert "Traceback" not in errors.getvalue()
    assert len(errors.getvalue()) <= MOST + 2000
