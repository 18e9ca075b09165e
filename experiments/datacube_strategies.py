"""The strategies of Cormode et al. for marginals, with ours beside them: expected errors in closed form, and draws of their noise.

Every strategy here is unbiased and linear, so its error is its noise whatever the data are: the functions draw errors, not answers.
Unit noise throughout: a query of weight 1 has Laplace noise of scale 1 (variance 2), which is epsilon = 1. Errors scale with 1 / epsilon.
Attribute sets are tuples of attribute numbers, as in the planner.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from experiments.consistency import consistent
from experiments.residuals import coefficients, eigenvalues, residual_noise, total_squared_error
from leastnoise._domain import Coded, Domain
from leastnoise._estimate import from_residual_parts, residual_parts
from leastnoise._planner._covering import cover_errors, covering_design, greedy_cover
from leastnoise._planner._papers import bits_of, coefficient_errors, signs
from leastnoise._planner._residual_algebra import (
    AttributeSet,
    dimensions,
    downward_closure,
    grouped_budgets,
    incidence,
    table_sizes,
)
from leastnoise._workload import Product, Workload, identity

FloatArray = npt.NDArray[np.float64]
Errors = dict[AttributeSet, FloatArray]
Draw = Callable[[np.random.Generator], Errors]
PAPER = ("I", "Q", "Q+", "F", "F+", "C", "C+")
OURS = "covering"
STRATEGIES = (*PAPER, OURS)
GAUSSIAN_OURS = "residual"


@dataclass(frozen=True, slots=True)
class Method:
    """A strategy made ready for a workload.

    Args:
        name: I, Q, Q+, F, F+, C, C+ or covering.
        error: expected total squared error at unit noise, as the strategy is (before the paper's consistency step); times 2 / epsilon^2.
        measured: the tables that are counted.
        theta: the weight of each of their cells (noise scale 1 / theta), empty for Fourier coefficients.
        draw: errors of all asked marginals at epsilon 1, consistent as in the paper.
    """

    name: str
    error: float
    measured: tuple[AttributeSet, ...]
    theta: FloatArray
    draw: Draw


def ways(count: int, *sizes: int) -> list[AttributeSet]:
    """List all attribute sets of some sizes."""
    return [attributes for k in sizes for attributes in combinations(range(count), k)]


def cube_workload(count: int, name: str) -> list[AttributeSet]:
    """List the marginals of Qk, Qk* (every second of the larger ones too) or Qka (the larger ones with attribute 0 too)."""
    k = int(name[0])
    larger = ways(count, k + 1)
    return ways(count, k) + {"": [], "*": larger[::2], "a": [s for s in larger if 0 in s]}[name[1:]]


def method(name: str, shape: Sequence[int], targets: Sequence[AttributeSet]) -> Method:
    """Make a strategy ready: choose what to measure and split the budget.

    Args:
        name: one of STRATEGIES.
        shape: values per attribute.
        targets: the asked marginals, every cell with weight 1.
    """
    if name == "I":
        return _base_counts(shape, targets)
    if name in {"Q", "Q+"}:
        return _asked(shape, targets, even=name == "Q")
    if name in {"F", "F+"}:
        return _fourier(shape, targets, even=name == "F")
    if name in {"C", "C+"}:
        return _cuboids(shape, targets, even=name == "C")
    return _covering(shape, targets)


def laplace(rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> FloatArray:
    """Laplace noise of an array's shape."""
    return rng.laplace(scale=scale, size=shape)


def _sizes(shape: Sequence[int], attributes: AttributeSet) -> tuple[int, ...]:
    return tuple(shape[i] for i in attributes)


def _aggregated(cube: FloatArray, names: AttributeSet, kept: AttributeSet) -> FloatArray:
    return np.asarray(cube.sum(axis=tuple(axis for axis, i in enumerate(names) if i not in kept)))


def _made_consistent(errors: Errors) -> Errors:
    """The paper's step: unweighted least squares over Fourier coefficients (for native attributes over residual ones)."""
    found = consistent({tuple(map(str, names)): cube for names, cube in errors.items()})
    return {tuple(map(int, names)): cube for names, cube in found.items()}


def _base_counts(shape: Sequence[int], targets: Sequence[AttributeSet]) -> Method:
    every = tuple(range(len(shape)))
    largest = max(len(target) for target in targets)

    def draw(rng: np.random.Generator) -> Errors:
        tables = {every: laplace(rng, 1.0, tuple(shape))}
        errors = {}
        for target in sorted(targets, key=len, reverse=True):
            # A smaller table is added up from a larger one that is there.
            source = next((s for s in tables if len(s) == largest and set(target) <= set(s)), every)
            errors[target] = _aggregated(tables[source], source, target)
            tables[target] = errors[target]
        return errors

    return Method("I", math.prod(shape) * float(len(targets)), (every,), np.ones(1), draw)


def _asked(shape: Sequence[int], targets: Sequence[AttributeSet], *, even: bool) -> Method:
    sizes = table_sizes(shape, targets)
    theta = np.full(len(targets), 1 / len(targets)) if even else grouped_budgets(sizes, np.ones(len(targets)), 1).theta

    def draw(rng: np.random.Generator) -> Errors:
        noise = {t: laplace(rng, 1 / weight, _sizes(shape, t)) for t, weight in zip(targets, theta.tolist(), strict=True)}
        return _made_consistent(noise)

    return Method("Q" if even else "Q+", float((sizes / theta**2).sum()), tuple(targets), theta, draw)


def fourier_groups(shape: Sequence[int], targets: Sequence[AttributeSet]) -> dict[AttributeSet, tuple[int, float]]:
    """For each set of attributes: the number of Fourier coefficients on exactly these, and what a unit of noise on one adds to the error.

    The error counts the cells that exist, not those that the binary coding adds.
    """
    domain = Domain({f"x{i}": Coded(n) for i, n in enumerate(shape)})
    names = domain.names
    products = [
        Product(domain=domain, attributes=tuple(names[i] for i in target), query_sets=(identity(),) * len(target)) for target in targets
    ]
    groups = {}
    for (_, tau), added in coefficient_errors(Workload(domain, tuple(products))).items():
        places = tuple(names.index(one) for one in tau)
        groups[places] = math.prod((1 << bits_of(shape[i])) - 1 for i in places), added
    return groups


def _fourier(shape: Sequence[int], targets: Sequence[AttributeSet], *, even: bool) -> Method:
    bits = [bits_of(n) for n in shape]
    groups = fourier_groups(shape, targets)
    number = np.array([count for count, _ in groups.values()], dtype=float)
    added = np.array([each for _, each in groups.values()])
    root = np.ones(len(groups)) if even else np.cbrt(added)
    theta = dict(zip(groups, (root / float(number @ root)).tolist(), strict=True))
    hadamard = {b: _hadamard(b) for b in set(bits)}

    def draw(rng: np.random.Generator) -> Errors:
        noise = {tau: laplace(rng, 1 / weight, tuple((1 << bits[i]) - 1 for i in tau)) for tau, weight in theta.items()}
        errors = {}
        for target in targets:
            cube = np.zeros([1 << bits[i] for i in target])
            for pattern in product((False, True), repeat=len(target)):
                tau = tuple(i for i, inside in zip(target, pattern, strict=True) if inside)
                cube[tuple(slice(1, None) if inside else 0 for inside in pattern)] = noise[tau]
            for axis, i in enumerate(target):
                cube = np.moveaxis(np.tensordot(hadamard[bits[i]][: shape[i]], cube, axes=(1, axis)), 0, axis)
            errors[target] = cube / 2.0 ** sum(bits[i] for i in target)
        return errors

    error = float((number * added / np.array(list(theta.values())) ** 2).sum())
    return Method("F" if even else "F+", error, tuple(targets), np.zeros(0), draw)


def _hadamard(bits: int) -> FloatArray:
    return np.vstack([np.ones(1 << bits), signs(1 << bits)])


def _cuboids(shape: Sequence[int], targets: Sequence[AttributeSet], *, even: bool) -> Method:
    cover = greedy_cover(shape, targets)
    errors_of = cover_errors(shape, dict.fromkeys(targets, 1.0), cover)
    count = len(cover.tables)
    theta = np.full(count, 1 / count) if even else grouped_budgets(errors_of, np.ones(count), 1).theta

    def draw(rng: np.random.Generator) -> Errors:
        noise = [laplace(rng, 1 / weight, _sizes(shape, table)) for table, weight in zip(cover.tables, theta.tolist(), strict=True)]
        pairs = zip(targets, cover.source.tolist(), strict=True)
        return _made_consistent({target: _aggregated(noise[place], cover.tables[place], target) for target, place in pairs})

    return Method("C" if even else "C+", float((errors_of / theta**2).sum()), cover.tables, theta, draw)


def _covering(shape: Sequence[int], targets: Sequence[AttributeSet]) -> Method:
    closure = downward_closure(shape, targets)
    design = covering_design(closure, coefficients(closure, dict.fromkeys(targets, 1.0)))
    precisions = (design.theta**2 / table_sizes(shape, design.tables)).tolist()
    asked = {tau for target in targets for k in range(len(target) + 1) for tau in combinations(target, k)}

    def draw(rng: np.random.Generator) -> Errors:
        """Generalised least squares: each residual component is averaged over the tables that have it, by their precisions."""
        sums: dict[AttributeSet, FloatArray] = {}
        weights: dict[AttributeSet, float] = {}
        for table, theta, precision in zip(design.tables, design.theta.tolist(), precisions, strict=True):
            for tau, part in _parts(laplace(rng, 1 / theta, _sizes(shape, table)), table).items():
                if tau in asked:
                    sums[tau] = sums.get(tau, np.zeros(())) + precision * part
                    weights[tau] = weights.get(tau, 0.0) + precision
        parts = {tuple(map(str, tau)): total / weights[tau] for tau, total in sums.items()}
        return {target: from_residual_parts(parts, tuple(map(str, target)), _sizes(shape, target)) for target in targets}

    return Method(OURS, design.error, design.tables, design.theta, draw)


def _parts(cube: FloatArray, table: AttributeSet) -> dict[AttributeSet, FloatArray]:
    return {tuple(map(int, tau)): part for tau, part in residual_parts(cube, tuple(map(str, table))).items()}


def least_squares_error(shape: Sequence[int], targets: Sequence[AttributeSet], ready: Method) -> float:
    """Expected total squared error at unit noise of Q, Q+, C or C+ with recovery by generalised least squares."""
    closure = downward_closure(shape, targets)
    return total_squared_error(coefficients(closure, dict.fromkeys(targets, 1.0)), eigenvalues(closure, ready.measured, ready.theta))


def consistent_error(shape: Sequence[int], targets: Sequence[AttributeSet], ready: Method) -> float:
    """Expected total squared error at unit noise of Q or Q+ after the paper's consistency step, which is unweighted."""
    closure = downward_closure(shape, targets)
    matrix = incidence(closure, targets)
    return float((dimensions(closure) * np.asarray(matrix @ (1 / ready.theta**2)) / np.asarray(matrix @ np.ones(len(targets)))).sum())


def gaussian_errors(shape: Sequence[int], targets: Sequence[AttributeSet]) -> Mapping[str, float]:
    """Expected total squared errors of all strategies under a Gaussian budget of privacy cost 1 (mu = 1, rho = 1/2)."""
    norm: int = 2
    ones = np.ones(len(targets))
    sizes = table_sizes(shape, targets)
    groups = list(fourier_groups(shape, targets).values())
    number, added = (np.array(column, dtype=float) for column in zip(*groups, strict=True))
    cover = greedy_cover(shape, targets, norm=norm)
    cuboids = cover_errors(shape, dict.fromkeys(targets, 1.0), cover)
    closure = downward_closure(shape, targets)
    return {
        "I": math.prod(shape) * float(len(targets)),
        "Q": float(sizes.sum()) * len(targets),
        "Q+": grouped_budgets(sizes, ones, norm).error,
        "F": float(number @ added) * float(number.sum()),
        "F+": float(number @ np.sqrt(added)) ** 2,
        "C": float(cuboids.sum()) * len(cover.tables),
        "C+": grouped_budgets(cuboids, np.ones(len(cover.tables)), norm).error,
        GAUSSIAN_OURS: residual_noise(closure, coefficients(closure, dict.fromkeys(targets, 1.0)))[1],
    }
