"""Measure residual spaces with fitted strategies under Gaussian noise.

One strategy is fitted to the queries along every attribute.

As in ``residual``, every set tau of attributes is measured separately, summed over all other
attributes. For attributes with queries other than cells, the fitted rows and the tilt of
``_families`` replace the contrasts. Let s be the sum of (q m)^2 and r the sum of q R q over the
queries q along an attribute. The total squared error at privacy cost 1 is

    (sum over tau of c(tau)^(1/2))^2,
    c(tau) = sum over requested products containing tau of
             prod_{i in tau} r_i * prod_{i not in tau} s_i.

Source: ResidualPlanner+ (arXiv 2305.08175v4), QuerySmasher (arXiv 2604.00868), with tilts between
    and beyond the tilts of these papers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256

import numpy as np

from leastnoise._domain import Domain
from leastnoise._error import subsets
from leastnoise._families import (
    NotApplicable,
    balanced_rounding,
    best_tilt,
    check_deadline,
    contrast_variances,
    fit_contrast_rows,
    gram_of,
)
from leastnoise._fitting import NOISES, allowed_mu_squared
from leastnoise._strategies._planning_problem import (
    Planner,
    PlanningProblem,
    Strategy,
    base_seconds,
)
from leastnoise._trusted.accounting import GDP, ApproxDP, Noise, Privacy
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Contrasts, Dense, Identity, Operator
from leastnoise._trusted.measurements import MOST_ROWS, Block, Factor
from leastnoise._workload import Workload

Names = tuple[str, ...]
Along = tuple[str | None, str]  # a measure and an attribute
_CANDIDATE_PULLS = np.geomspace(3e-3, 1e3, 12)  # in mean squared column norms of the workload
_MIDDLE_PULL = len(_CANDIDATE_PULLS) // 2
_FIRST_STEP = 4  # the distance, in pulls, from the middle to the next tried pull
# The search for the pull ends after a smaller relative gain of the squared error.
_LEAST_GAIN = 1e-3
# The final tilt and rows are accepted at these relative gaps of the squared error.
_CLOSE_TILT = 1e-4
_CLOSE_ROWS = 1e-4
_MOST_CELLS = 1024  # maximum number of cells of an attribute: eigenvectors take n^3 operations
# Maximum number of terms of the error, one for each table and subset of attributes.
_MOST_TERMS = 4_000_000
_TOP_BITS = 20  # bits of the largest integer coefficient
_LEAST_TOP = 15  # least value of the largest coefficient; below it, rounding costs too much


@dataclass(frozen=True, slots=True, eq=False)
class _AttributeGroup:
    """Attributes with equal queries; they get the same strategy.

    Attributes:
        size: the number of cells.
        operators: the different queries along the attribute.
        grams: the Gram matrices of the operators; empty if only cells are requested.
        first_index: the position of the first operator's s in the array of values. Its r follows,
            then s and r of the next operator.
    """

    size: int
    operators: tuple[Operator, ...]
    grams: tuple[FloatArray, ...]
    first_index: int

    @property
    def value_slice(self) -> slice:
        """The slice of the values s and r for this group."""
        return slice(self.first_index, self.first_index + 2 * len(self.operators))


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """The terms of all error coefficients c(tau), as arrays.

    There is an entry for each pair of a product and a subset tau of its attributes.

    Attributes:
        attribute_sets: the measure and the attributes of each tau.
        set_index: for each entry, the position of its tau, shape (entries,).
        importance: for each entry, the importance of its product, shape (entries,).
        value_indices: for each entry, the positions of the values that it multiplies, shape
            (entries, attributes); values[0] is 1.
    """

    attribute_sets: tuple[tuple[str | None, Names], ...]
    set_index: IntArray
    importance: FloatArray
    value_indices: IntArray

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the error coefficient c(tau) of each attribute set tau."""
        return np.asarray(
            np.bincount(self.set_index, self._entries(values), len(self.attribute_sets)),
            dtype=np.float64,
        )

    def error(self, values: FloatArray) -> float:
        """Return the total squared error at privacy cost 1."""
        return float(np.sqrt(self.sums(values)).sum()) ** 2

    def gradient(self, values: FloatArray) -> FloatArray:
        """Return the gradient of the square root of the error, by value."""
        entries = self._entries(values)
        sums = np.bincount(self.set_index, entries, len(self.attribute_sets))
        pushed = (
            entries
            * np.where(sums > 0, 0.5 / np.sqrt(np.where(sums > 0, sums, 1.0)), 0.0)[self.set_index]
        )
        gathered = np.sum(
            [np.bincount(column, pushed, len(values)) for column in self.value_indices.T], axis=0
        )
        return np.where(values > 0, gathered / np.where(values > 0, values, 1.0), 0.0)

    def _entries(self, values: FloatArray) -> FloatArray:
        """Return the product of each entry's importance and its values."""
        entries = self.importance.copy()
        for column in self.value_indices.T:
            entries *= values[column]
        return entries


