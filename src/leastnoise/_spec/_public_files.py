"""Public files that a spec names: lists of categories, and maps from them to coarser ones."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leastnoise._check import InputError, did_you_mean, refuse
from leastnoise._domain import known_keys

_LAYOUT = ("delimiter", "encoding")


class PublicFiles:
    """Reads CSV files beside a spec."""

    def __init__(self, folder: Path, private: Sequence[object] = ()) -> None:
        self._folder = folder
        self._private = [place.resolve() for place in private if isinstance(place, Path)]

    def categories(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """The values of a column, each once, in the order of the file."""
        table = known_keys("categories", value, ["file", "column", *_LAYOUT])
        return tuple(dict.fromkeys(key for (key,) in self._columns("categories", table, "column")))

    def groups(self, name: str, value: Mapping[str, Any]) -> dict[str, str]:
        """The map that two columns are."""
        what = f"levels.{name}"
        found: dict[str, str] = {}
        for key, group in self._columns(what, known_keys(what, value, ["file", "key", "value", *_LAYOUT]), "key", "value"):
            if found.setdefault(key, group) != group:
                raise InputError(f"{what} must give every key one group; {key!r} has {found[key]!r} and {group!r}.")
        return found

    def _columns(self, what: str, table: Mapping[str, Any], *wanted: str) -> list[tuple[str, ...]]:
        for key in ("file", *wanted):
            if not isinstance(table.get(key), str) or not table[key]:
                raise refuse(f"{key} of {what}", table.get(key), "a text that is not empty")
        path = self._folder / table["file"]
        if path.resolve() in self._private:
            raise InputError(
                f"{what} must come from a public file; got the data themselves. A list taken from the data is a release that nobody "
                "paid for: use a code list, or write the list from public knowledge."
            )
        rows = self._rows(what, path, table)
        header = rows[0] if rows else []
        places = []
        for key in wanted:
            if header.count(table[key]) != 1:
                near = did_you_mean(table[key], header)
                raise refuse(f"{key} of {what}", table[key], f"one column of {table['file']}, which has {', '.join(header[:20])}", near)
            places.append(header.index(table[key]))
        return [tuple(row[place] for place in places) for row in rows[1:] if len(row) > max(places)]

    def _rows(self, what: str, path: Path, table: Mapping[str, Any]) -> list[list[str]]:
        delimiter, encoding = table.get("delimiter", ","), table.get("encoding", "utf-8-sig")
        try:
            with path.open(encoding=encoding, newline="") as opened:
                return [row for row in csv.reader(opened, delimiter=delimiter) if row]
        except FileNotFoundError:
            raise InputError(f"{what} names the file {path}, which does not exist.") from None
        except (OSError, ValueError, TypeError, LookupError, csv.Error) as error:
            raise InputError(
                f"{what} names the file {path}, which cannot be read as CSV: {type(error).__name__}. "
                "Say its delimiter and encoding beside it."
            ) from None
