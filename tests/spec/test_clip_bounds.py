"""The largest bounds of a measure: one limit, checked where the measure is declared."""

from pathlib import Path

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._spec import parse_spec

MOST = 2**30 - 1


def spec(clip, unit="1", sections=""):
    """Return a spec with these bounds of a measure."""
    return f"""
    [privacy]
    epsilon = 1
    [measures.v]
    clip = {clip}
    unit = "{unit}"
    [measures.w]
    clip = [0, 500]
    unit = "0.25"
    [domain.g]
    integers = [0, 9]
    [[workload]]
    queries = {{ g = "total" }}
    sum = "v"
    {sections}
    """


@pytest.mark.parametrize(
    ("clip", "unit"),
    [
        (f"[0, {MOST}]", "1"),
        (f"[{-MOST}, {MOST}]", "1"),
        ("[0, '10737418.23']", "0.01"),
        (f"[0, {MOST * 1000}]", "1000"),
    ],
)
def test_bounds_up_to_the_limit_are_summed_exactly(clip, unit):
    workload = parse_spec(spec(clip, unit), Path()).workload
    release = ln.release(
        ln.plan(workload, ln.PureDP(1)), pd.DataFrame({"v": [5.0], "g": [1]}), seed=1
    )
    measure = workload.domain.measure("v")
    assert measure.largest == MOST
    assert float(release.tables[0].noise_std) < 2 * float(measure.high)


@pytest.mark.parametrize(
    ("clip", "unit", "larger"),
    [
        (f"[0, {MOST + 1}]", "1", "10"),
        (f"[{-MOST - 1}, 0]", "1", "10"),
        ("[0, 9007199254740991]", "1", "10000000"),
        ("[0, 9007199254740992]", "1", "10000000"),
        ("[0, '10737418.24']", "0.01", "0.1"),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_beyond_the_limit_are_refused_once(clip, unit, larger, weighted):
    text = spec(clip, unit, 'weighted_by = "w"' if weighted else "")
    with pytest.raises(ln.InputError) as error:
        parse_spec(text, Path())
    allowed = f"must be between -{MOST} and {MOST} units of {unit}, so that sums of 2^32 rows are"
    assert "[measures.v]: " in str(error.value)
    assert allowed in str(error.value)
    assert str(error.value).endswith(f"or a larger unit, such as {larger}.")


def test_weighted_bounds_beyond_limit_are_refused():
    assert parse_spec(spec(f"[0, {MOST // 2000}]", sections='weighted_by = "w"'), Path())
    with pytest.raises(ln.InputError, match="high of v times w must be between -1073741823 and"):
        parse_spec(spec(f"[0, {MOST // 2000 + 1}]", sections='weighted_by = "w"'), Path())
