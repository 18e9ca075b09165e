"""JSON values that cannot be changed."""

from collections.abc import Mapping
from typing import Any, NoReturn

_PLAIN = {bool, int, float, str, type(None)}


class FrozenDict(dict[str, Any]):
    """A dictionary that cannot be changed.

    A frozen dictionary is equal to an ordinary dictionary with the same entries, and has the same
    JSON.
    """

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise TypeError; each method that would change the dictionary calls this."""
        raise TypeError(
            "The fields of a plan cannot be changed; make another plan, for example with "
            "dataclasses.replace."
        )

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> "FrozenDict":
        return self

    def __deepcopy__(self, memo: object) -> "FrozenDict":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


def freeze(value: Any) -> Any:
    """Return a copy of a JSON value in which no nested value can be changed.

    Dictionaries become frozen dictionaries, and lists become tuples.
    """
    if isinstance(value, Mapping):
        return FrozenDict({key: freeze(entry) for key, entry in value.items()})
    if isinstance(value, (list, tuple)):
        if {*map(type, value)} <= _PLAIN:  # a matrix has millions of entries
            return tuple(value)
        return tuple(freeze(entry) for entry in value)
    return value
