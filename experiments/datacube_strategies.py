"""Prepare the strategies of Cormode et al. for marginals, and ours.

Their errors are in closed form, and their noise can be drawn.

Every strategy here is unbiased and linear, so its error is its noise for all data: the functions
draw errors, not answers. All noise is unit noise: a query of weight 1 has Laplace noise of scale 1
(variance 2), which is epsilon = 1. Errors scale with 1 / epsilon. Attribute sets are tuples of
attribute numbers, as in the planner.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from experiments.common import Reals
from experiments.residuals import coefficients, eigenvalues, residual_noise, total_squared_error
from leastnoise._domain import Coded, Domain
from leastnoise._estimation import from_residual_parts, residual_parts
from leastnoise._strategies._covering import cover_errors, covering_design, greedy_cover
from leastnoise._strategies._datacube_baselines import bits_of, coefficient_errors, walsh_functions
from leastnoise._strategies._residual_algebra import (
    AttributeSet,
    dimensions,
    downward_closure,
    grouped_budgets,
    incidence,
    table_sizes,
)
from leastnoise._workload import Workload, identity, queries

Errors = dict[AttributeSet, Reals]
PAPER = ("I", "Q", "Q+", "F", "F+", "C", "C+")
OUR_STRATEGY = "covering"
STRATEGIES = (*PAPER, OUR_STRATEGY)
OUR_GAUSSIAN_STRATEGY = "residual"


@dataclass(frozen=True, slots=True)
class Method:
    """A strategy prepared for a workload.

    Args:
        error: expected total squared error at unit noise, before the paper's consistency step;
            multiply by 2 / epsilon^2.
        measured: the measured tables.
        theta: the weight of each of their cells (noise scale 1 / theta), empty for Fourier
            coefficients.
        draw: function that draws the errors of all requested marginals at epsilon 1, after the
            paper's consistency step.
    """

    error: float
    measured: tuple[AttributeSet, ...]
    theta: Reals
    draw: Callable[[np.random.Generator], Errors]


def sets_of_sizes(count: int, *sizes: int) -> list[AttributeSet]:
    """List all attribute sets of some sizes."""
    return [attributes for k in sizes for attributes in combinations(range(count), k)]


def cube_workload(count: int, name: str) -> list[AttributeSet]:
    """List the marginals of Qk, Qk* or Qka.

    Qk* adds every second marginal of k + 1 attributes, and Qka all of them with attribute 0.
    """
    k = int(name[0])
    larger = sets_of_sizes(count, k + 1)
    targets = sets_of_sizes(count, k)
    if name.endswith("*"):
        targets += larger[::2]
    elif name.endswith("a"):
        targets += [attributes for attributes in larger if 0 in attributes]
    return targets


def method(name: str, shape: Sequence[int], targets: Sequence[AttributeSet]) -> Method:
    """Prepare a strategy: choose the measurements and divide the budget.

    Args:
        name: one of STRATEGIES; with a plus the budget is split optimally, without one evenly.
        shape: number of values of each attribute.
        targets: the requested marginals, every cell with weight 1.
    """
    if name == OUR_STRATEGY:
        return _covering(shape, targets)
    make = {"I": _base_counts, "Q": _targets, "F": _fourier, "C": _cuboids}[name[0]]
    return make(shape, targets, even=name[-1] != "+")


def _noise(
    rng: np.random.Generator, shape: Sequence[int], tables: Sequence[AttributeSet], theta: Reals
) -> Errors:
    """Draw Laplace noise of scale 1 / theta for the cells of tables."""
    pairs = zip(tables, theta.tolist(), strict=True)
    return {
        table: rng.laplace(scale=1 / weight, size=tuple(shape[i] for i in table))
        for table, weight in pairs
    }


def _aggregated(cube: Reals, attributes: AttributeSet, remaining: AttributeSet) -> Reals:
    """Sum a cube over the attributes that do not remain."""
    axes = tuple(axis for axis, i in enumerate(attributes) if i not in remaining)
    return np.asarray(cube.sum(axis=axes))


def least_squares(tables: Errors, theta: Reals, targets: Sequence[AttributeSet]) -> Errors:
    """Estimate consistent marginals from tables by least squares with weights theta^2.

    Every residual component is the average over the tables that contain it. Each table has the
    weight theta^2 divided by the number of cells that a cell of the component sums over. With ones
    as weights this is the paper's consistency step, least squares over Fourier coefficients, for
    attributes of any size.

    >>> agreed = least_squares(
    ...     {(0,): np.array([6.0, 4.0]), (): np.array(13.0)}, np.ones(2), [(0,), ()]
    ... )
    >>> agreed[0,].tolist(), agreed[()].tolist()
    ([7.0, 5.0], 12.0)
    """
    names = {table: tuple(map(str, table)) for table in (*tables, *targets)}
    sums: dict[tuple[str, ...], Reals] = {}
    weights: dict[tuple[str, ...], float] = {}
    sizes = {i: n for table, cube in tables.items() for i, n in zip(table, cube.shape, strict=True)}
    for (table, cube), scale in zip(tables.items(), theta.tolist(), strict=True):
        for tau, part in residual_parts(cube, names[table]).items():
            weight = scale**2 * part.size / cube.size
            sums[tau] = sums.get(tau, np.zeros(())) + weight * part
            weights[tau] = weights.get(tau, 0.0) + weight
    parts = {tau: total / weights[tau] for tau, total in sums.items()}
    return {
        target: from_residual_parts(parts, names[target], [sizes[i] for i in target])
        for target in targets
    }


# One table contains all marginals, so `even` has no effect.
def _base_counts(shape: Sequence[int], targets: Sequence[AttributeSet], *, even: bool) -> Method:  # noqa: ARG001
    """Prepare the measurement of all cells."""
    every = tuple(range(len(shape)))
    largest = max(len(target) for target in targets)

    def draw(rng: np.random.Generator) -> Errors:
        """Draw the errors of the targets."""
        tables = _noise(rng, shape, [every], np.ones(1))
        for target in sorted(targets, key=len, reverse=True):
            # Sum a smaller table from a larger one if there is one.
            source = next(
                (table for table in tables if len(table) == largest and set(target) <= set(table)),
                every,
            )
            tables[target] = _aggregated(tables[source], source, target)
        return {target: tables[target] for target in targets}

    return Method(math.prod(shape) * float(len(targets)), (every,), np.ones(1), draw)


def _targets(shape: Sequence[int], targets: Sequence[AttributeSet], *, even: bool) -> Method:
    """Prepare the measurement of the targets."""
    sizes = table_sizes(shape, targets)
    ones = np.ones(len(targets))
    if even:
        theta = ones / len(targets)
    else:
        theta = grouped_budgets(sizes, ones, 1).theta

    def draw(rng: np.random.Generator) -> Errors:
        """Draw the errors of the targets."""
        return least_squares(_noise(rng, shape, targets, theta), ones, targets)

    return Method(float((sizes / theta**2).sum()), tuple(targets), theta, draw)


def fourier_groups(
    shape: Sequence[int], targets: Sequence[AttributeSet]
) -> dict[AttributeSet, tuple[int, float]]:
    """Count the Fourier coefficients on exactly each set of attributes.

    The second number of an entry is the error that unit noise on one coefficient adds. It leaves
    out the cells that only the binary coding has.
    """
    domain = Domain({f"x{i}": Coded(n) for i, n in enumerate(shape)}).as_complete()
    tables = [dict.fromkeys((domain.names[i] for i in target), identity()) for target in targets]
    workload = Workload(domain, tuple(queries(domain, table).products[0] for table in tables))
    groups = {}
    for (_, tau), added in coefficient_errors(workload).items():
        attributes = tuple(domain.names.index(name) for name in tau)
        groups[attributes] = math.prod((1 << bits_of(shape[i])) - 1 for i in attributes), added
    return groups


def _fourier(shape: Sequence[int], targets: Sequence[AttributeSet], *, even: bool) -> Method:
    """Prepare the measurement of Fourier coefficients."""
    bits = [bits_of(n) for n in shape]
    groups = fourier_groups(shape, targets)
    number, added = np.array([*groups.values()], dtype=float).T
    root = np.ones(len(groups)) if even else np.cbrt(added)
    theta = root / float(number @ root)
    hadamard = {b: np.vstack([np.ones(1 << b), walsh_functions(1 << b)]) for b in set(bits)}

    def draw(rng: np.random.Generator) -> Errors:
        """Draw the errors of the targets."""
        noise = _noise(rng, [(1 << b) - 1 for b in bits], [*groups], theta)
        errors = {}
        for target in targets:
            cube = np.zeros([1 << bits[i] for i in target])
            for pattern in product((False, True), repeat=len(target)):
                tau = tuple(i for i, inside in zip(target, pattern, strict=True) if inside)
                cube[tuple(slice(1, None) if inside else 0 for inside in pattern)] = noise[tau]
            for axis, i in enumerate(target):
                cube = np.moveaxis(
                    np.tensordot(hadamard[bits[i]][: shape[i]], cube, axes=(1, axis)), 0, axis
                )
            errors[target] = cube / 2.0 ** sum(bits[i] for i in target)
        return errors

    return Method(float((number * added / theta**2).sum()), tuple(targets), np.zeros(0), draw)


def _cuboids(shape: Sequence[int], targets: Sequence[AttributeSet], *, even: bool) -> Method:
    """Prepare the measurement of chosen cuboids."""
    cover = greedy_cover(shape, targets)
    errors_of = cover_errors(shape, dict.fromkeys(targets, 1.0), cover)
    ones = np.ones(len(cover.tables))
    if even:
        theta = ones / len(ones)
    else:
        theta = grouped_budgets(errors_of, ones, 1).theta

    def draw(rng: np.random.Generator) -> Errors:
        """Draw the errors of the targets."""
        noise = _noise(rng, shape, cover.tables, theta)
        sources = [cover.tables[number] for number in cover.table_of_target.tolist()]
        sums = {
            target: _aggregated(noise[table], table, target)
            for target, table in zip(targets, sources, strict=True)
        }
        return least_squares(sums, np.ones(len(sums)), targets)

    return Method(float((errors_of / theta**2).sum()), cover.tables, theta, draw)


def _covering(shape: Sequence[int], targets: Sequence[AttributeSet]) -> Method:
    """Prepare the measurement of cuboids that cover all targets."""
    closure = downward_closure(shape, targets)
    design = covering_design(closure, coefficients(closure, dict.fromkeys(targets, 1.0)))

    def draw(rng: np.random.Generator) -> Errors:
        """Draw the errors of the targets."""
        return least_squares(
            _noise(rng, shape, design.tables, design.weights), design.weights, targets
        )

    return Method(design.error, design.tables, design.weights, draw)


def least_squares_error(
    shape: Sequence[int], targets: Sequence[AttributeSet], prepared: Method
) -> float:
    """Return the expected total squared error of Q, Q+, C or C+ at unit noise.

    The recovery is by generalised least squares.
    """
    closure = downward_closure(shape, targets)
    return total_squared_error(
        coefficients(closure, dict.fromkeys(targets, 1.0)),
        eigenvalues(closure, prepared.measured, prepared.theta),
    )


def consistent_error(
    shape: Sequence[int], targets: Sequence[AttributeSet], prepared: Method
) -> float:
    """Return the expected total squared error of Q or Q+ after the paper's consistency step.

    The consistency step has no weights; the noise is unit noise.
    """
    closure = downward_closure(shape, targets)
    matrix = incidence(closure, targets)
    variances = np.asarray(matrix @ (1 / prepared.theta**2))
    counts = np.asarray(matrix @ np.ones(len(targets)))
    return float((dimensions(closure) * variances / counts).sum())


def gaussian_errors(shape: Sequence[int], targets: Sequence[AttributeSet]) -> Mapping[str, float]:
    """Return the expected total squared errors under a Gaussian budget of mu = 1.

    This is rho = 1/2.
    """
    sizes = table_sizes(shape, targets)
    number, added = np.array([*fourier_groups(shape, targets).values()], dtype=float).T
    cover = greedy_cover(shape, targets, norm=2)
    cuboids = cover_errors(shape, dict.fromkeys(targets, 1.0), cover)
    closure = downward_closure(shape, targets)
    return {
        "I": math.prod(shape) * float(len(targets)),
        "Q": float(sizes.sum()) * len(targets),
        "Q+": grouped_budgets(sizes, np.ones(len(targets)), 2).error,
        "F": float(number @ added) * float(number.sum()),
        "F+": float(number @ np.sqrt(added)) ** 2,
        "C": float(cuboids.sum()) * len(cover.tables),
        "C+": grouped_budgets(cuboids, np.ones(len(cover.tables)), 2).error,
        OUR_GAUSSIAN_STRATEGY: residual_noise(
            closure, coefficients(closure, dict.fromkeys(targets, 1.0))
        )[1],
    }