def tilted(problem: PlanningProblem) -> Strategy:
    """Return residual spaces, measured by rows that are fitted along attributes."""
    workload = problem.workload
    privacy = problem.privacy
    only_cells = not workload.beyond_cells and not workload.has_hidden
    groups: list[_AttributeGroup] = []
    group_of: dict[Along, int] = {}
    if not only_cells:
        groups, group_of = _attribute_groups(workload)
    if not any(group.grams for group in groups):
        raise NotApplicable(
            "the workload has only cells along every attribute; for these, residual has the least "
            "error"
        )
    terms = _terms(workload, groups, group_of)
    values = _initial_values(groups)
    try:
        tilts = _fit_tilts(groups, terms, values)
    except np.linalg.LinAlgError:
        raise NotApplicable(
            "the weights of queries along an attribute differ too much to compute eigenvectors"
        ) from None
    tops = _coefficient_limits(workload.domain, privacy, terms, values, group_of, tilts)
    measured: dict[int, _MeasuredRows] = {}
    for number, group in enumerate(groups):
        if number in tilts:
            measured[number] = _round_rows(group, values, tilts[number], tops[number])
        elif group.size > 1:
            norm = math.sqrt((group.size - 1) / group.size)
            measured[number] = _MeasuredRows(Contrasts(group.size), norm)
    blocks = _blocks(workload.domain, terms, values, group_of, measured)
    return Strategy("tilted", blocks, error=terms.error(values))


@dataclass(frozen=True, slots=True)
class _MeasuredRows:
    """The integer rows measured along an attribute, without the total.

    Attributes:
        operator: the rows in whole numbers.
        norm: the largest column norm of the rows.
    """

    operator: Operator
    norm: float


def _round_rows(
    group: _AttributeGroup, values: FloatArray, rows: FloatArray, largest_entry: int
) -> _MeasuredRows:
    """Round a group's rows to integers, and update the group's errors s and r."""
    rounded = balanced_rounding(rows, largest_entry)
    fine = rounded.astype(float)
    if not np.linalg.cond(fine[:, :-1] - fine[:, -1:]) < 1e7:
        raise NotApplicable(
            "the queries do not distinguish all cells, and coefficients that would do so need "
            "too many bits; choose another strategy"
        )
    unseen = np.linalg.svd(fine)[2][-1]  # proportional to the tilt of the rounded rows
    norm = math.sqrt(float((fine**2).sum(axis=0).max()))
    _store_rows(group, values, unseen / unseen.sum(), rounded / norm)
    return _MeasuredRows(Dense(rounded), norm)


def _blocks(
    domain: Domain,
    terms: _Terms,
    values: FloatArray,
    group_of: Mapping[Along, int],
    measured: Mapping[int, _MeasuredRows],
) -> tuple[tuple[Block, float], ...]:
    """Return a weighted block for each attribute set that adds to the error."""
    blocks = []
    for (measure, tau), coefficient in zip(
        terms.attribute_sets, terms.sums(values).tolist(), strict=True
    ):
        if not coefficient > 0:
            continue
        rows_along = [measured[group_of[measure, name]] for name in tau]
        factors = tuple(
            Factor((name,), rows.operator) for name, rows in zip(tau, rows_along, strict=True)
        )
        height = domain.largest_value(measure) * math.prod(rows.norm for rows in rows_along)
        blocks.append((Block(factors, Fraction(1), measure), coefficient**0.25 / height))
    return tuple(blocks)


