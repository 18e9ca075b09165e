"""How the text of CSV files is laid out: said by whoever describes the data, never guessed from their rows."""

import codecs
import os
from dataclasses import dataclass
from pathlib import Path

from leastnoise._check import InputError, refuse
from leastnoise._domain import attribute_name

_BYTES = bytes(range(256))


@dataclass(frozen=True, slots=True)
class CSV:
    """CSV files with what has to be said of them.

    Args:
        path: of a file, a folder, or a pattern.
        delimiter: one character of ASCII between fields; None: the one of comma, semicolon, tab and bar that the header holds most of.
        encoding: ``"utf-8"``, or an encoding of one byte a character such as ``"latin-1"`` or ``"cp1252"``.
        header: True: the first line has the names of the columns; or their names, where every line is a row.

    Raises:
        InputError: one of these cannot be used.

    >>> ln.CSV("umsatz.csv", delimiter=";", encoding="latin-1").delimiter
    ';'
    """

    path: str | os.PathLike[str]
    delimiter: str | None = None
    encoding: str = "utf-8"
    header: bool | tuple[str, ...] = True

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)):
            raise InputError(f"the path of CSV files must be a path; got an object of type {type(self.path).__name__!r}.")
        mark = self.delimiter
        if mark is not None and not (isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in '"\r\n\0'):
            raise refuse("delimiter", mark, "one ASCII character that is no quote and no line break, such as ';'")
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.header is False:
            raise InputError(
                "header must be true, or the list of the columns' names where the file has no line of names; got false. "
                'Write for example header = ["id", "age", "sex"]: how many columns there are is not learned from a row.'
            )
        if self.header is not True:
            if isinstance(self.header, str) or not isinstance(self.header, (list, tuple)) or not self.header:
                raise refuse("header", self.header, "true or a list of names")
            object.__setattr__(self, "header", tuple(attribute_name("a name in header", name) for name in self.header))

    @property
    def utf8(self) -> bool:
        """Whether the text is UTF-8 as it stands."""
        return self.encoding == "utf-8"

    def located(self) -> dict[str, object]:
        """All of it as plain values, with the absolute path; `CSV` takes them back."""
        place = str(Path(self.path).expanduser().absolute())
        header = self.header if isinstance(self.header, bool) else list(self.header)
        return {"path": place, "delimiter": self.delimiter, "encoding": self.encoding, "header": header}


def _encoding(name: object) -> str:
    allowed = "'utf-8', or one with a byte for every character, such as 'latin-1', 'iso8859-15' or 'cp1252'"
    found = ""
    try:
        found = codecs.lookup(name).name if isinstance(name, str) else ""
        # lines are cut at bytes, so the first 128 must be ASCII's and every other one a character by itself
        fits = found == "utf-8" or (
            len(_BYTES.decode(found, "replace")) == 256 and _BYTES[:128].decode(found) == _BYTES[:128].decode("ascii")
        )
    except (LookupError, ValueError):
        fits = False
    if not fits:
        raise refuse("encoding", name, allowed, "Save the file as UTF-8, or as Parquet.")
    return found
