"""Format the parts of a drafted spec as TOML."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", flags=re.ASCII)


def format_toml_key(name: str) -> str:
    """Format a TOML key, with quotes if it needs them."""
    if _BARE_KEY.fullmatch(name):
        return name
    return format_toml_value(name)


def format_toml_value(value: Any) -> str:
    """Format a TOML value on one line.

    Texts are formatted as in JSON, and the character DEL is also escaped.
    """
    if isinstance(value, Mapping):
        entries = [
            f"{format_toml_key(name)} = {format_toml_value(entry)}" for name, entry in value.items()
        ]
        return "{ " + ", ".join(entries) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(format_toml_value(entry) for entry in value) + "]"
    if isinstance(value, (str, bool)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def escape_comment(text: str) -> str:
    """Replace characters that would end a TOML comment or cannot be printed."""
    return "".join(character if character.isprintable() else "?" for character in text)


def path_for_spec(data_path: Path, spec_path: Path) -> str:
    """Return the path of the data for a spec, relative if below its folder."""
    absolute_path = data_path.absolute()
    spec_folder = spec_path.absolute().parent
    if absolute_path.is_relative_to(spec_folder):
        return str(absolute_path.relative_to(spec_folder))
    return str(absolute_path)