def _attribute_groups(workload: Workload) -> tuple[list[_AttributeGroup], dict[Along, int]]:
    """Return the attribute groups, and the group index of each attribute."""
    operators_along: dict[Along, dict[Operator, None]] = {}
    for product in workload:
        for name, operator in zip(product.attributes, product.operators, strict=True):
            operators_along.setdefault((product.measure, name), {})[operator] = None
    groups: list[_AttributeGroup] = []
    group_numbers: dict[tuple[str | None, frozenset[Operator]], int] = {}
    numbers: dict[Along, int] = {}
    slot = 1
    for along, operators in operators_along.items():
        key = along[0], frozenset(operators)
        if key not in group_numbers:
            size = next(iter(operators)).size
            operator_list = tuple(operators)
            beyond_cells = size > 1 and any(
                operator != Identity(size) for operator in operator_list
            )
            if beyond_cells and size > _MOST_CELLS:
                raise NotApplicable(
                    f"this strategy needs eigenvectors of a matrix of {size} x {size}; at most "
                    f"{_MOST_CELLS} cells are allowed"
                )
            if beyond_cells:
                grams = tuple(gram_of(operator).dense() for operator in operator_list)
            else:
                grams = ()
            group_numbers[key] = len(groups)
            groups.append(_AttributeGroup(size, operator_list, grams, slot))
            slot += 2 * len(operator_list)
        numbers[along] = group_numbers[key]
    return groups, numbers


def _terms(
    workload: Workload, groups: Sequence[_AttributeGroup], group_of: Mapping[Along, int]
) -> _Terms:
    """Return the error terms, one for each table and attribute subset."""
    entries = sum(2 ** len(product.attributes) for product in workload)
    if entries > _MOST_TERMS:
        raise NotApplicable(
            f"the requested tables have {entries} subsets of attributes; at most "
            f"{_MOST_TERMS} are allowed"
        )
    width = max(len(product.attributes) for product in workload)
    taus: dict[tuple[str | None, Names], int] = {}
    tau = np.zeros(entries, dtype=np.int64)
    importance = np.zeros(entries)
    slots = np.zeros((entries, width), dtype=np.int64)
    entry = 0
    for product in workload:
        starts = []
        for name, operator in zip(product.attributes, product.operators, strict=True):
            group = groups[group_of[product.measure, name]]
            starts.append(group.first_index + 2 * group.operators.index(operator))
        for names in subsets(product.attributes):
            tau[entry] = taus.setdefault((product.measure, names), len(taus))
            # For a measure, the largest value cancels because the cost contains it as well.
            importance[entry] = float(product.weight) ** 2
            slots[entry, : len(starts)] = [
                slot + (name in names)
                for slot, name in zip(starts, product.attributes, strict=True)
            ]
            entry += 1
    return _Terms(tuple(taus), tau, importance, slots)


def _initial_values(groups: Sequence[_AttributeGroup]) -> FloatArray:
    """Return the errors s and r for contrasts that add equal noise to all cells."""
    values = np.ones(1 + 2 * sum(len(group.operators) for group in groups))
    for group in groups:
        n = group.size
        group_values = values[group.value_slice]  # a view
        group_values[::2] = 1 / n
        group_values[1::2] = (n - 1) ** 2 / n
        for index, gram in enumerate(group.grams):
            mean = float(gram.sum()) / n**2
            group_values[2 * index] = mean
            group_values[2 * index + 1] = (n - 1) / n * max(0.0, float(np.trace(gram)) - n * mean)
    return values


def _store_rows(
    group: _AttributeGroup, values: FloatArray, tilt: FloatArray, rows: FloatArray
) -> None:
    """Store a group's errors from a tilt and rows of norm 1 in ``values``."""
    values[group.value_slice] = _tilt_and_contrast_errors(group.grams, tilt, rows)


def _tilt_and_contrast_errors(
    grams: Sequence[FloatArray], tilt: FloatArray, rows: FloatArray
) -> FloatArray:
    """Return each Gram matrix's squared error along the tilt and from contrasts."""
    values = np.empty(2 * len(grams))
    values[::2] = [tilt @ gram @ tilt for gram in grams]
    values[1::2] = contrast_variances(rows, grams)
    return values


def _fit_tilts(
    groups: Sequence[_AttributeGroup], terms: _Terms, values: FloatArray
) -> dict[int, FloatArray]:
    """Return the best rows of each group by number; update all s and r."""
    slopes = terms.gradient(values)
    curves: dict[int, _TiltCurve] = {}
    for number, group in enumerate(groups):
        if group.grams:
            curves[number] = _tilt_curve(_TiltGrams(group.grams, *_merged_grams(group, slopes)))
    for number, curve in curves.items():
        values[groups[number].value_slice] = curve.values_at(_MIDDLE_PULL)
    tilts = {}
    for number, curve in curves.items():  # optimise the pull of each group in turn
        tilts[number] = _best_rows(groups[number], curve, terms, values)
    return tilts


