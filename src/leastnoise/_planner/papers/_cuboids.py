"""Greedily chosen tables from which all asked ones are added up, strategy C of Cormode et al.; ``_datacube_cover`` chooses them."""

from fractions import Fraction
from functools import partial

import numpy as np

from leastnoise._accuracy import gram_diagonal
from leastnoise._check import InputError
from leastnoise._linop import Identity
from leastnoise._measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._planner._strategy import NotApplicable, Planner, Strategy, Task, block_norm
from leastnoise._planner.covers._datacube_cover import cover_errors, greedy_cover
from leastnoise._planner.tables._marginal_weights import grouped_budgets
from leastnoise._planner.tables._residual_algebra import AttributeSet


def cuboids(task: Task, *, even: bool = False) -> Strategy:
    """Measure a few tables, chosen greedily so that the largest variance of an asked cell is small; the budget split in closed form.

    Source: Ding et al. (SIGMOD 2011), problem BMAX; the strategies C (``even``) and C+ of Cormode et al. (arXiv 1207.6096). Recovery by
    least squares comes on top.
    """
    workload, norm = task.workload, task.norm
    domain = workload.domain
    places = {name: place for place, name in enumerate(domain.names)}
    blocks: list[Block] = []
    errors: list[float] = []
    for measure in workload.measures:
        targets: dict[AttributeSet, float] = {}
        for product in workload:
            if product.measure != measure:
                continue
            # A table's noise, per cell of it, in all queries about it.
            share = np.prod([gram_diagonal(operator).mean() for operator in product.operators])
            key = tuple(places[name] for name in product.attributes)
            targets[key] = targets.get(key, 0.0) + product.importance * float(share)
        try:
            cover = greedy_cover(domain.shape, list(targets), norm=norm)
        except InputError as error:
            raise NotApplicable(str(error).rstrip(".")) from None
        for table, added in zip(cover.tables, cover_errors(domain.shape, targets, cover).tolist(), strict=True):
            names = tuple(domain.names[place] for place in table)
            block = Block(tuple(Factor((name,), Identity(domain.kind(name).size)) for name in names), Fraction(1), measure)
            if not block.rows <= MOST_TABLE_CELLS:
                raise NotApplicable(f"the table of {' x '.join(names)} has over {MOST_TABLE_CELLS} cells")
            blocks.append(block)
            errors.append(added)
    if even:
        return Strategy("cuboids_even", tuple((block, 1.0) for block in blocks))
    best = grouped_budgets(errors, [block_norm(domain, block, norm) for block in blocks], norm)
    return Strategy("cuboids", tuple(zip(blocks, best.theta.tolist(), strict=True)))


CUBOIDS = Planner(
    name="cuboids",
    propose=cuboids,
    measures="greedily chosen tables from which all asked ones are added up (Ding et al., the largest variance kept small), "
    "with the best split",
    made_for="C+",
    limits="tables of 2^28 cells",
    automatic=False,
)
CUBOIDS_EVEN = Planner(
    name="cuboids_even",
    propose=partial(cuboids, even=True),
    measures="the same tables, all with the same noise",
    made_for="C",
    limits="tables of 2^28 cells",
    automatic=False,
)
