"""Facts about plans, releases and ledgers, from which displays choose.

`describe` returns the facts. Two packages register the classes that they can describe. These
packages are loaded when a value is first described, so ``import leastnoise`` stays quick, and a
notebook shows the same facts about a plan as commands and pages.
"""

from collections.abc import Iterable
from functools import singledispatch
from importlib import import_module
from itertools import chain
from typing import NamedTuple

_DESCRIBING_PACKAGES = ("leastnoise._pages", "leastnoise._session")


class Fact(NamedTuple):
    """A labelled fact for display: key, label and text, in one language."""

    key: str
    label: str
    text: str


class Section(NamedTuple):
    """A group of facts that are displayed together."""

    key: str
    facts: tuple[Fact, ...]


def list_facts(sections: Iterable[Section], *keys: str) -> list[Fact]:
    """Return the facts of several sections in one list.

    Args:
        sections: the sections.
        keys: the keys of the facts to list; without keys, all facts are listed.
    """
    facts = list(chain.from_iterable(section.facts for section in sections))
    return [fact for fact in facts if not keys or fact.key in keys]


def format_facts(facts: Iterable[Fact]) -> list[tuple[str, str]]:
    """Return each fact's label, with a small first letter, and its text."""
    return [(fact.label[:1].lower() + fact.label[1:], fact.text) for fact in facts]


@singledispatch
def describe(value: object) -> tuple[Section, ...]:
    """Describe a plan, a release or a ledger by sections of labelled facts.

    Args:
        value: the plan, release or ledger.

    Returns:
        The sections, in English.

    Raises:
        TypeError: nothing describes the class of the value.

    >>> plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> [section.key for section in describe(plan)]
    ['workload', 'error', 'privacy', 'rows']
    """
    for package in _DESCRIBING_PACKAGES:
        import_module(package)
        if describe.dispatch(type(value)) is not describe.dispatch(object):
            return describe(value)
    raise TypeError(f"describe() is for plans, releases and ledgers; got {type(value).__name__}.")


def summarize(value: object, *keys: str) -> list[tuple[str, str]]:
    """Return pairs of label and text for some facts about a value.

    Args:
        value: the plan, release or ledger.
        keys: the keys of the facts to return; without keys, all facts are returned.
    """
    return format_facts(list_facts(describe(value), *keys))
