"""Plan, release, compare: the one place that wires adapters, planner, kernel, estimate and release together."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise import _adapters
from leastnoise._accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP, SeriesCost
from leastnoise._check import Exact, InputError, one_of, refuse
from leastnoise._kernel import Ledger, SeededEntropy, Series
from leastnoise._mechanisms import (
    BY_NAME,
    SECONDS,
    Candidate,
    Run,
    Search,
    candidates,
    mechanism_for,
    mechanism_of,
    planning_seconds,
    sharpened,
    terms_of,
    too_large,
)
from leastnoise._plan import Plan, guard_share, with_guard, without_guard
from leastnoise._planner import PLANNERS
from leastnoise._progress import planning_shown, rows_shown
from leastnoise._release import LEVEL, Options, Release, check_options, check_target, checked_level, draft, fill_draft
from leastnoise._session._accounts import IN_MEMORY, paying, settle, warn_of_unfinished
from leastnoise._session._before import check_searched, ledger_for, paid_before
from leastnoise._session._cells import check_cell, protected
from leastnoise._session._finish import Asked, finish_one, publish, read_table, room_for
from leastnoise._session._guard import guard_terms, guarded, rehearsed
from leastnoise._session._kept import all_tried, best_tried, kept_plan, place_of
from leastnoise._session._memory import check_memory
from leastnoise._session._objectives import OBJECTIVES
from leastnoise._session._spec import Spec
from leastnoise._session._targets import Least, least, stated
from leastnoise._threads import one_thread
from leastnoise._workload import Workload


@one_thread()
def plan(
    workload: Workload,
    budget: Budget | Privacy | Least,
    *,
    strategy: str = "auto",
    objective: str = "total",
    level: float = LEVEL,
    seconds: float = SECONDS,
    guard: Exact | None = None,
    progress: Callable[[str], None] | None = None,
) -> Plan:
    """Plan a release: public, without data, and with its expected error.

    Args:
        workload: what is asked.
        budget: PureDP, ApproxDP or ZCDP, where every row is a privacy unit that may be added or removed; else a Privacy of one of them,
            which says the unit and the neighbours; or Least, for the least budget that keeps the targets of the workload.
        strategy: "auto" for the least expected error, or a name; a data-aware mechanism such as "dawa" only by its name.
        objective: "total" for the least total squared error; "worst" for the least of the largest ratio of a table's error to its target,
            or without targets to its error if it alone were planned; "relative" for errors relative to the tables' public sizes.
        level: of the intervals that margins are about, for the objective "worst"; `Least` has its own.
        seconds: about how many CPU seconds of one core "auto" may take, by estimates: the plan is the same on every machine. More may find
            less error; `compare` says what was left out.
        guard: a share such as "1/100" of the budget that is left for `release` to pay its guard with; the plan has the rest.
        progress: called with the name of every strategy before it is tried. Without it, a notebook shows below its cell what takes over a
            second.

    Returns:
        The plan, from the user's cache folder where it was made before; see ``expected_error()``, ``lower_bound()`` and ``to_json()``.
        That of a data-aware mechanism promises no error:
        ``details["reference"]`` has that of the best data-independent plan.

    Raises:
        InputError: something of the above cannot be used.

    >>> made = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> made.strategy, round(made.expected_error().total_squared_error, 2)
    ('identity', 3.68)
    """
    share, asked = guard_share(guard), _workload(workload)
    privacy = budget if isinstance(budget, Least) else without_guard(_privacy(budget), share)
    search = Search(strategy, seconds)
    with planning_shown(progress, lambda: expected_seconds(asked, privacy, search, objective)) as tell:
        return planned(asked, privacy, replace(search, tell=tell), objective, checked_level(level))


def expected_seconds(workload: Workload, privacy: Privacy | Least, search: Search, objective: str = "total") -> float:
    """About how many CPU seconds planning takes; 0 where nobody knows, as for targets, which are planned for several times.

    >>> expected_seconds(marginals(Domain(a=["x", "y"]), ways=1), Privacy(PureDP(1)), Search("identity"))
    0.0
    """
    said = stated(privacy)
    return 0.0 if said is None or objective != "total" else planning_seconds(workload, said, search)


def _workload(workload: object) -> Workload:
    if not isinstance(workload, Workload):
        raise refuse("workload", type(workload).__name__, "a workload, such as leastnoise.marginals(domain, ways=2)")
    return workload


def _privacy(budget: object) -> Privacy:
    if isinstance(budget, Privacy):
        return budget
    if isinstance(budget, (PureDP, ApproxDP, ZCDP)):
        return Privacy(budget)
    if isinstance(budget, Least):
        raise refuse("budget", f"the least {budget.of}", "a budget: strategies are compared by what they make of the same one")
    raise refuse("budget", budget, "PureDP(epsilon), ApproxDP(epsilon, delta), ZCDP(rho) or a Privacy with one of them")


def planned(
    workload: Workload,
    privacy: Privacy | Least,
    search: Search,
    objective: str = "total",
    level: float = LEVEL,
) -> Plan:
    """The plan of the mechanism that a strategy asks for: that of least expected error, or by name.

    Args:
        workload: what is asked.
        privacy: the budget to plan for, or what is to be least.
        search: which strategies are tried, and how long.
        objective: "total", "worst" or "relative".
        level: of the intervals that margins are about, for "worst".

    Raises:
        InputError: no such strategy, or it cannot be used, or not for this objective.

    >>> planned(queries(Domain(age=Integers(0, 15)), age="prefix"), Privacy(PureDP(1)), Search("dawa")).measurements is None
    True
    """
    one_of("objective", objective, ("total", *OBJECTIVES))
    check_cell(workload, privacy)
    strategy = search.strategy
    if strategy in BY_NAME and (objective != "total" or stated(privacy) is None):
        raise refuse("strategy", strategy, "one whose error is known beforehand", "Targets and objectives are about promised errors.")
    try:
        if isinstance(privacy, Least):  # not kept: no plan shows that its budget is the least
            if objective != "total":
                raise refuse("objective", objective, "left out where the budget is the least that keeps every target")
            return _chosen_for(least(workload, privacy, search).plan, "least")
        if (objective, strategy) == ("total", "auto"):
            return best_tried(workload, privacy, search)
        place = place_of(workload, privacy, search, objective, level)
        return kept_plan(place, workload, privacy, lambda: _made(workload, privacy, search, objective, level))
    except MemoryError as error:
        raise InputError(f"This workload cannot be planned: {too_large(error)}.") from None


def _made(workload: Workload, privacy: Privacy, search: Search, objective: str, level: float) -> Plan:
    if objective != "total":
        return _chosen_for(OBJECTIVES[objective](workload, privacy, search, level), objective)
    return mechanism_for(search.strategy, workload).plan(workload, privacy, search)


def _chosen_for(made: Plan, objective: str) -> Plan:
    """A plan that says what it was chosen for, where that is not the least total squared error."""
    return replace(made, details={**made.details, "objective": objective})


def planned_spec(what: Spec, progress: Callable[[str], None] | None = None) -> Plan:
    r"""The plan that a spec asks for.

    Args:
        what: the spec.
        progress: called with the name of every strategy before it is tried.

    Raises:
        InputError: as ``planned``.

    >>> text = "[privacy]\nepsilon = 1\n[domain.a]\nsize = 2\n[[workload]]\nmarginals = { ways = 1 }"
    >>> planned_spec(parse_spec(text, pathlib.Path("."))).strategy
    'identity'
    """
    return planned(what.workload, what.planned_privacy, what.search(progress), what.objective, what.options.level)


@one_thread()
def compare(
    workload: Workload,
    budget: Budget | Privacy | Least,
    progress: Callable[[str], None] | None = None,
    *,
    seconds: float = SECONDS,
    by_name: bool = False,
) -> tuple[Candidate, ...]:
    """Every strategy side by side, least expected error first; those that cannot be used come last, with the reason.

    Args:
        workload: what is asked.
        budget: PureDP, ApproxDP or ZCDP, where every row is a privacy unit; else a Privacy of one of them.
        progress: called with the name of every strategy before it is tried.
        seconds: about how many CPU seconds of one core all of them together may take, by estimates.
        by_name: also try the strategies that are never chosen by themselves.

    Raises:
        InputError: something of the above cannot be used.

    >>> [c.strategy for c in ln.compare(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1)) if c.plan]
    ['identity', 'workload', 'marginals']
    """
    workload, privacy = _workload(workload), _privacy(budget)
    check_cell(workload, privacy)
    search = Search(seconds=seconds)
    with planning_shown(progress, lambda: expected_seconds(workload, privacy, search)) as tell:
        tried = [*all_tried(workload, privacy, replace(search, tell=tell))]
        for name in (one.name for one in PLANNERS.values() if by_name and not one.automatic):
            tried += candidates(workload, privacy, name, tell=tell)
    return tuple(sorted(sharpened(tried), key=lambda candidate: candidate.total))


@one_thread()
@rows_shown("measuring, estimating and writing")
def release(
    plan: Plan,
    source: Any,
    *,
    ledger: str | Path | Ledger | None = None,
    out: str | Path | None = None,
    options: Options | None = None,
    dataset: str | None = None,
    seed: int | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Release:
    """Measure, estimate and answer; pay for it first.

    Args:
        plan: what to do, from ``plan``.
        source: .csv, .csv.gz or .parquet files (a path, folder or pattern); a pandas, Polars, PyArrow, DuckDB or Spark table; or a
            DatabaseTable; or two of these, Joined.
        ledger: the ledger of the data set, or its file; made with the plan's budget if the file does not exist. Needed without a ``seed``.
        out: a directory to write, which must not exist yet; None to write nothing.
        options: the level of the intervals, answers beside the unbiased ones, what is written and how, and the guard: see `Options`.
        dataset: the data set's name in the ledger; None for the source's file name.
        seed: draw reproducible noise that protects nobody, for tests and experiments; nothing is paid, and the release says so.
        progress: called with the rows read so far and their number if it is known. Without it, a notebook shows
            below its cell what takes over a second.

    Returns:
        The release; its ``answers`` are a data frame.

    Raises:
        InputError: something of the above cannot be used; nothing was spent.
        BudgetError: the ledger has too little left; nothing was spent.
        LedgerError: the ledger cannot be used, is an older copy than a release that was paid from it, or is not there and another one knows
            the data set; nothing was spent.
        PaidError: something failed after payment; the message says whether ``resume`` finishes the release.

    Guarantees: the plan's declared budget is on the ledger's disk before any noise is drawn, and what was drawn is there before anything is
        computed from it. Killed at any instant, the release is paid and absent, paid and resumable, or paid and whole.

    Edge cases: a release of this plan for this directory that was paid and stopped is finished, with the measurement that it has; nothing
        is paid again. Without ``out``, a warning names each earlier release that can be finished.

    >>> made = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> release = ln.release(made, pd.DataFrame({"sex": ["F", "M", "M"]}), seed=7)
    >>> release.observation.private
    False
    """
    if not isinstance(plan, Plan):
        raise refuse("plan", type(plan).__name__, "a plan, from leastnoise.plan or Plan.from_json")
    run = mechanism_of(plan).ready(plan)
    asked = Options() if options is None else options
    if not isinstance(asked, Options):
        raise refuse("options", type(asked).__name__, "leastnoise.Options(...)")
    check_options(plan, asked)
    target = None if out is None else check_target(out)
    check_memory(plan, written=target is not None)
    if seed is not None:
        if ledger is not None:
            raise InputError("A seeded release pays nothing, because its noise protects nobody; leave out the ledger or the seed.")
        return _simulated(plan, run, source, SeededEntropy(seed), asked, target, progress)
    share = guard_share(asked.guard)
    book = ledger_for(ledger, source, dataset, [] if target is None else [target.parent])
    if book is not None:
        settle(book)
        if target is None:
            warn_of_unfinished(book)
        paid = None if target is None else paid_before(book, plan.digest(), str(target))
        if paid is not None:
            return finish_one(book, paid, source, options=asked, progress=progress).release
        check_affordable(book, plan, share)
    name = dataset or _adapters.dataset_name(source) or "data" if book is None else book.dataset
    check_searched(asked.searches, name)
    with nullcontext() if target is None else draft(target) as place:
        table = read_table(plan, source, progress, usage=share is not None)
        if book is None:  # another process may have made it meanwhile
            book = (
                Ledger.open(str(ledger))
                if Path(str(ledger)).exists()
                else Ledger.create(str(ledger), name, protected(with_guard(plan.privacy, share)))
            )
        found = {} if share is None else guarded(book, table, plan.privacy, share).facts()
        kept = Asked(asked, _adapters.location(source), found, _adapters.join_facts(source))
        with paying(book, room_for(plan)) as process:
            output = IN_MEMORY if target is None else str(target)
            facts = {"output": output, "description": _described(plan), "options": kept.to_json(), "run": process}
            series = Series.paid(terms_of(plan), table, book, **facts)
            return publish(run(series), book, kept, place, series)


def _simulated(
    plan: Plan,
    run: Run,
    source: Any,
    entropy: SeededEntropy,
    options: Options,
    target: Path | None,
    progress: Callable[[int, int | None], None] | None,
) -> Release:
    """A release that protects nobody."""
    share, found = guard_share(options.guard), {}
    with nullcontext() if target is None else draft(target) as place:
        table = read_table(plan, source, progress, usage=share is not None)
        if share is not None and table.usage is not None:
            series = Series.simulated(guard_terms(plan.privacy, share), table.usage, entropy)
            found = rehearsed(series, plan.privacy, share).facts()
        made = Asked(options, guard=found, joined=_adapters.join_facts(source)).build(run(Series.simulated(terms_of(plan), table, entropy)))
        if place is not None:
            fill_draft(made, place)
            place.publish()
        return made


def check_affordable(book: Ledger, plan: Plan, share: Fraction | None = None) -> None:
    """Refuse early what the ledger would refuse to pay, before the data are read.

    Args:
        book: the ledger.
        plan: what would be paid for.
        share: of the whole, for a guard.

    Raises:
        InputError, BudgetError, LedgerError: as ``Ledger.reserve``.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = Ledger.create(Path(folder, "people.ledger"), "people", Privacy(PureDP("1/2")))
    ...     check_affordable(book, plan(marginals(Domain(sex=["F", "M"]), ways=1), PureDP(1)))
    Traceback (most recent call last):
    leastnoise._check._errors.BudgetError: The release asks for epsilon = 1, but of epsilon = 0.5 ...
    """
    if share is None:
        book.check(plan.cost(), plan.privacy)
    else:
        whole = with_guard(plan.privacy, share)
        book.check(SeriesCost(whole.budget), whole)


def _described(plan: Plan) -> str:
    tables = len(plan.workload.products)
    return f"{tables} table{'s' * (tables != 1)}, {plan.strategy}"
