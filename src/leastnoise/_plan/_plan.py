"""The plan: which integer queries are measured, with which noise, under which promise. A frozen, serialisable, public value."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from leastnoise._accounting import Noise, Privacy, fraction_from_text, privacy_from_json
from leastnoise._check import InputError, exact_positive, one_of, read_json, refuse, whole
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._domain import Domain
from leastnoise._linop import Contrasts, Operator, from_json, largest_entry, pack, to_json, unpack
from leastnoise._plan._frozen import frozen
from leastnoise._plan._limits import Limits

# Public bounds from which all headroom is decided; the data never are asked.
MOST_ROWS = 2**32
MOST_TABLE_CELLS = 2**28
MOST_SCALE_TERM = 2**56
FORMAT = 1


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Integer queries along some attributes, taken together in row-major order.

    Args:
        attributes: names in the order of the domain.
        operator: the queries, over the product of the attributes' cells.
        row_weights: None, or whole numbers from 1 to 2^20, one a row: a row's noise scale is divided by its weight. Contrasts take none:
            their rows' noise scales are multiplied by their norms.
    """

    attributes: tuple[str, ...]
    operator: Operator
    row_weights: IntArray | None = None
    # A plan of many blocks asks for these once a block.
    heaviest: int = field(default=1, init=False, repr=False)
    largest_square: int = field(default=1, init=False, repr=False)
    _hash: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if self.row_weights is not None:
            self._freeze_weights()
            object.__setattr__(self, "heaviest", int(self.weights.max()))
        if isinstance(self.operator, Contrasts):  # of the others the squares are ones, one a row, which are not listed here
            object.__setattr__(self, "largest_square", int(self.squares.max()))
        object.__setattr__(self, "_hash", hash((self.attributes, self.key())))

    def _freeze_weights(self) -> None:
        if isinstance(self.operator, Contrasts):
            raise refuse("row_weights of contrasts", "an array", "None; the noise of a contrast is proportional to its norm")
        weights = np.array(self.row_weights)
        if weights.dtype.kind not in "iu":
            raise refuse("row_weights", str(weights.dtype), "whole numbers")
        weights = weights.astype(np.int64)
        if weights.shape != (self.operator.rows,) or not (weights.min() >= 1 and weights.max() <= 2**20):
            raise refuse(
                "row_weights",
                f"{weights.shape} from {weights.min()} to {weights.max()}",
                f"{self.operator.rows} whole numbers from 1 to 2^20",
            )
        weights.setflags(write=False)
        object.__setattr__(self, "row_weights", weights)

    @property
    def weights(self) -> IntArray:
        """The row weights, ones if there are none."""
        return np.ones(self.operator.rows, dtype=np.int64) if self.row_weights is None else self.row_weights

    @property
    def squares(self) -> IntArray:
        """What the rows' noise variances are multiplied by: squared norms of contrasts, else ones."""
        return self.operator.squared_norms if isinstance(self.operator, Contrasts) else np.ones(self.operator.rows, dtype=np.int64)

    @property
    def even(self) -> bool:
        """Whether all rows have the same noise scale."""
        return self.row_weights is None and not isinstance(self.operator, Contrasts)

    @property
    def scaling(self) -> FloatArray:
        """What a row must be multiplied by to have the block's noise: weight over norm, float of shape (rows,)."""
        return np.asarray(self.weights / np.sqrt(self.squares), dtype=np.float64)

    def key(self) -> tuple[Operator, bytes]:
        """A hashable value that is equal for equal queries and weights."""
        return self.operator, b"" if self.row_weights is None else self.row_weights.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Factor) and self.attributes == other.attributes and self.key() == other.key()

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Block:
    """The product of some factors, measured with one scale; attributes in no factor are summed over.

    Args:
        factors: on disjoint attributes, together in the order of the domain; none for the total.
        scale: noise scale of a row of weight 1, in rows (or in units of the measure), exact.
        measure: the measure that is summed, None for counts.
        limits: None, or the most that a row may add to the sum, within the measure's bounds.
    """

    factors: tuple[Factor, ...]
    scale: Fraction
    measure: str | None = None
    limits: Limits | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(self.factors))
        # Exact and of Python's integers: cost and noise are computed from the same number, and nothing wraps around.
        object.__setattr__(self, "scale", exact_positive("scale", self.scale))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of all factors."""
        return tuple(name for factor in self.factors for name in factor.attributes)

    @property
    def rows(self) -> int:
        """Number of measured queries."""
        return math.prod(factor.operator.rows for factor in self.factors)

    def row_weights(self) -> IntArray:
        """The product of the factors' row weights, int64 of shape (rows,)."""
        return _outer([factor.weights for factor in self.factors])

    def scaling(self) -> FloatArray:
        """What each row must be multiplied by to have the block's noise, shape (rows,)."""
        return np.asarray(self.row_weights() / np.sqrt(self.row_squares()), dtype=np.float64)

    def row_squares(self) -> IntArray:
        """The product of the factors' squared norms, int64 of shape (rows,)."""
        return _outer([factor.squares for factor in self.factors])


