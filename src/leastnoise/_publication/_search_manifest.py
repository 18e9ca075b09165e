"""Read the manifest of a search for categories or bounds."""

from pathlib import Path
from typing import TypeVar

from leastnoise._plan import parse_or_refuse, read_json
from leastnoise._release import read_record
from leastnoise._trusted.check import InputError, refuse

MANIFEST_FILE = "manifest.json"
_Record = TypeVar("_Record")


def read_search_manifest(
    directory: Path, record: type[_Record], manifest_format: str, result: str, advice: str
) -> _Record:
    """Return the checked manifest in the directory of a search.

    Args:
        directory: the directory that the search wrote.
        record: the class of the manifest.
        manifest_format: the value of its key ``format``.
        result: a plural noun for the result of the search, for messages.
        advice: the last sentence of messages; it tells the user what to do.

    Raises:
        InputError: the manifest is missing; it is damaged; or it has another format.
    """
    try:
        text = (directory / MANIFEST_FILE).read_text(encoding="utf-8")
        values = parse_or_refuse(lambda: read_json(text), "manifest", advice)
        manifest = parse_or_refuse(lambda: read_record(record, values), "manifest", advice)
    except OSError:
        raise unreadable_search_error(directory, result, advice) from None
    except ValueError as error:
        reason = str(error) if isinstance(error, InputError) else "It is not text."
        raise InputError(
            f"The {result} in {str(directory)!r} are damaged. In their manifest: {reason} {advice}"
        ) from None
    if values["format"] != manifest_format:
        raise refuse(f"the format of found {result}", values["format"], repr(manifest_format))
    return manifest


def has_search_format(directory: Path, manifest_format: str) -> bool:
    """Return whether a directory contains a manifest of this format."""
    try:
        text = (directory / MANIFEST_FILE).read_text(encoding="utf-8")
        values = read_json(text)
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and values.get("format") == manifest_format


def unreadable_search_error(directory: Path, result: str, advice: str) -> InputError:
    """Return the error for a directory without a readable search result."""
    return InputError(
        f"There are no found {result} in {str(directory)!r}, or they cannot be read. {advice}"
    )
