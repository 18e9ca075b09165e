"""Define sums over complete rows: rows with a value of every measure of a statistic.

Covariances and regressions follow from three kinds of numbers: the number of these rows, the sums
of the distances of values from the middle of their bounds, and the sums of products of two such
distances.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, combinations_with_replacement

from leastnoise._domain import CompleteCount, DeviationProduct, Domain, Measure
from leastnoise._trusted.check import refuse

MOST_MEASURES = 11
"""The largest number of measures of one statistic.

With more measures, over 78 tables would share one budget.
"""

INTERCEPT = "(intercept)"
"""The label of the constant of a regression; no measure should have this name."""

Factors = tuple[str, ...]
"""The measures of a sum: none for the number of rows, one for distances, two for products."""


def factors_of_sums(measures: Sequence[str], response: str | None = None) -> list[Factors]:
    """Return the measures to be multiplied in each sum that a statistic needs.

    The first sum, without factors, is the number of complete rows. Sums of single measures follow,
    then sums of products of pairs. The square of the response is omitted, because no coefficient of
    a regression needs it.

    >>> factors_of_sums(["pay", "age"], response="pay")
    [(), ('pay',), ('age',), ('pay', 'age'), ('age', 'age')]
    """
    pairs = combinations_with_replacement(measures, 2)
    singles = [(measure,) for measure in measures]
    return [(), *singles, *(pair for pair in pairs if pair != (response, response))]


def name_sums(factors: Factors, measures: Sequence[str]) -> str:
    """Return the name of the measure for a product of factors over complete rows.

    >>> name_sums((), ["pay", "age"]), name_sums(("pay", "age"), ["pay", "age"])
    ('rows with pay and age', 'products of pay and age')
    >>> name_sums(("pay",), ["pay", "age"]), name_sums(("pay", "pay"), ["pay", "age"])
    ('deviations of pay in rows with pay and age', 'squares of pay in rows with pay and age')
    """
    rows = f"rows with {join_measures(measures)}"
    if not factors:
        return rows
    if len(factors) == 1:
        return f"deviations of {factors[0]} in {rows}"
    if factors[0] == factors[1]:
        return f"squares of {factors[0]} in {rows}"
    products = f"products of {join_measures(factors)}"
    if len(measures) == len(factors):
        return products
    return f"{products} in {rows}"


def join_measures(measures: Sequence[str]) -> str:
    """Join names to a list in a sentence, such as ``pay and age``.

    >>> join_measures(["pay", "age", "tenure"])
    'pay, age and tenure'
    """
    if len(measures) == 1:
        return measures[0]
    return f"{', '.join(measures[:-1])} and {measures[-1]}"


def pair_names(measures: Sequence[str]) -> tuple[str, ...]:
    """Return the name of each pair of measures, such as ``pay x age``.

    >>> pair_names(["pay", "age", "tenure"])
    ('pay x age', 'pay x tenure', 'age x tenure')
    """
    return tuple(" x ".join(pair) for pair in combinations(measures, 2))


def term_names(measures: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a regression's coefficients, the intercept first.

    >>> term_names(["pay", "age"])
    ('(intercept)', 'age')
    """
    return (INTERCEPT, *measures[1:])


def complete_rows_measures(
    domain: Domain, measures: Sequence[str], factors: Sequence[Factors]
) -> dict[str, Measure]:
    """Map names to the measures for products of factors over complete rows."""
    present = [domain.measure(name) for name in measures]
    named: dict[str, Measure] = {}
    for names in factors:
        name = name_sums(names, measures)
        if names:
            multiplied = [domain.measure(factor) for factor in names]
            named[name] = DeviationProduct(multiplied, present)
        else:
            named[name] = CompleteCount(present)
    return named


def in_domain_order(domain: Domain, measures: Sequence[str]) -> tuple[str, ...]:
    """Sort measures as in the domain, so that equal sets get equal names."""
    return tuple(name for name in domain.measures if name in measures)


def in_factor_order(measures: Sequence[str], factors: Factors) -> Factors:
    """Sort factors like their measures, so equal products get equal names."""
    return tuple(sorted(factors, key=measures.index))


def checked_variables(
    domain: Domain, argument: str, names: object, minimum: int = 1
) -> tuple[str, ...]:
    """Check a list of names of numeric measures, and return it as a tuple.

    Args:
        domain: the domain.
        argument: the name of the argument in messages.
        names: a list of names.
        minimum: the smallest allowed number of names.

    Raises:
        InputError: the argument is not a list; a name occurs twice; there are too few or too many
            names; or a name does not belong to a measure of rows' values.
    """
    declared = [name for name, measure in domain.measures.items() if type(measure) is Measure]
    allowed = f"{minimum} to {MOST_MEASURES} measures of values of rows, none twice"
    advice = f"Measures with clip are {', '.join(declared) or 'none'}."
    if isinstance(names, (str, Mapping)) or not isinstance(names, Sequence):
        raise refuse(argument, names, f"a list of {allowed}", advice)
    listed = tuple(names)
    is_valid = minimum <= len(listed) <= MOST_MEASURES and all(name in declared for name in listed)
    if not is_valid or len(set(listed)) < len(listed):
        raise refuse(argument, list(listed), allowed, advice)
    return listed
