"""Unusual values, and JSON-like values that contain one of them."""

import copy
import json
from functools import reduce
from operator import getitem

from hypothesis import strategies as st

SPECIAL = [
    "", " ", "nan", "inf", "-1", "0", "1/0", "1e99999999", "1e-9999999", "1" * 5000, "9" * 400,
    "\x00", "\u202e", "é" * 3000, "FILL IN", "x" * 100_000,
        10**30, -(10**30), 2**63, -1, 0, 10**400, 1e308, -0.0, float("nan"), float("inf"), True,
        False, [], {}, [[]], [{}], {"": ""},
]  # fmt: skip
WEIRD = st.one_of(
    st.sampled_from(SPECIAL),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.lists(
        st.one_of(st.integers(-9, 9), st.text(max_size=3), st.floats(), st.booleans()), max_size=4
    ),
    st.dictionaries(st.text(max_size=5), st.integers(-9, 9), max_size=3),
    st.integers(5, 400).map(lambda depth: json.loads("[" * depth + "]" * depth)),
)


def places(value, way=()):
    """Return the paths to all values within a value."""
    inner = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    paths = []
    for key, entry in inner:
        paths += [(*way, key), *places(entry, (*way, key))]
    return paths


@st.composite
def damaged(draw, value, odd=WEIRD):
    """Return a copy with one to three entries changed, removed, repeated or renamed."""
    copied = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        ways = places(copied)
        if not ways:
            break
        *way, last = draw(st.sampled_from(ways))
        holder = reduce(getitem, way, copied)
        kind = draw(
            st.sampled_from(["change", "change", "change", "remove", "swap", "name", "wrap"])
        )
        if kind == "remove":
            del holder[last]
        elif kind == "wrap":
            holder[last] = [holder[last]]
        elif kind == "name" and isinstance(holder, dict):
            holder[
                draw(
                    st.one_of(
                        st.text(max_size=9), st.sampled_from(["weight", "sum", "domain", "kind"])
                    )
                )
            ] = holder.pop(last)
        elif kind == "swap":
            holder[last] = copy.deepcopy(
                reduce(getitem, draw(st.sampled_from(places(copied))), copied)
            )
        else:
            holder[last] = draw(odd)
    return copied
