"""Settings of a spec that have no effect are named in a warning, in both languages."""

from pathlib import Path

import pytest

from leastnoise import InputError
from leastnoise._spec import parse_spec, spec_warnings
from leastnoise._texts import ENGLISH, Catalogue

HEAD = """
[privacy]
epsilon = 1
unit = { column = "id", max_rows = 2%(unit)s }
[domain.sex]
categories = ["F", "M"]
%(domain)s
[measures.pay]
clip = [0, 1000]
"""
COUNTS = '[[workload]]\nqueries = { sex = "identity" }\n'
SUMS = '[[workload]]\nqueries = { sex = "identity" }\nsum = "pay"\n'
MEANS = '[[workload]]\nmeans = { of = "pay", by = ["sex"] }\n'
VARIANCES = '[[workload]]\nvariances = { of = "pay", by = ["sex"] }\n'
DIFFERENCE = '{ along = "sex", group = "F", against = "M", margin = 50'


def warnings(body, catalogue=ENGLISH, **parts):
    head = HEAD % ({"unit": "", "domain": ""} | parts)
    return spec_warnings(parse_spec(head + body, Path()), catalogue)


@pytest.mark.parametrize(
    ("body", "parts", "setting"),
    [
        (VARIANCES + 'size = 9\ntarget_of = "variance"', {}, "target_of in"),
        (VARIANCES + "scales = { pay = 100 }", {}, "scales in"),
        (SUMS, {"unit": ', of_unit = ["sex"]'}, "of_unit in [privacy] unit"),
        (SUMS, {"domain": 'decimal = ","\ncurrency = ["€"]'}, "decimal, currency in [domain.sex]"),
        (SUMS + '[output.sdmx]\nflows = "quantity"', {}, "sdmx in [output]"),
        (SUMS + "[output]\nround = { pay = 5, units = 5 }", {}, "quantity units"),
        (SUMS + "[output]\nbelow = { rows = 5 }", {}, "quantity rows"),
        (SUMS + '[survey]\ncv = "0.1"\nsample = 9\npopulation = 90', {}, "sample, population in"),
        (
            MEANS + f'[targets]\ndifference = {DIFFERENCE}, mean = "pay", size = 9, '
            "expected_ratio = 2 }",
            {},
            "expected_ratio in [targets] difference",
        ),
        (
            SUMS + f'[targets]\ndifference = {DIFFERENCE}, sum = "pay", value = 5 }}',
            {},
            "value in [targets] difference",
        ),
    ],
)
def test_setting_without_effect_has_a_warning(body, parts, setting):
    (warning,) = warnings(body, **parts)
    assert setting in warning
    (german,) = warnings(body, Catalogue("de"), **parts)
    assert german != warning


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (VARIANCES + 'size = 9\ntarget_of = "variance"\nmargin = 9000', {}),
        (VARIANCES + "size = 9\nscales = { pay = 100 }", {}),
        (SUMS + COUNTS + 'count = "units"', {"unit": ', of_unit = ["sex"]'}),
        (SUMS + "[output]\nround = { pay = 5 }", {}),
        (MEANS + "[output]\nround = { pay = 5, rows = 5 }", {}),
        (
            SUMS + '[survey]\ndesign_effect = "1.5"\nsample = 9\npopulation = 90',
            {"domain": ""},
        ),
        (
            MEANS + f'[targets]\ndifference = {DIFFERENCE}, mean = "pay", size = 9, value = 5 }}',
            {},
        ),
    ],
)
def test_setting_with_effect_has_no_warning(body, parts):
    assert warnings(body, **parts) == ()


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ('means = { of = "pay", size = 9 }', "size"),
        ('means = { of = "pay", margin = 9 }', "margin"),
        ("marginals = { ways = 1, weight = 2 }", "weight"),
        ('queries = { sex = "identity", sum = "pay" }', "sum"),
    ],
)
def test_key_inside_the_braces_of_queries_says_where_it_belongs(entry, key):
    with pytest.raises(InputError, match=f"write {key} = ... on a line of its own below"):
        warnings(f"[[workload]]\n{entry}")


@pytest.mark.parametrize(
    "entry",
    [
        'means = { of = "pay", sum = "pay" }',
        'cdf = { of = "age", count = "rows" }',
        "marginals = { ways = 1, scales = 2 }",
        'queries = { sex = "identity", target_of = "variance" }',
    ],
)
def test_inner_key_that_the_entry_must_not_have_is_refused_at_once(entry):
    with pytest.raises(InputError) as error:
        warnings(f"[[workload]]\n{entry}")
    assert "on a line of its own" not in str(error.value)


def test_attribute_may_have_the_name_of_a_key():
    domain = "[domain.size]\nintegers = [1, 9]"
    body = '[[workload]]\nqueries = { size = "identity", sex = "identity" }\n'
    assert warnings(body + 'sum = "pay"', domain=domain) == ()


def test_ratio_of_counts_refuses_a_value():
    target = DIFFERENCE.replace("50", '"0.1"') + ", size = 9, value = 9 }"
    with pytest.raises(InputError, match="value"):
        warnings(f"{COUNTS}[targets]\nratio = {target}")
