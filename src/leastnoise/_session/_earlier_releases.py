"""Read the earlier releases that a spec names, and check their payments."""

from collections.abc import Iterable
from pathlib import Path

from leastnoise._plan import EarlierRelease, LinearPlan, Plan, SearchPlan
from leastnoise._session._release_job import read_release
from leastnoise._trusted.check import InputError, quoted
from leastnoise._trusted.kernel import Ledger

_ADVICE = "Name releases of the same data and ledger, or leave after out. Nothing was spent."


def read_earlier_releases(folders: Iterable[Path]) -> tuple[EarlierRelease, ...]:
    """Read the measurements of the releases in ``folders``.

    Raises:
        InputError: a folder contains no finished release, or the expected error of its release
            depends on the data.
    """
    return tuple(read_release(folder).as_earlier(folder.name) for folder in folders)


def check_earlier_payments(plan: Plan | SearchPlan, ledger: Ledger | None, dataset: str) -> None:
    """Raise InputError unless the ledger of the data paid for earlier releases.

    The ledger identifies the data: changed data must have another name and another ledger. A charge
    that was entered by hand (``ledger spent``) is not accepted as payment, because it may be for
    other data.

    Args:
        plan: the plan of the new release.
        ledger: the ledger that pays for the new release; None if this ledger is yet to be created.
        dataset: the name of the data.

    Raises:
        InputError: the noise of a release came from a seed; another ledger paid for it; its plan is
            not the plan that was paid for; or it was paid in an earlier period of a budget that is
            renewed with each period.
    """
    if not isinstance(plan, LinearPlan) or not plan.earlier:
        return
    entries = {}
    if ledger is not None:
        entries = {entry.id: entry for entry in ledger.entries() if entry.kind == "release"}
    for release in plan.earlier:
        name = f"The earlier release {quoted(release.name)}"
        if not release.observation.private or not release.receipts:
            raise InputError(
                f"{name} must have secret noise. Its noise came from a seed, so it protects "
                f"nobody, and only another seeded run can use it. {_ADVICE}"
            )
        if not {*release.receipts} <= entries.keys():
            raise InputError(
                f"{name} must have been paid from the ledger of this release, the ledger of "
                f"{quoted(dataset)}: only a common ledger shows that the data are the same. It was "
                f"paid from the ledger of {quoted(release.dataset)}. {_ADVICE}"
            )
        recorded = tuple(entries[receipt].plan_digest for receipt in release.receipts)
        if recorded != release.plan_digests:
            raise InputError(
                f"{name} must have the plan that its ledger recorded. Its plan is a different one, "
                f"so its files were changed. {_ADVICE}"
            )
        for receipt in release.receipts:
            if ledger is not None and ledger.period_is_over(entries[receipt]):
                raise InputError(
                    f"{name} must belong to the present period of the ledger's budget. Its period "
                    "is over. The budget is renewed with each period because the data change. "
                    f"{_ADVICE}"
                )
