"""Two tables, each for a part of the workload.

Each part has a separate strategy along every attribute. Least squares combines the two tables.

No single strategy along an attribute is good for queries on cells and for queries on groups of
cells: groups do not determine their cells, and a sum of cells includes the noise of all its cells.
Therefore, the products are divided into two parts. Each part gets a separate table. Along every
attribute of a table, cells that its queries do not separate are merged. The budget is split for the
least total error of the two parts.

Source: OPT_plus of McKenna et al. (PVLDB 2018), which answers each part only from its own table.
    Here, in contrast, all answers use both tables.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import chain

import numpy as np

from leastnoise._error import pair_structure, pair_terms
from leastnoise._families import (
    FitFamily,
    NotApplicable,
    apply_gram,
    check_deadline,
    dense_gram,
    fit_family,
    gaussian_optimum,
    identity_family,
    invert_gram,
    merge_equal_cells,
    p_identity,
    p_identity_seconds,
)
from leastnoise._strategies._planning_problem import (
    LEAST_EFFORT,
    Planner,
    PlanningProblem,
    Strategy,
    attribute_costs,
    base_seconds,
    block_norm,
)
from leastnoise._trusted.linop import Operator, Total
from leastnoise._trusted.measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._workload import Product, QuerySet, Workload

_MOST_BITS = 29  # maximum number of bits of the product of all attributes' coefficients
_QUICK = partial(p_identity, effort=LEAST_EFFORT)  # minimum number of steps, for the first sweep
_MOST_JOINT_CELLS = 2**22  # maximum number of joint cells
_MOST_ATTRIBUTE_CELLS = 1024  # maximum number of cells of the longest attribute
# Two tables are tried only if the quick estimate of their error is below this share of the error of
# one table.
_MOST_ERROR_RATIO = 0.95
# The grid of ratios for the split of the budget.
_LEAST_RATIO = 1e-2
_RATIO_COUNT = 81


def union(problem: PlanningProblem) -> Strategy:
    """Return two tables, each for one part of the products."""
    workload = problem.workload
    norm = problem.norm
    products = workload.products
    sizes = {name: workload.domain.kind(name).size for name in workload.attributes}
    if workload.measures != (None,):
        raise NotApplicable(
            "separate tables for parts of the workload are possible only for counts"
        )
    if not workload.beyond_cells or len(products) < 2:
        raise NotApplicable(
            "the workload has only cells and cannot be split: choose marginals or covering"
        )
    if not (
        math.prod(sizes.values()) <= _MOST_JOINT_CELLS
        and max(sizes.values()) <= _MOST_ATTRIBUTE_CELLS
    ):
        raise NotApplicable(
            f"the joint table may have at most {_MOST_JOINT_CELLS} cells, and an attribute "
            f"{_MOST_ATTRIBUTE_CELLS}"
        )
    error = _error_estimator(products, sizes, norm)
    errors = {}
    for partition in _partitions(products, sizes):
        complement = tuple(not in_second for in_second in partition)
        errors[partition] = error(complement) + error(partition)
    partition = min(errors, key=errors.__getitem__)
    if not errors[partition] < _MOST_ERROR_RATIO * error((True,) * len(products)):
        raise NotApplicable(
            "no split of the workload has a smaller expected error than one table for all of it"
        )
    family_fits: tuple[FitFamily, ...] = (identity_family, gaussian_optimum, gaussian_optimum)
    if norm == 1:
        family_fits = (identity_family, _QUICK, p_identity)
    return _two_table_strategy(workload, partition, sizes, norm, family_fits)


def _partitions(products: Sequence[Product], sizes: dict[str, int]) -> list[tuple[bool, ...]]:
    """Return candidate divisions of the products into two parts.

    For some attribute, a candidate separates the products with one query set (or without queries)
    along it from all other products. A candidate has a flag for each product; True means the second
    part. The first product always belongs to the first part.
    """
    sets: set[tuple[str, QuerySet | None]] = set()
    for product in products:
        sets.update(zip(product.attributes, product.query_sets, strict=True))
    sets |= {(name, None) for name in sizes}
    partitions = []
    for name, query_set in sorted(sets, key=repr):
        partition = tuple(
            dict(zip(product.attributes, product.query_sets, strict=True)).get(name) == query_set
            for product in products
        )
        if not any(partition) or all(partition):
            continue
        if partition[0]:
            partition = tuple(not in_second for in_second in partition)
        partitions.append(partition)
    if not partitions:
        raise NotApplicable(
            "all products have the same queries along every attribute, so one table is enough"
        )
    return list(dict.fromkeys(partitions))


def _error_estimator(
    products: Sequence[Product], sizes: dict[str, int], norm: int
) -> Callable[[tuple[bool, ...]], float]:
    """Return a function that estimates the joint error of selected products.

    The argument of the function has a flag for each product, True for the selected ones. Cells that
    are in the same queries are merged first. The returned errors are powers of the errors, such
    that the results for two tables can be added.
    """
    gram = cache(lambda operator: apply_gram(operator, np.eye(operator.size)))

    @cache
    def error(members: tuple[bool, ...]) -> float:
        """Return a root of the squared error of the products whose flag is True."""
        selected = [
            product for product, is_member in zip(products, members, strict=True) if is_member
        ]
        each = np.array([product.importance for product in selected])
        for name, size in sizes.items():
            grams = [gram(operator) for operator in _operators_along(selected, name, size)]
            _, group = merge_equal_cells(dense_gram(np.sum(grams, axis=0), 1))
            first = np.unique(group, return_index=True)[1]
            each = each * [float(matrix.diagonal()[first].sum()) for matrix in grams]
        return float(each.sum()) ** (1 / 3 if norm == 1 else 1 / 2)

    return error


def _operators_along(products: Sequence[Product], name: str, size: int) -> list[Operator]:
    """Return the operator of each product along an attribute."""
    return [
        dict(zip(product.attributes, product.operators, strict=True)).get(name, Total(size))
        for product in products
    ]


def _fit_table(
    products: Sequence[Product], sizes: dict[str, int], fit_of_round: Sequence[FitFamily], norm: int
) -> tuple[Factor, ...]:
    """Return a strategy for some products, fitted along each attribute in rounds.

    Each round fits all attributes by one of ``fit_of_round``, with the weights that follow from the
    strategies along the other attributes. The strategies of a round replace the strategies of the
    previous round.
    """
    used = set(chain.from_iterable(product.attributes for product in products))
    queries_along = {
        name: _operators_along(products, name, sizes[name]) for name in sizes if name in used
    }
    bits = min(20, _MOST_BITS // max(1, len(queries_along)))
    factors: dict[str, Factor] = {}
    # The error of every product along each attribute is the weight of its Gram matrices along the
    # other attributes.
    error = {name: np.ones(len(products)) for name in queries_along}
    for fit in fit_of_round:
        for name, operators in queries_along.items():
            check_deadline()
            other_errors = [error[other] for other in queries_along if other != name]
            weights = np.prod(
                np.array([*other_errors, [product.importance for product in products]]), axis=0
            )
            weighed = list(zip((weights / weights.max()).tolist(), operators, strict=True))
            factors[name] = fit_family(fit, weighed, norm, bits).factor(name)
            height = block_norm(products[0].domain, Block((factors[name],), Fraction(1)), norm)
            error[name] = (
                np.array(
                    [invert_gram(factors[name]).total_variance(operator) for operator in operators]
                )
                * height**2
            )
    return tuple(factors.values())


def _two_table_strategy(
    workload: Workload,
    partition: tuple[bool, ...],
    sizes: dict[str, int],
    norm: int,
    family_fits: Sequence[FitFamily],
) -> Strategy:
    """Return two tables with the best split of the budget."""
    blocks = []
    heights = []
    for is_second_part in (False, True):
        products = [
            product
            for product, in_second in zip(workload.products, partition, strict=True)
            if in_second is is_second_part
        ]
        block = Block(_fit_table(products, sizes, family_fits, norm), Fraction(1))
        if block.rows > MOST_TABLE_CELLS:
            raise NotApplicable(
                f"a table would have {block.rows} rows; at most {MOST_TABLE_CELLS} are allowed"
            )
        blocks.append(block)
        heights.append(block_norm(workload.domain, block, norm))
    structure = pair_structure(sizes, [(block, 1.0) for block in blocks])
    first, second = (
        term / height**2 for term, height in zip(pair_terms(structure.axes), heights, strict=True)
    )
    error_factors = sum(
        product.importance * structure.total_coefficients(product) for product in workload.products
    )
    is_measured = structure.information > 0
    first = first[is_measured]
    second = second[is_measured]
    error_factors = np.asarray(error_factors)[is_measured]

    def error(budget_share: float) -> float:
        """Return the total squared error for a share of the budget."""
        return float(
            (
                error_factors
                / (budget_share ** (2 / norm) * first + (1 - budget_share) ** (2 / norm) * second)
            ).sum()
        )

    shares = 1 / (1 + np.geomspace(_LEAST_RATIO, 1 / _LEAST_RATIO, _RATIO_COUNT))
    best = float(min(shares, key=error))
    shares = np.linspace(best * 0.9, min(best * 1.1, 1 - 1e-6), 41)
    best = float(min(shares, key=error))
    weights = [
        share ** (1 / norm) / height
        for share, height in zip((best, 1 - best), heights, strict=True)
    ]
    return Strategy("union", tuple(zip(blocks, weights, strict=True)), error=error(best))


def _is_made_for(workload: Workload) -> bool:
    """Return whether a workload has several tables on few joint cells."""
    sizes = [workload.domain.kind(name).size for name in workload.attributes]
    return (
        len(workload.products) > 1
        and math.prod(sizes) <= _MOST_JOINT_CELLS
        and max(sizes, default=1) <= _MOST_ATTRIBUTE_CELLS
    )


def _seconds(workload: Workload) -> float:
    """Estimate the CPU seconds of the fits along every attribute for both parts."""
    if not _is_made_for(workload):
        return base_seconds(workload)
    costs = attribute_costs(workload).values()
    return base_seconds(workload) + 12 * sum((line.cells / 1024) ** 2.2 for line in costs)


def _laplace_seconds(workload: Workload) -> float:
    """Estimate the extra seconds of complete p-Identity fits, for both parts."""
    if not _is_made_for(workload):
        return 0.0
    return 2 * sum(
        p_identity_seconds(line.cells, is_one_dimensional=line.is_structured)[1]
        for line in attribute_costs(workload).values()
    )


UNION = Planner(
    name="union",
    propose=union,
    measures="two tables, each for a part of the workload and with its own strategy along every "
    "attribute; answers combine both",
    made_for="products that need an attribute in detail in one place and in groups in another",
    limits="a joint table of 2^22 cells, attributes of 1024",
    paper="McKenna et al., VLDB 2018",
    seconds=_seconds,
    extra_laplace_seconds=_laplace_seconds,
)
