"""Every operator against its dense matrix."""

import base64
import json
import tracemalloc
import zlib
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from leastnoise._domain import Coded, Domain
from leastnoise._families import (
    apply_gram,
    gram_diagonal,
    gram_generators,
    interval_ends,
    singular_values,
)
from leastnoise._plan import operator_from_json
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.linop import (
    AllRanges,
    Coarse,
    Contrasts,
    Dense,
    DiagonalAndRows,
    Haar,
    Identity,
    Nested,
    Ordered,
    Prefix,
    Ranges,
    Toeplitz,
    Total,
    Tree,
    apply,
    apply_along_axis,
    apply_transpose,
    array_from_json,
    array_to_json,
    as_int32_if_exact,
    column_sums,
    dense,
    entry_bounds,
    largest_entry,
    noisy_array_to_json,
    non_negative,
    to_json,
)
from leastnoise._trusted.measurements import Block, Factor, Measurements, column_norm
from trusted.linop.conformance import CASES

for_every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@for_every_case
def test_stands_for_its_matrix(case):
    reference = case.reference()
    assert (case.operator.rows, case.operator.size) == reference.shape
    np.testing.assert_array_equal(dense(case.operator), reference)


@for_every_case
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_applies_exactly_along_the_first_axis(case, shape):
    rng = np.random.default_rng(1)
    reference = case.reference()
    x = rng.integers(-(2**40), 2**40, size=(case.operator.size, *shape))
    y = rng.integers(-(2**40), 2**40, size=(case.operator.rows, *shape))
    forward = apply(case.operator, x)
    backward = apply_transpose(case.operator, y)
    assert forward.dtype == backward.dtype == np.int64
    np.testing.assert_array_equal(forward, np.tensordot(reference, x, axes=(1, 0)))
    np.testing.assert_array_equal(backward, np.tensordot(reference.T, y, axes=(1, 0)))
    if shape == (3,):
        np.testing.assert_array_equal(apply_along_axis(apply, case.operator, x.T, 1), forward.T)


@for_every_case
@pytest.mark.parametrize("power", [1, 2])
def test_column_sums_with_weights(case, power):
    weights = np.random.default_rng(4).integers(1, 2**20, case.operator.rows)
    expected = (np.abs(case.reference()) ** power).T @ weights
    np.testing.assert_array_equal(column_sums(case.operator, weights, power), expected)


@for_every_case
def test_operator_gram_matches_the_matrix(case):
    rows = case.reference().astype(float)
    x = np.random.default_rng(6).normal(size=(case.operator.size, 2))
    np.testing.assert_allclose(apply_gram(case.operator, x), rows.T @ rows @ x, atol=1e-9)
    np.testing.assert_allclose(gram_diagonal(case.operator), np.diag(rows.T @ rows))


@for_every_case
def test_short_forms_match_the_matrix(case):
    rows = case.reference()
    ends = interval_ends(case.operator)
    generators = gram_generators(case.operator)
    values = singular_values(case.operator)
    if ends is not None:
        cells = np.arange(case.operator.size)
        np.testing.assert_array_equal(
            (cells >= ends[0][:, None]) & (cells <= ends[1][:, None]), rows
        )
    if generators is not None:
        upper = np.triu(np.outer(*generators))
        np.testing.assert_allclose(upper + np.triu(upper, 1).T, rows.T @ rows)
    if values is not None:
        np.testing.assert_allclose(values, np.linalg.svd(rows)[1][: len(values)])


def test_operators_have_their_short_forms():
    assert sum(interval_ends(case.operator) is not None for case in CASES) >= 10
    assert sum(singular_values(case.operator) is not None for case in CASES) == 5


@for_every_case
def test_sign_and_size_of_entries(case):
    assert non_negative(case.operator) == bool((case.reference() >= 0).all())
    assert largest_entry(case.operator) == np.abs(case.reference()).max()
    assert entry_bounds(case.operator)[0] == min(case.reference().min(), 0)


@for_every_case
def test_operator_json_round_trip(case):
    read_operator = operator_from_json(json.loads(json.dumps(to_json(case.operator))))
    assert read_operator == case.operator
    assert hash(read_operator) == hash(case.operator)


