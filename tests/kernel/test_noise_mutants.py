"""The battery sees mistakes: each mutant of the code must fail the chi-square test that the code passes, at the same sample size."""

from functools import cache

import numpy as np
import pytest

from kernel.noise_oracle import SAMPLERS, Script, chi_square, mutant, scalar, uniformity
from leastnoise._kernel import SeededEntropy, _draws, _noise

ALARM = 1e-6
DRAWS = 100_000
# What is wrong in one draw of some hundred needs more of them to fall below the alarm.
RARE = {"laplace accepts every u", "a coin of complement", "a table that loses its ambiguous prefixes"}
FUNCTIONS = {"laplace": "discrete_laplace", "gaussian": "discrete_gaussian", "rounded": "rounded_gaussian"}
HOMES = {"laplace": _noise, "gaussian": _noise, "rounded": _noise}

# law, scale, the module that is changed, the text that is changed, what it becomes
MUTANTS = {
    "laplace keeps the -0": ("laplace", 3, 2, _noise, "~(zero & negative)", "~(zero & False)"),
    "laplace drops every 0": ("laplace", 3, 2, _noise, "~(zero & negative)", "~zero"),
    "laplace with twice the divisor": ("laplace", 10, 1, _noise, "np.uint64(_PARTS)", "np.uint64(2 * _PARTS)"),
    "laplace accepts every u": ("laplace", 80, 1, _noise, "slots=_PARTS", "slots=128"),
    "laplace rejects too much": ("laplace", 10, 1, _noise, "slots=_PARTS", "slots=1"),
    "laplace forgets u": ("laplace", 10, 1, _noise, "(u + mine * v)", "(mine * v)"),
    "gaussian keeps the -0": ("gaussian", 3, 2, _noise, "(y != 0) | far | ~negative", "(y >= 0)"),
    "gaussian keeps the -0, large scale": ("gaussian", 10, 1, _noise, "(y != 0) | far | ~negative", "(y >= 0)"),
    "gaussian keeps candidates of the next part": ("gaussian", 7, 2, _noise, "accepted &= x < mine", "x = np.minimum(x, mine)"),
    "gaussian starts a part too low": ("gaussian", 19, 10, _noise, "(start + (step - np.uint64(1)))", "start"),
    "gaussian with one candidate fewer": ("gaussian", 7, 2, _noise, "(p + (unit - np.uint64(1))) // unit", "p // unit"),
    "acceptance without its linear term, fine": ("gaussian", 100, 1, _noise, "rest * np.uint64(2)", "rest * np.uint64(0)"),
    "acceptance without its linear term, coarse": ("gaussian", 3, 2, _noise, "range(int(whole_units.max(initial=0)))", "range(0)"),
    "acceptance with half its linear term": ("rounded", 3, 1, _noise, "rest * np.uint64(2)", "rest * np.uint64(1)"),
    "rounding down instead of to nearest": ("rounded", 3, 1, _noise, "(double * k + half_step + high)", "(double * k + high)"),
    "rounding without the fraction": ("rounded", 10, 1, _noise, "+ half_step + high)", "+ half_step)"),
    "rounded rejects a signed zero": (
        "rounded",
        3,
        2,
        _noise,
        "random_signs(size, entropy)), accepted",
        "s := random_signs(size, entropy)), accepted & ((y > 0) | ~s)",
    ),
    "odd instead of even, laplace": ("laplace", 10, 1, _draws, "return ~odd", "return odd"),
    "odd instead of even, gaussian": ("gaussian", 3, 2, _draws, "return ~odd", "return odd"),
    "odd instead of even, rounded": ("rounded", 3, 2, _draws, "return ~odd", "return odd"),
    "parity set, not flipped": ("gaussian", 5, 2, _draws, "odd[alive] ^= True", "odd[alive] = True"),
    "coins without 1/n": ("gaussian", 5, 2, _draws, "if step > 1:", "if step > 99:"),
    "coins of 1/n from the first on": ("gaussian", 5, 2, _draws, "step = 1\n", "step = 2\n"),
    "x instead of x squared": (
        "gaussian",
        5,
        2,
        _draws,
        "again = np.flatnonzero(heads & squared)",
        "again = np.flatnonzero(heads & False)",
    ),
    "a coin of complement": ("laplace", 10, 1, _draws, "heads: BoolArray = drawn < digits", "heads: BoolArray = drawn > digits"),
    "a table that loses its ambiguous prefixes": ("laplace", 3, 1, _draws, "drawn[ambiguous] = before", "drawn[ambiguous] = 0"),
    "uniforms one short": (
        "laplace",
        3,
        1,
        _draws,
        "raw - quotient * bound,",
        "raw - quotient * bound - (quotient * bound + bound - np.uint64(1) == raw),",
    ),
    "rejected attempts are kept": ("laplace", 3, 2, _draws, "while pending.size:", "while False:"),
    "every draw negated": ("rounded", 10, 1, _draws, "where=negative", "where=negative | (magnitudes > 9)"),
    "a wrong constant in the geometric table": (
        "laplace",
        10,
        1,
        _draws,
        "ratio = power = _exp_of_minus_one_over(8, work)",
        "ratio = power = _exp_of_minus_one_over(9, work)",
    ),
    "a wrong recurrence in the half-normal table": (
        "rounded",
        10,
        1,
        _draws,
        "step = _product(step, ratio_squared, work)",
        "step = _product(step, ratio, work)",
    ),
    "a half-normal table one cell off": ("gaussian", 3, 2, _draws, "sums[1 : 8 * parts + 1]", "sums[2 : 8 * parts + 2]"),
}


