"""What an export is: a name, the ending of its file, and a text made of a release that was published."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from leastnoise._release import Release

FILL_IN = "FILL IN"


@dataclass(frozen=True, slots=True)
class Published:
    """A release with what was published about it.

    Args:
        release: read back from its directory.
        manifest: its ``manifest.json``.
        place: the directory, as the reader of an export will name it.
    """

    release: Release
    manifest: Mapping[str, Any]
    place: str


@dataclass(frozen=True, slots=True)
class Export:
    """A form for other people or programs.

    Args:
        name: as it is asked for.
        suffix: of its file.
        what: it is, in a few words.
        text: makes it; post-processing of what is public.
    """

    name: str
    suffix: str
    what: str
    text: Callable[[Published], str]
