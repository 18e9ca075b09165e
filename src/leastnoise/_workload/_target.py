"""How exact the answers of a table must be."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from leastnoise._check import Exact, InputError, exact_positive, one_of, refuse

Kind = Literal["margin", "rmse"]


@dataclass(frozen=True, slots=True)
class Target:
    """The largest error that a table may have."""

    kind: Kind
    most: Fraction

    def __post_init__(self) -> None:
        one_of("the kind of a target", self.kind, ("margin", "rmse"))
        object.__setattr__(self, "most", exact_positive(self.kind, self.most))

    def to_json(self) -> dict[str, str]:
        """A JSON value."""
        return {self.kind: str(self.most)}


def target(
    *, margin: Exact | None = None, relative: Exact | None = None, size: Exact | None = None, rmse: Exact | None = None
) -> Target | None:
    """The target of a table, said in one of three ways."""
    said: dict[str, Any] = {"margin": margin, "relative": relative, "rmse": rmse}
    given = [name for name, value in said.items() if value is not None]
    if relative is not None and size is None:
        raise InputError("A relative target needs a size: it is a share of a public number, for example relative 0.05 with size 10000.")
    if len(given) > 1:
        raise refuse("a target", " and ".join(given), "one of margin, relative and rmse")
    if not given:
        return None
    if relative is not None and size is not None:
        return Target("margin", exact_positive("relative", relative) * exact_positive("size", size))
    return Target("rmse", exact_positive("rmse", rmse)) if rmse is not None else Target("margin", exact_positive("margin", margin))  # type: ignore[arg-type]
