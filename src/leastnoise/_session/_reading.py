"""Releases that were written, read back by the mechanism that made them: as they are, in another form, or into a ledger."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from leastnoise._accounting import Cost, SeriesCost
from leastnoise._check import InputError, one_of, quoted, refuse
from leastnoise._estimate import Outcome
from leastnoise._exports import EXPORTS, Published
from leastnoise._kernel import Entry, Ledger
from leastnoise._measurements import Observation
from leastnoise._mechanisms import mechanism_of
from leastnoise._plan import Plan, measurements_from_value, read, read_json, values_from_json
from leastnoise._release import FORMAT, Options, Release, build, found_there, read_categories, sha256
from leastnoise._session._ledgers import receipt_in
from leastnoise._stopped import note_run


def read_release(directory: str | os.PathLike[str]) -> Release:
    """Read a release that `write` made; its answers are computed again from the measurements.

    Args:
        directory: the release.

    Raises:
        InputError: no release is there, one of another format, or its measurements are not those of its manifest.

    >>> ln.read_release("/nowhere-at-all/release")
    Traceback (most recent call last):
    ...
    leastnoise._check._errors.InputError: There is no release in ...
    """
    path = Path(directory).expanduser()
    where = "Name the directory that leastnoise release wrote, the one with manifest.json."
    try:
        value: dict[str, Any] = read_json((path / "manifest.json").read_text(encoding="utf-8"))
        if value["format"] != FORMAT:
            wrote = quoted(value.get("versions", {}).get("leastnoise", "unknown"))
            raise refuse(
                "the format of a release", value["format"], str(FORMAT), f"It was written by leastnoise {wrote}; read it with that."
            )
        known = {entry["path"]: entry["sha256"] for entry in value["files"]}
        texts = {}
        for name in ("measurements/plan.json", "measurements/observation.json"):
            if sha256(path / name) != known[name]:
                raise InputError(
                    f"The release in {str(path)!r} was changed: {name} is not the file that its manifest describes. Use an intact copy."
                )
            texts[name] = (path / name).read_text(encoding="utf-8")
        receipt = {name: entry for name, entry in (value["receipt"] or {}).items() if name != "id"}
        options = Options(**value["options"]) if "options" in value else _earlier_options(value)
    except OSError:
        raise InputError(f"There is no release in {str(path)!r}, or it cannot be read. {where}") from None
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InputError(f"The release in {str(path)!r} is damaged: its manifest cannot be understood. {where}") from None
    return build(outcome_from_json(texts["measurements/plan.json"], texts["measurements/observation.json"]), options, receipt)


def _earlier_options(value: Mapping[str, Any]) -> Options:
    """The options of a release of an earlier version, whose manifest does not list them."""
    columns, page = list(value["post_processing"]["columns"]), value.get("report", {})
    return Options(
        level=value["intervals"]["level"],
        non_negative="answer_non_negative" in columns,
        integer="answer_integer" in columns,
        nnls="answer_nnls" in columns,
        local_non_negative="answer_local" in columns,
        covariances=[str(entry["query"]) for entry in value.get("covariances", {}).get("tables", [])],
        language=page.get("language", "en"),
        contact=page.get("contact", ""),
    )


def outcome_from_json(plan: str, observation: str) -> Outcome:
    """Read the two texts that a release keeps of its measurements."""
    made = Plan.from_json(plan)
    return read(lambda: _outcome(made, read_json(observation)), "observation", "Use an intact copy of the release.")


def _outcome(plan: Plan, value: Mapping[str, Any]) -> Outcome:
    if value["plan_digest"] != plan.digest():
        raise InputError("This observation belongs to another plan. Read it with the plan that lies beside it.")
    measurements, facts = plan.measurements, value.get("outcome", {})
    if "data_aware" in plan.details:  # as earlier releases of the program wrote what was decided on the way: as a plan of its own
        facts = plan.details["data_aware"]
        details = {"mechanism": plan.measured().noise.value, "steps": facts["steps"]}
        plan = replace(plan, measurements=None, details=details)
    elif measurements is None:
        measurements = measurements_from_value(value["measurements"])
    if measurements is None or measurements.domain != plan.domain:
        raise InputError("What was measured is of another domain than the plan. Use an intact copy of the release.")
    values = values_from_json(measurements, value["values"])
    finding = mechanism_of(plan).finding(facts)
    outcome = Outcome(plan, Observation(measurements, values, value["receipt"], bool(value["private"])), finding)
    outcome.estimator()  # refuses now what is not of such a finding
    return outcome


def export(directory: str | os.PathLike[str], form: str) -> str:
    """A release that was written, as a text for other people or programs.

    Args:
        directory: the release.
        form: ``review`` (Markdown after NIST SP 800-226; what only people can answer is marked), ``registry`` (YAML for the registry of
            deployments of differential privacy), ``mbi`` (JSON with the measurements as mbi takes them) or ``notebook``
            (for Jupyter; Quarto renders it too).

    Raises:
        InputError: another form, no release, or one without what the form needs.

    Guarantees: post-processing of what was published; it reads no data and costs nothing. The privacy loss that it states is that of all
        that was published, a guard's share included.

    >>> ln.export("/nowhere-at-all/release", "revue")
    Traceback (most recent call last):
    leastnoise._check._errors.InputError: the form of an export must be one of 'review', 'registry', 'mbi', 'notebook'; ...
    """
    chosen = EXPORTS[one_of("the form of an export", form, tuple(EXPORTS))]
    release = read_release(directory)
    path = Path(directory).expanduser()
    manifest = read_json((path / "manifest.json").read_text(encoding="utf-8"))  # `read_release` has read it
    try:
        return chosen(Published(release, manifest, str(path)))
    except KeyError:
        raise InputError(f"The release in {str(path)!r} is damaged: its manifest cannot be understood. Use an intact copy.") from None


def enter_release(ledger: Ledger, release: str | Path, note: str = "") -> Entry:
    """Enter what a release, or a search for categories, cost into a ledger that does not know it."""
    directory = Path(release).absolute()
    if found_there(directory):
        categories = read_categories(directory)
        private, privacy, digest = categories.private, categories.plan.privacy, categories.plan.digest()
        cost: Cost = SeriesCost(privacy.budget)
    else:
        made = read_release(release)
        private, privacy, digest, cost = made.observation.private, made.plan.privacy, made.plan_digest, made.plan.cost()
    receipt = receipt_in(directory)
    if not private or not receipt.get("id"):
        raise InputError(f"The release in {str(directory)!r} was paid by no ledger, because it is not private. There is nothing to enter.")
    paid_from = f"paid from {receipt.get('ledger')}, release {receipt.get('number')}"
    if all(entry.id != receipt["id"] for entry in ledger.entries()):
        note_run(ledger.path.absolute(), str(receipt["id"]))
    try:
        written_on = date.fromisoformat(json.loads((directory / "manifest.json").read_text(encoding="utf-8"))["written"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"The release in {str(directory)!r} is damaged: its manifest does not say when it was written.") from None
    return ledger.add_spent(
        privacy,
        cost,
        receipt=str(receipt["id"]),
        output=str(directory),
        plan_digest=digest,
        note=note or paid_from,
        on=written_on,
    )