def _factor_from_json(domain: Domain, entry: Mapping[str, Any]) -> Factor:
    """A factor of a plan file; its arrays may be no larger than the public domain makes them."""
    names = tuple(entry["attributes"])
    operator = from_json(entry["operator"], math.prod(domain.kind(name).size for name in names))
    return Factor(names, operator, None if entry["row_weights"] is None else unpack(entry["row_weights"], operator.rows))


def _outer(parts: Sequence[IntArray]) -> IntArray:
    whole_product = np.ones(1, dtype=np.int64)
    for part in parts:
        whole_product = np.multiply.outer(whole_product, part).reshape(-1)
    return whole_product


@dataclass(frozen=True, slots=True)
class TableError:
    """What a plan promises for one table of the workload.

    Args:
        name: the table.
        queries: number of its queries.
        weight: their weight.
        rmse: square root of the mean variance, in rows (or units of the measure).
        largest_std: the largest standard error among its queries, same unit.
        largest_is_bound: whether that is a bound above the largest instead, because the queries are too many to compare.
    """

    name: str
    queries: int
    weight: float
    rmse: float
    largest_std: float
    largest_is_bound: bool = False


@dataclass(frozen=True, slots=True)
class Promise:
    """The expected error of a workload under a plan, computed before any data is seen.

    Args:
        total_squared_error: sum over all queries of weight squared times variance (a sum's error in units of its largest contribution).
        lower_bound: no unbiased plan of this kind has a smaller total.
        tables: one record a product of the workload.
    """

    total_squared_error: float
    lower_bound: float
    tables: tuple[TableError, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that a release will do, but for the data.

    Args:
        domain: the public domain.
        privacy: budget, neighbours and privacy unit.
        noise: of every row.
        blocks: what is measured.
        strategy: name of the strategy, for people.
        grid: an observation is a whole number of 1/grid; a power of two.
        questions: the workload, as its JSON value.
        promise: the expected error of those questions.
        details: further public facts, such as a duality gap.

    Raises:
        InputError: a query outside the domain, a scale that cannot be drawn exactly, or public bounds too large for exact arithmetic.
    """

    domain: Domain
    privacy: Privacy
    noise: Noise
    blocks: tuple[Block, ...]
    strategy: str
    grid: int = 1
    questions: tuple[Mapping[str, Any], ...] = ()
    promise: Promise | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        grid = whole("grid", self.grid, 1, 2**20)
        if grid & (grid - 1):
            raise refuse("grid", grid, "a power of two")
        # M6: copies of Python's own immutable kinds: what was checked here cannot change before it is measured.
        for name, value in (
            ("grid", grid),
            ("blocks", tuple(self.blocks)),
            ("questions", frozen(self.questions)),
            ("details", frozen(self.details)),
        ):
            object.__setattr__(self, name, value)
        if not self.blocks:
            raise InputError("A plan must measure at least one query; got no blocks.")
        self._check_types()
        places = {name: place for place, name in enumerate(self.domain.names)}
        # Few factors make many blocks; each is looked at once.
        most = {factor: largest_entry(factor.operator) for factor in dict.fromkeys(f for block in self.blocks for f in block.factors)}
        for factor in most:
            self._check_factor(factor, places)
        for block in self.blocks:
            self._check(block, places, most)

    def _check_types(self) -> None:
        """M6: of these very classes, whose values cannot change: what only looks like one could answer otherwise when it is measured."""
        factors = {factor for block in self.blocks if type(block) is Block for factor in block.factors if type(factor) is Factor}
        parts = [block.factors for block in self.blocks if type(block) is Block]
        for what, values, kinds in (
            ("the domain of a plan", [self.domain], (Domain,)),
            ("the noise of a plan", [self.noise], (Noise,)),
            ("the privacy of a plan", [self.privacy], (Privacy,)),
            ("the blocks of a plan", self.blocks, (Block,)),
            ("the factors of a block", [factor for factors_of in parts for factor in factors_of], (Factor,)),
            ("the limits of a block", [block.limits for block in self.blocks if type(block) is Block], (Limits, type(None))),
            ("the operator of a factor", [factor.operator for factor in factors], get_args(Operator)),
        ):
            if strange := {*map(type, values)} - {*kinds}:
                raise refuse(what, ", ".join(sorted(kind.__name__ for kind in strange)), " or ".join(kind.__name__ for kind in kinds))

    def _check_factor(self, factor: Factor, places: Mapping[str, int]) -> None:
        if not all(name in places for name in factor.attributes):
            raise refuse("the attributes of a block", list(factor.attributes), "attributes of the domain, each once, in its order")
        cells = math.prod(self.domain.kind(name).size for name in factor.attributes)
        if not factor.attributes or factor.operator.size != cells:
            raise refuse(
                "the size of an operator",
                factor.operator.size,
                f"the {cells} cells of {', '.join(factor.attributes) or 'no attribute'}",
            )

    # M7
    def _check(self, block: Block, places: Mapping[str, int], entries: Mapping[Factor, int]) -> None:
        names = block.attributes
        order = [places[name] for name in names]
        if not all(before < behind for before, behind in pairwise(order)):
            raise refuse("the attributes of a block", list(names), "attributes of the domain, each once, in its order")
        cells = math.prod(factor.operator.size for factor in block.factors)
        if not cells <= MOST_TABLE_CELLS:
            raise InputError(
                f"A measured table may have at most {MOST_TABLE_CELLS} cells; got {cells} for {' x '.join(names)}. "
                "Ask for marginals on fewer attributes, use coarser attributes, or choose another strategy."
            )
        if not block.rows <= MOST_TABLE_CELLS:
            raise refuse("the number of measured queries of a block", block.rows, f"at most {MOST_TABLE_CELLS}", "Choose another strategy.")
        if block.measure is not None and block.measure not in self.domain.measures:
            raise refuse("the measure of a block", block.measure, "a measure of the domain")
        largest = self.largest_value(block.measure) if block.limits is None else self._limited(block, block.limits)
        # The values of a table add up to at most that of all rows, and no entry of a product is above the product of the largest ones.
        most = MOST_ROWS * largest * math.prod(entries[factor] for factor in block.factors) * self.grid
        if not most < 2**62:
            raise InputError(
                f"The public bounds are too large for exact arithmetic: a measured sum may reach {most}, allowed is below 2^62. "
                "Choose a larger unit or smaller clip bounds for the measure."
            )
        heaviest = math.prod(factor.heaviest for factor in block.factors)
        square = math.prod(factor.largest_square for factor in block.factors)
        if square > 1 and self.noise.norm == 1:
            raise InputError(
                "Contrasts need Gaussian noise: a budget for Laplace noise is not spent evenly on them. Measure cells instead."
            )
        if not square < 2**52:
            raise refuse("the largest squared norm of a product of contrasts", square, "below 2^52", "Measure fewer or shorter attributes.")
        # Roots of squared norms are taken to 26 bits behind the point at most, and are below 2^27 then (``row_scales``).
        fine, root, below = block.scale * self.grid, *((1, 1) if square == 1 else (2**27, 2**26))
        if not (fine.numerator * root < MOST_SCALE_TERM and fine.denominator * below * heaviest < MOST_SCALE_TERM):
            raise refuse("scale", str(block.scale), "a fraction whose terms, with grid and row weights, stay below 2^56")

    def largest_value(self, measure: str | None) -> int:
        """The most that one row can add to a cell of a table of a measure, 1 for counts."""
        return 1 if measure is None else self.domain.measure(measure).largest

    def _limited(self, block: Block, limits: Limits) -> int:
        """The most that one row adds under the limits, once they are known to fit."""
        if block.measure is None:
            raise refuse("the limits of a block of counts", "limits", "None", "Name the measure whose sums are limited.")
        name, values = limits.attribute, limits.values
        if name is not None and len(values) != self.domain.kind(name).size:
            allowed = f"one for each of the {self.domain.kind(name).size} cells of {name}"
            raise refuse("the limits of a block", f"{len(values)} values", allowed)
        most = self.domain.measure(block.measure).high_units
        if not int(values.max()) <= most:
            raise refuse("the limits of a block", int(values.max()), f"at most the upper bound of {block.measure}, {most} units")
        return int(self.largest_values(block).max())

    def largest_values(self, block: Block) -> IntArray:
        """The most that one row can add to or take from a sum of a block: one number for each of its limits, else one alone.

        Limits cut from above; the lower bound of the measure stays.
        """
        if block.measure is None or block.limits is None:
            return np.array([self.largest_value(block.measure)], dtype=np.int64)
        return np.maximum(block.limits.values, -min(self.domain.measure(block.measure).low_units, 0))

    def limits(self, measure: str | None) -> Limits | None:
        """The limits under which a measure is summed, None if there are none.

        Raises:
            InputError: its blocks have different limits, so that they do not measure the same sums and cannot be combined.
        """
        found = {block.limits for block in self.blocks if block.measure == measure}
        if len(found) > 1:
            raise InputError(
                f"Sums of {measure} under different limits differ in their bias and are not estimated together. Make a plan for each limit."
            )
        return found.pop() if found else None

    def expected_error(self) -> Promise:
        """The expected error of the plan's questions.

        Raises:
            InputError: the plan was made without questions.
        """
        if self.promise is None:
            raise InputError("This plan has no questions, so it promises no error. Make plans with leastnoise.plan(workload, budget).")
        return self.promise

    def lower_bound(self) -> float:
        """A bound below which no plan of this kind can bring the total squared error."""
        return self.expected_error().lower_bound

    def with_promise(self, promise: Promise, questions: Sequence[Mapping[str, Any]] | None = None) -> "Plan":
        """The same plan with the expected error of its questions, or of new ones; what it measures was checked and is not touched."""
        changed = copy(self)
        object.__setattr__(changed, "promise", promise)
        if questions is not None:
            object.__setattr__(changed, "questions", frozen(tuple(questions)))
        return changed

    def to_json(self) -> str:
        """The plan as one JSON text, the same for equal plans."""
        factors: dict[Factor, int] = {}
        limits: dict[Limits, int] = {}
        blocks = [
            {
                "factors": [factors.setdefault(factor, len(factors)) for factor in block.factors],
                "scale": str(block.scale),
                "measure": block.measure,
                **({} if block.limits is None else {"limits": limits.setdefault(block.limits, len(limits))}),
            }
            for block in self.blocks
        ]
        promise = self.promise
        value = {
            "format": FORMAT,
            "strategy": self.strategy,
            "mechanism": self.noise.value,
            "privacy": self.privacy.to_json(),
            "domain": self.domain.to_json(),
            "grid": self.grid,
            "factors": [
                {
                    "attributes": list(factor.attributes),
                    "operator": to_json(factor.operator),
                    "row_weights": None if factor.row_weights is None else pack(factor.row_weights),
                }
                for factor in factors
            ],
            **({"limits": [{"attribute": limit.attribute, "values": pack(limit.values)} for limit in limits]} if limits else {}),
            "blocks": blocks,
            "questions": list(self.questions),
            "promise": None
            if promise is None
            else {
                "total_squared_error": promise.total_squared_error,
                "lower_bound": promise.lower_bound,
                "tables": [
                    [t.name, t.queries, t.weight, t.rmse, t.largest_std, *([True] if t.largest_is_bound else [])] for t in promise.tables
                ],
            },
            "details": self.details,
        }
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    def digest(self) -> str:
        """SHA-256 of the plan's JSON text, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @staticmethod
    def from_json(text: str) -> "Plan":
        """Read what ``to_json`` wrote.

        Raises:
            InputError: the text is no plan, or of another format.
        """
        try:
            value = read_json(text)
            if value["format"] != FORMAT:
                raise refuse("the format of a plan", value["format"], str(FORMAT), "Make the plan again with this version.")
            domain = Domain.from_json(value["domain"])
            factors = [_factor_from_json(domain, entry) for entry in value["factors"]]
            limits = [_limits_from_json(domain, entry) for entry in value.get("limits", ())]
            promise = value["promise"]
            return Plan(
                domain=domain,
                privacy=privacy_from_json(value["privacy"]),
                noise=Noise(one_of("mechanism", value["mechanism"], [kind.value for kind in Noise])),
                blocks=tuple(
                    Block(
                        tuple(factors[whole("a factor's place", place, 0, len(factors) - 1)] for place in entry["factors"]),
                        fraction_from_text("scale", entry["scale"]),
                        entry["measure"],
                        limits[whole("the place of limits", entry["limits"], 0, len(limits) - 1)] if "limits" in entry else None,
                    )
                    for entry in value["blocks"]
                ),
                strategy=value["strategy"],
                grid=value["grid"],
                questions=tuple(value["questions"]),
                promise=None
                if promise is None
                else Promise(
                    promise["total_squared_error"], promise["lower_bound"], tuple(TableError(*entry) for entry in promise["tables"])
                ),
                details=value["details"],
            )
        except InputError:
            raise
        except (KeyError, TypeError, IndexError, AttributeError, ValueError, RecursionError):
            raise InputError("This is not a plan, or a damaged one. Make it again with leastnoise.plan and Plan.to_json.") from None


def _limits_from_json(domain: Domain, entry: Mapping[str, Any]) -> Limits:
    name = entry["attribute"]
    return Limits(unpack(entry["values"], 1 if name is None else domain.kind(name).size), name)