def _best_rows(
    group: _AttributeGroup, curve: "_TiltCurve", terms: _Terms, values: FloatArray
) -> FloatArray:
    """Return a group's rows at the best cost of the total; update its errors."""

    def error(index: int) -> float:
        """Return the total squared error at the pull with this index."""
        values[group.value_slice] = curve.values_at(index)
        return terms.error(values)

    mean, rows = curve.fit_closely(_best_pull(error))
    _store_rows(group, values, mean, rows)
    return rows


def _best_pull(error: Callable[[int], float]) -> int:
    """Return the index of the pull (cost of the total) with the least error.

    The error as a function of the pull has a single minimum. The search starts in the middle and
    halves its step until the gain is negligible.
    """
    best = _MIDDLE_PULL
    least = error(_MIDDLE_PULL)
    step = _FIRST_STEP
    while step >= 1:
        before = least
        for index in (max(best - step, 0), min(best + step, len(_CANDIDATE_PULLS) - 1)):
            if (reached := error(index)) < least:
                best = index
                least = reached
                break
        else:
            step //= 2
            continue
        if least > (1 - _LEAST_GAIN) * before:
            break
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _TiltGrams:
    """The Gram matrices that determine the tilts of a group.

    Attributes:
        operator_grams: the Gram matrix of each operator.
        tilt_gram: the matrix for the tilt.
        row_gram: the matrix for the rows.
    """

    operator_grams: tuple[FloatArray, ...]
    tilt_gram: FloatArray
    row_gram: FloatArray

    def _key(self) -> tuple[bytes, ...]:
        """Return the digests of all matrices."""
        return tuple(
            sha256(gram.tobytes()).digest()
            for gram in (*self.operator_grams, self.tilt_gram, self.row_gram)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TiltGrams) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class _TiltCurve:
    """The fitted values of a group as a function of the pull, with a cache.

    All other fits start from the fit of the middle pull, so the results do not depend on the order
    of calls.
    """

    def __init__(self, grams: _TiltGrams) -> None:
        across = grams.row_gram
        if not np.ptp(across) > 1e-12 * np.abs(across).max():
            raise NotApplicable(
                "the queries along an attribute are only multiples of its total; request "
                "the total instead"
            )
        self._grams = grams
        self._unit = float(np.trace(grams.tilt_gram)) / len(grams.tilt_gram)
        self._fits: dict[int, _TiltFit] = {}
        self._close_fits: dict[int, tuple[FloatArray, FloatArray]] = {}

    def _fit(self, index: int) -> "_TiltFit":
        """Return the cached fit of tilt and rows for the pull with this index."""
        if index in self._fits:
            return self._fits[index]
        check_deadline()
        start = None if index == _MIDDLE_PULL else self._fit(_MIDDLE_PULL)
        pull = float(_CANDIDATE_PULLS[index]) * self._unit
        mean, tilt_weights = best_tilt(
            self._grams.tilt_gram, pull, None if start is None else start.tilt_weights
        )
        fitted = fit_contrast_rows(
            self._grams.row_gram, mean, None if start is None else start.row_weights
        )
        values = _tilt_and_contrast_errors(self._grams.operator_grams, mean, fitted.rows)
        self._fits[index] = _TiltFit(values, tilt_weights, fitted.dual_weights)
        return self._fits[index]

    def values_at(self, index: int) -> FloatArray:
        """Return each operator's squared errors s and r for the pull with this index.

        Each operator has two values: s, from the total, and r, from the contrasts.
        """
        return self._fit(index).values

    def fit_closely(self, index: int) -> tuple[FloatArray, FloatArray]:
        """Return tilt and contrast rows for one pull, close to their optimum."""
        if index not in self._close_fits:
            start = self._fit(index)
            pull = float(_CANDIDATE_PULLS[index]) * self._unit
            mean, _ = best_tilt(self._grams.tilt_gram, pull, start.tilt_weights, gap=_CLOSE_TILT)
            fitted = fit_contrast_rows(
                self._grams.row_gram, mean, start.row_weights, gap=_CLOSE_ROWS
            )
            self._close_fits[index] = mean, fitted.rows
        return self._close_fits[index]


