"""Plans cannot change after payment: arrays are read-only, and costs are recomputed."""

import gc
import itertools
import pickle
from dataclasses import fields
from enum import Enum
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._domain import Domain, Integers, Measure
from leastnoise._mechanisms import MECHANISMS
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import Series, _series
from leastnoise._trusted.linop import (
    Coarse,
    Dense,
    Identity,
    Nested,
    Ordered,
    Prefix,
    Total,
    Tree,
    block_tree,
    sealed_copy,
)
from leastnoise._trusted.linop._operators import Sealed
from leastnoise._trusted.measurements import Block, Factor, Limits, Measurements
from leastnoise._trusted.measurements._sensitivity import _norm_and_distance
from leastnoise._trusted.table import Table
from trusted.kernel.ledgers import open_new_ledger
from trusted.kernel.series import contract_of_one_step
from trusted.linop.conformance import CASES
from trusted.table.reach import reachable

DOMAIN = Domain(
    age=Integers(0, 3), pay=Integers(0, 3), measures={"amount": Measure("amount", 0, 100)}
).as_complete()


def measured(factor, limits=None, noise=Noise.DISCRETE_LAPLACE):
    block = Block((factor,), Fraction(10**6), "amount" if limits else None, limits)
    return Measurements(domain=DOMAIN, privacy=Privacy(PureDP(1)), noise=noise, blocks=(block,))


def test_operator_arrays_are_read_only():
    weighted = measured(Factor(("age",), Tree.full(4, 2), np.array([1, 2, 2, 4, 4, 4, 4])))
    limited = measured(Factor(("age",), Identity(4)), Limits([10, 20, 30, 40], "pay"))

    arrays = []
    for value in (weighted, limited):
        arrays += [reached for reached in reachable(value) if isinstance(reached, np.ndarray)]
    assert len(arrays) == 2
    for value in (weighted, limited, *(case.operator for case in CASES)):
        assert writable_parts(value) == []


@pytest.mark.parametrize(
    ("name", "value"), [("strides", (0, 16)), ("shape", (8, 1)), ("dtype", np.uint64)]
)
def test_paid_arrays_have_no_writable_views(name, value):
    """With other strides these queries would be four times (1, -1), with a distance of 8, not 4."""
    queries = Dense([[1, 1], [-1, -1], [1, 1], [-1, -1]])
    limited = measured(
        Factor(("age",), Identity(4), np.array([1, 2, 3, 4])), Limits([10, 20, 30, 40], "pay")
    )
    sealed_ones = [
        reached
        for start in (queries, limited)
        for reached in reachable(start)
        if isinstance(reached, Sealed)
    ]
    assert len(sealed_ones) >= 3

    for array in sealed_ones:
        with pytest.raises(AttributeError, match="a sealed array cannot be"):
            setattr(array, name, value)
        with pytest.raises(AttributeError, match="a sealed array cannot be"):
            array.resize(array.shape[::-1], refcheck=False)
        with pytest.raises(AttributeError, match="a sealed array cannot be"):
            array.__setstate__(np.zeros(3, dtype=np.int64).__reduce__()[2])
        unpickled = pickle.loads(pickle.dumps(array))
        assert type(unpickled) is Sealed
        assert unpickled.tolist() == array.tolist()
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
            array.setflags(write=True)
    assert {
        type(result)
        for result in (queries.matrix + 1, np.abs(queries.matrix), queries.matrix @ [1, 2])
    } == {np.ndarray}


def writable_parts(value):
    """List the writable objects reachable from a value.

    These are lists, dictionaries, sets, and arrays whose base is not ``bytes``.
    """
    everything = [*reachable(value)]
    behind = {
        id(referent)
        for reached in everything
        if isinstance(reached, (MappingProxyType, Enum))
        for referent in gc.get_referents(reached)
    }
    containers = [
        reached
        for reached in everything
        if isinstance(reached, (list, dict, set, bytearray)) and id(reached) not in behind
    ]
    writable = [f"{type(reached).__name__} {reached!r:.80}" for reached in containers]
    for array in (reached for reached in everything if isinstance(reached, np.ndarray)):
        root = array
        while isinstance(root, np.ndarray):
            if root.flags.writeable or not isinstance(root.base, (np.ndarray, bytes)):
                writable.append(f"{root.dtype} of shape {root.shape}")
            root = root.base
    return writable


