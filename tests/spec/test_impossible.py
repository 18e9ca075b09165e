"""Impossible combinations of values in a spec."""

from dataclasses import replace
from pathlib import Path

import pytest

import leastnoise as ln
from leastnoise._pages import format_public_facts
from leastnoise._plan import Plan
from leastnoise._release import check_options
from leastnoise._session import plan_spec
from leastnoise._spec import parse_spec
from leastnoise._trusted.check import InputError

IMPOSSIBLE = '[[impossible]]\nage = [0, 2]\njob = ["nurse"]'
SPEC = """
[privacy]
epsilon = "1"
[domain.age]
integers = [0, 29]
[domain.job]
categories = ["none", "driver", "nurse"]
[domain.seen]
dates = {{ from = "2024-01-01", to = "2024-12-31", by = "month" }}
[[workload]]
marginals = {{ ways = 2 }}
[plan]
strategy = "{strategy}"
{impossible}
"""


def spec_of(impossible, strategy="model"):
    return parse_spec(SPEC.format(impossible=impossible, strategy=strategy), Path())


def test_impossible_takes_intervals_dates_and_lists():
    sections = (
        '[[impossible]]\nage = [0, 2]\njob = ["driver", "nurse"]\n[[impossible]]\njob = ["none"]\n'
        'seen = ["2024-02", "2024-04"]'
    )
    spec = spec_of(sections)
    assert spec.impossible == ({"age": (0, 1, 2), "job": (1, 2)}, {"job": (0,), "seen": (1, 2, 3)})
    assert list(plan_spec(spec).details.impossible[0]["age"]) == [0, 1, 2]
    assert plan_spec(spec_of("")).details.impossible == ()


@pytest.mark.parametrize(
    ("impossible", "message"),
    [
        ("impossible = 3", "must be tables of attributes"),
        ("[[impossible]]", "must be tables of attributes"),
        ("[[impossible]]\npay = [1]", r"\[\[impossible\]\] number 1 must be attributes of"),
        ('[[impossible]]\njob = ["cook"]', "cook"),
        ("[[impossible]]\nage = [0, 40]", "40"),
        ("[[impossible]]\nage = 3", "ranges, predicates and matrix"),
    ],
)
def test_invalid_combination_is_refused(impossible, message):
    text = SPEC.format(
        impossible=impossible if impossible.startswith("[") else "", strategy="model"
    )
    with pytest.raises(InputError, match=message):
        parse_spec(text if impossible.startswith("[") else f"{impossible}\n{text}", Path())


def test_other_strategies_refuse_it():
    with pytest.raises(
        InputError, match=r"'model' for a spec with \[\[impossible\]\] whose .*; got 'auto'"
    ):
        spec_of(IMPOSSIBLE, "auto")


def test_other_strategies_keep_it_for_top_down():
    spec = spec_of(f"{IMPOSSIBLE}\n[output]\ntop_down = true", "marginals")
    plan = Plan.from_json(plan_spec(spec).to_json())
    assert plan.details.impossible == ({"age": (0, 1, 2), "job": (2,)},)
    assert [*format_public_facts(plan)] == ["stated_impossible_top_down"]
    with pytest.raises(InputError, match="Set top_down = true"):
        check_options(plan, ln.Options())
    with pytest.raises(InputError, match="'model' or a data-independent strategy"):
        plan_spec(replace(spec, strategy="dawa"))
