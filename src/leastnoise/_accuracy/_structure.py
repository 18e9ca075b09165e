"""The covariance of the least squares estimate from a plan's measurements, in a form that is never larger than the tables themselves.

Product form: along every attribute all blocks use one strategy (or sum over it). Then the information matrix of all measurements is
diagonal in the residual basis of ``_basis``: with tau a set of attributes, p_B one over a block's noise variance and S_B its attributes,

    lambda(tau) = sum over blocks B with S_B containing tau of p_B * prod over i in S_B but not in tau of 1 / kappa_i
    Var(q)      = sum over tau within T of 1 / lambda(tau) * prod_{i in tau} q_i R_i q_i * prod_{i in T but not tau} (q_i mean_i)^2

for a query q, a product of q_i over the attributes T. With identities everywhere this is ResidualPlanner's formula.

Two tables on a joint domain of more than 512 and at most 2^24 cells are inverted in a common basis, in ``_pair``. Dense form: any other
blocks, on at most 4096 cells; beyond, up to 2^24 cells, they are inverted by conjugate gradients, in ``_iterative``.

Source: ResidualPlanner (arXiv 2305.08175); the general statement is proved in docs/mathematics.md.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, combinations

from leastnoise._accuracy._blocks import Names, explained
from leastnoise._accuracy._dense import dense_structure
from leastnoise._accuracy._determined import Span, UnsupportedQuery
from leastnoise._accuracy._form import Known, Structure
from leastnoise._accuracy._iterative import IterativeStructure
from leastnoise._accuracy._joint import MOST_JOINT, Joint, used
from leastnoise._accuracy._pair import is_pair, pair_structure
from leastnoise._accuracy._product import ProductStructure
from leastnoise._accuracy._sums import SumKnown
from leastnoise._accuracy._told import middles, told
from leastnoise._domain import Domain
from leastnoise._families import (
    MOST_DENSE,
    Basis,
    IdentityBasis,
    Undetermined,
    basis,
    basis_without_total,
    contrast_strength,
    leaves_out_total,
)
from leastnoise._linop import Identity
from leastnoise._measurements import Block, Factor, Measurements

_MOST_LISTED = 10
_FEW = 512  # cells whose inverse takes no time


def structure(plan: Measurements, measure: str | None) -> Known:
    """The covariance of least squares for the counts or the sums of one measure."""
    return combined(plan, measure, {quantity: quantity_structure(plan, quantity) for quantity in middles(plan, measure)})


def combined(plan: Measurements, measure: str | None, known: Mapping[str | None, Structure]) -> Known:
    """What `structure` says, from the structures of the quantities that the sums are made of."""
    parts = middles(plan, measure)
    return SumKnown(known[measure], known[None], parts[None]) if len(parts) > 1 else known[measure]


def quantity_structure(plan: Measurements, quantity: str | None) -> Structure:
    """The covariance of least squares, and its estimate, from the blocks that tell of one table of cells."""
    tables = [(one.block, one.variance) for one in told(plan, quantity)]
    if not tables:
        raise UnsupportedQuery(f"The plan measures nothing of {quantity or 'the counts'}.")
    blocks = [block for block, _ in tables]
    span = Span.of(plan.domain, blocks)
    factors: dict[str, Factor] = {}
    product_form = True
    for factor in filter(used, dict.fromkeys({id(factor): factor for block in blocks for factor in block.factors}.values())):
        known = Factor(factor.attributes, Identity(factor.operator.size)) if contrast_strength(factor) is not None else factor
        one = len(factor.attributes) == 1 and factors.setdefault(factor.attributes[0], known) == known
        product_form = product_form and one
    if product_form:
        try:
            return _product_structure(tables, _bases(plan.domain, factors), span)
        except Undetermined:  # a strategy that does not determine every cell may still determine the queries
            pass
    sizes = {name: plan.domain.kind(name).size for name in plan.domain.names if any(name in block.attributes for block in blocks)}
    if math.prod(sizes.values()) > _FEW and is_pair(sizes, blocks, MOST_JOINT):
        return pair_structure(sizes, tables, span)
    joint = Joint.of(plan.domain, tables)
    return dense_structure(plan.domain, joint, span) if joint.cells <= MOST_DENSE else IterativeStructure(joint, span)


def _bases(domain: Domain, factors: Mapping[str, Factor]) -> dict[str, Basis]:
    """The basis of every attribute; where what is measured is equal it is one object, by which tables are known to be alike."""
    measured: dict[object, Basis] = {}
    for own in factors.values():
        if own.key() not in measured:
            measured[own.key()] = basis_without_total(own) if leaves_out_total(own) else basis(own)
    # Along an attribute that nothing measures only multiples of the total are known.
    summed = {size: IdentityBasis(size) for size in domain.shape}
    found = {name: measured[factors[name].key()] if name in factors else None for name in domain.names}
    return {name: summed[domain.kind(name).size] if own is None else own for name, own in found.items()}


def _product_structure(tables: Sequence[tuple[Block, float]], bases: Mapping[str, Basis], span: Span) -> ProductStructure:
    narrow: dict[Names, float] = {}
    wide = []
    # Few factors make very many blocks: what is known of each is looked up once, and found by the object.
    distinct = {id(factor): factor for block, _ in tables for factor in block.factors}
    strengths = {place: contrast_strength(factor) or 1.0 for place, factor in distinct.items()}
    along = {place: [factor.attributes[0]] if used(factor) else [] for place, factor in distinct.items()}
    apart = {place: along[place] if leaves_out_total(factor) else [] for place, factor in distinct.items()}
    shrink = {name: 1 / own.kappa for name, own in bases.items()}
    for block, variance in tables:
        own = [*map(id, block.factors)]
        precision = math.prod(map(strengths.__getitem__, own), start=1 / variance)
        names, across = (tuple(chain.from_iterable(map(which.__getitem__, own))) for which in (along, apart))
        if names == across:
            narrow[names] = narrow.get(names, 0.0) + precision
            continue
        if len(names) - len(across) > _MOST_LISTED:
            wide.append((names, across, precision))
            continue
        shares = _shares(tuple(shrink[name] for name in names if name not in across))
        for tau, share in zip(explained(names, across), shares, strict=True):
            narrow[tau] = narrow.get(tau, 0.0) + precision * share
    return ProductStructure(bases, narrow, tuple(wide), span)


@lru_cache(maxsize=4096)
def _shares(shrinks: tuple[float, ...]) -> tuple[float, ...]:
    """For every subset of some attributes, in the order of ``subsets``, the product of what belongs to the others."""
    places = range(len(shrinks))
    chosen = (one for size in range(len(shrinks) + 1) for one in combinations(places, size))
    return tuple(math.prod([shrinks[place] for place in places if place not in one], start=1.0) for one in chosen)