LINE = ln.Domain(age=ln.Integers(0, 15)).as_complete()
PLANE = ln.Domain(
    age=ln.Integers(0, 3),
    pay=ln.Integers(0, 3),
    sex=["F", "M"],
    measures={"amount": ln.Measure("pay", 0, 4)},
).as_complete()
ASKED = (
    ln.queries(LINE, age="prefix"),
    ln.queries(PLANE, age="prefix", pay="prefix"),
    ln.marginals(PLANE, upto=2),
    ln.queries(PLANE, sex="identity", sum="amount"),
    ln.queries(PLANE, pay="prefix", sum="amount"),
    ln.queries(PLANE, age="prefix")
    + ln.queries(PLANE, pay="all_ranges")
    + ln.queries(PLANE, age="identity", sex="identity"),
    ln.marginals(PLANE, ways=1),
    ln.quantile_queries(PLANE, "age", ["1/2"]),
    ln.queries(LINE, age=ln.ranges([(start, start + 3) for start in range(13)])),
)
BUDGETS = (ln.PureDP(2), ln.ZCDP(1), ln.Privacy(ln.PureDP(2), "replace"))
# Each strategy is tested in the first of these cases that it supports. The search begins at another
# case for each strategy, so that all cases are used.
TRIED = [
    (ASKED[workload_index], BUDGETS[budget_index])
    for workload_index, budget_index in (
        (0, 1),
        (1, 0),
        (1, 2),
        (2, 0),
        (2, 1),
        (3, 0),
        (4, 0),
        (5, 1),
        (5, 2),
        (6, 0),
        (7, 0),
        (8, 1),
    )
]
NAMES = [*PLANNERS, *(name for mechanism in MECHANISMS for name in mechanism.names)]


@pytest.mark.parametrize("strategy", NAMES)
def test_strategy_arrays_are_read_only(strategy, monkeypatch):
    """Check each step of seeded releases after the draw and after its errors are computed."""
    steps: list[Measurements] = []
    real = _series.draw_answers
    monkeypatch.setattr(
        _series,
        "draw_answers",
        lambda step, *arguments: (steps.append(step), real(step, *arguments))[1],
    )
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {"age": rng.integers(0, 4, 60), "pay": rng.integers(0, 4, 60), "sex": ["F", "M"] * 30}
    )
    position = NAMES.index(strategy)
    for workload, budget in [*TRIED[position % len(TRIED) :], *TRIED[: position % len(TRIED)]]:
        try:
            release = ln.release(ln.plan(workload, budget, strategy=strategy), rows, seed=1)
        except ln.InputError:
            continue  # not for this workload or budget
        assert len(release.answers) > 0
        break

    assert steps
    assert {fault for step in steps for fault in writable_parts(step)} == set()


def test_cached_arrays_are_read_only():
    """Costs and choices use cached distances of rows and cached trees of blocks."""
    operators_and_powers = itertools.product((Prefix(4), Dense([[1, 0, 2, 1]])), (1, 2))
    cached_pairs = [
        _norm_and_distance(frozenset({Factor(("age",), along)}), power)
        for along, power in operators_and_powers
    ]
    assert [
        fault for cached in (*cached_pairs, block_tree(3, 5)) for fault in writable_parts(cached)
    ] == []


def test_domain_cells_cannot_change_under_a_plan():
    """Fewer cells mean fewer pairs of rows under replace, so a lower cost."""
    with pytest.raises(TypeError, match="does not support item assignment"):
        DOMAIN._by_name["age"] = Integers(0, 1)


def test_writable_array_is_detected():
    owned = np.arange(3)
    view = np.arange(3)[:2]
    view.setflags(write=False)

    # The list that holds the array is always writable.
    assert [
        len(writable_parts([array]))
        for array in (owned, view, sealed_copy(owned), sealed_copy(owned)[:2])
    ] == [2, 2, 1, 1]
    assert writable_parts((owned,)) == ["int64 of shape (3,)"]


class Word(str):
    """A text with its own comparisons."""

    __slots__ = ()

    def __str__(self):
        return self


