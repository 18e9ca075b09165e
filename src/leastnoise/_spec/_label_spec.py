"""Read the texts that pages show for the codes of attributes."""

from collections.abc import Mapping, Sequence
from typing import Any

from leastnoise._domain import Domain
from leastnoise._spec._public_files import PublicFiles
from leastnoise._texts import is_translated
from leastnoise._trusted.check import InputError, refuse

_MOST_NAMED_CODES = 5  # in a message; layout
Texts = dict[str, str | dict[str, str]]
"""The text of each code, or its texts by language."""


def _read_labels_file(subject: str, setting: Mapping[str, Any], files: PublicFiles) -> Texts:
    """Read the texts of codes from a public file, in one or several languages."""
    column = setting.get("value")
    if not isinstance(column, Mapping):
        return dict(files.pairs(subject, setting))
    texts: dict[str, dict[str, str]] = {}
    for language, column_of_language in column.items():
        pairs = files.pairs(subject, {**setting, "value": column_of_language})
        for code, text in pairs.items():
            texts.setdefault(code, {})[str(language)] = text
    return dict(texts)


def labels_from_spec(
    attributes: Mapping[str, Any], domain: Domain, files: PublicFiles
) -> dict[str, Texts]:
    """Return the texts that are displayed for the codes of each attribute.

    Codes are values of the attribute and groups of its levels.
    """
    labels_of: dict[str, Texts] = {}
    for name, table in attributes.items():
        if "labels" not in table:
            continue
        subject = f"[domain.{name}] labels"
        kind = domain.kind(name)
        texts = _read_texts_of_codes(subject, table["labels"], files)
        codes = {str(label) for label in kind.labels}
        for level in kind.levels:
            codes |= {str(label) for label in level.labels}
        labels_of[name] = {code: text for code, text in texts.items() if code in codes}
        if not labels_of[name]:
            raise refuse(
                f"the codes in {subject}",
                [*texts][:_MOST_NAMED_CODES],
                f"codes of the attribute, such as {min(codes)!r}",
            )
    return labels_of


def _read_texts_of_codes(subject: str, setting: object, files: PublicFiles) -> Texts:
    """Return the texts that a setting and its files give to codes.

    The setting may be a list, often of several files, with the labels of the attribute and of its
    levels.
    """
    parts: Sequence[object] = [setting]
    if isinstance(setting, list) and setting:
        parts = setting
    texts: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, Mapping):
            raise _refused_texts(subject, part)
        if "file" in part:
            texts |= _read_labels_file(subject, part, files)
        else:
            texts |= part
    if not all((isinstance(text, str) and text) or is_translated(text) for text in texts.values()):
        raise _refused_texts(subject, texts)
    return texts


def _refused_texts(subject: str, texts: object) -> InputError:
    """Return the error for labels that are no texts of codes."""
    return refuse(
        subject,
        texts,
        'texts of codes, such as { "1" = "men", "2" = "women" }, or { file, key, value }',
    )
