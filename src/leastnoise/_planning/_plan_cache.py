"""The cache of plans on disk.

Plans are public: this code reads and writes no data.

An entry is a file that contains the SHA-256 of a text, and the text. The name of the file is the
SHA-256 of all inputs that determine a plan: the workload with its domain, the budget and the unit,
the search, and the versions of the program and of its planning libraries. An entry is replaced in
two cases: it cannot be read, or its plan is for another workload or budget. If the folder cannot be
written, nothing is stored.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

from leastnoise._environment import CACHE, cache_folder, is_on
from leastnoise._mechanisms import Candidate, Search, choose_plan, tables_with_high_error
from leastnoise._plan import Plan, versions
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.check import InputError
from leastnoise._workload import Workload

_MOST_ENTRY = 2**26  # bytes of one plan, 64 MiB
_MOST_BYTES = 2**28  # bytes of all plans, 256 MiB; the oldest are removed
_MOST_TABLES = 2**14  # planning more tables takes no longer than reading and checking a plan
_CachedResult = TypeVar("_CachedResult")


def plan_folder() -> Path | None:
    """Return the folder of the plan cache; None if the cache is off.

    The folder is LEASTNOISE_CACHE_DIR if this variable is set, otherwise a folder in the user's
    cache folder.

    Raises:
        InputError: LEASTNOISE_CACHE is neither on nor off, or LEASTNOISE_CACHE_DIR is not absolute.
    """
    folder = cache_folder()
    if not is_on(CACHE):
        return None
    from platformdirs import user_cache_path

    return folder or user_cache_path("leastnoise", appauthor=False) / "plans"


def cache_file(
    workload: Workload, privacy: Privacy, search: Search, *further: object
) -> Path | None:
    """Return the path of a plan's cache entry; None if it is not cached.

    Plans with very many tables are not cached. If the cache is off, nothing is cached.
    """
    where = plan_folder()
    if where is None or len(workload.products) > _MOST_TABLES:
        return None
    identity = [workload.domain.to_json(), workload.to_json(), privacy.to_json()]
    text = json.dumps(
        [
            versions(),
            *identity,
            search.strategy,
            search.seconds,
            search.impossible,
            search.public,
            *further,
        ],
        sort_keys=True,
    )
    return where / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def cached_plan(
    path: Path | None, workload: Workload, privacy: Privacy, make_plan: Callable[[], Plan]
) -> Plan:
    """Return the plan in a cache file.

    If there is no plan in the file, the plan is made and stored.
    """
    cached = _read(path, lambda text: _checked_plan(text, workload, privacy))
    if cached is None:
        cached = make_plan()
        _write(path, cached.to_json)
    return cached


def cached_choice(workload: Workload, privacy: Privacy, search: Search) -> Plan:
    """Return the best plan of all strategies, from the cache or by planning.

    A new plan is stored with all other candidates.
    """
    cached = _read(
        cache_file(workload, privacy, search),
        lambda text: _checked_plan(json.loads(text)[0]["plan"], workload, privacy),
    )
    return cached or _try_strategies(workload, privacy, search)[0]


def cached_candidates(
    workload: Workload, privacy: Privacy, search: Search, *, try_all: bool = True
) -> tuple[Candidate, ...]:
    """Return the candidates of all strategies from the cache, best first.

    If there is no cache entry, the strategies are tried. With ``try_all``, the result includes
    candidates that, by a lower bound, gain almost nothing.
    """

    def parse_candidates(text: str) -> tuple[Candidate, ...]:
        """Parse a cache entry."""
        entries = [{**entry, "noise": Noise(entry["noise"])} for entry in json.loads(text)]
        plans = [
            None if entry["plan"] is None else _checked_plan(entry["plan"], workload, privacy)
            for entry in entries
        ]
        return tuple(
            Candidate(**{**entry, "plan": plan}) for entry, plan in zip(entries, plans, strict=True)
        )

    cached = _read(cache_file(workload, privacy, search), parse_candidates)
    if cached is None or (try_all and any(candidate.left_out for candidate in cached)):
        cached = _try_strategies(workload, privacy, replace(search, every=try_all))[1]
    return cached


def _try_strategies(
    workload: Workload, privacy: Privacy, search: Search
) -> tuple[Plan, tuple[Candidate, ...]]:
    """Plan with all strategies; return and store the best plan and candidates.

    Nothing is stored if a deadline ended a search, because another run may find a better plan.
    """
    best, tried = choose_plan(workload, privacy, search)
    if ratios := tables_with_high_error(best, search):
        best = replace(best, details=replace(best.details, high_errors=ratios))
    first, *other_candidates = sorted(tried, key=lambda candidate: candidate.rank)
    candidates = replace(first, plan=best), *other_candidates
    if not any(candidate.ended for candidate in tried):
        entries = [
            {
                "strategy": candidate.strategy,
                "noise": candidate.noise.value,
                "plan": candidate.plan and candidate.plan.to_json(),
                "reason": candidate.reason,
                "seconds": candidate.seconds,
                "useful_seconds": candidate.useful_seconds,
                "needless": candidate.needless,
            }
            for candidate in candidates
        ]
        _write(cache_file(workload, privacy, search), lambda: json.dumps(entries))
    return best, candidates


def _checked_plan(text: str, workload: Workload, privacy: Privacy) -> Plan:
    """Parse the plan of a cache entry, and check it like any plan file.

    The plan must be for the same workload and budget, and its expected error is computed again.
    """
    plan = Plan.from_json(text)
    if plan.workload.to_json() != workload.to_json() or plan.domain != workload.domain:
        raise InputError("The cached plan has another workload.")
    if plan.privacy != privacy:
        raise InputError("The cached plan has another budget.")
    plan = replace(plan, workload=workload)
    from leastnoise._mechanisms import mechanism_of  # slow to import, and not needed for planning

    mechanism_of(plan).prepare(plan)
    return plan


def _read(path: Path | None, parse: Callable[[str], _CachedResult]) -> _CachedResult | None:
    """Read and parse a cache entry; return None if it is missing or damaged."""
    if path is None:
        return None
    try:
        digest, _, text = path.read_text(encoding="utf-8").partition("\n")
        return parse(text) if hashlib.sha256(text.encode()).hexdigest() == digest else None
    except (OSError, InputError, KeyError, TypeError, IndexError, ValueError, RecursionError):
        return None


def _write(path: Path | None, text_of: Callable[[], str]) -> None:
    """Write a cache entry atomically, and remove the oldest entries if needed."""
    if path is None:
        return
    text = text_of()
    if len(text) > _MOST_ENTRY:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".draft")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")
            Path(draft).replace(path)
        except OSError:
            Path(draft).unlink(missing_ok=True)
        entries = sorted(
            ((entry.stat(), entry) for entry in path.parent.glob("*.json")),
            key=lambda pair: pair[0].st_mtime_ns,
            reverse=True,
        )
        sizes = accumulate(stat.st_size for stat, _ in entries)
        for (_, old), total in zip(entries, sizes, strict=True):
            if total > _MOST_BYTES:
                old.unlink(missing_ok=True)
    except OSError:
        return


def plan_from_file(path: Path) -> Plan:
    """Read a plan file."""
    advice = "Make it with `leastnoise plan SPEC --out plan.json`."
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"There is no plan at {path}. {advice}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"The plan {path} cannot be read: {type(error).__name__}. {advice}"
        ) from None
    return Plan.from_json(text)
