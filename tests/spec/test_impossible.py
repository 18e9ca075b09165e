"""Values that cannot be together, as a spec says them."""

from pathlib import Path

import pytest

from leastnoise._check import InputError
from leastnoise._session._session import planned_spec
from leastnoise._spec import parse_spec

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


def spec_of(impossible: str, strategy: str = "model") -> str:
    return SPEC.format(impossible=impossible, strategy=strategy)


def test_intervals_of_numbers_and_dates_and_lists_of_cells() -> None:
    more = '[[impossible]]\nage = [0, 2]\njob = ["driver", "nurse"]\n[[impossible]]\njob = ["none"]\nseen = ["2024-02", "2024-04"]'
    spec = parse_spec(spec_of(more), Path())
    assert spec.impossible == ({"age": (0, 1, 2), "job": (1, 2)}, {"job": (0,), "seen": (1, 2, 3)})
    plan = planned_spec(spec)
    assert list(plan.details["impossible"][0]["age"]) == [0, 1, 2]
    assert "impossible" not in planned_spec(parse_spec(spec_of(""), Path())).details


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
def test_what_is_no_combination_is_refused(impossible: str, message: str) -> None:
    text = spec_of(impossible) if impossible.startswith("[") else f"{impossible}\n{spec_of('')}"
    with pytest.raises(InputError, match=message):
        parse_spec(text, Path())


def test_other_strategies_refuse_it() -> None:
    with pytest.raises(InputError, match=r"strategy must be 'model' where \[\[impossible\]\] is said; got 'auto'"):
        planned_spec(parse_spec(spec_of('[[impossible]]\nage = [0, 2]\njob = ["nurse"]', "auto"), Path()))
