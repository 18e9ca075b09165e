"""Names: of attributes, columns and spec keys."""

from collections.abc import Iterable, Mapping

from leastnoise._check import InputError, refuse


def did_you_mean(word: object, words: Iterable[str]) -> str:
    """Suggest the public name that was probably meant.

    Args:
        word: what was typed.
        words: the names that exist.

    Returns:
        A sentence, or an empty text when nothing is close.

    Edge cases: a name that differs in case alone is always found; a word that is not text gives an empty text.

    >>> did_you_mean("incom", ["age", "income"])
    "Did you mean 'income'?"
    >>> did_you_mean("xyz", ["age", "income"])
    ''
    """
    if not isinstance(word, str):
        return ""
    names = list(words)
    same = [name for name in names if name.casefold() == word.casefold()]
    if not same:
        # difflib costs a few milliseconds to import and only an error needs it
        from difflib import get_close_matches

        same = get_close_matches(word, names, n=1)
    return f"Did you mean {same[0]!r}?" if same else ""


def attribute_name(what: str, name: object) -> str:
    """Check one name of an attribute, a measure or a column.

    >>> attribute_name("the name of an attribute", "sex")
    'sex'
    """
    allowed = "text that is not empty and has no control characters"
    # str.isprintable would also refuse the ideographic space, which occurs in real column names
    if not isinstance(name, str) or not name or any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise refuse(what, name, allowed)
    return name


def known_keys(what: str, got: object, allowed: Iterable[str]) -> dict[str, object]:
    """Check that a table of a spec is a table and has only keys that exist.

    >>> known_keys("domain.sex", {"size": 2}, ["size"])
    {'size': 2}
    """
    keys = list(allowed)
    listed = ", ".join(repr(key) for key in keys)
    if not isinstance(got, Mapping):
        raise refuse(what, got, f"a table with keys among {listed}")
    for key in got:
        if key not in keys:
            advice = did_you_mean(key, keys)
            raise InputError(f"{what} has no key {key!r}; allowed are {listed}." + (f" {advice}" if advice else ""))
    return dict(got)
