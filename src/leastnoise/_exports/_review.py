"""A file for reviewers after the topics of NIST SP 800-226, in our own words: answered from the manifest or marked for people."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from leastnoise._exports._export import FILL_IN, Export, Published

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a review."""

    topic: str
    text: str
    answer: Callable[[Manifest], str] | None = None
    people: str = ""


def _definition(manifest: Manifest) -> str:
    privacy = manifest["privacy"]
    parameters = ", ".join(f"{name} = {value}" for name, value in privacy["parameters"].items())
    return f"{privacy['definition'][:1].upper()}{privacy['definition'][1:]}, {parameters}. {privacy['promise']}"


def _cost(manifest: Manifest) -> str:
    cost, receipt = manifest["privacy"]["cost"], manifest["receipt"] or {}
    within = "within" if cost["within_budget"] else "NOT within"
    said = f"The queries cost {cost['in_words']}, computed from their integers and {within} what was planned for them."
    if "guard_charge" in receipt:
        said += f" A guard counted rows first and cost {receipt['guard_charge']} more, {receipt['guard_share']} of the whole."
    return said


def _unit(manifest: Manifest) -> str:
    unit = manifest["privacy"]["unit"]
    second = f" {unit['second_table']}" if "second_table" in unit else ""
    if unit["column"] is None:
        return f"One row; nothing links rows of one person.{second}"
    said = f"All rows of one value of the column '{unit['column']}', of which at most {unit['max_rows']} are used"
    if "max_per_cell" in unit:
        said += f", and at most {unit['max_per_cell']['rows']} in one cell of {' x '.join(unit['max_per_cell']['attributes'])}"
    return f"{said}.{second}"


def _neighbours(manifest: Manifest) -> str:
    public = "is not taken as public" if manifest["privacy"]["neighbours"] == "add_remove" else "is taken as public"
    return f"Tables of which {manifest['privacy']['unit']['in_words']}. The number of units {public}."


def _ledger(manifest: Manifest) -> str:
    receipt = manifest["receipt"] or {}
    if "ledger" not in receipt:
        return "No ledger paid for this release."
    return (
        f"Payment {receipt['number']} in the ledger '{receipt['ledger']}' of the data set '{receipt['dataset']}' (charge: "
        f"{receipt['charge']}). The ledger refuses what exceeds the data set's budget, and was charged before noise was drawn."
    )


def _mechanism(manifest: Manifest) -> str:
    plan = manifest["plan"]
    noise = plan["mechanism_in_words"]
    return (
        f"{noise[:1].upper()}{noise[1:]}, on whole-number queries chosen by the strategy '{plan['strategy']}'. Sensitivity and "
        "cost are computed from those integers, never in floating point, and the noise is drawn in whole numbers."
    )


def _implementation(manifest: Manifest) -> str:
    made = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    return f"{made}; plan {manifest['plan']['digest']}. Every file of the release is listed in the manifest with its SHA-256."


def _randomness(manifest: Manifest) -> str:
    if manifest["private"]:
        return "The noise came from the operating system's generator."
    return "NOT PRIVATE: the noise came from a seed. This release must not be published."


def _chosen(manifest: Manifest) -> str:
    if "outcome" in manifest["plan"]:
        return "Yes, by noisy steps that were paid for within the budget; what they chose is in the manifest (plan.outcome)."
    return "Not by the program: the plan was made without data."


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


def _least(manifest: Manifest) -> str:
    times = manifest["expected_error"]["times_the_least_possible"]
    return "Not known for this release." if times is None else f"At most {times:.3f} times the least possible error at this budget."


def _files(manifest: Manifest) -> str:
    return (
        f"{manifest['answers']['number_of_answers']} answers in {manifest['answers']['number_of_tables']} tables, the noisy measurements "
        "that they were computed from, the plan, and a report. What each published field depends on is listed in the program's "
        "documentation, page 'The promise'."
    )


def _contact(manifest: Manifest) -> str:
    # where options are written as one value, the contact is among them
    contact = (manifest.get("options") or manifest.get("report") or {}).get("contact", "")
    return contact or "No contact is named in the release."


