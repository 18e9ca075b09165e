"""What an export is: a name, the ending of its file, and a text made of a release that was published."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from leastnoise._release import Release

FILL_IN = "FILL IN"


@dataclass(frozen=True, slots=True)
class Published:
    """A release with what was published about it."""

    release: Release
    manifest: Mapping[str, Any]
    place: str


@dataclass(frozen=True, slots=True)
class Export:
    """A form for other people or programs."""

    name: str
    suffix: str
    what: str
    text: Callable[[Published], str]
