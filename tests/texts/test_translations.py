"""Texts, numbers, dates and lists of each language."""

import datetime as dt
import re

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from leastnoise._texts import LANGUAGES, LOCALES, load_catalogue

DOMAINS = sorted(path.stem for path in LOCALES.glob("*.pot"))
TRANSLATED = LANGUAGES[1:]


def read_messages(path):
    """Return the messages of a catalogue by context and English text, in its order."""
    with path.open("rb") as file:
        return {(message.context, message.id): message for message in read_po(file) if message.id}


def forms(text):
    return (text,) if isinstance(text, str) else tuple(text)


def fields(text):
    """The fields of a text: ``%(name)s``, or ``{name}`` in messages of errors.

    A noun may begin a sentence in one language only: ``Rows_noun`` is ``rows_noun`` there. The
    cases of a noun, such as ``rows_noun_weak``, are one field.
    """
    matches = re.findall(r"%\((\w+)\)s|\{(\w+)(?:!r)?\}", text)
    names = {(field or name).lower() for field, name in matches}
    return {re.sub("^rows_noun_(weak|dative)$", "rows_noun", name) for name in names}


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("language", TRANSLATED)
def test_catalogue_is_complete(language, domain):
    templates = read_messages(LOCALES / f"{domain}.pot")
    translations = read_messages(LOCALES / language / "LC_MESSAGES" / f"{domain}.po")
    assert translations.keys() == templates.keys()
    for message in translations.values():
        texts = forms(message.string)
        assert all(texts), message.id
        assert not message.fuzzy, message.id
        in_english = fields(forms(message.id)[-1])
        in_language = fields(texts[-1])
        # A message of an error may leave out a value, such as the name of a key of a spec.
        assert in_language <= in_english, message.id
        assert domain == "faults" or in_language == in_english, message.id


def test_key_has_one_domain():
    keys = [
        key
        for domain in DOMAINS
        if domain != "faults"
        for key, _ in read_messages(LOCALES / f"{domain}.pot")
    ]
    assert len(keys) == len(set(keys))


@pytest.fixture
def polish(tmp_path, monkeypatch):
    """Load a catalogue with three plural forms, a fuzzy text, and few texts in all."""
    catalogue = Catalog("pl")
    catalogue.add(
        ("one answer", "%(count)s answers"),
        ("jeden wynik", "%(count)s wyniki", "%(count)s wyników"),
        context="answers",
    )
    catalogue.add("Contents", "Spis", context="book_contents", flags=["fuzzy"])
    folder = tmp_path / "pl" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    with (folder / "report.po").open("wb") as file:
        write_po(file, catalogue)
    for template in LOCALES.glob("*.pot"):
        (tmp_path / template.name).write_bytes(template.read_bytes())
    monkeypatch.setattr("leastnoise._texts._translations.LOCALES", tmp_path)
    return load_catalogue("pl")


def test_new_language_has_its_plural_forms(polish):
    texts = [polish.say_count("answers", count) for count in (1, 3, 5)]
    assert texts == ["jeden wynik", "3 wyniki", "5 wyników"]


def test_text_without_translation_stays_english(polish):
    english = load_catalogue("en")
    assert polish.say("book_contents") == english.say("book_contents")
    assert polish.say_count("tables", 5) == "5 tables"
    assert polish.translate("a number above 0") == "a number above 0"


def test_unknown_key_is_an_error():
    with pytest.raises(KeyError, match="no_such_key"):
        load_catalogue("en").say("no_such_key")


@pytest.mark.parametrize(
    ("language", "number", "long", "percent", "day", "names"),
    [
        ("en", "1,234.5", "1e-7", "95%", "3 May 2026", "a, b and c"),
        ("de", "1.234,5", "1e-7", "95\u00a0%", "3. Mai 2026", "a, b und c"),
        ("fr", "1\u202f234,5", "1e-7", "95\u00a0%", "3 mai 2026", "a, b et c"),
    ],
)
def test_notation_follows_the_language(language, number, long, percent, day, names):
    catalogue = load_catalogue(language)
    assert catalogue.format_number(1234.5, 0.5) == f"{number}0"
    assert catalogue.format_value(1234) == number[:-2]
    assert catalogue.format_value(1e-7) == long
    assert catalogue.format_percent(0.95) == percent
    assert catalogue.format_date(dt.date(2026, 5, 3)) == day
    assert catalogue.join_names(["a", "b", "c"]) == names
    assert [catalogue.join_names(few) for few in ([], ["a"])] == ["", "a"]


def test_numbers_keep_their_digits():
    german = load_catalogue("de")
    assert german.format_number(-0.2) == "0"
    assert german.localize(f"{10**40:,}") == f"{10**40:,}".replace(",", ".")
    assert german.localize("1.50e+07") == "1,50e+7"
    assert german.format_percent(0.99999999) == "99,999999\u00a0%"
    assert german.localize("inf") == "inf"


def test_percentage_in_a_german_compound_has_hyphens():
    german = load_catalogue("de")
    assert german.say("col_interval", percent=german.format_percent(0.95)) == "95-%-Intervall"
