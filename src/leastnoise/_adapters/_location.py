"""Where data are, for whoever finishes a release later."""

from pathlib import Path
from typing import Any


def location(source: Any) -> str | None:
    """The absolute path of a source that is a file; None of any other. Nothing of it is read.

    Args:
        source: the data.

    >>> location("/data/people.csv"), location({"age": [1]})
    ('/data/people.csv', None)
    """
    return str(Path(source).expanduser().absolute()) if isinstance(source, (str, Path)) else None