# The noise of contrasts follows the norms of their rows; tests/trusted/measurements tests it.
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not isinstance(case.operator, Contrasts)],
    ids=lambda case: case.name,
)
@pytest.mark.parametrize(
    ("noise", "budget"), [(Noise.DISCRETE_LAPLACE, PureDP(1)), (Noise.ROUNDED_GAUSSIAN, ZCDP(1))]
)
def test_plan_cost_matches_the_matrix(case, noise, budget):
    domain = Domain(cell=Coded(case.operator.size))
    blocks = (Block((Factor(("cell",), case.operator),), 8),)
    measured = Measurements(domain=domain, privacy=Privacy(budget), noise=noise, blocks=blocks)
    norm = int((np.abs(case.reference()) ** noise.norm).sum(axis=0).max())
    assert column_norm(measured, noise.norm) == Fraction(norm, 8**noise.norm)


def test_column_sums_of_large_entries_are_exact():
    big = 2**26 + 1
    assert column_sums(Dense([[big, 0], [big, -big]]), np.array([3, 5]), 2).tolist() == [
        8 * big**2,
        5 * big**2,
    ]


@for_every_case
@pytest.mark.parametrize("power", [1, 2])
def test_no_column_sum_reaches_2_to_the_63(case, power):
    """A sum that overflows would be a privacy cost that is too small."""
    largest = int((np.abs(case.reference()) ** power).sum(axis=0).max())
    weight = -(-(2**63) // max(largest, 2))
    if largest > 1:  # else every column has one entry, and its weight is its sum
        with pytest.raises(InputError, match="small enough for sums below 2\\^63"):
            column_sums(case.operator, np.full(case.operator.rows, weight), power)


@pytest.mark.parametrize("operator", [Tree.full(2**12, 2), Haar(2**12)], ids=["tree", "haar"])
def test_level_sums_depend_on_their_number(operator):
    """A cell is in one query of each of 13 levels; the last sum that fits is exact."""
    most = (2**63 - 1) // 13
    assert column_sums(operator, np.full(operator.rows, most), 2).max() == 13 * most
    with pytest.raises(InputError, match="sums below 2\\^63"):
        column_sums(operator, np.full(operator.rows, most + 1), 2)


@pytest.mark.parametrize("power", [1, 2])
def test_diagonal_sums_do_not_wrap_around(power):
    operator = DiagonalAndRows([2 ** (40 // power), 1], [[1, 1]])
    assert column_sums(operator, np.array([2**22, 1, 1]), power).tolist() == [2**62 + 1, 2]
    with pytest.raises(InputError, match="sums below 2\\^63"):
        column_sums(operator, np.array([2**23, 1, 1]), power)


def test_ordered_operators_compare_with_order():
    """Equal factors are compared and charged once."""
    operator = Ordered(Prefix(3), [2, 0, 1])
    assert operator == Ordered(Prefix(3), np.array([2, 0, 1]))
    for other_operator in (
        Ordered(Prefix(3), [0, 2, 1]),
        Ordered(Identity(3), [2, 0, 1]),
        Coarse(Prefix(3), [0, 1, 2], 3),
        Prefix(3),
        None,
    ):
        assert operator != other_operator


def test_contrasts_check_their_cell_count():
    assert [Contrasts(size).rows for size in (2, 2**20)] == [1, 2**20 - 1]


@pytest.mark.parametrize(
    "question",
    [
        lambda o: apply(o, np.zeros(1)),
        lambda o: column_sums(o, np.ones(1, dtype=int), 1),
        non_negative,
        largest_entry,
    ],
)
def test_entries_are_binary_only_if_declared(question):
    """Otherwise an operator that registers only apply would be charged for entries 0 and 1."""
    with pytest.raises(
        InternalError, match=r"str has not registered this function; see docs/adding-parts.md"
    ):
        question("no operator")


def test_entries_are_at_most_2_to_the_53():
    assert largest_entry(Dense([[2**53, -(2**53)]])) == 2**53
    for entry in (2**53 + 1, -(2**53) - 1):
        with pytest.raises(InputError, match=r"whole numbers between -2\^53 and 2\^53"):
            Dense([[entry]])


@pytest.mark.parametrize("narrow", [np.int8, np.uint8, np.bool_])
def test_narrow_entries_are_counted_as_wide(narrow):
    matrix = np.full((3, 2), 100, dtype=narrow)
    expected = (3 * matrix[0].astype(np.int64) ** 2).tolist()
    assert column_sums(Dense(matrix), np.ones(3, dtype=np.int64), 2).tolist() == expected
    assert (
        apply(Dense(matrix), np.array([2**20, 1])).tolist() == [(2**20 + 1) * int(matrix[0, 0])] * 3
    )


def test_sizes_become_pythons_own_integers():
    assert all(
        type(make(np.int64(3)).size) is int
        for make in (Identity, Prefix, AllRanges, Haar, Contrasts)
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (partial(Contrasts, size), f"size must be a whole number from 2 to {2**20}; got {size}")
            for size in (1, 2**20 + 1)
        ),
        (lambda: Identity(0), "size must be a whole number of at least 1; got 0"),
        *(
            (
                partial(Toeplitz, starts, [2, 1], [1, 1, 1]),
                "starts must be 2 ascending numbers, the first of them 0",
            )
            for starts in ([0], [1, 2], [0, 3], [0, 0])
        ),
        *(
            (
                partial(Coarse, Identity(2), starts, 3),
                "starts must be 2 ascending cells from 0 to 2",
            )
            for starts in ([0], [1, 2], [0, 0], [0, 3])
        ),
        *(
            (partial(Toeplitz, [0], *of), "a first value other than 0, scales above 0")
            for of in (([0], [1, 1]), ([2], [1, 0]))
        ),
        (
            lambda: Tree(4, (3, 2)),
            "widths must be descending whole numbers, each a multiple of the next; got \\[3, 2\\]",
        ),
        (lambda: Tree(4, ()), "widths must be descending"),
        (lambda: Tree(4, (2**40 + 1,)), "width must be a whole number from 1 to"),
        (lambda: Dense(np.array([[np.iinfo(np.int64).min]])), "whole numbers between"),
        (lambda: DiagonalAndRows([1, 0], [[1, 1]]), "as long as the rows, without a zero"),
        (lambda: DiagonalAndRows([1], [[1, 1]]), "as long as the rows, without a zero"),
        (lambda: Tree.full(4, 1), "branching must be a whole number of at least 2; got 1"),
        (lambda: Ranges(4, [2], [1]), "an interval outside the cells or with its ends exchanged"),
        (lambda: Ranges(4, [0], [4]), "0 <= low <= high <= 3"),
        (lambda: Ranges(4, [0, 1], [3]), "as long as low"),
        (lambda: Dense([[0.5]]), "array of whole numbers with 2 dimension"),
        (lambda: Dense([1, 2]), "array of whole numbers with 2 dimension"),
        (
            lambda: Nested(Identity(2), Identity(2), Identity(1)),
            "two or more, the last of them not wider than .*got '1, of 2 cells",
        ),
        (lambda: Nested(Identity(2), Identity(3), Total(2)), "not wider than the others"),
        (
            lambda: Nested(Identity(2), Identity(2), Contrasts(2)),
            "above must be another operator than contrasts",
        ),
        (
            lambda: Nested(Nested(Identity(2), Identity(2), Total(2)), Identity(2), Total(2)),
            "inner must be another operator than",
        ),
        (
            lambda: operator_from_json({"kind": "spiral", "size": 3}),
            "an operator as a plan file has it",
        ),
        (lambda: operator_from_json({"kind": "prefix"}), "an operator as a plan file has it"),
        (
            lambda: array_from_json({"shape": [1], "zlib_int64": "???"}),
            "an object with shape and either zlib_int64",
        ),
        (
            lambda: array_from_json({"shape": [1], "int8": "AQ==", "int16": "AQA="}),
            "an object with shape and either zlib_int64",
        ),
        (
            lambda: array_from_json({"shape": [1], "int72": "AQAAAAAAAAAA"}),
            "an object with shape and either zlib_int64",
        ),
    ],
)
def test_operators_refuse_invalid_arguments(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_arrays_inside_are_copies_and_read_only():
    rows = np.array([[1, 2]])
    operator = Dense(rows)
    rows[0, 0] = 9
    assert operator.matrix[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        operator.matrix[0, 0] = 9


def bomb(numbers, shape):
    """Return zeros that compress a thousandfold, under another shape."""
    return {
        "shape": shape,
        "zlib_int64": base64.b64encode(zlib.compress(bytes(8 * numbers))).decode(),
    }


def test_unpacking_stays_within_the_shape():
    hostile = bomb(2**22, [3])
    tracemalloc.start()
    with pytest.raises(
        InputError, match=r"must hold the 3 numbers of its shape; got more or fewer"
    ):
        array_from_json(hostile)
    assert tracemalloc.get_traced_memory()[1] < 2**20  # of 32 MiB

    tracemalloc.stop()
    with pytest.raises(
        InputError, match=r"must hold the 4 numbers of its shape; got more or fewer"
    ):
        array_from_json(bomb(3, [2, 2]))


@pytest.mark.parametrize("write", [array_to_json, noisy_array_to_json])
def test_unpacking_holds_no_third_copy(write):
    numbers = 2**18
    text = write(np.arange(numbers, dtype=np.int64) - numbers // 2)
    tracemalloc.start()
    array_from_json(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (8 + (8 if write is array_to_json else 3)) * numbers + len(str(text))


def test_unpacking_is_bounded_by_public_sizes():
    assert array_from_json(bomb(4, [2, 2]), 4).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(
        InputError, match=r"a packed array must be of at most 3 numbers; got '4 numbers'"
    ):
        array_from_json(bomb(4, [2, 2]), 3)
    with pytest.raises(InputError, match=f"of at most {2**28} numbers; got '{2**60} numbers'"):
        array_from_json(bomb(1, [2**30, 2**30]), 2**61)
    with pytest.raises(
        InputError,
        match="a length in the shape of an array must be a whole number of at least 0; got -1",
    ):
        array_from_json(bomb(1, [-1, -1]))


def test_file_operators_have_the_cells_of_attributes():
    value = to_json(Dense([[1, 2, 3]]))
    assert dense(operator_from_json(value, 3)).tolist() == [[1, 2, 3]]
    with pytest.raises(
        InputError, match=r"the shape of an operator's matrix must be .* at most 2 columns"
    ):
        operator_from_json(value, 2)
    with pytest.raises(
        InputError, match="the size of an operator must be the 4 cells of its attributes; got 3"
    ):
        operator_from_json(value, 4)


@given(
    arrays(
        np.int64,
        st.integers(0, 5),
        elements=st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**33), 2**33),
    )
)
def test_narrowing_and_packing_lose_nothing(values):
    small = as_int32_if_exact(values)
    assert small.tolist() == values.tolist()
    fits = len(values) > 0 and all(-(2**31) <= value < 2**31 for value in values.tolist())
    assert small.dtype == (np.int32 if fits else np.int64)
    for written in (array_to_json(small), noisy_array_to_json(small)):
        read_array = array_from_json(written)
        assert read_array.dtype == np.int64
        assert read_array.tolist() == values.tolist()


@pytest.mark.parametrize("size", range(1, 9))
def test_packed_numbers_use_the_fewest_bytes(size):
    ends = np.array([-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1, 0])
    assert [*noisy_array_to_json(ends)] == ["shape", f"int{8 * size}"]
    assert array_from_json(noisy_array_to_json(ends)).tolist() == ends.tolist()
    for beyond in (ends[0] - 1, ends[1] + 1) if size < 8 else ():
        assert [*noisy_array_to_json(np.array([beyond]))] == ["shape", f"int{8 * size + 8}"]
    with pytest.raises(InputError, match="must hold the 4 numbers of its shape; got more or fewer"):
        array_from_json(noisy_array_to_json(ends) | {"shape": [4]})


@pytest.mark.parametrize("write", [array_to_json, noisy_array_to_json])
@pytest.mark.parametrize("dtype", ["i1", "u1", "?", "<i4", ">i4", "<i8", ">i8"])
def test_every_layout_and_shape_is_kept(dtype, write):
    for shape in [(), (0,), (3, 0), (4, 6)]:
        array = (np.arange(-7, np.prod(shape, dtype=int) - 7).reshape(shape) * 5).astype(dtype)
        for laid in (
            array,
            array.T,
            np.asfortranarray(array),
            np.broadcast_to(array, (2, *shape)),
            array[..., ::-2] if shape else array,
        ):
            read_array = array_from_json(write(laid))
            assert isinstance(read_array, np.ndarray)
            assert read_array.dtype == np.int64
            assert read_array.shape == laid.shape
            assert read_array.flags.writeable is True
            assert read_array.tolist() == laid.astype(np.int64).tolist()
