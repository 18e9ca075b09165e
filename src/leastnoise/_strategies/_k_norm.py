"""One-way tables with K-norm noise, drawn jointly for groups of tables.

A row is in one cell of every one-way table, so all tables have the same total. Noise that has one
total too, and is large only where no table can tell, is smaller than independent Laplace noise:
1.71 times for sixteen tables of three cells. ``_error._k_norm`` computes its errors.

Tables of very different sizes do better apart. A group g with the squared error E_g at epsilon 1
has E_g / epsilon_g^2 with a share epsilon_g of the budget, so the shares are in proportion to the
cube roots of E_g, and the total error is the cube of the sum of these. Tables are sorted by size,
and the groups are the runs with the least sum of cube roots, found by dynamic programming.

Source: Hardt and Talwar (arXiv 0907.3754) for the noise; groups are this project's own.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from leastnoise._error import approximate_variances
from leastnoise._families import NotApplicable
from leastnoise._strategies._planning_problem import Planner, PlanningProblem, Strategy
from leastnoise._trusted.linop import Identity
from leastnoise._trusted.measurements import MOST_K_NORM_CELLS, MOST_K_NORM_TABLE, Block, Factor
from leastnoise._workload import Workload

_MOST_CUTS = 24  # between sizes, at which groups may be parted
_LAPLACE_VARIANCE = 2.0  # at scale 1
_LEAST_GAIN = 1e-3  # of the squared error: less is not worth the drawing

Names = tuple[str, ...]


def k_norm(task: PlanningProblem) -> Strategy:
    """Measure all one-way tables in groups of K-norm noise."""
    workload = task.workload
    errors = _cell_errors(workload)
    sizes = {name: workload.domain.kind(name).size for name in errors}
    groups = _best_groups(sizes, errors)
    if all(len(names) == 1 for names in groups):
        raise NotApplicable("its tables are best measured apart, which other strategies do")
    blocks = []
    for number, names in enumerate(groups):
        weight = _group_error(names, sizes, errors) ** (1 / 3)
        for name in names:
            factor = Factor((name,), Identity(sizes[name]))
            if len(names) == 1:
                group = None
            else:
                group = number
            blocks.append((Block((factor,), Fraction(1), k_norm_group=group), weight))
    return Strategy("k_norm", tuple(blocks))


def _cell_errors(workload: Workload) -> dict[str, float]:
    """Return the weight of the published cells of each attribute.

    Raises NotApplicable for a workload that K-norm noise does not support.
    """
    if workload.statistics:
        raise NotApplicable("it is made for counts alone, and the workload asks for statistics")
    errors: dict[str, float] = {}
    for product in workload:
        if product.measure is not None:
            raise NotApplicable("it is made for counts of rows, and the workload asks for sums")
        if len(product.attributes) > 1:
            raise NotApplicable("it is made for one-way tables, and the workload has larger ones")
        for name in product.attributes:
            errors[name] = errors.get(name, 0.0) + product.importance * product.rows
    if workload.beyond_cells:
        raise NotApplicable("it is made for tables of cells, and the workload has other queries")
    if len(errors) < 2:
        raise NotApplicable("it is made for several one-way tables, and the workload has one")
    return errors


def _group_error(
    names: Sequence[str], sizes: Mapping[str, int], errors: Mapping[str, float]
) -> float:
    """Return the squared error of a group at epsilon 1."""
    if len(names) == 1:
        return _LAPLACE_VARIANCE * errors[names[0]]
    variances = approximate_variances([sizes[name] for name in names])
    return sum(errors[name] * variances[sizes[name]] for name in names)


def _best_groups(sizes: Mapping[str, int], errors: Mapping[str, float]) -> list[Names]:
    """Return the runs of tables with the least sum of cube roots of errors.

    Tables are sorted by size.
    """
    ordered = sorted(sizes, key=lambda name: sizes[name])
    ends = _possible_ends([sizes[name] for name in ordered])
    best: dict[int, tuple[float, list[Names]]] = {0: (0.0, [])}
    for end in ends:
        for begin in [begin for begin in best if begin < end]:
            names = tuple(ordered[begin:end])
            if len(names) > 1 and not _can_share_noise([sizes[name] for name in names]):
                continue
            roots = best[begin][0] + _group_error(names, sizes, errors) ** (1 / 3)
            if end not in best or roots < best[end][0]:
                best[end] = roots, [*best[begin][1], names]
    if len(ordered) not in best:
        raise NotApplicable(
            f"the tables of one size have over {MOST_K_NORM_CELLS} cells, or over "
            f"{MOST_K_NORM_TABLE} each, too many to draw their noise together"
        )
    return best[len(ordered)][1]


def _can_share_noise(sizes: Sequence[int]) -> bool:
    """Return whether the kernel draws K-norm noise for tables of these sizes."""
    return sum(sizes) <= MOST_K_NORM_CELLS and max(sizes) <= MOST_K_NORM_TABLE


def _possible_ends(sizes: Sequence[int]) -> list[int]:
    """Return the positions after which a group may end.

    They are between different sizes, and at the end.
    """
    between = [place for place in range(1, len(sizes)) if sizes[place - 1] < sizes[place]]
    between.sort(key=lambda place: sizes[place - 1] / sizes[place])
    return [*sorted(between[:_MOST_CUTS]), len(sizes)]


def _seconds(workload: Workload) -> float:
    """Estimate the CPU seconds of choosing groups and computing their errors."""
    try:
        errors = _cell_errors(workload)
    except NotApplicable:
        return 0.01
    cells = sum(workload.domain.kind(name).size for name in errors)
    return 0.1 + 4e-6 * min(cells, MOST_K_NORM_CELLS) ** 2


K_NORM = Planner(
    name="k_norm",
    propose=k_norm,
    measures="every cell of one-way tables, in groups with noise that shares their total",
    made_for="many small one-way tables under pure privacy",
    norms=(1,),
    instead="its noise is for pure privacy; choose residual",
    limits=f"one-way tables; groups of {MOST_K_NORM_CELLS} cells, {MOST_K_NORM_TABLE} in a table",
    paper="Hardt and Talwar, arXiv 0907.3754",
    # Audits and statistics of a finished release do not know the law of its noise yet.
    automatic=False,
    seconds=_seconds,
)