def test_subclasses_of_str_become_plain_texts():
    age = Word("age")
    domain = ln.Domain(
        {age: Integers(0, 3), Word("id"): ["a", "b"]},
        measures={Word("amount"): ln.Measure(Word("pay"), 0, 9)},
    ).as_complete()
    privacy = Privacy(ZCDP(1), Word("add_remove"), Word("id"), 2, ln.PerCellBound(1, Word("age")))
    blocks = (
        Block((Factor((age,), Identity(4)),), Fraction(3)),
        Block((), Fraction(9), "amount", Limits([1, 2, 3, 4], age)),
    )
    measurements = Measurements(
        domain=domain, privacy=privacy, noise=Noise.DISCRETE_GAUSSIAN, blocks=blocks
    )

    assert [reached for reached in reachable(measurements) if type(reached) is Word] == []


def copy_as_subclass(value):
    """Return an equal value of a subclass."""
    kind = type(value)
    derived = object.__new__(type("Derived", (kind,), {}))
    for field in fields(kind):
        object.__setattr__(derived, field.name, getattr(value, field.name))
    return derived


def plan_of(block):
    return Measurements(
        domain=DOMAIN, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,)
    )


CELLS = copy_as_subclass(Identity(2))


@pytest.mark.parametrize(
    ("make", "part_name"),
    [
        (
            lambda: ln.Domain(age=copy_as_subclass(Integers(0, 3))).as_complete(),
            "the attribute 'age'",
        ),
        (
            lambda: ln.Domain(
                age=Integers(0, 3), measures={"m": copy_as_subclass(ln.Measure("pay", 0, 9))}
            ).as_complete(),
            "the measure 'm'",
        ),
        (lambda: Privacy(copy_as_subclass(PureDP(1))), "budget"),
        (
            lambda: Privacy(
                PureDP(1),
                unit_column="id",
                max_per_cell=copy_as_subclass(ln.PerCellBound(1, "age")),
            ),
            "max_per_cell",
        ),
        (lambda: Coarse(CELLS, [0, 2], 4), "operator"),
        (lambda: Ordered(CELLS, [1, 0]), "operator"),
        (lambda: Nested(CELLS, Identity(2), Total(2)), "inner"),
        (lambda: Nested(Identity(2), CELLS, Total(2)), "last"),
        (lambda: Nested(Identity(2), Identity(2), CELLS), "above"),
        (
            lambda: Ordered(copy_as_subclass(Coarse(Identity(2), [0, 2], 4)), [1, 0, 2, 3]),
            "operator",
        ),
        (
            lambda: plan_of(Block((Factor(("sex",), CELLS),), Fraction(1))),
            "the operator of a factor",
        ),
        (lambda: plan_of(copy_as_subclass(Block((), Fraction(1)))), "the blocks of measurements"),
        (lambda: plan_of("block"), "the blocks of measurements"),
        (lambda: plan_of(Block(("factor",), Fraction(1))), "the factors of a block"),
        (lambda: plan_of(Block((), Fraction(1), None, "limits")), "the limits of a block"),
        (lambda: plan_of(Block((), Fraction(1), Word("amount"))), "the measure of a block"),
        (lambda: plan_of(Block((), Fraction(1), "amount", ends=1)), "the ends of a block"),
    ],
)
def test_measurement_parts_are_of_own_classes(make, part_name):
    """Parts of other classes could change their values, so they are refused (M6)."""
    with pytest.raises(InputError, match=f"{part_name}.* must be"):
        make()


def test_only_step_is_verified_before_drawing(tmp_path):
    measurements = measured(Factor(("age",), Identity(4), np.array([1, 1, 1, 1])))
    table = Table(DOMAIN, {"age": [0] * 50 + [2]})
    ledger = open_new_ledger(tmp_path)
    series = Series.paid(contract_of_one_step(measurements), table, ledger, output="out")
    # What no flag can do, the interpreter's own back door can: other weights in the place of those
    # that were paid for.
    object.__setattr__(
        measurements.blocks[0].factors[0], "row_weights", sealed_copy(np.full(4, 2**19))
    )
    object.__setattr__(measurements.blocks[0].factors[0], "heaviest", 2**19)

    with pytest.raises(InputError, match="must be those that were paid for"):
        series.measure(measurements)
    assert ledger.pending(series.receipt).steps == ()
