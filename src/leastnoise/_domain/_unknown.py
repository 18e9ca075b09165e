"""An attribute whose categories nobody can list beforehand: they are found privately, before anything else is asked."""

import unicodedata
from dataclasses import dataclass

from leastnoise._check import InputError, whole
from leastnoise._domain._kind import LISTED, OTHER, READ_AS_IT_IS, Kind, written
from leastnoise._domain._kinds import Categories
from leastnoise._domain._levels import Label, Level
from leastnoise._domain._reading import Reading

_MOST, _LONGEST, _USUAL = 10**6, 1000, 200
_STRANGE = {"Cc", "Cs"}  # control characters, and halves of characters, which no file in UTF-8 holds


@dataclass(frozen=True, slots=True)
class Unknown(Kind):
    """A column of categories that nobody can list beforehand; `leastnoise.find_categories` finds those that many people have.

    Args:
        most: how many are kept, those of the largest noisy counts; public. Until they are found, plans are made for so many.
        longest: characters of a category; a longer text is outside.
        null: what a null does once they are found: ``"drop"`` the row or ``"other"``.
        outside: what a value that was not found does then: ``"drop"`` the row or ``"other"``.
        reading: how values are read; ``trim`` and ``ignore_case`` are applied before anything is counted.

    Raises:
        InputError: ``most`` below 1 or above 10^6, ``longest`` below 1 or above 1000, or levels, which have nothing to map yet.

    Edge cases: nulls, values without a string form (see `Categories`), texts that are longer or have control characters are never found.

    >>> ln.Unknown(10000, outside="other").size
    10001
    """

    most: int
    longest: int = _USUAL
    null: str = "drop"
    outside: str = "drop"
    reading: Reading = READ_AS_IT_IS
    levels: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        most, longest = whole("most", self.most, 1, _MOST), whole("longest", self.longest, 1, _LONGEST)
        if self.levels:
            raise InputError("unknown categories have no levels: find them first, then map what was found.")
        self._keep(most, LISTED, (self.null, self.outside, self.reading, ()), most=most, longest=longest)

    @property
    def regular(self) -> int:
        """Number of cells that plans are made for, ``other`` not included."""
        return self.most

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """What stands for each category as long as it is not known."""
        return tuple(f"category {number}" for number in range(1, self.most + 1))

    def allows(self, text: str) -> bool:
        r"""Whether a text may be found, from the text alone.

        Args:
            text: as it is read; not a null.

        >>> [ln.Unknown(9, longest=3).allows(text) for text in ("abc", "abcd", "a\n", "")]
        [True, False, False, False]
        """
        return 0 < len(text) <= self.longest and not any(unicodedata.category(letter) in _STRANGE for letter in text)

    def found(self, texts: tuple[str, ...]) -> Categories:
        """The attribute once its categories are found.

        Args:
            texts: of the categories, as they are read; one that is the word other is counted in the cell of that name, if there is one.

        Raises:
            InputError: there is none.

        >>> ln.Unknown(9, outside="other").found(("curl", "wget")).labels
        ('curl', 'wget', 'other')
        """
        kept = tuple(text for text in texts if not (self.has_other and text == OTHER))
        if not kept:
            raise InputError(
                "No category was found: none is held by enough people for the threshold. Give the search more of the budget or a larger "
                "delta, let a person count in fewer categories (max_rows), or ask for coarser ones."
            )
        return Categories(kept, null=self.null, outside=self.outside, reading=self.reading)

    def __repr__(self) -> str:
        longest = [] if self.longest == _USUAL else [f"longest={self.longest}"]
        return written(self, [repr(self.most), *longest])
