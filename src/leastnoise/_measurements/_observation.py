"""What comes of measurements.

Not trusted: of an observation only noisy numbers are known, and whoever makes one says whether they were paid for.
"""

from dataclasses import dataclass

from leastnoise._check import refuse
from leastnoise._linop import SignedArray
from leastnoise._measurements._measurements import Measurements


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Noisy answers of measured queries.

    Args:
        measurements: what was measured.
        values: for every block whole numbers of shape (block.rows,), in multiples of 1 / grid; int32 where they fit, else int64.
        receipt: the ledger's identification of the payment; empty if nothing was paid because the noise was not private.
        private: False if the noise came from a seed, for a test or an experiment.

    Raises:
        InputError: the values do not fit the measurements.
    """

    measurements: Measurements
    values: tuple[SignedArray, ...]
    receipt: str
    private: bool

    def __post_init__(self) -> None:
        if [len(value) for value in self.values] != [block.rows for block in self.measurements.blocks]:
            raise refuse("the values of an observation", f"{len(self.values)} arrays", "one array a block, as long as its rows")
        for value in self.values:
            value.setflags(write=False)
