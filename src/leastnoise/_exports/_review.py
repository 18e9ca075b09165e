"""A file for reviewers after the topics of NIST SP 800-226, in our own words: answered from the manifest or marked for people."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leastnoise._exports._export import Export, Published

Manifest = Mapping[str, Any]
TEMPLATE = Path(__file__).with_name("templates") / "review.md"


def _cost(manifest: Manifest) -> str:
    cost, receipt = manifest["privacy"]["cost"], manifest["receipt"] or {}
    within = "within" if cost["within_budget"] else "NOT within"
    said = f"The queries cost {cost['in_words']}, computed from their integers and {within} what was planned for them."
    if "guard_charge" in receipt:
        said += f" A guard counted rows first and cost {receipt['guard_charge']} more, {receipt['guard_share']} of the whole."
    return said


def _unit(unit: Manifest) -> str:
    second = f" {unit['second_table']}" if "second_table" in unit else ""
    if unit["column"] is None:
        return f"One row; nothing links rows of one person.{second}"
    said = f"All rows of one value of the column '{unit['column']}', of which at most {unit['max_rows']} are used"
    if "max_per_cell" in unit:
        said += f", and at most {unit['max_per_cell']['rows']} in one cell of {' x '.join(unit['max_per_cell']['attributes'])}"
    return f"{said}.{second}"


def _ledger(receipt: Manifest) -> str:
    if "ledger" not in receipt:
        return "No ledger paid for this release."
    return (
        f"Payment {receipt['number']} in the ledger '{receipt['ledger']}' of the data set '{receipt['dataset']}' (charge: "
        f"{receipt['charge']}). The ledger refuses what exceeds the data set's budget, and was charged before noise was drawn."
    )


def _errors(manifest: Manifest) -> str:
    tables, level = manifest["answers"]["tables"], manifest["intervals"]["level"]
    if isinstance(tables, str):
        return f"Standard errors of {manifest['answers']['number_of_tables']} tables are {tables} (column rmse)."
    units = {"row": "rows", "unit": "units"}
    rows = [
        f"- {table['name']}: {table['rmse']:.4g} {units.get(table['unit'], 'in the unit of the measure')}, {table['answers']} answers"
        for table in tables
    ]
    return f"Typical standard error of an answer (intervals cover {100 * level:g}%):\n\n" + "\n".join(rows)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def review(published: Published) -> str:
    """The questions with their answers, as Markdown."""
    manifest = published.manifest
    privacy, plan, times = manifest["privacy"], manifest["plan"], manifest["expected_error"]["times_the_least_possible"]
    parameters = ", ".join(f"{name} = {value}" for name, value in privacy["parameters"].items())
    seeded = "NOT PRIVATE: the noise came from a seed. This release must not be published."
    looked = "Yes, by noisy steps that were paid for within the budget; what they chose is in the manifest (plan.outcome)."
    facts = {
        "written": manifest["written"],
        "promise": privacy["promise"],
        "neighbours": privacy["unit"]["in_words"],
        "strategy": plan["strategy"],
        "plan_digest": plan["digest"],
        "number_of_answers": manifest["answers"]["number_of_answers"],
        "number_of_tables": manifest["answers"]["number_of_tables"],
        "note": manifest["post_processing"]["note"],
        "rows_outside": manifest["domain"]["rows_outside"],
        "digest": published.release.plan_digest,
        "warned": "" if published.release.private else f"\n\n**{manifest['warning']}**",
        "definition": f"{_sentence(privacy['definition'])}, {parameters}",
        "cost": _cost(manifest),
        "unit": _unit(privacy["unit"]),
        "public": "is not taken as public" if privacy["neighbours"] == "add_remove" else "is taken as public",
        "ledger": _ledger(manifest["receipt"] or {}),
        "noise": _sentence(plan["mechanism_in_words"]),
        "software": ", ".join(f"{name} {version}" for name, version in manifest["versions"].items()),
        "randomness": "The noise came from the operating system's generator." if manifest["private"] else seeded,
        "chosen": looked if "outcome" in plan else "Not by the program: the plan was made without data.",
        "rules": "\n".join(f"- {rule}" for rule in manifest["domain"]["rules"]),
        "errors": _errors(manifest),
        "least": "Not known for this release." if times is None else f"At most {times:.3f} times the least possible error at this budget.",
        "not_covered": "\n".join(f"- {text}" for text in manifest["intervals"]["does_not_cover"]),
        # where options are written as one value, the contact is among them
        "contact": (manifest.get("options") or manifest.get("report") or {}).get("contact", "") or "No contact is named in the release.",
    }
    return TEMPLATE.read_text(encoding="utf-8") % facts


REVIEW = Export("review", ".md", "a file for reviewers, after NIST SP 800-226", review)
