"""Read the public CSV files that a spec names."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from itertools import product as product_of
from pathlib import Path
from typing import Any

from leastnoise._domain import Kind, checked_keys, map_by_text
from leastnoise._trusted.check import InputError, did_you_mean, message, refuse
from leastnoise._trusted.reading import CSV
from leastnoise._workload import Product, QuerySet, identity

_PUBLIC_FILE_KEYS = ("delimiter", "encoding")
_PRIVATE_FILE_MESSAGE = (
    "{what} must come from a public file; got the data themselves. A list taken from the data is a "
    "release that was not paid for. Use a code list, or write the list from public knowledge."
)
_UNREADABLE_CSV_MESSAGE = (
    "{what} names the file {path}, which cannot be read as CSV: {error}. State its delimiter and "
    "encoding next to its name."
)
_MOST_NAMED_COLUMNS = 20  # in a message; layout


@dataclass(frozen=True, slots=True)
class PublicFiles:
    """Reads the public CSV files of a spec, and refuses the files of private data."""

    folder: Path
    private: Sequence[object] = ()

    def categories(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the distinct values of a column, in order of appearance."""
        table = checked_keys("categories", value, ["file", "column", *_PUBLIC_FILE_KEYS])
        return tuple(
            dict.fromkeys(chain.from_iterable(self.columns("categories", table, "column")))
        )

    def pairs(self, subject: str, value: Mapping[str, Any]) -> dict[str, str]:
        """Map the entries of a file's key column to the entries of its value column."""
        table = checked_keys(subject, value, ["file", "key", "value", *_PUBLIC_FILE_KEYS])
        rows = self.columns(subject, table, "key", "value")
        return map_by_text(subject, ((key, entry) for key, entry in rows))

    def counts(self, subject: str, value: Mapping[str, Any], product: Product) -> list[int]:
        """Return the counts in a file, in the order of the cells of ``product``.

        The file has a column of labels for each attribute, and a column of counts.
        """
        return [int(text) for text in self.cell_texts(subject, value, product, str.isdigit)]

    def cell_texts(
        self,
        subject: str,
        value: Mapping[str, Any],
        product: Product,
        is_allowed: Callable[[str], bool],
    ) -> list[str]:
        """Return a column of a file, in the order of the cells of ``product``.

        The file has a column of labels for each attribute, and a column of texts. Raise InputError
        if a cell is missing or repeated, or if ``is_allowed`` rejects a text.
        """
        table = checked_keys(subject, value, ["file", "column", *_PUBLIC_FILE_KEYS])
        attribute_sets = [*zip(product.attributes, product.query_sets, strict=True)]
        names = [_column_name(name, sets) for name, sets in attribute_sets]
        rows = self.columns(subject, {**{name: name for name in names}, **table}, *names, "column")
        positions = [
            _position_finder(sets, product.domain.kind(name)) for name, sets in attribute_sets
        ]
        texts: dict[tuple[int | None, ...], str] = {}
        for *labels, text in rows:
            cell = tuple(find(label) for find, label in zip(positions, labels, strict=True))
            if None in cell or cell in texts or not is_allowed(text.strip()):
                raise InputError(
                    f"{subject} must have one number for every cell of {product.name}; got "
                    f"{text!r} for {', '.join(labels)}."
                )
            texts[cell] = text
        cells = [*product_of(*map(range, product.shape))]
        for cell in cells:
            if cell not in texts:
                labels_of_cell = [
                    str(labels[at]) for labels, at in zip(product.labels, cell, strict=True)
                ]
                raise InputError(
                    f"{subject} must have a number for every cell of {product.name}; "
                    f"{', '.join(labels_of_cell)} has none."
                )
        return [texts[cell].strip() for cell in cells]

    def columns(self, subject: str, table: Mapping[str, Any], *keys: str) -> list[tuple[str, ...]]:
        """Return the rows of a CSV file, reduced to the columns that ``keys`` names."""
        for key in ("file", *keys):
            if not isinstance(table.get(key), str) or not table[key]:
                raise refuse(
                    message("{key} of {what}", key=key, what=subject),
                    table.get(key),
                    "a text that is not empty",
                )
        path = self.folder / table["file"]
        self._refuse_private(subject, path)
        header, rows = _read_csv(subject, path, table)
        positions = [_column_position(subject, key, table, header) for key in keys]
        columns_needed = max(positions) + 1
        return [_select(row, positions) for row in rows if len(row) >= columns_needed]

    def _refuse_private(self, subject: str, path: Path) -> None:
        """Raise InputError if a path names a file of the private data."""
        for data in self.private:
            location = data.path if isinstance(data, CSV) else data
            if isinstance(location, (str, Path)) and Path(location).resolve() == path.resolve():
                raise InputError(message(_PRIVATE_FILE_MESSAGE, what=subject))


def _select(row: Sequence[str], positions: Sequence[int]) -> tuple[str, ...]:
    """Return the entries of a row at some positions."""
    return tuple([row[position] for position in positions])


def _read_csv(
    subject: str, path: Path, table: Mapping[str, Any]
) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a CSV file, without empty rows.

    ``table`` may state the delimiter and the encoding of the file.
    """
    delimiter = table.get("delimiter", ",")
    encoding = table.get("encoding", "utf-8-sig")
    try:
        with path.open(encoding=encoding, newline="") as opened:
            rows = [row for row in csv.reader(opened, delimiter=delimiter) if row]
    except FileNotFoundError:
        raise InputError(
            message("{what} names the file {path}, which does not exist.", what=subject, path=path)
        ) from None
    except (OSError, ValueError, TypeError, LookupError, csv.Error) as error:
        raise InputError(
            message(_UNREADABLE_CSV_MESSAGE, what=subject, path=path, error=type(error).__name__)
        ) from None
    if not rows:
        return [], []
    return rows[0], rows[1:]


def _column_position(
    subject: str, key: str, table: Mapping[str, Any], header: Sequence[str]
) -> int:
    """Return the position of the column that ``table[key]`` names in a file."""
    column = table[key]
    if header.count(column) != 1:
        allowed = message(
            "one column of {file}, which has {columns}",
            file=table["file"],
            columns=", ".join(header[:_MOST_NAMED_COLUMNS]),
        )
        near = did_you_mean(column, header)
        raise refuse(message("{key} of {what}", key=key, what=subject), column, allowed, near)
    return header.index(column)


def _column_name(name: str, query_set: QuerySet) -> str:
    """Return the name of the column of labels, such as "age" or "age:decade"."""
    if query_set.kind == "level":
        return f"{name}:{query_set.arguments[0][0]}"
    return name


def _position_finder(query_set: QuerySet, kind: Kind) -> Callable[[str], int | None]:
    """Return a function that maps a label to its query's position, or to None."""
    if query_set == identity():
        return kind.names.find
    labels = query_set.labels("", kind)
    return {str(label): position for position, label in enumerate(labels)}.get