QUESTIONS: tuple[Question, ...] = (
    Question("Privacy parameters", "Which definition of privacy holds, with which parameters, for all that is published?", _definition),
    Question(
        "Privacy parameters",
        "Who chose the parameters, and why are they small enough for these data?",
        people="the harm that could follow, and comparable releases",
    ),
    Question("Privacy parameters", "What do the published results cost, and is that within the budget?", _cost),
    Question("Unit of privacy", "Whose data does the guarantee protect: what is one unit?", _unit, "that a unit is a whole person here"),
    Question("Unit of privacy", "Which two data sets are hidden from each other?", _neighbours),
    Question(
        "Composition",
        "What else was published about the same people, and is it counted?",
        _ledger,
        "releases outside this ledger, and whether the unit, the budget's period and the data set are the same people",
    ),
    Question("Algorithms and correctness", "Which mechanism made the results, and how is its sensitivity known?", _mechanism),
    Question("Algorithms and correctness", "Which software ran, and what was produced?", _implementation, "who vetted it and its proofs"),
    Question("Algorithms and correctness", "Where did the randomness come from?", _randomness),
    Question(
        "Algorithms and correctness",
        "Was anything chosen by looking at the data?",
        _chosen,
        "that no category, bound, bin or table was chosen from the data, and nothing was tuned on them",
    ),
    Question(
        "Algorithms and correctness",
        "How are values bounded before they are counted or summed?",
        lambda manifest: "\n".join(f"- {rule}" for rule in manifest["domain"]["rules"]),
        "the public source of each list and bound",
    ),
    Question("Utility", "How large are the errors?", _errors),
    Question("Utility", "How near is that to the least possible?", _least),
    Question(
        "Utility",
        "What do the error bars leave out?",
        lambda manifest: "\n".join(f"- {text}" for text in manifest["intervals"]["does_not_cover"]),
    ),
    Question("Utility", "Are the results exact enough for their use?", people="the use, and what a wrong decision costs"),
    Question("Bias", "Which results are biased by post-processing?", lambda manifest: str(manifest["post_processing"]["note"])),
    Question(
        "Bias",
        "Which rows are in none of the tables?",
        lambda manifest: str(manifest["domain"]["rows_outside"]),
        "whether those left out are of one group more than of another",
    ),
    Question(
        "Bias",
        "Whom do errors hit hardest?",
        lambda _: "Noise has the same size for small groups as for large ones, so relative errors are largest for small groups.",
        "what follows for small groups, and for decisions about them",
    ),
    Question(
        "Trust model",
        "Who sees the data themselves?",
        lambda _: "A central curator holds the rows and runs the program; readers see published files alone.",
        "the curator, and everybody with access to rows or to results before noise",
    ),
    Question(
        "Trust model",
        "Can readers ask further questions?",
        lambda _: "The release is not interactive. Further answers are computed from the published measurements and cost nothing.",
    ),
    Question(
        "Side channels",
        "What could be observed beside the results?",
        lambda _: "Time and memory of the run, and that it took place; the guarantee does not cover them.",
        "who could observe the machine",
    ),
    Question("Security", "How are the rows, the ledger and the machine protected?", people="access control, encryption, logs, deletion"),
    Question(
        "Data collection",
        "How were the data collected, and who could have seen them on the way?",
        people="consent, legal basis, transport, and copies elsewhere",
    ),
    Question("Publication", "What is published?", _files),
    Question("Publication", "Who answers questions?", _contact, "whom the people in the data can ask"),
)

OPEN = sum(bool(question.people) for question in QUESTIONS)
_HEAD = f"""\
# Review of a differentially private release

The questions follow the topics of NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees, in the words of leastnoise.
Answers are taken from the manifest of the release. Only people can answer what is marked **{FILL_IN}**; {OPEN} of {len(QUESTIONS)}
questions have such a mark.
"""


def review(published: Published) -> str:
    """The questions with their answers, as Markdown."""
    manifest = published.manifest
    lines = [_HEAD, f"Release of {manifest['written']}, plan `{published.release.plan_digest}`."]
    if not published.release.private:
        lines.append(f"\n**{manifest['warning']}**")
    topic = ""
    for number, question in enumerate(QUESTIONS, 1):
        if question.topic != topic:
            topic = question.topic
            lines.append(f"\n## {topic}")
        lines.append(f"\n### {number}. {question.text}\n")
        if question.answer is not None:
            lines.append(question.answer(manifest))
        if question.people:
            lines.append(("\n" if question.answer is not None else "") + f"**{FILL_IN}**: {question.people}.")
    return "\n".join(lines) + "\n"


REVIEW = Export("review", ".md", "a file for reviewers, after NIST SP 800-226", review)
