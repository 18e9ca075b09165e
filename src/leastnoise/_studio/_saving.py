"""Writing a spec beside the one that was opened, or in its place."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from leastnoise._check import InputError


def save(opened: Path, before: str, name: str, text: str) -> Path:
    """Write the text of a spec; whole or not at all."""
    if not name.endswith(".toml") or name != Path(name).name or name.startswith(".") or not name.isprintable() or "\\" in name:
        raise InputError(f"A spec must have the name of a file in {opened.parent}, such as people.toml; got {name!r}.")
    place = opened.parent / name
    try:
        if place.name != opened.name:
            with place.open("x", encoding="utf-8", newline="") as new:
                new.write(text)
            return place
        with opened.open(encoding="utf-8", newline="") as there:
            if there.read() != before:
                raise InputError(f"{opened} was changed since it was opened here. Save under another name.")
        _replace(opened, text)
    except FileExistsError:
        raise InputError(f"There is a file {place} already. Choose another name.") from None
    except (OSError, UnicodeError) as error:
        raise InputError(f"{place} cannot be written: {type(error).__name__}. Nothing was changed.") from None
    return place


def _replace(place: Path, text: str) -> None:
    draft = place.with_name(f".{place.name}.{token_hex(4)}")
    try:
        with draft.open("x", encoding="utf-8", newline="") as new:
            new.write(text)
            new.flush()
            os.fsync(new.fileno())
        shutil.copymode(place, draft)
        draft.replace(place)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
