"""Describe plans and releases by facts in sections, for all displays.

Commands, the studio, reports and notebooks select from these facts, so a fact has the same words
everywhere.
"""

from leastnoise._facts import Fact, Section, describe
from leastnoise._pages import _sentences as sentences
from leastnoise._plan import LinearPlan, Plan
from leastnoise._release import Release
from leastnoise._texts import ENGLISH, Catalogue, format_size
from leastnoise._trusted.accounting import Cost, Privacy
from leastnoise._workload import Workload

_SEEDED_NOISE = "NOT PRIVATE: it came from a seed; publish no part of the release"
"""The fact about the noise of a release that protects nobody."""


@describe.register
def describe_plan(
    plan: Plan,
    catalogue: Catalogue = ENGLISH,
    privacy: Privacy | None = None,
    *,
    has_searches: bool = False,
) -> tuple[Section, ...]:
    """Return the sections of a plan: workload, error, privacy and rows.

    Args:
        plan: the plan.
        catalogue: the language and the display names.
        privacy: the privacy of plan and guard, as one budget; None for the privacy of the plan.
        has_searches: whether searches found categories or bounds for the plan's domain.
    """
    published = sentences.published_part(plan, has_searches=has_searches)
    return describe_draft(
        plan.workload, privacy or plan.privacy, plan, catalogue, plan.cost(), published
    )


def describe_draft(
    workload: Workload,
    privacy: Privacy | None,
    plan: Plan | None,
    catalogue: Catalogue,
    cost: Cost | None = None,
    covered_part: str = "release",
) -> tuple[Section, ...]:
    """Return those sections of `describe_plan` whose facts are known already.

    Args:
        workload: the queries.
        privacy: the privacy of everything that is published; None before it is known.
        plan: a plan of the workload; None before there is one.
        catalogue: the language and the display names.
        cost: the cost of everything; None before it is known.
        covered_part: the part that ``privacy`` covers, as `published_part` returns it.
    """
    return (
        Section("workload", (_describe_size(workload, len(workload.products), catalogue),)),
        Section("error", _describe_error(plan, catalogue)),
        Section(
            "privacy",
            (
                *_describe_privacy(privacy, cost, covered_part, catalogue),
                *_describe_earlier(plan, catalogue),
            ),
        ),
        Section("rows", _describe_rows(workload, plan, catalogue)),
    )


@describe.register
def describe_release(release: Release, catalogue: Catalogue = ENGLISH) -> tuple[Section, ...]:
    """Return the sections of a release: workload, privacy, error and notices."""
    plan = release.plan
    published = sentences.published_part(plan, has_searches=bool(release.options.searches))
    privacy = _describe_privacy(release.privacy, plan.cost(), published, catalogue)
    return (
        Section("workload", (_describe_size(release.workload, len(release.tables), catalogue),)),
        Section("privacy", privacy),
        Section("error", _describe_error(plan, catalogue)),
        Section("notices", _describe_notices(release, catalogue)),
    )


def _describe_notices(release: Release, catalogue: Catalogue) -> tuple[Fact, ...]:
    """Return facts about the row limit of units, and about noise from a seed."""
    facts = []
    row_limit = sentences.describe_row_limit(release, catalogue)
    if row_limit:
        facts.append(Fact("row_limit", catalogue.say("col_answers"), row_limit))
    if not release.private:
        facts.append(Fact("noise", catalogue.say("s_noise"), _SEEDED_NOISE))
    return tuple(facts)


def _fact(key: str, text: str, catalogue: Catalogue) -> Fact:
    """Return a fact with its label in the language of the catalogue."""
    return Fact(key, catalogue.say(f"fact_{key}"), text)


def _describe_size(workload: Workload, number_of_tables: int, catalogue: Catalogue) -> Fact:
    """Return the fact that states the numbers of answers and tables."""
    return _fact("size", format_size(workload.rows, number_of_tables, catalogue), catalogue)


def _describe_error(plan: Plan | None, catalogue: Catalogue) -> tuple[Fact, ...]:
    """Return facts on the strategy and its error relative to the lower bound."""
    if plan is None:
        return ()
    strategy = Fact("strategy", catalogue.say("s_strategy"), plan.strategy)
    ratio = sentences.error_over_bound(plan)
    if ratio is None:
        return (strategy,)
    error = _fact("error_ratio", sentences.format_ratio(ratio, catalogue), catalogue)
    return (error, strategy)


def _describe_privacy(
    privacy: Privacy | None, cost: Cost | None, covered_part: str, catalogue: Catalogue
) -> tuple[Fact, ...]:
    """Return facts on the budget, the privacy unit and the risk."""
    if privacy is None:
        return ()
    texts = {
        "budget": sentences.format_budget(privacy, catalogue),
        "protects": sentences.name_protected_unit(privacy, catalogue),
        "risk": sentences.describe_guessing_chance(privacy, catalogue, cost, covered_part),
    }
    return tuple(_fact(key, text, catalogue) for key, text in texts.items())


def _describe_earlier(plan: Plan | None, catalogue: Catalogue) -> tuple[Fact, ...]:
    """Return the fact that names the earlier releases of a plan, if it has any."""
    if not isinstance(plan, LinearPlan) or not plan.earlier:
        return ()
    return (_fact("after", sentences.describe_earlier(plan, catalogue), catalogue),)


def _describe_rows(workload: Workload, plan: Plan | None, catalogue: Catalogue) -> tuple[Fact, ...]:
    """Return facts on clipped values, omitted rows and public counts."""
    texts = [
        ("values", sentence) for sentence in sentences.list_sum_contributions(workload, catalogue)
    ]
    if plan is not None:
        dropped = sentences.list_dropped_rows(plan, catalogue)
        texts += [("left_out", sentence) for sentence in dropped]
        for key, values in sentences.format_public_facts(plan, catalogue).items():
            texts.append(("not_protected", catalogue.say(key, values=values)))
    return tuple(_fact(key, text, catalogue) for key, text in texts)
