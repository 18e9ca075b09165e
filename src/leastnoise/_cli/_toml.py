"""Parts of spec files as TOML."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", flags=re.ASCII)


def text(value: str) -> str:
    """A TOML text: as in JSON, but for the one control character that JSON does not escape."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def key(name: str) -> str:
    """A key, in quotation marks where it needs them."""
    return name if _BARE_KEY.fullmatch(name) else text(name)


def value(given: Any) -> str:
    """A value on one line."""
    if isinstance(given, Mapping):
        return "{ " + ", ".join(f"{key(name)} = {value(one)}" for name, one in given.items()) + " }"
    if isinstance(given, (list, tuple)):
        return "[" + ", ".join(value(one) for one in given) + "]"
    if isinstance(given, bool):
        return "true" if given else "false"
    return text(given) if isinstance(given, str) else str(given)


def comment(said: str) -> str:
    """A text without what would end a comment."""
    return "".join(character if character.isprintable() else "?" for character in said)


def left_out(name: str, why: str) -> str:
    """A comment in the place of a column."""
    return f"# The column {comment(text(name))} was left out: {why}.\n"


def relative(file: Path, spec: Path) -> str:
    """The path of the data as the spec file needs it: relative to its own folder where that is simple."""
    data, folder = Path(file).absolute(), Path(spec).absolute().parent
    return str(data.relative_to(folder)) if data.is_relative_to(folder) else str(data)
