"""The tables and the statistics of a release: sequences whose parts are made when they are taken, by place, id or name."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Generic, TypeVar, overload

Part = TypeVar("Part")


class Taken(Sequence[Part], Generic[Part]):
    """A sequence whose parts are made when they are taken: one at an index or for a text, a list for a slice."""

    _called: ClassVar[str]
    """What one part is, in messages."""
    library: str | None
    """Of the data frames of its parts: that of the data, where they came as a frame."""

    @abstractmethod
    def place(self, key: str) -> int:
        """The position of a part, by id or name."""

    @abstractmethod
    def _taken(self, place: int) -> Part:
        """The part at a position from 0."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)})"

    def __iter__(self) -> Iterator[Part]:
        return (self._taken(place) for place in range(len(self)))

    @overload
    def __getitem__(self, key: int | str) -> Part: ...
    @overload
    def __getitem__(self, key: slice) -> list[Part]: ...
    def __getitem__(self, key: int | str | slice) -> Part | list[Part]:
        if isinstance(key, slice):
            return [self._taken(place) for place in range(*key.indices(len(self)))]
        if isinstance(key, str):
            return self._taken(self.place(key))
        if not -len(self) <= key < len(self):
            raise IndexError(f"there is no {self._called} {key} among {len(self)}")
        return self._taken(key % len(self))
