"""The only thing that crosses the wall: noisy integers, with the plan that made them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leastnoise._check import InputError, read_json, refuse
from leastnoise._linop import SignedArray, narrow, pack, unpack
from leastnoise._plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Noisy answers of a plan's queries.

    Args:
        plan: the plan that was carried out.
        values: for every block whole numbers of shape (block.rows,), in multiples of 1 / plan.grid; int32 where they fit, else int64.
        receipt: the ledger's identification of the payment; empty if nothing was paid because the noise was not private.
        private: False if the noise came from a seed, for a test or an experiment.

    Raises:
        InputError: the values do not fit the plan.
    """

    plan: Plan
    values: tuple[SignedArray, ...]
    receipt: str
    private: bool

    def __post_init__(self) -> None:
        if [len(value) for value in self.values] != [block.rows for block in self.plan.blocks]:
            raise refuse("the values of an observation", f"{len(self.values)} arrays", "one array a block of the plan, as long as its rows")
        for value in self.values:
            value.setflags(write=False)

    def to_json(self) -> str:
        """The observation without its plan, as one JSON text."""
        return json.dumps(
            {
                "plan_digest": self.plan.digest(),
                "receipt": self.receipt,
                "private": self.private,
                "values": [pack(value, 1) for value in self.values],
            }
        )

    @staticmethod
    def from_json(plan: Plan, text: str) -> "Observation":
        """Read what ``to_json`` wrote.

        Raises:
            InputError: the text belongs to another plan or is damaged.
        """
        try:
            value: Mapping[str, Any] = read_json(text)
            if value["plan_digest"] != plan.digest():
                raise InputError("This observation belongs to another plan. Read it with the plan that lies beside it.")
            if len(value["values"]) != len(plan.blocks):
                raise refuse("the values of an observation", f"{len(value['values'])} arrays", "one array a block of the plan")
            values = tuple(narrow(unpack(entry, block.rows)) for entry, block in zip(value["values"], plan.blocks, strict=True))
            return Observation(plan, values, value["receipt"], bool(value["private"]))
        except InputError:
            raise
        except (KeyError, TypeError, ValueError):
            raise InputError("This is not an observation, or a damaged one.") from None