@dataclass(frozen=True, slots=True, eq=False)
class _TiltFit:
    """A fitted tilt with rows, and dual weights to start other fits."""

    values: FloatArray
    tilt_weights: FloatArray
    row_weights: FloatArray


@lru_cache(maxsize=4)
def _tilt_curve(grams: _TiltGrams) -> _TiltCurve:
    """Return the cached tilt curve for some Gram matrices."""
    return _TiltCurve(grams)


def _merged_grams(group: _AttributeGroup, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted Gram matrices of a group for its tilt and its rows."""
    if len(group.grams) == 1:
        return group.grams[0], group.grams[0]
    group_slopes = gradient[group.value_slice]
    along, across = (
        np.tensordot(group_slopes[part::2], np.array(group.grams), axes=1) for part in (0, 1)
    )
    return sum(
        (gram / np.trace(gram) for gram in (along, across) if np.trace(gram) > 0),
        np.zeros_like(across),
    ), across


def _coefficient_limits(
    domain: Domain,
    privacy: Privacy,
    terms: _Terms,
    values: FloatArray,
    group_of: Mapping[Along, int],
    tilts: Mapping[int, FloatArray],
) -> dict[int, int]:
    """Return the largest integer coefficient of the rows of each group.

    This limit prevents overflow in exact sums and noise scales.
    """
    sums = terms.sums(values)
    if Noise.ROUNDED_GAUSSIAN not in NOISES[type(privacy.budget)]:
        raise NotApplicable("Gaussian noise does not give pure differential privacy")
    loss = math.sqrt(float(allowed_mu_squared(privacy.budget))) / privacy.distance
    with np.errstate(divide="ignore"):
        noise = np.sqrt(float(np.sqrt(sums).sum()) / np.sqrt(sums)) / loss
    # Rounded Gaussian noise is drawn on a grid that is fine relative to the least noise.
    if isinstance(privacy.budget, ApproxDP | GDP):
        grid = max(0.0, math.ceil(8 - math.log2(float(noise.min()))))
    else:
        grid = 0.0
    bits = dict.fromkeys(tilts, float(_TOP_BITS))
    for (measure, tau), deviation in zip(terms.attribute_sets, noise.tolist(), strict=True):
        numbers = [group_of[measure, name] for name in tau]
        fitted = [number for number in numbers if number in tilts]
        if not fitted or not math.isfinite(deviation):
            continue
        largest = domain.largest_value(measure)
        other_cells = math.prod(
            domain.kind(name).size - 1
            for name, number in zip(tau, numbers, strict=True)
            if number not in tilts
        )
        room = 61 - grid - math.log2(MOST_ROWS * largest * other_cells)
        # Include the roots of the contrasts' norms, because the scale must stay below 2^29.
        if len(fitted) < len(numbers):
            most = 28 - grid - math.log2(deviation * largest)
            room = min(
                room,
                most + sum(math.log2(float(np.abs(tilts[number]).max())) for number in fitted),
            )
        for number in fitted:
            bits[number] = min(bits[number], room / len(fitted))
    if not min(bits.values()) >= math.log2(_LEAST_TOP):
        raise NotApplicable(
            "tables of this many attributes leave too few bits for integer coefficients; "
            "request smaller tables or another strategy"
        )
    return {number: int(2**room) for number, room in bits.items()}


def _seconds(workload: Workload) -> float:
    """Estimate the CPU seconds of the tilts along every attribute."""
    kinds = {name: workload.domain.kind(name) for name in workload.attributes}
    sizes = [
        kind.size for name, kind in kinds.items() if kind.hidden or name in workload.beyond_cells
    ]
    if max(sizes, default=0) > _MOST_CELLS:
        return base_seconds(workload)
    return base_seconds(workload) + sum(0.5 * (size / 256) ** 2.2 for size in sizes)


TILTED = Planner(
    name="tilted",
    propose=tilted,
    measures="the spaces of `residual`, by rows fitted to the queries along every attribute",
    made_for="prefix sums, ranges and cells in several small tables under Gaussian noise",
    norms=(2,),
    advice_for_other_noise=(
        "residual spaces are measured across totals, on which Laplace noise is not spent "
        "evenly; choose p_identity"
    ),
    limits="attributes of 1024 cells",
    paper="arXiv 2604.00868",
    seconds=_seconds,
)
