"""Arguments that the samplers refuse, and the absence of floating point in the noise."""

import ast
import inspect
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, _noise, _sampling
from trusted.kernel.noise_oracle import ALARM, SAMPLERS, chi_square

MODULES = [_sampling, _noise]


every_law = pytest.mark.parametrize("law", SAMPLERS)


both_parts = pytest.mark.parametrize("part", ["numerator", "denominator"])
ONES = np.ones(4, dtype=np.int64)


def draw_with(law, part, value):
    """Draw four numbers, with a value for one part of the noise scale."""
    scale = {"numerator": ONES, "denominator": 1, part: value}
    return SAMPLERS[law](**scale, count=4, entropy=SeededEntropy(0))


@every_law
@both_parts
@pytest.mark.parametrize(
    "value", [0, -1, 2**56, 2**64, 1.0, True, None, "1", float("nan"), Fraction(1)]
)
def test_wrong_scale_is_refused(law, part, value):
    message = f"^{part} of the noise scale must be a whole number from 1 to 72057594037927935; got "
    with pytest.raises(InputError, match=message):
        draw_with(law, part, value)


@every_law
@both_parts
@pytest.mark.parametrize("value", [0, -5, 2**56, 2**62])
def test_wrong_scale_in_an_array_is_refused(law, part, value):
    message = f"^{part} of the noise scale must be a whole number from 1 to .*; got {value}"
    with pytest.raises(InputError, match=message):
        draw_with(law, part, np.array([1, 2, value, 4]))


@every_law
@both_parts
@pytest.mark.parametrize(
    "scales",
    [ONES[:3], ONES[:, None], ONES.astype(float), ONES.astype(np.uint64), np.array(1)],
    ids=["three", "two axes", "floats", "unsigned", "no axis"],
)
def test_wrong_array_of_scales_is_refused(law, part, scales):
    message = (
        r"a whole number or an int64 array of shape \(4,\), one for each draw; got '.* array of "
        r"shape"
    )
    with pytest.raises(InputError, match=message):
        draw_with(law, part, scales)


@every_law
@pytest.mark.parametrize("count", [-1, 2.0, None, True, "3"])
def test_wrong_count_is_refused(law, count):
    with pytest.raises(InputError, match=r"^count must be a whole number of at least 0; got "):
        SAMPLERS[law](1, 1, count, SeededEntropy(0))


@every_law
def test_no_draws_and_odd_lengths(law):
    empty = np.empty(0, dtype=np.int64)
    assert SAMPLERS[law](1, 1, 0, SeededEntropy(0)).shape == (0,)
    assert SAMPLERS[law](empty, empty, 0, SeededEntropy(0)).dtype == np.int64
    for count in (1, 2, 3, 7, 63, 65, 32767, 32768, 32769):
        assert SAMPLERS[law](3, 2, count, SeededEntropy(count)).shape == (count,)
    # Many short calls have the law, too: a scale wrong by a fifth is seen.
    joined = np.concatenate([SAMPLERS[law](3, 2, 5, SeededEntropy(seed)) for seed in range(400)])
    assert chi_square(law, 1.5, joined) > ALARM


@every_law
def test_sampler_does_not_change_its_scales(law):
    numerators = np.arange(1, 101)
    denominators = np.arange(101, 1, -1)
    SAMPLERS[law](numerators, denominators, 100, SeededEntropy(0))
    np.testing.assert_array_equal(numerators, np.arange(1, 101))
    np.testing.assert_array_equal(denominators, np.arange(101, 1, -1))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_no_floating_point_in_the_source(module):
    floating = {"float16", "float32", "float64", "double", "longdouble"}
    forbidden = floating | {
        "math",
        "random",
        "exp",
        "log",
        "sqrt",
        "mean",
        "true_divide",
        "divide",
        "linspace",
    }

    for node in ast.walk(ast.parse(inspect.getsource(module))):
        assert not isinstance(node, ast.Div)
        assert not isinstance(getattr(node, "value", None), (float, complex))
        assert getattr(node, "id", None) not in {"float", "complex"}
        # Attributes and imported names are compared.
        assert not forbidden.intersection(
            [getattr(node, "attr", None), getattr(node, "name", None)]
        )


class Watched(np.ndarray):
    """An array that refuses operations with results other than integers or booleans."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [
            operand.view(np.ndarray) if isinstance(operand, Watched) else operand
            for operand in inputs
        ]
        if out is not None:
            options["out"] = tuple(
                operand.view(np.ndarray) if isinstance(operand, Watched) else operand
                for operand in out
            )
        if "where" in options:
            options["where"] = np.asarray(options["where"])
        result = getattr(ufunc, method)(*plain, **options)
        Watched.operations += 1
        assert np.asarray(result).dtype.kind in "uib", (
            f"{ufunc.__name__} made {np.asarray(result).dtype}"
        )
        return result.view(Watched) if isinstance(result, np.ndarray) else result

    operations = 0


class WatchedEntropy(SeededEntropy):
    def words(self, count):
        return super().words(count).view(Watched)


@every_law
def test_no_floating_point_at_run_time(law):
    """Every operation on random bits returns integers or booleans."""
    for p, q in ((3, 10), (2**40, 7)):
        Watched.operations = 0
        SAMPLERS[law](p, q, 2000, WatchedEntropy(p))
        SAMPLERS[law](np.full(500, p), np.full(500, q), 500, WatchedEntropy(p))
        assert Watched.operations > 20


def test_float_watch_detects_a_float():
    with pytest.raises(AssertionError, match="made float64"):
        WatchedEntropy(0).words(3) / np.uint64(2)
    with pytest.raises(AssertionError, match="made float64"):
        WatchedEntropy(0).words(3) + np.arange(3)  # uint64 and int64 meet in float64
