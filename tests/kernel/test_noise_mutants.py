"""The chi-square test sees mistakes: each mutant of the code must fail where the code passes, with as many draws."""

import inspect
from functools import cache

import numpy as np
import pytest

from kernel.noise_oracle import SAMPLERS, chi_square, mutant
from leastnoise._kernel import SeededEntropy, _draws, _noise

ALARM = 1e-6
DRAWS = 100_000
# What is wrong in one draw of some hundred needs more of them to fall below the alarm.
RARE = {"laplace accepts every u", "a coin of complement", "a table that loses its ambiguous prefixes"}

# law, scale, the text that is changed in one of the two modules, what it becomes
MUTANTS = {
    "laplace keeps the -0": ("laplace", 3, 2, "~(zero & negative)", "~(zero & False)"),
    "laplace with twice the divisor": ("laplace", 10, 1, "np.uint64(_PARTS)", "np.uint64(2 * _PARTS)"),
    "laplace accepts every u": ("laplace", 80, 1, "slots=_PARTS", "slots=128"),
    "laplace forgets u": ("laplace", 10, 1, "(u + mine * v)", "(mine * v)"),
    "gaussian keeps the -0": ("gaussian", 3, 2, "(y != 0) | far | ~negative", "(y >= 0)"),
    "gaussian keeps candidates of the next part": ("gaussian", 7, 2, "accepted &= x < mine", "x = np.minimum(x, mine)"),
    "gaussian starts a part too low": ("gaussian", 19, 10, "(start + (step - np.uint64(1)))", "start"),
    "acceptance without its linear term, fine": ("gaussian", 100, 1, "rest * np.uint64(2)", "rest * np.uint64(0)"),
    "acceptance without its linear term, coarse": ("gaussian", 3, 2, "range(int(whole_units.max(initial=0)))", "range(0)"),
    "rounding down instead of to nearest": ("rounded", 3, 1, "(double * k + half_step + high)", "(double * k + high)"),
    "rounded rejects a signed zero": ("rounded", 3, 2, "entropy)), accepted  # R4", "entropy)), accepted & (y > 0)  # R4"),
    "odd instead of even": ("gaussian", 3, 2, "return ~odd", "return odd"),
    "parity set, not flipped": ("gaussian", 5, 2, "odd[alive] ^= True", "odd[alive] = True"),
    "coins without 1/n": ("gaussian", 5, 2, "if step > 1:", "if step > 99:"),
    "x instead of x squared": ("gaussian", 5, 2, "np.flatnonzero(heads & squared)", "np.flatnonzero(heads & False)"),
    "a coin of complement": ("laplace", 10, 1, "heads: BoolArray = drawn < digits", "heads: BoolArray = drawn > digits"),
    "a table that loses its ambiguous prefixes": ("laplace", 3, 1, "drawn[ambiguous] = before", "drawn[ambiguous] = 0"),
    "uniforms one short": ("laplace", 3, 1, "raw - quotient * bound,", "raw - quotient * bound - (raw % bound == bound - np.uint64(1)),"),
    "rejected attempts are kept": ("laplace", 3, 2, "while pending.size:", "while False:"),
    "every draw negated": ("rounded", 10, 1, "where=negative", "where=negative | (magnitudes > 9)"),
    "a wrong constant in the geometric table": ("laplace", 10, 1, "power = _exp_of_minus_one_over(8,", "power = _exp_of_minus_one_over(9,"),
    "a wrong recurrence in the half-normal table": ("rounded", 10, 1, "_product(step, ratio_squared, work)", "_product(step, ratio, work)"),
    "a half-normal table one cell off": ("gaussian", 3, 2, "sums[1 : 8 * parts + 1]", "sums[2 : 8 * parts + 2]"),
}


def changed_sampler(law, module, old, new):
    """The sampler of the law in a copy of its module, one text changed there or in the module below it."""
    changed = mutant(module, old, new)
    if module is _draws:
        names = {name: getattr(changed, name) for name in vars(_noise) if name in vars(changed) and not name.startswith("__")}
        changed = mutant(_noise, "Integer arithmetic only.", "Integers only.", **names)
    return getattr(changed, SAMPLERS[law].__name__)


@cache
def of_the_code(law, p, q, draws):
    """The p-value of what the code itself draws."""
    return chi_square(law, p / q, SAMPLERS[law](p, q, draws, SeededEntropy(77)))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name):
    law, p, q, old, new = MUTANTS[name]
    count = 4 * DRAWS if name in RARE else DRAWS
    assert of_the_code(law, p, q, count) > ALARM
    module = _noise if old in inspect.getsource(_noise) else _draws
    draws = changed_sampler(law, module, old, new)(p, q, count, SeededEntropy(77))
    assert chi_square(law, p / q, draws) < ALARM


@pytest.mark.parametrize("law", SAMPLERS)
def test_the_unchanged_copy_is_the_code(law):
    for module in (_draws, _noise):
        copy = changed_sampler(law, module, "Integer arithmetic", "Integer  arithmetic")
        np.testing.assert_array_equal(copy(3, 2, 1000, SeededEntropy(5)), SAMPLERS[law](3, 2, 1000, SeededEntropy(5)))
