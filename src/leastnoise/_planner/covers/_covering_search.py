"""The local search for covering designs: annealing, neighbourhood descent and random changes of a set of tables.

A design here is a boolean matrix, one row a table, one column an attribute, with one weight a table. Only the asked sets matter: those with
c_tau > 0. The work is counted in elementary operations, never in seconds, so that a seed decides the result.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leastnoise._check.arrays import BoolArray, FloatArray
from leastnoise._planner.tables._marginal_weights import improve_weights

Tables = BoolArray  # one row a table, one column an attribute

_REFRESHED = 1000  # steps of annealing between two times that weights are improved and sums are made anew
_ROUND = 60_000  # operations that the bookkeeping of one neighbourhood is worth


@dataclass(slots=True, kw_only=True)
class State:
    """A design inside the search."""

    tables: Tables
    theta: FloatArray
    error: float
    origin: str


@dataclass(slots=True, kw_only=True)
class Search:
    """The problem in the form the local search wants, and the operations it may still spend."""

    shape: tuple[int, ...]
    log_sizes: FloatArray
    member: NDArray[np.float32]  # attributes x asked sets
    coefficient: FloatArray
    rng: np.random.Generator
    left: float

    def covers(self, tables: Tables) -> BoolArray:
        """Find which asked sets are inside which tables."""
        covered: BoolArray = (~tables).astype(np.float32) @ self.member == 0
        return covered

    def strength(self, tables: Tables) -> FloatArray:
        """Return 1 / size of each table."""
        result: FloatArray = np.exp(-(tables @ self.log_sizes))
        return result


def search_designs(search: Search, starts: list[State]) -> State:
    """Anneal random tables, give every start a short local search, and the best ones longer ones."""
    total = search.left
    states = starts + _annealed(search, 0.35 * total)
    for keep, share in ((len(states), 0.25), (3, 0.25), (1, 0.15)):
        states = sorted(states, key=lambda state: state.error)[:keep]
        states = [_iterate(search, state, total * share / len(states)) for state in states]
    return min(states, key=lambda state: state.error)


def _annealed(search: Search, allowance: float) -> list[State]:
    """Anneal random tables of the three most promising sizes, twice each."""
    count, asked = search.member.shape
    sizes = search.member.sum(axis=0).astype(int)
    width = int(sizes.max())
    widest = int((sizes == width).sum())
    used = np.flatnonzero(search.member.any(axis=1))
    promise = []
    for size in range(width, len(used) + 1):
        number = max(2, math.ceil(1.5 * widest / max(1.0, math.comb(size, width) * widest / math.comb(len(used), width))))
        promise.append((2 * math.log(number) + size * float(search.log_sizes[used].mean()), size, number))
    states = []
    for _, size, number in sorted(promise)[:3]:
        for _ in range(2):
            tables = np.zeros((number, count), dtype=bool)
            for row in tables:
                row[search.rng.permutation(used)[:size]] = True
            steps = int(allowance / 6 / (3 * asked + 1200))
            tables, _ = _anneal(search, tables, np.full(number, 1 / number), steps, 0.1 / number)
            missing = ~search.covers(tables).any(axis=0)
            tables = np.vstack([tables, search.member[:, missing].T.astype(bool)])
            start = State(tables=tables, theta=np.full(len(tables), 1 / len(tables)), error=math.inf, origin=f"annealed tables of {size}")
            states.append(_descend(search, start))
    search.left -= allowance
    return states


def polish_design(search: Search, start: State) -> State:
    """Anneal a design too large for neighbourhood descent, from a low temperature; it never gets worse."""
    steps = int(search.left / (3 * search.member.shape[1] + 1200))
    tables, theta = _anneal(search, start.tables, start.theta, steps, 0.02 / len(start.tables))
    search.left = 0.0
    cover = search.covers(tables)
    if not cover.any(axis=0).all():
        return start
    information = (cover * search.strength(tables)[:, None]).T
    theta = improve_weights(theta, information, search.coefficient, np.ones(len(tables)), 1, 15)
    error = float((search.coefficient / (information @ theta**2)).sum())
    return State(tables=tables, theta=theta, error=error, origin=start.origin) if error < start.error else start


def _anneal(search: Search, tables: Tables, theta: FloatArray, steps: int, hot: float) -> tuple[Tables, FloatArray]:
    """Exchange, add and remove single attributes at random, worse designs accepted ever more rarely.

    What no table covers counts as covered by a floor that falls to nothing.
    """
    rng, c = search.rng, search.coefficient
    tables = tables.copy()
    count = len(tables)
    strength = search.strength(tables).tolist()
    member = search.member.astype(np.int8)
    outside = list((~tables).astype(np.int8) @ member)  # of each table: attributes of each asked set outside it
    within = [(np.flatnonzero(row).tolist(), np.flatnonzero(~row).tolist()) for row in tables]
    information, eigenvalue, error, floor = np.zeros((count, len(c))), c, math.inf, 0.0
    squares: list[float] = []
    draws: list[list[float]] = []
    for step in range(steps):
        if step % _REFRESHED == 0:
            information = (np.stack(outside) == 0) * np.array(strength)[:, None]
            plain = theta**2 @ information
            floor = 0.03 * float(np.average(plain, weights=c)) * (1 - step / steps)
            for _ in range(2):
                gain = information @ (c / (theta**2 @ information + floor) ** 2)
                theta = np.maximum(theta * np.cbrt(theta * gain), 1e-9)
                theta /= theta.sum()
            squares = (theta**2).tolist()
            eigenvalue = theta**2 @ information + floor
            error = float((c / eigenvalue).sum())
            draws = rng.random((_REFRESHED, 5)).tolist()
        kind, which, out, back, luck = draws[step % _REFRESHED]
        row = int(which * count)
        inside, free = within[row]
        less = inside[int(out * len(inside))] if kind >= 0.15 and len(inside) > 1 else -1
        more = free[int(back * len(free))] if not 0.15 <= kind < 0.3 and free else -1
        changed, new_strength = outside[row], strength[row]
        if less >= 0:
            changed, new_strength = changed + member[less], new_strength * search.shape[less]
        if more >= 0:
            changed, new_strength = changed - member[more], new_strength / search.shape[more]
        own = new_strength * (changed == 0)
        new = np.maximum(eigenvalue + squares[row] * (own - information[row]), floor)
        new_error = float(c @ (1 / new))
        if new_error < error or luck < (error / new_error) ** (1 / (hot * 0.02 ** (step / steps))):
            error, eigenvalue, outside[row], information[row], strength[row] = new_error, new, changed, own, new_strength
            if less >= 0:
                tables[row, less] = False
            if more >= 0:
                tables[row, more] = True
            within[row] = np.flatnonzero(tables[row]).tolist(), np.flatnonzero(~tables[row]).tolist()
    return tables, theta


def _iterate(search: Search, start: State, allowance: float) -> State:
    """Iterated local search from one start until its operations are spent."""
    floor = search.left - allowance
    current = best = _descend(search, start)
    stale = 0
    while search.left > floor:
        changed = _perturb(search, current)
        new = _descend(search, changed) if changed is not None else None
        if changed is None:
            search.left -= _ROUND
        if new is None or not search.covers(new.tables).any(axis=0).all():
            continue
        # A slightly worse design is accepted now and then; after long without success the best one is taken up again.
        if new.error < current.error or search.rng.random() < (current.error / new.error) ** 500:
            current = new
        if new.error < best.error * (1 - 1e-9):
            best, stale = new, 0
        elif (stale := stale + 1) > 200:
            current, stale = best, 0
    return best


def _perturb(search: Search, state: State) -> State | None:
    """Change a design at random: attributes of a few tables, a table less, a mixture of two tables more, or an exchange between two."""
    rng = search.rng
    tables, theta = state.tables.copy(), state.theta.copy()
    kind, count = rng.random(), len(tables)
    if kind < 0.6 or count < 3:
        for _ in range(int(rng.integers(1, 4))):
            row = int(rng.integers(count))
            options = _neighbours(tables[row])
            tables[row] = options[int(rng.integers(len(options)))]
    elif kind < 0.75:
        row = int(rng.integers(count))
        tables, theta = np.delete(tables, row, axis=0), np.delete(theta, row)
    else:
        first, second = rng.choice(count, 2, replace=False)
        if kind < 0.9:
            mixed = np.where(rng.random(tables.shape[1]) < 0.5, tables[first], tables[second])
            tables, theta = np.vstack([tables, mixed]), np.append(theta, theta.mean())
        else:
            here, there = np.flatnonzero(tables[first] & ~tables[second]), np.flatnonzero(tables[second] & ~tables[first])
            if not (len(here) and len(there)):
                return None
            i, j = rng.choice(here), rng.choice(there)
            tables[[first, second], [i, j]] = False
            tables[[second, first], [i, j]] = True
    missing = ~search.covers(tables).any(axis=0)
    if missing.any():  # one more table for what is lost, if one does
        together = search.member[:, missing].any(axis=1)
        if not together.sum() <= max(tables.sum(axis=1).max(), search.member.sum(axis=0).max()):
            return None
        tables, theta = np.vstack([tables, together]), np.append(theta, theta.mean())
    # What was dropped may have held all the weight.
    theta = np.maximum(theta, 0.3 * theta.mean()) if theta.sum() > 0 else np.ones(len(tables))
    return State(tables=tables, theta=theta / theta.sum(), error=math.inf, origin=state.origin)


def _neighbours(row: BoolArray) -> Tables:
    """List all tables that differ by one attribute less, one more, or one exchanged."""
    inside, outside = np.flatnonzero(row).tolist(), np.flatnonzero(~row).tolist()
    pairs: list[tuple[int, int]] = [(i, -1) for i in inside if len(inside) > 1]
    pairs += [(-1, j) for j in outside] + list(itertools.product(inside, outside))
    options = np.repeat(row[None], len(pairs), axis=0)
    for option, (less, more) in zip(options, pairs, strict=True):
        if less >= 0:
            option[less] = False
        if more >= 0:
            option[more] = True
    return options


def _descend(search: Search, state: State) -> State:
    """Make the best change of one table, with its best weights, until none improves."""
    c = search.coefficient
    tables, origin = state.tables, state.origin
    cover, strength = search.covers(tables), search.strength(tables)
    theta = improve_weights(state.theta, (cover * strength[:, None]).T, c, np.ones(len(tables)), 1, 15)
    error = float((c / (theta**2 @ (cover * strength[:, None]))).sum())
    while True:
        information = cover * strength[:, None]
        moves = _best_moves(search, tables, theta, information)
        if not moves:  # one attribute: its table has no neighbour
            break
        batch = np.repeat(information[None], len(moves), axis=0)
        weights = np.repeat(theta[None], len(moves), axis=0)
        for index, (_, row, option) in enumerate(moves):
            if option is None:
                weights[index, row] = 0
            else:
                batch[index, row] = search.covers(option[None])[0] * search.strength(option[None])
        weights, errors = _improve_batch(weights / weights.sum(axis=1, keepdims=True), batch, c)
        at = int(errors.argmin())
        if not errors[at] < error * (1 - 1e-6):
            break
        error, theta = float(errors[at]), weights[at]
        _, row, option = moves[at]
        if option is not None:
            tables = tables.copy()
            tables[row] = option
        kept = theta > 1e-4 * theta.max()
        if not kept.all() and (theta[kept] ** 2 @ batch[at][kept] > 0).all():
            tables, theta = tables[kept], theta[kept]
            theta = theta / theta.sum()
        cover, strength = search.covers(tables), search.strength(tables)
    return State(tables=tables, theta=theta, error=error, origin=origin)


def _best_moves(search: Search, tables: Tables, theta: FloatArray, information: FloatArray) -> list[tuple[float, int, BoolArray | None]]:
    """Score every change of every table at fixed weights; return the best few as (error, table, new table or None for removal)."""
    c = search.coefficient
    eigenvalue = theta**2 @ information
    tiny = 1e-9 * float(eigenvalue.max())
    moves: list[tuple[float, int, BoolArray | None]] = []
    for row in range(len(tables)):
        base = eigenvalue - theta[row] ** 2 * information[row]
        options = _neighbours(tables[row])
        gained = (theta[row] ** 2 * search.strength(options))[:, None] * search.covers(options)
        errors = (1 / np.maximum(base + gained, tiny)) @ c
        moves += [(float(errors[at]), row, options[at]) for at in np.argsort(errors, kind="stable")[:3]]
        if len(tables) > 1 and float(theta[row]) < 1 - 1e-9:  # what remains must have some weight
            moves.append(((1 - float(theta[row])) ** 2 * float(c @ (1 / np.maximum(base, tiny))), row, None))
        search.left -= options.shape[0] * len(c)
    search.left -= _ROUND
    return sorted(moves, key=lambda move: move[0])[:8]


def _improve_batch(theta: FloatArray, information: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Improve the weights of several designs at once; uncovered sets count as barely covered, so that they dominate the error."""
    tiny = 1e-30
    for _ in range(12):
        eigenvalue = np.maximum(np.einsum("bm,bmt->bt", theta**2, information), tiny)
        gain = np.matmul(information, (c / eigenvalue**2)[:, :, None])[:, :, 0]
        theta = theta * np.cbrt(theta * gain)
        theta /= theta.sum(axis=1, keepdims=True)
    eigenvalue = np.maximum(np.einsum("bm,bmt->bt", theta**2, information), tiny)
    return theta, (1 / eigenvalue) @ c