def changed_sampler(law, module, old, new):
    """The sampler of the law in a copy of its module, one text changed there or in a module below it."""
    changed = mutant(module, old, new)
    if module is HOMES[law]:
        return getattr(changed, FUNCTIONS[law])
    names = {name: getattr(changed, name) for name in vars(HOMES[law]) if name in vars(changed) and not name.startswith("__")}
    return getattr(mutant(HOMES[law], "Integer arithmetic only.", "Integers only.", **names), FUNCTIONS[law])


@cache
def of_the_code(law, p, q, draws):
    """The p-value of what the code itself draws."""
    return chi_square(law, p / q, SAMPLERS[law](p, q, draws, SeededEntropy(77)))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name):
    law, p, q, module, old, new = MUTANTS[name]
    count = 4 * DRAWS if name in RARE else DRAWS
    assert of_the_code(law, p, q, count) > ALARM
    draws = changed_sampler(law, module, old, new)(p, q, count, SeededEntropy(77))
    assert chi_square(law, p / q, draws) < ALARM


def test_what_no_sample_sees_is_seen_by_enumeration():
    """A bias of 1 in 300 or less in a part: the enumerations of test_noise_coins.py see it, chi-square does not."""
    words = np.arange(1 << 16, dtype=np.uint16).view(np.uint64).tolist()
    careless = mutant(_draws, "quotient < blocks", "quotient >= 0").uniform_below
    for function, fair in ((_draws.uniform_below, True), (careless, False)):
        values, accepted = function(scalar(200), 200, 1 << 16, Script(words, then=None))
        assert (np.ptp(np.bincount(values[accepted].astype(np.int64))) == 0) == fair
    tied = {"numerators": scalar(1), "denominators": scalar(3)}  # digits 85, 85, ...
    careless = mutant(_draws, "np.flatnonzero(drawn == digits)", "np.flatnonzero(drawn != drawn)").Ratios
    for coins, right in ((_draws.Ratios, True), (careless, False)):
        assert coins(**tied).toss(np.array([0]), Script([85, 84], then=0)).tolist() == [right]


@pytest.mark.parametrize("law", SAMPLERS)
def test_the_unchanged_copy_passes(law):
    for module in (_draws, _draws, HOMES[law]):
        copy = changed_sampler(law, module, "Integer arithmetic", "Integer  arithmetic")
        np.testing.assert_array_equal(copy(3, 2, 1000, SeededEntropy(5)), SAMPLERS[law](3, 2, 1000, SeededEntropy(5)))


@pytest.mark.parametrize("law", SAMPLERS)
def test_a_lost_low_bit_is_caught(law):
    draws = SAMPLERS[law](2**40, 1, DRAWS, SeededEntropy(79))
    assert uniformity((draws & 15), 16) > ALARM
    assert uniformity((draws & ~1 & 15), 16) < ALARM
    assert uniformity(((draws | (draws >> 7) & 1) & 15), 16) < ALARM
