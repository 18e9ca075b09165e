"""A row of the conformance kit of operators."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leastnoise._linop import Operator


@dataclass(frozen=True)
class Case:
    """One operator with the explicit matrix it must stand for."""

    name: str
    operator: Operator
    reference: Callable[[], np.ndarray]
