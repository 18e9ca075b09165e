"""What is public about a series of private steps before any of them is paid."""

import hashlib
from dataclasses import dataclass

from leastnoise._accounting import Privacy
from leastnoise._check import InputError, refuse
from leastnoise._domain import Domain
from leastnoise._measurements import Measurements


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a release may do with private rows, and what it declares to cost.

    Args:
        domain: that the rows are encoded over.
        privacy: budget, neighbours and privacy unit of all steps together.
        attributes: that rows are read with, in the order of the domain.
        measures: that rows are read with.
        only: the one step, where it is known beforehand: its real cost is paid then, and nothing else is carried out. None for steps that
            are decided on the way, within the whole budget.
        text: of the plan, for the ledger and whoever finishes the release.

    Raises:
        InputError: parts of another class, or an only step of another domain or privacy.

    >>> Terms(domain=Domain(age=[1, 2]), privacy=Privacy(PureDP(1)), attributes=("age",), text="a plan").digest()[:8]
    'a27fa2ba'
    """

    domain: Domain
    privacy: Privacy
    attributes: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    only: Measurements | None = None
    text: str = ""

    def __post_init__(self) -> None:
        types = (type(self.domain), type(self.privacy), type(self.text))
        if types != (Domain, Privacy, str) or type(self.only) not in {Measurements, type(None)}:  # M6: of these very classes
            raise refuse(
                "terms", ", ".join(kind.__name__ for kind in (*types, type(self.only))), "Domain, Privacy, str, Measurements or None"
            )
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "measures", tuple(self.measures))
        if self.only is not None and (self.only.domain, self.only.privacy) != (self.domain, self.privacy):
            raise InputError("The only step of a series must be of its own domain and privacy. Make the plan again; nothing was spent.")

    def digest(self) -> str:
        """SHA-256 of the plan's text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()
