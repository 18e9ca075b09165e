"""A file for reviewers after NIST SP 800-226, in Markdown: every question with its answer, and a mark where people must answer."""

from collections.abc import Iterator

from leastnoise._exports._export import FILL_IN, Export, Published
from leastnoise._exports._questions import QUESTIONS

OPEN = sum(bool(one.people) for one in QUESTIONS)
_HEAD = f"""\
# Review of a differentially private release

The questions follow the topics of NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees, in the words of leastnoise.
Answers are taken from the manifest of the release. Only people can answer what is marked **{FILL_IN}**; {OPEN} of {len(QUESTIONS)}
questions have such a mark.
"""


def review(published: Published) -> str:
    """The questions with their answers, as Markdown."""
    return "\n".join(_lines(published)) + "\n"


def _lines(published: Published) -> Iterator[str]:
    manifest = published.manifest
    yield _HEAD
    yield f"Release of {manifest['written']}, plan `{published.release.plan_digest}`."
    if not published.release.private:
        yield f"\n**{manifest['warning']}**"
    topic = ""
    for number, question in enumerate(QUESTIONS, 1):
        if question.topic != topic:
            topic = question.topic
            yield f"\n## {topic}"
        yield f"\n### {number}. {question.text}\n"
        if question.answer is not None:
            yield question.answer(manifest)
        if question.people:
            yield ("\n" if question.answer is not None else "") + f"**{FILL_IN}**: {question.people}."


REVIEW = Export("review", ".md", "a file for reviewers, after NIST SP 800-226", review)
