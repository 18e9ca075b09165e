"""The plan of a mechanism that chooses what to measure by looking at the data: public, without a promise of its error."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leastnoise._accounting import Privacy, privacy_from_json
from leastnoise._check import InputError, read_json, refuse
from leastnoise._domain import Domain
from leastnoise._plan._frozen import frozen

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataAwarePlan:
    """What a data-aware release will do: a mechanism with its public numbers, within a budget.

    Which queries are measured is decided on the way, from noisy values that the same budget pays for. So the error depends on the data
    and cannot be promised beforehand, and the mechanism is chosen by its name only.

    Args:
        domain: the public domain.
        privacy: budget, neighbours and privacy unit of everything together.
        strategy: the mechanism's name, such as "dawa".
        questions: the workload, as its JSON value.
        details: the mechanism's public numbers, such as the shares of its steps; JSON values.

    Raises:
        InputError: no name, or no questions.

    >>> plan = DataAwarePlan(domain=Domain(age=[1, 2]), privacy=Privacy(PureDP(1)), strategy="dawa", questions=({"attributes": []},))
    >>> DataAwarePlan.from_json(plan.to_json()) == plan
    True
    """

    domain: Domain
    privacy: Privacy
    strategy: str
    questions: tuple[Mapping[str, Any], ...]
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if type(self.domain) is not Domain or type(self.privacy) is not Privacy:
            raise refuse(
                "the domain and privacy of a plan", f"{type(self.domain).__name__}, {type(self.privacy).__name__}", "Domain, Privacy"
            )
        if not isinstance(self.strategy, str) or not self.strategy:
            raise refuse("strategy", self.strategy, "the name of a mechanism")
        # Copied at every depth, so that nothing inside can change after the ledger has the digest.
        object.__setattr__(self, "questions", frozen(self.questions))
        object.__setattr__(self, "details", frozen(dict(self.details)))
        if not self.questions:
            raise InputError("A data-aware plan must have questions; got none.")

    def to_json(self) -> str:
        """The plan as one JSON text, the same for equal plans."""
        value = {
            "data_aware": FORMAT,
            "strategy": self.strategy,
            "privacy": self.privacy.to_json(),
            "domain": self.domain.to_json(),
            "questions": list(self.questions),
            "details": dict(self.details),
        }
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    def digest(self) -> str:
        """SHA-256 of the plan's JSON text, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @staticmethod
    def from_json(text: str) -> "DataAwarePlan":
        """Read what ``to_json`` wrote.

        Raises:
            InputError: the text is no data-aware plan, or of another format.
        """
        try:
            value = read_json(text)
            if value["data_aware"] != FORMAT:
                raise refuse("the format of a data-aware plan", value["data_aware"], str(FORMAT), "Make the plan again with this version.")
            return DataAwarePlan(
                domain=Domain.from_json(value["domain"]),
                privacy=privacy_from_json(value["privacy"]),
                strategy=value["strategy"],
                questions=tuple(value["questions"]),
                details=value["details"],
            )
        except InputError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
            raise InputError("This is not a data-aware plan, or a damaged one. Make it again with leastnoise.plan.") from None
