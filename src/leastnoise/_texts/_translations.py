"""Read the texts of a language from gettext catalogues.

The code names a text by a key. The key is the context (``msgctxt``) of a message in a template,
``locales/DOMAIN.pot``, whose ``msgid`` is the English text. A catalogue of the same domain,
``locales/LANGUAGE/LC_MESSAGES/DOMAIN.po``, has the translations. As usual with gettext, a text
stays English in two cases: it has no translation, or its translation is marked as fuzzy.

The domain ``faults`` contains error messages. Error messages have no key, because their English
texts are in the code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from gettext import c2py
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog, Message

LOCALES = Path(__file__).with_name("locales")
FAULTS = "faults"
_FIRST = ("report", "statistics", "studio")  # searched first, because nearly all texts are in them
_OTHERS = sorted({path.stem for path in LOCALES.glob("*.pot")} - {*_FIRST, FAULTS})
DOMAINS = (*_FIRST, *_OTHERS)
"""The domains of keys, in the order of the search for a key.

Each domain is read when it is needed.
"""
LANGUAGES = ("en", *sorted(path.name for path in LOCALES.iterdir() if path.is_dir()))
"""The languages that reports are written in."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text in one language that has fields to be filled in.

    Attributes:
        forms: the plural forms; most texts have only one form.
        plural_rule: a function that returns the position of the form for a number.
    """

    forms: tuple[str, ...]
    plural_rule: Callable[[int], int]

    def form(self, count: int) -> str:
        """Return the plural form of the text that agrees with a number."""
        return self.forms[self.plural_rule(count)]


@cache
def find_text(key: str, language: str) -> Text:
    """Return the text of a key in a language or, untranslated, in English.

    Raises:
        KeyError: no domain has the key.
    """
    domain, template = _find_template(key)
    catalogue = _read_catalogue(language, domain)
    translation = catalogue.get(template.id, context=key)
    english = Text(_list_plural_forms(template.id), c2py("n != 1"))
    if language == "en" or translation is None or translation.fuzzy:
        return english
    forms = _list_plural_forms(translation.string)
    if not all(forms):
        return english
    return Text(forms, c2py(catalogue.plural_expr))


def has_text(key: str) -> bool:
    """Return whether a domain has a text of a key."""
    return any(key in _read_templates(domain) for domain in DOMAINS)


def translate_template(template: str, language: str) -> str | None:
    """Return the translation of an error message's template, or None."""
    translation = _read_catalogue(language, FAULTS).get(template)
    if translation is None or translation.fuzzy:
        return None
    return str(translation.string) or None


def list_sentences(language: str) -> dict[str, str]:
    """Return all texts of a language by key, plural forms by ``KEY[0]`` etc."""
    texts = {}
    for domain in DOMAINS:
        for key in _read_templates(domain):
            forms = find_text(key, language).forms
            if len(forms) == 1:
                texts[key] = forms[0]
            else:
                texts.update({f"{key}[{number}]": form for number, form in enumerate(forms)})
    return texts


def _list_plural_forms(text: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return a message's text or plural forms as a tuple, from Babel's message."""
    if text is None or isinstance(text, str):
        return (text or "",)
    return tuple(text)


def _find_template(key: str) -> tuple[str, "Message"]:
    """Return the domain that has a key, and the key's message in English."""
    for domain in DOMAINS:
        message = _read_templates(domain).get(key)
        if message is not None:
            return domain, message
    raise KeyError(
        f"no catalogue has the text {key!r}: add it to a template locales/*.pot, and its "
        "translation to locales/LANGUAGE/LC_MESSAGES/*.po"
    )


@cache
def _read_templates(domain: str) -> "Mapping[str, Message]":
    """Return the English messages of a domain's template by key."""
    catalogue = _read_file(LOCALES / f"{domain}.pot", None)
    return {str(message.context): message for message in catalogue if message.id}


@cache
def _read_catalogue(language: str, domain: str) -> "Catalog":
    """Return the translations of a domain; the catalogue is empty for English."""
    return _read_file(LOCALES / language / "LC_MESSAGES" / f"{domain}.po", language)


def _read_file(path: Path, language: str | None) -> "Catalog":
    """Return the catalogue in a file; an empty one if the file does not exist."""
    from babel.messages.catalog import Catalog
    from babel.messages.pofile import read_po

    if not path.exists():
        return Catalog(language)
    with path.open("rb") as file:
        return read_po(file, language)
