"""What cannot be changed once it is made."""


class Immutable:
    """A class whose objects refuse to be changed; what makes them writes by ``object.__setattr__``."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; {name!r} cannot be deleted")
