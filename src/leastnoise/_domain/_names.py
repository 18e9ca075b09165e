"""Names: of attributes, columns and spec keys."""

from collections.abc import Iterable, Mapping

from leastnoise._check import InputError, did_you_mean, plain, refuse


def attribute_name(what: str, name: object) -> str:
    """Check one name of an attribute, a measure or a column.

    >>> attribute_name("the name of an attribute", "sex")
    'sex'
    """
    allowed = "text that is not empty and has no control characters"
    # str.isprintable would also refuse the ideographic space, which occurs in real column names
    name = plain(name)
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
